//! Internal control variables, where they come from, and places
//! (`libgomp/{libgomp.h,env.c,icv.c,affinity.c}`).

use std::sync::Arc;

use ompd_layout::Origin;
use ompd_process::{Addr, Target, TargetExt};

use super::super::reason::Own;
use super::{Context, GompThread, NO_OMPT};
use crate::bind::{Slot, StructData};
use crate::excerpt::NOT_LOOKED_FOR;
use crate::gomp::Gomp;
use crate::gomp::schema::GompTaskIcv;
use crate::icvs::{self, *};
use crate::instance::NOT_READ;
use crate::limits;
use crate::model::*;

/// `default-device-var` of GCC 13 and later until somebody asks for devices (`INT_MIN`).
const UNDECIDED: i64 = i32::MIN as i64;
/// `gomp_supported_active_levels` since GCC 11.
const ALL_LEVELS: u64 = u8::MAX as u64;
/// `max-active-levels-var` of releases before, where nothing was said.
const NO_LEVELS_LIMIT: u64 = i32::MAX as u64;
/// Bytes of a set of processors that are believed: those of the kernel's largest number of them.
const MAX_SET: u64 = 1024;
/// Places that are believed: one for each of those.
const MAX_PLACES: u64 = MAX_SET * 8;
/// Processors of all places together that are listed.
const MAX_LISTED: usize = 1 << 20;

