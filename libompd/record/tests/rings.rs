//! What lies in the ring of a thread beside its events.

mod common;

use std::mem::offset_of;

use ompt_record::block::{CHANGING, HELD, Header, Held, Shape, Stop, in_ring};
use ompt_record::snapshot::{LEVELS, LEVELS_AT, Level, Snapshot};

use common::{block, open};

fn index(of_bytes: u64) -> usize {
    usize::try_from(of_bytes / 8).expect("it is small")
}

/// The words of a block with two rings of threads, and where the rings begin.
fn two_rings() -> (Vec<u64>, [usize; 2]) {
    let (mut words, shape): (_, Shape) = block();
    words[offset_of!(Header, rings_used) / 8] = 2;
    let rings = [0, 1].map(|ring| index(shape.ring_at(ring)));
    for ring in rings {
        words[ring] = 1;
    }
    (words, rings)
}

#[test]
fn the_stop_point_of_each_ring_is_its_own() {
    let (mut words, rings) = two_rings();
    for (ring, stop) in rings.into_iter().zip([Stop::ThreadEnd, Stop::ParallelBegin]) {
        words[ring + index(in_ring::STOP_AT)] = stop as u64;
    }
    let (memory, opened) = open(words, None);
    let stops = opened.rings(&memory).0.into_iter().map(|ring| opened.stop(&memory, ring).expect("it can be read"));
    assert_eq!(stops.collect::<Vec<_>>(), [Some(Stop::ThreadEnd), Some(Stop::ParallelBegin)]);
}

#[test]
fn locks_of_each_ring_are_its_own_and_of_this_epoch() {
    let (mut words, rings) = two_rings();
    let epoch = 3;
    words[offset_of!(Header, epoch) / 8] = epoch;
    let mut note = |ring: usize, place: usize, wait_id: u64, epoch: u64| {
        let at = rings[ring] + index(in_ring::HELD_AT) + place * Held::WORDS;
        words[at + offset_of!(Held, wait_id) / 8] = wait_id;
        words[at + offset_of!(Held, epoch) / 8] = epoch;
    };
    note(0, 0, 0x40, epoch);
    note(0, 1, 0x50, epoch - 1);
    note(0, 2, CHANGING, epoch);
    note(1, HELD - 1, 0x60, epoch);
    // Behind the last one lies something else.
    note(1, HELD, 0x70, epoch);
    let (memory, opened) = open(words, None);
    let held: Vec<Vec<u64>> = opened
        .rings(&memory)
        .0
        .into_iter()
        .map(|ring| opened.held(&memory, ring).expect("they can be read").iter().map(|held| held.wait_id).collect())
        .collect();
    assert_eq!(held, [vec![0x40], vec![0x60]]);
}

#[test]
fn answers_of_the_runtime_are_read_level_by_level() {
    let (mut words, rings) = two_rings();
    let snapshot = rings[1] + index(in_ring::SNAPSHOT_AT);
    words[snapshot + offset_of!(Snapshot, state) / 8] = 0x101;
    words[snapshot + offset_of!(Snapshot, thread_data) / 8] = 7;
    for level in 0..LEVELS {
        let at = rings[1] + index(LEVELS_AT) + level * Level::WORDS;
        words[at + offset_of!(Level, task_data) / 8] = 100 + level as u64;
        words[at + offset_of!(Level, team_size) / 8] = 200 + level as u64;
    }
    for (taken, is_whole) in [(0, false), (1, false), (2, true)] {
        words[snapshot + offset_of!(Snapshot, taken) / 8] = taken;
        let (memory, opened) = open(words.clone(), None);
        let [first, second] = opened.rings(&memory).0[..] else { panic!("two rings") };
        assert_eq!(opened.snapshot(&memory, first).expect("it can be read"), None);
        let found = opened.snapshot(&memory, second).expect("it can be read");
        assert_eq!(found.is_some(), is_whole, "{taken}");
        let Some((values, levels)) = found else { continue };
        assert_eq!((values.state, values.thread_data), (0x101, 7));
        let numbers: Vec<_> = levels.iter().map(|level| (level.task_data, level.team_size)).collect();
        assert_eq!(numbers, (0..LEVELS as u64).map(|level| (100 + level, 200 + level)).collect::<Vec<_>>());
    }
}
