//! Barriers, `taskwait` and `taskgroup`.

use std::ffi::{c_int, c_uint, c_void};

use crate::call::{self, Call};
use crate::callbacks as report;
use crate::events::single;
use crate::names::Entry;
use crate::ompt::{cancel_flag, scope, state, sync_region};
use crate::threads::Thread;

/// Reports a synchronisation around the call that waits. `what` is `ompt_sync_region_t` and `ompt_state_t`.
pub fn waits<R>(thread: &'static Thread, call: Call, (kind, state): (c_int, c_uint), forward: impl FnOnce() -> R) -> R {
    let (task, code) = (thread.task(), call.codeptr_ra());
    let region = task.region().map(|region| &region.data);
    report::sync_region(kind, scope::BEGIN, region, &task.data, code);
    report::sync_region_wait(kind, scope::BEGIN, region, &task.data, code);
    let result = thread.in_state(state, 0, forward);
    report::sync_region_wait(kind, scope::END, region, &task.data, code);
    report::sync_region(kind, scope::END, region, &task.data, code);
    result
}

const BARRIER: (c_int, c_uint) = (sync_region::BARRIER, state::WAIT_BARRIER);

/// `GOMP_barrier`. GCC calls it for barriers of the program, and at the end of constructs whose end it does not report otherwise.
pub unsafe extern "C-unwind" fn barrier(call: Call) {
    type Real = unsafe extern "C-unwind" fn();
    let begun = call.begin();
    // SAFETY: the runtime's type.
    let forward = || unsafe { begun.real::<Real>(Entry::GOMP_barrier)() };
    let Some(thread) = begun.thread else { return forward() };
    single::ends(thread.task());
    waits(thread, call, BARRIER, forward);
    call::end(thread.task());
}

/// `GOMP_barrier_cancel`: whether the region is cancelled.
pub unsafe extern "C-unwind" fn barrier_cancel(call: Call) -> bool {
    type Real = unsafe extern "C-unwind" fn() -> bool;
    let begun = call.begin();
    // SAFETY: the runtime's type.
    let forward = || unsafe { begun.real::<Real>(Entry::GOMP_barrier_cancel)() };
    let Some(thread) = begun.thread else { return forward() };
    let task = thread.task();
    single::ends(task);
    let cancelled = waits(thread, call, BARRIER, forward);
    if cancelled {
        report::cancel(&task.data, cancel_flag::PARALLEL | cancel_flag::DETECTED, call.codeptr_ra());
    }
    call::end(task);
    cancelled
}

/// `GOMP_taskwait`
pub unsafe extern "C-unwind" fn taskwait(call: Call) {
    type Real = unsafe extern "C-unwind" fn();
    let begun = call.begin();
    // SAFETY: the runtime's type.
    let forward = || unsafe { begun.real::<Real>(Entry::GOMP_taskwait)() };
    let Some(thread) = begun.thread else { return forward() };
    waits(thread, call, (sync_region::TASKWAIT, state::WAIT_TASKWAIT), forward);
    call::end(thread.task());
}

/// `GOMP_taskwait_depend`
pub unsafe extern "C-unwind" fn taskwait_depend(depend: *mut *mut c_void, call: Call) {
    type Real = unsafe extern "C-unwind" fn(*mut *mut c_void);
    let begun = call.begin();
    // SAFETY: the runtime's type and the program's argument.
    let forward = || unsafe { begun.real::<Real>(Entry::GOMP_taskwait_depend)(depend) };
    let Some(thread) = begun.thread else { return forward() };
    waits(thread, call, (sync_region::TASKWAIT, state::WAIT_TASKWAIT), forward);
    call::end(thread.task());
}

/// `GOMP_taskgroup_start`
pub unsafe extern "C-unwind" fn taskgroup_start(call: Call) {
    type Real = unsafe extern "C-unwind" fn();
    let begun = call.begin();
    if let Some(thread) = begun.thread {
        let task = thread.task();
        let region = task.region().map(|region| &region.data);
        report::sync_region(sync_region::TASKGROUP, scope::BEGIN, region, &task.data, call.codeptr_ra());
    }
    // SAFETY: the runtime's type.
    unsafe { begun.real::<Real>(Entry::GOMP_taskgroup_start)() };
    if let Some(thread) = begun.thread {
        call::end(thread.task());
    }
}

/// `GOMP_taskgroup_end`
pub unsafe extern "C-unwind" fn taskgroup_end(call: Call) {
    type Real = unsafe extern "C-unwind" fn();
    let begun = call.begin();
    // SAFETY: the runtime's type.
    let forward = || unsafe { begun.real::<Real>(Entry::GOMP_taskgroup_end)() };
    let Some(thread) = begun.thread else { return forward() };
    waits_for_group(thread, call, forward);
    call::end(thread.task());
}

/// Reports the end of a group of tasks around the call that waits for them.
pub fn waits_for_group(thread: &'static Thread, call: Call, forward: impl FnOnce()) {
    let (task, code) = (thread.task(), call.codeptr_ra());
    let region = task.region().map(|region| &region.data);
    let kind = sync_region::TASKGROUP;
    report::sync_region_wait(kind, scope::BEGIN, region, &task.data, code);
    thread.in_state(state::WAIT_TASKGROUP, 0, forward);
    report::sync_region_wait(kind, scope::END, region, &task.data, code);
    report::sync_region(kind, scope::END, region, &task.data, code);
}
