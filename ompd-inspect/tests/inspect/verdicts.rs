//! Verdicts, against what the programs say their hang is to be called, and none where nothing hangs.

use crate::common;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use test_programs::{
    Case, Env, HANGS, HEALTHY, Launch, Needs, Opt, Running, Runtime, Skip, TRUTH_SPINS, Toolchain, Truth,
    await_all_blocked, build, can_build, check_hanging, check_healthy, combinations, compare_verdicts,
};

fn first_lines(how: &str, word: &str, expected: &str) {
    let mut seen = 0;
    for (toolchain, runtime) in combinations() {
        // The others record who holds a lock.
        if how != "barriers" && runtime != Runtime::Libgomp {
            continue;
        }
        let program = build("stuck", toolchain, Opt::O2, &[]).expect("the program builds");
        let running = Launch::new(&program, runtime, Env::Settled).argument(how).start().expect("the program starts");
        let output = common::run(&[&running.pid.to_string()]);
        let (text, error, status) = common::texts(&output);
        assert_eq!(status, 0, "{toolchain:?} on {runtime:?}: {text}{error}");
        // However the sentence is broken into lines.
        let plain: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(plain.contains(expected), "{toolchain:?} on {runtime:?}: {text}");
        let verdicts = [plain.matches("SUSPECT").count(), plain.matches("DEADLOCK").count()];
        let of_word = ["SUSPECT", "DEADLOCK"].map(|other| usize::from(word == other));
        assert!(plain.starts_with(word), "{toolchain:?} on {runtime:?}: {text}");
        assert_eq!(verdicts, of_word, "{toolchain:?} on {runtime:?}: {text}");
        running.release().expect("the program leaves");
        seen += 1;
    }
    assert!(seen > 0 || combinations().is_empty());
}

/// The main thread is in a system call all the while, and might as well unset one of the locks: that is no proof.
#[test]
fn two_locks_in_opposite_order() {
    first_lines("locks", "SUSPECT", "each probably holds the lock that the other waits for");
}

/// The code on its own stack tells more than that only the other thread does not wait.
#[test]
fn a_lock_set_twice_beside_a_thread_that_sleeps() {
    first_lines("twice", "SUSPECT", "thread 0 waits for lock first, which it probably holds itself");
}

/// The other thread is in the function that sets the lock, but not behind that call.
#[test]
fn a_lock_set_twice_beside_a_thread_in_another_branch() {
    first_lines("branch", "SUSPECT", "thread 0 waits for lock first, which it probably holds itself");
    first_lines("naps", "WAITING", "thread 0 waits for lock first, which it probably holds itself");
}

/// The first of two calls that set the lock does not lead to the second. Threads outside the team may hold it.
#[test]
fn a_lock_set_in_either_of_two_branches() {
    first_lines("either", "SUSPECT", "SUSPECT all threads wait (1 for lock first), and no thread is left");
}

/// What functions that were called have released counts as well: the thread does not hold the lock itself.
#[test]
fn a_lock_released_in_a_function_that_was_called() {
    first_lines("released", "SUSPECT", "SUSPECT thread 0 has not reached the barrier that thread 1 waits at");
}

/// The thread that waits may have set the lock itself, so the only other one is not blamed.
#[test]
fn a_lock_set_twice_by_a_pointer() {
    first_lines("pointer", "SUSPECT", "SUSPECT thread 1 has not reached the barrier that thread 0 waits at");
    first_lines("pointer", "SUSPECT", "If thread 1 holds it: release it before it is acquired again.");
}

#[test]
fn a_barrier_that_only_some_reach() {
    first_lines("barriers", "DEADLOCK", "DEADLOCK thread 1 waits at another barrier than thread 0");
}

/// Compares the verdicts on a target with what its program expects.
fn check(what: &str, truth: &Truth, runtime: Runtime, target: &str) -> Vec<String> {
    check_report(what, truth, runtime, &common::json(&["waits", target]).0)
}

fn check_report(what: &str, truth: &Truth, runtime: Runtime, report: &Value) -> Vec<String> {
    let comparison = compare_verdicts(truth, report, truth.owners_recorded(runtime));
    comparison.all().map(|line| format!("{what}: {line}")).collect()
}

