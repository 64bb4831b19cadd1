//! One inspection from opening the target to the finished findings.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ompd_process::core::Core;
use ompd_process::live::Live;
use ompd_process::{
    Addr, Arch, ElfFile, Machine, Module, OpenError, OpenOptions, ProcessInfo, Syscall, Target, TargetKind,
};
use ompd_runtime::companion::{self, Remembered};
use ompd_runtime::model::{Fact, Issue, RuntimeSnapshot, Site, SourceLine};
use ompd_runtime::os;
use ompd_runtime::waits_for::{self, Node, Verdict, WaitsFor};
use ompd_runtime::{Origin, Runtime, discover};
use ompd_stack::{Cache, Code, FrameVariables, Stacks};

use crate::progress::{self, Moved, Progress};

/// A thread of the operating system.
#[derive(Debug, Clone)]
pub struct OsThread {
    /// Kernel thread id.
    pub lwp: i32,
    /// Its name, where recorded (text of the target).
    pub name: Option<String>,
    /// Name of the system call it was blocked in.
    pub blocked_in: Option<String>,
    /// The signal that ended the process, if this thread received it.
    pub signal: Option<i32>,
    /// True if no runtime of the process knows it.
    pub foreign: bool,
}

/// Everything found.
#[derive(Debug)]
pub struct Inspection {
    /// Live process or core file.
    pub kind: TargetKind,
    /// The process.
    pub process: ProcessInfo,
    /// Every thread, in LWP order.
    pub threads: Vec<OsThread>,
    /// Every OpenMP runtime.
    pub runtimes: Vec<RuntimeSnapshot>,
    /// What the kernel kept each thread waiting for.
    pub os: Vec<os::OsThread>,
    /// What waits for what, and the verdicts.
    pub waits_for: WaitsFor,
    /// Every thread's stack.
    pub stacks: ompd_stack::Report,
    /// The variables of the frames of each of `stacks.logical`, if they were asked for.
    pub locals: Option<Vec<Vec<Arc<FrameVariables>>>>,
    /// Mapped files that could not be looked at (text of the target).
    pub unopened: Vec<String>,
    /// A static program without any symbols is among the mapped files: nobody can tell what is built into it.
    pub nameless: bool,
    /// Files that can start an OMPT tool, other than the runtimes (text of the target).
    pub tools: Vec<String>,
    /// Trouble with the target as a whole.
    pub issues: Vec<Issue>,
    /// How long a live process was held, all stops of this look together.
    pub pause: Option<Duration>,
    /// How many those were.
    pub stops: u32,
    /// Processor time each thread of a live process had used by then, by LWP.
    pub cpu: HashMap<i32, Duration>,
    /// What has changed since the first look, if there was more than one.
    pub progress: Option<Progress>,
}

impl Inspection {
    /// All issues: of the target, of layouts, of walks.
    pub fn all_issues(&self) -> impl Iterator<Item = &Issue> {
        let runtimes = self.runtimes.iter().flat_map(|r| r.instance.issues.iter().chain(&r.issues));
        self.issues.iter().chain(runtimes)
    }

    /// True if it has the same verdict.
    fn has(&self, verdict: &Verdict) -> bool {
        self.waits_for.verdicts.iter().any(|own| stuck_threads(own) == stuck_threads(verdict))
    }

    fn may_be_stuck(&self) -> bool {
        waits_for::may_be_stuck(&self.runtimes, &self.os)
    }

    /// True if a runtime was found and nothing went wrong.
    pub fn complete(&self) -> bool {
        !self.runtimes.is_empty() && self.all_issues().next().is_none()
    }
}

/// What to read, and how.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'a> {
    /// Layouts are found without these origins.
    pub ignore: &'a [Origin],
    /// The variables of the program, which nothing else of an inspection shows.
    pub locals: bool,
    /// Whether it hangs, which takes more than one look.
    pub verdicts: bool,
    /// How often to look at a live process.
    pub samples: u32,
    /// Time between two looks.
    pub interval: Duration,
}

/// Time between two looks that nobody asked for, in milliseconds; there is one look more than that. A stop interrupts the calls
/// that threads sleep in: before the next one they must have had the processor for long enough to go back to sleep.
const BETWEEN_LOOKS: [u64; 4] = [1, 5, 10, 20];

