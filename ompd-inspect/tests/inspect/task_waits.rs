//! Tasks that wait for those they have generated, while their thread executes these.

use serde_json::Value;
use test_programs::{Env, Launch, Opt, build, combinations};

use crate::common::{json, run, texts};

/// Lines of the two `taskwait` in `programs/task_waits.c`: of the outer task, and of the implicit task.
const OUTER: u64 = 18;
const IMPLICIT: u64 = 29;

#[test]
fn suspended_tasks_are_said_to_wait_in_taskwait() {
    for (toolchain, runtime) in combinations() {
        let program = build("task_waits", toolchain, Opt::O2, &[]).expect("the program builds");
        let running = Launch::new(&program, runtime, Env::Settled).start().expect("the program starts");
        let what = format!("{toolchain:?} on {runtime:?}");
        let pid = running.pid.to_string();

        let report = json(&["tasks", &pid]).0;
        // The runtime that the program was linked with may be there too, without tasks.
        let runtimes = report["runtimes"].as_array().expect("runtimes");
        let tasks = runtimes.iter().filter_map(|runtime| runtime["tasks"].as_array()).flatten();
        let waits = |task: &&Value| task["waits_in"]["kind"] == "taskwait";
        let mut found: Vec<(&str, &str, u64)> = tasks
            .filter(waits)
            .map(|task| {
                let word = |key: &str| task[key]["value"].as_str().expect("a word");
                (word("kind"), word("state"), task["waits_in"]["location"]["line"].as_u64().expect("a line"))
            })
            .collect();
        found.sort_unstable();
        assert_eq!(found, [("explicit", "suspended", OUTER), ("implicit", "suspended", IMPLICIT)], "{what}: {report}");

        let said = |view: &str| {
            let (text, _, _) = texts(&run(&[view, &pid]));
            text.matches("waits in").count()
        };
        assert_eq!((said("tasks"), said("waits")), (2, 2), "{what}");
        running.release().expect("it goes on");
    }
}
