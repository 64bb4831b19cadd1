//! Threads that wait for a thread that may still let them continue: no hang, but what the process waits for.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::graph::{Node, object};
use super::situation::Situation;
use super::standing::{member, standing};
use super::{Certainty, Verdict};
use crate::model::*;
use crate::os::{Blocked, OsState};

/// What waiting threads wait for in the end, the most waited-for first. What `judged` explains already is left out.
pub(super) fn waiting(snapshots: &[RuntimeSnapshot], os: &OsState, judged: &[Verdict]) -> Vec<Verdict> {
    let waits = Waits::of(snapshots);
    let explained: HashSet<Node> = judged
        .iter()
        .flat_map(|v| v.core.iter().copied().chain(v.held_up.iter().map(|lwp| Node::Thread(*lwp))))
        .collect();
    let mut found: Vec<Verdict> = Vec::new();
    for (object, direct) in &waits.at {
        let next = &waits.needs[object];
        let causes: Vec<i32> = next.iter().copied().filter(|lwp| !waits.threads.contains(lwp)).collect();
        let hidden = matches!(object, Node::Lock(..) | Node::Word(..)) && next.is_empty();
        let handed = if causes.is_empty() { on_device(snapshots, *object) } else { Vec::new() };
        if causes.is_empty() && !hidden && handed.is_empty() {
            continue;
        }
        let held_up = waits.behind(direct);
        let is_explained = held_up.iter().any(|lwp| explained.contains(&Node::Thread(*lwp)));
        if is_explained {
            continue;
        }
        let situation = match object {
            _ if !handed.is_empty() => Situation::DeviceNotDone,
            Node::Barrier(..) | Node::RegionEnd(..) => Situation::BarrierNotReached,
            Node::Lock(..) | Node::Word(..) => Situation::LockHeld,
            Node::Ordered(..) => Situation::OrderedTurn,
            // Waiting for tasks that compute is what taskwait is for.
            _ if causes.iter().all(|lwp| is_computing(os, *lwp)) => continue,
            _ => Situation::TasksUnfinished,
        };
        let threads = match situation {
            Situation::BarrierNotReached => next.clone(),
            Situation::DeviceNotDone => direct.iter().copied().collect(),
            _ => causes,
        };
        let core = threads.into_iter().map(Node::Thread).chain(handed).chain([*object]).collect();
        found.push(Verdict { certainty: Certainty::Waiting, rests_on_calls: false, situation, core, held_up });
    }
    found.sort_by_key(|verdict| (std::cmp::Reverse(verdict.held_up.len()), verdict.core.last().map(super::order)));
    found
}

/// Who waits for what, as the runtimes' own records say.
struct Waits {
    /// The threads (LWP) that wait.
    threads: HashSet<i32>,
    /// The threads that wait for each thing.
    at: HashMap<Node, BTreeSet<i32>>,
    /// The threads that have to do something before each thing happens, as far as they are recorded.
    needs: HashMap<Node, Vec<i32>>,
    /// The things for which each thread has to do something.
    needed: HashMap<i32, Vec<Node>>,
}

impl Waits {
    fn of(snapshots: &[RuntimeSnapshot]) -> Waits {
        let mut threads = HashSet::new();
        let mut at: HashMap<Node, BTreeSet<i32>> = HashMap::new();
        for (runtime, snapshot) in snapshots.iter().enumerate() {
            for thread in &snapshot.threads {
                let (Some(lwp), Fact::Known { value: Some(wait), .. }) = (thread.lwp, &thread.wait) else { continue };
                if wait.kind == WaitKind::Pool || wait.over.get() == Some(true) {
                    continue;
                }
                threads.insert(lwp);
                for node in object(snapshots, runtime, thread, wait).into_iter().filter(|node| *node != Node::Anyone) {
                    at.entry(node).or_default().insert(lwp);
                }
            }
        }
        let begun: Vec<Vec<&Task>> = snapshots.iter().map(begun).collect();
        let needs: HashMap<Node, Vec<i32>> =
            at.keys().map(|object| (*object, needed(snapshots, &begun, *object))).collect();
        let mut needed: HashMap<i32, Vec<Node>> = HashMap::new();
        for (object, lwps) in &needs {
            for lwp in lwps {
                needed.entry(*lwp).or_default().push(*object);
            }
        }
        Waits { threads, at, needs, needed }
    }

