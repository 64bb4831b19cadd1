//! Teams: reached from threads, with the regions they stand for.

use std::collections::{BTreeMap, HashMap};

use ompd_process::{Addr, TargetExt};

use super::threads::Idle;
use super::threads::Threads;
use super::{Barriers, Context, Notes};
use crate::bind::{Slot, StructData};
use crate::excerpt::{NOT_LOOKED_FOR, Tasks};
use crate::kmp::reason::Own;
use crate::limits;
use crate::model::*;
use crate::owner::CodeOwner;

/// One level of nesting: several serialized regions may share one `kmp_team`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Region {
    pub(super) level: u32,
    pub(super) team: Addr,
}

/// The teams that threads are in, and those around them.
#[derive(Default)]
pub(super) struct Teams {
    pub(super) found: BTreeMap<Addr, StructData>,
    pub(super) regions: Vec<Region>,
    region_ids: HashMap<Region, TeamId>,
    /// The innermost region of each team that stands for any.
    innermost_regions: HashMap<Addr, TeamId>,
}

/// The teams of threads, and their regions by number.
pub(super) fn read(context: &Context<'_>, threads: &Threads, notes: &mut Notes) -> Teams {
    let mut teams = Teams { found: found_from(context, threads, notes), ..Teams::default() };
    teams.number(context);
    teams
}

/// One team that was read; nothing if it is none.
pub(super) fn of_one(context: &Context<'_>, threads: &Threads, team: &StructData, notes: &mut Notes) -> Option<Teams> {
    notes.check.judge(&identities(context, threads, team).ok()?).ok()?;
    let mut teams = Teams { found: BTreeMap::from([(team.addr(), team.clone())]), ..Teams::default() };
    teams.number(context);
    Some(teams)
}

/// Teams are reached from the threads inside them, and from there outwards.
fn found_from(context: &Context<'_>, threads: &Threads, notes: &mut Notes) -> BTreeMap<Addr, StructData> {
    let mut found = BTreeMap::new();
    let starts: Vec<Addr> = threads.list.iter().filter(|t| matches!(t.idle, Idle::No)).map(|t| t.team).collect();
    for start in starts {
        let mut at = start;
        for depth in 0.. {
            if at.is_null() || found.contains_key(&at) {
                break;
            }
            if depth == limits::TEAM_DEPTH {
                notes.issue(format!("team {at}"), Trouble::EndlessTeamsCut);
                break;
            }
            let s = &context.kmp.structs.team;
            let read = context.team(at).and_then(|view| {
                let identities = identities(context, threads, &view)?;
                notes.check.judge(&identities)?;
                // Needed to tell how many regions the team stands for.
                context.serialized(&view)?;
                let parent = if context.reach.stays_inside() { Addr::NULL } else { view.ptr(&s.parent)? };
                Ok((view, parent))
            });
            match read {
                Ok((view, parent)) => {
                    found.insert(at, view);
                    at = parent;
                }
                Err(why) => {
                    notes.issue(format!("team {at}"), why);
                    break;
                }
            }
        }
    }
    found
}

/// Identities every team satisfies, in words for the case that they fail, and whether they hold.
fn identities(
    context: &Context<'_>,
    threads: &Threads,
    view: &StructData,
) -> Result<Vec<(&'static str, bool)>, Reason> {
    let s = &context.kmp.structs.team;
    let (nproc, level) = (view.int(&s.nproc)?, view.int(&s.level)?);
    let active = if context.reach.wants_active_level(nproc) { view.int(&s.active_level)? } else { 0 };
    let sized = (1..=limits::TEAM_SIZE as i64).contains(&nproc);
    let mut found = vec![
        ("the number of threads of a team is implausible", sized),
        ("the nesting levels of a team contradict each other", level >= 0 && (0..=level).contains(&active)),
    ];
    // Of the team of a thread that is looked at by itself, that one was followed.
    if sized && context.reach.is_whole() {
        let first = context.target.read_ptr(view.ptr(&s.threads)?)?;
        // A team of one may be led by a thread that is in none.
        let ours = nproc == 1 || threads.by_addr.contains_key(&first);
        found.push(("thread 0 of a team is no thread of the runtime", ours));
    }
    Ok(found)
}

impl Teams {
    /// Regions a team stands for, outermost first. `t_serialized` counts serialized regions nested directly in each
    /// other; they share one team whose level is that of the innermost. Level 0 is no region.
    pub(super) fn regions_of(&self, context: &Context<'_>, team: Addr) -> Vec<Region> {
        let s = &context.kmp.structs.team;
        let Some(view) = self.found.get(&team) else { return Vec::new() };
        let level = view.count(&s.level).unwrap_or(0);
        let nested = context.serialized(view).unwrap_or(0).clamp(1, level.max(1));
        (0..nested.min(limits::TEAM_DEPTH as u32))
            .rev()
            .map(|inner| Region { level: level.saturating_sub(inner), team })
            .filter(|r| r.level > 0)
            .collect()
    }

