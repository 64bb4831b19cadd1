//! `ompd-inspect run`: what it passes through, when it reports, and that nothing of the program is left.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use test_programs::{Env, Launch, Opt, Runtime, Toolchain, build};

use crate::common::{bounded, command, texts};

/// `ompd-inspect run` with these options, and a program of the shell.
fn shell(options: &[&str], script: &str) -> Command {
    let mut run = command();
    run.arg("run").args(options).args(["--", "sh", "-c", script]);
    run
}

/// `ompd-inspect run` with these options, and a test program.
fn program(options: &[&str], launch: &Launch) -> Command {
    let mut run = command();
    for (name, value) in launch.environment().expect("an environment") {
        match value {
            Some(value) => run.env(name, value),
            None => run.env_remove(name),
        };
    }
    run.arg("run").args(options).arg("--").arg(&launch.executable().path);
    run
}

fn is_gone(pid: i32) -> bool {
    !Path::new(&format!("/proc/{pid}")).exists()
}

/// Waits for the end of a child whose output has been taken in part.
fn finish(mut child: Child, mut out: impl std::io::Read) -> (String, Output) {
    let mut rest = String::new();
    out.read_to_string(&mut rest).expect("text");
    let mut err = Vec::new();
    child.stderr.take().expect("a pipe").read_to_end(&mut err).expect("text");
    let status = child.wait().expect("its end");
    (rest, Output { status, stdout: Vec::new(), stderr: err })
}

#[test]
fn a_program_that_ends_is_passed_through() {
    let mut child = shell(&["--timeout", "1m"], "cat; echo to-error >&2; exit 7")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command starts");
    child.stdin.take().expect("a pipe").write_all(b"from input\n").expect("it reads");
    let (out, err, status) = texts(&child.wait_with_output().expect("its end"));
    assert_eq!((out.as_str(), err.as_str(), status), ("from input\n", "to-error\n", 7));
    let (_, err, status) = texts(&bounded(&mut shell(&[], "kill -KILL $$")));
    assert_eq!((err.as_str(), status), ("", 137));
    let (out, _, status) = texts(&bounded(command().args(["run", "echo", "--json", "-v"])));
    assert_eq!((out.as_str(), status), ("--json -v\n", 0));
}

#[test]
fn a_program_that_cannot_be_started() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("no-program");
    fs::write(&file, "text").expect("a file");
    for (program, expected, word) in
        [(directory.path().join("missing"), 127, "there is no program"), (file, 126, "cannot be executed")]
    {
        let (out, err, status) = texts(&bounded(command().args(["run", "--"]).arg(program)));
        assert_eq!((out.as_str(), status), ("", expected), "{err}");
        assert!(err.contains(word) && err.contains("remedy: "), "{err}");
    }
    for (options, word) in [
        (&["--json"][..], "--on-hang"),
        (&["--name", "a"], "run has no option --name"),
        (&["--on-hang", "/none/report"], "cannot be written"),
        (&["--on-hang", "/"], "cannot be written"),
    ] {
        let (out, err, status) = texts(&bounded(&mut shell(options, "echo started")));
        assert_eq!((out.as_str(), status), ("", 125), "{err}");
        assert!(err.contains(word) && err.contains("remedy: "), "{err}");
    }
}

/// Runs a command whose program waits for its input to end; what that writes, what the command writes, and its status.
fn with_input_open(command: &mut Command) -> (String, String, i32) {
    let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the command starts");
    let input = child.stdin.take();
    let out = child.stdout.take().expect("a pipe");
    let (written, output) = finish(child, out);
    drop(input);
    let (_, err, status) = texts(&output);
    (written, err, status)
}

/// The report as JSON: one of several processes, and the verdict on all.
fn report(path: &PathBuf) -> Value {
    let report: Value = serde_json::from_slice(&fs::read(path).expect("the report")).expect("JSON");
    assert_eq!(report["schema"], "ompd-inspect-list/1");
    report
}

