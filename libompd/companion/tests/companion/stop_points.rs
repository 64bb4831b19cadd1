//! The stop points of OMPD, as gdb gets to them by their names.

use std::io::Write as _;
use std::path::Path;
use std::process::Command;

use ompt_record::block::{STOPS_LIBRARY, Stop};
use test_programs::{Skip, succeeds};

use crate::common::{answers, by_libraries, libraries, program, start};

/// What the user asks for stop points by.
const ASKED: (&str, &str) = ("OMP_DEBUG", "enabled");

/// libomp 14 and 19, which have no stop points, and libiomp5, which has.
fn runtimes() -> Vec<(tempfile::TempDir, String)> {
    let names = ["/llvm-14/lib/libomp.so.5", "/libomp5-19/libomp.so.5", "/runtimes/libiomp5.so"];
    // The first is in the system, the others are fetched.
    let is_wanted = |what: &str| names.iter().any(|name| what.ends_with(name)) || what.contains("/llvm-14/");
    libraries().into_iter().filter(|(_, what)| is_wanted(what)).collect()
}

/// Whether the library with the stop points is in a process.
fn has_library(pid: i32) -> bool {
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).expect("its mappings");
    maps.contains(STOPS_LIBRARY)
}

#[test]
fn stop_points_are_there_only_where_they_are_asked_for_and_the_runtime_has_none() {
    let Some(program) = program("stop_points", &["-fopenmp-version=50"]) else { return };
    for (library, what) in runtimes() {
        let [quiet, asked] = [&[][..], &[ASKED]].map(|variables| {
            let running = start(&program, library.path(), &what, variables)?;
            let found = (has_library(running.pid()), answers(running.pid()));
            running.go_on();
            Some(found)
        });
        let (Some(quiet), Some(asked)) = (quiet, asked) else { continue };
        assert!(!quiet.0, "{what}");
        assert_eq!(asked.0, !what.contains("libiomp5"), "{what}");
        assert_eq!(quiet.1, asked.1, "{what}: the same callbacks");
    }
}

/// Hits of breakpoints at the names of the stop points, and what the program says at its end.
fn hits(program: &Path, library: &Path, input: &Path) -> ([u32; 6], String) {
    let mut gdb = Command::new("gdb");
    gdb.args(["-nx", "-batch", "-ex", "set breakpoint pending on"]);
    for (number, stop) in Stop::ALL.iter().enumerate() {
        let name = stop.symbol().to_str().expect("a name");
        gdb.args(["-ex", &format!("break {name}"), "-ex", &format!("ignore {} 100000", number + 1)]);
    }
    gdb.args(["-ex", &format!("run <{}", input.display()), "-ex", "info breakpoints"]).arg(program);
    let (name, companion) = by_libraries();
    gdb.env("LD_LIBRARY_PATH", library).env(name, companion).env(ASKED.0, ASKED.1).env("OMP_CANCELLATION", "true");
    let done = gdb.output().expect("gdb runs");
    let said = String::from_utf8_lossy(&done.stdout).into_owned();
    let mut found = [0; 6];
    let mut current = 0;
    for words in said.lines().map(|line| line.split_whitespace().collect::<Vec<_>>()) {
        match words[..] {
            [number, "breakpoint", "keep", "y", at, ..] => {
                assert_ne!(at, "<MULTIPLE>", "{said}");
                current = number.parse::<usize>().expect("a number") - 1;
            }
            ["breakpoint", "already", "hit", count, ..] => found[current] = count.parse().expect("a number"),
            _ => {}
        }
    }
    (found, said)
}

#[test]
fn gdb_stops_at_each_region_task_and_thread_by_the_names_of_ompd() {
    if !succeeds(Command::new("gdb").arg("--version")) {
        Skip::because("there is no gdb: `apt-get install gdb`").show();
        return;
    }
    let Some(program) = program("stop_points", &["-fopenmp-version=50"]) else { return };
    let mut input = tempfile::NamedTempFile::new().expect("a file");
    input.write_all(b"x").expect("written");
    for (library, what) in runtimes() {
        let (found, said) = hits(&program.path, library.path(), input.path());
        let Some(counts) =
            said.lines().find_map(|line| line.strip_prefix("ready").unwrap_or(line).strip_prefix("regions="))
        else {
            Skip::because(format!("{what}: the program does not run on it")).show();
            continue;
        };
        let numbers: Vec<u32> = counts.split(['=', ' ']).filter_map(|word| word.parse().ok()).collect();
        let [regions, tasks, discarded, threads] = numbers[..] else { panic!("{said}") };
        assert!(regions == 3 && tasks == 9 && discarded == 0 && threads == 3, "{said}");
        // libiomp5 passes through its own once for each part of an untied task, and when no task ends.
        let of_tasks = if what.contains("libiomp5") { [found[2], found[3]] } else { [tasks; 2] };
        let [begins, ends] = of_tasks;
        assert_eq!(found, [regions, regions, begins, ends, threads, threads], "{what}: {said}");
    }
}
