//! What the host does with devices: target regions, operations on data, kernels, code that is loaded.

use std::ffi::{c_char, c_int, c_uint};

use ompt_record::event::Event;

use super::{Numbered, Pair, bits, callback, endpoint, file, record, short, word};
use crate::block::{Recorder, is_recording, now};
use crate::ompt::{Callback, CodePtr, Data, END};

unsafe extern "C" fn target(
    kind: c_int,
    scope: c_int,
    device: c_int,
    task: *const Data,
    target_id: u64,
    codeptr_ra: CodePtr,
) {
    // SAFETY: the runtime's words.
    let task = unsafe { word(task) };
    record(|| Event {
        kind: 8,
        endpoint: endpoint(scope),
        sub: short(kind),
        flags: bits(device),
        task,
        other: target_id,
        codeptr_ra: codeptr_ra as u64,
        ..Event::default()
    });
}

/// An operation, and one end of it if that is told.
fn operation_as(
    endpoint: u8,
    host_op_id: u64,
    kind: c_int,
    from: CodePtr,
    to: CodePtr,
    bytes: usize,
    codeptr_ra: CodePtr,
) {
    record(|| Event {
        kind: 9,
        endpoint,
        sub: short(kind),
        flags: u32::try_from(bytes).unwrap_or(u32::MAX),
        region: from as u64,
        task: host_op_id,
        other: to as u64,
        codeptr_ra: codeptr_ra as u64,
        ..Event::default()
    });
}

unsafe extern "C" fn target_data_op(
    _target_id: u64,
    host_op_id: u64,
    operation: c_int,
    source: CodePtr,
    _source_device: c_int,
    destination: CodePtr,
    _destination_device: c_int,
    bytes: usize,
    codeptr_ra: CodePtr,
) {
    operation_as(0, host_op_id, operation, source, destination, bytes, codeptr_ra);
}

/// As some runtimes make it, which tell of both ends.
unsafe extern "C" fn target_data_op_scope(
    scope: c_int,
    _target_id: u64,
    host_op_id: u64,
    operation: c_int,
    source: CodePtr,
    _source_device: c_int,
    destination: CodePtr,
    _destination_device: c_int,
    bytes: usize,
    codeptr_ra: CodePtr,
) {
    operation_as(endpoint(scope), host_op_id, operation, source, destination, bytes, codeptr_ra);
}

/// The same for kernels.
unsafe extern "C" fn target_submit_scope(scope: c_int, target_id: u64, host_op_id: u64, requested_teams: c_uint) {
    record(|| Event {
        kind: 10,
        endpoint: endpoint(scope),
        flags: requested_teams,
        task: host_op_id,
        other: target_id,
        ..Event::default()
    });
}

/// Of each pair the older form alone, as runtimes make it that make no other.
pub fn older(pairs: Vec<Pair>) -> Vec<Pair> {
    type Operation = unsafe extern "C" fn(c_int, u64, u64, c_int, CodePtr, c_int, CodePtr, c_int, usize, CodePtr);
    let own = [
        (9, callback!(target_data_op_scope as Operation)),
        (10, callback!(target_submit_scope as unsafe extern "C" fn(c_int, u64, u64, c_uint))),
    ];
    let form = |(newer, older): Pair| older.unwrap_or(newer);
    let scoped = |numbered: Numbered| own.into_iter().find(|(number, _)| *number == numbered.0).unwrap_or(numbered);
    pairs.into_iter().map(|pair| (scoped(form(pair)), None)).collect()
}

unsafe extern "C" fn target_submit(target_id: u64, host_op_id: u64, requested_teams: c_uint) {
    record(|| Event { kind: 10, flags: requested_teams, task: host_op_id, other: target_id, ..Event::default() });
}

unsafe extern "C" fn device_load(
    device: c_int,
    _file: *const c_char,
    _offset: i64,
    _vma: CodePtr,
    _bytes: usize,
    host: CodePtr,
    _device_address: CodePtr,
    module: u64,
) {
    record(|| Event { kind: 14, flags: bits(device), region: host as u64, other: module, ..Event::default() });
}

unsafe extern "C" fn device_unload(device: c_int, module: u64) {
    record(|| Event { kind: 15, flags: bits(device), other: module, ..Event::default() });
}

unsafe extern "C" fn target_map(
    target_id: u64,
    items: c_uint,
    _host: CodePtr,
    _device: CodePtr,
    _bytes: CodePtr,
    _flags: CodePtr,
    codeptr_ra: CodePtr,
) {
    record(|| Event { kind: 22, flags: items, other: target_id, codeptr_ra: codeptr_ra as u64, ..Event::default() });
}

