//! What a thread waits for, by its system call, the functions on its stack, memory, and what procfs shows.

use std::cell::{OnceCell, RefCell};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use ompd_process::live::{Child, Descriptor, DescriptorKind, Surroundings};
use ompd_process::{Addr, Registers, Syscall, Target};
use ompd_runtime::Origin;
use ompd_runtime::os::{self, Blocked, MUTEX_OWNER, RwLock};
use ompd_stack::Stacks;

use super::UNKNOWN_CALL;
use super::calls::InCall;
use super::model::{Described, MpiArguments, ObjectKind, OutsideWait, Read, RwHolder};
use super::names::{is_device_library, is_of_device_library, mpi_name, mpi_waits, plain_name, waits_for_device};

/// Descriptors of one `poll` that are told one by one.
const MOST_POLLED: usize = 16;
/// Descriptors of one `poll` that are looked at.
const MOST_LISTED: u64 = 4096;

/// Descriptors that are looked at, of all threads together.
const MOST_DESCRIPTORS: usize = 4096;

/// System calls on the descriptor that is their first argument, in which threads wait for others.
const ON_DESCRIPTOR: [&str; 27] = [
    "read",
    "pread64",
    "readv",
    "preadv",
    "preadv2",
    "recvfrom",
    "recvmsg",
    "recvmmsg",
    "accept",
    "accept4",
    "write",
    "pwrite64",
    "writev",
    "pwritev",
    "pwritev2",
    "sendto",
    "sendmsg",
    "sendmmsg",
    "connect",
    "fsync",
    "fdatasync",
    "flock",
    "ftruncate",
    "fallocate",
    "fcntl",
    "ioctl",
    "sync_file_range",
];

/// Operations of `futex` and their flags (futex(2)).
const FUTEX_PRIVATE: u64 = 128;
const FUTEX_CLOCK_REALTIME: u64 = 256;
const FUTEX_WAIT_BITSET: u64 = 9;
const CLOCK_REALTIME: i32 = 0;
const CLOCK_MONOTONIC: i32 = 1;
/// `clock_nanosleep`: the time is a point in time.
const TIMER_ABSTIME: u64 = 1;
/// `waitid`: one process.
const P_PID: u64 = 1;

/// Where values are read.
pub(super) struct Waits<'a> {
    pub(super) target: &'a dyn Target,
    pub(super) stacks: &'a Stacks,
    pub(super) surroundings: Option<Surroundings>,
    /// What was found of descriptors, by number.
    pub(super) descriptors: RefCell<BTreeMap<i32, Option<Descriptor>>>,
    pub(super) children: OnceCell<Option<Vec<Child>>>,
    /// Whether the process has a library that drives devices.
    pub(super) device_library: OnceCell<bool>,
}

/// A thread whose wait is asked for.
pub(super) struct Waiter<'a> {
    pub(super) lwp: i32,
    /// The system call it is in, and its name.
    pub(super) call: Option<(Syscall, &'a str)>,
    pub(super) registers: Option<&'a Registers>,
    pub(super) blocked: Blocked,
    pub(super) stack: &'a InCall,
}

