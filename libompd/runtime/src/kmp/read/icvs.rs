//! Internal control variables, where they come from, and places.

use std::sync::Arc;

use ompd_layout::Origin;
use ompd_process::{Addr, Target, TargetExt};

use super::super::reason::Own;
use super::Context;
use super::settings::{ENABLED, LIBRARIES, OFFLOADS, POLICIES, SAID_OF_LIBRARY, SAID_OF_POLICY, word};
use crate::bind::{SizeOf, Slot, StructData};
use crate::excerpt::NOT_LOOKED_FOR;
use crate::icvs::{self, *};
use crate::instance::NOT_READ;
use crate::kmp::Kmp;
use crate::kmp::schema::{self, AVAIL_PROC, KmpInfo, KmpInternalControl, KmpTeam, NESTED_BIND, NESTED_NTH};
use crate::limits;
use crate::model::*;

/// Bits of a schedule that are modifiers (`kmp_sch_modifier_monotonic`, `_nonmonotonic`).
const SCHEDULE_MONOTONIC: u32 = 1 << 29;
const SCHEDULE_NONMONOTONIC: u32 = 1 << 30;
/// `KMP_MAX_NTH`-like values mean that no thread limit is set.
const NO_LIMIT: u64 = i32::MAX as u64;

/// How libomp keeps a control variable.
pub(super) enum How {
    /// A member of `kmp_internal_control_t`, of which each task has one.
    Task(fn(&KmpInternalControl, &StructData) -> Fact<IcvValue>),
    /// The same of one that is a list, and what regions get further in than a level. The address is
    /// that of the list of numbers of threads that the team has.
    List { own: fn(&KmpInternalControl, &StructData) -> Fact<IcvValue>, deeper: Deeper },
    /// It belongs to the thread.
    Thread(fn(&KmpInfo, &StructData) -> Fact<IcvValue>),
    /// It belongs to the team.
    Team(fn(&KmpTeam) -> &Slot),
    /// A variable of the runtime, by this name.
    Process(&'static str, fn(&Context<'_>, &'static str) -> Fact<IcvValue>),
    /// It is not read, for this reason.
    Unread(Own),
}

type Deeper = fn(&Context<'_>, Result<Addr, Reason>, u64) -> Result<Fact<Items>, Reason>;

use How::{List, Process, Task, Team, Thread, Unread};

/// Whether waiting threads give way to others (`enum library_type`).
static LIBRARY_KIND: Entry = Entry {
    icv: Icv("KMP_LIBRARY"),
    kind: Kind::Word,
    variables: &["KMP_LIBRARY", "OMP_WAIT_POLICY"],
    parse: |text, _| texts::word(text, SAID_OF_LIBRARY),
    default: |_, _| Some(IcvValue::Word("throughput")),
    ..Entry::OF_PROCESS
};

/// How long a waiting thread looks before it sleeps.
static BLOCKTIME: Entry =
    Entry { icv: Icv("KMP_BLOCKTIME"), variables: &["KMP_BLOCKTIME"], parse: texts::number, ..Entry::OF_PROCESS };

/// The control variables of libomp and libiomp5.
pub(super) static ICVS: &[Line<How>] = &[
    line(
        &NTHREADS,
        List {
            own: |i, task| i.nproc.fact(task.count(&i.nproc).map(|n| IcvValue::Count(n.into()))),
            deeper: |r, of_team, level| r.nthreads_beyond(of_team, level),
        },
    ),
    line(&DYN, Task(|i, task| i.dynamic.fact(task.flag(&i.dynamic).map(IcvValue::Flag)))),
    line(
        &RUN_SCHED,
        Task(|i, task| {
            let read = || Ok(IcvValue::Schedule(schedule(task.u32(&i.sched_kind)?, task.int(&i.sched_chunk)?)));
            i.sched_kind.fact(read())
        }),
    )
    .also(&["KMP_SCHEDULE"])
    .by_default(|_, _| Some(IcvValue::Schedule(Schedule { kind: 1, monotonic: false, chunk: 0 }))),
    line(
        &MAX_ACTIVE_LEVELS,
        Task(|i, task| i.max_active_levels.fact(task.count(&i.max_active_levels).map(|n| IcvValue::Count(n.into())))),
    ),
    line(
        &THREAD_LIMIT,
        Task(|i, task| {
            let limit = |raw: u32| IcvValue::Limit((u64::from(raw) < NO_LIMIT).then_some(u64::from(raw)));
            i.thread_limit.fact(task.count(&i.thread_limit).map(limit))
        }),
    )
    .also(&["KMP_DEVICE_THREAD_LIMIT", "KMP_ALL_THREADS", "KMP_MAX_THREADS"]),
    // Threads are spread where no more is said than that they are to be bound.
    line(
        &BIND,
        List {
            own: |i, task| i.proc_bind.fact(task.u32(&i.proc_bind).map(|bind| IcvValue::Bind(ProcBind(bind)))),
            deeper: |r, _, level| r.binds_beyond(level),
        },
    )
    .agrees(|own, said| {
        own == said || matches!((own, said), (IcvValue::Bind(ProcBind(4)), IcvValue::Bind(ProcBind(1))))
    }),
    line(&LEVELS, Team(|team| &team.level)),
    line(&ACTIVE_LEVELS, Team(|team| &team.active_level)),
    line(&DEFAULT_DEVICE, Task(|i, task| i.default_device.fact(task.int(&i.default_device).map(IcvValue::Number)))),
    // Most allocators are there only if the runtime finds a library that has them; else it takes
    // the default.
    line(
        &DEF_ALLOCATOR,
        Thread(|s, thread| {
            s.def_allocator.fact(thread.uint(&s.def_allocator).map(|handle| IcvValue::Allocator(Allocator(handle))))
        }),
    )
    .says(|text, variables| {
        texts::allocator(text, variables).filter(|said| *said == IcvValue::Allocator(Allocator::DEFAULT))
    }),
    line(&CANCEL, Process(schema::CANCEL, |r, name| r.switch(name))),
    line(&MAX_TASK_PRIORITY, Process(schema::MAX_TASK_PRIORITY, |r, name| r.int(name))),
    line(&NUM_PROCS, Process(AVAIL_PROC, |r, name| r.int(name))).also(&["KMP_HW_SUBSET", "KMP_AFFINITY"]),
    line(
        &STACKSIZE,
        Process(schema::STACKSIZE, |r, name| {
            r.number(name, r.target.arch().pointer_bytes.into()).map(IcvValue::Number)
        }),
    )
    .also(&["KMP_STACKSIZE", "GOMP_STACKSIZE"]),
    line(&NTEAMS, Process(schema::NTEAMS, |r, name| r.int(name))),
    line(&TEAMS_THREAD_LIMIT, Process(schema::TEAMS_THREAD_LIMIT, |r, name| r.int(name))),
    // Where nothing is said it differs from release to release.
    line(&AFFINITY_FORMAT, Process(schema::AFFINITY_FORMAT, |r, name| r.text(name, None))),
    line(&DISPLAY_AFFINITY, Process(schema::DISPLAY_AFFINITY, |r, name| r.switch(name))),
    line(&TARGET_OFFLOAD, Process(schema::TARGET_OFFLOAD, |r, name| word(r.number(name, 4), OFFLOADS))),
    line(&TOOL, Process(schema::TOOL, |r, name| word(r.number(name, 4), ENABLED))),
    line(&TOOL_LIBRARIES, Process(schema::TOOL_LIBRARIES, |r, name| r.text(name, Some("")))),
    line(&TOOL_VERBOSE_INIT, Process(schema::TOOL_VERBOSE_INIT, |r, name| r.text(name, Some("disabled")))),
    line(&DEBUG, Process(schema::OMPD_STATE, |r, name| word(r.number(name, 8).map(|state| state & 1), ENABLED))),
    line(&WAIT_POLICY, Process(schema::LIBRARY, |r, name| word(r.number(name, 4), POLICIES)))
        .also(&["KMP_LIBRARY"])
        .says(|text, _| texts::word(text, SAID_OF_POLICY))
        .by_default(|_, _| Some(IcvValue::Word("passive"))),
    line(&LIBRARY_KIND, Process(schema::LIBRARY, |r, name| word(r.number(name, 4), LIBRARIES))),
    line(&BLOCKTIME, Unread(Own::UnitDiffers)),
];

/// The items of a list, beginning with level 0, or why they are not known.
pub(super) type ItemList = Result<Arc<[u64]>, Reason>;

impl Context<'_> {
    pub(super) fn icvs_of(&self, thread: &StructData, task: Option<&StructData>, team: Option<&StructData>) -> Icvs {
        let s = &self.kmp.structs;
        let Some(task) = task else { return Icvs::unknown(Own::TaskUnreadable) };
        let of_team = |slot: &Slot| match team {
            Some(team) => slot.fact(team.count(slot).map(|n| IcvValue::Count(n.into()))),
            None => Fact::unknown(Common::TeamUnreadable),
        };
        let mut icvs = self.icvs_in(task);
        for line in ICVS {
            match &line.how {
                Thread(read) => icvs.values.set(line.entry, read(&s.info, thread)),
                Team(slot) => icvs.values.set(line.entry, of_team(slot(&s.team))),
                _ => {}
            }
        }
        if !self.reach.is_whole() {
            return Icvs { deeper: DeeperItems::unknown(NOT_LOOKED_FOR), ..icvs };
        }
        let sources = icvs::of_task(&icvs, None, &self.began(), ICVS);
        let of_team = match team {
            Some(view) => view.ptr(&s.team.nested_nth),
            None => Err(Reason::from(Common::TeamUnreadable)),
        };
        let deeper = match icvs.get(&LEVELS) {
            Fact::Known { value: IcvValue::Count(level), .. } => self.deeper(of_team, *level),
            Fact::Known { .. } => DeeperItems::unknown(NOT_READ),
            Fact::Unknown { why } => DeeperItems::unknown(why),
        };
        Icvs { sources, deeper, ..icvs }
    }

    /// See [`Runtime::deeper_items`](crate::Runtime::deeper_items).
    pub(in crate::kmp) fn deeper_items(kmp: &Kmp, target: &dyn Target, team: Option<Addr>, level: u32) -> DeeperItems {
        let of_team = || match team {
            Some(team) => Ok(target.read_ptr(team.offset(kmp.structs.team.nested_nth.offset()?))?),
            // That of a root, for which the runtime has no other list.
            None => Ok(Addr::NULL),
        };
        Context::new(kmp, target).deeper(of_team(), level.into())
    }

    /// The implicit tasks of a new region take the item of their level, whatever the task that
    /// opens it has set for itself (`__kmp_fork_call`, `__kmp_serialized_parallel`). `of_team` is
    /// the list of numbers of threads that the team has.
    fn deeper(&self, of_team: Result<Addr, Reason>, level: u64) -> DeeperItems {
        let mut items = DeeperItems::unknown(NOT_READ);
        for line in ICVS {
            if let List { deeper, .. } = &line.how {
                items.set(line.entry, deeper(self, of_team.clone(), level).unwrap_or_else(Fact::from));
            }
        }
        items
    }

    fn nthreads_beyond(&self, of_team: Result<Addr, Reason>, level: u64) -> Result<Fact<Items>, Reason> {
        let s = &self.kmp.structs;
        let of_team = match self.kmp.lists_of_teams {
            Some(true) => of_team.map(|list| (!list.is_null()).then_some(list)),
            Some(false) => Ok(None),
            None => Err(Reason::from(Own::ListsOfTeamsUnknown)),
        };
        let (list, origin) = match of_team? {
            Some(list) => (list, s.team.nested_nth.origin().unwrap_or(Origin::Code)),
            None => self.variable(NESTED_NTH)?,
        };
        let items = self.list(list, s.nested_nth.size, [&s.nested_nth.items, &s.nested_nth.used])?;
        let items = items.iter().copied().map(IcvValue::Count).collect();
        let is_item = |item: &IcvValue| matches!(item, IcvValue::Count(n) if (1..=i32::MAX as u64).contains(n));
        of_items(Items::of(items).beyond(level), origin, is_item)
    }

    fn binds_beyond(&self, level: u64) -> Result<Fact<Items>, Reason> {
        let s = &self.kmp.structs;
        let (list, origin) = self.variable(NESTED_BIND)?;
        let items = self.list(list, s.nested_bind.size, [&s.nested_bind.items, &s.nested_bind.used])?;
        let items = items.iter().map(|item| IcvValue::Bind(ProcBind(*item as u32))).collect();
        let is_item = |item: &IcvValue| matches!(item, IcvValue::Bind(bind) if bind.0 <= 4);
        of_items(Items::of(items).beyond(level), origin, is_item)
    }

    fn variable(&self, name: &'static str) -> Result<(Addr, Origin), Reason> {
        self.kmp.global(name).ok_or(Reason::NoLayout(name))
    }

    /// The list whose struct is at this address; most teams share one.
    fn list(&self, at: Addr, size: SizeOf, slots: [&Slot; 2]) -> ItemList {
        let known = self.lists.borrow().get(&at).cloned();
        known.unwrap_or_else(|| {
            let list = self.read_list(at, size, slots);
            self.lists.borrow_mut().insert(at, list.clone());
            list
        })
    }

    fn read_list(&self, at: Addr, size: SizeOf, [items, used]: [&Slot; 2]) -> ItemList {
        let view = StructData::read(self.target, at, size)?;
        let (items, used) = (view.ptr(items)?, u64::from(view.count(used)?));
        if used > limits::LEVELS {
            return Err(Reason::from(Common::ListTooLong { items: used }));
        }
        if used == 0 {
            return Ok(Arc::default());
        }
        let order = self.target.arch().byte_order;
        let items = self.target.read_vec(items, used * 4)?;
        Ok(items.chunks_exact(4).map(|item| order.uint(item)).collect())
    }

    /// Those that a task has itself, whether or not it is executed.
    fn icvs_in(&self, task: &StructData) -> Icvs {
        let s = &self.kmp.structs;
        // A task with `detach` becomes a proxy when its body is over. Others are made as one, without `copy_icvs`.
        let is_proxy = || -> Result<bool, Reason> {
            let flags = task.within(&s.taskdata.flags, 0, s.flags.size)?;
            let flag = |bit: &Slot| flags.uint(bit).map(|bit| bit != 0);
            Ok(flag(&s.flags.tasktype)? && flag(&s.flags.proxy)? && !flag(&s.flags.detachable)?)
        };
        if is_proxy() == Ok(true) {
            return Icvs::unknown(Own::ProxyWithoutSettings);
        }
        let view = match task.within(&s.taskdata.icvs, 0, s.icvs.size) {
            Ok(view) => view,
            Err(why) => return Icvs::unknown(why),
        };
        let mut values = ByIcv::unknown(NOT_READ);
        for line in ICVS {
            match &line.how {
                Task(read) | List { own: read, .. } => values.set(line.entry, read(&s.icvs, &view)),
                Thread(_) | Team(_) => values.set(line.entry, Fact::unknown(Own::OfThreadOrTeam)),
                Process(..) | Unread(_) => {}
            }
        }
        Icvs { values, ..Icvs::unknown(Own::OfThreadOrTeam) }
    }

    /// Those of the task at this address.
    pub(in crate::kmp) fn icvs_of_task(kmp: &Kmp, target: &dyn Target, task: Addr) -> Icvs {
        match StructData::read(target, task, kmp.structs.taskdata.size) {
            Ok(view) => Context::new(kmp, target).icvs_in(&view),
            Err(why) => Icvs::unknown(why),
        }
    }

    /// What the table says of each.
    pub(in crate::kmp) fn icvs() -> Vec<Kept> {
        let unread = |line: &Line<How>| match &line.how {
            Unread(why) => Some(why.clone()),
            _ => None,
        };
        ICVS.iter().map(|line| line.kept(unread(line).map(Reason::from))).collect()
    }

    /// Control variables of the process as a whole.
    pub(in crate::kmp) fn settings(&self) -> Vec<Setting> {
        // Many of them lie side by side.
        let places = ICVS.iter().filter_map(|line| match line.how {
            Process(name, _) => self.kmp.global(name),
            _ => None,
        });
        let ranges: Vec<(Addr, u64)> = places.map(|(addr, _)| (addr, 8)).collect();
        self.target.prefetch(&ranges);
        ICVS.iter().filter_map(|line| self.setting_of(line)).collect()
    }

    /// One of them.
    pub(in crate::kmp) fn setting(kmp: &Kmp, target: &dyn Target, name: &str) -> Option<Setting> {
        let line = ICVS.iter().find(|line| line.entry.name() == name)?;
        Context::new(kmp, target).setting_of(line)
    }

    fn setting_of(&self, line: &'static Line<How>) -> Option<Setting> {
        let value = match &line.how {
            Process(name, read) => read(self, name),
            Unread(why) if line.entry.is_of_process() => Fact::unknown(why.clone()),
            _ => return None,
        };
        Some(icvs::setting(line, value, &self.began()))
    }

    /// What a root begins with is put together from variables that a stripped build does not name
    /// (`__kmp_get_global_icvs`). Where nothing is said they are the same in all releases that are
    /// known.
    fn began(&self) -> Began<'_> {
        Began {
            environment: &self.environment,
            variables: &super::super::ABOUT.variables,
            processors: Box::new(|| self.number(AVAIL_PROC, 4).get().and_then(|n| u64::try_from(n).ok())),
            levels: Some((1, i32::MAX as u64)),
        }
    }

