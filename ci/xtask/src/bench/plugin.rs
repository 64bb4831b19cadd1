//! What the plugin for gdb costs: the time of one command after attach, and how often gdb's Python is asked for something, beside
//! LLVM's plugin.

use anyhow::{Context, Result, ensure};
use debugger_plugin::Gdb;
use serde_json::Value;
use test_programs::{Env, Launch, Opt, Runtime, Skip, Toolchain, await_all_blocked, build};

use super::{Limit, built_beside, median_and_least, start};
use crate::plugins::peer::Peer;

/// Team sizes; the second is judged.
const SIZES: [usize; 3] = [64, 256, 1000];
/// Seconds that `openmp threads` may take for 256 threads.
const MOST_SECONDS: f64 = 0.5;
/// Threads of the team that is asked about.
const ASKED: usize = 64;

/// Times of one team, in seconds.
pub struct Timed {
    threads: usize,
    /// Of `openmp threads`, the first command.
    first: Vec<f64>,
    /// Of a second one at the same stop.
    second: Vec<f64>,
}

/// Python callbacks for state, team and number of all threads of one team.
pub struct Callbacks {
    ours: Vec<(String, u64)>,
    theirs: Vec<(String, u64)>,
}

/// What was measured; no callbacks where something for it is missing.
pub struct Plugin {
    timed: Vec<Timed>,
    callbacks: Option<Callbacks>,
}

/// Measures.
///
/// # Errors
/// When gdb does not do its work.
pub fn measure(rounds: usize) -> Result<Plugin> {
    if let Err(skip) = debugger_plugin::available() {
        skip.show();
        return Ok(Plugin { timed: Vec::new(), callbacks: None });
    }
    let library = built_beside("libompd.so")?;
    let library = library.parent().context("its directory")?;
    let mut timed = Vec::new();
    for threads in SIZES {
        let team = start(Toolchain::Gcc, Runtime::Libgomp, threads)?;
        let (mut first, mut second) = (Vec::new(), Vec::new());
        for round in 0..=rounds {
            await_all_blocked(team.pid, threads, false)?;
            let printed = Gdb::attached(library, &team).run(&[
                "python import time; began = time.perf_counter()",
                "openmp threads",
                "python print(time.perf_counter() - began); began = time.perf_counter()",
                "openmp threads",
                "python print(time.perf_counter() - began)",
            ])?;
            let all = format!("{threads} OpenMP threads");
            ensure!(printed[1].contains(&all) && printed[3].contains(&all), "not all are told of: {}", printed[1]);
            // The first round does not count.
            if round > 0 {
                first.push(printed[2].trim().parse()?);
                second.push(printed[4].trim().parse()?);
            }
        }
        timed.push(Timed { threads, first, second });
    }
    let callbacks = match count(library) {
        Ok(Ok(callbacks)) => Some(callbacks),
        Ok(Err(skip)) => {
            skip.show();
            None
        }
        Err(why) => return Err(why),
    };
    Ok(Plugin { timed, callbacks })
}

/// Counts on a team of Intel's runtime. LLVM's plugin is given our library under the name that the runtime asks for: Intel's own
/// refuses it.
fn count(library: &std::path::Path) -> Result<Result<Callbacks, Skip>> {
    let peer = match Toolchain::Clang.check().and_then(|()| Runtime::Libiomp5.library()).and_then(|_| Peer::find()) {
        Ok(peer) => peer,
        Err(skip) => return Ok(Err(skip)),
    };
    let program = build("many", Toolchain::Clang, Opt::O2, &[])?;
    let launch = Launch::new(&program, Runtime::Libiomp5, Env::Settled).variable("OMP_DEBUG", "enabled");
    let team = launch.argument(&ASKED.to_string()).start()?;
    let printed = Gdb::attached(library, &team).run(&["openmp threads -json", "openmp doctor -json"])?;
    let doctor: Value = serde_json::from_str(&printed[1])?;
    let asked = doctor["asked"].as_object().context("what was asked")?;
    let ours = asked.iter().filter_map(|(name, count)| Some((name.clone(), count.as_u64()?))).collect();

    let directory = tempfile::tempdir()?;
    std::os::unix::fs::symlink(library.join("libompd.so"), directory.path().join("libiomp5_db.so"))?;
    let script = directory.path().join("count.py");
    std::fs::write(&script, COUNT)?;
    let printed = Gdb::limited(60)
        .argument("-p")
        .argument(team.pid.to_string())
        .variable("LD_LIBRARY_PATH", Some(directory.path()))
        .first(format!("source {}", peer.script.display()))
        .first(format!("source {}", script.display()))
        .run(&["thread 1", "ompd init", "ompd parallel", "python print(json.dumps(asked))"])?;
    let states = printed[2].lines().filter(|line| line.contains("ompt_state_")).count();
    ensure!(states == ASKED, "LLVM's plugin tells of {states} threads: {}", printed[2]);
    let asked: Value = serde_json::from_str(&printed[3])?;
    let asked = asked.as_object().context("what was asked")?;
    let theirs = asked.iter().filter_map(|(name, count)| Some((name.clone(), count.as_u64()?))).collect();
    Ok(Ok(Callbacks { ours, theirs }))
}

