//! Internal control variables.

use std::fmt;
use std::sync::Arc;

use super::{Common, Fact, Reason};

/// Loop schedules of `run-sched-var`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Schedule {
    /// Kind, by the number of `omp_sched_t` (1 static, 2 dynamic, 3 guided, 4 auto; others are the
    /// runtime's own).
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
    /// `omp_default_mem_alloc`.
    pub const DEFAULT: Allocator = Allocator(1);

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
    /// Each thread has its own: no scope of the specification's tables, but one of OMPD's.
    Thread,
    /// Each parallel region has its own.
    Parallel,
    /// Each implicit task has its own, which its explicit tasks share.
    ImplicitTask,
    /// Each task has its own (a data environment).
    Task,
}

impl Scope {
    /// The word used in reports.
    pub fn word(self) -> &'static str {
        match self {
            Scope::Global => "global",
            Scope::Device => "device",
            Scope::Thread => "thread",
            Scope::Parallel => "region",
            Scope::ImplicitTask | Scope::Task => "task",
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
    /// It is neither: the program has set it by a call, or by changing its own environment before
    /// the runtime looked.
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

/// A control variable, by its name in the specification; a runtime's own by that of the variable of
/// the environment that sets it.
///
/// What is known of it is in the [registry](crate::icvs).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Icv(pub &'static str);

/// The value of a control variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IcvValue {
    /// A number; of sizes, bytes.
    Number(i64),
    /// A number that cannot be negative.
    Count(u64),
    /// A limit; `None`: none is set.
    Limit(Option<u64>),
    /// Yes or no.
    Flag(bool),
    /// A loop schedule.
    Schedule(Schedule),
    /// How threads are bound.
    Bind(ProcBind),
    /// An allocator.
    Allocator(Allocator),
    /// A word of the runtime's documentation.
    Word(&'static str),
    /// Any text (of the target).
    Text(String),
}

impl fmt::Display for IcvValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            IcvValue::Number(number) => write!(f, "{number}"),
            IcvValue::Count(number) | IcvValue::Limit(Some(number)) => write!(f, "{number}"),
            IcvValue::Limit(None) => f.write_str("none"),
            IcvValue::Flag(flag) => write!(f, "{flag}"),
            IcvValue::Schedule(schedule) => write!(f, "{schedule}"),
            IcvValue::Bind(bind) => write!(f, "{bind}"),
            IcvValue::Allocator(allocator) => write!(f, "{allocator}"),
            IcvValue::Word(word) => f.write_str(word),
            IcvValue::Text(text) => f.write_str(text),
        }
    }
}

/// Something of each control variable, as far as it is known.
#[derive(Debug, Clone)]
pub struct ByIcv<T> {
    of: Vec<(Icv, Fact<T>)>,
    /// What there is to say of all others.
    others: Fact<T>,
}

impl<T> ByIcv<T> {
    /// All unknown, for one reason.
    pub fn unknown(why: impl Into<Reason>) -> Self {
        ByIcv { of: Vec::new(), others: Fact::unknown(why) }
    }

    /// What is known of this one.
    pub fn get(&self, icv: impl Into<Icv>) -> &Fact<T> {
        let icv = icv.into();
        self.of.iter().find(|(known, _)| *known == icv).map_or(&self.others, |(_, fact)| fact)
    }

    /// Says this of one of them.
    pub(crate) fn set(&mut self, icv: impl Into<Icv>, fact: Fact<T>) {
        let icv = icv.into();
        match self.of.iter_mut().find(|(known, _)| *known == icv) {
            Some((_, known)) => *known = fact,
            None => self.of.push((icv, fact)),
        }
    }

    /// Says this of one of them as well.
    #[cfg(test)]
    pub(crate) fn with(mut self, icv: impl Into<Icv>, fact: Fact<T>) -> Self {
        self.set(icv, fact);
        self
    }
}

/// Where the values of a task's control variables come from.
pub type IcvSources = ByIcv<Source>;

/// A control variable that the process has one of.
#[derive(Debug, Clone)]
pub struct Setting {
    /// Its name in the specification, or that of the variable of the environment by which the
    /// runtime's own is known.
    pub name: &'static str,
    /// How far it reaches.
    pub scope: Scope,
    /// Its value.
    pub value: Fact<IcvValue>,
    /// Where that comes from.
    pub source: Fact<Source>,
    /// A variable of the environment that is about it, and its text (of the target), whether or not
    /// the value is known.
    pub said: Option<(&'static str, String)>,
}

/// Places of a partition: from the first to the last, both included, on from the first of all after
/// the last of all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Partition {
    /// Number of its first place.
    pub first: u32,
    /// Number of its last place; smaller than the first where the partition goes past the end of
    /// all places.
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
    /// Their values; of those that are lists, the first item, which counts for the task itself.
    pub values: ByIcv<IcvValue>,
    /// Items of those that are lists, for regions further in.
    pub deeper: DeeperItems,
    /// Where those that can be set come from.
    pub sources: IcvSources,
}

/// Items of a control variable that is a list, from one level of nesting on. All tasks share the
/// list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Items {
    all: Arc<[IcvValue]>,
    from: usize,
}

impl Items {
    /// All items of a list, which begins with level 0.
    pub(crate) fn of(all: Arc<[IcvValue]>) -> Self {
        Items { all, from: 0 }
    }

    /// Those of them for levels further in than this one.
    pub(crate) fn beyond(&self, level: u64) -> Self {
        let inner = usize::try_from(level).unwrap_or(usize::MAX).saturating_add(1);
        Items { all: Arc::clone(&self.all), from: self.from.saturating_add(inner) }
    }

