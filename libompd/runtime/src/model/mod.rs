//! The neutral model: what an OpenMP process is doing, in OpenMP's own terms.
//!
//! Everything here was read in one stop. A [`Fact`] carries the origin of its value; what could not be read says why.
//! Ids ([`TeamId`], [`TaskId`]) index into the [`RuntimeSnapshot`] they come from and mean nothing elsewhere.

use std::fmt;
use std::ops::Deref;

use ompd_layout::Origin;
use ompd_process::Addr;

mod icvs;
mod instance;
pub(crate) mod loops;
mod reason;
mod state;
mod tasks;
mod teams;
mod threads;
mod waits;

pub use icvs::{
    Allocator, ByIcv, DeeperItems, Icv, IcvSources, IcvValue, Icvs, Items, Partition, Placement, ProcBind, Schedule,
    Scope, Setting, Source,
};
pub use instance::{InstanceInfo, Lack, LayoutEntry, OriginReport};
pub use loops::{Chunk, Doacross, Loop, LoopKind, LoopSchedule, Posted};
pub(crate) use reason::reasons;
pub use reason::{Common, FailedCheck, NoSource, Reason, Trouble};
pub use state::State;
pub use tasks::{
    DependKind, Dependence, Event, MoreTasks, OmptFrame, OmptFrames, RawDependence, RawTask, Task, TaskKind, TaskState,
    Taskgroup,
};
pub use teams::{Barrier, RawTeam, Team};
pub use threads::{
    DeviceConstruct, DeviceOperation, DeviceOperationKind, InRuntime, OmptState, OnDevice, RawThread, Role, Thread,
};
pub use waits::{BarrierKind, Lock, LockKind, RawLock, Wait, WaitKind};

/// Who has a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Owner {
    /// The thread with this kernel thread id.
    Thread(i32),
    /// A task: nest locks belong to the task that set them (OpenMP 5.2, 18.9).
    Task(TaskId),
    /// A thread or task that no longer exists, under the number or address the runtime knew it by.
    Gone(u64),
}

/// A value with its origin, or the reason why there is none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fact<T> {
    /// The value was read.
    Known {
        /// The value.
        value: T,
        /// Where the knowledge of how to read it comes from.
        origin: Origin,
    },
    /// The value is not known.
    Unknown {
        /// Reason, as a sentence fragment for people.
        why: Reason,
    },
}

impl<T> Fact<T> {
    /// A value that was read.
    pub fn known(value: T, origin: Origin) -> Self {
        Fact::Known { value, origin }
    }

    /// A value that could not be read.
    pub fn unknown(why: impl Into<Reason>) -> Self {
        Fact::Unknown { why: why.into() }
    }

    /// The value, if known.
    pub fn value(&self) -> Option<&T> {
        match self {
            Fact::Known { value, .. } => Some(value),
            Fact::Unknown { .. } => None,
        }
    }

    /// The value, if known, to be changed.
    pub fn value_mut(&mut self) -> Option<&mut T> {
        match self {
            Fact::Known { value, .. } => Some(value),
            Fact::Unknown { .. } => None,
        }
    }

    /// The origin, if the value is known.
    pub fn origin(&self) -> Option<Origin> {
        match self {
            Fact::Known { origin, .. } => Some(*origin),
            Fact::Unknown { .. } => None,
        }
    }

    /// The reason, if the value is not known.
    pub fn why(&self) -> Option<&Reason> {
        match self {
            Fact::Known { .. } => None,
            Fact::Unknown { why } => Some(why),
        }
    }

    /// Converts the value, keeping origin or reason.
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> Fact<U> {
        match self {
            Fact::Known { value, origin } => Fact::Known { value: f(value), origin },
            Fact::Unknown { why } => Fact::Unknown { why },
        }
    }
}

impl<T: Copy> Fact<Option<T>> {
    /// The value, if it is known that there is one.
    pub fn flat(&self) -> Option<T> {
        self.get().flatten()
    }
}

impl<T: Copy> Fact<T> {
    /// The value by copy, if known.
    pub fn get(&self) -> Option<T> {
        self.value().copied()
    }
}

/// Something worth telling that did not stop the inspection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Issue {
    /// What is affected, in a few words (`thread 4711`, `team 0x…`, `layout`).
    pub subject: String,
    /// What happened and what it costs.
    pub what: Reason,
}

impl Issue {
    /// An issue about `subject`.
    pub fn new(subject: impl Into<String>, what: impl Into<Reason>) -> Self {
        Issue { subject: subject.into(), what: what.into() }
    }
}

/// Index of a team in [`RuntimeSnapshot::teams`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TeamId(pub usize);

/// Index of a task in [`RuntimeSnapshot::tasks`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskId(pub usize);

/// Index of a lock in [`RuntimeSnapshot::locks`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LockId(pub usize);

/// Index of a task group in [`Recorded::taskgroups`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskgroupId(pub usize);

