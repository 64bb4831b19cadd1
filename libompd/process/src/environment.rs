//! The variables of the environment a process was started with.

use std::fmt;

use crate::machine::SMALLEST_PAGE as PAGE;
use crate::memory::{Addr, MAX_READ};
use crate::{Target, TargetExt};

/// Of an environment that is larger nothing is read.
pub(crate) const MAX_BYTES: u64 = 4 << 20;
/// Arguments and variables beyond this many are not believed to be there.
const MAX_POINTERS: usize = 1 << 17;
/// Bytes below the start's random bytes that are searched for the auxiliary vector. The vector has twenty-odd pairs of
/// words, as a rule (`create_elf_tables` in the kernel's fs/binfmt_elf.c).
const VECTOR_WINDOW: u64 = 2048;

/// Kinds of entries in the auxiliary vector (getauxval(3)).
const AT_RANDOM: u64 = 25;
const AT_EXECFN: u64 = 31;

/// The environment as it was when the process began, whatever the program has set since; or why it is not known.
///
/// Much of what is in an environment is nobody's business: ask for single names, and show only those whose meaning is known.
/// `Debug` prints no variable.
#[derive(Clone, PartialEq, Eq)]
pub struct Environment(Result<Vec<(String, String)>, String>);

impl Default for Environment {
    fn default() -> Self {
        Environment::unknown("it is not recorded")
    }
}

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Ok(variables) => write!(f, "Environment({} variables)", variables.len()),
            Err(why) => write!(f, "Environment(unknown: {why})"),
        }
    }
}

impl Environment {
    /// It is not known, for this reason.
    pub fn unknown(why: impl fmt::Display) -> Environment {
        Environment(Err(why.to_string()))
    }

    /// From `NAME=VALUE` strings, each ended by a zero byte. Invalid UTF-8 is replaced.
    pub fn parse(bytes: &[u8]) -> Environment {
        let mut variables = Vec::new();
        for entry in bytes.strip_suffix(&[0]).unwrap_or(bytes).split(|b| *b == 0).filter(|_| !bytes.is_empty()) {
            // Programs that show a title of their own in listings of processes write it there.
            let Some(at) = entry.iter().position(|b| *b == b'=') else {
                return Environment::unknown("the program has written something else where it was");
            };
            let text = |part: &[u8]| String::from_utf8_lossy(part).into_owned();
            variables.push((text(&entry[..at]), text(&entry[at + 1..])));
        }
        Environment(Ok(variables))
    }

    /// What of it begins with one of these.
    #[must_use]
    pub fn only(&self, prefixes: &[&str]) -> Environment {
        let wanted = |name: &str| prefixes.iter().any(|prefix| name.starts_with(prefix));
        Environment(self.0.clone().map(|all| all.into_iter().filter(|(name, _)| wanted(name)).collect()))
    }

    /// All variables in order, as names and values; none if they are not known.
    pub fn variables(&self) -> &[(String, String)] {
        self.0.as_deref().unwrap_or_default()
    }

    /// The value of a variable, `None` if there is none of that name.
    ///
    /// # Errors
    /// Why the environment is not known.
    pub fn get(&self, name: &str) -> Result<Option<&str>, &str> {
        let variables = self.0.as_ref().map_err(String::as_str)?;
        // getenv(3) returns the first of several.
        Ok(variables.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str()))
    }
}

/// The environment of a process in a core, from the stack it was started on. `auxv` is an entry of the auxiliary vector as the
/// core notes it.
///
/// The kernel has put on that stack, upwards: the number of arguments, pointers to them, NULL, pointers to the variables, NULL, the
/// auxiliary vector. Random bytes and the strings follow. The last string is the name of the file that was executed. A program
/// that changes its environment writes over pointers to variables (`setenv`, `unsetenv`), and leaves the strings.
pub(crate) fn from_stack(target: &dyn Target, auxv: impl Fn(u64) -> Option<u64>) -> Environment {
    const WHY: &str = "the stack it was put on is not in the core, or not as the kernel leaves it";
    let (Some(random), Some(name)) = (auxv(AT_RANDOM), auxv(AT_EXECFN)) else { return Environment::unknown(WHY) };
    match start(target, random, name, &auxv).and_then(|start| strings(target, start, name)) {
        Some(bytes) => Environment::parse(&bytes),
        None => Environment::unknown(WHY),
    }
}

