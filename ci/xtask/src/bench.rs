//! `ci/bench`: what an inspection costs, against the tools people use today and against the least it could cost.
//!
//! All contestants look at the same process, a team of which all members but one sleep at a barrier. They take turns,
//! so that a busy moment of the machine hits all alike. Only what was measured is written, and only of runs that are
//! seen to have done the whole work.

mod companion;
mod cores;
mod floor;
mod goals;
mod merge;
mod ompd;
mod plot;
mod plugin;
mod python;
mod resolve;
mod stacks;
mod tasks;

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use clap::{Args, ValueEnum};
use nix::errno::Errno;
use nix::libc;
use serde::Deserialize;
use serde::de::IgnoredAny;
use test_programs::{Env, Launch, Opt, Running, Runtime, Toolchain, await_all_blocked, build};

use goals::Goal;
use plot::{Curve, Panel, Plot};

/// Team size for which the limits below hold.
const JUDGED: usize = 256;
/// The pause may be this many times the floor.
const MOST_PAUSE: f64 = 2.0;
/// `gdb` with `info threads` must take at least this many times as long as the whole command.
const LEAST_LEAD: f64 = 6.0;

/// The result stands in the document between these lines.
const MARKS: [&str; 2] = ["<!-- ci/bench: begin -->", "<!-- ci/bench: end -->"];
/// That of the section which is measured by itself.
const MERGE_MARKS: [&str; 2] = ["<!-- ci/bench --only merge: begin -->", "<!-- ci/bench --only merge: end -->"];

/// Arguments of `bench`.
#[derive(Args)]
pub struct Arguments {
    /// Team sizes.
    #[arg(long, value_name = "N,...", value_delimiter = ',', default_value = "16,256,1000")]
    threads: Vec<usize>,
    /// How often each contestant runs for each team size, after one run that does not count.
    #[arg(long, value_name = "COUNT", default_value_t = 11)]
    rounds: usize,
    /// Measure this section alone. Of single sections, --write is for merge.
    #[arg(long, value_name = "SECTION")]
    only: Option<Section>,
    /// Write the result to docs/benchmarks.md, and the pictures beside it.
    #[arg(long)]
    write: bool,
    /// Write the pictures to this folder.
    #[arg(long, value_name = "FOLDER")]
    plots: Option<PathBuf>,
}

/// What can be measured by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Section {
    /// Whole commands and pauses, on teams of several sizes.
    Teams,
    /// Finding a layout.
    Layouts,
    /// Stacks.
    Stacks,
    /// A million tasks.
    Tasks,
    /// Large cores.
    Cores,
    /// Stacks of a Python process.
    Python,
    /// What the library for debuggers asks of a debugger.
    Ompd,
    /// The plugin for gdb.
    Plugin,
    /// What the companion costs the program.
    Companion,
    /// Merging the reports of a job.
    Merge,
}

