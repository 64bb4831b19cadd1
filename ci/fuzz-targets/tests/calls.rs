//! The OMPD library holds its promises whatever a debugger asks, in whatever order, and whatever its callbacks answer.

use std::io::Write as _;

use fuzz_targets::calls::debugger::{FAULTS, Fault, Plan};
use fuzz_targets::calls::{FUNCTIONS, Header, Report, inputs, run};

fn header(version: u8, generous: bool, plan: Plan) -> Header {
    Header { version, subject: 0, generous, fresh: false, plan }
}

/// Callbacks that fail, each in a run of its own.
const MOST: u64 = 300;

fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// An input of which nothing fails; `None` where there is nothing to ask about, which has been said.
fn honest(input: &[u8]) -> Option<Report> {
    let report = run(input);
    if report.is_none() {
        say("skipped: there is no process to ask about");
    }
    report
}

#[test]
fn every_function_succeeds_for_an_honest_debugger() {
    for version in 0..4 {
        for subject in 0..2 {
            let all = inputs::all_functions(Header { subject, ..header(version, true, Plan::NONE) });
            let Some(report) = honest(&all) else { return };
            let never = |n: &usize| report.calls[*n].1 == 0;
            let all = (0..FUNCTIONS.len()).filter(|n| !FUNCTIONS[*n].0.starts_with("ompdx_"));
            let failed: Vec<&str> = all.filter(never).map(|n| FUNCTIONS[n].0).collect();
            // They end the life of the library, need what there is not, or what libgomp does not have.
            let expected = [
                "ompd_initialize",
                "ompd_finalize",
                "ompd_process_initialize",
                "ompd_device_initialize",
                "ompd_rel_address_space_handle",
                "ompd_get_omp_version",
                "ompd_get_omp_version_string",
                "ompd_get_scheduling_task_handle",
                "ompd_get_task_frame",
                "ompd_get_tool_data",
            ];
            assert!(
                failed.iter().all(|name| expected.contains(name)),
                "version {version}, process {subject}: {failed:?}"
            );
        }
    }
    for version in 0..4 {
        honest(&inputs::opening(header(version, false, Plan::NONE)));
        honest(&inputs::life(header(version, false, Plan::NONE)));
    }
}

#[test]
fn what_goes_beyond_ompd() {
    let Some(report) = honest(&inputs::beyond(header(3, true, Plan::NONE))) else { return };
    let succeeds = |n: &usize| report.calls[*n].1 > 0;
    let done: Vec<&str> = (0..FUNCTIONS.len()).filter(succeeds).map(|n| FUNCTIONS[n].0).collect();
    for name in ["ompdx_stop_points", "ompdx_set_stop", "ompdx_get_origin", "ompdx_report_json", "ompdx_drop_cache"] {
        assert!(done.contains(&name), "{name} never succeeds: {done:?}");
    }
    for first in (1..=report.callbacks.min(MOST)).step_by(23) {
        let fault = FAULTS[(first / 23) as usize % FAULTS.len()];
        run(&inputs::beyond(header((first % 4) as u8, true, Plan { fault, first, every: first % 3 * 40 })));
    }
}

#[test]
fn each_callback_of_all_calls_may_fail() {
    let Some(report) = honest(&inputs::all_functions(header(2, true, Plan::NONE))) else { return };
    say(&format!("{} callbacks", report.callbacks));
    let most = report.callbacks.min(MOST);
    let all = |fault: Fault, first: u64| {
        let plan = Plan { fault, first, every: 0 };
        run(&inputs::all_functions(header((first % 4) as u8, !first.is_multiple_of(5), plan)));
    };
    (1..=most).for_each(|first| all(Fault::Fails, first));
    (1..=most).step_by(3).for_each(|first| all(FAULTS[(first / 3) as usize % FAULTS.len()], first));
}

#[test]
fn each_callback_of_opening_a_process_may_fail() {
    let Some(report) = honest(&inputs::opening(header(2, false, Plan::NONE))) else { return };
    say(&format!("{} callbacks", report.callbacks));
    for fault in [Fault::Fails, Fault::Silent, Fault::Flips, Fault::Random] {
        for first in 1..=report.callbacks.min(20) {
            let plan = Plan { fault, first, every: 0 };
            run(&inputs::opening(header((first % 4) as u8, false, plan)));
        }
    }
}

#[test]
fn any_sequence_of_calls_does_no_harm() {
    for seed in 0..40 {
        run(&inputs::random(seed));
    }
}