/// Opens and reads the target: a number is a process, anything else a core file.
///
/// # Errors
/// The target could not be opened or stopped at all.
pub fn inspect(target: &str, options: &OpenOptions, wanted: Wanted<'_>) -> Result<Inspection, OpenError> {
    match process_id(target) {
        Some(pid) => inspect_live(pid?, options, wanted),
        None => inspect_core(Path::new(target), options, wanted),
    }
}

/// Opens the target for whoever reads it without stopping it: a number is a process, anything else a core file.
///
/// # Errors
/// The target could not be opened.
pub fn open(target: &str, options: &OpenOptions) -> Result<Box<dyn Target>, OpenError> {
    match process_id(target) {
        Some(pid) => Ok(Box::new(Live::open(pid?, options)?)),
        None => Ok(Box::new(Core::open(Path::new(target), options)?)),
    }
}

/// The process that is meant; `None` if it is a file.
fn process_id(target: &str) -> Option<Result<i32, OpenError>> {
    let too_large = |_| OpenError::Io {
        what: format!("there is no process {target}"),
        source: std::io::Error::other("no process id is that large"),
    };
    target.bytes().all(|b| b.is_ascii_digit()).then(|| target.parse().map_err(too_large))
}

fn inspect_core(path: &Path, options: &OpenOptions, wanted: Wanted<'_>) -> Result<Inspection, OpenError> {
    if wanted.samples > 1 {
        return Err(OpenError::Io {
            what: "a core file does not change: --samples is for running processes".to_owned(),
            source: std::io::Error::from(std::io::ErrorKind::InvalidInput),
        });
    }
    let core = Core::open(path, options)?;
    let runtimes = discover(&core, wanted.ignore);
    Ok(inspect_held(&core, &runtimes, wanted, &Cache::default()))
}

/// Reads a target that stands still by itself: a core, or what a debugger holds. The origins that `wanted` leaves out count for
/// nothing here, as the runtimes are there already.
pub fn inspect_held(
    target: &dyn Target,
    runtimes: &[Box<dyn Runtime>],
    wanted: Wanted<'_>,
    cache: &Cache,
) -> Inspection {
    let stacks = Stacks::capture(target);
    let snapshots: Vec<_> = runtimes.iter().map(|r| r.snapshot(target)).collect();
    let remembered = Remembered::read(target, &companion::words(target), &snapshots);
    let stop = Stop { snapshots, stacks, os: os::threads(target), remembered, pause: None, cpu: HashMap::new() };
    finish(target, runtimes, stop, wanted, cache)
}

/// Whatever does not change while the process runs is read before the stop, names are looked up after it.
fn inspect_live(pid: i32, options: &OpenOptions, wanted: Wanted<'_>) -> Result<Inspection, OpenError> {
    let live = Live::open(pid, options)?;
    let runtimes = discover(&live, wanted.ignore);
    let companion = companion::words(&live);
    let mut watch = Watch { live, runtimes, companion, wanted, cache: Cache::default() };
    let (began, first) = watch.look(Live::stop)?;
    let (mut at, mut before, mut last) = (began, None, None);
    // Whoever moves to and fro has moved all the same.
    let mut meanwhile = Moved::default();
    for _ in 1..wanted.samples {
        std::thread::sleep(wanted.interval.saturating_sub(at.elapsed()));
        let (now, look) = watch.look(Live::stop)?;
        meanwhile.add(&progress::compare(last.as_ref().unwrap_or(&first), &look, now - at), &look);
        before = last.replace(look);
        at = now;
    }
    let Some(mut last) = last else { return watch.settled(first) };
    let before = before.as_ref().unwrap_or(&first);
    last.waits_for.verdicts.retain(|verdict| before.has(verdict));
    if last.waits_for.verdicts.is_empty() {
        last = watch.settled(last)?;
    }
    let mut progress = progress::compare(&first, &last, at - began);
    meanwhile.tell(&mut progress, &last);
    last.progress = Some(progress);
    Ok(last)
}

/// A process that is looked at any number of times.
struct Watch<'a> {
    live: Live,
    runtimes: Vec<Box<dyn Runtime>>,
    /// Where companions say where their blocks are.
    companion: Vec<Addr>,
    wanted: Wanted<'a>,
    cache: Cache,
}

