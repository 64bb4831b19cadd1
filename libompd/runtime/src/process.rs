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
