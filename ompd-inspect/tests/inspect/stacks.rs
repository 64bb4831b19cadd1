//! Compares the stacks that `ompd-inspect` reads with those that the programs know of themselves. Every compiler,
//! optimisation level and runtime at hand, live and from core files.

use crate::common;
use std::io::Write as _;

use test_programs::{
    Env, Launch, Opt, Running, Runtime, Toolchain, Truth, build, can_build, combinations, compare_stacks,
};

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
    comparison.all().map(|line| format!("{what}: {line}")).collect()
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
    stacks_jump,
    stacks_regions,
    stacks_shared,
    stacks_jit,
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
            // A program without debug information is said to have none.
            let reasons = &report["without_lines"];
            let stripped = flags.contains(&"-s");
            assert_eq!(reasons.to_string().contains("no debug information"), stripped, "{what}: {reasons}");
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

/// The call of a taskloop executes other tasks than its own: what it was called for does not say what generated them.
#[test]
fn tasks_executed_by_a_taskloop() {
    let mut looked_at = 0;
    for (toolchain, runtime) in combinations() {
        for opt in [Opt::O0, Opt::O2] {
            let executable = build("stacks_taskloop", toolchain, opt, &[]).expect("the program builds");
            let running = Running::start(&executable, runtime, Env::Settled).expect("the program starts");
            let (report, _) = common::json(&["stacks", &running.pid.to_string()]);
            let stacks = report["stacks"].as_array().expect("a list of stacks");
            let frames = |stack: &serde_json::Value| stack["frames"].as_array().cloned().unwrap_or_default();
            let stack = stacks.iter().map(frames).find(|f| f.iter().any(|f| f["function"] == "grandchild"));
            let stack = stack.expect("a thread executes it");
            let what = format!("{toolchain:?} {opt:?} on {runtime:?}: {stack:#?}");
            let task = stack.iter().position(|frame| frame["construct"].is_string()).expect("it is a task");
            assert_eq!(stack[task]["construct"], "task", "{what}");
            assert_eq!(stack[task]["function"], "generate", "{what}");
            // What generated it is over, and is a task or not known. The call of the taskloop did not.
            assert!(stack[task + 1]["construct"].is_string(), "{what}");
            assert!(stack.iter().all(|frame| frame["function"] != "loop" || frame["construct"].is_string()), "{what}");
            running.release().expect("the program goes on to its end");
            looked_at += 1;
        }
    }
    assert!(looked_at > 0, "no toolchain and no runtime here: nothing was tested");
}

/// A program with a sanitizer built in exports the name of a function of the C library, and is not the C library.
#[test]
fn a_program_with_a_sanitizer_built_in() {
    let flags = ["-fsanitize=address", "-static-libasan"];
    let executable = match build("stacks", Toolchain::Gcc, Opt::O0, &flags) {
        Ok(executable) => executable,
        Err(why) if format!("{why:#}").contains("cannot find") => {
            test_programs::Skip::because(format!("no static sanitizer here: {why:#}")).show();
            return;
        }
        Err(why) => panic!("{why:#}"),
    };
    let running = Running::start(&executable, Runtime::Libgomp, Env::Settled).expect("the program starts");
    let (report, _) = common::json(&["stacks", &running.pid.to_string()]);
    let stacks = report["stacks"].as_array().expect("a list of stacks");
    for told in &running.truth.stacks {
        let stack = stacks.iter().find(|stack| stack["lwp"] == told.lwp).expect("every thread has a stack");
        let functions: Vec<_> = stack["frames"].as_array().into_iter().flatten().map(|f| &f["function"]).collect();
        assert!(functions.contains(&&serde_json::json!("main")), "{told:?}: {stack:#?}");
    }
    // It is not released: its marks live for ever, which the sanitizer reports as leaks.
}

/// Threads in no region have no stack to show, and are said to be idle; the one that made them has its own.
#[test]
fn idle_threads() {
    let mut compared = 0;
    for (toolchain, runtime) in combinations() {
        let executable = build("idle", toolchain, Opt::O2, &[]).expect("the program builds");
        let running = Running::start(&executable, runtime, Env::Settled).expect("the program starts");
        let (report, _) = common::json(&[&running.pid.to_string()]);
        for thread in &running.truth.threads {
            let stacks = report["stacks"].as_array().expect("stacks");
            let stack = stacks.iter().find(|s| s["lwp"] == thread.lwp).expect("a stack of the thread");
            let idle = thread.wait == test_programs::Wait::Idle;
            assert_eq!(stack["idle"], idle, "{runtime:?}, {}: {stack}", thread.role);
            let frames = stack["frames"].as_array().expect("frames");
            assert_eq!(frames.is_empty(), idle, "{runtime:?}, {}: {stack}", thread.role);
            assert!(stack["gap"].is_null(), "{runtime:?}, {}: {stack}", thread.role);
            compared += usize::from(idle);
        }
        running.release().expect("the program goes on to its end");
    }
    assert!(compared > 0, "no idle thread was looked at");
}

/// Whatever Numba's threads do, their stacks lead through its code to where they began.
#[test]
fn stacks_through_code_that_numba_made() {
    /// Looks at the process; in most of them all threads are in the region.
    const LOOKS: usize = 5;
    let launch = match Launch::python("jit_loop", Env::Stock) {
        Ok(launch) => launch,
        Err(skip) => return skip.show(),
    };
    let running = launch.start_healthy().expect("the script starts");
    let check = |target: &str| {
        let (report, _) = common::json(&["stacks", target]);
        let stacks = report["stacks"].as_array().expect("a list of stacks");
        let ends: Vec<&str> = stacks.iter().filter_map(|stack| stack["end"].as_str()).collect();
        assert!(!ends.iter().any(|end| end.contains("no mapped file")), "{target}: {ends:?}");
        let made = |frame: &serde_json::Value| frame["module"] == "[JIT code]";
        let through = |stack: &serde_json::Value| stack["frames"].as_array().is_some_and(|all| all.iter().any(made));
        let region = &report["runtimes"][0]["teams"][0];
        region["function"]["value"]["name"] == "parallel_for._omp_fn.0"
            && stacks.iter().filter(|stack| through(stack)).count() == 3
            && stacks.iter().any(|stack| {
                let names = stack["frames"].as_array().into_iter().flatten().filter_map(|f| f["function"].as_str());
                names.filter(|name| *name == "__main__::total").count() == 1
            })
    };
    let pid = running.pid.to_string();
    assert!((0..LOOKS).filter(|_| check(&pid)).count() > 0, "never were all threads in the region");
    let directory = tempfile::tempdir().expect("a directory for the core");
    match running.gcore(directory.path()).expect("gcore runs") {
        Ok(core) => {
            check(core.to_str().expect("a plain path"));
        }
        Err(skip) => skip.show(),
    }
}

/// The members execute the code of the one region, by GCC's debug information, as the body of the other.
#[test]
fn a_body_whose_code_is_that_of_another_region() {
    for (toolchain, runtime) in combinations() {
        let program = build("folded", toolchain, Opt::O2, &[]).expect("the program builds");
        let running = Running::start(&program, runtime, Env::Settled).expect("the program starts");
        let what = format!("{toolchain:?} on {runtime:?}");
        for view in ["teams", "stacks"] {
            let (text, error, status) = common::texts(&common::run(&[view, &running.pid.to_string()]));
            assert_eq!(status, 0, "{what}: {text}{error}");
            assert!(text.contains("parallel in called"), "{what}: {text}");
            assert!(!text.contains("parallel in never_called"), "{what}: {text}");
        }
        running.release().expect("the program leaves");
    }
}
