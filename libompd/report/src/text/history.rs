//! What threads did last.

use std::collections::HashMap;

use ompt_record::block::State;
use ompt_record::event::Event;
use ompt_record::ompt;

use super::{FAINT, HEADING, Page, devices};
use crate::escape::escape;
use crate::words::count;
use ompd_inspection::history::{History, ThreadHistory};

/// How to show it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HistoryView {
    /// Thread by thread.
    ByThread,
    /// All threads together, in the order of time.
    ByTime,
}

/// Renders a history, for a terminal of this width, with colours as terminals take them.
pub fn render(history: &History, view: HistoryView, width: Option<u16>) -> String {
    let mut page = Page::empty(width);
    head(&mut page, history);
    let newest = history.newest().unwrap_or(0);
    match view {
        HistoryView::ByThread => {
            for thread in &history.threads {
                page.blank();
                title(&mut page, thread);
                let rows = thread.events.iter().map(|event| row(history, newest, None, event)).collect();
                page.table(&["ago", "event", "where"], rows);
            }
        }
        HistoryView::ByTime => {
            page.blank();
            let all = history.by_time();
            let rows = all.iter().map(|(thread, event)| row(history, newest, Some(thread), event)).collect();
            page.table(&["ago", "thread", "event", "where"], rows);
        }
    }
    for device in &history.devices {
        page.blank();
        devices::write(&mut page, history, device);
    }
    for issue in &history.issues {
        page.blank();
        page.wrapped("Incomplete: ", HEADING, issue, 4);
    }
    page.out
}

fn head(page: &mut Page, history: &History) {
    let threads = count(history.threads.len(), "thread");
    let state = match history.state {
        State::Recording => "it goes on recording",
        State::Paused => "it was paused",
        State::Ended => "it has ended",
    };
    let forked = if history.forks > 0 { ", a child of the process that began it" } else { "" };
    let text = format!(
        "history of {threads} by the OMPT companion; {state}{forked}. Runtime: {}",
        escape(if history.runtime.is_empty() { "not named" } else { &history.runtime })
    );
    page.wrapped(&format!("Process {}: ", history.pid), HEADING, &text, 4);
    if let Some((command, count)) = history.command {
        let name = ompt::command(command).map_or_else(|| format!("command {}", command.cast_signed()), str::to_owned);
        let times = if count > 1 { format!(", the last of {count} commands") } else { String::new() };
        page.line(format_args!("The program told it: {name}{times}."));
    }
    let Some(newest) = history.newest() else {
        page.line("There are no events.");
        return;
    };
    let ago = history.now.zip(history.time_of_day(newest)).and_then(|(now, then)| now.duration_since(then).ok());
    match ago {
        Some(ago) => {
            page.line(format_args!("The last event was {} ago; times below count back from it.", span(ago.as_nanos())))
        }
        None => page.line("Times count back from the last event."),
    }
}

fn title(page: &mut Page, thread: &ThreadHistory) {
    let mut text = format!("Thread {} (LWP {}, {})", thread.id, thread.lwp, kind(thread.kind));
    if thread.ended.is_some() {
        text.push_str(", ended");
    }
    page.styled(HEADING, text);
    let mut parts = vec![format!("{} of {}", thread.events.len(), count_of_events(thread.total))];
    let mut part = |n: u64, what: &str| {
        if n > 0 {
            parts.push(format!("{n} {what}"));
        }
    };
    part(thread.not_shown, "older ones are there (--last)");
    part(thread.overwritten, "have been overwritten");
    part(thread.torn, "were being written");
    page.wrapped("  ", FAINT, &parts.join(", "), 2);
}

fn count_of_events(n: u64) -> String {
    format!("{n} event{}", if n == 1 { "" } else { "s" })
}

fn row(history: &History, newest: u64, thread: Option<&ThreadHistory>, event: &Event) -> Vec<String> {
    let mut row = vec![span(u128::from(newest.saturating_sub(event.time)))];
    row.extend(thread.map(|thread| thread.id.to_string()));
    row.push(words(event, &history.names));
    row.push(place(history, event.codeptr_ra));
    row
}

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
            let status = named(ompt::task_status(sub), "status");
            if other == 0 {
                format!("task {task}: {status}")
            } else {
                format!("task {task}: {status}; goes on with task {other}")
            }
        }
        7 => {
            let initial = if sub & 1 != 0 { "initial task" } else { "implicit task" };
            let place = match (event.endpoint, sub & 1 != 0) {
                (1, false) => format!(", thread {flags} of {other} in region {region}"),
                _ => String::new(),
            };
            format!("{}{place}", begins(format!("{initial} {task}")))
        }
        16 => match event.endpoint {
            1 => format!("waits at {}", named(ompt::sync_region(sub), "synchronisation")),
            _ => format!("goes on after {}", named(ompt::sync_region(sub), "synchronisation")),
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
        18 => format!("task {task} depends: {} {}", named(ompt::dependence(sub), "type"), variable()),
        19 => format!("task {other} waits for task {task}"),
        20 => {
            let what = named(ompt::work(sub), "work");
            let count = if event.endpoint == 1 && other > 1 { format!(", {other} iterations") } else { String::new() };
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

impl Page {
    /// A page for something that is no inspection.
    fn empty(width: Option<u16>) -> Page {
        Page {
            out: String::new(),
            width: width.unwrap_or(super::DEFAULT_WIDTH),
            verbose: false,
            labels: Default::default(),
            calls: Default::default(),
            places: Default::default(),
            nested: Vec::new(),
            names: Vec::new(),
        }
    }
}
