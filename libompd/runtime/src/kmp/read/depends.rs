//! The graph of dependences: which tasks wait for which.
//!
//! A task keeps, for its children, a hash table of the addresses their `depend` clauses name, and for each the last tasks
//! that name it. Every child with such a clause has a node, whose list of successors are the nodes of the tasks that wait for
//! it (`kmp_taskdeps.cpp`). A blocked task is in no queue: it is found through what it waits for, or through the table.

use std::collections::{HashMap, HashSet};

use ompd_target::Addr;

use super::Reader;
use crate::bind::{View, Why};
use crate::limits;
use crate::model::*;
use crate::window::Window;

/// Kinds of dependences in `last_flag`.
const IN: u64 = 1;
const MUTEX_IN_OUT_SET: u64 = 4;
const IN_OUT_SET: u64 = 8;
/// Locks of one node (`MAX_MTX_DEPS`).
const MUTEXES: u64 = 4;

/// One task with dependences that is not over.
struct Node {
    addr: Addr,
    task: Addr,
    /// How many dependences the runtime counts as not met; below zero while they are being entered.
    before: i64,
    /// Edges that lead here.
    edges: u32,
}

/// One node at one address of a hash table.
struct Named {
    node: Addr,
    storage: Addr,
    kind: Kind,
}

/// What the table tells of the kind of a dependence.
#[derive(Clone, Copy)]
enum Kind {
    Is(DependKind),
    /// It is `mutexinoutset` if the node refers to this lock.
    ByLock(Addr),
    /// The number is none that is known.
    Other(u64),
}

/// The graph as far as it was read.
#[derive(Default)]
struct Graph {
    nodes: Vec<Node>,
    ids: HashMap<Addr, usize>,
    seen: HashSet<Addr>,
    /// From the task that has to be over to the one that waits.
    edges: Vec<(usize, Addr)>,
    /// Nodes without a task, and what they count as not met: one of a wait, on a thread's stack, or one just being entered.
    waits: HashMap<Addr, i64>,
}

/// The wait of a task for others that it names by dependences (`__kmpc_omp_wait_deps`): a node on the stack of its thread.
pub(super) struct DependenceWait {
    /// The node.
    pub(super) node: Addr,
    /// How many dependences are not met.
    pub(super) before: i64,
}

