//! What two builds of `ompd-inspect` say of the same processes and cores.
//!
//! A change that is to change no answer is held to that here. Documents (`--json`) may gain keys, which are counted and
//! named; every other difference counts against the change. A process that moves between two looks may differ by itself:
//! then both builds look again.

use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result, bail};
use serde_json::Value;
use test_programs::{
    Case, Env, HANGS, HEALTHY, LOCALS_PROGRAMS, Launch, Opt, Running, Runtime, STACK_PROGRAMS, STATE_PROGRAMS,
    STEADY_PROGRAMS, Skip, Toolchain, build, can_build, combinations,
};

/// Two builds to compare.
#[derive(clap::Args)]
pub struct Arguments {
    /// The `ompd-inspect` whose answers are right.
    before: PathBuf,
    /// The `ompd-inspect` to be checked.
    after: PathBuf,
    /// Only programs with this in their name.
    #[arg(long)]
    only: Option<String>,
    /// Write every difference to this file.
    #[arg(long)]
    list: Option<PathBuf>,
}

/// How often both builds look at a live process before a difference counts.
const LOOKS: usize = 6;
/// Processes looked at together.
const WORKERS: usize = 2;

/// What is asked of a live process.
const LIVE: &[&[&str]] = &[&["--json"]];
/// What is asked of a core.
const CORE: &[&[&str]] = &[
    &["--json"],
    &["stacks", "--locals", "--json"],
    &["--json", "--ignore-origin", "profile"],
    &["--json", "--ignore-origin", "code"],
    &["-v"],
    &["threads"],
    &["teams"],
    &["tasks"],
    &["waits"],
    &["waits", "--dot"],
    &["loops"],
    &["icvs", "-v"],
    &["doctor", "-v"],
    &["stacks", "--all"],
    &["stacks", "--tree"],
    &["stacks", "--folded"],
    &["stacks", "--dot"],
];

/// One process to look at.
#[derive(Clone, Debug)]
struct Subject {
    case: Case,
    toolchain: Toolchain,
    runtime: Runtime,
    opt: Opt,
    env: Env,
    start: Start,
    companion: bool,
}

#[derive(Clone, Copy, Debug)]
enum Start {
    Steady,
    Hanging,
    Healthy,
}

/// What came of all comparisons.
#[derive(Default)]
struct Outcome {
    compared: usize,
    added: BTreeMap<String, usize>,
    differences: Vec<String>,
    skipped: BTreeMap<String, usize>,
    /// What could not be compared although nothing is lacking here.
    failed: Vec<String>,
    /// Live answers that were the same only after so many looks.
    late: BTreeMap<usize, usize>,
}

/// Compares them on the whole corpus.
///
/// # Errors
/// When a program cannot be started, or an answer differs.
pub fn run(arguments: &Arguments) -> Result<()> {
    let wanted = |subject: &Subject| {
        let only = arguments.only.as_deref();
        only.is_none_or(|only| subject.case.program.contains(only))
    };
    let subjects: VecDeque<Subject> = corpus().into_iter().filter(wanted).collect();
    let count = subjects.len();
    let left = Mutex::new(subjects);
    let outcome = Mutex::new(Outcome::default());
    std::thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(|| {
                loop {
                    let next = left.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
                    let Some(subject) = next else { break };
                    let mut own = Outcome::default();
                    match compare(&subject, arguments, &mut own) {
                        Ok(Ok(())) => {}
                        Ok(Err(skip)) => {
                            *own.skipped.entry(format!("{}: {skip}", subject.case.program)).or_default() += 1
                        }
                        Err(why) => own.failed.push(format!("{subject:?}: {why:#}")),
                    }
                    outcome.lock().unwrap_or_else(PoisonError::into_inner).add(own);
                }
            });
        }
    });
    let outcome = outcome.into_inner().unwrap_or_else(PoisonError::into_inner);
    for (reason, times) in &outcome.skipped {
        println!("not compared ({times}): {reason}");
    }
    for (key, times) in &outcome.added {
        println!("added key ({times}): {key}");
    }
    if let Some(file) = &arguments.list {
        fs::write(file, outcome.differences.join("\n")).with_context(|| format!("writing {}", file.display()))?;
    }
    for line in outcome.failed.iter().chain(&outcome.differences).take(60) {
        println!("{line}");
    }
    for (looks, times) in &outcome.late {
        println!("the same only at look {looks}: {times} answers");
    }
    let (compared, failed, differ) = (outcome.compared, outcome.failed.len(), outcome.differences.len());
    println!("{count} processes, {compared} answers compared, {differ} differ, {failed} processes failed");
    if compared == 0 || failed > 0 || differ > 0 {
        bail!("the two builds do not say the same");
    }
    Ok(())
}

