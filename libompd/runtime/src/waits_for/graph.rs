//! Who waits for what in a process, as a graph, and which of it can still get on.

use std::collections::{HashMap, HashSet};

use ompd_layout::Origin;
use ompd_process::Addr;
use petgraph::Direction;
use petgraph::graph::{DiGraph, NodeIndex};

use crate::icvs::{ACTIVE_LEVELS, MAX_ACTIVE_LEVELS};
use crate::model::*;
use crate::os::{Blocked, OsState, OsThread};

/// Index of a runtime among the snapshots.
pub type RuntimeIndex = usize;

/// A thread, a task, or something they wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Node {
    /// The OS thread with this kernel thread id.
    Thread(i32),
    /// The member of this number, which is not among the threads of the process.
    Missing(RuntimeIndex, TeamId, u32),
    /// The owner of this lock, which no longer exists.
    GoneOwner(RuntimeIndex, LockId),
    /// A barrier inside the region of this team: each other member has to arrive.
    Barrier(RuntimeIndex, TeamId),
    /// The end of the region of this team.
    RegionEnd(RuntimeIndex, TeamId),
    /// The start of the region of this team, for which all members have to be there.
    RegionStart(RuntimeIndex, TeamId),
    /// The tasks of this team that have to be over before its barrier is.
    TeamTasks(RuntimeIndex, TeamId),
    /// A lock, critical or atomic.
    Lock(RuntimeIndex, LockId),
    /// A lock of which nothing but its address is known.
    Word(RuntimeIndex, u64),
    /// A `taskwait` of this task: its children have to be over.
    Taskwait(RuntimeIndex, TaskId),
    /// The end of this task group.
    Taskgroup(RuntimeIndex, TaskgroupId),
    /// Tasks that a dependence of something this task waits for names.
    Dependences(RuntimeIndex, TaskId),
    /// The turn of a thread in an `ordered` region of this team.
    Ordered(RuntimeIndex, TeamId),
    /// A task has to be over.
    Task(RuntimeIndex, TaskId),
    /// The event of this task, which some thread has to fulfil.
    Event(RuntimeIndex, TaskId),
    /// Some thread of the process has to do something: which, nobody recorded.
    Anyone,
}

/// What it takes for a node to get on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// Nothing: it may get on by itself, or it is not known that it cannot.
    Free,
    /// One of those it leads to.
    Any,
    /// All of those it leads to.
    All,
}

/// The graph: an edge leads from who or what waits to who or what has to get on first.
#[derive(Debug)]
pub struct Graph {
    graph: DiGraph<Node, ()>,
    index: HashMap<Node, NodeIndex>,
    modes: Vec<Mode>,
    /// Threads that wait for nothing but their next region.
    parked: HashSet<i32>,
    /// Threads that wait for something of OpenMP other than that.
    waiting: HashSet<i32>,
}

impl Graph {
    /// What waits for what. With `frozen`, threads that are blocked in a call from outside count as unable to continue
    /// unless another thread of the process can. That is right if what they wait for has to come from the process
    /// itself. Threads that wait in a loop for a partner that a region has not got count the same way.
    pub fn of(snapshots: &[RuntimeSnapshot], os: &OsState, frozen: bool) -> Graph {
        let mut builder = Builder::new(snapshots, os, frozen);
        builder.build();
        builder.graph
    }

    /// The same, with all doubts the other way round. A thread that may be about to let others continue counts as
    /// waiting. So does one that was met between one step of a wait and the next. This proves nothing. But where even
    /// so something can continue, another look will not find a hang.
    pub(super) fn doubtful(snapshots: &[RuntimeSnapshot], os: &OsState) -> Graph {
        let mut builder = Builder::new(snapshots, os, true);
        builder.doubtful = true;
        builder.build();
        builder.graph
    }

    fn node(&mut self, node: Node) -> (NodeIndex, bool) {
        if let Some(index) = self.index.get(&node) {
            return (*index, false);
        }
        let index = self.graph.add_node(node);
        self.index.insert(node, index);
        self.modes.push(Mode::Free);
        (index, true)
    }

    fn set(&mut self, node: Node, mode: Mode, to: impl IntoIterator<Item = Node>) {
        let (from, _) = self.node(node);
        self.modes[from.index()] = mode;
        for next in to {
            let (next, _) = self.node(next);
            self.graph.add_edge(from, next, ());
        }
    }

