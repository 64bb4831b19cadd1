//! Stacks as their source reads, threads that read the same in one row.

use std::sync::Arc;

use ompd_runtime::model::*;
use ompd_stack::fold::{self, Row};
use ompd_stack::{FrameVariables, LogicalFrame, LogicalStack, Via};

use super::tree::{self, Node, describe};
use super::{FAINT, Graph, HEADING, Page, flame};
use crate::escape::escape;
use crate::{short, words};
use ompd_inspection::Inspection;

/// Frames of one stack that are shown before the middle is cut, without `-v`.
const SHOWN: usize = 60;

/// One row for all threads that read the same, or one for each thread.
pub fn render(page: &mut Page, inspection: &Inspection, all: bool) {
    let (rows, doing) = rows(page, inspection, all);
    for row in &rows {
        page.blank();
        let stack = &inspection.stacks.logical[row.stack];
        title(page, inspection, row, &doing[row.stack]);
        if !stack.idle {
            let variables = inspection.locals.as_ref().and_then(|all| all.get(row.stack));
            frames(page, stack, variables.map(Vec::as_slice));
        }
    }
    without_lines(page, inspection);
    super::python::below_stacks(page, inspection);
}

/// The rows in the order in which they are shown, and what each thread does.
fn rows(page: &Page, inspection: &Inspection, all: bool) -> (Vec<Row>, Vec<String>) {
    let stacks = &inspection.stacks.logical;
    let doing: Vec<String> = stacks.iter().map(|stack| doing(page, inspection, stack)).collect();
    let mut rows: Vec<Row> = if all {
        (0..stacks.len()).map(|index| Row { stack: index, threads: vec![index] }).collect()
    } else {
        fold::fold(stacks, |index| doing[index].clone())
    };
    let idle = |row: &Row| stacks[row.stack].idle;
    // Those that do something first: what the others wait for is among them.
    let waits = |row: &Row| is_waiting(inspection, stacks[row.stack].lwp);
    rows.sort_by_key(|row| (idle(row), waits(row)));
    (rows, doing)
}

/// Threads that read the same.
pub(crate) struct Alike {
    /// Their kernel ids.
    pub(crate) lwps: Vec<i32>,
    /// What they do, in a few words.
    pub(crate) doing: String,
    /// A line for each frame, innermost first.
    pub(crate) frames: String,
}

/// All threads, in the order in which `stacks` shows them.
pub(crate) fn alike(page: &Page, inspection: &Inspection) -> Vec<Alike> {
    let stacks = &inspection.stacks.logical;
    let (rows, doing) = rows(page, inspection, false);
    let alike = rows.into_iter().map(|row| {
        let mut lines = Page::empty(Some(page.width));
        frames(&mut lines, &stacks[row.stack], None);
        Alike {
            lwps: row.threads.iter().map(|index| stacks[*index].lwp).collect(),
            doing: doing[row.stack].clone(),
            frames: super::plain(&lines.finish()),
        }
    });
    alike.collect()
}

/// The stack of one thread.
pub fn of_thread(page: &mut Page, inspection: &Inspection, lwp: i32) {
    let Some(index) = inspection.stacks.logical.iter().position(|stack| stack.lwp == lwp) else {
        return page.line(format_args!("{}: no stack is known", page.thread(lwp)));
    };
    let stack = &inspection.stacks.logical[index];
    let doing = doing(page, inspection, stack);
    title(page, inspection, &Row { stack: index, threads: vec![index] }, &doing);
    frames(page, stack, None);
    without_lines(page, inspection);
}

/// Why some frames have no source lines.
fn without_lines(page: &mut Page, inspection: &Inspection) {
    if inspection.stacks.without_lines.is_empty() {
        return;
    }
    page.blank();
    for (file, why) in &inspection.stacks.without_lines {
        page.wrapped(&format!("No source lines of {}: ", escape(file)), FAINT, &escape(why), 4);
    }
}

