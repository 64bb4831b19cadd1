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
    use ompt_record::device::DeviceRecord;

    use super::*;
    use crate::samples;

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
        assert_eq!(phases(&[(26, 0, 4, 8), (28, 2, 0, 8)]), "ii", "a nest lock that is released");
        assert_eq!(phases(&[(26, 0, 2, 8), (21, 1, 0, 8)]), "iB", "another construct");
        assert_eq!(phases(&[(17, 0, 1, 8), (27, 0, 1, 8)]), "eb", "a lock that was released before");
    }

    /// The beginning of a wait that was overwritten, or was torn, has no end.
    #[test]
    fn what_did_not_begin_does_not_end() {
        assert_eq!(phases(&[(27, 0, 1, 8), (17, 0, 1, 8)]), "be");
    }

    #[test]
    fn scopes_begin_and_end_and_moments_have_no_length() {
        for kind in [7, 16, 20, 21, 23, 31] {
            assert_eq!(phases(&[(kind, 1, 1, 0), (kind, 2, 1, 0), (kind, 3, 1, 0)]), "BEi", "callback {kind}");
        }
        assert_eq!(phases(&[(3, 0, 0, 2), (4, 0, 0, 0)]), "BE", "a region");
        assert_eq!(phases(&[(1, 0, 0, 0), (5, 0, 0, 0), (29, 0, 0, 0)]), "iii");
    }

    /// The texts of what begins, and the ids of what has a track of its own.
    #[test]
    fn names_are_those_of_events() {
        let event = |kind, sub| Event { kind, sub, endpoint: 1, region: 5, task: 6, other: 7, ..Event::default() };
        let named = |event: Event, names: &[(u64, &str)]| {
            let names = names.iter().map(|(id, name)| (*id, (*name).to_owned())).collect();
            let shapes = shapes(None, &event, None, &names).into_iter().map(|shape| match shape {
                Shape::Begin(name) => name,
                Shape::Async(phase, category, id, name) => format!("{phase} {category} {id} {name}"),
                Shape::End | Shape::Moment => String::new(),
            });
            shapes.collect::<Vec<_>>()
        };
        let unnamed = |kind, sub| named(event(kind, sub), &[]).concat();
        assert_eq!(unnamed(3, 0), "region 5");
        assert_eq!(unnamed(7, 2), "implicit task 6");
        assert_eq!(unnamed(16, 3), "wait: barrier explicit");
        assert_eq!(unnamed(16, 99), "wait: synchronisation");
        assert_eq!(unnamed(23, 6), "taskgroup");
        assert_eq!(unnamed(20, 3), "single executor");
        assert_eq!(unnamed(20, 99), "work");
        assert_eq!(unnamed(21, 0), "masked");
        assert_eq!(unnamed(31, 0), "reduction");
        assert_eq!(unnamed(26, 1), "wait: lock 0x7");
        assert_eq!(unnamed(17, 1), "e lock 7 lock 0x7");
        assert_eq!(named(event(27, 1), &[(7, "queue")]), ["b lock 7 lock queue"]);
        // A task that is put aside ends on the track of its own, and the one that continues begins.
        assert_eq!(named(event(6, 7), &[]), ["e task 6 task 6", "b task 7 task 7"]);
        assert_eq!(named(Event { other: 0, ..event(6, 1) }, &[]), ["e task 6 task 6"]);
        assert_eq!(named(Event { task: 0, ..event(6, 1) }, &[]), ["b task 7 task 7"]);
    }

    #[test]
    fn records_of_a_device_are_on_a_track_of_its_own() {
        let record = |host_time, host_end_time| DeviceRecord { host_time, host_end_time, ..DeviceRecord::default() };
        let records = vec![
            record(Some(5.5), Some(5.75)),
            record(Some(5.5), Some(5.5)),
            record(Some(5.5), Some(5.0)),
            record(Some(5.5), Some(f64::NAN)),
            record(Some(5.5), Some(f64::INFINITY)),
            record(Some(f64::INFINITY), None),
            record(None, Some(7.0)),
        ];
        let device = samples::device(records);
        let all = of_device(&samples::history(), &device);
        // 3 after 2^32: no thread has that number. It was introduced 4 µs after the history began.
        assert_eq!(all[0]["args"]["name"], "Device 3 (x86\\n64), traced");
        assert_eq!((&all[0]["ph"], &all[0]["tid"]), (&json!("M"), &json!(0x1_0000_0003_u64)));
        let shown = |entry: &Value| [&entry["ph"], &entry["ts"], &entry["dur"], &entry["s"]].map(Value::clone);
        let begin = json!(500_004.0);
        assert_eq!(shown(&all[1]), [json!("X"), begin.clone(), json!(250_000.0), Value::Null]);
        assert_eq!(shown(&all[2]), [json!("X"), begin.clone(), json!(0.0), Value::Null]);
        // What ends before it begins, or never, is a moment. What has no time of the host is left out.
        for entry in &all[3..6] {
            assert_eq!(shown(entry), [json!("i"), begin.clone(), Value::Null, json!("t")]);
        }
        assert_eq!(all.len(), 6);
        let unknown = DeviceHistory { host_time: Some(f64::NAN), ..device };
        assert_eq!(of_device(&samples::history(), &unknown), [Value::Null; 0]);
    }
}