/// Every program on every runtime here; with the companion where it has something to add.
fn corpus() -> Vec<Subject> {
    let steady = STEADY_PROGRAMS.into_iter().chain(LOCALS_PROGRAMS).chain(STACK_PROGRAMS).chain(STATE_PROGRAMS);
    let steady = steady.map(|program| (Case { program, flags: &[], needs: HANGS[0].needs }, Start::Steady));
    let hangs = HANGS.iter().map(|case| (*case, Start::Hanging));
    let healthy = HEALTHY.iter().map(|case| (*case, Start::Healthy));
    let cases: Vec<(Case, Start)> = steady.chain(hangs).chain(healthy).collect();
    let mut all = Vec::new();
    for (toolchain, runtime) in combinations() {
        // clang takes the handles of events for variables that are not set.
        let builds = |case: &Case| toolchain == Toolchain::Gcc || !STATE_PROGRAMS.contains(&case.program);
        for (case, start) in cases.iter().filter(|(case, _)| case.works(toolchain, runtime) && builds(case)) {
            let subject = Subject {
                case: *case,
                toolchain,
                runtime,
                opt: Opt::O2,
                env: if matches!(start, Start::Steady) { Env::Settled } else { Env::Stock },
                start: *start,
                companion: false,
            };
            if matches!(start, Start::Steady) {
                all.push(Subject { opt: Opt::O0, ..subject.clone() });
            }
            if runtime.is_kmp() && toolchain == Toolchain::Clang {
                all.push(Subject { companion: true, ..subject.clone() });
            }
            all.push(subject);
        }
    }
    all
}

fn compare(subject: &Subject, arguments: &Arguments, outcome: &mut Outcome) -> Result<Result<(), Skip>> {
    let Subject { case, toolchain, runtime, opt, env, start, companion } = subject;
    if let Err(skip) = can_build(case.program, *toolchain)? {
        return Ok(Err(skip));
    }
    let executable = build(case.program, *toolchain, *opt, case.flags)?;
    let mut launch = Launch::new(&executable, *runtime, *env);
    if *companion {
        let file = std::env::current_exe()?.with_file_name("libompt_companion.so");
        launch = launch.variable("OMP_TOOL_LIBRARIES", &file.display().to_string());
    }
    let running = match start {
        Start::Steady => launch.start(),
        Start::Hanging => launch.start_hanging(),
        Start::Healthy => launch.start_healthy(),
    }?;
    let title = format!(
        "{} {:?} {toolchain:?} {opt:?} {runtime:?}{}",
        case.program,
        case.flags,
        if *companion { " companion" } else { "" }
    );
    // What moves by itself is compared by its core alone.
    if !matches!(start, Start::Healthy) {
        for view in LIVE {
            live(&title, view, &running, arguments, outcome)?;
        }
    }
    let scratch = tempfile::tempdir().context("making a directory")?;
    match running.gcore(scratch.path())? {
        Ok(core) => {
            drop(running);
            for view in CORE {
                let (before, after) = (say(&arguments.before, view, &core)?, say(&arguments.after, view, &core)?);
                let differences = outcome.differ(view, &before, &after);
                outcome.file(&format!("{title} core {}", view.join(" ")), differences);
            }
        }
        Err(skip) => return Ok(Err(skip)),
    }
    Ok(Ok(()))
}

