//! `fuzz_targets::profile` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_targets::profile::check(data));
