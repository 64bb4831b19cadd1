//! What `ompd-inspect` does when the system fails it: the first, second, third ... call of one kind fails, for as many as a run makes.
//!
//! `strace` makes calls fail. Each run must end by itself, say what is wrong where it has no report, and show nothing as known that the
//! report of an undisturbed run does not show. The process that it looked at must be as before.

mod compare;

use std::collections::BTreeMap;
use std::fs;
use std::ops::Range;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use test_programs::{Env, Launch, Opt, Running, Runtime, Skip, Toolchain, build};

use crate::ended::{DOCUMENTED, ENDED, PANICKED, left};
use compare::{contradictions, losses};

/// What to disturb.
#[derive(clap::Args)]
pub struct Arguments {
    /// The `ompd-inspect` that is disturbed.
    #[arg(long, default_value = "target/release/ompd-inspect")]
    inspect: PathBuf,
    /// Of calls that a run makes often, disturb at most so many, evenly distributed; 0 for all.
    #[arg(long, default_value_t = 0)]
    most: usize,
    /// Only this system call.
    #[arg(long)]
    only: Option<String>,
}

/// System calls that fail, and how.
const FAULTS: [(&str, &str); 21] = [
    ("openat", "ENOENT"),
    ("openat", "EACCES"),
    ("openat", "EMFILE"),
    ("read", "EIO"),
    ("pread64", "EIO"),
    ("process_vm_readv", "EFAULT"),
    ("process_vm_readv", "EPERM"),
    ("ptrace", "ESRCH"),
    ("ptrace", "EPERM"),
    ("wait4", "ECHILD"),
    ("getdents64", "EIO"),
    ("readlink", "EACCES"),
    ("statx", "EACCES"),
    ("newfstatat", "ENOENT"),
    ("lseek", "EINVAL"),
    ("mmap", "ENOMEM"),
    ("clone3", "EAGAIN"),
    ("get_robust_list", "EPERM"),
    ("sched_getaffinity", "ESRCH"),
    ("prlimit64", "EPERM"),
    ("write", "ENOSPC"),
];

/// Programs that hang, all their threads asleep.
const HANGS: [(Runtime, Toolchain, &str); 2] = [
    (Runtime::Libgomp, Toolchain::Gcc, "hangs/lock_cycle"),
    (Runtime::Libomp14, Toolchain::Clang, "hangs/barrier_missing_end"),
];
/// Seconds after which a run counts as one that does not end.
const PATIENCE: &str = "60";
/// A call that Rust's runtime makes twice before `main`, and the dynamic linker does not.
const FIRST: &str = "sigaltstack";

/// Something to look at.
struct Subject {
    title: String,
    /// Arguments of `ompd-inspect`.
    arguments: Vec<String>,
    /// The process, if it lives.
    pid: Option<i32>,
    /// What an undisturbed run reports, with all frames of all stacks.
    expected: Value,
}

/// What came of disturbing one kind of call.
#[derive(Default)]
struct Outcome {
    runs: usize,
    /// Runs with a report, by its first word.
    words: BTreeMap<String, usize>,
    /// Runs without one, with a reason.
    refused: usize,
    findings: Vec<String>,
}

