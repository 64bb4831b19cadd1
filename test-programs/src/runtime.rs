//! The OpenMP runtimes of this machine.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{fs, io};

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use crate::build::{LIBGOMP_DIRECTORY, home, out, temporary_beside};
use crate::{Skip, Toolchain};

/// An OpenMP runtime the programs can run on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Runtime {
    /// GCC's, as the system has it.
    Libgomp,
    /// LLVM 14's, as the system has it.
    Libomp14,
    /// Intel's, from the wheel `ci/setup` unpacks to `test-programs/runtimes`; its DWARF lies beside it.
    Libiomp5,
}

impl Runtime {
    /// Every runtime the kit knows.
    pub const ALL: [Runtime; 3] = [Runtime::Libgomp, Runtime::Libomp14, Runtime::Libiomp5];

    /// The runtimes this machine has; says on standard error why the others are missing.
    pub fn available() -> Vec<Runtime> {
        let has = |runtime: &Runtime| runtime.library().inspect_err(Skip::show).is_ok();
        Runtime::ALL.into_iter().filter(has).collect()
    }

    /// The library's file, links resolved: the name a memory map of a process that runs on it shows.
    ///
    /// # Errors
    /// The reason why this machine does not have it.
    pub fn library(self) -> Result<PathBuf, Skip> {
        let file = match self {
            Runtime::Libgomp => gcc_library("libgomp.so.1")?,
            Runtime::Libomp14 => PathBuf::from("/usr/lib/llvm-14/lib/libomp.so.5"),
            Runtime::Libiomp5 => home().join("runtimes/libiomp5.so"),
        };
        file.canonicalize().map_err(|error| {
            Skip::because(format!("{self:?} is not here ({}: {error}); ci/setup gets it", file.display()))
        })
    }

    /// Is it of the LLVM family, whose locks, taskwait and taskgroup are waited for by spinning?
    pub fn is_kmp(self) -> bool {
        match self {
            Runtime::Libgomp => false,
            Runtime::Libomp14 | Runtime::Libiomp5 => true,
        }
    }

    /// Can programs of this toolchain run on it? libomp and libiomp5 have GCC's entry points too; libgomp only its own.
    pub fn runs(self, toolchain: Toolchain) -> bool {
        self.is_kmp() || toolchain == Toolchain::Gcc
    }

    /// Makes a process of this toolchain's program load this runtime.
    ///
    /// A program that needs libgomp gets the other runtime preloaded; its symbols come first, libgomp stays mapped and
    /// unused. A program that needs libomp finds libiomp5 under that name, so that only one of the two is loaded.
    pub(crate) fn apply(self, toolchain: Toolchain, command: &mut Command) -> Result<()> {
        if !self.runs(toolchain) {
            bail!("programs built by {} cannot run on {self:?}", toolchain.command());
        }
        let library = || self.library().map_err(|skip| anyhow::anyhow!("{skip}"));
        match (toolchain, self) {
            (_, Runtime::Libgomp) => {
                if let Some(directory) = std::env::var_os(LIBGOMP_DIRECTORY) {
                    command.env("LD_LIBRARY_PATH", directory);
                }
            }
            (Toolchain::Clang, Runtime::Libomp14) => {}
            (Toolchain::Gcc, _) => {
                command.env("LD_PRELOAD", library()?);
            }
            (Toolchain::Clang, Runtime::Libiomp5) => {
                command.env("LD_LIBRARY_PATH", directory_with_link("libomp.so.5", &library()?)?);
            }
        }
        Ok(())
    }
}

/// Every toolchain with every runtime its programs can run on; says on standard error what is missing.
pub fn combinations() -> Vec<(Toolchain, Runtime)> {
    let has = |toolchain: &Toolchain| toolchain.check().inspect_err(Skip::show).is_ok();
    let toolchains: Vec<Toolchain> = Toolchain::ALL.into_iter().filter(has).collect();
    let runtimes = Runtime::available();
    let pairs = toolchains.iter().flat_map(|&toolchain| runtimes.iter().map(move |&runtime| (toolchain, runtime)));
    pairs.filter(|(toolchain, runtime)| runtime.runs(*toolchain)).collect()
}

