//! Why one thread does not get on.

use anstyle::Style;
use ompd_runtime::model::*;

use super::{HEADING, Page, verdicts};
use crate::{answer, tell, words};
use ompd_inspection::Inspection;

pub fn render(page: &mut Page, inspection: &Inspection, lwp: i32) {
    let mut known = false;
    for snapshot in &inspection.runtimes {
        if let Some(thread) = snapshot.thread_by_lwp(lwp) {
            known = true;
            itself(page, snapshot, thread, lwp);
        }
    }
    if !known {
        let who = page.thread(lwp);
        let text = if inspection.threads.iter().any(|thread| thread.lwp == lwp) {
            "no OpenMP runtime knows this thread"
        } else {
            "there is no such thread"
        };
        return page.wrapped(&format!("{who}: "), HEADING, text, 4);
    }
    for verdict in answer::verdicts(inspection) {
        let block = tell::tell(inspection, verdict);
        let behind = verdict.held_up.contains(&lwp);
        if behind || block.threads.contains(&lwp) {
            page.blank();
            if behind {
                page.line("In the end it waits for these:");
            }
            verdicts::block(page, verdict, &block);
        }
    }
}

/// What it is and does, and who holds what it waits for.
fn itself(page: &mut Page, snapshot: &RuntimeSnapshot, thread: &Thread, lwp: i32) {
    let mut what = vec![thread.role.get().map_or("unknown role", Role::word).to_owned()];
    if let (Some(team), Some(number)) = (thread.team.flat(), thread.thread_num.get()) {
        let size =
            snapshot.team(team).map_or_else(String::new, |team| format!(" of {}", words::or_unknown(&team.size)));
        what.insert(0, format!("thread {number}{size} in team {}", team.0));
    }
    if let Some(kind) = thread.task.get().and_then(|id| snapshot.task(id)).and_then(|task| task.kind.get()) {
        what.push(format!("{} task", kind.word()));
    }
    let lead = format!("{}  ", page.thread(lwp));
    page.wrapped(&lead, HEADING, &what.join(", "), 4);
    let doing = page.doing(thread);
    page.wrapped("  ", Style::new(), &doing, 4);
    let Some(Some(lock)) = thread.wait.value().map(|wait| wait.as_ref().and_then(|wait| wait.lock)) else { return };
    let owner = match snapshot.lock(lock).map(|lock| &lock.owner) {
        Some(Fact::Known { value: Some(Owner::Thread(owner)), .. }) => format!("it is held by {}", page.thread(*owner)),
        Some(Fact::Known { value: None, .. }) => "nobody holds it".to_owned(),
        Some(Fact::Known { value: Some(Owner::Task(task)), .. }) => format!("task {} holds it", task.0),
        Some(Fact::Known { value: Some(Owner::Gone(_)), .. }) => "a thread that has ended holds it".to_owned(),
        Some(Fact::Unknown { why }) => format!("who holds it is not known: {why}"),
        None => return,
    };
    page.wrapped("  ", Style::new(), &owner, 4);
}
