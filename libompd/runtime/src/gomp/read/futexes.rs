//! Words that threads sleep on, and what they stand for.

use std::collections::HashMap;

use ompd_process::Addr;

use super::Context;
use super::futex_meaning::FutexMeaning;
use super::pools::Pools;
use super::tasks::Tasks;
use super::teams::Teams;
use super::threads::GompThread;
use crate::model::*;

/// Every word of the runtime a thread may sleep on.
pub(super) fn collect(
    context: &Context<'_>,
    threads: &[GompThread],
    pools: &Pools,
    teams: &Teams,
    tasks: &Tasks,
) -> HashMap<Addr, FutexMeaning> {
    let mut found = tasks.futexes.clone();
    let s = &context.gomp.structs;
    let mut words: Vec<(Result<Addr, Reason>, WaitKind, Option<Addr>)> = Vec::new();
    for (addr, team) in &teams.found {
        words.push((team.view.addr_of(&s.team.barrier_generation), WaitKind::Barrier, Some(*addr)));
        words.push((team.view.addr_of(&s.team.master_release), WaitKind::Ordered, Some(*addr)));
        words.push((team.view.addr_of(&s.team.task_lock), WaitKind::RuntimeInternal, Some(*addr)));
    }
    for pool in pools.views.values() {
        words.push((pool.addr_of(&s.pool.dock), WaitKind::Pool, None));
    }
    for thread in threads {
        words.push((thread.view.addr_of(&s.thread.release), WaitKind::Ordered, Some(thread.team)));
    }
    for (addr, kind, team) in words {
        if let Ok(addr) = addr {
            found.insert(addr, FutexMeaning { team, ..FutexMeaning::of(kind) });
        }
    }
    let fixed = [
        (&context.gomp.default_lock, WaitKind::Critical, "critical (unnamed)"),
        (&context.gomp.atomic_lock, WaitKind::Atomic, "atomic"),
    ];
    for (addr, kind, name) in fixed {
        if let Some((addr, _)) = addr {
            found.insert(*addr, FutexMeaning { name: Some(name.to_owned()), ..FutexMeaning::of(kind) });
        }
    }
    found
}
