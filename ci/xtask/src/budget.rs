//! `ci/budget`: how many instructions and allocations the most frequent looks take, compared with what was written down.
//!
//! Valgrind counts both. What depends on the other programs of the machine is left out. They depend on the compiler: what another one
//! has made is not compared.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use test_programs::{Env, Launch, Opt, Runtime, Toolchain, await_all_blocked, build};

use crate::bench::built_beside;

/// What was written down.
const BUDGET: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/budget.txt");
/// Counts may be so many times the budget: addresses differ from run to run, and what is sorted by them.
const SLACK: f64 = 1.05;
/// Threads of the teams that are looked at.
const THREADS: usize = 16;

/// Arguments of `budget`.
#[derive(Args)]
pub struct Arguments {
    /// Write what is counted as the budget.
    #[arg(long)]
    write: bool,
}

/// What one command takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Counts {
    instructions: u64,
    /// `None` of a process: the search for the other end of its pipe allocates for each process of the machine.
    allocations: Option<u64>,
}

/// Counts, and compares or writes.
///
/// # Errors
/// More was counted than the budget and its slack.
pub fn run(arguments: &Arguments) -> Result<()> {
    if Command::new("valgrind").arg("--version").stdout(Stdio::null()).status().is_err() {
        eprintln!("skipped: the budget of instructions (valgrind is not here)");
        return Ok(());
    }
    let compiler = compiler()?;
    let written = fs::read_to_string(BUDGET).unwrap_or_default();
    let (by, budget) = parse(&written).context(BUDGET)?;
    if !arguments.write && by != compiler {
        eprintln!(
            "skipped: the budget of instructions (it is of {by}, not of {compiler}; ci/budget --write makes one)"
        );
        return Ok(());
    }
    let counted = count(&built_beside("ompd-inspect")?)?;
    print!("{}", table(&counted, &budget));
    if arguments.write {
        return fs::write(BUDGET, text(&compiler, &counted)).context(BUDGET);
    }
    let over: Vec<&str> = counted
        .iter()
        .filter(|(name, counts)| is_over(counts, budget.get(*name)))
        .map(|(name, _)| name.as_str())
        .collect();
    ensure!(over.is_empty(), "more than the budget: {over:?}; if it has to be, ci/budget --write changes that");
    Ok(())
}

/// What the instructions are counted without: the search for the other end of the pipe takes so many for each process of the machine.
/// It sets `--collect-atstart=no`, so that option comes behind it.
const LEFT_OUT: &str = "--toggle-collect=*::Surroundings::holders";

/// True if there is a budget, and it is not kept.
fn is_over(counts: &Counts, budget: Option<&Counts>) -> bool {
    let over = |count: u64, most: u64| count as f64 > SLACK * most as f64;
    let allocates = |most: &Counts| counts.allocations.zip(most.allocations).is_some_and(|(now, most)| over(now, most));
    budget.is_some_and(|most| over(counts.instructions, most.instructions) || allocates(most))
}

