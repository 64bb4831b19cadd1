//! What `ompd-inspect` says of cores in which bytes were changed, and with files in which bytes were changed.
//!
//! Each run must end soon, with a report or a reason, and take little memory. The report must be the one that the library gives for the
//! same bytes in memory, and that of the unchanged core if nobody reads the changed bytes: no value rests on bytes of which
//! `doctor --why` does not know.

mod change;
mod reading;
mod rests;
mod stretches;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail, ensure};
use ompd_process::{Core, OpenOptions, Target as _};
use ompd_report::fields::{self, Fields};
use serde_json::Value;
use tempfile::TempDir;
use test_programs::{Env, Launch, Opt, Random, Runtime, Toolchain, build, kept_cores};

use crate::bench::run_command;
use crate::ended::DOCUMENTED;
use change::Change;
use rests::Rests;
use stretches::{Sort, Stretch};

/// How much to try.
#[derive(clap::Args)]
pub struct Arguments {
    /// How many runs there are.
    #[arg(long, default_value_t = 100_000)]
    runs: usize,
    /// Where the numbers begin by which stretches and bytes are chosen.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The `ompd-inspect` that is tried.
    #[arg(long, default_value = "target/release/ompd-inspect")]
    inspect: PathBuf,
    /// Print values that are said twice, where the changed bytes are believed.
    #[arg(long)]
    doubtful: bool,
    /// Only cores with this in their names.
    #[arg(long)]
    only: Option<String>,
    /// How many runs there are at a time.
    #[arg(long, default_value_t = 2, value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..))]
    jobs: usize,
}

/// Programs of this machine: what hangs, and what does not, with all threads asleep.
const PROGRAMS: [(Runtime, Toolchain, &str); 5] = [
    (Runtime::Libgomp, Toolchain::Gcc, "hangs/lock_cycle"),
    (Runtime::Libgomp, Toolchain::Gcc, "tasks"),
    (Runtime::Libomp14, Toolchain::Clang, "hangs/barrier_missing_end"),
    (Runtime::Libomp14, Toolchain::Clang, "tasks"),
    (Runtime::Libiomp5, Toolchain::Clang, "nested"),
];
/// Limits of a run.
const SECONDS: u64 = 5;
const MEMORY: u64 = 500 << 20;
/// What `timeout` makes of a run that it had to end, by wait(2): it sends itself the same signal.
const KILLED: i32 = 9;

/// A core with all files that were mapped.
struct Subject {
    title: String,
    core: PathBuf,
    root: PathBuf,
    /// Where bytes are changed, by sort.
    stretches: Vec<(Sort, Vec<Stretch>)>,
    /// What is said of it unchanged, by the options of the run.
    expected: BTreeMap<bool, Fields>,
    _folder: TempDir,
}

/// What came of changing bytes of one sort.
#[derive(Default)]
struct Outcome {
    runs: usize,
    reports: usize,
    refused: usize,
    /// Reports with a value that is another one.
    other: usize,
    /// Of these, reports with one that any bytes of another kind would have left as it is: it is said twice, and the wrong one is believed.
    doubtful: usize,
    /// Reports with a verdict that is more certain.
    stronger: usize,
    longest: Duration,
    memory: u64,
    findings: Vec<String>,
}

impl Outcome {
    fn add(&mut self, other: Outcome) {
        self.runs += other.runs;
        self.reports += other.reports;
        self.refused += other.refused;
        self.other += other.other;
        self.doubtful += other.doubtful;
        self.stronger += other.stronger;
        self.longest = self.longest.max(other.longest);
        self.memory = self.memory.max(other.memory);
        self.findings.extend(other.findings);
    }
}

