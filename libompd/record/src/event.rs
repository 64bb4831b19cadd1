//! One event in a ring.

use crate::block::EVENT_WORDS;

/// An event: what a callback of OMPT was told, at which time.
///
/// What the members mean depends on [`kind`](Event::kind), the number of the callback (OpenMP 5.2, 19.5.2):
///
/// | callback | `sub` | `flags` | `region` | `task` | `other` |
/// |---|---|---|---|---|---|
/// | thread_begin, thread_end | type of thread | | | | |
/// | parallel_begin | | flags | the region | encountering task | requested size |
/// | parallel_end | | flags | the region | encountering task | |
/// | task_create | 1 with dependences | flags | | the new task | encountering task |
/// | task_schedule | status of the prior task | | | prior task | next task, 0 for none |
/// | implicit_task | low bits of its flags | number of the thread | the region | the task | size of the team |
/// | sync_region, sync_region_wait, reduction | kind | | the region | the task | |
/// | mutex_acquire, lock_init | kind | hint | | | wait id |
/// | mutex_acquired, mutex_released, lock_destroy | kind | | | | wait id |
/// | nest_lock | | | | | wait id |
/// | work | type of work | | the region | the task | count |
/// | dispatch | kind | | the region | the task | instance |
/// | masked | | | the region | the task | |
/// | dependences, for each | type | how many there are | | the task | the variable's address |
/// | task_dependence | | | | the task that comes first | the one that waits |
/// | cancel | | flags | | the task | |
/// | flush | | | | | |
/// | control_tool | | command | | modifier | argument |
/// | device_initialize, device_finalize | | number of the device | | | |
/// | device_load, device_unload | | number of the device | | host address | module |
/// | target, target_emi | kind | number of the device | | the task | target id |
/// | target_data_op, target_data_op_emi | operation | bytes, at most 2^32 - 1 | source address | host operation | destination address |
/// | target_submit, target_submit_emi | | teams requested | | host operation | target id |
/// | target_map, target_map_emi | | items | | | target id |
/// | error | severity | length of the message | | | |
///
/// In the ring of a device are the parts of records of its trace, which [`device::records`](crate::device::records) puts together;
/// their kinds begin at [`part::HEAD`](crate::device::part::HEAD).
///
/// With a runtime that has the OMPT of Technical Report 2, regions and tasks have the numbers that the runtime gave them. What it
/// does not report is 0. But the number of an implicit task's thread and the count of `work` are [`NOT_TOLD`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Event {
    /// Which event of the ring it is, counted from 0.
    pub position: u64,
    /// Nanoseconds of `CLOCK_MONOTONIC`.
    pub time: u64,
    /// Number of the callback, or of a [`part`](crate::device::part) of a record.
    pub kind: u8,
    /// `ompt_scope_endpoint_t`, 0 for events that are a moment.
    pub endpoint: u8,
    /// As in the table.
    pub sub: u16,
    /// As in the table.
    pub flags: u32,
    /// As in the table.
    pub region: u64,
    /// As in the table.
    pub task: u64,
    /// As in the table.
    pub other: u64,
    /// Return address of the call of the runtime; 0 where the callback has none.
    pub codeptr_ra: u64,
}

/// In the place of a number that a runtime of old did not tell, where 0 would be one.
pub const NOT_TOLD: u32 = u32::MAX;

/// Why there is no event in a place of a ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Missing {
    /// It was begun, and not finished when it was read.
    #[error("it was being written")]
    Torn,
    /// Another event, begun later or earlier, is in its place.
    #[error("another one is in its place")]
    Replaced,
}

impl Event {
    /// The words of a ring. The first one is the last to be written: it says that the others are there, and for which position.
    pub fn words(&self) -> [u64; EVENT_WORDS] {
        let what = u64::from(self.kind)
            | u64::from(self.endpoint) << 8
            | u64::from(self.sub) << 16
            | u64::from(self.flags) << 32;
        let finished = self.position.wrapping_add(1);
        let words = [finished, self.time, what, self.region, self.task, self.other, self.codeptr_ra];
        let [a, b, c, d, e, f, g] = words;
        [a, b, c, d, e, f, g, check(words)]
    }

    /// The event with this position, of the words that were read in its place.
    ///
    /// # Errors
    /// If it is not there, or not whole.
    pub fn from_words(words: [u64; EVENT_WORDS], position: u64) -> Result<Event, Missing> {
        let [finished, time, what, region, task, other, codeptr_ra, checked] = words;
        if finished == 0 {
            return Err(Missing::Torn);
        }
        if finished != position.wrapping_add(1) {
            return Err(Missing::Replaced);
        }
        if checked != check([finished, time, what, region, task, other, codeptr_ra]) {
            return Err(Missing::Torn);
        }
        let [kind, endpoint, sub_low, sub_high, a, b, c, d] = what.to_le_bytes();
        Ok(Event {
            position,
            time,
            kind,
            endpoint,
            sub: u16::from_le_bytes([sub_low, sub_high]),
            flags: u32::from_le_bytes([a, b, c, d]),
            region,
            task,
            other,
            codeptr_ra,
        })
    }
}

/// A check word: it shows whether words belong to one event. A signal handler may write so many events that it comes around to
/// the one that it interrupted. A reader of a running process may get some words of one event and some of the next.
fn check(words: [u64; EVENT_WORDS - 1]) -> u64 {
    // A sum of products, which do not wait for one another. The factors are odd and far apart, so that words that differ by little
    // do not make up for each other.
    const FACTORS: [u64; EVENT_WORDS - 1] = [
        0x9e37_79b9_7f4a_7c15,
        0xff51_afd7_ed55_8ccd,
        0xc4ce_b9fe_1a85_ec53,
        0xd6e8_feb8_6659_fd93,
        0xa076_1d64_78bd_642f,
        0xe703_7ed1_a0b4_28db,
        0x8ebc_6af0_9c88_c6e3,
    ];
    let products = words.iter().zip(FACTORS).map(|(word, factor)| word.wrapping_mul(factor));
    products.fold(0x5897_89e6_c5b7_4f37, u64::wrapping_add)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event() -> Event {
        Event {
            position: 41,
            time: 7,
            kind: 20,
            endpoint: 2,
            sub: 0x1234,
            flags: 0x8000_0001,
            region: 3,
            task: 4,
            other: u64::MAX,
            codeptr_ra: 0x55,
        }
    }

    #[test]
    fn what_was_written_is_read() {
        assert_eq!(Event::from_words(event().words(), 41), Ok(event()));
    }

    #[test]
    fn of_another_position_it_is_not_shown() {
        assert_eq!(Event::from_words(event().words(), 42), Err(Missing::Replaced));
        assert_eq!(Event::from_words([0; EVENT_WORDS], 0), Err(Missing::Torn));
    }

    #[test]
    fn words_of_two_events_are_no_event() {
        let (old, new) = (event().words(), Event { time: 8, region: 9, task: 10, ..event() }.words());
        for whole in 1..(1 << EVENT_WORDS) - 1_usize {
            let mixed: Vec<u64> = (0..EVENT_WORDS).map(|n| if whole >> n & 1 == 1 { new[n] } else { old[n] }).collect();
            let mixed: [u64; EVENT_WORDS] = mixed.try_into().expect("eight words");
            if mixed != old && mixed != new {
                assert_eq!(Event::from_words(mixed, 41), Err(Missing::Torn), "{whole:#b}");
            }
        }
    }
}