#[test]
fn a_program_that_hangs_is_reported_at_once_and_ended() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("report.json");
    fs::write(&path, "of an earlier run").expect("a file");
    let executable = build("hang", Toolchain::Gcc, Opt::O2, &[]).expect("the program builds");
    let launch = Launch::new(&executable, Runtime::Libgomp, Env::Settled);
    let options = ["--idle", "300ms", "--timeout", "100s", "--on-hang", path.to_str().expect("a plain path")];
    let (out, err, status) = texts(&bounded(&mut program(&options, &launch)));
    assert_eq!(status, 3, "{err}");
    let pid: i32 = out.trim().strip_prefix("relax: pid ").expect("its id").parse().expect("a number");
    assert!(err.starts_with("ompd-inspect: ") && err.contains(&format!("(process {pid}) hangs, ")), "{err}");
    assert!(err.contains("\nDEADLOCK  ") && err.contains("total_lock") && err.contains("hang.c:37"), "{err}");
    assert!(is_gone(pid));
    let report = report(&path);
    assert_eq!(report["verdict"], "deadlock");
    let processes = report["processes"].as_array().expect("processes");
    assert_eq!(processes.len(), 1);
    assert_eq!(processes[0]["report"]["process"]["pid"], pid);
    // The file took the place of the old one, and nothing else is there.
    assert_eq!(fs::read_dir(directory.path()).expect("the directory").count(), 1);
}

/// Threads of libomp wait for locks without sleep, so that the process is busy for ever.
#[test]
fn a_hang_whose_threads_spin_is_reported_too() {
    if let Err(skip) = Toolchain::Clang.check() {
        return skip.show();
    }
    let executable = build("hang", Toolchain::Clang, Opt::O2, &[]).expect("the program builds");
    let launch = Launch::new(&executable, Runtime::Libomp14, Env::Settled);
    let (_, err, status) = texts(&bounded(&mut program(&["--idle", "100ms"], &launch)));
    assert_eq!(status, 3, "{err}");
    assert!(err.contains("hangs, ") && err.contains("\nDEADLOCK  "), "{err}");
}

/// The command finds the libraries beside itself. Neither runtime keeps the owners of these locks. The lines that took them are the
/// program's, and not those of the library in front of libgomp, through which calls of the other runtime come too.
#[test]
fn a_program_that_is_recorded_gets_the_owners_of_its_locks_reported() {
    let directory = tempfile::tempdir().expect("a directory");
    let own = directory.path().join("ompd-inspect");
    fs::copy(env!("CARGO_BIN_EXE_ompd-inspect"), &own).expect("the command is copied");
    let run = |launch: &Launch| {
        let ready = program(&["--record", "--idle", "300ms", "--timeout", "60s"], launch);
        let mut run = Command::new(&own);
        run.args(ready.get_args());
        for (name, value) in ready.get_envs() {
            match value {
                Some(value) => run.env(name, value),
                None => run.env_remove(name),
            };
        }
        run
    };
    let mut found = false;
    for (toolchain, runtime) in [(Toolchain::Gcc, Runtime::Libgomp), (Toolchain::Clang, Runtime::Libomp14)] {
        if let Err(skip) = toolchain.check() {
            skip.show();
            continue;
        }
        let executable = build("hangs/lock_cycle", toolchain, Opt::O2, &[]).expect("the program builds");
        let launch = Launch::new(&executable, runtime, Env::Settled);
        if !found {
            let (_, err, status) = texts(&bounded(&mut run(&launch)));
            assert_eq!(status, 125, "{err}");
            assert!(err.contains("libompt_companion.so is not found") && err.contains("remedy: "), "{err}");
            for name in ["libompt_companion.so", "libgomp_ompt.so"] {
                fs::copy(test_programs::built_by_cargo(name), directory.path().join(name)).expect("it is copied");
            }
            found = true;
        }
        let (_, err, status) = with_input_open(&mut run(&launch));
        assert_eq!(status, 3, "{runtime:?}: {status}: {err}");
        let plain = err.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(plain.contains("each holds the lock that the other waits for"), "{runtime:?}: {err}");
        let holds = plain.split("held by thread ").skip(1).take(2).map(|after| after.contains("since lock_cycle.c:"));
        assert_eq!(holds.collect::<Vec<_>>(), [true, true], "{runtime:?}: {err}");
    }
    assert!(found, "no runtime was tried");
}

