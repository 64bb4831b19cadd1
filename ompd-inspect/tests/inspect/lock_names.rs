//! The variables that locks are named after.

use std::collections::{HashMap, HashSet};

use serde_json::Value;
use test_programs::{Env, Launch, Opt, Runtime, Toolchain, build, can_build, combinations, native_combinations};

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

/// What each waiting thread of `lock_objects` waits for, by thread.
fn awaited(report: &Value) -> HashMap<i64, String> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let runtimes = list(&report["runtimes"]);
    let waits = runtimes.iter().flat_map(|runtime| list(&runtime["threads"])).flat_map(|thread| {
        let (lock, object) = (&thread["wait"]["value"]["name"], &thread["outside"]["wait"]["object"]);
        [lock, object].map(|name| (thread["lwp"].clone(), name.clone()))
    });
    let named = |(lwp, name): (Value, Value)| Some((lwp.as_i64()?, name.as_str()?.to_owned()));
    waits.filter_map(named).collect()
}

/// The name that the source gives the lock. A number of a lock of libomp may be with it, and its address where several have the name.
fn is_named(name: &str, role: &str) -> bool {
    let inferred = name.split_once(" (probably ").and_then(|(_, rest)| rest.strip_suffix(')')).unwrap_or(name);
    let alone = inferred.split_once(" (0x").map_or(inferred, |(text, _)| text);
    alone == role && (alone == inferred || role.starts_with("alone"))
}

/// Compares what the waits of a program are for with the roles of its threads, live and in cores. Returns how many were compared.
fn names_are_those_of_the_source(program: &str, toolchain: Toolchain, runtime: Runtime, alone: usize) -> usize {
    let mut seen = 0;
    for opt in [Opt::O0, Opt::O2] {
        let program = build(program, toolchain, opt, &[]).expect("the program builds");
        let running = Launch::new(&program, runtime, Env::Settled).start_hanging().expect("the program starts");
        let directory = tempfile::tempdir().expect("a directory");
        let core = match running.gcore(directory.path()).expect("gcore works") {
            Ok(core) => Some(core.to_string_lossy().into_owned()),
            Err(skip) => {
                skip.show();
                None
            }
        };
        for target in std::iter::once(running.pid.to_string()).chain(core) {
            let what = format!("{toolchain:?} {opt:?} on {runtime:?}, {target}");
            let names = awaited(&json(&["waits", &target]).0);
            let waiters = running.truth.threads.iter().filter(|thread| thread.role != "holder");
            let mut of_this_frame = HashSet::new();
            for thread in waiters {
                let name = names.get(&i64::from(thread.lwp)).unwrap_or_else(|| panic!("{what}: {thread:?} {names:?}"));
                assert!(is_named(name, &thread.role), "{what}: {name}, not {}", thread.role);
                if thread.role.starts_with("alone") {
                    of_this_frame.insert(name.clone());
                }
                seen += 1;
            }
            // Several threads execute the function: the same text would look like one lock.
            assert_eq!(of_this_frame.len(), alone, "{what}: {of_this_frame:?}");
        }
    }
    seen
}

#[test]
fn locks_on_stacks_and_in_allocated_memory_have_the_names_of_the_source() {
    let all = native_combinations();
    let seen: Vec<usize> = all
        .iter()
        .map(|(toolchain, runtime)| names_are_those_of_the_source("lock_objects", *toolchain, *runtime, 2))
        .collect();
    assert!(seen.iter().all(|seen| *seen >= 18), "{seen:?}");
}

#[test]
fn locks_in_arrays_of_fortran_have_its_subscripts() {
    const PROGRAM: &str = "lock_objects_fortran";
    match can_build(PROGRAM, Toolchain::Gcc).expect("the program is there") {
        Ok(()) => assert!(names_are_those_of_the_source(PROGRAM, Toolchain::Gcc, Runtime::Libgomp, 0) >= 6),
        Err(skip) => skip.show(),
    }
}
