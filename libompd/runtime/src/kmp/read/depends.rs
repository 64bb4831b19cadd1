//! The graph of dependences: which tasks wait for which.
//!
//! A task keeps, for its children, a hash table of the addresses their `depend` clauses name, and for each the last tasks
//! that name it. Every child with such a clause has a node, whose list of successors are the nodes of the tasks that wait for
//! it (`kmp_taskdeps.cpp`). A blocked task is in no queue: it is found through what it waits for, or through the table.

mod walk;

use std::collections::{BTreeMap, HashMap, HashSet};

use ompd_process::{Addr, TargetExt as _};

use self::walk::{Graph, NodeId, Walk};
use super::task_reader::{DependenceWait, TaskReader};
use crate::bind::StructData;
use crate::kmp::reason::Own;
use crate::limits;
use crate::model::*;

/// Kinds of dependences in `last_flag`.
const IN: u64 = 1;
const MUTEX_IN_OUT_SET: u64 = 4;
const IN_OUT_SET: u64 = 8;
/// Locks of one node (`MAX_MTX_DEPS`).
const MUTEXES: u64 = 4;

/// What the table tells of the kind of a dependence.
#[derive(Clone, Copy)]
enum Kind {
    Is(DependKind),
    /// It is `mutexinoutset` if the node refers to this lock.
    ByLock(Addr),
    /// The number is none that is known.
    Other(u64),
}

/// Locks of a node, for its `mutexinoutset` dependences.
enum Locks {
    /// Its task has set them.
    Set(Vec<Addr>),
    /// It has to set them before it begins.
    ToBeSet(Vec<Addr>),
}

