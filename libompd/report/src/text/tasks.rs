//! Tasks, and which generated which.

use std::collections::HashMap;

use anstyle::Style;
use ompd_runtime::model::*;

use super::Page;
use crate::escape::escape;
use crate::words;

/// Tasks of a kind that are shown before the rest is folded.
const SHOWN: usize = 4;

/// Tasks that differ in nothing but who they are.
struct Group<'s> {
    tasks: Vec<(usize, &'s Task)>,
    /// How many more there are that have no entry of their own.
    more: u64,
}

/// What tasks of one row have in common: whatever distinguishes one that somebody executes, or that waits for another.
type Key =
    (Option<TaskKind>, Option<TaskState>, Option<TeamId>, Option<TaskId>, Option<TaskgroupId>, String, Option<i64>);

fn groups<'s>(snapshot: &'s RuntimeSnapshot) -> Vec<Group<'s>> {
    let more: HashMap<TaskId, u64> = snapshot.more_tasks.iter().map(|m| (m.like, m.count)).collect();
    let mut groups: Vec<Group<'s>> = Vec::new();
    let mut known: HashMap<Key, usize> = HashMap::new();
    for (index, task) in snapshot.tasks.iter().enumerate() {
        let more = more.get(&TaskId(index)).copied().unwrap_or(0);
        let folds = matches!(task.state.get(), Some(TaskState::Ready | TaskState::Blocked));
        if !folds {
            groups.push(Group { tasks: vec![(index, task)], more });
            continue;
        }
        let key = (
            task.kind.get(),
            task.state.get(),
            task.team.flat(),
            task.generating.flat(),
            task.taskgroup.flat(),
            words::code(&task.function, &task.location).unwrap_or_default(),
            task.priority.get(),
        );
        let at = *known.entry(key).or_insert_with(|| {
            groups.push(Group { tasks: Vec::new(), more: 0 });
            groups.len() - 1
        });
        groups[at].tasks.push((index, task));
        groups[at].more += more;
    }
    groups
}

pub fn render(page: &mut Page, snapshot: &RuntimeSnapshot) {
    if snapshot.tasks.is_empty() {
        page.line("  no task is known");
        return;
    }
    let verbose = page.verbose;
    let mut reasons: Vec<String> = Vec::new();
    let mut rows = Vec::new();
    for group in groups(snapshot) {
        let shown = if group.tasks.len() <= SHOWN || verbose { group.tasks.len() } else { SHOWN - 1 };
        for (index, task) in &group.tasks[..shown] {
            rows.push(row(*index, task, verbose, &mut reasons));
        }
        let rest = (group.tasks.len() - shown) as u64 + group.more;
        if let (true, Some((_, task))) = (rest > 0, group.tasks.first()) {
            let mut row = row(0, task, false, &mut reasons);
            row[0] = "…".to_owned();
            row[6] = format!("{rest} more of {}", row[6]);
            row[7] = String::new();
            rows.push(row);
        }
    }
    page.table(&["task", "kind", "state", "LWP", "team", "from", "code", "notes"], rows);
    for why in reasons {
        page.wrapped(" ?  ", Style::new(), &escape(&why), 4);
    }
}

fn row(index: usize, task: &Task, verbose: bool, reasons: &mut Vec<String>) -> Vec<String> {
    let mut notes = notes(task);
    if verbose {
        let origin = task.function.origin().or(task.kind.origin()).map_or("-", |o| o.word());
        let lead = if notes.is_empty() { "" } else { "; " };
        notes.push_str(&format!("{lead}at {} [{origin}]", task.descriptor));
    }
    vec![
        index.to_string(),
        task.kind.get().map_or("?", TaskKind::word).to_owned(),
        task.state.get().map_or("?", TaskState::word).to_owned(),
        task.thread.map_or_else(|| "-".to_owned(), |lwp| lwp.to_string()),
        words::reference(&task.team.clone().map(|team| team.map(|t| t.0))),
        words::reference(&task.generating.clone().map(|made| made.map(|t| t.0))),
        words::code(&task.function, &task.location).unwrap_or_else(|| match task.kind.get() {
            Some(TaskKind::Initial) => "-".to_owned(),
            _ => {
                let why = task.function.why().map_or_else(|| "not read".to_owned(), ToString::to_string);
                if !reasons.contains(&why) {
                    reasons.push(why);
                }
                "?".to_owned()
            }
        }),
        notes,
    ]
}

