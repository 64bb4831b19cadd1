//! Runs gdb and LLDB with the plugin.

use std::fs::File;
use std::io::{BufRead as _, BufReader, PipeReader, PipeWriter, Read as _, Seek as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

use anyhow::{Context as _, Result, bail, ensure};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use test_programs::{Launch, Running, Skip, Truth, await_all_blocked, await_asleep};

pub mod dap;
pub mod lldb;
pub mod mi;
mod situation;
mod steps;

pub use situation::{Release, SITUATIONS, Situation, releases, started};
pub use steps::Steps;

/// Arguments of a program that writes what it says of itself to the pipe of [`Gdb::launched`].
pub const TO_PIPE: &str = ">&3";

/// What stands before the output of each command.
const MARK: &str = "@@@ command";

/// A gdb to be started.
#[derive(Debug)]
pub struct Gdb {
    command: Command,
    /// Options of its command line, before the plugin is loaded.
    before: Vec<String>,
}

/// A gdb of this machine.
#[derive(Debug, Clone)]
pub struct GdbRelease {
    /// What runs it.
    pub command: PathBuf,
    /// 13 for 13.1.
    pub version: u32,
}

/// The gdb of this machine, and those that `ci/fetch gdb` gets, the oldest last; says on standard error why others are missing.
pub fn gdbs() -> Vec<GdbRelease> {
    let runtimes = Path::new(env!("CARGO_MANIFEST_DIR")).join("../test-programs/runtimes");
    let mut found = Vec::new();
    let others = ["gdb-trixie/gdb", "gdb-sid/gdb", "gdb-bullseye/gdb"].map(|name| runtimes.join(name));
    for command in std::iter::once(PathBuf::from("gdb")).chain(others) {
        match version_of(&command) {
            Ok(version) => found.push(GdbRelease { command, version }),
            Err(why) => Skip::because(format!("{why}; \"ci/fetch gdb\" gets others")).show(),
        }
    }
    found
}

/// The newest gdb of this machine, if it has at least this version.
///
/// # Errors
/// The reason why there is none.
pub fn newest(version: u32) -> Result<GdbRelease, Skip> {
    let newest = gdbs().into_iter().max_by_key(|release| release.version);
    match newest {
        Some(release) if release.version >= version => Ok(release),
        Some(release) => Err(Skip::because(format!("gdb {version} is wanted; the newest here is {}", release.version))),
        None => Err(Skip::because("there is no gdb here")),
    }
}

fn version_of(command: &Path) -> Result<u32, String> {
    let done = Command::new(command).args(["-nx", "-batch", "-ex", "python print(gdb.VERSION)"]).output();
    let done = done.map_err(|why| format!("{} cannot be run: {why}", command.display()))?;
    let text = String::from_utf8_lossy(&done.stdout).into_owned();
    let digits = text.split(|c: char| !c.is_ascii_digit()).find(|part| !part.is_empty());
    let version = digits.and_then(|digits| digits.parse().ok());
    version.ok_or_else(|| format!("{} says {text:?} of its version", command.display()))
}

/// The plugin as it lies in the source tree.
pub fn plugin() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("gdb/openmp.py")
}

/// Whether there is a gdbserver.
///
/// # Errors
/// The reason why there is none.
pub fn has_server() -> Result<(), Skip> {
    match Command::new("gdbserver").arg("--version").output() {
        Ok(done) if done.status.success() => Ok(()),
        Ok(done) => Err(Skip::because(format!("gdbserver ends with {}; ci/setup gets it", done.status))),
        Err(why) => Err(Skip::because(format!("gdbserver cannot be run: {why}; ci/setup gets it"))),
    }
}

/// Whether there is a gdb that can run the plugin.
///
/// # Errors
/// The reason why there is none.
pub fn available() -> Result<(), Skip> {
    let mut command = Command::new("gdb");
    command.args(["-nx", "-batch", "-ex", "python print(gdb.VERSION)"]);
    match command.output() {
        Ok(done) if done.status.success() && !done.stdout.is_empty() => Ok(()),
        Ok(_) => Err(Skip::because("gdb was built without Python")),
        Err(why) => Err(Skip::because(format!("gdb cannot be run: {why}"))),
    }
}

impl Gdb {
    /// Without a target, and without the plugin.
    pub fn bare() -> Gdb {
        let mut command = Command::new("gdb");
        command.args(["-nx", "-batch", "-ex", "set pagination off", "-ex", "set width 0"]).stdin(Stdio::null());
        Gdb { command, before: Vec::new() }
    }

    /// The same by another gdb.
    #[must_use]
    pub fn by(self, release: &GdbRelease) -> Gdb {
        let mut command = Command::new(&release.command);
        command.args(self.command.get_args()).stdin(Stdio::null());
        for (name, value) in self.command.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        Gdb { command, before: self.before }
    }

