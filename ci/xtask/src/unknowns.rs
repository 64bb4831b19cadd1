//! What stays unknown of real programs: how often each value, and for which reasons.
//!
//! Each program runs, and `ompd-inspect --json` looks at it at random moments. Every value of a thread, team, task or loop is
//! counted by its [code](../../../docs/json.md#codes); a program that ends is started again.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use test_programs::{Env, HEALTHY, Launch, Opt, Random, Runtime, Toolchain, build, can_build};

/// What to look at, and how often.
#[derive(clap::Args)]
pub struct Arguments {
    /// How often to look at each program.
    #[arg(long, default_value_t = 50)]
    stops: usize,
    /// The `ompd-inspect` that looks.
    #[arg(long, default_value = "target/release/ompd-inspect")]
    inspect: PathBuf,
    /// How many reasons to list of each value.
    #[arg(long, default_value_t = 3)]
    reasons: usize,
    /// Program with its arguments, in one word of the shell: "./fib -n 40". Without any, the healthy programs of
    /// `test-programs` and the Python that `ci/fetch python` gets.
    programs: Vec<String>,
}

/// Longest time between two looks.
const INTERVAL: Duration = Duration::from_millis(50);
/// For how long looks may find no team of threads before a program is given up.
const BARREN: Duration = Duration::from_secs(60);

/// What is listed in a snapshot, by its key in JSON.
const LISTS: [(&str, &str); 4] = [("threads", "thread"), ("teams", "region"), ("tasks", "task"), ("loops", "loop")];

/// How often a value was known, and each reason why it was not.
#[derive(Debug, Default, PartialEq, Eq)]
struct Count {
    known: usize,
    unknown: BTreeMap<String, usize>,
}

impl Count {
    fn unknown(&self) -> usize {
        self.unknown.values().sum()
    }

    fn share(&self) -> f64 {
        100.0 * self.unknown() as f64 / (self.known + self.unknown()).max(1) as f64
    }

    /// The commonest reasons, most frequent first.
    fn commonest(&self, most: usize) -> Vec<(&str, usize)> {
        let mut all: Vec<_> = self.unknown.iter().map(|(code, count)| (code.as_str(), *count)).collect();
        all.sort_by_key(|(code, count)| (std::cmp::Reverse(*count), *code));
        all.truncate(most);
        all
    }
}

/// What was seen of one program: how often, each value, and the words of each code.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    stops: usize,
    values: BTreeMap<String, Count>,
    words: BTreeMap<String, String>,
}

impl Seen {
    /// Counts the values of a report; `false` if it shows no team of several threads.
    pub(crate) fn add(&mut self, report: &Value) -> bool {
        let runtimes: Vec<&Value> = report["runtimes"].as_array().into_iter().flatten().collect();
        let list = |runtime: &Value, key: &str| runtime[key].as_array().cloned().unwrap_or_default();
        if !runtimes.iter().any(|runtime| list(runtime, "threads").len() > 1) {
            return false;
        }
        self.stops += 1;
        for (runtime, (key, title)) in runtimes.iter().flat_map(|runtime| LISTS.map(|list| (runtime, list))) {
            for item in list(runtime, key) {
                let members = item.as_object().into_iter().flatten();
                for (name, value) in members.filter_map(|(name, value)| Some((name, value.as_object()?))) {
                    let count = || format!("{title} {name}");
                    if let Some(code) = value.get("code").and_then(Value::as_str) {
                        let words = value.get("unknown").and_then(Value::as_str).unwrap_or_default();
                        self.words.entry(code.to_owned()).or_insert_with(|| words.to_owned());
                        let of = self.values.entry(count()).or_default();
                        *of.unknown.entry(code.to_owned()).or_default() += 1;
                    } else if value.contains_key("origin") {
                        self.values.entry(count()).or_default().known += 1;
                    }
                }
            }
        }
        true
    }