/// Measures and prints.
///
/// # Errors
/// When something needed is missing, or a run does not do its work. Also when a limit is not kept, after everything is printed
/// and written.
pub fn run(arguments: &Arguments) -> Result<()> {
    ensure!(!cfg!(debug_assertions), "this build is not optimised; start ci/bench, which makes one that is");
    ensure!(arguments.rounds > 0, "without rounds there is nothing to measure");
    let marks = match arguments.only {
        None => MARKS,
        Some(Section::Merge) => MERGE_MARKS,
        Some(section) => {
            ensure!(!arguments.write, "{section:?} is written with all others, without --only");
            MARKS
        }
    };
    let inspect = built_beside("ompd-inspect")?;

    let load = fs::read_to_string("/proc/loadavg").context("the load of the machine")?;
    let wants = |section| arguments.only.is_none_or(|only| only == section);
    let (mut limits, mut goals, mut plots) = (Vec::new(), Vec::new(), Vec::new());
    let mut text = String::new();
    let mut show = |text: &mut String, drawn: Vec<Plot>| {
        text.extend(drawn.iter().map(Plot::link));
        plots.extend(drawn);
    };
    if wants(Section::Teams) {
        let Teams { commands, proofs, deadlock, pauses } = measure_teams(&inspect, arguments)?;
        limits.extend(judge(&commands, &pauses));
        goals.extend(command_goals(&commands, &deadlock));
        goals.extend(pause_goals(&pauses));
        text += &commands_table(&commands);
        text += &proofs_table(&commands, &proofs);
        text += &deadlock_text(&deadlock);
        show(&mut text, commands_plot(&commands));
        text += &pauses_table(&pauses);
        show(&mut text, pauses_plot(&pauses));
    }
    if wants(Section::Layouts) {
        let resolutions = resolve::measure(arguments.rounds)?;
        limits.extend(resolutions.iter().map(resolve::Resolution::limit));
        text += &resolve::table(&resolutions);
    }
    if wants(Section::Stacks) {
        let stacks = stacks::measure(&inspect, arguments.rounds)?;
        limits.extend(stacks::limits(&stacks));
        goals.extend(stacks::goals(&stacks));
        text += &stacks::table(&stacks);
        show(&mut text, stacks::plots(&stacks));
    }
    if wants(Section::Tasks) {
        let crowds = tasks::measure(&inspect, arguments.rounds)?;
        limits.extend(tasks::limits(&crowds));
        text += &tasks::table(&crowds);
    }
    if wants(Section::Cores) {
        let measured = cores::measure(&inspect, arguments.rounds)?;
        limits.extend(cores::limits(&measured));
        goals.extend(cores::goals(&measured));
        text += &cores::table(&measured);
        show(&mut text, cores::plots(&measured));
    }
    if wants(Section::Python) {
        text += &python::measure(&inspect, arguments.rounds)?;
    }
    if wants(Section::Ompd) {
        let asked = ompd::measure(arguments.rounds)?;
        limits.extend(ompd::limits(&asked));
        goals.extend(ompd::goals(&asked));
        text += &ompd::table(&asked);
    }
    if wants(Section::Plugin) {
        let measured = plugin::measure(arguments.rounds)?;
        limits.extend(plugin::limits(&measured));
        goals.extend(plugin::goals(&measured));
        text += &plugin::table(&measured);
        show(&mut text, plugin::plots(&measured));
    }
    if wants(Section::Companion) {
        let measured = companion::measure(arguments.rounds)?;
        limits.extend(companion::limits(&measured));
        text += &companion::table(&measured);
    }
    // It takes minutes and has a part of the page for itself.
    if arguments.only == Some(Section::Merge) {
        let measured = merge::measure(&inspect, arguments.rounds)?;
        limits.extend(merge::limits(&measured));
        text += &merge::table(&measured);
    }
    for limit in &limits {
        let verdict = if limit.kept { "kept" } else { "**not kept**" };
        writeln!(text, "- {}: {:.2} {} ({verdict})", limit.what, limit.measured, limit.unit)?;
    }
    let aimed = if goals.is_empty() { String::new() } else { goals::table(&goals) };
    let text = machine(arguments, &load)? + &aimed + &text;
    print!("{text}");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    for folder in arguments.plots.as_deref().into_iter().chain(arguments.write.then_some(folder.as_path())) {
        for plot in &plots {
            plot.write(folder)?;
        }
    }
    if arguments.write {
        let file = folder.join("benchmarks.md");
        let old = fs::read_to_string(&file).context("reading docs/benchmarks.md")?;
        fs::write(&file, replace(&old, &text, marks)?).context("writing docs/benchmarks.md")?;
    }
    let broken: Vec<&str> = limits.iter().filter(|limit| !limit.kept).map(|limit| &*limit.what).collect();
    ensure!(broken.is_empty(), "not kept: {}", broken.join("; "));
    Ok(())
}

