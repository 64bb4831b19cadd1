//! Internal control variables: which there are, of what, and their values (OpenMP 5.2, section 2.1;
//! OpenMP 6.0, chapter 3).

use std::sync::LazyLock;

use ompd_runtime::icvs::{Entry, Holder, Kind, REGISTRY};
use ompd_runtime::model::{Fact, IcvValue, Icvs, Scope, Setting, Task, Thread};

use crate::answer::{Answer, NoAnswer};
use crate::answers::Answers;
use crate::keys::{RegionKey, RuntimeKey, TaskKey, ThreadKey};
use crate::library::Handle;
use crate::question::{Aspect, Subject};
use crate::space::Space;
use crate::types::{IcvId, Rc, ScopeNumber, Word, scope};

/// A control variable that is offered, by one of its names.
pub(crate) struct Icv {
    pub(crate) id: IcvId,
    pub(crate) name: &'static str,
    entry: &'static Entry,
    /// Scope for debuggers that ask for OpenMP 5.0: that in which they have found it since there is
    /// OMPD.
    first_scope: ScopeNumber,
    /// Scope by the tables of the specification (OpenMP 5.2, table 2.2): of a data environment a
    /// task, of a team a parallel region.
    table_scope: ScopeNumber,
    /// The first version that has it.
    since: Word,
    /// Debuggers that ask for OpenMP 5.0 are offered it only where its value could be read.
    if_known: bool,
}

use scope::{ADDRESS_SPACE, GLOBAL, IMPLICIT_TASK, PARALLEL, TASK, THREAD};

const V50: Word = 201_811;

/// All of them, by their numbers. These never change their meaning.
static ICVS: LazyLock<Vec<Icv>> = LazyLock::new(|| {
    let mut all = Vec::new();
    for entry in REGISTRY {
        let Some(ompd) = entry.ompd else { continue };
        for (id, name) in std::iter::once((ompd.id, entry.name())).chain(ompd.aliases.iter().copied()) {
            all.push(Icv {
                id,
                name,
                entry,
                first_scope: number_of_scope(ompd.first_scope),
                table_scope: number_of_scope(entry.scope),
                since: ompd.since.into(),
                if_known: ompd.if_known,
            });
        }
    }
    all.sort_by_key(|icv| icv.id);
    all
});

fn number_of_scope(scope: Scope) -> ScopeNumber {
    match scope {
        Scope::Global => GLOBAL,
        Scope::Device => ADDRESS_SPACE,
        Scope::Thread => THREAD,
        Scope::Parallel => PARALLEL,
        Scope::ImplicitTask => IMPLICIT_TASK,
        Scope::Task => TASK,
    }
}

impl Icv {
    /// Its scope for debuggers that ask for this version.
    pub(crate) fn scope(&self, version: Word) -> ScopeNumber {
        if version <= V50 { self.first_scope } else { self.table_scope }
    }
}

/// The control variables of a version, in the order of the enumeration. They include those that this runtime does not
/// have, and those whose place in it is unknown. What the environment said is no value: the program may have changed it
/// before the runtime looked.
pub(crate) fn offered(version: Word) -> impl Iterator<Item = &'static Icv> {
    ICVS.iter().filter(move |icv| icv.since <= version)
}

/// Those of them that are enumerated in an address space. Debuggers that ask for OpenMP 5.0 have LLVM's plugin. Its
/// listing ends at the first variable without a value, and at the first without a number, except texts that it knows.
/// Such variables are left out for them.
pub(crate) fn enumerated(space: &mut Space, version: Word) -> Vec<&'static Icv> {
    const TEXTS: [&str; 3] = ["affinity-format-var", "tool-libraries-var", "tool-verbose-init-var"];
    if version > V50 {
        return offered(version).collect();
    }
    let (settings, known) = space.first_icvs();
    let fits = |icv: &&Icv| match icv.entry.holder {
        Holder::Process => {
            let name = icv.entry.name();
            let setting = settings.iter().find(|setting| setting.name == name);
            let value = setting.and_then(|setting| of_setting(setting, icv.entry).ok());
            value.is_some_and(|value| value.number.is_some() || TEXTS.contains(&name))
        }
        _ => !icv.if_known || known.contains(&icv.entry.icv),
    };
    offered(version).filter(fits).collect()
}

