//! The lists of numbers were taken from the documents by hand, and not from the tables.

use std::collections::BTreeSet;

use super::EventToday::{Callback, Gone};
use super::*;
use crate::ompt;

const EVERY: [Enumeration; 18] = [
    Enumeration::State,
    Enumeration::SetResult,
    Enumeration::Thread,
    Enumeration::Endpoint,
    Enumeration::SyncRegion,
    Enumeration::Work,
    Enumeration::Mutex,
    Enumeration::Dependence,
    Enumeration::TaskStatus,
    Enumeration::TaskFlag,
    Enumeration::ParallelFlag,
    Enumeration::CancelFlag,
    Enumeration::Target,
    Enumeration::TargetDataOp,
    Enumeration::TargetMapFlag,
    Enumeration::NativeFlag,
    Enumeration::Record,
    Enumeration::NativeRecord,
];

/// All numbers that a generation has a meaning for, below this bound or a single bit.
fn numbers(generation: Generation, what: Enumeration) -> BTreeSet<u64> {
    let all = (0..1024).chain((0..64).map(|n| 1 << n)).chain([u64::MAX, u64::MAX - 1]);
    all.filter(|number| generation.decode(what, *number).is_some()).collect()
}

fn today(generation: Generation, what: Enumeration, number: u64) -> Today {
    generation.decode(what, number).unwrap_or_else(|| panic!("{generation:?} {what:?} {number:#x}")).today
}

#[test]
fn states_of_tr2() {
    let list = [
        (0x00, "work_serial", 0x000),
        (0x01, "work_parallel", 0x001),
        (0x02, "work_reduction", 0x002),
        (0x10, "idle", 0x100),
        (0x20, "overhead", 0x101),
        (0x40, "wait_barrier", 0x010),
        (0x41, "wait_barrier_implicit", 0x013),
        (0x42, "wait_barrier_explicit", 0x014),
        (0x50, "wait_taskwait", 0x020),
        (0x51, "wait_taskgroup", 0x021),
        (0x60, "wait_lock", 0x041),
        (0x62, "wait_critical", 0x042),
        (0x63, "wait_atomic", 0x043),
        (0x64, "wait_ordered", 0x044),
        (0x70, "undefined", 0x102),
    ];
    for (number, name, now) in list {
        let decoded = Generation::Tr2.decode(Enumeration::State, number);
        assert_eq!(decoded, Some(Decoded { name, today: Today::Number(now) }), "{number:#x}");
        assert_eq!(ompt::state(now), Some(name));
    }
    let of = |number| Generation::Tr2.decode(Enumeration::State, number);
    assert_eq!(of(0x61), Some(Decoded { name: "wait_nest_lock", today: Today::Folded(0x041) }));
    assert_eq!(of(0x71), Some(Decoded { name: "first", today: Today::Gone }));
    let known: BTreeSet<u64> = list.iter().map(|(number, ..)| *number).chain([0x61, 0x71]).collect();
    assert_eq!(numbers(Generation::Tr2, Enumeration::State), known);
    assert!(!Generation::Tr2.is_own_state(0x7f) && Generation::Tr2.is_own_state(0x80));
}

#[test]
fn states_of_the_draft_are_todays() {
    let list = [
        0x000, 0x001, 0x002, 0x010, 0x011, 0x012, 0x013, 0x014, 0x020, 0x021, 0x040, 0x041, 0x042, 0x043, 0x044, 0x080,
        0x081, 0x082, 0x100, 0x101, 0x102,
    ];
    assert_eq!(numbers(Generation::Draft5, Enumeration::State), BTreeSet::from(list));
    for number in list {
        assert_eq!(today(Generation::Draft5, Enumeration::State, number), Today::Number(number));
    }
    assert!(!Generation::Draft5.is_own_state(0x1ff) && Generation::Draft5.is_own_state(0x200));
}

