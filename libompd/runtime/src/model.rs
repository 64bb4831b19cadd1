//! The neutral model: what an OpenMP process is doing, in OpenMP's own terms.
//!
//! Everything here was read in one stop. A [`Fact`] carries the origin of its value; what could not be read says why.
//! Ids ([`TeamId`], [`TaskId`]) index into the [`RuntimeSnapshot`] they come from and mean nothing elsewhere.

use std::fmt;

use ompd_layout::Origin;
use ompd_target::{Addr, BuildId, NeededBy};

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
        /// Why, as a sentence fragment for people.
        why: String,
    },
}

impl<T> Fact<T> {
    /// A value that was read.
    pub fn known(value: T, origin: Origin) -> Self {
        Fact::Known { value, origin }
    }

    /// A value that could not be read.
    pub fn unknown(why: impl fmt::Display) -> Self {
        Fact::Unknown { why: why.to_string() }
    }

    /// The value, if known.
    pub fn value(&self) -> Option<&T> {
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
    pub fn why(&self) -> Option<&str> {
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

/// Which implementation family an instance belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// GCC's libgomp.
    Gomp,
    /// LLVM's libomp and its twin, Intel's libiomp5.
    Kmp,
}

impl Family {
    /// The word used in reports: the runtime's own prefix.
    pub fn word(self) -> &'static str {
        match self {
            Family::Gomp => "gomp",
            Family::Kmp => "kmp",
        }
    }
}

/// Something worth telling that did not stop the inspection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Issue {
    /// What is affected, in a few words (`thread 4711`, `team 0x…`, `layout`).
    pub subject: String,
    /// What happened and what it costs.
    pub text: String,
}

impl Issue {
    /// An issue about `subject`.
    pub fn new(subject: impl Into<String>, text: impl fmt::Display) -> Self {
        Issue { subject: subject.into(), text: text.to_string() }
    }
}

/// Index of a team in [`RuntimeSnapshot::teams`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TeamId(pub usize);

/// Index of a task in [`RuntimeSnapshot::tasks`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskId(pub usize);

/// What a thread is to this runtime.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// An initial thread: a thread the program made itself, which encountered OpenMP.
    Initial,
    /// A thread the runtime made, at present a member of a team.
    Worker,
    /// A thread the runtime made, waiting for its next region.
    IdleWorker,
}

impl Role {
    /// The words used in reports.
    pub fn word(self) -> &'static str {
        match self {
            Role::Initial => "initial",
            Role::Worker => "worker",
            Role::IdleWorker => "idle worker",
        }
    }
}

/// Thread states, by their OMPT 5.x numbers (OpenMP 5.2, section 19.4.4.27).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum State {
    /// Executing outside all parallel regions.
    WorkSerial = 0x000,
    /// Executing inside a parallel region.
    WorkParallel = 0x001,
    /// At a barrier whose kind is not known.
    WaitBarrier = 0x010,
    /// At the barrier that ends a parallel region.
    WaitBarrierImplicitParallel = 0x011,
    /// In a `taskwait`.
    WaitTaskwait = 0x020,
    /// At the end of a `taskgroup`.
    WaitTaskgroup = 0x021,
    /// At a barrier the implementation needs.
    WaitBarrierImplementation = 0x015,
    /// For a lock, critical or atomic: which of them is not known.
    WaitMutex = 0x040,
    /// For an `omp_lock_t` or `omp_nest_lock_t`.
    WaitLock = 0x041,
    /// For a `critical`.
    WaitCritical = 0x042,
    /// For an `atomic`.
    WaitAtomic = 0x043,
    /// For its turn in an `ordered`.
    WaitOrdered = 0x044,
    /// Waiting for work outside all regions.
    Idle = 0x100,
    /// Executing runtime code.
    Overhead = 0x101,
}

impl State {
    /// The OMPT number.
    pub fn number(self) -> u32 {
        self as u32
    }

    /// The OMPT name without `ompt_state_`.
    pub fn name(self) -> &'static str {
        match self {
            State::WorkSerial => "work_serial",
            State::WorkParallel => "work_parallel",
            State::WaitBarrier => "wait_barrier",
            State::WaitBarrierImplicitParallel => "wait_barrier_implicit_parallel",
            State::WaitBarrierImplementation => "wait_barrier_implementation",
            State::WaitTaskwait => "wait_taskwait",
            State::WaitTaskgroup => "wait_taskgroup",
            State::WaitMutex => "wait_mutex",
            State::WaitLock => "wait_lock",
            State::WaitCritical => "wait_critical",
            State::WaitAtomic => "wait_atomic",
            State::WaitOrdered => "wait_ordered",
            State::Idle => "idle",
            State::Overhead => "overhead",
        }
    }
}

