//! What waits for what, and what can never continue.
//!
//! The graph has an edge from whatever waits to whatever has to continue first. Each edge is a fact read in one stop.
//! Nodes that may continue by themselves are removed, and so are nodes not known to be unable to. Then nodes are
//! removed that may continue because of these. What is left is stuck for good. Its innermost cycles are the verdicts.
//! One is a lock that is held by the thread that waits for it. Where a runtime does not record who holds what, the
//! verdict is all threads of the process, none of which can let another continue.

mod graph;
mod situation;
mod standing;
#[cfg(test)]
mod tests;
mod waiting;

use std::collections::HashSet;

use petgraph::algo::tarjan_scc;
use petgraph::graph::NodeIndex;
use petgraph::visit::NodeFiltered;

pub use graph::{Graph, Node, RuntimeIndex, object};
pub use situation::{Situation, has_detached};
pub use standing::{Standing, member, standing};

use crate::model::{Role, RuntimeSnapshot, Thread};
use crate::os::{Blocked, OsState, OsThread, Outsider};

/// How certain a verdict is: the most certain is the least.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Certainty {
    /// Proven: nothing in the process can end these waits, and nothing from outside is waited for.
    Deadlock,
    /// Everything waits for something that may come from outside of the process, and may not.
    Suspect,
    /// No hang: threads wait for one that may still let them continue, or for one that is unknown.
    Waiting,
}

impl Certainty {
    /// The word used in reports.
    pub fn word(self) -> &'static str {
        match self {
            Certainty::Deadlock => "deadlock",
            Certainty::Suspect => "suspect",
            Certainty::Waiting => "waiting",
        }
    }
}

/// One hang, or what threads wait for that may still happen.
#[derive(Debug, Clone)]
pub struct Verdict {
    /// How certain it is.
    pub certainty: Certainty,
    /// It is one only if no call returns that a thread of it is in, and that waits for something outside of the process.
    pub rests_on_calls: bool,
    /// What kind of hang it is.
    pub situation: Situation,
    /// The cycle, or whatever waits for each other: threads first, each before what it waits for. Of [`Certainty::Waiting`] the
    /// threads that others wait for, and then what these wait at.
    pub core: Vec<Node>,
    /// Threads (LWP) that wait for OpenMP, and in the end for these.
    pub held_up: Vec<i32>,
}

/// What waits for what in a process, and the verdicts.
#[derive(Debug)]
pub struct WaitsFor {
    /// The graph.
    pub graph: Graph,
    /// Hangs, the certain ones first.
    pub verdicts: Vec<Verdict>,
    /// What other threads wait for: [`Certainty::Waiting`], the most waited-for first.
    pub waiting: Vec<Verdict>,
}

impl WaitsFor {
    /// All verdicts, the most certain first.
    pub fn all(&self) -> impl Iterator<Item = &Verdict> {
        self.verdicts.iter().chain(&self.waiting)
    }

    /// Finds out what waits for what beside the hangs. To be called when [`verdicts`](WaitsFor::verdicts) are final.
    pub fn find_waiting(&mut self, snapshots: &[RuntimeSnapshot], os: &OsState) {
        self.waiting = waiting::waiting(snapshots, os, &self.verdicts);
    }
}

/// Judges a process: `snapshots` of all its runtimes and what its threads were blocked in, of one stop.
pub fn judge(snapshots: &[RuntimeSnapshot], os: &OsState) -> WaitsFor {
    let graph = Graph::of(snapshots, os, false);
    let mut verdicts = verdicts(&graph, snapshots, os, false);
    if verdicts.is_empty() {
        let frozen = Graph::of(snapshots, os, true);
        verdicts = self::verdicts(&frozen, snapshots, os, true);
        if !verdicts.is_empty() {
            return WaitsFor { graph: frozen, verdicts, waiting: Vec::new() };
        }
    }
    WaitsFor { graph, verdicts, waiting: Vec::new() }
}

