//! Threads that sleep in a system call, as the kernel shows them without a stop.
//!
//! A stop ends some calls early, with `EINTR`: those of signal(7) that a stop signal interrupts even if nothing handles
//! it. A thread in one of them is left asleep. procfs has all that is needed of it. The number of times it has gone to
//! sleep shows whether it has run in the meantime.

use crate::arch::{Arch, Machine};
use crate::memory::Addr;
use crate::thread::{Registers, Syscall};

use super::procdir::{self, ProcDir, Tasks};

/// Calls that a stop ends early.
const ENDED: [&str; 9] = [
    "epoll_wait",
    "epoll_pwait",
    "epoll_pwait2",
    "rt_sigtimedwait",
    "semop",
    "semtimedop",
    "io_getevents",
    "io_uring_enter",
    "msgrcv",
];
/// Calls that it ends early on a socket with a time limit (`SO_RCVTIMEO`, `SO_SNDTIMEO`), which only its owner can ask for.
const ENDED_ON_SOCKETS: [&str; 13] = [
    "read", "readv", "write", "writev", "recvfrom", "recvmsg", "recvmmsg", "sendto", "sendmsg", "sendmmsg", "accept",
    "accept4", "connect",
];

/// Calls in which no stop is seen before they end: `vfork` and its like wait for a child (`wait_for_vfork_done`).
const UNSTOPPABLE: [&str; 3] = ["vfork", "clone", "clone3"];

/// Which threads are left asleep.
#[derive(Debug, Clone)]
pub(super) struct Sparing {
    /// Those that a stop ends early, or that it waits for.
    ended: Vec<u64>,
    ended_on_sockets: Vec<u64>,
}

impl Sparing {
    /// Those in calls of the machine that a stop would end early, or wait for.
    pub fn of(machine: Machine) -> Sparing {
        let numbers = |names: &[&str]| names.iter().filter_map(|name| machine.call_number(name)).collect();
        Sparing { ended: numbers(&[&ENDED[..], &UNSTOPPABLE].concat()), ended_on_sockets: numbers(&ENDED_ON_SOCKETS) }
    }

    /// What a thread sleeps in, if a stop would end that early or wait for it.
    pub fn sleep(&self, process: &ProcDir, tid: i32) -> Option<Sleep> {
        self.sleep_in(process, &process.task_call(tid)?)?.with_status(&process.task_status(tid)?)
    }

    /// The same, of many threads.
    pub fn sleep_among(&self, process: &ProcDir, tasks: &mut Tasks, tid: i32) -> Option<Sleep> {
        self.sleep_in(process, &tasks.read(tid, "syscall")?)?.with_status(&tasks.read(tid, "status")?)
    }

    fn sleep_in(&self, process: &ProcDir, syscall: &str) -> Option<Sleep> {
        Sleep::of_syscall(syscall).filter(|sleep| sleep.call.is_some_and(|call| self.ends(process, call)))
    }

    /// True if a stop would end this call early, or wait for it.
    pub fn ends(&self, process: &ProcDir, call: Syscall) -> bool {
        let on_socket = || self.ended_on_sockets.contains(&call.number) && process.is_socket(call.args[0]);
        self.ended.contains(&call.number) || on_socket()
    }
}

/// A thread asleep in a system call, or stopped by another tracer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Sleep {
    /// The call. `None` if the other tracer has stopped the thread elsewhere.
    pub call: Option<Syscall>,
    /// Another process traces the thread and has stopped it.
    is_held: bool,
    /// Its program counter.
    pub pc: Addr,
    /// Its stack pointer.
    pub sp: Addr,
    /// How often it has gone to sleep, or been sent off its processor: the same number twice means that it slept all the time.
    switches: [u64; 2],
    /// How long it has executed, and how often it was given a processor, where that was asked for and is counted.
    runs: Option<[u64; 2]>,
    /// Signals it blocks.
    pub blocked_signals: Option<u64>,
    /// The thread's name.
    pub name: Option<String>,
}

impl Sleep {
    /// What a thread sleeps in; `None` if it runs, or somebody traces it.
    pub fn of(tasks: &mut Tasks, tid: i32) -> Option<Sleep> {
        Sleep::that(false, tasks, tid)
    }

    /// What a thread was stopped in that another process traces; `None` if it runs, or nobody traces it.
    pub fn of_held(tasks: &mut Tasks, tid: i32) -> Option<Sleep> {
        Sleep::that(true, tasks, tid)
    }

    /// In this order: the call is shown only while the thread is off its processor, and the counts show all that it does later.
    fn that(is_held: bool, tasks: &mut Tasks, tid: i32) -> Option<Sleep> {
        let runs = Sleep::runs(tasks, tid);
        let sleep = Sleep::of_syscall(&tasks.read(tid, "syscall")?)?;
        let sleep = Sleep { is_held, ..sleep }.with_status(&tasks.read(tid, "status")?)?;
        Some(Sleep { runs, ..sleep })
    }

    fn runs(tasks: &mut Tasks, tid: i32) -> Option<[u64; 2]> {
        tasks.read(tid, "schedstat").and_then(|text| procdir::runs(&text))
    }

    /// The system call that a thread sleeps in.
    pub fn call_of(tasks: &mut Tasks, tid: i32) -> Option<Syscall> {
        Sleep::of_syscall(&tasks.read(tid, "syscall")?)?.call
    }

