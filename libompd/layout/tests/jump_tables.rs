//! Where the tables of jumps lead that compilers make of `switch`: in code by hand, and in that of compilers.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use ompd_layout::code::{self, Whose};
use ompd_process::ElfFile;
use test_programs::Skip;

const BEGIN: &str = "\
    .intel_syntax noprefix
    .text
    .globl choose
    .type choose, @function
choose:
    cmp edi, 2
    ja other
";
const CASES: &str = "
case_a:
    ret
case_b:
    nop
case_c:
    ret
other:
    ret
    .size choose, . - choose
    .type neighbour, @function
neighbour:
    nop
    ret
    .size neighbour, . - neighbour
";
/// Distances from the table, behind which another function's table lies.
const DISTANCES: &str = "\
    .section .rodata
    .balign 4
table:
    .long case_a - table, case_b - table, case_c - table
    .long neighbour - table, case_a - table + 1, 0x70000000
";
const ADDRESSES: &str = "\
    .section .rodata
    .balign 8
table:
    .quad case_a, case_b, case_c, 0
";

fn link(directory: &Path, name: &str, text: &str, compiler: &str, options: &[&str]) -> Option<ElfFile> {
    let (source, file) = (directory.join(name), directory.join("linked"));
    std::fs::write(&source, text).expect("it is written");
    let mut command = Command::new(compiler);
    let out = command.args(options).args(["-nostdlib", "-o"]).arg(&file).arg(&source).output().ok()?;
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    Some(ElfFile::open(&file).expect("it can be read"))
}

/// Where the tables of `choose` lead.
fn targets(file: &ElfFile) -> Option<BTreeSet<u64>> {
    let begin = file.symbol("choose").expect("the function").addr.0;
    let function = file.function_range(begin).expect("its extent");
    let whose = |addr| if function.contains(&addr) { Whose::Function } else { Whose::Another };
    code::table_targets(file, function.clone(), &whose)
}

fn by_hand(jump: &str, table: &str, options: &[&str]) -> Option<(BTreeSet<u64>, BTreeSet<u64>)> {
    let directory = tempfile::tempdir().expect("a directory");
    let file = link(directory.path(), "hand.s", &format!("{BEGIN}{jump}{CASES}{table}"), "gcc", options)?;
    let cases = ["case_a", "case_b", "case_c"].map(|name| file.symbol(name).expect("it is there").addr.0);
    Some((targets(&file)?, cases.into()))
}

#[test]
fn tables_are_read_whatever_the_jump_looks_like() {
    if cfg!(not(target_arch = "x86_64")) {
        return;
    }
    let shared: &[&str] = &["-shared"];
    let fixed: &[&str] = &["-static", "-no-pie", "-Wl,-e,choose"];
    for (jump, table, options) in [
        (
            "mov edi, edi\nlea rdx, table[rip]\nmovsxd rax, [rdx + rdi*4]\nadd rax, rdx\nnotrack jmp rax",
            DISTANCES,
            shared,
        ),
        ("lea rdx, table[rip]\nmovsxd rdi, [rdx + rdi*4]\nadd rdx, rdi\njmp rdx", DISTANCES, shared),
        (
            "mov eax, edi\nlea rdx, [rax*4]\nlea rax, table[rip]\nmov eax, [rdx + rax]\ncdqe\nlea rdx, table[rip]\nadd rax, rdx\njmp rax",
            DISTANCES,
            shared,
        ),
        // The address of the table comes from before a loop.
        (
            "lea rdx, table[rip]\nagain: dec edi\njs again\nmovsxd rax, [rdx + rdi*4]\nadd rax, rdx\njmp rax",
            DISTANCES,
            shared,
        ),
        ("mov edi, edi\njmp [table + rdi*8]", ADDRESSES, fixed),
        ("mov eax, edi\nmov rax, [table + rax*8]\njmp rax", ADDRESSES, fixed),
    ] {
        let (found, cases) = by_hand(jump, table, options).unwrap_or_else(|| panic!("nothing is found: {jump}"));
        assert_eq!(found, cases, "{jump}");
    }
}

