//! Task groups.

use std::collections::HashSet;

use ompd_process::Addr;

use super::task_reader::TaskReader;
use crate::bind::StructData;
use crate::kmp::reason::Own;
use crate::limits;
use crate::model::*;

impl TaskReader<'_> {
    /// The task group at `addr`, after those around it have been read.
    pub(super) fn group_at(&mut self, addr: Addr) -> Result<Option<TaskgroupId>, Reason> {
        let kmp = self.context.kmp;
        let s = &kmp.structs.taskgroup;
        let mut fresh: Vec<TaskgroupId> = Vec::new();
        let mut at = addr;
        let mut end = Ok(None);
        while !at.is_null() {
            if let Some(known) = self.found.group_ids.get(&at).copied() {
                end = if fresh.contains(&known) {
                    Err(Reason::from(Own::EndlessTaskgroups { around: addr }))
                } else {
                    Ok(Some(known))
                };
                break;
            }
            let read = self.notes.budget.spend(1).and_then(|()| StructData::read(self.context.target, at, s.size));
            let read = read.and_then(|view| Ok((view.ptr(&s.parent)?, view)));
            let (parent, view) = match read {
                Ok(read) => read,
                Err(why) if fresh.is_empty() => return Err(why),
                Err(why) => {
                    end = Err(why);
                    break;
                }
            };
            let id = TaskgroupId(self.found.groups.len());
            self.found.groups.push(Taskgroup {
                descriptor: at,
                parent: Fact::unknown(Common::NotRead),
                unfinished: s.count.fact(view.count(&s.count).map(u64::from)),
                cancelled: s.cancel_request.fact(view.flag(&s.cancel_request)),
            });
            self.found.group_ids.insert(at, id);
            fresh.push(id);
            at = parent;
        }
        let outer = fresh.iter().skip(1).map(|id| Ok(Some(*id))).chain([end.clone()]);
        for (id, outer) in fresh.iter().zip(outer) {
            self.found.groups[id.0].parent = s.parent.fact(outer);
        }
        Ok(fresh.first().copied().or(end.ok().flatten()))
    }

    /// That group and those around it, innermost first.
    fn groups_around(&self, group: Option<TaskgroupId>) -> Vec<TaskgroupId> {
        let outer = |id: &TaskgroupId| self.found.groups.get(id.0)?.parent.flat();
        std::iter::successors(group, outer).take(limits::TASK_DEPTH).collect()
    }

    /// Which task group each task belongs to. The runtime keeps the innermost one a task is in, which may be one the
    /// task has opened itself. The task belongs to the innermost one that its generating task is in as well. The
    /// generating task cannot leave a group before its tasks are over.
    pub(super) fn read_memberships(&mut self) {
        let slot = self.context.kmp.structs.taskdata.taskgroup;
        let mut innermost: Vec<Result<Option<TaskgroupId>, Reason>> = Vec::with_capacity(self.found.list.len());
        let mut told = false;
        for index in 0..self.found.list.len() {
            let group = self.found.views[index].ptr(&slot).and_then(|group| self.group_at(group));
            if let Err(why) = &group
                && !why.is_layout()
                && !std::mem::replace(&mut told, true)
            {
                self.notes.issue(format!("task {}", self.found.list[index].descriptor), why);
            }
            innermost.push(group);
        }
        for (index, group) in innermost.iter().enumerate() {
            let task = &self.found.list[index];
            let begun = !matches!(task.state.get(), Some(TaskState::Ready | TaskState::Blocked));
            let group = match (task.kind.get().map(TaskKind::is_explicit), group) {
                (_, Err(why)) => Err(why.clone()),
                // An implicit task belongs to none, whatever it has opened.
                (Some(false), Ok(_)) | (_, Ok(None)) => Ok(None),
                (_, Ok(group)) if !begun => Ok(*group),
                (_, Ok(group)) => {
                    let parent = task.generating.flat().and_then(|parent| innermost.get(parent.0));
                    match parent {
                        Some(Ok(parents)) => {
                            let around: HashSet<TaskgroupId> = self.groups_around(*parents).into_iter().collect();
                            Ok(self.groups_around(*group).into_iter().find(|group| around.contains(group)))
                        }
                        Some(Err(why)) => Err(why.clone()),
                        None => Err(Own::GeneratingNotRead.into()),
                    }
                }
            };
            self.found.list[index].taskgroup = slot.fact(group);
        }
    }
}
