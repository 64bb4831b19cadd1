//! Tasks, and which generated which.

use ompd_runtime::model::*;

use super::{Page, words};
use crate::escape::escape;

pub fn render(page: &mut Page, snapshot: &RuntimeSnapshot) {
    if snapshot.tasks.is_empty() {
        page.line("  no task is known");
        return;
    }
    let verbose = page.verbose;
    let mut reasons: Vec<String> = Vec::new();
    let rows = snapshot
        .tasks
        .iter()
        .enumerate()
        .map(|(index, task)| {
            let mut row = vec![
                index.to_string(),
                task.kind.get().map_or("?", TaskKind::word).to_owned(),
                task.state.get().map_or("?", TaskState::word).to_owned(),
                task.thread.map_or_else(|| "-".to_owned(), |lwp| lwp.to_string()),
                words::reference(&task.team.clone().map(|team| team.map(|t| t.0))),
                words::reference(&task.generating.clone().map(|made| made.map(|t| t.0))),
                words::code(&task.function, &task.location).unwrap_or_else(|| match task.kind.get() {
                    Some(TaskKind::Initial) => "-".to_owned(),
                    _ => {
                        let why = task.function.why().unwrap_or("not read");
                        if !reasons.iter().any(|known| known == why) {
                            reasons.push(why.to_owned());
                        }
                        "?".to_owned()
                    }
                }),
            ];
            if verbose {
                row.push(task.function.origin().or(task.kind.origin()).map_or("-", |o| o.word()).to_owned());
                row.push(task.descriptor.to_string());
            }
            row
        })
        .collect();
    let mut header = vec!["task", "kind", "state", "LWP", "team", "made by", "code"];
    if verbose {
        header.extend(["origin", "descriptor"]);
    }
    page.table(&header, rows);
    for why in reasons {
        page.wrapped(" ?  ", anstyle::Style::new(), &escape(&why), 4);
    }
}
