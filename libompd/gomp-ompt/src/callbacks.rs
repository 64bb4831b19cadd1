//! The tool's callbacks (OpenMP 5.2, 19.5).

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::ptr;
use std::sync::atomic::AtomicPtr;
use std::sync::atomic::Ordering::{Acquire, Release};

use crate::ompt::{Data, Dependence, Frame, Function, set_result};

/// The highest number of a callback, `ompt_callback_error`.
const LAST: usize = 37;

static CALLBACKS: [AtomicPtr<c_void>; LAST + 1] = [const { AtomicPtr::new(ptr::null_mut()) }; LAST + 1];

/// What `ompt_set_callback` returns for each callback. docs/gomp-ompt.md has the reasons.
const ANSWERS: [c_int; LAST + 1] = {
    use set_result::{ALWAYS, ERROR, NEVER, SOMETIMES, SOMETIMES_PAIRED};
    let mut answers = [NEVER; LAST + 1];
    answers[0] = ERROR;
    answers[1] = ALWAYS; // thread_begin
    answers[2] = SOMETIMES; // thread_end
    answers[3] = ALWAYS; // parallel_begin
    answers[4] = ALWAYS; // parallel_end
    answers[5] = SOMETIMES; // task_create
    answers[6] = SOMETIMES; // task_schedule
    answers[7] = SOMETIMES; // implicit_task
    answers[11] = ALWAYS; // control_tool
    answers[16] = SOMETIMES_PAIRED; // sync_region_wait
    answers[17] = SOMETIMES; // mutex_released
    answers[18] = SOMETIMES; // dependences
    answers[20] = SOMETIMES_PAIRED; // work
    answers[23] = SOMETIMES_PAIRED; // sync_region
    answers[24] = ALWAYS; // lock_init
    answers[25] = ALWAYS; // lock_destroy
    answers[26] = SOMETIMES; // mutex_acquire
    answers[27] = SOMETIMES; // mutex_acquired
    answers[28] = ALWAYS; // nest_lock
    answers[30] = SOMETIMES; // cancel
    answers[33] = SOMETIMES_PAIRED; // target_emi
    answers[37] = ALWAYS; // error
    answers
};

/// `ompt_set_callback`: registers a callback, or removes it.
pub unsafe extern "C" fn set_callback(number: c_int, callback: Option<Function>) -> c_int {
    let Some((place, answer)) = usize::try_from(number).ok().and_then(|n| Some((CALLBACKS.get(n)?, ANSWERS[n]))) else {
        return set_result::ERROR;
    };
    if answer > set_result::NEVER {
        place.store(callback.map_or(ptr::null_mut(), |callback| callback as *mut c_void), Release);
    }
    answer
}

/// `ompt_get_callback`: 1 if a callback is registered.
pub unsafe extern "C" fn get_callback(number: c_int, callback: *mut Option<Function>) -> c_int {
    let registered = usize::try_from(number).ok().and_then(|n| CALLBACKS.get(n)).map(|place| place.load(Acquire));
    let Some(registered) = registered.filter(|registered| !registered.is_null()) else { return 0 };
    if !callback.is_null() {
        // SAFETY: the tool's place for the answer; and what was registered is a function.
        unsafe { *callback = Some(std::mem::transmute::<*mut c_void, Function>(registered)) };
    }
    1
}

/// Forgets all callbacks.
pub fn forget() {
    CALLBACKS.iter().for_each(|place| place.store(ptr::null_mut(), Release));
}

