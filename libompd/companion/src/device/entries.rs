//! The entry points of a device, and the types of OMPT's device tracing interface (OpenMP 5.2, 19.6.2; `omp-tools.h`).

use std::ffi::{CString, c_char, c_int, c_uint, c_void};
use std::ptr::null_mut;
use std::sync::atomic::AtomicPtr;
use std::sync::atomic::Ordering::Relaxed;

use ompt_record::device::ENTRY_POINTS;

use crate::ompt::{EntryPoint, Lookup};

/// `ompt_device_t`, `ompt_buffer_t` and native records: what is behind it only the device knows.
pub type Opaque = *mut c_void;
/// `ompt_buffer_cursor_t`
pub type Cursor = u64;

/// `ompt_callback_buffer_request_t`
pub type Request = unsafe extern "C" fn(c_int, *mut Opaque, *mut usize);
/// `ompt_callback_buffer_complete_t`
pub type Complete = unsafe extern "C" fn(c_int, Opaque, usize, Cursor, c_int);

/// `ompt_record_abstract_t`
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct Abstract {
    pub class: c_uint,
    pub kind: *const c_char,
    pub start_time: u64,
    pub end_time: u64,
    pub hardware: u64,
}

/// The entry points that a device has; null for those it has not. They are words, so that a thread that delivers
/// records may look while another device takes the place.
#[derive(Debug)]
pub struct Entries([AtomicPtr<()>; ENTRY_POINTS.len()]);

macro_rules! typed {
    ($($method:ident = $number:literal: $type:ty;)*) => {
        impl Entries {
            $(pub fn $method(&self) -> Option<$type> {
                let entry = self.0.get($number)?.load(Relaxed);
                // SAFETY: the runtime gave it for the name at this place of the list, whose type this is.
                (!entry.is_null()).then(|| unsafe { std::mem::transmute::<*mut (), $type>(entry) })
            })*
        }
    };
}

typed! {
    get_device_num_procs = 0: unsafe extern "C" fn(Opaque) -> c_int;
    get_device_time = 1: unsafe extern "C" fn(Opaque) -> u64;
    translate_time = 2: unsafe extern "C" fn(Opaque, u64) -> f64;
    set_trace_ompt = 3: unsafe extern "C" fn(Opaque, c_uint, c_uint) -> c_int;
    set_trace_native = 4: unsafe extern "C" fn(Opaque, c_int, c_int) -> c_int;
    get_buffer_limits = 5: unsafe extern "C" fn(Opaque, *mut c_int, *mut usize);
    start_trace = 6: unsafe extern "C" fn(Opaque, Request, Complete) -> c_int;
    pause_trace = 7: unsafe extern "C" fn(Opaque, c_int) -> c_int;
    flush_trace = 8: unsafe extern "C" fn(Opaque) -> c_int;
    stop_trace = 9: unsafe extern "C" fn(Opaque) -> c_int;
    advance_buffer_cursor = 10: unsafe extern "C" fn(Opaque, Opaque, usize, Cursor, *mut Cursor) -> c_int;
    get_record_type = 11: unsafe extern "C" fn(Opaque, Cursor) -> c_int;
    get_record_ompt = 12: unsafe extern "C" fn(Opaque, Cursor) -> *const c_void;
    get_record_native = 13: unsafe extern "C" fn(Opaque, Cursor, *mut u64) -> Opaque;
    get_record_abstract = 14: unsafe extern "C" fn(Opaque) -> *const Abstract;
}

impl Entries {
    /// None.
    pub const fn new() -> Entries {
        Entries([const { AtomicPtr::new(null_mut()) }; ENTRY_POINTS.len()])
    }

    /// Asks a device for all of them, or forgets all. Returns which there are, a bit each.
    pub fn look_up(&self, lookup: Option<Lookup>) -> u64 {
        let mut found = 0;
        for ((n, name), place) in ENTRY_POINTS.iter().enumerate().zip(&self.0) {
            let entry = lookup.zip(CString::new(*name).ok()).and_then(|(lookup, name)| {
                // SAFETY: the device's look-up function, which takes a string of C's.
                unsafe { lookup(name.as_ptr()) }
            });
            found |= u64::from(entry.is_some()) << n;
            place.store(entry.map_or(null_mut(), |entry: EntryPoint| entry as *mut ()), Relaxed);
        }
        found
    }
}
