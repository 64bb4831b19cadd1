//! Phrases the views share.

use ompd_inspection::grounds::Memory;
use ompd_process::{Addr, machine};
use ompd_runtime::model::*;
use ompt_record::ompt;

use crate::escape::escape;
use crate::short;

/// `1 thread`, `4 threads`.
pub fn count(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

/// What a piece of memory is for (text of the target).
pub fn memory(memory: &Memory) -> String {
    match memory {
        Memory::Module { name, symbol: Some((symbol, 0)), .. } => format!("{symbol} of {name}"),
        Memory::Module { name, symbol: Some((symbol, offset)), .. } => format!("{symbol}+{offset:#x} of {name}"),
        Memory::Module { name, offset, symbol: None } => format!("{name}+{offset:#x}"),
        Memory::ThreadLocal(lwp) => format!("thread-local, LWP {lwp}"),
        Memory::Stack(lwp) => format!("stack of LWP {lwp}"),
        Memory::Other => "allocated memory".to_owned(),
    }
}

/// What to say of a runtime without threads: unused, unless its threads just could not be found.
pub fn no_threads(snapshot: &RuntimeSnapshot) -> &'static str {
    if snapshot.issues.is_empty() {
        "  loaded, but no living thread uses it"
    } else {
        "  its threads could not be found"
    }
}

/// `0-11,13`; the numbers have to be sorted.
pub fn ranges(numbers: &[u32]) -> String {
    let mut parts: Vec<(u32, u32)> = Vec::new();
    for &n in numbers {
        match parts.last_mut() {
            Some((_, last)) if n == last.saturating_add(1) => *last = n,
            Some((_, last)) if n == *last => {}
            _ => parts.push((n, n)),
        }
    }
    let part = |&(a, b): &(u32, u32)| if a == b { a.to_string() } else { format!("{a}-{b}") };
    parts.iter().map(part).collect::<Vec<_>>().join(",")
}

/// `, since a.c:8`: where the owner of a lock has acquired it, if that is recorded.
pub fn acquired(lock: &Lock) -> String {
    let Some(site) = &lock.acquired else { return String::new() };
    match &site.location {
        Some(line) => format!(", since {}", escape(&line.to_string())),
        None => format!(", since the call before {}", site.code),
    }
}

/// The value, or `?`.
pub fn or_unknown<T: std::fmt::Display>(fact: &Fact<T>) -> String {
    fact.value().map_or_else(|| "?".to_owned(), |v| v.to_string())
}

/// An index into a table of the report, `-` for none, `?` where not known.
pub fn reference(fact: &Fact<Option<usize>>) -> String {
    match fact {
        Fact::Known { value: Some(index), .. } => index.to_string(),
        Fact::Known { value: None, .. } => "-".to_owned(),
        Fact::Unknown { .. } => "?".to_owned(),
    }
}

/// The value with its origin in brackets when asked for.
pub fn with_origin<T: std::fmt::Display>(fact: &Fact<T>, verbose: bool) -> String {
    match fact.origin() {
        Some(origin) if verbose => format!("{} [{origin}]", or_unknown(fact)),
        _ => or_unknown(fact),
    }
}

/// The value with its origin, or the reason why it is not known.
pub fn at_length(fact: &Fact<String>) -> String {
    match fact {
        Fact::Known { value, origin } => format!("{value} [{origin}]"),
        Fact::Unknown { why } => format!("unknown: {}", escape(&why.to_string())),
    }
}

/// What a thread is doing, in a few words; `call` is the system call it is blocked in.
pub fn doing(thread: &Thread, call: Option<&str>) -> String {
    match &thread.wait {
        Fact::Known { value: Some(wait), .. } => waiting(wait),
        Fact::Known { value: None, .. } => thread.in_runtime.map_or_else(|| running(call), in_runtime),
        Fact::Unknown { why } => format!("unknown: {why}"),
    }
}