    /// The threads that wait for a thing for which `direct` wait themselves, or for one of these.
    fn behind(&self, direct: &BTreeSet<i32>) -> Vec<i32> {
        let mut seen = direct.clone();
        let mut open: Vec<i32> = direct.iter().copied().collect();
        while let Some(lwp) = open.pop() {
            let behind = self.needed.get(&lwp).into_iter().flatten().flat_map(|object| &self.at[object]);
            open.extend(behind.copied().filter(|lwp| seen.insert(*lwp)));
        }
        seen.into_iter().collect()
    }
}

/// The tasks that an object waits for and that were handed to a device.
fn on_device(snapshots: &[RuntimeSnapshot], object: Node) -> Vec<Node> {
    let of = |runtime: usize, wanted: &dyn Fn(&Task) -> bool| {
        let tasks = (0..).map(TaskId).zip(&snapshots[runtime].tasks);
        let handed = tasks.filter(|(_, task)| task.state.get() == Some(TaskState::OnDevice) && wanted(task));
        handed.map(|(id, _)| Node::Task(runtime, id)).collect()
    };
    match object {
        Node::Taskwait(runtime, id) => of(runtime, &|task| task.generating.flat() == Some(id)),
        Node::Taskgroup(runtime, group) => of(runtime, &|task| task.taskgroup.flat() == Some(group)),
        Node::TeamTasks(runtime, team) => of(runtime, &|task| task.team.flat() == Some(team)),
        _ => Vec::new(),
    }
}

/// The explicit tasks that have begun and are not over.
fn begun(snapshot: &RuntimeSnapshot) -> Vec<&Task> {
    let has_begun = |task: &&Task| task.thread.is_some() || task.stack.is_some();
    snapshot.tasks.iter().filter(|task| task.kind.get().is_some_and(TaskKind::is_explicit)).filter(has_begun).collect()
}

/// The threads (LWP) that have to do something before `object` happens, as far as they are recorded. `begun` are the tasks of
/// each runtime that have begun.
fn needed(snapshots: &[RuntimeSnapshot], begun: &[Vec<&Task>], object: Node) -> Vec<i32> {
    let of_tasks = |tasks: &mut dyn Iterator<Item = &Task>| {
        let mut threads: Vec<i32> = tasks.filter_map(|task| task.thread.or(task.stack)).collect();
        threads.sort_unstable();
        threads.dedup();
        threads
    };
    let of_begun = |runtime: usize, wanted: &dyn Fn(&Task) -> bool| {
        of_tasks(&mut begun[runtime].iter().copied().filter(|task| wanted(task)))
    };
    match object {
        Node::Barrier(runtime, id) | Node::RegionEnd(runtime, id) => {
            let Some(team) = snapshots[runtime].team(id) else { return Vec::new() };
            let Some(standing) = standing(&snapshots[runtime], id) else { return Vec::new() };
            standing.absent.iter().filter_map(|n| member(&snapshots[runtime], team, *n)?.lwp).collect()
        }
        Node::Lock(runtime, id) => match snapshots[runtime].lock(id).map(|lock| &lock.owner) {
            Some(Fact::Known { value: Some(Owner::Thread(lwp)), .. }) => vec![*lwp],
            Some(Fact::Known { value: Some(Owner::Task(task)), .. }) => {
                of_tasks(&mut snapshots[runtime].task(*task).into_iter())
            }
            _ => Vec::new(),
        },
        Node::Ordered(runtime, id) => {
            let snapshot = &snapshots[runtime];
            let members = snapshot.team(id).map(|team| team.members.as_slice()).unwrap_or_default();
            snapshot
                .ordered_turn(id)
                .and_then(|number| members.get(number as usize).copied().flatten())
                .into_iter()
                .collect()
        }
        Node::Taskwait(runtime, id) => of_begun(runtime, &|task| task.generating.flat() == Some(id)),
        Node::Taskgroup(runtime, group) => of_begun(runtime, &|task| task.taskgroup.flat() == Some(group)),
        Node::TeamTasks(runtime, team) => of_begun(runtime, &|task| task.team.flat() == Some(team)),
        Node::Dependences(runtime, id) => {
            let snapshot = &snapshots[runtime];
            let before = snapshot.task(id).map(|task| task.predecessors.as_slice()).unwrap_or_default();
            of_tasks(&mut before.iter().filter_map(|id| snapshot.task(*id)))
        }
        _ => Vec::new(),
    }
}

/// Nothing is known to keep the thread from executing code.
fn is_computing(os: &OsState, lwp: i32) -> bool {
    let thread = os.threads.binary_search_by_key(&lwp, |thread| thread.lwp).ok().and_then(|at| os.threads.get(at));
    thread.is_none_or(|thread| matches!(thread.blocked, Blocked::No | Blocked::Yields))
}
