//! The control variables, each with what is known of it.

use crate::icvs::said::{self, Began, Says, texts};
use crate::icvs::variables::Variables;
use crate::model::*;

/// A control variable.
#[derive(Debug)]
pub struct Entry {
    /// It, by its name.
    pub icv: Icv,
    /// How far it reaches.
    pub scope: Scope,
    /// What its value is.
    pub kind: Kind,
    /// Its key among the control variables of a task in JSON; `None` for those that tasks do not
    /// have.
    pub key: Option<&'static str>,
    /// The function of the OpenMP API that returns its value.
    pub getter: Option<&'static str>,
    /// The variables of the environment that set it, the specification's own first. Families may
    /// have others.
    pub variables: &'static [&'static str],
    /// It is a list with an item for each level of nesting.
    pub is_list: bool,
    /// The most that can be believed of a number that cannot be negative.
    pub most: Option<i64>,
    /// Where the model has its value.
    pub holder: Holder,
    /// How it is offered to debuggers; `None` for a runtime's own, which the specification does not
    /// know.
    pub ompd: Option<Ompd>,
    /// What a variable's text says; of a list, that of one item.
    pub(crate) parse: Parse,
    /// What else may set it where its variables say nothing.
    pub(crate) implied: Option<Implied>,
    /// A value is what a variable's text says.
    pub(crate) agrees: Agrees,
    /// What the runtime has where nothing is said, if that is known.
    pub(crate) default: DefaultOf,
}

/// See [`Entry::parse`].
pub(crate) type Parse = fn(&str, &Variables) -> Option<IcvValue>;
/// See [`Entry::implied`].
pub(crate) type Implied = fn(&Began<'_>) -> Says<IcvValue>;
/// See [`Entry::agrees`]: the value, and what is said.
pub(crate) type Agrees = fn(&IcvValue, &IcvValue) -> bool;
/// See [`Entry::default`]: what the runtime began with, and the value it has now.
pub(crate) type DefaultOf = fn(&Began<'_>, &IcvValue) -> Option<IcvValue>;

/// What the value of a control variable is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// [`IcvValue::Number`].
    Number,
    /// [`IcvValue::Count`].
    Count,
    /// [`IcvValue::Count`] of levels of nesting.
    Levels,
    /// [`IcvValue::Limit`].
    Limit,
    /// [`IcvValue::Flag`].
    Flag,
    /// [`IcvValue::Schedule`].
    Schedule,
    /// [`IcvValue::Bind`].
    Bind,
    /// [`IcvValue::Allocator`].
    Allocator,
    /// [`IcvValue::Word`]: `enabled` or `disabled`.
    Switch,
    /// [`IcvValue::Word`], one of several.
    Word,
    /// [`IcvValue::Text`].
    Text,
}

impl Kind {
    /// True for the values of such a control variable.
    pub fn has(self, value: &IcvValue) -> bool {
        match value {
            IcvValue::Number(_) => self == Kind::Number,
            IcvValue::Count(_) => matches!(self, Kind::Count | Kind::Levels),
            IcvValue::Limit(_) => self == Kind::Limit,
            IcvValue::Flag(_) => self == Kind::Flag,
            IcvValue::Schedule(_) => self == Kind::Schedule,
            IcvValue::Bind(_) => self == Kind::Bind,
            IcvValue::Allocator(_) => self == Kind::Allocator,
            IcvValue::Word(_) => matches!(self, Kind::Switch | Kind::Word),
            IcvValue::Text(_) => self == Kind::Text,
        }
    }
}

/// Where the model has the value of a control variable.
#[derive(Debug, Clone, Copy)]
pub enum Holder {
    /// In [`Recorded::settings`].
    Process,
    /// In [`Icvs`].
    Task,
    /// In the team of the region. A region around all others has none, and a fixed value.
    Region {
        /// That of a team.
        of: fn(&Team) -> Fact<IcvValue>,
        /// That of the outermost region.
        outermost: u64,
    },
    /// In the thread; a task may have it as well.
    Thread {
        /// That of a thread.
        of: fn(&Thread) -> Fact<IcvValue>,
        /// That of a task, which is the one of the thread that executes it.
        of_task: fn(&Task) -> Option<IcvValue>,
    },
    /// In the task itself, whether or not it is executed.
    Descriptor(fn(&Task) -> Fact<IcvValue>),
}

/// How a control variable is offered to debuggers by OMPD.
#[derive(Debug, Clone, Copy)]
pub struct Ompd {
    /// Its number, which never changes.
    pub id: u64,
    /// Other names it has there, with the number of each.
    pub aliases: &'static [(u64, &'static str)],
    /// Its scope for debuggers that ask for OpenMP 5.0: that in which they have found it since
    /// there is OMPD.
    pub first_scope: Scope,
    /// The first version of OpenMP that has it, as `_OPENMP` says it.
    pub since: u32,
    /// Debuggers that ask for OpenMP 5.0 are offered it only where its value could be read.
    pub if_known: bool,
}

