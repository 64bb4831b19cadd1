//! Two OpenMP runtimes in one process, both at work: each is reported by itself, with its own threads and teams.

use crate::common;
use std::io::Write as _;

use serde_json::Value;
use test_programs::{Env, Launch, Opt, Runtime, Toolchain, build};

/// A copy of the system's libgomp under another name: the same code twice, as vendored copies are.
fn second_libgomp(directory: &std::path::Path) -> std::path::PathBuf {
    let copy = directory.join("libgomp-a1b2c3d4.so.1.0.0");
    std::fs::copy(Runtime::Libgomp.library().expect("the system's libgomp"), &copy).expect("copying the library");
    copy
}

/// What is remarked on several runtimes.
fn remark(report: &Value) -> &Value {
    let all = report["remarks"].as_array().expect("remarks");
    all.iter().find(|r| r["kind"] == "several_runtimes").unwrap_or_else(|| panic!("no remark on runtimes: {all:?}"))
}

fn check(report: &Value, truth: &test_programs::Truth, second: &str) {
    let text = remark(report)["text"].as_str().expect("text");
    assert!(text.starts_with("2 OpenMP runtimes are at work in this process, each with its own threads: "), "{text}");
    assert!(text.contains(&format!("{second} has 3 threads")) && text.contains(" has 2 threads"), "{text}");
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

/// Where the report puts a thread: for each runtime by the place of its file, team and number, the outermost first.
fn places(report: &Value, lwp: i32) -> Option<Vec<(String, u64)>> {
    let nested = report["nested_runtimes"].as_array().expect("nested_runtimes");
    let found = nested.iter().find(|n| n["lwp"] == lwp)?;
    assert_eq!(found["outermost_known"], true, "{found}");
    let place = |place: &Value| {
        let runtime = &report["runtimes"][place["runtime"].as_u64().expect("an index") as usize];
        let path = runtime["path"].as_str().expect("a path");
        let number = place["thread_num"].as_u64().expect("a thread number");
        let team = place["team"].as_u64().expect("a team") as usize;
        assert_eq!(runtime["teams"][team]["members"][number as usize], lwp, "{found}");
        (path.rsplit('/').next().expect("a name").to_owned(), number)
    };
    Some(found["places"].as_array().expect("places").iter().map(place).collect())
}

/// Three runtimes, a region of each inside one of the one before: the system's libgomp, a copy of it, and Intel's.
#[test]
fn three_runtimes_nested() {
    let directory = tempfile::tempdir().expect("a directory for the copy");
    let copy = second_libgomp(directory.path());
    let intel = match Runtime::Libiomp5.library() {
        Ok(library) => library,
        Err(skip) => return skip.show(),
    };
    let program = build("nested_runtimes", Toolchain::Gcc, Opt::O2, &[]).expect("the program builds");
    let path = |library: &std::path::Path| library.to_str().expect("a plain path").to_owned();
    let launch = Launch::new(&program, Runtime::Libgomp, Env::Settled);
    let running = launch.argument(&path(&copy)).argument(&path(&intel)).start().expect("it starts");
    let truth = &running.truth;
    let lwp = |role: &str| truth.threads.iter().find(|t| t.role == role).expect("a thread of that role").lwp;

    let (report, status) = common::json(&[&running.pid.to_string()]);
    assert_eq!(status, 0, "{}", report["issues"]);
    let name = |library: &std::path::Path| library.file_name().expect("a name").to_string_lossy().into_owned();
    let own = Runtime::Libgomp.library().map(|l| l.canonicalize().expect("the system's libgomp"));
    let own = name(&own.expect("the system's libgomp"));
    let (a, b) = (name(&copy), name(&intel));
    assert_eq!(places(&report, lwp("own 1, a 0")), Some(vec![(own.clone(), 1), (a.clone(), 0)]));
    assert_eq!(places(&report, lwp("a 2, b 0")), Some(vec![(a.clone(), 2), (b.clone(), 0)]));
    for role in ["own 0", "a 1", "b 1", "b 2", "b 3"] {
        assert_eq!(places(&report, lwp(role)), None, "{role} is in one runtime only");
    }
    assert_eq!(report["crowd"]["threads"], 7);
    assert_eq!(report["crowd"]["gone"], 0);
    assert_eq!(report["crowd"]["pools"], 3);
    assert_eq!(report["crowd"]["cpus"], std::thread::available_parallelism().expect("a count").get());

    let remark = remark(&report);
    let words = remark["text"].as_str().expect("text");
    assert!(words.starts_with("3 OpenMP runtimes are at work in this process"), "{words}");
    assert!(words.contains("2 threads are in regions of two at once"), "{words}");
    assert!(words.contains(&format!("{own} and {a}")) && words.contains(&format!("{a} and {b}")), "{words}");
    assert!(remark["fix"].as_str().is_some_and(|c| c.starts_with("Give the inner regions one thread")), "{remark}");

    // A worker of the innermost runtime goes on in that of the next, and so on to where the program began.
    let constructs = |lwp: i32| -> Vec<String> {
        let stacks = report["stacks"].as_array().expect("stacks");
        let stack = stacks.iter().find(|s| s["lwp"] == lwp).expect("a stack of the thread");
        assert!(stack["gap"].is_null(), "{stack}");
        let frames = stack["frames"].as_array().expect("frames");
        let named = frames.iter().filter(|f| !f["construct"].is_null() || f["function"] == "main");
        named.map(|f| f["function"].as_str().unwrap_or("?").to_owned()).collect()
    };
    for role in ["b 1", "b 3"] {
        assert_eq!(constructs(lwp(role)), ["b_body", "a_body", "main", "main"], "{role}");
    }
    assert_eq!(constructs(lwp("a 1")), ["a_body", "main", "main"]);

    let text = |args: &[&str]| {
        let output = common::command().args(args).arg(running.pid.to_string()).output().expect("it runs");
        String::from_utf8(output.stdout).expect("text").split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let summary = text(&[]);
    assert!(summary.contains(&format!("inside, thread 0 of team 0 in {a}")), "{summary}");
    assert!(summary.contains(&format!("around it, thread 2 of team 0 in {a}")), "{summary}");
    assert!(summary.contains("7 OpenMP threads on "), "{summary}");
    let doctor = text(&["doctor"]);
    assert!(doctor.contains("perhaps nested_runtimes"), "{doctor}");
    assert_eq!(doctor.matches("no module: it was loaded by dlopen or LD_PRELOAD").count(), 1, "{doctor}");
    // The copy answers to the name the program asks for, and the files do not tell which of the two it got.
    assert_eq!(doctor.matches("2 loaded files are called libgomp.so.1").count(), 2, "{doctor}");
    assert_eq!(doctor.matches("result everything of it can be read").count(), 3, "{doctor}");
    running.release().expect("it goes on to its end");
}

/// Two copies of one file name in two directories. For a thread in both, the whole path tells the runtimes apart, and
/// no place is shown as around itself.
#[test]
fn nested_copies_of_one_name() {
    let system = Runtime::Libgomp.library().expect("the system's libgomp");
    let directory = tempfile::tempdir().expect("a directory for the copies");
    let copy = |folder: &str| {
        let folder = directory.path().join(folder);
        std::fs::create_dir(&folder).expect("a directory for a copy");
        let path = folder.join("libgomp.so.1");
        std::fs::copy(&system, &path).expect("copying the library");
        path.canonicalize().expect("the copy").to_str().expect("a plain path").to_owned()
    };
    let (a, b) = (copy("a"), copy("b"));
    let program = build("nested_runtimes", Toolchain::Gcc, Opt::O2, &[]).expect("the program builds");
    let launch = Launch::new(&program, Runtime::Libgomp, Env::Settled);
    let running = launch.argument(&a).argument(&b).start().expect("it starts");
    let lwp = |role: &str| running.truth.threads.iter().find(|t| t.role == role).expect("a thread of that role").lwp;
    let output = common::command().args(["teams", &running.pid.to_string()]).output().expect("it runs");
    // Paths are longer than a line: words are compared, not lines.
    let text: String = String::from_utf8(output.stdout).expect("text").split_whitespace().collect();
    let says = |what: String| {
        let what: String = what.split_whitespace().collect();
        assert!(text.contains(&what), "{what} is not in {text}");
    };
    let (middle, inner) = (lwp("own 1, a 0"), lwp("a 2, b 0"));
    says(format!("0 (LWP {inner}) waits at a barrier (nested_runtimes.c:25); around it, thread 2 of team 0 in {a}"));
    says(format!("2 (LWP {inner}) waits at a barrier (nested_runtimes.c:25); inside, thread 0 of team 0 in {b}"));
    says(format!("1 (LWP {middle}) waits at a barrier (nested_runtimes.c:37); inside, thread 0 of team 0 in {a}"));
    running.release().expect("it goes on to its end");
}
