//! Threads that execute code of the runtime and wait for nothing, and what is known of a region that all members have left.

use serde_json::Value;
use test_programs::{Env, Kind, Launch, Opt, Running, Runtime, Skip, Toolchain, Wait, build, native_combinations};

use crate::common::{bounded, command, texts};

fn report(running: &Running) -> Value {
    let (out, err, _) = texts(&bounded(command().args(["--json", &running.pid.to_string()])));
    serde_json::from_str(&out).unwrap_or_else(|error| panic!("no JSON ({error}): {err}"))
}

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value[key].as_array().map_or(&[], Vec::as_slice)
}

/// On two processors, threads of a program that does little else than generate tasks are mostly in the call for that.
#[test]
fn threads_that_generate_tasks_are_in_the_runtime_and_do_not_wait() {
    const LOOKS: usize = 60;
    const ENOUGH: usize = 5;
    if !native_combinations().contains(&(Toolchain::Gcc, Runtime::Libgomp)) {
        return Skip::because("no gcc with libgomp").show();
    }
    let program = build("healthy/deep_tasks", Toolchain::Gcc, Opt::O2, &[]).expect("the program builds");
    let running = Launch::new(&program, Runtime::Libgomp, Env::Stock).start_healthy().expect("the program starts");
    let mut seen = 0;
    for _ in 0..LOOKS {
        let report = report(&running);
        let generates = |lwp: &Value| {
            let stack = list(&report, "stacks").iter().find(|stack| stack["lwp"] == *lwp);
            stack.is_some_and(|stack| stack["in_call"]["construct"] == "task")
        };
        let threads = list(&report["runtimes"][0], "threads").iter();
        for thread in threads.filter(|thread| generates(&thread["lwp"])) {
            // Locks of its own are all that the runtime waits for there.
            let kind = &thread["wait"]["value"]["kind"];
            assert!(thread["wait"]["unknown"].is_null(), "{thread}");
            assert!(kind.is_null() || kind == "runtime internal", "{thread}");
            // Registers alone tell of one that is in the C library: the runtime allocates the task.
            if thread["wait"]["origin"] == "stack" {
                assert_eq!(thread["state"]["value"]["name"], "overhead", "{thread}");
                seen += 1;
            }
        }
        if seen >= ENOUGH {
            return;
        }
    }
    panic!("no thread was seen in GOMP_task in {LOOKS} looks");
}

/// A function that the program chooses is not known, although one of the two is right before the call.
#[test]
fn region_with_a_chosen_body_that_is_over_has_no_function() {
    for (toolchain, runtime) in native_combinations().into_iter().filter(|(_, runtime)| !runtime.is_kmp()) {
        for opt in [Opt::O0, Opt::O2, Opt::O3] {
            let what = format!("{toolchain:?} {opt:?} on {runtime:?}");
            let program = build("tasks_left", toolchain, opt, &["-DCHOSEN"]).expect("the program builds");
            let running = Running::start(&program, runtime, Env::Settled).expect("the program starts");
            let report = report(&running);
            let [team] = list(&report["runtimes"][0], "teams") else { panic!("{what}: one team") };
            assert_eq!(team["function"]["code"], "gomp-no-region-function", "{what}: {team}");
            running.release().unwrap_or_else(|error| panic!("{what}: {error:?}"));
        }
    }
}

/// The call that opened the region names the function of its body. The records of undeferred tasks lie in the frames that called
/// their functions. Both hold without symbols as well.
#[test]
fn region_left_by_all_members_has_its_function() {
    let mut seen = 0;
    for (toolchain, runtime) in native_combinations().into_iter().filter(|(_, runtime)| !runtime.is_kmp()) {
        for (opt, flags) in [(Opt::O0, &[][..]), (Opt::O2, &[]), (Opt::O2, &["-s"])] {
            let what = format!("{toolchain:?} {opt:?} {flags:?} on {runtime:?}");
            let program = build("tasks_left", toolchain, opt, flags).expect("the program builds");
            let running = Running::start(&program, runtime, Env::Settled).expect("the program starts");
            let report = report(&running);
            let runtime = &report["runtimes"][0];
            let truth = &running.truth;
            let waiter = truth.threads.iter().find(|thread| thread.wait == Wait::Barrier).expect("a waiter");
            let holder = truth.threads.iter().find(|thread| thread.wait == Wait::Pipe).expect("a holder");
            let inside = |function: &Value, called_from: u64| {
                let addr = function["value"]["addr"].as_str().unwrap_or_else(|| panic!("{what}: {function}"));
                let addr = u64::from_str_radix(addr.trim_start_matches("0x"), 16).expect("an address");
                assert!((1..0x200).contains(&called_from.wrapping_sub(addr)), "{what}: {function}, {called_from:#x}");
            };
            let of = |thread: &test_programs::Thread| thread.task.as_ref().expect("a task").called_from.0;
            let [team] = list(runtime, "teams") else { panic!("{what}: one team") };
            inside(&team["function"], of(waiter));
            assert_eq!(team["construct"]["value"], "parallel", "{what}");
            assert_eq!(holder.task.as_ref().map(|task| task.kind), Some(Kind::Explicit), "{what}");
            let threads = list(runtime, "threads");
            let thread = threads.iter().find(|thread| thread["lwp"] == holder.lwp).expect("the holder");
            let tasks = list(runtime, "tasks");
            let current = &tasks[thread["task"]["value"].as_u64().expect("an index") as usize];
            assert_eq!(current["kind"]["value"], "undeferred", "{what}: {current}");
            inside(&current["function"], of(holder));
            let undeferred = tasks.iter().filter(|task| task["kind"]["value"] == "undeferred");
            let functions: Vec<&Value> = undeferred.map(|task| &task["function"]["value"]["addr"]).collect();
            assert_eq!(functions.len(), 2, "{what}");
            assert!(functions.iter().all(|addr| addr.is_string()) && functions[0] != functions[1], "{what}");
            running.release().unwrap_or_else(|error| panic!("{what}: {error:?}"));
            seen += 1;
        }
    }
    if seen == 0 {
        Skip::because("no gcc with libgomp").show();
    }
}
