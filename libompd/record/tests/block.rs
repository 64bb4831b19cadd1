//! What lies where in a block, and what the numbers in it mean.

use ompt_record::block::{DEVICE_RING, HELD, Held, Ring, State, in_ring};

#[test]
fn states_have_the_numbers_of_the_header() {
    let all = [0, 1, 2, 3, 4, u64::MAX].map(State::from_number);
    assert_eq!(all, [None, Some(State::Recording), Some(State::Paused), Some(State::Ended), None, None]);
}

#[test]
fn a_devices_ring_has_its_number_in_the_lower_half() {
    assert_eq!(DEVICE_RING & u64::from(u32::MAX), 0);
    assert_ne!(DEVICE_RING, 0);
}

#[test]
fn parts_of_a_ring_do_not_overlap() {
    let held = in_ring::HELD_AT + (HELD * size_of::<Held>()) as u64;
    assert!(in_ring::HELD_AT >= size_of::<Ring>() as u64);
    assert!(in_ring::SNAPSHOT_AT >= held && in_ring::EVENTS_AT > in_ring::SNAPSHOT_AT);
}
