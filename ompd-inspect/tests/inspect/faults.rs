//! What the system refuses while the command looks. `ci/faults` lets every call fail; here are those whose failure was once taken for
//! something else.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::common::{self, bounded, texts};
use serde_json::Value;
use test_programs::{Env, Launch, Opt, Running, Runtime, Skip, Toolchain, await_all_blocked, build};

/// A process whose four threads hang, all asleep.
fn hanging() -> Result<Running, Skip> {
    Toolchain::Gcc.check()?;
    if Command::new("strace").arg("-V").output().is_err() {
        return Err(Skip::because("strace, which lets system calls fail, is not here"));
    }
    let program = build("hangs/lock_cycle", Toolchain::Gcc, Opt::O2, &[]).expect("lock_cycle");
    Ok(Launch::new(&program, Runtime::Libgomp, Env::Settled).start_hanging().expect("it hangs"))
}

/// The command under strace, with these options for it.
fn traced(options: &[&str], args: &[&str]) -> Output {
    let mut command = Command::new("strace");
    command.args(["-f", "-qq"]).args(options).arg(env!("CARGO_BIN_EXE_ompd-inspect")).args(args);
    bounded(command.env("NO_COLOR", "1").env("XDG_CACHE_HOME", "/nonexistent"))
}

/// Which of the calls of one thread, counted from 1, is the first with this text.
fn number_of(log: &Path, call: &str, text: &str) -> usize {
    let log = std::fs::read_to_string(log).expect("the log of strace");
    let made =
        || log.lines().filter_map(|line| line.split_once(' ')).filter(|(_, rest)| rest.trim_start().starts_with(call));
    let (thread, _) = made().find(|(_, rest)| rest.contains(text)).expect("such a call");
    let own = made().filter(|(of, _)| *of == thread);
    1 + own.map(|(_, rest)| rest).position(|rest| rest.contains(text)).expect("that call")
}

/// The kernel lets the command sleep until the page comes, whatever signals it gets. The process must not wait with it.
#[test]
fn a_page_that_never_comes_ends_the_command_and_not_the_process() {
    if let Err(skip) = Toolchain::Gcc.check() {
        return skip.show();
    }
    if !cfg!(target_arch = "x86_64") {
        return Skip::because("the program changes its stack by instructions of x86-64").show();
    }
    let program = build("unsupplied", Toolchain::Gcc, Opt::O0, &[]).expect("it builds");
    let mut command = Command::new(&program.path);
    let mut child = command.env("OMP_WAIT_POLICY", "passive").stdout(Stdio::piped()).spawn().expect("it starts");
    let mut line = String::new();
    BufReader::new(child.stdout.take().expect("its output")).read_line(&mut line).expect("a line");
    if line == "refused\n" {
        child.wait().expect("its end");
        return Skip::because("this kernel does not let programs supply pages (vm.unprivileged_userfaultfd)").show();
    }
    let pid = child.id().cast_signed();
    await_all_blocked(pid, 2, false).expect("both sleep");
    let tasks = || std::fs::read_dir(format!("/proc/{pid}/task")).expect("threads").flatten();
    let pid = pid.to_string();
    let (out, err, status) = texts(&common::run(&["--pause", "brief", "--max-pause", "200", &pid]));
    assert_eq!((out.as_str(), status), ("", 2), "{err}");
    assert!(err.contains("a read of its memory does not end") && err.contains("remedy: "), "{err}");
    for task in tasks() {
        let status = std::fs::read_to_string(task.path().join("status")).expect("its status");
        assert!(status.contains("TracerPid:\t0\n") && status.contains("State:\tS"), "{status}");
    }
    child.kill().expect("it lives");
    child.wait().expect("its end");
}

#[test]
fn registers_that_cannot_be_read_are_an_issue() {
    let running = match hanging() {
        Ok(running) => running,
        Err(skip) => return skip.show(),
    };
    let args = ["--json", "--samples", "1", "--pause", "brief", &running.pid.to_string()];
    let log = tempfile::NamedTempFile::new().expect("a file");
    traced(&["-etrace=ptrace", "-o", &log.path().display().to_string()], &args);
    let number = number_of(log.path(), "ptrace(", "PTRACE_GETREGS");
    let fault = format!("-einject=ptrace:error=EPERM:when={number}");
    let (out, err, status) = texts(&traced(&["-etrace=ptrace", &fault, "-o", "/dev/null"], &args));
    assert_eq!((status, err.as_str()), (1, ""), "{out}");
    let report: Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!(report["complete"], false);
    let issue = report["issues"][0]["text"].as_str().expect("an issue");
    assert!(issue.starts_with("the registers of these threads cannot be read") && issue.contains("EPERM"), "{issue}");
}

