//! Control variables of the process as a whole. None of them can be set by a call of OpenMP's, but for the numbers of teams and the
//! format of affinities.

use ompd_process::{Addr, Target, TargetExt};

use super::Context;
use crate::kmp::Kmp;
use crate::kmp::schema::{
    AFFINITY_FORMAT, AVAIL_PROC, CANCEL, DISPLAY_AFFINITY, LIBRARY, MAX_TASK_PRIORITY, NTEAMS, OMPD_STATE, STACKSIZE,
    TARGET_OFFLOAD, TEAMS_THREAD_LIMIT, TOOL, TOOL_LIBRARIES, TOOL_VERBOSE_INIT,
};
use crate::limits;
use crate::model::*;
use crate::sources;

/// Values by the numbers the runtime has for them.
const ENABLED: &[(i64, &str)] = &[(0, "disabled"), (1, "enabled")];
/// `enum library_type`.
const LIBRARIES: &[(i64, &str)] = &[(1, "serial"), (2, "turnaround"), (3, "throughput")];
/// The same variable by the names of the specification (`__kmp_stg_print_wait_policy`), which has none for `serial`.
const POLICIES: &[(i64, &str)] = &[(2, "active"), (3, "passive")];
/// What both variables say of the policy.
const SAID_OF_POLICY: &[(&str, &str)] =
    &[("turnaround", "active"), ("active", "active"), ("throughput", "passive"), ("passive", "passive")];
/// What `KMP_LIBRARY` and `OMP_WAIT_POLICY` say.
const SAID_OF_LIBRARY: &[(&str, &str)] = &[
    ("serial", "serial"),
    ("turnaround", "turnaround"),
    ("active", "turnaround"),
    ("throughput", "throughput"),
    ("passive", "throughput"),
];
/// `enum kmp_target_offload_kind`.
const OFFLOADS: &[(i64, &str)] = &[(0, "disabled"), (1, "default"), (2, "mandatory")];

