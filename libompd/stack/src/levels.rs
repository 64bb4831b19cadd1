//! Which call on a thread's stack opened which region.
//!
//! A thread that is number 0 of a team has the call that opened its region on its stack. The same holds for the regions
//! around it, as long as it is their number 0 as well. So the calls on the stack and the levels the runtime keeps are
//! two accounts of the same thing. A level gets a call only where they agree.

use ompd_process::Addr;
use ompd_runtime::entry::Role;
use ompd_runtime::model::{Fact, RawSnapshot, RawThread, TeamId};

use crate::frame::CodeOwner;
use crate::physical::Physical;
use crate::process::Process;

/// Nested regions of one thread that are followed.
const MAX_LEVELS: usize = 4096;
/// Pairs of a region and a call that are tried for one thread: nobody nests a thousand regions.
const MAX_PAIRS: usize = 1 << 20;

/// One of the regions a thread is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Level {
    pub(crate) team: TeamId,
    /// The thread's number in that team.
    pub(crate) number: u32,
}

/// The regions around a thread, as far as it opened them itself, innermost first. The last is the one in which another
/// thread is number 0, if there is one.
pub(crate) fn levels(snapshot: &RawSnapshot, thread: &RawThread) -> Vec<Level> {
    let mut found = Vec::new();
    let (mut team, mut number) = (thread.team.flat(), thread.thread_num.get());
    while let (Some(id), Some(own)) = (team, number) {
        if found.len() == MAX_LEVELS {
            break;
        }
        found.push(Level { team: id, number: own });
        let Some(outer) = snapshot.team(id).filter(|_| own == 0) else { break };
        (team, number) = (outer.parent.flat(), outer.primary_num.get());
    }
    found
}

/// Segments of the stack that are calls which opened regions of runtime `runtime`, innermost first; and whether each opened a
/// league.
pub(crate) fn forks(physical: &Physical, runtime: usize) -> Vec<(usize, bool)> {
    let segments = physical.segments.iter().enumerate();
    segments
        .filter(|(index, segment)| {
            segment.owner == CodeOwner::Runtime(runtime)
                && segment.entry.is_some_and(|e| e.role.opens())
                && physical.segments.get(index + 1).is_some()
        })
        .map(|(index, segment)| (index, segment.entry.is_some_and(|e| e.role == Role::OpensLeague)))
        .collect()
}

/// Gives each of `levels` (those in which the thread is number 0) the call that opened it, where that is certain.
pub(crate) fn assign(
    snapshot: &RawSnapshot,
    physical: &Physical,
    levels: &[Level],
    forks: &[(usize, bool)],
) -> Vec<Option<usize>> {
    // With or without leagues: there is a level for a league of several teams at most.
    let all: Vec<usize> = forks.iter().map(|(fork, _)| *fork).collect();
    let regions: Vec<usize> = forks.iter().filter(|(_, league)| !league).map(|(fork, _)| *fork).collect();
    let forks = if levels.len() == all.len() { &all } else { &regions };
    // A region of one thread may have been entered without a call that is still on the stack (`if(0)` with clang).
    let required = |level: &Level| {
        !snapshot.team(level.team).is_some_and(|t| t.serialized.get() == Some(true) || t.size.get() == Some(1))
    };
    let fits = |level: &Level, fork: usize| {
        let body = fork.checked_sub(1).map(|s| &physical.segments[s]).filter(|s| s.region && !s.interrupts);
        let body = body.and_then(|s| s.begins).or(physical.segments[fork].vanished);
        let known = snapshot.team(level.team).and_then(|t| t.function.get());
        match (body, known) {
            (Some(body), Some(known)) => body == known,
            _ => true,
        }
    };
    if (levels.len() + 1).saturating_mul(forks.len() + 1) > MAX_PAIRS {
        return vec![None; levels.len()];
    }
    // Outermost frames that are missing leave only the innermost to be compared.
    if !physical.backtrace.end.is_complete() && !levels.iter().all(required) {
        return vec![None; levels.len()];
    }
    // A call in which no code of the program is executed may be on its way into a region that is no level yet.
    let opening = forks.last() == Some(&0);
    align(levels.len(), forks, opening, |level| required(&levels[level]), |level, fork| fits(&levels[level], fork))
}

