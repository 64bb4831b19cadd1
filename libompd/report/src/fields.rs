//! The values of a report by name, so that two reports can be compared and a value be asked for.
//!
//! The name of a value leads to it through the JSON document: `runtimes.0.threads.4711.wait.kind`. Items of lists go by what tells them
//! apart, as threads by their kernel thread id. Their places may change if another item is missing. Where a member names an item by its
//! place, its value is the name of that item here.

use std::collections::{BTreeMap, HashMap};

use serde_json::Value;

/// Values by name.
pub type Fields = BTreeMap<String, Value>;

/// Lists, and the members that tell their items apart: the first that an item has.
const LISTS: [(&str, &[&str]); 10] = [
    ("threads", &["lwp", "descriptor"]),
    ("os_threads", &["lwp"]),
    ("stacks", &["lwp"]),
    ("teams", &["descriptor"]),
    ("tasks", &["descriptor"]),
    ("locks", &["object"]),
    ("icvs", &["name"]),
    ("taskgroups", &["descriptor"]),
    ("leagues", &["lwp"]),
    ("children", &["pid"]),
];
/// Members that name an item of a list of their runtime by its place. Without a list it is that in which the member's item is.
const REFERENCES: [(&str, Option<&str>); 8] = [
    ("team", Some("teams")),
    ("parent", None),
    ("task", Some("tasks")),
    ("generating", Some("tasks")),
    ("of_task", Some("tasks")),
    ("lock", Some("locks")),
    ("taskgroup", Some("taskgroups")),
    ("predecessors", Some("tasks")),
];

/// The names of the items of a runtime's lists, by list.
type Names = HashMap<String, Vec<String>>;

/// The values of a JSON report. Where values come from is not among them.
pub fn of(report: &Value) -> Fields {
    let mut fields = Fields::new();
    add(&mut fields, report, String::new(), &Names::new());
    fields
}

/// The name by which an item of a list goes: that of its place where nothing tells it apart.
fn item_name(list: &str, at: usize, item: &Value) -> String {
    let keys = LISTS.iter().find(|(name, _)| *name == list).map_or(&[][..], |(_, keys)| *keys);
    let key = keys.iter().map(|key| &item[*key]).find(|value| !value.is_null());
    match key {
        Some(Value::String(text)) => short(text),
        Some(other) => other.to_string(),
        None => at.to_string(),
    }
}

/// The names of all items of a list. Of equal ones the second gets a number: what should tell items apart may be damaged.
fn item_names(list: &str, items: &[Value]) -> Vec<String> {
    let mut taken: HashMap<String, usize> = HashMap::new();
    let unique = |(at, item)| {
        let name = item_name(list, at, item);
        let times = taken.entry(name.clone()).or_default();
        *times += 1;
        if *times > 1 { format!("{name}#{times}") } else { name }
    };
    items.iter().enumerate().map(unique).collect()
}

/// The names of the items of all lists of a runtime.
fn names_of(runtime: &Value) -> Names {
    let members = runtime.as_object().into_iter().flatten();
    members.filter_map(|(list, items)| Some((list.clone(), item_names(list, items.as_array()?)))).collect()
}

/// An address without leading zeros; other text as it is.
fn short(text: &str) -> String {
    match text.strip_prefix("0x") {
        Some(digits) if !digits.is_empty() => format!("0x{:0>1}", digits.trim_start_matches('0')),
        _ => text.to_owned(),
    }
}

