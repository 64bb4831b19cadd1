//! What a program asks of a runtime by calling one of its functions.

/// How a call of a runtime's function can lead back into the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// It executes a parallel region, the caller being the encountering thread, and returns after its end.
    OpensRegion,
    /// It executes a `teams` region. Whether a runtime has a team for the league is its own affair, and may depend on the
    /// number of teams.
    OpensLeague,
    /// It makes a task, and executes it at once if it is undeferred.
    GeneratesTask,
    /// It generates several tasks. A function that it calls itself is one of them. A function called further in may be
    /// any task of the team, because it waits for the tasks it generated.
    GeneratesTasks,
    /// It waits, or is a scheduling point for another reason, and may execute any task of the team.
    RunsTasks,
    /// It does not lead back into the program.
    Other,
}

/// The constructs, ends of constructs and API routines for which a compiler or program calls a runtime.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Construct {
    /// `parallel`.
    Parallel,
    /// `parallel for`.
    ParallelFor,
    /// `parallel sections`.
    ParallelSections,
    /// `teams`.
    Teams,
    /// `task`.
    Task,
    /// `taskloop`.
    Taskloop,
    /// `taskwait`.
    Taskwait,
    /// `taskwait depend`.
    TaskwaitDepend,
    /// `taskgroup`.
    Taskgroup,
    /// `taskyield`.
    Taskyield,
    /// `barrier`.
    Barrier,
    /// A worksharing loop.
    For,
    /// The end of a worksharing loop.
    EndOfFor,
    /// `sections`.
    Sections,
    /// The end of `sections`.
    EndOfSections,
    /// `single`.
    Single,
    /// The `copyprivate` clause of a `single`.
    Copyprivate,
    /// A `reduction` clause.
    Reduction,
    /// The end of a worksharing construct with task reductions.
    EndOfWorksharing,
    /// The end of a region that has one thread, which waits for nobody.
    EndOfParallel,
    /// `critical`.
    Critical,
    /// `atomic`.
    Atomic,
    /// `ordered`.
    Ordered,
    /// `ordered depend(sink)`.
    OrderedSink,
    /// `ordered depend(source)`.
    OrderedSource,
    /// `target`.
    Target,
    /// `omp_set_lock`.
    SetLock,
    /// `omp_set_nest_lock`.
    SetNestLock,
    /// `omp_test_lock`.
    TestLock,
    /// `omp_test_nest_lock`.
    TestNestLock,
    /// `omp_unset_lock`.
    UnsetLock,
    /// `omp_unset_nest_lock`.
    UnsetNestLock,
    /// `omp_fulfill_event`.
    FulfillEvent,
}

impl Construct {
    /// The word of the specification, without `#pragma omp`.
    pub fn word(self) -> &'static str {
        match self {
            Construct::Parallel => "parallel",
            Construct::ParallelFor => "parallel for",
            Construct::ParallelSections => "parallel sections",
            Construct::Teams => "teams",
            Construct::Task => "task",
            Construct::Taskloop => "taskloop",
            Construct::Taskwait => "taskwait",
            Construct::TaskwaitDepend => "taskwait depend",
            Construct::Taskgroup => "taskgroup",
            Construct::Taskyield => "taskyield",
            Construct::Barrier => "barrier",
            Construct::For => "for",
            Construct::EndOfFor => "end of for",
            Construct::Sections => "sections",
            Construct::EndOfSections => "end of sections",
            Construct::Single => "single",
            Construct::Copyprivate => "copyprivate",
            Construct::Reduction => "reduction",
            Construct::EndOfWorksharing => "end of worksharing",
            Construct::EndOfParallel => "end of parallel",
            Construct::Critical => "critical",
            Construct::Atomic => "atomic",
            Construct::Ordered => "ordered",
            Construct::OrderedSink => "ordered depend(sink)",
            Construct::OrderedSource => "ordered depend(source)",
            Construct::Target => "target",
            Construct::SetLock => "omp_set_lock",
            Construct::SetNestLock => "omp_set_nest_lock",
            Construct::TestLock => "omp_test_lock",
            Construct::TestNestLock => "omp_test_nest_lock",
            Construct::UnsetLock => "omp_unset_lock",
            Construct::UnsetNestLock => "omp_unset_nest_lock",
            Construct::FulfillEvent => "omp_fulfill_event",
        }
    }

    /// True if a call for it returns without a wait, unless the task that calls has a record of one. Runtimes may have locks of
    /// their own there.
    pub fn never_waits(self) -> bool {
        use Construct::{FulfillEvent, Task, TestLock, TestNestLock, UnsetLock, UnsetNestLock};
        matches!(self, Task | TestLock | TestNestLock | UnsetLock | UnsetNestLock | FulfillEvent)
    }

    /// True for the end of a construct at which the members of a team meet.
    pub fn is_team_end(self) -> bool {
        matches!(self, Construct::EndOfFor | Construct::EndOfSections | Construct::EndOfWorksharing)
    }
}

/// One function of a runtime, in OpenMP's terms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// The construct, or the API routine, that makes a compiler or program call it.
    pub construct: Construct,
    /// How it can lead back into the program.
    pub role: Role,
    /// The compiler gives the call no line of its own: debug information shows that of whatever statement comes before.
    pub unplaced: bool,
    /// Which of its arguments, from 0, is the function of the region or task.
    pub body: Option<u8>,
}

impl Entry {
    pub(crate) const fn new(construct: Construct, role: Role) -> Entry {
        Entry { construct, role, unplaced: false, body: None }
    }

    /// The same, with the function of its region or task as this argument.
    pub(crate) const fn with_body(self, argument: u8) -> Entry {
        Entry { body: Some(argument), ..self }
    }

    /// The same, called without a line.
    pub(crate) const fn unplaced(self) -> Entry {
        Entry { unplaced: true, ..self }
    }
}

impl Role {
    /// The program's function that such a call leads back into is the body of a region.
    pub fn opens(self) -> bool {
        matches!(self, Role::OpensRegion | Role::OpensLeague)
    }
}

/// A function of a runtime that acquires or releases a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Locking {
    /// It acquires the lock, or may; otherwise it releases it.
    pub acquires: bool,
    /// Which of its arguments, from 0, is the address of the lock's variable.
    pub argument: u8,
}

/// The functions of OpenMP that acquire and release locks, for each language (OpenMP 5.2, 18.9).
const LOCK_ROUTINES: &[(&str, bool)] = &[
    ("omp_set_lock", true),
    ("omp_test_lock", true),
    ("omp_set_nest_lock", true),
    ("omp_test_nest_lock", true),
    ("omp_unset_lock", false),
    ("omp_unset_nest_lock", false),
];

/// What such a function does; the names of those for Fortran end with an underscore.
pub(crate) fn lock_routine(symbol: &str) -> Option<Locking> {
    let name = symbol.strip_suffix('_').unwrap_or(symbol);
    LOCK_ROUTINES
        .iter()
        .find(|(routine, _)| *routine == name)
        .map(|(_, acquires)| Locking { acquires: *acquires, argument: 0 })
}

/// A table of entries by the beginning of the function's name; the longest match counts.
pub(crate) type Table = &'static [(&'static str, Entry)];

/// The entry for a function in such a table.
pub(crate) fn look_up(table: Table, symbol: &str) -> Option<Entry> {
    table
        .iter()
        .filter(|(prefix, _)| symbol.starts_with(prefix))
        .max_by_key(|(prefix, _)| prefix.len())
        .map(|(_, e)| *e)
}
