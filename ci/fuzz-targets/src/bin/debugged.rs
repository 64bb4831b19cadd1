//! `fuzz_targets::debugged` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_targets::debugged::check(data));