    /// Counts what was seen of another program as well.
    pub(crate) fn join(&mut self, other: Seen) {
        for (name, count) in other.values {
            let of = self.values.entry(name).or_default();
            of.known += count.known;
            for (code, times) in count.unknown {
                *of.unknown.entry(code).or_default() += times;
            }
        }
        self.words.extend(other.words);
    }

    /// How many percent of all values are unknown.
    pub(crate) fn share(&self) -> f64 {
        let unknown: usize = self.values.values().map(Count::unknown).sum();
        let known: usize = self.values.values().map(|count| count.known).sum();
        100.0 * unknown as f64 / (known + unknown).max(1) as f64
    }
}

/// A program to look at.
struct Subject {
    title: String,
    start: Box<dyn Fn() -> Result<Running>>,
}

/// A program that runs; it ends when this is dropped.
enum Running {
    Plain(Child),
    Kit(Box<test_programs::Running>),
}

impl Running {
    fn pid(&self) -> i32 {
        match self {
            Running::Plain(child) => child.id().cast_signed(),
            Running::Kit(running) => running.pid,
        }
    }

    fn has_ended(&mut self) -> Result<bool> {
        match self {
            Running::Plain(child) => Ok(child.try_wait()?.is_some()),
            Running::Kit(_) => Ok(false),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Running::Plain(child) = self {
            // It may have ended by itself.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Prints the tables.
///
/// # Errors
/// When `ompd-inspect` or a program is missing.
pub fn run(arguments: &Arguments) -> Result<()> {
    let inspect = &arguments.inspect;
    ensure!(inspect.is_file(), "{} is missing: cargo build --release -p ompd-inspect", inspect.display());
    let subjects = match arguments.programs.as_slice() {
        [] => at_hand()?,
        named => named.iter().map(|command| named_program(command)).collect(),
    };
    let mut all = Seen::default();
    println!("| program | stops | value | unknown | commonest reasons |\n|---|---|---|---|---|");
    for subject in subjects {
        let seen = look_at(&subject, inspect, arguments.stops).with_context(|| subject.title.clone())?;
        print!("{}", rows(&subject.title, &seen, arguments.reasons));
        all.join(seen);
    }
    print!("\n{}", codes(&all));
    Ok(())
}

/// One row for each value that was unknown at least once.
fn rows(title: &str, seen: &Seen, reasons: usize) -> String {
    let row = |(name, count): (&String, &Count)| {
        let commonest = count.commonest(reasons).into_iter().map(|(code, times)| format!("{code} {times}"));
        let commonest = commonest.collect::<Vec<_>>().join(", ");
        let of = count.known + count.unknown();
        format!("| {title} | {} | {name} | {:.1} % of {of} | {commonest} |\n", seen.stops, count.share())
    };
    seen.values.iter().filter(|(_, count)| count.unknown() > 0).map(row).collect()
}

/// One row for each code, the commonest first.
pub(crate) fn codes(all: &Seen) -> String {
    let mut times: BTreeMap<&str, (usize, Vec<&str>)> = BTreeMap::new();
    for (name, count) in &all.values {
        for (code, often) in &count.unknown {
            let of = times.entry(code).or_default();
            of.0 += often;
            of.1.push(name);
        }
    }
    let mut times: Vec<_> = times.into_iter().collect();
    times.sort_by_key(|(code, (often, _))| (std::cmp::Reverse(*often), *code));
    let row = |(code, (often, of)): (&str, (usize, Vec<&str>))| {
        let words = all.words.get(code).map_or("", String::as_str);
        format!("| {code} | {often} | {} | {words} |\n", of.join(", "))
    };
    let rows: String = times.into_iter().map(row).collect();
    format!("| code | times | values | example |\n|---|---|---|---|\n{rows}")
}

fn look_at(subject: &Subject, inspect: &Path, stops: usize) -> Result<Seen> {
    let mut seen = Seen::default();
    let mut random = Random::new(1);
    let mut running = (subject.start)()?;
    let mut fruitful = Instant::now();
    while seen.stops < stops {
        if fruitful.elapsed() > BARREN {
            bail!("no team of threads was seen in {} seconds", BARREN.as_secs());
        }
        sleep(INTERVAL.mul_f64(random.below(1000) as f64 / 1000.0));
        if running.has_ended()? {
            running = (subject.start)()?;
        }
        let output = Command::new(inspect).args(["--json", "--no-cache"]).arg(running.pid().to_string()).output();
        let output = output.with_context(|| format!("starting {}", inspect.display()))?;
        // A program may end while it is looked at.
        let Ok(report) = serde_json::from_slice::<Value>(&output.stdout) else { continue };
        if seen.add(&report) {
            fruitful = Instant::now();
        }
    }
    Ok(seen)
}

/// A program that the user named.
fn named_program(command: &str) -> Subject {
    let words: Vec<String> = command.split_whitespace().map(str::to_owned).collect();
    let start = move || {
        let (program, arguments) = words.split_first().context("a program without a name")?;
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().with_context(|| format!("starting {program}"))?;
        Ok(Running::Plain(child))
    };
    Subject { title: command.to_owned(), start: Box::new(start) }
}

/// The healthy programs on libgomp, and programs in Python.
fn at_hand() -> Result<Vec<Subject>> {
    let mut subjects = Vec::new();
    for case in HEALTHY.iter().filter(|case| case.works(Toolchain::Gcc, Runtime::Libgomp)) {
        if let Err(skip) = can_build(case.program, Toolchain::Gcc)? {
            skip.show();
            continue;
        }
        let executable = build(case.program, Toolchain::Gcc, Opt::O2, case.flags)?;
        subjects.push(of_kit(case.program, Launch::new(&executable, Runtime::Libgomp, Env::Stock)));
    }
    for script in ["two_pools", "jit_loop"] {
        match Launch::python(script, Env::Stock) {
            Ok(launch) => subjects.push(of_kit(&format!("python/{script}"), launch)),
            Err(skip) => skip.show(),
        }
    }
    Ok(subjects)
}

fn of_kit(title: &str, launch: Launch) -> Subject {
    Subject { title: title.to_owned(), start: Box::new(move || Ok(Running::Kit(Box::new(launch.start_healthy()?)))) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn report() -> Value {
        json!({"runtimes": [{
            "threads": [
                {"lwp": 1, "wait": {"value": null, "origin": "stack"}},
                {"lwp": 2, "wait": {"unknown": "it is on its way", "code": "on-its-way"}},
                {"lwp": 3, "wait": {"unknown": "not read", "code": "not-read"}},
                {"lwp": 4, "wait": {"unknown": "not read", "code": "not-read"}},
            ],
            "teams": [{"function": {"value": {"addr": "0x1"}, "origin": "stack"}, "members": []}],
        }]})
    }

    #[test]
    fn unknown_values_are_counted_by_code() {
        let mut seen = Seen::default();
        assert!(seen.add(&report()));
        let wait = &seen.values["thread wait"];
        assert_eq!((wait.known, wait.unknown()), (1, 3));
        assert_eq!(wait.commonest(1), [("not-read", 2)]);
        assert_eq!(
            rows("fib", &seen, 2),
            "| fib | 1 | thread wait | 75.0 % of 4 | not-read 2, on-its-way 1 |\n",
            "a value that is always known has no row"
        );
        assert!(codes(&seen).contains("| not-read | 2 | thread wait | not read |\n"));
    }

    #[test]
    fn report_without_a_team_does_not_count() {
        let mut seen = Seen::default();
        assert!(
            !seen.add(&json!({"runtimes": [{"threads": [{"wait": {"unknown": "not read", "code": "not-read"}}]}]}))
        );
        assert_eq!(seen.stops, 0);
    }
}
