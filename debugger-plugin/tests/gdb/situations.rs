//! All commands in all situations, on runtimes as they are shipped. The program was started by gdb, is attached, is reached by
//! gdbserver, or has left a core, written by gdb or the kernel. The output is compared with what the programs say of themselves.

use std::io::BufRead as _;
use std::os::unix::fs::PermissionsExt as _;

use debugger_plugin::{Gdb, Release, SITUATIONS, Situation, has_server, releases};
use serde_json::Value;
use test_programs::{Launch, Opt, Truth, compare, compare_stacks, compare_verdicts};

use crate::common::{has_gdb, library};

/// What a command is to print.
enum Wanted {
    /// All of these.
    Has(&'static [&'static str]),
    /// JSON for which this holds.
    Json(fn(&Value) -> bool),
    /// Nothing of note.
    Any,
}

use Wanted::{Any, Has, Json};

/// What each command must print for the program `nested`: a team of three, and in each member a team of two. Thread 0 of each
/// inner team waits at a barrier. The order matters: a selected thread stays selected.
const ON_NESTED: &[(&str, Wanted)] = &[
    ("openmp thread 1.0", Has(&["thread 0 of 2 in team 1", "waits at a"])),
    ("openmp status", Has(&["SUSPECT", "level 1, 3 threads", "level 2, 2 threads", "in outer_body", "main"])),
    ("openmp status -v", Has(&["SUSPECT", "level 1, 3 threads"])),
    ("openmp threads", Has(&["0/2", "1/2", "barrier", "implicit"])),
    ("openmp threads -v", Has(&["number 0", "number 1", "barrier", "implicit", "descriptor 0x"])),
    ("openmp threads -json", Json(|all| used(all)["threads"].as_array().is_some_and(|all| all.len() == 6))),
    ("openmp teams", Has(&["level 1, 3 threads", "level 2, 2 threads", "barrier"])),
    ("openmp teams -v", Has(&["level 1, 3 threads", "level 2, 2 threads", "barrier"])),
    ("openmp teams -json", Json(|all| used(all)["teams"].as_array().is_some_and(|all| all.len() == 4))),
    ("openmp parallel", Has(&["level 1, 3 threads", "level 2, 2 threads", "barrier"])),
    ("openmp parallel -v", Has(&["level 1, 3 threads", "level 2, 2 threads", "barrier"])),
    ("openmp parallel -json", Json(|all| used(all)["teams"].as_array().is_some_and(|all| all.len() == 4))),
    ("openmp tasks", Has(&["implicit", "initial", "running", "suspended"])),
    ("openmp tasks -v", Has(&["implicit", "initial", "running", "suspended"])),
    ("openmp tasks -json", Json(|all| used(all)["tasks"].as_array().is_some_and(|all| all.len() == 10))),
    ("openmp tasks -tree", Has(&["initial, suspended", "    task", "implicit, running"])),
    ("openmp tasks -dot", Has(&["digraph dependences"])),
    ("openmp waits", Has(&["SUSPECT", "not reached by thread 1 of team 1", "barrier"])),
    ("openmp waits -v", Has(&["SUSPECT", "not reached by thread 1 of team 1", "barrier"])),
    ("openmp waits -json", Json(|all| used(all)["waits"].as_array().is_some_and(|all| all.len() == 3))),
    ("openmp waits -dot", Has(&["digraph waits", "barrier of team 1"])),
    ("openmp loops", Has(&["no team is in a worksharing region"])),
    ("openmp loops -v", Has(&["no team is in a worksharing region"])),
    ("openmp loops -json", Json(|all| used(all)["loops"].is_null() && used(all)["teams"][3]["level"]["value"] == 2)),
    ("openmp icvs", Has(&["nthreads-var", "OMP_NUM_THREADS=4", "levels-var"])),
    ("openmp icvs -v", Has(&["nthreads-var", "OMP_NUM_THREADS=4", "levels-var"])),
    ("openmp icvs -json", Json(|all| used(all)["threads"][0]["icvs"]["levels"]["value"] == 2)),
    ("openmp stacks", Has(&["inner_body", "#pragma omp parallel in outer_body", "main"])),
    ("openmp stacks -v", Has(&["inner_body", "#pragma omp parallel in outer_body", "main"])),
    ("openmp stacks -all", Has(&["inner_body", "#pragma omp parallel in outer_body", "main"])),
    ("openmp stacks -tree", Has(&["6  main", "inner_body"])),
    ("openmp stacks -dot", Has(&["digraph stacks", "6 threads"])),
    ("openmp stacks -folded", Has(&["main nested.c:32;#pragma omp parallel in main"])),
    ("openmp stacks -svg", Has(&["<svg", "inner_body"])),
    ("openmp stacks -json", Json(|all| all["stacks"].as_array().is_some_and(|all| all.len() == 6))),
    ("openmp bt", Has(&["waits at a", "inner_body", "#pragma omp parallel in main", "main"])),
    ("openmp bt -v", Has(&["inner_body", "#pragma omp parallel in main"])),
    ("openmp bt 1.1", Has(&["  read of ", "truth_", "#pragma omp parallel in outer_body"])),
    ("openmp why", Has(&["waits at a", "SUSPECT", "not reached by thread 1 of team 1"])),
    ("openmp why 1.1", Has(&["thread 1 of 2 in team 1", "truth.h:", "SUSPECT"])),
    (
        "openmp why -json",
        Json(|why| why["threads"][0]["thread_num"]["value"] == 0 && why["verdicts"][0]["verdict"] == "suspect"),
    ),
    ("openmp thread", Has(&["thread 0 of 2 in team 1"])),
    ("openmp apply 1 print $_omp_level()", Has(&["thread 0 of team 1", "thread 1 of team 1", " = 2"])),
    ("openmp apply 0.1-2 print $_omp_thread_num()", Has(&["thread 0 of team", " = 0"])),
    ("openmp taskframes", Has(&["enter", "0x", "function not known"])),
    ("openmp taskframes -json", Json(frames_grow)),
    ("openmp print $_omp_num_threads()", Has(&["2"])),
    (
        "openmp print -all -json $_omp_thread_num()",
        Json(|rows| {
            let rows = rows.as_array().map_or(&[][..], Vec::as_slice);
            rows.len() == 2 && rows.iter().all(|row| row["value"].as_str() == Some(&*row["thread_num"].to_string()))
        }),
    ),
    ("openmp print -all $_omp_level()", Has(&["1.0-1 2"])),
    ("openmp print -each $_omp_level()", Has(&["1.0 Thread", "1.1 Thread"])),
    ("openmp print -team 0.1 nowhere", Has(&["unknown: No symbol \"nowhere\""])),
    ("openmp doctor", Has(&["everything of it can be read", "build-id", "libompd.so", "read_memory"])),
    ("openmp doctor -v", Has(&["everything of it can be read", "build-id"])),
    ("openmp doctor -json", Json(|all| used(all)["missing"].as_array().is_some_and(Vec::is_empty))),
    ("openmp init", Has(&["lib", "omp"])),
    ("print $_omp_thread_num()", Has(&[" = 0"])),
    ("print $_omp_num_threads()", Has(&[" = 2"])),
    ("print $_omp_level()", Has(&[" = 2"])),
    ("print $_omp_task_id() != -1 && $_omp_team() != -1 && $_omp_team() != 0", Has(&[" = 1"])),
    ("set $ids = $_omp_team(1)", Any),
    ("eval \"thread apply %s print $_omp_thread_num()\", $ids", Has(&[" = 0", " = 1"])),
    ("set openmp thread-names on", Any),
    ("info threads", Has(&["\"omp 1.0 (2)\"", "\"omp 1.1 (2)\"", "\"omp 3.0 (2)\""])),
    ("set openmp thread-names off", Any),
    ("info threads", Has(&["Thread", "* "])),
    ("bt", Has(&["inner_body", "#pragma omp parallel in outer_body", "[waits: barrier]"])),
    ("openmp bt off", Any),
    ("bt", Has(&["inner_body", "outer_body"])),
    ("openmp bt on continued", Any),
    ("openmp thread 1.1", Has(&["thread 1 of 2 in team 1"])),
    ("bt", Has(&["#pragma omp parallel in outer_body", "[continues in Thread", "main"])),
    ("openmp bt on", Any),
    ("bt -hide", Has(&["#pragma omp parallel in outer_body", "[continues in Thread"])),
    ("bt -no-filters", Has(&["inner_body", "nested.c:23"])),
    ("openmp break", Has(&["There are no stops"])),
    ("openmp delete", Any),
];

