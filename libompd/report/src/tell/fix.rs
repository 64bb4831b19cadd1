//! How to fix each kind of hang.

use ompd_process::TargetKind;
use ompd_runtime::model::{Fact, LockKind, Owner, TaskKind};
use ompd_runtime::waits_for::{Certainty, Node, Situation, Verdict};

use super::teller::Teller;
use crate::{outside, words};

/// Locks that are named in one sentence.
const MOST_NAMED: usize = 3;

const NESTED_CRITICAL: &str =
    "Critical constructs of one name do not nest: give the inner one another name, or move it out.";

/// What to do about the event of a detached task.
pub(crate) const EVENT: &str =
    "Call omp_fulfill_event on every path, errors included, from a thread that does not wait for the task.";

/// What to do about a verdict, with the names of what it is about.
pub(super) fn fix(teller: &Teller<'_>, verdict: &Verdict) -> String {
    let locks = teller.locks(verdict);
    let with_mutexes = [locks.clone(), teller.mutexes(verdict)].concat();
    let lock = || with_mutexes.first().cloned().unwrap_or_else(|| "the lock".to_owned());
    let missing = matches!(verdict.situation, Situation::MissingMember) && with_mutexes.is_empty();
    let by_itself = teller.probably_held_by_waiter(verdict);
    let turn = teller.turn(verdict).filter(|_| verdict.situation == Situation::ClosedWaits);
    if let Some(fix) = turn.and_then(|lwp| of_call(teller, lwp)) {
        return fix;
    }
    let in_tasks = verdict.situation == Situation::ClosedWaits && teller.outside_in_tasks(verdict).is_some();
    if (missing || in_tasks || verdict.certainty == Certainty::Waiting && by_itself.is_none())
        && let Some(fix) = outside(teller, verdict)
    {
        return fix;
    }
    // It is the runtime's own: no change of the program sets it free.
    if teller.waits_for_device_lock(verdict) {
        return "See what the thread that has it does on the device: `stacks`.".to_owned();
    }
    match verdict.situation {
        Situation::LockCycle if teller.has_interpreter_lock(verdict) => {
            format!("Release Python's GIL before {} is set (Py_BEGIN_ALLOW_THREADS, or nogil in Cython).", lock())
        }
        Situation::LockCycle if teller.has_join(verdict) => {
            format!("Release {} before the thread that needs it is joined.", lock())
        }
        Situation::LockCycle if locks.len() == 1 && !teller.waits_for_mutex(verdict) => {
            format!("Release {} before the wait for the thread that needs it, or acquire it after the wait.", lock())
        }
        Situation::LockCycle if locks.is_empty() => {
            let names = words::and(&with_mutexes[..with_mutexes.len().min(MOST_NAMED)]);
            format!("Lock {names} in the same order in every thread, or use one lock for all.")
        }
        Situation::LockCycle => {
            let names = if locks.len() > 1 { words::and(&locks) } else { "the locks".to_owned() };
            format!("Set {names} in the same order in every thread, or use one lock for all.")
        }
        Situation::SelfDeadlock if verdict.core.iter().any(|node| is_critical(teller, *node)) => {
            NESTED_CRITICAL.to_owned()
        }
        Situation::SelfDeadlock if locks.is_empty() => {
            format!("Unlock {} before it is locked again, or make it recursive.", lock())
        }
        Situation::SelfDeadlock => {
            let waiter = teller.waiting(verdict).first().copied();
            let node = verdict.core.iter().find(|node| matches!(node, Node::Lock(..)));
            format!("Unset {} before it is set again, {}.", lock(), otherwise(teller, waiter, node.copied()))
        }
        Situation::OwnerGone => {
            format!("Release {} on every way out of the code that acquires it, exceptions and returns included.", lock())
        }
        Situation::BarrierMismatch => {
            "Every thread of a team must reach the same barriers: move the barrier out of the branch.".to_owned()
        }
        Situation::OrphanedWorksharing => {
            "All threads of a team must reach a worksharing construct or single, or none: move it out of the branch, or \
             add nowait if no code needs its barrier."
                .to_owned()
        }
        Situation::MissingMember | Situation::ClosedWaits
            if with_mutexes.is_empty() && teller.has_interpreter_lock(verdict) =>
        {
            "Release Python's GIL around the call that opens the region (ctypes: CDLL, not PyDLL; Cython and Numba: nogil; \
             C: Py_BEGIN_ALLOW_THREADS)."
                .to_owned()
        }
        Situation::MissingMember if with_mutexes.is_empty() => {
            let own_end = |lwp| outside::own_end(teller.inspection.outside(lwp)?);
            first_thread(verdict, own_end).unwrap_or_else(|| {
                "Let the absent threads reach the barrier first, or do without the barrier.".to_owned()
            })
        }
        Situation::MissingMember if teller.has_join(verdict) => {
            format!("Release {} before the wait for the thread that needs it, or acquire it after the wait.", lock())
        }
        Situation::MissingMember => before_barrier(teller, verdict, &with_mutexes),
        Situation::UnfulfilledEvent => EVENT.to_owned(),
        Situation::DependenceCycle => {
            "A task must not wait for a task that depends on it: release what it holds first, or drop the dependence."
                .to_owned()
        }
        Situation::DeviceNotDone => {
            "Use a monitor of the device to see whether it computes, and a debugger for the device to see what.".to_owned()
        }
        Situation::TaskNeverRun => {
            "Do not hold a lock or wait for a flag that only a queued task can release: use taskwait or dependences, or \
             more threads."
                .to_owned()
        }
        Situation::NestedExhausted => {
            "Allow more nested levels (OMP_MAX_ACTIVE_LEVELS), or use omp_get_num_threads() in the region.".to_owned()
        }
        Situation::PoolLostInFork => {
            "Do not use OpenMP in the child of a fork if the parent did: start processes with spawn or forkserver, exec \
             after fork, or set OMP_NUM_THREADS=1 in the child."
                .to_owned()
        }
        Situation::ClosedWaits | Situation::LockHeld if by_itself.is_some() => {
            match by_itself.filter(|(_, node, _)| !is_critical(teller, *node)) {
                Some((waiter, node, lock)) => {
                    let otherwise = otherwise(teller, Some(waiter), Some(node));
                    format!("If so: unset {lock} before it is set again, {otherwise}.")
                }
                None => NESTED_CRITICAL.to_owned(),
            }
        }
        Situation::ClosedWaits if teller.probable_cycle(verdict).is_some() => {
            "If so: set the locks in the same order in every thread, or use one lock for both.".to_owned()
        }
        Situation::ClosedWaits if teller.missing(verdict).is_some() => {
            "No thread may end in a parallel region (pthread_exit), and no child of fork may continue one.".to_owned()
        }
        Situation::ClosedWaits if locks.is_empty() && in_tasks => {
            let (outside, ..) = teller.outside_in_tasks(verdict).unwrap_or_default();
            format!("No thread of the process can end what {} waits for: see who else can.", teller.whos(&outside))
        }
        Situation::ClosedWaits if locks.is_empty() && teller.turn(verdict).is_some() => {
            "A thread must finish its ordered region before it waits: move the wait out of the loop.".to_owned()
        }
        Situation::ClosedWaits if locks.is_empty() => {
            "One of these threads must continue by itself: see what each was to do next with `stacks`.".to_owned()
        }
        Situation::ClosedWaits if teller.probable_holder(verdict).is_none() && locks.len() > 1 => {
            let names = words::and(&locks[..locks.len().min(MOST_NAMED)]);
            format!("Set {names} in the same order in every thread, and release them on every path: see `stacks`.")
        }
        Situation::ClosedWaits if teller.barrier(verdict).is_some() => {
            let told = teller.probable_holder(verdict).map(|(_, lock, _)| lock);
            if told.is_none() && teller.waits_for_tasks(verdict) {
                let names = words::and(&locks[..locks.len().min(MOST_NAMED)]);
                return format!(
                    "Release {names} before every wait: a thread that waits at the barrier, for tasks, or for the lock may have it."
                );
            }
            let names = told.map_or_else(|| locks.clone(), |lock| vec![lock]);
            before_barrier(teller, verdict, &names)
        }
        Situation::ClosedWaits if teller.probable_owner(verdict).is_some() => {
            let (_, lock, owner) = teller.probable_owner(verdict).unwrap_or_default();
            format!("If {} holds {lock}: release it before the wait, and on every path.", teller.whos(&[owner]))
        }
        Situation::ClosedWaits => {
            let names = words::and(&locks[..locks.len().min(MOST_NAMED)]);
            format!("Release {names} on every path. A waiting thread holds it, or one that has ended: see `stacks`.")
        }
        Situation::BarrierNotReached | Situation::LockHeld | Situation::OrderedTurn | Situation::TasksUnfinished => {
            moving(teller, verdict)
        }
    }
}

