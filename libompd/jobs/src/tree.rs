//! The stacks of all ranks as one tree: where ranks part, and which go where.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use ompd_report::escape::escape;
use ompd_report::short;
use ompd_report::text::dot::{self, NodeId};
use ompd_report::text::{HEADING, Page};

use crate::merged::{Frames, Members, Merged, Process};
use crate::plain::cut;
use crate::ranks::RankSet;
use crate::words::{self, counted};

/// Branches of a text and of a picture.
const BRANCHES: usize = 200;
/// Branches at one place; of more the smallest and largest are shown.
const FAN: usize = 12;
/// Of these, the largest.
const LARGEST: usize = 3;
/// Frames of one branch; of more the first and last are shown.
const FRAMES: usize = 8;
/// Letters of a frame.
const LETTERS: usize = 160;
/// Frames of a stack that are looked at.
const DEPTH: usize = 256;

/// Frames that lie on the same stacks, and what lies further in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Branch {
    pub(crate) what: What,
    /// The processes whose stacks pass here. `threads` is set if one stack alone does.
    pub(crate) members: Members,
    /// Ordered by the number of processes.
    pub(crate) children: Vec<Branch>,
}

/// What a branch stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum What {
    /// Frames, outermost first.
    Frames(Vec<String>),
    /// Stacks that end where the others continue.
    Here,
    /// So many branches that are not shown.
    More(usize),
}

impl Branch {
    /// The frames in words, safe to print; of many the first and last.
    pub(crate) fn lines(&self) -> Vec<String> {
        let frames = match &self.what {
            What::Here => return vec!["(innermost frame)".to_owned()],
            What::More(count) => return vec![format!("… {}", counted(*count as u64, "more branch"))],
            What::Frames(frames) if frames.is_empty() => return vec!["(no stack)".to_owned()],
            What::Frames(frames) => frames,
        };
        let line = |frame: &String| {
            let (function, place) = frame.split_once("  ").unwrap_or((frame, ""));
            cut(&escape(format!("{} {place}", short::name(function)).trim_end()), LETTERS)
        };
        match frames.len().checked_sub(FRAMES).filter(|hidden| *hidden > 1) {
            Some(hidden) => {
                let (first, rest) = frames.split_at(FRAMES / 2);
                let more = format!("… {}", counted(hidden as u64, "more frame"));
                first.iter().map(line).chain([more]).chain(rest[hidden..].iter().map(line)).collect()
            }
            None => frames.iter().map(line).collect(),
        }
    }

    /// `4,095 ranks (0-4,6-4095), 1-7 threads each`.
    pub(crate) fn who(&self) -> String {
        let who = words::short(&self.members);
        match self.members.threads {
            Some((least, most)) => {
                let each = if self.members.len() == 1 { "" } else { " each" };
                let range = if least == most { String::new() } else { format!("{least}-") };
                format!("{who}, {range}{}{each}", counted(most, "thread"))
            }
            None => who,
        }
    }
}

/// The tree; no more than about `most` branches of it.
pub(crate) fn tree(merged: &Merged, most: usize) -> Vec<Branch> {
    let stacks: Vec<(&[String], &Members)> = merged
        .stacks
        .iter()
        .map(|(Frames { frames }, members)| (&frames[..frames.len().min(DEPTH)], members))
        .collect();
    let mut roots = branches(&stacks, 0);
    prune(&mut roots, most);
    roots
}

/// Branches of stacks that have their first `depth` frames in common. The stacks are in ascending order.
fn branches(stacks: &[(&[String], &Members)], depth: usize) -> Vec<Branch> {
    let mut all = Vec::new();
    for group in stacks.chunk_by(|(one, _), (other, _)| one.get(depth) == other.get(depth)) {
        let ([(first, members), ..], [.., (last, _)]) = (group, group) else { continue };
        let common = first[depth..].iter().zip(&last[depth..]).take_while(|(one, other)| one == other).count();
        let end = depth + common;
        let what = match first.get(depth) {
            None if depth > 0 => What::Here,
            _ => What::Frames(first[depth..end].to_vec()),
        };
        let mut branch = Branch { what, members: (*members).clone(), children: Vec::new() };
        if group.iter().any(|(frames, _)| frames.len() > end) {
            branch.children = branches(group, end);
            branch.members = union(&branch.children);
        } else {
            group[1..].iter().for_each(|(_, members)| branch.members.unite((*members).clone()));
        }
        all.push(branch);
    }
    // Stable: those of one size stay in the order of their frames.
    all.sort_by_cached_key(|branch| branch.members.len());
    all
}