/// What a thread executes code of the runtime for, in a few words.
pub fn in_runtime(what: InRuntime) -> String {
    match what {
        InRuntime::Call(construct) => format!("in the runtime: {}", construct.word()),
        InRuntime::Task => "in the runtime: begins or ends a task".to_owned(),
    }
}

/// The name of a construct for a device by its number in `ompt_target_t`.
pub fn device_construct(number: u16) -> String {
    ompt::target(number).map_or_else(|| format!("kind {number}"), str::to_owned)
}

/// The name of an operation by its number in `ompt_target_data_op_t`.
pub fn data_operation(number: u16) -> String {
    ompt::target_data_op(number).map_or_else(|| format!("operation {number}"), str::to_owned)
}

/// What a thread has begun on a device and not ended: `in target on device 0 (app.c:12), kernel of 1 team`.
pub fn on_device(of: &OnDevice) -> String {
    let line = |called: &Option<Site>| {
        let line = called.as_ref().and_then(|called| called.location.as_ref());
        line.map(|line| format!(" ({})", escape(&line.to_string()))).unwrap_or_default()
    };
    let construct = of.construct.as_ref().map(|construct| {
        let name = match device_construct(construct.kind).replace('_', " ") {
            name if construct.kind == TARGET_NOWAIT => format!("target {name}"),
            name if name.starts_with("target") || name.starts_with("kind") => name,
            name => format!("target {name}"),
        };
        format!("in {name} on device {}{}", construct.device, line(&construct.called))
    });
    let operation = of.operation.as_ref().map(|operation| {
        let what = match operation.kind {
            DeviceOperationKind::Submit { teams: 1 } => "kernel of 1 team".to_owned(),
            DeviceOperationKind::Submit { teams } => format!("kernel of {teams} teams"),
            DeviceOperationKind::Data { number, bytes } => {
                let bytes = bytes.map_or_else(|| "4 GiB or more".to_owned(), |bytes| format!("{bytes} bytes"));
                format!("{} of {bytes}", data_operation(number).replace('_', " "))
            }
        };
        // Within a construct it mostly has the line of that.
        let own = of.construct.is_none();
        if own { format!("{what}{}", line(&operation.called)) } else { what }
    });
    construct.into_iter().chain(operation).collect::<Vec<_>>().join(", ")
}

/// `ompt_target_nowait`.
const TARGET_NOWAIT: u16 = 9;

/// What a thread does that waits for nothing of a runtime's; `call` is the system call it is blocked in.
pub fn running(call: Option<&str>) -> String {
    match call {
        Some(call) => format!("in system call {call}"),
        None => "running".to_owned(),
    }
}

/// What a thread waits for, in a few words.
pub fn waiting(wait: &Wait) -> String {
    let mut text = match wait.kind {
        WaitKind::Pool => return "idle: waits for the next region".to_owned(),
        WaitKind::Barrier => format!("waits at {}", barrier(wait)),
        WaitKind::RegionEnd => "waits at the end of the region".to_owned(),
        WaitKind::RegionStart if wait.over.get() == Some(true) => "is about to begin the region".to_owned(),
        WaitKind::RegionStart => "waits for the other threads of its team to start a region".to_owned(),
        WaitKind::Dependences => "waits for the tasks it depends on".to_owned(),
        WaitKind::Event => "waits for the event of its task".to_owned(),
        WaitKind::BarrierTasks => format!("waits for tasks to finish at {}", barrier(wait)),
        WaitKind::Taskwait => "waits in taskwait".to_owned(),
        WaitKind::Taskgroup => "waits at the end of a taskgroup".to_owned(),
        WaitKind::TaskwaitOrTaskgroup => "waits in taskwait or at the end of a taskgroup".to_owned(),
        WaitKind::Ordered => "waits for its turn in ordered".to_owned(),
        WaitKind::Sink => "waits in ordered depend(sink)".to_owned(),
        kind => match &wait.name {
            // The name of a critical already says that it is one.
            Some(name) if kind == WaitKind::Critical || kind == WaitKind::Atomic => {
                format!("waits for {}", escape(name))
            }
            // Criticals are named as such: what else has a name is a variable of the program.
            Some(name) if kind == WaitKind::Mutex => format!("waits for lock {}", escape(name)),
            Some(name) => format!("waits for {} {}", kind.word(), escape(name)),
            None => format!("waits for {} at {}", kind.word(), wait.object),
        },
    };
    if let Some(line) = &wait.location {
        text.push_str(&format!(" ({})", escape(&line.to_string())));
    }
    text
}