impl Ompd {
    const fn new(id: u64, first_scope: Scope) -> Ompd {
        Ompd { id, aliases: &[], first_scope, since: 201_811, if_known: false }
    }

    const fn of_process(id: u64) -> Option<Ompd> {
        Some(Ompd::new(id, Scope::Device))
    }

    const fn since(self, since: u32) -> Ompd {
        Ompd { since, ..self }
    }

    const fn also(self, aliases: &'static [(u64, &'static str)]) -> Ompd {
        Ompd { aliases, ..self }
    }

    const fn if_known(self) -> Ompd {
        Ompd { if_known: true, ..self }
    }
}

/// OpenMP 5.1 and 5.2 by their `_OPENMP`.
const V51: u32 = 202_011;
const V52: u32 = 202_111;

impl From<&Entry> for Icv {
    fn from(entry: &Entry) -> Icv {
        entry.icv
    }
}

impl Entry {
    /// What holds of most that a task has.
    const OF_TASK: Entry = Entry {
        icv: Icv(""),
        scope: Scope::Task,
        kind: Kind::Count,
        key: None,
        getter: None,
        variables: &[],
        is_list: false,
        most: None,
        holder: Holder::Task,
        ompd: None,
        parse: texts::odd,
        implied: None,
        agrees: |own, said| own == said,
        default: |_, _| None,
    };

    /// What holds of most that a process has.
    pub(crate) const OF_PROCESS: Entry =
        Entry { scope: Scope::Device, kind: Kind::Number, holder: Holder::Process, ..Entry::OF_TASK };

    /// Its name.
    pub fn name(&self) -> &'static str {
        self.icv.0
    }

    /// True if it has a source: the environment, a call, or the runtime itself. The others are what
    /// the nesting of regions makes of them.
    pub fn can_be_set(&self) -> bool {
        !self.variables.is_empty()
    }

    /// True if a runtime has one of it for the process.
    pub fn is_of_process(&self) -> bool {
        matches!(self.holder, Holder::Process)
    }
}

/// Those that are in [`Icvs`], with the key that each has in JSON.
pub fn of_tasks() -> impl Iterator<Item = (&'static str, &'static Entry)> {
    REGISTRY.iter().filter_map(|entry| Some((entry.key?, *entry)))
}

fn count(fact: &Fact<u32>) -> Fact<IcvValue> {
    fact.clone().map(|count| IcvValue::Count(count.into()))
}

fn of_kind(task: &Task, is: fn(TaskKind) -> bool) -> Fact<IcvValue> {
    task.kind.clone().map(|kind| IcvValue::Flag(is(kind)))
}

