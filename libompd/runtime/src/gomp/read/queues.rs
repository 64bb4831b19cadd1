//! Tasks in queues, and those that wait for others before they get into one.
//!
//! `GOMP_task` puts a task without unmet dependences into three lists: its team's, its generating task's children, and
//! its taskgroup's. A task that begins leaves the first and goes to the end of the other two (`gomp_task_run_pre`).
//! There it stays until it is over, its event included. A task with unmet dependences is in none, but in the list of
//! dependent tasks of each task it waits for (`gomp_task_handle_depend`). So everything that is not over is found from
//! the teams, from the generating tasks and taskgroups met, and from there along the dependences.

use std::collections::{HashMap, HashSet, VecDeque};

use ompd_process::{Addr, Target, TargetExt};

use super::known;
use super::tasks::{TaskReader, kind};
use super::threads::GompThread;
use crate::bind::StructData;
use crate::gomp::reason::Own;
use crate::limits;
use crate::model::*;
use crate::window::Window;

/// What makes tasks alike: function, generating task, taskgroup, whether it is blocked, priority.
type Kind = (Addr, Addr, Addr, bool, i64);

/// Tasks of one kind: the first one's id, those listed, and those that are not.
struct Alike {
    first: TaskId,
    listed: u64,
    more: u64,
}

/// Which of a task's three links a list goes through (`enum priority_queue_type`).
#[derive(Clone, Copy)]
enum Link {
    Team = 0,
    Children = 1,
    Taskgroup = 2,
}

/// What is still to be looked at of a queue with priorities.
enum Branch {
    /// A node, and those below it.
    Node(Addr),
    /// The list of a node.
    List(Addr),
}

/// A list of dependent tasks, the task they depend on, and whether the task that generated all of them has finished.
struct Dependers {
    of: Addr,
    list: Addr,
    orphans: bool,
}

/// State of the walk through all queues of a snapshot.
pub(super) struct Walk<'a> {
    window: Window<'a>,
    steps: u64,
    alike: HashMap<Kind, Alike>,
    listed: usize,
    dependences: u64,
    /// Tasks that neither are listed nor are like one that is.
    lost: u64,
    /// Lists of dependent tasks to look at.
    dependers: VecDeque<Dependers>,
    /// Tasks that have begun and whose lists of dependent tasks are in there already.
    expected: HashSet<Addr>,
    /// Tasks begun or blocked that have been counted.
    counted: HashSet<Addr>,
    /// Children that are not over, by the address of the generating task.
    children: HashMap<Addr, u32>,
    /// Why the children may not all have been counted.
    incomplete: Option<Reason>,
}

impl<'a> Walk<'a> {
    fn new(target: &'a dyn Target) -> Walk<'a> {
        Walk {
            window: Window::new(target),
            steps: limits::BULK_STEPS,
            alike: HashMap::new(),
            listed: 0,
            dependences: limits::ALL_DEPENDENCES,
            lost: 0,
            dependers: VecDeque::new(),
            expected: HashSet::new(),
            counted: HashSet::new(),
            children: HashMap::new(),
            incomplete: None,
        }
    }

    /// Without this value not all tasks can be found.
    fn incomplete_without(&mut self, value: Result<u64, Reason>) {
        if let Err(why) = value {
            self.incomplete.get_or_insert(why);
        }
    }

    fn step(&mut self) -> Result<(), Reason> {
        self.steps = self.steps.checked_sub(1).ok_or_else(|| Reason::from(Common::TooManyEntries))?;
        Ok(())
    }

    fn count(&mut self, parent: Addr) {
        if !parent.is_null() {
            let count = self.children.entry(parent).or_default();
            *count = count.saturating_add(1);
        }
    }
}

impl<'a> TaskReader<'a> {
    /// Everything that is not over and was not met by following the threads.
    pub(super) fn read_queues(&mut self) {
        let mut walk = Walk::new(self.context.target);
        let apart = |t: &GompThread| !t.team.is_null() && !t.idle && !self.teams.found.contains_key(&t.team);
        if self.teams.lost
            || !self.context.knows_all_threads()
            || self.threads.iter().any(|t| t.unsettled.is_some() || apart(t))
        {
            walk.incomplete = Some(Own::SomeTeamUnreadable.into());
        }
        for team in self.teams.order.clone() {
            let done = self.ready_tasks(&mut walk, team);
            self.note(&mut walk, format!("task queue of team {team}"), done);
        }
        // Lists grow while they are looked at: what is found has children and taskgroups of its own.
        let (mut tasks, mut groups) = (0, 0);
        while tasks < self.found.list.len() || groups < self.found.groups.len() {
            if let Some(group) = self.found.groups.get(groups).map(|group| group.addr) {
                groups += 1;
                let done = self.begun_tasks_of_group(&mut walk, group);
                self.note(&mut walk, format!("tasks of taskgroup {group}"), done);
                continue;
            }
            let task = self.found.list[tasks].descriptor;
            // Those that have not begun have no children.
            let begun = !matches!(self.found.list[tasks].state.get(), Some(TaskState::Ready | TaskState::Blocked));
            tasks += 1;
            if !task.is_null() && begun {
                let done = self.begun_children(&mut walk, task);
                self.note(&mut walk, format!("children of task {task}"), done);
            }
        }
        let done = self.blocked_tasks(&mut walk);
        self.note(&mut walk, "dependences of tasks".to_owned(), done);
        self.finish(walk);
    }