/// What is measured on teams.
struct Teams {
    /// Commands on libgomp, for each team size.
    commands: Vec<(usize, Vec<Row>)>,
    /// What showing that none of these threads runs takes by itself, in milliseconds.
    proofs: Vec<(usize, Vec<f64>)>,
    /// The summary of a team of [`DEADLOCKED`] on libgomp that nothing can end.
    deadlock: Row,
    /// Pauses on every runtime, for each team size.
    pauses: Vec<(&'static str, usize, Pauses)>,
}

fn measure_teams(inspect: &Path, arguments: &Arguments) -> Result<Teams> {
    let mut commands = Vec::new();
    let mut proofs = Vec::new();
    let mut pauses = Vec::new();
    let deadlock = measure_deadlock(inspect, arguments.rounds)?;
    for &threads in &arguments.threads {
        let team = start(Toolchain::Gcc, Runtime::Libgomp, threads, &[])?;
        commands.push((threads, measure_commands(inspect, &team, threads, arguments.rounds)?));
        let proof = |_| Ok(floor::proof(team.pid)?.as_secs_f64() * 1e3);
        proofs.push((threads, (0..3 * arguments.rounds).map(proof).collect::<Result<_>>()?));
        pauses.push(("libgomp", threads, measure_pauses(inspect, &team, threads, arguments.rounds)?));
    }
    match Toolchain::Clang.check().and_then(|()| Runtime::Libomp14.library()) {
        Err(skip) => skip.show(),
        Ok(_) => {
            for &threads in &arguments.threads {
                let team = start(Toolchain::Clang, Runtime::Libomp14, threads, &[])?;
                pauses.push(("LLVM libomp 14", threads, measure_pauses(inspect, &team, threads, arguments.rounds)?));
            }
        }
    }
    Ok(Teams { commands, proofs, deadlock, pauses })
}

/// How many threads the team has whose verdict is a deadlock.
const DEADLOCKED: usize = 16;

fn measure_deadlock(inspect: &Path, rounds: usize) -> Result<Row> {
    let team = start(Toolchain::Gcc, Runtime::Libgomp, DEADLOCKED, &["lock"])?;
    let summary = Contestant {
        shown: SUMMARY,
        program: inspect.into(),
        arguments: vec![team.pid.to_string()],
        mark: Some("DEADLOCK"),
    };
    let mut costs = Vec::new();
    for round in 0..=rounds {
        await_all_blocked(team.pid, DEADLOCKED, false)?;
        let cost = run_contestant(&summary, 1)?;
        if round > 0 {
            costs.push(cost);
        }
    }
    Ok(Row { shown: SUMMARY, costs })
}

/// The program that cargo put where it put this one.
pub(crate) fn built_beside(name: &str) -> Result<PathBuf> {
    let file = std::env::current_exe().context("where this program is")?.with_file_name(name);
    ensure!(file.is_file(), "{name} is not built; ci/bench and ci/matrix build it");
    Ok(file)
}

/// A team of so many threads, all asleep: one in `read` on a pipe, the others at a barrier where it is missing. `more` are arguments
/// that make it another one.
fn start(toolchain: Toolchain, runtime: Runtime, threads: usize, more: &[&str]) -> Result<Running> {
    eprintln!("{threads} threads on {runtime:?} ...");
    let program = build("many", toolchain, Opt::O2, &[])?;
    let launch = Launch::new(&program, runtime, Env::Settled).argument(&threads.to_string());
    let team = more.iter().fold(launch, |launch, argument| launch.argument(argument)).start()?;
    await_all_blocked(team.pid, threads, false)?;
    Ok(team)
}

/// A command to compare, and how its output shows that it did its work.
struct Contestant {
    /// As the reader would type it.
    shown: &'static str,
    program: PathBuf,
    arguments: Vec<String>,
    /// What at least one line of output for each thread holds; `None` if only the exit status tells.
    mark: Option<&'static str>,
}

/// What one run, or the middle one of several, took.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cost {
    pub(crate) wall: Duration,
    /// Processor time.
    cpu: Duration,
    /// Most memory resident at a time, in bytes.
    pub(crate) peak: u64,
}

/// All runs of one command.
struct Row {
    shown: &'static str,
    costs: Vec<Cost>,
}

/// All pauses of one process in milliseconds; the n-th of both were measured one right after the other.
struct Pauses {
    /// With `--pause brief`.
    ours: Vec<f64>,
    /// Of `threads --pause brief`.
    threads: Vec<f64>,
    floor: Vec<f64>,
    /// Of one stop without that option, and how many threads were stopped: none, for no time, if all slept.
    left: Vec<(f64, usize)>,
}

fn contestants(inspect: &Path, pid: i32) -> Vec<Contestant> {
    let pid = pid.to_string();
    // Without -nx the settings of whoever runs this would be measured.
    let gdb = |command: &str| ["-nx", "-batch", "-p", &pid, "-ex", command].map(str::to_owned).to_vec();
    vec![
        // The first one is what the others are compared with. Its status is 0 only if everything was read.
        Contestant {
            shown: "ompd-inspect threads PID",
            program: inspect.into(),
            arguments: vec!["threads".into(), pid.clone()],
            mark: None,
        },
        Contestant { shown: SUMMARY, program: inspect.into(), arguments: vec![pid.clone()], mark: None },
        Contestant {
            shown: "ompd-inspect --json PID",
            program: inspect.into(),
            arguments: vec!["--json".into(), pid.clone()],
            mark: Some("\"lwp\":"),
        },
        Contestant { shown: GDB_THREADS, program: "gdb".into(), arguments: gdb("info threads"), mark: Some("(LWP ") },
        Contestant {
            shown: "gdb -nx -batch -p PID -ex 'thread apply all bt'",
            program: "gdb".into(),
            arguments: gdb("thread apply all bt"),
            mark: Some("#0 "),
        },
        Contestant { shown: STACKS, program: "eu-stack".into(), arguments: vec!["-p".into(), pid], mark: Some("TID ") },
        // What each of ours takes at least.
        Contestant { shown: VERSION, program: inspect.into(), arguments: vec!["--version".into()], mark: None },
    ]
}

const SUMMARY: &str = "ompd-inspect PID";
const VERSION: &str = "ompd-inspect --version";
const STACKS: &str = "eu-stack -p PID";
/// The contestant that is to be beaten by [`LEAST_LEAD`].
const GDB_THREADS: &str = "gdb -nx -batch -p PID -ex 'info threads'";

