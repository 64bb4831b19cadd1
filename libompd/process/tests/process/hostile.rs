//! Files written to wear a reader out: a few bytes that refer to the same bytes over and over.

use ompd_process::{Core, ElfFile, OpenOptions, Target};

use crate::support;

// Types of sections and segments (gABI, chapters 4 and 5).
const SYMTAB: u32 = 2;
const STRTAB: u32 = 3;
const RELA: u32 = 4;
const DYNAMIC: u32 = 6;
const DYNSYM: u32 = 11;
const LOAD: u32 = 1;
const NOTE: u32 = 4;

/// A little-endian 64-bit ELF file for x86-64. Sections are `(type, index of the one it refers to, content)` and are
/// counted from 1. Segments are `(type, offset, address, bytes)`; offset `None` is that of the first section.
fn elf(kind: u16, sections: &[(u32, u32, Vec<u8>)], segments: &[(u32, Option<u64>, u64, u64)]) -> Vec<u8> {
    let content = 64 + 56 * segments.len() as u64;
    let number = if sections.is_empty() { 0 } else { sections.len() as u16 + 1 };
    let table = content + sections.iter().map(|s| s.2.len() as u64).sum::<u64>();
    let mut out = b"\x7fELF\x02\x01\x01".to_vec();
    out.resize(16, 0);
    out.extend([kind, 62].iter().flat_map(|v| v.to_le_bytes()));
    out.extend(1u32.to_le_bytes());
    out.extend([0, 64, if number > 0 { table } else { 0 }].iter().flat_map(|v: &u64| v.to_le_bytes()));
    out.extend(0u32.to_le_bytes());
    // The first section, always a string table, has the sections' names as well: they are all empty.
    let numbers = [64, 56, segments.len() as u16, 64, number, number.min(1)];
    out.extend(numbers.iter().flat_map(|v| v.to_le_bytes()));
    for (kind, offset, at, bytes) in segments {
        out.extend([*kind, 5].iter().flat_map(|v| v.to_le_bytes()));
        out.extend([offset.unwrap_or(content), *at, 0, *bytes, *bytes, 1].iter().flat_map(|v| v.to_le_bytes()));
    }
    let mut headers = vec![0; 64];
    let mut at = content;
    for (kind, link, bytes) in sections {
        let entry = match *kind {
            SYMTAB | DYNSYM | RELA => 24,
            DYNAMIC => 16,
            _ => 0,
        };
        headers.extend([0, *kind].iter().flat_map(|v: &u32| v.to_le_bytes()));
        // Allocated; no address.
        headers.extend([2, 0, at, bytes.len() as u64].iter().flat_map(|v: &u64| v.to_le_bytes()));
        // First global symbol: 1.
        headers.extend([*link, 1].iter().flat_map(|v| v.to_le_bytes()));
        headers.extend([1, entry].iter().flat_map(|v: &u64| v.to_le_bytes()));
        at += bytes.len() as u64;
        out.extend(bytes);
    }
    out.extend(&headers[..64 * usize::from(number)]);
    out
}

fn open(bytes: Vec<u8>) -> ElfFile {
    ElfFile::from_bytes("/nowhere/hostile", bytes).expect("an ELF file")
}

/// A string table with one name of `length` bytes at 1.
fn strings(length: usize) -> Vec<u8> {
    let mut out = vec![b'x'; length + 2];
    (out[0], out[length + 1]) = (0, 0);
    out
}

/// A symbol table of `count` functions, all with the name at 1.
fn symbols(count: u64) -> Vec<u8> {
    let mut out = vec![0; 24];
    for n in 0..count {
        out.extend([1, 0, 0, 0, 0x12, 0, 1, 0]);
        out.extend([0x1000 + n, 1].iter().flat_map(|v| v.to_le_bytes()));
    }
    out
}

#[test]
fn segments_end_with_the_file() {
    let bytes = elf(3, &[(STRTAB, 0, vec![0xc3; 100])], &[(LOAD, None, 0x1000, u64::MAX / 2)]);
    let size = bytes.len() as u64;
    let file = open(bytes);
    assert_eq!(file.executable_ranges().first(), Some(&(0x1000..0x1000 + size - 120)));
    assert_eq!(file.bytes_at(0x1000, 100), Some(&[0xc3; 100][..]));
    assert_eq!(file.bytes_at(0x1000, size), None);

    // The whole file, many times.
    let segments: Vec<_> = (0..3000).map(|n| (LOAD, Some(0), n << 32, 1 << 20)).collect();
    let bytes = elf(3, &[], &segments);
    let size = bytes.len() as u64;
    let shown: u64 = open(bytes).executable_ranges().iter().map(|r| r.end - r.start).sum();
    assert!((size..=4 * size).contains(&shown), "{shown} of {size}");
}

