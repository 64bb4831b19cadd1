//! One task: what its descriptor says, and the tasks that generated it.

use std::collections::{HashMap, HashSet};

use ompd_process::{Addr, TargetExt};

use super::teams::Teams;
use super::threads::Threads;
use super::{Context, Notes};
use crate::bind::{Fields, Part, Slot, StructData};
use crate::excerpt::NOT_LOOKED_FOR;
use crate::kmp::reason::Own;
use crate::limits;
use crate::model::*;
use crate::window::Structs;

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

/// The wait of a task for others that it names by dependences (`__kmpc_omp_wait_deps`): a node on the stack of its thread.
pub(super) struct DependenceWait {
    /// The node.
    pub(super) node: Addr,
    /// How many dependences are not met.
    pub(super) before: i64,
}

/// What tasks have in common that are told by their number. What is not known of one is not known of all.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Alike {
    pub(super) routine: Option<Addr>,
    pub(super) parent: Option<Addr>,
    pub(super) team: Option<Addr>,
    pub(super) group: Option<Addr>,
    pub(super) priority: Option<i64>,
    pub(super) blocked: bool,
}

/// How many tasks are alike.
pub(super) struct Kin {
    /// One of them that is listed.
    pub(super) like: TaskId,
    pub(super) listed: u64,
    pub(super) more: u64,
}

/// Tasks that were found outside of any thread's hands.
#[derive(Default)]
pub(super) struct Queued {
    pub(super) kin: HashMap<Alike, Kin>,
    pub(super) listed: usize,
    /// Those of which not even one that is alike is listed.
    pub(super) unlisted: u64,
    /// Nodes in the graph of dependences of tasks that are in a queue and not listed.
    pub(super) nodes: Vec<Addr>,
    /// Tasks of those nodes.
    pub(super) in_queue: HashSet<Addr>,
    pub(super) first_error: Option<Reason>,
    /// Every ring, with its number of slots.
    pub(super) rings: Vec<(Addr, u64)>,
    /// Room for what is read of the tasks of a queue.
    pub(super) structs: Option<Structs>,
}

impl TaskReader<'_> {
    /// Reads one task and files it.
    pub(super) fn add_task(&mut self, addr: Addr) -> Result<TaskId, Reason> {
        let view = TaskReader::read_one(self.context, addr)?;
        self.add_view(view)
    }

    /// Reads one task, as far as anything of it is wanted.
    pub(super) fn read_one(context: &Context<'_>, addr: Addr) -> Result<StructData, Reason> {
        let s = &context.kmp.structs;
        let (task, reach) = (&s.taskdata, context.reach);
        if reach.is_whole() {
            return StructData::read(context.target, addr, task.size);
        }
        let mut fields = vec![&task.team, &task.parent];
        if reach.wants_waits() {
            fields.push(&task.taskwait_thread);
        }
        let mut embedded: Vec<(&Slot, u64, &dyn Fields)> = vec![(&task.flags, 0, &s.flags)];
        if reach.wants_icvs() {
            embedded.push((&task.icvs, 0, &s.icvs));
        }
        if reach.wants_tool() {
            let frames = [&task.exit_frame, &task.exit_frame_flags, &task.enter_frame, &task.enter_frame_flags];
            fields.extend(frames.into_iter().chain([&task.task_tool_data]));
        }
        StructData::read_fields(context.target, addr, task.size, &fields, &embedded)
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

    /// As much of it as says what the task executes.
    fn routine_part(&self, task: Addr) -> Result<StructData, Reason> {
        let s = &self.context.kmp.structs;
        let at = task.offset(s.taskdata.size.get()?);
        StructData::read_fields(self.context.target, at, s.task.size, &[&s.task.routine], &[])
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
        let whole = self.context.reach.wants_waits();
        let part = match explicit {
            true if whole => Some(self.task_part(&view)),
            true if self.context.reach.wants_functions() => Some(self.routine_part(addr)),
            true => Some(Err(NOT_LOOKED_FOR.into())),
            false => None,
        };
        let function = match &part {
            Some(part) => {
                let routine = part.as_ref().map_err(Clone::clone).and_then(|task| task.ptr(&s.task.routine));
                s.task.routine.fact(routine)
            }
            None if kind == TaskKind::Initial => Fact::unknown(Common::InitialTaskWithoutFunction),
            None if self.context.reach.wants_functions() => self.teams.region_function(self.context, team),
            None => Fact::unknown(NOT_LOOKED_FOR),
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
        let unfinished_children = match (bit(&s.flags.team_serial), bit(&s.flags.tasking_ser)) {
            (Ok(true), _) => Fact::unknown(Own::ChildrenNotCounted),
            (_, Ok(true)) => Fact::unknown(Own::ChildrenExecutedAtOnce),
            (Ok(false), Ok(false)) => s.taskdata.incomplete_children.fact(view.count(&s.taskdata.incomplete_children)),
            (Err(why), _) | (_, Err(why)) => why.into(),
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
            // `__kmp_task_alloc` leaves it to the tool; of implicit tasks the memory is zero.
            tool_data: match explicit && !self.threads.have_tool_data(self.context) {
                true => Fact::unknown(Own::NoTool),
                false => s.taskdata.task_tool_data.fact(view.uint(&s.taskdata.task_tool_data)),
            },
            // The same holds of the frames, which the runtime also notes for debuggers.
            ompt_frames: match explicit && !self.threads.have_tool_data(self.context) && !self.context.keeps_for_tools()
            {
                true => Fact::unknown(Own::NoTool),
                false => s.taskdata.exit_frame.fact(self.ompt_frames(&view)),
            },
            ..RawTask::unknown(addr, Common::NotRead)
        };
        self.found.list.push(task);
        self.found.ids.insert(addr, id);
        self.found.list[id.0].location = self.context.line_in(&view, &s.taskdata.ident);
        self.found.views.push(view);
        Ok(id)
    }

    /// The generating task; NULL for an initial task. The implicit tasks of a team have one, but each region reports it
    /// only to that of number 0. The others get it as they join the team, and keep that when a hot team is used again
    /// (`__kmp_push_current_task_to_thread`).
    pub(super) fn parent_of(&self, task: &StructData) -> Result<Addr, Reason> {
        let s = &self.context.kmp.structs;
        let own = task.ptr(&s.taskdata.parent)?;
        if own.is_null() || self.flag(task, &s.flags.tasktype)? {
            return Ok(own);
        }
        let team = task.ptr(&s.taskdata.team)?;
        let first = match self.teams.found.get(&team) {
            Some(team) => team.ptr(&s.team.implicit_tasks)?,
            None => self.context.team(team)?.ptr(&s.team.implicit_tasks)?,
        };
        match first == task.addr() {
            true => Ok(own),
            false => Ok(self.context.target.read_ptr(first.offset(s.taskdata.parent.offset()?))?),
        }
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

    /// Follows the chain of generating tasks of a task until one is met that was followed before.
    pub(super) fn read_ancestors(&mut self, task: TaskId) {
        let slot = self.context.kmp.structs.taskdata.parent;
        let mut child = task;
        for _ in 0..limits::TASK_DEPTH {
            let parent = match self.parent_of(&self.found.views[child.0]) {
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
}
