//! What holds for every program.

use std::collections::BTreeSet;

use anyhow::{Result, ensure};
use test_programs::{Running, thread_states};

/// The program does not contradict itself, and it told about the threads that it has.
pub fn check_truth(running: &Running) -> Result<()> {
    let truth = &running.truth;
    let faults = truth.contradictions();
    ensure!(faults.is_empty(), "{faults:#?}");
    ensure!(truth.program.name == running.executable.program, "the program calls itself {}", truth.program.name);
    let noted: BTreeSet<i32> = truth.threads.iter().map(|thread| thread.lwp).collect();
    let there: BTreeSet<i32> = thread_states(running.pid)?.keys().copied().collect();
    ensure!(noted == there, "the process has the threads {there:?}, it told about {noted:?}");
    Ok(())
}
