//! All stacks as one tree, and the tree in the formats of other programs.

use std::collections::HashMap;
use std::fmt::Write as _;

use ompd_stack::{Language, LogicalFrame, LogicalStack};

use super::dot;

/// A frame in words: the function, or the construct and the function it stands in; then where.
pub fn describe(frame: &LogicalFrame) -> (String, String) {
    let unnamed = match &frame.module {
        Some((module, offset)) => Some(format!("{module}+{offset:#x}")),
        None => frame.addr.map(|addr| addr.to_string()),
    };
    let what = match (&frame.construct, &frame.function, unnamed) {
        (Some(construct), Some(function), _) if construct.called => {
            format!("{function}, called for #pragma omp {}", construct.name.word())
        }
        (Some(construct), Some(function), _) => format!("#pragma omp {} in {function}", construct.name.word()),
        (Some(construct), None, Some(address)) => format!("#pragma omp {} ({address})", construct.name.word()),
        (Some(construct), None, None) => format!("#pragma omp {}", construct.name.word()),
        (None, Some(function), _) => function.to_string(),
        (None, None, Some(address)) => address,
        (None, None, None) => "?".to_owned(),
    };
    if frame.language == Language::Python {
        return (what, python_place(frame));
    }
    let base = |file: &str| file.rsplit('/').next().unwrap_or(file).to_owned();
    let construct = frame.construct.as_ref().and_then(|c| Some((base(c.file.as_deref()?), c.line?, c.begins)));
    let here = frame.file.as_deref().map(base).zip(frame.line);
    let place = match (here, construct) {
        (Some((file, line)), Some((_, from, true))) if line != from => format!("{file}:{line} (from line {from})"),
        (Some((file, line)), Some((_, at, false))) if line != at => format!("{file}:{line} (directive: line {at})"),
        (Some((file, line)), _) | (None, Some((file, line, _))) => format!("{file}:{line}"),
        (None, None) => String::new(),
    };
    (what, place)
}

/// Where a Python function is: the file of an installed package with the path in it, since many are called `base.py`.
fn python_place(frame: &LogicalFrame) -> String {
    let Some(file) = frame.file.as_deref() else { return String::new() };
    let installed = ["/site-packages/", "/dist-packages/"].iter().find_map(|folder| file.rsplit_once(folder));
    let short = installed.map_or_else(|| file.rsplit('/').next().unwrap_or(file), |(_, path)| path);
    let line = frame.line.map(|line| format!(":{line}")).unwrap_or_default();
    // The name of a module says what it is; that of compiled text does not.
    let language = if short.ends_with(".py") { "" } else { ", Python" };
    format!("{short}{line}{language}")
}

/// One frame of a tree of stacks, outermost frames at the root.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Node {
    /// The frame in words, or what the threads do there.
    pub label: String,
    /// True if `label` says what threads do, and not where they are.
    pub doing: bool,
    /// Indices of the stacks that pass here.
    pub threads: Vec<usize>,
    /// What lies further in.
    pub children: Vec<Node>,
}

/// All stacks as one tree. `doing` says what a thread does at the innermost place of its stack; those it says nothing of are
/// left out.
pub fn tree(stacks: &[LogicalStack], doing: impl Fn(usize) -> Option<String>) -> Node {
    // A flat list with indices: stacks may be deeper than this program's own.
    struct Flat {
        label: String,
        doing: bool,
        threads: Vec<usize>,
        children: Vec<usize>,
    }
    let mut nodes = vec![Flat { label: String::new(), doing: false, threads: Vec::new(), children: Vec::new() }];
    let mut known: HashMap<(usize, String), usize> = HashMap::new();
    for (index, stack) in stacks.iter().enumerate() {
        let Some(at_end) = doing(index) else { continue };
        let mut at = 0;
        nodes[0].threads.push(index);
        let frames = stack.frames.iter().rev().take(MAX_DEPTH).map(|frame| {
            let (what, place) = describe(frame);
            (if place.is_empty() { what } else { format!("{what} {place}") }, false)
        });
        let beyond = (stack.frames.len() > MAX_DEPTH).then(|| ("(deeper)".to_owned(), true));
        for (label, doing) in frames.chain(beyond).chain([(at_end, true)]) {
            let next = nodes.len();
            let child = *known.entry((at, label.clone())).or_insert(next);
            if child == next {
                nodes.push(Flat { label, doing, threads: Vec::new(), children: Vec::new() });
                nodes[at].children.push(child);
            }
            nodes[child].threads.push(index);
            at = child;
        }
    }
    // Children come after their parents in the list: from its end on, each is complete when it is taken.
    let mut made: Vec<Option<Node>> = Vec::new();
    made.resize_with(nodes.len(), || None);
    for index in (0..nodes.len()).rev() {
        let flat = &mut nodes[index];
        let children = flat.children.iter().filter_map(|child| made[*child].take()).collect();
        made[index] = Some(Node {
            label: std::mem::take(&mut flat.label),
            doing: flat.doing,
            threads: std::mem::take(&mut flat.threads),
            children,
        });
    }
    made.into_iter().next().flatten().unwrap_or_default()
}

