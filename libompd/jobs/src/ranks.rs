//! Sets of numbers of ranks.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// Numbers of ranks, as ranges: `0-4094,4096`.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RankSet {
    /// First and last of each range, ascending; between two lies at least one number that is not in the set.
    ranges: Vec<(u64, u64)>,
}

impl RankSet {
    /// The set of one number.
    pub fn one(number: u64) -> RankSet {
        RankSet { ranges: vec![(number, number)] }
    }

    /// The set of the numbers from `first` to `last`.
    pub(crate) fn range(first: u64, last: u64) -> RankSet {
        RankSet { ranges: if first <= last { vec![(first, last)] } else { Vec::new() } }
    }

    /// How many numbers are in it.
    pub fn len(&self) -> u64 {
        self.ranges.iter().map(|(first, last)| (last - first).saturating_add(1)).fold(0, u64::saturating_add)
    }

    /// True if there is none.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// True if the number is in it.
    pub fn contains(&self, number: u64) -> bool {
        let at = self.ranges.partition_point(|(_, last)| *last < number);
        self.ranges.get(at).is_some_and(|(first, _)| *first <= number)
    }

    /// Its ranges, ascending.
    pub fn ranges(&self) -> impl Iterator<Item = RangeInclusive<u64>> + '_ {
        self.ranges.iter().map(|(first, last)| *first..=*last)
    }

    /// The smallest number.
    pub fn first(&self) -> Option<u64> {
        self.ranges.first().map(|(first, _)| *first)
    }

    /// Adds the numbers of another set.
    pub fn unite(&mut self, other: &RankSet) {
        if other.ranges.is_empty() {
            return;
        }
        let mut all = std::mem::take(&mut self.ranges);
        all.extend(&other.ranges);
        all.sort_unstable();
        for (first, last) in all {
            match self.ranges.last_mut() {
                Some((_, end)) if first <= end.saturating_add(1) => *end = last.max(*end),
                _ => self.ranges.push((first, last)),
            }
        }
    }

    /// The numbers of this set that are not in the other.
    #[must_use]
    pub fn without(&self, other: &RankSet) -> RankSet {
        let mut ranges = Vec::new();
        let mut at = 0;
        for (first, last) in &self.ranges {
            let mut next = Some(*first);
            while other.ranges.get(at).is_some_and(|(_, end)| end < first) {
                at += 1;
            }
            for (begin, end) in other.ranges[at..].iter().take_while(|(begin, _)| begin <= last) {
                let Some(from) = next else { break };
                if from < *begin {
                    ranges.push((from, begin - 1));
                }
                next = end.checked_add(1).map(|after| after.max(from)).filter(|after| after <= last);
            }
            ranges.extend(next.map(|from| (from, *last)));
        }
        RankSet { ranges }
    }

    /// The numbers that are in both.
    #[must_use]
    pub fn common(&self, other: &RankSet) -> RankSet {
        let (mut ranges, mut at) = (Vec::new(), 0);
        for (first, last) in &self.ranges {
            while other.ranges.get(at).is_some_and(|(_, end)| end < first) {
                at += 1;
            }
            for (other_first, other_last) in other.ranges[at..].iter().take_while(|(begin, _)| begin <= last) {
                ranges.push((*first.max(other_first), *last.min(other_last)));
            }
        }
        RankSet { ranges }
    }
}

impl fmt::Display for RankSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (first, last)) in self.ranges.iter().enumerate() {
            let comma = if index > 0 { "," } else { "" };
            match first == last {
                true => write!(f, "{comma}{first}")?,
                false => write!(f, "{comma}{first}-{last}")?,
            }
        }
        Ok(())
    }
}

/// The text is no set of numbers.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no set of ranks such as 0-3,5")]
pub struct NoRanks(String);

impl FromStr for RankSet {
    type Err = NoRanks;

    fn from_str(text: &str) -> Result<RankSet, NoRanks> {
        let wrong = || NoRanks(text.chars().take(80).collect());
        let mut ranges = Vec::new();
        for part in text.split(',').filter(|_| !text.is_empty()) {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let number = |text: &str| text.parse::<u64>().map_err(|_| wrong());
            let (first, last) = (number(first)?, number(last)?);
            if first > last {
                return Err(wrong());
            }
            ranges.push((first, last));
        }
        let mut set = RankSet::default();
        set.unite(&RankSet { ranges });
        Ok(set)
    }
}

impl Serialize for RankSet {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for RankSet {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<RankSet, D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
        text.parse().map_err(de::Error::custom)
    }
}

impl JsonSchema for RankSet {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "RankSet".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "description": "Numbers of ranks as ranges: `0-4094,4096`.",
            "type": "string",
            "pattern": "^([0-9]+(-[0-9]+)?(,[0-9]+(-[0-9]+)?)*)?$"
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::RankSet;

    fn set(numbers: &BTreeSet<u64>) -> RankSet {
        let mut all = RankSet::default();
        numbers.iter().for_each(|number| all.unite(&RankSet::one(*number)));
        all
    }

    #[test]
    fn ranges_are_written_as_people_write_them() {
        assert_eq!(set(&BTreeSet::from([4096, 0, 2, 1])).to_string(), "0-2,4096");
        assert_eq!(RankSet::default().to_string(), "");
        assert!("3-1".parse::<RankSet>().is_err() && "1,,2".parse::<RankSet>().is_err());
        assert!("0-18446744073709551615".parse::<RankSet>().is_ok_and(|all| all.contains(u64::MAX)));
    }

    proptest! {
        #[test]
        fn a_set_of_ranges_is_a_set(one: BTreeSet<u8>, other: BTreeSet<u8>) {
            let [one, other] = [one, other].map(|all| all.into_iter().map(u64::from).collect::<BTreeSet<u64>>());
            let mut both = set(&one);
            both.unite(&set(&other));
            prop_assert_eq!(&both, &set(&(&one | &other)));
            prop_assert_eq!(both.len(), (&one | &other).len() as u64);
            prop_assert_eq!(set(&one).common(&set(&other)), set(&(&one & &other)));
            prop_assert_eq!(set(&one).without(&set(&other)), set(&(&one - &other)));
            prop_assert_eq!(both.to_string().parse::<RankSet>(), Ok(both.clone()));
            prop_assert!((0..=255).all(|n| both.contains(n) == (one.contains(&n) || other.contains(&n))));
        }
    }
}