/// Those of the [`combinations`] in which the compiler is the one that the runtime belongs to.
pub fn native_combinations() -> Vec<(Toolchain, Runtime)> {
    let is_native = |(toolchain, runtime): &(Toolchain, Runtime)| runtime.is_kmp() == (*toolchain == Toolchain::Clang);
    combinations().into_iter().filter(is_native).collect()
}

/// Directories with other releases of libgomp and libomp, as distributions have them (`ci/fetch`). Each comes with the runtime
/// that it replaces if it is on `LD_LIBRARY_PATH`. Programs may fail to start on them: they may need a newer C library.
pub fn other_releases() -> Vec<(Toolchain, Runtime, PathBuf)> {
    let mut found = Vec::new();
    let machine = if cfg!(target_arch = "aarch64") { "arm64" } else { "amd64" };
    let entries = |directory: &Path| -> Vec<PathBuf> {
        let read = fs::read_dir(directory).into_iter().flatten().flatten();
        read.map(|entry| entry.path()).collect()
    };
    for distribution in entries(&home().join("runtimes")) {
        for package in entries(&distribution.join(machine)) {
            let both = [
                (Toolchain::Gcc, Runtime::Libgomp, "libgomp.so.1"),
                (Toolchain::Clang, Runtime::Libomp14, "libomp.so.5"),
            ];
            let here = both.into_iter().filter(|(.., name)| package.join(name).is_file());
            found.extend(here.map(|(toolchain, runtime, _)| (toolchain, runtime, package.clone())));
        }
    }
    found.sort();
    if found.is_empty() {
        Skip::because("no other releases are here; \"ci/fetch\" gets them").show();
    }
    found
}

/// Puts a copy of a runtime into `directory`, under the name that programs of this toolchain look for: `LD_LIBRARY_PATH` has them run
/// on it. It has another build-id, so nobody knows the build, and all else is the same.
///
/// # Errors
/// The runtime is not here, or has nothing that tells its builds apart.
pub fn unknown_build(toolchain: Toolchain, runtime: Runtime, directory: &Path) -> Result<PathBuf> {
    let library = runtime.library().map_err(|skip| anyhow::anyhow!("{skip}"))?;
    let mut bytes = fs::read(&library).with_context(|| format!("reading {}", library.display()))?;
    // The sizes of name and description, the type NT_GNU_BUILD_ID, the name.
    let note = b"\x04\0\0\0\x14\0\0\0\x03\0\0\0GNU\0";
    let find = |text: &[u8]| bytes.windows(text.len()).rposition(|part| part == text).map(|at| at + text.len());
    // Without one, the name of the debug file and its checksum stand for the build.
    let link = || find(b".dbg\0").map(|end| end.next_multiple_of(4));
    let id = find(note).or_else(link).context("it has neither build-id nor debug link")?;
    let id = bytes.get_mut(id..id + 4).context("its build-id is cut off")?;
    id.iter_mut().for_each(|byte| *byte = !*byte);
    let name = if toolchain == Toolchain::Gcc { "libgomp.so.1" } else { "libomp.so.5" };
    let copy = directory.join(name);
    fs::write(&copy, bytes).with_context(|| format!("writing {}", copy.display()))?;
    Ok(copy)
}

/// Asks gcc where it would find a library.
fn gcc_library(name: &str) -> Result<PathBuf, Skip> {
    let output = Command::new("gcc").arg(format!("-print-file-name={name}")).output();
    let output = output.map_err(|error| Skip::because(format!("gcc cannot be run ({error})")))?;
    Ok(PathBuf::from(String::from_utf8_lossy(&output.stdout).trim_end()))
}

/// A directory in which `name` leads to `library`.
pub(crate) fn directory_with_link(name: &str, library: &Path) -> Result<PathBuf> {
    let directory = out()?.join(format!("instead-of-{name}"));
    fs::create_dir_all(&directory).with_context(|| format!("making {}", directory.display()))?;
    let link = directory.join(name);
    match fs::read_link(&link) {
        Ok(target) if target == library => return Ok(directory),
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error).with_context(|| format!("looking at {}", link.display())),
    }
    let temporary = temporary_beside(&link);
    symlink(library, &temporary).with_context(|| format!("linking {}", temporary.display()))?;
    fs::rename(&temporary, &link).with_context(|| format!("naming {}", link.display()))?;
    Ok(directory)
}
