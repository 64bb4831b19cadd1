//! What many tasks cost: as many as a program in trouble may have, queued or blocked, against a debugger, which tells of
//! threads only.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use test_programs::{Env, Launch, Opt, Running, Runtime, Toolchain, await_all_blocked, build};

use super::{Cost, Limit, median_and_least, run_command};

/// Numbers of tasks. The limits hold for the second, which is ten times the first.
const COUNTS: [usize; 2] = [100_000, 1_000_000];
/// Most seconds the command may take.
const MOST_SECONDS: f64 = 3.0;
/// Most memory it may have resident at a time, in MB.
const MOST_MEMORY: f64 = 300.0;
/// The time for ten times as many may be this many times ten times as long.
const MOST_GROWTH: f64 = 1.5;

/// A process with so many tasks, and what it cost to look at it.
pub struct Crowd {
    runtime: &'static str,
    which: &'static str,
    count: usize,
    costs: Vec<Cost>,
    pauses: Vec<f64>,
    /// Lines of the output.
    lines: usize,
    /// Wall times of the debugger, in milliseconds.
    debugger: Vec<f64>,
}

/// What is needed of the output of `ompd-inspect --json tasks`.
#[derive(Deserialize)]
struct Report {
    complete: bool,
    pause_ms: f64,
    runtimes: Vec<Instance>,
}

#[derive(Deserialize)]
struct Instance {
    tasks: Vec<Task>,
    #[serde(default)]
    more_tasks: Vec<More>,
}

#[derive(Deserialize)]
struct Task {
    state: State,
}

#[derive(Deserialize)]
struct State {
    value: Option<String>,
}

#[derive(Deserialize)]
struct More {
    count: usize,
}

/// Measures both numbers of tasks, queued and dependent, on each runtime, `rounds` times after one that does not count.
///
/// # Errors
/// When a command fails or does not see all tasks.
pub fn measure(inspect: &Path, rounds: usize) -> Result<Vec<Crowd>> {
    let mut crowds = Vec::new();
    for (toolchain, runtime, shown) in [
        (Toolchain::Gcc, Runtime::Libgomp, "libgomp"),
        (Toolchain::Clang, Runtime::Libomp14, "LLVM libomp 14"),
        (Toolchain::Clang, Runtime::Libiomp5, "libiomp5"),
    ] {
        if let Err(skip) = toolchain.check().and_then(|()| runtime.library()) {
            skip.show();
            continue;
        }
        for which in ["queued", "dependent"] {
            crowds.extend(both(inspect, toolchain, runtime, shown, which, rounds)?);
        }
    }
    Ok(crowds)
}

/// Both numbers in one run, in turn: what disturbs one disturbs the other.
fn both(
    inspect: &Path,
    toolchain: Toolchain,
    runtime: Runtime,
    shown: &'static str,
    which: &'static str,
    rounds: usize,
) -> Result<Vec<Crowd>> {
    let program = build("tasks_many", toolchain, Opt::O2, &[])?;
    let mut processes = Vec::new();
    for count in COUNTS {
        eprintln!("{count} {which} tasks on {runtime:?} ...");
        let launch = Launch::new(&program, runtime, Env::Settled).variable("KMP_ENABLE_TASK_THROTTLING", "0");
        let process = launch.argument(which).argument(&count.to_string()).start()?;
        let (costs, pauses, debugger) = Default::default();
        processes.push((process, Crowd { runtime: shown, which, count, costs, pauses, lines: 0, debugger }));
    }
    for round in 0..=rounds {
        for turn in 0..processes.len() {
            let turn = (round + turn) % processes.len();
            let (process, crowd) = &mut processes[turn];
            one_round(inspect, process, crowd, round > 0)
                .with_context(|| format!("{} {which} tasks on {runtime:?}", crowd.count))?;
        }
    }
    Ok(processes.into_iter().map(|(_, crowd)| crowd).collect())
}

fn one_round(inspect: &Path, process: &Running, crowd: &mut Crowd, counts: bool) -> Result<()> {
    let pid = process.pid.to_string();
    await_all_blocked(process.pid, 2, false)?;
    let (cost, text) = run(inspect, &["tasks", &pid])?;
    let text = String::from_utf8_lossy(&text);
    crowd.lines = text.lines().count();
    ensure!(text.contains(" more of"), "nothing is folded: {text}");
    await_all_blocked(process.pid, 2, false)?;
    let (_, text) = run(inspect, &["--json", "--pause", "brief", "tasks", &pid])?;
    let report: Report = serde_json::from_slice(&text).context("the report of ompd-inspect")?;
    let state = if crowd.which == "queued" { "ready" } else { "blocked" };
    let seen: usize = report.runtimes.iter().map(|runtime| runtime.in_state(state)).sum();
    ensure!(report.complete && seen == crowd.count, "ompd-inspect tells of {seen} {state} tasks");
    await_all_blocked(process.pid, 2, false)?;
    let debugger = ["-nx", "-batch", "-p", &pid, "-ex", "thread apply all bt"];
    let (debugger, _) = run(Path::new("gdb"), &debugger)?;
    if counts {
        crowd.costs.push(cost);
        crowd.pauses.push(report.pause_ms);
        crowd.debugger.push(debugger.wall.as_secs_f64() * 1e3);
    }
    Ok(())
}

