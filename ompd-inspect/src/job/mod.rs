//! `ompd-inspect job`: all ranks of a job that runs on any number of hosts.
//!
//! The job's own launcher starts `ompd-inspect job-node` on each host. That inspects the ranks of its host, puts their reports together
//! and prints them as lines (`ompd_jobs::wire`), which come back through the launcher.

mod agents;
mod hosts;
mod launcher;
mod local;
mod page;
mod rounds;
mod slurm;
mod watch;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anstream::ColorChoice;
use ompd_inspection::rank;
use ompd_jobs::Merged;
use ompd_jobs::wire::{self, Line, Lines};
use ompd_process::TargetKind;
use ompd_report::escape::escape;

pub use hosts::By;
pub use local::MOST_AHEAD;
pub use slurm::JobName;

use crate::args::{JobArgs, NodeArgs, Options};
use crate::inspecting::{COMPLETE, Inspecting, PARTIAL};
use crate::many;
use crate::merge;
use crate::output::{Failure, Output};
use crate::progress::Progress;
use crate::top;

use agents::{Agent, End, Outcome};
use local::Selection;

/// Lines of standard error that a failure shows of a program.
const LINES: usize = 3;

/// Who is asked, and how.
struct Plan {
    /// The programs that ask.
    agents: Vec<Agent>,
    /// The hosts that are asked.
    hosts: Vec<String>,
    /// What is known to be missing before anybody is asked.
    missing: Merged,
    nobody: Nobody,
}

/// What is said if no rank was inspected.
struct Nobody {
    /// Whose ranks.
    what: String,
    /// Slurm starts what asks the hosts.
    is_slurm: bool,
    /// It is a process of another user, whose ranks cannot be told from others.
    is_of_another: bool,
}

impl Nobody {
    fn failure(&self, merged: &Merged, outcomes: &[Outcome]) -> Failure {
        if self.is_slurm
            && let Some(outcome) = outcomes.iter().find(|outcome| !is_success(outcome))
        {
            return Failure::with_remedy(
                format_args!("Slurm: {}", escape(&reason(outcome))),
                "inspect the ranks of one host there: ompd-inspect --user",
            );
        }
        let what = &self.what;
        let first = merged.failures.iter().next();
        match first.map(|(failure, of)| format!("{of}: {}", escape(&failure.reason))) {
            Some(reason) => Failure::new(format!("no rank of {what} was inspected: {reason}")),
            None if self.is_of_another => Failure::with_remedy(
                format_args!("{what} is another user's: its ranks cannot be found"),
                "run this as that user, or as root",
            ),
            None => Failure::with_remedy(
                format_args!("no rank of {what} was found"),
                "inspect its processes by id, or by name (--hosts LIST --name NAME)",
            ),
        }
    }
}

/// When the hosts look.
#[derive(Debug, Clone, Copy)]
struct Moments {
    /// The first time, unless at once.
    at: Option<SystemTime>,
    /// How often, unless once.
    every: Option<Duration>,
}

/// Inspects all ranks of a job and shows what they say together.
///
/// # Errors
/// The job is not found, or no rank could be asked.
pub fn job(args: &JobArgs, options: &Options, color: ColorChoice) -> Result<u8, Failure> {
    if args.top {
        top::check("job --top", options)?;
    }
    if options.redact {
        return Err(Failure::with_remedy(
            "job has no option --redact",
            "make reports of single ranks with it: ompd-inspect --redact PID",
        ));
    }
    let output = options.output()?;
    if !args.cores.is_empty() {
        return show(&cores(&args.cores, options)?, args, options, output, color);
    }
    let every = args.top.then(|| top::interval(options));
    let moments = Moments { at: Some(SystemTime::now() + args.lead), every };
    let plan = match (&args.job, args.pid, &args.hosts) {
        (Some(name), _, _) => slurm(name, args, options, moments)?,
        (_, Some(pid), _) => launched(pid, args, options, moments)?,
        (_, _, Some(list)) => {
            let hosts = hosts::hosts(list, args.agent.unwrap_or(By::Ssh))?;
            if options.name.is_none() && !options.user {
                return Err(Failure::with_remedy(
                    "the processes on these hosts are not named",
                    "add --name NAME, or --user",
                ));
            }
            let agents = on_hosts(&hosts, Vec::new(), args, options, moments)?;
            let nobody = Nobody { what: "these hosts".to_owned(), is_slurm: false, is_of_another: false };
            Plan { agents, hosts, missing: Merged::default(), nobody }
        }
        _ => {
            return Err(Failure::with_remedy(
                "no job is named",
                "name a job of Slurm (job 4711), the launcher's process (--pid), hosts (--hosts) or cores (--cores)",
            ));
        }
    };
    match every {
        Some(every) => watch::watch(plan, args, options, every, color),
        None => show(&ask(plan, args)?, args, options, output, color),
    }
}

