//! Waits, and the locks waited for.

use std::ops::Deref;

use ompd_layout::Origin;
use ompd_process::Addr;

use crate::entry::Construct;

use super::{Common, Fact, LockId, Owner, Site, SourceLine, State, TaskgroupId, TeamId};

/// What a blocked thread waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitKind {
    /// A barrier of a team, inside its region: see [`Wait::barrier`].
    Barrier,
    /// The barrier that ends a parallel region.
    RegionEnd,
    /// The other members of the team, to start a region.
    RegionStart,
    /// A barrier all members have reached, until the team's remaining tasks have run.
    BarrierTasks,
    /// A lock or nest lock.
    Lock,
    /// A critical construct.
    Critical,
    /// The lock behind `atomic` constructs.
    Atomic,
    /// A lock, nest lock or named critical: the runtime does not record which.
    Mutex,
    /// Children of the current task.
    Taskwait,
    /// Tasks of a taskgroup.
    Taskgroup,
    /// One of the two: the runtime does not record which.
    TaskwaitOrTaskgroup,
    /// Tasks that the dependences of the current task name.
    Dependences,
    /// The event of the current task, which has a `detach` clause and is not deferred.
    Event,
    /// Its turn in an `ordered` region.
    Ordered,
    /// Another iteration of a doacross loop, to reach its `ordered depend(source)` (`ordered doacross(source:)`).
    Sink,
    /// A lock of the runtime's own on what it keeps of a device.
    Device,
    /// The next parallel region: nothing is wrong with this thread.
    Pool,
    /// A lock inside the runtime.
    RuntimeInternal,
}

impl WaitKind {
    /// The words used in reports.
    pub fn word(self) -> &'static str {
        match self {
            WaitKind::Barrier => "barrier",
            WaitKind::RegionStart => "start of region",
            WaitKind::RegionEnd => "end of region",
            WaitKind::BarrierTasks => "barrier (tasks left)",
            WaitKind::Lock => "lock",
            WaitKind::Critical => "critical",
            WaitKind::Atomic => "atomic",
            WaitKind::Mutex => "lock or critical",
            WaitKind::Device => "device lock",
            WaitKind::Taskwait => "taskwait",
            WaitKind::Taskgroup => "taskgroup",
            WaitKind::TaskwaitOrTaskgroup => "taskwait or taskgroup",
            WaitKind::Dependences => "dependences",
            WaitKind::Event => "event",
            WaitKind::Ordered => "ordered",
            WaitKind::Sink => "ordered depend(sink)",
            WaitKind::Pool => "next region",
            WaitKind::RuntimeInternal => "runtime internal",
        }
    }

    /// A task waits for others that it has generated.
    pub fn is_for_tasks(self) -> bool {
        use WaitKind::{Dependences, Taskgroup, Taskwait, TaskwaitOrTaskgroup};
        matches!(self, Taskwait | Taskgroup | TaskwaitOrTaskgroup | Dependences)
    }

    /// The thread state this wait amounts to; `None` where OMPT has no state for it, or it may be either of two.
    pub fn state(self) -> Option<State> {
        Some(match self {
            WaitKind::TaskwaitOrTaskgroup | WaitKind::Dependences | WaitKind::Event => return None,
            WaitKind::RegionStart => State::WaitBarrierImplementation,
            WaitKind::Barrier | WaitKind::BarrierTasks => State::WaitBarrier,
            WaitKind::RegionEnd => State::WaitBarrierImplicitParallel,
            WaitKind::Lock => State::WaitLock,
            WaitKind::Critical => State::WaitCritical,
            WaitKind::Atomic => State::WaitAtomic,
            WaitKind::Mutex | WaitKind::Device => State::WaitMutex,
            WaitKind::Taskwait => State::WaitTaskwait,
            WaitKind::Taskgroup => State::WaitTaskgroup,
            WaitKind::Ordered | WaitKind::Sink => State::WaitOrdered,
            WaitKind::Pool => State::Idle,
            WaitKind::RuntimeInternal => State::Overhead,
        })
    }

    /// True for what is set free by whoever holds it, and not by a task or a thread that comes.
    pub fn is_for_lock(self) -> bool {
        matches!(self, WaitKind::Lock | WaitKind::Critical | WaitKind::Atomic | WaitKind::Mutex | WaitKind::Device)
    }

    /// That state as a fact of the same origin as the wait.
    pub(crate) fn state_fact(self, origin: Origin) -> Fact<State> {
        match self.state() {
            Some(state) => Fact::known(state, origin),
            None => Fact::unknown(Common::NoSingleState { wait: self.word() }),
        }
    }
}

/// What makes the threads of a team meet at a barrier inside their region.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BarrierKind {
    /// A `barrier` construct.
    Explicit,
    /// The end of a worksharing loop.
    Loop,
    /// The end of `sections`.
    Sections,
    /// The end of a `single`, or its `copyprivate` clause.
    Single,
    /// The end of a Fortran `workshare`.
    Workshare,
    /// Compilers mark the end of a loop and implicit barriers of no certain kind alike (of clauses that need one).
    LoopOrUnspecified,
    /// An implicit barrier, of a reduction for instance.
    Implicit,
}

