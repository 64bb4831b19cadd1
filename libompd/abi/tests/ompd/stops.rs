//! What holds at the places at which regions, tasks and threads begin and end, in a program that says what begins.
#![cfg(target_arch = "x86_64")]

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead as _, Read as _, Write as _};

use ompd::api::*;
use ompd::extension::{
    Event, Item, Origin, REGISTERS, StopPoint, ompdx_get_origin, ompdx_get_parallel_function, ompdx_get_stop,
    ompdx_set_stop, ompdx_stop_points,
};
use ompd::types::*;
use ompd_process::{Addr, Target, TargetExt};
use test_programs::{Env, Launch, Opt, Process, Runtime, Toolchain, build, combinations};

use crate::debugger::{Held, Session, out};
use crate::traced::{Happened, Traced};

/// One entry of the list, with its texts.
#[derive(Debug, Clone)]
struct Listed {
    point: StopPoint,
    place: String,
}

fn text(text: *const std::ffi::c_char) -> String {
    let text = unsafe { std::ffi::CStr::from_ptr(text) };
    text.to_str().expect("UTF-8").to_owned()
}

fn list(session: &Session) -> Vec<Listed> {
    let mut count = 0;
    let points = out(|points| unsafe { ompdx_stop_points(session.space, points, &raw mut count) }).expect("points");
    let entry = |n: usize| {
        let point = unsafe { points.add(n).read() };
        assert!(!text(point.runtime).is_empty());
        assert!((0..=REGISTERS as i32).contains(&point.register_count));
        assert_eq!(point.point == 0, point.address.address == 0);
        Listed { point, place: text(point.place) }
    };
    let all = (0..count as usize).map(entry).collect();
    unsafe { crate::debugger::give_back(points.cast()) };
    all
}

/// Why the region of a thread is not known.
fn why(thread: *mut ThreadHandle) -> String {
    let mut origin = Origin::Unknown;
    let text = out(|text| unsafe { ompdx_get_origin(thread.cast(), Item::ThreadRegion as i32, &raw mut origin, text) });
    format!("{origin:?}, {}", crate::debugger::take(text.expect("a text")))
}

/// What the program says of a construct: size, level, number.
type Meeting = [u32; 3];

struct Watch {
    session: Session,
    traced: Traced,
    points: Vec<Listed>,
    /// Distance of `meeting` from the thread pointer.
    meeting: i64,
    /// Reads by which it was known whether a hit counts, of each at a place with a condition.
    reads: Vec<u32>,
    /// Whether the library gets registers by itself, or is told what a place needs.
    generous: bool,
    /// Frames are looked at: they are the library's own, and not those that a runtime notes for tools.
    frames: bool,
    runtime: Runtime,
    /// Regions a thread has begun, with the task that met each.
    open: BTreeMap<i32, Vec<(*mut ParallelHandle, *mut TaskHandle)>>,
    tasks: BTreeMap<i32, Vec<*mut TaskHandle>>,
    /// Functions of constructs, and of tasks with how many there were.
    functions: BTreeMap<u32, u64>,
    task_functions: BTreeMap<u64, u32>,
    threads: BTreeSet<i32>,
    /// How often each thread has come to a barrier.
    barriers: BTreeMap<i32, u32>,
    /// Hits that count, by event and whether it is a symbol of OMPD's.
    hits: BTreeMap<(u32, i32), u32>,
    unavailable: BTreeMap<&'static str, u32>,
    /// Regions that OMPD's symbols tell of, as far as they are known.
    own: BTreeMap<i32, Vec<Option<*mut ParallelHandle>>>,
}

impl Watch {
    fn meeting_of(&self, tid: i32) -> Meeting {
        let target = &self.session.held.target;
        let thread = target.threads().iter().find(|t| t.lwp == tid).expect("the thread");
        let at = Addr(thread.pointer.expect("its thread pointer").0.wrapping_add_signed(self.meeting));
        [0, 4, 8].map(|offset| target.read_u32(at.offset(offset)).expect("what it meets"))
    }

    fn in_program(&self, addr: u64) -> bool {
        let target = &self.session.held.target;
        target.module_at(Addr(addr)).is_some_and(|module| Some(&module.path) == target.process().exe.as_ref())
    }

    fn level(&self, region: *mut ParallelHandle) -> Word {
        self.session.icv(region, "levels-var").expect("a level")
    }

