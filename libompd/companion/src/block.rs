//! The block that is written, and the thread's place in it.

use std::cell::Cell;
use std::ffi::c_int;
use std::ptr::{null, null_mut};
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64};

use ompt_record::block::{
    CHANGING, Creation, DEVICE_RING, EVENT_WORDS, HELD, Header, Held, MAGIC, PAGE, RUNTIME_NAME, Ring, RingState,
    Shape, State, TASK_BEGUN, TASK_NUMBERS, VERSION, in_ring,
};
use ompt_record::event::Event;

use crate::ompt::Lookup;
pub use crate::shared::NewCreation;
use crate::shared::{self, NewHeld, NewThread};

/// Where the block is, for who looks: its address, or zero ([`ompt_record::block::SYMBOL`]).
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals, reason = "the name of a symbol, in the manner of OMPT's")]
pub static ompt_companion_block: AtomicU64 = AtomicU64::new(0);

/// The block; null until it is there.
static BLOCK: AtomicPtr<u8> = AtomicPtr::new(null_mut());
/// Whether callbacks are to write: the same as the header says, near at hand.
static RECORDING: AtomicBool = AtomicBool::new(false);
/// The shape of the block, once it is there.
static RINGS: AtomicU64 = AtomicU64::new(0);
static EVENTS: AtomicU64 = AtomicU64::new(0);
static REGIONS: AtomicU64 = AtomicU64::new(0);
static TASKS: AtomicU64 = AtomicU64::new(0);

/// A word that is written often, in memory of its own. A reader of data beside it would have to fetch that from the other
/// processor each time. Some processors fetch two lines of 64 bytes at once.
#[repr(align(128))]
struct Alone(AtomicU64);

/// Numbers that were given to threads, regions and tasks. They begin at 1, so that none is that of nothing.
static LAST_THREAD: Alone = Alone(AtomicU64::new(0));
static LAST_REGION: Alone = Alone(AtomicU64::new(0));
static TASK_NUMBERS_FETCHED: Alone = Alone(AtomicU64::new(0));

thread_local! {
    /// The ring of this thread; null if it has none. A plain word: to read it neither allocates nor locks.
    static OWN: Cell<*const Ring> = const { Cell::new(null()) };
}

/// Makes the block. Returns whether there is one.
pub fn begin(shape: Shape, omp_version: u32, runtime: &[u8]) -> bool {
    if !BLOCK.load(Acquire).is_null() {
        return true;
    }
    let Ok(size) = usize::try_from(shape.size()) else { return false };
    // Rings get their memory one by one: until then nothing can be read there, and no core grows by it. Pages that cannot be read
    // stand before and behind the block, so that the kernel does not make it one with a neighbour.
    let page = PAGE as usize;
    let whole = size + 2 * page;
    // SAFETY: a new mapping, wherever the kernel likes.
    let reserved = unsafe {
        libc::mmap(
            null_mut(),
            whole,
            libc::PROT_NONE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
            -1,
            0,
        )
    };
    if reserved == libc::MAP_FAILED {
        return false;
    }
    // SAFETY: within what was just mapped.
    let block = unsafe { reserved.cast::<u8>().add(page) };
    let Ok(front) = usize::try_from(shape.rings_at()) else { return false };
    // Debuggers write what cannot be read into cores as well, unless they are told not to. Where the kernel cannot be told, cores are
    // larger.
    // SAFETY: all of the mapping, which nobody else knows of.
    unsafe { libc::madvise(reserved, whole, libc::MADV_DONTDUMP) };
    if !give_memory(block, front) {
        // SAFETY: all of it, and nobody has an address of it.
        unsafe { libc::munmap(reserved, whole) };
        return false;
    }
    // SAFETY: readable and writable from here on, zero, and large enough (asserted in `ompt_record::block`).
    let header = unsafe { &*block.cast::<Header>() };
    name_runtime(header, runtime);
    let values = [
        (&header.version, VERSION),
        (&header.address, block as u64),
        (&header.rings, shape.rings),
        (&header.events, shape.events),
        (&header.regions, shape.regions),
        (&header.tasks, shape.tasks),
        (&header.pid, u64::from(std::process::id())),
        (&header.state, State::Paused as u64),
        (&header.began, now()),
        (&header.began_realtime, clock(libc::CLOCK_REALTIME)),
        (&header.omp_version, u64::from(omp_version)),
        (&header.results_first, u64::MAX),
        (&header.results_second, u64::MAX),
        (&header.results_third, u64::MAX),
        (&header.magic_first, MAGIC[0]),
        (&header.magic_second, MAGIC[1]),
    ];
    for (word, value) in values {
        word.store(value, Relaxed);
    }
    for (own, value) in
        [(&RINGS, shape.rings), (&EVENTS, shape.events), (&REGIONS, shape.regions), (&TASKS, shape.tasks)]
    {
        own.store(value, Relaxed);
    }
    BLOCK.store(block, Release);
    ompt_companion_block.store(block as u64, Release);
    true
}

