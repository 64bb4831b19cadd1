//! Tasks: those executed now with their ancestors, and those in the queues.

use std::collections::{HashMap, HashSet};

use ompd_process::{Addr, TargetExt};

use crate::kmp::reason::Own;
use super::{Idle, Reader};
use crate::bind::{Part, Slot, View};
use crate::limits;
use crate::model::*;
use crate::owner::CodeOwner;

/// `kmp_event_type_t`: the event is not fulfilled.
pub(super) const EVENT_PENDING: u64 = 1;

impl Reader<'_> {
    pub(super) fn read_tasks(&mut self) {
        for index in 0..self.threads.len() {
            if let Some(id) = self.read_current(index) {
                self.read_ancestors(id);
            }
        }
        let mut queues: Vec<Addr> = Vec::new();
        for team in self.teams.values() {
            if let Ok(pair) = team.addr_of(&self.kmp.structs.team.task_team) {
                let width = u64::from(self.target.arch().pointer_bytes);
                queues.extend((0..2).filter_map(|i| self.target.read_ptr(pair.offset(i * width)).ok()));
            }
        }
        // A team has two task teams and uses them in turn; of what the other one holds nothing can be said. Since LLVM 19 it
        // may be one that was freed (seen filled with 0xef).
        let used: HashSet<Addr> =
            self.threads.iter().filter_map(|t| t.view.ptr(&self.kmp.structs.info.task_team).ok()).collect();
        let mut seen = HashSet::new();
        for queue in queues {
            if !queue.is_null()
                && seen.insert(queue)
                && let Err(why) = self.read_queues(queue)
                && !why.is_layout()
                && used.contains(&queue)
            {
                self.issue(format!("task queues {queue}"), why);
            }
        }
        if let Err(why) = self.read_dependences()
            && !why.is_layout()
        {
            self.issue("dependences of tasks", why);
        }
        if let Err(why) = self.find_detached()
            && !why.is_layout()
        {
            self.issue("detached tasks", why);
        }
        self.tell_counted();
        self.read_memberships();
        self.number_implicit();
        self.doubt_suspended();
    }

    /// The task that a thread executes.
    pub(super) fn read_current(&mut self, index: usize) -> Option<TaskId> {
        let s = &self.kmp.structs;
        let thread = self.threads.get(index).filter(|thread| matches!(thread.idle, Idle::No))?;
        let (lwp, number, team) = (thread.lwp, thread.view.count(&s.info.ds_tid).ok(), thread.team);
        let task = thread.view.ptr(&s.info.current_task).ok().filter(|task| !task.is_null())?;
        let seen = self.task_ids.get(&task).copied();
        let id = match seen.map_or_else(|| self.add_task(task), Ok) {
            Ok(id) => id,
            Err(why) => {
                self.issue(format!("task {task}"), why);
                return None;
            }
        };
        self.tasks[id.0].thread = lwp;
        if self.tasks[id.0].kind.get() == Some(TaskKind::Implicit) {
            self.tasks[id.0].member = number;
        }
        // Entering and leaving a region, a thread changes its team and its task one after the other.
        if let Ok(own) = self.task_views[id.0].ptr(&self.kmp.structs.taskdata.team)
            && !self.encloses(own, team)
            && !self.encloses(team, own)
        {
            self.check.note("a thread executes a task of a team it is not in", own == team);
        }
        self.tasks[id.0].state = self.kmp.structs.info.current_task.fact(Ok(TaskState::Running));
        Some(id)
    }

    /// Follows the chain of generating tasks of a task until one is met that was followed before.
    pub(super) fn read_ancestors(&mut self, task: TaskId) {
        let slot = self.kmp.structs.taskdata.parent;
        let mut child = task;
        for _ in 0..limits::TASK_DEPTH {
            let parent = match self.task_views[child.0].ptr(&slot) {
                Ok(parent) if parent.is_null() => {
                    self.tasks[child.0].generating = slot.fact(Ok(None));
                    return;
                }
                Ok(parent) => parent,
                Err(why) => {
                    self.tasks[child.0].generating = why.into();
                    return;
                }
            };
            let seen = self.task_ids.get(&parent).copied();
            match seen.map_or_else(|| self.add_task(parent), Ok) {
                Ok(id) => self.tasks[child.0].generating = slot.fact(Ok(Some(id))),
                Err(why) => {
                    self.tasks[child.0].generating = Fact::unknown(&why);
                    self.issue(format!("task {parent}"), why);
                    return;
                }
            }
            match (seen, self.task_ids.get(&parent)) {
                (None, Some(id)) => child = *id,
                _ => return,
            }
        }
        self.tasks[child.0].generating = Fact::unknown(Common::EndlessGeneratingTasks);
    }

    /// The implicit tasks of a team lie in one array, by number (`t_implicit_task_taskdata`, `__kmp_allocate_team_arrays`):
    /// from one whose number is known, since its thread executes it, follow the numbers of the others.
    pub(super) fn number_implicit(&mut self) {
        let Ok(size) = self.kmp.structs.taskdata.size.get() else { return };
        let implicit = |task: &RawTask| task.kind.get() == Some(TaskKind::Implicit);
        for (task, member) in self.encountering() {
            self.tasks[task.0].member.get_or_insert(member);
        }
        let mut known: HashMap<TeamId, (Addr, u32)> = HashMap::new();
        for task in self.tasks.iter().filter(|task| implicit(task)) {
            if let (Some(team), Some(member)) = (task.team.flat(), task.member) {
                known.insert(team, (task.descriptor, member));
            }
        }
        for task in self.tasks.iter_mut().filter(|task| implicit(task) && task.member.is_none()) {
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
        let s = &self.kmp.structs.team;
        let met = |task: &RawTask| {
            let region = self.regions.get(task.team.flat()?.0)?;
            let outermost = self.regions_of(region.team).first() == Some(region);
            let team = self.teams.get(&region.team).filter(|_| outermost)?;
            let outer = self.innermost(team.ptr(&s.parent).ok()?)?;
            let mut at = task.generating.flat()?;
            // An explicit task may have met it: then its implicit task is further out.
            for _ in 0..limits::TEAM_DEPTH {
                let generating = &self.tasks[at.0];
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
        let implicit = self.tasks.iter().filter(|task| task.kind.get() == Some(TaskKind::Implicit));
        implicit.filter_map(met).collect()
    }

    /// A task counts as suspended because no thread was found to execute it: that is known only if it is known of all.
    fn doubt_suspended(&mut self) {
        let mut doubtful = HashSet::new();
        let mut all = false;
        for thread in self.threads.iter().filter(|t| !matches!(t.idle, Idle::Yes(_))) {
            match thread.view.ptr(&self.kmp.structs.info.current_task) {
                Ok(task) if matches!(thread.idle, Idle::Unsure(_)) => drop(doubtful.insert(task)),
                Ok(_) => {}
                Err(_) => all = true,
            }
        }
        for task in &mut self.tasks {
            if task.state.get() == Some(TaskState::Suspended) && (all || doubtful.contains(&task.descriptor)) {
                task.state = Fact::unknown(Common::MayBeExecuted);
            }
        }
    }

    /// True if one team is the parent of the other.
    fn encloses(&self, outer: Addr, inner: Addr) -> bool {
        let parent = self.kmp.structs.team.parent.offset().ok().map(|at| self.target.read_ptr(inner.offset(at)));
        matches!(parent, Some(Ok(parent)) if parent == outer && !outer.is_null())
    }

    /// Reads one task and files it.
    pub(super) fn add_task(&mut self, addr: Addr) -> Result<TaskId, Reason> {
        let view = View::read(self.target, addr, self.kmp.structs.taskdata.size)?;
        self.add_view(view)
    }

    /// The compiler's view of a task, which follows the runtime's.
    pub(super) fn task_part(&self, view: &View) -> Result<View, Reason> {
        let s = &self.kmp.structs;
        let distance = s.taskdata.size.get()?;
        match view.after(distance, s.task.size) {
            Some(part) => Ok(part),
            None => View::read(self.target, view.addr().offset(distance), s.task.size),
        }
    }

    /// A bit of a task's flags.
    pub(super) fn flag(&self, view: &View, bit: &Slot) -> Result<bool, Reason> {
        self.flag_of(view.part(), bit)
    }

    /// The same of a task that is not kept.
    pub(super) fn flag_of(&self, task: Part<'_>, bit: &Slot) -> Result<bool, Reason> {
        let s = &self.kmp.structs;
        Ok(task.within(&s.taskdata.flags, 0, s.flags.size)?.uint(bit)? != 0)
    }

    /// Files a task that was read.
    pub(super) fn add_view(&mut self, view: View) -> Result<TaskId, Reason> {
        if self.tasks.len() >= limits::TASKS {
            return Err(Reason::Inconsistent(format!("more than {} tasks; the rest is not shown", limits::TASKS)));
        }
        let kmp = self.kmp;
        let s = &kmp.structs;
        let addr = view.addr();
        let bit = |slot: &Slot| self.flag(&view, slot);
        let explicit = bit(&s.flags.tasktype)?;
        let team = view.ptr(&s.taskdata.team)?;
        let parent = view.ptr(&s.taskdata.parent)?;
        let kind = match (explicit, parent.is_null()) {
            (true, _) if bit(&s.flags.task_serial)? => TaskKind::Undeferred,
            (true, _) => TaskKind::Explicit,
            (false, true) => TaskKind::Initial,
            (false, false) => TaskKind::Implicit,
        };
        let state = self.state_of(&view, explicit)?;
        let part = if explicit { Some(self.task_part(&view)) } else { None };
        let function = match &part {
            Some(part) => {
                let routine = part.as_ref().map_err(Clone::clone).and_then(|task| task.ptr(&s.task.routine));
                s.task.routine.fact(routine)
            }
            None if kind == TaskKind::Initial => Fact::unknown(Common::InitialTaskWithoutFunction),
            None => self.region_function(team),
        };
        let priority = match &part {
            None => s.flags.tasktype.fact(Ok(0)),
            Some(part) => match bit(&s.flags.priority_specified) {
                // Up to LLVM 12, whose table of dependences is another, the bit does not get from the compiler to the task.
                Ok(false) if s.dephash_entry.last_ins.field().is_ok() => {
                    Fact::unknown(Own::NoPriorities)
                }
                Ok(false) => s.flags.priority_specified.fact(Ok(0)),
                Ok(true) => {
                    s.task.priority.fact(part.as_ref().map_err(Clone::clone).and_then(|t| t.int(&s.task.priority)))
                }
                Err(why) => why.into(),
            },
        };
        let event = match bit(&s.flags.detachable) {
            Ok(true) if explicit => s.taskdata.event.fact(view.addr_of(&s.taskdata.event).and_then(|handle| {
                Ok(Some(Event { handle, fulfilled: view.uint(&s.taskdata.event_type)? != EVENT_PENDING }))
            })),
            Ok(_) => s.flags.detachable.fact(Ok(None)),
            Err(why) => why.into(),
        };
        // A team of one thread executes tasks at once, and does not count them (`__kmp_track_children_task`).
        let unfinished_children = match bit(&s.flags.team_serial) {
            Ok(true) => Fact::unknown(Own::ChildrenNotCounted),
            Ok(false) => s.taskdata.incomplete_children.fact(view.count(&s.taskdata.incomplete_children)),
            Err(why) => why.into(),
        };
        let id = TaskId(self.tasks.len());
        let task = RawTask {
            kind: s.flags.tasktype.fact(Ok(kind)),
            state,
            function,
            team: self.team_at(team, &s.taskdata.team),
            is_final: s.flags.final_.fact(bit(&s.flags.final_)),
            tied: s.flags.tiedness.fact(bit(&s.flags.tiedness)),
            mergeable: Fact::unknown(Own::CompilersDoNotTell),
            priority,
            event,
            unmet: match view.ptr(&s.taskdata.depnode) {
                Ok(node) if node.is_null() => s.taskdata.depnode.fact(Ok(0)),
                Ok(_) => Fact::unknown(Own::DependencesNotRead),
                Err(why) => why.into(),
            },
            unfinished_children,
            tool_data: s.taskdata.task_tool_data.fact(view.uint(&s.taskdata.task_tool_data)),
            ompt_frames: s.taskdata.exit_frame.fact(self.ompt_frames(&view)),
            ..RawTask::unknown(addr, Common::NotRead)
        };
        self.tasks.push(task);
        self.task_ids.insert(addr, id);
        self.tasks[id.0].location = self.line_in(&view, &s.taskdata.ident);
        self.task_views.push(view);
        Ok(id)
    }

    /// What is noted for OMPT tools: nothing unless there is one.
    fn ompt_frames(&self, task: &View) -> Result<OmptFrames, Reason> {
        let s = &self.kmp.structs.taskdata;
        let frame = |at: &Slot, flags: &Slot| -> Result<Option<OmptFrame>, Reason> {
            let address = task.ptr(at)?;
            Ok((!address.is_null()).then_some(OmptFrame { address, flags: task.u32(flags)? }))
        };
        Ok(OmptFrames {
            exit: frame(&s.exit_frame, &s.exit_frame_flags)?,
            enter: frame(&s.enter_frame, &s.enter_frame_flags)?,
        })
    }

    /// What the flags tell of a task that no thread executes.
    fn state_of(&self, view: &View, explicit: bool) -> Result<Fact<TaskState>, Reason> {
        let s = &self.kmp.structs.flags;
        let by_start = |state| s.started.fact(Ok(state));
        if !self.flag(view, &s.started)? && explicit {
            return Ok(by_start(TaskState::Ready));
        }
        if !explicit {
            return Ok(by_start(TaskState::Suspended));
        }
        // One that is over is kept while it has children (`__kmp_free_task_and_ancestors`).
        match self.flag(view, &s.complete) {
            Ok(false) => {}
            Ok(true) => return Ok(Fact::unknown(Own::OverAndKept)),
            Err(why) if why.is_layout() => return Ok(why.into()),
            Err(why) => return Err(why),
        }
        // A detached task whose body is over becomes a proxy for the event (`__kmp_task_finish`).
        Ok(match (self.flag(view, &s.detachable), self.flag(view, &s.proxy)) {
            (Ok(true), Ok(true)) => s.proxy.fact(Ok(TaskState::Detached)),
            (Ok(false), _) | (_, Ok(false)) => by_start(TaskState::Suspended),
            (Err(why), _) | (_, Err(why)) => why.into(),
        })
    }

    /// The function a region's body was outlined into. For code made by GCC the microtask is a wrapper inside the
    /// runtime, and its first argument is the function (`__kmp_GOMP_microtask_wrapper`). Serialized regions entered
    /// without `__kmpc_fork_call` leave the field as it was, so for them it says nothing.
    pub(super) fn region_function(&self, team: Addr) -> Fact<Addr> {
        let s = &self.kmp.structs.team;
        let Some(view) = self.teams.get(&team) else { return Fact::unknown(Own::TheTeamUnreadable) };
        let read = || -> Result<Fact<Addr>, Reason> {
            if view.count(&s.serialized)? > 0 {
                return Ok(Fact::unknown(Own::NoSerializedFunction));
            }
            let pkfn = view.ptr(&s.pkfn)?;
            if pkfn.is_null() {
                return Ok(Fact::unknown(Own::FunctionNotSet));
            }
            match self.kmp.own_code.owner(self.target, pkfn) {
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
            Ok(s.argv.fact(Ok(self.target.read_ptr(argv)?)))
        };
        read().unwrap_or_else(Fact::from)
    }
}
