//! Looks at a hang where the system allows little, or others look as well.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use test_programs::{Env, Launch, Opt, Running, Runtime, Toolchain, build};

use super::{Row, fault, look};
use crate::ended::left;

/// What is to come of a look.
#[derive(Clone, Copy)]
enum Expected {
    /// The verdict.
    Verdict,
    /// A report, with or without it.
    Report,
    /// No report, and a remedy.
    Refusal,
    /// One or the other.
    Either,
}

/// Where a look is tried: in words, what starts the command there (`PID` stands for the process), and what is to come of it.
const WHERE: [(&str, &[&str], Expected); 13] = [
    ("as usual", &[], Expected::Verdict),
    ("a user namespace", &["unshare", "--user", "--map-root-user"], Expected::Either),
    ("a mount namespace", &["unshare", "--mount"], Expected::Verdict),
    ("another PID namespace, with the outer /proc", &["unshare", "--pid", "--fork"], Expected::Either),
    (
        "no /proc",
        &["unshare", "--mount", "sh", "-c", "mount -t tmpfs none /proc && exec \"$@\"", "sh"],
        Expected::Refusal,
    ),
    ("no CAP_SYS_PTRACE, another user", &["setpriv", "--reuid=65534", "--clear-groups"], Expected::Refusal),
    ("no CAP_SYS_PTRACE", &["setpriv", "--bounding-set=-sys_ptrace", "--inh-caps=-sys_ptrace"], Expected::Either),
    ("20 file descriptors", &["prlimit", "--nofile=20"], Expected::Report),
    ("200 MB of address space", &["prlimit", "--as=209715200"], Expected::Either),
    ("no threads or processes of its own", &["prlimit", "--nproc=1"], Expected::Report),
    ("a filter that refuses ptrace", &["CONFINED", "ptrace"], Expected::Either),
    ("a filter that refuses process_vm_readv", &["CONFINED", "process_vm_readv"], Expected::Report),
    ("a low priority", &["nice", "-n", "19"], Expected::Verdict),
];

pub(super) fn all(inspect: &Path) -> Result<Vec<Row>> {
    let program = build("hangs/lock_cycle", Toolchain::Gcc, Opt::O2, &[])?;
    let hang = Launch::new(&program, Runtime::Libgomp, Env::Settled).start_hanging()?;
    let confined = build("confined", Toolchain::Gcc, Opt::O2, &[])?;
    let mut rows = Vec::new();
    for (what, before, expected) in WHERE {
        let before: Vec<&str> = before
            .iter()
            .map(|word| if *word == "CONFINED" { confined.path.to_str().unwrap_or("") } else { *word })
            .collect();
        for pause in ["auto", "brief"] {
            rows.push(one(&format!("{what}, --pause {pause}"), &before, inspect, pause, hang.pid, expected)?);
        }
    }
    rows.push(traced(inspect, &hang, "gdb", &["gdb", "-nx", "-batch", "-ex", "shell $LOOK", "-p"])?);
    rows.push(traced(inspect, &hang, "strace", &["strace", "-f", "-o", "/dev/null", "-p"])?);
    drop(hang);
    for (what, program, arguments) in [
        ("a process with 4,000 threads", "many", &["4000"][..]),
        ("a process with 100 GB of memory mapped", "vast", &["8", "100", "/nonexistent", "0"][..]),
    ] {
        let program = build(program, Toolchain::Gcc, Opt::O2, &[])?;
        let launch = arguments
            .iter()
            .fold(Launch::new(&program, Runtime::Libgomp, Env::Settled), |launch, argument| launch.argument(argument));
        let running = launch.start()?;
        rows.push(one(what, &[], inspect, "brief", running.pid, Expected::Report)?);
        rows.push(one(
            &format!("{what}, 200 MB of address space"),
            &["prlimit", "--as=209715200"],
            inspect,
            "brief",
            running.pid,
            Expected::Either,
        )?);
    }
    Ok(rows)
}

fn one(what: &str, before: &[&str], inspect: &Path, pause: &str, pid: i32, expected: Expected) -> Result<Row> {
    let output = look(before, inspect, &["--pause", pause, &pid.to_string()]).output().context("timeout")?;
    let mut findings: Vec<String> = fault(&output).into_iter().collect();
    let (text, said) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let has_report = matches!(output.status.code(), Some(0 | 1));
    let is_right = match expected {
        Expected::Verdict => text.starts_with("DEADLOCK"),
        Expected::Report => has_report,
        Expected::Refusal => !has_report && said.contains("remedy:"),
        Expected::Either => has_report || said.contains("remedy:"),
    };
    let first = |text: &str| text.lines().next().unwrap_or_default().to_owned();
    if !is_right {
        findings.push(format!("{}: {} {}", output.status, first(&text), said.trim()));
    }
    findings.extend(left(pid)?);
    let result = if has_report { first(&text) } else { first(said.trim()) };
    Ok(Row { what: what.to_owned(), looks: 1, result, findings })
}

/// A look at a process that another program traces.
fn traced(inspect: &Path, hang: &Running, what: &str, tracer: &[&str]) -> Result<Row> {
    let pid = hang.pid.to_string();
    let row = |result: String, findings: Vec<String>| Row { what: format!("under {what}"), looks: 1, result, findings };
    let [program, arguments @ ..] = tracer else { return Ok(row(String::new(), Vec::new())) };
    let mut command = Command::new(program);
    command.args(arguments).arg(&pid);
    if what == "gdb" {
        command.env("LOOK", format!("{} {pid}", inspect.display()));
        let output = command.output().context("gdb")?;
        let text = String::from_utf8_lossy(&output.stdout);
        let answer = text.lines().find(|line| line.starts_with("SUSPECT") || line.starts_with("DEADLOCK"));
        let findings = if answer.is_none() { vec![format!("no verdict: {text}")] } else { left(hang.pid)? };
        return Ok(row(answer.unwrap_or_default().to_owned(), findings));
    }
    let mut tracer = command.stderr(std::process::Stdio::null()).spawn().context("strace")?;
    // It traces once the kernel says so.
    let is_traced = || {
        std::fs::read_to_string(format!("/proc/{pid}/status")).is_ok_and(|status| !status.contains("\nTracerPid:\t0\n"))
    };
    while !is_traced() && tracer.try_wait()?.is_none() {
        std::thread::yield_now();
    }
    let output = look(&[], inspect, &["--pause", "brief", &pid]).output()?;
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(i32::try_from(tracer.id())?), nix::sys::signal::Signal::SIGINT)?;
    tracer.wait()?;
    let mut findings: Vec<String> = fault(&output).into_iter().collect();
    findings.extend(left(hang.pid)?);
    let (text, said) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let result = text.lines().chain(said.lines()).next().unwrap_or_default().to_owned();
    Ok(row(result, findings))
}
