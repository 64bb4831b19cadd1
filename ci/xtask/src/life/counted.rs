//! Looks at a program that counts what it does, and checks it.

use std::fs::File;
use std::io::{BufRead as _, Write as _};
use std::path::Path;
use std::process::{Child, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use test_programs::{Env, Launch, Opt, Process, Random, Runtime, Toolchain, build};

use super::{Row, fault, look};
use crate::ended::{PANICKED, left};

/// Time between two looks.
const INTERVAL: Duration = Duration::from_millis(100);
/// Looks are ended within this time, which is about what they take.
const LONGEST: Duration = Duration::from_millis(12);
/// How many look at once.
const AT_ONCE: usize = 30;

/// The program, which adds up the same numbers again and again.
struct Counted {
    process: Process,
    pid: i32,
    asked: Instant,
    rounds: u64,
}

impl Counted {
    fn start() -> Result<Counted> {
        let program = build("counted", Toolchain::Gcc, Opt::O2, &[])?;
        let process = Launch::new(&program, Runtime::Libgomp, Env::Stock).spawn()?;
        let pid = i32::try_from(process.child.id())?;
        let mut counted = Counted { process, pid, asked: Instant::now(), rounds: 0 };
        counted.ask()?;
        Ok(counted)
    }

    /// Sums in a second since it was asked last. It answers, so it works.
    fn ask(&mut self) -> Result<f64> {
        self.process.stdin.write_all(b"?")?;
        let mut line = String::new();
        self.process.stdout.read_line(&mut line)?;
        let words: Vec<&str> = line.split_whitespace().collect();
        let ["rounds", rounds, "wrong", wrong] = words[..] else { bail!("it says {line:?}") };
        ensure!(wrong == "0", "{wrong} sums of {rounds} are wrong");
        let rounds: u64 = rounds.parse()?;
        let rate = (rounds - self.rounds) as f64 / self.asked.elapsed().as_secs_f64();
        (self.asked, self.rounds) = (Instant::now(), rounds);
        Ok(rate)
    }

    fn end(self) -> Result<()> {
        let Process { mut child, stdin, .. } = self.process;
        drop(stdin);
        let status = child.wait()?;
        ensure!(status.success(), "it ended with {status}");
        Ok(())
    }
}

/// Looks at it again and again, ten times in a second.
pub(super) fn looks(inspect: &Path, count: usize) -> Result<Row> {
    let mut counted = Counted::start()?;
    sleep(Duration::from_secs(5));
    let before = counted.ask()?;
    let pid = counted.pid.to_string();
    let views: [&[&str]; 6] = [
        &[&pid],
        &["threads", &pid],
        &["--pause", "brief", "stacks", &pid],
        &["--json", "--pause", "brief", &pid],
        &["teams", &pid],
        &["icvs", &pid],
    ];
    let mut findings = Vec::new();
    let began = Instant::now();
    for number in 0..count {
        let next = began + INTERVAL * u32::try_from(number)?;
        sleep(next.saturating_duration_since(Instant::now()));
        let output = look(&[], inspect, views[number % views.len()]).output()?;
        findings.extend(fault(&output));
        if !output.status.success() {
            findings.push(format!("look {number}: {}", String::from_utf8_lossy(&output.stderr).trim()));
        }
        findings.extend(left(counted.pid)?);
    }
    let (during, took) = (counted.ask()?, began.elapsed());
    counted.end()?;
    let result = format!(
        "all sums right, {:.0}% of the sums in a second without looks, {:.1} looks in a second",
        100.0 * during / before,
        count as f64 / took.as_secs_f64()
    );
    Ok(Row { what: "a program that works".to_owned(), looks: count, result, findings })
}

/// How looks are ended.
pub(super) const HOW: [&str; 5] = ["SIGKILL", "SIGTERM", "SIGINT", "a closed pipe", "a full disk"];

/// Starts looks, and ends each at some moment.
pub(super) fn ended(inspect: &Path, how: &str, count: usize, random: &mut Random) -> Result<Row> {
    let mut counted = Counted::start()?;
    let pid = counted.pid.to_string();
    let (mut findings, mut cut_short) = (Vec::new(), 0);
    for number in 0..count {
        let arguments = ["--pause", "brief", "--json", &pid];
        // Without `timeout`: it would be what is ended.
        let mut command = std::process::Command::new(inspect);
        command.args(arguments).env("RUST_BACKTRACE", "0").stdin(Stdio::null()).stderr(Stdio::piped());
        match how {
            "a full disk" => command.stdout(File::options().write(true).open("/dev/full")?),
            _ => command.stdout(Stdio::piped()),
        };
        let mut child = command.spawn().context("the look")?;
        let moment = Duration::from_micros(random.below(LONGEST.as_micros() as usize) as u64);
        match how {
            "a full disk" => {}
            "a closed pipe" => {
                sleep(moment);
                drop(child.stdout.take());
            }
            signal => {
                sleep(moment);
                let signal: Signal = signal.parse()?;
                if child.try_wait()?.is_none() {
                    cut_short += 1;
                    kill(Pid::from_raw(i32::try_from(child.id())?), signal)?;
                }
            }
        }
        let output = finish(child)?;
        if output.status.code() == Some(PANICKED) || String::from_utf8_lossy(&output.stderr).contains("panicked") {
            findings.push(format!("look {number}: {}", String::from_utf8_lossy(&output.stderr).trim()));
        }
        if how == "a full disk" && output.status.code() == Some(0) {
            findings.push(format!("look {number}: no error, and nothing was written"));
        }
        findings.extend(left(counted.pid)?);
        if !findings.is_empty() {
            break;
        }
        // It works on: it answers.
        counted.ask()?;
    }
    counted.end()?;
    let result = match how {
        "a full disk" | "a closed pipe" => "all sums right, all threads let go".to_owned(),
        _ => format!("{cut_short} were not over, all sums right, all threads let go"),
    };
    Ok(Row { what: format!("looks ended by {how}"), looks: count, result, findings })
}

fn finish(child: Child) -> Result<std::process::Output> {
    Ok(child.wait_with_output()?)
}

/// Many look at the same time, a few times.
pub(super) fn at_once(inspect: &Path) -> Result<Row> {
    const TIMES: usize = 10;
    let mut counted = Counted::start()?;
    let pid = counted.pid.to_string();
    let (mut findings, mut reports) = (Vec::new(), 0);
    for _ in 0..TIMES {
        let start = || {
            let mut command = look(&[], inspect, &["--pause", "brief", "threads", &pid]);
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()
        };
        let looks: Vec<Child> = (0..AT_ONCE).map(|_| start()).collect::<Result<_, _>>()?;
        for child in looks {
            let output = finish(child)?;
            findings.extend(fault(&output));
            match output.status.success() {
                true => reports += 1,
                false => findings.push(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
            }
        }
        findings.extend(left(counted.pid)?);
        counted.ask()?;
    }
    counted.end()?;
    let result = format!("{reports} whole reports");
    Ok(Row { what: format!("{AT_ONCE} looks at once"), looks: TIMES * AT_ONCE, result, findings })
}
