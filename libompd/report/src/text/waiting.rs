//! Teams some of whose threads wait for others, and what those do instead. That says nothing about a hang: they may just
//! be slow.

use ompd_runtime::model::*;
use ompd_runtime::waits_for::Node;

use super::{FAINT, HEADING, Page, TIE};
use crate::words;
use ompd_inspection::Inspection;

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

/// Teams part of which waits at a barrier; not those a verdict is about already.
pub fn render(page: &mut Page, inspection: &Inspection, snapshot: &RuntimeSnapshot) {
    let runtime = inspection.runtimes.iter().position(|r| std::ptr::eq(r, snapshot));
    let judged = |index: usize| {
        inspection.waits_for.verdicts.iter().flat_map(|verdict| &verdict.core).any(|node| match node {
            Node::Barrier(r, team) | Node::RegionEnd(r, team) | Node::RegionStart(r, team) => {
                Some(*r) == runtime && team.0 == index
            }
            _ => false,
        })
    };
    for index in (0..snapshot.teams.len()).filter(|index| !judged(*index)) {
        of_team(page, snapshot, index);
    }
}

/// The same of one team, if part of it waits.
pub fn of_team(page: &mut Page, snapshot: &RuntimeSnapshot, index: usize) {
    if let (Some(team), Some(standing)) = (snapshot.teams.get(index), standing(snapshot, index)) {
        let name = format!("team {index} (level {})", words::or_unknown(&team.level));
        let size = team.members.len();
        let arrived = standing.inside.max(standing.at_end);
        // Where the runtime counts none, those seen there are on their way out.
        if standing.waiting.is_empty() || arrived == 0 || arrived == size {
            return;
        }
        let place = if standing.at_end > 0 { "at its end" } else { "at its barrier" };
        let mut text = format!("{name}: {arrived} of {} {} {place}", words::count(size, "thread"), are(arrived));
        if !standing.elsewhere.is_empty() {
            text.push_str(&format!(", missing: {}", threads(&standing.elsewhere)));
        }
        if !standing.unclear.is_empty() {
            text.push_str(&format!(", not known: {}", threads(&standing.unclear)));
        }
        page.blank();
        page.wrapped("WAITING  ", HEADING, &text, 9);
        members(page, snapshot, team, &standing.elsewhere);
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
        Fact::Known { value: None, .. } if thread.in_runtime.is_some() => format!("is {}", page.doing(thread)),
        Fact::Known { value: None, .. } => match page.elsewhere(snapshot, thread) {
            Some(elsewhere) => format!("is in a region of another runtime ({elsewhere}): {}", page.doing(thread)),
            None => format!("is not in the OpenMP runtime: {}", page.doing(thread)),
        },
        Fact::Unknown { why } => format!("may be running or waiting: {why}"),
    }
}
