//! What the companion asks a device, and what it keeps of the records.

use std::ffi::{c_char, c_int, c_uint, c_void};
use std::ptr::null_mut;

use ompt_record::block::RingState;
use ompt_record::device::{
    Answer, DeviceRecord, DeviceState, DeviceValues, Form, HAS_HOST_TIME, HAS_LIMITS, HAS_LOOKUP, HAS_PROCESSORS,
    HAS_TIME, ITEMS, MapItem, More, TEXT,
};
use ompt_record::event::Event;

use crate::device::{ABLE, Delivered, Device, deliver, found, request, ring_of, was_asked};
use crate::runtime::{TODAY, alone, events, make};
use crate::{Address, Dependence, thread_begins};

fn begin() {
    assert!(TODAY.start());
    thread_begins(1);
}

fn finalise(number: c_int) {
    make!(13, (c_int), (number));
}

/// `omp_control_tool`
fn control(command: u64) {
    let done = make!(11, (u64, u64, *mut c_void, Address) -> c_int, (command, 0, null_mut(), std::ptr::null()));
    assert_eq!(done, 0);
}

#[test]
fn what_a_device_says_of_itself_is_kept_where_it_is_known() {
    alone("devices::what_a_device_says_of_itself_is_kept_where_it_is_known", &[], || {
        begin();
        let known = HAS_LOOKUP | HAS_PROCESSORS | HAS_TIME | HAS_HOST_TIME | HAS_LIMITS;
        let all = [
            (ABLE, known, 96, 2.5),
            (Device { processors: 0, ..ABLE }, known, 0, 2.5),
            (Device { processors: -1, ..ABLE }, known & !HAS_PROCESSORS, 0, 2.5),
            (Device { seconds: 0.0, ..ABLE }, known & !HAS_HOST_TIME, 96, 0.0),
            (Device { seconds: f64::INFINITY, ..ABLE }, known & !HAS_HOST_TIME, 96, 0.0),
            (Device { missing: &["ompt_translate_time"], ..ABLE }, known & !HAS_HOST_TIME, 96, 0.0),
        ];
        for (number, (device, capabilities, processors, seconds)) in (0..).zip(all) {
            let found = device.introduce(number);
            assert_eq!(found.values.capabilities & !0xffff_ffff, capabilities, "device {number}");
            assert_eq!(found.values.processors, processors, "device {number}");
            assert_eq!(f64::from_bits(found.values.host_time), seconds, "device {number}");
            assert_eq!((found.values.device_time, found.values.limit_bytes), (77, 0x1000), "device {number}");
            assert_eq!(found.type_name, "a kind");
        }
        let numbers: Vec<_> = events().iter().map(|event| (event.kind, event.flags)).collect();
        assert_eq!(numbers, [(1, 0), (12, 0), (12, 1), (12, 2), (12, 3), (12, 4), (12, 5)]);
    });
}

