//! What the plugin for gdb costs: the time of one command after attach, and the time of breakpoint conditions. It also counts the
//! calls of gdb's Python, beside LLVM's plugin. The last case is a program whose debugger has loaded the plugin, without a
//! command.

use std::io::Read as _;

use anyhow::{Context, Result, ensure};
use debugger_plugin::Gdb;
use serde_json::Value;
use test_programs::{Env, Launch, Opt, Runtime, Skip, Toolchain, await_all_blocked, build};

use super::goals::Goal;
use super::plot::{Curve, Panel, Plot};
use super::{Limit, built_beside, median_and_least, paired, start};
use crate::plugins::peer::Peer;

/// Team sizes; the second is judged.
const SIZES: [usize; 3] = [64, 256, 1000];
/// Seconds that `openmp threads` may take for 256 threads.
const MOST_SECONDS: f64 = 0.5;
/// Threads of the team that is asked about.
const ASKED: usize = 64;
/// Threads of the program whose breakpoint has a condition.
const MEMBERS: usize = 2;
/// Regions it opens. Each member reaches the breakpoint once in each, and once in a region before.
const CONDITIONED: usize = 200;
/// Regions of the program that is not asked about.
const UNASKED: usize = 100_000;
/// A condition without the plugin, and those of the plugin. None is ever true.
const CONDITIONS: [&str; 6] = [
    "$_thread == 99",
    "$_omp_thread_num() == 99",
    "$_omp_num_threads() == 99",
    "$_omp_level() == 99",
    "$_omp_team() == 99",
    "$_omp_task_id() == 99",
];

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
    /// Milliseconds for each time that a breakpoint with one of [`CONDITIONS`] is reached.
    conditions: Vec<Vec<f64>>,
    /// Nanoseconds for a region of a program by itself, in a gdb, and in one that has loaded the plugin.
    regions: [Vec<f64>; 3],
}

