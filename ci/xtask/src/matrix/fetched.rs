//! The runtimes `ci/fetch` has left.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use ompd_process::elf::ElfFile;

/// One fetched runtime.
pub struct Fetched {
    /// What it is, in `ci/fetch`'s words.
    pub what: String,
    /// The library; none where the package brings none.
    pub library: Option<Library>,
}

/// Its file.
pub struct Library {
    pub path: PathBuf,
    pub elf: ElfFile,
}

/// A C library newer than this machine's, with its dynamic linker.
pub struct LibC {
    pub directory: PathBuf,
    pub linker: PathBuf,
    pub version: Vec<u32>,
}

/// Where `ci/fetch` puts things.
fn home() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../test-programs/runtimes")
}

/// Every runtime that was fetched, Debian's first, each group in the order of its names.
///
/// # Errors
/// When a file cannot be read or is no library.
pub fn all() -> Result<Vec<Fetched>> {
    let mut found = Vec::new();
    for folder in folders(&home())? {
        let what = fs::read_to_string(folder.join("what")).context("reading what a runtime is")?.trim().to_owned();
        // The C library, and plugins for debuggers, are there for other purposes.
        if what.contains(", libc6 ") || what.contains("-dev ") {
            continue;
        }
        let library = files(&folder)?.into_iter().find(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name.contains(".so")
        });
        let library = match library {
            Some(path) => {
                let elf = ElfFile::open(&path).with_context(|| format!("opening {}", path.display()))?;
                Some(Library { path, elf })
            }
            None => None,
        };
        // Debuggers, kernels and interpreters have folders too.
        let is_wheel = folder.file_name().is_some_and(|name| name.to_string_lossy().starts_with("wheel-"));
        if library.is_none() && !is_wheel {
            continue;
        }
        found.push(Fetched { what, library });
    }
    Ok(found)
}

/// The fetched C library, if there is one.
///
/// # Errors
/// When it cannot be read.
pub fn libc() -> Result<Option<LibC>> {
    for folder in folders(&home())? {
        let linker = folder.join("ld-linux-x86-64.so.2");
        if linker.is_file() {
            let elf = ElfFile::open(&folder.join("libc.so.6")).context("opening the fetched C library")?;
            let version = elf.version_nodes().iter().filter_map(|node| glibc(node)).max().unwrap_or_default();
            let directory = folder.canonicalize()?;
            return Ok(Some(LibC { linker: directory.join("ld-linux-x86-64.so.2"), directory, version }));
        }
    }
    Ok(None)
}

/// `2.38` of a version node `GLIBC_2.38`, to be compared.
pub fn glibc(node: &str) -> Option<Vec<u32>> {
    node.strip_prefix("GLIBC_")?.split('.').map(|part| part.parse().ok()).collect()
}

/// The word Debian and the table use for an instruction set.
pub fn machine(elf: &ElfFile) -> &'static str {
    elf.arch().machine.facts().map_or("other", |facts| facts.title)
}

/// The folders that have a file `what`, at most three levels down.
fn folders(home: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut level = Vec::from([home.to_owned()]);
    for _ in 0..=3 {
        let mut next = Vec::new();
        for folder in level {
            if folder.join("what").is_file() {
                found.push(folder);
                continue;
            }
            next.extend(files(&folder)?.into_iter().filter(|path| path.is_dir()));
        }
        level = next;
    }
    // `ci/fetch python` and `ci/fetch opencl` take the same wheels; the runtime of `ci/fetch offload` is Debian's too.
    // What `ci/llvm-ompd` gets is source, and what it builds of that has symbols.
    let of_others = ["venv", "offload", "opencl", "llvm-source", "llvm-ompd"];
    found.retain(|folder| !of_others.iter().any(|name| folder.ends_with(name)));
    // Runtimes of 2018 are for the companion: the programs' nested regions need newer ones.
    let is_too_old = |folder: &PathBuf| {
        let name = folder.to_string_lossy();
        ["openmp-2018.", "openmp-2019."].iter().any(|old| name.contains(old))
    };
    found.retain(|folder| !is_too_old(folder));
    found.sort();
    Ok(found)
}

/// What a folder holds; nothing if it is not there.
fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error).with_context(|| format!("reading {}", folder.display())),
    };
    entries.map(|entry| Ok(entry?.path())).collect()
}
