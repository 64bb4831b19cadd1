//! The callbacks: each writes one event, and keeps what is not over up to date.
//!
//! With the companion paused a callback does nothing. Regions and tasks that begin then have no number, and stay without.

mod draft;
mod list;
mod stopping;
mod target;

use std::ffi::{c_char, c_int, c_uint, c_void};

use ompt_record::event::Event;
use ompt_record::ompt::is_over;

pub use list::{Wanted, wanted};

use crate::block::{self, NewCreation, Recorder, is_recording, now};
use crate::callback::{Numbered, bits, callback, endpoint, file, record, short, word};
use crate::ompt::{BEGIN, CodePtr, Data, Dependence, END, Frame};

/// Numbers of callbacks (`ompt_callbacks_t`) that are named here more than once.
const MUTEX_ACQUIRED: u8 = 27;

unsafe extern "C" fn thread_begin(kind: c_int, data: *const Data) {
    // A thread gets its ring even in a pause: it may be ended before the thread is.
    let Some(place) = Recorder::take(kind) else { return };
    // SAFETY: the runtime's words.
    unsafe { file(data, place.id()) };
    record(|| Event { kind: 1, sub: short(kind), ..Event::default() });
}

unsafe extern "C" fn thread_end(_data: *const Data) {
    record(|| Event { kind: 2, ..Event::default() });
    if let Some(place) = Recorder::own() {
        place.leave();
    }
}

unsafe extern "C" fn parallel_begin(
    encountering: *const Data,
    _frame: *const Frame,
    region: *const Data,
    requested: c_uint,
    flags: c_int,
    codeptr_ra: CodePtr,
) {
    if !is_recording() {
        return;
    }
    let Some(place) = Recorder::own() else { return };
    let time = now();
    // SAFETY: the runtime's words.
    let task = unsafe { word(encountering) };
    let id = block::region_begins(&NewCreation {
        codeptr_ra: codeptr_ra as u64,
        encountering_task: task,
        detail: u64::from(requested),
        flags: u64::from(bits(flags)),
        thread: place.id(),
        time,
    });
    // SAFETY: the same.
    unsafe { file(region, id) };
    let codeptr_ra = codeptr_ra as u64;
    place.write(Event {
        time,
        kind: 3,
        flags: bits(flags),
        region: id,
        task,
        other: u64::from(requested),
        codeptr_ra,
        ..Event::default()
    });
}

unsafe extern "C" fn parallel_end(region: *const Data, encountering: *const Data, flags: c_int, codeptr_ra: CodePtr) {
    if !is_recording() {
        return;
    }
    // SAFETY: the runtime's words.
    let (region, task) = unsafe { (word(region), word(encountering)) };
    record(|| Event { kind: 4, flags: bits(flags), region, task, codeptr_ra: codeptr_ra as u64, ..Event::default() });
    block::region_ends(region);
}

unsafe extern "C" fn task_create(
    encountering: *const Data,
    _frame: *const Frame,
    task: *const Data,
    flags: c_int,
    has_dependences: c_int,
    codeptr_ra: CodePtr,
) {
    if !is_recording() {
        return;
    }
    let Some(place) = Recorder::own() else { return };
    let time = now();
    // SAFETY: the runtime's words.
    let creator = unsafe { word(encountering) };
    let id = block::task_begins(
        place,
        &NewCreation {
            codeptr_ra: codeptr_ra as u64,
            encountering_task: creator,
            detail: u64::from(has_dependences != 0),
            flags: u64::from(bits(flags)),
            thread: place.id(),
            time,
        },
    );
    // SAFETY: the same.
    unsafe { file(task, id) };
    place.write(Event {
        time,
        kind: 5,
        sub: u16::from(has_dependences != 0),
        flags: bits(flags),
        task: id,
        other: creator,
        codeptr_ra: codeptr_ra as u64,
        ..Event::default()
    });
}

unsafe extern "C" fn task_schedule(prior: *const Data, status: c_int, next: *const Data) {
    if !is_recording() {
        return;
    }
    // SAFETY: the runtime's words.
    let (prior, next) = unsafe { (word(prior), word(next)) };
    record(|| Event { kind: 6, sub: short(status), task: prior, other: next, ..Event::default() });
    if is_over(short(status)) {
        block::task_ends(prior);
    }
}

