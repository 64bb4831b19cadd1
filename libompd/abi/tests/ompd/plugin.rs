//! LLVM's plugin for gdb, as Debian ships it, with this library in place of the one it was written for.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::client::library;
use test_programs::{Env, Launch, Opt, Runtime, Toolchain, build};

fn skip(reason: &str) {
    let _ = writeln!(std::io::stderr(), "skipped: {reason}");
}

/// The plugin, where `ci/fetch debian` has got it.
fn plugin() -> Option<PathBuf> {
    let runtimes = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../test-programs/runtimes");
    let plugin = runtimes.join("debian-bookworm/amd64/libomp-19-dev/__init__.py");
    plugin.is_file().then_some(plugin)
}

/// What gdb prints for commands on a process or a core.
fn gdb(target: &[&str], plugin: &Path, library: &Path, commands: &[&str]) -> String {
    let mut command = Command::new("gdb");
    command.env("LD_LIBRARY_PATH", library).args(["-nx", "-batch", "-ex", "set pagination off"]).args(target);
    command.arg("-ex").arg(format!("source {}", plugin.display()));
    for line in commands {
        command.args(["-ex", line]);
    }
    let done = command.output().expect("gdb runs");
    let text = String::from_utf8_lossy(&done.stdout).into_owned() + &String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{}: {text}", done.status);
    text
}

fn check(text: &str) {
    for wrong in ["Traceback", "SystemError", "Error code", "An error occurred", "could not be loaded"] {
        assert!(!text.contains(wrong), "{wrong}: {text}");
    }
    let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
    let has = |words: &[&str]| assert!(lines.iter().any(|line| line == words), "{words:?}: {text}");
    // The coordinator is thread 1 of an inner team of 2, at level 2, in a team of 3 at level 1.
    has(&["Parallel", "Region:", "Nesting", "Level", "2:", "Team", "Size:", "2"]);
    has(&["Parallel", "Region:", "Nesting", "Level", "1:", "Team", "Size:", "3"]);
    has(&["levels-var", "parallel", "2"]);
    has(&["active-levels-var", "parallel", "2"]);
    has(&["team-size-var", "parallel", "2"]);
    has(&["max-active-levels-var", "task", "2"]);
    has(&["implicit-task-var", "task", "1"]);
    has(&["run-sched-var", "task", "static,0"]);
    // Five members of teams, each with its function and where that stands.
    let members = lines.iter().filter(|line| line.iter().any(|word| word.contains("/nested.c:")) && line.len() >= 6);
    assert!(members.filter(|line| line.iter().any(|word| word.starts_with("ompt_state_"))).count() == 5, "{text}");
    // Frames of the thread's own task, and none of the runtime's.
    let frames: Vec<&str> = text.lines().filter(|line| line.contains("\"#pragma omp parallel\"")).collect();
    assert!(frames.iter().any(|line| line.contains("inner_body")), "{text}");
    assert!(frames.iter().all(|line| !line.contains("__kmp_")), "{text}");
}

#[test]
fn llvms_plugin_works_on_a_process_and_on_a_core() {
    let Some(plugin) = plugin() else { return skip("LLVM's plugin for gdb is not here; \"ci/fetch debian\" gets it") };
    if let Err(reason) = Toolchain::Clang.check().and_then(|()| Runtime::Libiomp5.library().map(drop)) {
        return reason.show();
    }
    let module =
        Command::new("gdb").args(["-nx", "-batch", "-ex"]).arg(format!("source {}", plugin.display())).output();
    match module {
        Ok(done) if String::from_utf8_lossy(&done.stdout).contains("support loaded") => {}
        Ok(_) => return skip("this gdb's Python is not the one that the plugin was built for"),
        Err(why) => return skip(&format!("gdb: {why}")),
    }
    let directory = tempfile::tempdir().expect("a directory");
    // The name that the runtime says its library has.
    std::os::unix::fs::symlink(library(), directory.path().join("libiomp5_db.so")).expect("a link");
    let program = build("nested", Toolchain::Clang, Opt::O0, &[]).expect("it builds");
    let running = Launch::new(&program, Runtime::Libiomp5, Env::Settled).start().expect("it starts");
    let pid = running.pid.to_string();
    let select = format!(
        "python [t for t in gdb.selected_inferior().threads() if t.ptid[1] == {}][0].switch()",
        running.truth.with_role("inner waiter").next().expect("a waiter").lwp
    );
    let commands = [&*select, "ompd init", "ompd icvs", "ompd parallel", "ompd bt on", "bt"];
    check(&gdb(&["-p", &pid], &plugin, directory.path(), &commands));
    match running.gcore(directory.path()).expect("gcore runs") {
        Ok(core) => {
            let core = core.to_str().expect("a plain path");
            let executable = format!("/proc/{pid}/exe");
            check(&gdb(&[&executable, core], &plugin, directory.path(), &commands));
        }
        Err(reason) => reason.show(),
    }
}
