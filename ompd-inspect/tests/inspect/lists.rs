//! Control variables that are lists: the whole of them, at each level of nesting.

use serde_json::{Value, json};
use test_programs::{Env, Launch, Opt, Runtime, Skip, Toolchain, build, combinations, other_releases};

use crate::common;

/// What a process is started with.
#[derive(Debug)]
struct Start {
    nthreads: Option<&'static str>,
    bind: Option<&'static str>,
    /// What the program sets, by a call, in its initial task, and less one in one of two inner tasks.
    set: Option<u64>,
}

const STARTS: [Start; 5] = [
    Start { nthreads: Some("7,6,5,4"), bind: Some("spread,close,master"), set: None },
    Start { nthreads: Some("7,6,5,4"), bind: Some("close,spread,close,spread"), set: Some(9) },
    Start { nthreads: Some("3"), bind: Some("close"), set: None },
    Start { nthreads: Some("5,4"), bind: None, set: Some(8) },
    Start { nthreads: None, bind: None, set: None },
];

fn launch(toolchain: Toolchain, on: Runtime, start: &Start) -> Launch {
    let executable = build("lists", toolchain, Opt::O2, &[]).expect("the program builds");
    let mut launch = Launch::new(&executable, on, Env::Stock);
    for (name, value) in [("OMP_NUM_THREADS", start.nthreads), ("OMP_PROC_BIND", start.bind)] {
        if let Some(value) = value {
            launch = launch.variable(name, value);
        }
    }
    match start.set {
        Some(set) => launch.argument(&set.to_string()),
        None => launch,
    }
}

/// The values that a role of `lists.c` tells under a name: one for each level, from the task's own on.
fn witnessed<'a>(role: &'a str, name: &str) -> Vec<&'a str> {
    let found = role.split(' ').find_map(|part| part.strip_prefix(name)?.strip_prefix('='));
    found.unwrap_or_else(|| panic!("no {name} in {role}")).split(',').collect()
}

/// A list with its last item repeated, as it counts for levels beyond its end.
fn extended(list: &Value, to: usize) -> Vec<String> {
    let items = list.as_array().unwrap_or_else(|| panic!("no list: {list}"));
    let text = |item: &Value| item.as_str().map_or_else(|| item.to_string(), str::to_owned);
    let last = items.last().unwrap_or_else(|| panic!("nothing in a list: {list}"));
    items.iter().chain(std::iter::repeat(last)).take(to).map(text).collect()
}

/// A value of `omp_proc_bind_t`.
fn bind_word(number: &str) -> &'static str {
    match number {
        "0" => "false",
        "1" => "true",
        "2" => "primary",
        "3" => "close",
        "4" => "spread",
        other => panic!("omp_get_proc_bind returned {other}"),
    }
}

