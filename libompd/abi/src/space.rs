//! One address space of a debugger: a process or a core file, with the OpenMP runtimes in it.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;

use ompd_inspection::{Inspection, Wanted, inspect_held, is_in_program, is_outside};
use ompd_process::{Addr, Debugged, Debugger, NativeThread, OpenOptions, Target, TargetExt};
use ompd_runtime::companion::AtStopPoint;
use ompd_runtime::evidence::Evidence;
use ompd_runtime::excerpt::{Excerpt, Known};
use ompd_runtime::icvs::of_tasks;
use ompd_runtime::merge::merge;
use ompd_runtime::model::{
    Fact, Icv, IcvValue, Icvs, InstanceInfo, RawSnapshot, RuntimeSnapshot, Setting, TaskId, TaskKind,
};
use ompd_runtime::stops::StopEvent;
use ompd_runtime::{LayoutsFrom, Runtime, discover};
use ompd_stack::{Cache, LogicalStack, Report, Stacks, TaskFrames};

use crate::answer::{Answer, NoAnswer};
use crate::answers::{Answers, Seen};
use crate::at_stops::AtStops;
use crate::callbacks::{Asked, say};
use crate::keys::{RuntimeKey, TaskKey, ThreadKey};
use crate::question::{Aspect, Subject};
use crate::reading::Hints;
use crate::refusal;
use crate::types::{AddressSpaceContext, Callbacks, Rc};

/// The most looks at single things in one stop, for debuggers that report stops; after them the whole process is read. A debugger
/// that asks only about the thread at a breakpoint continues soon; one that asks for more will ask for much.
const SINGLE_LOOKS: u32 = 8;

/// An address space: where to read, and what was read.
pub(crate) struct Space {
    pub(crate) target: Debugged<Asked>,
    pub(crate) runtimes: Vec<Box<dyn Runtime>>,
    now: Now,
    moment: Moment,
    earlier: Earlier,
    /// Threads have been looked for.
    begun: bool,
    cache: Cache,
    /// Where it can be stopped, and who is there.
    pub(crate) stops: AtStops,
}

/// What was read of this moment.
struct Now {
    seen: Seen,
    /// The stacks, once they were asked for.
    stacks: Option<Report>,
    /// All there is to tell, once it was asked for.
    inspection: Option<Inspection>,
}

/// What the debugger says of the moment.
struct Moment {
    /// Number of the stop; `None` for a debugger that reports none.
    stop: Option<u64>,
    /// How many looks at single things were made in this stop.
    single_looks: u32,
}

impl Moment {
    /// True if the debugger says that the process was stopped all the time since the last call.
    fn continues(&mut self, stop: Option<u64>) -> bool {
        let same = stop.is_some() && stop == self.stop;
        if !same {
            self.single_looks = 0;
        }
        self.stop = stop;
        same
    }

    /// True if a look at a single thing is worth it: where the debugger reports stops, only the first few are.
    fn allows_single_look(&self) -> bool {
        self.stop.is_none() || self.single_looks <= SINGLE_LOOKS
    }
}

/// What remains of the last look at the whole process. It helps to find things again, and is not shown.
#[derive(Default)]
struct Earlier {
    /// Where things of each runtime were.
    hints: HashMap<RuntimeKey, Hints>,
    /// The control variables of the process: not for their values; and those of tasks of which a value was known then. Nothing if
    /// nobody has asked.
    icvs: Option<(Vec<Setting>, Vec<Icv>)>,
}

/// Control variables of tasks of which some thread has a value.
fn known_icvs<'a>(threads: impl Iterator<Item = &'a Icvs> + Clone) -> Vec<Icv> {
    let is_known = |icv: &Icv| threads.clone().any(|icvs| icvs.get(*icv).value().is_some());
    of_tasks().map(|(_, entry)| entry.icv).filter(is_known).collect()
}

impl Earlier {
    fn of(raw: &[RawSnapshot], natives: &[NativeThread]) -> Earlier {
        let threads = || raw.iter().flat_map(|snapshot| &snapshot.threads);
        let settings = of_most(raw, |s| s.threads.len()).map(|snapshot| snapshot.settings.clone()).unwrap_or_default();
        Earlier {
            hints: raw.iter().map(|read| (read.instance.base, Hints::of(read, natives))).collect(),
            icvs: Some((settings, known_icvs(threads().map(|thread| &thread.icvs)))),
        }
    }
}

