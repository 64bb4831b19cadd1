//! Devices: what is kept of each, and the records of their traces (OpenMP 5.2, 19.5.2.20 and 19.6.2; 6.0 for what it
//! adds).
//!
//! A device that is traced has a ring of its own. A record takes several events of it, one after another: the parts in
//! [`part`].

mod read;
mod record;

use std::sync::atomic::AtomicU64;

use crate::block::words;

pub use record::{DeviceRecord, DeviceRecords, Form, ITEMS, MOST_PARTS, MapItem, More, Parts, TEXT, part, records};

/// The entry points that a device's look-up function knows (OpenMP 5.2, table 19.4; `ompt_get_buffer_limits` is of
/// 6.0).
pub const ENTRY_POINTS: [&str; 15] = [
    "ompt_get_device_num_procs",
    "ompt_get_device_time",
    "ompt_translate_time",
    "ompt_set_trace_ompt",
    "ompt_set_trace_native",
    "ompt_get_buffer_limits",
    "ompt_start_trace",
    "ompt_pause_trace",
    "ompt_flush_trace",
    "ompt_stop_trace",
    "ompt_advance_buffer_cursor",
    "ompt_get_record_type",
    "ompt_get_record_ompt",
    "ompt_get_record_native",
    "ompt_get_record_abstract",
];

/// In [`Device::capabilities`], beside a bit for each of [`ENTRY_POINTS`]: the runtime gave a look-up function at all.
pub const HAS_LOOKUP: u64 = 1 << 32;
/// In [`Device::capabilities`]: the runtime gave a string with documentation.
pub const HAS_DOCUMENTATION: u64 = 1 << 33;
/// In [`Device::capabilities`]: what is known of the device's clock: [`Device::device_time`].
pub const HAS_TIME: u64 = 1 << 34;
/// In [`Device::capabilities`]: [`Device::host_time`].
pub const HAS_HOST_TIME: u64 = 1 << 35;
/// In [`Device::capabilities`]: [`Device::processors`].
pub const HAS_PROCESSORS: u64 = 1 << 36;
/// In [`Device::capabilities`]: [`Device::limit_buffers`] and [`Device::limit_bytes`].
pub const HAS_LIMITS: u64 = 1 << 37;

/// In the place of an answer where nothing was asked, in [`Device::answers`] and the words of results.
pub const NOT_ASKED: u8 = 15;

/// Devices that are remembered; those beyond are counted in
/// [`Header::devices_beyond`](crate::block::Header::devices_beyond).
pub const DEVICES: usize = 12;
/// Where their table begins, in bytes from the beginning of the block.
pub const TABLE_AT: u64 = 1024;
/// Bytes of an entry: a [`Device`], and behind it its type.
pub const ENTRY_SIZE: u64 = 256;
/// Bytes of the text that says what kind of device it is; it ends at the first zero, or with them.
pub const TYPE_NAME: usize = 64;

words! {
    /// A device, as the runtime introduced it, and how its tracing goes.
    Device, DeviceValues {
        /// [`DeviceState`].
        state,
        /// Its number (`device_num`), in the lower half.
        number,
        /// Which of [`ENTRY_POINTS`] it has (bit n the n-th), and what else is known: `HAS_...`.
        capabilities,
        /// Answers, a nibble each, from the lowest: `ompt_set_trace_ompt` for all kinds at once,
        /// `ompt_set_trace_native` for all flags at once, the last `ompt_start_trace` (0 or 1), the last
        /// `ompt_pause_trace`, `ompt_flush_trace`, `ompt_stop_trace`. 14: a number that is no answer. 15: it was not
        /// called.
        answers,
        /// What `ompt_set_trace_ompt` answered for kinds 1 to 16, a nibble each, as in
        /// [`Header::results_first`](crate::block::Header::results_first); 15: it was not asked for that kind alone.
        results_first,
        /// The same for 17 to 32.
        results_second,
        /// The same for 33 to 48.
        results_third,
        /// What `ompt_set_trace_native` answered for each of its eight flags alone, a nibble each.
        results_native,
        /// Index of the ring with its records, from 1; 0 if it has none.
        ring,
        /// When it was introduced.
        began,
        /// When it was finalised; 0 as long as it is not.
        ended,
        /// What `ompt_get_device_num_procs` answered when it was introduced.
        processors,
        /// What its clock said then, in its own units.
        device_time,
        /// The same moment as seconds of `omp_get_wtime`: bits of a `double`, from `ompt_translate_time`.
        host_time,
        /// How many buffers the device wants at most at a time (`ompt_get_buffer_limits`), in the lower half.
        limit_buffers,
        /// How large it wants them.
        limit_bytes,
        /// Buffers it got.
        buffers_given,
        /// Buffers it asked for and did not get: what happened then may be missing.
        buffers_refused,
        /// Buffers whose ownership it gave back.
        buffers_back,
        /// Deliveries: calls of the completion callback.
        deliveries,
        /// Records that were written.
        records,
        /// Records that could not be: of a type that is none, or without contents.
        invalid,
        /// Deliveries that were not walked to their end, since the cursor did not come to one, or that were of no
        /// buffer of ours.
        cut,
        /// The kernel's id of the thread that delivered last.
        delivered_by,
    }
}