    /// Where a thread is to run. Its place is negative while it is bound to none, or to all of its
    /// partition (`KMP_PLACE_ALL` and others of kmp_affinity.h and kmp.h).
    pub(super) fn placement_of(&self, thread: &StructData) -> Placement {
        let s = &self.kmp.structs.info;
        let place = thread.int(&s.place).map(|place| u32::try_from(place).ok());
        let partition = || {
            let (first, last) = (thread.int(&s.first_place)?, thread.int(&s.last_place)?);
            Ok(u32::try_from(first).ok().zip(u32::try_from(last).ok()).map(|(first, last)| Partition { first, last }))
        };
        let cpus = match &place {
            Ok(None) => s.place.fact(Ok(None)),
            _ => Fact::unknown(Own::PlacesNotRead),
        };
        Placement { place: s.place.fact(place), partition: s.first_place.fact(partition()), cpus }
    }
}

/// Items as a fact, if all of them can be such. In the list of a team, what comes before them is
/// not set. A number of threads that nobody gave is 0 until the processors are counted.
fn of_items(items: Items, origin: Origin, is_item: impl Fn(&IcvValue) -> bool) -> Result<Fact<Items>, Reason> {
    match items.as_slice().iter().all(is_item) {
        true => Ok(Fact::known(items, origin)),
        false => Err(Reason::from(Own::OddItems)),
    }
}

