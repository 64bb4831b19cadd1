//! What the environment says of control variables.
//!
//! What variables mean is in chapter 21 of OpenMP 5.2, and in `libgomp/env.c` and
//! `openmp/runtime/src/kmp_settings.cpp` for what goes beyond it.

use ompd_process::Environment;

use crate::icvs::variables::Variables;
use crate::model::{Allocator, IcvValue, NoSource, ProcBind, Schedule};

/// What one runtime begins with, as far as it is known.
pub(crate) struct Began<'a> {
    pub(crate) environment: &'a Environment,
    /// The variables of its family.
    pub(crate) variables: &'static Variables,
    /// Processors it counted at its start, if known: `nthreads-var` where nothing was said.
    pub(crate) processors: Box<dyn Fn() -> Option<u64> + 'a>,
    /// `max-active-levels-var` where nothing was said, and where nesting was asked for.
    pub(crate) levels: Option<(u64, u64)>,
}

/// What the environment says of a control variable.
pub(crate) enum Says<T> {
    /// It is not known what it says.
    Unknown(NoSource),
    /// Nothing.
    Nothing,
    /// This.
    Value { variable: &'static str, text: String, value: T },
    /// Something that may mean anything.
    Odd { variable: &'static str, text: String },
}

impl<T> Says<T> {
    /// What the first of these variables that is set says. Several that are set may contradict each
    /// other, and which of them counts differs from release to release.
    pub(crate) fn of(
        environment: &Environment,
        rivals: impl IntoIterator<Item = &'static str>,
        parse: impl Fn(&str) -> Option<T>,
    ) -> Says<T> {
        let mut says = Says::Nothing;
        for variable in rivals {
            match (environment.get(variable), &says) {
                (Err(why), _) => return Says::unknown(why),
                (Ok(None), _) => {}
                (Ok(Some(text)), Says::Nothing) => {
                    let text = text.to_owned();
                    says = match parse(text.trim()) {
                        Some(value) => Says::Value { variable, text, value },
                        None => Says::Odd { variable, text },
                    };
                }
                (Ok(Some(text)), _) => return Says::Odd { variable, text: text.to_owned() },
            }
        }
        says
    }

    /// The environment cannot be read.
    fn unknown(why: &str) -> Says<T> {
        Says::Unknown(NoSource::EnvironmentUnknown { why: why.to_owned() })
    }
}

impl<T: Clone> Says<Vec<T>> {
    /// The entry of a list that counts for a task at this level.
    pub(crate) fn at_level(self, level: usize) -> Says<T> {
        match self {
            Says::Value { variable, text, value } => match value.get(level).or(value.last()) {
                Some(entry) => Says::Value { variable, text, value: entry.clone() },
                None => Says::Odd { variable, text },
            },
            Says::Unknown(why) => Says::Unknown(why),
            Says::Nothing => Says::Nothing,
            Says::Odd { variable, text } => Says::Odd { variable, text },
        }
    }
}

/// What asks for nesting where `OMP_MAX_ACTIVE_LEVELS` does not.
pub(super) fn nesting(began: &Began<'_>) -> Says<IcvValue> {
    let environment = began.environment;
    let all = began.levels.map(|(_, all)| IcvValue::Count(all));
    // Before GCC 11 nesting is a switch of its own, and this has no bounds from the beginning.
    if began.levels.is_some_and(|(default, all)| default == all) {
        return Says::Nothing;
    }
    let asked = |text: &str| if (began.variables.flag)(text)? { all.clone() } else { Some(IcvValue::Count(1)) };
    let nested = Says::of(environment, ["OMP_NESTED"], asked);
    let Says::Nothing = nested else { return nested };
    // A list with an entry for an inner level asks for that level (OpenMP 5.2, 2.3 and 21.1).
    for variable in ["OMP_NUM_THREADS", "OMP_PROC_BIND"] {
        match environment.get(variable) {
            Ok(Some(text)) if text.contains(',') => {
                let text = text.to_owned();
                return match all {
                    Some(value) => Says::Value { variable, text, value },
                    None => Says::Odd { variable, text },
                };
            }
            Ok(_) => {}
            Err(why) => return Says::unknown(why),
        }
    }
    Says::Nothing
}

/// Places bind threads where `OMP_PROC_BIND` says nothing.
pub(super) fn places(began: &Began<'_>) -> Says<IcvValue> {
    let places = Says::of(began.environment, ["OMP_PLACES"], |_| Some(IcvValue::Bind(ProcBind(1))));
    match Says::of(began.environment, began.variables.affinity.iter().copied(), |_| None) {
        Says::Nothing => places,
        odd => odd,
    }
}

/// What a variable's text says that is read in the same way by all families.
pub(crate) mod texts {
    use super::*;

    /// A number.
    pub(crate) fn number(text: &str, _: &Variables) -> Option<IcvValue> {
        text.parse().ok().map(IcvValue::Number)
    }

    /// A number that cannot be negative.
    pub(crate) fn count(text: &str, _: &Variables) -> Option<IcvValue> {
        text.parse().ok().map(IcvValue::Count)
    }

    /// A number of threads.
    pub(crate) fn threads(text: &str, _: &Variables) -> Option<IcvValue> {
        positive(text).map(IcvValue::Count)
    }

    /// A number of threads that there are at most.
    pub(crate) fn limit(text: &str, _: &Variables) -> Option<IcvValue> {
        positive(text).map(|limit| IcvValue::Limit(Some(limit)))
    }

    /// A switch.
    pub(crate) fn switch(text: &str, variables: &Variables) -> Option<IcvValue> {
        (variables.flag)(text).map(IcvValue::Flag)
    }

    /// Whether something is enabled.
    pub(crate) fn enabled(text: &str, _: &Variables) -> Option<IcvValue> {
        word(text, &[("disabled", "disabled"), ("enabled", "enabled")])
    }

    /// Whether devices are used.
    pub(crate) fn offload(text: &str, _: &Variables) -> Option<IcvValue> {
        word(text, &[("disabled", "disabled"), ("default", "default"), ("mandatory", "mandatory")])
    }

    /// How threads wait.
    pub(crate) fn policy(text: &str, _: &Variables) -> Option<IcvValue> {
        word(text, &[("active", "active"), ("passive", "passive")])
    }

    /// Any text.
    pub(crate) fn any(text: &str, _: &Variables) -> Option<IcvValue> {
        Some(IcvValue::Text(text.to_owned()))
    }

    /// What no text is known to say.
    pub(crate) fn odd(_: &str, _: &Variables) -> Option<IcvValue> {
        None
    }

    /// A size with an optional unit, of kilobytes without one (OpenMP 5.2, 21.2.2), in bytes.
    pub(crate) fn size(text: &str, _: &Variables) -> Option<IcvValue> {
        let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let unit = match text[digits..].trim().to_ascii_lowercase().as_str() {
            "b" => 0,
            "" | "k" => 10,
            "m" => 20,
            "g" => 30,
            _ => return None,
        };
        let bytes = text[..digits].parse::<i64>().ok()?.checked_mul(1 << unit)?;
        Some(IcvValue::Number(bytes))
    }

    /// How threads are bound.
    pub(crate) fn bind(text: &str, _: &Variables) -> Option<IcvValue> {
        let kind = match text.to_ascii_lowercase().as_str() {
            "false" => 0,
            "true" => 1,
            "master" | "primary" => 2,
            "close" => 3,
            "spread" => 4,
            _ => return None,
        };
        Some(IcvValue::Bind(ProcBind(kind)))
    }

    /// A predefined allocator. Those with traits are made by the runtime, and have handles that
    /// nobody knows before.
    pub(crate) fn allocator(text: &str, _: &Variables) -> Option<IcvValue> {
        Allocator::named(text).map(IcvValue::Allocator)
    }

    /// `[modifier:]kind[,chunk]`; a chunk that is not given is 0.
    pub(crate) fn schedule(text: &str, _: &Variables) -> Option<IcvValue> {
        let text = text.to_ascii_lowercase();
        let (modifier, rest) = match text.split_once(':') {
            Some((modifier, rest)) => (Some(modifier.trim()), rest),
            None => (None, text.as_str()),
        };
        let (kind, chunk) = match rest.split_once(',') {
            Some((kind, chunk)) => (kind.trim(), i64::try_from(positive(chunk.trim())?).ok()?),
            None => (rest.trim(), 0),
        };
        let monotonic = match modifier {
            None | Some("nonmonotonic") => false,
            Some("monotonic") => true,
            Some(_) => return None,
        };
        let kind = match kind {
            "static" => 1,
            "dynamic" => 2,
            "guided" => 3,
            "auto" => 4,
            _ => return None,
        };
        Some(IcvValue::Schedule(Schedule { kind, monotonic, chunk }))
    }

    /// One of some words, in any case, as the word that stands for it.
    pub(crate) fn word(text: &str, words: &[(&str, &'static str)]) -> Option<IcvValue> {
        let found = words.iter().find(|(said, _)| text.eq_ignore_ascii_case(said));
        found.map(|(_, word)| IcvValue::Word(word))
    }

    /// A list with one entry for each level of nesting.
    pub(crate) fn list<T>(text: &str, item: impl Fn(&str) -> Option<T>) -> Option<Vec<T>> {
        text.split(',').map(|part| item(part.trim())).collect()
    }

    /// `true` and `false` (OpenMP 5.2, chapter 21).
    pub(crate) fn flag(text: &str) -> Option<bool> {
        match text.to_ascii_lowercase().as_str() {
            "true" => Some(true),
            "false" => Some(false),
            _ => None,
        }
    }

    fn positive(text: &str) -> Option<u64> {
        text.parse().ok().filter(|n| (1..=i32::MAX as u64).contains(n))
    }
}

#[cfg(test)]
mod tests {
    use super::texts::*;
    use super::*;

    const VARIABLES: Variables = Variables { prefix: "", spins: ("", ""), affinity: &[], flag };

    #[test]
    fn texts_of_variables() {
        let parsed = |text| match schedule(text, &VARIABLES) {
            Some(IcvValue::Schedule(s)) => Some((s.kind, s.monotonic, s.chunk)),
            _ => None,
        };
        assert_eq!(parsed("guided, 7"), Some((3, false, 7)));
        assert_eq!(parsed("Monotonic:Dynamic"), Some((2, true, 0)));
        assert_eq!(parsed("dynamic,0"), None);
        assert_eq!(parsed("trapezoidal"), None);
        let size = |text| size(text, &VARIABLES);
        assert_eq!(size("4M"), Some(IcvValue::Number(4 << 20)));
        assert_eq!(size("512"), Some(IcvValue::Number(512 << 10)));
        assert_eq!(size("10 b"), Some(IcvValue::Number(10)));
        assert_eq!(size("99999999999999999999"), None);
        assert_eq!(size(""), None);
        assert_eq!(flag("1"), None);
        assert_eq!(list("4,,2", |item| threads(item, &VARIABLES)), None);
    }
}
