//! Verdicts in words: the same for people and in JSON.

use std::collections::{HashMap, HashSet};

use ompd_process::{Addr, TargetKind};
use ompd_runtime::icvs::{ACTIVE_LEVELS, MAX_ACTIVE_LEVELS};
use ompd_runtime::model::*;
use ompd_runtime::os::{Blocked, Sharing, Signals};
use ompd_runtime::waits_for::{Certainty, Node, Situation, Verdict, has_detached};

use crate::escape::escape;
use crate::words;
use ompd_inspection::Inspection;

/// A verdict in words. Text of the target is escaped.
#[derive(Debug)]
pub struct VerdictText {
    /// What it is, in one sentence.
    pub text: String,
    /// The facts it rests on, a sentence each.
    pub evidence: Vec<String>,
    /// How to fix it.
    pub cure: &'static str,
    /// Threads (LWP) that wait for each other, or are waited for.
    pub threads: Vec<i32>,
    /// Addresses of the locks, dependences and event handles named in it.
    pub objects: Vec<Addr>,
    /// Descriptors of the tasks named in it.
    pub tasks: Vec<Addr>,
    /// Teams named in it, as indices of runtime and team.
    pub teams: Vec<(usize, usize)>,
}

/// Sentences about one thread or task each that are shown before the rest is counted.
const SHOWN: usize = 12;

/// Tells one verdict of an inspection.
pub fn tell(inspection: &Inspection, verdict: &Verdict) -> VerdictText {
    let teller = Teller { inspection, core: verdict.core.iter().copied().collect() };
    let threads = verdict.core.iter().filter_map(|node| match node {
        Node::Thread(lwp) if teller.matters(*lwp, verdict) => Some(*lwp),
        _ => None,
    });
    let mut told = VerdictText {
        text: teller.headline(verdict),
        evidence: teller.evidence(verdict),
        cure: cure(verdict),
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

/// What to do about a kind of hang.
fn cure(verdict: &Verdict) -> &'static str {
    let has_lock = verdict.core.iter().any(|node| matches!(node, Node::Lock(..) | Node::Word(..)));
    match verdict.situation {
        Situation::LockCycle => "Set the locks in the same order everywhere, or use one lock for both.",
        Situation::SelfDeadlock => {
            "Unset the lock before it is set again, or use a nestable lock (omp_nest_lock_t); critical constructs of one \
             name do not nest."
        }
        Situation::OwnerGone => {
            "Unset the lock on every way out of the code that sets it, exceptions and returns included."
        }
        Situation::BarrierMismatch => {
            "Every thread of a team has to meet the same barriers: move the barrier out of the branch."
        }
        Situation::OrphanedWorksharing => {
            "Worksharing constructs and single have to be met by all threads of the team or by none: move it out of the \
             branch, or add nowait if nobody relies on its barrier."
        }
        Situation::MissingMember => {
            "Let go of what the missing threads wait for before the barrier, or let them do without it."
        }
        Situation::UnfulfilledEvent => {
            "Call omp_fulfill_event for the event on every path, errors included, from a thread that does not wait for the task."
        }
        Situation::DependenceCycle => {
            "A task must not wait for what a task does that depends on it: release it before, or drop the dependence."
        }
        Situation::TaskNeverRun => {
            "Do not hold a lock or wait for a flag while what would release it is a task that no thread is free to execute: \
             use taskwait or dependences instead, or more threads."
        }
        Situation::NestedExhausted => {
            "Allow more nested levels (OMP_MAX_ACTIVE_LEVELS, omp_set_max_active_levels), or let the code do with the \
             threads that omp_get_num_threads says it has."
        }
        Situation::PoolLostInFork => {
            "Do not use OpenMP in the child of a fork if the parent did: start processes with spawn or forkserver, or exec \
             after fork, or set OMP_NUM_THREADS=1 in the child before its first region."
        }
        Situation::ClosedWaits if !has_lock => {
            "Look at what each thread was to do next (`stacks`): one of them has to go on by itself for the others to follow."
        }
        Situation::ClosedWaits => {
            "Look at where each of these locks was set (`stacks`): one of the waiting threads holds it, or a thread that has ended."
        }
    }
}

struct Teller<'a> {
    inspection: &'a Inspection,
    core: HashSet<Node>,
}

