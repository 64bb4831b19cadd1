//! The companion traces a device: the simulator of the test programs plays one, and the runtime, and says what it
//! wrote. What is read of the companion's block from outside has to be the same.

mod expected;
mod simulator;

use anyhow::{Context as _, Result, ensure};
use expected::compare;
use ompt_record::device::{
    Answer, DEVICES, DeviceState, ENTRY_POINTS, HAS_DOCUMENTATION, HAS_HOST_TIME, HAS_LIMITS, HAS_LOOKUP,
    HAS_PROCESSORS, HAS_TIME, MOST_PARTS, More,
};
use serde_json::Value;
use simulator::{Found, Simulator, read_file, told};

/// Starts a simulator, or says why not and leaves the test.
macro_rules! start {
    ($modes:expr, $variables:expr) => {
        match Simulator::start($modes, $variables)? {
            Ok(simulator) => simulator,
            Err(skip) => {
                skip.show();
                return Ok(());
            }
        }
    };
    ($modes:expr) => {
        start!($modes, &[])
    };
}

fn compare_all(lines: &[Value], found: &Found) -> Result<()> {
    let read = found.records.as_ref().context("the device has no ring")?;
    ensure!((read.fragments, found.overwritten) == (0, 0), "{} parts are no records", read.fragments);
    let told = told(lines, "record");
    compare(&told, &read.records, true)?;
    ensure!(found.device.values.records == told.len() as u64, "{} were counted", found.device.values.records);
    ensure!(found.block.header.device_records == told.len() as u64, "{} in all", found.block.header.device_records);
    ensure!(found.device.values.invalid == 0 && found.device.values.cut == 0, "something was not read");
    Ok(())
}

fn state(found: &Found) -> Option<DeviceState> {
    DeviceState::from_number(found.device.values.state)
}

fn calls(lines: &[Value]) -> Vec<&str> {
    told(lines, "call").into_iter().filter_map(Value::as_str).collect()
}

/// All kinds of records that the simulator writes: all callbacks but those of devices.
const KINDS: usize = 33;

#[test]
fn every_kind_of_record_is_read() -> Result<()> {
    let mut simulator = start!(&[]);
    ensure!(simulator.obey("wf")? == 0, "the flush failed");
    let found = simulator.found()?;
    ensure!(told(&simulator.lines, "record").len() == KINDS, "the simulator wrote less than it can");
    compare_all(&simulator.lines, &found)?;

    // The device itself.
    let values = &found.device.values;
    let all = (1 << ENTRY_POINTS.len()) - 1;
    let more = HAS_LOOKUP | HAS_DOCUMENTATION | HAS_TIME | HAS_HOST_TIME | HAS_PROCESSORS | HAS_LIMITS;
    assert_eq!(values.capabilities, all | more);
    assert_eq!((state(&found), found.ring_is_used), (Some(DeviceState::Tracing), true));
    assert_eq!(found.device.type_name, "Nobody;simulator;1");
    assert_eq!((values.processors, values.limit_buffers, values.limit_bytes), (96, 4, 16384));
    let ready = told(&simulator.lines, "ready");
    let [ready] = ready[..] else { panic!("it is ready once") };
    assert_eq!(Some(values.device_time), ready["device_time"].as_u64());
    assert_eq!(f64::from_bits(values.host_time), 1000.0 + 1024.0);
    assert_eq!(told(&simulator.lines, "device_thread")[0].as_u64(), Some(values.delivered_by));
    let answers = [Answer::TraceOmpt, Answer::TraceNative, Answer::Start, Answer::Pause, Answer::Flush, Answer::Stop];
    assert_eq!(answers.map(|call| found.device.answer(call)), [Some(5), Some(1), Some(1), None, Some(1), None]);
    assert_eq!(calls(&simulator.lines), ["start_trace", "flush_trace"]);
    simulator.end().map(drop)
}

