//! Every program, as every toolchain here builds it, on every runtime here. It becomes ready, and what it says is sound
//! and complete. It is in the state that it reports, and finishes well when released.

use std::collections::BTreeSet;
use std::fs;
use std::io::Read as _;

use anyhow::{Context as _, Result, ensure};
use test_programs::{
    Env, Kind, LOCALS_PROGRAMS, Launch, Opt, Running, Runtime, STACK_PROGRAMS, STATE_PROGRAMS, STEADY_PROGRAMS, Skip,
    TaskState, Toolchain, Truth, Wait, build, combinations, crash_core, mapped_files, thread_states,
};

#[path = "common/truth.rs"]
mod truth;

use truth::check_truth;

/// Runs `check` on one program in every combination; the stock environment only with optimisation, to save time.
fn everywhere(program: &str, check: impl Fn(&Running) -> Result<()>) -> Result<()> {
    let combinations = combinations();
    ensure!(!combinations.is_empty(), "no toolchain and no runtime here: nothing was tested");
    for (toolchain, runtime) in combinations {
        for (opt, env) in [(Opt::O0, Env::Settled), (Opt::O2, Env::Settled), (Opt::O2, Env::Stock)] {
            let one = || -> Result<()> {
                let executable = build(program, toolchain, opt, &[])?;
                let running = Running::start(&executable, runtime, env)?;
                check_any(&running)?;
                check(&running)?;
                let steps = running.truth.steps();
                ensure!(running.release()?.progress == steps, "not all of {steps} threads and tasks went on");
                Ok(())
            };
            one().with_context(|| format!("{program} by {toolchain:?} {opt:?} on {runtime:?}, {env:?}"))?;
        }
    }
    Ok(())
}

/// What holds for every program that is ready.
fn check_any(running: &Running) -> Result<()> {
    let truth = &running.truth;
    check_truth(running)?;
    for thread in &truth.threads {
        let calls = expected_system_calls(thread.wait);
        // The kernel says "running" for a thread that is not in a system call.
        let text = fs::read_to_string(format!("/proc/{}/task/{}/syscall", running.pid, thread.lwp))?;
        let call = text.split_whitespace().next().unwrap_or_default();
        let spins = running.runtime.is_kmp() && may_spin(thread.wait);
        // A sleeper of the program `progress` is awake now and then.
        ensure!(spins || thread.wait == Wait::Sleep || calls.contains(&call), "{thread:?} is in system call {call}");
    }

    if running.executable.program != "not_openmp" {
        let library = running.runtime.library().map_err(|skip| anyhow::anyhow!("{skip}"))?;
        ensure!(mapped_files(running.pid)?.contains(&library), "{} is not mapped", library.display());
    }
    Ok(())
}

/// Numbers of the system calls a thread can sleep in, by architecture (asm/unistd_64.h, asm-generic/unistd.h).
fn expected_system_calls(wait: Wait) -> &'static [&'static str] {
    const READ: &[&str] = if cfg!(target_arch = "x86_64") { &["0"] } else { &["63"] };
    const NANOSLEEP: &[&str] = if cfg!(target_arch = "x86_64") { &["35", "230"] } else { &["101", "115"] };
    const FUTEX: &[&str] = if cfg!(target_arch = "x86_64") { &["202"] } else { &["98"] };
    match wait {
        Wait::Pipe => READ,
        Wait::Sleep => NANOSLEEP,
        _ => FUTEX,
    }
}

/// What runtimes of the LLVM family wait for without ever going to sleep.
fn may_spin(wait: Wait) -> bool {
    matches!(wait, Wait::Lock | Wait::NestLock | Wait::Critical | Wait::Taskwait | Wait::Taskgroup)
}

fn count(truth: &Truth, wait: Wait) -> usize {
    truth.threads.iter().filter(|thread| thread.wait == wait).count()
}

