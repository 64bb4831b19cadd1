//! The functions of the interface, and what each may return.

use ompd::types::Rc;

/// Every function, and the return codes that only some functions have (OpenMP 5.2, section 20.5: the return codes of
/// each). All functions may return `ompd_rc_ok`, a stale handle, bad input, an error, a failed callback and no memory.
/// A value that the runtime need not record, or that may be unreadable, is unavailable. That holds also where the
/// specification does not list the code: no other code says so.
pub const FUNCTIONS: [(&str, &[Rc]); 44] = {
    const READS: &[Rc] = &[Rc::UNAVAILABLE];
    const ICV: &[Rc] = &[Rc::UNAVAILABLE, Rc::INCOMPATIBLE, Rc::INCOMPLETE];
    const TEXT: &[Rc] = &[Rc::UNAVAILABLE, Rc::INCOMPATIBLE];
    const TOOL: &[Rc] = &[Rc::UNAVAILABLE, Rc::INCOMPATIBLE, Rc::UNSUPPORTED];
    const IDS: &[Rc] = &[Rc::UNAVAILABLE, Rc::UNSUPPORTED];
    [
        ("ompd_initialize", &[Rc::UNSUPPORTED]),
        ("ompd_get_api_version", &[]),
        ("ompd_get_version_string", &[]),
        ("ompd_finalize", &[Rc::UNSUPPORTED]),
        ("ompd_process_initialize", &[Rc::INCOMPATIBLE]),
        ("ompd_device_initialize", &[Rc::UNSUPPORTED]),
        ("ompd_rel_address_space_handle", &[]),
        ("ompd_get_device_thread_id_kinds", &[]),
        ("ompd_get_omp_version", READS),
        ("ompd_get_omp_version_string", READS),
        ("ompd_get_thread_in_parallel", READS),
        ("ompd_get_thread_handle", IDS),
        ("ompd_rel_thread_handle", &[]),
        ("ompd_thread_handle_compare", &[]),
        ("ompd_get_thread_id", IDS),
        ("ompd_get_device_from_thread", &[]),
        ("ompd_get_curr_parallel_handle", READS),
        ("ompd_get_enclosing_parallel_handle", READS),
        ("ompd_get_task_parallel_handle", READS),
        ("ompd_rel_parallel_handle", &[]),
        ("ompd_parallel_handle_compare", &[]),
        ("ompd_get_curr_task_handle", READS),
        ("ompd_get_generating_task_handle", READS),
        ("ompd_get_scheduling_task_handle", READS),
        ("ompd_get_task_in_parallel", READS),
        ("ompd_rel_task_handle", &[]),
        ("ompd_task_handle_compare", &[]),
        ("ompd_get_task_function", READS),
        ("ompd_get_task_frame", READS),
        ("ompd_enumerate_states", &[]),
        ("ompd_get_state", &[]),
        ("ompd_get_display_control_vars", READS),
        ("ompd_rel_display_control_vars", &[]),
        ("ompd_enumerate_icvs", &[]),
        ("ompd_get_icv_from_scope", ICV),
        ("ompd_get_icv_string_from_scope", TEXT),
        ("ompd_get_tool_data", TOOL),
        // What goes beyond OMPD: by its own header.
        ("ompdx_stop_points", READS),
        ("ompdx_set_stop", READS),
        ("ompdx_get_stop", READS),
        ("ompdx_get_parallel_function", READS),
        ("ompdx_get_origin", TEXT),
        ("ompdx_report_json", READS),
        ("ompdx_drop_cache", &[]),
    ]
};
