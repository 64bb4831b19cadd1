//! What is recorded of a program that offloads, on LLVM's runtime with its plugin for the host. The process itself
//! plays the devices, and all else is as with any device.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

use ompd_inspection::history::{History, ThreadHistory, history as history_of};
use ompd_process::{Live, OpenOptions};
use ompd_report::json;
use ompd_report::text::{How, StackView, View, plain, render};
use ompd_runtime::companion::{Words, find, words};
use ompt_record::device::{DeviceAt, DeviceState, HAS_LOOKUP};
use ompt_record::event::Event;
use test_programs::{Offloading, Opt, mapped_files};

use crate::common::{Held, by_libraries, history, inspection};

/// Numbers of callbacks.
const IMPLICIT_TASK: u8 = 7;
const INITIALIZE: u8 = 12;
const FINALIZE: u8 = 13;
const LOAD: u8 = 14;
const TARGET: u8 = 33;
const DATA_OP: u8 = 34;
const SUBMIT: u8 = 35;
/// Endpoints.
const BEGIN: u8 = 1;
const END: u8 = 2;
/// Kinds of operations.
const ALLOC: u16 = 1;
const TO: u16 = 2;
const FROM: u16 = 3;
const DELETE: u16 = 4;
/// A target region.
const REGION: u16 = 1;

/// Devices the plugin for the host has.
const DEVICES: usize = 4;

/// Where the call of the runtime is: function and line, as far as they are known. Of optimised code the line is left
/// out: the compiler does not give each call its own.
type SourceLine = (Option<String>, Option<u32>);

/// A part of a construct.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    /// Kind, bytes, address on the host if there is one.
    Operation { kind: u16, bytes: u32, host: u64, place: SourceLine },
    /// Teams.
    Submit(u32),
}

/// A construct, or a half of one; or an operation that belongs to none.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Construct {
    /// Kind, device, place.
    target: Option<(u16, u32, SourceLine)>,
    parts: Vec<Part>,
}

fn number<T: std::str::FromStr>(text: &str) -> T {
    text.parse().unwrap_or_else(|_| panic!("{text} is no number"))
}

/// What the initial thread said it did, in order.
fn told(output: &str, opt: Opt) -> Vec<Construct> {
    let told_place = |words: &[&str]| (Some(words[0].to_owned()), line_of(Some(number(words[1])), opt));
    let mut all = Vec::new();
    let mut open: Option<Construct> = None;
    for line in output.lines() {
        let words: Vec<_> = line.split(' ').collect();
        let part = match words[0] {
            "target" => {
                let target = Some((number(words[1]), number(words[2]), told_place(&words[3..])));
                assert!(open.replace(Construct { target, parts: Vec::new() }).is_none(), "{output}");
                continue;
            }
            "end" => {
                all.push(open.take().expect("it has begun"));
                continue;
            }
            "op" => Part::Operation {
                kind: number(words[1]),
                bytes: number(words[2]),
                host: u64::from_str_radix(words[3], 16).expect("an address"),
                place: told_place(&words[4..]),
            },
            "submit" => Part::Submit(number(words[1])),
            _ => continue,
        };
        match &mut open {
            Some(construct) => construct.parts.push(part),
            None => all.push(Construct { target: None, parts: vec![part] }),
        }
    }
    assert!(open.is_none(), "{output}");
    all
}

fn line_of(line: Option<u32>, opt: Opt) -> Option<u32> {
    line.filter(|_| opt == Opt::O0)
}

fn place(history: &History, event: &Event, opt: Opt) -> SourceLine {
    let place = history.places.get(&event.codeptr_ra).unwrap_or_else(|| panic!("nothing is known of {event:?}"));
    (place.function.as_deref().map(str::to_owned), line_of(place.line, opt))
}

/// The numbers the companion has given.
#[derive(Default)]
struct Ids {
    targets: BTreeSet<u64>,
    operations: BTreeSet<u64>,
}

