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
    let mut part = |n: u64, one: &str, more: &str| {
        if n > 0 {
            parts.push(format!("{n} {}", if n == 1 { one } else { more }));
        }
    };
    part(
        device.fragments,
        "part of a record whose others are overwritten",
        "parts of records whose others are overwritten",
    );
    part(device.buffers_refused, "buffer refused: records may be missing", "buffers refused: records may be missing");
    part(device.invalid, "record that is none", "records that are none");
    part(device.cut, "delivery not read to its end", "deliveries not read to their end");
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

#[cfg(test)]
mod tests {
    use ompt_record::device::TEXT;
    use ompt_record::event::Event;

    use super::*;
    use crate::samples;
    use crate::text::plain;

    /// The page without where its lines break.
    fn shown(device: &DeviceHistory) -> String {
        let mut page = Page::empty(None);
        write(&mut page, &samples::history(), device);
        plain(&page.out).split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn section_of_a_device_says_what_is_missing() {
        let device = samples::device(Vec::new());
        let offer = "it has 2 of the 15 entry points for tracing";
        assert_eq!(shown(&device), format!("Device 3 (x86\\n64), traced {offer}, 0 of 9 records"));
        let nameless = DeviceHistory { type_name: String::new(), has_lookup: false, total: 0, ..device };
        assert_eq!(shown(&nameless), "Device 3, traced the runtime gave nothing to trace it with");
        let damaged = DeviceHistory {
            total: 1,
            fragments: 2,
            buffers_refused: 3,
            invalid: 4,
            cut: 5,
            ..samples::device(Vec::new())
        };
        let missing = "2 parts of records whose others are overwritten, 3 buffers refused: records may be missing, \
                       4 records that are none, 5 deliveries not read to their end";
        assert_eq!(shown(&damaged), format!("Device 3 (x86\\n64), traced {offer}, 0 of 1 record, {missing}"));
        let missing = "1 part of a record whose others are overwritten, 1 buffer refused: records may be missing, \
                       1 record that is none, 1 delivery not read to its end";
        let damaged = DeviceHistory { fragments: 1, buffers_refused: 1, invalid: 1, cut: 1, ..damaged };
        assert_eq!(shown(&damaged), format!("Device 3 (x86\\n64), traced {offer}, 0 of 1 record, {missing}"));
    }

    #[test]
    fn states_of_devices_have_words() {
        let words = [
            (DeviceState::Coming, "being introduced"),
            (DeviceState::Untraceable, "not traceable"),
            (DeviceState::Stopped, "not traced"),
            (DeviceState::Tracing, "traced"),
            (DeviceState::Paused, "paused"),
            (DeviceState::Changing, "being told something"),
            (DeviceState::Gone, "finalised"),
            (DeviceState::LeftBehind, "of the parent process"),
        ];
        for (of, word) in words {
            assert_eq!(state(of), word);
        }
    }

    #[test]
    fn times_of_records_are_the_hosts_else_ticks_of_the_device() {
        let device = samples::device(Vec::new());
        let record = |time, end_time, host_time, host_end_time| {
            let record = DeviceRecord { time, end_time, host_time, host_end_time, kind: 35, ..DeviceRecord::default() };
            row(&samples::history(), &device, &record)
        };
        assert_eq!(record(Some(120), Some(150), Some(5.5), Some(7.5)), ["500.0 ms", "2.0 s", "record of kind 35", ""]);
        assert_eq!(record(Some(120), Some(150), None, None), ["20 ticks", "30 ticks", "record of kind 35", ""]);
        assert_eq!(record(None, None, None, Some(7.5)), ["", "", "record of kind 35", ""]);
        let unstarted = DeviceHistory { device_time: None, ..samples::device(Vec::new()) };
        let began = DeviceRecord { time: Some(120), form: Form::Native, ..DeviceRecord::default() };
        assert_eq!(row(&samples::history(), &unstarted, &began), ["at 120 ticks", "", "native record", ""]);
        assert_eq!((seconds(-1.0).as_str(), seconds(f64::INFINITY).as_str()), ("-1 s", "inf s"));
    }

    #[test]
    fn record_says_what_was_moved_and_for_whom() {
        let event = |kind, sub| Some(Event { kind, sub, flags: 8, task: 6, ..Event::default() });
        let moved = More::DataOperation { bytes: 64, source: -1, destination: 3 };
        let copy = DeviceRecord { what: event(34, 2), more: Some(moved), ..DeviceRecord::default() };
        assert_eq!(record_words(&copy), "transfer to device, 64 bytes, from device -1 to device 3");
        let unknown = DeviceRecord { what: event(34, 99), ..copy };
        assert_eq!(record_words(&unknown), "data operation, 64 bytes, from device -1 to device 3");
        let mut text = [0; TEXT];
        text[..2].copy_from_slice(b"k\n");
        let kernel = DeviceRecord {
            what: event(35, 0),
            more: Some(More::Kernel { granted_teams: 4 }),
            text: Some(text),
            host_op_id: Some(1),
            target_id: Some(0),
            thread_id: Some(2),
            ..DeviceRecord::default()
        };
        assert_eq!(record_words(&kernel), "kernel, 8 teams asked for, 4 granted: k\\n, operation 1, thread 2");
        let other =
            DeviceRecord { what: event(13, 0), text: Some([0; TEXT]), target_id: Some(5), ..DeviceRecord::default() };
        assert_eq!(record_words(&other), "device 8 is finalised, target 5");
    }

    #[test]
    fn records_are_rows_of_a_table() {
        let record = DeviceRecord { host_time: Some(5.5), form: Form::Native, ..DeviceRecord::default() };
        let text = shown(&samples::device(vec![record]));
        assert!(text.contains("1 of 9 records at took record where 500.0 ms native record"), "{text}");
    }
}
