//! Interpreters of Python, and scripts that run in them.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::{Skip, running};

/// Where this crate is.
const HOME: &str = env!("CARGO_MANIFEST_DIR");

/// The CPythons of a minor version of Python 3 on this machine: that of `ci/fetch pythons`, that of the search path, and those of
/// pyenv.
///
/// # Errors
/// There is none.
pub fn interpreters(minor: u8) -> Result<Vec<PathBuf>, Skip> {
    let name = format!("python3.{minor}");
    let mut found = Vec::from([Path::new(HOME).join(format!("runtimes/python-3.{minor}/python"))]);
    let search = std::env::var_os("PATH").unwrap_or_default();
    // What pyenv puts there starts another one by what it is set to.
    let of_path = std::env::split_paths(&search).filter(|folder| !folder.ends_with("shims"));
    found.extend(of_path.map(|folder| folder.join(&name)).find(|path| path.is_file()));
    let pyenv = std::env::var_os("PYENV_ROOT").map(PathBuf::from);
    let pyenv = pyenv.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".pyenv")));
    let built = pyenv.and_then(|root| root.join("versions").read_dir().ok()).into_iter().flatten().flatten();
    found.extend(built.map(|entry| entry.path().join("bin").join(&name)));
    found.retain(|path| path.is_file());
    let mut seen = std::collections::BTreeSet::new();
    found.retain(|path| path.canonicalize().is_ok_and(|path| seen.insert(path)));
    if found.is_empty() {
        return Err(Skip::because(format!("no CPython 3.{minor} here; \"ci/fetch pythons\" gets some versions")));
    }
    Ok(found)
}

/// A tool to compare with, as `ci/fetch pythons` installs it.
///
/// # Errors
/// It is not there.
pub fn peer(name: &str) -> Result<PathBuf, Skip> {
    let path = Path::new(HOME).join("runtimes/python-peers/bin").join(name);
    if path.is_file() {
        return Ok(path);
    }
    Err(Skip::because(format!("no {name} here; \"ci/fetch pythons\" gets it")))
}

/// A process that executes a script of the folder `python`, and has said in a line of JSON what is true of it. Killed when dropped.
#[derive(Debug)]
pub struct Script {
    child: Child,
    stdin: Option<ChildStdin>,
    /// Kept open: it may still write.
    _stdout: BufReader<ChildStdout>,
    /// What it said.
    pub truth: Value,
    /// Its process id.
    pub pid: i32,
}

impl Script {
    /// Starts a script with the working directory `folder`, and reads its line.
    ///
    /// # Panics
    /// It does not start, or says something else.
    pub fn start(interpreter: &Path, name: &str, folder: &Path) -> Script {
        Script::start_with(interpreter, name, &[], folder)
    }

    /// The same with arguments.
    ///
    /// # Panics
    /// It does not start, or says something else.
    pub fn start_with(interpreter: &Path, name: &str, arguments: &[&Path], folder: &Path) -> Script {
        // Cores are as large as they get.
        let mut command = Command::new("sh");
        command.args(["-c", "ulimit -c unlimited; exec \"$@\"", "sh"]).arg(interpreter);
        for (name, _) in std::env::vars_os() {
            if ["OMP_", "GOMP_", "LD_", "PYTHON"].iter().any(|prefix| name.to_string_lossy().starts_with(prefix)) {
                command.env_remove(&name);
            }
        }
        command.arg(Path::new(HOME).join("python").join(name)).args(arguments).current_dir(folder);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("Python starts");
        let stdin = child.stdin.take();
        let mut stdout = BufReader::new(child.stdout.take().expect("a pipe from standard output"));
        let mut line = String::new();
        stdout.read_line(&mut line).expect("a line from Python");
        let truth: Value = serde_json::from_str(&line).unwrap_or_else(|e| panic!("{line:?} is no truth: {e}"));
        let pid = truth["pid"].as_i64().and_then(|pid| i32::try_from(pid).ok()).expect("a process id");
        Script { child, stdin, _stdout: stdout, truth, pid }
    }

    /// Has it end by itself.
    ///
    /// # Panics
    /// It does not end well.
    pub fn finish(mut self) {
        self.stdin = None;
        let status = self.child.wait().expect("Python ends");
        assert!(status.success(), "{status}");
    }

    /// Has it abort as it is, and gives the core that the kernel wrote to the working directory, which must be empty.
    ///
    /// # Errors
    /// The kernel here does not write cores to working directories.
    ///
    /// # Panics
    /// It does not abort.
    pub fn kernel_core(mut self, folder: &Path) -> Result<PathBuf, Skip> {
        running::kernel_writes_cores_here()?;
        kill(Pid::from_raw(self.pid), Signal::SIGABRT).expect("the process can be aborted");
        let status = self.child.wait().expect("Python ends");
        let core = folder.read_dir().expect("the folder").flatten().next();
        core.map(|core| core.path()).ok_or_else(|| Skip::because(format!("the kernel wrote no core ({status})")))
    }
}

impl Drop for Script {
    fn drop(&mut self) {
        // Both fail only when it was reaped already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
