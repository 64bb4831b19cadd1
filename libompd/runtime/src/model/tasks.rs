//! Tasks, their dependences and task groups.

use std::ops::Deref;

use ompd_process::Addr;

use super::{CodeRef, Fact, Reason, Site, SourceLine, TaskId, TaskgroupId, TeamId, Wait};

/// Kinds of tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TaskKind {
    /// Task of an initial thread outside all regions.
    Initial,
    /// Implicit task of a team member.
    Implicit,
    /// Made by a task construct, executed later or by another thread.
    Explicit,
    /// Made by a task construct, executed at once by the thread that met it.
    Undeferred,
}

impl TaskKind {
    /// True for tasks made by a task construct.
    pub fn is_explicit(self) -> bool {
        matches!(self, TaskKind::Explicit | TaskKind::Undeferred)
    }

    /// The word used in reports.
    pub fn word(self) -> &'static str {
        match self {
            TaskKind::Initial => "initial",
            TaskKind::Implicit => "implicit",
            TaskKind::Explicit => "explicit",
            TaskKind::Undeferred => "undeferred",
        }
    }
}

/// Where a task is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TaskState {
    /// Some thread executes it now.
    Running,
    /// Started, and waiting on some thread's stack while that thread runs another task.
    Suspended,
    /// In a queue, not started.
    Ready,
    /// Not started, and in no queue: tasks that its dependences name are not over.
    Blocked,
    /// Detached: its body is over, its event not fulfilled.
    Detached,
    /// A target task that was handed to a device: no thread executes it.
    OnDevice,
}

impl TaskState {
    /// The word used in reports.
    pub fn word(self) -> &'static str {
        match self {
            TaskState::Running => "running",
            TaskState::Suspended => "suspended",
            TaskState::Ready => "ready",
            TaskState::Blocked => "blocked",
            TaskState::Detached => "detached",
            TaskState::OnDevice => "on device",
        }
    }
}

/// One task as its runtime has it.
#[derive(Debug, Clone)]
pub struct RawTask {
    /// Address of the runtime's descriptor (`gomp_task`, `kmp_taskdata`).
    pub descriptor: Addr,
    /// Its kind.
    pub kind: Fact<TaskKind>,
    /// Where it is in its life.
    pub state: Fact<TaskState>,
    /// Its function, where the runtime records it.
    pub function: Fact<Addr>,
    /// Where its construct stands in the source, where the runtime records it.
    pub location: Fact<SourceLine>,
    /// The generating task; `Known(None)` for tasks without one (or whose generating task has finished).
    pub generating: Fact<Option<TaskId>>,
    /// Team it belongs to; `Known(None)` for initial tasks.
    pub team: Fact<Option<TeamId>>,
    /// Executing thread (LWP), while it runs.
    pub thread: Option<i32>,
    /// For an implicit task: the number of the member of its team whose task it is, where known.
    pub member: Option<u32>,
    /// `final` clause in force.
    pub is_final: Fact<bool>,
    /// Whether it is tied to the thread that began it: it has no `untied` clause.
    pub tied: Fact<bool>,
    /// `mergeable` clause.
    pub mergeable: Fact<bool>,
    /// `priority` clause in force; 0 without one.
    pub priority: Fact<i64>,
    /// Innermost task group it belongs to, or that it is in itself; `Known(None)`: none.
    pub taskgroup: Fact<Option<TaskgroupId>>,
    /// Its event, of a task with a `detach` clause; `Known(None)` for tasks without, and in libgomp also once the event of
    /// a task that has not ended is fulfilled.
    pub event: Fact<Option<Event>>,
    /// What its `depend` clauses name, as far as the runtime still keeps it: both forget a task's list once it is over.
    pub dependences: Vec<RawDependence>,
    /// How many tasks it depends on that are not over.
    pub unmet: Fact<u32>,
    /// Those of them that were found.
    pub predecessors: Vec<TaskId>,
    /// Children that are not over; `None` in its place where the runtime keeps no count.
    pub unfinished_children: Fact<u32>,
    /// What an OMPT tool has filed with it; 0 where there is no tool, or it has filed nothing.
    pub tool_data: Fact<u64>,
    /// The frames the runtime has noted for OMPT tools.
    pub ompt_frames: Fact<OmptFrames>,
}

/// One task: as it was read, and what all evidence says of its code.
#[derive(Debug, Clone)]
pub struct Task {
    pub(crate) raw: RawTask,
    /// Its function; for implicit tasks the region's.
    pub function: Fact<CodeRef>,
    /// Where its construct stands in the source; of origin [`Dwarf`](ompd_layout::Origin::Dwarf) where the code of its body begins.
    pub location: Fact<SourceLine>,
    /// Where it was generated, as an OMPT companion has recorded it.
    pub created: Option<Site>,
    /// Its wait for tasks it has generated, or if it is suspended also that at a barrier. Its thread waits there, or executes other
    /// tasks meanwhile.
    pub wait: Option<Wait>,
    /// Thread (LWP) on whose stack it lies once it has been begun, where the stacks tell.
    pub stack: Option<i32>,
    /// What its `depend` clauses name, as far as the runtime still keeps it: both forget a task's list once it is over.
    pub dependences: Vec<Dependence>,
    /// False if all code of its function was looked at, and unsets no lock; `None` if nobody has looked.
    pub may_unset_locks: Option<bool>,
}