    /// Checks that a team's level fits that of its parent. A serialized team is as much deeper as it has been
    /// serialized, any other team by one. A team of a league is deeper by one less, since a `teams` region is no level
    /// (`__kmp_fork_call`).
    fn fits(&self, context: &Context<'_>, team: Addr) -> Result<(), Reason> {
        let s = &context.kmp.structs.team;
        let Some(view) = self.found.get(&team).filter(|_| !context.reach.stays_inside()) else { return Ok(()) };
        let Some(parent) = self.found.get(&view.ptr(&s.parent)?) else { return Ok(()) };
        let (own, outer) = (view.count(&s.level)?, parent.count(&s.level)?);
        let by = context.serialized(view)?.max(1);
        match own.checked_sub(outer).is_some_and(|deeper| deeper == by || deeper + 1 == by) {
            true => Ok(()),
            false => Err(Reason::from(Common::LevelsContradict { own, outer })),
        }
    }

    /// Parents before children, then by address: ids are stable between two looks at an unchanged process.
    fn number(&mut self, context: &Context<'_>) {
        let mut regions: Vec<Region> = self.found.keys().flat_map(|team| self.regions_of(context, *team)).collect();
        regions.sort_unstable();
        self.region_ids = regions.iter().enumerate().map(|(i, r)| (*r, TeamId(i))).collect();
        self.regions = regions;
        let innermost = |team: &Addr| Some((*team, *self.region_ids.get(self.regions_of(context, *team).last()?)?));
        self.innermost_regions = self.found.keys().filter_map(innermost).collect();
    }

    /// The innermost region of the team at `addr`, an address read through `slot`; NULL and level 0 stand for none.
    pub(super) fn team_at(&self, addr: Addr, slot: &Slot) -> Fact<Option<TeamId>> {
        if addr.is_null() || self.found.contains_key(&addr) {
            slot.fact(Ok(self.innermost(addr)))
        } else {
            Fact::unknown(Common::TeamAtUnreadable { addr })
        }
    }

    /// The innermost region of a team.
    pub(super) fn innermost(&self, team: Addr) -> Option<TeamId> {
        self.innermost_regions.get(&team).copied()
    }

    /// The function a region's body was outlined into. For code made by GCC the microtask is a wrapper inside the
    /// runtime, and its first argument is the function (`__kmp_GOMP_microtask_wrapper`). Serialized regions entered
    /// without `__kmpc_fork_call` leave the field as it was, so for them it says nothing.
    pub(super) fn region_function(&self, context: &Context<'_>, team: Addr) -> Fact<Addr> {
        let s = &context.kmp.structs.team;
        let Some(view) = self.found.get(&team) else { return Fact::unknown(Own::TheTeamUnreadable) };
        let read = || -> Result<Fact<Addr>, Reason> {
            if context.serialized(view)? > 0 {
                return Ok(Fact::unknown(Own::NoSerializedFunction));
            }
            let pkfn = view.ptr(&s.pkfn)?;
            if pkfn.is_null() {
                return Ok(Fact::unknown(Own::FunctionNotSet));
            }
            match context.kmp.own_code.owner(context.target, pkfn) {
                CodeOwner::Other => return Ok(s.pkfn.fact(Ok(pkfn))),
                CodeOwner::Unclear => {
                    return Ok(Fact::unknown(Own::MicrotaskOfEither));
                }
                CodeOwner::Runtime => {}
            }
            if view.count(&s.argc)? == 0 {
                return Ok(Fact::unknown(Own::MicrotaskOfRuntime));
            }
            let argv = view.ptr(&s.argv)?;
            Ok(s.argv.fact(Ok(context.target.read_ptr(argv)?)))
        };
        read().unwrap_or_else(Fact::from)
    }