fn measure_commands(inspect: &Path, team: &Running, threads: usize, rounds: usize) -> Result<Vec<Row>> {
    let contestants = contestants(inspect, team.pid);
    let mut rows: Vec<Row> = contestants.iter().map(|c| Row { shown: c.shown, costs: Vec::new() }).collect();
    for round in 0..=rounds {
        // Each begins a round now and then: nobody has always the same predecessor to suffer from.
        for turn in 0..contestants.len() {
            let which = (round + turn) % contestants.len();
            // A tool woke all threads when it let them go.
            await_all_blocked(team.pid, threads, false)?;
            let cost = run_contestant(&contestants[which], threads)?;
            if round > 0 {
                rows[which].costs.push(cost);
            }
        }
    }
    check_peaks(rows.iter().filter(|row| row.shown != VERSION).map(|row| (row.shown, row.costs.as_slice())))?;
    Ok(rows)
}

/// That the memory of `ompd-inspect` is its own. The kernel charges a process with what its parent had when it started it, so this
/// program's must be below. What other commands take is at most what is shown.
fn check_peaks<'a>(rows: impl IntoIterator<Item = (&'a str, &'a [Cost])>) -> Result<()> {
    let own = own_peak()?;
    for (shown, costs) in rows.into_iter().filter(|(shown, _)| shown.starts_with("ompd-inspect")) {
        let least = costs.iter().map(|cost| cost.peak).min().unwrap_or(0);
        ensure!(least > own, "{shown}: its memory ({least} bytes) cannot be told from that of this program");
    }
    Ok(())
}

/// From here on counts what memory this process has resident now: proc_pid_clear_refs(5). What it has freed is given back first.
fn forget_peak() -> Result<()> {
    // SAFETY: it has no preconditions.
    unsafe { libc::malloc_trim(0) };
    fs::write("/proc/self/clear_refs", "5").context("/proc/self/clear_refs")
}

/// Most memory this process had resident at a time since it last ran a command, in bytes. Not from getrusage: that goes back to before
/// `execve`.
fn own_peak() -> Result<u64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB"));
    Ok(peak.context("no VmHWM in our status")?.parse::<u64>()? << 10)
}

fn run_contestant(contestant: &Contestant, threads: usize) -> Result<Cost> {
    let mut output = tempfile::tempfile().context("making a file for output")?;
    let mut errors = tempfile::tempfile().context("making a file for errors")?;
    let mut command = Command::new(&contestant.program);
    // A question to a server in the network is no part of the work.
    command.env_remove("DEBUGINFOD_URLS").args(&contestant.arguments);
    command.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(errors.try_clone()?);
    let (status, cost) = run_command(&mut command).with_context(|| format!("running {}", contestant.shown))?;
    if status != 0 {
        bail!("{} ended with wait status {status:#x}: {}", contestant.shown, text_of(&mut errors)?);
    }
    if let Some(mark) = contestant.mark {
        let seen = lines_with(mark, &mut output)?;
        ensure!(seen >= threads, "{} shows {seen} of {threads} threads", contestant.shown);
    }
    Ok(cost)
}

/// Runs a command to its end; gives its status as `wait(2)` has it.
pub(crate) fn run_command(command: &mut Command) -> Result<(i32, Cost)> {
    forget_peak()?;
    let began = Instant::now();
    let child = command.spawn()?;
    let pid = i32::try_from(child.id())?;
    let (mut status, mut usage) = (0, std::mem::MaybeUninit::<libc::rusage>::zeroed());
    loop {
        // Not `Child::wait`: neither std nor nix gives the resources one child used. `child` is not waited for elsewhere.
        // SAFETY: both pointers are to places of the right type that live through the call.
        if unsafe { libc::wait4(pid, &mut status, 0, usage.as_mut_ptr()) } == pid {
            break;
        }
        ensure!(Errno::last() == Errno::EINTR, "wait4: {}", Errno::last());
    }
    let wall = began.elapsed();
    // SAFETY: a struct of integers, for which zeroes are values too; wait4 filled it besides.
    let usage = unsafe { usage.assume_init() };
    let time = |of: libc::timeval| {
        Ok::<_, anyhow::Error>(Duration::new(u64::try_from(of.tv_sec)?, 1000 * u32::try_from(of.tv_usec)?))
    };
    let cpu = time(usage.ru_utime)? + time(usage.ru_stime)?;
    Ok((status, Cost { wall, cpu, peak: u64::try_from(usage.ru_maxrss)? << 10 }))
}

fn text_of(file: &mut File) -> Result<String> {
    let mut text = String::new();
    file.seek(SeekFrom::Start(0))?;
    file.read_to_string(&mut text)?;
    Ok(text)
}

/// How many lines have this mark. The file is not read whole; see [`own_peak`].
fn lines_with(mark: &str, file: &mut File) -> Result<usize> {
    file.seek(SeekFrom::Start(0))?;
    let mut count = 0;
    for line in BufReader::new(file).lines() {
        count += usize::from(line?.contains(mark));
    }
    Ok(count)
}

