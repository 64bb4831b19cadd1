//! What all tests need.

use std::path::PathBuf;

use test_programs::{Executable, Opt, Skip, Toolchain, build, built_by_cargo, can_build};

/// The library, which cargo puts where it puts this test.
pub fn library() -> PathBuf {
    built_by_cargo("libgomp_ompt.so")
}

/// The library as a value of `LD_PRELOAD`.
pub fn preload() -> String {
    library().display().to_string()
}

/// A program, built by gcc; `None`, with the reason shown, if there is none.
pub fn program(name: &str, opt: Opt, flags: &[&str]) -> Option<Executable> {
    if let Err(skip) = can_build(name, Toolchain::Gcc).expect("the program is there") {
        skip.show();
        return None;
    }
    Some(build(name, Toolchain::Gcc, opt, flags).expect("it builds"))
}

/// The companion, if it is built; cargo builds it for other tests.
pub fn companion() -> Option<String> {
    let own = std::env::current_exe().expect("where this test is");
    let file = own.with_file_name("libompt_companion.so");
    if !file.is_file() {
        Skip::because(format!("{} is not built", file.display())).show();
        return None;
    }
    Some(file.display().to_string())
}