/// What several threads do, of what one does.
pub fn plural(doing: &str) -> String {
    match doing.strip_prefix("waits ") {
        Some(rest) => {
            format!("wait {}", rest.replacen(" its ", " their ", 1).replacen(" it depends", " they depend", 1))
        }
        None => doing.strip_prefix("is ").map_or_else(|| doing.to_owned(), |rest| format!("are {rest}")),
    }
}

/// What kind of lock it is, as far as it is known.
pub fn lock_kind(lock: &Lock) -> &'static str {
    match (lock.kind.get(), &lock.name) {
        (Some(kind), _) => kind.word(),
        // Criticals are named as such: what else has a name is a variable of the program.
        (None, Some(_)) => "lock",
        (None, None) => "lock or critical",
    }
}

/// `an explicit barrier`, `the implicit barrier of a loop`.
fn barrier(wait: &Wait) -> &'static str {
    match wait.barrier.as_ref().and_then(Fact::get) {
        Some(BarrierKind::Explicit) => "an explicit barrier",
        Some(BarrierKind::Loop) => "the implicit barrier of a loop",
        Some(BarrierKind::Sections) => "the implicit barrier of sections",
        Some(BarrierKind::Single) => "the implicit barrier of a single",
        Some(BarrierKind::Workshare) => "the implicit barrier of a workshare",
        Some(BarrierKind::LoopOrUnspecified) => "an implicit barrier, of a loop or unspecified",
        Some(BarrierKind::Implicit) => "an implicit barrier",
        None => "a barrier",
    }
}

/// A region or task by what is known of its code: function and source line. For a function that a compiler made of the body
/// of a construct, that which contains the construct.
pub fn code(function: &Fact<CodeRef>, location: &Fact<SourceLine>) -> Option<String> {
    let recorded = location.value().map(|l| l.function.as_str()).filter(|name| !name.is_empty());
    let name = function.value().map(|f| {
        let name = f.name.clone().unwrap_or_else(|| f.addr.to_string());
        match ompd_stack::container(&name) {
            Some(container) => recorded.or(container).map_or_else(|| name.clone(), str::to_owned),
            None => name,
        }
    });
    let name = name.map(|name| short::name(&name));
    let line = location.value().map(|l| l.to_string());
    match (name, line) {
        (Some(name), Some(line)) => Some(escape(&format!("{name} ({line})"))),
        (Some(one), None) | (None, Some(one)) => Some(escape(&one)),
        (None, None) => None,
    }
}

/// `a`, `a or b`, `a, b or c`.
pub fn or(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [others @ .., last] => format!("{} or {last}", others.join(", ")),
    }
}

/// `a`, `a and b`, `a, b and c`.
pub fn and(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [one] => one.clone(),
        [others @ .., last] => format!("{} and {last}", others.join(", ")),
    }
}

/// The region a team executes: its construct where that is known, and where it stands.
pub fn region(team: &Team) -> Option<String> {
    let code = code(&team.function, &team.location)?;
    let name = team.function.value().and_then(|f| f.name.as_deref());
    // An ordinary function was given to the runtime as it is: it does not contain the construct.
    let given = name.is_some_and(|name| ompd_stack::container(name).is_none() && !name.contains('+'));
    Some(match team.construct.get() {
        Some(construct) if given => format!("{}, executes {code}", construct.word()),
        Some(construct) => format!("{} in {code}", construct.word()),
        None => code,
    })
}

