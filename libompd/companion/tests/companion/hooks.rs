//! Which tool a runtime starts, and whether.

use std::fs;
use std::process::{Command, Stdio};

use test_programs::Skip;

use crate::common::{Held, companion, libraries, program};

/// Of two preloaded tools the one that stands first is started, and so is one in the program before those that are preloaded.
#[test]
fn of_two_hooks_the_first_counts() {
    let (Some(program), Some(own)) = (program("recorded", &[]), program("ompt_tool", &[])) else { return };
    let empty = program_library();
    let file = companion().display().to_string();
    for (library, what) in libraries() {
        let cases = [
            (&program, format!("{file}:{empty}"), true),
            (&program, format!("{empty}:{file}"), false),
            (&own, file.clone(), false),
        ];
        for (program, preloaded, recorded) in cases {
            let variables = [("LD_PRELOAD", &*preloaded)];
            let Some(running) = Held::start(&program.path, library.path(), &what, &variables, &[]) else { continue };
            let live = ompd_process::Live::open(running.pid(), &ompd_process::OpenOptions::default());
            let history = ompd_inspection::history::of_target(&live.expect("it can be opened"), 10);
            assert_eq!(history.is_ok(), recorded, "{what}, {preloaded}");
            running.end();
        }
    }
}

/// A tool that does nothing, as a library.
fn program_library() -> String {
    let library = test_programs::build(
        "empty_tool",
        test_programs::Toolchain::Clang,
        test_programs::Opt::O2,
        &["-shared", "-fPIC"],
    );
    library.expect("it builds").path.display().to_string()
}

/// Another value is an error. The runtimes at hand say so, and start no tool.
#[test]
fn an_illegal_value_is_told_and_starts_no_tool() {
    let Some(program) = program("recorded", &[]) else { return };
    let (name, companion) = crate::common::by_libraries();
    let mut tried = 0;
    for (library, what) in libraries() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("history");
        let run = |value: &str| {
            let mut command = Command::new("sh");
            command.args(["-c", "echo | \"$0\""]).arg(&program.path).stdin(Stdio::null());
            command.env("LD_LIBRARY_PATH", library.path()).env(name, &companion).env("OMP_TOOL", value);
            command.env("OMPT_COMPANION_FILE", &file).output().expect("a shell")
        };
        let legal = run("enabled");
        if !legal.status.success() {
            Skip::because(format!("{what}: {}", String::from_utf8_lossy(&legal.stderr).trim_end())).show();
            continue;
        }
        assert!(file.is_file(), "{what}: a tool is started");
        fs::remove_file(&file).expect("it is there");
        let illegal = run("perhaps");
        let told = String::from_utf8_lossy(&illegal.stderr).into_owned();
        assert!(
            illegal.status.success() && told.contains("OMP_TOOL") && told.contains("\"perhaps\""),
            "{what}: {told}"
        );
        assert!(!file.exists(), "{what}: no tool is started");
        tried += 1;
    }
    assert!(tried > 0, "no runtime was tried");
}

/// A runtime from before OpenMP 5.0 that lacks what the known draft has gets no tool, and the user is told.
#[test]
fn an_unknown_draft_is_declined() {
    let Some(program) = program("device_simulator", &[]) else { return };
    let run = |mode: &str| {
        let mut command = Command::new(&program.path);
        command.arg(companion()).arg(mode).stdin(Stdio::null()).env_remove("OMP_TOOL");
        command.output().expect("it runs")
    };
    assert!(run("as of 5.0").status.success());
    let declined = run("draft");
    let told = String::from_utf8_lossy(&declined.stderr).into_owned();
    assert_eq!(declined.status.code(), Some(2), "{told}");
    let sentence =
        "ompt_companion: device simulator has the OMPT of a draft whose numbers are not known: nothing is recorded\n";
    assert!(told.starts_with(sentence), "{told}");
}