impl Teller<'_> {
    /// A thread that is worth a name: it waits for OpenMP, or is what a suspicion rests on.
    fn matters(&self, lwp: i32, verdict: &Verdict) -> bool {
        let graph = &self.inspection.waits_for.graph;
        graph.is_waiting(lwp)
            || matches!(self.blocked(lwp), Blocked::Mutex(..))
            || verdict.rests_on_calls
                && matches!(self.blocked(lwp), Blocked::Outside(_) | Blocked::Yields)
                && self.in_some_team(lwp)
    }

    fn blocked(&self, lwp: i32) -> Blocked {
        self.inspection.os.threads.iter().find(|os| os.lwp == lwp).map_or(Blocked::No, |os| os.blocked)
    }

    fn in_some_team(&self, lwp: i32) -> bool {
        self.inspection.runtimes.iter().any(|r| r.thread_by_lwp(lwp).is_some_and(|t| t.team.flat().is_some()))
    }

    /// `thread 3 of team 0 (LWP 4711)`.
    fn thread(&self, lwp: i32) -> String {
        let place = self.inspection.runtimes.iter().enumerate().find_map(|(runtime, snapshot)| {
            let thread = snapshot.thread_by_lwp(lwp)?;
            Some((runtime, thread.team.flat()?, thread.thread_num.get()?))
        });
        match place {
            Some((runtime, team, number)) => format!("thread {number} of {} (LWP {lwp})", self.team(runtime, team)),
            None => format!("LWP {lwp}"),
        }
    }

    /// `team 0`, with the runtime where several have teams.
    fn team(&self, runtime: usize, team: TeamId) -> String {
        match self.inspection.runtimes.iter().filter(|r| !r.teams.is_empty()).count() {
            1 => format!("team {}", team.0),
            _ => {
                let path = &self.inspection.runtimes[runtime].instance.path;
                format!("team {} of {}", team.0, escape(path.rsplit('/').next().unwrap_or(path)))
            }
        }
    }

    fn task(&self, runtime: usize, id: TaskId) -> String {
        let task = self.inspection.runtimes[runtime].task(id);
        match task.and_then(|t| words::code(&t.function, &t.location)) {
            Some(code) => format!("task {} ({code})", id.0),
            None => format!("task {}", id.0),
        }
    }

    fn headline(&self, verdict: &Verdict) -> String {
        let waiting = verdict.core.iter().filter(|node| match node {
            Node::Thread(lwp) => self.inspection.waits_for.graph.is_waiting(*lwp),
            _ => false,
        });
        let count = waiting.count();
        let team = verdict.core.iter().find_map(|node| match node {
            Node::Barrier(runtime, team) | Node::RegionEnd(runtime, team) | Node::RegionStart(runtime, team) => {
                Some(self.team(*runtime, *team))
            }
            Node::Missing(runtime, team, _) => Some(self.team(*runtime, *team)),
            _ => None,
        });
        let team = team.unwrap_or_else(|| "a team".to_owned());
        match verdict.situation {
            Situation::LockCycle => {
                format!("{} each hold a lock that the next one waits for", words::count(count, "thread"))
            }
            Situation::SelfDeadlock => "a thread waits for a lock that it holds itself".to_owned(),
            Situation::OwnerGone => "the owner of a lock has ended without unsetting it".to_owned(),
            Situation::BarrierMismatch => format!("threads of {team} wait for each other at different barriers"),
            Situation::OrphanedWorksharing => {
                format!("a worksharing construct was met by some threads of {team} only")
            }
            Situation::MissingMember if verdict.rests_on_calls => {
                format!("{team} waits at a barrier for threads that wait for something outside of the process")
            }
            Situation::MissingMember => {
                format!("{team} waits at a barrier for threads that wait for those at the barrier")
            }
            Situation::UnfulfilledEvent => {
                "the body of a detached task is over, and nobody is left to fulfil its event".to_owned()
            }
            Situation::DependenceCycle => "a task waits for what a task does that depends on it".to_owned(),
            Situation::TaskNeverRun => "a task is ready, and all threads that could execute it wait".to_owned(),
            Situation::NestedExhausted => {
                "a thread that is alone in a nested region waits in a loop: the region got no other thread".to_owned()
            }
            Situation::PoolLostInFork => {
                format!("{team} waits for threads that this process does not have: fork left them behind")
            }
            Situation::ClosedWaits => {
                format!("all threads wait{}, and none is left that could let another go on", self.for_what(verdict))
            }
        }
    }

    /// `: 3 at a barrier, 1 for lock total_lock`.
    fn for_what(&self, verdict: &Verdict) -> String {
        let mut kinds: Vec<(String, usize)> = Vec::new();
        for node in &verdict.core {
            let Node::Thread(lwp) = node else { continue };
            let mut waits =
                self.inspection.runtimes.iter().filter_map(|r| r.thread_by_lwp(*lwp)?.wait.value()?.as_ref());
            let Some(wait) = waits.find(|w| w.kind != WaitKind::Pool) else { continue };
            let what = match wait.kind {
                WaitKind::Barrier | WaitKind::BarrierTasks => "at a barrier".to_owned(),
                WaitKind::RegionEnd => "at the end of a region".to_owned(),
                WaitKind::Lock | WaitKind::Mutex | WaitKind::Critical => {
                    let name = wait.name.as_deref().map_or_else(|| wait.object.to_string(), escape);
                    // The name of a critical says that it is one.
                    let kind = if wait.kind == WaitKind::Critical { "" } else { "lock " };
                    format!("for {kind}{name}")
                }
                kind => format!("for {}", kind.word()),
            };
            match kinds.iter_mut().find(|(known, _)| *known == what) {
                Some((_, n)) => *n += 1,
                None => kinds.push((what, 1)),
            }
        }
        let parts: Vec<String> = kinds.iter().take(4).map(|(what, n)| format!("{n} {what}")).collect();
        if parts.is_empty() { String::new() } else { format!(" ({})", parts.join(", ")) }
    }

    fn evidence(&self, verdict: &Verdict) -> Vec<String> {
        let graph = &self.inspection.waits_for.graph;
        let mut lines = Vec::new();
        // Threads by what they wait for: those at one barrier in one sentence.
        let mut groups: Vec<(Vec<Node>, Vec<i32>)> = Vec::new();
        let mut place: HashMap<Vec<Node>, usize> = HashMap::new();
        for node in &verdict.core {
            let Node::Thread(lwp) = *node else { continue };
            if !graph.is_waiting(lwp) {
                continue;
            }
            let objects: Vec<Node> = graph.waits_for(*node).collect();
            let index = *place.entry(objects.clone()).or_insert_with(|| {
                groups.push((objects, Vec::new()));
                groups.len() - 1
            });
            groups[index].1.push(lwp);
        }
        for (objects, lwps) in &groups {
            lines.push(self.waits(lwps, objects));
        }
        for node in &verdict.core {
            match *node {
                Node::Thread(lwp) if !graph.is_waiting(lwp) && self.matters(lwp, verdict) => match self.blocked(lwp) {
                    Blocked::Outside(call) => {
                        lines.push(format!("{} is in system call {call}, without a time limit", self.thread(lwp)));
                    }
                    Blocked::Mutex(mutex, owner) => {
                        let owner = self.thread(owner);
                        lines
                            .push(format!("{} waits for the pthread mutex {mutex}, held by {owner}", self.thread(lwp)));
                    }
                    Blocked::Yields => lines.push(self.alone(lwp)),
                    _ => {}
                },
                Node::Task(runtime, id) => lines.extend(self.of_task(runtime, id)),
                _ => {}
            }
        }
        let more = lines.len().saturating_sub(SHOWN);
        lines.truncate(SHOWN);
        if more > 0 {
            lines.push(format!("… and {more} more"));
        }
        if self.core.contains(&Node::Anyone) {
            lines.extend(self.rest(verdict));
        }
        lines.extend(self.shared(verdict));
        if verdict.certainty == Certainty::Suspect {
            lines.extend(self.handlers());
            if let Some(time) = self.inspection.unmoved {
                lines.push(format!(
                    "nothing of this moved in {:.1} s; `--samples 2 --interval 10s` looks longer",
                    time.as_secs_f64()
                ));
            }
        }
        if !verdict.held_up.is_empty() {
            let held = words::count(verdict.held_up.len(), "more thread");
            let verb = if verdict.held_up.len() == 1 { "waits" } else { "wait" };
            let lwps: Vec<String> = verdict.held_up.iter().take(SHOWN).map(i32::to_string).collect();
            let dots = if verdict.held_up.len() > SHOWN { ", …" } else { "" };
            lines.push(format!("{held} {verb} for these: LWP {}{dots}", lwps.join(", ")));
        }
        lines
    }

    /// What of a hang other processes may end.
    fn shared(&self, verdict: &Verdict) -> Vec<String> {
        let locks = verdict.core.iter().filter_map(|node| match node {
            Node::Lock(runtime, id) => self.inspection.runtimes[*runtime].lock(*id).map(|lock| lock.object),
            Node::Word(_, word) => Some(Addr(*word)),
            _ => None,
        });
        let told = locks.filter_map(|lock| match self.inspection.os.shared.get(&lock)? {
            Sharing::Shared => Some(format!(
                "{lock} lies in memory that other processes may have as well: one of them may set it free"
            )),
            Sharing::Unknown => Some(format!("whether another process can set {lock} free is not known")),
        });
        told.take(SHOWN).collect()
    }

    /// Which handlers of signals may end a hang.
    fn handlers(&self) -> Option<String> {
        let source = match self.inspection.kind {
            TargetKind::Live => "the kernel did not tell",
            TargetKind::Core => "a core does not record",
            TargetKind::Debugged => "the debugger does not tell",
        };
        match &self.inspection.os.signals {
            Signals::Handled(0) => None,
            Signals::NotRecorded => Some(format!("{source} handlers of signals: one may let a thread go on")),
            Signals::Possible(module) => Some(format!(
                "{source} handlers of signals: {} can have set one, which may let a thread go on",
                escape(module.rsplit('/').next().unwrap_or(module))
            )),
            signals => {
                let names: Vec<String> = signals.numbers().map(words::signal_name).collect();
                Some(format!("a handler may let a thread go on, when a signal arrives: {}", names.join(", ")))
            }
        }
    }

    /// A thread in a region that got no other because no more levels may be active.
    fn alone(&self, lwp: i32) -> String {
        let mut threads = self.inspection.runtimes.iter().filter_map(|r| r.thread_by_lwp(lwp));
        let icvs = threads.find(|t| t.team.flat().is_some()).map(|t| &t.icvs);
        let value = |fact: Option<String>| fact.unwrap_or_else(|| "?".to_owned());
        let most = value(icvs.and_then(|i| i.count(&MAX_ACTIVE_LEVELS)).map(|n| n.to_string()));
        let active = value(icvs.and_then(|i| i.count(&ACTIVE_LEVELS)).map(|n| n.to_string()));
        format!(
            "{} is in sched_yield, the only thread of its region: max-active-levels is {most}, active levels are {active}",
            self.thread(lwp)
        )
    }

    /// One sentence on threads that wait for the same.
    fn waits(&self, lwps: &[i32], objects: &[Node]) -> String {
        let who = match lwps {
            [one] => self.thread(*one),
            many => self.threads(many),
        };
        let mut text = match self::wait(self, lwps[0]) {
            Some(wait) if lwps.len() == 1 => format!("{who} {}", words::waiting(wait)),
            Some(wait) => {
                let kind = |wait: &Wait| wait.barrier.as_ref().and_then(Fact::get);
                let alike = lwps.iter().all(|lwp| self::wait(self, *lwp).map(kind) == Some(kind(wait)));
                let mut places: Vec<String> = Vec::new();
                for place in lwps.iter().filter_map(|lwp| self::place(self, *lwp, !alike)) {
                    if !places.contains(&place) {
                        places.push(place);
                    }
                }
                let barrier = wait.barrier.clone().filter(|_| alike);
                let common = Wait { location: None, barrier, ..wait.clone() };
                let mut words = words::waiting(&common).replacen("waits", "wait", 1);
                if matches!(wait.kind, WaitKind::Ordered | WaitKind::Dependences | WaitKind::RegionStart) {
                    words = words.replacen(" its ", " their ", 1);
                }
                let places = if places.is_empty() { String::new() } else { format!(" ({})", places.join(", ")) };
                format!("{who} {words}{places}")
            }
            None => format!("{who} waits"),
        };
        for object in objects {
            if let Some(needs) = self.needs(*object) {
                text.push_str(&format!("; {needs}"));
            }
        }
        text
    }

    /// `threads 0-2 of team 0`.
    fn threads(&self, lwps: &[i32]) -> String {
        let place = |lwp: &i32| {
            self.inspection.runtimes.iter().enumerate().find_map(|(runtime, snapshot)| {
                let thread = snapshot.thread_by_lwp(*lwp)?;
                Some((runtime, thread.team.flat()?, thread.thread_num.get()?))
            })
        };
        let places: Option<Vec<_>> = lwps.iter().map(place).collect();
        let mut ids: Vec<u32> = lwps.iter().map(|lwp| *lwp as u32).collect();
        ids.sort_unstable();
        match places {
            Some(places) if places.iter().all(|p| (p.0, p.1) == (places[0].0, places[0].1)) => {
                let mut numbers: Vec<u32> = places.iter().map(|p| p.2).collect();
                numbers.sort_unstable();
                let team = self.team(places[0].0, places[0].1);
                format!("threads {} of {team}", words::ranges(&numbers))
            }
            _ => format!("{} (LWP {})", words::count(lwps.len(), "thread"), words::ranges(&ids)),
        }
    }

    /// What it would take for `object` to happen.
    fn needs(&self, object: Node) -> Option<String> {
        let graph = &self.inspection.waits_for.graph;
        let named = |nodes: Vec<Node>| -> String {
            let threads: Vec<i32> =
                nodes.iter().filter_map(|n| if let Node::Thread(lwp) = n { Some(*lwp) } else { None }).collect();
            let mut parts: Vec<String> = match threads.as_slice() {
                [] => Vec::new(),
                [one] => vec![self.thread(*one)],
                many => vec![self.threads(many)],
            };
            let mut gone: Vec<u32> = nodes
                .iter()
                .filter_map(|n| if let Node::Missing(.., number) = n { Some(*number) } else { None })
                .collect();
            gone.sort_unstable();
            if !gone.is_empty() {
                let plural = if gone.len() == 1 { "" } else { "s" };
                parts.push(format!("thread{plural} {}, which the process does not have", words::ranges(&gone)));
            }
            parts.join(" and ")
        };
        let next: Vec<Node> = graph.waits_for(object).collect();
        match object {
            Node::Barrier(runtime, _) | Node::RegionEnd(runtime, _) | Node::RegionStart(runtime, _) => {
                let missing = named(next);
                if missing.is_empty() { self.detached(runtime) } else { Some(format!("missing: {missing}")) }
            }
            Node::Lock(runtime, id) => {
                let lock = self.inspection.runtimes[runtime].lock(id)?;
                Some(match &lock.owner {
                    Fact::Known { value: Some(Owner::Thread(lwp)), .. } => {
                        format!("held by {}{}", self.thread(*lwp), words::acquired(lock))
                    }
                    Fact::Known { value: Some(Owner::Task(task)), .. } => {
                        let thread = next.iter().flat_map(|n| graph.waits_for(*n)).find_map(|n| match n {
                            Node::Thread(lwp) => Some(lwp),
                            _ => None,
                        });
                        let on = thread.map_or_else(String::new, |lwp| format!(", which is on {}", self.thread(lwp)));
                        format!("held by {}{on}{}", self.task(runtime, *task), words::acquired(lock))
                    }
                    Fact::Known { value: Some(Owner::Gone(_)), .. } => "held by a thread that has ended".to_owned(),
                    Fact::Known { value: None, .. } => return None,
                    Fact::Unknown { why } => format!("who holds it is not known: {}", escape(&why.to_string())),
                })
            }
            Node::Ordered(runtime, team) => {
                let snapshot = &self.inspection.runtimes[runtime];
                let mut turns =
                    snapshot.loops.iter().filter(|of| of.team == team).filter_map(|of| of.ordered_turn.flat());
                let number = turns.next()?;
                Some(format!("it is the turn of thread {number} of {}", self.team(runtime, team)))
            }
            Node::Word(..) => Some("who holds it is not recorded by this runtime".to_owned()),
            Node::Taskwait(..) | Node::Taskgroup(..) | Node::Dependences(..) | Node::TeamTasks(..) => {
                let tasks: Vec<String> = next
                    .iter()
                    .filter(|n| self.core.contains(n))
                    .filter_map(|n| if let Node::Task(runtime, id) = n { Some(self.task(*runtime, *id)) } else { None })
                    .collect();
                let shown = tasks.iter().take(4).cloned().collect::<Vec<_>>().join(", ");
                let more = tasks.len().saturating_sub(4);
                let more = if more > 0 { format!(" and {more} more") } else { String::new() };
                let (Node::Taskwait(runtime, _)
                | Node::Taskgroup(runtime, _)
                | Node::Dependences(runtime, _)
                | Node::TeamTasks(runtime, _)) = object
                else {
                    return None;
                };
                match tasks.is_empty() {
                    false => Some(format!("not over: {shown}{more}")),
                    true => self.detached(runtime),
                }
            }
            _ => None,
        }
    }

    /// What is known of tasks that were not found.
    fn detached(&self, runtime: usize) -> Option<String> {
        has_detached(&self.inspection.runtimes[runtime]).then(|| {
            "a task is not over that is in no queue and executed by nobody: its body is over, and its event has not been \
             fulfilled"
                .to_owned()
        })
    }

    fn of_task(&self, runtime: usize, id: TaskId) -> Option<String> {
        let task = self.inspection.runtimes[runtime].task(id)?;
        let name = self.task(runtime, id);
        Some(match task.state.get()? {
            TaskState::Running => format!("{name} is executed by {}", self.thread(task.thread?)),
            TaskState::Suspended => format!("{name} is suspended on the stack of {}", self.thread(task.stack?)),
            TaskState::Ready => format!("{name} is ready, and no thread is free to execute it"),
            TaskState::Blocked => {
                let before: Vec<String> = task.predecessors.iter().take(4).map(|p| self.task(runtime, *p)).collect();
                let on: Vec<String> = task.dependences.iter().take(4).map(words::dependence).collect();
                let on = if on.is_empty() { String::new() } else { format!(" ({})", on.join(", ")) };
                format!("{name} has not begun: it depends on {}{on}", before.join(", "))
            }
            TaskState::Detached => {
                let handle = task.event.flat().map_or_else(String::new, |e| format!(" {}", e.handle));
                format!("the body of {name} is over; its event{handle} has not been fulfilled")
            }
        })
    }

    /// The threads that wait for nothing in particular, and thereby the proof that nobody is left.
    fn rest(&self, verdict: &Verdict) -> Option<String> {
        let graph = &self.inspection.waits_for.graph;
        let (mut parked, mut asleep, mut outside) = (0, 0, 0);
        for os in &self.inspection.os.threads {
            match os.blocked {
                _ if graph.is_waiting(os.lwp) => {}
                _ if graph.is_parked(os.lwp) => parked += 1,
                Blocked::Mutex(..) if self.matters(os.lwp, verdict) => {}
                Blocked::Futex(_) | Blocked::Mutex(..) | Blocked::Join(_) => asleep += 1,
                Blocked::Outside(_) if !self.matters(os.lwp, verdict) => outside += 1,
                _ => {}
            }
        }
        let mut parts = Vec::new();
        if parked > 0 {
            parts.push(format!("{parked} idle in a pool"));
        }
        if asleep > 0 {
            parts.push(format!("{asleep} asleep until another thread of the process wakes them"));
        }
        if outside > 0 {
            parts.push(format!("{outside} in system calls without a time limit"));
        }
        let rest = if parts.is_empty() { "there are none".to_owned() } else { parts.join(", ") };
        Some(format!("the other threads of the process: {rest}"))
    }
}

/// A node of the graph in a few words.
pub fn node(inspection: &Inspection, node: Node) -> String {
    let teller = Teller { inspection, core: HashSet::new() };
    let barrier = |what: &str, runtime, team| format!("{what} {}", teller.team(runtime, team));
    match node {
        Node::Thread(lwp) => teller.thread(lwp),
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

/// What a thread waits for, its next region apart.
fn wait<'a>(teller: &Teller<'a>, lwp: i32) -> Option<&'a Wait> {
    let waits = teller.inspection.runtimes.iter().filter_map(|r| r.thread_by_lwp(lwp)?.wait.value()?.as_ref());
    waits.into_iter().find(|w| w.kind != WaitKind::Pool)
}

/// Where a thread waits in the source, on request with the kind of the barrier.
fn place(teller: &Teller<'_>, lwp: i32, with_kind: bool) -> Option<String> {
    let wait = wait(teller, lwp)?;
    let line = escape(&wait.location.as_ref()?.to_string());
    match wait.barrier.as_ref().and_then(Fact::get).filter(|_| with_kind) {
        Some(kind) => Some(format!("{line}: {}", kind.word())),
        None => Some(line),
    }
}