/// Writes how the runtime calls itself.
fn name_runtime(header: &Header, runtime: &[u8]) {
    let name = (&raw const *header).cast::<u8>().cast_mut();
    let text = runtime.iter().copied().take(RUNTIME_NAME - 1).chain(std::iter::repeat(0)).take(RUNTIME_NAME);
    for (n, byte) in text.enumerate() {
        // SAFETY: behind the header, within the first page, where nobody else in the process reads or writes.
        unsafe { name.add(size_of::<Header>() + n).write(byte) };
    }
}

/// Makes pages of the reserved mapping readable, writable and part of cores. Returns whether they are.
fn give_memory(from: *mut u8, size: usize) -> bool {
    // SAFETY: pages of the companion's own mapping, whose contents stay as they are.
    unsafe {
        libc::mprotect(from.cast(), size, libc::PROT_READ | libc::PROT_WRITE) == 0
            && (libc::madvise(from.cast(), size, libc::MADV_DODUMP) == 0 || *libc::__errno_location() == libc::EINVAL)
    }
}

/// The beginning of the block, if there is one.
pub fn header() -> Option<&'static Header> {
    let block = BLOCK.load(Acquire);
    // SAFETY: what is not null was mapped by `begin`, begins with a header, and is never unmapped.
    (!block.is_null()).then(|| unsafe { &*block.cast::<Header>() })
}

/// The shape of the block.
pub fn shape() -> Option<Shape> {
    Shape::new(RINGS.load(Relaxed), EVENTS.load(Relaxed), REGIONS.load(Relaxed), TASKS.load(Relaxed))
}

/// Whether callbacks are to write.
pub fn is_recording() -> bool {
    RECORDING.load(Relaxed)
}

/// Has callbacks write from now on, or no more.
pub fn set_state(state: State) {
    let Some(header) = header() else { return };
    if state == State::Recording && !is_recording() {
        // What happened before is not known to have been followed by its end.
        header.epoch.fetch_add(1, Relaxed);
    }
    header.state.store(state as u64, Release);
    RECORDING.store(state == State::Recording, Release);
}

/// The time that events have: nanoseconds of `CLOCK_MONOTONIC`.
pub fn now() -> u64 {
    clock(libc::CLOCK_MONOTONIC)
}

/// Nanoseconds of a clock.
fn clock(which: libc::clockid_t) -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a clock that Linux always has, and a place for the answer. The function may be called from signal handlers.
    unsafe { libc::clock_gettime(which, &raw mut now) };
    u64::try_from(now.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(now.tv_nsec).unwrap_or(0)
}

/// Adds 1 to a word that only this thread and its signal handlers write, and gives what it held before.
///
/// Other threads need not be kept out, so it is one instruction without the lock that atomic ones have. With it the processor would
/// wait at each event until what was written of those before has arrived.
#[cfg(target_arch = "x86_64")]
fn add_one(word: &AtomicU64) -> u64 {
    let mut value = 1_u64;
    // SAFETY: the word is there and aligned; a signal handler comes before the instruction or behind it, and others only read.
    unsafe {
        std::arch::asm!("xadd qword ptr [{word}], {value}", word = in(reg) word.as_ptr(), value = inout(reg) value, options(nostack));
    }
    value
}

/// Adds 1 to a word that only this thread and its signal handlers write, and gives what it held before.
#[cfg(not(target_arch = "x86_64"))]
fn add_one(word: &AtomicU64) -> u64 {
    word.fetch_add(1, Relaxed)
}