/// The state of a thread that does not wait: inside or outside a region of more than one thread.
pub(crate) fn working(team: &Fact<Option<TeamId>>, teams: &[Team], origin: Origin) -> Fact<State> {
    match team {
        Fact::Known { value: None, .. } => Fact::known(State::WorkSerial, origin),
        Fact::Known { value: Some(id), .. } => match teams.get(id.0).and_then(|t| t.active_level.get()) {
            Some(0) => Fact::known(State::WorkSerial, origin),
            Some(_) => Fact::known(State::WorkParallel, origin),
            None => Fact::unknown("the active level of its team is not known"),
        },
        Fact::Unknown { why } => Fact::unknown(why),
    }
}

/// What a blocked thread waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitKind {
    /// A barrier of a team, explicit or implicit: the runtime does not record which.
    Barrier,
    /// The barrier that ends a parallel region.
    RegionEnd,
    /// The other members of the team, to start the region.
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
    /// Its turn in an `ordered` region.
    Ordered,
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
            WaitKind::Taskwait => "taskwait",
            WaitKind::Taskgroup => "taskgroup",
            WaitKind::TaskwaitOrTaskgroup => "taskwait or taskgroup",
            WaitKind::Dependences => "dependences",
            WaitKind::Ordered => "ordered",
            WaitKind::Pool => "next region",
            WaitKind::RuntimeInternal => "runtime internal",
        }
    }

    /// The thread state this wait amounts to; `None` where OMPT has no state for it, or it may be either of two.
    pub fn state(self) -> Option<State> {
        Some(match self {
            WaitKind::TaskwaitOrTaskgroup | WaitKind::Dependences => return None,
            WaitKind::RegionStart => State::WaitBarrierImplementation,
            WaitKind::Barrier | WaitKind::BarrierTasks => State::WaitBarrier,
            WaitKind::RegionEnd => State::WaitBarrierImplicitParallel,
            WaitKind::Lock => State::WaitLock,
            WaitKind::Critical => State::WaitCritical,
            WaitKind::Atomic => State::WaitAtomic,
            WaitKind::Mutex => State::WaitMutex,
            WaitKind::Taskwait => State::WaitTaskwait,
            WaitKind::Taskgroup => State::WaitTaskgroup,
            WaitKind::Ordered => State::WaitOrdered,
            WaitKind::Pool => State::Idle,
            WaitKind::RuntimeInternal => State::Overhead,
        })
    }

    /// That state as a fact of the same origin as the wait.
    pub(crate) fn state_fact(self, origin: Origin) -> Fact<State> {
        match self.state() {
            Some(state) => Fact::known(state, origin),
            None => Fact::unknown(format!("no single OMPT state stands for a wait for {}", self.word())),
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
    /// How the wait was recognised.
    pub origin: Origin,
}

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

/// One OpenMP thread of one runtime instance.
#[derive(Debug, Clone)]
pub struct Thread {
    /// Kernel thread id; `None` for a thread the runtime lists but the process no longer has (after `fork`).
    pub lwp: Option<i32>,
    /// Address of the runtime's own descriptor (`gomp_thread`, `kmp_info`).
    pub descriptor: Addr,
    /// The runtime's global number of the thread, where it has one (`gtid` of libomp).
    pub gtid: Option<u32>,
    /// What it is to the runtime.
    pub role: Fact<Role>,
    /// Number within its innermost team (`omp_get_thread_num`).
    pub thread_num: Fact<u32>,
    /// Innermost team; `Known(None)` outside all parallel regions and for idle workers.
    pub team: Fact<Option<TeamId>>,
    /// Task it executes now.
    pub task: Fact<TaskId>,
    /// Thread state, derived from what follows.
    pub state: Fact<State>,
    /// What it waits for, if it waits for something of the runtime's; `Known(None)`: it is not blocked in the runtime.
    pub wait: Fact<Option<Wait>>,
    /// Control variables in force for the task it executes.
    pub icvs: Icvs,
}

/// One team: the threads executing one parallel region.
#[derive(Debug, Clone)]
pub struct Team {
    /// Address of the runtime's descriptor (`gomp_team`, `kmp_team`). Serialized regions of libomp share one.
    pub descriptor: Addr,
    /// Members (`omp_get_num_threads`).
    pub size: Fact<u32>,
    /// Nesting level (`omp_get_level`), 1 for an outermost region.
    pub level: Fact<u32>,
    /// Enclosing regions, this one included, with more than one thread (`omp_get_active_level`).
    pub active_level: Fact<u32>,
    /// The team of the encountering thread; `Known(None)` at level 1.
    pub parent: Fact<Option<TeamId>>,
    /// Thread number of the encountering thread in the parent team (`omp_get_ancestor_thread_num`); 0 at level 1.
    pub primary_num: Fact<u32>,
    /// True if the region is executed by one thread.
    pub serialized: Fact<bool>,
    /// The function the region's body was outlined into.
    pub function: Fact<CodeRef>,
    /// Where the construct stands in the source; of origin [`Origin::Dwarf`] where the code of its body begins.
    pub location: Fact<SourceLine>,
    /// Which construct it is (`parallel`, `parallel for`, `teams`, …); only the stacks of its threads tell.
    pub construct: Fact<&'static str>,
    /// LWP of each member by thread number, as far as found.
    pub members: Vec<Option<i32>>,
    /// Progress of the team's barrier.
    pub barrier: Fact<Barrier>,
}

/// A team's barrier: the one all barriers inside its region use in turn, and the one at its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Barrier {
    /// Members that have arrived at a barrier inside the region, as counted by the runtime; `None` where it keeps no count.
    pub inside: Option<u32>,
    /// Members that have arrived at the end of the region; `None` where the runtime keeps no count.
    pub at_end: Option<u32>,
    /// Members it waits for.
    pub size: u32,
}