impl Context<'_> {
    /// A variable of `size` bytes, signed.
    pub(super) fn number(&self, name: &'static str, size: u64) -> Fact<i64> {
        let Some((addr, origin)) = self.kmp.global(name) else {
            return Fact::unknown(format_args!("where this runtime keeps {name} is not known"));
        };
        match self.target.read_uint(addr, size) {
            Ok(value) if size == 4 => Fact::known(i64::from(value as u32 as i32), origin),
            Ok(value) => Fact::known(value as i64, origin),
            Err(fault) => Fact::unknown(fault),
        }
    }

    /// One of several words, by its number.
    fn word(of: Fact<i64>, words: &'static [(i64, &'static str)]) -> Fact<SettingValue> {
        match of {
            Fact::Known { value, origin } => match words.iter().find(|(number, _)| *number == value) {
                Some((_, word)) => Fact::known(SettingValue::Word(word), origin),
                None => {
                    Fact::unknown(format_args!("the runtime's number for it is {value}, for which there is no word"))
                }
            },
            Fact::Unknown { why } => Fact::Unknown { why },
        }
    }

    /// The text that a variable points to, or `null` where it points to none.
    fn text(&self, name: &'static str, null: Option<&str>) -> Fact<SettingValue> {
        let Some((addr, origin)) = self.kmp.global(name) else {
            return Fact::unknown(format_args!("where this runtime keeps {name} is not known"));
        };
        let read = self.target.read_ptr(addr).and_then(|text| match null.filter(|_| text.is_null()) {
            Some(null) => Ok(null.to_owned()),
            None => self.target.read_cstr(text, limits::STRING),
        });
        match read {
            Ok(text) => Fact::known(SettingValue::Text(text), origin),
            Err(fault) => Fact::unknown(fault),
        }
    }

    pub(super) fn settings(&self) -> Vec<Setting> {
        // Many of them lie side by side.
        const ALL: [&str; 14] = [
            AFFINITY_FORMAT,
            AVAIL_PROC,
            CANCEL,
            DISPLAY_AFFINITY,
            LIBRARY,
            MAX_TASK_PRIORITY,
            NTEAMS,
            OMPD_STATE,
            STACKSIZE,
            TARGET_OFFLOAD,
            TEAMS_THREAD_LIMIT,
            TOOL,
            TOOL_LIBRARIES,
            TOOL_VERBOSE_INIT,
        ];
        let places = ALL.iter().filter_map(|name| self.kmp.global(name));
        let ranges: Vec<(Addr, u64)> = places.map(|(addr, _)| (addr, 8)).collect();
        self.target.prefetch(&ranges);
        self.settings_of(None)
    }

    /// One of them.
    pub(in crate::kmp) fn setting(kmp: &Kmp, target: &dyn Target, name: &str) -> Option<Setting> {
        Context::new(kmp, target).settings_of(Some(name)).pop()
    }

    /// All, or one only: of the others nothing is read.
    fn settings_of(&self, only: Option<&str>) -> Vec<Setting> {
        let mut settings = Vec::new();
        let mut set = |name: &'static str,
                       scope: Scope,
                       value: &dyn Fn() -> Fact<SettingValue>,
                       variables: &[&'static str],
                       parse: &dyn Fn(&str) -> Option<SettingValue>,
                       default: Option<SettingValue>| {
            if only.is_none_or(|only| only == name) {
                let environment = &self.environment;
                settings.push(sources::setting(name, scope, value(), environment, variables, parse, default));
            }
        };
        let number = |name| move || self.number(name, 4).map(SettingValue::Number);
        let flag = |name| move || self.number(name, 4).map(|value| SettingValue::Flag(value != 0));
        let said_flag = |text: &str| super::super::flag(text).map(SettingValue::Flag);
        let said = |words: &'static [(i64, &'static str)]| {
            move |text: &str| sources::word(text, words.iter().map(|(_, word)| (*word, *word)))
        };
        let (global, device) = (Scope::Global, Scope::Device);
        let no = || Some(SettingValue::Flag(false));
        let none = || Some(SettingValue::Number(0));
        let word = |word| Some(SettingValue::Word(word));
        let pointer = u64::from(self.target.arch().pointer_bytes);

        set("cancel-var", global, &flag(CANCEL), &["OMP_CANCELLATION"], &said_flag, no());
        let variables = &["OMP_MAX_TASK_PRIORITY"];
        set("max-task-priority-var", global, &number(MAX_TASK_PRIORITY), variables, &sources::number, none());
        // Where nothing is said it is what it has counted.
        let counted = only.is_none_or(|only| only == "num-procs-var").then(|| number(AVAIL_PROC)());
        let default = counted.as_ref().and_then(|counted| counted.value().cloned());
        let processors = || counted.clone().unwrap_or_else(|| Fact::unknown("not asked for"));
        set("num-procs-var", device, &processors, &["KMP_HW_SUBSET", "KMP_AFFINITY"], &|_| None, default);
        // Where nothing is said it depends on the limit of the process.
        let size = || self.number(STACKSIZE, pointer).map(SettingValue::Number);
        let variables = &["OMP_STACKSIZE", "KMP_STACKSIZE", "GOMP_STACKSIZE"];
        set("stacksize-var", device, &size, variables, &sources::size, None);
        set("nteams-var", device, &number(NTEAMS), &["OMP_NUM_TEAMS"], &sources::number, none());
        let variables = &["OMP_TEAMS_THREAD_LIMIT"];
        set("teams-thread-limit-var", device, &number(TEAMS_THREAD_LIMIT), variables, &sources::number, none());
        // Where nothing is said it differs from release to release.
        let format = || self.text(AFFINITY_FORMAT, None);
        set("affinity-format-var", device, &format, &["OMP_AFFINITY_FORMAT"], &sources::text, None);
        let variables = &["OMP_DISPLAY_AFFINITY"];
        set("display-affinity-var", global, &flag(DISPLAY_AFFINITY), variables, &said_flag, no());
        let offload = || Self::word(self.number(TARGET_OFFLOAD, 4), OFFLOADS);
        set("target-offload-var", global, &offload, &["OMP_TARGET_OFFLOAD"], &said(OFFLOADS), word("default"));
        let tool = || Self::word(self.number(TOOL, 4), ENABLED);
        set("tool-var", global, &tool, &["OMP_TOOL"], &said(ENABLED), word("enabled"));
        let libraries = || self.text(TOOL_LIBRARIES, Some(""));
        let default = Some(SettingValue::Text(String::new()));
        set("tool-libraries-var", global, &libraries, &["OMP_TOOL_LIBRARIES"], &sources::text, default);
        let verbose = || self.text(TOOL_VERBOSE_INIT, Some("disabled"));
        let default = Some(SettingValue::Text("disabled".to_owned()));
        set("tool-verbose-init-var", global, &verbose, &["OMP_TOOL_VERBOSE_INIT"], &sources::text, default);
        let debug = || Self::word(self.number(OMPD_STATE, 8).map(|state| state & 1), ENABLED);
        set("debug-var", global, &debug, &["OMP_DEBUG"], &said(ENABLED), word("disabled"));
        let policy = || Self::word(self.number(LIBRARY, 4), POLICIES);
        let of_policy = |text: &str| sources::word(text, SAID_OF_POLICY.iter().copied());
        set("wait-policy-var", device, &policy, &["OMP_WAIT_POLICY", "KMP_LIBRARY"], &of_policy, word("passive"));
        let library = || Self::word(self.number(LIBRARY, 4), LIBRARIES);
        let of_library = |text: &str| sources::word(text, SAID_OF_LIBRARY.iter().copied());
        set("KMP_LIBRARY", device, &library, &["KMP_LIBRARY", "OMP_WAIT_POLICY"], &of_library, word("throughput"));
        let unit = || Fact::unknown("it is not read, for its unit differs from release to release");
        set("KMP_BLOCKTIME", device, &unit, &["KMP_BLOCKTIME"], &sources::number, None);
        settings
    }
}