    fn hit(&mut self, tid: i32, addr: u64) {
        self.session.held.target = Box::new(self.traced.look());
        self.session.held.stops.set(self.session.held.stops.get() + 1);
        let here = |listed: &&Listed| listed.point.address.address == addr && listed.point.point != 0;
        let listed = self.points.iter().filter(here).min_by_key(|l| l.point.own).expect("a place").clone();
        let found = self.session.thread(thread_id::LWP, tid as u64);
        let told_of = self.generous && listed.point.own == 0;
        if found.is_err() && listed.point.event == Event::ThreadBegin && self.runtime.is_kmp() && !told_of {
            // Who made the thread has not told the runtime of it yet.
            *self.unavailable.entry("thread that begins").or_default() += 1;
            *self.hits.entry((Event::ThreadBegin as u32, listed.point.own)).or_default() += 1;
            return;
        }
        let thread = found.expect("the thread that is at a stop is known");
        if !self.generous {
            let target = &self.session.held.target;
            let known = target.threads().iter().find(|t| t.lwp == tid).and_then(|t| t.registers.as_ref().ok());
            let registers = known.expect("registers");
            let wanted = &listed.point.registers[..listed.point.register_count as usize];
            let values: Vec<u64> = wanted.iter().map(|number| registers.general[usize::from(*number)]).collect();
            let rc = unsafe { ompdx_set_stop(thread, listed.point.point, values.as_ptr(), values.len() as Size) };
            assert_eq!(rc, Rc::OK, "{listed:?}");
        }
        let (mut event, mut counts) = (Event::TaskEnd, -1);
        self.session.held.reads.borrow_mut().clear();
        let point = out(|point| unsafe { ompdx_get_stop(thread, point, &raw mut event, &raw mut counts) });
        assert_eq!(point, Ok(listed.point.point), "{listed:?}");
        // Places with a condition are hit often, and mostly in vain.
        if self.generous && listed.point.own == 0 && !listed.point.condition.is_null() {
            self.reads.push(self.session.held.reads.borrow().values().sum());
        }
        assert_eq!(event, listed.point.event);
        if counts != 0 {
            *self.hits.entry((event as u32, listed.point.own)).or_default() += 1;
            if listed.point.own == 1 {
                match event {
                    Event::ParallelBegin => self.own_region_begins(tid, thread),
                    Event::ParallelEnd => self.own_region_ends(tid, thread),
                    _ => {}
                }
            }
            if listed.point.own == 0 {
                match event {
                    Event::ParallelBegin => self.region_begins(tid, thread, &listed),
                    Event::ParallelEnd => self.region_ends(tid, thread, &listed),
                    Event::TaskBegin => self.task_begins(tid, thread, &listed),
                    Event::TaskEnd => self.task_ends(tid, thread, &listed),
                    Event::ThreadBegin => assert!(self.threads.insert(tid), "a thread begins once"),
                    Event::ThreadEnd => {}
                    Event::BarrierBegin => *self.barriers.entry(tid).or_default() += 1,
                    // Their place in the code is all there is.
                    Event::LockAcquire
                    | Event::CriticalAcquire
                    | Event::TaskwaitBegin
                    | Event::WorksharingBegin
                    | Event::SingleBegin => {}
                }
            }
        }
        if !self.generous {
            assert_eq!(unsafe { ompdx_set_stop(thread, 0, std::ptr::null(), 0) }, Rc::OK);
        }
        assert_eq!(unsafe { ompd_rel_thread_handle(thread) }, Rc::OK);
    }

