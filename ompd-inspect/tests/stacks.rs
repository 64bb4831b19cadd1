//! Stacks as `ompd-inspect` reads them against the stacks the programs know of themselves: every compiler, optimisation
//! level and runtime at hand, live and from core files.

mod common;

use std::io::Write as _;

use test_programs::{Env, Opt, Running, Runtime, Toolchain, Truth, build, can_build, combinations, compare_stacks};

fn check(what: &str, truth: &Truth, runtime: Runtime, opt: Opt, target: &str) -> Vec<String> {
    let (report, _) = common::json(&[target]);
    let comparison = compare_stacks(truth, &report, runtime, opt);
    // Directly, so that it is seen for passing tests as well.
    let _ = writeln!(
        std::io::stderr(),
        "{what}: {} stacks, {} values compared, {} differ, {} unknown",
        truth.stacks.len(),
        comparison.compared,
        comparison.differences.len(),
        comparison.unknown.len()
    );
    let all = [&comparison.differences, &comparison.unknown, &comparison.lacking];
    all.into_iter().flatten().map(|line| format!("{what}: {line}")).collect()
}

fn everywhere(program: &str) {
    let mut differences = Vec::new();
    let mut compared = 0;
    for (toolchain, runtime) in combinations() {
        if let Err(skip) = can_build(program, toolchain).expect("the sources are there") {
            skip.show();
            continue;
        }
        for opt in [Opt::O0, Opt::O2, Opt::O3] {
            let executable = build(program, toolchain, opt, &[]).expect("the program builds");
            let running = Running::start(&executable, runtime, Env::Settled).expect("the program starts");
            let what = format!("{program} {toolchain:?} {opt:?} on {runtime:?}");
            let pid = running.pid.to_string();
            differences.extend(check(&format!("{what}, live"), &running.truth, runtime, opt, &pid));
            compared += 1;
            let directory = tempfile::tempdir().expect("a directory for the core");
            match running.gcore(directory.path()).expect("gcore runs") {
                Ok(core) => {
                    let core = core.to_str().expect("a plain path");
                    differences.extend(check(&format!("{what}, gcore"), &running.truth, runtime, opt, core));
                }
                Err(skip) => skip.show(),
            }
            running.release().expect("the program goes on to its end after the inspections");
        }
    }
    assert!(compared > 0 || can_build(program, Toolchain::Gcc).is_ok_and(|can| can.is_err()), "nothing was compared");
    assert!(differences.is_empty(), "{} differences:\n{}", differences.len(), differences.join("\n"));
}

macro_rules! programs {
    ($($name:ident),*) => {
        $( #[test] fn $name() { everywhere(stringify!($name)); } )*
    };
}

programs!(
    stacks,
    stacks_tail,
    stacks_shared,
    stacks_pthread,
    stacks_orphan,
    stacks_teams,
    stacks_cpp,
    stacks_fortran,
    stacks_signal
);

/// Statically linked, stripped, and stripped of all but what dynamic linking needs.
#[test]
fn static_and_stripped() {
    let mut differences = Vec::new();
    for program in ["stacks", "stacks_tail", "stacks_pthread", "stacks_cpp"] {
        if let Err(skip) = can_build(program, Toolchain::Gcc).expect("the sources are there") {
            skip.show();
            continue;
        }
        for flags in [&["-static"][..], &["-s"], &["-static", "-s"]] {
            let executable = match build(program, Toolchain::Gcc, Opt::O2, flags) {
                Ok(executable) => executable,
                Err(why) if format!("{why:#}").contains("cannot find -l") => {
                    test_programs::Skip::because(format!("no static libraries here: {why:#}")).show();
                    continue;
                }
                Err(why) => panic!("{why:#}"),
            };
            let running = Running::start(&executable, Runtime::Libgomp, Env::Settled).expect("the program starts");
            let (report, _) = common::json(&[&running.pid.to_string()]);
            let comparison = compare_stacks(&running.truth, &report, Runtime::Libgomp, Opt::O2);
            let what = format!("{program} {flags:?}");
            let _ = writeln!(
                std::io::stderr(),
                "{what}: {} values compared, {} differ, {} unknown",
                comparison.compared,
                comparison.differences.len(),
                comparison.unknown.len() + comparison.lacking.len()
            );
            differences.extend(comparison.differences.iter().map(|line| format!("{what}: {line}")));
            if flags == ["-static"] {
                let unknown = comparison.unknown.iter().chain(&comparison.lacking);
                differences.extend(unknown.map(|line| format!("{what}: {line}")));
            }
            running.release().expect("the program goes on to its end");
        }
    }
    assert!(differences.is_empty(), "{} differences:\n{}", differences.len(), differences.join("\n"));
}