/// Compares the lists that are reported with what the program met.
fn check(what: &str, launch: &Launch, start: &Start, arguments: &[&str]) {
    let running = launch.start().expect("the program starts");
    let pid = running.pid.to_string();
    let (report, status) = common::json(&[arguments, &[&pid]].concat());
    // With less to go by there are issues.
    assert!(status == 0 || !arguments.is_empty(), "{what}: {}", report["issues"]);
    assert_eq!(running.truth.threads.len(), 3, "{what}");
    let (text, _, _) = common::texts(&common::run(&[arguments, &["icvs", &pid]].concat()));
    for of in &running.truth.threads {
        let all = report["runtimes"].as_array().expect("runtimes").iter().flat_map(|r| r["threads"].as_array());
        let thread = all.flatten().find(|thread| thread["lwp"] == of.lwp && !thread["team"]["value"].is_null());
        let icvs = &thread.unwrap_or_else(|| panic!("{what}: {} is not there: {report}", of.role))["icvs"];
        let (nthreads, bind) = (&icvs["nthreads_list"]["value"], &icvs["bind_list"]["value"]);
        let met = witnessed(&of.role, "nthreads");
        assert_eq!(extended(nthreads, met.len()), met, "{what}: {}: {icvs}", of.role);
        let met: Vec<_> = witnessed(&of.role, "bind").into_iter().map(bind_word).collect();
        assert_eq!(extended(bind, met.len()), met, "{what}: {}: {icvs}", of.role);
        assert_eq!((&nthreads[0], &bind[0]), (&icvs["nthreads"]["value"], &icvs["bind"]["value"]), "{what}");
        // No items beyond those of the variable, and none missing.
        let level = of.api.as_ref().expect("a thread in a region").level as usize;
        let left = |text: Option<&str>| text.map_or(0, |text| text.split(',').count()).saturating_sub(level).max(1);
        assert_eq!(nthreads.as_array().map(Vec::len), Some(left(start.nthreads)), "{what}: {icvs}");
        assert_eq!(bind.as_array().map(Vec::len), Some(left(start.bind)), "{what}: {icvs}");
        let joined: Vec<String> = nthreads.as_array().expect("a list").iter().map(Value::to_string).collect();
        let line = format!("nthreads-var           {} ", joined.join(","));
        assert!(text.contains(&line), "{what}: no {line:?} in {text}");
    }
    running.release().expect("the program's end");
}

#[test]
fn lists_are_what_inner_regions_get() {
    for (toolchain, on) in combinations() {
        for start in &STARTS {
            let launch = launch(toolchain, on, start);
            check(&format!("{toolchain:?} on {on:?}, {start:?}"), &launch, start, &[]);
        }
        // As if nothing had a name, and no release were known.
        let nameless = ["--ignore-origin=dwarf", "--ignore-origin=table", "--ignore-origin=symbol"];
        check(
            &format!("{toolchain:?} on {on:?} by its code"),
            &launch(toolchain, on, &STARTS[1]),
            &STARTS[1],
            &nameless,
        );
    }
}

#[test]
fn lists_of_other_releases() {
    let start = &STARTS[1];
    for (toolchain, on, directory) in other_releases() {
        let what = format!("{toolchain:?} on {}", directory.display());
        if !combinations().contains(&(toolchain, on)) {
            continue;
        }
        if directory.ends_with("libomp5-9") {
            Skip::because(format!("{what}: of LLVM 9 no layout is known")).show();
            continue;
        }
        let path = directory.to_str().expect("a plain path");
        let launch = launch(toolchain, on, start).variable("LD_LIBRARY_PATH", path);
        match launch.start() {
            Ok(running) => running.release().expect("the program's end"),
            Err(why) if format!("{why:#}").contains("GLIBC_2.") => {
                Skip::because(format!("{what} needs a newer C library")).show();
                continue;
            }
            Err(why) => panic!("{what}: {why:#}"),
        };
        check(&what, &launch, start, &[]);
    }
}

/// A list that does not agree with what the runtime began with is not shown, and neither is one that nothing is known of.
#[test]
fn without_the_list_the_value_at_the_level_is_told_as_that() {
    for (toolchain, on) in combinations() {
        let launch = launch(toolchain, on, &STARTS[0]);
        let running = launch.start().expect("the program starts");
        let pid = running.pid.to_string();
        // Profiles know no variables.
        let ignored = ["dwarf", "table", "symbol", "code"].map(|origin| format!("--ignore-origin={origin}"));
        let ignored: Vec<&str> = ignored.iter().map(String::as_str).collect();
        let (report, _) = common::json(&[&ignored[..], &[&pid]].concat());
        for runtime in report["runtimes"].as_array().expect("runtimes") {
            for thread in runtime["threads"].as_array().expect("threads") {
                assert_eq!(thread["icvs"]["nthreads_list"]["value"], json!(null), "{toolchain:?} on {on:?}: {thread}");
                assert!(thread["icvs"]["nthreads_list"]["unknown"].is_string(), "{toolchain:?} on {on:?}: {thread}");
            }
        }
        running.release().expect("the program's end");
    }
}