/// How libgomp keeps a control variable.
pub(super) enum How {
    /// A member of `struct gomp_task_icv`, of which each task has one.
    Task(fn(&Context<'_>, &StructData) -> Fact<IcvValue>),
    /// The same of one that is a list, and the whole list as all tasks share it.
    List { own: fn(&Context<'_>, &StructData) -> Fact<IcvValue>, all: fn(&Context<'_>) -> Fact<Arc<[IcvValue]>> },
    /// It belongs to the thread.
    Thread(fn(&Context<'_>, &GompThread) -> Fact<IcvValue>),
    /// A variable of the runtime.
    Process(fn(&Context<'_>) -> Fact<IcvValue>),
    /// It is not read, for this reason.
    Unread(Own),
    /// The same, and reports do not list it.
    Unlisted(Own),
}

use How::{List, Process, Task, Thread, Unlisted, Unread};

/// How often a waiting thread looks before it sleeps.
static SPINCOUNT: Entry =
    Entry { icv: Icv("GOMP_SPINCOUNT"), variables: &["GOMP_SPINCOUNT"], parse: texts::number, ..Entry::OF_PROCESS };

/// The control variables of libgomp.
pub(super) static ICVS: &[Line<How>] = &[
    line(
        &NTHREADS,
        List {
            own: |r, task| r.member(task, |i| &i.nthreads, StructData::uint).map(IcvValue::Count),
            all: |r| r.nthreads(),
        },
    ),
    line(&DYN, Task(|r, task| r.member(task, |i| &i.dynamic, StructData::flag).map(IcvValue::Flag))),
    line(&RUN_SCHED, Task(|r, task| r.schedule(task).map(IcvValue::Schedule)))
        .by_default(|_, _| Some(IcvValue::Schedule(Schedule { kind: 2, monotonic: false, chunk: 1 }))),
    line(&MAX_ACTIVE_LEVELS, Task(|r, task| r.max_active_levels(task).map(IcvValue::Count))),
    line(
        &THREAD_LIMIT,
        Task(|r, task| {
            let limit = |limit| (limit != u32::MAX).then_some(u64::from(limit));
            r.member(task, |i| &i.thread_limit, StructData::u32).map(|raw| IcvValue::Limit(limit(raw)))
        }),
    ),
    line(
        &BIND,
        List {
            own: |r, task| r.member(task, |i| &i.bind, StructData::u32).map(|bind| IcvValue::Bind(ProcBind(bind))),
            all: |r| r.binds(),
        },
    ),
    line(&LEVELS, Thread(|r, thread| r.gomp.structs.thread.level.fact(Ok(IcvValue::Count(thread.level.into()))))),
    line(
        &ACTIVE_LEVELS,
        Thread(|r, thread| {
            let slot = &r.gomp.structs.thread.active_level;
            slot.fact(thread.view.u32(slot).map(|level| IcvValue::Count(level.into())))
        }),
    ),
    line(&DEFAULT_DEVICE, Task(|r, task| r.default_device(task).map(IcvValue::Number))),
    line(&DEF_ALLOCATOR, Thread(|r, thread| r.def_allocator(thread).map(Allocator).map(IcvValue::Allocator))),
    line(&CANCEL, Process(|r| r.word(r.gomp.cancel, 1, "cancel-var").map(|value| IcvValue::Flag(value != 0)))),
    line(&MAX_TASK_PRIORITY, Process(|r| r.word(r.gomp.max_task_priority, 4, "max-task-priority-var").map(number))),
    line(&NUM_PROCS, Process(|r| r.available_cpus().map(number))),
    line(&STACKSIZE, Unread(Own::NotFound)).also(&["GOMP_STACKSIZE"]),
    // The second variable counts from GCC 13 on, where the first is not set.
    line(&NTEAMS, Process(|r| r.word(r.gomp.nteams, 4, "nteams-var").map(number))).also(&["OMP_NUM_TEAMS_ALL"]),
    line(&TEAMS_THREAD_LIMIT, Process(|r| r.word(r.gomp.teams_thread_limit, 4, "teams-thread-limit-var").map(number)))
        .also(&["OMP_TEAMS_THREAD_LIMIT_ALL"]),
    // `gomp_affinity_format_var` in icv.c.
    line(&AFFINITY_FORMAT, Process(|r| r.text_setting(r.gomp.affinity_format, "affinity-format-var")))
        .by_default(|_, _| Some(IcvValue::Text("level %L thread %i affinity %A".to_owned()))),
    line(&DISPLAY_AFFINITY, Unlisted(Own::NotFound)),
    line(&TARGET_OFFLOAD, Unlisted(Own::NotFound)),
    line(&TOOL, Unlisted(NO_OMPT)),
    line(&TOOL_LIBRARIES, Unlisted(NO_OMPT)),
    line(&TOOL_VERBOSE_INIT, Unlisted(NO_OMPT)),
    line(&DEBUG, Unlisted(Own::NoOmpd)),
    line(&WAIT_POLICY, Unread(Own::NotFound)),
    line(&SPINCOUNT, Unread(Own::NotFound)),
];

/// A number of 32 bits.
fn number(value: u64) -> IcvValue {
    IcvValue::Number(i64::from(value as u32 as i32))
}

impl Context<'_> {
    pub(super) fn icvs_of(&self, raw: &GompThread, own: Option<Addr>) -> Icvs {
        let s = &self.gomp.structs;
        if raw.idle {
            return Icvs::unknown(Common::IdleWithoutTask);
        }
        if !self.reach.wants_tasks() {
            return Icvs::unknown(NOT_LOOKED_FOR);
        }
        let own = own.filter(|a| !a.is_null());
        let no_task = raw.view.ptr(&s.thread.task).is_ok_and(Addr::is_null);
        // A thread without a task is governed by the global copy (`gomp_icv`).
        let addr = match (own, &self.gomp.global_icv) {
            (Some(addr), _) => addr,
            (None, Some((addr, _))) if no_task => *addr,
            _ => return Icvs::unknown(Own::IcvsNotFound),
        };
        let mut icvs = match self.icvs_at(addr) {
            Ok(icvs) => icvs,
            Err(why) => return Icvs::unknown(why),
        };
        for line in ICVS {
            if let Thread(read) = &line.how {
                icvs.values.set(line.entry, read(self, raw));
            }
        }
        (icvs.sources, icvs.deeper) = match self.reach.is_whole() {
            false => (IcvSources::unknown(NOT_LOOKED_FOR), DeeperItems::unknown(NOT_LOOKED_FOR)),
            true => (icvs::of_task(&icvs, self.initial(), &self.began(), ICVS), self.deeper(raw.level)),
        };
        icvs
    }

    /// The control variables that the task at this address has itself, whether or not it is
    /// executed.
    pub(in crate::gomp) fn icvs_of_task(gomp: &Gomp, target: &dyn Target, task: Addr) -> Icvs {
        let at = || Context::new(gomp, target).icvs_at(task.offset(gomp.structs.task.icv.offset()?));
        at().unwrap_or_else(Icvs::unknown)
    }

    /// The control variables at an address, without levels and sources.
    fn icvs_at(&self, addr: Addr) -> Result<Icvs, Reason> {
        let view = StructData::read(self.target, addr, self.gomp.structs.icv.size)?;
        let mut values = ByIcv::unknown(NOT_READ);
        for line in ICVS {
            match &line.how {
                Task(read) | List { own: read, .. } => values.set(line.entry, read(self, &view)),
                Thread(_) => values.set(line.entry, Fact::unknown(Own::OfThread)),
                Process(_) | Unread(_) | Unlisted(_) => {}
            }
        }
        Ok(Icvs { values, ..Icvs::unknown(Own::OfThread) })
    }

    /// A member of a task's control variables.
    fn member<T>(
        &self,
        task: &StructData,
        slot: fn(&GompTaskIcv) -> &Slot,
        read: fn(&StructData, &Slot) -> Result<T, Reason>,
    ) -> Fact<T> {
        let slot = slot(&self.gomp.structs.icv);
        slot.fact(read(task, slot))
    }

    fn schedule(&self, task: &StructData) -> Fact<Schedule> {
        let i = &self.gomp.structs.icv;
        let schedule = || {
            let (raw, chunk) = (task.u32(&i.schedule)?, task.int(&i.chunk)?);
            Ok(Schedule { kind: raw & 0x7fff_ffff, monotonic: raw & 0x8000_0000 != 0, chunk })
        };
        i.schedule.fact(schedule())
    }

    fn max_active_levels(&self, task: &StructData) -> Fact<u64> {
        let slot = &self.gomp.structs.icv.max_active_levels;
        match (task.uint(slot), &self.gomp.max_active_levels) {
            (Ok(own), _) => slot.fact(Ok(own)),
            (Err(_), Some((addr, origin))) => match self.target.read_u64(*addr) {
                Ok(value) => Fact::known(value, *origin),
                Err(fault) => Fact::unknown(fault),
            },
            (Err(why), None) => why.into(),
        }
    }

    fn default_device(&self, task: &StructData) -> Fact<i64> {
        let slot = &self.gomp.structs.icv.default_device;
        match task.int(slot) {
            Ok(UNDECIDED) => Fact::unknown(Own::DevicesNotLookedFor),
            device => slot.fact(device),
        }
    }

    fn def_allocator(&self, thread: &GompThread) -> Fact<u64> {
        let slot = &self.gomp.structs.thread.def_allocator;
        match thread.view.uint(slot) {
            Ok(0) => self.word(self.gomp.def_allocator, 8, "the allocator of the process"),
            own => slot.fact(own),
        }
    }

    /// What it began with: `gomp_global_icv` is set once, from the environment, and copied for
    /// every thread that has no task yet (`gomp_icv`, `gomp_new_icv`).
    fn initial(&self) -> Option<&Icvs> {
        let initial = self.initial.get_or_init(|| {
            let (addr, _) = self.gomp.global_icv?;
            let mut initial = self.icvs_at(addr).ok()?;
            if !self.has_own_levels() {
                initial.values.set(&MAX_ACTIVE_LEVELS, Fact::unknown(Own::InitialNotKept));
            }
            Some(initial)
        });
        initial.as_ref()
    }

    /// `max-active-levels-var` has been a member of the task since GCC 11, and before one variable
    /// for all, which calls change.
    fn has_own_levels(&self) -> bool {
        self.gomp.structs.icv.max_active_levels.origin().is_some()
    }

    fn began(&self) -> Began<'_> {
        let own_levels = self.has_own_levels();
        let old_levels = self.gomp.max_active_levels.is_some();
        Began {
            environment: &self.environment,
            variables: &super::super::ABOUT.variables,
            processors: Box::new(|| self.available_cpus().get()),
            levels: match (own_levels, old_levels) {
                (true, _) => Some((1, ALL_LEVELS)),
                (false, true) => Some((NO_LEVELS_LIMIT, NO_LEVELS_LIMIT)),
                (false, false) => None,
            },
        }
    }

    /// See [`Runtime::deeper_items`](crate::Runtime::deeper_items).
    pub(in crate::gomp) fn deeper_items(gomp: &Gomp, target: &dyn Target, level: u32) -> DeeperItems {
        Context::new(gomp, target).deeper(level)
    }

    /// Items of the lists for levels further in than this one. If a list has an item for the level
    /// of a new region, the region's implicit tasks take it (`gomp_team_start`). What the task that
    /// opens the region has set for itself does not matter.
    fn deeper(&self, level: u32) -> DeeperItems {
        let whole = self.lists.get_or_init(|| {
            let mut whole = DeeperItems::unknown(NOT_READ);
            for line in ICVS {
                if let List { all, .. } = &line.how {
                    whole.set(line.entry, all(self).map(Items::of));
                }
            }
            whole
        });
        whole.beyond(level.into())
    }

    fn nthreads(&self) -> Fact<Arc<[IcvValue]>> {
        let first = self.initial().and_then(|initial| initial.count(&NTHREADS));
        let width = self.target.arch().pointer_bytes.into();
        self.list(self.gomp.nthreads_list, width, first, |item| (item > 0).then_some(IcvValue::Count(item)))
    }

    fn binds(&self) -> Fact<Arc<[IcvValue]>> {
        let first = self.initial().and_then(|initial| initial.bind(&BIND)).map(|bind| bind.0.into());
        let item = |item| (1..=4).contains(&item).then_some(IcvValue::Bind(ProcBind(item as u32)));
        self.list(self.gomp.bind_list, 1, first, item)
    }

    /// A list of items of `width` bytes, empty where there is none. If there is one, the runtime
    /// began with its first item.
    fn list(
        &self,
        [list, length]: [Option<(Addr, Origin)>; 2],
        width: u64,
        first: Option<u64>,
        item: impl Fn(u64) -> Option<IcvValue>,
    ) -> Fact<Arc<[IcvValue]>> {
        let (Some((list, origin)), Some((length, of_length))) = (list, length) else {
            return Fact::unknown(Reason::NoLayout("the items of lists"));
        };
        let origin = origin.max(of_length);
        let arch = self.target.arch();
        let read = || -> Result<Arc<[IcvValue]>, Reason> {
            let (list, length) = (self.target.read_ptr(list)?, self.target.read_ptr(length)?.0);
            if list.is_null() {
                return Ok(Arc::default());
            }
            if !(1..=limits::LEVELS).contains(&length) {
                return Err(Reason::from(Common::ListTooLong { items: length }));
            }
            let bytes = self.target.read_vec(list, length * width)?;
            let raw = || bytes.chunks_exact(width as usize).map(|c| arch.byte_order.uint(c));
            let items: Option<Arc<[IcvValue]>> = raw().map(item).collect();
            match items.filter(|_| first.is_none_or(|first| raw().next() == Some(first))) {
                Some(items) => Ok(items),
                None => Err(Reason::from(Own::ListNotInitial)),
            }
        };
        read().map_or_else(Fact::from, |items| Fact::known(items, origin))
    }

    fn available_cpus(&self) -> Fact<u64> {
        self.word(self.gomp.available_cpus, self.target.arch().pointer_bytes.into(), "the number of processors")
    }

    /// A variable of `size` bytes.
    fn word(&self, at: Option<(Addr, Origin)>, size: u64, what: &'static str) -> Fact<u64> {
        match at {
            Some((addr, origin)) => match self.target.read_uint(addr, size) {
                Ok(value) => Fact::known(value, origin),
                Err(fault) => Fact::unknown(fault),
            },
            None => Fact::unknown(Reason::NoLayout(what)),
        }
    }

    /// The text that a variable of the runtime points to.
    fn text_setting(&self, at: Option<(Addr, Origin)>, what: &'static str) -> Fact<IcvValue> {
        let Some((addr, origin)) = at else {
            return Fact::unknown(Reason::NoLayout(what));
        };
        let text = self.target.read_ptr(addr).and_then(|text| self.target.read_cstr(text, limits::STRING));
        match text {
            Ok(text) => Fact::known(IcvValue::Text(text), origin),
            Err(fault) => Fact::unknown(fault),
        }
    }

    /// What the table says of each.
    pub(in crate::gomp) fn icvs() -> Vec<Kept> {
        let unread = |line: &Line<How>| match &line.how {
            Unread(why) | Unlisted(why) => Some(why.clone()),
            _ => None,
        };
        ICVS.iter().map(|line| line.kept(unread(line).map(Reason::from))).collect()
    }

    /// Control variables of the process as a whole.
    pub(super) fn settings(&self) -> Vec<Setting> {
        ICVS.iter().filter_map(|line| self.setting_of(line)).collect()
    }

    /// One of them.
    pub(in crate::gomp) fn setting(gomp: &Gomp, target: &dyn Target, name: &str) -> Option<Setting> {
        let line = ICVS.iter().find(|line| line.entry.name() == name)?;
        Context::new(gomp, target).setting_of(line)
    }

    fn setting_of(&self, line: &'static Line<How>) -> Option<Setting> {
        let value = match &line.how {
            Process(read) => read(self),
            Unread(why) if line.entry.is_of_process() => Fact::unknown(why.clone()),
            _ => return None,
        };
        Some(icvs::setting(line, value, &self.began()))
    }

    /// Where a thread is to run: `thr->place` counts from 1, and `place_partition_len` is not set
    /// before places are used.
    pub(super) fn placement_of(&self, raw: &GompThread) -> Placement {
        let s = &self.gomp.structs.thread;
        let table = match self.places() {
            Ok(table) => table,
            Err(why) => return Placement::unknown(why),
        };
        let Some(count) = table else {
            let none = self.gomp.places.map_or(Origin::Code, |(_, origin)| origin);
            let nothing = || Fact::known(None, none);
            return Placement { place: nothing(), partition: Fact::known(None, none), cpus: Fact::known(None, none) };
        };
        let place = raw.view.u32(&s.place).map(|place| place.checked_sub(1));
        let partition = || {
            let (first, length) = (raw.view.u32(&s.partition_off)?, raw.view.u32(&s.partition_len)?);
            let last = first.checked_add(length.max(1) - 1).filter(|last| u64::from(*last) < count);
            match last {
                Some(last) => Ok((length > 0).then_some(Partition { first, last })),
                None => Err(Reason::from(Own::PartitionOutside { count, length, first })),
            }
        };
        let cpus = match &place {
            Ok(None) => s.place.fact(Ok(None)),
            Ok(Some(place)) => match self.place_table() {
                Ok(table) => match table.get(*place as usize) {
                    Some(cpus) => s.place.fact(Ok(Some(Arc::clone(cpus)))),
                    None => Fact::unknown(Own::NoSuchPlace { place: *place }),
                },
                Err(why) => Fact::unknown(why),
            },
            Err(why) => Fact::unknown(why),
        };
        Placement { place: s.place.fact(place), partition: s.partition_len.fact(partition()), cpus }
    }

    /// How many places there are, `None` if none were asked for.
    fn places(&self) -> Result<Option<u64>, Reason> {
        let width = self.target.arch().pointer_bytes.into();
        let list = self.word(self.gomp.places, width, "its places");
        let length = self.word(self.gomp.places_len, width, "how many places it has");
        match (list, length) {
            (Fact::Known { value: 0, .. }, _) => Ok(None),
            (Fact::Known { .. }, Fact::Known { value, .. }) => Ok(Some(value)),
            (Fact::Unknown { why }, _) | (_, Fact::Unknown { why }) => Err(why),
        }
    }

    /// The processors of all places.
    fn place_table(&self) -> &Result<Vec<Arc<[u32]>>, Reason> {
        self.place_table.get_or_init(|| self.read_places())
    }

    /// The sets lie one behind the other in one piece of memory (`gomp_affinity_alloc`), so that
    /// their distance is their size. Places without any processor that may be used are taken out of
    /// the list; the sets left in between are empty.
    fn read_places(&self) -> Result<Vec<Arc<[u32]>>, Reason> {
        let arch = self.target.arch();
        let Some(count) = self.places()?.filter(|count| *count <= MAX_PLACES) else {
            return Err(Reason::from(Own::ImplausiblePlaces));
        };
        let (Some((list, _)), width) = (self.gomp.places, u64::from(arch.pointer_bytes)) else {
            return Err(Reason::NoLayout("the table of places"));
        };
        let list = self.target.read_ptr(list)?;
        let bytes = self.target.read_vec(list, count * width)?;
        let sets: Vec<u64> = bytes.chunks_exact(arch.pointer_bytes.into()).map(|c| arch.byte_order.uint(c)).collect();
        let distance = sets.windows(2).map(|pair| pair[1].wrapping_sub(pair[0])).min();
        let Some(size) = distance else {
            return Err(Reason::from(Own::SetSizeUnknown));
        };
        if !(1..=MAX_SET).contains(&size) || size % width != 0 {
            return Err(Reason::from(Own::ImplausiblePlaces));
        }
        let mut left = MAX_LISTED;
        let set = |addr: &u64| {
            let bytes = self.target.read_vec(Addr(*addr), size)?;
            let mut cpus = Vec::new();
            for (word, at) in bytes.chunks_exact(arch.pointer_bytes.into()).zip(0u32..) {
                let word = arch.byte_order.uint(word);
                let bits = u32::from(arch.pointer_bytes) * 8;
                cpus.extend((0..bits).filter(|bit| word >> bit & 1 != 0).map(|bit| at * bits + bit));
            }
            left = left.checked_sub(cpus.len()).ok_or(Own::TooManyProcessors)?;
            Ok(cpus.into())
        };
        sets.iter().map(set).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_process_has_is_read_from_variables() {
        for line in ICVS {
            let of_process = match line.how {
                Process(..) => true,
                Unread(_) | Unlisted(_) => line.entry.is_of_process(),
                _ => false,
            };
            assert_eq!(line.entry.is_of_process(), of_process, "{}", line.entry.name());
            assert_eq!(line.entry.is_list, matches!(line.how, List { .. }), "{}", line.entry.name());
        }
    }
}
