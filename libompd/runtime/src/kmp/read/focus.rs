//! A look at a single thread: it is taken at its word where its team bears it out, and looked up in the table of threads where not.

use std::collections::HashSet;

use ompd_process::{Addr, Registers, TargetExt};

use crate::kmp::reason::Own;
use super::{Idle, KmpThread, Reader, idle};
use crate::bind::{Slot, View};
use crate::excerpt::{Excerpt, Focus, NOT_LOOKED_FOR, Tasks};
use crate::kmp::{Kmp, schema};
use crate::limits;
use crate::model::*;

/// How a single thread is looked at.
pub(super) struct Focused {
    /// The teams around its own are wanted.
    enclosing: bool,
    /// What it waits for is wanted.
    pub(super) wait: bool,
    /// Members of its team, as that lists them.
    members: Vec<Addr>,
    /// Something was met that only a look at the whole process tells.
    pub(super) short: bool,
}

impl<'a> Reader<'a> {
    /// See [`Runtime::excerpt`](crate::Runtime::excerpt).
    pub(in crate::kmp) fn excerpt(
        kmp: &'a Kmp,
        target: &'a dyn ompd_process::Target,
        focus: &Focus<'_>,
    ) -> Option<Excerpt> {
        let mut reader = Reader::new(kmp, target);
        let wanted = *focus.threads.first()?;
        let s = &kmp.structs;
        let view = reader.descriptor(wanted.descriptor, focus).ok()?;
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
        reader.focused =
            Some(Focused { enclosing: focus.enclosing || beyond, wait: focus.wait, members: Vec::new(), short: false });
        reader.enter(view, lwp, os.registers.clone(), focus.team).ok()?;
        reader.read_teams();
        reader.number_regions();
        let found = if focus.tasks == Tasks::None { None } else { reader.read_current(0) };
        if let Some(id) = found {
            reader.read_generating(id, focus.tasks).ok()?;
        }
        reader.number_implicit();
        let executed = reader.threads[0].view.ptr(&s.info.current_task).ok();
        for task in reader.tasks.iter_mut().filter(|task| Some(task.descriptor) != executed) {
            task.state = Fact::unknown(NOT_LOOKED_FOR);
        }
        let teams = reader.make_teams();
        let thread = reader.make_threads().pop()?;
        let members = teams.iter().map(|team| reader.listed(team, focus.enclosing)).collect();
        let short = reader.focused.as_ref().is_none_or(|focused| focused.short);
        let whole = !short && reader.issues.is_empty() && reader.check.failure().is_none();
        whole.then(|| Excerpt::of(thread, members, teams, reader.tasks))
    }

    /// Files the thread, if it is one and it can be told whether it is idle.
    fn enter(
        &mut self,
        view: View,
        lwp: Option<i32>,
        registers: Result<Registers, String>,
        in_team: bool,
    ) -> Result<(), Reason> {
        let s = &self.kmp.structs;
        let (own, team, root) = (view.addr(), view.ptr(&s.info.team)?, view.ptr(&s.info.root)?);
        let is_uber = |reader: &Self| reader.uber_of(root).map(|uber| uber == own);
        let (is_idle, uber) = if !in_team {
            self.is_in_table(&view)?;
            (Idle::Unsure(NOT_LOOKED_FOR.into()), None)
        } else if view.flag(&s.info.in_pool)? {
            self.is_in_table(&view)?;
            (idle(s.info.in_pool, &view), Some(is_uber(self)?))
        } else {
            let read = self.team(team)?;
            let members = self.members(&read)?;
            let (number, primary) = (view.count(&s.info.ds_tid)?, members.first().copied());
            if members.get(number as usize) != Some(&own) {
                return Err(Reason::from(Own::NotWhereListed));
            }
            let member = self.leads(primary.unwrap_or(Addr::NULL), &view, team)?;
            if let Some(focused) = &mut self.focused {
                focused.members = members;
            }
            // A region lives only with its threads. What is in none may be left over from a thread that is gone.
            match member && read.count(&s.team.level)? > 0 {
                true => (Idle::No, None),
                false => {
                    self.is_in_table(&view)?;
                    let uber = is_uber(self)?;
                    (if member || uber { Idle::No } else { idle(s.team.threads, &view) }, Some(uber))
                }
            }
        };
        let gtid = view.count(&s.info.ds_gtid)?;
        self.by_addr.insert(own, 0);
        self.by_gtid.insert(gtid, 0);
        self.threads.push(KmpThread { gtid, lwp, team, idle: is_idle, uber, registers: Some(registers), view });
        Ok(())
    }

    /// A thread's descriptor, as far as it is needed: at its end is what it waits for.
    fn descriptor(&self, addr: Addr, focus: &Focus<'_>) -> Result<View, Reason> {
        let s = &self.kmp.structs.info;
        if focus.wait {
            return View::read(self.target, addr, s.size);
        }
        let own = [&s.ds_gtid, &s.ds_thread, &s.ds_tid, &s.root, &s.team, &s.in_pool];
        let more = [&s.current_task, &s.place, &s.first_place, &s.last_place, &s.ident];
        let more = more.into_iter().chain([&s.def_allocator, &s.thread_tool_data, &s.ompt_state, &s.ompt_wait_id]);
        let fields: Vec<&Slot> = own.into_iter().chain(more.filter(|_| focus.team)).collect();
        View::read_to(self.target, addr, s.size, &fields)
    }

