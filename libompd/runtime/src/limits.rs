//! Caps on walks through target memory: what is read may be garbage, and a walk must end all the same.

use crate::model::{Common, Reason};

/// Teams a chain of enclosing teams may have.
pub(crate) const TEAM_DEPTH: usize = 1024;
/// Members of one team, and threads in one pool.
pub(crate) const TEAM_SIZE: u64 = 1 << 18;
/// Generating tasks a task may have.
pub(crate) const TASK_DEPTH: usize = 1 << 14;
/// Tasks read in one snapshot.
pub(crate) const TASKS: usize = 1 << 20;
/// Tasks in queues and graphs of dependences that are listed, of each function, generating task, team, task group,
/// priority and state. The rest is counted.
pub(crate) const TASKS_ALIKE: u64 = 1000;
/// Such tasks listed in all.
pub(crate) const TASKS_LISTED: usize = 1 << 14;
/// Slots of one queue of tasks.
pub(crate) const QUEUE_SLOTS: u64 = 1 << 24;
/// Steps along queues and graphs of dependences that are read in bulk. They are enough for a million tasks, each with
/// two dependences and an address of its own, and a rest.
pub(crate) const BULK_STEPS: u64 = 1 << 23;
/// Nodes of a graph of dependences.
pub(crate) const NODES: usize = 1 << 21;
/// Structs read at once.
pub(crate) const BATCH: usize = 4096;
/// Predecessors listed of one task.
pub(crate) const PREDECESSORS: usize = 1000;
/// Dependences listed of one task, and of all together.
pub(crate) const DEPENDENCES: u64 = 256;
pub(crate) const ALL_DEPENDENCES: u64 = 1 << 17;
/// Bytes read of what the iterations of one doacross loop have posted.
pub(crate) const DOACROSS: u64 = 1 << 20;
/// Loops of its nest.
pub(crate) const DOACROSS_LOOPS: u32 = 64;
/// Entries of the table of threads looked at.
pub(crate) const THREADS: u64 = 1 << 18;
/// Locks read in one snapshot.
pub(crate) const LOCKS: u64 = 1 << 18;
/// Items of a control variable that is a list: levels of nesting.
pub(crate) const LEVELS: u64 = 256;
/// Bytes of a string.
pub(crate) const STRING: u64 = 4096;

/// Steps of all walks along queues in one snapshot together. A limit for each walk is not enough: many walks must not
/// repeat such work again and again while the target is held.
#[derive(Debug)]
pub(crate) struct Budget(u64);

impl Default for Budget {
    fn default() -> Self {
        Budget(1 << 18)
    }
}

impl Budget {
    /// A budget of its own, for walks that are read in bulk.
    pub(crate) fn of(steps: u64) -> Budget {
        Budget(steps)
    }

    /// Takes `steps` off.
    pub(crate) fn spend(&mut self, steps: u64) -> Result<(), Reason> {
        self.0 = self.0.checked_sub(steps).ok_or(Common::TooManyEntries)?;
        Ok(())
    }
}
