//! One row for each thread.

use anstyle::Style;
use ompd_runtime::icvs::LEVELS;
use ompd_runtime::model::*;

use super::Page;
use crate::escape::escape;
use crate::{outside, words};
use ompd_inspection::Inspection;

pub fn render(page: &mut Page, snapshot: &RuntimeSnapshot) {
    if snapshot.threads.is_empty() {
        page.line(words::no_threads(snapshot));
        return;
    }
    if page.verbose {
        return snapshot.threads.iter().for_each(|thread| at_length(page, snapshot, thread));
    }
    let rows = snapshot
        .threads
        .iter()
        .map(|thread| {
            let row = vec![
                lwp(thread),
                thread.role.get().map_or("?", Role::word).to_owned(),
                words::reference(&thread.team.clone().map(|team| team.map(|t| t.0))),
                number(snapshot, thread),
                match thread.role.get() {
                    Some(Role::IdleWorker) => "-".to_owned(),
                    _ => words::or_unknown(thread.icvs.get(&LEVELS)),
                },
                task(snapshot, thread).and_then(|t| t.kind.get()).map_or("-", TaskKind::word).to_owned(),
                match page.elsewhere(snapshot, thread) {
                    Some(elsewhere) => format!("{}; {elsewhere}", page.doing(thread)),
                    None => page.doing(thread),
                },
            ];
            (thread.lwp, row)
        })
        .collect();
    page.thread_table(&["LWP", "role", "team", "num", "level", "task", "doing"], rows);
}

fn lwp(thread: &Thread) -> String {
    thread.lwp.map_or_else(|| "gone".to_owned(), |lwp| lwp.to_string())
}

fn task<'s>(snapshot: &'s RuntimeSnapshot, thread: &Thread) -> Option<&'s Task> {
    thread.task.get().and_then(|id| snapshot.task(id))
}

/// `2/4`: number and size of the team.
fn number(snapshot: &RuntimeSnapshot, thread: &Thread) -> String {
    let team = thread.team.flat().and_then(|id| snapshot.team(id));
    match (&thread.thread_num, team) {
        (Fact::Known { value, .. }, Some(team)) => format!("{value}/{}", words::or_unknown(&team.size)),
        (Fact::Known { value, .. }, None) => value.to_string(),
        (Fact::Unknown { .. }, _) => "-".to_owned(),
    }
}

/// One thread over several lines, each value with its origin or the reason why it is not known.
fn at_length(page: &mut Page, snapshot: &RuntimeSnapshot, thread: &Thread) {
    let who = thread.lwp.map_or_else(|| "a thread that is gone".to_owned(), |lwp| page.thread(lwp));
    let gtid = thread.gtid.map(|gtid| format!(", gtid {gtid}")).unwrap_or_default();
    page.styled(super::HEADING, format_args!("{who}{gtid}, descriptor {}", thread.descriptor));
    let team = thread.team.clone().map(|team| team.map_or_else(|| "none".to_owned(), |t| t.0.to_string()));
    let task = thread.task.clone().map(|id| {
        let kind = snapshot.task(id).and_then(|t| t.kind.get()).map_or("unknown kind", TaskKind::word);
        format!("{} ({kind})", id.0)
    });
    let wait = thread.wait.clone().map(|wait| match wait {
        Some(wait) => format!("{}, object {}", words::waiting(&wait), wait.object),
        None => page.doing(thread),
    });
    let elsewhere = page.elsewhere(snapshot, thread);
    let state = thread.state(&snapshot.teams);
    let lines = [
        ("role", words::at_length(&thread.role.clone().map(|role| role.word().to_owned()))),
        ("team", words::at_length(&team)),
        ("number", words::at_length(&thread.thread_num.clone().map(|n| n.to_string()))),
        ("level", words::at_length(&thread.icvs.get(&LEVELS).clone().map(|n| n.to_string()))),
        ("task", words::at_length(&task)),
        ("state", words::at_length(&state.map(|s| format!("{} ({:#x})", s.name(), s.number())))),
        ("doing", words::at_length(&wait)),
    ];
    for (name, text) in lines.into_iter().chain(elsewhere.map(|text| ("nested", text))) {
        page.wrapped(&format!("  {name:8}"), Style::new(), &text, 10);
    }
}

/// Threads no runtime knows.
pub fn foreign(page: &mut Page, inspection: &Inspection) {
    let foreign: Vec<_> = inspection.threads.iter().filter(|t| t.foreign).collect();
    if foreign.is_empty() {
        return;
    }
    page.blank();
    let complete = inspection.runtimes.iter().all(|r| r.issues.is_empty());
    let what = if complete { "Not OpenMP (no runtime knows them)" } else { "Not recognised as OpenMP's" };
    page.styled(super::HEADING, what);
    for thread in foreign {
        let name = thread.name.as_deref().map(escape).unwrap_or_default();
        let label = page.labels.get(&thread.lwp).map(|label| format!("{}  ", escape(label))).unwrap_or_default();
        let doing = page.gil.get(&thread.lwp).cloned().or_else(|| inspection.outside(thread.lwp).map(outside::words));
        let doing = doing.map(|doing| format!("  {doing}")).unwrap_or_default();
        page.wrapped(&format!("  {label}{}  {name}", thread.lwp), Style::new(), &doing, 6);
    }
}