impl Instance {
    /// How many tasks are in this state, those that are not listed included. All of those are alike in this program.
    fn in_state(&self, state: &str) -> usize {
        let listed = self.tasks.iter().filter(|task| task.state.value.as_deref() == Some(state)).count();
        listed + self.more_tasks.iter().map(|more| more.count).sum::<usize>()
    }
}

/// Runs a command to its end; what it cost, and its output.
fn run(program: &Path, arguments: &[&str]) -> Result<(Cost, Vec<u8>)> {
    let output = tempfile::NamedTempFile::new().context("making a file for output")?;
    let mut command = Command::new(program);
    command.env_remove("DEBUGINFOD_URLS").args(arguments);
    command.stdin(Stdio::null()).stdout(output.reopen()?).stderr(Stdio::null());
    let (status, cost) = run_command(&mut command).with_context(|| format!("running {}", program.display()))?;
    ensure!(status == 0, "{} {arguments:?}: wait status {status:#x}", program.display());
    Ok((cost, fs::read(output.path()).context("reading the output")?))
}

impl Crowd {
    /// Median and least wall time, in milliseconds.
    fn wall(&self) -> (f64, f64) {
        median_and_least(self.costs.iter().map(|cost| cost.wall.as_secs_f64() * 1e3)).unwrap_or_default()
    }

    /// Most memory of any run, in MB.
    fn peak(&self) -> f64 {
        self.costs.iter().map(|cost| cost.peak).max().unwrap_or(0) as f64 / f64::from(1 << 20)
    }

    fn debugger(&self) -> f64 {
        median_and_least(self.debugger.iter().copied()).unwrap_or_default().0
    }

    fn is_like(&self, other: &Crowd) -> bool {
        (self.runtime, self.which) == (other.runtime, other.which)
    }
}

/// The time for each of the many, in multiples of that for each of the few.
fn growth(crowds: &[Crowd], many: &Crowd) -> Option<f64> {
    let few = crowds.iter().find(|few| few.is_like(many) && few.count == COUNTS[0])?;
    Some(many.wall().0 / many.count as f64 / (few.wall().0 / few.count as f64))
}

/// The measurements as a table.
pub fn table(crowds: &[Crowd]) -> String {
    let mut text = String::from(
        "| runtime | tasks | `ompd-inspect tasks PID` | time for each, to that of the smaller number | peak memory | \
         pause | lines | `gdb ... 'thread apply all bt'` |\n|---|---:|---|---:|---:|---:|---:|---|\n",
    );
    for crowd in crowds {
        let (wall, least) = crowd.wall();
        let (pause, _) = median_and_least(crowd.pauses.iter().copied()).unwrap_or_default();
        let grown = growth(crowds, crowd).unwrap_or_default();
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "| {} | {} {} | 1 × ({wall:.0} ms, least {least:.0}) | {grown:.2} × | {:.1} MB | {pause:.0} ms | {} | {:.2} × ({:.0} ms) |",
            crowd.runtime,
            crowd.count,
            crowd.which,
            crowd.peak(),
            crowd.lines,
            crowd.debugger() / wall,
            crowd.debugger(),
        );
    }
    text + "\n"
}

/// What the measurements must show.
pub(super) fn limits(crowds: &[Crowd]) -> Vec<Limit> {
    let mut limits = Vec::new();
    for crowd in crowds.iter().filter(|crowd| crowd.count == COUNTS[1]) {
        let mut add = |what: &str, measured: f64, most: f64, unit: &'static str| {
            let what = format!("{} {} tasks on {}: {what} {most} {unit}", crowd.count, crowd.which, crowd.runtime);
            limits.push(Limit { what, measured, unit, kept: measured <= most });
        };
        add("wall time, at most", crowd.wall().0 / 1e3, MOST_SECONDS, "s");
        add("peak memory, at most", crowd.peak(), MOST_MEMORY, "MB");
        if let Some(growth) = growth(crowds, crowd) {
            let what = format!("time for each, to that of {}, at most", COUNTS[0]);
            add(&what, growth, MOST_GROWTH, "×");
        }
    }
    limits
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn crowd(count: usize, milliseconds: u64, megabytes: u64) -> Crowd {
        Crowd {
            runtime: "some",
            which: "queued",
            count,
            costs: vec![Cost {
                wall: Duration::from_millis(milliseconds),
                cpu: Duration::from_millis(1),
                peak: megabytes << 20,
            }],
            pauses: vec![1.0],
            lines: 1,
            debugger: vec![1.0],
        }
    }

    #[test]
    fn limits_hold_for_the_larger_number() {
        let kept = |few, many| {
            let crowds = [crowd(COUNTS[0], few, 1), many];
            limits(&crowds).iter().map(|limit| limit.kept).collect::<Vec<_>>()
        };
        assert_eq!(kept(200, crowd(COUNTS[1], 3000, 300)), [true, true, true]);
        assert_eq!(kept(199, crowd(COUNTS[1], 3000, 301)), [true, false, false]);
        assert_eq!(kept(300, crowd(COUNTS[1], 3001, 1)), [false, true, true]);
        assert!(limits(&[crowd(COUNTS[0], 9000, 900)]).is_empty());
    }

    #[test]
    fn tasks_that_are_not_listed_count() {
        let state = |value: &str| Task { state: State { value: Some(value.to_owned()) } };
        let instance = Instance {
            tasks: vec![state("ready"), state("running"), state("ready")],
            more_tasks: vec![More { count: 7 }],
        };
        assert_eq!(instance.in_state("ready"), 9);
    }
}