fn show(merged: &Merged, args: &JobArgs, options: &Options, output: Output, color: ColorChoice) -> Result<u8, Failure> {
    let shown = merge::show(merged, &args.form, &BTreeMap::new(), options, output, color)?;
    Ok(shown.max(status(merged)))
}

/// The exit status that tells whether every rank was inspected.
fn status(merged: &Merged) -> u8 {
    let is_whole = merged.failures.is_empty() && merged.sizes.keys().all(|job| merged.absent(job).is_empty());
    if is_whole { COMPLETE } else { PARTIAL }
}

/// What a host is told to do: `program` inspects its ranks.
fn node_command(program: &str, selection: Vec<String>, options: &Options, moments: Moments) -> Vec<String> {
    let mut command = vec![program.to_owned(), "job-node".to_owned()];
    command.extend(selection);
    let milliseconds = |time: Duration| time.as_millis().to_string();
    let at = moments.at.map(|at| at.duration_since(UNIX_EPOCH).unwrap_or_default());
    command.extend(at.into_iter().flat_map(|at| ["--at".to_owned(), milliseconds(at)]));
    command.extend(moments.every.into_iter().flat_map(|every| ["--every".to_owned(), milliseconds(every)]));
    command.extend(options.for_nodes());
    command
}

/// The path of this program on other hosts.
fn inspector(args: &JobArgs) -> Result<String, Failure> {
    match &args.inspector {
        Some(path) => Ok(path.clone()),
        None => std::env::current_exe()
            .map(|path| path.to_string_lossy().into_owned())
            .map_err(|error| Failure::new(format!("the path of this program is not known: {error}"))),
    }
}

fn slurm(name: &JobName, args: &JobArgs, options: &Options, moments: Moments) -> Result<Plan, Failure> {
    let allocation = slurm::find(name)?;
    let selection = vec!["--slurm".to_owned(), allocation.job.to_string()];
    let command = node_command(&inspector(args)?, selection, options, moments);
    // A view lasts as long as the job does.
    let timeout = moments.every.is_none().then_some(args.timeout);
    let agents = vec![allocation.agent(&command, timeout)?];
    let nobody = Nobody { what: format!("job {name}"), is_slurm: true, is_of_another: false };
    Ok(Plan { agents, hosts: allocation.hosts, missing: Merged::default(), nobody })
}

