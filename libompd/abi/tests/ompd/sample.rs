//! The sample debugger of docs/for-debuggers.md, built as the page says, on a process that hangs and on its core.

use std::fs;
use std::path::Path;
use std::process::Command;

use test_programs::{Env, Launch, Opt, Skip, Toolchain, build, combinations};

use crate::client::library;

/// Lines of the sample, so that it stays one to read.
const MOST_LINES: usize = 400;

#[test]
fn the_sample_debugger_explains_a_hang_and_its_core() {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR"));
    let source = sources.join("examples/debugger.c");
    assert!(fs::read_to_string(&source).expect("the sample").lines().count() < MOST_LINES);
    let directory = tempfile::tempdir().expect("a directory");
    let debugger = directory.path().join("debugger");
    let mut compiler = Command::new("gcc");
    compiler.args(["-O1", "-Wall", "-Wextra", "-Werror", "-std=gnu11"]).arg("-I").arg(sources.join("include"));
    match compiler.arg(&source).arg("-o").arg(&debugger).arg("-ldl").output() {
        Ok(output) => assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr)),
        Err(why) => return Skip::because(format!("gcc cannot be run: {why}")).show(),
    }
    let run = |target: &str| {
        let output = Command::new(&debugger).arg(library()).arg(target).output().expect("the sample runs");
        (String::from_utf8_lossy(&output.stdout).into_owned(), output)
    };
    for (toolchain, runtime) in combinations().into_iter().filter(|(toolchain, _)| *toolchain == Toolchain::Gcc) {
        if runtime.is_kmp() {
            continue;
        }
        let executable = build("hangs/lock_cycle", toolchain, Opt::O2, &[]).expect("it builds");
        let running = Launch::new(&executable, runtime, Env::Settled).start_hanging().expect("it hangs");
        let shows = |target: &str| {
            let (text, output) = run(target);
            assert!(output.status.success(), "{target}: {output:?}");
            assert!(text.contains("DEADLOCK") && text.contains("lock_cycle.c"), "{target}: {text}");
            for thread in &running.truth.threads {
                assert!(text.contains(&format!("{}  team of 4, level 1, state 0x", thread.lwp)), "{target}: {text}");
            }
        };
        shows(&running.pid.to_string());
        // Nothing traces it any more, and none of its threads is stopped.
        for thread in &running.truth.threads {
            let path = format!("/proc/{}/task/{}/status", running.pid, thread.lwp);
            let status = fs::read_to_string(path).expect("the thread is there");
            let has = |line: &str| status.lines().any(|own| own.starts_with(line));
            assert!(has("TracerPid:\t0") && !has("State:\tt") && !has("State:\tT"), "{status}");
        }
        match running.gcore(directory.path()).expect("gcore runs") {
            Ok(core) => shows(core.to_str().expect("a path of text")),
            Err(skip) => skip.show(),
        }
    }
    let (_, refused) = run(env!("CARGO_MANIFEST_PATH"));
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
}