#[test]
fn records_belong_to_operations_of_the_host() -> Result<()> {
    let mut simulator = start!(&[]);
    simulator.obey("wwf")?;
    let found = simulator.found()?;
    let records = found.records.context("the device has no ring")?.records;
    let ids = told(&simulator.lines, "ids");
    assert_eq!(ids.len(), 2);
    for (n, ids) in ids.iter().enumerate() {
        let [target, operation, kernel] = ["target", "data_op", "kernel"].map(|name| ids[name].as_u64().unwrap_or(0));
        ensure!(target != 0 && operation != 0 && kernel != 0, "the companion gave no ids: {ids}");
        for (callback, id) in [(34, operation), (35, kernel)] {
            let begins =
                found.host.iter().filter(|event| event.kind == callback && event.task == id && event.endpoint == 1);
            assert_eq!(begins.count(), 1, "callback {callback} of the host, {ids}");
            let belongs = |record: &&ompt_record::device::DeviceRecord| record.host_op_id == Some(id);
            let on_device: Vec<_> = records.iter().filter(belongs).filter(|record| record.kind == callback).collect();
            let [record] = on_device[..] else { panic!("{} records of {ids}", on_device.len()) };
            assert_eq!(record.target_id, Some(target));
            // What only the device knows.
            match (callback, record.more) {
                (34, Some(More::DataOperation { bytes, source: -1, destination: 5 })) => assert!(bytes > 1 << 32),
                (35, Some(More::Kernel { granted_teams })) => {
                    assert_ne!(Some(granted_teams), record.what.map(|what| what.flags));
                }
                (_, more) => panic!("record {n}: {more:?}"),
            }
            assert!(record.host_end_time > record.host_time);
        }
    }
    simulator.end().map(drop)
}

#[test]
fn all_is_read_whatever_a_device_does_with_buffers() -> Result<()> {
    let modes: [&[&str]; 7] = [
        &["keep"],
        &["backwards"],
        &["unaligned"],
        &["bytes=1"],
        &["bytes=5000", "buffers=1", "keep"],
        &["buffers=-1", "bytes=99999999999"],
        &["missing=ompt_get_buffer_limits"],
    ];
    for modes in modes {
        let mut simulator = start!(modes);
        simulator.obey("zwwzfwzfwwwf")?;
        let found = simulator.found()?;
        compare_all(&simulator.lines, &found).with_context(|| format!("{modes:?}"))?;
        assert_eq!(told(&simulator.lines, "record").len(), 6 * KINDS, "{modes:?}");
        assert_eq!(found.device.values.buffers_refused, 0, "{modes:?}");
        simulator.end().with_context(|| format!("{modes:?}"))?;
    }
    Ok(())
}

#[test]
fn the_last_records_are_kept() -> Result<()> {
    let mut simulator = start!(&[], &[("OMPT_COMPANION_EVENTS", "64")]);
    simulator.obey("wwf")?;
    let found = simulator.found()?;
    let read = found.records.context("the device has no ring")?;
    let told = told(&simulator.lines, "record");
    // A record has three parts at least, and of the first one that is there some may be gone.
    assert!((1..=21).contains(&read.records.len()) && found.overwritten > 0, "{}", read.records.len());
    assert!(read.fragments < MOST_PARTS as u64, "{}", read.fragments);
    compare(&told[told.len() - read.records.len()..], &read.records, true)?;
    assert_eq!(found.device.values.records, told.len() as u64);
    simulator.end().map(drop)
}

#[test]
fn pause_and_start_are_passed_on() -> Result<()> {
    let mut simulator = start!(&[]);
    // Pausing twice changes nothing; what happens in a pause is not traced.
    simulator.obey("wpwpwswf")?;
    let found = simulator.found()?;
    compare_all(&simulator.lines, &found)?;
    assert_eq!(told(&simulator.lines, "record").len(), 2 * KINDS);
    assert_eq!(simulator.obey("e")?, 0);
    assert_eq!(state(&simulator.found()?), Some(DeviceState::Stopped));
    assert_eq!(simulator.obey("s")?, 1, "what has ended does not begin again");
    let lines = simulator.end()?;
    assert_eq!(
        calls(&lines),
        ["start_trace", "pause_trace 1", "pause_trace 0", "flush_trace", "flush_trace", "stop_trace"]
    );
    Ok(())
}

