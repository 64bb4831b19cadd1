//! Tasks: those executed now with their ancestors, and those in the queues.

use std::collections::{HashMap, HashSet};

use ompd_process::{Addr, TargetExt};

use super::task_reader::{Queued, TaskReader, Tasks};
use super::teams::Teams;
use super::threads::Idle;
use super::threads::Threads;
use super::{Context, Notes};
use crate::bind::StructData;
use crate::excerpt::{NOT_LOOKED_FOR, Tasks as Wanted};
use crate::limits;
use crate::model::*;

/// The tasks that threads execute with those that generated them, and all others that are not over.
pub(super) fn read(context: &Context<'_>, threads: &Threads, teams: &Teams, notes: &mut Notes) -> Tasks {
    let (queued, found) = (Queued::default(), Tasks::default());
    let mut reader = TaskReader { context, threads, teams, notes, queued, found };
    reader.read_executed();
    if context.reach.is_whole() {
        reader.read_implicit();
        reader.read_others();
    }
    reader.number_implicit();
    reader.doubt_suspended();
    reader.found
}

impl TaskReader<'_> {
    /// The tasks that threads execute, with those that generated them as far as they are wanted.
    fn read_executed(&mut self) {
        let wanted = self.context.reach.tasks();
        if wanted == Some(Wanted::None) {
            return;
        }
        for index in 0..self.threads.list.len() {
            let Some(id) = self.read_current(index) else { continue };
            match wanted {
                None => self.read_ancestors(id),
                Some(wanted) => self.notes.short |= self.read_generating(id, wanted).is_err(),
            }
        }
    }

    /// The implicit tasks of members that execute an explicit task which another member generated: nothing leads from it to them.
    fn read_implicit(&mut self) {
        let s = &self.context.kmp.structs;
        let Ok(size) = s.taskdata.size.get() else { return };
        for thread in self.threads.list.iter().filter(|thread| matches!(thread.idle, Idle::No)) {
            let find = || {
                let current = self.found.ids.get(&thread.view.ptr(&s.info.current_task).ok()?)?;
                let explicit = self.found.list[current.0].kind.get().is_some_and(TaskKind::is_explicit);
                let team = self.teams.found.get(&thread.team).filter(|_| explicit)?;
                let (number, members) = (thread.view.count(&s.info.ds_tid).ok()?, team.count(&s.team.nproc).ok()?);
                // The regions of a team of one share the array, in which only the last has its task.
                let first = team.ptr(&s.team.implicit_tasks).ok().filter(|_| members > 1 && number < members)?;
                let at = first.offset(size.checked_mul(number.into())?);
                (!first.is_null() && !self.found.ids.contains_key(&at)).then_some(at)
            };
            let Some(at) = find() else { continue };
            let is_one = |view: &StructData| -> Result<bool, Reason> {
                let of_team = view.ptr(&s.taskdata.team)? == thread.team;
                let is_over = self.flag(view, &s.flags.tasktype)? || self.flag(view, &s.flags.complete)?;
                Ok(of_team && !is_over && !view.ptr(&s.taskdata.parent)?.is_null())
            };
            let read = TaskReader::read_one(self.context, at).and_then(|view| Ok(is_one(&view)?.then_some(view)));
            match read.and_then(|view| view.map(|view| self.add_view(view)).transpose()) {
                Ok(Some(id)) => self.read_ancestors(id),
                Ok(None) => {}
                Err(why) if why.is_layout() => {}
                Err(why) => self.notes.issue(format!("task {at}"), why),
            }
        }
    }

    /// Tasks that no thread executes, and what those found have to do with each other.
    fn read_others(&mut self) {
        let mut queues: Vec<Addr> = Vec::new();
        for team in self.teams.found.values() {
            if let Ok(pair) = team.addr_of(&self.context.kmp.structs.team.task_team) {
                let width = u64::from(self.context.target.arch().pointer_bytes);
                queues.extend((0..2).filter_map(|i| self.context.target.read_ptr(pair.offset(i * width)).ok()));
            }
        }
        // A team has two task teams and uses them in turn; of what the other one holds nothing can be said. Since LLVM 19 it
        // may be one that was freed (seen filled with 0xef).
        let used: HashSet<Addr> = self
            .threads
            .list
            .iter()
            .filter_map(|t| t.view.ptr(&self.context.kmp.structs.info.task_team).ok())
            .collect();
        let mut seen = HashSet::new();
        for queue in queues {
            if !queue.is_null()
                && seen.insert(queue)
                && let Err(why) = self.read_queues(queue)
                && !why.is_layout()
                && used.contains(&queue)
            {
                self.notes.issue(format!("task queues {queue}"), why);
            }
        }
        if let Err(why) = self.read_dependences()
            && !why.is_layout()
        {
            self.notes.issue("dependences of tasks", why);
        }
        if let Err(why) = self.find_detached()
            && !why.is_layout()
        {
            self.notes.issue("detached tasks", why);
        }
        self.tell_counted();
        self.read_memberships();
    }

    /// The task that a thread executes.
    fn read_current(&mut self, index: usize) -> Option<TaskId> {
        let s = &self.context.kmp.structs;
        let thread = self.threads.list.get(index).filter(|thread| matches!(thread.idle, Idle::No))?;
        let (lwp, number, team) = (thread.lwp, thread.view.count(&s.info.ds_tid).ok(), thread.team);
        let task = thread.view.ptr(&s.info.current_task).ok().filter(|task| !task.is_null())?;
        let seen = self.found.ids.get(&task).copied();
        let id = match seen.map_or_else(|| self.add_task(task), Ok) {
            Ok(id) => id,
            Err(why) => {
                self.notes.issue(format!("task {task}"), why);
                return None;
            }
        };
        self.found.list[id.0].thread = lwp;
        if self.found.list[id.0].kind.get() == Some(TaskKind::Implicit) {
            self.found.list[id.0].member = number;
        }
        // Entering and leaving a region, a thread changes its team and its task one after the other.
        if let Ok(own) = self.found.views[id.0].ptr(&self.context.kmp.structs.taskdata.team)
            && (own == team || !self.encloses(own, team) && !self.encloses(team, own))
        {
            self.notes.check.note("a thread executes a task of a team it is not in", own == team);
        }
        self.found.list[id.0].state = self.context.kmp.structs.info.current_task.fact(Ok(TaskState::Running));
        Some(id)
    }

    /// Follows the generating tasks of a task as far as is wanted.
    fn read_generating(&mut self, task: TaskId, wanted: Wanted) -> Result<(), Reason> {
        let s = &self.context.kmp.structs.taskdata;
        let slot = s.parent;
        let mut child = task;
        for _ in 0..limits::TASK_DEPTH {
            let descriptor = self.found.list[child.0].descriptor;
            let is_last = match wanted {
                Wanted::None | Wanted::Current => true,
                Wanted::UpTo(last) | Wanted::Beyond(last) => descriptor == last,
                Wanted::ImplicitIn(team) => {
                    let implicit = self.found.list[child.0].kind.get() == Some(TaskKind::Implicit);
                    implicit && self.found.views[child.0].ptr(&s.team)? == team
                }
            };
            if is_last && !matches!(wanted, Wanted::Beyond(_)) {
                self.found.list[child.0].generating = Fact::unknown(NOT_LOOKED_FOR);
                return Ok(());
            }
            let parent = self.parent_of(&self.found.views[child.0])?;
            if parent.is_null() {
                self.found.list[child.0].generating = slot.fact(Ok(None));
                return Ok(());
            }
            if self.found.ids.contains_key(&parent) {
                break;
            }
            let id = self.add_task(parent)?;
            self.found.list[child.0].generating = slot.fact(Ok(Some(id)));
            if is_last {
                return Ok(());
            }
            child = id;
        }
        Err(Reason::from(Common::EndlessGeneratingTasks))
    }

    /// The implicit tasks of a team lie in one array, by number (`t_implicit_task_taskdata`, `__kmp_allocate_team_arrays`). Where
    /// that is not known, from one whose number is known, since its thread executes it, follow the numbers of the others.
    fn number_implicit(&mut self) {
        let Ok(size) = self.context.kmp.structs.taskdata.size.get() else { return };
        let implicit = |task: &RawTask| task.kind.get() == Some(TaskKind::Implicit);
        let array = self.context.kmp.structs.team.implicit_tasks;
        for (task, view) in self.found.list.iter_mut().zip(&self.found.views).filter(|(task, _)| implicit(task)) {
            let team = view.ptr(&self.context.kmp.structs.taskdata.team).ok();
            let team = team.and_then(|team| self.teams.found.get(&team));
            let number = team.and_then(|team| {
                let distance =
                    task.descriptor.0.checked_sub(team.ptr(&array).ok().filter(|first| !first.is_null())?.0)?;
                let number = distance.checked_div(size).filter(|_| distance.is_multiple_of(size))?;
                let members = team.count(&self.context.kmp.structs.team.nproc).ok()?;
                u32::try_from(number).ok().filter(|number| *number < members)
            });
            task.member = task.member.or(number);
        }
        for (task, member) in self.encountering() {
            self.found.list[task.0].member.get_or_insert(member);
        }
        let mut known: HashMap<TeamId, (Addr, u32)> = HashMap::new();
        for task in self.found.list.iter().filter(|task| implicit(task)) {
            if let (Some(team), Some(member)) = (task.team.flat(), task.member) {
                known.insert(team, (task.descriptor, member));
            }
        }
        for task in self.found.list.iter_mut().filter(|task| implicit(task) && task.member.is_none()) {
            let Some((descriptor, member)) = task.team.flat().and_then(|team| known.get(&team)) else { continue };
            let first = descriptor.0.wrapping_sub(size.wrapping_mul(u64::from(*member)));
            let distance = task.descriptor.0.wrapping_sub(first);
            if size > 0 && distance % size == 0 && distance / size < limits::TEAM_SIZE {
                task.member = Some((distance / size) as u32);
            }
        }
    }

    /// Implicit tasks in which a region was met, each with the number of its thread in its own team: the inner team keeps it
    /// (`t_master_tid`).
    fn encountering(&self) -> Vec<(TaskId, u32)> {
        let s = &self.context.kmp.structs.team;
        let met = |task: &RawTask| {
            let region = self.teams.regions.get(task.team.flat()?.0)?;
            let outermost = self.teams.regions_of(self.context, region.team).first() == Some(region);
            let team = self.teams.found.get(&region.team).filter(|_| outermost)?;
            let outer = self.teams.innermost(team.ptr(&s.parent).ok()?)?;
            let mut at = task.generating.flat()?;
            // An explicit task may have met it: then its implicit task is further out.
            for _ in 0..limits::TEAM_DEPTH {
                let generating = &self.found.list[at.0];
                match generating.kind.get()? {
                    TaskKind::Implicit => {
                        let fits = generating.team.flat() == Some(outer) && generating.thread.is_none();
                        return Some((at, team.count(&s.master_tid).ok().filter(|_| fits)?));
                    }
                    _ => at = generating.generating.flat()?,
                }
            }
            None
        };
        let implicit = self.found.list.iter().filter(|task| task.kind.get() == Some(TaskKind::Implicit));
        implicit.filter_map(met).collect()
    }

    /// A task counts as suspended because no thread was found to execute it: that is known only if it is known of all.
    fn doubt_suspended(&mut self) {
        if !self.context.reach.is_whole() {
            return self.doubt_unexecuted();
        }
        let mut doubtful = HashSet::new();
        let mut all = false;
        for thread in self.threads.list.iter().filter(|t| !matches!(t.idle, Idle::Yes(_))) {
            match thread.view.ptr(&self.context.kmp.structs.info.current_task) {
                Ok(task) if matches!(thread.idle, Idle::Unsure(_)) => drop(doubtful.insert(task)),
                Ok(_) => {}
                Err(_) => all = true,
            }
        }
        for task in &mut self.found.list {
            if task.state.get() == Some(TaskState::Suspended) && (all || doubtful.contains(&task.descriptor)) {
                task.state = Fact::unknown(Common::MayBeExecuted);
            }
        }
    }

    /// Whether other threads execute a task was not looked for.
    fn doubt_unexecuted(&mut self) {
        let executed = &self.context.kmp.structs.info.current_task;
        let executed = self.threads.list.first().and_then(|thread| thread.view.ptr(executed).ok());
        for task in self.found.list.iter_mut().filter(|task| Some(task.descriptor) != executed) {
            task.state = Fact::unknown(NOT_LOOKED_FOR);
        }
    }

    /// True if one team is the parent of the other.
    fn encloses(&self, outer: Addr, inner: Addr) -> bool {
        let parent =
            self.context.kmp.structs.team.parent.offset().ok().map(|at| self.context.target.read_ptr(inner.offset(at)));
        matches!(parent, Some(Ok(parent)) if parent == outer && !outer.is_null())
    }
}
