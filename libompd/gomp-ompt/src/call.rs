//! A call of an entry point: where it comes from, and how it is forwarded.

use std::ffi::c_void;
use std::sync::atomic::Ordering::Relaxed;

use crate::ending;
use crate::machine;
use crate::names::Entry;
use crate::ompt::APPLICATION_CFA;
use crate::records::Task;
use crate::runtimes::{self, Runtime};
use crate::threads::Thread;
use crate::tool;

/// The last argument of each function that an entry point calls: the canonical frame address of the call.
#[derive(Debug, Clone, Copy)]
#[repr(transparent)]
pub struct Call(*const usize);

impl Call {
    /// The canonical frame address.
    pub fn frame(self) -> u64 {
        self.0 as u64
    }

    /// An argument of a call that has any number of them. `registers` are those that come with the call.
    ///
    /// # Safety
    /// Both are of one call, and the number is less than [`machine::MOST_ARGUMENTS`].
    pub unsafe fn argument(self, registers: *const usize, number: usize) -> usize {
        // SAFETY: as the caller says.
        unsafe { machine::argument(registers, self.0, number) }
    }

    /// The return address (`codeptr_ra`).
    pub fn codeptr_ra(self) -> *const c_void {
        // SAFETY: an entry point made it.
        unsafe { machine::return_address(self.0) as *const c_void }
    }

    /// The runtime that the caller wants, and the caller's thread if a tool wants to know of the call.
    pub fn begin(self) -> Begun {
        let caller = self.codeptr_ra() as usize;
        let runtime = runtime_of(caller);
        let thread = (!runtime.has_ompt && tool::is_active(caller)).then(Thread::current);
        if let Some(thread) = thread {
            if thread.uses(runtime) {
                ending::at_exit();
            }
            let frame = &thread.task().frame;
            frame.enter_frame.store(self.frame(), Relaxed);
            frame.enter_frame_flags.store(APPLICATION_CFA, Relaxed);
        }
        Begun { runtime, thread }
    }
}

/// What a call needs to be forwarded and reported.
#[derive(Debug, Clone, Copy)]
pub struct Begun {
    /// To be called.
    pub runtime: &'static Runtime,
    /// To be reported on. `None` if nobody listens.
    pub thread: Option<&'static Thread>,
}

impl Begun {
    /// The runtime's own function.
    ///
    /// # Safety
    /// `F` is the type of the function.
    pub unsafe fn real<F: Copy>(self, entry: Entry) -> F {
        const { assert!(size_of::<F>() == size_of::<usize>()) };
        // SAFETY: the address of a function with this type, as the caller says.
        unsafe { std::mem::transmute_copy(&self.runtime.function(entry)) }
    }
}

/// Where a call continues that is not reported: the runtime's function. 0 for calls that are reported.
///
/// The code of entry points calls it, with the return address and the number of the entry point.
pub unsafe extern "C" fn route(caller: usize, entry: usize) -> usize {
    let runtime = runtime_of(caller);
    // A runtime with OMPT reports its calls itself, and sees where they come from.
    if !runtime.has_ompt && tool::is_active(caller) && (!is_variadic(entry) || doacross_counters().is_some()) {
        return 0;
    }
    runtime.function_at(entry)
}

/// Whether a call of an entry point has as many arguments as the loop has counters.
fn is_variadic(entry: usize) -> bool {
    entry == Entry::GOMP_doacross_wait as usize || entry == Entry::GOMP_doacross_ull_wait as usize
}

/// How many counters the doacross loop of the calling thread has. `None` if it began before the tool did, or has too many.
pub fn doacross_counters() -> Option<usize> {
    let count = Thread::current().task().doacross.load(Relaxed) as usize;
    (1..=machine::MOST_ARGUMENTS).contains(&count).then_some(count)
}

/// The runtime that the code at `caller` calls. The last act of a body may be a jump to the runtime, which then returns to this library:
/// the runtime is that of the task.
fn runtime_of(caller: usize) -> &'static Runtime {
    let of_task = machine::is_body_call(caller).then(|| Thread::current().task().runtime()).flatten();
    of_task.unwrap_or_else(|| runtimes::of_caller(caller))
}

/// The runtime does no more for this call: the task executes the program again.
pub fn end(task: &Task) {
    task.frame.enter_frame.store(0, Relaxed);
    task.frame.enter_frame_flags.store(0, Relaxed);
}
