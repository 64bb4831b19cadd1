//! Tasks: those executed now with their ancestors, and those in the queues.

use std::collections::{HashMap, HashSet};

use ompd_process::{Addr, TargetExt};

use super::depends::DependenceWait;
use super::queues::Queued;
use super::teams::Teams;
use super::threads::Idle;
use super::threads::Threads;
use super::{Context, Notes};
use crate::bind::{Part, Slot, StructData};
use crate::excerpt::{NOT_LOOKED_FOR, Tasks as Wanted};
use crate::kmp::reason::Own;
use crate::limits;
use crate::model::*;

/// `kmp_event_type_t`: the event is not fulfilled.
pub(super) const EVENT_PENDING: u64 = 1;

/// Tasks, and what was met on the way to them.
#[derive(Default)]
pub(super) struct Tasks {
    pub(super) list: Vec<RawTask>,
    pub(super) ids: HashMap<Addr, TaskId>,
    pub(super) views: Vec<StructData>,
    pub(super) more: Vec<MoreTasks>,
    pub(super) groups: Vec<Taskgroup>,
    pub(super) group_ids: HashMap<Addr, TaskgroupId>,
    /// Waits for dependences, by the task that waits.
    pub(super) depend_waits: HashMap<TaskId, DependenceWait>,
}

/// Reads tasks: those of threads with their ancestors, then those in queues.
pub(super) struct TaskReader<'a> {
    pub(super) context: &'a Context<'a>,
    pub(super) threads: &'a Threads,
    pub(super) teams: &'a Teams,
    pub(super) notes: &'a mut Notes,
    pub(super) queued: Queued,
    pub(super) found: Tasks,
}

/// The tasks that threads execute with those that generated them, and all others that are not over.
pub(super) fn read(context: &Context<'_>, threads: &Threads, teams: &Teams, notes: &mut Notes) -> Tasks {
    let (queued, found) = (Queued::default(), Tasks::default());
    let mut reader = TaskReader { context, threads, teams, notes, queued, found };
    reader.read_executed();
    if context.reach.is_whole() {
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
            && !self.encloses(own, team)
            && !self.encloses(team, own)
        {
            self.notes.check.note("a thread executes a task of a team it is not in", own == team);
        }
        self.found.list[id.0].state = self.context.kmp.structs.info.current_task.fact(Ok(TaskState::Running));
        Some(id)
    }

    /// Follows the chain of generating tasks of a task until one is met that was followed before.
    pub(super) fn read_ancestors(&mut self, task: TaskId) {
        let slot = self.context.kmp.structs.taskdata.parent;
        let mut child = task;
        for _ in 0..limits::TASK_DEPTH {
            let parent = match self.found.views[child.0].ptr(&slot) {
                Ok(parent) if parent.is_null() => {
                    self.found.list[child.0].generating = slot.fact(Ok(None));
                    return;
                }
                Ok(parent) => parent,
                Err(why) => {
                    self.found.list[child.0].generating = why.into();
                    return;
                }
            };
            let seen = self.found.ids.get(&parent).copied();
            match seen.map_or_else(|| self.add_task(parent), Ok) {
                Ok(id) => self.found.list[child.0].generating = slot.fact(Ok(Some(id))),
                Err(why) => {
                    self.found.list[child.0].generating = Fact::unknown(&why);
                    self.notes.issue(format!("task {parent}"), why);
                    return;
                }
            }
            match (seen, self.found.ids.get(&parent)) {
                (None, Some(id)) => child = *id,
                _ => return,
            }
        }
        self.found.list[child.0].generating = Fact::unknown(Common::EndlessGeneratingTasks);
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
            let parent = self.found.views[child.0].ptr(&slot)?;
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

    /// The implicit tasks of a team lie in one array, by number (`t_implicit_task_taskdata`, `__kmp_allocate_team_arrays`):
    /// from one whose number is known, since its thread executes it, follow the numbers of the others.
    fn number_implicit(&mut self) {
        let Ok(size) = self.context.kmp.structs.taskdata.size.get() else { return };
        let implicit = |task: &RawTask| task.kind.get() == Some(TaskKind::Implicit);
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

    /// Reads one task and files it.
    pub(super) fn add_task(&mut self, addr: Addr) -> Result<TaskId, Reason> {
        let view = StructData::read(self.context.target, addr, self.context.kmp.structs.taskdata.size)?;
        self.add_view(view)
    }

    /// The compiler's view of a task, which follows the runtime's.
    pub(super) fn task_part(&self, view: &StructData) -> Result<StructData, Reason> {
        let s = &self.context.kmp.structs;
        let distance = s.taskdata.size.get()?;
        match view.after(distance, s.task.size) {
            Some(part) => Ok(part),
            None => StructData::read(self.context.target, view.addr().offset(distance), s.task.size),
        }
    }

    /// A bit of a task's flags.
    pub(super) fn flag(&self, view: &StructData, bit: &Slot) -> Result<bool, Reason> {
        self.flag_of(view.part(), bit)
    }

    /// The same of a task that is not kept.
    pub(super) fn flag_of(&self, task: Part<'_>, bit: &Slot) -> Result<bool, Reason> {
        let s = &self.context.kmp.structs;
        Ok(task.within(&s.taskdata.flags, 0, s.flags.size)?.uint(bit)? != 0)
    }

    /// Files a task that was read.
    pub(super) fn add_view(&mut self, view: StructData) -> Result<TaskId, Reason> {
        if self.found.list.len() >= limits::TASKS {
            return Err(Reason::from(Common::TooManyTasks { most: limits::TASKS }));
        }
        let kmp = self.context.kmp;
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
            None => self.teams.region_function(self.context, team),
        };
        let priority = match &part {
            None => s.flags.tasktype.fact(Ok(0)),
            Some(part) => match bit(&s.flags.priority_specified) {
                // Up to LLVM 12, whose table of dependences is another, the bit does not get from the compiler to the task.
                Ok(false) if s.dephash_entry.last_ins.field().is_ok() => Fact::unknown(Own::NoPriorities),
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
        let id = TaskId(self.found.list.len());
        let task = RawTask {
            kind: s.flags.tasktype.fact(Ok(kind)),
            state,
            function,
            team: self.teams.team_at(team, &s.taskdata.team),
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
        self.found.list.push(task);
        self.found.ids.insert(addr, id);
        self.found.list[id.0].location = self.context.line_in(&view, &s.taskdata.ident);
        self.found.views.push(view);
        Ok(id)
    }

    /// What is noted for OMPT tools: nothing unless there is one.
    fn ompt_frames(&self, task: &StructData) -> Result<OmptFrames, Reason> {
        let s = &self.context.kmp.structs.taskdata;
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
    fn state_of(&self, view: &StructData, explicit: bool) -> Result<Fact<TaskState>, Reason> {
        let s = &self.context.kmp.structs.flags;
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
}