/// The runtime that has threads: another one may be loaded, which nobody uses.
fn used(all: &Value) -> &Value {
    let runtimes = all["runtimes"].as_array().map_or(&[][..], Vec::as_slice);
    let has = |runtime: &&Value| {
        let lists = ["threads", "teams", "tasks", "waits", "loops", "missing"];
        lists.iter().any(|list| runtime[list].as_array().is_some_and(|all| !all.is_empty()))
    };
    runtimes.iter().find(has).unwrap_or_else(|| runtimes.first().unwrap_or(all))
}

/// Three tasks lie on one stack or on several: within one task the call of the runtime is further in than where it was called.
fn frames_grow(rows: &Value) -> bool {
    let rows = rows.as_array().map_or(&[][..], Vec::as_slice);
    let number = |value: &Value| u64::from_str_radix(value.as_str()?.strip_prefix("0x")?, 16).ok();
    let grow = |row: &Value| match (number(&row["enter"]), number(&row["exit"])) {
        (Some(enter), Some(exit)) => enter <= exit,
        _ => true,
    };
    rows.len() == 3 && rows.iter().all(grow) && number(&rows[1]["enter"]).is_some()
}

/// What takes a process that can run.
const NEEDS_PROCESS: [&str; 4] =
    ["openmp break parallel-begin", "openmp step", "openmp until barrier", "openmp catch deadlock 0.05"];

