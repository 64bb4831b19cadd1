//! One look: what is read while the target stands still, and what is made of it afterwards.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use ompd_process::{Addr, Arch, Syscall, Target};
use ompd_runtime::companion::{self, Remembered};
use ompd_runtime::model::{Fact, Issue, RuntimeSnapshot, Site, SourceLine};
use ompd_runtime::{Origin, Runtime, os, waits_for};
use ompd_stack::{Cache, Code, Stacks};

use crate::{Inspection, OsThread, Wanted, nameless};

/// What was read in one stop.
pub(crate) struct Read {
    snapshots: Vec<RuntimeSnapshot>,
    stacks: Stacks,
    os: Vec<os::OsThread>,
    remembered: Remembered,
    /// How long a live process was held for it.
    pub(crate) pause: Option<Duration>,
    /// Processor time of its threads by then, by LWP.
    pub(crate) cpu: HashMap<i32, Duration>,
}

/// Reads a target that stands still. `words` is what [`companion::words`] gave.
pub(crate) fn read(target: &dyn Target, runtimes: &[Box<dyn Runtime>], words: &[Addr]) -> Read {
    let stacks = Stacks::capture(target);
    let snapshots: Vec<_> = runtimes.iter().map(|runtime| runtime.snapshot(target)).collect();
    let remembered = Remembered::read(target, words, &snapshots);
    Read { snapshots, stacks, os: os::threads(target), remembered, pause: None, cpu: HashMap::new() }
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

/// What was read, put together and judged. The target may run again.
pub(crate) fn finish(
    target: &dyn Target,
    runtimes: &[Box<dyn Runtime>],
    read: Read,
    wanted: Wanted<'_>,
    cache: &Cache,
) -> Inspection {
    let Read { mut snapshots, stacks, mut os, remembered, pause, cpu } = read;
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

/// Name of a system call in the table of the target's machine.
fn name_call(call: Syscall, arch: Arch) -> String {
    let name = arch.machine.call_name(call.number);
    match name {
        // What is left of a sleep or wait that a stop, ours or another's, has interrupted before.
        Some("restart_syscall") => "restart_syscall (a sleep or wait interrupted before)".to_owned(),
        Some(name) => name.to_owned(),
        None => format!("number {}", call.number),
    }
}
