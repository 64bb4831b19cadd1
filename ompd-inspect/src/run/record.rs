//! `run --record`: the companion in the program, and on libgomp the library that gives it OMPT.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use crate::output::Failure;

/// The tool that records.
const COMPANION: &str = "libompt_companion.so";
/// What stands in front of libgomp, which calls no tools. Other runtimes call the companion themselves.
const IN_FRONT: &str = "libgomp_ompt.so";

/// The variables that have a program record: their names, and values in front of what they have.
///
/// # Errors
/// The libraries are not installed.
pub fn variables() -> Result<Vec<(&'static str, OsString)>, Failure> {
    let own = std::env::current_exe().and_then(fs::canonicalize).map_err(|error| {
        Failure::new(format!("the libraries that record are not found: the path of this program is not known: {error}"))
    })?;
    let folders = folders(&own);
    let find = |name: &str| {
        folders.iter().map(|folder| folder.join(name)).find(|file| file.is_file()).ok_or_else(|| {
            let looked = folders.iter().map(|folder| folder.display().to_string()).collect::<Vec<_>>().join(", ");
            Failure::with_remedy(
                format_args!("{name} is not found, without which nothing records"),
                format_args!("install the package with it, or put it beside ompd-inspect (looked at: {looked})"),
            )
        })
    };
    let companion = find(COMPANION)?;
    let in_front = find(IN_FRONT)?;
    Ok(vec![with("OMP_TOOL_LIBRARIES", companion), with("LD_PRELOAD", in_front)])
}

/// A variable with a file in front of what it has.
fn with(name: &'static str, file: PathBuf) -> (&'static str, OsString) {
    let mut value = file.into_os_string();
    if let Some(before) = std::env::var_os(name).filter(|before| !before.is_empty()) {
        value.push(":");
        value.push(before);
    }
    (name, value)
}

/// Where the libraries may be: beside the program, or in the directory that packages have for them.
fn folders(own: &Path) -> Vec<PathBuf> {
    let Some(beside) = own.parent() else { return Vec::new() };
    let mut folders = vec![beside.to_owned()];
    if let Some(prefix) = beside.parent() {
        for lib in ["lib", "lib64"].map(|lib| prefix.join(lib)) {
            folders.push(lib.join("ompd-inspect"));
            // Debian has a folder for each machine.
            let below = fs::read_dir(&lib).into_iter().flatten().filter_map(Result::ok);
            folders.extend(below.map(|entry| entry.path().join("ompd-inspect")).filter(|folder| folder.is_dir()));
        }
    }
    folders
}
