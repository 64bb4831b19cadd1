//! Programs that have the library inside, as an archive.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use test_programs::{Env, Executable, HANGS, Launch, Opt, Runtime, Skip, Toolchain, built_by_cargo, compare_verdicts};

use crate::common::companion;
use crate::hangs::report;

/// Builds a program with libraries behind it.  Not by the kit, which would keep a program with an older archive.
fn link(folder: &Path, source: &str, flags: &[&str], libraries: &[PathBuf]) -> Option<PathBuf> {
    if let Err(skip) = Toolchain::Gcc.check() {
        skip.show();
        return None;
    }
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../test-programs");
    let program = folder.join("program");
    let mut gcc = Command::new("gcc");
    gcc.args(["-std=gnu11", "-g", "-O2", "-pthread", "-fopenmp", "-I"]).arg(sources.join("programs")).args(flags);
    gcc.arg(sources.join(source)).arg(sources.join("programs/allow.c")).arg(built_by_cargo("libgomp_ompt.a"));
    gcc.arg("-Wl,--whole-archive").args(libraries).args(["-Wl,--no-whole-archive", "-ldl", "-lm", "-o"]).arg(&program);
    assert!(test_programs::succeeds(&mut gcc), "{gcc:?}");
    Some(program)
}

/// A copy of gcc's static libgomp whose functions have other names, as docs/gomp-ompt.md makes it.
fn renamed_libgomp(folder: &Path) -> Option<PathBuf> {
    let found = Command::new("gcc").arg("-print-file-name=libgomp.a").output().ok()?;
    let original = PathBuf::from(String::from_utf8_lossy(&found.stdout).trim());
    if !original.is_absolute() {
        Skip::because("gcc has no libgomp.a").show();
        return None;
    }
    let map: String = gomp_ompt::NAMES
        .iter()
        .map(|name| name.to_str().expect("a name"))
        .map(|name| format!("{name} libgomp_ompt_real_{name}\n"))
        .collect();
    let (names, renamed) = (folder.join("names"), folder.join("libgomp_real.a"));
    fs::write(&names, map).expect("room");
    let mut objcopy = Command::new("objcopy");
    objcopy.arg(format!("--redefine-syms={}", names.display())).arg(&original).arg(&renamed);
    assert!(test_programs::succeeds(&mut objcopy), "{objcopy:?}");
    Some(renamed)
}

/// The program with a tool inside that compares what it is told with what it sees. No program has a libgomp besides.
fn witnesses(flags: &[&str], libraries: &[PathBuf], folder: &Path) {
    let Some(program) = link(folder, "programs/tool_witness.c", flags, libraries) else { return };
    let output = Command::new(program).env_remove("OMP_NUM_THREADS").output().expect("the program starts");
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{flags:?}: {:?}\n{text}{errors}", output.status);
    let wrong: Vec<&str> = text.lines().filter(|line| line.starts_with("wrong")).collect();
    assert!(wrong.is_empty(), "{flags:?}: {wrong:?}");
    let counts = text.lines().filter_map(|line| line.strip_prefix("count "));
    let (mut events, mut different) = (0, Vec::new());
    for line in counts {
        let words: Vec<&str> = line.split(' ').collect();
        events += words[2].parse::<u64>().expect("a number");
        different.extend((words[1] != words[2]).then_some(line));
    }
    assert!(events > 500 && different.is_empty(), "{flags:?}: {events} events, {different:?}");
}

#[test]
fn in_front_of_the_shared_libgomp() {
    for flags in [&[][..], &["-rdynamic"]] {
        witnesses(flags, &[], tempfile::tempdir().expect("a folder").path());
    }
}

#[test]
fn in_front_of_a_static_libgomp() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(libgomp) = renamed_libgomp(folder.path()) else { return };
    for flags in [&[][..], &["-static"]] {
        witnesses(flags, std::slice::from_ref(&libgomp), folder.path());
    }
}

/// Readers from outside tell the library's functions in a program by their names.
#[test]
fn the_verdict_on_a_program_with_the_library_inside_knows_owners() {
    let Some(companion) = companion() else { return };
    let case = HANGS.iter().find(|case| case.program == "hangs/lock_cycle").expect("the case");
    for flags in [&[][..], &["-rdynamic"]] {
        let folder = tempfile::tempdir().expect("a folder");
        let Some(path) = link(folder.path(), "hangs/lock_cycle.c", flags, &[]) else { return };
        let executable = Executable { path, program: case.program.to_owned(), toolchain: Toolchain::Gcc, opt: Opt::O2 };
        let launch = Launch::new(&executable, Runtime::Libgomp, Env::Settled);
        let launch = launch.variable("OMP_TOOL_LIBRARIES", &companion);
        let running = launch.start_hanging().expect("it hangs");
        let comparison = compare_verdicts(&running.truth, &report(running.pid), true);
        let all: Vec<&String> = comparison.all().collect();
        assert!(all.is_empty(), "{flags:?}: {all:#?}");
    }
}
