//! Target regions on a device that a thread plays, and on the host. Real devices are in `ci/gpu`.

use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::symlink;
use std::process::{Child, Command, Stdio};

use serde_json::Value;
use test_programs::{Opt, Skip, Toolchain, await_all_blocked, build};

use crate::common::json;

/// The program `gpu`, which does not end by itself.
struct Program {
    child: Child,
    said: Vec<String>,
    _plugin: tempfile::TempDir,
}

impl Drop for Program {
    fn drop(&mut self) {
        // It may be gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Program {
    /// `runs`: how many target regions the device executes before it hangs; without a device none.
    fn start(how: &[&str], runs: Option<u32>) -> Option<Program> {
        if let Err(skip) = Toolchain::Gcc.check() {
            skip.show();
            return None;
        }
        let program = build("gpu", Toolchain::Gcc, Opt::O0, &[]).expect("it builds");
        // Without lines, as what makers of devices deliver.
        let flags = ["-shared", "-fPIC", "-g0", "-DDEVICE_PLUGIN_VERSION=1"];
        let plugin = build("device_plugin", Toolchain::Gcc, Opt::O2, &flags).expect("it builds");
        let directory = tempfile::tempdir().expect("a directory");
        symlink(&plugin.path, directory.path().join("libgomp-plugin-nvptx.so.1")).expect("a link");
        let mut command = Command::new(&program.path);
        let inherited = std::env::vars_os().map(|(name, _)| name);
        for name in inherited.filter(|name| ["OMP_", "GOMP_"].iter().any(|p| name.to_string_lossy().starts_with(p))) {
            command.env_remove(name);
        }
        command.args(how).env("OMP_WAIT_POLICY", "passive").stdin(Stdio::null()).stdout(Stdio::piped());
        if let Some(runs) = runs {
            command.env("LD_LIBRARY_PATH", directory.path()).env("DEVICE_RUNS", runs.to_string());
        }
        let mut child = command.spawn().expect("it starts");
        let mut said = Vec::new();
        for line in BufReader::new(child.stdout.take().expect("its output")).lines() {
            let line = line.expect("text");
            if line == "ready" {
                break;
            }
            said.push(line);
        }
        let program = Program { child, said, _plugin: directory };
        let devices = if runs.is_some() { "1" } else { "0" };
        if program.word("devices") != [devices] {
            // Of the first version of the plugins' interface, which GCC 12 has; and a machine may have a device.
            Skip::because(format!("libgomp does not have {devices} devices: {:?}", program.said)).show();
            return None;
        }
        Some(program)
    }

    fn word(&self, name: &str) -> Vec<&str> {
        let line = self.said.iter().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')).unwrap_or_default();
        line.split(' ').collect()
    }

    /// The kernel's id of a thread by its number.
    fn lwp(&self, number: &str) -> i64 {
        let threads = self.said.iter().filter_map(|line| line.strip_prefix("thread ")?.split_once(' '));
        let mut lwps = threads.filter(|(of, _)| *of == number).map(|(_, lwp)| lwp.parse().expect("a number"));
        lwps.next().expect("the thread")
    }

    /// What is shown once it has this many threads, and all of them sleep; or spin, if `spins`.
    fn report(&self, threads: usize, spins: bool) -> Value {
        let pid = self.child.id();
        await_all_blocked(pid.cast_signed(), threads, spins).expect("it comes to rest");
        json(&[&pid.to_string()]).0
    }
}

fn threads(report: &Value) -> &[Value] {
    report["runtimes"][0]["threads"].as_array().expect("threads")
}

fn thread(report: &Value, lwp: i64) -> &Value {
    threads(report).iter().find(|thread| thread["lwp"] == lwp).expect("the thread")
}

fn wait_of(thread: &Value) -> &Value {
    &thread["wait"]["value"]["kind"]
}

/// Frames of a thread's stack, as `function:line`.
fn frames(report: &Value, lwp: i64) -> Vec<String> {
    let stacks = report["stacks"].as_array().expect("stacks");
    let stack = stacks.iter().find(|stack| stack["lwp"] == lwp).expect("its stack");
    assert_eq!(stack.get("gap"), None, "{stack:#}");
    let frames = stack["frames"].as_array().expect("frames");
    frames.iter().map(|frame| format!("{}:{}", frame["function"].as_str().unwrap_or("?"), frame["line"])).collect()
}

#[test]
fn a_thread_waits_for_a_device_in_a_target_region() {
    let Some(program) = Program::start(&["region"], Some(1)) else { return };
    let lwp = program.lwp("1");
    // With the thread that plays the device.
    let report = program.report(4, false);
    assert_eq!(threads(&report).iter().filter(|thread| wait_of(thread) == "end of region").count(), 2, "{report:#}");
    let outside = &thread(&report, lwp)["outside"];
    assert_eq!(
        (&outside["wait"]["kind"], &outside["wait"]["device_call"]),
        (&"device".into(), &"cuCtxSynchronize".into())
    );
    let place = program.word("construct");
    let called = (outside["call"]["caller"].as_str(), outside["call"]["line"].to_string());
    assert_eq!(called, (Some(place[0]), place[1].to_owned()), "{outside:#}");
    let text = format!("waits for a device in cuCtxSynchronize, gpu.c:{}, in {}", place[1], place[0]);
    assert_eq!(outside["text"], text);
    assert!(report["answer"]["cause"].as_str().expect("a cause").contains(&text), "{:#}", report["answer"]);
    assert!(frames(&report, lwp).contains(&format!("region:{}", place[1])), "{:?}", frames(&report, lwp));
}

/// No thread of the host executes it, and yet it is not one that nobody can end: the device may do so at any time.
#[test]
fn a_target_task_is_on_a_device() {
    for how in ["nowait", "depend"] {
        let Some(program) = Program::start(&[how], Some(1)) else { return };
        let report = program.report(4, false);
        let verdict = &report["verdicts"][0];
        let said = (&verdict["verdict"], &verdict["situation"], &report["answer"]["word"]);
        assert_eq!(said, (&"waiting".into(), &"device_not_done".into(), &"WAITING".into()), "{how}: {verdict:#}");
        let tasks = report["runtimes"][0]["tasks"].as_array().expect("tasks");
        let states: Vec<&str> = tasks
            .iter()
            .filter(|task| task["kind"]["value"] == "explicit")
            .filter_map(|task| task["state"]["value"].as_str())
            .collect();
        let expected: &[&str] = if how == "depend" { &["on device", "blocked"] } else { &["on device"] };
        assert_eq!(states, expected, "{how}");
    }
}

/// Without a device the thread itself executes the region, and its runtime forgets for the time what it is to its team.
#[test]
fn a_member_that_executes_a_target_region_on_the_host_stays_one() {
    let modes = ["region", "task", "nested"].into_iter().flat_map(|how| [(how, "1"), (how, "0")]);
    for (how, number) in modes {
        let Some(program) = Program::start(&[how, number], None) else { return };
        let what = format!("{how}, thread {number}");
        let line = program.word("construct")[1].to_owned();
        // The nested region has a thread more. The one that executes the target region computes.
        let report = program.report(if how == "nested" { 4 } else { 3 }, true);
        let is_set_aside = |thread: &&Value| thread["role"]["code"] == "gomp-set-aside";
        // A task may be executed by any of them.
        let lwp = match how {
            "task" => threads(&report).iter().find(is_set_aside).expect("one executes it")["lwp"].as_i64(),
            _ => Some(program.lwp(number)),
        };
        let lwp = lwp.expect("its id");
        let stacks = report["stacks"].as_array().expect("stacks");
        let stack = stacks.iter().find(|stack| stack["lwp"] == lwp).expect("its stack");
        let frames = stack["frames"].as_array().expect("frames");
        let target = frames.iter().find(|frame| frame["construct"] == "target");
        let team =
            &report["runtimes"][0]["teams"].as_array().expect("teams").iter().find(|of| of["size"]["value"] == 3);
        let lwps: Vec<i64> = ["0", "1", "2"].map(|number| program.lwp(number)).to_vec();
        assert_eq!(team.expect("the team")["members"], Value::from(lwps), "{what}: {report:#}");
        // For which task a thread waits in taskwait, is not known if another thread executes it.
        let word = report["answer"]["word"].as_str().unwrap_or_default();
        assert!(word == "WAITING" || how == "task" && word == "RUNNING", "{what}: {:#}", report["answer"]);
        // The stack of thread 0 has both regions, and only the inner one is known to be its own.
        let complete = report["complete"] == true || (how, number) == ("nested", "0");
        // Which task it is cannot be known either.
        assert!(complete || how == "task", "{what}: {:#}", report["issues"]);
        // The runtime calls a task's body from wherever it executes tasks.
        let line_of_target = target.map(|frame| frame["construct_line"].to_string());
        assert_eq!(line_of_target, (how != "task").then_some(line), "{what}: {frames:#?}");
        if how != "nested" {
            let own = thread(&report, lwp);
            let codes = ["role", "team", "thread_num", "task"].map(|name| own[name]["code"].as_str());
            assert_eq!(codes, [Some("gomp-set-aside"); 4], "{what}: {own:#}");
            assert_eq!(threads(&report).iter().filter(is_set_aside).count(), 1, "{what}: {report:#}");
        }
    }
}