/// Kinds of tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskState {
    /// Some thread executes it now.
    Running,
    /// Started, and waiting on some thread's stack while that thread runs another task.
    Suspended,
    /// In a queue, not started.
    Ready,
    /// Detached: its body is over, its event not fulfilled.
    Detached,
}

impl TaskState {
    /// The word used in reports.
    pub fn word(self) -> &'static str {
        match self {
            TaskState::Running => "running",
            TaskState::Suspended => "suspended",
            TaskState::Ready => "ready",
            TaskState::Detached => "detached",
        }
    }
}

/// One task.
#[derive(Debug, Clone)]
pub struct Task {
    /// Address of the runtime's descriptor (`gomp_task`, `kmp_taskdata`).
    pub descriptor: Addr,
    /// Its kind.
    pub kind: Fact<TaskKind>,
    /// Where it is in its life.
    pub state: Fact<TaskState>,
    /// Its function; for implicit tasks the region's.
    pub function: Fact<CodeRef>,
    /// Where the construct stands in the source; of origin [`Origin::Dwarf`] where the code of its body begins.
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
}

/// Loop schedules of `run-sched-var`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Schedule {
    /// Kind, by the number of `omp_sched_t` (1 static, 2 dynamic, 3 guided, 4 auto; others are the runtime's own).
    pub kind: u32,
    /// The `monotonic` modifier is set.
    pub monotonic: bool,
    /// Chunk size; 0 where none was given.
    pub chunk: i64,
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.monotonic {
            f.write_str("monotonic:")?;
        }
        match self.kind {
            1 => f.write_str("static")?,
            2 => f.write_str("dynamic")?,
            3 => f.write_str("guided")?,
            4 => f.write_str("auto")?,
            other => write!(f, "kind {other}")?,
        }
        if self.chunk > 0 { write!(f, ",{}", self.chunk) } else { Ok(()) }
    }
}

/// Values of `bind-var` (`omp_proc_bind_t`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcBind(pub u32);

impl fmt::Display for ProcBind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 => f.write_str("false"),
            1 => f.write_str("true"),
            2 => f.write_str("primary"),
            3 => f.write_str("close"),
            4 => f.write_str("spread"),
            other => write!(f, "kind {other}"),
        }
    }
}

/// Internal control variables in force for one thread's current task.
#[derive(Debug, Clone)]
pub struct Icvs {
    /// `nthreads-var` (`omp_get_max_threads`).
    pub nthreads: Fact<u64>,
    /// `dyn-var` (`omp_get_dynamic`).
    pub dynamic: Fact<bool>,
    /// `run-sched-var` (`omp_get_schedule`).
    pub schedule: Fact<Schedule>,
    /// `max-active-levels-var` (`omp_get_max_active_levels`).
    pub max_active_levels: Fact<u64>,
    /// `thread-limit-var`; `None`: no limit is set.
    pub thread_limit: Fact<Option<u64>>,
    /// `bind-var` (`omp_get_proc_bind`).
    pub bind: Fact<ProcBind>,
    /// `levels-var` (`omp_get_level`).
    pub levels: Fact<u32>,
    /// `active-levels-var` (`omp_get_active_level`).
    pub active_levels: Fact<u32>,
}

