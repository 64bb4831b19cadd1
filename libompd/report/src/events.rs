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
    use super::*;

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

    #[test]
    fn counters_of_iterations_are_numbers_and_variables_addresses() {
        let told = |event: Event| words(&event, &HashMap::new());
        let sink = Event { kind: 18, sub: 6, task: 4, other: 17, ..Event::default() };
        assert_eq!(told(sink), "task 4: sink, counter 17");
        assert_eq!(told(Event { sub: 5, ..sink }), "task 4: source, counter 17");
        assert_eq!(told(Event { sub: 1, ..sink }), "task 4 depends: in 0x11");
    }
}