/// Most frames between the root of a tree and a leaf. Frames further in are cut, so that a walk may be recursive.
pub const MAX_DEPTH: usize = 256;

/// One line for each way through the tree, frames separated by semicolons, and the number of threads: the format flame graph
/// tools read.
pub fn folded(root: &Node) -> String {
    let mut out = String::new();
    let mut open: Vec<(&Node, String)> = root.children.iter().rev().map(|child| (child, String::new())).collect();
    while let Some((node, path)) = open.pop() {
        // A semicolon would end the frame, a line end the whole line.
        let label: String = node.label.chars().map(|c| if c == ';' || c.is_control() { ',' } else { c }).collect();
        let path = if path.is_empty() { label } else { format!("{path};{label}") };
        let further: usize = node.children.iter().map(|child| child.threads.len()).sum();
        let here = node.threads.len() - further.min(node.threads.len());
        if here > 0 {
            let _ = writeln!(out, "{path} {here}");
        }
        open.extend(node.children.iter().rev().map(|child| (child, path.clone())));
    }
    out
}

/// The tree in the language of Graphviz, safe to print.
pub fn dot(root: &Node) -> String {
    let mut tree = dot::Tree::new("stacks");
    let mut open: Vec<(&Node, Option<dot::NodeId>)> = root.children.iter().rev().map(|child| (child, None)).collect();
    while let Some((node, parent)) = open.pop() {
        let style = if node.doing { ", style=rounded" } else { "" };
        let threads = crate::words::count(node.threads.len(), "thread");
        let id = tree.node(&[&node.label, &threads], style);
        if let Some(parent) = parent {
            tree.edge(parent, id, "");
        }
        open.extend(node.children.iter().rev().map(|child| (child, Some(id))));
    }
    tree.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Node {
        let node = |label: &str, doing, threads: usize, children| Node {
            label: label.to_owned(),
            doing,
            threads: (0..threads).collect(),
            children,
        };
        let waits = node("waits; here\n", true, 2, Vec::new());
        let main = node("main", false, 3, vec![waits, node("solve \"x\"", false, 1, Vec::new())]);
        node("", false, 5, vec![main, node("start", false, 2, Vec::new())])
    }

    #[test]
    fn folded_stacks_count_threads_where_their_stacks_end() {
        assert_eq!(folded(&sample()), "main;waits, here, 2\nmain;solve \"x\" 1\nstart 2\n");
        let mut partly = sample();
        partly.children[0].children.pop();
        assert_eq!(folded(&partly), "main 1\nmain;waits, here, 2\nstart 2\n");
    }

    #[test]
    fn graph_has_a_node_for_each_frame_and_an_edge_from_its_caller() {
        let nodes = [
            r#"  n0 [label="main\n3 threads"];"#,
            r#"  n1 [label="waits; here\\n\n2 threads", style=rounded];"#,
            "  n0 -> n1;",
            r#"  n2 [label="solve \"x\"\n1 thread"];"#,
            "  n0 -> n2;",
            r#"  n3 [label="start\n2 threads"];"#,
        ];
        let head = "digraph stacks {\n  rankdir=LR;\n  node [shape=box, fontname=\"monospace\"];\n";
        assert_eq!(dot(&sample()), format!("{head}{}\n}}\n", nodes.join("\n")));
    }
}
