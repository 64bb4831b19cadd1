//! What threads wait for in the kernel, whichever runtime or library asked it to.
//!
//! Only what proves that a thread cannot continue by itself is distinguished. One such wait is a futex without a time
//! limit, which only a thread of the same process can end (futex(2)). The others are calls that wait for something
//! outside of the process.

use std::collections::{BTreeMap, HashMap};

use ompd_process::machine::ThreadLocal;
use ompd_process::{Addr, ByteOrder, Module, Syscall, Target, TargetExt};

use crate::model::RuntimeSnapshot;

#[cfg(test)]
mod tests;

/// What keeps one thread from executing code of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Blocked {
    /// As far as is known, nothing does. The thread runs, or is in a call that ends by itself, or its registers could
    /// not be read.
    No,
    /// It sleeps on a word of memory private to the process, without a time limit. The word has the value it sleeps on, so
    /// nobody has called it yet.
    Futex(Addr),
    /// So it does, at this mutex of the C library that the thread with this kernel thread id holds (`pthread_mutex_lock`). Or at a
    /// read-write lock that this thread holds for writing (`pthread_rwlock_wrlock`).
    Mutex(Addr, i32),
    /// It tries again and again to get an interpreter's lock (Python's GIL), which the thread with this kernel thread id holds.
    Interpreter(i32),
    /// It waits for the end of the thread with this kernel thread id (`pthread_join`).
    Join(i32),
    /// It sleeps, without a time limit, in the system call of this name until something from outside happens.
    Outside(&'static str),
    /// It is in `sched_yield`. A thread that calls it is assumed to wait for another thread.
    Yields,
}

impl Blocked {
    /// True for a wait for what a known thread holds, outside of OpenMP.
    pub fn is_owned(self) -> bool {
        matches!(self, Blocked::Mutex(..) | Blocked::Interpreter(_))
    }
}

/// Signals whose handlers may let threads go on: a handler may unset a lock, fulfil an event, or post a semaphore.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Signals {
    /// Those that somebody may send, that have a handler, and that some thread does not block: bit N-1 for signal N. Left out are
    /// those that nothing sends unless the process does something wrong.
    Handled(u64),
    /// The source does not record handlers.
    NotRecorded,
    /// Nor does it, and this module can set some: its path (text of the target).
    Possible(String),
}

impl Signals {
    /// True if a handler may run. One of a signal that asks the process to end does not count.
    pub fn may_arrive(&self) -> bool {
        !matches!(self, Signals::Handled(_)) || self.numbers().next().is_some()
    }

    /// True if there is a handler of a signal that asks the process to end. Servers wait for it: the handler posts a semaphore.
    pub(crate) fn ask_to_end(&self) -> bool {
        self.asking().next().is_some()
    }

    /// The numbers of those that ask the process to end, in order.
    pub fn asking(&self) -> impl Iterator<Item = u32> {
        self.known().filter(|number| ASKING_SIGNALS.contains(number))
    }

    fn known(&self) -> impl Iterator<Item = u32> {
        let mask = if let Signals::Handled(mask) = self { *mask } else { 0 };
        (1..=u64::BITS).filter(move |number| has_signal(mask, *number))
    }

    /// True if one is of a kind that the kernel sends when time has passed or input is there (`setitimer`, `timer_create`,
    /// `O_ASYNC`).
    pub(crate) fn of_timers(&self) -> bool {
        self.numbers().any(|number| number >= FIRST_REAL_TIME || TIMER_SIGNALS.contains(&number))
    }

    /// The numbers of those that are known and do not ask the process to end, in order.
    pub fn numbers(&self) -> impl Iterator<Item = u32> {
        self.known().filter(|number| !ASKING_SIGNALS.contains(number))
    }
}

fn has_signal(mask: u64, number: u32) -> bool {
    mask >> (number - 1) & 1 == 1
}

/// What is known of a word that threads wait at and that may not be the process's alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sharing {
    /// It lies in memory that other processes may have as well (`MAP_SHARED`).
    Shared,
    /// Whether it does is not known.
    Unknown,
}

