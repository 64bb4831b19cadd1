//! Stopping every thread of a process, and letting go of it again.
//!
//! ptrace(2) binds a traced thread to the thread that traces it, and only a *stopped* tracee can be detached. So a
//! caller that lives on could never release a thread that does not stop in time. Therefore tracing happens in a thread
//! of its own. When that thread ends, for any reason, the kernel detaches everything it still traces. All threads of
//! the target then continue.

use std::collections::HashSet;
use std::fmt;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{JoinHandle, sleep};
use std::time::{Duration, Instant};
use std::{io, ptr};

use nix::errno::Errno;
use nix::libc;
use nix::sys::ptrace;
use nix::unistd::Pid;

use super::procdir::ProcDir;
use super::sleep::{Sleep, Sparing};
use crate::arch::Arch;
use crate::machine;
use crate::thread::Registers;

/// Shortest and longest single sleep while waiting for a stop.
///
/// A wait for a stop with a deadline would involve signal handlers of the whole process. So the wait is a series of
/// looks. It sleeps in between and does not spin or yield. On a busy machine a thread that wakes up is scheduled at
/// once; one that yields comes after all others.
const SLEEPS: [Duration; 2] = [Duration::from_micros(10), Duration::from_millis(1)];
/// Looks after which a thread that has not stopped counts as slow: sleeps get longer, and its state is looked up.
const QUICK_LOOKS: u32 = 100;
/// How often the listing of threads is repeated at most. One is enough unless threads come and go.
const MAX_LISTINGS: u32 = 1000;

/// How much longer than allowed a process is held before it is let go whatever its memory is read for.
const LET_GO: Duration = Duration::from_millis(20);

/// How long to wait for a thread in uninterruptible sleep. It executes no code of the program until the kernel is done,
/// and stops before it executes any. So the others need not be held for it.
const SLEEPER_GRACE: Duration = Duration::from_millis(50);

/// What only its tracer can read of a stopped thread.
#[derive(Debug)]
pub(super) struct Caught {
    pub lwp: i32,
    pub registers: Result<Registers, String>,
    /// See [`Thread::blocked_signals`](crate::Thread::blocked_signals).
    pub blocked_signals: Option<u64>,
}

impl Caught {
    fn of(task: &Task, wanted: &Wanted) -> Caught {
        let lwp = task.tid;
        if task.stopped {
            return Caught { lwp, registers: machine::of_thread(lwp), blocked_signals: blocked_signals(lwp) };
        }
        match Sleep::of_unstoppable(&wanted.process, lwp) {
            Some(sleep) => Caught::asleep(lwp, &sleep, wanted.arch),
            None => Caught { lwp, registers: Err(ASLEEP.to_owned()), blocked_signals: None },
        }
    }

    /// A thread that was left asleep.
    fn asleep(lwp: i32, sleep: &Sleep, arch: Arch) -> Caught {
        let registers = sleep.registers(arch).ok_or_else(|| ASLEEP.to_owned());
        Caught { lwp, registers, blocked_signals: sleep.blocked_signals }
    }
}

/// What to stop, and what not.
#[derive(Debug)]
pub(super) struct Wanted {
    pub process: ProcDir,
    pub arch: Arch,
    /// How long to wait for all to stop.
    pub max_wait: Duration,
    /// How long to hold them. They are let go then even if the caller cannot: a read of their memory may take for ever.
    pub max_pause: Duration,
    /// Threads that were seen asleep, and which of them are to be left so.
    pub sleepers: HashSet<i32>,
    pub sparing: Sparing,
    /// Threads that are not looked at at all.
    pub left: HashSet<i32>,
}

/// A process that runs again.
#[derive(Debug, Default)]
pub(super) struct Resumed {
    /// How long it was held.
    pub pause: Duration,
    /// Threads that were left asleep, and did not sleep all the time.
    pub woken: Vec<i32>,
}

/// `PTRACE_GETSIGMASK`; none where the kernel does not know it.
fn blocked_signals(tid: i32) -> Option<u64> {
    let mut mask = 0u64;
    // SAFETY: the kernel writes as many bytes as the third argument says, and `mask` has them (ptrace(2)).
    let done = unsafe { libc::ptrace(libc::PTRACE_GETSIGMASK, tid, size_of::<u64>(), &raw mut mask) };
    (done == 0).then_some(mask)
}

/// Why not all threads were stopped. By the time this is reported all of them run again.
#[derive(Debug)]
pub(super) enum StopError {
    /// The kernel refused `PTRACE_SEIZE` of this thread.
    Refused { tid: i32 },
    /// The thread did not stop.
    Late { tid: i32, state: char, waited: Duration },
    /// The kernel lists the thread, and says that there is none to stop.
    Lost { tid: i32, refused: Errno },
    /// No thread is left.
    Gone,
    /// Anything else.
    Io(&'static str, io::Error),
}

/// Holds a stopped process. Dropping it releases the process.
pub(super) struct Tracer {
    release: Option<Sender<()>>,
    thread: Option<JoinHandle<Resumed>>,
}

impl fmt::Debug for Tracer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tracer")
    }
}

