//! The last phase of threads: a `RawThread` of each.

use ompd_process::TargetExt;

use super::Context;
use super::task_reader::Tasks;
use super::teams::Teams;
use super::threads::{Idle, KmpThread, Threads};
use crate::bind::StructData;
use crate::excerpt::NOT_LOOKED_FOR;
use crate::kmp::reason::Own;
use crate::model::*;

/// Makes a `RawThread` of each thread and its wait.
pub(super) fn tell(
    context: &Context<'_>,
    threads: &Threads,
    teams: &Teams,
    tasks: &Tasks,
    waits: Vec<Fact<Option<Wait>>>,
) -> Vec<RawThread> {
    let each = threads.list.iter().zip(waits);
    let mut raw: Vec<RawThread> = each.map(|(thread, wait)| raw_one(context, thread, teams, tasks, wait)).collect();
    raw.sort_by_key(|t| (t.lwp.is_none(), t.lwp, t.gtid));
    raw
}

/// Makes the `RawThread` of one thread.
fn raw_one(
    context: &Context<'_>,
    raw: &KmpThread,
    teams: &Teams,
    tasks: &Tasks,
    wait: Fact<Option<Wait>>,
) -> RawThread {
    let s = &context.kmp.structs;
    let why_none = match &raw.idle {
        Idle::No => None,
        Idle::Yes(_) => Some(Common::IdleWithoutEither.into()),
        Idle::Unsure(why) => Some(why.clone()),
    };
    let role = match (&raw.idle, raw.uber) {
        (_, Some(true)) => s.root.root_team.fact(Ok(Role::Initial)),
        (Idle::Yes(wait), _) => Fact::known(Role::IdleWorker, wait.origin),
        (Idle::No, Some(false)) => s.root.root_team.fact(Ok(Role::Worker)),
        (Idle::No, None) if !context.reach.is_whole() => Fact::unknown(NOT_LOOKED_FOR),
        (Idle::No, None) => Fact::unknown(Own::ContentionGroup),
        (Idle::Unsure(why), _) => Fact::unknown(why),
    };
    let team = match &raw.idle {
        Idle::Yes(wait) => Fact::known(None, wait.origin),
        Idle::No => teams.team_at(raw.team, &s.info.team),
        Idle::Unsure(why) => Fact::unknown(why),
    };
    let task = match (raw.view.ptr(&s.info.current_task), &why_none) {
        (_, Some(why)) => Fact::unknown(why),
        (Ok(task), None) if task.is_null() => Fact::unknown(Own::NoTaskYet),
        (Ok(task), None) => match tasks.ids.get(&task) {
            Some(id) => s.info.current_task.fact(Ok(*id)),
            None if !context.reach.is_whole() => Fact::unknown(NOT_LOOKED_FOR),
            None => Fact::unknown(Common::TaskAtUnreadable { task }),
        },
        (Err(why), None) => why.into(),
    };
    let thread_num = match (&why_none, &team) {
        (Some(why), _) => Fact::unknown(why),
        // In the root team an initial thread is alone.
        (None, Fact::Known { value: None, .. }) => s.info.team.fact(Ok(0)),
        (None, _) => s.info.ds_tid.fact(raw.view.count(&s.info.ds_tid)),
    };
    let icvs = match &why_none {
        Some(why) => Icvs::unknown(why),
        None if !context.reach.wants_icvs() => Icvs::unknown(NOT_LOOKED_FOR),
        None => context.icvs_of(&raw.view, task.get().and_then(|id| tasks.views.get(id.0)), teams.found.get(&raw.team)),
    };
    let placement = match &why_none {
        Some(why) => Placement::unknown(why),
        None if !context.reach.wants_icvs() => Placement::unknown(NOT_LOOKED_FOR),
        None => context.placement_of(&raw.view),
    };
    RawThread {
        tool_data: s.info.thread_tool_data.fact(raw.view.uint(&s.info.thread_tool_data)),
        outermost_tool_data: outermost_tool_data(context, raw),
        ompt_state: match &wait {
            // What is derived comes first.
            Fact::Known { value: Some(wait), origin }
                if !context.reach.is_whole() && wait.kind.state_fact(*origin).get().is_some() =>
            {
                Fact::unknown(NOT_LOOKED_FOR)
            }
            _ => ompt_state(context, &raw.view),
        },
        placement,
        lwp: raw.lwp,
        descriptor: raw.view.addr(),
        gtid: Some(raw.gtid),
        role,
        thread_num,
        team,
        task,
        wait,
        at_work: false,
        icvs,
    }
}

/// What a tool has filed with the root team of an initial thread.
fn outermost_tool_data(context: &Context<'_>, raw: &KmpThread) -> Fact<u64> {
    let s = &context.kmp.structs;
    if raw.uber != Some(true) {
        return Fact::unknown(Own::NotInitial);
    }
    if !context.reach.wants_tool() {
        return Fact::unknown(NOT_LOOKED_FOR);
    }
    let read = || {
        let root = raw.view.ptr(&s.info.root)?;
        let team = context.target.read_ptr(root.offset(s.root.root_team.offset()?))?;
        Ok(context.target.read_u64(team.offset(s.team.parallel_tool_data.offset()?))?)
    };
    s.team.parallel_tool_data.fact(read())
}

/// What the runtime keeps of the thread's state. Without a tool it keeps none, but the field has a value. That is zero,
/// which is the number of a state as well. For an initial thread of libomp 14 the value says that it works in parallel.
/// So it counts only where a tool has filed something, or under `OMP_DEBUG=enabled`.
fn ompt_state(context: &Context<'_>, thread: &StructData) -> Fact<OmptState> {
    let s = &context.kmp.structs.info;
    if !context.reach.wants_waits() {
        return Fact::unknown(NOT_LOOKED_FOR);
    }
    let read = || {
        if !context.keeps_for_tools() && context.field(thread, &s.thread_tool_data)? == 0 {
            return Ok(None);
        }
        let kept = match context.reach.is_whole() {
            true => thread.clone(),
            false => {
                let fields = [&s.ompt_state, &s.ompt_wait_id];
                StructData::read_fields(context.target, thread.addr(), s.size, &fields, &[])?
            }
        };
        Ok::<_, Reason>(Some(OmptState { number: kept.count(&s.ompt_state)?, wait_id: kept.uint(&s.ompt_wait_id)? }))
    };
    match read() {
        Ok(Some(state)) => s.ompt_state.fact(Ok(state)),
        Ok(None) => Fact::unknown(Own::NoState),
        Err(why) => why.into(),
    }
}
