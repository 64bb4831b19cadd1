//! The calls of a runtime that threads are in: what they say of waits is for `ompd_runtime::merge` to decide.

use std::collections::HashMap;

use ompd_runtime::entry::{Construct, Entry};
use ompd_runtime::evidence::RuntimeCall;
use ompd_runtime::model::{Fact, RawSnapshot};

use crate::frame::CodeOwner;
use crate::lines::line_at;
use crate::physical::{Physical, Segment};
use crate::process::Process;

/// The innermost call of each thread into a runtime, by LWP; of threads that memory shows not to wait there is none.
pub(crate) fn calls(
    process: &Process<'_>,
    snapshot: &RawSnapshot,
    runtime: usize,
    threads: &[Physical],
) -> HashMap<i32, RuntimeCall> {
    let by_lwp: HashMap<i32, &Physical> = threads.iter().map(|t| (t.lwp, t)).collect();
    let may_wait = snapshot.threads.iter().filter(|thread| !matches!(thread.wait, Fact::Known { value: None, .. }));
    may_wait
        .filter_map(|thread| {
            let physical = by_lwp.get(&thread.lwp?)?;
            let call = physical.segments.first().filter(|s| s.owner == CodeOwner::Runtime(runtime) && !s.interrupts)?;
            let entry = call.entry.filter(|_| call.called.is_some());
            // The body of a target region on the host may have jumped to another function of the runtime.
            let is_body =
                |entry: &Entry| entry.construct == Construct::Target && has_called_body(process, physical, call);
            let entry = entry.filter(|entry| !is_body(entry));
            // It leaves no trace in memory.
            let unseen = matches!(thread.wait, Fact::Unknown { .. });
            let opens = entry.is_some_and(|entry| entry.role.opens());
            let ends_region = opens && ends_region(process, physical, runtime, call);
            let body_called = physical.segments.get(1).is_some_and(|outer| outer.region || outer.vanished.is_some());
            let of_region = call.base && !call.left || ends_region || body_called;
            let found = RuntimeCall {
                entry,
                base: call.base,
                vanished: call.left,
                line: entry.and_then(|entry| line(process, physical, entry)),
                ends_region: unseen && ends_region,
                of_region: unseen && of_region && !has_called_body(process, physical, call),
            };
            Some((physical.lwp, found))
        })
        .collect()
}

/// True if a frame of the call has called a function by a pointer, as bodies of tasks are called.
fn has_called_body(process: &Process<'_>, physical: &Physical, call: &Segment) -> bool {
    physical.backtrace.frames[call.frames.clone()].iter().any(|frame| process.calls_by_pointer(frame))
}

/// The line of the program's call. At the end of a region, and before its beginning, the call is that of the region as a
/// whole.
fn line(process: &Process<'_>, physical: &Physical, entry: Entry) -> Option<ompd_runtime::model::SourceLine> {
    let caller = physical.segments.get(1).filter(|outer| outer.owner == CodeOwner::Program)?;
    if entry.unplaced || entry.role.opens() {
        return None;
    }
    line_at(process, physical.backtrace.frames[caller.frames.start].lookup())
}

/// True if the thread is in what the call that opened its region calls for the region's end.
fn ends_region(process: &Process<'_>, physical: &Physical, runtime: usize, call: &Segment) -> bool {
    let Some(other) = process.runtimes[runtime].ends_regions() else { return false };
    let frames = &physical.backtrace.frames[call.frames.clone()];
    frames
        .iter()
        .filter_map(|frame| process.callee(frame))
        .any(|callee| process.owner(callee) == CodeOwner::Runtime(runtime) && process.leads_to(runtime, other, callee))
}
