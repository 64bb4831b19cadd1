//! The cost of merging the reports of a job: of its ranks one by one, and of nodes that have merged their own ranks.
//!
//! The reports are recorded from programs of the test kit that hang. Ranks, hosts and process ids are then varied.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use ompd_jobs::{Members, Merged, Names, Process, RankSet, read};
use test_programs::{Env, HANGS, Launch, Opt, Runtime, Toolchain, build};

use super::{Cost, Limit, median_and_least, own_peak, run_command};

/// Reports that are recorded.
const RECORDED: usize = 30;
/// Reports that are merged. The limits hold for the last, and growth is that from the one before.
const COUNTS: [usize; 4] = [100, 1000, 3000, 10_000];
/// Ranks of a node.
const PER_NODE: u64 = 100;
/// Nodes that are made by merging reports; the others have their ranks, hosts and process ids varied.
const NODES: usize = 10;
/// Most seconds of processor time and MB, for reports of ranks and of nodes.
const MOST: [(f64, f64); 2] = [(5.0, 300.0), (60.0, 1000.0)];
/// The processor time for each of the most may be this many times that of the number before.
const MOST_GROWTH: f64 = 1.5;
/// Rounds that are measured: each takes long, and differs little.
const MOST_ROUNDS: usize = 3;

/// What recorded reports have in place of a rank, a host and a job, until they are varied.
const RANK: &str = "918273645";
const HOST: &str = "nodemark";
const JOB: &str = "4711";

/// Which documents are merged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Input {
    /// A file for each rank.
    Ranks,
    /// One stream of nodes, each with ranks that follow each other.
    Blocks,
    /// One stream of nodes, ranks dealt out to nodes in turn.
    Turns,
}

/// One number of documents, and what it cost to merge them.
pub struct Job {
    input: Input,
    count: usize,
    bytes: u64,
    /// Of the merged report.
    merged: u64,
    costs: Vec<Cost>,
}

/// All measurements.
pub struct Measured {
    jobs: Vec<Job>,
    /// Milliseconds of `ompd-inspect --json` for each of the recorded reports.
    inspections: Vec<f64>,
}

/// A recorded report and the process id in it.
struct Report {
    text: String,
    pid: i32,
}

/// Records reports, makes many of them, and merges these `rounds` times.
///
/// # Errors
/// When no report can be recorded, or a command fails or does not count all ranks.
pub fn measure(inspect: &Path, rounds: usize) -> Result<Measured> {
    let (reports, inspections) = record(inspect)?;
    ensure!(!reports.is_empty(), "no report was recorded");
    let folder = tempfile::tempdir().context("a folder for reports")?;
    let mut jobs = Vec::new();
    for input in [Input::Ranks, Input::Blocks, Input::Turns] {
        for count in COUNTS {
            eprintln!("{count} documents, {input:?} ...");
            let folder = folder.path().join(format!("{input:?}-{count}"));
            fs::create_dir(&folder)?;
            let (arguments, stream) = match input {
                Input::Ranks => (write_ranks(&reports, count, &folder)?, None),
                _ => (vec!["-".into()], Some(write_nodes(&reports, count, input, &folder)?)),
            };
            let bytes = fs::read_dir(&folder)?.map(|file| Ok(file?.metadata()?.len())).sum::<Result<u64>>()?;
            let mut job = Job { input, count, bytes, merged: 0, costs: Vec::new() };
            for round in 0..=rounds.min(MOST_ROUNDS) {
                let (cost, merged) = merge(inspect, &arguments, stream.as_deref(), job.ranks())?;
                job.merged = merged;
                if round > 0 {
                    job.costs.push(cost);
                }
            }
            jobs.push(job);
            fs::remove_dir_all(&folder)?;
        }
    }
    Ok(Measured { jobs, inspections })
}

