//! Every program that hangs, and every healthy one, as every toolchain here builds it, on every runtime here: what it
//! says of itself is sound and complete, and it is where it says: in waits that do not end, or going on.

use std::collections::BTreeSet;
use std::fs;
use std::sync::{Mutex, MutexGuard, PoisonError};

use anyhow::{Context as _, Result, ensure};
use test_programs::{
    Case, Env, HANGS, HEALTHY, Launch, Opt, Running, Runtime, Skip, Toolchain, Verdict, Wait, build, can_build,
    combinations, mapped_files, thread_states,
};

/// One test after the other: these programs use all the processors there are.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs `check` on every variant of a program in every combination, optimised in the environment users have.
fn everywhere(
    all: &[Case],
    program: &str,
    check: impl Fn(&Case, Toolchain, Runtime, Opt, Env) -> Result<()>,
) -> Result<()> {
    let _alone = alone();
    let combinations = combinations();
    ensure!(!combinations.is_empty(), "no toolchain and no runtime here: nothing was tested");
    let mut skips = BTreeSet::new();
    for case in all.iter().filter(|case| case.program == program) {
        let mut tried = false;
        for &(toolchain, runtime) in combinations.iter().filter(|(toolchain, runtime)| case.works(*toolchain, *runtime))
        {
            if let Err(skip) = can_build(case.program, toolchain)? {
                if skips.insert(skip.to_string()) {
                    skip.show();
                }
                continue;
            }
            for (opt, env) in [(Opt::O0, Env::Settled), (Opt::O2, Env::Stock)] {
                check(case, toolchain, runtime, opt, env)
                    .with_context(|| format!("{case:?} by {toolchain:?} {opt:?} on {runtime:?}, {env:?}"))?;
                tried = true;
            }
        }
        if !tried {
            Skip::because(format!("{} {:?}: nothing here to build it with, or to run it on", case.program, case.flags))
                .show();
        }
    }
    Ok(())
}

/// What holds for every program of both kinds.
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

/// Every thread is in the system call its wait is made of, or spins if it may.
fn check_waits(running: &Running) -> Result<()> {
    for thread in &running.truth.threads {
        let text = fs::read_to_string(format!("/proc/{}/task/{}/syscall", running.pid, thread.lwp))?;
        let call = text.split_whitespace().next().unwrap_or_default();
        let spins = thread.wait.may_spin(running.runtime.is_kmp());
        ensure!(spins || call == system_call(thread.wait), "{thread:?} is in system call {call}");
    }
    Ok(())
}

/// The system call threads that do not spin sleep in, by architecture (asm/unistd_64.h, asm-generic/unistd.h).
fn system_call(wait: Wait) -> &'static str {
    match (wait, cfg!(target_arch = "x86_64")) {
        (Wait::Pipe, true) => "0",
        (Wait::Pipe, false) => "63",
        (_, true) => "202",
        (_, false) => "98",
    }
}

fn hang(program: &str) -> Result<()> {
    everywhere(HANGS, program, |case, toolchain, runtime, opt, env| {
        let executable = build(case.program, toolchain, opt, case.flags)?;
        let running = Launch::new(&executable, runtime, env).start_hanging()?;
        check_any(&running)?;
        let noted: BTreeSet<i32> = running.truth.threads.iter().map(|thread| thread.lwp).collect();
        let there: BTreeSet<i32> = thread_states(running.pid)?.into_keys().collect();
        ensure!(noted == there, "the process has the threads {there:?}, it told about {noted:?}");
        check_waits(&running)?;
        let verdict = running.truth.expectation.as_ref().map(|expected| expected.verdict);
        // The one does not hang there, of the other nothing is proven.
        let none = case.program == "hangs/fork_child" && runtime.is_kmp() || case.program == "hangs/missing_source";
        ensure!((verdict == Some(Verdict::None)) == none, "{verdict:?}");
        Ok(())
    })
}

