//! Internal control variables: which there are, of what, and their values (OpenMP 5.2, section 2.1; OpenMP 6.0, chapter 3).

use std::fmt;

use ompd_runtime::model::{Fact, Icvs, Setting, SettingValue, Task, TaskKind, Thread};

use crate::keys::{RegionKey, RuntimeKey, TaskKey, ThreadKey};
use crate::library::Handle;
use crate::question::{Answer, Aspect, NoAnswer, Subject};
use crate::space::Space;
use crate::types::{IcvId, Rc, ScopeNumber, Word, scope};
use crate::view::View;

/// A control variable that is offered.
pub(crate) struct Icv {
    pub(crate) id: IcvId,
    pub(crate) name: &'static str,
    what: What,
    /// Scope for debuggers that ask for OpenMP 5.0: that in which they have found it since there is OMPD.
    first_scope: ScopeNumber,
    /// Scope by the tables of the specification (OpenMP 5.2, table 2.2): of a data environment a task, of a team a parallel region.
    table_scope: ScopeNumber,
    /// The first version that has it.
    since: Word,
}

/// What it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum What {
    Dynamic,
    Schedule,
    Nthreads,
    Levels,
    ActiveLevels,
    ThreadLimit,
    MaxActiveLevels,
    Bind,
    DefaultDevice,
    ThreadNum,
    Final,
    Implicit,
    Explicit,
    TeamSize,
    Partition,
    Allocator,
    /// A setting of the process that the runtime keeps.
    Setting(&'static str),
}

use scope::{ADDRESS_SPACE, GLOBAL, IMPLICIT_TASK, PARALLEL, TASK, THREAD};

const fn icv(
    id: IcvId,
    name: &'static str,
    what: What,
    first_scope: ScopeNumber,
    table_scope: ScopeNumber,
    since: Word,
) -> Icv {
    Icv { id, name, what, first_scope, table_scope, since }
}

const V50: Word = 201_811;
const V51: Word = 202_011;
const V52: Word = 202_111;

