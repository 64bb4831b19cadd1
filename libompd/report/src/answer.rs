//! The first lines of a report: why nothing moves, or what moves, and which thread is the cause.

use std::collections::HashMap;

use ompd_inspection::Inspection;
use ompd_inspection::outside::OutsideWait;
use ompd_process::TargetKind;
use ompd_runtime::model::*;
use ompd_runtime::waits_for::{Certainty, Node, Verdict};
use schemars::JsonSchema;
use serde::Serialize;

use crate::escape::escape;
use crate::tell::{self, Names};
use crate::{outside, whereabouts, words};

/// The answer in a few sentences.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Answer {
    /// `DEADLOCK`, `SUSPECT`, `WAITING`: the most certain verdict; `STOPPED`: the process is stopped; `CRASHED`: it ended by a signal that no other process sent;
    /// otherwise `RUNNING`, `BLOCKED` (outside OpenMP), `IDLE` or `UNKNOWN`; or others to come.
    pub word: &'static str,
    /// Why nothing moves, or what moves.
    pub text: String,
    /// The threads that are the cause, with what each does and where.
    pub cause: Option<String>,
    /// What to do about it.
    pub fix: Option<String>,
}

/// The answer for a process. `None` without a runtime.
pub fn answer(inspection: &Inspection) -> Option<Answer> {
    ended(inspection).or_else(|| stopped(inspection)).or_else(|| judged(inspection)).or_else(|| moving(inspection))
}

/// That a signal has ended the process, or that it is stopped: what comes before any verdict.
pub fn state_of_process(inspection: &Inspection) -> Option<Answer> {
    ended(inspection).or_else(|| stopped(inspection))
}

/// The verdicts that are told, the most certain first. That a thread has crashed says why others wait for it.
pub fn verdicts(inspection: &Inspection) -> impl Iterator<Item = &Verdict> {
    let has_ended = ended(inspection).is_some();
    let crashed = |lwp: i32| inspection.threads.iter().any(|thread| thread.lwp == lwp && thread.signal.is_some());
    let waits_for_crashed = move |verdict: &Verdict| {
        let is_it = |node: &Node| matches!(*node, Node::Thread(lwp) if crashed(lwp));
        has_ended && verdict.certainty == Certainty::Waiting && verdict.core.iter().any(is_it)
    };
    inspection.waits_for.all().filter(move |verdict| !waits_for_crashed(verdict))
}

/// The word for a verdict.
pub fn word(certainty: Certainty) -> &'static str {
    match certainty {
        Certainty::Deadlock => "DEADLOCK",
        Certainty::Suspect => "SUSPECT",
        Certainty::Waiting => "WAITING",
    }
}

/// That the program crashed. Where somebody else sent the signal, to get a core of a program that hangs, the question is why it hangs.
fn ended(inspection: &Inspection) -> Option<Answer> {
    if inspection.process.signal_sent {
        return None;
    }
    let thread = inspection.threads.iter().find(|thread| thread.signal.is_some())?;
    let names = Names::of(inspection);
    let signal = words::signal(thread.signal?);
    Some(Answer {
        word: "CRASHED",
        text: format!("{} received {signal}", names.who(thread.lwp)),
        cause: Some(format!("{}: {}", names.who(thread.lwp), names.stand(thread.lwp))),
        fix: None,
    })
}

fn stopped(inspection: &Inspection) -> Option<Answer> {
    if let Some(by) = &inspection.process.held_by {
        let name = escape(&by.name);
        return Some(Answer {
            word: "STOPPED",
            text: format!("{name} (process {}) holds the process, and nothing in it moves", by.pid),
            cause: None,
            fix: Some(format!("Let it continue in {name}, or detach.")),
        });
    }
    if inspection.process.frozen {
        return Some(Answer {
            word: "STOPPED",
            text: "the control group of the process is frozen, and nothing in it moves".to_owned(),
            cause: None,
            fix: Some("Let it continue: docker unpause, systemctl thaw, or what else has frozen it.".to_owned()),
        });
    }
    let pid = inspection.process.pid.map_or_else(|| "PID".to_owned(), |pid| pid.to_string());
    inspection.process.stopped.then(|| Answer {
        word: "STOPPED",
        text: "the process is stopped by SIGSTOP or Ctrl-Z, and nothing in it moves".to_owned(),
        cause: None,
        fix: Some(format!("Let it continue: kill -CONT {pid}")),
    })
}

