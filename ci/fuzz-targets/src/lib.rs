//! Fuzz targets: everything that parses bytes of the target or of reports, one module each.
//!
//! Each has a function `check` that takes any bytes. It feeds them to the parser the way the program does, and looks at
//! every result. It must return: no panic, no endless walk, no memory out of proportion to the input. It also asserts
//! what the documentation promises of the result.
//!
//! `ci/fuzz` runs them under libFuzzer, from the inputs that [`seeds`] makes. Each can be called without it, which is
//! what the tests do: with the seeds, and with cut and damaged ones.

pub mod block;
pub mod calls;
pub mod code;
pub mod core;
pub mod debugged;
pub mod dwarf;
pub mod elf;
pub mod image;
pub mod merge;
pub mod profile;
pub mod python;
pub mod seeds;
pub mod stack;
pub mod walks;

use ompd_layout::Facts;

/// Feeds any bytes to a parser.
pub type Check = fn(&[u8]);

/// The targets by the names `ci/fuzz` knows them under.
pub const TARGETS: [(&str, Check); 14] = [
    ("block", block::check),
    ("calls", calls::check),
    ("code", code::check),
    ("core", core::check),
    ("debugged", debugged::check),
    ("dwarf", dwarf::check),
    ("elf", elf::check),
    ("frames", stack::check_frames),
    ("lines", stack::check_lines),
    ("merge", merge::check),
    ("profile", profile::check),
    ("python", python::check),
    ("stack", stack::check),
    ("walks", walks::check),
];

/// What holds for facts from debug information, whatever it is.
fn check_extracted(facts: &Facts) {
    for field in facts.fields.values().flat_map(|fields| fields.values()) {
        if let Some(bits) = field.bits {
            let inside = u64::from(bits.shift) + u64::from(bits.width) <= field.size * 8;
            assert!((1..=8).contains(&field.size) && bits.width > 0 && inside, "{field:?}");
        }
    }
}
