//! Signals that are taken one by one, in place of what they would do, and what they are to programs that are started.

#![allow(unsafe_code, reason = "what a new process does before it executes its program is for `pre_exec` alone")]

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::{SigSet, SigmaskHow, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::unistd::{getpid, getppid};

/// `si_code` of a signal that the kernel sends, as for Ctrl-C: every process of the group gets it (sigaction(2)).
const SI_KERNEL: i32 = 0x80;

/// Signals that are blocked in all threads that start later, and are read instead.
#[derive(Debug)]
pub struct Signals {
    descriptor: SignalFd,
    before: SigSet,
}

/// A signal that has arrived.
#[derive(Debug, Clone, Copy)]
pub struct Arrived {
    /// Which.
    pub signal: Signal,
    /// The kernel has sent it, to the whole group of processes.
    pub by_kernel: bool,
}

impl Signals {
    /// Takes them from now on. No other thread may run yet.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn take(signals: impl IntoIterator<Item = Signal>) -> io::Result<Signals> {
        let set: SigSet = signals.into_iter().collect();
        let before = set.thread_swap_mask(SigmaskHow::SIG_BLOCK)?;
        let flags = SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK;
        Ok(Signals { descriptor: SignalFd::with_flags(&set, flags)?, before })
    }

    /// Those that have arrived.
    pub fn arrived(&self) -> Vec<Arrived> {
        let mut arrived = Vec::new();
        while let Ok(Some(info)) = self.descriptor.read_signal() {
            let signal = i32::try_from(info.ssi_signo).ok().and_then(|number| Signal::try_from(number).ok());
            arrived.extend(signal.map(|signal| Arrived { signal, by_kernel: info.ssi_code == SI_KERNEL }));
        }
        arrived
    }

    /// The signals that were blocked before.
    pub fn before(&self) -> SigSet {
        self.before
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

/// Lets the program start with these signals blocked, and lets the kernel send it `end` when the thread that has started it ends.
pub fn tie(command: &mut Command, blocked: SigSet, end: Signal) {
    let own = getpid();
    let before = move || {
        // What is blocked here would stay blocked there.
        blocked.thread_set_mask()?;
        set_pdeathsig(end)?;
        // The kernel says nothing of a parent that had ended before.
        if getppid() == own { Ok(()) } else { Err(io::ErrorKind::BrokenPipe.into()) }
    };
    // SAFETY: all calls are system calls that take numbers and a set of signals; nothing is allocated or locked (signal-safety(7)).
    unsafe { command.pre_exec(before) };
}
