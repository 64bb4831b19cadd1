//! What cores cost by their size: memory, threads, tasks and libraries, beside gdb and eu-stack. The cores are the kernel's own, of
//! processes that hold still when they are aborted.

use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use test_programs::{Env, Launch, Opt, Runtime, Skip, Toolchain, await_all_blocked, build, libraries};

use super::goals::Goal;
use super::plot::{Curve, Panel, Plot};
use super::{Contestant, Cost, Limit, check_peaks, median_and_least, run_contestant};

/// Most memory that a look at a core may have resident at a time, in MB.
const MOST_MEMORY: f64 = 100.0;
/// The wall time for the largest memory may be this many times that for the least.
const MOST_OF_MEMORY: f64 = 1.25;
/// For what is counted, the time for each of the largest number may be this many times that for each of the one before.
const MOST_GROWTH: f64 = 1.25;
/// Threads of the processes that are large in another way.
const THREADS: usize = 64;
/// A command that takes longer runs once, and that counts. eu-stack takes minutes for thousands of threads.
const TOO_LONG: Duration = Duration::from_secs(10);

/// In what a core is large.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Axis {
    /// GB of memory, of which one page in 16 MB was written to.
    Memory,
    /// Threads of one team.
    Threads,
    /// Tasks that are queued.
    Tasks,
    /// Libraries beside those that the program needs.
    Libraries,
}

const AXES: [Axis; 4] = [Axis::Memory, Axis::Threads, Axis::Tasks, Axis::Libraries];

impl Axis {
    fn sizes(self) -> [usize; 3] {
        match self {
            Axis::Memory => [1, 4, 16],
            Axis::Threads => [250, 1000, 4000],
            Axis::Tasks => [10_000, 100_000, 1_000_000],
            Axis::Libraries => [100, 500, 2000],
        }
    }

    fn shown(self) -> &'static str {
        match self {
            Axis::Memory => "GB of memory",
            Axis::Threads => "threads",
            Axis::Tasks => "tasks",
            Axis::Libraries => "libraries",
        }
    }

    fn file(self) -> &'static str {
        match self {
            Axis::Memory => "cores-memory",
            Axis::Threads => "cores-threads",
            Axis::Tasks => "cores-tasks",
            Axis::Libraries => "cores-libraries",
        }
    }

    /// Threads of the process.
    fn threads(self, size: usize) -> usize {
        match self {
            Axis::Threads => size,
            Axis::Tasks => 2,
            Axis::Memory | Axis::Libraries => THREADS,
        }
    }

    /// The program, and its arguments for a size.
    fn launch(self, size: usize, libraries: &Path) -> Result<Launch> {
        let (program, arguments) = match self {
            Axis::Tasks => ("tasks_many", vec!["queued".into(), size.to_string()]),
            Axis::Threads | Axis::Memory | Axis::Libraries => {
                let of = |axis| if self == axis { size } else { 0 };
                let threads = self.threads(size).to_string();
                let (memory, count) = (of(Axis::Memory).to_string(), of(Axis::Libraries).to_string());
                ("vast", vec![threads, memory, libraries.display().to_string(), count])
            }
        };
        let program = build(program, Toolchain::Gcc, Opt::O2, &["-ldl"])?;
        let launch = Launch::new(&program, Runtime::Libgomp, Env::Settled);
        Ok(arguments.iter().fold(launch, |launch, argument| launch.argument(argument)))
    }
}

