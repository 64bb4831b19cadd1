//! A look at a single thread: it is found by its thread pointer, and thread 0 of its team bears out that the team lives.

use ompd_process::{Addr, Target};

use super::Reader;
use crate::excerpt::{Excerpt, Focus, NOT_LOOKED_FOR, Tasks};
use crate::gomp::Gomp;
use crate::model::*;

/// How a single thread is looked at.
#[derive(Clone, Copy)]
pub(super) struct Focused {
    /// The teams around a thread's own are wanted.
    pub(super) enclosing: bool,
    /// Tasks that are wanted.
    pub(super) tasks: Tasks,
}

impl<'a> Reader<'a> {
    /// See [`Runtime::excerpt`](crate::Runtime::excerpt).
    pub(in crate::gomp) fn excerpt(gomp: &'a Gomp, target: &'a dyn Target, focus: &Focus<'_>) -> Option<Excerpt> {
        let mut reader = Reader::new(gomp, target);
        let (offset, distance) = (reader.tls_offset().ok()?, target.pthread_distance()?);
        let asked = *focus.threads.first()?;
        let wanted = if focus.team { &focus.threads[..] } else { std::slice::from_ref(&asked) };
        for known in wanted {
            let os = target.threads().iter().find(|thread| thread.lwp == known.lwp)?;
            // What registers tell is for a look at the whole process.
            let descriptor = known.pthread.offset(distance).offset(offset);
            if os.registers.is_ok() || descriptor != known.descriptor || !(focus.alive)(*known) {
                return None;
            }
            let thread = reader.read_thread(known.lwp, os.registers.clone(), known.descriptor).ok()??;
            reader.threads.push(thread);
        }
        let current = reader.threads.first()?.view.ptr(&gomp.structs.thread.task).ok()?;
        // The task may belong to a team further out.
        let beyond = focus.tasks.last().is_some_and(|task| task != current);
        reader.focused = Some(Focused { enclosing: focus.enclosing || beyond, tasks: focus.tasks });
        if focus.team {
            reader.read_pools();
            reader.read_teams();
            reader.drop_ended_teams();
            reader.number_teams();
            // Whether it is on its way out of a region shows only together with all others.
            if reader.threads.first()?.unsettled.is_some() {
                return None;
            }
            if focus.tasks != Tasks::None {
                reader.read_current_tasks();
            }
        } else {
            for thread in &mut reader.threads {
                (thread.unsettled, thread.idle) = (Some(NOT_LOOKED_FOR.into()), true);
            }
        }
        for task in reader.tasks.iter_mut().filter(|task| task.descriptor != current) {
            task.state = Fact::unknown(NOT_LOOKED_FOR);
        }
        let mut teams = reader.make_teams();
        reader.threads.truncate(1);
        let thread = reader.make_threads().pop()?;
        for team in &mut teams {
            team.members.clear();
        }
        let whole = reader.issues.is_empty() && reader.check.failure().is_none();
        whole.then(|| Excerpt::of(thread, vec![None; teams.len()], teams, reader.tasks))
    }

    /// True if the teams around a thread's own are not looked at.
    pub(super) fn stays_inside(&self) -> bool {
        self.focused.is_some_and(|focused| !focused.enclosing)
    }

    /// True if no more than this task, and perhaps the one that generated it, is wanted.
    pub(super) fn is_last(&self, task: TaskId, at: Addr) -> bool {
        match self.focused.map(|focused| focused.tasks) {
            None => false,
            Some(Tasks::None | Tasks::Current) => true,
            Some(Tasks::UpTo(last) | Tasks::Beyond(last)) => at == last,
            Some(Tasks::ImplicitIn(team)) => {
                let own = self.implicit_task_of(at).is_some_and(|(own, _)| own == team);
                own && self.tasks.get(task.0).is_some_and(|task| task.kind.get() == Some(TaskKind::Implicit))
            }
        }
    }

    /// True if the task that generated the last one is wanted.
    pub(super) fn goes_beyond(&self) -> bool {
        self.focused.is_none_or(|focused| matches!(focused.tasks, Tasks::Beyond(_)))
    }
}