/// Measures.
///
/// # Errors
/// When gdb does not do its work.
pub fn measure(rounds: usize) -> Result<Plugin> {
    if let Err(skip) = debugger_plugin::available() {
        skip.show();
        return Ok(Plugin { timed: Vec::new(), callbacks: None, conditions: Vec::new(), regions: Default::default() });
    }
    let library = built_beside("libompd.so")?;
    let library = library.parent().context("its directory")?;
    let mut timed = Vec::new();
    for threads in SIZES {
        let team = start(Toolchain::Gcc, Runtime::Libgomp, threads, &[])?;
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
    let (conditions, regions) = (conditions(library, rounds)?, regions(library, rounds)?);
    Ok(Plugin { timed, callbacks, conditions, regions })
}

/// A program that opens so many regions, and prints what they took.
fn opening(count: usize) -> Result<Launch> {
    let program = build("regions", Toolchain::Gcc, Opt::O2, &[])?;
    let launch = Launch::new(&program, Runtime::Libgomp, Env::Settled);
    Ok(launch.argument(&count.to_string()).argument(&MEMBERS.to_string()))
}

/// Nanoseconds that a program of [`opening`] has printed.
fn took(printed: &str) -> Result<f64> {
    let (_, rest) =
        printed.split_once("regions took ").with_context(|| format!("the program did not end: {printed}"))?;
    Ok(rest.split_once(" ns").context("a time")?.0.parse()?)
}

/// Runs that program in a gdb.
fn run_in(gdb: Gdb, count: usize, before: &[String]) -> Result<f64> {
    let launch = opening(count)?;
    let mut gdb = gdb.on(&launch.executable().path).first(format!("set args {count} {MEMBERS}"));
    for (name, value) in launch.environment()? {
        gdb = gdb.variable(name, value);
    }
    for command in before {
        gdb = gdb.first(command);
    }
    took(gdb.run(&["run"])?.first().context("the program's output")?)
}

fn conditions(library: &std::path::Path, rounds: usize) -> Result<Vec<Vec<f64>>> {
    let mut all = vec![Vec::new(); CONDITIONS.len()];
    for round in 0..=rounds {
        for turn in 0..CONDITIONS.len() {
            let which = (round + turn) % CONDITIONS.len();
            let before = [format!("break visit if {}", CONDITIONS[which])];
            let took = run_in(Gdb::new(library), CONDITIONED, &before)?;
            if round > 0 {
                all[which].push(took / 1e6 / (CONDITIONED * MEMBERS) as f64);
            }
        }
    }
    Ok(all)
}

fn regions(library: &std::path::Path, rounds: usize) -> Result<[Vec<f64>; 3]> {
    let mut all: [Vec<f64>; 3] = Default::default();
    // They jitter more than they may differ.
    for round in 0..=3 * rounds {
        for turn in 0..all.len() {
            let which = (round + turn) % all.len();
            let took = match which {
                0 => {
                    let mut process = opening(UNASKED)?.spawn()?;
                    let mut printed = String::new();
                    process.stdout.read_to_string(&mut printed).context("the program's output")?;
                    ensure!(process.child.wait()?.success(), "the program failed");
                    took(&printed)?
                }
                1 => run_in(Gdb::bare(), UNASKED, &[])?,
                _ => run_in(Gdb::new(library), UNASKED, &[])?,
            };
            if round > 0 {
                all[which].push(took / UNASKED as f64);
            }
        }
    }
    Ok(all)
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

impl Plugin {
    /// What a condition of the plugin takes beyond one of gdb's own, in milliseconds: the middle one of the pairs.
    fn condition(&self, which: usize) -> Option<f64> {
        let (own, ours) = (self.conditions.first()?, self.conditions.get(which)?);
        Some(median_and_least(ours.iter().zip(own).map(|(ours, own)| ours - own))?.0)
    }
}

/// The goals of the plugin.
pub fn goals(plugin: &Plugin) -> Vec<Goal> {
    let largest = plugin.timed.iter().find(|timed| timed.threads == SIZES[2]);
    let first = largest.and_then(|timed| median_and_least(timed.first.iter().copied()));
    let slowest = (1..CONDITIONS.len()).filter_map(|which| plugin.condition(which)).reduce(f64::max);
    let [_, bare, loaded] = &plugin.regions;
    vec![
        Goal::most(
            format!("`openmp threads` in gdb for {} threads", SIZES[2]),
            0.3,
            "s",
            first.map(|(median, _)| median),
        ),
        Goal::most("a condition of a breakpoint, the slowest function, beyond one of gdb's own", 1.0, "ms", slowest),
        Goal::most(
            format!("a program in gdb that opens {UNASKED} regions, with the plugin, to without"),
            1.02,
            "×",
            paired(loaded, bare),
        ),
    ]
}

/// `openmp threads` by the number of threads.
pub fn plots(plugin: &Plugin) -> Vec<Plot> {
    if plugin.timed.is_empty() {
        return Vec::new();
    }
    let curve = |name: &str, of: fn(&Timed) -> &[f64]| {
        let middle = |timed: &Timed| Some(median_and_least(of(timed).iter().copied())?.0 * 1e3);
        let points = plugin.timed.iter().filter_map(|timed| Some((timed.threads as f64, middle(timed)?)));
        Curve { name: name.to_owned(), points: points.collect() }
    };
    let curves = vec![
        curve("openmp threads, first at a stop", |timed| &timed.first),
        curve("again at the same stop", |timed| &timed.second),
    ];
    let panels = vec![Panel { x: "threads", y: "time, ms", curves }];
    vec![Plot { name: "plugin", title: "openmp threads in gdb".to_owned(), panels }]
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
    if !plugin.conditions.is_empty() {
        text +=
            "| condition of a breakpoint, never true | each time it is reached | beyond gdb's own |\n|---|---|---|\n";
        for (which, milliseconds) in plugin.conditions.iter().enumerate() {
            let (median, least) = median_and_least(milliseconds.iter().copied()).unwrap_or_default();
            let more = plugin.condition(which).unwrap_or_default();
            text += &format!("| `{}` | {median:.2} ms (least {least:.2}) | {more:.2} ms |\n", CONDITIONS[which]);
        }
        text += "\n";
    }
    let [alone, bare, loaded] = &plugin.regions;
    if !bare.is_empty() {
        text +=
            &format!("| {UNASKED} regions of {MEMBERS} threads | each | to gdb without the plugin |\n|---|---|---:|\n");
        for (name, values) in [("without gdb", alone), ("in gdb", bare), ("in gdb with the plugin, not asked", loaded)]
        {
            let (median, least) = median_and_least(values.iter().copied()).unwrap_or_default();
            let ratio = paired(values, bare).unwrap_or_default();
            text += &format!("| {name} | {:.2} µs (least {:.2}) | {ratio:.3} × |\n", median / 1e3, least / 1e3);
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
        Plugin {
            timed,
            callbacks: Some(Callbacks { ours: counts(ours), theirs: counts(100) }),
            conditions: vec![vec![0.5], vec![1.25]],
            regions: [vec![1000.0], vec![2000.0], vec![2020.0]],
        }
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
        assert!(text.contains("| `$_omp_thread_num() == 99` | 1.25 ms (least 1.25) | 0.75 ms |"), "{text}");
        assert!(text.contains("| in gdb with the plugin, not asked | 2.02 µs (least 2.02) | 1.010 × |"), "{text}");
        let missed: Vec<bool> = goals(&plugin(0.4, 7)).iter().filter_map(Goal::limit).map(|limit| limit.kept).collect();
        assert_eq!(missed, [false, true, true]);
    }

    #[test]
    fn the_time_is_taken_from_what_gdb_prints() -> Result<()> {
        assert_eq!(took("[New Thread 1]\nregions took 1200 ns\n[Inferior 1 exited]\n")?, 1200.0);
        assert!(took("Program received signal SIGSEGV").is_err());
        Ok(())
    }
}
