//! How often the library asks the debugger, beside Intel's library on the same process.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::Path;
use std::process::Command;

use crate::debugger::{Held, Session, out};
use ompd::api::*;
use ompd::types::*;

use crate::client::{client, header, library, library_of_intel, skip, symbols_with};
use test_programs::{
    Env, Launch, Opt, Running, Runtime, Toolchain, Truth, await_all_blocked, build, can_build, combinations,
};

/// What was asked of the debugger for one kind of question.
#[derive(Debug, Clone, Copy, Default)]
struct Row {
    reads: u64,
    symbols: u64,
    contexts: u64,
    conversions: u64,
    memory: u64,
    bytes: u64,
    calls: u64,
    microseconds: u64,
}

impl Row {
    /// All callbacks.
    fn total(&self) -> u64 {
        self.reads + self.symbols + self.contexts + self.conversions + self.memory
    }
}

fn count(client: &Path, library: &Path, running: &Running, list: &Path, mode: &str) -> BTreeMap<String, Row> {
    let mut command = Command::new(client);
    command.arg(mode).arg(library).arg(running.pid.to_string()).arg(list);
    command.args(running.truth.threads.iter().map(|thread| format!("{:x}", thread.pthread.0)));
    let done = command.output().expect("the client runs");
    let text = String::from_utf8_lossy(&done.stdout).into_owned();
    assert!(done.status.success(), "{command:?}: {text}{}", String::from_utf8_lossy(&done.stderr));
    let mut rows = BTreeMap::new();
    for line in text.lines() {
        let (name, numbers) = line.split_once(' ').expect("a row");
        let numbers: Vec<u64> = numbers.split(' ').map(|number| number.parse().expect("a number")).collect();
        let [reads, symbols, contexts, conversions, memory, bytes, calls, microseconds] = numbers[..] else {
            panic!("{line}");
        };
        rows.insert(name.to_owned(), Row { reads, symbols, contexts, conversions, memory, bytes, calls, microseconds });
    }
    rows
}

/// What the two libraries ask for: as a debugger that offers what OMPD asks for counts it, and one that says that nothing has run.
struct Counts {
    theirs: BTreeMap<String, Row>,
    ours: BTreeMap<String, Row>,
    told: BTreeMap<String, Row>,
}

/// Questions as a debugger asks them of a stopped process with so many threads.
const QUESTIONS: [&str; 5] = ["threads", "parallel", "tasks", "frames", "icvs"];

/// Reads that a debugger that tells of stops need not expect.
const FEW: u64 = 40;

fn total(rows: &BTreeMap<String, Row>, names: &[&str]) -> u64 {
    names.iter().map(|name| rows[*name].total()).sum()
}