impl Waits<'_> {
    /// What a thread waits for; `None` if it waits for nothing. The other ends of pipes and what sockets are is not looked for.
    pub(super) fn of(&self, waiter: &Waiter<'_>) -> Option<OutsideWait> {
        if let Some(function) = waiter.mpi() {
            return Some(OutsideWait::Mpi { function, arguments: MpiArguments::default() });
        }
        // What is known of a thread that sleeps comes first.
        let is_owned = matches!(waiter.blocked, Blocked::Mutex(..) | Blocked::Join(_));
        if let Some(function) = waiter.device().filter(|_| !is_owned) {
            return Some(OutsideWait::Device { function });
        }
        let Some((call, name)) = waiter.call else {
            let unknown = waiter.registers.filter(|registers| registers.is_in_unknown_call(self.target.arch()));
            return unknown.map(|_| OutsideWait::SystemCall { name: UNKNOWN_CALL.into() });
        };
        if let Some(function) = waiter.device_library().filter(|_| !is_owned && self.has_device_library()) {
            return Some(OutsideWait::DeviceLibrary { function });
        }
        let found = waiter.registers.and_then(|registers| match name {
            "futex" => Some(self.futex(waiter, call)),
            "nanosleep" => Some(self.sleep(registers, CLOCK_REALTIME, 0, call.args[0], call.args[1])),
            "clock_nanosleep" => {
                let [clock, flags, request, rest, ..] = call.args;
                Some(self.sleep(registers, clock as i32, flags, request, rest))
            }
            "wait4" => Some(self.child(name, Some(call.args[0] as i32).filter(|pid| *pid > 0))),
            "waitid" => Some(self.child(name, (call.args[0] == P_PID).then_some(call.args[1] as i32))),
            "vfork" => Some(self.child(name, None)),
            "poll" | "ppoll" => Some(self.poll(name, call)),
            "select" | "pselect6" => Some(self.select(name, call)),
            "epoll_wait" | "epoll_pwait" | "epoll_pwait2" => Some(self.epoll(name, call)),
            _ if ON_DESCRIPTOR.contains(&name) => Some(self.on_descriptor(waiter.lwp, name, call)),
            _ => None,
        });
        Some(found.unwrap_or_else(|| self.in_kernel(waiter.lwp, name, None)))
    }

    /// True if the process has a library that drives devices.
    fn has_device_library(&self) -> bool {
        *self.device_library.get_or_init(|| self.target.modules().iter().any(|module| is_device_library(&module.path)))
    }

    /// A call of which nothing more is known, or in which the thread cannot be interrupted.
    fn in_kernel(&self, lwp: i32, name: &str, on: Option<Described>) -> OutsideWait {
        let state = self.surroundings.as_ref().and_then(|of| of.thread(lwp)).filter(|state| state.letter == 'D');
        match (state, on) {
            (Some(state), on) => OutsideWait::KernelWait { call: name.into(), on, channel: state.channel },
            (None, Some(on)) => OutsideWait::Descriptor { call: name.into(), on },
            (None, None) => OutsideWait::SystemCall { name: name.into() },
        }
    }

    fn on_descriptor(&self, lwp: i32, name: &str, call: Syscall) -> OutsideWait {
        let state = || self.surroundings.as_ref().and_then(|of| of.thread(lwp));
        let on = self.described(call.args[0] as i32, &|| state().is_some_and(|state| state.letter != 'D'));
        // Pipes and sockets are waited for in a state that a signal ends.
        let is_file =
            on.descriptor.as_ref().is_none_or(|of| matches!(of.kind, DescriptorKind::File | DescriptorKind::Other));
        if is_file { self.in_kernel(lwp, name, Some(on)) } else { OutsideWait::Descriptor { call: name.into(), on } }
    }

    fn described(&self, number: i32, answers: &dyn Fn() -> bool) -> Described {
        let mut known = self.descriptors.borrow_mut();
        let may_ask = known.len() < MOST_DESCRIPTORS;
        let ask = || self.surroundings.as_ref().filter(|_| may_ask).and_then(|of| of.descriptor(number, answers));
        let descriptor = known.entry(number).or_insert_with(ask).clone();
        Described { number, descriptor, socket: None, ends: None }
    }

    fn poll(&self, name: &str, call: Syscall) -> OutsideWait {
        // `struct pollfd`: the descriptor, which counts if it is not negative, and eight bytes in all.
        let bytes = self.bytes(Addr(call.args[0]), 8 * call.args[1].min(MOST_LISTED));
        let number = |one: &[u8]| self.target.arch().byte_order.uint(&one[..4]) as i32;
        let numbers = bytes.map(|bytes| bytes.chunks_exact(8).map(number).collect());
        let limit = (name == "poll").then_some(call.args[2] as i32).and_then(|limit| u64::try_from(limit).ok());
        self.polled(name, numbers, call.args[1] > MOST_LISTED, limit.map(Duration::from_millis))
    }

    fn select(&self, name: &str, call: Syscall) -> OutsideWait {
        let most = call.args[0].min(MOST_LISTED);
        // Each set is an array of words with a bit for each descriptor.
        let words = |set: u64| {
            let bytes = if set == 0 { Some(Vec::new()) } else { self.bytes(Addr(set), 8 * most.div_ceil(64)) };
            let word = |bytes: &[u8]| self.target.arch().byte_order.uint(bytes);
            bytes.map(|bytes| bytes.chunks_exact(8).map(word).collect::<Vec<u64>>())
        };
        let sets: Option<Vec<Vec<u64>>> = call.args[1..4].iter().map(|set| words(*set)).collect();
        let numbers = sets.map(|sets| {
            let is_in = |number: &u64| {
                let word = |set: &Vec<u64>| set.get((number / 64) as usize).copied().unwrap_or(0);
                sets.iter().any(|set| word(set) >> (number % 64) & 1 == 1)
            };
            (0..most).filter(is_in).filter_map(|number| i32::try_from(number).ok()).collect()
        });
        self.polled(name, numbers, call.args[0] > MOST_LISTED, None)
    }

    fn epoll(&self, name: &str, call: Syscall) -> OutsideWait {
        let set = self.described(call.args[0] as i32, &|| true);
        let numbers = match set.descriptor {
            Some(Descriptor { kind: DescriptorKind::Epoll(watched), .. }) => Some(watched),
            _ => None,
        };
        let limit = (name != "epoll_pwait2").then_some(call.args[3] as i32).and_then(|limit| u64::try_from(limit).ok());
        self.polled(name, numbers, false, limit.map(Duration::from_millis))
    }

    fn polled(&self, name: &str, numbers: Option<Vec<i32>>, more: bool, limit: Option<Duration>) -> OutsideWait {
        let numbers = numbers.map(|numbers| numbers.into_iter().filter(|number| *number >= 0).collect::<Vec<_>>());
        let first = numbers.iter().flatten().take(MOST_POLLED);
        let on = first.map(|number| self.described(*number, &|| true)).collect();
        OutsideWait::Poll {
            call: name.into(),
            on,
            count: numbers.filter(|_| !more).map(|numbers| numbers.len()),
            limit,
        }
    }

    fn child(&self, name: &str, pid: Option<i32>) -> OutsideWait {
        let surroundings = self.surroundings.as_ref();
        let children = match pid {
            Some(pid) => surroundings.and_then(|of| of.child(pid)).map(|child| vec![child]),
            None => self.children.get_or_init(|| surroundings.and_then(Surroundings::children)).clone(),
        };
        OutsideWait::Child { call: name.into(), pid, children }
    }

    /// `rest` is where the kernel writes how much is left of a sleep that is interrupted.
    fn sleep(&self, registers: &Registers, clock: i32, flags: u64, request: u64, rest: u64) -> OutsideWait {
        let time = |addr: u64| self.time(Addr(addr)).map(|value| Read { value, origin: Origin::Registers });
        if flags & TIMER_ABSTIME != 0 {
            return OutsideWait::Sleep { length: None, left: self.until(clock, Addr(request)) };
        }
        // Only a stop interrupts it.
        let interrupted = registers.known == Registers::ALL;
        let left = Some(rest).filter(|rest| *rest != 0 && interrupted).and_then(time);
        let length = Some(request).filter(|request| *request != rest || !interrupted).and_then(time);
        OutsideWait::Sleep { length, left }
    }

    /// How long it is until a point in time.
    fn until(&self, clock: i32, at: Addr) -> Option<Read<Duration>> {
        let (at, now) = (self.time(at)?, self.surroundings.as_ref()?.clock(clock)?);
        Some(Read { value: at.saturating_sub(now), origin: Origin::Os })
    }

    fn futex(&self, waiter: &Waiter<'_>, call: Syscall) -> OutsideWait {
        let [word, operation, _, timeout, ..] = call.args;
        let read = |value: Addr| Read { value, origin: Origin::Registers };
        let kind = waiter.object();
        let word = Some(read(Addr(word)));
        let clock = if operation & FUTEX_CLOCK_REALTIME != 0 { CLOCK_REALTIME } else { CLOCK_MONOTONIC };
        let absolute = operation & !(FUTEX_PRIVATE | FUTEX_CLOCK_REALTIME) == FUTEX_WAIT_BITSET;
        let left = Some(Addr(timeout)).filter(|at| !at.is_null() && absolute).and_then(|at| self.until(clock, at));
        let holder = |value| Some(Read { value, origin: Origin::Os });
        match (waiter.blocked, kind) {
            (Blocked::Mutex(_, owner), Some(Object::RwLock)) => {
                OutsideWait::RwLock { word, holder: holder(RwHolder::Writer(owner)), left }
            }
            (_, Some(Object::RwLock)) => {
                OutsideWait::RwLock { word, holder: word.and_then(|of| holder(self.rwlock_holder(of.value)?)), left }
            }
            (Blocked::Mutex(mutex, owner), _) => {
                OutsideWait::Mutex { word: Some(read(mutex)), owner: Some(Read { value: owner, origin: Origin::Os }) }
            }
            (Blocked::Join(thread), _) => {
                OutsideWait::Join { thread: Some(Read { value: thread, origin: Origin::Registers }) }
            }
            (_, Some(Object::Join)) => OutsideWait::Join { thread: None },
            // A mutex that several processes share has the same fields (`struct __pthread_mutex_s` of glibc).
            (_, Some(Object::Mutex)) => {
                let owner = word.filter(|_| operation & FUTEX_PRIVATE == 0).and_then(|of| self.mutex_owner(of.value));
                OutsideWait::Mutex { word, owner }
            }
            (_, Some(Object::Condition)) => OutsideWait::Condition { word, left },
            (_, Some(Object::Other(kind))) => OutsideWait::Object { kind, word, left },
            (_, None) if operation & FUTEX_PRIVATE == 0 && self.target.is_shared(Addr(call.args[0])) == Some(true) => {
                OutsideWait::SharedFutex { word: Addr(call.args[0]) }
            }
            (_, None) => OutsideWait::Object { kind: ObjectKind::Futex, word, left },
        }
    }

    /// Who holds a mutex of glibc, by the word on which threads wait for it.
    fn mutex_owner(&self, word: Addr) -> Option<Read<i32>> {
        let bytes = self.bytes(word.checked_add(MUTEX_OWNER)?, 4)?;
        let owner = i32::try_from(self.target.arch().byte_order.uint(&bytes)).ok().filter(|owner| *owner > 0)?;
        Some(Read { value: self.target.process().thread_of_id(owner)?, origin: Origin::Os })
    }

    /// Who holds a read-write lock of glibc, by the word on which threads wait for it.
    fn rwlock_holder(&self, word: Addr) -> Option<RwHolder> {
        if !os::is_glibc(self.target) {
            return None;
        }
        Some(match RwLock::around(self.target, word)?.holder {
            os::RwHolder::Readers(count) => RwHolder::Readers(count),
            os::RwHolder::Writer(id) => RwHolder::Writer(self.target.process().thread_of_id(i32::try_from(id).ok()?)?),
        })
    }

    /// `struct timespec`.
    fn time(&self, at: Addr) -> Option<Duration> {
        let bytes = self.bytes(at, 16)?;
        let (seconds, nanoseconds) = bytes.split_at_checked(8)?;
        let [seconds, nanoseconds] = [seconds, nanoseconds].map(|part| self.target.arch().byte_order.uint(part));
        let nanoseconds = u32::try_from(nanoseconds).ok().filter(|n| *n < 1_000_000_000)?;
        Some(Duration::new(i64::try_from(seconds).ok()?.try_into().ok()?, nanoseconds))
    }

    /// Bytes of a stack as of the stop, or of other memory as it is now.
    fn bytes(&self, at: Addr, length: u64) -> Option<Vec<u8>> {
        let mut bytes = vec![0; usize::try_from(length.min(8 * MOST_LISTED)).ok()?];
        let copied = self.stacks.read(self.target, at, &mut bytes).is_ok();
        (copied || self.target.read(at, &mut bytes).is_ok()).then_some(bytes)
    }
}