/// Something that may let a thread of a hang continue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outsider {
    /// The process of this id has all of the memory (`CLONE_VM`, clone(2)).
    Process(i32),
    /// Requests of io_uring write to memory and wake threads (io_uring(7)): the process has a ring.
    Ring,
    /// A thread of the hang waits in `pthread_join`, which ends if the thread is cancelled. This module calls `pthread_cancel`: its
    /// path (text of the target).
    Canceller(String),
}

/// What the kernel shows of a process at one stop.
#[derive(Debug, Clone)]
pub struct OsState {
    /// Its threads, in LWP order.
    pub threads: Vec<OsThread>,
    /// Handlers of signals that may run in it.
    pub signals: Signals,
    /// What else may end a hang.
    pub outsiders: Vec<Outsider>,
    /// Of the locks that threads wait for: those that another process may set free, or might, by address.
    pub shared: BTreeMap<Addr, Sharing>,
}

/// One thread of the operating system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OsThread {
    /// Kernel thread id.
    pub lwp: i32,
    /// What keeps it waiting.
    pub blocked: Blocked,
    /// The thread that holds the mutex at which it sleeps, if that is one.
    owner: Option<i32>,
    /// The read-write lock at which it sleeps, if that is one, and the thread that holds it for writing.
    writer: Option<(Addr, i32)>,
}

/// The C library's call that acquires what a thread sleeps for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Acquires {
    /// A mutex.
    Mutex,
    /// A read-write lock.
    RwLock,
}

impl OsThread {
    /// A thread of which no more is known.
    pub fn new(lwp: i32, blocked: Blocked) -> OsThread {
        OsThread { lwp, blocked, owner: None, writer: None }
    }
}

/// Signals by which the process is told what it has done wrong: SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE, SIGSEGV, SIGPIPE, SIGXFSZ,
/// SIGSYS. The last two are those of the C library itself, which ends threads by them and sets user ids (signal(7), nptl(7)).
const QUIET_SIGNALS: [u32; 11] = [4, 5, 6, 7, 8, 11, 13, 25, 31, 32, 33];
/// Signals by which the process is asked to end: SIGINT, SIGQUIT, SIGTERM, SIGXCPU.
const ASKING_SIGNALS: [u32; 4] = [2, 3, 15, 24];
/// SIGALRM, SIGVTALRM, SIGPROF, SIGIO. So are all real-time signals.
const TIMER_SIGNALS: [u32; 4] = [14, 26, 27, 29];
const FIRST_REAL_TIME: u32 = 34;

/// By the masks of those with a handler, and of those that each thread blocks, where it is known.
fn signals(handled: Option<u64>, blocked: impl IntoIterator<Item = Option<u64>>) -> Signals {
    let Some(handled) = handled else { return Signals::NotRecorded };
    let everywhere = blocked.into_iter().fold(u64::MAX, |all, own| all & own.unwrap_or(0));
    let quiet = QUIET_SIGNALS.iter().fold(0, |mask, number| mask | 1 << (number - 1));
    Signals::Handled(handled & !everywhere & !quiet)
}

/// Signals whose handlers may run while one is being executed: its thread blocks the signal only until it returns (sigaction(2)), so
/// nothing is taken for blocked.
pub fn signals_at_handler(target: &dyn Target) -> Signals {
    signals(target.process().handled_signals, [None])
}

/// Functions that set the handler of a signal: those of the C library (signal(2), sigaction(2), sigvec(3), sigset(3),
/// sysv_signal(3)).
const SETTERS: [&str; 9] =
    ["sigaction", "__sigaction", "signal", "bsd_signal", "ssignal", "__sysv_signal", "sysv_signal", "sigset", "sigvec"];
/// How the names of those of libgfortran begin (intrinsics/signal.c, intrinsics/alarm.c).
const FORTRAN_SETTERS: [&str; 2] = ["_gfortran_signal_", "_gfortran_alarm_"];
/// How the names of libraries begin whose own handlers only tell of errors in the program (libgfortran/runtime/compile_options.c).
const QUIET_LIBRARIES: [&str; 1] = ["libgfortran.so"];

/// A program that has the C library in it has its functions, whether it calls them or not.
fn has_c_library(module: &Module) -> bool {
    module.file.as_ref().is_ok_and(|file| file.is_program() && file.needed().is_empty())
}

