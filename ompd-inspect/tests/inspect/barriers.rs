//! Which kind of barrier threads wait at: what the compiler tells the runtime, and where it does not, the call they make.

use crate::common;
use serde_json::Value;
use test_programs::{Env, Launch, Opt, Running, Toolchain, build, combinations};

/// What is known of a barrier: its kind and how a report puts it, or a part of the reason why it is not known.
enum Expected {
    Kind(&'static str, &'static str),
    Unknown(&'static str),
    RegionEnd,
}

use Expected::{Kind, RegionEnd, Unknown};

const GCC: Expected = Unknown("at a barrier construct");
const LOOP: Expected = Kind("loop or unspecified", "wait at an implicit barrier, of a loop or unspecified");
const SECTIONS: Expected = Kind("sections", "wait at the implicit barrier of sections");
const SINGLE: Expected = Kind("single", "wait at the implicit barrier of a single");

/// What `programs/barriers.c` does, in which function of its own, and what is said if clang or gcc compiled it.
const KINDS: [(&str, &str, Expected, Expected); 9] = [
    ("explicit", "explicit_barrier", Kind("explicit", "wait at an explicit barrier"), GCC),
    ("dynamic", "dynamic_loop", LOOP, Kind("loop", "wait at the implicit barrier of a loop")),
    ("static", "static_loop", LOOP, GCC),
    ("sections", "two_sections", SECTIONS, SECTIONS),
    ("single", "one_single", SINGLE, GCC),
    ("copyprivate", "single_for_all", SINGLE, SINGLE),
    ("reduction", "reduced_loop", Kind("implicit", "wait at an implicit barrier"), GCC),
    ("stale", "stale_record", Unknown("the runtime's record is of another barrier"), GCC),
    ("end", "", RegionEnd, RegionEnd),
];

/// The waits of the three threads that wait, in a report.
fn waits(report: &Value) -> Vec<&Value> {
    let runtimes = report["runtimes"].as_array().expect("runtimes");
    let threads = runtimes.iter().flat_map(|r| r["threads"].as_array().expect("threads"));
    threads.map(|t| &t["wait"]["value"]).filter(|w| !w["team"].is_null()).collect()
}

fn check(what: &str, target: &str, function: Option<&str>, expected: &Expected) {
    let (report, _) = common::json(&["threads", target]);
    let waits = waits(&report);
    assert_eq!(waits.len(), 3, "{what}: {report}");
    for wait in &waits {
        let barrier = &wait["barrier"];
        match expected {
            Kind(kind, _) => {
                assert_eq!((&wait["kind"], &barrier["value"]), (&"barrier".into(), &(*kind).into()), "{what}")
            }
            Unknown(why) => assert!(barrier["unknown"].as_str().is_some_and(|w| w.contains(why)), "{what}: {wait}"),
            RegionEnd => assert_eq!((&wait["kind"], barrier), (&"end of region".into(), &Value::Null), "{what}"),
        }
        if let Some(function) = function {
            assert_eq!(wait["location"]["function"], function, "{what}: {wait}");
        }
    }
}

/// How the page of waits puts it.
fn check_words(what: &str, target: &str, expected: &Expected) {
    let (text, _, _) = common::texts(&common::run(&["waits", target]));
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let words = match expected {
        Kind(_, words) => words,
        Unknown(_) => "wait at a barrier",
        RegionEnd => "wait at the end of the region",
    };
    assert!(text.contains(&format!("threads 1-3 {words}")), "{what}: {text}");
}

/// Without lines a record that a task may have overwritten is not believed.
#[test]
fn kinds_of_barriers_without_lines() {
    for (toolchain, runtime) in combinations().into_iter().filter(|(toolchain, _)| *toolchain == Toolchain::Clang) {
        let executable = build("barriers", toolchain, Opt::O2, &["-g0"]).expect("the program builds");
        for (name, expected) in
            [("sections", SECTIONS), ("stale", Unknown("the record may be of a barrier in a task executed here"))]
        {
            let what = format!("{name} without lines on {runtime:?}");
            let launch = Launch::new(&executable, runtime, Env::Settled).variable("BARRIER", name);
            let running = launch.start().expect("the program starts");
            check(&what, &running.pid.to_string(), None, &expected);
            check_words(&what, &running.pid.to_string(), &expected);
            running.release().expect("the program's end");
        }
    }
}

#[test]
fn kinds_of_barriers() {
    let directory = tempfile::tempdir().expect("a directory");
    for (toolchain, runtime) in combinations() {
        for opt in Opt::ALL {
            let executable = build("barriers", toolchain, opt, &[]).expect("the program builds");
            for (name, function, clang, gcc) in &KINDS {
                let what = format!("{name}, {toolchain:?} {opt:?} on {runtime:?}");
                let launch = Launch::new(&executable, runtime, Env::Settled).variable("BARRIER", name);
                let running: Running = launch.start().expect("the program starts");
                let by_clang = toolchain == Toolchain::Clang;
                let expected = if by_clang { clang } else { gcc };
                // gcc's calls at the end of constructs have no line of their own.
                let function = Some(*function).filter(|function| by_clang && !function.is_empty());
                check(&what, &running.pid.to_string(), function, expected);
                // A hang that may end is looked at for a while.
                if opt == Opt::O2 {
                    check_words(&what, &running.pid.to_string(), expected);
                }
                if *name == "sections" && opt == Opt::O2 {
                    match running.gcore(directory.path()).expect("gcore runs") {
                        Ok(core) => check(&what, core.to_str().expect("a plain path"), function, expected),
                        Err(skip) => skip.show(),
                    }
                }
                running.release().expect("the program's end");
            }
        }
    }
}
