//! The types of OMPT's C interface (OpenMP 5.2, chapter 19; `omp-tools.h`).

use std::ffi::{c_char, c_int, c_uint, c_void};
use std::sync::atomic::AtomicU64;

/// `ompt_data_t`: a word that the runtime keeps for the tool, with each thread, region and task.
pub type Data = AtomicU64;

/// `ompt_callback_t`: a callback of no particular type.
pub type Callback = unsafe extern "C" fn();

/// `ompt_interface_fn_t`: an entry point of no particular type.
pub type EntryPoint = unsafe extern "C" fn();

/// `ompt_function_lookup_t`: tells where the entry point with a name is, null if there is none.
pub type Lookup = unsafe extern "C" fn(*const c_char) -> Option<EntryPoint>;

/// `ompt_set_callback_t`
pub type SetCallback = unsafe extern "C" fn(c_int, Option<Callback>) -> c_int;

/// `ompt_frame_t`, which the companion does not look at.
pub type Frame = c_void;

/// `ompt_dependence_t`
#[derive(Debug)]
#[repr(C)]
pub struct Dependence {
    pub variable: u64,
    pub dependence_type: c_uint,
}

/// `ompt_start_tool_result_t`
#[derive(Debug)]
#[repr(C)]
pub struct StartToolResult {
    pub initialize: extern "C" fn(Option<Lookup>, c_int, *mut Data) -> c_int,
    pub finalize: extern "C" fn(*mut Data),
    pub tool_data: Data,
}

/// `ompt_scope_begin`
pub const BEGIN: c_int = 1;
/// `ompt_scope_end`
pub const END: c_int = 2;

/// A return address, or null.
pub type CodePtr = *const c_void;
