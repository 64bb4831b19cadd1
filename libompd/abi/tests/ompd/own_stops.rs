//! The answers at OMPD's own symbols to a debugger that knows only OMPD. It has not asked for places to stop at, and never says
//! that a thread is at one.
#![cfg(target_arch = "x86_64")]

use std::collections::BTreeMap;
use std::io::{BufRead as _, Write as _};

use ompd::api::*;
use ompd::extension::{Event, StopPoint, ompdx_stop_points};
use ompd::types::*;
use ompd_process::TargetExt;
use test_programs::{Env, Launch, Opt, Process, Runtime, Toolchain, build, combinations};

use crate::current::{Answer, ask};
use crate::debugger::{Held, Session, out};
use crate::traced::{Happened, Traced};

/// What the debugger tells of registers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tells {
    /// All of them, by the segment for that.
    Registers,
    /// Each as the address of an expression.
    Expressions,
    Nothing,
}

/// What is unavailable, by event: regions, tasks, and all hits.
type Counts = BTreeMap<&'static str, [u32; 3]>;

fn name(event: Event) -> &'static str {
    match event {
        Event::ParallelBegin => "parallel begin",
        Event::ParallelEnd => "parallel end",
        Event::TaskBegin => "task begin",
        Event::TaskEnd => "task end",
        Event::ThreadBegin => "thread begin",
        Event::ThreadEnd => "thread end",
        Event::BarrierBegin => "barrier begin",
        Event::LockAcquire => "lock acquire",
        Event::CriticalAcquire => "critical acquire",
        Event::TaskwaitBegin => "taskwait begin",
        Event::WorksharingBegin => "worksharing begin",
        Event::SingleBegin => "single begin",
    }
}

fn count(counts: &mut Counts, what: &'static str, answer: Answer) {
    let counted = counts.entry(what).or_default();
    counted[0] += u32::from(answer.region.is_err());
    counted[1] += u32::from(answer.task.is_err());
    counted[2] += 1;
}

/// Runs the program with breakpoints at OMPD's symbols, `behind` bytes from their entries, and at the equivalent places, where another
/// debugger is told what holds. What the first gets has to be that, or unavailable.
fn run(toolchain: Toolchain, tells: Tells, behind: u64) -> Counts {
    let program = build("begin_end", toolchain, Opt::O0, &[]).expect("it builds");
    let launch = Launch::new(&program, Runtime::Libiomp5, Env::Settled).variable("OMP_DEBUG", "enabled");
    let Process { mut child, mut stdin, mut stdout, .. } = launch.spawn().expect("it starts");
    let mut line = String::new();
    stdout.read_line(&mut line).expect("a line");
    assert_eq!(line, "ready\n");
    let mut traced = Traced::new(child.id() as i32);
    let mut session = Session::new(201_811, Held::of(Box::new(traced.look()), true));
    let mut held = Box::new(Held::of(Box::new(traced.look()), tells == Tells::Registers));
    held.expressions = tells == Tells::Expressions;
    let context: *mut AddressSpaceContext = (&raw mut *held).cast();
    let plain = out(|space| unsafe { ompd_process_initialize(context, space) }).expect("an address space");
    let mut number = 0;
    let points = out(|points| unsafe { ompdx_stop_points(session.space, points, &raw mut number) }).expect("points");
    let listed: Vec<StopPoint> = (0..number as usize).map(|n| unsafe { points.add(n).read() }).collect();
    unsafe { crate::debugger::give_back(points.cast()) };
    let at: BTreeMap<(u64, bool), Event> = listed
        .iter()
        .filter(|point| point.point != 0 && point.event as u32 <= Event::BarrierBegin as u32)
        .map(|point| {
            let own = point.own == 1;
            ((point.address.address + if own { behind } else { 0 }, own), point.event)
        })
        .collect();
    at.keys().for_each(|(addr, _)| traced.set_breakpoint(*addr));
    stdin.write_all(b"x").expect("the program reads");
    // By thread and event: what the debugger that is told gets at equivalent places, and the other at OMPD's symbols.
    let mut truths: BTreeMap<(i32, u32), Vec<Answer>> = BTreeMap::new();
    let mut answers: BTreeMap<(i32, u32), Vec<Answer>> = BTreeMap::new();
    let mut counts = Counts::new();
    loop {
        let (tid, addr) = match traced.run() {
            Happened::Hit(tid, addr) => (tid, addr),
            Happened::Exited(status) => {
                assert_eq!(status, 0);
                break;
            }
        };
        for held in [&mut session.held, &mut held] {
            held.target = Box::new(traced.look());
            held.stops.set(held.stops.get() + 1);
        }
        if let Some(event) = at.get(&(addr, false)) {
            if *event == Event::BarrierBegin {
                let truth = ask(&session, session.space, tid).expect("a thread");
                let answer = ask(&session, plain, tid).expect("a thread");
                assert!(answer.region.is_err() || answer.region == truth.region, "{answer:?} {truth:?}");
                assert!(answer.task.is_err() || answer.task == truth.task, "{answer:?} {truth:?}");
                count(&mut counts, "elsewhere", answer);
            } else if !matches!(event, Event::ThreadBegin | Event::ThreadEnd) {
                let truth = ask(&session, session.space, tid).expect("a thread");
                truths.entry((tid, *event as u32)).or_default().push(truth);
            }
        }
        if let Some(event) =
            at.get(&(addr, true)).filter(|event| !matches!(event, Event::ThreadBegin | Event::ThreadEnd))
        {
            let answer = ask(&session, plain, tid).expect("a thread");
            let target = &session.held.target;
            let stopped = target.threads().iter().find(|thread| thread.lwp == tid).expect("the thread");
            let sp = stopped.registers.as_ref().expect("registers").sp;
            let returns = target.read_ptr(sp).expect("a return address");
            let caller = target.module_at(returns).and_then(|module| module.symbol_at(returns));
            let caller = caller.map_or_else(String::new, |(symbol, _)| symbol.name);
            if caller.contains("GOMP_") {
                assert_eq!(answer.region, Err(Rc::UNAVAILABLE), "a second hit, {caller}");
                count(&mut counts, "second hit", answer);
            } else if *event == Event::TaskEnd && !caller.contains("_if0") && !caller.contains("invoke_task") {
                assert_eq!(answer.task, Err(Rc::UNAVAILABLE), "no task ends in {caller}");
                count(&mut counts, "no task ends", answer);
            } else {
                let what = if caller.contains("_if0") && *event == Event::TaskEnd {
                    "undeferred task end"
                } else {
                    name(*event)
                };
                count(&mut counts, what, answer);
                answers.entry((tid, *event as u32)).or_default().push(answer);
            }
        }
        traced.step_over(tid, addr);
    }
    let _ = child.wait();
    assert_eq!(unsafe { ompd_rel_address_space_handle(plain) }, Rc::OK);
    assert_eq!(truths.keys().collect::<Vec<_>>(), answers.keys().collect::<Vec<_>>());
    for (of, answers) in &answers {
        let truths = &truths[of];
        assert_eq!(truths.len(), answers.len(), "{of:?}");
        for (truth, answer) in truths.iter().zip(answers) {
            assert!(truth.region.is_ok() && truth.task.is_ok(), "{truth:?}");
            assert!(
                matches!(answer.region, Err(Rc::UNAVAILABLE)) || answer.region == truth.region,
                "{of:?} {answer:?} {truth:?}"
            );
            assert!(
                matches!(answer.task, Err(Rc::UNAVAILABLE)) || answer.task == truth.task,
                "{of:?} {answer:?} {truth:?}"
            );
        }
    }
    let _ = writeln!(std::io::stderr(), "{toolchain:?}, {tells:?}, {behind} behind: {counts:?}");
    counts
}

