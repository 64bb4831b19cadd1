//! The entry points of the runtime that a thread asks (OpenMP 5.2, 19.6).

use std::ffi::{CStr, c_int};
use std::sync::atomic::AtomicU64;

use ompt_companion::Lookup;

/// `ompt_data_t`
pub type Data = AtomicU64;

/// `ompt_frame_t`
#[derive(Debug)]
#[repr(C)]
pub struct Frame {
    pub exit_frame: u64,
    pub enter_frame: u64,
    pub exit_frame_flags: c_int,
    pub enter_frame_flags: c_int,
}

/// `ompt_get_state_t`
type GetState = unsafe extern "C" fn(*mut u64) -> c_int;

/// `ompt_get_thread_data_t`
type GetThreadData = unsafe extern "C" fn() -> *const Data;

/// `ompt_get_parallel_info_t`
type GetParallelInfo = unsafe extern "C" fn(c_int, *mut *const Data, *mut c_int) -> c_int;

/// `ompt_get_task_info_t`
type GetTaskInfo =
    unsafe extern "C" fn(c_int, *mut c_int, *mut *const Data, *mut *const Frame, *mut *const Data, *mut c_int) -> c_int;

/// Those that the runtime has.
#[derive(Debug)]
pub struct Entries {
    pub get_state: Option<GetState>,
    pub get_thread_data: Option<GetThreadData>,
    pub get_parallel_info: Option<GetParallelInfo>,
    pub get_task_info: Option<GetTaskInfo>,
}

impl Entries {
    /// Asks the runtime for them. A signal handler may: runtimes only compare the name with those they have.
    ///
    /// # Safety
    /// `lookup` is the look-up function of a runtime that is loaded.
    pub unsafe fn look_up(lookup: Lookup) -> Entries {
        // SAFETY: as the caller says.
        let ask = |name: &CStr| unsafe { lookup(name.as_ptr()) };
        macro_rules! typed {
            ($name:literal as $type:ty) => {
                // SAFETY: the entry point of this name has this type (OpenMP 5.2, 19.6).
                ask($name).map(|entry| unsafe { std::mem::transmute::<unsafe extern "C" fn(), $type>(entry) })
            };
        }
        Entries {
            get_state: typed!(c"ompt_get_state" as GetState),
            get_thread_data: typed!(c"ompt_get_thread_data" as GetThreadData),
            get_parallel_info: typed!(c"ompt_get_parallel_info" as GetParallelInfo),
            get_task_info: typed!(c"ompt_get_task_info" as GetTaskInfo),
        }
    }
}
