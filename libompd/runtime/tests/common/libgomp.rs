//! Every libgomp at hand.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use ompd_process::Machine;
use ompd_process::elf::ElfFile;
use test_programs::{Runtime, Skip, Toolchain};

/// A libgomp by the folder of its `libgomp.so.1`.
pub struct Library {
    pub what: String,
    pub folder: PathBuf,
    _links: tempfile::TempDir,
}

impl Library {
    fn at(file: &Path, what: String) -> Option<Library> {
        let elf = ElfFile::open(file).ok()?;
        if elf.arch().machine != Machine::X86_64 {
            return None;
        }
        // The C library of this machine may be too old for it.
        let loads = Command::new("/bin/true").env("LD_PRELOAD", file).output().expect("/bin/true runs");
        if !loads.status.success() || !loads.stderr.is_empty() {
            Skip::because(format!("{what} does not load here: {}", String::from_utf8_lossy(&loads.stderr).trim()))
                .show();
            return None;
        }
        let links = tempfile::tempdir().expect("a folder for a link");
        symlink(file.canonicalize().expect("the library is there"), links.path().join("libgomp.so.1")).expect("a link");
        Some(Library { what, folder: links.path().to_owned(), _links: links })
    }
}

/// The system's libgomp, and those `ci/fetch` got.
pub fn libraries() -> Vec<Library> {
    if let Err(skip) = Toolchain::Gcc.check().and_then(|()| Runtime::Libgomp.library().map(drop)) {
        skip.show();
        return Vec::new();
    }
    let system = match std::env::var_os("TEST_LIBGOMP_DIR") {
        Some(folder) => PathBuf::from(folder).join("libgomp.so.1"),
        None => Runtime::Libgomp.library().expect("it was there just now"),
    };
    let mut all: Vec<Library> = Library::at(&system, system.display().to_string()).into_iter().collect();
    let fetched = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../test-programs/runtimes");
    let mut open = vec![fetched.clone()];
    let mut files = Vec::new();
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            let depth = path.strip_prefix(&fetched).map_or(9, |rest| rest.components().count());
            if path.is_dir() && depth < 4 {
                open.push(path);
            } else if entry.file_name().to_string_lossy().starts_with("libgomp") && folder.join("what").is_file() {
                files.push(path);
            }
        }
    }
    files.sort();
    for file in files {
        let what = fs::read_to_string(file.with_file_name("what")).unwrap_or_default().trim().to_owned();
        all.extend(Library::at(&file, what));
    }
    all
}