/// What waits for what, without a verdict.
pub fn unjudged(snapshots: &[RuntimeSnapshot], os: &OsState) -> WaitsFor {
    WaitsFor { graph: Graph::of(snapshots, os, false), verdicts: Vec::new(), waiting: Vec::new() }
}

/// True if a process without a verdict may hang all the same. No thread of it was seen to be able to continue, but some
/// were met in an instant that proves nothing. Another look may find them elsewhere.
pub fn may_be_stuck(snapshots: &[RuntimeSnapshot], os: &OsState) -> bool {
    let graph = Graph::doubtful(snapshots, os);
    !verdicts(&graph, snapshots, os, true).is_empty()
}

fn verdicts(graph: &Graph, snapshots: &[RuntimeSnapshot], os: &OsState, frozen: bool) -> Vec<Verdict> {
    // Whatever waits for what, the handler of a signal may end it.
    let is_proven = !frozen && !os.signals.may_arrive();
    let inner = graph.inner();
    let stuck = graph.stuck();
    // Of a thread of OpenMP that waits for a mutex the owner is a fact as well, and so it is if it waits for the end of such a thread.
    let blocked = |lwp: i32| {
        let at = os.threads.binary_search_by_key(&lwp, |os| os.lwp).ok();
        at.and_then(|at| os.threads.get(at)).map_or(Blocked::No, |os| os.blocked)
    };
    let waits_for_owner = |lwp: i32| {
        let of_mutex = match blocked(lwp) {
            Blocked::Join(joined) => matches!(blocked(joined), Blocked::Mutex(..)),
            own => matches!(own, Blocked::Mutex(..)),
        };
        !frozen && of_mutex && snapshots.iter().any(|snapshot| snapshot.thread_by_lwp(lwp).is_some())
    };
    // A member of a team that sleeps outside of OpenMP is stuck only if all threads of the process are.
    let sleeps_in_team = |lwp: i32| {
        let in_team = |thread: &Thread| thread.team.flat().is_some() && thread.role.get() != Some(Role::IdleWorker);
        let sleeps = !frozen && matches!(blocked(lwp), Blocked::Futex(_));
        sleeps && snapshots.iter().any(|snapshot| snapshot.thread_by_lwp(lwp).is_some_and(in_team))
    };
    let is_waiting = |node: NodeIndex| match inner[node] {
        Node::Thread(lwp) => graph.is_waiting(lwp) || waits_for_owner(lwp) || sleeps_in_team(lwp),
        _ => false,
    };
    if !stuck.iter().copied().any(is_waiting) {
        return Vec::new();
    }
    // Ignore nodes that no such thread reaches.
    let reached = reach(stuck.iter().copied().filter(|node| is_waiting(*node)), |node| {
        inner.neighbors(node).filter(|next| stuck.contains(next)).collect()
    });
    let part = NodeFiltered::from_fn(inner, |node| reached.contains(&node));
    let components = tarjan_scc(&part);
    let mut found = Vec::new();
    for component in components {
        let members: HashSet<NodeIndex> = component.iter().copied().collect();
        let leaves = component
            .iter()
            .any(|node| inner.neighbors(*node).any(|next| reached.contains(&next) && !members.contains(&next)));
        if leaves {
            continue;
        }
        let waiters = reach(component.iter().copied(), |node| {
            inner.neighbors_directed(node, petgraph::Direction::Incoming).filter(|n| reached.contains(n)).collect()
        });
        // A single thing that is gone: with it belongs who waits for it.
        let mut core: Vec<NodeIndex> = component.clone();
        if !component.iter().any(|node| matches!(inner[*node], Node::Thread(_))) {
            core = waiters.iter().copied().filter(|node| near(graph, *node, &members)).collect();
        }
        let in_core: HashSet<NodeIndex> = core.iter().copied().collect();
        let mut nodes: Vec<Node> = core.iter().map(|node| inner[*node]).collect();
        nodes.sort_by_key(order);
        let lwp = |node: &NodeIndex| match inner[*node] {
            Node::Thread(lwp) if is_waiting(*node) && !in_core.contains(node) => Some(lwp),
            _ => None,
        };
        let mut held_up: Vec<i32> = waiters.iter().filter_map(lwp).collect();
        held_up.sort_unstable();
        let in_call = |os: &OsThread| {
            matches!(os.blocked, Blocked::Outside(_) | Blocked::Yields) && nodes.contains(&Node::Thread(os.lwp))
        };
        let rests_on_calls = frozen && os.threads.iter().any(in_call);
        let situation = situation::of(graph, &nodes, snapshots, &os.threads, rests_on_calls);
        let may_end = os.outsiders.iter().any(|outsider| match outsider {
            Outsider::Process(_) | Outsider::Ring => true,
            // By a thread that is no part of it.
            Outsider::Canceller(_) => {
                let is_stuck = |lwp: i32| nodes.contains(&Node::Thread(lwp)) || held_up.contains(&lwp);
                joins(&nodes, os) && os.threads.iter().any(|os| !is_stuck(os.lwp))
            }
        });
        let certainty = if is_proven && !may_end { Certainty::Deadlock } else { Certainty::Suspect };
        found.push(Verdict { certainty, rests_on_calls, situation, core: nodes, held_up });
    }
    // What may end one hang need not end another.
    found.sort_by_key(|verdict| verdict.certainty);
    found
}

