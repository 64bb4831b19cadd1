//! Opening what is to be inspected: a number is a process, anything else a core file.

use std::path::Path;

use ompd_process::core::Core;
use ompd_process::live::Live;
use ompd_process::{ElfFile, Module, OpenError, OpenOptions, Target};

/// Opens the target and does not stop it. A number is a process, anything else is a core file.
///
/// # Errors
/// The target could not be opened.
pub fn open(target: &str, options: &OpenOptions) -> Result<Box<dyn Target>, OpenError> {
    match process_id(target) {
        Some(pid) => Ok(Box::new(Live::open(pid?, options)?)),
        None => Ok(Box::new(Core::open(Path::new(target), options)?)),
    }
}

/// The process that is meant; `None` if it is a file.
pub(crate) fn process_id(target: &str) -> Option<Result<i32, OpenError>> {
    let too_large = |_| OpenError::Io {
        what: format!("there is no process {target}"),
        source: std::io::Error::other("no process id is that large"),
    };
    target.bytes().all(|b| b.is_ascii_digit()).then(|| target.parse().map_err(too_large))
}

/// Paths of statically linked programs that were stripped of all symbols. That a program which needs libraries has a
/// runtime built in nevertheless is too rare to say it of every stripped one.
pub fn nameless(target: &dyn Target) -> Vec<String> {
    let nameless = |file: &ElfFile| file.is_program() && file.needed().is_empty() && !file.has_names();
    let is_nameless = |module: &&Module| module.file.as_deref().is_ok_and(nameless);
    target.modules().iter().filter(is_nameless).map(|module| module.path.clone()).collect()
}
