//! What a tool may ask (OpenMP 5.2, 19.6).
//!
//! Questions about the calling thread read its own records and are safe in signal handlers. Those about places and devices go to
//! the runtime, which reads its own variables.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::ptr;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use crate::callbacks::{get_callback, set_callback};
use crate::ending;
use crate::ompt::{Data, Frame, Function, state};
use crate::records::{Region, Task};
use crate::runtimes::{self, Query, Runtime};
use crate::threads::Thread;

/// `ompt_function_lookup`
pub unsafe extern "C" fn lookup(name: *const c_char) -> Option<Function> {
    if name.is_null() {
        return None;
    }
    // SAFETY: the tool's string.
    let name = unsafe { CStr::from_ptr(name) };
    /// A function of any type as one of none. Who asks for a name knows its type.
    macro_rules! function {
        ($function:path as fn($($argument:ty),*) -> $result:ty) => {{
            let typed: unsafe extern "C" fn($($argument),*) -> $result = $function;
            // SAFETY: it is only called as what it is.
            Some(unsafe { std::mem::transmute::<unsafe extern "C" fn($($argument),*) -> $result, Function>(typed) })
        }};
    }
    match name.to_bytes() {
        b"ompt_set_callback" => function!(set_callback as fn(c_int, Option<Function>) -> c_int),
        b"ompt_get_callback" => function!(get_callback as fn(c_int, *mut Option<Function>) -> c_int),
        b"ompt_enumerate_states" => {
            function!(enumerate_states as fn(c_int, *mut c_int, *mut *const c_char) -> c_int)
        }
        b"ompt_enumerate_mutex_impls" => {
            function!(enumerate_mutex_impls as fn(c_int, *mut c_int, *mut *const c_char) -> c_int)
        }
        b"ompt_get_thread_data" => function!(get_thread_data as fn() -> *const Data),
        b"ompt_get_state" => function!(get_state as fn(*mut u64) -> c_int),
        b"ompt_get_parallel_info" => {
            function!(get_parallel_info as fn(c_int, *mut *const Data, *mut c_int) -> c_int)
        }
        b"ompt_get_task_info" => function!(
            get_task_info
                as fn(c_int, *mut c_int, *mut *const Data, *mut *const Frame, *mut *const Data, *mut c_int) -> c_int
        ),
        b"ompt_get_task_memory" => function!(get_task_memory as fn(*mut *mut c_void, *mut usize, c_int) -> c_int),
        b"ompt_get_num_procs" => function!(get_num_procs as fn() -> c_int),
        b"ompt_get_num_places" => function!(get_num_places as fn() -> c_int),
        b"ompt_get_place_proc_ids" => function!(get_place_proc_ids as fn(c_int, c_int, *mut c_int) -> c_int),
        b"ompt_get_place_num" => function!(get_place_num as fn() -> c_int),
        b"ompt_get_partition_place_nums" => {
            function!(get_partition_place_nums as fn(c_int, *mut c_int) -> c_int)
        }
        b"ompt_get_proc_id" => function!(get_proc_id as fn() -> c_int),
        b"ompt_get_num_devices" => function!(get_num_devices as fn() -> c_int),
        b"ompt_get_target_info" => function!(get_target_info as fn(*mut u64, *mut u64, *mut u64) -> c_int),
        b"ompt_get_unique_id" => function!(get_unique_id as fn() -> u64),
        b"ompt_finalize_tool" => Some(finalize_tool),
        _ => None,
    }
}

/// Stores an answer where the tool wants one.
///
/// # Safety
/// `place` is null or a place of the tool.
unsafe fn answer<T>(place: *mut T, value: T) {
    if !place.is_null() {
        // SAFETY: as the caller says.
        unsafe { place.write(value) };
    }
}