/// What is needed of the output of `ompd-inspect --json`.
#[derive(Deserialize)]
struct Report {
    complete: bool,
    pause_ms: f64,
    stops: u32,
    stopped_threads: Option<usize>,
    os_threads: Vec<IgnoredAny>,
}

fn measure_pauses(inspect: &Path, team: &Running, threads: usize, rounds: usize) -> Result<Pauses> {
    let mut pauses = Pauses { ours: Vec::new(), threads: Vec::new(), floor: Vec::new(), left: Vec::new() };
    // Pauses are short and jitter: more of them cost little.
    for round in 0..=3 * rounds {
        let (mut ours, mut of_threads, mut floor) = (0.0, 0.0, 0.0);
        for turn in 0..3 {
            await_all_blocked(team.pid, threads, false)?;
            match (round + turn) % 3 {
                0 => ours = our_pause(inspect, &[], team.pid, threads)?,
                1 => of_threads = our_pause(inspect, &["threads"], team.pid, threads)?,
                _ => floor = floor::pause(team.pid)?.as_secs_f64() * 1e3,
            }
        }
        await_all_blocked(team.pid, threads, false)?;
        let report = report(inspect, &["--json"], team.pid, threads)?;
        if round > 0 {
            pauses.ours.push(ours);
            pauses.threads.push(of_threads);
            pauses.floor.push(floor);
            // All of them, if it does not say how many.
            let stopped = report.stopped_threads.unwrap_or(threads);
            pauses.left.push((report.pause_ms / f64::from(report.stops.max(1)), stopped));
        }
    }
    Ok(pauses)
}

/// The pause of one stop of all threads that a command of `ompd-inspect` says it caused, in milliseconds.
fn our_pause(inspect: &Path, command: &[&str], pid: i32, threads: usize) -> Result<f64> {
    let report = report(inspect, &[command, &["--json", "--pause", "brief"]].concat(), pid, threads)?;
    ensure!(report.stops > 0, "ompd-inspect did not stop the process");
    Ok(report.pause_ms / f64::from(report.stops))
}

/// What `ompd-inspect` says of a process. It must have read all of it.
fn report(inspect: &Path, arguments: &[&str], pid: i32, threads: usize) -> Result<Report> {
    let mut output = tempfile::tempfile().context("making a file for output")?;
    let mut command = Command::new(inspect);
    command.args(arguments).arg(pid.to_string()).stdin(Stdio::null()).stdout(output.try_clone()?);
    let status = command.status().context("running ompd-inspect")?;
    ensure!(status.success(), "ompd-inspect --json ended with {status}");
    output.seek(SeekFrom::Start(0))?;
    let report: Report = serde_json::from_reader(BufReader::new(output)).context("the report of ompd-inspect")?;
    ensure!(report.complete && report.os_threads.len() == threads, "ompd-inspect did not read all {threads} threads");
    Ok(report)
}

/// Middle value and least value; of an even number of values the greater of the middle two.
fn median_and_least<T: PartialOrd + Copy>(values: impl IntoIterator<Item = T>) -> Option<(T, T)> {
    let mut values: Vec<T> = values.into_iter().collect();
    values.sort_by(|a, b| a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal));
    Some((*values.get(values.len() / 2)?, *values.first()?))
}

impl Row {
    /// Median and least wall time, in milliseconds.
    fn wall(&self) -> (f64, f64) {
        median_and_least(self.costs.iter().map(|cost| cost.wall.as_secs_f64() * 1e3)).unwrap_or_default()
    }

    /// Median of the peak memory, in MiB.
    fn peak(&self) -> f64 {
        let (median, _) = median_and_least(self.costs.iter().map(|cost| cost.peak)).unwrap_or_default();
        median as f64 / f64::from(1 << 20)
    }
}

impl Pauses {
    /// Ours, that of `threads`, and the floor, in milliseconds, each as median and least value.
    fn summary(&self) -> [(f64, f64); 3] {
        [&self.ours, &self.threads, &self.floor]
            .map(|values| median_and_least(values.iter().copied()).unwrap_or_default())
    }

    /// How many times the floor our pause is, medians compared.
    fn ratio(&self) -> f64 {
        let [(ours, _), _, (floor, _)] = self.summary();
        ours / floor
    }

    /// How many threads are stopped by default.
    fn stopped(&self) -> usize {
        median_and_least(self.left.iter().map(|(_, stopped)| *stopped)).unwrap_or_default().0
    }
}

/// Multiples of what was measured right after: the middle one of the pairs.
fn paired(of: &[f64], to: &[f64]) -> Option<f64> {
    Some(median_and_least(of.iter().zip(to).map(|(of, to)| of / to))?.0)
}

/// How many times as long one command takes as another on the same team, pairs compared.
fn lead(rows: &[Row], slow: &str, fast: &str) -> Option<f64> {
    let walls = |shown| {
        let row = rows.iter().find(|row| row.shown == shown)?;
        Some(row.costs.iter().map(|cost| cost.wall.as_secs_f64()).collect::<Vec<_>>())
    };
    paired(&walls(slow)?, &walls(fast)?)
}