/// Defines a function that calls a callback if the tool has registered it.
macro_rules! callbacks {
    ($($(#[$doc:meta])* $number:literal $name:ident($($argument:ident: $type:ty),*);)*) => {
        $($(#[$doc])*
        #[inline]
        #[allow(clippy::too_many_arguments, reason = "OMPT's own")]
        pub fn $name($($argument: $type),*) {
            let registered = CALLBACKS[$number].load(Acquire);
            if registered.is_null() {
                return;
            }
            // SAFETY: the tool has registered a function of this type (OpenMP 5.2, 19.5.2).
            unsafe {
                let callback = std::mem::transmute::<*mut c_void, unsafe extern "C" fn($($type),*)>(registered);
                callback($($argument),*);
            }
        })*
    };
}

type Word<'r> = &'r Data;
type Code = *const c_void;

callbacks! {
    /// `ompt_callback_thread_begin`
    1 thread_begin(kind: c_int, thread: Word<'_>);
    /// `ompt_callback_thread_end`
    2 thread_end(thread: Word<'_>);
    /// `ompt_callback_parallel_begin`
    3 parallel_begin(encountering: Word<'_>, frame: &Frame, region: Word<'_>, requested: c_uint, flags: c_int, codeptr_ra: Code);
    /// `ompt_callback_parallel_end`
    4 parallel_end(region: Word<'_>, encountering: Word<'_>, flags: c_int, codeptr_ra: Code);
    /// `ompt_callback_task_create`
    5 task_create(encountering: Word<'_>, frame: &Frame, task: Word<'_>, flags: c_int, has_dependences: c_int, codeptr_ra: Code);
    /// `ompt_callback_task_schedule`
    6 task_schedule(prior: Word<'_>, status: c_int, next: Option<&Data>);
    /// `ompt_callback_implicit_task`
    7 implicit_task(endpoint: c_int, region: Option<&Data>, task: Word<'_>, size: c_uint, index: c_uint, flags: c_int);
    /// `ompt_callback_sync_region_wait`
    16 sync_region_wait(kind: c_int, endpoint: c_int, region: Option<&Data>, task: Word<'_>, codeptr_ra: Code);
    /// `ompt_callback_mutex_released`
    17 mutex_released(kind: c_int, wait_id: u64, codeptr_ra: Code);
    /// `ompt_callback_dependences`
    18 dependences(task: Word<'_>, dependences: *const Dependence, count: c_int);
    /// `ompt_callback_work`
    20 work(kind: c_int, endpoint: c_int, region: Option<&Data>, task: Word<'_>, count: u64, codeptr_ra: Code);
    /// `ompt_callback_sync_region`
    23 sync_region(kind: c_int, endpoint: c_int, region: Option<&Data>, task: Word<'_>, codeptr_ra: Code);
    /// `ompt_callback_lock_init`
    24 lock_init(kind: c_int, hint: c_uint, implementation: c_uint, wait_id: u64, codeptr_ra: Code);
    /// `ompt_callback_lock_destroy`
    25 lock_destroy(kind: c_int, wait_id: u64, codeptr_ra: Code);
    /// `ompt_callback_mutex_acquire`
    26 mutex_acquire(kind: c_int, hint: c_uint, implementation: c_uint, wait_id: u64, codeptr_ra: Code);
    /// `ompt_callback_mutex_acquired`
    27 mutex_acquired(kind: c_int, wait_id: u64, codeptr_ra: Code);
    /// `ompt_callback_nest_lock`
    28 nest_lock(endpoint: c_int, wait_id: u64, codeptr_ra: Code);
    /// `ompt_callback_cancel`
    30 cancel(task: Word<'_>, flags: c_int, codeptr_ra: Code);
    /// `ompt_callback_target_emi`
    33 target_emi(kind: c_int, endpoint: c_int, device: c_int, task: Word<'_>, target_task: Option<&Data>, target: Word<'_>, codeptr_ra: Code);
    /// `ompt_callback_error`
    37 error(severity: c_int, message: *const c_char, length: usize, codeptr_ra: Code);
}

/// `ompt_callback_control_tool`: the tool's answer, or `omp_control_tool_nocallback`.
pub fn control_tool(command: u64, modifier: u64, argument: *mut c_void, codeptr_ra: Code) -> c_int {
    let registered = CALLBACKS[11].load(Acquire);
    if registered.is_null() {
        return -1;
    }
    type Callback = unsafe extern "C" fn(u64, u64, *mut c_void, Code) -> c_int;
    // SAFETY: the tool has registered a function of this type (OpenMP 5.2, 19.5.2.29).
    unsafe { std::mem::transmute::<*mut c_void, Callback>(registered)(command, modifier, argument, codeptr_ra) }
}

/// Length and text of a C string of the program, or the part of it that a length says.
pub fn text(message: *const c_char, length: usize) -> usize {
    if message.is_null() {
        return 0;
    }
    // GCC passes (size_t) -1 for a message that ends with a zero.
    if length == usize::MAX {
        // SAFETY: the compiler says that it is such a string.
        return unsafe { CStr::from_ptr(message) }.count_bytes();
    }
    length
}
