//! The variables that locks are named after.

use serde_json::Value;
use test_programs::{Env, Launch, Opt, build, combinations};

use crate::common::json;

fn names_the_lock(flags: &[&str], opt: Opt, name: &str) {
    for (toolchain, runtime) in combinations() {
        let program = build("lock_names", toolchain, opt, flags).expect("the program builds");
        let running = Launch::new(&program, runtime, Env::Settled).start().expect("the program starts");
        let what = format!("{toolchain:?} {opt:?} on {runtime:?}");
        let waiter = running.truth.threads.iter().find(|thread| thread.role == "waiter").expect("a waiter");
        let (report, _) = json(&["waits", &running.pid.to_string()]);
        let locks: Vec<&Value> = report["runtimes"]
            .as_array()
            .into_iter()
            .flatten()
            .flat_map(|runtime| runtime["locks"].as_array().into_iter().flatten())
            .filter(|lock| lock["waiters"].as_array().is_some_and(|all| all.iter().any(|lwp| *lwp == waiter.lwp)))
            .collect();
        let [lock] = locks[..] else { panic!("{what}: {locks:?}") };
        assert_eq!(lock["name"], name, "{what}: {lock}");
        assert_eq!(address(lock), waiter.wait_object.map(|address| address.0), "{what}: {lock}");
        running.release().expect("it goes on");
    }
}

/// The lock's variable as far as the report has it, otherwise the runtime's lock.
fn address(lock: &Value) -> Option<u64> {
    let hex = lock["variable"].as_str().or(lock["object"].as_str())?;
    u64::from_str_radix(hex.trim_start_matches("0x"), 16).ok()
}

/// Nothing of the waiting function is on the stack: the jump at its end names the variable.
#[test]
fn lock_of_a_function_that_has_jumped_into_the_runtime() {
    names_the_lock(&[], Opt::O2, "last_lock");
}

#[test]
fn lock_that_is_part_of_a_variable_and_known_by_its_address() {
    for opt in [Opt::O0, Opt::O2] {
        names_the_lock(&["-DPART"], opt, "table[1].lock");
    }
}