/// The processes of several branches, without their threads: a process may be in several.
fn union(branches: &[Branch]) -> Members {
    let mut all = Members::default();
    branches.iter().for_each(|branch| all.unite(branch.members.clone()));
    all.threads = None;
    all
}

/// Replaces branches by their number where there are too many: those that lie far in first.
fn prune(roots: &mut Vec<Branch>, most: usize) {
    let mut left = most;
    let mut open = VecDeque::from([roots]);
    while let Some(list) = open.pop_front() {
        let fits = left.min(FAN);
        if list.len() > fits {
            let largest = if fits == FAN { LARGEST } else { 0 };
            let smallest = fits - largest;
            let hidden: Vec<Branch> = list.drain(smallest..list.len() - largest).collect();
            let more = Branch { what: What::More(hidden.len()), members: union(&hidden), children: Vec::new() };
            list.insert(smallest, more);
        }
        left = left.saturating_sub(list.len());
        open.extend(list.iter_mut().map(|branch| &mut branch.children));
    }
}

/// The tree as text: a line for each branch, frames from the outermost on. `width`: columns of the terminal, if it is for one.
pub fn text(merged: &Merged, width: Option<u16>) -> String {
    let mut page = Page::empty(width);
    crate::text::head(&mut page, merged);
    page.blank();
    let tree = tree(merged, BRANCHES);
    let mut open: Vec<(&Branch, usize)> = tree.iter().rev().map(|branch| (branch, 0)).collect();
    while let Some((branch, depth)) = open.pop() {
        let indent = 2 * depth.min(20);
        let (who, frames) = (format!("{}: ", branch.who()), branch.lines().join(" > "));
        // What does not fit on one line is broken as the frames are.
        let first = frames.split(' ').next().unwrap_or_default();
        match width.is_some_and(|width| indent + who.chars().count() + first.chars().count() > width.into()) {
            true => page.wrapped(&" ".repeat(indent), HEADING, &(who + &frames), indent + 4),
            false => page.wrapped(&format!("{:indent$}{who}", ""), HEADING, &frames, indent + 4),
        }
        open.extend(branch.children.iter().rev().map(|child| (child, depth + 1)));
    }
    page.finish()
}

/// The tree in the language of Graphviz: a box for each branch, ranks at the edges. Boxes of the same ranks have the same colour.
pub fn dot(merged: &Merged) -> String {
    let mut drawing = dot::Tree::new("ranks");
    let tree = tree(merged, BRANCHES);
    let mut colours = Colours::default();
    let root = drawing.node(&[crate::text::title(merged)], ", style=rounded");
    let mut open: Vec<(&Branch, NodeId)> = tree.iter().rev().map(|branch| (branch, root)).collect();
    while let Some((branch, parent)) = open.pop() {
        let style = format!(", style=filled, fillcolor=\"{}\"", colours.of(&branch.members));
        let id = drawing.node(&branch.lines(), &style);
        drawing.edge(parent, id, &branch.who());
        open.extend(branch.children.iter().rev().map(|child| (child, id)));
    }
    drawing.finish()
}

/// Colours by sets of processes.
#[derive(Default)]
struct Colours<'m> {
    known: BTreeMap<(&'m BTreeMap<String, RankSet>, &'m BTreeSet<Process>), usize>,
}

impl<'m> Colours<'m> {
    /// Light, so that black text can be read on them.
    const ALL: [&'static str; 12] = [
        "#a6cee3", "#b2df8a", "#fdbf6f", "#fb9a99", "#cab2d6", "#ffff99", "#8dd3c7", "#fccde5", "#d9d9d9", "#ccebc5",
        "#e5c494", "#ffffff",
    ];

    fn of(&mut self, members: &'m Members) -> &'static str {
        let next = self.known.len();
        let number = *self.known.entry((&members.ranks, &members.others)).or_insert(next);
        Self::ALL[number % Self::ALL.len()]
    }
}
