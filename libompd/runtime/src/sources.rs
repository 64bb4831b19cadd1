//! Where the values of control variables come from: the environment the process was started with, the runtime, the program.
//!
//! A source is only named where nothing else can be. What variables mean is in chapter 21 of OpenMP 5.2, and in
//! `libgomp/env.c` and `openmp/runtime/src/kmp_settings.cpp` for what goes beyond it.

use ompd_layout::Origin;
use ompd_process::Environment;

use crate::family::Variables;
use crate::model::{Allocator, Fact, IcvSources, Icvs, ProcBind, Schedule, Scope, Setting, SettingValue, Source};

/// `omp_default_mem_alloc`.
const DEFAULT_ALLOCATOR: Allocator = Allocator(1);

/// What one runtime begins with, as far as it is known.
pub(crate) struct Began<'a> {
    pub(crate) environment: &'a Environment,
    /// The variables of its family.
    pub(crate) variables: &'static Variables,
    /// The values as the runtime first had them, whether by itself or from the environment; `None` where it does not keep them.
    pub(crate) initial: Option<&'a Icvs>,
    /// Processors it counted at its start, if known: `nthreads-var` where nothing was said.
    pub(crate) processors: Option<u64>,
    /// `run-sched-var` where nothing was said.
    pub(crate) schedule: Schedule,
    /// `max-active-levels-var` where nothing was said, and where nesting was asked for.
    pub(crate) levels: Option<(u64, u64)>,
}