#[test]
fn kinds_are_asked_for_at_once_and_then_one_by_one() {
    alone("devices::kinds_are_asked_for_at_once_and_then_one_by_one", &[], || {
        begin();
        // Some are traced.
        let at_once = Device { ompt: |_| 3, ..ABLE }.introduce(0);
        assert_eq!(at_once.answer(Answer::TraceOmpt), Some(3));
        let asked = || was_asked().into_iter().filter(|asked| !asked.starts_with("native")).collect::<Vec<_>>();
        assert_eq!(asked(), ["ompt 1 0", "start"]);
        assert!((1..=48).all(|kind| at_once.result(kind).is_none()));

        // Newer forms are refused, and so are the older ones of two of them. Of one no sensible answer comes.
        let answer = |kind: c_uint| match kind {
            0 | 33..=36 => 2,
            8 => 4,
            9 | 10 => 1,
            22 => 3,
            30 => -1,
            31 => 15,
            32 => 13,
            _ => 5,
        };
        let one_by_one = Device { ompt: answer, ..ABLE }.introduce(1);
        let kinds = (1..=37).filter(|kind| ![8, 9, 10, 22].contains(kind));
        let mut expected = vec!["ompt 1 0".to_owned()];
        for kind in kinds {
            expected.push(format!("ompt 1 {kind}"));
            let older = [(33, 8), (34, 9), (35, 10), (36, 22)].iter().find(|(newer, _)| *newer == kind);
            expected.extend(older.map(|(_, older)| format!("ompt 1 {older}")));
        }
        expected.push("start".to_owned());
        assert_eq!(asked(), expected);
        for kind in 1..=37_u8 {
            let answer = answer(kind.into());
            let expected = u8::try_from(answer).unwrap_or(14).min(14);
            assert_eq!(one_by_one.result(kind), Some(expected), "kind {kind}");
        }
        assert_eq!((one_by_one.result(38), one_by_one.answer(Answer::TraceOmpt)), (None, Some(2)));
        assert_eq!(one_by_one.values.state, DeviceState::Tracing as u64);
        // One kind is enough, also an older form.
        for (number, traced) in [(2, 1), (3, 37), (4, 22)] {
            let answer: fn(c_uint) -> c_int = match traced {
                1 => |kind| if kind == 1 { 3 } else { 1 },
                37 => |kind| if kind == 37 { 3 } else { 1 },
                _ => |kind| if kind == 22 { 3 } else { 1 },
            };
            let device = Device { ompt: answer, native: |_| 2, ..ABLE }.introduce(number);
            assert_eq!(device.values.state, DeviceState::Tracing as u64, "kind {traced}");
        }
    });
}

#[test]
fn native_records_alone_are_enough_to_trace_a_device() {
    alone("devices::native_records_alone_are_enough_to_trace_a_device", &[], || {
        begin();
        const NATIVE: Device = Device { missing: &["ompt_get_record_ompt"], ..ABLE };
        let at_once = Device { native: |_| 3, ..NATIVE }.introduce(0);
        assert_eq!((at_once.answer(Answer::TraceNative), at_once.values.results_native), (Some(3), u64::MAX));
        assert_eq!(was_asked(), ["native 1 0xff", "start"]);
        let one_by_one = Device { native: |flags| if flags == 0x80 { 3 } else { 2 }, ..NATIVE }.introduce(1);
        let flags = ["0xff", "0x1", "0x2", "0x4", "0x8", "0x10", "0x20", "0x40", "0x80"];
        let mut expected: Vec<String> = flags.iter().map(|flags| format!("native 1 {flags}")).collect();
        expected.push("start".to_owned());
        assert_eq!(was_asked(), expected);
        assert_eq!(one_by_one.values.results_native, 0xffff_ffff_3222_2222);
        assert_eq!(one_by_one.values.state, DeviceState::Tracing as u64);
        // "Impossible" to all, and an entry point that is missing.
        let lacking: [&[&str]; 2] = [&["ompt_get_record_ompt"], &["ompt_get_record_ompt", "ompt_set_trace_native"]];
        for (number, missing) in (2..).zip(lacking) {
            let device = Device { native: |_| 2, missing, ..ABLE }.introduce(number);
            assert_eq!((device.values.state, device.values.ring), (DeviceState::Untraceable as u64, 0));
        }
        assert!(was_asked().iter().all(|asked| asked.starts_with("native")), "it is not started");
        // Where records cannot be read, or tracing cannot be ended, nothing is asked for.
        let needed = ["ompt_advance_buffer_cursor", "ompt_get_record_type", "ompt_start_trace", "ompt_stop_trace"]
            .map(|name| [name]);
        for (number, missing) in (4..).zip(&needed) {
            let device = Device { missing: Vec::leak(missing.to_vec()), ..ABLE }.introduce(number);
            assert_eq!(device.values.state, DeviceState::Untraceable as u64, "{missing:?}");
            assert!(was_asked().is_empty(), "{missing:?}");
        }
    });
}

