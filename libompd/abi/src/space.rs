//! One address space of a debugger: a process or a core file, with the OpenMP runtimes in it.

use ompd_runtime::model::{Fact, Role, RuntimeSnapshot, Task, TaskId, TaskKind, Team, TeamId, Thread};
use ompd_runtime::{Runtime, discover};
use ompd_stack::{Cache, Report, Stacks, TaskFrames};
use ompd_target::{Addr, Debugged, NativeThread, OpenOptions, Target};

use crate::callbacks::Asked;
use crate::stops::AtStops;
use crate::types::{AddressSpaceContext, Callbacks, Rc};

/// Which runtime of a process: the address of its module.
pub(crate) type RuntimeKey = Addr;

/// A thread, as long as its runtime keeps its descriptor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ThreadKey {
    pub(crate) runtime: RuntimeKey,
    pub(crate) descriptor: Addr,
}

/// A parallel region. Serialized regions nested in each other may share a descriptor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum RegionKey {
    /// What an initial thread executes outside of all others: the implicit parallel region of one thread that surrounds the program (OpenMP
    /// 5.2, section 1.3).
    Outermost(ThreadKey),
    /// A region of a parallel construct.
    Team { runtime: RuntimeKey, descriptor: Addr, level: u32 },
}

impl RegionKey {
    pub(crate) fn runtime(self) -> RuntimeKey {
        match self {
            RegionKey::Outermost(thread) => thread.runtime,
            RegionKey::Team { runtime, .. } => runtime,
        }
    }
}

/// A task, as long as its runtime keeps its descriptor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TaskKey {
    pub(crate) runtime: RuntimeKey,
    pub(crate) descriptor: Addr,
}

/// An address space and what was last read of it.
pub(crate) struct Space {
    pub(crate) target: Debugged<Asked>,
    pub(crate) runtimes: Vec<Box<dyn Runtime>>,
    pub(crate) snapshots: Vec<RuntimeSnapshot>,
    /// What the debugger says of the stop in which `snapshots` were made.
    stop: Option<u64>,
    /// The stacks of that stop, once they were asked for.
    stacks: Option<Report>,
    cache: Cache,
    /// Where it can be stopped, and who is there.
    pub(crate) stops: AtStops,
}

impl std::fmt::Debug for Space {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Space")
            .field("runtimes", &self.runtimes.len())
            .field("stop", &self.stop)
            .finish_non_exhaustive()
    }
}

impl Space {
    /// Opens an address space of the debugger.
    ///
    /// # Errors
    /// [`Rc::INCOMPATIBLE`] if there is no runtime in it that this library knows, [`Rc::CALLBACK_ERROR`] if the debugger does
    /// not answer.
    pub(crate) fn open(table: Callbacks, context: *mut AddressSpaceContext) -> Result<Space, Rc> {
        let asked = Asked::new(table, context);
        let sizes = asked.sizes()?;
        let options = OpenOptions::default();
        let target =
            Debugged::open(asked, sizes.pointer, ompd_runtime::WELL_KNOWN, &options).map_err(|_| Rc::INCOMPATIBLE)?;
        let runtimes = discover(&target, &[]);
        if runtimes.is_empty() {
            return Err(Rc::INCOMPATIBLE);
        }
        let stop = target.debugger().stop();
        let cache = Cache::default();
        let mut space =
            Space { target, runtimes, snapshots: Vec::new(), stop, stacks: None, cache, stops: AtStops::default() };
        space.read();
        Ok(space)
    }

    /// Makes sure that what is known is of now.
    pub(crate) fn look(&mut self) {
        let stop = self.target.debugger().stop();
        if stop.is_some() && stop == self.stop {
            return;
        }
        self.stop = stop;
        if self.target.refresh() {
            self.target.debugger().forget_symbols();
            self.runtimes = discover(&self.target, &[]);
        }
        self.read();
    }