/// Lines are wrapped, and columns aligned.
fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn json(text: &str) -> Result<Value, String> {
    let from = text.find(['{', '[']).ok_or_else(|| format!("JSON is wanted: {text}"))?;
    serde_json::from_str(&text[from..]).map_err(|why| format!("{why}: {text}"))
}

/// Runs commands on a program on each runtime in a situation, and has what they print looked at: what is wrong, one line each.
fn each(
    situation: Situation,
    program: &str,
    opt: Opt,
    commands: &[&str],
    check: impl Fn(&Release, &Truth, &[String]) -> Vec<String>,
) {
    if !has_gdb() {
        return;
    }
    // Fortran's library handles the signal that ends the process, unless `-fno-backtrace` prevents it. The thread that gets the
    // signal leaves its wait, and is about to wait again when the core is made. The C compiler warns of that option.
    let is_handled = situation == Situation::KernelCore && program.ends_with("_fortran");
    let flags: &[&str] = if is_handled { &["-fno-backtrace", "-Wno-error"] } else { &[] };
    let mut wrong = Vec::new();
    for release in releases().expect("directories for runtimes") {
        let executable = match release.build(program, opt, flags).expect("the program builds") {
            Ok(executable) => executable,
            Err(skip) => {
                skip.show();
                continue;
            }
        };
        let what = format!("{program}, {situation:?}, {}", release.name);
        // The kernel wakes threads to end them, so the core may catch a waiting thread at a moment that does not show its wait.
        // That does not happen each time.
        let mut tries = if situation == Situation::KernelCore { 3 } else { 1 };
        loop {
            let found = match situation.run(&library(), &release.launch(&executable), commands) {
                Ok(Ok((truth, printed))) => check(&release, &truth, &printed),
                Ok(Err(skip)) => {
                    skip.show();
                    break;
                }
                Err(why) => vec![format!("{why:#}")],
            };
            tries -= 1;
            if found.is_empty() || tries == 0 {
                wrong.extend(found.into_iter().map(|line| format!("{what}: {line}")));
                break;
            }
        }
    }
    assert!(wrong.is_empty(), "{} differences:\n{}", wrong.len(), wrong.join("\n"));
}