fn add(fields: &mut Fields, value: &Value, name: String, names: &Names) {
    let below = |part: &str| if name.is_empty() { part.to_owned() } else { format!("{name}.{part}") };
    let last = name.rsplit('.').next().unwrap_or_default();
    match value {
        Value::Object(members) => {
            if let Some(known) = members.get("value").filter(|_| members.contains_key("origin")) {
                return add(fields, known, name, names);
            }
            for (key, member) in members.iter().filter(|(key, _)| *key != "origin") {
                add(fields, member, below(key), names);
            }
        }
        Value::Array(items) if items.is_empty() => drop(fields.insert(name, value.clone())),
        Value::Array(items) => {
            for (own, item) in item_names(last, items).iter().zip(items) {
                let of_runtime = (last == "runtimes").then(|| names_of(item));
                match named_item(&name, item, names) {
                    Some(named) => drop(fields.insert(below(&named), Value::Bool(true))),
                    None => add(fields, item, below(own), of_runtime.as_ref().unwrap_or(names)),
                }
            }
        }
        _ => {
            let value = named_item(&name, value, names).map_or_else(|| value.clone(), Value::from);
            fields.insert(name, value);
        }
    }
}

/// The name of the item that the member of a runtime with this name names by its place, if it names one.
fn named_item(member: &str, value: &Value, names: &Names) -> Option<String> {
    let mut parts = member.rsplit('.');
    let (last, of) = (parts.next()?, parts.nth(1));
    let (_, list) = REFERENCES.iter().find(|(reference, _)| *reference == last)?;
    let list = list.or(of)?;
    let at = usize::try_from(value.as_u64()?).ok()?;
    Some(format!("{list}.{}", names.get(list)?.get(at)?))
}

/// What a name stands for.
#[derive(Debug, PartialEq, Eq)]
pub enum Named {
    /// The one value, or group of values, with this full name.
    One(String),
    /// One of these.
    Several(Vec<String>),
    /// Nothing.
    Nothing,
}

/// The full name that is meant by some of its parts, in order, as `4711.team` or `answer`. Capital letters do not matter. The shortest
/// name that has all parts counts.
pub fn named(fields: &Fields, asked: &str) -> Named {
    let parts: Vec<String> =
        asked.split(|c: char| c == '.' || c.is_whitespace()).filter(|part| !part.is_empty()).map(short).collect();
    let mut found: Vec<String> = fields.keys().filter_map(|name| prefix(name, &parts)).collect();
    let length = |name: &String| name.matches('.').count();
    let shortest = found.iter().map(length).min();
    found.retain(|name| Some(length(name)) == shortest);
    found.sort();
    found.dedup();
    match found.len() {
        0 => Named::Nothing,
        1 => Named::One(found.remove(0)),
        _ => Named::Several(found),
    }
}

/// The name up to the last of the parts, if it has all of them in order.
fn prefix(name: &str, parts: &[String]) -> Option<String> {
    let (mut wanted, mut taken) = (parts.iter().peekable(), Vec::new());
    wanted.peek()?;
    for part in name.split('.') {
        taken.push(part);
        if wanted.peek().is_some_and(|wanted| wanted.eq_ignore_ascii_case(part)) {
            wanted.next();
            if wanted.peek().is_none() {
                return Some(taken.join("."));
            }
        }
    }
    None
}

