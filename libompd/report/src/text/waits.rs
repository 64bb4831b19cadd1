//! Who waits for what: threads, and the locks they wait for.

use anstyle::Style;
use ompd_runtime::model::*;

use super::Page;
use crate::escape::escape;
use crate::words;

pub fn render(page: &mut Page, snapshot: &RuntimeSnapshot) {
    let row = |thread: &Thread| {
        let (waits, how) = match thread.wait.value()? {
            Some(wait) if wait.kind == WaitKind::Pool => return None,
            Some(wait) => (words::waiting(wait), how(wait)),
            // It waits for nothing of the runtime's, but for something.
            None => {
                let doing = page.outside(thread).filter(|doing| doing.waits)?;
                (doing.from.clone().unwrap_or_else(|| doing.what.clone()), "outside OpenMP")
            }
        };
        let row = vec![
            thread.lwp.map_or_else(|| "-".to_owned(), |lwp| lwp.to_string()),
            words::reference(&thread.team.clone().map(|team| team.map(|t| t.0))),
            words::or_unknown(&thread.thread_num),
            waits,
            how.to_owned(),
        ];
        Some((thread.lwp, row))
    };
    let rows: Vec<(Option<i32>, Vec<String>)> = snapshot.threads.iter().filter_map(row).collect();
    if rows.is_empty() {
        let nobody = "no thread is known to wait for anything of this runtime, its next region apart";
        page.wrapped("  ", Style::new(), nobody, 2);
    } else {
        page.thread_table(&["LWP", "team", "num", "waits", "how"], rows);
    }
    suspended(page, snapshot);
    locks(page, snapshot);
    let unknown = snapshot.threads.iter().filter(|t| t.wait.value().is_none()).count();
    if unknown > 0 {
        page.blank();
        let text = format!("Of {} it is not known (`threads -v` says why)", words::count(unknown, "more thread"));
        page.wrapped("", anstyle::Style::new(), &text, 0);
    }
}

/// Tasks that wait while their thread executes another.
fn suspended(page: &mut Page, snapshot: &RuntimeSnapshot) {
    let tasks = snapshot.tasks.iter().enumerate().filter(|(_, task)| task.thread.is_none());
    let row = |(index, task): (usize, &Task)| {
        let kind = task.kind.get().map_or("?", TaskKind::word).to_owned();
        let code = words::code(&task.function, &task.location).unwrap_or_else(|| "?".to_owned());
        Some(vec![index.to_string(), kind, code, words::waiting(task.wait.as_ref()?)])
    };
    let rows: Vec<Vec<String>> = tasks.filter_map(row).collect();
    if !rows.is_empty() {
        page.blank();
        page.table(&["suspended task", "kind", "code", "waits"], rows);
    }
}

/// How a thread waits.
fn how(wait: &Wait) -> &'static str {
    match (wait.over.get(), wait.asleep) {
        (Some(true), _) => "about to continue",
        (_, Some(true)) => "asleep",
        (_, Some(false)) => "spinning",
        (_, None) => "-",
    }
}

fn locks(page: &mut Page, snapshot: &RuntimeSnapshot) {
    if snapshot.locks.is_empty() {
        return;
    }
    page.blank();
    let rows = snapshot.locks.iter().map(|lock| {
        let name = lock.name.as_deref().map_or_else(|| lock.object.to_string(), escape);
        let kind = words::lock_kind(lock);
        let depth = lock.depth.filter(|depth| *depth > 1).map_or_else(String::new, |depth| format!(", {depth} times"));
        let since = words::acquired(lock);
        let owner = match &lock.owner {
            Fact::Known { value: Some(Owner::Thread(lwp)), .. } => format!("LWP {lwp}{depth}{since}"),
            Fact::Known { value: Some(Owner::Task(task)), .. } => format!("task {}{depth}{since}", task.0),
            Fact::Known { value: Some(Owner::Gone(_)), .. } => "a thread that has ended".to_owned(),
            Fact::Known { value: None, .. } => "free".to_owned(),
            Fact::Unknown { .. } if lock.held.get() == Some(true) => "held, not recorded by whom".to_owned(),
            Fact::Unknown { .. } => "?".to_owned(),
        };
        let waiters: Vec<String> = lock.waiters.iter().take(8).map(i32::to_string).collect();
        let more = lock.waiters.len().saturating_sub(8);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let order = if lock.queued && lock.waiters.len() > 1 { " (in this order)" } else { "" };
        vec![name, kind.to_owned(), owner, format!("{}{more}{order}", waiters.join(", "))]
    });
    let rows = rows.collect();
    page.table(&["lock", "kind", "owner", "waiting (LWP)"], rows);
}