/// A value: a number, if it is one or begins with one, and its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Value {
    pub(crate) number: Option<Word>,
    /// There is more to it than the number.
    pub(crate) incomplete: bool,
    pub(crate) text: String,
}

impl Value {
    fn number(number: impl Into<Word>) -> Value {
        let number = number.into();
        Value { number: Some(number), incomplete: false, text: number.to_string() }
    }

    fn unsigned(number: u64) -> Value {
        Value::number(Word::try_from(number).unwrap_or(Word::MAX))
    }

    /// The same as the first item of a list. Where that is not known as a whole, it stays this
    /// value alone.
    fn of_list(self, list: &Fact<Vec<IcvValue>>) -> Value {
        match list.value() {
            Some(items) if items.len() > 1 => Value {
                incomplete: true,
                text: items.iter().map(ToString::to_string).collect::<Vec<_>>().join(","),
                ..self
            },
            _ => self,
        }
    }

    fn text(text: impl Into<String>) -> Value {
        Value { number: None, incomplete: false, text: text.into() }
    }

    /// That of a control variable.
    fn of(value: &IcvValue, kind: Kind) -> Value {
        // What `omp_get_thread_limit` returns without a limit.
        let unlimited = i32::MAX;
        let named = |number| Value { text: value.to_string(), ..number };
        match value {
            IcvValue::Number(number) => Value::number(*number),
            IcvValue::Count(count) | IcvValue::Limit(Some(count)) => Value::unsigned(*count),
            IcvValue::Limit(None) => Value::number(unlimited),
            IcvValue::Flag(flag) => Value::number(*flag),
            IcvValue::Bind(bind) => named(Value::number(bind.0)),
            IcvValue::Allocator(allocator) => named(Value::unsigned(allocator.0)),
            // LLVM's library has told of switches by number since there is OMPD.
            IcvValue::Word(word) if kind == Kind::Switch => named(Value::number(*word == "enabled")),
            IcvValue::Word(word) => Value::text(*word),
            IcvValue::Text(text) => Value::text(text),
            // A kind, a chunk and a modifier are no number.
            IcvValue::Schedule(schedule) if schedule.chunk > 0 => Value::text(schedule.to_string()),
            IcvValue::Schedule(schedule) => Value::text(format!("{schedule},{}", schedule.chunk)),
        }
    }
}

/// The value of a control variable for what a handle stands for.
///
/// # Errors [`Rc::INCOMPATIBLE`] if it is none of what the handle stands for, [`Rc::UNAVAILABLE`]
/// if it is not known.
pub(crate) fn value(
    space: &mut Space,
    handle: Handle,
    scope: ScopeNumber,
    icv: &Icv,
    version: Word,
) -> Result<Value, Rc> {
    if scope != icv.scope(version) {
        return Err(Rc::INCOMPATIBLE);
    }
    let entry = icv.entry;
    match (scope, handle) {
        (GLOBAL | ADDRESS_SPACE, Handle::Space) => match entry.holder {
            Holder::Process => Ok(of_setting(&space.setting(entry.name())?, entry)?),
            _ => Err(Rc::INCOMPATIBLE),
        },
        (THREAD, Handle::Thread(_, key)) => {
            let aspect = if matches!(entry.holder, Holder::Thread { .. }) { Aspect::Icvs } else { Aspect::TaskIcvs };
            space.ask(Subject::Thread(key), aspect, |answers| of_thread(answers, key, entry))
        }
        (PARALLEL, Handle::Region(_, key)) => {
            space.ask(Subject::Region(key), Aspect::Icvs, |answers| of_region(answers, key, entry))
        }
        (TASK, Handle::Task(_, key)) => {
            space.ask(Subject::Task(key), Aspect::Icvs, |answers| of_task(answers, key, entry))
        }
        (IMPLICIT_TASK, Handle::Task(_, key)) => space.ask(Subject::Task(key), Aspect::Icvs, |answers| {
            let implicit = answers.task(key)?.1.kind.get().is_some_and(|kind| !kind.is_explicit());
            if implicit { of_task(answers, key, entry) } else { Err(Rc::INCOMPATIBLE.into()) }
        }),
        _ => Err(Rc::INCOMPATIBLE),
    }
}