/// Runs `check` on every variant of a program in every combination.
fn everywhere(cases: &[Case], program: &str, check: impl Fn(&str, &Case, Toolchain, Runtime, Opt, Env) -> Vec<String>) {
    let mut differences = Vec::new();
    let mut tried = 0;
    for case in cases.iter().filter(|case| case.program == program) {
        for (toolchain, runtime) in combinations().into_iter().filter(|(t, r)| case.works(*t, *r)) {
            if let Err(skip) = can_build(case.program, toolchain).expect("the sources are there") {
                skip.show();
                continue;
            }
            // How a program was compiled matters to its stacks alone: once for each runtime will do.
            let native = (toolchain == Toolchain::Clang) == (runtime == Runtime::Libomp14);
            for (opt, env) in [(Opt::O0, Env::Settled), (Opt::O2, Env::Stock)] {
                if !native && (opt == Opt::O0 || !case.flags.is_empty()) {
                    continue;
                }
                let what = format!("{program} {:?} {toolchain:?} {opt:?} on {runtime:?}", case.flags);
                differences.extend(check(&what, case, toolchain, runtime, opt, env));
                tried += 1;
            }
        }
    }
    // Directly, so that it is seen for passing tests as well.
    let _ = writeln!(std::io::stderr(), "{program}: {tried} processes, {} differences", differences.len());
    assert!(tried > 0 || combinations().is_empty(), "nothing was tried");
    assert!(differences.is_empty(), "{} differences:\n{}", differences.len(), differences.join("\n"));
}

/// How often a process is looked at: `ci/stops` asks for more.
fn looks(otherwise: usize) -> usize {
    let asked = std::env::var("STOPS").ok();
    asked.map_or(otherwise, |n| n.parse().expect("STOPS is a number"))
}

/// The first three lines of the summary, however they are wrapped, are the answer of the report.
fn first_three(what: &str, core: &str, report: &Value) -> Vec<String> {
    let lines = common::answer(what, core);
    let answer = |key: &str| report["answer"][key].as_str().map(str::to_owned);
    let expected: Vec<String> = [
        answer("word").zip(answer("text")).map(|(word, text)| format!("{word:10}{text}")),
        answer("cause").map(|cause| format!("  Cause   {cause}")),
        answer("fix").map(|fix| format!("  Fix     {fix}")),
    ]
    .into_iter()
    .flatten()
    .collect();
    match lines == expected {
        true => Vec::new(),
        false => vec![format!("{what}: first lines {lines:?}, and not {expected:?}")],
    }
}

/// One verdict, right, live and in a core file.
fn hang(program: &str) {
    everywhere(HANGS, program, |what, case, toolchain, runtime, opt, env| {
        let executable = build(case.program, toolchain, opt, case.flags).expect("the program builds");
        let running = Launch::new(&executable, runtime, env).start_hanging().expect("the program hangs");
        if let Err(error) = check_hanging(case, &running) {
            return vec![format!("{what}: the program is not as it says: {error:#}")];
        }
        let live = format!("{what}, live");
        let look = |_| case.look(|| check(&live, &running.truth, runtime, &running.pid.to_string()));
        let mut found: Vec<String> = (0..looks(1)).flat_map(look).collect();
        if opt == Opt::O0 {
            return found;
        }
        let directory = tempfile::tempdir().expect("a directory for the core");
        match running.gcore(directory.path()).expect("gcore runs") {
            Ok(core) => {
                let core = core.to_str().expect("a plain path");
                let what = format!("{what}, gcore");
                let (report, _) = common::json(&["waits", core]);
                found.extend(check_report(&what, &running.truth, runtime, &report));
                found.extend(first_three(&what, core, &report));
            }
            Err(skip) => skip.show(),
        }
        found
    });
}

