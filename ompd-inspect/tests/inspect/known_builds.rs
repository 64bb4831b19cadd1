//! Runtimes of known builds are read by what their code was found to say before; who asks for it has it decoded.

use serde_json::Value;
use test_programs::{Env, Opt, Running, Skip, await_all_blocked, build, combinations};

use crate::common;

#[test]
fn code_is_decoded_for_those_who_ask() {
    for (toolchain, runtime) in combinations() {
        let executable = build("barrier_missing", toolchain, Opt::O2, &[]).expect("the program builds");
        let running = Running::start(&executable, runtime, Env::Settled).expect("the program starts");
        let pid = running.pid.to_string();
        let read = |arguments: &[&str]| {
            // After a stop they go back to where they wait only when they get a processor.
            await_all_blocked(running.pid, 4, false).expect("its threads wait");
            let (report, _) = common::json(&[arguments, &[&pid]].concat());
            let runtimes = report["runtimes"].as_array().expect("runtimes");
            let facts_of = |own: &Value| ["icvs", "threads", "teams", "tasks"].map(|list| own[list].clone());
            let is_used =
                |own: &&Value| facts_of(own).iter().all(|list| list.as_array().is_some_and(|list| !list.is_empty()));
            // A second runtime may be loaded and unused.
            let own = runtimes.iter().find(is_used).unwrap_or_else(|| panic!("{runtime:?}: {runtimes:#?}"));
            let code = own["origins"].as_array().expect("origins").iter().find(|origin| origin["origin"] == "code");
            let note = code.and_then(|code| code["note"].as_str()).unwrap_or_default();
            let facts = facts_of(own);
            (note.starts_with("decoded before"), facts)
        };
        let (is_known, facts) = read(&[]);
        if !is_known {
            Skip::because(format!("{runtime:?} of this machine: there is no record of this build")).show();
        }
        for decoded in [&["--verify"][..], &["doctor"]] {
            let (is_known, others) = read(decoded);
            assert!(!is_known, "{runtime:?}: {decoded:?}");
            let mut differing = Vec::new();
            for (list, other) in facts.iter().zip(&others) {
                differences(list, other, "", &mut differing);
            }
            // Who else holds a pipe, and whether all could be asked, changes with every process of the machine.
            differing.retain(|difference| !difference.contains(".descriptors["));
            assert!(differing.is_empty(), "{runtime:?}: {decoded:?}: {}", differing.join("; "));
        }
        running.release().expect("the program's end");
    }
}

/// Adds where two values differ, and both, to `found`.
fn differences(one: &Value, other: &Value, at: &str, found: &mut Vec<String>) {
    match (one, other) {
        (Value::Object(ones), Value::Object(others)) if ones.keys().eq(others.keys()) => {
            for (key, value) in ones {
                differences(value, &others[key], &format!("{at}.{key}"), found);
            }
        }
        (Value::Array(ones), Value::Array(others)) if ones.len() == others.len() => {
            for (index, (value, other)) in ones.iter().zip(others).enumerate() {
                differences(value, other, &format!("{at}[{index}]"), found);
            }
        }
        _ if one == other => {}
        _ => found.push(format!("{at}: {one} and {other}")),
    }
}