    pub(crate) fn read(&mut self) {
        self.stacks = None;
        self.snapshots = self.runtimes.iter().map(|runtime| runtime.snapshot(&self.target)).collect();
        self.find_stops();
    }

    /// Everything is read anew, whatever the debugger says of stops.
    pub(crate) fn drop_cache(&mut self) {
        self.forget_stops();
        self.target.debugger().forget_symbols();
        self.target.refresh();
        self.cache = Cache::default();
        self.runtimes = discover(&self.target, &[]);
        self.read();
    }

    pub(crate) fn target(&self) -> &Debugged<Asked> {
        &self.target
    }

    /// The runtime that questions about the whole process are about: that with the most threads in teams, and of several such
    /// the first.
    pub(crate) fn main(&self) -> Result<&RuntimeSnapshot, Rc> {
        let busy = |s: &RuntimeSnapshot| s.threads.iter().filter(|t| t.team.flat().is_some()).count();
        let most = self.snapshots.iter().map(busy).max().unwrap_or(0);
        self.snapshots.iter().find(|s| busy(s) == most).ok_or(Rc::INCOMPATIBLE)
    }

    fn snapshot(&self, runtime: RuntimeKey) -> Result<&RuntimeSnapshot, Rc> {
        self.snapshots.iter().find(|s| s.instance.base == runtime).ok_or(Rc::STALE_HANDLE)
    }

    /// What the thread with this kernel thread id is to a runtime. In more than one, it is that in which it has a team, and of
    /// several such the innermost, which keeps its thread longest, is not known: then the first counts.
    pub(crate) fn thread_of(&self, native: NativeThread) -> Option<ThreadKey> {
        let known = |s: &RuntimeSnapshot| {
            let thread = s.thread_by_lwp(native.lwp)?;
            Some((ThreadKey { runtime: s.instance.base, descriptor: thread.descriptor }, thread.team.flat().is_some()))
        };
        let all: Vec<(ThreadKey, bool)> = self.snapshots.iter().filter_map(known).collect();
        all.iter().find(|(_, in_team)| *in_team).or(all.first()).map(|(key, _)| *key)
    }

    pub(crate) fn thread(&self, key: ThreadKey) -> Result<(&RuntimeSnapshot, &Thread), Rc> {
        let snapshot = self.snapshot(key.runtime)?;
        let thread = snapshot.threads.iter().find(|t| t.descriptor == key.descriptor).ok_or(Rc::STALE_HANDLE)?;
        Ok((snapshot, thread))
    }

    /// A team; [`Rc::UNAVAILABLE`] for a region outside of all teams.
    pub(crate) fn team(&self, key: RegionKey) -> Result<(&RuntimeSnapshot, TeamId, &Team), Rc> {
        let RegionKey::Team { runtime, descriptor, level } = key else { return Err(Rc::UNAVAILABLE) };
        let snapshot = self.snapshot(runtime)?;
        let same = |team: &Team| team.descriptor == descriptor && team.level.get() == Some(level);
        let id = snapshot.teams.iter().position(same).ok_or(Rc::STALE_HANDLE)?;
        Ok((snapshot, TeamId(id), &snapshot.teams[id]))
    }

    pub(crate) fn task(&self, key: TaskKey) -> Result<(&RuntimeSnapshot, &Task), Rc> {
        let snapshot = self.snapshot(key.runtime)?;
        let task = snapshot.tasks.iter().find(|t| t.descriptor == key.descriptor).ok_or(Rc::STALE_HANDLE)?;
        Ok((snapshot, task))
    }

    /// The innermost region a thread is in.
    pub(crate) fn current_region(&self, key: ThreadKey) -> Result<RegionKey, Rc> {
        let (snapshot, thread) = self.thread(key)?;
        if let Some(at_stop) = self.region_at_stop(key) {
            return region(snapshot, at_stop?);
        }
        match &thread.team {
            Fact::Known { value: Some(id), .. } => region(snapshot, *id),
            // An idle worker is in no region at all.
            Fact::Known { value: None, .. } if thread.role.get() == Some(Role::Initial) => {
                Ok(RegionKey::Outermost(key))
            }
            _ => Err(Rc::UNAVAILABLE),
        }
    }