/// What else there is to say of a task.
fn notes(task: &Task) -> String {
    let mut notes: Vec<String> = Vec::new();
    if let Some(unmet) = task.unmet.get().filter(|n| *n > 0) {
        let before: Vec<String> = task.predecessors.iter().take(4).map(|id| id.0.to_string()).collect();
        let dots = if task.predecessors.len() > 4 || unmet as usize > task.predecessors.len() { ", …" } else { "" };
        match before.is_empty() {
            true => notes.push(format!("after {}", words::count(unmet as usize, "task"))),
            false => notes.push(format!("after {}{dots}", before.join(", "))),
        }
    }
    notes.extend(task.dependences.iter().take(4).map(words::dependence));
    if task.dependences.len() > 4 {
        notes.push("…".to_owned());
    }
    if let Some(priority) = task.priority.get().filter(|p| *p != 0) {
        notes.push(format!("priority {priority}"));
    }
    if let Some(event) = task.event.flat() {
        notes.push(format!("event {}{}", event.handle, if event.fulfilled { ", fulfilled" } else { "" }));
    }
    if task.tied.get() == Some(false) {
        notes.push("untied".to_owned());
    }
    if task.is_final.get() == Some(true) {
        notes.push("final".to_owned());
    }
    notes.extend(task.wait.as_ref().map(waiting));
    if let (Some(stack), None) = (task.stack, task.thread) {
        notes.push(format!("on the stack of LWP {stack}"));
    }
    notes.join("; ")
}

/// What a task waits for, in words short enough for the column; `waits` has the line.
fn waiting(wait: &Wait) -> String {
    match wait.kind {
        WaitKind::Dependences => "waits for other tasks".to_owned(),
        WaitKind::Barrier | WaitKind::BarrierTasks => "waits at a barrier".to_owned(),
        kind => format!("waits in {}", kind.word()),
    }
}

/// The tasks as a tree: each below the one that generated it.
pub fn render_tree(page: &mut Page, snapshot: &RuntimeSnapshot) {
    let mut children: HashMap<Option<TaskId>, Vec<Group<'_>>> = HashMap::new();
    for group in groups(snapshot) {
        let parent = group.tasks.first().and_then(|(_, task)| task.generating.flat());
        children.entry(parent).or_default().push(group);
    }
    let mut open: Vec<(Group<'_>, usize)> =
        children.remove(&None).unwrap_or_default().into_iter().rev().map(|group| (group, 0)).collect();
    while let Some((group, depth)) = open.pop() {
        let Some((index, task)) = group.tasks.first().copied() else { continue };
        let count = group.tasks.len() as u64 + group.more;
        let code = words::code(&task.function, &task.location).unwrap_or_else(|| "?".to_owned());
        let kind = task.kind.get().map_or("?", TaskKind::word);
        let state = task.state.get().map_or("?", TaskState::word);
        let on = task.thread.map_or_else(String::new, |lwp| format!(" on LWP {lwp}"));
        let (name, notes) = match count {
            1 => (format!("task {index}"), notes(task)),
            _ => (format!("{count} tasks"), String::new()),
        };
        let notes = if notes.is_empty() { notes } else { format!(" ({notes})") };
        let indent = "  ".repeat(depth.min(20));
        page.wrapped(
            &format!("{indent}{name}  "),
            Style::new(),
            &format!("{kind}, {state}{on}, {code}{notes}"),
            indent.len() + 4,
        );
        for (id, _) in &group.tasks {
            let below = children.remove(&Some(TaskId(*id))).unwrap_or_default();
            open.extend(below.into_iter().rev().map(|group| (group, depth + 1)));
        }
    }
}
