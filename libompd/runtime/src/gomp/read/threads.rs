//! Threads: those of the process that have used libgomp, and what is told of each in the end.

use ompd_process::{Addr, Registers};

use super::tasks::Tasks;
use super::teams::Teams;
use super::{Context, NO_OMPT, Notes};
use crate::bind::StructData;
use crate::excerpt::NOT_LOOKED_FOR;
use crate::gomp::reason::Own;
use crate::model::*;

/// A `gomp_thread` that has been used.
pub(super) struct GompThread {
    pub(super) lwp: i32,
    pub(super) addr: Addr,
    pub(super) view: StructData,
    pub(super) team: Addr,
    pub(super) team_id: u32,
    pub(super) level: u32,
    /// NULL before its first region; or why it is not known.
    pub(super) pool: Result<Addr, Reason>,
    /// It is in no team: `team` is that of its last region.
    pub(super) idle: bool,
    /// Why it cannot be said in which team it is, if any. Set, `idle` is set too: nothing of `team` may be used.
    pub(super) unsettled: Option<Reason>,
    pub(super) registers: Result<Registers, String>,
}

/// Every OS thread has a `gomp_thread` at a fixed offset from its thread pointer. It is all zero until the thread
/// first does something with OpenMP.
pub(super) fn read(context: &Context<'_>, notes: &mut Notes) -> Vec<GompThread> {
    let offset = match context.tls_offset() {
        Ok(offset) => offset,
        Err(why) => {
            notes.issue("threads", why);
            return Vec::new();
        }
    };
    let pointers = context.target.threads().iter().filter_map(|t| t.thread_pointer());
    StructData::prefetch(context.target, context.gomp.structs.thread.size, pointers.map(|tp| tp.offset(offset)));
    let mut threads = Vec::new();
    for thread in context.target.threads() {
        let Some(tp) = thread.thread_pointer() else {
            let why = thread.registers.as_ref().err().cloned().map_or(Own::NoThreadPointer.into(), Reason::NoRegisters);
            notes.issue(format!("thread {}", thread.lwp), why);
            continue;
        };
        match read_one(context, thread.lwp, thread.registers.clone(), tp.offset(offset)) {
            Ok(Some(raw)) => threads.push(raw),
            Ok(None) => {}
            Err(why) => notes.issue(format!("thread {}", thread.lwp), why),
        }
    }
    threads.sort_by_key(|t| t.lwp);
    threads
}

/// The `gomp_thread` at an address; nothing if the thread has not used it yet.
pub(super) fn read_one(
    context: &Context<'_>,
    lwp: i32,
    registers: Result<Registers, String>,
    addr: Addr,
) -> Result<Option<GompThread>, Reason> {
    let s = &context.gomp.structs.thread;
    let view = StructData::read(context.target, addr, s.size)?;
    // Setting a lock leaves nothing in it.
    let in_runtime =
        |registers: &Registers| context.gomp.owner(context.target, registers.pc) == crate::owner::CodeOwner::Runtime;
    if view.all_zero() && !registers.as_ref().is_ok_and(in_runtime) {
        return Ok(None);
    }
    Ok(Some(GompThread {
        lwp,
        addr,
        team: view.ptr(&s.team)?,
        team_id: view.u32(&s.team_id)?,
        level: view.u32(&s.level)?,
        pool: view.ptr(&s.thread_pool),
        view,
        idle: false,
        unsettled: None,
        registers,
    }))
}

/// What is told of threads, each with what it waits for.
pub(super) fn raw(
    context: &Context<'_>,
    threads: &[GompThread],
    teams: &Teams,
    tasks: &Tasks,
    waits: Vec<Fact<Option<Wait>>>,
) -> Vec<RawThread> {
    threads.iter().zip(waits).map(|(thread, wait)| raw_one(context, thread, teams, tasks, wait)).collect()
}

/// What is told of a thread.
fn raw_one(
    context: &Context<'_>,
    raw: &GompThread,
    teams: &Teams,
    tasks: &Tasks,
    wait: Fact<Option<Wait>>,
) -> RawThread {
    let s = &context.gomp.structs;
    if let Some(why) = raw.unsettled.as_ref() {
        return RawThread {
            tool_data: Fact::unknown(NO_OMPT),
            outermost_tool_data: Fact::unknown(NO_OMPT),
            ompt_state: Fact::unknown(NO_OMPT),
            lwp: Some(raw.lwp),
            descriptor: raw.addr,
            gtid: None,
            role: Fact::unknown(why),
            thread_num: Fact::unknown(why),
            team: Fact::unknown(why),
            task: Fact::unknown(why),
            wait,
            icvs: Icvs::unknown(why),
            placement: Placement::unknown(why),
        };
    }
    let role_slot = if raw.idle { &s.pool.last_team } else { &s.thread.team };
    let role = match teams.role(context, raw) {
        Err(_) if context.reach.stays_inside() => Fact::unknown(NOT_LOOKED_FOR),
        role => role_slot.fact(role),
    };
    let team = if raw.idle { role_slot.fact(Ok(None)) } else { teams.team_at(raw.team, &s.thread.team) };
    let task = match raw.view.ptr(&s.thread.task) {
        _ if raw.idle => Fact::unknown(Common::IdleWithoutTask),
        Ok(task) if task.is_null() && raw.team.is_null() => match tasks.initial.get(&raw.lwp) {
            Some(id) => s.thread.task.fact(Ok(*id)),
            None => Fact::unknown(Common::NotRead),
        },
        Ok(task) if task.is_null() => Fact::unknown(Common::OnItsWayWithoutTask),
        Ok(task) => match tasks.ids.get(&task) {
            Some(id) => s.thread.task.fact(Ok(*id)),
            None if !context.reach.is_whole() => Fact::unknown(NOT_LOOKED_FOR),
            None => Fact::unknown(Common::TaskAtUnreadable { task }),
        },
        Err(why) => why.into(),
    };
    // An idle worker's level and number are those of its last region.
    let number = if raw.idle { Fact::unknown(Common::IdleWithoutTeam) } else { s.thread.team_id.fact(Ok(raw.team_id)) };
    RawThread {
        tool_data: Fact::unknown(NO_OMPT),
        outermost_tool_data: Fact::unknown(NO_OMPT),
        ompt_state: Fact::unknown(NO_OMPT),
        lwp: Some(raw.lwp),
        descriptor: raw.addr,
        gtid: None,
        role,
        thread_num: number,
        team,
        icvs: context.icvs_of(raw, task.get().and_then(|id| tasks.icv_addrs.get(&id)).copied()),
        placement: match context.reach.is_whole() {
            false => Placement::unknown(NOT_LOOKED_FOR),
            true => context.placement_of(raw),
        },
        task,
        wait,
    }
}