    /// True if the thread has slept all the time since. Where the kernel counts how often the thread was given a
    /// processor, that count decides. The other files need not be read again.
    pub fn lasts(&self, tasks: &mut Tasks, tid: i32) -> bool {
        if self.runs.is_some_and(|[_, count]| count > 0) {
            return Sleep::runs(tasks, tid) == self.runs;
        }
        let now = if self.is_held { Sleep::of_held(tasks, tid) } else { Sleep::of(tasks, tid) };
        now.as_ref() == Some(self)
    }

    /// The system call of a thread that the kernel does not stop (state D).
    pub fn of_unstoppable(process: &ProcDir, tid: i32) -> Option<Sleep> {
        Sleep::of_syscall(&process.task_call(tid)?)
    }

    /// Its registers, as far as they are known.
    pub fn registers(&self, arch: Arch) -> Option<Registers> {
        Registers::of_sleeper(arch, self.call, self.pc, self.sp)
    }

    /// `NUMBER ARGUMENTS... SP PC`, or `-1 SP PC` of a thread that is in no call; something else of a thread that runs.
    fn of_syscall(text: &str) -> Option<Sleep> {
        let mut words = text.split_whitespace();
        let number = words.next()?;
        let words: Vec<u64> =
            words.map(|word| u64::from_str_radix(word.trim_start_matches("0x"), 16)).collect::<Result<_, _>>().ok()?;
        let (call, sp, pc) = match words[..] {
            [a, b, c, d, e, f, sp, pc] => {
                (Some(Syscall { number: number.parse().ok()?, args: [a, b, c, d, e, f], begun: true }), sp, pc)
            }
            [sp, pc] if number == "-1" => (None, sp, pc),
            _ => return None,
        };
        Some(Sleep {
            call,
            is_held: false,
            pc: Addr(pc),
            sp: Addr(sp),
            switches: [0; 2],
            runs: None,
            blocked_signals: None,
            name: None,
        })
    }

    /// With what `status` says of the thread; `None` if it does not sleep in a call, or is traced. Of one that another process holds:
    /// `None` if it is not stopped by its tracer.
    fn with_status(self, status: &str) -> Option<Sleep> {
        // The first line holds the name, which the thread chooses; the kernel writes no line break of it.
        let rest = status.get(status.find('\n')?..)?;
        let value = |key: &str| {
            let at = memchr::memmem::find(rest.as_bytes(), key.as_bytes())?;
            let line = rest.get(at + key.len()..)?;
            line.split('\n').next().map(str::trim)
        };
        let state = value("\nState:").and_then(|state| state.chars().next())?;
        let is_traced = value("\nTracerPid:") != Some("0");
        let counts = match self.is_held {
            true => is_traced && state == 't',
            false => !is_traced && matches!(state, 'S' | 'D') && self.call.is_some(),
        };
        if !counts {
            return None;
        }
        let count = |key: &str| value(key)?.parse().ok();
        let switches = [count("\nvoluntary_ctxt_switches:")?, count("\nnonvoluntary_ctxt_switches:")?];
        let blocked_signals = value("\nSigBlk:").and_then(|mask| u64::from_str_radix(mask, 16).ok());
        // The kernel escapes line breaks and backslashes in it (proc_task_name in fs/proc/array.c).
        let name = status.strip_prefix("Name:\t").and_then(|text| text.split('\n').next());
        let name = name.filter(|name| !name.contains('\\')).map(str::to_owned);
        Some(Sleep { switches, blocked_signals, name, ..self })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_writes_of_sleepers() {
        let text = "232 0x4 0x7ffd 0x1 0xffffffffffffffff 0x0 0x8 0x7ffe1000 0x7f0000001234\n";
        let sleep = Sleep::of_syscall(text).expect("a thread asleep");
        let call = sleep.call.expect("a call");
        assert_eq!((call.number, call.args[3], sleep.sp), (232, u64::MAX, Addr(0x7ffe_1000)));
        assert_eq!(sleep.pc, Addr(0x7f00_0000_1234));
        for other in ["running\n", "-1 0x7ffe1000\n", "", "232 0x4\n", "232 a b c d e f g h\n"] {
            assert_eq!(Sleep::of_syscall(other), None, "{other:?}");
        }
        let status = |state: &str, tracer: u32| {
            format!(
                "Name:\tx\nState:\t{state}\nTracerPid:\t{tracer}\nSigBlk:\t0000000000000200\n\
                 voluntary_ctxt_switches:\t7\nnonvoluntary_ctxt_switches:\t1\n"
            )
        };
        let known = sleep.clone().with_status(&status("S (sleeping)", 0)).expect("it sleeps");
        assert_eq!((known.switches, known.blocked_signals), ([7, 1], Some(0x200)));
        assert_eq!(known.name.as_deref(), Some("x"));
        assert_eq!(sleep.clone().with_status(&status("R (running)", 0)), None);
        assert_eq!(sleep.clone().with_status(&status("S (sleeping)", 5)), None, "somebody traces it");
        let outside = Sleep::of_syscall("-1 0x7ffe1000 0x7f0000001234\n").expect("a thread in no call");
        assert_eq!((outside.call, outside.sp), (None, Addr(0x7ffe_1000)));
        assert_eq!(outside.clone().with_status(&status("S (sleeping)", 0)), None, "it is in no call");
        let held = Sleep { is_held: true, ..outside };
        assert!(held.clone().with_status(&status("t (tracing stop)", 5)).is_some());
        for (state, tracer) in [("t (tracing stop)", 0), ("S (sleeping)", 5), ("R (running)", 5), ("T (stopped)", 5)] {
            assert_eq!(held.clone().with_status(&status(state, tracer)), None, "{state} {tracer}");
        }
        assert_eq!(sleep.with_status("State:\tS (sleeping)\nTracerPid:\t0\n"), None, "no count");
    }
}
