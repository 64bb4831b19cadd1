//! Whether looks leave programs as they are, whatever happens to the look, and what comes of a look where the system allows little.
//!
//! Each part prints a row. A finding is a program that is harmed, a panic, a look that does not end, or one that ends without a report and
//! without a reason.

mod allowed;
mod changing;
mod counted;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use anyhow::{Context, Result, ensure};
use test_programs::Random;

use crate::ended::{ENDED, PANICKED};

/// What to try.
#[derive(clap::Args)]
pub struct Arguments {
    /// The `ompd-inspect` that looks.
    #[arg(long, default_value = "target/release/ompd-inspect")]
    inspect: PathBuf,
    /// How many looks there are at a program that works, ten in a second.
    #[arg(long, default_value_t = 1000)]
    looks: usize,
    /// How many looks are ended at a random moment.
    #[arg(long, default_value_t = 500)]
    ended: usize,
    /// How many looks there are at each program that changes.
    #[arg(long, default_value_t = 200)]
    changing: usize,
    /// Only this part: looks, ended, at-once, changing or allowed.
    #[arg(long)]
    only: Option<String>,
}

/// After so many seconds a look counts as one that does not end.
const PATIENCE: &str = "60";

/// What came of a part.
struct Row {
    what: String,
    looks: usize,
    /// In a few words.
    result: String,
    findings: Vec<String>,
}

/// Tries everything, and prints a table.
///
/// # Errors
/// When something is lacking, and when there is a finding.
pub fn run(arguments: &Arguments) -> Result<()> {
    let inspect = fs::canonicalize(&arguments.inspect).context("cargo build --release -p ompd-inspect")?;
    let mut random = Random::new(0x2545_f491_4f6c_dd1d);
    let is_wanted = |part: &str| arguments.only.as_deref().is_none_or(|only| only == part);
    println!("| what | looks | result | findings |\n|---|---:|---|---:|");
    let (mut looks, mut findings) = (0, Vec::new());
    let mut show = |row: Row| {
        println!("| {} | {} | {} | {} |", row.what, row.looks, row.result, row.findings.len());
        // At once: what comes next may fail because of it.
        row.findings.iter().for_each(|finding| eprintln!("{}: {finding}", row.what));
        looks += row.looks;
        findings.extend(row.findings.into_iter().map(|finding| format!("{}: {finding}", row.what)));
    };
    if is_wanted("looks") {
        show(counted::looks(&inspect, arguments.looks)?);
    }
    if is_wanted("ended") {
        for how in counted::HOW {
            show(counted::ended(&inspect, how, arguments.ended / counted::HOW.len(), &mut random)?);
        }
    }
    if is_wanted("at-once") {
        show(counted::at_once(&inspect)?);
    }
    if is_wanted("changing") {
        for how in changing::HOW {
            show(changing::looks(&inspect, how, arguments.changing, &mut random)?);
        }
    }
    if is_wanted("allowed") {
        for row in allowed::all(&inspect)? {
            show(row);
        }
    }
    for finding in &findings {
        println!("- {finding}");
    }
    ensure!(looks > 0, "nothing was looked at");
    println!("{looks} looks, {} findings", findings.len());
    ensure!(findings.is_empty(), "{} findings", findings.len());
    Ok(())
}

/// A look that is ended if it does not end by itself. `before` is what starts it.
fn look(before: &[&str], inspect: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new("timeout");
    command.args(["-k", "5", PATIENCE]).args(before).arg(inspect).args(arguments);
    command.env("NO_COLOR", "1").env("RUST_BACKTRACE", "0").stdin(Stdio::null());
    command
}

/// What is wrong with how a look ended; `None` if it ended with a report, or with a reason.
fn fault(output: &Output) -> Option<String> {
    let said = String::from_utf8_lossy(&output.stderr);
    match output.status.code() {
        Some(0 | 1) if !output.stdout.is_empty() => None,
        Some(2) if !said.trim().is_empty() => None,
        Some(ENDED) => Some("it does not end".to_owned()),
        Some(PANICKED) => Some(format!("a panic: {}", said.trim())),
        _ => Some(format!("{}, without a report or a reason: {}", output.status, said.trim())),
    }
}
