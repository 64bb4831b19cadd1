//! What must be said of a program that hangs, or of one that is healthy: `programs/expect.h`.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::basics::Address;

/// How sure one can be that a program hangs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It follows from what the runtime records that the threads wait for ever.
    Deadlock,
    /// Somebody is waited for who may never come, and what he does is not the runtime's.
    Suspect,
    /// Nothing is wrong.
    None,
}

/// What a hang is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Situation {
    /// Each waits for the next, the last for the first, and a lock is among what they wait for.
    LockCycle,
    /// A thread waits for a lock it holds.
    SelfDeadlock,
    /// The thread that holds the lock has ended.
    OwnerGone,
    /// Members of a team wait at different barriers.
    BarrierMismatch,
    /// A member does not come to the barrier the others wait at.
    MissingMember,
    /// Some members are in a worksharing construct that others have skipped.
    OrphanedWorksharing,
    /// The event of a detached task that is waited for is fulfilled by nobody.
    UnfulfilledEvent,
    /// A task waits for a dependence on one that waits for it.
    DependenceCycle,
    /// A task that is waited for is ready, and no thread may run it.
    TaskNeverRun,
    /// The runtime of a forked child waits for threads that its parent has.
    PoolLostInFork,
    /// A region got fewer threads than the program counts on, because no more levels may be active.
    NestedExhausted,
    /// Every thread of the process waits, and nobody is left who could release one.
    ClosedWaits,
}

impl fmt::Display for Situation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// What must be said. The names are those of the program's own records.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expectation {
    /// How sure.
    pub verdict: Verdict,
    /// What it is called; nothing if nothing is wrong.
    pub situation: Option<Situation>,
    /// Other names for it that are true as well.
    pub also: Vec<Situation>,
    /// What it is called where the runtime does not record who owns the locks.
    pub without_owners: Option<Situation>,
    /// Roles; all threads that have them must be named.
    pub threads: Vec<String>,
    /// Roles of threads the others wait for, to be named as well.
    pub missing: Vec<String>,
    /// Locks, events and storage of dependences that must be named.
    pub objects: Vec<String>,
    /// Tasks that must be named: by their function, or by the role of the thread that runs them.
    pub tasks: Vec<String>,
}

impl Expectation {
    /// The names a true verdict may have.
    pub fn accepted(&self, owners_recorded: bool) -> Vec<Situation> {
        let without = self.without_owners.filter(|_| !owners_recorded);
        self.situation.iter().chain(&self.also).copied().chain(without).collect()
    }
}

/// A thread of the program that has ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gone {
    /// What the program calls it.
    pub role: String,
    /// What its LWP was.
    pub lwp: i32,
}

/// Something of the program that can be waited for and is no lock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Named {
    /// The name of the variable.
    pub name: String,
    /// `event` or `dependence`.
    pub kind: String,
    /// The handle of an event; where the storage of a dependence lies.
    pub address: Address,
}
