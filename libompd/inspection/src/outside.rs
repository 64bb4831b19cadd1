//! What threads wait for outside of OpenMP: the library function that the program called, where, and what the kernel shows of the
//! system call. No value here is a guess: what was not found is `None`.

mod calls;
mod model;
mod names;

use std::collections::HashSet;

use ompd_process::Target;
use ompd_runtime::model::{Fact, RuntimeSnapshot};
use ompd_stack::{Code, LogicalStack};

use crate::ProcessThread;
use calls::Calls;

pub use model::{Call, CallSite, Outside, OutsideWait};

/// Of every thread that executes no wait of a runtime, in LWP order.
pub(crate) fn find(
    target: &dyn Target,
    code: &Code<'_>,
    report: &ompd_stack::Report,
    runtimes: &[RuntimeSnapshot],
    threads: &[ProcessThread],
) -> Vec<Outside> {
    let waiting: HashSet<i32> = runtimes.iter().flat_map(|runtime| waiting(runtime, &report.logical)).collect();
    let mut calls = Calls::new(target, code, report);
    let outside = threads.iter().filter(|thread| !waiting.contains(&thread.lwp));
    outside
        .map(|thread| Outside {
            lwp: thread.lwp,
            call: calls.of(thread.lwp),
            wait: thread.blocked_in.clone().map(|name| OutsideWait::SystemCall { name }),
        })
        .collect()
}

/// Threads that wait in a runtime, or may: their stacks show them in one of its calls.
fn waiting<'r>(runtime: &'r RuntimeSnapshot, stacks: &'r [LogicalStack]) -> impl Iterator<Item = i32> + 'r {
    let in_call = |lwp: i32| stacks.iter().any(|stack| stack.lwp == lwp && stack.in_call.is_some());
    runtime.threads.iter().filter_map(move |thread| {
        let lwp = thread.lwp?;
        let waits = match &thread.wait {
            Fact::Known { value, .. } => value.is_some(),
            Fact::Unknown { .. } => in_call(lwp),
        };
        waits.then_some(lwp)
    })
}
