//! What a device calls: it asks for buffers, and delivers them with records. It does so on threads of its own.

use std::ffi::{c_int, c_void};
use std::ptr::{null, null_mut};
use std::sync::atomic::Ordering::Relaxed;

use ompt_record::device::DeviceRecord;

use super::entries::{Cursor, Opaque};
use super::{One, buffers, layout, translate};
use crate::block::{header, now, own_lwp};

/// `ompt_record_ompt` and `ompt_record_native` (`ompt_record_t`).
const OMPT: c_int = 1;
const NATIVE: c_int = 2;

/// Records are taken to be no smaller than this; a cursor that advances more often than that allows does not come to an
/// end.
const SMALLEST_RECORD: usize = 8;

/// `ompt_callback_buffer_request_t`: a device wants a buffer. It gets none, and says so with 0 bytes, when it has
/// enough.
///
/// # Safety
/// `buffer` and `bytes` are null or places for the answer.
pub unsafe extern "C" fn request(number: c_int, buffer: *mut Opaque, bytes: *mut usize) {
    let lent = One::with_number(number).and_then(|one| {
        let enough = buffers::lent_to(one.index) >= one.slot.most.load(Relaxed);
        let lent = if enough || buffer.is_null() || bytes.is_null() {
            None
        } else {
            buffers::lend(one.index, one.slot.size.load(Relaxed))
        };
        let count = if lent.is_some() { &one.told.buffers_given } else { &one.told.buffers_refused };
        count.fetch_add(1, Relaxed);
        if lent.is_none() {
            one.slot.dry.store(true, Relaxed);
        }
        lent
    });
    let (at, size) = lent.unwrap_or((null_mut(), 0));
    // SAFETY: null or places for them, as the caller says.
    unsafe {
        if let Some(buffer) = buffer.as_mut() {
            *buffer = at;
        }
        if let Some(bytes) = bytes.as_mut() {
            *bytes = size;
        }
    }
}

/// `ompt_callback_buffer_complete_t`: there are records in a buffer, perhaps none, in any order. With `owned` 1 it is
/// ours again; otherwise the device goes on writing into it, and it is left alone.
///
/// # Safety
/// What the cursor and those that come after it stand for are records of the device with this number.
pub unsafe extern "C" fn complete(number: c_int, buffer: Opaque, bytes: usize, begin: Cursor, owned: c_int) {
    let Some(one) = One::with_number(number) else { return };
    one.told.deliveries.fetch_add(1, Relaxed);
    one.told.delivered_by.store(own_lwp(), Relaxed);
    if bytes > 0 {
        match buffers::size_of_lent(one.index, buffer) {
            // SAFETY: as the caller says.
            Some(size) if bytes <= size => unsafe { walk(one, (buffer, size), bytes, begin) },
            // It is no buffer of ours, or there cannot be so much in it.
            _ => {
                one.told.cut.fetch_add(1, Relaxed);
            }
        }
    }
    if owned == 1 && buffers::take_back(one.index, buffer) {
        one.told.buffers_back.fetch_add(1, Relaxed);
    }
}

/// Writes down all records from a cursor on, in a buffer of this size.
///
/// # Safety
/// As for [`complete`].
unsafe fn walk(one: One, (buffer, size): (*mut c_void, usize), bytes: usize, begin: Cursor) {
    let entries = &one.slot.entries;
    let (Some(get_record_type), Some(advance)) = (entries.get_record_type(), entries.advance_buffer_cursor()) else {
        return;
    };
    let most = bytes / SMALLEST_RECORD + 1;
    let mut cursor = begin;
    // A cursor that was there before: it is compared with all that come, and another one is taken ever less often
    // (after Brent).
    let (mut seen, mut next_look) = (begin, 1);
    for step in 1..=most {
        // SAFETY: the device's entry points, for a buffer it has delivered.
        let form = unsafe { get_record_type(buffer, cursor) };
        let record = match form {
            // SAFETY: the same.
            OMPT => unsafe { read_ompt(one, buffer, cursor) },
            // SAFETY: the same.
            NATIVE => unsafe { read_native(one, buffer, cursor) },
            _ => {
                // The cursor is out of bounds: nothing comes after it (OpenMP 5.2, 19.6.2.11).
                one.told.invalid.fetch_add(1, Relaxed);
                return;
            }
        };
        match record {
            Some(record) => write(one, record),
            None => {
                one.told.invalid.fetch_add(1, Relaxed);
            }
        }
        let mut next = cursor;
        // SAFETY: the same, and a place for the answer.
        if unsafe { advance(one.handle(), buffer, size, cursor, &raw mut next) } == 0 {
            return;
        }
        if next == seen || next == cursor {
            break;
        }
        if step == next_look {
            (seen, next_look) = (cursor, 2 * next_look);
        }
        cursor = next;
    }
    one.told.cut.fetch_add(1, Relaxed);
}

/// # Safety
/// As for [`complete`].
unsafe fn read_ompt(one: One, buffer: *mut c_void, cursor: Cursor) -> Option<DeviceRecord> {
    let get_record_ompt = one.slot.entries.get_record_ompt()?;
    // SAFETY: the device's entry point, for a buffer and a record of this form that it has delivered.
    let at = unsafe { get_record_ompt(buffer, cursor) };
    if at.is_null() {
        return None;
    }
    // SAFETY: the device says that it is one of OMPT's records, and nothing is asked in between.
    unsafe { layout::ompt(at) }
}

/// # Safety
/// As for [`complete`].
unsafe fn read_native(one: One, buffer: *mut c_void, cursor: Cursor) -> Option<DeviceRecord> {
    let entries = &one.slot.entries;
    let get_record_native = entries.get_record_native()?;
    let mut host_op_id = 0;
    // SAFETY: the device's entry point, for a buffer and a record of this form that it has delivered.
    let at = unsafe { get_record_native(buffer, cursor, &raw mut host_op_id) };
    if at.is_null() {
        return None;
    }
    // SAFETY: the record that the device gave.
    let summary =
        entries.get_record_abstract().map_or(null(), |get_record_abstract| unsafe { get_record_abstract(at) });
    // SAFETY: null or a summary; nothing is asked in between.
    Some(unsafe { layout::native(host_op_id, summary) })
}

fn write(one: One, record: DeviceRecord) {
    let Some(place) = one.place() else { return };
    // At once: the clocks may run apart (OpenMP 5.2, 19.6.2.3).
    let host_time = record.time.and_then(|time| translate(one, time));
    let host_end_time = record.end_time.and_then(|time| translate(one, time));
    let record =
        DeviceRecord { delivered: now(), device: one.slot.number.load(Relaxed), host_time, host_end_time, ..record };
    place.write_all(record.parts().events());
    one.told.records.fetch_add(1, Relaxed);
    if let Some(header) = header() {
        header.device_records.fetch_add(1, Relaxed);
    }
}
