//! Debuggers that lack registers and say so. A register that is absent has a wrong value, which must not be used.

use ompd::extension::*;
use serde_json::Value;
use test_programs::{
    Env, HANGS, Launch, Opt, Running, Runtime, Toolchain, Truth, build, compare, compare_verdicts, native_combinations,
};

use crate::debugger::{Held, Session, out, take};

/// All words of `struct user_regs_struct`, but for `cs`, `eflags`, `ss` and those behind `fs_base`, which are never used.
const ALL: u64 = 0x7fff | ORIG_RAX | RIP | RSP | FS_BASE;
const ORIG_RAX: u64 = 1 << 15;
const RIP: u64 = 1 << 16;
const RSP: u64 = 1 << 19;
const FS_BASE: u64 = 1 << 21;

fn report(pid: i32, words: u64) -> Value {
    let held = Held { words: Some(words), ..Held::live(pid, true) };
    let session = Session::new(202_411, held);
    let json = out(|json| unsafe { ompdx_report_json(session.space, json) }).map(take).expect("a report");
    serde_json::from_str(&json).expect("JSON")
}

/// What is wrong in a report, and what is unknown in it.
fn differences(truth: &Truth, report: &Value, runtime: Runtime, toolchain: Toolchain) -> Vec<String> {
    let found = compare(truth, report, runtime, toolchain);
    [found.differences, found.unknown, found.lacking].concat()
}

#[test]
fn the_library_finds_thread_pointers_and_system_calls_that_a_debugger_lacks() {
    if cfg!(not(target_arch = "x86_64")) {
        return;
    }
    for (toolchain, runtime) in native_combinations() {
        for program in ["nested", "tasks", "lock"] {
            let built = build(program, toolchain, Opt::O2, &[]).expect("it builds");
            let running = Running::start(&built, runtime, Env::Settled).expect("it starts");
            for absent in [0, FS_BASE, ORIG_RAX, FS_BASE | ORIG_RAX] {
                let report = report(running.pid, ALL & !absent);
                let found = differences(&running.truth, &report, runtime, toolchain);
                assert!(found.is_empty(), "{program} on {runtime:?} without {absent:#x}: {found:#?}");
            }
        }
    }
}

#[test]
fn verdicts_need_no_number_of_a_system_call() {
    if cfg!(not(target_arch = "x86_64")) {
        return;
    }
    for (toolchain, runtime) in native_combinations() {
        for name in ["hangs/lock_cycle", "hangs/self_lock"] {
            let case = HANGS.iter().find(|case| case.program == name).expect("it is listed");
            if !case.works(toolchain, runtime) {
                continue;
            }
            let built = build(case.program, toolchain, Opt::O2, case.flags).expect("it builds");
            let running = Launch::new(&built, runtime, Env::Settled).start_hanging().expect("it hangs");
            let report = report(running.pid, ALL & !ORIG_RAX & !FS_BASE);
            let found = compare_verdicts(&running.truth, &report, running.truth.owners_recorded(runtime));
            let wrong = [found.differences, found.unknown, found.lacking].concat();
            assert!(wrong.is_empty(), "{name} on {runtime:?}: {wrong:#?}");
        }
    }
}

/// Of a thread whose stack pointer is absent, nothing is known that needs it; the process can be read all the same.
#[test]
fn without_a_register_that_is_needed_there_are_none() {
    if cfg!(not(target_arch = "x86_64")) {
        return;
    }
    for (toolchain, runtime) in native_combinations() {
        let built = build("nested", toolchain, Opt::O0, &[]).expect("it builds");
        let running = Running::start(&built, runtime, Env::Settled).expect("it starts");
        let report = report(running.pid, ALL & !RSP);
        let stacks = report["stacks"].as_array().map_or(&[][..], Vec::as_slice);
        assert!(stacks.iter().all(|stack| stack["end"]["complete"] == false), "{runtime:?}: {stacks:#?}");
        let used = report["runtimes"].as_array().expect("runtimes");
        assert!(used.iter().any(|runtime| runtime["teams"].as_array().is_some_and(|all| all.len() == 4)), "{report}");
    }
}