impl Watch<'_> {
    /// Stops the process, reads it, lets it go on, and makes sense of it. Also when that was.
    fn look(
        &mut self,
        stop: impl FnOnce(&mut Live) -> Result<(), OpenError>,
    ) -> Result<(Instant, Inspection), OpenError> {
        let live = &mut self.live;
        let began = Instant::now();
        stop(live)?;
        let stacks = Stacks::capture(live);
        let snapshots: Vec<_> = self.runtimes.iter().map(|r| r.snapshot(live)).collect();
        let remembered = Remembered::read(live, &self.companion, &snapshots);
        let os = os::threads(live);
        let pause = live.resume().unwrap_or_else(|| began.elapsed());
        let cpu = if self.wanted.samples > 1 { live.cpu_times() } else { HashMap::new() };
        let stop = Stop { snapshots, stacks, os, remembered, pause: Some(pause), cpu };
        Ok((began, finish(live, &self.runtimes, stop, self.wanted, &self.cache)))
    }

    /// What never goes on is still there at a second stop: a verdict that two looks do not agree on must not be told. And who waits
    /// without sleeping may be met in an instant that tells nothing, so that a process of which not a single thread is seen to get
    /// on is looked at again.
    fn settled(&mut self, first: Inspection) -> Result<Inspection, OpenError> {
        if !self.wanted.verdicts {
            return Ok(first);
        }
        let mut earlier: Vec<Inspection> = Vec::new();
        let mut latest = first;
        loop {
            let told = |verdict: &Verdict| earlier.iter().any(|look| look.has(verdict));
            let confirmed = latest.waits_for.verdicts.iter().any(told);
            let open = !latest.waits_for.verdicts.is_empty() || latest.may_be_stuck();
            let Some(wait) = BETWEEN_LOOKS.get(earlier.len()).filter(|_| open && !confirmed) else {
                latest.waits_for.verdicts.retain(told);
                return Ok(latest);
            };
            std::thread::sleep(Duration::from_millis(*wait));
            let (_, mut next) = self.look(Live::stop_again)?;
            next.pause = latest.pause.zip(next.pause).map(|(one, two)| one + two);
            next.stops = latest.stops + 1;
            earlier.push(std::mem::replace(&mut latest, next));
        }
    }
}

/// What has to be the same of a verdict at two stops: its kind, and the threads it is about.
fn stuck_threads(verdict: &Verdict) -> (&'static str, &'static str, Vec<i32>) {
    let threads = verdict.core.iter().filter_map(|node| match node {
        Node::Thread(lwp) => Some(*lwp),
        _ => None,
    });
    (verdict.certainty.word(), verdict.situation.word(), threads.collect())
}

/// What was read in one stop.
struct Stop {
    snapshots: Vec<RuntimeSnapshot>,
    stacks: Stacks,
    os: Vec<os::OsThread>,
    remembered: Remembered,
    pause: Option<Duration>,
    cpu: HashMap<i32, Duration>,
}

/// Threads that wait in a call of a runtime.
fn waiting(snapshots: &[RuntimeSnapshot]) -> HashSet<i32> {
    let threads = snapshots.iter().flat_map(|snapshot| &snapshot.threads);
    threads.filter(|t| matches!(t.wait, Fact::Known { value: Some(_), .. })).filter_map(|t| t.lwp).collect()
}

/// Whether a thread is in no call of a runtime, as its whole stack shows.
fn is_outside(report: &ompd_stack::Report, lwp: i32) -> bool {
    let stack = report.logical.iter().find(|stack| stack.lwp == lwp);
    stack.is_some_and(|stack| stack.in_call.is_none() && !stack.frames.is_empty() && stack.end.is_complete())
}

/// Looks up where in the source things were done.
fn find_sites(target: &dyn Target, cache: &Cache, snapshots: &mut [RuntimeSnapshot]) {
    let sites = snapshots.iter_mut().flat_map(|s| {
        let locks = s.locks.iter_mut().filter_map(|lock| lock.acquired.as_mut());
        locks.chain(s.tasks.iter_mut().filter_map(|task| task.created.as_mut()))
    });
    let mut sites = sites.peekable();
    if sites.peek().is_none() {
        return;
    }
    let code = Code::of(target, cache);
    let mut known: HashMap<Addr, Option<SourceLine>> = HashMap::new();
    for Site { code: at, location } in sites {
        let found = known.entry(*at).or_insert_with(|| {
            let place = code.of_return_address(*at);
            let (file, line) = place.file.zip(place.line)?;
            let function = place.function.map(|name| name.to_string()).unwrap_or_default();
            Some(SourceLine { file: file.to_string(), function, line })
        });
        location.clone_from(found);
    }
    for task in snapshots.iter_mut().flat_map(|snapshot| &mut snapshot.tasks) {
        // The call that generates a task stands where its construct does.
        if let (None, Some(Site { location: Some(line), .. })) = (task.location.value(), &task.created) {
            task.location = Fact::known(line.clone(), Origin::Companion);
        }
    }
}

