//! Python functions in stacks, on every CPython at hand: against what Python says of itself, and against py-spy and pystack. Who holds
//! the interpreter lock, and who waits for it.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use test_programs::python::{Script, interpreters, peer};
use test_programs::transcripts::of_another_system;
use test_programs::{Runtime, Skip};

use crate::{common, transcripts};

/// A function's name, file and line.
type Frame = (String, String, u64);

/// Frames of threads, the innermost first, by LWP.
type Stacks = BTreeMap<String, Vec<Frame>>;

fn truth(script: &Script) -> Stacks {
    let frame = |frame: &Value| {
        let text = |index: usize| frame[index].as_str().expect("a text").to_owned();
        (text(0), text(1), frame[2].as_u64().expect("a line"))
    };
    let frames = |frames: &Value| frames.as_array().expect("frames").iter().map(frame).collect();
    let threads = script.truth["threads"].as_object().expect("threads");
    threads.iter().map(|(lwp, of)| (lwp.clone(), frames(of))).collect()
}

/// The Python functions of each stack. No frame of the interpreter loop may be left, and nothing be unknown.
fn shown(report: &Value) -> Stacks {
    let stacks = report["stacks"].as_array().expect("stacks").iter();
    let of = |stack: &Value| {
        assert_eq!(stack["gap"], Value::Null, "{stack}");
        let frames = stack["frames"].as_array().expect("frames").iter();
        let frames = frames.filter_map(|frame| {
            let name = frame["function"].as_str().unwrap_or_default();
            assert!(!name.starts_with("_PyEval_EvalFrame"), "{stack}");
            let file = frame["file"].as_str().unwrap_or_default();
            (frame["language"] == "python")
                .then(|| (name.to_owned(), file.to_owned(), frame["line"].as_u64().unwrap_or(0)))
        });
        (stack["lwp"].to_string(), frames.collect())
    };
    stacks.map(of).collect()
}

/// Live, then from the core that the kernel writes.
fn shows_all_functions(minor: u8) {
    let interpreters = match interpreters(minor) {
        Ok(found) => found,
        Err(skip) => return skip.show(),
    };
    for interpreter in interpreters {
        let folder = tempfile::tempdir().expect("a folder");
        let script = Script::start(&interpreter, "frames.py", folder.path());
        let truth = truth(&script);
        let (report, _) = common::json(&[&script.pid.to_string()]);
        assert_eq!(shown(&report), truth, "{}", interpreter.display());
        check_callers(&report, &truth, &interpreter);
        check_python(&report, &script, &interpreter);
        let core = match script.kernel_core(folder.path()) {
            Ok(core) => core,
            Err(skip) => {
                skip.show();
                continue;
            }
        };
        let (report, _) = common::json(&[core.to_str().expect("a path")]);
        assert_eq!(shown(&report), truth, "core of {}", interpreter.display());
        let functions: usize = truth.values().map(Vec::len).sum();
        let _ = writeln!(std::io::stderr(), "{}: {functions} functions, live and core", interpreter.display());
    }
}

/// Each thread is blocked in a function of C that Python called: it is said to be where Python called it.
fn check_callers(report: &Value, truth: &Stacks, interpreter: &Path) {
    for (lwp, frames) in truth {
        let thread = report["os_threads"]
            .as_array()
            .expect("threads")
            .iter()
            .find(|t| t["lwp"] == json!(lwp.parse::<i32>().unwrap_or(0)));
        let call = &thread.expect("the thread")["outside"]["call"];
        let (function, file, line) = &frames[0];
        let expected = json!({"function": "read", "caller": function, "file": file, "line": line});
        assert_eq!(call, &expected, "{lwp} of {}", interpreter.display());
    }
}

fn check_python(report: &Value, script: &Script, interpreter: &Path) {
    let [python] = report["python"].as_array().expect("Python").as_slice() else { panic!("{}", report["python"]) };
    let version: Vec<String> =
        script.truth["version"].as_array().expect("a version").iter().map(Value::to_string).collect();
    let stated = python["version"].as_str().expect("a version");
    // Before 3.11 the process does not say which patch it is.
    assert!(version.join(".") == stated || version[..2].join(".") == stated, "{stated}, {}", interpreter.display());
    let layout = if version[1].len() == 2 && version[1].as_str() >= "13" { "process" } else { "headers" };
    assert_eq!(python["layout"], layout, "{}", interpreter.display());
    assert_eq!(python.get("problem"), None, "{}", interpreter.display());
    // All threads are in read(), for which they have released it.
    assert_eq!(python["gils"], json!([{ "held": false, "waiting": [] }]), "{}", interpreter.display());
}

