//! What makes threads wait without being wrong, or without a proof that it is wrong. That is more threads than processors,
//! several runtimes in one process, nested regions that get one thread, or iterations that all wait for another one. Each remark
//! has its cause, and what to do if it is not meant.

use std::collections::BTreeSet;

use ompd_runtime::icvs::{ACTIVE_LEVELS, MAX_ACTIVE_LEVELS};
use ompd_runtime::model::{Fact, Loop, Role, RuntimeSnapshot, Source, Team, Thread, Wait, WaitKind};
use ompd_runtime::process;
use ompd_stack::End;

use crate::crowding::{listed, spins};
use crate::words::runtime_names;
use crate::words::{self, count};
use ompd_inspection::Inspection;

/// One remark. Text of the target is escaped.
#[derive(Debug)]
pub struct Remark {
    /// `oversubscribed`, `several_runtimes`, `levels_exhausted` or `iterations_wait`.
    pub kind: &'static str,
    /// What is so, and why.
    pub text: String,
    /// How to avoid it.
    pub fix: String,
}

/// All that is to be remarked on a process.
pub fn remarks(inspection: &Inspection) -> Vec<Remark> {
    let runtimes = &inspection.runtimes;
    let levels = runtimes.iter().enumerate().filter_map(|(index, snapshot)| levels(inspection, index, snapshot));
    let iterations = runtimes.iter().enumerate().flat_map(|(index, snapshot)| {
        snapshot.loops.iter().filter_map(move |of| iterations(inspection, index, snapshot, of))
    });
    let process = [oversubscribed(inspection), several_runtimes(inspection)];
    process.into_iter().flatten().chain(levels).chain(iterations).collect()
}

/// A doacross loop of which some iterations wait for others to be posted, and no member of the team is left that computes. In an
/// instant between two iterations that can be so in a loop that goes on: which iteration each waits for is recorded nowhere.
fn iterations(inspection: &Inspection, index: usize, snapshot: &RuntimeSnapshot, of: &Loop) -> Option<Remark> {
    let doacross = of.doacross.value()?.as_ref()?;
    let members: Vec<&Thread> = snapshot.threads.iter().filter(|t| t.team.flat() == Some(of.team)).collect();
    let waits: Option<Vec<&Wait>> = members.iter().map(|t| t.wait.value()?.as_ref()).collect();
    let size = snapshot.team(of.team)?.size.get()? as usize;
    let waits = waits.filter(|waits| waits.len() == size)?;
    let numbers = members.iter().zip(&waits).filter(|(_, wait)| wait.kind == WaitKind::Sink);
    let numbers: Vec<u32> = numbers.filter_map(|(thread, _)| thread.thread_num.get()).collect();
    let verb = if numbers.len() == 1 { "waits" } else { "wait" };
    let missing = match doacross.missing.value() {
        _ if numbers.is_empty() => return None,
        Some(None) => return None,
        Some(Some(first)) => {
            format!("the first that has not reached its depend(source) is {}", words::iteration(first))
        }
        None => match doacross.furthest.value() {
            Some(Some(last)) => format!("the last that has reached its depend(source) is {}", words::iteration(last)),
            Some(None) => "none has reached its depend(source)".to_owned(),
            None => "which have reached their depend(source) is not known".to_owned(),
        },
    };
    let text = format!(
        "every member of team {}{} waits, and {} {} {verb} in ordered depend(sink) for other iterations of a doacross loop (counted \
         from 0, {missing})",
        of.team.0,
        of_runtime(inspection, index),
        if numbers.len() == 1 { "thread" } else { "threads" },
        words::ranges(&numbers),
    );
    let fix = "If it is so at the next look as well (--samples 2), that iteration has left its depend(source) out, or waits for a \
                later one: `loops` has what was posted.";
    Some(Remark { kind: "iterations_wait", text, fix: fix.to_owned() })
}

