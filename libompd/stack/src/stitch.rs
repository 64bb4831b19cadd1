//! Where on the stacks of a process the regions, implicit tasks and explicit tasks of its runtimes are.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use ompd_process::Addr;
use ompd_runtime::entry::Role;
use ompd_runtime::evidence::{Fork, StackEvidence, TaskCall, TaskOnStack};
use ompd_runtime::merge;
use ompd_runtime::model::{Fact, RawSnapshot, RawTask, RawThread, SourceLine, TaskId, TaskKind, TaskState, TeamId};

use crate::frame::CodeOwner;
use crate::levels::{self, Level};
use crate::lines::{construct_line, line_at};
use crate::physical::Physical;
use crate::process::Process;
use crate::waiting;

/// A segment on a thread's stack: index of the thread, index of the segment.
pub(crate) type SegmentAt = (usize, usize);

/// What was found on the stacks.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// The call that opened a region, by runtime and team.
    pub(crate) forks: HashMap<(usize, TeamId), SegmentAt>,
    /// The body of a region as executed by a member, by runtime, team and the member's number.
    pub(crate) bodies: HashMap<(usize, TeamId, u32), SegmentAt>,
    /// The region a segment is the body of, or that was opened by the call a segment is.
    pub(crate) regions: HashMap<SegmentAt, (usize, Level)>,
    /// Explicit tasks that have been started.
    pub(crate) tasks: HashMap<(usize, TaskId), SegmentAt>,
    pub(crate) task_at: HashMap<SegmentAt, (usize, TaskId)>,
    /// Threads (and runtimes) that execute a task of which it is not certain whether it has the body on their stack.
    pub(crate) doubtful: HashSet<(usize, usize)>,
    /// Explicit tasks whose function the program itself calls: the segment and the frame. clang does so for undeferred ones.
    pub(crate) direct: HashMap<(usize, TaskId), (SegmentAt, usize)>,
    /// The task each thread executes, where it is an explicit one: by thread, then runtime.
    pub(crate) current: BTreeMap<(usize, usize), TaskId>,
}

/// Steps from task to generating task in the search for the one that all others of one function are ancestors of.
const MAX_STEPS: usize = 1 << 20;

/// Finds them.
pub(crate) fn find(process: &Process<'_>, snapshots: &[RawSnapshot], threads: &[Physical]) -> Found {
    let by_lwp: HashMap<i32, usize> = threads.iter().enumerate().map(|(index, t)| (t.lwp, index)).collect();
    let mut found = Found::default();
    for (runtime, snapshot) in snapshots.iter().enumerate() {
        for thread in &snapshot.threads {
            let Some(&index) = thread.lwp.as_ref().and_then(|lwp| by_lwp.get(lwp)) else { continue };
            if levels::is_idle(thread) {
                continue;
            }
            find_regions(process, snapshot, runtime, &threads[index], index, thread, &mut found);
            let task = thread.task.get().and_then(|id| Some((id, snapshot.task(id)?)));
            if let Some((id, _)) = task.filter(|(_, task)| task.kind.get().is_some_and(TaskKind::is_explicit)) {
                found.current.insert((index, runtime), id);
            }
        }
        find_tasks(process, snapshot, runtime, threads, &mut found);
    }
    found
}

fn find_regions(
    process: &Process<'_>,
    snapshot: &RawSnapshot,
    runtime: usize,
    physical: &Physical,
    index: usize,
    thread: &RawThread,
    found: &mut Found,
) {
    let levels = levels::levels(snapshot, thread);
    // Outermost first, as they were opened.
    let primary: Vec<Level> = levels.iter().rev().copied().filter(|l| l.number == 0).collect();
    let mut forks = levels::forks(physical, runtime);
    forks.retain(|(_, league)| !league || process.runtimes[runtime].leagues_are_levels());
    forks.reverse();
    let assigned = levels::assign(snapshot, physical, &primary, &forks);
    let body_of = |call: usize| {
        let body = call.checked_sub(1)?;
        let segment = physical.segments.get(body)?;
        (segment.owner == CodeOwner::Program && segment.region && !segment.interrupts).then_some((index, body))
    };
    let mut add = |level: Level, call: usize| {
        found.regions.insert((index, call), (runtime, level));
        if let Some(body) = body_of(call) {
            found.bodies.insert((runtime, level.team, level.number), body);
            found.regions.insert(body, (runtime, level));
        }
    };
    for (level, fork) in primary.iter().zip(&assigned) {
        if let Some(fork) = fork {
            add(*level, *fork);
        }
    }
    let base = physical.segments.len().checked_sub(1).filter(|last| physical.segments[*last].base);
    let base = base.filter(|last| physical.segments[*last].owner == CodeOwner::Runtime(runtime));
    if let Some(level) = levels.last().filter(|l| l.number != 0)
        && let Some(base) = base
    {
        add(*level, base);
    }
    for (level, fork) in primary.iter().zip(assigned) {
        if let Some(fork) = fork {
            found.forks.insert((runtime, level.team), (index, fork));
        }
    }
}

