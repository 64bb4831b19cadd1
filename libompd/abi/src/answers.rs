//! Answers to questions about one moment, from what was read of it.

use std::collections::HashMap;

use ompd_process::{Addr, Debugged, NativeThread, Target};
use ompd_runtime::Runtime;
use ompd_runtime::excerpt::Excerpt;
use ompd_runtime::icvs::LEVELS;
use ompd_runtime::model::{
    Common, DeeperItems, Fact, Icvs, OmptFrame, OmptFrames, Role, RuntimeSnapshot, Task, TaskId, TaskKind, Team,
    TeamId, Thread,
};

use crate::answer::{Answer, NoAnswer};
use crate::at_stops::AtStops;
use crate::callbacks::Asked;
use crate::keys::{RegionKey, RuntimeKey, TaskKey, ThreadKey};
use crate::reading::{Hints, Members, Reading};
use crate::types::Rc;

/// What is known of this moment.
pub(crate) enum Seen {
    Nothing,
    /// Of one runtime, what a question needs.
    Excerpt(RuntimeKey, Box<Excerpt>),
    /// Of all: what was read, and what all evidence asked for so far makes of it.
    Whole(Vec<RuntimeSnapshot>),
}

/// What questions are answered from. A look at the whole process and one at a single thread answer by the same methods.
#[derive(Clone, Copy)]
pub(crate) struct Answers<'a> {
    pub(crate) target: &'a Debugged<Asked>,
    pub(crate) runtimes: &'a [Box<dyn Runtime>],
    pub(crate) seen: &'a Seen,
    pub(crate) hints: &'a HashMap<RuntimeKey, Hints>,
    pub(crate) stops: &'a AtStops,
}