/// What a thread did. Fails unless all that begins ends, with the same numbers, and memory of a device is used only
/// while it is allocated.
fn did(history: &History, thread: &ThreadHistory, ids: &mut Ids, opt: Opt) -> Vec<(u64, Construct)> {
    let mut all = Vec::new();
    // The construct that has begun, and its event.
    let mut open: Option<(&Event, Construct)> = None;
    // Allocated, by address on the device.
    let mut there: BTreeSet<u64> = BTreeSet::new();
    let mut events = thread.events.iter().filter(|event| [TARGET, DATA_OP, SUBMIT].contains(&event.kind));
    while let Some(event) = events.next() {
        if event.kind == TARGET {
            if event.endpoint == BEGIN {
                assert!(open.is_none(), "{event:?} within another");
                assert!(ids.targets.insert(event.other) && event.other != 0, "{event:?}");
                let target = Some((event.sub, event.flags, place(history, event, opt)));
                open = Some((event, Construct { target, parts: Vec::new() }));
            } else {
                let (begin, construct) = open.take().expect("it has begun");
                let same = Event { position: event.position, time: event.time, endpoint: END, ..*begin };
                assert_eq!((*event, event.time >= begin.time), (same, true));
                all.push((begin.task, construct));
            }
            continue;
        }
        // Operations are not within one another.
        let end = events.next().unwrap_or_else(|| panic!("{event:?} does not end"));
        let other = if (event.kind, event.sub) == (DATA_OP, ALLOC) { end.other } else { event.other };
        let same = Event { position: end.position, time: end.time, endpoint: END, other, ..*event };
        assert_eq!((event.endpoint, *end, end.time >= event.time), (BEGIN, same, true));
        assert!(ids.operations.insert(event.task) && event.task != 0, "{event:?}");
        let (source, destination) = (end.region, end.other);
        let part = if event.kind == SUBMIT {
            let target = open.as_ref().map(|(begin, _)| begin.other);
            assert_eq!(Some(event.other), target, "{event:?} is of another construct");
            Part::Submit(event.flags)
        } else {
            let host = match event.sub {
                ALLOC => {
                    assert!(there.insert(destination) && destination != 0, "{end:?}");
                    source
                }
                TO => {
                    assert!(there.contains(&destination), "{event:?}");
                    source
                }
                FROM => {
                    assert!(there.contains(&source), "{event:?}");
                    destination
                }
                DELETE => {
                    assert!(there.remove(&source), "{event:?}");
                    destination
                }
                _ => panic!("{event:?}"),
            };
            Part::Operation { kind: event.sub, bytes: event.flags, host, place: place(history, event, opt) }
        };
        match &mut open {
            Some((_, construct)) => construct.parts.push(part),
            None => all.push((0, Construct { target: None, parts: vec![part] })),
        }
    }
    assert!(open.is_none() && there.is_empty(), "{open:?} {there:?}");
    all
}

/// A target region that maps one variable there and back, whose address is not told.
fn there_and_back(device: u32, bytes: u32, place: &SourceLine) -> Construct {
    let operation = |kind, bytes| Part::Operation { kind, bytes, host: 0, place: place.clone() };
    let parts = vec![
        operation(ALLOC, bytes),
        operation(TO, bytes),
        Part::Submit(1),
        operation(FROM, bytes),
        operation(DELETE, 0),
    ];
    Construct { target: Some((REGION, device, place.clone())), parts }
}

/// The same without addresses.
fn without_addresses(mut construct: Construct) -> Construct {
    for part in &mut construct.parts {
        if let Part::Operation { host, .. } = part {
            *host = 0;
        }
    }
    construct
}

/// Whether a construct is in this function.
fn is_in(construct: &Construct, function: Option<&str>) -> bool {
    construct.target.as_ref().is_some_and(|(_, _, place)| place.0.as_deref() == function)
}

/// Code for devices that the plugin has written to files and mapped, and which it leaves there.
struct Images(Vec<PathBuf>);

impl Drop for Images {
    fn drop(&mut self) {
        for image in &self.0 {
            // Nothing can be done about one that cannot be removed.
            let _ = fs::remove_file(image);
        }
    }
}

fn start(program: &Offloading, variables: &[(&str, &str)]) -> (Held, Images) {
    let (running, images) = start_any(program, variables);
    // One for each device that has code.
    assert_eq!(images.0.len(), 3, "{:?}", images.0);
    (running, images)
}