/// Disturbs everything, and prints a table.
///
/// # Errors
/// When something is lacking, and when there is a finding.
pub fn run(arguments: &Arguments) -> Result<()> {
    let inspect = fs::canonicalize(&arguments.inspect).context("cargo build --release -p ompd-inspect")?;
    ensure!(Command::new("strace").arg("-V").output().is_ok(), "strace is not here");
    let folder = tempfile::tempdir()?;
    let (mut all, mut runs) = (Vec::new(), 0);
    println!(
        "| looked at | call | fails with | times | reports | refusals | findings |\n|---|---|---|---:|---|---:|---:|"
    );
    for (runtime, toolchain, program) in HANGS {
        if let Err(skip) = toolchain.check().and_then(|()| runtime.library().map(drop)) {
            skip.show();
            continue;
        }
        let program = build(program, toolchain, Opt::O2, &[])?;
        let running = Launch::new(&program, runtime, Env::Settled).start_hanging()?;
        for subject in subjects(&inspect, &running, runtime, folder.path())? {
            for (call, error) in
                FAULTS.iter().filter(|(call, _)| arguments.only.as_deref().is_none_or(|only| only == *call))
            {
                let outcome = disturb(&inspect, &subject, call, error, arguments.most)?;
                if outcome.runs > 0 {
                    print!("{}", row(&subject.title, call, error, &outcome));
                }
                runs += outcome.runs;
                all.extend(outcome.findings);
            }
        }
    }
    for finding in &all {
        println!("- {finding}");
    }
    ensure!(runs > 0, "no call was let fail");
    println!("{runs} runs, {} findings", all.len());
    ensure!(all.is_empty(), "{} findings", all.len());
    Ok(())
}

/// The process as it is read without a stop and with one, and its core.
fn subjects(inspect: &Path, running: &Running, runtime: Runtime, folder: &Path) -> Result<Vec<Subject>> {
    let pid = running.pid.to_string();
    let mut named: Vec<(String, Vec<&str>, Option<i32>)> = Vec::new();
    for mode in ["auto", "brief"] {
        let arguments = vec!["--interval", "1ms", "--pause", mode, &pid];
        named.push((format!("{runtime:?}, `--pause {mode}`"), arguments, Some(running.pid)));
    }
    let core = running.gcore(folder)?.inspect_err(Skip::show).ok().map(|core| core.display().to_string());
    if let Some(core) = &core {
        named.push((format!("{runtime:?}, core"), vec![core], None));
    }
    let subject = |(title, arguments, pid): (String, Vec<&str>, Option<i32>)| {
        let of = |view: &[&str]| view.iter().chain(&arguments).map(|word| (*word).to_owned()).collect::<Vec<String>>();
        let report = |view: &[&str]| -> Result<Value> {
            let output = Command::new(inspect).args(of(view)).env("XDG_CACHE_HOME", "/nonexistent").output()?;
            serde_json::from_slice(&output.stdout).with_context(|| format!("{title}: no report without a fault"))
        };
        let mut expected = report(&["--json"])?;
        expected["stacks"] = report(&["stacks", "--all", "--json", "--samples", "1"])?["stacks"].take();
        Ok(Subject { arguments: of(&["--json"]), title, pid, expected })
    };
    named.into_iter().map(subject).collect()
}

fn row(title: &str, call: &str, error: &str, outcome: &Outcome) -> String {
    let words: Vec<String> = outcome.words.iter().map(|(word, times)| format!("{times} {word}")).collect();
    format!(
        "| {title} | `{call}` | {error} | {} | {} | {} | {} |\n",
        outcome.runs,
        if words.is_empty() { "–".to_owned() } else { words.join(", ") },
        outcome.refused,
        outcome.findings.len()
    )
}

/// Lets one call of this kind fail, for each that the run makes.
fn disturb(inspect: &Path, subject: &Subject, call: &str, error: &str, most: usize) -> Result<Outcome> {
    let log = tempfile::NamedTempFile::new()?;
    let traced = format!("-etrace={call},{FIRST}");
    observed(inspect, &subject.arguments, &[&traced, "-o", &log.path().display().to_string()])?;
    let mut outcome = Outcome::default();
    for number in chosen(&calls(&fs::read_to_string(log.path())?, call), most) {
        let inject = format!("-einject={call}:error={error}:when={number}");
        let output = observed(inspect, &subject.arguments, &[&format!("-etrace={call}"), &inject, "-o", "/dev/null"])?;
        outcome.runs += 1;
        let what = format!("{}: {call} number {number} fails with {error}", subject.title);
        judge(&output, &subject.expected, subject.pid, &what, &mut outcome)?;
    }
    Ok(outcome)
}