fn known(fact: &Fact<IcvValue>, entry: &Entry) -> Answer<Value> {
    fact.value().map(|value| Value::of(value, entry.kind)).ok_or(NoAnswer::NeedsMore(Rc::UNAVAILABLE))
}

fn of_setting(setting: &Setting, entry: &Entry) -> Answer<Value> {
    known(&setting.value, entry)
}

fn of_thread(answers: Answers<'_>, key: ThreadKey, entry: &Entry) -> Answer<Value> {
    let thread = answers.thread(key)?.1;
    match entry.holder {
        Holder::Thread { of, .. } => known(&of(thread), entry),
        _ => of_executed(answers, key.runtime, thread, entry),
    }
}

/// Of the task that a thread executes. Lists are not read together with all else.
fn of_executed(answers: Answers<'_>, runtime: RuntimeKey, thread: &Thread, entry: &Entry) -> Answer<Value> {
    let found = match entry.is_list {
        true => of_icvs(&answers.lists_of_thread(runtime, thread)?, entry),
        false => of_icvs(&thread.icvs, entry),
    };
    found.or_else(|why| answers.final_of(thread, why))
}

fn of_region(answers: Answers<'_>, key: RegionKey, entry: &Entry) -> Answer<Value> {
    let held = match entry.holder {
        Holder::Region { of, outermost } => Ok((of, outermost)),
        _ => Err(NoAnswer::from(Rc::INCOMPATIBLE)),
    };
    if let RegionKey::Outermost(thread) = key {
        answers.thread(thread)?;
        return held.map(|(_, outermost)| Value::unsigned(outermost));
    }
    let team = answers.team(key)?.2;
    known(&held?.0(team), entry)
}

fn of_task(answers: Answers<'_>, key: TaskKey, entry: &Entry) -> Answer<Value> {
    let task = answers.task(key)?.1;
    match entry.holder {
        Holder::Descriptor(of) => known(&of(task), entry),
        Holder::Region { .. } => of_region(answers, answers.region_of(key)?, entry),
        Holder::Thread { of, of_task } => of_its_thread(answers, key, task, entry, of, of_task),
        Holder::Task | Holder::Process => match answers.executing(key) {
            Ok(thread) => of_executed(answers, key.runtime, thread, entry),
            Err(_) => {
                let own = answers.icvs_of(key)?;
                match entry.is_list {
                    true => of_icvs(&answers.lists_of_task(key, &own)?, entry),
                    false => of_icvs(&own, entry),
                }
            }
        },
    }
}

/// The value that a task itself has for its thread, such as the number in the team. Else the value of the thread that
/// executes it.
fn of_its_thread(
    answers: Answers<'_>,
    key: TaskKey,
    task: &Task,
    entry: &Entry,
    of: fn(&Thread) -> Fact<IcvValue>,
    of_task: fn(&Task) -> Option<IcvValue>,
) -> Answer<Value> {
    match of_task(task) {
        Some(value) => Ok(Value::of(&value, entry.kind)),
        None => known(&of(answers.executing(key)?), entry),
    }
}

fn of_icvs(icvs: &Icvs, entry: &Entry) -> Answer<Value> {
    if !matches!(entry.holder, Holder::Task) {
        return Err(Rc::INCOMPATIBLE.into());
    }
    let own = known(icvs.get(entry), entry)?;
    Ok(if entry.is_list { own.of_list(&icvs.list(entry)) } else { own })
}

#[cfg(test)]
mod tests {
    use ompd_runtime::Origin;
    use ompd_runtime::model::{ProcBind, Schedule};

    use super::*;

    /// The number, whether there is more, and the text.
    fn parts(value: Value) -> (Option<Word>, bool, String) {
        (value.number, value.incomplete, value.text)
    }

