//! Records as devices write them (`ompt_record_ompt_t`; OpenMP 5.2, 19.4.3.4), and what of them is kept.

use std::ffi::{c_char, c_int, c_uint, c_void};

use ompt_record::device::{DeviceRecord, Form, ITEMS, MapItem, More, TEXT};
use ompt_record::event::Event;

use super::entries::Abstract;
use crate::ompt::Dependence;

/// What all records of OMPT begin with.
#[repr(C)]
struct Record {
    kind: c_uint,
    time: u64,
    thread_id: u64,
    target_id: u64,
}

macro_rules! layouts {
    ($($name:ident $size:literal { $($field:ident: $type:ty),* $(,)? })*) => {
        $(#[repr(C)]
        struct $name { $($field: $type),* }
        // As large as C has it.
        const _: () = assert!(size_of::<$name>() == $size);)*
    };
}

layouts! {
    ParallelBegin 32 { task: u64, region: u64, requested: c_uint, flags: c_int, codeptr_ra: u64 }
    ParallelEnd 32 { region: u64, task: u64, flags: c_int, codeptr_ra: u64 }
    Work 40 { kind: c_int, endpoint: c_int, region: u64, task: u64, count: u64, codeptr_ra: u64 }
    Dispatch 32 { region: u64, task: u64, kind: c_int, instance: u64 }
    TaskCreate 32 { creator: u64, task: u64, flags: c_int, has_dependences: c_int, codeptr_ra: u64 }
    Dependences 32 { task: u64, dependence: Dependence, count: c_int }
    TaskDependence 16 { first: u64, waits: u64 }
    TaskSchedule 24 { prior: u64, status: c_int, next: u64 }
    ImplicitTask 40 { endpoint: c_int, region: u64, task: u64, size: c_uint, index: c_uint, flags: c_int }
    Masked 32 { endpoint: c_int, region: u64, task: u64, codeptr_ra: u64 }
    SyncRegion 32 { kind: c_int, endpoint: c_int, region: u64, task: u64, codeptr_ra: u64 }
    MutexAcquire 32 { kind: c_int, hint: c_uint, implementation: c_uint, wait_id: u64, codeptr_ra: u64 }
    Mutex 24 { kind: c_int, wait_id: u64, codeptr_ra: u64 }
    NestLock 24 { endpoint: c_int, wait_id: u64, codeptr_ra: u64 }
    Cancel 24 { task: u64, flags: c_int, codeptr_ra: u64 }
    Target 40 { kind: c_int, endpoint: c_int, device: c_int, task: u64, target_id: u64, codeptr_ra: u64 }
    DataOperation 72 {
        host_op_id: u64, operation: c_int, from: u64, source: c_int, to: u64, destination: c_int, bytes: u64,
        end_time: u64, codeptr_ra: u64,
    }
    Map 56 {
        target_id: u64, count: c_uint, host: *const u64, device: *const u64, bytes: *const u64, flags: *const c_uint,
        codeptr_ra: u64,
    }
    Kernel 24 { host_op_id: u64, requested: c_uint, granted: c_uint, end_time: u64 }
    Control 24 { command: u64, modifier: u64, codeptr_ra: u64 }
    Error 32 { severity: c_int, message: *const c_char, length: usize, codeptr_ra: u64 }
}

const _: () = assert!(size_of::<Record>() == 32);
const _: () = assert!(size_of::<Abstract>() == 40);

fn bits(number: c_int) -> u32 {
    number.cast_unsigned()
}

fn short(number: c_int) -> u16 {
    (bits(number) & 0xffff) as u16
}

fn byte(number: c_int) -> u8 {
    (bits(number) & 0xff) as u8
}

/// Copies the record of OMPT's form at `at`; `None` if it is of no kind that there is. Nothing is read but what belongs
/// to its kind.
///
/// # Safety
/// `at` is a record that the device gave as one of this form, and it is used before the device is asked anything else.
pub unsafe fn ompt(at: *const c_void) -> Option<DeviceRecord> {
    // Where a record lies in a buffer is for the device to decide: nothing is known of its alignment.
    // SAFETY: all records begin so.
    let head = unsafe { at.cast::<Record>().read_unaligned() };
    let kind = u8::try_from(head.kind).ok().filter(|kind| (1..=37).contains(kind))?;
    let mut record = DeviceRecord {
        form: Form::Ompt,
        kind,
        time: Some(head.time),
        thread_id: Some(head.thread_id),
        target_id: Some(head.target_id),
        ..DeviceRecord::default()
    };
    // SAFETY: the union begins behind the header, and the kind says which of its members is there.
    record.what = Some(unsafe { payload(at.cast::<u8>().add(size_of::<Record>()), &mut record) });
    Some(record)
}

