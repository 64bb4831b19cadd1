//! Tasks: those executed now with their ancestors; `queues` has the others. What a task record says of itself.

use std::collections::HashSet;

use ompd_layout::Origin;
use ompd_process::{Addr, TargetExt};

use crate::gomp::reason::Own;
use super::{GompTaskgroup, GompThread, NO_OMPT, Place, Reader};
use crate::bind::View;
use crate::excerpt::NOT_LOOKED_FOR;
use crate::limits;
use crate::model::*;

/// `enum gomp_task_kind`.
pub(super) mod kind {
    pub(in super::super) const IMPLICIT: u64 = 0;
    pub(in super::super) const UNDEFERRED: u64 = 1;
    pub(in super::super) const WAITING: u64 = 2;
    pub(in super::super) const TIED: u64 = 3;
    pub(in super::super) const ASYNC_RUNNING: u64 = 4;
    pub(in super::super) const DETACHED: u64 = 5;
}

/// The count in a `gomp_sem_t`; the top bit says that threads may be waiting (`config/linux/sem.h`).
pub(super) const SEM_COUNT: u32 = 0x7fff_ffff;

impl Reader<'_> {
    /// Address and thread of every implicit task: they live in an array at the end of their team.
    pub(super) fn implicit_task_of(&self, task: Addr) -> Option<(Addr, u32)> {
        let size = self.gomp.structs.task.size.get().ok()?;
        let first = self.gomp.structs.team.implicit_task.offset().ok()?;
        let (team, raw) = self.teams.range(..=task).next_back()?;
        let nthreads = raw.view.uint(&self.gomp.structs.team.nthreads).ok()?;
        let distance = task.0.checked_sub(team.offset(first).0)?;
        let index = distance / size;
        (distance % size == 0 && index < nthreads).then_some((*team, index as u32))
    }

    /// False if implicit tasks cannot be told by their addresses.
    fn knows_implicit_tasks(&self) -> bool {
        let s = &self.gomp.structs;
        s.task.size.get().is_ok() && s.team.implicit_task.offset().is_ok() && s.team.nthreads.offset().is_ok()
    }

    /// Current tasks with their ancestors, then what is queued in each team.
    pub(super) fn read_tasks(&mut self) {
        self.read_current_tasks();
        self.implicit_tasks();
        self.read_queues();
        self.doubt_suspended();
    }

    /// Current tasks with their ancestors; where a single thread is looked at, those of that.
    pub(super) fn read_current_tasks(&mut self) {
        let looked_at = if self.focused.is_some() { 1 } else { self.threads.len() };
        let current: Vec<(i32, Addr, Addr)> = self
            .threads
            .iter()
            .take(looked_at)
            .filter(|t| !t.idle)
            .filter_map(|t| Some((t.lwp, t.team, t.view.ptr(&self.gomp.structs.thread.task).ok()?)))
            .filter(|(_, _, task)| !task.is_null())
            .collect();
        for (lwp, team, task) in current {
            let team = self.team_at(team, &self.gomp.structs.thread.team);
            let mut child: Option<TaskId> = None;
            let (mut at, mut in_team) = (task, team.clone());
            let mut enough = false;
            for depth in 0.. {
                let seen = self.task_ids.get(&at).copied();
                let id = match seen {
                    Some(id) => id,
                    None => match self.add_task(at, in_team.clone()) {
                        Ok(id) => id,
                        Err(why) => {
                            if let Some(child) = child {
                                self.tasks[child.0].generating = Fact::unknown(&why);
                            }
                            self.issue(format!("task {at}"), why);
                            break;
                        }
                    },
                };
                if let Some(child) = child {
                    let origin = self.gomp.structs.task.parent.origin().unwrap_or(Origin::Profile);
                    self.tasks[child.0].generating = Fact::known(Some(id), origin);
                } else {
                    self.tasks[id.0].thread = Some(lwp);
                    self.tasks[id.0].state = self.gomp.structs.thread.task.fact(Ok(TaskState::Running));
                    self.tasks[id.0].team = team.clone();
                }
                if seen.is_some() || enough {
                    break;
                }
                enough = self.is_last(id, at);
                if enough && !self.goes_beyond() {
                    self.tasks[id.0].generating = Fact::unknown(NOT_LOOKED_FOR);
                    break;
                }
                let parent = self.parent_of(at);
                child = Some(id);
                match parent {
                    Ok(parent) if parent.is_null() => {
                        self.tasks[id.0].generating = self.no_parent(id);
                        break;
                    }
                    Ok(parent) => {
                        // The parent of an implicit task belongs to the enclosing team.
                        if let Some((own, _)) = self.implicit_task_of(at) {
                            let s = &self.gomp.structs.team;
                            in_team = match self.teams.get(&own).map(|t| t.view.ptr(&s.prev_team)) {
                                Some(Ok(outer)) => self.team_at(outer, &s.prev_team),
                                _ => Fact::unknown(Common::TeamUnreadable),
                            };
                        } else if !self.knows_implicit_tasks() {
                            in_team = Fact::unknown(Own::ImplicitTasksUnknown);
                        }
                        at = parent;
                    }
                    Err(why) => {
                        self.tasks[id.0].generating = why.into();
                        break;
                    }
                }
                if depth == limits::TASK_DEPTH {
                    self.tasks[id.0].generating = Fact::unknown(Common::EndlessGeneratingTasks);
                    break;
                }
            }
        }
    }

    /// Implicit tasks whose thread executes a task that was not generated under it, as it may at a barrier.
    fn implicit_tasks(&mut self) {
        let s = &self.gomp.structs;
        let (Ok(size), Ok(first)) = (s.task.size.get(), s.team.implicit_task.offset()) else { return };
        let busy = |t: &&GompThread| !t.idle && t.view.ptr(&s.thread.task).is_ok_and(|task| !task.is_null());
        let members: Vec<(Addr, u32)> = self.threads.iter().filter(busy).map(|t| (t.team, t.team_id)).collect();
        for (team, number) in members {
            let own = team.offset(first).offset(size.wrapping_mul(number.into()));
            if self.teams.contains_key(&team) && !self.task_ids.contains_key(&own) {
                let id = self.team_at(team, &s.thread.team);
                let added = self.add_task(own, id);
                let parent = self.parent_of(own);
                match (added, parent) {
                    (Ok(id), Ok(parent)) => {
                        self.tasks[id.0].generating = match self.task_ids.get(&parent) {
                            _ if parent.is_null() => self.no_parent(id),
                            Some(parent) => s.task.parent.fact(Ok(Some(*parent))),
                            None => Fact::unknown(Own::NotMet { parent }),
                        };
                    }
                    (Ok(id), Err(why)) => self.tasks[id.0].generating = why.into(),
                    (Err(why), _) if why.is_layout() => {}
                    (Err(why), _) => self.issue(format!("task {own}"), why),
                }
            }
        }
    }

    /// A task counts as suspended because no thread was found to execute it: that is known only if it is known of all.
    fn doubt_suspended(&mut self) {
        let mut doubtful = HashSet::new();
        let mut all = !self.knows_all_threads();
        for thread in self.threads.iter().filter(|t| !t.idle || t.unsettled.is_some()) {
            match thread.view.ptr(&self.gomp.structs.thread.task) {
                Ok(task) if thread.unsettled.is_some() => drop(doubtful.insert(task)),
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

    /// Outside all regions libgomp keeps no task for a thread that never changed a control variable: `thread.task` is
    /// NULL, and the thread executes its initial task all the same.
    pub(super) fn add_initial_task(&mut self, lwp: i32) -> TaskId {
        let slot = self.gomp.structs.thread.task;
        let id = TaskId(self.tasks.len());
        self.tasks.push(RawTask {
            descriptor: Addr::NULL,
            kind: slot.fact(Ok(TaskKind::Initial)),
            state: slot.fact(Ok(TaskState::Running)),
            function: Fact::unknown(Common::InitialTaskWithoutFunction),
            location: Fact::unknown(Own::NoPositions),
            generating: slot.fact(Ok(None)),
            team: slot.fact(Ok(None)),
            thread: Some(lwp),
            member: None,
            is_final: slot.fact(Ok(false)),
            ..RawTask::unknown(Addr::NULL, Own::NoRecordOfTask)
        });
        id
    }

    /// What a parent pointer of NULL means: an initial task has none; for others it has finished (`gomp_clear_parent`), or
    /// is an initial task, of which libgomp keeps no record.
    pub(super) fn no_parent(&self, id: TaskId) -> Fact<Option<TaskId>> {
        match self.tasks[id.0].kind.get() {
            Some(TaskKind::Initial) => self.gomp.structs.task.parent.fact(Ok(None)),
            _ => Fact::unknown(Own::GeneratingFinished),
        }
    }

    pub(super) fn parent_of(&self, task: Addr) -> Result<Addr, Reason> {
        let field = self.gomp.structs.task.parent.field()?;
        Ok(self.target.read_ptr(task.offset(field.offset))?)
    }

    /// Reads one task and files it. `team` is the team it is thought to belong to; implicit tasks know better.
    pub(super) fn add_task(&mut self, addr: Addr, team: Fact<Option<TeamId>>) -> Result<TaskId, Reason> {
        let view = View::read(self.target, addr, self.gomp.structs.task.size)?;
        self.add_task_as(addr, view, team)
    }

    /// The same for a task that has been read.
    pub(super) fn add_task_as(&mut self, addr: Addr, view: View, team: Fact<Option<TeamId>>) -> Result<TaskId, Reason> {
        if self.tasks.len() >= limits::TASKS {
            return Err(Reason::Inconsistent(format!("more than {} tasks; the rest is not shown", limits::TASKS)));
        }
        let s = &self.gomp.structs.task;
        let raw_kind = view.uint(&s.kind)?;
        self.check.note("a task is of a kind that no libgomp has", raw_kind <= kind::DETACHED);
        let implicit = self.implicit_task_of(addr);
        let team = match implicit.and_then(|(own, _)| self.team_id(own)) {
            Some(own) => self.gomp.structs.team.implicit_task.fact(Ok(Some(own))),
            None => team,
        };
        let (kind, state) = match raw_kind {
            kind::IMPLICIT if matches!(team, Fact::Known { value: None, .. }) => {
                (TaskKind::Initial, TaskState::Suspended)
            }
            kind::IMPLICIT => (TaskKind::Implicit, TaskState::Suspended),
            kind::UNDEFERRED => (TaskKind::Undeferred, TaskState::Suspended),
            kind::WAITING => (TaskKind::Explicit, TaskState::Ready),
            kind::DETACHED => (TaskKind::Explicit, TaskState::Detached),
            kind::TIED | kind::ASYNC_RUNNING => (TaskKind::Explicit, TaskState::Suspended),
            other => return Err(Reason::Inconsistent(format!("it is of kind {other}, which no libgomp has"))),
        };
        let function = match kind {
            TaskKind::Explicit => match view.ptr(&s.fn_) {
                Ok(addr) if addr.is_null() => Fact::unknown(Own::TargetTask),
                Ok(addr) => s.fn_.fact(Ok(addr)),
                Err(why) => why.into(),
            },
            TaskKind::Undeferred => Fact::unknown(Own::NoUndeferredFunction),
            TaskKind::Implicit => Fact::unknown(Own::NoRegionFunction),
            TaskKind::Initial => Fact::unknown(Common::InitialTaskWithoutFunction),
        };
        let group = match view.ptr(&s.taskgroup) {
            Ok(group) => self.taskgroup_at(group, &team),
            Err(why) => why.into(),
        };
        let id = TaskId(self.tasks.len());
        let icv = view.addr_of(&s.icv).unwrap_or(Addr::NULL);
        self.icv_addrs.insert(id, icv);
        let implicit_kind = matches!(kind, TaskKind::Implicit | TaskKind::Initial);
        const CLAUSE: Own = Own::ClauseNotKept;
        self.tasks.push(RawTask {
            descriptor: addr,
            kind: match kind {
                TaskKind::Implicit if implicit.is_none() && team.value().is_none() => {
                    Fact::unknown(Own::InitialOrImplicit)
                }
                _ => s.kind.fact(Ok(kind)),
            },
            state: match raw_kind {
                kind::ASYNC_RUNNING => Fact::unknown(Own::OnDevice),
                _ => s.kind.fact(Ok(state)),
            },
            function,
            location: Fact::unknown(Own::NoPositions),
            generating: Fact::unknown(Common::NotRead),
            team,
            thread: None,
            member: implicit.map(|(_, member)| member),
            is_final: s.final_task.fact(view.flag(&s.final_task)),
            // Implicit tasks are tied and not mergeable by definition.
            tied: if implicit_kind { s.kind.fact(Ok(true)) } else { Fact::unknown(CLAUSE) },
            mergeable: if implicit_kind { s.kind.fact(Ok(false)) } else { Fact::unknown(CLAUSE) },
            priority: if implicit_kind { s.kind.fact(Ok(0)) } else { s.priority.fact(view.int(&s.priority)) },
            taskgroup: group,
            event: if implicit_kind { s.kind.fact(Ok(None)) } else { self.event_of(addr, &view) },
            dependences: Vec::new(),
            unmet: self.unmet_of(&view, raw_kind),
            predecessors: Vec::new(),
            unfinished_children: Fact::unknown(Own::NotCounted),
            ..RawTask::unknown(addr, NO_OMPT)
        });
        self.task_ids.insert(addr, id);
        if let Ok(wait) = view.ptr(&s.taskwait) {
            self.taskwait_place(wait, addr);
        }
        Ok(id)
    }

    /// How many tasks it waits for to be over. The count is set together with dependences only, and is down to 0 when the
    /// task gets into a queue.
    fn unmet_of(&self, view: &View, raw_kind: u64) -> Fact<u32> {
        let s = &self.gomp.structs.task;
        if raw_kind != kind::WAITING {
            return s.kind.fact(Ok(0));
        }
        let read = || match view.uint(&s.depend_count)? {
            0 => Ok(0),
            _ => view.u32(&s.num_dependees),
        };
        s.num_dependees.fact(read())
    }

    /// The event of a `detach` clause: its handle is the address of the task. A deferred task keeps its team as long as the
    /// event is to be fulfilled, an undeferred one the semaphore it will wait on (`GOMP_task`, `omp_fulfill_event`).
    fn event_of(&self, task: Addr, view: &View) -> Fact<Option<Event>> {
        let s = &self.gomp.structs.task;
        if self.gomp.events == Some(false) {
            return s.kind.fact(Ok(None));
        }
        let read = || {
            if view.flag(&s.deferred)? {
                let team = view.ptr(&s.detach_team)?;
                return Ok((!team.is_null()).then_some(Event { handle: task, fulfilled: false }));
            }
            let sem = view.ptr(&s.completion_sem)?;
            if sem.is_null() {
                return Ok(None);
            }
            let fulfilled = self.target.read_u32(sem)? & SEM_COUNT != 0;
            Ok(Some(Event { handle: task, fulfilled }))
        };
        s.deferred.fact(read())
    }

    /// The taskgroup at `innermost` with those around it.
    fn taskgroup_at(&mut self, innermost: Addr, team: &Fact<Option<TeamId>>) -> Fact<Option<TaskgroupId>> {
        let task = &self.gomp.structs.task.taskgroup;
        let s = &self.gomp.structs.taskgroup;
        let mut at = innermost;
        let mut inner: Option<TaskgroupId> = None;
        for _ in 0..limits::TASK_DEPTH {
            let id = match self.group_ids.get(&at).copied() {
                _ if at.is_null() => None,
                Some(id) => Some(id),
                None => {
                    let view = match View::read(self.target, at, s.size) {
                        Ok(view) => view,
                        Err(why) if inner.is_none() => return why.into(),
                        Err(_) => break,
                    };
                    let id = TaskgroupId(self.groups.len());
                    self.group_ids.insert(at, id);
                    if let Ok(sem) = view.addr_of(&s.sem) {
                        self.places.insert(sem, Place { group: Some(id), ..Place::of(WaitKind::Taskgroup) });
                    }
                    let parent = Fact::unknown(Own::TaskgroupUnreadable);
                    self.groups.push(GompTaskgroup { addr: at, view, parent, team: team.clone() });
                    if let Some(inner) = inner {
                        self.groups[inner.0].parent = s.prev.fact(Ok(Some(id)));
                    }
                    at = self.groups[id.0].view.ptr(&s.prev).unwrap_or(Addr::NULL);
                    inner = Some(id);
                    continue;
                }
            };
            if let Some(inner) = inner {
                // NULL ends the chain, or the link is not known.
                let known = self.groups[inner.0].view.ptr(&s.prev);
                self.groups[inner.0].parent = s.prev.fact(known.map(|_| id));
            }
            break;
        }
        match self.group_ids.get(&innermost) {
            _ if innermost.is_null() => task.fact(Ok(None)),
            Some(id) => task.fact(Ok(Some(*id))),
            None => Fact::unknown(Common::EndlessTaskgroups),
        }
    }

    pub(super) fn make_taskgroups(&self) -> Vec<Taskgroup> {
        let s = &self.gomp.structs.taskgroup;
        let make = |group: &GompTaskgroup| Taskgroup {
            descriptor: group.addr,
            parent: group.parent.clone(),
            unfinished: s.num_children.fact(group.view.uint(&s.num_children)),
            cancelled: s.cancelled.fact(group.view.flag(&s.cancelled)),
        };
        self.groups.iter().map(make).collect()
    }
}
