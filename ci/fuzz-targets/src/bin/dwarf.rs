//! `fuzz_targets::dwarf` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_targets::dwarf::check(data));