    /// Files how a part of the walk ended.
    fn note(&mut self, walk: &mut Walk<'_>, subject: String, done: Result<(), Reason>) {
        let Err(why) = done else { return };
        walk.incomplete.get_or_insert_with(|| why.clone());
        if !why.is_layout() {
            self.notes.issue(subject, why);
        }
    }

    /// Heads of the lists of a queue (`priority_queue.h`): one list, or a splay tree of lists once a task had a priority.
    fn heads(&self, walk: &mut Walk<'_>, root: Addr, list: Addr) -> Result<Vec<Addr>, Reason> {
        let s = &self.context.gomp.structs.tree;
        if root.is_null() {
            return Ok(vec![list]);
        }
        let (mut lists, mut open, mut seen) = (Vec::new(), vec![Branch::Node(root)], HashSet::new());
        while let Some(branch) = open.pop() {
            let node = match branch {
                Branch::Node(node) if node.is_null() => continue,
                Branch::Node(node) => node,
                Branch::List(list) => {
                    lists.push(list);
                    continue;
                }
            };
            walk.step()?;
            if !seen.insert(node) {
                return Err(Reason::from(Own::EndlessPriorities));
            }
            let node = StructData::read(&walk.window, node, s.size)?;
            // What is opened last comes first: the highest priority.
            let (lower, own, higher) = (node.ptr(&s.left)?, node.ptr(&s.tasks)?, node.ptr(&s.right)?);
            open.extend([Branch::Node(lower), Branch::List(own), Branch::Node(higher)]);
        }
        Ok(lists)
    }

    /// Goes through one circular list, forwards or backwards, as long as `each` says so. `each` gets the tasks.
    fn along(
        &mut self,
        walk: &mut Walk<'a>,
        first: Addr,
        link: Link,
        backwards: bool,
        mut each: impl FnMut(&mut Self, &mut Walk<'a>, Addr, &StructData) -> Result<bool, Reason>,
    ) -> Result<(), Reason> {
        if first.is_null() {
            return Ok(());
        }
        let s = &self.context.gomp.structs;
        let at_link = s.task.pnode.offset()?.wrapping_add((link as u64).wrapping_mul(s.node.size.get()?));
        let (onwards, back) = match backwards {
            false => (s.node.next, s.node.prev),
            true => (s.node.prev, s.node.next),
        };
        let follow = |walk: &Walk<'_>, node: Addr| -> Result<(Addr, Result<Addr, Reason>), Reason> {
            let view = StructData::read(&walk.window, node, s.node.size)?;
            Ok((view.ptr(&onwards)?, view.ptr(&back)))
        };
        let (mut at, mut from) = (first, None);
        if backwards {
            (at, from) = (follow(walk, first)?.0, Some(first));
        }
        loop {
            walk.step()?;
            let (next, before) = follow(walk, at)?;
            // Each link leads back to where one came from, unless something is wrong or being changed.
            if let Some(from) = from
                && let Some(before) = known(before)?
                && before != from
            {
                return Err(Reason::from(Own::LinksContradict { at }));
            }
            let task = at.back(at_link);
            let view = StructData::read(&walk.window, task, s.task.size)?;
            let goes_on = each(self, walk, task, &view)?;
            // Forwards the walk ends where it began; backwards it begins with the last and ends with the first.
            let last = if backwards { at == first } else { next == first };
            if last && !backwards && known(follow(walk, first)?.1)?.is_some_and(|before| before != at) {
                return Err(Reason::from(Own::LinksContradict { at }));
            }
            if last || !goes_on {
                return Ok(());
            }
            (from, at) = (Some(at), next);
        }
    }