/// A thread's place in the block.
#[derive(Clone, Copy)]
pub struct Recorder {
    ring: &'static Ring,
}

impl Recorder {
    /// That of the calling thread, if it has one.
    pub fn own() -> Option<Recorder> {
        let ring = OWN.with(Cell::get);
        // SAFETY: what is not null was given to this thread by `take`, and stays mapped.
        (!ring.is_null()).then(|| Recorder { ring: unsafe { &*ring } })
    }

    /// Gives the calling thread a ring: a new one, or that of the thread that ended first.
    pub fn take(kind: c_int) -> Option<Recorder> {
        // In a library that was loaded later, a thread's words are allocated when the thread first uses one. It does so here,
        // even if it gets no ring. Else it would be in a callback, which may interrupt an allocation.
        OWN.with(|own| own.set(null()));
        let pthread = {
            // SAFETY: it cannot fail, and only tells which thread this is.
            unsafe { libc::pthread_self() }
        };
        let (place, _) = Recorder::claim(u64::try_from(kind).unwrap_or(0), own_lwp(), pthread as u64)?;
        OWN.with(|own| own.set(place.ring));
        Some(place)
    }

    /// Takes a ring. Also says which ring it is.
    pub fn claim(kind: u64, lwp: u64, pthread: u64) -> Option<(Recorder, u64)> {
        let (header, shape) = (header()?, shape()?);
        let ended = || shared::take_ended(header.rings_used.load(Acquire), |index| ring(shape, index));
        let Some(index) = new_ring(header, shape).or_else(ended) else {
            header.threads_beyond.fetch_add(1, Relaxed);
            return None;
        };
        let ring = ring(shape, index)?;
        let place = Recorder { ring };
        let id = LAST_THREAD.0.fetch_add(1, Relaxed) + 1;
        shared::give_ring(ring, &NewThread { id, lwp, pthread, kind, began: now() }, || {
            place.stop().store(0, Relaxed);
            for held in place.held() {
                held.wait_id.store(0, Relaxed);
            }
        });
        Some((place, index))
    }

    /// The thread leaves its ring, which keeps its events until another thread needs it.
    pub fn leave(self) {
        OWN.with(|own| own.set(null()));
        self.give_up();
    }

    /// Nobody writes into the ring any more, until another thread needs it.
    pub fn give_up(self) {
        shared::give_up_ring(self.ring, now());
    }

    /// What was given by [`claim`](Recorder::claim), taken up again.
    pub fn of(ring: &'static Ring) -> Recorder {
        Recorder { ring }
    }

