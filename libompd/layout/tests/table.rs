//! The table LLVM's runtime exports, imitated by a compiled library whose bytes stand for memory.

#![allow(clippy::print_stderr, reason = "skips say why")]

use std::process::Command;
use std::sync::Arc;

use ompd_layout::{BitRange, Field, FieldSchema, Schema, StructSchema, table};
use ompd_process::elf::ElfFile;
use ompd_process::{Addr, Module, ReadFault, TargetKind};
use test_programs::FakeTarget;

const BIAS: u64 = 0x7f00_0000_0000;

const fn field(name: &'static str) -> FieldSchema {
    FieldSchema { name, meaning: "" }
}

const SCHEMA: Schema = Schema {
    family: "test",
    structs: &[
        StructSchema {
            name: "kmp_base_info",
            dwarf_names: &["kmp_base_info", "kmp_info_t"],
            meaning: "",
            fields: &[field("th_info"), field("th_team"), field("th_unfilled"), field("th_absent"), field("th.dotted")],
        },
        StructSchema { name: "kmp_team", dwarf_names: &[], meaning: "", fields: &[field("t")] },
        StructSchema {
            name: "kmp_tasking_flags",
            dwarf_names: &[],
            meaning: "",
            fields: &[field("final"), field("tasktype"), field("two_bits")],
        },
    ],
    globals: &[],
};

const FILLED: &str = r"
typedef unsigned long long u;
u ompd_access__kmp_base_info_t__th_info = 0, ompd_sizeof__kmp_base_info_t__th_info = 64;
u ompd_access__kmp_base_info_t__th_team = 64, ompd_sizeof__kmp_base_info_t__th_team = 8;
u ompd_access__kmp_base_info_t__th_unfilled = 72, ompd_sizeof__kmp_base_info_t__th_unfilled = 0;
u ompd_access__kmp_team_p__t = 0, ompd_sizeof__kmp_team_p__t = 2048;
u ompd_sizeof__kmp_info_t = 1408, ompd_sizeof__kmp_tasking_flags_t = 4;
u ompd_bitfield__kmp_tasking_flags_t__final = 2, ompd_bitfield__kmp_tasking_flags_t__tasktype = 0x10000;
u ompd_bitfield__kmp_tasking_flags_t__two_bits = 3;
";

/// The library loaded, with its variables in memory if they are to be read.
fn library(source: &str, readable: bool) -> Option<(FakeTarget, Module)> {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let (c, so) = (dir.path().join("table.c"), dir.path().join("table.so"));
    std::fs::write(&c, source).expect("writable");
    // Initialised to zero or not, everything goes to .data: the file's bytes stand for memory.
    let built =
        Command::new("cc").args(["-shared", "-fPIC", "-fno-zero-initialized-in-bss", "-o"]).arg(&so).arg(&c).status();
    if !built.is_ok_and(|s| s.success()) {
        eprintln!("skipped: cc does not work");
        return None;
    }
    let file = Arc::new(ElfFile::open(&so).expect("an ELF file"));
    let module = Module {
        path: "/lib/libomp.so".to_owned(),
        bias: BIAS,
        ranges: Vec::new(),
        build_id: None,
        file: Ok(Arc::clone(&file)),
    };
    let mut target = FakeTarget::new(TargetKind::Core, file.arch());
    if readable {
        let start = file.section_range(".data").expect("variables").start;
        target.memory.push((Addr(start).offset(BIAS), file.section(".data").expect("their bytes").into_owned()));
    }
    Some((target, module))
}

#[test]
fn a_filled_table_is_read_under_the_schema_names() {
    let Some((target, module)) = library(FILLED, true) else { return };
    let (facts, failed) = table::read(&target, &module, &SCHEMA);
    assert_eq!(failed, []);
    let plain = |offset, size| Some(Field { offset, size, bits: None });
    assert_eq!(facts.field("kmp_base_info", "th_info"), plain(0, 64));
    assert_eq!(facts.field("kmp_base_info", "th_team"), plain(64, 8));
    assert_eq!(facts.field("kmp_team", "t"), plain(0, 2048));
    let bit = |shift| Some(Field { offset: 0, size: 4, bits: Some(BitRange { shift, width: 1 }) });
    assert_eq!(facts.field("kmp_tasking_flags", "final"), bit(1));
    assert_eq!(facts.field("kmp_tasking_flags", "tasktype"), bit(16));
    for (of, absent) in [
        ("kmp_base_info", "th_unfilled"),
        ("kmp_base_info", "th_absent"),
        ("kmp_base_info", "th.dotted"),
        ("kmp_tasking_flags", "two_bits"),
    ] {
        assert_eq!(facts.field(of, absent), None, "{absent}");
    }
    assert_eq!(facts.sizes.get("kmp_base_info"), Some(&1408));
    assert_eq!(facts.sizes.get("kmp_tasking_flags"), Some(&4));
}

#[test]
fn before_the_runtime_started_there_are_no_facts() {
    let names: Vec<&str> =
        FILLED.split(|c: char| !(c.is_alphanumeric() || c == '_')).filter(|w| w.starts_with("ompd_")).collect();
    assert!(names.len() > 10);
    let source: String = names.iter().map(|n| format!("unsigned long long {n} = 0;\n")).collect();
    let Some((target, module)) = library(&source, true) else { return };
    let (facts, failed) = table::read(&target, &module, &SCHEMA);
    assert_eq!(failed, []);
    assert!(facts.is_empty(), "{facts:?}");
}

#[test]
fn reads_that_fail_are_reported_and_give_no_zero() {
    let Some((target, module)) = library(FILLED, false) else { return };
    let (facts, failed) = table::read(&target, &module, &SCHEMA);
    assert!(facts.is_empty());
    assert!(!failed.is_empty() && failed.iter().all(|f| f.why == ReadFault::Unmapped && f.len == 8));
}