/// Reports of programs that hang, as ranks of a job of Slurm would give them; and how long each took, in milliseconds.
fn record(inspect: &Path) -> Result<(Vec<Report>, Vec<f64>)> {
    let (mut reports, mut times) = (Vec::new(), Vec::new());
    let cases = HANGS.iter().filter(|case| case.works(Toolchain::Gcc, Runtime::Libgomp));
    for case in cases {
        if reports.len() == RECORDED {
            break;
        }
        let program = build(case.program, Toolchain::Gcc, Opt::O2, case.flags)?;
        let launch = [("PROCID", RANK), ("NTASKS", "1000000"), ("JOB_ID", JOB), ("STEP_ID", "0")]
            .iter()
            .fold(Launch::new(&program, Runtime::Libgomp, Env::Settled), |launch, (name, value)| {
                launch.variable(&format!("SLURM_{name}"), value)
            })
            .variable("SLURMD_NODENAME", HOST);
        let process = launch.start_hanging()?;
        let began = Instant::now();
        let output = Command::new(inspect).args(["--json", &process.pid.to_string()]).stdin(Stdio::null()).output()?;
        times.push(began.elapsed().as_secs_f64() * 1e3);
        let text = String::from_utf8(output.stdout).context("a report")?;
        ensure!(text.contains(RANK) && text.contains(HOST), "{}: its report has no rank: {text}", case.program);
        reports.push(Report { text, pid: process.pid });
    }
    Ok((reports, times))
}

impl Report {
    /// The report of another rank.
    fn of(&self, rank: u64, host: u64) -> String {
        let text = self.text.replace(RANK, &rank.to_string()).replace(HOST, &format!("node{host:05}"));
        text.replace(&self.pid.to_string(), &pid(rank).to_string())
    }
}

/// A process id for a rank.
fn pid(rank: u64) -> i32 {
    10_000 + i32::try_from(rank % 1_000_000).unwrap_or(0)
}

/// The report that a rank of a job has: most have the first one.
fn which(rank: u64, reports: &[Report]) -> &Report {
    let odd = rank.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
    let index = if odd.is_multiple_of(4) { odd as usize / 4 % reports.len() } else { 0 };
    &reports[index]
}

fn write_ranks(reports: &[Report], count: usize, folder: &Path) -> Result<Vec<PathBuf>> {
    (0..count as u64)
        .map(|rank| {
            let file = folder.join(format!("rank{rank}.json"));
            fs::write(&file, which(rank, reports).of(rank, rank / PER_NODE))?;
            Ok(file)
        })
        .collect()
}

/// A stream of the reports of nodes, one a line.
fn write_nodes(reports: &[Report], count: usize, input: Input, folder: &Path) -> Result<PathBuf> {
    let file = folder.join("nodes.json");
    let mut out = BufWriter::new(File::create(&file)?);
    let first: Vec<Merged> = (0..NODES as u64).map(|node| first_node(reports, node)).collect::<Result<_>>()?;
    for node in 0..count {
        serde_json::to_writer(&mut out, &moved(&first[node % NODES], node as u64, count as u64, input))?;
        out.write_all(b"\n")?;
    }
    out.flush()?;
    Ok(file)
}

/// The reports of ranks 0 to 99, another choice for each node, merged.
fn first_node(reports: &[Report], node: u64) -> Result<Merged> {
    let mut all = Merged::default();
    for rank in 0..PER_NODE {
        let text = which(node * PER_NODE + rank, reports).of(rank, 0);
        all.merge(read("bench", text.as_bytes())?);
    }
    Ok(all)
}

/// The same of another node, with other ranks.
fn moved(first: &Merged, node: u64, nodes: u64, input: Input) -> Merged {
    let rank_of = |rank: u64| match input {
        Input::Turns => rank * nodes + node,
        _ => node * PER_NODE + rank,
    };
    let host = format!("node{node:05}");
    let members = |of: &mut Members| {
        for ranks in of.ranks.values_mut() {
            let mut all = RankSet::default();
            ranks.ranges().flat_map(Clone::clone).for_each(|rank| all.unite(RankSet::one(rank_of(rank))));
            *ranks = all;
        }
        let examples = std::mem::take(&mut of.examples).into_iter().map(|process| {
            let rank = process.rank.map(rank_of);
            Process { rank, host: Some(host.clone()), pid: rank.map(pid), ..process }
        });
        of.examples = examples.collect();
    };
    let mut all = first.clone();
    members(&mut all.inspected);
    all.answers.values_mut().chain(all.places.values_mut()).chain(all.stacks.values_mut()).for_each(members);
    all.hosts = Names::host(&host);
    all
}

