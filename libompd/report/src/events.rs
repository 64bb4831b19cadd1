//! Events of a history in words: the same in tables, traces and JSON.

use std::collections::HashMap;

use ompd_inspection::history::History;
use ompt_record::event::{Event, NOT_TOLD};
use ompt_record::ompt;

use crate::escape::escape;

/// Where a return address is: `function (file:line)`, or what is known of it.
pub fn place(history: &History, address: u64) -> String {
    if address == 0 {
        return String::new();
    }
    let Some(place) = history.places.get(&address) else { return format!("{address:#x}") };
    let source = place.file.as_deref().zip(place.line).map(|(file, line)| {
        let file = file.rsplit('/').next().unwrap_or(file);
        format!("{}:{line}", escape(file))
    });
    match (&place.function, source, &place.module, place.offset) {
        (Some(function), Some(source), ..) => format!("{} ({source})", escape(function)),
        (Some(function), None, Some(module), _) => format!("{} in {}", escape(function), escape(module)),
        (None, Some(source), ..) => source,
        (_, _, Some(module), Some(offset)) => format!("{}+{offset:#x}", escape(module)),
        _ => format!("{address:#x}"),
    }
}

/// A time span in the largest unit that has it above one.
pub fn span(nanoseconds: u128) -> String {
    let ns = nanoseconds as f64;
    match nanoseconds {
        0 => "0".to_owned(),
        1..1_000 => format!("{nanoseconds} ns"),
        1_000..1_000_000 => format!("{:.1} µs", ns / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} ms", ns / 1e6),
        _ => format!("{:.1} s", ns / 1e9),
    }
}

/// What sort of thread it is.
pub fn kind(number: u64) -> &'static str {
    u16::try_from(number).ok().and_then(ompt::thread).unwrap_or("of unknown type")
}