fn finish(
    target: &dyn Target,
    runtimes: &[Box<dyn Runtime>],
    stop: Stop,
    wanted: Wanted<'_>,
    cache: &Cache,
) -> Inspection {
    let Stop { mut snapshots, stacks, mut os, remembered, pause, cpu } = stop;
    os::find_yielding(target, &mut os);
    let stacks = &stacks;
    let report = ompd_stack::Report::of(target, runtimes, &mut snapshots, stacks, cache);
    let waiting = waiting(&snapshots);
    remembered.tell(&mut snapshots, |lwp| waiting.contains(&lwp) || is_outside(&report, lwp));
    find_sites(target, cache, &mut snapshots);
    let locals = wanted.locals.then(|| {
        let locals = report.locals(target, stacks, cache);
        (0..report.logical.len()).map(|stack| locals.of(stack)).collect()
    });
    for (runtime, snapshot) in runtimes.iter().zip(&mut snapshots) {
        runtime.name(target, snapshot);
    }
    let known: HashSet<i32> = snapshots.iter().flat_map(|s| s.threads.iter().filter_map(|t| t.lwp)).collect();
    let mut threads: Vec<OsThread> = target
        .threads()
        .iter()
        .map(|t| OsThread {
            lwp: t.lwp,
            name: t.name.clone(),
            blocked_in: t.registers.as_ref().ok().and_then(|r| r.syscall).map(|call| name_call(call, target.arch())),
            signal: (t.signal != 0).then_some(t.signal),
            foreign: !known.contains(&t.lwp),
        })
        .collect();
    threads.sort_by_key(|t| t.lwp);
    let mut issues: Vec<Issue> = target.issues().iter().map(|text| Issue::new("target", text)).collect();
    let nameless = nameless(target);
    issues.extend(nameless.iter().filter(|_| runtimes.is_empty()).map(|path| {
        let text = "it has no symbols: an OpenMP runtime that is built into it cannot be recognised. Its separate debug \
                    file would do (--debug-dir)";
        Issue::new(path.as_str(), text)
    }));
    let bases: Vec<_> = snapshots.iter().map(|snapshot| snapshot.instance.base).collect();
    Inspection {
        kind: target.kind(),
        process: target.process().clone(),
        tools: companion::tools(target, &bases),
        threads,
        waits_for: waits_for::judge(&snapshots, &os),
        os,
        runtimes: snapshots,
        stacks: report,
        locals,
        unopened: target.modules().iter().filter(|m| m.file.is_err()).map(|m| m.path.clone()).collect(),
        nameless: !nameless.is_empty(),
        issues,
        pause,
        stops: 1,
        cpu,
        progress: None,
    }
}

/// Paths of statically linked programs that were stripped of all symbols. That a program which needs libraries has a
/// runtime built in nevertheless is too rare to say it of every stripped one.
pub fn nameless(target: &dyn Target) -> Vec<String> {
    let nameless = |file: &ElfFile| file.is_program() && file.needed().is_empty() && !file.has_names();
    let is_nameless = |module: &&Module| module.file.as_deref().is_ok_and(nameless);
    target.modules().iter().filter(is_nameless).map(|module| module.path.clone()).collect()
}

/// Name of a system call in the table of the target's machine.
fn name_call(call: Syscall, arch: Arch) -> String {
    let number = call.number as usize;
    let name = match arch.machine {
        Machine::X86_64 => syscalls::x86_64::Sysno::new(number).map(|n| n.name()),
        Machine::Aarch64 => syscalls::aarch64::Sysno::new(number).map(|n| n.name()),
        Machine::Other(_) => None,
    };
    match name {
        // What is left of a sleep or wait that a stop, ours or another's, has interrupted before.
        Some("restart_syscall") => "restart_syscall (a sleep or wait interrupted before)".to_owned(),
        Some(name) => name.to_owned(),
        None => format!("number {number}"),
    }
}
