//! Who needs a module: real programs that come to their OpenMP runtime in different ways.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::support::{self, Subject};
use ompd_process::{Live, NeededBy, OpenOptions, Target, needed_by};

/// A library that needs libgomp.
fn library() -> &'static Path {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    PATH.get_or_init(|| {
        let flags = ["-shared", "-fPIC", "-fopenmp", "-Wl,-soname,libuser.so.3"];
        support::compile("user.c", "libuser.so", &flags)
    })
}

fn plain() -> PathBuf {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    PATH.get_or_init(|| support::compile("loader.c", "loader", &["-ldl"])).clone()
}

/// How the module called `name` came into a process, and how the process and its executable are called.
fn needed(command: &mut Command, name: &str) -> NeededBy {
    let subject = Subject::spawn(command);
    let live = Live::open(subject.pid(), &OpenOptions::default()).expect("open");
    let module = live.modules().iter().find(|m| m.name().starts_with(name)).expect("module");
    needed_by(live.modules(), live.process().exe.as_deref(), module).expect("one of the modules")
}

/// Names without versions, which differ between systems.
fn chain(found: &NeededBy) -> Vec<&str> {
    found.chain.iter().map(|name| name.split(".so").next().unwrap_or(name)).collect()
}

#[test]
fn a_program_linked_to_a_library_that_needs_it() {
    let dir = library().parent().expect("parent").to_str().expect("UTF-8");
    // The loader looks for the file by the library's SONAME, which is not its file name.
    let link = library().with_file_name("libuser.so.3");
    std::os::unix::fs::symlink("libuser.so", &link).expect("link");
    let (place, path) = (format!("-L{dir}"), format!("-Wl,-rpath,{dir}"));
    let program = support::compile("loader.c", "linked", &["-DLINKED", &place, "-luser", &path, "-ldl"]);
    let found = needed(&mut Command::new(&program), "libgomp");
    assert_eq!(chain(&found), ["linked", "libuser", "libgomp"]);
    assert!(found.loaded_at_start && found.doubt.is_none(), "{found:?}");
    assert_eq!(found.direct, ["libuser.so"]);
}

#[test]
fn a_library_loaded_by_dlopen_that_needs_it() {
    let found = needed(Command::new(plain()).arg(library()), "libgomp");
    assert_eq!(chain(&found), ["libuser", "libgomp"]);
    assert!(!found.loaded_at_start && found.doubt.is_none(), "{found:?}");
}

#[test]
fn a_preloaded_runtime_that_nothing_needs() {
    let out = Command::new("cc").arg("-print-file-name=libgomp.so.1").output().expect("cc");
    let runtime = String::from_utf8_lossy(&out.stdout).trim().to_owned();
    if !Path::new(&runtime).is_absolute() {
        return support::skip("the C compiler has no libgomp");
    }
    let found = needed(Command::new(plain()).env("LD_PRELOAD", runtime), "libgomp");
    assert_eq!(chain(&found), ["libgomp"]);
    assert!(!found.loaded_at_start && found.direct.is_empty(), "{found:?}");
}

#[test]
fn the_executable_and_its_own_libraries() {
    let found = needed(&mut Command::new(plain()), "loader");
    assert_eq!((chain(&found), found.loaded_at_start), (vec!["loader"], true));
    let found = needed(&mut Command::new(plain()), "libc.so");
    assert_eq!((chain(&found), found.loaded_at_start), (vec!["loader", "libc"], true));
}