/// Changes bytes, looks, and prints a table.
///
/// # Errors
/// When something is lacking, and when there is a finding.
pub fn run(arguments: &Arguments) -> Result<()> {
    let inspect = fs::canonicalize(&arguments.inspect).context("cargo build --release -p ompd-inspect")?;
    let subjects = subjects(&inspect)?;
    ensure!(!subjects.is_empty(), "there is no core");
    let sorts: usize = subjects.iter().map(|subject| subject.stretches.len()).sum();
    let of_sort = arguments.runs.div_ceil(sorts);
    println!(
        "| core | bytes of | runs | reports | refusals | other values | doubtful | stronger verdicts | longest | memory |\n\
         |---|---|---:|---:|---:|---:|---:|---:|---:|---:|"
    );
    let mut whole = Outcome::default();
    let is_wanted = |subject: &Subject| arguments.only.as_deref().is_none_or(|only| subject.title.contains(only));
    for (number, subject) in subjects.iter().enumerate().filter(|(_, subject)| is_wanted(subject)) {
        let share = of_sort.div_ceil(arguments.jobs);
        let outcomes: Vec<Result<Vec<Outcome>>> = std::thread::scope(|scope| {
            let work = |job: usize| {
                let seed = arguments.seed.wrapping_mul(1_000_003) + (number * arguments.jobs + job + 1) as u64;
                let inspect = &inspect;
                scope.spawn(move || Worker::new(inspect, subject, seed, arguments.doubtful)?.work(share))
            };
            let workers: Vec<_> = (0..arguments.jobs).map(work).collect();
            workers.into_iter().map(|worker| worker.join().map_err(|_| anyhow!("a panic"))?).collect()
        });
        let mut by_sort: Vec<Outcome> = subject.stretches.iter().map(|_| Outcome::default()).collect();
        for outcome in outcomes {
            by_sort.iter_mut().zip(outcome?).for_each(|(sum, outcome)| sum.add(outcome));
        }
        for ((sort, _), outcome) in subject.stretches.iter().zip(by_sort) {
            println!("{}", row(&subject.title, sort.words(), &outcome));
            outcome.findings.iter().for_each(|finding| eprintln!("{finding}"));
            whole.add(outcome);
        }
    }
    ensure!(whole.runs > 0, "there is no such core");
    println!("{}", row("all", "", &whole));
    for finding in &whole.findings {
        println!("- {finding}");
    }
    println!("{} runs, {} findings", whole.runs, whole.findings.len());
    ensure!(whole.findings.is_empty(), "{} findings", whole.findings.len());
    Ok(())
}

fn row(title: &str, sort: &str, of: &Outcome) -> String {
    format!(
        "| {title} | {sort} | {} | {} | {} | {} | {} | {} | {} ms | {} MiB |",
        of.runs,
        of.reports,
        of.refused,
        of.other,
        of.doubtful,
        of.stronger,
        of.longest.as_millis(),
        of.memory >> 20
    )
}

fn subjects(inspect: &Path) -> Result<Vec<Subject>> {
    let mut subjects = Vec::new();
    for (runtime, toolchain, program) in PROGRAMS {
        if let Err(skip) = toolchain.check().and_then(|()| runtime.library().map(drop)) {
            skip.show();
            continue;
        }
        let built = build(program, toolchain, Opt::O2, &["-g"])?;
        let launch = Launch::new(&built, runtime, Env::Settled);
        let running = if program.starts_with("hangs/") { launch.start_hanging()? } else { launch.start()? };
        let folder = tempfile::tempdir()?;
        let core = match running.gcore(folder.path())? {
            Ok(core) => core,
            Err(skip) => {
                skip.show();
                continue;
            }
        };
        drop(running);
        let root = folder.path().join("root");
        copy_files(&core, &root)?;
        subjects.push(Subject::new(inspect, &format!("{program}, {runtime:?}"), core, root, folder)?);
    }
    match kept_cores()? {
        Ok(kept) => {
            for kept in kept.into_iter().filter(|kept| !kept.program.starts_with("stacks")) {
                let folder = tempfile::tempdir()?;
                let core = folder.path().join("core");
                let unpacked = Command::new("xz").args(["-d", "-c"]).arg(&kept.core).output().context("xz")?;
                ensure!(unpacked.status.success(), "xz: {}", String::from_utf8_lossy(&unpacked.stderr));
                fs::write(&core, unpacked.stdout)?;
                let root = folder.path().join("root");
                copy_folder(kept.root.path(), &root)?;
                subjects.push(Subject::new(inspect, &format!("{}, another machine", kept.name), core, root, folder)?);
            }
        }
        Err(skip) => skip.show(),
    }
    Ok(subjects)
}