#[test]
fn functions_of_3_8_are_shown() {
    shows_all_functions(8);
}

#[test]
fn functions_of_3_9_are_shown() {
    shows_all_functions(9);
}

#[test]
fn functions_of_3_10_are_shown() {
    shows_all_functions(10);
}

#[test]
fn functions_of_3_11_are_shown() {
    shows_all_functions(11);
}

#[test]
fn functions_of_3_12_are_shown() {
    shows_all_functions(12);
}

#[test]
fn functions_of_3_13_are_shown() {
    shows_all_functions(13);
}

#[test]
fn functions_of_3_14_are_shown() {
    shows_all_functions(14);
}

/// Stacks as another tool shows them; `None` if it cannot.
type Peer = fn(&Path, i32) -> Result<Stacks, String>;

fn py_spy(tool: &Path, pid: i32) -> Result<Stacks, String> {
    let output = Command::new(tool).args(["dump", "--json", "--pid", &pid.to_string()]).output().expect("py-spy runs");
    let threads: Value = serde_json::from_slice(&output.stdout)
        .map_err(|_| String::from_utf8_lossy(&output.stderr).lines().next().unwrap_or_default().to_owned())?;
    let frame = |frame: &Value| {
        let text = |key: &str| frame[key].as_str().expect("a text").to_owned();
        (text("name"), text("filename"), frame["line"].as_u64().expect("a line"))
    };
    let of = |thread: &Value| {
        let frames = thread["frames"].as_array().expect("frames").iter().map(frame);
        (thread["os_thread_id"].to_string(), frames.collect())
    };
    Ok(threads.as_array().expect("threads").iter().map(of).collect())
}

/// `Traceback for thread 12 (name) [] (most recent call last):`, then `(Python) File "/x.py", line 3, in f` and the like.
fn pystack(tool: &Path, pid: i32) -> Result<Stacks, String> {
    let output = Command::new(tool).args(["--no-color", "remote", &pid.to_string()]).output().expect("pystack runs");
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).lines().last().unwrap_or_default().to_owned());
    }
    let mut stacks = Stacks::new();
    let mut thread = String::new();
    for line in String::from_utf8(output.stdout).expect("a text").lines() {
        if let Some(rest) = line.strip_prefix("Traceback for thread ") {
            thread = rest.split(' ').next().unwrap_or_default().to_owned();
        } else if let Some(rest) = line.trim().strip_prefix("(Python) File \"") {
            let (file, rest) = rest.split_once("\", line ").expect("a line");
            let (line, name) = rest.split_once(", in ").expect("a name");
            let frame = (name.to_owned(), file.to_owned(), line.parse().expect("a number"));
            stacks.entry(thread.clone()).or_default().insert(0, frame);
        }
    }
    Ok(stacks)
}

fn agrees_with(name: &str, read: Peer) {
    let tool = match peer(name) {
        Ok(tool) => tool,
        Err(skip) => return skip.show(),
    };
    // Names may be qualified or not.
    let short = |stacks: Stacks| -> Stacks {
        let last = |name: &str| name.rsplit('.').next().unwrap_or_default().to_owned();
        let of = |(lwp, frames): (String, Vec<Frame>)| {
            (lwp, frames.into_iter().map(|(name, file, line)| (last(&name), file, line)).collect())
        };
        stacks.into_iter().map(of).collect()
    };
    for interpreter in (8..=14).filter_map(|minor| interpreters(minor).ok()).flatten() {
        let script = Script::start(&interpreter, "frames.py", Path::new("/"));
        match read(&tool, script.pid) {
            Ok(theirs) => {
                let (report, _) = common::json(&[&script.pid.to_string()]);
                let (ours, theirs) = (short(shown(&report)), short(theirs));
                assert_eq!(ours, theirs, "{}", interpreter.display());
                let functions: usize = theirs.values().map(Vec::len).sum();
                let _ = writeln!(std::io::stderr(), "{name}, {}: {functions} functions agree", interpreter.display());
            }
            Err(why) => {
                let _ = writeln!(std::io::stderr(), "skipped: {name} on {}: {why}", interpreter.display());
            }
        }
        script.finish();
    }
}

#[test]
fn py_spy_shows_the_same_functions() {
    agrees_with("py-spy", py_spy);
}

#[test]
fn pystack_shows_the_same_functions() {
    agrees_with("pystack", pystack);
}