    /// Where the ring is.
    pub fn ring(self) -> &'static Ring {
        self.ring
    }

    /// The word that says at which stop point the thread is.
    pub fn stop(self) -> &'static AtomicU64 {
        // SAFETY: within the first page of the ring, aligned, and mapped as long as the process is there.
        unsafe { &*(&raw const *self.ring).cast::<u8>().add(in_ring::STOP_AT as usize).cast::<AtomicU64>() }
    }

    /// The thread's number.
    pub fn id(self) -> u64 {
        self.ring.id.load(Relaxed)
    }

    /// Writes an event of the calling thread into its own ring. Its position is added.
    pub fn write(self, event: Event) {
        // A signal handler that writes as well gets another position.
        let position = add_one(&self.ring.head);
        self.write_at(Event { position, ..event });
    }

    /// Writes events that follow one another, whoever else writes. Their positions are added.
    pub fn write_all(self, events: &[Event]) {
        let first = self.ring.head.fetch_add(events.len() as u64, Relaxed);
        for (event, position) in events.iter().zip(first..) {
            self.write_at(Event { position, ..*event });
        }
    }

    fn write_at(self, event: Event) {
        let index = usize::try_from(event.position & (EVENTS.load(Relaxed) - 1)).unwrap_or(0);
        // SAFETY: the ring is followed by as many events as the block was made with, a power of two.
        let place = unsafe {
            let events = (&raw const *self.ring).cast::<u8>().add(in_ring::EVENTS_AT as usize);
            &*events.cast::<[AtomicU64; EVENT_WORDS]>().add(index)
        };
        shared::write_event(place, event.words());
    }

    /// The number of a new task of this thread.
    pub fn task_number(self) -> u64 {
        // A signal handler may come in between and take numbers too: what it took is not taken again.
        let next = &self.ring.next_task;
        let mut number = next.load(Relaxed);
        loop {
            let (own, after) = match number.is_multiple_of(TASK_NUMBERS) {
                false => (number, number + 1),
                true => {
                    // The first ones begin at `TASK_NUMBERS`: 0 is no number.
                    let first = TASK_NUMBERS_FETCHED.0.fetch_add(TASK_NUMBERS, Relaxed) + TASK_NUMBERS;
                    (first, first + 1)
                }
            };
            match next.compare_exchange(number, after, Relaxed, Relaxed) {
                Ok(_) => return own,
                Err(taken) => number = taken,
            }
        }
    }

    /// Remembers that the thread has a lock.
    pub fn hold(self, wait_id: u64, kind: c_int, codeptr_ra: u64, time: u64) {
        let kind = u64::try_from(kind).unwrap_or(0) | 1 << 32;
        if !shared::hold(self.held(), epoch(), &NewHeld { wait_id, codeptr_ra, time, kind }) {
            self.ring.held_beyond.fetch_add(1, Relaxed);
        }
    }

    /// A nestable lock that the thread has is held once more, or once less.
    pub fn hold_again(self, wait_id: u64, more: bool) {
        if let Some(held) = self.holds(wait_id) {
            let once = 1 << 32;
            if more {
                held.kind.fetch_add(once, Relaxed)
            } else {
                held.kind.fetch_sub(once, Relaxed)
            };
        }
    }

    /// Forgets that the thread has a lock.
    pub fn let_go(self, wait_id: u64) {
        if let Some(held) = self.holds(wait_id) {
            held.wait_id.store(0, Release);
            return;
        }
        // An untied task has gone on on another thread, or whoever unlocks is not who locked.
        let (Some(header), Some(shape)) = (header(), shape()) else { return };
        let epoch = epoch();
        for ring in (0..header.rings_used.load(Acquire)).filter_map(|index| ring(shape, index)) {
            for held in (Recorder { ring }).held() {
                // What is from before a pause is nobody's any more, and not what is let go of now.
                let now = held.epoch.load(Relaxed) == epoch;
                if now && shared::forget(&held.wait_id, wait_id) {
                    return;
                }
            }
        }
    }

    /// Forgets that the thread has a lock that is initialised or destroyed: what it holds from now on is another one.
    ///
    /// The spec has no lock destroyed that is set, but programs do it. What other threads have is not looked for: all rings would have
    /// to be gone through each time.
    pub fn forget(self, wait_id: u64) {
        for held in self.held().iter().filter(|held| held.wait_id.load(Relaxed) == wait_id) {
            held.wait_id.store(0, Release);
        }
    }

    fn holds(self, wait_id: u64) -> Option<&'static Held> {
        let epoch = epoch();
        let same = |held: &&Held| held.wait_id.load(Relaxed) == wait_id && held.epoch.load(Relaxed) == epoch;
        self.held().iter().find(same)
    }

    fn held(self) -> &'static [Held; HELD] {
        // SAFETY: they lie there in the first page of each ring.
        unsafe { &*(&raw const *self.ring).cast::<u8>().add(in_ring::HELD_AT as usize).cast::<[Held; HELD]>() }
    }
}

/// A ring that nobody had yet, with memory. Only such with memory count as used: others cannot be looked at.
fn new_ring(header: &Header, shape: Shape) -> Option<u64> {
    let block = BLOCK.load(Acquire);
    let size = usize::try_from(shape.ring_size()).ok()?;
    loop {
        let index = header.rings_used.load(Acquire);
        if index >= shape.rings {
            return None;
        }
        let at = usize::try_from(shape.ring_at(index)).ok()?;
        // Another thread that is about to get the ring does the same.
        // SAFETY: within the block.
        if !give_memory(unsafe { block.add(at) }, size) {
            return None;
        }
        if header.rings_used.compare_exchange(index, index + 1, AcqRel, Relaxed).is_ok() {
            return Some(index);
        }
    }
}

/// The ring with an index, which has to be one that is used.
fn ring(shape: Shape, index: u64) -> Option<&'static Ring> {
    let block = BLOCK.load(Acquire);
    let at = usize::try_from(shape.ring_at(index)).ok()?;
    // SAFETY: within the block, and mapped as all rings that are used (`new_ring`).
    (!block.is_null()).then(|| unsafe { &*block.add(at).cast::<Ring>() })
}

