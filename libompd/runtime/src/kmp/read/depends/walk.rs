//! Walking the graph of dependences. A million tasks may wait for one, so what lies side by side is read once, in
//! large pieces. Nothing is copied or kept of a task but what the graph needs.

use std::collections::HashSet;
use std::collections::hash_map::{Entry, HashMap};

use ompd_process::{Addr, Target};

use super::super::task_reader::TaskReader;
use super::Kind;
use crate::bind::Part;
use crate::kmp::reason::Own;
use crate::limits;
use crate::model::Reason;
use crate::window::{Structs, Window};

/// So few lists that their entries are better read one by one, each with what lies beside it: the next ones, as a rule.
const FEW: usize = 16;
/// Nodes met on the way that are looked at together: so few that the window still holds what lies beside their entries.
const MET: usize = 256;

/// A node by its place in [`Graph::nodes`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct NodeId(u32);

/// One task with dependences that is not over, or a wait for some.
pub(super) struct Node {
    pub(super) addr: Addr,
    /// Null for one of a wait, on a thread's stack, for one just being entered, and for one that was not read.
    pub(super) task: Addr,
    /// How many dependences the runtime counts as not met; below zero while they are being entered.
    pub(super) before: i64,
    /// The task, if it is listed. Not known before the walk is over.
    pub(super) id: Option<crate::model::TaskId>,
    pub(super) read: bool,
}

/// What a hash table tells of nodes: an address they depend on, and how.
pub(super) struct Name {
    pub(super) storage: Addr,
    pub(super) kind: Kind,
}

/// The graph as far as it was read.
pub(super) struct Graph {
    pub(super) nodes: Vec<Node>,
    places: HashMap<Addr, NodeId>,
    /// From the task that has to be over to the one that waits.
    pub(super) edges: Vec<(NodeId, NodeId)>,
    /// Which node has which of the names.
    pub(super) named: Vec<(NodeId, u32)>,
    pub(super) names: Vec<Name>,
    /// Nodes whose list of successors could not be followed to its end. Some of their edges are missing, or are there
    /// more than once where the list runs in a circle.
    pub(super) broken: HashSet<NodeId>,
    /// The first thing that went wrong.
    pub(super) result: Result<(), Reason>,
}

/// What led to a node.
#[derive(Clone, Copy)]
enum From {
    Root,
    /// It is a successor of this one.
    After(NodeId),
    /// A table has it under this name.
    Named(u32),
}

/// A list being followed. `mark` is an entry met before, which moves on after 1, 2, 4, ... entries. A list that runs in
/// a circle comes to it again (Brent's algorithm). So no set of all entries met has to be kept.
struct List {
    from: From,
    at: Addr,
    mark: Addr,
    left: u64,
    reach: u64,
}

impl List {
    /// Goes on to the next entry; false if the list runs in a circle.
    fn step(&mut self, next: Addr) -> bool {
        if next == self.mark {
            return false;
        }
        self.at = next;
        self.left -= 1;
        if self.left == 0 {
            self.mark = next;
            self.reach = self.reach.saturating_mul(2);
            self.left = self.reach;
        }
        true
    }
}

/// What is still to be followed, and what has been.
pub(super) struct Walk<'a> {
    window: Window<'a>,
    graph: Graph,
    roots: Vec<(From, Addr)>,
    /// Nodes that tables name.
    named: Vec<(From, Addr)>,
    /// Lists to follow.
    lists: Vec<(From, Addr)>,
    structs: Structs,
    tasks: Structs,
}

impl Graph {
    pub(super) fn node(&self, id: NodeId) -> Option<&Node> {
        self.nodes.get(id.0 as usize)
    }

    pub(super) fn ids(&self) -> impl Iterator<Item = NodeId> + use<> {
        (0..u32::try_from(self.nodes.len()).unwrap_or(u32::MAX)).map(NodeId)
    }

    /// What nobody knows where to find is told only if nothing else went wrong.
    fn note(&mut self, why: Reason) {
        if !matches!(&self.result, Err(first) if !first.is_layout() || why.is_layout()) {
            self.result = Err(why);
        }
    }
}

/// The length of a list as a number of 32 bits.
fn short(len: usize) -> Result<u32, Reason> {
    u32::try_from(len).map_err(|_| Own::TooManyDependences.into())
}