/// Whether code of a module may refer to a function whose name `is_wanted`. True if that is unknown. Libraries of OpenMP do not
/// count: `runtimes` has their bases.
pub(crate) fn may_refer_to(module: &Module, runtimes: &[Addr], is_wanted: &dyn Fn(&str) -> bool) -> bool {
    match &module.file {
        _ if has_c_library(module) => true,
        Ok(file) => {
            let mut names = file.relocations().values().filter_map(|relocation| relocation.symbol.as_deref());
            // A part that cannot be read may have such a name.
            let is_runtime = runtimes.contains(&module.base()) && !file.is_program();
            !is_runtime && (names.any(is_wanted) || file.unread().is_some())
        }
        Err(_) => true,
    }
}

/// Which handlers there may be in a process of whose handlers nothing is recorded, by what its modules call. `runtimes` are
/// the bases of those of OpenMP, whose handlers end the process (`__kmp_install_signals`). System calls without the C library
/// are not found. To be called once the target runs again.
pub fn find_handlers(target: &dyn Target, runtimes: &[Addr]) -> Signals {
    let sets = |name: &str| SETTERS.contains(&name) || FORTRAN_SETTERS.iter().any(|setter| name.starts_with(setter));
    let quiet = |name: String| QUIET_LIBRARIES.iter().any(|library| name.starts_with(library));
    let is_quiet = |module: &Module| module.file.as_ref().is_ok_and(|file| file.soname().is_some_and(quiet));
    let may_set = |module: &&Module| may_refer_to(module, runtimes, &sets) && !is_quiet(module);
    match target.modules().iter().find(may_set) {
        Some(module) => Signals::Possible(module.path.clone()),
        None => Signals::Handled(0),
    }
}

/// Finds out which of the locks that threads wait for others than this process may set free.
pub fn find_shared(target: &dyn Target, snapshots: &[RuntimeSnapshot]) -> BTreeMap<Addr, Sharing> {
    let waits = snapshots.iter().flat_map(|snapshot| {
        let waits = snapshot.threads.iter().filter_map(|thread| thread.wait.value()?.as_ref());
        let locks = waits.filter(|wait| wait.kind.is_for_lock());
        locks.filter_map(|wait| match wait.lock.and_then(|id| snapshot.lock(id)) {
            // The lock is in the runtime's own memory, and the program has a number or address for it.
            Some(lock) if lock.variable_word.is_some() => None,
            Some(lock) => Some(lock.object),
            None => Some(wait.object),
        })
    });
    let sharing = |object: Addr| match target.is_shared(object) {
        Some(false) => None,
        Some(true) => Some((object, Sharing::Shared)),
        None => Some((object, Sharing::Unknown)),
    };
    waits.filter_map(sharing).collect()
}

/// Bytes in which the C library keeps the id of the thread (`struct pthread` of glibc). The thread pointer is at their begin where
/// thread-local variables are below it, and at their end where those are above it.
const PTHREAD_BYTES: u64 = 4096;

/// Thread pointers.
#[derive(Default)]
struct Pointers {
    /// By thread (LWP).
    of: HashMap<i32, Addr>,
    /// The threads by their pointers.
    at: BTreeMap<Addr, i32>,
}

impl Pointers {
    fn of(target: &dyn Target) -> Pointers {
        let mut pointers = Pointers::default();
        for (lwp, pointer) in target.threads().iter().filter_map(|t| Some((t.lwp, t.thread_pointer()?))) {
            pointers.of.insert(lwp, pointer);
            pointers.at.entry(pointer).or_insert(lwp);
        }
        pointers
    }

