//! What the kernel keeps threads waiting for, whatever runtime or library asked it to.
//!
//! Only what proves that a thread cannot go on by itself is told apart: a futex without a time limit, which only a thread
//! of the same process can end (futex(2)), and calls that wait for something outside of the process.

use std::collections::HashMap;

use ompd_process::{Addr, Syscall, Target, TargetExt};

/// What keeps one thread from executing code of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Blocked {
    /// Nothing does, as far as it is known: the thread runs, or is in a call that ends by itself, or its registers could not
    /// be read.
    No,
    /// It sleeps on a word of memory private to the process, without a time limit. The word has the value it sleeps on, so
    /// nobody has called it yet.
    Futex(Addr),
    /// It waits for the end of the thread with this kernel thread id (`pthread_join`).
    Join(i32),
    /// It sleeps, without a time limit, in the system call of this name until something from outside happens.
    Outside(&'static str),
    /// It is in `sched_yield`: whoever calls that waits for another thread, for he has nothing better to do.
    Yields,
}

/// What the handlers of signals may do for threads of the process that sleep: a handler may post a semaphore, for instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signals {
    /// There are none, or only of signals that nothing sends unless somebody wants to end the process or it does something
    /// wrong.
    Quiet,
    /// Somebody may send one, or it is not known which handlers there are.
    FromOutside,
    /// One is of a kind that the kernel sends when time has passed or input is there (`setitimer`, `timer_create`, `O_ASYNC`).
    Timers,
}

/// One thread of the operating system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OsThread {
    /// Kernel thread id.
    pub lwp: i32,
    /// What keeps it waiting.
    pub blocked: Blocked,
    /// What may happen in its process besides what its threads do.
    pub signals: Signals,
}

/// Signals by which the process is asked to end, or told what it has done wrong: SIGINT, SIGQUIT, SIGTERM; SIGILL, SIGTRAP,
/// SIGABRT, SIGBUS, SIGFPE, SIGSEGV, SIGPIPE, SIGXFSZ, SIGSYS. The last two are those of the C library itself, which ends
/// threads by them and sets user ids (signal(7), nptl(7)).
const QUIET_SIGNALS: [u32; 14] = [2, 3, 15, 4, 5, 6, 7, 8, 11, 13, 25, 31, 32, 33];
/// SIGALRM, SIGVTALRM, SIGPROF, SIGIO. So are all real-time signals.
const TIMER_SIGNALS: [u32; 4] = [14, 26, 27, 29];
const FIRST_REAL_TIME: u32 = 34;

/// `handled`: bit N-1 for signal N, as far as it is known.
fn signals(handled: Option<u64>) -> Signals {
    let Some(handled) = handled else { return Signals::FromOutside };
    let mut loud = (1..=u64::BITS).filter(|n| handled >> (n - 1) & 1 == 1 && !QUIET_SIGNALS.contains(n)).peekable();
    match (loud.peek().is_some(), loud.any(|n| n >= FIRST_REAL_TIME || TIMER_SIGNALS.contains(&n))) {
        (_, true) => Signals::Timers,
        (true, false) => Signals::FromOutside,
        (false, false) => Signals::Quiet,
    }
}

/// Bytes above the thread pointer in which the C library keeps the id of the thread (`struct pthread` of glibc).
const PTHREAD_BYTES: u64 = 4096;

const FUTEX_WAIT: u64 = 0;
const FUTEX_WAIT_BITSET: u64 = 9;
const FUTEX_PRIVATE: u64 = 128;
const FUTEX_CLOCK_REALTIME: u64 = 256;

/// What every thread of the target waits for, in LWP order. To be called while the target is stopped.
pub fn threads(target: &dyn Target) -> Vec<OsThread> {
    let pointers: HashMap<i32, Addr> =
        target.threads().iter().filter_map(|t| Some((t.lwp, t.thread_pointer()?))).collect();
    let signals = signals(target.process().handled_signals);
    let of = |thread: &ompd_process::Thread| {
        let registers = thread.registers.as_ref().ok();
        let call = registers.and_then(|r| r.syscall);
        let blocked = call.map_or(Blocked::No, |call| blocked(target, &pointers, thread.lwp, call));
        OsThread { lwp: thread.lwp, blocked, signals }
    };
    let mut threads: Vec<OsThread> = target.threads().iter().map(of).collect();
    threads.sort_unstable_by_key(|thread| thread.lwp);
    threads
}

