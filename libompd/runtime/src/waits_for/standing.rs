//! Which members of a team have reached its barrier, and which have not.

use std::cell::LazyCell;
use std::collections::HashSet;

use crate::model::{RuntimeSnapshot, TaskKind, Team, TeamId, Thread, WaitKind};

/// The members of a team of which a part waits at a barrier, by thread number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standing {
    /// How many have reached the barrier: the runtime's count, or those seen there.
    pub arrived: usize,
    /// It is the barrier at the end of the region.
    pub at_end: bool,
    /// Members that have not reached it.
    pub absent: Vec<u32>,
    /// Members that may have reached it: their waits are unknown, or they execute a task.
    pub unclear: Vec<u32>,
}

/// Where the members of a team are. `None` if none is known to wait at a barrier, or all have reached it.
pub fn standing(snapshot: &RuntimeSnapshot, id: TeamId) -> Option<Standing> {
    let team = snapshot.team(id)?;
    let barrier = team.barrier.value()?;
    let waiting = snapshot.at_barrier(id);
    let at_end = |n: &&u32| {
        let wait = member(snapshot, team, **n).and_then(|t| t.wait.value()).and_then(Option::as_ref);
        wait.is_some_and(|w| w.kind == WaitKind::RegionEnd)
    };
    let seen_at_end = waiting.iter().filter(at_end).count();
    let inside = barrier.inside.map_or(waiting.len() - seen_at_end, |n| n as usize);
    let at_end = barrier.at_end.map_or(seen_at_end, |n| n as usize);
    let arrived = inside.max(at_end);
    // Where the runtime counts no arrivals, the members seen there are about to leave.
    if waiting.is_empty() || arrived == 0 || arrived == team.members.len() {
        return None;
    }
    // Where the runtime counts no more arrivals than were seen, all others are elsewhere. Where it keeps no count, a
    // member whose wait is unknown may be there as well.
    let counted = barrier.inside.is_some() && inside + at_end == waiting.len();
    let before = LazyCell::new(|| waits_for_tasks(snapshot, id));
    let (absent, unclear) = (0u32..)
        .take(team.members.len())
        .filter(|n| !waiting.contains(n))
        .partition(|n| counted || is_gone(team, *n) || is_known(snapshot, team, *n) || before.contains(n));
    Some(Standing { arrived, at_end: at_end > 0, absent, unclear })
}

/// The member of a team with this thread number, if it is a thread of the process.
pub fn member<'s>(snapshot: &'s RuntimeSnapshot, team: &Team, number: u32) -> Option<&'s Thread> {
    team.members.get(number as usize).copied().flatten().and_then(|lwp| snapshot.thread_by_lwp(lwp))
}

/// True if no thread of the process is the member with this number.
fn is_gone(team: &Team, number: u32) -> bool {
    team.members.get(number as usize).is_some_and(Option::is_none)
}

/// True if the member's wait is known, or that it has none. A member that executes an explicit task may do so at the barrier, unless
/// that is undeferred: then the thread executes it where the task was generated.
fn is_known(snapshot: &RuntimeSnapshot, team: &Team, number: u32) -> bool {
    let Some(thread) = member(snapshot, team, number).filter(|thread| thread.wait.value().is_some()) else {
        return false;
    };
    let mut at = thread.task.get();
    for _ in 0..=snapshot.tasks.len() {
        let Some(task) = at.and_then(|id| snapshot.task(id)) else { return false };
        match task.kind.get() {
            Some(TaskKind::Undeferred) => at = task.generating.flat(),
            kind => return kind.is_some_and(|kind| !kind.is_explicit()),
        }
    }
    false
}

/// The members of a team whose implicit tasks wait for other tasks. They have not reached the barrier, whichever tasks they execute
/// meanwhile.
fn waits_for_tasks(snapshot: &RuntimeSnapshot, id: TeamId) -> HashSet<u32> {
    let implicit = snapshot.tasks.iter().filter(|task| task.kind.get() == Some(TaskKind::Implicit));
    let waiting = implicit.filter(|task| task.team.flat() == Some(id));
    let waiting = waiting.filter(|task| task.wait.as_ref().is_some_and(|wait| wait.kind.is_for_tasks()));
    waiting.filter_map(|task| task.member).collect()
}
