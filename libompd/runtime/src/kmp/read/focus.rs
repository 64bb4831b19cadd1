//! How much is read. A look at one thread runs the same phases from that thread. Its descriptor is believed where its team
//! confirms it, and looked up in the table of threads where not.

use std::collections::{BTreeMap, HashSet};

use ompd_process::{Addr, Registers, Target, TargetExt};

use super::idle::{idle, uber_of};
use super::locks::Locks;
use super::teams::Teams;
use super::threads::{Idle, KmpThread, Threads};
use super::{Context, Notes, raw_threads, tasks, teams, waits};
use crate::bind::{Slot, StructData};
use crate::excerpt::{Excerpt, Focus, NOT_LOOKED_FOR, Tasks, Wanted};
use crate::kmp::reason::Own;
use crate::kmp::{Kmp, schema};
use crate::limits;
use crate::model::*;

/// How much the phases read.
#[derive(Clone, Copy)]
pub(super) enum Reach {
    /// All there is.
    Process,
    /// What concerns one thread.
    Thread {
        /// The teams around its own are wanted.
        enclosing: bool,
        /// Tasks that are wanted.
        tasks: Tasks,
        /// What it waits for is wanted.
        wait: bool,
        /// Control variables are wanted.
        icvs: bool,
        /// What is kept for OMPT tools is wanted.
        tool: bool,
        /// Functions of regions and tasks are wanted.
        function: bool,
    },
}

impl Reach {
    /// True if what is not found is not there.
    pub(super) fn is_whole(self) -> bool {
        matches!(self, Reach::Process)
    }

    /// True if the teams around a thread's own are not looked at.
    pub(super) fn stays_inside(self) -> bool {
        matches!(self, Reach::Thread { enclosing: false, .. })
    }

    /// Which tasks of a thread are wanted; `None` for all.
    pub(super) fn tasks(self) -> Option<Tasks> {
        match self {
            Reach::Process => None,
            Reach::Thread { tasks, .. } => Some(tasks),
        }
    }

    pub(super) fn wants_waits(self) -> bool {
        !matches!(self, Reach::Thread { wait: false, .. })
    }

    pub(super) fn wants_icvs(self) -> bool {
        !matches!(self, Reach::Thread { icvs: false, .. })
    }

    pub(super) fn wants_tool(self) -> bool {
        !matches!(self, Reach::Thread { tool: false, .. })
    }

    /// True if the active level of a team of so many threads is wanted.
    pub(super) fn wants_active_level(self, size: i64) -> bool {
        self.is_whole() || self.wants_icvs() || size <= 1
    }

    pub(super) fn wants_functions(self) -> bool {
        !matches!(self, Reach::Thread { function: false, .. })
    }
}

/// Members of so small numbers are read together with that of number 0.
const CLOSE: u64 = 8;

/// A look at a thread.
pub(super) fn excerpt(kmp: &Kmp, target: &dyn Target, focus: &Focus<'_>) -> Option<Excerpt> {
    let mut context = Context::new(kmp, target);
    let mut notes = Notes::default();
    let wanted = *focus.threads.first()?;
    let s = &kmp.structs;
    let view = descriptor(&context, wanted.descriptor, focus).ok()?;
    let pthread = view.ptr(&s.info.ds_thread).ok()?;
    // Another thread may have its descriptor by now.
    if wanted.pthread != pthread || focus.lwp && !(focus.alive)(wanted) {
        return None;
    }
    let lwp = focus.lwp.then_some(wanted.lwp);
    let os = target.threads().iter().find(|thread| thread.lwp == wanted.lwp)?;
    let current =
        if focus.team && focus.tasks != Tasks::None { view.ptr(&s.info.current_task).ok()? } else { Addr::NULL };
    // The task may belong to a team further out.
    let beyond = focus.tasks.last().is_some_and(|task| task != current);
    context.reach = Reach::Thread {
        enclosing: focus.enclosing || focus.beyond || beyond,
        tasks: focus.tasks,
        wait: focus.wait,
        icvs: focus.icvs,
        tool: focus.tool,
        function: focus.function,
    };
    let threads = enter(&context, view, lwp, os.registers.clone(), focus).ok()?;
    let teams = teams::read(&context, &threads, &mut notes);
    let tasks = tasks::read(&context, &threads, &teams, &mut notes);
    let raw_teams = teams.raw(&context, &threads);
    let waits = waits::read(&context, &threads, &teams, &tasks, Locks::default(), &mut notes);
    let thread = raw_threads::tell(&context, &threads, &teams, &tasks, waits.of_threads).pop()?;
    let members = raw_teams.iter().map(|team| listed(&context, &threads, &teams, team, focus)).collect();
    notes.is_clean().then(|| Excerpt::of(Some(thread), Some(members), raw_teams, tasks.list))
}