    /// The region around another.
    pub(crate) fn enclosing(&self, key: RegionKey) -> Result<RegionKey, Rc> {
        let (snapshot, _, team) = self.team(key)?;
        match &team.parent {
            Fact::Known { value: Some(id), .. } => region(snapshot, *id),
            Fact::Known { value: None, .. } => {
                let primary = team.members.first().copied().flatten().and_then(|lwp| snapshot.thread_by_lwp(lwp));
                let descriptor = primary.ok_or(Rc::UNAVAILABLE)?.descriptor;
                Ok(RegionKey::Outermost(ThreadKey { runtime: key.runtime(), descriptor }))
            }
            Fact::Unknown { .. } => Err(Rc::UNAVAILABLE),
        }
    }

    /// How many threads a region has.
    pub(crate) fn size(&self, key: RegionKey) -> Result<u32, Rc> {
        match key {
            RegionKey::Outermost(thread) => self.thread(thread).map(|_| 1),
            RegionKey::Team { .. } => self.team(key)?.2.size.get().ok_or(Rc::UNAVAILABLE),
        }
    }

    /// The member of a region with this number.
    pub(crate) fn member(&self, key: RegionKey, number: usize) -> Result<ThreadKey, Rc> {
        if number as u64 >= self.size(key)?.into() {
            return Err(Rc::BAD_INPUT);
        }
        match key {
            RegionKey::Outermost(thread) => Ok(thread),
            RegionKey::Team { runtime, .. } => {
                let (snapshot, _, team) = self.team(key)?;
                let lwp = team.members.get(number).copied().flatten().ok_or(Rc::UNAVAILABLE)?;
                let thread = snapshot.thread_by_lwp(lwp).ok_or(Rc::UNAVAILABLE)?;
                Ok(ThreadKey { runtime, descriptor: thread.descriptor })
            }
        }
    }

    /// The implicit task of the member of a region with this number.
    pub(crate) fn implicit_task(&self, key: RegionKey, number: usize) -> Result<TaskKey, Rc> {
        if number as u64 >= self.size(key)?.into() {
            return Err(Rc::BAD_INPUT);
        }
        let runtime = key.runtime();
        let found = match key {
            RegionKey::Outermost(thread) => self.initial_task(thread)?,
            RegionKey::Team { .. } => {
                let (snapshot, id, _) = self.team(key)?;
                let is = |task: &&Task| {
                    task.kind.get() == Some(TaskKind::Implicit)
                        && task.team.flat() == Some(id)
                        && task.member.is_some_and(|member| member as usize == number)
                };
                snapshot.tasks.iter().find(is).map(|task| task.descriptor)
            }
        };
        Ok(TaskKey { runtime, descriptor: found.ok_or(Rc::UNAVAILABLE)? })
    }

    /// The task an initial thread executes outside of all teams: the one at the end of what generated its current one.
    fn initial_task(&self, key: ThreadKey) -> Result<Option<Addr>, Rc> {
        let (snapshot, thread) = self.thread(key)?;
        let mut at = thread.task.get();
        for _ in 0..=snapshot.tasks.len() {
            let Some(task) = at.and_then(|id| snapshot.task(id)) else { return Ok(None) };
            if task.kind.get() == Some(TaskKind::Initial) {
                return Ok(Some(task.descriptor));
            }
            at = task.generating.flat();
        }
        Ok(None)
    }