unsafe extern "C" fn target_emi(
    kind: c_int,
    scope: c_int,
    device: c_int,
    task: *const Data,
    _target_task: *const Data,
    target: *const Data,
    codeptr_ra: CodePtr,
) {
    if !is_recording() {
        return;
    }
    let Some(place) = Recorder::own() else { return };
    // SAFETY: the runtime's words.
    unsafe {
        if scope != END && word(target) == 0 {
            file(target, place.task_number());
        }
    }
    // SAFETY: the same.
    let (task, other) = unsafe { (word(task), word(target)) };
    place.write(Event {
        time: now(),
        kind: 33,
        endpoint: endpoint(scope),
        sub: short(kind),
        flags: bits(device),
        task,
        other,
        codeptr_ra: codeptr_ra as u64,
        ..Event::default()
    });
}

/// Gives an operation on a device that begins the number by which its record is found again, and tells it; none in a
/// pause.
///
/// The word is the tool's, and what is in it when an operation begins says nothing: LLVM's runtime has one for each
/// thread, and it still holds the number of the operation before.
///
/// # Safety
/// `host_op_id` is null or the runtime's.
unsafe fn operation(host_op_id: *mut u64, scope: c_int) -> u64 {
    // SAFETY: as the caller says.
    let Some(id) = (unsafe { host_op_id.as_mut() }) else { return 0 };
    if scope != END {
        let place = if is_recording() { Recorder::own() } else { None };
        *id = place.map_or(0, Recorder::task_number);
    }
    *id
}

unsafe extern "C" fn target_data_op_emi(
    scope: c_int,
    _target_task: *const Data,
    _target: *const Data,
    host_op_id: *mut u64,
    kind: c_int,
    source: CodePtr,
    _source_device: c_int,
    destination: CodePtr,
    _destination_device: c_int,
    bytes: usize,
    codeptr_ra: CodePtr,
) {
    // SAFETY: the runtime's word.
    let task = unsafe { operation(host_op_id, scope) };
    record(|| Event {
        kind: 34,
        endpoint: endpoint(scope),
        sub: short(kind),
        flags: u32::try_from(bytes).unwrap_or(u32::MAX),
        region: source as u64,
        task,
        other: destination as u64,
        codeptr_ra: codeptr_ra as u64,
        ..Event::default()
    });
}

unsafe extern "C" fn target_submit_emi(scope: c_int, target: *const Data, host_op_id: *mut u64, teams: c_uint) {
    // SAFETY: the runtime's words.
    let (task, other) = unsafe { (operation(host_op_id, scope), word(target)) };
    record(|| Event { kind: 35, endpoint: endpoint(scope), flags: teams, task, other, ..Event::default() });
}

unsafe extern "C" fn target_map_emi(
    target: *const Data,
    items: c_uint,
    _host: CodePtr,
    _device: CodePtr,
    _bytes: CodePtr,
    _flags: CodePtr,
    codeptr_ra: CodePtr,
) {
    // SAFETY: the runtime's word.
    let other = unsafe { word(target) };
    record(|| Event { kind: 36, flags: items, other, codeptr_ra: codeptr_ra as u64, ..Event::default() });
}

/// All of them, with the older forms of those that have two.
pub fn all() -> Vec<Pair> {
    vec![
        (
            (
                14,
                callback!(
                    device_load
                        as unsafe extern "C" fn(c_int, *const c_char, i64, CodePtr, usize, CodePtr, CodePtr, u64)
                ),
            ),
            None,
        ),
        ((15, callback!(device_unload as unsafe extern "C" fn(c_int, u64))), None),
        (
            (
                33,
                callback!(
                    target_emi
                        as unsafe extern "C" fn(c_int, c_int, c_int, *const Data, *const Data, *const Data, CodePtr)
                ),
            ),
            Some((8, callback!(target as unsafe extern "C" fn(c_int, c_int, c_int, *const Data, u64, CodePtr)))),
        ),
        (
            (
                34,
                callback!(
                    target_data_op_emi
                        as unsafe extern "C" fn(
                            c_int,
                            *const Data,
                            *const Data,
                            *mut u64,
                            c_int,
                            CodePtr,
                            c_int,
                            CodePtr,
                            c_int,
                            usize,
                            CodePtr,
                        )
                ),
            ),
            Some((
                9,
                callback!(
                    target_data_op
                        as unsafe extern "C" fn(u64, u64, c_int, CodePtr, c_int, CodePtr, c_int, usize, CodePtr)
                ),
            )),
        ),
        (
            (35, callback!(target_submit_emi as unsafe extern "C" fn(c_int, *const Data, *mut u64, c_uint))),
            Some((10, callback!(target_submit as unsafe extern "C" fn(u64, u64, c_uint)))),
        ),
        (
            (
                36,
                callback!(
                    target_map_emi
                        as unsafe extern "C" fn(*const Data, c_uint, CodePtr, CodePtr, CodePtr, CodePtr, CodePtr)
                ),
            ),
            Some((
                22,
                callback!(target_map as unsafe extern "C" fn(u64, c_uint, CodePtr, CodePtr, CodePtr, CodePtr, CodePtr)),
            )),
        ),
    ]
}
