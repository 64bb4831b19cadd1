//! A hundred thousand tasks. All are counted, live and from a core. A link that leads astray loses no more than the tasks behind
//! it.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use ompd_process::core::Core;
use ompd_process::{Addr, TargetExt as _};
use ompd_runtime::discover;
use serde_json::Value;
use test_programs::{Env, Launch, Opt, Running, Runtime, Toolchain, build, native_combinations};

use crate::common::{bounded, command, texts};

const TASKS: u64 = 100_000;
/// Exit status of a report that lacks something.
const PARTLY: i32 = 1;

fn start(toolchain: Toolchain, runtime: Runtime, which: &str) -> Running {
    let program = build("tasks_many", toolchain, Opt::O2, &[]).expect("the program builds");
    let launch = Launch::new(&program, runtime, Env::Settled).variable("KMP_ENABLE_TASK_THROTTLING", "0");
    launch.argument(which).argument(&TASKS.to_string()).start().expect("the program starts")
}

fn report(target: &str) -> (Value, i32) {
    let (out, err, status) = texts(&bounded(command().args(["--json", "tasks", target])));
    (serde_json::from_str(&out).unwrap_or_else(|e| panic!("no JSON ({e}): {err}")), status)
}

fn all<'a>(report: &'a Value, what: &str) -> &'a [Value] {
    // A list without entries is left out.
    report["runtimes"][0][what].as_array().map_or(&[], Vec::as_slice)
}

fn in_state<'a>(report: &'a Value, state: &str) -> Vec<&'a Value> {
    all(report, "tasks").iter().filter(|task| task["state"]["value"] == state).collect()
}

/// Tasks listed in this state, and those counted with them.
fn counted(report: &Value, state: &str) -> u64 {
    let like = |more: &&Value| {
        let like = more["like"].as_u64().expect("the index of a task");
        all(report, "tasks")[like as usize]["state"]["value"] == state
    };
    let more: u64 = all(report, "more_tasks").iter().filter(like).filter_map(|more| more["count"].as_u64()).sum();
    in_state(report, state).len() as u64 + more
}

/// The number in "N more of".
fn told_more(text: &str) -> u64 {
    let words: Vec<&str> = text.split_whitespace().collect();
    let at = words.windows(2).position(|pair| pair == ["more", "of"]).unwrap_or_else(|| panic!("not folded: {text}"));
    words[at - 1].parse().expect("a number")
}

fn check_counts(what: &str, target: &str, state: &str) {
    let (report, status) = report(target);
    assert_eq!((status, &report["complete"]), (0, &Value::Bool(true)), "{what}");
    assert_eq!(counted(&report, state), TASKS, "{what}");
    let other = if state == "ready" { "blocked" } else { "ready" };
    assert_eq!(counted(&report, other), 0, "{what}");
    if state == "blocked" {
        let root = |task: &Value| task["predecessors"].as_array().map(|before| before.len()) == Some(1);
        assert!(in_state(&report, state).iter().all(|task| root(task) && task["unmet"]["value"] == 1), "{what}");
    }
    let (text, err, status) = texts(&bounded(command().args(["tasks", target])));
    assert_eq!((err.as_str(), status), ("", 0), "{what}: {text}");
    let rows = text.lines().filter(|line| line.split_whitespace().nth(2) == Some(state)).count() as u64;
    // The last row of them is the one that counts.
    assert_eq!(told_more(&text) + rows - 1, TASKS, "{what}: {text}");
    assert!(text.lines().count() < 100, "{what}: {text}");
}

/// Members sleep at the barrier and in a pipe, so that what the pause has no time for can be read after it.
#[test]
fn what_the_pause_has_no_time_for_is_read_while_all_threads_sleep() {
    let running = start(Toolchain::Gcc, Runtime::Libgomp, "dependent");
    let pid = running.pid.to_string();
    let look = |pause: &str| {
        let (out, err, _) =
            texts(&bounded(command().args(["--json", "tasks", "--pause", "brief", "--max-pause", pause, &pid])));
        serde_json::from_str::<Value>(&out).unwrap_or_else(|e| panic!("no JSON ({e}): {err}"))
    };
    let long = look("60000");
    let mut short =
        ["60", "30", "15", "8", "4", "2", "1"].into_iter().map(look).filter(|report| report["read_asleep"] == true);
    let short = short.next().expect("a look that is cut short");
    assert_eq!(short["complete"], true, "{:#}", short["issues"]);
    assert_eq!(long["read_asleep"], Value::Null);
    assert_eq!(counted(&short, "blocked"), TASKS);
    assert_eq!(short["runtimes"], long["runtimes"]);
    running.release().expect("it ends");
}

#[test]
fn all_are_counted() {
    let mut seen = 0;
    for (toolchain, runtime) in native_combinations() {
        for (which, state) in [("queued", "ready"), ("dependent", "blocked")] {
            let what = format!("{which} on {runtime:?}");
            let running = start(toolchain, runtime, which);
            check_counts(&format!("{what}, live"), &running.pid.to_string(), state);
            let directory = tempfile::tempdir().expect("a directory for the core");
            match running.gcore(directory.path()).expect("gcore runs") {
                Ok(core) => check_counts(&format!("{what}, core"), core.to_str().expect("a plain path"), state),
                Err(skip) => skip.show(),
            }
            running.release().unwrap_or_else(|error| panic!("{what}: {error:?}"));
            seen += 1;
        }
    }
    assert!(seen > 0, "no compiler and runtime to look at");
}