/// An event in a few words; `names` says what the program calls locks and variables.
pub fn words(event: &Event, names: &HashMap<u64, String>) -> String {
    let Event { sub, flags, region, task, other, .. } = *event;
    let variable = || names.get(&other).map_or_else(|| format!("{other:#x}"), |name| escape(name));
    let named = |name: Option<&str>, otherwise: &str| {
        name.map_or_else(|| format!("{otherwise} {sub}"), |n| n.replace('_', " "))
    };
    let begins = |what: String| match event.endpoint {
        1 => format!("{what} begins"),
        2 => format!("{what} ends"),
        _ => what,
    };
    match event.kind {
        1 => "thread begins".to_owned(),
        2 => "thread ends".to_owned(),
        3 => format!("opens region {region} for {other} threads, from task {task}"),
        4 => format!("region {region} is over, back in task {task}"),
        5 => {
            let kinds = ompt::task_flags(flags).join(" ");
            let dependences = if sub == 1 { ", with dependences" } else { "" };
            format!("creates task {task} ({kinds}{dependences}), from task {other}")
        }
        6 => {
            // Older runtimes tell no status of a task that is put aside.
            let status = if sub == 0 { "switch" } else { &named(ompt::task_status(sub), "status") };
            if other == 0 {
                format!("task {task}: {status}")
            } else {
                format!("task {task}: {status}; continues with task {other}")
            }
        }
        7 => {
            let initial = if sub & 1 != 0 { "initial task" } else { "implicit task" };
            let place = match (event.endpoint, sub & 1 != 0) {
                (1, false) if flags == NOT_TOLD => format!(" in region {region}"),
                (1, false) => format!(", thread {flags} of {other} in region {region}"),
                _ => String::new(),
            };
            format!("{}{place}", begins(format!("{initial} {task}")))
        }
        16 => match event.endpoint {
            1 => format!("waits at {}", named(ompt::sync_region(sub), "synchronisation")),
            _ => format!("continues after {}", named(ompt::sync_region(sub), "synchronisation")),
        },
        23 => begins(named(ompt::sync_region(sub), "synchronisation")),
        31 => begins("reduction".to_owned()),
        17 => format!("lets go of {} {}", named(ompt::mutex(sub), "mutex"), variable()),
        24 => format!("initialises {} {}", named(ompt::mutex(sub), "mutex"), variable()),
        25 => format!("destroys {} {}", named(ompt::mutex(sub), "mutex"), variable()),
        26 => format!("wants {} {}", named(ompt::mutex(sub), "mutex"), variable()),
        27 => format!("has {} {}", named(ompt::mutex(sub), "mutex"), variable()),
        28 => match event.endpoint {
            1 => format!("has nest lock {} once more", variable()),
            _ => format!("has nest lock {} once less", variable()),
        },
        // Iterations of a doacross loop: an event for each counter.
        18 if matches!(sub, 5 | 6) => format!("task {task}: {}, counter {other}", named(ompt::dependence(sub), "type")),
        18 => format!("task {task} depends: {} {}", named(ompt::dependence(sub), "type"), variable()),
        19 => format!("task {other} waits for task {task}"),
        20 => {
            let what = named(ompt::work(sub), "work");
            let told = event.endpoint == 1 && other > 1 && other != u64::from(NOT_TOLD);
            let count = if told { format!(", {other} iterations") } else { String::new() };
            format!("{}{count}", begins(what))
        }
        21 => begins("masked".to_owned()),
        32 => format!("takes {}: {other:#x}", named(ompt::dispatch(sub), "piece")),
        29 => "flush".to_owned(),
        30 => format!("cancel: {}", ompt::cancel_flags(flags).join(" ").replace('_', " ")),
        11 => match ompt::command(flags.into()) {
            Some(command) => format!("the program tells the tool: {command}"),
            None => format!("the program tells the tool: command {}", flags.cast_signed()),
        },
        8 | 33 => begins(format!("target: {} on device {}", named(ompt::target(sub), "kind"), flags.cast_signed())),
        9 | 34 => {
            // An event has room for no more than that.
            let bytes = if flags == u32::MAX { "4 GiB or more".to_owned() } else { format!("{flags} bytes") };
            begins(format!("{}, {bytes}, operation {task}", named(ompt::target_data_op(sub), "data operation")))
        }
        10 | 35 => begins(format!("kernel is submitted, {flags} teams, operation {task}")),
        12 => format!("device {} is initialised", flags.cast_signed()),
        13 => format!("device {} is finalised", flags.cast_signed()),
        14 => format!("code is loaded on device {}", flags.cast_signed()),
        15 => format!("code is unloaded from device {}", flags.cast_signed()),
        22 | 36 => format!("maps {flags} items"),
        37 => format!("error directive: {}", named(ompt::severity(sub), "severity")),
        other => match ompt::callback(other) {
            Some(callback) => callback.name.replace('_', " "),
            None => format!("event {other}"),
        },
    }
}

#[cfg(test)]
mod tests {
    use ompd_stack::CodePlace;

    use super::*;
    use crate::samples::history;

    #[test]
    fn numbers_that_were_not_told_are_not_shown() {
        let told = |event: Event| words(&event, &HashMap::new());
        let task = Event { kind: 7, endpoint: 1, sub: 2, region: 3, task: 4, flags: NOT_TOLD, ..Event::default() };
        assert_eq!(told(task), "implicit task 4 begins in region 3");
        assert_eq!(told(Event { flags: 1, other: 2, ..task }), "implicit task 4 begins, thread 1 of 2 in region 3");
        let work = Event { kind: 20, endpoint: 1, sub: 1, other: NOT_TOLD.into(), ..Event::default() };
        assert_eq!(told(work), "loop begins");
        assert_eq!(told(Event { other: 6, ..work }), "loop begins, 6 iterations");
        let switch = Event { kind: 6, task: 1, other: 2, ..Event::default() };
        assert_eq!(told(switch), "task 1: switch; continues with task 2");
    }