/// Counts the calls of the functions by which LLVM's plugin asks gdb.
const COUNT: &str = "\
import json
import ompd_callbacks

asked = {}


def count(name):
    inner = getattr(ompd_callbacks, name)

    def counted(*arguments):
        asked[name] = asked.get(name, 0) + 1
        return inner(*arguments)

    setattr(ompd_callbacks, name, counted)


for name in ('_read', '_read_string', '_sym_addr', '_thread_context'):
    count(name)
";

fn total(counts: &[(String, u64)]) -> u64 {
    counts.iter().map(|(_, count)| count).sum()
}

/// That a command is quick, and that less is asked.
pub fn limits(plugin: &Plugin) -> Vec<Limit> {
    let mut limits = Vec::new();
    for timed in plugin.timed.iter().filter(|timed| timed.threads == SIZES[1]) {
        if let Some((median, _)) = median_and_least(timed.first.iter().copied()) {
            let what = format!("`openmp threads` in gdb for {} threads, at most {MOST_SECONDS} s", timed.threads);
            limits.push(Limit { what, measured: median, unit: "s", kept: median <= MOST_SECONDS });
        }
    }
    if let Some(callbacks) = &plugin.callbacks {
        let part = total(&callbacks.ours) as f64 / total(&callbacks.theirs) as f64;
        let what = format!("Python callbacks of gdb for {ASKED} threads, less than in LLVM's plugin");
        limits.push(Limit { what, measured: part, unit: "×", kept: part < 1.0 });
    }
    limits
}

/// The rows of the document.
pub fn table(plugin: &Plugin) -> String {
    let mut text = String::from(
        "| threads | `openmp threads` in gdb, first at a stop | again at the same stop |\n|---:|---|---|\n",
    );
    for timed in &plugin.timed {
        let cell = |seconds: &[f64]| {
            median_and_least(seconds.iter().copied()).map_or_else(String::new, |(median, least)| {
                format!("{:.1} ms (least {:.1})", median * 1e3, least * 1e3)
            })
        };
        text += &format!("| {} | {} | {} |\n", timed.threads, cell(&timed.first), cell(&timed.second));
    }
    text += "\n";
    if let Some(callbacks) = &plugin.callbacks {
        text += &format!("| plugin | Python callbacks for {ASKED} threads | of these |\n|---|---:|---|\n");
        for (name, counts) in [("ours", &callbacks.ours), ("LLVM's, with our library", &callbacks.theirs)] {
            let parts: Vec<String> = counts.iter().map(|(name, count)| format!("{count} `{name}`")).collect();
            text += &format!("| {name} | {} | {} |\n", total(counts), parts.join(", "));
        }
        text += "\n";
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plugin(seconds: f64, ours: u64) -> Plugin {
        let timed = SIZES.iter().map(|&threads| Timed { threads, first: vec![seconds], second: vec![0.001] }).collect();
        let counts = |count| vec![("read_memory".to_owned(), count)];
        Plugin { timed, callbacks: Some(Callbacks { ours: counts(ours), theirs: counts(100) }) }
    }

    #[test]
    fn limits_are_of_time_and_of_callbacks() {
        let kept = |plugin| limits(&plugin).iter().map(|limit| limit.kept).collect::<Vec<_>>();
        assert_eq!(kept(plugin(0.4, 99)), [true, true]);
        assert_eq!(kept(plugin(0.6, 100)), [false, false]);
    }

    #[test]
    fn the_table_has_each_team_and_both_plugins() {
        let text = table(&plugin(0.25, 7));
        assert!(text.contains("| 256 | 250.0 ms (least 250.0) | 1.0 ms (least 1.0) |"), "{text}");
        assert!(text.contains("| ours | 7 | 7 `read_memory` |"), "{text}");
    }
}