#[test]
fn what_begins_paused_is_started_when_it_is_told() -> Result<()> {
    let mut simulator = start!(&[], &[("OMPT_COMPANION_START", "paused")]);
    simulator.obey("w")?;
    assert_eq!(state(&simulator.found()?), Some(DeviceState::Stopped));
    assert_eq!(calls(&simulator.lines), [""; 0]);
    simulator.obey("swf")?;
    compare_all(&simulator.lines, &simulator.found()?)?;
    assert_eq!(told(&simulator.lines, "record").len(), KINDS);
    let lines = simulator.end()?;
    assert_eq!(calls(&lines), ["start_trace", "flush_trace", "flush_trace", "stop_trace"]);
    Ok(())
}

/// What is left of tracing without an entry point.
#[test]
fn each_entry_point_may_be_missing() -> Result<()> {
    use DeviceState::{Tracing, Untraceable};
    for name in ENTRY_POINTS {
        let mode = format!("missing={name}");
        let mut simulator = start!(&[&mode]);
        let found = simulator.found()?;
        let needed = [
            "ompt_set_trace_ompt",
            "ompt_start_trace",
            "ompt_stop_trace",
            "ompt_advance_buffer_cursor",
            "ompt_get_record_type",
            "ompt_get_record_ompt",
        ];
        let expected = if needed.contains(&name) { Untraceable } else { Tracing };
        assert_eq!(state(&found), Some(expected), "{mode}");
        for other in ENTRY_POINTS {
            assert_eq!(found.device.has(other), other != name, "{mode}: {other}");
        }
        simulator.obey("zxwfpws")?;
        // Without a flush, records come when the tracing is stopped.
        simulator.obey("we")?;
        let found = simulator.found()?;
        if expected == Tracing {
            let read = found.records.context("the device has no ring")?;
            compare(&told(&simulator.lines, "record"), &read.records, name != "ompt_translate_time")
                .with_context(|| mode.clone())?;
            assert_eq!(read.records.len(), 2 * KINDS, "{mode}");
        } else {
            assert!(found.records.is_none(), "{mode}");
            assert_eq!(calls(&simulator.lines), [""; 0], "{mode}");
        }
        let lines = simulator.end().with_context(|| mode.clone())?;
        if name == "ompt_pause_trace" {
            let expected = ["start_trace", "flush_trace", "flush_trace", "stop_trace", "start_trace", "flush_trace"];
            assert_eq!(calls(&lines), [&expected[..], &["stop_trace"]].concat());
        }
    }
    Ok(())
}

#[test]
fn a_runtime_that_traces_nothing_is_asked_and_left_alone() -> Result<()> {
    for (mode, capabilities, name) in [("upstream", HAS_LOOKUP, "unknown"), ("no_lookup", 0, "")] {
        let mut simulator = start!(&[mode]);
        simulator.obey("wpwswfe")?;
        let found = simulator.found()?;
        assert_eq!(state(&found), Some(DeviceState::Untraceable), "{mode}");
        assert_eq!(found.device.values.capabilities, capabilities, "{mode}");
        assert_eq!(found.device.type_name, name, "{mode}");
        assert!(found.records.is_none(), "{mode}");
        // The host's side is there all the same.
        assert!(found.host.iter().any(|event| event.kind == 35), "{mode}");
        simulator.obey("d")?;
        assert_eq!(state(&simulator.found()?), Some(DeviceState::Gone), "{mode}");
        simulator.end()?;
    }
    Ok(())
}