/// Segments that are explicit tasks, each with where its function begins: by thread, innermost first. `functions` are
/// those of the runtime's tasks.
fn task_segments(
    process: &Process<'_>,
    physical: &Physical,
    runtime: usize,
    functions: &BTreeSet<Addr>,
) -> Vec<(usize, Option<Addr>)> {
    let segments = physical.segments.iter().enumerate();
    segments
        .filter(|(index, segment)| {
            segment.task
                && physical.segments.get(index + 1).is_some_and(|next| {
                    next.owner == CodeOwner::Runtime(runtime) && next.entry.is_none_or(|e| e.role != Role::Other)
                })
        })
        .map(|(index, segment)| {
            let jumped = || {
                let at = levels::outermost_function(process, physical, segment.frames.end - 1)?;
                let mut from = functions.iter().filter(|function| process.jumps(**function, at));
                from.next().copied().filter(|_| from.next().is_none())
            };
            (index, segment.begins.or_else(|| segment.jumped.then(jumped).flatten()))
        })
        .collect()
}

/// Explicit tasks whose record lies in a frame of the runtime: the program's function that the frame called is the task's.
fn find_by_record(snapshot: &RawSnapshot, runtime: usize, threads: &[Physical], found: &mut Found) {
    // Frames that called the program, by the address behind them: where they begin, and the segment of the function called.
    let mut frames: BTreeMap<Addr, (Addr, SegmentAt)> = BTreeMap::new();
    for (index, physical) in threads.iter().enumerate() {
        for (body, pair) in physical.segments.windows(2).enumerate() {
            let [inner, outer] = pair else { continue };
            if !inner.task || inner.interrupts || outer.owner != CodeOwner::Runtime(runtime) {
                continue;
            }
            let frames_of = &physical.backtrace.frames;
            let innermost = outer.frames.start;
            // A frame begins where that of the function it called ends.
            let from = innermost.checked_sub(1).and_then(|called| frames_of[called].cfa);
            if let (Some(from), Some(cfa)) = (from, frames_of[innermost].cfa) {
                frames.insert(cfa, (from, (index, body)));
            }
        }
    }
    let explicit = |task: &RawTask| task.kind.get().is_some_and(TaskKind::is_explicit);
    let mut at: BTreeMap<SegmentAt, Vec<TaskId>> = BTreeMap::new();
    for (id, task) in (0..).map(TaskId).zip(&snapshot.tasks).filter(|(_, task)| explicit(task)) {
        let frame = frames.range(task.descriptor.offset(1)..).next().filter(|(_, (from, _))| *from <= task.descriptor);
        if let Some((_, (_, place))) = frame {
            at.entry(*place).or_default().push(id);
        }
    }
    for (place, tasks) in at {
        // Several are those of a taskloop: which of them is executed is not told by where they lie.
        if let [task] = tasks[..] {
            found.tasks.insert((runtime, task), place);
            found.task_at.insert(place, (runtime, task));
        }
    }
}

