//! Building the programs, cached in `out/`.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::SystemTime;

use anyhow::{Context, Result, bail};
use nix::fcntl::{Flock, FlockArg};
use serde::{Deserialize, Serialize};

use crate::Skip;

/// Environment variable naming a directory whose `libgomp.so.1` is used instead of the system's, so that the same tests
/// can be run on other releases.
pub(crate) const LIBGOMP_DIRECTORY: &str = "TEST_LIBGOMP_DIR";

/// A compiler the programs are built with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
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

/// The machine that programs are built for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Target {
    /// This one.
    Host,
    /// 64-bit Arm, by Debian's cross compilers of gcc, and by clang with their libraries.
    Aarch64,
}

/// How far the compiler optimises.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Opt {
    /// `-O0`.
    O0,
    /// `-O2`.
    O2,
    /// `-O3 -fomit-frame-pointer`.
    O3,
}

impl Opt {
    /// Not at all, and as far as most users go.
    pub const ALL: [Opt; 2] = [Opt::O0, Opt::O2];

    pub(crate) fn flags(self) -> &'static [&'static str] {
        match self {
            Opt::O0 => &["-O0"],
            Opt::O2 => &["-O2"],
            Opt::O3 => &["-O3", "-fomit-frame-pointer"],
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

impl Executable {
    /// The first line of the C source with a text, from 1 on.
    ///
    /// # Errors
    /// If the source cannot be read, or has no such line.
    pub fn line_of(&self, text: &str) -> Result<usize> {
        let source = fs::read_to_string(home().join("programs").join(&self.program).with_extension("c"))?;
        let before = source.lines().position(|line| line.contains(text));
        before.map(|before| before + 1).with_context(|| format!("{}: no line has {text:?}", self.program))
    }
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

/// The languages of the programs, by the ending of their sources.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Language {
    C,
    Cpp,
    Fortran,
}

impl Language {
    /// That of a program, and the file.
    fn of(program: &str) -> Result<(Language, PathBuf)> {
        let sources = if program.contains('/') { home().to_owned() } else { home().join("programs") };
        for (language, extension) in [(Language::C, "c"), (Language::Cpp, "cc"), (Language::Fortran, "f90")] {
            let source = sources.join(format!("{program}.{extension}"));
            if fs::exists(&source).with_context(|| format!("looking at {}", source.display()))? {
                return Ok((language, source));
            }
        }
        bail!("there is no program {program}")
    }

    /// The command of a toolchain that compiles it, and links.
    fn command(self, toolchain: Toolchain, target: Target) -> Result<&'static str, Skip> {
        match (self, toolchain, target) {
            (Language::C, Toolchain::Gcc, Target::Aarch64) => Ok("aarch64-linux-gnu-gcc"),
            (Language::C, ..) => Ok(toolchain.command()),
            (Language::Cpp, Toolchain::Gcc, Target::Host) => Ok("g++"),
            (Language::Cpp, Toolchain::Gcc, Target::Aarch64) => Ok("aarch64-linux-gnu-g++"),
            (Language::Cpp, Toolchain::Clang, _) => Ok("clang++-14"),
            (Language::Fortran, Toolchain::Gcc, Target::Host) => Ok("gfortran"),
            (Language::Fortran, Toolchain::Gcc, Target::Aarch64) => Ok("aarch64-linux-gnu-gfortran"),
            (Language::Fortran, Toolchain::Clang, _) => {
                Err(Skip::because("programs in Fortran built by clang: it compiles none"))
            }
        }
    }
}

/// Whether this machine can build the program with this toolchain, in the language it is written in.
///
/// # Errors
/// When there is no such program; the inner error is the reason why it cannot be built here.
pub fn can_build(program: &str, toolchain: Toolchain) -> Result<Result<(), Skip>> {
    if let Err(skip) = toolchain.check() {
        return Ok(Err(skip));
    }
    let (language, _) = Language::of(program)?;
    let command = match language.command(toolchain, Target::Host) {
        Ok(command) => command,
        Err(skip) => return Ok(Err(skip)),
    };
    // Clang takes the C++ library of gcc; without it the command is there and finds no headers.
    let arguments: &[&str] = match language {
        Language::C => return Ok(Ok(())),
        Language::Cpp => &["-include", "stdexcept", "-E", "-x", "c++", "/dev/null"],
        Language::Fortran => &["-E", "-x", "f95-cpp-input", "/dev/null"],
    };
    Ok(match Command::new(command).args(arguments).output() {
        Ok(output) if output.status.success() => Ok(()),
        Ok(_) => Err(Skip::because(format!("{command} does not work; ci/setup gets what it needs"))),
        Err(error) => Err(Skip::because(format!("{command} cannot be run ({error}); ci/setup gets it"))),
    })
}

/// Builds `programs/PROGRAM.c` (or `.cc`, `.f90`) with debug information and these extra flags (`-s` strips, `-static` links
/// statically). If a former call built a file that is newer than its sources, takes that file. A library of the program's own,
/// `programs/PROGRAM_library.c`, is built the same way; the program finds it where it was built.
///
/// Any number of processes may do this at the same time: a file appears under its name when it is complete.
///
/// # Errors
/// When there is no such program, or the compiler cannot be run, fails, or warns. [`can_build`] says what is missing.
pub fn build(program: &str, toolchain: Toolchain, opt: Opt, flags: &[&str]) -> Result<Executable> {
    build_for(Target::Host, program, toolchain, opt, flags)
}

/// [`build`] for a machine.
///
/// # Errors
/// As [`build`].
pub fn build_for(target: Target, program: &str, toolchain: Toolchain, opt: Opt, flags: &[&str]) -> Result<Executable> {
    let (language, source) = Language::of(program)?;
    let compiler = language.command(toolchain, target).map_err(|skip| anyhow::anyhow!("{skip}"))?;
    let c_compiler = Language::C.command(toolchain, target).map_err(|skip| anyhow::anyhow!("{skip}"))?;
    let with_target;
    let flags = if (toolchain, target) == (Toolchain::Clang, Target::Aarch64) {
        with_target = [&["--target=aarch64-linux-gnu"], flags].concat();
        with_target.as_slice()
    } else {
        flags
    };
    let sources = home().join("programs");
    let mut helpers = Vec::from([sources.join("allow.c")]);
    let mut headers = Vec::from([sources.join("truth.h")]);
    if program.starts_with("stacks") {
        helpers.push(sources.join("truth_stack.c"));
        headers.push(sources.join("truth_stack.h"));
    }
    if program == "device_simulator" {
        headers.push(sources.join("device_records.h"));
    }
    if program.contains('/') || program.starts_with("lock_objects") {
        headers.extend(["expect.h", "lock_kind.h", "truth_calls.h"].map(|header| sources.join(header)));
        if language != Language::C {
            helpers.push(sources.join("truth_calls.c"));
        }
    }
    let key = |compiler: &str| format!("{program}-{compiler}{}", [opt.flags(), flags].concat().join(" "));

    let library = sources.join(format!("{program}_library.c"));
    let library = if fs::exists(&library).with_context(|| format!("looking at {}", library.display()))? {
        let file = out()?.join(format!("lib{}.so", file_name(&key(c_compiler))));
        let inputs = [std::slice::from_ref(&library), headers.as_slice()].concat();
        make(&file, &inputs, c_compiler, |command| {
            command.args(WARNINGS).args(["-std=gnu11", "-shared", "-fPIC", "-fopenmp"]).args(opt.flags());
            command.arg(&library).args(flags);
        })?;
        Some(file)
    } else {
        None
    };

    let object = sources.join(format!("{program}_object.c"));
    let object = if fs::exists(&object).with_context(|| format!("looking at {}", object.display()))? {
        let file = out()?.join(format!("{}.o", file_name(&key(c_compiler))));
        let header = sources.join(format!("{program}.h"));
        headers.push(header);
        let inputs = [std::slice::from_ref(&object), headers.as_slice()].concat();
        make(&file, &inputs, c_compiler, |command| {
            command.args(WARNINGS).args(["-std=gnu11", "-c", "-fopenmp", "-fno-pic", "-mcmodel=large"]);
            command.args(opt.flags()).arg(&object);
            // Addresses of 64 bits are loaded early, and with them moves the line at which the body of a construct begins.
            if toolchain == Toolchain::Gcc {
                command.arg("-fno-schedule-insns2");
            }
        })?;
        Some(file)
    } else {
        None
    };

    // Where gfortran leaves its description of the modules; nobody needs it.
    let modules = tempfile::tempdir().context("making a directory for modules")?;
    let path = out()?.join(file_name(&key(compiler)));
    let inputs = [std::slice::from_ref(&source), &helpers, &headers, library.as_slice(), object.as_slice()].concat();
    make(&path, &inputs, compiler, |command| {
        command.args(WARNINGS).arg("-pthread").arg("-I").arg(&sources).args(opt.flags());
        if program != "not_openmp" {
            command.arg("-fopenmp");
        }
        match language {
            Language::C => command.arg("-std=gnu11").arg(&source).args(&helpers),
            // The C++ compilers take a file for C++ whatever its name says; g++ heeds -x for one file only.
            Language::Cpp => {
                command.arg(&source);
                for helper in &helpers {
                    command.args(["-x", "c"]).arg(helper);
                }
                command.args(["-x", "none"])
            }
            Language::Fortran => command.arg("-cpp").arg("-J").arg(modules.path()).arg(&source).args(&helpers),
        };
        if let Some(library) = &library {
            // It has no name of its own, so it is looked for at the path it is linked by; and it calls back.
            command.arg("-rdynamic").arg(library);
        }
        if let Some(object) = &object {
            command.arg(format!("-DJIT_OBJECT=\"{}\"", object.display())).arg("-rdynamic");
        }
        command.args(flags);
    })?;
    Ok(Executable { path, program: program.to_owned(), toolchain, opt })
}

/// [`build`] by `gcc` with `-static` or the like among the flags.
///
/// # Errors
/// The reason why it does not link here: what the linker says, where a static library is missing.
pub fn link_statically(program: &str, opt: Opt, flags: &[&str]) -> Result<Executable, Skip> {
    let mut flags: Vec<String> = flags.iter().map(|flag| (*flag).to_owned()).collect();
    if let Ok(directory) = std::env::var(LIBGOMP_DIRECTORY) {
        flags.push(format!("-L{directory}"));
        // What libraries made for a newer C library call these functions.
        let newer = ["strtol", "strtoul", "strtoull"].map(|name| format!("-Wl,--defsym=__isoc23_{name}={name}"));
        flags.extend(newer);
    }
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    Toolchain::Gcc.check()?;
    build(program, Toolchain::Gcc, opt, &flags)
        .map_err(|why| Skip::because(format!("{flags:?} does not link here: {why:#}")))
}

pub(crate) const WARNINGS: [&str; 4] = ["-g", "-Wall", "-Wextra", "-Werror"];

/// Runs a compiler that makes `path`, if this is older than one of the inputs.
pub(crate) fn make(
    path: &Path,
    inputs: &[PathBuf],
    compiler: &str,
    arguments: impl FnOnce(&mut Command),
) -> Result<()> {
    if is_newer(path, inputs)? {
        return Ok(());
    }
    // Somebody else may be making it, and start it: a process whose file is replaced has lost it for debuggers.
    let lock = path.with_file_name(format!(".{}.lock", path.file_name().unwrap_or_default().to_string_lossy()));
    let lock = fs::File::create(&lock).with_context(|| format!("making {}", lock.display()))?;
    let _held = Flock::lock(lock, FlockArg::LockExclusive).map_err(|(_, why)| why).context("waiting for a program")?;
    if is_newer(path, inputs)? {
        return Ok(());
    }
    let temporary = temporary_beside(path);
    let mut command = Command::new(compiler);
    arguments(&mut command);
    let output = command.arg("-o").arg(&temporary).output().with_context(|| format!("running {compiler}"))?;
    if !output.status.success() {
        // The compiler removes what it could not finish; if it did not, the name says it is waste.
        bail!("{command:?} failed:\n{}", String::from_utf8_lossy(&output.stderr));
    }
    fs::rename(&temporary, path).with_context(|| format!("naming {}", path.display()))
}

/// A file name for a key, different for different keys.
pub(crate) fn file_name(key: &str) -> String {
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

/// A library of this workspace, which cargo puts where it puts the test that calls this.
///
/// # Panics
/// If it is not there: the crate of the test does not depend on the library's.
pub fn built_by_cargo(library: &str) -> PathBuf {
    let own = std::env::current_exe().expect("where this test is");
    let file = own.with_file_name(library);
    assert!(file.is_file(), "{} is missing", file.display());
    file
}

/// Whether a tool is there and does its work. Shows why not.
pub fn succeeds(tool: &mut Command) -> bool {
    let why = match tool.output() {
        Ok(done) if done.status.success() => return true,
        Ok(done) => String::from_utf8_lossy(&done.stderr).into_owned(),
        Err(error) => error.to_string(),
    };
    Skip::because(format!("{tool:?}: {why}")).show();
    false
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
