//! One look: what is read while the target stands still, and what is made of it afterwards.

use std::cell::OnceCell;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::rc::Rc;
use std::time::{Duration, SystemTime};

use ompd_process::{Addr, Target, TargetKind};
use ompd_runtime::companion::{self, Remembered};
use ompd_runtime::evidence::{Evidence, Names};
use ompd_runtime::merge::merge;
use ompd_runtime::model::{Issue, RawSnapshot, RuntimeSnapshot, SourceLine, Task, TaskState, Trouble};
use ompd_runtime::names::FileNames;
use ompd_runtime::os::Signals;
use ompd_runtime::waits_for::{self, Certainty};
use ompd_runtime::{Runtime, os, outsiders};
use ompd_stack::{Cache, Code, GilHolder, Interpreter, Language, LogicalStack, Report, Stacks, Unwound, Via};

use crate::outside::OutsideWait;
use crate::{Inspection, ProcessThread, Verdicts, Wanted, nameless, outside, rank};

/// What was read in one stop.
#[derive(Clone)]
pub(crate) struct Read {
    snapshots: Vec<RawSnapshot>,
    stacks: Rc<Stacks>,
    os: os::OsState,
    remembered: Rc<Remembered>,
    /// How long a live process was held for it.
    pub(crate) pause: Option<Duration>,
    /// When that began.
    pub(crate) stopped_at: Option<SystemTime>,
    /// Processor time of its threads by then, by LWP.
    pub(crate) cpu: HashMap<i32, Duration>,
}

impl Read {
    /// Whether the stacks of the process are still what was copied of them.
    pub(crate) fn is_in(&self, target: &dyn Target) -> bool {
        self.stacks.are_unchanged(target)
    }
}

/// What is found in the files of a process before it is stopped.
pub(crate) struct Places {
    /// Where companions say where their blocks are.
    companion: Vec<Addr>,
    python: Vec<Interpreter>,
}

impl Places {
    pub(crate) fn of(target: &dyn Target) -> Places {
        Places { companion: companion::words(target), python: Interpreter::all(target) }
    }
}

/// Reads a target that stands still, of which the stacks have been copied.
pub(crate) fn read(target: &dyn Target, runtimes: &[Box<dyn Runtime>], places: &Places, stacks: Stacks) -> Read {
    let stacks = Rc::new(stacks.with_python(target, &places.python));
    let snapshots: Vec<_> = runtimes.iter().map(|runtime| runtime.snapshot(target)).collect();
    let remembered = Rc::new(Remembered::read(target, &places.companion, &snapshots));
    Read { snapshots, stacks, os: os::read(target), remembered, pause: None, stopped_at: None, cpu: HashMap::new() }
}

/// Whether a thread is in no call of a runtime, as its whole stack shows.
pub fn is_outside(stack: &LogicalStack) -> bool {
    stack.in_call.is_none() && !stack.frames.is_empty() && stack.end.is_complete()
}

/// Whether it executes code of the program besides: its innermost frame is the program's, and its own. Of a worker that waits where
/// it began, the first frame is that of another thread, or of a body that is gone.
pub fn is_in_program(stack: &LogicalStack) -> bool {
    is_outside(stack) && stack.frames.first().is_some_and(|frame| frame.lwp == Some(stack.lwp))
}

/// Whether a thread executes a signal handler, or one whose frames it shares does.
fn executes_handler(stack: &LogicalStack) -> bool {
    stack.frames.iter().any(|frame| frame.via == Via::Signal)
}

/// Functions of glibc that acquire a mutex, however long that takes; `pthread_cond_wait` calls the second one at its end.
const ACQUIRE_MUTEX: [&str; 2] = ["pthread_mutex_lock", "pthread_mutex_cond_lock"];
/// How the names of those begin that acquire a read-write lock, and of what does the work in them (`pthread_rwlock_rdlock_full64`).
const ACQUIRE_RWLOCK: [&str; 2] = ["pthread_rwlock_rdlock", "pthread_rwlock_wrlock"];

/// What the innermost frames of a thread acquire.
fn acquires(stack: &LogicalStack) -> Option<os::Acquires> {
    // The function and the one that sleeps (`__lll_lock_wait`).
    const LOOKED_AT: usize = 3;
    let names = stack.frames.iter().take(LOOKED_AT).filter_map(|frame| frame.function.as_deref());
    names.map(|name| name.strip_prefix("__GI_").unwrap_or(name).trim_start_matches('_')).find_map(|name| match name {
        _ if ACQUIRE_MUTEX.contains(&name) => Some(os::Acquires::Mutex),
        _ if ACQUIRE_RWLOCK.iter().any(|begin| name.starts_with(begin)) => Some(os::Acquires::RwLock),
        _ => None,
    })
}

/// Who holds the interpreter's lock that a thread waits for, by thread.
fn interpreter_locks(report: &Report) -> HashMap<i32, i32> {
    let held = report.python.iter().flat_map(|python| &python.gils).filter_map(|gil| match gil.holder {
        Ok(GilHolder::Thread(lwp)) => Some((lwp, &gil.waiting)),
        _ => None,
    });
    held.flat_map(|(holder, waiting)| waiting.iter().map(move |lwp| (*lwp, holder))).collect()
}

