//! What the runtimes of one process have to do with each other.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::{Role, RuntimeSnapshot, TeamId};

/// Threads of all runtimes of a process together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Crowd {
    /// Threads of the process that some runtime knows, each counted once.
    pub threads: usize,
    /// Pools with more than one thread.
    pub pools: usize,
    /// Threads in pools that the process does not have: a fork leaves them behind, and threads that are just made are not there yet.
    pub gone: usize,
}

/// Counts the threads and pools of all runtimes.
pub fn crowd(runtimes: &[RuntimeSnapshot]) -> Crowd {
    let threads: BTreeSet<i32> = runtimes.iter().flat_map(|r| r.threads.iter().filter_map(|t| t.lwp)).collect();
    let pools = || runtimes.iter().flat_map(|r| &r.pools);
    Crowd {
        threads: threads.len(),
        pools: pools().filter(|pool| pool.threads.len() > 1).count(),
        gone: pools().flat_map(|pool| &pool.threads).filter(|lwp| lwp.is_none()).count(),
    }
}

/// Where a thread is in one runtime.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Membership {
    /// Index of the runtime.
    pub runtime: usize,
    /// Its innermost team there.
    pub team: TeamId,
    /// Its number in that team, where known.
    pub thread_num: Option<u32>,
}

/// A thread that is in teams of several runtimes at once: regions of one nested in regions of another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Nested {
    /// The thread.
    pub lwp: i32,
    /// Where it is, one place for each runtime.
    pub places: Vec<Membership>,
    /// The first place is the outermost. That runtime made the thread, so whatever else the thread does, it does
    /// inside of a region there. Only its stack shows in which order a thread entered the others.
    pub outermost_known: bool,
}

/// Every thread that is in teams of several runtimes, by LWP.
pub fn nested(runtimes: &[RuntimeSnapshot]) -> Vec<Nested> {
    let mut found: BTreeMap<i32, Vec<(bool, Membership)>> = BTreeMap::new();
    for (runtime, snapshot) in runtimes.iter().enumerate() {
        for thread in &snapshot.threads {
            if let (Some(lwp), Some(team)) = (thread.lwp, thread.team.flat()) {
                let place = Membership { runtime, team, thread_num: thread.thread_num.get() };
                let made = matches!(thread.role.get(), Some(Role::Worker | Role::IdleWorker));
                found.entry(lwp).or_default().push((made, place));
            }
        }
    }
    let several = found.into_iter().filter(|(_, places)| places.len() > 1);
    several
        .map(|(lwp, mut places)| {
            places.sort_by_key(|(made, place)| (!made, place.runtime));
            let makers = places.iter().filter(|(made, _)| *made).count();
            let places = places.into_iter().map(|(_, place)| place).collect();
            Nested { lwp, places, outermost_known: makers == 1 }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Pool, RawSnapshot};
    use crate::os::Blocked;
    use crate::samples::{Process, fact};

    /// A runtime with two members of a team, whose threads have these ids and roles.
    fn runtime(threads: [(i32, Role); 2]) -> RawSnapshot {
        let mut p = Process::new();
        let team = p.team();
        for (index, (lwp, role)) in threads.into_iter().enumerate() {
            p.member(team, Blocked::No, None);
            p.snapshot.threads[index].lwp = Some(lwp);
            p.snapshot.threads[index].role = fact(role);
        }
        p.snapshot
    }

    #[test]
    fn threads_that_two_runtimes_know_are_counted_once() {
        let mut both =
            [runtime([(1, Role::Initial), (2, Role::Worker)]), runtime([(2, Role::Initial), (3, Role::Worker)])];
        both[0].recorded.pools = vec![Pool { threads: vec![Some(1), Some(2), None] }, Pool { threads: vec![Some(1)] }];
        both[1].recorded.pools = vec![Pool { threads: vec![Some(2), None] }];
        let found = crowd(&both.map(RuntimeSnapshot::from));
        assert_eq!(found, Crowd { threads: 3, pools: 2, gone: 2 });
        assert_eq!(crowd(&[]), Crowd::default());
    }

    #[test]
    fn thread_in_teams_of_two_runtimes_is_first_where_it_was_made() {
        let of = |first, second| {
            let both = [runtime([(1, Role::Initial), (2, first)]), runtime([(2, second), (3, Role::Worker)])];
            let found = nested(&both.map(RuntimeSnapshot::from));
            let [Nested { lwp: 2, places, outermost_known }] = &found[..] else { panic!("{found:?}") };
            let places: Vec<_> = places.iter().map(|place| (place.runtime, place.thread_num)).collect();
            (places, *outermost_known)
        };
        let (first, second) = ((0, Some(1)), (1, Some(0)));
        assert_eq!(of(Role::Worker, Role::Initial), (vec![first, second], true));
        assert_eq!(of(Role::Initial, Role::Worker), (vec![second, first], true));
        assert_eq!(of(Role::IdleWorker, Role::Initial), (vec![first, second], true));
        assert_eq!(of(Role::Initial, Role::Initial), (vec![first, second], false), "the program made it");
    }
}
