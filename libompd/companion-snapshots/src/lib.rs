//! The companion, with threads that ask the runtime about themselves at a signal. Tests compare the answers with what is read.
//!
//! `OMPT_COMPANION_SNAPSHOT` is the number of the signal. Users load `libompt_companion.so`, which has no signal handler.

mod ompt;

use std::ffi::c_int;
use std::io::Write as _;
use std::ptr::{null, null_mut};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::fence;

use ompt_companion::{Lookup, ompt_companion_block};
use ompt_record::block::{Header, Ring, RingState, Shape, State, in_ring};
use ompt_record::snapshot::{LEVELS, LEVELS_AT, Level, Snapshot};

use crate::ompt::{Data, Entries, Frame};

/// In the place of the result of an entry point that was not called.
const NOT_ASKED: u64 = 3;

/// The variable with the number of the signal.
const SIGNAL: &str = "OMPT_COMPANION_SNAPSHOT";

/// Called when the library is loaded.
#[used]
#[unsafe(link_section = ".init_array")]
static LOADED: extern "C" fn() = loaded;

extern "C" fn loaded() {
    let Some(text) = std::env::var_os(SIGNAL) else { return };
    let signal = text.to_str().and_then(|text| text.parse().ok());
    if !signal.is_some_and(set_handler) {
        // Without a standard error nobody can be told.
        let _ = writeln!(std::io::stderr(), "ompt_companion_snapshots: {SIGNAL}={}: no signal", text.display());
    }
}

/// Sets the handler of a signal. Returns whether there is such a signal.
fn set_handler(signal: c_int) -> bool {
    // SAFETY: all of it is plain numbers, of which zero is one.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    let handler: extern "C" fn(c_int) = handler;
    action.sa_sigaction = handler as libc::sighandler_t;
    action.sa_flags = libc::SA_RESTART;
    // SAFETY: the action is initialised, and its handler does only what handlers may.
    unsafe { libc::sigaction(signal, &raw const action, null_mut()) == 0 }
}

extern "C" fn handler(_signal: c_int) {
    // SAFETY: it cannot fail.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: this thread's errno.
    let before = unsafe { *errno };
    // SAFETY: the word is null or the address of the companion's block, which is never unmapped.
    if let Some(header) = unsafe { (ompt_companion_block.load(Acquire) as *const Header).as_ref() }
        && let Some(ring) = own_ring(header)
        && let Some(lookup) = lookup(header)
    {
        // SAFETY: the runtime has not ended, and is loaded.
        take(ring, &unsafe { Entries::look_up(lookup) });
    }
    // SAFETY: as above.
    unsafe { *errno = before };
}

/// The ring of the calling thread. It is found by the kernel's id of the thread. The companion's thread-local word may not exist
/// yet, and a handler may not allocate it.
fn own_ring(header: &Header) -> Option<&Ring> {
    let [rings, events, regions, tasks] =
        [&header.rings, &header.events, &header.regions, &header.tasks].map(|word| word.load(Relaxed));
    let shape = Shape::new(rings, events, regions, tasks)?;
    // SAFETY: it cannot fail.
    let lwp = u64::try_from(unsafe { libc::gettid() }).ok()?;
    let block = (&raw const *header).cast::<u8>();
    let used = (0..header.rings_used.load(Acquire)).filter_map(|index| usize::try_from(shape.ring_at(index)).ok());
    // SAFETY: rings that are used lie there and stay mapped.
    let mut rings = used.map(|at| unsafe { &*block.add(at).cast::<Ring>() });
    rings.find(|ring| ring.state.load(Acquire) == RingState::Used as u64 && ring.lwp.load(Relaxed) == lwp)
}

/// The look-up function of the runtime; `None` once the runtime has ended, for it may be unloaded.
fn lookup(header: &Header) -> Option<Lookup> {
    let lookup = header.lookup.load(Acquire) as *const ();
    let ended = State::from_number(header.state.load(Acquire)) == Some(State::Ended);
    // SAFETY: the companion has put the function's address there (`Header::lookup`).
    (!ended && !lookup.is_null()).then(|| unsafe { std::mem::transmute::<*const (), Lookup>(lookup) })
}