/// `in: x`, with the address where no symbol covers the storage.
pub fn dependence(dependence: &Dependence) -> String {
    let kind = match dependence.kind.get() {
        // Compilers tell runtimes of both alike.
        Some(DependKind::InOut) => "out/inout",
        Some(kind) => kind.word(),
        None => "depend",
    };
    let name = match &dependence.name {
        Some(name) => escape(name),
        None if dependence.addr.is_null() => "omp_all_memory".to_owned(),
        None => dependence.addr.to_string(),
    };
    format!("{kind}: {name}")
}

/// `signal 6 (SIGABRT)`.
pub fn signal(number: i32) -> String {
    match u32::try_from(number).ok().and_then(machine::signal_name) {
        Some(name) => format!("signal {number} ({name})"),
        None => format!("signal {number}"),
    }
}

/// `SIGALRM`, or its number where it has no name.
pub fn signal_name(number: u32) -> String {
    machine::signal_name(number).map_or_else(|| format!("signal {number}"), str::to_owned)
}

/// An iteration of a doacross loop: `5`, or `(1, 3)` in nested loops.
pub fn iteration(counters: &[u64]) -> String {
    let all: Vec<String> = counters.iter().map(u64::to_string).collect();
    if let [one] = &all[..] { one.clone() } else { format!("({})", all.join(", ")) }
}

/// A short name that tells each runtime of a process from the others: its file name, or its whole path if file names are equal.
pub fn runtime_names(runtimes: &[RuntimeSnapshot]) -> Vec<(Addr, String)> {
    let file = |r: &RuntimeSnapshot| r.instance.path.rsplit('/').next().unwrap_or_default().to_owned();
    let files: Vec<String> = runtimes.iter().map(file).collect();
    let name = |(runtime, name): (&RuntimeSnapshot, &String)| {
        let alone = files.iter().filter(|other| *other == name).count() == 1;
        (runtime.instance.base, escape(if alone { name } else { &runtime.instance.path }))
    };
    runtimes.iter().zip(&files).map(name).collect()
}

#[cfg(test)]
mod tests {
    use ompd_runtime::Origin;

    use super::*;

    #[test]
    fn worker_that_was_let_in_is_about_to_begin_and_another_one_waits() {
        let wait = |over| Wait { over, ..Wait::new(WaitKind::RegionStart, Addr(1), Origin::Dwarf) };
        let let_in = waiting(&wait(Fact::known(true, Origin::Dwarf)));
        assert_eq!(
            (let_in.as_str(), plural(&let_in).as_str()),
            ("is about to begin the region", "are about to begin the region")
        );
        let other = waiting(&wait(Fact::known(false, Origin::Dwarf)));
        assert_eq!(plural(&other), "wait for the other threads of their team to start a region");
    }

    #[test]
    fn what_a_thread_does_on_a_device_names_construct_device_and_operation() {
        let called = || {
            let line = SourceLine { file: "/src/app.c".to_owned(), function: "f".to_owned(), line: 12 };
            Some(Site { code: Addr(1), location: Some(line) })
        };
        let told = |construct: Option<(u16, i32)>, operation: Option<DeviceOperationKind>| {
            let construct = construct.map(|(kind, device)| DeviceConstruct { kind, device, called: called() });
            let operation = operation.map(|kind| DeviceOperation { kind, called: called() });
            on_device(&OnDevice { construct, operation })
        };
        let data = |number, bytes| Some(DeviceOperationKind::Data { number, bytes });
        assert_eq!(told(Some((1, 0)), None), "in target on device 0 (app.c:12)");
        assert_eq!(told(Some((9, 2)), None), "in target nowait on device 2 (app.c:12)");
        assert_eq!(
            told(Some((2, -1)), data(1, Some(8))),
            "in target enter data on device -1 (app.c:12), alloc of 8 bytes"
        );
        let kernel = Some(DeviceOperationKind::Submit { teams: 4 });
        assert_eq!(told(Some((1, 0)), kernel), "in target on device 0 (app.c:12), kernel of 4 teams");
        assert_eq!(told(None, data(2, None)), "transfer to device of 4 GiB or more (app.c:12)");
        // Numbers that are not known.
        assert_eq!(
            told(Some((99, 0)), data(98, Some(0))),
            "in kind 99 on device 0 (app.c:12), operation 98 of 0 bytes"
        );
    }

