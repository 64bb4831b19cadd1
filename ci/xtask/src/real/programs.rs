//! The programs, and how they are called.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use test_programs::{Env, Executable, Launch, Opt, Runtime, Toolchain};

/// A program of others.
#[derive(Clone)]
pub struct Program {
    pub name: &'static str,
    /// Where it is below the folder of its compiler; of Python nothing.
    file: Option<&'static str>,
    arguments: &'static [&'static str],
}

/// Programs that `ci/real` builds, and Python with the wheels that `ci/fetch python` gets. Files are relative to the folder.
const ALL: &[Program] = &[
    // Loops over sites of an alignment.
    Program { name: "fasttree", file: Some("fasttree/fasttree"), arguments: &["-nt", "-gtr", "sequences.fasta"] },
    // Dynamic loops with locks and critical sections.
    Program {
        name: "muscle",
        file: Some("muscle/muscle"),
        arguments: &["-align", "proteins.fasta", "-output", "/dev/null"],
    },
    // Guided loops.
    Program {
        name: "graphicsmagick",
        file: Some("graphicsmagick/graphicsmagick"),
        arguments: &["convert", "picture.ppm", "-blur", "0x6", "-despeckle", "-resize", "50%", "null:/dev/null"],
    },
    // Static loops, many short ones.
    Program { name: "john", file: Some("john/john"), arguments: &["--test=1"] },
    // Loops of spherical harmonics.
    Program {
        name: "libsharp",
        file: Some("libsharp/libsharp"),
        arguments: &["test", "gauss", "1023", "-1", "-1", "0", "1"],
    },
    // Locks of the OpenMP library, many of them.
    Program {
        name: "velvet",
        file: Some("velvet/velvet"),
        arguments: &["assembled", "21", "-fasta", "-short", "reads.fasta"],
    },
    Program { name: "python two pools", file: None, arguments: &["two_pools"] },
    Program { name: "python jit loop", file: None, arguments: &["jit_loop"] },
];

/// All of them, whether they are there or not.
pub fn all() -> &'static [Program] {
    ALL
}

impl Program {
    fn path(&self, folder: &Path, toolchain: Toolchain) -> Option<PathBuf> {
        self.file.map(|file| folder.join(toolchain.command()).join(file))
    }

    /// Whether it is built by this compiler where it is: wheels have code by GCC.
    pub fn is_for(&self, toolchain: Toolchain) -> bool {
        self.file.is_some() || toolchain == Toolchain::Gcc
    }

    /// Whether it is there.
    pub fn is_there(&self, folder: &Path, toolchain: Toolchain) -> bool {
        match self.path(folder, toolchain) {
            Some(path) => path.is_file(),
            None => Launch::python(self.arguments[0], Env::Stock).is_ok(),
        }
    }

    /// Whether it can run on a runtime: a wheel has its own libgomp.
    pub fn runs_on(&self, runtime: Runtime) -> bool {
        self.file.is_some() || runtime == Runtime::Libgomp
    }

    /// What starts it. It ends when what has started it ends.
    pub fn command(&self, folder: &Path, toolchain: Toolchain, runtime: Runtime) -> Result<Command> {
        let launch = match self.path(folder, toolchain) {
            Some(path) => {
                let executable = Executable { path, program: self.name.to_owned(), toolchain, opt: Opt::O2 };
                let launch = Launch::new(&executable, runtime, Env::Stock);
                self.arguments.iter().fold(launch, |launch, argument| launch.argument(argument))
            }
            None => Launch::python(self.arguments[0], Env::Stock).map_err(|skip| anyhow::anyhow!("{skip}"))?,
        };
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL"]).arg(&launch.executable().path).args(launch.arguments());
        for (name, value) in launch.environment()? {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        Ok(command)
    }
}

/// A program that runs; it ends when this is dropped.
pub struct Running(Child);

impl Running {
    pub fn start(mut command: Command) -> Result<Running> {
        command.spawn().map(Running).with_context(|| format!("starting {:?}", command.get_program()))
    }

    pub fn pid(&self) -> u32 {
        self.0.id()
    }

    /// Whether it has ended, or does so at once: its first thread ends before the others.
    pub fn ends(&mut self) -> Result<bool> {
        let deadline = Instant::now() + Duration::from_secs(2);
        while Instant::now() < deadline {
            if self.ended()?.is_some() {
                return Ok(true);
            }
            sleep(Duration::from_millis(10));
        }
        Ok(false)
    }

    /// How it has ended, if it has.
    pub fn ended(&mut self) -> Result<Option<ExitStatus>> {
        self.0.try_wait().context("asking for the program's end")
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
        test_programs::remove_registration(self.0.id());
    }
}