    /// The thread for whose end `lwp` waits on this word, if that holds the thread's id: the kernel clears the id and wakes
    /// who sleeps on it once the thread has ended (set_tid_address(2)).
    fn joined(&self, target: &dyn Target, lwp: i32, word: Addr, id: u32) -> Option<i32> {
        let above = matches!(target.arch().machine.facts()?.thread_local, ThreadLocal::Above { .. });
        let (lowest, highest) = (word.0.saturating_sub(PTHREAD_BYTES - 1), word.0.saturating_add(PTHREAD_BYTES));
        let nearest = match above {
            true => self.at.range(Addr(word.0.saturating_add(1))..Addr(highest)).next(),
            false => self.at.range(Addr(lowest)..word).next_back(),
        };
        let (pointer, joined) = nearest.map(|(pointer, joined)| (*pointer, *joined)).filter(|of| of.1 != lwp)?;
        if i32::try_from(id) == Ok(joined) {
            return Some(joined);
        }
        // In a PID namespace the ids are others. The waiting thread has its own at the same place.
        let own = self.of.get(&lwp)?.offset(word.0.wrapping_sub(pointer.0));
        let is_id = |own: u32| own != 0 && own != id && own != u32::MAX;
        let are_ids = target.is_shared(word) == Some(false) && target.read_u32(own).is_ok_and(is_id);
        are_ids.then_some(joined)
    }
}

const FUTEX_WAIT: u64 = 0;
const FUTEX_WAIT_BITSET: u64 = 9;
const FUTEX_PRIVATE: u64 = 128;
const FUTEX_CLOCK_REALTIME: u64 = 256;

/// What every thread of the target waits for, and which handlers of signals may run. To be called while the target is stopped.
/// Shared memory is for [`find_shared`].
pub fn read(target: &dyn Target) -> OsState {
    let pointers = Pointers::of(target);
    let mut owners: HashMap<Addr, Owners> = HashMap::new();
    let signals = signals(target.process().handled_signals, target.threads().iter().map(|t| t.blocked_signals));
    let mut of = |thread: &ompd_process::Thread| {
        let registers = thread.registers.as_ref().ok();
        let call = registers.and_then(|r| r.syscall);
        let blocked = call.map_or(Blocked::No, |call| blocked(target, &pointers, thread.lwp, call));
        let Blocked::Futex(word) = blocked else { return OsThread::new(thread.lwp, blocked) };
        // All that wait for one thing sleep on one word.
        let (owner, writer) = *owners.entry(word).or_insert_with(|| owners_at(target, &pointers, word));
        OsThread { owner, writer, ..OsThread::new(thread.lwp, blocked) }
    };
    let mut threads: Vec<OsThread> = target.threads().iter().map(&mut of).collect();
    threads.sort_unstable_by_key(|thread| thread.lwp);
    OsState { threads, signals, outsiders: Vec::new(), shared: BTreeMap::new() }
}

/// Bytes from the lock of glibc's mutex, on which threads sleep, to the id of the thread that holds it (`struct __pthread_mutex_s`;
/// sysdeps/nptl/bits/struct_mutex.h, sysdeps/x86/nptl/bits/struct_mutex.h).
pub const MUTEX_OWNER: u64 = 8;

/// The thread that holds the mutex in which a word is, if that is one, and the read-write lock and the thread that holds it for writing,
/// if it is that.
type Owners = (Option<i32>, Option<(Addr, i32)>);

/// Who holds what threads that sleep on this word wait for.
fn owners_at(target: &dyn Target, pointers: &Pointers, word: Addr) -> Owners {
    let thread = |id: u32| {
        let thread = target.process().thread_of_id(i32::try_from(id).ok()?)?;
        pointers.of.contains_key(&thread).then_some(thread)
    };
    let Some(around) = Around::read(target, word) else {
        // What is before the word, or behind a mutex, may not be there.
        return (target.read_u32(word.offset(MUTEX_OWNER)).ok().and_then(thread), None);
    };
    let writer = around.rwlock().and_then(|lock| match lock.holder {
        RwHolder::Writer(id) => Some((lock.addr, thread(id)?)),
        RwHolder::Readers(_) => None,
    });
    (thread(around.field(AROUND.0 as usize + MUTEX_OWNER as usize)), writer)
}

/// Who holds a read-write lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RwHolder {
    /// One thread, for writing: its id, as the thread itself has it.
    Writer(u32),
    /// So many threads, for reading. The C library does not record which.
    Readers(u32),
}