#[test]
fn kinds_are_asked_for_one_by_one() -> Result<()> {
    let mut simulator = start!(&["by_kind"]);
    simulator.obey("wf")?;
    let found = simulator.found()?;
    compare_all(&simulator.lines, &found)?;
    let mut asked = [None; 38];
    for ask in told(&simulator.lines, "asked") {
        let [kind, answer] = ["kind", "answer"].map(|name| ask[name].as_u64().unwrap_or(99));
        asked[usize::try_from(kind)?] = Some(u8::try_from(answer)?);
    }
    assert_eq!(found.device.answer(Answer::TraceOmpt), asked[0]);
    for kind in 1..=37 {
        assert_eq!(found.device.result(kind), asked[usize::from(kind)], "kind {kind}");
    }
    // The older form where the newer is refused, and only there.
    assert_eq!([33, 8, 36, 22].map(|kind| asked[kind]), [Some(2), Some(5), Some(1), Some(5)]);
    assert_eq!([34, 9, 35, 10].map(|kind| asked[kind]), [Some(5), None, Some(3), None]);
    let mut kinds: Vec<_> = found.records.context("no ring")?.records.iter().map(|record| record.kind).collect();
    kinds.sort_unstable();
    assert_eq!(kinds, [1, 2, 3, 4, 5, 6, 7, 8, 11, 22, 34, 35, 37]);
    simulator.end().map(drop)
}

#[test]
fn native_records_are_told_as_far_as_they_are_known() -> Result<()> {
    let only: &[&str] = &["native", "missing=ompt_set_trace_ompt", "missing=ompt_get_record_ompt"];
    for (more, described) in [("native", true), ("native_by_flag", true), ("missing=ompt_get_record_abstract", false)] {
        let modes = [only, &[more]].concat();
        let mut simulator = start!(&modes);
        simulator.obey("wf")?;
        let found = simulator.found()?;
        compare_all(&simulator.lines, &found).with_context(|| more.to_owned())?;
        let records = found.records.context("no ring")?.records;
        assert_eq!(records.len(), KINDS, "{more}");
        assert!(records.iter().all(|record| record.more.is_some() == described), "{more}");
        assert_eq!(
            found.device.answer(Answer::TraceNative),
            Some(if more == "native_by_flag" { 0 } else { 5 }),
            "{more}"
        );
        if described {
            assert_eq!(records[0].text().as_deref(), Some("kernel"));
            assert_eq!(records[1].text().as_deref(), Some("a name that is longer than what "));
        }
        simulator.end().with_context(|| more.to_owned())?;
    }
    Ok(())
}

#[test]
fn cursors_that_never_end_are_left() -> Result<()> {
    for (mode, most) in [("stuck", 1), ("circling", 16), ("endless", 16384 / 8 + 1)] {
        let mut simulator = start!(&[mode], &[("OMPT_COMPANION_EVENTS", "16384")]);
        simulator.obey("wf")?;
        let found = simulator.found()?;
        let records = found.records.context("no ring")?.records;
        assert!((1..=most).contains(&records.len()), "{mode}: {} records", records.len());
        assert_eq!(found.device.values.cut, 1, "{mode}");
        // What comes before the cursor fails is read all the same.
        let told = told(&simulator.lines, "record");
        compare(told.get(..1).context("no record")?, &records[..1], true)?;
        simulator.end().with_context(|| mode.to_owned())?;
    }
    Ok(())
}

#[test]
fn records_that_are_none_are_counted() -> Result<()> {
    for (mode, invalid) in [("invalid", 1), ("null", KINDS as u64 - 16), ("unknown", KINDS as u64 - 16)] {
        // Even kinds are whole; an invalid one ends the buffer, and the first is one.
        let mut simulator = start!(&[mode]);
        simulator.obey("wf")?;
        let found = simulator.found()?;
        let records = found.records.context("no ring")?.records;
        let told = told(&simulator.lines, "record");
        let whole: Vec<_> =
            told.into_iter().filter(|told| told["type"].as_u64().is_some_and(|n| n % 2 == 0 && n < 38)).collect();
        if mode == "invalid" {
            assert_eq!(records, []);
        } else {
            compare(&whole, &records, true).with_context(|| mode.to_owned())?;
        }
        assert_eq!((found.device.values.invalid, found.device.values.cut), (invalid, 0), "{mode}");
        simulator.end()?;
    }
    Ok(())
}