/// A thread that cannot be stopped runs on. It was taken for one that has ended, and what waits for it for stuck.
#[test]
fn a_thread_that_cannot_be_stopped_is_not_taken_for_one_that_has_ended() {
    let running = match hanging() {
        Ok(running) => running,
        Err(skip) => return skip.show(),
    };
    let pid = running.pid.to_string();
    for (call, error) in [("wait4", "ECHILD"), ("ptrace", "ESRCH")] {
        let fault = format!("-einject={call}:error={error}:when=1");
        let trace = format!("-etrace={call}");
        let output = traced(&[&trace, &fault, "-o", "/dev/null"], &["--samples", "1", "--pause", "brief", &pid]);
        let (out, err, status) = texts(&output);
        assert_eq!((status, out.as_str()), (2, ""), "{err}");
        assert!(err.contains("could not be stopped") && err.contains("though it has not ended"), "{err}");
        assert!(err.contains("\n  remedy: run the command again"), "{err}");
    }
}

/// Which of the calls of `pread64` of one thread, counted from 1, is its last with this text.
fn last_of(log: &Path, text: &str) -> usize {
    let log = std::fs::read_to_string(log).expect("the log of strace");
    let calls: Vec<(&str, &str)> =
        log.lines().filter_map(|line| line.split_once(' ')).filter(|(_, call)| call.contains("pread64(")).collect();
    let last = calls.iter().rposition(|(_, call)| call.contains(text)).expect("such a call");
    calls[..=last].iter().filter(|(thread, _)| *thread == calls[last].0).count()
}

/// What is in that part may show who can end the hang: less is not more certain.
#[test]
fn nothing_is_proven_by_a_core_of_which_a_part_cannot_be_read() {
    let running = match hanging() {
        Ok(running) => running,
        Err(skip) => return skip.show(),
    };
    let directory = tempfile::tempdir().expect("a directory");
    let core = match running.gcore(directory.path()).expect("gcore works") {
        Ok(core) => core.display().to_string(),
        Err(skip) => return skip.show(),
    };
    let args = ["--json", &core];
    let log = tempfile::NamedTempFile::new().expect("a file");
    let (out, ..) = texts(&traced(&["-y", "-etrace=pread64", "-o", &log.path().display().to_string()], &args));
    let whole: Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!((&whole["answer"]["word"], &whole["complete"]), (&"DEADLOCK".into(), &true.into()));
    let fault = format!("-einject=pread64:error=EIO:when={}", last_of(log.path(), &core));
    let (out, err, status) = texts(&traced(&["-etrace=pread64", &fault, "-o", "/dev/null"], &args));
    assert_eq!((status, err.as_str()), (1, ""), "{out}");
    let report: Value = serde_json::from_str(&out).expect("JSON");
    assert_ne!(report["answer"]["word"], "DEADLOCK");
    let issues = report["issues"].to_string();
    assert!(issues.contains("a part of the core file cannot be read"), "{issues}");
}

#[test]
fn a_file_that_cannot_be_read_to_its_end_is_an_issue() {
    let running = match hanging() {
        Ok(running) => running,
        Err(skip) => return skip.show(),
    };
    let args = ["--json", "--samples", "1", &running.pid.to_string()];
    let log = tempfile::NamedTempFile::new().expect("a file");
    traced(&["-etrace=pread64", "-o", &log.path().display().to_string()], &args);
    let calls = last_of(log.path(), "");
    // The last part that is wanted of any file; the first ones are headers, without which it is not opened.
    let fault = format!("-einject=pread64:error=EIO:when={calls}");
    let (out, err, status) = texts(&traced(&["-etrace=pread64", &fault, "-o", "/dev/null"], &args));
    assert_eq!((status, err.as_str()), (1, ""), "{out}");
    let report: Value = serde_json::from_str(&out).expect("JSON");
    let issue = report["issues"][0]["text"].as_str().expect("an issue");
    assert!(issue.contains("cannot be read (Input/output error"), "{issue}");
}