/// The version of the compiler.
fn compiler() -> Result<String> {
    let output = Command::new("rustc").arg("--version").output().context("rustc --version")?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

fn count(inspect: &Path) -> Result<BTreeMap<String, Counts>> {
    let mut all = BTreeMap::new();
    for (shown, toolchain, runtime) in
        [("libgomp", Toolchain::Gcc, Runtime::Libgomp), ("LLVM libomp 14", Toolchain::Clang, Runtime::Libomp14)]
    {
        if let Err(skip) = toolchain.check().and_then(|()| runtime.library().map(drop)) {
            skip.show();
            continue;
        }
        let program = build("many", toolchain, Opt::O2, &[])?;
        let team = Launch::new(&program, runtime, Env::Settled).argument(&THREADS.to_string()).start()?;
        await_all_blocked(team.pid, THREADS, false)?;
        let directory = tempfile::tempdir().context("a directory for the core")?;
        match team.gcore(directory.path())? {
            Ok(core) => {
                let core = core.to_string_lossy().into_owned();
                for view in ["threads", "waits"] {
                    all.insert(format!("{view} of a core on {shown}"), counts(inspect, &[view, &core], true)?);
                }
            }
            Err(skip) => skip.show(),
        }
        await_all_blocked(team.pid, THREADS, false)?;
        let live = counts(inspect, &["threads", "--pause", "never", &team.pid.to_string()], false)?;
        all.insert(format!("threads of a process on {shown}"), live);
    }
    Ok(all)
}

fn counts(inspect: &Path, arguments: &[&str], are_allocations_own: bool) -> Result<Counts> {
    let said = |tool: &[&str], mark: &str| -> Result<u64> {
        let mut command = Command::new("valgrind");
        command.args(tool).arg(inspect).args(arguments).stdin(Stdio::null()).stdout(Stdio::null());
        let output = command.output().context("valgrind")?;
        let text = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{arguments:?} under valgrind ended with {}: {text}", output.status);
        number_behind(&text, mark).with_context(|| format!("no {mark:?} in {text}"))
    };
    let callgrind = ["--tool=callgrind", "--callgrind-out-file=/dev/null", LEFT_OUT, "--collect-atstart=yes"];
    // `Total: 12,345 bytes in 678 blocks`
    let allocations = || said(&["--tool=dhat", "--dhat-out-file=/dev/null"], " bytes in ");
    Ok(Counts {
        instructions: said(&callgrind, "Collected :")?,
        allocations: are_allocations_own.then(allocations).transpose()?,
    })
}

/// The first number behind the first place where `mark` stands.
fn number_behind(text: &str, mark: &str) -> Option<u64> {
    let digits: String =
        text.split_once(mark)?.1.trim_start().chars().take_while(|c| c.is_ascii_digit() || *c == ',').collect();
    digits.replace(',', "").parse().ok()
}

fn table(counted: &BTreeMap<String, Counts>, budget: &BTreeMap<String, Counts>) -> String {
    let mut text = String::from(
        "| look | million instructions | of the budget | allocations | of the budget |\n|---|---:|---:|---:|---:|\n",
    );
    for (name, counts) in counted {
        let share = |count: u64, most: Option<u64>| {
            most.map_or("new".to_owned(), |most| format!("{:.2}", count as f64 / most as f64))
        };
        let most = budget.get(name);
        let million = counts.instructions as f64 / 1e6;
        let by_budget = share(counts.instructions, most.map(|most| most.instructions));
        let allocated = counts.allocations.map_or("– | –".to_owned(), |count| {
            format!("{count} | {}", share(count, most.and_then(|most| most.allocations)))
        });
        let _ = writeln!(text, "| {name} | {million:.1} | {by_budget} | {allocated} |");
    }
    text
}

/// The file: the compiler, then a line for each look.
fn text(compiler: &str, counted: &BTreeMap<String, Counts>) -> String {
    let mut text = format!("{compiler}\n");
    for (name, Counts { instructions, allocations }) in counted {
        let allocated = allocations.map_or_else(String::new, |count| format!(", {count} allocations"));
        let _ = writeln!(text, "{name}: {instructions} instructions{allocated}");
    }
    text
}

fn parse(text: &str) -> Result<(String, BTreeMap<String, Counts>)> {
    let mut lines = text.lines();
    let compiler = lines.next().unwrap_or_default().to_owned();
    let mut all = BTreeMap::new();
    for line in lines {
        let Some((name, numbers)) = line.split_once(": ") else { bail!("no name in {line:?}") };
        let numbers: Vec<u64> = numbers.split(' ').filter_map(|word| word.parse().ok()).collect();
        let (instructions, allocations) = match numbers[..] {
            [instructions] => (instructions, None),
            [instructions, allocations] => (instructions, Some(allocations)),
            _ => bail!("neither one number nor two in {line:?}"),
        };
        all.insert(name.to_owned(), Counts { instructions, allocations });
    }
    Ok((compiler, all))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() -> Result<()> {
        let counts = |allocations| Counts { instructions: 100, allocations };
        let counted = BTreeMap::from([("core".to_owned(), counts(Some(20))), ("live".to_owned(), counts(None))]);
        assert_eq!(parse(&text("rustc 1", &counted))?, ("rustc 1".to_owned(), counted.clone()));
        assert!(parse("rustc 1\nthreads 5\n").is_err() && parse("rustc 1\nthreads: many\n").is_err());
        let table = table(&counted, &counted);
        assert!(table.contains("| core | 0.0 | 1.00 | 20 | 1.00 |") && table.contains("| live | 0.0 | 1.00 | – | – |"));
        Ok(())
    }

    #[test]
    fn more_than_the_slack_is_over() {
        let budget = Counts { instructions: 1000, allocations: Some(100) };
        let is_over = |instructions, allocations| is_over(&Counts { instructions, allocations }, Some(&budget));
        assert!(!is_over(1050, Some(105)) && !is_over(10, Some(1)) && !is_over(1050, None));
        assert!(is_over(1051, Some(1)) && is_over(1, Some(106)) && is_over(1051, None));
    }

    #[test]
    fn numbers_of_valgrind() {
        assert_eq!(number_behind("==1== Collected : 53123456\n", "Collected :"), Some(53_123_456));
        assert_eq!(number_behind("==1== Total:     1,234 bytes in 12,345 blocks\n", " bytes in "), Some(12_345));
        assert_eq!(number_behind("nothing", "Collected :"), None);
    }
}