impl<'a> Walk<'a> {
    pub(super) fn new(target: &'a dyn Target) -> Walk<'a> {
        Walk {
            window: Window::new(target),
            graph: Graph {
                nodes: Vec::new(),
                places: HashMap::new(),
                edges: Vec::new(),
                named: Vec::new(),
                names: Vec::new(),
                broken: HashSet::new(),
                result: Ok(()),
            },
            roots: Vec::new(),
            named: Vec::new(),
            lists: Vec::new(),
            structs: Structs::new(),
            tasks: Structs::new(),
        }
    }

    /// Nodes to begin with.
    pub(super) fn roots(&mut self, nodes: impl Iterator<Item = Addr>) {
        self.roots.extend(nodes.filter(|node| !node.is_null()).map(|node| (From::Root, node)));
    }

    /// A node that a table names.
    pub(super) fn named(&mut self, node: Addr, storage: Addr, kind: Kind) -> Result<(), Reason> {
        let name = From::Named(self.name(storage, kind)?);
        self.named.push((name, node));
        Ok(())
    }

    /// A list of nodes that a table names.
    pub(super) fn list(&mut self, head: Addr, storage: Addr, kind: Kind) -> Result<(), Reason> {
        if !head.is_null() {
            let name = From::Named(self.name(storage, kind)?);
            self.lists.push((name, head));
        }
        Ok(())
    }

    fn name(&mut self, storage: Addr, kind: Kind) -> Result<u32, Reason> {
        let name = short(self.graph.names.len())?;
        self.graph.names.push(Name { storage, kind });
        Ok(name)
    }

    /// Reads the nodes, everything that waits for them, and files the tasks that were not met before.
    pub(super) fn run(mut self, reader: &mut TaskReader<'_>) -> Graph {
        if let Err(why) = self.try_run(reader) {
            self.graph.note(why);
        }
        self.graph
    }

    fn try_run(&mut self, reader: &mut TaskReader<'_>) -> Result<(), Reason> {
        let roots = std::mem::take(&mut self.roots);
        let mut later = Vec::new();
        // A few lists of tables go side by side with those of successors: what was made together lies together. Of many,
        // one for each address, nearly all they lead to is met by following the tasks in the order they were made in.
        if self.lists.len() >= FEW {
            later = std::mem::take(&mut self.lists);
        }
        self.take_in(reader, &roots)?;
        self.follow_all(reader)?;
        // The rest comes by address, so that what is read together lies together.
        let mut named = std::mem::take(&mut self.named);
        named.sort_by_key(|(_, node)| *node);
        self.take_in(reader, &named)?;
        later.sort_by_key(|(_, head)| *head);
        self.lists.append(&mut later);
        self.follow_all(reader)
    }

    /// Follows the lists, and those of the nodes they lead to.
    fn follow_all(&mut self, reader: &mut TaskReader<'_>) -> Result<(), Reason> {
        while !self.lists.is_empty() {
            for lists in std::mem::take(&mut self.lists).chunks(limits::BATCH) {
                self.follow(reader, lists)?;
            }
        }
        Ok(())
    }

    fn follow(&mut self, reader: &mut TaskReader<'_>, lists: &[(From, Addr)]) -> Result<(), Reason> {
        let size = reader.context.kmp.structs.depnode_list.size.bytes_to_read()?;
        let begin = |&(from, at): &(From, Addr)| List { from, at, mark: at, left: 1, reach: 1 };
        let mut lists: Vec<List> = lists.iter().map(begin).collect();
        let mut addrs = Vec::new();
        let mut met = Vec::new();
        while !lists.is_empty() {
            reader.notes.bulk.spend(lists.len() as u64)?;
            addrs.clear();
            addrs.extend(lists.iter().map(|list| list.at));
            match lists.len() {
                0..FEW => self.structs.read_moving(&self.window, &addrs, size),
                _ => self.structs.read_through(&self.window, &addrs, size),
            }
            let mut place = 0;
            lists.retain_mut(|list| {
                let step = enter(reader, &self.structs, place, list, &mut met);
                place += 1;
                step.unwrap_or_else(|why| {
                    if let From::After(node) = list.from {
                        self.graph.broken.insert(node);
                    }
                    self.graph.note(why);
                    false
                })
            });
            if met.len() >= MET || lists.is_empty() {
                self.take_in(reader, &met)?;
                met.clear();
            }
        }
        Ok(())
    }

    /// Reads nodes that were not met before, and files their tasks.
    fn take_in(&mut self, reader: &mut TaskReader<'_>, met: &[(From, Addr)]) -> Result<(), Reason> {
        let d = &reader.context.kmp.structs.depnode;
        let (node_bytes, width) = (d.size.bytes_to_read()?, reader.context.kmp.structs.taskdata.size);
        let (mut ids, mut addrs) = (Vec::new(), Vec::new());
        let (mut files, mut tasks) = (Vec::new(), Vec::new());
        for met in met.chunks(limits::BATCH) {
            addrs.clear();
            ids.clear();
            for (from, addr) in met {
                let new = NodeId(short(self.graph.nodes.len())?);
                let id = match self.graph.places.entry(*addr) {
                    Entry::Occupied(known) => *known.get(),
                    Entry::Vacant(_) if self.graph.nodes.len() >= limits::NODES => {
                        return Err(Reason::from(Own::TooManyNodes { most: limits::NODES }));
                    }
                    Entry::Vacant(free) => {
                        self.graph.nodes.push(Node { addr: *addr, task: Addr::NULL, before: 0, id: None, read: false });
                        ids.push(new);
                        addrs.push(*addr);
                        *free.insert(new)
                    }
                };
                match *from {
                    From::Root => {}
                    From::After(before) => self.graph.edges.push((before, id)),
                    From::Named(name) => self.graph.named.push((id, name)),
                }
            }
            reader.notes.bulk.spend(addrs.len() as u64)?;
            self.structs.read_through(&self.window, &addrs, node_bytes);
            files.clear();
            tasks.clear();
            for (place, id) in ids.iter().enumerate() {
                let read = self.structs.get(place).and_then(|record| read_node(reader, Part::new(record), width.get()));
                let (task, before, successors) = match read {
                    Ok(read) => read,
                    Err(why) => {
                        self.graph.note(why);
                        continue;
                    }
                };
                let Some(node) = self.graph.nodes.get_mut(id.0 as usize) else { continue };
                (node.task, node.before, node.read) = (task, before, true);
                if task.is_null() {
                    continue;
                }
                if !successors.is_null() {
                    self.lists.push((From::After(*id), successors));
                }
                if !reader.found.ids.contains_key(&task) && !reader.queued.in_queue.contains(&task) {
                    tasks.push(task);
                    files.push((node.addr, before));
                }
            }
            if !tasks.is_empty() {
                reader.notes.bulk.spend(tasks.len() as u64)?;
                self.tasks.read_through(&self.window, &tasks, reader.task_bytes()?);
                for (place, node) in files.iter().enumerate() {
                    reader.file_task(self.tasks.get(place).map(Part::new), Some(*node));
                }
            }
        }
        Ok(())
    }
}

/// Looks at an entry of a list and goes on to the next one; false if it is the last.
fn enter(
    reader: &TaskReader<'_>,
    entries: &Structs,
    place: usize,
    list: &mut List,
    met: &mut Vec<(From, Addr)>,
) -> Result<bool, Reason> {
    let s = &reader.context.kmp.structs.depnode_list;
    let entry = entries.get(place).map(Part::new)?;
    let (node, next) = (entry.ptr(&s.node)?, entry.ptr(&s.next)?);
    if node.is_null() {
        return Err(Reason::from(Own::EntryWithoutTask { entry: entry.addr() }));
    }
    met.push((list.from, node));
    if next.is_null() {
        return Ok(false);
    }
    if !list.step(next) {
        return Err(Reason::from(Own::EndlessList { entry: entry.addr(), next }));
    }
    Ok(true)
}

/// The task of a node, how many it waits for, and the list of those that wait for it.
fn read_node(reader: &TaskReader<'_>, node: Part<'_>, width: Result<u64, Reason>) -> Result<(Addr, i64, Addr), Reason> {
    let d = &reader.context.kmp.structs.depnode;
    let task = node.ptr(&d.task)?;
    let before = node.int(&d.npredecessors)?;
    // Over, or its dependences are being entered: its list of successors may be freed already.
    if task.is_null() {
        return Ok((Addr::NULL, before, Addr::NULL));
    }
    Ok((Addr(task.0.wrapping_sub(width?)), before, node.ptr(&d.successors)?))
}