#[test]
fn a_device_gets_as_many_buffers_as_it_wants_and_at_most_eight() {
    alone("devices::a_device_gets_as_many_buffers_as_it_wants_and_at_most_eight", &[], || {
        begin();
        // The last one recommends nothing.
        for (number, (wants, gets)) in (0..).zip([(-1, 8), (0, 1), (1, 1), (3, 3), (9, 8), (0, 8)]) {
            let missing: &[&str] = if number == 5 { &["ompt_get_buffer_limits"] } else { &[] };
            Device { buffers: wants, missing, ..ABLE }.introduce(number);
            let lent: Vec<_> = std::iter::from_fn(|| request(number)).take(20).collect();
            assert_eq!(lent.len(), gets, "{wants}");
            let size = if number == 5 { 0x1_0000 } else { 0x1000 };
            assert!(lent.iter().all(|(_, bytes)| *bytes >= size));
            for (buffer, _) in &lent {
                deliver(number, *buffer, 0, &[], 1);
            }
            let values = found(number).values;
            let counted = (values.buffers_given, values.buffers_refused, values.buffers_back);
            assert_eq!(counted, (gets as u64, 1, gets as u64), "{wants}");
            assert_eq!((values.deliveries, values.cut, values.records), (gets as u64, 0, 0));
            assert_eq!(values.delivered_by, u64::from(nix::unistd::gettid().as_raw().cast_unsigned()));
            // It may go on as before.
            let (buffer, _) = request(number).expect("it gave them back");
            deliver(number, buffer, 0, &[], 1);
        }
    });
}

/// Tracing is started anew where a device did not get a buffer, and goes on elsewhere.
#[test]
fn a_device_without_a_buffer_is_started_again_after_a_pause() {
    alone("devices::a_device_without_a_buffer_is_started_again_after_a_pause", &[], || {
        begin();
        let one_buffer = Device { buffers: 1, ..ABLE };
        one_buffer.introduce(0);
        was_asked();
        for command in [2, 1] {
            control(command);
        }
        assert_eq!(was_asked(), ["pause 1", "pause 0"]);
        let (buffer, _) = request(0).expect("a buffer");
        assert_eq!(request(0), None);
        for command in [2, 1, 2, 1] {
            control(command);
        }
        assert_eq!(was_asked(), ["pause 1", "flush", "stop", "start", "pause 1", "pause 0"]);
        // The next device in its place has not been refused anything.
        assert_eq!(request(0), None);
        deliver(0, buffer, 0, &[], 1);
        finalise(0);
        one_buffer.introduce(0);
        was_asked();
        control(1);
        assert!(was_asked().is_empty());
        // One that cannot pause is stopped.
        Device { commands: [1, 0, 1], ..one_buffer }.play();
        control(2);
        assert_eq!(was_asked(), ["pause 1", "flush", "stop"]);
        assert_eq!(found(0).values.state, DeviceState::Stopped as u64);
        // One that does not stop either is traced all the same.
        Device { commands: [1, 0, 0], ..one_buffer }.play();
        control(1);
        control(4);
        assert_eq!(was_asked(), ["start", "flush", "stop"]);
        assert_eq!(found(0).values.state, DeviceState::Tracing as u64);
        assert_eq!(found(0).answer(Answer::Stop), Some(0));
    });
}

#[test]
fn a_device_that_is_introduced_again_begins_with_nothing() {
    alone("devices::a_device_that_is_introduced_again_begins_with_nothing", &[], || {
        begin();
        let first = ABLE.introduce(3);
        let (buffer, bytes) = request(3).expect("a buffer");
        deliver(3, buffer, bytes + 1, &[], 0);
        deliver(3, buffer, 8, &[Delivered(9, std::ptr::null())], 1);
        let values = found(3).values;
        assert_eq!((values.deliveries, values.cut, values.invalid, values.buffers_back), (2, 1, 1, 1));
        assert_eq!(ring_of(3).1, RingState::Used as u64);
        // It was not finalised.
        let second = Device::introduce_unknown(3);
        assert_eq!(second.index, first.index);
        let values = second.values;
        let nothing = DeviceValues {
            state: DeviceState::Untraceable as u64,
            number: 3,
            answers: u64::MAX,
            results_first: u64::MAX,
            results_second: u64::MAX,
            results_third: u64::MAX,
            results_native: u64::MAX,
            began: values.began,
            ..DeviceValues::default()
        };
        assert_eq!(values, nothing);
        assert!(values.began >= first.values.began && first.values.began > 0);
    });
}

