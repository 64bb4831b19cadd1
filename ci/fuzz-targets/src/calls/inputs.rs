//! Inputs to start from.

use super::debugger::{FAULTS, Plan, scatter};
use super::{FUNCTIONS, Header};

/// A handle: the first of its kind, or the second.
const FIRST: [u8; 2] = [0, 0];
const SECOND: [u8; 2] = [0, 1];
/// A place for a result.
const PLACE: [u8; 1] = [0];

/// Calls of all functions, in an order in which each has what it needs; with what fails and lies meanwhile.
pub fn all_functions(header: Header) -> Vec<u8> {
    let mut input = header.bytes().to_vec();
    let mut call = |name: &str, arguments: &[&[u8]]| {
        let function = FUNCTIONS.iter().position(|(own, _)| *own == name).expect("a function of the interface");
        input.push(function as u8);
        arguments.iter().for_each(|argument| input.extend(*argument));
    };
    call("ompd_get_api_version", &[&PLACE]);
    call("ompd_get_version_string", &[&PLACE]);
    call("ompd_initialize", &[&[2], &[0]]);
    call("ompd_device_initialize", &[&FIRST, &PLACE, &PLACE, &[1]]);
    call("ompd_get_device_thread_id_kinds", &[&FIRST, &PLACE, &PLACE, &PLACE]);
    call("ompd_get_omp_version", &[&FIRST, &PLACE]);
    call("ompd_get_omp_version_string", &[&FIRST, &PLACE]);
    // Space, kind and size of the id, which of the threads.
    for which in 0..3 {
        call("ompd_get_thread_handle", &[&FIRST, &[50 * which], &[which], &PLACE]);
    }
    call("ompd_get_thread_id", &[&FIRST, &[0], &PLACE]);
    call("ompd_get_device_from_thread", &[&FIRST, &PLACE]);
    call("ompd_thread_handle_compare", &[&FIRST, &SECOND, &PLACE]);
    call("ompd_get_curr_parallel_handle", &[&FIRST, &PLACE]);
    call("ompd_get_enclosing_parallel_handle", &[&FIRST, &PLACE]);
    call("ompd_get_thread_in_parallel", &[&[1], &FIRST, &PLACE]);
    call("ompd_get_task_in_parallel", &[&[1], &FIRST, &PLACE]);
    call("ompd_get_curr_task_handle", &[&FIRST, &PLACE]);
    call("ompd_get_generating_task_handle", &[&SECOND, &PLACE]);
    call("ompd_get_scheduling_task_handle", &[&FIRST, &PLACE]);
    call("ompd_get_task_parallel_handle", &[&FIRST, &PLACE]);
    call("ompd_parallel_handle_compare", &[&FIRST, &SECOND, &PLACE]);
    call("ompd_task_handle_compare", &[&FIRST, &SECOND, &PLACE]);
    call("ompd_get_task_function", &[&FIRST, &PLACE]);
    call("ompd_get_task_frame", &[&FIRST, &PLACE, &PLACE]);
    call("ompd_get_state", &[&FIRST, &PLACE, &PLACE]);
    call("ompd_enumerate_states", &[&FIRST, &[0], &PLACE, &PLACE, &PLACE]);
    call("ompd_get_display_control_vars", &[&FIRST, &PLACE]);
    call("ompd_enumerate_icvs", &[&FIRST, &[0], &PLACE, &PLACE, &PLACE, &PLACE]);
    // Kind and handle, scope, control variable: cancel-var (in OpenMP 5.0 of the address space), team-size-var,
    // final-task-var.
    for (kind, scope, id) in [(0, 0, 4), (0, 1, 4), (2, 0, 29), (3, 0, 23)] {
        call("ompd_get_icv_from_scope", &[&[kind], &FIRST, &[scope], &[id], &PLACE]);
        call("ompd_get_icv_string_from_scope", &[&[kind], &FIRST, &[scope], &[id], &PLACE]);
    }
    call("ompd_get_tool_data", &[&[1], &FIRST, &[0], &[0], &PLACE, &PLACE]);
    call("ompd_rel_display_control_vars", &[&[0]]);
    call("ompd_rel_task_handle", &[&FIRST]);
    call("ompd_rel_parallel_handle", &[&FIRST]);
    call("ompd_rel_thread_handle", &[&FIRST]);
    input
}