#[test]
fn nested() -> Result<()> {
    everywhere("nested", |running| {
        let truth = &running.truth;
        ensure!(count(truth, Wait::Barrier) == 3 && count(truth, Wait::Pipe) == 3);
        for api in truth.threads.iter().filter_map(|thread| thread.api.as_ref()) {
            let sizes: Vec<i32> = api.levels.iter().map(|level| level.team_size).collect();
            ensure!(sizes == [1, 3, 2] && api.active_level == 2, "team sizes {sizes:?}");
        }
        Ok(())
    })
}

#[test]
fn lock() -> Result<()> {
    everywhere("lock", |running| {
        let truth = &running.truth;
        ensure!(truth.locks.len() == 3);
        for wait in [Wait::Lock, Wait::NestLock, Wait::Critical] {
            ensure!(count(truth, wait) == 1, "{wait:?}");
        }
        for lock in &truth.locks {
            let owner = truth.thread(lock.owner).context("an owner is missing")?;
            ensure!(owner.wait == Wait::Pipe, "the owner of {} waits for {:?}", lock.name, owner.wait);
            ensure!(lock.depth == if lock.name == "stairs" { 2 } else { 1 });
        }
        Ok(())
    })
}

#[test]
fn tasks() -> Result<()> {
    everywhere("tasks", |running| {
        let truth = &running.truth;
        let kind = |kind: Kind| {
            truth.threads.iter().filter(|thread| thread.task.as_ref().is_some_and(|task| task.kind == kind)).count()
        };
        ensure!(kind(Kind::Explicit) == 3 && kind(Kind::Implicit) == 2);
        ensure!(count(truth, Wait::Taskwait) == 1 && count(truth, Wait::Taskgroup) == 1);
        let dependent = truth.tasks.iter().filter(|task| task.state == TaskState::Dependent).count();
        ensure!(truth.tasks.len() == 5 && dependent == 1);
        Ok(())
    })
}

#[test]
fn barrier_missing() -> Result<()> {
    everywhere("barrier_missing", |running| {
        ensure!(count(&running.truth, Wait::Barrier) == 3);
        let missing = running.truth.with_role("coordinator").next().and_then(|thread| thread.api.as_ref());
        ensure!(missing.is_some_and(|api| api.thread_num == 2 && api.num_threads == 4));
        Ok(())
    })
}

#[test]
fn idle() -> Result<()> {
    everywhere("idle", |running| {
        ensure!(count(&running.truth, Wait::Idle) == 3);
        let initial = running.truth.thread(running.pid).and_then(|thread| thread.api.as_ref());
        ensure!(initial.is_some_and(|api| api.level == 0 && api.num_threads == 1));
        Ok(())
    })
}

#[test]
fn user_pthread() -> Result<()> {
    everywhere("user_pthread", |running| {
        let sizes: Vec<i32> = running.truth.threads.iter().flat_map(|t| &t.api).map(|api| api.num_threads).collect();
        ensure!(sizes.iter().filter(|&&size| size == 3).count() == 3, "{sizes:?}");
        ensure!(sizes.iter().filter(|&&size| size == 2).count() == 2, "{sizes:?}");
        Ok(())
    })
}

#[test]
fn serialized() -> Result<()> {
    everywhere("serialized", |running| {
        let mut levels: Vec<(i32, i32)> =
            running.truth.threads.iter().flat_map(|t| &t.api).map(|api| (api.level, api.active_level)).collect();
        levels.sort_unstable();
        ensure!(levels == [(3, 1), (4, 1)], "{levels:?}");
        Ok(())
    })
}

