//! Memory of invented processes. It has a dynamic linker's list of one or two modules, threads, a first stack, and a
//! loaded library.

use crate::debugged::{BASE, SYMBOLS, again};

/// Places in memory. The stack is in a page of its own, for the page below its end is read as a whole.
const LINK_MAP: usize = 0x40;
const SECOND_MAP: usize = 0x80;
const FIELDS: usize = 0x200;
const RINGS: usize = 0x300;
const THREADS: usize = 0x400;
const STACK: usize = 0x1c00;
const RANDOM: usize = 0x1e00;
/// The strings lie one behind the other, as the kernel leaves them.
const ARGUMENT: usize = VARIABLE - 8;
const VARIABLE: usize = 0x1e40;
/// Right behind the variable and its end.
const NAME: usize = VARIABLE + 18;
const IMAGE: usize = 0x2000;
const PAGE: usize = 4096;
/// Words of a list that lies on itself: up to where the stack begins.
const CROWD: usize = (STACK - 64 - PAGE) / 8;

fn at(place: usize) -> u64 {
    BASE + place as u64
}

/// A 64-bit little-endian integer in a file.
fn word(file: &[u8], at: usize, size: usize) -> Option<usize> {
    let bytes = file.get(at..at + size)?;
    Some(bytes.iter().rev().fold(0, |value, byte| value << 8 | usize::from(*byte)))
}

/// The dynamic linker's list: whole, absent, or crowded. A crowded list has more entries than memory has room for: each
/// overlaps the next, and none names a real module.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum List {
    Whole,
    None,
    Crowded,
}

/// An input of a shared library, which has to be 64-bit and little-endian; `None` if it is too large.
pub(super) fn make(library: &[u8], list: List) -> Option<Vec<u8>> {
    let (table, count) = (word(library, 32, 8)?, word(library, 56, 2)?);
    let segments: Vec<[usize; 5]> = (0..count)
        .map_while(|n| {
            let at = table + 56 * n;
            // Type, offset, address, bytes in the file, bytes in memory.
            Some(
                [(0, 4), (8, 8), (16, 8), (32, 8), (40, 8)]
                    .map(|(field, size)| word(library, at + field, size).unwrap_or(0)),
            )
        })
        .collect();
    let end = segments.iter().filter(|s| s[0] == 1).map(|s| s[2] + s[4]).max()?;
    let mut memory = vec![0; IMAGE + end.next_multiple_of(PAGE)];
    if memory.len() > usize::from(u16::MAX) {
        return None;
    }
    for [kind, offset, address, bytes, _] in segments.iter().copied() {
        if kind == 1 {
            memory[IMAGE + address..][..bytes].copy_from_slice(library.get(offset..offset + bytes)?);
        }
    }
    let high = again(memory.len());
    let dynamic = segments.iter().find(|s| s[0] == 2)?[2];
    let mut put = |place: usize, words: &[u64]| {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        memory[place..][..bytes.len()].copy_from_slice(&bytes);
    };
    // r_version, r_map, r_brk, r_state, r_ldbase.
    put(0, &[1, at(LINK_MAP), 0, 0, 0]);
    // l_addr, l_name, l_ld, l_next. The second is nowhere.
    put(LINK_MAP, &[at(IMAGE), at(NAME), at(IMAGE + dynamic), at(SECOND_MAP)]);
    put(SECOND_MAP, &[at(RANDOM), at(NAME), at(RANDOM), 0]);
    if list == List::Crowded {
        // Each word is the address of the word two before: as l_next, three words on, that of the entry behind. The
        // memory is that at the end of the address space: there is much below it to be searched.
        let crowd = |n: usize| high + (PAGE + 8 * n) as u64;
        let words: Vec<u64> = (0..CROWD).map(|n| crowd(n) - 16).collect();
        put(PAGE, &words);
        put(LINK_MAP + 24, &[crowd(0)]);
    }
    // Size in bits, number, offset: the links, the kernel's id and the next link of a thread; the two rings.
    for (n, offset) in [0u32, 16, 0, 0, 16, 64].into_iter().enumerate() {
        let bytes = [64u32, 1, offset].map(u32::to_le_bytes).concat();
        put(FIELDS + 16 * n, &[u64::from_le_bytes(bytes[..8].try_into().ok()?), offset.into()]);
    }
    // A ring of two threads, and an empty one.
    put(RINGS, &[at(THREADS), at(THREADS + 0x100), at(RINGS + 16), at(RINGS + 16)]);
    put(THREADS, &[at(THREADS + 0x100), at(RINGS), 70]);
    put(THREADS + 0x100, &[at(RINGS), at(THREADS), 71]);
    put(STACK - 8, &[at(STACK)]);
    // Their number, arguments, NULL, variables, NULL, the vector: AT_PHDR, AT_ENTRY, AT_RANDOM, AT_EXECFN.
    let entry = u64::from_le_bytes(library.get(24..32)?.try_into().ok()?);
    let vector = [3, at(IMAGE + 64), 9, at(IMAGE).wrapping_add(entry), 25, at(RANDOM), 31, at(NAME), 0, 0];
    put(STACK, &[1, at(ARGUMENT), 0, at(VARIABLE), 0]);
    put(STACK + 40, &vector);
    let texts = [(ARGUMENT, &b"library\0"[..]), (VARIABLE, b"OMP_NUM_THREADS=4\0"), (NAME, b"/nowhere/library\0")];
    for (place, text) in texts {
        memory[place..][..text.len()].copy_from_slice(text);
    }
    let mut input = Vec::new();
    for name in SYMBOLS {
        let place = match name {
            "_r_debug" if list != List::None => 0,
            "__libc_stack_end" => STACK - 8,
            "_rtld_global" => RINGS,
            "_thread_db_pthread_list" => FIELDS,
            "_thread_db_pthread_tid" => FIELDS + 16,
            "_thread_db_list_t_next" => FIELDS + 32,
            "_thread_db_rtld_global__dl_stack_user" => FIELDS + 48,
            "_thread_db_rtld_global__dl_stack_used" => FIELDS + 64,
            "_thread_db_sizeof_pthread" => FIELDS + 80,
            "omp_get_thread_num" => IMAGE + 0x200,
            _ => 8 * usize::from(u16::MAX),
        };
        input.extend(u16::try_from(place / 8).ok()?.to_le_bytes());
    }
    input.extend(memory);
    Some(input)
}
