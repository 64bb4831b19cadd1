//! What all callbacks are made of.

use std::ffi::c_int;
use std::sync::atomic::Ordering::Relaxed;

use ompt_record::event::Event;

use crate::block::{Recorder, is_recording, now};
use crate::ompt::{Callback, Data};

/// The word that the runtime keeps for the tool; 0 where it keeps none.
///
/// # Safety
/// `data` is null or what a runtime gave a callback that is running.
pub unsafe fn word(data: *const Data) -> u64 {
    // SAFETY: as the caller says.
    unsafe { data.as_ref() }.map_or(0, |data| data.load(Relaxed))
}

/// Files a number with a thread, region or task.
///
/// # Safety
/// As for [`word`].
pub unsafe fn file(data: *const Data, id: u64) {
    // SAFETY: as the caller says.
    if let Some(data) = unsafe { data.as_ref() } {
        data.store(id, Relaxed);
    }
}

/// A number of C's, as the bits that events keep of it.
pub fn bits(number: c_int) -> u32 {
    number.cast_unsigned()
}

pub fn short(number: c_int) -> u16 {
    // Kinds and types are small; of flags the lower half is of interest.
    (bits(number) & 0xffff) as u16
}

pub fn endpoint(number: c_int) -> u8 {
    (bits(number) & 0xff) as u8
}

/// Writes an event, if the companion records and the thread has a ring.
pub fn record(event: impl FnOnce() -> Event) {
    if is_recording()
        && let Some(place) = Recorder::own()
    {
        place.write(Event { time: now(), ..event() });
    }
}

/// A function as a callback of no particular type.
macro_rules! callback {
    ($function:ident as $type:ty) => {{
        let function: $type = $function;
        // SAFETY: a pointer to a function is one, whatever its parameters; the runtime calls it as the number says.
        unsafe { std::mem::transmute::<$type, Callback>(function) }
    }};
}
pub(crate) use callback;

/// A callback and its number.
pub type Numbered = (u8, Callback);