    fn ready_tasks(&mut self, walk: &mut Walk<'a>, team: Addr) -> Result<(), Reason> {
        let s = &self.context.gomp.structs.team;
        let view = self.teams.found[&team].view.clone();
        if view.u32(&s.task_lock)? != 0 {
            walk.incomplete.get_or_insert_with(|| Own::QueuesChanging.into());
        }
        let (root, list) = (view.ptr(&s.queue_root)?, view.ptr(&s.queue_tasks)?);
        let id = self.teams.team_at(team, &self.context.gomp.structs.thread.team);
        for first in self.heads(walk, root, list)? {
            self.along(walk, first, Link::Team, false, |reader, walk, task, view| {
                let s = &reader.context.gomp.structs.task;
                if view.uint(&s.kind)? != kind::WAITING {
                    return Err(Reason::from(Own::NotWaitingToRun { task }));
                }
                walk.count(known(view.ptr(&s.parent))?.unwrap_or(Addr::NULL));
                reader.file(walk, task, view, &id, None)?;
                Ok(true)
            })?;
        }
        Ok(())
    }

    /// Children that have begun: in the list they come behind those that have not.
    fn begun_children(&mut self, walk: &mut Walk<'a>, task: Addr) -> Result<(), Reason> {
        let s = &self.context.gomp.structs.task;
        let view = StructData::read(&walk.window, task, s.size)?;
        self.expect_dependers(walk, task, &view)?;
        let (root, list) = (view.ptr(&s.children_root)?, view.ptr(&s.children_tasks)?);
        let team = self.found.ids.get(&task).map(|id| self.found.list[id.0].team.clone());
        self.begun(walk, root, list, Link::Children, &team.unwrap_or_else(|| Fact::unknown(Common::NotRead)))
    }

    fn begun_tasks_of_group(&mut self, walk: &mut Walk<'a>, group: Addr) -> Result<(), Reason> {
        let s = &self.context.gomp.structs.taskgroup;
        let view = StructData::read(&walk.window, group, s.size)?;
        let (root, list) = (view.ptr(&s.queue_root)?, view.ptr(&s.queue_tasks)?);
        let team = self.found.group_ids.get(&group).map(|id| self.found.groups[id.0].team.clone());
        self.begun(walk, root, list, Link::Taskgroup, &team.unwrap_or_else(|| Fact::unknown(Common::NotRead)))
    }

    fn begun(
        &mut self,
        walk: &mut Walk<'a>,
        root: Addr,
        list: Addr,
        link: Link,
        team: &Fact<Option<TeamId>>,
    ) -> Result<(), Reason> {
        for first in self.heads(walk, root, list)? {
            self.along(walk, first, link, true, |reader, walk, task, view| {
                let s = &reader.context.gomp.structs.task;
                match view.uint(&s.kind)? {
                    kind::WAITING => return Ok(false),
                    kind::TIED | kind::ASYNC_RUNNING | kind::DETACHED => {}
                    kind => return Err(Reason::from(Own::KindInQueue { task, kind })),
                }
                if walk.counted.insert(task) {
                    walk.count(known(view.ptr(&s.parent))?.unwrap_or(Addr::NULL));
                    reader.file(walk, task, view, team, None)?;
                }
                Ok(true)
            })?;
        }
        Ok(())
    }

    fn expect_dependers(&self, walk: &mut Walk<'a>, task: Addr, view: &StructData) -> Result<(), Reason> {
        let s = &self.context.gomp.structs.task;
        let list = view.ptr(&s.dependers)?;
        if !list.is_null() && walk.expected.insert(task) {
            let orphans = view.ptr(&s.parent).is_ok_and(Addr::is_null);
            walk.dependers.push_back(Dependers { of: task, list, orphans });
        }
        Ok(())
    }

    /// From tasks that are not over to those that depend on them.
    fn blocked_tasks(&mut self, walk: &mut Walk<'a>) -> Result<(), Reason> {
        let s = &self.context.gomp.structs;
        let width = u64::from(self.context.target.arch().pointer_bytes);
        while let Some(dependers) = walk.dependers.pop_front() {
            walk.step()?;
            let view = StructData::read(&walk.window, dependers.list, s.dependers.size)?;
            let first = dependers.list.offset(s.dependers.elements.offset()?);
            let count = view.uint(&s.dependers.count)?;
            for index in 0..count {
                walk.step()?;
                let successor = walk.window.read_ptr(first.offset(index.wrapping_mul(width)))?;
                self.blocked_task(walk, &dependers, successor)?;
            }
        }
        Ok(())
    }

