//! Worksharing loops: those whose iterations the runtime hands out, out of the dispatch buffers of teams. A loop with a
//! static schedule, whose members compute their shares by themselves, leaves nothing.

use std::collections::BTreeMap;

use ompd_process::{Addr, TargetExt};

use super::super::schema::{CANCEL, Structs};
use super::doacross::Nests;
use super::teams::Teams;
use super::{Context, Notes};
use crate::bind::{Slot, StructData};
use crate::kmp::reason::Own;
use crate::limits;
use crate::model::*;

/// State of a member's share of a loop with stealing: others may take from it. In any other state it has none left, or is
/// about to get one.
const STEAL_READY: u64 = 2;

/// What a loop is told by: the fields for loop variables of four bytes, or those for eight.
struct Fields<'s> {
    count: &'s Slot,
    lb: &'s Slot,
    ub: &'s Slot,
    st: &'s Slot,
    tc: &'s Slot,
    chunk: &'s Slot,
    ordered_lower: &'s Slot,
    ordered_upper: &'s Slot,
    iteration: &'s Slot,
    num_done: &'s Slot,
    ordered: &'s Slot,
}

/// One member that is in a loop.
struct Part {
    member: u32,
    /// Its own data; none in a `sections` construct that the runtime knows as one.
    private: Option<StructData>,
}

/// Schedules as the runtime numbers them after it has looked at modifiers and at what it was told to use (`enum sched_type`).
fn schedule(number: u64) -> Option<LoopSchedule> {
    Some(match number {
        // Chunked, plain, greedy, balanced, balanced and chunked.
        33 | 34 | 40 | 41 | 45 => LoopSchedule::Static,
        35 => LoopSchedule::Dynamic,
        // Chunked, iterative, analytical, for SIMD.
        36 | 42 | 43 | 46 => LoopSchedule::Guided,
        44 => LoopSchedule::StaticSteal,
        _ => return None,
    })
}
/// The guided schedules whose shared counter counts iterations.
const GUIDED_BY_ITERATION: [u64; 2] = [42, 46];
/// The static schedule whose chunk is a member's whole share, which takes the place of the bounds.
const BALANCED: u64 = 41;

fn fields(s: &Structs, wide: bool) -> Fields<'_> {
    let (p, h) = (&s.loop_private, &s.loop_shared);
    if wide {
        Fields {
            count: &p.count64,
            lb: &p.lb64,
            ub: &p.ub64,
            st: &p.st64,
            tc: &p.tc64,
            chunk: &p.chunk64,
            ordered_lower: &p.ordered_lower64,
            ordered_upper: &p.ordered_upper64,
            iteration: &h.iteration64,
            num_done: &h.num_done64,
            ordered: &h.ordered64,
        }
    } else {
        Fields {
            count: &p.count32,
            lb: &p.lb32,
            ub: &p.ub32,
            st: &p.st32,
            tc: &p.tc32,
            chunk: &p.chunk32,
            ordered_lower: &p.ordered_lower32,
            ordered_upper: &p.ordered_upper32,
            iteration: &h.iteration32,
            num_done: &h.num_done32,
            ordered: &h.ordered32,
        }
    }
}

/// Reads the loops of teams.
struct LoopReader<'a> {
    context: &'a Context<'a>,
    notes: &'a mut Notes,
    loops: Vec<Loop>,
    /// Cancellation is enabled, or whether it is could not be read. Members of a cancelled loop leave it without a trace: what
    /// `__kmp_dispatch_init` has set stays until the next loop.
    may_be_cancelled: bool,
}

/// The loops that members of teams are in.
pub(super) fn read(context: &Context<'_>, teams: &Teams, notes: &mut Notes) -> Vec<Loop> {
    let cancels = context.global(CANCEL).and_then(|at| Ok(context.target.read_u32(at)?));
    let may_be_cancelled = !matches!(cancels, Ok(0));
    let mut reader = LoopReader { context, notes, loops: Vec::new(), may_be_cancelled };
    let mut told = false;
    for (addr, team) in &teams.found {
        let Some(id) = teams.innermost(*addr) else { continue };
        if let Err(why) = reader.read_loops_of(id, team)
            && !why.is_layout()
            && !std::mem::replace(&mut told, true)
        {
            reader.notes.issue(format!("loops of team {addr}"), why);
        }
    }
    reader.loops
}

