//! Internal control variables.

use std::fmt;
use std::sync::Arc;

use super::{Fact, Reason};

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

/// Values of `def-allocator-var` (`omp_allocator_handle_t`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Allocator(pub u64);

impl Allocator {
    /// The predefined allocators, from 1 on (OpenMP 5.2, table 6.3).
    const NAMES: [&str; 8] = [
        "omp_default_mem_alloc",
        "omp_large_cap_mem_alloc",
        "omp_const_mem_alloc",
        "omp_high_bw_mem_alloc",
        "omp_low_lat_mem_alloc",
        "omp_cgroup_mem_alloc",
        "omp_pteam_mem_alloc",
        "omp_thread_mem_alloc",
    ];

    /// The predefined allocator of that name.
    pub(crate) fn named(name: &str) -> Option<Allocator> {
        Self::NAMES.iter().zip(1..).find(|(known, _)| **known == name).map(|(_, handle)| Allocator(handle))
    }
}

impl fmt::Display for Allocator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let index = self.0.checked_sub(1).and_then(|index| usize::try_from(index).ok());
        match index.and_then(|index| Self::NAMES.get(index)) {
            Some(name) => f.write_str(name),
            None => write!(f, "allocator {:#x}", self.0),
        }
    }
}

/// How far a control variable reaches (OpenMP 5.2, table 2.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// The whole program.
    Global,
    /// One device; here that is the host, and so the process.
    Device,
    /// Each task has its own (a data environment).
    Task,
}

impl Scope {
    /// The word used in reports.
    pub fn word(self) -> &'static str {
        match self {
            Scope::Global => "global",
            Scope::Device => "device",
            Scope::Task => "task",
        }
    }
}

/// Where the value of a control variable comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// It is what a variable of the environment says that the process was started with.
    Environment {
        /// Name of that variable.
        variable: &'static str,
        /// Its text (of the target).
        text: String,
    },
    /// No variable sets it, and it is what the runtime has by itself.
    Default,
    /// It is neither: the program has set it by a call, or by changing its own environment before the runtime looked.
    Program,
}

impl Source {
    /// The word used in reports.
    pub fn word(&self) -> &'static str {
        match self {
            Source::Environment { .. } => "environment",
            Source::Default => "default",
            Source::Program => "program",
        }
    }
}

/// Where the values of a task's control variables come from.
#[derive(Debug, Clone)]
pub struct IcvSources {
    /// Of `nthreads-var`.
    pub nthreads: Fact<Source>,
    /// Of `dyn-var`.
    pub dynamic: Fact<Source>,
    /// Of `run-sched-var`.
    pub schedule: Fact<Source>,
    /// Of `max-active-levels-var`.
    pub max_active_levels: Fact<Source>,
    /// Of `thread-limit-var`.
    pub thread_limit: Fact<Source>,
    /// Of `bind-var`.
    pub bind: Fact<Source>,
    /// Of `default-device-var`.
    pub default_device: Fact<Source>,
    /// Of `def-allocator-var`.
    pub def_allocator: Fact<Source>,
}

impl IcvSources {
    /// All unknown, for one reason.
    pub fn unknown(why: impl Into<Reason>) -> Self {
        let why = &why.into();
        IcvSources {
            nthreads: Fact::unknown(why),
            dynamic: Fact::unknown(why),
            schedule: Fact::unknown(why),
            max_active_levels: Fact::unknown(why),
            thread_limit: Fact::unknown(why),
            bind: Fact::unknown(why),
            default_device: Fact::unknown(why),
            def_allocator: Fact::unknown(why),
        }
    }
}

/// The value of a control variable of the whole process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SettingValue {
    /// A number; of sizes, bytes.
    Number(i64),
    /// Yes or no.
    Flag(bool),
    /// A word of the runtime's documentation.
    Word(&'static str),
    /// Any text (of the target).
    Text(String),
}

impl fmt::Display for SettingValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SettingValue::Number(number) => write!(f, "{number}"),
            SettingValue::Flag(flag) => write!(f, "{flag}"),
            SettingValue::Word(word) => f.write_str(word),
            SettingValue::Text(text) => f.write_str(text),
        }
    }
}

