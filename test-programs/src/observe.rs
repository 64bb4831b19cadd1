//! What the kernel says about a process from outside.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

/// Longer than any thread of a sound program needs to go to sleep, on a machine as busy as can be.
const PATIENCE: Duration = Duration::from_secs(120);

/// A thread is said to spin once its CPU time has grown in so many looks. Its time is counted in clock ticks of 10 ms, and a
/// sound program computes for much less than that. Looks, not ticks: a processor that its host takes away for a while adds that
/// while to the time of the thread that ran there.
const SPIN_LOOKS: u32 = 3;

/// Between looks, threads that spin are left alone for so long. Looks without a pause, or with a yield only, take the time from
/// threads that themselves yield in a loop. Those got milliseconds out of seconds. Nothing depends on how long it is.
const BETWEEN_LOOKS: Duration = Duration::from_millis(2);

/// One thread at one moment, from `/proc/PID/task/LWP`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThreadState {
    /// The state letter of `stat`: `S` asleep, `R` running, `t` stopped by a tracer, ...
    pub state: char,
    /// How often it gave up the processor of its own accord.
    pub voluntary_switches: u64,
    /// CPU time used, in clock ticks.
    pub ticks: u64,
}

/// The threads of a process by LWP. They are read one after the other, not at one moment; those that end meanwhile are
/// left out.
///
/// # Errors
/// When the process is gone.
pub fn thread_states(pid: i32) -> Result<BTreeMap<i32, ThreadState>> {
    let mut states = BTreeMap::new();
    for entry in fs::read_dir(format!("/proc/{pid}/task")).with_context(|| format!("no process {pid}"))? {
        let name = entry?.file_name();
        let lwp = name.to_str().and_then(|name| name.parse().ok()).context("a thread without a number")?;
        match thread_state(pid, lwp) {
            Ok(state) => {
                states.insert(lwp, state);
            }
            Err(_) if !entry_exists(pid, lwp) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(states)
}

fn entry_exists(pid: i32, lwp: i32) -> bool {
    fs::exists(format!("/proc/{pid}/task/{lwp}")).unwrap_or(true)
}

fn thread_state(pid: i32, lwp: i32) -> Result<ThreadState> {
    let gone = || format!("no thread {lwp} in process {pid}");
    let stat = fs::read_to_string(format!("/proc/{pid}/task/{lwp}/stat")).with_context(gone)?;
    // proc_pid_stat(5): the name, in brackets, may hold anything; the state is the field after it, the third of all.
    let (_, fields) = stat.rsplit_once(") ").context("no name in stat")?;
    let fields: Vec<&str> = fields.split(' ').collect();
    let state = fields.first().and_then(|field| field.chars().next()).context("no state in stat")?;
    let time = |nth: usize| fields.get(nth - 3).and_then(|field| field.parse::<u64>().ok()).context("no time in stat");
    let ticks = time(14)? + time(15)?;

    let status = fs::read_to_string(format!("/proc/{pid}/task/{lwp}/status")).with_context(gone)?;
    let switches = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
    let voluntary_switches = switches.and_then(|count| count.trim().parse().ok()).context("no switches in status")?;
    Ok(ThreadState { state, voluntary_switches, ticks })
}

/// Waits until one thread is asleep.
///
/// # Errors
/// When it is gone, or never sleeps.
pub fn await_asleep(pid: i32, lwp: i32) -> Result<()> {
    let give_up = Instant::now() + PATIENCE;
    while thread_state(pid, lwp)?.state != 'S' {
        if Instant::now() > give_up {
            bail!("thread {lwp} of process {pid} does not go to sleep");
        }
        std::thread::yield_now();
    }
    Ok(())
}

/// Waits until the process has so many threads and all of them are blocked at the same moment. Blocked is asleep from one look to
/// the next, or, if `spins` says that the runtime does so, spinning.
///
/// # Errors
/// When the process ends, or this never comes.
pub fn await_all_blocked(pid: i32, threads: usize, spins: bool) -> Result<()> {
    await_blocked(pid, threads, |_| spins)
}

/// As [`await_all_blocked`], with an answer for each LWP whether it may be spinning.
pub(crate) fn await_blocked(pid: i32, threads: usize, spins: impl Fn(i32) -> bool) -> Result<()> {
    let give_up = Instant::now() + PATIENCE;
    let mut looks_that_ran: BTreeMap<i32, u32> = BTreeMap::new();
    let mut before: BTreeMap<i32, ThreadState> = BTreeMap::new();
    loop {
        let now = thread_states(pid)?;
        if now.len() < threads {
            // Still starting up: the runtime's own initialisation is no spinning.
            looks_that_ran.clear();
        }
        for (lwp, thread) in &now {
            let ran = before.get(lwp).is_some_and(|before| thread.ticks > before.ticks);
            *looks_that_ran.entry(*lwp).or_default() += u32::from(ran);
        }
        let blocked = |lwp: &i32, thread: &ThreadState| {
            // Asleep in both looks and not awake between: the kernel counts each time it goes to sleep.
            let slept = thread.state == 'S'
                && before.get(lwp).is_some_and(|before| {
                    before.state == 'S' && before.voluntary_switches == thread.voluntary_switches
                });
            slept || (spins(*lwp) && looks_that_ran.get(lwp).is_some_and(|looks| *looks >= SPIN_LOOKS))
        };
        if now.len() >= threads && now.iter().all(|(lwp, thread)| blocked(lwp, thread)) {
            return Ok(());
        }
        if Instant::now() > give_up {
            bail!("process {pid} never came to rest: {now:?}");
        }
        before = now;
        std::thread::sleep(BETWEEN_LOOKS);
    }
}

/// The process whose child this one is.
///
/// # Errors
/// When it is gone.
pub(crate) fn parent_of(pid: i32) -> Result<i32> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).with_context(|| format!("no process {pid}"))?;
    let parent = status.lines().find_map(|line| line.strip_prefix("PPid:"));
    parent.and_then(|parent| parent.trim().parse().ok()).context("no parent in status")
}

/// The files a process has mapped.
///
/// # Errors
/// When its memory map cannot be read.
pub fn mapped_files(pid: i32) -> Result<BTreeSet<PathBuf>> {
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).with_context(|| format!("no memory map of {pid}"))?;
    // proc_pid_maps(5): the path is the sixth column, and the only one that can hold a slash.
    let path = |line: &str| line.find(" /").map(|at| PathBuf::from(&line[at + 1..]));
    Ok(maps.lines().filter_map(path).collect())
}
