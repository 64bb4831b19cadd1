//! Objects that a process has registered for code that it has made: read, placed, and written to mislead.

use std::sync::Arc;

use ompd_process::jit::JIT_CODE;
use ompd_process::{Addr, Arch, ElfFile, JitObjects, Module, TargetKind};
use proptest::prelude::*;
use test_programs::{FakeTarget, elf};

/// Where the module with the list is loaded, and where in it the list's head is.
const BIAS: u64 = 0x4000_0000;
const HEAD: u64 = 0x2000;
/// Where entries and objects lie.
const ENTRIES: u64 = 0x5000_0000;
const OBJECTS: u64 = 0x6000_0000;
/// Where code was loaded.
const CODE: u64 = 0x7000_0000;
const LENGTH: u64 = 0x40;

/// A symbol as in `.symtab`: name, section, value and size.
fn symbol(name: u32, section: u16, value: u64, size: u64) -> Vec<u8> {
    // STB_GLOBAL, STT_FUNC.
    [&name.to_le_bytes()[..], &[0x12, 0], &section.to_le_bytes(), &value.to_le_bytes(), &size.to_le_bytes()].concat()
}

/// Words of a section header that tests change.
const FLAGS: usize = 8;
const ADDRESS: usize = 16;
const SIZE: usize = 32;

/// Overwrites a word of a section header.
fn set(object: &mut [u8], section: usize, field: usize, value: u64) {
    let table = u64::from_le_bytes(object[40..48].try_into().expect("eight bytes")) as usize;
    object[table + 64 * section + field..][..8].copy_from_slice(&value.to_le_bytes());
}

/// A relocatable object with one function, `made`, 8 bytes into the code at `code`. The object's own copy of the code is
/// empty.
fn object(code: u64) -> Vec<u8> {
    let symbols = [symbol(0, 0, 0, 0), symbol(1, 1, 8, 16), symbol(6, 3, 0, 4)].concat();
    let text = vec![0; LENGTH as usize];
    let sections: [(&str, u64, &[u8]); 4] =
        [(".text", code, &text), (".symtab", 0, &symbols), (".data", 0, &[0; 8]), (".strtab", 0, b"\0made\0lost\0")];
    let mut object = elf(&sections);
    // ET_REL; SHF_ALLOC and SHF_EXECINSTR.
    object[16] = 1;
    set(&mut object, 1, FLAGS, 6);
    object
}

/// An entry of the list.
fn entry(next: u64, object: u64, size: u64) -> Vec<u8> {
    [next, 0, object, size].into_iter().flat_map(u64::to_le_bytes).collect()
}

/// A process whose list begins with an entry at [`ENTRIES`].
fn process() -> FakeTarget {
    let mut symbols = [symbol(0, 0, 0, 0), symbol(1, 1, HEAD, 24)].concat();
    // STB_LOCAL, STT_OBJECT.
    symbols[24 + 4] = 1;
    let sections: [(&str, u64, &[u8]); 3] =
        [(".data", 0x1000, &[0; 16]), (".symtab", 0, &symbols), (".strtab", 0, b"\0__jit_debug_descriptor\0")];
    let file = ElfFile::from_bytes("/nowhere/compiler", elf(&sections)).expect("an ELF file");
    let mut target = FakeTarget::new(TargetKind::Core, Arch::X86_64);
    target.modules.push(Module {
        path: "/nowhere/compiler".to_owned(),
        bias: BIAS,
        ranges: std::iter::once(BIAS..BIAS + 0x1_0000).collect(),
        build_id: None,
        file: Ok(Arc::new(file)),
    });
    let head = [&1u32.to_le_bytes()[..], &[0; 12], &ENTRIES.to_le_bytes()].concat();
    target.memory.push((Addr(BIAS + HEAD), head));
    target
}

/// A process with these objects in its list; their code is in memory.
fn with(objects: &[Vec<u8>]) -> FakeTarget {
    let mut target = process();
    for (n, object) in (0..).zip(objects) {
        let (own, at) = (ENTRIES + 32 * n, OBJECTS + 0x10_0000 * n);
        let next = if n as usize + 1 == objects.len() { 0 } else { own + 32 };
        target.memory.push((Addr(own), entry(next, at, object.len() as u64)));
        target.memory.push((Addr(at), object.clone()));
    }
    target.memory.push((Addr(CODE), (0..0x1000).map(|n| n as u8).collect()));
    target
}

#[test]
fn functions_have_the_addresses_and_the_code_that_they_run_at() {
    let target = with(&[object(CODE), object(CODE + 0x100)]);
    let found = JitObjects::read(&target);
    assert_eq!((found.len(), found.at(Addr(CODE - 1)), found.at(Addr(CODE + LENGTH))), (2, None, None));
    let index = found.at(Addr(CODE + 0x108)).expect("code of an object");
    let module = found.module(&target, index).expect("the object");
    assert_eq!((module.name(), module.bias, module.build_id.is_none()), (JIT_CODE, 0, true));
    let (symbol, distance) = module.symbol_at(Addr(CODE + 0x10a)).expect("a symbol");
    assert_eq!((symbol.name.as_str(), symbol.addr, distance), ("made", Addr(CODE + 0x108), 2));
    let file = module.file.expect("it can be used");
    assert_eq!(file.bytes_at(CODE + 0x108, 4), Some(&[8, 9, 10, 11][..]), "the bytes are those in memory");
    assert_eq!(file.function_range(CODE + 0x109), Some(CODE + 0x108..CODE + 0x118));
    assert!(file.is_jit() && file.symbol("lost").is_none(), "its section was not loaded");
    assert_eq!(file.debug_search(), [""; 0], "no file is looked for");
}

