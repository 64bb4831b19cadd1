//! Teams that may be stuck: the lines that stand first in the summary. A suspicion, no verdict.

use ompd_runtime::model::*;

use super::{ALARM, FAINT, HEADING, Page, TIE, words};

/// Where the members of a team are, by thread number.
struct Standing {
    /// At a barrier inside the region or at its end.
    waiting: Vec<u32>,
    /// Known to be neither.
    elsewhere: Vec<u32>,
    /// Possibly there.
    unclear: Vec<u32>,
    /// Members at a barrier inside the region: the runtime's count, or those seen.
    inside: usize,
    /// Members at the end of the region.
    at_end: usize,
}

pub fn render(page: &mut Page, snapshot: &RuntimeSnapshot) {
    for (index, team) in snapshot.teams.iter().enumerate() {
        let name = format!("team {index} (level {})", words::or_unknown(&team.level));
        if let Some(text) = all_wait_for_locks(snapshot, index) {
            headline(page, true, &format!("{name}: {text}"));
            continue;
        }
        let Some(standing) = standing(snapshot, index) else { continue };
        let size = team.members.len();
        if standing.inside > 0 && standing.at_end > 0 {
            let text = format!(
                "{name}: its threads wait at different barriers: {} inside the region, {} at its end",
                standing.inside, standing.at_end
            );
            headline(page, true, &text);
            members(page, snapshot, team, &standing.elsewhere);
            continue;
        }
        let arrived = standing.inside.max(standing.at_end);
        if standing.waiting.is_empty() || arrived == size {
            continue;
        }
        let place = if standing.at_end > 0 { "at its end" } else { "at its barrier" };
        let mut text = format!("{name}: {arrived} of {} {} {place}", words::count(size, "thread"), are(arrived));
        if !standing.elsewhere.is_empty() {
            text.push_str(&format!(", missing: {}", threads(&standing.elsewhere)));
        }
        if !standing.unclear.is_empty() {
            text.push_str(&format!(", not known: {}", threads(&standing.unclear)));
        }
        // As long as nobody is known to be held up, the missing may just be slow.
        let alarm = standing.elsewhere.iter().any(|number| is_held_up(page, snapshot, team, *number));
        headline(page, alarm, &text);
        members(page, snapshot, team, &standing.elsewhere);
    }
}

fn headline(page: &mut Page, alarm: bool, text: &str) {
    page.blank();
    match alarm {
        true => page.wrapped("SUSPECT  ", ALARM, text, 9),
        false => page.wrapped("WAITING  ", HEADING, text, 9),
    }
}

/// What the missing members do instead.
fn members(page: &mut Page, snapshot: &RuntimeSnapshot, team: &Team, numbers: &[u32]) {
    const SHOWN: usize = 4;
    for number in numbers.iter().take(SHOWN) {
        let text = absent(page, snapshot, team, *number);
        page.wrapped("         ", FAINT, &text, 11);
    }
    if numbers.len() > SHOWN {
        page.line(format_args!("         … and {} more", numbers.len() - SHOWN));
    }
}

fn are(n: usize) -> &'static str {
    if n == 1 { "is" } else { "are" }
}

fn threads(numbers: &[u32]) -> String {
    format!("thread{}{TIE}{}", if numbers.len() == 1 { "" } else { "s" }, words::ranges(numbers))
}

fn member<'s>(snapshot: &'s RuntimeSnapshot, team: &Team, number: u32) -> Option<&'s Thread> {
    team.members.get(number as usize).copied().flatten().and_then(|lwp| snapshot.thread_by_lwp(lwp))
}

fn standing(snapshot: &RuntimeSnapshot, index: usize) -> Option<Standing> {
    let team = &snapshot.teams[index];
    let barrier = team.barrier.value()?;
    let waiting = snapshot.at_barrier(TeamId(index));
    let at_end = |n: &&u32| {
        let wait = member(snapshot, team, **n).and_then(|t| t.wait.value()).and_then(Option::as_ref);
        wait.is_some_and(|w| w.kind == WaitKind::RegionEnd)
    };
    let seen_at_end = waiting.iter().filter(at_end).count();
    let inside = barrier.inside.map_or(waiting.len() - seen_at_end, |n| n as usize);
    let at_end = barrier.at_end.map_or(seen_at_end, |n| n as usize);
    // Where the runtime counts no more arrivals than were seen, all others are elsewhere; where it keeps no count, a
    // member whose wait is not known may be there as well.
    let counted = barrier.inside.is_some() && inside + at_end == waiting.len();
    let (elsewhere, unclear) = (0u32..)
        .take(team.members.len())
        .filter(|n| !waiting.contains(n))
        .partition(|n| counted || is_known(snapshot, team, *n));
    Some(Standing { waiting, elsewhere, unclear, inside, at_end })
}

/// True if it is known what the member waits for, or that it does not wait in the runtime. Who executes an explicit task
/// may do so at the barrier.
fn is_known(snapshot: &RuntimeSnapshot, team: &Team, number: u32) -> bool {
    member(snapshot, team, number).is_some_and(|thread| {
        let task = thread.task.get().and_then(|id| snapshot.task(id)).and_then(|task| task.kind.get());
        thread.wait.value().is_some() && task.is_some_and(|kind| !kind.is_explicit())
    })
}

/// True if the member is known not to get on at this moment: it waits for something in the runtime, is blocked in a
/// system call, or does not exist. Who executes the runtime's code may be on its way.
fn is_held_up(page: &Page, snapshot: &RuntimeSnapshot, team: &Team, number: u32) -> bool {
    let Some(thread) = member(snapshot, team, number) else { return true };
    let blocked = thread.lwp.is_some_and(|lwp| page.calls.contains_key(&lwp));
    blocked || thread.wait.value().is_some_and(Option::is_some)
}

/// A team no member of which can release another: each waits for a lock.
fn all_wait_for_locks(snapshot: &RuntimeSnapshot, index: usize) -> Option<String> {
    let team = &snapshot.teams[index];
    let mut names: Vec<String> = Vec::new();
    for number in 0..team.members.len() as u32 {
        let wait = member(snapshot, team, number)?.wait.value()?.as_ref()?;
        if !is_lock(wait.kind) {
            return None;
        }
        let name = wait.name.clone().unwrap_or_else(|| wait.object.to_string());
        if !names.contains(&name) {
            names.push(name);
        }
    }
    (!names.is_empty()).then(|| {
        let all = words::count(team.members.len(), "thread");
        format!("all {all} wait for locks: {}", crate::escape::escape(&names.join(", ")))
    })
}

fn is_lock(kind: WaitKind) -> bool {
    matches!(kind, WaitKind::Mutex | WaitKind::Lock | WaitKind::Critical | WaitKind::Atomic)
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
            format!("thread {number} (LWP {lwp}){inner} {}", predicate(page, snapshot, thread))
        }
        None => format!("thread {number} (LWP {lwp}): its state could not be read"),
    }
}

fn predicate(page: &Page, snapshot: &RuntimeSnapshot, thread: &Thread) -> String {
    match &thread.wait {
        Fact::Known { value: Some(wait), .. } => {
            let owner = if is_lock(wait.kind) { " (who holds it is not known)" } else { "" };
            format!("{}{owner}", words::waiting(wait))
        }
        Fact::Known { value: None, .. } => match page.elsewhere(snapshot, thread) {
            Some(elsewhere) => format!("is in a region of another runtime ({elsewhere}): {}", page.doing(thread)),
            None => format!("is not in the OpenMP runtime: {}", page.doing(thread)),
        },
        Fact::Unknown { why } => format!("may be running or waiting: {why}"),
    }
}