    /// Without the plugin, and without a target. After so many seconds it is ended.
    pub fn limited(seconds: u32) -> Gdb {
        let mut command = Command::new("timeout");
        // By a signal that cannot be caught: gdb may be beyond hearing others. What gdb has started goes with it.
        command.args(["--signal=KILL", "--foreground", &seconds.to_string(), "gdb"]);
        command.args(["-nx", "-batch", "-ex", "set pagination off", "-ex", "set width 0"]).stdin(Stdio::null());
        Gdb { command, before: Vec::new() }
    }

    /// An argument more of its command line.
    #[must_use]
    pub fn argument(mut self, argument: impl AsRef<std::ffi::OsStr>) -> Gdb {
        self.command.arg(argument);
        self
    }

    /// Without a target. `library` is the directory with `libompd.so`.
    pub fn new(library: &Path) -> Gdb {
        Gdb::bare()
            .first(format!("source {}", plugin().display()))
            .first(format!("set openmp library {}", library.join("libompd.so").display()))
    }

    /// With a program that is not started yet.
    #[must_use]
    pub fn on(mut self, program: &Path) -> Gdb {
        self.command.arg(program);
        self
    }

    /// Attached to a process.
    pub fn attached(library: &Path, running: &Running) -> Gdb {
        Gdb::process(library, running.pid.unsigned_abs(), false)
    }

    /// Attached to a process by its id; `remote`: connected by a pipe to a gdbserver that is.
    pub fn process(library: &Path, pid: u32, remote: bool) -> Gdb {
        let mut gdb = Gdb::new(library);
        if remote {
            // A shell that stays around it would be what gdb ends in its place.
            gdb.before.push(format!("target remote | exec gdbserver --once --attach - {pid}"));
        } else {
            gdb.command.args(["-p", &pid.to_string()]);
        }
        gdb
    }

    /// On a core file.
    pub fn core(library: &Path, program: &Path, core: &Path) -> Gdb {
        let mut gdb = Gdb::new(library);
        gdb.command.arg(program).arg(core);
        gdb
    }

    /// With a program that is not started yet.
    pub fn program(library: &Path, program: &Path) -> Gdb {
        Gdb::new(library).on(program)
    }

    /// Connected by a pipe to a gdbserver that is attached to a process.
    pub fn remote(library: &Path, running: &Running) -> Gdb {
        Gdb::process(library, running.pid.unsigned_abs(), true)
    }

    /// One more environment variable, or one less, of gdb and the program it starts.
    #[must_use]
    pub fn variable(mut self, name: impl AsRef<std::ffi::OsStr>, value: Option<impl AsRef<std::ffi::OsStr>>) -> Gdb {
        match value {
            Some(value) => self.command.env(name, value),
            None => self.command.env_remove(name),
        };
        self
    }

    /// A command before all others.
    #[must_use]
    pub fn first(mut self, command: impl Into<String>) -> Gdb {
        self.before.push(command.into());
        self
    }

    /// Runs the commands, one after another, and gives what each has printed, errors included.
    ///
    /// # Errors
    /// If gdb does not end by itself, with status 0, or if a Python exception shows.
    pub fn run<S: AsRef<str>>(self, commands: &[S]) -> Result<Vec<String>> {
        self.start(commands)?.finish()
    }