/// Bytes of glibc's read-write lock that are looked at (`struct __pthread_rwlock_arch_t`; sysdeps/x86/nptl/bits/struct_rwlock.h,
/// sysdeps/aarch64/nptl/bits/struct_rwlock.h): the two counts, the two words on which threads sleep, eight bytes that stay 0, the id
/// of the writer, and whether processes share the lock.
const RWLOCK: usize = 32;
/// Flags in the first of its words, and by how many bits the number of readers is shifted there (nptl/pthread_rwlock_common.c).
const WRITE_PHASE: u32 = 1;
const WRITE_LOCKED: u32 = 2;
const READERS_SHIFT: u32 = 3;
/// Where the words on which threads sleep are in it: those of both phases, of writers that wait for each other, and the first word,
/// which readers use that let writers go first.
const SLEPT_ON: [usize; 3] = [8, 12, 0];
/// Bytes before the word on which a thread sleeps, and of all, that [`Around`] has.
const AROUND: (u64, usize) = (12, 12 + RWLOCK);

/// A read-write lock of glibc that nobody outside of the process uses, and that is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RwLock {
    /// Where it is.
    pub addr: Addr,
    /// Who holds it.
    pub holder: RwHolder,
}

impl RwLock {
    /// The lock in which a thread sleeps on this word. `None` if there is none, or if it may be at more than one place.
    pub fn around(target: &dyn Target, word: Addr) -> Option<RwLock> {
        Around::read(target, word)?.rwlock()
    }
}

/// The bytes around a word on which a thread sleeps.
struct Around {
    first: Addr,
    bytes: [u8; AROUND.1],
    order: ByteOrder,
}

impl Around {
    fn read(target: &dyn Target, word: Addr) -> Option<Around> {
        let first = Addr(word.0.checked_sub(AROUND.0)?);
        let mut bytes = [0; AROUND.1];
        target.read(first, &mut bytes).ok()?;
        Some(Around { first, bytes, order: target.arch().byte_order })
    }

    fn field(&self, at: usize) -> u32 {
        self.order.uint(&self.bytes[at..at + 4]) as u32
    }

    fn rwlock(&self) -> Option<RwLock> {
        let holder = |slept_on: &usize| {
            let at = AROUND.0 as usize - slept_on;
            let words = [0, 12, 16, 20, 24, 28].map(|offset| self.field(at + offset));
            let [readers, phase_of_writers, unused, unused_too, writer, shared] = words;
            if unused != 0 || unused_too != 0 || shared != 0 || readers & WRITE_LOCKED == 0 {
                return None;
            }
            let holder = match (readers & WRITE_PHASE != 0, readers >> READERS_SHIFT) {
                (true, _) if writer != 0 => RwHolder::Writer(writer),
                // A writer waits until they have gone; others sleep on its word meanwhile.
                (false, count) if writer == 0 && count > 0 && phase_of_writers & 1 == 1 && *slept_on == SLEPT_ON[0] => {
                    RwHolder::Readers(count)
                }
                _ => return None,
            };
            Some(RwLock { addr: self.first.offset(at as u64), holder })
        };
        let mut found = SLEPT_ON.iter().filter_map(holder);
        found.next().filter(|_| found.next().is_none())
    }
}

/// True if the C library is glibc, whose mutexes and read-write locks are known.
pub fn is_glibc(target: &dyn Target) -> bool {
    target.modules().iter().any(Module::is_glibc)
}

/// Tells mutexes and read-write locks of the C library from other words on which threads sleep: `acquires` says of a thread which
/// call that acquires one its stack shows, if any. To be called only if the C library is glibc.
pub fn find_mutexes(threads: &mut [OsThread], acquires: &dyn Fn(i32) -> Option<Acquires>) {
    for thread in threads {
        let Blocked::Futex(word) = thread.blocked else { continue };
        let held = match (thread.owner.map(|owner| (word, owner)), thread.writer) {
            (None, None) => continue,
            (mutex, lock) => acquires(thread.lwp).and_then(|what| match what {
                Acquires::Mutex => mutex,
                Acquires::RwLock => lock,
            }),
        };
        if let Some((at, owner)) = held {
            thread.blocked = Blocked::Mutex(at, owner);
        }
    }
}