#[test]
fn hardly_more_callbacks_than_intels_library() {
    let header = header();
    let Some(library_of_intel) = library_of_intel() else { return };
    let directory = tempfile::tempdir().expect("a directory");
    let Some(client) = client(directory.path(), "gcc", &header) else { return };
    let program = build("many", Toolchain::Clang, Opt::O2, &[]).expect("it builds");
    for threads in [4usize, 16, 64] {
        // Without this theirs does not tell of states.
        let launch = Launch::new(&program, Runtime::Libiomp5, Env::Settled).variable("OMP_DEBUG", "enabled");
        let running = launch.argument(&threads.to_string()).start().expect("it starts");
        await_all_blocked(running.pid, threads, false).expect("it settles");
        let list = directory.path().join("symbols");
        if !symbols_with(&running, "__kmp_gtid", &list) {
            return;
        }
        await_all_blocked(running.pid, threads, false).expect("it settles");
        let count = |library: &Path, mode| count(&client, library, &running, &list, mode);
        let counts = Counts {
            theirs: count(&library_of_intel, "--count"),
            ours: count(&library(), "--count"),
            told: count(&library(), "--count-stops"),
        };
        report(threads, &counts);
        for name in QUESTIONS {
            let (ours, theirs) = (counts.ours[name].total(), counts.theirs[name].total());
            assert!(ours * 5 <= theirs * 7, "{threads} threads, {name}: {ours}, theirs {theirs}");
            // Fields are read, and not what lies around them; and no stack.
            let (bytes, reads) = (counts.ours[name].bytes, counts.ours[name].reads);
            assert!(bytes <= 24 * reads, "{threads} threads, {name}: {bytes} bytes in {reads} reads");
            // How many there are for each call does not depend on how many threads there are.
            let (ours, calls) = (counts.ours[name].reads, counts.ours[name].calls);
            assert!(ours <= 12 * calls + FEW, "{threads} threads, {name}: {ours} reads for {calls} calls");
            // One to ask whether the process has run.
            let told = counts.told[name].reads;
            // The first one reads all of the process; and of frames it is looked whether they can be.
            let whole = match name {
                "threads" => 4 * threads as u64 + FEW,
                "frames" => calls,
                _ => 0,
            };
            assert!(told <= calls + FEW + whole, "{threads} threads, {name}: {told} reads for {calls} calls");
        }
        // Threads are found when they are asked about.
        let (opened, bytes) = (counts.ours["init"].reads, counts.ours["init"].bytes);
        assert!(opened <= 100 && bytes <= 64 << 10, "{threads} threads: {bytes} bytes in {opened} reads");
        if threads == 64 {
            let questions = &QUESTIONS[..3];
            let (told, theirs) = (total(&counts.told, questions), total(&counts.theirs, questions));
            assert!(told * 4 <= theirs, "{told}, theirs {theirs}");
        }
    }
}

fn report(threads: usize, counts: &Counts) {
    for name in ["init"].iter().chain(&QUESTIONS) {
        let (theirs, ours, told) = (&counts.theirs[*name], &counts.ours[*name], &counts.told[*name]);
        let _ = writeln!(
            std::io::stderr(),
            "{threads:3} {name:9} theirs {:5} ({:6} us, {} bytes), ours {:5} ({:6} us, {} bytes), ours told of stops {:5} ({:6} us)",
            theirs.total(),
            theirs.microseconds,
            theirs.bytes,
            ours.total(),
            ours.microseconds,
            ours.bytes,
            told.total(),
            told.microseconds,
        );
    }
}

/// All that a session says of a process, line by line, and how many reads that took. Handles are told by which of those before them
/// they are equal to.
struct Asked<'a> {
    session: &'a Session,
    lines: Vec<String>,
    threads: Vec<*mut ThreadHandle>,
    regions: Vec<*mut ParallelHandle>,
    tasks: Vec<*mut TaskHandle>,
}

/// The place of a handle among those met so far, to which it is added if it is new.
fn place<T>(
    known: &mut Vec<*mut T>,
    found: Result<*mut T, Rc>,
    compare: impl Fn(*mut T, *mut T) -> Result<i32, Rc>,
) -> Result<usize, Rc> {
    let handle = found?;
    Ok(known.iter().position(|other| compare(*other, handle) == Ok(0)).unwrap_or_else(|| {
        known.push(handle);
        known.len() - 1
    }))
}

