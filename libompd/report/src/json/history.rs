//! What threads did last.

use std::time::SystemTime;

use ompt_record::block::State;
use ompt_record::device::{DeviceRecord, Form};
use ompt_record::event::Event as Recorded;
use ompt_record::ompt;
use schemars::JsonSchema;
use serde::Serialize;

use crate::events::{kind, words};
use crate::text::devices;
use ompd_inspection::history::{self, DeviceHistory, ThreadHistory, named_address};

/// Name and version of the format, the value of the key `schema`.
pub const SCHEMA: &str = "ompd-inspect-history/1";

/// The events of the threads of a process that has an OMPT companion.
#[derive(Debug, Serialize, JsonSchema)]
pub struct History {
    /// Name and version of this format: `ompd-inspect-history/1`.
    pub schema: &'static str,
    /// The process that wrote the events.
    pub pid: u64,
    /// How often the process forked since the companion began.
    pub forks: u64,
    /// How the runtime called itself to the companion.
    pub runtime: String,
    /// What the companion does: `recording`, `paused` or `ended`.
    pub state: &'static str,
    /// When the block was begun, in nanoseconds of CLOCK_MONOTONIC, as all times of events.
    pub began: u64,
    /// The same moment in seconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub began_at: Option<f64>,
    /// Every thread that was recorded, in the order in which they began.
    pub threads: Vec<Thread>,
    /// Devices that the runtime has introduced, also those that are gone.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub devices: Vec<Device>,
    /// What is missing, and why.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub issues: Vec<String>,
}

/// A device and its trace.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Device {
    /// Its number.
    pub number: i32,
    /// What the runtime calls it; empty if it gave no name.
    pub type_name: String,
    /// What becomes of it, in a word or two.
    pub state: &'static str,
    /// Which entry points for tracing its look-up function knows.
    pub entry_points: Vec<&'static str>,
    /// When it was introduced: nanoseconds of CLOCK_MONOTONIC.
    pub began: u64,
    /// What its own clock said then, in its own units.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device_time: Option<u64>,
    /// The same moment in seconds of `omp_get_wtime`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host_time: Option<f64>,
    /// When it was finalised, if it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended: Option<u64>,
    /// How many records were ever written.
    pub total: u64,
    /// Whether there were earlier ones than those in `records`.
    pub earlier: bool,
    /// How many parts of records were read whose others are missing.
    pub fragments: u64,
    /// Buffers it asked for and did not get: records may be missing.
    pub buffers_refused: u64,
    /// Records that could not be made sense of.
    pub invalid: u64,
    /// Deliveries of which not all could be read.
    pub cut: u64,
    /// Records, in the order of their delivery.
    pub records: Vec<Record>,
}

/// A record of a device. What it does not have is left out.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Record {
    /// When the companion got it: nanoseconds of CLOCK_MONOTONIC.
    pub delivered: u64,
    /// `ompt` or `native`.
    pub form: &'static str,
    /// The name of the callback that it belongs to; nothing of a native record without an abstract form.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event: Option<&'static str>,
    /// When it happened or began, in the device's units.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<u64>,
    /// When it ended, in the device's units.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end_time: Option<u64>,
    /// `time` in seconds of `omp_get_wtime`, as the device translates it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host_time: Option<f64>,
    /// `end_time` in the same way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host_end_time: Option<f64>,
    /// The thread it names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thread_id: Option<u64>,
    /// The target region it names: `other` of the host's events.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target_id: Option<u64>,
    /// The operation of the host it belongs to: `task` of the host's events.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host_op_id: Option<u64>,
    /// The record in words.
    pub text: String,
}

/// The events of one thread.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Thread {
    /// Its number, from 1, which is also what OMPD tells as its tool data.
    pub id: u64,
    /// The kernel's id it had.
    pub lwp: u64,
    /// `initial`, `worker`, `other` or what else it is.
    pub kind: &'static str,
    /// When it began.
    pub began: u64,
    /// When it ended, if it has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended: Option<u64>,
    /// How many events there were.
    pub total: u64,
    /// How many that are there were not asked for.
    pub not_shown: u64,
    /// How many have been overwritten.
    pub overwritten: u64,
    /// How many were being written when they were read.
    pub torn: u64,
    /// Those that were read, oldest first.
    pub events: Vec<Event>,
}

