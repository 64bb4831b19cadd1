//! Processes that are larger than most: with more libraries than files may be open.

use std::process::Command;

use nix::sys::resource::{Resource, getrlimit};
use serde_json::Value;
use test_programs::{Env, Launch, Opt, Runtime, Toolchain, build, libraries};

/// Files that the command may have open.
const FILES: u64 = 64;
/// Libraries of the process.
const LIBRARIES: usize = 150;

/// What the command says of a target while it may have [`FILES`] open.
fn report(target: &str) -> Value {
    let mut shell = Command::new("sh");
    let limited = format!("ulimit -n {FILES} && exec \"$0\" \"$@\"");
    shell.args(["-c", &limited, env!("CARGO_BIN_EXE_ompd-inspect"), "--json", target]);
    let output = shell.output().expect("a shell can be started");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {error}", output.status);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|why| panic!("no JSON ({why}): {error}"))
}

#[test]
fn a_process_with_more_libraries_than_files_may_be_open_is_read_whole() {
    if let Err(skip) = Toolchain::Gcc.check().and_then(|()| Runtime::Libgomp.library()) {
        skip.show();
        return;
    }
    let (soft, _) = getrlimit(Resource::RLIMIT_NOFILE).expect("the limit of open files");
    assert!(soft >= FILES, "the limit of open files is {soft} already");
    let directory = libraries(LIBRARIES).expect("libraries");
    let program = build("vast", Toolchain::Gcc, Opt::O2, &["-ldl"]).expect("the program builds");
    let arguments = ["4", "0", &directory.path().display().to_string(), &LIBRARIES.to_string()];
    let folder = tempfile::tempdir().expect("a folder");
    let launch = Launch::new(&program, Runtime::Libgomp, Env::Settled).leaving_core_in(folder.path());
    let launch = arguments.iter().fold(launch, |launch, argument| launch.argument(argument));
    let mut running = launch.start().expect("the program starts");

    let check = |what: &str, report: &Value| {
        assert_eq!((&report["complete"], &report["issues"]), (&Value::Bool(true), &Value::Array(Vec::new())), "{what}");
        assert_eq!(report["runtimes"][0]["threads"].as_array().map(Vec::len), Some(4), "{what}");
    };
    check("live", &report(&running.pid.to_string()));
    match running.kernel_core(folder.path()).expect("the program aborts") {
        Ok(core) => check("core", &report(&core.display().to_string())),
        Err(skip) => skip.show(),
    }
}