impl TaskReader<'_> {
    /// Finds the tasks that wait for others, and fills in what tasks depend on.
    pub(super) fn read_dependences(&mut self) -> Result<(), Reason> {
        let slot = self.context.kmp.structs.taskdata.depnode;
        let mut walk = Walk::new(self.context.target);
        let mut result = Ok(());
        for index in 0..self.found.list.len() {
            // Only what has begun has children.
            if matches!(self.found.list[index].state.get(), Some(TaskState::Ready)) {
                continue;
            }
            if let Err(why) = self.read_table(index, &mut walk) {
                result = result.and(Err(why));
            }
        }
        // Of a task that is over and kept for its children the node may be freed already.
        let complete = self.context.kmp.structs.flags.complete;
        let alive = self.found.views.iter().filter(|view| self.flag(view, &complete).is_ok_and(|over| !over));
        walk.roots(alive.filter_map(|view| view.ptr(&slot).ok()));
        walk.roots(self.queued.nodes.drain(..));
        let mut graph = walk.run(self);
        result = result.and(std::mem::replace(&mut graph.result, Ok(())));
        let complete = !matches!(&result, Err(why) if !why.is_layout());
        self.link(&mut graph, complete);
        result.and(self.name_dependences(&graph)).and(self.exclude(&graph))
    }

    /// The table of the addresses that a task's children depend on.
    fn read_table(&mut self, index: usize, walk: &mut Walk<'_>) -> Result<(), Reason> {
        let kmp = self.context.kmp;
        let s = &kmp.structs;
        let table = self.found.views[index].ptr(&s.taskdata.dephash)?;
        if table.is_null() {
            return Ok(());
        }
        let view = StructData::read(self.context.target, table, s.dephash.size)?;
        let (buckets, length) = (view.ptr(&s.dephash.buckets)?, view.uint(&s.dephash.length)?);
        let last_all = match view.ptr(&s.dephash.last_all) {
            Ok(node) => node,
            Err(why) if why.is_layout() => Addr::NULL,
            Err(why) => return Err(why),
        };
        if !last_all.is_null() {
            walk.named(last_all, Addr::NULL, Kind::Is(DependKind::InOut))?;
        }
        let mut entries = Vec::new();
        let mut first = 0;
        while first < length {
            let count = (length - first).min(limits::BATCH as u64);
            self.notes.bulk.spend(count / 64 + 1)?;
            let read = self.context.read_pointers(buckets, first, count)?;
            entries.extend(read.into_iter().filter(|entry| !entry.is_null()));
            first += count;
        }
        let size = s.dephash_entry.size.bytes_to_read()?;
        // All chains at once, one entry of each after the other.
        while !entries.is_empty() {
            let mut next = Vec::new();
            entries.sort_unstable();
            for batch in entries.chunks(limits::BATCH) {
                self.notes.bulk.spend(batch.len() as u64)?;
                for entry in StructData::read_each(self.context.target, batch, size) {
                    let entry = entry?;
                    let e = &s.dephash_entry;
                    let storage = entry.ptr(&e.addr)?;
                    let last_out = entry.ptr(&e.last_out)?;
                    // A dependence on all memory is entered at each address.
                    if !last_out.is_null() && last_out != last_all {
                        walk.named(last_out, storage, Kind::Is(DependKind::InOut))?;
                    }
                    match (entry.ptr(&e.last_set), entry.ptr(&e.prev_set)) {
                        (Ok(last), Ok(before)) => {
                            let kind = match entry.uint(&e.last_flag)? {
                                IN => Kind::Is(DependKind::In),
                                MUTEX_IN_OUT_SET => Kind::Is(DependKind::MutexInOutSet),
                                IN_OUT_SET => Kind::Is(DependKind::InOutSet),
                                other => Kind::Other(other),
                            };
                            walk.list(last, storage, kind)?;
                            walk.list(before, storage, Kind::ByLock(entry.ptr(&e.mtx_lock)?))?;
                        }
                        // LLVM 12 and earlier.
                        _ => {
                            walk.list(entry.ptr(&e.last_ins)?, storage, Kind::Is(DependKind::In))?;
                            walk.list(entry.ptr(&e.last_mtxs)?, storage, Kind::Is(DependKind::MutexInOutSet))?;
                        }
                    }
                    let follower = entry.ptr(&e.next_in_bucket)?;
                    if !follower.is_null() {
                        next.push(follower);
                    }
                }
            }
            entries = next;
        }
        Ok(())
    }

    /// Tells each listed task what it waits for. If the graph is not `complete`, some edges may be missing.
    fn link(&mut self, graph: &mut Graph, complete: bool) {
        let slot = self.context.kmp.structs.depnode.npredecessors;
        for node in graph.nodes.iter_mut().filter(|node| !node.task.is_null()) {
            node.id = self.found.ids.get(&node.task).copied();
        }
        let mut before: HashMap<NodeId, Vec<NodeId>> = HashMap::new();
        for (from, to) in &graph.edges {
            if graph.node(*to).and_then(|to| to.id).is_some() {
                before.entry(*to).or_default().push(*from);
            }
        }
        for (index, node) in graph.ids().zip(&graph.nodes) {
            let Some(id) = node.id else { continue };
            let mut from = before.remove(&index).unwrap_or_default();
            let edges = from.len();
            let whole =
                complete || (edges as i64 == node.before && !from.iter().any(|from| graph.broken.contains(from)));
            from.sort_unstable();
            from.dedup();
            // Two dependences on one task may count twice.
            let twice = edges.saturating_sub(from.len()) as i64;
            let unmet = match whole {
                true => node.before.saturating_sub(twice),
                false => node.before,
            };
            self.found.list[id.0].unmet = match u32::try_from(unmet) {
                Ok(unmet) if whole || unmet <= 1 => slot.fact(Ok(unmet)),
                Ok(_) => Fact::unknown(Own::DependencesUnreadable),
                Err(_) => Fact::unknown(Own::DependencesBeingEntered),
            };
            let mut ids: Vec<TaskId> = from.iter().filter_map(|from| graph.node(*from)?.id).collect();
            ids.sort_unstable();
            self.found.list[id.0].predecessors = ids;
        }
        self.link_waits(graph);
    }

    /// Finds which running tasks wait for which of their children. The node of such a wait has no task. It lies on the
    /// stack of the thread that executes the generating task of those it depends on.
    fn link_waits(&mut self, graph: &Graph) {
        let mut waits: BTreeMap<NodeId, Vec<TaskId>> = BTreeMap::new();
        for (from, to) in &graph.edges {
            if graph.node(*to).is_some_and(|to| to.read && to.task.is_null()) {
                waits.entry(*to).or_default().extend(graph.node(*from).and_then(|from| from.id));
            }
        }
        let parent = &self.context.kmp.structs.taskdata.parent;
        for (node, mut before) in waits {
            let Some(node) = graph.node(node) else { continue };
            before.sort_unstable();
            before.dedup();
            let generating = before.first().and_then(|id| self.found.views[id.0].ptr(parent).ok());
            let Some(waiter) = generating.and_then(|parent| self.found.ids.get(&parent).copied()) else { continue };
            if !self.found.list[waiter.0].thread.is_some_and(|lwp| self.is_on_stack(lwp, node.addr)) {
                continue;
            }
            self.found.list[waiter.0].predecessors = before;
            self.found.depend_waits.insert(waiter, DependenceWait { node: node.addr, before: node.before });
        }
    }

    /// The address lies outward of a thread's stack pointer, in the same mapping.
    fn is_on_stack(&self, lwp: i32, addr: Addr) -> bool {
        let thread = self.context.target.threads().iter().find(|t| t.lwp == lwp);
        let Some(sp) = thread.and_then(|t| t.registers.as_ref().ok()).map(|r| r.sp) else { return false };
        addr >= sp && self.context.target.mapping(sp).is_some_and(|range| range.contains(&addr.0))
    }

    /// Tells each listed task which of its addresses the tables still have.
    fn name_dependences(&mut self, graph: &Graph) -> Result<(), Reason> {
        let kmp = self.context.kmp;
        let s = &kmp.structs;
        for (node, name) in &graph.named {
            let (Some(node), Some(found)) = (graph.node(*node), graph.names.get(*name as usize)) else { continue };
            let Some(index) = node.id.map(|id| id.0) else { continue };
            let kind = match found.kind {
                Kind::Is(kind) => s.dephash_entry.last_flag.fact(Ok(kind)),
                Kind::ByLock(lock) if !lock.is_null() && self.refers_to(node.addr, lock)? => {
                    s.depnode.mtx_locks.fact(Ok(DependKind::MutexInOutSet))
                }
                Kind::ByLock(_) => Fact::unknown(Own::LastSetOnly),
                Kind::Other(number) => Fact::unknown(Own::UnknownDependenceKind { number }),
            };
            self.found.list[index].dependences.push(RawDependence { addr: found.storage, kind });
        }
        for task in &mut self.found.list {
            task.dependences.sort_by_key(|d| d.addr);
        }
        Ok(())
    }

    /// Finds tasks in queues that may not begin beside one that has begun, since both have a `mutexinoutset` dependence on one
    /// address. The thread that begins a task sets all locks of its node. Then their number is negative (`__kmp_task_is_allowed` in
    /// `kmp_tasking.cpp`).
    fn exclude(&mut self, graph: &Graph) -> Result<(), Reason> {
        let names_some = |kind| {
            matches!(kind, Kind::Is(DependKind::MutexInOutSet)) || matches!(kind, Kind::ByLock(lock) if !lock.is_null())
        };
        if !graph.names.iter().any(|name| names_some(name.kind)) {
            return Ok(());
        }
        let s = &self.context.kmp.structs;
        let (depnode, complete) = (s.taskdata.depnode, s.flags.complete);
        let mut holders: HashMap<Addr, TaskId> = HashMap::new();
        let mut waiting: Vec<(TaskId, Vec<Addr>)> = Vec::new();
        for id in (0..self.found.list.len()).map(TaskId) {
            let view = &self.found.views[id.0];
            let node = view.ptr(&depnode)?;
            let ready = match self.found.list[id.0].state.get() {
                _ if node.is_null() => continue,
                Some(TaskState::Ready) => true,
                Some(TaskState::Running | TaskState::Suspended) if !self.flag(view, &complete)? => false,
                _ => continue,
            };
            match (self.locks_of(node)?, ready) {
                (Locks::ToBeSet(locks), true) => waiting.push((id, locks)),
                (Locks::Set(locks), false) => holders.extend(locks.into_iter().map(|lock| (lock, id))),
                _ => {}
            }
        }
        // Tasks that are only counted may be without such dependences.
        let stands_for_others: HashSet<TaskId> =
            self.queued.kin.values().filter(|kin| kin.more > 0).map(|kin| kin.like).collect();
        let slot = self.context.kmp.structs.depnode.mtx_locks;
        for (id, locks) in waiting.into_iter().filter(|(id, _)| !stands_for_others.contains(id)) {
            let mut before: Vec<TaskId> = locks.iter().filter_map(|lock| holders.get(lock).copied()).collect();
            before.sort_unstable();
            before.dedup();
            if before.is_empty() {
                continue;
            }
            let task = &mut self.found.list[id.0];
            task.state = slot.fact(Ok(TaskState::Blocked));
            task.unmet = slot.fact(Ok(u32::try_from(before.len()).unwrap_or(u32::MAX)));
            task.predecessors = before;
        }
        Ok(())
    }

    /// The locks of a node, and whether its task has set them. Their number follows them (`kmp_base_depnode` in `kmp.h`).
    fn locks_of(&mut self, node: Addr) -> Result<Locks, Reason> {
        self.notes.bulk.spend(1)?;
        let target = self.context.target;
        let locks = node.offset(self.context.kmp.structs.depnode.mtx_locks.offset()?);
        let width = u64::from(target.arch().pointer_bytes);
        let number = target.read_u32(locks.offset(MUTEXES * width))?.cast_signed();
        let count = u64::from(number.unsigned_abs()).min(MUTEXES);
        let locks = self.context.read_pointers(locks, 0, count)?;
        Ok(if number < 0 { Locks::Set(locks) } else { Locks::ToBeSet(locks) })
    }

    fn refers_to(&mut self, node: Addr, lock: Addr) -> Result<bool, Reason> {
        self.notes.bulk.spend(1)?;
        let locks = node.offset(self.context.kmp.structs.depnode.mtx_locks.offset()?);
        Ok(self.context.read_pointers(locks, 0, MUTEXES)?.contains(&lock))
    }
}
