//! A history for viewers of traces (Perfetto, Chrome's about:tracing): the JSON of the Trace Event Format.

use std::collections::HashMap;
use std::io::{self, Write};

use ompt_record::event::Event;
use serde_json::{Value, json};

use super::devices;
use crate::escape::json as plain;
use crate::events::{kind, place, words};
use ompd_inspection::history::{DeviceHistory, History, ThreadHistory};

/// How an event shows in a trace.
enum Shape {
    /// On its thread, from one event to another, within what is around it.
    Begin(String),
    /// The end of what began last on the thread.
    End,
    /// Beginning (`b`) or end (`e`) of something with a track of its own, a category and a number. It may end within something
    /// else than it began in.
    Async(&'static str, &'static str, u64, String),
    /// A moment.
    Moment,
}

/// Writes a history as one JSON document, entry by entry. A trace takes a few hundred bytes for each event, and may be larger
/// than the memory.
///
/// # Errors
/// Those of `out`.
pub fn write(history: &History, out: &mut dyn Write) -> io::Result<()> {
    let name = json!({
        "name": "process_name", "ph": "M", "pid": history.pid,
        "args": {"name": format!("process {} ({})", history.pid, history.runtime)},
    });
    // One entry in each line: such files are looked at with text tools as well.
    write!(out, "{{\"displayTimeUnit\": \"ns\", \"traceEvents\": [\n{}", plain(&name.to_string()))?;
    for thread in &history.threads {
        let name = format!("thread {} ({})", thread.id, kind(thread.kind));
        let name = json!({
            "name": "thread_name", "ph": "M", "pid": history.pid, "tid": thread.lwp, "args": {"name": name},
        });
        write!(out, ",\n{name}")?;
    }
    let places = history.threads.iter().flat_map(|thread| (0..thread.events.len()).map(move |n| (thread, n)));
    let mut places: Vec<_> = places.collect();
    // Events of a thread stay in their order.
    places.sort_by_key(|(thread, n)| thread.events[*n].time);
    for (thread, n) in places {
        let (event, at) = (&thread.events[n], |n: usize| thread.events.get(n));
        for shape in shapes(n.checked_sub(1).and_then(at), event, at(n + 1), &history.names) {
            write!(out, ",\n{}", plain(&entry(history, thread, event, shape).to_string()))?;
        }
    }
    for device in &history.devices {
        for entry in of_device(history, device) {
            write!(out, ",\n{}", plain(&entry.to_string()))?;
        }
    }
    writeln!(out, "\n]}}")
}

/// Tracks of devices have numbers that no thread of the kernel's has (pid_max(5)).
const FIRST_DEVICE: i64 = 1 << 32;

/// The records of a device that is known to have begun at some time of the host: both clocks were read when it was introduced. Without
/// that, where its records belong is not known, and they are left out.
fn of_device(history: &History, device: &DeviceHistory) -> Vec<Value> {
    let Some(start) = device.host_time.filter(|start| start.is_finite()) else { return Vec::new() };
    let track = FIRST_DEVICE + i64::from(device.number);
    let introduced = device.began.saturating_sub(history.began.0) as f64 / 1e3;
    let mut all = vec![json!({
        "name": "thread_name", "ph": "M", "pid": history.pid, "tid": track, "args": {"name": devices::title(device)},
    })];
    for record in &device.records {
        let Some(begin) = record.host_time.filter(|time| time.is_finite()) else { continue };
        let words = devices::record_words(record);
        let mut entry = json!({
            "pid": history.pid, "tid": track, "ts": introduced + (begin - start) * 1e6, "name": words,
            "args": {"where": place(history, record.what.map_or(0, |what| what.codeptr_ra))},
        });
        match record.host_end_time.map(|end| (end - begin) * 1e6).filter(|took| took.is_finite() && *took >= 0.0) {
            Some(took) => {
                entry["ph"] = "X".into();
                entry["dur"] = took.into();
            }
            None => {
                entry["ph"] = "i".into();
                entry["s"] = "t".into();
            }
        }
        all.push(entry);
    }
    all
}

fn entry(history: &History, thread: &ThreadHistory, event: &Event, shape: Shape) -> Value {
    // The format wants microseconds.
    let time = event.time.saturating_sub(history.began.0) as f64 / 1e3;
    let mut entry = json!({
        "pid": history.pid, "tid": thread.lwp, "ts": time,
        "args": {"event": words(event, &history.names), "where": place(history, event.codeptr_ra)},
    });
    let mut set = |key: &str, value: Value| entry[key] = value;
    match shape {
        Shape::Begin(name) => {
            set("ph", "B".into());
            set("name", name.into());
        }
        Shape::End => set("ph", "E".into()),
        Shape::Async(phase, category, id, name) => {
            set("ph", phase.into());
            set("cat", category.into());
            set("id", format!("{id:#x}").into());
            set("name", name.into());
        }
        Shape::Moment => {
            set("ph", "i".into());
            set("s", "t".into());
            set("name", words(event, &history.names).into());
        }
    }
    entry
}