    /// The numbers are those of OpenMP 5.2, section 19.4.4.
    #[test]
    fn every_callback_has_its_words() {
        const LOCK: u64 = 64;
        let names = HashMap::from([(LOCK, "queue.\u{1b}lock".to_owned())]);
        let event = Event { flags: 4, region: 5, task: 6, other: LOCK, ..Event::default() };
        let cases = [
            ((1, 0, 0), "thread begins"),
            ((2, 0, 0), "thread ends"),
            ((3, 0, 0), "opens region 5 for 64 threads, from task 6"),
            ((4, 0, 0), "region 5 is over, back in task 6"),
            ((5, 0, 0), "creates task 6 (explicit), from task 64"),
            ((5, 0, 1), "creates task 6 (explicit, with dependences), from task 64"),
            ((6, 0, 5), "task 6: early fulfill; continues with task 64"),
            ((7, 1, 1), "initial task 6 begins"),
            ((7, 2, 2), "implicit task 6 ends"),
            ((8, 1, 1), "target: target on device 4 begins"),
            ((33, 2, 10), "target: enter data nowait on device 4 ends"),
            ((9, 1, 2), "transfer to device, 4 bytes, operation 6 begins"),
            ((34, 2, 99), "data operation 99, 4 bytes, operation 6 ends"),
            ((10, 1, 0), "kernel is submitted, 4 teams, operation 6 begins"),
            ((35, 3, 0), "kernel is submitted, 4 teams, operation 6"),
            ((11, 0, 0), "the program tells the tool: end"),
            ((12, 0, 0), "device 4 is initialised"),
            ((13, 0, 0), "device 4 is finalised"),
            ((14, 0, 0), "code is loaded on device 4"),
            ((15, 0, 0), "code is unloaded from device 4"),
            ((16, 1, 5), "waits at taskwait"),
            ((16, 2, 3), "continues after barrier explicit"),
            ((16, 1, 99), "waits at synchronisation 99"),
            ((16, 2, 99), "continues after synchronisation 99"),
            ((17, 0, 1), "lets go of lock queue.\\u{1b}lock"),
            ((18, 0, 2), "task 6 depends: out queue.\\u{1b}lock"),
            ((18, 0, 99), "task 6 depends: type 99 queue.\\u{1b}lock"),
            ((19, 0, 0), "task 64 waits for task 6"),
            ((20, 1, 10), "loop static begins, 64 iterations"),
            ((20, 2, 2), "sections ends"),
            ((20, 2, 99), "work 99 ends"),
            ((21, 1, 0), "masked begins"),
            ((22, 0, 0), "maps 4 items"),
            ((36, 0, 0), "maps 4 items"),
            ((23, 1, 6), "taskgroup begins"),
            ((23, 2, 99), "synchronisation 99 ends"),
            ((24, 0, 3), "initialises nest lock queue.\\u{1b}lock"),
            ((25, 0, 99), "destroys mutex 99 queue.\\u{1b}lock"),
            ((26, 0, 5), "wants critical queue.\\u{1b}lock"),
            ((27, 0, 7), "has ordered queue.\\u{1b}lock"),
            ((28, 1, 0), "has nest lock queue.\\u{1b}lock once more"),
            ((28, 2, 0), "has nest lock queue.\\u{1b}lock once less"),
            ((29, 0, 0), "flush"),
            ((30, 0, 0), "cancel: loop"),
            ((31, 1, 0), "reduction begins"),
            ((31, 3, 0), "reduction"),
            ((32, 0, 3), "takes ws loop chunk: 0x40"),
            ((32, 0, 99), "takes piece 99: 0x40"),
            ((37, 0, 2), "error directive: fatal"),
            ((200, 0, 0), "event 200"),
        ];
        for ((kind, endpoint, sub), text) in cases {
            assert_eq!(words(&Event { kind, endpoint, sub, ..event }, &names), text);
        }
        let told = |event: Event| words(&event, &HashMap::new());
        assert_eq!(told(Event { kind: 6, sub: 1, other: 0, ..event }), "task 6: complete");
        assert_eq!(
            told(Event { kind: 20, endpoint: 1, sub: 7, other: 1, ..event }),
            "taskloop begins",
            "one iteration or unknown"
        );
        assert_eq!(told(Event { kind: 27, sub: 2, ..event }), "has test lock 0x40");
        assert_eq!(told(Event { kind: 11, flags: 64, ..event }), "the program tells the tool: command 64");
        assert_eq!(told(Event { kind: 30, flags: 0x50, ..event }), "cancel: activated discarded task");
        let flags = Event { kind: 5, flags: 0x0c00_0004, ..event };
        assert_eq!(told(flags), "creates task 6 (explicit exporting undeferred), from task 64");
        let unnamed = [(6, "task 6: status 99; continues with task 64"), (8, "target: kind 99 on device 4")];
        let unnamed = unnamed.into_iter().chain([
            (17, "lets go of mutex 99 0x40"),
            (24, "initialises mutex 99 0x40"),
            (26, "wants mutex 99 0x40"),
            (27, "has mutex 99 0x40"),
            (37, "error directive: severity 99"),
        ]);
        for (kind, text) in unnamed {
            assert_eq!(told(Event { kind, sub: 99, ..event }), text);
        }
        assert_eq!(told(Event { kind: 20, endpoint: 1, sub: 7, other: 2, ..event }), "taskloop begins, 2 iterations");
        // The host is device -1, and a size of 4 GiB or more does not fit.
        let host = Event { flags: u32::MAX, ..event };
        assert_eq!(told(Event { kind: 12, ..host }), "device -1 is initialised");
        assert_eq!(told(Event { kind: 9, sub: 1, ..host }), "alloc, 4 GiB or more, operation 6");
    }

