//! A libgomp that is linked into the same file, under other names.
//!
//! An archive of libgomp defines the names of the entry points too. `objcopy` gives its functions names with `libgomp_ompt_real_` in
//! front (docs/gomp-ompt.md). Here are their addresses: weak references, which are 0 where nothing has the name.

use crate::names::{COUNT, table};

/// How many functions answer questions: those without arguments, and the others.
pub const QUESTIONS: usize = 14 + 4;

macro_rules! addresses {
    ($($arguments:tt $name:ident => $function:path;)*) => {
        std::arch::global_asm!(
            ".pushsection .data.rel.ro, \"aw\"",
            ".balign 8",
            ".globl libgomp_ompt_linked",
            ".hidden libgomp_ompt_linked",
            "libgomp_ompt_linked:",
            $(
                concat!(".weak libgomp_ompt_real_", stringify!($name)),
                concat!(".8byte libgomp_ompt_real_", stringify!($name)),
            )*
            ".popsection",
        );
    };
}

table!(addresses);

macro_rules! questions {
    ($($name:ident)*) => {
        std::arch::global_asm!(
            ".pushsection .data.rel.ro, \"aw\"",
            ".balign 8",
            ".globl libgomp_ompt_questions",
            ".hidden libgomp_ompt_questions",
            "libgomp_ompt_questions:",
            $(concat!(".weak ", stringify!($name)), concat!(".8byte ", stringify!($name)),)*
            // A tool that is linked in, which a static program has no other way to find.
            ".weak ompt_start_tool",
            ".8byte ompt_start_tool",
            ".popsection",
        );
        const _: () = assert!([$(stringify!($name)),*].len() == QUESTIONS);
    };
}

// In the order of the runtime's lists of them.
questions! {
    omp_get_num_threads omp_get_thread_num omp_get_max_threads omp_get_num_teams omp_get_team_num omp_in_final
    omp_get_cancellation omp_get_num_procs omp_get_num_places omp_get_place_num omp_get_partition_num_places
    omp_get_num_devices omp_get_initial_device omp_get_default_device
    omp_get_place_num_procs omp_get_place_proc_ids omp_get_partition_place_nums omp_get_schedule
}

unsafe extern "C" {
    static libgomp_ompt_linked: [usize; COUNT];
    static libgomp_ompt_questions: [usize; QUESTIONS + 1];
}

/// The functions of a libgomp that is linked in, in the order of the entry points; `None` if none is.
pub fn functions() -> Option<&'static [usize; COUNT]> {
    // SAFETY: the table above, which nobody writes.
    let functions = unsafe { &libgomp_ompt_linked };
    functions.iter().any(|function| *function != 0).then_some(functions)
}

/// The functions that answer questions.
pub fn questions() -> &'static [usize] {
    // SAFETY: the table above, which nobody writes.
    let all = unsafe { &libgomp_ompt_questions };
    &all[..QUESTIONS]
}

/// `ompt_start_tool` as it was when this file was linked or loaded; 0 if there was none.
pub fn start_tool() -> usize {
    // SAFETY: the table above, which nobody writes.
    unsafe { libgomp_ompt_questions[QUESTIONS] }
}
