//! What the companion remembers as long as it is not over: regions, tasks, and locks that are held.

use std::ffi::{c_int, c_uint};
use std::ptr::null;
use std::sync::atomic::Ordering::Relaxed;

use ompt_record::block::{CreationValues, RingState, TASK_BEGUN};

use crate::runtime::{TODAY, alone, block, events, make, ring};
use crate::{Address, BEGIN, Data, END, Word, address, thread_begins};

fn region_begins(encountering: &Data, region: &Data) -> u64 {
    make!(3, (Word, Address, Word, c_uint, c_int, Address), (encountering, null(), region, 8, 1, address(0x4000)));
    region.load(Relaxed)
}

fn task_begins(encountering: &Data, task: &Data, flags: c_int, depends: c_int) -> u64 {
    make!(
        5,
        (Word, Address, Word, c_int, c_int, Address),
        (encountering, null(), task, flags, depends, address(0x5000))
    );
    task.load(Relaxed)
}

#[test]
fn a_region_is_remembered_until_it_ends() {
    alone("remembered::a_region_is_remembered_until_it_ends", &[], || {
        assert!(TODAY.start());
        let thread = thread_begins(1).load(Relaxed);
        let [encountering, region, next] = [61, 0, 0].map(Data::new);
        let id = region_begins(&encountering, &region);
        assert_eq!(region_begins(&encountering, &next), id + 1);
        let (memory, block) = block();
        let found = |id| block.region(&memory, id).expect("it can be read");
        let there = found(id).expect("the region");
        assert!(there.time > 0);
        let expected = CreationValues {
            id,
            codeptr_ra: 0x4000,
            encountering_task: 61,
            detail: 8,
            flags: 1,
            thread,
            epoch: block.header.epoch,
            time: there.time,
        };
        assert_eq!(there, expected);
        make!(4, (Word, Word, c_int, Address), (&region, &encountering, 1, address(0x4000)));
        assert_eq!((found(id), found(id + 1).map(|found| found.id)), (None, Some(id + 1)));
    });
}

/// A task that is only suspended or detached is not over.
#[test]
fn a_task_is_remembered_until_it_is_over() {
    alone("remembered::a_task_is_remembered_until_it_is_over", &[], || {
        assert!(TODAY.start());
        let thread = thread_begins(1).load(Relaxed);
        let (memory, opened) = block();
        let found = |id| opened.task(&memory, id).expect("it can be read");
        let encountering = Data::new(61);
        for (status, is_over) in (1..=8).zip([true, false, true, false, false, true, false, true]) {
            let task = Data::new(0);
            let id = task_begins(&encountering, &task, 0x1000_0004, 5);
            let there = found(id).expect("the task");
            let expected = CreationValues {
                id,
                codeptr_ra: 0x5000,
                encountering_task: 61,
                detail: 1,
                flags: 0x1000_0004,
                thread,
                epoch: opened.header.epoch,
                time: there.time,
            };
            assert_eq!(there, expected);
            make!(6, (Word, c_int, Word), (&task, status, &encountering));
            assert_eq!(found(id).is_none(), is_over, "status {status}");
        }
        let task = Data::new(0);
        let without_dependences = task_begins(&encountering, &task, 4, 0);
        assert_eq!(found(without_dependences).map(|found| found.detail), Some(0));
    });
}

/// The locks of the calling thread: name, return address, kind, and how often it has them.
fn held() -> Vec<(u64, u64, u32, u64)> {
    let (memory, block) = block();
    let held = block.held(&memory, ring()).expect("they can be read");
    assert!(held.iter().all(|held| held.time > 0 && held.epoch == block.header.epoch));
    held.iter().map(|held| (held.wait_id, held.codeptr_ra, held.kind as u32, held.kind >> 32)).collect()
}

fn acquired(kind: c_int, lock: u64, from: usize) {
    make!(27, (c_int, u64, Address), (kind, lock, address(from)));
}

fn released(lock: u64) {
    make!(17, (c_int, u64, Address), (1, lock, null()));
}

#[test]
fn a_lock_is_held_until_it_is_released_initialised_or_destroyed() {
    alone("remembered::a_lock_is_held_until_it_is_released_initialised_or_destroyed", &[], || {
        assert!(TODAY.start());
        thread_begins(1);
        acquired(1, 0x10, 0x4000);
        acquired(5, 0x20, 0x5000);
        acquired(3, 0x30, 0x6000);
        // To wait for a lock is not to have it.
        make!(26, (c_int, c_uint, c_uint, u64, Address), (1, 0, 0, 0x40, null()));
        assert_eq!(held(), [(0x10, 0x4000, 1, 1), (0x20, 0x5000, 5, 1), (0x30, 0x6000, 3, 1)]);
        for (scope, times) in [(BEGIN, 2), (BEGIN, 3), (END, 2)] {
            make!(28, (c_int, u64, Address), (scope, 0x30, null()));
            assert_eq!(held()[2], (0x30, 0x6000, 3, times));
        }
        released(0x20);
        assert_eq!(held().iter().map(|held| held.0).collect::<Vec<_>>(), [0x10, 0x30]);
        make!(24, (c_int, c_uint, c_uint, u64, Address), (1, 0, 0, 0x30, null()));
        assert_eq!(held(), [(0x10, 0x4000, 1, 1)]);
        make!(25, (c_int, u64, Address), (1, 0x10, null()));
        assert!(held().is_empty());
    });
}

