//! Which threads are at places to stop at.

use std::collections::{BTreeMap, BTreeSet};

use ompd_process::Addr;
use ompd_runtime::model::{TaskId, TeamId};
use ompd_runtime::stops::{AtStop, StopPoint};

use crate::keys::{RuntimeKey, ThreadKey};

/// Number of a place; 0 is none.
pub(crate) type PointId = u64;

/// The places of an address space, and the threads that are at them.
#[derive(Debug, Default)]
pub(crate) struct AtStops {
    /// All that were given out. The number of a place is its index, from 1 on.
    pub(crate) given: Vec<(RuntimeKey, StopPoint)>,
    /// What the debugger says: the place a thread is at, and the values of the registers that matter there.
    pub(crate) told: BTreeMap<ThreadKey, (PointId, Vec<u64>)>,
    /// Threads that are at one, with what holds there, since `Space::read`.
    pub(crate) at: BTreeMap<ThreadKey, (PointId, Result<AtStop, String>)>,
    /// Threads that are or may be at OMPD's own symbols, though the debugger has not said so, with what differs from memory.
    pub(crate) own: BTreeMap<ThreadKey, Differs>,
    /// Where a companion that calls stop points says where its block is; none without one.
    pub(crate) companion: Vec<Addr>,
    /// Threads whose program counters, asked for as expressions, were at such a symbol.
    pub(crate) asked: BTreeSet<i32>,
    /// Threads without registers whose stacks were searched at this moment. Each has the indices of the calls that may have led
    /// it to such a symbol, or why they are unknown.
    pub(crate) searched: BTreeMap<ThreadKey, Result<Vec<usize>, String>>,
}

/// What holds of a thread at one of OMPD's own symbols and is not as memory shows it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Differs {
    /// Its region; the reason if it is not known.
    pub(crate) region: Option<Result<TeamId, String>>,
    /// Its task, likewise.
    pub(crate) task: Option<Result<TaskId, String>>,
}

impl Differs {
    /// Neither is known.
    pub(crate) fn unknown(why: &str) -> Differs {
        Differs { region: Some(Err(why.to_owned())), task: Some(Err(why.to_owned())) }
    }

    /// At a hit that does not count, nothing begins or ends: what a debugger would take for that is not known.
    pub(crate) fn of(holds: Result<AtStop, String>) -> Differs {
        match holds {
            Ok(AtStop { not_counted: Some(why), .. }) | Err(why) => Differs::unknown(&why),
            Ok(holds) => Differs { region: holds.region.map(Ok), task: holds.task },
        }
    }
}

impl AtStops {
    /// What was found of a moment that is over.
    pub(crate) fn forget_moment(&mut self) {
        self.at.clear();
        self.own.clear();
        self.searched.clear();
    }

    /// The place at an address: an equivalent one rather than OMPD's symbol.
    pub(crate) fn at_address(&self, runtime: RuntimeKey, addr: Addr) -> Option<(PointId, &StopPoint)> {
        let numbered = (1..).zip(&self.given).map(|(id, (of, point))| (id, *of, point));
        let here = numbered.filter(|(_, of, point)| *of == runtime && point.addr == addr);
        here.min_by_key(|(_, _, point)| point.own).map(|(id, _, point)| (id, point))
    }

    /// True if the thread was found at a place to stop at, or where it may be at one.
    pub(crate) fn has(&self, thread: ThreadKey) -> bool {
        self.at.contains_key(&thread) || self.own.contains_key(&thread)
    }

    /// True if threads may be at places that matter. For a thread at such a place all threads are read.
    pub(crate) fn matter(&self) -> bool {
        !self.given.is_empty() || !self.told.is_empty() || !self.asked.is_empty()
    }
}
