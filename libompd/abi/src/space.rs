//! One address space of a debugger: a process or a core file, with the OpenMP runtimes in it.

use std::cell::Cell;
use std::collections::{HashMap, HashSet};
use std::time::Duration;

use ompd_inspection::{Inspection, Wanted, inspect_held};
use ompd_process::{Addr, Debugged, Debugger, NativeThread, OpenOptions, Target};
use ompd_runtime::evidence::Evidence;
use ompd_runtime::excerpt::{Excerpt, Focus, Known, Tasks};
use ompd_runtime::icvs::{LEVELS, of_tasks};
use ompd_runtime::merge::merge;
use ompd_runtime::model::{
    DeeperItems, Fact, Icv, Icvs, InstanceInfo, OmptFrame, OmptFrames, RawSnapshot, Role, RuntimeSnapshot, Setting,
    Task, TaskId, TaskKind, Team, TeamId, Thread,
};
use ompd_runtime::{Runtime, discover};
use ompd_stack::{Cache, Report, Stacks, TaskFrames};

use crate::callbacks::{Asked, say};
use crate::looked::{Hints, Looked, Members};
use crate::refusal;
use crate::stops::AtStops;
use crate::types::{AddressSpaceContext, Callbacks, Rc};

/// Which runtime of a process: the address of its module.
pub(crate) type RuntimeKey = Addr;

/// A thread. Its descriptor may be another's once it has ended: that it is the same is told by the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ThreadKey {
    pub(crate) runtime: RuntimeKey,
    pub(crate) descriptor: Addr,
    /// Kernel thread id; `None` where it was not known.
    pub(crate) lwp: Option<i32>,
}

/// A parallel region. Serialized regions nested in each other may share a descriptor, and so may regions that follow each other:
/// of the same level and size they are told apart by nothing that runtimes keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum RegionKey {
    /// What an initial thread executes outside of all others: the implicit parallel region of one thread that surrounds the program (OpenMP
    /// 5.2, section 1.3).
    Outermost(ThreadKey),
    /// A region of a parallel construct.
    Team { runtime: RuntimeKey, descriptor: Addr, level: u32, size: Option<u32> },
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

/// What a question is about.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Subject {
    /// The thread with this native id.
    Native(NativeThread),
    Thread(ThreadKey),
    Region(RegionKey),
    /// Who is the member of a region with this number.
    Seat(RegionKey, usize),
    /// The implicit task of a member of a region.
    Member(RegionKey, usize),
    Task(TaskKey),
}

/// What has to be known of the subject.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Aspect {
    /// That the thread is there.
    Existence,
    /// That, and its kernel thread id.
    Native,
    /// What it is and which region it is in.
    Itself,
    /// That, and the region around it.
    Around,
    /// What it is, and the task it executes.
    Task,
    /// That, and what it waits for.
    State,
    /// What has generated the task.
    Generating,
}

/// Looks at single things in one stop before the whole process is looked at, for debuggers that tell of stops: one that asks about the
/// thread that has hit a breakpoint goes on, and one that asks for more will ask for much.
const SINGLE_LOOKS: u32 = 8;

/// An address space and what was last read of it.
pub(crate) struct Space {
    pub(crate) target: Debugged<Asked>,
    pub(crate) runtimes: Vec<Box<dyn Runtime>>,
    seen: Seen,
    /// What the debugger says of the stop in which `seen` was made.
    stop: Option<u64>,
    /// How many looks at single things were made in that stop.
    single_looks: u32,
    /// The stacks of that stop, once they were asked for.
    stacks: Option<Report>,
    /// Where things of each runtime were, by the look before.
    hints: HashMap<RuntimeKey, Hints>,
    /// An error is what a look at the whole process would give, too.
    certain: Cell<bool>,
    cache: Cache,
    /// All there is to tell of the moment of `seen`, once it was asked for.
    inspection: Option<Inspection>,
    /// Where it can be stopped, and who is there.
    pub(crate) stops: AtStops,
    /// The control variables of the process, of the last look at all of it: not for their values.
    settings: Vec<Setting>,
    /// Those of tasks of which a value was known then.
    known: Vec<Icv>,
}

