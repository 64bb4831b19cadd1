//! Jobs that `mpirun` or `mpiexec` has started: where their ranks run.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;

use ompd_inspection::rank::{SlurmPlace, rank};
use ompd_jobs::is_host;
use ompd_process::live::listing::{self, ProcessEntry};
use ompd_report::escape::escape;

use crate::output::Failure;

/// Programs by which launchers start their daemons on other hosts.
const SHELLS: [&str; 3] = ["ssh", "rsh", "remsh"];
/// Options of `ssh` that take a value (ssh(1)).
const WITH_VALUE: &str = "BbcDEeFIiJLlmOoPpQRSWw";
/// Options of the daemons by whose value those of one launch know each other: of Hydra (MPICH, Intel MPI), of Open MPI's `orted`, of PRRTE.
const OF_LAUNCH: [&str; 4] = ["--control-port", "ess_base_jobid", "ess_base_nspace", "--upstream-host-port"];

/// What a launcher has started on other hosts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Remote {
    /// The hosts.
    pub hosts: Vec<String>,
    /// An argument that the daemons of this launch have, and those of no other.
    pub daemon: Option<String>,
    /// The launcher is a process of another user.
    pub is_of_another: bool,
    /// How many hosts have a daemon, where the launcher says so: those of a large job start each other.
    pub count: Option<usize>,
}

/// The hosts on which a launcher, or one that a shell has started, has its daemons, by the arguments of the programs that it has started these with.
///
/// # Errors
/// There is no such process, or it is another user's, whose word is not taken for where to connect to.
pub fn remote(proc_root: &Path, pid: i32) -> Result<Remote, Failure> {
    let Some(launcher) = ProcessEntry::find(proc_root, pid) else {
        return Err(Failure::with_remedy(
            format_args!("there is no process {pid}"),
            "look for the launcher with pgrep -a mpirun",
        ));
    };
    let us = Some(rustix::process::geteuid().as_raw());
    let mut remote = Remote { is_of_another: launcher.user() != us, ..Remote::default() };
    // The process may be a shell that has started the launcher. What ranks have started is no daemon.
    let mut followed = HashMap::from([(pid, launcher)]);
    let mut launchers = BTreeSet::new();
    for child in listing::descendants(proc_root, pid) {
        let Some(parent) = followed.get(&child.parent) else { continue };
        let arguments = child.arguments();
        let program = arguments.first().and_then(|path| path.rsplit('/').next());
        let job = SlurmPlace::of(&parent.environment()).job;
        if let Some(job) = job.filter(|_| program == Some("srun")) {
            return Err(Failure::with_remedy(
                format_args!("process {pid} has started its daemons by srun, in a job of Slurm"),
                format_args!("inspect that job: ompd-inspect job {}", escape(&job)),
            ));
        }
        let found = connected(&arguments).map(|(host, rest)| (host, rest, of_launch(rest)));
        let Some((host, rest, daemon)) = found.filter(|(.., daemon)| parent.pid == pid || daemon.is_some()) else {
            if rank(&child.environment()).is_none_or(|rank| rank.launcher == "Slurm") {
                followed.insert(child.pid, child);
            }
            continue;
        };
        if parent.user() != us {
            return Err(Failure::with_remedy(
                format_args!("process {pid} is another user's, and has ranks on other hosts"),
                "run this as that user, or name the hosts (--hosts)",
            ));
        }
        if !is_host(host) {
            return Err(Failure::with_remedy(
                format_args!("process {pid} has started a daemon on {}, which is no name of a host", escape(host)),
                "name the hosts (--hosts)",
            ));
        }
        if !remote.hosts.iter().any(|known| known == host) {
            remote.hosts.push(host.to_owned());
        }
        launchers.insert(parent.pid);
        remote.daemon = remote.daemon.or(daemon);
        // The launcher itself counts as one (orted, `ess_base_num_procs`).
        let daemons = value_of(rest, "ess_base_num_procs").and_then(|count| count.parse::<usize>().ok());
        remote.count = remote.count.or(daemons.map(|count| count.saturating_sub(1)));
    }
    if launchers.len() > 1 {
        let pids: Vec<String> = launchers.iter().map(i32::to_string).collect();
        return Err(Failure::with_remedy(
            format_args!("below process {pid} there are {} launchers with ranks on other hosts", pids.len()),
            format_args!("name one of them with --pid: {}", pids.join(", ")),
        ));
    }
    Ok(remote)
}

/// Host and remote command of `ssh OPTIONS HOST COMMAND`.
fn connected(arguments: &[String]) -> Option<(&str, &[String])> {
    let (program, mut rest) = arguments.split_first()?;
    let name = program.rsplit('/').next()?;
    if !SHELLS.contains(&name) {
        return None;
    }
    while let Some(option) = rest.first().filter(|argument| argument.starts_with('-')) {
        // A value stands in the same argument or in the next.
        let takes_next = option.len() == 2 && option.ends_with(|letter| WITH_VALUE.contains(letter));
        rest = rest.get(if takes_next { 2 } else { 1 }..)?;
    }
    let (host, command) = rest.split_first()?;
    Some((host, command))
}

/// What the daemons of one launch have in common.
fn of_launch(command: &[String]) -> Option<String> {
    let is_plain = |text: &String| {
        !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._:@-".contains(&byte))
    };
    OF_LAUNCH.iter().find_map(|name| value_of(command, name)).filter(is_plain)
}

/// The word after a name. The command may be one argument, for the shell of the other host.
fn value_of(command: &[String], name: &str) -> Option<String> {
    let mut words = command.iter().flat_map(|argument| argument.split_whitespace());
    words.find(|word| *word == name)?;
    Some(words.next()?.trim_matches(['"', '\'']).to_owned())
}

#[cfg(test)]
mod tests {
    use super::{connected, of_launch};

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn hosts_of_daemons() {
        let hydra = words("/usr/bin/ssh -x n7 /usr/bin/hydra_pmi_proxy --control-port n1:41235 --rmk user");
        let (host, rest) = connected(&hydra).expect("a host");
        assert_eq!((host, of_launch(rest).as_deref()), ("n7", Some("n1:41235")));
        let mut orted = words("ssh -p 22 -o BatchMode=yes -x me@n2");
        orted.push(
            "PATH=/x ; orted -mca ess \"env\" -mca ess_base_jobid \"1765605376\" -mca ess_base_vpid 1".to_owned(),
        );
        let (host, rest) = connected(&orted).expect("a host");
        assert_eq!((host, of_launch(rest).as_deref()), ("me@n2", Some("1765605376")));
        assert_eq!(connected(&words("./solver n7")), None);
        assert_eq!(connected(&words("ssh -p")), None);
    }
}
