//! What loops and sections have in common.

use std::ffi::c_int;
use std::sync::atomic::Ordering::Relaxed;

use crate::call::{self, Begun, Call};
use crate::callbacks as report;
use crate::events::{barriers, single};
use crate::names::Entry;
use crate::ompt::{scope, state, sync_region, work};
use crate::runtimes::Runtime;

/// `ompt_work_t` by the number of a schedule (`omp_sched_t`, with a bit for monotonic ones).
pub fn of_schedule(schedule: usize) -> c_int {
    match schedule as u32 & 0x7fff_ffff {
        1 => work::LOOP_STATIC,
        2 => work::LOOP_DYNAMIC,
        3 => work::LOOP_GUIDED,
        _ => work::LOOP,
    }
}

/// In the place of a kind of loop: `schedule(runtime)`.
pub const BY_ICV: c_int = -1;

/// The kind of a loop, with the schedule that the ICV says where the loop leaves it to that.
pub fn kind_of(kind: c_int, runtime: &Runtime) -> c_int {
    if kind == BY_ICV { of_schedule(runtime.run_schedule() as usize) } else { kind }
}

/// Reports the begin of a loop or of sections around the call that starts them. It is before the call: a thread may wait there.
pub fn begins<R>(begun: Begun, call: Call, kind: c_int, count: u64, forward: impl FnOnce() -> R) -> R {
    let Some(thread) = begun.thread else { return forward() };
    let task = thread.task();
    single::ends(task);
    let kind = kind_of(kind, begun.runtime);
    task.work.store(kind, Relaxed);
    task.work_count.store(count, Relaxed);
    let region = task.region().map(|region| &region.data);
    report::work(kind, scope::BEGIN, region, &task.data, count, call.codeptr_ra());
    let result = forward();
    call::end(task);
    result
}

/// Reports the end of a loop or of sections: before the barrier that follows, if one does.
fn ends<R>(begun: Begun, call: Call, otherwise: c_int, barrier: bool, forward: impl FnOnce() -> R) -> R {
    let Some(thread) = begun.thread else { return forward() };
    let task = thread.task();
    // A region that begins with the loop knows what it is. Else the start has noted it.
    let kind = match task.work.swap(0, Relaxed) {
        0 => otherwise,
        kind => kind,
    };
    let region = task.region().map(|region| &region.data);
    let count = task.work_count.load(Relaxed);
    report::work(kind, scope::END, region, &task.data, count, call.codeptr_ra());
    let result = if barrier {
        let what = (sync_region::BARRIER_IMPLICIT_WORKSHARE, state::WAIT_BARRIER_IMPLICIT_WORKSHARE);
        barriers::waits(thread, call, what, forward)
    } else {
        forward()
    };
    call::end(task);
    result
}

/// The end of sections, or of a loop.
pub fn end_of<R>(call: Call, entry: Entry, otherwise: c_int, barrier: bool) -> R {
    type Real<R> = unsafe extern "C-unwind" fn() -> R;
    let begun = call.begin();
    // SAFETY: the runtime's type, of which the caller knows the result.
    ends(begun, call, otherwise, barrier, || unsafe { begun.real::<Real<R>>(entry)() })
}
