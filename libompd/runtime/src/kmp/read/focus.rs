//! How much is read. A look at one thread runs the same phases from that thread. Its descriptor is believed where its team
//! confirms it, and looked up in the table of threads where not.

use std::collections::HashSet;

use ompd_process::{Addr, Registers, Target, TargetExt};

use super::idle::{idle, uber_of};
use super::locks::Locks;
use super::teams::Teams;
use super::threads::{Idle, KmpThread, Threads};
use super::{Context, Notes, raw_threads, tasks, teams, waits};
use crate::bind::{Slot, StructData};
use crate::excerpt::{Excerpt, Focus, NOT_LOOKED_FOR, Tasks};
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
}

/// See [`Runtime::excerpt`](crate::Runtime::excerpt).
pub(in crate::kmp) fn excerpt(kmp: &Kmp, target: &dyn Target, focus: &Focus<'_>) -> Option<Excerpt> {
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
    let current = if focus.team { view.ptr(&s.info.current_task).ok()? } else { Addr::NULL };
    // The task may belong to a team further out.
    let beyond = focus.tasks.last().is_some_and(|task| task != current);
    context.reach = Reach::Thread { enclosing: focus.enclosing || beyond, tasks: focus.tasks, wait: focus.wait };
    let threads = enter(&context, view, lwp, os.registers.clone(), focus).ok()?;
    let teams = teams::read(&context, &threads, &mut notes);
    let tasks = tasks::read(&context, &threads, &teams, &mut notes);
    let raw_teams = teams.raw(&context, &threads);
    let waits = waits::read(&context, &threads, &teams, &tasks, Locks::default(), &mut notes);
    let thread = raw_threads::tell(&context, &threads, &teams, &tasks, waits.of_threads).pop()?;
    let members = raw_teams.iter().map(|team| listed(&context, &threads, &teams, team, focus.enclosing)).collect();
    notes.is_clean().then(|| Excerpt::of(thread, Some(members), raw_teams, tasks.list))
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
    let (own, team, root) = (view.addr(), view.ptr(&s.info.team)?, view.ptr(&s.info.root)?);
    let is_uber = || uber_of(context, root).map(|uber| uber == own);
    let mut threads = Threads::default();
    let (is_idle, uber) = if !focus.team {
        is_in_table(context, &view)?;
        (Idle::Unsure(NOT_LOOKED_FOR.into()), None)
    } else if view.flag(&s.info.in_pool)? {
        is_in_table(context, &view)?;
        (idle(s.info.in_pool, &view), Some(is_uber()?))
    } else {
        let read = context.team(team)?;
        let number = u64::from(view.count(&s.info.ds_tid)?);
        let listed = if focus.members { Some(members(context, &read)?) } else { None };
        let member_at = |number: u64| match &listed {
            Some(listed) => Ok(listed.get(number as usize).copied()),
            None => member(context, &read, number),
        };
        if member_at(number)? != Some(own) {
            return Err(Reason::from(Own::NotWhereListed));
        }
        let primary = if number == 0 { Some(own) } else { member_at(0)? };
        let member = leads(context, primary.unwrap_or(Addr::NULL), &view, team)?;
        threads.members = listed;
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

/// A thread's descriptor, as far as it is needed: at its end is what it waits for.
fn descriptor(context: &Context<'_>, addr: Addr, focus: &Focus<'_>) -> Result<StructData, Reason> {
    let s = &context.kmp.structs.info;
    if focus.wait {
        return StructData::read(context.target, addr, s.size);
    }
    let own = [&s.ds_gtid, &s.ds_thread, &s.ds_tid, &s.root, &s.team, &s.in_pool];
    let more = [&s.current_task, &s.place, &s.first_place, &s.last_place, &s.ident];
    let more = more.into_iter().chain([&s.def_allocator, &s.thread_tool_data, &s.ompt_state, &s.ompt_wait_id]);
    let fields: Vec<&Slot> = own.into_iter().chain(more.filter(|_| focus.team)).collect();
    StructData::read_to(context.target, addr, s.size, &fields)
}

/// An error unless the table of threads has it under its number.
fn is_in_table(context: &Context<'_>, thread: &StructData) -> Result<(), Reason> {
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

/// The member of a team with this number, as the team lists it.
fn member(context: &Context<'_>, team: &StructData, number: u64) -> Result<Option<Addr>, Reason> {
    let s = &context.kmp.structs.team;
    let size = u64::from(team.count(&s.nproc)?);
    if !(1..=limits::TEAM_SIZE).contains(&size) {
        return Err(Reason::from(Common::ImplausibleTeamSize));
    }
    if number >= size {
        return Ok(None);
    }
    Ok(context.read_pointers(team.ptr(&s.threads)?, number, 1)?.first().copied())
}

/// The members of a team, as it lists them.
fn members(context: &Context<'_>, team: &StructData) -> Result<Vec<Addr>, Reason> {
    let s = &context.kmp.structs.team;
    let size = u64::from(team.count(&s.nproc)?);
    if !(1..=limits::TEAM_SIZE).contains(&size) {
        return Err(Reason::from(Common::ImplausibleTeamSize));
    }
    context.read_pointers(team.ptr(&s.threads)?, 0, size)
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

/// Members of a team by number; of those around the thread's own only if they are wanted.
fn listed(context: &Context<'_>, threads: &Threads, teams: &Teams, team: &RawTeam, wanted: bool) -> Option<Vec<Addr>> {
    let own = threads.list.first().is_some_and(|thread| thread.team == team.descriptor);
    let known = threads.members.clone().filter(|_| own);
    known.or_else(|| members(context, teams.found.get(&team.descriptor).filter(|_| wanted)?).ok())
}