impl Tracer {
    /// Stops all threads and reads their registers.
    pub fn stop(wanted: Wanted) -> Result<(Tracer, Vec<Caught>), StopError> {
        let (ready, outcome) = channel();
        let (release, released) = channel();
        let seized = Arc::new(Mutex::new(Vec::new()));
        let own = Arc::clone(&seized);
        let thread = std::thread::Builder::new()
            .name("tracer".into())
            .spawn(move || trace(&wanted, own, &ready, &released))
            .map_err(|e| StopError::Io("starting the tracing thread", e))?;
        let tracer = Tracer { release: Some(release), thread: Some(thread) };
        // An error arrives when the tracing thread has already let go; dropping `tracer` waits for its end.
        loop {
            match outcome.recv_timeout(STUCK) {
                Ok(caught) => return Ok((tracer, caught?)),
                Err(RecvTimeoutError::Timeout) => collect_ended(&seized),
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(StopError::Io("tracing", io::Error::other("the tracing thread ended early")));
                }
            }
        }
    }

    /// Lets all threads run on.
    pub fn resume(mut self) -> Resumed {
        self.finish()
    }

    fn finish(&mut self) -> Resumed {
        drop(self.release.take());
        self.thread.take().and_then(|t| t.join().ok()).unwrap_or_default()
    }
}

impl Drop for Tracer {
    fn drop(&mut self) {
        self.finish();
    }
}

/// A stop that takes longer may be stuck in the kernel.
const STUCK: Duration = Duration::from_millis(20);

/// Collects those of these threads that have ended.
///
/// A thread that executes another program waits in the kernel until the end of all others was collected, and holds a lock that
/// `PTRACE_SEIZE` needs (`cred_guard_mutex`, fs/exec.c, kernel/ptrace.c). The tracing thread then cannot collect them. Any thread of
/// its process may.
fn collect_ended(seized: &Mutex<Vec<i32>>) {
    let seized = seized.lock().unwrap_or_else(PoisonError::into_inner);
    for id in seized.iter().filter_map(|tid| libc::id_t::try_from(*tid).ok()) {
        let look = |options: libc::c_int| {
            // SAFETY: a `siginfo_t` is numbers and unions of numbers, of which zeros are valid values.
            let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
            let options = libc::WEXITED | libc::WNOHANG | libc::__WALL | options;
            // SAFETY: `info` is a valid place for the result and nothing else is written.
            let done = unsafe { libc::waitid(libc::P_PID, id, &mut info, options) };
            (done == 0).then_some(info.si_code)
        };
        // Stops of traced threads are shown as well. They are left for the tracing thread.
        if matches!(look(libc::WNOWAIT), Some(libc::CLD_EXITED | libc::CLD_KILLED | libc::CLD_DUMPED)) {
            look(0);
        }
    }
}

fn trace(
    wanted: &Wanted,
    seized: Arc<Mutex<Vec<i32>>>,
    ready: &Sender<Result<Vec<Caught>, StopError>>,
    released: &Receiver<()>,
) -> Resumed {
    // SAFETY: takes plain numbers. Timers of this thread may by default be 50 microseconds late; more than a look takes.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1usize) };
    let child = wanted.process.stat().ok().filter(|stat| u32::try_from(stat.ppid) == Ok(std::process::id()));
    let child = child.map(|_| wanted.process.pid);
    let mut held = Held { tasks: Vec::new(), sleepers: Vec::new(), since: None, child, seized };
    match held.catch_all(wanted) {
        Ok(()) => {
            let stopped = held.tasks.iter().map(|task| Caught::of(task, wanted));
            let asleep = held.sleepers.iter().map(|(tid, sleep)| Caught::asleep(*tid, sleep, wanted.arch));
            let caught = stopped.chain(asleep).collect();
            if ready.send(Ok(caught)).is_ok() {
                // Ends when the other side drops its sender. By the end of the time the other side has read what it reads.
                let since = held.since.map(|since| since.elapsed()).unwrap_or_default();
                let _ = released.recv_timeout((wanted.max_pause + LET_GO).saturating_sub(since));
            }
            // Before the others can wake them.
            let woken = held.woken(wanted);
            held.release();
            Resumed { pause: held.since.map(|since| since.elapsed()).unwrap_or_default(), woken }
        }
        Err(e) => {
            held.release();
            let _ = ready.send(Err(e));
            Resumed::default()
        }
    }
}

/// Why a thread has no registers that is still on its way out of the kernel.
pub(super) const ASLEEP: &str = "it is in uninterruptible sleep in the kernel (state D, as on slow storage)";