#[test]
fn nothing_is_left_of_the_last_device_but_its_records() {
    alone("devices::nothing_is_left_of_the_last_device_but_its_records", &[], || {
        begin();
        let is_mapped = |address: usize| {
            let maps = std::fs::read_to_string("/proc/self/maps").expect("own mappings");
            maps.lines().any(|line| {
                let range = line.split(' ').next().and_then(|range| range.split_once('-'));
                let hex = |text| usize::from_str_radix(text, 16).expect("an address");
                range.is_some_and(|(from, to)| (hex(from)..hex(to)).contains(&address))
            })
        };
        let large = Device { bytes: 1 << 20, ..ABLE };
        large.introduce(1);
        let (buffer, _) = request(1).expect("a buffer");
        deliver(1, buffer, 0, &[], 1);
        let address = buffer.addr();
        large.introduce(2);
        assert_eq!(ring_of(1).1, RingState::Used as u64);
        finalise(1);
        let gone = found(1).values;
        assert_eq!(gone.state, DeviceState::Gone as u64);
        assert!(gone.ended >= gone.began && found(2).values.ended == 0);
        assert_eq!(ring_of(1).1, RingState::Ended as u64);
        assert!(is_mapped(address), "another device may use it");
        // What comes late is of no device.
        deliver(1, buffer, 8, &[], 1);
        assert_eq!((found(1).values.deliveries, request(1)), (1, None));
        finalise(2);
        assert!(!is_mapped(address));
        // One that is not there cannot go.
        finalise(7);
        let kinds: Vec<_> = events().iter().skip(1).map(|event| (event.kind, event.flags)).collect();
        assert_eq!(kinds, [(12, 1), (12, 2), (13, 1), (13, 2), (13, 7)]);
    });
}

/// A record of OMPT, as a device writes it: the kind, and what the union has.
#[repr(C)]
struct Record<T> {
    kind: c_uint,
    time: u64,
    thread_id: u64,
    target_id: u64,
    union: T,
}

fn record<T>(kind: c_uint, union: T) -> Record<T> {
    Record { kind, time: 11, thread_id: 12, target_id: 13, union }
}

fn ompt<T>(record: &Record<T>) -> Delivered {
    Delivered(1, (&raw const *record).cast())
}

/// What is known of each.
const KEPT: DeviceRecord = DeviceRecord {
    position: 0,
    delivered: 0,
    device: 0,
    form: Form::Ompt,
    kind: 0,
    time: Some(11),
    end_time: None,
    host_time: Some(2.5),
    host_end_time: None,
    thread_id: Some(12),
    target_id: Some(13),
    host_op_id: None,
    what: None,
    more: None,
    text: None,
    items: [None; ITEMS],
};

