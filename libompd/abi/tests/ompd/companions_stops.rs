//! What a debugger gets that knows nothing but OMPD, at the stop points that the companion calls on runtimes without any.
#![cfg(target_arch = "x86_64")]

use std::collections::BTreeMap;
use std::io::{BufRead as _, Read as _};
use std::path::PathBuf;

use ompd::api::*;
use ompd::extension::{Event, StopPoint, ompdx_stop_points};
use ompd::types::*;
use ompd_process::{Addr, Target, TargetExt as _};
use test_programs::{Env, Launch, Opt, Process, Runtime, Skip, Toolchain, build, built_by_cargo, can_build};

use crate::current::{Answer, ask};
use crate::debugger::{Held, Session, out};
use crate::traced::{Happened, Traced};

/// The symbols, with what begins or ends at each.
const SYMBOLS: [(&str, Event); 6] = [
    ("ompd_bp_parallel_begin", Event::ParallelBegin),
    ("ompd_bp_parallel_end", Event::ParallelEnd),
    ("ompd_bp_task_begin", Event::TaskBegin),
    ("ompd_bp_task_end", Event::TaskEnd),
    ("ompd_bp_thread_begin", Event::ThreadBegin),
    ("ompd_bp_thread_end", Event::ThreadEnd),
];

/// What the threads of one run got at one kind of places, in the order of each thread.
type Got = BTreeMap<(i32, u32), Vec<Answer>>;

/// A program with the companion, a debugger that knows only OMPD, and one that asks for equivalent places.
struct Watch {
    traced: Traced,
    /// Has asked for places.
    session: Session,
    /// Has not.
    plain: *mut AddressSpaceHandle,
    held: Box<Held>,
    /// Distance of `meeting` from the thread pointer.
    meeting: i64,
    /// Sizes and levels of the regions that threads have begun.
    open: BTreeMap<i32, Vec<Answer>>,
    hits: BTreeMap<u32, u32>,
}

impl Watch {
    /// The region that a thread is about to begin, by what the program has written: its size and level.
    fn meeting_of(&self, tid: i32) -> (Word, Word) {
        let target = &self.session.held.target;
        let thread = target.threads().iter().find(|t| t.lwp == tid).expect("the thread");
        let at = Addr(thread.pointer.expect("its thread pointer").0.wrapping_add_signed(self.meeting));
        let [size, level] = [0, 4].map(|offset| target.read_u32(at.offset(offset)).expect("what it meets"));
        (size.into(), level.into())
    }

    /// A hit of one of OMPD's symbols.
    fn check(&mut self, tid: i32, event: Event) -> Answer {
        *self.hits.entry(event as u32).or_default() += 1;
        let answer =
            ask(&self.session, self.plain, tid).unwrap_or_else(|| panic!("{event:?}: thread {tid} is unknown"));
        match event {
            Event::ParallelBegin => {
                let (size, level) = self.meeting_of(tid);
                let region = answer.region.expect("the region that begins");
                assert_eq!((region.1, region.2), (size, level), "thread {tid}");
                self.open.entry(tid).or_default().push(answer);
            }
            Event::ParallelEnd => {
                let begun = self.open.get_mut(&tid).and_then(Vec::pop);
                assert_eq!(begun, Some(answer), "what ends is what began last: thread {tid}");
            }
            _ => {}
        }
        answer
    }
}

/// The distance of the program's `meeting` from the thread pointer.
fn meeting(target: &dyn Target) -> i64 {
    let program =
        target.modules().iter().find(|m| Some(&m.path) == target.process().exe.as_ref()).expect("the program");
    let file = program.file.as_ref().expect("its file");
    file.symbol("meeting").and_then(|symbol| file.thread_pointer_offset(&symbol)).expect("a variable")
}