#[test]
fn a_child_process_that_hangs_is_reported() {
    let executable = build("hangs/fork_child", Toolchain::Gcc, Opt::O2, &[]).expect("the program builds");
    let launch = Launch::new(&executable, Runtime::Libgomp, Env::Settled);
    let (truth, err, status) = with_input_open(&mut program(&["--idle", "300ms"], &launch));
    assert_eq!(status, 3, "{err}");
    let plain = err.split_whitespace().collect::<Vec<_>>().join(" ");
    let found = plain.split_once("2 processes: DEADLOCK in 1 DEADLOCK ").expect("the overview").1;
    let pid: i32 = found.split(' ').next().expect("a word").parse().expect("a process id");
    assert!(truth.contains(&format!("\"pid\":{pid}")), "{pid}: {truth}");
    assert!(plain.contains("fork left behind"), "{err}");
    assert!(is_gone(pid));
}

#[test]
fn a_program_that_exceeds_its_time_is_reported_and_ended() {
    let (out, err, status) = texts(&bounded(&mut shell(&["--timeout", "300ms"], "echo $$; exec sleep 1000")));
    assert_eq!(status, 124, "{err}");
    let pid: i32 = out.trim().parse().expect("a process id");
    assert!(err.contains(&format!("ompd-inspect: sh (process {pid}) has not ended in ")), "{err}");
    assert!(err.contains(&format!("Process {pid} (sleep)")) && err.contains("No OpenMP runtime"), "{err}");
    assert!(is_gone(pid));
    // One that computes in a region.
    let executable = build("healthy/busy", Toolchain::Gcc, Opt::O2, &[]).expect("the program builds");
    let launch = Launch::new(&executable, Runtime::Libgomp, Env::Settled);
    let (_, err, status) = with_input_open(&mut program(&["--timeout", "2s"], &launch));
    assert_eq!(status, 124, "{err}");
    assert!(err.contains("OpenMP threads") && !err.contains("DEADLOCK"), "{err}");
}

#[test]
fn a_program_that_ignores_sigterm_is_killed_with_its_children() {
    let script = "trap '' TERM; sleep 1000 & echo $$ $!; while :; do sleep 1000; done";
    let (out, err, status) = texts(&bounded(&mut shell(&["--timeout", "300ms", "--kill-after", "200ms"], script)));
    assert_eq!(status, 124, "{err}");
    let pids: Vec<i32> = out.split_whitespace().map(|pid| pid.parse().expect("a process id")).collect();
    assert_eq!(pids.len(), 2);
    assert!(pids.iter().all(|pid| is_gone(*pid)), "{pids:?} are left");
}

#[test]
fn signals_are_passed_on() {
    for signal in [Signal::SIGTERM, Signal::SIGINT, Signal::SIGUSR1] {
        let script = format!(
            "trap 'kill $!; exit 9' {}; sleep 1000 >&- 2>&- & echo ready; wait; exit 8",
            signal.as_str().trim_start_matches("SIG")
        );
        let mut child =
            shell(&[], &script).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the command starts");
        let mut out = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut line = String::new();
        out.read_line(&mut line).expect("a line");
        assert_eq!(line, "ready\n");
        kill(Pid::from_raw(i32::try_from(child.id()).expect("a process id")), signal).expect("it is there");
        let (_, output) = finish(child, out);
        let (_, err, status) = texts(&output);
        assert_eq!((status, err.as_str()), (9, ""), "{signal}");
    }
}

/// What kills this process with no chance to clean up ends the program as well.
#[test]
fn the_program_does_not_outlive_the_command() {
    let mut child = shell(&[], "echo $$; exec sleep 1000").stdout(Stdio::piped()).spawn().expect("the command starts");
    let mut out = BufReader::new(child.stdout.take().expect("a pipe"));
    let mut line = String::new();
    out.read_line(&mut line).expect("a line");
    child.kill().expect("it is there");
    child.wait().expect("its end");
    // The pipe ends with the last process that has it.
    assert_eq!(out.read_to_string(&mut line).expect("the end of the pipe"), 0);
}
