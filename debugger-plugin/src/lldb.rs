//! Runs LLDB with the plugin.

use std::fs::File;
use std::io::{Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

use anyhow::{Context as _, Result, bail, ensure};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use test_programs::{Running, Skip};

/// After so many seconds an LLDB is ended that does not end by itself.
const LONGEST: u32 = 240;

/// LLDB asks a plugin for frames from this version on.
pub const FIRST_LLDB_WITH_PROVIDERS: u32 = 22;

/// An LLDB of this machine.
#[derive(Debug, Clone)]
pub struct LldbRelease {
    /// What runs it.
    pub command: PathBuf,
    /// The `lldb-server` that belongs to it, if it is here.
    pub server: Option<PathBuf>,
    /// The program that serves editors, if it is here.
    pub dap: Option<PathBuf>,
    /// 19 for 19.1.7.
    pub version: u32,
}

/// The LLDB of this machine, and those that `ci/fetch lldb` gets; says on standard error why others are missing.
pub fn lldbs() -> Vec<LldbRelease> {
    static FOUND: OnceLock<Vec<LldbRelease>> = OnceLock::new();
    let find = || {
        let runtimes = Path::new(env!("CARGO_MANIFEST_DIR")).join("../test-programs/runtimes");
        let commands = [PathBuf::from("lldb-19"), runtimes.join("lldb-14/lldb"), runtimes.join("lldb-22/lldb")];
        let mut found = Vec::new();
        for command in commands {
            match release(&command) {
                Ok(release) => found.push(release),
                Err(why) => Skip::because(format!("{why}; ci/setup and \"ci/fetch lldb\" get them")).show(),
            }
        }
        found
    };
    FOUND.get_or_init(find).clone()
}

fn release(command: &Path) -> Result<LldbRelease, String> {
    let done =
        Command::new(command).args(["-x", "-b", "-o", "script print(lldb.SBDebugger.GetVersionString())"]).output();
    let done = done.map_err(|why| format!("{} cannot be run: {why}", command.display()))?;
    let text = String::from_utf8_lossy(&done.stdout).into_owned();
    // The command itself is shown before.
    let version = text.lines().find_map(|line| line.strip_prefix("lldb version "));
    let version = version.and_then(|version| version.split('.').next()?.parse().ok());
    let Some(version) = version else {
        return Err(format!("{} has no Python: {text}{}", command.display(), String::from_utf8_lossy(&done.stderr)));
    };
    let beside = |name: &str| match command.parent().filter(|folder| folder.is_absolute()) {
        Some(folder) => folder.join(name),
        None => PathBuf::from(format!("{name}-{version}")),
    };
    let answers = |program: PathBuf, argument: &str| {
        let mut command = Command::new(&program);
        command.arg(argument).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|done| done.success()).then_some(program)
    };
    let (server, dap) = (answers(beside("lldb-server"), "version"), answers(beside("lldb-dap"), "--help"));
    Ok(LldbRelease { command: command.to_owned(), server, dap, version })
}

/// The plugin as it lies in the source tree.
pub fn plugin() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("lldb/openmp_lldb")
}

/// An LLDB to be started.
#[derive(Debug)]
pub struct Lldb {
    command: Command,
    /// Commands before those whose output is wanted.
    before: Vec<String>,
    /// The plugin is to fail.
    fails: bool,
}

impl Lldb {
    /// Without a target, and without the plugin.
    pub fn bare(release: &LldbRelease) -> Lldb {
        let mut command = Command::new("timeout");
        command.args(["--signal=KILL", "--foreground", &LONGEST.to_string()]);
        command.arg(&release.command).args(["-x", "-b"]).stdin(Stdio::null());
        command.env("PYTHONDONTWRITEBYTECODE", "1");
        Lldb { command, before: Vec::new(), fails: false }
    }

    /// Without a target. `library` is the directory with `libompd.so`.
    pub fn new(release: &LldbRelease, library: &Path) -> Lldb {
        Lldb::bare(release)
            .first(format!("command script import {}", plugin().display()))
            .first(format!("openmp settings set library {}", library.join("libompd.so").display()))
    }

    /// With a program that is not started yet.
    #[must_use]
    pub fn on(self, program: &Path) -> Lldb {
        self.first(format!("target create \"{}\"", program.display()))
    }

    /// Attached to a process.
    pub fn attached(release: &LldbRelease, library: &Path, running: &Running) -> Lldb {
        Lldb::new(release, library).first(format!("process attach --pid {}", running.pid))
    }

    /// On a core file.
    pub fn core(release: &LldbRelease, library: &Path, program: &Path, core: &Path) -> Lldb {
        let target = format!("target create \"{}\" --core \"{}\"", program.display(), core.display());
        Lldb::new(release, library).first(target)
    }

    /// Connected to a server that is attached to a process.
    pub fn remote(release: &LldbRelease, library: &Path, server: &Server) -> Lldb {
        Lldb::new(release, library).first(format!("gdb-remote 127.0.0.1:{}", server.port))
    }

    /// One more environment variable, or one less, of LLDB and the program it starts.
    #[must_use]
    pub fn variable(mut self, name: impl AsRef<std::ffi::OsStr>, value: Option<impl AsRef<std::ffi::OsStr>>) -> Lldb {
        match value {
            Some(value) => self.command.env(name, value),
            None => self.command.env_remove(name),
        };
        self
    }

    /// A command before those whose output is wanted.
    #[must_use]
    pub fn first(mut self, command: impl Into<String>) -> Lldb {
        self.before.push(command.into());
        self
    }

