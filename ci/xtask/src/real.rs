//! Looks at real programs at random moments, and checks what is reported.
//!
//! `ci/real` builds the programs by both compilers. Each runs on every runtime, with changing numbers of threads, and is looked at at
//! random moments. A program that works must not be reported as hung, what a report says must go together, and the program must end well.

mod invariants;
mod programs;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use test_programs::{Random, Runtime, Toolchain, combinations};

use crate::ended::{ENDED, PANICKED};
use crate::unknowns::{Seen, codes};
use programs::{Program, Running};

/// What to look at, and how often.
#[derive(clap::Args)]
pub struct Arguments {
    /// The `ompd-inspect` that looks.
    #[arg(long, default_value = "target/release/ompd-inspect")]
    inspect: PathBuf,
    /// The folder into which `ci/real` puts programs and their input.
    #[arg(long, default_value = "test-programs/runtimes/real")]
    folder: PathBuf,
    /// How many looks there are in all.
    #[arg(long, default_value_t = 10_000)]
    looks: usize,
    /// How many minutes all looks may take. Each program has an equal share, and what others have left of theirs.
    #[arg(long, default_value_t = 60)]
    minutes: u32,
    /// Looks only at programs whose name contains this.
    #[arg(long)]
    only: Option<String>,
    /// Where the numbers at random begin.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Keeps reports with findings in this folder.
    #[arg(long)]
    keep: Option<PathBuf>,
}

/// Longest time between two looks.
const INTERVAL: Duration = Duration::from_millis(40);
/// For how long looks may find no team of threads before a program is given up.
const BARREN: Duration = Duration::from_secs(120);
/// After so many seconds a look counts as one that does not end.
const PATIENCE: &str = "60";

/// Words of refusals of a process that ends.
const ENDING: [&str; 3] = ["has ended", "no process", "the ELF header of its program could not be read"];

/// A program, built by a compiler, on a runtime.
struct Subject {
    program: Program,
    toolchain: Toolchain,
    runtime: Runtime,
}

/// What was seen of a subject.
#[derive(Default)]
struct Looked {
    seen: Seen,
    looks: usize,
    incomplete: usize,
    ends: usize,
    verdicts: BTreeMap<String, usize>,
    findings: Vec<String>,
}

/// Looks at every program, and prints what was seen.
///
/// # Errors
/// When no program is there, and when there is a finding.
pub fn run(arguments: &Arguments) -> Result<()> {
    let inspect = fs::canonicalize(&arguments.inspect).context("cargo build --release -p ompd-inspect")?;
    let folder = fs::canonicalize(&arguments.folder).context("ci/real makes it")?;
    let subjects = subjects(&folder, arguments.only.as_deref());
    ensure!(!subjects.is_empty(), "no program is built in {}", folder.display());
    let mut random = Random::new(arguments.seed);
    let (mut all, mut looks, mut findings) = (Seen::default(), 0, Vec::new());
    println!(
        "| program | compiler | runtime | looks | runs that ended | incomplete | verdicts | values unknown | findings |"
    );
    println!("|---|---|---|---:|---:|---:|---|---:|---:|");
    let each = arguments.looks.div_ceil(subjects.len());
    let (began, share) = (Instant::now(), Duration::from_secs(60) * arguments.minutes / subjects.len() as u32);
    for (subject, number) in subjects.iter().zip(1..) {
        let title = format!("{} by {} on {:?}", subject.program.name, subject.toolchain.command(), subject.runtime);
        let until = began + share * number;
        let of = look_at(subject, &folder, &inspect, each, until, &mut random, arguments.keep.as_deref());
        let of = of.with_context(|| title.clone())?;
        println!("{}", row(subject, &of));
        looks += of.looks;
        findings.extend(of.findings.iter().map(|finding| format!("{title}: {finding}")));
        all.join(of.seen);
    }
    print!("\n{}", codes(&all));
    println!("\n{looks} looks, {} findings", findings.len());
    if looks < arguments.looks {
        println!("{} looks are missing: they would have taken longer than --minutes allows", arguments.looks - looks);
    }
    ensure!(findings.is_empty(), "{} findings", findings.len());
    Ok(())
}

fn subjects(folder: &Path, only: Option<&str>) -> Vec<Subject> {
    let wanted = |program: &Program| only.is_none_or(|only| program.name.contains(only));
    let mut all = Vec::new();
    for program in programs::all().iter().filter(|program| wanted(program)) {
        for (toolchain, runtime) in combinations() {
            if !program.is_for(toolchain) {
                continue;
            }
            if !program.is_there(folder, toolchain) {
                eprintln!("skipped: {} by {} on {runtime:?}: it is not built", program.name, toolchain.command());
            } else if program.runs_on(runtime) {
                all.push(Subject { program: program.clone(), toolchain, runtime });
            }
        }
    }
    all
}

