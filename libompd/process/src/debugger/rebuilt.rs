//! The file of a module, put together from what of it is in memory, where the file itself is not at hand.
//!
//! What is loaded of a file is enough for all that does not need debug information: its dynamic symbols, code, relocations, and
//! call frame information. The section headers that say where those are is not loaded; the dynamic section says it as well
//! (gABI, "Dynamic Section").
//!
//! Packed relocations (`DT_RELR`) have their addends in the words they patch, which are patched here. They are told as what they
//! would be unpacked, of words that nobody has written to since: those that the dynamic linker has made read-only.

use std::sync::Arc;

use goblin::elf::dynamic as tag;
use goblin::elf::program_header::{PT_DYNAMIC, PT_GNU_EH_FRAME, PT_GNU_RELRO, PT_LOAD, PT_NOTE};
use goblin::elf::section_header as kind;

use super::interface::Debugger;
use super::memory::Memory;
use crate::arch::ByteOrder;
use crate::elf::{ElfFile, relative};
use crate::image::{Headers, Image};
use crate::memory::Addr;

/// Files of which more is loaded are not read through a debugger.
const MAX_LOADED: u64 = 64 << 20;
/// Most bytes between the segments of a file that are filled with zeros, beyond as many as are loaded. Linkers leave a
/// page before each segment, of any size that a page may have.
const MAX_GAPS: u64 = 8 << 20;
/// Read at a time.
const STEP: usize = 64 << 10;
/// Entries of a dynamic section beyond this many are not believed to be there.
const MAX_ENTRIES: usize = 1024;
/// Sizes of 64-bit structures (gABI): a section header, a symbol, a relocation with addend, an entry of the dynamic section.
const SECTION_HEADER: u64 = 64;
const SYMBOL: u64 = 24;
const RELA: u64 = 24;
const DYNAMIC: u64 = 16;
/// Packed relocations (gABI, "Relative Relocation Table"): their size, their place and the bytes of one word of them.
const DT_RELRSZ: u64 = 35;
const DT_RELR: u64 = 36;
const WORD: u64 = 8;
/// Where in the file header the place, size and number of section headers stand (`Elf64_Ehdr`).
const E_SHOFF: usize = 40;
const E_SHENTSIZE: usize = 58;

/// A section to be told of.
struct Section {
    name: &'static str,
    kind: u32,
    addr: u64,
    size: u64,
    link: Option<&'static str>,
    info: u32,
    entry: u64,
}

/// A file with everything of `image` that is loaded, and with section headers made for it.
///
/// # Errors
/// Why there is none.
pub(super) fn file<D: Debugger>(memory: &Memory<D>, image: &Image, headers: &Headers) -> Result<Arc<ElfFile>, String> {
    if headers.arch.pointer_bytes != 8 {
        return Err("only 64-bit images are put together from memory".to_owned());
    }
    let mut bytes = loaded(memory, image, headers)?;
    let order = headers.arch.byte_order;
    let (sections, unpacked) = sections(image, headers, &bytes, order);
    append(&mut bytes, &sections, &unpacked, headers, order)?;
    ElfFile::from_bytes(&image.path, bytes).map(Arc::new).map_err(|e| e.to_string())
}

/// The segments of a file at the places they have in it. What of a file is not loaded is zero.
fn loaded<D: Debugger>(memory: &Memory<D>, image: &Image, headers: &Headers) -> Result<Vec<u8>, String> {
    let loads = || headers.segments.iter().filter(|segment| segment.p_type == PT_LOAD);
    let end = |s: &goblin::elf::ProgramHeader| s.p_offset.saturating_add(s.p_filesz);
    let size = loads().map(end).max().unwrap_or(0);
    let total = loads().try_fold(0u64, |sum, segment| sum.checked_add(segment.p_filesz)).unwrap_or(u64::MAX);
    if size.max(total) > MAX_LOADED {
        return Err("too much of it is loaded for reading that through a debugger".to_owned());
    }
    if loads().any(|segment| segment.p_filesz > segment.p_memsz) {
        return Err("a segment is shorter in memory than in the file".to_owned());
    }
    if size > total.saturating_mul(2).saturating_add(MAX_GAPS) {
        return Err("what is loaded of it lies far apart in the file".to_owned());
    }
    let mut bytes = vec![0; size as usize];
    for segment in loads() {
        let place = &mut bytes[segment.p_offset as usize..(segment.p_offset + segment.p_filesz) as usize];
        let mut at = Addr(image.bias.wrapping_add(segment.p_vaddr));
        for part in place.chunks_mut(STEP) {
            memory.ask(at, part).map_err(|why| format!("{} bytes at {at}: {why}", part.len()))?;
            at = at.offset(part.len() as u64);
        }
    }
    Ok(bytes)
}