fn start_any(program: &Offloading, variables: &[(&str, &str)]) -> (Held, Images) {
    let (name, companion) = by_libraries();
    let mut all = vec![(name, &*companion), ("OMP_TARGET_OFFLOAD", "mandatory")];
    all.extend(variables);
    let running = Held::start(&program.program, &program.libraries, "LLVM that offloads", &all, &[]);
    let running = running.expect("clang ran on its library");
    let mut images: Vec<PathBuf> = mapped_files(running.pid()).expect("its files").into_iter().collect();
    images.retain(|file| file.to_string_lossy().starts_with("/tmp/tmpfile_"));
    (running, Images(images))
}

/// The program; `None`, with the reason told, if there is none.
fn program(opt: Opt) -> Option<Offloading> {
    let program = Offloading::build("offloaded", opt).expect("it builds");
    program.inspect_err(test_programs::Skip::show).ok()
}

/// What the program found when it looked whether all went as it should.
fn went_well(running: &Held) {
    assert_eq!(running.told("devices"), [[DEVICES.to_string()]]);
    assert_eq!((running.told("host"), running.told("wrong")), (vec![vec!["0"]], vec![vec!["0"]]));
}

fn devices(pid: i32) -> Vec<DeviceAt> {
    let live = Live::open(pid, &OpenOptions::default()).expect("it can be opened");
    let block = find(&live, &words(&live)).expect("a companion").expect("a block");
    for callback in [INITIALIZE, FINALIZE, LOAD, TARGET, DATA_OP, SUBMIT] {
        assert_eq!(block.header.result(callback), Some(5), "callback {callback} comes always");
    }
    block.devices(&Words::of(&live)).expect("they can be read")
}

#[test]
fn what_is_offloaded_is_recorded_once() {
    for opt in [Opt::O0, Opt::O2] {
        let Some(program) = program(opt) else { return };
        let (running, _images) = start(&program, &[]);
        went_well(&running);
        let history = history(running.pid());
        assert!(history.threads.iter().all(|thread| (thread.torn, thread.overwritten, thread.not_shown) == (0, 0, 0)));
        let mut ids = Ids::default();
        let did: BTreeMap<u64, _> =
            history.threads.iter().map(|thread| (thread.lwp, did(&history, thread, &mut ids, opt))).collect();

        // Each of two threads one, and one as a task that any thread may have done.
        let one = |word| {
            let lines = running.told(word);
            let [function, line, bytes] = lines[0][..] else { panic!("{lines:?}") };
            (function.to_owned(), number::<u32>(line), number::<u32>(bytes))
        };
        let (both, both_at, both_bytes) = one("both");
        let (_, nowait_at, nowait_bytes) = one("nowait");
        let of_both = did.iter().flat_map(|(lwp, all)| {
            all.iter().filter(|(_, one)| is_in(one, Some(&both))).map(|(_, one)| (*lwp, without_addresses(one.clone())))
        });
        let of_both: BTreeSet<(u64, Construct)> = of_both.collect();
        let initial = running.pid() as u64;
        let threads: BTreeSet<u64> = of_both.iter().map(|(lwp, _)| *lwp).collect();
        assert_eq!((threads.len(), threads.contains(&initial)), (2, true), "{of_both:#?}");
        let place = (Some(both.clone()), line_of(Some(both_at), opt));
        for (lwp, construct) in &of_both {
            let device = u32::from(*lwp != initial);
            assert_eq!(*construct, there_and_back(device, both_bytes, &place));
        }
        let of_task: Vec<_> =
            did.values().flatten().filter(|(_, one)| is_in(one, None)).map(|(_, one)| one.clone()).collect();
        let [of_task] = &of_task[..] else { panic!("{did:#?}") };
        // It is in a function that the compiler made, of which nothing but the line is known.
        assert_eq!(
            without_addresses(of_task.clone()),
            there_and_back(0, nowait_bytes, &(None, line_of(Some(nowait_at), opt)))
        );

        // The rest is the initial thread's.
        let others = did.iter().flat_map(|(lwp, all)| all.iter().map(move |(task, one)| (lwp, task, one)));
        let others = others.filter(|(_, _, one)| !is_in(one, Some(&both)) && !is_in(one, None));
        let mut recorded = Vec::new();
        let thread = history.threads.iter().find(|thread| thread.lwp == initial).expect("the initial thread");
        let task = thread.events.iter().find(|event| event.kind == IMPLICIT_TASK).expect("its task").task;
        for (lwp, of, construct) in others {
            assert_eq!(*lwp, initial, "{construct:?}");
            assert!(*of == task || construct.target.is_none(), "{construct:?} is of task {of}");
            recorded.push(construct.clone());
        }
        assert_eq!(recorded, told(&running.output(), opt), "{opt:?}");
        running.end();
    }
}