#[test]
fn code_that_cannot_be_read_is_absent() {
    let mut target = with(&[object(CODE)]);
    target.memory.retain(|(at, _)| at.0 != CODE);
    let found = JitObjects::read(&target);
    let module = found.module(&target, 0).expect("the object");
    let file = module.file.expect("it can be used");
    assert!(file.bytes_at(CODE, 4).is_none() && file.section(".text").is_none());
    assert!(file.symbol("made").is_some());
}

#[test]
fn object_of_another_entry_by_now_is_not_used() {
    let mut target = with(&[object(CODE)]);
    let found = JitObjects::read(&target);
    target.memory.retain(|(at, _)| at.0 != ENTRIES);
    assert!(found.module(&target, 0).is_some_and(|module| module.file.is_err()));
}

#[test]
fn processes_without_a_list_have_no_objects() {
    let mut target = with(&[object(CODE)]);
    target.modules.clear();
    assert!(JitObjects::read(&target).is_empty());
    let mut target = with(&[object(CODE)]);
    target.memory[0].1[0] = 2;
    assert!(JitObjects::read(&target).is_empty(), "a version that is not known");
}

#[test]
fn list_that_is_a_circle_ends() {
    let mut target = process();
    for (n, next) in [(0, ENTRIES + 32), (1, ENTRIES)] {
        target.memory.push((Addr(ENTRIES + 32 * n), entry(next, OBJECTS, object(CODE).len() as u64)));
    }
    target.memory.push((Addr(OBJECTS), object(CODE)));
    let found = JitObjects::read(&target);
    assert_eq!((found.len(), found.at(Addr(CODE))), (2, None), "both claim the code");
}

#[test]
fn long_list_is_cut() {
    let mut target = process();
    let entries: Vec<u8> = (1..100_000).flat_map(|n| entry(ENTRIES + 32 * n, OBJECTS, 0)).collect();
    target.memory.push((Addr(ENTRIES), entries));
    assert!(JitObjects::read(&target).is_empty());
}

#[test]
fn sizes_that_nothing_has_do_no_harm() {
    for size in [0, 1, 63, u64::MAX, 1 << 40, 16 << 20, i64::MAX as u64] {
        let mut target = process();
        target.memory.push((Addr(ENTRIES), entry(ENTRIES + 32, OBJECTS, size)));
        target.memory.push((Addr(ENTRIES + 32), entry(0, OBJECTS + 0x10_0000, object(CODE).len() as u64)));
        target.memory.push((Addr(OBJECTS), vec![0x7f; 64]));
        target.memory.push((Addr(OBJECTS + 0x10_0000), object(CODE)));
        assert_eq!(JitObjects::read(&target).len(), 1, "{size:#x}: the next one is read");
    }
}

#[test]
fn sections_that_overlap_are_not_believed() {
    let mut overlapping = object(CODE);
    set(&mut overlapping, 3, FLAGS, 2);
    set(&mut overlapping, 3, ADDRESS, CODE + LENGTH - 1);
    assert!(JitObjects::read(&with(&[overlapping])).is_empty());
    // Of two objects that claim the same code neither counts, and others do.
    let found = JitObjects::read(&with(&[object(CODE), object(CODE + LENGTH - 1), object(CODE + 0x200)]));
    assert_eq!(
        (found.at(Addr(CODE)), found.at(Addr(CODE + LENGTH)), found.at(Addr(CODE + 0x200))),
        (None, None, Some(2))
    );
}

#[test]
fn section_as_long_as_memory_is_not_read() {
    for size in [u64::MAX - CODE, u64::MAX, 1 << 40] {
        let mut huge = object(CODE);
        set(&mut huge, 1, SIZE, size);
        let target = with(&[huge]);
        let found = JitObjects::read(&target);
        for index in 0..found.len() {
            assert!(found.module(&target, index).is_some_and(|module| module.file.is_err()));
        }
    }
}

#[test]
fn object_for_another_machine_is_left_out() {
    let mut foreign = object(CODE);
    foreign[18] = 183;
    assert!(JitObjects::read(&with(&[foreign])).is_empty());
}

#[test]
fn object_that_is_cut_off_anywhere_does_no_harm() {
    let whole = object(CODE);
    for length in 0..whole.len() {
        use_all(&with(&[whole[..length].to_vec()]));
    }
}

/// Reads all that there is of all objects.
fn use_all(target: &FakeTarget) {
    let found = JitObjects::read(target);
    for index in 0..found.len() {
        let Some(module) = found.module(target, index) else { continue };
        let _ = (module.symbol_at(Addr(CODE + 9)), module.symbol("made"));
        if let Ok(file) = module.file {
            let _ =
                (file.function_range(CODE + 9), file.bytes_at(CODE, 16), file.section(".eh_frame"), file.relocations());
        }
    }
}

proptest! {
    #[test]
    fn damaged_object_does_no_harm(damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8)) {
        let mut damaged = object(CODE);
        for (at, byte) in damage {
            let at = at.index(damaged.len());
            damaged[at] = byte;
        }
        use_all(&with(&[damaged]));
    }
}