fn find_tasks(process: &Process<'_>, snapshot: &RawSnapshot, runtime: usize, threads: &[Physical], found: &mut Found) {
    let function = |id: TaskId| snapshot.task(id).and_then(|t| t.function.get());
    let explicit = |id: &TaskId| snapshot.task(*id).and_then(|t| t.kind.get()).is_some_and(TaskKind::is_explicit);
    let functions: BTreeSet<Addr> =
        (0..snapshot.tasks.len()).map(TaskId).filter(explicit).filter_map(function).collect();
    find_by_record(snapshot, runtime, threads, found);
    for (index, physical) in threads.iter().enumerate() {
        let Some(id) = found.current.get(&(index, runtime)).copied() else { continue };
        let mut segments = physical.segments.iter().enumerate();
        let program = segments.find(|(_, s)| s.owner == CodeOwner::Program && !s.interrupts);
        if let (Some(start), Some((segment, frames))) = (function(id), program.map(|(n, s)| (n, s.frames.clone()))) {
            // The outermost frame the runtime calls, or the thread began with.
            let inner = frames.start..frames.end - 1;
            let called = inner.clone().find(|f| levels::outermost_function(process, physical, *f) == Some(start));
            if let Some(frame) = called {
                found.direct.insert((runtime, id), ((index, segment), frame));
            }
        }
    }
    let open_segments = |(index, physical): (usize, &Physical)| {
        let mut segments = task_segments(process, physical, runtime, &functions);
        segments.retain(|(segment, _)| !found.task_at.contains_key(&(index, *segment)));
        segments
    };
    let segments: Vec<Vec<(usize, Option<Addr>)>> = threads.iter().enumerate().map(open_segments).collect();
    // How many more tasks of a function have been begun than there are bodies of it on stacks. The other bodies are not
    // called yet, or have ended, or have left their stack by a jump.
    let mut without_body: BTreeMap<Addr, i64> = BTreeMap::new();
    for id in (0..snapshot.tasks.len()).map(TaskId).filter(|id| begun(snapshot, *id)) {
        if let Some(start) = function(id) {
            *without_body.entry(start).or_default() += 1;
        }
    }
    for start in segments.iter().flatten().filter_map(|(_, start)| *start) {
        *without_body.entry(start).or_default() -= 1;
    }
    let mut open: Vec<(SegmentAt, Option<Addr>)> = Vec::new();
    for ((index, physical), segments) in threads.iter().enumerate().zip(segments) {
        let mut segments = segments.into_iter().peekable();
        if let Some(id) = found.current.get(&(index, runtime)).copied()
            && !found.tasks.contains_key(&(runtime, id))
            && let Some((segment, start)) = segments.peek().copied()
        {
            // It is the innermost: no region's body, and no other task's, lies further in.
            let innermost = physical.segments[..segment].iter().all(|s| s.owner != CodeOwner::Program || s.interrupts)
                && !found.direct.contains_key(&(runtime, id));
            let jumped = |known| {
                let body = &physical.segments[segment];
                let at = levels::outermost_function(process, physical, body.frames.end - 1);
                body.jumped && body.begins.is_none() && at.is_some_and(|at| process.jumps(known, at))
            };
            let same = function(id).is_none_or(|known| Some(known) == start || jumped(known));
            // From within a call that may execute tasks, the body may be that of the task that waits there.
            let doubtful = segment > 0
                && function(id).and_then(|start| without_body.get(&start)).is_some_and(|missing| *missing > 0);
            if innermost && same && doubtful {
                found.doubtful.insert((index, runtime));
            } else if innermost && same {
                found.tasks.insert((runtime, id), (index, segment));
                found.task_at.insert((index, segment), (runtime, id));
                segments.next();
            }
        }
        open.extend(segments.map(|(segment, start)| ((index, segment), start)));
    }
    let taken: HashSet<TaskId> = found.tasks.keys().filter(|(r, _)| *r == runtime).map(|(_, id)| *id).collect();
    let candidates: Vec<TaskId> = (0..snapshot.tasks.len()).map(TaskId).filter(|id| begun(snapshot, *id)).collect();
    let mut by_function: BTreeMap<Addr, (Vec<SegmentAt>, Vec<TaskId>)> = BTreeMap::new();
    for (place, start) in open {
        if let Some(start) = start {
            by_function.entry(start).or_default().0.push(place);
        }
    }
    for id in candidates.into_iter().filter(|id| !taken.contains(id)) {
        if let Some(start) = function(id)
            && let Some(entry) = by_function.get_mut(&start)
        {
            entry.1.push(id);
        }
    }
    for (places, tasks) in by_function.into_values() {
        for (place, task) in match_suspended(snapshot, &places, tasks) {
            found.tasks.insert((runtime, task), place);
            found.task_at.insert(place, (runtime, task));
        }
    }
}

/// True for explicit tasks that have been begun and are not over: the one a thread executes, and those that wait beneath.
fn begun(snapshot: &RawSnapshot, id: TaskId) -> bool {
    snapshot.task(id).is_some_and(|t| {
        t.kind.get().is_some_and(TaskKind::is_explicit)
            && !matches!(t.state.get(), Some(TaskState::Ready | TaskState::Detached))
    })
}

