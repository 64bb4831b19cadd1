//! Graphs for Graphviz: what waits for what, and which task depends on which.

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;

use ompd_runtime::model::*;
use ompd_runtime::waits_for::Node;

use super::dot::quoted;
use crate::tell::{self, Names};
use ompd_inspection::Inspection;

use crate::words;

/// Tasks drawn one by one: nobody reads a picture of more.
const TASKS: usize = 500;

/// What waits for what, from the threads that wait for OpenMP on; what a verdict is about is red.
pub fn waits(inspection: &Inspection) -> String {
    let graph = &inspection.waits_for.graph;
    let core: HashSet<Node> = inspection.waits_for.verdicts.iter().flat_map(|v| v.core.iter().copied()).collect();
    let waiting = |node: &Node| matches!(node, Node::Thread(lwp) if graph.is_waiting(*lwp));
    let mut order: Vec<Node> = graph.nodes().filter(waiting).collect();
    let mut index: HashMap<Node, usize> = order.iter().enumerate().map(|(i, node)| (*node, i)).collect();
    let mut edges: Vec<(usize, usize)> = Vec::new();
    let mut at = 0;
    while let Some(node) = order.get(at).copied() {
        // That anyone might do it is said of the node; an edge to every thread would hide the others.
        let next = graph.waits_for(node).filter(|_| node != Node::Anyone);
        for next in next {
            let to = *index.entry(next).or_insert_with(|| {
                order.push(next);
                order.len() - 1
            });
            if !edges.contains(&(at, to)) {
                edges.push((at, to));
            }
        }
        at += 1;
    }
    let mut out = String::from("digraph waits {\n  rankdir=LR;\n  node [fontname=\"monospace\"];\n");
    let names = Names::of(inspection);
    for (at, node) in order.iter().enumerate() {
        let shape = if matches!(node, Node::Thread(_)) { "box" } else { "ellipse" };
        let colour = if core.contains(node) { ", color=red" } else { "" };
        let mut label = quoted(&tell::node(inspection, *node));
        // No edge says what a thread does that waits for nothing of OpenMP.
        if let Node::Thread(lwp) = node
            && !graph.is_waiting(*lwp)
        {
            let _ = write!(label, "\\n{}", quoted(&names.stand(*lwp)));
        }
        let _ = writeln!(out, "  n{at} [label=\"{label}\", shape={shape}{colour}];");
    }
    for (from, to) in edges {
        let colour = if core.contains(&order[from]) && core.contains(&order[to]) { " [color=red]" } else { "" };
        let _ = writeln!(out, "  n{from} -> n{to}{colour};");
    }
    out.push_str("}\n");
    out
}

/// Which task depends on which: an edge leads from a task to one that has to wait for it.
pub fn dependences(inspection: &Inspection) -> String {
    let mut out = String::from("digraph dependences {\n  rankdir=LR;\n  node [shape=box, fontname=\"monospace\"];\n");
    for (runtime, snapshot) in inspection.runtimes.iter().enumerate() {
        let before: HashSet<TaskId> = snapshot.tasks.iter().flat_map(|t| t.predecessors.iter().copied()).collect();
        let tasks = (0..snapshot.tasks.len()).map(TaskId).zip(&snapshot.tasks);
        let drawn: Vec<(TaskId, &Task)> =
            tasks.filter(|(id, t)| before.contains(id) || !t.predecessors.is_empty()).take(TASKS).collect();
        let known: HashSet<TaskId> = drawn.iter().map(|(id, _)| *id).collect();
        for (id, task) in &drawn {
            let code = words::code(&task.function, &task.location).unwrap_or_else(|| task.descriptor.to_string());
            let state = task.state.get().map_or("?", TaskState::word);
            let label = format!("task {}: {code}", id.0);
            let _ = writeln!(out, "  t{runtime}_{} [label=\"{}\\n{state}\"];", id.0, quoted(&label));
        }
        for (id, task) in &drawn {
            for predecessor in task.predecessors.iter().filter(|p| known.contains(p)) {
                let on = shared(snapshot, *predecessor, task);
                let label = if on.is_empty() { String::new() } else { format!(" [label=\"{}\"]", quoted(&on)) };
                let _ = writeln!(out, "  t{runtime}_{} -> t{runtime}_{}{label};", predecessor.0, id.0);
            }
        }
    }
    out.push_str("}\n");
    out
}

/// The storage both tasks name in `depend` clauses.
fn shared(snapshot: &RuntimeSnapshot, predecessor: TaskId, task: &Task) -> String {
    let Some(before) = snapshot.task(predecessor) else { return String::new() };
    let both = task.dependences.iter().filter(|d| before.dependences.iter().any(|b| b.addr == d.addr));
    let names: Vec<String> = both.map(words::dependence).collect();
    names.join(", ")
}
