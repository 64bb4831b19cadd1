//! Teams of leagues, which `teams` regions make on the host.

use test_programs::{Env, Launch, Opt, build, combinations};

use crate::common::{json, run, texts};

#[test]
fn team_of_a_league_is_told_with_its_number() {
    for (toolchain, runtime) in combinations() {
        let program = build("league", toolchain, Opt::O2, &[]).expect("the program builds");
        let running = Launch::new(&program, runtime, Env::Settled).start().expect("the program starts");
        let what = format!("{toolchain:?} on {runtime:?}");
        let pid = running.pid.to_string();
        let lwp = running.truth.threads[0].lwp;

        let report = json(&["teams", &pid]).0;
        // The runtime that the program was linked with may be there too, without threads.
        let runtimes = report["runtimes"].as_array().expect("runtimes");
        let leagues: Vec<_> = runtimes.iter().filter_map(|r| r["leagues"].as_array()).flatten().collect();
        let own: Vec<_> = leagues.iter().filter(|team| team["lwp"] == lwp).collect();
        assert_eq!(own.len(), 1, "{what}: {leagues:?}");
        assert_eq!((&own[0]["number"]["value"], &own[0]["size"]["value"]), (&1.into(), &2.into()), "{what}");
        assert!(leagues.iter().all(|team| team["lwp"] == lwp || team["number"]["value"] == 0), "{what}: {leagues:?}");

        let (text, _, _) = texts(&run(&["teams", &pid]));
        assert!(text.contains(&format!("team 1 of a league of 2, initial thread LWP {lwp}")), "{what}: {text}");
        running.release().expect("it goes on");
    }
}

#[test]
fn a_region_that_a_league_jumps_to_is_not_taken_for_the_league() {
    for (toolchain, runtime) in combinations() {
        let program = build("league_tail", toolchain, Opt::O2, &[]).expect("the program builds");
        let running = Launch::new(&program, runtime, Env::Settled).start().expect("the program starts");
        let what = format!("{toolchain:?} on {runtime:?}");
        let report = json(&["teams", &running.pid.to_string()]).0;
        assert_eq!(report["issues"], serde_json::json!([]), "{what}: {report}");
        let runtimes = report["runtimes"].as_array().expect("runtimes");
        let teams = runtimes.iter().filter_map(|r| r["teams"].as_array()).flatten();
        let regions: Vec<_> = teams.filter(|team| team["size"]["value"] == 2).collect();
        let has_function = |team: &&serde_json::Value| team["function"]["value"].is_object();
        assert!(regions.iter().any(has_function), "{what}: {regions:#?}");
        running.release().expect("it goes on");
    }
}
