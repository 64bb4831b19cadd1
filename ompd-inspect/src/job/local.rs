//! The ranks of a job on this host, and a look at all of them.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::thread::{self, Scope};
use std::time::{Duration, SystemTime};

use ompd_inspection::rank::{Rank, SlurmPlace, rank};
use ompd_inspection::{Inspection, Watched};
use ompd_jobs::{Merged, Process, read};
use ompd_process::OpenError;
use ompd_process::live::listing::{self, ProcessEntry};
use ompd_report::json;
use ompd_runtime::family::is_named_like_a_runtime;

use super::slurm::JobName;
use crate::inputs;
use crate::inspecting::{Inspecting, longest_pause};
use crate::output::Failure;
use crate::progress::Progress;

/// Processes that are looked at on one host, and ancestors of one process.
const MOST: usize = 1 << 16;
/// A moment to look at that lies further ahead is not waited for.
pub const MOST_AHEAD: Duration = Duration::from_secs(120);
/// Processes that are inspected at once: most of that time is spent waiting between two looks.
const AT_ONCE: usize = 32;
/// Programs that start others and do nothing else.
const WRAPPERS: [&str; 16] = [
    "sh", "bash", "dash", "zsh", "ksh", "csh", "tcsh", "busybox", "time", "timeout", "strace", "ltrace", "perf", "gdb",
    "script", "tini",
];

/// Which ranks are meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Selection {
    /// Those of a job of Slurm, or of one of its steps.
    Slurm(JobName),
    /// Those below a process: a launcher.
    Below(i32),
    /// Those below a launcher's daemon that has this argument.
    Daemon(String),
    /// These processes, whether they are ranks or not.
    Processes(Vec<i32>),
}

/// A process that is looked at.
#[derive(Debug, Clone)]
pub struct Chosen {
    /// Its id.
    pub pid: i32,
    /// Its rank, if it is one.
    pub rank: Option<Rank>,
}

/// The processes of the selection: one of each rank, which is the program and not what starts it or what it has started.
///
/// # Errors
/// Processes cannot be listed.
pub fn processes(proc_root: &Path, selection: &Selection) -> Result<Vec<Chosen>, Failure> {
    let all = listing::processes(proc_root).map_err(|error| {
        Failure::with_remedy(format_args!("processes cannot be listed: {error}"), "mount procfs at /proc")
    })?;
    let tree = Tree::of(all);
    let found = tree.candidates(selection);
    Ok(tree.programs(found))
}

/// A process that its launcher has made a rank, or one that inherits that.
struct Candidate {
    pid: i32,
    rank: Option<Rank>,
}

impl Candidate {
    /// What tells ranks apart.
    fn key(&self) -> Option<(Option<&str>, u64)> {
        self.rank.as_ref().map(|rank| (rank.job.as_deref(), rank.number))
    }
}

/// All processes with their parents.
struct Tree {
    processes: HashMap<i32, ProcessEntry>,
    order: Vec<i32>,
}

impl Tree {
    fn of(all: Vec<ProcessEntry>) -> Tree {
        let order = all.iter().filter(|process| !process.has_ended()).map(|process| process.pid).collect();
        let processes = all.into_iter().map(|process| (process.pid, process)).collect();
        Tree { processes, order }
    }

