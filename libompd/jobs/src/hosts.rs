//! Sets of names of hosts, as batch systems write them: `n[1-64],login`.

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ranks::RankSet;

/// More hosts are not listed.
const MOST: usize = 1 << 17;

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

/// The text is no list of hosts.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoHosts {
    /// Something in it is no name.
    #[error("{0:?} is no name of hosts such as n[1-64],login")]
    Name(String),
    /// It stands for too many.
    #[error("it stands for more than {MOST} hosts")]
    TooMany,
}

/// The names that a list such as `n[1-3,7],r[01-02]c[1-2],login` stands for, in its order and each once.
///
/// # Errors
/// It is no such list, or names what cannot be a host.
pub fn expand(list: &str) -> Result<Vec<String>, NoHosts> {
    let wrong = |part: &str| NoHosts::Name(part.chars().take(80).collect());
    let mut names: Vec<String> = Vec::new();
    let mut known = std::collections::HashSet::new();
    for part in split(list).ok_or_else(|| wrong(list))? {
        let mut found = vec![String::new()];
        let mut rest = part;
        while let Some((before, after)) = rest.split_once('[') {
            let (ranges, after) = after.split_once(']').ok_or_else(|| wrong(part))?;
            let numbers = numbers(ranges).ok_or_else(|| wrong(part))??;
            if found.len().saturating_mul(numbers.len()) > MOST {
                return Err(NoHosts::TooMany);
            }
            let with =
                |name: &String| numbers.iter().map(|number| format!("{name}{before}{number}")).collect::<Vec<_>>();
            found = found.iter().flat_map(with).collect();
            rest = after;
        }
        found.iter_mut().for_each(|name| name.push_str(rest));
        for name in found {
            if !is_host(&name) {
                return Err(wrong(&name));
            }
            if known.insert(name.clone()) {
                names.push(name);
            }
        }
        if names.len() > MOST {
            return Err(NoHosts::TooMany);
        }
    }
    Ok(names)
}

/// Whether a text can be the name of a host, `user@host` included. It is given to programs: an option it cannot be.
pub fn is_host(name: &str) -> bool {
    let fits = |letter: char| letter.is_ascii_alphanumeric() || "._-:@%".contains(letter);
    !name.is_empty() && name.len() <= 255 && !name.starts_with('-') && name.chars().all(fits)
}

/// The parts between commas that stand in no brackets.
fn split(list: &str) -> Option<Vec<&str>> {
    let (mut parts, mut begin, mut is_inside) = (Vec::new(), 0, false);
    for (at, letter) in list.char_indices() {
        match letter {
            '[' | ']' if is_inside == (letter == '[') => return None,
            '[' | ']' => is_inside = !is_inside,
            ',' if !is_inside => {
                parts.push(&list[begin..at]);
                begin = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&list[begin..]);
    (!is_inside).then_some(parts)
}

/// The numbers of `1-3,07`, with the digits they have there; `None` if it is no such list.
fn numbers(ranges: &str) -> Option<Result<Vec<String>, NoHosts>> {
    let mut numbers = Vec::new();
    for range in ranges.split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        if first.len() > MOST_DIGITS || !first.bytes().chain(last.bytes()).all(|digit| digit.is_ascii_digit()) {
            return None;
        }
        let width = first.len();
        let (first, last): (u64, u64) = (first.parse().ok()?, last.parse().ok()?);
        if last < first {
            return None;
        }
        if last - first >= MOST as u64 || numbers.len() > MOST {
            return Some(Err(NoHosts::TooMany));
        }
        numbers.extend((first..=last).map(|number| format!("{number:0width$}")));
    }
    Some(Ok(numbers))
}

#[cfg(test)]
mod tests {
    use super::{Hosts, NoHosts, expand};

    #[test]
    fn lists_of_hosts_are_expanded() {
        assert_eq!(expand("n[1-3,7],login").expect("hosts"), ["n1", "n2", "n3", "n7", "login"]);
        assert_eq!(
            expand("r[08-10]c[1-2].x").expect("hosts").join(" "),
            "r08c1.x r08c2.x r09c1.x r09c2.x r10c1.x r10c2.x"
        );
        assert_eq!(expand("a,a,me@b").expect("hosts"), ["a", "me@b"]);
        for wrong in ["", "a,", "-oProxyCommand=x", "n[1", "n]1[", "n[3-1]", "n[a]", "n[1-]", "a b", "n[[1]]", "a;b"] {
            assert!(matches!(expand(wrong), Err(NoHosts::Name(_))), "{wrong}");
        }
        assert_eq!(expand("n[1-999999999]"), Err(NoHosts::TooMany));
        assert_eq!(expand("n[1-9999]c[1-9999]"), Err(NoHosts::TooMany));
    }

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
