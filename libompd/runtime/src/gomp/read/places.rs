//! Words that threads sleep on, and what they stand for.

use std::collections::HashMap;

use ompd_process::Addr;

use super::Context;
use super::pools::Pools;
use super::tasks::Tasks;
use super::teams::Teams;
use super::threads::GompThread;
use crate::model::*;

/// What a futex address stands for.
#[derive(Clone)]
pub(super) struct Place {
    pub(super) kind: WaitKind,
    pub(super) team: Option<Addr>,
    pub(super) name: Option<String>,
    /// The taskgroup at whose end threads sleep there.
    pub(super) group: Option<TaskgroupId>,
    /// The task that sleeps there until others are over, and the record of its wait.
    pub(super) waiter: Option<(Addr, Addr)>,
}

impl Place {
    pub(super) fn of(kind: WaitKind) -> Place {
        Place { kind, team: None, name: None, group: None, waiter: None }
    }
}

/// Every word of the runtime a thread may sleep on.
pub(super) fn collect(
    context: &Context<'_>,
    threads: &[GompThread],
    pools: &Pools,
    teams: &Teams,
    tasks: &Tasks,
) -> HashMap<Addr, Place> {
    let mut found = tasks.places.clone();
    let s = &context.gomp.structs;
    let mut places: Vec<(Result<Addr, Reason>, WaitKind, Option<Addr>)> = Vec::new();
    for (addr, team) in &teams.found {
        places.push((team.view.addr_of(&s.team.barrier_generation), WaitKind::Barrier, Some(*addr)));
        places.push((team.view.addr_of(&s.team.master_release), WaitKind::Ordered, Some(*addr)));
        places.push((team.view.addr_of(&s.team.task_lock), WaitKind::RuntimeInternal, Some(*addr)));
    }
    for pool in pools.views.values() {
        places.push((pool.addr_of(&s.pool.dock), WaitKind::Pool, None));
    }
    for thread in threads {
        places.push((thread.view.addr_of(&s.thread.release), WaitKind::Ordered, Some(thread.team)));
    }
    for (addr, kind, team) in places {
        if let Ok(addr) = addr {
            found.insert(addr, Place { team, ..Place::of(kind) });
        }
    }
    let fixed = [
        (&context.gomp.default_lock, WaitKind::Critical, "critical (unnamed)"),
        (&context.gomp.atomic_lock, WaitKind::Atomic, "atomic"),
    ];
    for (addr, kind, name) in fixed {
        if let Some((addr, _)) = addr {
            found.insert(*addr, Place { name: Some(name.to_owned()), ..Place::of(kind) });
        }
    }
    found
}
