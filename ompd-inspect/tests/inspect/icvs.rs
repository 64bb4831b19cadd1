//! Where the values of control variables come from, and where threads are to run.

use crate::common;
use std::fs;

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;
use serde_json::{Value, json};
use test_programs::{Env, Launch, Opt, Running, Runtime, Skip, Toolchain, build, combinations};

fn launch(program: &str, toolchain: Toolchain, runtime: Runtime) -> Launch {
    let executable = build(program, toolchain, Opt::O2, &[]).expect("the program builds");
    Launch::new(&executable, runtime, Env::Stock)
}

/// The runtime whose threads a report is about. Programs of gcc have libgomp as well. With places, its constructor makes the main
/// thread one of its own.
fn runtime(report: &Value) -> &Value {
    let runtimes = report["runtimes"].as_array().expect("runtimes");
    let threads = |r: &&Value| r["threads"].as_array().map_or(0, Vec::len);
    runtimes.iter().max_by_key(threads).unwrap_or_else(|| panic!("no runtime: {report}"))
}

/// The threads that execute tasks.
fn threads(report: &Value) -> Vec<&Value> {
    let all = runtime(report)["threads"].as_array().expect("threads");
    all.iter().filter(|t| t["role"]["value"] != "idle worker").collect()
}

fn setting<'a>(report: &'a Value, name: &str) -> &'a Value {
    let all = runtime(report)["icvs"].as_array().expect("settings");
    all.iter().find(|s| s["name"] == name).unwrap_or_else(|| panic!("no {name}: {report}"))
}

fn environment(variable: &str, text: &str) -> Value {
    json!({"source": "environment", "variable": variable, "text": text})
}

/// The live process, and a core of it if one can be had here.
fn targets(running: &Running, directory: &std::path::Path) -> Vec<String> {
    let mut targets = vec![running.pid.to_string()];
    match running.gcore(directory).expect("gcore runs") {
        Ok(core) => targets.push(core.to_str().expect("a plain path").to_owned()),
        Err(skip) => skip.show(),
    }
    targets
}

#[test]
fn values_from_the_environment() {
    const VARIABLES: [(&str, &str); 16] = [
        ("OMP_NUM_THREADS", "4,2"),
        ("OMP_SCHEDULE", "guided,7"),
        ("OMP_DYNAMIC", "false"),
        ("OMP_THREAD_LIMIT", "100"),
        ("OMP_CANCELLATION", "true"),
        ("OMP_NUM_TEAMS", "3"),
        ("OMP_TEAMS_THREAD_LIMIT", "5"),
        ("OMP_AFFINITY_FORMAT", "%n of %N"),
        ("OMP_ALLOCATOR", "omp_default_mem_alloc"),
        ("OMP_DISPLAY_AFFINITY", "false"),
        ("OMP_TOOL", "enabled"),
        ("OMP_TOOL_LIBRARIES", "/no/tool.so"),
        ("OMP_DEBUG", "disabled"),
        ("OMP_MAX_TASK_PRIORITY", "3"),
        ("OMP_STACKSIZE", "16M"),
        ("SECRET", "do-not-show-this"),
    ];
    let directory = tempfile::tempdir().expect("a directory");
    for (toolchain, on) in combinations() {
        let mut launch = launch("barrier_missing", toolchain, on);
        for (name, value) in VARIABLES {
            launch = launch.variable(name, value);
        }
        let running = launch.start().expect("the program starts");
        for target in targets(&running, directory.path()) {
            let what = format!("{toolchain:?} on {on:?}, {target}");
            let (report, status) = common::json(&[&target]);
            assert_eq!(status, 0, "{what}: {}", report["issues"]);
            assert_eq!(threads(&report).len(), 4, "{what}");
            for thread in threads(&report) {
                let (icvs, sources) = (&thread["icvs"], &thread["icv_sources"]);
                let list = environment("OMP_NUM_THREADS", "4,2");
                // In the region the list's second entry counts.
                assert_eq!((&icvs["nthreads"]["value"], &sources["nthreads"]), (&json!(2), &list), "{what}");
                assert_eq!(icvs["schedule"]["value"], "guided,7", "{what}");
                assert_eq!(sources["schedule"], environment("OMP_SCHEDULE", "guided,7"), "{what}");
                assert_eq!(sources["dynamic"], environment("OMP_DYNAMIC", "false"), "{what}");
                assert_eq!(icvs["thread_limit"]["value"], 100, "{what}");
                assert_eq!(sources["thread_limit"], environment("OMP_THREAD_LIMIT", "100"), "{what}");
                // Two entries ask for two levels.
                if icvs["max_active_levels"]["value"] != 1 {
                    assert_eq!(sources["max_active_levels"], list, "{what}");
                }
                assert_eq!(sources["default_device"]["source"], "default", "{what}: {thread}");
                assert_eq!(icvs["def_allocator"]["value"], "omp_default_mem_alloc", "{what}: {thread}");
                assert_eq!(sources["def_allocator"], environment("OMP_ALLOCATOR", "omp_default_mem_alloc"), "{what}");
            }
            // Libraries with names for their variables tell more.
            for (name, value, variable, text) in [
                ("display-affinity-var", json!(false), "OMP_DISPLAY_AFFINITY", "false"),
                ("tool-var", json!("enabled"), "OMP_TOOL", "enabled"),
                ("tool-libraries-var", json!("/no/tool.so"), "OMP_TOOL_LIBRARIES", "/no/tool.so"),
                ("debug-var", json!("disabled"), "OMP_DEBUG", "disabled"),
            ] {
                if on == Runtime::Libiomp5 {
                    let found = setting(&report, name);
                    assert_eq!(found["value"]["value"], value, "{what}: {found}");
                    assert_eq!(found["source"], environment(variable, text), "{what}");
                }
            }
            for (name, value, variable, text) in [
                ("cancel-var", json!(true), "OMP_CANCELLATION", "true"),
                ("max-task-priority-var", json!(3), "OMP_MAX_TASK_PRIORITY", "3"),
                ("nteams-var", json!(3), "OMP_NUM_TEAMS", "3"),
                ("teams-thread-limit-var", json!(5), "OMP_TEAMS_THREAD_LIMIT", "5"),
                ("affinity-format-var", json!("%n of %N"), "OMP_AFFINITY_FORMAT", "%n of %N"),
            ] {
                let found = setting(&report, name);
                assert_eq!(found["value"]["value"], value, "{what}: {found}");
                assert_eq!(found["source"], environment(variable, text), "{what}");
            }
            let stack = setting(&report, "stacksize-var");
            assert_eq!(stack["said"], "OMP_STACKSIZE=16M", "{what}");
            if on.is_kmp() {
                assert_eq!(stack["value"]["value"], 16 << 20, "{what}");
                assert_eq!(stack["source"], environment("OMP_STACKSIZE", "16M"), "{what}");
            }
            for arguments in [&["--json"][..], &["icvs", "-v"], &["doctor", "-v"]] {
                let (text, _, _) = common::texts(&common::run(&[arguments, &[&target]].concat()));
                assert!(!text.contains("do-not-show"), "{what}: {arguments:?} shows the environment: {text}");
            }
        }
        running.release().expect("the program's end");
    }
}

