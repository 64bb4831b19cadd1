//! Worksharing constructs that members of teams are in.
//!
//! A thread gets a `gomp_work_share` for each loop that is not plain `static`, for `sections`, and for `single
//! copyprivate` (`gomp_work_share_start` in work.c). It points to this record until it is in the next construct. While
//! it is in the construct, it also remembers the record before. It forgets that one when it is through
//! (`gomp_work_share_end`, `gomp_work_share_end_nowait`). With `nowait` the members that are through are counted;
//! without, they wait at the team's barrier.
//!
//! In the loop of a combined construct (`parallel for`) there is no record before. The record may then as well be what
//! an earlier region has left in the memory of the team. But a loop that is over has handed out all its iterations. So
//! a record with some left is that of a loop its threads are in, where nothing can be cancelled.

use std::collections::{BTreeMap, HashMap};

use ompd_process::{Addr, TargetExt};

use super::teams::Teams;
use super::threads::GompThread;
use super::{Context, Notes};
use crate::bind::StructData;
use crate::gomp::reason::Own;
use crate::model::loops;
use crate::model::*;

/// `enum gomp_schedule_type`: as `omp_sched_t`, the sign bit for `monotonic`.
mod sched {
    pub(super) const STATIC: u32 = 1;
    pub(super) const DYNAMIC: u32 = 2;
    pub(super) const GUIDED: u32 = 3;
    pub(super) const MONOTONIC: u32 = 0x8000_0000;
}

/// Bit of `mode`: the loop is of an unsigned type and goes downwards (`gomp_loop_ull_init`).
const UNSIGNED_DOWN: u64 = 2;

/// What a work share says of the iterations.
pub(super) struct Extent {
    pub(super) next: i64,
    pub(super) end: i64,
    pub(super) step: i64,
    /// All chunks have been handed out; `None` where that depends on whether the loop variable is signed.
    exhausted: Option<bool>,
}

impl Extent {
    /// How far it is from here to the end, whichever way the loop goes and of whatever type it is.
    fn distance(&self) -> u64 {
        let (from, to) = if self.step > 0 { (self.next, self.end) } else { (self.end, self.next) };
        to.wrapping_sub(from) as u64
    }
}

/// The loops of all teams, those of one team by address.
pub(super) fn read(
    context: &Context<'_>,
    threads: &[GompThread],
    teams: &Teams,
    (raw_teams, raw_threads): (&[RawTeam], &[RawThread]),
    notes: &mut Notes,
) -> Vec<Loop> {
    let s = &context.gomp.structs.thread;
    // Members that are in it, and those that are if it is not over.
    let mut shares: BTreeMap<(TeamId, Addr), (Vec<u32>, Vec<u32>)> = BTreeMap::new();
    let mut file = |team: Addr, number: u32, state: Result<(Addr, Addr), Reason>, of: &dyn Fn() -> String| {
        let Some(team) = teams.team_id(team) else { return };
        match state {
            Ok((share, _)) if share.is_null() => {}
            Ok((share, last)) => {
                let (inside, perhaps) = shares.entry((team, share)).or_default();
                if last.is_null() { perhaps } else { inside }.push(number);
            }
            Err(why) if why.is_layout() => {}
            Err(why) => notes.issue(of(), why),
        }
    };
    for thread in threads.iter().filter(|t| !t.idle && !t.team.is_null()) {
        let state = thread.view.ptr(&s.work_share).and_then(|at| Ok((at, thread.view.ptr(&s.last_work_share)?)));
        file(thread.team, thread.team_id, state, &|| format!("thread {}", thread.lwp));
    }
    // Who has opened an inner region is still in its loop of the outer one.
    for (addr, team) in &teams.found {
        let prev = &context.gomp.structs.team;
        let (Ok(outer), Ok(number)) = (team.view.ptr(&prev.prev_team), team.view.u32(&prev.prev_team_id)) else {
            continue;
        };
        if !outer.is_null() {
            file(outer, number, context.outer_shares(*addr), &|| format!("team {addr}"));
        }
    }
    // A thread that waits for its turn is in an ordered loop. libgomp does not record that for other threads.
    let turns: HashMap<i32, bool> = raw_threads
        .iter()
        .filter_map(|t| Some((t.lwp?, t.wait.value()?.as_ref()?.kind == WaitKind::Ordered)))
        .collect();
    let mut loops = Vec::new();
    let nothing_cancelled = !context.may_be_cancelled();
    for ((team, share), (inside, perhaps)) in shares {
        if inside.is_empty() && !nothing_cancelled {
            continue;
        }
        let of = &raw_teams[team.0];
        let lwp = |number: &u32| of.members.get(*number as usize).copied().flatten();
        let ordered = inside.iter().chain(&perhaps).filter_map(lwp).any(|lwp| turns.get(&lwp) == Some(&true));
        match context.loop_at(team, of, share, (inside, perhaps), (ordered, nothing_cancelled)) {
            Ok(found) => loops.extend(found),
            Err(why) if why.is_layout() => {}
            Err(why) => notes.issue(format!("worksharing construct {share}"), why),
        }
    }
    loops
}

