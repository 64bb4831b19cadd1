//! What a record of the simulator's has to be read as.

use anyhow::{Context as _, Result, bail, ensure};
use ompt_record::device::{DeviceRecord, Form, ITEMS, MapItem, More, TEXT};
use ompt_record::event::Event;
use serde_json::Value;

use crate::simulator::DEVICE;

/// How the simulator translates times, unless it does not.
fn seconds(time: u64) -> f64 {
    1000.0 + time as f64 / f64::from(1 << 20)
}

/// Compares all records with what the simulator said it wrote, one by one and member by member.
pub fn compare(told: &[&Value], read: &[DeviceRecord], translates: bool) -> Result<()> {
    ensure!(told.len() == read.len(), "{} records were written and {} read", told.len(), read.len());
    for (n, (told, read)) in told.iter().zip(read).enumerate() {
        let expected = expected(told, read, translates).with_context(|| format!("record {n}: {told}"))?;
        ensure!(*read == expected, "record {n}: {told}\nread as  {read:?}\nshould be {expected:?}");
    }
    Ok(())
}

/// The record that was told of. When it came, and where it is in the ring, the simulator does not know.
fn expected(told: &Value, read: &DeviceRecord, translates: bool) -> Result<DeviceRecord> {
    let field = |name: &str| told["fields"][name].as_u64().with_context(|| format!("no {name}"));
    // The simulator widens numbers with a sign.
    let int = |name: &str| field(name).map(|value| (value & 0xffff_ffff) as u32);
    let short = |name: &str| field(name).map(|value| (value & 0xffff) as u16);
    let endpoint = || field("endpoint").map(|value| (value & 0xff) as u8);
    let address = || field("codeptr_ra");
    let base =
        DeviceRecord { position: read.position, delivered: read.delivered, device: DEVICE, ..DeviceRecord::default() };
    let translate = |record: DeviceRecord| {
        let host = |time: Option<u64>| time.filter(|_| translates).map(seconds);
        DeviceRecord { host_time: host(record.time), host_end_time: host(record.end_time), ..record }
    };
    ensure!(read.delivered > 0, "it has no time of its delivery");
    if told["form"] == "native" {
        let mut record = DeviceRecord { form: Form::Native, host_op_id: Some(field("host_op_id")?), ..base };
        // Of a native record without an abstract form no more is known.
        if read.more.is_some() {
            record.time = Some(field("start_time")?);
            record.end_time = Some(field("end_time")?).filter(|time| *time != 0);
            record.more = Some(More::Abstract { class: int("rclass")?, hardware: field("hwid")? });
            record.text = text(told["text"].as_str().context("no text")?);
        }
        return Ok(translate(record));
    }
    let kind = u8::try_from(told["type"].as_u64().context("no type")?)?;
    let member = |name: &str| told[name].as_u64().with_context(|| format!("no {name}"));
    let mut record = DeviceRecord {
        form: Form::Ompt,
        kind,
        time: Some(member("time")?),
        thread_id: Some(member("thread_id")?),
        target_id: Some(member("target_id")?),
        ..base
    };
    let none = Event { position: read.position + 2, time: read.delivered, kind, ..Event::default() };
    let what = match kind {
        1 => Event { sub: short("thread_type")?, ..none },
        2 => none,
        3 => Event {
            flags: int("flags")?,
            region: field("parallel_id")?,
            task: field("encountering_task_id")?,
            other: field("requested_parallelism")?,
            codeptr_ra: address()?,
            ..none
        },
        4 => Event {
            flags: int("flags")?,
            region: field("parallel_id")?,
            task: field("encountering_task_id")?,
            codeptr_ra: address()?,
            ..none
        },
        5 => Event {
            sub: short("has_dependences")?,
            flags: int("flags")?,
            task: field("new_task_id")?,
            other: field("encountering_task_id")?,
            codeptr_ra: address()?,
            ..none
        },
        6 => Event {
            sub: short("prior_task_status")?,
            task: field("prior_task_id")?,
            other: field("next_task_id")?,
            ..none
        },
        7 => {
            record.more = Some(More::ImplicitTask { flags: int("flags")? });
            Event {
                endpoint: endpoint()?,
                sub: short("flags")?,
                flags: int("index")?,
                region: field("parallel_id")?,
                task: field("task_id")?,
                other: field("actual_parallelism")?,
                ..none
            }
        }
        8 | 33 => Event {
            endpoint: endpoint()?,
            sub: short("kind")?,
            flags: int("device_num")?,
            task: field("task_id")?,
            other: field("target_id")?,
            codeptr_ra: address()?,
            ..none
        },
        9 | 34 => {
            let device = |name: &str| int(name).map(u32::cast_signed);
            record.host_op_id = Some(field("host_op_id")?);
            record.end_time = Some(field("end_time")?);
            record.more = Some(More::DataOperation {
                bytes: field("bytes")?,
                source: device("src_device_num")?,
                destination: device("dest_device_num")?,
            });
            Event {
                sub: short("optype")?,
                flags: u32::try_from(field("bytes")?).unwrap_or(u32::MAX),
                region: field("src_addr")?,
                task: field("host_op_id")?,
                other: field("dest_addr")?,
                codeptr_ra: address()?,
                ..none
            }
        }
        10 | 35 => {
            record.host_op_id = Some(field("host_op_id")?);
            record.end_time = Some(field("end_time")?);
            record.more = Some(More::Kernel { granted_teams: int("granted_num_teams")? });
            Event {
                flags: int("requested_num_teams")?,
                task: field("host_op_id")?,
                other: member("target_id")?,
                ..none
            }
        }
        11 => {
            record.more = Some(More::Control { command: field("command")? });
            Event { flags: u32::MAX, task: field("modifier")?, codeptr_ra: address()?, ..none }
        }
        16 | 23 | 31 => Event {
            endpoint: endpoint()?,
            sub: short("kind")?,
            region: field("parallel_id")?,
            task: field("task_id")?,
            codeptr_ra: address()?,
            ..none
        },
        17 | 25 | 27 => Event { sub: short("kind")?, other: field("wait_id")?, codeptr_ra: address()?, ..none },
        18 => Event {
            sub: short("dep.dependence_type")?,
            flags: int("ndeps")?,
            task: field("task_id")?,
            other: field("dep.variable.value")?,
            ..none
        },
        19 => Event { task: field("src_task_id")?, other: field("sink_task_id")?, ..none },
        20 => Event {
            endpoint: endpoint()?,
            sub: short("wstype")?,
            region: field("parallel_id")?,
            task: field("task_id")?,
            other: field("count")?,
            codeptr_ra: address()?,
            ..none
        },
        21 => Event {
            endpoint: endpoint()?,
            region: field("parallel_id")?,
            task: field("task_id")?,
            codeptr_ra: address()?,
            ..none
        },
        22 | 36 => {
            // The simulator's arrays: the flags are missing.
            for (n, item) in (0..).zip(&mut record.items).take(ITEMS) {
                *item = Some(MapItem { host: Some(1000 + n), device: Some(2000 + n), bytes: Some(n), flags: None });
            }
            Event { flags: int("nitems")?, other: field("target_id")?, codeptr_ra: address()?, ..none }
        }
        24 | 26 => {
            record.more = Some(More::Mutex { implementation: int("impl")? });
            Event { sub: short("kind")?, flags: int("hint")?, other: field("wait_id")?, codeptr_ra: address()?, ..none }
        }
        28 => Event { endpoint: endpoint()?, other: field("wait_id")?, codeptr_ra: address()?, ..none },
        29 => Event { codeptr_ra: address()?, ..none },
        30 => Event { flags: int("flags")?, task: field("task_id")?, codeptr_ra: address()?, ..none },
        32 => Event {
            sub: short("kind")?,
            region: field("parallel_id")?,
            task: field("task_id")?,
            other: field("instance.value")?,
            ..none
        },
        37 => {
            record.more = Some(More::Error { length: field("length")? });
            // What follows in memory does not belong to it.
            record.text = text("not ended by a zero");
            Event { sub: short("severity")?, flags: int("length")?, codeptr_ra: address()?, ..none }
        }
        _ => bail!("the simulator writes no such records"),
    };
    record.what = Some(what);
    Ok(translate(record))
}

/// As much of a text as is kept; none where the simulator gave none.
fn text(text: &str) -> Option<[u8; TEXT]> {
    if text.is_empty() {
        return None;
    }
    let mut kept = [0; TEXT];
    for (to, from) in kept.iter_mut().zip(text.bytes()) {
        *to = from;
    }
    Some(kept)
}