    /// The items, outermost level first.
    pub fn as_slice(&self) -> &[IcvValue] {
        self.all.get(self.from..).unwrap_or_default()
    }
}

/// What list-valued control variables of a task hand on to the regions it opens, and to those
/// inside of them. The first item is left out: it is the value that counts for the task itself.
pub type DeeperItems = ByIcv<Items>;

impl DeeperItems {
    /// Of lists that begin with level 0, what is further in than this level.
    pub(crate) fn beyond(&self, level: u64) -> Self {
        let beyond = |fact: &Fact<Items>| fact.clone().map(|items| items.beyond(level));
        ByIcv { of: self.of.iter().map(|(icv, fact)| (*icv, beyond(fact))).collect(), others: beyond(&self.others) }
    }
}

impl Icvs {
    /// All unknown, for one reason.
    pub fn unknown(why: impl Into<Reason>) -> Self {
        let why = &why.into();
        Icvs { values: ByIcv::unknown(why), deeper: DeeperItems::unknown(why), sources: IcvSources::unknown(why) }
    }

    /// The value of this one.
    pub fn get(&self, icv: impl Into<Icv>) -> &Fact<IcvValue> {
        self.values.get(icv)
    }

    /// The value of this one, if it is known and a number that cannot be negative.
    pub fn count(&self, icv: impl Into<Icv>) -> Option<u64> {
        match self.get(icv).value() {
            Some(IcvValue::Count(count)) => Some(*count),
            _ => None,
        }
    }

    /// The value of this one, if it is known and says how threads are bound.
    pub fn bind(&self, icv: impl Into<Icv>) -> Option<ProcBind> {
        match self.get(icv).value() {
            Some(IcvValue::Bind(bind)) => Some(*bind),
            _ => None,
        }
    }

    /// This one as the list it is for the task: its own value, then one for each further level of
    /// nesting. Beyond the last item, that counts. Its origin is the less trusted one of both.
    pub fn list(&self, icv: impl Into<Icv>) -> Fact<Vec<IcvValue>> {
        let icv = icv.into();
        match (self.get(icv), self.deeper.get(icv)) {
            // libomp, of which alone this may be met, then binds no threads further in either,
            // unless they are in regions of one.
            (Fact::Known { value: IcvValue::Bind(ProcBind(0)), .. }, Fact::Known { value: deeper, .. })
                if !deeper.as_slice().is_empty() =>
            {
                Fact::unknown(Common::ListMayNotCount)
            }
            (Fact::Known { value: own, origin }, Fact::Known { value: deeper, origin: of_deeper }) => {
                let items = std::iter::once(own).chain(deeper.as_slice());
                Fact::known(items.cloned().collect(), *origin.max(of_deeper))
            }
            (Fact::Unknown { why }, _) | (_, Fact::Unknown { why }) => Fact::unknown(why),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ompd_layout::Origin;

    const COUNTS: Icv = Icv("a list of counts");
    const BINDS: Icv = Icv("a list of words");

    fn counts(all: &[u64]) -> Vec<IcvValue> {
        all.iter().copied().map(IcvValue::Count).collect()
    }

    fn binds(all: &[u32]) -> Vec<IcvValue> {
        all.iter().copied().map(ProcBind).map(IcvValue::Bind).collect()
    }

    fn icvs(count: u64, bind: u32, level: u64) -> Icvs {
        let items = |all: Vec<IcvValue>| Fact::known(Items::of(all.into()), Origin::Code);
        let whole = DeeperItems::unknown(Common::NotLookedFor).with(COUNTS, items(counts(&[4, 3, 2])));
        let whole = whole.with(BINDS, items(binds(&[4, 3])));
        let values =
            ByIcv::unknown(Common::NotLookedFor).with(COUNTS, Fact::known(IcvValue::Count(count), Origin::Profile));
        let values = values.with(BINDS, Fact::known(IcvValue::Bind(ProcBind(bind)), Origin::Dwarf));
        Icvs { values, deeper: whole.beyond(level), ..Icvs::unknown(Common::NotLookedFor) }
    }

    #[test]
    fn a_list_is_what_the_task_has_and_what_inner_levels_get() {
        let of = |level| icvs(9, 3, level).list(COUNTS).value().cloned();
        assert_eq!(of(0), Some(counts(&[9, 3, 2])));
        assert_eq!(of(1), Some(counts(&[9, 2])));
        assert_eq!(of(2), Some(counts(&[9])));
        assert_eq!(of(u64::MAX), Some(counts(&[9])));
        let bind = icvs(9, 2, 0).list(BINDS);
        assert_eq!((bind.value(), bind.origin()), (Some(&binds(&[2, 3])), Some(Origin::Code)));
        assert_eq!(icvs(9, 2, 0).list(COUNTS).origin(), Some(Origin::Profile));
    }

    #[test]
    fn what_is_not_known_of_a_list_makes_it_unknown() {
        let gone = || Icvs { deeper: DeeperItems::unknown(Common::NotRead), ..icvs(9, 3, 0) };
        assert_eq!(gone().list(COUNTS).why(), Some(&Common::NotRead.into()));
        assert_eq!(
            Icvs { values: ByIcv::unknown(Common::NotLookedAt), ..gone() }.list(COUNTS).why(),
            Some(&Common::NotLookedAt.into())
        );
        // Of threads that are not bound it is not certain what inner regions get, unless there is
        // no list.
        assert!(icvs(9, 0, 0).list(BINDS).value().is_none());
        assert_eq!(icvs(9, 0, 1).list(BINDS).value(), Some(&binds(&[0])));
    }
}
