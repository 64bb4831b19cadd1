//! Pools of threads, and which threads are idle in one.

use std::collections::{BTreeMap, HashMap, HashSet};

use ompd_process::{Addr, TargetExt};

use super::threads::GompThread;
use super::{Context, Notes};
use crate::bind::StructData;
use crate::gomp::reason::Own;
use crate::model::*;
use crate::owner::CodeOwner;

/// The pools that threads name.
#[derive(Default)]
pub(super) struct Pools {
    pub(super) views: BTreeMap<Addr, StructData>,
    pub(super) listed: Vec<Pool>,
    /// Workers that a fork left behind, and whose memory another thread has now.
    lost: HashSet<Addr>,
}

/// An idle pool worker keeps its last team: `gomp_team_end` moves that team to `pool->last_team`, and only the
/// thread that ended it gets its own `ts` restored. So a thread whose team is its pool's last team is idle.
pub(super) fn read(context: &Context<'_>, mut threads: Vec<GompThread>, notes: &mut Notes) -> (Vec<GompThread>, Pools) {
    let mut pools = Pools::default();
    let s = &context.gomp.structs.pool;
    let addrs: HashSet<Addr> = threads.iter().filter_map(|t| t.pool.clone().ok()).filter(|p| !p.is_null()).collect();
    for addr in addrs {
        match StructData::read(context.target, addr, s.size) {
            Ok(view) => {
                pools.views.insert(addr, view);
            }
            Err(why) => notes.issue(format!("thread pool {addr}"), why),
        }
    }
    drop_memory_of_lost_workers(context, &mut threads, &mut pools);
    let by_addr: HashMap<Addr, i32> = threads.iter().map(|t| (t.addr, t.lwp)).collect();
    let mut workers: HashSet<Addr> = HashSet::new();
    let mut last_teams: HashMap<Addr, Addr> = HashMap::new();
    // Who is in a team is no worker that has lost its last one.
    let teamless = context.reach.is_whole() || threads.iter().any(|t| t.team.is_null());
    for (addr, view) in &pools.views {
        match if teamless { members(context, view) } else { Ok(Vec::new()) } {
            Ok(entries) if !context.reach.is_whole() => workers.extend(entries.into_iter().skip(1)),
            Ok(entries) => {
                let lwps = lwps(context, *addr, &entries, &by_addr, &pools.lost);
                if !entries.is_empty() {
                    // In the child of a fork they may all be gone: threads of nested teams are in no pool's array.
                    let known = !lwps.is_empty() || !context.knows_all_threads();
                    notes.check.note("no thread of a pool knows the pool", known);
                    pools.listed.push(Pool { threads: lwps });
                }
                // Entry 0 is the initial thread.
                workers.extend(entries.into_iter().skip(1));
            }
            Err(why) if why.is_layout() => {}
            Err(why) => notes.issue(format!("thread pool {addr}"), why),
        }
        match view.ptr(&s.last_team) {
            Ok(last) => {
                last_teams.insert(*addr, last);
            }
            Err(why) if why.is_layout() => {}
            Err(why) => notes.issue(format!("thread pool {addr}"), why),
        }
    }
    for thread in &mut threads {
        let pool = thread.pool.clone().unwrap_or(Addr::NULL);
        let last = last_teams.get(&pool).copied().unwrap_or(Addr::NULL);
        let in_last_team = !thread.team.is_null() && thread.team == last;
        thread.idle = in_last_team || (thread.team.is_null() && workers.contains(&thread.addr));
        if thread.pool.is_err() || !pool.is_null() && !last_teams.contains_key(&pool) {
            thread.unsettled = Some(Own::PoolUnreadable.into());
            thread.idle = true;
        } else if pool.is_null() && !thread.team.is_null() {
            // A worker that ends leaves its pool and keeps its team (`gomp_thread_start`), which may be freed.
            thread.unsettled = Some(Own::Unsettled.into());
            thread.idle = true;
        }
    }
    (threads, pools)
}

/// In the child of a fork the C library gives the memory of lost workers to new threads, zeroed. `gomp_team_start` then writes
/// team and number of the lost worker into it. A thread that `gomp_thread_start` began names its pool before it calls anything.
/// So a thread with the place of a worker, but no pool, and outside the runtime's code, is none of its threads.
fn drop_memory_of_lost_workers(context: &Context<'_>, threads: &mut Vec<GompThread>, pools: &mut Pools) {
    if !context.knows_all_threads() {
        return;
    }
    let outside = |thread: &GompThread| {
        let registers = thread.registers.as_ref();
        registers.is_ok_and(|registers| matches!(context.executes(registers), Ok(CodeOwner::Other)))
    };
    let stray = |t: &&GompThread| matches!(t.pool, Ok(Addr::NULL)) && !t.team.is_null() && outside(t);
    let strays: HashMap<Addr, (Addr, u32)> =
        threads.iter().filter(stray).map(|t| (t.addr, (t.team, t.team_id))).collect();
    if strays.is_empty() {
        return;
    }
    let teams: HashMap<Addr, Addr> = threads.iter().map(|t| (t.addr, t.team)).collect();
    for view in pools.views.values() {
        // What could not be read is told below.
        let entries = members(context, view).unwrap_or_default();
        let Some(team) = entries.first().and_then(|primary| teams.get(primary)) else { continue };
        let lost = entries.iter().enumerate().skip(1).filter(|(number, worker)| {
            strays.get(worker).is_some_and(|(of, id)| of == team && *id as usize == *number)
        });
        pools.lost.extend(lost.map(|(_, worker)| *worker));
    }
    threads.retain(|thread| !pools.lost.contains(&thread.addr));
}

/// The threads of a pool, its initial thread first.
pub(super) fn members(context: &Context<'_>, pool: &StructData) -> Result<Vec<Addr>, Reason> {
    let s = &context.gomp.structs.pool;
    let (array, used) = (pool.ptr(&s.threads)?, pool.uint(&s.threads_used)?);
    if array.is_null() { Ok(Vec::new()) } else { context.pointers(array, used) }
}

/// LWPs of a pool's threads. `gomp_team_start` counts new threads before they have entered themselves
/// (`gomp_thread_start`). Until then their entries are what the array held before, at worst the address of a thread
/// that has ended. A thread that a fork left behind still names the pool as its own; one that ended does not.
fn lwps(
    context: &Context<'_>,
    pool: Addr,
    entries: &[Addr],
    living: &HashMap<Addr, i32>,
    lost: &HashSet<Addr>,
) -> Vec<Option<i32>> {
    let left_behind = |thread: Addr| {
        if lost.contains(&thread) {
            return true;
        }
        let own = context.gomp.structs.thread.thread_pool.offset().map(|at| context.target.read_ptr(thread.offset(at)));
        context.knows_all_threads() && matches!(own, Ok(Ok(own)) if own == pool)
    };
    let mut seen = HashSet::new();
    let member = |thread: &Addr| match living.get(thread) {
        Some(lwp) => Some(Some(*lwp)),
        None => left_behind(*thread).then_some(None),
    };
    entries.iter().filter(|thread| seen.insert(**thread)).filter_map(member).collect()
}
