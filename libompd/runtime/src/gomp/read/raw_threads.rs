//! The last phase of threads: a `RawThread` of each.

use std::collections::HashSet;

use super::tasks::Tasks;
use super::teams::Teams;
use super::threads::GompThread;
use super::{Context, NO_OMPT};
use crate::excerpt::NOT_LOOKED_FOR;
use crate::model::*;

/// Makes a `RawThread` of each thread and its wait.
pub(super) fn tell(
    context: &Context<'_>,
    threads: &[GompThread],
    teams: &Teams,
    tasks: &Tasks,
    waits: Vec<Fact<Option<Wait>>>,
    at_work: &HashSet<i32>,
) -> Vec<RawThread> {
    let one = |(thread, wait): (&GompThread, _)| RawThread {
        at_work: at_work.contains(&thread.lwp),
        ..raw_one(context, thread, teams, tasks, wait)
    };
    threads.iter().zip(waits).map(one).collect()
}

/// Makes the `RawThread` of one thread.
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
            at_work: false,
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
        at_work: false,
    }
}