/// What is known of this moment.
enum Seen {
    Nothing,
    /// Of one runtime, what a question needs.
    Excerpt(RuntimeKey, Box<Excerpt>),
    /// Of all: what was read, and what all evidence asked for so far makes of it.
    Whole {
        raw: Vec<RawSnapshot>,
        snapshots: Vec<RuntimeSnapshot>,
    },
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
    /// [`Rc::INCOMPATIBLE`] if there is no runtime in it that this library knows: the debugger is told why. [`Rc::CALLBACK_ERROR`] if the debugger does
    /// not answer.
    pub(crate) fn open(table: Callbacks, context: *mut AddressSpaceContext) -> Result<Space, Rc> {
        let asked = Asked::new(table, context);
        let sizes = asked.sizes()?;
        let options = OpenOptions::default();
        let refuse = |why: String| {
            say(&table, &why);
            Rc::INCOMPATIBLE
        };
        let target = Debugged::open(asked, sizes.pointer, &ompd_runtime::family::well_known(), &options)
            .map_err(|why| refuse(refusal::unopened(&why)))?;
        let runtimes = discover(&target, &[]);
        if runtimes.is_empty() {
            return Err(refuse(refusal::without_runtime(&target)));
        }
        let stop = target.debugger().stop();
        let mut space = Space {
            target,
            runtimes,
            seen: Seen::Nothing,
            stop,
            single_looks: 0,
            stacks: None,
            hints: HashMap::new(),
            certain: Cell::new(false),
            cache: Cache::default(),
            inspection: None,
            stops: AtStops::default(),
            settings: Vec::new(),
            known: Vec::new(),
        };
        // It shows whether layouts fit, and where things are.
        space.read();
        Ok(space)
    }

    /// Answers a question: by a look at what it is about, and where that does not give an answer, by one at the whole process.
    ///
    /// # Errors
    /// As `answer` returns it for the whole process.
    pub(crate) fn ask<T>(
        &mut self,
        subject: Subject,
        aspect: Aspect,
        answer: impl Fn(&Space) -> Result<T, Rc>,
    ) -> Result<T, Rc> {
        if !self.is_up_to_date() {
            self.seen = Seen::Nothing;
            self.single_looks += 1;
            if let Some((runtime, excerpt)) = self.excerpt(subject, aspect) {
                self.hints.entry(runtime).or_default().learn(&excerpt);
                self.seen = Seen::Excerpt(runtime, Box::new(excerpt));
                self.certain.set(false);
                let found = answer(self);
                if found.is_ok() || self.certain.get() {
                    return found;
                }
            }
            self.look_at_all();
        }
        answer(self)
    }

    /// Makes sure that what is known is of now, and of the whole process.
    pub(crate) fn look(&mut self) {
        if !self.is_up_to_date() {
            self.look_at_all();
        }
    }

    /// True if the debugger says that nothing has happened since the last look at the whole process. What was read before the process has
    /// run is forgotten.
    fn is_up_to_date(&mut self) -> bool {
        let stop = self.target.debugger().stop();
        let same = stop.is_some() && stop == self.stop;
        if !same {
            self.single_looks = 0;
            self.target.forget();
        }
        self.stop = stop;
        same && matches!(self.seen, Seen::Whole { .. })
    }

    fn look_at_all(&mut self) {
        if self.target.look() {
            self.target.debugger().forget_symbols();
            self.runtimes = discover(&self.target, &[]);
        }
        self.read();
    }

