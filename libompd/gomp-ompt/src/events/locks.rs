//! Mutual exclusion: critical, atomic, ordered, and locks.
//!
//! The wait id of a lock is its address, for Fortran's nestable locks the address that their variable has. A critical construct without a
//! name, and `atomic`, wait for a variable that the runtime keeps for itself. Their wait ids are the addresses of the runtime's functions `GOMP_critical_start` and `GOMP_atomic_start`.

use std::ffi::{c_int, c_uint, c_void};
use std::ptr;

use crate::call::{self, Begun, Call};
use crate::callbacks as report;
use crate::names::Entry;
use crate::ompt::{mutex, scope, state};

/// `ompt_mutex_impl_unknown`
pub const UNKNOWN_IMPLEMENTATION: c_uint = 0;

/// Reports the acquisition of a mutex around the call that waits for it.
fn acquires<R>(
    begun: Begun,
    call: Call,
    (kind, state): (c_int, c_uint),
    wait_id: u64,
    forward: impl FnOnce() -> R,
    has_it: impl FnOnce(&R) -> bool,
) -> R {
    let Some(thread) = begun.thread else { return forward() };
    let code = call.codeptr_ra();
    report::mutex_acquire(kind, 0, UNKNOWN_IMPLEMENTATION, wait_id, code);
    let result = thread.in_state(state, wait_id, forward);
    if has_it(&result) {
        report::mutex_acquired(kind, wait_id, code);
    }
    call::end(thread.task());
    result
}

/// Reports the release of a mutex, after it.
fn releases(begun: Begun, call: Call, kind: c_int, wait_id: u64, forward: impl FnOnce()) {
    forward();
    let Some(thread) = begun.thread else { return };
    report::mutex_released(kind, wait_id, call.codeptr_ra());
    call::end(thread.task());
}

/// Defines functions without arguments that enter and leave a construct.
macro_rules! constructs {
    ($($enter:ident, $enter_entry:ident, $leave:ident, $leave_entry:ident, $kind:expr, $state:expr;)*) => {
        $(#[doc = concat!("`", stringify!($enter_entry), "`")]
        pub unsafe extern "C-unwind" fn $enter(call: Call) {
            type Real = unsafe extern "C-unwind" fn();
            let begun = call.begin();
            let wait_id = begun.runtime.function(Entry::$enter_entry) as u64;
            // SAFETY: the runtime's type.
            let forward = || unsafe { begun.real::<Real>(Entry::$enter_entry)() };
            acquires(begun, call, ($kind, $state), wait_id, forward, |_| true);
        }

        #[doc = concat!("`", stringify!($leave_entry), "`")]
        pub unsafe extern "C-unwind" fn $leave(call: Call) {
            type Real = unsafe extern "C-unwind" fn();
            let begun = call.begin();
            let wait_id = begun.runtime.function(Entry::$enter_entry) as u64;
            // SAFETY: the runtime's type.
            releases(begun, call, $kind, wait_id, || unsafe { begun.real::<Real>(Entry::$leave_entry)() });
        })*
    };
}

constructs! {
    critical_start, GOMP_critical_start, critical_end, GOMP_critical_end, mutex::CRITICAL, state::WAIT_CRITICAL;
    atomic_start, GOMP_atomic_start, atomic_end, GOMP_atomic_end, mutex::ATOMIC, state::WAIT_ATOMIC;
    ordered_start, GOMP_ordered_start, ordered_end, GOMP_ordered_end, mutex::ORDERED, state::WAIT_ORDERED;
}

