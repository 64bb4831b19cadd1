//! The locks that functions on the stacks acquire, by their code.
//!
//! A runtime may not record which thread owns a lock. The code of a function on a stack shows which locks it has
//! acquired before the place it has reached, and not released since. This holds as far as addresses of code are in the
//! order of execution. It is an inference: a branch may have skipped the call. [`LockCall::leads`] says whether the code leads from
//! the call to the place. If a thread waits for the lock, an earlier call in its function counts only if it does.

use std::collections::{BTreeMap, HashMap};

use ompd_process::{Addr, Target};
use ompd_runtime::Runtime;
use ompd_runtime::model::SourceLine;

use crate::calls::{self, CallTo};
use crate::frame::{CodeOwner, Frame};
use crate::image::Cache;
use crate::lines::line_at;
use crate::physical::Physical;
use crate::process::Process;
use crate::report::Report;

/// Frames of one thread whose code is looked at, from the innermost on.
const FRAMES: usize = 64;

/// A call that acquires a lock, made by a function on a thread's stack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockCall {
    /// The thread.
    pub lwp: i32,
    /// The variable that the call was given (`omp_lock_t`, or the compiler's for a critical construct). `None` if the code
    /// gives none of static storage: then the function may have released it since.
    pub variable: Option<Addr>,
    /// Where the call is in the source.
    pub line: Option<SourceLine>,
    /// The thread is in this call. Otherwise it has passed it, and the function on its stack has not released the lock since.
    pub waits: bool,
    /// The code leads from this call to the place that the function has reached, as far as it can be followed. True also where the
    /// function made an indirect call, which is not followed.
    pub leads: bool,
}

impl Report {
    /// The calls that acquire locks in the functions on all stacks. `runtimes` are those the report was made of.
    pub fn lock_calls(&self, target: &dyn Target, runtimes: &[Box<dyn Runtime>], cache: &Cache) -> Vec<LockCall> {
        let process = Process::new(target, runtimes, cache);
        // Threads share nearly all their functions.
        let mut known: HashMap<(Addr, bool), Vec<LockCall>> = HashMap::new();
        let mut all = Vec::new();
        for thread in &self.threads {
            let own = thread.segments.iter().filter(|segment| segment.owner == CodeOwner::Program);
            let frames = own.flat_map(|segment| thread.backtrace.frames.get(segment.frames.clone())).flatten();
            let mut waits = false;
            for frame in frames.take(FRAMES) {
                let calls = known.entry((frame.pc, frame.exact)).or_insert_with(|| of_frame(&process, frame));
                waits |= calls.iter().any(|call| call.waits);
                all.extend(calls.iter().map(|call| LockCall { lwp: thread.lwp, ..call.clone() }));
            }
            if !waits {
                all.extend(waited_for(&process, thread));
            }
        }
        let mut jumped: HashMap<Addr, Vec<LockCall>> = HashMap::new();
        for stack in &self.logical {
            // Of a function that has left the stack by a jump, only where it begins is known.
            let Some(body) = stack.frames.first().filter(|frame| frame.lwp.is_none()).and_then(|frame| frame.addr)
            else {
                continue;
            };
            let calls = jumped.entry(body).or_insert_with(|| of_jumped(&process, body));
            all.extend(calls.iter().map(|call| LockCall { lwp: stack.lwp, ..call.clone() }));
        }
        all
    }
}

/// The calls of one frame's function, with no thread.
fn of_frame(process: &Process<'_>, frame: &Frame) -> Vec<LockCall> {
    let calls = calls::calls_up_to(&process.images, frame.lookup());
    held(process, calls, (!frame.exact).then_some(frame.pc))
}

/// The call that the innermost frame of the program is in, if that acquires a lock whose variable comes from registers and memory.
fn waited_for(process: &Process<'_>, thread: &Physical) -> Option<LockCall> {
    let number = thread.segments.iter().find(|segment| segment.owner == CodeOwner::Program)?.frames.start;
    let frame = thread.backtrace.frames.get(number).filter(|frame| !frame.exact)?;
    let callee = process.callee(frame)?;
    let locking = lock_call(process, callee).filter(|call| call.acquires)?;
    let frames = &thread.backtrace.frames;
    let variable = calls::argument_value(process.target, &process.images, frames, number, locking.argument)?;
    Some(LockCall {
        lwp: thread.lwp,
        variable: Some(variable),
        line: line_at(process, frame.lookup()),
        waits: true,
        leads: true,
    })
}

/// The jump of a function into a runtime that acquires a lock, if it has only one. What it has acquired before is left out: whether
/// it has begun is not known here.
fn of_jumped(process: &Process<'_>, begins: Addr) -> Vec<LockCall> {
    let mut jumps = calls::jumps_out(&process.images, begins);
    jumps.retain(|jump| lock_call(process, jump.callee).is_some_and(|call| call.acquires));
    let [jump] = jumps[..] else { return Vec::new() };
    held(process, vec![jump], Some(jump.returns_to))
}

fn lock_call(process: &Process<'_>, callee: Addr) -> Option<ompd_runtime::entry::Locking> {
    let CodeOwner::Runtime(runtime) = process.owner(callee) else { return None };
    process.runtimes[runtime].lock_call(&process.symbol(callee)?.name)
}

/// The locks that these calls of a function acquire, and do not release. The thread is in the one that returns to `within`.
fn held(process: &Process<'_>, calls: Vec<CallTo>, within: Option<Addr>) -> Vec<LockCall> {
    let mut held: BTreeMap<Addr, CallTo> = BTreeMap::new();
    let mut of_unknown = None;
    let mut found = Vec::new();
    let reached = calls.iter().find(|call| within == Some(call.returns_to)).copied();
    for call in calls {
        let Some(locking) = lock_call(process, call.callee) else { continue };
        let variable = calls::constant_argument(&process.images, call.returns_to, locking.argument);
        let Some(variable) = variable else {
            if locking.acquires && within != Some(call.returns_to) {
                of_unknown = Some(call);
            }
            continue;
        };
        if !locking.acquires {
            held.remove(&variable);
        } else if within == Some(call.returns_to) {
            found.push((Some(variable), call, true));
            held.retain(|other, before| *other != variable || calls::leads_to(&process.images, before, &call));
        } else {
            held.insert(variable, call);
        }
    }
    found.extend(held.into_iter().map(|(variable, call)| (Some(variable), call, false)));
    found.extend(of_unknown.map(|call| (None, call, false)));
    let all = found.into_iter().map(|(variable, call, waits)| LockCall {
        lwp: 0,
        variable,
        line: line_at(process, call.returns_to.back(1)),
        waits,
        leads: waits || reached.is_none_or(|reached| calls::leads_to(&process.images, &call, &reached)),
    });
    all.collect()
}