fn live(title: &str, view: &[&str], running: &Running, arguments: &Arguments, outcome: &mut Outcome) -> Result<()> {
    let pid = PathBuf::from(running.pid.to_string());
    let mut differences = Vec::new();
    for look in 1..=LOOKS {
        let before = say(&arguments.before, view, &pid)?;
        let after = say(&arguments.after, view, &pid)?;
        differences = outcome.differ(view, &before, &after);
        if differences.is_empty() {
            if look > 1 {
                *outcome.late.entry(look).or_default() += 1;
            }
            break;
        }
    }
    outcome.file(&format!("{title} live {}", view.join(" ")), differences);
    Ok(())
}

/// What a build says: its status and standard output.
fn say(inspect: &Path, view: &[&str], target: &Path) -> Result<(Option<i32>, String)> {
    let output = Command::new(inspect)
        .args(view)
        .arg(target)
        .env_remove("DEBUGINFOD_URLS")
        .env("XDG_CACHE_HOME", "/dev/null")
        .output();
    let output = output.with_context(|| format!("running {}", inspect.display()))?;
    let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.push_str(&String::from_utf8_lossy(&output.stderr));
    Ok((output.status.code(), text))
}

impl Outcome {
    fn add(&mut self, own: Outcome) {
        self.compared += own.compared;
        self.differences.extend(own.differences);
        self.failed.extend(own.failed);
        for (all, some) in [(&mut self.added, own.added), (&mut self.skipped, own.skipped)] {
            for (key, times) in some {
                *all.entry(key).or_default() += times;
            }
        }
        for (looks, times) in own.late {
            *self.late.entry(looks).or_default() += times;
        }
    }

    fn file(&mut self, title: &str, differences: Vec<String>) {
        self.compared += 1;
        self.differences.extend(differences.into_iter().take(8).map(|line| format!("{title}: {line}")));
    }

    /// What differs between two answers, in words.
    fn differ(&mut self, view: &[&str], before: &(Option<i32>, String), after: &(Option<i32>, String)) -> Vec<String> {
        let mut found = Vec::new();
        if before.0 != after.0 {
            found.push(format!("exit status {:?}, then {:?}", before.0, after.0));
        }
        if view.contains(&"--json") {
            match (serde_json::from_str(&before.1), serde_json::from_str(&after.1)) {
                (Ok(old), Ok(new)) => self.values("", &old, &new, &mut found),
                _ if before.1 == after.1 => {}
                _ => found.push(format!("no document: {} | {}", first_line(&before.1), first_line(&after.1))),
            }
        } else if before.1 != after.1 {
            let lines = before.1.lines().zip(after.1.lines()).filter(|(old, new)| old != new);
            found.extend(lines.map(|(old, new)| format!("{old:?}, then {new:?}")));
            if found.is_empty() {
                found.push(format!("{} lines, then {}", before.1.lines().count(), after.1.lines().count()));
            }
        }
        found
    }

    fn values(&mut self, path: &str, old: &Value, new: &Value, found: &mut Vec<String>) {
        match (old, new) {
            (Value::Object(old), Value::Object(new)) => {
                for (key, value) in old {
                    let path = format!("{path}.{key}");
                    match new.get(key) {
                        _ if VOLATILE.contains(&key.as_str()) => {}
                        Some(other) => self.values(&path, value, other, found),
                        None => found.push(format!("{path}: {value}, then nothing")),
                    }
                }
                for key in new.keys().filter(|key| !old.contains_key(*key)) {
                    *self.added.entry(format!("{}.{key}", generic(path))).or_default() += 1;
                }
            }
            (Value::Array(old), Value::Array(new)) => {
                if old.len() != new.len() {
                    found.push(format!("{path}: {} items, then {}", old.len(), new.len()));
                }
                for (index, (old, new)) in old.iter().zip(new).enumerate() {
                    self.values(&format!("{path}[{index}]"), old, new, found);
                }
            }
            (old, new) if old != new => found.push(format!("{path}: {old}, then {new}")),
            _ => {}
        }
    }
}

/// Keys whose values depend on when the process was stopped.
const VOLATILE: &[&str] = &["pause_ms", "stops", "stopped_threads", "cpu_ms"];

/// A path without the numbers of items.
fn generic(path: &str) -> String {
    let mut inside = false;
    path.chars()
        .filter(|c| {
            inside = *c == '[' || inside && *c != ']';
            !inside
        })
        .collect()
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or("nothing")
}
