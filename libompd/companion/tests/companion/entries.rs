//! Entry points that the companion looks up and does not ask: what they answer on every runtime.

use crate::common::{Held, libraries, program};

/// The answers of a program with a tool of its own, for each runtime that it runs on.
fn answers(word: &str) -> Vec<(String, Vec<String>)> {
    let Some(program) = program("entry_points", &[]) else { return Vec::new() };
    let mut answers = Vec::new();
    for (library, what) in libraries() {
        let Some(running) = Held::start(&program.path, library.path(), &what, &[], &[]) else { continue };
        let told = running.told(word);
        answers.push((what, told[0].iter().map(|word| (*word).to_owned()).collect()));
        running.end();
    }
    assert!(!answers.is_empty(), "no runtime was tried");
    answers
}

#[test]
fn numbers_of_the_runtime_are_given_once() {
    for (what, told) in answers("unique") {
        assert_eq!(told, ["3000", "OF", "3000"], "{what}");
    }
}

/// There is none but the host. Runtimes answer 1 to that, and the newest libiomp5 counts.
#[test]
fn one_device_is_told_where_there_is_none() {
    for (what, told) in answers("devices") {
        let counts = ["runtimes/libiomp5.so", "openmp-2026.2.0-"].iter().any(|name| what.contains(name));
        assert_eq!(told, [if counts { "0" } else { "1" }], "{what}");
    }
}
