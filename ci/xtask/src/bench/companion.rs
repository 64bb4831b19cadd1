//! What the companion costs the program that takes it along: constructs with it and without, beside a tool that does nothing.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufRead as _, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use debugger_plugin::{Release, releases};
use ompd_process::{Live, OpenOptions, Target as _};
use ompt_record::block::SYMBOL;
use ompt_record::read::{Block, Memory};
use test_programs::{Executable, Opt, Process, Skip, Toolchain, build, mapped_files};

use super::{Limit, built_beside, median_and_least};

/// Threads of `overheads.c`.
const THREADS: f64 = 2.0;
/// Most that an event may cost a thread while it is recorded, in nanoseconds.
const MOST_RECORDING: f64 = 100.0;
/// Most that a paused companion may cost above a tool that does nothing, in nanoseconds for each event.
const MOST_PAUSED: f64 = 5.0;
/// Constructs as `overheads.c` names them, and as the table does.
const CONSTRUCTS: [(&str, &str); 5] = [
    ("parallel", "parallel region"),
    ("barrier", "barrier"),
    ("task", "task, created and executed"),
    ("lock", "lock of the thread's own, set and unset"),
    ("contended", "lock of both threads, set and unset"),
];
/// Of this one nothing is judged: a thread has to wait for what the other one's callbacks take while it has the lock.
const NOT_JUDGED: &str = "contended";

/// What a program runs with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tool {
    Without,
    Empty,
    Paused,
    Recording,
    /// Nothing, in a program built for ThreadSanitizer.
    Sanitized,
    /// Archer, which takes part in no other program.
    Archer,
}

const TOOLS: [Tool; 6] = [Tool::Without, Tool::Empty, Tool::Paused, Tool::Recording, Tool::Sanitized, Tool::Archer];

/// The libraries, and the programs for one runtime.
struct Files {
    empty: PathBuf,
    companion: PathBuf,
    /// What stands in front of a runtime without OMPT and calls tools.
    in_front: Option<PathBuf>,
    /// Archer's library; only with the runtime that it belongs to.
    archer: Option<PathBuf>,
    program: Executable,
    /// The same for ThreadSanitizer, where there is Archer.
    sanitized: Option<Executable>,
}

impl Tool {
    fn file(self, files: &Files) -> Option<&Path> {
        match self {
            Tool::Without | Tool::Sanitized => None,
            Tool::Empty => Some(&files.empty),
            Tool::Paused | Tool::Recording => Some(&files.companion),
            Tool::Archer => files.archer.as_deref(),
        }
    }

    fn program(self, files: &Files) -> Option<&Executable> {
        match self {
            Tool::Sanitized | Tool::Archer => files.sanitized.as_ref(),
            _ => Some(&files.program),
        }
    }
}

/// A construct on a runtime.
pub struct Overhead {
    runtime: &'static str,
    construct: &'static str,
    /// Events for one construct in one thread.
    events: f64,
    /// Nanoseconds for one construct by tool, in the order of [`TOOLS`]; the n-th of each were measured one after the other.
    nanoseconds: [Vec<f64>; TOOLS.len()],
}

/// Measures all constructs on each runtime with OMPT that is here, `rounds` times after one that does not count.
///
/// # Errors
/// When a program does not build or run, or the tool it was given is not there.
pub fn measure(rounds: usize) -> Result<Vec<Overhead>> {
    if let Err(skip) = Toolchain::Clang.check() {
        skip.show();
        return Ok(Vec::new());
    }
    let empty = build("empty_tool", Toolchain::Clang, Opt::O2, &["-shared", "-fPIC"])?;
    let companion = built_beside("libompt_companion.so")?;
    let mut all = Vec::new();
    let in_front = built_beside("libgomp_ompt.so")?;
    for release in &releases()? {
        eprintln!("constructs on {} ...", release.name);
        let program = match release.build("overheads", Opt::O2, &[])? {
            Ok(program) => program,
            Err(skip) => {
                skip.show();
                continue;
            }
        };
        let (archer, sanitized) = archer(release).unzip();
        let in_front = (!release.runtime.is_kmp()).then(|| in_front.clone());
        let files =
            Files { empty: empty.path.clone(), companion: companion.clone(), in_front, archer, program, sanitized };
        all.extend(on(release, &files, rounds).context(release.name)?);
    }
    Ok(all)
}

/// Archer's library and a program that it takes part in, where this is the runtime that they come with.
fn archer(release: &Release) -> Option<(PathBuf, Executable)> {
    if release.name != "libomp 14" {
        return None;
    }
    let library = release.runtime.library().ok()?.with_file_name("libarcher.so");
    if !library.is_file() {
        Skip::because(format!("Archer is not here ({})", library.display())).show();
        return None;
    }
    match build("overheads", Toolchain::Clang, Opt::O2, &["-fsanitize=thread"]) {
        Ok(program) => Some((library, program)),
        Err(why) => {
            Skip::because(format!("Archer needs a program for ThreadSanitizer ({why:#})")).show();
            None
        }
    }
}

