//! Internal control variables, where they come from, and places.

use ompd_runtime::model::{self, Fact, SettingValue};
use schemars::JsonSchema;
use serde::Serialize;

use super::{Known, copied, known};
use ompd_inspection::Inspection;

/// Internal control variables of a task.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Icvs {
    /// nthreads-var, of which this is what counts for the task's own parallel regions.
    pub nthreads: Known<u64>,
    /// The whole of nthreads-var: that value, then one for each further level of nesting. The last one counts for all levels
    /// beyond.
    pub nthreads_list: Known<Vec<u64>>,
    /// dyn-var.
    pub dynamic: Known<bool>,
    /// run-sched-var.
    pub schedule: Known<String>,
    /// max-active-levels-var.
    pub max_active_levels: Known<u64>,
    /// thread-limit-var; `null` as value: no limit.
    pub thread_limit: Known<Option<u64>>,
    /// bind-var, of which this is what counts for the task's own parallel regions.
    pub bind: Known<String>,
    /// The whole of bind-var, likewise.
    pub bind_list: Known<Vec<String>>,
    /// levels-var.
    pub levels: Known<u32>,
    /// active-levels-var.
    pub active_levels: Known<u32>,
    /// default-device-var.
    pub default_device: Known<i64>,
    /// `def-allocator-var`: the name of a predefined allocator, or a handle.
    pub def_allocator: Known<String>,
}

/// Where a value comes from.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Source {
    /// It is known.
    Known {
        /// `environment`: it is what a variable says that the process was started with. `default`: no variable sets it, and it
        /// is what the runtime has by itself. `program`: it is neither, so the program has set it.
        source: &'static str,
        /// Name of the variable.
        #[serde(skip_serializing_if = "Option::is_none")]
        variable: Option<&'static str>,
        /// Text of the variable.
        #[serde(skip_serializing_if = "Option::is_none")]
        text: Option<String>,
    },
    /// It is not.
    Unknown {
        /// The reason, in words.
        unknown: String,
        /// The reason's code, which stays when the words change: see docs/json.md.
        code: &'static str,
    },
}

/// Where the values of a task's control variables come from, under the names of those.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Sources {
    /// Of nthreads-var.
    pub nthreads: Source,
    /// Of dyn-var.
    pub dynamic: Source,
    /// Of run-sched-var.
    pub schedule: Source,
    /// Of max-active-levels-var.
    pub max_active_levels: Source,
    /// Of thread-limit-var.
    pub thread_limit: Source,
    /// Of bind-var.
    pub bind: Source,
    /// Of default-device-var.
    pub default_device: Source,
    /// Of `def-allocator-var`.
    pub def_allocator: Source,
}

/// A control variable that the process has one of.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Setting {
    /// Its name in the specification, or that of the variable of the environment by which the runtime's own is known.
    pub name: &'static str,
    /// `global` or `device`.
    pub scope: &'static str,
    /// Its value; sizes are in bytes.
    pub value: Known<Value>,
    /// Where that comes from.
    pub source: Source,
    /// `NAME=TEXT`: a variable of the environment that is about it, whether or not the value is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub said: Option<String>,
}

/// A value of one kind or another.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Value {
    /// A number.
    Number(i64),
    /// Yes or no.
    Flag(bool),
    /// A word.
    Word(&'static str),
    /// Any text (of the target).
    Text(String),
}

/// Where a thread is to run.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Placement {
    /// omp_get_place_num(); `null` as value: bound to no place.
    pub place: Known<Option<u32>>,
    /// place-partition-var; `null` as value: there are no places.
    pub partition: Known<Option<Partition>>,
    /// Processors of its place; `null` as value: bound to no place.
    pub place_cpus: Known<Option<Vec<u32>>>,
    /// Processors the kernel lets it run on (live processes).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allowed_cpus: Option<Vec<u32>>,
}

/// Places of a partition.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Partition {
    /// Number of the first place.
    pub first: u32,
    /// Number of the last place; smaller than the first where the partition goes past the end of all places.
    pub last: u32,
}

pub fn of(icvs: &model::Icvs) -> Icvs {
    Icvs {
        nthreads: copied(&icvs.nthreads),
        nthreads_list: known(&icvs.nthreads_list(), Clone::clone),
        dynamic: copied(&icvs.dynamic),
        schedule: known(&icvs.schedule, |s| s.to_string()),
        max_active_levels: copied(&icvs.max_active_levels),
        thread_limit: copied(&icvs.thread_limit),
        bind: known(&icvs.bind, |b| b.to_string()),
        bind_list: known(&icvs.bind_list(), |list| list.iter().map(ToString::to_string).collect()),
        levels: copied(&icvs.levels),
        active_levels: copied(&icvs.active_levels),
        default_device: copied(&icvs.default_device),
        def_allocator: known(&icvs.def_allocator, ToString::to_string),
    }
}

pub fn sources(sources: &model::IcvSources) -> Sources {
    Sources {
        nthreads: source(&sources.nthreads),
        dynamic: source(&sources.dynamic),
        schedule: source(&sources.schedule),
        max_active_levels: source(&sources.max_active_levels),
        thread_limit: source(&sources.thread_limit),
        bind: source(&sources.bind),
        default_device: source(&sources.default_device),
        def_allocator: source(&sources.def_allocator),
    }
}

fn source(source: &Fact<model::Source>) -> Source {
    match source {
        Fact::Known { value, .. } => {
            let (variable, text) = match value {
                model::Source::Environment { variable, text } => (Some(*variable), Some(text.clone())),
                _ => (None, None),
            };
            Source::Known { source: value.word(), variable, text }
        }
        Fact::Unknown { why } => Source::Unknown { unknown: why.to_string(), code: why.code() },
    }
}

pub fn setting(setting: &model::Setting) -> Setting {
    let value = |value: &SettingValue| match value {
        SettingValue::Number(number) => Value::Number(*number),
        SettingValue::Flag(flag) => Value::Flag(*flag),
        SettingValue::Word(word) => Value::Word(word),
        SettingValue::Text(text) => Value::Text(text.clone()),
    };
    Setting {
        name: setting.name,
        scope: setting.scope.word(),
        value: known(&setting.value, value),
        source: source(&setting.source),
        said: setting.said.as_ref().map(|(variable, text)| format!("{variable}={text}")),
    }
}

pub fn placement(inspection: &Inspection, thread: &model::Thread) -> Placement {
    let own = &thread.placement;
    let cpus = inspection.process.cpus.as_ref();
    Placement {
        place: copied(&own.place),
        partition: known(&own.partition, |p| p.map(|p| Partition { first: p.first, last: p.last })),
        place_cpus: known(&own.cpus, |cpus| cpus.as_ref().map(|cpus| cpus.to_vec())),
        allowed_cpus: cpus.and_then(|cpus| Some(cpus.of_thread(thread.lwp?)?.to_vec())),
    }
}
