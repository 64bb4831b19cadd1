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
            for (list, other) in facts.iter().zip(&others) {
                assert_eq!(list, other, "{runtime:?}: {decoded:?}");
            }
        }
        running.release().expect("the program's end");
    }
}