/// Where the bytes of `addr` stand in the file.
fn place(headers: &Headers, addr: u64, size: u64) -> Option<usize> {
    let holds = |s: &&goblin::elf::ProgramHeader| {
        s.p_type == PT_LOAD
            && addr >= s.p_vaddr
            && (addr - s.p_vaddr).checked_add(size).is_some_and(|end| end <= s.p_filesz)
    };
    let segment = headers.segments.iter().find(holds)?;
    usize::try_from(segment.p_offset.checked_add(addr - segment.p_vaddr)?).ok()
}

/// The sections that lie in `bytes`, and one more to be put behind them: the packed relocations, unpacked (`Elf64_Rela`).
fn sections(image: &Image, headers: &Headers, bytes: &[u8], order: ByteOrder) -> (Vec<Section>, Vec<u8>) {
    let word = |addr: u64, size: usize| {
        let at = place(headers, addr, size as u64)?;
        Some(order.uint(bytes.get(at..at.checked_add(size)?)?))
    };
    let mut found = Vec::new();
    for note in headers.segments.iter().filter(|s| s.p_type == PT_NOTE).take(8) {
        found.push(Section::plain(".note", kind::SHT_NOTE, note.p_vaddr, note.p_filesz));
    }
    for code in headers.segments.iter().filter(|s| s.p_type == PT_LOAD && s.is_executable()).take(8) {
        found.push(Section::plain(".text", kind::SHT_PROGBITS, code.p_vaddr, code.p_filesz));
    }
    if let Some(header) = headers.segments.iter().find(|s| s.p_type == PT_GNU_EH_FRAME) {
        found.push(Section::plain(".eh_frame_hdr", kind::SHT_PROGBITS, header.p_vaddr, header.p_filesz));
        // Its second word is the distance from there to the table itself, as all linkers encode it (LSB, "Exception Frames":
        // DW_EH_PE_pcrel and DW_EH_PE_sdata4). The table ends where its segment does, or with an entry of no length.
        let encoded = word(header.p_vaddr.wrapping_add(1), 1) == Some(0x1b);
        let distance = word(header.p_vaddr.wrapping_add(4), 4).filter(|_| encoded);
        let table = distance.map(|d| header.p_vaddr.wrapping_add(4).wrapping_add(i64::from(d as u32 as i32) as u64));
        let segment = |at: &u64| {
            let holds = |s: &&goblin::elf::ProgramHeader| s.p_type == PT_LOAD && s.p_vaddr <= *at;
            let holder = headers.segments.iter().filter(holds).max_by_key(|s| s.p_vaddr)?;
            holder.p_vaddr.checked_add(holder.p_filesz)?.checked_sub(*at)
        };
        if let Some((at, size)) = table.and_then(|at| Some((at, segment(&at)?))) {
            found.push(Section::plain(".eh_frame", kind::SHT_PROGBITS, at, size));
        }
    }
    let Some(dynamic) = headers.segments.iter().find(|s| s.p_type == PT_DYNAMIC) else {
        return (found, Vec::new());
    };
    let entries: Vec<(u64, u64)> = (0..MAX_ENTRIES as u64)
        .map_while(|n| {
            let at = dynamic.p_vaddr.checked_add(n * DYNAMIC)?;
            Some((word(at, 8)?, word(at.checked_add(8)?, 8)?))
        })
        .take_while(|(tag, _)| *tag != tag::DT_NULL)
        .collect();
    let get = |wanted: u64| entries.iter().find(|(tag, _)| *tag == wanted).map(|(_, value)| *value);
    // glibc adds the bias to the addresses in this section when it loads a module, on most machines (elf/get-dynamic-info.h).
    let inside = |addr: &u64| image.ranges.iter().any(|range| range.contains(addr));
    let address = |wanted: u64| get(wanted).map(|at| if inside(&at) { at.wrapping_sub(image.bias) } else { at });
    let size = entries.len() as u64 * DYNAMIC;
    found.push(Section {
        link: Some(".dynstr"),
        entry: DYNAMIC,
        ..Section::plain(".dynamic", kind::SHT_DYNAMIC, dynamic.p_vaddr, size)
    });
    if let (Some(at), Some(size)) = (address(tag::DT_STRTAB), get(tag::DT_STRSZ)) {
        found.push(Section::plain(".dynstr", kind::SHT_STRTAB, at, size));
    }
    let count = address(tag::DT_HASH)
        .and_then(|at| word(at.checked_add(4)?, 4))
        .or_else(|| gnu_hash_symbols(address(tag::DT_GNU_HASH)?, &word));
    if let (Some(at), Some(count)) = (address(tag::DT_SYMTAB), count) {
        found.push(Section {
            link: Some(".dynstr"),
            info: 1,
            entry: SYMBOL,
            ..Section::plain(".dynsym", kind::SHT_DYNSYM, at, count.saturating_mul(SYMBOL))
        });
        if let Some(at) = address(tag::DT_VERSYM) {
            let size = count.saturating_mul(2);
            found.push(Section {
                link: Some(".dynsym"),
                entry: 2,
                ..Section::plain(".gnu.version", kind::SHT_GNU_VERSYM, at, size)
            });
        }
    }
    let versions = [
        (".gnu.version_d", kind::SHT_GNU_VERDEF, tag::DT_VERDEF, tag::DT_VERDEFNUM),
        (".gnu.version_r", kind::SHT_GNU_VERNEED, tag::DT_VERNEED, tag::DT_VERNEEDNUM),
    ];
    for (name, kind, place, number) in versions {
        if let (Some(at), Some(number)) = (address(place), get(number)) {
            // The entries say where they end; the section is told to go on to the strings or to the end of what is loaded.
            let segment =
                headers.segments.iter().find(|s| s.p_type == PT_LOAD && s.vm_range().contains(&(at as usize)));
            let size = segment.and_then(|s| s.p_vaddr.checked_add(s.p_filesz)?.checked_sub(at)).unwrap_or(0);
            let info = u32::try_from(number).unwrap_or(0);
            found.push(Section { link: Some(".dynstr"), info, ..Section::plain(name, kind, at, size) });
        }
    }
    let relocations = [
        (".rela.dyn", address(tag::DT_RELA), get(tag::DT_RELASZ)),
        (
            ".rela.plt",
            address(tag::DT_JMPREL).filter(|_| get(tag::DT_PLTREL) == Some(tag::DT_RELA)),
            get(tag::DT_PLTRELSZ),
        ),
    ];
    for (name, at, size) in relocations {
        if let (Some(at), Some(size)) = (at, size) {
            found.push(Section {
                link: Some(".dynsym"),
                entry: RELA,
                ..Section::plain(name, kind::SHT_RELA, at, size)
            });
        }
    }
    let packed = address(DT_RELR).zip(get(DT_RELRSZ));
    let unpacked = packed.map_or_else(Vec::new, |packed| unpack(image, headers, packed, bytes.len(), &word));
    let mut told = Vec::new();
    for (place, addend) in unpacked {
        let kind = relative(headers.arch.machine).unwrap_or(0);
        [place, kind.into(), addend].into_iter().for_each(|value| put(&mut told, value, 8, order));
    }
    (found, told)
}

