//! The cost of showing the stacks of a team, and how much of them is shown. It is compared with debuggers, which follow each
//! stack to the start of its thread.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use test_programs::{Running, Runtime, Toolchain, await_all_blocked};

use super::goals::Goal;
use super::plot::{Curve, Panel, Plot};
use super::{Limit, floor, median_and_least, our_pause, paired, run_command};

/// Team size for which the limits hold.
const JUDGED: usize = 512;
/// Sizes whose time per thread is compared.
const COMPARED: [usize; 2] = [250, 1000];
/// `gdb` must take at least this many times as long.
const LEAST_LEAD: f64 = 5.0;
/// The pause may be this many times that of a program that does nothing but stop, copy the same bytes, and let go.
const MOST_PAUSE: f64 = 2.0;
/// Time for a thread of the larger team may be this many times that for one of the smaller.
const MOST_GROWTH: f64 = 1.25;

/// One command on one team.
struct Row {
    shown: &'static str,
    milliseconds: Vec<f64>,
    lines: usize,
    told: Named,
}

/// Of how many threads the output tells what.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Named {
    /// At least one function of the program.
    function: usize,
    /// The function that contains the region.
    main: usize,
}

/// All commands on one team.
pub struct Team {
    runtime: &'static str,
    threads: usize,
    rows: Vec<Row>,
    /// Pauses in milliseconds: ours, and the floor with the copy; the n-th of both were measured one after the other.
    pauses: [Vec<f64>; 2],
    /// Bytes of stacks that were copied.
    copied: u64,
}

/// Measures teams of several sizes on both runtimes, `rounds` times each after one round that does not count.
///
/// # Errors
/// When a command fails or does not see all threads.
pub fn measure(inspect: &Path, rounds: usize) -> Result<Vec<Team>> {
    let mut teams = Vec::new();
    for (toolchain, runtime, shown) in
        [(Toolchain::Gcc, Runtime::Libgomp, "libgomp"), (Toolchain::Clang, Runtime::Libomp14, "LLVM libomp 14")]
    {
        if let Err(skip) = toolchain.check().and_then(|()| runtime.library()) {
            skip.show();
            continue;
        }
        for threads in [COMPARED[0], JUDGED, COMPARED[1]] {
            let team = super::start(toolchain, runtime, threads, &[])?;
            teams.push(one(inspect, &team, shown, threads, rounds)?);
        }
    }
    Ok(teams)
}

