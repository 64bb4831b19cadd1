//! `ompd-inspect job`: all ranks of a job that runs on any number of hosts.
//!
//! The job's own launcher starts `ompd-inspect job-node` on each host. That inspects the ranks of its host, puts their reports together
//! and prints them as lines (`ompd_jobs::wire`), which come back through the launcher.

mod agents;
mod hosts;
mod launcher;
mod local;
mod slurm;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anstream::ColorChoice;
use ompd_inspection::rank;
use ompd_jobs::Merged;
use ompd_jobs::wire::{self, Line, Lines};
use ompd_process::TargetKind;
use ompd_report::escape::escape;

pub use hosts::By;
pub use slurm::JobName;

use crate::args::{JobArgs, NodeArgs, Options};
use crate::inspecting::{COMPLETE, Inspecting, PARTIAL};
use crate::many;
use crate::merge;
use crate::output::Failure;

use agents::{Agent, End, Outcome};
use local::Selection;

/// Lines of standard error that a failure shows of a program.
const LINES: usize = 3;

/// Inspects all ranks of a job and shows what they say together.
///
/// # Errors
/// The job is not found, or no rank could be asked.
pub fn job(args: &JobArgs, options: &Options, color: ColorChoice) -> Result<u8, Failure> {
    let merged = match (&args.job, args.pid, &args.hosts) {
        (Some(name), _, _) => slurm(name, args, options)?,
        (_, Some(pid), _) => launched(pid, args, options)?,
        (_, _, Some(list)) => {
            let hosts = hosts::hosts(list, args.agent.unwrap_or(By::Ssh))?;
            if options.name.is_none() && !options.user {
                return Err(Failure::with_remedy(
                    "the processes on these hosts are not named",
                    "add --name NAME, or --user",
                ));
            }
            on_hosts(&hosts, Vec::new(), SystemTime::now() + args.lead, args, options, Merged::default())?
        }
        _ if !args.cores.is_empty() => cores(&args.cores, options)?,
        _ => {
            return Err(Failure::with_remedy(
                "no job is named",
                "name a job of Slurm (job 4711), the launcher's process (--pid), hosts (--hosts) or cores (--cores)",
            ));
        }
    };
    let status = merge::show(&merged, &args.form, &BTreeMap::new(), options, color)?;
    let is_whole = merged.sizes.keys().all(|job| merged.absent(job).is_empty());
    Ok(if is_whole { status } else { status.max(PARTIAL) })
}

/// What a host is told to do.
fn node_command(
    selection: Vec<String>,
    args: &JobArgs,
    options: &Options,
    at: SystemTime,
) -> Result<Vec<String>, Failure> {
    let program = match &args.inspector {
        Some(path) => path.clone(),
        None => std::env::current_exe()
            .map_err(|error| Failure::new(format!("the path of this program is not known: {error}")))?
            .to_string_lossy()
            .into_owned(),
    };
    let mut command = vec![program, "job-node".to_owned()];
    command.extend(selection);
    command.extend(["--at".to_owned(), local::milliseconds(at).to_string()]);
    command.extend(options.for_nodes());
    Ok(command)
}

fn slurm(name: &JobName, args: &JobArgs, options: &Options) -> Result<Merged, Failure> {
    let allocation = slurm::find(name)?;
    let at = SystemTime::now() + args.lead;
    let selection = vec!["--slurm".to_owned(), allocation.job.to_string()];
    let command = node_command(selection, args, options, at)?;
    let agent = allocation.agent(&command, args.timeout)?;
    let mut merged = Merged::default();
    let outcomes = ask(vec![agent], &allocation.hosts, args, &mut merged);
    // Nobody has answered: it is Slurm that says why.
    let failed: u64 = merged.failures.values().map(|of| of.targets.len()).sum();
    let silent = failed == allocation.hosts.len() as u64 && merged.inspected.is_empty();
    if silent && let Some(outcome) = outcomes.iter().find(|outcome| !is_success(outcome)) {
        return Err(Failure::with_remedy(
            format_args!("Slurm: {}", escape(&reason(outcome))),
            "inspect the ranks of one host there: ompd-inspect --user",
        ));
    }
    found_any(merged, format_args!("job {name}"))
}