/// A thread of the target that this thread traces.
#[derive(Debug)]
struct Task {
    tid: i32,
    stopped: bool,
    /// It will stop as soon as the kernel lets it go; nobody waits for that.
    asleep: bool,
    /// Signal the thread was about to receive when it stopped; it must get it after all.
    signal: i32,
}

struct Held {
    tasks: Vec<Task>,
    /// Threads that are not traced: they sleep, and a stop would end what they sleep in.
    sleepers: Vec<(i32, Sleep)>,
    /// When the first thread was about to be seized: listing the threads does not hold anyone yet.
    since: Option<Instant>,
    /// The first thread of a child of this process. Its end is left for the code that started it to collect.
    child: Option<i32>,
    /// The threads that were seized, but for the first of such a child.
    seized: Arc<Mutex<Vec<i32>>>,
}

/// What a look at a thread showed.
enum Seen {
    Running,
    Stopped { signal: i32 },
    Ended,
}

impl Held {
    /// Stops all threads. A thread that is not yet stopped can start another, so the listing is repeated until it shows
    /// nothing new. After the first round nearly all threads are stopped and can start no more.
    fn catch_all(&mut self, wanted: &Wanted) -> Result<(), StopError> {
        let Wanted { process, max_wait, .. } = wanted;
        let deadline = Instant::now() + *max_wait;
        let mut known = HashSet::new();
        for _ in 0..MAX_LISTINGS {
            let listed = process.tasks().map_err(|_| StopError::Gone)?;
            let mut new: Vec<i32> = listed.into_iter().filter(|tid| known.insert(*tid)).collect();
            new.retain(|tid| !wanted.left.contains(tid));
            if new.is_empty() {
                // Now no thread is left that could wake those left asleep, or do anything meanwhile.
                new = self.no_longer_asleep(wanted);
            }
            if new.is_empty() {
                self.tasks.retain(|t| t.stopped || t.asleep);
                let none = self.tasks.is_empty() && self.sleepers.is_empty() && wanted.left.is_empty();
                return if none { Err(StopError::Gone) } else { Ok(()) };
            }
            new.retain(|tid| {
                let sleep = wanted.sleepers.contains(tid).then(|| wanted.sparing.sleep(process, *tid)).flatten();
                let spared = sleep.is_some();
                self.sleepers.extend(sleep.map(|sleep| (*tid, sleep)));
                !spared
            });
            self.since.get_or_insert_with(Instant::now);
            let first = self.tasks.len();
            for tid in new {
                if seize(process, tid)? {
                    if self.child != Some(tid) {
                        self.seized.lock().unwrap_or_else(PoisonError::into_inner).push(tid);
                    }
                    self.tasks.push(Task { tid, stopped: false, asleep: false, signal: 0 });
                }
            }
            for task in &self.tasks[first..] {
                // ESRCH: it has ended meanwhile. The wait below finds out.
                let _ = ptrace::interrupt(Pid::from_raw(task.tid));
            }
            for task in &mut self.tasks[first..] {
                await_stop(process, task, self.child, deadline, *max_wait)?;
            }
            if Instant::now() > deadline {
                break;
            }
        }
        // Threads start faster than they can be listed.
        Err(StopError::Late { tid: process.pid, state: '?', waited: *max_wait })
    }

    /// Takes those out of the sleepers that have not slept all the time; those that have ended are gone.
    fn no_longer_asleep(&mut self, wanted: &Wanted) -> Vec<i32> {
        let asleep = |(tid, sleep): &(i32, Sleep)| wanted.sparing.sleep(&wanted.process, *tid).as_ref() == Some(sleep);
        let moved = self.sleepers.extract_if(.., |sleeper| !asleep(sleeper)).map(|(tid, _)| tid);
        moved.filter(|tid| !ended(&wanted.process, *tid)).collect()
    }

    /// Those of the sleepers that have not slept all the time.
    fn woken(&self, wanted: &Wanted) -> Vec<i32> {
        let asleep = |tid: i32, sleep: &Sleep| wanted.sparing.sleep(&wanted.process, tid).as_ref() == Some(sleep);
        self.sleepers.iter().filter(|(tid, sleep)| !asleep(*tid, sleep)).map(|(tid, _)| *tid).collect()
    }