/// What the functions on a stack wait at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Object {
    Mutex,
    Condition,
    Join,
    RwLock,
    Other(ObjectKind),
}

impl Waiter<'_> {
    /// The outermost function of MPI that it is in, if that waits.
    fn mpi(&self) -> Option<Arc<str>> {
        let called = self.stack.call.iter().map(|call| &call.function);
        let name = called.chain(self.stack.functions.iter().rev()).find_map(|name| mpi_name(name))?;
        mpi_waits(&name).then(|| name.into())
    }

    /// The outermost function it is in that waits for a device.
    fn device(&self) -> Option<Arc<str>> {
        self.library_functions().find(|name| waits_for_device(name)).cloned()
    }

    /// The outermost function it is in of a library for devices.
    fn device_library(&self) -> Option<Arc<str>> {
        self.library_functions().find(|name| is_of_device_library(name)).cloned()
    }

    /// The functions of libraries that it is in, outermost first.
    fn library_functions(&self) -> impl Iterator<Item = &Arc<str>> {
        let called = self.stack.call.iter().map(|call| &call.function);
        called.chain(self.stack.functions.iter().rev())
    }

    fn object(&self) -> Option<Object> {
        let called = self.stack.call.as_ref().map(|call| &call.function);
        // A future waits at what it is made of.
        let all = self.stack.functions.iter().chain(called);
        let is_future = |name: &&Arc<str>| object(name) == Some(Object::Other(ObjectKind::Future));
        match all.clone().find(is_future) {
            Some(_) => Some(Object::Other(ObjectKind::Future)),
            None => all.clone().find_map(|name| object(name)),
        }
    }
}

