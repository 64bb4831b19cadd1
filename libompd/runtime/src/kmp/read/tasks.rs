//! Tasks: those executed now with their ancestors, and those in the queues.

use std::collections::{HashMap, HashSet};

use ompd_target::{Addr, TargetExt};

use super::{Idle, Reader};
use crate::bind::{Slot, View, Why};
use crate::limits;
use crate::model::*;
use crate::owner::Owner;

impl Reader<'_> {
    pub(super) fn read_tasks(&mut self) {
        let s = &self.kmp.structs.info;
        let current: Vec<(Option<i32>, Option<u32>, Addr, Addr)> = self
            .threads
            .iter()
            .filter(|t| matches!(t.idle, Idle::No))
            .filter_map(|t| Some((t.lwp, t.view.count(&s.ds_tid).ok(), t.team, t.view.ptr(&s.current_task).ok()?)))
            .filter(|(.., task)| !task.is_null())
            .collect();
        for (lwp, number, team, task) in current {
            let mut child: Option<TaskId> = None;
            let mut at = task;
            for depth in 0.. {
                let seen = self.task_ids.get(&at).copied();
                let id = match seen.map_or_else(|| self.add_task(at), Ok) {
                    Ok(id) => id,
                    Err(why) => {
                        if let Some(child) = child {
                            self.tasks[child.0].generating = Fact::unknown(&why);
                        }
                        self.issue(format!("task {at}"), why);
                        break;
                    }
                };
                let parent_slot = self.kmp.structs.taskdata.parent;
                if let Some(child) = child {
                    self.tasks[child.0].generating = parent_slot.fact(Ok(Some(id)));
                } else {
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
                }
                if seen.is_some() {
                    break;
                }
                child = Some(id);
                match self.task_views[id.0].ptr(&parent_slot) {
                    Ok(parent) if parent.is_null() => {
                        self.tasks[id.0].generating = parent_slot.fact(Ok(None));
                        break;
                    }
                    Ok(parent) => at = parent,
                    Err(why) => {
                        self.tasks[id.0].generating = why.into();
                        break;
                    }
                }
                if depth == limits::TASK_DEPTH {
                    self.tasks[id.0].generating = Fact::unknown("the chain of generating tasks has no end");
                    break;
                }
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
        self.number_implicit();
        self.doubt_suspended();
    }

    /// The implicit tasks of a team lie in one array, by number (`t_implicit_task_taskdata`, `__kmp_allocate_team_arrays`):
    /// from one whose number is known, since its thread executes it, follow the numbers of the others.
    fn number_implicit(&mut self) {
        let Ok(size) = self.kmp.structs.taskdata.size.get() else { return };
        let implicit = |task: &Task| task.kind.get() == Some(TaskKind::Implicit);
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
                task.state = Fact::unknown("a thread whose task is not known may be executing it");
            }
        }
    }

    /// True if one team is the parent of the other.
    fn encloses(&self, outer: Addr, inner: Addr) -> bool {
        let parent = self.kmp.structs.team.parent.offset().ok().map(|at| self.target.read_ptr(inner.offset(at)));
        matches!(parent, Some(Ok(parent)) if parent == outer && !outer.is_null())
    }

    /// Reads one task and files it.
    pub(super) fn add_task(&mut self, addr: Addr) -> Result<TaskId, Why> {
        if self.tasks.len() >= limits::TASKS {
            return Err(Why::Inconsistent(format!("more than {} tasks; the rest is not shown", limits::TASKS)));
        }
        let s = &self.kmp.structs;
        let view = View::read(self.target, addr, s.taskdata.size)?;
        let flags = view.within(&s.taskdata.flags, 0, s.flags.size)?;
        let bit = |slot: &Slot| -> Result<bool, Why> { Ok(flags.uint(slot)? != 0) };
        let explicit = bit(&s.flags.tasktype)?;
        let started = bit(&s.flags.started)?;
        let team = view.ptr(&s.taskdata.team)?;
        let parent = view.ptr(&s.taskdata.parent)?;
        let kind = match (explicit, parent.is_null()) {
            (true, _) if bit(&s.flags.task_serial)? => TaskKind::Undeferred,
            (true, _) => TaskKind::Explicit,
            (false, true) => TaskKind::Initial,
            (false, false) => TaskKind::Implicit,
        };
        let function = if explicit {
            let task = View::read(self.target, addr.offset(s.taskdata.size.get()?), s.task.size);
            s.task.routine.fact(task.and_then(|task| task.ptr(&s.task.routine)).map(CodeRef::new))
        } else if kind == TaskKind::Initial {
            Fact::unknown("an initial task has no function of its own")
        } else {
            self.region_function(team)
        };
        let id = TaskId(self.tasks.len());
        let task = Task {
            descriptor: addr,
            kind: s.flags.tasktype.fact(Ok(kind)),
            state: s.flags.started.fact(Ok(if explicit && !started { TaskState::Ready } else { TaskState::Suspended })),
            function,
            location: Fact::unknown("not read"),
            generating: Fact::unknown("not read"),
            team: self.team_at(team, &s.taskdata.team),
            thread: None,
            member: None,
            is_final: s.flags.final_.fact(bit(&s.flags.final_)),
            ..Task::unknown(addr, "not read")
        };
        let ident_slot = s.taskdata.ident;
        self.tasks.push(task);
        self.task_ids.insert(addr, id);
        self.tasks[id.0].location = self.line_in(&view, &ident_slot);
        self.task_views.push(view);
        Ok(id)
    }

    /// Ready tasks of a team: each member has a ring of pointers to tasks.
    pub(super) fn read_queues(&mut self, task_team: Addr) -> Result<(), Why> {
        let kmp = self.kmp;
        let s = &kmp.structs;
        let view = View::read(self.target, task_team, s.task_team.size)?;
        let (array, members) = (view.ptr(&s.task_team.threads_data)?, view.count(&s.task_team.nproc)?);
        if array.is_null() {
            return Ok(());
        }
        if u64::from(members) > limits::TEAM_SIZE {
            return Err(Why::Inconsistent(format!("it claims {members} members")));
        }
        let (stride, width) = (s.thread_data_stride.size.get()?, u64::from(self.target.arch().pointer_bytes));
        for member in 0..u64::from(members) {
            self.budget.spend(1)?;
            let data = View::read(self.target, array.offset(member * stride), s.thread_data.size)?;
            let d = &s.thread_data;
            let (ring, waiting) = (data.ptr(&d.deque)?, u64::from(data.count(&d.deque_ntasks)?));
            if ring.is_null() || waiting == 0 {
                continue;
            }
            let (slots, head) = (u64::from(data.count(&d.deque_size)?), data.uint(&d.deque_head)?);
            if waiting > slots || head >= slots || slots > limits::TASKS as u64 {
                return Err(Why::Inconsistent(format!("the queue of member {member} contradicts itself")));
            }
            self.budget.spend(waiting)?;
            for i in 0..waiting {
                let addr = self.target.read_ptr(ring.offset((head + i) % slots * width))?;
                if addr.is_null() {
                    return Err(Why::Inconsistent(format!("the queue of member {member} has holes")));
                }
                if self.task_ids.contains_key(&addr) {
                    continue;
                }
                let id = self.add_task(addr)?;
                let parent = self.task_views[id.0].ptr(&s.taskdata.parent)?;
                let parent = match self.task_ids.get(&parent) {
                    Some(parent) => Ok(Some(*parent)),
                    None if parent.is_null() => Ok(None),
                    None => self.add_task(parent).map(Some),
                };
                self.tasks[id.0].generating = s.taskdata.parent.fact(parent);
            }
        }
        Ok(())
    }

    /// The function a region's body was outlined into. For code made by GCC the microtask is a wrapper inside the
    /// runtime, and its first argument is the function (`__kmp_GOMP_microtask_wrapper`). Serialized regions entered
    /// without `__kmpc_fork_call` leave the field as it was, so for them it says nothing.
    pub(super) fn region_function(&self, team: Addr) -> Fact<CodeRef> {
        let s = &self.kmp.structs.team;
        let Some(view) = self.teams.get(&team) else { return Fact::unknown("the team could not be read") };
        let read = || -> Result<Fact<CodeRef>, Why> {
            if view.count(&s.serialized)? > 0 {
                return Ok(Fact::unknown("the runtime does not maintain the function of a serialized region"));
            }
            let pkfn = view.ptr(&s.pkfn)?;
            if pkfn.is_null() {
                return Ok(Fact::unknown("the runtime has not set the function of the region"));
            }
            match self.kmp.territory.owner(self.target, pkfn) {
                Owner::Other => return Ok(s.pkfn.fact(Ok(CodeRef::new(pkfn)))),
                Owner::Unclear => {
                    return Ok(Fact::unknown("whether the region's microtask is the runtime's is not known"));
                }
                Owner::Runtime => {}
            }
            if view.count(&s.argc)? == 0 {
                return Ok(Fact::unknown("the region's microtask is the runtime's own"));
            }
            let argv = view.ptr(&s.argv)?;
            Ok(s.argv.fact(Ok(CodeRef::new(self.target.read_ptr(argv)?))))
        };
        read().unwrap_or_else(Fact::from)
    }
}