/// Calls of what OMPD does not have, with a thread and a region to ask about.
pub fn beyond(header: Header) -> Vec<u8> {
    let mut input = header.bytes().to_vec();
    let mut call = |name: &str, arguments: &[&[u8]]| {
        let function = FUNCTIONS.iter().position(|(own, _)| *own == name).expect("a function of the interface");
        input.push(function as u8);
        arguments.iter().for_each(|argument| input.extend(*argument));
    };
    call("ompd_get_thread_handle", &[&FIRST, &[0], &[0], &PLACE]);
    call("ompd_get_curr_parallel_handle", &[&FIRST, &PLACE]);
    call("ompdx_report_json", &[&FIRST, &PLACE]);
    call("ompdx_stop_points", &[&FIRST, &PLACE, &PLACE]);
    // Handle, number of values, place: at none, and at some.
    for point in [0, 1, 2, 5] {
        call("ompdx_set_stop", &[&FIRST, &[2], &[point]]);
        call("ompdx_get_stop", &[&FIRST, &PLACE, &PLACE, &PLACE]);
        call("ompd_get_curr_parallel_handle", &[&FIRST, &PLACE]);
        call("ompd_get_curr_task_handle", &[&FIRST, &PLACE]);
    }
    call("ompdx_set_stop", &[&FIRST, &[0], &[0]]);
    call("ompdx_get_parallel_function", &[&FIRST, &PLACE]);
    // Kind and handle, scope, control variable; which value: the task of a thread.
    call("ompdx_get_origin", &[&[1], &FIRST, &[0], &[0], &[3], &PLACE, &PLACE]);
    call("ompdx_drop_cache", &[&FIRST]);
    call("ompdx_report_json", &[&FIRST, &PLACE]);
    input
}

/// The process opened a second time, and asked: what goes wrong begins with that.
pub fn opening(header: Header) -> Vec<u8> {
    let mut input = header.bytes().to_vec();
    let function = |name: &str| FUNCTIONS.iter().position(|(own, _)| *own == name).unwrap_or(0) as u8;
    input.extend([function("ompd_process_initialize"), header.subject, 0]);
    input.extend([function("ompd_get_thread_handle"), 0, 1, 0, 0, 0]);
    input.extend([function("ompd_get_curr_parallel_handle"), 0, 0, 0]);
    input.extend([function("ompd_rel_address_space_handle"), 0, 1]);
    input
}

/// What must end the life of the library, and begin it again.
pub fn life(header: Header) -> Vec<u8> {
    let mut input = header.bytes().to_vec();
    let function = |name: &str| FUNCTIONS.iter().position(|(own, _)| *own == name).unwrap_or(0) as u8;
    input.extend([
        function("ompd_get_display_control_vars"),
        0,
        0,
        0,
        function("ompd_finalize"),
        function("ompd_finalize"),
    ]);
    for (number, (_, _)) in FUNCTIONS.iter().enumerate().filter(|(_, (name, _))| *name != "ompd_initialize") {
        input.extend([number as u8, 216, 0, 0]);
    }
    input.extend([function("ompd_initialize"), 4, 0, function("ompd_initialize"), header.version, 0]);
    input.extend([function("ompd_process_initialize"), header.subject, 0]);
    input.extend([function("ompd_get_omp_version"), 216, 0, 0]);
    input
}

/// What comes of a number: calls of any functions with any arguments, and faults or none. It begins as all good
/// debuggers do, so that there are handles.
pub fn random(seed: u64) -> Vec<u8> {
    let word = |n: u64| scatter(seed << 20 | n);
    let (first, every) = match word(0) % 4 {
        0 => (0, 0),
        1 => (1 + word(1) % 2000, 0),
        _ => (1 + word(1) % 300, 1 + word(2) % 100),
    };
    let fault = FAULTS[(word(3) % FAULTS.len() as u64) as usize];
    let header = Header {
        version: (word(4) & 3) as u8,
        subject: (word(5) & 1) as u8,
        generous: word(6) & 1 == 1,
        fresh: false,
        plan: Plan { fault, first, every },
    };
    let all = all_functions(header);
    // Up to the call that gives the third task.
    let mut input = all[..all.len() / 3].to_vec();
    input.extend((0..400).map(|n| word(100 + n) as u8));
    input
}
