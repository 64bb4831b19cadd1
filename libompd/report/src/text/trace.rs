//! A history for viewers of traces (Perfetto, Chrome's about:tracing): the JSON of the Trace Event Format.

use ompt_record::event::Event;
use serde_json::{Value, json};

use super::devices;
use super::history::{kind, place, words};
use crate::history::{DeviceHistory, History, ThreadHistory};

/// How an event shows in a trace.
enum Shape {
    /// On its thread, from one event to another, within what is around it.
    Begin(String),
    /// The end of what began last on the thread.
    End,
    /// Beginning (`b`) or end (`e`) of what has a track of its own, of a category and with a number: it may end within something else
    /// than it began in.
    Async(&'static str, &'static str, u64, String),
    /// A moment.
    Moment,
}

/// Renders a history as one JSON document.
pub fn render(history: &History) -> String {
    let mut all = vec![json!({
        "name": "process_name", "ph": "M", "pid": history.pid,
        "args": {"name": format!("process {} ({})", history.pid, history.runtime)},
    })];
    for thread in &history.threads {
        let name = format!("thread {} ({})", thread.id, kind(thread.kind));
        all.push(json!({
            "name": "thread_name", "ph": "M", "pid": history.pid, "tid": thread.lwp, "args": {"name": name},
        }));
    }
    for (thread, event) in history.by_time() {
        for shape in shapes(event, history) {
            all.push(entry(history, thread, event, shape));
        }
    }
    for device in &history.devices {
        all.extend(of_device(history, device));
    }
    // One entry in each line: such files are looked at with text tools as well.
    let lines: Vec<String> = all.iter().map(Value::to_string).collect();
    format!("{{\"displayTimeUnit\": \"ns\", \"traceEvents\": [\n{}\n]}}\n", lines.join(",\n"))
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
        let words = devices::record_words(history, record);
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
        "args": {"event": words(event, history), "where": place(history, event.codeptr_ra)},
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
            set("name", words(event, history).into());
        }
    }
    entry
}

fn shapes(event: &Event, history: &History) -> Vec<Shape> {
    let task = |id: u64| format!("task {id}");
    let name = history.names.get(&event.other);
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
        26 => vec![Shape::Begin(format!("wait: {}", lock()))],
        27 => vec![Shape::End, Shape::Async("b", "lock", event.other, lock())],
        17 => vec![Shape::Async("e", "lock", event.other, lock())],
        _ => vec![Shape::Moment],
    }
}