    /// A team, as far as anything of it is known.
    pub(super) fn team(&self, addr: Addr) -> Result<View, Reason> {
        let s = &self.kmp.structs.team;
        if self.focused.is_none() {
            return View::read(self.target, addr, s.size);
        }
        let numbers = [&s.nproc, &s.level, &s.active_level, &s.serialized, &s.master_tid, &s.argc];
        let pointers = [&s.threads, &s.parent, &s.pkfn, &s.argv, &s.ident, &s.task_team, &s.dispatch, &s.bar];
        let fields: Vec<&Slot> = numbers.into_iter().chain(pointers).chain([&s.parallel_tool_data]).collect();
        View::read_to(self.target, addr, s.size, &fields)
    }

    /// An error unless the table of threads has it under its number.
    fn is_in_table(&self, thread: &View) -> Result<(), Reason> {
        let gtid = u64::from(thread.count(&self.kmp.structs.info.ds_gtid)?);
        let width = u64::from(self.target.arch().pointer_bytes);
        let table = self.target.read_ptr(self.global(schema::THREADS)?)?;
        if table.is_null() || gtid >= limits::THREADS {
            return Err(Reason::from(Own::NoSuchThread));
        }
        match self.target.read_ptr(table.offset(gtid * width))? == thread.addr() {
            true => Ok(()),
            false => Err(Reason::from(Own::NumberOfOther)),
        }
    }

    /// The members of a team, as it lists them.
    fn members(&self, team: &View) -> Result<Vec<Addr>, Reason> {
        let s = &self.kmp.structs.team;
        let size = u64::from(team.count(&s.nproc)?);
        if !(1..=limits::TEAM_SIZE).contains(&size) {
            return Err(Reason::from(Common::ImplausibleTeamSize));
        }
        self.read_pointers(team.ptr(&s.threads)?, 0, size)
    }

    /// True if the team is that of its thread 0, or one around that.
    fn leads(&self, primary: Addr, thread: &View, team: Addr) -> Result<bool, Reason> {
        let s = &self.kmp.structs;
        if primary == thread.addr() {
            return Ok(true);
        }
        let (mut at, mut seen) = (self.target.read_ptr(primary.offset(s.info.team.offset()?))?, HashSet::new());
        while at != team {
            if at.is_null() || !seen.insert(at) || seen.len() > limits::TEAM_DEPTH {
                return Ok(false);
            }
            at = self.target.read_ptr(at.offset(s.team.parent.offset()?))?;
        }
        Ok(true)
    }

    /// Follows the generating tasks of a task as far as is wanted.
    fn read_generating(&mut self, task: TaskId, wanted: Tasks) -> Result<(), Reason> {
        let s = &self.kmp.structs.taskdata;
        let slot = s.parent;
        let mut child = task;
        for _ in 0..limits::TASK_DEPTH {
            let descriptor = self.tasks[child.0].descriptor;
            let is_last = match wanted {
                Tasks::None | Tasks::Current => true,
                Tasks::UpTo(last) | Tasks::Beyond(last) => descriptor == last,
                Tasks::ImplicitIn(team) => {
                    let implicit = self.tasks[child.0].kind.get() == Some(TaskKind::Implicit);
                    implicit && self.task_views[child.0].ptr(&s.team)? == team
                }
            };
            if is_last && !matches!(wanted, Tasks::Beyond(_)) {
                self.tasks[child.0].generating = Fact::unknown(NOT_LOOKED_FOR);
                return Ok(());
            }
            let parent = self.task_views[child.0].ptr(&slot)?;
            if parent.is_null() {
                self.tasks[child.0].generating = slot.fact(Ok(None));
                return Ok(());
            }
            if self.task_ids.contains_key(&parent) {
                break;
            }
            let id = self.add_task(parent)?;
            self.tasks[child.0].generating = slot.fact(Ok(Some(id)));
            if is_last {
                return Ok(());
            }
            child = id;
        }
        Err(Reason::from(Common::EndlessGeneratingTasks))
    }

    /// Members of a team by number; of those around the thread's own only if they are wanted.
    fn listed(&self, team: &RawTeam, wanted: bool) -> Option<Vec<Addr>> {
        let own = self.threads.first().is_some_and(|thread| thread.team == team.descriptor);
        let focused = self.focused.as_ref().filter(|_| own).map(|focused| focused.members.clone());
        focused.or_else(|| self.members(self.teams.get(&team.descriptor).filter(|_| wanted)?).ok())
    }

    /// True if the teams around a thread's own are not looked at.
    pub(super) fn stays_inside(&self) -> bool {
        self.focused.as_ref().is_some_and(|focused| !focused.enclosing)
    }

    /// The thread that has the word at this address in its descriptor, as far as threads are known.
    pub(super) fn thread_around(&self, word: Addr) -> Option<Addr> {
        let size = self.kmp.structs.info.size.get().ok()?;
        let known = self.by_addr.range(..=word).next_back().map(|(addr, _)| *addr);
        let members = self.focused.iter().flat_map(|focused| focused.members.iter().copied());
        known.into_iter().chain(members).find(|addr| word.0.checked_sub(addr.0).is_some_and(|at| at < size))
    }

    /// Says that what was asked cannot be told of a thread alone.
    pub(super) fn fall_short(&mut self) {
        if let Some(focused) = &mut self.focused {
            focused.short = true;
        }
    }
}