/// What to do about what the first of the threads waits for outside of OpenMP.
fn outside(teller: &Teller<'_>, verdict: &Verdict) -> Option<String> {
    first_thread(verdict, |lwp| of_call(teller, lwp))
}

/// What is told of the first of the threads of which something is.
fn first_thread(verdict: &Verdict, told: impl Fn(i32) -> Option<String>) -> Option<String> {
    verdict.core.iter().find_map(|node| match node {
        Node::Thread(lwp) => told(*lwp),
        _ => None,
    })
}

/// What to do about what a thread waits for outside of OpenMP.
fn of_call(teller: &Teller<'_>, lwp: i32) -> Option<String> {
    outside::fix(teller.inspection.outside(lwp)?, teller.inspection.kind == TargetKind::Live)
}

/// What else to do about a lock that its waiter has set itself. A nestable lock belongs to a task, so that it is no help if another task
/// of the thread has set it.
fn otherwise(teller: &Teller<'_>, waiter: Option<i32>, lock: Option<Node>) -> &'static str {
    let runtimes = &teller.inspection.runtimes;
    let is_nestable = matches!(lock, Some(Node::Lock(runtime, id)) if {
        runtimes[runtime].lock(id).is_some_and(|lock| lock.kind.get() == Some(LockKind::NestLock))
    });
    let in_task = |lwp: i32| {
        runtimes.iter().any(|snapshot| {
            let thread = snapshot.thread_by_lwp(lwp);
            let task = thread.and_then(|thread| snapshot.task(thread.task.get()?)).and_then(|task| task.kind.get());
            task.is_some_and(TaskKind::is_explicit)
        })
    };
    if is_nestable || waiter.is_some_and(in_task) {
        "and before a wait in which the thread may execute another task (taskwait, barrier)"
    } else {
        "or make it a nestable lock (omp_nest_lock_t)"
    }
}

/// What to do about locks for which threads wait that have not reached a barrier.
fn before_barrier(teller: &Teller<'_>, verdict: &Verdict, locks: &[String]) -> String {
    // Who waits for the only lock may hold it as well as who waits at the barrier, if it has set some lock before.
    let is_unknown = |node: &&Node| match **node {
        Node::Lock(runtime, id) => {
            teller.inspection.runtimes[runtime].lock(id).is_some_and(|lock| lock.owner.value().is_none())
        }
        _ => matches!(node, Node::Word(..)),
    };
    let lock = verdict.core.iter().find(is_unknown).filter(|_| teller.probable_holder(verdict).is_none());
    let itself = match lock.map_or_else(Vec::new, |lock| teller.waiters(verdict, *lock))[..] {
        [waiter] if teller.has_set_some_lock(waiter) => {
            format!(" If {} holds it: release it before it is acquired again.", teller.whos(&[waiter]))
        }
        _ => String::new(),
    };
    let it = if locks.len() == 1 { "it" } else { "them" };
    let names = words::and(&locks[..locks.len().min(MOST_NAMED)]);
    format!("Release {names} before the barrier, or acquire {it} after the barrier.{itself}")
}

/// What to do about threads that may still continue.
fn moving(teller: &Teller<'_>, verdict: &Verdict) -> String {
    debug_assert_eq!(verdict.certainty, Certainty::Waiting);
    let unknown = verdict.core.iter().any(|node| match node {
        Node::Lock(runtime, id) => {
            let lock = teller.inspection.runtimes[*runtime].lock(*id);
            lock.is_none_or(|lock| {
                !matches!(lock.owner, Fact::Known { value: Some(Owner::Thread(_) | Owner::Task(_)), .. })
            })
        }
        Node::Word(..) => true,
        _ => false,
    });
    if teller.inspection.kind == TargetKind::Core {
        "This may be normal: a core is of one moment only. `stacks` shows what the threads did.".to_owned()
    } else if unknown {
        "This may be normal. `--samples 2` shows which threads move; `stacks` shows who can hold the lock.".to_owned()
    } else {
        "This may be normal. `--samples 2` shows whether it moves.".to_owned()
    }
}

fn is_critical(teller: &Teller<'_>, node: Node) -> bool {
    let Node::Lock(runtime, id) = node else { return false };
    let lock = teller.inspection.runtimes[runtime].lock(id);
    lock.is_some_and(|lock| lock.kind.get() == Some(LockKind::Critical))
}