/// The states that threads are reported in, in the order of their numbers, which begins at `ompt_state_undefined`.
const STATES: [(c_uint, &CStr); 13] = [
    (state::WORK_SERIAL, c"ompt_state_work_serial"),
    (state::WORK_PARALLEL, c"ompt_state_work_parallel"),
    (state::WAIT_BARRIER, c"ompt_state_wait_barrier"),
    (state::WAIT_BARRIER_IMPLICIT_PARALLEL, c"ompt_state_wait_barrier_implicit_parallel"),
    (state::WAIT_BARRIER_IMPLICIT_WORKSHARE, c"ompt_state_wait_barrier_implicit_workshare"),
    (state::WAIT_TASKWAIT, c"ompt_state_wait_taskwait"),
    (state::WAIT_TASKGROUP, c"ompt_state_wait_taskgroup"),
    (state::WAIT_LOCK, c"ompt_state_wait_lock"),
    (state::WAIT_CRITICAL, c"ompt_state_wait_critical"),
    (state::WAIT_ATOMIC, c"ompt_state_wait_atomic"),
    (state::WAIT_ORDERED, c"ompt_state_wait_ordered"),
    (state::OVERHEAD, c"ompt_state_overhead"),
    (state::UNDEFINED, c"ompt_state_undefined"),
];

/// `ompt_enumerate_states`: the state after `current`, 0 if there is none. `ompt_state_undefined` asks for the first.
unsafe extern "C" fn enumerate_states(current: c_int, next: *mut c_int, name: *mut *const c_char) -> c_int {
    let place = STATES.iter().position(|(number, _)| c_int::try_from(*number) == Ok(current));
    let after = match place {
        Some(place) if STATES[place].0 == state::UNDEFINED => 0,
        Some(place) => place + 1,
        None => return 0,
    };
    // The last one asks for the first, so it is not given itself.
    let Some((number, text)) = STATES[..STATES.len() - 1].get(after) else { return 0 };
    // SAFETY: places of the tool.
    unsafe {
        answer(next, (*number).cast_signed());
        answer(name, text.as_ptr());
    }
    1
}

/// `ompt_enumerate_mutex_impls`: how libgomp makes mutexes is not known here.
unsafe extern "C" fn enumerate_mutex_impls(current: c_int, next: *mut c_int, name: *mut *const c_char) -> c_int {
    let _ = (current, next, name);
    0
}

/// `ompt_get_thread_data`
unsafe extern "C" fn get_thread_data() -> *const Data {
    Thread::existing().map_or(ptr::null(), |thread| &raw const thread.data)
}

/// `ompt_get_state`
unsafe extern "C" fn get_state(wait_id: *mut u64) -> c_int {
    let Some(thread) = Thread::existing() else { return state::UNDEFINED.cast_signed() };
    // SAFETY: a place of the tool.
    unsafe { answer(wait_id, thread.wait_id.load(Relaxed)) };
    thread.state.load(Relaxed).cast_signed()
}

/// The answers of `ompt_get_parallel_info` and `ompt_get_task_info`.
const NONE: c_int = 0;
const UNAVAILABLE: c_int = 1;
const AVAILABLE: c_int = 2;

/// The region at a level: 0 is the one around the task.
fn region_at(thread: &Thread, level: c_int) -> Option<*const Region> {
    let mut region: *const Region = thread.task().region.load(Relaxed);
    for _ in 0..level {
        // SAFETY: null, or a record that stays.
        region = unsafe { region.as_ref() }?.parent.get();
    }
    (!region.is_null()).then_some(region)
}

/// `ompt_get_parallel_info`
unsafe extern "C" fn get_parallel_info(level: c_int, data: *mut *const Data, size: *mut c_int) -> c_int {
    let Some(thread) = Thread::existing() else { return NONE };
    if level < 0 {
        return NONE;
    }
    if thread.is_at_end() {
        return UNAVAILABLE;
    }
    let Some(region) = region_at(thread, level) else { return NONE };
    // SAFETY: a record that stays; places of the tool.
    unsafe {
        answer(data, &raw const (*region).data);
        answer(size, (*region).size.load(Relaxed).cast_signed());
    }
    AVAILABLE
}