/// A source position as the runtime recorded it (`ident_t` of libomp).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SourceLine {
    /// File as the compiler wrote it.
    pub file: String,
    /// Enclosing function.
    pub function: String,
    /// Line, from 1.
    pub line: u32,
}

impl fmt::Display for SourceLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file.rsplit('/').next().unwrap_or(&self.file), self.line)
    }
}

/// Where in code something was done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Site {
    /// The return address of the call of the runtime that did it.
    pub code: Addr,
    /// Where that call is in the source; filled in after the stop.
    pub location: Option<SourceLine>,
}

/// An address in code, with its name where a symbol table has one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodeRef {
    /// The address.
    pub addr: Addr,
    /// Symbol (demangled), or `module+offset` where no symbol covers it; filled in after the stop.
    pub name: Option<String>,
}

impl CodeRef {
    /// A reference to `addr`, not named yet.
    pub fn new(addr: Addr) -> Self {
        CodeRef { addr, name: None }
    }
}

/// Threads a runtime keeps from region to region. libgomp has a pool for each contention group, libomp one for all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pool {
    /// LWP of each; `None` where the process has no such thread, as in the child of a fork.
    pub threads: Vec<Option<i32>>,
}

/// What one runtime instance was doing at the stop, as it was read. Nobody changes it: what others know is [`evidence`],
/// and [`merge`] puts both together.
///
/// [`evidence`]: crate::evidence
/// [`merge`]: crate::merge
#[derive(Debug, Clone)]
pub struct RawSnapshot {
    /// The instance.
    pub instance: InstanceInfo,
    /// Its threads, in LWP order; those the process does not have come last.
    pub threads: Vec<RawThread>,
    /// Its teams, parents before children.
    pub teams: Vec<RawTeam>,
    /// Tasks met: current ones, their ancestors, queued ones, and those that wait for dependences.
    pub tasks: Vec<RawTask>,
    /// Locks that threads wait for, and those known to be held.
    pub locks: Vec<RawLock>,
    /// What nothing else adds to.
    pub recorded: Recorded,
    /// Trouble met on the way.
    pub issues: Vec<Issue>,
}

/// What of a runtime only the runtime itself tells.
#[derive(Debug, Clone, Default)]
pub struct Recorded {
    /// Threads (LWP) known to execute a target region on the host, of runtimes that put their own data aside for it.
    pub on_host: Vec<i32>,
    /// Tasks that are not listed but counted.
    pub more_tasks: Vec<MoreTasks>,
    /// A thread in `taskwait` executes children of its task, and of other tasks only such with a priority.
    pub taskwait_runs_children_only: bool,
    /// A member of a team may end the barriers that others wait at, without reaching them (`cancel parallel`). It may as well if
    /// that is unknown.
    pub barriers_may_be_cancelled: bool,
    /// Task groups that the tasks are in.
    pub taskgroups: Vec<Taskgroup>,
    /// Worksharing regions that members of teams are in, as far as the runtime records them.
    pub loops: Vec<Loop>,
    /// Teams of leagues, which `teams` regions on the host make, by their initial threads.
    pub leagues: Vec<LeagueTeam>,
    /// Sets of threads it keeps for its regions.
    pub pools: Vec<Pool>,
    /// Control variables of the process as a whole; those of tasks are with the threads.
    pub settings: Vec<Setting>,
}

/// A team of a league that is being executed.
#[derive(Debug, Clone)]
pub struct LeagueTeam {
    /// Its initial thread (LWP).
    pub lwp: i32,
    /// Its number (`omp_get_team_num`).
    pub number: Fact<u32>,
    /// Teams of the league (`omp_get_num_teams`).
    pub size: Fact<u32>,
}

impl RawSnapshot {
    /// The team with this id.
    pub fn team(&self, id: TeamId) -> Option<&RawTeam> {
        self.teams.get(id.0)
    }

    /// The task with this id.
    pub fn task(&self, id: TaskId) -> Option<&RawTask> {
        self.tasks.get(id.0)
    }

    /// The task group with this id.
    pub fn taskgroup(&self, id: TaskgroupId) -> Option<&Taskgroup> {
        self.taskgroups.get(id.0)
    }

    /// The thread with this kernel thread id.
    pub fn thread_by_lwp(&self, lwp: i32) -> Option<&RawThread> {
        self.threads.get(index_by_lwp(&self.threads, |thread| thread.lwp, lwp)?)
    }
}

impl Deref for RawSnapshot {
    type Target = Recorded;

    fn deref(&self) -> &Recorded {
        &self.recorded
    }
}

