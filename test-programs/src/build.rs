//! Building the programs, cached in `out/`.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::SystemTime;

use anyhow::{Context, Result, bail};

use crate::Skip;

/// A compiler the programs are built with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Toolchain {
    /// `gcc`; calls the `GOMP_*` entry points.
    Gcc,
    /// `clang-14`; calls the `__kmpc_*` entry points.
    Clang,
}

impl Toolchain {
    /// Every toolchain the kit knows.
    pub const ALL: [Toolchain; 2] = [Toolchain::Gcc, Toolchain::Clang];

    /// The command that compiles.
    pub fn command(self) -> &'static str {
        match self {
            Toolchain::Gcc => "gcc",
            Toolchain::Clang => "clang-14",
        }
    }

    /// Whether this machine has it, able to compile OpenMP.
    ///
    /// # Errors
    /// The reason why not.
    pub fn check(self) -> Result<(), Skip> {
        let command = self.command();
        let run = Command::new(command).args(["-fopenmp", "-include", "omp.h", "-E", "-x", "c", "/dev/null"]).output();
        match run {
            Ok(output) if output.status.success() => Ok(()),
            Ok(_) => Err(Skip::because(format!("{command} finds no omp.h"))),
            Err(error) => Err(Skip::because(format!("{command} cannot be run ({error})"))),
        }
    }
}

/// How far the compiler optimises.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Opt {
    /// `-O0`.
    O0,
    /// `-O2`.
    O2,
}

impl Opt {
    /// Both.
    pub const ALL: [Opt; 2] = [Opt::O0, Opt::O2];

    fn flag(self) -> &'static str {
        match self {
            Opt::O0 => "-O0",
            Opt::O2 => "-O2",
        }
    }
}

/// A program, built.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Executable {
    /// The file.
    pub path: PathBuf,
    /// The program's name.
    pub program: String,
    /// What it was built with.
    pub toolchain: Toolchain,
    /// How far it was optimised.
    pub opt: Opt,
}

/// The directory of this package.
pub(crate) fn home() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The directory of everything the kit makes; ignored by git.
pub(crate) fn out() -> Result<PathBuf> {
    let out = home().join("out");
    fs::create_dir_all(&out).with_context(|| format!("making {}", out.display()))?;
    Ok(out)
}

/// A name beside `path` that no other process or thread uses.
pub(crate) fn temporary_beside(path: &Path) -> PathBuf {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed)));
    path.with_file_name(name)
}

/// Builds `programs/PROGRAM.c` with debug information and these extra flags (`-s` strips, `-static` links statically),
/// or takes the file a former call built, when it is newer than its sources.
///
/// Any number of processes may do this at the same time: a file appears under its name when it is complete.
///
/// # Errors
/// When there is no such program, or the compiler cannot be run, fails, or warns.
pub fn build(program: &str, toolchain: Toolchain, opt: Opt, flags: &[&str]) -> Result<Executable> {
    let sources = home().join("programs");
    let source = sources.join(format!("{program}.c"));
    let inputs = [source.clone(), sources.join("allow.c"), sources.join("truth.h")];

    let mut key = format!("{program}-{}{}", toolchain.command(), opt.flag());
    for flag in flags {
        key.push(' ');
        key.push_str(flag);
    }
    let path = out()?.join(file_name(&key));
    let executable = Executable { path, program: program.to_owned(), toolchain, opt };
    if is_newer(&executable.path, &inputs)? {
        return Ok(executable);
    }

    let temporary = temporary_beside(&executable.path);
    let mut command = Command::new(toolchain.command());
    command.args(["-std=gnu11", "-g", "-Wall", "-Wextra", "-Werror", "-pthread", opt.flag()]);
    if program != "not_openmp" {
        command.arg("-fopenmp");
    }
    command.args(&inputs[..2]).args(flags).arg("-o").arg(&temporary);
    let output = command.output().with_context(|| format!("running {}", toolchain.command()))?;
    if !output.status.success() {
        // The compiler removes what it could not finish; if it did not, the name says it is waste.
        bail!("{command:?} failed:\n{}", String::from_utf8_lossy(&output.stderr));
    }
    fs::rename(&temporary, &executable.path).with_context(|| format!("naming {}", executable.path.display()))?;
    Ok(executable)
}

/// A file name for a key, different for different keys.
fn file_name(key: &str) -> String {
    let mut name = String::new();
    for c in key.chars() {
        match c {
            'a'..='z' | 'A'..='Z' | '0'..='9' | '-' | '_' | '.' => name.push(c),
            ' ' => name.push('+'),
            _ => name.push_str(&format!("%{:x}.", u32::from(c))),
        }
    }
    name
}

/// Is the file there and at least as new as all its inputs?
fn is_newer(file: &Path, inputs: &[PathBuf]) -> Result<bool> {
    let Some(built) = modified(file)? else { return Ok(false) };
    for input in inputs {
        match modified(input)? {
            // Equal times: the input may have changed in the tick in which the file was built.
            Some(changed) if changed < built => {}
            Some(_) => return Ok(false),
            None => bail!("there is no {}", input.display()),
        }
    }
    Ok(true)
}

fn modified(file: &Path) -> Result<Option<SystemTime>> {
    match fs::metadata(file) {
        Ok(metadata) => Ok(Some(metadata.modified()?)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("looking at {}", file.display())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn different_flags_make_different_files() {
        let keys = ["a -s", "a-s", "a -s -x", "a -s-x", "a -DX=1", "a -DX+1", "a -DX%3d.1"];
        let names: std::collections::BTreeSet<String> = keys.iter().map(|key| file_name(key)).collect();
        assert_eq!(names.len(), keys.len(), "{names:?}");
        assert!(names.iter().all(|name| !name.contains('/')));
    }

    #[test]
    fn a_file_is_rebuilt_when_an_input_is_not_older() -> Result<()> {
        let dir = tempfile::tempdir()?;
        let [old, new, missing] = ["old", "new", "missing"].map(|name| dir.path().join(name));
        let time = SystemTime::now();
        fs::File::create(&old)?.set_modified(time - std::time::Duration::from_secs(10))?;
        fs::File::create(&new)?.set_modified(time)?;
        assert!(is_newer(&new, std::slice::from_ref(&old))?);
        assert!(!is_newer(&old, std::slice::from_ref(&new))?);
        assert!(!is_newer(&new, std::slice::from_ref(&new))?);
        assert!(!is_newer(&missing, std::slice::from_ref(&old))?);
        assert!(is_newer(&new, &[missing]).is_err());
        Ok(())
    }
}