fn row(subject: &Subject, of: &Looked) -> String {
    let verdicts = of.verdicts.iter().map(|(word, times)| format!("{word} {times}")).collect::<Vec<_>>().join(", ");
    format!(
        "| {} | {} | {:?} | {} | {} | {} | {verdicts} | {:.1} % | {} |",
        subject.program.name,
        subject.toolchain.command(),
        subject.runtime,
        of.looks,
        of.ends,
        of.incomplete,
        of.seen.share(),
        of.findings.len()
    )
}

fn look_at(
    subject: &Subject,
    folder: &Path,
    inspect: &Path,
    looks: usize,
    until: Instant,
    random: &mut Random,
    keep: Option<&Path>,
) -> Result<Looked> {
    let mut of = Looked::default();
    let mut running = start(subject, folder, random)?;
    let mut fruitful = Instant::now();
    let mut shown = 0;
    while of.looks < looks && Instant::now() < until {
        ensure!(fruitful.elapsed() < BARREN, "no team of threads was seen in {} seconds", BARREN.as_secs());
        sleep(INTERVAL.mul_f64(random.below(1000) as f64 / 1000.0));
        if let Some(status) = running.ended()? {
            of.ends += 1;
            if !status.success() {
                of.findings.push(format!("the program ended with {status}"));
            }
            running = start(subject, folder, random)?;
        }
        let mut command = Command::new("timeout");
        command.args(["-k", "5", PATIENCE]).arg(inspect).arg("--json").arg(running.pid().to_string());
        let output = command.env("RUST_BACKTRACE", "0").stdin(Stdio::null()).output().context("starting a look")?;
        if take(&output, &mut of, &mut running)? {
            fruitful = Instant::now();
        }
        let new = &of.findings[shown..];
        // At once: what comes next may fail because of it.
        new.iter().for_each(|finding| eprintln!("{} by {:?}: {finding}", subject.program.name, subject.runtime));
        let is_new = !new.is_empty();
        shown = of.findings.len();
        if is_new && let Some(keep) = keep {
            fs::create_dir_all(keep)?;
            let name = format!("{}-{:?}-{}.json", subject.program.name, subject.runtime, of.looks);
            fs::write(keep.join(name), &output.stdout)?;
        }
    }
    Ok(of)
}

/// Counts a look. Returns whether it showed a team of threads.
fn take(output: &Output, of: &mut Looked, running: &mut Running) -> Result<bool> {
    let said = String::from_utf8_lossy(&output.stderr);
    match output.status.code() {
        Some(0 | 1) => {}
        // It may end meanwhile.
        Some(2) if ENDING.iter().any(|reason| said.contains(reason)) && running.ends()? => return Ok(false),
        Some(ENDED) => {
            of.findings.push("a look does not end".to_owned());
            return Ok(false);
        }
        Some(PANICKED) => {
            of.findings.push(format!("a panic: {}", said.trim()));
            return Ok(false);
        }
        _ => {
            of.findings.push(format!("{}: {}", output.status, said.trim()));
            return Ok(false);
        }
    }
    let Ok(report) = serde_json::from_slice::<Value>(&output.stdout) else {
        of.findings.push("what a look prints is no JSON".to_owned());
        return Ok(false);
    };
    if !of.seen.add(&report) {
        return Ok(false);
    }
    of.looks += 1;
    of.incomplete += usize::from(report["complete"] == false);
    for verdict in report["verdicts"].as_array().into_iter().flatten() {
        let word = verdict["verdict"].as_str().unwrap_or_default();
        *of.verdicts.entry(word.to_owned()).or_default() += 1;
        // It works: nothing in it waits for ever.
        if word != "waiting" {
            of.findings.push(format!("{word}: {}", verdict["text"].as_str().unwrap_or_default()));
        }
    }
    of.findings.extend(invariants::broken(&report));
    Ok(true)
}

/// Starts the program with a number of threads and a way to wait that are chosen at random.
fn start(subject: &Subject, folder: &Path, random: &mut Random) -> Result<Running> {
    let one_of = |random: &mut Random, all: &[&'static str]| all[random.below(all.len())];
    let mut command = subject.program.command(folder, subject.toolchain, subject.runtime)?;
    command.env("OMP_NUM_THREADS", one_of(random, &["2", "3", "4", "7"]));
    if let policy @ ("active" | "passive") = one_of(random, &["", "active", "passive"]) {
        command.env("OMP_WAIT_POLICY", policy);
    }
    let nowhere = || File::create("/dev/null").context("opening /dev/null");
    command.stdin(Stdio::null()).stdout(nowhere()?).stderr(nowhere()?).current_dir(folder);
    Running::start(command)
}
