//! Jobs of Slurm: where their ranks run, and how their hosts are asked.

use std::fmt;
use std::process::Command;
use std::str::FromStr;
use std::time::Duration;

use ompd_jobs::expand;
use ompd_process::programs;
use ompd_report::escape::escape;

use super::agents::Agent;
use crate::output::Failure;

/// A job, or one of its steps, as Slurm names them: `4711`, `4711.0`, `4711_3`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobName {
    /// What `SLURM_JOB_ID` has, of an array's task and of a part of a heterogeneous job the name that the user gave.
    job: String,
    step: Option<String>,
}

impl JobName {
    /// Whether a process with these variables belongs to it.
    pub fn has(&self, job: Option<&str>, step: Option<&str>) -> bool {
        job == Some(&*self.job) && self.step.as_deref().is_none_or(|wanted| step == Some(wanted))
    }
}

impl fmt::Display for JobName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.step {
            Some(step) => write!(f, "{}.{step}", self.job),
            None => f.write_str(&self.job),
        }
    }
}

impl FromStr for JobName {
    type Err = String;

    fn from_str(text: &str) -> Result<JobName, String> {
        let (job, step) = text.split_once('.').map_or((text, None), |(job, step)| (job, Some(step)));
        let is_number = |text: &str| !text.is_empty() && text.len() <= 20 && text.bytes().all(|b| b.is_ascii_digit());
        let is_job = job.split(['_', '+']).all(is_number) && job.split(['_', '+']).count() <= 2;
        match is_job && step.is_none_or(is_number) {
            true => Ok(JobName { job: job.to_owned(), step: step.map(str::to_owned) }),
            false => Err("a job of Slurm is wanted, such as 4711, or a step of one, such as 4711.0".to_owned()),
        }
    }
}

/// A job that runs.
#[derive(Debug)]
pub struct Allocation {
    /// The job by its number, which an array's task has besides the name of the array.
    pub job: JobName,
    /// Its hosts, as Slurm lists them.
    list: String,
    /// Its hosts.
    pub hosts: Vec<String>,
}

/// Finds out where a job runs.
///
/// # Errors
/// Slurm is not here, or says no: its own reason.
pub fn find(name: &JobName) -> Result<Allocation, Failure> {
    // %A: number of the job; %N: hosts. A step has no number of its own for that.
    const WHOLE: [&str; 2] = ["--jobs", "%A %N"];
    let asked = if name.step.is_some() { ["--steps", "%i %N"] } else { WHOLE };
    let squeue = |name: &JobName, [what, format]: [&str; 2]| {
        allocation(name, &ask(&["--noheader", what, &name.to_string(), "--format", format])?)
    };
    let found = squeue(name, asked)?;
    if !found.job.job.contains(['_', '+']) {
        return Ok(found);
    }
    // A step of an array's task is listed by the name of that.
    let whole = squeue(&JobName { job: found.job.job.clone(), step: None }, WHOLE)?;
    Ok(Allocation { job: JobName { job: whole.job.job, step: found.job.step }, ..found })
}

/// What `squeue` says of a job: a line with its number and its hosts.
fn allocation(name: &JobName, text: &str) -> Result<Allocation, Failure> {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let first = lines.next();
    // An array, or a job of several parts: each is a job by itself.
    if lines.next().is_some() {
        return Err(Failure::with_remedy(
            format_args!("{name} stands for several jobs of Slurm"),
            format_args!("name one of them, such as {name}_1 (squeue --job {name})"),
        ));
    }
    let Some(line) = first else {
        return Err(Failure::with_remedy(
            format_args!("Slurm knows no running job {name}"),
            "list your jobs (squeue --me) and their steps (squeue --me --steps)",
        ));
    };
    let Some((number, list)) = line.split_once(char::is_whitespace) else {
        return Err(Failure::with_remedy(
            format_args!("job {name} of Slurm does not run yet: it has no hosts"),
            format_args!("see why (squeue --job {name})"),
        ));
    };
    let hosts = expand(list.trim()).map_err(|error| {
        Failure::new(format!("the hosts of job {name} are not understood: {}", escape(&error.to_string())))
    })?;
    let number = number.split('.').next().unwrap_or_default();
    let job = JobName { job: number.to_owned(), step: name.step.clone() };
    Ok(Allocation { job, list: list.trim().to_owned(), hosts })
}