/// Where the bytes of an address lie in a core file, by its program headers (64 bits, little-endian).
fn place_in(core: &Path, addr: Addr) -> u64 {
    let file = File::open(core).expect("the core opens");
    let word = |at: u64, bytes: usize| {
        let mut word = [0; 8];
        file.read_exact_at(&mut word[..bytes], at).expect("the core can be read");
        u64::from_le_bytes(word)
    };
    let (headers, size, count) = (word(32, 8), word(54, 2), word(56, 2));
    (0..count)
        .map(|index| headers + index * size)
        .filter(|at| word(*at, 4) == 1)
        .find_map(|at| {
            let (offset, start, length) = (word(at + 8, 8), word(at + 16, 8), word(at + 32, 8));
            addr.0.checked_sub(start).filter(|skip| *skip < length).map(|skip| offset + skip)
        })
        .unwrap_or_else(|| panic!("{addr} is not in the core"))
}

/// A link in the middle of a list of tasks, what it may be replaced by, and what the report is to say of it.
struct Link {
    at: Addr,
    astray: Vec<(&'static str, u64)>,
    issue: &'static str,
}

/// libgomp's list of ready tasks, or libomp's list of those that wait for one.
fn link_of(core: &Core, report: &Value, kmp: bool) -> Link {
    let runtimes = discover(core, &[]);
    let [runtime] = &runtimes[..] else { panic!("{} runtimes", runtimes.len()) };
    let offset = |name: &str| {
        let entry = runtime.info().layout.iter().find(|entry| entry.name == name);
        let value = &entry.unwrap_or_else(|| panic!("no {name}")).value;
        u64::from_str_radix(value.trim_start_matches("0x"), 16).expect("a number")
    };
    let descriptor = |task: &Value| {
        let text = task["descriptor"].as_str().expect("the address of a task");
        Addr(u64::from_str_radix(text.trim_start_matches("0x"), 16).expect("an address"))
    };
    let read = |addr: Addr| core.read_ptr(addr).expect("the core has it");
    if kmp {
        let waiter = in_state(report, "blocked")[0];
        let root = &all(report, "tasks")[waiter["predecessors"][0].as_u64().expect("an index") as usize];
        let node = read(descriptor(root).offset(offset("kmp_taskdata.td_depnode")));
        let (own, next) = (offset("kmp_depnode_list.node"), offset("kmp_depnode_list.next"));
        let first = read(node.offset(offset("kmp_base_depnode.successors")));
        let entry = (0..500).fold(first, |entry, _| read(entry.offset(next)));
        assert_ne!(read(entry.offset(own)), Addr::NULL);
        let astray = vec![("garbage", 0x5a5a_5a5a_5a5a_5a58), ("a circle", first.0), ("nothing there", 0x10)];
        return Link { at: entry.offset(next), astray, issue: "dependences of tasks" };
    }
    let link = offset("gomp_task.pnode");
    let ready = in_state(report, "ready");
    let (first, middle) = (descriptor(ready[1]), descriptor(ready[500]));
    let astray = vec![("garbage", 0x5a5a_5a5a_5a5a_5a58), ("a circle", first.offset(link).0), ("zero", 0)];
    Link { at: middle.offset(link), astray, issue: "task queue of team" }
}

#[test]
fn a_link_that_leads_astray() {
    let mut seen = 0;
    for (toolchain, runtime) in native_combinations() {
        let (which, state) = if runtime.is_kmp() { ("dependent", "blocked") } else { ("queued", "ready") };
        let running = start(toolchain, runtime, which);
        let directory = tempfile::tempdir().expect("a directory for the core");
        let path = match running.gcore(directory.path()).expect("gcore runs") {
            Ok(path) => path,
            Err(skip) => {
                skip.show();
                continue;
            }
        };
        running.release().unwrap_or_else(|error| panic!("{runtime:?}: {error:?}"));
        let target = path.to_str().expect("a plain path");
        let (good, status) = report(target);
        assert_eq!(status, 0, "{runtime:?}");
        let core = Core::open(&path, &ompd_process::OpenOptions::default()).expect("the core opens");
        let link = link_of(&core, &good, runtime.is_kmp());
        let was = core.read_u64(link.at).expect("the core has it");
        drop(core);
        let place = place_in(&path, link.at);
        let file = OpenOptions::new().write(true).open(&path).expect("the core can be written");
        for (what, astray) in &link.astray {
            let what = format!("{what} on {runtime:?}");
            file.write_all_at(&astray.to_le_bytes(), place).expect("the core can be written");
            let (bad, status) = report(target);
            assert_eq!((status, &bad["complete"]), (PARTLY, &Value::Bool(false)), "{what}");
            let issues = bad["issues"].to_string() + &bad["runtimes"][0]["issues"].to_string();
            assert!(issues.contains(link.issue), "{what}: {issues}");
            for kept in ["teams", "threads"] {
                assert_eq!(bad["runtimes"][0][kept], good["runtimes"][0][kept], "{what}: {kept}");
            }
            assert_eq!(bad["os_threads"], good["os_threads"], "{what}");
            // What lies before the link was read.
            let (left, running) = (counted(&bad, state), |report| in_state(report, "running").len());
            assert!((400..=TASKS).contains(&left), "{what}: {left}");
            assert_eq!(running(&bad), running(&good), "{what}");
            let (text, _, status) = texts(&bounded(command().args(["tasks", target])));
            assert!(status == PARTLY && text.contains(link.issue), "{what}: {status}: {text}");
            let _ = writeln!(std::io::stderr(), "{what}: {left} of {TASKS} tasks left");
            seen += 1;
        }
        file.write_all_at(&was.to_le_bytes(), place).expect("the core can be written");
        assert_eq!(report(target), (good, 0), "{runtime:?}: the link as it was");
    }
    assert!(seen > 0, "no core could be made");
}