    /// A process's parent, its parent, and so on.
    fn ancestors(&self, pid: i32) -> impl Iterator<Item = i32> + '_ {
        let parent = |pid: &i32| self.processes.get(pid).map(|process| process.parent);
        std::iter::successors(parent(&pid), move |pid| parent(pid)).take_while(|pid| *pid > 1).take(MOST)
    }

    fn candidates(&self, selection: &Selection) -> Vec<Candidate> {
        let own = i32::try_from(std::process::id()).unwrap_or_default();
        let ours = self.processes.get(&own).map(|own| SlurmPlace::of(&own.environment())).unwrap_or_default();
        let daemons: HashSet<i32> = match selection {
            Selection::Below(pid) => HashSet::from([*pid]),
            Selection::Daemon(argument) => {
                let has = |pid: &&i32| self.processes[*pid].arguments().iter().skip(1).any(|given| given == argument);
                self.order.iter().filter(has).copied().collect()
            }
            _ => HashSet::new(),
        };
        let is_below = |pid: i32| self.ancestors(pid).any(|ancestor| daemons.contains(&ancestor));
        let is_meant = |pid: &i32| match selection {
            Selection::Processes(pids) => pids.contains(pid),
            Selection::Below(_) | Selection::Daemon(_) => is_below(*pid),
            Selection::Slurm(_) => true,
        };
        let mut found = Vec::new();
        let mut others = Vec::new();
        for pid in self.order.iter().copied().filter(|pid| *pid != own).filter(is_meant) {
            let environment = self.processes[&pid].environment();
            if let Selection::Slurm(job) = selection {
                let place = SlurmPlace::of(&environment);
                // Several nodes may be one machine, and the step that asks is one of the job too.
                let is_here = ours.node.is_none() || place.node == ours.node;
                let is_asking = ours.job.is_some() && (&ours.job, &ours.step) == (&place.job, &place.step);
                if !job.has(place.job.as_deref(), place.step.as_deref()) || !is_here || is_asking {
                    continue;
                }
            }
            let rank = rank(&environment);
            let is_chosen = rank.is_some() || matches!(selection, Selection::Processes(_));
            let all = if is_chosen { &mut found } else { &mut others };
            all.push(Candidate { pid, rank });
        }
        // A program of one process needs no launcher.
        if found.is_empty() {
            others.retain(|other| self.processes[&other.pid].maps(is_named_like_a_runtime));
            found = others;
        }
        found.truncate(MOST);
        found
    }

    /// One process of each rank.
    fn programs(&self, mut found: Vec<Candidate>) -> Vec<Chosen> {
        let by_pid: HashMap<i32, usize> = found.iter().enumerate().map(|(at, candidate)| (candidate.pid, at)).collect();
        // A launcher's daemon that the batch system has started inherits a rank of that. Its ranks have others.
        let mut daemons = HashSet::new();
        for candidate in &found {
            let is_own = candidate.rank.as_ref().is_some_and(|rank| rank.launcher != "Slurm");
            for ancestor in self.ancestors(candidate.pid).filter(|_| is_own) {
                let of_batch = by_pid.get(&ancestor).and_then(|at| found[*at].rank.as_ref());
                daemons.extend(of_batch.filter(|rank| rank.launcher == "Slurm").map(|_| ancestor));
            }
        }
        found.retain(|candidate| !daemons.contains(&candidate.pid));
        let mut of_rank: HashMap<_, Vec<i32>> = HashMap::new();
        for candidate in &found {
            if let Some(key) = candidate.key() {
                of_rank.entry(key).or_default().push(candidate.pid);
            }
        }
        let chosen: HashSet<i32> = of_rank.values().flat_map(|pids| self.programs_of(pids)).collect();
        let is_chosen = |candidate: &Candidate| candidate.rank.is_none() || chosen.contains(&candidate.pid);
        found.into_iter().filter(is_chosen).map(|Candidate { pid, rank }| Chosen { pid, rank }).collect()
    }

    /// The program among processes with the same rank: the outermost that has loaded a runtime or MPI. If none has, it is the
    /// outermost that is no shell.
    fn programs_of(&self, pids: &[i32]) -> Vec<i32> {
        let all: HashSet<i32> = pids.iter().copied().collect();
        let outermost = |of: &HashSet<i32>| -> Vec<i32> {
            let is_outermost = |pid: &i32| !self.ancestors(*pid).any(|ancestor| of.contains(&ancestor));
            of.iter().copied().filter(is_outermost).collect()
        };
        let parallel: HashSet<i32> = all.iter().copied().filter(|pid| self.is_parallel(*pid)).collect();
        if !parallel.is_empty() {
            return outermost(&parallel);
        }
        let programs: HashSet<i32> = all.iter().copied().filter(|pid| !self.is_wrapper(*pid)).collect();
        outermost(if programs.is_empty() { &all } else { &programs })
    }

    fn is_parallel(&self, pid: i32) -> bool {
        let is_mpi = |path: &str| path.rsplit('/').next().is_some_and(|file| file.starts_with("libmpi"));
        self.processes[&pid].maps(|path| is_named_like_a_runtime(path) || is_mpi(path))
    }

    fn is_wrapper(&self, pid: i32) -> bool {
        let exe = self.processes[&pid].exe();
        exe.is_some_and(|exe| exe.rsplit('/').next().is_some_and(|file| WRAPPERS.contains(&file)))
    }
}

