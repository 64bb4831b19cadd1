//! The stop points of OMPD (OpenMP 5.2, 20.6): functions that do nothing, at whose names debuggers set breakpoints.
//!
//! The companion loads this library where the runtime of the process has no such names, and calls the functions. They are not in
//! the companion itself: a debugger would find each name of libiomp5 twice, and might take the one that is never called.

use std::hint::black_box;

/// Functions with a number each. Without it their code would be the same, and could become one function.
macro_rules! stop_points {
    ($($(#[$doc:meta])* $name:ident: $number:literal;)*) => {
        $($(#[$doc])*
        #[unsafe(no_mangle)]
        #[inline(never)]
        pub extern "C" fn $name() {
            black_box($number);
        })*
    };
}

stop_points! {
    /// A parallel region begins: the calling thread is its thread 0, and in it.
    ompd_bp_parallel_begin: 1;
    /// A parallel region ends: all its threads have arrived at its end.
    ompd_bp_parallel_end: 2;
    /// The calling thread is about to execute the code of an explicit task.
    ompd_bp_task_begin: 3;
    /// The calling thread has executed the code of an explicit task.
    ompd_bp_task_end: 4;
    /// The calling thread begins, and has executed no region yet.
    ompd_bp_thread_begin: 5;
    /// The calling thread ends, and executes no further region.
    ompd_bp_thread_end: 6;
}