#[test]
fn version_2_numbers_answers_only() {
    for what in EVERY {
        assert_eq!(numbers(Generation::Version2, what).is_empty(), what != Enumeration::SetResult, "{what:?}");
    }
    assert!((0..100).all(|number| Generation::Version2.event(number).is_none()));
    assert!(!Generation::Version2.is_own_state(u64::MAX));
    for generation in [Generation::Tr2, Generation::Version2] {
        let answers = [0, 1, 2, 3, 4].map(|number| today(generation, Enumeration::SetResult, number));
        let folded = Today::Folded(1);
        assert_eq!(answers, [Today::Number(0), folded, folded, Today::Number(3), Today::Number(5)]);
        assert_eq!(generation.decode(Enumeration::SetResult, 5), None);
    }
    assert!(numbers(Generation::Draft5, Enumeration::SetResult).is_empty());
}

#[test]
fn events_of_tr2() {
    let told = |number, endpoint, sub| Callback { number, endpoint, sub };
    let list = [
        (1, "parallel_begin", told(3, 0, None)),
        (2, "parallel_end", told(4, 0, None)),
        (3, "task_begin", told(5, 0, None)),
        (4, "task_end", told(6, 0, Some(1))),
        (5, "thread_begin", told(1, 0, None)),
        (6, "thread_end", told(2, 0, None)),
        (7, "control", told(11, 0, None)),
        (8, "runtime_shutdown", Gone),
        (9, "idle_begin", Gone),
        (10, "idle_end", Gone),
        (11, "wait_barrier_begin", told(16, 1, Some(1))),
        (12, "wait_barrier_end", told(16, 2, Some(1))),
        (13, "wait_taskwait_begin", told(16, 1, Some(5))),
        (14, "wait_taskwait_end", told(16, 2, Some(5))),
        (15, "wait_taskgroup_begin", told(16, 1, Some(6))),
        (16, "wait_taskgroup_end", told(16, 2, Some(6))),
        (17, "release_lock", told(17, 0, Some(1))),
        (18, "release_nest_lock_last", told(17, 0, Some(3))),
        (19, "release_critical", told(17, 0, Some(5))),
        (20, "release_atomic", told(17, 0, Some(6))),
        (21, "release_ordered", told(17, 0, Some(7))),
        (22, "implicit_task_begin", told(7, 1, Some(2))),
        (23, "implicit_task_end", told(7, 2, Some(2))),
        (24, "initial_task_begin", told(7, 1, Some(1))),
        (25, "initial_task_end", told(7, 2, Some(1))),
        (26, "task_switch", told(6, 0, None)),
        (27, "loop_begin", told(20, 1, Some(1))),
        (28, "loop_end", told(20, 2, Some(1))),
        (29, "sections_begin", told(20, 1, Some(2))),
        (30, "sections_end", told(20, 2, Some(2))),
        (31, "single_in_block_begin", told(20, 1, Some(3))),
        (32, "single_in_block_end", told(20, 2, Some(3))),
        (33, "single_others_begin", told(20, 1, Some(4))),
        (34, "single_others_end", told(20, 2, Some(4))),
        (35, "workshare_begin", told(20, 1, Some(5))),
        (36, "workshare_end", told(20, 2, Some(5))),
        (37, "master_begin", told(21, 1, None)),
        (38, "master_end", told(21, 2, None)),
        (39, "barrier_begin", told(23, 1, Some(1))),
        (40, "barrier_end", told(23, 2, Some(1))),
        (41, "taskwait_begin", told(23, 1, Some(5))),
        (42, "taskwait_end", told(23, 2, Some(5))),
        (43, "taskgroup_begin", told(23, 1, Some(6))),
        (44, "taskgroup_end", told(23, 2, Some(6))),
        (45, "release_nest_lock_prev", told(28, 2, None)),
        (46, "wait_lock", told(26, 0, Some(1))),
        (47, "wait_nest_lock", told(26, 0, Some(3))),
        (48, "wait_critical", told(26, 0, Some(5))),
        (49, "wait_atomic", told(26, 0, Some(6))),
        (50, "wait_ordered", told(26, 0, Some(7))),
        (51, "acquired_lock", told(27, 0, Some(1))),
        (52, "acquired_nest_lock_first", told(27, 0, Some(3))),
        (53, "acquired_nest_lock_next", told(28, 1, None)),
        (54, "acquired_critical", told(27, 0, Some(5))),
        (55, "acquired_atomic", told(27, 0, Some(6))),
        (56, "acquired_ordered", told(27, 0, Some(7))),
        (57, "init_lock", told(24, 0, Some(1))),
        (58, "init_nest_lock", told(24, 0, Some(3))),
        (59, "destroy_lock", told(25, 0, Some(1))),
        (60, "destroy_nest_lock", told(25, 0, Some(3))),
        (61, "flush", told(29, 0, None)),
    ];
    for (n, (number, name, today)) in list.into_iter().enumerate() {
        assert_eq!(number, n as u64 + 1);
        assert_eq!(Generation::Tr2.event(number), Some(OldEvent { name, today }));
    }
    assert!([0, 62, 63, 200, u64::MAX].iter().all(|number| Generation::Tr2.event(*number).is_none()));
}