/// The runtime's schedule numbers (`enum sched_type`) as `omp_get_schedule` reports them
/// (`__kmp_get_schedule`).
fn schedule(raw: u32, chunk: i64) -> Schedule {
    let monotonic = raw & SCHEDULE_MONOTONIC != 0;
    let (kind, chunk) = match raw & !(SCHEDULE_MONOTONIC | SCHEDULE_NONMONOTONIC) {
        // kmp_sch_static, _static_greedy, _static_balanced: no chunk was asked for.
        34 | 40 | 41 => (1, 0),
        // kmp_sch_static_chunked.
        33 => (1, chunk),
        // kmp_sch_dynamic_chunked.
        35 => (2, chunk),
        // kmp_sch_guided_chunked, _guided_iterative_chunked, _guided_analytical_chunked.
        36 | 42 | 43 => (3, chunk),
        // kmp_sch_auto.
        38 => (4, chunk),
        // The runtime's own (`kmp_sched_trapezoidal`, `kmp_sched_static_steal`).
        39 => (101, chunk),
        44 => (102, chunk),
        other => (other, chunk),
    };
    Schedule { kind, monotonic, chunk }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedules_as_the_api_reports_them() {
        assert_eq!(schedule(36, 7), Schedule { kind: 3, monotonic: false, chunk: 7 });
        assert_eq!(schedule(42, 7), Schedule { kind: 3, monotonic: false, chunk: 7 });
        assert_eq!(schedule(34, 1), Schedule { kind: 1, monotonic: false, chunk: 0 });
        assert_eq!(schedule(35 | SCHEDULE_MONOTONIC, 2), Schedule { kind: 2, monotonic: true, chunk: 2 });
    }

    #[test]
    fn what_the_process_has_is_read_from_variables() {
        for line in ICVS {
            let of_process = match line.how {
                Process(..) => true,
                Unread(_) => line.entry.is_of_process(),
                _ => false,
            };
            assert_eq!(line.entry.is_of_process(), of_process, "{}", line.entry.name());
            assert_eq!(line.entry.is_list, matches!(line.how, List { .. }), "{}", line.entry.name());
        }
    }
}
