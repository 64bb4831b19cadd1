//! What threads wait for, by memory and by the calls on their stacks.

use std::collections::BTreeMap;

use super::*;
use crate::entry::{Construct, Role};
use crate::evidence::RuntimeCall;
use crate::model::{Common, index_by_lwp};

/// What each thread of a runtime waits for.
pub(super) fn waits(raw: &RawSnapshot, stacks: &StackEvidence, in_program: &HashSet<i32>) -> Vec<Fact<Option<Wait>>> {
    let mut waits = by_evidence(raw, stacks, in_program);
    for (wait, thread) in waits.iter_mut().zip(&raw.threads) {
        if wait.value().is_none() && in_runtime(raw, thread, stacks).is_some() {
            *wait = Fact::known(None, Origin::Stack);
        }
    }
    waits
}

/// What a thread executes the runtime's code for, if it waits for nothing there.
pub(super) fn in_runtime(raw: &RawSnapshot, thread: &RawThread, stacks: &StackEvidence) -> Option<InRuntime> {
    let call = thread.lwp.filter(|_| thread.at_work).and_then(|lwp| stacks.calls.get(&lwp))?;
    let explicit = || {
        let task = thread.task.get().and_then(|id| raw.task(id));
        task.and_then(|task| task.kind.get()).is_some_and(TaskKind::is_explicit)
    };
    match call.entry {
        Some(entry) if entry.construct.never_waits() => Some(InRuntime::Call(entry.construct)),
        // Code of the task would lie further in on its stack.
        _ if call.of_region && explicit() => Some(InRuntime::Task),
        _ => None,
    }
}

/// What each thread of a runtime waits for by memory and by its call, without what only [`in_runtime`] tells.
fn by_evidence(raw: &RawSnapshot, stacks: &StackEvidence, in_program: &HashSet<i32>) -> Vec<Fact<Option<Wait>>> {
    let mut waits: Vec<Fact<Option<Wait>>> = raw.threads.iter().map(|thread| thread.wait.clone()).collect();
    let mut found: Vec<(usize, Wait)> = Vec::new();
    for (index, thread) in raw.threads.iter().enumerate() {
        if thread.lwp.is_some_and(|lwp| stacks.interrupted.contains(&lwp)) {
            waits[index] = in_handler(thread, stacks);
        }
        // Memory and registers leave it open, and its stack shows that it executes code of the program.
        // So it does where memory shows only that it may begin the region.
        let is_open = match &waits[index] {
            Fact::Unknown { .. } => true,
            Fact::Known { value: Some(wait), .. } => {
                wait.kind == WaitKind::RegionStart && wait.over.get() == Some(true)
            }
            Fact::Known { value: None, .. } => false,
        };
        if is_open && thread.lwp.is_some_and(|lwp| in_program.contains(&lwp)) {
            waits[index] = Fact::known(None, Origin::Stack);
        }
        let Some(call) = thread.lwp.and_then(|lwp| stacks.calls.get(&lwp)) else { continue };
        let task_wait = |kind| matches!(kind, WaitKind::Taskwait | WaitKind::Taskgroup | WaitKind::TaskwaitOrTaskgroup);
        let in_taskyield = call.entry.is_some_and(|entry| entry.construct == Construct::Taskyield);
        match &mut waits[index] {
            // libomp leaves the mark of a taskwait there, and it ends whatever others do.
            Fact::Known { value: Some(wait), .. } if task_wait(wait.kind) && in_taskyield => {
                waits[index] = Fact::unknown(Common::InTaskyield);
            }
            Fact::Known { value: Some(wait), .. } => refine(wait, call),
            Fact::Known { value: None, .. } => {}
            Fact::Unknown { .. } => found.extend(by_call(raw, thread, call).map(|wait| (index, wait))),
        }
    }
    for (index, mut wait) in found {
        let thread = &raw.threads[index];
        let task = thread.task.get().and_then(|id| raw.task(id)).map(|task| task.descriptor);
        let team = wait.team.and_then(|id| raw.team(id)).map(|team| team.descriptor);
        wait.object = team.or(task).unwrap_or(Addr::NULL);
        wait.over = over(raw, &waits, thread, &wait);
        waits[index] = Fact::known(Some(wait), Origin::Stack);
    }
    waits
}

/// What a thread waits for that executes a signal handler. Registers are those of the handler. Memory shows what the thread waited for
/// when the signal came. It is kept for a lock if the handler is in a call that sets one: a thread is in the queue of one lock only.
fn in_handler(thread: &RawThread, stacks: &StackEvidence) -> Fact<Option<Wait>> {
    let call = thread.lwp.and_then(|lwp| stacks.calls.get(&lwp));
    let sets = call.and_then(|call| call.entry).is_some_and(|entry| {
        matches!(entry.construct, Construct::SetLock | Construct::SetNestLock | Construct::Critical | Construct::Atomic)
    });
    match &thread.wait {
        Fact::Known { value: Some(wait), .. }
            if wait.origin == Origin::Registers || sets && wait.kind.is_for_lock() =>
        {
            thread.wait.clone()
        }
        _ if call.is_some() => Fact::unknown(Common::InSignalHandler),
        _ => Fact::known(None, Origin::Stack),
    }
}

