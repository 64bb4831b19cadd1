//! Teams as a tree, members doing the same folded into one line.

use ompd_runtime::model::*;

use super::{HEADING, Page};
use crate::words;

pub fn render(page: &mut Page, snapshot: &RuntimeSnapshot) {
    leagues(page, snapshot);
    if snapshot.teams.is_empty() {
        page.line("  no parallel region is being executed");
        return;
    }
    let roots = (0..snapshot.teams.len()).filter(|i| snapshot.teams[*i].parent.flat().is_none());
    // Parents come before their children, so a depth of as many levels as there are teams is never exceeded.
    let mut open: Vec<(usize, usize)> = roots.rev().map(|i| (i, 0)).collect();
    while let Some((index, depth)) = open.pop() {
        team(page, snapshot, index, depth);
        let children = (0..snapshot.teams.len()).filter(|c| snapshot.teams[*c].parent.flat() == Some(TeamId(index)));
        open.extend(children.rev().map(|c| (c, depth + 1)));
    }
}

/// The teams of leagues, by `teams` regions.
fn leagues(page: &mut Page, snapshot: &RuntimeSnapshot) {
    for team in &snapshot.leagues {
        let (number, size) = (words::or_unknown(&team.number), words::or_unknown(&team.size));
        let text = format!("team {number} of a league of {size}, initial thread {}", page.thread(team.lwp));
        page.wrapped("teams region  ", HEADING, &text, 4);
    }
}

/// `level 1, 4 threads, region f (a.c:9)`: what a team is, in a few words.
pub(crate) fn title(snapshot: &RuntimeSnapshot, index: usize) -> String {
    let team = &snapshot.teams[index];
    let size = team.size.get().map_or_else(|| "? threads".to_owned(), |n| words::count(n as usize, "thread"));
    let mut title = format!("level {}, {size}", words::or_unknown(&team.level));
    if team.serialized.get() == Some(true) {
        title.push_str(", serialized");
    }
    if let Some(code) = words::region(team) {
        title.push_str(&format!(", {code}"));
    }
    if team.parent.flat().is_some() {
        title.push_str(&format!(", opened by thread {}", words::or_unknown(&team.primary_num)));
    }
    let waiting = snapshot.at_barrier(TeamId(index)).len();
    if let Some(barrier) = team.barrier.value().filter(|_| waiting > 0) {
        let arrived = barrier.inside.zip(barrier.at_end).map_or(waiting, |(inside, end)| (inside + end) as usize);
        // Where the runtime counts none, those seen there are on their way out.
        if arrived > 0 {
            title.push_str(&format!(", {arrived} of {} waiting for the others", barrier.size));
        }
    }
    title
}

fn team(page: &mut Page, snapshot: &RuntimeSnapshot, index: usize, depth: usize) {
    let team = &snapshot.teams[index];
    let indent = "  ".repeat(depth);
    let title = title(snapshot, index);
    page.wrapped(&format!("{indent}team {index}  "), HEADING, &title, indent.len() + 4);
    if page.verbose {
        page.line(format_args!(
            "{indent}  descriptor {}, size from {}",
            team.descriptor,
            team.size.origin().map_or("?", |o| o.word())
        ));
    }
    // Members by what they do, in the order of their first.
    let mut groups: Vec<(String, Vec<u32>, Option<i32>)> = Vec::new();
    for (number, lwp) in (0u32..).zip(&team.members) {
        let doing = member(page, snapshot, index, *lwp);
        match groups.iter_mut().find(|(what, ..)| *what == doing) {
            Some((_, numbers, _)) => numbers.push(number),
            None => groups.push((doing, vec![number], *lwp)),
        }
    }
    let labels: Vec<String> = groups
        .iter()
        .map(|(_, numbers, lwp)| match (numbers.as_slice(), lwp) {
            ([one], Some(lwp)) => format!("{one} ({})", page.thread(*lwp)),
            (many, _) => words::ranges(many),
        })
        .collect();
    let wide = labels.iter().map(|l| l.chars().count()).max().unwrap_or(0).min(30);
    for ((doing, ..), label) in groups.iter().zip(labels) {
        let lead = format!("{indent}  {label:wide$}  ");
        let hang = lead.chars().count();
        page.wrapped(&lead, anstyle::Style::new(), doing, hang);
    }
}

/// What a member of this team does, as seen from this team.
fn member(page: &Page, snapshot: &RuntimeSnapshot, team: usize, lwp: Option<i32>) -> String {
    let Some(thread) = lwp.and_then(|lwp| snapshot.thread_by_lwp(lwp)) else {
        return "not found among the threads of the process".to_owned();
    };
    match thread.team.flat() {
        Some(TeamId(inner)) if inner != team => format!("in team {}", child_towards(snapshot, team, inner)),
        _ => {
            let task = thread.task.get().and_then(|id| snapshot.task(id));
            let mut doing = page.doing(thread);
            if let Some(elsewhere) = page.elsewhere(snapshot, thread) {
                doing.push_str(&format!("; {elsewhere}"));
            }
            match task {
                Some(task) if matches!(task.kind.get(), Some(TaskKind::Explicit | TaskKind::Undeferred)) => {
                    let code =
                        words::code(&task.function, &task.location).unwrap_or_else(|| "of unknown function".to_owned());
                    format!("{doing}, task {code}")
                }
                _ => doing,
            }
        }
    }
}

/// The team directly inside `outer` on the way to `inner`.
fn child_towards(snapshot: &RuntimeSnapshot, outer: usize, inner: usize) -> usize {
    let mut at = inner;
    while let Some(TeamId(parent)) = snapshot.teams[at].parent.flat() {
        // Parents have smaller indices: this ends.
        if parent == outer || parent >= at {
            break;
        }
        at = parent;
    }
    at
}
