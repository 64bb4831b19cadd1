//! How much is read.

use super::threads::GompThread;
use crate::excerpt::Tasks;

/// How much the phases read.
#[derive(Clone, Copy)]
pub(super) enum Reach {
    /// All there is.
    Process,
    /// What concerns the first of the threads given.
    Thread {
        /// The teams around its own are wanted.
        enclosing: bool,
        /// Tasks that are wanted.
        tasks: Tasks,
    },
}

impl Reach {
    /// True if what is not found is not there.
    pub(super) fn is_whole(self) -> bool {
        matches!(self, Reach::Process)
    }

    /// The threads asked about. Others only lead to teams.
    pub(super) fn asked(self, threads: &[GompThread]) -> &[GompThread] {
        if self.is_whole() { threads } else { &threads[..threads.len().min(1)] }
    }

    /// True if the teams around a thread's own are not looked at.
    pub(super) fn stays_inside(self) -> bool {
        matches!(self, Reach::Thread { enclosing: false, .. })
    }

    pub(super) fn wants_tasks(self) -> bool {
        !matches!(self, Reach::Thread { tasks: Tasks::None, .. })
    }

    /// True if the task that generated the last one is wanted.
    pub(super) fn goes_beyond(self) -> bool {
        matches!(self, Reach::Process | Reach::Thread { tasks: Tasks::Beyond(_), .. })
    }
}
