//! A look at a single thread, for those who ask one thing at a time and pay for each read.

use std::collections::BTreeMap;
use std::fmt;

use ompd_process::Addr;

use crate::model::Common;
use crate::model::{RawTask, RawTeam, RawThread, Task, Team, Thread};

/// What [`Runtime::excerpt`](crate::Runtime::excerpt) is to look at.
#[derive(Clone)]
pub struct Focus<'a> {
    /// The thread asked about, then the threads without which nothing can be said of it. These are those of number 0 of
    /// its team and of the teams around it, where the runtime does not lead to them itself.
    pub threads: Vec<Known>,
    /// The kernel thread id of the thread is wanted too.
    pub lwp: bool,
    /// Its team is wanted too. Without it nothing is said of what the thread does.
    pub team: bool,
    /// Tasks to be read.
    pub tasks: Tasks,
    /// The teams around the thread's own, or around the one asked about, are wanted too.
    pub enclosing: bool,
    /// The team asked about may be one around the thread's own.
    pub beyond: bool,
    /// Who the members of its team, and of those around it, are is wanted too.
    pub members: Wanted,
    /// What the thread waits for is wanted too.
    pub wait: bool,
    /// Control variables are wanted too: of the task asked about, or, if there is none, of the thread and its team.
    pub icvs: bool,
    /// What is kept for OMPT tools is wanted too, of the same.
    pub tool: bool,
    /// Functions of regions and tasks are wanted too.
    pub function: bool,
    /// What is asked about, where it is no thread. The answer then needs no thread, if the runtime's records of regions and
    /// tasks tell it.
    pub subject: About,
    /// Tells whether a thread is still the same one as when it was met.
    pub alive: &'a dyn Fn(Known) -> bool,
    /// The thread of number 0 of a team, as of an earlier look.
    pub first: &'a dyn Fn(Addr) -> Option<Addr>,
}

/// What a question is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum About {
    /// A thread.
    Thread,
    /// The team at this address.
    Team(Addr),
    /// The implicit task of a member of the team at this address.
    ImplicitTask(Addr, u64),
    /// The task at this address.
    Task(Addr),
}

impl fmt::Debug for Focus<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Focus").field("threads", &self.threads).field("tasks", &self.tasks).finish_non_exhaustive()
    }
}

/// A thread that was met at an earlier look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Known {
    /// Address of the runtime's descriptor.
    pub descriptor: Addr,
    /// Kernel thread id.
    pub lwp: i32,
    /// What `pthread_self` returns in it.
    pub pthread: Addr,
    /// The runtime is known to have made it. Then the runtime keeps the descriptor for it until it ends.
    pub is_worker: bool,
}

/// Which members of a team are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// None but whom it takes to say anything of the thread.
    None,
    /// The one of this number, and the first.
    One(u64),
}

/// Which tasks of a thread are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tasks {
    /// None.
    None,
    /// The one it executes.
    Current,
    /// The one it executes and those that generated it, up to the one at this address.
    UpTo(Addr),
    /// The same, and the one that generated that.
    Beyond(Addr),
    /// The one it executes and those that generated it, up to the implicit one of the team at this address.
    ImplicitIn(Addr),
}

impl Tasks {
    /// The one asked about, where it need not be the one that is executed.
    pub(crate) fn last(self) -> Option<Addr> {
        match self {
            Tasks::None | Tasks::Current | Tasks::ImplicitIn(_) => None,
            Tasks::UpTo(task) | Tasks::Beyond(task) => Some(task),
        }
    }
}

/// What is known of a single thread. Each value is the same as in a [`RuntimeSnapshot`](crate::model::RuntimeSnapshot)
/// of the same stop, or unknown because it was not looked for. It has no lists of all that a process has (locks, queued
/// tasks, pools, …), so none of them can be taken for empty. The lists it has hold what was asked for, and not all
/// there is.
///
/// Kernel thread ids are in it only where [`Focus::lwp`] asked for them. Ids index into the excerpt they come from.
#[derive(Debug, Clone)]
pub struct Excerpt {
    /// The thread asked about, or none if the question was not about a thread.
    pub thread: Option<Thread>,
    /// Its innermost team, and those around that if they were asked for; parents before children. They have no kernel thread ids:
    /// see [`Excerpt::members`].
    pub teams: Vec<Team>,
    /// Of each of those teams the descriptors of its members by number, of those that were asked for and read.
    pub members: Vec<BTreeMap<usize, Addr>>,
    /// The runtime lists the members of its teams.
    pub lists_members: bool,
    /// The tasks asked for.
    pub tasks: Vec<Task>,
}

impl Excerpt {
    /// What was read, with no other evidence; `members` where the runtime lists them.
    pub(crate) fn of(
        thread: Option<RawThread>,
        members: Option<Vec<BTreeMap<usize, Addr>>>,
        teams: Vec<RawTeam>,
        tasks: Vec<RawTask>,
    ) -> Excerpt {
        let lists_members = members.is_some();
        let members = members.unwrap_or_else(|| vec![BTreeMap::new(); teams.len()]);
        let (teams, tasks) = (teams.into_iter().map(Team::from), tasks.into_iter().map(Task::from));
        Excerpt {
            thread: thread.map(Thread::from),
            teams: teams.collect(),
            members,
            lists_members,
            tasks: tasks.collect(),
        }
    }
}

/// Why something is unknown that a whole snapshot may have.
pub(crate) const NOT_LOOKED_FOR: Common = Common::NotLookedFor;
