//! Internal control variables, where they come from, and places.

use std::sync::Arc;

use ompd_layout::Origin;
use ompd_process::{Addr, Target, TargetExt};

use super::Context;
use crate::bind::{SizeOf, Slot, View};
use crate::excerpt::NOT_LOOKED_FOR;
use crate::kmp::Kmp;
use crate::kmp::schema::{AVAIL_PROC, NESTED_BIND, NESTED_NTH};
use crate::limits;
use crate::model::*;
use crate::sources::{self, Began};

/// Bits of a schedule that are modifiers (`kmp_sch_modifier_monotonic`, `_nonmonotonic`).
const SCHEDULE_MONOTONIC: u32 = 1 << 29;
const SCHEDULE_NONMONOTONIC: u32 = 1 << 30;
/// `KMP_MAX_NTH`-like values mean that no thread limit is set.
const NO_LIMIT: u64 = i32::MAX as u64;

/// The items of a list, beginning with level 0, or why they are not known.
pub(super) type List = Result<Arc<[u64]>, String>;

impl Context<'_> {
    pub(super) fn icvs_of(&self, thread: &View, task: Option<&View>, team: Option<&View>) -> Icvs {
        let s = &self.kmp.structs;
        let Some(task) = task else { return Icvs::unknown("its task could not be read") };
        let t = &s.team;
        let of_team = |slot: &Slot| match team {
            Some(team) => slot.fact(team.count(slot)),
            None => Fact::unknown("its team could not be read"),
        };
        let icvs = Icvs {
            levels: of_team(&t.level),
            active_levels: of_team(&t.active_level),
            def_allocator: s.info.def_allocator.fact(thread.uint(&s.info.def_allocator).map(Allocator)),
            ..self.icvs_in(task)
        };
        if !self.reach.is_whole() {
            return Icvs { deeper: DeeperItems::unknown(NOT_LOOKED_FOR), ..icvs };
        }
        let sources = sources::of_task(&icvs, &self.began());
        let of_team = match team {
            Some(view) => view.ptr(&t.nested_nth),
            None => Err(Reason::Inconsistent("its team could not be read".to_owned())),
        };
        let deeper = match &icvs.levels {
            Fact::Known { value, .. } => self.deeper(of_team, *value),
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
        Context::new(kmp, target).deeper(of_team(), level)
    }

    /// The implicit tasks of a new region take the item of their level, whatever the task that opens it has set for itself
    /// (`__kmp_fork_call`, `__kmp_serialized_parallel`). `of_team` is the list of numbers of threads that the team has.
    fn deeper(&self, of_team: Result<Addr, Reason>, level: u32) -> DeeperItems {
        let s = &self.kmp.structs;
        let variable = |name| {
            let found = self.kmp.global(name);
            found.ok_or_else(|| Reason::Inconsistent(format!("where this runtime keeps {name} is not known")))
        };
        let of_team = match self.kmp.lists_of_teams {
            Some(true) => of_team.map(|list| (!list.is_null()).then_some(list)),
            Some(false) => Ok(None),
            None => Err(Reason::Inconsistent("whether its teams have lists of their own is not known".to_owned())),
        };
        let nthreads = || {
            let (list, origin) = match of_team? {
                Some(list) => (list, s.team.nested_nth.origin().unwrap_or(Origin::Code)),
                None => variable(NESTED_NTH)?,
            };
            let items = self.list(list, s.nested_nth.size, [&s.nested_nth.items, &s.nested_nth.used])?;
            of_items(Items::of(items).beyond(level), origin, |item| (1..=i32::MAX as u64).contains(item))
        };
        let bind = || {
            let (list, origin) = variable(NESTED_BIND)?;
            let items = self.list(list, s.nested_bind.size, [&s.nested_bind.items, &s.nested_bind.used])?;
            let items = items.iter().map(|item| ProcBind(*item as u32)).collect();
            of_items(Items::of(items).beyond(level), origin, |item: &ProcBind| item.0 <= 4)
        };
        DeeperItems { nthreads: nthreads().unwrap_or_else(Fact::from), bind: bind().unwrap_or_else(Fact::from) }
    }

    /// The list whose struct is at this address; most teams share one.
    fn list(&self, at: Addr, size: SizeOf, slots: [&Slot; 2]) -> Result<Arc<[u64]>, Reason> {
        let known = self.lists.borrow().get(&at).cloned();
        let list = known.unwrap_or_else(|| {
            let list = self.read_list(at, size, slots).map_err(|why| why.to_string());
            self.lists.borrow_mut().insert(at, list.clone());
            list
        });
        list.map_err(Reason::Inconsistent)
    }

    fn read_list(&self, at: Addr, size: SizeOf, [items, used]: [&Slot; 2]) -> Result<Arc<[u64]>, Reason> {
        let view = View::read(self.target, at, size)?;
        let (items, used) = (view.ptr(items)?, u64::from(view.count(used)?));
        if used > limits::LEVELS {
            return Err(Reason::Inconsistent(format!("the list has {used} items, which is not believed")));
        }
        if used == 0 {
            return Ok(Arc::default());
        }
        let order = self.target.arch().byte_order;
        let items = self.target.read_vec(items, used * 4)?;
        Ok(items.chunks_exact(4).map(|item| order.uint(item)).collect())
    }

    /// Those that a task has itself, whether or not it is executed.
    fn icvs_in(&self, task: &View) -> Icvs {
        let s = &self.kmp.structs;
        let view = match task.within(&s.taskdata.icvs, 0, s.icvs.size) {
            Ok(view) => view,
            Err(why) => return Icvs::unknown(why),
        };
        let i = &s.icvs;
        let schedule = || Ok(schedule(view.u32(&i.sched_kind)?, view.int(&i.sched_chunk)?));
        let limit = |raw: u32| (u64::from(raw) < NO_LIMIT).then_some(u64::from(raw));
        Icvs {
            nthreads: i.nproc.fact(view.count(&i.nproc).map(u64::from)),
            dynamic: i.dynamic.fact(view.flag(&i.dynamic)),
            schedule: i.sched_kind.fact(schedule()),
            max_active_levels: i.max_active_levels.fact(view.count(&i.max_active_levels).map(u64::from)),
            thread_limit: i.thread_limit.fact(view.count(&i.thread_limit).map(limit)),
            bind: i.proc_bind.fact(view.u32(&i.proc_bind).map(ProcBind)),
            default_device: i.default_device.fact(view.int(&i.default_device)),
            ..Icvs::unknown("it belongs to a thread or a team")
        }
    }

    /// Those of the task at this address.
    pub(in crate::kmp) fn icvs_of_task(kmp: &Kmp, target: &dyn Target, task: Addr) -> Icvs {
        match View::read(target, task, kmp.structs.taskdata.size) {
            Ok(view) => Context::new(kmp, target).icvs_in(&view),
            Err(why) => Icvs::unknown(why),
        }
    }

    /// What a root begins with is put together from variables that a stripped build does not name
    /// (`__kmp_get_global_icvs`). Where nothing is said they are the same in all releases that are known.
    fn began(&self) -> Began<'_> {
        Began {
            environment: &self.environment,
            variables: &super::super::ABOUT.variables,
            initial: None,
            processors: self.number(AVAIL_PROC, 4).get().and_then(|n| u64::try_from(n).ok()),
            schedule: Schedule { kind: 1, monotonic: false, chunk: 0 },
            levels: Some((1, i32::MAX as u64)),
        }
    }

    /// Where a thread is to run. Its place is negative while it is bound to none, or to all of its partition
    /// (`KMP_PLACE_ALL` and others of kmp_affinity.h and kmp.h).
    pub(super) fn placement_of(&self, thread: &View) -> Placement {
        let s = &self.kmp.structs.info;
        let place = thread.int(&s.place).map(|place| u32::try_from(place).ok());
        let partition = || {
            let (first, last) = (thread.int(&s.first_place)?, thread.int(&s.last_place)?);
            Ok(u32::try_from(first).ok().zip(u32::try_from(last).ok()).map(|(first, last)| Partition { first, last }))
        };
        let cpus = match &place {
            Ok(None) => s.place.fact(Ok(None)),
            _ => Fact::unknown("which processors its places consist of is not read of this runtime"),
        };
        Placement { place: s.place.fact(place), partition: s.first_place.fact(partition()), cpus }
    }
}

/// Items as a fact, if all of them can be such. What comes before them in the list of a team is not set, and a number of threads
/// that nobody gave is 0 until the processors are counted.
fn of_items<T>(items: Items<T>, origin: Origin, is_item: impl Fn(&T) -> bool) -> Result<Fact<Items<T>>, Reason> {
    match items.as_slice().iter().all(is_item) {
        true => Ok(Fact::known(items, origin)),
        false => Err(Reason::Inconsistent("the list has items that are none".to_owned())),
    }
}

/// The runtime's schedule numbers (`enum sched_type`) as `omp_get_schedule` reports them (`__kmp_get_schedule`).
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
}