/// A process whose main thread holds the interpreter lock, when its other threads wait for it.
fn holding(interpreter: &Path) -> Script {
    let script = Script::start(interpreter, "gil.py", Path::new("/"));
    let waiters = script.truth["waiters"].as_array().expect("threads");
    // They have returned from read(), which needs no lock, and sleep until they have it.
    let futex = |lwp: &Value| {
        let call = std::fs::read_to_string(format!("/proc/{}/task/{lwp}/syscall", script.pid)).expect("the call");
        call.split(' ').next() == Some(&nix::libc::SYS_futex.to_string())
    };
    while !waiters.iter().all(futex) {
        std::thread::yield_now();
    }
    script
}

/// The page shows a Python with debug information.
#[test]
fn stacks_of_the_page_are_current() {
    let directory = tempfile::tempdir().expect("a directory");
    let shown = |interpreter: PathBuf| {
        // The report names what has the other end of the pipe that Python reads: not this test.
        let reader = directory.path().join("reader");
        let text = format!("#!/bin/sh\ncat | exec {} \"$@\"\n", interpreter.display());
        std::fs::write(&reader, text).expect("a script");
        std::fs::set_permissions(&reader, std::fs::Permissions::from_mode(0o700)).expect("it can be executed");
        let script = holding(&reader);
        let pid = script.pid.to_string();
        let (printed, error, status) = common::texts(&common::run(&["stacks", &pid]));
        assert_eq!((error.as_str(), status), ("", 1), "{printed}");
        script.finish();
        printed.contains(" callproc.c:").then_some((pid, printed))
    };
    let found = interpreters(11).unwrap_or_default().into_iter().find_map(shown);
    let Some((pid, printed)) = found else {
        return Skip::because("no CPython 3.11 with debug information, which docs/python.md shows").show();
    };
    if let Some(skip) = of_another_system() {
        return skip.show();
    }
    transcripts::check_nth("docs/python.md", ("stacks", 1), &pid, &printed, false);
}

#[test]
fn who_waits_for_the_interpreter_lock_is_shown() {
    for interpreter in (8..=14).filter_map(|minor| interpreters(minor).map_err(|skip| skip.show()).ok()).flatten() {
        let script = holding(&interpreter);
        let (holder, waiters) = (&script.truth["holder"], script.truth["waiters"].as_array().expect("threads"));
        let pid = script.pid.to_string();
        let (report, _) = common::json(&[&pid]);
        let mut waiting = waiters.clone();
        waiting.sort_by_key(Value::as_i64);
        let gil = &report["python"][0]["gils"][0];
        let mut ours = gil["waiting"].as_array().expect("threads").clone();
        ours.sort_by_key(Value::as_i64);
        assert_eq!((&gil["held"], &gil["holder"]), (&json!(true), holder), "{}", interpreter.display());
        assert_eq!(ours, waiting, "{}", interpreter.display());
        let (text, _, _) = common::texts(&common::run(&["threads", &pid]));
        let line = format!("waits for Python's GIL, held by LWP {holder}");
        assert_eq!(text.matches(&line).count(), waiters.len(), "{}: {text}", interpreter.display());
        let (doctor, _, _) = common::texts(&common::run(&["doctor", &pid]));
        assert!(doctor.contains(&format!("held by LWP {holder}; {} threads wait for it", waiters.len())), "{doctor}");
        script.finish();
    }
}

/// The main thread has the interpreter's lock and waits for a lock of OpenMP, whose owner waits for the interpreter's.
#[test]
fn interpreter_lock_and_openmp_lock_in_a_circle_are_a_deadlock() {
    let found: Vec<PathBuf> = (8..=14).rev().filter_map(|minor| interpreters(minor).ok()).flatten().collect();
    let Some(newest) = found.first() else { return Skip::because("no CPython here".to_owned()).show() };
    // The fetched ones are started by a loader of their own.
    let installed = found.iter().find(|path| !path.components().any(|part| part.as_os_str() == "runtimes"));
    if installed.is_none() {
        Skip::because("no CPython is installed here: cores were not looked at".to_owned()).show();
    }
    for interpreter in std::iter::once(newest).chain(installed) {
        lock_and_interpreter_lock(interpreter, installed == Some(interpreter));
    }
}