fn every_command(situation: Situation) {
    let mut commands = vec!["openmp status -json"];
    commands.extend(ON_NESTED.iter().map(|(command, _)| *command));
    commands.extend(NEEDS_PROCESS.iter().filter(|_| !situation.is_live()));
    if situation.is_live() {
        commands.extend([NEEDS_PROCESS[3], "openmp break parallel-begin", "openmp break", "openmp delete"]);
    }
    each(situation, "nested", Opt::O0, &commands, |release, truth, printed| {
        let mut wrong = Vec::new();
        match json(&printed[0]) {
            Ok(report) => {
                let found = compare(truth, &report, release.runtime, release.toolchain("nested"));
                // Where gdb gets a program back by a signal, the thread that gets it is not in its wait for a moment.
                wrong.extend([found.differences, found.unknown, found.lacking].concat());
                if found.compared < 100 {
                    wrong.push(format!("only {} values were compared", found.compared));
                }
            }
            Err(why) => wrong.push(why),
        }
        for ((command, wanted), text) in ON_NESTED.iter().zip(&printed[1..]) {
            match wanted {
                Has(all) => {
                    let missing = all.iter().filter(|part| !words(text).contains(&words(part)));
                    wrong.extend(missing.map(|part| format!("{command}: {part} is wanted: {text}")));
                }
                Json(holds) => match json(text) {
                    Ok(value) if holds(&value) => {}
                    Ok(value) => wrong.push(format!("{command}: {value}")),
                    Err(why) => wrong.push(format!("{command}: {why}")),
                },
                Any if text.is_empty() => {}
                Any => wrong.push(format!("{command}: {text}")),
            }
        }
        let rest = &printed[1 + ON_NESTED.len()..];
        if situation.is_live() {
            for (text, part) in rest.iter().zip(["SUSPECT", "Stop 1  parallel-begin", "0 hits", ""]) {
                if !words(text).contains(&words(part)) {
                    wrong.push(format!("{part} is wanted: {text}"));
                }
            }
        } else {
            for (command, text) in NEEDS_PROCESS.iter().zip(rest) {
                if text != "This is a core file, in which nothing runs: that takes a process." {
                    wrong.push(format!("{command}: {text}"));
                }
            }
        }
        // Of the last backtraces one is folded, one has the links only, and one is gdb's own.
        let backtraces: Vec<&String> = ON_NESTED
            .iter()
            .zip(&printed[1..])
            .filter(|((c, _), _)| c.starts_with("bt"))
            .map(|(_, text)| text)
            .collect();
        for (n, is_ours) in [true, false, true, true, false].into_iter().enumerate() {
            if backtraces[n].contains("#pragma omp") != is_ours {
                wrong.push(format!("backtrace {n}: {}", backtraces[n]));
            }
        }
        wrong
    });
}

/// Programs in C, C++ and Fortran that hang: the verdict, in words too, and what a thread waits for.
fn verdicts(situation: Situation) {
    for program in ["hangs/lock_cycle", "hangs/lock_cycle_cpp", "hangs/lock_cycle_fortran"] {
        let mut commands = vec!["openmp status -json", "openmp waits", "openmp why 0.0", "openmp why -json 0.1"];
        if situation.is_live() {
            commands.push("openmp catch deadlock 0.05");
        }
        each(situation, program, Opt::O2, &commands, |release, truth, printed| {
            let recorded = truth.owners_recorded(release.runtime);
            let mut wrong = Vec::new();
            match json(&printed[0]) {
                Ok(report) => {
                    let found = compare_verdicts(truth, &report, recorded);
                    wrong.extend([found.differences, found.unknown, found.lacking].concat());
                }
                Err(why) => wrong.push(why),
            }
            let mut texts = vec![(&printed[1], "DEADLOCK"), (&printed[2], "DEADLOCK"), (&printed[2], "waits for")];
            texts.extend(printed.get(4).map(|text| (text, "DEADLOCK")));
            wrong.extend(
                texts.iter().filter(|(text, part)| !text.contains(part)).map(|(text, part)| format!("{part}: {text}")),
            );
            match json(&printed[3]) {
                Ok(why)
                    if why["verdicts"][0]["verdict"] == "deadlock" && why["threads"][0]["thread_num"]["value"] == 1 => {
                }
                Ok(why) => wrong.push(format!("why: {why}")),
                Err(why) => wrong.push(why),
            }
            wrong
        });
    }
}