    fn region_begins(&mut self, tid: i32, thread: *mut ThreadHandle, at: &Listed) {
        let [size, level, construct] = self.meeting_of(tid);
        let region = out(|region| unsafe { ompd_get_curr_parallel_handle(thread, region) });
        let region =
            region.unwrap_or_else(|rc| panic!("{rc:?}, construct {construct} at {}: {}", at.place, why(thread)));
        let told = (self.session.icv(region, "team-size-var"), self.level(region));
        assert_eq!(told, (Ok(size.into()), level.into()), "construct {construct} at {}", at.place);
        match out(|function: *mut Address| unsafe { ompdx_get_parallel_function(region, function) }) {
            Ok(function) => {
                assert!(self.in_program(function.address), "{function:x?} of construct {construct}");
                let known = *self.functions.entry(construct).or_insert(function.address);
                assert_eq!(known, function.address, "construct {construct} has one function");
            }
            Err(rc) => {
                assert_eq!(rc, Rc::UNAVAILABLE);
                *self.unavailable.entry("function of a region").or_default() += 1;
                let may = self.runtime.is_kmp() && size == 1 || self.runtime == Runtime::Libgomp && !self.generous;
                assert!(may, "construct {construct} at {}", at.place);
            }
        }
        // The task is that which met the construct: its region is the one around the new one.
        let task = out(|task| unsafe { ompd_get_curr_task_handle(thread, task) }).expect("the encountering task");
        let around =
            out(|around| unsafe { ompd_get_enclosing_parallel_handle(region, around) }).expect("what is around");
        let of_task =
            out(|of_task| unsafe { ompd_get_task_parallel_handle(task, of_task) }).expect("region of the task");
        let order = out(|cmp| unsafe { ompd_parallel_handle_compare(around, of_task, cmp) });
        // Serialized regions nested in each other have one task in libomp.
        let shared = self.runtime.is_kmp() && size == 1 && order != Ok(0);
        if shared {
            assert!(self.level(of_task) >= Word::from(level) - 1);
        } else {
            assert_eq!((order, self.level(around)), (Ok(0), Word::from(level) - 1), "construct {construct}");
        }
        if let Some((open, _)) = self.open.get(&tid).and_then(|open| open.last()) {
            let order = out(|cmp| unsafe { ompd_parallel_handle_compare(around, *open, cmp) });
            assert_eq!(order, Ok(0), "what the thread began last is around construct {construct}");
        }
        if self.frames {
            self.frames(task, level, at);
        }
        unsafe {
            assert_eq!(ompd_rel_parallel_handle(around), Rc::OK);
            assert_eq!(ompd_rel_parallel_handle(of_task), Rc::OK);
        }
        self.open.entry(tid).or_default().push((region, task));
    }

    /// The task has called the runtime, from a function of the program that was called by the program or the C library.
    fn frames(&mut self, task: *mut TaskHandle, level: u32, at: &Listed) {
        let mut enter = FrameInfo::default();
        let exit = out(|exit| unsafe { ompd_get_task_frame(task, exit, &raw mut enter) });
        let Ok(exit) = exit else {
            *self.unavailable.entry("frames").or_default() += 1;
            return;
        };
        assert_eq!(enter.frame_flag, 0x11, "{}", at.place);
        let called_from = self.session.held.target.read_u64(Addr(enter.frame_address.address.wrapping_sub(8)));
        assert!(self.in_program(called_from.expect("a return address")), "level {level} at {}", at.place);
        let exit = exit.frame_address.address;
        assert!(
            if level == 1 { exit == 0 } else { exit > enter.frame_address.address },
            "level {level} at {}",
            at.place
        );
    }

    fn region_ends(&mut self, tid: i32, thread: *mut ThreadHandle, at: &Listed) {
        let (begun, met) = self.open.get_mut(&tid).and_then(Vec::pop).expect("a region that has begun");
        let region = out(|region| unsafe { ompd_get_curr_parallel_handle(thread, region) }).expect("the region");
        let order = out(|cmp| unsafe { ompd_parallel_handle_compare(begun, region, cmp) });
        assert_eq!(order, Ok(0), "what ends is what began last: {}", at.place);
        let task = out(|task| unsafe { ompd_get_curr_task_handle(thread, task) }).expect("the encountering task");
        let order = out(|cmp| unsafe { ompd_task_handle_compare(met, task, cmp) });
        assert_eq!(order, Ok(0), "the task is that which met the construct: {}", at.place);
        if self.frames {
            let level = u32::try_from(self.level(region)).expect("a level");
            self.frames(task, level, at);
        }
        unsafe {
            for region in [begun, region] {
                assert_eq!(ompd_rel_parallel_handle(region), Rc::OK);
            }
            for task in [met, task] {
                assert_eq!(ompd_rel_task_handle(task), Rc::OK);
            }
        }
    }