/// All of them. Ids never change their meaning.
pub(crate) const ICVS: &[Icv] = &[
    icv(1, "dyn-var", What::Dynamic, THREAD, TASK, V50),
    icv(2, "run-sched-var", What::Schedule, TASK, TASK, V50),
    icv(3, "stacksize-var", What::Setting("stacksize-var"), ADDRESS_SPACE, ADDRESS_SPACE, V50),
    icv(4, "cancel-var", What::Setting("cancel-var"), ADDRESS_SPACE, GLOBAL, V50),
    icv(5, "max-task-priority-var", What::Setting("max-task-priority-var"), ADDRESS_SPACE, GLOBAL, V50),
    icv(6, "debug-var", What::Setting("debug-var"), ADDRESS_SPACE, GLOBAL, V50),
    icv(7, "nthreads-var", What::Nthreads, THREAD, TASK, V50),
    icv(8, "display-affinity-var", What::Setting("display-affinity-var"), ADDRESS_SPACE, GLOBAL, V50),
    icv(9, "affinity-format-var", What::Setting("affinity-format-var"), ADDRESS_SPACE, ADDRESS_SPACE, V50),
    icv(10, "default-device-var", What::DefaultDevice, THREAD, TASK, V50),
    icv(11, "tool-var", What::Setting("tool-var"), ADDRESS_SPACE, GLOBAL, V50),
    icv(12, "tool-libraries-var", What::Setting("tool-libraries-var"), ADDRESS_SPACE, GLOBAL, V50),
    icv(13, "tool-verbose-init-var", What::Setting("tool-verbose-init-var"), ADDRESS_SPACE, GLOBAL, V50),
    icv(14, "levels-var", What::Levels, PARALLEL, TASK, V50),
    icv(15, "active-levels-var", What::ActiveLevels, PARALLEL, TASK, V50),
    icv(16, "thread-limit-var", What::ThreadLimit, TASK, TASK, V50),
    icv(17, "max-active-levels-var", What::MaxActiveLevels, TASK, TASK, V50),
    icv(18, "bind-var", What::Bind, TASK, TASK, V50),
    icv(19, "num-procs-var", What::Setting("num-procs-var"), ADDRESS_SPACE, ADDRESS_SPACE, V50),
    icv(20, "ompd-num-procs-var", What::Setting("num-procs-var"), ADDRESS_SPACE, ADDRESS_SPACE, V50),
    icv(21, "thread-num-var", What::ThreadNum, THREAD, TASK, V50),
    icv(22, "ompd-thread-num-var", What::ThreadNum, THREAD, TASK, V50),
    icv(23, "final-task-var", What::Final, TASK, TASK, V50),
    icv(24, "ompd-final-var", What::Final, TASK, TASK, V50),
    icv(25, "ompd-final-task-var", What::Final, TASK, TASK, V50),
    icv(26, "implicit-task-var", What::Implicit, TASK, TASK, V50),
    icv(27, "ompd-implicit-var", What::Implicit, TASK, TASK, V50),
    icv(28, "ompd-implicit-task-var", What::Implicit, TASK, TASK, V50),
    icv(29, "team-size-var", What::TeamSize, PARALLEL, PARALLEL, V50),
    icv(30, "ompd-team-size-var", What::TeamSize, PARALLEL, PARALLEL, V50),
    icv(31, "explicit-task-var", What::Explicit, TASK, TASK, V52),
    icv(32, "place-partition-var", What::Partition, THREAD, IMPLICIT_TASK, V51),
    icv(33, "nteams-var", What::Setting("nteams-var"), ADDRESS_SPACE, ADDRESS_SPACE, V51),
    icv(34, "teams-thread-limit-var", What::Setting("teams-thread-limit-var"), ADDRESS_SPACE, ADDRESS_SPACE, V51),
    icv(35, "target-offload-var", What::Setting("target-offload-var"), ADDRESS_SPACE, GLOBAL, V50),
    icv(36, "wait-policy-var", What::Setting("wait-policy-var"), ADDRESS_SPACE, ADDRESS_SPACE, V50),
    icv(37, "def-allocator-var", What::Allocator, THREAD, IMPLICIT_TASK, V50),
];

impl Icv {
    /// Its scope for debuggers that ask for this version.
    pub(crate) fn scope(&self, version: Word) -> ScopeNumber {
        if version <= V50 { self.first_scope } else { self.table_scope }
    }
}

/// The control variables of a version, in the order of the enumeration: also those that this runtime does not have, or of which it is
/// not known where it keeps them. What the environment said is no value, as the program may have changed that before the runtime
/// looked.
pub(crate) fn offered(version: Word) -> impl Iterator<Item = &'static Icv> {
    ICVS.iter().filter(move |icv| icv.since <= version)
}