/// Which of `tasks`, all with the same function, is which of `places`. It is certain if there is one of each. It is
/// also certain if all lie on one stack and descend from each other: a task begins after those it descends from.
fn match_suspended(snapshot: &RawSnapshot, places: &[SegmentAt], tasks: Vec<TaskId>) -> Vec<(SegmentAt, TaskId)> {
    if places.len() != tasks.len() || places.iter().any(|p| p.0 != places[0].0) {
        return Vec::new();
    }
    let wanted: HashSet<TaskId> = tasks.iter().copied().collect();
    // The one all others are ancestors of has the longest chain.
    let mut left = MAX_STEPS;
    let mut ancestors = |id: TaskId| {
        let mut chain = Vec::new();
        let mut at = Some(id);
        while let Some(id) = at.filter(|_| left > 0 && chain.len() < wanted.len()) {
            left -= 1;
            if wanted.contains(&id) {
                chain.push(id);
            }
            at = snapshot.task(id).and_then(|t| t.generating.flat());
        }
        chain
    };
    let chain = tasks.iter().map(|id| ancestors(*id)).find(|chain| chain.len() == tasks.len());
    // Places of one stack are in order, innermost first, and so is the chain.
    chain.map_or_else(Vec::new, |chain| places.iter().copied().zip(chain).collect())
}

/// Gives all members of a team the same body. GCC makes one of two bodies with the same code a jump to the other
/// (`-fipa-icf`): the one that jumps is the body.
pub(crate) fn unfold(process: &Process<'_>, threads: &mut [Physical], found: &Found) {
    let mut places: BTreeMap<(usize, TeamId), Vec<SegmentAt>> = BTreeMap::new();
    for ((runtime, team, _), place) in &found.bodies {
        places.entry((*runtime, *team)).or_default().push(*place);
    }
    let mut vanished: BTreeMap<(usize, TeamId), BTreeSet<Addr>> = BTreeMap::new();
    for ((thread, segment), (runtime, level)) in &found.regions {
        vanished.entry((*runtime, level.team)).or_default().extend(threads[*thread].segments[*segment].vanished);
    }
    for (team, places) in places {
        let begins = |place: &SegmentAt| threads[place.0].segments[place.1].begins;
        let mut bodies: BTreeSet<Addr> = places.iter().filter_map(begins).collect();
        bodies.extend(vanished.remove(&team).into_iter().flatten());
        let leads = |body: &&Addr| bodies.iter().all(|other| *other == **body || process.jumps(**body, *other));
        let Some(body) = bodies.iter().find(leads).copied().filter(|_| bodies.len() > 1) else { continue };
        for (thread, segment) in places {
            let segment = &mut threads[thread].segments[segment];
            if segment.begins.is_some_and(|begins| begins != body) {
                (segment.begins, segment.jumped) = (Some(body), true);
            }
        }
    }
}

/// What only stacks show of each runtime: functions of regions and of tasks, where their constructs stand, and what
/// threads have called.
pub(crate) fn evidence(
    process: &Process<'_>,
    snapshots: &[RawSnapshot],
    threads: &[Physical],
    found: &Found,
) -> Vec<StackEvidence> {
    let mut all: Vec<StackEvidence> = snapshots.iter().map(|_| StackEvidence::default()).collect();
    for ((runtime, team, _), (thread, segment)) in &found.bodies {
        if let Some(start) = threads[*thread].segments[*segment].begins {
            all[*runtime].bodies.entry(*team).or_default().push(start);
        }
    }
    for ((thread, segment), (runtime, level)) in &found.regions {
        if let Some(start) = threads[*thread].segments[*segment].vanished {
            all[*runtime].bodies.entry(level.team).or_default().push(start);
        }
    }
    for ((runtime, team), (thread, segment)) in &found.forks {
        let physical = &threads[*thread];
        let entry = physical.segments[*segment].entry;
        let outer = physical.segments.get(segment + 1).filter(|outer| outer.owner == CodeOwner::Program);
        let caller = outer.map(|outer| &physical.backtrace.frames[outer.frames.start]);
        let body = entry.and_then(|entry| process.function_argument(caller?, entry.body?));
        all[*runtime].bodies.entry(*team).or_default().extend(body);
        let outer = outer.filter(|_| !entry.is_some_and(|entry| entry.unplaced));
        let line = outer.and_then(|outer| line_at(process, physical.backtrace.frames[outer.frames.start].lookup()));
        all[*runtime].forks.insert(*team, Fork { entry, line });
    }
    for ((runtime, id), (thread, segment)) in &found.tasks {
        let begins = task_begins(process, &threads[*thread], *segment);
        all[*runtime].tasks.insert(*id, TaskOnStack { lwp: threads[*thread].lwp, begins });
    }
    let implicit: Vec<HashMap<(TeamId, u32), TaskId>> = snapshots.iter().map(implicit_tasks).collect();
    let bodies = found.bodies.iter().filter_map(|((runtime, team, number), place)| {
        Some((*runtime, *implicit.get(*runtime)?.get(&(*team, *number))?, *place))
    });
    let begun = found.tasks.iter().map(|((runtime, id), place)| (*runtime, *id, *place));
    for (runtime, id, (thread, segment)) in begun.chain(bodies) {
        if let Some(call) = task_call(process, &threads[thread], runtime, segment) {
            all[runtime].task_calls.insert(id, call);
        }
    }
    for (runtime, (snapshot, evidence)) in snapshots.iter().zip(&mut all).enumerate() {
        evidence.calls = waiting::calls(process, snapshot, runtime, threads);
        evidence.interrupted = interrupted(runtime, threads);
        evidence.begins = begins(process, snapshot, evidence);
    }
    all
}