impl Icvs {
    /// All unknown, for one reason.
    pub fn unknown(why: &str) -> Self {
        Icvs {
            nthreads: Fact::unknown(why),
            dynamic: Fact::unknown(why),
            schedule: Fact::unknown(why),
            max_active_levels: Fact::unknown(why),
            thread_limit: Fact::unknown(why),
            bind: Fact::unknown(why),
            levels: Fact::unknown(why),
            active_levels: Fact::unknown(why),
        }
    }
}

/// What is known of a runtime instance before anything is stopped: identity and how its layout was found.
#[derive(Debug, Clone)]
pub struct InstanceInfo {
    /// Implementation family.
    pub family: Family,
    /// Product, as far as it can be told from the image (`GNU libgomp`, `LLVM libomp`, `Intel libiomp5`).
    pub product: &'static str,
    /// Path of the module as the target names it.
    pub path: String,
    /// Path of the file that was read in its stead, as this program sees it; `None` if there was none.
    pub file: Option<String>,
    /// Lowest mapped address of the module.
    pub base: Addr,
    /// Build-id of the module.
    pub build_id: Option<BuildId>,
    /// Why it is in the process, as far as the files of the other modules tell.
    pub needed_by: Option<NeededBy>,
    /// Origins that were tried, in order, with their outcome.
    pub origins: Vec<OriginReport>,
    /// Every value of the layout as `(name, value, origin, detail)`.
    pub layout: Vec<LayoutEntry>,
    /// What no origin gave.
    pub missing: Vec<Lack>,
    /// Trouble met while finding the layout.
    pub issues: Vec<Issue>,
}

/// Values of a layout that nobody knows, and what that costs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lack {
    /// What is not shown because of it, as a clause.
    pub cost: &'static str,
    /// `struct.field`, `sizeof(struct)` or a global's name.
    pub names: Vec<String>,
}

/// One origin that was tried.
#[derive(Debug, Clone)]
pub struct OriginReport {
    /// The kind of evidence.
    pub origin: Origin,
    /// Where it was looked for.
    pub detail: String,
    /// Values it gave.
    pub values: usize,
    /// Why it gave none, or what is worth knowing about it.
    pub note: Option<String>,
    /// Lines for whoever looks into it: places looked at with the outcome, functions that could not be decoded.
    pub details: Vec<String>,
}

/// One value of a layout.
#[derive(Debug, Clone)]
pub struct LayoutEntry {
    /// `struct.field`, `sizeof(struct)` or a global's name.
    pub name: String,
    /// Offset, size or address, in hex where it is an address or offset.
    pub value: String,
    /// The kind of evidence.
    pub origin: Origin,
    /// File, profile or function it was found in.
    pub detail: String,
}

/// Threads a runtime keeps from region to region. libgomp has a pool for each contention group, libomp one for all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pool {
    /// LWP of each; `None` where the process has no such thread, as in the child of a fork.
    pub threads: Vec<Option<i32>>,
}

/// What one runtime instance was doing at the stop.
#[derive(Debug, Clone)]
pub struct RuntimeSnapshot {
    /// The instance.
    pub instance: InstanceInfo,
    /// Its threads, in LWP order.
    pub threads: Vec<Thread>,
    /// Its teams, parents before children.
    pub teams: Vec<Team>,
    /// Tasks met: current ones, their ancestors, and queued ones.
    pub tasks: Vec<Task>,
    /// Sets of threads it keeps for its regions.
    pub pools: Vec<Pool>,
    /// Trouble met on the way.
    pub issues: Vec<Issue>,
}

impl RuntimeSnapshot {
    /// The team with this id.
    pub fn team(&self, id: TeamId) -> Option<&Team> {
        self.teams.get(id.0)
    }

    /// The task with this id.
    pub fn task(&self, id: TaskId) -> Option<&Task> {
        self.tasks.get(id.0)
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

    /// The thread with this kernel thread id.
    pub fn thread_by_lwp(&self, lwp: i32) -> Option<&Thread> {
        self.threads.iter().find(|t| t.lwp == Some(lwp))
    }
}