#[test]
fn callbacks_of_the_draft() {
    let list = [
        (1, "thread_begin", 1),
        (2, "thread_end", 2),
        (3, "parallel_begin", 3),
        (4, "parallel_end", 4),
        (5, "task_create", 5),
        (6, "task_schedule", 6),
        (7, "implicit_task", 7),
        (8, "target", 8),
        (9, "target_data_op", 9),
        (10, "target_submit", 10),
        (11, "control_tool", 11),
        (12, "device_initialize", 12),
        (13, "device_finalize", 13),
        (14, "sync_region_wait", 16),
        (15, "mutex_released", 17),
        (16, "task_dependences", 18),
        (17, "task_dependence", 19),
        (18, "work", 20),
        (19, "master", 21),
        (20, "target_map", 22),
        (21, "sync_region", 23),
        (22, "lock_init", 24),
        (23, "lock_destroy", 25),
        (24, "mutex_acquire", 26),
        (25, "mutex_acquired", 27),
        (26, "nest_lock", 28),
        (27, "flush", 29),
        (28, "cancel", 30),
    ];
    for (number, name, now) in list {
        let today = Callback { number: now, endpoint: 0, sub: None };
        assert_eq!(Generation::Draft5.event(number), Some(OldEvent { name, today }));
    }
    assert_eq!(Generation::Draft5.event(29), Some(OldEvent { name: "idle", today: Gone }));
    assert!([0, 30, 37].iter().all(|number| Generation::Draft5.event(*number).is_none()));
}

#[test]
fn enumerations_of_the_draft() {
    use Enumeration as E;
    let number = Today::Number;
    let list: [(Enumeration, &[(u64, Today)]); 16] = [
        (E::Thread, &[(1, number(1)), (2, number(2)), (3, number(3)), (4, number(4))]),
        (E::Endpoint, &[(1, number(1)), (2, number(2))]),
        (E::SyncRegion, &[(1, number(1)), (2, number(5)), (3, number(6))]),
        (E::TargetDataOp, &[(1, number(1)), (2, number(2)), (3, number(3)), (4, number(4))]),
        (
            E::Work,
            &[
                (1, number(1)),
                (2, number(2)),
                (3, number(3)),
                (4, number(4)),
                (5, number(5)),
                (6, number(6)),
                (7, number(7)),
            ],
        ),
        (
            E::Mutex,
            &[
                (0x10, Today::OneOf(&[1, 2, 3, 4, 5, 6, 7])),
                (0x11, Today::OneOf(&[1, 2])),
                (0x12, Today::OneOf(&[3, 4])),
                (0x13, number(5)),
                (0x14, number(6)),
                (0x20, number(7)),
            ],
        ),
        (E::TaskStatus, &[(1, number(1)), (2, number(2)), (3, number(3)), (4, number(7))]),
        (E::Target, &[(1, number(1)), (2, number(2)), (3, number(3)), (4, number(4))]),
        (E::ParallelFlag, &[(1, number(1)), (2, number(2))]),
        (E::Dependence, &[(1, number(2)), (2, number(1)), (3, number(3))]),
        (E::Record, &[(1, number(1)), (2, number(2)), (3, number(3))]),
        (E::NativeRecord, &[(1, number(1)), (2, number(2))]),
        (E::TaskFlag, &[]),
        (E::CancelFlag, &[]),
        (E::TargetMapFlag, &[]),
        (E::NativeFlag, &[]),
    ];
    let bits = |what| match what {
        E::TaskFlag => 0xf800_000f,
        E::CancelFlag => 0x7f,
        E::TargetMapFlag => 0x3f,
        E::NativeFlag => 0xff,
        _ => 0,
    };
    for (what, list) in list {
        let flags = bits(what);
        let known: BTreeSet<u64> = match flags {
            0 => list.iter().map(|(number, _)| *number).collect(),
            _ => (0..64).map(|n| 1 << n).filter(|bit| flags & bit != 0).collect(),
        };
        assert_eq!(numbers(Generation::Draft5, what), known, "{what:?}");
        for (number, now) in list {
            assert_eq!(today(Generation::Draft5, what, *number), *now, "{what:?} {number:#x}");
        }
        if flags != 0 {
            assert_eq!(Generation::Draft5.flags(what, flags), (flags, 0));
            assert_eq!(Generation::Draft5.flags(what, u64::MAX), (flags, !flags));
        }
    }
}

