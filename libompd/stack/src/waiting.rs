//! What stacks tell of waits that the data of a runtime does not.

use std::collections::HashMap;

use ompd_process::Addr;
use ompd_runtime::Origin;
use ompd_runtime::entry::{Entry, Role};
use ompd_runtime::model::{
    BarrierKind, Fact, LockKind, RuntimeSnapshot, SourceLine, TaskKind, TeamId, Thread, Wait, WaitKind,
};

use crate::physical::{Owner, Physical, Segment};
use crate::process::Process;
use crate::stitch::line_at;

/// Adds to waits by what call the program waits and where it made it, and finds waits of which memory has no trace.
pub(crate) fn explain(process: &Process<'_>, snapshot: &mut RuntimeSnapshot, runtime: usize, threads: &[Physical]) {
    let by_lwp: HashMap<i32, &Physical> = threads.iter().map(|t| (t.lwp, t)).collect();
    let mut found: Vec<(usize, Wait)> = Vec::new();
    let (locks, tasks) = (&mut snapshot.locks, &snapshot.tasks);
    for (index, thread) in snapshot.threads.iter_mut().enumerate() {
        let Some(physical) = thread.lwp.and_then(|lwp| by_lwp.get(&lwp)) else { continue };
        let Some(call) = physical.segments.first().filter(|s| s.owner == Owner::Runtime(runtime) && !s.interrupts)
        else {
            continue;
        };
        let entry = call.entry.filter(|_| call.called.is_some());
        let task_wait = |kind| matches!(kind, WaitKind::Taskwait | WaitKind::Taskgroup | WaitKind::TaskwaitOrTaskgroup);
        let wait = match &mut thread.wait {
            // libomp leaves the mark of a taskwait there, and it ends whatever others do.
            Fact::Known { value: Some(wait), .. }
                if task_wait(wait.kind) && entry.is_some_and(|entry| entry.construct == "taskyield") =>
            {
                thread.wait =
                    Fact::unknown("it is in taskyield, which waits for nothing, and may be executing no task");
                thread.state = Fact::unknown("it is in taskyield");
                continue;
            }
            Fact::Known { value: Some(wait), .. } => wait,
            Fact::Known { value: None, .. } => continue,
            Fact::Unknown { .. } => {
                let task = thread.task.get().and_then(|id| tasks.get(id.0));
                let in_explicit = task.is_none_or(|task| task.kind.get().is_none_or(TaskKind::is_explicit));
                let wait = by_call(process, physical, runtime, call, entry, thread, in_explicit);
                found.extend(wait.map(|wait| (index, wait)));
                continue;
            }
        };
        wait.kind = refined(wait.kind, call, entry);
        if wait.kind == WaitKind::Taskwait {
            wait.taskgroup = None;
        }
        if wait.kind == WaitKind::RegionEnd {
            wait.barrier = None;
        }
        if let (Some(lock), Some(kind)) = (wait.lock.and_then(|id| locks.get_mut(id.0)), entry.and_then(lock_kind))
            && lock.kind.value().is_none()
        {
            lock.kind = Fact::known(kind, Origin::Stack);
        }
        place(process, physical, entry, wait);
    }
    for (index, mut wait) in found {
        let thread = &snapshot.threads[index];
        let task = thread.task.get().and_then(|id| snapshot.task(id)).map(|task| task.descriptor);
        let team = wait.team.and_then(|id| snapshot.team(id)).map(|team| team.descriptor);
        wait.object = team.or(task).unwrap_or(Addr::NULL);
        wait.over = over(snapshot, thread, &wait);
        let thread = &mut snapshot.threads[index];
        if let Some(state) = wait.kind.state() {
            thread.state = Fact::known(state, Origin::Stack);
        }
        thread.wait = Fact::known(Some(wait), Origin::Stack);
    }
}

