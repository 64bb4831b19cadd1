//! Programs that run, and the cores they leave.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::FileExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command};

use anyhow::{Context, Result, bail, ensure};
use nix::sys::resource::{RLIM_INFINITY, Resource, getrlimit};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde::Deserialize;

use crate::launch::{Process, TRUTH_SPINS};
use crate::observe::{await_blocked, parent_of};
use crate::truth::{ProgramFacts, Truth};
use crate::{Env, Executable, Launch, Runtime, Skip, await_all_blocked, await_asleep, remove_registration};

/// A program that holds the state it told the truth about. When this value is dropped, the process is killed and reaped.
#[derive(Debug)]
pub struct Running {
    /// The id of the process to be inspected: the one started, or the child of it that told the truth.
    pub pid: i32,
    /// What it said about itself.
    pub truth: Truth,
    /// What was started.
    pub executable: Executable,
    /// What it runs on.
    pub runtime: Runtime,
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    stderr: File,
}

/// A program that ran to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Finished {
    /// How many threads and tasks got past their wait; see [`Truth::steps`].
    pub progress: usize,
}

/// A program that crashed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Crashed {
    /// The core the kernel wrote.
    pub core: PathBuf,
    /// What the program said about itself right before.
    pub truth: Truth,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DoneLine {
    done: bool,
    progress: usize,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RoundLine {
    round: u32,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CountsLine {
    counts: Vec<u64>,
}

impl Launch {
    /// Starts the program and waits until it is ready.
    ///
    /// # Errors
    /// When it cannot be started, or ends before it is ready.
    pub fn start(&self) -> Result<Running> {
        let mut running = self.unready()?;
        match Truth::read(&mut (&mut running.stdout).lines()) {
            Ok(truth) => running.truth = truth,
            Err(error) => return Err(running.with_stderr(error)),
        }
        ensure!(running.truth.program.pid == running.pid, "the program says it is another process");
        // The coordinator said "ready" before it went to sleep in read.
        await_asleep(running.pid, running.truth.coordinator)?;
        Ok(running)
    }

    /// Starts a program of [`HANGS`](crate::HANGS) and waits until it hangs: all its threads are in the waits they told
    /// of, none for a moment only. The process that hangs may be a child of the one that is started, which ends it.
    ///
    /// # Errors
    /// When it cannot be started, ends, or does not come to rest.
    pub fn start_hanging(&self) -> Result<Running> {
        let running = self.start_expecting()?;
        let truth = &running.truth;
        // On any runtime where the program was told so.
        let spins = self.runtime.is_kmp() || self.variables.iter().any(|(name, _)| name == TRUTH_SPINS);
        await_blocked(running.pid, truth.threads.len(), |lwp| {
            truth.thread(lwp).is_some_and(|thread| thread.wait.may_spin(spins))
        })?;
        Ok(running)
    }

    /// Starts a program of [`HEALTHY`](crate::HEALTHY) and waits until it is ready, and those threads asleep that it
    /// told of; the others go on.
    ///
    /// # Errors
    /// When it cannot be started, or ends before it is ready.
    pub fn start_healthy(&self) -> Result<Running> {
        let running = self.start_expecting()?;
        for thread in &running.truth.threads {
            await_asleep(running.pid, thread.lwp)?;
        }
        Ok(running)
    }

    fn start_expecting(&self) -> Result<Running> {
        let mut running = self.unready()?;
        match Truth::read(&mut (&mut running.stdout).lines()) {
            Ok(truth) => running.truth = truth,
            Err(error) => return Err(running.with_stderr(error)),
        }
        let (started, told) = (running.pid, running.truth.program.pid);
        ensure!(told == started || parent_of(told)? == started, "the program says it is another process");
        ensure!(running.truth.expectation.is_some(), "the program does not say what is to be expected");
        running.pid = told;
        Ok(running)
    }

    /// Starts the program `hang` and waits until it hangs: it does not tell the truth, but all its four threads block. The kernel's ids
    /// of the threads ascend in the order in which they began, which is the order in which debuggers number them.
    ///
    /// # Errors
    /// When it cannot be started, or ends.
    pub fn start_hang(&self) -> Result<Running> {
        loop {
            let running = self.start_hang_once()?;
            // The kernel begins anew with small ids when it has come to the largest.
            if thread_ids(running.pid)?.iter().all(|&lwp| lwp >= running.pid) {
                return Ok(running);
            }
        }
    }

    fn start_hang_once(&self) -> Result<Running> {
        let mut running = self.unready()?;
        let mut line = String::new();
        running.stdout.read_line(&mut line)?;
        if line.trim_end() != format!("relax: pid {}", running.pid) {
            let error = anyhow::anyhow!("the program began with {line:?}");
            return Err(running.with_stderr(error));
        }
        await_all_blocked(running.pid, 4, self.runtime.is_kmp())?;
        Ok(running)
    }

    fn unready(&self) -> Result<Running> {
        let Process { child, stdin, stdout, stderr } = self.spawn()?;
        let pid = i32::try_from(child.id())?;
        let program = ProgramFacts { name: self.executable.program.clone(), pid, openmp: 0 };
        let truth = Truth {
            program,
            threads: Vec::new(),
            locks: Vec::new(),
            tasks: Vec::new(),
            coordinator: pid,
            expectation: None,
            gone: Vec::new(),
            objects: Vec::new(),
            stacks: Vec::new(),
            stack_tasks: Vec::new(),
        };
        let (executable, runtime) = (self.executable.clone(), self.runtime);
        Ok(Running { pid, truth, executable, runtime, child, stdin: Some(stdin), stdout, stderr })
    }
}

/// The kernel's ids of a process's threads.
fn thread_ids(pid: i32) -> Result<Vec<i32>> {
    let entries = fs::read_dir(format!("/proc/{pid}/task"))?;
    entries.map(|entry| Ok(entry?.file_name().to_string_lossy().parse()?)).collect()
}

/// A core of a process as gdb's `gcore` writes it; the process goes on.
///
/// # Errors
/// When `gcore` fails; the inner error when this machine does not have it.
pub fn gcore(pid: i32, directory: &Path) -> Result<Result<PathBuf, Skip>> {
    let mut command = Command::new("gcore");
    // Without this gdb may ask the network for debug files.
    command.env_remove("DEBUGINFOD_URLS").arg("-o").arg(directory.join("core")).arg(pid.to_string());
    let output = match command.output() {
        Ok(output) => output,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Ok(Err(Skip::because("gcore, a part of gdb, is not here")));
        }
        Err(error) => return Err(error).context("running gcore"),
    };
    let core = directory.join(format!("core.{pid}"));
    if !output.status.success() || !core.is_file() {
        bail!("gcore made no core:\n{}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(Ok(core))
}

impl Running {
    /// Starts a program and waits until it is ready; [`Launch`] for more choices.
    ///
    /// # Errors
    /// As [`Launch::start`].
    pub fn start(executable: &Executable, runtime: Runtime, env: Env) -> Result<Running> {
        Launch::new(executable, runtime, env).start()
    }

    /// Takes the program `phases` to its next phase; false after the last.
    ///
    /// # Errors
    /// When it does not get there.
    pub fn next_phase(&mut self) -> Result<bool> {
        self.say(b"\n")?;
        let mut lines = Vec::new();
        for line in (&mut self.stdout).lines() {
            let line = line?;
            if serde_json::from_str::<DoneLine>(&line).is_ok_and(|last| last.done) {
                return Ok(false);
            }
            let last = line.contains("\"ready\"");
            lines.push(Ok(line));
            if last {
                self.truth = Truth::read(&mut lines.into_iter())?;
                await_asleep(self.pid, self.truth.coordinator)?;
                return Ok(true);
            }
        }
        Err(self.with_stderr(anyhow::anyhow!("the program ended between two phases")))
    }

    /// Lets the program go on to its end.
    ///
    /// # Errors
    /// When it does not end well: with status 0 and a line that counts its progress.
    pub fn release(mut self) -> Result<Finished> {
        if let Err(error) = self.say(b"\n") {
            return Err(self.with_stderr(error));
        }
        self.stdin = None;
        let mut rest = String::new();
        self.stdout.read_to_string(&mut rest)?;
        let status = self.child.wait()?;
        if !status.success() {
            return Err(self.with_stderr(anyhow::anyhow!("the program ended with {status}")));
        }
        let line = rest.lines().last().context("the program ended without a last line")?;
        let last: DoneLine = serde_json::from_str(line).with_context(|| format!("no last line: {line}"))?;
        ensure!(last.done, "the program says it is not done");
        Ok(Finished { progress: last.progress })
    }

    /// The counts of the threads of the program `progress`, by thread number; its first thread does not count.
    ///
    /// # Errors
    /// When the program does not answer.
    pub fn counts(&mut self) -> Result<Vec<u64>> {
        self.say(b"?")?;
        let mut line = String::new();
        self.stdout.read_line(&mut line)?;
        let answer: CountsLine = serde_json::from_str(&line).with_context(|| format!("no counts: {line:?}"))?;
        Ok(answer.counts)
    }

    /// Asks the program `progress` for its counts until every counting thread has gone on since `before`.
    ///
    /// # Errors
    /// When the program does not answer.
    pub fn await_progress(&mut self, before: &[u64]) -> Result<Vec<u64>> {
        loop {
            let now = self.counts()?;
            ensure!(now.len() == before.len(), "{} counts became {}", before.len(), now.len());
            if now.iter().zip(before).skip(1).all(|(now, before)| now > before) {
                return Ok(now);
            }
        }
    }

    /// Waits until a program of [`HEALTHY`](crate::HEALTHY) says that it has done this round; it tells of the second to
    /// the fifth.
    ///
    /// # Errors
    /// When it ends before.
    pub fn await_round(&mut self, round: u32) -> Result<()> {
        loop {
            let mut line = String::new();
            if self.stdout.read_line(&mut line)? == 0 {
                let error = anyhow::anyhow!("the program ended before round {round}");
                return Err(self.with_stderr(error));
            }
            let told: RoundLine = serde_json::from_str(&line).with_context(|| format!("no round: {line:?}"))?;
            if told.round >= round {
                return Ok(());
            }
        }
    }

    /// A core of the process as gdb's `gcore` writes it; the process goes on.
    ///
    /// # Errors
    /// When `gcore` fails; the inner error when this machine does not have it.
    pub fn gcore(&self, directory: &Path) -> Result<Result<PathBuf, Skip>> {
        gcore(self.pid, directory)
    }

    /// Has the process abort as it is, and returns the core that the kernel wrote to `directory`. The directory must be empty,
    /// and the process must run in it ([`Launch::leaving_core_in`]).
    ///
    /// # Errors
    /// When it does not abort; the inner error when the kernel here does not write cores to the working directory.
    pub fn kernel_core(&mut self, directory: &Path) -> Result<Result<PathBuf, Skip>> {
        self.kernel_core_by(Signal::SIGABRT, directory)
    }

    /// As [`Running::kernel_core`], by another signal: `SIGQUIT` is what a user at a terminal sends to a program that hangs.
    ///
    /// # Errors
    /// As [`Running::kernel_core`].
    pub fn kernel_core_by(&mut self, signal: Signal, directory: &Path) -> Result<Result<PathBuf, Skip>> {
        if let Err(skip) = kernel_writes_cores_here() {
            return Ok(Err(skip));
        }
        kill(Pid::from_raw(self.pid), signal).context("ending the program")?;
        self.ended_by(signal, directory)
    }

    fn ended_by(&mut self, signal: Signal, directory: &Path) -> Result<Result<PathBuf, Skip>> {
        let status = self.child.wait()?;
        if status.signal() != Some(signal as i32) {
            let error = anyhow::anyhow!("the program should have ended by {signal} and ended with {status}");
            return Err(self.with_stderr(error));
        }
        if !status.core_dumped() {
            return Ok(Err(Skip::because("the kernel wrote no core of a program that aborted")));
        }
        let files: Vec<_> = fs::read_dir(directory)?.collect::<Result<_, _>>()?;
        match files.as_slice() {
            [core] => Ok(Ok(core.path())),
            other => bail!("{} files where one core should be", other.len()),
        }
    }

    /// Writes to the standard input of the program.
    ///
    /// # Errors
    /// When it does not read any more.
    pub fn say(&mut self, bytes: &[u8]) -> Result<()> {
        let stdin = self.stdin.as_mut().context("standard input is closed")?;
        stdin.write_all(bytes).context("writing to the program")
    }

    /// What the program has written to standard error up to now.
    ///
    /// # Errors
    /// It cannot be read, or is no text.
    pub fn said(&self) -> Result<String> {
        let mut text = vec![0; usize::try_from(self.stderr.metadata()?.len())?];
        self.stderr.read_exact_at(&mut text, 0)?;
        Ok(String::from_utf8(text)?)
    }

    /// The error, with what the program had to say about it.
    fn with_stderr(&mut self, error: anyhow::Error) -> anyhow::Error {
        let mut text = String::new();
        let read = self.stderr.seek(SeekFrom::Start(0)).and_then(|_| self.stderr.read_to_string(&mut text));
        match read {
            Ok(_) if text.is_empty() => error,
            Ok(_) => error.context(format!("{} wrote to standard error: {text}", self.executable.program)),
            Err(_) => error,
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Both fail only when the process was reaped already.
        let _ = self.child.kill();
        let _ = self.child.wait();
        remove_registration(self.pid);
        remove_registration(self.child.id());
    }
}

/// Starts the program `crash`, lets it abort, and gives the core the kernel wrote to `directory`, which must be empty.
///
/// # Errors
/// When the program does not crash as it should; the inner error when the kernel here does not write cores to the
/// working directory.
pub fn crash_core(executable: &Executable, runtime: Runtime, env: Env, dir: &Path) -> Result<Result<Crashed, Skip>> {
    crash_core_of(Launch::new(executable, runtime, env), dir)
}

/// The same for more choices.
///
/// # Errors
/// As [`crash_core`].
pub fn crash_core_of(launch: Launch, dir: &Path) -> Result<Result<Crashed, Skip>> {
    if let Err(skip) = kernel_writes_cores_here() {
        return Ok(Err(skip));
    }
    let mut running = launch.leaving_core_in(dir).start()?;
    running.say(b"\n")?;
    Ok(running.ended_by(Signal::SIGABRT, dir)?.map(|core| Crashed { core, truth: running.truth.clone() }))
}

/// Do cores of our children land in their working directory? See core(5).
pub(crate) fn kernel_writes_cores_here() -> Result<(), Skip> {
    let file = "/proc/sys/kernel/core_pattern";
    let pattern = fs::read_to_string(file).map_err(|error| Skip::because(format!("{file}: {error}")))?;
    let pattern = pattern.trim_end();
    if pattern.is_empty() || pattern.starts_with(['|', '@']) || pattern.contains('/') {
        return Err(Skip::because(format!("the kernel sends cores elsewhere (core_pattern is {pattern:?})")));
    }
    let limit = getrlimit(Resource::RLIMIT_CORE);
    let (_, hard) = limit.map_err(|error| Skip::because(format!("the limit of core sizes: {error}")))?;
    if hard != RLIM_INFINITY && !nix::unistd::geteuid().is_root() {
        return Err(Skip::because(format!("cores are limited to {hard} bytes and only root may raise that")));
    }
    Ok(())
}
