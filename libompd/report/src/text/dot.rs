//! Graphs in the language of Graphviz.

use std::fmt::Write as _;

use crate::escape::escape;

/// A text as Graphviz takes it between quotes.
pub fn quoted(text: &str) -> String {
    escape(text).replace('\\', "\\\\").replace('"', "\\\"")
}

/// A tree under construction. A node comes after its parent.
#[derive(Debug)]
pub struct Tree {
    out: String,
    nodes: usize,
}

/// A node of a [`Tree`], for its children to name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NodeId(usize);

impl Tree {
    /// A tree without nodes.
    pub fn new(name: &str) -> Tree {
        let out = format!("digraph {name} {{\n  rankdir=LR;\n  node [shape=box, fontname=\"monospace\"];\n");
        Tree { out, nodes: 0 }
    }

    /// Adds a node with these lines of text. `style` is more attributes of Graphviz, each after a comma.
    pub fn node(&mut self, lines: &[impl AsRef<str>], style: &str) -> NodeId {
        let label: Vec<String> = lines.iter().map(|line| quoted(line.as_ref())).collect();
        // Writing to a String cannot fail.
        let _ = writeln!(self.out, "  n{} [label=\"{}\"{style}];", self.nodes, label.join("\\n"));
        self.nodes += 1;
        NodeId(self.nodes - 1)
    }

    /// Leads an edge from a node to a child, with this text if it is not empty.
    pub fn edge(&mut self, parent: NodeId, child: NodeId, text: &str) {
        let label = if text.is_empty() { String::new() } else { format!(" [label=\"{}\"]", quoted(text)) };
        let _ = writeln!(self.out, "  n{} -> n{}{label};", parent.0, child.0);
    }

    /// The whole graph.
    pub fn finish(self) -> String {
        self.out + "}\n"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edges_have_their_texts() {
        let mut tree = Tree::new("waits");
        let (parent, child) = (tree.node(&["a"], ""), tree.node(&["b", "c"], ", style=bold"));
        tree.edge(parent, child, "for \"x\"");
        let graph = tree.finish();
        assert!(graph.contains(r#"n1 [label="b\nc", style=bold];"#), "{graph}");
        assert!(graph.ends_with("  n0 -> n1 [label=\"for \\\"x\\\"\"];\n}\n"), "{graph}");
    }
}