impl Reader<'_> {
    /// Finds the tasks that wait for others, and fills in what tasks depend on.
    pub(super) fn read_dependences(&mut self) -> Result<(), Why> {
        let slot = self.kmp.structs.taskdata.depnode;
        let mut named = Vec::new();
        let mut result = Ok(());
        for index in 0..self.tasks.len() {
            // Only what has begun has children.
            if matches!(self.tasks[index].state.get(), Some(TaskState::Ready)) {
                continue;
            }
            if let Err(why) = self.read_table(index, &mut named) {
                result = result.and(Err(why));
            }
        }
        // Of a task that is over and kept for its children the node may be freed already.
        let complete = self.kmp.structs.flags.complete;
        let alive = self.task_views.iter().filter(|view| self.flag(view, &complete).is_ok_and(|over| !over));
        let mut roots: Vec<Addr> = alive.filter_map(|view| view.ptr(&slot).ok()).collect();
        roots.append(&mut self.queued.nodes);
        roots.extend(named.iter().map(|n| n.node));
        let mut graph = Graph::default();
        result = result.and(self.walk(&mut graph, roots));
        result = result.and(self.file_nodes(&graph));
        self.link(&mut graph);
        result.and(self.name_dependences(&graph, &named))
    }

    /// The table of the addresses that a task's children depend on.
    fn read_table(&mut self, index: usize, named: &mut Vec<Named>) -> Result<(), Why> {
        let kmp = self.kmp;
        let s = &kmp.structs;
        let table = self.task_views[index].ptr(&s.taskdata.dephash)?;
        if table.is_null() {
            return Ok(());
        }
        let view = View::read(self.target, table, s.dephash.size)?;
        let (buckets, length) = (view.ptr(&s.dephash.buckets)?, view.uint(&s.dephash.length)?);
        let last_all = match view.ptr(&s.dephash.last_all) {
            Ok(node) => node,
            Err(why) if why.is_layout() => Addr::NULL,
            Err(why) => return Err(why),
        };
        if !last_all.is_null() {
            named.push(Named { node: last_all, storage: Addr::NULL, kind: Kind::Is(DependKind::InOut) });
        }
        let mut entries = Vec::new();
        let mut first = 0;
        while first < length {
            let count = (length - first).min(limits::BATCH as u64);
            self.bulk.spend(count / 64 + 1)?;
            entries.extend(self.read_pointers(buckets, first, count)?.into_iter().filter(|entry| !entry.is_null()));
            first += count;
        }
        let size = s.dephash_entry.size.bytes_to_read()?;
        // All chains at once, one entry of each after the other.
        while !entries.is_empty() {
            let mut next = Vec::new();
            let mut lists = Vec::new();
            for batch in entries.chunks(limits::BATCH) {
                self.bulk.spend(batch.len() as u64)?;
                for entry in View::read_each(self.target, batch, size) {
                    let entry = entry?;
                    let e = &s.dephash_entry;
                    let storage = entry.ptr(&e.addr)?;
                    let last_out = entry.ptr(&e.last_out)?;
                    // A dependence on all memory is entered at each address.
                    if !last_out.is_null() && last_out != last_all {
                        named.push(Named { node: last_out, storage, kind: Kind::Is(DependKind::InOut) });
                    }
                    match (entry.ptr(&e.last_set), entry.ptr(&e.prev_set)) {
                        (Ok(last), Ok(before)) => {
                            let kind = match entry.uint(&e.last_flag)? {
                                IN => Kind::Is(DependKind::In),
                                MUTEX_IN_OUT_SET => Kind::Is(DependKind::MutexInOutSet),
                                IN_OUT_SET => Kind::Is(DependKind::InOutSet),
                                other => Kind::Other(other),
                            };
                            lists.push((last, storage, kind));
                            lists.push((before, storage, Kind::ByLock(entry.ptr(&e.mtx_lock)?)));
                        }
                        // LLVM 12 and earlier.
                        _ => {
                            lists.push((entry.ptr(&e.last_ins)?, storage, Kind::Is(DependKind::In)));
                            lists.push((entry.ptr(&e.last_mtxs)?, storage, Kind::Is(DependKind::MutexInOutSet)));
                        }
                    }
                    let follower = entry.ptr(&e.next_in_bucket)?;
                    if !follower.is_null() {
                        next.push(follower);
                    }
                }
            }
            let heads: Vec<Addr> = lists.iter().map(|(head, ..)| *head).collect();
            self.read_lists(&heads, |list, node| {
                let (_, storage, kind) = lists[list];
                named.push(Named { node, storage, kind });
            })?;
            entries = next;
        }
        Ok(())
    }

    /// Walks many lists of nodes at once; `each` gets the index of the list and the node.
    fn read_lists(&mut self, heads: &[Addr], mut each: impl FnMut(usize, Addr)) -> Result<(), Why> {
        /// So few that they are better read one by one, each with what lies beside it: the next ones, as a rule.
        const FEW: usize = 16;
        let s = &self.kmp.structs.depnode_list;
        let window = Window::new(self.target);
        let mut at: Vec<(usize, Addr)> = heads.iter().copied().enumerate().filter(|(_, h)| !h.is_null()).collect();
        while !at.is_empty() {
            let mut next = Vec::new();
            for batch in at.chunks(limits::BATCH) {
                self.bulk.spend(batch.len() as u64)?;
                let addrs: Vec<Addr> = batch.iter().map(|(_, addr)| *addr).collect();
                let views = match addrs.len() {
                    0..FEW => addrs.iter().map(|addr| View::read(&window, *addr, s.size)).collect(),
                    _ => View::read_each(self.target, &addrs, s.size.bytes_to_read()?),
                };
                for ((list, _), view) in batch.iter().zip(views) {
                    let view = view?;
                    let (node, rest) = (view.ptr(&s.node)?, view.ptr(&s.next)?);
                    if !node.is_null() {
                        each(*list, node);
                    }
                    if !rest.is_null() {
                        next.push((*list, rest));
                    }
                }
            }
            at = next;
        }
        Ok(())
    }

    /// Reads nodes and everything that waits for them.
    fn walk(&mut self, graph: &mut Graph, roots: Vec<Addr>) -> Result<(), Why> {
        let s = &self.kmp.structs;
        let (d, width) = (&s.depnode, s.taskdata.size);
        let mut frontier = roots;
        while !frontier.is_empty() {
            frontier.retain(|node| !node.is_null() && graph.seen.insert(*node));
            let mut next = Vec::new();
            for batch in frontier.chunks(limits::BATCH) {
                self.bulk.spend(batch.len() as u64)?;
                let mut heads = Vec::new();
                let mut from = Vec::new();
                for (addr, view) in batch.iter().zip(View::read_each(self.target, batch, d.size.bytes_to_read()?)) {
                    let view = view?;
                    let task = view.ptr(&d.task)?;
                    // Over, or its dependences are being entered: its list of successors may be freed already.
                    if task.is_null() {
                        graph.waits.insert(*addr, view.int(&d.npredecessors)?);
                        continue;
                    }
                    let task = Addr(task.0.wrapping_sub(width.get()?));
                    let (head, before) = (view.ptr(&d.successors)?, view.int(&d.npredecessors)?);
                    graph.ids.insert(*addr, graph.nodes.len());
                    from.push(graph.nodes.len());
                    heads.push(head);
                    graph.nodes.push(Node { addr: *addr, task, before, edges: 0 });
                }
                self.read_lists(&heads, |list, node| {
                    graph.edges.push((from[list], node));
                    next.push(node);
                })?;
            }
            frontier = next;
        }
        Ok(())
    }

    /// Files the tasks of those nodes that were not met before.
    fn file_nodes(&mut self, graph: &Graph) -> Result<(), Why> {
        let known = |n: &&Node| !self.task_ids.contains_key(&n.task) && !self.queued.in_queue.contains(&n.task);
        let found: Vec<(Addr, (Addr, i64))> =
            graph.nodes.iter().filter(known).map(|n| (n.task, (n.addr, n.before))).collect();
        for batch in found.chunks(limits::BATCH) {
            self.bulk.spend(batch.len() as u64)?;
            let (tasks, nodes): (Vec<Addr>, Vec<(Addr, i64)>) = batch.iter().copied().unzip();
            self.file_tasks(&tasks, Some(&nodes))?;
        }
        Ok(())
    }

    /// Tells each listed task what it waits for.
    fn link(&mut self, graph: &mut Graph) {
        let slot = self.kmp.structs.depnode.npredecessors;
        let mut before: HashMap<usize, Vec<usize>> = HashMap::new();
        for (from, to) in &graph.edges {
            let Some(to) = graph.ids.get(to) else { continue };
            graph.nodes[*to].edges += 1;
            if self.task_ids.contains_key(&graph.nodes[*to].task) {
                before.entry(*to).or_default().push(*from);
            }
        }
        for (index, node) in graph.nodes.iter().enumerate() {
            let Some(id) = self.task_ids.get(&node.task).copied() else { continue };
            let mut from = before.remove(&index).unwrap_or_default();
            from.sort_unstable();
            from.dedup();
            // Two dependences on one task may count twice.
            let twice = (node.edges as usize).saturating_sub(from.len()) as i64;
            self.tasks[id.0].unmet = match u32::try_from(node.before.saturating_sub(twice)) {
                Ok(unmet) => slot.fact(Ok(unmet)),
                Err(_) => Fact::unknown("its dependences are just being entered"),
            };
            let ids = from.iter().filter_map(|from| self.task_ids.get(&graph.nodes[*from].task).copied());
            let mut ids: Vec<TaskId> = ids.collect();
            ids.sort_unstable();
            self.tasks[id.0].predecessors = ids;
        }
        self.link_waits(graph);
    }

    /// Which running tasks wait for which of their children: the node of such a wait has no task, and lies on the stack of the
    /// thread that executes the one that generated those it depends on.
    fn link_waits(&mut self, graph: &Graph) {
        let mut waits: HashMap<Addr, Vec<TaskId>> = HashMap::new();
        for (from, to) in graph.edges.iter().filter(|(_, to)| graph.waits.contains_key(to)) {
            waits.entry(*to).or_default().extend(self.task_ids.get(&graph.nodes[*from].task));
        }
        for (node, mut before) in waits {
            before.sort_unstable();
            before.dedup();
            let generating =
                before.first().and_then(|id| self.task_views[id.0].ptr(&self.kmp.structs.taskdata.parent).ok());
            let Some(waiter) = generating.and_then(|parent| self.task_ids.get(&parent).copied()) else { continue };
            if !self.tasks[waiter.0].thread.is_some_and(|lwp| self.is_on_stack(lwp, node)) {
                continue;
            }
            self.tasks[waiter.0].predecessors = before;
            self.depend_waits.insert(waiter, DependenceWait { node, before: graph.waits[&node] });
        }
    }

    /// The address lies outward of a thread's stack pointer, in the same mapping.
    fn is_on_stack(&self, lwp: i32, addr: Addr) -> bool {
        let thread = self.target.threads().iter().find(|t| t.lwp == lwp);
        let Some(sp) = thread.and_then(|t| t.registers.as_ref().ok()).map(|r| r.sp) else { return false };
        addr >= sp && self.target.mapping(sp).is_some_and(|range| range.contains(&addr.0))
    }

    /// Tells each listed task which of its addresses the tables still have.
    fn name_dependences(&mut self, graph: &Graph, named: &[Named]) -> Result<(), Why> {
        let kmp = self.kmp;
        let s = &kmp.structs;
        for found in named {
            let node = graph.ids.get(&found.node).map(|id| &graph.nodes[*id]);
            let Some(index) = node.and_then(|node| self.task_ids.get(&node.task)).map(|id| id.0) else { continue };
            let kind = match found.kind {
                Kind::Is(kind) => s.dephash_entry.last_flag.fact(Ok(kind)),
                Kind::ByLock(lock) if !lock.is_null() && self.refers_to(found.node, lock)? => {
                    s.depnode.mtx_locks.fact(Ok(DependKind::MutexInOutSet))
                }
                Kind::ByLock(_) => Fact::unknown("the runtime keeps the kind of the last set only"),
                Kind::Other(number) => Fact::unknown(format!("its kind is told as {number}")),
            };
            self.tasks[index].dependences.push(Dependence { addr: found.storage, kind, name: None });
        }
        for task in &mut self.tasks {
            task.dependences.sort_by_key(|d| d.addr);
        }
        Ok(())
    }

    fn refers_to(&mut self, node: Addr, lock: Addr) -> Result<bool, Why> {
        self.bulk.spend(1)?;
        let locks = node.offset(self.kmp.structs.depnode.mtx_locks.offset()?);
        Ok(self.read_pointers(locks, 0, MUTEXES)?.contains(&lock))
    }
}