impl<'a> Answers<'a> {
    fn reading(self, runtime: RuntimeKey) -> Answer<Reading<'a>> {
        match &self.seen {
            Seen::Nothing => Err(Rc::ERROR.into()),
            Seen::Excerpt(of, _) if *of != runtime => Err(Rc::STALE_HANDLE.into()),
            Seen::Excerpt(_, excerpt) => Ok(Reading {
                runtime,
                threads: excerpt.thread.as_slice(),
                teams: &excerpt.teams,
                tasks: &excerpt.tasks,
                members: Members::Listed(&excerpt.members),
            }),
            Seen::Whole(snapshots) => {
                let found = snapshots.iter().find(|s| s.instance.base == runtime).ok_or(Rc::STALE_HANDLE)?;
                Ok(Reading {
                    runtime,
                    threads: &found.threads,
                    teams: &found.teams,
                    tasks: &found.tasks,
                    members: Members::Of(found),
                })
            }
        }
    }

    /// What the thread with this kernel thread id is to a runtime. A thread may be in several runtimes: the first in which it has
    /// a team counts, else the first. Which of several teams is the innermost is not known.
    pub(crate) fn thread_of(self, native: NativeThread) -> Option<ThreadKey> {
        let known = |runtime: &dyn Runtime| {
            let runtime = runtime.info().base;
            let thread = self.reading(runtime).ok()?.thread_by_lwp(native.lwp)?;
            let key = ThreadKey { runtime, descriptor: thread.descriptor, lwp: thread.lwp };
            Some((key, thread.team.flat().is_some()))
        };
        let all: Vec<(ThreadKey, bool)> = self.runtimes.iter().filter_map(|runtime| known(&**runtime)).collect();
        all.iter().find(|(_, in_team)| *in_team).or(all.first()).map(|(key, _)| *key)
    }

    pub(crate) fn thread(self, key: ThreadKey) -> Answer<(Reading<'a>, &'a Thread)> {
        let reading = self.reading(key.runtime)?;
        let thread = reading.threads.iter().find(|t| t.descriptor == key.descriptor).ok_or(Rc::STALE_HANDLE)?;
        match (key.lwp, thread.lwp) {
            (Some(then), Some(now)) if then != now => Err(Rc::STALE_HANDLE.into()),
            _ => Ok((reading, thread)),
        }
    }

    /// The thread that has this descriptor now.
    fn key_of(self, runtime: RuntimeKey, descriptor: Addr) -> Answer<ThreadKey> {
        let reading = self.reading(runtime)?;
        let lwp = match reading.threads.iter().find(|t| t.descriptor == descriptor).map(|thread| thread.lwp) {
            Some(Some(lwp)) => Some(lwp),
            found => match &self.seen {
                Seen::Whole(_) => found.ok_or(Rc::UNAVAILABLE)?,
                // The runtime tells of it without its having been looked at.
                _ => {
                    let known =
                        self.hints.get(&runtime).and_then(|hints| hints.known(descriptor)).ok_or(Rc::UNAVAILABLE)?;
                    let native = NativeThread { lwp: known.lwp, pthread: known.pthread, own_stack: false };
                    Some(self.target.is_alive(native).then_some(known.lwp).ok_or(Rc::UNAVAILABLE)?)
                }
            },
        };
        Ok(ThreadKey { runtime, descriptor, lwp })
    }

    /// A team; [`Rc::UNAVAILABLE`] for a region outside of all teams.
    pub(crate) fn team(self, key: RegionKey) -> Answer<(Reading<'a>, TeamId, &'a Team)> {
        let RegionKey::Team { runtime, descriptor, level, size } = key else {
            return Err(NoAnswer::Final(Rc::UNAVAILABLE));
        };
        let reading = self.reading(runtime)?;
        let same_size = |now: Option<u32>| size.zip(now).is_none_or(|(then, now)| then == now);
        let same = |team: &Team| {
            team.descriptor == descriptor && team.level.get() == Some(level) && same_size(team.size.get())
        };
        let id = reading.teams.iter().position(same).ok_or(Rc::STALE_HANDLE)?;
        Ok((reading, TeamId(id), &reading.teams[id]))
    }

    pub(crate) fn task(self, key: TaskKey) -> Answer<(Reading<'a>, &'a Task)> {
        let reading = self.reading(key.runtime)?;
        let task = reading.tasks.iter().find(|t| t.descriptor == key.descriptor).ok_or(Rc::STALE_HANDLE)?;
        Ok((reading, task))
    }

    /// The innermost region a thread is in.
    pub(crate) fn current_region(self, key: ThreadKey) -> Answer<RegionKey> {
        let (reading, thread) = self.thread(key)?;
        if let Some(at_stop) = self.region_at_stop(key) {
            return reading.region(at_stop?);
        }
        match (&thread.team, thread.role.get()) {
            (Fact::Known { value: Some(id), .. }, _) => reading.region(*id),
            // An idle worker is in no region at all.
            (Fact::Known { value: None, .. }, Some(Role::Initial)) => Ok(RegionKey::Outermost(key)),
            (Fact::Known { value: None, .. }, Some(_)) => Err(NoAnswer::Final(Rc::UNAVAILABLE)),
            _ => Err(Rc::UNAVAILABLE.into()),
        }
    }

    /// The region around another.
    pub(crate) fn enclosing(self, key: RegionKey) -> Answer<RegionKey> {
        let (reading, own, team) = self.team(key)?;
        match &team.parent {
            Fact::Known { value: Some(id), .. } => reading.region(*id),
            Fact::Known { value: None, .. } => {
                let descriptor = reading.member(own, 0).ok_or(Rc::UNAVAILABLE)?;
                Ok(RegionKey::Outermost(self.key_of(key.runtime(), descriptor)?))
            }
            Fact::Unknown { .. } => Err(Rc::UNAVAILABLE.into()),
        }
    }

    /// How many threads a region has.
    pub(crate) fn size(self, key: RegionKey) -> Answer<u32> {
        match key {
            RegionKey::Outermost(thread) => self.thread(thread).map(|_| 1),
            RegionKey::Team { .. } => Ok(self.team(key)?.2.size.get().ok_or(Rc::UNAVAILABLE)?),
        }
    }

    /// The member of a region with this number.
    pub(crate) fn member(self, key: RegionKey, number: usize) -> Answer<ThreadKey> {
        if number as u64 >= self.size(key)?.into() {
            return Err(NoAnswer::Final(Rc::BAD_INPUT));
        }
        match key {
            RegionKey::Outermost(thread) => Ok(thread),
            RegionKey::Team { runtime, .. } => {
                let (reading, id, _) = self.team(key)?;
                let descriptor = reading.member(id, number).ok_or(Rc::UNAVAILABLE)?;
                self.key_of(runtime, descriptor)
            }
        }
    }

    /// The implicit task of the member of a region with this number.
    pub(crate) fn implicit_task(self, key: RegionKey, number: usize) -> Answer<TaskKey> {
        if number as u64 >= self.size(key)?.into() {
            return Err(NoAnswer::Final(Rc::BAD_INPUT));
        }
        let runtime = key.runtime();
        let found = match key {
            RegionKey::Outermost(thread) => self.initial_task(thread)?,
            RegionKey::Team { .. } => {
                let (reading, id, _) = self.team(key)?;
                let is = |task: &&Task| {
                    task.kind.get() == Some(TaskKind::Implicit)
                        && task.team.flat() == Some(id)
                        && task.member.is_some_and(|member| member as usize == number)
                };
                reading.tasks.iter().find(is).map(|task| task.descriptor)
            }
        };
        Ok(TaskKey { runtime, descriptor: found.ok_or(Rc::UNAVAILABLE)? })
    }

    /// The task an initial thread executes outside of all teams: the one at the end of what generated its current one.
    fn initial_task(self, key: ThreadKey) -> Answer<Option<Addr>> {
        let (reading, thread) = self.thread(key)?;
        let mut at = thread.task.get();
        for _ in 0..=reading.tasks.len() {
            let Some(task) = at.and_then(|id| reading.task(id)) else { return Ok(None) };
            if task.kind.get() == Some(TaskKind::Initial) {
                return Ok(Some(task.descriptor));
            }
            at = task.generating.flat();
        }
        Ok(None)
    }

    /// The task that generated another.
    pub(crate) fn generating(self, key: TaskKey) -> Answer<TaskKey> {
        let (reading, task) = self.task(key)?;
        match &task.generating {
            Fact::Known { value: Some(id), .. } => {
                let descriptor = reading.task(*id).ok_or(Rc::UNAVAILABLE)?.descriptor;
                Ok(TaskKey { runtime: key.runtime, descriptor })
            }
            Fact::Known { value: None, .. } => Err(NoAnswer::Final(Rc::UNAVAILABLE)),
            Fact::Unknown { .. } => Err(Rc::UNAVAILABLE.into()),
        }
    }

    /// The region a task belongs to.
    pub(crate) fn region_of(self, key: TaskKey) -> Answer<RegionKey> {
        let (reading, task) = self.task(key)?;
        match &task.team {
            Fact::Known { value: Some(id), .. } => reading.region(*id),
            Fact::Known { value: None, .. } => {
                let of = |thread: &&Thread| {
                    let key = ThreadKey { runtime: key.runtime, descriptor: thread.descriptor, lwp: thread.lwp };
                    self.initial_task(key).is_ok_and(|initial| initial == Some(task.descriptor))
                };
                // Workers' tasks lead to the initial task as well; the thread whose it is has the number 0 all the way.
                let initial = |thread: &&Thread| thread.role.get() == Some(Role::Initial);
                let thread = reading.threads.iter().filter(initial).find(of).ok_or(Rc::UNAVAILABLE)?;
                Ok(RegionKey::Outermost(self.key_of(key.runtime, thread.descriptor)?))
            }
            Fact::Unknown { .. } => Err(Rc::UNAVAILABLE.into()),
        }
    }

    /// The thread that executes a task now.
    pub(crate) fn executing(self, key: TaskKey) -> Answer<&'a Thread> {
        let (reading, task) = self.task(key)?;
        Ok(reading.executing(task).ok_or(Rc::UNAVAILABLE)?)
    }

    /// The control variables of a task that no thread executes, as far as they are the task's own.
    pub(crate) fn icvs_of(self, key: TaskKey) -> Answer<Icvs> {
        let descriptor = self.task(key)?.1.descriptor;
        let runtime = self.runtimes.iter().find(|of| of.info().base == key.runtime).ok_or(Rc::STALE_HANDLE)?;
        // Without a descriptor the runtime keeps none for it.
        if descriptor.is_null() {
            Err(Rc::UNAVAILABLE.into())
        } else {
            Ok(runtime.icvs_of_task(self.target, descriptor))
        }
    }

    /// The control variables of the task that a thread executes, with the items of lists for regions further in.
    pub(crate) fn lists_of_thread(self, key: RuntimeKey, thread: &Thread) -> Answer<Icvs> {
        let level = thread.icvs.count(&LEVELS).and_then(|level| u32::try_from(level).ok());
        let team = match (&thread.team, level) {
            (Fact::Known { value: Some(id), .. }, _) => self.reading(key)?.team(*id).map(|team| Some(team.descriptor)),
            (Fact::Known { value: None, .. }, _) => Some(None),
            (Fact::Unknown { .. }, _) => None,
        };
        self.with_lists(key, team.zip(level), &thread.icvs)
    }

    /// The same of a task that no thread executes, and of which these are its own.
    pub(crate) fn lists_of_task(self, key: TaskKey, icvs: &Icvs) -> Answer<Icvs> {
        let place = match self.region_of(key) {
            Ok(RegionKey::Team { descriptor, level, .. }) => Some((Some(descriptor), level)),
            Ok(RegionKey::Outermost(_)) => Some((None, 0)),
            Err(_) => None,
        };
        self.with_lists(key.runtime, place, icvs)
    }

    fn with_lists(self, key: RuntimeKey, place: Option<(Option<Addr>, u32)>, icvs: &Icvs) -> Answer<Icvs> {
        let runtime = self.runtimes.iter().find(|of| of.info().base == key).ok_or(Rc::STALE_HANDLE)?;
        let deeper = match (place, &self.seen) {
            (Some((team, level)), _) => runtime.deeper_items(self.target, team, level),
            // A look at the whole process may tell.
            (None, Seen::Excerpt(..)) => return Err(Rc::UNAVAILABLE.into()),
            (None, _) => DeeperItems::unknown(Common::LevelUnknown),
        };
        Ok(Icvs { deeper, ..icvs.clone() })
    }

    /// What is not known of the control variables of a thread whose task was read is known nowhere.
    pub(crate) fn final_of<T>(self, thread: &Thread, why: NoAnswer) -> Answer<T> {
        Err(if thread.task.get().is_some() { NoAnswer::Final(why.into()) } else { why })
    }

    /// The thread on whose stack a task is, where known: the one that executes the task, or a task generated in it.
    pub(crate) fn lwp_of(self, key: TaskKey) -> Option<i32> {
        let (reading, task) = self.task(key).ok()?;
        let member =
            || reading.team(task.team.flat()?)?.members.get(usize::try_from(task.member?).ok()?).copied().flatten();
        let primary = || {
            let RegionKey::Outermost(thread) = self.region_of(key).ok()? else { return None };
            self.thread(thread).ok()?.1.lwp
        };
        task.thread.or(task.stack).or_else(member).or_else(primary)
    }

    /// The frames of a task that the runtime has noted for OMPT tools; `None` if it has noted none. Runtimes that were built
    /// without frame pointers note whatever was in the register: what is not on a stack is not believed.
    pub(crate) fn noted_frames(self, key: TaskKey) -> Answer<Option<OmptFrames>> {
        let Some(noted) = self.task(key)?.1.ompt_frames.get() else { return Ok(None) };
        let mut word = [0; 8];
        let mut is_place = |of: OmptFrame| {
            let may_be = of.address.0.is_multiple_of(8) && self.target.may_be_on_stack(of.address);
            may_be && self.target.read(of.address, &mut word).is_ok()
        };
        let both = [noted.exit, noted.enter];
        let is_any = both.iter().any(Option::is_some) && both.into_iter().flatten().all(&mut is_place);
        Ok(is_any.then_some(noted))
    }
}