/// Runs the program with breakpoints at OMPD's symbols, and at the equivalent places, where another debugger is told what holds.
fn run(what: &str, launch: Launch, registers: bool) {
    let companion = built_by_cargo("libompt_companion.so").display().to_string();
    let launch = launch.variable("OMP_DEBUG", "enabled").variable("OMP_TOOL_LIBRARIES", &companion);
    let Process { mut child, mut stdin, mut stdout, .. } = launch.spawn().expect("it starts");
    let mut line = String::new();
    stdout.read_line(&mut line).expect("a line");
    assert_eq!(line, "ready\n", "{what}");
    let mut traced = Traced::new(child.id() as i32);
    // The thread begins before the runtime has filed its kernel thread id.
    traced.holds_makers = true;
    let session = Session::new(201_811, Held::of(Box::new(traced.look()), true));
    let mut held = Box::new(Held::of(Box::new(traced.look()), registers));
    let context: *mut AddressSpaceContext = (&raw mut *held).cast();
    let plain = out(|space| unsafe { ompd_process_initialize(context, space) }).expect("an address space");
    let mut number = 0;
    let points = out(|points| unsafe { ompdx_stop_points(session.space, points, &raw mut number) }).expect("points");
    let listed: Vec<StopPoint> = (0..number as usize).map(|n| unsafe { points.add(n).read() }).collect();
    unsafe { crate::debugger::give_back(points.cast()) };
    let is_wanted =
        |event| matches!(event, Event::ParallelBegin | Event::ParallelEnd | Event::TaskBegin | Event::TaskEnd);
    let equivalent = listed.iter().filter(|point| point.point != 0 && is_wanted(point.event));
    let mut at: BTreeMap<u64, (bool, Event)> =
        equivalent.map(|point| (point.address.address, (false, point.event))).collect();
    for (name, event) in SYMBOLS {
        let symbols = session.held.target.modules().iter().filter_map(|module| module.symbol(name));
        let addresses: Vec<u64> = symbols.map(|symbol| symbol.addr.0).collect();
        let [address] = addresses[..] else { panic!("{what}: {name} is at {addresses:x?}") };
        at.insert(address, (true, event));
    }
    at.keys().for_each(|address| traced.set_breakpoint(*address));
    let meeting = meeting(&*session.held.target);
    let mut watch = Watch { traced, session, plain, held, meeting, open: BTreeMap::new(), hits: BTreeMap::new() };
    std::io::Write::write_all(&mut stdin, b"x").expect("the program reads");
    let (mut truths, mut answers) = (Got::new(), Got::new());
    loop {
        let (tid, address) = match watch.traced.run() {
            Happened::Hit(tid, address) => (tid, address),
            Happened::Exited(status) => {
                assert_eq!(status, 0);
                break;
            }
        };
        for held in [&mut watch.session.held, &mut watch.held] {
            held.target = Box::new(watch.traced.look());
            held.stops.set(held.stops.get() + 1);
        }
        match at[&address] {
            (true, event) => {
                let answer = watch.check(tid, event);
                answers.entry((tid, event as u32)).or_default().push(answer);
            }
            (false, event) => {
                let truth = ask(&watch.session, watch.session.space, tid).expect("a thread");
                truths.entry((tid, event as u32)).or_default().push(truth);
            }
        }
        watch.traced.step_over(tid, address);
    }
    let _ = child.wait();
    let mut said = String::new();
    stdout.read_to_string(&mut said).expect("what it says");
    let counts = said.lines().last().expect("a line").split_whitespace();
    let counts: Vec<u32> =
        counts.map(|count| count.split_once('=').expect("a count").1.parse().expect("a number")).collect();
    let [regions, serialized, deferred, undeferred] = counts[..] else { panic!("{said}") };
    let hits = SYMBOLS.map(|(_, event)| watch.hits.get(&(event as u32)).copied().unwrap_or(0));
    let (regions, tasks) = (regions + serialized, deferred + undeferred);
    let threads = watch.traced.begun as u32;
    // The initial thread began before the debugger came.
    assert_eq!(hits, [regions, regions, tasks, tasks, threads, threads + 1], "{what}, registers {registers}");
    assert!(regions > 30 && tasks > 10 && threads >= 4, "{what}: {said}");
    for (of @ (tid, event), answers) in &answers {
        if [Event::ThreadBegin, Event::ThreadEnd].iter().any(|thread| *thread as u32 == *event) {
            continue;
        }
        assert_eq!(Some(answers), truths.get(of), "{what}, thread {tid}, event {event}, registers {registers}");
        assert!(answers.iter().all(|answer| answer.region.is_ok() && answer.task.is_ok()), "{answers:?}");
    }
    assert_eq!(unsafe { ompd_rel_address_space_handle(watch.plain) }, Rc::OK);
}

/// libomp 14, and others that were fetched: what each is, and the directory with it.
fn releases() -> Vec<(String, Option<tempfile::TempDir>)> {
    let mut all = Vec::new();
    if Runtime::available().contains(&Runtime::Libomp14) {
        all.push(("libomp 14".to_owned(), None));
    }
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../test-programs/runtimes/debian-bookworm/amd64");
    for release in ["16", "19"] {
        match root.join(format!("libomp5-{release}/libomp.so.5")).canonicalize() {
            Ok(file) => {
                let directory = tempfile::tempdir().expect("a directory");
                for name in ["libomp.so.5", "libgomp.so.1"] {
                    std::os::unix::fs::symlink(&file, directory.path().join(name)).expect("a link");
                }
                all.push((format!("libomp {release}"), Some(directory)));
            }
            Err(why) => {
                Skip::because(format!("libomp {release} is not here: {why}; \"ci/fetch debian\" gets it")).show();
            }
        }
    }
    all
}

#[test]
fn stop_points_of_the_companion_have_the_handles_that_ompd_asks_for() {
    for (release, directory) in releases() {
        for toolchain in [Toolchain::Clang, Toolchain::Gcc] {
            if let Err(skip) = can_build("begin_end", toolchain).expect("the program is there") {
                skip.show();
                continue;
            }
            let program = build("begin_end", toolchain, Opt::O0, &[]).expect("it builds");
            // Each release with both compilers, and libomp 14 with all of it.
            let is_whole = directory.is_none();
            for registers in [true, false].into_iter().filter(|r| is_whole || *r == (toolchain == Toolchain::Clang)) {
                let mut launch = Launch::new(&program, Runtime::Libomp14, Env::Settled);
                if let Some(directory) = &directory {
                    launch = launch.variable("LD_LIBRARY_PATH", &directory.path().to_string_lossy());
                }
                run(&format!("{toolchain:?} on {release}"), launch, registers);
            }
        }
    }
}