/// What the callback would have been told; what more there is goes into the record.
///
/// # Safety
/// `at` is where the union of a record of `record.kind` lies.
#[allow(clippy::cast_ptr_alignment, reason = "all reads are unaligned")]
unsafe fn payload(at: *const u8, record: &mut DeviceRecord) -> Event {
    macro_rules! read {
        ($type:ty) => {
            // SAFETY: the kind says that this is there, as the caller says.
            unsafe { at.cast::<$type>().read_unaligned() }
        };
    }
    let none = Event::default();
    match record.kind {
        1 => Event { sub: short(read!(c_int)), ..none },
        3 => {
            let ParallelBegin { task, region, requested, flags, codeptr_ra } = read!(ParallelBegin);
            Event { flags: bits(flags), region, task, other: requested.into(), codeptr_ra, ..none }
        }
        4 => {
            let ParallelEnd { region, task, flags, codeptr_ra } = read!(ParallelEnd);
            Event { flags: bits(flags), region, task, codeptr_ra, ..none }
        }
        5 => {
            let TaskCreate { creator, task, flags, has_dependences, codeptr_ra } = read!(TaskCreate);
            let sub = u16::from(has_dependences != 0);
            Event { sub, flags: bits(flags), task, other: creator, codeptr_ra, ..none }
        }
        6 => {
            let TaskSchedule { prior, status, next } = read!(TaskSchedule);
            Event { sub: short(status), task: prior, other: next, ..none }
        }
        7 => {
            let ImplicitTask { endpoint, region, task, size, index, flags } = read!(ImplicitTask);
            record.more = Some(More::ImplicitTask { flags: bits(flags) });
            let (endpoint, sub) = (byte(endpoint), short(flags));
            Event { endpoint, sub, flags: index, region, task, other: size.into(), ..none }
        }
        8 | 33 => {
            let Target { kind, endpoint, device, task, target_id, codeptr_ra } = read!(Target);
            let (endpoint, sub, flags) = (byte(endpoint), short(kind), bits(device));
            Event { endpoint, sub, flags, task, other: target_id, codeptr_ra, ..none }
        }
        9 | 34 => {
            let op = read!(DataOperation);
            record.host_op_id = Some(op.host_op_id);
            record.end_time = Some(op.end_time);
            record.more = Some(More::DataOperation { bytes: op.bytes, source: op.source, destination: op.destination });
            Event {
                sub: short(op.operation),
                flags: u32::try_from(op.bytes).unwrap_or(u32::MAX),
                region: op.from,
                task: op.host_op_id,
                other: op.to,
                codeptr_ra: op.codeptr_ra,
                ..none
            }
        }
        10 | 35 => {
            let Kernel { host_op_id, requested, granted, end_time } = read!(Kernel);
            record.host_op_id = Some(host_op_id);
            record.end_time = Some(end_time);
            record.more = Some(More::Kernel { granted_teams: granted });
            Event { flags: requested, task: host_op_id, other: record.target_id.unwrap_or(0), ..none }
        }
        11 => {
            let Control { command, modifier, codeptr_ra } = read!(Control);
            record.more = Some(More::Control { command });
            Event { flags: u32::try_from(command).unwrap_or(u32::MAX), task: modifier, codeptr_ra, ..none }
        }
        16 | 23 | 31 => {
            let SyncRegion { kind, endpoint, region, task, codeptr_ra } = read!(SyncRegion);
            Event { endpoint: byte(endpoint), sub: short(kind), region, task, codeptr_ra, ..none }
        }
        17 | 25 | 27 => {
            let Mutex { kind, wait_id, codeptr_ra } = read!(Mutex);
            Event { sub: short(kind), other: wait_id, codeptr_ra, ..none }
        }
        18 => {
            let Dependences { task, dependence, count } = read!(Dependences);
            let sub = (dependence.dependence_type & 0xffff) as u16;
            Event { sub, flags: bits(count), task, other: dependence.variable, ..none }
        }
        19 => {
            let TaskDependence { first, waits } = read!(TaskDependence);
            Event { task: first, other: waits, ..none }
        }
        20 => {
            let Work { kind, endpoint, region, task, count, codeptr_ra } = read!(Work);
            Event { endpoint: byte(endpoint), sub: short(kind), region, task, other: count, codeptr_ra, ..none }
        }
        21 => {
            let Masked { endpoint, region, task, codeptr_ra } = read!(Masked);
            Event { endpoint: byte(endpoint), region, task, codeptr_ra, ..none }
        }
        22 | 36 => {
            let map = read!(Map);
            // SAFETY: arrays of so many, each null or there.
            unsafe { items(&map, record) };
            Event { flags: map.count, other: map.target_id, codeptr_ra: map.codeptr_ra, ..none }
        }
        24 | 26 => {
            let MutexAcquire { kind, hint, implementation, wait_id, codeptr_ra } = read!(MutexAcquire);
            record.more = Some(More::Mutex { implementation });
            Event { sub: short(kind), flags: hint, other: wait_id, codeptr_ra, ..none }
        }
        28 => {
            let NestLock { endpoint, wait_id, codeptr_ra } = read!(NestLock);
            Event { endpoint: byte(endpoint), other: wait_id, codeptr_ra, ..none }
        }
        29 => Event { codeptr_ra: read!(u64), ..none },
        30 => {
            let Cancel { task, flags, codeptr_ra } = read!(Cancel);
            Event { flags: bits(flags), task, codeptr_ra, ..none }
        }
        32 => {
            let Dispatch { region, task, kind, instance } = read!(Dispatch);
            Event { sub: short(kind), region, task, other: instance, ..none }
        }
        37 => {
            let Error { severity, message, length, codeptr_ra } = read!(Error);
            record.more = Some(More::Error { length: length as u64 });
            // SAFETY: null, or a text of this length.
            record.text = unsafe { text(message, length) };
            let flags = u32::try_from(length).unwrap_or(u32::MAX);
            Event { sub: short(severity), flags, codeptr_ra, ..none }
        }
        // The union has nothing for these: thread_end (2) and the callbacks of devices (12 to 15).
        _ => none,
    }
}