    /// Has gdb start to run the commands.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn start<S: AsRef<str>>(mut self, commands: &[S]) -> Result<Started> {
        // One file for both streams, so that what belongs together stays together.
        let output = tempfile::tempfile().context("a file for what gdb prints")?;
        self.command.stdout(output.try_clone()?).stderr(output.try_clone()?);
        self.spawn(commands, output)
    }

    fn spawn<S: AsRef<str>>(mut self, commands: &[S], output: File) -> Result<Started> {
        for line in &self.before {
            self.command.arg("-ex").arg(line);
        }
        for line in commands {
            self.command.arg("-ex").arg(format!("echo \\n{MARK}\\n")).arg("-ex").arg(line.as_ref());
        }
        // The status of the last command counts; an echo has none to complain of.
        self.command.arg("-ex").arg(format!("echo \\n{MARK}\\n"));
        let child = self.command.spawn().context("running gdb")?;
        Ok(Started { child, output, commands: commands.len() })
    }

    /// Has gdb start a program, and waits until it is ready before the first command. By then it has told the truth, and its
    /// threads are in the waits that it named. It then gets `SIGINT`, which gives control back to gdb.
    ///
    /// # Errors
    /// If it cannot be started, or does not tell the truth.
    pub fn launch<S: AsRef<str>>(library: &Path, launch: &Launch, commands: &[S]) -> Result<Launched> {
        let mut gdb = Gdb::new(library).on(&launch.executable().path);
        for (name, value) in launch.environment()? {
            gdb = gdb.variable(name, value);
        }
        gdb.before.push(format!("set args {TO_PIPE}"));
        gdb.first("run").launched(launch, commands)
    }

    /// As [`launch`](Gdb::launch), of a gdb whose first commands let the program run, with [`TO_PIPE`] as its arguments.
    ///
    /// # Errors
    /// If the program cannot be started, or does not tell the truth.
    pub fn launched<S: AsRef<str>>(self, launch: &Launch, commands: &[S]) -> Result<Launched> {
        let (stdin, stdin_writer) = std::io::pipe().context("a pipe")?;
        let (stdout_reader, stdout) = std::io::pipe().context("a pipe")?;
        let output = tempfile::tempfile().context("a file for what gdb prints")?;
        let mut gdb = self;
        // The program is to write to a pipe of its own. What gdb has open when it starts it leaves to the program.
        let mut shell = Command::new("sh");
        shell.args(["-c", "exec \"$0\" \"$@\" 3>&1 1>&2"]).arg(gdb.command.get_program()).args(gdb.command.get_args());
        shell.stdin(stdin).stdout(stdout).stderr(output.try_clone()?);
        for (name, value) in gdb.command.get_envs() {
            match value {
                Some(value) => shell.env(name, value),
                None => shell.env_remove(name),
            };
        }
        gdb.command = shell;
        let mut started = gdb.spawn(commands, output)?;
        let mut stdout = BufReader::new(stdout_reader);
        let truth = match Truth::read(&mut (&mut stdout).lines()) {
            Ok(truth) => truth,
            Err(why) => {
                drop(stdin_writer);
                started.child.wait().context("waiting for gdb")?;
                return Err(why.context(contents(&mut started.output)?));
            }
        };
        let pid = truth.program.pid;
        if truth.expectation.is_some() {
            await_all_blocked(pid, truth.threads.len(), launch.runtime().is_kmp())?;
        } else {
            await_asleep(pid, truth.coordinator)?;
        }
        kill(Pid::from_raw(pid), Signal::SIGINT).context("stopping the program")?;
        Ok(Launched { started, truth, _stdin: stdin_writer, _stdout: stdout })
    }

    /// Runs one command that prints JSON.
    ///
    /// # Errors
    /// As for [`run`](Gdb::run), and if it is no JSON.
    pub fn json(self, command: &str) -> Result<Value> {
        let mut printed = self.run(&[command])?;
        let Some(text) = printed.pop() else { bail!("nothing was printed") };
        // gdb complains of cores of programs with large registers.
        let text: Vec<&str> = text.lines().filter(|line| !line.starts_with("warning: Section `.reg-xstate")).collect();
        serde_json::from_str(&text.join("\n")).with_context(|| format!("JSON is wanted: {text:?}"))
    }
}

/// A gdb that runs commands. It is killed when this is dropped.
#[derive(Debug)]
pub struct Started {
    child: Child,
    output: File,
    commands: usize,
}

impl Started {
    /// Waits for its end, and gives what each command has printed.
    ///
    /// # Errors
    /// As for [`Gdb::run`].
    pub fn finish(self) -> Result<Vec<String>> {
        let commands = self.commands;
        let (status, text) = self.printed()?;
        ensure!(status.success(), "gdb ended with {status}:\n{text}");
        for wrong in
            ["Traceback", "The plugin has failed", "Python Exception", "Error occurred in Python", "internal-error"]
        {
            ensure!(!text.contains(wrong), "{wrong}:\n{text}");
        }
        let parts = parts(&text);
        // The mark behind the last one makes one part more.
        ensure!(parts.len() == commands + 1, "not all commands were executed:\n{text}");
        Ok(parts.into_iter().take(commands).collect())
    }

    /// Waits for its end, whatever that is, and gives all it has printed.
    ///
    /// # Errors
    /// If it cannot be waited for.
    pub fn printed(mut self) -> Result<(ExitStatus, String)> {
        let status = self.child.wait().context("waiting for gdb")?;
        Ok((status, contents(&mut self.output)?))
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        // Both fail only when it was reaped already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A gdb that has started a program, which has told the truth.
#[derive(Debug)]
pub struct Launched {
    started: Started,
    /// What the program said about itself.
    pub truth: Truth,
    _stdin: PipeWriter,
    _stdout: BufReader<PipeReader>,
}

impl Launched {
    /// As [`Started::printed`], after which the program is gone.
    ///
    /// # Errors
    /// If gdb cannot be waited for.
    pub fn printed(self) -> Result<String> {
        Ok(self.started.printed()?.1)
    }

    /// As [`Started::finish`], after which the program is gone.
    ///
    /// # Errors
    /// As for [`Gdb::run`].
    pub fn finish(self) -> Result<Vec<String>> {
        self.started.finish()
    }
}

/// What each command has printed, of all that was printed; of the last one that was executed, and what is behind it, too.
pub fn parts(text: &str) -> Vec<String> {
    text.split(&format!("\n{MARK}\n")).skip(1).map(|part| part.trim_matches('\n').to_owned()).collect()
}

fn contents(file: &mut File) -> Result<String> {
    let mut bytes = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
