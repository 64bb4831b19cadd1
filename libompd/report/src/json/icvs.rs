//! Internal control variables, where they come from, and places.

use std::borrow::Cow;

use ompd_runtime::icvs::{Entry, Kind, of_tasks};
use ompd_runtime::model::{self, Fact, IcvValue};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Serialize, Serializer};

use super::{Known, copied, known};
use ompd_inspection::Inspection;

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

/// Internal control variables of a task: their values, and of those that are lists the whole of them.
#[derive(Debug)]
pub struct Icvs(Vec<(Cow<'static, str>, Known<serde_json::Value>)>);

/// Where the values of a task's control variables come from, under the names of those.
#[derive(Debug)]
pub struct Sources(Vec<(&'static str, Source)>);

impl Serialize for Icvs {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(key, value)| (key, value)))
    }
}

impl Serialize for Sources {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(key, source)| (key, source)))
    }
}

/// The key of a list as a whole; that of the control variable itself has the first item.
fn list_key(key: &str) -> String {
    format!("{key}_list")
}

/// A property as the schema describes it: its key, its type, and what it means.
type Property = (Cow<'static, str>, Schema, String);

fn object(description: &str, properties: Vec<Property>) -> Schema {
    let required: Vec<_> = properties.iter().map(|(key, ..)| key.clone()).collect();
    let mut described = serde_json::Map::new();
    for (key, mut schema, meaning) in properties {
        schema.insert("description".to_owned(), meaning.into());
        described.insert(key.into_owned(), schema.into());
    }
    json_schema!({
        "description": description,
        "type": "object",
        "properties": described,
        "required": required,
    })
}

impl JsonSchema for Icvs {
    fn schema_name() -> Cow<'static, str> {
        "Icvs".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut properties: Vec<Property> = Vec::new();
        let mut has_list = false;
        for (key, entry) in of_tasks() {
            let name = entry.name();
            let meaning = match entry.kind {
                _ if entry.is_list => {
                    format!("{name}, of which this is what counts for the task's own parallel regions.")
                }
                Kind::Limit => format!("{name}; `null` as value: no limit."),
                Kind::Allocator => format!("{name}: the name of a predefined allocator, or a handle."),
                _ => format!("{name}."),
            };
            properties.push((key.into(), of_kind(generator, entry.kind), meaning));
            if entry.is_list {
                let meaning = match has_list {
                    false => format!(
                        "The whole of {name}: that value, then one for each further level of nesting. The last one counts for all \
                         levels\nbeyond."
                    ),
                    true => format!("The whole of {name}, likewise."),
                };
                properties.push((list_key(key).into(), of_lists(generator, entry.kind), meaning));
                has_list = true;
            }
        }
        object("Internal control variables of a task.", properties)
    }
}

impl JsonSchema for Sources {
    fn schema_name() -> Cow<'static, str> {
        "Sources".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let source = |(key, entry): (&'static str, &Entry)| {
            (Cow::Borrowed(key), generator.subschema_for::<Source>(), format!("Of {}.", entry.name()))
        };
        let properties = of_tasks().filter(|(_, entry)| entry.can_be_set()).map(source).collect();
        object("Where the values of a task's control variables come from, under the names of those.", properties)
    }
}

fn of_kind(generator: &mut SchemaGenerator, kind: Kind) -> Schema {
    match kind {
        Kind::Number => generator.subschema_for::<Known<i64>>(),
        Kind::Count => generator.subschema_for::<Known<u64>>(),
        Kind::Levels => generator.subschema_for::<Known<u32>>(),
        Kind::Limit => generator.subschema_for::<Known<Option<u64>>>(),
        Kind::Flag => generator.subschema_for::<Known<bool>>(),
        Kind::Schedule | Kind::Bind | Kind::Allocator | Kind::Switch | Kind::Word | Kind::Text => {
            generator.subschema_for::<Known<String>>()
        }
    }
}

fn of_lists(generator: &mut SchemaGenerator, kind: Kind) -> Schema {
    match kind {
        Kind::Number => generator.subschema_for::<Known<Vec<i64>>>(),
        Kind::Count | Kind::Levels | Kind::Limit => generator.subschema_for::<Known<Vec<u64>>>(),
        Kind::Flag => generator.subschema_for::<Known<Vec<bool>>>(),
        Kind::Schedule | Kind::Bind | Kind::Allocator | Kind::Switch | Kind::Word | Kind::Text => {
            generator.subschema_for::<Known<Vec<String>>>()
        }
    }
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
    let mut all = Vec::new();
    for (key, entry) in of_tasks() {
        all.push((key.into(), known(icvs.get(entry), value)));
        if entry.is_list {
            let items = |items: &Vec<IcvValue>| items.iter().map(value).collect();
            all.push((list_key(key).into(), known(&icvs.list(entry), items)));
        }
    }
    Icvs(all)
}

fn value(value: &IcvValue) -> serde_json::Value {
    match value {
        IcvValue::Number(number) => (*number).into(),
        IcvValue::Count(count) | IcvValue::Limit(Some(count)) => (*count).into(),
        IcvValue::Limit(None) => serde_json::Value::Null,
        IcvValue::Flag(flag) => (*flag).into(),
        other => other.to_string().into(),
    }
}

pub fn sources(sources: &model::IcvSources) -> Sources {
    let set = of_tasks().filter(|(_, entry)| entry.can_be_set());
    Sources(set.map(|(key, entry)| (key, source(sources.get(entry)))).collect())
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
    let value = |value: &IcvValue| match value {
        IcvValue::Number(number) => Value::Number(*number),
        IcvValue::Flag(flag) => Value::Flag(*flag),
        IcvValue::Word(word) => Value::Word(word),
        other => Value::Text(other.to_string()),
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Every control variable of a task has its key, in documents and in the schema.
    #[test]
    fn documents_and_schema_have_every_control_variable() {
        let icvs = model::Icvs::unknown(model::Common::NotLookedFor);
        let (found, from) = (serde_json::json!(of(&icvs)), serde_json::json!(sources(&icvs.sources)));
        let (schema, of_sources) = (schemars::schema_for!(Icvs), schemars::schema_for!(Sources));
        let has = |schema: &Schema, key: &str| schema.get("properties").is_some_and(|all| all.get(key).is_some());
        for (key, entry) in of_tasks() {
            assert!(found.get(key).is_some() && has(&schema, key), "{key}");
            assert_eq!(found.get(list_key(key)).is_some(), entry.is_list, "{key}");
            assert_eq!(has(&schema, &list_key(key)), entry.is_list, "{key}");
            assert_eq!(
                (from.get(key).is_some(), has(&of_sources, key)),
                (entry.can_be_set(), entry.can_be_set()),
                "{key}"
            );
        }
    }
}