/// `ompt_get_task_info`: levels count outward on the stack of the thread, whose frames they have.
unsafe extern "C" fn get_task_info(
    level: c_int,
    flags: *mut c_int,
    data: *mut *const Data,
    frame: *mut *const Frame,
    region: *mut *const Data,
    thread_num: *mut c_int,
) -> c_int {
    let Some(thread) = Thread::existing() else { return NONE };
    if level < 0 {
        return NONE;
    }
    let mut task: *const Task = thread.task();
    for _ in 0..level {
        if thread.is_at_end() {
            return UNAVAILABLE;
        }
        // SAFETY: null, or a record that stays.
        let Some(beneath) = (unsafe { task.as_ref() }).map(|task| task.beneath.load(Relaxed)) else { return NONE };
        task = beneath;
    }
    // SAFETY: null, or a record that stays.
    let Some(task) = (unsafe { task.as_ref() }) else { return NONE };
    let around = if thread.is_at_end() { None } else { task.region() };
    // SAFETY: places of the tool.
    unsafe {
        answer(flags, task.flags.load(Relaxed));
        answer(data, &raw const task.data);
        answer(frame, &raw const task.frame);
        answer(region, around.map_or(ptr::null(), |region| &raw const region.data));
        answer(thread_num, task.thread_num.load(Relaxed).cast_signed());
    }
    AVAILABLE
}

/// `ompt_get_task_memory`: where the runtime keeps a task's memory is not known here.
unsafe extern "C" fn get_task_memory(address: *mut *mut c_void, size: *mut usize, block: c_int) -> c_int {
    let _ = block;
    // SAFETY: places of the tool.
    unsafe {
        answer(address, ptr::null_mut());
        answer(size, 0);
    }
    0
}

/// The runtime of the calling thread, or that of the program.
fn runtime() -> Option<&'static Runtime> {
    Thread::existing().and_then(Thread::runtime).or_else(runtimes::first)
}

fn number(query: Query, otherwise: c_int) -> c_int {
    runtime().and_then(|runtime| runtime.ask(query)).unwrap_or(otherwise)
}

/// `ompt_get_num_procs`
unsafe extern "C" fn get_num_procs() -> c_int {
    number(Query::NumProcs, 0)
}

/// `ompt_get_num_places`
unsafe extern "C" fn get_num_places() -> c_int {
    number(Query::NumPlaces, 0)
}

/// `ompt_get_place_num`
unsafe extern "C" fn get_place_num() -> c_int {
    number(Query::PlaceNum, -1)
}

/// `ompt_get_place_proc_ids`: how many processors the place has. They are stored if there is room for all.
unsafe extern "C" fn get_place_proc_ids(place: c_int, room: c_int, ids: *mut c_int) -> c_int {
    let Some(runtime) = runtime() else { return 0 };
    let count = runtime.place_num_procs(place);
    if !ids.is_null() && count > 0 && count <= room {
        // SAFETY: the tool's array has this room.
        unsafe { runtime.place_proc_ids(place, ids) };
    }
    count
}

/// `ompt_get_partition_place_nums`: how many places the partition has. They are stored if there is room for all.
unsafe extern "C" fn get_partition_place_nums(room: c_int, places: *mut c_int) -> c_int {
    let Some(runtime) = runtime() else { return 0 };
    let count = runtime.ask(Query::PartitionNumPlaces).unwrap_or(0);
    if !places.is_null() && count > 0 && count <= room {
        // SAFETY: the tool's array has this room.
        unsafe { runtime.partition_place_nums(places) };
    }
    count
}

/// `ompt_get_proc_id`
unsafe extern "C" fn get_proc_id() -> c_int {
    // SAFETY: it only asks the kernel.
    unsafe { libc::sched_getcpu() }
}

/// `ompt_get_num_devices`
unsafe extern "C" fn get_num_devices() -> c_int {
    number(Query::NumDevices, 0)
}

/// `ompt_get_target_info`: the thread executes no operation of a device that is known here.
unsafe extern "C" fn get_target_info(device: *mut u64, target: *mut u64, operation: *mut u64) -> c_int {
    let _ = (device, target, operation);
    0
}

/// `ompt_get_unique_id`
unsafe extern "C" fn get_unique_id() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Relaxed)
}

/// `ompt_finalize_tool`
unsafe extern "C" fn finalize_tool() {
    ending::finalize();
}
