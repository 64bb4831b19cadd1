//! Sets of numbers of ranks.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use rangemap::RangeInclusiveSet;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// Numbers of ranks, as ranges: `0-4094,4096`.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RankSet {
    ranges: RangeInclusiveSet<u64>,
}

impl RankSet {
    /// The set of one number.
    pub fn one(number: u64) -> RankSet {
        RankSet::range(number, number)
    }

    /// The set of the numbers from `first` to `last`.
    pub(crate) fn range(first: u64, last: u64) -> RankSet {
        let mut set = RankSet::default();
        set.add(first, last);
        set
    }

    fn add(&mut self, first: u64, last: u64) {
        if first <= last {
            self.ranges.insert(first..=last);
        }
    }

    /// How many numbers are in it.
    pub fn len(&self) -> u64 {
        self.ranges.iter().map(|range| (range.end() - range.start()).saturating_add(1)).fold(0, u64::saturating_add)
    }

    /// True if there is none.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// True if the number is in it.
    pub fn contains(&self, number: u64) -> bool {
        self.ranges.contains(&number)
    }

    /// The smallest number.
    pub fn first(&self) -> Option<u64> {
        self.ranges.first().map(|range| *range.start())
    }

    /// Its ranges, ascending.
    pub fn ranges(&self) -> impl Iterator<Item = &RangeInclusive<u64>> + '_ {
        self.ranges.iter()
    }

    /// Its ranges as text: `0-4094`, `4096`.
    pub(crate) fn parts(&self) -> impl Iterator<Item = String> + '_ {
        self.ranges().map(|range| match range.start() == range.end() {
            true => range.start().to_string(),
            false => format!("{}-{}", range.start(), range.end()),
        })
    }

    /// Adds the numbers of another set.
    pub fn unite(&mut self, mut other: RankSet) {
        // The smaller into the larger: the work grows with what is added, not with what is there.
        if other.ranges.len() > self.ranges.len() {
            std::mem::swap(self, &mut other);
        }
        self.ranges.extend(other.ranges);
    }

    /// The numbers of this set that are not in the other.
    #[must_use]
    pub fn without(&self, other: &RankSet) -> RankSet {
        let mut rest = self.clone();
        for range in other.ranges() {
            rest.ranges.remove(range.clone());
        }
        rest
    }

    /// The numbers that are in both.
    #[must_use]
    pub fn common(&self, other: &RankSet) -> RankSet {
        let (few, many) = if self.ranges.len() <= other.ranges.len() { (self, other) } else { (other, self) };
        let mut common = RankSet::default();
        // The work grows with the smaller one.
        for range in few.ranges() {
            for other in many.ranges.overlapping(range) {
                common.add(*range.start().max(other.start()), *range.end().min(other.end()));
            }
        }
        common
    }

    /// The numbers up to `last` that are not in it.
    #[must_use]
    pub(crate) fn absent(&self, last: u64) -> RankSet {
        RankSet { ranges: self.ranges.gaps(&(0..=last)).collect() }
    }
}

impl fmt::Display for RankSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, part) in self.parts().enumerate() {
            let comma = if index > 0 { "," } else { "" };
            write!(f, "{comma}{part}")?;
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
        let mut set = RankSet::default();
        for part in text.split(',').filter(|_| !text.is_empty()) {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let number = |text: &str| text.parse::<u64>().map_err(|_| wrong());
            let (first, last) = (number(first)?, number(last)?);
            if first > last {
                return Err(wrong());
            }
            set.add(first, last);
        }
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
        numbers.iter().for_each(|number| all.unite(RankSet::one(*number)));
        all
    }

    #[test]
    fn ranges_are_written_as_people_write_them() {
        assert_eq!(set(&BTreeSet::from([4096, 0, 2, 1])).to_string(), "0-2,4096");
        assert_eq!(RankSet::default().to_string(), "");
        assert!("3-1".parse::<RankSet>().is_err() && "1,,2".parse::<RankSet>().is_err());
        assert!("0-18446744073709551615".parse::<RankSet>().is_ok_and(|all| all.contains(u64::MAX)));
        let mut ends = RankSet::one(u64::MAX);
        ends.unite(RankSet::one(0));
        assert_eq!(ends.absent(u64::MAX).to_string(), "1-18446744073709551614");
        ends.unite(RankSet::range(1, u64::MAX));
        assert_eq!((ends.len(), ends.absent(u64::MAX).to_string()), (u64::MAX, String::new()));
    }

    proptest! {
        #[test]
        fn a_set_of_ranges_is_a_set(one: BTreeSet<u8>, other: BTreeSet<u8>) {
            let [one, other] = [one, other].map(|all| all.into_iter().map(u64::from).collect::<BTreeSet<u64>>());
            let mut both = set(&one);
            both.unite(set(&other));
            prop_assert_eq!(&both, &set(&(&one | &other)));
            prop_assert_eq!(both.len(), (&one | &other).len() as u64);
            prop_assert_eq!(set(&one).common(&set(&other)), set(&(&one & &other)));
            prop_assert_eq!(set(&one).without(&set(&other)), set(&(&one - &other)));
            let absent = (0..=200).filter(|number| !one.contains(number)).collect();
            prop_assert_eq!(set(&one).absent(200), set(&absent));
            prop_assert_eq!(both.to_string().parse::<RankSet>(), Ok(both.clone()));
            prop_assert!((0..=255).all(|n| both.contains(n) == (one.contains(&n) || other.contains(&n))));
        }
    }
}
