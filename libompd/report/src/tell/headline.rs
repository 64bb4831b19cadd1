//! The sentence that says what a verdict is, and the threads that are the cause.

use ompd_runtime::model::*;
use ompd_runtime::os::Blocked;
use ompd_runtime::waits_for::{Certainty, Node, Situation, Verdict};

use super::teller::{Teller, wait_of};
use crate::words;

/// Situations of threads that are named as the cause before the rest is counted.
const CAUSES: usize = 3;
/// Situations that are told apart.
const LOOKED_AT: usize = 16;

/// What a verdict is, in one sentence without its full stop.
pub(super) fn headline(teller: &Teller<'_>, verdict: &Verdict) -> String {
    let team = || teller.team_of(verdict).unwrap_or_else(|| "a team".to_owned());
    match verdict.situation {
        Situation::LockCycle => cycle(teller, verdict),
        Situation::SelfDeadlock => {
            let who = threads(verdict);
            let lock = [teller.locks(verdict), teller.mutexes(verdict)].concat();
            format!("{} waits for {}, which it holds itself", teller.whos(&who), one(&lock, "a lock"))
        }
        Situation::OwnerGone => {
            format!("{} is held by a thread that has ended", one(&teller.locks(verdict), "a lock"))
        }
        Situation::BarrierMismatch => match teller.sides(verdict) {
            Some((few, many)) => format!(
                "{} wait{} at another barrier than {}",
                teller.whos(&few),
                if few.len() == 1 { "s" } else { "" },
                teller.whos(&many)
            ),
            None => format!("threads of {} wait for each other at different barriers", team()),
        },
        Situation::OrphanedWorksharing => match teller.shares(verdict) {
            Some((reached, skipped)) => {
                let has = if skipped.len() == 1 { "has" } else { "have" };
                format!(
                    "{} {has} skipped a worksharing construct that {} {} reached",
                    teller.whos(&skipped),
                    teller.numbers(&reached),
                    if reached.len() == 1 { "has" } else { "have" }
                )
            }
            None => format!("a worksharing construct was reached by some threads of {} only", team()),
        },
        Situation::MissingMember | Situation::BarrierNotReached => not_reached(teller, verdict),
        Situation::UnfulfilledEvent => match of_event(teller, verdict) {
            Some(task) => format!("no thread is left to fulfil the event of {task}"),
            None => "no thread is left to fulfil the event of a detached task".to_owned(),
        },
        Situation::DeviceNotDone => match task(teller, verdict, TaskState::OnDevice) {
            Some(task) => format!("{task}, handed to a device, is not over"),
            None => "a task that was handed to a device is not over".to_owned(),
        },
        Situation::DependenceCycle => match task(teller, verdict, TaskState::Blocked) {
            Some(task) => format!("{task} cannot begin: the task that it depends on waits for it"),
            None => "a task waits for a task that depends on it".to_owned(),
        },
        Situation::TaskNeverRun => match task(teller, verdict, TaskState::Ready) {
            Some(task) => format!("{task} is ready, and all threads that could execute it wait"),
            None => "a task is ready, and all threads that could execute it wait".to_owned(),
        },
        Situation::NestedExhausted => {
            "a thread waits in a loop for another thread, and its nested region has none".to_owned()
        }
        Situation::PoolLostInFork => {
            match verdict.core.iter().filter(|node| matches!(node, Node::Missing(..))).count() {
                1 => format!(
                    "{} waits for a thread that has ended, or that fork left behind in the parent process",
                    team()
                ),
                _ => format!("{} waits for threads that fork left behind in the parent process", team()),
            }
        }
        Situation::ClosedWaits | Situation::LockHeld if teller.probably_holds_itself(verdict).is_some() => {
            let (lwp, lock) = teller.probably_holds_itself(verdict).unwrap_or_default();
            let certain = proven(verdict, "it");
            format!("{} waits for {lock}, which it probably holds itself{certain}", teller.whos(&[lwp]))
        }
        Situation::ClosedWaits if teller.probable_cycle(verdict).is_some() => {
            let waits = teller.probable_cycle(verdict).unwrap_or_default();
            let waits = waits.map(|(lwp, lock)| format!("{} waits for {lock}", teller.whos(&[lwp])));
            let certain = proven(verdict, "them");
            format!("{}; each probably holds the lock that the other waits for{certain}", waits.join(", and "))
        }
        Situation::ClosedWaits if teller.probable_holder(verdict).is_some() => {
            let (holder, lock, waiters) = teller.probable_holder(verdict).unwrap_or_default();
            let verb = if waiters.len() == 1 { "waits" } else { "wait" };
            let numbers = teller.numbers(&waiters);
            let who = teller.whos(&[holder]);
            let more = alike(teller, verdict);
            let at_end = matches!(teller.barrier(verdict), Some(Node::RegionEnd(..)));
            let place = if at_end { "the end of the region" } else { "a barrier" };
            let certain = proven(verdict, "it");
            format!("{who} waits at {place} and probably holds {lock}, which {numbers} {verb} for{more}{certain}")
        }
        Situation::ClosedWaits if teller.missing(verdict).is_some() => {
            let (waiting, missing) = teller.missing(verdict).unwrap_or_default();
            let verb = if waiting.len() == 1 { "waits" } else { "wait" };
            format!("{} {verb} for {missing}, which the process does not have", teller.whos(&waiting))
        }
        Situation::ClosedWaits if teller.turn(verdict).is_some() => {
            let turn = teller.turn(verdict).unwrap_or_default();
            let others: Vec<i32> = teller.waiting(verdict).into_iter().filter(|lwp| *lwp != turn).collect();
            let verb = if others.len() == 1 { "waits for its" } else { "wait for their" };
            let one_team = teller.is_one_team(&[&others[..], &[turn]].concat());
            let owner = if one_team { teller.numbers(&[turn]) } else { teller.whos(&[turn]) };
            format!("{} {verb} turn in ordered, which {owner} has", teller.whos(&others))
        }
        Situation::ClosedWaits if teller.barrier(verdict).is_some() => not_reached(teller, verdict),
        Situation::ClosedWaits if teller.probable_owner(verdict).is_some() => {
            let (waiters, lock, owner) = teller.probable_owner(verdict).unwrap_or_default();
            let verb = if waiters.len() == 1 { "waits" } else { "wait" };
            let owner = teller.whos(&[owner]);
            format!("{} {verb} for {lock}, probably held by {owner}{}", teller.whos(&waiters), proven(verdict, "it"))
        }
        Situation::ClosedWaits if teller.outside_in_tasks(verdict).is_some() => {
            let (outside, tasks, waiters) = teller.outside_in_tasks(verdict).unwrap_or_default();
            let tasks = if let [task] = &tasks[..] { task.clone() } else { words::count(tasks.len(), "task") };
            let wait = if waiters.len() == 1 { "waits" } else { "wait" };
            let execute = if outside.len() == 1 { "executes" } else { "execute" };
            format!("{} {wait} for {tasks}, which {} {execute}", teller.whos(&waiters), teller.whos(&outside))
        }
        Situation::ClosedWaits => {
            format!("all threads wait{}, and no thread is left to let another continue", teller.for_what(verdict))
        }
        Situation::LockHeld => {
            let lock = one(&teller.locks(verdict), "a lock");
            // Others wait for those that wait for the lock.
            let direct = teller.held_up_by_lock(verdict);
            let waiting = match direct.as_slice() {
                [] => words::count(verdict.held_up.len(), "thread"),
                [one] => teller.whos(&[*one]),
                several => words::count(several.len(), "thread"),
            };
            let verb = if direct.len() == 1 { "waits" } else { "wait" };
            let probable = teller.probable_owners(verdict);
            match teller.held_by(verdict) {
                Some(owner) => format!("{waiting} {verb} for {lock}, held by {owner}"),
                None if probable.len() == 1 => {
                    format!("{waiting} {verb} for {lock}, probably held by {}", teller.whos(&probable))
                }
                None => format!("{waiting} {verb} for {lock}; {}", teller.unknown_owner(verdict)),
            }
        }
        Situation::OrderedTurn => {
            let waiting = words::count(verdict.held_up.len(), "thread");
            let verb = if verdict.held_up.len() == 1 { "waits" } else { "wait" };
            format!("{waiting} {verb} until {} has finished its ordered region", teller.whos(&causes(teller, verdict)))
        }
        Situation::TasksUnfinished => {
            let waiting = words::count(verdict.held_up.len(), "thread");
            let verb = if verdict.held_up.len() == 1 { "waits" } else { "wait" };
            let causes = causes(teller, verdict);
            let (task, verb_of) = if causes.len() == 1 { ("a task", "executes") } else { ("tasks", "execute") };
            format!("{waiting} {verb} for {task} that {} {verb_of}", teller.whos(&causes))
        }
    }
}

