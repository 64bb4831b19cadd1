//! Sections, `single` and `scope`.

use std::ffi::{c_uint, c_void};
use std::sync::atomic::Ordering::Relaxed;

use crate::call::{self, Begun, Call};
use crate::callbacks as report;
use crate::events::{barriers, single, work as shared};
use crate::names::Entry;
use crate::ompt::{scope, state, sync_region, work};

/// `GOMP_sections_start`
pub unsafe extern "C-unwind" fn sections_start(count: c_uint, call: Call) -> c_uint {
    type Real = unsafe extern "C-unwind" fn(c_uint) -> c_uint;
    let begun = call.begin();
    // SAFETY: the runtime's type and the program's argument.
    shared::begins(begun, call, work::SECTIONS, count.into(), || unsafe {
        begun.real::<Real>(Entry::GOMP_sections_start)(count)
    })
}

/// `GOMP_sections2_start`
pub unsafe extern "C-unwind" fn sections2_start(
    count: c_uint,
    reductions: *mut usize,
    memory: *mut *mut c_void,
    call: Call,
) -> c_uint {
    type Real = unsafe extern "C-unwind" fn(c_uint, *mut usize, *mut *mut c_void) -> c_uint;
    let begun = call.begin();
    // SAFETY: the runtime's type and the program's arguments.
    shared::begins(begun, call, work::SECTIONS, count.into(), || unsafe {
        begun.real::<Real>(Entry::GOMP_sections2_start)(count, reductions, memory)
    })
}

/// `GOMP_sections_end`
pub unsafe extern "C-unwind" fn sections_end(call: Call) {
    shared::end_of(call, Entry::GOMP_sections_end, work::SECTIONS, true)
}

/// `GOMP_sections_end_nowait`
pub unsafe extern "C-unwind" fn sections_end_nowait(call: Call) {
    shared::end_of(call, Entry::GOMP_sections_end_nowait, work::SECTIONS, false)
}

/// `GOMP_sections_end_cancel`
pub unsafe extern "C-unwind" fn sections_end_cancel(call: Call) -> bool {
    shared::end_of(call, Entry::GOMP_sections_end_cancel, work::SECTIONS, true)
}

/// A thread executes a `single` construct, or does not. Nothing tells when one that executes it is through: it is when the task comes to
/// the next construct that cannot be inside.
fn single_begins(begun: Begun, call: Call, executes: bool) {
    let Some(thread) = begun.thread else { return };
    let (task, code) = (thread.task(), call.codeptr_ra());
    let region = task.region().map(|region| &region.data);
    single::ends(task);
    if executes {
        report::work(work::SINGLE_EXECUTOR, scope::BEGIN, region, &task.data, 1, code);
        task.single.store(code.cast_mut(), Relaxed);
    } else {
        report::work(work::SINGLE_OTHER, scope::BEGIN, region, &task.data, 1, code);
        report::work(work::SINGLE_OTHER, scope::END, region, &task.data, 1, code);
    }
    call::end(task);
}

/// `GOMP_single_start`: whether the calling thread executes the construct.
pub unsafe extern "C-unwind" fn single_start(call: Call) -> bool {
    type Real = unsafe extern "C-unwind" fn() -> bool;
    let begun = call.begin();
    // SAFETY: the runtime's type.
    let executes = unsafe { begun.real::<Real>(Entry::GOMP_single_start)() };
    single_begins(begun, call, executes);
    executes
}

/// `GOMP_single_copy_start`: null for the thread that executes the construct. The others wait here for what it gives them.
pub unsafe extern "C-unwind" fn single_copy_start(call: Call) -> *mut c_void {
    type Real = unsafe extern "C-unwind" fn() -> *mut c_void;
    let begun = call.begin();
    // SAFETY: the runtime's type.
    let forward = || unsafe { begun.real::<Real>(Entry::GOMP_single_copy_start)() };
    let copied = match begun.thread {
        // The runtime's barrier is not a construct of the program, and it waits only if another thread was first.
        Some(thread) => thread.in_state(state::WAIT_BARRIER_IMPLICIT_WORKSHARE, 0, forward),
        None => forward(),
    };
    single_begins(begun, call, copied.is_null());
    copied
}

/// `GOMP_single_copy_end`: gives the others what they wait for, at a barrier.
pub unsafe extern "C-unwind" fn single_copy_end(data: *mut c_void, call: Call) {
    type Real = unsafe extern "C-unwind" fn(*mut c_void);
    let begun = call.begin();
    // SAFETY: the runtime's type and the program's argument.
    let forward = || unsafe { begun.real::<Real>(Entry::GOMP_single_copy_end)(data) };
    let Some(thread) = begun.thread else { return forward() };
    single::ends(thread.task());
    let what = (sync_region::BARRIER_IMPLICIT_WORKSHARE, state::WAIT_BARRIER_IMPLICIT_WORKSHARE);
    barriers::waits(thread, call, what, forward);
    call::end(thread.task());
}

/// `GOMP_scope_start`, which only scopes with reductions call. Nothing tells their end.
pub unsafe extern "C-unwind" fn scope_start(reductions: *mut usize, call: Call) {
    type Real = unsafe extern "C-unwind" fn(*mut usize);
    let begun = call.begin();
    // SAFETY: the runtime's type and the program's argument.
    unsafe { begun.real::<Real>(Entry::GOMP_scope_start)(reductions) };
    if let Some(thread) = begun.thread {
        call::end(thread.task());
    }
}