/// A core, and what it cost to look at it.
pub struct Core {
    axis: Axis,
    size: usize,
    /// Bytes of the file, and those of them that are on disk.
    file: [u64; 2],
    rows: Vec<(&'static str, Vec<Cost>)>,
}

/// Measures cores of all sizes, `rounds` times each after one round that does not count.
///
/// # Errors
/// When a core is not made, or a command fails or does not see all threads.
pub fn measure(inspect: &Path, rounds: usize) -> Result<Vec<Core>> {
    let made = libraries(Axis::Libraries.sizes().into_iter().max().unwrap_or_default())?;
    let mut all = Vec::new();
    for axis in AXES {
        match measure_axis(inspect, axis, made.path(), rounds)? {
            Ok(cores) => all.extend(cores),
            Err(skip) => skip.show(),
        }
    }
    Ok(all)
}

/// All sizes in turn: what disturbs one disturbs the others.
fn measure_axis(inspect: &Path, axis: Axis, libraries: &Path, rounds: usize) -> Result<Result<Vec<Core>, Skip>> {
    let mut cores = Vec::new();
    for size in axis.sizes() {
        eprintln!("a core with {size} {} ...", axis.shown());
        let directory = tempfile::tempdir().context("a directory for a core")?;
        let launch = axis.launch(size, libraries)?.leaving_core_in(directory.path());
        let executable = launch.executable().path.clone();
        let mut running = launch.start()?;
        await_all_blocked(running.pid, axis.threads(size), false)?;
        let path = match running.kernel_core(directory.path())? {
            Ok(path) => path,
            Err(skip) => return Ok(Err(skip)),
        };
        let of = fs::metadata(&path).context("the core")?;
        let contestants = contestants(inspect, &executable, &path);
        let rows = contestants.iter().map(|contestant| (contestant.shown, Vec::new())).collect();
        let core = Core { axis, size, file: [of.len(), 512 * of.blocks()], rows };
        cores.push((core, contestants, directory));
    }
    for round in 0..=rounds {
        let count = cores.len();
        for turn in 0..count {
            let (core, contestants, _) = &mut cores[(round + turn) % count];
            for turn in 0..contestants.len() {
                let which = (round + turn) % contestants.len();
                if core.rows[which].1.iter().any(|cost| cost.wall > TOO_LONG) {
                    continue;
                }
                let cost = run_contestant(&contestants[which], axis.threads(core.size))
                    .with_context(|| format!("a core with {} {}", core.size, axis.shown()))?;
                if round > 0 || cost.wall > TOO_LONG {
                    core.rows[which].1.push(cost);
                }
            }
        }
    }
    for (core, ..) in &cores {
        check_peaks(core.rows.iter().map(|(shown, costs)| (*shown, costs.as_slice())))?;
    }
    Ok(Ok(cores.into_iter().map(|(core, ..)| core).collect()))
}

const SUMMARY: &str = "ompd-inspect CORE";
const OURS: &str = "ompd-inspect threads CORE";

fn contestants(inspect: &Path, executable: &Path, core: &Path) -> Vec<Contestant> {
    let [core, executable] = [core, executable].map(|path| path.display().to_string());
    let command = |shown, program: &Path, arguments: &[&str], mark| Contestant {
        shown,
        program: program.to_owned(),
        arguments: arguments.iter().map(|argument| (*argument).to_owned()).collect(),
        mark,
    };
    let gdb = ["-nx", "-batch", &executable, &core, "-ex", "info threads"];
    let stack = ["--core", &core, "--executable", &executable];
    vec![
        command(SUMMARY, inspect, &[&core], None),
        command(OURS, inspect, &["threads", &core], None),
        command("gdb -nx -batch EXE CORE -ex 'info threads'", Path::new("gdb"), &gdb, Some("(LWP ")),
        command("eu-stack --core CORE --executable EXE", Path::new("eu-stack"), &stack, Some("TID ")),
    ]
}

impl Core {
    fn wall(&self, shown: &str) -> Option<(f64, f64)> {
        median_and_least(self.costs(shown)?.iter().map(|cost| cost.wall.as_secs_f64() * 1e3))
    }

    /// Most memory of any run, in MB.
    fn peak(&self, shown: &str) -> Option<f64> {
        Some(self.costs(shown)?.iter().map(|cost| cost.peak).max()? as f64 / f64::from(1 << 20))
    }

