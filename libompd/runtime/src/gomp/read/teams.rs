//! Teams: reached from threads, kept if they live, numbered.

use std::collections::{BTreeMap, HashMap, HashSet};

use ompd_process::{Addr, TargetExt};

use super::threads::GompThread;
use super::{Context, NO_OMPT, Notes, known};
use crate::bind::{Slot, StructData};
use crate::excerpt::NOT_LOOKED_FOR;
use crate::gomp::reason::Own;
use crate::limits;
use crate::model::*;

/// A `gomp_team` reached from some thread.
pub(super) struct GompTeam {
    pub(super) view: StructData,
    pub(super) level: u32,
    pub(super) active_level: u32,
}

/// Why nothing is said of a thread whose team has no thread 0, or does not list it.
const UNSETTLED: Own = Own::Unsettled;

/// The teams that live.
#[derive(Default)]
pub(super) struct Teams {
    pub(super) found: BTreeMap<Addr, GompTeam>,
    pub(super) order: Vec<Addr>,
    ids: HashMap<Addr, TeamId>,
    /// A team could not be read: what lies in it cannot be recognised.
    pub(super) lost: bool,
    /// Members that execute a target region on the host: team, number there, thread.
    pub(super) beyond: Vec<(Addr, u32, i32)>,
}

/// The teams, and the threads with what these say of them.
pub(super) fn read(context: &Context<'_>, threads: Vec<GompThread>, notes: &mut Notes) -> (Vec<GompThread>, Teams) {
    let teams = found_from(context, &threads, notes);
    settle(context, threads, teams, notes)
}

/// The same of teams that have been found.
pub(super) fn settle(
    context: &Context<'_>,
    mut threads: Vec<GompThread>,
    mut teams: Teams,
    notes: &mut Notes,
) -> (Vec<GompThread>, Teams) {
    drop_ended(context, &mut threads, &mut teams, notes);
    teams.number();
    (threads, teams)
}

/// Teams are in no list: they are reached from the threads inside them and from there outwards.
pub(super) fn found_from(context: &Context<'_>, threads: &[GompThread], notes: &mut Notes) -> Teams {
    let mut teams = Teams::default();
    let s = &context.gomp.structs.team;
    let starts: Vec<(i32, Addr, u32, Result<u32, Reason>)> = threads
        .iter()
        .filter(|t| !t.idle)
        .map(|t| (t.lwp, t.team, t.level, t.view.u32(&context.gomp.structs.thread.active_level)))
        .collect();
    for (lwp, team, level, active_level) in starts {
        let (mut addr, mut level) = (team, level);
        let mut active = match active_level {
            Ok(active) => active,
            Err(why) => {
                notes.issue(format!("thread {lwp}"), why);
                continue;
            }
        };
        for depth in 0.. {
            if addr.is_null() || teams.found.contains_key(&addr) {
                break;
            }
            if depth == limits::TEAM_DEPTH {
                notes.issue(format!("team {addr}"), Trouble::EndlessTeamsCut);
                break;
            }
            let step = StructData::read(context.target, addr, s.size).and_then(|view| {
                let identities = identities(context, addr, &view)?;
                notes.check.judge(&identities)?;
                view.u32(&s.prev_team_id)?;
                let next = (view.ptr(&s.prev_team)?, view.u32(&s.prev_level)?, view.u32(&s.prev_active_level)?);
                Ok((view, next))
            });
            match step {
                Ok((view, next)) => {
                    if context.reach.is_whole() {
                        prefetch_tasks(context, addr, &view);
                    }
                    teams.found.insert(addr, GompTeam { view, level, active_level: active });
                    if context.reach.stays_inside() {
                        break;
                    }
                    (addr, level, active) = next;
                }
                Err(why) => {
                    teams.lost = true;
                    notes.issue(format!("team {addr}"), why);
                    break;
                }
            }
        }
    }
    teams
}

/// A team lives as long as its thread 0 is in it. A worker the pool no longer needs still points to the team of the
/// last region on its way out. That memory is no team any more, or another one by now, and the worker is in no
/// team.
fn drop_ended(context: &Context<'_>, threads: &mut [GompThread], teams: &mut Teams, notes: &mut Notes) {
    if !notes.issues.is_empty() {
        // Something could not be read, and it may be what leads to a team's thread 0.
        return;
    }
    let mut led = HashSet::new();
    let known = threads.iter().filter(|t| !t.idle).map(|thread| (thread.team, thread.team_id));
    let beyond = teams.beyond.iter().map(|(team, number, _)| (*team, *number));
    for (mut team, mut number) in known.chain(beyond) {
        while let Some(raw) = teams.found.get(&team).filter(|_| number == 0) {
            if !led.insert(team) {
                break;
            }
            let s = &context.gomp.structs.team;
            let (Ok(outer), Ok(outer_number)) = (raw.view.ptr(&s.prev_team), raw.view.u32(&s.prev_team_id)) else {
                break;
            };
            (team, number) = (outer, outer_number);
        }
    }
    for thread in threads {
        let unsettled = match teams.found.get(&thread.team).filter(|_| !thread.idle) {
            None => false,
            Some(_) if !led.contains(&thread.team) => true,
            Some(team) => match lists(context, team, thread) {
                Ok(listed) => !listed,
                Err(why) if why.is_layout() => false,
                Err(why) => {
                    notes.issue(format!("thread {}", thread.lwp), why);
                    true
                }
            },
        };
        if unsettled {
            thread.unsettled = Some(UNSETTLED.into());
            thread.idle = true;
        }
    }
    teams.found.retain(|addr, _| led.contains(addr));
}

