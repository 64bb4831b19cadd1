//! The lines that stand first in the summary, for teams that are stuck for good.

mod common;

use test_programs::{Env, Launch, Opt, build, combinations};

fn first_lines(how: &str, expected: &str) {
    let mut seen = 0;
    for (toolchain, runtime) in combinations() {
        let program = build("stuck", toolchain, Opt::O2, &[]).expect("the program builds");
        let running = Launch::new(&program, runtime, Env::Settled).argument(how).start().expect("the program starts");
        let output = common::run(&[&running.pid.to_string()]);
        let (text, error, status) = common::texts(&output);
        assert_eq!(status, 0, "{toolchain:?} on {runtime:?}: {text}{error}");
        // However the sentence is broken into lines.
        let plain: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(plain.contains(expected), "{toolchain:?} on {runtime:?}: {text}");
        assert_eq!(plain.matches("SUSPECT").count(), 1, "{toolchain:?} on {runtime:?}: {text}");
        running.release().expect("the program leaves");
        seen += 1;
    }
    assert!(seen > 0 || combinations().is_empty());
}

#[test]
fn two_locks_in_opposite_order() {
    first_lines("locks", "SUSPECT team 0 (level 1): all 2 threads wait for locks:");
}

#[test]
fn a_barrier_that_only_some_reach() {
    first_lines("barriers", "its threads wait at different barriers: 1 inside the region, 1 at its end");
}