/// The address of the last argument.
fn start(target: &dyn Target, random: u64, name: u64, auxv: impl Fn(u64) -> Option<u64>) -> Option<u64> {
    let arch = target.arch();
    let width = u64::from(arch.pointer_bytes);
    let words = |end: u64, bytes: u64| -> Option<Vec<u64>> {
        let start = end.checked_sub(bytes)?;
        let bytes = target.read_vec(Addr(start), bytes).ok()?;
        Some(bytes.chunks_exact(arch.pointer_bytes.into()).map(|c| arch.byte_order.uint(c)).collect())
    };
    let top = random / width * width;
    let window = words(top, VECTOR_WINDOW)?;
    // The pair that names the file, then back as long as there are pairs of the vector.
    let mut first = window.windows(2).rposition(|pair| pair == [AT_EXECFN, name])?;
    while let Some(previous) = first.checked_sub(2)
        && auxv(window[previous]) == Some(window[previous + 1])
    {
        first = previous;
    }
    let vector = top - VECTOR_WINDOW + first as u64 * width;
    let mut end = vector.checked_sub(width)?;
    if words(vector, width)? != [0] {
        return None;
    }
    // The first number that counts the pointers above it, up to a NULL, is that of the arguments.
    let (mut pointers, mut last, mut seen) = (0, 0, 0);
    loop {
        // A page at a time, for the stack may end just below.
        let step = if end % PAGE == 0 { PAGE } else { end % PAGE };
        for word in words(end, step)?.into_iter().rev() {
            if seen == MAX_POINTERS {
                return None;
            }
            seen += 1;
            if word == 0 {
                (pointers, last) = (0, 0);
            } else if word == pointers {
                return (vector..name).contains(&last).then_some(last);
            } else {
                // Arguments may be in another order than their strings (getopt(3)).
                (pointers, last) = (pointers + 1, word.max(last));
            }
        }
        end = end.checked_sub(step)?;
    }
}

/// The strings of the variables: they lie one behind the other, from the last argument up to the name of the file.
fn strings(target: &dyn Target, argument: u64, name: u64) -> Option<Vec<u8>> {
    let length = name.checked_sub(argument).filter(|length| *length <= MAX_BYTES.min(MAX_READ))?;
    let bytes = target.read_vec(Addr(argument), length).ok()?;
    let end = bytes.iter().position(|byte| *byte == 0)?;
    Some(bytes[end + 1..].to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_found_by_name() {
        let environment = Environment::parse(b"A=1\0B=x=y\0A=2\0C=\0");
        assert_eq!(environment.get("A"), Ok(Some("1")));
        assert_eq!(environment.get("B"), Ok(Some("x=y")));
        assert_eq!(environment.get("C"), Ok(Some("")));
        assert_eq!(environment.get("D"), Ok(None));
        assert_eq!(environment.only(&["B"]).get("A"), Ok(None));
        assert_eq!(environment.only(&["B"]).get("B"), Ok(Some("x=y")));
        assert_eq!(Environment::parse(b"").get("A"), Ok(None));
        assert_eq!(Environment::parse(b"A=1").get("A"), Ok(Some("1")));
    }

    #[test]
    fn a_title_is_no_environment_and_secrets_are_not_printed() {
        assert!(Environment::parse(b"worker 3: idle\0\0\0\0").get("A").is_err());
        assert!(Environment::parse(b"\0\0\0\0").get("A").is_err());
        let text = format!("{:?}", Environment::parse(b"TOKEN=secret\0"));
        assert_eq!(text, "Environment(1 variables)");
    }
}