fn epoch() -> u64 {
    header().map_or(0, |header| header.epoch.load(Relaxed))
}

/// The runtime that is recorded has ended: the next one that asks takes its place.
pub fn runtime_ends() {
    VACANT.store(true, Release);
}

/// Whether the runtime that was recorded has ended.
static VACANT: AtomicBool = AtomicBool::new(false);

/// Whether the runtime with this look-up function is the one that is recorded. It is the first that asks, or one that comes after
/// that has ended. The latter happens in a program that loads and unloads a library that uses OpenMP. Others are counted.
pub fn belongs_to(lookup: Lookup, omp_version: u32, runtime: &[u8]) -> bool {
    let (Some(header), Some(shape)) = (header(), shape()) else { return false };
    let lookup = lookup as usize as u64;
    if VACANT.swap(false, AcqRel) {
        // Threads of the runtime that ended may continue, but it reports them no more.
        for ring in (0..header.rings_used.load(Acquire)).filter_map(|index| ring(shape, index)) {
            if ring.state.load(Relaxed) == RingState::Used as u64 && ring.kind.load(Relaxed) & DEVICE_RING == 0 {
                (Recorder { ring }).give_up();
            }
        }
        name_runtime(header, runtime);
        header.omp_version.store(u64::from(omp_version), Relaxed);
        header.lookup.store(lookup, Release);
        return true;
    }
    match header.lookup.compare_exchange(0, lookup, AcqRel, Acquire) {
        Ok(_) => true,
        Err(first) if first == lookup => true,
        Err(_) => {
            header.runtimes_beyond.fetch_add(1, Relaxed);
            false
        }
    }
}

/// Remembers where a new region comes from, and gives its number.
pub fn region_begins(creation: &NewCreation) -> u64 {
    let next = || LAST_REGION.0.fetch_add(1, Relaxed) + 1;
    let (Some(header), Some(shape)) = (header(), shape()) else { return next() };
    create(shape.regions_at(), shape.regions, &header.regions_beyond, creation, next)
}

/// Remembers where a region comes from to which the runtime gave a number.
pub fn region_begins_as(id: u64, creation: &NewCreation) {
    if let (Some(header), Some(shape)) = (header(), shape())
        && ![0, CHANGING].contains(&id)
    {
        create(shape.regions_at(), shape.regions, &header.regions_beyond, creation, || id);
    }
}

/// Remembers where a task comes from to which the runtime gave a number.
pub fn task_begins_as(id: u64, creation: &NewCreation) {
    if let (Some(header), Some(shape)) = (header(), shape())
        && ![0, CHANGING].contains(&id)
    {
        create(shape.tasks_at(), shape.tasks, &header.tasks_beyond, creation, || id);
    }
}

/// Remembers where a new task comes from, and gives its number.
pub fn task_begins(place: Recorder, creation: &NewCreation) -> u64 {
    let next = || place.task_number();
    let (Some(header), Some(shape)) = (header(), shape()) else { return next() };
    create(shape.tasks_at(), shape.tasks, &header.tasks_beyond, creation, next)
}

/// Tries so many numbers until one has its place in the table free.
const TRIES: usize = 8;

fn create(table: u64, entries: u64, beyond: &AtomicU64, new: &NewCreation, next: impl Fn() -> u64) -> u64 {
    let epoch = epoch();
    let mut id = next();
    for _ in 0..TRIES {
        let Some(entry) = entry(table, entries, id) else { return id };
        if shared::create(entry, epoch, id, new) {
            return id;
        }
        id = next();
    }
    beyond.fetch_add(1, Relaxed);
    id
}

/// The region with this number is over.
pub fn region_ends(id: u64) {
    if let Some(shape) = shape() {
        forget(shape.regions_at(), shape.regions, id);
    }
}

/// True when an explicit task is executed for the first time. A runtime tells as well of a thread that comes back to a task, and of
/// each part of an untied one.
pub fn task_begins_first(id: u64) -> bool {
    let table = shape().filter(|_| id != 0).and_then(|shape| entry(shape.tasks_at(), shape.tasks, id));
    let own = table.filter(|entry| entry.id.load(Relaxed) == id);
    own.is_some_and(|entry| entry.flags.fetch_or(TASK_BEGUN, Relaxed) & TASK_BEGUN == 0)
}