fn on(release: &Release, files: &Files, rounds: usize) -> Result<Vec<Overhead>> {
    let mut all: Vec<Overhead> = CONSTRUCTS
        .iter()
        .map(|(construct, _)| Overhead {
            runtime: release.name,
            construct,
            events: 0.0,
            nanoseconds: Default::default(),
        })
        .collect();
    for round in 0..=rounds {
        for turn in 0..TOOLS.len() {
            // Each begins a round now and then.
            let which = (round + turn) % TOOLS.len();
            let tool = TOOLS[which];
            let Some(program) = tool.program(files) else { continue };
            let lines = run(release, program, tool, files).with_context(|| format!("{tool:?}"))?;
            for line in lines {
                let Some(overhead) = all.iter_mut().find(|overhead| overhead.construct == line.construct) else {
                    continue;
                };
                if tool == Tool::Recording {
                    overhead.events = line.events;
                }
                if round > 0 {
                    overhead.nanoseconds[which].push(line.nanoseconds);
                }
            }
        }
    }
    Ok(all)
}

/// What the program says of a construct, and what the companion has of it.
struct Line {
    construct: String,
    nanoseconds: f64,
    events: f64,
}

/// Ends the program whatever happens.
struct Ended(Process);

impl Drop for Ended {
    fn drop(&mut self) {
        // One that has ended already cannot be killed, and is waited for all the same.
        let _ = self.0.child.kill();
        let _ = self.0.child.wait();
    }
}

fn run(release: &Release, program: &Executable, tool: Tool, files: &Files) -> Result<Vec<Line>> {
    // Threads that are waited for with as little ado as possible, and stay where they are.
    let launch = release.launch(program).variable("OMP_NUM_THREADS", "2").variable("OMP_PROC_BIND", "true");
    let launch = launch.variable("KMP_BLOCKTIME", "infinite").variable("OMP_WAIT_POLICY", "active");
    let in_front = files.in_front.as_ref().filter(|_| tool != Tool::Without);
    let launch = match in_front {
        Some(file) => launch.variable("LD_PRELOAD", &file.to_string_lossy()),
        None => launch,
    };
    let launch = match tool.file(files) {
        None => launch.variable("OMP_TOOL", "disabled"),
        Some(file) => launch.variable("OMP_TOOL_LIBRARIES", &file.to_string_lossy()),
    };
    // What it finds of races in the runtime is not what it is measured for.
    let launch = launch.variable("TSAN_OPTIONS", "report_bugs=0:ignore_noninstrumented_modules=1");
    let start = if tool == Tool::Paused { "paused" } else { "recording" };
    let mut process = Ended(launch.variable("OMPT_COMPANION_START", start).spawn()?);
    let pid = i32::try_from(process.0.child.id())?;
    let mut lines = Vec::new();
    let mut before = 0;
    let mut memory = None;
    loop {
        let mut text = String::new();
        process.0.stdout.read_line(&mut text)?;
        if text == "done\n" {
            break;
        }
        let [construct, nanoseconds, count] = text.split_whitespace().collect::<Vec<_>>()[..] else {
            anyhow::bail!("the program says {text:?}");
        };
        if memory.is_none() {
            let mapped = mapped_files(pid)?;
            for file in [Some(&files.empty), Some(&files.companion), files.archer.as_ref()].into_iter().flatten() {
                let wanted = tool.file(files) == Some(file);
                ensure!(mapped.contains(&file.canonicalize()?) == wanted, "{} is there or not", file.display());
            }
            memory = Some(Written::find(pid, tool)?);
        }
        let written = memory.as_ref().map_or(Ok(0), Written::events)?;
        let (count, events): (f64, f64) = (count.parse()?, (written - before) as f64);
        // It shows that it does what it is measured for.
        ensure!((events > 0.0) == (tool == Tool::Recording), "{construct}: {events} events were recorded");
        lines.push(Line {
            construct: construct.to_owned(),
            nanoseconds: nanoseconds.parse()?,
            events: events / count / THREADS,
        });
        before = written;
        process.0.stdin.write_all(b"!")?;
    }
    ensure!(process.0.child.wait()?.success(), "the program failed");
    Ok(lines)
}

/// The block of a companion, if there is one.
struct Written {
    memory: File,
    block: Option<u64>,
}

impl Written {
    fn find(pid: i32, tool: Tool) -> Result<Written> {
        let memory = File::open(format!("/proc/{pid}/mem")).context("the memory of the program")?;
        let written = Written { memory, block: None };
        if !matches!(tool, Tool::Paused | Tool::Recording) {
            return Ok(written);
        }
        let live = Live::open(pid, &OpenOptions::default())?;
        let symbol = live.modules().iter().find_map(|module| module.symbol(SYMBOL)).context("no companion")?;
        let block = written.words(symbol.addr.0, 1)?.first().copied().filter(|at| *at != 0);
        Ok(Written { block: Some(block.context("the companion has no block")?), ..written })
    }

