//! A look at one thread: it runs the same phases from fewer threads. The thread is found by its thread pointer;
//! thread 0 of its team shows that the team lives.

use ompd_process::Target;

use super::pools::Pools;
use super::reach::Reach;
use super::teams::Teams;
use super::threads::GompThread;
use super::{Context, Notes, pools, raw_threads, tasks, teams, threads, waits};
use crate::excerpt::{Excerpt, Focus, NOT_LOOKED_FOR};
use crate::gomp::Gomp;

/// See [`Runtime::excerpt`](crate::Runtime::excerpt).
pub(in crate::gomp) fn excerpt(gomp: &Gomp, target: &dyn Target, focus: &Focus<'_>) -> Option<Excerpt> {
    let mut context = Context::new(gomp, target);
    let mut notes = Notes::default();
    let found = start(&context, focus)?;
    let current = found.first()?.view.ptr(&gomp.structs.thread.task).ok()?;
    // The task may belong to a team further out.
    let beyond = focus.tasks.last().is_some_and(|task| task != current);
    context.reach = Reach::Thread { enclosing: focus.enclosing || focus.beyond || beyond, tasks: focus.tasks };
    let (mut threads, pools, teams) = if focus.team {
        let (threads, pools) = pools::read(&context, found, &mut notes);
        let (threads, teams) = teams::read(&context, threads, &mut notes);
        (threads, pools, teams)
    } else {
        let unsettled = |thread| GompThread { unsettled: Some(NOT_LOOKED_FOR.into()), idle: true, ..thread };
        (found.into_iter().map(unsettled).collect(), Pools::default(), Teams::default())
    };
    // Whether it is on its way out of a region shows only together with all others.
    if focus.team && threads.first()?.unsettled.is_some() {
        return None;
    }
    let tasks = tasks::read(&context, &threads, &teams, &mut notes);
    let mut raw_teams = teams.raw(&context, &threads, &mut notes);
    for team in &mut raw_teams {
        team.members.clear();
    }
    threads.truncate(1);
    let waits = waits::read(&context, &threads, &pools, &teams, &tasks);
    let thread = raw_threads::tell(&context, &threads, &teams, &tasks, waits.of_threads, &waits.at_work).pop()?;
    notes.is_clean().then(|| Excerpt::of(Some(thread), None, raw_teams, tasks.list))
}

/// The threads to start from, if each is still the same one.
fn start(context: &Context<'_>, focus: &Focus<'_>) -> Option<Vec<GompThread>> {
    let (offset, distance) = (context.tls_offset().ok()?, context.target.pthread_distance()?);
    let asked = *focus.threads.first()?;
    let wanted = if focus.team { &focus.threads[..] } else { std::slice::from_ref(&asked) };
    let read = |known: &crate::excerpt::Known| {
        let os = context.target.threads().iter().find(|thread| thread.lwp == known.lwp)?;
        // What registers tell is for a look at the whole process.
        let descriptor = known.pthread.offset(distance).offset(offset);
        if os.registers.is_ok() || descriptor != known.descriptor || !(focus.alive)(*known) {
            return None;
        }
        threads::read_one(context, known.lwp, os.registers.clone(), known.descriptor).ok()?
    };
    wanted.iter().map(read).collect()
}
