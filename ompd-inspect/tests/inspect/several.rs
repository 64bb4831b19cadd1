//! Several processes in one report, processes found by their names and parents, and exit statuses for scripts.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use serde_json::Value;
use test_programs::{Env, Executable, Launch, Opt, Running, Runtime, Toolchain, build};

use crate::common::{bounded, command, texts};

/// The text, and the same with all blanks alike.
fn text(args: &[&str]) -> (String, String, i32) {
    let (out, err, status) = texts(&bounded(command().args(args)));
    let plain = out.split_whitespace().collect::<Vec<_>>().join(" ");
    (plain, err, status)
}

fn json(args: &[&str]) -> (Value, i32) {
    let (out, err, status) = texts(&bounded(command().arg("--json").args(args)));
    (serde_json::from_str(&out).unwrap_or_else(|error| panic!("{args:?}: {error}: {err}")), status)
}

fn start(program: &str) -> Running {
    let executable = build(program, Toolchain::Gcc, Opt::O2, &[]).expect("the program builds");
    Running::start(&executable, Runtime::Libgomp, Env::Settled).expect("the program starts")
}

fn hang(program: &str) -> Running {
    let executable = build(program, Toolchain::Gcc, Opt::O2, &[]).expect("the program builds");
    Launch::new(&executable, Runtime::Libgomp, Env::Settled).start_hanging().expect("the program hangs")
}

/// Each report is what the schema of reports says, and the list what its own says.
fn check_schema(list: &Value) {
    let read = |name: &str| -> Value {
        let path = format!("{}/../docs/{name}.schema.json", env!("CARGO_MANIFEST_DIR"));
        serde_json::from_slice(&fs::read(path).expect("the schema")).expect("JSON")
    };
    // The schema of reports is another file. With an identifier of its own it can be part of this one.
    let (mut schema, mut of_report) = (read("report-list"), read("report"));
    let reference = schema.pointer_mut("/$defs/Report").expect("the report of a member");
    assert_eq!(reference["$ref"], "report.schema.json");
    of_report["$id"] = "urn:report".into();
    *reference = of_report;
    let validator = jsonschema::validator_for(&schema).expect("a schema");
    let faults = |value: &Value| -> Vec<String> {
        validator.iter_errors(value).map(|error| format!("{}: {error}", error.instance_path())).collect()
    };
    assert_eq!(faults(list), [""; 0]);
    let mut wrong = list.clone();
    wrong["processes"][0]["report"]["os_threads"] = Value::Null;
    assert!(!faults(&wrong).is_empty() && !faults(&Value::Null).is_empty());
}

#[test]
fn several_processes_have_a_section_each_and_the_worst_status() {
    let (healthy, stuck) = (start("idle"), hang("hangs/self_lock"));
    let [healthy_pid, stuck_pid] = [&healthy, &stuck].map(|running| running.pid.to_string());
    let (out, err, status) = text(&[&healthy_pid, &stuck_pid]);
    assert_eq!((status, err.as_str()), (0, ""), "{out}");
    let worst = out.find(&format!("2 processes: DEADLOCK in 1 DEADLOCK {stuck_pid} ")).expect("the overview");
    let sections = [&healthy_pid, &stuck_pid].map(|pid| out.find(&format!("Process {pid} (")).expect("a section"));
    // The worst is the first that is read.
    assert!(worst < sections[1] && sections[1] < sections[0], "{out}");
    let (list, status) = json(&[&healthy_pid, &stuck_pid]);
    assert_eq!((status, &list["complete"], &list["verdict"]), (0, &Value::Bool(true), &Value::from("deadlock")));
    let named: Vec<&Value> = list["processes"].as_array().expect("processes").iter().map(|p| &p["target"]).collect();
    assert_eq!(named, [&*healthy_pid, &*stuck_pid]);
    check_schema(&list);

    // A target that is refused is a section too, and the worst status counts.
    let (out, err, status) = text(&["threads", &healthy_pid, "/none/core"]);
    assert_eq!((status, err.as_str()), (2, ""), "{out}");
    assert!(out.contains(&format!("Process {healthy_pid} (")) && out.contains("/none/core: No such file"), "{out}");
    let (list, status) = json(&[&healthy_pid, "/none/core"]);
    assert_eq!((status, &list["complete"], &list["verdict"]), (2, &Value::Bool(false), &Value::Null));
    assert!(list["processes"][1]["refusal"].as_str().is_some_and(|text| text.contains("remedy: ")), "{list}");
    check_schema(&list);

    // A verdict is a failure for who asks.
    for (args, expected) in [
        (&["--fail-on", "deadlock", &healthy_pid][..], 0),
        (&["--fail-on", "deadlock", &stuck_pid], 3),
        (&["--fail-on", "suspect", &stuck_pid], 3),
        (&["threads", "--fail-on", "deadlock", &stuck_pid], 3),
        (&["--fail-on", "deadlock", &stuck_pid, &healthy_pid], 3),
        (&["--fail-on", "deadlock", &stuck_pid, "/none/core"], 3),
        (&["--fail-on", "deadlock", &healthy_pid, "/none/core"], 2),
    ] {
        let (out, err, status) = text(args);
        assert_eq!(status, expected, "{args:?}: {out}{err}");
    }
    // Threads that wait for one outside of OpenMP are no proven hang.
    let waiting = start("barrier_missing");
    let pid = waiting.pid.to_string();
    for (verdict, expected) in [("waiting", 3), ("deadlock", 0)] {
        let (out, err, status) = text(&["--fail-on", verdict, &pid]);
        assert_eq!(status, expected, "{verdict}: {out}{err}");
    }
    waiting.release().expect("the program's end");
    // A graph is of one process.
    let (out, err, status) = text(&["waits", "--dot", &healthy_pid, &stuck_pid]);
    assert!(out.is_empty() && status == 2 && err.contains("remedy: "), "{err}");
    healthy.release().expect("the program's end");
}