/// What a thread does, in a few words: as the runtimes tell, else as its stack tells.
pub fn doing(page: &Page, inspection: &Inspection, stack: &LogicalStack) -> String {
    if stack.frames.iter().any(|frame| frame.via == Via::Signal && frame.lwp.is_none_or(|lwp| lwp == stack.lwp)) {
        return format!("{}, in a signal handler", page.running(stack.lwp));
    }
    let known = inspection.runtimes.iter().filter_map(|r| r.thread_by_lwp(stack.lwp));
    let mut by_runtime: Vec<&Thread> = known.collect();
    // Of several runtimes the one it waits in says what it does.
    by_runtime.sort_by_key(|thread| match &thread.wait {
        Fact::Known { value: Some(wait), .. } => u8::from(wait.kind == WaitKind::Pool) * 2,
        Fact::Known { value: None, .. } => 3,
        Fact::Unknown { .. } => 1,
    });
    let call = stack.in_call.as_ref();
    match by_runtime.first() {
        Some(thread) => {
            let text = match (&thread.wait, call) {
                (Fact::Unknown { .. }, Some(call)) => match (&call.construct, &call.function) {
                    (Some(construct), Some(function)) => format!("in {} ({})", construct.word(), escape(function)),
                    (_, Some(function)) => format!("in {}", escape(function)),
                    _ => "in the runtime".to_owned(),
                },
                (Fact::Unknown { why }, None) if stack.frames.is_empty() => {
                    format!("unknown: {}", escape(&why.to_string()))
                }
                (Fact::Unknown { .. }, None) => page.running(stack.lwp),
                (Fact::Known { value: None, .. }, _) => {
                    thread.in_runtime.map_or_else(|| page.running(stack.lwp), words::in_runtime)
                }
                _ => return page.doing(thread),
            };
            super::with_device(thread, text)
        }
        None => page.running(stack.lwp),
    }
}

/// The function in which a thread is, of those whose source is known, without the line: many threads of a team are in one
/// function.
pub fn innermost(stack: &LogicalStack) -> Option<(i32, String)> {
    let frame = stack.frames.iter().find(|frame| frame.lwp == Some(stack.lwp) && frame.line.is_some())?;
    Some((stack.lwp, escape(&short::name(&describe(frame).0))))
}

fn is_waiting(inspection: &Inspection, lwp: i32) -> bool {
    let mut known = inspection.runtimes.iter().filter_map(|r| r.thread_by_lwp(lwp));
    known.any(|thread| matches!(thread.wait, Fact::Known { value: Some(_), .. }))
}

fn title(page: &mut Page, inspection: &Inspection, row: &Row, doing: &str) {
    let stacks = &inspection.stacks.logical;
    let lwps: Vec<i32> = row.threads.iter().map(|index| stacks[*index].lwp).collect();
    let who = match lwps.as_slice() {
        [one] => page.thread(*one),
        many => words::count(many.len(), "thread"),
    };
    let members = members(inspection, &lwps);
    let lead = if members.is_empty() { format!("{who}  ") } else { format!("{who}  {members}  ") };
    page.wrapped(&lead, HEADING, doing, 4);
    if page.verbose && lwps.len() > 1 {
        let numbers: Vec<u32> = lwps.iter().filter_map(|lwp| u32::try_from(*lwp).ok()).collect();
        page.wrapped("    LWP ", FAINT, &words::ranges(&numbers).replace(',', ", "), 8);
    }
}

/// Which members of which teams threads are: `team 0: 1-7`.
fn members(inspection: &Inspection, lwps: &[i32]) -> String {
    const NAMED: usize = 3;
    let mut parts = Vec::new();
    let several = inspection.runtimes.len() > 1;
    for (runtime, snapshot) in inspection.runtimes.iter().enumerate() {
        let wanted: std::collections::HashSet<i32> = lwps.iter().copied().collect();
        let mut teams: std::collections::BTreeMap<usize, Vec<u32>> = std::collections::BTreeMap::new();
        for thread in snapshot.threads.iter().filter(|t| t.lwp.is_some_and(|lwp| wanted.contains(&lwp))) {
            if let (Some(team), Some(number)) = (thread.team.flat(), thread.thread_num.get()) {
                teams.entry(team.0).or_default().push(number);
            }
        }
        for (team, mut numbers) in teams {
            numbers.sort_unstable();
            let of = if several { format!(" of runtime {runtime}") } else { String::new() };
            parts.push(format!("team {team}{of}: {}", words::ranges(&numbers)));
        }
    }
    let more = parts.len().saturating_sub(NAMED);
    parts.truncate(NAMED);
    let more = if more > 0 { format!("; and {}", words::count(more, "more team")) } else { String::new() };
    if parts.is_empty() { String::new() } else { format!("({}{more})", parts.join("; ")) }
}

