//! Sets of names of hosts, as batch systems write them: `n[1-64],login`.

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ranks::RankSet;

/// Digits of a number in a name. A longer one stays a part of the name.
const MOST_DIGITS: usize = 18;

/// Names of hosts. Names that differ in the number before their domain alone are one entry.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Hosts {
    /// Numbers by the name around them, in which `{}` stands for the number and `{3}` for one of so many digits; none of a name without
    /// one.
    by_name: BTreeMap<String, RankSet>,
}

impl Hosts {
    /// The set of one host.
    pub fn one(name: &str) -> Hosts {
        let (host, domain) = name.find('.').map_or((name, ""), |dot| name.split_at(dot));
        let stem = host.trim_end_matches(|letter: char| letter.is_ascii_digit());
        let digits = &host[stem.len()..];
        let number = digits.parse::<u64>().ok().filter(|_| digits.len() <= MOST_DIGITS);
        let (key, numbers) = match number {
            Some(number) if digits.starts_with('0') && digits.len() > 1 => {
                (format!("{stem}{{{}}}{domain}", digits.len()), RankSet::one(number))
            }
            Some(number) => (format!("{stem}{{}}{domain}"), RankSet::one(number)),
            None => (name.to_owned(), RankSet::default()),
        };
        Hosts { by_name: BTreeMap::from([(key, numbers)]) }
    }

    /// How many there are.
    pub fn len(&self) -> u64 {
        self.by_name.values().map(|numbers| numbers.len().max(1)).fold(0, u64::saturating_add)
    }

    /// True if there is none.
    pub fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    /// Adds those of another set.
    pub fn unite(&mut self, other: &Hosts) {
        for (name, numbers) in &other.by_name {
            self.by_name.entry(name.clone()).or_default().unite(numbers);
        }
    }
}

impl fmt::Display for Hosts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (name, numbers)) in self.by_name.iter().enumerate() {
            let comma = if index > 0 { "," } else { "" };
            let place = name.find('{').zip(name.find('}')).filter(|(from, to)| from < to && !numbers.is_empty());
            let Some((from, to)) = place else {
                write!(f, "{comma}{name}")?;
                continue;
            };
            let width = name[from + 1..to].parse().unwrap_or(0_usize);
            let padded = |number: u64| format!("{number:0width$}");
            let ranges: Vec<String> = numbers
                .ranges()
                .map(|range| match range.start() == range.end() {
                    true => padded(*range.start()),
                    false => format!("{}-{}", padded(*range.start()), padded(*range.end())),
                })
                .collect();
            let ranges = ranges.join(",");
            let ranges = if numbers.len() == 1 { ranges } else { format!("[{ranges}]") };
            write!(f, "{comma}{}{ranges}{}", &name[..from], &name[to + 1..])?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::Hosts;

    #[test]
    fn names_that_differ_by_a_number_are_folded() {
        let mut all = Hosts::default();
        for name in ["n2", "n1", "n3", "login", "node008.x.org", "node009.x.org", "n7", "n2"] {
            all.unite(&Hosts::one(name));
        }
        assert_eq!(all.to_string(), "login,node[008-009].x.org,n[1-3,7]");
        assert_eq!(all.len(), 7);
        assert_eq!(Hosts::one("n17").to_string(), "n17");
        let long = "n".to_owned() + &"9".repeat(30);
        assert_eq!(Hosts::one(&long).to_string(), long);
    }
}