#[test]
fn buffers_are_few_and_those_refused_are_counted() -> Result<()> {
    let mut simulator = start!(&["hoard", "buffers=2", "bytes=1"]);
    simulator.obey("wwwww")?;
    let found = simulator.found()?;
    assert_eq!((found.device.values.buffers_given, found.device.values.buffers_refused), (2, 1));
    assert_eq!(told(&simulator.lines, "refused").len(), 1);
    simulator.obey("f")?;
    let found = simulator.found()?;
    compare_all(&simulator.lines, &found)?;
    assert_eq!(found.device.values.buffers_back, 2);
    // A device that ran out of buffers goes on when it is started again, which the command does.
    let before = told(&simulator.lines, "record").len();
    simulator.obey("swf")?;
    compare_all(&simulator.lines, &simulator.found()?)?;
    assert_eq!(told(&simulator.lines, "record").len(), before + KINDS);
    simulator.end().map(drop)
}

#[test]
fn several_threads_may_deliver_at_once() -> Result<()> {
    // So many records that the threads are at it for a while.
    let mut simulator = start!(&["hoard", "buffers=8", "bytes=32768"], &[("OMPT_COMPANION_EVENTS", "65536")]);
    for _ in 0..3 {
        simulator.obey(&"w".repeat(64))?;
        simulator.obey("c")?;
    }
    let found = simulator.found()?;
    let read = found.records.context("the device has no ring")?;
    assert_eq!(read.fragments, 0, "records are mixed up");
    let mut records = read.records;
    // Times are never the same twice, and the simulator tells in their order.
    records.sort_by_key(|record| record.time);
    compare(&told(&simulator.lines, "record"), &records, true)?;
    assert_eq!((records.len(), found.device.values.buffers_back), (3 * 64 * KINDS, 3 * 8));
    simulator.end().map(drop)
}

#[test]
fn no_buffer_of_somebody_else_is_read_or_taken() -> Result<()> {
    let mut simulator = start!(&[]);
    simulator.obey("x")?;
    let found = simulator.found()?;
    assert_eq!((found.device.values.cut, found.device.values.buffers_back), (1, 0));
    assert_eq!(found.device.values.records, 0);
    simulator.end().map(drop)
}

#[test]
fn a_device_that_does_not_start_is_told() -> Result<()> {
    let mut simulator = start!(&["refuse_start"]);
    simulator.obey("wpf")?;
    let found = simulator.found()?;
    assert_eq!((state(&found), found.device.answer(Answer::Start)), (Some(DeviceState::Stopped), Some(0)));
    // It may next time.
    simulator.obey("s")?;
    assert_eq!(calls(&simulator.end()?), ["start_trace", "start_trace"]);
    Ok(())
}

#[test]
fn without_a_ring_nothing_is_traced() -> Result<()> {
    let mut simulator = start!(&[], &[("OMPT_COMPANION_THREADS", "1")]);
    simulator.obey("wf")?;
    let found = simulator.found()?;
    assert_eq!((state(&found), found.block.header.threads_beyond), (Some(DeviceState::Untraceable), 1));
    assert_eq!(calls(&simulator.end()?), [""; 0]);
    Ok(())
}

#[test]
fn a_device_goes_and_comes_again() -> Result<()> {
    let mut simulator = start!(&[]);
    simulator.obey("wd")?;
    let found = simulator.found()?;
    assert_eq!((state(&found), found.ring_is_used), (Some(DeviceState::Gone), false));
    // The runtime flushes before it finalises a device, and its records stay.
    compare_all(&simulator.lines, &found)?;
    assert!(found.device.values.ended >= found.device.values.began);
    let before = told(&simulator.lines, "record").len();
    simulator.obey("wpsiwf")?;
    let again = simulator.found()?;
    assert_eq!((again.devices.len(), state(&again)), (1, Some(DeviceState::Tracing)));
    let records = again.records.context("no ring")?.records;
    compare(&told(&simulator.lines, "record")[before..], &records, true)?;
    assert_eq!((records.len(), again.device.values.ended), (KINDS, 0));
    simulator.end().map(drop)
}

#[test]
fn devices_beyond_the_table_are_counted() -> Result<()> {
    let mut simulator = start!(&[]);
    simulator.obey("mwf")?;
    let found = simulator.found()?;
    assert_eq!((found.devices.len(), found.block.header.devices_beyond), (DEVICES, 1));
    compare_all(&simulator.lines, &found)?;
    simulator.end().map(drop)
}