/// The first items of a map.
///
/// # Safety
/// Its arrays are null, or have as many members as it says.
unsafe fn items(map: &Map, record: &mut DeviceRecord) {
    // Each array may be missing.
    macro_rules! member {
        ($array:expr, $n:expr) => {
            // SAFETY: as the caller says, and `$n` is less than the count.
            (!$array.is_null()).then(|| unsafe { $array.add($n).read_unaligned() })
        };
    }
    let count = usize::try_from(map.count).unwrap_or(usize::MAX).min(ITEMS);
    for (n, item) in record.items.iter_mut().enumerate().take(count) {
        *item = Some(MapItem {
            host: member!(map.host, n),
            device: member!(map.device, n),
            bytes: member!(map.bytes, n),
            flags: member!(map.flags, n),
        });
    }
}

/// What is known of a native record: nothing but what its abstract form says.
///
/// # Safety
/// `of` is null or what the device gave, and it is used before the device is asked anything else.
pub unsafe fn native(host_op_id: u64, of: *const Abstract) -> DeviceRecord {
    let mut record = DeviceRecord { form: Form::Native, host_op_id: Some(host_op_id), ..DeviceRecord::default() };
    if !of.is_null() {
        // SAFETY: as the caller says.
        let Abstract { class, kind, start_time, end_time, hardware } = unsafe { of.read_unaligned() };
        record.time = Some(start_time);
        // 0 stands for none (OpenMP 5.2, 19.4.3.3).
        record.end_time = (end_time != 0).then_some(end_time);
        record.more = Some(More::Abstract { class, hardware });
        // SAFETY: null, or a string.
        record.text = unsafe { text(kind, usize::MAX) };
    }
    record
}

/// The first bytes of a text.
///
/// # Safety
/// It is null, or there up to its length or to a zero.
unsafe fn text(from: *const c_char, length: usize) -> Option<[u8; TEXT]> {
    if from.is_null() {
        return None;
    }
    let mut text = [0; TEXT];
    // SAFETY: the same.
    unsafe { copy_text(from, length, &mut text) };
    Some(text)
}

/// Copies a text up to a zero, its length or the end of the place for it.
///
/// # Safety
/// It is there up to its length or to a zero.
pub unsafe fn copy_text(from: *const c_char, length: usize, to: &mut [u8]) {
    for (n, place) in to.iter_mut().enumerate().take(length) {
        // SAFETY: no zero was before it, and it is within the length.
        let byte = unsafe { from.add(n).read() };
        if byte == 0 {
            break;
        }
        *place = byte.cast_unsigned();
    }
}
