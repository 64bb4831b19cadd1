//! `fuzz_targets::walks::check` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_targets::walks::check(data));
