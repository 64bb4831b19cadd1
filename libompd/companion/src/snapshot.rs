//! What the runtime says of a thread when the thread itself asks: taken down at a signal, for who compares it with what is seen from
//! outside.

use std::ffi::c_int;
use std::ptr::{null, null_mut};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicPtr, fence};

use ompt_record::block::{LEVELS, Level, Snapshot, in_ring};

use crate::block::Place;
use crate::entries::Entries;
use crate::ompt::{Data, Frame};

/// In the place of what was asked of no entry point.
const NOT_ASKED: u64 = 3;

/// Has threads take a snapshot at this signal.
pub fn at_signal(signal: i32) -> bool {
    // SAFETY: all of it is plain numbers, of which zero is one.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    let handler: extern "C" fn(c_int) = handler;
    action.sa_sigaction = handler as libc::sighandler_t;
    action.sa_flags = libc::SA_RESTART;
    // SAFETY: all of it is plain numbers, of which zero is one.
    let mut before: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: the action is initialised, and its handler does only what handlers may.
    let done = unsafe {
        libc::sigemptyset(&raw mut action.sa_mask);
        libc::sigaction(signal, &raw const action, &raw mut before) == 0
    };
    // A runtime that begins again finds the companion's own.
    if done && before.sa_sigaction != handler as libc::sighandler_t {
        BEFORE.store(Box::into_raw(Box::new(before)), Release);
    }
    done
}

/// Has threads take no more: the runtime ends, and the library may be taken out of the process with it, as libiomp5 does when it is
/// unloaded. Who was told of the signal before is told again; if that was nobody, it is ignored, since whoever sends it does not know
/// that the runtime has gone.
pub fn no_more(signal: i32) {
    // SAFETY: all of it is plain numbers, of which zero is one.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: a place for the answer.
    let told = unsafe { libc::sigaction(signal, null(), &raw mut action) == 0 };
    let handler: extern "C" fn(c_int) = handler;
    // The program may have taken the signal for itself.
    if told && action.sa_sigaction == handler as libc::sighandler_t {
        let before = BEFORE.load(Acquire);
        // SAFETY: what `at_signal` left there, and never takes back.
        action = unsafe { before.as_ref() }.copied().unwrap_or(action);
        if before.is_null() || action.sa_sigaction == libc::SIG_DFL {
            action.sa_sigaction = libc::SIG_IGN;
        }
        // SAFETY: the action was the process's own before, or is to ignore the signal.
        unsafe { libc::sigaction(signal, &raw const action, null_mut()) };
    }
}

/// What was to be done at the signal before.
static BEFORE: AtomicPtr<libc::sigaction> = AtomicPtr::new(null_mut());

extern "C" fn handler(_signal: c_int) {
    // SAFETY: where this thread's errno is.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: it is always there.
    let before = unsafe { *errno };
    if let (Some(place), Some(entries)) = (Place::own_in_handler(), Entries::get()) {
        take(place, entries);
    }
    // SAFETY: as above.
    unsafe { *errno = before };
}

fn take(place: Place, entries: &Entries) {
    // SAFETY: that is what lies there (`ompt_record::block::in_ring`).
    let (snapshot, levels) =
        unsafe { (place.part::<Snapshot>(in_ring::SNAPSHOT_AT), place.part::<[Level; LEVELS]>(in_ring::LEVELS_AT)) };
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

/// Asks for the task and the region of a level.
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

/// A number of C's, in the lower half of a word.
fn number(value: c_int) -> u64 {
    u64::from(value.cast_unsigned())
}