/// Those of them that are enumerated in an address space. The debuggers that ask for OpenMP 5.0 are those with LLVM's plugin, whose
/// listing ends at the first variable without a value, and at the first one without a number unless it knows it for a text: such
/// are left out for them.
pub(crate) fn enumerated(space: &Space, version: Word) -> Vec<&'static Icv> {
    const TEXTS: [&str; 3] = ["affinity-format-var", "tool-libraries-var", "tool-verbose-init-var"];
    let fits = |icv: &&Icv| match icv.what {
        _ if version > V50 => true,
        What::Setting(name) => {
            let setting = space.first_settings().iter().find(|setting| setting.name == name);
            let value = setting.and_then(|setting| of_setting(setting).ok());
            value.is_some_and(|value| value.number.is_some() || TEXTS.contains(&name))
        }
        What::Allocator => space.knows_allocators(),
        _ => true,
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

    /// The same as the first item of a list. Where that is not known as a whole, it stays this value alone.
    fn of_list<T: fmt::Display>(self, list: &Fact<Vec<T>>) -> Value {
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
}

/// The value of a control variable for what a handle stands for.
///
/// # Errors
/// [`Rc::INCOMPATIBLE`] if it is none of what the handle stands for, [`Rc::UNAVAILABLE`] if it is not known.
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
    let what = icv.what;
    match (scope, handle) {
        (GLOBAL | ADDRESS_SPACE, Handle::Space) => of_process(space, what),
        (THREAD, Handle::Thread(_, key)) => {
            let aspect = if matches!(what, What::ThreadNum | What::Partition) { Aspect::Itself } else { Aspect::Task };
            space.ask(Subject::Thread(key), aspect, |view| of_thread(view, key, what))
        }
        (PARALLEL, Handle::Region(_, key)) => {
            space.ask(Subject::Region(key), Aspect::Itself, |view| of_region(view, key, what))
        }
        (TASK, Handle::Task(_, key)) => space.ask(Subject::Task(key), Aspect::Itself, |view| of_task(view, key, what)),
        (IMPLICIT_TASK, Handle::Task(_, key)) => space.ask(Subject::Task(key), Aspect::Itself, |view| {
            let implicit = view.task(key)?.1.kind.get().is_some_and(|kind| !kind.is_explicit());
            if implicit { of_task(view, key, what) } else { Err(Rc::INCOMPATIBLE.into()) }
        }),
        _ => Err(Rc::INCOMPATIBLE),
    }
}

fn known<T: Clone>(fact: &Fact<T>) -> Answer<T> {
    fact.value().cloned().ok_or(NoAnswer::NeedsMore(Rc::UNAVAILABLE))
}

fn of_process(space: &mut Space, what: What) -> Result<Value, Rc> {
    match what {
        What::Setting(name) => {
            let setting = space.setting(name)?;
            Ok(of_setting(&setting)?)
        }
        _ => Err(Rc::INCOMPATIBLE),
    }
}

fn of_setting(setting: &Setting) -> Answer<Value> {
    Ok(match known(&setting.value)? {
        SettingValue::Number(number) => Value::number(number),
        SettingValue::Flag(flag) => Value::number(flag),
        // LLVM's library has told of switches by number since there is OMPD.
        SettingValue::Word(word @ "enabled") => Value { text: word.to_owned(), ..Value::number(1) },
        SettingValue::Word(word @ "disabled") if setting.name != "target-offload-var" => {
            Value { text: word.to_owned(), ..Value::number(0) }
        }
        SettingValue::Word(word) => Value::text(word),
        SettingValue::Text(text) => Value::text(text),
    })
}

fn of_thread(view: View<'_>, key: ThreadKey, what: What) -> Answer<Value> {
    let thread = view.thread(key)?.1;
    match what {
        What::ThreadNum => known(&thread.thread_num).map(Value::number),
        What::Partition => partition(&thread.placement.partition),
        _ => of_executed(view, key.runtime, thread, what),
    }
}

/// Of the task that a thread executes. Lists are not read together with all else.
fn of_executed(view: View<'_>, runtime: RuntimeKey, thread: &Thread, what: What) -> Answer<Value> {
    let found = match what {
        What::Nthreads | What::Bind => of_icvs(&view.lists_of_thread(runtime, thread)?, what),
        _ => of_icvs(&thread.icvs, what),
    };
    found.or_else(|why| view.final_of(thread, why))
}

fn partition(partition: &Fact<Option<ompd_runtime::model::Partition>>) -> Answer<Value> {
    Ok(Value::text(known(partition)?.map_or_else(String::new, |places| places.to_string())))
}

fn of_region(view: View<'_>, key: RegionKey, what: What) -> Answer<Value> {
    if let RegionKey::Outermost(thread) = key {
        view.thread(thread)?;
        return match what {
            What::TeamSize => Ok(Value::number(1)),
            What::Levels | What::ActiveLevels => Ok(Value::number(0)),
            _ => Err(Rc::INCOMPATIBLE.into()),
        };
    }
    let team = view.team(key)?.2;
    match what {
        What::TeamSize => known(&team.size).map(Value::number),
        What::Levels => known(&team.level).map(Value::number),
        What::ActiveLevels => known(&team.active_level).map(Value::number),
        _ => Err(Rc::INCOMPATIBLE.into()),
    }
}