    #[test]
    fn every_wait_has_its_words() {
        let wait = |kind| waiting(&Wait::new(kind, Addr(0x40), Origin::Dwarf));
        let cases = [
            (WaitKind::Pool, "idle: waits for the next region", "idle: waits for the next region"),
            (WaitKind::Barrier, "waits at a barrier", "wait at a barrier"),
            (WaitKind::RegionEnd, "waits at the end of the region", "wait at the end of the region"),
            (WaitKind::Dependences, "waits for the tasks it depends on", "wait for the tasks they depend on"),
            (WaitKind::Event, "waits for the event of its task", "wait for the event of their task"),
            (WaitKind::BarrierTasks, "waits for tasks to finish at a barrier", "wait for tasks to finish at a barrier"),
            (WaitKind::Taskwait, "waits in taskwait", "wait in taskwait"),
            (WaitKind::Taskgroup, "waits at the end of a taskgroup", "wait at the end of a taskgroup"),
            (
                WaitKind::TaskwaitOrTaskgroup,
                "waits in taskwait or at the end of a taskgroup",
                "wait in taskwait or at the end of a taskgroup",
            ),
            (WaitKind::Ordered, "waits for its turn in ordered", "wait for their turn in ordered"),
            (WaitKind::Sink, "waits in ordered depend(sink)", "wait in ordered depend(sink)"),
            (WaitKind::Lock, "waits for lock at 0x40", "wait for lock at 0x40"),
        ];
        for (kind, one, several) in cases {
            assert_eq!((wait(kind).as_str(), plural(&wait(kind)).as_str()), (one, several));
        }
        let line = SourceLine { file: "/src/a\n.c".to_owned(), function: "f".to_owned(), line: 9 };
        let named = |kind, name: &str| {
            let wait = Wait::new(kind, Addr(0x40), Origin::Dwarf);
            waiting(&Wait { name: Some(name.to_owned()), location: Some(line.clone()), ..wait })
        };
        assert_eq!(named(WaitKind::Critical, "critical (a)"), "waits for critical (a) (a\\n.c:9)");
        assert_eq!(named(WaitKind::Atomic, "atomic"), "waits for atomic (a\\n.c:9)");
        assert_eq!(named(WaitKind::Mutex, "queue\n"), "waits for lock queue\\n (a\\n.c:9)");
        assert_eq!(named(WaitKind::Taskwait, "queue"), "waits in taskwait (a\\n.c:9)");
        assert_eq!((plural("running"), plural("is idle")), ("running".to_owned(), "are idle".to_owned()));
    }

    #[test]
    fn every_kind_of_barrier_has_its_words() {
        let cases = [
            (BarrierKind::Explicit, "an explicit barrier"),
            (BarrierKind::Loop, "the implicit barrier of a loop"),
            (BarrierKind::Sections, "the implicit barrier of sections"),
            (BarrierKind::Single, "the implicit barrier of a single"),
            (BarrierKind::Workshare, "the implicit barrier of a workshare"),
            (BarrierKind::LoopOrUnspecified, "an implicit barrier, of a loop or unspecified"),
            (BarrierKind::Implicit, "an implicit barrier"),
        ];
        for (kind, text) in cases {
            let wait = Wait::new(WaitKind::Barrier, Addr(1), Origin::Dwarf);
            let wait = Wait { barrier: Some(Fact::known(kind, Origin::Dwarf)), ..wait };
            assert_eq!(waiting(&wait), format!("waits at {text}"));
        }
    }