fn launched(pid: i32, args: &JobArgs, options: &Options, moments: Moments) -> Result<Plan, Failure> {
    let remote = launcher::remote(&options.proc_root, pid)?;
    let own = rank::host(TargetKind::Live, None).unwrap_or_default();
    // There is no other clock to look at the same moment.
    let moments = Moments { at: moments.at.filter(|_| !remote.hosts.is_empty()), ..moments };
    let selection = ["--below", &pid.to_string(), &format!("--node={own}")].map(str::to_owned).to_vec();
    let mut words = node_command("/proc/self/exe", selection, options, moments).into_iter();
    let mut command = Command::new(words.next().unwrap_or_default());
    command.args(words);
    let mut plan = Plan {
        agents: vec![Agent { label: own.clone(), command }],
        hosts: vec![own],
        missing: Merged::default(),
        nobody: Nobody { what: format!("process {pid}"), is_slurm: false, is_of_another: remote.is_of_another },
    };
    if remote.hosts.is_empty() {
        return Ok(plan);
    }
    let Some(daemon) = &remote.daemon else {
        return Err(Failure::with_remedy(
            format_args!("process {pid} has ranks on other hosts, and its daemons there cannot be told from others"),
            "name hosts and program: --hosts LIST --name NAME",
        ));
    };
    if let Some(more) = remote.count.and_then(|count| count.checked_sub(remote.hosts.len())).filter(|more| *more > 0) {
        let target = format!("{more} more hosts of process {pid}");
        let reason = "their daemons were started from other hosts; name all hosts (--hosts)";
        plan.missing.add_failure(&target, reason);
    }
    let selection = vec!["--daemon".to_owned(), daemon.clone()];
    plan.agents.extend(on_hosts(&remote.hosts, selection, args, options, moments)?);
    plan.hosts.extend(remote.hosts);
    Ok(plan)
}