/// Where the program made the call, and which it is.
fn place(process: &Process<'_>, physical: &Physical, entry: Option<Entry>, wait: &mut Wait) {
    // The call that opened the region is on the stack of its thread 0 as long as a body that ended in a jump waits.
    if let Some(entry) = entry.filter(|entry| !entry.role.opens() && wait.call.is_none()) {
        wait.call = Some(entry.construct);
    }
    name_barrier(entry, wait);
    let Some(caller) = physical.segments.get(1) else { return };
    // At the end of a region, and before its beginning, the call is that of the region as a whole.
    let placed = entry.is_some_and(|e| !e.unplaced && !e.role.opens());
    let line = || line_at(process, physical.backtrace.frames[caller.frames.start].lookup());
    if wait.location.is_none() && wait.kind != WaitKind::Pool && placed {
        wait.location = line();
    } else if wait.barrier.is_some() && placed && entry.is_some_and(|e| e.construct == "barrier") {
        // What a thread recorded when it arrived gives way to a barrier in a task that it has executed there since.
        let differs = |line: &SourceLine| wait.location.as_ref().is_some_and(|recorded| !same_line(recorded, line));
        if let Some(line) = line().filter(differs) {
            wait.location = Some(line);
            wait.barrier =
                Some(Fact::unknown("the runtime's record is of another barrier, in a task it executed here"));
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
        "end of for" => BarrierKind::Loop,
        "end of sections" => BarrierKind::Sections,
        "single" | "copyprivate" => BarrierKind::Single,
        "reduction" | "end of worksharing" => BarrierKind::Implicit,
        _ => return,
    };
    *barrier = Fact::known(kind, Origin::Stack);
}

/// The kind of lock that a call waits for.
fn lock_kind(entry: Entry) -> Option<LockKind> {
    match entry.construct {
        "omp_set_lock" => Some(LockKind::Lock),
        "omp_set_nest_lock" => Some(LockKind::NestLock),
        "critical" => Some(LockKind::Critical),
        "atomic" => Some(LockKind::Atomic),
        _ => None,
    }
}

/// The kind of a wait, as far as the call tells more than the runtime's data.
fn refined(kind: WaitKind, call: &Segment, entry: Option<Entry>) -> WaitKind {
    match (kind, entry.map(|entry| entry.construct)) {
        (WaitKind::Mutex, Some("omp_set_lock" | "omp_set_nest_lock")) => WaitKind::Lock,
        (WaitKind::Mutex, Some("critical")) => WaitKind::Critical,
        (WaitKind::Mutex, Some("atomic")) => WaitKind::Atomic,
        (WaitKind::TaskwaitOrTaskgroup, Some("taskwait")) => WaitKind::Taskwait,
        (WaitKind::TaskwaitOrTaskgroup, Some("taskgroup")) => WaitKind::Taskgroup,
        // The body is over: what called it waits now, in the thread's first function or in the call that opened the region.
        // A body that ended in a jump to the barrier would be known to have vanished.
        (WaitKind::Barrier, None) if call.base && call.vanished.is_none() => WaitKind::RegionEnd,
        (WaitKind::Barrier, Some(_)) if entry.is_some_and(|e| e.role.opens()) && call.vanished.is_none() => {
            WaitKind::RegionEnd
        }
        _ => kind,
    }
}

/// A wait that leaves no trace in memory: a thread that is inside a call which returns only after such a wait, and executes
/// no task there.
fn by_call(
    process: &Process<'_>,
    physical: &Physical,
    runtime: usize,
    call: &Segment,
    entry: Option<Entry>,
    thread: &Thread,
    in_explicit: bool,
) -> Option<Wait> {
    let (team, entry) = (thread.team.flat()?, entry?);
    let kind = match entry.construct {
        "taskwait" => WaitKind::Taskwait,
        "taskwait depend" => WaitKind::Dependences,
        "taskgroup" => WaitKind::Taskgroup,
        "ordered" => WaitKind::Ordered,
        "ordered depend(sink)" => WaitKind::Sink,
        "barrier" => WaitKind::Barrier,
        construct
            if entry.role == Role::RunsTasks && construct.starts_with("end of ") && construct != END_SERIALIZED =>
        {
            WaitKind::Barrier
        }
        _ if entry.role.opens() && ends_region(process, physical, runtime, call) => WaitKind::RegionEnd,
        _ => return None,
    };
    // Who has an explicit task in its hands, begun or just ended, does not wait at a barrier.
    if matches!(kind, WaitKind::Barrier | WaitKind::RegionEnd) && in_explicit {
        return None;
    }
    let team_barrier = matches!(kind, WaitKind::Barrier | WaitKind::RegionEnd).then_some(team);
    let mut wait = Wait { team: team_barrier, ..Wait::new(kind, Addr::NULL, Origin::Stack) };
    place(process, physical, Some(entry), &mut wait);
    Some(wait)
}

/// Ends a region that has one thread, which waits for nobody.
const END_SERIALIZED: &str = "end of parallel";

/// True if the thread is in what the call that opened its region calls for the region's end.
fn ends_region(process: &Process<'_>, physical: &Physical, runtime: usize, call: &Segment) -> bool {
    let Some(other) = process.runtimes[runtime].ends_regions() else { return false };
    let frames = &physical.backtrace.frames[call.frames.clone()];
    frames
        .iter()
        .filter_map(|frame| process.callee(frame))
        .any(|callee| process.owner(callee) == Owner::Runtime(runtime) && process.leads_to(runtime, other, callee))
}

/// False if it is known that what a thread waits for by its stack had not happened.
fn over(snapshot: &RuntimeSnapshot, thread: &Thread, wait: &Wait) -> Fact<bool> {
    let not = Fact::known(false, Origin::Stack);
    let task = thread.task.get().and_then(|id| snapshot.task(id));
    let unknown = || Fact::unknown("only its stack tells of this wait, not whether it is over");
    match wait.kind {
        // Whether it is on its way out is known of thread 0 alone: it is the last to arrive and the first to leave.
        WaitKind::Barrier | WaitKind::RegionEnd if thread.thread_num.get() != Some(0) => unknown(),
        WaitKind::Barrier | WaitKind::RegionEnd => match thread.team.flat() {
            Some(team) if lacks(snapshot, thread, team, wait.kind) || has_tasks(snapshot, team) => not,
            _ => unknown(),
        },
        WaitKind::Taskwait if task.is_some_and(|t| t.unfinished_children.get().is_some_and(|n| n > 0)) => not,
        WaitKind::Taskgroup => {
            let group = task.and_then(|t| t.taskgroup.flat()).and_then(|id| snapshot.taskgroup(id));
            if group.is_some_and(|g| g.unfinished.get().is_some_and(|n| n > 0)) { not } else { unknown() }
        }
        WaitKind::Ordered => {
            let team = thread.team.flat();
            let number = thread.thread_num.get();
            let mut turns =
                snapshot.loops.iter().filter(|l| Some(l.team) == team).filter_map(|l| l.ordered_turn.flat());
            if number.is_some() && turns.any(|turn| Some(turn) != number) { not } else { unknown() }
        }
        _ => unknown(),
    }
}

/// Some member is known to be elsewhere than at this barrier, and in the region. Who has not been let into the region, or was
/// not recorded to have arrived, may be about to leave this barrier.
fn lacks(snapshot: &RuntimeSnapshot, thread: &Thread, team: TeamId, kind: WaitKind) -> bool {
    let members = snapshot.team(team).map(|t| t.members.as_slice()).unwrap_or_default();
    members.iter().flatten().filter(|lwp| Some(**lwp) != thread.lwp).any(|lwp| {
        match snapshot.thread_by_lwp(*lwp).map(|member| &member.wait) {
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
fn has_tasks(snapshot: &RuntimeSnapshot, team: TeamId) -> bool {
    let of_team = snapshot.tasks.iter().filter(|task| task.team.flat() == Some(team));
    of_team.into_iter().any(|task| task.unfinished_children.get().is_some_and(|n| n > 0))
}
