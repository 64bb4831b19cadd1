//! What devices wrote into their traces.

use std::collections::HashMap;

use ompt_record::device::{DeviceRecord, DeviceState, ENTRY_POINTS, Form, More};
use ompt_record::ompt;

use super::{FAINT, HEADING, Page};
use crate::escape::escape;
use crate::events::{place, span, words};
use ompd_inspection::history::{DeviceHistory, History};

/// A section on one device.
pub(super) fn write(page: &mut Page, history: &History, device: &DeviceHistory) {
    page.styled(HEADING, title(device));
    let mut parts = vec![offer(device)];
    if device.total > 0 {
        let s = if device.total == 1 { "" } else { "s" };
        parts.push(format!("{} of {} record{s}", device.records.len(), device.total));
    }
    let mut part = |n: u64, what: &str| {
        if n > 0 {
            parts.push(format!("{n} {what}"));
        }
    };
    part(device.fragments, "parts of records whose others are overwritten");
    part(device.buffers_refused, "buffers refused: records may be missing");
    part(device.invalid, "records that are none");
    part(device.cut, "deliveries not read to their end");
    page.wrapped("  ", FAINT, &parts.join(", "), 2);
    if !device.records.is_empty() {
        let rows = device.records.iter().map(|record| row(history, device, record)).collect();
        page.table(&["at", "took", "record", "where"], rows);
    }
}

/// `Device 0 (x86_64), traced`.
pub fn title(device: &DeviceHistory) -> String {
    let name = if device.type_name.is_empty() { String::new() } else { format!(" ({})", escape(&device.type_name)) };
    format!("Device {}{name}, {}", device.number, state(device.state))
}

/// What becomes of a device, in a word or two.
pub fn state(state: DeviceState) -> &'static str {
    match state {
        DeviceState::Free | DeviceState::Coming => "being introduced",
        DeviceState::Untraceable => "not traceable",
        DeviceState::Stopped => "not traced",
        DeviceState::Tracing => "traced",
        DeviceState::Paused => "paused",
        DeviceState::Changing => "being told something",
        DeviceState::Gone => "finalised",
        DeviceState::LeftBehind => "of the parent process",
    }
}

fn offer(device: &DeviceHistory) -> String {
    match (device.has_lookup, device.entry_points.len()) {
        (false, _) => "the runtime gave nothing to trace it with".to_owned(),
        (true, n) => format!("it has {n} of the {} entry points for tracing", ENTRY_POINTS.len()),
    }
}

fn row(history: &History, device: &DeviceHistory, record: &DeviceRecord) -> Vec<String> {
    let began = match (record.host_time, device.host_time, record.time, device.device_time) {
        (Some(time), Some(start), ..) => seconds(time - start),
        (.., Some(time), Some(start)) => format!("{} ticks", i128::from(time) - i128::from(start)),
        (.., Some(time), None) => format!("at {time} ticks"),
        _ => String::new(),
    };
    let took = match (record.host_time.zip(record.host_end_time), record.time.zip(record.end_time)) {
        (Some((begin, end)), _) => seconds(end - begin),
        (None, Some((begin, end))) => format!("{} ticks", i128::from(end) - i128::from(begin)),
        (None, None) => String::new(),
    };
    let address = record.what.map_or(0, |what| what.codeptr_ra);
    vec![began, took, record_words(record), place(history, address)]
}

/// A span of the host's clock. What is negative or no number at all is shown as it is: devices say what they like.
fn seconds(seconds: f64) -> String {
    let nanoseconds = seconds * 1e9;
    if (0.0..1e18).contains(&nanoseconds) { span(nanoseconds.round() as u128) } else { format!("{seconds} s") }
}

/// A record in a few words.
pub fn record_words(record: &DeviceRecord) -> String {
    let mut text = match (record.what, record.more) {
        (Some(what), Some(More::DataOperation { bytes, source, destination })) => {
            let operation = ompt::target_data_op(what.sub).unwrap_or("data operation").replace('_', " ");
            format!("{operation}, {bytes} bytes, from device {source} to device {destination}")
        }
        (Some(what), Some(More::Kernel { granted_teams })) => {
            format!("kernel, {} teams asked for, {granted_teams} granted", what.flags)
        }
        // What a device calls a lock is its own: no name of the program's belongs to it.
        (Some(what), _) => words(&what, &HashMap::new()),
        (None, _) => match record.form {
            Form::Native => "native record".to_owned(),
            Form::Ompt => format!("record of kind {}", record.kind),
        },
    };
    if let Some(said) = record.text().filter(|said| !said.is_empty()) {
        text.push_str(&format!(": {}", escape(&said)));
    }
    let ids = [("operation", record.host_op_id), ("target", record.target_id), ("thread", record.thread_id)];
    for (name, id) in ids {
        if let Some(id) = id.filter(|id| *id != 0) {
            text.push_str(&format!(", {name} {id}"));
        }
    }
    text
}