fn one(inspect: &Path, team: &Running, runtime: &'static str, threads: usize, rounds: usize) -> Result<Team> {
    let pid = team.pid.to_string();
    let commands: [(&'static str, PathBuf, Vec<&str>); 3] = [
        ("ompd-inspect stacks PID", inspect.into(), vec!["stacks", &pid]),
        (GDB, "gdb".into(), vec!["-nx", "-batch", "-p", &pid, "-ex", "thread apply all bt"]),
        ("eu-stack -p PID", "eu-stack".into(), vec!["-p", &pid]),
    ];
    let mut rows: Vec<Row> = commands
        .iter()
        .map(|(shown, ..)| Row { shown, milliseconds: Vec::new(), lines: 0, told: Named::default() })
        .collect();
    let mut pauses = [Vec::new(), Vec::new()];
    let mut copied = 0;
    for round in 0..=rounds {
        for turn in 0..commands.len() {
            let which = (round + turn) % commands.len();
            let (shown, program, arguments) = &commands[which];
            await_all_blocked(team.pid, threads, false)?;
            let (took, text) = timed(program, arguments).with_context(|| format!("running {shown}"))?;
            let row = &mut rows[which];
            row.lines = text.lines().count();
            // The rows of our own text stand for many threads; the document has one stack for each.
            row.told = if which == 0 { told_by_us(inspect, &pid, threads)? } else { told(&text) };
            let seen = text.lines().filter(|line| line.starts_with("Thread ") || line.starts_with("TID ")).count();
            ensure!(which == 0 || seen >= threads, "{shown} shows {seen} of {threads} threads");
            if round > 0 {
                row.milliseconds.push(took);
            }
        }
        for turn in 0..2 {
            await_all_blocked(team.pid, threads, false)?;
            let which = (round + turn) % 2;
            let pause = if which == 0 {
                our_pause(inspect, &[], team.pid, threads)?
            } else {
                let (pause, bytes) = floor::pause_with_stacks(team.pid)?;
                copied = bytes;
                pause.as_secs_f64() * 1e3
            };
            if round > 0 {
                pauses[which].push(pause);
            }
        }
    }
    Ok(Team { runtime, threads, rows, pauses, copied })
}

/// The contestant that is to be beaten by [`LEAST_LEAD`].
const GDB: &str = "gdb -nx -batch -p PID -ex 'thread apply all bt'";

/// Milliseconds from start to end, and what was printed.
fn timed(program: &Path, arguments: &[&str]) -> Result<(f64, String)> {
    let output = tempfile::NamedTempFile::new().context("making a file for output")?;
    let mut command = Command::new(program);
    command.env_remove("DEBUGINFOD_URLS").args(arguments);
    command.stdin(Stdio::null()).stdout(output.reopen()?).stderr(Stdio::null());
    let (status, cost) = run_command(&mut command)?;
    ensure!(status == 0, "wait status {status:#x}");
    let text = fs::read(output.path()).context("reading the output")?;
    Ok((cost.wall.as_secs_f64() * 1e3, String::from_utf8_lossy(&text).into_owned()))
}

/// True for functions of the team's program that are on the way to the barrier.
fn is_own(line: &str) -> bool {
    ["member_body", "_omp_fn", "omp_outlined"].iter().any(|name| line.contains(name)) || is_main(line)
}

fn is_main(line: &str) -> bool {
    line.split(|c: char| !c.is_alphanumeric() && c != '_' && c != '.').any(|word| word == "main")
}

/// Counts in the stacks that a debugger prints, each under a heading of its own.
fn told(text: &str) -> Named {
    let mut told = Named::default();
    let (mut own, mut main) = (false, false);
    for line in text.lines().chain(["TID "]) {
        if line.starts_with("Thread ") || line.starts_with("TID ") {
            told.function += usize::from(own);
            told.main += usize::from(main);
            (own, main) = (false, false);
        }
        if line.trim_start().starts_with('#') {
            own |= is_own(line);
            main |= is_main(line);
        }
    }
    told
}

/// What is needed of the document.
#[derive(Deserialize)]
struct Document {
    stacks: Vec<Stack>,
}

#[derive(Deserialize)]
struct Stack {
    lwp: i32,
    frames: Vec<Frame>,
}

#[derive(Deserialize)]
struct Frame {
    function: Option<String>,
}

fn told_by_us(inspect: &Path, pid: &str, threads: usize) -> Result<Named> {
    let (_, text) = timed(inspect, &["stacks", "--json", pid])?;
    let document: Document = serde_json::from_str(&text).context("the document of ompd-inspect")?;
    let lwps: BTreeSet<i32> = document.stacks.iter().map(|stack| stack.lwp).collect();
    ensure!(lwps.len() == threads, "ompd-inspect shows {} of {threads} threads", lwps.len());
    let functions = |stack: &Stack| stack.frames.iter().filter_map(|f| f.function.clone()).collect::<Vec<_>>();
    let all: Vec<Vec<String>> = document.stacks.iter().map(functions).collect();
    Ok(Named {
        function: all.iter().filter(|names| names.iter().any(|name| is_own(name))).count(),
        main: all.iter().filter(|names| names.iter().any(|name| is_main(name))).count(),
    })
}

impl Row {
    fn wall(&self) -> (f64, f64) {
        median_and_least(self.milliseconds.iter().copied()).unwrap_or_default()
    }
}

impl Team {
    fn pause(&self) -> [(f64, f64); 2] {
        [0, 1].map(|which| median_and_least(self.pauses[which].iter().copied()).unwrap_or_default())
    }

    /// Our pause in multiples of the floor's: the middle one of the pairs that were measured one after the other.
    fn ratio(&self) -> f64 {
        paired(&self.pauses[0], &self.pauses[1]).unwrap_or_default()
    }
}

/// The measurements as tables.
pub fn table(teams: &[Team]) -> String {
    let mut text = String::from(
        "| runtime | threads | command | wall time | lines | a function of the program named | `main` named |\n\
         |---|---:|---|---|---:|---:|---:|\n",
    );
    for team in teams {
        let first = team.rows.first().map_or(0.0, |row| row.wall().0);
        for row in &team.rows {
            let (wall, least) = row.wall();
            // Writing to a String cannot fail.
            let _ = writeln!(
                text,
                "| {} | {} | `{}` | {:.1} × ({wall:.1} ms, least {least:.1}) | {} | {} | {} |",
                team.runtime,
                team.threads,
                row.shown,
                wall / first,
                row.lines,
                row.told.function,
                row.told.main
            );
        }
    }
    text += "\n| runtime | threads | pause | floor with the copy | copied |\n|---|---:|---|---|---:|\n";
    for team in teams {
        let [(ours, our_least), (floor, floor_least)] = team.pause();
        let _ = writeln!(
            text,
            "| {} | {} | {:.2} × ({ours:.2} ms, least {our_least:.2}) | 1 × ({floor:.2} ms, least {floor_least:.2}) | {} KiB |",
            team.runtime,
            team.threads,
            team.ratio(),
            team.copied >> 10
        );
    }
    text + "\n"
}

/// What the measurements must show.
pub(super) fn limits(teams: &[Team]) -> Vec<Limit> {
    let mut limits = Vec::new();
    let mut add = |what: String, measured: f64, unit, kept| limits.push(Limit { what, measured, unit, kept });
    for team in teams.iter().filter(|team| team.threads == JUDGED) {
        let (Some(ours), Some(gdb)) = (team.rows.first(), team.rows.iter().find(|row| row.shown == GDB)) else {
            continue;
        };
        let on = format!("stacks of {JUDGED} threads on {}", team.runtime);
        let lead = gdb.wall().0 / ours.wall().0;
        add(format!("{on}: gdb's wall time, at least {LEAST_LEAD} × ours"), lead, "×", lead >= LEAST_LEAD);
        let ratio = team.ratio();
        let what = format!("{on}: pause, at most {MOST_PAUSE} × the floor with the copy");
        add(what, ratio, "×", ratio <= MOST_PAUSE);
        let least = ours.told.function.min(ours.told.main);
        add(format!("{on}: threads told of up to `main`, all of them"), least as f64, "threads", least == JUDGED);
    }
    for runtime in teams.iter().map(|team| team.runtime).collect::<BTreeSet<_>>() {
        let per_thread = |threads: usize| {
            let team = teams.iter().find(|team| team.runtime == runtime && team.threads == threads)?;
            Some(team.rows.first()?.wall().0 / threads as f64)
        };
        if let (Some(few), Some(many)) = (per_thread(COMPARED[0]), per_thread(COMPARED[1])) {
            let what = format!(
                "stacks on {runtime}: time for each of {} threads, at most {MOST_GROWTH} × that of {}",
                COMPARED[1], COMPARED[0]
            );
            add(what, many / few, "×", many / few <= MOST_GROWTH);
        }
    }
    limits
}

/// The goal of pauses that copy stacks.
pub fn goals(teams: &[Team]) -> Vec<Goal> {
    let worst = teams.iter().map(Team::ratio).reduce(f64::max);
    let what = "pause of a report with `--pause brief`, to the floor with the copy, every size and runtime";
    vec![Goal::most(what, 1.5, "×", worst)]
}

/// Wall times and pauses of each runtime.
pub fn plots(teams: &[Team]) -> Vec<Plot> {
    let mut runtimes: Vec<&str> = teams.iter().map(|team| team.runtime).collect();
    runtimes.dedup();
    let of_runtime = |wanted: &str| teams.iter().filter(|team| team.runtime == wanted).collect::<Vec<_>>();
    let panels = |y: &'static str, curves: &dyn Fn(&[&Team]) -> Vec<Curve>| {
        let panel = |runtime: &&str| Panel { x: "threads", y, curves: curves(&of_runtime(runtime)) };
        runtimes.iter().map(panel).collect()
    };
    let walls = |teams: &[&Team]| {
        let Some(first) = teams.first() else { return Vec::new() };
        let point = |team: &&Team, which: usize| Some((team.threads as f64, team.rows.get(which)?.wall().0));
        let curve = |(which, row): (usize, &Row)| Curve {
            name: row.shown.to_owned(),
            points: teams.iter().filter_map(|team| point(team, which)).collect(),
        };
        first.rows.iter().enumerate().map(curve).collect()
    };
    let pauses = |teams: &[&Team]| {
        let curve = |(which, name): (usize, &str)| Curve {
            name: name.to_owned(),
            points: teams.iter().map(|team| (team.threads as f64, team.pause()[which].0)).collect(),
        };
        ["ompd-inspect --pause brief", "floor with the copy"].into_iter().enumerate().map(curve).collect()
    };
    let shown = runtimes.join(", ");
    vec![
        Plot { name: "stacks", title: format!("All stacks: {shown}"), panels: panels("wall time, ms", &walls) },
        Plot {
            name: "copies",
            title: format!("Pauses with the copy of all stacks: {shown}"),
            panels: panels("pause, ms", &pauses),
        },
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_counted_by_their_headings() {
        let text = "Thread 2 (LWP 5):\n#0  futex\n#1  member_body () at many.c:7\n#2  main._omp_fn.0 ()\n\n\
                    Thread 1 (LWP 4):\n#0  read\n#1  0x1 in member_body ()\n#2  0x2 in main (argc=2)\n";
        assert_eq!(told(text), Named { function: 2, main: 1 });
        assert_eq!(
            told("TID 4:\n#0  0x1 read\n#1  0x2 main\nTID 5:\n#0 0x1 start_thread\n"),
            Named { function: 1, main: 1 }
        );
    }

    #[test]
    fn limits_hold_for_one_size() {
        let row = |shown, wall: f64, count| Row {
            shown,
            milliseconds: vec![wall],
            lines: 1,
            told: Named { function: count, main: count },
        };
        let team = |threads, ours: f64, gdb: f64, pause: f64| Team {
            runtime: "some",
            threads,
            rows: vec![row("ompd-inspect stacks PID", ours, threads), row(GDB, gdb, 1)],
            pauses: [vec![pause], vec![1.0]],
            copied: 0,
        };
        let kept = |teams: &[Team]| limits(teams).iter().map(|limit| limit.kept).collect::<Vec<_>>();
        assert_eq!(kept(&[team(JUDGED, 10.0, 50.0, 2.0)]), [true, true, true]);
        assert_eq!(kept(&[team(JUDGED, 10.0, 49.0, 2.1)]), [false, false, true]);
        assert_eq!(kept(&[team(16, 10.0, 1.0, 9.0)]), [] as [bool; 0]);
        assert_eq!(kept(&[team(250, 10.0, 1.0, 9.0), team(1000, 50.0, 1.0, 9.0)]), [true]);
        assert_eq!(kept(&[team(250, 10.0, 1.0, 9.0), team(1000, 51.0, 1.0, 9.0)]), [false]);
    }
}