/// At each stop so many regions and tasks may be unavailable, of so many hits.
fn assert_bounds(counts: &Counts, bounds: &[(&str, [u32; 2])]) {
    for (what, [regions, tasks, hits]) in counts {
        let (_, [most_regions, most_tasks]) = bounds.iter().find(|(of, _)| of == what).expect("a bound");
        assert!(regions <= most_regions && tasks <= most_tasks, "{what}: {regions}, {tasks} of {hits}");
    }
}

fn on_libiomp5() -> impl Iterator<Item = Toolchain> {
    let of = |(toolchain, runtime)| (runtime == Runtime::Libiomp5).then_some(toolchain);
    combinations().into_iter().filter_map(of)
}

/// The debugger tells the program counter. Unavailable are teams of new threads, and the memory of a task that is free already.
#[test]
fn a_debugger_that_knows_only_ompd_gets_the_handles_of_the_stop() {
    for toolchain in on_libiomp5() {
        for (tells, behind) in [(Tells::Registers, 0), (Tells::Expressions, 4)] {
            let counts = run(toolchain, tells, behind);
            let bounds = [
                ("parallel begin", [12, 12]),
                ("parallel end", [0, 0]),
                ("task begin", [0, 0]),
                ("task end", [0, 0]),
                ("undeferred task end", [0, 6]),
                ("second hit", [36, 36]),
                ("no task ends", [u32::MAX, u32::MAX]),
                ("elsewhere", [0, 0]),
            ];
            assert_bounds(&counts, &bounds);
        }
    }
}

/// The debugger tells nothing but memory. Unavailable is also what a call that has returned leaves in doubt.
#[test]
fn without_registers_a_debugger_that_knows_only_ompd_gets_no_wrong_handle() {
    for toolchain in on_libiomp5() {
        let counts = run(toolchain, Tells::Nothing, 0);
        let bounds = [
            ("parallel begin", [18, 30]),
            ("parallel end", [16, 30]),
            ("task begin", [0, 13]),
            ("task end", [0, 10]),
            ("undeferred task end", [0, 6]),
            ("second hit", [36, 36]),
            ("no task ends", [u32::MAX, u32::MAX]),
            ("elsewhere", [24, 34]),
        ];
        assert_bounds(&counts, &bounds);
    }
}
