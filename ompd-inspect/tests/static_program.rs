//! A runtime inside a statically linked program: found, and what cannot be read of it is said to be so.

mod common;

use test_programs::{Env, Opt, Running, Runtime, Toolchain, build};

#[test]
fn a_static_program_is_not_called_idle() {
    let program = match build("barrier_missing", Toolchain::Gcc, Opt::O2, &["-static"]) {
        Ok(program) => program,
        // The linker's words tell which static library is missing.
        Err(why) => return test_programs::Skip::because(format!("no static programs here: {why}")).show(),
    };
    let running = Running::start(&program, Runtime::Libgomp, Env::Settled).expect("the program starts");
    let (report, status) = common::json(&[&running.pid.to_string()]);
    assert_eq!(status, 1);
    assert_eq!(report["complete"], false);
    assert_eq!(report["runtimes"][0]["family"], "gomp");
    assert!(report["issues"].as_array().is_some_and(|issues| !issues.is_empty()));
    let output = common::run(&[&running.pid.to_string()]);
    let (text, _, status) = common::texts(&output);
    assert_eq!(status, 1);
    assert!(text.contains("its threads could not be found"), "{text}");
    assert!(!text.contains("no living thread"), "{text}");
    running.release().expect("it goes on to its end");
}