    /// How many events were ever written, by all threads; those of devices and of the runtime's start as well.
    fn events(&self) -> Result<u64> {
        let Some(at) = self.block else { return Ok(0) };
        let block = Block::open(self, at)?;
        let (rings, unreadable) = block.rings(self);
        ensure!(unreadable == 0, "{unreadable} threads cannot be read");
        Ok(rings.iter().map(|ring| ring.values.head).sum())
    }
}

impl Memory for Written {
    type Error = std::io::Error;

    fn words(&self, at: u64, count: usize) -> std::io::Result<Vec<u64>> {
        let mut bytes = vec![0; count * size_of::<u64>()];
        self.memory.read_exact_at(&mut bytes, at)?;
        Ok(bytes.as_chunks().0.iter().map(|word| u64::from_ne_bytes(*word)).collect())
    }
}

impl Overhead {
    /// How many nanoseconds more an event costs one thread with `tool` than with `than`. It is the median over pairs of runs,
    /// each measured one after the other.
    fn each(&self, tool: Tool, than: Tool) -> f64 {
        let [tool, than] = [tool, than].map(|tool| &self.nanoseconds[tool as usize]);
        let differences = tool.iter().zip(than).map(|(with, without)| (with - without) / self.events);
        median_and_least(differences).map_or(f64::NAN, |(median, _)| median)
    }

    /// The same as a cell of the table.
    fn cell(&self, tool: Tool, than: Tool) -> String {
        match self.each(tool, than) {
            none if none.is_nan() => "–".to_owned(),
            each => format!("{each:+.1} ns"),
        }
    }

    fn shown(&self) -> &'static str {
        CONSTRUCTS.iter().find(|(name, _)| *name == self.construct).map_or(self.construct, |(_, shown)| shown)
    }
}

/// What the measurements must show.
pub(super) fn limits(all: &[Overhead]) -> Vec<Limit> {
    let mut limits = Vec::new();
    for overhead in all.iter().filter(|overhead| overhead.construct != NOT_JUDGED) {
        let mut add = |what: &str, measured: f64, most: f64| {
            let what = format!("{} on {}: {what}, at most {most} ns", overhead.shown(), overhead.runtime);
            limits.push(Limit { what, measured, unit: "ns", kept: measured <= most });
        };
        add("an event recorded", overhead.each(Tool::Recording, Tool::Without), MOST_RECORDING);
        let paused = "an event with the companion paused, above a tool that does nothing";
        add(paused, overhead.each(Tool::Paused, Tool::Empty), MOST_PAUSED);
    }
    limits
}

/// The rows of the document.
pub fn table(all: &[Overhead]) -> String {
    let mut text = String::from(
        "| runtime | construct | without a tool | events | each, with a tool that does nothing | companion paused | \
         companion recording | Archer |\n|---|---|---:|---:|---:|---:|---:|---:|\n",
    );
    for overhead in all {
        let without = &overhead.nanoseconds[Tool::Without as usize];
        let (without, least) = median_and_least(without.iter().copied()).unwrap_or_default();
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "| {} | {} | {without:.0} ns (least {least:.0}) | {:.1} | {} | {} | {} | {} |",
            overhead.runtime,
            overhead.shown(),
            overhead.events,
            overhead.cell(Tool::Empty, Tool::Without),
            overhead.cell(Tool::Paused, Tool::Without),
            overhead.cell(Tool::Recording, Tool::Without),
            overhead.cell(Tool::Archer, Tool::Sanitized),
        );
    }
    text + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn overhead(construct: &'static str, nanoseconds: [f64; 4]) -> Overhead {
        let [a, b, c, d] = nanoseconds.map(|each| vec![each, each + 1000.0, each - 7.0]);
        let nanoseconds = [a, b, c, d, Vec::new(), Vec::new()];
        Overhead { runtime: "some", construct, events: 4.0, nanoseconds }
    }

    #[test]
    fn limits_are_for_an_event() {
        let kept = |recording, paused| {
            let all = [overhead("barrier", [200.0, 210.0, paused, recording])];
            limits(&all).iter().map(|limit| limit.kept).collect::<Vec<_>>()
        };
        assert_eq!(kept(600.0, 230.0), [true, true]);
        assert_eq!(kept(601.0, 231.0), [false, false]);
        assert!(limits(&[overhead(NOT_JUDGED, [1.0, 2.0, 3.0, 9000.0])]).is_empty());
    }

    #[test]
    fn the_table_has_what_each_event_costs() {
        let text = table(&[overhead("barrier", [200.0, 202.0, 204.0, 400.0])]);
        let row = "| some | barrier | 200 ns (least 193) | 4.0 | +0.5 ns | +1.0 ns | +50.0 ns | – |";
        assert!(text.contains(row), "{text}");
    }
}
