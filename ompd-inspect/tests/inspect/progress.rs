//! What two looks tell of programs that stand still and of such that get on.

use crate::common;
use serde_json::Value;
use test_programs::{Env, Launch, Opt, Running, Runtime, Toolchain, build, combinations};

/// The report of two looks, a while apart.
fn two_looks(pid: i32) -> Value {
    common::json(&["waits", "--samples", "2", "--interval", "200ms", &pid.to_string()]).0
}

fn teams(report: &Value) -> &[Value] {
    report["progress"]["teams"].as_array().expect("teams are compared")
}

#[test]
fn what_hangs_does_not_move() {
    for (toolchain, runtime) in combinations() {
        let executable = build("hangs/lock_cycle", toolchain, Opt::O2, &[]).expect("the program builds");
        let running = Launch::new(&executable, runtime, Env::Stock).start_hanging().expect("the program hangs");
        let report = two_looks(running.pid);
        let what = format!("{toolchain:?} on {runtime:?}: {}", report["progress"]);
        assert!(report["progress"]["seconds"].as_f64().is_some_and(|s| s >= 0.2), "{what}");
        assert_eq!(report["progress"]["threads"].as_array().map(Vec::len), Some(4), "{what}");
        assert_eq!(teams(&report).len(), 1, "{what}");
        let team = &teams(&report)[0];
        assert_eq!((&team["moved"], &team["barriers_passed"]), (&Value::Bool(false), &Value::from(0)), "{what}");
        assert_eq!(report["verdicts"][0]["verdict"], "deadlock", "{what}");
    }
}

#[test]
fn what_gets_on_is_seen_to() {
    for (toolchain, runtime) in combinations() {
        for program in ["healthy/oversubscribed", "healthy/long_critical"] {
            let executable = build(program, toolchain, Opt::O2, &[]).expect("the program builds");
            let mut running = Launch::new(&executable, runtime, Env::Stock).start_healthy().expect("it starts");
            running.await_round(1).expect("it gets on");
            // On a machine with more to do than this the program may not have had its turn between two looks.
            let moves = |report: &Value| {
                let moved = teams(report).iter().any(|team| team["moved"] == true);
                moved || ["teams_begun", "teams_ended"].iter().any(|key| report["progress"][key] != 0)
            };
            let mut looks = (0..30).map(|_| two_looks(running.pid));
            let report = looks.find(moves).unwrap_or_else(|| panic!("{program} {toolchain:?} on {runtime:?}"));
            let what = format!("{program} {toolchain:?} on {runtime:?}: {}", report["progress"]);
            let cpu = report["progress"]["threads"].as_array().expect("threads are compared");
            assert!(cpu.iter().any(|t| t["cpu_seconds"].as_f64().is_some_and(|s| s > 0.0)), "{what}");
        }
    }
}

#[test]
fn a_core_file_does_not_change() {
    let program = build("idle", Toolchain::Gcc, Opt::O2, &[]).expect("the program builds");
    let running = Running::start(&program, Runtime::Libgomp, Env::Settled).expect("the program starts");
    let directory = tempfile::tempdir().expect("a directory for the core");
    let core = match running.gcore(directory.path()).expect("gcore runs") {
        Ok(core) => core,
        Err(skip) => return skip.show(),
    };
    let output = common::run(&["--samples", "2", core.to_str().expect("a plain path")]);
    let (out, error, status) = common::texts(&output);
    assert_eq!((out.as_str(), status), ("", 2));
    assert_eq!(
        error,
        "ompd-inspect: --samples needs a running process; this is a core file\n  remedy: leave out --samples\n"
    );
}