/// The goals of whole commands.
fn command_goals(commands: &[(usize, Vec<Row>)], deadlock: &Row) -> Vec<Goal> {
    let worst = |slow: &str, fast: &str, sizes: &dyn Fn(usize) -> bool| {
        let of_size = commands.iter().filter(|(threads, _)| sizes(*threads));
        of_size.filter_map(|(_, rows)| lead(rows, slow, fast)).reduce(f64::min)
    };
    let wall = |of: usize, shown: &str| {
        let (_, rows) = commands.iter().find(|(threads, _)| *threads == of)?;
        Some(rows.iter().find(|row| row.shown == shown)?.wall().0)
    };
    let threads = commands.first().and_then(|(_, rows)| rows.first()).map_or("", |row| row.shown);
    vec![
        Goal::least(
            "`info threads` of gdb, to `ompd-inspect threads`, 16 to 256 threads",
            20.0,
            "×",
            worst(GDB_THREADS, threads, &|size| size <= 256),
        ),
        Goal::least(
            "`info threads` of gdb, to `ompd-inspect threads`, 1000 threads",
            10.0,
            "×",
            worst(GDB_THREADS, threads, &|size| size == 1000),
        ),
        Goal::least("`eu-stack`, to `ompd-inspect threads`, every size", 3.0, "×", worst(STACKS, threads, &|_| true)),
        Goal::most("`ompd-inspect --version`", 3.0, "ms", wall(16, VERSION)),
        Goal::most(
            format!("`ompd-inspect PID` of a deadlock of {DEADLOCKED} threads"),
            10.0,
            "ms",
            Some(deadlock.wall().0),
        ),
        Goal::most("`ompd-inspect PID` of a hang of 16 threads that others may end", 10.0, "ms", wall(16, SUMMARY)),
    ]
}

