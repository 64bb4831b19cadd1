//! The program that is run, the signals that are passed on to it, and its end.

use std::ffi::OsString;
use std::fmt;
use std::io;
use std::os::fd::AsFd;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use ompd_process::live::listing;
use ompd_report::escape::escape;
use rustix::process::{PidfdFlags, WaitOptions, WaitStatus, pidfd_open, pidfd_send_signal};

use crate::signals::{self, Arrived, Signals};

/// The signals that are passed on to the program.
const PASSED_ON: [Signal; 6] =
    [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGQUIT, Signal::SIGUSR1, Signal::SIGUSR2];

/// Time between two looks whether processes have ended.
const BETWEEN_LOOKS: Duration = Duration::from_millis(20);
/// How long killed processes are waited for.
const DEATH: Duration = Duration::from_secs(5);

/// Why a program was not started.
#[derive(Debug)]
pub enum NotStarted {
    /// There is none.
    NotFound(String),
    /// It is no program, or may not be executed.
    NotExecutable(String, io::Error),
    /// Something else failed.
    Itself(io::Error),
}

impl fmt::Display for NotStarted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotStarted::NotFound(name) if name.contains('/') => {
                write!(f, "there is no program {}\n  remedy: check the path", escape(name))
            }
            NotStarted::NotFound(name) => {
                write!(f, "there is no program {}\n  remedy: give its path, as in ./{0}", escape(name))
            }
            NotStarted::NotExecutable(name, error) => {
                write!(f, "{} cannot be executed: {error}\n  remedy: chmod +x, or name its interpreter", escape(name))
            }
            NotStarted::Itself(error) => write!(f, "no program can be started: {error}"),
        }
    }
}

/// Takes the signals that are passed on, and those of the ends of processes. No other thread may run yet.
///
/// # Errors
/// The kernel refuses.
pub fn take_signals() -> io::Result<Signals> {
    Signals::take(PASSED_ON.into_iter().chain([Signal::SIGCHLD]))
}

/// Waits for a signal, no longer than `time`, and passes on to the process `pid`, if it is not collected yet, what has arrived.
pub fn wait(signals: &Signals, time: Duration, pid: Option<i32>) {
    let milliseconds = u16::try_from(time.as_millis()).unwrap_or(u16::MAX).max(1);
    let mut descriptors = [PollFd::new(signals.as_fd(), PollFlags::POLLIN)];
    // Whatever ends the wait early, the loop around it comes back.
    let _ = poll(&mut descriptors, PollTimeout::from(milliseconds));
    for Arrived { signal, by_kernel } in signals.arrived() {
        // What the terminal sends, the program has got by itself.
        if let Some(pid) = pid.filter(|_| signal != Signal::SIGCHLD && !by_kernel) {
            let _ = kill(Pid::from_raw(pid), signal);
        }
    }
}

/// A program that was started.
#[derive(Debug)]
pub struct Program {
    pid: i32,
    began: Instant,
    /// Its exit status, when it has ended.
    status: Option<u8>,
}

impl Program {
    /// Starts it with the standard input, output and error of this process, and these variables in its environment. It is killed if
    /// this process is.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start(
        command_line: &[OsString],
        variables: &[(&str, OsString)],
        signals: &Signals,
    ) -> Result<Program, NotStarted> {
        let (name, arguments) = match command_line {
            [name, arguments @ ..] => (name, arguments),
            [] => return Err(NotStarted::NotFound(String::new())),
        };
        // What it starts is not lost to us when it ends.
        rustix::process::set_child_subreaper(Some(rustix::process::getpid()))
            .map_err(|error| NotStarted::Itself(error.into()))?;
        let mut command = Command::new(name);
        command.args(arguments).envs(variables.iter().map(|(name, value)| (name, value)));
        signals::tie(&mut command, signals.before(), Signal::SIGKILL);
        let began = Instant::now();
        let child = command.spawn().map_err(|error| {
            let name = name.to_string_lossy().into_owned();
            match error.kind() {
                io::ErrorKind::NotFound => NotStarted::NotFound(name),
                _ => NotStarted::NotExecutable(name, error),
            }
        })?;
        let pid = i32::try_from(child.id()).map_err(|error| NotStarted::Itself(io::Error::other(error)))?;
        Ok(Program { pid, began, status: None })
    }

    /// Its process id.
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// Its process id, while no other process can have it.
    pub fn uncollected(&self) -> Option<i32> {
        self.status.is_none().then_some(self.pid)
    }

    /// When it was started.
    pub fn began(&self) -> Instant {
        self.began
    }

    /// How long ago that was.
    pub fn age(&self) -> Duration {
        self.began.elapsed()
    }

    /// Collects all processes that have ended, which no inspection may be at work on. Gives the exit status of the program
    /// if it has ended.
    pub fn collect(&mut self) -> Option<u8> {
        while let Ok(Some((pid, status))) = rustix::process::wait(WaitOptions::NOHANG) {
            if pid.as_raw_nonzero().get() == self.pid {
                self.status = Some(exit_status(status));
            }
        }
        self.status
    }

    /// Ends it and all that it has started: SIGTERM, and after a time SIGKILL. Gives how many processes are left.
    pub fn end(&mut self, signals: &Signals, proc_root: &Path, kill_after: Duration) -> usize {
        let own = i32::try_from(std::process::id()).unwrap_or_default();
        let terms = [rustix::process::Signal::TERM, rustix::process::Signal::CONT];
        for (to_send, time) in [(&terms[..], kill_after), (&[rustix::process::Signal::KILL], DEATH)] {
            let deadline = Instant::now() + time;
            let mut told: Vec<i32> = Vec::new();
            let mut was_empty = false;
            loop {
                self.collect();
                let left: Vec<i32> = listing::descendants(proc_root, own).iter().map(|process| process.pid).collect();
                // A process whose parent ends while parents are asked for their children is in neither list, and in ours the next time.
                match (left.is_empty(), was_empty) {
                    (true, true) => return 0,
                    (true, false) => {
                        was_empty = true;
                        continue;
                    }
                    (false, _) => was_empty = false,
                }
                // Those that appear while others end are told too.
                told =
                    left.into_iter().filter(|pid| told.contains(pid) || send(*pid, own, proc_root, to_send)).collect();
                if Instant::now() >= deadline {
                    break;
                }
                wait(signals, BETWEEN_LOOKS, self.uncollected());
            }
        }
        self.collect();
        listing::descendants(proc_root, own).len()
    }
}

/// Sends signals to a process that is a descendant of ours, and to no other that got its id meanwhile. False if it is not found to
/// be one: also at the moment when its parent ends, so that it has to be tried again.
fn send(pid: i32, own: i32, proc_root: &Path, signals: &[rustix::process::Signal]) -> bool {
    let Some(descriptor) =
        rustix::process::Pid::from_raw(pid).and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok())
    else {
        return false;
    };
    // The descriptor stays with the process: if it is ours now, it is what the signals reach.
    let is_ours = listing::descendants(proc_root, own).iter().any(|process| process.pid == pid);
    if is_ours {
        for signal in signals {
            let _ = pidfd_send_signal(&descriptor, *signal);
        }
    }
    is_ours
}

/// The exit status by which a shell would tell of it.
fn exit_status(status: WaitStatus) -> u8 {
    let number = match (status.exit_status(), status.terminating_signal()) {
        (Some(status), _) => status,
        (None, Some(signal)) => 128 + signal,
        (None, None) => i32::from(u8::MAX),
    };
    u8::try_from(number).unwrap_or(u8::MAX)
}