fn launched(pid: i32, args: &JobArgs, options: &Options) -> Result<Merged, Failure> {
    let remote = launcher::remote(&options.proc_root, pid)?;
    let chosen = local::processes(&options.proc_root, &Selection::Below(pid))?;
    let inspecting = Inspecting::new(options, false, true);
    if remote.hosts.is_empty() {
        let merged = local::look(&chosen, &inspecting, None, None);
        return found_any(merged, format_args!("process {pid}"));
    }
    let Some(daemon) = &remote.daemon else {
        return Err(Failure::with_remedy(
            format_args!("process {pid} has ranks on other hosts, and its daemons there cannot be told from others"),
            "name hosts and program: --hosts LIST --name NAME",
        ));
    };
    let selection = vec!["--daemon".to_owned(), daemon.clone()];
    let mut merged = Merged::default();
    if let Some(more) = remote.count.and_then(|count| count.checked_sub(remote.hosts.len())).filter(|more| *more > 0) {
        let target = format!("{more} more hosts of process {pid}");
        let reason = "their daemons were started from other hosts; name all hosts (--hosts)".to_owned();
        merged.add_failure(&target, &reason);
    }
    let at = SystemTime::now() + args.lead;
    let (others, own) = std::thread::scope(|scope| {
        let own = scope.spawn(|| local::look(&chosen, &inspecting, None, Some(at)));
        (on_hosts(&remote.hosts, selection, at, args, options, merged), own.join())
    });
    let mut merged = others?;
    merged.merge(own.map_err(|_| Failure::new("the ranks of this host could not be inspected"))?);
    Ok(merged)
}

fn on_hosts(
    hosts: &[String],
    selection: Vec<String>,
    at: SystemTime,
    args: &JobArgs,
    options: &Options,
    mut merged: Merged,
) -> Result<Merged, Failure> {
    let by = args.agent.unwrap_or(By::Ssh);
    let command = node_command(selection, args, options, at)?;
    let agents = match by {
        By::Ssh => {
            // A host has the name that the user calls it by.
            let named = |host: &String| [command.as_slice(), &[format!("--node={host}")]].concat();
            let of_host = |host: &String| hosts::agents(std::slice::from_ref(host), by, &named(host), 1, args.timeout);
            hosts.iter().map(of_host).collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect()
        }
        By::Clush => hosts::agents(hosts, by, &command, args.fanout, args.timeout)?,
    };
    ask(agents, hosts, args, &mut merged);
    found_any(merged, format_args!("these hosts"))
}

fn cores(cores: &[PathBuf], options: &Options) -> Result<Merged, Failure> {
    let mut names = Vec::new();
    for core in cores {
        let name = core.to_string_lossy().into_owned();
        let found = if core.exists() { Vec::new() } else { expanded(&name) };
        match found.is_empty() {
            true => names.push(name),
            false => names.extend(found),
        }
    }
    Ok(local::look_at_cores(&names, &Inspecting::new(options, false, true)))
}

/// The files that a pattern stands for.
fn expanded(pattern: &str) -> Vec<String> {
    let Ok(paths) = glob::glob(pattern) else { return Vec::new() };
    paths.flatten().filter(|path| path.is_file()).map(|path| path.to_string_lossy().into_owned()).collect()
}

fn found_any(merged: Merged, what: std::fmt::Arguments<'_>) -> Result<Merged, Failure> {
    match merged.inspected.is_empty() && merged.failures.is_empty() {
        true => Err(Failure::with_remedy(
            format_args!("no rank of {what} was found"),
            "inspect its processes by id, or by name (--hosts LIST --name NAME)",
        )),
        false => Ok(merged),
    }
}

/// Runs the programs and merges what the hosts answer as it comes. Hosts that do not answer are failures.
fn ask(agents: Vec<Agent>, hosts: &[String], args: &JobArgs, merged: &mut Merged) -> Vec<Outcome> {
    let mut silent: BTreeSet<&str> = hosts.iter().map(String::as_str).collect();
    let mut lines = Lines::default();
    let mut failures: Vec<(String, String)> = Vec::new();
    let is_terminal = io::stderr().is_terminal();
    let outcomes = agents::run(agents, args.fanout, Instant::now() + args.timeout, |line| {
        let Line::Report(node) = lines.take(line) else { return };
        if !silent.remove(&*node.name)
            && let Some(label) = &node.label
        {
            silent.remove(&**label);
        }
        match node.report {
            Ok(report) => merged.merge(report),
            Err(error) => failures.push((node.name, error.to_string())),
        }
        if is_terminal {
            let answered = hosts.len() - silent.len();
            // It is only for the eye.
            let _ = write!(io::stderr(), "\rompd-inspect: {answered} of {} hosts have answered", hosts.len());
        }
    });
    if is_terminal {
        let _ = write!(io::stderr(), "\r\x1b[K");
    }
    for host in silent {
        let reason = silence(host, &outcomes, args.timeout);
        failures.push((host.to_owned(), reason));
    }
    for (host, reason) in failures {
        merged.add_failure(&format!("host {host}"), &reason);
    }
    outcomes
}