    #[test]
    fn values_are_told_by_number_where_they_have_one() {
        let schedule = |chunk| IcvValue::Schedule(Schedule { kind: 2, monotonic: true, chunk });
        let all = [
            (IcvValue::Number(-4), Kind::Number, Some(-4), "-4"),
            (IcvValue::Count(7), Kind::Count, Some(7), "7"),
            (IcvValue::Count(u64::MAX), Kind::Count, Some(Word::MAX), "9223372036854775807"),
            (IcvValue::Limit(Some(3)), Kind::Limit, Some(3), "3"),
            (IcvValue::Limit(None), Kind::Limit, Some(0x7fff_ffff), "2147483647"),
            (IcvValue::Flag(true), Kind::Flag, Some(1), "1"),
            (IcvValue::Flag(false), Kind::Flag, Some(0), "0"),
            (IcvValue::Bind(ProcBind(4)), Kind::Bind, Some(4), "spread"),
            (IcvValue::Word("enabled"), Kind::Switch, Some(1), "enabled"),
            (IcvValue::Word("disabled"), Kind::Switch, Some(0), "disabled"),
            (IcvValue::Word("enabled"), Kind::Word, None, "enabled"),
            (IcvValue::Text("a.so".to_owned()), Kind::Text, None, "a.so"),
            (schedule(5), Kind::Schedule, None, "monotonic:dynamic,5"),
            (schedule(0), Kind::Schedule, None, "monotonic:dynamic,0"),
            (schedule(-1), Kind::Schedule, None, "monotonic:dynamic,-1"),
        ];
        for (value, kind, number, text) in all {
            assert_eq!(parts(Value::of(&value, kind)), (number, false, text.to_owned()), "{value:?}");
        }
    }

    #[test]
    fn of_a_list_the_number_is_the_first_item() {
        let list = |items: &[u64]| {
            let items = items.iter().map(|count| IcvValue::Count(*count)).collect();
            parts(Value::number(4).of_list(&Fact::known(items, Origin::Dwarf)))
        };
        assert_eq!(list(&[4, 3, 2]), (Some(4), true, "4,3,2".to_owned()));
        assert_eq!(list(&[4, 3]), (Some(4), true, "4,3".to_owned()));
        assert_eq!(list(&[4]), (Some(4), false, "4".to_owned()));
        assert_eq!(list(&[]), (Some(4), false, "4".to_owned()));
    }

    #[test]
    fn ids_and_names_are_there_once() {
        for (n, icv) in ICVS.iter().enumerate() {
            assert!(icv.id > 0);
            assert!(ICVS[..n].iter().all(|other| other.id < icv.id && other.name != icv.name), "{}", icv.name);
        }
    }

    #[test]
    fn every_control_variable_is_offered() {
        for entry in REGISTRY {
            let offered = offered(Word::MAX).filter(|icv| icv.entry.icv == entry.icv).map(|icv| icv.name);
            assert!(offered.into_iter().any(|name| name == entry.name()), "{}", entry.name());
        }
    }

    /// What debuggers have met under these numbers they meet for ever.
    #[test]
    fn numbers_keep_their_meaning() {
        let ids =
            |name: &str| ICVS.iter().find(|icv| icv.name == name).map(|icv| (icv.id, icv.first_scope, icv.table_scope));
        assert_eq!(ids("dyn-var"), Some((1, THREAD, TASK)));
        assert_eq!(ids("levels-var"), Some((14, PARALLEL, TASK)));
        assert_eq!(ids("ompd-num-procs-var"), Some((20, ADDRESS_SPACE, ADDRESS_SPACE)));
        assert_eq!(ids("ompd-team-size-var"), Some((30, PARALLEL, PARALLEL)));
        assert_eq!(ids("target-offload-var"), Some((35, ADDRESS_SPACE, GLOBAL)));
        assert_eq!(ids("def-allocator-var"), Some((37, THREAD, IMPLICIT_TASK)));
        assert!(ICVS.iter().map(|icv| icv.id).eq(1..=ICVS.len() as IcvId), "there is no gap");
    }

    #[test]
    fn debuggers_of_openmp_5_0_meet_no_scope_they_do_not_know() {
        let known = [ADDRESS_SPACE, THREAD, PARALLEL, TASK];
        assert!(offered(V50).all(|icv| known.contains(&icv.scope(V50))));
        const V52: Word = 202_111;
        assert!(offered(V52).any(|icv| icv.scope(V52) == GLOBAL));
    }
}
