//! The same twelve steps in gdb and in LLDB: what the library says is the same text.

use std::io::BufRead as _;

use debugger_plugin::lldb::{Lldb, LldbRelease, Server, lldbs};
use debugger_plugin::{Gdb, available, has_server};
use test_programs::{Env, Launch, Opt, Process, Runtime, Toolchain, await_all_blocked, build, gcore};

use crate::common::library;

/// Steps 2 to 6, in the process that hangs: gdb's commands, LLDB's, and whether all the text is the library's.
const LOOKING: [(&str, &str, bool); 5] = [
    ("openmp why", "openmp why", true),
    ("openmp threads", "openmp thread list", true),
    ("openmp thread 2.1", "openmp thread select 2.1", false),
    ("openmp bt", "openmp thread backtrace", true),
    ("openmp print -all mine", "openmp thread print -all mine", true),
];

/// Steps 7 to 10, once the process may continue.
const RUNNING: [(&str, &str); 7] = [
    ("openmp break parallel-begin", "openmp breakpoint set parallel-begin"),
    ("continue", "continue"),
    ("openmp delete", "openmp breakpoint delete"),
    ("openmp step", "openmp thread step"),
    ("openmp bt", "openmp thread backtrace"),
    ("openmp catch deadlock 0.05", "openmp catch deadlock 0.05"),
    ("detach", "detach"),
];

/// The program in its first hang: four threads, of which two read and two wait at a barrier.
fn hanging() -> Process {
    let program = build("steps", Toolchain::Gcc, Opt::O0, &[]).expect("the program builds");
    let mut process = Launch::new(&program, Runtime::Libgomp, Env::Settled).leading_group().spawn().expect("it starts");
    let mut line = String::new();
    for _ in 0..2 {
        process.stdout.read_line(&mut line).expect("its output");
    }
    assert_eq!(line, "ready\nready\n");
    await_all_blocked(pid(&process), 4, false).expect("it hangs");
    process
}

fn pid(process: &Process) -> i32 {
    i32::try_from(process.child.id()).expect("a process id")
}

fn end(mut process: Process) {
    process.child.kill().expect("it may be killed");
    process.child.wait().expect("it ends");
}

/// gdb at the width that LLDB has.
fn wide(gdb: Gdb) -> Gdb {
    gdb.first("set width 80")
}

fn lldb_wide(lldb: Lldb) -> Lldb {
    lldb.first("settings set term-width 80")
}

/// What is the same in both debuggers, of what they print. What they print by themselves is left out: frames, and stops.
fn of_the_library(text: &str) -> String {
    let is_own = |line: &&str| {
        let own = ["#", "frame #", "[", "Process ", "* thread", "-- Thread", "->", "Thread "];
        let begin = line.trim_start();
        let is_source = begin.starts_with(|first: char| first.is_ascii_digit()) && !begin.contains("  ");
        !own.iter().any(|one| begin.starts_with(one)) && !is_source
    };
    text.lines().filter(is_own).collect::<Vec<_>>().join("\n")
}

/// Numbers that differ from run to run become signs: thread ids by the word before them, and addresses by their length.
fn without_numbers(text: &str) -> String {
    let mut found = String::new();
    let mut digits = String::new();
    for one in text.chars().chain(['\n']) {
        if one.is_ascii_hexdigit() && (one.is_ascii_digit() || digits.starts_with("0x"))
            || (digits == "0" && one == 'x')
        {
            digits.push(one);
            continue;
        }
        let is_id = !digits.is_empty() && ["LWP ", "id ", "ids "].iter().any(|word| found.ends_with(word));
        found.push_str(if digits.len() > 2 || is_id { "N" } else { &digits });
        digits.clear();
        found.push(one);
    }
    found.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn has_both() -> bool {
    available().map_err(|reason| reason.show()).is_ok()
}

fn gdbs_side<T>(steps: &[(&'static str, &'static str, T)]) -> Vec<&'static str> {
    steps.iter().map(|(gdb, _, _)| *gdb).collect()
}

fn lldbs_side<T>(steps: &[(&'static str, &'static str, T)]) -> Vec<&'static str> {
    steps.iter().map(|(_, lldb, _)| *lldb).collect()
}

/// Both have printed the same, of one process or core.
fn same(lldb: &LldbRelease, what: &str, by_gdb: &[String], by_lldb: &[String]) {
    for ((command, _, whole), (gdb, own)) in LOOKING.iter().zip(by_gdb.iter().zip(by_lldb)) {
        let what = format!("{what}, LLDB {}, {command}", lldb.version);
        if *whole {
            assert_eq!(gdb, own, "{what}");
        } else {
            assert!(gdb.contains("thread 1 of 2 in team 2"), "{what}: {gdb}");
            let said = |text: &str| text.split_once("thread 1 of 2").map(|(_, behind)| behind.to_owned());
            assert_eq!(said(gdb), said(own), "{what}: {gdb}\n{own}");
        }
    }
}

