//! The end of the tool: with the program, or when it asks for it.

use std::ffi::{c_uint, c_void};
use std::ptr;
use std::sync::Once;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicPtr};

use crate::callbacks;
use crate::listening::{self, Tool};
use crate::names::Entry;
use crate::ompt::{Body, Data, StartToolResult};
use crate::runtimes::Runtime;
use crate::threads::Thread;

/// The tool.
static RESULT: AtomicPtr<StartToolResult> = AtomicPtr::new(ptr::null_mut());

/// Notes the tool that is to end.
pub fn of(tool: *mut StartToolResult) {
    RESULT.store(tool, Relaxed);
}

/// Has the tool ended before the libraries of the program are. What was registered while they were loaded is called too late.
pub fn at_exit() {
    static ONCE: Once = Once::new();
    ONCE.call_once(register);
}

/// Has the tool ended with the program.
pub fn register() {
    // SAFETY: a function of this library, which stays. Of several calls only the first does something.
    unsafe { libc::atexit(finalize) };
}

/// The program ends, or the tool wants to end (`ompt_finalize_tool`).
pub extern "C" fn finalize() {
    static ONCE: AtomicBool = AtomicBool::new(false);
    if !listening::is_recording() || ONCE.swap(true, Relaxed) {
        return;
    }
    end_workers();
    if let Some(thread) = Thread::existing() {
        thread.end();
    }
    listening::becomes(Tool::None);
    let result = RESULT.load(Relaxed);
    // SAFETY: null, or the tool's own, which stays.
    if let Some(tool) = unsafe { result.as_ref() }
        && let Some(finalize) = tool.finalize
    {
        let data: *const Data = &raw const tool.tool_data;
        // SAFETY: the tool's function of this type.
        unsafe { finalize(data) };
    }
    callbacks::forget();
}

/// Has the workers of the program's first thread report their ends: they execute one more region.
///
/// Nothing happens in the child of a fork, which has no workers, while the thread is in a region, and if a signal handler ends the program
/// in the midst of a call of the runtime.
fn end_workers() {
    type Real = unsafe extern "C-unwind" fn(Body, *mut c_void, c_uint, c_uint);
    unsafe extern "C-unwind" fn end(_argument: *mut c_void) {
        if let Some(thread) = Thread::existing()
            && thread.is_at_end()
        {
            thread.end();
        }
    }
    let Some(thread) = Thread::existing() else { return };
    let task = thread.task();
    let outside = task.region().is_none_or(|region| !region.is_team()) && task.frame.enter_frame.load(Relaxed) == 0;
    if !Thread::is_first(thread) || !outside || Thread::is_in_child() {
        return;
    }
    let all = Runtime::all();
    for runtime in &all {
        if let Some(threads) = runtime.pool_of_file(&all).filter(|threads| *threads > 1) {
            // SAFETY: the runtime's function of this type, and a function that takes no argument.
            unsafe {
                let real = std::mem::transmute::<usize, Real>(runtime.function(Entry::GOMP_parallel));
                real(end, ptr::null_mut(), threads, 0);
            }
        }
    }
}
