//! The program `steps.c` in its first hang.

use std::io::BufRead as _;
use std::path::PathBuf;

use anyhow::{Context as _, Result, ensure};
use test_programs::{Env, Launch, Opt, Process, Runtime, Toolchain, await_all_blocked, build};

/// Four threads, of which two read and two wait at a barrier. It is ended when this is dropped.
#[derive(Debug)]
pub struct Steps {
    process: Process,
    /// Its process id.
    pub pid: i32,
    /// Its file.
    pub program: PathBuf,
}

impl Steps {
    /// Starts it, and waits until it hangs.
    ///
    /// # Errors
    /// If it does not come to that.
    pub fn hanging() -> Result<Steps> {
        let executable = build("steps", Toolchain::Gcc, Opt::O0, &[])?;
        let mut process = Launch::new(&executable, Runtime::Libgomp, Env::Settled).leading_group().spawn()?;
        let mut line = String::new();
        for _ in 0..2 {
            process.stdout.read_line(&mut line).context("the output of the program")?;
        }
        ensure!(line == "ready\nready\n", "the program prints {line:?}");
        let pid = i32::try_from(process.child.id())?;
        await_all_blocked(pid, 4, false)?;
        Ok(Steps { process, pid, program: executable.path })
    }

    /// Has it leave the first hang, once it may run.
    ///
    /// # Errors
    /// If it is gone.
    pub fn release(&self) -> Result<()> {
        std::fs::write(format!("/proc/{}/fd/0", self.pid), "gg").context("the input of the program")
    }

    /// That a debugger that has left it left nothing: no stop, and no signal.
    ///
    /// # Errors
    /// What it left.
    pub fn is_left_alone(&self) -> Result<()> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid)).context("the process")?;
        let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default().trim();
        ensure!(!field("State:").starts_with(['T', 't', 'Z']), "{status}");
        ensure!([field("SigPnd:"), field("ShdPnd:")] == ["0000000000000000"; 2], "{status}");
        Ok(())
    }
}

impl Drop for Steps {
    fn drop(&mut self) {
        // Both fail only when it was reaped already.
        let _ = self.process.child.kill();
        let _ = self.process.child.wait();
    }
}