    fn blocked_task(&mut self, walk: &mut Walk<'a>, dependers: &Dependers, task: Addr) -> Result<(), Reason> {
        let s = &self.context.gomp.structs.task;
        let predecessor = dependers.of;
        if walk.counted.insert(task) {
            let view = StructData::read(&walk.window, task, s.size)?;
            // Until the last of its predecessors is over it neither runs nor is in a queue.
            if view.uint(&s.kind)? != kind::WAITING
                || view.uint(&s.depend_count)? == 0
                || view.uint(&s.num_dependees)? == 0
            {
                return Err(Own::DoesNotWait { task }.into());
            }
            if !dependers.orphans {
                walk.count(known(view.ptr(&s.parent))?.unwrap_or(Addr::NULL));
            }
            let team = self.found.ids.get(&predecessor).map(|id| self.found.list[id.0].team.clone());
            let team = team.unwrap_or_else(|| Fact::unknown(Own::PredecessorNotListed));
            self.file(walk, task, &view, &team, Some(dependers))?;
        }
        if let (Some(before), Some(id)) = (self.found.ids.get(&predecessor), self.found.ids.get(&task)) {
            let list = &mut self.found.list[id.0].predecessors;
            if list.len() < limits::PREDECESSORS && !list.contains(before) {
                list.push(*before);
            }
        }
        Ok(())
    }

    /// Lists a task, or counts it if there are many like it. `blocked_by`: it is in no queue.
    ///
    /// libgomp clears the parent of the children in its queue when that finishes (`gomp_clear_parent`). A blocked task is not
    /// in it and keeps the address of a task that is gone. Tasks that depend on each other have the same parent.
    fn file(
        &mut self,
        walk: &mut Walk<'a>,
        task: Addr,
        view: &StructData,
        team: &Fact<Option<TeamId>>,
        blocked_by: Option<&Dependers>,
    ) -> Result<(), Reason> {
        let s = &self.context.gomp.structs.task;
        if self.found.ids.contains_key(&task) {
            return Ok(());
        }
        let or_null = |value| known(value).map(|value| value.unwrap_or(Addr::NULL));
        let orphan = blocked_by.is_some_and(|dependers| dependers.orphans);
        let own_parent = if orphan { Ok(Addr::NULL) } else { view.ptr(&s.parent) };
        let orphans = own_parent.as_ref().is_ok_and(|parent| parent.is_null());
        let parent = or_null(own_parent.clone())?;
        // Tasks that have begun are few, and each has a stack or an event of its own.
        let begun = view.uint(&s.kind)? != kind::WAITING;
        match known(view.ptr(&s.dependers))?.filter(|list| !list.is_null()) {
            Some(_) if begun => self.expect_dependers(walk, task, view)?,
            Some(list) => walk.dependers.push_back(Dependers { of: task, list, orphans }),
            None => walk.incomplete_without(s.dependers.offset()),
        }
        let priority = known(view.int(&s.priority))?.unwrap_or(0);
        let alike =
            (or_null(view.ptr(&s.fn_))?, parent, or_null(view.ptr(&s.taskgroup))?, blocked_by.is_some(), priority);
        let same = walk.alike.get_mut(&alike).filter(|_| !begun);
        let full = walk.listed >= limits::TASKS_LISTED;
        match same {
            Some(same) if full || same.listed >= limits::TASKS_ALIKE => {
                same.more = same.more.saturating_add(1);
                return Ok(());
            }
            None if full => {
                walk.lost = walk.lost.saturating_add(1);
                return Ok(());
            }
            Some(same) => same.listed += 1,
            None => {}
        }
        walk.listed += 1;
        let id = self.add_task_as(task, view.clone(), team.clone())?;
        if !begun {
            walk.alike.entry(alike).or_insert(Alike { first: id, listed: 1, more: 0 });
        }
        if blocked_by.is_some() {
            self.found.list[id.0].state = s.num_dependees.fact(Ok(TaskState::Blocked));
        }
        self.found.list[id.0].generating = match own_parent {
            Ok(parent) if parent.is_null() => self.no_parent(id),
            Ok(parent) => {
                match self.found.ids.get(&parent).copied().map_or_else(|| self.add_task(parent, team.clone()), Ok) {
                    Ok(parent) => s.parent.fact(Ok(Some(parent))),
                    Err(why) => why.into(),
                }
            }
            Err(why) => why.into(),
        };
        self.found.list[id.0].dependences = self.dependences_of(walk, task, view)?;
        Ok(())
    }