impl Answers<'_> {
    /// The region of a thread that is at a place where it is not as it is read otherwise.
    pub(crate) fn region_at_stop(self, thread: ThreadKey) -> Option<Result<TeamId, Rc>> {
        match (self.stops.at.get(&thread), self.stops.own.get(&thread)) {
            (Some((_, Ok(holds))), _) => holds.region.map(Ok),
            (Some((_, Err(_))), _) => Some(Err(Rc::UNAVAILABLE)),
            (None, own) => own?.region.clone().map(|region| region.map_err(|_| Rc::UNAVAILABLE)),
        }
    }

    /// Why the region of a thread at a place to stop at is unknown.
    pub(crate) fn region_trouble(self, thread: ThreadKey) -> Option<String> {
        match (self.stops.at.get(&thread), self.stops.own.get(&thread)) {
            (Some((_, holds)), _) => holds.as_ref().err().cloned(),
            (None, own) => own?.region.clone()?.err(),
        }
    }

    /// The task of a thread at a place where it is not as it is read otherwise; the reason if it is unknown.
    pub(crate) fn task_at_stop(self, thread: ThreadKey) -> Option<Result<TaskId, String>> {
        match (self.stops.at.get(&thread), self.stops.own.get(&thread)) {
            (Some((_, Ok(holds))), _) => holds.task.clone(),
            (Some((_, Err(why))), _) => Some(Err(why.clone())),
            (None, own) => own?.task.clone(),
        }
    }

    /// The task a thread executes. At the begin and end of a region that is the one which met the construct.
    pub(crate) fn current_task(self, key: ThreadKey) -> Answer<TaskKey> {
        let (reading, thread) = self.thread(key)?;
        let id: Option<TaskId> = match self.task_at_stop(key) {
            Some(task) => task.ok(),
            None => thread.task.get(),
        };
        let task = id.and_then(|id| reading.task(id)).ok_or(Rc::UNAVAILABLE)?;
        Ok(TaskKey { runtime: key.runtime, descriptor: task.descriptor })
    }
}