#[test]
fn children_are_named_and_inspected() {
    let running = hang("hangs/fork_child");
    let child = running.pid;
    let status = fs::read_to_string(format!("/proc/{child}/status")).expect("the child");
    let parent = status.lines().find_map(|line| line.strip_prefix("PPid:")).expect("a parent").trim().to_owned();
    let (out, _, status) = text(&[&parent]);
    assert_eq!(status, 0, "{out}");
    let line = out.split_once("Children: 1 (").expect("the children").1;
    assert!(line.starts_with(&format!("{child} ")) && line.contains("; --children inspects them"), "{out}");
    assert!(!out.contains("DEADLOCK"), "{out}");

    let (out, _, status) = text(&["--children", "--fail-on", "deadlock", &parent]);
    assert_eq!(status, 3, "{out}");
    assert!(out.starts_with(&format!("2 processes: DEADLOCK in 1 DEADLOCK {child} (")), "{out}");
    assert!(out.contains(&format!("), child of {parent} no verdict {parent} (")), "{out}");
    assert!(!out.contains("--children inspects"), "{out}");
    let (list, _) = json(&["--children", &parent]);
    let processes = list["processes"].as_array().expect("processes");
    assert_eq!(processes.len(), 2, "{list}");
    assert_eq!(processes[0]["report"]["children"][0]["pid"], child);
    assert_eq!(
        (&processes[1]["target"], processes[1]["parent"].to_string()),
        (&child.to_string().into(), parent.clone())
    );
    assert_eq!(processes[1]["report"]["verdicts"][0]["situation"], "pool_lost_in_fork");
    check_schema(&list);
    // A process without children is a family of one.
    let (list, _) = json(&["--children", &child.to_string()]);
    assert_eq!(list["processes"].as_array().map(Vec::len), Some(1));
    let (_, err, status) = text(&["--children", "./core"]);
    assert!(status == 2 && err.contains("has no child processes") && err.contains("remedy: "), "{err}");
}

#[test]
fn processes_are_found_by_name_and_user() {
    let original = build("idle", Toolchain::Gcc, Opt::O2, &[]).expect("the program builds");
    let directory = tempfile::tempdir().expect("a directory");
    // No other process is called so. The kernel keeps 15 bytes of it.
    let name = format!("named-{}-by-a-test", std::process::id());
    let executable = Executable { path: directory.path().join(&name), ..original.clone() };
    fs::copy(&original.path, &executable.path).expect("a copy of the program");
    fs::set_permissions(&executable.path, fs::Permissions::from_mode(0o755)).expect("a program");
    let [one, two] =
        [0, 1].map(|_| Running::start(&executable, Runtime::Libgomp, Env::Settled).expect("the program starts"));
    let mut pids = [one.pid.to_string(), two.pid.to_string()];
    pids.sort_by_key(|pid| pid.parse::<i32>().expect("a number"));
    let found = |args: &[&str]| -> Vec<String> {
        let (list, _) = json(args);
        let processes = list["processes"].as_array().expect("processes").iter();
        processes.map(|process| process["target"].as_str().expect("a target").to_owned()).collect()
    };
    assert_eq!(found(&["--name", &name]), pids);
    assert_eq!(found(&["--name", &name[..15]]), pids);
    assert_eq!(found(&["--user", "--name", &name]), pids);
    assert_eq!(found(&["--name", &name, &pids[0]]), [&*pids[0], &*pids[1]]);
    for wrong in [&name[..14], "none-is-called-so"] {
        let (out, err, status) = text(&["--name", wrong]);
        assert!(out.is_empty() && status == 2, "{out}");
        assert!(err.contains(&format!("no process is called {wrong}")) && err.contains("remedy: "), "{err}");
    }
    one.release().expect("the program's end");
    two.release().expect("the program's end");
}

