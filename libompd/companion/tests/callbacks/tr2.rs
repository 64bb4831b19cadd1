//! A runtime of Technical Report 2. It calls its events by numbers, and gives numbers to regions and tasks itself.

use std::ffi::{c_int, c_void};
use std::ptr::null;

use ompt_record::block::{CHANGING, State};

use crate::runtime::{Runtime, TODAY, alone, block, events, make, registered, registered_as, ring};

const OLD: Runtime = Runtime { omp_version: 0, entry_points: &["ompt_set_callback", "ompt_get_state"], ..TODAY };

type Code = *const c_void;

fn begin() {
    assert!(OLD.start_of_2014(1));
    make!(5, (c_int, u64), (2, 9));
}

fn region_begins(region: u64) {
    make!(1, (u64, Code, u64, u32, Code), (61, null(), region, 8, null()));
}

fn task_begins(task: u64) {
    make!(3, (u64, Code, u64, Code), (62, null(), task, null()));
}

/// Numbers of the regions and tasks that are remembered, of these.
fn remembered(numbers: &[u64]) -> (Vec<u64>, Vec<u64>) {
    let (memory, block) = block();
    let regions = numbers.iter().filter(|id| block.region(&memory, **id).expect("it can be read").is_some());
    let tasks = numbers.iter().filter(|id| block.task(&memory, **id).expect("it can be read").is_some());
    (regions.copied().collect(), tasks.copied().collect())
}

#[test]
fn regions_and_tasks_are_remembered_until_they_end() {
    alone("tr2::regions_and_tasks_are_remembered_until_they_end", &[], || {
        begin();
        assert_eq!((ring().values.kind, events()[0].sub), (2, 2));
        // The last two are no numbers of anything.
        for number in [5, 6, 0, CHANGING] {
            region_begins(number);
            task_begins(number);
        }
        let all = [5, 6, 0, CHANGING];
        assert_eq!(remembered(&all), (vec![5, 6], vec![5, 6]));
        make!(2, (u64, u64), (5, 61));
        make!(4, (u64), (6));
        assert_eq!(remembered(&all), (vec![6], vec![5]));
        // What ends in a pause is not told from what has begun before.
        make!(7, (u64, u64), (2, 0));
        make!(2, (u64, u64), (6, 61));
        make!(4, (u64), (5));
        assert_eq!(remembered(&all), (vec![6], vec![5]));
    });
}

#[test]
fn a_nestable_lock_is_held_as_often_as_it_was_acquired() {
    alone("tr2::a_nestable_lock_is_held_as_often_as_it_was_acquired", &[], || {
        begin();
        let held = || {
            let (memory, block) = block();
            let held = block.held(&memory, ring()).expect("they can be read");
            held.iter().map(|held| (held.wait_id, held.kind as u32, held.kind >> 32)).collect::<Vec<_>>()
        };
        make!(52, (u64), (0x10));
        assert_eq!(held(), [(0x10, 3, 1)]);
        make!(53, (u64), (0x10));
        assert_eq!(held(), [(0x10, 3, 2)]);
        make!(45, (u64), (0x10));
        assert_eq!(held(), [(0x10, 3, 1)]);
        make!(18, (u64), (0x10));
        assert_eq!(held(), []);
    });
}

#[test]
fn the_next_runtime_is_recorded_when_this_one_has_shut_down() {
    alone("tr2::the_next_runtime_is_recorded_when_this_one_has_shut_down", &[], || {
        begin();
        assert_eq!(registered(), (1..=61).collect::<Vec<_>>());
        let header = block().1.header;
        assert_eq!((header.entry_points, header.omp_version), (1 << 2 | 1 << 11, 0));
        assert!(!TODAY.start_as_another(), "one at a time");
        assert!(OLD.start_of_2014(1));
        // SAFETY: this one has no parameters.
        unsafe { registered_as(8)() };
        assert_eq!(block().1.header.state, State::Ended as u64);
        assert!(TODAY.start_as_another());
        // Now the old one comes too late.
        assert!(!OLD.start_of_2014(1) && registered().is_empty());
        assert_eq!(block().1.header.runtimes_beyond, 2);
    });
}

#[test]
fn versions_without_numbers_for_events_are_declined() {
    alone("tr2::versions_without_numbers_for_events_are_declined", &[], || {
        for version in [0, 2, 201_811] {
            assert!(!OLD.start_of_2014(version), "version {version}");
        }
        assert!(registered().is_empty());
        assert!(OLD.start_of_2014(1));
    });
}