impl LoopReader<'_> {
    fn read_loops_of(&mut self, id: TeamId, team: &StructData) -> Result<(), Reason> {
        let kmp = self.context.kmp;
        let s = &kmp.structs;
        // In a team of one thread there is nothing to share.
        if team.count(&s.team.serialized)? > 0 {
            return Ok(());
        }
        let (array, members) = (team.ptr(&s.team.dispatch)?, team.count(&s.team.nproc)?);
        let stride = s.disp.size.get()?;
        let addrs: Vec<Addr> = (0..u64::from(members)).map(|n| array.offset(n.wrapping_mul(stride))).collect();
        let mut loops: BTreeMap<Addr, Vec<(u32, Addr)>> = BTreeMap::new();
        let mut nests = Nests::default();
        let ended = self.context.ends_doacross_loops(team)?;
        let mut member = 0;
        for batch in addrs.chunks(limits::BATCH) {
            self.notes.bulk.spend(batch.len() as u64)?;
            for data in StructData::read_each(self.context.target, batch, stride) {
                let data = data?;
                let shared = data.ptr(&s.disp.sh_current)?;
                if !shared.is_null() {
                    loops.entry(shared).or_default().push((member, data.ptr(&s.disp.pr_current)?));
                }
                match (data.ptr(&s.disp.doacross_info), data.ptr(&s.disp.doacross_flags)) {
                    (Ok(_), Ok(_)) if shared.is_null() && !ended => {}
                    (Ok(info), Ok(flags)) => nests.note(member, info, flags),
                    (Err(why), _) | (_, Err(why)) if why.is_layout() => {}
                    (Err(why), _) | (_, Err(why)) => return Err(why),
                }
                member += 1;
            }
        }
        let begun = self.loops.len();
        for (shared, parts) in loops {
            let found = self.read_loop(id, members, shared, &parts)?;
            self.loops.push(found);
        }
        for nest in nests.all() {
            let (doacross, through) = self.context.doacross(&nest)?;
            // A member is in one loop at a time: what hands out the iterations is the same one.
            let same = |of: &&mut Loop| of.members.iter().any(|member| nest.members.contains(member));
            if let Some(of) = self.loops[begun..].iter_mut().find(same) {
                of.doacross = s.disp.doacross_flags.fact(Ok(Some(doacross)));
                of.members.extend(&nest.members);
                of.members.sort_unstable();
                of.members.dedup();
            } else {
                self.loops.push(self.context.plain_doacross(id, &nest, doacross, through));
            }
        }
        Ok(())
    }

    fn read_loop(&mut self, team: TeamId, size: u32, shared: Addr, parts: &[(u32, Addr)]) -> Result<Loop, Reason> {
        let kmp = self.context.kmp;
        let s = &kmp.structs;
        let (p, h) = (&s.loop_private, &s.loop_shared);
        let common = StructData::read(self.context.target, shared, h.size)?;
        let addrs: Vec<Addr> = parts.iter().map(|(_, private)| *private).filter(|private| !private.is_null()).collect();
        let mut views = StructData::read_each(self.context.target, &addrs, p.size.bytes_to_read()?).into_iter();
        let mut members: Vec<Part> = Vec::with_capacity(parts.len());
        for (member, private) in parts {
            let private = if private.is_null() { None } else { views.next().transpose()? };
            members.push(Part { member: *member, private });
        }
        let numbers: Vec<u32> = members.iter().map(|part| part.member).collect();
        let of_sections = |why: &Reason| Loop {
            kind: match self.may_be_cancelled {
                true => Fact::unknown(Own::MayBeCancelled),
                false => s.disp.pr_current.fact(Ok(LoopKind::Sections)),
            },
            schedule: s.disp.pr_current.fact(Ok(LoopSchedule::Dynamic)),
            chunk: s.disp.pr_current.fact(Ok(1)),
            step: s.disp.pr_current.fact(Ok(1)),
            completed: h.num_done32.fact(common.count(&h.num_done32)),
            members: numbers.clone(),
            ordered_turn: s.disp.pr_current.fact(Ok(None)),
            doacross: s.disp.pr_current.fact(Ok(None)),
            ..Loop::unknown(team, why)
        };
        // `__kmpc_sections_init`
        let Some(first) = members.iter().find_map(|part| part.private.as_ref()) else {
            return Ok(of_sections(&Own::SectionsNotCounted.into()));
        };
        let wide = match first.uint(&p.type_size)? {
            4 => false,
            8 => true,
            bytes => return Err(Reason::from(Own::ImplausibleVariable { bytes })),
        };
        let f = fields(&kmp.structs, wide);
        let number = first.uint(&p.schedule)?;
        let Some(how) = schedule(number) else {
            return Err(Reason::from(Own::NoSuchSchedule { number }));
        };
        let total = first.uint(f.tc)?;
        for private in members.iter().filter_map(|part| part.private.as_ref()) {
            if private.uint(f.tc)? != total || private.uint(&p.schedule)? != number {
                return Err(Reason::from(Own::MembersDisagree { shared }));
            }
        }
        let chunk = first.uint(f.chunk)?;
        let (lb, step) = (first.int(f.lb)?, first.int(f.st)?);
        let done = common.count(f.num_done)?;
        let chunked = number != BALANCED && chunk > 0;
        let shares =
            if how == LoopSchedule::StaticSteal { self.shares(&members, &f, total, chunk)? } else { Vec::new() };
        let given = match how {
            LoopSchedule::Dynamic => Ok(common.uint(f.iteration)?.saturating_mul(chunk).min(total)),
            LoopSchedule::Guided if GUIDED_BY_ITERATION.contains(&number) => Ok(common.uint(f.iteration)?.min(total)),
            LoopSchedule::Guided => Err(Own::UnequalChunks.into()),
            LoopSchedule::StaticSteal if members.len() as u64 + u64::from(done) == u64::from(size) => {
                let left: u64 = shares.iter().filter_map(|c| c.left).map(|(from, to)| to.saturating_sub(from)).sum();
                Ok(total.saturating_sub(left))
            }
            LoopSchedule::StaticSteal => Err(Own::UnbegunShares.into()),
            LoopSchedule::Static => Err(Reason::from(Common::OwnShares)),
        };
        // Bounds are kept without a word on whether they are signed. They are the same either way if none is negative, and
        // signed if one is: else there would be no iterations. Those of a balanced loop are a member's.
        let distance = i64::try_from(total.saturating_sub(1)).ok().and_then(|count| step.checked_mul(count));
        let last = distance.and_then(|distance| lb.checked_add(distance));
        let fits = |value: i64| wide || i32::try_from(value).is_ok();
        let plain = number != BALANCED && total > 0 && last.is_some_and(|last| fits(last) && (lb >= 0 || last >= 0));
        let value = |count: u64| -> Result<i64, Reason> {
            let distance = i64::try_from(count).ok().and_then(|count| step.checked_mul(count));
            let value = distance.and_then(|distance| lb.checked_add(distance)).filter(|_| plain);
            value.ok_or(Own::SignNotRecorded.into())
        };
        let told = |slot: &Slot, value: Result<i64, Reason>| match value {
            Ok(value) => slot.fact(Ok(value)),
            Err(why) => Fact::unknown(why),
        };
        let ordered = first.flag(&p.ordered)?;
        let turn = if ordered {
            p.ordered.fact(self.turn(&members, &f, common.uint(f.ordered)?))
        } else {
            p.ordered.fact(Ok(None))
        };
        // GCC's `sections` are a loop of this kind.
        let may_be_sections = how == LoopSchedule::Dynamic && chunk == 1 && step == 1 && lb == 1 && !ordered;
        let kind = match (self.may_be_cancelled, may_be_sections) {
            (true, _) => Fact::unknown(Own::MayBeCancelled),
            (false, true) => p.schedule.fact(Ok(LoopKind::LoopOrSections)),
            (false, false) => p.schedule.fact(Ok(LoopKind::Loop)),
        };
        Ok(Loop {
            team,
            kind,
            schedule: p.schedule.fact(Ok(how)),
            chunk: if chunked { f.chunk.fact(Ok(chunk)) } else { Fact::unknown(Common::OneShareEach) },
            iterations: f.tc.fact(Ok(total)),
            next: match given {
                Ok(_) if how == LoopSchedule::StaticSteal => Fact::unknown(Own::NextChunkOfEach),
                Ok(given) => told(f.lb, value(given)),
                Err(ref why) => Fact::unknown(why),
            },
            handed_out: match given {
                Ok(given) => f.iteration.fact(Ok(given)),
                Err(ref why) => Fact::unknown(why),
            },
            end: told(f.lb, value(total)),
            step: f.st.fact(Ok(step)),
            exhausted: match given {
                Ok(given) => f.iteration.fact(Ok(given >= total)),
                Err(ref why) => Fact::unknown(why),
            },
            completed: f.num_done.fact(Ok(done)),
            members: numbers,
            shares,
            ordered_turn: turn,
            doacross: s.disp.doacross_info.fact(Ok(None)),
        })
    }

    /// What members have left of their own: chunks from `count` on up to `ub`.
    fn shares(&self, members: &[Part], f: &Fields<'_>, total: u64, chunk: u64) -> Result<Vec<Chunk>, Reason> {
        let p = &self.context.kmp.structs.loop_private;
        let mut shares = Vec::new();
        for part in members {
            let Some(private) = &part.private else { continue };
            let own = match private.uint(&p.steal_flag) {
                Ok(state) => state == STEAL_READY,
                // Before LLVM 13 there is no such state.
                Err(why) if why.is_layout() => true,
                Err(why) => return Err(why),
            };
            let (from, to) = (private.uint(f.count)?, private.uint(f.ub)?);
            let iterations = |chunks: u64| chunks.saturating_mul(chunk).min(total);
            let left = (own && from < to).then(|| (iterations(from), iterations(to)));
            shares.push(Chunk { member: part.member, left });
        }
        Ok(shares)
    }

    /// The member whose chunk has the iteration whose turn it is.
    fn turn(&self, members: &[Part], f: &Fields<'_>, iteration: u64) -> Result<Option<u32>, Reason> {
        for part in members {
            let Some(private) = &part.private else { continue };
            if (private.uint(f.ordered_lower)?..=private.uint(f.ordered_upper)?).contains(&iteration) {
                return Ok(Some(part.member));
            }
        }
        Ok(None)
    }
}