impl BarrierKind {
    /// The words used in reports.
    pub fn word(self) -> &'static str {
        match self {
            BarrierKind::Explicit => "explicit",
            BarrierKind::Loop => "loop",
            BarrierKind::Sections => "sections",
            BarrierKind::Single => "single",
            BarrierKind::Workshare => "workshare",
            BarrierKind::LoopOrUnspecified => "loop or unspecified",
            BarrierKind::Implicit => "implicit",
        }
    }
}

/// One thread's wait.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wait {
    /// What kind of thing it waits for.
    pub kind: WaitKind,
    /// Address of the thing: the lock variable where the runtime knows it, else the runtime's own object.
    pub object: Addr,
    /// Name of the thing, where a symbol covers it or the runtime names it.
    pub name: Option<String>,
    /// Source line the runtime recorded for the wait or for the lock; else that of the call that waits, by its stack.
    pub location: Option<SourceLine>,
    /// The team whose barrier it is.
    pub team: Option<TeamId>,
    /// At a barrier inside a region: which kind of barrier it is.
    pub barrier: Option<Fact<BarrierKind>>,
    /// The lock it is, where it is one.
    pub lock: Option<LockId>,
    /// The task group, at the end of one.
    pub taskgroup: Option<TaskgroupId>,
    /// False: what it waits for had not happened at the stop. True: it had, and the thread is about to go on.
    pub over: Fact<bool>,
    /// True if it sleeps in the kernel, false if it tries again and again.
    pub asleep: Option<bool>,
    /// The construct or function by which the program called the runtime to wait, as its stack tells.
    pub call: Option<Construct>,
    /// How the wait was recognised.
    pub origin: Origin,
}

impl Wait {
    /// A wait for `object`, of which nothing else is known yet.
    pub fn new(kind: WaitKind, object: Addr, origin: Origin) -> Wait {
        let barrier = matches!(kind, WaitKind::Barrier | WaitKind::BarrierTasks);
        Wait {
            barrier: barrier.then(|| match origin {
                Origin::Stack => Fact::unknown(Common::OnlyStackTells),
                _ => Fact::unknown(Common::NotRecordedByRuntime),
            }),
            kind,
            object,
            name: None,
            location: None,
            team: None,
            lock: None,
            taskgroup: None,
            over: Fact::unknown(Common::NotLookedAt),
            asleep: None,
            call: None,
            origin,
        }
    }
}

/// Kinds of locks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LockKind {
    /// `omp_lock_t`.
    Lock,
    /// `omp_nest_lock_t`.
    NestLock,
    /// The lock behind a `critical` construct.
    Critical,
    /// The lock behind `atomic` constructs.
    Atomic,
    /// A lock of the runtime's own on what it keeps of a device.
    Device,
}

impl LockKind {
    /// The words used in reports.
    pub fn word(self) -> &'static str {
        match self {
            LockKind::Lock => "lock",
            LockKind::NestLock => "nest lock",
            LockKind::Critical => "critical",
            LockKind::Atomic => "atomic",
            LockKind::Device => "device lock",
        }
    }
}

/// A lock that some thread waits for, or that is known to be held, as its runtime has it.
#[derive(Debug, Clone)]
pub struct RawLock {
    /// Address of the lock variable where the runtime knows it, else of its own object.
    pub object: Addr,
    /// Its kind.
    pub kind: Fact<LockKind>,
    /// Name, where the runtime itself gives it one.
    pub name: Option<String>,
    /// Source line the runtime recorded for it (of a `critical`).
    pub location: Option<SourceLine>,
    /// Who holds it, where the runtime records it; `Known(None)`: it is free.
    pub owner: Fact<Option<Owner>>,
    /// Whether it is held, known also where the owner is not.
    pub held: Fact<bool>,
    /// What the program's variable holds to name it, where the runtime keeps the lock itself elsewhere: a word of 32 bits.
    pub variable_word: Option<u32>,
    /// The wait id by which OMPT tools know it, where that is not its address.
    pub wait_id: Option<Addr>,
    /// How often its owner has set a nest lock.
    pub depth: Option<u32>,
    /// Threads (LWP) that wait for it, in their order where the runtime queues them.
    pub waiters: Vec<i32>,
    /// The runtime queues its waiters: `waiters` are all, in the order in which they get it.
    pub queued: bool,
}

/// A lock: as it was read, and what all evidence says of its variable and owner.
#[derive(Debug, Clone)]
pub struct Lock {
    pub(crate) raw: RawLock,
    /// Address of the lock variable where it is known, else of the runtime's own object.
    pub object: Addr,
    /// Address of the variable, where the runtime does not know it and the call of a thread that waits gives it.
    pub variable: Option<Addr>,
    /// Its kind.
    pub kind: Fact<LockKind>,
    /// Name, where a symbol covers it or the runtime names it.
    pub name: Option<String>,
    /// Who holds it; `Known(None)`: it is free.
    pub owner: Fact<Option<Owner>>,
    /// Where its owner has acquired it; no runtime records that, an OMPT companion does.
    pub acquired: Option<Site>,
}

impl Deref for Lock {
    type Target = RawLock;

    fn deref(&self) -> &RawLock {
        &self.raw
    }
}

impl From<RawLock> for Lock {
    /// The lock with no other evidence than what was read.
    fn from(raw: RawLock) -> Lock {
        Lock {
            object: raw.object,
            variable: None,
            kind: raw.kind.clone(),
            name: raw.name.clone(),
            owner: raw.owner.clone(),
            acquired: None,
            raw,
        }
    }
}
