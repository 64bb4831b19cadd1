//! What a thread has begun on a device and not ended, by its last events.

use crate::event::Event;

/// Numbers of callbacks (OpenMP 5.2, 19.5.2).
pub const TARGETS: [u8; 2] = [8, 33];
const DATA_OPS: [u8; 2] = [9, 34];
const SUBMITS: [u8; 2] = [10, 35];
/// `ompt_scope_endpoint_t`.
const BEGIN: u8 = 1;
const END: u8 = 2;

/// What a thread is in the middle of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Unfinished {
    /// The event with which the innermost device construct began; `None`: there is none among the events.
    pub construct: Option<Event>,
    /// The event with which an operation within it, or of no construct, began.
    pub operation: Option<Event>,
}

/// True for the submission of a kernel, false for another operation.
pub fn is_submit(operation: &Event) -> bool {
    SUBMITS.contains(&operation.kind)
}

/// Finds what has begun and not ended in the last events of a ring, of which `head` were written in all. Only events that follow one
/// another up to the last one count.
pub fn unfinished(events: &[Event], head: u64) -> Unfinished {
    let mut found = Unfinished::default();
    let (mut constructs, mut operations) = (0u32, 0u32);
    let mut next = head;
    for event in events.iter().rev() {
        if event.position.checked_add(1) != Some(next) {
            break;
        }
        next = event.position;
        let is_operation = DATA_OPS.contains(&event.kind) || is_submit(event);
        match event.endpoint {
            END if TARGETS.contains(&event.kind) => constructs += 1,
            BEGIN if TARGETS.contains(&event.kind) && constructs > 0 => constructs -= 1,
            BEGIN if TARGETS.contains(&event.kind) => {
                found.construct = Some(*event);
                break;
            }
            END if is_operation => operations += 1,
            BEGIN if is_operation && operations > 0 => operations -= 1,
            BEGIN if is_operation && constructs == 0 && found.operation.is_none() => found.operation = Some(*event),
            _ => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events(all: &[(u8, u8, u16)]) -> Vec<Event> {
        let event = |(position, (kind, endpoint, sub)): (u64, &(u8, u8, u16))| Event {
            position,
            kind: *kind,
            endpoint: *endpoint,
            sub: *sub,
            ..Event::default()
        };
        (5..).zip(all).map(event).collect()
    }

    fn of(all: &[(u8, u8, u16)]) -> (Option<u64>, Option<u64>) {
        let found = unfinished(&events(all), 5 + all.len() as u64);
        let position = |event: Option<Event>| event.map(|event| event.position - 5);
        (position(found.construct), position(found.operation))
    }

    #[test]
    fn the_innermost_construct_that_has_not_ended_is_found() {
        assert_eq!(of(&[]), (None, None));
        assert_eq!(of(&[(33, BEGIN, 1)]), (Some(0), None));
        assert_eq!(of(&[(33, BEGIN, 1), (33, END, 1)]), (None, None));
        assert_eq!(of(&[(8, BEGIN, 1), (33, BEGIN, 2), (33, END, 2), (6, 0, 0)]), (Some(0), None));
        assert_eq!(of(&[(33, BEGIN, 1), (33, BEGIN, 2)]), (Some(1), None));
    }

    #[test]
    fn an_operation_that_has_not_ended_is_found_with_its_construct() {
        let done = [(33, BEGIN, 1), (34, BEGIN, 1), (34, END, 1), (35, BEGIN, 0), (35, END, 0)];
        assert_eq!(of(&done), (Some(0), None));
        assert_eq!(of(&done[..4]), (Some(0), Some(3)));
        assert_eq!(of(&done[..2]), (Some(0), Some(1)));
        // Of no construct, and behind one that has ended.
        assert_eq!(of(&[(34, BEGIN, 2)]), (None, Some(0)));
        assert_eq!(of(&[(33, BEGIN, 1), (33, END, 1), (9, BEGIN, 2)]), (None, Some(2)));
        // Within a construct that has ended nothing goes on.
        assert_eq!(of(&[(33, BEGIN, 1), (34, BEGIN, 1), (33, END, 1)]), (None, None));
    }

    #[test]
    fn events_that_do_not_follow_one_another_tell_nothing() {
        let all = events(&[(33, BEGIN, 1), (34, BEGIN, 1), (34, END, 1)]);
        // The last one is not there, or one in between.
        assert_eq!(unfinished(&all[..2], 8), Unfinished::default());
        let gap = [all[0], all[2]];
        assert_eq!(unfinished(&gap, 8), Unfinished::default());
        assert_eq!(unfinished(&all, u64::MAX), Unfinished::default());
        let last = Event { position: u64::MAX, ..all[0] };
        assert_eq!(unfinished(&[last], 0), Unfinished::default());
    }
}
