//! Internal control variables, where they come from, and places (`libgomp/{libgomp.h,env.c,icv.c,affinity.c}`).

use std::sync::Arc;

use ompd_layout::Origin;
use ompd_process::{Addr, Target, TargetExt};

use super::{Context, GompThread};
use crate::bind::View;
use crate::excerpt::NOT_LOOKED_FOR;
use crate::gomp::Gomp;
use crate::limits;
use crate::model::*;
use crate::sources::{self, Began};

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

impl Context<'_> {
    pub(super) fn icvs_of(&self, raw: &GompThread, own: Option<Addr>) -> Icvs {
        let s = &self.gomp.structs;
        if raw.idle {
            return Icvs::unknown("an idle worker executes no task");
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
            _ => return Icvs::unknown("the control variables of its task could not be found"),
        };
        let mut icvs = match self.icvs_at(addr) {
            Ok(icvs) => icvs,
            Err(why) => return Icvs::unknown(why),
        };
        icvs.levels = s.thread.level.fact(Ok(raw.level));
        icvs.active_levels = s.thread.active_level.fact(raw.view.u32(&s.thread.active_level));
        icvs.def_allocator = match raw.view.uint(&s.thread.def_allocator) {
            Ok(0) => self.word(self.gomp.def_allocator, 8, "the allocator of the process").map(Allocator),
            own => s.thread.def_allocator.fact(own.map(Allocator)),
        };
        (icvs.sources, icvs.deeper) = match self.reach.is_whole() {
            false => (IcvSources::unknown(NOT_LOOKED_FOR), DeeperItems::unknown(NOT_LOOKED_FOR)),
            true => (sources::of_task(&icvs, &self.began()), self.deeper(raw.level)),
        };
        icvs
    }

    /// The control variables that the task at this address has itself, whether or not it is executed.
    pub(in crate::gomp) fn icvs_of_task(gomp: &Gomp, target: &dyn Target, task: Addr) -> Icvs {
        let at = || Context::new(gomp, target).icvs_at(task.offset(gomp.structs.task.icv.offset()?));
        at().unwrap_or_else(Icvs::unknown)
    }

    /// The control variables at an address, without levels and sources.
    fn icvs_at(&self, addr: Addr) -> Result<Icvs, Reason> {
        let i = &self.gomp.structs.icv;
        let view = View::read(self.target, addr, i.size)?;
        let schedule = || {
            let (raw, chunk) = (view.u32(&i.schedule)?, view.int(&i.chunk)?);
            Ok(Schedule { kind: raw & 0x7fff_ffff, monotonic: raw & 0x8000_0000 != 0, chunk })
        };
        let max_active_levels = match (view.uint(&i.max_active_levels), &self.gomp.max_active_levels) {
            (Ok(own), _) => i.max_active_levels.fact(Ok(own)),
            (Err(_), Some((addr, origin))) => match self.target.read_u64(*addr) {
                Ok(value) => Fact::known(value, *origin),
                Err(fault) => Fact::unknown(fault),
            },
            (Err(why), None) => why.into(),
        };
        let default_device = match view.int(&i.default_device) {
            Ok(UNDECIDED) => Fact::unknown("the runtime has not looked for devices yet"),
            device => i.default_device.fact(device),
        };
        Ok(Icvs {
            nthreads: i.nthreads.fact(view.uint(&i.nthreads)),
            dynamic: i.dynamic.fact(view.flag(&i.dynamic)),
            schedule: i.schedule.fact(schedule()),
            max_active_levels,
            thread_limit: i.thread_limit.fact(view.u32(&i.thread_limit).map(|l| (l != u32::MAX).then_some(l.into()))),
            bind: i.bind.fact(view.u32(&i.bind).map(ProcBind)),
            default_device,
            ..Icvs::unknown("it belongs to a thread")
        })
    }

    /// What it began with: `gomp_global_icv` is set once, from the environment, and copied for every thread that has no task
    /// yet (`gomp_icv`, `gomp_new_icv`).
    fn initial(&self) -> Option<&Icvs> {
        let initial = self.initial.get_or_init(|| {
            let (addr, _) = self.gomp.global_icv?;
            let mut initial = self.icvs_at(addr).ok()?;
            if !self.has_own_levels() {
                initial.max_active_levels = Fact::unknown("this runtime does not keep what it was");
            }
            Some(initial)
        });
        initial.as_ref()
    }

    /// `max-active-levels-var` has been a member of the task since GCC 11, and before one variable for all, which calls change.
    fn has_own_levels(&self) -> bool {
        self.gomp.structs.icv.max_active_levels.origin().is_some()
    }

    fn began(&self) -> Began<'_> {
        let own_levels = self.has_own_levels();
        let old_levels = self.gomp.max_active_levels.is_some();
        Began {
            environment: &self.environment,
            variables: &super::super::ABOUT.variables,
            initial: self.initial(),
            processors: self.available_cpus().get(),
            schedule: Schedule { kind: 2, monotonic: false, chunk: 1 },
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

    /// What a new region's level is in a list has its implicit tasks take the item (`gomp_team_start`), whatever the task that
    /// opens it has set for itself.
    fn deeper(&self, level: u32) -> DeeperItems {
        let whole = self.lists.get_or_init(|| {
            let width = self.target.arch().pointer_bytes.into();
            let initial = self.initial();
            let first = initial.and_then(|initial| initial.nthreads.get());
            let nthreads = self.list(self.gomp.nthreads_list, width, first, |item| item > 0);
            let first = initial.and_then(|initial| initial.bind.get()).map(|bind| bind.0.into());
            let bind = self.list(self.gomp.bind_list, 1, first, |item| (1..=4).contains(&item));
            let bind = bind.map(|items| items.iter().map(|item| ProcBind(*item as u32)).collect());
            DeeperItems { nthreads: nthreads.map(Items::of), bind: bind.map(Items::of) }
        });
        whole.beyond(level)
    }

    /// A list of items of `width` bytes, empty where there is none. If there is one, the runtime began with its first item.
    fn list(
        &self,
        [list, length]: [Option<(Addr, Origin)>; 2],
        width: u64,
        first: Option<u64>,
        is_item: impl Fn(u64) -> bool,
    ) -> Fact<Arc<[u64]>> {
        let (Some((list, origin)), Some((length, of_length))) = (list, length) else {
            return Fact::unknown("where this runtime keeps the items of lists is not known");
        };
        let origin = origin.max(of_length);
        let arch = self.target.arch();
        let read = || -> Result<Arc<[u64]>, Reason> {
            let (list, length) = (self.target.read_ptr(list)?, self.target.read_ptr(length)?.0);
            if list.is_null() {
                return Ok(Arc::default());
            }
            if !(1..=limits::LEVELS).contains(&length) {
                return Err(Reason::Inconsistent(format!("the list has {length} items, which is not believed")));
            }
            let bytes = self.target.read_vec(list, length * width)?;
            let items: Arc<[u64]> = bytes.chunks_exact(width as usize).map(|c| arch.byte_order.uint(c)).collect();
            let begins = items.first().copied();
            if first.is_some_and(|first| Some(first) != begins) || !items.iter().all(|item| is_item(*item)) {
                return Err(Reason::Inconsistent("the list is not what the runtime began with".to_owned()));
            }
            Ok(items)
        };
        read().map_or_else(Fact::from, |items| Fact::known(items, origin))
    }

    fn available_cpus(&self) -> Fact<u64> {
        self.word(self.gomp.available_cpus, self.target.arch().pointer_bytes.into(), "the number of processors")
    }

    /// A variable of `size` bytes.
    fn word(&self, at: Option<(Addr, Origin)>, size: u64, what: &str) -> Fact<u64> {
        match at {
            Some((addr, origin)) => match self.target.read_uint(addr, size) {
                Ok(value) => Fact::known(value, origin),
                Err(fault) => Fact::unknown(fault),
            },
            None => Fact::unknown(format_args!("where this runtime keeps {what} is not known")),
        }
    }

    /// The text that a variable of the runtime points to.
    fn text_setting(&self, at: Option<(Addr, Origin)>, what: &str) -> Fact<SettingValue> {
        let Some((addr, origin)) = at else {
            return Fact::unknown(format_args!("where this runtime keeps {what} is not known"));
        };
        let text = self.target.read_ptr(addr).and_then(|text| self.target.read_cstr(text, limits::STRING));
        match text {
            Ok(text) => Fact::known(SettingValue::Text(text), origin),
            Err(fault) => Fact::unknown(fault),
        }
    }

    /// Control variables of the process as a whole.
    pub(super) fn settings(&self) -> Vec<Setting> {
        self.settings_of(None)
    }

    /// One of them.
    pub(in crate::gomp) fn setting(gomp: &Gomp, target: &dyn Target, name: &str) -> Option<Setting> {
        Context::new(gomp, target).settings_of(Some(name)).into_iter().find(|setting| setting.name == name)
    }

    /// All, or all of which but one are not read.
    fn settings_of(&self, only: Option<&str>) -> Vec<Setting> {
        let wanted = |of: &str| only.is_none_or(|only| only == of);
        let environment = &self.environment;
        let number = |value: u64| SettingValue::Number(i64::from(value as u32 as i32));
        let flag = |text: &str| sources::flag(text).map(SettingValue::Flag);
        let unread = "where this runtime keeps it is not known";
        let policy = |text: &str| match text.to_ascii_lowercase().as_str() {
            "active" => Some(SettingValue::Word("active")),
            "passive" => Some(SettingValue::Word("passive")),
            _ => None,
        };
        let set =
            |name, scope, value, variables: &[&'static str], parse: &dyn Fn(&str) -> Option<SettingValue>, default| {
                sources::setting(name, scope, value, environment, variables, parse, default)
            };
        let word = |place, size, of| match wanted(of) {
            true => self.word(place, size, of),
            false => Fact::unknown(NOT_LOOKED_FOR),
        };
        let cancel = word(self.gomp.cancel, 1, "cancel-var").map(|value| SettingValue::Flag(value != 0));
        let priority = word(self.gomp.max_task_priority, 4, "max-task-priority-var").map(number);
        let processors = match wanted("num-procs-var") {
            true => self.available_cpus(),
            false => Fact::unknown(NOT_LOOKED_FOR),
        };
        let counted = processors.get().map(number);
        let none = SettingValue::Number(0);
        vec![
            set("cancel-var", Scope::Global, cancel, &["OMP_CANCELLATION"], &flag, Some(SettingValue::Flag(false))),
            set(
                "max-task-priority-var",
                Scope::Global,
                priority,
                &["OMP_MAX_TASK_PRIORITY"],
                &sources::number,
                Some(none),
            ),
            set("num-procs-var", Scope::Device, processors.map(number), &[], &sources::number, counted),
            set(
                "stacksize-var",
                Scope::Device,
                Fact::unknown(unread),
                &["OMP_STACKSIZE", "GOMP_STACKSIZE"],
                &sources::size,
                None,
            ),
            set(
                "nteams-var",
                Scope::Device,
                word(self.gomp.nteams, 4, "nteams-var").map(number),
                // The second counts from GCC 13 on, where the first is not set.
                &["OMP_NUM_TEAMS", "OMP_NUM_TEAMS_ALL"],
                &sources::number,
                Some(SettingValue::Number(0)),
            ),
            set(
                "teams-thread-limit-var",
                Scope::Device,
                word(self.gomp.teams_thread_limit, 4, "teams-thread-limit-var").map(number),
                &["OMP_TEAMS_THREAD_LIMIT", "OMP_TEAMS_THREAD_LIMIT_ALL"],
                &sources::number,
                Some(SettingValue::Number(0)),
            ),
            set(
                "affinity-format-var",
                Scope::Device,
                match wanted("affinity-format-var") {
                    true => self.text_setting(self.gomp.affinity_format, "affinity-format-var"),
                    false => Fact::unknown(NOT_LOOKED_FOR),
                },
                &["OMP_AFFINITY_FORMAT"],
                &sources::text,
                // `gomp_affinity_format_var` in icv.c.
                Some(SettingValue::Text("level %L thread %i affinity %A".to_owned())),
            ),
            set("wait-policy-var", Scope::Device, Fact::unknown(unread), &["OMP_WAIT_POLICY"], &policy, None),
            set("GOMP_SPINCOUNT", Scope::Device, Fact::unknown(unread), &["GOMP_SPINCOUNT"], &sources::number, None),
        ]
    }

    /// Where a thread is to run: `thr->place` counts from 1, and `place_partition_len` is not set before places are used.
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
                None => Err(Reason::Inconsistent(format!("of {count} places its partition has {length} from {first} on"))),
            }
        };
        let cpus = match &place {
            Ok(None) => s.place.fact(Ok(None)),
            Ok(Some(place)) => match self.place_table() {
                Ok(table) => match table.get(*place as usize) {
                    Some(cpus) => s.place.fact(Ok(Some(Arc::clone(cpus)))),
                    None => Fact::unknown(format_args!("there is no place {place}")),
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

    /// The sets lie one behind the other in one piece of memory (`gomp_affinity_alloc`), so that their distance is their size.
    /// Places without any processor that may be used are taken out of the list; the sets left in between are empty.
    fn read_places(&self) -> Result<Vec<Arc<[u32]>>, Reason> {
        let arch = self.target.arch();
        let Some(count) = self.places()?.filter(|count| *count <= MAX_PLACES) else {
            return Err(Reason::Inconsistent("its table of places is implausible".to_owned()));
        };
        let (Some((list, _)), width) = (self.gomp.places, u64::from(arch.pointer_bytes)) else {
            return Err(Reason::NoLayout("the table of places"));
        };
        let list = self.target.read_ptr(list)?;
        let bytes = self.target.read_vec(list, count * width)?;
        let sets: Vec<u64> = bytes.chunks_exact(arch.pointer_bytes.into()).map(|c| arch.byte_order.uint(c)).collect();
        let distance = sets.windows(2).map(|pair| pair[1].wrapping_sub(pair[0])).min();
        let Some(size) = distance else {
            return Err(Reason::Inconsistent(
                "how large a set of processors is does not show where there is one place".into(),
            ));
        };
        if !(1..=MAX_SET).contains(&size) || size % width != 0 {
            return Err(Reason::Inconsistent("its table of places is implausible".to_owned()));
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
            left = left
                .checked_sub(cpus.len())
                .ok_or_else(|| Reason::Inconsistent("its places have too many processors".to_owned()))?;
            Ok(cpus.into())
        };
        sets.iter().map(set).collect()
    }
}