macro_rules! registry {
    ($($(#[$doc:meta])* $entry:ident = $name:literal, $base:ident { $($field:ident: $value:expr,)* })+) => {
        $($(#[$doc])* pub static $entry: Entry = Entry { icv: Icv($name), $($field: $value,)* ..Entry::$base };)+

        /// All control variables of the specification that are offered. Those of tasks come first,
        /// in the order in which they are shown, then those of the process. Those that are read
        /// from elsewhere in the model come last.
        pub static REGISTRY: &[&Entry] = &[$(&$entry),+];
    };
}

registry! {
    /// How many threads are asked for.
    NTHREADS = "nthreads-var", OF_TASK {
        key: Some("nthreads"),
        getter: Some("omp_get_max_threads"),
        variables: &["OMP_NUM_THREADS"],
        is_list: true,
        parse: texts::threads,
        default: |began, _| (began.processors)().map(IcvValue::Count),
        ompd: Some(Ompd::new(7, Scope::Thread)),
    }

    /// Whether the runtime may give fewer threads than asked for.
    DYN = "dyn-var", OF_TASK {
        key: Some("dynamic"),
        kind: Kind::Flag,
        getter: Some("omp_get_dynamic"),
        variables: &["OMP_DYNAMIC"],
        parse: texts::switch,
        default: |_, _| Some(IcvValue::Flag(false)),
        ompd: Some(Ompd::new(1, Scope::Thread)),
    }

    /// The schedule of loops that leave it open. Its default is the family's own.
    RUN_SCHED = "run-sched-var", OF_TASK {
        key: Some("schedule"),
        kind: Kind::Schedule,
        getter: Some("omp_get_schedule"),
        variables: &["OMP_SCHEDULE"],
        parse: texts::schedule,
        agrees: |own, said| match (own, said) {
            (IcvValue::Schedule(own), IcvValue::Schedule(said)) => {
                own.kind == said.kind && (own.chunk == said.chunk || said.chunk == 0 && own.chunk == 1)
            }
            _ => false,
        },
        ompd: Some(Ompd::new(2, Scope::Task)),
    }

    /// How many levels of nesting may be active.
    MAX_ACTIVE_LEVELS = "max-active-levels-var", OF_TASK {
        key: Some("max_active_levels"),
        getter: Some("omp_get_max_active_levels"),
        variables: &["OMP_MAX_ACTIVE_LEVELS"],
        parse: texts::count,
        implied: Some(said::nesting),
        default: |began, _| began.levels.map(|(default, _)| IcvValue::Count(default)),
        ompd: Some(Ompd::new(17, Scope::Task)),
    }

    /// How many threads there are at most.
    THREAD_LIMIT = "thread-limit-var", OF_TASK {
        key: Some("thread_limit"),
        kind: Kind::Limit,
        getter: Some("omp_get_thread_limit"),
        variables: &["OMP_THREAD_LIMIT"],
        parse: texts::limit,
        default: |_, _| Some(IcvValue::Limit(None)),
        ompd: Some(Ompd::new(16, Scope::Task)),
    }

    /// How threads are bound to places.
    BIND = "bind-var", OF_TASK {
        key: Some("bind"),
        kind: Kind::Bind,
        getter: Some("omp_get_proc_bind"),
        variables: &["OMP_PROC_BIND"],
        is_list: true,
        parse: texts::bind,
        implied: Some(said::places),
        default: |_, _| Some(IcvValue::Bind(ProcBind(0))),
        ompd: Some(Ompd::new(18, Scope::Task)),
    }

    /// How many regions are around.
    LEVELS = "levels-var", OF_TASK {
        key: Some("levels"),
        kind: Kind::Levels,
        getter: Some("omp_get_level"),
        holder: Holder::Region { of: |team| count(&team.level), outermost: 0 },
        ompd: Some(Ompd::new(14, Scope::Parallel)),
    }

    /// How many regions with more than one thread are around.
    ACTIVE_LEVELS = "active-levels-var", OF_TASK {
        key: Some("active_levels"),
        kind: Kind::Levels,
        getter: Some("omp_get_active_level"),
        holder: Holder::Region { of: |team| count(&team.active_level), outermost: 0 },
        ompd: Some(Ompd::new(15, Scope::Parallel)),
    }

    /// The device of constructs that name none.
    DEFAULT_DEVICE = "default-device-var", OF_TASK {
        key: Some("default_device"),
        kind: Kind::Number,
        getter: Some("omp_get_default_device"),
        variables: &["OMP_DEFAULT_DEVICE", "OMP_TARGET_OFFLOAD"],
        parse: texts::number,
        default: |_, _| Some(IcvValue::Number(0)),
        ompd: Some(Ompd::new(10, Scope::Thread)),
    }

    /// The allocator of allocations that name none.
    DEF_ALLOCATOR = "def-allocator-var", OF_TASK {
        scope: Scope::ImplicitTask,
        key: Some("def_allocator"),
        kind: Kind::Allocator,
        getter: Some("omp_get_default_allocator"),
        variables: &["OMP_ALLOCATOR"],
        parse: texts::allocator,
        default: |_, _| Some(IcvValue::Allocator(Allocator::DEFAULT)),
        ompd: Some(Ompd::new(37, Scope::Thread).if_known()),
    }

    /// Whether regions can be cancelled.
    CANCEL = "cancel-var", OF_PROCESS {
        scope: Scope::Global,
        kind: Kind::Flag,
        getter: Some("omp_get_cancellation"),
        variables: &["OMP_CANCELLATION"],
        parse: texts::switch,
        default: |_, _| Some(IcvValue::Flag(false)),
        ompd: Ompd::of_process(4),
    }

    /// The highest priority that tasks may have.
    MAX_TASK_PRIORITY = "max-task-priority-var", OF_PROCESS {
        scope: Scope::Global,
        getter: Some("omp_get_max_task_priority"),
        variables: &["OMP_MAX_TASK_PRIORITY"],
        parse: texts::number,
        default: |_, _| Some(IcvValue::Number(0)),
        ompd: Ompd::of_process(5),
    }

    /// How many processors there are. Where nothing is said it is what the runtime has counted.
    NUM_PROCS = "num-procs-var", OF_PROCESS {
        getter: Some("omp_get_num_procs"),
        // Linux for x86-64 can be built for 8192 (NR_CPUS).
        most: Some(1 << 16),
        default: |_, counted| Some(counted.clone()),
        ompd: Some(Ompd::new(19, Scope::Device).also(&[(20, "ompd-num-procs-var")])),
    }

    /// The size of threads' stacks. Where nothing is said it depends on the limit of the process.
    STACKSIZE = "stacksize-var", OF_PROCESS {
        variables: &["OMP_STACKSIZE"],
        parse: texts::size,
        ompd: Ompd::of_process(3),
    }

    /// How many teams a league has at most.
    NTEAMS = "nteams-var", OF_PROCESS {
        getter: Some("omp_get_max_teams"),
        variables: &["OMP_NUM_TEAMS"],
        parse: texts::number,
        default: |_, _| Some(IcvValue::Number(0)),
        ompd: Some(Ompd::new(33, Scope::Device).since(V51)),
    }

    /// How many threads each team of a league has at most.
    TEAMS_THREAD_LIMIT = "teams-thread-limit-var", OF_PROCESS {
        getter: Some("omp_get_teams_thread_limit"),
        variables: &["OMP_TEAMS_THREAD_LIMIT"],
        parse: texts::number,
        default: |_, _| Some(IcvValue::Number(0)),
        ompd: Some(Ompd::new(34, Scope::Device).since(V51)),
    }

    /// How the affinity of threads is printed. Its default is the family's own.
    AFFINITY_FORMAT = "affinity-format-var", OF_PROCESS {
        kind: Kind::Text,
        getter: Some("omp_get_affinity_format"),
        variables: &["OMP_AFFINITY_FORMAT"],
        parse: texts::any,
        ompd: Ompd::of_process(9),
    }

    /// Whether the affinity of threads is printed.
    DISPLAY_AFFINITY = "display-affinity-var", OF_PROCESS {
        scope: Scope::Global,
        kind: Kind::Flag,
        variables: &["OMP_DISPLAY_AFFINITY"],
        parse: texts::switch,
        default: |_, _| Some(IcvValue::Flag(false)),
        ompd: Ompd::of_process(8),
    }

    /// Whether devices are used.
    TARGET_OFFLOAD = "target-offload-var", OF_PROCESS {
        scope: Scope::Global,
        kind: Kind::Word,
        variables: &["OMP_TARGET_OFFLOAD"],
        parse: texts::offload,
        default: |_, _| Some(IcvValue::Word("default")),
        ompd: Ompd::of_process(35),
    }

    /// Whether an OMPT tool is started.
    TOOL = "tool-var", OF_PROCESS {
        scope: Scope::Global,
        kind: Kind::Switch,
        variables: &["OMP_TOOL"],
        parse: texts::enabled,
        default: |_, _| Some(IcvValue::Word("enabled")),
        ompd: Ompd::of_process(11),
    }

    /// Where OMPT tools are looked for.
    TOOL_LIBRARIES = "tool-libraries-var", OF_PROCESS {
        scope: Scope::Global,
        kind: Kind::Text,
        variables: &["OMP_TOOL_LIBRARIES"],
        parse: texts::any,
        default: |_, _| Some(IcvValue::Text(String::new())),
        ompd: Ompd::of_process(12),
    }

    /// Where the search for an OMPT tool is logged.
    TOOL_VERBOSE_INIT = "tool-verbose-init-var", OF_PROCESS {
        scope: Scope::Global,
        kind: Kind::Text,
        variables: &["OMP_TOOL_VERBOSE_INIT"],
        parse: texts::any,
        default: |_, _| Some(IcvValue::Text("disabled".to_owned())),
        ompd: Ompd::of_process(13),
    }

    /// Whether the runtime collects what OMPD needs.
    DEBUG = "debug-var", OF_PROCESS {
        scope: Scope::Global,
        kind: Kind::Switch,
        variables: &["OMP_DEBUG"],
        parse: texts::enabled,
        default: |_, _| Some(IcvValue::Word("disabled")),
        ompd: Ompd::of_process(6),
    }

    /// How threads wait.
    WAIT_POLICY = "wait-policy-var", OF_PROCESS {
        kind: Kind::Word,
        variables: &["OMP_WAIT_POLICY"],
        parse: texts::policy,
        ompd: Ompd::of_process(36),
    }

    /// The number of a thread in its team.
    THREAD_NUM = "thread-num-var", OF_TASK {
        getter: Some("omp_get_thread_num"),
        holder: Holder::Thread {
            of: |thread| count(&thread.thread_num),
            of_task: |task| task.member.map(|member| IcvValue::Count(member.into())),
        },
        ompd: Some(Ompd::new(21, Scope::Thread).also(&[(22, "ompd-thread-num-var")])),
    }

    /// Whether a task is final.
    FINAL_TASK = "final-task-var", OF_TASK {
        kind: Kind::Flag,
        getter: Some("omp_in_final"),
        holder: Holder::Descriptor(|task| task.is_final.clone().map(IcvValue::Flag)),
        ompd: Some(Ompd::new(23, Scope::Task).also(&[(24, "ompd-final-var"), (25, "ompd-final-task-var")])),
    }

    /// Whether a task is implicit.
    IMPLICIT_TASK = "implicit-task-var", OF_TASK {
        kind: Kind::Flag,
        holder: Holder::Descriptor(|task| of_kind(task, |kind| !kind.is_explicit())),
        ompd: Some(Ompd::new(26, Scope::Task).also(&[(27, "ompd-implicit-var"), (28, "ompd-implicit-task-var")])),
    }

    /// Whether a task is explicit.
    EXPLICIT_TASK = "explicit-task-var", OF_TASK {
        kind: Kind::Flag,
        getter: Some("omp_in_explicit_task"),
        holder: Holder::Descriptor(|task| of_kind(task, TaskKind::is_explicit)),
        ompd: Some(Ompd::new(31, Scope::Task).since(V52)),
    }

    /// How many threads a team has.
    TEAM_SIZE = "team-size-var", OF_TASK {
        scope: Scope::Parallel,
        getter: Some("omp_get_num_threads"),
        holder: Holder::Region { of: |team| count(&team.size), outermost: 1 },
        ompd: Some(Ompd::new(29, Scope::Parallel).also(&[(30, "ompd-team-size-var")])),
    }

    /// The places that threads may be bound to.
    PLACE_PARTITION = "place-partition-var", OF_TASK {
        scope: Scope::ImplicitTask,
        kind: Kind::Text,
        getter: Some("omp_get_partition_place_nums"),
        variables: &["OMP_PLACES"],
        holder: Holder::Thread {
            of: |thread| {
                let text = |places: Option<Partition>| places.map_or_else(String::new, |places| places.to_string());
                thread.placement.partition.clone().map(|places| IcvValue::Text(text(places)))
            },
            of_task: |_| None,
        },
        ompd: Some(Ompd::new(32, Scope::Thread).since(V51)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names, keys and numbers stand for one control variable each.
    #[test]
    fn nothing_stands_for_two() {
        let mut names: Vec<_> = REGISTRY.iter().map(|entry| entry.name()).collect();
        let mut keys: Vec<_> = of_tasks().map(|(key, _)| key).collect();
        let mut ids = Vec::new();
        for ompd in REGISTRY.iter().map(|entry| entry.ompd.expect("it is offered to debuggers")) {
            ids.push(ompd.id);
            ids.extend(ompd.aliases.iter().map(|(id, _)| *id));
            names.extend(ompd.aliases.iter().map(|(_, name)| *name));
        }
        let many = (names.len(), keys.len(), ids.len());
        names.sort_unstable();
        names.dedup();
        keys.sort_unstable();
        keys.dedup();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!((names.len(), keys.len(), ids.len()), many);
        assert!(!ids.contains(&0));
    }

    /// What one holder has is shown, and what it has not is not.
    #[test]
    fn what_a_task_has_is_shown_with_tasks() {
        for entry in REGISTRY {
            match entry.holder {
                Holder::Task => assert!(entry.key.is_some() && entry.can_be_set(), "{}", entry.name()),
                Holder::Process | Holder::Descriptor(_) | Holder::Thread { .. } => {
                    assert!(entry.key.is_none(), "{}", entry.name());
                }
                Holder::Region { .. } => {}
            }
            assert_eq!(entry.is_of_process(), matches!(entry.scope, Scope::Global | Scope::Device), "{}", entry.name());
        }
    }
}