/// `icvs.c` sets some, leaves others, and inherits what was set before.
#[test]
fn values_from_calls_and_defaults() {
    let directory = tempfile::tempdir().expect("a directory");
    for (toolchain, on) in combinations() {
        let running = launch("icvs", toolchain, on).start().expect("the program starts");
        for target in targets(&running, directory.path()) {
            let what = format!("{toolchain:?} on {on:?}, {target}");
            let (report, _) = common::json(&[&target]);
            let threads = threads(&report);
            assert_eq!(threads.len(), 3, "{what}");
            let processors = setting(&report, "num-procs-var")["value"]["value"].as_u64().expect("a number");
            for thread in threads {
                let value = |name: &str| thread["icvs"][name]["value"].clone();
                let source = |name: &str| thread["icv_sources"][name]["source"].as_str().unwrap_or("?");
                let set = value("nthreads").as_u64().expect("a number");
                assert!([7, 11, 13].contains(&set), "{what}: {thread}");
                // What a call has set to the default cannot be told from it.
                let expected = if set == processors { "default" } else { "program" };
                assert_eq!(source("nthreads"), expected, "{what}: {thread}");
                assert_eq!(source("schedule"), "program", "{what}: {thread}");
                let own = if set == 11 { "program" } else { "default" };
                assert_eq!(source("dynamic"), own, "{what}: {thread}");
                assert_eq!(source("max_active_levels"), own, "{what}: {thread}");
                assert_eq!(source("bind"), "default", "{what}: {thread}");
                assert_eq!(source("thread_limit"), "default", "{what}: {thread}");
                assert_eq!((value("default_device"), source("default_device")), (json!(0), "default"), "{what}");
            }
            assert_eq!(setting(&report, "cancel-var")["source"]["source"], "default", "{what}");
            // In what GCC has compiled these calls have a version that libomp does not define: they go to libgomp.
            let reached = toolchain != Toolchain::Gcc || !on.is_kmp();
            for (name, set) in [("nteams-var", 6), ("teams-thread-limit-var", 9)].into_iter().filter(|_| reached) {
                let found = setting(&report, name);
                assert_eq!(
                    (&found["value"]["value"], &found["source"]["source"]),
                    (&json!(set), &json!("program")),
                    "{what}"
                );
            }
        }
        // More threads are wanted than can run: of a live process that is said.
        let (report, _) = common::json(&[&running.pid.to_string()]);
        let cpus = report["crowd"]["cpus"].as_u64().expect("a number");
        let note = format!("nthreads-var is 13, but the process may run on {cpus} cpu");
        let notes = runtime(&report)["notes"].to_string();
        assert_eq!(notes.contains(&note), cpus < 13, "{notes}");
        running.release().expect("the program's end");
    }
}