/// ` of GNU libgomp`, if several runtimes have teams.
fn of_runtime(inspection: &Inspection, index: usize) -> String {
    if inspection.runtimes.iter().filter(|r| !r.teams.is_empty()).count() < 2 {
        return String::new();
    }
    format!(" of {}", runtime_names(&inspection.runtimes).get(index).map_or("?", |(_, name)| name))
}

/// Threads of OpenMP that were not asleep at the stop: they ran, or would have if there had been a processor.
fn awake(inspection: &Inspection) -> BTreeSet<i32> {
    let known: BTreeSet<i32> =
        inspection.runtimes.iter().flat_map(|r| r.threads.iter().filter_map(|t| t.lwp)).collect();
    let runs = |call: Option<&str>| call.is_none_or(|call| call == "sched_yield");
    let threads = inspection.threads.iter().filter(|t| runs(t.blocked_in.as_deref()));
    // Of a thread that could not be stopped nothing is known.
    let stacks = inspection.stacks.logical.iter();
    let unseen: BTreeSet<i32> = stacks.filter(|s| matches!(s.end, End::NoRegisters(_))).map(|s| s.lwp).collect();
    threads.map(|t| t.lwp).filter(|lwp| known.contains(lwp) && !unseen.contains(lwp)).collect()
}

/// More threads that want to run than processors they may run on. A core file does not tell how many those are.
fn oversubscribed(inspection: &Inspection) -> Option<Remark> {
    let cpus = inspection.process.cpus.as_ref()?;
    let awake = awake(inspection);
    let masks: Option<Vec<&[u32]>> = awake.iter().map(|lwp| cpus.of_thread(*lwp)).collect();
    // A thread that is younger than the list may run anywhere.
    let shared = masks.map(|masks| masks.into_iter().flatten().copied().collect::<BTreeSet<u32>>());
    let allowed = shared.as_ref().map_or(cpus.allowed as usize, BTreeSet::len);
    let quota = cpus.quota.filter(|quota| *quota < allowed as f64);
    if awake.len() <= allowed && quota.is_none_or(|quota| awake.len() as f64 <= quota) {
        return None;
    }
    let on = shared.map_or_else(|| count(allowed, "cpu"), listed);
    let mut text = format!("{} of OpenMP want to run at once, and may run on {on} only", count(awake.len(), "thread"));
    if allowed < cpus.allowed as usize {
        text.push_str(&format!(", of {} that the process may use", cpus.allowed));
    }
    if let Some(quota) = quota {
        text.push_str(&format!("; its control group may use the time of {quota:.1}"));
    }
    text.push_str(": they take turns, and who waits for another one waits for its turn as well");
    let mut fix = format!(
        "Use fewer threads (OMP_NUM_THREADS={}), or allow the process more cpus (taskset, cpuset, OMP_PLACES, the limits of its \
         container).",
        quota.map_or(allowed, |quota| (quota as usize).max(1)).max(1)
    );
    if let Some(spins) = spins(&inspection.process) {
        text.push_str(&format!("; those that wait are to spin ({spins})"));
        fix.push_str(" Do not let waiting threads spin.");
    }
    Some(Remark { kind: "oversubscribed", text, fix })
}

/// Threads of a runtime, if it has made any beside the one it found.
fn own_threads(snapshot: &RuntimeSnapshot) -> Option<usize> {
    let threads = snapshot.threads.iter().filter(|t| t.lwp.is_some());
    let made = |t: &&Thread| matches!(t.role.get(), Some(Role::Worker | Role::IdleWorker));
    threads.clone().any(|t| made(&t)).then(|| threads.count())
}