/// A control variable that the process has one of.
#[derive(Debug, Clone)]
pub struct Setting {
    /// Its name in the specification, or that of the variable of the environment by which the runtime's own is known.
    pub name: &'static str,
    /// How far it reaches.
    pub scope: Scope,
    /// Its value.
    pub value: Fact<SettingValue>,
    /// Where that comes from.
    pub source: Fact<Source>,
    /// A variable of the environment that is about it, and its text (of the target), whether or not the value is known.
    pub said: Option<(&'static str, String)>,
}

/// Places of a partition: from the first to the last, both included, on from the first of all after the last of all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Partition {
    /// Number of its first place.
    pub first: u32,
    /// Number of its last place; smaller than the first where the partition goes past the end of all places.
    pub last: u32,
}

impl fmt::Display for Partition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.first == self.last { write!(f, "{}", self.first) } else { write!(f, "{}-{}", self.first, self.last) }
    }
}

/// Where a thread is to run, as its runtime sees it.
#[derive(Debug, Clone)]
pub struct Placement {
    /// The place it is bound to (`omp_get_place_num`); `Known(None)`: to none.
    pub place: Fact<Option<u32>>,
    /// `place-partition-var`; `Known(None)`: there are no places.
    pub partition: Fact<Option<Partition>>,
    /// Processors of its place, by number and in order; `Known(None)`: it is bound to no place.
    pub cpus: Fact<Option<Arc<[u32]>>>,
}

impl Placement {
    /// All unknown, for one reason.
    pub fn unknown(why: impl Into<Reason>) -> Self {
        let why = &why.into();
        Placement { place: Fact::unknown(why), partition: Fact::unknown(why), cpus: Fact::unknown(why) }
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
    /// `default-device-var` (`omp_get_default_device`).
    pub default_device: Fact<i64>,
    /// `def-allocator-var` (`omp_get_default_allocator`).
    pub def_allocator: Fact<Allocator>,
    /// Items of those that are lists, for regions further in.
    pub deeper: DeeperItems,
    /// Where those that can be set come from.
    pub sources: IcvSources,
}

/// Items of a control variable that is a list, from one level of nesting on. All tasks share the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Items<T> {
    all: Arc<[T]>,
    from: usize,
}

impl<T> Items<T> {
    /// All items of a list, which begins with level 0.
    pub(crate) fn of(all: Arc<[T]>) -> Self {
        Items { all, from: 0 }
    }

    /// Those of them for levels further in than this one.
    pub(crate) fn beyond(&self, level: u32) -> Self {
        let inner = (level as usize).saturating_add(1);
        Items { all: Arc::clone(&self.all), from: self.from.saturating_add(inner) }
    }

    /// The items, outermost level first.
    pub fn as_slice(&self) -> &[T] {
        self.all.get(self.from..).unwrap_or_default()
    }
}

/// What `nthreads-var` and `bind-var` of a task hand on to the regions it opens, and to those inside of them: without the first
/// item, which is the value that counts for the task itself.
#[derive(Debug, Clone)]
pub struct DeeperItems {
    /// Of `nthreads-var`.
    pub nthreads: Fact<Items<u64>>,
    /// Of `bind-var`.
    pub bind: Fact<Items<ProcBind>>,
}

impl DeeperItems {
    /// Both unknown, for one reason.
    pub fn unknown(why: impl Into<Reason>) -> Self {
        let why = &why.into();
        DeeperItems { nthreads: Fact::unknown(why), bind: Fact::unknown(why) }
    }

    /// Of lists that begin with level 0, what is further in than this level.
    pub(crate) fn beyond(&self, level: u32) -> Self {
        DeeperItems {
            nthreads: self.nthreads.clone().map(|items| items.beyond(level)),
            bind: self.bind.clone().map(|items| items.beyond(level)),
        }
    }
}

