//! `--debuginfod`, with a `debuginfod-find` of our own in `PATH` that knows nothing and writes down who asks.

#![allow(clippy::print_stderr, reason = "skips say why")]

use std::path::Path;
use std::process::Command;

use crate::common::{bounded, command, texts};
use test_programs::{Env, Opt, Running, Runtime, Toolchain, build, combinations};

/// What `doctor -v` shows of a process, and the calls there were.
fn doctor(dir: &Path, pid: i32, flags: &[&str]) -> (String, Vec<String>) {
    let log = dir.join("log");
    let _ = std::fs::remove_file(&log);
    let path = format!("{}:{}", dir.join("bin").display(), std::env::var("PATH").expect("PATH"));
    let mut command = command();
    command.args(["doctor", "-v"]).arg(pid.to_string()).args(flags);
    let output = bounded(command.env("PATH", path).env("SUBJECT", pid.to_string()));
    let (text, error, status) = texts(&output);
    assert_eq!((error.as_str(), status), ("", 0), "{text}");
    let calls = std::fs::read_to_string(&log).unwrap_or_default().lines().map(str::to_owned).collect();
    // Long lines are wrapped; words are what is looked for.
    (text.split_whitespace().collect::<Vec<_>>().join(" "), calls)
}

#[test]
fn servers_are_asked_only_when_allowed_and_only_before_the_stop() {
    if !combinations().contains(&(Toolchain::Gcc, Runtime::Libgomp)) {
        eprintln!("skipped: gcc has no libgomp here");
        return;
    }
    let temporary = tempfile::tempdir().expect("directory");
    let dir = temporary.path();
    std::fs::create_dir(dir.join("bin")).expect("directory");
    let script = format!(
        "#!/bin/sh\n\
         tracers=$(sed -n 's/^TracerPid:[[:space:]]*//p' /proc/$SUBJECT/task/*/status | sort -u)\n\
         echo \"$* tracers $tracers\" >>'{}/log'\n\
         echo 'nobody knows it' >&2\n\
         exit 1\n",
        dir.display()
    );
    std::fs::write(dir.join("script"), script).expect("script");
    // Not by this process: what it writes, a child of another test may hold open and keep from being executed.
    let mut install = Command::new("install");
    install.args(["-m", "755"]).arg(dir.join("script")).arg(dir.join("bin/debuginfod-find"));
    assert!(install.status().expect("install").success());

    let executable = build("barrier_missing", Toolchain::Gcc, Opt::O2, &[]).expect("the program builds");
    let running = Running::start(&executable, Runtime::Libgomp, Env::Settled).expect("the program starts");
    let (text, calls) = doctor(dir, running.pid, &[]);
    assert!(calls.is_empty() && !text.contains("debuginfod-find"), "{calls:?} {text}");
    if text.contains("has debug information itself") || text.contains(".debug: used") {
        eprintln!("skipped: the debug information of libgomp is installed here, so nobody needs to be asked");
        return;
    }

    let (text, calls) = doctor(dir, running.pid, &["--debuginfod"]);
    let id = text.split_once("build-id ").and_then(|(_, rest)| rest.split(' ').next()).expect("build-id");
    assert!(text.contains(&format!("debuginfod-find debuginfo {id}: nobody knows it")), "{text}");
    assert_eq!(calls.iter().filter(|c| **c == format!("debuginfo {id} tracers 0")).count(), 1, "{calls:?}");
    assert!(calls.iter().all(|c| c.ends_with(" tracers 0")), "{calls:?}");
}