/// Finds out which tasks that are ready may unset a lock, by their code. `without_release` keeps the functions that surely do not.
fn find_releases(snapshots: &mut [RuntimeSnapshot], without_release: impl FnOnce(BTreeSet<Addr>) -> BTreeSet<Addr>) {
    let mut ready: Vec<&mut Task> = snapshots.iter_mut().flat_map(|snapshot| &mut snapshot.tasks).collect();
    ready.retain(|task| task.state.get() == Some(TaskState::Ready));
    let function = |task: &Task| task.function.value().map(|function| function.addr);
    let without = without_release(ready.iter().filter_map(|task| function(task)).collect());
    for task in ready {
        task.may_unset_locks = function(task).map(|function| !without.contains(&function));
    }
}

/// True if some thread waits for a lock.
fn waits_for_locks(snapshot: &RawSnapshot) -> bool {
    snapshot
        .threads
        .iter()
        .any(|thread| thread.wait.value().and_then(Option::as_ref).is_some_and(|w| w.kind.is_for_lock()))
}

/// Lines of calls, by debug information. Nothing is opened before the first is asked for.
struct Lines<'t> {
    target: &'t dyn Target,
    cache: &'t Cache,
    code: OnceCell<Code<'t>>,
}

impl<'t> Lines<'t> {
    fn code(&self) -> &Code<'t> {
        self.code.get_or_init(|| Code::of(self.target, self.cache))
    }

    fn line(&self, returns_to: Addr) -> Option<SourceLine> {
        let place = self.code().of_return_address(returns_to);
        let (file, line) = place.file.zip(place.line)?;
        let function = place.function.map(|name| name.to_string()).unwrap_or_default();
        Some(SourceLine { file: file.to_string(), function, line })
    }
}

/// Follows the stacks that were read. The target may run again.
pub(crate) fn unwind(target: &dyn Target, runtimes: &[Box<dyn Runtime>], read: &Read, cache: &Cache) -> Unwound {
    Unwound::of(target, runtimes, &read.stacks, cache)
}

/// Follows those of the threads (LWP) once more whose registers have become known since.
pub(crate) fn unwind_again(
    target: &dyn Target,
    runtimes: &[Box<dyn Runtime>],
    read: &Read,
    known: &mut Unwound,
    is_new: &dyn Fn(i32) -> bool,
    cache: &Cache,
) {
    known.repeat(target, runtimes, &read.stacks, cache, is_new);
}

/// What the stacks show of the runtimes.
pub(crate) fn follow(
    target: &dyn Target,
    runtimes: &[Box<dyn Runtime>],
    read: &Read,
    unwound: Unwound,
    cache: &Cache,
) -> Report {
    Report::of_unwound(target, runtimes, &read.snapshots, &read.stacks, unwound, cache)
}

/// What was read, put together and judged. The target may run again.
pub(crate) fn finish(
    target: &dyn Target,
    runtimes: &[Box<dyn Runtime>],
    read: Read,
    wanted: Wanted<'_>,
    cache: &Cache,
) -> Inspection {
    let unwound = unwind(target, runtimes, &read, cache);
    let report = follow(target, runtimes, &read, unwound, cache);
    conclude(target, runtimes, read, report, wanted, cache)
}

