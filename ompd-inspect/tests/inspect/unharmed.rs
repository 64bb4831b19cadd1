//! The inspected program goes on as if nothing had been: after an inspection, after one that is killed in the middle,
//! after many at once.

use crate::common;
use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::io::{BufRead as _, Write as _};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, Command, Stdio};

use crate::common::{bounded, command, texts};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use ompd_process::live::Live;
use ompd_process::{OpenOptions, Target, Thread};
use serde_json::Value;
use test_programs::{Env, Launch, Opt, Running, Runtime, Skip, Toolchain, build, combinations, thread_states};

fn start(program: &str, toolchain: Toolchain, runtime: Runtime) -> Running {
    let executable = build(program, toolchain, Opt::O2, &[]).expect("the program builds");
    Running::start(&executable, runtime, Env::Settled).expect("the program starts")
}

/// The state letter of one thread.
fn state(pid: i32, lwp: i32) -> Option<char> {
    // Without the rest of what `thread_states` reads: this has to be fast.
    let stat = fs::read_to_string(format!("/proc/{pid}/task/{lwp}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.chars().next()
}

/// No thread is stopped, and none is traced.
fn assert_let_go(pid: i32) {
    for (lwp, thread) in thread_states(pid).expect("threads") {
        assert!(!matches!(thread.state, 't' | 'T'), "thread {lwp} of {pid} is in state {}", thread.state);
        assert_untraced(pid, lwp);
    }
}

fn assert_untraced(pid: i32, lwp: i32) {
    // A thread that has ended since it was listed is surely let go.
    let Ok(status) = fs::read_to_string(format!("/proc/{pid}/task/{lwp}/status")) else { return };
    assert!(status.contains("\nTracerPid:\t0\n"), "thread {lwp} of {pid} is traced");
}

#[test]
fn counts_go_on_after_an_inspection() {
    for (toolchain, runtime) in combinations() {
        let mut running = start("progress", toolchain, runtime);
        let pid = running.pid.to_string();
        let mut counts = running.counts().expect("counts");
        let brief = ["--pause", "brief"];
        for args in [&[][..], &brief, &["threads"], &["teams"], &["tasks"], &["icvs"], &["doctor", "-v"]] {
            let (_, err, status) = texts(&bounded(command().args(args).arg(&pid)));
            assert_eq!(status, 0, "{args:?} on {runtime:?}: {err}");
            assert_let_go(running.pid);
            counts = running.await_progress(&counts).expect("counts");
        }
        let steps = running.truth.steps();
        assert_eq!(running.release().expect("the program's end").progress, steps);
    }
}

/// An inspection of `pid` that is stopped itself while it holds the target.
fn frozen_inspection(pid: i32) -> Child {
    // Many are over before they are noticed; each is another throw of the dice.
    const TRIES: u32 = 2000;
    for tries in 1..=TRIES {
        // Shells have what they start in the background ignore SIGINT.
        let mut inspector = Command::new("env");
        inspector.arg("--default-signal=INT").arg(command().get_program()).args(["--pause", "brief", &pid.to_string()]);
        inspector.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut inspector = inspector.spawn().expect("the command");
        let id = Pid::from_raw(i32::try_from(inspector.id()).expect("a process id"));
        // The first thread is stopped first and let go first.
        while state(pid, pid) != Some('t') {
            if inspector.try_wait().expect("the command").is_some() {
                break;
            }
        }
        if inspector.try_wait().expect("the command").is_some() {
            continue;
        }
        kill(id, Signal::SIGSTOP).expect("a signal to the command");
        // It may end before the signal reaches it; its status is then lost to `inspector`, which is not asked again.
        match waitpid(id, Some(WaitPidFlag::WUNTRACED)).expect("the command") {
            WaitStatus::Stopped(..) => {}
            _ => continue,
        }
        if state(pid, pid) == Some('t') {
            let _ =
                writeln!(std::io::stderr(), "{tries} inspections until one was caught with the target in its hands");
            return inspector;
        }
        inspector.kill().expect("the command can be killed");
        inspector.wait().expect("its end");
    }
    panic!("none of {TRIES} inspections was seen while it held the target");
}

/// Whatever ends the inspector, and whatever it was doing: the kernel lets its tracees go.
fn ended_by(signal: Signal) {
    let many = build("many", Toolchain::Gcc, Opt::O2, &[]).expect("the program builds");
    let many = Launch::new(&many, Runtime::Libgomp, Env::Settled).argument("256").start().expect("the program starts");
    let mut counting = start("progress", Toolchain::Gcc, Runtime::Libgomp);
    for pid in [many.pid, counting.pid] {
        let mut inspector = frozen_inspection(pid);
        let id = Pid::from_raw(i32::try_from(inspector.id()).expect("a process id"));
        kill(id, signal).expect("a signal to the command");
        kill(id, Signal::SIGCONT).expect("a signal to the command");
        // A process can be waited for only after all its threads, the tracing one among them, have ended.
        let status = inspector.wait().expect("its end");
        assert_eq!(status.signal(), Some(signal as i32), "{status}");
        assert_let_go(pid);
    }
    let before = counting.counts().expect("counts");
    counting.await_progress(&before).expect("counts go on");
    for running in [many, counting] {
        // It can be inspected again, and comes to its end.
        assert_eq!(common::run(&[&running.pid.to_string()]).status.code(), Some(0));
        let steps = running.truth.steps();
        assert_eq!(running.release().expect("the program's end").progress, steps);
    }
}

#[test]
fn the_target_goes_on_after_sigkill() {
    ended_by(Signal::SIGKILL);
}

#[test]
fn the_target_goes_on_after_sigint() {
    ended_by(Signal::SIGINT);
}

#[test]
fn the_target_goes_on_after_sigterm() {
    ended_by(Signal::SIGTERM);
}

/// Waits until all threads are stopped as by SIGSTOP: those let go by a tracer get there by themselves.
fn await_stopped(pid: i32) {
    loop {
        let states: HashSet<char> = thread_states(pid).expect("threads").values().map(|t| t.state).collect();
        if states == HashSet::from(['T']) {
            return;
        }
        // Asleep: it runs, and nothing will stop it any more.
        assert!(states.iter().all(|s| "tTR".contains(*s)), "threads are in the states {states:?}");
        std::thread::yield_now();
    }
}

#[test]
fn a_stopped_target_stays_stopped() {
    for (toolchain, runtime) in combinations() {
        let mut running = start("progress", toolchain, runtime);
        let counts = running.counts().expect("counts");
        let pid = Pid::from_raw(running.pid);
        kill(pid, Signal::SIGSTOP).expect("a signal to the program");
        // Reported when its last thread has stopped.
        let stopped = waitpid(pid, Some(WaitPidFlag::WUNTRACED)).expect("the program");
        assert_eq!(stopped, WaitStatus::Stopped(pid, Signal::SIGSTOP));
        for _ in 0..5 {
            let (report, status) = common::json(&[&running.pid.to_string()]);
            assert_eq!(status, 0, "{runtime:?}: {}", report["issues"]);
            assert_eq!(report["os_threads"].as_array().map(Vec::len), Some(running.truth.threads.len()));
            await_stopped(running.pid);
            for lwp in thread_states(running.pid).expect("threads").keys() {
                assert_untraced(running.pid, *lwp);
            }
        }
        kill(pid, Signal::SIGCONT).expect("a signal to the program");
        running.await_progress(&counts).expect("counts go on");
        running.release().expect("the program's end");
    }
}

/// Only one tool at a time can stop a process: the others wait for their turn.
#[test]
fn many_inspections_at_once() {
    const AT_ONCE: usize = 20;
    let mut running = start("progress", Toolchain::Gcc, Runtime::Libgomp);
    let pid = running.pid.to_string();
    for _ in 0..5 {
        let before = running.counts().expect("counts");
        let inspectors: Vec<Child> = (0..AT_ONCE)
            .map(|_| command().arg(&pid).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the command"))
            .collect();
        for inspector in inspectors {
            let (out, err, status) = texts(&inspector.wait_with_output().expect("its end"));
            assert_eq!(status, 0, "{out}{err}");
            assert!(out.contains("team 0  level 1, 4 threads") && err.is_empty(), "{out}{err}");
        }
        assert_let_go(running.pid);
        running.await_progress(&before).expect("counts go on");
    }
    running.release().expect("the program's end");
}

/// Where threads and teams come and go, a stop meets the runtime half-way through its changes.
#[test]
fn teams_that_come_and_go() {
    for (toolchain, runtime) in combinations() {
        let running = start("churn", toolchain, runtime);
        let pid = running.pid.to_string();
        let mut complete = 0;
        let mut members = 0;
        let mut said: BTreeMap<String, usize> = BTreeMap::new();
        for _ in 0..50 {
            let (report, status) = common::json(&[&pid]);
            assert!(status == 0 || status == 1, "status {status}");
            complete += usize::from(status == 0);
            for issue in report["issues"].as_array().expect("issues") {
                let text = issue["text"].as_str().expect("text").chars().filter(|c| !c.is_ascii_digit());
                *said.entry(format!("{}: {}", issue["subject"], text.collect::<String>())).or_default() += 1;
            }
            members += check_consistent(&report);
            // It never forks. A pool may count threads that have not entered themselves yet.
            assert_eq!(report["crowd"]["gone"], 0, "{report:#}");
        }
        let what =
            format!("{toolchain:?} on {runtime:?}: {complete} of 50 complete, {members} members; issues {said:#?}");
        let _ = writeln!(std::io::stderr(), "{what}");
        assert!(members > 0, "no team was ever seen");
        assert_let_go(running.pid);
        assert_eq!(running.release().expect("the program's end").progress, 1);
    }
}

/// What holds in a report of any moment: numbers within their teams, members that are different threads of the process,
/// references to what is there. Gives the number of members found.
fn check_consistent(report: &Value) -> usize {
    let list = |value: &Value| value.as_array().expect("a list").clone();
    let threads: HashSet<i64> = list(&report["os_threads"]).iter().filter_map(|t| t["lwp"].as_i64()).collect();
    let mut found = 0;
    for runtime in list(&report["runtimes"]) {
        let [of_runtime, teams, tasks] = ["threads", "teams", "tasks"].map(|key| list(&runtime[key]));
        let refers = |value: &Value, to: &[Value]| match value["value"].as_u64() {
            Some(index) => assert!(index < to.len() as u64, "{index} of {}: {report:#}", to.len()),
            None => assert!(value["value"].is_null(), "{value}"),
        };
        let mut lwps = HashSet::new();
        for thread in &of_runtime {
            refers(&thread["team"], &teams);
            refers(&thread["task"], &tasks);
            let lwp = thread["lwp"].as_i64();
            assert!(lwp.is_none_or(|lwp| threads.contains(&lwp) && lwps.insert(lwp)), "{thread}: {report:#}");
            let team = thread["team"]["value"].as_u64().map(|team| &teams[team as usize]);
            let size = team.and_then(|team| team["size"]["value"].as_u64());
            if let (Some(number), Some(size)) = (thread["thread_num"]["value"].as_u64(), size) {
                assert!(number < size, "thread {number} of {size}: {thread}");
                let member = &team.expect("a team")["members"][number as usize];
                assert!(member.is_null() || member.as_i64() == lwp, "{member} is not {lwp:?}: {report:#}");
            }
        }
        // The program has one region at a time; workers on their way out of the last one are in no team.
        assert!(teams.len() <= 1, "{report:#}");
        for team in &teams {
            refers(&team["parent"], &teams);
            let members: Vec<i64> = list(&team["members"]).iter().filter_map(Value::as_i64).collect();
            let different: HashSet<i64> = members.iter().copied().collect();
            assert_eq!(different.len(), members.len(), "{team:#}");
            assert!(different.is_subset(&lwps), "{team:#}");
            if let Some(size) = team["size"]["value"].as_u64() {
                assert!((1..=8).contains(&size), "no team of this program has {size} threads: {team:#}");
                assert_eq!(list(&team["members"]).len() as u64, size, "{team:#}");
                assert!(list(&team["at_barrier"]).iter().all(|n| n.as_u64().is_some_and(|n| n < size)), "{team:#}");
                assert!(team["barrier_arrived"].as_u64().is_none_or(|n| n <= size), "{team:#}");
            }
            found += members.len();
        }
        for task in &tasks {
            refers(&task["team"], &teams);
            refers(&task["generating"], &tasks);
            assert!(task["lwp"].as_i64().is_none_or(|lwp| lwps.contains(&lwp)), "{task}");
        }
    }
    found
}

/// A thread in vfork, which the kernel does not stop, still counts as one of the runtime's, and has a stack. Others that wait for
/// it do not hang.
#[test]
fn a_thread_in_vfork() {
    for (toolchain, runtime) in combinations() {
        let what = format!("{toolchain:?} on {runtime:?}");
        let running = start("vforked", toolchain, runtime);
        let lwps: Vec<i32> = thread_states(running.pid).expect("threads").into_keys().collect();
        let in_vfork = loop {
            // The child runs before its parent has gone to sleep.
            if let Some(lwp) = lwps.iter().find(|lwp| state(running.pid, **lwp) == Some('D')) {
                break *lwp;
            }
            std::thread::yield_now();
        };
        let (report, _) = common::json(&[&running.pid.to_string()]);
        let threads =
            report["runtimes"].as_array().into_iter().flatten().flat_map(|runtime| runtime["threads"].as_array());
        let mut known: Vec<(i64, &Value)> = threads
            .flatten()
            .map(|thread| (thread["lwp"].as_i64().expect("a thread of the process"), thread))
            .collect();
        known.sort_by_key(|(lwp, _)| *lwp);
        let mut all: Vec<i64> = lwps.iter().map(|lwp| i64::from(*lwp)).collect();
        all.sort_unstable();
        assert_eq!(known.iter().map(|(lwp, _)| *lwp).collect::<Vec<_>>(), all, "{what}");
        let (_, own) = known.iter().find(|(lwp, _)| *lwp == i64::from(in_vfork)).expect("it is one of them");
        assert_eq!(own["thread_num"]["value"], 1, "{what}: {own}");
        assert_eq!(own["wait"]["value"], Value::Null, "{what}: {own}");
        assert!(own["wait"]["unknown"].is_null(), "{what}: {own}");
        let text = own["outside"]["text"].as_str().unwrap_or_default();
        assert!(text.starts_with("vfork for any child (process ") && text.contains("vforked.c:"), "{what}: {own}");
        let stack = report["stacks"].as_array().into_iter().flatten().find(|stack| stack["lwp"] == i64::from(in_vfork));
        let stack = stack.unwrap_or_else(|| panic!("{what}: no stack of {in_vfork}"));
        assert!(stack.to_string().contains("vforking_body"), "{what}: {stack}");
        assert_eq!(common::hangs(&report), [] as [&serde_json::Value; 0], "{what}");
        running.release().expect("the program goes on");
    }
}

/// Threads asleep in calls that a stop would end with EINTR are shown in them, with their stacks, and stay asleep. The program
/// counts those that got what they waited for.
#[test]
fn sleepers_stay_asleep() {
    const CALLS: [&str; 5] = ["epoll_wait", "rt_sigtimedwait", "semtimedop", "recvfrom", "io_uring_enter"];
    for (toolchain, runtime) in combinations() {
        let what = format!("{toolchain:?} on {runtime:?}");
        let running = start("sleepers", toolchain, runtime);
        for _ in 0..20 {
            let (report, _) = common::json(&[&running.pid.to_string()]);
            let threads: Vec<&Value> = report["os_threads"].as_array().into_iter().flatten().collect();
            let mut uring = false;
            for call in CALLS {
                let inside: Vec<_> = threads.iter().filter(|thread| thread["blocked_in"] == call).collect();
                uring |= call == "io_uring_enter" && inside.len() == 1;
                let expected = if uring || call != "epoll_wait" { 1..=1 } else { 1..=2 };
                if call == "io_uring_enter" && inside.is_empty() {
                    Skip::because("this kernel has no io_uring for us").show();
                    continue;
                }
                assert!(expected.contains(&inside.len()), "{what}: {call}: {threads:#?}");
                let lwp = &inside[0]["lwp"];
                let stack = report["stacks"].as_array().into_iter().flatten().find(|stack| stack["lwp"] == *lwp);
                let stack = stack.unwrap_or_else(|| panic!("{what}: no stack of {lwp}")).to_string();
                assert!(stack.contains("sleeping_body"), "{what}: {call}: {stack}");
                // libomp calls bodies from a frame that is found by a register which only a stop shows.
                let whole = stack.contains("\"main\"") || runtime.is_kmp() && stack.contains("only a stop shows");
                assert!(whole, "{what}: {call}: {stack}");
            }
            let runtimes = report["runtimes"].as_array().into_iter().flatten();
            let teams = runtimes.flat_map(|runtime| runtime["teams"].as_array().into_iter().flatten());
            let members = teams.filter_map(|team| Some(team["members"].as_array()?.len())).max().unwrap_or(0);
            assert_eq!((members, common::hangs(&report).len()), (6, 0), "{what}: {report:#}");
        }
        let woken = running.release().expect("the program goes on").progress;
        assert_eq!(woken, 6, "{what}: some calls were ended early");
    }
}

/// A thread that was left asleep and woke before the others ran on is named: what was read is not of one moment.
#[test]
fn a_sleeper_that_woke_is_named() {
    let running = start("sleepers", Toolchain::Gcc, Runtime::Libgomp);
    let mut live = Live::open(running.pid, &OpenOptions::default()).expect("it can be inspected");
    live.stop().expect("stopped");
    live.resume().expect("it was stopped");
    assert!(live.woken().is_empty(), "{:?}", live.woken());
    live.stop_again().expect("stopped");
    let number = live.arch().machine.call_number("rt_sigtimedwait").expect("a number");
    let asleep = |thread: &&Thread| {
        thread.registers.as_ref().is_ok_and(|registers| registers.syscall.is_some_and(|call| call.number == number))
    };
    let sleeper = live.threads().iter().find(asleep).expect("a thread asleep").lwp;
    // SAFETY: takes plain numbers; the thread waits for this signal.
    let sent = unsafe { nix::libc::syscall(nix::libc::SYS_tgkill, running.pid, sleeper, nix::libc::SIGUSR1) };
    assert_eq!(sent, 0, "the signal is sent");
    let call =
        || fs::read_to_string(format!("/proc/{}/task/{sleeper}/syscall", running.pid)).expect("the thread lives");
    while call().starts_with(&format!("{number} ")) {
        std::thread::yield_now();
    }
    live.resume().expect("it was stopped");
    assert_eq!(live.woken(), [sleeper]);
    assert_eq!(running.release().expect("the program goes on").progress, 6);
}

#[test]
fn standard_output_that_is_closed_is_an_error() {
    let running = start("nested", Toolchain::Gcc, Runtime::Libgomp);
    let mut own = command();
    own.args(["threads", &running.pid.to_string()]);
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", "exec \"$@\" >&-", "sh"]).arg(own.get_program()).args(own.get_args());
    let output = shell.output().expect("a shell");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(2) && said.contains("standard output is closed"), "{}: {said}", output.status);
    running.release().expect("the program goes on");
}