#[test]
fn icvs() -> Result<()> {
    everywhere("icvs", |running| {
        let api = |role| running.truth.with_role(role).next().and_then(|t| t.api.as_ref()).context(role);
        let (guided, dynamic, nested) = (api("coordinator")?, api("dynamic holder")?, api("nested holder")?);
        ensure!((guided.max_threads, guided.schedule_kind, guided.schedule_chunk) == (7, 3, 7), "{guided:?}");
        ensure!((dynamic.max_threads, dynamic.schedule_kind, dynamic.schedule_chunk) == (11, 2, 5), "{dynamic:?}");
        ensure!((dynamic.dynamic, dynamic.max_active_levels) == (1, 4), "{dynamic:?}");
        ensure!((nested.max_threads, nested.schedule_kind, nested.schedule_chunk) == (13, 1, 3), "{nested:?}");
        ensure!((nested.level, guided.dynamic, nested.dynamic) == (2, 0, 0), "{nested:?}");
        Ok(())
    })
}

#[test]
fn not_openmp() -> Result<()> {
    everywhere("not_openmp", |running| {
        ensure!(running.truth.program.openmp == 0 && running.truth.threads.len() == 3);
        ensure!(running.truth.threads.iter().all(|thread| thread.api.is_none() && thread.task.is_none()));
        Ok(())
    })
}

#[test]
fn progress() -> Result<()> {
    everywhere("progress", |running| {
        ensure!(count(&running.truth, Wait::Sleep) == 3);
        Ok(())
    })?;
    for (toolchain, runtime) in combinations() {
        let mut running = Running::start(&build("progress", toolchain, Opt::O2, &[])?, runtime, Env::Settled)?;
        let before = running.counts()?;
        let after = running.await_progress(&before)?;
        ensure!(after[0] == 0 && running.counts()? >= after, "{before:?} {after:?}");
        ensure!(running.release()?.progress == 4);
    }
    Ok(())
}

#[test]
fn many() -> Result<()> {
    for (toolchain, runtime) in combinations() {
        let executable = build("many", toolchain, Opt::O2, &[])?;
        let running = Launch::new(&executable, runtime, Env::Settled).argument("64").start()?;
        check_any(&running)?;
        ensure!(count(&running.truth, Wait::Barrier) == 63);
        ensure!(running.release()?.progress == 64);
        // Elsewhere who waits for a lock never sleeps.
        if runtime.is_kmp() {
            continue;
        }
        let deadlock = Launch::new(&executable, runtime, Env::Settled).argument("4").argument("lock").start()?;
        check_any(&deadlock)?;
        ensure!(count(&deadlock.truth, Wait::Barrier) == 3 && count(&deadlock.truth, Wait::Lock) == 1);
    }
    Ok(())
}

#[test]
fn vast() -> Result<()> {
    for (toolchain, runtime) in combinations() {
        let executable = build("vast", toolchain, Opt::O2, &["-ldl"])?;
        let arguments = ["8", "1", "/nowhere", "0"];
        let launch = Launch::new(&executable, runtime, Env::Settled);
        let running = arguments.iter().fold(launch, |launch, argument| launch.argument(argument)).start()?;
        check_any(&running)?;
        ensure!(count(&running.truth, Wait::Barrier) == 7);
        let status = fs::read_to_string(format!("/proc/{}/status", running.pid))?;
        let size = |key: &str| -> Result<u64> {
            let line = status.lines().find_map(|line| line.strip_prefix(key)).context("no such line")?;
            Ok(line.split_whitespace().next().context("no size")?.parse()?)
        };
        ensure!(size("VmSize:")? > 1 << 20 && size("RssAnon:")? < 64 << 10, "{status}");
        ensure!(running.release()?.progress == 8);
    }
    Ok(())
}

#[test]
fn regions() -> Result<()> {
    for (toolchain, runtime) in combinations() {
        let executable = build("regions", toolchain, Opt::O2, &[])?;
        let launch = Launch::new(&executable, runtime, Env::Settled).argument("100").argument("2");
        let mut process = launch.spawn()?;
        let mut said = String::new();
        process.stdout.read_to_string(&mut said)?;
        ensure!(process.child.wait()?.success());
        let took = said.strip_prefix("regions took ").and_then(|rest| rest.trim_end().strip_suffix(" ns"));
        ensure!(took.and_then(|took| took.parse::<u64>().ok()).is_some_and(|took| took > 0), "{said}");
    }
    Ok(())
}

