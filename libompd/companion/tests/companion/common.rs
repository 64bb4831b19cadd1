//! What all tests need.

use std::path::PathBuf;

use ompd_inspection as inspection;
use ompd_inspection::history::{History, of_target};
use ompd_process::{Live, OpenOptions};
use ompd_report::json;
use test_programs::{Executable, Opt, Toolchain, build, built_by_cargo, can_build};

pub use test_programs::{Held, libomp_libraries as libraries};

/// The companion, which cargo puts where it puts this test.
pub fn companion() -> PathBuf {
    built_by_cargo("libompt_companion.so")
}

/// A program, built by clang; `None`, with the reason told, if there is none.
pub fn program(name: &str, flags: &[&str]) -> Option<Executable> {
    if let Err(skip) = can_build(name, Toolchain::Clang).expect("the program is there") {
        skip.show();
        return None;
    }
    Some(build(name, Toolchain::Clang, Opt::O0, flags).expect("it builds"))
}

/// The variable that has a runtime load the companion.
pub fn by_libraries() -> (&'static str, String) {
    ("OMP_TOOL_LIBRARIES", companion().display().to_string())
}

/// Starts a program on a library with the companion and these variables.
pub fn start(program: &Executable, library: &std::path::Path, what: &str, variables: &[(&str, &str)]) -> Option<Held> {
    let (name, value) = by_libraries();
    let all: Vec<(&str, &str)> = [(name, &*value)].into_iter().chain(variables.iter().copied()).collect();
    Held::start(&program.path, library, what, &all, &[])
}

/// The whole history of a process.
pub fn history(pid: i32) -> History {
    let live = Live::open(pid, &OpenOptions::default()).expect("it can be opened");
    of_target(&live, u64::MAX).expect("it has a history")
}

/// The block of a companion in a process.
pub fn block(pid: i32) -> ompt_record::read::Block {
    let live = Live::open(pid, &OpenOptions::default()).expect("it can be opened");
    let words = ompd_runtime::companion::words(&live);
    ompd_runtime::companion::find(&live, &words).expect("a companion").expect("a block")
}

/// What the runtime of a process answered for each callback, number 1 first.
pub fn answers(pid: i32) -> Vec<u8> {
    let header = block(pid).header;
    let words = [header.results_first, header.results_second, header.results_third];
    words.iter().flat_map(|word| (0..16).map(move |n| (word >> (4 * n) & 15) as u8)).take(37).collect()
}

/// What is read of a process or core.
pub fn inspection(target: &str) -> inspection::Inspection {
    let wanted = inspection::Wanted {
        layouts: ompd_runtime::LayoutsFrom::default(),
        locals: false,
        verdicts: inspection::Verdicts::Confirmed,
        samples: 1,
        interval: std::time::Duration::ZERO,
        turns: None,
    };
    inspection::inspect(target, &OpenOptions::default(), wanted).expect("it can be inspected")
}

/// The whole report on a process or core, as `ompd-inspect --json` prints it.
pub fn report(target: &str) -> serde_json::Value {
    serde_json::to_value(json::report(&inspection(target))).expect("it is JSON")
}
