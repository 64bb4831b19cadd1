//! A runtime nobody has made a profile of: its code alone has to give threads, thread numbers, team sizes and levels.
//! What it does not give is said to be unknown, with the reason, and is never another value.

use crate::common;
use serde_json::Value;
use test_programs::{Env, Opt, Running, Runtime, Thread, Truth, Wait, build, combinations};

/// Everything but the instructions. Intel's library has debug information and symbols, which a vendored copy lacks.
const CODE_ALONE: [&str; 8] =
    ["--ignore-origin", "profile", "--ignore-origin", "dwarf", "--ignore-origin", "table", "--ignore-origin", "symbol"];

/// Looks at a program by code alone. Returns what is wrong.
fn check(truth: &Truth, runtime: Runtime, target: &str) -> Vec<String> {
    let mut arguments = CODE_ALONE.to_vec();
    arguments.push(target);
    let (report, status) = common::json(&arguments);
    let mut wrong = Vec::new();
    let family = if runtime.is_kmp() { "kmp" } else { "gomp" };
    let runtimes = report["runtimes"].as_array().expect("runtimes");
    let Some(ours) = runtimes.iter().find(|r| r["family"] == family && r["threads"] != Value::Array(Vec::new())) else {
        return vec![format!("no {family} with threads in {report}")];
    };
    for origin in ours["origins"].as_array().expect("origins").iter().filter(|o| o["origin"] != "code") {
        if origin["values"] != 0 {
            wrong.push(format!("not code: {origin}"));
        }
    }
    if ours["missing"] == Value::Array(Vec::new()) {
        wrong.push("nothing is said to be missing".to_owned());
    }
    if status != 1 {
        wrong.push(format!("exit status {status} for a partial report"));
    }
    for thread in &truth.threads {
        let found = ours["threads"].as_array().expect("threads").iter().find(|t| t["lwp"] == thread.lwp);
        match (found, &thread.api) {
            (Some(found), _) => wrong.extend(check_thread(thread, found, ours)),
            (None, Some(_)) => wrong.push(format!("{} (LWP {}) is not reported", thread.role, thread.lwp)),
            (None, None) => {}
        }
    }
    wrong
}

fn check_thread(thread: &Thread, found: &Value, ours: &Value) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut differs = |what: &str, reported: &Value, truth: String| {
        wrong.push(format!("{} (LWP {}): {what} {reported}, in truth {truth}", thread.role, thread.lwp));
    };
    let teams = ours["teams"].as_array().expect("teams");
    if let Some(api) = &thread.api {
        if found["thread_num"]["value"] != api.thread_num {
            differs("thread number", &found["thread_num"], api.thread_num.to_string());
        }
        // From the innermost team outwards.
        let mut team = found["team"]["value"].as_u64();
        for level in (1..api.levels.len()).rev() {
            let Some(at) = team.and_then(|team| teams.get(team as usize)) else {
                differs("team", &found["team"], format!("one of level {level}"));
                break;
            };
            if at["size"]["value"] != api.levels[level].team_size {
                differs("team size", &at["size"], api.levels[level].team_size.to_string());
            }
            if at["level"]["value"] != level {
                differs("level", &at["level"], level.to_string());
            }
            team = at["parent"]["value"].as_u64();
        }
        if let Some(beyond) = team {
            differs("a team at level 0", &beyond.into(), "none".to_owned());
        }
    }
    // What it waits for may be unknown, but not something else.
    let kinds: &[&str] = match thread.wait {
        Wait::Lock | Wait::NestLock => &["lock", "lock or critical"],
        Wait::Critical => &["critical", "lock or critical"],
        Wait::Barrier => &["barrier", "end of region"],
        Wait::Taskwait => &["taskwait", "taskwait or taskgroup"],
        Wait::Taskgroup => &["taskgroup", "taskwait or taskgroup"],
        Wait::Idle => &["next region"],
        Wait::Ordered => &["ordered"],
        Wait::Event => &["event"],
        Wait::Pipe | Wait::Sleep | Wait::Yield | Wait::Join | Wait::Mutex | Wait::Other => &[],
    };
    let wait = &found["wait"];
    let fits = match wait.get("value") {
        None => wait["unknown"].as_str().is_some_and(|why| !why.is_empty()),
        Some(Value::Null) => kinds.is_empty(),
        Some(wait) => wait["kind"].as_str().is_some_and(|kind| kinds.contains(&kind)),
    };
    if !fits {
        differs("wait", wait, format!("{kinds:?}"));
    }
    wrong
}

fn everywhere(program: &str) {
    let mut wrong = Vec::new();
    let mut compared = 0;
    for (toolchain, runtime) in combinations() {
        let executable = build(program, toolchain, Opt::O2, &[]).expect("the program builds");
        let running = Running::start(&executable, runtime, Env::Settled).expect("the program starts");
        let what = format!("{program} {toolchain:?} on {runtime:?}");
        let live = check(&running.truth, runtime, &running.pid.to_string());
        wrong.extend(live.into_iter().map(|w| format!("{what}, live: {w}")));
        compared += 1;
        let directory = tempfile::tempdir().expect("a directory for the core");
        match running.gcore(directory.path()).expect("gcore runs") {
            Ok(core) => {
                let dead = check(&running.truth, runtime, core.to_str().expect("a plain path"));
                wrong.extend(dead.into_iter().map(|w| format!("{what}, gcore: {w}")));
            }
            Err(skip) => skip.show(),
        }
        running.release().expect("the program goes on to its end after the inspections");
    }
    assert!(compared > 0, "no compiler and runtime to compare with");
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

macro_rules! programs {
    ($($name:ident),*) => {
        $( #[test] fn $name() { everywhere(stringify!($name)); } )*
    };
}

programs!(nested, lock, tasks, barrier_missing, region_end, idle, user_pthread, serialized);