/// Of a sentence in which an owner is inferred, what is none the less proven.
fn proven(verdict: &Verdict, it: &str) -> String {
    match verdict.certainty {
        Certainty::Deadlock => format!("; no thread can release {it}"),
        Certainty::Suspect | Certainty::Waiting => String::new(),
    }
}

/// The threads that are the cause, with what each does and where; most of them are those that others wait for.
pub(super) fn cause(teller: &Teller<'_>, verdict: &Verdict) -> Option<String> {
    let mut lwps = causes(teller, verdict);
    // Who waits for a thread to end waits for what that does.
    let mut looked_at = 0;
    while let Some(lwp) = lwps.get(looked_at) {
        looked_at += 1;
        if let Blocked::Join(joined) = teller.blocked(*lwp)
            && !lwps.contains(&joined)
        {
            lwps.push(joined);
        }
    }
    // Threads that do the same at the same place share a part.
    let mut stands: Vec<(String, Vec<i32>)> = Vec::new();
    for lwp in &lwps {
        let stand = teller.stand(*lwp);
        if let Some((_, same)) = stands.iter_mut().find(|(known, _)| *known == stand) {
            same.push(*lwp);
        } else if stands.len() < LOOKED_AT {
            stands.push((stand, vec![*lwp]));
        }
    }
    let parts = stands.iter().take(CAUSES).map(|(stand, lwps)| match lwps.as_slice() {
        [one] => format!("{}: {stand}", teller.who(*one)),
        several => format!("{}: {}", teller.whos(several), words::plural(stand)),
    });
    let mut parts: Vec<String> = parts.collect();
    let shown: usize = stands.iter().take(CAUSES).map(|(_, lwps)| lwps.len()).sum();
    let more = lwps.len().saturating_sub(shown);
    if more > 0 {
        parts.push(format!("and {}", words::count(more, "more thread")));
    }
    let gone = match verdict.situation {
        Situation::OwnerGone => teller.gone(verdict),
        _ => None,
    };
    parts.extend(gone);
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// The threads (LWP) that are the cause.
fn causes(teller: &Teller<'_>, verdict: &Verdict) -> Vec<i32> {
    let absent = teller.barrier(verdict).map(|barrier| teller.absent(barrier)).unwrap_or_default();
    match verdict.situation {
        Situation::BarrierMismatch => teller.sides(verdict).map_or_else(|| teller.waiting(verdict), |(few, _)| few),
        // One of each kind tells where both are.
        Situation::OrphanedWorksharing => teller.shares(verdict).map_or_else(
            || teller.waiting(verdict),
            |(reached, skipped)| skipped.iter().take(CAUSES - 1).chain(&reached[..1]).copied().collect(),
        ),
        Situation::ClosedWaits if teller.probable_holder(verdict).is_some() => {
            let (holder, _, waiters) = teller.probable_holder(verdict).unwrap_or_default();
            [vec![holder], waiters].concat()
        }
        Situation::ClosedWaits if teller.turn(verdict).is_some() => teller.turn(verdict).into_iter().collect(),
        Situation::MissingMember | Situation::BarrierNotReached | Situation::ClosedWaits if !absent.is_empty() => {
            absent
        }
        Situation::ClosedWaits if teller.barrier(verdict).is_none() && teller.outside_in_tasks(verdict).is_some() => {
            teller.outside_in_tasks(verdict).unwrap_or_default().0
        }
        Situation::LockHeld | Situation::OrderedTurn | Situation::TasksUnfinished => {
            let held = threads(verdict);
            if held.is_empty() { teller.probable_owners(verdict) } else { held }
        }
        Situation::NestedExhausted => {
            threads(verdict).into_iter().filter(|lwp| teller.blocked(*lwp) == Blocked::Yields).collect()
        }
        Situation::ClosedWaits => {
            let sleeping = threads(verdict).into_iter().filter(|lwp| teller.sleeps_in_team(*lwp, verdict));
            match teller.probable_owner(verdict) {
                Some((_, _, owner)) => vec![owner],
                None => waiting(teller, verdict).into_iter().chain(sleeping).collect(),
            }
        }
        Situation::UnfulfilledEvent
        | Situation::DeviceNotDone
        | Situation::DependenceCycle
        | Situation::TaskNeverRun => {
            let at_barrier = |lwp: &i32| {
                wait_of(teller.inspection, *lwp)
                    .is_some_and(|wait| matches!(wait.kind, WaitKind::Barrier | WaitKind::RegionEnd))
            };
            let waiting = waiting(teller, verdict);
            let (others, at) = waiting.into_iter().partition::<Vec<i32>, _>(|lwp| !at_barrier(lwp));
            if others.is_empty() { at } else { others }
        }
        _ => waiting(teller, verdict),
    }
}

/// The threads (LWP) of a verdict that wait for OpenMP, or for a mutex.
fn waiting(teller: &Teller<'_>, verdict: &Verdict) -> Vec<i32> {
    let mut waiting = teller.waiting(verdict);
    let waits = |lwp: &i32| teller.blocked(*lwp).is_owned() || teller.joins(*lwp).is_some();
    waiting.extend(threads(verdict).into_iter().filter(waits));
    waiting.sort_unstable();
    waiting.dedup();
    waiting
}

fn threads(verdict: &Verdict) -> Vec<i32> {
    let lwps = verdict.core.iter().filter_map(|node| if let Node::Thread(lwp) = node { Some(*lwp) } else { None });
    lwps.collect()
}

/// `thread 0 waits for b, held by thread 1; thread 1 waits for a, held by thread 0`.
fn cycle(teller: &Teller<'_>, verdict: &Verdict) -> String {
    let graph = &teller.inspection.waits_for.graph;
    let mut parts: Vec<String> = Vec::new();
    let mut all_for_locks = true;
    for lwp in threads(verdict) {
        if let Some(joined) = teller.joins(lwp) {
            all_for_locks = false;
            parts.push(format!("{} waits for the end of {}", teller.whos(&[lwp]), teller.whos(&[joined])));
            continue;
        }
        let lock = match teller.blocked(lwp) {
            Blocked::Mutex(mutex, _) if !graph.is_waiting(lwp) => Some(teller.mutex(lwp, mutex)),
            Blocked::Interpreter(_) if !graph.is_waiting(lwp) => Some("Python's GIL".to_owned()),
            _ => graph.waits_for(Node::Thread(lwp)).find_map(|node| teller.lock(node)),
        };
        if let Some(lock) = lock {
            parts.push(format!("{} waits for {lock}", teller.whos(&[lwp])));
        } else if let Some(wait) = wait_of(teller.inspection, lwp) {
            all_for_locks = false;
            let what = words::waiting(&Wait { location: None, ..wait.clone() });
            parts.push(format!("{} {what}", teller.whos(&[lwp])));
        }
    }
    let count = words::count(threads(verdict).len(), "thread");
    match parts.as_slice() {
        [one, two] if all_for_locks => format!("{one}, and {two}; each holds the lock that the other waits for"),
        [one, two] => format!("{one}, and {two}: they wait for each other"),
        _ if all_for_locks => format!("{count} each hold a lock that the next one waits for"),
        _ => format!("{count} wait for each other"),
    }
}

/// `thread 3 has not reached the barrier that threads 0-2 wait at`.
fn not_reached(teller: &Teller<'_>, verdict: &Verdict) -> String {
    let Some(barrier) = teller.barrier(verdict) else { return "threads wait at a barrier".to_owned() };
    let absent = teller.absent(barrier);
    let place = if matches!(barrier, Node::RegionEnd(..)) { "the end of the region" } else { "the barrier" };
    let here = teller.arrived(barrier);
    let verb = if here.len() == 1 { "waits" } else { "wait" };
    if absent.is_empty() {
        return format!("{} {verb} at {place} for threads that this process does not have", teller.whos(&here));
    }
    let has = if absent.len() == 1 { "has" } else { "have" };
    let more = alike(teller, verdict);
    // Numbers alone are those of the team named before.
    let others =
        if teller.is_one_team(&[&absent[..], &here].concat()) { teller.numbers(&here) } else { teller.whos(&here) };
    format!("{} {has} not reached {place} that {others} {verb} at{more}", teller.whos(&absent))
}

/// `; 3 more teams hang at barriers`.
fn alike(teller: &Teller<'_>, verdict: &Verdict) -> String {
    match teller.incomplete_teams(verdict) {
        0 | 1 => String::new(),
        2 => "; another team hangs at a barrier, too".to_owned(),
        teams => format!("; {} more teams hang at barriers, too", teams - 1),
    }
}

/// The first task of the verdict in this state.
fn task(teller: &Teller<'_>, verdict: &Verdict, state: TaskState) -> Option<String> {
    verdict.core.iter().find_map(|node| match *node {
        Node::Task(runtime, id) => {
            let task = teller.inspection.runtimes[runtime].task(id)?;
            (task.state.get() == Some(state)).then(|| teller.task(runtime, id))
        }
        _ => None,
    })
}

/// The first task of the verdict whose event is to be fulfilled.
fn of_event(teller: &Teller<'_>, verdict: &Verdict) -> Option<String> {
    verdict.core.iter().find_map(|node| match *node {
        Node::Event(runtime, id) => Some(teller.task(runtime, id)),
        _ => None,
    })
}

fn one(names: &[String], otherwise: &str) -> String {
    names.first().cloned().unwrap_or_else(|| otherwise.to_owned())
}