    /// All nodes.
    pub fn nodes(&self) -> impl Iterator<Item = Node> + '_ {
        self.graph.node_weights().copied()
    }

    /// What has to get on before this can.
    pub fn waits_for(&self, node: Node) -> impl Iterator<Item = Node> + '_ {
        let from = self.index.get(&node);
        from.into_iter().flat_map(|from| self.graph.neighbors(*from).map(|next| self.graph[next]))
    }

    /// True for a thread that waits for its next region and nothing else.
    pub fn is_parked(&self, lwp: i32) -> bool {
        self.parked.contains(&lwp)
    }

    /// True for a thread that waits for something of OpenMP, its next region apart.
    pub fn is_waiting(&self, lwp: i32) -> bool {
        self.waiting.contains(&lwp)
    }

    /// The nodes that can never continue, each thing being as it was at the stop. Everything is removed that may
    /// continue by itself, or because others may. The rest is stuck.
    pub fn stuck(&self) -> HashSet<NodeIndex> {
        self.stuck_but_for(|_| false)
    }

    /// The nodes that could never continue even if all of `others` could.
    pub(super) fn stuck_but_for(&self, others: impl Fn(Node) -> bool) -> HashSet<NodeIndex> {
        let mut lacking: Vec<usize> = self
            .graph
            .node_indices()
            .map(|node| match self.modes[node.index()] {
                _ if others(self.graph[node]) => 0,
                Mode::Free => 0,
                Mode::Any => 1,
                Mode::All => self.graph.neighbors(node).count(),
            })
            .collect();
        let mut open: Vec<NodeIndex> = self.graph.node_indices().filter(|n| lacking[n.index()] == 0).collect();
        let mut free: HashSet<NodeIndex> = open.iter().copied().collect();
        while let Some(node) = open.pop() {
            for waiter in self.graph.neighbors_directed(node, Direction::Incoming) {
                let left = &mut lacking[waiter.index()];
                *left = left.saturating_sub(1);
                if *left == 0 && free.insert(waiter) {
                    open.push(waiter);
                }
            }
        }
        self.graph.node_indices().filter(|n| !free.contains(n)).collect()
    }

    /// The graph underneath.
    pub(super) fn inner(&self) -> &DiGraph<Node, ()> {
        &self.graph
    }
}

/// Threads that wait so may execute tasks meanwhile.
fn is_scheduling_point(kind: WaitKind) -> bool {
    matches!(
        kind,
        WaitKind::Barrier
            | WaitKind::RegionEnd
            | WaitKind::BarrierTasks
            | WaitKind::Taskwait
            | WaitKind::Taskgroup
            | WaitKind::TaskwaitOrTaskgroup
            | WaitKind::Dependences
    )
}

/// True if there are tasks that are not over and were not found, or that have been begun and are on no thread's stack.
pub(super) fn has_hidden(snapshot: &RuntimeSnapshot) -> bool {
    let mut listed: HashMap<TaskId, u64> = HashMap::new();
    let is_child = |task: &&Task| task.kind.get().is_some_and(TaskKind::is_explicit);
    for task in snapshot.tasks.iter().filter(is_child) {
        if let Some(parent) = task.generating.flat() {
            *listed.entry(parent).or_default() += 1;
        }
    }
    for more in &snapshot.more_tasks {
        if let Some(parent) = snapshot.task(more.like).and_then(|t| t.generating.flat()) {
            *listed.entry(parent).or_default() += more.count;
        }
    }
    let is_loose = |task: &Task| {
        use TaskState::{Blocked, Detached, OnDevice, Ready};
        let on_no_stack = matches!(task.state.get(), Some(Ready | Blocked | Detached | OnDevice));
        is_child(&task) && !on_no_stack && task.thread.is_none() && task.stack.is_none()
    };
    if snapshot.tasks.iter().any(is_loose) {
        return true;
    }
    let known = |id: usize| listed.get(&TaskId(id)).copied().unwrap_or(0);
    let mut tasks = snapshot.tasks.iter().enumerate();
    tasks.any(|(id, task)| task.unfinished_children.get().is_some_and(|n| u64::from(n) > known(id)))
}

