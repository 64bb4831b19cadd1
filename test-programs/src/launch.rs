//! Starting a program in a known environment.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::BufReader;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::{Context, Result};
use nix::sys::resource::{RLIM_INFINITY, Resource, setrlimit};
use nix::unistd::alarm;

use crate::build::home;
use crate::{Executable, Opt, Runtime, Skip, Toolchain};

/// After this time the kernel ends a program that is still there. A killed test cannot clean up, and not every program notices
/// the end of its standard input.
const BACKSTOP_SECONDS: u32 = 1800;

/// Which OpenMP environment variables a program gets. None is ever inherited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Env {
    /// Variables that make waiting threads sleep at once, so that little depends on time.
    Settled,
    /// None at all, as users have it.
    Stock,
}

impl Env {
    fn variables(self) -> &'static [(&'static str, &'static str)] {
        match self {
            // Not OMP_WAIT_POLICY=passive: libomp then lets threads sleep at a barrier although tasks are queued, and
            // can lose the wake-up. The two numbers alone make waiting threads sleep.
            Env::Settled => {
                &[
                    ("OMP_NUM_THREADS", "4"),
                    ("OMP_DYNAMIC", "false"),
                    ("GOMP_SPINCOUNT", "0"),
                    ("KMP_BLOCKTIME", "0"),
                    // What malloc gives holds 0xfe in each byte (mallopt(3), M_PERTURB): a field that the runtime does not set
                    // is not 0 by chance.
                    ("MALLOC_PERTURB_", "1"),
                ]
            }
            Env::Stock => &[],
        }
    }
}

/// With this in its environment a program takes locks, `taskwait` and `taskgroup` to be waited for by spinning.
pub const TRUTH_SPINS: &str = "OMPD_TRUTH_SPINS";

/// How to start a program.
#[derive(Debug, Clone)]
pub struct Launch {
    pub(crate) executable: Executable,
    pub(crate) runtime: Runtime,
    env: Env,
    pub(crate) variables: Vec<(String, String)>,
    arguments: Vec<String>,
    core_directory: Option<PathBuf>,
    leads_group: bool,
    user: Option<u32>,
}

/// A process just started, and our ends of its pipes. Whoever has it ends it.
#[derive(Debug)]
pub struct Process {
    /// The process.
    pub child: Child,
    /// What it reads.
    pub stdin: ChildStdin,
    /// What it writes.
    pub stdout: BufReader<ChildStdout>,
    /// What it wrote to standard error: a file, because nobody reads a pipe while the program is waited for.
    pub stderr: File,
}

impl Launch {
    /// This program on this runtime.
    pub fn new(executable: &Executable, runtime: Runtime, env: Env) -> Launch {
        Launch {
            executable: executable.clone(),
            runtime,
            env,
            variables: Vec::new(),
            arguments: Vec::new(),
            core_directory: None,
            leads_group: false,
            user: None,
        }
    }

    /// `python/SCRIPT.py` in the Python that `ci/fetch python` gets, with its wheels and the libgomps they bring.
    ///
    /// # Errors
    /// The reason why this machine does not have it.
    pub fn python(script: &str, env: Env) -> Result<Launch, Skip> {
        let interpreter = home().join("runtimes/venv/bin/python");
        // Written when all wheels are there, and names them.
        let Ok(wheels) = fs::read_to_string(home().join("runtimes/venv/what")) else {
            let missing = interpreter.display();
            return Err(Skip::because(format!("no Python with wheels ({missing}); \"ci/fetch python\" gets it")));
        };
        if script == "jit_loop" && !wheels.contains("numba") {
            return Err(Skip::because("the Python with wheels has no Numba; \"ci/fetch python\" gets it"));
        }
        // Wheels are built by gcc, optimised.
        let program = format!("python/{script}");
        let executable = Executable { path: interpreter, program, toolchain: Toolchain::Gcc, opt: Opt::O2 };
        let file = home().join(format!("python/{script}.py"));
        Ok(Launch::new(&executable, Runtime::Libgomp, env).argument(&file.to_string_lossy()))
    }

    /// Sets one more environment variable.
    #[must_use]
    pub fn variable(mut self, name: &str, value: &str) -> Launch {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Adds an argument.
    #[must_use]
    pub fn argument(mut self, argument: &str) -> Launch {
        self.arguments.push(argument.to_owned());
        self
    }

    /// The program.
    pub fn executable(&self) -> &Executable {
        &self.executable
    }

    /// Its arguments.
    pub fn arguments(&self) -> &[String] {
        &self.arguments
    }

    /// What it is to run on.
    pub fn runtime(&self) -> Runtime {
        self.runtime
    }

    /// Has the process lead a group of its own, as one that a shell has started for a user does: gdbserver interrupts a group.
    #[must_use]
    pub fn leading_group(mut self) -> Launch {
        self.leads_group = true;
        self
    }

    /// Has the process belong to this user, and to the group with the same number. Only the superuser can start it.
    #[must_use]
    pub fn of_user(mut self, user: Option<u32>) -> Launch {
        self.user = user;
        self
    }

    /// Runs the program in this directory, with cores of any size allowed.
    #[must_use]
    pub fn leaving_core_in(mut self, directory: &Path) -> Launch {
        self.core_directory = Some(directory.to_owned());
        self
    }

    /// The environment it runs in, as it differs from this process's: for somebody else who is to start it. `None` is a variable
    /// less.
    ///
    /// # Errors
    /// When the runtime is not here.
    pub fn environment(&self) -> Result<Vec<(OsString, Option<OsString>)>> {
        let command = self.command()?;
        Ok(command.get_envs().map(|(name, value)| (name.to_owned(), value.map(OsStr::to_owned))).collect())
    }

    fn command(&self) -> Result<Command> {
        let mut command = Command::new(&self.executable.path);
        for (name, _) in std::env::vars_os() {
            let text = name.to_string_lossy();
            if ["OMP_", "GOMP_", "KMP_", "OMPD_", "LD_", "PYTHON"].iter().any(|prefix| text.starts_with(prefix)) {
                command.env_remove(&name);
            }
        }
        self.runtime.apply(self.executable.toolchain, &mut command)?;
        if self.runtime.is_kmp() {
            command.env(TRUTH_SPINS, "1");
        }
        command.envs(self.env.variables().iter().copied());
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command.args(&self.arguments);
        Ok(command)
    }

    /// Starts the program and waits for nothing.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn spawn(&self) -> Result<Process> {
        let stderr = tempfile::tempfile().context("making a file for standard error")?;
        let mut command = self.command()?;
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(stderr.try_clone()?);
        if let Some(directory) = &self.core_directory {
            command.current_dir(directory);
        }
        if self.leads_group {
            command.process_group(0);
        }
        if let Some(user) = self.user {
            command.uid(user).gid(user);
        }
        let leaves_core = self.core_directory.is_some();
        let prepare = move || {
            // The alarm outlives execve (alarm(2)).
            alarm::set(BACKSTOP_SECONDS);
            if leaves_core {
                setrlimit(Resource::RLIMIT_CORE, RLIM_INFINITY, RLIM_INFINITY)?;
            }
            Ok(())
        };
        // SAFETY: between fork and exec the closure only makes the system calls alarm and setrlimit. It does not allocate, take a
        // lock or touch memory of the parent.
        unsafe { command.pre_exec(prepare) };
        let mut child = command.spawn().with_context(|| format!("starting {}", self.executable.path.display()))?;
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
        Ok(Process {
            stdin: stdin.context("no pipe to standard input")?,
            stdout: BufReader::new(stdout.context("no pipe from standard output")?),
            child,
            stderr,
        })
    }
}