/// What killed processes of libomp leave in /dev/shm is counted by doctor.
#[test]
fn doctor_counts_files_of_killed_processes() {
    let Some((toolchain, runtime)) = combinations().into_iter().find(|(_, runtime)| runtime.is_kmp()) else {
        return Skip::because("no libomp is here").show();
    };
    let running = start("nested", toolchain, runtime);
    let left = || -> usize {
        let (out, err, _) = texts(&bounded(command().args(["doctor", &running.pid.to_string()])));
        assert_eq!(err, "");
        let line = out.split("Files of killed processes").nth(1).and_then(|rest| rest.lines().nth(1));
        line.map_or(0, |line| line.trim().split(' ').next().expect("a number").parse().expect("a number"))
    };
    // No process has an id that large (PID_MAX_LIMIT).
    const FILES: usize = 64;
    let user = nix::unistd::getuid();
    let files: Vec<String> =
        (0..FILES).map(|n| format!("/dev/shm/__KMP_REGISTERED_LIB_{}_{user}", (1 << 22) + 1 + n)).collect();
    files.iter().for_each(|file| fs::write(file, b"").expect("a file"));
    let with = left();
    files.iter().for_each(|file| fs::remove_file(file).expect("it is there"));
    let without = left();
    assert!(with >= FILES && without < with, "{with} with {FILES} files more, {without} without");
    running.release().expect("the program goes on");
}

/// A thread that executes another program waits in the kernel for the end of all others to be collected, and holds a lock that a look
/// waits for. Both would wait for ever.
#[test]
fn a_process_that_executes_itself_is_not_held() {
    const LOOKS: usize = 300;
    let program = build("changing", Toolchain::Gcc, Opt::O2, &[]).expect("changing");
    let mut process = Launch::new(&program, Runtime::Libgomp, Env::Stock).argument("exec").spawn().expect("it starts");
    let mut line = String::new();
    process.stdout.read_line(&mut line).expect("a line");
    assert_eq!(line, "begun\n");
    let mut child = Ended(process.child);
    let pid = child.0.id().to_string();
    for _ in 0..LOOKS {
        let (out, err, status) = texts(&bounded(command().args(["--pause", "brief", "--samples", "1", &pid])));
        assert!(status < 2 || !err.is_empty(), "{out}");
    }
    assert!(child.0.try_wait().expect("its state").is_none(), "it works");
}

/// A process that is ended, whatever comes of the test.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