    /// At OMPD's own symbol: what is known is right, and little is not known.
    fn own_region_begins(&mut self, tid: i32, thread: *mut ThreadHandle) {
        let [size, level, construct] = self.meeting_of(tid);
        let region = out(|region| unsafe { ompd_get_curr_parallel_handle(thread, region) }).ok();
        match region {
            Some(region) => {
                let told = (self.session.icv(region, "team-size-var"), self.level(region));
                assert_eq!(told, (Ok(size.into()), level.into()), "construct {construct} at OMPD's symbol");
                let task = out(|task| unsafe { ompd_get_curr_task_handle(thread, task) }).expect("the task");
                let of_task = out(|of| unsafe { ompd_get_task_parallel_handle(task, of) }).expect("its region");
                let around = self.level(of_task);
                // Serialized regions nested in each other have one task.
                let fits = around == Word::from(level) - 1 || size == 1 && around >= Word::from(level);
                assert!(fits, "construct {construct}: task of a region at level {around}");
                unsafe {
                    assert_eq!(ompd_rel_parallel_handle(of_task), Rc::OK);
                    assert_eq!(ompd_rel_task_handle(task), Rc::OK);
                }
            }
            None => *self.unavailable.entry("region at OMPD's symbol").or_default() += 1,
        }
        self.own.entry(tid).or_default().push(region);
    }

    fn own_region_ends(&mut self, tid: i32, thread: *mut ThreadHandle) {
        let begun = self.own.get_mut(&tid).and_then(Vec::pop).expect("a region that has begun");
        let region = out(|region| unsafe { ompd_get_curr_parallel_handle(thread, region) }).expect("the region");
        if let Some(begun) = begun {
            assert_eq!(out(|cmp| unsafe { ompd_parallel_handle_compare(begun, region, cmp) }), Ok(0));
            assert_eq!(unsafe { ompd_rel_parallel_handle(begun) }, Rc::OK);
        }
        assert_eq!(unsafe { ompd_rel_parallel_handle(region) }, Rc::OK);
    }

    fn task_begins(&mut self, tid: i32, thread: *mut ThreadHandle, at: &Listed) {
        let task = out(|task| unsafe { ompd_get_curr_task_handle(thread, task) }).expect("the task");
        let implicit = self.session.icv(task, "implicit-task-var");
        assert_eq!(implicit, Ok(0), "{}", at.place);
        match out(|function: *mut Address| unsafe { ompd_get_task_function(task, function) }) {
            Ok(function) => {
                assert!(self.in_program(function.address), "{function:x?} at {}", at.place);
                *self.task_functions.entry(function.address).or_default() += 1;
            }
            Err(rc) => panic!("{rc:?}: the function of a task at {}", at.place),
        }
        self.tasks.entry(tid).or_default().push(task);
    }

    fn task_ends(&mut self, tid: i32, thread: *mut ThreadHandle, at: &Listed) {
        let begun = self.tasks.get_mut(&tid).and_then(Vec::pop).expect("a task that has begun");
        let task = out(|task| unsafe { ompd_get_curr_task_handle(thread, task) }).expect("the task");
        let order = out(|cmp| unsafe { ompd_task_handle_compare(begun, task, cmp) });
        assert_eq!(order, Ok(0), "what ends is what began last: {}", at.place);
        unsafe {
            assert_eq!(ompd_rel_task_handle(begun), Rc::OK);
            assert_eq!(ompd_rel_task_handle(task), Rc::OK);
        }
    }

    fn hits(&self, event: Event) -> u32 {
        self.hits.get(&(event as u32, 0)).copied().unwrap_or(0)
    }
}

