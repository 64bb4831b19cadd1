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

/// A process that changes. It is ended, whatever comes of the looks.
struct Changing(Process);

impl Drop for Changing {
    fn drop(&mut self) {
        let _ = self.0.child.kill();
        let _ = self.0.child.wait();
    }
}

fn start(how: &str) -> Result<Changing> {
    let program = build("changing", Toolchain::Gcc, Opt::O2, &[])?;
    let mut changing = Changing(Launch::new(&program, Runtime::Libgomp, Env::Stock).argument(how).spawn()?);
    let mut line = String::new();
    changing.0.stdout.read_line(&mut line)?;
    ensure!(line == "begun\n", "it says {line:?}");
    Ok(changing)
}

pub(super) fn looks(inspect: &Path, how: &str, count: usize, random: &mut Random) -> Result<Row> {
    let mut process = start(how)?;
    let (mut findings, mut reports, mut refused) = (Vec::new(), 0, 0);
    for number in 0..count {
        if how == "exit" && number > 0 {
            process.0.child.wait()?;
            process = start(how)?;
        }
        sleep(Duration::from_micros(random.below(LONGEST.as_micros() as usize) as u64));
        let pid = process.0.child.id().to_string();
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
        findings.extend(left(i32::try_from(process.0.child.id())?).unwrap_or_default());
        if how != "exit" && process.0.child.try_wait()?.is_some() {
            findings.push("it has ended".to_owned());
            process = start(how)?;
        }
    }
    let result = format!("{reports} reports, {refused} refusals with a reason");
    let what = match how {
        "fork" => "a process that forks",
        "exec" => "a process that executes itself",
        "exit" => "a process that ends",
        _ => "a process that makes threads",
    };
    Ok(Row { what: what.to_owned(), looks: count, result, findings })
}