    #[test]
    fn memory_is_named_by_the_nearest_symbol() {
        let module = |symbol: Option<(&str, u64)>| {
            let symbol = symbol.map(|(name, offset)| (name.to_owned(), offset));
            memory(&Memory::Module { name: "app".to_owned(), offset: 0x20, symbol })
        };
        assert_eq!(module(Some(("queue", 0))), "queue of app");
        assert_eq!(module(Some(("queue", 8))), "queue+0x8 of app");
        assert_eq!(module(None), "app+0x20");
        assert_eq!(memory(&Memory::ThreadLocal(7)), "thread-local, LWP 7");
        assert_eq!(memory(&Memory::Stack(7)), "stack of LWP 7");
        assert_eq!(memory(&Memory::Other), "allocated memory");
    }

    #[test]
    fn unknown_values_are_question_marks_or_reasons() {
        let known = Fact::known("7".to_owned(), Origin::Dwarf);
        let unknown: Fact<String> = Fact::unknown(Common::NotRecordedByRuntime);
        assert_eq!((or_unknown(&known), or_unknown(&unknown)), ("7".to_owned(), "?".to_owned()));
        let index = |value: Option<usize>| reference(&Fact::known(value, Origin::Dwarf));
        assert_eq!((index(Some(3)), index(None)), ("3".to_owned(), "-".to_owned()));
        assert_eq!(reference(&Fact::unknown(Common::NotRecordedByRuntime)), "?");
        assert_eq!([with_origin(&known, true), with_origin(&known, false)], ["7 [dwarf]", "7"]);
        assert_eq!((with_origin(&unknown, true).as_str(), at_length(&known).as_str()), ("?", "7 [dwarf]"));
        assert_eq!(at_length(&unknown), format!("unknown: {}", Common::NotRecordedByRuntime));
    }

    #[test]
    fn lists_and_iterations_read_as_people_write_them() {
        assert_eq!([or(&[]), or(&["a"]), or(&["a", "b"]), or(&["a", "b", "c"])], ["", "a", "a or b", "a, b or c"]);
        let joined = |names: &[&str]| and(&names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>());
        assert_eq!([joined(&[]), joined(&["a"]), joined(&["a", "b", "c"])], ["", "a", "a, b and c"]);
        assert_eq!((iteration(&[5]), iteration(&[1, 3])), ("5".to_owned(), "(1, 3)".to_owned()));
        assert_eq!((count(0, "thread"), count(1, "thread")), ("0 threads".to_owned(), "1 thread".to_owned()));
        assert_eq!((signal(6), signal(-1)), ("signal 6 (SIGABRT)".to_owned(), "signal -1".to_owned()));
        assert_eq!((signal_name(14), signal_name(9999)), ("SIGALRM".to_owned(), "signal 9999".to_owned()));
        assert_eq!(running(Some("read")), "in system call read");
        assert_eq!(in_runtime(InRuntime::Task), "in the runtime: begins or ends a task");
    }

    #[test]
    fn numbers_are_folded() {
        assert_eq!(ranges(&[]), "");
        assert_eq!(ranges(&[7]), "7");
        assert_eq!(ranges(&[0, 1, 2, 3, 5, 8, 9]), "0-3,5,8-9");
        assert_eq!(ranges(&[1, 1, 2, 4, 4]), "1-2,4");
        assert_eq!(ranges(&[u32::MAX - 1, u32::MAX]), "4294967294-4294967295");
    }

    #[test]
    fn a_name_from_the_target_cannot_command_the_terminal() {
        let wait = Wait {
            name: Some("\u{1b}[2J".to_owned()),
            ..Wait::new(WaitKind::Mutex, ompd_process::Addr(0x1000), ompd_runtime::Origin::Registers)
        };
        assert_eq!(waiting(&wait), "waits for lock \\u{1b}[2J");
    }
}