/// If `with_core`, a core of the process is looked at too. In a core of a process with a loader of its own, the owner of the lock is not
/// found.
fn lock_and_interpreter_lock(interpreter: &Path, with_core: bool) {
    for runtime in Runtime::available() {
        let library = match runtime.library() {
            Ok(library) => library,
            Err(skip) => {
                skip.show();
                continue;
            }
        };
        let script = Script::start_with(interpreter, "gil_lock.py", &[&library], Path::new("/"));
        let number = |key: &str| script.truth[key].as_i64().expect("a thread");
        let (holder, owner) = (number("holder"), number("owner"));
        // The owner has its byte, and sleeps until it has the interpreter's lock.
        let sleeps = |lwp: i64| {
            let call = std::fs::read_to_string(format!("/proc/{}/task/{lwp}/syscall", script.pid)).expect("the call");
            call.split(' ').next() == Some(&nix::libc::SYS_futex.to_string())
        };
        while !sleeps(owner) {
            std::thread::yield_now();
        }
        let pid = script.pid.to_string();
        let what = format!("{} on {runtime:?}", interpreter.display());
        let (report, _) = common::json(&["waits", &pid]);
        let verdict = &report["verdicts"][0];
        assert_eq!(
            (&verdict["verdict"], &verdict["situation"]),
            (&json!("deadlock"), &json!("lock_cycle")),
            "{what}: {}",
            report["verdicts"]
        );
        let mut threads = [holder, owner];
        threads.sort_unstable();
        assert_eq!(verdict["threads"], json!(threads), "{what}");
        let text = report["answer"]["text"].as_str().expect("an answer");
        assert!(text.contains("Python's GIL"), "{what}: {text}");
        let lines = common::answer(&what, &pid);
        assert_eq!(lines.len(), 3, "{what}: {lines:?}");
        let cause = ["held by the thread with id", "waits for Python's GIL", "gil_lock.py:"];
        assert!(cause.iter().all(|part| lines[1].contains(part)), "{what}: {lines:?}");
        if !with_core {
            continue;
        }
        let directory = tempfile::tempdir().expect("a directory");
        let core = match test_programs::gcore(script.pid, directory.path()).expect("gcore works") {
            Ok(core) => core.to_string_lossy().into_owned(),
            Err(skip) => {
                skip.show();
                continue;
            }
        };
        let (report, _) = common::json(&["waits", &core]);
        let verdicts = &report["verdicts"];
        // A thread that spins may have been stopped at a moment that does not show whether its wait is over.
        if runtime.is_kmp() && verdicts[0] == Value::Null {
            Skip::because(format!("{what}: a thread spun when its core was written")).show();
            continue;
        }
        // A core does not show which signals have handlers.
        assert_eq!(verdicts[0]["verdict"], json!("suspect"), "{what}: {verdicts}");
        if !runtime.is_kmp() {
            let found = (&verdicts[0]["situation"], &verdicts[0]["threads"]);
            assert_eq!(found, (&json!("lock_cycle"), &json!(threads)), "{what}: {verdicts}");
        }
        let lines = common::answer(&what, &core);
        assert!(cause.iter().all(|part| lines[1].contains(part)), "{what}: {lines:?}");
    }
}

/// Threads that call functions all the time are caught while a frame is made or left. What is shown of them is still right.
#[test]
fn functions_of_running_threads_are_shown() {
    const LOOKS: usize = 5;
    for interpreter in (8..=14).filter_map(|minor| interpreters(minor).ok()?.into_iter().next()) {
        let script = Script::start(&interpreter, "busy.py", Path::new("/"));
        let workers = script.truth["workers"].as_array().expect("threads");
        let (mut gaps, mut functions) = (0, 0);
        for _ in 0..LOOKS {
            let (report, _) = common::json(&[&script.pid.to_string()]);
            let stacks = report["stacks"].as_array().expect("stacks").iter();
            for stack in stacks.filter(|stack| workers.contains(&stack["lwp"])) {
                let frames = stack["frames"].as_array().expect("frames").iter();
                let python: Vec<&Value> = frames.filter(|frame| frame["language"] == "python").collect();
                gaps += usize::from(stack["gap"] != Value::Null);
                for frame in python.iter().filter(|frame| frame["file"] == script.truth["file"]) {
                    let lines = &script.truth["functions"][frame["function"].as_str().expect("a name")];
                    // A generator that has executed nothing yet is at no line.
                    let Some(line) = frame["line"].as_u64() else { continue };
                    let lines = [&lines[0], &lines[1]].map(|line| line.as_u64().expect("a line"));
                    assert!((lines[0]..=lines[1]).contains(&line), "{frame}, {lines:?}: {stack}");
                    functions += 1;
                }
                let own = python.iter().rev().map(|frame| frame["function"].as_str().unwrap_or_default());
                let own: Vec<&str> = own.map(|name| name.rsplit('.').next().unwrap_or_default()).collect();
                assert!(own.len() > 3 || stack["gap"] != Value::Null, "{stack}");
                if stack["gap"] == Value::Null {
                    assert_eq!(own[..4], ["_bootstrap", "_bootstrap_inner", "run", "work"], "{stack}");
                }
            }
        }
        let _ = writeln!(std::io::stderr(), "{}: {functions} functions, {gaps} gaps", interpreter.display());
        assert!(functions >= LOOKS * workers.len() - gaps, "{}", interpreter.display());
        script.finish();
    }
}