/// Stacks in C++ and Fortran, and in the program's own words in gdb's backtrace.
fn stacks(situation: Situation) {
    for program in ["stacks_cpp", "stacks_fortran"] {
        let commands = ["openmp stacks -json", "openmp thread 0.1", "bt", "openmp bt"];
        each(situation, program, Opt::O2, &commands, |release, truth, printed| {
            let mut wrong = Vec::new();
            match json(&printed[0]) {
                Ok(report) => {
                    let found = compare_stacks(truth, &report, release.runtime, Opt::O2);
                    wrong.extend([found.differences, found.unknown, found.lacking].concat());
                    if found.compared == 0 {
                        wrong.push("nothing was compared".to_owned());
                    }
                }
                Err(why) => wrong.push(why),
            }
            let backtraces = printed[2..].iter().filter(|text| !text.contains("#pragma omp"));
            wrong.extend(backtraces.map(|text| format!("a backtrace: {text}")));
            wrong
        });
    }
}

/// How gdb gets hold of a program that runs, and where its breakpoints are.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Begun {
    Launched,
    Attached,
    Remote,
    RemotelyLaunched,
}

/// Commands that let a program run.
const STOPPING: [&str; 14] = [
    "openmp break parallel-begin if $_omp_level() == 1",
    "openmp break",
    "continue",
    "print $_omp_num_threads()",
    "openmp bt",
    "openmp break",
    "openmp delete 1",
    "openmp step",
    "openmp thread",
    "openmp until barrier",
    "openmp break task-begin",
    "continue",
    "openmp delete",
    "continue",
];

/// Stops, steps and runs to barriers on each runtime, in a program that is begun in this way. Each command stops where it should,
/// and the program continues to its end.
fn stops(begun: Begun) {
    if !has_gdb() {
        return;
    }
    if let (Begun::Remote | Begun::RemotelyLaunched, Err(skip)) = (begun, has_server()) {
        return skip.show();
    }
    let mut wrong = Vec::new();
    for release in releases().expect("directories for runtimes") {
        let program = match release.build("begin_end", Opt::O0, &[]).expect("the program builds") {
            Ok(program) => program,
            Err(skip) => {
                skip.show();
                continue;
            }
        };
        let what = format!("{begun:?}, {}", release.name);
        let printed = stopped(&release.launch(&program), begun);
        let wanted: [(&str, &[&str]); STOPPING.len()] = [
            (
                "openmp break parallel-begin if $_omp_level() == 1",
                &["Stop 1 parallel-begin if $_omp_level() == 1", "0 hits"],
            ),
            ("openmp break", &["1 parallel-begin if $_omp_level() == 1", "0 hits"]),
            ("continue", &["A parallel region begins", "threads: 3", "at: size3_level2"]),
            ("print $_omp_num_threads()", &["= 3"]),
            ("openmp bt", &["size3_level2", "#pragma omp parallel in size2_level1"]),
            ("openmp break", &["1 hit)"]),
            ("openmp delete 1", &[]),
            ("openmp step", &["#0"]),
            ("openmp thread", &["thread 0 of"]),
            ("openmp until barrier", &[]),
            ("openmp break task-begin", &["task-begin"]),
            ("continue", &["A task begins", "task_"]),
            ("openmp delete", &[]),
            ("continue", &["exited normally"]),
        ];
        let printed = match printed {
            Ok(printed) => printed,
            Err(why) => {
                wrong.push(format!("{what}: {why:#}"));
                continue;
            }
        };
        for ((command, parts), text) in wanted.iter().zip(&printed) {
            let missing = parts.iter().filter(|part| !words(text).contains(**part));
            wrong.extend(missing.map(|part| format!("{what}: {command}: {part} is wanted: {text}")));
        }
        // Where a runtime has no such places, that is said.
        if !(printed[9].contains(" in size3_level2 ()")
            || printed[9].contains("There is no place to stop at for barrier-begin"))
        {
            wrong.push(format!("{what}: until barrier: {}", printed[9]));
        }
    }
    assert!(wrong.is_empty(), "{} differences:\n{}", wrong.len(), wrong.join("\n"));
}