/// Whether a thread that wanted a lock (`wants`) got it by the event that follows: as a lock, or as a nest lock once more.
fn gets(wants: &Event, event: &Event) -> bool {
    let got = event.kind == 27 || (event.kind == 28 && event.endpoint == 1);
    wants.kind == 26 && got && wants.other == event.other
}

/// What an event shows as, by those before and after it on its thread.
fn shapes(before: Option<&Event>, event: &Event, after: Option<&Event>, names: &HashMap<u64, String>) -> Vec<Shape> {
    let task = |id: u64| format!("task {id}");
    let name = names.get(&event.other);
    let lock = || name.map_or_else(|| format!("lock {:#x}", event.other), |name| format!("lock {name}"));
    let scope = |name: String| match event.endpoint {
        1 => Shape::Begin(name),
        2 => Shape::End,
        _ => Shape::Moment,
    };
    let sync = || ompt_record::ompt::sync_region(event.sub).unwrap_or("synchronisation").replace('_', " ");
    match event.kind {
        3 => vec![Shape::Begin(format!("region {}", event.region))],
        4 => vec![Shape::End],
        6 => {
            // What a thread goes on with was suspended, or has not begun yet.
            let mut both = Vec::new();
            if event.task != 0 {
                both.push(Shape::Async("e", "task", event.task, task(event.task)));
            }
            if event.other != 0 {
                both.push(Shape::Async("b", "task", event.other, task(event.other)));
            }
            both
        }
        7 => vec![scope(format!("implicit task {}", event.task))],
        16 => vec![scope(format!("wait: {}", sync()))],
        23 => vec![scope(sync())],
        31 => vec![scope("reduction".to_owned())],
        20 => vec![scope(ompt_record::ompt::work(event.sub).unwrap_or("work").replace('_', " "))],
        21 => vec![scope("masked".to_owned())],
        // A test of a lock that fails has no event, so that whatever follows shows it. One that is the last thing known of its
        // thread is no wait either.
        26 if after.map_or(!matches!(event.sub, 2 | 4), |after| gets(event, after)) => {
            vec![Shape::Begin(format!("wait: {}", lock()))]
        }
        27 | 28 => {
            let mut all = Vec::new();
            if before.is_some_and(|before| gets(before, event)) {
                all.push(Shape::End);
            }
            let nested = event.kind == 28;
            all.push(if nested { Shape::Moment } else { Shape::Async("b", "lock", event.other, lock()) });
            all
        }
        17 => vec![Shape::Async("e", "lock", event.other, lock())],
        _ => vec![Shape::Moment],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn phases(events: &[(u8, u8, u16, u64)]) -> String {
        let events: Vec<Event> = events
            .iter()
            .map(|&(kind, endpoint, sub, other)| Event { kind, endpoint, sub, other, ..Event::default() })
            .collect();
        let at = |n: usize| events.get(n);
        let all = (0..events.len())
            .flat_map(|n| shapes(n.checked_sub(1).and_then(at), &events[n], at(n + 1), &HashMap::new()));
        all.map(|shape| match shape {
            Shape::Begin(_) => "B",
            Shape::End => "E",
            Shape::Async(phase, ..) => phase,
            Shape::Moment => "i",
        })
        .collect()
    }

    #[test]
    fn a_wait_ends_with_the_lock() {
        assert_eq!(phases(&[(26, 0, 1, 8), (27, 0, 1, 8), (17, 0, 1, 8)]), "BEbe");
        assert_eq!(phases(&[(26, 0, 3, 8), (28, 1, 0, 8), (28, 2, 0, 8)]), "BEii");
        assert_eq!(phases(&[(26, 0, 1, 8)]), "B", "it waits");
    }

    /// Runtimes do not tell that a test of a lock has failed.
    #[test]
    fn what_was_not_got_leaves_nothing_open() {
        assert_eq!(phases(&[(26, 0, 2, 8), (26, 0, 2, 8), (27, 0, 2, 8)]), "iBEb");
        assert_eq!(phases(&[(26, 0, 1, 8), (17, 0, 1, 8)]), "ie", "LLVM 14 calls a test a lock");
        assert_eq!(phases(&[(26, 0, 4, 8)]), "i");
        assert_eq!(phases(&[(26, 0, 2, 8), (27, 0, 1, 9)]), "ib");
    }

    /// The beginning of a wait that was overwritten, or was torn, has no end.
    #[test]
    fn what_did_not_begin_does_not_end() {
        assert_eq!(phases(&[(27, 0, 1, 8), (17, 0, 1, 8)]), "be");
    }
}