unsafe extern "C" fn implicit_task(
    scope: c_int,
    region: *const Data,
    task: *const Data,
    actual_parallelism: c_uint,
    index: c_uint,
    flags: c_int,
) {
    if !is_recording() {
        return;
    }
    let Some(place) = Recorder::own() else { return };
    if scope == BEGIN {
        // Its region says where it comes from: it needs a number, and no entry.
        // SAFETY: the runtime's words.
        unsafe { file(task, place.task_number()) };
    }
    // SAFETY: the same.
    let (region, task) = unsafe { (word(region), word(task)) };
    place.write(Event {
        time: now(),
        kind: 7,
        endpoint: endpoint(scope),
        sub: short(flags),
        flags: index,
        region,
        task,
        other: u64::from(actual_parallelism),
        ..Event::default()
    });
}

/// What `sync_region`, `sync_region_wait` and `reduction` have in common.
fn synchronisation(number: u8, kind: c_int, scope: c_int, region: *const Data, task: *const Data, codeptr_ra: CodePtr) {
    if !is_recording() {
        return;
    }
    // SAFETY: the runtime's words.
    let (region, task) = unsafe { (word(region), word(task)) };
    record(|| Event {
        kind: number,
        endpoint: endpoint(scope),
        sub: short(kind),
        region,
        task,
        codeptr_ra: codeptr_ra as u64,
        ..Event::default()
    });
}

unsafe extern "C" fn sync_region(kind: c_int, scope: c_int, region: *const Data, task: *const Data, from: CodePtr) {
    synchronisation(23, kind, scope, region, task, from);
}

unsafe extern "C" fn sync_region_wait(
    kind: c_int,
    scope: c_int,
    region: *const Data,
    task: *const Data,
    from: CodePtr,
) {
    synchronisation(16, kind, scope, region, task, from);
}

unsafe extern "C" fn reduction(kind: c_int, scope: c_int, region: *const Data, task: *const Data, from: CodePtr) {
    synchronisation(31, kind, scope, region, task, from);
}

/// What the callbacks of mutexes have in common.
fn mutex(number: u8, kind: c_int, hint: c_uint, wait_id: u64, codeptr_ra: CodePtr) -> Option<(Recorder, u64)> {
    if !is_recording() {
        return None;
    }
    let place = Recorder::own()?;
    let time = now();
    place.write(Event {
        time,
        kind: number,
        sub: short(kind),
        flags: hint,
        other: wait_id,
        codeptr_ra: codeptr_ra as u64,
        ..Event::default()
    });
    Some((place, time))
}

unsafe extern "C" fn lock_init(kind: c_int, hint: c_uint, _implementation: c_uint, wait_id: u64, from: CodePtr) {
    if let Some((place, _)) = mutex(24, kind, hint, wait_id, from) {
        place.forget(wait_id);
    }
}

unsafe extern "C" fn lock_destroy(kind: c_int, wait_id: u64, from: CodePtr) {
    if let Some((place, _)) = mutex(25, kind, 0, wait_id, from) {
        place.forget(wait_id);
    }
}

unsafe extern "C" fn mutex_acquire(kind: c_int, hint: c_uint, _implementation: c_uint, wait_id: u64, from: CodePtr) {
    mutex(26, kind, hint, wait_id, from);
}

unsafe extern "C" fn mutex_acquired(kind: c_int, wait_id: u64, from: CodePtr) {
    if let Some((place, time)) = mutex(MUTEX_ACQUIRED, kind, 0, wait_id, from) {
        place.hold(wait_id, kind, from as u64, time);
    }
}

unsafe extern "C" fn mutex_released(kind: c_int, wait_id: u64, from: CodePtr) {
    if let Some((place, _)) = mutex(17, kind, 0, wait_id, from) {
        place.let_go(wait_id);
    }
}

unsafe extern "C" fn nest_lock(scope: c_int, wait_id: u64, from: CodePtr) {
    if !is_recording() {
        return;
    }
    let Some(place) = Recorder::own() else { return };
    place.write(Event {
        time: now(),
        kind: 28,
        endpoint: endpoint(scope),
        other: wait_id,
        codeptr_ra: from as u64,
        ..Event::default()
    });
    place.hold_again(wait_id, scope != END);
}

