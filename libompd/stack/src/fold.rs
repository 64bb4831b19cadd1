//! Many stacks as few: those that read the same as one row, all of them as one tree.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::hash::{Hash, Hasher};

use crate::logical::{LogicalFrame, LogicalStack};

/// Threads whose stacks read the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// Index of one of them.
    pub stack: usize,
    /// Indices of all of them, in order.
    pub threads: Vec<usize>,
}

/// True if two frames read the same: where in memory they are matters only where nothing better is known.
pub fn same_reading(one: &LogicalFrame, other: &LogicalFrame) -> bool {
    Reading(one) == Reading(other)
}

/// What two frames have in common that read the same: where in memory they are does not matter.
struct Reading<'s>(&'s LogicalFrame);

impl Reading<'_> {
    fn parts(&self) -> impl Eq + Hash + '_ {
        let frame = self.0;
        // Without a name or line an address is all there is.
        let module = if frame.function.is_none() || frame.line.is_none() { frame.module.as_ref() } else { None };
        let addr = if frame.function.is_none() && frame.module.is_none() { frame.addr } else { None };
        (&frame.function, &frame.construct, &frame.file, frame.line, frame.inlined, frame.via, module, addr)
    }
}

impl PartialEq for Reading<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.parts() == other.parts()
    }
}

impl Eq for Reading<'_> {}

impl Hash for Reading<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.parts().hash(state);
    }
}

/// Puts together the threads whose stacks read the same and that do the same: `doing` says what, in words. In the order of
/// the first of each.
pub fn fold(stacks: &[LogicalStack], doing: impl Fn(usize) -> String) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    let mut known: HashMap<(Vec<Reading<'_>>, String, Option<&str>), usize> = HashMap::new();
    for (index, stack) in stacks.iter().enumerate() {
        let key = (stack.frames.iter().map(Reading).collect(), doing(index), stack.gap.as_deref());
        match known.get(&key) {
            Some(row) => rows[*row].threads.push(index),
            None => {
                known.insert(key, rows.len());
                rows.push(Row { stack: index, threads: vec![index] });
            }
        }
    }
    rows
}

/// A frame in words: the function, or the construct and the function it stands in; then where.
pub fn describe(frame: &LogicalFrame) -> (String, String) {
    let unnamed = match &frame.module {
        Some((module, offset)) => Some(format!("{module}+{offset:#x}")),
        None => frame.addr.map(|addr| addr.to_string()),
    };
    let what = match (&frame.construct, &frame.function, unnamed) {
        (Some(construct), Some(function), _) if construct.called => {
            format!("{function}, called for #pragma omp {}", construct.name)
        }
        (Some(construct), Some(function), _) => format!("#pragma omp {} in {function}", construct.name),
        (Some(construct), None, Some(address)) => format!("#pragma omp {} ({address})", construct.name),
        (Some(construct), None, None) => format!("#pragma omp {}", construct.name),
        (None, Some(function), _) => function.to_string(),
        (None, None, Some(address)) => address,
        (None, None, None) => "?".to_owned(),
    };
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

/// Frames of a tree from its root on; what lies further in is cut. Whoever walks a tree may do so by recursion.
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

/// The tree in the language of Graphviz.
pub fn dot(root: &Node) -> String {
    let quoted = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"").replace(char::is_control, " ");
    let mut out = String::from("digraph stacks {\n  rankdir=LR;\n  node [shape=box, fontname=\"monospace\"];\n");
    let mut open: Vec<(&Node, Option<usize>)> = root.children.iter().rev().map(|child| (child, None)).collect();
    let mut next = 0;
    while let Some((node, parent)) = open.pop() {
        let style = if node.doing { ", style=rounded" } else { "" };
        let count = node.threads.len();
        let threads = if count == 1 { "thread" } else { "threads" };
        let _ = writeln!(out, "  n{next} [label=\"{}\\n{count} {threads}\"{style}];", quoted(&node.label));
        if let Some(parent) = parent {
            let _ = writeln!(out, "  n{parent} -> n{next};");
        }
        open.extend(node.children.iter().rev().map(|child| (child, Some(next))));
        next += 1;
    }
    out.push_str("}\n");
    out
}

#[cfg(test)]
mod tests {
    use ompd_process::Addr;

    use super::same_reading;
    use crate::logical::{LogicalFrame, Via};

    #[test]
    fn frames_without_a_name_are_told_apart_by_their_address() {
        let frame = |addr: u64, module: Option<&str>| LogicalFrame {
            function: None,
            construct: None,
            file: None,
            line: None,
            inlined: false,
            lwp: None,
            addr: Some(Addr(addr)),
            module: module.map(|name| (name.into(), addr)),
            via: Via::Call,
            place: None,
        };
        assert!(same_reading(&frame(1, Some("a")), &frame(1, Some("a"))));
        assert!(!same_reading(&frame(1, Some("a")), &frame(2, Some("a"))));
        assert!(!same_reading(&frame(1, None), &frame(2, None)));
        // A named one is the same wherever it is.
        let named = |addr| LogicalFrame { function: Some("f".into()), line: Some(1), ..frame(addr, Some("a")) };
        assert!(same_reading(&named(1), &named(2)));
    }
}