    pub(crate) fn read(&mut self) {
        self.stacks = None;
        self.inspection = None;
        let raw: Vec<_> = self.runtimes.iter().map(|runtime| runtime.snapshot(&self.target)).collect();
        let natives = self.target.natives();
        self.hints = raw.iter().map(|looked| (looked.instance.base, Hints::of(looked, natives))).collect();
        self.settings = raw.first().map(|snapshot| snapshot.settings.clone()).unwrap_or_default();
        let threads = || raw.iter().flat_map(|snapshot| &snapshot.threads);
        let is_known = |icv: &Icv| threads().any(|thread| thread.icvs.get(*icv).value().is_some());
        self.known = of_tasks().map(|(_, entry)| entry.icv).filter(is_known).collect();
        let raw = self.find_stops(raw);
        let snapshots = raw.iter().cloned().map(RuntimeSnapshot::from).collect();
        self.seen = Seen::Whole { raw, snapshots };
    }

    /// Everything there is to tell of this moment. What is known of the process has to be of now.
    pub(crate) fn inspection(&mut self) -> &Inspection {
        let made = self.inspection.take().unwrap_or_else(|| self.inspect());
        self.inspection.insert(made)
    }

    fn inspect(&mut self) -> Inspection {
        let threads: Vec<i32> = self.target.natives().iter().map(|native| native.lwp).collect();
        for lwp in threads {
            self.target.ask_registers(lwp);
        }
        let wanted = Wanted { ignore: &[], locals: false, verdicts: true, samples: 1, interval: Duration::ZERO };
        inspect_held(&self.target, &self.runtimes, wanted, &self.cache)
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

    /// What a look at the subject alone tells. Where the debugger tells of stops, only the first few are made in each; and where it
    /// has registers, none for what these tell more of.
    fn excerpt(&self, subject: Subject, aspect: Aspect) -> Option<(RuntimeKey, Excerpt)> {
        if self.stop.is_some() && self.single_looks > SINGLE_LOOKS || self.stops.matter() {
            return None;
        }
        if aspect == Aspect::State && self.target.debugger().offers_registers() {
            return None;
        }
        let base = match (subject, &self.runtimes[..]) {
            // A thread may be in several.
            (Subject::Native(_), [runtime]) => runtime.info().base,
            (Subject::Native(_), _) => return None,
            (Subject::Thread(key), _) => key.runtime,
            (Subject::Region(key) | Subject::Seat(key, _) | Subject::Member(key, _), _) => key.runtime(),
            (Subject::Task(key), _) => key.runtime,
        };
        let runtime = self.runtimes.iter().find(|runtime| runtime.info().base == base)?;
        let hints = self.hints.get(&base)?;
        let (thread, team, task) = match subject {
            Subject::Native(native) => (hints.of_native(native)?, None, None),
            Subject::Thread(key)
            | Subject::Region(RegionKey::Outermost(key))
            | Subject::Seat(RegionKey::Outermost(key), _) => (key.descriptor, None, None),
            Subject::Seat(RegionKey::Team { descriptor, .. }, number) if hints.has_no_lists() => {
                (hints.member(descriptor, number)?, Some(descriptor), None)
            }
            Subject::Seat(RegionKey::Team { descriptor, .. }, _)
            | Subject::Region(RegionKey::Team { descriptor, .. }) => {
                (hints.member(descriptor, 0)?, Some(descriptor), None)
            }
            Subject::Member(RegionKey::Team { descriptor, .. }, number) => {
                (hints.member(descriptor, number)?, Some(descriptor), None)
            }
            Subject::Member(RegionKey::Outermost(_), _) => return None,
            Subject::Task(key) => (hints.holder(key.descriptor)?, None, Some(key.descriptor)),
        };
        // A module that has come may be another runtime, in which the thread is as well.
        if matches!(subject, Subject::Native(_)) && !self.target.has_no_new_modules() {
            return None;
        }
        let alive = |known: Known| {
            let native = self.target.natives().iter().find(|native| native.lwp == known.lwp);
            native.is_some_and(|native| self.target.is_alive(*native))
        };
        // Another thread may have the descriptor by now.
        let of_thread = match subject {
            Subject::Thread(key)
            | Subject::Region(RegionKey::Outermost(key))
            | Subject::Seat(RegionKey::Outermost(key), _) => hints.is_not_another(key).then_some(true)?,
            Subject::Native(_) => true,
            // Where the runtime lists members, the one looked at leads to the list.
            Subject::Seat(..) => hints.has_no_lists(),
            Subject::Region(_) | Subject::Member(..) | Subject::Task(_) => false,
        };
        let focus = Focus {
            threads: hints.with_primaries(thread)?,
            lwp: of_thread,
            team: !matches!(aspect, Aspect::Existence | Aspect::Native),
            tasks: match (aspect, task) {
                (Aspect::Generating, Some(task)) => Tasks::Beyond(task),
                (_, Some(task)) => Tasks::UpTo(task),
                (Aspect::Task, None) => team.map_or(Tasks::Current, Tasks::ImplicitIn),
                (Aspect::State, None) => Tasks::Current,
                _ => Tasks::None,
            },
            enclosing: aspect == Aspect::Around || team.is_some_and(|team| hints.innermost(thread) != Some(team)),
            wait: aspect == Aspect::State,
            alive: &alive,
        };
        Some((base, runtime.excerpt(&self.target, &focus)?))
    }

    /// A control variable of the process as a whole.
    pub(crate) fn setting(&mut self, name: &str) -> Result<Setting, Rc> {
        if !self.is_up_to_date() {
            self.seen = Seen::Nothing;
            if let ([runtime], None) = (&self.runtimes[..], self.stop)
                && let Some(setting) = runtime.setting(&self.target, name)
            {
                return Ok(setting);
            }
            self.look_at_all();
        }
        self.main()?.settings.iter().find(|setting| setting.name == name).cloned().ok_or(Rc::UNAVAILABLE)
    }

    /// Which control variables of the process could be read, by a look some time ago.
    pub(crate) fn first_settings(&self) -> &[Setting] {
        &self.settings
    }

    /// Whether one of tasks could be, then.
    pub(crate) fn knows(&self, icv: Icv) -> bool {
        self.known.contains(&icv)
    }

    /// An error that a look at the whole process would give as well.
    pub(crate) fn certain<T>(&self, rc: Rc) -> Result<T, Rc> {
        self.certain.set(true);
        Err(rc)
    }

    pub(crate) fn target(&self) -> &Debugged<Asked> {
        &self.target
    }

    /// The runtime that questions about the whole process are about: that with the most threads in teams, and of several such
    /// the first. Of the whole process, which has to be known.
    pub(crate) fn main(&self) -> Result<&RuntimeSnapshot, Rc> {
        let Seen::Whole { snapshots, .. } = &self.seen else { return Err(Rc::ERROR) };
        let busy = |s: &RuntimeSnapshot| s.threads.iter().filter(|t| t.team.flat().is_some()).count();
        let most = snapshots.iter().map(busy).max().unwrap_or(0);
        snapshots.iter().find(|s| busy(s) == most).ok_or(Rc::UNAVAILABLE)
    }

    /// What runtime that is.
    pub(crate) fn main_info(&mut self) -> Result<&InstanceInfo, Rc> {
        if self.runtimes.len() > 1 {
            self.look();
            return self.main().map(|main| &main.instance);
        }
        self.runtimes.first().map(|runtime| runtime.info()).ok_or(Rc::UNAVAILABLE)
    }

    /// Which OpenMP a runtime says it implements.
    pub(crate) fn openmp_version(&self, runtime: RuntimeKey) -> Result<Fact<u32>, Rc> {
        let found = self.runtimes.iter().find(|of| of.info().base == runtime).ok_or(Rc::STALE_HANDLE)?;
        Ok(found.openmp_version(&self.target))
    }

    /// True if a runtime implements OMPT.
    pub(crate) fn has_tools(&self, runtime: RuntimeKey) -> Result<bool, Rc> {
        let found = self.runtimes.iter().find(|of| of.info().base == runtime).ok_or(Rc::STALE_HANDLE)?;
        Ok(found.has_tools())
    }

    fn looked(&self, runtime: RuntimeKey) -> Result<Looked<'_>, Rc> {
        match &self.seen {
            Seen::Nothing => Err(Rc::ERROR),
            Seen::Excerpt(of, _) if *of != runtime => Err(Rc::STALE_HANDLE),
            Seen::Excerpt(_, excerpt) => Ok(Looked {
                runtime,
                threads: std::slice::from_ref(&excerpt.thread),
                teams: &excerpt.teams,
                tasks: &excerpt.tasks,
                members: Members::Listed(&excerpt.members),
            }),
            Seen::Whole { snapshots, .. } => {
                let found = snapshots.iter().find(|s| s.instance.base == runtime).ok_or(Rc::STALE_HANDLE)?;
                Ok(Looked {
                    runtime,
                    threads: &found.threads,
                    teams: &found.teams,
                    tasks: &found.tasks,
                    members: Members::Of(found),
                })
            }
        }
    }

