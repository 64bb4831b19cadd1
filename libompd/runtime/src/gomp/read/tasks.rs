//! Tasks: those executed now with their ancestors; `queues` has the others. What a task record says of itself.

use std::collections::{HashMap, HashSet};

use ompd_layout::Origin;
use ompd_process::{Addr, TargetExt};

use super::futex_meaning::FutexMeaning;
use super::reach::Reach;
use super::teams::Teams;
use super::threads::GompThread;
use super::{Context, NO_OMPT, Notes};
use crate::bind::StructData;
use crate::excerpt::{NOT_LOOKED_FOR, Tasks as Wanted};
use crate::gomp::reason::Own;
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

/// A `gomp_taskgroup` reached from some task.
pub(super) struct GompTaskgroup {
    pub(super) addr: Addr,
    pub(super) view: StructData,
    pub(super) parent: Fact<Option<TaskgroupId>>,
    /// Team of the task it was reached from.
    pub(super) team: Fact<Option<TeamId>>,
}

/// Tasks, and what was met on the way to them.
#[derive(Default)]
pub(super) struct Tasks {
    pub(super) list: Vec<RawTask>,
    pub(super) ids: HashMap<Addr, TaskId>,
    /// Initial tasks of which libgomp has no record, by the kernel thread id of their threads.
    pub(super) initial: HashMap<i32, TaskId>,
    pub(super) icv_addrs: HashMap<TaskId, Addr>,
    pub(super) more: Vec<MoreTasks>,
    pub(super) groups: Vec<GompTaskgroup>,
    pub(super) group_ids: HashMap<Addr, TaskgroupId>,
    /// Words that threads sleep on until tasks are over.
    pub(super) futexes: HashMap<Addr, FutexMeaning>,
}

/// Reads tasks: those of threads with their ancestors, then those in queues.
pub(super) struct TaskReader<'a> {
    pub(super) context: &'a Context<'a>,
    pub(super) threads: &'a [GompThread],
    pub(super) teams: &'a Teams,
    pub(super) notes: &'a mut Notes,
    pub(super) found: Tasks,
}

/// Current tasks with their ancestors, then what is queued in each team.
pub(super) fn read(context: &Context<'_>, threads: &[GompThread], teams: &Teams, notes: &mut Notes) -> Tasks {
    let mut reader = TaskReader { context, threads, teams, notes, found: Tasks::default() };
    reader.read_current_tasks();
    if context.reach.is_whole() {
        reader.implicit_tasks();
        reader.read_queues();
        reader.doubt_suspended();
    } else {
        reader.doubt_unexecuted();
    }
    reader.add_initial_tasks();
    reader.found
}

