//! The first page: verdicts first, crowds folded, then the teams.

use anstyle::Style;
use ompd_runtime::model::*;

use super::{Page, runtime_heading, teams};
use crate::words;
use ompd_inspection::Inspection;

pub fn render(page: &mut Page, inspection: &Inspection) {
    for snapshot in &inspection.runtimes {
        runtime_heading(page, snapshot);
        if snapshot.threads.is_empty() {
            page.line(words::no_threads(snapshot));
            continue;
        }
        if !snapshot.teams.is_empty() {
            teams::render(page, snapshot);
        }
        rest(page, snapshot);
    }
    let foreign = inspection.threads.iter().filter(|t| t.foreign).count();
    if foreign > 0 && !inspection.runtimes.is_empty() {
        page.blank();
        let what = if inspection.runtimes.iter().all(|r| r.issues.is_empty()) {
            "not known to any OpenMP runtime"
        } else {
            "not recognised as OpenMP's"
        };
        page.line(format_args!("{} {what}", words::count(foreign, "thread")));
    }
}

/// Threads in no team, folded.
fn rest(page: &mut Page, snapshot: &RuntimeSnapshot) {
    let idle = snapshot.threads.iter().filter(|t| t.role.get() == Some(Role::IdleWorker)).count();
    let is_outside =
        |t: &&Thread| matches!(t.team, Fact::Known { value: None, .. }) && t.role.get() != Some(Role::IdleWorker);
    let outside = snapshot.threads.iter().filter(is_outside).count();
    let unknown = snapshot.threads.iter().filter(|t| t.team.value().is_none()).count();
    if idle + outside + unknown > 0 {
        page.blank();
    }
    if unknown > 0 {
        page.line(format_args!("{} whose team is not known (`threads -v` says why)", words::count(unknown, "thread")));
    }
    if outside > 0 {
        page.line(format_args!("{} outside all parallel regions", words::count(outside, "thread")));
        for thread in snapshot.threads.iter().filter(is_outside).filter(|thread| thread.on_device.is_some()) {
            let who = thread.lwp.map_or_else(|| "a thread that is gone".to_owned(), |lwp| page.thread(lwp));
            let doing = page.doing(thread);
            page.wrapped(&format!("  {who}  "), Style::new(), &doing, 4);
        }
    }
    if idle > 0 {
        page.line(format_args!("{} (normal: they wait for the next region)", words::count(idle, "idle pool thread")));
    }
}