fn frames(page: &mut Page, stack: &LogicalStack, variables: Option<&[Arc<FrameVariables>]>) {
    let lines = match variables {
        // Each has its own.
        Some(_) => (0..stack.frames.len()).map(Line::Frame).collect(),
        None => fold_repeats(&stack.frames),
    };
    let hidden = if page.verbose || lines.len() <= SHOWN { 0..0 } else { SHOWN * 3 / 4..lines.len() - SHOWN / 4 };
    let shown = lines.iter().enumerate().filter(|(index, _)| !hidden.contains(index));
    let described: Vec<(usize, String, String)> = shown
        .map(|(index, line)| match line {
            Line::Frame(frame) => {
                let frame = &stack.frames[*frame];
                let (whole, place) = describe(frame);
                let what = if page.verbose { whole } else { short::name(&whole) };
                (index, mark(frame, stack) + &escape(&what), escape(&place))
            }
            Line::Repeats(times, length) => {
                let what = format!("… {} more of {}", words::count(*times, "time"), words::count(*length, "frame"));
                (index, what, String::new())
            }
        })
        .collect();
    let wide = described.iter().map(|(_, what, _)| what.chars().count()).max().unwrap_or(0);
    // Long C++ names must not push the lines out of sight.
    let places = described.iter().map(|(_, _, place)| place.chars().count()).max().unwrap_or(0);
    let wide = wide.min(usize::from(page.width).saturating_sub(places + 6).max(24));
    let mut cut = false;
    for (index, what, place) in described {
        if !hidden.is_empty() && index >= hidden.end && !cut {
            page.line(format_args!("    … {} more (-v shows all)", words::count(hidden.len(), "frame")));
            cut = true;
        }
        let length = what.chars().count();
        if place.is_empty() {
            page.line(format_args!("    {what}"));
        } else if length > wide {
            page.line(format_args!("    {what}"));
            page.line(format_args!("    {:wide$}  {place}", ""));
        } else {
            page.line(format_args!("    {what:wide$}  {place}"));
        }
        let Some(Line::Frame(frame)) = lines.get(index) else { continue };
        if page.verbose {
            detail(page, &stack.frames[*frame]);
        }
        if let Some(variables) = variables.and_then(|all| all.get(*frame)) {
            show_variables(page, variables, stack.frames[*frame].line.is_some());
        }
    }
    if let Some(gap) = &stack.gap {
        page.wrapped("    ? ", FAINT, &escape(gap), 6);
    }
}

/// How a frame relates to the one before, where it is not a call.
fn mark(frame: &LogicalFrame, _stack: &LogicalStack) -> String {
    match frame.via {
        Via::Signal => "(interrupted by a signal) ".to_owned(),
        Via::Generated => "(generated by) ".to_owned(),
        Via::Around => "(generated in) ".to_owned(),
        Via::Call | Via::Region => String::new(),
    }
}

/// Where a frame is in memory.
fn detail(page: &mut Page, frame: &LogicalFrame) {
    let thread = match frame.lwp {
        Some(lwp) => format!("on {}", page.thread(lwp)),
        None => "on no stack".to_owned(),
    };
    let addr = frame.addr.map(|addr| format!(", {addr}")).unwrap_or_default();
    let module = frame.module.as_ref().map(|(m, at)| format!(", {}+{at:#x}", escape(m))).unwrap_or_default();
    let file = frame.file.as_deref().map(|file| format!(", {}", escape(file))).unwrap_or_default();
    let inlined = if frame.inlined { ", inlined" } else { "" };
    page.wrapped("        ", FAINT, &format!("{thread}{addr}{module}{file}{inlined}"), 10);
}