/// What tasks wait for: the one a thread executes for the tasks that the thread waits for, a suspended one for what it has called.
pub(super) fn of_tasks(
    threads: &[RawThread],
    waits: &[Fact<Option<Wait>>],
    tasks: &[RawTask],
    stacks: &StackEvidence,
) -> BTreeMap<TaskId, Wait> {
    let executed = threads.iter().zip(waits).filter_map(|(thread, wait)| {
        let wait = wait.value()?.as_ref().filter(|wait| wait.kind.is_for_tasks())?;
        Some((thread.task.get()?, wait.clone()))
    });
    let mut of_tasks: BTreeMap<TaskId, Wait> = executed.collect();
    for (id, call) in &stacks.task_calls {
        let Some(task) = tasks.get(id.0).filter(|task| task.state.get() == Some(TaskState::Suspended)) else {
            continue;
        };
        let kind = match call.entry.construct {
            Construct::Taskwait => WaitKind::Taskwait,
            Construct::TaskwaitDepend => WaitKind::Dependences,
            Construct::Taskgroup => WaitKind::Taskgroup,
            Construct::Barrier => WaitKind::Barrier,
            construct if call.entry.role == Role::RunsTasks && construct.is_team_end() => WaitKind::Barrier,
            _ => continue,
        };
        let wait = Wait::new(kind, task.descriptor, Origin::Stack);
        of_tasks.insert(*id, Wait { location: call.line.clone(), call: Some(call.entry.construct), ..wait });
    }
    of_tasks
}

/// What the call tells of a wait that was read.
fn refine(wait: &mut Wait, call: &RuntimeCall) {
    wait.kind = refined(wait.kind, call);
    if wait.kind == WaitKind::Taskwait {
        wait.taskgroup = None;
    }
    if wait.kind == WaitKind::RegionEnd {
        wait.barrier = None;
    }
    place(call, wait);
}

/// Where the program made the call, and which it is.
fn place(call: &RuntimeCall, wait: &mut Wait) {
    // The call that opened the region is on the stack of its thread 0 as long as a body that ended in a jump waits.
    if let Some(entry) = call.entry.filter(|entry| !entry.role.opens() && wait.call.is_none()) {
        wait.call = Some(entry.construct);
    }
    name_barrier(call.entry, wait);
    if wait.location.is_none() && wait.kind != WaitKind::Pool {
        wait.location.clone_from(&call.line);
    } else if wait.barrier.is_some() && call.entry.is_some_and(|e| e.construct == Construct::Barrier) {
        // What a thread recorded when it arrived gives way to a barrier in a task that it has executed there since.
        let differs = |line: &&SourceLine| wait.location.as_ref().is_some_and(|recorded| !same_line(recorded, line));
        if let Some(line) = call.line.as_ref().filter(differs) {
            wait.location = Some(line.clone());
            wait.barrier = Some(Fact::unknown(Common::OtherBarrier));
        }
    }
}

/// The same line, however much of the path is in each of the names.
fn same_line(one: &SourceLine, other: &SourceLine) -> bool {
    let file = |line: &SourceLine| line.file.rsplit('/').next().map(str::to_owned);
    one.line == other.line && file(one) == file(other)
}

/// Which kind of barrier a thread waits at, where the call tells.
fn name_barrier(entry: Option<Entry>, wait: &mut Wait) {
    let (Some(barrier), Some(entry)) = (&mut wait.barrier, entry) else { return };
    let kind = match entry.construct {
        Construct::EndOfFor => BarrierKind::Loop,
        Construct::EndOfSections => BarrierKind::Sections,
        Construct::Single | Construct::Copyprivate => BarrierKind::Single,
        Construct::Reduction | Construct::EndOfWorksharing => BarrierKind::Implicit,
        _ => return,
    };
    *barrier = Fact::known(kind, Origin::Stack);
}

/// The kind of a wait, as far as the call tells more than the runtime's data.
fn refined(kind: WaitKind, call: &RuntimeCall) -> WaitKind {
    match (kind, call.entry.map(|entry| entry.construct)) {
        (WaitKind::Mutex, Some(Construct::SetLock | Construct::SetNestLock)) => WaitKind::Lock,
        (WaitKind::Mutex, Some(Construct::Critical)) => WaitKind::Critical,
        (WaitKind::Mutex, Some(Construct::Atomic)) => WaitKind::Atomic,
        (WaitKind::Mutex, Some(Construct::Target)) => WaitKind::Device,
        (WaitKind::TaskwaitOrTaskgroup, Some(Construct::Taskwait)) => WaitKind::Taskwait,
        (WaitKind::TaskwaitOrTaskgroup, Some(Construct::Taskgroup)) => WaitKind::Taskgroup,
        // The body is over: what called it waits now, in the thread's first function or in the call that opened the region.
        // A body that ended in a jump to the barrier would be known to have vanished.
        (WaitKind::Barrier, None) if call.base && !call.vanished => WaitKind::RegionEnd,
        (WaitKind::Barrier, Some(_)) if call.entry.is_some_and(|e| e.role.opens()) && !call.vanished => {
            WaitKind::RegionEnd
        }
        _ => kind,
    }
}

