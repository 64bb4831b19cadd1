//! Internal control variables, where they come from, and places.

use ompd_target::{Addr, Target, TargetExt};

use super::Reader;
use crate::bind::{Slot, View};
use crate::excerpt::NOT_LOOKED_FOR;
use crate::kmp::Kmp;
use crate::kmp::schema::{AVAIL_PROC, CANCEL, LIBRARY, MAX_TASK_PRIORITY, STACKSIZE};
use crate::model::*;
use crate::sources::{self, Began};

/// Bits of a schedule that are modifiers (`kmp_sch_modifier_monotonic`, `_nonmonotonic`).
const SCHEDULE_MONOTONIC: u32 = 1 << 29;
const SCHEDULE_NONMONOTONIC: u32 = 1 << 30;
/// `KMP_MAX_NTH`-like values mean that no thread limit is set.
const NO_LIMIT: u64 = i32::MAX as u64;

impl Reader<'_> {
    pub(super) fn icvs_of(&self, task: &Fact<TaskId>, team: Addr) -> Icvs {
        let s = &self.kmp.structs;
        let Some(task) = task.get() else { return Icvs::unknown("its task could not be read") };
        let view = match self.task_views[task.0].within(&s.taskdata.icvs, 0, s.icvs.size) {
            Ok(view) => view,
            Err(why) => return Icvs::unknown(&why.to_string()),
        };
        let i = &s.icvs;
        let schedule = || Ok(schedule(view.u32(&i.sched_kind)?, view.int(&i.sched_chunk)?));
        let limit = |raw: u32| (u64::from(raw) < NO_LIMIT).then_some(u64::from(raw));
        let t = &s.team;
        let of_team = |slot: &Slot| match self.teams.get(&team) {
            Some(team) => slot.fact(team.count(slot)),
            None => Fact::unknown("its team could not be read"),
        };
        let icvs = Icvs {
            nthreads: i.nproc.fact(view.count(&i.nproc).map(u64::from)),
            dynamic: i.dynamic.fact(view.flag(&i.dynamic)),
            schedule: i.sched_kind.fact(schedule()),
            max_active_levels: i.max_active_levels.fact(view.count(&i.max_active_levels).map(u64::from)),
            thread_limit: i.thread_limit.fact(view.count(&i.thread_limit).map(limit)),
            bind: i.proc_bind.fact(view.u32(&i.proc_bind).map(ProcBind)),
            levels: of_team(&t.level),
            active_levels: of_team(&t.active_level),
            default_device: i.default_device.fact(view.int(&i.default_device)),
            sources: IcvSources::unknown("not asked for"),
        };
        if self.focused.is_some() {
            return icvs;
        }
        let sources = sources::of_task(&icvs, &self.began());
        Icvs { sources, ..icvs }
    }

    /// What a root begins with is put together from variables that a stripped build does not name
    /// (`__kmp_get_global_icvs`). Where nothing is said they are the same in all releases that are known.
    fn began(&self) -> Began<'_> {
        Began {
            environment: &self.environment,
            family: Family::Kmp,
            initial: None,
            processors: self.number(AVAIL_PROC, 4).get().and_then(|n| u64::try_from(n).ok()),
            schedule: Schedule { kind: 1, monotonic: false, chunk: 0 },
            levels: Some((1, i32::MAX as u64)),
        }
    }

    /// A variable of `size` bytes, signed.
    fn number(&self, name: &'static str, size: u64) -> Fact<i64> {
        let Some((addr, origin)) = self.kmp.global(name) else {
            return Fact::unknown(format_args!("where this runtime keeps {name} is not known"));
        };
        match self.target.read_uint(addr, size) {
            Ok(value) if size == 4 => Fact::known(i64::from(value as u32 as i32), origin),
            Ok(value) => Fact::known(value as i64, origin),
            Err(fault) => Fact::unknown(fault),
        }
    }

    /// Control variables of the process as a whole. None of them can be set by a call of OpenMP's.
    pub(super) fn settings(&self) -> Vec<Setting> {
        self.settings_of(None)
    }

    /// One of them.
    pub(in crate::kmp) fn setting(kmp: &Kmp, target: &dyn Target, name: &str) -> Option<Setting> {
        Reader::new(kmp, target).settings_of(Some(name)).into_iter().find(|setting| setting.name == name)
    }

    /// All, or all of which but one are not read.
    fn settings_of(&self, only: Option<&str>) -> Vec<Setting> {
        let environment = &self.environment;
        let flag = |text: &str| sources::flag(text, Family::Kmp).map(SettingValue::Flag);
        let arch = self.target.arch();
        let set =
            |name, scope, value, variables: &[&'static str], parse: &dyn Fn(&str) -> Option<SettingValue>, default| {
                sources::setting(name, scope, value, environment, variables, parse, default)
            };
        let read = |of: &str, name, size| match only {
            Some(only) if only != of => Fact::unknown(NOT_LOOKED_FOR),
            _ => self.number(name, size),
        };
        let stacksize = read("stacksize-var", STACKSIZE, arch.pointer_bytes.into()).map(SettingValue::Number);
        let processors = read("num-procs-var", AVAIL_PROC, 4);
        let counted = processors.get().map(SettingValue::Number);
        // `enum library_type`.
        let library = match read("KMP_LIBRARY", LIBRARY, 4) {
            Fact::Known { value: 1, origin } => Fact::known(SettingValue::Word("serial"), origin),
            Fact::Known { value: 2, origin } => Fact::known(SettingValue::Word("turnaround"), origin),
            Fact::Known { value: 3, origin } => Fact::known(SettingValue::Word("throughput"), origin),
            Fact::Known { value, .. } => Fact::unknown(format_args!("it is {value}, which means nothing")),
            Fact::Unknown { why } => Fact::Unknown { why },
        };
        let policy = |text: &str| match text.to_ascii_lowercase().as_str() {
            "serial" => Some(SettingValue::Word("serial")),
            "turnaround" | "active" => Some(SettingValue::Word("turnaround")),
            "throughput" | "passive" => Some(SettingValue::Word("throughput")),
            _ => None,
        };
        let stack_variables = ["OMP_STACKSIZE", "KMP_STACKSIZE", "GOMP_STACKSIZE"];
        let none = SettingValue::Number(0);
        vec![
            set(
                "cancel-var",
                Scope::Global,
                read("cancel-var", CANCEL, 4).map(|value| SettingValue::Flag(value != 0)),
                &["OMP_CANCELLATION"],
                &flag,
                Some(SettingValue::Flag(false)),
            ),
            set(
                "max-task-priority-var",
                Scope::Global,
                read("max-task-priority-var", MAX_TASK_PRIORITY, 4).map(SettingValue::Number),
                &["OMP_MAX_TASK_PRIORITY"],
                &sources::number,
                Some(none),
            ),
            set(
                "num-procs-var",
                Scope::Device,
                processors.map(SettingValue::Number),
                &["KMP_HW_SUBSET", "KMP_AFFINITY"],
                &|_| None,
                counted,
            ),
            // Where nothing is said it depends on the limit of the process.
            set("stacksize-var", Scope::Device, stacksize, &stack_variables, &sources::size, None),
            set(
                "KMP_LIBRARY",
                Scope::Device,
                library,
                &["KMP_LIBRARY", "OMP_WAIT_POLICY"],
                &policy,
                Some(SettingValue::Word("throughput")),
            ),
            set(
                "KMP_BLOCKTIME",
                Scope::Device,
                Fact::unknown("it is not read, for its unit differs from release to release"),
                &["KMP_BLOCKTIME"],
                &sources::number,
                None,
            ),
        ]
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
