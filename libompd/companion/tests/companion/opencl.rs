//! What is recorded on a runtime of which the processor is a device by OpenCL. It says "always" to the newer callbacks of target
//! constructs, and makes the older ones only.

use ompd_inspection::history::history as history_of;
use ompd_process::{Live, OpenOptions};
use ompd_runtime::companion::Words;
use ompt_record::device::{Answer, DeviceState, ENTRY_POINTS, HAS_HOST_TIME, HAS_PROCESSORS, HAS_TIME};
use ompt_record::event::Event;
use test_programs::Offloading;

use crate::common::{Held, answers, block, by_libraries, history};

/// Numbers of callbacks.
const TARGET: u8 = 8;
const DATA_OP: u8 = 9;
const SUBMIT: u8 = 10;
const INITIALIZE: u8 = 12;
const FINALIZE: u8 = 13;

/// Starts the program; `None`, with the reason told, if there is no such device.
fn start(variables: &[(&str, &str)]) -> Option<Held> {
    let program = match Offloading::by_opencl("opencl_device").expect("it builds") {
        Ok(program) => program,
        Err(skip) => {
            skip.show();
            return None;
        }
    };
    let (name, companion) = by_libraries();
    let own = program.opencl_variables();
    let own = own.iter().map(|(name, value)| (*name, &**value));
    let all: Vec<(&str, &str)> = own.chain([(name, &*companion)]).chain(variables.iter().copied()).collect();
    let running = Held::start(&program.program, &program.libraries, "a device by OpenCL", &all, &[]);
    let running = running.expect("it runs here");
    assert_eq!((running.told("devices"), running.told("wrong")), (vec![vec!["1"]], vec![vec!["0"]]));
    Some(running)
}

/// An event as the program says it; the end of an operation says what its beginning says.
fn line(event: &Event) -> String {
    let host = match event.sub {
        2 => event.region,
        3 => event.other,
        _ => 0,
    };
    match event.kind {
        TARGET if event.endpoint == 1 => format!("target {}", event.sub),
        TARGET => "end".to_owned(),
        DATA_OP => format!("op {} {} {host:x}", event.sub, event.flags),
        _ => format!("submit {}", event.flags),
    }
}

#[test]
fn older_target_callbacks_are_recorded_with_both_ends() {
    let Some(running) = start(&[]) else { return };
    let answers = answers(running.pid());
    let of = |numbers: [u8; 4]| numbers.map(|number| answers[usize::from(number) - 1]);
    assert_eq!(of([8, 9, 10, 22]), [5; 4], "the older forms are registered");
    assert_eq!(of([33, 34, 35, 36]), [15; 4], "the newer forms are not");
    let history = history(running.pid());
    let kinds = [TARGET, DATA_OP, SUBMIT];
    let events = history.threads.iter().flat_map(|thread| &thread.events).filter(|event| kinds.contains(&event.kind));
    let events: Vec<Event> = events.copied().collect();
    let (mut lines, mut open, mut operations) = (Vec::new(), None, 0);
    for pair in events.iter().filter(|event| event.kind != TARGET).collect::<Vec<_>>().chunks(2) {
        let [begin, end] = pair else { panic!("{pair:?}") };
        operations += 1;
        assert_eq!((begin.endpoint, end.endpoint), (1, 2), "{pair:?}");
        assert_eq!((begin.kind, begin.sub, begin.flags, begin.task), (end.kind, end.sub, end.flags, operations));
        assert_eq!((end.task, begin.time <= end.time), (operations, true), "{pair:?}");
    }
    for event in &events {
        if event.kind == TARGET {
            assert_eq!(event.flags, 0, "the device");
            let begun = if event.endpoint == 1 { open.replace(event.other) } else { open.take() };
            assert_eq!(begun.is_none(), event.endpoint == 1, "{event:?}");
            assert!(event.endpoint == 1 || begun == Some(event.other), "{event:?}");
        }
        if event.kind == TARGET || event.endpoint == 1 {
            lines.push(line(event));
        }
    }
    let output = running.output();
    let told: Vec<&str> = output.lines().filter(|line| !line.starts_with(['d', 'p', 'w'])).collect();
    assert_eq!(lines, told);
    running.end();
}

/// All entry points of device tracing but that of OpenMP 6.0 are there, and what they do is refused.
#[test]
fn a_device_that_refuses_to_be_traced_is_listed() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("history");
    let Some(running) = start(&[("OMPT_COMPANION_FILE", &file.to_string_lossy())]) else { return };
    let live = Live::open(running.pid(), &OpenOptions::default()).expect("it can be opened");
    let devices = block(running.pid()).devices(&Words::of(&live)).expect("they can be read");
    let [device] = &devices[..] else { panic!("{devices:?}") };
    let has = |name: &&&str| device.has(name);
    let missing: Vec<_> = ENTRY_POINTS.iter().filter(|name| !has(name)).collect();
    assert_eq!(missing, [&"ompt_get_buffer_limits"]);
    assert_eq!(DeviceState::from_number(device.values.state), Some(DeviceState::Untraceable));
    // The device has processors and a clock, of which the runtime makes no time of the host.
    let known = device.values.capabilities & (HAS_TIME | HAS_HOST_TIME | HAS_PROCESSORS);
    assert_eq!(known, HAS_TIME | HAS_PROCESSORS, "{device:?}");
    assert_eq!(running.told("processors"), [[device.values.processors.to_string()]]);
    let began = device.values.began;
    assert!(device.values.device_time >= began, "{began} is nanoseconds of the same clock: {device:?}");
    // Neither kind of record is to be had, so that no trace is started.
    let answers = [Answer::TraceOmpt, Answer::TraceNative, Answer::Start, Answer::Flush, Answer::Stop];
    let answers = answers.map(|call| device.answer(call));
    assert!(answers[..2].iter().all(|answer| answer.is_some_and(|answer| answer < 3)), "{answers:?}");
    assert_eq!(answers[2..], [None; 3]);
    assert!((1..=37).all(|kind| device.result(kind).is_none_or(|answer| answer < 3)), "{device:?}");
    running.end();
    let history = history_of(&file.to_string_lossy(), &OpenOptions::default(), u64::MAX).expect("a history");
    let count = |kind| history.threads.iter().flat_map(|thread| &thread.events).filter(|e| e.kind == kind).count();
    assert_eq!((count(INITIALIZE), count(FINALIZE)), (1, 1));
}