/// The variables of a frame; `has_line` says that its source line is known.
fn show_variables(page: &mut Page, frame: &FrameVariables, has_line: bool) {
    for variable in &frame.variables {
        let (name, of) = (escape(&variable.name), escape(&variable.type_name));
        let mut text = match &variable.value {
            Ok(value) => format!("{name}: {of} = {}", escape(value)),
            Err(why) => format!("{name}: {of}, no value: {}", escape(why)),
        };
        let shared = variable.shared.map(|shared| if shared { "shared" } else { "private" }.to_owned());
        let marks: Vec<String> = shared.into_iter().chain(variable.note.as_deref().map(escape)).collect();
        if !marks.is_empty() {
            text.push_str(&format!(" ({})", marks.join("; ")));
        }
        page.wrapped("        ", FAINT, &text, 12);
    }
    // Of functions without source lines nobody expects any.
    if let Some(why) = frame.missing.as_ref().filter(|_| has_line || page.verbose) {
        page.wrapped("        ", FAINT, &format!("(variables: {})", escape(why)), 12);
    }
}

enum Line {
    /// The frame with this index.
    Frame(usize),
    /// The frames before come again so many times, so many frames each.
    Repeats(usize, usize),
}

/// Recursion: frames that come again and again are shown once.
fn fold_repeats(frames: &[LogicalFrame]) -> Vec<Line> {
    /// Functions that call each other in turn.
    const LONGEST: usize = 8;
    /// Fewer repetitions are shown as they are.
    const LEAST: usize = 4;
    let mut lines = Vec::new();
    let mut at = 0;
    while at < frames.len() {
        let repeats = |length: usize| {
            let more = (at + length..frames.len())
                .take_while(|i| fold::same_reading(&frames[*i], &frames[*i - length]))
                .count();
            more / length
        };
        let best =
            (1..=LONGEST.min(frames.len() - at)).map(|length| (repeats(length), length)).find(|(n, _)| *n >= LEAST);
        match best {
            Some((times, length)) => {
                lines.extend((at..at + length).map(Line::Frame));
                lines.push(Line::Repeats(times, length));
                at += length * (times + 1);
            }
            None => {
                lines.push(Line::Frame(at));
                at += 1;
            }
        }
    }
    lines
}

/// All stacks as one tree, outermost frames first.
pub fn render_tree(page: &mut Page, inspection: &Inspection) {
    let root = tree(page, inspection, true);
    page.blank();
    let mut open: Vec<(&Node, usize)> = root.children.iter().rev().map(|node| (node, 0)).collect();
    while let Some((node, depth)) = open.pop() {
        // A chain without branches keeps its indentation: only where stacks part does it grow.
        let lead = format!("{}{:>5}  ", "  ".repeat(depth.min(40)), node.threads.len());
        let hang = lead.chars().count();
        let mut text = escape(&node.label);
        if node.doing {
            let lwps: Vec<i32> = node.threads.iter().map(|i| inspection.stacks.logical[*i].lwp).collect();
            let members = members(inspection, &lwps);
            text = if members.is_empty() { text } else { format!("{text}  {members}") };
        }
        page.wrapped(&lead, FAINT, &text, hang);
        let deeper = depth + usize::from(node.children.len() > 1);
        open.extend(node.children.iter().rev().map(|child| (child, deeper)));
    }
}

/// The tree in a format for other programs. Idle threads would be most of the picture: they are left out.
pub fn graph(page: &Page, inspection: &Inspection, format: Graph) -> String {
    let root = tree(page, inspection, false);
    match format {
        Graph::Dot => tree::dot(&root),
        Graph::Folded => tree::folded(&root).lines().map(|line| escape(line) + "\n").collect(),
        Graph::Svg => flame::draw(&root),
    }
}

/// The tree of all stacks.
fn tree(page: &Page, inspection: &Inspection, with_idle: bool) -> Node {
    let stacks = &inspection.stacks.logical;
    tree::tree(stacks, |index| {
        Some(doing(page, inspection, &stacks[index])).filter(|_| with_idle || !stacks[index].idle)
    })
}
