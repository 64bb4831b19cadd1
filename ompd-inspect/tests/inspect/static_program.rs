//! A libgomp inside a statically linked program: read like the library as long as the program has its symbols.

use crate::common;
use std::process::Command;

use common::check;
use serde_json::Value;
use test_programs::{Env, Executable, Launch, Opt, Running, Runtime, Skip, Toolchain, compare, link_statically};

/// The program, linked that way; `None`, with the linker's words, where a static library is missing.
fn linked(program: &str, opt: Opt, flags: &[&str]) -> Option<Executable> {
    link_statically(program, opt, flags).inspect_err(Skip::show).ok()
}

/// Every way to link and optimise, live, then from a core file of the same stop.
fn everywhere(program: &str) {
    let mut differences = Vec::new();
    for link in ["-static", "-static-pie"] {
        for opt in Opt::ALL {
            let Some(executable) = linked(program, opt, &[link]) else { continue };
            let running = Running::start(&executable, Runtime::Libgomp, Env::Settled).expect("the program starts");
            let what = format!("{program} {link} {opt:?}");
            let pid = running.pid.to_string();
            let look = |what: &str, target: &str| check(what, &running.truth, Runtime::Libgomp, Toolchain::Gcc, target);
            differences.extend(look(&format!("{what}, live"), &pid));
            // Its code alone may leave something open, and nothing wrong.
            let (report, _) = common::json(&["--ignore-origin", "profile", &pid]);
            let alone = compare(&running.truth, &report, Runtime::Libgomp, Toolchain::Gcc);
            differences.extend(alone.differences.iter().map(|line| format!("{what}, code alone: {line}")));
            let directory = tempfile::tempdir().expect("a directory for the core");
            match running.gcore(directory.path()).expect("gcore runs") {
                Ok(core) => {
                    let core = core.to_str().expect("a plain path");
                    differences.extend(look(&format!("{what}, gcore"), core));
                }
                Err(skip) => skip.show(),
            }
            running.release().expect("the program goes on to its end after the inspections");
        }
    }
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
    for link in ["-static", "-static-pie"] {
        let Some(executable) = linked("crash", Opt::O2, &[link]) else { continue };
        let directory = tempfile::tempdir().expect("a directory for the core");
        let crashed = test_programs::crash_core(&executable, Runtime::Libgomp, Env::Settled, directory.path());
        match crashed.expect("the program crashes") {
            Ok(crashed) => {
                let core = crashed.core.to_str().expect("a plain path");
                let what = format!("crash {link}, kernel core");
                let differences = check(&what, &crashed.truth, Runtime::Libgomp, Toolchain::Gcc, core);
                assert!(differences.is_empty(), "{}", differences.join("\n"));
            }
            Err(skip) => skip.show(),
        }
    }
}

/// A program that asks for no control variable has none of the functions that tell where tasks are. Its internal ones
/// do.
#[test]
fn the_code_of_a_small_program_tells_its_tasks() {
    let Some(executable) = linked("hang", Opt::O2, &["-static"]) else { return };
    let hung = Launch::new(&executable, Runtime::Libgomp, Env::Settled).start_hang().expect("the program hangs");
    let (report, _) = common::json(&["--ignore-origin", "profile", &hung.pid.to_string()]);
    let runtime = &report["runtimes"][0];
    let threads = runtime["threads"].as_array().expect("threads");
    assert_eq!(threads.len(), 4);
    for (number, thread) in threads.iter().enumerate() {
        assert_eq!(thread["thread_num"]["value"], number, "{thread}");
        let task = thread["task"]["value"].as_u64().expect("its task is known");
        let task = &runtime["tasks"][usize::try_from(task).expect("a small index")];
        assert_eq!(task["lwp"], thread["lwp"], "{task}");
        assert_eq!((&task["kind"]["value"], &task["kind"]["origin"]), (&"implicit".into(), &"code".into()), "{task}");
    }
}