/// Runs the command under strace.
fn observed(inspect: &Path, arguments: &[String], strace: &[&str]) -> Result<Output> {
    let mut command = Command::new("timeout");
    command.args(["-k", "5", PATIENCE, "strace", "-f", "-qq", "--seccomp-bpf"]).args(strace);
    command.arg(inspect).args(arguments).env("NO_COLOR", "1").env("RUST_BACKTRACE", "0");
    // What it keeps below the user's folders would make the next run another one.
    command.env("XDG_CACHE_HOME", "/nonexistent");
    command.output().context("timeout and strace")
}

/// The numbers of such calls, as strace counts them: for each thread by itself. Those that the first thread makes before `main` are not the
/// command's.
fn calls(log: &str, call: &str) -> Range<usize> {
    let mut by_thread: BTreeMap<&str, usize> = BTreeMap::new();
    let (mut before_main, mut first) = (0, 0);
    for (thread, rest) in log.lines().filter_map(|line| line.split_once(' ')) {
        let rest = rest.trim_start();
        let count = by_thread.entry(thread).or_default();
        if rest.strip_prefix(call).is_some_and(|arguments| arguments.starts_with('(')) {
            *count += 1;
        } else if rest.starts_with(FIRST) && first < 2 {
            first += 1;
            before_main = *count;
        }
    }
    before_main..by_thread.into_values().max().unwrap_or(0)
}

/// The numbers of the calls that fail.
fn chosen(made: &Range<usize>, most: usize) -> Vec<usize> {
    match most {
        most if most > 0 && made.len() > most => (0..most).map(|n| made.start + 1 + n * made.len() / most).collect(),
        _ => made.clone().map(|number| number + 1).collect(),
    }
}

fn judge(output: &Output, expected: &Value, pid: Option<i32>, what: &str, outcome: &mut Outcome) -> Result<()> {
    let mut find = |finding: String| outcome.findings.push(format!("{what}: {finding}"));
    let said = String::from_utf8_lossy(&output.stderr);
    let code = output.status.code();
    match code {
        Some(ENDED) => find("it does not end".to_owned()),
        Some(PANICKED) => find(format!("a panic: {}", said.trim())),
        None => find(format!("ended by signal {:?}: {}", output.status.signal(), said.trim())),
        Some(code) if !DOCUMENTED.contains(&code) => find(format!("exits with {code}: {}", said.trim())),
        Some(code) => match serde_json::from_slice::<Value>(&output.stdout) {
            Ok(report) => {
                let wrong = contradictions(expected, &report);
                if let Some(first) = wrong.first() {
                    find(format!("{} contradictions, the first: {first}", wrong.len()));
                }
                let lost = losses(expected, &report);
                if code == 0
                    && let Some(first) = lost.first()
                {
                    find(format!("{} losses without a word, the first: {first}", lost.len()));
                }
                let word = report["answer"]["word"].as_str().unwrap_or("none").to_owned();
                *outcome.words.entry(word).or_default() += 1;
            }
            Err(_) if code != 0 && !said.trim().is_empty() => outcome.refused += 1,
            Err(why) => {
                let mut text = format!("exits with {code}, without a report ({why})");
                if said.trim().is_empty() {
                    text.push_str(" and without a reason");
                }
                find(text);
            }
        },
    }
    if let Some(pid) = pid {
        for trouble in left(pid)? {
            find(trouble);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_counted_for_each_thread() {
        let log = "7 read(3) = 1\n7 sigaltstack(0) = 0\n7 read(3) = 1\n7 sigaltstack(x) = 0\n8  read(4) = 1\n\
                   7 read(3) = 0\n7 readlink(\"x\") = 3\n7 read(3) = 0\n7 sigaltstack(0) = 0\n";
        assert_eq!(calls(log, "read"), 2..4);
        assert_eq!(calls(log, "statx"), 0..0);
    }

    #[test]
    fn the_chosen_calls_are_evenly_distributed() {
        assert_eq!(chosen(&(0..3), 0), [1, 2, 3]);
        assert_eq!(chosen(&(2..5), 5), [3, 4, 5]);
        assert_eq!(chosen(&(2..12), 2), [3, 8]);
    }
}