/// The processors this test may run on.
fn own_cpus() -> Vec<usize> {
    let set = sched_getaffinity(Pid::from_raw(0)).expect("the affinity of this thread");
    (0..CpuSet::count()).filter(|cpu| set.is_set(*cpu) == Ok(true)).collect()
}

#[test]
fn places_of_threads_and_what_the_kernel_makes_of_them() {
    let [first, second, ..] = own_cpus()[..] else {
        return Skip::because("places need two processors").show();
    };
    for (toolchain, on) in combinations() {
        let what = format!("{toolchain:?} on {on:?}");
        let launch = launch("barrier_missing", toolchain, on).variable("OMP_NUM_THREADS", "4");
        let places = format!("{{{first}}},{{{second}}}");
        let running = launch.variable("OMP_PLACES", &places).start().expect("the program starts");
        let pid = running.pid.to_string();
        let (report, _) = common::json(&[&pid]);
        if toolchain == Toolchain::Gcc && on.is_kmp() {
            // The libgomp beside it has bound the main thread to the first place before libomp looked: nothing else is left.
            let notes = runtime(&report)["notes"].to_string();
            assert!(notes.contains("nthreads-var is 4, but the process may run on 1 cpu"), "{what}: {notes}");
            running.release().expect("the program's end");
            continue;
        }
        let mut seen = [0, 0];
        for thread in threads(&report) {
            let placement = &thread["placement"];
            let place = placement["place"]["value"].as_u64().unwrap_or_else(|| panic!("{what}: {placement}"));
            seen[place as usize] += 1;
            let cpu = [first, second][place as usize];
            assert_eq!(placement["allowed_cpus"], json!([cpu]), "{what}: {placement}");
            if !on.is_kmp() {
                assert_eq!(placement["place_cpus"]["value"], json!([cpu]), "{what}: {placement}");
                assert_eq!(placement["partition"]["value"], json!({"first": 0, "last": 1}), "{what}: {placement}");
            }
            assert_eq!(thread["icv_sources"]["bind"], environment("OMP_PLACES", &places), "{what}: {thread}");
        }
        assert_eq!(seen, [2, 2], "{what}");
        assert!(!runtime(&report)["notes"].to_string().contains("the kernel"), "{what}: {report}");

        // Somebody moves all threads to one processor.
        let mut one = CpuSet::new();
        one.set(first).expect("a processor");
        for entry in fs::read_dir(format!("/proc/{pid}/task")).expect("its threads") {
            let name = entry.expect("a thread").file_name();
            let tid = name.to_str().and_then(|n| n.parse().ok()).expect("a number");
            sched_setaffinity(Pid::from_raw(tid), &one).expect("moving a thread");
        }
        let (report, _) = common::json(&[&pid]);
        let notes = runtime(&report)["notes"].to_string();
        assert!(notes.contains("nthreads-var is 4, but the process may run on 1 cpu"), "{what}: {notes}");
        let moved = format!("cpu {second}, but the kernel lets it run on cpu {first}");
        assert_eq!(notes.matches(&moved).count(), if on.is_kmp() { 0 } else { 2 }, "{what}: {notes}");
        let (text, _, _) = common::texts(&common::run(&["icvs", &pid]));
        assert!(text.contains("\nplaces\n"), "{what}: {text}");
        running.release().expect("the program's end");
    }
}

/// Variables that are not the specification's own name of a control variable, and set it all the same.
#[test]
fn values_from_other_variables() {
    for (toolchain, on) in combinations() {
        let what = format!("{toolchain:?} on {on:?}");
        let launch = launch("nested", toolchain, on).variable("OMP_NUM_TEAMS_ALL", "3");
        let running = launch.variable("KMP_LIBRARY", "turnaround").start().expect("the program starts");
        let (report, _) = common::json(&[&running.pid.to_string()]);
        if on.is_kmp() {
            let policy = setting(&report, "wait-policy-var");
            assert_eq!(policy["value"]["value"], "active", "{what}: {policy}");
            assert_eq!(policy["source"], environment("KMP_LIBRARY", "turnaround"), "{what}");
        } else {
            let teams = setting(&report, "nteams-var");
            assert_eq!(teams["said"], "OMP_NUM_TEAMS_ALL=3", "{what}");
            // GCC 13 and later take it; of earlier ones it is unknown why it is not so.
            let taken = teams["value"]["value"] == 3;
            let source = if taken { environment("OMP_NUM_TEAMS_ALL", "3") } else { teams["source"].clone() };
            assert_eq!(teams["source"], source, "{what}");
            assert_ne!(teams["source"]["source"], "program", "{what}: {teams}");
        }
        running.release().expect("the program's end");
    }
}