fn ask(arguments: &[&str]) -> Result<String, Failure> {
    let mut command = command("squeue")?;
    let output = command.args(arguments).output();
    let output = output.map_err(|error| Failure::new(format!("squeue cannot be run: {error}")))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(Failure::with_remedy(
            format_args!("Slurm: {}", escape(String::from_utf8_lossy(&output.stderr).trim())),
            "list your jobs (squeue --me) and their steps (squeue --me --steps)",
        )),
    }
}

/// A program of Slurm's. What a job has in its environment would say which job is meant.
fn command(program: &'static str) -> Result<Command, Failure> {
    let Some(path) = programs::find(program) else {
        return Err(Failure::with_remedy(
            format_args!("Slurm is not here: there is no {program} in PATH"),
            "run this where jobs are submitted; or name the launcher (--pid) or the hosts (--hosts)",
        ));
    };
    let mut command = Command::new(path);
    let of_job = |name: &str| (name.starts_with("SLURM_") || name.starts_with("SQUEUE_")) && name != "SLURM_CONF";
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(of_job) {
            command.env_remove(name);
        }
    }
    Ok(command)
}

impl Allocation {
    /// The step that asks each host. Without a time it lasts as long as the job.
    ///
    /// # Errors
    /// Slurm is not here.
    pub fn agent(&self, node_command: &[String], timeout: Option<Duration>) -> Result<Agent, Failure> {
        let mut srun = command("srun")?;
        let count = self.hosts.len().to_string();
        srun.args([
            "--overlap",
            "--jobid",
            &self.job.job,
            "--nodes",
            &count,
            "--ntasks",
            &count,
            "--ntasks-per-node",
            "1",
        ]);
        srun.args(["--nodelist", &self.list, "--job-name", "ompd-inspect", "--chdir", "/", "--input", "none"]);
        // It needs none of what the job has got for itself, and one host less is no reason to end.
        srun.args(["--mpi", "none", "--cpu-bind", "none", "--kill-on-bad-exit=0", "--no-kill", "--wait", "0"]);
        if let Some(timeout) = timeout {
            // Minutes.
            srun.args(["--time", &(timeout.as_secs() / 60 + 1).to_string()]);
        }
        srun.args(node_command);
        Ok(Agent { label: format!("job {}", self.job), command: srun })
    }
}

#[cfg(test)]
mod tests {
    use super::{JobName, allocation};

    #[test]
    fn what_squeue_says_is_an_allocation_or_a_reason() {
        let of = |name: &str, text: &str| allocation(&name.parse().expect("a name"), text);
        let task = of("4711_3", "4714 n[1-2],login\n").expect("a task of an array");
        assert_eq!((task.job.to_string().as_str(), task.hosts.join(" ").as_str()), ("4714", "n1 n2 login"));
        let step = of("4711.0", "  4711.0 n7\n").expect("a step");
        assert_eq!((step.job.to_string().as_str(), step.hosts.join(" ").as_str()), ("4711.0", "n7"));
        for (text, reason) in [
            ("4712 n1\n4713 n2\n", "stands for several jobs"),
            ("\n", "knows no running job"),
            ("4711 \n", "does not run yet"),
            ("4711 -oProxyCommand=x\n", "are not understood"),
        ] {
            let failure = of("4711", text).expect_err(reason).to_string();
            assert!(failure.contains(reason), "{failure}");
        }
    }

    #[test]
    fn names_of_jobs() {
        for name in ["4711", "4711.0", "4711_3", "4711_3.1", "4711+1"] {
            assert_eq!(name.parse::<JobName>().map(|job| job.to_string()).as_deref(), Ok(name));
        }
        for wrong in ["", "x", "--all", "1.2.3", "1_2_3", "1.", ".1", "1.batch", "-1"] {
            assert!(wrong.parse::<JobName>().is_err(), "{wrong}");
        }
        let job: JobName = "4711".parse().expect("a job");
        assert!(job.has(Some("4711"), Some("0")) && !job.has(Some("471"), Some("0")) && !job.has(None, None));
        let step: JobName = "4711.0".parse().expect("a step");
        assert!(
            step.has(Some("4711"), Some("0")) && !step.has(Some("4711"), Some("1")) && !step.has(Some("4711"), None)
        );
    }
}