    /// The region a task belongs to.
    pub(crate) fn region_of(&self, key: TaskKey) -> Result<RegionKey, Rc> {
        let (snapshot, task) = self.task(key)?;
        match &task.team {
            Fact::Known { value: Some(id), .. } => region(snapshot, *id),
            Fact::Known { value: None, .. } => {
                let of = |thread: &&Thread| {
                    let key = ThreadKey { runtime: key.runtime, descriptor: thread.descriptor };
                    self.initial_task(key).is_ok_and(|initial| initial == Some(task.descriptor))
                };
                // Workers' tasks lead to the initial task as well; the thread whose it is has the number 0 all the way.
                let initial = |thread: &&Thread| thread.role.get() == Some(Role::Initial);
                let thread = snapshot.threads.iter().filter(initial).find(of).ok_or(Rc::UNAVAILABLE)?;
                Ok(RegionKey::Outermost(ThreadKey { runtime: key.runtime, descriptor: thread.descriptor }))
            }
            Fact::Unknown { .. } => Err(Rc::UNAVAILABLE),
        }
    }

    /// The thread that executes a task now.
    pub(crate) fn executing(&self, key: TaskKey) -> Result<&Thread, Rc> {
        let (snapshot, task) = self.task(key)?;
        let lwp = task.thread.ok_or(Rc::UNAVAILABLE)?;
        snapshot.thread_by_lwp(lwp).ok_or(Rc::UNAVAILABLE)
    }

    /// Adds to what is known what only stacks tell: functions of regions and tasks, and of some waits what they are for. Nothing is
    /// added unless there are registers.
    pub(crate) fn enrich(&mut self) {
        let known = |target: &Debugged<Asked>| target.threads().iter().any(|t| t.registers.is_ok());
        if self.stacks.is_none() && known(&self.target) {
            let stacks = Stacks::capture(&self.target);
            let report = Report::of(&self.target, &self.runtimes, &mut self.snapshots, &stacks, &self.cache);
            self.stacks = Some(report);
        }
    }

    /// The thread on whose stack a task is, as far as that can be told: the one that executes it, or what was generated in it.
    pub(crate) fn lwp_of(&self, key: TaskKey) -> Option<i32> {
        let (snapshot, task) = self.task(key).ok()?;
        let member = || {
            let member = usize::try_from(task.member?).ok()?;
            snapshot.team(task.team.flat()?)?.members.get(member).copied().flatten()
        };
        let primary = || {
            let RegionKey::Outermost(thread) = self.region_of(key).ok()? else { return None };
            self.thread(thread).ok()?.1.lwp
        };
        task.thread.or(task.stack).or_else(member).or_else(primary)
    }

    /// The frames of a task, where the debugger offers registers.
    pub(crate) fn frames(&mut self, key: TaskKey) -> Result<TaskFrames, Rc> {
        let lwp = self.lwp_of(key).ok_or(Rc::UNAVAILABLE)?;
        let known = |target: &Debugged<Asked>| target.threads().iter().filter(|t| t.registers.is_ok()).count();
        let before = known(&self.target);
        if self.target.ask_registers(lwp) && known(&self.target) > before {
            // They may tell what the thread waits for.
            self.read();
        }
        self.enrich();
        let report = self.stacks.as_ref().ok_or(Rc::UNAVAILABLE)?;
        if self.task(key)?.1.kind.get() == Some(TaskKind::Initial) {
            return report.initial_frames(lwp).ok_or(Rc::UNAVAILABLE);
        }
        let runtime = self.snapshots.iter().position(|s| s.instance.base == key.runtime).ok_or(Rc::STALE_HANDLE)?;
        let task = self.snapshots[runtime].tasks.iter().position(|t| t.descriptor == key.descriptor);
        let task = TaskId(task.ok_or(Rc::STALE_HANDLE)?);
        report.task_frames(&self.snapshots, runtime, task).ok_or(Rc::UNAVAILABLE)
    }
}

fn region(snapshot: &RuntimeSnapshot, id: TeamId) -> Result<RegionKey, Rc> {
    let team = snapshot.team(id).ok_or(Rc::ERROR)?;
    let level = team.level.get().ok_or(Rc::UNAVAILABLE)?;
    Ok(RegionKey::Team { runtime: snapshot.instance.base, descriptor: team.descriptor, level })
}
