//! The situations in which gdb meets a program, and the runtimes that programs run on as they are shipped.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use test_programs::{Env, Executable, Launch, Opt, Running, Runtime, Skip, Toolchain, Truth, build, can_build};

use crate::{Gdb, has_server};

/// How gdb comes to a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Situation {
    /// gdb has started it.
    Launch,
    /// gdb is attached to it.
    Attach,
    /// A core that gdb has written.
    Gcore,
    /// A core that the kernel has written.
    KernelCore,
    /// gdbserver is attached to it.
    Remote,
}

/// All of them.
pub const SITUATIONS: [Situation; 5] =
    [Situation::Launch, Situation::Attach, Situation::Gcore, Situation::KernelCore, Situation::Remote];

/// A runtime as it is shipped: without symbols.
#[derive(Debug)]
pub struct Release {
    /// What it is called.
    pub name: &'static str,
    /// Which of the runtimes it stands in for, and is compared as.
    pub runtime: Runtime,
    /// The file that takes its place, and the directory in which it has the name that programs look for.
    instead: Option<(PathBuf, tempfile::TempDir)>,
}

/// Those that this machine has; says on standard error why the others are missing.
///
/// # Errors
/// If no directory can be made for them.
pub fn releases() -> Result<Vec<Release>> {
    let mut all: Vec<Release> = Runtime::available()
        .into_iter()
        .map(|runtime| {
            let name = match runtime {
                Runtime::Libgomp => "libgomp",
                Runtime::Libomp14 => "libomp 14",
                Runtime::Libiomp5 => "libiomp5",
            };
            Release { name, runtime, instead: None }
        })
        .collect();
    let package = "test-programs/runtimes/debian-bookworm/amd64/libomp5-19";
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(package).join("libomp.so.5");
    match file.canonicalize() {
        Ok(file) => {
            let directory = tempfile::tempdir().context("a directory for a link")?;
            std::os::unix::fs::symlink(&file, directory.path().join("libomp.so.5")).context("a link")?;
            all.push(Release { name: "libomp 19", runtime: Runtime::Libomp14, instead: Some((file, directory)) });
        }
        Err(why) => {
            Skip::because(format!("libomp 19 is not here ({package}: {why}); \"ci/fetch debian\" gets it")).show();
        }
    }
    all.sort_by_key(|release| release.name);
    Ok(all)
}

impl Release {
    /// The compiler whose programs it is made for; of programs in Fortran there is only one.
    pub fn toolchain(&self, program: &str) -> Toolchain {
        if self.runtime.is_kmp() && !program.ends_with("_fortran") { Toolchain::Clang } else { Toolchain::Gcc }
    }

    /// Builds a program for it, with these extra flags.
    ///
    /// # Errors
    /// If the compiler fails; the inner error is the reason why it cannot be built here.
    pub fn build(&self, program: &str, opt: Opt, flags: &[&str]) -> Result<Result<Executable, Skip>> {
        let toolchain = self.toolchain(program);
        match can_build(program, toolchain)? {
            Ok(()) => Ok(Ok(build(program, toolchain, opt, flags)?)),
            Err(skip) => Ok(Err(skip)),
        }
    }

    /// How to start a program on it.
    pub fn launch(&self, program: &Executable) -> Launch {
        let launch = Launch::new(program, self.runtime, Env::Settled);
        match (&self.instead, program.toolchain) {
            (None, _) => launch,
            // A program of gcc's asks for libgomp, whose symbols this file's come before.
            (Some((file, _)), Toolchain::Gcc) => launch.variable("LD_PRELOAD", &file.to_string_lossy()),
            (Some((_, directory)), Toolchain::Clang) => {
                launch.variable("LD_LIBRARY_PATH", &directory.path().to_string_lossy())
            }
        }
    }
}

/// Starts a program, and waits until it is ready, or hangs if that is what it is for.
///
/// # Errors
/// If it does not come to that.
pub fn started(launch: &Launch) -> Result<Running> {
    if launch.executable().program.starts_with("hangs/") { launch.start_hanging() } else { launch.start() }
}

impl Situation {
    /// Whether the process is there, and not an image of it only.
    pub fn is_live(self) -> bool {
        !matches!(self, Situation::Gcore | Situation::KernelCore)
    }

    /// Brings a program into this situation and has gdb run commands: what the program says of itself, and what each of the
    /// commands has printed.
    ///
    /// # Errors
    /// If the program does not get ready, or as for [`Gdb::run`]. The inner error says why this machine has no such situation.
    pub fn run<S: AsRef<str>>(
        self,
        library: &Path,
        launch: &Launch,
        commands: &[S],
    ) -> Result<Result<(Truth, Vec<String>), Skip>> {
        let directory = tempfile::tempdir().context("a directory for a core")?;
        let on_core = |truth: Truth, core: PathBuf| {
            let printed = Gdb::core(library, &launch.executable().path, &core).run(commands)?;
            Ok(Ok((truth, printed)))
        };
        match self {
            Situation::Launch => {
                let launched = Gdb::launch(library, launch, commands)?;
                let truth = launched.truth.clone();
                Ok(Ok((truth, launched.finish()?)))
            }
            Situation::Attach => {
                let running = started(launch)?;
                let printed = Gdb::attached(library, &running).run(commands)?;
                Ok(Ok((running.truth.clone(), printed)))
            }
            Situation::Gcore => {
                let running = started(launch)?;
                match running.gcore(directory.path())? {
                    Ok(core) => on_core(running.truth.clone(), core),
                    Err(skip) => Ok(Err(skip)),
                }
            }
            Situation::KernelCore => {
                let mut running = started(&launch.clone().leaving_core_in(directory.path()))?;
                match running.kernel_core(directory.path())? {
                    Ok(core) => on_core(running.truth.clone(), core),
                    Err(skip) => Ok(Err(skip)),
                }
            }
            Situation::Remote => {
                if let Err(skip) = has_server() {
                    return Ok(Err(skip));
                }
                let running = started(&launch.clone().leading_group())?;
                let printed = Gdb::remote(library, &running).run(commands)?;
                Ok(Ok((running.truth.clone(), printed)))
            }
        }
    }
}