/// An event. What `region`, `task` and `other` mean depends on the event: see "Events" in docs/companion.md.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Event {
    /// When: nanoseconds of CLOCK_MONOTONIC.
    pub time: u64,
    /// The name of the callback without `ompt_callback_`.
    pub event: String,
    /// `begin`, `end` or `beginend`; nothing of what is a moment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<&'static str>,
    /// The kind or status that the callback was told: its number.
    pub sub: u16,
    /// What it was told besides.
    pub flags: u32,
    /// A number of a region, 0 for none.
    pub region: u64,
    /// A number of a task, 0 for none.
    pub task: u64,
    /// A number or an address, as a hex string.
    pub other: String,
    /// The return address of the call of the runtime, as a hex string; nothing where the callback had none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub codeptr_ra: Option<String>,
    /// The function that the call is in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    /// Its source file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// What the program calls the lock or variable at the address in `other`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The event in words.
    pub text: String,
}

/// The document of a history.
pub fn history(history: &history::History) -> History {
    let began_at = history.began.1.duration_since(SystemTime::UNIX_EPOCH).ok();
    History {
        schema: SCHEMA,
        pid: history.pid,
        forks: history.forks,
        runtime: history.runtime.clone(),
        state: match history.state {
            State::Recording => "recording",
            State::Paused => "paused",
            State::Ended => "ended",
        },
        began: history.began.0,
        began_at: began_at.map(|at| at.as_secs_f64()),
        threads: history.threads.iter().map(|of| thread(history, of)).collect(),
        devices: history.devices.iter().map(device).collect(),
        issues: history.issues.clone(),
    }
}

fn device(device: &DeviceHistory) -> Device {
    Device {
        number: device.number,
        type_name: device.type_name.clone(),
        state: devices::state(device.state),
        entry_points: device.entry_points.clone(),
        began: device.began,
        device_time: device.device_time,
        host_time: device.host_time.filter(finite),
        ended: device.ended,
        total: device.total,
        earlier: device.earlier,
        fragments: device.fragments,
        buffers_refused: device.buffers_refused,
        invalid: device.invalid,
        cut: device.cut,
        records: device.records.iter().map(record).collect(),
    }
}

/// JSON has no other numbers.
fn finite(number: &f64) -> bool {
    number.is_finite()
}

fn record(record: &DeviceRecord) -> Record {
    Record {
        delivered: record.delivered,
        form: match record.form {
            Form::Ompt => "ompt",
            Form::Native => "native",
        },
        event: ompt::callback(record.kind).map(|callback| callback.name),
        time: record.time,
        end_time: record.end_time,
        host_time: record.host_time.filter(finite),
        host_end_time: record.host_end_time.filter(finite),
        thread_id: record.thread_id,
        target_id: record.target_id,
        host_op_id: record.host_op_id,
        text: devices::record_words(record),
    }
}

fn thread(history: &history::History, thread: &ThreadHistory) -> Thread {
    Thread {
        id: thread.id,
        lwp: thread.lwp,
        kind: kind(thread.kind),
        began: thread.began,
        ended: thread.ended,
        total: thread.total,
        not_shown: thread.not_shown,
        overwritten: thread.overwritten,
        torn: thread.torn,
        events: thread.events.iter().map(|of| event(history, of)).collect(),
    }
}

fn event(history: &history::History, event: &Recorded) -> Event {
    let place = history.places.get(&event.codeptr_ra);
    Event {
        time: event.time,
        event: ompt::callback(event.kind).map_or_else(|| event.kind.to_string(), |callback| callback.name.to_owned()),
        endpoint: ompt::endpoint(event.endpoint),
        sub: event.sub,
        flags: event.flags,
        region: event.region,
        task: event.task,
        other: format!("{:#x}", event.other),
        codeptr_ra: (event.codeptr_ra != 0).then(|| format!("{:#018x}", event.codeptr_ra)),
        function: place.and_then(|place| place.function.as_deref()).map(str::to_owned),
        file: place.and_then(|place| place.file.as_deref()).map(str::to_owned),
        line: place.and_then(|place| place.line),
        text: words(event, &history.names),
        name: named_address(event).and_then(|address| history.names.get(&address)).cloned(),
    }
}
