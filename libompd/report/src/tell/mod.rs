//! Verdicts in words: the same for people and in JSON.

mod evidence;
mod fix;
mod headline;
mod teller;
#[cfg(test)]
mod tests;

use std::collections::HashSet;

use ompd_inspection::Inspection;
use ompd_process::Addr;
use ompd_runtime::model::TaskState;
use ompd_runtime::waits_for::{Certainty, Node, Verdict};

use crate::escape::escape;
use crate::words;
pub(crate) use fix::EVENT;
use teller::Teller;

/// A verdict in words. Text of the target is escaped.
#[derive(Debug)]
pub struct VerdictText {
    /// What it is, in one sentence.
    pub text: String,
    /// The threads that are the cause, with what each does and where.
    pub cause: Option<String>,
    /// The facts it rests on, a sentence each.
    pub evidence: Vec<String>,
    /// What is inferred and was not read, a sentence each. No verdict rests on it.
    pub inferred: Vec<String>,
    /// How to fix it.
    pub fix: String,
    /// Threads (LWP) that wait for each other, or are waited for.
    pub threads: Vec<i32>,
    /// Addresses of the locks, dependences and event handles named in it.
    pub objects: Vec<Addr>,
    /// Descriptors of the tasks named in it.
    pub tasks: Vec<Addr>,
    /// Teams named in it, as indices of runtime and team.
    pub teams: Vec<(usize, usize)>,
}

/// Tells one verdict of an inspection.
pub fn tell(inspection: &Inspection, verdict: &Verdict) -> VerdictText {
    let teller = Teller { inspection, core: verdict.core.iter().copied().collect() };
    let is_waiting = verdict.certainty == Certainty::Waiting;
    let threads = verdict.core.iter().filter_map(|node| match node {
        Node::Thread(lwp) if is_waiting || teller.matters(*lwp, verdict) => Some(*lwp),
        _ => None,
    });
    let mut told = VerdictText {
        text: headline::headline(&teller, verdict),
        cause: headline::cause(&teller, verdict),
        evidence: teller.evidence(verdict),
        inferred: teller.inferences(verdict),
        fix: fix::fix(&teller, verdict),
        threads: threads.collect(),
        objects: Vec::new(),
        tasks: Vec::new(),
        teams: Vec::new(),
    };
    for node in &verdict.core {
        match *node {
            Node::Lock(runtime, id) | Node::GoneOwner(runtime, id) => {
                told.objects.extend(inspection.runtimes[runtime].lock(id).map(|l| l.object));
            }
            Node::Word(_, word) => told.objects.push(Addr(word)),
            Node::Task(runtime, id) => {
                let Some(task) = inspection.runtimes[runtime].task(id) else { continue };
                told.tasks.push(task.descriptor);
                if task.state.get() == Some(TaskState::Blocked) {
                    told.objects.extend(task.dependences.iter().map(|d| d.addr));
                }
            }
            Node::Event(runtime, id) => {
                let event = inspection.runtimes[runtime].task(id).and_then(|t| t.event.flat());
                told.objects.extend(event.map(|e| e.handle));
            }
            Node::Barrier(runtime, team) | Node::RegionEnd(runtime, team) | Node::RegionStart(runtime, team) => {
                told.teams.push((runtime, team.0));
            }
            _ => {}
        }
    }
    told.objects.sort_unstable();
    told.objects.dedup();
    told.teams.sort_unstable();
    told.teams.dedup();
    told
}

/// What threads of an inspection are called in sentences, and what each does.
pub struct Names<'a>(Teller<'a>);

impl std::fmt::Debug for Names<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Names").finish_non_exhaustive()
    }
}

impl<'a> Names<'a> {
    /// Those of the threads of an inspection.
    pub fn of(inspection: &'a Inspection) -> Names<'a> {
        Names(Teller { inspection, core: HashSet::new() })
    }

    /// `thread 3 of team 0 (id 4711)`.
    pub fn who(&self, lwp: i32) -> String {
        self.0.who(lwp)
    }

    /// `threads 0-2 of team 0`.
    pub fn whos(&self, lwps: &[i32]) -> String {
        self.0.whos(lwps)
    }

    /// What a thread does, and where in the source.
    pub fn stand(&self, lwp: i32) -> String {
        self.0.stand(lwp)
    }
}

/// A node of the graph in a few words.
pub fn node(inspection: &Inspection, node: Node) -> String {
    let teller = Teller { inspection, core: HashSet::new() };
    let barrier = |what: &str, runtime, team| format!("{what} {}", teller.team(runtime, team));
    match node {
        Node::Thread(lwp) => teller.who(lwp),
        Node::Missing(runtime, team, number) => {
            format!("thread {number} of {}, not in this process", teller.team(runtime, team))
        }
        Node::GoneOwner(..) => "a thread that has ended".to_owned(),
        Node::Barrier(runtime, team) => barrier("barrier of", runtime, team),
        Node::RegionEnd(runtime, team) => barrier("end of the region of", runtime, team),
        Node::RegionStart(runtime, team) => barrier("start of the region of", runtime, team),
        Node::TeamTasks(runtime, team) => barrier("tasks of", runtime, team),
        Node::Ordered(runtime, team) => barrier("ordered in", runtime, team),
        Node::Lock(runtime, id) => {
            let lock = inspection.runtimes[runtime].lock(id);
            let kind = lock.map_or("lock", words::lock_kind);
            let name = lock.map(|l| l.name.as_deref().map_or_else(|| l.object.to_string(), escape));
            format!("{kind} {}", name.unwrap_or_default())
        }
        Node::Word(_, word) => format!("lock {}", Addr(word)),
        Node::Taskwait(runtime, task) => format!("taskwait of {}", teller.task(runtime, task)),
        Node::Taskgroup(_, group) => format!("taskgroup {}", group.0),
        Node::Dependences(runtime, task) => format!("dependences in {}", teller.task(runtime, task)),
        Node::Task(runtime, task) => teller.task(runtime, task),
        Node::Event(runtime, task) => format!("event of {}", teller.task(runtime, task)),
        Node::Anyone => "any thread of the process".to_owned(),
    }
}
