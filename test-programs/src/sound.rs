//! What holds for every program, hanging or healthy, whatever is tested with it. What it says of itself is sound and complete. It
//! is where it says: in waits that do not end, or still running.

use std::collections::BTreeSet;
use std::fs;

use anyhow::{Result, ensure};

use crate::{Case, Running, Verdict, Wait, mapped_files, thread_states};

/// Checks a program of [`HANGS`](crate::HANGS) that hangs.
///
/// # Errors
/// When it is not as it says.
pub fn check_hanging(case: &Case, running: &Running) -> Result<()> {
    check_any(running)?;
    let noted: BTreeSet<i32> = running.truth.threads.iter().map(|thread| thread.lwp).collect();
    let there: BTreeSet<i32> = thread_states(running.pid)?.into_keys().collect();
    ensure!(noted == there, "the process has the threads {there:?}, it told about {noted:?}");
    check_waits(running)?;
    let verdict = running.truth.expectation.as_ref().map(|expected| expected.verdict);
    // The one does not hang there, of the other nothing is proven.
    let none = case.program == "hangs/fork_child" && running.runtime.is_kmp() || case.program == "hangs/missing_source";
    ensure!((verdict == Some(Verdict::None)) == none, "{verdict:?}");
    Ok(())
}

/// Checks a program of [`HEALTHY`](crate::HEALTHY) and waits until it has gone on for some rounds.
///
/// # Errors
/// When it is not as it says, or does not go on.
pub fn check_healthy(case: &Case, running: &mut Running) -> Result<()> {
    check_any(running)?;
    if case.program == "healthy/idle" {
        check_waits(running)?;
    } else {
        running.await_round(5)?;
    }
    let verdict = running.truth.expectation.as_ref().map(|expected| expected.verdict);
    ensure!(verdict == Some(Verdict::None), "{verdict:?}");
    Ok(())
}

fn check_any(running: &Running) -> Result<()> {
    let truth = &running.truth;
    let faults = truth.contradictions();
    ensure!(faults.is_empty(), "{faults:#?}");
    let program = &running.executable.program;
    ensure!(program.ends_with(&format!("/{}", truth.program.name)), "the program calls itself {}", truth.program.name);
    let library = running.runtime.library().map_err(|skip| anyhow::anyhow!("{skip}"))?;
    ensure!(mapped_files(running.pid)?.contains(&library), "{} is not mapped", library.display());
    Ok(())
}

/// Checks that every thread is in the system call its wait is made of, or spins if it may.
///
/// # Errors
/// When one is not.
pub fn check_waits(running: &Running) -> Result<()> {
    for thread in &running.truth.threads {
        let text = fs::read_to_string(format!("/proc/{}/task/{}/syscall", running.pid, thread.lwp))?;
        let call = text.split_whitespace().next().unwrap_or_default();
        let spins = thread.wait.may_spin(running.runtime.is_kmp());
        let fits = system_call(thread.wait).is_none_or(|expected| call == expected);
        ensure!(spins || fits, "{thread:?} is in system call {call}");
    }
    Ok(())
}

/// The system call threads that do not spin sleep in, by architecture (asm/unistd_64.h, asm-generic/unistd.h).
/// `None` where the program does not say which.
fn system_call(wait: Wait) -> Option<&'static str> {
    match (wait, cfg!(target_arch = "x86_64")) {
        (Wait::Other, _) => None,
        (Wait::Pipe, true) => Some("0"),
        (Wait::Pipe, false) => Some("63"),
        (_, true) => Some("202"),
        (_, false) => Some("98"),
    }
}