/// Packed relocations, at an address of so many bytes: the words they patch, each with what was added to the load bias.
fn unpack(
    image: &Image,
    headers: &Headers,
    (at, size): (u64, u64),
    loaded: usize,
    word: &impl Fn(u64, usize) -> Option<u64>,
) -> Vec<(u64, u64)> {
    let mut found = Vec::new();
    if relative(headers.arch.machine).is_none() {
        return found;
    }
    let kept = |place: u64| {
        let mut own = headers.segments.iter().filter(|s| s.p_type == PT_GNU_RELRO);
        own.any(|s| place >= s.p_vaddr && place - s.p_vaddr < s.p_memsz)
    };
    let mut patch = |place: u64| {
        let Some(value) = word(place, 8).filter(|_| kept(place)) else { return };
        // Before the dynamic linker has come to it, it is no address in the image.
        if image.ranges.iter().any(|range| range.start <= value && value <= range.end) {
            found.push((place, value.wrapping_sub(image.bias)));
        }
    };
    // Each word of the table stands for up to 63 words of the image, of which there are only so many.
    let mut left = loaded / WORD as usize;
    let mut next = 0u64;
    for n in 0..size / WORD {
        let Some(entry) = at.checked_add(n.wrapping_mul(WORD)).and_then(|at| word(at, 8)) else { break };
        // An even word is an address; an odd one has a bit for each of the 63 words that follow.
        let places = if entry & 1 == 0 { 1 } else { (entry >> 1).count_ones() as usize };
        let Some(rest) = left.checked_sub(places) else { break };
        left = rest;
        if entry & 1 == 0 {
            patch(entry);
            next = entry.wrapping_add(WORD);
            continue;
        }
        (0..63).filter(|bit| entry >> (bit + 1) & 1 == 1).for_each(|bit| patch(next.wrapping_add(bit * WORD)));
        next = next.wrapping_add(63 * WORD);
    }
    found
}

