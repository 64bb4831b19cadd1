//! The callbacks of events at which OMPD has stop points: what the others do, and the call of the stop point.
//!
//! Stop points are passed in a pause too. Where something ends, the debugger comes first: what was remembered of it is still there.

use std::cell::Cell;
use std::ffi::{c_int, c_uint};
use std::ptr::null;

use ompt_record::block::Stop;
use ompt_record::ompt::is_over;

use super::{Pair, callback};
use crate::block::{self, NewCreation, Recorder, now};
use crate::callback::{file, short, word};
use crate::ompt::{BEGIN, Callback, CodePtr, Data, END, Frame};
use crate::stop_points::pass;

/// Flags of `implicit_task` (`ompt_task_flag_t`).
const INITIAL: c_int = 1;
const IMPLICIT: c_int = 2;

/// What has become of the prior task (`ompt_task_status_t`).
const COMPLETE: c_int = 1;
const YIELD: c_int = 2;
const CANCEL: c_int = 3;
const DETACH: c_int = 4;
const SWITCH: c_int = 7;

/// Flag of `cancel` (`ompt_cancel_flag_t`): the task will never be executed.
const DISCARDED_TASK: c_int = 0x40;

thread_local! {
    /// The task that was discarded last, by its word.
    static DISCARDED: Cell<*const Data> = const { Cell::new(null()) };
}

unsafe extern "C" fn thread_begin(kind: c_int, data: *const Data) {
    // SAFETY: the runtime's arguments.
    unsafe { super::thread_begin(kind, data) };
    pass(Stop::ThreadBegin);
}

unsafe extern "C" fn thread_end(data: *const Data) {
    pass(Stop::ThreadEnd);
    // SAFETY: the runtime's arguments.
    unsafe { super::thread_end(data) };
}

/// The callback of a region's begin comes before there is a team. That of thread 0's implicit task is the first behind it, and the
/// last while the team is there.
unsafe extern "C" fn implicit_task(
    scope: c_int,
    region: *const Data,
    task: *const Data,
    actual_parallelism: c_uint,
    index: c_uint,
    flags: c_int,
) {
    let is_of_region = flags & (INITIAL | IMPLICIT) == IMPLICIT && index == 0;
    if is_of_region && scope == END {
        pass(Stop::ParallelEnd);
    }
    // SAFETY: the runtime's arguments.
    unsafe { super::implicit_task(scope, region, task, actual_parallelism, index, flags) };
    if is_of_region && scope == BEGIN {
        pass(Stop::ParallelBegin);
    }
}

/// In a pause a task gets its number too: by it a thread is known to begin it.
unsafe extern "C" fn task_create(
    encountering: *const Data,
    frame: *const Frame,
    task: *const Data,
    flags: c_int,
    has_dependences: c_int,
    codeptr_ra: CodePtr,
) {
    // SAFETY: the runtime's arguments.
    unsafe { super::task_create(encountering, frame, task, flags, has_dependences, codeptr_ra) };
    // SAFETY: the same.
    if let (Some(place), 0) = (Recorder::own(), unsafe { word(task) }) {
        let new = NewCreation { thread: place.id(), time: now(), ..NewCreation::default() };
        // SAFETY: the same.
        unsafe { file(task, block::task_begins(place, &new)) };
    }
}

unsafe extern "C" fn task_schedule(prior: *const Data, status: c_int, next: *const Data) {
    // What was discarded is told to be over as well.
    let was_discarded = status == CANCEL && DISCARDED.replace(null()) == prior;
    if matches!(status, COMPLETE | CANCEL | DETACH) && !was_discarded {
        pass(Stop::TaskEnd);
    }
    // SAFETY: the runtime's arguments.
    unsafe { super::task_schedule(prior, status, next) };
    // What was numbered in a pause is over in one as well.
    if is_over(short(status)) {
        // SAFETY: the same.
        block::task_ends(unsafe { word(prior) });
    }
    // SAFETY: the same.
    if matches!(status, YIELD | SWITCH) && block::task_begins_first(unsafe { word(next) }) {
        pass(Stop::TaskBegin);
    }
}

unsafe extern "C" fn cancel(task: *const Data, flags: c_int, codeptr_ra: CodePtr) {
    if flags & DISCARDED_TASK != 0 {
        DISCARDED.set(task);
    }
    // SAFETY: the runtime's arguments.
    unsafe { super::cancel(task, flags, codeptr_ra) };
}

/// Callbacks with these in the place of those with the same numbers. None is added.
pub fn of(callbacks: Vec<Pair>) -> Vec<Pair> {
    type TaskCreate = unsafe extern "C" fn(*const Data, *const Frame, *const Data, c_int, c_int, CodePtr);
    type ImplicitTask = unsafe extern "C" fn(c_int, *const Data, *const Data, c_uint, c_uint, c_int);
    let own = [
        (1, callback!(thread_begin as unsafe extern "C" fn(c_int, *const Data))),
        (2, callback!(thread_end as unsafe extern "C" fn(*const Data))),
        (5, callback!(task_create as TaskCreate)),
        (6, callback!(task_schedule as unsafe extern "C" fn(*const Data, c_int, *const Data))),
        (7, callback!(implicit_task as ImplicitTask)),
        (30, callback!(cancel as unsafe extern "C" fn(*const Data, c_int, CodePtr))),
    ];
    let instead = |((number, callback), older)| {
        let own = own.iter().find(|(of, _)| *of == number).map_or(callback, |(_, own)| *own);
        ((number, own), older)
    };
    callbacks.into_iter().map(instead).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Else the callbacks of the others would get arguments of other types.
    #[test]
    fn only_callbacks_that_meet_stop_points_are_replaced() {
        unsafe extern "C" fn nothing() {}
        let plain: Callback = nothing;
        let all: Vec<Pair> = (1..40).map(|number| ((number, plain), Some((number, plain)))).collect();
        let is_plain = |callback| std::ptr::fn_addr_eq(callback, plain);
        let replaced = of(all);
        assert!(replaced.iter().zip(1..40).all(|(((number, _), older), n)| {
            *number == n && older.is_some_and(|(older, callback)| older == n && is_plain(callback))
        }));
        let others: Vec<_> =
            replaced.iter().filter(|((_, callback), _)| !is_plain(*callback)).map(|((number, _), _)| *number).collect();
        assert_eq!(others, [1, 2, 5, 6, 7, 30]);
    }
}
