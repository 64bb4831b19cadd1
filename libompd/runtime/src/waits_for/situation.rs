//! What kind of hang it is.

use std::collections::HashSet;

use super::graph::{Graph, Node, exhausted, has_hidden};
use crate::entry::Construct;
use crate::model::*;
use crate::os::{Blocked, OsThread};

/// Known kinds of hangs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Situation {
    /// Threads each hold a lock that the next one waits for.
    LockCycle,
    /// A thread waits for a lock it holds itself.
    SelfDeadlock,
    /// The owner of a lock has ended without giving it back.
    OwnerGone,
    /// Members of a team wait at different barriers.
    BarrierMismatch,
    /// A worksharing construct, or `single`, was met by some members of a team only.
    OrphanedWorksharing,
    /// A member does not come to a barrier, because it waits for something that those at the barrier would have to do.
    MissingMember,
    /// The event of a detached task is fulfilled by nobody.
    UnfulfilledEvent,
    /// A task waits for something that a task does which depends on it.
    DependenceCycle,
    /// A task that is ready is executed by nobody, because all threads that could wait for what it does.
    TaskNeverRun,
    /// A nested region has one thread, because no more levels may be active, and that thread waits for a partner.
    NestedExhausted,
    /// The team's threads were left behind by `fork`.
    PoolLostInFork,
    /// Everybody waits, nobody is left to let another go on.
    ClosedWaits,
    /// Members of a team have not reached a barrier that others wait at, and may still.
    BarrierNotReached,
    /// A lock is held by a thread that may still unset it, or by one that is unknown.
    LockHeld,
    /// The thread whose turn it is in an `ordered` region may still finish it.
    OrderedTurn,
    /// Tasks that a thread waits for are executed by threads that are blocked and may still finish them.
    TasksUnfinished,
    /// Tasks that a thread waits for were handed to a device, and are not over.
    DeviceNotDone,
}

impl Situation {
    /// The name in JSON.
    pub fn word(self) -> &'static str {
        match self {
            Situation::LockCycle => "lock_cycle",
            Situation::SelfDeadlock => "self_deadlock",
            Situation::OwnerGone => "owner_gone",
            Situation::BarrierMismatch => "barrier_mismatch",
            Situation::OrphanedWorksharing => "orphaned_worksharing",
            Situation::MissingMember => "missing_member",
            Situation::UnfulfilledEvent => "unfulfilled_event",
            Situation::DeviceNotDone => "device_not_done",
            Situation::DependenceCycle => "dependence_cycle",
            Situation::TaskNeverRun => "task_never_run",
            Situation::NestedExhausted => "nested_exhausted",
            Situation::PoolLostInFork => "pool_lost_in_fork",
            Situation::ClosedWaits => "closed_waits",
            Situation::BarrierNotReached => "barrier_not_reached",
            Situation::LockHeld => "lock_held",
            Situation::OrderedTurn => "ordered_turn",
            Situation::TasksUnfinished => "tasks_unfinished",
        }
    }
}

