//! Looks at processes that fork, execute themselves, end, and make threads.

use std::io::BufRead as _;
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Result, ensure};
use test_programs::{Env, Launch, Opt, Process, Random, Runtime, Toolchain, build};

use super::{Row, fault, look};
use crate::ended::left;

/// How they change.
pub(super) const HOW: [&str; 4] = ["fork", "exec", "exit", "threads"];

/// Longest time before a look.
const LONGEST: Duration = Duration::from_millis(30);

/// A process that is at it.
fn start(how: &str) -> Result<Process> {
    let program = build("changing", Toolchain::Gcc, Opt::O2, &[])?;
    let mut process = Launch::new(&program, Runtime::Libgomp, Env::Stock).argument(how).spawn()?;
    let mut line = String::new();
    process.stdout.read_line(&mut line)?;
    ensure!(line == "begun\n", "it says {line:?}");
    Ok(process)
}

pub(super) fn looks(inspect: &Path, how: &str, count: usize, random: &mut Random) -> Result<Row> {
    let mut process = start(how)?;
    let (mut findings, mut reports, mut refused) = (Vec::new(), 0, 0);
    for number in 0..count {
        if how == "exit" && number > 0 {
            process.child.wait()?;
            process = start(how)?;
        }
        sleep(Duration::from_micros(random.below(LONGEST.as_micros() as usize) as u64));
        let pid = process.child.id().to_string();
        let pause = ["auto", "brief", "never"][random.below(3)];
        let output = look(&[], inspect, &["--pause", pause, "--samples", "1", &pid]).output()?;
        findings.extend(fault(&output));
        match output.status.code() {
            Some(0 | 1) => reports += 1,
            _ => refused += 1,
        }
        let text = String::from_utf8_lossy(&output.stdout);
        // Each of them works, and waits for nothing but itself.
        if text.starts_with("DEADLOCK") {
            findings.push(format!("a false verdict: {}", text.lines().next().unwrap_or_default()));
        }
        // It may have ended.
        findings.extend(left(i32::try_from(process.child.id())?).unwrap_or_default());
        if how != "exit" && process.child.try_wait()?.is_some() {
            findings.push("it has ended".to_owned());
            process = start(how)?;
        }
    }
    // It may have ended.
    let _ = process.child.kill();
    process.child.wait()?;
    let result = format!("{reports} reports, {refused} refusals with a reason");
    let what = match how {
        "fork" => "a process that forks",
        "exec" => "a process that executes itself",
        "exit" => "a process that ends",
        _ => "a process that makes threads",
    };
    Ok(Row { what: what.to_owned(), looks: count, result, findings })
}
