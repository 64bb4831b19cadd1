//! Cores of another machine: what the kernel of an emulated aarch64 machine wrote of the test programs, against what these
//! said of themselves.

use test_programs::{
    Case, Comparison, Guest, HANGS, Opt, Runtime, STEADY_PROGRAMS, Toolchain, Truth, compare_verdicts, emulate,
};

use crate::common;

/// Programs whose every value a core of any machine has.
const STEADY: [&str; 8] =
    ["nested", "lock", "tasks", "barrier_missing", "region_end", "idle", "user_pthread", "serialized"];

/// What threads spin for, and what the report calls it.
const SPINNING: [(&str, &str); 4] =
    [("barrier", "barrier"), ("lock", "lock"), ("nest lock", "lock"), ("critical", "critical")];

fn guests() -> Vec<Guest> {
    let mut guests = Vec::new();
    for program in STEADY {
        guests.push(Guest { program, opt: Opt::O2, flags: &[], spins: None });
    }
    for (wanted, _) in SPINNING {
        guests.push(Guest { program: "spinning", opt: Opt::O2, flags: &[], spins: Some(wanted) });
    }
    // The cross compiler has C only; the core would be that of the wrong process.
    let elsewhere = ["hangs/lock_cycle_cpp", "hangs/lock_cycle_fortran", "hangs/fork_child"];
    for Case { program, flags, .. } in HANGS.iter().filter(|case| !elsewhere.contains(&case.program)) {
        guests.push(Guest { program, opt: Opt::O2, flags, spins: None });
    }
    guests
}

#[test]
fn cores_of_an_emulated_machine() {
    assert!(STEADY.iter().all(|program| STEADY_PROGRAMS.contains(program)));
    let emulated = match emulate(&guests()).expect("the programs run on the machine") {
        Ok(emulated) => emulated,
        Err(skip) => return skip.show(),
    };
    let root = emulated.root();
    let root = root.to_str().expect("a plain path");
    let mut differences = Vec::new();
    for left in &emulated.cores {
        let core = left.core.to_str().expect("a plain path");
        let what = format!("{:?}", left.guest);
        let args = ["--lib-root", root, core];
        if let Some(wanted) = left.guest.spins {
            differences.extend(spins(&what, wanted, &left.truth, &args));
        } else if left.guest.program.contains('/') {
            let (report, _) = common::json(&["waits", "--lib-root", root, core]);
            let recorded = left.truth.owners_recorded(Runtime::Libgomp);
            let Comparison { differences: differ, unknown, lacking, .. } =
                compare_verdicts(&left.truth, &report, recorded);
            differences.extend([differ, unknown, lacking].iter().flatten().map(|line| format!("{what}: {line}")));
        } else {
            differences.extend(common::check_by(&what, &left.truth, Runtime::Libgomp, Toolchain::Gcc, &args));
        }
    }
    assert!(differences.is_empty(), "{} differences:\n{}", differences.len(), differences.join("\n"));
}

/// The thread that waits without sleeping is known to, and for what.
fn spins(what: &str, wanted: &str, truth: &Truth, args: &[&str]) -> Option<String> {
    let (report, _) = common::json(args);
    let waiter = truth.threads.iter().find(|thread| thread.lwp != truth.coordinator).expect("a thread that waits").lwp;
    let threads = report["runtimes"][0]["threads"].as_array().map_or(&[][..], Vec::as_slice);
    let wait = threads.iter().find(|thread| thread["lwp"] == waiter).map(|thread| &thread["wait"]["value"]);
    let kind = SPINNING.iter().find(|(known, _)| *known == wanted).map(|(_, kind)| *kind);
    let right = wait.is_some_and(|wait| wait["kind"].as_str() == kind && wait["asleep"] == false);
    (!right).then(|| format!("{what}: thread {waiter} is said to wait so: {wait:?}"))
}