/// Several runtimes at work, each with threads of its own.
fn several_runtimes(inspection: &Inspection) -> Option<Remark> {
    let names = runtime_names(&inspection.runtimes);
    let at_work: Vec<String> = inspection
        .runtimes
        .iter()
        .zip(&names)
        .filter_map(|(snapshot, (_, name))| Some(format!("{name} has {}", count(own_threads(snapshot)?, "thread"))))
        .collect();
    if at_work.len() < 2 {
        return None;
    }
    let mut text = format!(
        "{} OpenMP runtimes are at work in this process, each with its own threads: {}",
        at_work.len(),
        at_work.join(", ")
    );
    let nested = process::nested(&inspection.runtimes);
    if nested.is_empty() {
        let fix =
            "If one was meant, build and load everything for the same runtime; `doctor` says what brought each in.";
        return Some(Remark { kind: "several_runtimes", text, fix: fix.to_owned() });
    }
    let pairs: BTreeSet<Vec<usize>> =
        nested.iter().map(|n| n.places.iter().map(|place| place.runtime).collect()).collect();
    const SHOWN: usize = 4;
    let pairs: Vec<String> = pairs
        .iter()
        .take(SHOWN)
        .map(|of| {
            of.iter().filter_map(|runtime| Some(names.get(*runtime)?.1.clone())).collect::<Vec<_>>().join(" and ")
        })
        .collect();
    let verb = if nested.len() == 1 { "is" } else { "are" };
    text.push_str(&format!(
        "; {} {verb} in regions of two at once ({}), and every such region brings threads of its own",
        count(nested.len(), "thread"),
        pairs.join("; ")
    ));
    let fix = "Give the inner regions one thread (OMP_NUM_THREADS=1 or the library's own limit, such as threadpoolctl), or build \
                and load everything for the same runtime; `doctor` says what brought each in.";
    Some(Remark { kind: "several_runtimes", text, fix: fix.to_owned() })
}

/// Regions inside regions that could not get more than one thread.
fn levels(inspection: &Inspection, index: usize, snapshot: &RuntimeSnapshot) -> Option<Remark> {
    let mut found: Vec<(usize, &Team, u64, u64, String)> = Vec::new();
    for (id, team) in snapshot.teams.iter().enumerate() {
        if team.size.get() != Some(1) || team.level.get().is_none_or(|level| level < 2) {
            continue;
        }
        let mut members = snapshot.threads.iter().filter(|t| t.team.flat().is_some_and(|of| of.0 == id));
        let Some(icvs) = members.next().map(|thread| &thread.icvs) else { continue };
        let (Some(active), Some(most)) = (icvs.count(&ACTIVE_LEVELS), icvs.count(&MAX_ACTIVE_LEVELS)) else { continue };
        if active >= most && most > 0 {
            let source = match icvs.sources.get(&MAX_ACTIVE_LEVELS) {
                Fact::Known { value: Source::Environment { variable, .. }, .. } => format!(" (by {variable})"),
                Fact::Known { value: Source::Default, .. } => " (its default)".to_owned(),
                Fact::Known { value: Source::Program, .. } => " (the program has set it)".to_owned(),
                Fact::Unknown { .. } => String::new(),
            };
            found.push((id, team, active, most, source));
        }
    }
    let (id, team, active, most, source) = found.first()?;
    let place = words::region(team).map_or_else(String::new, |region| format!(" ({region})"));
    let of = of_runtime(inspection, index);
    let more = match found.len() - 1 {
        0 => String::new(),
        n => format!(", and so have {}", count(n, "more team")),
    };
    let verb = if *active == 1 { "is" } else { "are" };
    let text = format!(
        "team {id}{of}{place} has 1 thread{more}, whatever number was asked for: {} of parallel regions {verb} active, and \
         max-active-levels-var is {most}{source}",
        count(*active as usize, "level"),
    );
    let fix = format!(
        "If it is to have more, allow more levels (OMP_MAX_ACTIVE_LEVELS={}, omp_set_max_active_levels); code in it has to go by \
         omp_get_num_threads.",
        most + 1
    );
    Some(Remark { kind: "levels_exhausted", text, fix })
}
