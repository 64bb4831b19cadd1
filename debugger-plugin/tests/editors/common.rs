//! What all tests need.

use std::path::PathBuf;

/// The directory with the library, which cargo puts where it puts this test.
pub fn library() -> PathBuf {
    test_programs::built_by_cargo("libompd.so").parent().expect("a directory").to_owned()
}

/// True if gdb is here; the reason was said if not.
pub fn has_gdb() -> bool {
    debugger_plugin::available().map_err(|reason| reason.show()).is_ok()
}