/// The source that never comes is no verdict, but the wait for it is named, where it is.
#[test]
fn a_source_that_never_comes() {
    for (toolchain, runtime) in combinations() {
        let executable = build("hangs/missing_source", toolchain, Opt::O2, &[]).expect("the program builds");
        let running = Launch::new(&executable, runtime, Env::Settled).start_hanging().expect("the program hangs");
        let what = format!("{toolchain:?} on {runtime:?}");
        // A thread that yields is sometimes stopped on its way into the call or out of it. What it waits for is then unknown.
        let named = (0..20).any(|_| {
            let (report, _) = common::json(&[&running.pid.to_string()]);
            assert_eq!(common::hangs(&report), [] as [&serde_json::Value; 0], "{what}");
            let threads = report["runtimes"].as_array().into_iter().flatten().flat_map(|r| r["threads"].as_array());
            let waits: Vec<_> = threads.flatten().map(|t| &t["wait"]["value"]).collect();
            let sinks: Vec<_> = waits.iter().filter(|w| w["kind"] == "ordered depend(sink)").collect();
            for sink in &sinks {
                assert_eq!(
                    (&sink["location"]["line"], &sink["origin"]),
                    (&SINK.into(), &"stack".into()),
                    "{what}: {sink}"
                );
                assert!(sink["over"]["unknown"].is_string(), "{what}: {sink}");
            }
            assert!(!waits.iter().any(|w| w["kind"] == "ordered"), "{what}: {report}");
            sinks.len() == 2
        });
        assert!(named, "{what}: two threads are never seen to wait for an iteration");
        let words = format!("waits in ordered depend(sink) (missing_source.c:{SINK})");
        let said = (0..20).any(|_| {
            let (text, _, _) = common::texts(&common::run(&["waits", &running.pid.to_string()]));
            text.contains(&words)
        });
        assert!(said, "{what}: {words}");
    }
}

/// The line of `ordered depend(sink)` in `hangs/missing_source.c`.
const SINK: u32 = 22;

/// No verdict, whenever it is looked at; `ci/stops` looks more often.
fn healthy(program: &str) {
    everywhere(HEALTHY, program, |what, case, toolchain, runtime, opt, env| {
        let executable = build(case.program, toolchain, opt, case.flags).expect("the program builds");
        let mut running = Launch::new(&executable, runtime, env).start_healthy().expect("the program starts");
        let look = |_| check(what, &running.truth, runtime, &running.pid.to_string());
        let mut found: Vec<String> = (0..looks(3)).flat_map(look).collect();
        let sound = check_healthy(case, &mut running);
        found.extend(sound.err().map(|error| format!("{what}: the program is not as it says: {error:#}")));
        found
    });
}

/// What a hang is suspected to be waiting for is told, and it does come: then the program goes on.
fn comes_from_outside(flags: &[&str], spins: bool, words: &str, let_go: impl Fn(&mut Running)) {
    let is_case = |case: &&Case| case.program == "hangs/rescued" && case.flags == flags;
    let case = HANGS.iter().find(is_case).expect("the variant is listed");
    comes_from_outside_of(case, spins, words, let_go);
}

fn comes_from_outside_of(case: &Case, spins: bool, words: &str, let_go: impl Fn(&mut Running)) {
    let mut tried = 0;
    let flags = case.flags;
    for (toolchain, runtime) in combinations() {
        if !case.works(toolchain, runtime) {
            continue;
        }
        let executable = build(case.program, toolchain, Opt::O2, flags).expect("the program builds");
        let mut launch = Launch::new(&executable, runtime, Env::Stock);
        if spins {
            launch = launch.variable("OMP_WAIT_POLICY", "active").variable(TRUTH_SPINS, "1");
        }
        let mut running = launch.start_hanging().expect("the program hangs");
        let what = format!("{flags:?} {toolchain:?} on {runtime:?}");
        let (text, ..) = common::texts(&common::run(&["waits", &running.pid.to_string()]));
        let plain: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(plain.contains("SUSPECT") && !plain.contains("DEADLOCK"), "{what}: {text}");
        assert!(plain.contains(words), "{what}: {text}");
        let_go(&mut running);
        running.await_round(1).expect("it goes on");
        tried += 1;
    }
    assert!(tried > 0 || combinations().is_empty());
}

/// The memory of a process in a PID namespace has ids that mean others outside.
#[test]
fn owners_of_mutexes_in_a_pid_namespace() {
    let enter = ["--pid", "--fork", "--kill-child", "--mount-proc"];
    let permitted = Command::new("unshare").args(enter).arg("true").output();
    if !permitted.as_ref().is_ok_and(|output| output.status.success()) {
        return Skip::because(format!("no PID namespace can be made: {permitted:?}")).show();
    }
    let Some((toolchain, _)) = combinations().into_iter().next() else { return };
    let program = build("hangs/mutexes", toolchain, Opt::O2, &[]).expect("the program builds");
    let mut unshare = Command::new("unshare");
    unshare.args(enter).arg(&program.path).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut unshare = unshare.spawn().expect("the program starts");
    let mut said = String::new();
    let out = unshare.stdout.take().expect("its output");
    BufReader::new(out).read_line(&mut said).expect("it says that it is ready");
    let children = format!("/proc/{0}/task/{0}/children", unshare.id());
    let inside: i32 = fs::read_to_string(children).expect("its children").trim().parse().expect("one child");
    await_all_blocked(inside, 2, false).expect("it hangs");
    let (report, _) = common::json(&["waits", &inside.to_string()]);
    let verdict = &report["verdicts"][0];
    let told = [&verdict["verdict"], &verdict["situation"]].map(Value::as_str);
    unshare.kill().expect("it is still there");
    unshare.wait().expect("it ends");
    assert_eq!(told, [Some("deadlock"), Some("lock_cycle")], "{report:#}");
}

