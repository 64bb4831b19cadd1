//! LLVM's plugin for gdb, as Debian ships it, with this library in place of the one it was written for.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::client::library;
use test_programs::{Env, Launch, Opt, Running, Runtime, Toolchain, build};

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

/// The plugin, and whether it can be tried on this runtime; the reason is told.
fn works(runtime: Runtime) -> Option<PathBuf> {
    let Some(plugin) = plugin() else {
        skip("LLVM's plugin for gdb is not here; \"ci/fetch debian\" gets it");
        return None;
    };
    if let Err(reason) = Toolchain::Clang.check().and_then(|()| runtime.library().map(drop)) {
        reason.show();
        return None;
    }
    let module =
        Command::new("gdb").args(["-nx", "-batch", "-ex"]).arg(format!("source {}", plugin.display())).output();
    match module {
        Ok(done) if String::from_utf8_lossy(&done.stdout).contains("support loaded") => Some(plugin),
        Ok(_) => {
            skip("this gdb's Python is not the one that the plugin was built for");
            None
        }
        Err(why) => {
            skip(&format!("gdb: {why}"));
            None
        }
    }
}

/// Selects the thread that waits in the inner region.
fn select(running: &Running) -> String {
    let waiter = running.truth.with_role("inner waiter").next().expect("a waiter");
    format!("python [t for t in gdb.selected_inferior().threads() if t.ptid[1] == {}][0].switch()", waiter.lwp)
}

/// The companion says where the library is, where the runtime has lost the names that would: the plugin finds it beside the companion.
#[test]
fn llvms_plugin_finds_the_library_by_the_companion() {
    let Some(plugin) = works(Runtime::Libomp14) else { return };
    let directory = tempfile::tempdir().expect("a directory");
    let companion = directory.path().join("libompt_companion.so");
    std::fs::copy(test_programs::built_by_cargo("libompt_companion.so"), &companion).expect("a copy");
    std::os::unix::fs::symlink(library(), directory.path().join("libompd.so")).expect("a link");
    let program = build("nested", Toolchain::Clang, Opt::O0, &[]).expect("it builds");
    let launch = Launch::new(&program, Runtime::Libomp14, Env::Settled);
    let with = launch.clone().variable("OMP_TOOL_LIBRARIES", &companion.display().to_string());
    let running = with.start().expect("it starts");
    let nowhere = Path::new("/nonexistent");
    let commands = [&*select(&running), "ompd init", "ompd icvs", "ompd parallel", "ompd bt on", "bt"];
    check(&gdb(&["-p", &running.pid.to_string()], &plugin, nowhere, &commands));
    // Without it the plugin does not work on this runtime, which has been stripped.
    let without = launch.start().expect("it starts");
    let text = gdb(&["-p", &without.pid.to_string()], &plugin, nowhere, &["ompd init"]);
    assert!(text.contains("ompd_dll_locations"), "{text}");
}

#[test]
fn llvms_plugin_works_on_a_process_and_on_a_core() {
    let Some(plugin) = works(Runtime::Libiomp5) else { return };
    let directory = tempfile::tempdir().expect("a directory");
    // The name that the runtime says its library has.
    std::os::unix::fs::symlink(library(), directory.path().join("libiomp5_db.so")).expect("a link");
    let program = build("nested", Toolchain::Clang, Opt::O0, &[]).expect("it builds");
    let running = Launch::new(&program, Runtime::Libiomp5, Env::Settled).start().expect("it starts");
    let pid = running.pid.to_string();
    let commands = [&*select(&running), "ompd init", "ompd icvs", "ompd parallel", "ompd bt on", "bt"];
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