/// The goals of pauses without the copy of stacks.
fn pause_goals(pauses: &[(&'static str, usize, Pauses)]) -> Vec<Goal> {
    let worst = pauses.iter().filter_map(|(_, _, pauses)| paired(&pauses.threads, &pauses.floor)).reduce(f64::max);
    let stopped = pauses.iter().map(|(_, _, pauses)| pauses.stopped()).max();
    vec![
        Goal::most("pause of `threads --pause brief`, to the floor, every size and runtime", 1.3, "×", worst),
        Goal::most("threads of a hung process that are stopped", 0.0, "threads", stopped.map(|count| count as f64)),
    ]
}

fn commands_plot(commands: &[(usize, Vec<Row>)]) -> Vec<Plot> {
    let Some((_, first)) = commands.first() else { return Vec::new() };
    let curves = |value: fn(&Row) -> f64| {
        let points = |shown| {
            let rows =
                commands.iter().filter_map(|(threads, rows)| Some((*threads, rows.iter().find(|r| r.shown == shown)?)));
            rows.map(|(threads, row)| (threads as f64, value(row))).collect()
        };
        let shown = first.iter().filter(|row| row.shown != VERSION).map(|row| row.shown);
        shown.map(|shown| Curve { name: shown.to_owned(), points: points(shown) }).collect()
    };
    let panel = |y, curves| Panel { x: "threads", y, curves };
    vec![Plot {
        name: "commands",
        title: "Whole commands on a process that hangs, libgomp".to_owned(),
        panels: vec![panel("wall time, ms", curves(|row| row.wall().0)), panel("peak memory, MB", curves(Row::peak))],
    }]
}

fn pauses_plot(pauses: &[(&'static str, usize, Pauses)]) -> Vec<Plot> {
    let mut runtimes: Vec<&str> = pauses.iter().map(|(runtime, ..)| *runtime).collect();
    runtimes.dedup();
    let names = ["ompd-inspect --pause brief", "ompd-inspect threads --pause brief", "floor"];
    let panels = runtimes.iter().map(|wanted| {
        let of_runtime = || pauses.iter().filter(|(runtime, ..)| runtime == wanted);
        let curve = |number: usize| Curve {
            name: names[number].to_owned(),
            points: of_runtime().map(|(_, threads, pauses)| (*threads as f64, pauses.summary()[number].0)).collect(),
        };
        Panel { x: "threads", y: "pause, ms", curves: (0..names.len()).map(curve).collect() }
    });
    let title = format!("Pauses: {}", runtimes.join(", "));
    vec![Plot { name: "pauses", title, panels: panels.collect() }]
}

/// Something the measurements must show.
struct Limit {
    what: String,
    measured: f64,
    unit: &'static str,
    kept: bool,
}

fn judge(commands: &[(usize, Vec<Row>)], pauses: &[(&'static str, usize, Pauses)]) -> Vec<Limit> {
    let mut limits = Vec::new();
    for (runtime, _, pauses) in pauses.iter().filter(|(_, threads, _)| *threads == JUDGED) {
        let what = format!("pause at {JUDGED} threads on {runtime}, at most {MOST_PAUSE} × the floor");
        let measured = pauses.ratio();
        limits.push(Limit { what, measured, unit: "×", kept: measured <= MOST_PAUSE });
    }
    for (_, rows) in commands.iter().filter(|(threads, _)| *threads == JUDGED) {
        let (Some(ours), Some(gdb)) = (rows.first(), rows.iter().find(|row| row.shown == GDB_THREADS)) else {
            continue;
        };
        let what = format!("gdb's `info threads` at {JUDGED} threads, at least {LEAST_LEAD} × our wall time");
        let measured = gdb.wall().0 / ours.wall().0;
        limits.push(Limit { what, measured, unit: "×", kept: measured >= LEAST_LEAD });
    }
    limits
}

fn commands_table(commands: &[(usize, Vec<Row>)]) -> String {
    let mut text = String::from("| threads | command | wall time | peak memory |\n|---:|---|---|---|\n");
    for (threads, rows) in commands {
        let Some(first) = rows.first() else { continue };
        for row in rows {
            let ((wall, least), peak) = (row.wall(), row.peak());
            text += &format!(
                "| {threads} | `{}` | {:.1} × ({wall:.1} ms, least {least:.1}) | {:.1} × ({peak:.1} MB) |\n",
                row.shown,
                wall / first.wall().0,
                peak / first.peak(),
            );
        }
    }
    text + "\n"
}

/// The least that `threads` can take: its start, and showing that no thread runs. And how many times as long the others take.
fn proofs_table(commands: &[(usize, Vec<Row>)], proofs: &[(usize, Vec<f64>)]) -> String {
    let mut text = String::from(
        "| threads | start (`--version`) | showing that no thread runs | `info threads` of gdb, to both | `eu-stack`, to both |\n\
         |---:|---|---|---:|---:|\n",
    );
    for ((threads, rows), (_, proof)) in commands.iter().zip(proofs) {
        let wall = |shown: &str| rows.iter().find(|row| row.shown == shown).map(Row::wall);
        let (Some((start, start_least)), Some((proof, proof_least))) =
            (wall(VERSION), median_and_least(proof.iter().copied()))
        else {
            continue;
        };
        let times =
            |shown| wall(shown).map_or("–".to_owned(), |(wall, _)| format!("{:.1} ×", wall / (start + proof)));
        text += &format!(
            "| {threads} | {start:.1} ms (least {start_least:.1}) | {proof:.2} ms (least {proof_least:.2}) | {} | {} |\n",
            times(GDB_THREADS),
            times(STACKS),
        );
    }
    text + "\n"
}

fn deadlock_text(deadlock: &Row) -> String {
    let ((wall, least), peak) = (deadlock.wall(), deadlock.peak());
    format!(
        "`{}` of a deadlock of {DEADLOCKED} threads: {wall:.1} ms (least {least:.1}), {peak:.1} MB.\n\n",
        deadlock.shown
    )
}

fn pauses_table(pauses: &[(&'static str, usize, Pauses)]) -> String {
    let mut text = String::from(
        "| runtime | threads | pause, `--pause brief` | of `threads` | floor | by default: threads stopped | for |\n\
         |---|---:|---|---|---|---:|---|\n",
    );
    for (runtime, threads, pauses) in pauses {
        let [(ours, our_least), (few, few_least), (floor, floor_least)] = pauses.summary();
        let stopped = pauses.stopped();
        let (left, _) = median_and_least(pauses.left.iter().map(|(pause, _)| *pause)).unwrap_or_default();
        text += &format!(
            "| {runtime} | {threads} | {:.2} × ({ours:.2} ms, least {our_least:.2}) | {:.2} × ({few:.2} ms, least {few_least:.2}) \
             | 1 × ({floor:.2} ms, least {floor_least:.2}) | {stopped} | {left:.2} ms |\n",
            pauses.ratio(),
            few / floor,
        );
    }
    text + "\n"
}

/// What one has to know about the machine to read the numbers.
fn machine(arguments: &Arguments, load: &str) -> Result<String> {
    let only = if arguments.only == Some(Section::Merge) { " --only merge" } else { "" };
    let rounds = arguments.rounds;
    let today = Command::new("date").arg("+%-d %B %Y").env("LC_ALL", "C").output().context("the date")?;
    let today = String::from_utf8_lossy(&today.stdout).trim().to_owned();
    let processors = std::thread::available_parallelism().context("the number of processors")?;
    let info = fs::read_to_string("/proc/cpuinfo").context("the processor")?;
    let model = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let model = model.map_or("of an unnamed kind", |(_, name)| name.trim());
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").context("the kernel")?;
    // The rest names the build, which is nobody's business.
    let release = release.split('-').next().unwrap_or_default().trim();
    let load = load.split(' ').next().unwrap_or_default();
    let tools = [version("gdb")?, version("eu-stack")?, version("gcc")?].join("; ");
    Ok(format!(
        "`ci/bench{only} --write`, {today}, {rounds} rounds, on {processors} processors ({model}), Linux {release}, load {load} at the \
         start.\n{tools}.\n\n"
    ))
}

/// First line of what a program says about its version.
fn version(program: &str) -> Result<String> {
    let output = Command::new(program).arg("--version").output().with_context(|| format!("running {program}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    Ok(text.lines().next().with_context(|| format!("{program} has no version"))?.trim().to_owned())
}

/// The document with this text between its marks.
pub(crate) fn replace(document: &str, text: &str, marks: [&str; 2]) -> Result<String> {
    let (before, rest) = document.split_once(marks[0]).context("the document has no mark to begin at")?;
    let (_, after) = rest.split_once(marks[1]).context("the document has no mark to end at")?;
    Ok(format!("{before}{}\n{text}{}{after}", marks[0], marks[1]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pauses(ours: f64, floor: f64) -> Pauses {
        let left = vec![(0.5, 1), (0.0, 0), (0.25, 1)];
        let around = |middle: f64| vec![middle, 2.0 * middle, 0.5 * middle];
        Pauses { ours: around(ours), threads: around(0.5 * ours), floor: vec![floor, 0.9 * floor, 30.0 * floor], left }
    }

    fn row(shown: &'static str, milliseconds: u64) -> Row {
        let wall = Duration::from_millis(milliseconds);
        Row { shown, costs: vec![Cost { wall, cpu: wall, peak: milliseconds << 20 }] }
    }

    #[test]
    fn median() {
        assert_eq!(median_and_least([5, 1, 3]), Some((3, 1)));
        assert_eq!(median_and_least([4.0, 2.0]), Some((4.0, 2.0)));
        assert_eq!(median_and_least::<u8>([]), None);
    }

    #[test]
    fn limits_are_judged_at_their_size_only() {
        let commands = |gdb| vec![(JUDGED, vec![row("ompd-inspect PID", 10), row(GDB_THREADS, gdb)])];
        let kept = |commands: &[_], pauses: &[_]| judge(commands, pauses).iter().map(|l| l.kept).collect::<Vec<_>>();
        assert_eq!(kept(&commands(60), &[("libgomp", JUDGED, pauses(2.0, 1.0))]), [true, true]);
        assert_eq!(kept(&commands(59), &[("libgomp", JUDGED, pauses(2.1, 1.0))]), [false, false]);
        assert_eq!(kept(&[], &[("libgomp", 16, pauses(9.0, 1.0))]), [] as [bool; 0]);
    }

    #[test]
    fn tables_show_ratios_to_the_first() {
        let text = commands_table(&[(16, vec![row("ompd-inspect PID", 10), row("other", 25)])]);
        assert!(text.contains("| 16 | `other` | 2.5 × (25.0 ms, least 25.0) | 2.5 × (25.0 MB) |"), "{text}");
        let text = pauses_table(&[("libgomp", 16, pauses(3.0, 2.0))]);
        let (ours, threads) = ("1.50 × (3.00 ms, least 1.50)", "0.75 × (1.50 ms, least 0.75)");
        assert!(text.contains(&format!("| {ours} | {threads} | 1 × (2.00 ms, least 1.80) | 1 | 0.25 ms |")), "{text}");
    }

    #[test]
    fn a_command_is_measured() -> Result<()> {
        let (status, cost) = run_command(Command::new("sh").args(["-c", "exit 3"]))?;
        assert_eq!(libc::WEXITSTATUS(status), 3);
        assert!(cost.wall > Duration::ZERO && cost.peak > 0);
        Ok(())
    }

    #[test]
    fn a_run_that_misses_threads_does_not_count() {
        let echo = |text: &str| Contestant {
            shown: "echo",
            program: "echo".into(),
            arguments: vec![text.into()],
            mark: Some("TID "),
        };
        assert!(run_contestant(&echo("TID 1\nTID 2"), 2).is_ok());
        assert!(run_contestant(&echo("TID 1"), 2).is_err());
    }

    #[test]
    fn the_document_keeps_what_is_outside_the_marks() -> Result<()> {
        let [begin, end] = MARKS;
        let once = replace(&format!("a\n{begin}\nold\n{end}\nb\n"), "new\n", MARKS)?;
        assert_eq!(once, format!("a\n{begin}\nnew\n{end}\nb\n"));
        assert_eq!(replace(&once, "new\n", MARKS)?, once);
        assert!(replace("no marks", "new", MARKS).is_err());
        Ok(())
    }
}