impl Context<'_> {
    /// The work shares, current and last, of the thread that has opened a region, from the time before. `prev_ts` is a
    /// `gomp_team_state` as `ts` is, so that its members have the same distances.
    fn outer_shares(&self, team: Addr) -> Result<(Addr, Addr), Reason> {
        let (thread, prev_team) = (&self.gomp.structs.thread, self.gomp.structs.team.prev_team.offset()?);
        let of_team = thread.team.offset()?;
        let read = |offset: u64| {
            let at = prev_team.wrapping_add(offset).wrapping_sub(of_team);
            Ok::<_, Reason>(self.target.read_ptr(team.offset(at))?)
        };
        Ok((read(thread.work_share.offset()?)?, read(thread.last_work_share.offset()?)?))
    }

    /// The loop with this record; nothing if it is a construct of another kind.
    fn loop_at(
        &self,
        id: TeamId,
        team: &RawTeam,
        share: Addr,
        (inside, perhaps): (Vec<u32>, Vec<u32>),
        (ordered, nothing_cancelled): (bool, bool),
    ) -> Result<Option<Loop>, Reason> {
        let s = &self.gomp.structs.work_share;
        let view = StructData::read(self.target, share, s.size)?;
        let schedule = match view.u32(&s.sched)? & !sched::MONOTONIC {
            sched::STATIC => LoopSchedule::Static,
            sched::DYNAMIC => LoopSchedule::Dynamic,
            sched::GUIDED => LoopSchedule::Guided,
            // A `single copyprivate` sets none, and nothing else is ever stored.
            _ => return Ok(None),
        };
        // The step is never 0. A `single copyprivate` leaves what was there.
        if view.int(&s.incr)? == 0 {
            return Ok(None);
        }
        let extent = self.extent(&view, schedule)?;
        // Of a static loop nothing tells.
        let exhausted = schedule == LoopSchedule::Static || extent.exhausted != Some(false);
        let mut members = inside;
        if !exhausted {
            members.extend(perhaps);
        }
        if members.is_empty() {
            return Ok(None);
        }
        members.sort_unstable();
        // What GCC asks for if it only needs memory for the construct: `scan`, `reduction(task, …)`.
        let is_for_memory = schedule == LoopSchedule::Static && (extent.next, extent.end, extent.step) == (0, 1, 1);
        let iterations = match schedule {
            _ if is_for_memory => Fact::unknown(Own::LoopForMemory),
            LoopSchedule::Static => s.next.fact(Ok(extent.distance().div_ceil(extent.step.unsigned_abs()))),
            _ => Fact::unknown(Own::LoopBeginForgotten),
        };
        let doacross = self.doacross(&view, schedule, &extent, team);
        let is_doacross = matches!(doacross, Ok(Some(_)));
        let ordered = ordered && !is_doacross;
        let kind = match schedule {
            _ if is_doacross => s.doacross.fact(Ok(LoopKind::Loop)),
            // The record of a loop that was cancelled has iterations left when it is used again.
            _ if exhausted || !nothing_cancelled => Fact::unknown(Own::SingleMayHaveIt),
            LoopSchedule::Dynamic => s.sched.fact(Ok(LoopKind::LoopOrSections)),
            _ => s.sched.fact(Ok(LoopKind::Loop)),
        };
        let completed = view.u32(&s.threads_completed).map(|through| match through {
            _ if !exhausted => Ok(0),
            // Without `nowait` they are those who have arrived at the barrier, where everyone goes next.
            0 => team.barrier.value().and_then(|barrier| barrier.inside).ok_or(()),
            through => Ok(through),
        });
        Ok(Some(Loop {
            team: id,
            kind,
            schedule: s.sched.fact(Ok(schedule)),
            chunk: s.chunk_size.fact(self.chunk(&view, schedule)),
            iterations,
            handed_out: match schedule {
                LoopSchedule::Static => Fact::unknown(Common::OwnShares),
                _ => Fact::unknown(Own::LoopBeginForgotten),
            },
            next: match schedule {
                LoopSchedule::Static => Fact::unknown(Common::OwnShares),
                _ => s.next.fact(Ok(extent.next)),
            },
            end: if is_for_memory { Fact::unknown(Own::LoopForMemory) } else { s.end.fact(Ok(extent.end)) },
            step: if is_for_memory { Fact::unknown(Own::LoopForMemory) } else { s.incr.fact(Ok(extent.step)) },
            exhausted: match extent.exhausted.filter(|_| schedule != LoopSchedule::Static) {
                Some(exhausted) => s.next.fact(Ok(exhausted)),
                None => Fact::unknown(Common::NotRecordedByRuntime),
            },
            completed: match completed {
                _ if is_for_memory => Fact::unknown(Own::LoopForMemory),
                Ok(Ok(through)) => s.threads_completed.fact(Ok(through)),
                Ok(Err(())) => Fact::unknown(Own::AtUnknownBarrier),
                Err(why) => why.into(),
            },
            members,
            shares: Vec::new(),
            ordered_turn: match ordered {
                true => s.ordered_team_ids.fact(self.turn(&view, schedule, team)),
                false if is_doacross => s.doacross.fact(Ok(None)),
                false => Fact::unknown(Own::OrderedNotRecorded),
            },
            doacross: s.doacross.fact(doacross),
        }))
    }

    /// Where the loop is. Signed and unsigned loops have the same record. The field `mode` is set for every unsigned loop, but for
    /// signed ones only with `dynamic` (`gomp_loop_init`, `gomp_loop_ull_init`).
    fn extent(&self, view: &StructData, schedule: LoopSchedule) -> Result<Extent, Reason> {
        let s = &self.gomp.structs.work_share;
        let (next, end, step) = (view.int(&s.next)?, view.int(&s.end)?, view.int(&s.incr)?);
        let is_unsigned_down = match schedule {
            LoopSchedule::Dynamic => Some(view.uint(&s.mode)? & UNSIGNED_DOWN != 0),
            _ => None,
        };
        if is_unsigned_down == Some(true) && step > 0 {
            return Err(Reason::from(Common::DirectionOfLoop));
        }
        let moves = view.int(&s.chunk_size)?.unsigned_abs();
        let exhausted = match is_unsigned_down {
            Some(true) => Some(next as u64 <= end as u64),
            Some(false) if step < 0 => Some(next <= end),
            _ => loops::left(next, end, step, moves).map(|left| left == 0),
        };
        Ok(Extent { next, end, step, exhausted })
    }

    /// Iterations of a chunk. Of `dynamic` loops libgomp keeps how far a chunk moves the loop variable.
    fn chunk(&self, view: &StructData, schedule: LoopSchedule) -> Result<u64, Reason> {
        let s = &self.gomp.structs.work_share;
        let (chunk, step) = (view.int(&s.chunk_size)?, view.int(&s.incr)?);
        let chunk = match schedule {
            LoopSchedule::Dynamic if chunk.wrapping_rem(step) == 0 => chunk.wrapping_div(step),
            LoopSchedule::Dynamic => return Err(Reason::from(Own::ChunkNoMultiple)),
            _ => chunk,
        };
        match u64::try_from(chunk) {
            Ok(0) => Err(Reason::from(Own::NoChunkAsked)),
            Ok(chunk) => Ok(chunk),
            Err(_) => Err(Reason::from(Own::NoChunkSize { chunk })),
        }
    }

    /// Whose turn it is: the first in the queue of those who have iterations (`gomp_ordered_first`, `gomp_ordered_next`). In a
    /// static loop the turn goes round, and the first entry is all there is of the queue (`gomp_ordered_static_next`).
    fn turn(&self, view: &StructData, schedule: LoopSchedule, team: &RawTeam) -> Result<Option<u32>, Reason> {
        let s = &self.gomp.structs.work_share;
        let entry = match schedule {
            LoopSchedule::Static => 0,
            _ if view.u32(&s.ordered_num_used)? == 0 => return Ok(None),
            _ => u64::from(view.u32(&s.ordered_cur)?).saturating_mul(4),
        };
        let member = self.target.read_u32(view.ptr(&s.ordered_team_ids)?.offset(entry))?;
        match team.size.get() {
            Some(size) if member >= size => Err(Reason::from(Own::TurnOfNoMember { number: member })),
            _ => Ok(Some(member)),
        }
    }
}