/// The kernel does not show what another user executes, only how it is called.
#[test]
fn a_name_of_a_process_of_another_user() {
    let procfs = tempfile::tempdir().expect("a directory");
    let folder = procfs.path().join("4000000");
    fs::create_dir(&folder).expect("a process");
    let zeros = " 0".repeat(49);
    fs::write(folder.join("stat"), format!("4000000 (of-somebody) S{zeros}\n")).expect("its state");
    let look = |name: &str, arguments: &str| {
        fs::write(folder.join("cmdline"), arguments).expect("its arguments");
        text(&["--proc-root", procfs.path().to_str().expect("a path"), "--name", name])
    };
    let (out, err, status) = look("of-somebody", "./of-somebody\0");
    assert!(out.is_empty() && status == 2 && err.contains("look as that user, or as root"), "{out}{err}");
    assert!(err.contains("process 4000000 is called of-somebody, and may not be looked at: it runs as uid"), "{err}");
    // A thread of the kernel has no arguments.
    for (name, arguments) in [("of-somebody", ""), ("of-someone", "./of-somebody\0")] {
        let (_, err, status) = look(name, arguments);
        assert!(status == 2 && err.contains(&format!("no process is called {name}")), "{err}");
    }
}

#[test]
fn a_word_that_resembles_a_command_is_no_file() {
    for (args, meant) in [
        (&["thread", "1"][..], "threads"),
        (&["stack", "1"], "stacks"),
        (&["tread"], "threads"),
        (&["docter", "1"], "doctor"),
        (&["complete"], "completions"),
    ] {
        let (out, err, status) = text(&args[..1]);
        assert_eq!((out.as_str(), status), ("", 2), "{args:?}");
        assert!(err.contains(&format!("remedy: did you mean: ompd-inspect {meant}\n")), "{args:?}: {err}");
    }
    // With a process id behind it, that process is not inspected either.
    let own = std::process::id().to_string();
    let (out, err, status) = text(&["thread", &own]);
    assert!(status == 2 && out.is_empty() && err.contains("did you mean: ompd-inspect threads"), "{out}{err}");
}

/// Only looked for, never run: this one would fail the test.
#[test]
fn cores_of_the_system_are_hinted_at() {
    let directory = tempfile::tempdir().expect("a directory");
    let tool = directory.path().join("coredumpctl");
    fs::write(&tool, "#!/bin/sh\necho run > \"$0.run\"\n").expect("a file");
    fs::set_permissions(&tool, fs::Permissions::from_mode(0o755)).expect("a program");
    let err = |path: &Path, target: &str| {
        let (out, err, status) = texts(&bounded(command().env("PATH", path).arg(target)));
        assert_eq!((out.as_str(), status), ("", 2), "{err}");
        err
    };
    let mut child = command().arg("--version").stdout(std::process::Stdio::null()).spawn().expect("a child");
    child.wait().expect("its end");
    let gone = child.id().to_string();
    let core = "/none/core.solver.1000.0123456789abcdef0123456789abcdef.4711.1700000000000000.zst";
    for (target, hint) in [
        (&*gone, format!("coredumpctl dump {gone} -o core")),
        (core, "coredumpctl dump 4711 -o core".to_owned()),
        ("/none/core", "coredumpctl dump -o core".to_owned()),
    ] {
        assert!(err(directory.path(), target).contains(&hint), "{target}");
        assert!(!err(Path::new("/none"), target).contains("coredumpctl"), "{target}");
    }
    assert!(!err(directory.path(), "/none/program").contains("coredumpctl"));
    assert!(!directory.path().join("coredumpctl.run").exists(), "coredumpctl was run");
}