impl Icvs {
    /// All unknown, for one reason.
    pub fn unknown(why: impl Into<Reason>) -> Self {
        let why = &why.into();
        Icvs {
            nthreads: Fact::unknown(why),
            dynamic: Fact::unknown(why),
            schedule: Fact::unknown(why),
            max_active_levels: Fact::unknown(why),
            thread_limit: Fact::unknown(why),
            bind: Fact::unknown(why),
            levels: Fact::unknown(why),
            active_levels: Fact::unknown(why),
            default_device: Fact::unknown(why),
            def_allocator: Fact::unknown(why),
            deeper: DeeperItems::unknown(why),
            sources: IcvSources::unknown(why),
        }
    }

    /// `nthreads-var` as the list it is for the task: its own value, then one for each further level of nesting. Beyond the last
    /// item, that counts.
    pub fn nthreads_list(&self) -> Fact<Vec<u64>> {
        list(&self.nthreads, &self.deeper.nthreads)
    }

    /// `bind-var` as a list, likewise.
    pub fn bind_list(&self) -> Fact<Vec<ProcBind>> {
        // libomp, of which alone this may be met, then binds no threads further in either, unless they are in regions of one.
        match (&self.bind, &self.deeper.bind) {
            (Fact::Known { value: ProcBind(0), .. }, Fact::Known { value: deeper, .. })
                if !deeper.as_slice().is_empty() =>
            {
                Fact::unknown("threads are not bound, and a list that says otherwise of inner regions need not count")
            }
            (own, deeper) => list(own, deeper),
        }
    }
}

/// The list of a task's own item and those for regions further in. Its origin is the less trusted one of theirs.
fn list<T: Clone>(own: &Fact<T>, deeper: &Fact<Items<T>>) -> Fact<Vec<T>> {
    match (own, deeper) {
        (Fact::Known { value: own, origin }, Fact::Known { value: deeper, origin: of_deeper }) => {
            let items = std::iter::once(own).chain(deeper.as_slice());
            Fact::known(items.cloned().collect(), *origin.max(of_deeper))
        }
        (Fact::Unknown { why }, _) | (_, Fact::Unknown { why }) => Fact::unknown(why),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ompd_layout::Origin;

    fn items<T: Clone>(all: &[T]) -> Fact<Items<T>> {
        Fact::known(Items::of(all.into()), Origin::Code)
    }

    fn icvs(nthreads: u64, bind: u32, level: u32) -> Icvs {
        let whole = DeeperItems { nthreads: items(&[4, 3, 2]), bind: items(&[ProcBind(4), ProcBind(3)]) };
        Icvs {
            nthreads: Fact::known(nthreads, Origin::Profile),
            bind: Fact::known(ProcBind(bind), Origin::Dwarf),
            deeper: whole.beyond(level),
            ..Icvs::unknown("not asked")
        }
    }

    #[test]
    fn a_list_is_what_the_task_has_and_what_inner_levels_get() {
        let nthreads = |level| icvs(9, 3, level).nthreads_list().value().cloned();
        assert_eq!(nthreads(0), Some(vec![9, 3, 2]));
        assert_eq!(nthreads(1), Some(vec![9, 2]));
        assert_eq!(nthreads(2), Some(vec![9]));
        assert_eq!(nthreads(u32::MAX), Some(vec![9]));
        let bind = icvs(9, 2, 0).bind_list();
        assert_eq!((bind.value(), bind.origin()), (Some(&vec![ProcBind(2), ProcBind(3)]), Some(Origin::Code)));
        assert_eq!(icvs(9, 2, 0).nthreads_list().origin(), Some(Origin::Profile));
    }

    #[test]
    fn what_is_not_known_of_a_list_makes_it_unknown() {
        let of = |own, deeper: &str| Icvs { nthreads: own, deeper: DeeperItems::unknown(deeper), ..icvs(9, 3, 0) };
        assert_eq!(
            of(Fact::known(1, Origin::Code), "gone").nthreads_list().why().map(Reason::to_string).as_deref(),
            Some("gone")
        );
        assert_eq!(
            of(Fact::unknown("first"), "gone").nthreads_list().why().map(Reason::to_string).as_deref(),
            Some("first")
        );
        // Of threads that are not bound it is not certain what inner regions get, unless there is no list.
        assert!(icvs(9, 0, 0).bind_list().value().is_none());
        assert_eq!(icvs(9, 0, 1).bind_list().value(), Some(&vec![ProcBind(0)]));
    }
}