/// The program's own debug information is not libgomp's. A struct and a variable of the program with the names of
/// libgomp's do not mislead.
#[test]
fn what_the_program_calls_like_something_of_libgomp_is_its_own() {
    let directory = tempfile::tempdir().expect("a directory for a header");
    let header = directory.path().join("own.h");
    let own = "struct priority_node { int priority; struct priority_node *next; };\n\
        __attribute__((used)) struct priority_node own_queue;\n\
        __attribute__((used)) int default_lock, atomic_lock;\n\
        __attribute__((used, noinline)) static int gomp_critical_user_own(int n) { return n; }\n";
    std::fs::write(&header, own).expect("the header is written");
    let include = header.to_str().expect("a plain path");
    // Several definitions of the variables: the first source alone would do, but all get the header.
    let flags = ["-static", "-include", include, "-Wl,-z,muldefs"];
    let Some(executable) = linked("tasks", Opt::O2, &flags) else { return };
    let running = Running::start(&executable, Runtime::Libgomp, Env::Settled).expect("the program starts");
    let pid = running.pid.to_string();
    let mut wrong = check("own names", &running.truth, Runtime::Libgomp, Toolchain::Gcc, &pid);
    let (report, _) = common::json(&[&pid]);
    let origins = report["runtimes"][0]["origins"].as_array().expect("origins");
    wrong.extend(origins.iter().filter(|o| o["origin"] == "dwarf" && o["values"] != 0).map(Value::to_string));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    running.release().expect("it goes on to its end");
    std::fs::remove_file(&executable.path).expect("nobody can ask for it again");
}

/// Stripped, such a program names nothing. It is not said to be without a runtime; with its debug file it is read.
#[test]
fn a_stripped_program_is_said_to_be_unreadable() {
    let Some(executable) = linked("barrier_missing", Opt::O2, &["-static"]) else { return };
    let directory = tempfile::tempdir().expect("a directory for the debug file");
    let debug = directory.path().join("program.debug");
    let kept = Command::new("objcopy").arg("--only-keep-debug").args([&executable.path, &debug]).status();
    if !kept.is_ok_and(|status| status.success()) {
        return Skip::because("objcopy cannot be run").show();
    }
    let path = directory.path().join("program");
    let link = format!("--add-gnu-debuglink={}", debug.display());
    let stripped = Command::new("objcopy").args(["--strip-all", &link]).args([&executable.path, &path]).status();
    assert!(stripped.expect("objcopy ran before").success());
    let executable = Executable { path, ..executable };

    let running = Running::start(&executable, Runtime::Libgomp, Env::Settled).expect("the program starts");
    let pid = running.pid.to_string();
    let differences = check("stripped, with its debug file", &running.truth, Runtime::Libgomp, Toolchain::Gcc, &pid);
    assert!(differences.is_empty(), "{}", differences.join("\n"));

    std::fs::remove_file(&debug).expect("the debug file was there");
    let (report, status) = common::json(&[&pid]);
    assert_eq!((status, &report["complete"], &report["runtimes"]), (1, &false.into(), &Value::Array(Vec::new())));
    let issues = report["issues"].to_string();
    assert!(issues.contains("it has no symbols") && issues.contains("program"), "{issues}");
    let (text, _, status) = common::texts(&common::run(&[&pid]));
    assert_eq!(status, 1);
    assert!(text.contains("No OpenMP runtime was found in what has symbols"), "{text}");
    assert!(!text.contains("No OpenMP runtime is loaded"), "{text}");
    running.release().expect("it goes on to its end");
}

/// A public name of its own makes it one of a release that nobody knows: what only shipped layouts tell is then
/// unknown.
#[test]
fn a_program_with_a_name_like_a_public_one_gets_no_shipped_layout() {
    let Some(executable) = linked("lock", Opt::O2, &["-static", "-Wl,--defsym=omp_of_its_own=main"]) else { return };
    let running = Running::start(&executable, Runtime::Libgomp, Env::Settled).expect("the program starts");
    let (report, status) = common::json(&[&running.pid.to_string()]);
    assert_eq!(status, 1);
    let profile =
        report["runtimes"][0]["origins"].as_array().expect("origins").iter().find(|o| o["origin"] == "profile");
    let profile = profile.expect("the shipped profiles were asked");
    assert_eq!(profile["values"], 0, "{profile}");
    assert!(report["runtimes"][0]["threads"].as_array().is_some_and(|threads| !threads.is_empty()));
    let comparison = compare(&running.truth, &report, Runtime::Libgomp, Toolchain::Gcc);
    assert!(comparison.differences.is_empty(), "{:?}", comparison.differences);
    assert!(!comparison.lacking.is_empty());
    running.release().expect("it goes on to its end");
}
