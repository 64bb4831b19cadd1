//! The types and numbers of OMPT (OpenMP 5.2, chapter 19; names as in `omp-tools.h`, without the prefix that a type's values share).

use std::ffi::{c_char, c_int, c_uint, c_void};
use std::sync::atomic::{AtomicI32, AtomicU64};

/// `ompt_data_t`: a word that is kept for the tool.
pub type Data = AtomicU64;

/// The function of a region, task or league, as the compiler gives it to the runtime.
pub type Body = unsafe extern "C-unwind" fn(*mut c_void);

/// `ompt_callback_t`, `ompt_interface_fn_t`: a function of no particular type.
pub type Function = unsafe extern "C" fn();

/// `ompt_function_lookup_t`
pub type Lookup = unsafe extern "C" fn(*const c_char) -> Option<Function>;

/// `ompt_start_tool_result_t`
#[derive(Debug)]
#[repr(C)]
pub struct StartToolResult {
    /// `ompt_initialize_t`
    pub initialize: Option<unsafe extern "C" fn(Lookup, c_int, *const Data) -> c_int>,
    /// `ompt_finalize_t`
    pub finalize: Option<unsafe extern "C" fn(*const Data)>,
    /// The tool's own word.
    pub tool_data: Data,
}

/// `ompt_frame_t`: the frames between which the runtime executes for a task.
#[derive(Debug, Default)]
#[repr(C)]
pub struct Frame {
    /// Canonical frame address of the task's body; 0 before it is called.
    pub exit_frame: Data,
    /// Canonical frame address of the task's call of the runtime; 0 outside of one.
    pub enter_frame: Data,
    /// [`APPLICATION_CFA`]
    pub exit_frame_flags: AtomicI32,
    /// [`APPLICATION_CFA`]
    pub enter_frame_flags: AtomicI32,
}

/// `ompt_frame_application | ompt_frame_cfa`
pub const APPLICATION_CFA: c_int = 0x01 | 0x20;

/// `ompt_dependence_t`
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct Dependence {
    /// The address that the clause names, or a number of an iteration of a doacross loop.
    pub variable: *mut c_void,
    /// A value of [`dependence`].
    pub dependence_type: c_int,
}

/// `ompt_scope_endpoint_t`
pub mod scope {
    use super::c_int;
    pub const BEGIN: c_int = 1;
    pub const END: c_int = 2;
}

/// `ompt_thread_t`
pub mod thread {
    use super::c_int;
    pub const INITIAL: c_int = 1;
    pub const WORKER: c_int = 2;
}

/// `ompt_parallel_flag_t`
pub mod parallel_flag {
    use super::c_int;
    pub const INVOKER_PROGRAM: c_int = 1;
    pub const INVOKER_RUNTIME: c_int = 2;
    pub const LEAGUE: c_int = 0x4000_0000;
    pub const TEAM: c_int = c_int::MIN;
}

/// `ompt_task_flag_t`
pub mod task_flag {
    use super::c_int;
    pub const INITIAL: c_int = 0x1;
    pub const IMPLICIT: c_int = 0x2;
    pub const EXPLICIT: c_int = 0x4;
    pub const UNDEFERRED: c_int = 0x0800_0000;
    pub const UNTIED: c_int = 0x1000_0000;
    pub const FINAL: c_int = 0x2000_0000;
    pub const MERGEABLE: c_int = 0x4000_0000;
}

/// `ompt_task_status_t`
pub mod task_status {
    use super::c_int;
    pub const COMPLETE: c_int = 1;
    pub const CANCEL: c_int = 3;
    pub const DETACH: c_int = 4;
    pub const EARLY_FULFILL: c_int = 5;
    pub const LATE_FULFILL: c_int = 6;
    pub const SWITCH: c_int = 7;
}

/// `ompt_sync_region_t`
pub mod sync_region {
    use super::c_int;
    /// A barrier of which the call does not show whether the program has it as a directive.
    pub const BARRIER: c_int = 1;
    pub const TASKWAIT: c_int = 5;
    pub const TASKGROUP: c_int = 6;
    pub const BARRIER_IMPLICIT_WORKSHARE: c_int = 8;
    pub const BARRIER_IMPLICIT_PARALLEL: c_int = 9;
}

/// `ompt_work_t`
pub mod work {
    use super::c_int;
    pub const LOOP: c_int = 1;
    pub const SECTIONS: c_int = 2;
    pub const SINGLE_EXECUTOR: c_int = 3;
    pub const SINGLE_OTHER: c_int = 4;
    pub const TASKLOOP: c_int = 7;
    pub const LOOP_STATIC: c_int = 10;
    pub const LOOP_DYNAMIC: c_int = 11;
    pub const LOOP_GUIDED: c_int = 12;
}

/// `ompt_mutex_t`
pub mod mutex {
    use super::c_int;
    pub const LOCK: c_int = 1;
    pub const TEST_LOCK: c_int = 2;
    pub const NEST_LOCK: c_int = 3;
    pub const TEST_NEST_LOCK: c_int = 4;
    pub const CRITICAL: c_int = 5;
    pub const ATOMIC: c_int = 6;
    pub const ORDERED: c_int = 7;
}

/// `ompt_dependence_type_t`
pub mod dependence {
    use super::c_int;
    pub const IN: c_int = 1;
    pub const OUT: c_int = 2;
    pub const INOUT: c_int = 3;
    pub const MUTEXINOUTSET: c_int = 4;
    pub const SOURCE: c_int = 5;
    pub const SINK: c_int = 6;
    pub const INOUTSET: c_int = 7;
}

/// `ompt_cancel_flag_t`
pub mod cancel_flag {
    use super::c_int;
    pub const PARALLEL: c_int = 0x1;
    pub const SECTIONS: c_int = 0x2;
    pub const LOOP: c_int = 0x4;
    pub const TASKGROUP: c_int = 0x8;
    pub const ACTIVATED: c_int = 0x10;
    pub const DETECTED: c_int = 0x20;
    pub const DISCARDED_TASK: c_int = 0x40;
}

/// `ompt_state_t`
pub mod state {
    use super::c_uint;
    pub const WORK_SERIAL: c_uint = 0x000;
    pub const WORK_PARALLEL: c_uint = 0x001;
    pub const WAIT_BARRIER: c_uint = 0x010;
    pub const WAIT_BARRIER_IMPLICIT_PARALLEL: c_uint = 0x011;
    pub const WAIT_BARRIER_IMPLICIT_WORKSHARE: c_uint = 0x012;
    pub const WAIT_TASKWAIT: c_uint = 0x020;
    pub const WAIT_TASKGROUP: c_uint = 0x021;
    pub const WAIT_LOCK: c_uint = 0x041;
    pub const WAIT_CRITICAL: c_uint = 0x042;
    pub const WAIT_ATOMIC: c_uint = 0x043;
    pub const WAIT_ORDERED: c_uint = 0x044;
    pub const OVERHEAD: c_uint = 0x101;
    pub const UNDEFINED: c_uint = 0x102;
}

/// `ompt_set_result_t`
pub mod set_result {
    use super::c_int;
    pub const ERROR: c_int = 0;
    pub const NEVER: c_int = 1;
    pub const SOMETIMES: c_int = 3;
    pub const SOMETIMES_PAIRED: c_int = 4;
    pub const ALWAYS: c_int = 5;
}