    /// The test has the plugin fail, which shows in what is printed.
    #[must_use]
    pub fn failing(mut self) -> Lldb {
        self.fails = true;
        self
    }

    /// Runs the commands, one after another, and gives what each has printed, errors included.
    ///
    /// # Errors
    /// If LLDB does not end by itself, or if a Python exception shows.
    pub fn run<S: AsRef<str>>(self, commands: &[S]) -> Result<Vec<String>> {
        self.start(commands)?.finish()
    }

    /// Has LLDB start to run the commands.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn start<S: AsRef<str>>(mut self, commands: &[S]) -> Result<Started> {
        let directory = tempfile::tempdir().context("a directory for commands")?;
        let file = directory.path().join("commands");
        let mut script = File::create(&file).context("a file for commands")?;
        let all = self.before.iter().map(String::as_str).chain(commands.iter().map(AsRef::as_ref));
        for line in all.clone() {
            writeln!(script, "{line}")?;
        }
        // One file for both streams, so that what belongs together stays together.
        let output = tempfile::tempfile().context("a file for what LLDB prints")?;
        // A command that fails ends a script, unless it is told not to.
        self.command.arg("-o").arg(format!("command source --stop-on-error false \"{}\"", file.display()));
        self.command.stdout(output.try_clone()?).stderr(output.try_clone()?);
        let process = Process(self.command.spawn().context("running LLDB")?);
        let all = all.map(str::to_owned).collect();
        Ok(Started { process, output, all, before: self.before.len(), fails: self.fails, _directory: directory })
    }

    /// Runs one command that prints JSON.
    ///
    /// # Errors
    /// As for [`run`](Lldb::run), and if it is no JSON.
    pub fn json(self, command: &str) -> Result<Value> {
        let mut printed = self.run(&[command])?;
        let Some(text) = printed.pop() else { bail!("nothing was printed") };
        serde_json::from_str(&text).with_context(|| format!("JSON is wanted: {text:?}"))
    }
}

/// An LLDB that runs commands. It is killed when this is dropped.
#[derive(Debug)]
pub struct Started {
    process: Process,
    output: File,
    /// All commands, and how many of them are those before.
    all: Vec<String>,
    before: usize,
    fails: bool,
    _directory: tempfile::TempDir,
}

impl Started {
    /// Interrupts LLDB, as Ctrl-C does.
    ///
    /// # Errors
    /// If it is gone.
    pub fn interrupt(&self) -> Result<()> {
        // What limits its time gives it the signal.
        kill(Pid::from_raw(i32::try_from(self.process.0.id())?), Signal::SIGINT).context("interrupting LLDB")
    }

    /// Waits for its end, and gives what each command has printed.
    ///
    /// # Errors
    /// As for [`Lldb::run`].
    pub fn finish(mut self) -> Result<Vec<String>> {
        let status = self.process.0.wait().context("waiting for LLDB")?;
        let mut bytes = Vec::new();
        self.output.rewind()?;
        self.output.read_to_end(&mut bytes)?;
        let text = String::from_utf8_lossy(&bytes).into_owned();
        ensure!(status.success(), "LLDB ended with {status}:\n{text}");
        for wrong in ["Traceback", "The plugin has failed", "PLEASE submit a bug report"] {
            ensure!(self.fails || !text.contains(wrong), "{wrong}:\n{text}");
        }
        parts(&text, &self.all, self.before).with_context(|| text.clone())
    }
}

/// What each command has printed but for the first ones: LLDB shows a command before it runs it.
fn parts(text: &str, all: &[String], before: usize) -> Result<Vec<String>> {
    let mut rest = text.split_once("Executing commands in").context("the script is not executed")?.1;
    let mut found = Vec::new();
    for command in all {
        let (printed, behind) = rest.split_once(&format!("(lldb) {command}\n")).with_context(|| command.clone())?;
        found.push(printed.trim_matches('\n').to_owned());
        rest = behind;
    }
    found.push(rest.trim_matches('\n').to_owned());
    Ok(found.split_off(before + 1))
}

/// A child that is killed when this is dropped.
#[derive(Debug)]
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        // Both fail only when it was reaped already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// An `lldb-server` that is attached to a process.
#[derive(Debug)]
pub struct Server {
    /// Where it can be connected to, on this machine.
    pub port: u16,
    _process: Process,
}

impl Server {
    /// Has the server of a release attach to a process, and waits until it can be connected to.
    ///
    /// # Errors
    /// If the release has no server, or if the server does not attach.
    pub fn attached(release: &LldbRelease, pid: i32) -> Result<Result<Server, Skip>> {
        let Some(server) = &release.server else {
            return Ok(Err(Skip::because(format!("LLDB {} has no lldb-server here", release.version))));
        };
        let (mut reader, writer) = std::io::pipe().context("a pipe")?;
        // The server writes the number of the port that it has got, and a zero.
        let mut shell = Command::new("sh");
        shell.args(["-c", "exec \"$0\" \"$@\" 3>&0 0</dev/null"]).arg(server);
        shell.args(["gdbserver", "--pipe", "3", "--attach", &pid.to_string(), "127.0.0.1:0"]);
        shell.stdin(writer).stdout(Stdio::null()).stderr(Stdio::null());
        let process = Process(shell.spawn().context("running lldb-server")?);
        drop(shell);
        let mut port = Vec::new();
        let mut byte = [0];
        while reader.read(&mut byte).context("the port of lldb-server")? == 1 && byte[0].is_ascii_digit() {
            port.push(byte[0]);
        }
        let port = String::from_utf8(port)?.parse().context("lldb-server names no port")?;
        Ok(Ok(Server { port, _process: process }))
    }
}
