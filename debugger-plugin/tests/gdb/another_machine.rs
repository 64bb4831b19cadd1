//! gdb on this machine, and a program on an emulated aarch64 machine: the plugin through gdbserver.

use std::path::PathBuf;
use std::process::Command;

use debugger_plugin::{Gdb, GdbRelease};
use test_programs::guest::{Look, Settles};
use test_programs::{Guest, GuestRuntime, Opt, Skip, emulate_served};

use crate::common::library;

/// A gdb for all machines.
const DEBUGGER: &str = "gdb-multiarch";

#[test]
fn gdb_on_an_emulated_machine() {
    if Command::new(DEBUGGER).arg("--version").output().is_err() {
        return Skip::because(format!("{DEBUGGER} is not here; its package has its name")).show();
    }
    let release = GdbRelease { command: PathBuf::from(DEBUGGER), version: 13 };
    for package in ["libgomp1", "libomp5-14"] {
        let guest = Guest {
            program: "hangs/lock_cycle",
            opt: Opt::O2,
            flags: &[],
            runtime: GuestRuntime { suite: "bookworm", package },
            variables: Vec::new(),
            settles: Settles::Hangs,
            looks: vec![Look {
                name: "text".to_owned(),
                arguments: vec!["--pause".into(), "brief".into()],
                of_core: false,
            }],
        };
        let mut printed = Vec::new();
        let emulated = emulate_served(&guest, &mut |served| {
            let gdb = Gdb::new(&library()).by(&release);
            let gdb = gdb.first(format!("set sysroot {}", served.root.display()));
            let gdb = gdb.first(format!("file {}", served.program.display()));
            let gdb = gdb.first(format!("target remote {}", served.socket.display()));
            let commands = ["openmp why", "openmp threads", "openmp thread 2", "backtrace", "openmp icvs", "detach"];
            printed = gdb.run(&commands)?;
            Ok(())
        });
        let emulated = match emulated.expect("gdb and the machine end") {
            Ok(emulated) => emulated,
            Err(skip) => return skip.show(),
        };
        let result = &emulated.results[0];
        assert_eq!(result.error, None);
        let truth = result.truth.as_ref().expect("it tells the truth");
        let there = &result.looks["text"].0;
        let [why, threads, _, backtrace, icvs, _] = printed.as_slice() else { panic!("{printed:?}") };
        assert!(there.contains("DEADLOCK") && why.contains("DEADLOCK"), "{there}\n{why}");
        for thread in &truth.threads {
            assert!(threads.contains(&thread.lwp.to_string()), "{}: {threads}", thread.lwp);
        }
        // The lines of the program, and the region in place of the function that the compiler has made of it.
        let shown = ["omp_set_lock [waits: lock ", "lock_cycle.c:", "#pragma omp parallel", " in main () at "];
        assert!(shown.iter().all(|part| backtrace.contains(part)), "{backtrace}");
        assert!(icvs.contains("nthreads-var"), "{icvs}");
    }
}