/// A wait that leaves no trace in memory. The thread is inside a call that returns only after such a wait, and executes
/// no task there.
fn by_call(raw: &RawSnapshot, thread: &RawThread, call: &RuntimeCall) -> Option<Wait> {
    let (team, entry) = (thread.team.flat()?, call.entry?);
    let kind = match entry.construct {
        Construct::Taskwait => WaitKind::Taskwait,
        Construct::TaskwaitDepend => WaitKind::Dependences,
        Construct::Taskgroup => WaitKind::Taskgroup,
        Construct::Ordered => WaitKind::Ordered,
        Construct::OrderedSink => WaitKind::Sink,
        Construct::Barrier => WaitKind::Barrier,
        construct if entry.role == Role::RunsTasks && construct.is_team_end() => WaitKind::Barrier,
        _ if entry.role.opens() && call.ends_region => WaitKind::RegionEnd,
        _ => return None,
    };
    let at_barrier = matches!(kind, WaitKind::Barrier | WaitKind::RegionEnd);
    // A thread that has an explicit task in its hands, begun or just ended, does not wait at a barrier.
    let task = thread.task.get().and_then(|id| raw.task(id));
    if at_barrier && task.is_none_or(|task| task.kind.get().is_none_or(TaskKind::is_explicit)) {
        return None;
    }
    let mut wait = Wait { team: at_barrier.then_some(team), ..Wait::new(kind, Addr::NULL, Origin::Stack) };
    place(call, &mut wait);
    Some(wait)
}

/// False if it is known that what a thread waits for by its stack had not happened.
fn over(raw: &RawSnapshot, waits: &[Fact<Option<Wait>>], thread: &RawThread, wait: &Wait) -> Fact<bool> {
    let not = Fact::known(false, Origin::Stack);
    let task = thread.task.get().and_then(|id| raw.task(id));
    let unknown = || Fact::unknown(Common::OnlyStackTellsNotWhetherOver);
    match wait.kind {
        // Whether it is on its way out is known of thread 0 alone: it is the last to arrive and the first to leave.
        WaitKind::Barrier | WaitKind::RegionEnd if thread.thread_num.get() != Some(0) => unknown(),
        WaitKind::Barrier | WaitKind::RegionEnd => match thread.team.flat() {
            Some(team) if lacks(raw, waits, thread, team, wait.kind) || has_tasks(raw, team) => not,
            _ => unknown(),
        },
        WaitKind::Taskwait if task.is_some_and(|t| t.unfinished_children.get().is_some_and(|n| n > 0)) => not,
        WaitKind::Taskgroup => {
            let group = task.and_then(|t| t.taskgroup.flat()).and_then(|id| raw.taskgroup(id));
            if group.is_some_and(|g| g.unfinished.get().is_some_and(|n| n > 0)) { not } else { unknown() }
        }
        WaitKind::Ordered => {
            let turn = thread.team.flat().zip(thread.thread_num.get()).and_then(|(team, number)| {
                let own = |of: &&Loop| of.team == team && of.members.contains(&number);
                Some((number, raw.loops.iter().find(own)?.ordered_turn.flat()?))
            });
            if turn.is_some_and(|(number, turn)| turn != number) { not } else { unknown() }
        }
        _ => unknown(),
    }
}

/// Some member is known to be elsewhere than at this barrier, and in the region. A member that has not been let into the
/// region, or was not recorded to have arrived, may be about to leave this barrier.
fn lacks(raw: &RawSnapshot, waits: &[Fact<Option<Wait>>], thread: &RawThread, team: TeamId, kind: WaitKind) -> bool {
    let members = raw.team(team).map(|t| t.members.as_slice()).unwrap_or_default();
    members.iter().flatten().filter(|lwp| Some(**lwp) != thread.lwp).any(|lwp| {
        let index = index_by_lwp(&raw.threads, |thread| thread.lwp, *lwp);
        match index.and_then(|index| waits.get(index)) {
            Some(Fact::Known { value: Some(wait), .. }) => {
                let here = wait.team == Some(team) && (wait.kind == kind || wait.kind == WaitKind::BarrierTasks);
                let outside = matches!(wait.kind, WaitKind::RegionStart | WaitKind::Pool);
                let certain = wait.origin != Origin::Stack && wait.over.get() == Some(false);
                !here && !outside && certain
            }
            Some(Fact::Known { value: None, .. }) => true,
            _ => false,
        }
    })
}

/// A task of the team is known not to be over.
fn has_tasks(raw: &RawSnapshot, team: TeamId) -> bool {
    let mut of_team = raw.tasks.iter().filter(|task| task.team.flat() == Some(team));
    of_team.any(|task| task.unfinished_children.get().is_some_and(|n| n > 0))
}
