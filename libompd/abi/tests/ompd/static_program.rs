//! A libgomp inside a statically linked program, found by nothing but a debugger's callbacks.

use std::process::Command;

use crate::answers::{check_all, everywhere};
use crate::debugger::{Held, Session, refused};
use ompd::types::*;
use test_programs::{Env, Executable, Launch, Opt, Running, Runtime, Skip, Toolchain, crash_core, link_statically};

/// Ways to link so: wholly, and libgomp alone.
const WAYS: [&[&str]; 3] =
    [&["-static"], &["-static-pie"], &["-Wl,--as-needed", "-Wl,-Bstatic", "-lgomp", "-Wl,-Bdynamic"]];

fn linked(program: &str, flags: &[&str]) -> Option<Executable> {
    link_statically(program, Opt::O2, flags).inspect_err(Skip::show).ok()
}

fn run(program: &str) {
    for way in WAYS {
        let Some(executable) = linked(program, way) else { continue };
        let running = Launch::new(&executable, Runtime::Libgomp, Env::Settled).start().expect("it starts");
        assert!(!std::fs::read_to_string(format!("/proc/{}/maps", running.pid)).expect("maps").contains("libgomp"));
        everywhere(&format!("{program} {}", way[0]), Toolchain::Gcc, &running);
    }
}

programs!(barrier_missing, nested, serialized, tasks, lock, icvs, idle, user_pthread);

/// A crash in the middle of a nested region, as the kernel wrote it down.
#[test]
fn crash() {
    for way in WAYS {
        let Some(executable) = linked("crash", way) else { continue };
        let directory = tempfile::tempdir().expect("a directory for the core");
        match crash_core(&executable, Runtime::Libgomp, Env::Settled, directory.path()).expect("the program crashes") {
            Ok(crashed) => {
                for generous in [false, true] {
                    let session = Session::new(201_811, Held::core(&crashed.core, generous));
                    check_all(&session, &crashed.truth);
                }
            }
            Err(skip) => skip.show(),
        }
    }
}

/// Stripped, such a program names nothing, and that is said. With its debug file it is read.
#[test]
fn a_stripped_program_is_refused_with_the_reason_and_read_with_its_debug_file() {
    let Some(executable) = linked("nested", WAYS[0]) else { return };
    let directory = tempfile::tempdir().expect("a directory for the debug file");
    let (debug, path) = (directory.path().join("program.debug"), directory.path().join("program"));
    let kept = Command::new("objcopy").arg("--only-keep-debug").args([&executable.path, &debug]).status();
    if !kept.is_ok_and(|status| status.success()) {
        return Skip::because("objcopy cannot be run").show();
    }
    let link = format!("--add-gnu-debuglink={}", debug.display());
    let stripped = Command::new("objcopy").args(["--strip-all", &link]).args([&executable.path, &path]).status();
    assert!(stripped.expect("objcopy ran before").success());
    let executable = Executable { path: path.clone(), ..executable };
    let running = Launch::new(&executable, Runtime::Libgomp, Env::Settled).start().expect("it starts");
    check_all(&Session::new(201_811, Held::live(running.pid, true)), &running.truth);

    // A debugger that has read a debug file which is not where the library looks.
    let mut knows = Held::live(running.pid, false);
    for module in knows.target.modules() {
        let _ = module.symbol("main");
    }
    std::fs::remove_file(&debug).expect("the debug file was there");
    let said = refused(&mut knows);
    assert!(said.contains(&format!("{} is statically linked and has no symbols", path.display())), "{said}");
    assert!(said.contains("separate debug file"), "{said}");
    drop(knows);
    // One that knows as little as the library.
    let said = refused(&mut Held::live(running.pid, false));
    assert!(said.contains("no program was found in the process") && said.contains("separate debug file"), "{said}");
}

/// A debugger with the symbols of a program whose file is not where it was started.
#[test]
fn a_program_whose_file_is_gone_is_refused_with_the_name_it_had() {
    let Some(executable) = linked("nested", WAYS[0]) else { return };
    let directory = tempfile::tempdir().expect("a directory for the program");
    let path = directory.path().join("program");
    // Not by this process: a child that another test starts would have it open for writing.
    assert!(Command::new("cp").args([&executable.path, &path]).status().expect("cp runs").success());
    let running = Launch::new(&Executable { path: path.clone(), ..executable }, Runtime::Libgomp, Env::Settled);
    let running = running.start().expect("it starts");
    std::fs::remove_file(&path).expect("it was there");
    let said = refused(&mut Held::live(running.pid, false));
    let expected = format!("{}: its file, which has its symbols, is not at hand (", path.display());
    assert!(said.contains(&expected) && !said.contains("statically linked"), "{said}");
}

/// Without what describes the C library's list of threads no thread is known, and all else is.
#[test]
fn without_the_list_of_threads_there_are_none() {
    let Some(executable) = linked("nested", WAYS[0]) else { return };
    let running: Running = Launch::new(&executable, Runtime::Libgomp, Env::Settled).start().expect("it starts");
    let session = Session::new(201_811, Held { hidden: &["_thread_db_"], ..Held::live(running.pid, true) });
    for thread in &running.truth.threads {
        assert_eq!(session.thread(thread_id::LWP, thread.lwp as u64), Err(Rc::UNAVAILABLE));
        assert_eq!(session.thread(thread_id::PTHREAD, thread.pthread.0), Err(Rc::UNAVAILABLE));
    }
    let processors = running.truth.threads.iter().find_map(|t| t.api.as_ref()).expect("a thread").num_procs;
    assert_eq!(session.icv(session.space, "num-procs-var"), Ok(processors.into()));
}

/// A static program may load libraries, which bring a C library and a dynamic linker of their own: neither has its threads.
#[test]
fn what_a_static_program_loads_is_not_taken_for_it() {
    let directory = tempfile::tempdir().expect("a directory for a header");
    let header = directory.path().join("own.h");
    let own = "#include <dlfcn.h>\n#include <stdlib.h>\n\
        __attribute__((constructor)) static void load(void) { if (!dlopen(\"libm.so.6\", RTLD_NOW)) abort(); }\n";
    std::fs::write(&header, own).expect("the header is written");
    let include = header.to_str().expect("a plain path");
    for way in &WAYS[..2] {
        let Some(executable) = linked("nested", &[way[0], "-include", include]) else { continue };
        let running = Launch::new(&executable, Runtime::Libgomp, Env::Settled).start().expect("it starts");
        let session = Session::new(201_811, Held::live(running.pid, true));
        assert!(session.held.target.modules().iter().any(|module| module.exports("_rtld_global")));
        check_all(&session, &running.truth);
        std::fs::remove_file(&executable.path).expect("nobody can ask for it again");
    }
}