#[test]
fn the_hang_attached_in_a_core_and_remote() {
    if !has_both() {
        return;
    }
    let process = hanging();
    let (pid, library) = (pid(&process), library());
    let number = process.child.id();
    let in_gdb =
        |remote: bool| wide(Gdb::process(&library, number, remote)).run(&gdbs_side(&LOOKING)).expect("gdb runs");
    let by_gdb = in_gdb(false);
    // A private variable has its own value in every member.
    for value in ["2.0  10", "2.1  11"] {
        assert!(by_gdb[4].contains(value), "{value}: {}", by_gdb[4]);
    }
    assert!(by_gdb[0].contains("SUSPECT") && by_gdb[3].contains("#pragma omp parallel in inner"), "{by_gdb:#?}");
    for lldb in lldbs() {
        let attached = Lldb::new(&lldb, &library).first(format!("process attach --pid {pid}"));
        let by_lldb = lldb_wide(attached).run(&lldbs_side(&LOOKING)).expect("LLDB runs");
        same(&lldb, "attached", &by_gdb, &by_lldb);
        match Server::attached(&lldb, pid).expect("a server") {
            Ok(server) => {
                let remote = lldb_wide(Lldb::remote(&lldb, &library, &server));
                // At its end, LLDB kills a process that it has not attached to itself.
                let commands = [&lldbs_side(&LOOKING)[..], &["detach"]].concat();
                let by_lldb = remote.run(&commands).expect("LLDB runs");
                // gdb numbers threads by gdbserver's list, which need not be in the kernel's order.
                same(&lldb, "remote", &by_gdb, &by_lldb);
            }
            Err(skip) => skip.show(),
        }
    }
    match has_server() {
        Ok(()) => {
            let remote = in_gdb(true);
            assert_eq!(without_numbers(&of_the_library(&remote[0])), without_numbers(&of_the_library(&by_gdb[0])));
        }
        Err(skip) => skip.show(),
    }
    let directory = tempfile::tempdir().expect("a directory");
    let program = std::fs::read_link(format!("/proc/{pid}/exe")).expect("the program");
    let written = gcore(pid, directory.path()).expect("gcore runs");
    match written {
        Ok(core) => {
            let by_gdb = wide(Gdb::core(&library, &program, &core)).run(&gdbs_side(&LOOKING)).expect("gdb runs");
            for lldb in lldbs() {
                let on_core = lldb_wide(Lldb::core(&lldb, &library, &program, &core));
                let by_lldb = on_core.run(&lldbs_side(&LOOKING)).expect("LLDB runs");
                same(&lldb, "core", &by_gdb, &by_lldb);
            }
        }
        Err(skip) => skip.show(),
    }
    end(process);
}

/// From the hang on: the next region, into it, until the deadlock. What the library says does not differ but in ids and addresses.
#[test]
fn from_the_hang_to_the_next_region_and_to_the_deadlock() {
    if !has_both() {
        return;
    }
    let process = hanging();
    let library = library();
    let go = format!("python open('/proc/{}/fd/0', 'w').write('gg')", process.child.id());
    let commands = RUNNING.map(|(gdb, _)| gdb);
    let by_gdb = wide(Gdb::process(&library, process.child.id(), false)).first(go).run(&commands).expect("gdb runs");
    end(process);
    for (at, part) in
        [(1, "A parallel region begins"), (1, "threads: 2"), (4, "#pragma omp parallel in main"), (5, "DEADLOCK")]
    {
        assert!(by_gdb[at].contains(part), "{part}: {by_gdb:#?}");
    }
    for lldb in lldbs() {
        let process = hanging();
        let pid = pid(&process);
        let attached = Lldb::new(&lldb, &library).first(format!("process attach --pid {pid}"));
        let commands = RUNNING.map(|(_, own)| own);
        let by_lldb = lldb_wide(attached)
            .first(format!("script open('/proc/{pid}/fd/0', 'w').write('gg')"))
            .run(&commands)
            .expect("LLDB runs");
        for (n, ((command, _), (gdb, own))) in RUNNING.iter().zip(by_gdb.iter().zip(&by_lldb)).enumerate() {
            let what = format!("LLDB {}, {command}: {gdb}\n{own}", lldb.version);
            match n {
                // Both print the stop, which begins with the library's lines.
                1 => {
                    let said = |text: &str| {
                        let from = text.find("A parallel region begins").unwrap_or_else(|| panic!("{what}"));
                        let lines = text[from..].lines().take(6).collect::<Vec<_>>().join("\n");
                        without_numbers(&lines)
                    };
                    assert_eq!(said(gdb), said(own), "{what}");
                }
                // Each prints the frame in its own way: the line is the same.
                3 => assert!(gdb.contains("steps.c:34") && own.contains("steps.c:34"), "{what}"),
                6 => assert!(gdb.contains("detached") && own.contains("detached"), "{what}"),
                _ => assert_eq!(without_numbers(gdb), without_numbers(own), "{what}"),
            }
        }
        // Nothing is left of the debugger: no stop, and no signal.
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("the process is there");
        let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default().trim();
        assert!(!field("State:").starts_with(['T', 't', 'Z']), "LLDB {}: {status}", lldb.version);
        assert_eq!((field("SigPnd:"), field("ShdPnd:")), ("0000000000000000", "0000000000000000"), "{status}");
        end(process);
    }
}
