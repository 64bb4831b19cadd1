//! Verdicts: what stands first in the summary.

mod common;

use test_programs::{Env, Launch, Opt, Runtime, build, combinations};

fn first_lines(how: &str, word: &str, expected: &str) {
    let mut seen = 0;
    for (toolchain, runtime) in combinations() {
        if how == "locks" && runtime != Runtime::Libgomp {
            continue;
        }
        let program = build("stuck", toolchain, Opt::O2, &[]).expect("the program builds");
        let running = Launch::new(&program, runtime, Env::Settled).argument(how).start().expect("the program starts");
        let output = common::run(&[&running.pid.to_string()]);
        let (text, error, status) = common::texts(&output);
        assert_eq!(status, 0, "{toolchain:?} on {runtime:?}: {text}{error}");
        // However the sentence is broken into lines.
        let plain: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(plain.contains(expected), "{toolchain:?} on {runtime:?}: {text}");
        let verdicts = [plain.matches("SUSPECT").count(), plain.matches("DEADLOCK").count()];
        let of_word = if word == "SUSPECT" { [1, 0] } else { [0, 1] };
        assert_eq!(verdicts, of_word, "{toolchain:?} on {runtime:?}: {text}");
        running.release().expect("the program leaves");
        seen += 1;
    }
    assert!(seen > 0 || combinations().is_empty());
}

/// The main thread is in a system call all the while, and might as well unset one of the locks: that is no proof.
#[test]
fn two_locks_in_opposite_order() {
    first_lines("locks", "SUSPECT", "and none is left that could let another go on");
}

#[test]
fn a_barrier_that_only_some_reach() {
    first_lines("barriers", "DEADLOCK", "DEADLOCK threads of team 0 wait for each other at different barriers");
}