#[test]
fn a_child_has_no_device() -> Result<()> {
    let mut simulator = start!(&[]);
    simulator.obey("wkwf")?;
    assert_eq!(told(&simulator.lines, "child_state"), [&Value::from(DeviceState::LeftBehind as u64)]);
    // The parent has.
    compare_all(&simulator.lines, &simulator.found()?)?;
    simulator.end().map(drop)
}

#[test]
fn at_the_end_all_is_delivered_and_written_to_the_file() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let file = directory.path().join("block");
    let mut simulator = start!(&[], &[("OMPT_COMPANION_FILE", &file.to_string_lossy())]);
    simulator.obey("wwww")?;
    // Nothing but the end makes the device deliver its last buffer.
    let before = simulator.found()?.device.values.records;
    let lines = simulator.end()?;
    let found = read_file(&file)?;
    compare_all(&lines, &found)?;
    assert!(found.device.values.records > before);
    assert_eq!(calls(&lines), ["start_trace", "flush_trace", "stop_trace"]);
    assert_eq!(state(&found), Some(DeviceState::Stopped));
    Ok(())
}

/// `ompd-inspect history` shows devices, and what their records say, in every form it has.
#[test]
fn histories_show_devices() -> Result<()> {
    use ompd_inspection::history;
    use ompd_process::{Live, OpenOptions};
    use ompd_report::text::history::HistoryView;
    use ompd_report::{json, text};
    for (modes, translated) in [(&[][..], true), (&["missing=ompt_translate_time"], false), (&["native"], true)] {
        let mut simulator = start!(modes);
        simulator.obey("wwf")?;
        let found = simulator.found()?;
        let records = found.records.context("the device has no ring")?.records;
        let live = Live::open(simulator.pid(), &OpenOptions::default())?;
        let history = history::of_target(&live, u64::MAX)?;
        let [device] = &history.devices[..] else { panic!("one device, not {:?}", history.devices) };
        assert_eq!(device.records, records, "{modes:?}");
        assert_eq!((device.total, device.earlier), (records.len() as u64, false), "{modes:?}");
        assert_eq!(device.host_time.is_some(), translated, "{modes:?}");

        let shown = text::history::render(&history, HistoryView::ByThread, Some(200));
        assert!(shown.contains("Device 5 (Nobody;simulator;1), traced"), "{shown}");
        assert!(shown.contains(&format!("{0} of {0} records", records.len())), "{shown}");
        if !modes.contains(&"native") {
            assert!(shown.contains("teams asked for"), "{shown}");
            assert_eq!(shown.contains(" ticks "), !translated, "{shown}");
        }
        let document = serde_json::to_value(json::history::history(&history))?;
        let listed = document["devices"][0]["records"].as_array().context("records")?;
        assert_eq!(listed.len(), records.len(), "{modes:?}");
        for (listed, record) in listed.iter().zip(&records) {
            assert_eq!(listed["time"].as_u64(), record.time, "{listed}");
            assert_eq!(listed["host_op_id"].as_u64(), record.host_op_id, "{listed}");
            assert_eq!(listed["host_time"].as_f64(), record.host_time, "{listed}");
        }
        // A few of the last: those of the device are counted as those of threads.
        let few = history::of_target(&live, 3)?;
        assert_eq!(few.devices[0].records, records[records.len() - 3..], "{modes:?}");
        assert!(few.devices[0].earlier, "{modes:?}");

        let mut trace = Vec::new();
        text::trace::write(&history, &mut trace)?;
        let trace: Value = serde_json::from_slice(&trace)?;
        let events = trace["traceEvents"].as_array().context("events")?;
        let track = (1_i64 << 32) + 5;
        let on_track = events.iter().filter(|event| event["tid"] == track && event["ph"] != "M").count();
        let placed = records.iter().filter(|record| record.host_time.is_some()).count();
        assert_eq!(on_track, if translated { placed } else { 0 }, "{modes:?}");
        assert_eq!(placed > 0, translated, "{modes:?}");
        simulator.end()?;
    }
    Ok(())
}
