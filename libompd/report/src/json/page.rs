//! The page that explains the JSON report: every key from the schema, with an example, and every code of a reason.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use ompd_runtime::family::reasons;
use serde_json::{Map, Value};

/// Where the schema keeps its types.
const TYPES: &str = "$defs";

/// The page. `list` is the schema for several processes. `examples` has a value for `Type.key`, as it was in some report.
pub fn page(schema: &Value, list: &Value, examples: &Map<String, Value>) -> String {
    let mut out = String::from(
        "# The JSON report\n\n\
         <!-- Generated from docs/report.schema.json by the tests of ompd-report (UPDATE_SCHEMA=1). -->\n\n\
         `ompd-inspect --json` prints one document of type [Report](#report). Its format is the schema\n\
         [`report.schema.json`](report.schema.json). Keys are only ever added. A key without a value may be absent or\n\
         `null`. Addresses are texts in hexadecimal, of fixed width. Kinds, states and codes may become more.\n\n\
         A value that was read is `{\"value\": …, \"origin\": …}`. One that was not is `{\"unknown\": …, \"code\": …}`: the reason\n\
         in words, which may change, and its [code](#codes), which stays. Below, such a value is *read* `type`.\n\n\
         Several processes or cores, `--children`, `--name`, `--user` and `run --on-hang` give one document of type\n\
         [List](#list) instead, also if only one process was found. Its schema is\n\
         [`report-list.schema.json`](report-list.schema.json).\n",
    );
    section(&mut out, "List", list, examples);
    let types_of_list = list.get(TYPES).and_then(Value::as_object);
    for (name, of) in types_of_list.into_iter().flatten().filter(|(name, _)| *name != "Report") {
        section(&mut out, name, of, examples);
    }
    section(&mut out, "Report", schema, examples);
    let types = schema.get(TYPES).and_then(Value::as_object);
    for (name, of) in types.into_iter().flatten().filter(|(name, _)| !name.starts_with("Known_")) {
        section(&mut out, name, of, examples);
    }
    out.push_str("\n## Codes\n\nOf reasons why a value is unknown, and of issues.\n\n| code | words |\n|---|---|\n");
    let codes: BTreeMap<&str, &str> = reasons().into_iter().collect();
    for (code, words) in codes {
        let _ = writeln!(out, "| `{code}` | {} |", words.replace('|', "\\|"));
    }
    out
}

/// One type.
fn section(out: &mut String, name: &str, of: &Value, examples: &Map<String, Value>) {
    let _ = writeln!(out, "\n## {name}\n\n{}\n", text(of));
    let choices = of.get("anyOf").or(of.get("oneOf")).and_then(Value::as_array);
    let objects: Vec<&Value> = choices.map_or_else(|| vec![of], |choices| choices.iter().collect());
    if objects.iter().all(|object| object.get("properties").is_none()) {
        return;
    }
    out.push_str("| key | type | meaning | example |\n|---|---|---|---|\n");
    for object in objects {
        for (key, of_key) in object.get("properties").and_then(Value::as_object).into_iter().flatten() {
            let example = examples.get(&format!("{name}.{key}")).map(|value| format!("`{value}`"));
            let cells = [format!("`{key}`"), kind(of_key), text(of_key), example.unwrap_or_default()];
            let _ = writeln!(out, "| {} |", cells.map(|cell| cell.replace('|', "\\|")).join(" | "));
        }
    }
}

/// What the schema says of something, on one line.
fn text(of: &Value) -> String {
    let text = of.get("description").and_then(Value::as_str).unwrap_or_default();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The type of a key.
fn kind(of: &Value) -> String {
    if let Some(name) = of.get("$ref").and_then(Value::as_str).and_then(|path| path.rsplit('/').next()) {
        // A schema in a file of its own.
        let name = if name == "report.schema.json" { "Report" } else { name };
        return match name.strip_prefix("Known_") {
            Some(read) => format!("*read* {}", read.replace("Nullable_", "optional ").replace("Array_of_", "list of ")),
            None => format!("[{name}](#{})", name.to_lowercase()),
        };
    }
    if let Some(items) = of.get("items") {
        return format!("list of {}", kind(items));
    }
    let choices = of.get("anyOf").and_then(Value::as_array);
    if let Some(one) = choices.and_then(|choices| choices.iter().find(|choice| kind(choice) != "null")) {
        return kind(one);
    }
    match of.get("type") {
        Some(Value::String(name)) => name.clone(),
        Some(Value::Array(names)) => {
            let names = names.iter().filter_map(Value::as_str).filter(|name| *name != "null");
            names.collect::<Vec<_>>().join(" or ")
        }
        _ => "any".to_owned(),
    }
}
