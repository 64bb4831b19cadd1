//! The tree of all stacks as a flame graph: a box for each frame, with its callees above it. Its width is the number of threads
//! that pass through it.

use super::tree::Node;
use svg::Document;
use svg::node::element::{Group, Rectangle, Text, Title};

use crate::escape::escape;

/// In pixels.
const WIDTH: f64 = 1200.0;
/// Of one row of boxes, in pixels.
const HEIGHT: f64 = 18.0;
/// Of one character of the text, in pixels, about.
const CHARACTER: f64 = 6.6;
/// Narrower boxes cannot be seen, in pixels.
const LEAST: f64 = 0.3;

/// Draws the tree.
pub fn draw(root: &Node) -> String {
    let all = root.threads.len().max(1) as f64;
    let rows = depth(root);
    let height = HEIGHT * (rows + 1) as f64;
    let mut document = Document::new()
        .set("viewBox", (0.0, 0.0, WIDTH, height))
        .set("width", WIDTH)
        .set("height", height)
        .set("font-family", "monospace")
        .set("font-size", 11);
    let mut open: Vec<(&Node, f64, usize)> = Vec::new();
    let mut left = 0.0;
    for child in &root.children {
        open.push((child, left, 0));
        left += WIDTH * child.threads.len() as f64 / all;
    }
    while let Some((node, left, row)) = open.pop() {
        let width = WIDTH * node.threads.len() as f64 / all;
        if width < LEAST {
            continue;
        }
        let top = height - HEIGHT * (row + 1) as f64;
        document = document.add(frame(node, left, top, width));
        let mut inner = left;
        for child in &node.children {
            open.push((child, inner, row + 1));
            inner += WIDTH * child.threads.len() as f64 / all;
        }
    }
    document.to_string() + "\n"
}

fn frame(node: &Node, left: f64, top: f64, width: f64) -> Group {
    let label = escape(&node.label);
    let threads = crate::words::count(node.threads.len(), "thread");
    let fits = (width / CHARACTER) as usize;
    let shown: String = match label.chars().count() {
        length if length <= fits => label.clone(),
        _ if fits < 4 => String::new(),
        _ => label.chars().take(fits - 1).chain(['…']).collect(),
    };
    let color = if node.doing { "#c8d8e8" } else { "#f0c080" };
    Group::new()
        .add(Title::new(format!("{label}: {threads}")))
        .add(
            Rectangle::new()
                .set("x", left)
                .set("y", top)
                .set("width", width)
                .set("height", HEIGHT - 1.0)
                .set("fill", color)
                .set("stroke", "white"),
        )
        .add(Text::new(shown).set("x", left + 3.0).set("y", top + HEIGHT - 6.0))
}

/// Rows of boxes.
fn depth(root: &Node) -> usize {
    let mut deepest = 0;
    let mut open = vec![(root, 0)];
    while let Some((node, depth)) = open.pop() {
        deepest = deepest.max(depth);
        open.extend(node.children.iter().map(|child| (child, depth + 1)));
    }
    deepest
}