/// The task with this number is over.
pub fn task_ends(id: u64) {
    if let Some(shape) = shape() {
        forget(shape.tasks_at(), shape.tasks, id);
    }
}

fn forget(table: u64, entries: u64, id: u64) {
    if id != 0
        && let Some(entry) = entry(table, entries, id)
    {
        // If it is another's there is nothing to forget.
        shared::forget(&entry.id, id);
    }
}

fn entry(table: u64, entries: u64, id: u64) -> Option<&'static Creation> {
    let block = BLOCK.load(Acquire);
    let at = usize::try_from(table + (id & (entries - 1)) * size_of::<Creation>() as u64).ok()?;
    // SAFETY: the tables lie before the rings and are mapped from the beginning; `entries` is a power of two.
    (!block.is_null()).then(|| unsafe { &*block.add(at).cast::<Creation>() })
}

/// In the child of a fork: the block is a copy, of which one thread is left.
pub fn forked() {
    let (Some(header), Some(shape)) = (header(), shape()) else { return };
    header.pid.store(u64::from(std::process::id()), Relaxed);
    header.forks.fetch_add(1, Relaxed);
    let own = OWN.with(Cell::get);
    for ring in (0..header.rings_used.load(Acquire)).filter_map(|index| ring(shape, index)) {
        if std::ptr::eq(ring, own) {
            ring.lwp.store(own_lwp(), Relaxed);
        } else if ring.state.load(Relaxed) != RingState::Free as u64 {
            shared::give_up_ring(ring, now());
        }
    }
}

/// The kernel's id of the calling thread.
pub fn own_lwp() -> u64 {
    // SAFETY: it cannot fail, and only tells which thread this is.
    let lwp = unsafe { libc::gettid() };
    u64::try_from(lwp).unwrap_or(0)
}

