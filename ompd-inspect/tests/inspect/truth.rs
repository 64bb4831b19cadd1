//! Compares what `ompd-inspect` says of a process with what the process says of itself, field by field. Every test
//! program, compiler and runtime at hand, live and from core files.

use crate::common;
use common::check;
use test_programs::{Env, Opt, Running, build, combinations};

/// Every compiler, optimisation level and runtime at hand; live, then from a core file of the same stop.
fn everywhere(program: &str) {
    let mut differences = Vec::new();
    let mut compared = 0;
    for (toolchain, runtime) in combinations() {
        for opt in [Opt::O0, Opt::O2] {
            let executable = build(program, toolchain, opt, &[]).expect("the program builds");
            let running = Running::start(&executable, runtime, Env::Settled).expect("the program starts");
            let what = format!("{program} {toolchain:?} {opt:?} on {runtime:?}");
            let pid = running.pid.to_string();
            differences.extend(check(&format!("{what}, live"), &running.truth, runtime, toolchain, &pid));
            compared += 1;
            let directory = tempfile::tempdir().expect("a directory for the core");
            match running.gcore(directory.path()).expect("gcore runs") {
                Ok(core) => {
                    let core = core.to_str().expect("a plain path");
                    differences.extend(check(&format!("{what}, gcore"), &running.truth, runtime, toolchain, core));
                }
                Err(skip) => skip.show(),
            }
            running.release().expect("the program goes on to its end after the inspections");
        }
    }
    assert!(compared > 0, "no compiler and runtime to compare with");
    assert!(differences.is_empty(), "{} differences:\n{}", differences.len(), differences.join("\n"));
}

macro_rules! programs {
    ($($name:ident),*) => {
        $( #[test] fn $name() { everywhere(stringify!($name)); } )*
    };
}

programs!(nested, lock, tasks, barrier_missing, region_end, idle, user_pthread, serialized, icvs);

/// A crash in the middle of a nested region, as the kernel wrote it down.
#[test]
fn crash() {
    let mut differences = Vec::new();
    for (toolchain, runtime) in combinations() {
        for opt in [Opt::O0, Opt::O2] {
            let executable = build("crash", toolchain, opt, &[]).expect("the program builds");
            let directory = tempfile::tempdir().expect("a directory for the core");
            let crashed = test_programs::crash_core(&executable, runtime, Env::Settled, directory.path());
            match crashed.expect("the program crashes") {
                Ok(crashed) => {
                    let what = format!("crash {toolchain:?} {opt:?} on {runtime:?}, kernel core");
                    let core = crashed.core.to_str().expect("a plain path");
                    differences.extend(check(&what, &crashed.truth, runtime, toolchain, core));
                }
                Err(skip) => skip.show(),
            }
        }
    }
    assert!(differences.is_empty(), "{} differences:\n{}", differences.len(), differences.join("\n"));
}

/// Stripped program on the stripped system libraries, without a single OpenMP variable: what users have.
#[test]
fn stripped_and_unprepared() {
    let mut differences = Vec::new();
    for (toolchain, runtime) in combinations() {
        let executable = build("barrier_missing", toolchain, Opt::O2, &["-s"]).expect("the program builds");
        let running = Running::start(&executable, runtime, Env::Stock).expect("the program starts");
        let what = format!("barrier_missing {toolchain:?} stripped, no variables, on {runtime:?}, live");
        differences.extend(check(&what, &running.truth, runtime, toolchain, &running.pid.to_string()));
        running.release().expect("the program goes on to its end");
    }
    assert!(differences.is_empty(), "{} differences:\n{}", differences.len(), differences.join("\n"));
}
