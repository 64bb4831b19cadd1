//! What a word that threads sleep on stands for.

use ompd_process::Addr;

use crate::model::*;

/// What a futex address stands for.
#[derive(Clone)]
pub(super) struct FutexMeaning {
    pub(super) kind: WaitKind,
    pub(super) team: Option<Addr>,
    pub(super) name: Option<String>,
    /// The taskgroup at whose end threads sleep there.
    pub(super) group: Option<TaskgroupId>,
    /// The task that sleeps there until others are over, and the record of its wait.
    pub(super) waiter: Option<(Addr, Addr)>,
}

impl FutexMeaning {
    pub(super) fn of(kind: WaitKind) -> FutexMeaning {
        FutexMeaning { kind, team: None, name: None, group: None, waiter: None }
    }
}