#[test]
fn tasks_many() -> Result<()> {
    for (toolchain, runtime) in combinations() {
        for which in ["queued", "dependent"] {
            let executable = build("tasks_many", toolchain, Opt::O2, &[])?;
            let launch = Launch::new(&executable, runtime, Env::Settled).variable("KMP_ENABLE_TASK_THROTTLING", "0");
            let running = launch.argument(which).argument("1000").start()?;
            check_any(&running)?;
            ensure!(count(&running.truth, Wait::Pipe) == 2, "{which} by {toolchain:?} on {runtime:?}");
            ensure!(running.release()?.progress == 2, "{which} by {toolchain:?} on {runtime:?}");
        }
    }
    Ok(())
}

#[test]
fn hang() -> Result<()> {
    for (toolchain, runtime) in combinations() {
        for (opt, env) in [(Opt::O0, Env::Settled), (Opt::O2, Env::Stock)] {
            let running = Launch::new(&build("hang", toolchain, opt, &[])?, runtime, env).start_hang()?;
            let threads = thread_states(running.pid)?;
            ensure!(threads.len() == 4, "{toolchain:?} on {runtime:?}: {threads:?}");
            let asleep = threads.values().filter(|thread| thread.state == 'S').count();
            ensure!(asleep == 4 || runtime.is_kmp(), "{toolchain:?} on {runtime:?}: {threads:?}");
        }
    }
    Ok(())
}

#[test]
fn crash_leaves_a_core() -> Result<()> {
    for (toolchain, runtime) in combinations() {
        let directory = tempfile::tempdir()?;
        let executable = build("crash", toolchain, Opt::O2, &[])?;
        match crash_core(&executable, runtime, Env::Settled, directory.path())? {
            Ok(crashed) => {
                let faults = crashed.truth.contradictions();
                ensure!(faults.is_empty() && crashed.truth.threads.len() == 4, "{faults:#?}");
                check_core(&crashed.core)?;
            }
            Err(skip) => skip.show(),
        }
    }
    Ok(())
}

#[test]
fn gcore_leaves_the_program_as_it_was() -> Result<()> {
    let directory = tempfile::tempdir()?;
    for (toolchain, runtime) in combinations() {
        let running = Running::start(&build("nested", toolchain, Opt::O2, &[])?, runtime, Env::Settled)?;
        match running.gcore(directory.path())? {
            Ok(core) => check_core(&core)?,
            Err(skip) => skip.show(),
        }
        ensure!(running.release()?.progress == 6);
    }
    Ok(())
}

fn check_core(core: &std::path::Path) -> Result<()> {
    let bytes = fs::read(core)?;
    // ELF identification and e_type ET_CORE (4), in this machine's byte order.
    ensure!(bytes.starts_with(b"\x7fELF"), "{} is no ELF file", core.display());
    ensure!(bytes.get(16..18) == Some(&4u16.to_ne_bytes()), "{} is no core", core.display());
    Ok(())
}

#[test]
fn stripped_and_static_programs_run() -> Result<()> {
    if let Err(skip) = Toolchain::Gcc.check() {
        skip.show();
        return Ok(());
    }
    for program in ["nested", "lock"] {
        for flags in [&["-s"][..], &["-no-pie"], &["-static"], &["-static", "-s"]] {
            let executable = match build(program, Toolchain::Gcc, Opt::O2, flags) {
                Ok(executable) => executable,
                Err(error) if flags.contains(&"-static") && format!("{error:#}").contains("cannot find -l") => {
                    Skip::because(format!("no static libraries here: {error:#}")).show();
                    continue;
                }
                Err(error) => return Err(error),
            };
            let running = Running::start(&executable, Runtime::Libgomp, Env::Settled)?;
            let faults = running.truth.contradictions();
            ensure!(faults.is_empty(), "{program} {flags:?}: {faults:#?}");
            let shared = mapped_files(running.pid)?.iter().any(|file| file.to_string_lossy().contains("libgomp"));
            ensure!(shared != flags.contains(&"-static"), "{program} {flags:?}: libgomp mapped: {shared}");
            ensure!(running.release()?.progress == 6);
        }
    }
    Ok(())
}