/// True if the team knows the thread as its member of that number: by the address of its `ordered` semaphore
/// (`gomp_team_start`, `gomp_thread_start`). Memory of an ended team may hold a new one, to which a thread that is
/// still leaving does not belong.
fn lists(context: &Context<'_>, team: &GompTeam, thread: &GompThread) -> Result<bool, Reason> {
    let s = &context.gomp.structs;
    if thread.team_id == 0 {
        return Ok(true);
    }
    if u64::from(thread.team_id) >= team.view.uint(&s.team.nthreads)? {
        return Ok(false);
    }
    let width = u64::from(context.target.arch().pointer_bytes);
    let slot = team.view.ptr(&s.team.ordered_release)?.offset(u64::from(thread.team_id) * width);
    Ok(context.target.read_ptr(slot)? == thread.view.addr_of(&s.thread.release)?)
}

/// The implicit tasks of a team lie side by side, and behind them pointers to its members' semaphores.
fn prefetch_tasks(context: &Context<'_>, addr: Addr, team: &StructData) {
    let s = &context.gomp.structs;
    if let (Ok(first), Ok(size), Ok(n)) =
        (s.team.implicit_task.offset(), s.task.size.get(), team.uint(&s.team.nthreads))
    {
        let each = size.saturating_add(context.target.arch().pointer_bytes.into());
        context.target.prefetch(&[(addr.offset(first), n.saturating_mul(each))]);
    }
}

/// A level of nesting that is to be `by` deeper than the one around it, which the team itself keeps (`gomp_team_start`). The
/// other one is a field of the thread, which is set before and after the team's.
fn deeper(own: u32, outer: Result<u32, Reason>, by: u32) -> Result<u32, Reason> {
    let outer = outer?;
    match outer.checked_add(by) {
        Some(expected) if expected == own => Ok(own),
        _ => Err(Reason::from(Common::LevelsContradict { own, outer })),
    }
}

/// Identities every team satisfies, whatever the program does, in words for the case that they fail, and whether they
/// hold. What the layout lacks cannot be checked. `gomp_new_team` puts the array of release pointers behind the
/// implicit tasks and points its first entry at `master_release`; `gomp_barrier_init` sets the barrier's total to the
/// team's size.
fn identities(context: &Context<'_>, addr: Addr, view: &StructData) -> Result<Vec<(&'static str, bool)>, Reason> {
    let s = &context.gomp.structs.team;
    let mut found = Vec::new();
    let nthreads = view.uint(&s.nthreads)?;
    found.push(("the number of threads of a team is implausible", (1..=limits::TEAM_SIZE).contains(&nthreads)));
    if let Some(total) = known(view.uint(&s.barrier_total))? {
        found.push(("the barrier of a team is not for as many threads as the team has", total == nthreads));
    }
    let Some(ordered) = known(view.ptr(&s.ordered_release))? else { return Ok(found) };
    if let (Ok(size), Ok(first)) = (context.gomp.structs.task.size.get(), s.implicit_task.offset()) {
        let end = addr.offset(first).offset(nthreads.saturating_mul(size));
        found.push(("the release pointers of a team do not follow its implicit tasks", ordered == end));
    }
    if let Ok(master) = view.addr_of(&s.master_release) {
        let first = context.target.read_ptr(ordered)?;
        found.push(("the first release pointer of a team does not lead to its thread 0", first == master));
    }
    Ok(found)
}

impl Teams {
    /// Parents before children, then by address: ids are stable between two looks at an unchanged process.
    fn number(&mut self) {
        let mut order: Vec<(u32, Addr)> = self.found.iter().map(|(addr, team)| (team.level, *addr)).collect();
        order.sort_unstable();
        self.order = order.into_iter().map(|(_, addr)| addr).collect();
        self.ids = self.order.iter().enumerate().map(|(i, addr)| (*addr, TeamId(i))).collect();
    }

    /// The team at `addr`, an address read through `slot`; NULL stands for none.
    pub(super) fn team_at(&self, addr: Addr, slot: &Slot) -> Fact<Option<TeamId>> {
        match self.team_id(addr) {
            _ if addr.is_null() => slot.fact(Ok(None)),
            Some(id) => slot.fact(Ok(Some(id))),
            None => Fact::unknown(Common::TeamAtUnreadable { addr }),
        }
    }

