//! Where the values of control variables come from: the environment the process was started with,
//! the runtime, the program.
//!
//! A source is only named where nothing else can be.

use ompd_layout::Origin;
use ompd_process::Environment;

use crate::icvs::line::Line;
use crate::icvs::registry::{Agrees, Entry, LEVELS};
use crate::icvs::said::{Began, Says, texts};
use crate::model::{Common, Fact, IcvSources, IcvValue, Icvs, NoSource, Setting, Source};

/// The source of a value. `initial` is what the runtime began with, `default` what it begins with
/// when nothing is said.
fn source(
    value: &Fact<IcvValue>,
    says: Says<IcvValue>,
    agrees: Agrees,
    initial: Option<&IcvValue>,
    default: impl FnOnce(&IcvValue) -> Option<IcvValue>,
) -> Fact<Source> {
    let Some(value) = value.value() else { return Fact::unknown(NoSource::ValueUnknown) };
    let found = |source| Fact::known(source, Origin::Os);
    let changed = initial.is_some_and(|initial| initial != value);
    match says {
        Says::Value { variable, text, value: said } if agrees(value, &said) => {
            found(Source::Environment { variable, text })
        }
        // The runtime began with something else than it has now.
        _ if changed => found(Source::Program),
        Says::Unknown(why) => Fact::unknown(why),
        Says::Value { .. } if initial.is_none() => found(Source::Program),
        Says::Value { variable, .. } => Fact::unknown(NoSource::OtherInitial { variable }),
        Says::Odd { variable, .. } => Fact::unknown(NoSource::EffectUnknown { variable }),
        Says::Nothing => match default(value) {
            Some(default) if default == *value => found(Source::Default),
            Some(_) if initial.is_none() => found(Source::Program),
            Some(_) => Fact::unknown(NoSource::NoVariable),
            None => Fact::unknown(NoSource::DefaultUnknown),
        },
    }
}

/// The sources of a task's control variables. `initial` has the values as the runtime first had
/// them, whether by itself or from the environment; `None` where it does not keep them.
pub(crate) fn of_task<H>(
    icvs: &Icvs,
    initial: Option<&Icvs>,
    began: &Began<'_>,
    table: &'static [Line<H>],
) -> IcvSources {
    let level = icvs.count(&LEVELS).map(|level| usize::try_from(level).unwrap_or(usize::MAX));
    let mut sources = IcvSources::unknown(NoSource::ValueUnknown);
    for line in table.iter().filter(|line| line.entry.key.is_some() && line.entry.can_be_set()) {
        let entry = line.entry;
        let initial = initial.filter(|_| !entry.is_list || inherited(began.environment, entry.variables[0], level));
        let initial = initial.and_then(|initial| initial.get(entry).value());
        let default = |own: &IcvValue| (line.default)(began, own);
        sources.set(entry, source(icvs.get(entry), says(line, began, level), line.agrees, initial, default));
    }
    sources
}

/// What the environment says of a task's control variable.
fn says<H>(line: &'static Line<H>, began: &Began<'_>, level: Option<usize>) -> Says<IcvValue> {
    let item = |text: &str| (line.parse)(text, began.variables);
    // Each level of nesting has an entry of its own in a list; the last one counts for those
    // further in.
    let said = match (line.entry.is_list, level) {
        (false, _) => Says::of(began.environment, line.variables(), item),
        (true, Some(level)) => {
            Says::of(began.environment, line.variables(), |text| texts::list(text, item)).at_level(level)
        }
        (true, None) => Says::Unknown(NoSource::LevelUnknown),
    };
    match (said, line.entry.implied) {
        (Says::Nothing, Some(implied)) => implied(began),
        (said, _) => said,
    }
}

/// True if a task at this level has what the runtime began with unless the program changed it.
/// Further in, a list in the variable makes values differ from the first one.
fn inherited(environment: &Environment, variable: &str, level: Option<usize>) -> bool {
    level == Some(0) || matches!(environment.get(variable), Ok(text) if !text.is_some_and(|text| text.contains(',')))
}

/// The value, if it can be that of the control variable.
fn believed(entry: &Entry, value: Fact<IcvValue>) -> Fact<IcvValue> {
    match (value.value(), entry.most) {
        (Some(IcvValue::Number(number)), Some(most)) if !(0..=most).contains(number) => {
            Fact::unknown(Common::ImplausibleValue { value: *number, most })
        }
        _ => value,
    }
}