/// The kernel has it asleep.
fn is_asleep(wait: &Wait, os: OsThread) -> bool {
    wait.asleep == Some(true) || matches!(os.blocked, Blocked::Futex(_) | Blocked::Mutex(..) | Blocked::Join(_))
}

/// Ready tasks of a runtime that count as those that might do something. Their threads are what matters.
const READY_TASKS: usize = 8;

fn is_ready(snapshot: &RuntimeSnapshot, id: TaskId) -> bool {
    snapshot.task(id).is_some_and(|task| task.state.get() == Some(TaskState::Ready))
}

/// True for a thread that is alone in a region nested in others because no more levels of nesting may be active.
pub(super) fn exhausted(snapshot: &RuntimeSnapshot, thread: &Thread) -> bool {
    let Some(team) = thread.team.flat().and_then(|id| snapshot.team(id)) else { return false };
    let alone = team.size.get() == Some(1) && team.level.get().is_some_and(|level| level > 1);
    let limit = thread.icvs.count(&MAX_ACTIVE_LEVELS).zip(thread.icvs.count(&ACTIVE_LEVELS));
    alone && limit.is_some_and(|(most, active)| active >= most)
}

/// What a thread's wait is for; [`Node::Anyone`] where the thing itself is unknown.
pub fn object(snapshots: &[RuntimeSnapshot], runtime: RuntimeIndex, thread: &Thread, wait: &Wait) -> Vec<Node> {
    let team = wait.team.or_else(|| thread.team.flat());
    let task = thread.task.get();
    let of_team = |node: fn(RuntimeIndex, TeamId) -> Node| team.map(|team| node(runtime, team));
    let of_task = |node: fn(RuntimeIndex, TaskId) -> Node| task.map(|task| node(runtime, task));
    let group = || {
        let inner = wait.taskgroup.or_else(|| task.and_then(|id| snapshots[runtime].task(id)?.taskgroup.flat()));
        inner.map(|group| Node::Taskgroup(runtime, group))
    };
    let one = match wait.kind {
        WaitKind::Barrier => of_team(Node::Barrier),
        WaitKind::RegionEnd => of_team(Node::RegionEnd),
        WaitKind::RegionStart => of_team(Node::RegionStart),
        WaitKind::BarrierTasks => of_team(Node::TeamTasks),
        WaitKind::Ordered => of_team(Node::Ordered),
        WaitKind::Lock | WaitKind::Critical | WaitKind::Atomic | WaitKind::Mutex | WaitKind::Device => {
            Some(match wait.lock {
                Some(lock) => Node::Lock(runtime, lock),
                None => Node::Word(runtime, wait.object.0),
            })
        }
        WaitKind::Taskwait => of_task(Node::Taskwait),
        WaitKind::Taskgroup => group(),
        WaitKind::TaskwaitOrTaskgroup => {
            return of_task(Node::Taskwait).into_iter().chain(group()).collect();
        }
        WaitKind::Dependences => of_task(Node::Dependences),
        WaitKind::Event => of_task(Node::Event),
        // A lock inside the runtime is held by a thread that executes the runtime's code.
        WaitKind::RuntimeInternal => Some(Node::Anyone),
        // Which iteration it is, and who has it, is not known.
        WaitKind::Sink => Some(Node::Anyone),
        WaitKind::Pool => None,
    };
    vec![one.unwrap_or(Node::Anyone)]
}

struct Builder<'a> {
    snapshots: &'a [RuntimeSnapshot],
    os: &'a OsState,
    frozen: bool,
    /// See [`Graph::doubtful`].
    doubtful: bool,
    /// Some thread of the process does not sleep.
    awake: bool,
    graph: Graph,
    /// Explicit tasks by the task that generated them, for each runtime.
    children: Vec<HashMap<TaskId, Vec<TaskId>>>,
    in_group: Vec<HashMap<TaskgroupId, Vec<TaskId>>>,
    in_team: Vec<HashMap<TeamId, Vec<TaskId>>>,
    /// Tasks that are ready, for each runtime.
    ready: Vec<Vec<&'a Task>>,
    /// Whether there are tasks that were not found, for each runtime.
    hidden: Vec<bool>,
    /// Nodes that have been met and have still to be explained.
    open: Vec<Node>,
}