    #[test]
    fn time_spans_have_the_largest_unit_above_one() {
        let cases = [(0, "0"), (1, "1 ns"), (999, "999 ns"), (1_000, "1.0 µs"), (1_000_000, "1.0 ms")];
        for (nanoseconds, text) in cases.into_iter().chain([(1_000_000_000, "1.0 s"), (90_500_000_000, "90.5 s")]) {
            assert_eq!(span(nanoseconds), text);
        }
    }

    #[test]
    fn threads_of_unknown_types_are_said_to_be_such() {
        assert_eq!((kind(1), kind(2), kind(99)), ("initial", "worker", "of unknown type"));
        // 1 in its lowest 16 bits.
        assert_eq!(kind(0x1_0001), "of unknown type");
    }

    #[test]
    fn place_is_shown_by_what_is_known_of_it() {
        let place = |function: Option<&str>, file: Option<&str>, module: Option<&str>, offset| {
            let code = CodePlace {
                function: function.map(Into::into),
                file: file.map(Into::into),
                line: Some(8),
                module: module.map(Into::into),
                offset,
            };
            super::place(&History { places: HashMap::from([(0x1000, code)]), ..history() }, 0x1000)
        };
        assert_eq!(place(Some("solve"), Some("/src/a\n.c"), Some("app"), Some(16)), "solve (a\\n.c:8)");
        assert_eq!(place(Some("solve"), None, Some("app"), Some(16)), "solve in app");
        assert_eq!(place(None, Some("a.c"), Some("app"), Some(16)), "a.c:8");
        assert_eq!(place(None, None, Some("app"), Some(16)), "app+0x10");
        assert_eq!(place(None, None, Some("app"), None), "0x1000");
        let unknown = history();
        assert_eq!((super::place(&unknown, 0), super::place(&unknown, 0x1000)), (String::new(), "0x1000".to_owned()));
    }

    #[test]
    fn counters_of_iterations_are_numbers_and_variables_addresses() {
        let told = |event: Event| words(&event, &HashMap::new());
        let sink = Event { kind: 18, sub: 6, task: 4, other: 17, ..Event::default() };
        assert_eq!(told(sink), "task 4: sink, counter 17");
        assert_eq!(told(Event { sub: 5, ..sink }), "task 4: source, counter 17");
        assert_eq!(told(Event { sub: 1, ..sink }), "task 4 depends: in 0x11");
    }
}