    fn release(&mut self) {
        for task in self.tasks.drain(..) {
            let mut signal = task.signal;
            if !task.stopped {
                match look(task.tid, self.child) {
                    // It stopped after all, too late.
                    Seen::Stopped { signal: late } => signal = late,
                    // Only the end of this thread lets it go.
                    _ => continue,
                }
            }
            // SAFETY: PTRACE_DETACH takes no pointers; the signal number goes in the place of one (ptrace(2)).
            // ESRCH means that the thread was killed meanwhile. Not the nix wrapper: it knows no real-time signals.
            unsafe {
                libc::ptrace(libc::PTRACE_DETACH, task.tid, ptr::null_mut::<libc::c_void>(), signal as usize);
            }
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.release();
    }
}

/// Begins to trace a thread, without stopping it and without any option that would outlive us. False if it has ended.
fn seize(process: &ProcDir, tid: i32) -> Result<bool, StopError> {
    match ptrace::seize(Pid::from_raw(tid), ptrace::Options::empty()) {
        Ok(()) => Ok(true),
        Err(Errno::ESRCH) if ended(process, tid) => Ok(false),
        // The same error for "not allowed" and for "has already ended".
        Err(Errno::EPERM) if ended(process, tid) => Ok(false),
        Err(Errno::EPERM | Errno::EACCES) => Err(StopError::Refused { tid }),
        Err(Errno::ESRCH) => Err(StopError::Lost { tid, refused: Errno::ESRCH }),
        Err(e) => Err(StopError::Io("PTRACE_SEIZE", e.into())),
    }
}

fn ended(process: &ProcDir, tid: i32) -> bool {
    process.task_stat(tid).map_or(true, |s| matches!(s.state, 'Z' | 'X' | 'x'))
}

fn await_stop(
    process: &ProcDir,
    task: &mut Task,
    child: Option<i32>,
    deadline: Instant,
    max_wait: Duration,
) -> Result<(), StopError> {
    let mut looks = 0u32;
    let began = Instant::now();
    loop {
        match look(task.tid, child) {
            Seen::Stopped { signal } => {
                (task.stopped, task.signal) = (true, signal);
                return Ok(());
            }
            // Its last stop was its end. What is still listed goes on, unseen: the process is not stopped.
            Seen::Ended if ended(process, task.tid) => return Ok(()),
            Seen::Ended => return Err(StopError::Lost { tid: task.tid, refused: Errno::ECHILD }),
            Seen::Running => {}
        }
        looks += 1;
        if looks < QUICK_LOOKS {
            sleep(SLEEPS[0]);
            continue;
        }
        // A main thread that has ended while others live reports nothing until they have ended too.
        if ended(process, task.tid) {
            return Ok(());
        }
        let state = process.task_stat(task.tid).map_or('?', |s| s.state);
        if state == 'D' && began.elapsed() >= SLEEPER_GRACE {
            task.asleep = true;
            return Ok(());
        }
        if Instant::now() >= deadline {
            return Err(StopError::Late { tid: task.tid, state, waited: max_wait });
        }
        sleep((SLEEPS[0] * (looks - QUICK_LOOKS)).min(SLEEPS[1]));
    }
}

/// Asks, without waiting, whether a traced thread has stopped. The end of `child` is not collected.
fn look(tid: i32, child: Option<i32>) -> Seen {
    if child == Some(tid) {
        return look_for_stop(tid);
    }
    let mut status = 0;
    // SAFETY: `status` is a valid place for the result and nothing else is written. Not the nix wrapper: it fails on
    // stops for real-time signals, and the stop would be lost.
    let got = unsafe { libc::waitpid(tid, &mut status, libc::__WALL | libc::__WNOTHREAD | libc::WNOHANG) };
    match got {
        0 => Seen::Running,
        _ if got == tid && libc::WIFSTOPPED(status) => {
            // Bits 16 and up hold the event. Without an event, the thread was about to receive the signal.
            // PTRACE_EVENT_STOP is our own stop or a group stop; detaching leaves a group stop in force.
            let signal = if status >> 16 == 0 { libc::WSTOPSIG(status) } else { 0 };
            Seen::Stopped { signal }
        }
        _ if got < 0 && Errno::last() == Errno::EINTR => Seen::Running,
        _ => Seen::Ended,
    }
}

/// As [`look`], but the thread counts as running when it has ended: a wait that shows ends would collect this one.
fn look_for_stop(tid: i32) -> Seen {
    let Ok(id) = libc::id_t::try_from(tid) else { return Seen::Ended };
    let options = libc::WSTOPPED | libc::__WALL | libc::__WNOTHREAD | libc::WNOHANG;
    // SAFETY: a `siginfo_t` is numbers and unions of numbers, of which zeros are valid values.
    let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
    // SAFETY: `info` is a valid place for the result and nothing else is written.
    if unsafe { libc::waitid(libc::P_PID, id, &mut info, options) } < 0 {
        return if Errno::last() == Errno::EINTR { Seen::Running } else { Seen::Ended };
    }
    // SAFETY: the kernel has filled in the fields of a child, or left the zeros if nothing has happened (waitid(2)).
    let (stopped, status) = unsafe { (info.si_pid() != 0, info.si_status()) };
    match stopped {
        true => Seen::Stopped { signal: if status >> 8 == 0 { status } else { 0 } },
        false => Seen::Running,
    }
}
