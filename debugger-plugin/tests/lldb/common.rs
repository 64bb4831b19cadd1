//! What all tests need.

use std::path::PathBuf;

/// The directory with the library, which cargo puts where it puts this test.
pub fn library() -> PathBuf {
    test_programs::built_by_cargo("libompd.so").parent().expect("a directory").to_owned()
}

/// Lines are wrapped, and columns aligned.
pub fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
