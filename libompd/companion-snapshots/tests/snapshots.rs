//! The library's signal handler in real programs. What the runtime answers is compared in `libompd/abi/tests/ompd/oracle.rs`.

use ompd_process::elf::ElfFile;
use ompt_record::block::SYMBOL;
use test_programs::built_by_cargo;

#[allow(dead_code, reason = "the companion's own tests use the rest")]
#[path = "../../companion/tests/companion/common.rs"]
mod common;
#[path = "../../companion/tests/companion/reload.rs"]
mod reload;

/// SIGUSR2
const SIGNAL: i32 = 12;

/// The handler asks no runtime that has been unloaded.
#[test]
fn the_signal_comes_before_and_after_the_runtime_is_unloaded() {
    let companion = built_by_cargo("libompt_companion_snapshots.so");
    reload::regions_of_both_runs_are_recorded(&companion, Some(SIGNAL));
}

/// Users load `libompt_companion.so`.
#[test]
fn only_the_library_for_tests_has_a_signal_handler() {
    let sets_handlers = |name: &str| {
        let file = ElfFile::open(&built_by_cargo(name)).expect("a library");
        assert!(file.exported_names().any(|name| name == SYMBOL), "{name} is no companion");
        // The name of the function, among those of the dynamic linker.
        let bytes = std::fs::read(file.path()).expect("its bytes");
        bytes.windows(11).any(|window| window == b"\0sigaction\0")
    };
    assert!(sets_handlers("libompt_companion_snapshots.so"));
    assert!(!sets_handlers("libompt_companion.so"));
}