    pub(super) fn team_id(&self, addr: Addr) -> Option<TeamId> {
        self.ids.get(&addr).copied()
    }

    /// Address and thread of every implicit task: they live in an array at the end of their team.
    pub(super) fn implicit_task_of(&self, context: &Context<'_>, task: Addr) -> Option<(Addr, u32)> {
        let size = context.gomp.structs.task.size.get().ok()?;
        let first = context.gomp.structs.team.implicit_task.offset().ok()?;
        let (team, raw) = self.found.range(..=task).next_back()?;
        let nthreads = raw.view.uint(&context.gomp.structs.team.nthreads).ok()?;
        let distance = task.0.checked_sub(team.offset(first).0)?;
        let index = distance / size;
        (distance % size == 0 && index < nthreads).then_some((*team, index as u32))
    }

    /// True if the address lies in a team.
    pub(super) fn contain(&self, context: &Context<'_>, addr: Addr) -> bool {
        let Ok(size) = context.gomp.structs.team.size.get() else { return false };
        self.found.range(..=addr).next_back().is_some_and(|(team, _)| addr.0 - team.0 < size)
    }

    /// Followed outwards, a thread the program made is thread 0 of every team up to the outermost. Where a team on the way
    /// is not known, neither is this.
    pub(super) fn role(&self, context: &Context<'_>, raw: &GompThread) -> Result<Role, Reason> {
        if raw.idle {
            return Ok(Role::IdleWorker);
        }
        let s = &context.gomp.structs.team;
        let (mut team, mut number) = (raw.team, raw.team_id);
        for _ in 0..limits::TEAM_DEPTH {
            if team.is_null() {
                return Ok(Role::Initial);
            }
            if number != 0 {
                return Ok(Role::Worker);
            }
            let Some(outer) = self.found.get(&team) else {
                return Err(Reason::from(Common::TeamAtUnreadable { addr: team }));
            };
            (number, team) = (outer.view.u32(&s.prev_team_id)?, outer.view.ptr(&s.prev_team)?);
        }
        Err(Reason::from(Common::EndlessTeams))
    }

    /// What is told of teams, in their order.
    pub(super) fn raw(&self, context: &Context<'_>, threads: &[GompThread], notes: &mut Notes) -> Vec<RawTeam> {
        let s = &context.gomp.structs;
        let mut teams: Vec<RawTeam> = Vec::with_capacity(self.order.len());
        for addr in &self.order {
            let raw = &self.found[addr];
            let parent = match raw.view.ptr(&s.team.prev_team) {
                Ok(parent) if context.reach.stays_inside() && !parent.is_null() && self.team_id(parent).is_none() => {
                    Fact::unknown(NOT_LOOKED_FOR)
                }
                Ok(parent) => self.team_at(parent, &s.team.prev_team),
                Err(why) => why.into(),
            };
            let size = raw.view.u32(&s.team.nthreads);
            let active_level = size.clone().and_then(|size| {
                deeper(raw.active_level, raw.view.u32(&s.team.prev_active_level), u32::from(size > 1))
            });
            teams.push(RawTeam {
                tool_data: Fact::unknown(NO_OMPT),
                descriptor: *addr,
                members: vec![None; size.as_ref().copied().unwrap_or(0) as usize],
                serialized: s.team.nthreads.fact(size.clone().map(|n| n == 1)),
                size: s.team.nthreads.fact(size),
                level: s.thread.level.fact(deeper(raw.level, raw.view.u32(&s.team.prev_level), 1)),
                active_level: s.thread.active_level.fact(active_level),
                parent,
                primary_num: s.team.prev_team_id.fact(raw.view.u32(&s.team.prev_team_id)),
                function: Fact::unknown(Own::NoRegionFunction),
                location: Fact::unknown(Own::NoPositions),
                barrier: context.barrier_of(raw),
            });
        }
        // A thread belongs to its innermost team, and, as long as it is thread 0 there, to the enclosing one as well.
        for thread in threads.iter().filter(|t| !t.idle) {
            let (mut team, mut number) = (thread.team, thread.team_id);
            for _ in 0..limits::TEAM_DEPTH {
                let (Some(id), Some(raw)) = (self.team_id(team), self.found.get(&team)) else { break };
                match teams[id.0].members.get_mut(number as usize) {
                    Some(member) => *member = Some(thread.lwp),
                    None => notes.issue(format!("thread {}", thread.lwp), Trouble::NumberOutsideTeam { number }),
                }
                if number != 0 {
                    break;
                }
                match (raw.view.ptr(&s.team.prev_team), raw.view.u32(&s.team.prev_team_id)) {
                    (Ok(outer), Ok(outer_number)) => (team, number) = (outer, outer_number),
                    _ => break,
                }
            }
        }
        for (team, number, lwp) in &self.beyond {
            let member = self.team_id(*team).and_then(|id| teams[id.0].members.get_mut(*number as usize));
            member.into_iter().for_each(|member| *member = member.or(Some(*lwp)));
        }
        teams
    }
}