impl Asked<'_> {
    fn thread(&mut self, found: Result<*mut ThreadHandle, Rc>) -> Result<usize, Rc> {
        place(&mut self.threads, found, |a, b| out(|cmp| unsafe { ompd_thread_handle_compare(a, b, cmp) }))
    }

    fn region(&mut self, found: Result<*mut ParallelHandle, Rc>) -> Result<usize, Rc> {
        place(&mut self.regions, found, |a, b| out(|cmp| unsafe { ompd_parallel_handle_compare(a, b, cmp) }))
    }

    fn task(&mut self, found: Result<*mut TaskHandle, Rc>) -> Result<usize, Rc> {
        place(&mut self.tasks, found, |a, b| out(|cmp| unsafe { ompd_task_handle_compare(a, b, cmp) }))
    }

    fn icvs<T>(&mut self, what: &str, handle: *mut T, scope: ScopeNumber) {
        for (name, (_, of)) in &self.session.icvs {
            if *of == scope {
                let (number, text) = (self.session.icv(handle, name), self.session.icv_text(handle, name));
                self.lines.push(format!("{what} {name} {number:?} {text:?}"));
            }
        }
    }

    fn all(&mut self, truth: &Truth) {
        let session = self.session;
        for thread in &truth.threads {
            for (kind, id) in [(thread_id::LWP, thread.lwp as u64), (thread_id::PTHREAD, thread.pthread.0)] {
                let found = self.thread(session.thread(kind, id));
                self.lines.push(format!("{} {kind} {found:?}", thread.role));
            }
        }
        let mut at = 0;
        while let Some(&thread) = self.threads.get(at) {
            let mut wait = 0;
            let state = out(|state| unsafe { ompd_get_state(thread, state, &raw mut wait) });
            let ids = [thread_id::LWP, thread_id::PTHREAD]
                .map(|kind| out(|id: *mut u64| unsafe { ompd_get_thread_id(thread, kind, 8, id.cast()) }));
            let device =
                out(|device| unsafe { ompd_get_device_from_thread(thread, device) }).map(|d| d == session.space);
            let region = self.region(out(|region| unsafe { ompd_get_curr_parallel_handle(thread, region) }));
            let task = self.task(out(|task| unsafe { ompd_get_curr_task_handle(thread, task) }));
            self.lines.push(format!("thread {at} {state:?} {wait:x} {ids:?} {device:?} {region:?} {task:?}"));
            self.icvs(&format!("thread {at}"), thread, scope::THREAD);
            at += 1;
        }
        let mut at = 0;
        while let Some(&region) = self.regions.get(at) {
            self.icvs(&format!("region {at}"), region, scope::PARALLEL);
            let outer = self.region(out(|outer| unsafe { ompd_get_enclosing_parallel_handle(region, outer) }));
            self.lines.push(format!("region {at} in {outer:?}"));
            for number in -1..=8 {
                let member = out(|member| unsafe { ompd_get_thread_in_parallel(region, number, member) });
                let task = out(|task| unsafe { ompd_get_task_in_parallel(region, number, task) });
                let (member, task) = (self.thread(member), self.task(task));
                self.lines.push(format!("region {at} member {number}: {member:?} {task:?}"));
            }
            at += 1;
        }
        let mut at = 0;
        while let Some(&task) = self.tasks.get(at) {
            self.icvs(&format!("task {at}"), task, scope::TASK);
            let function = out(|function: *mut Address| unsafe { ompd_get_task_function(task, function) });
            let region = self.region(out(|region| unsafe { ompd_get_task_parallel_handle(task, region) }));
            let generating = self.task(out(|outer| unsafe { ompd_get_generating_task_handle(task, outer) }));
            let scheduling = self.task(out(|outer| unsafe { ompd_get_scheduling_task_handle(task, outer) }));
            self.lines.push(format!("task {at} {function:?} {region:?} {generating:?} {scheduling:?}"));
            at += 1;
        }
        self.icvs("process", session.space, scope::ADDRESS_SPACE);
    }
}