fn judged(inspection: &Inspection) -> Option<Answer> {
    let verdict = verdicts(inspection).next()?;
    let told = tell::tell(inspection, verdict);
    Some(Answer { word: word(verdict.certainty), text: told.text, cause: told.cause, fix: Some(told.fix) })
}

/// What the OpenMP threads do that wait for nothing of OpenMP.
fn moving(inspection: &Inspection) -> Option<Answer> {
    if inspection.runtimes.is_empty() {
        return None;
    }
    let names = Names::of(inspection);
    let threads = || inspection.runtimes.iter().flat_map(|runtime| &runtime.threads);
    let is_idle = |thread: &&Thread| thread.role.get() == Some(Role::IdleWorker);
    let all: Vec<&Thread> = threads().filter(|thread| thread.lwp.is_some() && !is_idle(thread)).collect();
    let active = all.iter().filter(|thread| matches!(thread.wait, Fact::Known { value: None, .. }));
    let calls: HashMap<i32, bool> = inspection.threads.iter().map(|t| (t.lwp, t.blocked_in.is_some())).collect();
    // Some wait for others without a system call.
    let polls = |lwp: i32| {
        let wait = inspection.outside(lwp).and_then(|outside| outside.wait.as_ref());
        matches!(wait, Some(OutsideWait::Mpi { .. } | OutsideWait::Device { .. }))
    };
    let is_blocked = |lwp: &i32| calls.get(lwp).copied().unwrap_or(false) || polls(*lwp);
    let (blocked, computing): (Vec<i32>, Vec<i32>) = active.filter_map(|thread| thread.lwp).partition(is_blocked);
    let is_in_region = inspection.runtimes.iter().any(|runtime| !runtime.teams.is_empty());
    let region = if is_in_region { "" } else { "; no parallel region is active" };
    let of = |some: usize| format!("{some} of {}", words::count(all.len(), "OpenMP thread"));
    let (word, text, shown) = if !computing.is_empty() {
        let verb = if computing.len() == 1 { "executes" } else { "execute" };
        let still = if inspection.kind == TargetKind::Core { "executed" } else { verb };
        ("RUNNING", format!("{} {still} the program{region}", of(computing.len())), computing)
    } else if !blocked.is_empty() {
        let verb = if blocked.len() == 1 { "is" } else { "are" };
        (
            "BLOCKED",
            format!("{} {verb} blocked outside OpenMP, and none executes the program{region}", of(blocked.len())),
            blocked,
        )
    } else if all.is_empty() {
        // What the process does meanwhile, its first thread does, as a rule.
        let first = inspection.process.pid.filter(|pid| inspection.threads.iter().any(|thread| thread.lwp == *pid));
        let outside = first.filter(|pid| threads().all(|thread| thread.lwp != Some(*pid)));
        let (word, text) = match threads().next() {
            Some(_) => ("IDLE", "all OpenMP threads are idle and wait for the next region"),
            None if inspection.complete() => ("IDLE", "no thread executes OpenMP; no parallel region is active"),
            None => ("UNKNOWN", "no OpenMP thread was found, and not all could be read: see `doctor`"),
        };
        (word, text.to_owned(), outside.into_iter().collect())
    } else {
        let waiting = waits(&all);
        let unknown = all.iter().filter(|thread| thread.wait.value().is_none()).count();
        let unknown = if unknown > 0 {
            format!("; {} unknown: see `threads -v`", words::count(unknown, "wait"))
        } else {
            String::new()
        };
        let continues = |thread: &&&Thread| {
            thread.wait.value().and_then(Option::as_ref).is_some_and(|wait| wait.over.get() == Some(true))
        };
        let word = match all.iter().find(continues) {
            Some(_) => "RUNNING",
            None if waiting.is_empty() => "UNKNOWN",
            None => "WAITING",
        };
        (word, format!("no OpenMP thread is seen to execute the program{waiting}{unknown}"), Vec::new())
    };
    let waits_for_tasks = |thread: &&Thread| {
        let wait = thread.wait.value().and_then(Option::as_ref);
        wait.is_some_and(|wait| {
            wait.kind.is_for_tasks()
                || matches!(wait.kind, WaitKind::Barrier | WaitKind::RegionEnd | WaitKind::BarrierTasks)
        })
    };
    if word == "WAITING"
        && all.iter().any(waits_for_tasks)
        && let Some(task) = with_open_event(inspection)
    {
        let cause = Some(format!("the event of {task} has not been fulfilled"));
        return Some(Answer { word, text, cause, fix: Some(format!("This may be normal. {}", tell::EVENT)) });
    }
    let live = inspection.kind == TargetKind::Live;
    let fix = shown.iter().find_map(|lwp| outside::fix(inspection.outside(*lwp)?, live));
    Some(Answer { word, text, cause: places(inspection, &names, &shown), fix })
}