/// Merges to a merged report; what that cost, and how many bytes it has.
fn merge(inspect: &Path, arguments: &[PathBuf], stream: Option<&Path>, ranks: u64) -> Result<(Cost, u64)> {
    let output = tempfile::NamedTempFile::new().context("making a file for output")?;
    let mut command = Command::new(inspect);
    command.args(["merge", "--json"]).args(arguments).stdout(output.reopen()?);
    match stream {
        Some(file) => command.stdin(File::open(file)?),
        None => command.stdin(Stdio::null()),
    };
    let (status, mut cost) = run_command(&mut command).context("running ompd-inspect merge")?;
    ensure!(status == 0, "ompd-inspect merge: wait status {status:#x}");
    // The kernel charges a process with what its parent had when it started it.
    cost.peak = cost.peak.max(own_peak()?);
    // Read by another process: this one must stay small.
    let page = Command::new(inspect).arg("merge").arg(output.path()).stdin(Stdio::null()).output()?;
    let page = String::from_utf8_lossy(&page.stdout).replace(',', "");
    let title = format!("{ranks} ranks of job ");
    ensure!(page.lines().any(|line| line.starts_with(&title)), "not all of {ranks} ranks were merged: {page}");
    Ok((cost, output.as_file().metadata()?.len()))
}

impl Job {
    fn ranks(&self) -> u64 {
        if self.input == Input::Ranks { self.count as u64 } else { self.count as u64 * PER_NODE }
    }

    /// Median and least seconds.
    fn wall(&self) -> (f64, f64) {
        median_and_least(self.costs.iter().map(|cost| cost.wall.as_secs_f64())).unwrap_or_default()
    }

    /// Median of processor time, in seconds. The command has one thread: on a machine that does nothing else, it ends in that time.
    fn cpu(&self) -> f64 {
        median_and_least(self.costs.iter().map(|cost| cost.cpu.as_secs_f64())).unwrap_or_default().0
    }

    /// Most memory of any run, in MB.
    fn peak(&self) -> f64 {
        self.costs.iter().map(|cost| cost.peak).max().unwrap_or(0) as f64 / f64::from(1 << 20)
    }

    fn what(&self) -> String {
        match self.input {
            Input::Ranks => format!("{} reports of ranks", self.count),
            Input::Blocks => format!("{} reports of nodes, ranks in blocks", self.count),
            Input::Turns => format!("{} reports of nodes, ranks in turn", self.count),
        }
    }

    fn each(&self) -> f64 {
        self.cpu() / self.count as f64
    }
}

/// The measurements as tables.
pub fn table(measured: &Measured) -> String {
    let mut text = String::from(
        "| `ompd-inspect merge --json` of | ranks | input | wall time | processor time | for each | peak memory, at most | merged report |\n\
         |---|---:|---:|---|---:|---:|---:|---:|\n",
    );
    for job in &measured.jobs {
        let (wall, least) = job.wall();
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "| {} | {} | {:.1} MB | {wall:.2} s (least {least:.2}) | {:.2} s | {:.3} ms | {:.1} MB | {:.1} kB |",
            job.what(),
            job.ranks(),
            job.bytes as f64 / 1e6,
            job.cpu(),
            job.each() * 1e3,
            job.peak(),
            job.merged as f64 / 1e3,
        );
    }
    text + &computed(measured).unwrap_or_default() + "\n"
}