/// An untied task may continue on another thread. Of two that have it, one lets go.
#[test]
fn a_lock_is_released_by_another_thread_than_the_one_that_has_it() {
    alone("remembered::a_lock_is_released_by_another_thread_than_the_one_that_has_it", &[], || {
        assert!(TODAY.start());
        thread_begins(1);
        acquired(1, 0x10, 0x4000);
        acquired(1, 0x20, 0x4000);
        let another = std::thread::spawn(|| {
            thread_begins(2);
            acquired(1, 0x20, 0x5000);
            released(0x10);
            released(0x20);
            // Nobody has it any more.
            released(0x10);
            held()
        });
        let of_another = another.join().expect("no panic");
        assert_eq!((held(), of_another), (vec![(0x20, 0x4000, 1, 1)], Vec::new()));
        let another = std::thread::spawn(|| {
            thread_begins(2);
            released(0x20);
        });
        another.join().expect("no panic");
        assert!(held().is_empty());
    });
}

/// One thread at a time: the second one gets the ring of the first, whose events stay behind it.
#[test]
fn a_ring_passes_to_the_next_thread_when_one_ends() {
    let one_ring = [("OMPT_COMPANION_THREADS", "1")];
    alone("remembered::a_ring_passes_to_the_next_thread_when_one_ends", &one_ring, || {
        assert!(TODAY.start());
        let first = thread_begins(2).load(Relaxed);
        acquired(1, 0x10, 0x4000);
        // There is no ring for this one.
        let without = std::thread::spawn(|| {
            let word = thread_begins(2).load(Relaxed);
            acquired(1, 0x10, 0x4000);
            make!(2, (Word), (null()));
            word
        });
        assert_eq!(without.join().expect("no panic"), 0);
        assert_eq!(block().1.header.threads_beyond, 1);
        let before = ring().values;
        make!(2, (Word), (null()));
        let ended = ring().values;
        assert_eq!((ended.state, ended.head), (RingState::Ended as u64, before.head + 1));
        assert!(ended.ended >= ended.began && ended.began > 0);
        let (memory, block) = block();
        let last = block.events(&memory, ring(), 1).expect("they can be read").events;
        assert_eq!(last.iter().map(|event| event.kind).collect::<Vec<_>>(), [2], "the end of the thread");
        let next = std::thread::spawn(move || {
            let id = thread_begins(3).load(Relaxed);
            let values = ring().values;
            assert_eq!((values.id, values.kind, values.ended), (id, 3, 0));
            assert_eq!((values.first, values.head), (ended.head, ended.head + 1));
            assert!(held().is_empty(), "what the first thread had is not this one's");
            id
        });
        assert_eq!(next.join().expect("no panic"), first + 1);
    });
}

/// By its number a thread is known to begin a task, so it gets one also where nothing is recorded.
#[test]
fn with_stop_points_a_task_is_remembered_in_a_pause_too() {
    let variables = [("OMP_DEBUG", " Enabled "), ("OMPT_COMPANION_START", "paused")];
    alone("remembered::with_stop_points_a_task_is_remembered_in_a_pause_too", &variables, || {
        assert!(TODAY.start());
        let thread = thread_begins(1).load(Relaxed);
        let (memory, opened) = block();
        let found = |id| opened.task(&memory, id).expect("it can be read");
        let [encountering, task] = [61, 0].map(Data::new);
        let id = task_begins(&encountering, &task, 4, 0);
        assert_eq!(found(id).map(|found| (found.thread, found.flags & TASK_BEGUN)), Some((thread, 0)));
        // The thread switches to the task, and back to it once more.
        for _ in 0..2 {
            make!(6, (Word, c_int, Word), (&encountering, 7, &task));
            assert_eq!(found(id).map(|found| found.flags), Some(TASK_BEGUN));
        }
        assert_eq!(opened.stop(&memory, ring()).expect("it can be read"), None, "it has passed the stop points");
        make!(6, (Word, c_int, Word), (&task, 4, &encountering));
        assert!(found(id).is_some(), "a detached task is not over");
        make!(6, (Word, c_int, Word), (&task, 6, &encountering));
        assert!(found(id).is_none());
        assert_eq!(events(), []);
    });
}
