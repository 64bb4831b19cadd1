//! What a value of a report rests on.

use std::collections::BTreeMap;
use std::ops::Range;

use ompd_inspection::grounds::{self, Kept};
use ompd_process::Addr;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::hex;
use crate::words;

/// Name and version of the format, the value of the key `schema`.
pub const SCHEMA: &str = "ompd-inspect-grounds/1";

/// Bytes and registers whose change changes a value or makes it unknown.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Grounds {
    /// Name and version of this format: `ompd-inspect-grounds/1`.
    pub schema: &'static str,
    /// The full name of the value, or of the group of values.
    pub field: String,
    /// The values of the group by their names.
    pub values: BTreeMap<String, Value>,
    /// Bytes, in the order of their addresses. Some change of each entry changes a value.
    pub bytes: Vec<Bytes>,
    /// Sets of redundant bytes. Only a change of all bytes of a set changes a value. There may be more sets.
    pub together: Vec<Vec<Bytes>>,
    /// Threads (LWP) whose registers are needed.
    pub registers: Vec<i32>,
    /// How many threads were not tried without their registers, because the search was ended.
    pub registers_not_searched: usize,
    /// How many bytes were not searched because the search was ended. Some of them matter.
    pub not_searched: u64,
    /// How many words were read.
    pub words: usize,
    /// How many of these were changed alone. The others were changed together with others, which may hide that they matter.
    pub words_changed_alone: usize,
    /// How often the target was looked at with changed bytes.
    pub looks: usize,
    /// What could not be read, and why.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub issues: Vec<String>,
}

/// Bytes of the target.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Bytes {
    /// Address of the first.
    pub address: String,
    /// How many there are.
    pub size: u64,
    /// What was read there: two hexadecimal digits for each byte, in the order of addresses. Not with `--redact`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub holds: Option<String>,
    /// The same as a number in the byte order of the target, if it has at most eight bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub number: Option<String>,
    /// The field of the runtime that lies there, as the runtime calls it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field: Option<&'static str>,
    /// What the memory is for, in words: a file, a stack, a thread.
    pub memory: String,
}

impl Grounds {
    /// All was read, and nothing was left out of the search.
    pub fn is_complete(&self) -> bool {
        self.issues.is_empty()
            && self.not_searched == 0
            && self.registers_not_searched == 0
            && self.words_changed_alone == self.words
    }
}

/// Makes the document. `with_content`: what was read of memory may be shown.
pub fn grounds(
    kept: &Kept<'_>,
    field: &str,
    values: BTreeMap<String, Value>,
    found: &grounds::Grounds,
    issues: Vec<String>,
    with_content: bool,
) -> Grounds {
    let order = kept.target().arch().byte_order;
    let bytes = |range: &Range<u64>| {
        let held = kept.moment().bytes(range.clone()).unwrap_or_default();
        Bytes {
            address: hex(Addr(range.start)),
            size: range.end - range.start,
            holds: with_content.then(|| held.iter().map(|byte| format!("{byte:02x}")).collect()),
            number: (with_content && (1..=8).contains(&held.len())).then(|| format!("{:#x}", order.uint(held))),
            field: kept.field(range).map(|noted| noted.name),
            memory: words::memory(&kept.memory(range.start)),
        }
    };
    Grounds {
        schema: SCHEMA,
        field: field.to_owned(),
        values,
        bytes: found.bytes.iter().map(bytes).collect(),
        together: found.together.iter().map(|set| set.iter().map(bytes).collect()).collect(),
        registers: found.registers.clone(),
        registers_not_searched: found.registers_left,
        not_searched: found.undecided.iter().map(|range| range.end - range.start).sum(),
        words: found.words,
        words_changed_alone: found.alone,
        looks: found.looks,
        issues,
    }
}