#[test]
fn one_long_name_is_not_copied_for_every_symbol() {
    for (length, count, kept) in [(50, 20_000, 20_000), (1 << 20, 20_000, 0)] {
        let table = symbols(count);
        let file = open(elf(3, &[(STRTAB, 0, strings(length)), (SYMTAB, 1, table.clone()), (DYNSYM, 1, table)], &[]));
        let name = "x".repeat(length);
        assert_eq!(file.symbols_with_prefix("x").count(), kept, "names of {length} bytes");
        assert_eq!(file.exported_names().count(), kept, "names of {length} bytes");
        assert_eq!(file.symbol(&name).is_some(), kept > 0, "names of {length} bytes");
    }
}

#[test]
fn one_long_name_is_not_copied_for_every_relocation() {
    for (length, kept) in [(50, 20_000), (1 << 20, 0)] {
        let mut table = Vec::new();
        for n in 0..20_000u64 {
            // R_X86_64_64 of symbol 1
            table.extend([8 * n, 1 << 32 | 1, 0].iter().flat_map(|v| v.to_le_bytes()));
        }
        let file = open(elf(3, &[(STRTAB, 0, strings(length)), (DYNSYM, 1, symbols(1)), (RELA, 2, table)], &[]));
        assert_eq!(file.relocations().len(), kept, "names of {length} bytes");
    }
}

#[test]
fn one_long_name_is_not_copied_for_every_needed_library() {
    for (length, all) in [(50, true), (1 << 20, false)] {
        // DT_NEEDED
        let table = [1u64, 1].repeat(20_000).iter().flat_map(|v| v.to_le_bytes()).collect();
        let bytes = elf(3, &[(STRTAB, 0, strings(length)), (DYNAMIC, 1, table)], &[]);
        let size = bytes.len();
        let needed = open(bytes).needed();
        assert_eq!(needed.len() == 20_000, all, "{} names of {length} bytes", needed.len());
        assert!(needed.iter().map(String::len).sum::<usize>() <= 8 * size);
    }
}

#[test]
fn a_core_has_no_more_threads_than_bytes() {
    let mut notes = Vec::new();
    for _ in 0..100 {
        notes.extend([5u32, 336, 1].iter().flat_map(|v| v.to_le_bytes()));
        notes.extend(b"CORE\0\0\0\0");
        notes.extend([0; 336]);
    }
    let count = notes.len() as u64;
    let segments = [(NOTE, None, 0, count)].repeat(2000);
    let bytes = elf(4, &[(STRTAB, 0, notes)], &segments);
    let path = support::scratch().join("hostile-notes");
    std::fs::write(&path, &bytes).expect("write");
    let core = Core::open(&path, &OpenOptions::default()).expect("a core");
    assert!((100..=bytes.len() / 336).contains(&core.threads().len()), "{} threads", core.threads().len());
    assert!(core.issues().iter().any(|i| i.contains("more notes than bytes")), "{:?}", core.issues());
}

#[test]
fn files_mapped_on_each_other_are_one_image() {
    const AT: u64 = 0x40_0000;
    let mut notes = Vec::new();
    let mut note = |kind: u32, content: &[u8]| {
        notes.extend([5, content.len() as u32, kind].iter().flat_map(|v| v.to_le_bytes()));
        notes.extend(b"CORE\0\0\0\0");
        notes.extend(content);
        notes.resize(notes.len().next_multiple_of(4), 0);
    };
    note(1, &[0; 336]);
    let count = 20_000;
    let mut files: Vec<u8> = [count, 4096].iter().flat_map(|v: &u64| v.to_le_bytes()).collect();
    for n in 0..count {
        files.extend([AT, AT + 4096 + n, 0].iter().flat_map(|v| v.to_le_bytes()));
    }
    files.extend(b"/nowhere/program\0".repeat(count as usize));
    note(0x4649_4c45, &files);
    let mut page = elf(3, &[], &[(LOAD, Some(0), 0, 4096); 70]);
    page.resize(4096, 0);
    let (notes_length, page_at) = (notes.len() as u64, 64 + 2 * 56 + notes.len() as u64);
    let segments = [(NOTE, None, 0, notes_length), (LOAD, Some(page_at), AT, 4096)];
    let path = support::scratch().join("hostile-mappings");
    std::fs::write(&path, elf(4, &[(STRTAB, 0, notes), (STRTAB, 0, page)], &segments)).expect("write");
    let core = Core::open(&path, &OpenOptions::default()).expect("a core");
    assert_eq!(core.modules().len(), 1, "{:?}", core.modules());
    assert!(core.issues().iter().any(|i| i.contains("19999 mapped files lie on others")), "{:?}", core.issues());
}
