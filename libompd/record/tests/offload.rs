//! Which events are of a device.

use ompt_record::event::Event;
use ompt_record::offload::{Unfinished, is_submit, unfinished};

const BEGIN: u8 = 1;
const END: u8 = 2;

fn event(position: u64, kind: u8, endpoint: u8) -> Event {
    Event { position, kind, endpoint, ..Event::default() }
}

#[test]
fn kernels_are_submitted_by_two_callbacks() {
    let submits: Vec<u8> = (0..=u8::MAX).filter(|kind| is_submit(&event(0, *kind, BEGIN))).collect();
    assert_eq!(submits, [10, 35]);
}

#[test]
fn a_region_of_synchronisation_is_no_operation_on_a_device() {
    let target = event(0, 33, BEGIN);
    let found = unfinished(&[target, event(1, 16, BEGIN)], 2);
    assert_eq!(found, Unfinished { construct: Some(target), operation: None });
    // Nor does its end end one.
    let copies = event(1, 34, BEGIN);
    let found = unfinished(&[target, copies, event(2, 16, END)], 3);
    assert_eq!(found, Unfinished { construct: Some(target), operation: Some(copies) });
}

#[test]
fn operations_that_have_ended_within_another_leave_that_open() {
    let target = event(0, 33, BEGIN);
    let outer = event(1, 34, BEGIN);
    let found = unfinished(&[target, outer, event(2, 34, BEGIN), event(3, 34, END)], 4);
    assert_eq!(found, Unfinished { construct: Some(target), operation: Some(outer) });
}