/// What a function waits at.
fn object(function: &str) -> Option<Object> {
    let name = plain_name(function);
    let name = name.trim_start_matches('_');
    Some(match name {
        "pthread_mutex_lock" | "pthread_mutex_timedlock" | "pthread_mutex_clocklock" | "pthread_mutex_cond_lock" => {
            Object::Mutex
        }
        "pthread_cond_wait" | "pthread_cond_timedwait" | "pthread_cond_clockwait" => Object::Condition,
        "pthread_join" | "pthread_clockjoin_ex" | "pthread_timedjoin_np" | "pthread_clockjoin_np" => Object::Join,
        "sem_wait" | "sem_timedwait" | "sem_clockwait" | "new_sem_wait" => Object::Other(ObjectKind::Semaphore),
        "pthread_barrier_wait" => Object::Other(ObjectKind::Barrier),
        "pthread_once" | "std::call_once" => Object::Other(ObjectKind::Once),
        _ if name.starts_with("pthread_rwlock_") => Object::RwLock,
        _ if ["std::future::", "std::shared_future::", "std::__basic_future", "std::__atomic_futex_unsigned"]
            .iter()
            .any(|prefix| name.starts_with(prefix)) =>
        {
            Object::Other(ObjectKind::Future)
        }
        _ => return None,
    })
}
