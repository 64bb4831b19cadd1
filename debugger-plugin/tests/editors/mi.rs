//! The same by GDB/MI, which cpptools and others use.

use debugger_plugin::mi::Mi;
use debugger_plugin::{Steps, gdbs};

use crate::common::{has_gdb, library};

/// From this version on, gdb reports a thread to MI that a command of its console selects.
const FIRST_WITH_SELECTIONS: u32 = 12;

#[test]
fn the_steps_in_every_gdb() {
    if !has_gdb() {
        return;
    }
    for release in gdbs() {
        let what = format!("gdb {}", release.version);
        let process = Steps::hanging().expect("it hangs");
        let mut mi = Mi::start(&release, &library()).expect("gdb starts");
        mi.command(&format!("-file-exec-and-symbols {:?}", process.program)).expect("the program");
        mi.command("-enable-frame-filters").expect("frame filters");
        mi.command(&format!("-target-attach {}", process.pid)).expect("it attaches");
        mi.until("*stopped").expect("it stops");
        let why = mi.console("openmp why").expect("an answer");
        assert!(why.contains("SUSPECT   thread 0 of team 1 has not reached the barrier"), "{what}: {why}");
        // Names of threads are there without a setting, as nothing asks for a prompt.
        let (threads, _) = mi.command("-thread-info").expect("threads");
        for name in ["omp 1.0 (2)", "omp 1.1 (2)", "omp 2.0 (2)", "omp 2.1 (2)"] {
            assert!(threads.contains(&format!("name=\"{name}\"")), "{what}: {threads}");
        }
        mi.console("openmp thread 1.0").expect("an answer");
        let selected = mi.console("openmp thread 2.1").expect("an answer");
        assert!(selected.contains("thread 1 of 2 in team 2"), "{what}: {selected}");
        if release.version >= FIRST_WITH_SELECTIONS {
            mi.until("=thread-selected").expect("a record");
        }
        let (frames, _) = mi.command("-stack-list-frames").expect("frames");
        assert!(frames.contains("func=\"#pragma omp parallel in inner\""), "{what}: {frames}");
        assert!(frames.contains("[waits: barrier]") && frames.contains("[continues in Thread "), "{what}: {frames}");
        let printed = mi.console("openmp print -all mine").expect("an answer");
        assert!(printed.contains("10\n") && printed.contains("11\n"), "{what}: {printed}");
        mi.console("openmp break parallel-begin").expect("an answer");
        process.release().expect("it reads");
        mi.command("-exec-continue --all").or_else(|_| mi.command("-exec-continue")).expect("it continues");
        let (stopped, _) = mi.until("*stopped").expect("it stops");
        assert!(stopped.contains("reason=\"breakpoint-hit\"") && stopped.contains("thread-id="), "{what}: {stopped}");
        mi.console("openmp delete").expect("an answer");
        let step = mi.console("openmp step").expect("an answer");
        assert!(step.contains("steps.c:34"), "{what}: {step}");
        let found = mi.console("openmp catch deadlock 0.05").expect("an answer");
        assert!(found.contains("DEADLOCK") && found.contains("lock locks[1]"), "{what}: {found}");
        mi.command("-target-detach").expect("it detaches");
        mi.finish().expect("gdb ends");
        process.is_left_alone().expect("nothing is left");
    }
}
