//! Runs gdb with the plugin.

use std::fs::File;
use std::io::{Read as _, Seek as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;
use test_programs::{Running, Skip};

/// What stands before the output of each command.
const MARK: &str = "@@@ command";

/// A gdb to be started.
#[derive(Debug)]
pub struct Gdb {
    command: Command,
    /// Options of its command line, before the plugin is loaded.
    before: Vec<String>,
}

/// The plugin as it lies in the source tree.
pub fn plugin() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("gdb/openmp.py")
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
        let mut gdb = Gdb::new(library);
        gdb.command.args(["-p", &running.pid.to_string()]);
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
    pub fn run<S: AsRef<str>>(mut self, commands: &[S]) -> Result<Vec<String>> {
        // One file for both streams, so that what belongs together stays together.
        let mut output = tempfile::tempfile().context("a file for what gdb prints")?;
        for line in &self.before {
            self.command.arg("-ex").arg(line);
        }
        for line in commands {
            self.command.arg("-ex").arg(format!("echo \\n{MARK}\\n")).arg("-ex").arg(line.as_ref());
        }
        // The status of the last command counts; an echo has none to complain of.
        self.command.arg("-ex").arg(format!("echo \\n{MARK}\\n"));
        let status =
            self.command.stdout(output.try_clone()?).stderr(output.try_clone()?).status().context("running gdb")?;
        let text = contents(&mut output)?;
        ensure!(status.success(), "gdb ended with {status}:\n{text}");
        for wrong in ["Traceback", "Python Exception", "Error occurred in Python", "internal-error"] {
            ensure!(!text.contains(wrong), "{wrong}:\n{text}");
        }
        let parts: Vec<String> =
            text.split(&format!("\n{MARK}\n")).skip(1).map(|part| part.trim_matches('\n').to_owned()).collect();
        // The mark behind the last one makes one part more.
        ensure!(parts.len() == commands.len() + 1, "not all commands were executed:\n{text}");
        Ok(parts.into_iter().take(commands.len()).collect())
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

fn contents(file: &mut File) -> Result<String> {
    let mut bytes = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