/// The thread, with the members of its team. An error if it is no thread, or if nothing tells whether it is idle.
fn enter(
    context: &Context<'_>,
    view: StructData,
    lwp: Option<i32>,
    registers: Result<Registers, String>,
    focus: &Focus<'_>,
) -> Result<Threads, Reason> {
    let s = &context.kmp.structs;
    let own = view.addr();
    let team = if focus.team { view.ptr(&s.info.team)? } else { Addr::NULL };
    let root = || context.field(&view, &s.info.root).map(Addr);
    let is_uber = || uber_of(context, root()?).map(|uber| uber == own);
    let mut threads = Threads::default();
    let is_worker = focus.threads.first().is_some_and(|known| known.is_worker);
    let (is_idle, uber) = if !focus.team {
        // One that the runtime has made stays in the table until it ends.
        if !is_worker {
            is_in_table(context, &view)?;
        }
        (Idle::Unsure(NOT_LOOKED_FOR.into()), None)
    } else if team.is_null() && context.field(&view, &s.info.in_pool)? != 0 {
        is_in_table(context, &view)?;
        (idle(s.info.in_pool, &view), Some(is_uber()?))
    } else {
        let read = context.team(team)?;
        let number = u64::from(view.count(&s.info.ds_tid)?);
        let first = (focus.first)(team).filter(|first| *first != own && is_first_of(context, *first, team));
        let (primary, listed) = match first {
            Some(first) => (first, member(context, &read, number)?),
            None => first_and(context, &read, number)?,
        };
        if listed != own {
            return Err(Reason::from(Own::NotWhereListed));
        }
        let member = first.is_some() || leads(context, primary, &view, team)?;
        threads.members_of_one = BTreeMap::from([(0, primary), (number, own)]);
        threads.team_of_one = Some(read.clone());
        // A region lives only with its threads. What is in none may be left over from a thread that is gone.
        match member && read.count(&s.team.level)? > 0 {
            true => (Idle::No, None),
            false => {
                is_in_table(context, &view)?;
                let uber = is_uber()?;
                (if member || uber { Idle::No } else { idle(s.team.threads, &view) }, Some(uber))
            }
        }
    };
    let gtid = view.count(&s.info.ds_gtid)?;
    threads.by_addr.insert(own, 0);
    threads.by_gtid.insert(gtid, 0);
    threads.list.push(KmpThread { gtid, lwp, team, idle: is_idle, uber, registers: Some(registers), view });
    Ok(threads)
}

/// A thread's descriptor, as far as it is needed.
fn descriptor(context: &Context<'_>, addr: Addr, focus: &Focus<'_>) -> Result<StructData, Reason> {
    let s = &context.kmp.structs.info;
    let mut fields: Vec<&Slot> = vec![&s.ds_gtid, &s.ds_thread];
    if focus.team {
        // In the pool threads have no team (`__kmp_free_thread`).
        fields.extend([&s.ds_tid, &s.team]);
    }
    if focus.team && focus.tasks != Tasks::None {
        fields.push(&s.current_task);
    }
    // Of a thread some are kept here, whoever they belong to by the specification.
    if focus.icvs && focus.tasks.last().is_none() {
        fields.extend([&s.place, &s.first_place, &s.last_place, &s.def_allocator]);
    }
    if focus.tool {
        fields.push(&s.thread_tool_data);
    }
    if focus.wait {
        fields.extend([&s.task_team, &s.ident, &s.sleep_loc, &s.sleep_loc_type, &s.spin_here]);
    }
    StructData::read_fields(context.target, addr, s.size, &fields, &[])
}