/// What a debugger is told that says nothing of stops, by looks at single threads, and one that does, by one look at everything.
fn compare(program: &str) {
    for (toolchain, runtime) in combinations() {
        if toolchain.check().and_then(|()| runtime.library().map(drop)).is_err() {
            skip(&format!("{toolchain:?} on {runtime:?} is not here"));
            continue;
        }
        if let Err(reason) = can_build(program, toolchain).expect("compilers answer") {
            reason.show();
            continue;
        }
        let executable = build(program, toolchain, Opt::O0, &[]).expect("it builds");
        let running = Launch::new(&executable, runtime, Env::Settled).start().expect("it starts");
        let ask = |stops: bool| {
            let mut held = Held::live(running.pid, stops);
            held.stops_alone = true;
            let session = Session::new(201_811, held);
            session.held.reads.borrow_mut().clear();
            let mut asked = Asked {
                session: &session,
                lines: Vec::new(),
                threads: Vec::new(),
                regions: Vec::new(),
                tasks: Vec::new(),
            };
            asked.all(&running.truth);
            let reads: u32 = session.held.reads.borrow().values().sum();
            (asked.lines, reads)
        };
        let ((alone, reads), (whole, none)) = (ask(false), ask(true));
        assert_eq!(none, 0, "{program} on {runtime:?}: the debugger said that nothing has run");
        for (alone, whole) in alone.iter().zip(&whole) {
            assert_eq!(alone, whole, "{program}, {toolchain:?} on {runtime:?}");
        }
        assert_eq!(alone.len(), whole.len());
        let each = f64::from(reads) / alone.len() as f64;
        let _ = writeln!(
            std::io::stderr(),
            "{program}, {toolchain:?} on {runtime:?}: {} lines alike, {each:.1} reads for each",
            alone.len()
        );
    }
}

macro_rules! programs {
    ($($name:ident),* $(,)?) => {$(
        #[test]
        fn $name() {
            compare(stringify!($name));
        }
    )*};
}

/// Looks at single threads and at everything.
mod alike {
    use super::compare;

    programs!(barrier_missing, nested, serialized, tasks, lock, icvs, idle, user_pthread, region_end);
}

/// Between two calls the process may have run, or be gone. Here another process takes its place: answers about the first must no
/// longer be given.
#[test]
fn what_was_is_not_told_again() {
    for (toolchain, runtime) in combinations() {
        if toolchain.check().and_then(|()| runtime.library().map(drop)).is_err() {
            skip(&format!("{toolchain:?} on {runtime:?} is not here"));
            continue;
        }
        let program = build("nested", toolchain, Opt::O0, &[]).expect("it builds");
        let start = || Launch::new(&program, runtime, Env::Settled).start().expect("it starts");
        let (first, second) = (start(), start());
        let mut session = Session::new(201_811, Held::live(first.pid, false));
        let lwp = first.truth.coordinator as u64;
        let thread = session.thread(thread_id::LWP, lwp).expect("a thread");
        let region = out(|region| unsafe { ompd_get_curr_parallel_handle(thread, region) }).expect("a region");
        let task = out(|task| unsafe { ompd_get_curr_task_handle(thread, task) }).expect("a task");
        session.held.target = Held::live(second.pid, false).target;
        let mut wait = 0;
        assert!(out(|state| unsafe { ompd_get_state(thread, state, &raw mut wait) }).is_err());
        assert!(out(|id: *mut u64| unsafe { ompd_get_thread_id(thread, thread_id::LWP, 8, id.cast()) }).is_err());
        assert!(out(|region| unsafe { ompd_get_curr_parallel_handle(thread, region) }).is_err());
        assert!(out(|member| unsafe { ompd_get_thread_in_parallel(region, 0, member) }).is_err());
        assert!(out(|outer| unsafe { ompd_get_enclosing_parallel_handle(region, outer) }).is_err());
        assert!(session.icv(region, "team-size-var").is_err());
        assert!(out(|function: *mut Address| unsafe { ompd_get_task_function(task, function) }).is_err());
        assert!(out(|outer| unsafe { ompd_get_generating_task_handle(task, outer) }).is_err());
        assert!(session.thread(thread_id::LWP, lwp).is_err());
        session.held.target = Held::live(first.pid, false).target;
        // What is there again is found again, if only by its native id.
        assert!(session.thread(thread_id::LWP, lwp).is_ok());
    }
}