/// Sleeps until the moment by this host's clock.
pub fn wait_until(at: SystemTime) {
    let ahead = at.duration_since(SystemTime::now()).ok().filter(|ahead| *ahead <= MOST_AHEAD);
    thread::sleep(ahead.unwrap_or_default());
}

/// Looks at all of them and puts the reports together.
pub fn look(chosen: &[Chosen], inspecting: &Inspecting<'_>, host: Option<&str>) -> Merged {
    at_once(chosen, AT_ONCE.max(processors()), |process| of_process(process, inspecting, host))
}

/// Looks at cores and puts the reports together.
pub fn look_at_cores(names: &[String], inspecting: &Inspecting<'_>) -> Merged {
    let progress = Progress::of(&format!("inspecting {} cores", names.len()));
    let begun = AtomicUsize::new(0);
    at_once(names, processors(), |name| {
        progress.at(|| format!("number {}", begun.fetch_add(1, Ordering::Relaxed) + 1));
        report(name, inspecting).unwrap_or_else(|reason| {
            let mut merged = Merged::default();
            merged.add_failure(name, &reason);
            merged
        })
    })
}

/// Processors that this process may use.
pub fn processors() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// Merges the reports of all, so many made at once.
fn at_once<T: Sync>(all: &[T], workers: usize, report: impl Fn(&T) -> Merged + Sync) -> Merged {
    let next = AtomicUsize::new(0);
    let merged = Mutex::new(Merged::default());
    let work = || {
        while let Some(one) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
            let one = report(one);
            merged.lock().unwrap_or_else(PoisonError::into_inner).merge(one);
        }
    };
    thread::scope(|scope| {
        for _ in 1..workers.min(all.len()) {
            scope.spawn(work);
        }
        work();
    });
    merged.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// Threads that look at processes of this host again and again, each always at the same ones.
#[derive(Debug)]
pub struct Watch {
    workers: Vec<Sender<Vec<Chosen>>>,
    reports: Receiver<Merged>,
    /// Which thread looks at which process.
    of: HashMap<i32, usize>,
    next: usize,
}

impl Watch {
    /// Starts as many threads as there are processors. They end when this is dropped.
    pub fn start<'scope, 'a: 'scope>(
        scope: &'scope Scope<'scope, 'a>,
        inspecting: &'a Inspecting<'a>,
        host: &'a str,
        interval: Duration,
    ) -> Watch {
        let longest = longest_pause(inspecting.open(), interval);
        let (report, reports) = channel();
        let workers = processors();
        let start = |_| {
            let (sender, wanted) = channel::<Vec<Chosen>>();
            let report = report.clone();
            scope.spawn(move || {
                let mut all: HashMap<i32, Watched<'_>> = HashMap::new();
                for chosen in wanted {
                    let pids: HashSet<i32> = chosen.iter().map(|process| process.pid).collect();
                    all.retain(|pid, _| pids.contains(pid));
                    let mut merged = Merged::default();
                    for process in &chosen {
                        merged.merge(looked(&mut all, process, inspecting, host, longest));
                    }
                    if report.send(merged).is_err() {
                        return;
                    }
                }
            });
            sender
        };
        Watch { workers: (0..workers).map(start).collect(), reports, of: HashMap::new(), next: 0 }
    }

    /// Looks at these and puts the reports together; what is not among them any more is forgotten.
    pub fn look(&mut self, chosen: Vec<Chosen>) -> Merged {
        let pids: HashSet<i32> = chosen.iter().map(|process| process.pid).collect();
        self.of.retain(|pid, _| pids.contains(pid));
        let mut shares = vec![Vec::new(); self.workers.len()];
        for process in chosen {
            let worker = *self.of.entry(process.pid).or_insert_with(|| {
                self.next += 1;
                self.next % self.workers.len()
            });
            shares[worker].push(process);
        }
        let mut merged = Merged::default();
        // Those without a share forget what they had.
        let asked =
            self.workers.iter().zip(shares).filter(|(worker, share)| worker.send(share.clone()).is_ok()).count();
        self.reports.iter().take(asked).for_each(|report| merged.merge(report));
        merged
    }
}