#[test]
fn a_dropped_program_is_gone() -> Result<()> {
    let Some((toolchain, runtime)) = combinations().into_iter().next() else {
        anyhow::bail!("no toolchain and no runtime here: nothing was tested");
    };
    let running = Running::start(&build("nested", toolchain, Opt::O2, &[])?, runtime, Env::Settled)?;
    let pid = running.pid;
    ensure!(thread_states(pid).is_ok());
    drop(running);
    // Reaped: not even a zombie is left, and this process has not started another that could have taken the number.
    ensure!(!fs::exists(format!("/proc/{pid}"))?, "process {pid} is still there");
    Ok(())
}

#[test]
fn a_program_that_fails_is_an_error_with_its_words() -> Result<()> {
    let Some((toolchain, runtime)) = combinations().into_iter().next() else {
        anyhow::bail!("no toolchain and no runtime here: nothing was tested");
    };
    let executable = build("many", toolchain, Opt::O2, &[])?;
    let error = match Running::start(&executable, runtime, Env::Settled) {
        Ok(_) => anyhow::bail!("many without its argument became ready"),
        Err(error) => format!("{error:#}"),
    };
    ensure!(error.contains("usage: many N"), "{error}");
    Ok(())
}

#[test]
fn every_program_has_its_source() -> Result<()> {
    let directory = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("programs");
    let mut sources = BTreeSet::new();
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| ["c", "cc", "f90"].iter().any(|known| extension == *known)) {
            sources.extend(path.file_stem().map(|stem| stem.to_string_lossy().into_owned()));
        }
    }
    let known = STEADY_PROGRAMS
        .into_iter()
        .chain(STACK_PROGRAMS)
        .chain(LOCALS_PROGRAMS)
        .chain(STATE_PROGRAMS)
        .chain([
            "begin_end",
            "constructs",
            "laps",
            "two_teams",
            "lock_names",
            "lock_objects",
            "lock_objects_fortran",
            "stop_points",
            "begins_late",
            "following",
            "hang",
            "crash",
            "many",
            "vast",
            "regions",
            "tasks_many",
            "churn",
            "counted",
            "changing",
            "confined",
            "phases",
            "loads",
            "two_runtimes",
            "nested_runtimes",
            "stuck",
            "unsupplied",
            "folded",
            "vforked",
            "sleepers",
            "outside",
            "leaving",
            "allow",
            "truth_calls",
            "kmp_tasks",
            "task_waits",
            "league",
            "league_tail",
            "doacross",
            "kmp_fields",
            "kmp_loops",
            "ompt_tool",
            "recorded",
            "tool_witness",
            "tool_cpp",
            "tool_choice",
            "tool_hostile",
            "tool_hostile_module",
            "tool_throws",
            "task_kernels",
            "old_locks",
            "races",
            "steps",
            "forked",
            "device_simulator",
            "offloaded",
            "offload_hang",
            "gpu",
            "device_plugin",
            "tasks_left",
            "opencl_device",
            "overheads",
            "empty_tool",
            "entry_points",
            "exec_again",
            "tr2_recorded",
            "tr2_runtime",
            "two_ompt",
            "ordered_many",
            "truth_stack",
            "stacks_shared_library",
            "stacks_jit_object",
            "stacks_taskloop",
        ])
        .map(str::to_owned);
    ensure!(sources == known.collect(), "{sources:?}");
    Ok(())
}