#[test]
fn what_a_record_has_not_is_not_read() {
    #[repr(C)]
    struct TaskCreate(u64, u64, c_int, c_int, u64);
    #[repr(C)]
    struct Map(u64, c_uint, *const u64, *const u64, *const u64, *const c_uint, u64);
    #[repr(C)]
    struct Error(c_int, *const c_char, usize, u64);
    #[repr(C)]
    struct Dependences(u64, Dependence, c_int);
    alone("devices::what_a_record_has_not_is_not_read", &[], || {
        begin();
        ABLE.introduce(4);
        let (buffer, bytes) = request(4).expect("a buffer");
        let creation = record(5, TaskCreate(1, 2, 4, 5, 6));
        let (host, sizes) = ([0x10, 0x20], [8, 9]);
        let map = record(36, Map(13, 1, host.as_ptr(), std::ptr::null(), sizes.as_ptr(), std::ptr::null(), 7));
        let error = |length| record(37, Error(2, c"ab".as_ptr(), length, 8));
        let (whole, cut) = (error(64), error(1));
        let dependences = record(18, Dependences(1, Dependence { variable: 0x90, dependence_type: 0x1_ffff }, 3));
        let (below, above) = (record(0, ()), record(38, ()));
        let all = [
            ompt(&creation),
            ompt(&map),
            ompt(&whole),
            ompt(&cut),
            ompt(&dependences),
            ompt(&below),
            ompt(&above),
            Delivered(1, std::ptr::null()),
            Delivered(2, std::ptr::null()),
        ];
        deliver(4, buffer, bytes, &all, 1);
        let values = found(4).values;
        assert_eq!((values.records, values.invalid, values.cut), (5, 4, 0));
        let event = |kind: u8| Event { kind, ..Event::default() };
        let text = |bytes: &[u8]| {
            let mut text = [0; TEXT];
            text[..bytes.len()].copy_from_slice(bytes);
            Some(text)
        };
        let mut items = [None; ITEMS];
        items[0] = Some(MapItem { host: Some(0x10), bytes: Some(8), ..MapItem::default() });
        let of_error = |length: u32, kept: &[u8]| DeviceRecord {
            kind: 37,
            what: Some(Event { sub: 2, flags: length, codeptr_ra: 8, ..event(37) }),
            more: Some(More::Error { length: length.into() }),
            text: text(kept),
            ..KEPT
        };
        let expected = [
            DeviceRecord {
                kind: 5,
                what: Some(Event { sub: 1, flags: 4, task: 2, other: 1, codeptr_ra: 6, ..event(5) }),
                ..KEPT
            },
            DeviceRecord {
                kind: 36,
                what: Some(Event { flags: 1, other: 13, codeptr_ra: 7, ..event(36) }),
                items,
                ..KEPT
            },
            of_error(64, b"ab"),
            of_error(1, b"a"),
            DeviceRecord {
                kind: 18,
                what: Some(Event { sub: 0xffff, flags: 3, task: 1, other: 0x90, ..event(18) }),
                ..KEPT
            },
        ];
        assert_eq!(ring_of(4).0, expected);
    });
}

/// No record has less than eight bytes.
#[test]
fn more_records_than_bytes_have_room_for_are_cut() {
    alone("devices::more_records_than_bytes_have_room_for_are_cut", &[], || {
        begin();
        ABLE.introduce(4);
        let (buffer, size) = request(4).expect("a buffer");
        let flush = record(29, 0x4000_u64);
        let three = [ompt(&flush); 3];
        let mut before = (0, 0);
        for (bytes, records, cut) in [(8, 2, 1), (15, 2, 1), (16, 3, 0), (size, 3, 0), (size + 1, 0, 1), (0, 0, 0)] {
            deliver(4, buffer, bytes, &three, 0);
            let values = found(4).values;
            assert_eq!((values.records - before.0, values.cut - before.1), (records, cut), "{bytes} bytes");
            before = (values.records, values.cut);
        }
        // A buffer that is not the device's.
        deliver(4, (&raw const flush).cast_mut().cast(), 16, &three, 1);
        let values = found(4).values;
        assert_eq!((values.records, values.cut, values.buffers_back), (before.0, before.1 + 1, 0));
    });
}

/// What is behind a native record only the device knows. Its abstract form may have no end.
#[test]
fn a_native_record_has_the_number_of_its_operation() {
    #[repr(C)]
    struct Abstract(c_uint, *const c_char, u64, u64, u64);
    alone("devices::a_native_record_has_the_number_of_its_operation", &[], || {
        begin();
        ABLE.introduce(4);
        let (buffer, bytes) = request(4).expect("a buffer");
        let [ended, open] = [31, 0].map(|end| Abstract(2, c"kernel".as_ptr(), 30, end, 40));
        let native = |of: &Abstract| Delivered(2, (&raw const *of).cast());
        deliver(4, buffer, bytes, &[native(&ended), native(&open)], 1);
        let mut text = [0; TEXT];
        text[..6].copy_from_slice(b"kernel");
        let with = |host_op_id: u64, end: Option<u64>| DeviceRecord {
            form: Form::Native,
            time: Some(30),
            end_time: end,
            host_time: Some(2.5),
            host_end_time: end.map(|_| 2.5),
            host_op_id: Some(host_op_id),
            more: Some(More::Abstract { class: 2, hardware: 40 }),
            text: Some(text),
            ..DeviceRecord::default()
        };
        assert_eq!(ring_of(4).0, [with(500, Some(31)), with(501, None)]);
    });
}