/// The same, with what [`follow`] has made of the stacks.
pub(crate) fn conclude(
    target: &dyn Target,
    runtimes: &[Box<dyn Runtime>],
    read: Read,
    report: Report,
    wanted: Wanted<'_>,
    cache: &Cache,
) -> Inspection {
    let Read { snapshots, stacks, mut os, remembered, pause, stopped_at, cpu } = read;
    os::find_yielding(target, &mut os.threads);
    let stacks = &*stacks;
    if os::is_glibc(target) {
        let acquire: HashMap<i32, os::Acquires> =
            report.logical.iter().filter_map(|stack| Some((stack.lwp, acquires(stack)?))).collect();
        os::find_mutexes(&mut os.threads, &|lwp| acquire.get(&lwp).copied());
    }
    os::add_interpreter_locks(&mut os.threads, &interpreter_locks(&report));
    let lines = Lines { target, cache, code: OnceCell::new() };
    let line = |returns_to| lines.line(returns_to);
    let part = |variable, offset| lines.code().part_of_variable(variable, offset);
    let locals = report.locals(target, stacks, cache);
    let mut names = FileNames::of(target, runtimes, &line).with_parts(&part);
    let confirmed = wanted.verdicts == Verdicts::Confirmed;
    if confirmed {
        names = names.with_expressions(&locals);
    }
    // The code of functions is decoded, which only waits for locks are worth.
    let locks = if confirmed && snapshots.iter().any(waits_for_locks) {
        report.lock_calls(target, runtimes, cache)
    } else {
        Vec::new()
    };
    let awaited = locks.iter().filter(|call| call.waits).filter_map(|call| Some((call.lwp, call.variable?))).collect();
    let evidence = Evidence {
        stacks: &report.evidence,
        companion: Some(&remembered),
        awaited: &awaited,
        outside: &report.logical.iter().filter(|stack| is_outside(stack)).map(|stack| stack.lwp).collect(),
        in_program: &report.logical.iter().filter(|stack| is_in_program(stack)).map(|stack| stack.lwp).collect(),
        names: Some(&names),
    };
    let mut snapshots = merge(snapshots, &evidence);
    if !locks.is_empty() {
        find_releases(&mut snapshots, |functions| report.without_release(target, runtimes, cache, functions));
    }
    let variables = wanted.locals.then(|| (0..report.logical.len()).map(|stack| locals.of(stack)).collect());
    let known: HashSet<i32> = snapshots.iter().flat_map(|s| s.threads.iter().filter_map(|t| t.lwp)).collect();
    let mut threads: Vec<ProcessThread> = target
        .threads()
        .iter()
        .map(|t| ProcessThread {
            lwp: t.lwp,
            name: t.name.clone(),
            blocked_in: t.registers.as_ref().ok().and_then(|registers| outside::call_name(registers, target.arch())),
            signal: (t.signal != 0).then_some(t.signal),
            foreign: !known.contains(&t.lwp),
        })
        .collect();
    threads.sort_by_key(|t| t.lwp);
    let mut outside = outside::find(target, lines.code(), stacks, &report, &os, &snapshots, &threads);
    for thread in outside.iter_mut().filter(|_| confirmed) {
        let name =
            thread.wait.as_ref().and_then(OutsideWait::word).map(|word| names.expression(word, Some(thread.lwp)));
        // The C++ library's own words are shared by objects that have nothing to do with each other (`__waiter_pool_base`).
        // Variables of the interpreter say nothing of the program in Python that has called it.
        let site = thread.call.as_ref().and_then(|call| call.site.as_ref());
        let in_python = site.is_some_and(|site| site.language == Language::Python);
        let is_interpreters = |name: &str| name.trim_start_matches(['*', '&', '_']).starts_with("Py");
        let says_nothing = |name: &str| name.starts_with("std::") || in_python && is_interpreters(name);
        thread.object = name.flatten().filter(|name| !says_nothing(name));
    }
    let mut issues: Vec<Issue> =
        target.issues().iter().map(|text| Issue::new("target", Trouble::Target { what: text.clone() })).collect();
    let nameless = nameless(target);
    let unseen = nameless.iter().filter(|_| runtimes.is_empty());
    issues.extend(unseen.map(|path| Issue::new(path.as_str(), Trouble::NoSymbols)));
    let bases: Vec<_> = snapshots.iter().map(|snapshot| snapshot.instance.base).collect();
    os.shared = os::find_shared(target, &snapshots);
    if report.logical.iter().any(executes_handler) {
        os.signals = os::signals_at_handler(target);
    }
    let mut waits_for = match wanted.verdicts {
        Verdicts::None => waits_for::unjudged(&snapshots, &os),
        Verdicts::OfEachLook | Verdicts::Confirmed => waits_for::judge(&snapshots, &os),
    };
    // Symbol tables of all files are looked at, and other processes, which only a hang is worth.
    if !waits_for.verdicts.is_empty() {
        let are_unknown = os.signals == Signals::NotRecorded;
        if are_unknown {
            os.signals = os::find_handlers(target, &bases);
        }
        os.outsiders = outsiders::find(target, &os, &waits_for.verdicts, &bases);
        let has_timers = os::find_timers(target, &mut os.threads);
        if are_unknown || !os.outsiders.is_empty() || has_timers {
            waits_for = waits_for::judge(&snapshots, &os);
        }
    }
    let (tools, mpi) = (companion::tools(target, &bases), rank::mpi_library(target));
    // After all that reads files.
    let of_modules =
        target.modules().iter().filter_map(|module| Some((&*module.path, module.file.as_ref().ok()?.unread()?)));
    let unread: Vec<(&str, String)> =
        target.unread().map(|what| ("target", what)).into_iter().chain(of_modules).collect();
    if !unread.is_empty() {
        // What was not read may show who can end the hang.
        waits_for.verdicts.iter_mut().for_each(|verdict| verdict.certainty = Certainty::Suspect);
    }
    issues.extend(unread.into_iter().map(|(subject, what)| Issue::new(subject, Trouble::Target { what })));
    Inspection {
        kind: target.kind(),
        process: target.process().clone(),
        tools,
        mpi,
        children: Vec::new(),
        threads,
        outside,
        waits_for,
        os,
        runtimes: snapshots,
        stacks: report,
        lock_calls: locks,
        locals: variables,
        unopened: target.modules().iter().filter(|m| m.file.is_err()).map(|m| m.path.clone()).collect(),
        nameless: !nameless.is_empty(),
        unlisted: target.kind() == TargetKind::Core && target.modules().iter().all(|module| module.path.is_empty()),
        issues,
        pause,
        stopped_at,
        stops: 1,
        stopped_threads: None,
        read_asleep: false,
        cpu,
        progress: None,
        unmoved: None,
    }
}
