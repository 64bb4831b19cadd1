//! The locks that functions on the stacks acquire, by their code.
//!
//! A runtime may not record who holds a lock. The code of a function that is on a stack shows which locks it has acquired before
//! the place it has reached, and not released since, as far as addresses of code are in the order of execution. That is an
//! inference: a branch may have skipped the call.

use std::collections::{BTreeMap, HashMap};

use ompd_process::{Addr, Target};
use ompd_runtime::Runtime;
use ompd_runtime::model::SourceLine;

use crate::calls::{self, CallTo};
use crate::frame::{CodeOwner, Frame};
use crate::image::Cache;
use crate::lines::line_at;
use crate::process::Process;
use crate::report::Report;

/// Frames of one thread whose code is looked at, from the innermost on.
const FRAMES: usize = 64;

/// A call that acquires a lock, made by a function on a thread's stack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockCall {
    /// The thread.
    pub lwp: i32,
    /// The variable that the call was given (`omp_lock_t`, or the compiler's for a critical construct).
    pub variable: Addr,
    /// Where the call is in the source.
    pub line: Option<SourceLine>,
    /// The thread is in this call. Otherwise it has passed it, and the function on its stack has not released the lock since.
    pub waits: bool,
}

impl Report {
    /// The calls that acquire locks in the functions on all stacks. Only calls whose code gives a variable of static storage
    /// are found. `runtimes` are those the report was made of.
    pub fn lock_calls(&self, target: &dyn Target, runtimes: &[Box<dyn Runtime>], cache: &Cache) -> Vec<LockCall> {
        let process = Process::new(target, runtimes, cache);
        // Threads share nearly all their functions.
        let mut known: HashMap<(Addr, bool), Vec<LockCall>> = HashMap::new();
        let mut all = Vec::new();
        for thread in &self.threads {
            let own = thread.segments.iter().filter(|segment| segment.owner == CodeOwner::Program);
            let frames = own.flat_map(|segment| thread.backtrace.frames.get(segment.frames.clone())).flatten();
            for frame in frames.take(FRAMES) {
                let calls = known.entry((frame.pc, frame.exact)).or_insert_with(|| of_frame(&process, frame));
                all.extend(calls.iter().map(|call| LockCall { lwp: thread.lwp, ..call.clone() }));
            }
        }
        all
    }
}

/// The calls of one frame's function, with no thread.
fn of_frame(process: &Process<'_>, frame: &Frame) -> Vec<LockCall> {
    let calls = calls::calls_up_to(process.target, &process.images, frame.lookup());
    let mut held: BTreeMap<Addr, LockCall> = BTreeMap::new();
    for CallTo { callee, returns_to } in calls {
        let CodeOwner::Runtime(runtime) = process.owner(callee) else { continue };
        let Some(symbol) = process.symbol(callee) else { continue };
        let Some(call) = process.runtimes[runtime].lock_call(&symbol.name) else { continue };
        let Some(variable) = calls::constant_argument(&process.images, returns_to, call.argument) else { continue };
        let waits = !frame.exact && returns_to == frame.pc;
        if call.acquires {
            let line = line_at(process, returns_to.back(1));
            held.insert(variable, LockCall { lwp: 0, variable, line, waits });
        } else {
            held.remove(&variable);
        }
    }
    held.into_values().collect()
}
