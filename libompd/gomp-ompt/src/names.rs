//! The entry points: their names, the numbers of their arguments, and the functions that report them.

use std::ffi::CStr;

/// Hands the table to a macro: for each entry point the number of its arguments or that it varies, its name, and the function in `events`
/// that reports it.
macro_rules! table {
    ($with:ident) => {
        $with! {
            // Regions. Those that end in `_start` are called by code of GCC before 4.9.
            4 GOMP_parallel => regions::parallel;
            3 GOMP_parallel_start => regions::parallel_start;
            0 GOMP_parallel_end => regions::parallel_end;
            4 GOMP_parallel_reductions => regions::parallel_reductions;
            8 GOMP_parallel_loop_static => regions::parallel_loop_static;
            8 GOMP_parallel_loop_dynamic => regions::parallel_loop_dynamic;
            8 GOMP_parallel_loop_guided => regions::parallel_loop_guided;
            7 GOMP_parallel_loop_runtime => regions::parallel_loop_runtime;
            8 GOMP_parallel_loop_nonmonotonic_dynamic => regions::parallel_loop_nonmonotonic_dynamic;
            8 GOMP_parallel_loop_nonmonotonic_guided => regions::parallel_loop_nonmonotonic_guided;
            7 GOMP_parallel_loop_nonmonotonic_runtime => regions::parallel_loop_nonmonotonic_runtime;
            7 GOMP_parallel_loop_maybe_nonmonotonic_runtime => regions::parallel_loop_maybe_nonmonotonic_runtime;
            7 GOMP_parallel_loop_static_start => regions::parallel_loop_static_start;
            7 GOMP_parallel_loop_dynamic_start => regions::parallel_loop_dynamic_start;
            7 GOMP_parallel_loop_guided_start => regions::parallel_loop_guided_start;
            6 GOMP_parallel_loop_runtime_start => regions::parallel_loop_runtime_start;
            5 GOMP_parallel_sections => regions::parallel_sections;
            4 GOMP_parallel_sections_start => regions::parallel_sections_start;
            5 GOMP_teams_reg => regions::teams;

            // Loops. Their `_next` functions are the runtime's own: chunks are not reported.
            6 GOMP_loop_static_start => loops::static_start;
            6 GOMP_loop_dynamic_start => loops::dynamic_start;
            6 GOMP_loop_guided_start => loops::guided_start;
            5 GOMP_loop_runtime_start => loops::runtime_start;
            6 GOMP_loop_nonmonotonic_dynamic_start => loops::nonmonotonic_dynamic_start;
            6 GOMP_loop_nonmonotonic_guided_start => loops::nonmonotonic_guided_start;
            5 GOMP_loop_nonmonotonic_runtime_start => loops::nonmonotonic_runtime_start;
            5 GOMP_loop_maybe_nonmonotonic_runtime_start => loops::maybe_nonmonotonic_runtime_start;
            9 GOMP_loop_start => loops::start;
            6 GOMP_loop_ordered_static_start => loops::ordered_static_start;
            6 GOMP_loop_ordered_dynamic_start => loops::ordered_dynamic_start;
            6 GOMP_loop_ordered_guided_start => loops::ordered_guided_start;
            5 GOMP_loop_ordered_runtime_start => loops::ordered_runtime_start;
            9 GOMP_loop_ordered_start => loops::ordered_start;
            5 GOMP_loop_doacross_static_start => loops::doacross_static_start;
            5 GOMP_loop_doacross_dynamic_start => loops::doacross_dynamic_start;
            5 GOMP_loop_doacross_guided_start => loops::doacross_guided_start;
            4 GOMP_loop_doacross_runtime_start => loops::doacross_runtime_start;
            8 GOMP_loop_doacross_start => loops::doacross_start;
            7 GOMP_loop_ull_static_start => loops::ull_static_start;
            7 GOMP_loop_ull_dynamic_start => loops::ull_dynamic_start;
            7 GOMP_loop_ull_guided_start => loops::ull_guided_start;
            6 GOMP_loop_ull_runtime_start => loops::ull_runtime_start;
            7 GOMP_loop_ull_nonmonotonic_dynamic_start => loops::ull_nonmonotonic_dynamic_start;
            7 GOMP_loop_ull_nonmonotonic_guided_start => loops::ull_nonmonotonic_guided_start;
            6 GOMP_loop_ull_nonmonotonic_runtime_start => loops::ull_nonmonotonic_runtime_start;
            6 GOMP_loop_ull_maybe_nonmonotonic_runtime_start => loops::ull_maybe_nonmonotonic_runtime_start;
            10 GOMP_loop_ull_start => loops::ull_start;
            7 GOMP_loop_ull_ordered_static_start => loops::ull_ordered_static_start;
            7 GOMP_loop_ull_ordered_dynamic_start => loops::ull_ordered_dynamic_start;
            7 GOMP_loop_ull_ordered_guided_start => loops::ull_ordered_guided_start;
            6 GOMP_loop_ull_ordered_runtime_start => loops::ull_ordered_runtime_start;
            10 GOMP_loop_ull_ordered_start => loops::ull_ordered_start;
            5 GOMP_loop_ull_doacross_static_start => loops::ull_doacross_static_start;
            5 GOMP_loop_ull_doacross_dynamic_start => loops::ull_doacross_dynamic_start;
            5 GOMP_loop_ull_doacross_guided_start => loops::ull_doacross_guided_start;
            4 GOMP_loop_ull_doacross_runtime_start => loops::ull_doacross_runtime_start;
            8 GOMP_loop_ull_doacross_start => loops::ull_doacross_start;
            1 GOMP_doacross_post => doacross::post;
            1 GOMP_doacross_ull_post => doacross::ull_post;
            variadic GOMP_doacross_wait => doacross::wait;
            variadic GOMP_doacross_ull_wait => doacross::ull_wait;
            0 GOMP_loop_end => loops::end;
            0 GOMP_loop_end_nowait => loops::end_nowait;
            0 GOMP_loop_end_cancel => loops::end_cancel;

            // Sections, single, scope.
            1 GOMP_sections_start => sections::sections_start;
            3 GOMP_sections2_start => sections::sections2_start;
            0 GOMP_sections_end => sections::sections_end;
            0 GOMP_sections_end_nowait => sections::sections_end_nowait;
            0 GOMP_sections_end_cancel => sections::sections_end_cancel;
            0 GOMP_single_start => sections::single_start;
            0 GOMP_single_copy_start => sections::single_copy_start;
            1 GOMP_single_copy_end => sections::single_copy_end;
            1 GOMP_scope_start => sections::scope_start;

            // Barriers, and the ends of groups of tasks.
            0 GOMP_barrier => barriers::barrier;
            0 GOMP_barrier_cancel => barriers::barrier_cancel;
            0 GOMP_taskwait => barriers::taskwait;
            1 GOMP_taskwait_depend => barriers::taskwait_depend;
            0 GOMP_taskgroup_start => barriers::taskgroup_start;
            0 GOMP_taskgroup_end => barriers::taskgroup_end;

            // Tasks.
            10 GOMP_task => tasks::task;
            11 GOMP_taskloop => tasks::taskloop;
            11 GOMP_taskloop_ull => tasks::taskloop_ull;
            1 omp_fulfill_event => tasks::fulfill_event;
            1 omp_fulfill_event_ => tasks::fulfill_event_fortran;

            // Mutual exclusion.
            0 GOMP_critical_start => locks::critical_start;
            0 GOMP_critical_end => locks::critical_end;
            1 GOMP_critical_name_start => locks::critical_name_start;
            1 GOMP_critical_name_end => locks::critical_name_end;
            0 GOMP_atomic_start => locks::atomic_start;
            0 GOMP_atomic_end => locks::atomic_end;
            0 GOMP_ordered_start => locks::ordered_start;
            0 GOMP_ordered_end => locks::ordered_end;
            1 omp_init_lock => locks::init_lock;
            1 omp_init_lock_ => locks::init_lock_fortran;
            1 omp_destroy_lock => locks::destroy_lock;
            1 omp_destroy_lock_ => locks::destroy_lock_fortran;
            1 omp_set_lock => locks::set_lock;
            1 omp_set_lock_ => locks::set_lock_fortran;
            1 omp_unset_lock => locks::unset_lock;
            1 omp_unset_lock_ => locks::unset_lock_fortran;
            1 omp_test_lock => locks::test_lock;
            1 omp_test_lock_ => locks::test_lock_fortran;
            1 omp_init_nest_lock => locks::init_nest_lock;
            1 omp_init_nest_lock_ => locks::init_nest_lock_fortran;
            1 omp_destroy_nest_lock => locks::destroy_nest_lock;
            1 omp_destroy_nest_lock_ => locks::destroy_nest_lock_fortran;
            1 omp_set_nest_lock => locks::set_nest_lock;
            1 omp_set_nest_lock_ => locks::set_nest_lock_fortran;
            1 omp_unset_nest_lock => locks::unset_nest_lock;
            1 omp_unset_nest_lock_ => locks::unset_nest_lock_fortran;
            1 omp_test_nest_lock => locks::test_nest_lock;
            1 omp_test_nest_lock_ => locks::test_nest_lock_fortran;

            // Cancellation and errors.
            2 GOMP_cancel => cancel::cancel;
            1 GOMP_cancellation_point => cancel::cancellation_point;
            2 GOMP_error => cancel::error;
            2 GOMP_warning => cancel::warning;
            3 omp_control_tool => cancel::control_tool;

            // Constructs for devices.
            7 GOMP_target => target::target;
            9 GOMP_target_ext => target::target_ext;
            6 GOMP_target_data => target::target_data;
            5 GOMP_target_data_ext => target::target_data_ext;
            0 GOMP_target_end_data => target::target_end_data;
            6 GOMP_target_update => target::target_update;
            7 GOMP_target_update_ext => target::target_update_ext;
            7 GOMP_target_enter_exit_data => target::target_enter_exit_data;
        }
    };
}

pub(crate) use table;

macro_rules! number {
    ($($arguments:tt $name:ident => $function:path;)*) => {
        /// An entry point.
        #[allow(non_camel_case_types, reason = "the runtime's own names")]
        #[allow(clippy::enum_variant_names, reason = "the runtime's own names")]
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[repr(usize)]
        pub enum Entry { $(#[doc = stringify!($name)] $name,)* }

        /// The names, by number.
        pub const NAMES: [&CStr; COUNT] = [$(
            match CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                Ok(name) => name,
                Err(_) => panic!("a name with a zero"),
            },
        )*];

        /// How many there are.
        pub const COUNT: usize = [$(stringify!($name)),*].len();
    };
}

table!(number);
