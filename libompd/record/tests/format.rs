//! Numbers of the format that companions of other versions have written: a change of one is a change of the version.

use ompt_record::block::{EVENT_WORDS, Held, PAGE, Ring, State, Stop, TASK_BEGUN, in_ring};
use ompt_record::device::{
    Answer, DeviceAt, DeviceRecord, DeviceState, DeviceValues, ENTRY_POINTS, HAS_DOCUMENTATION, HAS_HOST_TIME,
    HAS_LIMITS, HAS_LOOKUP, HAS_PROCESSORS, HAS_TIME, ITEMS, MapItem, More, NOT_ASKED,
};
use ompt_record::event::Event;

/// An event with another value in each of its fields.
const EVENT: Event = Event {
    position: 4,
    time: 0x1122,
    kind: 0x33,
    endpoint: 0x02,
    sub: 0x4455,
    flags: 0x6677_8899,
    region: 7,
    task: 8,
    other: 9,
    codeptr_ra: 0x4000,
};

/// The check word of [`EVENT`].
const CHECK: u64 = 0xe257_db52_b867_0693;

#[test]
fn stop_points_and_states_have_these_numbers() {
    assert_eq!(Stop::ALL.map(|stop| stop as u64), [1, 2, 3, 4, 5, 6]);
    assert_eq!((0..8).filter_map(Stop::from_number).collect::<Vec<_>>(), Stop::ALL);
    let states = [State::Recording, State::Paused, State::Ended];
    assert_eq!((0..5).filter_map(State::from_number).collect::<Vec<_>>(), states);
    assert_eq!(states.map(|state| state as u64), [1, 2, 3]);
    let of_devices: Vec<u64> = (0..20).filter_map(DeviceState::from_number).map(|state| state as u64).collect();
    assert_eq!(of_devices, (0..=8).collect::<Vec<u64>>());
}

#[test]
fn bits_are_where_other_versions_have_them() {
    assert_eq!(TASK_BEGUN, 0x8000_0000_0000_0000);
    let capabilities = [HAS_LOOKUP, HAS_DOCUMENTATION, HAS_TIME, HAS_HOST_TIME, HAS_PROCESSORS, HAS_LIMITS];
    assert_eq!(capabilities, [32, 33, 34, 35, 36, 37].map(|bit| 2_u64.pow(bit)));
    assert_eq!((in_ring::EVENTS_AT, in_ring::STOP_AT), (PAGE, PAGE - 8));
    assert_eq!(in_ring::HELD_AT, size_of::<Ring>() as u64);
    assert!(in_ring::SNAPSHOT_AT > in_ring::HELD_AT + size_of::<Held>() as u64);
}

#[test]
fn words_of_an_event_are_those_of_other_versions() {
    let words: [u64; EVENT_WORDS] = EVENT.words();
    assert_eq!(words, [5, 0x1122, 0x6677_8899_4455_0233, 7, 8, 9, 0x4000, CHECK]);
    assert_eq!(Event::from_words(words, EVENT.position), Ok(EVENT));
}

/// Four words of a part of a record.
fn words(part: &Event) -> [u64; 4] {
    [part.region, part.task, part.other, part.codeptr_ra]
}

#[test]
fn parts_of_a_record_are_those_of_other_versions() {
    let bare = DeviceRecord { delivered: 7, device: 2, kind: 5, items: [None; ITEMS], ..DeviceRecord::default() };
    let what = |event: &Event| (event.time, event.kind, event.endpoint, event.sub, event.flags, words(event));
    let parts: Vec<_> = bare.parts().events().iter().map(what).collect();
    let nothing_known = [(7, 64, 3, 0x0105, 2, [0; 4]), (7, 65, 0, 0, 0, [0; 4]), (7, 66, 0, 0, 0, [0; 4])];
    assert_eq!(parts, nothing_known);

    let mut items = [None; ITEMS];
    items[3] = Some(MapItem { bytes: Some(9), ..MapItem::default() });
    items[4] = Some(MapItem::default());
    let parts = DeviceRecord { items, ..bare }.parts();
    let parts: Vec<_> = parts.events()[3..].iter().map(what).collect();
    assert_eq!(parts, [(7, 69, 0, 4, 3, [0, 0, 9, 0]), (7, 69, 0, 0, 4, [0; 4])]);

    for (more, expected) in [
        (More::DataOperation { bytes: 8, source: -1, destination: 6 }, [1, 8, 0xffff_ffff, 6]),
        (More::Kernel { granted_teams: 8 }, [2, 8, 0, 0]),
        (More::Mutex { implementation: 8 }, [3, 8, 0, 0]),
        (More::ImplicitTask { flags: 8 }, [4, 8, 0, 0]),
        (More::Control { command: 8 }, [5, 8, 0, 0]),
        (More::Error { length: 8 }, [6, 8, 0, 0]),
        (More::Abstract { class: 8, hardware: 9 }, [7, 8, 9, 0]),
    ] {
        let parts = DeviceRecord { more: Some(more), ..bare }.parts();
        let [.., last] = parts.events() else { panic!("no part") };
        assert_eq!((last.kind, words(last)), (67, expected), "{more:?}");
    }
}

#[test]
fn answers_of_a_device_are_read_from_their_nibbles() {
    let nibbles = |of: &dyn Fn(u64) -> u64| (0..16).fold(0, |word, n| word | of(n) << (4 * n));
    let values = DeviceValues {
        number: 3,
        capabilities: 2_u64.pow(1) | 2_u64.pow(4) | HAS_LOOKUP,
        answers: nibbles(&|n| (n + 2) % 16),
        results_first: nibbles(&|n| n),
        results_second: nibbles(&|n| 15 - n),
        results_third: nibbles(&|_| 5),
        ..DeviceValues::default()
    };
    let device = DeviceAt { index: 0, values, type_name: String::new() };
    assert_eq!(device.number(), 3);
    let has: Vec<&str> = ENTRY_POINTS.into_iter().filter(|name| device.has(name)).collect();
    assert_eq!(has, [ENTRY_POINTS[1], ENTRY_POINTS[4]]);
    assert!(!device.has("ompt_of_no_document"));

    let asked = |nibble: u8| (nibble != NOT_ASKED).then_some(nibble);
    for kind in 1..=16 {
        assert_eq!(device.result(kind), asked(kind - 1), "kind {kind}");
        assert_eq!(device.result(kind + 16), asked(16 - kind), "kind {}", kind + 16);
        assert_eq!(device.result(kind + 32), Some(5), "kind {}", kind + 32);
    }
    assert_eq!((device.result(0), device.result(49)), (None, None));
    for (call, answer) in [(Answer::TraceOmpt, 2), (Answer::TraceNative, 3), (Answer::Stop, 7)] {
        assert_eq!(device.answer(call), Some(answer), "{call:?}");
    }
}