/// Why a host has not answered.
fn silence(host: &str, outcomes: &[Outcome], timeout: Duration) -> String {
    // Of one program for all hosts, the lines that name the host are about it.
    let names_it = |line: &&str| {
        line.split(|letter: char| !(letter.is_alphanumeric() || "-_.".contains(letter))).any(|word| word == host)
    };
    let own = outcomes.iter().find(|outcome| outcome.label == host);
    let about = |outcome: &Outcome| {
        let lines: Vec<&str> = outcome.errors.lines().filter(names_it).take(LINES).collect();
        (!lines.is_empty()).then(|| lines.join("; "))
    };
    let all = own.or(outcomes.first());
    let told = match own {
        Some(outcome) if !matches!(outcome.end, End::TimedOut) => Some(reason(outcome)),
        Some(_) => None,
        None => outcomes.iter().find_map(about).or_else(|| {
            let failed = |outcome: &&Outcome| !is_success(outcome) && !matches!(outcome.end, End::TimedOut);
            outcomes.iter().find(failed).map(reason)
        }),
    };
    told.unwrap_or_else(|| match all {
        Some(outcome) if matches!(outcome.end, End::TimedOut) => format!("no answer in {} s", timeout.as_secs()),
        _ => "no answer".to_owned(),
    })
}

fn is_success(outcome: &Outcome) -> bool {
    matches!(&outcome.end, End::Exited(status) if status.success())
}

/// How a program ended, in its own words if it has some.
fn reason(outcome: &Outcome) -> String {
    let mut lines: Vec<&str> = outcome.errors.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    // Warnings say nothing about the end.
    if lines.iter().any(|line| line.contains("error:")) {
        lines.retain(|line| line.contains("error:"));
    }
    let last = lines[lines.len().saturating_sub(LINES)..].join("; ");
    match &outcome.end {
        _ if !last.is_empty() => last,
        End::Exited(status) => format!("no report: {status}"),
        End::NotStarted(error) => format!("it cannot be run: {error}"),
        End::TimedOut => "it did not end in time".to_owned(),
    }
}

/// Inspects the ranks of this host for `job`, which has started this there.
///
/// # Errors
/// Processes cannot be listed, or the report cannot be written.
pub fn node(args: &NodeArgs, options: &Options) -> Result<u8, Failure> {
    let named = args.node.clone().or_else(|| std::env::var("SLURMD_NODENAME").ok());
    let node = named.or_else(|| rank::host(TargetKind::Live, None)).unwrap_or_default();
    let at = args.at.map(|at| UNIX_EPOCH + Duration::from_millis(at));
    let merged = match selected(args, options) {
        Ok(chosen) => local::look(&chosen, &Inspecting::new(options, false, true), Some(&node), at),
        Err(failure) => {
            let reason = failure.to_string().lines().next().unwrap_or_default().to_owned();
            let mut merged = Merged::default();
            merged.add_failure(&format!("host {node}"), &reason);
            merged
        }
    };
    let lines =
        wire::lines(&node, &merged).map_err(|error| Failure::new(format!("cannot write the report: {error}")))?;
    let mut text = lines.join("\n");
    text.push('\n');
    crate::output::write_all(&mut io::stdout().lock(), &text)
        .map_err(|error| Failure::new(format!("cannot write to standard output: {error}")))?;
    Ok(COMPLETE)
}

fn selected(args: &NodeArgs, options: &Options) -> Result<Vec<local::Chosen>, Failure> {
    let selection = match (&args.slurm, &args.daemon) {
        (Some(job), _) => Selection::Slurm(job.clone()),
        (_, Some(daemon)) => Selection::Daemon(daemon.clone()),
        _ => {
            let targets = many::targets(options, &[])?.unwrap_or_default();
            Selection::Processes(targets.iter().filter_map(|target| target.name.parse().ok()).collect())
        }
    };
    local::processes(&options.proc_root, &selection)
}
