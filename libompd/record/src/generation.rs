//! Older generations of OMPT, in the terms of today's.
//!
//! OMPT's numbers were assigned several times. What a runtime of 2014 calls state 0x10 is state 0x100 since 2017, and event 3 is
//! callback 5. A [`Generation`] is a column of the tables behind this module; there is one table for each enumeration. A lookup
//! gives the meaning of a number today, or says that today has nothing quite the same ([`Today`]).
//!
//! The columns are those of the documents: numbers that a document does not give are unknown here, whatever some runtime of the time
//! used. That matters: runtimes that were there before Technical Report 2 was settled numbered their events from 24 on otherwise.

mod tables;

use crate::ompt;

/// The last callback that the drafts of 5.0 want always.
const LAST_ALWAYS_OF_DRAFTS: u8 = 13;

/// A set of numbers that OMPT had.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Generation {
    /// OpenMP Technical Report 2 (2014), which calls itself version 1 of OMPT: events instead of callbacks with arguments, started by
    /// `ompt_initialize`.
    Tr2,
    /// The chapter that calls itself version 2, started by `ompt_tool`. It has numbers for what `ompt_set_callback` answers, and none
    /// for states and events.
    Version2,
    /// The draft of OpenMP 5.0 with `omp_state_t`, started by `ompt_start_tool`. What `ompt_set_callback` answers has no numbers in
    /// it.
    Draft5,
    /// The draft of OpenMP 5.0 of the year 2018, as runtimes of that year have it. Its callbacks have today's numbers, and 31 is
    /// `idle`.
    Draft2018,
    /// OpenMP 5.0.
    OpenMp50,
    /// OpenMP 5.1 and 5.2.
    OpenMp51,
    /// OpenMP 6.0.
    OpenMp60,
}

impl Generation {
    /// All of them, oldest first: the order of the tables' columns.
    pub const ALL: [Generation; 7] = [
        Generation::Tr2,
        Generation::Version2,
        Generation::Draft5,
        Generation::Draft2018,
        Generation::OpenMp50,
        Generation::OpenMp51,
        Generation::OpenMp60,
    ];

    /// What a number of this generation means. `None` if the document gives it to nothing.
    pub fn decode(self, what: Enumeration, number: u64) -> Option<Decoded> {
        let row = tables::rows(what).iter().find(|row| row.numbers[self as usize] == number)?;
        (number != tables::NONE).then_some(Decoded { name: row.name, today: row.today })
    }

    /// What an event (TR2) or callback (later) of this generation is. `None` if the document gives the number to nothing.
    pub const fn event(self, number: u64) -> Option<OldEvent> {
        let mut n = 0;
        while n < tables::EVENTS.len() {
            let row = &tables::EVENTS[n];
            if row.numbers[self as usize] == number && number != tables::NONE {
                return Some(OldEvent { name: row.name, today: row.today });
            }
            n += 1;
        }
        None
    }

    /// Flags of this generation bit by bit, in today's bits; beside them those bits that mean nothing known.
    pub fn flags(self, what: Enumeration, flags: u64) -> (u64, u64) {
        let bits = (0..u64::BITS).map(|n| 1 << n).filter(|bit| flags & bit != 0);
        bits.fold((0, 0), |(today, unknown), bit| match self.decode(what, bit).map(|decoded| decoded.today) {
            Some(Today::Number(number) | Today::Folded(number)) => (today | number, unknown),
            _ => (today, unknown | bit),
        })
    }

    /// Whether a runtime may answer this when a callback is registered, both in today's numbers. TR2 and version 2 permit all that
    /// they have.
    pub fn permits(self, callback: u8, answer: u8) -> bool {
        const ALWAYS: u8 = 5;
        let always = match self {
            Generation::Tr2 | Generation::Version2 => false,
            // Up to `device_finalize`: a minimal implementation has these.
            Generation::Draft5 | Generation::Draft2018 => callback <= LAST_ALWAYS_OF_DRAFTS,
            _ => ompt::callback(callback).is_some_and(|callback| callback.must_be_always),
        };
        // "impossible" is an answer about traces only.
        answer == ALWAYS || (!always && [1, 3, 4].contains(&answer))
    }

    /// Whether a state with this number is one of the runtime's own, which no document names.
    pub fn is_own_state(self, number: u64) -> bool {
        match tables::OWN_STATES[self as usize] {
            tables::NONE => false,
            first => number >= first,
        }
    }
}

/// What numbers are of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Enumeration {
    /// `ompt_state_t`, once `omp_state_t`.
    State,
    /// What `ompt_set_callback` answers: `ompt_set_result_t`.
    SetResult,
    /// `ompt_thread_t`, once `ompt_thread_type_t`.
    Thread,
    /// `ompt_scope_endpoint_t`.
    Endpoint,
    /// `ompt_sync_region_t`, once `ompt_sync_region_kind_t`.
    SyncRegion,
    /// `ompt_work_t`, once `ompt_work_type_t`.
    Work,
    /// `ompt_mutex_t`, once `ompt_mutex_kind_t`.
    Mutex,
    /// `ompt_dependence_type_t`, once `ompt_task_dependence_flag_t`.
    Dependence,
    /// `ompt_task_status_t`.
    TaskStatus,
    /// Bits of `ompt_task_flag_t`, once `ompt_task_type_t`.
    TaskFlag,
    /// Bits of `ompt_parallel_flag_t`, once the numbers of `ompt_invoker_t`.
    ParallelFlag,
    /// Bits of `ompt_cancel_flag_t`.
    CancelFlag,
    /// `ompt_target_t`, once `ompt_target_type_t`.
    Target,
    /// `ompt_target_data_op_t`.
    TargetDataOp,
    /// Bits of `ompt_target_map_flag_t`.
    TargetMapFlag,
    /// Bits of `ompt_native_mon_flag_t`.
    NativeFlag,
    /// `ompt_record_t`, once `ompt_record_kind_t`.
    Record,
    /// `ompt_record_native_t`, once `ompt_record_native_kind_t`.
    NativeRecord,
}

/// A number that was looked up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decoded {
    /// What its generation calls it, without the prefix that all of a kind share.
    pub name: &'static str,
    /// What it is today.
    pub today: Today,
}

/// What something old is today. Numbers are those that [`ompt`] has names for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Today {
    /// It has this number.
    Number(u64),
    /// It has this number together with other things that were told apart then.
    Folded(u64),
    /// It is one of these, and the number does not tell which.
    OneOf(&'static [u64]),
    /// There is nothing like it.
    Gone,
}

impl Today {
    /// The number it has today, if that is certain.
    pub fn number(self) -> Option<u64> {
        match self {
            Today::Number(number) | Today::Folded(number) => Some(number),
            Today::OneOf(_) | Today::Gone => None,
        }
    }
}

/// An event or callback that was looked up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OldEvent {
    /// What its generation calls it, without `ompt_event_` or `ompt_callback_`.
    pub name: &'static str,
    /// The callback that tells of it today.
    pub today: EventToday,
}

/// What tells of an old event today.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventToday {
    /// This callback.
    Callback {
        /// Its number ([`ompt::CALLBACKS`]).
        number: u8,
        /// What would be its endpoint (`ompt_scope_endpoint_t`); 0 where it has none, or has its own to say.
        endpoint: u8,
        /// What would be its kind, type or status, as [`Event::sub`](crate::event::Event::sub) has it; `None` where the number does
        /// not tell.
        sub: Option<u16>,
    },
    /// No callback: it is told otherwise, or not at all.
    Gone,
}

#[cfg(test)]
mod tests;