/// What each of the commands prints.
fn stopped(launch: &Launch, begun: Begun) -> anyhow::Result<Vec<String>> {
    let directory = tempfile::tempdir()?;
    let (input, output) = (directory.path().join("in"), directory.path().join("out"));
    std::fs::write(&input, "g")?;
    let program = &launch.executable().path;
    let gdb = match begun {
        Begun::Launched | Begun::RemotelyLaunched => {
            let mut gdb = Gdb::program(&library(), program);
            for (name, value) in launch.environment()? {
                gdb = gdb.variable(name, value);
            }
            if begun == Begun::RemotelyLaunched {
                // gdbserver knows of no redirection.
                let wrapper = directory.path().join("wrapper");
                let script = format!("#!/bin/sh\nexec \"$@\" < {} > {}\n", input.display(), output.display());
                std::fs::write(&wrapper, script)?;
                std::fs::set_permissions(&wrapper, std::fs::Permissions::from_mode(0o755))?;
                // A shell that stays around it would be what gdb ends in its place.
                let server = format!("exec gdbserver --wrapper {} -- --multi -", wrapper.display());
                gdb = gdb.first(format!("target extended-remote | {server}"));
                gdb = gdb.first(format!("set remote exec-file {}", program.display()));
            }
            let run = match begun {
                Begun::Launched => format!("run < {} > {}", input.display(), output.display()),
                _ => "run".to_owned(),
            };
            gdb.first("break main").first(run).first("delete")
        }
        Begun::Attached | Begun::Remote => {
            let mut process = launch.clone().leading_group().spawn()?;
            let mut line = String::new();
            process.stdout.read_line(&mut line)?;
            anyhow::ensure!(line == "ready\n", "the program began with {line:?}");
            // It is in `read`, or on the way there.
            let pid = process.child.id();
            let gdb = Gdb::process(&library(), pid, begun == Begun::Remote);
            // It may go on once gdb has it.
            let printed = gdb.first(format!("shell printf g > /proc/{pid}/fd/0")).run(&STOPPING);
            // Where gdb has let it go on to its end, there is nothing to end.
            process.child.kill()?;
            process.child.wait()?;
            return printed;
        }
    };
    if begun == Begun::Launched {
        return gdb.run(&STOPPING);
    }
    // gdbserver 13 does not end when its input does: gdb would wait for it before it kills it.
    let mut printed = gdb.run(&[&STOPPING[..], &["monitor exit"]].concat())?;
    printed.truncate(STOPPING.len());
    Ok(printed)
}

#[test]
fn stops_in_a_program_that_gdb_starts() {
    stops(Begun::Launched);
}

#[test]
fn stops_in_a_process_that_gdb_is_attached_to() {
    stops(Begun::Attached);
}

#[test]
fn stops_by_gdbserver_that_is_attached() {
    stops(Begun::Remote);
}

#[test]
fn stops_by_gdbserver_that_starts_the_program() {
    stops(Begun::RemotelyLaunched);
}

/// One test for each situation, so that they can run beside each other.
macro_rules! situations {
    ($($name:ident: $situation:expr,)*) => {
        $(mod $name {
            use super::*;

            #[test]
            fn every_command() {
                super::every_command($situation);
            }

            #[test]
            fn verdicts() {
                super::verdicts($situation);
            }

            #[test]
            fn stacks() {
                super::stacks($situation);
            }
        })*

        #[test]
        fn these_are_all_situations() {
            assert_eq!(SITUATIONS, [$($situation),*]);
        }
    };
}

situations! {
    launch: Situation::Launch,
    attach: Situation::Attach,
    gcore: Situation::Gcore,
    kernel_core: Situation::KernelCore,
    remote: Situation::Remote,
}