fn of_task(view: View<'_>, key: TaskKey, what: What) -> Answer<Value> {
    let task = view.task(key)?.1;
    let kind = |of: fn(TaskKind) -> bool| known(&task.kind).map(|kind| Value::number(of(kind)));
    match what {
        What::Final => known(&task.is_final).map(Value::number),
        What::Implicit => kind(|kind| !kind.is_explicit()),
        What::Explicit => kind(TaskKind::is_explicit),
        What::TeamSize | What::Levels | What::ActiveLevels => of_region(view, view.region_of(key)?, what),
        What::ThreadNum => number_of(view, key, task),
        What::Partition => partition(&view.executing(key)?.placement.partition),
        _ => match view.executing(key) {
            Ok(thread) => of_executed(view, key.runtime, thread, what),
            Err(_) => {
                let own = view.icvs_of(key)?;
                match what {
                    What::Nthreads | What::Bind => of_icvs(&view.lists_of_task(key, &own)?, what),
                    _ => of_icvs(&own, what),
                }
            }
        },
    }
}

/// The number of the thread that executes a task, in the team of the task.
fn number_of(view: View<'_>, key: TaskKey, task: &Task) -> Answer<Value> {
    match task.member {
        Some(member) => Ok(Value::number(member)),
        None => known(&view.executing(key)?.thread_num).map(Value::number),
    }
}

fn of_icvs(icvs: &Icvs, what: What) -> Answer<Value> {
    // What `omp_get_thread_limit` returns without a limit.
    let unlimited = i32::MAX;
    match what {
        What::Dynamic => known(&icvs.dynamic).map(Value::number),
        What::Nthreads => known(&icvs.nthreads).map(|own| Value::unsigned(own).of_list(&icvs.nthreads_list())),
        What::MaxActiveLevels => known(&icvs.max_active_levels).map(Value::unsigned),
        What::ThreadLimit => {
            known(&icvs.thread_limit).map(|limit| limit.map_or(Value::number(unlimited), Value::unsigned))
        }
        What::Bind => known(&icvs.bind)
            .map(|bind| Value { text: bind.to_string(), ..Value::number(bind.0) }.of_list(&icvs.bind_list())),
        What::Allocator => known(&icvs.def_allocator)
            .map(|allocator| Value { text: allocator.to_string(), ..Value::unsigned(allocator.0) }),
        What::DefaultDevice => known(&icvs.default_device).map(Value::number),
        What::Levels => known(&icvs.levels).map(Value::number),
        What::ActiveLevels => known(&icvs.active_levels).map(Value::number),
        What::Schedule => {
            let schedule = known(&icvs.schedule)?;
            let chunk = if schedule.chunk > 0 { String::new() } else { format!(",{}", schedule.chunk) };
            let text = format!("{schedule}{chunk}");
            // A kind, a chunk and a modifier are no number.
            Ok(Value::text(text))
        }
        _ => Err(Rc::INCOMPATIBLE.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_and_names_are_there_once() {
        for (n, icv) in ICVS.iter().enumerate() {
            assert!(icv.id > 0);
            assert!(ICVS[..n].iter().all(|other| other.id < icv.id && other.name != icv.name), "{}", icv.name);
        }
    }

    #[test]
    fn debuggers_of_openmp_5_0_meet_no_scope_they_do_not_know() {
        let known = [ADDRESS_SPACE, THREAD, PARALLEL, TASK];
        assert!(offered(V50).all(|icv| known.contains(&icv.scope(V50))));
        assert!(offered(V52).any(|icv| icv.scope(V52) == GLOBAL));
    }
}