/// Writes into the calling thread's ring what the runtime says of the thread.
fn take(ring: &Ring, entries: &Entries) {
    let ring = (&raw const *ring).cast::<u8>();
    // SAFETY: both lie in the ring's first page (`ompt_record::snapshot`), which stays mapped.
    let (snapshot, levels) = unsafe {
        let snapshot = &*ring.add(in_ring::SNAPSHOT_AT as usize).cast::<Snapshot>();
        (snapshot, &*ring.add(LEVELS_AT as usize).cast::<[Level; LEVELS]>())
    };
    snapshot.taken.fetch_add(1, Relaxed);
    fence(Release);
    if let Some(get_state) = entries.get_state {
        let mut wait_id = 0;
        // SAFETY: the entry point may be called from signal handlers (OpenMP 5.2, 19.6.1.11), and gets a place for its answer.
        let state = unsafe { get_state(&raw mut wait_id) };
        snapshot.state.store(number(state), Relaxed);
        snapshot.wait_id.store(wait_id, Relaxed);
    }
    if let Some(get_thread_data) = entries.get_thread_data {
        // SAFETY: as above; what it returns is null or the thread's word.
        let data = unsafe { get_thread_data().as_ref() };
        snapshot.thread_data.store(data.map_or(0, |data| data.load(Relaxed)), Relaxed);
    }
    for (n, level) in (0..).zip(levels) {
        ask(entries, n, level);
    }
    snapshot.taken.fetch_add(1, Release);
}

/// Asks for the task and the region of a level, counted from the innermost.
fn ask(entries: &Entries, n: c_int, level: &Level) {
    let value = |data: *const Data| {
        // SAFETY: null, or a word that the runtime keeps as long as the region or task is there.
        unsafe { data.as_ref() }.map_or(0, |data| data.load(Relaxed))
    };
    level.task_result.store(NOT_ASKED, Relaxed);
    if let Some(get_task_info) = entries.get_task_info {
        let (mut flags, mut thread) = (0, 0);
        let (mut task, mut region): (*const Data, *const Data) = (null(), null());
        let mut frame: *const Frame = null();
        // SAFETY: the entry point may be called from signal handlers (OpenMP 5.2, 19.6.1.14), and gets places for its answers.
        let result = unsafe {
            get_task_info(n, &raw mut flags, &raw mut task, &raw mut frame, &raw mut region, &raw mut thread)
        };
        level.task_result.store(number(result), Relaxed);
        if result == 2 {
            level.task_flags.store(number(flags), Relaxed);
            level.task_data.store(value(task), Relaxed);
            level.task_region_data.store(value(region), Relaxed);
            level.thread_num.store(number(thread), Relaxed);
            // SAFETY: null, or the frame of a task that is there.
            if let Some(frame) = unsafe { frame.as_ref() } {
                level.exit_frame.store(frame.exit_frame, Relaxed);
                level.enter_frame.store(frame.enter_frame, Relaxed);
                let flags = number(frame.exit_frame_flags) | number(frame.enter_frame_flags) << 32;
                level.frame_flags.store(flags, Relaxed);
            }
        }
    }
    level.region_result.store(NOT_ASKED, Relaxed);
    if let Some(get_parallel_info) = entries.get_parallel_info {
        let mut region: *const Data = null();
        let mut size = 0;
        // SAFETY: as above (19.6.1.13).
        let result = unsafe { get_parallel_info(n, &raw mut region, &raw mut size) };
        level.region_result.store(number(result), Relaxed);
        if result == 2 {
            level.region_data.store(value(region), Relaxed);
            level.team_size.store(number(size), Relaxed);
        }
    }
}

/// A C `int`, in the lower half of a word.
fn number(value: c_int) -> u64 {
    u64::from(value.cast_unsigned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_has_its_ring_as_long_as_it_is_used() {
        let shape = Shape::new(2, 64, 64, 64).expect("a shape");
        let count = usize::try_from(shape.size()).expect("a size") / size_of::<Data>();
        let words: Vec<Data> = (0..count).map(|_| Data::new(0)).collect();
        // SAFETY: a block of this shape, of which nothing is used yet; only atomic words are made of it.
        let header = unsafe { &*words.as_ptr().cast::<Header>() };
        for (word, value) in [(&header.rings, 2), (&header.events, 64), (&header.regions, 64), (&header.tasks, 64)] {
            word.store(value, Relaxed);
        }
        assert!(own_ring(header).is_none(), "no ring is used");
        header.rings_used.store(2, Relaxed);
        // SAFETY: within the block.
        let ring = unsafe { &*words.as_ptr().byte_add(shape.ring_at(1) as usize).cast::<Ring>() };
        // SAFETY: it cannot fail.
        ring.lwp.store(unsafe { libc::gettid() } as u64, Relaxed);
        assert!(own_ring(header).is_none(), "it is not given to the thread yet");
        ring.state.store(RingState::Used as u64, Relaxed);
        assert!(own_ring(header).is_some_and(|own| std::ptr::eq(own, ring)));
        ring.state.store(RingState::Ended as u64, Relaxed);
        assert!(own_ring(header).is_none(), "the thread has ended");
    }
}
