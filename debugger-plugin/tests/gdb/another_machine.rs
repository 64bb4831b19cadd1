//! Programs of another machine: one that runs on an emulated aarch64 machine, through gdbserver, and one whose files are elsewhere.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use debugger_plugin::{Gdb, GdbRelease};
use test_programs::guest::{Look, Settles};
use test_programs::{
    Env, Executable, Guest, GuestRuntime, Launch, Opt, Runtime, Skip, Toolchain, build, emulate_served,
};

use crate::common::{has_gdb, library};

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
                ptrace_scope: None,
            }],
            user: None,
        };
        let mut printed = Vec::new();
        let emulated = emulate_served(&guest, &mut |served| {
            let gdb = Gdb::new(&library()).by(&release);
            let gdb = gdb.first(format!("set sysroot {}", served.root.display()));
            let gdb = gdb.first(format!("file {}", served.program.display()));
            // An emulated machine may take its time.
            let gdb = gdb.first("set remotetimeout 60");
            let gdb = gdb.first(format!("target remote {}", served.socket.display()));
            let commands = ["openmp why", "openmp threads", "openmp thread 2", "backtrace", "openmp icvs", "detach"];
            printed = gdb.run(&commands)?;
            // Otherwise the server waits for a debugger, and the machine for the server.
            anyhow::ensure!(printed.last().is_some_and(|text| text.contains("etach")), "{printed:#?}");
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
        let shown = ["lock_cycle.c:", "#pragma omp parallel in main"];
        // Behind libomp's `__kmp_invoke_microtask`, whose call frame information is empty, gdb finds no frame.
        let own = match package {
            "libgomp1" => ["omp_set_lock [waits: lock b]", " in main () at "],
            _ => ["__kmpc_set_lock [waits: lock b]", "__kmp_invoke_microtask"],
        };
        assert!(shown.iter().chain(&own).all(|part| backtrace.contains(part)), "{backtrace}");
        assert!(icvs.contains("nthreads-var"), "{icvs}");
    }
}

/// The program is not where it was; a copy is below the folder that gdb calls sysroot.
#[test]
fn files_are_found_below_the_sysroot() {
    if !has_gdb() {
        return;
    }
    let built = build("hangs/lock_cycle", Toolchain::Gcc, Opt::O2, &[]).expect("the program builds");
    let directory = tempfile::tempdir().expect("a directory");
    let there = directory.path().join("there");
    let root = directory.path().join("root");
    let below = root.join(there.strip_prefix("/").expect("an absolute path"));
    for folder in [&there, &below] {
        fs::create_dir_all(folder).expect("a folder");
    }
    let program = there.join("prog");
    fs::copy(&built.path, &program).expect("the program is copied");
    let moved = Executable { path: program.clone(), ..built };
    let running = Launch::new(&moved, Runtime::Libgomp, Env::Settled).start_hanging().expect("it hangs");
    let core = match running.gcore(directory.path()).expect("gcore runs") {
        Ok(core) => core,
        Err(skip) => return skip.show(),
    };
    drop(running);
    let copy = below.join("prog");
    fs::rename(&program, &copy).expect("the program is moved");
    // What else is below the sysroot is where it was: gdb takes no file from elsewhere.
    for library in ["lib", "lib64", "usr"] {
        symlink(Path::new("/").join(library), root.join(library)).expect("a link");
    }
    let why = |sysroot: &str| {
        let gdb = Gdb::core(&library(), &copy, &core).first(format!("set sysroot {sysroot}"));
        gdb.run(&["openmp why"]).expect("gdb ends").concat()
    };
    let (without, with) = (why(""), why(root.to_str().expect("a plain path")));
    // Without the program's symbols and lines, locks have no names and stacks show no owners.
    assert!(without.contains("waits for lock prog+0x"), "{without}");
    assert!(with.contains("DEADLOCK") && with.contains("lock a"), "{with}");
}
