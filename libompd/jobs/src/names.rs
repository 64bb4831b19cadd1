//! Sets of names of hosts and of targets, as batch systems write them: `n[1-64],login`.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ranks::RankSet;

/// Digits of a number in a name. A longer one stays a part of the name.
const MOST_DIGITS: usize = 18;
/// Entries that are kept: the first ones. Names that differ in a number are one entry.
const MOST: usize = 10_000;

/// Names. Names that differ in one number alone are one entry.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Names {
    /// Numbers by the name around them. In the name `{}` stands for the number, and `{3}` for a number of so many digits. A name
    /// without a number has none.
    by_name: BTreeMap<String, RankSet>,
    /// True if there are more names than are kept.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    more: bool,
}

impl Names {
    /// The set of one host. The number is the one before its domain.
    pub fn host(name: &str) -> Names {
        let end = name.find('.').unwrap_or(name.len());
        Names::split(name, number_at(name, end))
    }

    /// The set of one file or process id. The number is the last one.
    pub fn target(name: &str) -> Names {
        let end = name.rfind(|letter: char| letter.is_ascii_digit()).map_or(0, |last| last + 1);
        Names::split(name, number_at(name, end))
    }

    fn split(name: &str, place: Range<usize>) -> Names {
        let (before, digits, after) = (&name[..place.start], &name[place.clone()], &name[place.end..]);
        // In a key, braces stand for the number.
        let is_plain = digits.len() <= MOST_DIGITS && !name.contains(['{', '}']);
        let number = digits.parse::<u64>().ok().filter(|_| is_plain);
        let (key, numbers) = match number {
            Some(number) if digits.starts_with('0') && digits.len() > 1 => {
                (format!("{before}{{{}}}{after}", digits.len()), RankSet::one(number))
            }
            Some(number) => (format!("{before}{{}}{after}"), RankSet::one(number)),
            None => (name.to_owned(), RankSet::default()),
        };
        Names { by_name: BTreeMap::from([(key, numbers)]), more: false }
    }

    /// How many there are.
    pub fn len(&self) -> u64 {
        self.by_name.values().map(|numbers| numbers.len().max(1)).fold(0, u64::saturating_add)
    }

    /// True if there is none.
    pub fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    /// The names around numbers.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &String> {
        self.by_name.keys()
    }

    /// True if there are more names than are kept.
    pub fn has_more(&self) -> bool {
        self.more
    }

    /// Adds those of another set.
    pub fn unite(&mut self, other: Names) {
        self.more |= other.more;
        for (name, numbers) in other.by_name {
            self.by_name.entry(name).or_default().unite(numbers);
        }
        while self.by_name.len() > MOST {
            self.by_name.pop_last();
            self.more = true;
        }
    }
}

/// Where the digits are that end there.
fn number_at(name: &str, end: usize) -> Range<usize> {
    name[..end].trim_end_matches(|letter: char| letter.is_ascii_digit()).len()..end
}

impl fmt::Display for Names {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (name, numbers)) in self.by_name.iter().enumerate() {
            let comma = if index > 0 { "," } else { "" };
            let place = name.find('{').zip(name.find('}')).filter(|(from, to)| from < to && !numbers.is_empty());
            let Some((from, to)) = place else {
                write!(f, "{comma}{name}")?;
                continue;
            };
            let width = name[from + 1..to].parse().ok().filter(|width| *width <= MOST_DIGITS).unwrap_or(0);
            write!(f, "{comma}{}", &name[..from])?;
            let is_one = numbers.len() == 1;
            for (index, range) in numbers.ranges().enumerate() {
                let lead = if index > 0 {
                    ","
                } else if is_one {
                    ""
                } else {
                    "["
                };
                write!(f, "{lead}{:0width$}", range.start())?;
                if range.start() != range.end() {
                    write!(f, "-{:0width$}", range.end())?;
                }
            }
            write!(f, "{}{}", if is_one { "" } else { "]" }, &name[to + 1..])?;
        }
        if self.more { f.write_str(",…") } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::{MOST, Names};

    #[test]
    fn names_that_differ_by_a_number_are_folded() {
        let mut all = Names::default();
        for name in ["n2", "n1", "n3", "login", "node008.x.org", "node009.x.org", "n7", "n2"] {
            all.unite(Names::host(name));
        }
        assert_eq!(all.to_string(), "login,node[008-009].x.org,n[1-3,7]");
        assert_eq!(all.len(), 7);
        assert_eq!(Names::host("n17").to_string(), "n17");
        let long = "n".to_owned() + &"9".repeat(30);
        assert_eq!(Names::host(&long).to_string(), long);
        let mut all = Names::default();
        for name in ["out.d/rank7.json", "4711", "out.d/rank8.json", "core"] {
            all.unite(Names::target(name));
        }
        assert_eq!(all.to_string(), "core,out.d/rank[7-8].json,4711");
        let mut all = Names::target("out{3}/rank7.json");
        all.unite(Names::target("out{3}/rank8.json"));
        assert_eq!(all.to_string(), "out{3}/rank7.json,out{3}/rank8.json");
    }

    #[test]
    fn of_very_many_names_the_first_are_kept_in_any_order() {
        let name = |number: usize| Names::host(&format!("{number:06}x"));
        let (mut up, mut down, mut halves) = <(Names, Names, [Names; 2])>::default();
        for number in 0..MOST + 2 {
            up.unite(name(number));
            down.unite(name(MOST + 1 - number));
            halves[number % 2].unite(name(number));
        }
        let [mut both, other] = halves;
        both.unite(other);
        assert_eq!((up.len(), up.has_more()), (MOST as u64, true));
        assert!(up == down && up == both);
    }

    #[test]
    fn a_width_that_nobody_asked_for_is_ignored() {
        let all: Names = serde_json::from_str(r#"{"by_name":{"n{99999999}":"1-2","}{":"3"}}"#).expect("names");
        assert_eq!(all.to_string(), "n[1-2],}{");
    }
}