/// The first of those with the most of something.
fn of_most<T, K: Ord>(all: &[T], key: impl Fn(&T) -> K) -> Option<&T> {
    all.iter().rev().max_by_key(|one| key(one))
}

impl std::fmt::Debug for Space {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Space")
            .field("runtimes", &self.runtimes.len())
            .field("stop", &self.moment.stop)
            .finish_non_exhaustive()
    }
}

impl Space {
    /// Opens an address space of the debugger.
    ///
    /// # Errors
    /// [`Rc::INCOMPATIBLE`] if there is no runtime in it that this library knows: the debugger is told why. [`Rc::CALLBACK_ERROR`] if the debugger does
    /// not answer.
    pub(crate) fn open(
        table: Callbacks,
        context: *mut AddressSpaceContext,
        lib_root: Option<PathBuf>,
    ) -> Result<Space, Rc> {
        let asked = Asked::new(table, context);
        let sizes = asked.sizes()?;
        let options = OpenOptions { lib_root, ..OpenOptions::default() };
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
            now: Now { seen: Seen::Nothing, stacks: None, inspection: None },
            moment: Moment { stop, single_looks: 0 },
            earlier: Earlier::default(),
            cache: Cache::default(),
            stops: AtStops::default(),
            begun: false,
        };
        space.know_companion();
        Ok(space)
    }

    /// Finds the threads, before the first question: that shows as well whether layouts fit. True if the whole process was read.
    fn begin(&mut self) -> bool {
        if std::mem::replace(&mut self.begun, true) {
            return false;
        }
        self.target.forget();
        self.target.look_threads();
        let natives = self.target.natives();
        // Who tells of stops will ask for the rest.
        let wanted = self.moment.stop.is_none() && !self.target.debugger().offers_registers();
        let index = |runtime: &dyn Runtime| {
            let found = wanted.then(|| runtime.index(&self.target, natives))??;
            Some((runtime.info().base, Hints::of_threads(&found)))
        };
        match self.runtimes.iter().map(|runtime| index(&**runtime)).collect::<Option<_>>() {
            Some(hints) => self.earlier.hints = hints,
            None => self.read(),
        }
        matches!(self.now.seen, Seen::Whole(_))
    }

    /// The native thread with an id.
    pub(crate) fn native(&mut self, is: impl Fn(&NativeThread) -> bool) -> Option<NativeThread> {
        self.begin();
        self.target.natives().iter().copied().find(is)
    }

    /// Answers a question by a look at what it is about. Where that look [needs more](NoAnswer::NeedsMore), by one at the whole
    /// process.
    ///
    /// # Errors
    /// What `answer` returns for the whole process.
    pub(crate) fn ask<T>(
        &mut self,
        subject: Subject,
        aspect: Aspect,
        answer: impl Fn(Answers<'_>) -> Answer<T>,
    ) -> Result<T, Rc> {
        let up_to_date = self.is_up_to_date();
        if !up_to_date {
            self.now.seen = Seen::Nothing;
        }
        if let Subject::Thread(thread) = subject
            && !matches!(aspect, Aspect::Existence | Aspect::Native | Aspect::State)
            && !self.stops.has(thread)
            && self.may_be_at_own(thread, up_to_date)
        {
            if up_to_date {
                self.ask_at_own();
                self.read();
            } else {
                self.look_at_all();
            }
        } else if !up_to_date {
            self.moment.single_looks += 1;
            if let Some((runtime, excerpt)) = self.excerpt(subject, aspect) {
                self.earlier.hints.entry(runtime).or_default().learn(&excerpt);
                self.now.seen = Seen::Excerpt(runtime, Box::new(excerpt));
                match answer(self.answers()) {
                    Err(NoAnswer::NeedsMore(_)) => {}
                    found => return Ok(found?),
                }
            }
            self.look_at_all();
        }
        Ok(answer(self.answers())?)
    }

    /// Answers from what was read last.
    pub(crate) fn answers(&self) -> Answers<'_> {
        Answers {
            target: &self.target,
            runtimes: &self.runtimes,
            seen: &self.now.seen,
            hints: &self.earlier.hints,
            stops: &self.stops,
        }
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
        let same = self.moment.continues(self.target.debugger().stop());
        if !same {
            self.target.forget();
            self.stops.forget_moment();
        }
        self.begin() || same && matches!(self.now.seen, Seen::Whole(_))
    }

    fn look_at_all(&mut self) {
        if self.target.look() {
            self.target.debugger().forget_symbols();
            self.runtimes = discover(&self.target, &[]);
            self.know_companion();
        }
        self.ask_at_own();
        self.read();
    }

    /// Asks for the registers of threads that were at OMPD's own symbols, where they are not offered.
    fn ask_at_own(&mut self) {
        for lwp in std::mem::take(&mut self.stops.asked) {
            self.target.ask_registers(lwp);
            let here = self.target.threads().iter().find(|thread| thread.lwp == lwp);
            let pc = here.and_then(|thread| thread.registers.as_ref().ok()).map(|registers| registers.pc);
            if pc.is_some_and(|pc| self.is_at_own(pc)) {
                self.stops.asked.insert(lwp);
            }
        }
    }

    /// A thread that its runtime has made and not filed under its kernel thread id yet, by the number that the thread itself has. What
    /// is known has to be of now.
    pub(crate) fn beginning_thread(&self, native: NativeThread) -> Option<ThreadKey> {
        let Seen::Whole(snapshots) = &self.now.seen else { return None };
        if let Some(thread) = self.begins_at_companions(native, snapshots) {
            return Some(thread);
        }
        self.runtimes.iter().zip(snapshots).find_map(|(runtime, snapshot)| {
            let mut unfiled = snapshot.threads.iter().filter(|thread| thread.lwp.is_none()).peekable();
            // No debugger is asked without need: to look into a thread, LLVM's plugin for gdb selects it.
            unfiled.peek()?;
            let name = runtime.number_variable(&self.target)?;
            let number = self.target.read_u32(self.target.debugger().thread_local(native, name)?).ok()?;
            let thread = unfiled.find(|thread| thread.gtid == Some(number))?;
            Some(ThreadKey { runtime: runtime.info().base, descriptor: thread.descriptor, lwp: Some(native.lwp) })
        })
    }

    /// The same of a thread that the companion has led to the stop point of its begin.
    fn begins_at_companions(&self, native: NativeThread, snapshots: &[RuntimeSnapshot]) -> Option<ThreadKey> {
        let at = self.companions_stops()?.ok()?;
        let snapshot = snapshots.iter().find(|snapshot| Some(snapshot.instance.base) == at.runtime)?;
        let begins = |stop: &&AtStopPoint| stop.event == StopEvent::ThreadBegin && stop.lwp == Some(native.lwp);
        let id = at.threads.iter().find(begins)?.id;
        let thread = snapshot.threads.iter().find(|t| t.lwp.is_none() && t.tool_data.get() == Some(id))?;
        Some(ThreadKey { runtime: at.runtime?, descriptor: thread.descriptor, lwp: Some(native.lwp) })
    }

    /// True for an instruction of OMPD's own symbols, through which a runtime passes.
    fn is_at_own(&self, pc: Addr) -> bool {
        let mut symbols = self.runtimes.iter().filter_map(|runtime| runtime.own_symbols(&self.target));
        symbols.any(|own| own.at(pc).is_some())
    }

    pub(crate) fn read(&mut self) {
        let raw: Vec<_> = self.runtimes.iter().map(|runtime| runtime.snapshot(&self.target)).collect();
        self.earlier = Earlier::of(&raw, self.target.natives());
        let raw = self.find_stops(raw);
        let snapshots = raw.into_iter().map(RuntimeSnapshot::from).collect();
        self.now = Now { seen: Seen::Whole(snapshots), stacks: None, inspection: None };
    }

    /// Everything there is to tell of this moment. What is known of the process has to be of now.
    pub(crate) fn inspection(&mut self) -> &Inspection {
        let made = self.now.inspection.take().unwrap_or_else(|| self.inspect());
        self.now.inspection.insert(made)
    }

    fn inspect(&mut self) -> Inspection {
        self.ask_all_registers();
        inspect_held(&self.target, &self.runtimes, Wanted::of_held(LayoutsFrom::default()), &self.cache)
    }

    /// Asks for the registers of every thread, where the debugger has them.
    fn ask_all_registers(&mut self) {
        let threads: Vec<i32> = self.target.natives().iter().map(|native| native.lwp).collect();
        for lwp in threads {
            self.target.ask_registers(lwp);
        }
    }

    /// Everything is read anew, whatever the debugger says of stops.
    pub(crate) fn drop_cache(&mut self) {
        self.forget_stops();
        self.target.debugger().forget_symbols();
        self.target.refresh();
        self.begun = true;
        self.cache = Cache::default();
        self.runtimes = discover(&self.target, &[]);
        self.read();
    }

    /// What a look at the subject alone shows. Where the debugger reports stops, only the first few such looks are made in each.
    /// Where it offers registers, no such look is made for a state: registers show more of it.
    fn excerpt(&self, subject: Subject, aspect: Aspect) -> Option<(RuntimeKey, Excerpt)> {
        if !self.moment.allows_single_look() || !self.stops.told.is_empty() {
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
            (Subject::Region(key) | Subject::Member(key, _) | Subject::ImplicitTask(key, _), _) => key.runtime(),
            (Subject::Task(key), _) => key.runtime,
        };
        let runtime = self.runtimes.iter().find(|runtime| runtime.info().base == base)?;
        let hints = self.earlier.hints.get(&base)?;
        let start = subject.start(hints)?;
        // A module that has come may be another runtime, in which the thread is as well.
        if matches!(subject, Subject::Native(_)) && !self.target.has_no_new_modules() {
            return None;
        }
        let alive = |known: Known| self.is_alive(known);
        let first = |team: Addr| hints.member(team, 0);
        let focus = start.focus(aspect, hints, &alive, &first)?;
        let offers = self.target.debugger().offers_registers();
        let matter =
            self.stops.matter() || offers && self.runtimes.iter().any(|of| of.own_symbols(&self.target).is_some());
        if matter && !self.is_at_no_stop(focus.threads.first()?.lwp) {
            return None;
        }
        Some((base, runtime.excerpt(&self.target, &focus)?))
    }

    /// A look at a thread and its task, wherever the thread is; `None` where that does not tell, or all is known. What holds at a place
    /// to stop at and is not in memory is not in it.
    pub(crate) fn look_at_thread(&mut self, key: ThreadKey) -> Option<Excerpt> {
        if self.is_up_to_date() || !self.stops.told.is_empty() || !self.target.debugger().offers_registers() {
            return None;
        }
        self.now.seen = Seen::Nothing;
        self.moment.single_looks += 1;
        if !self.moment.allows_single_look() {
            return None;
        }
        let excerpt = self.read_excerpt(key.runtime, Subject::Thread(key), Aspect::Task)?;
        (excerpt.thread.as_ref()?.lwp == key.lwp).then_some(excerpt)
    }

    fn read_excerpt(&self, base: RuntimeKey, subject: Subject, aspect: Aspect) -> Option<Excerpt> {
        let runtime = self.runtimes.iter().find(|runtime| runtime.info().base == base)?;
        let hints = self.earlier.hints.get(&base)?;
        let alive = |known: Known| self.is_alive(known);
        let first = |team: Addr| hints.member(team, 0);
        let focus = subject.start(hints)?.focus(aspect, hints, &alive, &first)?;
        runtime.excerpt(&self.target, &focus)
    }

    fn is_alive(&self, known: Known) -> bool {
        let native = self.target.natives().iter().find(|native| native.lwp == known.lwp);
        native.is_some_and(|native| self.target.is_alive(*native))
    }

    /// True if a thread is known to be at none of the places to stop at: there more holds than memory shows.
    fn is_at_no_stop(&self, lwp: i32) -> bool {
        let debugger = self.target.debugger();
        let native =
            self.target.natives().iter().find(|native| native.lwp == lwp).filter(|_| debugger.offers_registers());
        let registers = native.and_then(|native| debugger.registers(*native, self.target.arch()).ok());
        let pc = registers.map(|registers| registers.pc);
        pc.is_some_and(|pc| self.stops.given.iter().all(|(_, point)| point.addr != pc) && !self.is_at_own(pc))
    }

    /// A control variable of the process as a whole.
    pub(crate) fn setting(&mut self, name: &str) -> Result<Setting, Rc> {
        if !self.is_up_to_date() {
            self.now.seen = Seen::Nothing;
            if let ([runtime], None) = (&self.runtimes[..], self.moment.stop)
                && let Some(setting) = runtime.setting(&self.target, name)
            {
                return Ok(setting);
            }
            self.look_at_all();
        }
        self.main()?.settings.iter().find(|setting| setting.name == name).cloned().ok_or(Rc::UNAVAILABLE)
    }

    /// Which control variables of the process could be read, by a look some time ago; and which of tasks.
    pub(crate) fn first_icvs(&mut self) -> (&[Setting], &[Icv]) {
        if self.earlier.icvs.is_none() && !self.is_up_to_date() {
            self.now.seen = Seen::Nothing;
            self.earlier.icvs = self.icvs_of_one();
            if self.earlier.icvs.is_none() {
                self.look_at_all();
            }
        }
        self.earlier.icvs.as_ref().map_or((&[], &[]), |(settings, known)| (settings, known))
    }

    /// The same by a look at one thread that executes a task.
    fn icvs_of_one(&self) -> Option<(Vec<Setting>, Vec<Icv>)> {
        /// Of so many threads one executes a task, or all are looked at.
        const MOST: usize = 4;
        let [runtime] = &self.runtimes[..] else { return None };
        let base = runtime.info().base;
        let settings = runtime.settings(&self.target)?;
        let threads = self.earlier.hints.get(&base)?.all_threads();
        let mut looks = threads.into_iter().take(MOST).filter_map(|thread| {
            let key = ThreadKey { runtime: base, descriptor: thread.descriptor, lwp: Some(thread.lwp) };
            let excerpt = self.read_excerpt(base, Subject::Thread(key), Aspect::TaskIcvs)?;
            excerpt.thread.filter(|thread| thread.task.get().is_some())
        });
        let thread = looks.next()?;
        Some((settings, known_icvs(std::iter::once(&thread.icvs))))
    }

    /// The state that the runtime itself keeps of a thread, where that is all there is to know.
    pub(crate) fn kept_state(&mut self, key: ThreadKey) -> Option<u32> {
        let debugger = self.target.debugger();
        let one_by_one = self.moment.stop.is_none() && !debugger.offers_registers() && !self.stops.matter();
        if !one_by_one || self.is_up_to_date() {
            return None;
        }
        let runtime = self.runtimes.iter().find(|runtime| runtime.info().base == key.runtime)?;
        let hints = self.earlier.hints.get(&key.runtime)?;
        let thread = hints.known(key.descriptor).filter(|_| hints.is_not_another(key))?;
        runtime.kept_state(&self.target, thread, &|known| self.is_alive(known))
    }

    pub(crate) fn target(&self) -> &Debugged<Asked> {
        &self.target
    }

    /// The runtime that answers questions about the whole process: the one with the most threads in teams. Of several such it is
    /// the one with the most threads, and of those the first. The whole process must have been read.
    pub(crate) fn main(&self) -> Result<&RuntimeSnapshot, Rc> {
        let Seen::Whole(snapshots) = &self.now.seen else { return Err(Rc::ERROR) };
        let busy = |s: &RuntimeSnapshot| s.threads.iter().filter(|t| t.team.flat().is_some()).count();
        of_most(snapshots, |s| (busy(s), s.threads.len())).ok_or(Rc::UNAVAILABLE)
    }

    /// What runtime that is.
    pub(crate) fn main_info(&mut self) -> Result<&InstanceInfo, Rc> {
        if self.runtimes.len() > 1 {
            self.look();
            return self.main().map(|main| &main.instance);
        }
        self.runtimes.first().map(|runtime| runtime.info()).ok_or(Rc::UNAVAILABLE)
    }

    /// Settings that a runtime alone has, by the variables of the environment that set them.
    pub(crate) fn own_settings(&self, runtime: RuntimeKey) -> Vec<(&'static str, IcvValue)> {
        let found = self.runtimes.iter().find(|of| of.info().base == runtime);
        found.map_or_else(Vec::new, |of| of.own_settings(&self.target))
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

    /// Adds to what is known what only stacks tell: functions of regions and tasks, and of some waits what they are for. Nothing is
    /// added unless there are registers.
    pub(crate) fn enrich(&mut self) {
        let known = |target: &Debugged<Asked>| target.threads().iter().any(|t| t.registers.is_ok());
        if self.now.stacks.is_none() && known(&self.target) {
            let Seen::Whole(snapshots) = &mut self.now.seen else { return };
            // Nothing has been merged into them before: only this adds to them.
            let raw: Vec<_> = std::mem::take(snapshots).into_iter().map(RuntimeSnapshot::into_raw).collect();
            let stacks = Stacks::capture(&self.target);
            let report = Report::of(&self.target, &self.runtimes, &raw, &stacks, &self.cache);
            let of = |is: fn(&LogicalStack) -> bool| -> HashSet<i32> {
                report.logical.iter().filter(|stack| is(stack)).map(|stack| stack.lwp).collect()
            };
            let evidence = Evidence {
                stacks: &report.evidence,
                companion: None,
                awaited: &HashMap::new(),
                outside: &of(is_outside),
                in_program: &of(is_in_program),
                names: None,
            };
            *snapshots = merge(raw, &evidence);
            self.now.stacks = Some(report);
        }
    }

    /// Adds it after a look at the whole process, where the debugger offers registers: a look at a single thing reads no stacks.
    pub(crate) fn look_and_enrich(&mut self) {
        if self.target.debugger().offers_registers() {
            self.look();
        }
        self.enrich();
    }

    /// Adds it with the registers of every thread, where the debugger offers them: asked for once at a stop, they are there for all.
    pub(crate) fn enrich_with_registers(&mut self) {
        if self.target.debugger().offers_registers() {
            self.read_again_if_more(Space::ask_all_registers);
        }
        self.enrich();
    }

    /// Asks for registers, and reads anew if there are more than before: they may tell what threads wait for.
    fn read_again_if_more(&mut self, ask: impl FnOnce(&mut Space)) {
        let known = |target: &Debugged<Asked>| target.threads().iter().filter(|t| t.registers.is_ok()).count();
        let before = known(&self.target);
        ask(self);
        if known(&self.target) > before {
            self.read();
        }
    }

    /// The frames of a task, where the debugger offers registers.
    pub(crate) fn frames(&mut self, key: TaskKey) -> Result<TaskFrames, Rc> {
        self.look();
        let lwp = self.answers().lwp_of(key).ok_or(Rc::UNAVAILABLE)?;
        self.read_again_if_more(|space| {
            space.target.ask_registers(lwp);
        });
        self.enrich();
        let report = self.now.stacks.as_ref().ok_or(Rc::UNAVAILABLE)?;
        if self.answers().task(key)?.1.kind.get() == Some(TaskKind::Initial) {
            return report.initial_frames(lwp).ok_or(Rc::UNAVAILABLE);
        }
        let Seen::Whole(snapshots) = &self.now.seen else { return Err(Rc::ERROR) };
        let runtime = snapshots.iter().position(|s| s.instance.base == key.runtime).ok_or(Rc::STALE_HANDLE)?;
        let task = snapshots[runtime].tasks.iter().position(|t| t.descriptor == key.descriptor);
        let task = TaskId(task.ok_or(Rc::STALE_HANDLE)?);
        let model = snapshots[runtime].task(task).ok_or(Rc::STALE_HANDLE)?;
        report.task_frames(runtime, task, model).ok_or(Rc::UNAVAILABLE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_lasts_as_long_as_the_debugger_reports_the_same_stop() {
        let mut moment = Moment { stop: None, single_looks: 0 };
        // One that reports none may have let the process run each time.
        assert!(!moment.continues(None) && !moment.continues(None));
        assert!(!moment.continues(Some(1)) && moment.continues(Some(1)));
        assert!(!moment.continues(Some(2)) && moment.continues(Some(2)));
        assert!(!moment.continues(None) && !moment.continues(Some(2)));
    }

    #[test]
    fn each_stop_allows_some_looks_at_single_things() {
        let mut moment = Moment { stop: None, single_looks: 0 };
        let looks = |moment: &mut Moment| {
            let allowed = (0..100).take_while(|_| {
                let allowed = moment.allows_single_look();
                moment.single_looks += 1;
                allowed
            });
            allowed.count() as u32
        };
        assert_eq!(looks(&mut moment), 100, "without stops there is nothing to count");
        moment.continues(Some(1));
        assert_eq!(looks(&mut moment), SINGLE_LOOKS + 1);
        moment.continues(Some(1));
        assert_eq!(looks(&mut moment), 0);
        moment.continues(Some(2));
        assert_eq!(looks(&mut moment), SINGLE_LOOKS + 1);
    }

    #[test]
    fn the_first_of_those_with_the_most_is_taken() {
        let of = |all: &[(u32, char)]| of_most(all, |(count, _)| *count).map(|(_, name)| *name);
        assert_eq!(of(&[(1, 'a'), (3, 'b'), (3, 'c'), (2, 'd')]), Some('b'));
        assert_eq!((of(&[(0, 'a')]), of(&[])), (Some('a'), None));
    }
}