/// What one runtime instance was doing at the stop, by all evidence.
#[derive(Debug, Clone)]
pub struct RuntimeSnapshot {
    /// The instance.
    pub instance: InstanceInfo,
    /// Its threads, in LWP order; those the process does not have come last.
    pub threads: Vec<Thread>,
    /// Its teams, parents before children.
    pub teams: Vec<Team>,
    /// Tasks met: current ones, their ancestors, queued ones, and those that wait for dependences.
    pub tasks: Vec<Task>,
    /// Locks that threads wait for, and those known to be held.
    pub locks: Vec<Lock>,
    /// What nothing was added to.
    pub recorded: Recorded,
    /// Trouble met on the way.
    pub issues: Vec<Issue>,
}

impl Deref for RuntimeSnapshot {
    type Target = Recorded;

    fn deref(&self) -> &Recorded {
        &self.recorded
    }
}

impl From<RawSnapshot> for RuntimeSnapshot {
    /// The snapshot with no other evidence than what was read.
    fn from(raw: RawSnapshot) -> RuntimeSnapshot {
        RuntimeSnapshot {
            instance: raw.instance,
            threads: raw.threads.into_iter().map(Thread::from).collect(),
            teams: raw.teams.into_iter().map(Team::from).collect(),
            tasks: raw.tasks.into_iter().map(Task::from).collect(),
            locks: raw.locks.into_iter().map(Lock::from).collect(),
            recorded: raw.recorded,
            issues: raw.issues,
        }
    }
}

impl RuntimeSnapshot {
    /// What was read, without what was added to it. Issues of a merge stay.
    pub fn into_raw(self) -> RawSnapshot {
        RawSnapshot {
            instance: self.instance,
            threads: self.threads.into_iter().map(|thread| thread.raw).collect(),
            teams: self.teams.into_iter().map(|team| team.raw).collect(),
            tasks: self.tasks.into_iter().map(|task| task.raw).collect(),
            locks: self.locks.into_iter().map(|lock| lock.raw).collect(),
            recorded: self.recorded,
            issues: self.issues,
        }
    }

    /// The team with this id.
    pub fn team(&self, id: TeamId) -> Option<&Team> {
        self.teams.get(id.0)
    }

    /// The task with this id.
    pub fn task(&self, id: TaskId) -> Option<&Task> {
        self.tasks.get(id.0)
    }

    /// The number of the member whose turn it is in the `ordered` loop in which members of the team wait for theirs. `None` also if
    /// they wait in several: after a loop with `nowait` members may be in the next one.
    pub fn ordered_turn(&self, team: TeamId) -> Option<u32> {
        let waits = |number: &u32| {
            let lwp = self.team(team)?.members.get(*number as usize).copied().flatten()?;
            let thread = self.thread_by_lwp(lwp)?;
            let wait = thread.wait.value()?.as_ref().filter(|wait| wait.kind == WaitKind::Ordered)?;
            // The first thread of a nested team is a member of two.
            (wait.team.or(thread.team.flat()) == Some(team)).then_some(())
        };
        let mut awaited =
            self.loops.iter().filter(|of| of.team == team && of.members.iter().any(|number| waits(number).is_some()));
        let only = awaited.next().filter(|_| awaited.next().is_none())?;
        only.ordered_turn.flat()
    }

    /// Numbers of the members seen waiting at the team's barrier, in order. A member whose wait is not known is not
    /// among them, so the rest of the team has not necessarily stayed away: see [`Barrier`].
    pub fn at_barrier(&self, team: TeamId) -> Vec<u32> {
        let Some(members) = self.team(team).map(|t| &t.members) else { return Vec::new() };
        let waiting: std::collections::HashSet<i32> = self
            .threads
            .iter()
            .filter(|t| {
                t.wait.value().and_then(Option::as_ref).is_some_and(|w| {
                    w.team == Some(team)
                        && matches!(w.kind, WaitKind::Barrier | WaitKind::RegionEnd | WaitKind::BarrierTasks)
                })
            })
            .filter_map(|t| t.lwp)
            .collect();
        (0u32..).zip(members).filter(|(_, lwp)| lwp.is_some_and(|l| waiting.contains(&l))).map(|(n, _)| n).collect()
    }

    /// The lock with this id.
    pub fn lock(&self, id: LockId) -> Option<&Lock> {
        self.locks.get(id.0)
    }

    /// The task group with this id.
    pub fn taskgroup(&self, id: TaskgroupId) -> Option<&Taskgroup> {
        self.taskgroups.get(id.0)
    }

    /// The thread with this kernel thread id.
    pub fn thread_by_lwp(&self, lwp: i32) -> Option<&Thread> {
        self.threads.get(index_by_lwp(&self.threads, |thread| thread.lwp, lwp)?)
    }
}

/// Where the thread with this kernel thread id is in the order of a snapshot: those whose id is not known come last.
pub(crate) fn index_by_lwp<T>(threads: &[T], lwp_of: impl Fn(&T) -> Option<i32>, lwp: i32) -> Option<usize> {
    let key = |thread: &T| (lwp_of(thread).is_none(), lwp_of(thread));
    threads.binary_search_by_key(&(false, Some(lwp)), key).ok()
}
