//! A program with a tool inside that compares, at each event, what it is told with the OpenMP API and the stack.

use std::collections::BTreeMap;
use std::process::Command;

use test_programs::Opt;

use crate::common::{preload, program};

/// What the program prints.
#[derive(Debug, PartialEq, Eq)]
struct Printed {
    sum: String,
    /// What the program did, and what its tool was told.
    counts: BTreeMap<String, (u64, u64)>,
    checks: u64,
    wrong: Vec<String>,
}

fn run(path: &std::path::Path, variables: &[(&str, &str)]) -> Printed {
    let mut command = Command::new(path);
    // cargo names folders in which another build of the library may be.
    command.env_remove("OMP_NUM_THREADS").env_remove("LD_LIBRARY_PATH").envs(variables.iter().copied());
    let output = command.output().expect("the program starts");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{variables:?}: {:?}\n{text}{errors}", output.status);
    let mut printed = Printed { sum: String::new(), counts: BTreeMap::new(), checks: 0, wrong: Vec::new() };
    for line in text.lines() {
        let number = |text: &str| text.parse::<u64>().expect("a number");
        match line.split(' ').collect::<Vec<_>>()[..] {
            ["sum", sum] => printed.sum = sum.to_owned(),
            ["checks", checks] => printed.checks = number(checks),
            ["count", name, program, tool] => {
                printed.counts.insert(name.to_owned(), (number(program), number(tool)));
            }
            _ => printed.wrong.push(line.to_owned()),
        }
    }
    printed
}

#[test]
fn a_tool_is_told_what_the_program_does() {
    let preload = preload();
    for opt in [Opt::O0, Opt::O2] {
        let Some(program) = program("tool_witness", opt, &["-rdynamic"]) else { return };
        let alone = run(&program.path, &[]);
        for cancellation in ["false", "true"] {
            let variables = [("LD_PRELOAD", &*preload), ("OMP_CANCELLATION", cancellation)];
            let printed = run(&program.path, &variables);
            let what = format!("{opt:?}, cancellation {cancellation}");
            assert_eq!(printed.wrong, Vec::<String>::new(), "{what}");
            let differs = |(_, (program, tool)): &(&String, &(u64, u64))| program != tool;
            let different: Vec<_> = printed.counts.iter().filter(differs).collect();
            assert!(different.is_empty(), "{what}: the program did, and its tool was told: {different:?}");
            assert!(printed.checks > 2000, "{what}: {printed:?}");
            // Each kind of event occurs, cancellation where it is on.
            let none = printed.counts.iter().filter(|(name, (did, _))| *did == 0 && *name != "cancelled");
            assert_eq!(none.count(), 0, "{what}: {printed:?}");
            assert_eq!(printed.counts["cancelled"].0 > 0, cancellation == "true", "{what}");
            assert_eq!(printed.sum, alone.sum, "{what}: the result of the program");
        }
    }
}

#[test]
fn without_a_tool_the_program_is_as_it_was() {
    let preload = preload();
    let Some(program) = program("tool_witness", Opt::O2, &["-rdynamic"]) else { return };
    let alone = run(&program.path, &[]);
    let off = run(&program.path, &[("LD_PRELOAD", &preload), ("OMP_TOOL", "disabled")]);
    assert_eq!(off.sum, alone.sum);
    assert!(off.counts.values().all(|(_, tool)| *tool == 0), "{off:?}");
    assert_eq!((off.wrong, alone.wrong), (Vec::new(), Vec::new()));
}

/// A linker drops libgomp if nothing refers to it but through this library. Then it is loaded.
#[test]
fn linked_in_front_of_libgomp_it_needs_no_preload() {
    let library = crate::common::library();
    let folder = library.parent().expect("a folder").display();
    let flags =
        ["-rdynamic", &format!("-L{folder}"), "-Wl,--no-as-needed", "-lgomp_ompt", &format!("-Wl,-rpath,{folder}")];
    let Some(program) = program("tool_witness", Opt::O0, &flags) else { return };
    let printed = run(&program.path, &[]);
    assert_eq!(printed.wrong, Vec::<String>::new());
    assert!(printed.counts["regions"].1 > 20 && printed.checks > 2000, "{printed:?}");
}

#[test]
fn the_search_for_a_tool_is_shown() {
    let preload = preload();
    let Some(program) = program("tool_witness", Opt::O2, &[]) else { return };
    let output = Command::new(&program.path)
        .envs([("LD_PRELOAD", &*preload), ("OMP_TOOL_VERBOSE_INIT", "stderr")])
        .env("OMP_TOOL_LIBRARIES", "/nowhere/tool.so")
        .output()
        .expect("the program starts");
    let text = String::from_utf8_lossy(&output.stderr);
    // Its functions are not exported, so it has no tool.
    assert!(text.contains("ompt_start_tool in the address space: none"), "{text}");
    assert!(text.contains("/nowhere/tool.so") && text.contains("cannot be loaded"), "{text}");
    assert!(text.contains("no tool was started"), "{text}");
}