/// Copies the files that a core of this machine needs below `root`.
fn copy_files(core: &Path, root: &Path) -> Result<()> {
    let core = Core::open(core, &OpenOptions::default())?;
    for module in core.modules().iter().filter(|module| Path::new(&module.path).is_file()) {
        let to = root.join(module.path.trim_start_matches('/'));
        fs::create_dir_all(to.parent().context("a path without a folder")?)?;
        fs::copy(&module.path, &to)?;
    }
    Ok(())
}

fn copy_folder(from: &Path, to: &Path) -> Result<()> {
    let status = Command::new("cp").args(["-R", "--sparse=always", "--"]).arg(from).arg(to).status().context("cp")?;
    ensure!(status.success(), "cp ended with {status}");
    Ok(())
}

impl Subject {
    fn new(inspect: &Path, title: &str, core: PathBuf, root: PathBuf, folder: TempDir) -> Result<Subject> {
        let stretches = stretches::find(&core, &root)?;
        let mut expected = BTreeMap::new();
        for decoding in [false, true] {
            let output = command(inspect, &core, &root, decoding).output().context("timeout")?;
            let report: Value = serde_json::from_slice(&output.stdout)
                .with_context(|| format!("{title}: {}", String::from_utf8_lossy(&output.stderr)))?;
            expected.insert(decoding, fields::of(&report));
        }
        Ok(Subject { title: title.to_owned(), core, root, stretches, expected, _folder: folder })
    }
}

/// A look at a core. `decoding`: the code of known builds is decoded too.
fn command(inspect: &Path, core: &Path, root: &Path, decoding: bool) -> Command {
    let mut command = Command::new("timeout");
    command.args(["-s", "KILL", &SECONDS.to_string()]).arg(inspect);
    command.args(["--json", "--no-cache", "--lib-root"]).arg(root).arg(core);
    if decoding {
        command.arg("--verify");
    }
    command.env("NO_COLOR", "1").env("RUST_BACKTRACE", "0").stdin(Stdio::null());
    command
}

/// What changes bytes in its own copies.
struct Worker<'a> {
    inspect: &'a Path,
    subject: &'a Subject,
    core: PathBuf,
    root: PathBuf,
    rests: Rests,
    random: Random,
    shows_doubtful: bool,
    output: File,
    errors: File,
    _folder: TempDir,
}

impl<'a> Worker<'a> {
    fn new(inspect: &'a Path, subject: &'a Subject, seed: u64, shows_doubtful: bool) -> Result<Worker<'a>> {
        let folder = tempfile::tempdir()?;
        let (core, root) = (folder.path().join("core"), folder.path().join("root"));
        copy_folder(&subject.core, &core)?;
        copy_folder(&subject.root, &root)?;
        let mut random = Random::new(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        // The first numbers of neighbouring seeds are alike.
        for _ in 0..8 {
            random.number();
        }
        let rests = Rests::of(&subject.core, &subject.root)?;
        let (output, errors) = (tempfile::tempfile()?, tempfile::tempfile()?);
        Ok(Worker { inspect, subject, core, root, rests, random, shows_doubtful, output, errors, _folder: folder })
    }

    /// So many runs for each sort of bytes.
    fn work(&mut self, runs: usize) -> Result<Vec<Outcome>> {
        let subject = self.subject;
        subject.stretches.iter().map(|(sort, stretches)| self.sort(*sort, stretches, runs)).collect()
    }

    fn sort(&mut self, sort: Sort, stretches: &[Stretch], runs: usize) -> Result<Outcome> {
        let mut outcome = Outcome::default();
        for _ in 0..runs {
            let count = if self.random.below(10) == 0 { 2 + self.random.below(7) } else { 1 };
            let mut changes = Vec::new();
            for _ in 0..count {
                changes.extend(Change::choose(&mut self.random, stretches, &self.core, &self.root)?);
            }
            for change in &changes {
                self.put(change, &change.now)?;
            }
            let judged = self.judge(sort, &changes, &mut outcome);
            // In the other order: one may lie on top of another.
            for change in changes.iter().rev() {
                self.put(change, &change.before)?;
            }
            judged?;
        }
        Ok(outcome)
    }