/// The first detached task that is not over because its event has not been fulfilled.
fn with_open_event(inspection: &Inspection) -> Option<String> {
    let is_open = |task: &&Task| {
        task.state.get() == Some(TaskState::Detached) && task.event.flat().is_some_and(|event| !event.fulfilled)
    };
    inspection.runtimes.iter().find_map(|runtime| {
        let number = runtime.tasks.iter().position(|task| is_open(&task))?;
        let task = &runtime.tasks[number];
        let code = words::code(&task.function, &task.location);
        Some(code.map_or_else(|| format!("task {number}"), |code| format!("task {number} ({code})")))
    })
}

/// `: 2 wait in ordered depend(sink) (a.c:9)`.
fn waits(threads: &[&Thread]) -> String {
    const SHOWN: usize = 3;
    let mut groups: Vec<(String, usize)> = Vec::new();
    for wait in threads.iter().filter_map(|thread| thread.wait.value()?.as_ref()) {
        let what = words::waiting(wait);
        match groups.iter_mut().find(|(known, _)| *known == what) {
            Some((_, count)) => *count += 1,
            None => groups.push((what, 1)),
        }
    }
    groups.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let shown = groups.iter().take(SHOWN).map(|(what, count)| match count {
        1 => format!("1 {what}"),
        many => format!("{many} {}", words::plural(what)),
    });
    let parts: Vec<String> = shown.collect();
    if parts.is_empty() { String::new() } else { format!(": {}", parts.join(", ")) }
}

/// Threads by what they do, the most frequent first.
fn places(inspection: &Inspection, names: &Names<'_>, lwps: &[i32]) -> Option<String> {
    const SHOWN: usize = 2;
    let mut groups: Vec<(String, Vec<i32>)> = Vec::new();
    let mut at: HashMap<String, usize> = HashMap::new();
    for lwp in lwps {
        let what = whereabouts::of(inspection, *lwp);
        let index = *at.entry(what.clone()).or_insert_with(|| {
            groups.push((what, Vec::new()));
            groups.len() - 1
        });
        groups[index].1.push(*lwp);
    }
    groups.sort_by_key(|(_, lwps)| std::cmp::Reverse(lwps.len()));
    let shown = groups.iter().take(SHOWN).map(|(what, lwps)| match lwps.as_slice() {
        [one] => format!("{}: {what}", names.who(*one)),
        many => format!("{}: {what}", names.whos(many)),
    });
    let mut parts: Vec<String> = shown.collect();
    if groups.len() > SHOWN {
        parts.push(format!("{} elsewhere", words::count(groups.iter().skip(SHOWN).map(|g| g.1.len()).sum(), "thread")));
    }
    (!parts.is_empty()).then(|| parts.join("; "))
}