unsafe extern "C" fn dependences(task: *const Data, dependences: *const Dependence, count: c_int) {
    // SAFETY: the runtime's words, and as many dependences as it says.
    unsafe { dependences_as(task, dependences, count, |kind| kind) };
}

/// Records dependences, each of the kind that `today` makes of its number.
///
/// # Safety
/// The arguments are those of the callback.
unsafe fn dependences_as(
    task: *const Data,
    dependences: *const Dependence,
    count: c_int,
    today: impl Fn(c_uint) -> c_uint,
) {
    let count = u32::try_from(count).unwrap_or(0);
    if !is_recording() || dependences.is_null() {
        return;
    }
    // SAFETY: the runtime's words.
    let task = unsafe { word(task) };
    for n in 0..count as usize {
        // SAFETY: the runtime gave so many of them.
        let (variable, kind) = unsafe {
            let dependence = dependences.add(n);
            ((*dependence).variable, today((*dependence).dependence_type))
        };
        record(|| Event {
            kind: 18,
            sub: (kind & 0xffff) as u16,
            flags: count,
            task,
            other: variable,
            ..Event::default()
        });
    }
}

unsafe extern "C" fn task_dependence(first: *const Data, waits: *const Data) {
    if !is_recording() {
        return;
    }
    // SAFETY: the runtime's words.
    let (task, other) = unsafe { (word(first), word(waits)) };
    record(|| Event { kind: 19, task, other, ..Event::default() });
}

unsafe extern "C" fn work(
    kind: c_int,
    scope: c_int,
    region: *const Data,
    task: *const Data,
    count: u64,
    codeptr_ra: CodePtr,
) {
    if !is_recording() {
        return;
    }
    // SAFETY: the runtime's words.
    let (region, task) = unsafe { (word(region), word(task)) };
    record(|| Event {
        kind: 20,
        endpoint: endpoint(scope),
        sub: short(kind),
        region,
        task,
        other: count,
        codeptr_ra: codeptr_ra as u64,
        ..Event::default()
    });
}

unsafe extern "C" fn masked(scope: c_int, region: *const Data, task: *const Data, codeptr_ra: CodePtr) {
    if !is_recording() {
        return;
    }
    // SAFETY: the runtime's words.
    let (region, task) = unsafe { (word(region), word(task)) };
    record(|| Event {
        kind: 21,
        endpoint: endpoint(scope),
        region,
        task,
        codeptr_ra: codeptr_ra as u64,
        ..Event::default()
    });
}

unsafe extern "C" fn flush(_thread: *const Data, codeptr_ra: CodePtr) {
    record(|| Event { kind: 29, codeptr_ra: codeptr_ra as u64, ..Event::default() });
}

unsafe extern "C" fn cancel(task: *const Data, flags: c_int, codeptr_ra: CodePtr) {
    if !is_recording() {
        return;
    }
    // SAFETY: the runtime's words.
    let task = unsafe { word(task) };
    record(|| Event { kind: 30, flags: bits(flags), task, codeptr_ra: codeptr_ra as u64, ..Event::default() });
}

unsafe extern "C" fn dispatch(region: *const Data, task: *const Data, kind: c_int, instance: u64) {
    if !is_recording() {
        return;
    }
    // SAFETY: the runtime's words.
    let (region, task) = unsafe { (word(region), word(task)) };
    record(|| Event { kind: 32, sub: short(kind), region, task, other: instance, ..Event::default() });
}

unsafe extern "C" fn error(severity: c_int, _message: *const c_char, length: usize, codeptr_ra: CodePtr) {
    record(|| Event {
        kind: 37,
        sub: short(severity),
        flags: u32::try_from(length).unwrap_or(u32::MAX),
        codeptr_ra: codeptr_ra as u64,
        ..Event::default()
    });
}

unsafe extern "C" fn control_tool(command: u64, modifier: u64, argument: *mut c_void, codeptr_ra: CodePtr) -> c_int {
    record(|| Event {
        kind: 11,
        // Programs give an `int`, of which runtimes make a word, with the sign.
        flags: (command & u64::from(u32::MAX)) as u32,
        task: modifier,
        other: argument as u64,
        codeptr_ra: codeptr_ra as u64,
        ..Event::default()
    });
    crate::control::obey(command, modifier)
}

/// A callback, and the older form of it (without `_emi`) if there is one. A runtime is to get one of them only.
pub type Pair = (Numbered, Option<Numbered>);
