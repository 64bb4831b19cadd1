//! A look at a region or at one of its implicit tasks. Their own records tell what is asked, and the thread of number 0 shows that the
//! region lives.

use std::collections::BTreeMap;

use ompd_process::{Addr, Target, TargetExt};

use super::focus::{self, Reach};
use super::task_reader::{Queued, TaskReader, Tasks};
use super::teams::{self, Teams};
use super::threads::Threads;
use super::{Context, Notes};
use crate::bind::StructData;
use crate::excerpt::{About, Excerpt, Focus, NOT_LOOKED_FOR, Tasks as Wanted, Wanted as WantedMembers};
use crate::kmp::Kmp;
use crate::limits;
use crate::model::*;

/// Nothing where a look at a thread has to tell.
pub(super) fn excerpt(kmp: &Kmp, target: &dyn Target, focus: &Focus<'_>) -> Option<Excerpt> {
    let context = &mut Context::new(kmp, target);
    if focus.enclosing || focus.wait {
        return None;
    }
    let tasks = match focus.subject {
        About::Thread => return None,
        About::Team(_) => Wanted::None,
        // What a task has of its thread is not in its record.
        About::ImplicitTask(..) | About::Task(_) if focus.icvs => return None,
        About::ImplicitTask(..) | About::Task(_) => focus.tasks,
    };
    let (icvs, tool, function) = (focus.icvs, focus.tool, focus.function);
    context.reach = Reach::Thread { enclosing: false, tasks, wait: false, icvs, tool, function };
    match focus.subject {
        About::Thread => None,
        About::Team(team) => Region::read(context, focus, team)?.with_member(context, focus.members),
        About::ImplicitTask(team, number) => {
            let region = Region::read(context, focus, team)?;
            if number >= region.size {
                return region.with_member(context, WantedMembers::None);
            }
            let size = context.kmp.structs.taskdata.size.get().ok()?;
            let task = region.tasks(context)?.offset(size.checked_mul(number)?);
            if !region.is_executed(context, task, number)? {
                return None;
            }
            region.with_task(context, task, number, false)
        }
        About::Task(task) => {
            let s = &context.kmp.structs;
            let team = TaskReader::read_one(context, task).ok()?.ptr(&s.taskdata.team).ok()?;
            let region = Region::read(context, focus, team)?;
            let distance = task.0.checked_sub(region.tasks(context)?.0)?;
            let size = s.taskdata.size.get().ok().filter(|size| *size > 0 && distance.is_multiple_of(*size))?;
            let number = Some(distance / size).filter(|number| *number < region.size)?;
            if !region.is_executed(context, task, number)? {
                return None;
            }
            region.with_task(context, task, number, matches!(tasks, Wanted::Beyond(_)))
        }
    }
}

/// A region of more than one thread that lives: its team is the innermost of the thread that has number 0 in it.
struct Region {
    view: StructData,
    first: Addr,
    size: u64,
    threads: Threads,
    teams: Teams,
    notes: Notes,
}

impl Region {
    fn read(context: &Context<'_>, focus: &Focus<'_>, team: Addr) -> Option<Region> {
        let s = &context.kmp.structs.team;
        let first = (focus.first)(team)?;
        let view = context.team(team).ok()?;
        let size = u64::from(view.count(&s.nproc).ok()?);
        let is_region = (2..=limits::TEAM_SIZE).contains(&size) && view.count(&s.level).ok()? > 0;
        if !is_region || !focus::is_first_of(context, first, team) {
            return None;
        }
        let (threads, mut notes) = (Threads::default(), Notes::default());
        let teams = teams::of_one(context, &threads, &view, &mut notes)?;
        Some(Region { view, first, size, threads, teams, notes })
    }

    /// Where its implicit tasks lie, one after the other.
    fn tasks(&self, context: &Context<'_>) -> Option<Addr> {
        let first = self.view.ptr(&context.kmp.structs.team.implicit_tasks).ok()?;
        (!first.is_null()).then_some(first)
    }

    /// False if the member of this number executes something else than its implicit task. Then that leads to the
    /// implicit task, or to the one of another member.
    fn is_executed(&self, context: &Context<'_>, task: Addr, number: u64) -> Option<bool> {
        let member = focus::member(context, &self.view, number).ok()?;
        let current = member.offset(context.kmp.structs.info.current_task.offset().ok()?);
        Some(context.target.read_ptr(current).ok()? == task)
    }

    fn with_member(self, context: &Context<'_>, wanted: WantedMembers) -> Option<Excerpt> {
        let mut members = BTreeMap::from([(0, self.first)]);
        if let WantedMembers::One(number) = wanted
            && (1..self.size).contains(&number)
        {
            members.insert(number as usize, focus::member(context, &self.view, number).ok()?);
        }
        self.finish(context, members, Tasks::default())
    }

    /// With an implicit task of this number, and the one that generated it, if that is wanted.
    fn with_task(mut self, context: &Context<'_>, task: Addr, number: u64, generating: bool) -> Option<Excerpt> {
        let (queued, found) = (Queued::default(), Tasks::default());
        let (threads, teams, notes) = (&self.threads, &self.teams, &mut self.notes);
        let mut reader = TaskReader { context, threads, teams, notes, queued, found };
        let id = reader.add_task(task).ok()?;
        let team = reader.found.views[id.0].ptr(&context.kmp.structs.taskdata.team).ok()?;
        if reader.found.list[id.0].kind.get() != Some(TaskKind::Implicit) || team != self.view.addr() {
            return None;
        }
        if generating {
            let parent = reader.parent_of(&reader.found.views[id.0]).ok()?;
            let parent = reader.add_task(parent).ok()?;
            let slot = &context.kmp.structs.taskdata.parent;
            reader.found.list[id.0].generating = slot.fact(Ok(Some(parent)));
        }
        let mut found = reader.found;
        for task in &mut found.list {
            task.state = Fact::unknown(NOT_LOOKED_FOR);
        }
        found.list[id.0].member = u32::try_from(number).ok();
        let members = BTreeMap::from([(0, self.first)]);
        self.finish(context, members, found)
    }

    fn finish(self, context: &Context<'_>, members: BTreeMap<usize, Addr>, tasks: Tasks) -> Option<Excerpt> {
        let teams = self.teams.raw(context, &self.threads);
        let clean = self.notes.is_clean() && teams.len() == 1;
        clean.then(|| Excerpt::of(None, Some(vec![members]), teams, tasks.list))
    }
}