/// Where the function of a frame begins.
pub(crate) fn outermost_function(process: &Process<'_>, physical: &Physical, frame: usize) -> Option<Addr> {
    process.function_start(physical.backtrace.frames.get(frame)?.lookup())
}

/// All ways to give each of `forks` one of `levels`, both in order, so that no required level goes without: what they have
/// in common. If `opening`, the last of `forks` may go without.
fn align(
    levels: usize,
    forks: &[usize],
    opening: bool,
    required: impl Fn(usize) -> bool,
    fits: impl Fn(usize, usize) -> bool,
) -> Vec<Option<usize>> {
    // reachable[l][f]: the first l levels can be matched with the first f forks. finishing[l][f]: the rest can.
    let width = forks.len() + 1;
    let at = |level: usize, fork: usize| level * width + fork;
    let mut reachable = vec![false; (levels + 1) * width];
    let mut finishing = reachable.clone();
    reachable[at(0, 0)] = true;
    for level in 0..levels {
        for fork in 0..width {
            if !reachable[at(level, fork)] {
                continue;
            }
            if !required(level) {
                reachable[at(level + 1, fork)] = true;
            }
            if fork < forks.len() && fits(level, forks[fork]) {
                reachable[at(level + 1, fork + 1)] = true;
            }
        }
    }
    finishing[at(levels, forks.len())] = true;
    if opening && !forks.is_empty() {
        finishing[at(levels, forks.len() - 1)] = true;
    }
    for level in (0..levels).rev() {
        for fork in 0..width {
            let without = !required(level) && finishing[at(level + 1, fork)];
            let with = fork < forks.len() && fits(level, forks[fork]) && finishing[at(level + 1, fork + 1)];
            finishing[at(level, fork)] = without || with;
        }
    }
    (0..levels)
        .map(|level| {
            let skipped =
                (0..width).any(|fork| !required(level) && reachable[at(level, fork)] && finishing[at(level + 1, fork)]);
            let mut with = (0..forks.len()).filter(|fork| {
                reachable[at(level, *fork)] && fits(level, forks[*fork]) && finishing[at(level + 1, *fork + 1)]
            });
            match (skipped, with.next(), with.next()) {
                (false, Some(only), None) => Some(forks[only]),
                _ => None,
            }
        })
        .collect()
}

/// True if a runtime made the thread and it waits for its next region.
pub(crate) fn is_idle(thread: &RawThread) -> bool {
    matches!(thread.role, Fact::Known { value: ompd_runtime::model::Role::IdleWorker, .. })
}

#[cfg(test)]
mod tests {
    use super::align;

    #[test]
    fn only_what_all_alignments_agree_on_counts() {
        // Three levels, the middle one need not have a call.
        let required = |level: usize| level != 1;
        assert_eq!(align(3, &[10, 20], false, required, |_, _| true), [Some(10), None, Some(20)]);
        // Two that need none, one call: it is that of either.
        assert_eq!(align(2, &[10], false, |_| false, |_, _| true), [None, None]);
        // Unless its body says which.
        assert_eq!(align(2, &[10], false, |_| false, |level, _| level == 1), [None, Some(10)]);
        // More calls than levels, or fewer than needed: nothing fits.
        assert_eq!(align(1, &[10, 20], false, |_| true, |_, _| true), [None]);
        assert_eq!(align(2, &[10], false, |_| true, |_, _| true), [None, None]);
        // The innermost call may have nothing to do with the innermost level, if that needs none.
        assert_eq!(align(2, &[10, 0], true, |level| level == 0, |_, _| true), [Some(10), None]);
        assert_eq!(align(2, &[10, 0], true, |_| true, |_, _| true), [Some(10), Some(0)]);
        assert_eq!(align(1, &[10, 0], true, |_| true, |_, _| true), [Some(10)]);
        assert_eq!(align(0, &[], false, |_| true, |_, _| true), []);
    }
}