/// True if a thread of a hang waits for the end of another one.
pub(crate) fn joins(core: &[Node], os: &OsState) -> bool {
    let joins = |lwp: i32| os.threads.iter().any(|os| os.lwp == lwp && matches!(os.blocked, Blocked::Join(_)));
    core.iter().any(|node| matches!(node, Node::Thread(lwp) if joins(*lwp)))
}

/// True for what waits for one of `members` with at most one thing in between.
fn near(graph: &Graph, node: NodeIndex, members: &HashSet<NodeIndex>) -> bool {
    let inner = graph.inner();
    members.contains(&node)
        || inner
            .neighbors(node)
            .any(|next| members.contains(&next) || inner.neighbors(next).any(|next| members.contains(&next)))
}

fn reach(from: impl Iterator<Item = NodeIndex>, next: impl Fn(NodeIndex) -> Vec<NodeIndex>) -> HashSet<NodeIndex> {
    let mut open: Vec<NodeIndex> = from.collect();
    let mut seen: HashSet<NodeIndex> = open.iter().copied().collect();
    while let Some(node) = open.pop() {
        open.extend(next(node).into_iter().filter(|next| seen.insert(*next)));
    }
    seen
}

/// Threads first, in the order of their ids. No two nodes have the same place: what is reported does not depend on chance.
fn order(node: &Node) -> (u8, usize, u64, usize) {
    match *node {
        Node::Thread(lwp) => (0, 0, lwp as u64, 0),
        Node::Task(runtime, task) => (1, runtime, task.0 as u64, 0),
        Node::Event(runtime, task) => (1, runtime, task.0 as u64, 1),
        Node::Lock(runtime, lock) => (2, runtime, lock.0 as u64, 0),
        Node::GoneOwner(runtime, lock) => (2, runtime, lock.0 as u64, 1),
        Node::Word(runtime, word) => (2, runtime, word, 2),
        Node::RegionEnd(runtime, team) => (3, runtime, team.0 as u64, 0),
        Node::Barrier(runtime, team) => (3, runtime, team.0 as u64, 1),
        Node::RegionStart(runtime, team) => (3, runtime, team.0 as u64, 2),
        Node::TeamTasks(runtime, team) => (3, runtime, team.0 as u64, 3),
        Node::Ordered(runtime, team) => (3, runtime, team.0 as u64, 4),
        Node::Missing(runtime, team, number) => (4, runtime, number.into(), team.0),
        Node::Taskwait(runtime, task) => (5, runtime, task.0 as u64, 0),
        Node::Dependences(runtime, task) => (5, runtime, task.0 as u64, 1),
        Node::Taskgroup(runtime, group) => (5, runtime, group.0 as u64, 2),
        Node::Anyone => (6, 0, 0, 0),
    }
}