impl Deref for Task {
    type Target = RawTask;

    fn deref(&self) -> &RawTask {
        &self.raw
    }
}

impl From<RawTask> for Task {
    /// The task with no other evidence than what was read.
    fn from(raw: RawTask) -> Task {
        let dependences = raw.dependences.iter();
        Task {
            function: raw.function.clone().map(CodeRef::new),
            location: raw.location.clone(),
            created: None,
            wait: None,
            stack: None,
            dependences: dependences.map(|raw| Dependence { raw: raw.clone(), name: None }).collect(),
            may_unset_locks: None,
            raw,
        }
    }
}

/// Frames of a task as the runtime notes them for OMPT tools (`ompt_frame_t`; OpenMP 5.2, 19.4.4.28). Without a tool it notes none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OmptFrames {
    /// With which the task's code was entered.
    pub exit: Option<OmptFrame>,
    /// With which it has last entered the runtime.
    pub enter: Option<OmptFrame>,
}

/// One such frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OmptFrame {
    /// Its address, of the kind the flags say.
    pub address: Addr,
    /// `ompt_frame_flag_t`.
    pub flags: u32,
}

impl RawTask {
    /// A task of which nothing is known but where it is, for `why`.
    pub(crate) fn unknown(descriptor: Addr, why: impl Into<Reason>) -> RawTask {
        let why = &why.into();
        RawTask {
            descriptor,
            kind: Fact::unknown(why),
            state: Fact::unknown(why),
            function: Fact::unknown(why),
            location: Fact::unknown(why),
            generating: Fact::unknown(why),
            team: Fact::unknown(why),
            thread: None,
            member: None,
            is_final: Fact::unknown(why),
            tied: Fact::unknown(why),
            mergeable: Fact::unknown(why),
            priority: Fact::unknown(why),
            taskgroup: Fact::unknown(why),
            event: Fact::unknown(why),
            dependences: Vec::new(),
            unmet: Fact::unknown(why),
            predecessors: Vec::new(),
            unfinished_children: Fact::unknown(why),
            tool_data: Fact::unknown(why),
            ompt_frames: Fact::unknown(why),
        }
    }
}

/// The event of a task with a `detach` clause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    /// The value of the event handle (`omp_event_handle_t`), which `omp_fulfill_event` takes.
    pub handle: Addr,
    /// `omp_fulfill_event` has been called.
    pub fulfilled: bool,
}

/// Kinds of dependences (`depend` clause).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DependKind {
    /// `in`.
    In,
    /// `out` or `inout`: the runtimes do not tell them apart, and libgomp not `mutexinoutset` either.
    InOut,
    /// `mutexinoutset`.
    MutexInOutSet,
    /// `inoutset`.
    InOutSet,
}

impl DependKind {
    /// The word of the clause.
    pub fn word(self) -> &'static str {
        match self {
            DependKind::In => "in",
            DependKind::InOut => "inout",
            DependKind::MutexInOutSet => "mutexinoutset",
            DependKind::InOutSet => "inoutset",
        }
    }
}

/// One item of a `depend` clause as the runtime has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawDependence {
    /// Address of the storage; NULL stands for `omp_all_memory`.
    pub addr: Addr,
    /// Kind.
    pub kind: Fact<DependKind>,
}

/// One item of a `depend` clause.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dependence {
    pub(crate) raw: RawDependence,
    /// Name of the storage, where a symbol covers it.
    pub name: Option<String>,
}

impl Deref for Dependence {
    type Target = RawDependence;

    fn deref(&self) -> &RawDependence {
        &self.raw
    }
}

/// One `taskgroup` that some task met is in.
#[derive(Debug, Clone)]
pub struct Taskgroup {
    /// Address of the runtime's descriptor.
    pub descriptor: Addr,
    /// Enclosing task group; `Known(None)`: none.
    pub parent: Fact<Option<TaskgroupId>>,
    /// Tasks of the group that are not over; those of task groups within it have their own count.
    pub unfinished: Fact<u64>,
    /// It has been cancelled.
    pub cancelled: Fact<bool>,
}

/// Tasks that are told only by their number: a million queued tasks need not be listed one by one. They have the function,
/// generating task, team, task group, state and priority of one that is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MoreTasks {
    /// The task they are like.
    pub like: TaskId,
    /// How many there are beside those listed.
    pub count: u64,
}