    /// What the `depend` clauses of a task name. Only deferred tasks have a record of it.
    fn dependences_of(&self, walk: &mut Walk<'_>, task: Addr, view: &StructData) -> Result<Vec<RawDependence>, Reason> {
        let s = &self.context.gomp.structs;
        let read = |walk: &mut Walk<'_>| {
            let (count, first) = (view.uint(&s.task.depend_count)?, task.offset(s.task.depend.offset()?));
            let count = count.min(limits::DEPENDENCES).min(walk.dependences);
            walk.dependences -= count;
            let size = s.depend.size.get()?;
            (0..count)
                .map(|index| {
                    let entry = StructData::read(&walk.window, first.offset(index.wrapping_mul(size)), s.depend.size)?;
                    let kind = entry.uint(&s.depend.is_in).and_then(|kind| match kind {
                        0 => Ok(DependKind::InOut),
                        1 => Ok(DependKind::In),
                        2 => Ok(DependKind::InOutSet),
                        kind => Err(Reason::from(Own::UnknownDependenceKind { kind })),
                    });
                    Ok(RawDependence { addr: entry.ptr(&s.depend.addr)?, kind: s.depend.is_in.fact(kind) })
                })
                .collect::<Result<Vec<_>, Reason>>()
        };
        Ok(known(read(walk))?.unwrap_or_default())
    }

    /// What the walk as a whole has shown.
    fn finish(&mut self, walk: Walk<'_>) {
        if walk.lost > 0 {
            self.notes.issue("task queues", Trouble::KindsLeftOut { count: walk.lost });
        }
        let mut more: Vec<MoreTasks> =
            walk.alike.values().map(|a| MoreTasks { like: a.first, count: a.more }).collect();
        more.retain(|more| more.count > 0);
        more.sort_by_key(|more| more.like);
        self.found.more = more;

        let mut children = walk.children;
        // A task that is executed at once is in no list; the thread that executes it leads to it.
        let mut unseen = walk.incomplete;
        for index in 0..self.found.list.len() {
            let task = &self.found.list[index];
            match (task.kind.get(), &task.generating) {
                (Some(TaskKind::Undeferred), Fact::Known { value: Some(parent), .. }) => {
                    let count = children.entry(self.found.list[parent.0].descriptor).or_default();
                    *count = count.saturating_add(1);
                }
                (Some(TaskKind::Explicit | TaskKind::Undeferred), Fact::Unknown { why })
                    if matches!(task.state.get(), Some(TaskState::Running | TaskState::Suspended) | None) =>
                {
                    unseen.get_or_insert_with(|| Own::SuspendedUnknown { why: Box::new(why.clone()) }.into());
                }
                _ => {}
            }
        }
        let slot = self.context.gomp.structs.task.children_tasks;
        for task in self.found.list.iter_mut().filter(|task| !task.descriptor.is_null()) {
            task.unfinished_children = match &unseen {
                None => slot.fact(Ok(children.get(&task.descriptor).copied().unwrap_or(0))),
                Some(why) => Fact::unknown(Own::NotAllCounted { why: Box::new(why.clone()) }),
            };
        }
        self.check_counts();
    }

    /// A team counts its tasks that are not over and not blocked. Those that were not found are told.
    fn check_counts(&mut self) {
        let s = &self.context.gomp.structs.team;
        let mut issues = Vec::new();
        for (index, addr) in self.teams.order.iter().enumerate() {
            let view = &self.teams.found[addr].view;
            let (Ok(count), Ok(0)) = (view.u32(&s.task_count), view.u32(&s.task_lock)) else { continue };
            let own = |task: &&RawTask| {
                task.team.flat() == Some(TeamId(index))
                    && task.kind.get() == Some(TaskKind::Explicit)
                    && task.state.get() != Some(TaskState::Blocked)
            };
            let more = self.found.more.iter().filter(|m| own(&&self.found.list[m.like.0])).map(|m| m.count);
            let found = self.found.list.iter().filter(own).count() as u64 + more.sum::<u64>();
            if found < u64::from(count) {
                let missing = u64::from(count) - found;
                issues.push(Issue::new(format!("team {addr}"), Trouble::TasksMissing { missing, count }));
            }
        }
        self.notes.issues.extend(issues);
    }
}