/// Defines functions whose argument is the address of a mutex.
macro_rules! mutexes {
    (acquire $($name:ident, $entry:ident, $kind:expr, $state:expr;)*) => {
        $(#[doc = concat!("`", stringify!($entry), "`")]
        pub unsafe extern "C-unwind" fn $name(lock: *mut c_void, call: Call) {
            type Real = unsafe extern "C-unwind" fn(*mut c_void);
            let begun = call.begin();
            // SAFETY: the runtime's type and the program's argument.
            let forward = || unsafe { begun.real::<Real>(Entry::$entry)(lock) };
            acquires(begun, call, ($kind, $state), lock as u64, forward, |_| true);
        })*
    };
    (release $($name:ident, $entry:ident, $kind:expr;)*) => {
        $(#[doc = concat!("`", stringify!($entry), "`")]
        pub unsafe extern "C-unwind" fn $name(lock: *mut c_void, call: Call) {
            type Real = unsafe extern "C-unwind" fn(*mut c_void);
            let begun = call.begin();
            // SAFETY: the runtime's type and the program's argument.
            releases(begun, call, $kind, lock as u64, || unsafe { begun.real::<Real>(Entry::$entry)(lock) });
        })*
    };
    (init $($name:ident, $entry:ident, $kind:expr, $of:path;)*) => {
        $(#[doc = concat!("`", stringify!($entry), "`")]
        pub unsafe extern "C-unwind" fn $name(lock: *mut c_void, call: Call) {
            type Real = unsafe extern "C-unwind" fn(*mut c_void);
            let begun = call.begin();
            // SAFETY: the runtime's type and the program's argument.
            unsafe { begun.real::<Real>(Entry::$entry)(lock) };
            if let Some(thread) = begun.thread {
                // SAFETY: the program's argument.
                let lock = unsafe { $of(begun, Entry::$entry, lock) };
                report::lock_init($kind, 0, UNKNOWN_IMPLEMENTATION, lock as u64, call.codeptr_ra());
                call::end(thread.task());
            }
        })*
    };
    (destroy $($name:ident, $entry:ident, $kind:expr, $of:path;)*) => {
        $(#[doc = concat!("`", stringify!($entry), "`")]
        pub unsafe extern "C-unwind" fn $name(lock: *mut c_void, call: Call) {
            type Real = unsafe extern "C-unwind" fn(*mut c_void);
            let begun = call.begin();
            // SAFETY: the runtime's type and the program's argument.
            let forward = || unsafe { begun.real::<Real>(Entry::$entry)(lock) };
            // SAFETY: the program's argument.
            let lock = unsafe { $of(begun, Entry::$entry, lock) };
            forward();
            if let Some(thread) = begun.thread {
                report::lock_destroy($kind, lock as u64, call.codeptr_ra());
                call::end(thread.task());
            }
        })*
    };
    (test $($name:ident, $entry:ident;)*) => {
        $(#[doc = concat!("`", stringify!($entry), "`")]
        pub unsafe extern "C-unwind" fn $name(lock: *mut c_void, call: Call) -> c_int {
            type Real = unsafe extern "C-unwind" fn(*mut c_void) -> c_int;
            let begun = call.begin();
            // SAFETY: the runtime's type and the program's argument.
            let forward = || unsafe { begun.real::<Real>(Entry::$entry)(lock) };
            let what = (mutex::TEST_LOCK, state::WAIT_LOCK);
            acquires(begun, call, what, lock as u64, forward, |result| *result != 0)
        })*
    };
    (set_nest $($name:ident, $entry:ident, $of:path;)*) => {
        $(#[doc = concat!("`", stringify!($entry), "`")]
        pub unsafe extern "C-unwind" fn $name(lock: *mut c_void, call: Call) {
            type Real = unsafe extern "C-unwind" fn(*mut c_void);
            let begun = call.begin();
            // SAFETY: the runtime's type and the program's argument.
            let forward = || unsafe { begun.real::<Real>(Entry::$entry)(lock) };
            // SAFETY: the program's argument.
            let lock = unsafe { $of(begun, Entry::$entry, lock) };
            let again = |(): &()| {
                // SAFETY: the program's lock, which this thread has.
                let first = begun.thread.is_none() || unsafe { count(lock) } == 1;
                if !first {
                    report::nest_lock(scope::BEGIN, lock as u64, call.codeptr_ra());
                }
                first
            };
            acquires(begun, call, (mutex::NEST_LOCK, state::WAIT_LOCK), lock as u64, forward, again);
        })*
    };
    (unset_nest $($name:ident, $entry:ident, $of:path;)*) => {
        $(#[doc = concat!("`", stringify!($entry), "`")]
        pub unsafe extern "C-unwind" fn $name(lock: *mut c_void, call: Call) {
            type Real = unsafe extern "C-unwind" fn(*mut c_void);
            let begun = call.begin();
            // SAFETY: the runtime's type and the program's argument.
            let forward = || unsafe { begun.real::<Real>(Entry::$entry)(lock) };
            // SAFETY: the program's argument.
            let lock = unsafe { $of(begun, Entry::$entry, lock) };
            // SAFETY: the program's lock, which this thread has.
            let last = begun.thread.is_none() || unsafe { count(lock) } == 1;
            forward();
            if let Some(thread) = begun.thread {
                if last {
                    report::mutex_released(mutex::NEST_LOCK, lock as u64, call.codeptr_ra());
                } else {
                    report::nest_lock(scope::END, lock as u64, call.codeptr_ra());
                }
                call::end(thread.task());
            }
        })*
    };
    (test_nest $($name:ident, $entry:ident, $of:path;)*) => {
        $(#[doc = concat!("`", stringify!($entry), "`")]
        pub unsafe extern "C-unwind" fn $name(lock: *mut c_void, call: Call) -> c_int {
            type Real = unsafe extern "C-unwind" fn(*mut c_void) -> c_int;
            let begun = call.begin();
            // SAFETY: the runtime's type and the program's argument.
            let forward = || unsafe { begun.real::<Real>(Entry::$entry)(lock) };
            // SAFETY: the program's argument.
            let lock = unsafe { $of(begun, Entry::$entry, lock) };
            let what = (mutex::TEST_NEST_LOCK, state::WAIT_LOCK);
            // The result is how often the lock is set now.
            acquires(begun, call, what, lock as u64, forward, |result| {
                if *result > 1 {
                    report::nest_lock(scope::BEGIN, lock as u64, call.codeptr_ra());
                }
                *result == 1
            })
        })*
    };
}

