//! A libgomp inside a statically linked program: read like the library as long as the program has its symbols.

mod common;

use common::check;
use test_programs::{Env, Executable, Opt, Running, Runtime, Skip, Toolchain, build};

/// Environment variable naming a directory whose `libgomp.a` is linked instead of the compiler's own, so that the same
/// tests can be run on other releases.
const LIBGOMP_DIRECTORY: &str = "TEST_LIBGOMP_DIR";

/// The program, linked that way; `None`, with the linker's words, where a static library is missing.
fn linked(program: &str, opt: Opt, flags: &[&str]) -> Option<Executable> {
    let mut flags: Vec<String> = flags.iter().map(|flag| (*flag).to_owned()).collect();
    if let Ok(directory) = std::env::var(LIBGOMP_DIRECTORY) {
        flags.push(format!("-L{directory}"));
        // What libraries made for a newer C library call these functions.
        let newer = ["strtol", "strtoul", "strtoull"].map(|name| format!("-Wl,--defsym=__isoc23_{name}={name}"));
        flags.extend(newer);
    }
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let built = Toolchain::Gcc.check().map_err(|skip| skip.to_string());
    let built = built.and_then(|()| build(program, Toolchain::Gcc, opt, &flags).map_err(|why| format!("{why:#}")));
    built.inspect_err(|why| Skip::because(format!("{flags:?} does not link here: {why}")).show()).ok()
}

/// Every way to link and optimise, live, then from a core file of the same stop.
fn everywhere(program: &str) {
    let mut differences = Vec::new();
    for link in ["-static", "-static-pie"] {
        for opt in Opt::ALL {
            let Some(executable) = linked(program, opt, &[link]) else { continue };
            let running = Running::start(&executable, Runtime::Libgomp, Env::Settled).expect("the program starts");
            let what = format!("{program} {link} {opt:?}");
            let pid = running.pid.to_string();
            let compare =
                |what: &str, target: &str| check(what, &running.truth, Runtime::Libgomp, Toolchain::Gcc, target);
            differences.extend(compare(&format!("{what}, live"), &pid));
            let directory = tempfile::tempdir().expect("a directory for the core");
            match running.gcore(directory.path()).expect("gcore runs") {
                Ok(core) => {
                    let core = core.to_str().expect("a plain path");
                    differences.extend(compare(&format!("{what}, gcore"), core));
                }
                Err(skip) => skip.show(),
            }
            running.release().expect("the program goes on to its end after the inspections");
        }
    }
    assert!(differences.is_empty(), "{} differences:\n{}", differences.len(), differences.join("\n"));
}

macro_rules! programs {
    ($($name:ident),*) => {
        $( #[test] fn $name() { everywhere(stringify!($name)); } )*
    };
}

programs!(nested, lock, tasks, barrier_missing, region_end, idle, user_pthread, serialized, icvs);
