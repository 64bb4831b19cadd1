//! Tasks: those executed now with their ancestors, and those in the queues.

use std::collections::HashSet;

use ompd_layout::Origin;
use ompd_target::{Addr, TargetExt};

use super::Reader;
use crate::bind::{View, Why};
use crate::limits;
use crate::model::*;

/// `enum gomp_task_kind`.
mod kind {
    pub(super) const IMPLICIT: u64 = 0;
    pub(super) const UNDEFERRED: u64 = 1;
    pub(super) const WAITING: u64 = 2;
    pub(super) const TIED: u64 = 3;
    pub(super) const DETACHED: u64 = 5;
}

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
        let current: Vec<(i32, Addr, Addr)> = self
            .threads
            .iter()
            .filter(|t| !t.idle)
            .filter_map(|t| Some((t.lwp, t.team, t.view.ptr(&self.gomp.structs.thread.task).ok()?)))
            .filter(|(_, _, task)| !task.is_null())
            .collect();
        for (lwp, team, task) in current {
            let team = self.team_at(team, &self.gomp.structs.thread.team);
            let mut child: Option<TaskId> = None;
            let (mut at, mut in_team) = (task, team.clone());
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
                if seen.is_some() {
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
                                _ => Fact::unknown("its team could not be read"),
                            };
                        } else if !self.knows_implicit_tasks() {
                            in_team = Fact::unknown("which tasks are implicit ones of which team is not known");
                        }
                        at = parent;
                    }
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
        for addr in self.team_order.clone() {
            if let Err(why) = self.read_queue(addr)
                && !why.is_layout()
            {
                self.issue(format!("task queue of team {addr}"), why);
            }
        }
        self.doubt_suspended();
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
                task.state = Fact::unknown("a thread whose task is not known may be executing it");
            }
        }
    }

    /// Outside all regions libgomp keeps no task for a thread that never changed a control variable: `thread.task` is
    /// NULL, and the thread executes its initial task all the same.
    pub(super) fn add_initial_task(&mut self, lwp: i32) -> TaskId {
        let slot = self.gomp.structs.thread.task;
        let id = TaskId(self.tasks.len());
        self.tasks.push(Task {
            descriptor: Addr::NULL,
            kind: slot.fact(Ok(TaskKind::Initial)),
            state: slot.fact(Ok(TaskState::Running)),
            function: Fact::unknown("an initial task has no function of its own"),
            location: Fact::unknown("libgomp does not store source positions"),
            generating: slot.fact(Ok(None)),
            team: slot.fact(Ok(None)),
            thread: Some(lwp),
            member: None,
            is_final: slot.fact(Ok(false)),
            ..Task::unknown(Addr::NULL, "libgomp keeps no record of this task")
        });
        id
    }

    /// What a parent pointer of NULL means: an initial task has none; for others it has finished (`gomp_clear_parent`), or
    /// is an initial task, of which libgomp keeps no record.
    fn no_parent(&self, id: TaskId) -> Fact<Option<TaskId>> {
        match self.tasks[id.0].kind.get() {
            Some(TaskKind::Initial) => self.gomp.structs.task.parent.fact(Ok(None)),
            _ => Fact::unknown("its generating task has finished, or is an initial task without a record"),
        }
    }

    pub(super) fn parent_of(&self, task: Addr) -> Result<Addr, Why> {
        let field = self.gomp.structs.task.parent.field()?;
        Ok(self.target.read_ptr(task.offset(field.offset))?)
    }

    /// Reads one task and files it. `team` is the team it is thought to belong to; implicit tasks know better.
    pub(super) fn add_task(&mut self, addr: Addr, team: Fact<Option<TeamId>>) -> Result<TaskId, Why> {
        if self.tasks.len() >= limits::TASKS {
            return Err(Why::Inconsistent(format!("more than {} tasks; the rest is not shown", limits::TASKS)));
        }
        let s = &self.gomp.structs.task;
        let view = View::read(self.target, addr, s.size)?;
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
            // GOMP_TASK_TIED (3) and GOMP_TASK_ASYNC_RUNNING (4): started.
            kind::TIED | 4 => (TaskKind::Explicit, TaskState::Suspended),
            other => return Err(Why::Inconsistent(format!("it is of kind {other}, which no libgomp has"))),
        };
        let function = match kind {
            TaskKind::Explicit => match view.ptr(&s.fn_) {
                Ok(addr) if addr.is_null() => Fact::unknown("a target task: it has no host function"),
                Ok(addr) => s.fn_.fact(Ok(CodeRef::new(addr))),
                Err(why) => why.into(),
            },
            TaskKind::Undeferred => Fact::unknown("libgomp does not store the function of an undeferred task"),
            TaskKind::Implicit => Fact::unknown("libgomp does not store the function of a region"),
            TaskKind::Initial => Fact::unknown("an initial task has no function of its own"),
        };
        let id = TaskId(self.tasks.len());
        self.icv_addrs.insert(id, view.addr_of(&s.icv).unwrap_or(Addr::NULL));
        self.tasks.push(Task {
            descriptor: addr,
            kind: match kind {
                TaskKind::Implicit if implicit.is_none() && team.value().is_none() => {
                    Fact::unknown("whether it is an initial task or the implicit one of a team is not known")
                }
                _ => s.kind.fact(Ok(kind)),
            },
            state: s.kind.fact(Ok(state)),
            function,
            location: Fact::unknown("libgomp does not store source positions"),
            generating: Fact::unknown("not read"),
            team,
            thread: None,
            member: implicit.map(|(_, member)| member),
            is_final: s.final_task.fact(view.flag(&s.final_task)),
            ..Task::unknown(addr, "not read")
        });
        self.task_ids.insert(addr, id);
        if let Ok(wait) = view.ptr(&s.taskwait) {
            self.taskwait_place(wait);
        }
        if let Ok(group) = view.ptr(&s.taskgroup) {
            self.taskgroup_places(group);
        }
        Ok(id)
    }

    /// Ready tasks of a team (`priority_queue.h`): a circular list, or a splay tree of such lists once a task had a
    /// priority. List nodes are embedded in the tasks; the team's queue uses the first of the three.
    pub(super) fn read_queue(&mut self, team: Addr) -> Result<(), Why> {
        let s = &self.gomp.structs;
        let view = self.teams[&team].view.clone();
        let (root, list) = (view.ptr(&s.team.queue_root)?, view.ptr(&s.team.queue_tasks)?);
        let mut lists = Vec::new();
        let mut open = vec![root];
        let mut seen = HashSet::new();
        while let Some(node) = open.pop() {
            if node.is_null() || !seen.insert(node) || seen.len() > limits::TASKS {
                continue;
            }
            let node = View::read(self.target, node, s.tree.size)?;
            lists.push(node.ptr(&s.tree.tasks)?);
            open.push(node.ptr(&s.tree.left)?);
            open.push(node.ptr(&s.tree.right)?);
        }
        if root.is_null() {
            lists.push(list);
        }
        let pnode = s.task.pnode.offset()?;
        let id = self.team_at(team, &s.thread.team);
        for first in lists {
            let mut at = first;
            let mut seen = HashSet::new();
            while !at.is_null() && seen.insert(at) {
                let task = at.back(pnode);
                if !self.task_ids.contains_key(&task) {
                    let added = self.add_task(task, id.clone())?;
                    let parent = self.parent_of(task)?;
                    self.tasks[added.0].generating = match self.task_ids.get(&parent) {
                        _ if parent.is_null() => self.no_parent(added),
                        Some(parent) => s.task.parent.fact(Ok(Some(*parent))),
                        None => match self.add_task(parent, id.clone()) {
                            Ok(parent) => s.task.parent.fact(Ok(Some(parent))),
                            Err(why) => why.into(),
                        },
                    };
                }
                at = View::read(self.target, at, s.node.size)?.ptr(&s.node.next)?;
            }
        }
        Ok(())
    }
}
