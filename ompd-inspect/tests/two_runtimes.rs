//! Two OpenMP runtimes in one process, both at work: each is reported by itself, with its own threads and teams.

mod common;

use std::io::Write as _;

use serde_json::Value;
use test_programs::{Env, Launch, Opt, Runtime, Toolchain, build};

/// A copy of the system's libgomp under another name: the same code twice, as vendored copies are.
fn second_libgomp(directory: &std::path::Path) -> std::path::PathBuf {
    let copy = directory.join("libgomp-a1b2c3d4.so.1.0.0");
    std::fs::copy(Runtime::Libgomp.library().expect("the system's libgomp"), &copy).expect("copying the library");
    copy
}

fn check(report: &Value, truth: &test_programs::Truth, second: &str) {
    let runtimes = report["runtimes"].as_array().expect("runtimes");
    let own = runtimes.iter().find(|r| r["teams"][0]["size"]["value"] == 2).expect("the program's own runtime");
    let other = runtimes.iter().find(|r| r["teams"][0]["size"]["value"] == 3).expect("the second runtime");
    assert_eq!(own["family"], "gomp");
    assert!(other["path"].as_str().is_some_and(|p| p.ends_with(second)), "{}", other["path"]);
    let find = |runtime: &Value, lwp: i32| {
        runtime["threads"].as_array().expect("threads").iter().find(|t| t["lwp"] == lwp).cloned()
    };
    for thread in &truth.threads {
        let Some(number) = thread.role.strip_prefix("other ") else {
            let found = find(own, thread.lwp).expect("a thread of the own runtime");
            let api = thread.api.as_ref().expect("the API's answers");
            assert_eq!(found["thread_num"]["value"], api.thread_num);
            assert_eq!(
                found["wait"]["value"]["kind"],
                if api.thread_num == 1 { Value::Null } else { "barrier".into() }
            );
            assert_eq!(find(other, thread.lwp), None, "a thread in the wrong runtime");
            continue;
        };
        let number: u32 = number.parse().expect("a thread number");
        let found = find(other, thread.lwp).expect("a thread of the second runtime");
        assert_eq!(found["thread_num"]["value"], number);
        assert_eq!(other["teams"][0]["members"][number as usize], thread.lwp);
        assert_eq!(found["wait"]["value"]["kind"], if number == 1 { Value::Null } else { "barrier".into() });
        assert_eq!(find(own, thread.lwp), None, "a thread in the wrong runtime");
    }
    let _ = writeln!(
        std::io::stderr(),
        "two runtimes, libgomp and {second}: {} threads, all in the right one",
        truth.threads.len()
    );
}

fn run(library: &std::path::Path) {
    let program = build("two_runtimes", Toolchain::Gcc, Opt::O2, &[]).expect("the program builds");
    let library = library.to_str().expect("a plain path");
    let running = Launch::new(&program, Runtime::Libgomp, Env::Settled).argument(library).start().expect("it starts");
    let name = library.rsplit('/').next().expect("a file name");
    let (report, status) = common::json(&[&running.pid.to_string()]);
    assert_eq!(status, 0, "{}", report["issues"]);
    check(&report, &running.truth, name);
    let directory = tempfile::tempdir().expect("a directory for the core");
    match running.gcore(directory.path()).expect("gcore runs") {
        Ok(core) => {
            let (report, status) = common::json(&[core.to_str().expect("a plain path")]);
            assert_eq!(status, 0, "{}", report["issues"]);
            check(&report, &running.truth, name);
        }
        Err(skip) => skip.show(),
    }
    running.release().expect("it goes on to its end");
}

#[test]
fn a_second_copy_of_libgomp() {
    let directory = tempfile::tempdir().expect("a directory for the copy");
    run(&second_libgomp(directory.path()));
}

#[test]
fn libomp_and_libiomp5_beside_libgomp() {
    for runtime in [Runtime::Libomp14, Runtime::Libiomp5] {
        match runtime.library() {
            Ok(library) => run(&library),
            Err(skip) => skip.show(),
        }
    }
}
