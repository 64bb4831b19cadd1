//! Which threads are idle: they wait for their next region.

use std::collections::{HashMap, HashSet};

use ompd_process::{Addr, TargetExt};

use super::Context;
use super::threads::{Idle, KmpThread, Threads};
use crate::bind::{Slot, StructData};
use crate::kmp::reason::Own;
use crate::limits;
use crate::model::*;

/// What was read of teams while looking for idle threads: most threads share them.
#[derive(Default)]
struct SeenTeams {
    views: HashMap<Addr, Result<StructData, Reason>>,
    /// The teams that a primary thread is in, by its address.
    chains: HashMap<Addr, Result<HashSet<Addr>, Reason>>,
}

/// A worker keeps its team after the region has ended (hot team). It is idle if it is in the pool of unused
/// threads, or if it is no member of a team that lives.
pub(super) fn read(context: &Context<'_>, mut threads: Threads) -> Threads {
    let s = &context.kmp.structs;
    let mut ubers: HashMap<Addr, Option<Addr>> = HashMap::new();
    let mut seen = SeenTeams::default();
    for index in 0..threads.list.len() {
        let thread = &threads.list[index];
        let uber = match thread.view.ptr(&s.info.root) {
            Ok(root) => *ubers.entry(root).or_insert_with(|| uber_of(context, root).ok()),
            Err(_) => None,
        };
        let is_uber = uber.map(|uber| uber == thread.view.addr());
        let idle = match (thread.view.flag(&s.info.in_pool), is_uber) {
            (Ok(true), _) => idle(s.info.in_pool, &thread.view),
            (_, Some(true)) => Idle::No,
            _ => match is_member(context, thread, &mut seen) {
                Ok(true) => Idle::No,
                Ok(false) => idle(s.team.threads, &thread.view),
                Err(why) => Idle::Unsure(why),
            },
        };
        let thread = &mut threads.list[index];
        thread.uber = is_uber;
        thread.idle = idle;
    }
    threads
}

/// True if the thread is in the team it points to, and that team lives. A team lives if its thread 0 is in it,
/// directly or through regions nested in it. When a region ends, thread 0 goes back to the enclosing team
/// (`__kmp_join_call`). The others keep pointing to the team they may be needed for again.
fn is_member(context: &Context<'_>, thread: &KmpThread, seen: &mut SeenTeams) -> Result<bool, Reason> {
    let s = &context.kmp.structs;
    let (team, number) = (thread.team, thread.view.count(&s.info.ds_tid)?);
    if team.is_null() {
        return Ok(false);
    }
    let read = |addr| {
        let view = StructData::read(context.target, addr, s.team.size)?;
        prefetch_members(context, &view);
        Ok(view)
    };
    let view = seen.views.entry(team).or_insert_with(|| read(team)).clone()?;
    if !lists(context, &view, number, thread)? {
        // Ending a region, thread 0 takes back its number in the enclosing team before it takes back that team.
        let outer = view.ptr(&s.team.parent)?;
        if !outer.is_null() && lists(context, &read(outer)?, number, thread)? {
            return Err(Reason::from(Common::OnItsWay));
        }
        return Ok(false);
    }
    let primary = context.target.read_ptr(view.ptr(&s.team.threads)?)?;
    let chain = seen.chains.entry(primary).or_insert_with(|| teams_of(context, primary));
    match chain {
        Ok(teams) => Ok(teams.contains(&team)),
        Err(why) => Err(why.clone()),
    }
}

/// Members are looked up one by one.
fn prefetch_members(context: &Context<'_>, team: &StructData) {
    let s = &context.kmp.structs.team;
    if let (Ok(size), Ok(array)) = (team.count(&s.nproc), team.ptr(&s.threads)) {
        let width = u64::from(context.target.arch().pointer_bytes);
        context.target.prefetch(&[(array, u64::from(size).min(limits::TEAM_SIZE) * width)]);
    }
}

/// True if the team has the thread as its member of this number.
fn lists(context: &Context<'_>, team: &StructData, number: u32, thread: &KmpThread) -> Result<bool, Reason> {
    let s = &context.kmp.structs.team;
    if number >= team.count(&s.nproc)? {
        return Ok(false);
    }
    let width = u64::from(context.target.arch().pointer_bytes);
    let member = context.target.read_ptr(team.ptr(&s.threads)?.offset(u64::from(number) * width))?;
    Ok(member == thread.view.addr())
}

/// The team a thread is in, and those around it.
fn teams_of(context: &Context<'_>, thread: Addr) -> Result<HashSet<Addr>, Reason> {
    let s = &context.kmp.structs;
    let mut teams = HashSet::new();
    let mut at = context.target.read_ptr(thread.offset(s.info.team.offset()?))?;
    while !at.is_null() && teams.insert(at) && teams.len() <= limits::TEAM_DEPTH {
        at = context.target.read_ptr(at.offset(s.team.parent.offset()?))?;
    }
    Ok(teams)
}

/// The initial thread of a root: the only member of its root team (`__kmp_initialize_root`).
pub(super) fn uber_of(context: &Context<'_>, root: Addr) -> Result<Addr, Reason> {
    let s = &context.kmp.structs;
    let team = context.target.read_ptr(root.offset(s.root.root_team.offset()?))?;
    let threads = context.target.read_ptr(team.offset(s.team.threads.offset()?))?;
    Ok(context.target.read_ptr(threads)?)
}

/// An idle thread.
pub(super) fn idle(by: Slot, thread: &StructData) -> Idle {
    match by.origin() {
        Some(origin) => {
            let object = thread.addr();
            Idle::Yes(Wait::new(WaitKind::Pool, object, origin))
        }
        None => Idle::Unsure(Own::TeamsUnknown.into()),
    }
}
