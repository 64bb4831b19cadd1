//! What was recorded survives the process.

use std::path::Path;
use std::process::Command;

use ompd_inspection::history::{History, history};
use ompd_process::OpenOptions;
use test_programs::Skip;

use crate::common::{Held, companion, libraries, program, start};

fn of_core(core: &Path) -> History {
    history(&core.display().to_string(), &OpenOptions::default(), u64::MAX).expect("the core has a history")
}

/// What must be the same: every event, of every thread.
fn events(history: &History) -> Vec<(u64, Vec<ompt_record::event::Event>)> {
    history.threads.iter().map(|thread| (thread.lwp, thread.events.clone())).collect()
}

#[test]
fn gcore() {
    let Some(program) = program("recorded", &[]) else { return };
    if Command::new("gcore").arg("-h").output().is_err() {
        return Skip::because("there is no gcore; it comes with gdb").show();
    }
    let directory = tempfile::tempdir().expect("a directory");
    let (library, what) = libraries().into_iter().next().expect("a libomp");
    let running = start(&program, library.path(), &what, &[]).expect("it runs");
    test_programs::await_all_blocked(running.pid(), 3, true).expect("it comes to rest");
    let live = crate::common::history(running.pid());
    let prefix = directory.path().join("core");
    let done =
        Command::new("gcore").arg("-o").arg(&prefix).arg(running.pid().to_string()).output().expect("gcore runs");
    assert!(done.status.success(), "{done:?}");
    let core = directory.path().join(format!("core.{}", running.pid()));
    let dead = of_core(&core);
    assert_eq!(events(&dead), events(&live));
    assert_eq!(dead.places, live.places);
    // Rings that nobody has are not in it: a thousand of them would be a quarter of a gigabyte.
    assert!(core.metadata().expect("it is there").len() < 200 << 20, "{:?}", core.metadata());
    // That it is killed changes nothing in what was written down before.
    drop(running);
    assert_eq!(events(&of_core(&core)), events(&live));
}

/// The program aborts, and the kernel writes the core.
#[test]
fn a_crash() {
    let Some(program) = program("recorded", &[]) else { return };
    let pattern = std::fs::read_to_string("/proc/sys/kernel/core_pattern").unwrap_or_default();
    if pattern.starts_with('|') || pattern.contains(['/', '%']) {
        return Skip::because(format!("the kernel does not write cores where the program is: {}", pattern.trim()))
            .show();
    }
    let directory = tempfile::tempdir().expect("a directory");
    let (library, what) = libraries().into_iter().next().expect("a libomp");
    let file = companion().display().to_string();
    let run = format!(
        "cd '{}' && ulimit -c unlimited && exec '{}' abort",
        directory.path().display(),
        program.path.display()
    );
    let variables = [("OMP_TOOL_LIBRARIES", &*file)];
    let running = Held::start(Path::new("/bin/sh"), library.path(), &what, &variables, &["-c", &run]).expect("it runs");
    test_programs::await_all_blocked(running.pid(), 3, true).expect("it comes to rest");
    let live = crate::common::history(running.pid());
    running.go_on();
    let cores: Vec<_> = std::fs::read_dir(directory.path()).expect("a directory").filter_map(Result::ok).collect();
    let Some(core) = cores.first() else {
        return Skip::because("the kernel wrote no core (hard limit 0?)").show();
    };
    let dead = of_core(&core.path());
    // What was under way has not gone on.
    assert_eq!(events(&dead), events(&live));
}

/// The file that a flush writes has the same as the process.
#[test]
fn a_file() {
    let Some(program) = program("recorded", &[]) else { return };
    let directory = tempfile::tempdir().expect("a directory");
    let name = directory.path().join("history.%p").display().to_string();
    for (library, what) in libraries() {
        let variables = [("OMPT_COMPANION_FILE", &*name)];
        let Some(running) = start(&program, library.path(), &what, &variables) else { continue };
        let pid = running.pid();
        running.end();
        let file = directory.path().join(format!("history.{pid}"));
        let history = of_core(&file);
        assert_eq!((history.pid, history.kind), (pid as u64, None), "{what}");
        assert_eq!(history.threads.len(), 3, "{what}");
        // The program was over when it was written: every thread that is told of its end has ended last.
        let ended = history.threads.iter().filter(|thread| thread.ended.is_some());
        assert!(ended.clone().count() > 0, "{what}");
        for thread in ended {
            assert_eq!(thread.events.last().map(|event| event.kind), Some(2), "{what}");
        }
        assert_eq!(history.state, ompt_record::block::State::Ended, "{what}");
    }
}

