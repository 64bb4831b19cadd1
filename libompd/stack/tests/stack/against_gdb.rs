//! Frames as gdb finds them.

use ompd_stack::{Cache, End};

use crate::support::{Built, have, places, skip};

/// What changes how a function finds its caller.
const BUILDS: [&[&str]; 6] = [
    &["-O0", "-g"],
    &["-O2", "-fomit-frame-pointer"],
    &["-O3", "-mavx2", "-fno-omit-frame-pointer"],
    &["-O3", "-mavx2", "-mstackrealign"],
    // Only .eh_frame is left.
    &["-O2", "-s"],
    // Only .debug_frame is there.
    &["-O2", "-g", "-fno-asynchronous-unwind-tables", "-fno-unwind-tables"],
];

fn compare(place: &str, threads: usize) {
    if !have("gdb") {
        return skip("there is no gdb to compare with");
    }
    for flags in BUILDS {
        let program = Built::places(flags);
        let waiting = program.start(&[place], threads);
        let theirs = waiting.in_gdb("all");
        let look = waiting.look();
        let report = look.report(&Cache::default());
        assert_eq!(theirs.len(), threads, "{place} {flags:?}");
        for (lwp, frames) in theirs {
            let ours = report.physical(lwp).expect("each thread has a stack");
            assert_eq!(places(ours), frames, "{place} {flags:?}, thread {lwp}; ours ends: {}", ours.end);
            assert!(frames.len() > 2, "{place} {flags:?}: gdb has {} frames", frames.len());
            assert_eq!(ours.end, End::Root, "{place} {flags:?}, thread {lwp}");
        }
    }
}

macro_rules! places {
    ($($name:ident: $place:literal, $threads:literal;)*) => {
        $( #[test] fn $name() { compare($place, $threads); } )*
    };
}

places! {
    realigned_stacks: "realigned", 1;
    arrays_of_variable_length: "variable", 1;
    shallow_recursion: "recursive", 1;
    a_signal_handler: "signal", 1;
    a_fault_in_the_first_instruction_of_a_function: "fault", 1;
    a_handler_on_a_stack_of_its_own: "fault-elsewhere", 1;
    a_thread_the_program_made: "thread", 2;
    a_call_of_nothing: "astray", 1;
    a_call_of_nothing_through_a_table: "astray-by-table", 1;
}