/// Where the block begins; null if there is none.
pub fn base() -> *const u8 {
    BLOCK.load(Acquire)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One test, since there is one block in a process.
    #[test]
    fn the_block() {
        let shape = Shape::new(4, 64, 64, 64).expect("a shape");
        let before = monotonic();
        assert!(begin(shape, 0, &[b'n'; 2 * RUNTIME_NAME]), "there is memory");
        let header = header().expect("a block");
        assert!((before..=monotonic()).contains(&header.began.load(Relaxed)), "began at a time of CLOCK_MONOTONIC");
        a_long_name_is_cut(header);
        pages_around_it_cannot_be_read(shape);
        set_state(State::Recording);
        let claim = || Recorder::claim(0, 0, 0).map(|(place, _)| place);
        let (one, other) = (claim().expect("a ring"), claim().expect("a ring"));
        assert_eq!([one.id(), other.id()], [1, 2], "0 is no thread's number");
        what_is_held(one, other);
        as_much_is_held_as_there_is_room_for(one);
        no_two_tasks_have_one_number([one, other]);
        regions_of_before_a_pause_make_room(header, shape);
        a_task_begins_once(one);

        // All rings are in use.
        let more = [claim().expect("a ring"), claim().expect("a ring")];
        assert!(claim().is_none());
        assert_eq!(header.threads_beyond.load(Relaxed), 1);
        other.stop().store(7, Relaxed);
        assert_eq!(other.stop().load(Relaxed), 7);
        other.give_up();
        more[0].give_up();
        let next = claim().expect("the ring of the thread that ended first");
        assert!(std::ptr::eq(next.ring(), other.ring()));
        assert_eq!((next.id(), next.stop().load(Relaxed)), (5, 0), "nothing is left of the thread before");
        assert!(claim().is_some_and(|last| std::ptr::eq(last.ring(), more[0].ring())));
        runtimes_come_and_go(header, one, more[1]);

        // `end`, then `start` and `pause` of `omp_control_tool`.
        for command in [4, 1, 2] {
            crate::control::obey(command, 0);
            assert_eq!(header.state.load(Relaxed), State::Ended as u64, "command {command}");
        }
    }

    /// Nanoseconds of `CLOCK_MONOTONIC`, asked for in another way.
    fn monotonic() -> u64 {
        let now = nix::time::clock_gettime(nix::time::ClockId::CLOCK_MONOTONIC).expect("Linux has this clock");
        u64::try_from(std::time::Duration::from(now).as_nanos()).expect("a time of this system")
    }

    /// Readers take the name up to its zero.
    fn a_long_name_is_cut(header: &Header) {
        let mut name = [0; RUNTIME_NAME + 1];
        let memory = std::fs::File::open("/proc/self/mem").expect("own memory");
        let at = (&raw const *header) as u64 + size_of::<Header>() as u64;
        std::os::unix::fs::FileExt::read_exact_at(&memory, &mut name, at).expect("a page of the block");
        assert_eq!(name.iter().position(|byte| *byte != b'n'), Some(RUNTIME_NAME - 1));
        assert_eq!(name[RUNTIME_NAME - 1..], [0, 0]);
    }

    /// The kernel joins neighbours with equal rights. The pages around the block keep it apart, and no core has them.
    fn pages_around_it_cannot_be_read(shape: Shape) {
        let (first, page) = (base() as u64, PAGE);
        let maps = std::fs::read_to_string("/proc/self/smaps").expect("own mappings");
        let mut mappings = Vec::new();
        for line in maps.lines() {
            let range = line.split_once(' ').and_then(|(range, rest)| Some((range.split_once('-')?, rest)));
            let hex = |text: &str| u64::from_str_radix(text, 16).ok();
            if let Some(((from, to), rest)) = range
                && let (Some(from), Some(to)) = (hex(from), hex(to))
            {
                mappings.push((from..to, rest[..4].to_owned(), false));
            } else if let (Some(flags), Some(last)) = (line.strip_prefix("VmFlags:"), mappings.last_mut()) {
                last.2 = flags.split(' ').any(|flag| flag == "dd");
            }
        }
        let at = |address| {
            let found = mappings.iter().find(|(range, ..)| range.contains(&address));
            found.map(|(range, rights, undumped)| (range.clone(), rights.as_str(), *undumped))
        };
        let rings = first + shape.rings_at();
        assert_eq!(at(first - page), Some((first - page..first, "---p", true)));
        assert_eq!(at(first), Some((first..rings, "rw-p", false)));
        // No thread has a ring yet.
        assert_eq!(at(rings), Some((rings..first + shape.size() + page, "---p", true)));
    }

    fn what_is_held(one: Recorder, other: Recorder) {
        one.hold(8, 1, 0, 0);
        set_state(State::Paused);
        // Lets go of it, unseen.
        set_state(State::Recording);
        other.hold(8, 1, 0, 0);
        one.let_go(8);
        assert!(other.holds(8).is_none(), "what is let go of is what is held now");

        one.hold(16, 1, 0, 0);
        one.forget(16);
        one.hold(16, 1, 0, 0);
        one.let_go(16);
        assert!(one.holds(16).is_none(), "a lock that was destroyed is not held");

        one.hold(24, 1, 0, 0);
        set_state(State::Recording);
        assert!(one.holds(24).is_some(), "to be told to start without a pause forgets nothing");

        // A nestable lock: its kind, and how often it is held.
        let kind =
            |place: Recorder| place.holds(32).map(|held| held.kind.load(Relaxed)).map(|kind| (kind as u32, kind >> 32));
        one.hold(32, 6, 0, 0);
        assert_eq!(kind(one), Some((6, 1)));
        one.hold_again(32, true);
        one.hold_again(32, true);
        one.hold_again(32, false);
        assert_eq!(kind(one), Some((6, 2)));
        other.hold_again(32, true);
        assert_eq!(kind(one), Some((6, 2)), "the other thread does not hold it");
    }

    /// What is from before a pause may be over, and makes room.
    fn as_much_is_held_as_there_is_room_for(one: Recorder) {
        let beyond = || one.ring.held_beyond.load(Relaxed);
        set_state(State::Paused);
        set_state(State::Recording);
        // A signal handler interrupts the thread while it changes this one.
        one.held()[0].wait_id.store(CHANGING, Relaxed);
        let locks = 101..100 + HELD as u64;
        locks.clone().for_each(|lock| one.hold(lock, 1, 0, 0));
        assert_eq!(beyond(), 0);
        assert!(locks.clone().all(|lock| one.holds(lock).is_some()));
        one.hold(1000, 1, 0, 0);
        assert_eq!((beyond(), one.holds(1000).is_none()), (1, true));
        set_state(State::Paused);
        set_state(State::Recording);
        one.hold(1000, 1, 0, 0);
        assert_eq!((beyond(), one.holds(1000).is_some()), (1, true));
        assert_eq!(one.held()[0].wait_id.load(Relaxed), CHANGING);
    }

    fn no_two_tasks_have_one_number(places: [Recorder; 2]) {
        let count = 3 * TASK_NUMBERS as usize;
        let mut numbers: Vec<u64> = (0..count).flat_map(|_| places.map(Recorder::task_number)).collect();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!((numbers.len(), numbers[0]), (2 * count, TASK_NUMBERS));
        numbers.dedup_by_key(|number| *number / TASK_NUMBERS);
        assert_eq!(numbers.len(), 6, "each thread uses up three portions");
    }

    fn a_task_begins_once(one: Recorder) {
        let id = task_begins(one, &NewCreation { flags: 4, ..NewCreation::default() });
        assert_eq!([id, id, id + 1, 0].map(task_begins_first), [true, false, false, false]);
        let shape = shape().expect("a block");
        let place = || entry(shape.tasks_at(), shape.tasks, id).map(|entry| entry.id.load(Relaxed));
        assert_eq!(place(), Some(id));
        task_ends(id);
        assert_eq!(place(), Some(0), "there is room for another task");
    }

    /// Threads of a runtime that has ended are not reported any more. A device's ring is its device's.
    fn runtimes_come_and_go(header: &Header, thread: Recorder, device: Recorder) {
        extern "C" fn one(_: *const std::ffi::c_char) -> Option<crate::ompt::EntryPoint> {
            None
        }
        extern "C" fn other(name: *const std::ffi::c_char) -> Option<crate::ompt::EntryPoint> {
            std::hint::black_box(name);
            one(name)
        }
        device.ring.kind.store(DEVICE_RING, Relaxed);
        let beyond = || header.runtimes_beyond.load(Relaxed);
        let states = || [thread, device].map(|place| place.ring.state.load(Relaxed));
        assert!(belongs_to(one, 1, b"one") && belongs_to(one, 1, b"one"));
        assert_eq!((belongs_to(other, 2, b"other"), beyond()), (false, 1));
        runtime_ends();
        let used = RingState::Used as u64;
        assert_eq!(states(), [used; 2]);
        assert!(belongs_to(other, 2, b"other"));
        assert_eq!((beyond(), header.omp_version.load(Relaxed)), (1, 2));
        assert_eq!(states(), [RingState::Ended as u64, used]);
        assert_eq!((belongs_to(one, 1, b"one"), beyond()), (false, 2));
    }

    fn regions_of_before_a_pause_make_room(header: &Header, shape: Shape) {
        let beyond = || header.regions_beyond.load(Relaxed);
        let begin = |detail| region_begins(&NewCreation { detail, ..NewCreation::default() });
        let kept = |id| {
            let entry = entry(shape.regions_at(), shape.regions, id).expect("a place");
            (entry.id.load(Relaxed) == id).then(|| entry.detail.load(Relaxed))
        };
        let all: Vec<u64> = (0..shape.regions).map(begin).collect();
        assert!(all.iter().zip(0..).all(|(id, detail)| kept(*id) == Some(detail)), "{all:?}");
        let one_more = begin(64);
        assert_eq!((beyond(), kept(one_more)), (1, None));
        // A region that is over leaves its place. Another region's number does not.
        region_ends(all[5] + shape.regions);
        assert_eq!(kept(all[5]), Some(5));
        region_ends(all[5]);
        assert_eq!(kept(all[5]), None);
        set_state(State::Paused);
        set_state(State::Recording);
        // A signal handler interrupts the thread while it changes this one.
        let next = begin(65);
        let changing = entry(shape.regions_at(), shape.regions, next + 1).expect("a place");
        changing.id.store(CHANGING, Relaxed);
        let after = begin(66);
        assert_eq!((beyond(), kept(next), kept(after)), (1, Some(65), Some(66)));
        assert_eq!((after, changing.id.load(Relaxed)), (next + 2, CHANGING));
    }
}