impl<'a> Builder<'a> {
    fn new(snapshots: &'a [RuntimeSnapshot], os: &'a OsState, frozen: bool) -> Self {
        let explicit = |snapshot: &'a RuntimeSnapshot| {
            let all = (0..snapshot.tasks.len()).map(TaskId).zip(&snapshot.tasks);
            all.filter(|(_, task)| task.kind.get().is_some_and(TaskKind::is_explicit))
        };
        let grouped = |key: fn(&Task) -> Option<usize>| -> Vec<HashMap<usize, Vec<TaskId>>> {
            let of = |snapshot| {
                let mut map: HashMap<usize, Vec<TaskId>> = HashMap::new();
                for (id, task) in explicit(snapshot) {
                    if let Some(key) = key(task) {
                        map.entry(key).or_default().push(id);
                    }
                }
                map
            };
            snapshots.iter().map(of).collect()
        };
        fn keyed<K: std::hash::Hash + Eq>(
            maps: Vec<HashMap<usize, Vec<TaskId>>>,
            wrap: fn(usize) -> K,
        ) -> Vec<HashMap<K, Vec<TaskId>>> {
            maps.into_iter().map(|map| map.into_iter().map(|(k, v)| (wrap(k), v)).collect()).collect()
        }
        Builder {
            snapshots,
            os,
            frozen,
            doubtful: false,
            awake: os.threads.iter().any(|os| matches!(os.blocked, Blocked::No | Blocked::Yields)),
            graph: Graph {
                graph: DiGraph::new(),
                index: HashMap::new(),
                modes: Vec::new(),
                parked: HashSet::new(),
                waiting: HashSet::new(),
            },
            children: keyed(grouped(|t| t.generating.flat().map(|id| id.0)), TaskId),
            in_group: keyed(grouped(|t| t.taskgroup.flat().map(|id| id.0)), TaskgroupId),
            in_team: keyed(grouped(|t| t.team.flat().map(|id| id.0)), TeamId),
            ready: snapshots
                .iter()
                .map(|s| s.tasks.iter().filter(|t| t.state.get() == Some(TaskState::Ready)).collect())
                .collect(),
            hidden: snapshots.iter().map(has_hidden).collect(),
            open: Vec::new(),
        }
    }

    fn build(&mut self) {
        let mut by_lwp: HashMap<i32, Vec<(RuntimeIndex, &'a Thread)>> = HashMap::new();
        for (runtime, snapshot) in self.snapshots.iter().enumerate() {
            for thread in &snapshot.threads {
                if let Some(lwp) = thread.lwp {
                    by_lwp.entry(lwp).or_default().push((runtime, thread));
                }
            }
        }
        for os in &self.os.threads {
            self.thread(*os, by_lwp.get(&os.lwp).map_or(&[], Vec::as_slice));
        }
        // A task that is ready might do it as well, if there were a thread to execute it.
        let ready = self.snapshots.iter().enumerate().flat_map(|(runtime, snapshot)| {
            let ids = (0..snapshot.tasks.len()).map(TaskId).filter(|id| is_ready(snapshot, *id));
            ids.take(READY_TASKS).map(move |id| Node::Task(runtime, id))
        });
        let threads = self.os.threads.iter().map(|os| Node::Thread(os.lwp));
        let anyone: Vec<Node> = threads.chain(ready).collect();
        self.set(Node::Anyone, Mode::Any, anyone);
        while let Some(node) = self.open.pop() {
            self.explain(node);
        }
    }

    /// Sets what `node` takes to get on; what it leads to is explained later, each once.
    fn set(&mut self, node: Node, mode: Mode, to: Vec<Node>) {
        for next in &to {
            let (_, new) = self.graph.node(*next);
            if new {
                self.open.push(*next);
            }
        }
        self.graph.set(node, mode, to);
    }

    fn thread(&mut self, os: OsThread, known: &[(RuntimeIndex, &'a Thread)]) {
        let node = Node::Thread(os.lwp);
        let mut waits: Vec<Node> = Vec::new();
        let mut parked = false;
        let doubts = |thread: &Thread| thread.wait.value().is_none() || thread.in_runtime.is_some();
        let undecided = self.doubtful && known.iter().any(|(_, thread)| doubts(thread));
        for (runtime, thread) in known {
            let Fact::Known { value: Some(wait), .. } = &thread.wait else { continue };
            if wait.kind == WaitKind::Pool {
                // Awake it may be on its way to or from the pool, and others wait for that.
                if wait.over.get() != Some(false) && os.blocked == Blocked::No && !self.doubtful {
                    self.set(node, Mode::Free, Vec::new());
                    self.graph.parked.insert(os.lwp);
                    return;
                }
                parked = true;
                continue;
            }
            // That it sleeps proves nothing by itself: libomp changes what is waited for before it wakes who waits.
            let still = wait.over.get() == Some(false) || self.doubtful && wait.over.get().is_none();
            if !still || self.may_take_a_task(*runtime, thread, wait.kind) || self.may_have_taken(*runtime, wait, os) {
                self.set(node, Mode::Free, Vec::new());
                return;
            }
            waits.extend(object(self.snapshots, *runtime, thread, wait));
        }
        if !waits.is_empty() {
            self.graph.waiting.insert(os.lwp);
            // Of several waits only the innermost counts, and which that is need not be known: all have to be stuck.
            self.set(node, Mode::Any, waits);
            return;
        }
        match os.blocked {
            Blocked::Join(joined) => self.set(node, Mode::Any, vec![Node::Thread(joined)]),
            Blocked::Mutex(_, owner) | Blocked::Interpreter(owner) => {
                self.set(node, Mode::Any, vec![Node::Thread(owner)]);
            }
            _ if undecided => {
                self.graph.waiting.insert(os.lwp);
                self.set(node, Mode::Any, vec![Node::Anyone]);
            }
            // It leaves the pool when some thread opens a region.
            _ if parked => self.set(node, Mode::Any, vec![Node::Anyone]),
            // It may be at a lock of the runtime's own, held by a thread that waits but has not gone to sleep.
            Blocked::Futex(_) if self.awake && known.iter().any(|(_, t)| t.wait.value().is_none()) => {
                self.set(node, Mode::Free, Vec::new());
            }
            // Handlers post semaphores and send notice: that is what they are for.
            Blocked::Futex(_) if self.os.signals.of_timers() => self.set(node, Mode::Free, Vec::new()),
            // The handler of SIGTERM may post it: the program waits until it is asked to end.
            Blocked::Futex(_) if self.os.signals.ask_to_end() && !self.frozen => self.set(node, Mode::Free, Vec::new()),
            Blocked::Futex(_) => self.set(node, Mode::Any, vec![Node::Anyone]),
            Blocked::Outside(_) if self.frozen => self.set(node, Mode::Any, vec![Node::Anyone]),
            // Between two looks at what it waits for it offers its processor to others.
            Blocked::Yields | Blocked::No
                if self.frozen
                    && (os.blocked == Blocked::Yields || self.doubtful)
                    && known.iter().any(|(r, t)| exhausted(&self.snapshots[*r], t)) =>
            {
                self.set(node, Mode::Any, vec![Node::Anyone]);
            }
            Blocked::Outside(_) | Blocked::Yields | Blocked::No => self.set(node, Mode::Free, Vec::new()),
        }
        if parked {
            self.graph.parked.insert(os.lwp);
        }
    }

    /// True if the thread may be just about to execute a task, or has just executed one. What it does then is in no
    /// queue and no other record. A thread whose wait memory shows has no task in its hands if it sleeps. It has none
    /// either if all tasks that are not over are where they belong. If only the stack shows the wait, the thread must
    /// wait at a barrier and offer its processor to others besides. At a barrier libomp does that as long as it waits,
    /// and not when it lets others continue.
    fn may_have_taken(&self, runtime: RuntimeIndex, wait: &Wait, os: OsThread) -> bool {
        if !is_scheduling_point(wait.kind) || self.doubtful {
            return false;
        }
        if wait.origin == Origin::Stack {
            let barrier = matches!(wait.kind, WaitKind::Barrier | WaitKind::RegionEnd);
            return self.hidden[runtime] && !self.frozen || !barrier || os.blocked != Blocked::Yields;
        }
        // libomp yields now and then with a task in its hands as well (`__kmp_release_ticket_lock`): no proof.
        let quiet = is_asleep(wait, os) || self.frozen && os.blocked == Blocked::Yields;
        self.hidden[runtime] && !quiet
    }

    /// What is still to be done once all members are at a barrier and no unfinished task is known. The runtime does it
    /// itself, and a member that does not sleep may be about to.
    fn rest(&self, runtime: RuntimeIndex, team: &Team, tasks: Option<&Vec<TaskId>>) -> (Mode, Vec<Node>) {
        let snapshot = &self.snapshots[runtime];
        let awake = |lwp: &i32| {
            let wait = snapshot.thread_by_lwp(*lwp).and_then(|t| t.wait.value()).and_then(Option::as_ref);
            let os = self.os.threads.binary_search_by_key(lwp, |os| os.lwp).ok().and_then(|at| self.os.threads.get(at));
            wait.zip(os)
                .is_none_or(|(wait, os)| !(is_asleep(wait, *os) || self.frozen && os.blocked == Blocked::Yields))
        };
        if tasks.is_none_or(Vec::is_empty) && team.members.iter().flatten().any(awake) && !self.doubtful {
            return (Mode::Free, Vec::new());
        }
        self.tasks(runtime, tasks)
    }

    /// True if a task is ready that the thread may execute while it waits. A thread suspended in a tied task outside of
    /// a barrier takes only tied tasks that descend from it (OpenMP 5.2, 12.9).
    fn may_take_a_task(&self, runtime: RuntimeIndex, thread: &Thread, kind: WaitKind) -> bool {
        if !is_scheduling_point(kind) {
            return false;
        }
        let any = matches!(kind, WaitKind::Barrier | WaitKind::RegionEnd | WaitKind::BarrierTasks);
        let snapshot = &self.snapshots[runtime];
        let team = thread.team.flat();
        let current = thread.task.get();
        let ready = self.ready[runtime].iter();
        let mut of_team = ready.filter(|t| t.team.flat().is_none() || team.is_none() || t.team.flat() == team);
        let children_only = kind == WaitKind::Taskwait && snapshot.taskwait_runs_children_only;
        of_team.any(|task| match (any, children_only) {
            (true, _) => true,
            (_, true) => task.priority.get() != Some(0) || task.generating.flat() == current,
            _ => task.tied.get() == Some(false) || self.may_descend(snapshot, task, current),
        })
    }

    /// False only if it is known that `task` does not descend from `ancestor`.
    fn may_descend(&self, snapshot: &RuntimeSnapshot, task: &Task, ancestor: Option<TaskId>) -> bool {
        let Some(ancestor) = ancestor else { return true };
        let mut at = task;
        for _ in 0..crate::limits::TASK_DEPTH {
            match &at.generating {
                Fact::Known { value: Some(id), .. } if *id == ancestor => return true,
                Fact::Known { value: Some(id), .. } => match snapshot.task(*id) {
                    // A task that belongs to a region, not to another task, descends from none of this region.
                    Some(next) if next.kind.get().is_some_and(|k| !k.is_explicit()) => return *id == ancestor,
                    Some(next) => at = next,
                    None => return true,
                },
                Fact::Known { value: None, .. } => return false,
                Fact::Unknown { .. } => return true,
            }
        }
        true
    }

    fn explain(&mut self, node: Node) {
        let (mode, to) = match node {
            Node::Thread(_) | Node::Anyone => return,
            // It may be a thread on its way into the region, as long as there is one.
            Node::Missing(..) => (Mode::Any, vec![Node::Anyone]),
            Node::GoneOwner(..) => (Mode::Any, Vec::new()),
            // One member that cancels the region ends it for all.
            Node::Barrier(runtime, team) => match self.missing(runtime, team, &[WaitKind::Barrier]) {
                (Mode::All, missing) if self.snapshots[runtime].barriers_may_be_cancelled => (Mode::Any, missing),
                other => other,
            },
            Node::RegionEnd(runtime, team) => self.missing(runtime, team, &[WaitKind::RegionEnd]),
            Node::RegionStart(runtime, team) => self.let_in(runtime, team),
            Node::TeamTasks(runtime, id) => match self.snapshots[runtime].team(id) {
                Some(team) => self.rest(runtime, team, self.in_team[runtime].get(&id)),
                None => (Mode::Free, Vec::new()),
            },
            Node::Taskwait(runtime, task) => self.tasks(runtime, self.children[runtime].get(&task)),
            Node::Taskgroup(runtime, group) => {
                // The task that waits at its end is recorded to be in it, and is not waited for.
                let waits = |id: &&TaskId| !self.waits_at_end(runtime, **id, group);
                let ids = self.in_group[runtime].get(&group);
                let ids: Vec<TaskId> = ids.into_iter().flatten().filter(waits).copied().collect();
                self.tasks(runtime, Some(&ids))
            }
            Node::Dependences(runtime, id) => {
                let known = self.snapshots[runtime].task(id).map(|t| &t.predecessors).filter(|p| !p.is_empty());
                match known {
                    Some(known) => self.tasks(runtime, Some(known)),
                    // They are among its children, and until one of these is over nothing changes.
                    None => (Mode::Any, self.tasks(runtime, self.children[runtime].get(&id)).1),
                }
            }
            Node::Word(_, word) if self.is_others(Addr(word)) => (Mode::Free, Vec::new()),
            Node::Word(..) => (Mode::Any, vec![Node::Anyone]),
            Node::Lock(runtime, id) => self.lock(runtime, id),
            Node::Ordered(runtime, team) => self.ordered(runtime, team),
            Node::Task(runtime, id) => self.task(runtime, id),
            Node::Event(runtime, id) => {
                let event = self.snapshots[runtime].task(id).and_then(|t| t.event.flat());
                match event {
                    Some(event) if !event.fulfilled => (Mode::Any, vec![Node::Anyone]),
                    _ => (Mode::Free, Vec::new()),
                }
            }
        };
        self.set(node, mode, to);
    }

    /// The members of a team that do not wait in one of these ways for it.
    fn missing(&self, runtime: RuntimeIndex, id: TeamId, ways: &[WaitKind]) -> (Mode, Vec<Node>) {
        let snapshot = &self.snapshots[runtime];
        let Some(team) = snapshot.team(id) else { return (Mode::Free, Vec::new()) };
        let here = |lwp: i32| {
            let wait = snapshot.thread_by_lwp(lwp).and_then(|t| t.wait.value()).and_then(Option::as_ref);
            wait.is_some_and(|w| w.team == Some(id) && ways.contains(&w.kind))
        };
        let missing = (0u32..).zip(&team.members).filter_map(|(number, member)| match member {
            Some(lwp) if here(*lwp) => None,
            Some(lwp) => Some(Node::Thread(*lwp)),
            None => Some(Node::Missing(runtime, id, number)),
        });
        let missing: Vec<Node> = missing.collect();
        // All are there, and yet it is not over: for what is left to be done it takes a thread.
        if missing.is_empty() { self.rest(runtime, team, self.in_team[runtime].get(&id)) } else { (Mode::All, missing) }
    }

    /// True if a thread waits at the end of this task group and executes this task.
    fn waits_at_end(&self, runtime: RuntimeIndex, task: TaskId, group: TaskgroupId) -> bool {
        let snapshot = &self.snapshots[runtime];
        let lwp = snapshot.task(task).and_then(|t| t.thread);
        let thread = lwp.and_then(|lwp| snapshot.thread_by_lwp(lwp)).filter(|t| t.task.get() == Some(task));
        let wait = thread.and_then(|t| t.wait.value()).and_then(Option::as_ref);
        wait.is_some_and(|w| {
            matches!(w.kind, WaitKind::Taskgroup | WaitKind::TaskwaitOrTaskgroup)
                && w.taskgroup.or_else(|| snapshot.task(task)?.taskgroup.flat()) == Some(group)
        })
    }

    /// Who waits to be let into a region needs nothing of members that are in it: some of them may have begun. Which
    /// thread lets it in is not recorded.
    fn let_in(&self, runtime: RuntimeIndex, id: TeamId) -> (Mode, Vec<Node>) {
        let Some(team) = self.snapshots[runtime].team(id) else { return (Mode::Free, Vec::new()) };
        let missing = (0u32..).zip(&team.members).filter(|(_, member)| member.is_none());
        let missing: Vec<Node> = missing.map(|(number, _)| Node::Missing(runtime, id, number)).collect();
        if missing.is_empty() { (Mode::Any, vec![Node::Anyone]) } else { (Mode::All, missing) }
    }

    fn tasks(&self, runtime: RuntimeIndex, ids: Option<&Vec<TaskId>>) -> (Mode, Vec<Node>) {
        let to: Vec<Node> = ids.into_iter().flatten().map(|id| Node::Task(runtime, *id)).collect();
        // Whatever it waits for, without a thread of the process it will not happen.
        if to.is_empty() { (Mode::Any, vec![Node::Anyone]) } else { (Mode::All, to) }
    }

    fn lock(&self, runtime: RuntimeIndex, id: LockId) -> (Mode, Vec<Node>) {
        let Some(lock) = self.snapshots[runtime].lock(id) else { return (Mode::Free, Vec::new()) };
        match &lock.owner {
            _ if lock.held.get() == Some(false) || self.is_others(lock.object) => (Mode::Free, Vec::new()),
            Fact::Known { value: None, .. } => (Mode::Free, Vec::new()),
            Fact::Known { value: Some(Owner::Thread(lwp)), .. } => {
                match self.os.threads.iter().any(|os| os.lwp == *lwp) {
                    true => (Mode::Any, vec![Node::Thread(*lwp)]),
                    false => (Mode::Free, Vec::new()),
                }
            }
            Fact::Known { value: Some(Owner::Task(task)), .. } => (Mode::Any, vec![Node::Task(runtime, *task)]),
            Fact::Known { value: Some(Owner::Gone(_)), .. } => (Mode::Any, vec![Node::GoneOwner(runtime, id)]),
            Fact::Unknown { .. } => (Mode::Any, vec![Node::Anyone]),
        }
    }

    /// Another process may set this lock free, or it is not known that none can.
    fn is_others(&self, lock: Addr) -> bool {
        !self.frozen && self.os.shared.contains_key(&lock)
    }

    fn ordered(&self, runtime: RuntimeIndex, id: TeamId) -> (Mode, Vec<Node>) {
        let snapshot = &self.snapshots[runtime];
        let Some(team) = snapshot.team(id) else { return (Mode::Free, Vec::new()) };
        match snapshot.ordered_turn(id).and_then(|number| team.members.get(number as usize).copied().flatten()) {
            // Its turn has come, and it is being told.
            Some(lwp) if self.waits_for_turn(runtime, lwp, id) => (Mode::Free, Vec::new()),
            Some(lwp) => (Mode::Any, vec![Node::Thread(lwp)]),
            // Whose turn it is, is not known: one of the members.
            None => (Mode::Any, self.members(runtime, team)),
        }
    }

    fn waits_for_turn(&self, runtime: RuntimeIndex, lwp: i32, team: TeamId) -> bool {
        let thread = self.snapshots[runtime].thread_by_lwp(lwp);
        let wait = thread.and_then(|t| t.wait.value()).and_then(Option::as_ref);
        wait.is_some_and(|w| w.kind == WaitKind::Ordered && w.team.or(thread.and_then(|t| t.team.flat())) == Some(team))
    }

    fn members(&self, _runtime: RuntimeIndex, team: &Team) -> Vec<Node> {
        team.members.iter().map(|m| m.map_or(Node::Anyone, Node::Thread)).collect()
    }

    fn task(&self, runtime: RuntimeIndex, id: TaskId) -> (Mode, Vec<Node>) {
        let snapshot = &self.snapshots[runtime];
        let Some(task) = snapshot.task(id) else { return (Mode::Free, Vec::new()) };
        let team = task.team.flat().and_then(|id| snapshot.team(id));
        let member = || task.member.and_then(|n| team?.members.get(n as usize).copied().flatten());
        let thread = |lwp: Option<i32>| match lwp {
            Some(lwp) => (Mode::Any, vec![Node::Thread(lwp)]),
            None => match team {
                Some(team) => (Mode::Any, self.members(runtime, team)),
                None => (Mode::Any, vec![Node::Anyone]),
            },
        };
        match task.state.get() {
            Some(TaskState::Running) => thread(task.thread.or_else(member)),
            Some(TaskState::Suspended) => thread(task.stack.or_else(member)),
            Some(TaskState::Ready) => thread(None),
            Some(TaskState::Blocked) => self.tasks(runtime, Some(&task.predecessors)),
            Some(TaskState::Detached) => (Mode::Any, vec![Node::Event(runtime, id)]),
            // As with a thread that computes, the device may finish it at any time.
            Some(TaskState::OnDevice) => (Mode::Free, Vec::new()),
            None => (Mode::Any, vec![Node::Anyone]),
        }
    }
}