    /// What the thread with this kernel thread id is to a runtime. In more than one, it is that in which it has a team, and of
    /// several such the innermost, which keeps its thread longest, is not known: then the first counts.
    pub(crate) fn thread_of(&self, native: NativeThread) -> Option<ThreadKey> {
        let known = |runtime: &dyn Runtime| {
            let runtime = runtime.info().base;
            let thread = self.looked(runtime).ok()?.thread_by_lwp(native.lwp)?;
            let key = ThreadKey { runtime, descriptor: thread.descriptor, lwp: thread.lwp };
            Some((key, thread.team.flat().is_some()))
        };
        let all: Vec<(ThreadKey, bool)> = self.runtimes.iter().filter_map(|runtime| known(&**runtime)).collect();
        all.iter().find(|(_, in_team)| *in_team).or(all.first()).map(|(key, _)| *key)
    }

    pub(crate) fn thread(&self, key: ThreadKey) -> Result<(Looked<'_>, &Thread), Rc> {
        let looked = self.looked(key.runtime)?;
        let thread = looked.threads.iter().find(|t| t.descriptor == key.descriptor).ok_or(Rc::STALE_HANDLE)?;
        match (key.lwp, thread.lwp) {
            (Some(then), Some(now)) if then != now => Err(Rc::STALE_HANDLE),
            _ => Ok((looked, thread)),
        }
    }