/// What a job would cost that was not run: sums of what was measured.
fn computed(measured: &Measured) -> Option<String> {
    let (inspection, _) = median_and_least(measured.inspections.iter().copied())?;
    let largest = |input| measured.jobs.iter().rfind(|job| job.input == input);
    let (ranks, nodes) = (largest(Input::Ranks)?, largest(Input::Blocks)?);
    let on_node = PER_NODE as f64 * (inspection / 1e3 + ranks.each());
    Some(format!(
        "\nComputed from these, not measured: a job of {} nodes with {PER_NODE} ranks each. A node inspects its ranks one after the \
         other, {inspection:.0} ms each, and merges them: {on_node:.1} s. Its report has {:.1} kB, so {:.1} MB go through `srun` in \
         all. They are merged in {:.2} s. From the begin to the merged report: {:.1} s, without the start of the steps and the \
         network.\n",
        nodes.count,
        nodes.bytes as f64 / nodes.count as f64 / 1e3,
        nodes.bytes as f64 / 1e6,
        nodes.cpu(),
        on_node + nodes.cpu(),
    ))
}

/// What the measurements must show.
pub(super) fn limits(measured: &Measured) -> Vec<Limit> {
    let mut limits = Vec::new();
    let [before, last] = [COUNTS[COUNTS.len() - 2], COUNTS[COUNTS.len() - 1]];
    for job in measured.jobs.iter().filter(|job| job.count == last) {
        let (seconds, memory) = MOST[usize::from(job.input != Input::Ranks)];
        let mut add = |what: &str, measured: f64, most: f64, unit: &'static str| {
            let what = format!("merge of {}: {what} {most} {unit}", job.what());
            limits.push(Limit { what, measured, unit, kept: measured <= most });
        };
        add("processor time, at most", job.cpu(), seconds, "s");
        add("peak memory, at most", job.peak(), memory, "MB");
        if let Some(fewer) = measured.jobs.iter().find(|fewer| fewer.input == job.input && fewer.count == before) {
            add(
                &format!("processor time for each, to that of {before}, at most"),
                job.each() / fewer.each(),
                MOST_GROWTH,
                "×",
            );
        }
    }
    limits
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn job(input: Input, count: usize, milliseconds: u64, megabytes: u64) -> Job {
        let cpu = Duration::from_millis(milliseconds);
        let costs = vec![Cost { wall: 2 * cpu, cpu, peak: megabytes << 20 }];
        Job { input, count, bytes: 1, merged: 1, costs }
    }

    #[test]
    fn limits_hold_for_the_largest_number() {
        let kept = |jobs| limits(&Measured { jobs, inspections: vec![] }).iter().map(|l| l.kept).collect::<Vec<_>>();
        assert_eq!(kept(vec![job(Input::Ranks, 3000, 1000, 1), job(Input::Ranks, 10_000, 5000, 300)]), [true; 3]);
        assert_eq!(kept(vec![job(Input::Ranks, 10_000, 5001, 301)]), [false; 2]);
        assert_eq!(kept(vec![job(Input::Turns, 10_000, 5001, 301)]), [true; 2]);
        assert_eq!(kept(vec![job(Input::Ranks, 3000, 100_000, 9000)]), [] as [bool; 0]);
    }

    #[test]
    fn a_node_has_its_own_ranks() {
        let report = format!(
            r#"{{"schema":"ompd-inspect/1","process":{{"pid":777777,"host":"{HOST}","rank":{{"number":{RANK},"size":1000000,"job":"1"}}}},
            "stacks":[{{"lwp":777777,"frames":[{{"function":"main"}}]}}]}}"#
        );
        let reports = [Report { text: report, pid: 777_777 }];
        let first = first_node(&reports, 0).expect("a node");
        assert_eq!(first.inspected.ranks["1"].to_string(), "0-99");
        let ranks = |input| moved(&first, 3, 10, input).stacks.values().map(|of| of.ranks["1"].clone()).next();
        assert_eq!(ranks(Input::Blocks).map(|ranks| ranks.to_string()).as_deref(), Some("300-399"));
        let in_turn = ranks(Input::Turns).expect("ranks");
        assert!(in_turn.len() == 100 && in_turn.contains(3) && in_turn.contains(993));
        assert_eq!(moved(&first, 3, 10, Input::Blocks).hosts.to_string(), "node00003");
    }
}
