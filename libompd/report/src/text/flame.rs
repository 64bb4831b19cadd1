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

#[cfg(test)]
mod tests {
    use super::*;

    fn node(label: &str, threads: usize, doing: bool, children: Vec<Node>) -> Node {
        Node { label: label.to_owned(), doing, threads: (0..threads).collect(), children }
    }

    /// Of each box its title, text and colour, and its left edge, top and width.
    fn boxes(root: &Node) -> Vec<(String, String, String, [f64; 3])> {
        let drawn = draw(root);
        let all = drawn.split("<g>").skip(1).map(|group| {
            let element = |name: &str| {
                let (_, rest) = group.split_once(&format!("<{name}"))?;
                let (attributes, rest) = rest.split_once('>')?;
                Some((attributes, rest.split('<').next()?.trim()))
            };
            let attribute = |name: &str, key: &str| {
                let (_, rest) = element(name)?.0.split_once(&format!(" {key}=\""))?;
                rest.split('"').next()
            };
            let number = |name: &str, key: &str| attribute(name, key)?.parse::<f64>().ok();
            let place = ["x", "y", "width"].map(|key| number("rect", key).expect("a number"));
            let text = ["x", "y"].map(|key| number("text", key).expect("a number"));
            assert_eq!(text, [place[0] + 3.0, place[1] + 12.0], "the text is in its box: {group}");
            assert_eq!(number("rect", "height"), Some(17.0));
            let content = |name: &str| element(name).map_or("", |(_, content)| content).to_owned();
            (content("title"), content("text"), attribute("rect", "fill").unwrap_or("").to_owned(), place)
        });
        all.collect()
    }

    #[test]
    fn boxes_are_as_wide_as_their_threads_and_above_their_callers() {
        let waits = node("waits", 2, true, Vec::new());
        let main = node("main", 3, false, vec![node("solve", 1, false, Vec::new()), waits]);
        let root = node("", 4, false, vec![main, node("start", 1, false, Vec::new())]);
        let drawn = boxes(&root);
        let expected = [
            ("main: 3 threads", "main", "#f0c080", [0.0, 36.0, 900.0]),
            ("solve: 1 thread", "solve", "#f0c080", [0.0, 18.0, 300.0]),
            ("start: 1 thread", "start", "#f0c080", [900.0, 36.0, 300.0]),
            ("waits: 2 threads", "waits", "#c8d8e8", [300.0, 18.0, 600.0]),
        ];
        let mut sorted: Vec<_> =
            drawn.iter().map(|(a, b, c, place)| (a.as_str(), b.as_str(), c.as_str(), *place)).collect();
        sorted.sort_by_key(|(title, ..)| *title);
        assert_eq!(sorted, expected);
        assert!(draw(&root).contains("viewBox=\"0 0 1200 54\""), "two rows of boxes, and one that is empty");
        assert!(draw(&root).ends_with("</svg>\n"));
    }

    #[test]
    fn texts_that_do_not_fit_are_cut_or_left_out() {
        let of = |label: &str, threads| {
            let root = node("", threads, false, vec![node(label, 1, false, Vec::new())]);
            boxes(&root).into_iter().map(|(title, text, ..)| (title, text)).next()
        };
        // 30 pixels have room for four characters, and 24 for three.
        assert_eq!(of("main", 40), Some(("main: 1 thread".to_owned(), "main".to_owned())));
        assert_eq!(of("solve", 40), Some(("solve: 1 thread".to_owned(), "sol…".to_owned())));
        assert_eq!(of("run", 50), Some(("run: 1 thread".to_owned(), "run".to_owned())));
        assert_eq!(of("main", 50), Some(("main: 1 thread".to_owned(), String::new())));
        // A box of 0.3 pixels is drawn, and a narrower one is not.
        assert!(of("main", 4000).is_some() && of("main", 4001).is_none());
        assert_eq!(boxes(&node("", 0, false, Vec::new())), []);
    }
}
