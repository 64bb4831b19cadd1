//! Which callbacks a runtime is asked to make.

use std::ffi::{c_char, c_int, c_uint, c_void};

use ompt_record::generation::Generation;

use super::{
    MUTEX_ACQUIRED, Pair, callback, cancel, control_tool, dependences, dispatch, draft, error, flush, implicit_task,
    lock_destroy, lock_init, masked, mutex_acquire, mutex_acquired, mutex_released, nest_lock, parallel_begin,
    parallel_end, reduction, stopping, sync_region, sync_region_wait, target, task_create, task_dependence,
    task_schedule, thread_begin, thread_end, work,
};
use crate::ompt::{Callback, CodePtr, Data, Dependence, Frame};
use crate::parts;

/// What a runtime is asked to call.
pub struct Wanted {
    /// The callbacks, in the order of their numbers.
    pub callbacks: Vec<Pair>,
    /// Whose numbers the runtime answers with.
    pub generation: Generation,
}

/// What a runtime of this generation is asked to call. `older` selects the older forms for target constructs. `stops` selects
/// callbacks that call the stop points of OMPD.
pub fn wanted(generation: Generation, older: bool, stops: bool) -> Wanted {
    let mut callbacks = all();
    if older {
        callbacks = target::older(callbacks);
    }
    if generation == Generation::Draft2018 {
        callbacks = draft::of(callbacks);
    } else if stops {
        callbacks = stopping::of(callbacks);
    }
    callbacks.sort_by_key(|((number, _), _)| *number);
    Wanted { callbacks, generation }
}

/// All callbacks.
pub fn all() -> Vec<Pair> {
    type Sync = unsafe extern "C" fn(c_int, c_int, *const Data, *const Data, CodePtr);
    type Mutex = unsafe extern "C" fn(c_int, u64, CodePtr);
    type MutexAcquire = unsafe extern "C" fn(c_int, c_uint, c_uint, u64, CodePtr);
    let one = |number, function| ((number, function), None);
    let mut all = vec![
        one(1, callback!(thread_begin as unsafe extern "C" fn(c_int, *const Data))),
        one(2, callback!(thread_end as unsafe extern "C" fn(*const Data))),
        one(
            3,
            callback!(
                parallel_begin as unsafe extern "C" fn(*const Data, *const Frame, *const Data, c_uint, c_int, CodePtr)
            ),
        ),
        one(4, callback!(parallel_end as unsafe extern "C" fn(*const Data, *const Data, c_int, CodePtr))),
        one(
            5,
            callback!(
                task_create as unsafe extern "C" fn(*const Data, *const Frame, *const Data, c_int, c_int, CodePtr)
            ),
        ),
        one(6, callback!(task_schedule as unsafe extern "C" fn(*const Data, c_int, *const Data))),
        one(
            7,
            callback!(implicit_task as unsafe extern "C" fn(c_int, *const Data, *const Data, c_uint, c_uint, c_int)),
        ),
        one(11, callback!(control_tool as unsafe extern "C" fn(u64, u64, *mut c_void, CodePtr) -> c_int)),
        one(16, callback!(sync_region_wait as Sync)),
        one(17, callback!(mutex_released as Mutex)),
        one(18, callback!(dependences as unsafe extern "C" fn(*const Data, *const Dependence, c_int))),
        one(19, callback!(task_dependence as unsafe extern "C" fn(*const Data, *const Data))),
        one(20, callback!(work as unsafe extern "C" fn(c_int, c_int, *const Data, *const Data, u64, CodePtr))),
        one(21, callback!(masked as unsafe extern "C" fn(c_int, *const Data, *const Data, CodePtr))),
        one(23, callback!(sync_region as Sync)),
        one(24, callback!(lock_init as MutexAcquire)),
        one(25, callback!(lock_destroy as Mutex)),
        one(26, callback!(mutex_acquire as MutexAcquire)),
        one(MUTEX_ACQUIRED, callback!(mutex_acquired as Mutex)),
        one(28, callback!(nest_lock as unsafe extern "C" fn(c_int, u64, CodePtr))),
        one(29, callback!(flush as unsafe extern "C" fn(*const Data, CodePtr))),
        one(30, callback!(cancel as unsafe extern "C" fn(*const Data, c_int, CodePtr))),
        one(31, callback!(reduction as Sync)),
        one(32, callback!(dispatch as unsafe extern "C" fn(*const Data, *const Data, c_int, u64))),
        one(37, callback!(error as unsafe extern "C" fn(c_int, *const c_char, usize, CodePtr))),
    ];
    all.extend(target::all());
    all.extend(parts::ALL.iter().flat_map(|part| (part.callbacks)()).map(|callback| (callback, None)));
    all
}
