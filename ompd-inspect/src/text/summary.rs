//! The first page: suspects first, crowds folded, then the teams.

use ompd_runtime::model::*;

use super::{ALARM, FAINT, Page, TIE, runtime_heading, teams, words};
use crate::session::Inspection;

pub fn render(page: &mut Page, inspection: &Inspection) {
    for snapshot in &inspection.runtimes {
        runtime_heading(page, snapshot);
        if snapshot.threads.is_empty() {
            page.line(words::no_threads(snapshot));
            continue;
        }
        suspects(page, snapshot);
        if !snapshot.teams.is_empty() {
            page.blank();
            teams::render(page, snapshot);
        }
        rest(page, snapshot);
    }
    let foreign = inspection.threads.iter().filter(|t| t.foreign).count();
    if foreign > 0 && !inspection.runtimes.is_empty() {
        page.blank();
        let what = if inspection.runtimes.iter().all(|r| r.issues.is_empty()) {
            "not known to any OpenMP runtime"
        } else {
            "not recognised as OpenMP's"
        };
        page.line(format_args!("{} {what}", words::count(foreign, "thread")));
    }
}

/// Teams some members of which wait at the barrier while others are elsewhere. A suspicion, no verdict: the others may
/// simply be slower.
fn suspects(page: &mut Page, snapshot: &RuntimeSnapshot) {
    for (index, team) in snapshot.teams.iter().enumerate() {
        let waiting = snapshot.at_barrier(TeamId(index));
        let Some(barrier) = team.barrier.value() else { continue };
        // Where the runtime counts no more arrivals than were seen, all others are elsewhere; where it keeps no count, a
        // member whose wait is not known may be there as well.
        let all_seen = barrier.arrived == Some(waiting.len() as u32);
        let (elsewhere, unclear): (Vec<u32>, Vec<u32>) = (0u32..)
            .take(team.members.len())
            .filter(|n| !waiting.contains(n))
            .partition(|n| all_seen || is_known(snapshot, team, *n));
        if waiting.is_empty() || elsewhere.is_empty() {
            continue;
        }
        let mut who = format!(
            "team {index} (level {}): {} of {} threads are at its barrier, missing: thread{TIE}{}",
            words::or_unknown(&team.level),
            barrier.arrived.map_or(waiting.len(), |n| n as usize),
            barrier.size,
            words::ranges(&elsewhere),
        );
        if !unclear.is_empty() {
            who.push_str(&format!(" (not known: thread{TIE}{})", words::ranges(&unclear)));
        }
        page.blank();
        page.wrapped("SUSPECT  ", ALARM, &who, 9);
        const SHOWN: usize = 4;
        for number in elsewhere.iter().take(SHOWN) {
            let text = absent(page, snapshot, team, *number);
            page.wrapped("         ", FAINT, &text, 11);
        }
        if elsewhere.len() > SHOWN {
            page.line(format_args!("         … and {} more", elsewhere.len() - SHOWN));
        }
    }
}

/// True if it is known what the member waits for, or that it does not wait in the runtime.
fn is_known(snapshot: &RuntimeSnapshot, team: &Team, number: u32) -> bool {
    let lwp = team.members.get(number as usize).copied().flatten();
    lwp.and_then(|lwp| snapshot.thread_by_lwp(lwp)).is_some_and(|t| t.wait.value().is_some())
}

/// What a member that is not at the barrier does instead.
fn absent(page: &Page, snapshot: &RuntimeSnapshot, team: &Team, number: u32) -> String {
    let Some(lwp) = team.members.get(number as usize).copied().flatten() else {
        return format!("thread {number}: was not found among the threads of the process");
    };
    match snapshot.thread_by_lwp(lwp) {
        Some(thread) => {
            let inner = match thread.team.flat().and_then(|id| snapshot.team(id)) {
                Some(inner) if inner.descriptor != team.descriptor => ", in an inner team,",
                _ => "",
            };
            format!("thread {number} (LWP {lwp}){inner} {}", predicate(page, thread))
        }
        None => format!("thread {number} (LWP {lwp}): its state could not be read"),
    }
}

fn predicate(page: &Page, thread: &Thread) -> String {
    match &thread.wait {
        Fact::Known { value: Some(wait), .. } => {
            let owner = match wait.kind {
                WaitKind::Mutex | WaitKind::Lock | WaitKind::Critical | WaitKind::Atomic => {
                    " (this runtime does not record who holds it)"
                }
                _ => "",
            };
            format!("{}{owner}", words::waiting(wait))
        }
        Fact::Known { value: None, .. } => format!("is not in the OpenMP runtime: {}", page.doing(thread)),
        Fact::Unknown { why } => format!("may be running or waiting: {why}"),
    }
}

/// Threads in no team, folded.
fn rest(page: &mut Page, snapshot: &RuntimeSnapshot) {
    let idle = snapshot.threads.iter().filter(|t| t.role.get() == Some(Role::IdleWorker)).count();
    let outside = snapshot
        .threads
        .iter()
        .filter(|t| matches!(t.team, Fact::Known { value: None, .. }) && t.role.get() != Some(Role::IdleWorker))
        .count();
    if idle + outside > 0 {
        page.blank();
    }
    if outside > 0 {
        page.line(format_args!("{} outside all parallel regions", words::count(outside, "thread")));
    }
    if idle > 0 {
        page.line(format_args!("{} (normal: they wait for the next region)", words::count(idle, "idle pool thread")));
    }
}