/// Finds out which of the threads offer their processor to others. Symbol tables are looked at, which may take long: to be
/// called once the target runs again.
pub fn find_yielding(target: &dyn Target, threads: &mut [OsThread]) {
    let counters: HashMap<i32, Addr> =
        target.threads().iter().filter_map(|t| Some((t.lwp, t.registers.as_ref().ok()?.pc))).collect();
    let yields = |pc: Addr| {
        let symbol = target.module_at(pc).and_then(|module| module.symbol_at(pc));
        symbol.is_some_and(|(symbol, _)| matches!(symbol.name.as_ref(), "sched_yield" | "__sched_yield"))
    };
    for thread in threads.iter_mut().filter(|t| t.blocked == Blocked::No) {
        if counters.get(&thread.lwp).is_some_and(|pc| yields(*pc)) {
            thread.blocked = Blocked::Yields;
        }
    }
}

fn blocked(target: &dyn Target, pointers: &HashMap<i32, Addr>, lwp: i32, call: Syscall) -> Blocked {
    let Some(name) = target.arch().machine.call_name(call.number) else { return Blocked::No };
    let args = call.args;
    // A time limit in milliseconds, negative for none, or a pointer to one.
    let endless = match name {
        // Who is about to make the call sleeps as well, as long as the word has the value.
        "futex" => return futex(target, pointers, lwp, args),
        // It may not have begun, and a call that has not may still do something.
        _ if !call.begun => return Blocked::No,
        "poll" => (args[2] as i32) < 0,
        "epoll_wait" | "epoll_pwait" => (args[3] as i32) < 0,
        "ppoll" => args[2] == 0,
        "select" | "pselect6" => args[4] == 0,
        "epoll_pwait2" => args[3] == 0,
        "rt_sigtimedwait" => args[2] == 0,
        "read" | "readv" | "write" | "writev" | "recvfrom" | "recvmsg" | "sendto" | "sendmsg" | "accept"
        | "accept4" | "connect" | "wait4" | "waitid" | "pause" | "rt_sigsuspend" | "flock" | "msgrcv" | "semop" => true,
        _ => false,
    };
    if endless { Blocked::Outside(name) } else { Blocked::No }
}

/// True for the operations of `futex` by which a thread goes to sleep on a word with a value it expects there.
pub(crate) fn is_futex_wait(operation: u64) -> bool {
    matches!(operation & !(FUTEX_PRIVATE | FUTEX_CLOCK_REALTIME), FUTEX_WAIT | FUTEX_WAIT_BITSET)
}

fn futex(target: &dyn Target, pointers: &HashMap<i32, Addr>, lwp: i32, args: [u64; 6]) -> Blocked {
    let (word, operation, expected, timeout) = (Addr(args[0]), args[1], args[2] as u32, args[3]);
    let waits = is_futex_wait(operation);
    let asleep = target.read_u32(word).is_ok_and(|value| value == expected);
    if !waits || timeout != 0 || !asleep {
        return Blocked::No;
    }
    if operation & FUTEX_PRIVATE != 0 {
        return Blocked::Futex(word);
    }
    // The kernel clears the id and wakes who sleeps on it once the thread has ended (set_tid_address(2)).
    let joined = i32::try_from(expected).ok().filter(|joined| *joined != lwp).and_then(|joined| {
        let pointer = pointers.get(&joined)?;
        (word > *pointer && word.0 - pointer.0 < PTHREAD_BYTES).then_some(joined)
    });
    joined.map_or(Blocked::No, Blocked::Join)
}

#[cfg(test)]
mod tests {
    use ompd_process::{Arch, TargetKind};
    use test_programs::FakeTarget;

    use super::*;

    /// On some machines a thread that is about to make a call looks as one does that is in it.
    #[test]
    fn a_call_that_may_not_have_begun_proves_nothing() {
        let target = FakeTarget::new(TargetKind::Core, Arch::AARCH64);
        let of = |name: &str, begun| {
            let number = target.arch().machine.call_number(name).expect("a number");
            blocked(&target, &HashMap::new(), 1, Syscall { number, args: [0; 6], begun })
        };
        for name in ["write", "read", "wait4", "ppoll"] {
            assert_eq!((of(name, true), of(name, false)), (Blocked::Outside(name), Blocked::No));
        }
    }

    #[test]
    fn handlers_that_may_let_threads_go_on() {
        let of = |numbers: &[u32]| signals(Some(numbers.iter().fold(0, |mask, n| mask | 1 << (n - 1))));
        assert_eq!(of(&[]), Signals::Quiet);
        // What Python handles, and a program with fault handlers on the C library's own signals.
        assert_eq!(of(&[2]), Signals::Quiet);
        assert_eq!(of(&[4, 6, 7, 8, 11, 32, 33]), Signals::Quiet);
        assert_eq!(of(&[10]), Signals::FromOutside);
        assert_eq!(of(&[2, 17]), Signals::FromOutside);
        assert_eq!(of(&[10, 14]), Signals::Timers);
        assert_eq!(of(&[34]), Signals::Timers);
        assert_eq!(of(&[64]), Signals::Timers);
        // A core.
        assert_eq!(signals(None), Signals::FromOutside);
    }
}
