//! Which threads are at places to stop at.

use std::collections::BTreeMap;

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
}

impl AtStops {
    /// True if threads may be at places that matter. For a thread at such a place all threads are read.
    pub(crate) fn matter(&self) -> bool {
        !self.given.is_empty() || !self.told.is_empty()
    }
}
