//! The whole report as gdb has it, against what the programs say of themselves: attached, and on cores.

use std::io::Write as _;
use std::path::Path;

use debugger_plugin::Gdb;
use serde_json::Value;
use test_programs::{
    Env, HANGS, Launch, Opt, Running, Runtime, STEADY_PROGRAMS, Toolchain, Truth, build, can_build, combinations,
    compare, compare_stacks, compare_verdicts, crash_core,
};

use crate::common::{has_gdb, library};

/// Programs that have no OpenMP, and whose threads sleep so shortly that they may have just been woken when gdb has stopped them.
const EXCEPT: [&str; 2] = ["not_openmp", "progress"];

fn differences(what: &str, truth: &Truth, report: &Value, runtime: Runtime, toolchain: Toolchain) -> Vec<String> {
    let found = compare(truth, report, runtime, toolchain);
    assert!(found.compared > 0 || truth.threads.is_empty(), "{what}: nothing was compared");
    found.all().map(|line| format!("{what}: {line}")).collect()
}

fn executable(running: &Running) -> std::path::PathBuf {
    std::fs::read_link(format!("/proc/{}/exe", running.pid)).expect("the program")
}

#[test]
fn what_threads_teams_and_tasks_are() {
    if !has_gdb() {
        return;
    }
    let mut wrong = Vec::new();
    let mut tried = 0;
    for program in STEADY_PROGRAMS.into_iter().filter(|name| !EXCEPT.contains(name)) {
        for (toolchain, runtime) in combinations() {
            let executable = build(program, toolchain, Opt::O2, &[]).expect("the program builds");
            let running = Running::start(&executable, runtime, Env::Settled).expect("the program starts");
            let what = format!("{program} {toolchain:?} on {runtime:?}");
            let report = Gdb::attached(&library(), &running).json("openmp status -json").expect("a report");
            wrong.extend(differences(&what, &running.truth, &report, runtime, toolchain));
            tried += 1;
            running.release().expect("the program goes on to its end");
        }
    }
    let _ = writeln!(std::io::stderr(), "{tried} processes under gdb, {} differences", wrong.len());
    assert!(tried > 0 || combinations().is_empty());
    assert!(wrong.is_empty(), "{} differences:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn the_same_in_cores_of_gcore_and_of_the_kernel() {
    if !has_gdb() {
        return;
    }
    let mut wrong = Vec::new();
    for (toolchain, runtime) in combinations() {
        let directory = tempfile::tempdir().expect("a directory");
        let program = build("nested", toolchain, Opt::O0, &[]).expect("the program builds");
        let running = Running::start(&program, runtime, Env::Settled).expect("the program starts");
        match running.gcore(directory.path()).expect("gcore runs") {
            Ok(core) => {
                let gdb = Gdb::core(&library(), &executable(&running), &core);
                let report = gdb.json("openmp status -json").expect("a report");
                let what = format!("gcore, {toolchain:?} on {runtime:?}");
                wrong.extend(differences(&what, &running.truth, &report, runtime, toolchain));
            }
            Err(skip) => skip.show(),
        }
        let directory = tempfile::tempdir().expect("another directory");
        let program = build("crash", toolchain, Opt::O2, &[]).expect("the program builds");
        let crashed = crash_core(&program, runtime, Env::Settled, directory.path()).expect("the program crashes");
        match crashed {
            Ok(crashed) => {
                let report = Gdb::core(&library(), Path::new(&program.path), &crashed.core)
                    .json("openmp status -json")
                    .expect("a report");
                let what = format!("kernel core, {toolchain:?} on {runtime:?}");
                wrong.extend(differences(&what, &crashed.truth, &report, runtime, toolchain));
            }
            Err(skip) => skip.show(),
        }
    }
    assert!(wrong.is_empty(), "{} differences:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn stacks_across_threads() {
    if !has_gdb() {
        return;
    }
    let mut wrong = Vec::new();
    for program in ["stacks", "stacks_cpp", "stacks_fortran"] {
        for (toolchain, runtime) in combinations() {
            if let Err(skip) = can_build(program, toolchain).expect("the sources are there") {
                skip.show();
                continue;
            }
            let executable = build(program, toolchain, Opt::O2, &[]).expect("the program builds");
            let running = Running::start(&executable, runtime, Env::Settled).expect("the program starts");
            let report = Gdb::attached(&library(), &running).json("openmp stacks -json").expect("stacks");
            let found = compare_stacks(&running.truth, &report, runtime, Opt::O2);
            wrong.extend(found.all().map(|line| format!("{program} {toolchain:?} on {runtime:?}: {line}")));
            assert!(found.compared > 0, "{program}: nothing was compared");
        }
    }
    assert!(wrong.is_empty(), "{} differences:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn verdicts() {
    if !has_gdb() {
        return;
    }
    let mut wrong = Vec::new();
    let mut tried = 0;
    for (number, case) in HANGS.iter().filter(|case| case.flags.is_empty()).enumerate() {
        let native = |(toolchain, runtime): &(Toolchain, Runtime)| {
            (*toolchain == Toolchain::Clang) == runtime.is_kmp()
                && case.works(*toolchain, *runtime)
                && can_build(case.program, *toolchain).expect("the sources are there").is_ok()
        };
        let here: Vec<_> = combinations().into_iter().filter(native).collect();
        // The runtimes in turn: what the plugin does with a verdict is the same on all.
        if let Some((toolchain, runtime)) = here.get(number % here.len().max(1)).copied() {
            let executable = build(case.program, toolchain, Opt::O2, case.flags).expect("the program builds");
            let running = Launch::new(&executable, runtime, Env::Settled).start_hanging().expect("the program hangs");
            wrong.extend(case.look(|| {
                let report = Gdb::attached(&library(), &running).json("openmp status -json").expect("waits");
                let found = compare_verdicts(&running.truth, &report, running.truth.owners_recorded(runtime));
                found.all().map(|line| format!("{} {toolchain:?} on {runtime:?}: {line}", case.program)).collect()
            }));
            tried += 1;
        }
    }
    assert!(tried > 0 || combinations().is_empty());
    assert!(wrong.is_empty(), "{} differences:\n{}", wrong.len(), wrong.join("\n"));
}