#[test]
fn devices_are_introduced_loaded_and_finalised() {
    let Some(program) = program(Opt::O2) else { return };
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("history");
    let (running, _images) = start(&program, &[("OMPT_COMPANION_FILE", &file.to_string_lossy())]);
    let devices = devices(running.pid());
    assert_eq!(devices.iter().map(DeviceAt::number).collect::<Vec<_>>(), [0, 1, 2, 3]);
    for device in &devices {
        // Its look-up function knows nothing: there is no trace to be had.
        assert_eq!(DeviceState::from_number(device.values.state), Some(DeviceState::Untraceable), "{device:?}");
        assert_eq!((device.values.capabilities, device.values.ring), (HAS_LOOKUP, 0), "{device:?}");
        assert_eq!(device.type_name, "generic-64bit", "{device:?}");
        assert_eq!((device.values.began > 0, device.values.ended), (true, 0), "{device:?}");
    }
    running.end();
    let history = history_of(&file.to_string_lossy(), &OpenOptions::default(), u64::MAX).expect("a history");
    let of = |kind| {
        let events = history.threads.iter().flat_map(|thread| &thread.events).filter(move |event| event.kind == kind);
        let mut devices: Vec<u32> = events.map(|event| event.flags).collect();
        devices.sort_unstable();
        devices
    };
    assert_eq!(of(INITIALIZE), [0, 1, 2, 3]);
    // Memory can be had of a device that has no code.
    assert_eq!(of(LOAD), [0, 1, 2]);
    assert_eq!(of(FINALIZE), [0, 1, 2, 3]);
}

#[test]
fn in_a_pause_nothing_is_recorded_of_devices_but_which_there_are() {
    let Some(program) = program(Opt::O2) else { return };
    let (running, _images) = start(&program, &[("OMPT_COMPANION_START", "paused")]);
    went_well(&running);
    assert_eq!(devices(running.pid()).len(), DEVICES);
    let history = history(running.pid());
    assert!(history.threads.iter().all(|thread| thread.events.is_empty()), "{history:?}");
    running.end();
}

/// A process that hangs in a target region: its thread is shown with the device, the construct and the kernel.
#[test]
fn a_thread_that_hangs_in_a_target_region_is_shown_with_its_device() {
    let built = Offloading::build("offload_hang", Opt::O0).expect("it builds");
    let Ok(program) = built.inspect_err(test_programs::Skip::show) else { return };
    let (running, _images) = start_any(&program, &[]);
    let told = running.told("construct");
    let [function, line] = told[0][..] else { panic!("{told:?}") };
    let pid = running.pid();
    let inspection = inspection(&pid.to_string());
    let report = serde_json::to_value(json::report(&inspection)).expect("it is JSON");
    let threads = report["runtimes"][0]["threads"].as_array().expect("threads");
    let of = |lwp: i32| threads.iter().find(|thread| thread["lwp"] == lwp).expect("the thread");
    let on_device = &of(pid)["on_device"];
    let construct = &on_device["construct"];
    assert_eq!((&construct["kind"], &construct["device"]), (&"target".into(), &1.into()), "{report:#}");
    let location = &construct["called"]["location"];
    assert_eq!(
        (&location["function"], &location["line"]),
        (&function.into(), &number::<u32>(line).into()),
        "{on_device:#}"
    );
    let operation = &on_device["operation"];
    assert_eq!((&operation["kind"], &operation["teams"]), (&"submit".into(), &1.into()), "{on_device:#}");
    assert!(threads.iter().all(|thread| thread["lwp"] == pid || thread.get("on_device").is_none()), "{report:#}");
    let words = format!("in target on device 1 (offload_hang.c:{line}), kernel of 1 team: ");
    for view in [View::Summary, View::Threads, View::Stacks(StackView::Rows), View::Why(pid)] {
        let how = How { width: Some(300), verbose: false, ..Default::default() };
        let shown = plain(&render(&inspection, view, how));
        assert!(shown.contains(&words), "{view:?}: {shown}");
    }
    running.end();
}