/// The file says which files were mapped: addresses have the same names as in the process.
#[test]
fn addresses_in_a_file_have_names() {
    let Some(program) = program("recorded", &[]) else { return };
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("history");
    // The program is gone when the file is read.
    let copy = directory.path().join("program");
    std::fs::copy(&program.path, &copy).expect("a copy");
    let (library, what) = libraries().into_iter().next().expect("a libomp");
    let name = file.display().to_string();
    let tool = companion().display().to_string();
    let variables = [("OMPT_COMPANION_FILE", &*name), ("OMP_TOOL_LIBRARIES", &*tool)];
    let running = Held::start(&copy, library.path(), &what, &variables, &[]).expect("it runs");
    let live = crate::common::history(running.pid());
    running.end();
    let of_file = |options: &OpenOptions| history(&name, options, u64::MAX).expect("a history");
    let there = of_file(&OpenOptions::default());
    assert!(there.issues.is_empty(), "{:?}", there.issues);
    assert!(live.places.values().any(|place| place.line.is_some()) && !live.names.is_empty());
    for (address, place) in &live.places {
        assert_eq!(there.places.get(address), Some(place), "{address:#x}");
    }
    for (address, name) in &live.names {
        assert_eq!(there.names.get(address), Some(name), "{address:#x}");
    }
    std::fs::remove_file(&copy).expect("it is there");
    let gone = of_file(&OpenOptions::default());
    assert!(gone.places.values().all(|place| place.line.is_none()));
    assert!(gone.issues.iter().any(|issue| issue.contains("give it with --exe PATH")), "{:?}", gone.issues);
    let named = of_file(&OpenOptions { exe: Some(program.path.clone()), ..OpenOptions::default() });
    assert_eq!(named.places.len(), there.places.len());
    for (address, place) in &there.places {
        assert_eq!(named.places.get(address).and_then(|place| place.line), place.line, "{address:#x}");
    }
    assert!(named.issues.is_empty(), "{:?}", named.issues);
    // Another program is not taken for it.
    let other = of_file(&OpenOptions { exe: Some("/bin/sh".into()), ..OpenOptions::default() });
    assert!(other.places.values().all(|place| place.line.is_none()));
}

/// What was written before an exec stays beside what is written after it.
#[test]
fn a_file_from_before_an_exec_is_kept() {
    let Some(program) = program("exec_again", &[]) else { return };
    let directory = tempfile::tempdir().expect("a directory");
    let name = directory.path().join("history");
    for (library, what) in libraries() {
        let file = name.display().to_string();
        let none = [("OMP_TOOL", "disabled"), ("LD_LIBRARY_PATH", library.path().to_str().expect("a path of text"))];
        let plain =
            Command::new(&program.path).envs(none).stdin(std::process::Stdio::null()).output().expect("it runs");
        if !plain.status.success() {
            let text = String::from_utf8_lossy(&plain.stderr);
            Skip::because(format!("{what}, without a tool: {}", text.trim_end())).show();
            continue;
        }
        let Some(running) = start(&program, library.path(), &what, &[("OMPT_COMPANION_FILE", &file)]) else { continue };
        let pid = running.pid() as u64;
        running.end();
        let (now, before) = (of_core(&name), of_core(&directory.path().join("history.1")));
        assert_eq!((now.pid, before.pid), (pid, pid), "{what}");
        let regions =
            |of: &History| of.threads.iter().flat_map(|thread| &thread.events).filter(|e| e.kind == 3).count();
        assert_eq!((regions(&before), regions(&now)), (1, 2), "{what}");
        assert!(!directory.path().join("history.2").exists(), "{what}: the file of another run is written over");
        std::fs::remove_file(directory.path().join("history.1")).expect("it is there");
    }
}