fn on_hosts(
    hosts: &[String],
    selection: Vec<String>,
    args: &JobArgs,
    options: &Options,
    moments: Moments,
) -> Result<Vec<Agent>, Failure> {
    let by = args.agent.unwrap_or(By::Ssh);
    let command = node_command(&inspector(args)?, selection, options, moments);
    // A view needs all of them all the time.
    let times = match moments.every {
        None => hosts::Times { fanout: args.fanout, connect: args.timeout, command: Some(args.timeout) },
        Some(_) => hosts::Times { fanout: hosts.len(), connect: args.timeout, command: None },
    };
    match by {
        By::Ssh => {
            // A host has the name that the user calls it by.
            let named = |host: &String| [command.as_slice(), &[format!("--node={host}")]].concat();
            let of_host = |host: &String| hosts::agents(std::slice::from_ref(host), by, &named(host), times);
            Ok(hosts.iter().map(of_host).collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
        }
        By::Clush => hosts::agents(hosts, by, &command, times),
    }
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

/// Runs the programs and merges what the hosts answer as it comes. Hosts that do not answer are failures.
fn ask(plan: Plan, args: &JobArgs) -> Result<Merged, Failure> {
    let Plan { agents, hosts, missing: mut merged, nobody } = plan;
    let mut silent: BTreeSet<&str> = hosts.iter().map(String::as_str).collect();
    let mut lines = Lines::default();
    let mut failures: Vec<(String, String)> = Vec::new();
    // With one host there is nothing to count.
    let progress = (hosts.len() > 1).then(|| Progress::of(&format!("asking {} hosts", hosts.len())));
    // Before the moment of the look nobody can answer.
    let outcomes = agents::run(agents, args.fanout, Instant::now() + args.lead + args.timeout, |line| {
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
        if let Some(progress) = &progress {
            progress.at(|| format!("{} have answered", hosts.len() - silent.len()));
        }
    });
    drop(progress);
    let is_silent = silent.len() == hosts.len();
    let cut: BTreeSet<&str> = lines.incomplete().collect();
    for host in silent {
        let reason = match cut.contains(host) {
            true => "its report is cut off".to_owned(),
            false => silence(host, &outcomes, args.timeout),
        };
        failures.push((host.to_owned(), reason));
    }
    for (host, reason) in failures {
        merged.add_failure(&format!("host {host}"), &reason);
    }
    let has_nothing = merged.inspected.is_empty() && merged.failures.is_empty();
    let is_refused = nobody.is_slurm && is_silent && outcomes.iter().any(|outcome| !is_success(outcome));
    if has_nothing || is_refused { Err(nobody.failure(&merged, &outcomes)) } else { Ok(merged) }
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
        Some(outcome) if matches!(outcome.end, End::Waited) => {
            let time = top::seconds(timeout);
            Some(format!("not asked in {time}: other hosts have not answered in that time (--fanout, --timeout)"))
        }
        Some(outcome) if !matches!(outcome.end, End::TimedOut) => Some(reason(outcome)),
        Some(_) => None,
        None => outcomes.iter().find_map(about).or_else(|| {
            let failed = |outcome: &&Outcome| !is_success(outcome) && !matches!(outcome.end, End::TimedOut);
            outcomes.iter().find(failed).map(reason)
        }),
    };
    told.unwrap_or_else(|| match all {
        Some(outcome) if matches!(outcome.end, End::TimedOut) => format!("no answer in {}", top::seconds(timeout)),
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
        End::TimedOut | End::Waited => "it did not end in time".to_owned(),
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
    let inspecting = Inspecting::new(options, false, true).taking_turns(local::processors());
    let failed = |failure: Failure| {
        let reason = failure.to_string().lines().next().unwrap_or_default().to_owned();
        let mut merged = Merged::default();
        merged.add_failure(&format!("host {node}"), &reason);
        merged
    };
    let Some(every) = args.every.map(Duration::from_millis) else {
        // Found before the moment: to look is all that is left to be done then.
        let chosen = selected(args, options);
        at.into_iter().for_each(local::wait_until);
        let merged = chosen.map_or_else(failed, |chosen| local::look(&chosen, &inspecting, Some(&node)));
        answer(&node, &merged)?;
        return Ok(COMPLETE);
    };
    std::thread::scope(|scope| {
        let mut watch = local::Watch::start(scope, &inspecting, &node, every);
        at.into_iter().for_each(local::wait_until);
        let mut moment = at.unwrap_or_else(SystemTime::now);
        loop {
            let merged = match selected(args, options) {
                Ok(chosen) => watch.look(chosen),
                Err(failure) => failed(failure),
            };
            let is_over = merged.inspected.is_empty() && merged.failures.is_empty();
            if !answer(&node, &merged)? || is_over {
                return Ok(COMPLETE);
            }
            let now = SystemTime::now();
            moment = next(moment, every, now);
            // A clock that was set back must not end the view.
            std::thread::sleep(moment.duration_since(now).unwrap_or_default().min(every * 2));
        }
    })
}

/// The moment of the next look. Those that a long look has missed are left out, so that all hosts keep to the same.
fn next(moment: SystemTime, every: Duration, now: SystemTime) -> SystemTime {
    // The processes run for a quarter of the interval at least.
    let earliest = now + every / 4;
    let late = earliest.duration_since(moment).unwrap_or_default();
    let missed = late.as_nanos().div_ceil(every.as_nanos().max(1)).max(1);
    moment + every.saturating_mul(u32::try_from(missed).unwrap_or(u32::MAX))
}

/// Prints a report; false if nobody wants it any more.
fn answer(node: &str, merged: &Merged) -> Result<bool, Failure> {
    let lines = wire::lines(node, merged).map_err(|error| Failure::new(format!("cannot write the report: {error}")))?;
    let mut text = lines.join("\n");
    text.push('\n');
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        written => {
            written.map(|()| true).map_err(|error| Failure::new(format!("cannot write to standard output: {error}")))
        }
    }
}

fn selected(args: &NodeArgs, options: &Options) -> Result<Vec<local::Chosen>, Failure> {
    let selection = match (&args.slurm, &args.daemon, args.below) {
        (Some(job), _, _) => Selection::Slurm(job.clone()),
        (_, Some(daemon), _) => Selection::Daemon(daemon.clone()),
        (_, _, Some(pid)) => Selection::Below(pid),
        _ => {
            let targets = many::targets(options, &[])?.unwrap_or_default();
            Selection::Processes(targets.iter().filter_map(|target| target.name.parse().ok()).collect())
        }
    };
    local::processes(&options.proc_root, &selection)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_keep_to_the_same_moments_on_all_hosts() {
        let at = |ms| UNIX_EPOCH + Duration::from_millis(ms);
        let every = Duration::from_secs(2);
        assert_eq!(next(at(10_000), every, at(10_100)), at(12_000));
        assert_eq!(next(at(10_000), every, at(11_900)), at(14_000));
        assert_eq!(next(at(10_000), every, at(19_000)), at(20_000));
        assert_eq!(next(at(10_000), every, at(9_000)), at(12_000));
    }
}