impl TaskReader<'_> {
    /// False if implicit tasks cannot be told by their addresses.
    fn knows_implicit_tasks(&self) -> bool {
        let s = &self.context.gomp.structs;
        s.task.size.get().is_ok() && s.team.implicit_task.offset().is_ok() && s.team.nthreads.offset().is_ok()
    }

    /// Current tasks with their ancestors; where a single thread is looked at, those of that.
    fn read_current_tasks(&mut self) {
        if !self.context.reach.wants_tasks() {
            return;
        }
        let threads = self.context.reach.asked(self.threads);
        let current: Vec<(i32, Addr, Addr)> = threads
            .iter()
            .filter(|t| !t.idle)
            .filter_map(|t| Some((t.lwp, t.team, t.view.ptr(&self.context.gomp.structs.thread.task).ok()?)))
            .filter(|(_, _, task)| !task.is_null())
            .collect();
        for (lwp, team, task) in current {
            let team = self.teams.team_at(team, &self.context.gomp.structs.thread.team);
            let mut child: Option<TaskId> = None;
            let (mut at, mut in_team) = (task, team.clone());
            let mut enough = false;
            for depth in 0.. {
                let seen = self.found.ids.get(&at).copied();
                let id = match seen {
                    Some(id) => id,
                    None => match self.add_task(at, in_team.clone()) {
                        Ok(id) => id,
                        Err(why) => {
                            if let Some(child) = child {
                                self.found.list[child.0].generating = Fact::unknown(&why);
                            }
                            self.notes.issue(format!("task {at}"), why);
                            break;
                        }
                    },
                };
                if let Some(child) = child {
                    let origin = self.context.gomp.structs.task.parent.origin().unwrap_or(Origin::Profile);
                    self.found.list[child.0].generating = Fact::known(Some(id), origin);
                } else {
                    self.found.list[id.0].thread = Some(lwp);
                    self.found.list[id.0].state = self.context.gomp.structs.thread.task.fact(Ok(TaskState::Running));
                    self.found.list[id.0].team = team.clone();
                }
                if seen.is_some() || enough {
                    break;
                }
                enough = self.is_last(id, at);
                if enough && !self.context.reach.goes_beyond() {
                    self.found.list[id.0].generating = Fact::unknown(NOT_LOOKED_FOR);
                    break;
                }
                let parent = self.parent_of(at);
                child = Some(id);
                match parent {
                    Ok(parent) if parent.is_null() => {
                        self.found.list[id.0].generating = self.no_parent(id);
                        break;
                    }
                    Ok(parent) => {
                        // The parent of an implicit task belongs to the enclosing team.
                        if let Some((own, _)) = self.teams.implicit_task_of(self.context, at) {
                            let s = &self.context.gomp.structs.team;
                            in_team = match self.teams.found.get(&own).map(|t| t.view.ptr(&s.prev_team)) {
                                Some(Ok(outer)) => self.teams.team_at(outer, &s.prev_team),
                                _ => Fact::unknown(Common::TeamUnreadable),
                            };
                        } else if !self.knows_implicit_tasks() {
                            in_team = Fact::unknown(Own::ImplicitTasksUnknown);
                        }
                        at = parent;
                    }
                    Err(why) => {
                        self.found.list[id.0].generating = why.into();
                        break;
                    }
                }
                if depth == limits::TASK_DEPTH {
                    self.found.list[id.0].generating = Fact::unknown(Common::EndlessGeneratingTasks);
                    break;
                }
            }
        }
    }

    /// True if no more than this task, and perhaps the one that generated it, is wanted.
    fn is_last(&self, task: TaskId, at: Addr) -> bool {
        match self.context.reach {
            Reach::Process => false,
            Reach::Thread { tasks: Wanted::None | Wanted::Current, .. } => true,
            Reach::Thread { tasks: Wanted::UpTo(last) | Wanted::Beyond(last), .. } => at == last,
            Reach::Thread { tasks: Wanted::ImplicitIn(team), .. } => {
                let own = self.teams.implicit_task_of(self.context, at).is_some_and(|(own, _)| own == team);
                own && self.found.list.get(task.0).is_some_and(|task| task.kind.get() == Some(TaskKind::Implicit))
            }
        }
    }

    /// Implicit tasks whose thread executes a task that was not generated under it, as it may at a barrier.
    fn implicit_tasks(&mut self) {
        let s = &self.context.gomp.structs;
        let (Ok(size), Ok(first)) = (s.task.size.get(), s.team.implicit_task.offset()) else { return };
        let busy = |t: &&GompThread| !t.idle && t.view.ptr(&s.thread.task).is_ok_and(|task| !task.is_null());
        let members: Vec<(Addr, u32)> = self.threads.iter().filter(busy).map(|t| (t.team, t.team_id)).collect();
        for (team, number) in members {
            let own = team.offset(first).offset(size.wrapping_mul(number.into()));
            if self.teams.found.contains_key(&team) && !self.found.ids.contains_key(&own) {
                let id = self.teams.team_at(team, &s.thread.team);
                let added = self.add_task(own, id);
                let parent = self.parent_of(own);
                match (added, parent) {
                    (Ok(id), Ok(parent)) => {
                        self.found.list[id.0].generating = match self.found.ids.get(&parent) {
                            _ if parent.is_null() => self.no_parent(id),
                            Some(parent) => s.task.parent.fact(Ok(Some(*parent))),
                            None => Fact::unknown(Own::NotMet { parent }),
                        };
                    }
                    (Ok(id), Err(why)) => self.found.list[id.0].generating = why.into(),
                    (Err(why), _) if why.is_layout() => {}
                    (Err(why), _) => self.notes.issue(format!("task {own}"), why),
                }
            }
        }
    }

    /// A task counts as suspended because no thread was found to execute it: that is known only if it is known of all.
    fn doubt_suspended(&mut self) {
        let mut doubtful = HashSet::new();
        let mut all = !self.context.knows_all_threads();
        for thread in self.threads.iter().filter(|t| !t.idle || t.unsettled.is_some()) {
            match thread.view.ptr(&self.context.gomp.structs.thread.task) {
                Ok(task) if thread.unsettled.is_some() => drop(doubtful.insert(task)),
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
        for task in self.found.list.iter_mut().filter(|task| task.thread.is_none()) {
            task.state = Fact::unknown(NOT_LOOKED_FOR);
        }
    }

    fn add_initial_tasks(&mut self) {
        let task = &self.context.gomp.structs.thread.task;
        let threads = self.context.reach.asked(self.threads);
        for thread in threads.iter().filter(|t| !t.idle && t.unsettled.is_none() && t.team.is_null()) {
            if thread.view.ptr(task).is_ok_and(Addr::is_null) {
                self.add_initial_task(thread.lwp);
            }
        }
    }

    /// Outside all regions libgomp keeps no task for a thread that never changed a control variable: `thread.task` is
    /// NULL, and the thread executes its initial task all the same.
    fn add_initial_task(&mut self, lwp: i32) {
        let slot = self.context.gomp.structs.thread.task;
        let id = TaskId(self.found.list.len());
        self.found.list.push(RawTask {
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
        self.found.initial.insert(lwp, id);
    }

    /// What a parent pointer of NULL means. An initial task has no generating task. The generating task of another one
    /// has finished (`gomp_clear_parent`), or is an initial task, of which libgomp keeps no record.
    pub(super) fn no_parent(&self, id: TaskId) -> Fact<Option<TaskId>> {
        match self.found.list[id.0].kind.get() {
            Some(TaskKind::Initial) => self.context.gomp.structs.task.parent.fact(Ok(None)),
            _ => Fact::unknown(Own::GeneratingFinished),
        }
    }

    pub(super) fn parent_of(&self, task: Addr) -> Result<Addr, Reason> {
        let field = self.context.gomp.structs.task.parent.field()?;
        Ok(self.context.target.read_ptr(task.offset(field.offset))?)
    }

    /// Reads one task and files it. `team` is the team it is thought to belong to; implicit tasks know better.
    pub(super) fn add_task(&mut self, addr: Addr, team: Fact<Option<TeamId>>) -> Result<TaskId, Reason> {
        let view = StructData::read(self.context.target, addr, self.context.gomp.structs.task.size)?;
        self.add_task_as(addr, view, team)
    }

    /// The same for a task that has been read.
    pub(super) fn add_task_as(
        &mut self,
        addr: Addr,
        view: StructData,
        team: Fact<Option<TeamId>>,
    ) -> Result<TaskId, Reason> {
        if self.found.list.len() >= limits::TASKS {
            return Err(Reason::from(Common::TooManyTasks { most: limits::TASKS }));
        }
        let s = &self.context.gomp.structs.task;
        let raw_kind = view.uint(&s.kind)?;
        self.notes.check.note("a task is of a kind that no libgomp has", raw_kind <= kind::DETACHED);
        let implicit = self.teams.implicit_task_of(self.context, addr);
        let team = match implicit.and_then(|(own, _)| self.teams.team_id(own)) {
            Some(own) => self.context.gomp.structs.team.implicit_task.fact(Ok(Some(own))),
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
            kind::TIED => (TaskKind::Explicit, TaskState::Suspended),
            kind::ASYNC_RUNNING => (TaskKind::Explicit, TaskState::OnDevice),
            kind => return Err(Reason::from(Own::NoSuchKind { kind })),
        };
        let in_front = self.in_front(addr, &view, kind);
        let function = match kind {
            TaskKind::Explicit => match in_front.map_or_else(|| view.ptr(&s.fn_), |(body, _)| Ok(body)) {
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
        let id = TaskId(self.found.list.len());
        let icv = view.addr_of(&s.icv).unwrap_or(Addr::NULL);
        self.found.icv_addrs.insert(id, icv);
        let implicit_kind = matches!(kind, TaskKind::Implicit | TaskKind::Initial);
        const CLAUSE: Own = Own::ClauseNotKept;
        self.found.list.push(RawTask {
            descriptor: addr,
            kind: match kind {
                TaskKind::Implicit if implicit.is_none() && team.value().is_none() => {
                    Fact::unknown(Own::InitialOrImplicit)
                }
                _ => s.kind.fact(Ok(kind)),
            },
            state: s.kind.fact(Ok(state)),
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
            tool_data: match in_front.and_then(|(_, data)| data) {
                Some(data) => Fact::known(data, Origin::Table),
                None => Fact::unknown(NO_OMPT),
            },
            ..RawTask::unknown(addr, NO_OMPT)
        });
        self.found.ids.insert(addr, id);
        if let Ok(wait) = view.ptr(&s.taskwait) {
            self.taskwait_futex(wait, addr);
        }
        if kind == TaskKind::Undeferred && self.found.list[id.0].event.flat().is_some() {
            let sem = view.ptr(&self.context.gomp.structs.task.completion_sem)?;
            self.found.futexes.insert(sem, FutexMeaning::of(WaitKind::Event));
        }
        Ok(id)
    }

    /// What a library in front of the runtime knows of an explicit task: its function, and what a tool has stored.
    fn in_front(&self, task: Addr, view: &StructData, kind: TaskKind) -> Option<(Addr, Option<u64>)> {
        let front = self.context.gomp.front.as_ref().filter(|_| kind == TaskKind::Explicit)?;
        let (s, target) = (&self.context.gomp.structs.task, self.context.target);
        let function = view.ptr(&s.fn_).ok()?;
        // The argument follows the function (`fn_data` in libgomp.h).
        let argument = task.offset(s.fn_.offset().ok()? + u64::from(target.arch().pointer_bytes));
        front.task(target, function, target.read_ptr(argument).ok()?)
    }

    /// How many tasks it waits for to be over. The count is set together with dependences only, and is down to 0 when the
    /// task gets into a queue.
    fn unmet_of(&self, view: &StructData, raw_kind: u64) -> Fact<u32> {
        let s = &self.context.gomp.structs.task;
        if raw_kind != kind::WAITING {
            return s.kind.fact(Ok(0));
        }
        let read = || match view.uint(&s.depend_count)? {
            0 => Ok(0),
            _ => view.u32(&s.num_dependees),
        };
        s.num_dependees.fact(read())
    }

    /// The event of a `detach` clause: its handle is the address of the task. A deferred task keeps its team as long as
    /// the event is to be fulfilled. An undeferred task keeps the semaphore it will wait on (`GOMP_task`,
    /// `omp_fulfill_event`).
    fn event_of(&self, task: Addr, view: &StructData) -> Fact<Option<Event>> {
        let s = &self.context.gomp.structs.task;
        if self.context.gomp.events == Some(false) {
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
            let fulfilled = self.context.target.read_u32(sem)? & SEM_COUNT != 0;
            Ok(Some(Event { handle: task, fulfilled }))
        };
        s.deferred.fact(read())
    }

    /// The taskgroup at `innermost` with those around it.
    fn taskgroup_at(&mut self, innermost: Addr, team: &Fact<Option<TeamId>>) -> Fact<Option<TaskgroupId>> {
        let task = &self.context.gomp.structs.task.taskgroup;
        let s = &self.context.gomp.structs.taskgroup;
        let mut at = innermost;
        let mut inner: Option<TaskgroupId> = None;
        for _ in 0..limits::TASK_DEPTH {
            let id = match self.found.group_ids.get(&at).copied() {
                _ if at.is_null() => None,
                Some(id) => Some(id),
                None => {
                    let view = match StructData::read(self.context.target, at, s.size) {
                        Ok(view) => view,
                        Err(why) if inner.is_none() => return why.into(),
                        Err(_) => break,
                    };
                    let id = TaskgroupId(self.found.groups.len());
                    self.found.group_ids.insert(at, id);
                    if let Ok(sem) = view.addr_of(&s.sem) {
                        self.found
                            .futexes
                            .insert(sem, FutexMeaning { group: Some(id), ..FutexMeaning::of(WaitKind::Taskgroup) });
                    }
                    let parent = Fact::unknown(Own::TaskgroupUnreadable);
                    self.found.groups.push(GompTaskgroup { addr: at, view, parent, team: team.clone() });
                    if let Some(inner) = inner {
                        self.found.groups[inner.0].parent = s.prev.fact(Ok(Some(id)));
                    }
                    at = self.found.groups[id.0].view.ptr(&s.prev).unwrap_or(Addr::NULL);
                    inner = Some(id);
                    continue;
                }
            };
            if let Some(inner) = inner {
                // NULL ends the chain, or the link is not known.
                let known = self.found.groups[inner.0].view.ptr(&s.prev);
                self.found.groups[inner.0].parent = s.prev.fact(known.map(|_| id));
            }
            break;
        }
        match self.found.group_ids.get(&innermost) {
            _ if innermost.is_null() => task.fact(Ok(None)),
            Some(id) => task.fact(Ok(Some(*id))),
            None => Fact::unknown(Common::EndlessTaskgroups),
        }
    }

    /// Where a task waits for other tasks, and why: a `taskwait`, or the dependences of a task it has to execute at once.
    pub(super) fn taskwait_futex(&mut self, addr: Addr, task: Addr) {
        if addr.is_null() {
            return;
        }
        let s = &self.context.gomp.structs.taskwait;
        let Ok(view) = StructData::read(self.context.target, addr, s.size) else { return };
        let kind = match (view.flag(&s.in_taskwait), view.flag(&s.in_depend_wait)) {
            (Ok(true), _) => WaitKind::Taskwait,
            (_, Ok(true)) => WaitKind::Dependences,
            _ => return,
        };
        if let Ok(sem) = view.addr_of(&s.sem) {
            self.found.futexes.insert(sem, FutexMeaning { waiter: Some((task, addr)), ..FutexMeaning::of(kind) });
        }
    }
}

impl Tasks {
    /// The taskgroups that were read, for the snapshot.
    pub(super) fn taskgroups(&self, context: &Context<'_>) -> Vec<Taskgroup> {
        let s = &context.gomp.structs.taskgroup;
        let make = |group: &GompTaskgroup| Taskgroup {
            descriptor: group.addr,
            parent: group.parent.clone(),
            unfinished: s.num_children.fact(group.view.uint(&s.num_children)),
            cancelled: s.cancelled.fact(group.view.flag(&s.cancelled)),
        };
        self.groups.iter().map(make).collect()
    }
}