/// The values with this name, or below it.
pub fn below<'a>(fields: &'a Fields, name: &'a str) -> impl Iterator<Item = (&'a String, &'a Value)> {
    let is_below =
        move |field: &str| field.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
    fields
        .range(name.to_owned()..)
        .take_while(move |(field, _)| field.starts_with(name))
        .filter(move |(field, _)| is_below(field))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn fields() -> Fields {
        of(&json!({
            "answer": {"word": "DEADLOCK", "text": "two threads"},
            "runtimes": [{
                "threads": [
                    {"lwp": 12, "team": {"value": 0, "origin": "code"}, "wait": {"value": {"kind": "lock", "lock": 0}, "origin": "stack"}},
                    {"lwp": null, "descriptor": "0x0030", "team": {"unknown": "it was not read", "code": "c"}},
                ],
                "teams": [{"descriptor": "0x00a0", "parent": {"value": null, "origin": "code"}}],
                "tasks": [{"descriptor": "0xb0"}, {"descriptor": "0xb1", "predecessors": [0]}],
                "locks": [{"object": "0x07", "origin": "code"}],
                "taskgroups": [{"descriptor": "0xc0"}, {"descriptor": "0xc0", "parent": {"value": 0, "origin": "code"}},
                    {"descriptor": "0xc1", "parent": {"value": 1, "origin": "code"}}],
                "icvs": [{"name": "cancel-var", "value": {"value": false, "origin": "code"}}],
            }],
            "verdicts": [{"verdict": "deadlock"}],
            "issues": [],
        }))
    }

    #[test]
    fn items_go_by_what_tells_them_apart() {
        let fields = fields();
        let value = |name: &str| fields.get(name).cloned();
        assert_eq!(value("runtimes.0.threads.12.team"), Some(json!("teams.0xa0")));
        assert_eq!(value("runtimes.0.threads.12.wait.kind"), Some(json!("lock")));
        assert_eq!(value("runtimes.0.threads.12.wait.lock"), Some(json!("locks.0x7")));
        assert_eq!(value("runtimes.0.threads.0x30.team.unknown"), Some(json!("it was not read")));
        assert_eq!(value("runtimes.0.teams.0xa0.parent"), Some(json!(null)));
        assert_eq!(value("runtimes.0.icvs.cancel-var.value"), Some(json!(false)));
        assert_eq!(value("runtimes.0.tasks.0xb1.predecessors.tasks.0xb0"), Some(json!(true)));
        assert_eq!(value("runtimes.0.taskgroups.0xc0#2.parent"), Some(json!("taskgroups.0xc0")));
        assert_eq!(value("runtimes.0.taskgroups.0xc1.parent"), Some(json!("taskgroups.0xc0#2")));
        assert_eq!(value("verdicts.0.verdict"), Some(json!("deadlock")));
        assert_eq!(value("issues"), Some(json!([])));
        assert_eq!(fields.keys().filter(|name| name.contains("origin")).count(), 0);
    }

    #[test]
    fn addresses_lose_their_leading_zeros() {
        assert_eq!(["0x0", "0x000", "0x", "0x0a0", "010"].map(short), ["0x0", "0x0", "0x", "0xa0", "010"]);
    }

    #[test]
    fn some_parts_of_a_name_are_enough() {
        let fields = fields();
        let one = |name: &str| Named::One(name.to_owned());
        assert_eq!(named(&fields, "Answer"), one("answer"));
        assert_eq!(named(&fields, "threads.12.wait"), one("runtimes.0.threads.12.wait"));
        assert_eq!(named(&fields, "12 team"), one("runtimes.0.threads.12.team"));
        assert_eq!(named(&fields, ".12  team."), one("runtimes.0.threads.12.team"));
        assert_eq!(
            named(&fields, "parent"),
            Named::Several(
                ["taskgroups.0xc0#2", "taskgroups.0xc1", "teams.0xa0"]
                    .map(|of| format!("runtimes.0.{of}.parent"))
                    .to_vec()
            )
        );
        // The shortest name that has all parts counts.
        assert_eq!(named(&fields, "value"), one("runtimes.0.icvs.cancel-var.value"));
        let first = ["runtimes.0", "verdicts.0"].map(str::to_owned);
        assert_eq!(named(&fields, "0"), Named::Several(first.to_vec()));
        assert_eq!(named(&fields, "0x00a0"), one("runtimes.0.teams.0xa0"));
        let both = ["runtimes.0.threads.0x30.team", "runtimes.0.threads.12.team"].map(str::to_owned);
        assert_eq!(named(&fields, "team"), Named::Several(both.to_vec()));
        assert_eq!((named(&fields, "team.12"), named(&fields, " ")), (Named::Nothing, Named::Nothing));
        let names = |name: &str| below(&fields, name).map(|(name, _)| name.clone()).collect::<Vec<_>>();
        assert_eq!(names("answer"), ["answer.text", "answer.word"]);
        assert_eq!(names("answer.word"), ["answer.word"]);
        assert_eq!(names("answer.wor"), [""; 0]);
    }
}
