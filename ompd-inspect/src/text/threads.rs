//! One row for each thread.

use ompd_runtime::model::*;

use super::{Page, words};
use crate::escape::escape;
use crate::session::Inspection;

pub fn render(page: &mut Page, snapshot: &RuntimeSnapshot) {
    if snapshot.threads.is_empty() {
        page.line("  loaded, but no thread has used it yet");
        return;
    }
    let verbose = page.verbose;
    let rows = snapshot
        .threads
        .iter()
        .map(|thread| {
            let team = thread.team.flat().and_then(|id| snapshot.team(id).map(|team| (id, team)));
            let mut row = vec![
                thread.lwp.map_or_else(|| "gone".to_owned(), |lwp| lwp.to_string()),
                thread.role.get().map_or("?", Role::word).to_owned(),
                words::reference(&thread.team.clone().map(|team| team.map(|t| t.0))),
                match (&thread.thread_num, team) {
                    (Fact::Known { value, .. }, Some((_, team))) => {
                        format!("{value}/{}", words::or_unknown(&team.size))
                    }
                    (Fact::Known { value, .. }, None) => value.to_string(),
                    (Fact::Unknown { .. }, _) => "-".to_owned(),
                },
                words::or_unknown(&thread.icvs.levels),
                thread
                    .task
                    .get()
                    .and_then(|t| snapshot.task(t))
                    .and_then(|t| t.kind.get())
                    .map_or("-", TaskKind::word)
                    .to_owned(),
                page.doing(thread),
            ];
            if verbose {
                row.push(thread.wait.origin().map_or("-", |o| o.word()).to_owned());
                row.push(thread.state.value().map_or("?", |s| s.name()).to_owned());
                row.push(thread.descriptor.to_string());
            }
            row
        })
        .collect();
    let mut header = vec!["LWP", "role", "team", "num", "level", "task", "doing"];
    if verbose {
        header.extend(["origin", "state", "descriptor"]);
    }
    page.table(&header, rows);
}

/// Threads no runtime knows.
pub fn foreign(page: &mut Page, inspection: &Inspection) {
    let foreign: Vec<_> = inspection.threads.iter().filter(|t| t.foreign).collect();
    if foreign.is_empty() {
        return;
    }
    page.blank();
    page.styled(super::HEADING, "Not OpenMP (no runtime knows them)");
    for thread in foreign {
        let name = thread.name.as_deref().map(escape).unwrap_or_default();
        page.line(format_args!("  {}  {name}", thread.lwp));
    }
}
