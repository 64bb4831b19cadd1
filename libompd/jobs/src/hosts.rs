//! Lists of hosts, as people and batch systems write them: `n[1-64],login`.

/// More hosts are not listed.
const MOST: usize = 1 << 17;
/// Digits of a number in a name.
const MOST_DIGITS: usize = 18;

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
    let parts = name.split('@');
    name.len() <= 255
        && parts.clone().count() <= 2
        && parts.clone().all(|part| !part.is_empty() && !part.starts_with('-'))
        && name.chars().all(fits)
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
    use super::{NoHosts, expand};

    #[test]
    fn lists_of_hosts_are_expanded() {
        assert_eq!(expand("n[1-3,7],login").expect("hosts"), ["n1", "n2", "n3", "n7", "login"]);
        assert_eq!(
            expand("r[08-10]c[1-2].x").expect("hosts").join(" "),
            "r08c1.x r08c2.x r09c1.x r09c2.x r10c1.x r10c2.x"
        );
        assert_eq!(expand("a,a,me@b").expect("hosts"), ["a", "me@b"]);
        for wrong in [
            "",
            "a,",
            "-oProxyCommand=x",
            "n[1",
            "n]1[",
            "n[3-1]",
            "n[a]",
            "n[1-]",
            "a b",
            "n[[1]]",
            "a;b",
            "@a",
            "me@",
            "me@-oX",
            "a@b@c",
        ] {
            assert!(matches!(expand(wrong), Err(NoHosts::Name(_))), "{wrong}");
        }
        assert_eq!(expand("n[1-999999999]"), Err(NoHosts::TooMany));
        assert_eq!(expand("n[1-9999]c[1-9999]"), Err(NoHosts::TooMany));
    }
}