/// A look at a process. One that has ended since it was chosen has no report.
fn looked<'a>(
    all: &mut HashMap<i32, Watched<'a>>,
    process: &Chosen,
    inspecting: &'a Inspecting<'a>,
    host: &str,
    longest: Duration,
) -> Merged {
    let pid = process.pid;
    let report = || -> Result<Merged, OpenError> {
        let watched = match all.entry(pid) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => entry.insert(inspecting.watched(pid)?),
        };
        let inspection = watched.look(longest)?;
        Ok(document(&pid.to_string(), inspection).unwrap_or_else(|reason| of_failure(process, Some(host), &reason)))
    };
    match { report }() {
        Ok(merged) => merged,
        Err(OpenError::NoSuchProcess { .. } | OpenError::Zombie { .. }) => Merged::default(),
        Err(error) => of_failure(process, Some(host), &one_line(&inputs::not_opened(&pid.to_string(), error))),
    }
}

/// The report of a process or core; otherwise why there is none.
fn report(name: &str, inspecting: &Inspecting<'_>) -> Result<Merged, String> {
    let inspection = inspecting.inspect(name).map_err(|failure| one_line(&failure))?;
    document(name, &inspection)
}

fn document(name: &str, inspection: &Inspection) -> Result<Merged, String> {
    let document = serde_json::to_vec(&json::report(inspection)).map_err(|error| error.to_string())?;
    read(name, &document).map_err(|error| error.to_string())
}

/// Cause and remedy in one line.
fn one_line(failure: &Failure) -> String {
    failure.to_string().lines().map(str::trim).collect::<Vec<_>>().join("; ")
}

fn of_process(process: &Chosen, inspecting: &Inspecting<'_>, host: Option<&str>) -> Merged {
    report(&process.pid.to_string(), inspecting).unwrap_or_else(|reason| of_failure(process, host, &reason))
}

fn of_failure(process: &Chosen, host: Option<&str>, reason: &str) -> Merged {
    let rank = process.rank.as_ref();
    let host = rank.and_then(|rank| rank.host.clone()).or_else(|| host.map(str::to_owned));
    let job = rank.and_then(|rank| rank.job.clone()).unwrap_or_default();
    let rank = rank.map(|rank| rank.number);
    let who = Process { job, rank, host, pid: Some(process.pid) };
    let mut merged = Merged::default();
    merged.add_failed_process(&who, reason);
    merged
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::*;

    /// Most of an inspection is a pause between two looks: hundreds of ranks must not wait for one another.
    #[test]
    fn more_processes_are_inspected_at_once_than_there_are_processors() {
        let processes: Vec<u64> = (0..AT_ONCE as u64).collect();
        let all_are_here = Barrier::new(processes.len());
        let merged = at_once(&processes, AT_ONCE, |number| {
            all_are_here.wait();
            let mut merged = Merged::default();
            merged.add_failure(&number.to_string(), "x");
            merged
        });
        assert_eq!(merged.failures.values().map(|of| of.targets.len()).collect::<Vec<_>>(), [AT_ONCE as u64]);
    }
}