/// How many symbols there are, by the hash table: one more than the highest index in any chain. The table covers the
/// defined symbols, and those come last.
fn gnu_hash_symbols(at: u64, word: &impl Fn(u64, usize) -> Option<u64>) -> Option<u64> {
    let [buckets, first, bloom] = [word(at, 4)?, word(at.checked_add(4)?, 4)?, word(at.checked_add(8)?, 4)?];
    let table = at.checked_add(16)?.checked_add(bloom.checked_mul(8)?)?;
    let highest = (0..buckets).map_while(|n| word(table.checked_add(n * 4)?, 4)).max()?;
    if highest < first {
        return Some(first);
    }
    let chains = table.checked_add(buckets.checked_mul(4)?)?;
    let mut last = highest;
    // The lowest bit marks the end of a chain.
    while word(chains.checked_add((last - first).checked_mul(4)?)?, 4)? & 1 == 0 {
        last += 1;
    }
    Some(last + 1)
}

impl Section {
    fn plain(name: &'static str, kind: u32, addr: u64, size: u64) -> Section {
        Section { name, kind, addr, size, link: None, info: 0, entry: 0 }
    }
}

/// Appends the unpacked relocations and the section headers, and says so in the file header. Sections that do not lie in one
/// segment are left out.
fn append(
    bytes: &mut Vec<u8>,
    sections: &[Section],
    unpacked: &[u8],
    headers: &Headers,
    order: ByteOrder,
) -> Result<(), String> {
    let placed: Vec<(&Section, usize)> =
        sections.iter().filter_map(|s| Some((s, place(headers, s.addr, s.size)?))).collect();
    let mut names = vec![0u8];
    let name_of: Vec<usize> = placed
        .iter()
        .map(|(section, _)| {
            let at = names.len();
            names.extend_from_slice(section.name.as_bytes());
            names.push(0);
            at
        })
        .collect();
    let unpacked_name = names.len();
    names.extend_from_slice(b".rela.relr\0");
    let own_name = names.len();
    names.extend_from_slice(b".shstrtab\0");
    bytes.resize(bytes.len().next_multiple_of(8), 0);
    let relocations = bytes.len() as u64;
    bytes.extend_from_slice(unpacked);
    let strings = bytes.len();
    bytes.extend_from_slice(&names);
    bytes.resize(bytes.len().next_multiple_of(8), 0);
    let table = bytes.len() as u64;
    let index_of = |name: &str| placed.iter().position(|(s, _)| s.name == name).map_or(0, |n| n as u64 + 1);
    bytes.resize(bytes.len() + SECTION_HEADER as usize, 0);
    for ((section, offset), name) in placed.iter().zip(&name_of) {
        // SHF_ALLOC, and SHF_EXECINSTR for code.
        let flags = if section.name == ".text" { 2 | 4 } else { 2 };
        let link = section.link.map_or(0, index_of);
        let words = [*name as u64, section.kind.into(), flags, section.addr, *offset as u64, section.size, link];
        put_header(bytes, words, section.info.into(), section.entry, order);
    }
    let words = [unpacked_name as u64, kind::SHT_RELA.into(), 2, 0, relocations, unpacked.len() as u64, 0];
    put_header(bytes, words, 0, RELA, order);
    let words = [own_name as u64, kind::SHT_STRTAB.into(), 0, 0, strings as u64, names.len() as u64, 0];
    put_header(bytes, words, 0, 0, order);
    let count = placed.len() as u64 + 3;
    let mut head = Vec::new();
    put(&mut head, SECTION_HEADER, 2, order);
    put(&mut head, count, 2, order);
    put(&mut head, count - 1, 2, order);
    let mut at = Vec::new();
    put(&mut at, table, 8, order);
    for (place, value) in [(E_SHOFF, at), (E_SHENTSIZE, head)] {
        let field = bytes.get_mut(place..place + value.len()).ok_or("its header is not loaded")?;
        field.copy_from_slice(&value);
    }
    Ok(())
}

/// `Elf64_Shdr`: name, type, flags, address, offset, size, link; info, alignment, entry size.
fn put_header(bytes: &mut Vec<u8>, words: [u64; 7], info: u64, entry: u64, order: ByteOrder) {
    let [name, kind, flags, addr, offset, size, link] = words;
    for (value, width) in [
        (name, 4),
        (kind, 4),
        (flags, 8),
        (addr, 8),
        (offset, 8),
        (size, 8),
        (link, 4),
        (info, 4),
        (if kind == u64::from(kind::SHT_NOTE) { 4 } else { 8 }, 8),
        (entry, 8),
    ] {
        put(bytes, value, width, order);
    }
}

/// Appends an integer of `width` bytes.
fn put(bytes: &mut Vec<u8>, value: u64, width: usize, order: ByteOrder) {
    match order {
        ByteOrder::Little => bytes.extend_from_slice(&value.to_le_bytes()[..width]),
        ByteOrder::Big => bytes.extend_from_slice(&value.to_be_bytes()[8 - width..]),
    }
}