#[test]
fn a_handler_that_unsets_a_lock() {
    for flags in [&[] as &[&str], &["-DNEST"], &["-DEVENT"]] {
        comes_from_outside(
            flags,
            false,
            "a handler may let a thread continue, when a signal arrives: SIGUSR1",
            |running| {
                kill(Pid::from_raw(running.pid), Signal::SIGUSR1).expect("the process is there");
            },
        );
    }
}

#[test]
fn a_lock_in_memory_of_two_processes() {
    if std::thread::available_parallelism().is_ok_and(|processors| processors.get() < 2) {
        return Skip::because("threads that are to spin need a processor each").show();
    }
    let words = "lies in memory that other processes may have as well";
    // A thread that sleeps at a lock is not called by another process.
    comes_from_outside(&["-DSHARED"], true, words, |running| running.say(b"\n").expect("it reads"));
}

#[test]
fn a_process_that_has_the_same_memory() {
    // A core of it does not show that, so it is not listed.
    let case = Case { program: "hangs/rescued", flags: &["-DCLONED"], needs: Needs::Libgomp };
    let words = "may have the same memory (CLONE_VM), and may let a thread continue";
    comes_from_outside_of(&case, false, words, |running| running.say(b"\n").expect("it reads"));
}

#[test]
fn a_thread_that_may_be_cancelled() {
    let case = HANGS.iter().find(|case| case.program == "hangs/cancelled").expect("it is listed");
    let words = "may cancel a thread in pthread_join, which may let others continue (pthread_cancel)";
    comes_from_outside_of(case, false, words, |running| running.say(b"\n").expect("it reads"));
}

#[test]
fn a_request_of_io_uring_that_unsets_a_lock() {
    let disabled = std::fs::read_to_string("/proc/sys/kernel/io_uring_disabled");
    if disabled.is_ok_and(|text| text.trim() != "0") {
        return Skip::because("io_uring is disabled here").show();
    }
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").expect("the kernel's version");
    let mut numbers = release.split('.').map_while(|part| part.parse::<u32>().ok());
    if (numbers.next(), numbers.next()) < (Some(6), Some(7)) {
        return Skip::because("io_uring wakes no thread here: that needs Linux 6.7").show();
    }
    let case = Case { program: "hangs/rescued", flags: &["-DRINGED"], needs: Needs::Libgomp };
    let words = "the process uses io_uring: a request may let a thread continue";
    comes_from_outside_of(&case, false, words, |running| running.say(b"\n").expect("it reads"));
}

macro_rules! programs {
    ($how:ident in $directory:literal of $all:ident, $tested:ident: $($name:ident),*) => {
        $( #[test] fn $name() { $how(concat!($directory, "/", stringify!($name))); } )*

        #[test]
        fn $tested() {
            let tested = [$( concat!($directory, "/", stringify!($name)) ),*];
            let missing: Vec<&str> = $all.iter().map(|c| c.program).filter(|p| !tested.contains(p)).collect();
            assert_eq!(missing, [""; 0]);
        }
    };
}

programs!(hang in "hangs" of HANGS, every_hang_is_tested:
    lock_cycle, lock_cycle_cpp, lock_cycle_fortran, join_lock, mutex_and_lock, mutex_and_lock_cpp, mutexes, semaphores, self_lock, owner_gone, barrier_missing_end, missing_lock, missing_read, child_hangs,
    orphaned_for, detach, depend_cycle, excluded, task_never_run, nested_exhausted, ordered_skip, missing_source, critical_left, rescued, cancelled, fork_child);

programs!(healthy in "healthy" of HEALTHY, every_healthy_program_is_tested:
    idle, busy, oversubscribed, long_critical, deep_tasks, depend_pipeline, loops, nested_busy, detach_fulfilled, io,
    outside_waits, pthread_pools, held_across, task_groups, tail_tasks, timer, threads_come_and_go, turns,
    two_ordered, handler_works, moved_untied, cancelled_barrier);