    /// What is told of teams, in their order.
    pub(super) fn raw(&self, context: &Context<'_>, threads: &Threads) -> Vec<RawTeam> {
        let s = &context.kmp.structs.team;
        let mut teams = Vec::with_capacity(self.regions.len());
        for region in self.regions.iter().copied() {
            let view = self.found[&region.team].clone();
            let siblings = self.regions_of(context, region.team);
            let outermost = siblings.first() == Some(&region);
            let size = view.count(&s.nproc);
            let parent = if outermost {
                match view.ptr(&s.parent) {
                    _ if context.reach.stays_inside() => Fact::unknown(NOT_LOOKED_FOR),
                    Ok(parent) => self.team_at(parent, &s.parent),
                    Err(why) => why.into(),
                }
            } else {
                let outer = Region { level: region.level - 1, team: region.team };
                s.serialized.fact(Ok(self.region_ids.get(&outer).copied()))
            };
            let serialized = context.serialized(&view).map(|n| n > 0);
            // `__kmp_fork_call` sets it for each region that it serializes there.
            let location = match context.serialized(&view) {
                Ok(..=1) => context.line_in(&view, &s.ident),
                Ok(_) => Fact::unknown(Own::OnePosition),
                Err(ref why) => Fact::unknown(why),
            };
            teams.push(RawTeam {
                // Of regions inside it that it stands for as well the runtime keeps it elsewhere.
                tool_data: match context.serialized(&view) {
                    Ok(..=1) => s.parallel_tool_data.fact(view.uint(&s.parallel_tool_data)),
                    Ok(_) => Fact::unknown(Own::ToolDataElsewhere),
                    Err(why) => why.into(),
                },
                descriptor: region.team,
                members: members_of(context, threads, &view, size.as_ref().copied().unwrap_or(0)),
                serialized: s.serialized.fact(serialized),
                size: s.nproc.fact(size),
                level: s.level.fact(self.fits(context, region.team).map(|()| region.level)),
                active_level: s.active_level.fact(view.count(&s.active_level)),
                parent,
                // Serialized regions nested directly in each other are entered by thread 0 of a team of one.
                primary_num: s.master_tid.fact(if outermost { view.count(&s.master_tid) } else { Ok(0) }),
                function: self.region_function(context, region.team),
                location,
                barrier: barrier_of(context, &view),
            });
        }
        teams
    }
}

/// Kernel thread ids of the members of a team, by number.
fn members_of(context: &Context<'_>, threads: &Threads, team: &StructData, size: u32) -> Vec<Option<i32>> {
    if !context.reach.is_whole() {
        return Vec::new();
    }
    let s = &context.kmp.structs.team;
    let width = u64::from(context.target.arch().pointer_bytes);
    let array = team.ptr(&s.threads).unwrap_or(Addr::NULL);
    (0..u64::from(size).min(limits::TEAM_SIZE))
        .map(|i| {
            let member = context.target.read_ptr(array.offset(i * width)).ok()?;
            threads.by_addr.get(&member).and_then(|index| threads.list[*index].lwp)
        })
        .collect()
}

fn barrier_of(context: &Context<'_>, team: &StructData) -> Fact<Barrier> {
    let s = &context.kmp.structs.team;
    if context.serialized(team).is_ok_and(|n| n > 0) {
        return Fact::unknown(Common::LoneTeam);
    }
    let passed = || {
        // Each kind of barrier counts for itself, by 4.
        [Barriers::Plain, Barriers::ForkJoin, Barriers::Reduction].into_iter().try_fold(0u64, |sum, which| {
            let shared = team.within(&s.bar, which as u64, context.kmp.structs.balign.size)?;
            Ok::<u64, Reason>(sum.wrapping_add(shared.uint(&context.kmp.structs.balign.arrived)? >> 2))
        })
    };
    let passed = passed().ok();
    s.nproc.fact(team.count(&s.nproc).map(|size| Barrier { inside: None, passed, at_end: None, size }))
}

impl Context<'_> {
    /// The members of a team, as it lists them.
    pub(super) fn members(&self, team: &StructData) -> Result<Vec<Addr>, Reason> {
        let s = &self.kmp.structs.team;
        let size = u64::from(team.count(&s.nproc)?);
        if !(1..=limits::TEAM_SIZE).contains(&size) {
            return Err(Reason::from(Common::ImplausibleTeamSize));
        }
        self.read_pointers(team.ptr(&s.threads)?, 0, size)
    }

    /// A team, as far as anything of it is known.
    pub(super) fn team(&self, addr: Addr) -> Result<StructData, Reason> {
        let s = &self.kmp.structs.team;
        if self.reach.is_whole() {
            return StructData::read(self.target, addr, s.size);
        }
        let mut fields: Vec<&Slot> = vec![&s.nproc, &s.level, &s.threads];
        if !self.reach.stays_inside() {
            fields.push(&s.parent);
        }
        let of_task = self.reach.tasks() != Some(Tasks::None);
        if of_task {
            fields.push(&s.implicit_tasks);
        }
        if self.reach.wants_functions() {
            fields.extend([&s.pkfn, &s.argc, &s.argv]);
        }
        if self.reach.wants_tool() && !of_task {
            fields.push(&s.parallel_tool_data);
        }
        let size = s.nproc.field()?;
        let size = self.target.read_uint(addr.offset(size.offset), size.size)?;
        if self.reach.wants_active_level(size as i64) {
            fields.extend([&s.active_level, &s.serialized]);
        }
        StructData::read_fields(self.target, addr, s.size, &fields, &[])
    }

    /// How often a team is serialized. Only a team of one thread is; of others that is not read in a look at one thread.
    pub(super) fn serialized(&self, team: &StructData) -> Result<u32, Reason> {
        let s = &self.kmp.structs.team;
        match team.count(&s.nproc) {
            Ok(2..) if !self.reach.is_whole() => Ok(0),
            _ => team.count(&s.serialized),
        }
    }
}
