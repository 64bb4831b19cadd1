//! What all tests need.

use std::path::PathBuf;

/// The directory with the library, which cargo puts where it puts this test.
pub fn library() -> PathBuf {
    let own = std::env::current_exe().expect("where this test is");
    let directory = own.parent().expect("a directory").to_owned();
    assert!(directory.join("libompd.so").is_file(), "{} has no libompd.so", directory.display());
    directory
}

/// True if gdb is here; the reason was said if not.
pub fn has_gdb() -> bool {
    debugger_plugin::available().map_err(|reason| reason.show()).is_ok()
}
