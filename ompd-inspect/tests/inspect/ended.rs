//! Cores of programs that a signal has ended: of those that crashed, and of those that somebody wanted a core of.

use nix::sys::signal::Signal;
use test_programs::{Env, Launch, Opt, Runtime, Toolchain, build, crash_core};

use crate::common;

#[test]
fn a_core_that_somebody_asked_for_has_its_verdict() {
    let executable = build("hangs/lock_cycle", Toolchain::Gcc, Opt::O2, &[]).expect("the program builds");
    for signal in [Signal::SIGQUIT, Signal::SIGABRT, Signal::SIGSEGV] {
        let folder = tempfile::tempdir().expect("a folder");
        let launch = Launch::new(&executable, Runtime::Libgomp, Env::Settled).leaving_core_in(folder.path());
        let mut running = launch.start_hanging().expect("it hangs");
        let core = match running.kernel_core_by(signal, folder.path()).expect("it ends") {
            Ok(core) => core,
            Err(skip) => return skip.show(),
        };
        let (out, err, status) = common::texts(&common::run(&[core.to_str().expect("a plain path")]));
        assert!(out.starts_with("DEADLOCK"), "{signal}: {out}{err}");
        assert_eq!(status, 0, "{signal}: {err}");
        let plain = out.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(plain.contains(&format!("({signal}), sent from outside")), "{signal}: {out}");
        let (report, _) = common::json(&[core.to_str().expect("a plain path")]);
        assert_eq!(report["process"]["signal_sent"], true, "{signal}");
    }
}

#[test]
fn a_program_that_aborts_has_crashed() {
    let executable = build("crash", Toolchain::Gcc, Opt::O2, &[]).expect("the program builds");
    let folder = tempfile::tempdir().expect("a folder");
    let crashed = match crash_core(&executable, Runtime::Libgomp, Env::Settled, folder.path()).expect("it crashes") {
        Ok(crashed) => crashed,
        Err(skip) => return skip.show(),
    };
    let (out, err, _) = common::texts(&common::run(&[crashed.core.to_str().expect("a plain path")]));
    assert!(out.starts_with("CRASHED") && !out.contains("sent from outside"), "{out}{err}");
    let (report, _) = common::json(&[crashed.core.to_str().expect("a plain path")]);
    assert!(report["process"].get("signal_sent").is_none());
    // A core does not change.
    assert!(!out.contains("--samples"), "{out}");
}

/// gdb leaves out all mappings, if it is told to write nothing.
#[test]
fn a_core_that_shows_no_file_that_was_mapped() {
    let executable = build("barrier_missing", Toolchain::Gcc, Opt::O2, &[]).expect("the program builds");
    let running = Launch::new(&executable, Runtime::Libgomp, Env::Settled).start().expect("it starts");
    std::fs::write(format!("/proc/{}/coredump_filter", running.pid), "0").expect("its filter");
    let folder = tempfile::tempdir().expect("a folder");
    let core = match running.gcore(folder.path()).expect("gcore runs") {
        Ok(core) => core,
        Err(skip) => return skip.show(),
    };
    let (out, err, status) = common::texts(&common::run(&[core.to_str().expect("a plain path")]));
    let plain = out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(status, 1, "{out}{err}");
    assert!(plain.contains("Whether an OpenMP runtime was loaded is not known"), "{out}");
    assert!(plain.contains("mapped files is recognised: the core has nothing of them"), "{out}");
}