    fn put(&self, change: &Change, bytes: &[u8]) -> Result<()> {
        let path = change.file.below(&self.core, &self.root);
        File::options().write(true).open(&path)?.write_all_at(bytes, change.at)?;
        Ok(())
    }

    fn judge(&mut self, sort: Sort, changes: &[Change], outcome: &mut Outcome) -> Result<()> {
        let decoding = sort.needs_decoding();
        let mut command = command(self.inspect, &self.core, &self.root, decoding);
        self.output.set_len(0)?;
        self.errors.set_len(0)?;
        command.stdout(self.output.try_clone()?).stderr(self.errors.try_clone()?);
        rewind(&self.output)?;
        rewind(&self.errors)?;
        let (status, cost) = run_command(&mut command)?;
        outcome.runs += 1;
        outcome.longest = outcome.longest.max(cost.wall);
        outcome.memory = outcome.memory.max(cost.peak);
        let what = format!("{}, {}: {}", self.subject.title, sort.words(), change::words(changes));
        let mut find = |finding: String| outcome.findings.push(format!("{what}: {finding}"));
        let said = text(&self.errors)?;
        if cost.peak > MEMORY {
            find(format!("{} MiB of memory", cost.peak >> 20));
        }
        let code = status >> 8;
        if status & 0x7f == KILLED {
            find(format!("it does not end in {SECONDS} s"));
            return Ok(());
        }
        if status & 0x7f != 0 || !DOCUMENTED.contains(&code) {
            find(format!("wait status {status:#x}: {}", said.trim()));
            return Ok(());
        }
        let report: Value = match serde_json::from_str(&text(&self.output)?) {
            Ok(report) => report,
            Err(_) if code == 2 && !said.trim().is_empty() => {
                outcome.refused += 1;
                return Ok(());
            }
            Err(why) => {
                find(format!("exits with {code}, and there is no report: {why}"));
                return Ok(());
            }
        };
        outcome.reports += 1;
        let Some(expected) = self.subject.expected.get(&decoding) else { bail!("no report of the unchanged core") };
        let seen = fields::of(&report);
        if rank(&seen) > rank(expected) {
            outcome.stronger += 1;
        }
        let other = rests::other_values(expected, &seen);
        match sort {
            Sort::Unread if seen != *expected => find(difference(expected, &seen)),
            _ if sort.is_read() => {
                let replayed = self.rests.replay(changes);
                if replayed != seen {
                    find(format!("by the library: {}", difference(&replayed, &seen)));
                }
            }
            _ => {}
        }
        if other.is_empty() {
            return Ok(());
        }
        outcome.other += 1;
        // What files say is not asked for: all of a report may rest on them.
        let addresses: Option<Vec<Range<u64>>> = changes.iter().map(Change::addresses).collect();
        if let Some(addresses) = addresses {
            let doubtful = self.rests.doubtful(&addresses, &other);
            outcome.doubtful += usize::from(!doubtful.is_empty());
            if let Some(first) = doubtful.first().filter(|_| self.shows_doubtful) {
                let (was, is) = (expected.get(first), seen.get(first));
                eprintln!("doubtful: {what}: {} values, the first: {first} is {is:?}, not {was:?}", doubtful.len());
            }
        }
        Ok(())
    }
}

/// The first value that is not the same.
fn difference(expected: &Fields, seen: &Fields) -> String {
    let names = expected.keys().chain(seen.keys()).filter(|name| expected.get(*name) != seen.get(*name));
    let names: std::collections::BTreeSet<&String> = names.collect();
    let first = names.first().map(|name| format!("{name} is {:?}, not {:?}", seen.get(*name), expected.get(*name)));
    format!("{} values differ, the first: {}", names.len(), first.unwrap_or_default())
}

/// How much an answer claims.
fn rank(fields: &Fields) -> u8 {
    match fields.get("answer.word").and_then(Value::as_str) {
        Some("DEADLOCK") => 2,
        Some("SUSPECT") => 1,
        _ => 0,
    }
}

fn rewind(mut file: &File) -> Result<()> {
    use std::io::Seek as _;
    file.rewind()?;
    Ok(())
}

fn text(mut file: &File) -> Result<String> {
    use std::io::Read as _;
    rewind(file)?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