    fn costs(&self, shown: &str) -> Option<&[Cost]> {
        self.rows.iter().find(|(name, _)| *name == shown).map(|(_, costs)| costs.as_slice())
    }
}

/// The cores that are large in one way, the smallest first.
fn of_axis(cores: &[Core], axis: Axis) -> Vec<&Core> {
    cores.iter().filter(|core| core.axis == axis).collect()
}

/// How the time grows with the size, as judged: in all for memory, and for each of what is counted.
fn growth(cores: &[Core], axis: Axis, shown: &str) -> Option<f64> {
    let all = of_axis(cores, axis);
    let last = all.last()?;
    let wall = |core: &Core| Some(core.wall(shown)?.0);
    if axis == Axis::Memory {
        return Some(wall(last)? / wall(all.first()?)?);
    }
    let before = all.get(all.len().checked_sub(2)?)?;
    Some(wall(last)? / last.size as f64 / (wall(before)? / before.size as f64))
}

/// The measurements as a table.
pub fn table(cores: &[Core]) -> String {
    let mut text = String::from(
        "| core | file, on disk | command | wall time | to that of the smallest | peak memory |\n|---|---|---|---|---:|---:|\n",
    );
    for core in cores {
        let smallest = of_axis(cores, core.axis).first().copied();
        let ours = core.wall(SUMMARY).unwrap_or_default().0;
        for (shown, _) in &core.rows {
            let (wall, least) = core.wall(shown).unwrap_or_default();
            let first = smallest.and_then(|core| core.wall(shown)).unwrap_or_default().0;
            // Writing to a String cannot fail.
            let _ = writeln!(
                text,
                "| {} {} | {:.1} GB, {} MB | `{shown}` | {:.1} × ({wall:.1} ms, least {least:.1}) | {:.2} × | {:.1} MB |",
                core.size,
                core.axis.shown(),
                core.file[0] as f64 / f64::from(1 << 30),
                core.file[1] >> 20,
                wall / ours,
                wall / first,
                core.peak(shown).unwrap_or_default(),
            );
        }
    }
    text + "\n"
}

/// A picture for each way to be large: wall time and memory.
pub fn plots(cores: &[Core]) -> Vec<Plot> {
    let mut plots = Vec::new();
    for axis in AXES {
        let all = of_axis(cores, axis);
        let Some(first) = all.first() else { continue };
        let curves = |value: &dyn Fn(&Core, &str) -> Option<f64>| {
            let points = |shown| all.iter().filter_map(|core| Some((core.size as f64, value(core, shown)?))).collect();
            first.rows.iter().map(|(shown, _)| Curve { name: (*shown).to_owned(), points: points(shown) }).collect()
        };
        let panel = |y, curves| Panel { x: axis.shown(), y, curves };
        plots.push(Plot {
            name: axis.file(),
            title: format!("Cores by {}", axis.shown()),
            panels: vec![
                panel("wall time, ms", curves(&|core, shown| Some(core.wall(shown)?.0))),
                panel("peak memory, MB", curves(&|core, shown| core.peak(shown))),
            ],
        });
    }
    plots
}

/// The goals that are about cores.
pub fn goals(cores: &[Core]) -> Vec<Goal> {
    let largest = of_axis(cores, Axis::Memory).last().copied();
    let peaks = [SUMMARY, OURS].into_iter().filter_map(|shown| largest?.peak(shown));
    let mut goals =
        vec![Goal::most("memory for a core of 16 GB that is mostly holes", MOST_MEMORY, "MB", peaks.reduce(f64::max))];
    for axis in AXES {
        let sizes = axis.sizes();
        let grown = [SUMMARY, OURS].into_iter().filter_map(|shown| growth(cores, axis, shown)).reduce(f64::max);
        goals.push(if axis == Axis::Memory {
            Goal::most(
                format!("wall time for a core of {} GB, to one of {} GB", sizes[2], sizes[0]),
                MOST_OF_MEMORY,
                "×",
                grown,
            )
        } else {
            let what = format!("core: wall time for each of {} {}, to each of {}", sizes[2], axis.shown(), sizes[1]);
            Goal::most(what, MOST_GROWTH, "×", grown)
        });
    }
    goals
}

/// What the measurements must show: of what is a goal too.
pub(super) fn limits(cores: &[Core]) -> Vec<Limit> {
    goals(cores).iter().filter_map(Goal::limit).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn core(axis: Axis, size: usize, milliseconds: u64, megabytes: u64) -> Core {
        let wall = Duration::from_millis(milliseconds);
        let costs = || vec![Cost { wall, cpu: wall, peak: megabytes << 20 }];
        Core { axis, size, file: [1 << 30, 1 << 20], rows: vec![(SUMMARY, costs()), (OURS, costs()), ("gdb", costs())] }
    }

    #[test]
    fn memory_is_judged_in_all_and_what_is_counted_for_each() {
        let kept = |cores: &[Core]| limits(cores).iter().map(|limit| limit.kept).collect::<Vec<_>>();
        let memory = |last, peak| [core(Axis::Memory, 1, 20, 9), core(Axis::Memory, 16, last, peak)];
        assert_eq!(kept(&memory(25, 100)), [true, true]);
        assert_eq!(kept(&memory(26, 101)), [false, false]);
        let threads = |last| {
            [core(Axis::Threads, 250, 1, 1), core(Axis::Threads, 1000, 10, 1), core(Axis::Threads, 4000, last, 1)]
        };
        assert_eq!(kept(&threads(50)), [true]);
        assert_eq!(kept(&threads(51)), [false]);
    }

    #[test]
    fn the_table_and_the_plot_have_each_command() {
        let cores = [core(Axis::Threads, 250, 10, 5), core(Axis::Threads, 1000, 20, 6)];
        let text = table(&cores);
        assert!(
            text.contains("| 1000 threads | 1.0 GB, 1 MB | `gdb` | 1.0 × (20.0 ms, least 20.0) | 2.00 × | 6.0 MB |"),
            "{text}"
        );
        let plots = plots(&cores);
        assert_eq!(plots.len(), 1);
        assert_eq!(
            plots[0].panels[1].curves[2],
            Curve { name: "gdb".into(), points: vec![(250.0, 5.0), (1000.0, 6.0)] }
        );
    }
}