fn healthy(program: &str) -> Result<()> {
    everywhere(HEALTHY, program, |case, toolchain, runtime, opt, env| {
        let executable = build(case.program, toolchain, opt, case.flags)?;
        let mut running = Launch::new(&executable, runtime, env).start_healthy()?;
        check_any(&running)?;
        if case.program == "healthy/idle" {
            check_waits(&running)?;
        } else {
            running.await_round(5)?;
        }
        let verdict = running.truth.expectation.as_ref().map(|expected| expected.verdict);
        ensure!(verdict == Some(Verdict::None), "{verdict:?}");
        Ok(())
    })
}

/// A test for each program, so that a failure names it, and no test takes long.
macro_rules! programs {
    ($how:ident in $directory:literal of $all:ident, $tested:ident: $($name:ident),*) => {
        $( #[test] fn $name() -> Result<()> { $how(concat!($directory, "/", stringify!($name))) } )*

        #[test]
        fn $tested() {
            let tested = BTreeSet::from([$( concat!($directory, "/", stringify!($name)) ),*]);
            let listed: BTreeSet<&str> = $all.iter().map(|case| case.program).collect();
            assert_eq!(tested, listed);
        }
    };
}

programs!(hang in "hangs" of HANGS, every_hang_is_tested:
    lock_cycle, lock_cycle_cpp, lock_cycle_fortran, join_lock, mutex_and_lock, mutex_and_lock_cpp, self_lock, owner_gone, barrier_missing_end, missing_lock, missing_read,
    orphaned_for, detach, depend_cycle, task_never_run, nested_exhausted, ordered_skip, missing_source, critical_left, rescued,
    fork_child);

programs!(healthy in "healthy" of HEALTHY, every_healthy_program_is_tested:
    idle, busy, oversubscribed, long_critical, deep_tasks, depend_pipeline, loops, nested_busy, detach_fulfilled, io,
    pthread_pools, held_across, task_groups, tail_tasks, timer, threads_come_and_go, turns);

#[test]
fn python_forks_and_hangs() -> Result<()> {
    let _alone = alone();
    for library in ["faiss", "sklearn"] {
        let launch = match Launch::python("fork_child", Env::Stock) {
            Ok(launch) => launch,
            Err(skip) => {
                skip.show();
                return Ok(());
            }
        };
        let running = launch.argument(library).argument("truth").start_hanging()?;
        let faults = running.truth.contradictions();
        ensure!(faults.is_empty(), "{faults:#?}");
        ensure!(thread_states(running.pid)?.len() == 1, "the child has started threads");
        check_waits(&running)?;
    }
    Ok(())
}

#[test]
fn python_uses_two_pools() -> Result<()> {
    let _alone = alone();
    let launch = match Launch::python("two_pools", Env::Stock) {
        Ok(launch) => launch,
        Err(skip) => {
            skip.show();
            return Ok(());
        }
    };
    let mut running = launch.start_healthy()?;
    running.await_round(5)?;
    let mapped = mapped_files(running.pid)?;
    let runtimes = mapped.iter().filter(|file| file.to_string_lossy().contains("libgomp")).count();
    ensure!(runtimes == 2, "{runtimes} libgomps are mapped");
    // Three teams of three, and those of the matrix library.
    ensure!(thread_states(running.pid)?.len() >= 9, "the teams are missing");
    Ok(())
}

#[test]
fn every_program_has_its_source() -> Result<()> {
    let home = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    for (directory, cases) in [("hangs", HANGS), ("healthy", HEALTHY)] {
        let mut sources = BTreeSet::new();
        for entry in fs::read_dir(home.join(directory))? {
            let path = entry?.path();
            let stem = path.file_stem().context("a source without a name")?;
            sources.insert(format!("{directory}/{}", stem.to_string_lossy()));
        }
        let known: BTreeSet<String> = cases.iter().map(|case| case.program.to_owned()).collect();
        ensure!(sources == known, "{sources:?} are there, {known:?} are run");
        let different: BTreeSet<&Case> = cases.iter().collect();
        ensure!(different.len() == cases.len(), "a case of {directory} is there twice");
    }
    Ok(())
}