/// Tells waits that a timer of the process will end (timerfd_create(2)) from those without a time limit. True if there are any. Files
/// of the process are read: to be called once the target runs again.
pub fn find_timers(target: &dyn Target, threads: &mut [OsThread]) -> bool {
    /// Descriptors of one call that are looked at, and of all calls together.
    const MOST: u64 = 64;
    const MOST_OF_ALL: usize = 4096;
    let Some(surroundings) = target.surroundings() else { return false };
    let calls: HashMap<i32, Syscall> = target
        .threads()
        .iter()
        .filter_map(|thread| Some((thread.lwp, thread.registers.as_ref().ok()?.syscall?)))
        .collect();
    // All threads have the same descriptors.
    let mut known: HashMap<u32, bool> = HashMap::new();
    let mut has_limit = |number: u32| match known.len() < MOST_OF_ALL {
        true => *known.entry(number).or_insert_with(|| surroundings.has_limit(number as i32)),
        false => known.get(&number).copied().unwrap_or(false),
    };
    let mut found = false;
    for thread in threads {
        let Blocked::Outside(name) = thread.blocked else { continue };
        let Some(call) = calls.get(&thread.lwp) else { continue };
        // `struct pollfd` has eight bytes, and begins with the descriptor (poll(2)).
        let of_poll = |at: u64| target.read_u32(Addr(call.args[0]).offset(8 * at)).ok();
        let descriptors: Vec<u32> = match name {
            "read" | "readv" | "epoll_wait" | "epoll_pwait" | "epoll_pwait2" => vec![call.args[0] as u32],
            "poll" | "ppoll" => (0..call.args[1].min(MOST)).map_while(of_poll).collect(),
            _ => continue,
        };
        if descriptors.into_iter().any(&mut has_limit) {
            thread.blocked = Blocked::No;
            found = true;
        }
    }
    found
}

/// Marks threads that wait for an interpreter's lock: `waits` has its holder, by the thread that waits.
pub fn add_interpreter_locks(threads: &mut [OsThread], waits: &HashMap<i32, i32>) {
    for thread in threads {
        if let Some(holder) = waits.get(&thread.lwp) {
            thread.blocked = Blocked::Interpreter(*holder);
        }
    }
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

fn blocked(target: &dyn Target, pointers: &Pointers, lwp: i32, call: Syscall) -> Blocked {
    let Some(name) = target.arch().machine.call_name(call.number) else { return Blocked::No };
    let args = call.args;
    // A time limit in milliseconds, negative for none, or a pointer to one: where it depends on the call.
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
        // Which words a thread waits for by these, and who changes them, is not looked at.
        "semtimedop" | "futex_waitv" => args[3] == 0,
        "mq_timedreceive" | "mq_timedsend" | "recvmmsg" | "io_getevents" | "futex_wait" => args[4] == 0,
        "read" | "readv" | "write" | "writev" | "preadv" | "pwritev" | "recvfrom" | "recvmsg" | "sendto"
        | "sendmsg" | "sendmmsg" | "accept" | "accept4" | "connect" | "open" | "openat" | "wait4" | "waitid"
        | "pause" | "rt_sigsuspend" | "flock" | "msgrcv" | "msgsnd" | "semop" => true,
        _ => false,
    };
    if endless { Blocked::Outside(name) } else { Blocked::No }
}

/// True for the operations of `futex` by which a thread goes to sleep on a word with a value it expects there.
pub(crate) fn is_futex_wait(operation: u64) -> bool {
    matches!(operation & !(FUTEX_PRIVATE | FUTEX_CLOCK_REALTIME), FUTEX_WAIT | FUTEX_WAIT_BITSET)
}

fn futex(target: &dyn Target, pointers: &Pointers, lwp: i32, args: [u64; 6]) -> Blocked {
    let (word, operation, expected, timeout) = (Addr(args[0]), args[1], args[2] as u32, args[3]);
    let waits = is_futex_wait(operation);
    let asleep = target.read_u32(word).is_ok_and(|value| value == expected);
    if !waits || timeout != 0 || !asleep {
        return Blocked::No;
    }
    if operation & FUTEX_PRIVATE != 0 {
        return Blocked::Futex(word);
    }
    match pointers.joined(target, lwp, word, expected) {
        Some(joined) => Blocked::Join(joined),
        // Without FUTEX_PRIVATE_FLAG, and yet of no use to others.
        None if target.is_shared(word) == Some(false) => Blocked::Futex(word),
        None => Blocked::No,
    }
}
