//! Callbacks by which the runtime introduces a device and takes leave of it.

use std::ffi::{c_char, c_int, c_void};

use ompt_record::event::Event;

use crate::callback::{Numbered, bits, callback, record};
use crate::ompt::{Callback, Lookup};

unsafe extern "C" fn device_initialize(
    number: c_int,
    kind: *const c_char,
    handle: *mut c_void,
    lookup: Option<Lookup>,
    documentation: *const c_char,
) {
    record(|| Event { kind: 12, flags: bits(number), ..Event::default() });
    // SAFETY: strings and the look-up function of the runtime's.
    unsafe { super::introduce(number, kind, handle, lookup, documentation) };
}

unsafe extern "C" fn device_finalize(number: c_int) {
    super::gone(number);
    record(|| Event { kind: 13, flags: bits(number), ..Event::default() });
}

/// Both.
pub fn all() -> Vec<Numbered> {
    type Initialize = unsafe extern "C" fn(c_int, *const c_char, *mut c_void, Option<Lookup>, *const c_char);
    vec![
        (12, callback!(device_initialize as Initialize)),
        (13, callback!(device_finalize as unsafe extern "C" fn(c_int))),
    ]
}