pub(super) fn of(
    graph: &Graph,
    core: &[Node],
    snapshots: &[RuntimeSnapshot],
    os: &[OsThread],
    rests_on_calls: bool,
) -> Situation {
    let has = |test: &dyn Fn(&Node) -> bool| core.iter().any(test);
    let barriers: HashSet<(usize, TeamId, bool)> = core
        .iter()
        .filter_map(|node| match node {
            Node::Barrier(runtime, team) => Some((*runtime, *team, false)),
            Node::RegionEnd(runtime, team) => Some((*runtime, *team, true)),
            _ => None,
        })
        .collect();
    let thread = |node: &Node| if let Node::Thread(lwp) = node { Some(*lwp) } else { None };
    let threads: Vec<i32> = core.iter().filter_map(thread).collect();
    let left_behind =
        |node: &Node| matches!(node, Node::Missing(runtime, ..) if lost_threads(&snapshots[*runtime], os));
    let task_in = |wanted: TaskState| {
        move |node: &Node| match node {
            Node::Task(runtime, id) => snapshots[*runtime].task(*id).and_then(|t| t.state.get()) == Some(wanted),
            _ => false,
        }
    };
    let is_lock = |node: &Node| matches!(node, Node::Lock(..) | Node::Word(..));
    // A mutex has no node: an edge leads from the thread that waits for it to its owner.
    let of_mutex = |os: &OsThread| matches!(os.blocked, Blocked::Mutex(_, owner) if threads.contains(&os.lwp) && threads.contains(&owner));
    let has_lock = has(&is_lock) || os.iter().any(of_mutex);
    // Who may unset a lock without a known owner may be a task that is ready. Threads that wait for different locks are nearer to
    // each other, and nobody but its owner leaves a critical construct.
    let is_critical = |node: &Node| match node {
        Node::Lock(runtime, id) => {
            snapshots[*runtime].lock(*id).is_some_and(|lock| lock.kind.get() == Some(LockKind::Critical))
        }
        _ => false,
    };
    let mut locks = core.iter().filter(|node| is_lock(node));
    let may_be_unset = locks.next().is_none_or(|first| !is_critical(first)) && locks.next().is_none();
    let may_unset = |node: &Node| match node {
        Node::Task(runtime, id) => {
            !has_lock || snapshots[*runtime].task(*id).is_none_or(|task| task.may_unset_locks != Some(false))
        }
        _ => false,
    };
    let is_waited_for = |task: &Node| {
        let waits = |node: &Node| *node != Node::Anyone && graph.waits_for(*node).any(|next| next == *task);
        core.iter().any(waits)
    };
    // Tasks that have not begun are the consequence if the others hang without them.
    let is_stuck_without_blocked = || {
        let is_blocked = task_in(TaskState::Blocked);
        let stuck = graph.stuck_but_for(|node| is_blocked(&node));
        stuck.into_iter().any(|index| core.contains(&graph.inner()[index]))
    };
    if has(&left_behind) {
        Situation::PoolLostInFork
    } else if has(&|node| matches!(node, Node::GoneOwner(..))) {
        Situation::OwnerGone
    } else if has(&|node| matches!(node, Node::Event(..)) || lacks_event(graph, *node, snapshots)) {
        Situation::UnfulfilledEvent
    } else if barriers.iter().any(|(runtime, team, end)| barriers.contains(&(*runtime, *team, !end))) {
        if threads.iter().any(|lwp| shares_work(snapshots, *lwp)) {
            Situation::OrphanedWorksharing
        } else {
            Situation::BarrierMismatch
        }
    } else if has(&task_in(TaskState::Blocked)) && !is_stuck_without_blocked() {
        Situation::DependenceCycle
    } else if has(&|node| task_in(TaskState::Ready)(node) && (may_be_unset && may_unset(node) || is_waited_for(node))) {
        Situation::TaskNeverRun
    } else if rests_on_calls && lonely(core, snapshots, os) {
        Situation::NestedExhausted
    } else if rests_on_calls {
        if barriers.is_empty() { Situation::ClosedWaits } else { Situation::MissingMember }
    } else if has(&|node| *node == Node::Anyone) || !has_lock {
        Situation::ClosedWaits
    } else if !barriers.is_empty() {
        Situation::MissingMember
    } else if threads.len() == 1 {
        Situation::SelfDeadlock
    } else {
        Situation::LockCycle
    }
}

/// The process does not have the threads of a pool, one at most apart: `fork` copies only the thread that calls it.
fn lost_threads(snapshot: &RuntimeSnapshot, os: &[OsThread]) -> bool {
    let exists = |lwp: &i32| os.iter().any(|os| os.lwp == *lwp);
    let is_lost = |pool: &Pool| {
        let existing = pool.threads.iter().flatten().filter(|lwp| exists(lwp)).count();
        existing <= 1 && existing < pool.threads.len()
    };
    snapshot.pools.iter().any(is_lost)
}

/// True if something waits for tasks whose bodies are over, and whose events have not been fulfilled. Such tasks are
/// not over, and yet in no queue, not blocked and executed by no thread. They are suspended on no stack either, as no
/// thread executes any task of their kind.
fn lacks_event(graph: &Graph, node: Node, snapshots: &[RuntimeSnapshot]) -> bool {
    let runtime = match node {
        Node::Taskwait(runtime, _) | Node::Taskgroup(runtime, _) | Node::TeamTasks(runtime, _) => runtime,
        Node::Barrier(runtime, _) | Node::RegionEnd(runtime, _) => runtime,
        _ => return false,
    };
    let anyone = graph.waits_for(node).any(|next| next == Node::Anyone);
    anyone && has_detached(&snapshots[runtime])
}

/// True if there are tasks that are not over and were not found, and no thread executes any explicit task: then they are
/// detached ones.
pub fn has_detached(snapshot: &RuntimeSnapshot) -> bool {
    let idle = |thread: &&Thread| thread.role.get() == Some(Role::IdleWorker);
    let executes_none = snapshot.threads.iter().filter(|t| !idle(t)).all(|thread| {
        let kind = thread.task.get().and_then(|id| snapshot.task(id)).and_then(|task| task.kind.get());
        kind.is_some_and(|kind| !kind.is_explicit())
    });
    executes_none && has_hidden(snapshot)
}

/// A thread that yields in a region that got no other.
fn lonely(core: &[Node], snapshots: &[RuntimeSnapshot], os: &[OsThread]) -> bool {
    let yields = |lwp: i32| os.iter().any(|os| os.lwp == lwp && os.blocked == Blocked::Yields);
    let alone = |lwp| snapshots.iter().any(|s| s.thread_by_lwp(lwp).is_some_and(|t| exhausted(s, t)));
    core.iter().any(|node| matches!(node, Node::Thread(lwp) if yields(*lwp) && alone(*lwp)))
}

/// The thread waits at the end of a worksharing construct.
fn shares_work(snapshots: &[RuntimeSnapshot], lwp: i32) -> bool {
    let waits = snapshots.iter().filter_map(|s| s.thread_by_lwp(lwp)).filter_map(|t| t.wait.value()?.as_ref());
    let mut calls = waits.filter_map(|wait| wait.call);
    calls.any(|call| matches!(call, Construct::EndOfFor | Construct::EndOfSections | Construct::Single))
}