#[test]
fn a_jump_that_is_none_through_a_table_may_lead_anywhere() {
    let shared: &[&str] = &["-shared"];
    for jump in [
        "lea rdx, table[rip]\njmp rdi",
        // To what was a table's entry, and is something else by now.
        "lea rdx, table[rip]\nmovsxd rax, [rdx + rdi*4]\nadd rax, rdx\nadd rax, rsi\njmp rax",
        // From a place that is not the table's: labels as values.
        "lea rdx, table[rip]\nlea rcx, case_a[rip]\nmovsxd rax, [rdx + rdi*4]\nadd rax, rcx\njmp rax",
        "lea rdx, table[rip]\nmovsxd rax, [rdx + rdi*4]\nmov rdx, rsi\nadd rax, rdx\njmp rax",
        // A call may change both.
        "lea rdx, table[rip]\nmovsxd rax, [rdx + rdi*4]\ncall case_a\nadd rax, rdx\njmp rax",
        "lea rdx, table[rip]\njmp [rdx + rdi*8]",
    ] {
        assert_eq!(by_hand(jump, DISTANCES, shared), None, "{jump}");
    }
    // One of two jumps suffices.
    let one = "lea rdx, table[rip]\nmovsxd rax, [rdx + rdi*4]\nadd rax, rdx\njmp rax\njmp rsi";
    assert_eq!(by_hand(one, DISTANCES, shared), None);
}

/// What is not known of an entry's function makes all unknown: it might be a part of the one that jumps.
#[test]
fn an_entry_that_leads_nobody_knows_where_is_no_end() {
    if cfg!(not(target_arch = "x86_64")) {
        return;
    }
    let jump = "lea rdx, table[rip]\nmovsxd rax, [rdx + rdi*4]\nadd rax, rdx\njmp rax";
    let directory = tempfile::tempdir().expect("a directory");
    let text = format!("{BEGIN}{jump}{CASES}{DISTANCES}");
    let Some(file) = link(directory.path(), "hand.s", &text, "gcc", &["-shared"]) else { return };
    let [begin, neighbour] = ["choose", "neighbour"].map(|name| file.symbol(name).expect("it is there").addr.0);
    let function = file.function_range(begin).expect("its extent");
    let found = |other: Whose| {
        let whose = |addr| if function.contains(&addr) { Whose::Function } else { other };
        code::table_targets(&file, function.clone(), &whose)
    };
    assert_eq!(found(Whose::Unknown), None);
    let with_part = found(Whose::Part).expect("targets");
    assert!(with_part.contains(&neighbour) && with_part.len() == 4, "{with_part:x?}");
}

/// Each case has a number of its own in its code. All numbers are found, and between two targets never more than one.
#[test]
fn every_case_of_a_switch_by_compilers_is_found() {
    if cfg!(not(target_arch = "x86_64")) {
        return;
    }
    // Compilers make neither a table of numbers of these cases, nor one instruction of two.
    let case = |n: u32| format!("case {n}: __asm__ volatile(\"mov $0x5a5a00{n:02x}, %%eax\" ::: \"eax\"); break;");
    let cases: Vec<String> = (0..12).map(case).collect();
    let source = format!("void choose(int n) {{ switch (n) {{ {} }} }}", cases.join("\n"));
    let mut tried = 0;
    for compiler in ["gcc", "clang-14"] {
        for optimized in ["-O0", "-O1", "-O2", "-O3", "-Os"] {
            for options in [&["-fPIC", "-shared"][..], &["-fno-pic", "-no-pie", "-static", "-Wl,-e,choose"]] {
                let directory = tempfile::tempdir().expect("a directory");
                let all = [options, &[optimized, "-fno-inline"]].concat();
                let Some(file) = link(directory.path(), "choose.c", &source, compiler, &all) else {
                    Skip::because(format!("{compiler} is not here")).show();
                    continue;
                };
                let begin = file.symbol("choose").expect("the function").addr.0;
                let function = file.function_range(begin).expect("its extent");
                let code = file.bytes_at(function.start, function.end - function.start).expect("its code");
                let found = targets(&file).unwrap_or_else(|| panic!("{compiler} {all:?}: no targets"));
                // From one target to the next lies the code of one case, with the number that only that one has.
                let ends = found.iter().skip(1).copied().chain([function.end]);
                let numbers = found.iter().zip(ends).map(|(from, to)| {
                    let part = &code[(from - function.start) as usize..(to - function.start) as usize];
                    (0..12_u32).filter(|n| part.windows(4).any(|four| *four == (0x5a5a_0000 + n).to_le_bytes())).count()
                });
                let numbers: Vec<usize> = numbers.collect();
                assert!(numbers.iter().all(|count| *count <= 1), "{compiler} {all:?}: {numbers:?} in {found:x?}");
                assert_eq!(numbers.iter().sum::<usize>(), 12, "{compiler} {all:?}: {numbers:?} in {found:x?}");
                tried += 1;
            }
        }
    }
    assert!(tried >= 10, "{tried} programs");
}