    /// The thread that has this descriptor now.
    fn key_of(&self, runtime: RuntimeKey, descriptor: Addr) -> Result<ThreadKey, Rc> {
        let looked = self.looked(runtime)?;
        let lwp = match looked.threads.iter().find(|t| t.descriptor == descriptor).map(|thread| thread.lwp) {
            Some(Some(lwp)) => Some(lwp),
            found => match &self.seen {
                Seen::Whole { .. } => found.ok_or(Rc::UNAVAILABLE)?,
                // The runtime tells of it without its having been looked at.
                _ => {
                    let known =
                        self.hints.get(&runtime).and_then(|hints| hints.known(descriptor)).ok_or(Rc::UNAVAILABLE)?;
                    let native = NativeThread { lwp: known.lwp, pthread: known.pthread };
                    Some(self.target.is_alive(native).then_some(known.lwp).ok_or(Rc::UNAVAILABLE)?)
                }
            },
        };
        Ok(ThreadKey { runtime, descriptor, lwp })
    }

    /// A team; [`Rc::UNAVAILABLE`] for a region outside of all teams.
    pub(crate) fn team(&self, key: RegionKey) -> Result<(Looked<'_>, TeamId, &Team), Rc> {
        let RegionKey::Team { runtime, descriptor, level, size } = key else { return self.certain(Rc::UNAVAILABLE) };
        let looked = self.looked(runtime)?;
        let same_size = |now: Option<u32>| size.zip(now).is_none_or(|(then, now)| then == now);
        let same = |team: &Team| {
            team.descriptor == descriptor && team.level.get() == Some(level) && same_size(team.size.get())
        };
        let id = looked.teams.iter().position(same).ok_or(Rc::STALE_HANDLE)?;
        Ok((looked, TeamId(id), &looked.teams[id]))
    }