/// What the environment says of a control variable.
enum Says<T> {
    /// It is not known what it says.
    Unknown(String),
    /// Nothing.
    Nothing,
    /// This.
    Value { variable: &'static str, text: String, value: T },
    /// Something that may mean anything.
    Odd { variable: &'static str, text: String },
}

impl<T> Says<T> {
    /// What the first of these variables that is set says. Several that are set may contradict each other, and which of them
    /// counts differs from release to release.
    fn of(environment: &Environment, rivals: &[&'static str], parse: impl Fn(&str) -> Option<T>) -> Says<T> {
        let mut says = Says::Nothing;
        for variable in rivals {
            match (environment.get(variable), &says) {
                (Err(why), _) => return Says::Unknown(why.to_owned()),
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
}

/// The source of a value. `initial` is what the runtime began with, `default` what it begins with when nothing is said.
fn source<T: PartialEq>(
    value: &Fact<T>,
    says: Says<T>,
    agrees: impl Fn(&T, &T) -> bool,
    initial: Option<&T>,
    default: Option<&T>,
) -> Fact<Source> {
    let Some(value) = value.value() else { return Fact::unknown("the value itself is not known") };
    let found = |source| Fact::known(source, Origin::Os);
    let changed = initial.is_some_and(|initial| initial != value);
    match says {
        Says::Value { variable, text, value: said } if agrees(value, &said) => {
            found(Source::Environment { variable, text })
        }
        // The runtime began with something else than it has now.
        _ if changed => found(Source::Program),
        Says::Unknown(why) => Fact::unknown(format_args!("the environment is not known: {why}")),
        Says::Value { .. } if initial.is_none() => found(Source::Program),
        Says::Value { variable, .. } => {
            Fact::unknown(format_args!("{variable} says something else, but the runtime began with this"))
        }
        Says::Odd { variable, .. } => {
            Fact::unknown(format_args!("{variable} is set, and what it does to this value is not known"))
        }
        Says::Nothing => match default {
            Some(default) if default == value => found(Source::Default),
            Some(_) if initial.is_none() => found(Source::Program),
            Some(_) => Fact::unknown(
                "no variable that the process was started with says so, but the runtime began with it: the program may have \
                 set a variable before",
            ),
            None => Fact::unknown("what the runtime has where nothing is said is not known"),
        },
    }
}

/// The sources of a task's control variables.
pub(crate) fn of_task(icvs: &Icvs, began: &Began<'_>) -> IcvSources {
    let environment = began.environment;
    let initial = began.initial;
    let level = icvs.levels.get().map(|level| level as usize);
    let same = |a: &u64, b: &u64| a == b;

    // Each level of nesting has an entry of its own in a list; the last one counts for those further in.
    let threads = match (Says::of(environment, &["OMP_NUM_THREADS"], |text| list(text, positive)), level) {
        (says, Some(level)) => at_level(says, level),
        (_, None) => Says::Unknown("at which level of nesting the thread is is not known".to_owned()),
    };
    let first = initial.filter(|_| inherited(environment, "OMP_NUM_THREADS", level)).and_then(|i| i.nthreads.value());
    let nthreads = source(&icvs.nthreads, threads, same, first, began.processors.as_ref());

    let flag = began.variables.flag;
    let dynamic = source(
        &icvs.dynamic,
        Says::of(environment, &["OMP_DYNAMIC"], flag),
        |a, b| a == b,
        initial.and_then(|i| i.dynamic.value()),
        Some(&false),
    );

    let run_sched = source(
        &icvs.schedule,
        Says::of(environment, began.variables.schedule, schedule),
        |own, said| own.kind == said.kind && (own.chunk == said.chunk || said.chunk == 0 && own.chunk == 1),
        initial.and_then(|i| i.schedule.value()),
        Some(&began.schedule),
    );

    let active = says_levels(environment, began, flag);
    let default = began.levels.map(|(default, _)| default);
    let max_active_levels = source(
        &icvs.max_active_levels,
        active,
        same,
        initial.and_then(|i| i.max_active_levels.value()),
        default.as_ref(),
    );

    let thread_limit = source(
        &icvs.thread_limit,
        Says::of(environment, began.variables.thread_limit, |text| positive(text).map(Some)),
        |a, b| a == b,
        initial.and_then(|i| i.thread_limit.value()),
        Some(&None),
    );

    let bind = source(
        &icvs.bind,
        says_bind(environment, began.variables.affinity, level),
        |own, said| own == said || began.variables.spreads && (own.0, said.0) == (4, 1),
        initial.filter(|_| inherited(environment, "OMP_PROC_BIND", level)).and_then(|i| i.bind.value()),
        Some(&ProcBind(0)),
    );

    let default_device = source(
        &icvs.default_device,
        Says::of(environment, &["OMP_DEFAULT_DEVICE", "OMP_TARGET_OFFLOAD"], |text| text.parse().ok()),
        |a, b| a == b,
        initial.and_then(|i| i.default_device.value()),
        Some(&0),
    );
    // Allocators with traits are made by the runtime, and have handles that nobody knows before.
    let sure = |allocator: &Allocator| began.variables.has_all_allocators || *allocator == DEFAULT_ALLOCATOR;
    let def_allocator = source(
        &icvs.def_allocator,
        Says::of(environment, &["OMP_ALLOCATOR"], |text| Allocator::named(text).filter(sure)),
        |a, b| a == b,
        initial.and_then(|i| i.def_allocator.value()),
        Some(&DEFAULT_ALLOCATOR),
    );
    IcvSources {
        nthreads,
        dynamic,
        schedule: run_sched,
        max_active_levels,
        thread_limit,
        bind,
        default_device,
        def_allocator,
    }
}

/// True if a task at this level has what the runtime began with unless the program changed it. Further in, a list in the
/// variable makes values differ from the first one.
fn inherited(environment: &Environment, variable: &str, level: Option<usize>) -> bool {
    level == Some(0) || matches!(environment.get(variable), Ok(text) if !text.is_some_and(|text| text.contains(',')))
}

/// `OMP_MAX_ACTIVE_LEVELS`, or what asks for nesting without it.
fn says_levels(environment: &Environment, began: &Began<'_>, flag: impl Fn(&str) -> Option<bool>) -> Says<u64> {
    let said = Says::of(environment, &["OMP_MAX_ACTIVE_LEVELS"], |text| text.parse().ok());
    let Says::Nothing = said else { return said };
    let all = began.levels.map(|(_, all)| all);
    // Before GCC 11 nesting is a switch of its own, and this has no bounds from the beginning.
    if began.levels.is_some_and(|(default, all)| default == all) {
        return Says::Nothing;
    }
    let nested = Says::of(environment, &["OMP_NESTED"], |text| if flag(text)? { all } else { Some(1) });
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
            Err(why) => return Says::Unknown(why.to_owned()),
        }
    }
    Says::Nothing
}

/// `OMP_PROC_BIND`, or places without it, which bind threads.
fn says_bind(environment: &Environment, affinity: &[&'static str], level: Option<usize>) -> Says<ProcBind> {
    let Some(level) = level else {
        return Says::Unknown("at which level of nesting the thread is is not known".to_owned());
    };
    let said = at_level(Says::of(environment, &["OMP_PROC_BIND"], |text| list(text, bind)), level);
    let Says::Nothing = said else { return said };
    let places = Says::of(environment, &["OMP_PLACES"], |_| Some(ProcBind(1)));
    match Says::<ProcBind>::of(environment, affinity, |_| None) {
        Says::Nothing => places,
        odd => odd,
    }
}

/// A setting of the whole process.
pub(crate) fn setting(
    name: &'static str,
    scope: Scope,
    value: Fact<SettingValue>,
    environment: &Environment,
    variables: &[&'static str],
    parse: impl Fn(&str) -> Option<SettingValue>,
    default: Option<SettingValue>,
) -> Setting {
    let says = Says::of(environment, variables, parse);
    let said = match &says {
        Says::Value { variable, text, .. } | Says::Odd { variable, text } => Some((*variable, text.clone())),
        Says::Unknown(_) | Says::Nothing => None,
    };
    let source = match (&value, says) {
        // What becomes of numbers that are too large, or of units that are left out, is the runtime's own affair.
        (Fact::Known { value, .. }, Says::Value { variable, value: said, .. }) if *value != said => {
            Fact::unknown(format_args!("{variable} is set, and says something else"))
        }
        (_, says) => source(&value, says, |a, b| a == b, None, default.as_ref()),
    };
    Setting { name, scope, value, source, said }
}

/// A number as a setting.
pub(crate) fn number(text: &str) -> Option<SettingValue> {
    text.parse().ok().map(SettingValue::Number)
}

/// One of some words, in any case, as the word that stands for it.
pub(crate) fn word(text: &str, words: impl IntoIterator<Item = (&'static str, &'static str)>) -> Option<SettingValue> {
    let found = words.into_iter().find(|(said, _)| text.eq_ignore_ascii_case(said));
    found.map(|(_, word)| SettingValue::Word(word))
}

/// Any text as a setting.
pub(crate) fn text(text: &str) -> Option<SettingValue> {
    Some(SettingValue::Text(text.to_owned()))
}

/// A size with an optional unit, of kilobytes without one (OpenMP 5.2, 21.2.2), in bytes.
pub(crate) fn size(text: &str) -> Option<SettingValue> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let unit = match text[digits..].trim().to_ascii_lowercase().as_str() {
        "b" => 0,
        "" | "k" => 10,
        "m" => 20,
        "g" => 30,
        _ => return None,
    };
    let bytes = text[..digits].parse::<i64>().ok()?.checked_mul(1 << unit)?;
    Some(SettingValue::Number(bytes))
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

fn bind(text: &str) -> Option<ProcBind> {
    let kind = match text.to_ascii_lowercase().as_str() {
        "false" => 0,
        "true" => 1,
        "master" | "primary" => 2,
        "close" => 3,
        "spread" => 4,
        _ => return None,
    };
    Some(ProcBind(kind))
}

/// A list with one entry for each level of nesting.
fn list<T>(text: &str, item: impl Fn(&str) -> Option<T>) -> Option<Vec<T>> {
    text.split(',').map(|part| item(part.trim())).collect()
}

/// The entry of a list that counts for a task at this level.
fn at_level<T: Copy>(says: Says<Vec<T>>, level: usize) -> Says<T> {
    match says {
        Says::Value { variable, text, value } => match value.get(level).or(value.last()) {
            Some(entry) => Says::Value { variable, text, value: *entry },
            None => Says::Odd { variable, text },
        },
        Says::Unknown(why) => Says::Unknown(why),
        Says::Nothing => Says::Nothing,
        Says::Odd { variable, text } => Says::Odd { variable, text },
    }
}

/// `[modifier:]kind[,chunk]`; a chunk that is not given is 0.
fn schedule(text: &str) -> Option<Schedule> {
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
    Some(Schedule { kind, monotonic, chunk })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::DeeperItems;

    fn known<T>(value: T) -> Fact<T> {
        Fact::known(value, Origin::Code)
    }

    /// A task at `level` with values as libgomp has them by itself on a machine with 8 processors.
    fn icvs(level: u32, nthreads: u64) -> Icvs {
        Icvs {
            nthreads: known(nthreads),
            dynamic: known(false),
            schedule: known(DYNAMIC),
            max_active_levels: known(1),
            thread_limit: known(None),
            bind: known(ProcBind(0)),
            levels: known(level),
            active_levels: known(level),
            default_device: known(0),
            def_allocator: known(DEFAULT_ALLOCATOR),
            deeper: DeeperItems::unknown("not asked"),
            sources: IcvSources::unknown("not asked"),
        }
    }

    const VARIABLES: Variables = Variables {
        prefix: "GOMP_",
        spins: ("GOMP_SPINCOUNT", "infinity"),
        schedule: &["OMP_SCHEDULE"],
        thread_limit: &["OMP_THREAD_LIMIT"],
        affinity: &["GOMP_CPU_AFFINITY", "KMP_AFFINITY"],
        flag,
        spreads: false,
        has_all_allocators: true,
    };
    const DYNAMIC: Schedule = Schedule { kind: 2, monotonic: false, chunk: 1 };

    /// The sources of `icvs` where the process was started with these variables and the runtime began with `initial`.
    fn sources(variables: &str, icvs: &Icvs, initial: Option<&Icvs>) -> IcvSources {
        let environment = Environment::parse(variables.replace(' ', "\0").as_bytes());
        let began = Began {
            environment: &environment,
            variables: &VARIABLES,
            initial,
            processors: Some(8),
            schedule: DYNAMIC,
            levels: Some((1, 255)),
        };
        of_task(icvs, &began)
    }

    fn word(source: &Fact<Source>) -> String {
        match source.value() {
            Some(Source::Environment { variable, text }) => format!("{variable}={text}"),
            Some(source) => source.word().to_owned(),
            None => "?".to_owned(),
        }
    }

    #[test]
    fn each_value_has_the_source_that_explains_it_alone() {
        let nthreads = |variables: &str, level, value, initial: Option<u64>| {
            let initial = initial.map(|n| icvs(0, n));
            word(&sources(variables, &icvs(level, value), initial.as_ref()).nthreads)
        };
        assert_eq!(nthreads("A=1", 0, 8, Some(8)), "default");
        assert_eq!(nthreads("A=1", 0, 8, None), "default");
        assert_eq!(nthreads("A=1", 0, 3, Some(8)), "program");
        assert_eq!(nthreads("A=1", 0, 3, None), "program");
        // Set by setenv before the runtime looked, or a quota that it knows of: who can tell.
        assert_eq!(nthreads("A=1", 0, 3, Some(3)), "?");
        assert_eq!(nthreads("OMP_NUM_THREADS=4", 0, 4, Some(4)), "OMP_NUM_THREADS=4");
        assert_eq!(nthreads("OMP_NUM_THREADS=4", 0, 5, Some(4)), "program");
        assert_eq!(nthreads("OMP_NUM_THREADS=4", 0, 5, None), "program");
        assert_eq!(nthreads("OMP_NUM_THREADS=4", 0, 3, Some(3)), "?");
        assert_eq!(nthreads("OMP_NUM_THREADS=many", 0, 8, Some(8)), "?");
        // A list has an entry for each level.
        for (level, value, expected) in [(0, 4, "list"), (1, 2, "list"), (2, 2, "list"), (1, 4, "program")] {
            let expected = if expected == "list" { "OMP_NUM_THREADS=4,2" } else { expected };
            assert_eq!(nthreads("OMP_NUM_THREADS=4,2", level, value, Some(4)), expected);
        }
    }

    #[test]
    fn without_an_environment_only_what_changed_is_known() {
        let environment = Environment::unknown("gone");
        let began = |initial| Began {
            environment: &environment,
            variables: &VARIABLES,
            initial,
            processors: Some(8),
            schedule: DYNAMIC,
            levels: Some((1, 255)),
        };
        let initial = icvs(0, 8);
        assert_eq!(word(&of_task(&icvs(0, 8), &began(Some(&initial))).nthreads), "?");
        assert_eq!(word(&of_task(&icvs(0, 7), &began(Some(&initial))).nthreads), "program");
        assert_eq!(word(&of_task(&icvs(0, 7), &began(None)).nthreads), "?");
    }

    #[test]
    fn variables_that_imply_others() {
        let mut nested = icvs(0, 4);
        nested.max_active_levels = known(255);
        let levels = |variables: &str, icvs: &Icvs| word(&sources(variables, icvs, Some(icvs)).max_active_levels);
        assert_eq!(levels("OMP_NUM_THREADS=4,2", &nested), "OMP_NUM_THREADS=4,2");
        assert_eq!(levels("OMP_NESTED=true", &nested), "OMP_NESTED=true");
        assert_eq!(levels("OMP_NESTED=false", &icvs(0, 4)), "OMP_NESTED=false");
        assert_eq!(levels("OMP_MAX_ACTIVE_LEVELS=1", &icvs(0, 4)), "OMP_MAX_ACTIVE_LEVELS=1");
        assert_eq!(levels("OMP_NUM_THREADS=4", &icvs(0, 4)), "default");

        let mut bound = icvs(0, 4);
        bound.bind = known(ProcBind(1));
        let bind = |variables: &str, icvs: &Icvs| word(&sources(variables, icvs, Some(icvs)).bind);
        assert_eq!(bind("OMP_PLACES=cores", &bound), "OMP_PLACES=cores");
        assert_eq!(bind("OMP_PROC_BIND=TRUE", &bound), "OMP_PROC_BIND=TRUE");
        assert_eq!(bind("GOMP_CPU_AFFINITY=0", &bound), "?");
        assert_eq!(bind("A=1", &icvs(0, 4)), "default");
    }

    #[test]
    fn texts_of_variables() {
        let parsed = |text| schedule(text).map(|s| (s.kind, s.monotonic, s.chunk));
        assert_eq!(parsed("guided, 7"), Some((3, false, 7)));
        assert_eq!(parsed("Monotonic:Dynamic"), Some((2, true, 0)));
        assert_eq!(parsed("dynamic,0"), None);
        assert_eq!(parsed("trapezoidal"), None);
        assert_eq!(size("4M"), Some(SettingValue::Number(4 << 20)));
        assert_eq!(size("512"), Some(SettingValue::Number(512 << 10)));
        assert_eq!(size("10 b"), Some(SettingValue::Number(10)));
        assert_eq!(size("99999999999999999999"), None);
        assert_eq!(size(""), None);
        assert_eq!(flag("1"), None);
        assert_eq!(list("4,,2", positive), None);
    }
}