/// Threads that execute a signal handler over code of a runtime.
fn interrupted(runtime: usize, threads: &[Physical]) -> HashSet<i32> {
    let is = |physical: &&Physical| {
        let mut segments = physical.segments.iter().skip_while(|segment| !segment.interrupts).skip(1);
        segments.any(|segment| segment.owner == CodeOwner::Runtime(runtime))
    };
    threads.iter().filter(is).map(|physical| physical.lwp).collect()
}

/// Where the function of a task on a stack begins. Without a name, it may as well be one that copies the task's variables: then
/// the call that generates the task has to name it.
fn task_begins(process: &Process<'_>, physical: &Physical, segment: usize) -> Option<Addr> {
    let begins = physical.segments[segment].begins?;
    let generates = physical.segments.get(segment + 1).filter(|outer| outer.generates());
    let Some(entry) = generates.filter(|_| process.symbol(begins).is_none()).and_then(|outer| outer.entry) else {
        return Some(begins);
    };
    let outer = physical.segments.get(segment + 2).filter(|outer| outer.owner == CodeOwner::Program)?;
    let caller = &physical.backtrace.frames[outer.frames.start];
    entry.body.is_none_or(|body| process.function_argument(caller, body) == Some(begins)).then_some(begins)
}

/// Implicit tasks by team and number.
fn implicit_tasks(snapshot: &RawSnapshot) -> HashMap<(TeamId, u32), TaskId> {
    let tasks = (0..).map(TaskId).zip(&snapshot.tasks);
    let implicit = tasks.filter(|(_, task)| task.kind.get() == Some(TaskKind::Implicit));
    implicit.filter_map(|(id, task)| Some(((task.team.flat()?, task.member?), id))).collect()
}

/// What a task has called its runtime for, if its frames, a segment of the program, are not the innermost ones.
fn task_call(process: &Process<'_>, physical: &Physical, runtime: usize, segment: usize) -> Option<TaskCall> {
    let call = physical.segments.get(segment.checked_sub(1)?)?;
    if call.owner != CodeOwner::Runtime(runtime) || call.interrupts {
        return None;
    }
    let innermost = physical.backtrace.frames.get(physical.segments[segment].frames.start)?;
    let entry = call.entry?;
    let line = line_at(process, innermost.lookup()).filter(|_| !entry.unplaced);
    Some(TaskCall { entry, line })
}

/// Lines at which the code of bodies begins, of those functions for which nothing else says where their construct stands.
fn begins(process: &Process<'_>, snapshot: &RawSnapshot, evidence: &StackEvidence) -> HashMap<Addr, SourceLine> {
    let unplaced = |id: &TeamId| evidence.forks.get(id).and_then(|fork| fork.entry).is_some_and(|e| e.unplaced);
    let teams = (0..).map(TeamId).zip(&snapshot.teams).filter(|(id, team)| unplaced(id) && !is_placed(&team.location));
    let regions = teams.filter_map(|(id, team)| merge::region_function(team, id, evidence).get());
    let explicit = |task: &RawTask| task.kind.get().is_some_and(TaskKind::is_explicit) && !is_placed(&task.location);
    let tasks = (0..).map(TaskId).zip(&snapshot.tasks).filter(|(_, task)| explicit(task));
    let tasks = tasks.filter_map(|(id, task)| merge::task_function(task, id, evidence).get());
    let functions: BTreeSet<Addr> = regions.chain(tasks).collect();
    functions.into_iter().filter_map(|start| Some((start, construct_line(process, start)?))).collect()
}

fn is_placed(location: &Fact<SourceLine>) -> bool {
    location.value().is_some()
}
