//! Which values rest on which bytes.

use std::collections::{BTreeSet, HashMap};
use std::ops::Range;
use std::path::Path;

use anyhow::Result;
use ompd_inspection::Inspection;
use ompd_inspection::grounds::Kept;
use ompd_process::moment::Instead;
use ompd_process::{Addr, Core};
use ompd_report::fields::{self, Fields};
use ompd_report::json;
use serde_json::Value;
use test_programs::ChangedTarget;

use super::change::Change;
use super::reading::{options, wanted};

/// Sentences, which say what other values say. They number items of lists by their places, and these change when another item is missing.
const SENTENCES: [&str; 7] = ["text", "cause", "fix", "evidence", "inferred", "remarks", "issues"];

/// Names of values of `seen` that are other ones than in `expected`, or not there. What is not known is not among them.
pub(super) fn other_values(expected: &Fields, seen: &Fields) -> Vec<String> {
    let is_value = |name: &str, value: &Value| {
        let last = name.rsplit('.').next().unwrap_or_default();
        let is_sentence = name.split('.').any(|part| SENTENCES.contains(&part));
        !value.is_null() && !is_sentence && !["unknown", "code", "detail"].contains(&last)
    };
    let other = seen.iter().filter(|(name, value)| is_value(name, value) && expected.get(*name) != Some(*value));
    other.map(|(name, _)| name.clone()).collect()
}

/// The values of a core by the words of its memory that they rest on.
pub(super) struct Rests {
    core: Core,
    expected: Fields,
    by_word: HashMap<u64, BTreeSet<String>>,
}

impl Rests {
    pub(super) fn of(core: &Path, root: &Path) -> Result<Rests> {
        let core = Core::open(core, &options(root))?;
        let expected = values(&Kept::of(&core, wanted()).inspection());
        Ok(Rests { core, expected, by_word: HashMap::new() })
    }

    /// What the library says of the unchanged core with these bytes in its memory.
    pub(super) fn replay(&self, changes: &[Change]) -> Fields {
        let target = changes.iter().fold(ChangedTarget::new(&self.core), |target, change| match change.address {
            Some(address) => target.with_bytes(Addr(address), &change.now),
            None => target,
        });
        values(&Kept::of(&target, wanted()).inspection())
    }

    /// Which of these values do not change with any bytes in the words that these addresses touch: something else says the same, and is
    /// not believed.
    pub(super) fn doubtful(&mut self, changed: &[Range<u64>], names: &[String]) -> Vec<String> {
        let words: BTreeSet<u64> =
            changed.iter().flat_map(|range| (range.start / 8 * 8..range.end).step_by(8)).collect();
        let missing: Vec<u64> = words.iter().copied().filter(|word| !self.by_word.contains_key(word)).collect();
        if !missing.is_empty() {
            let kept = Kept::of(&self.core, wanted());
            for word in missing {
                let mut changed = BTreeSet::new();
                for instead in [Instead::Zero, Instead::Flipped, Instead::Noise] {
                    let part = word..word + 8;
                    let seen = values(&kept.otherwise(&[part], instead, &[]));
                    let differs = |name: &&String| self.expected.get(*name) != seen.get(*name);
                    let names = self.expected.keys().chain(seen.keys());
                    changed.extend(names.filter(differs).cloned());
                }
                self.by_word.insert(word, changed);
            }
        }
        let rests = |name: &str| words.iter().any(|word| self.by_word[word].contains(name));
        let any = words.iter().any(|word| !self.by_word[word].is_empty());
        // What was not there before, as a team, has another name with each change.
        let is_new = |name: &str| !self.expected.contains_key(name);
        names.iter().filter(|name| !(rests(name) || is_new(name) && any)).cloned().collect()
    }
}

fn values(inspection: &Inspection) -> Fields {
    serde_json::to_value(json::report(inspection)).map(|report| fields::of(&report)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_lost_is_no_other_value() {
        let expected = fields::of(&json!({"a": {"value": 1, "origin": "code"}, "b": 2, "c": 3}));
        let seen = fields::of(
            &json!({"a": {"unknown": "gone", "code": "x"}, "b": 2, "c": 4, "d": null, "e": 5, "text": "no"}),
        );
        assert_eq!(other_values(&expected, &seen), ["c", "e"]);
        assert_eq!(other_values(&expected, &expected), [""; 0]);
    }
}
