//! What an OMPT tool files with threads, regions and tasks, and the frames it is told of.

use ompd::api::*;
use ompd::types::*;
use test_programs::{Env, Launch, Opt, Runtime, Skip, Toolchain, build, can_build};

use crate::debugger::{Held, Session, out};

#[path = "../../../runtime/tests/common/snapshot.rs"]
mod one_stop;

/// `ompt_frame_t` as the tool reads it: address and flags.
type Frame = (u64, u64);

fn filed<T>(handle: *mut T, scope: ScopeNumber) -> Result<(Word, u64), Rc> {
    let (mut value, mut ptr) = (0, Address::default());
    match unsafe { ompd_get_tool_data(handle.cast(), scope, &raw mut value, &raw mut ptr) } {
        Rc::OK => Ok((value, ptr.address)),
        rc => Err(rc),
    }
}

fn frames(task: *mut TaskHandle) -> Result<(Frame, Frame), Rc> {
    let (mut exit, mut enter) = (FrameInfo::default(), FrameInfo::default());
    match unsafe { ompd_get_task_frame(task, &raw mut exit, &raw mut enter) } {
        Rc::OK => {
            let frame = |of: FrameInfo| (of.frame_address.address, of.frame_flag as u64);
            Ok((frame(exit), frame(enter)))
        }
        rc => Err(rc),
    }
}

#[test]
fn what_a_tool_has_filed() {
    if let Err(skip) = can_build("ompt_tool", Toolchain::Clang).expect("the program is there") {
        return skip.show();
    }
    let program = build("ompt_tool", Toolchain::Clang, Opt::O2, &[]).expect("it builds");
    let (mut all_noted, mut tried) = (0, 0);
    for (library, what) in test_programs::libomp_libraries() {
        let Some(running) = test_programs::Held::start(&program.path, library.path(), &what, &[], &[]) else {
            continue;
        };
        if !one_stop::snapshot(running.pid(), &what).instance.missing.is_empty() {
            Skip::because(format!("{what}: its layout is not known as a whole")).show();
            continue;
        }
        let session = Session::new(202_011, Held::live(running.pid(), false));
        let mut noted = Vec::new();
        let told = running.told("thread");
        assert_eq!(told.len(), 3, "{what}");
        for words in &told {
            let number = |at: usize| words[at].parse::<u64>().expect("a number");
            let address = |at: usize| u64::from_str_radix(words[at], 16).expect("an address");
            let thread = session.thread(thread_id::LWP, number(0)).expect("a thread");
            let region = out(|region| unsafe { ompd_get_curr_parallel_handle(thread, region) }).expect("a region");
            let task = out(|task| unsafe { ompd_get_curr_task_handle(thread, task) }).expect("a task");
            let same = |value: u64| Ok((value as Word, value));
            assert_eq!(filed(thread, scope::THREAD), same(number(1)), "{what}");
            assert_eq!(filed(region, scope::PARALLEL), same(number(2)), "{what}");
            assert_eq!(filed(task, scope::TASK), same(number(3)), "{what}");
            assert_eq!(filed(task, scope::THREAD), Err(Rc::INCOMPATIBLE), "{what}");
            let exit = (address(4), number(5));
            let enter = (address(6), number(7));
            // What is no address was in a register that the runtime does not keep a frame in.
            if exit.0 < 0x1_0000 {
                assert_eq!(frames(task), Err(Rc::UNAVAILABLE), "{what}");
            } else {
                let enter = if enter.0 == 0 { (0, 0) } else { enter };
                assert_eq!(frames(task), Ok((exit, enter)), "{what}");
                let code = out(|at: *mut Address| unsafe { ompd_get_task_function(task, at) }).expect("code");
                noted.push((number(0), exit.0, code.address & !7));
            }
            tried += 1;
        }
        drop(session);
        // An address that is on no stack, or of no word there, is none of a frame.
        for &(lwp, exit, code) in &noted {
            for not_a_frame in [code, exit + 4] {
                let held = Held::live(running.pid(), false);
                held.swapped.set(Some((exit, not_a_frame)));
                let session = Session::new(202_011, held);
                let thread = session.thread(thread_id::LWP, lwp).expect("a thread");
                let task = out(|task| unsafe { ompd_get_curr_task_handle(thread, task) }).expect("a task");
                assert_eq!(frames(task), Err(Rc::UNAVAILABLE), "{what}: {not_a_frame:#x}");
            }
        }
        all_noted += noted.len();
        running.end();
    }
    assert!(tried > 0 && all_noted > 0, "{tried} tasks, {all_noted} with frames");
}

/// A runtime without OMPT has no place for what a tool may file.
#[test]
fn a_runtime_without_tools_says_so() {
    let program = build("nested", Toolchain::Gcc, Opt::O0, &[]).expect("it builds");
    let running = Launch::new(&program, Runtime::Libgomp, Env::Settled).start().expect("it starts");
    let session = Session::new(202_011, Held::live(running.pid, false));
    let thread = session.thread(thread_id::LWP, running.truth.coordinator as u64).expect("a thread");
    let region = out(|region| unsafe { ompd_get_curr_parallel_handle(thread, region) }).expect("a region");
    let task = out(|task| unsafe { ompd_get_curr_task_handle(thread, task) }).expect("a task");
    assert_eq!(filed(thread, scope::THREAD), Err(Rc::UNSUPPORTED));
    assert_eq!(filed(region, scope::PARALLEL), Err(Rc::UNSUPPORTED));
    assert_eq!(filed(task, scope::TASK), Err(Rc::UNSUPPORTED));
    assert_eq!(filed(task, scope::THREAD), Err(Rc::INCOMPATIBLE));
}
