//! The dependences between iterations of a doacross loop: `ordered depend(source)` and `ordered depend(sink: …)`.
//!
//! A callback gets the counters of one iteration, from the outermost loop inward. Each counts from 0, as the compiler passes it.

use std::ffi::{c_int, c_void};
use std::ptr;

use crate::call::{self, Call, doacross_counters};
use crate::callbacks as report;
use crate::machine::MOST_ARGUMENTS;
use crate::names::Entry;
use crate::ompt::{Data, Dependence, dependence, state};

/// Reports the dependence of a task on an iteration, or of others on it.
fn depends(task: &Data, kind: c_int, count: usize, counter: impl Fn(usize) -> usize) {
    let none = Dependence { variable: ptr::null_mut(), dependence_type: kind };
    let mut vector = [none; MOST_ARGUMENTS];
    for (number, one) in vector[..count].iter_mut().enumerate() {
        one.variable = counter(number) as *mut c_void;
    }
    report::dependences(task, vector.as_ptr(), count as c_int);
}

/// Reports the end of an iteration as far as others wait for it, before they can see it.
unsafe fn posts(counters: *const usize, call: Call, entry: Entry) {
    type Real = unsafe extern "C-unwind" fn(*const usize);
    let begun = call.begin();
    if let Some(thread) = begun.thread
        && let Some(count) = doacross_counters()
    {
        // SAFETY: the program's array of counters.
        depends(&thread.task().data, dependence::SOURCE, count, |number| unsafe { *counters.add(number) });
    }
    // SAFETY: the runtime's type and the program's argument.
    unsafe { begun.real::<Real>(entry)(counters) };
    if let Some(thread) = begun.thread {
        call::end(thread.task());
    }
}

/// Waits for an iteration, and reports it then. [`call::route`] has seen to it that the number of counters is known.
unsafe fn waits(registers: *const usize, call: Call, entry: Entry) {
    type W = usize;
    type Real = unsafe extern "C-unwind" fn(W, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W);
    let begun = call.begin();
    // Words behind those that the program has passed are ignored.
    // SAFETY: the program's call, with less than so many words.
    let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p]: [W; MOST_ARGUMENTS] =
        std::array::from_fn(|number| unsafe { call.argument(registers, number) });
    // SAFETY: the runtime's type as far as registers and the stack go.
    let forward = || unsafe { begun.real::<Real>(entry)(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p) };
    let Some(thread) = begun.thread else { return forward() };
    thread.in_state(state::WAIT_ORDERED, 0, forward);
    let task = thread.task();
    let count = doacross_counters().unwrap_or(0);
    // SAFETY: as above.
    depends(&task.data, dependence::SINK, count, |number| unsafe { call.argument(registers, number) });
    call::end(task);
}

/// `GOMP_doacross_post`
pub unsafe extern "C-unwind" fn post(counters: *const usize, call: Call) {
    // SAFETY: the program's argument.
    unsafe { posts(counters, call, Entry::GOMP_doacross_post) }
}

/// `GOMP_doacross_ull_post`
pub unsafe extern "C-unwind" fn ull_post(counters: *const usize, call: Call) {
    // SAFETY: the program's argument.
    unsafe { posts(counters, call, Entry::GOMP_doacross_ull_post) }
}

/// `GOMP_doacross_wait`
pub unsafe extern "C-unwind" fn wait(registers: *const usize, call: Call) {
    // SAFETY: the program's call.
    unsafe { waits(registers, call, Entry::GOMP_doacross_wait) }
}

/// `GOMP_doacross_ull_wait`
pub unsafe extern "C-unwind" fn ull_wait(registers: *const usize, call: Call) {
    // SAFETY: the program's call.
    unsafe { waits(registers, call, Entry::GOMP_doacross_ull_wait) }
}
