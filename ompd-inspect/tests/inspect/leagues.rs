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