/// The draft of 2018 has the enumerations of the draft before it, and answers of its own.
#[test]
fn enumerations_of_2018() {
    for what in EVERY.into_iter().filter(|what| *what != Enumeration::SetResult) {
        assert_eq!(numbers(Generation::Draft2018, what), numbers(Generation::Draft5, what), "{what:?}");
        for number in numbers(Generation::Draft2018, what) {
            assert_eq!(today(Generation::Draft2018, what, number), today(Generation::Draft5, what, number), "{what:?}");
        }
    }
    let answers = [0, 1, 2, 3, 4].map(|number| today(Generation::Draft2018, Enumeration::SetResult, number));
    assert_eq!(answers, [0, 1, 3, 4, 5].map(Today::Number));
    assert_eq!(numbers(Generation::Draft2018, Enumeration::SetResult).len(), 5);
}

#[test]
fn callbacks_of_2018_are_todays_up_to_idle() {
    for number in 1..=30_u8 {
        let event = Generation::Draft2018.event(number.into()).expect("a callback");
        assert_eq!(event.today, Callback { number, endpoint: 0, sub: None }, "{event:?}");
    }
    assert_eq!(Generation::Draft2018.event(18).map(|event| event.name), Some("task_dependences"));
    assert_eq!(Generation::Draft2018.event(31), Some(OldEvent { name: "idle", today: Gone }));
    assert!([0, 32, 37].iter().all(|number| Generation::Draft2018.event(*number).is_none()));
}

/// The table of the draft that permits one answer only, and of 5.0 and later.
#[test]
fn answers_that_are_permitted() {
    let only_always = |generation: Generation| -> Vec<u8> {
        (1..=37).filter(|number| [1, 3, 4].iter().all(|answer| !generation.permits(*number, *answer))).collect()
    };
    assert_eq!(only_always(Generation::Draft5), [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13]);
    assert_eq!(only_always(Generation::Draft2018), only_always(Generation::Draft5));
    let later = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 33, 34, 35];
    assert_eq!(only_always(Generation::OpenMp51), later);
    for generation in Generation::ALL {
        for number in 1..=37 {
            let permitted: Vec<u8> = (0..=15).filter(|answer| generation.permits(number, *answer)).collect();
            let all = if only_always(generation).contains(&number) { &[5][..] } else { &[1, 3, 4, 5] };
            assert_eq!(permitted, all, "{generation:?} {number}");
        }
    }
    assert!(only_always(Generation::Tr2).is_empty());
}

/// No document says that a runtime has to make a callback with such a number always.
#[test]
fn callbacks_of_no_document_may_be_answered_in_any_way() {
    for number in [0, 38, u8::MAX] {
        let permitted: Vec<u8> = (0..=15).filter(|answer| Generation::OpenMp60.permits(number, *answer)).collect();
        assert_eq!(permitted, [1, 3, 4, 5], "{number}");
    }
}

#[test]
fn a_flag_that_is_not_known_is_kept_apart() {
    let flags = |flags| Generation::Draft5.flags(Enumeration::TaskFlag, flags);
    assert_eq!([0, 8, 0x10, 0x18].map(flags), [(0, 0), (8, 0), (0, 0x10), (8, 0x10)]);
}

