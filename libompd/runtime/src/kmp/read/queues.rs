//! Tasks in queues. There may be millions: they are read in bulk, and those that are alike are counted.

use std::collections::{HashMap, HashSet};

use ompd_process::Addr;

use super::task_reader::{Alike, EVENT_PENDING, Kin, TaskReader};
use crate::bind::{Part, StructData};
use crate::kmp::reason::Own;
use crate::limits;
use crate::model::*;
use crate::window::Structs;

impl TaskReader<'_> {
    /// Ready tasks of a team: each member has a ring of pointers to tasks, and so has each priority (LLVM 15 and later).
    pub(super) fn read_queues(&mut self, task_team: Addr) -> Result<(), Reason> {
        let kmp = self.context.kmp;
        let s = &kmp.structs;
        let view = StructData::read(self.context.target, task_team, s.task_team.size)?;
        let by_member = self.read_members(&view);
        // Where this release has no such queues, there is nothing to say.
        let list = view.ptr(&s.task_team.pri_begin).or_else(|_| view.ptr(&s.task_team.pri_list));
        let by_priority = match list {
            Ok(list) => self.read_priorities(list),
            Err(why) if why.is_layout() => Ok(()),
            Err(why) => Err(why),
        };
        by_member.and(by_priority)
    }

    fn read_members(&mut self, task_team: &StructData) -> Result<(), Reason> {
        let kmp = self.context.kmp;
        let s = &kmp.structs;
        let (array, members) = (task_team.ptr(&s.task_team.threads_data)?, task_team.count(&s.task_team.nproc)?);
        // The array comes with the first task (`__kmp_realloc_task_threads_data`). Until then it may be that of an earlier, smaller
        // team.
        if array.is_null() || !task_team.flag(&s.task_team.found_tasks)? {
            return Ok(());
        }
        if u64::from(members) > limits::TEAM_SIZE {
            return Err(Reason::from(Own::TooManyMembers { members }));
        }
        let stride = s.thread_data_stride.size.get()?;
        let addrs: Vec<Addr> =
            (0..u64::from(members)).map(|member| array.offset(member.wrapping_mul(stride))).collect();
        let size = s.thread_data.size.bytes_to_read()?;
        let mut first = Ok(());
        for (batch, addrs) in addrs.chunks(limits::BATCH).enumerate() {
            self.notes.bulk.spend(addrs.len() as u64)?;
            for (place, data) in StructData::read_each(self.context.target, addrs, size).into_iter().enumerate() {
                let read = data.and_then(|data| self.read_ring(&data));
                let member = batch * limits::BATCH + place;
                if let Err(why) = read
                    && first.is_ok()
                {
                    first = Err(match why.is_layout() {
                        true => why,
                        false => Own::QueueOfMember { member, why: Box::new(why) }.into(),
                    });
                }
            }
        }
        first
    }

    /// Tasks with a priority are not the members' but the team's (`__kmp_push_priority_task`).
    fn read_priorities(&mut self, list: Addr) -> Result<(), Reason> {
        let kmp = self.context.kmp;
        let s = &kmp.structs;
        let mut at = list;
        let mut seen = HashSet::new();
        while !at.is_null() && seen.insert(at) {
            self.notes.bulk.spend(1)?;
            let entry = StructData::read(self.context.target, at, s.task_pri.size)?;
            let data = entry.within(&s.task_pri.td, 0, s.thread_data.size)?;
            self.read_ring(&data)?;
            at = entry.ptr(&s.task_pri.next)?;
        }
        Ok(())
    }

    /// One ring of pointers to tasks.
    fn read_ring(&mut self, data: &StructData) -> Result<(), Reason> {
        let kmp = self.context.kmp;
        let d = &kmp.structs.thread_data;
        let (ring, waiting) = (data.ptr(&d.deque)?, u64::from(data.count(&d.deque_ntasks)?));
        if ring.is_null() {
            return Ok(());
        }
        let (slots, head) = (u64::from(data.count(&d.deque_size)?), data.uint(&d.deque_head)?);
        if slots <= limits::QUEUE_SLOTS {
            self.queued.rings.push((ring, slots));
        }
        if waiting == 0 {
            return Ok(());
        }
        if waiting > slots || head >= slots || slots > limits::QUEUE_SLOTS {
            return Err(Reason::from(Own::Contradicts));
        }
        let mut left = waiting;
        let mut at = head;
        while left > 0 {
            let count = left.min(slots - at).min(limits::BATCH as u64);
            self.notes.bulk.spend(count)?;
            let tasks = self.context.read_pointers(ring, at, count)?;
            if tasks.iter().any(|task| task.is_null()) {
                return Err(Reason::from(Own::HasHoles));
            }
            self.file_queued(&tasks)?;
            left -= count;
            at = (at + count) % slots;
        }
        Ok(())
    }

    /// Detached tasks whose body is over are in no list any more. But slots of a ring are not cleared when a task is
    /// taken out. What such a slot points to may have been freed long ago. It is an unfinished task only if all its own
    /// fields say so. Its parent must also have an unfinished child that was not found.
    pub(super) fn find_detached(&mut self) -> Result<(), Reason> {
        let kmp = self.context.kmp;
        let s = &kmp.structs;
        let mut lacking: HashMap<Addr, u64> = HashMap::new();
        for (task, view) in self.found.list.iter().zip(&self.found.views) {
            let children = view.count(&s.taskdata.incomplete_children).unwrap_or(0);
            if children > 0 {
                *lacking.entry(task.descriptor).or_default() += u64::from(children);
            }
        }
        for (task, view) in self.found.list.iter().zip(&self.found.views) {
            if task.kind.get().is_some_and(TaskKind::is_explicit)
                && let Some(left) = view.ptr(&s.taskdata.parent).ok().and_then(|parent| lacking.get_mut(&parent))
            {
                *left = left.saturating_sub(1);
            }
        }
        for kin in self.queued.kin.values().filter(|kin| kin.more > 0) {
            let parent = self.found.views[kin.like.0].ptr(&s.taskdata.parent).ok();
            if let Some(left) = parent.and_then(|parent| lacking.get_mut(&parent)) {
                *left = left.saturating_sub(kin.more);
            }
        }
        lacking.retain(|_, left| *left > 0);
        let mut met = HashSet::new();
        for (ring, slots) in std::mem::take(&mut self.queued.rings) {
            let mut first = 0;
            while first < slots && !lacking.is_empty() {
                let count = (slots - first).min(limits::BATCH as u64);
                self.notes.bulk.spend(count)?;
                let mut tasks = self.context.read_pointers(ring, first, count)?;
                tasks.retain(|task| !task.is_null() && !self.found.ids.contains_key(task) && met.insert(*task));
                self.notes.bulk.spend(tasks.len() as u64)?;
                let size = s.taskdata.size.bytes_to_read()?;
                // What was freed need not be there any more.
                for view in StructData::read_each(self.context.target, &tasks, size).into_iter().flatten() {
                    let parent = view.ptr(&s.taskdata.parent)?;
                    let is_lacking = lacking.get(&parent).is_some_and(|left| *left > 0);
                    if is_lacking && self.is_detached(&view)? {
                        let id = self.add_view(view)?;
                        self.read_ancestors(id);
                        lacking.entry(parent).and_modify(|left| *left -= 1);
                    }
                }
                first += count;
            }
        }
        Ok(())
    }

    /// A task with a `detach` clause whose body is over, and whose event is pending.
    fn is_detached(&self, view: &StructData) -> Result<bool, Reason> {
        let kmp = self.context.kmp;
        let s = &kmp.structs;
        let flag = |slot| self.flag(view, slot);
        let (explicit, started) = (flag(&s.flags.tasktype)?, flag(&s.flags.started)?);
        let (detachable, proxy, complete) =
            (flag(&s.flags.detachable)?, flag(&s.flags.proxy)?, flag(&s.flags.complete)?);
        let pending = view.uint(&s.taskdata.event_type)? == EVENT_PENDING;
        let of_team = self.teams.found.contains_key(&view.ptr(&s.taskdata.team)?);
        Ok(explicit && started && detachable && proxy && !complete && pending && of_team)
    }

    /// Bytes of a task to be filed: the runtime's and the compiler's part.
    pub(super) fn task_bytes(&self) -> Result<u64, Reason> {
        let s = &self.context.kmp.structs;
        match (s.taskdata.size.get(), s.task.size.bytes_to_read()) {
            (Ok(runtimes), Ok(compilers)) => Ok(runtimes.saturating_add(compilers)),
            _ => s.taskdata.size.bytes_to_read(),
        }
    }

    /// Lists tasks of a queue, or counts them.
    fn file_queued(&mut self, tasks: &[Addr]) -> Result<(), Reason> {
        let size = self.task_bytes()?;
        let mut structs = std::mem::take(&mut self.queued.structs).unwrap_or_else(Structs::new);
        structs.read(self.context.target, tasks, size);
        for index in 0..tasks.len() {
            self.file_task(structs.get(index).map(Part::new), None);
        }
        self.queued.structs = Some(structs);
        Ok(())
    }

    /// Lists a task, or counts it. `node` is its node in the graph of dependences, by which it was found, and how many tasks
    /// it depends on; `None` for one in a queue.
    pub(super) fn file_task(&mut self, task: Result<Part<'_>, Reason>, node: Option<(Addr, i64)>) {
        if let Err(why) = task.and_then(|task| self.try_file_task(task, node))
            && self.queued.first_error.is_none()
        {
            self.queued.first_error = Some(why);
        }
    }

    fn try_file_task(&mut self, task: Part<'_>, node: Option<(Addr, i64)>) -> Result<(), Reason> {
        let addr = task.addr();
        if self.found.ids.contains_key(&addr) {
            return Ok(());
        }
        let kmp = self.context.kmp;
        let s = &kmp.structs;
        let own_node = task.ptr(&s.taskdata.depnode).unwrap_or(Addr::NULL);
        if let Some((node, _)) = node
            && own_node != node
        {
            return Err(Reason::from(Own::NodeNotNamed { task: addr, node }));
        }
        let started = self.flag_of(task, &s.flags.started)?;
        let blocked = node.is_some_and(|(_, before)| before > 0) && !started;
        let read;
        let part = match s.taskdata.size.get().ok().and_then(|distance| task.after(distance, s.task.size)) {
            Some(part) => Some(part),
            None => {
                read = self.task_part(&task.to_view()).ok();
                read.as_ref().map(StructData::part)
            }
        };
        let key = Alike {
            routine: part.and_then(|part| part.ptr(&s.task.routine).ok()),
            parent: task.ptr(&s.taskdata.parent).ok(),
            team: task.ptr(&s.taskdata.team).ok(),
            group: task.ptr(&s.taskdata.taskgroup).ok(),
            priority: match self.flag_of(task, &s.flags.priority_specified) {
                Ok(true) => part.and_then(|part| part.int(&s.task.priority).ok()),
                Ok(false) => Some(0),
                Err(_) => None,
            },
            blocked,
        };
        // What has begun is told one by one: it is on some thread's stack, or detached.
        let enough = self.queued.listed >= limits::TASKS_LISTED;
        let kin = self.queued.kin.get_mut(&key).filter(|_| !started);
        if kin.as_ref().map_or(enough, |kin| enough || kin.listed >= limits::TASKS_ALIKE) {
            match kin {
                Some(kin) => kin.more += 1,
                None => self.queued.unlisted += 1,
            }
            if node.is_none() && !own_node.is_null() {
                self.queued.nodes.push(own_node);
                self.queued.in_queue.insert(addr);
            }
            return Ok(());
        }
        let id = self.add_view(task.to_view())?;
        self.queued.listed += 1;
        if !started {
            self.queued.kin.entry(key).or_insert(Kin { like: id, listed: 0, more: 0 }).listed += 1;
        }
        if let Some((_, before)) = node
            && self.found.list[id.0].state.get() == Some(TaskState::Ready)
        {
            self.found.list[id.0].state = if before > 0 {
                s.depnode.npredecessors.fact(Ok(TaskState::Blocked))
            } else {
                Fact::unknown(Own::AboutToBeQueued)
            };
        }
        self.read_ancestors(id);
        Ok(())
    }

    /// Tells how many tasks are not listed, and of what could not be read.
    pub(super) fn tell_counted(&mut self) {
        let mut more: Vec<MoreTasks> =
            self.queued.kin.values().map(|k| MoreTasks { like: k.like, count: k.more }).collect();
        more.retain(|more| more.count > 0);
        more.sort_by_key(|more| more.like);
        self.found.more = more;
        if self.queued.unlisted > 0 {
            self.notes.issue("tasks in queues", Trouble::KindsCounted { count: self.queued.unlisted });
        }
        if let Some(why) = self.queued.first_error.take().filter(|why| !why.is_layout()) {
            self.notes.issue("tasks in queues", why);
        }
    }
}