/// An error unless the table of threads has it under its number.
pub(super) fn is_in_table(context: &Context<'_>, thread: &StructData) -> Result<(), Reason> {
    let gtid = u64::from(thread.count(&context.kmp.structs.info.ds_gtid)?);
    let width = u64::from(context.target.arch().pointer_bytes);
    let table = context.target.read_ptr(context.global(schema::THREADS)?)?;
    if table.is_null() || gtid >= limits::THREADS {
        return Err(Reason::from(Own::NoSuchThread));
    }
    match context.target.read_ptr(table.offset(gtid * width))? == thread.addr() {
        true => Ok(()),
        false => Err(Reason::from(Own::NumberOfOther)),
    }
}

/// True if the thread at this address is of number 0 in the team, and the team is its innermost.
pub(super) fn is_first_of(context: &Context<'_>, thread: Addr, team: Addr) -> bool {
    let s = &context.kmp.structs.info;
    let read = StructData::read_fields(context.target, thread, s.size, &[&s.ds_tid, &s.team], &[]);
    read.is_ok_and(|view| view.uint(&s.ds_tid) == Ok(0) && view.ptr(&s.team) == Ok(team))
}

/// The member of a team with this number, as the team lists it.
pub(super) fn member(context: &Context<'_>, team: &StructData, number: u64) -> Result<Addr, Reason> {
    let s = &context.kmp.structs.team;
    let size = u64::from(team.count(&s.nproc)?);
    if !(1..=limits::TEAM_SIZE).contains(&size) {
        return Err(Reason::from(Common::ImplausibleTeamSize));
    }
    if number >= size {
        return Err(Reason::from(Own::NotWhereListed));
    }
    let read = context.read_pointers(team.ptr(&s.threads)?, number, 1)?;
    read.first().copied().ok_or(Own::NotWhereListed.into())
}

/// The members of a team with number 0 and with this one, as the team lists them.
fn first_and(context: &Context<'_>, team: &StructData, number: u64) -> Result<(Addr, Addr), Reason> {
    let s = &context.kmp.structs.team;
    let size = u64::from(team.count(&s.nproc)?);
    if !(1..=limits::TEAM_SIZE).contains(&size) {
        return Err(Reason::from(Common::ImplausibleTeamSize));
    }
    if number >= size {
        return Err(Reason::from(Own::NotWhereListed));
    }
    let array = team.ptr(&s.threads)?;
    // One read where they lie close together.
    let read = match number < CLOSE {
        true => context.read_pointers(array, 0, number + 1)?,
        false => [context.read_pointers(array, 0, 1)?, context.read_pointers(array, number, 1)?].concat(),
    };
    read.first().copied().zip(read.last().copied()).ok_or(Own::NotWhereListed.into())
}

/// True if the team is that of its thread 0, or one around that.
fn leads(context: &Context<'_>, primary: Addr, thread: &StructData, team: Addr) -> Result<bool, Reason> {
    let s = &context.kmp.structs;
    if primary == thread.addr() {
        return Ok(true);
    }
    let (mut at, mut seen) = (context.target.read_ptr(primary.offset(s.info.team.offset()?))?, HashSet::new());
    while at != team {
        if at.is_null() || !seen.insert(at) || seen.len() > limits::TEAM_DEPTH {
            return Ok(false);
        }
        at = context.target.read_ptr(at.offset(s.team.parent.offset()?))?;
    }
    Ok(true)
}

/// The wanted members of a team, by number. If none is wanted, a team around the thread's own has only its first
/// member, by which it is found.
fn listed(
    context: &Context<'_>,
    threads: &Threads,
    teams: &Teams,
    team: &RawTeam,
    focus: &Focus<'_>,
) -> BTreeMap<usize, Addr> {
    let Some(view) = teams.found.get(&team.descriptor) else { return BTreeMap::new() };
    let with_first = |number: u64| {
        let (first, other) = first_and(context, view, number).ok()?;
        Some(BTreeMap::from([(0, first), (number as usize, other)]))
    };
    let is_own = threads.list.first().is_some_and(|thread| thread.team == team.descriptor);
    let known = || threads.members_of_one.iter().map(|(number, member)| (*number as usize, *member)).collect();
    match focus.members {
        Wanted::None if is_own => Some(known()),
        Wanted::None if focus.enclosing || focus.beyond => with_first(0),
        Wanted::None => None,
        Wanted::One(number) => with_first(number),
    }
    .unwrap_or_default()
}