fn run(toolchain: Toolchain, runtime: Runtime, generous: bool, variables: &[(&str, &str)]) -> Watch {
    let program = build("begin_end", toolchain, Opt::O0, &[]).expect("it builds");
    // Before GCC 11 libgomp wants to be asked for nested regions.
    let launch = Launch::new(&program, runtime, Env::Settled).variable("OMP_NESTED", "true");
    let launch = variables.iter().fold(launch, |launch, (name, value)| launch.variable(name, value));
    let Process { mut child, mut stdin, mut stdout, .. } = launch.spawn().expect("it starts");
    let mut line = String::new();
    stdout.read_line(&mut line).expect("a line");
    assert_eq!(line, "ready\n");
    let mut traced = Traced::new(child.id() as i32);
    let standing = traced.look();
    let file =
        standing.modules().iter().find(|m| Some(&m.path) == standing.process().exe.as_ref()).expect("the program");
    let file = file.file.as_ref().expect("its file");
    let meeting = file.symbol("meeting").and_then(|symbol| file.thread_pointer_offset(&symbol)).expect("a variable");
    let session = Session::new(201_811, Held::of(Box::new(standing), generous));
    let points = list(&session);
    for listed in points.iter().filter(|listed| listed.point.point != 0) {
        traced.set_breakpoint(listed.point.address.address);
    }
    stdin.write_all(b"x").expect("the program reads");
    let mut watch = Watch {
        session,
        traced,
        points,
        meeting,
        reads: Vec::new(),
        generous,
        frames: generous && variables.is_empty(),
        runtime,
        open: BTreeMap::new(),
        tasks: BTreeMap::new(),
        functions: BTreeMap::new(),
        task_functions: BTreeMap::new(),
        threads: BTreeSet::new(),
        barriers: BTreeMap::new(),
        hits: BTreeMap::new(),
        unavailable: BTreeMap::new(),
        own: BTreeMap::new(),
    };
    let status = loop {
        match watch.traced.run() {
            Happened::Hit(tid, addr) => {
                watch.hit(tid, addr);
                watch.traced.step_over(tid, addr);
            }
            Happened::Exited(status) => break status,
        }
    };
    assert_eq!(status, 0);
    // Its status was had by the tracer.
    let _ = child.wait();
    let mut said = String::new();
    stdout.read_to_string(&mut said).expect("what it says");
    let said: BTreeMap<&str, u32> = said
        .split_whitespace()
        .filter_map(|part| part.split_once('='))
        .map(|(name, count)| (name, count.parse().expect("a number")))
        .collect();
    let regions = said["regions"] + said["serialized"];
    let tasks = said["deferred"] + said["undeferred"];
    let _ = writeln!(
        std::io::stderr(),
        "begin_end, {toolchain:?} on {runtime:?}{}: hits {:?}, {regions} regions, {tasks} tasks, {} threads; unavailable: {:?}",
        if generous { ", with registers" } else { "" },
        watch.hits,
        watch.traced.begun,
        watch.unavailable,
    );
    let most = watch.reads.iter().max();
    assert!(most.is_none_or(|most| *most <= 20), "reads to know whether a hit counts: {:?}", watch.reads);
    assert_eq!(watch.hits(Event::ParallelBegin), regions, "{:#?}", watch.points);
    assert_eq!(watch.hits(Event::ParallelEnd), regions);
    assert_eq!(watch.hits(Event::TaskBegin), tasks);
    assert_eq!(watch.hits(Event::TaskEnd), tasks);
    // In each round 2 + 2 * 3 + 4 + 2 threads reach the end of a region of several threads. In libgomp 4 + 3 more end regions of
    // one thread.
    let barriers: u32 = watch.barriers.values().sum();
    assert_eq!(barriers, if runtime.is_kmp() { 3 * 14 } else { 3 * 21 }, "{:?}", watch.barriers);
    assert!(watch.open.values().all(Vec::is_empty) && watch.tasks.values().all(Vec::is_empty));
    assert_eq!(watch.hits(Event::ThreadBegin) as usize, watch.traced.begun);
    // Three task constructs: one of three tasks a round, two of one each, one of them met twice.
    let mut each: Vec<u32> = watch.task_functions.values().copied().collect();
    each.sort_unstable();
    assert_eq!(each, [3, 6, 9]);
    let distinct: BTreeSet<u64> = watch.functions.values().copied().collect();
    assert_eq!(distinct.len(), watch.functions.len(), "constructs have functions of their own");
    watch
}

#[test]
fn at_each_stop_the_handles_are_what_ompd_asks_for() {
    for (toolchain, runtime) in combinations() {
        for generous in [true, false] {
            run(toolchain, runtime, generous, &[]);
        }
    }
}

/// With OMPD's support in the runtime switched on, its own symbols are passed through as well.
#[test]
fn hits_of_ompds_own_symbols_are_those_of_the_equivalent_places() {
    for (toolchain, runtime) in combinations() {
        if runtime != Runtime::Libiomp5 {
            continue;
        }
        let watch = run(toolchain, runtime, true, &[("OMP_DEBUG", "enabled")]);
        for event in [Event::ParallelBegin, Event::ParallelEnd, Event::TaskBegin, Event::TaskEnd, Event::ThreadBegin] {
            let [ours, own] = [0, 1].map(|own| watch.hits.get(&(event as u32, own)));
            assert_eq!(ours, own, "{event:?}, {toolchain:?}");
        }
        // Teams of threads that are yet to be made.
        let regions = watch.unavailable.get("region at OMPD's symbol").copied().unwrap_or(0);
        assert!(regions <= 12, "{regions} regions, {toolchain:?}");
    }
}