    pub(crate) fn task(&self, key: TaskKey) -> Result<(Looked<'_>, &Task), Rc> {
        let looked = self.looked(key.runtime)?;
        let task = looked.tasks.iter().find(|t| t.descriptor == key.descriptor).ok_or(Rc::STALE_HANDLE)?;
        Ok((looked, task))
    }

    /// The innermost region a thread is in.
    pub(crate) fn current_region(&self, key: ThreadKey) -> Result<RegionKey, Rc> {
        let (looked, thread) = self.thread(key)?;
        if let Some(at_stop) = self.region_at_stop(key) {
            return looked.region(at_stop?);
        }
        match (&thread.team, thread.role.get()) {
            (Fact::Known { value: Some(id), .. }, _) => looked.region(*id),
            // An idle worker is in no region at all.
            (Fact::Known { value: None, .. }, Some(Role::Initial)) => Ok(RegionKey::Outermost(key)),
            (Fact::Known { value: None, .. }, Some(_)) => self.certain(Rc::UNAVAILABLE),
            _ => Err(Rc::UNAVAILABLE),
        }
    }

    /// The region around another.
    pub(crate) fn enclosing(&self, key: RegionKey) -> Result<RegionKey, Rc> {
        let (looked, own, team) = self.team(key)?;
        match &team.parent {
            Fact::Known { value: Some(id), .. } => looked.region(*id),
            Fact::Known { value: None, .. } => {
                let descriptor = looked.member(own, 0).ok_or(Rc::UNAVAILABLE)?;
                Ok(RegionKey::Outermost(self.key_of(key.runtime(), descriptor)?))
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
            return self.certain(Rc::BAD_INPUT);
        }
        match key {
            RegionKey::Outermost(thread) => Ok(thread),
            RegionKey::Team { runtime, .. } => {
                let (looked, id, _) = self.team(key)?;
                let descriptor = looked.member(id, number).ok_or(Rc::UNAVAILABLE)?;
                self.key_of(runtime, descriptor)
            }
        }
    }

    /// The implicit task of the member of a region with this number.
    pub(crate) fn implicit_task(&self, key: RegionKey, number: usize) -> Result<TaskKey, Rc> {
        if number as u64 >= self.size(key)?.into() {
            return self.certain(Rc::BAD_INPUT);
        }
        let runtime = key.runtime();
        let found = match key {
            RegionKey::Outermost(thread) => self.initial_task(thread)?,
            RegionKey::Team { .. } => {
                let (looked, id, _) = self.team(key)?;
                let is = |task: &&Task| {
                    task.kind.get() == Some(TaskKind::Implicit)
                        && task.team.flat() == Some(id)
                        && task.member.is_some_and(|member| member as usize == number)
                };
                looked.tasks.iter().find(is).map(|task| task.descriptor)
            }
        };
        Ok(TaskKey { runtime, descriptor: found.ok_or(Rc::UNAVAILABLE)? })
    }

    /// The task an initial thread executes outside of all teams: the one at the end of what generated its current one.
    fn initial_task(&self, key: ThreadKey) -> Result<Option<Addr>, Rc> {
        let (looked, thread) = self.thread(key)?;
        let mut at = thread.task.get();
        for _ in 0..=looked.tasks.len() {
            let Some(task) = at.and_then(|id| looked.task(id)) else { return Ok(None) };
            if task.kind.get() == Some(TaskKind::Initial) {
                return Ok(Some(task.descriptor));
            }
            at = task.generating.flat();
        }
        Ok(None)
    }

    /// The task that generated another.
    pub(crate) fn generating(&self, key: TaskKey) -> Result<TaskKey, Rc> {
        let (looked, task) = self.task(key)?;
        match &task.generating {
            Fact::Known { value: Some(id), .. } => {
                let descriptor = looked.task(*id).ok_or(Rc::UNAVAILABLE)?.descriptor;
                Ok(TaskKey { runtime: key.runtime, descriptor })
            }
            Fact::Known { value: None, .. } => self.certain(Rc::UNAVAILABLE),
            Fact::Unknown { .. } => Err(Rc::UNAVAILABLE),
        }
    }

    /// The region a task belongs to.
    pub(crate) fn region_of(&self, key: TaskKey) -> Result<RegionKey, Rc> {
        let (looked, task) = self.task(key)?;
        match &task.team {
            Fact::Known { value: Some(id), .. } => looked.region(*id),
            Fact::Known { value: None, .. } => {
                let of = |thread: &&Thread| {
                    let key = ThreadKey { runtime: key.runtime, descriptor: thread.descriptor, lwp: thread.lwp };
                    self.initial_task(key).is_ok_and(|initial| initial == Some(task.descriptor))
                };
                // Workers' tasks lead to the initial task as well; the thread whose it is has the number 0 all the way.
                let initial = |thread: &&Thread| thread.role.get() == Some(Role::Initial);
                let thread = looked.threads.iter().filter(initial).find(of).ok_or(Rc::UNAVAILABLE)?;
                Ok(RegionKey::Outermost(self.key_of(key.runtime, thread.descriptor)?))
            }
            Fact::Unknown { .. } => Err(Rc::UNAVAILABLE),
        }
    }

    /// The thread that executes a task now.
    pub(crate) fn executing(&self, key: TaskKey) -> Result<&Thread, Rc> {
        let (looked, task) = self.task(key)?;
        looked.executing(task).ok_or(Rc::UNAVAILABLE)
    }

    /// The control variables of a task that no thread executes, as far as they are the task's own.
    pub(crate) fn icvs_of(&self, key: TaskKey) -> Result<Icvs, Rc> {
        let descriptor = self.task(key)?.1.descriptor;
        let runtime = self.runtimes.iter().find(|of| of.info().base == key.runtime).ok_or(Rc::STALE_HANDLE)?;
        // Without a descriptor the runtime keeps none for it.
        if descriptor.is_null() { Err(Rc::UNAVAILABLE) } else { Ok(runtime.icvs_of_task(&self.target, descriptor)) }
    }

    /// The control variables of the task that a thread executes, with the items of lists for regions further in.
    pub(crate) fn lists_of_thread(&self, key: RuntimeKey, thread: &Thread) -> Result<Icvs, Rc> {
        let level = thread.icvs.count(&LEVELS).and_then(|level| u32::try_from(level).ok());
        let team = match (&thread.team, level) {
            (Fact::Known { value: Some(id), .. }, _) => self.looked(key)?.team(*id).map(|team| Some(team.descriptor)),
            (Fact::Known { value: None, .. }, _) => Some(None),
            (Fact::Unknown { .. }, _) => None,
        };
        self.with_lists(key, team.zip(level), &thread.icvs)
    }

    /// The same of a task that no thread executes, and of which these are its own.
    pub(crate) fn lists_of_task(&self, key: TaskKey, icvs: &Icvs) -> Result<Icvs, Rc> {
        let place = match self.region_of(key) {
            Ok(RegionKey::Team { descriptor, level, .. }) => Some((Some(descriptor), level)),
            Ok(RegionKey::Outermost(_)) => Some((None, 0)),
            Err(_) => None,
        };
        self.with_lists(key.runtime, place, icvs)
    }

    fn with_lists(&self, key: RuntimeKey, place: Option<(Option<Addr>, u32)>, icvs: &Icvs) -> Result<Icvs, Rc> {
        let runtime = self.runtimes.iter().find(|of| of.info().base == key).ok_or(Rc::STALE_HANDLE)?;
        let deeper = match (place, &self.seen) {
            (Some((team, level)), _) => runtime.deeper_items(&self.target, team, level),
            // A look at the whole process may tell.
            (None, Seen::Excerpt(..)) => return Err(Rc::UNAVAILABLE),
            (None, _) => DeeperItems::unknown("the level of nesting is not known"),
        };
        Ok(Icvs { deeper, ..icvs.clone() })
    }

    /// What is not known of the control variables of a thread whose task was read is known nowhere.
    pub(crate) fn final_of<T>(&self, thread: &Thread, rc: Rc) -> Result<T, Rc> {
        if thread.task.get().is_some() { self.certain(rc) } else { Err(rc) }
    }

    /// Adds to what is known what only stacks tell: functions of regions and tasks, and of some waits what they are for. Nothing is
    /// added unless there are registers.
    pub(crate) fn enrich(&mut self) {
        let known = |target: &Debugged<Asked>| target.threads().iter().any(|t| t.registers.is_ok());
        if self.stacks.is_none() && known(&self.target) {
            let Seen::Whole { raw, snapshots } = &mut self.seen else { return };
            let stacks = Stacks::capture(&self.target);
            let report = Report::of(&self.target, &self.runtimes, raw, &stacks, &self.cache);
            let evidence =
                Evidence { stacks: &report.evidence, companion: None, outside: &HashSet::new(), names: None };
            *snapshots = merge(raw.clone(), &evidence);
            self.stacks = Some(report);
        }
    }

    /// The thread on whose stack a task is, as far as that can be told: the one that executes it, or what was generated in it.
    fn lwp_of(&self, key: TaskKey) -> Option<i32> {
        let (looked, task) = self.task(key).ok()?;
        let member =
            || looked.team(task.team.flat()?)?.members.get(usize::try_from(task.member?).ok()?).copied().flatten();
        let primary = || {
            let RegionKey::Outermost(thread) = self.region_of(key).ok()? else { return None };
            self.thread(thread).ok()?.1.lwp
        };
        task.thread.or(task.stack).or_else(member).or_else(primary)
    }

    /// The frames of a task that the runtime has noted for an OMPT tool. Runtimes that were built without frame pointers note
    /// whatever was in the register: what is no address is not believed.
    pub(crate) fn noted_frames(&self, key: TaskKey) -> Option<OmptFrames> {
        let noted = self.task(key).ok()?.1.ompt_frames.get()?;
        let mut word = [0; 8];
        let mut is_place =
            |of: OmptFrame| of.address.0.is_multiple_of(8) && self.target.read(of.address, &mut word).is_ok();
        let both = [noted.exit, noted.enter];
        (both.iter().any(Option::is_some) && both.into_iter().flatten().all(&mut is_place)).then_some(noted)
    }

    /// The frames of a task, where the debugger offers registers.
    pub(crate) fn frames(&mut self, key: TaskKey) -> Result<TaskFrames, Rc> {
        self.look();
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
        let Seen::Whole { snapshots, .. } = &self.seen else { return Err(Rc::ERROR) };
        let runtime = snapshots.iter().position(|s| s.instance.base == key.runtime).ok_or(Rc::STALE_HANDLE)?;
        let task = snapshots[runtime].tasks.iter().position(|t| t.descriptor == key.descriptor);
        let task = TaskId(task.ok_or(Rc::STALE_HANDLE)?);
        let model = snapshots[runtime].task(task).ok_or(Rc::STALE_HANDLE)?;
        report.task_frames(runtime, task, model).ok_or(Rc::UNAVAILABLE)
    }
}
