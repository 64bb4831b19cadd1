//! What makes threads wait without being wrong: said with its cause and a fix, by `waits` and in JSON, and else not.

use crate::common;
use std::fs;

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;
use serde_json::Value;
use test_programs::{Env, HANGS, Launch, Opt, build, combinations};

/// The remarks of a kind, in JSON; the command `waits` has to say the same.
fn remarks(target: &str, kind: &str) -> Vec<Value> {
    let (report, _) = common::json(&[target]);
    let all = report["remarks"].as_array().expect("remarks");
    let found: Vec<Value> = all.iter().filter(|remark| remark["kind"] == kind).cloned().collect();
    let (text, _, _) = common::texts(&common::run(&["waits", target]));
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for remark in &found {
        let words =
            format!("NOTE {} {}", remark["text"].as_str().expect("text"), remark["fix"].as_str().expect("a fix"));
        assert!(text.contains(&words), "{words} is not in {text}");
    }
    found
}

fn says(what: &str, remarks: &[Value], text: &str, fix: &str) {
    let [remark] = remarks else { panic!("{what}: one remark is expected: {remarks:?}") };
    assert!(remark["text"].as_str().is_some_and(|t| t.contains(text)), "{what}: {text} is not in {remark}");
    assert!(remark["fix"].as_str().is_some_and(|c| c.contains(fix)), "{what}: {fix} is not in {remark}");
}

#[test]
fn more_threads_than_processors() {
    let own = sched_getaffinity(Pid::from_raw(0)).expect("the affinity of this thread");
    let cpus: Vec<usize> = (0..CpuSet::count()).filter(|cpu| own.is_set(*cpu) == Ok(true)).collect();
    for (toolchain, runtime) in combinations() {
        let what = format!("{toolchain:?} on {runtime:?}");
        let executable = build("crowded", toolchain, Opt::O2, &[]).expect("the program builds");
        let launch = Launch::new(&executable, runtime, Env::Settled).variable("OMP_WAIT_POLICY", "active");
        let running = launch.start().expect("the program starts");
        let pid = running.pid.to_string();
        let found = remarks(&pid, "oversubscribed");
        assert_eq!(found.len(), usize::from(cpus.len() < 3), "{what}: {found:?}");

        let mut one = CpuSet::new();
        one.set(cpus[0]).expect("a processor");
        for entry in fs::read_dir(format!("/proc/{pid}/task")).expect("its threads") {
            let name = entry.expect("a thread").file_name();
            let tid = name.to_str().and_then(|n| n.parse().ok()).expect("a number");
            sched_setaffinity(Pid::from_raw(tid), &one).expect("moving a thread");
        }
        let found = remarks(&pid, "oversubscribed");
        let text =
            format!("3 threads of OpenMP want to run at once, and may run on cpu {} only: they take turns", cpus[0]);
        says(&what, &found, &text, "Use fewer threads (OMP_NUM_THREADS=1)");
        says(&what, &found, "those that wait are to spin (OMP_WAIT_POLICY=active)", "Do not let waiting threads spin.");
        running.release().expect("the program's end");
    }
}

#[test]
fn a_region_that_could_get_no_more_threads() {
    let case = HANGS.iter().find(|case| case.program == "hangs/nested_exhausted").expect("the program");
    for (toolchain, runtime) in combinations().into_iter().filter(|(t, r)| case.works(*t, *r)) {
        let executable = build(case.program, toolchain, Opt::O2, case.flags).expect("the program builds");
        for (variable, source) in
            [(None, " (its default)"), (Some("OMP_MAX_ACTIVE_LEVELS"), " (by OMP_MAX_ACTIVE_LEVELS)")]
        {
            let what = format!("{toolchain:?} on {runtime:?}, {variable:?}");
            let launch = Launch::new(&executable, runtime, Env::Settled);
            let launch = variable.iter().fold(launch, |launch, name| launch.variable(name, "1"));
            let running = launch.start_hanging().expect("the program hangs");
            let found = remarks(&running.pid.to_string(), "levels_exhausted");
            let text = "has 1 thread, whatever number was asked for: 1 level of parallel regions is active, and \
                        max-active-levels-var is 1";
            says(&what, &found, &format!("{text}{source}"), "allow more levels (OMP_MAX_ACTIVE_LEVELS=2");
        }
    }
}

/// What nobody is left to post, live and in a core.
#[test]
fn iterations_that_wait_for_another() {
    let case = HANGS.iter().find(|case| case.program == "hangs/missing_source").expect("the program");
    for (toolchain, runtime) in combinations().into_iter().filter(|(t, r)| case.works(*t, *r)) {
        let what = format!("{toolchain:?} on {runtime:?}");
        let executable = build(case.program, toolchain, Opt::O2, case.flags).expect("the program builds");
        let running = Launch::new(&executable, runtime, Env::Settled).start_hanging().expect("the program hangs");
        let text = "every member of team 0 waits, and threads 1-2 wait in ordered depend(sink) for other iterations of a \
                    doacross loop (counted from 0, the first that has not reached its depend(source) is 0)";
        says(&what, &remarks(&running.pid.to_string(), "iterations_wait"), text, "has left its depend(source) out");
        let folder = tempfile::tempdir().expect("a folder for a core");
        let core = match running.gcore(folder.path()).expect("gcore runs") {
            Ok(core) => core,
            Err(skip) => {
                skip.show();
                continue;
            }
        };
        let core = core.to_str().expect("a plain path");
        says(&what, &remarks(core, "iterations_wait"), text, "`loops` has what was posted");
        let (report, _) = common::json(&[core]);
        let runtimes = report["runtimes"].as_array().expect("runtimes");
        let loops: Vec<&Value> = runtimes.iter().filter_map(|r| r["loops"].as_array()).flatten().collect();
        let missing: Vec<&Value> = loops.iter().map(|of| &of["doacross"]["value"]["missing"]["value"]).collect();
        assert_eq!(missing, [&serde_json::json!([0])], "{what}: {loops:?}");
    }
}

/// Who sleeps wants no processor, and a region of several threads could get them.
#[test]
fn nothing_to_remark() {
    for (toolchain, runtime) in combinations() {
        let executable = build("nested", toolchain, Opt::O2, &[]).expect("the program builds");
        let running = Launch::new(&executable, runtime, Env::Settled).start().expect("the program starts");
        let (report, _) = common::json(&[&running.pid.to_string()]);
        assert_eq!(report["remarks"], serde_json::json!([]), "{toolchain:?} on {runtime:?}");
        running.release().expect("the program's end");
    }
}