const _: () = assert!(size_of::<Device>() + TYPE_NAME <= ENTRY_SIZE as usize);
const _: () = assert!(TABLE_AT + DEVICES as u64 * ENTRY_SIZE <= crate::block::PAGE);
const _: () = assert!(size_of::<crate::block::Header>() + crate::block::RUNTIME_NAME <= TABLE_AT as usize);

/// What becomes of a device. The numbers are those of [`Device::state`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u64)]
pub enum DeviceState {
    /// The entry is nobody's.
    Free = 0,
    /// It cannot be traced: it offers too little, or accepts no kind of event; or there was no ring left for it.
    Untraceable = 1,
    /// It is not traced: not yet, or no more, or it refused to start.
    Stopped = 2,
    /// It is traced.
    Tracing = 3,
    /// Its tracing is paused.
    Paused = 4,
    /// A command is on its way.
    Changing = 5,
    /// It was finalised.
    Gone = 6,
    /// The process is the child of a fork, and the device was its parent's.
    LeftBehind = 7,
    /// It is being introduced: the rest of the entry may be of an earlier one.
    Coming = 8,
}

impl DeviceState {
    /// The state with this number.
    pub fn from_number(number: u64) -> Option<DeviceState> {
        use DeviceState::{Changing, Coming, Free, Gone, LeftBehind, Paused, Stopped, Tracing, Untraceable};
        let all = [Free, Untraceable, Stopped, Tracing, Paused, Changing, Gone, LeftBehind, Coming];
        all.into_iter().find(|state| *state as u64 == number)
    }
}

/// A device of a block, as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceAt {
    /// Where in the table.
    pub index: usize,
    /// Its words.
    pub values: DeviceValues,
    /// What the runtime calls it; empty if it gave no name.
    pub type_name: String,
}

impl DeviceAt {
    /// Its number.
    pub fn number(&self) -> i32 {
        low(self.values.number)
    }

    /// Whether it has the entry point of this name.
    pub fn has(&self, entry_point: &str) -> bool {
        let at = ENTRY_POINTS.iter().position(|name| *name == entry_point);
        at.is_some_and(|n| self.values.capabilities >> n & 1 == 1)
    }

    /// What `ompt_set_trace_ompt` answered for a kind of record alone; `None` if it was not asked.
    pub fn result(&self, kind: u8) -> Option<u8> {
        result([self.values.results_first, self.values.results_second, self.values.results_third], kind)
    }

    /// What the call of this number answered, counted as in [`Device::answers`]; `None` if it was not called.
    pub fn answer(&self, call: Answer) -> Option<u8> {
        nibble(self.values.answers, call as usize)
    }
}

fn low(word: u64) -> i32 {
    low_unsigned(word).cast_signed()
}

fn low_unsigned(word: u64) -> u32 {
    (word & u64::from(u32::MAX)) as u32
}

/// The answer for a kind of event, from words that have a nibble for each.
pub(crate) fn result(words: [u64; 3], kind: u8) -> Option<u8> {
    let n = usize::from(kind).checked_sub(1)?;
    nibble(*words.get(n / 16)?, n % 16)
}

fn nibble(word: u64, n: usize) -> Option<u8> {
    let value = (word >> (4 * n.min(15)) & 15) as u8;
    (value != NOT_ASKED).then_some(value)
}

/// The calls whose answers are in [`Device::answers`], by their place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Answer {
    /// `ompt_set_trace_ompt` for all kinds.
    TraceOmpt = 0,
    /// `ompt_set_trace_native` for all flags.
    TraceNative = 1,
    /// The last `ompt_start_trace`.
    Start = 2,
    /// The last `ompt_pause_trace`.
    Pause = 3,
    /// The last `ompt_flush_trace`.
    Flush = 4,
    /// The last `ompt_stop_trace`.
    Stop = 5,
}
