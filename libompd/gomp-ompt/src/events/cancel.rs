//! Cancellation, `error`, and `omp_control_tool`.

use std::ffi::{c_char, c_int, c_void};

use crate::call::{self, Begun, Call};
use crate::callbacks as report;
use crate::names::Entry;
use crate::ompt::cancel_flag;
use crate::runtimes::NO_TOOL;

/// `ompt_cancel_flag_t` by the runtime's number of a construct (gomp-constants.h).
fn construct(which: c_int) -> c_int {
    match which {
        1 => cancel_flag::PARALLEL,
        2 => cancel_flag::LOOP,
        4 => cancel_flag::SECTIONS,
        8 => cancel_flag::TASKGROUP,
        _ => 0,
    }
}

fn cancels(begun: Begun, call: Call, which: c_int, how: Option<c_int>) {
    let Some(thread) = begun.thread else { return };
    if let Some(how) = how {
        report::cancel(&thread.task().data, construct(which) | how, call.codeptr_ra());
    }
    call::end(thread.task());
}

/// `GOMP_cancel`: whether the construct is cancelled. `activates` is the value of its `if` clause.
pub unsafe extern "C-unwind" fn cancel(which: c_int, activates: bool, call: Call) -> bool {
    type Real = unsafe extern "C-unwind" fn(c_int, bool) -> bool;
    let begun = call.begin();
    // SAFETY: the runtime's type and the program's arguments.
    let cancelled = unsafe { begun.real::<Real>(Entry::GOMP_cancel)(which, activates) };
    let how = if activates { cancel_flag::ACTIVATED } else { cancel_flag::DETECTED };
    cancels(begun, call, which, cancelled.then_some(how));
    cancelled
}

/// `GOMP_cancellation_point`: whether the construct is cancelled.
pub unsafe extern "C-unwind" fn cancellation_point(which: c_int, call: Call) -> bool {
    type Real = unsafe extern "C-unwind" fn(c_int) -> bool;
    let begun = call.begin();
    // SAFETY: the runtime's type and the program's argument.
    let cancelled = unsafe { begun.real::<Real>(Entry::GOMP_cancellation_point)(which) };
    cancels(begun, call, which, cancelled.then_some(cancel_flag::DETECTED));
    cancelled
}

/// `ompt_severity_t`
const WARNING: c_int = 1;
const FATAL: c_int = 2;

/// `GOMP_error`, which ends the program.
pub unsafe extern "C-unwind" fn error(message: *const c_char, length: usize, call: Call) {
    // SAFETY: the program's arguments.
    unsafe { says(Entry::GOMP_error, FATAL, message, length, call) }
}

/// `GOMP_warning`
pub unsafe extern "C-unwind" fn warning(message: *const c_char, length: usize, call: Call) {
    // SAFETY: the program's arguments.
    unsafe { says(Entry::GOMP_warning, WARNING, message, length, call) }
}

unsafe fn says(entry: Entry, severity: c_int, message: *const c_char, length: usize, call: Call) {
    type Real = unsafe extern "C-unwind" fn(*const c_char, usize);
    let begun = call.begin();
    if begun.thread.is_some() {
        report::error(severity, message, report::text(message, length), call.codeptr_ra());
    }
    // SAFETY: the runtime's type and the program's arguments.
    unsafe { begun.real::<Real>(entry)(message, length) };
    if let Some(thread) = begun.thread {
        call::end(thread.task());
    }
}

/// `omp_control_tool`: the tool's answer, -1 if it takes no commands, -2 without a tool.
pub unsafe extern "C-unwind" fn control_tool(
    command: c_int,
    modifier: c_int,
    argument: *mut c_void,
    call: Call,
) -> c_int {
    let Some(thread) = call.begin().thread else { return NO_TOOL };
    // The numbers keep their sign in the words of the callback.
    let answer = report::control_tool(command as u64, modifier as u64, argument, call.codeptr_ra());
    call::end(thread.task());
    answer
}