/// The lock that an argument is.
unsafe fn itself(_begun: Begun, _entry: Entry, lock: *mut c_void) -> *mut c_void {
    lock
}

/// The nestable lock of a Fortran program: its variable has the address of the lock (libgomp's fortran.c, since GCC 4.4). Before, the
/// variable was the lock.
///
/// # Safety
/// `variable` is such a variable.
unsafe fn pointed_to(begun: Begun, entry: Entry, variable: *mut c_void) -> *mut c_void {
    if begun.thread.is_none() || begun.runtime.has_old(entry) {
        return variable;
    }
    // SAFETY: as the caller says.
    unsafe { *variable.cast() }
}

/// How often a nestable lock is set: the second number in it (`omp_nest_lock_t` and `omp_nest_lock_25_t` of libgomp).
///
/// # Safety
/// `lock` is such a lock, and the calling thread has it.
unsafe fn count(lock: *const c_void) -> c_int {
    // SAFETY: as the caller says.
    unsafe { ptr::read_volatile(lock.cast::<c_int>().add(1)) }
}

mutexes! { acquire
    critical_name_start, GOMP_critical_name_start, mutex::CRITICAL, state::WAIT_CRITICAL;
    set_lock, omp_set_lock, mutex::LOCK, state::WAIT_LOCK;
    set_lock_fortran, omp_set_lock_, mutex::LOCK, state::WAIT_LOCK;
}
mutexes! { release
    critical_name_end, GOMP_critical_name_end, mutex::CRITICAL;
    unset_lock, omp_unset_lock, mutex::LOCK;
    unset_lock_fortran, omp_unset_lock_, mutex::LOCK;
}
mutexes! { init
    init_lock, omp_init_lock, mutex::LOCK, itself;
    init_lock_fortran, omp_init_lock_, mutex::LOCK, itself;
    init_nest_lock, omp_init_nest_lock, mutex::NEST_LOCK, itself;
    init_nest_lock_fortran, omp_init_nest_lock_, mutex::NEST_LOCK, pointed_to;
}
mutexes! { destroy
    destroy_lock, omp_destroy_lock, mutex::LOCK, itself;
    destroy_lock_fortran, omp_destroy_lock_, mutex::LOCK, itself;
    destroy_nest_lock, omp_destroy_nest_lock, mutex::NEST_LOCK, itself;
    destroy_nest_lock_fortran, omp_destroy_nest_lock_, mutex::NEST_LOCK, pointed_to;
}
mutexes! { test
    test_lock, omp_test_lock;
    test_lock_fortran, omp_test_lock_;
}
mutexes! { set_nest
    set_nest_lock, omp_set_nest_lock, itself;
    set_nest_lock_fortran, omp_set_nest_lock_, pointed_to;
}
mutexes! { unset_nest
    unset_nest_lock, omp_unset_nest_lock, itself;
    unset_nest_lock_fortran, omp_unset_nest_lock_, pointed_to;
}
mutexes! { test_nest
    test_nest_lock, omp_test_nest_lock, itself;
    test_nest_lock_fortran, omp_test_nest_lock_, pointed_to;
}
