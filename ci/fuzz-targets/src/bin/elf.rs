//! `fuzz_targets::elf` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_targets::elf::check(data));