/// A control variable of the whole process, with this value.
pub(crate) fn setting<H>(line: &'static Line<H>, value: Fact<IcvValue>, began: &Began<'_>) -> Setting {
    let value = believed(line.entry, value);
    let says = Says::of(began.environment, line.variables(), |text| (line.parse)(text, began.variables));
    let said = match &says {
        Says::Value { variable, text, .. } | Says::Odd { variable, text } => Some((*variable, text.clone())),
        Says::Unknown(_) | Says::Nothing => None,
    };
    let source = match (&value, says) {
        // What becomes of numbers that are too large, or of units that are left out, is the
        // runtime's own affair.
        (Fact::Known { value, .. }, Says::Value { variable, value: said, .. }) if *value != said => {
            Fact::unknown(NoSource::OtherValue { variable })
        }
        (_, says) => source(&value, says, line.agrees, None, |own| (line.default)(began, own)),
    };
    Setting { name: line.entry.name(), scope: line.entry.scope, value, source, said }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::icvs::registry::*;
    use crate::icvs::variables::Variables;
    use crate::icvs::{Line, line};
    use crate::model::{Allocator, ByIcv, Common, DeeperItems, ProcBind, Schedule};

    const NOT_ASKED: Common = Common::NotRead;

    fn known(value: IcvValue) -> Fact<IcvValue> {
        Fact::known(value, Origin::Code)
    }

    /// A task at `level` with values as libgomp has them by itself on a machine with 8 processors.
    fn icvs(level: u64, nthreads: u64) -> Icvs {
        let values = [
            (&NTHREADS, IcvValue::Count(nthreads)),
            (&DYN, IcvValue::Flag(false)),
            (&RUN_SCHED, IcvValue::Schedule(DYNAMIC)),
            (&MAX_ACTIVE_LEVELS, IcvValue::Count(1)),
            (&THREAD_LIMIT, IcvValue::Limit(None)),
            (&BIND, IcvValue::Bind(ProcBind(0))),
            (&LEVELS, IcvValue::Count(level)),
            (&ACTIVE_LEVELS, IcvValue::Count(level)),
            (&DEFAULT_DEVICE, IcvValue::Number(0)),
            (&DEF_ALLOCATOR, IcvValue::Allocator(Allocator::DEFAULT)),
        ];
        let none = ByIcv::unknown(NOT_ASKED);
        let values = values.into_iter().fold(none, |all, (entry, value)| all.with(entry, known(value)));
        Icvs { values, deeper: DeeperItems::unknown(NOT_ASKED), sources: IcvSources::unknown(NOT_ASKED) }
    }

    const VARIABLES: Variables = Variables {
        prefix: "GOMP_",
        spins: ("GOMP_SPINCOUNT", "infinity"),
        affinity: &["GOMP_CPU_AFFINITY", "KMP_AFFINITY"],
        flag: texts::flag,
    };
    const DYNAMIC: Schedule = Schedule { kind: 2, monotonic: false, chunk: 1 };

    static TABLE: &[Line<()>] = &[
        line(&NTHREADS, ()),
        line(&DYN, ()),
        line(&RUN_SCHED, ()).by_default(|_, _| Some(IcvValue::Schedule(DYNAMIC))),
        line(&MAX_ACTIVE_LEVELS, ()),
        line(&THREAD_LIMIT, ()),
        line(&BIND, ()),
        line(&LEVELS, ()),
        line(&DEFAULT_DEVICE, ()),
        line(&DEF_ALLOCATOR, ()),
        line(&NUM_PROCS, ()),
        line(&STACKSIZE, ()).also(&["GOMP_STACKSIZE"]),
    ];

    fn began(environment: &Environment) -> Began<'_> {
        Began { environment, variables: &VARIABLES, processors: Box::new(|| Some(8)), levels: Some((1, 255)) }
    }

    /// The sources of `icvs` where the process was started with these variables and the runtime
    /// began with `initial`.
    fn sources(variables: &str, icvs: &Icvs, initial: Option<&Icvs>) -> IcvSources {
        let environment = Environment::parse(variables.replace(' ', "\0").as_bytes());
        of_task(icvs, initial, &began(&environment), TABLE)
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
            word(sources(variables, &icvs(level, value), initial.as_ref()).get(&NTHREADS))
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
        let initial = icvs(0, 8);
        let nthreads =
            |value, initial| word(of_task(&icvs(0, value), initial, &began(&environment), TABLE).get(&NTHREADS));
        assert_eq!(nthreads(8, Some(&initial)), "?");
        assert_eq!(nthreads(7, Some(&initial)), "program");
        assert_eq!(nthreads(7, None), "?");
    }

    #[test]
    fn variables_that_imply_others() {
        let mut nested = icvs(0, 4);
        nested.values.set(&MAX_ACTIVE_LEVELS, known(IcvValue::Count(255)));
        let levels = |variables: &str, icvs: &Icvs| word(sources(variables, icvs, Some(icvs)).get(&MAX_ACTIVE_LEVELS));
        assert_eq!(levels("OMP_NUM_THREADS=4,2", &nested), "OMP_NUM_THREADS=4,2");
        assert_eq!(levels("OMP_NESTED=true", &nested), "OMP_NESTED=true");
        assert_eq!(levels("OMP_NESTED=false", &icvs(0, 4)), "OMP_NESTED=false");
        assert_eq!(levels("OMP_MAX_ACTIVE_LEVELS=1", &icvs(0, 4)), "OMP_MAX_ACTIVE_LEVELS=1");
        assert_eq!(levels("OMP_NUM_THREADS=4", &icvs(0, 4)), "default");

        let mut bound = icvs(0, 4);
        bound.values.set(&BIND, known(IcvValue::Bind(ProcBind(1))));
        let bind = |variables: &str, icvs: &Icvs| word(sources(variables, icvs, Some(icvs)).get(&BIND));
        assert_eq!(bind("OMP_PLACES=cores", &bound), "OMP_PLACES=cores");
        assert_eq!(bind("OMP_PROC_BIND=TRUE", &bound), "OMP_PROC_BIND=TRUE");
        assert_eq!(bind("GOMP_CPU_AFFINITY=0", &bound), "?");
        assert_eq!(bind("A=1", &icvs(0, 4)), "default");
    }

    #[test]
    fn settings_of_the_process() {
        let of = |entry: &Entry, variables: &str, value: Fact<IcvValue>| {
            let environment = Environment::parse(variables.replace(' ', "\0").as_bytes());
            let line = TABLE.iter().find(|line| line.entry.icv == entry.icv).expect("a line");
            let setting = setting(line, value, &began(&environment));
            (word(&setting.source), setting.said.map(|(variable, text)| format!("{variable}={text}")))
        };
        let megabyte = || known(IcvValue::Number(1 << 20));
        let said = |text: &str| Some(text.to_owned());
        // What the runtime has counted is its default, and of sizes none is known.
        assert_eq!(of(&NUM_PROCS, "A=1", known(IcvValue::Number(3))), ("default".to_owned(), None));
        assert_eq!(of(&STACKSIZE, "A=1", megabyte()), ("?".to_owned(), None));
        let machine = |processors| believed(&NUM_PROCS, known(IcvValue::Number(processors)));
        assert_eq!(machine(1 << 16).value(), Some(&IcvValue::Number(1 << 16)));
        assert!(machine(419_302_744).value().is_none() && machine(-1).value().is_none());
        // A family's own variable says it as well as the specification's; both together may mean
        // anything.
        let expected = ("GOMP_STACKSIZE=1M".to_owned(), said("GOMP_STACKSIZE=1M"));
        assert_eq!(of(&STACKSIZE, "GOMP_STACKSIZE=1M", megabyte()), expected);
        let both = "OMP_STACKSIZE=1M GOMP_STACKSIZE=1M";
        assert_eq!(of(&STACKSIZE, both, megabyte()), ("?".to_owned(), said("GOMP_STACKSIZE=1M")));
        assert_eq!(of(&STACKSIZE, "OMP_STACKSIZE=2M", megabyte()), ("?".to_owned(), said("OMP_STACKSIZE=2M")));
        assert_eq!(
            of(&STACKSIZE, "OMP_STACKSIZE=2M", Fact::unknown(Common::NotRead)),
            ("?".to_owned(), said("OMP_STACKSIZE=2M"))
        );
    }
}
