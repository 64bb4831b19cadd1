//! How cores are read here: as `ompd-inspect --json` reads them.

use std::path::Path;

use ompd_inspection::Wanted;
use ompd_process::OpenOptions;
use ompd_runtime::LayoutsFrom;

/// The files below `root` are those of the core.
pub(super) fn options(root: &Path) -> OpenOptions {
    OpenOptions { lib_root: Some(root.to_owned()), ..OpenOptions::default() }
}

/// What `ompd-inspect --json` reads.
pub(super) fn wanted() -> Wanted<'static> {
    Wanted::of_held(LayoutsFrom::default())
}