#[test]
fn names_of_flags_that_changed() {
    let name = |generation: Generation| generation.decode(Enumeration::CancelFlag, 4).map(|decoded| decoded.name);
    assert_eq!([name(Generation::Draft5), name(Generation::OpenMp50)], [Some("do"), Some("loop")]);
    let name = |generation: Generation| generation.event(21).map(|event| event.name);
    assert_eq!([name(Generation::OpenMp50), name(Generation::OpenMp51)], [Some("master"), Some("masked")]);
}

/// Whoever decodes what is today's already gets it back.
#[test]
fn since_5_0_numbers_are_todays() {
    for generation in [Generation::OpenMp50, Generation::OpenMp51, Generation::OpenMp60] {
        for what in EVERY {
            let known = numbers(generation, what);
            assert!(!known.is_empty(), "{generation:?} {what:?}");
            for number in known {
                assert_eq!(today(generation, what, number), Today::Number(number), "{generation:?} {what:?}");
            }
        }
        let last = if generation == Generation::OpenMp50 { 32 } else { 37 };
        for number in 0..=40 {
            let there = generation.event(number).map(|event| event.today);
            let now = u8::try_from(number).expect("small");
            let expected = (1..=last).contains(&number).then_some(Callback { number: now, endpoint: 0, sub: None });
            assert_eq!(there, expected, "{generation:?} {number}");
        }
    }
}

/// Everything decodes to something that has a name, and no two rows claim one number.
#[test]
fn tables_are_sound() {
    let named = |what, number: u64| {
        let short = u16::try_from(number).unwrap_or(0);
        let bits = u32::try_from(number).unwrap_or(0);
        match what {
            Enumeration::State => ompt::state(number).is_some(),
            Enumeration::SetResult => ompt::set_result(u8::try_from(number).unwrap_or(u8::MAX)).is_some(),
            Enumeration::Thread => ompt::thread(short).is_some(),
            Enumeration::Endpoint => ompt::endpoint(u8::try_from(number).unwrap_or(0)).is_some(),
            Enumeration::SyncRegion => ompt::sync_region(short).is_some(),
            Enumeration::Work => ompt::work(short).is_some(),
            Enumeration::Mutex => ompt::mutex(short).is_some(),
            Enumeration::Dependence => ompt::dependence(short).is_some(),
            Enumeration::TaskStatus => ompt::task_status(short).is_some(),
            Enumeration::TaskFlag => ompt::task_flags(bits).len() == 1,
            Enumeration::ParallelFlag => ompt::parallel_flags(bits).len() == 1,
            Enumeration::CancelFlag => ompt::cancel_flags(bits).len() == 1,
            Enumeration::Target => ompt::target(short).is_some(),
            Enumeration::TargetDataOp => ompt::target_data_op(short).is_some(),
            // Nothing else in this crate has names for these.
            Enumeration::TargetMapFlag | Enumeration::NativeFlag | Enumeration::Record | Enumeration::NativeRecord => {
                true
            }
        }
    };
    for what in EVERY {
        for (n, row) in tables::rows(what).iter().enumerate() {
            let all: Vec<u64> = match row.today {
                Today::Number(number) | Today::Folded(number) => vec![number],
                Today::OneOf(several) => several.to_vec(),
                Today::Gone => Vec::new(),
            };
            assert!(all.iter().all(|number| named(what, *number)), "{what:?} {}", row.name);
            assert!(row.numbers.iter().any(|number| *number != tables::NONE), "{what:?} {}", row.name);
            for other in &tables::rows(what)[..n] {
                let same = row.numbers.iter().zip(other.numbers).any(|(a, b)| *a == b && b != tables::NONE);
                assert!(!same, "{what:?}: {} and {}", row.name, other.name);
            }
        }
    }
    for (n, row) in tables::EVENTS.iter().enumerate() {
        if let Callback { number, .. } = row.today {
            assert!(ompt::callback(number).is_some(), "{}", row.name);
        }
        for other in &tables::EVENTS[..n] {
            let same = row.numbers.iter().zip(other.numbers).any(|(a, b)| *a == b && b != tables::NONE);
            assert!(!same, "{} and {}", row.name, other.name);
        }
    }
}
