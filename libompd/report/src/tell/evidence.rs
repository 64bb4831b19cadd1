//! The facts a verdict rests on, a sentence each.

use std::collections::{BTreeMap, HashMap};

use ompd_process::{Addr, TargetKind};
use ompd_runtime::icvs::{ACTIVE_LEVELS, MAX_ACTIVE_LEVELS};
use ompd_runtime::model::*;
use ompd_runtime::os::{Blocked, OsThread, Outsider, Sharing, Signals};
use ompd_runtime::waits_for::{Certainty, Node, Verdict, has_detached, object, standing};

use super::teller::{Teller, unknown_owner, wait_of};
use crate::escape::escape;
use crate::words;

/// Sentences about one thread or task each that are shown before the rest is counted.
const SHOWN: usize = 12;
/// Groups of threads that are all told; of more, teams in the same situation share a sentence.
const FEW: usize = 4;

impl Teller<'_> {
    pub(super) fn evidence(&self, verdict: &Verdict) -> Vec<String> {
        let graph = &self.inspection.waits_for.graph;
        let mut lines = self.groups(verdict);
        for node in &verdict.core {
            match *node {
                Node::Thread(lwp) if !graph.is_waiting(lwp) && self.matters(lwp, verdict) => match self.blocked(lwp) {
                    Blocked::Outside(call) => {
                        lines.push(format!("{} is in system call {call}, without a time limit", self.who(lwp)));
                    }
                    Blocked::Join(joined) => {
                        lines.push(format!(
                            "{} waits for the end of {} (pthread_join)",
                            self.who(lwp),
                            self.who(joined)
                        ));
                    }
                    Blocked::Interpreter(owner) => {
                        let owner = self.who(owner);
                        lines.push(format!("{} waits for Python's GIL, held by {owner}", self.who(lwp)));
                    }
                    Blocked::Mutex(mutex, owner) => {
                        let (mutex, owner) = (self.mutex(lwp, mutex), self.who(owner));
                        lines.push(format!("{} waits for {mutex}, held by {owner}", self.who(lwp)));
                    }
                    Blocked::Yields => lines.push(self.alone(lwp)),
                    Blocked::Futex(_) => {
                        let what = self.inspection.outside(lwp).map(crate::outside::words);
                        let what = what.filter(|what| !what.is_empty()).unwrap_or_else(|| "futex".to_owned());
                        lines.push(format!("{}: {what}", self.who(lwp)));
                    }
                    _ => {}
                },
                Node::Task(runtime, id) => lines.extend(self.of_task(runtime, id)),
                _ => {}
            }
        }
        lines.extend(self.unclear(verdict));
        let more = lines.len().saturating_sub(SHOWN);
        lines.truncate(SHOWN);
        if more > 0 {
            lines.push(format!("… and {more} more"));
        }
        lines.extend(self.unrecorded(verdict));
        if self.core.contains(&Node::Anyone) {
            lines.extend(self.rest(verdict));
        }
        lines.extend(self.shared(verdict));
        if verdict.certainty == Certainty::Suspect {
            lines.extend(self.hidden_task(verdict));
            lines.extend(self.handlers());
            lines.extend(self.outsiders(verdict));
            if let Some(by) = &self.inspection.process.held_by {
                lines.push(format!(
                    "{} (process {}) holds the process: whether a system call has returned is not shown",
                    escape(&by.name),
                    by.pid
                ));
            }
            if let Some(time) = self.inspection.unmoved {
                lines.push(format!(
                    "nothing of this moved in {:.1} s; `--samples 2 --interval 10s` looks longer",
                    time.as_secs_f64()
                ));
            }
        }
        if !verdict.held_up.is_empty() && verdict.certainty != Certainty::Waiting {
            let held = words::count(verdict.held_up.len(), "more thread");
            let verb = if verdict.held_up.len() == 1 { "waits" } else { "wait" };
            let lwps: Vec<String> = verdict.held_up.iter().take(SHOWN).map(i32::to_string).collect();
            let dots = if verdict.held_up.len() > SHOWN { ", …" } else { "" };
            lines.push(format!("{held} {verb} for these: ids {}{dots}", lwps.join(", ")));
        }
        lines
    }

    /// Threads by what they wait for, those that wait for the same in one sentence. Teams in the same situation share one.
    fn groups(&self, verdict: &Verdict) -> Vec<String> {
        let graph = &self.inspection.waits_for.graph;
        let waiting: Vec<i32> = match verdict.certainty {
            Certainty::Waiting => verdict.held_up.clone(),
            _ => self.waiting(verdict),
        };
        let mut groups: Vec<(Vec<Node>, Vec<i32>)> = Vec::new();
        let mut place: HashMap<Vec<Node>, usize> = HashMap::new();
        for lwp in waiting {
            let objects: Vec<Node> = match verdict.certainty {
                Certainty::Waiting => self.wanted(lwp),
                _ => graph.waits_for(Node::Thread(lwp)).collect(),
            };
            let index = *place.entry(objects.clone()).or_insert_with(|| {
                groups.push((objects, Vec::new()));
                groups.len() - 1
            });
            groups[index].1.push(lwp);
        }
        let folded = if groups.len() > FEW { self.alike(&groups) } else { Vec::new() };
        let is_folded = |lwps: &[i32]| folded.iter().any(|(_, members)| members.contains(&lwps[0]));
        let rest = groups.iter().filter(|(_, lwps)| !is_folded(lwps)).map(|(objects, lwps)| self.waits(lwps, objects));
        folded.iter().map(|(text, _)| text.clone()).chain(rest).collect()
    }

    /// What a thread waits for, by the runtimes' records.
    fn wanted(&self, lwp: i32) -> Vec<Node> {
        let runtimes = &self.inspection.runtimes;
        let waits = runtimes.iter().enumerate().filter_map(|(runtime, snapshot)| {
            let thread = snapshot.thread_by_lwp(lwp)?;
            let wait = thread.wait.value()?.as_ref().filter(|wait| wait.kind != WaitKind::Pool)?;
            Some(object(runtimes, runtime, thread, wait))
        });
        waits.flatten().collect()
    }

    /// Teams whose members wait in the same ways at the same places: one sentence for such teams, with their members (LWP).
    fn alike(&self, groups: &[(Vec<Node>, Vec<i32>)]) -> Vec<(String, Vec<i32>)> {
        // What the members of each team do: so many of them, this, here.
        let mut teams: BTreeMap<(usize, usize), (Vec<String>, Vec<i32>)> = BTreeMap::new();
        for (_, lwps) in groups {
            let Some((runtime, team, _)) = self.place(lwps[0]) else { continue };
            if lwps.iter().any(|lwp| self.place(*lwp).is_none_or(|place| (place.0, place.1) != (runtime, team))) {
                continue;
            }
            let Some(wait) = wait_of(self.inspection, lwps[0]) else { continue };
            let nameless = Wait { name: None, location: None, ..wait.clone() };
            let what = match wait.kind.is_for_lock() {
                true => format!("waits for a {}", wait.kind.word()),
                false => words::waiting(&nameless),
            };
            let what = if lwps.len() == 1 { what } else { words::plural(&what) };
            let at = place(self, lwps[0], false).map_or_else(String::new, |place| format!(" ({place})"));
            let entry = teams.entry((runtime, team.0)).or_default();
            entry.0.push(format!("{} {what}{at}", words::count(lwps.len(), "thread")));
            entry.1.extend(lwps);
        }
        let mut shapes: BTreeMap<Vec<String>, Vec<(usize, usize)>> = BTreeMap::new();
        for (team, (shape, _)) in &mut teams {
            shape.sort_unstable();
            shapes.entry(shape.clone()).or_default().push(*team);
        }
        let several = shapes.into_iter().filter(|(_, of)| of.len() > 1);
        several
            .map(|(shape, of)| {
                let numbers: Vec<u32> = of.iter().map(|(_, team)| u32::try_from(*team).unwrap_or(u32::MAX)).collect();
                let members = of.iter().flat_map(|team| teams[team].1.iter().copied()).collect();
                (format!("{} teams ({}), each: {}", of.len(), words::ranges(&numbers), shape.join("; ")), members)
            })
            .collect()
    }

    /// Members of a team of which it is unknown whether they have reached its barrier.
    fn unclear(&self, verdict: &Verdict) -> Vec<String> {
        let barriers = verdict.core.iter().filter_map(|node| match node {
            Node::Barrier(runtime, team) | Node::RegionEnd(runtime, team) => Some((*runtime, *team)),
            _ => None,
        });
        let lines = barriers.filter_map(|(runtime, team)| {
            let standing = standing(&self.inspection.runtimes[runtime], team)?;
            let plural = if standing.unclear.len() == 1 { "" } else { "s" };
            let numbers = words::ranges(&standing.unclear);
            (!standing.unclear.is_empty()).then(|| format!("thread{plural} {numbers}: unknown whether at the barrier"))
        });
        lines.collect()
    }

    /// Why the owners of locks are unknown, each reason once.
    fn unrecorded(&self, verdict: &Verdict) -> Vec<String> {
        let mut reasons: Vec<String> = Vec::new();
        for node in &verdict.core {
            let Node::Lock(runtime, id) = node else { continue };
            let owner = self.inspection.runtimes[*runtime].lock(*id).map(|lock| &lock.owner);
            if let Some(Fact::Unknown { why }) = owner {
                let why = escape(&why.to_string());
                if !reasons.contains(&why) {
                    reasons.push(why);
                }
            }
        }
        reasons
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

    /// What else may end a hang.
    fn outsiders(&self, verdict: &Verdict) -> Vec<String> {
        let outsiders = &self.inspection.os.outsiders;
        let processes = outsiders.iter().filter(|of| matches!(of, Outsider::Process(_))).count();
        let more = if processes > 1 { format!(", and {} more", processes - 1) } else { String::new() };
        let mut lines: Vec<String> = Vec::new();
        for outsider in outsiders {
            match outsider {
                Outsider::Process(pid) if lines.is_empty() => lines.push(format!(
                    "process {pid}{more} may have the same memory (CLONE_VM), and may let a thread continue"
                )),
                Outsider::Process(_) => {}
                Outsider::Ring => {
                    lines.push("the process uses io_uring: a request may let a thread continue".to_owned())
                }
                Outsider::Canceller(path) if self.has_join(verdict) => lines.push(format!(
                    "{} may cancel a thread in pthread_join, which may let others continue (pthread_cancel)",
                    escape(path.rsplit('/').next().unwrap_or(path))
                )),
                Outsider::Canceller(_) => {}
            }
        }
        lines
    }

    /// That a thread of a hang is awake while it waits, and may have a task in its hands.
    fn hidden_task(&self, verdict: &Verdict) -> Option<String> {
        let graph = &self.inspection.waits_for.graph;
        let takes_tasks = |lwp: i32| wait_of(self.inspection, lwp).is_some_and(|wait| !wait.kind.is_for_lock());
        let yields = |lwp: i32| graph.is_waiting(lwp) && self.blocked(lwp) == Blocked::Yields && takes_tasks(lwp);
        let lwp = verdict.core.iter().find_map(|node| match node {
            Node::Thread(lwp) if yields(*lwp) => Some(*lwp),
            _ => None,
        })?;
        Some(format!("{} is awake in its wait: it may have a task that no record shows", self.who(lwp)))
    }

    /// Which handlers of signals may end a hang.
    fn handlers(&self) -> Option<String> {
        let source = match self.inspection.kind {
            TargetKind::Live => "the kernel did not tell",
            TargetKind::Core => "a core does not record",
            TargetKind::Debugged => "the debugger does not tell",
        };
        match &self.inspection.os.signals {
            Signals::NotRecorded => Some(format!("{source} handlers of signals: one may let a thread continue")),
            Signals::Possible(module) => Some(format!(
                "{source} handlers of signals: {} can have set one, which may let a thread continue",
                escape(module.rsplit('/').next().unwrap_or(module))
            )),
            signals => {
                // Handlers of the signals that ask a process to end post semaphores. They do not unset locks of OpenMP.
                let in_runtime = |lwp| {
                    let mut threads = self.inspection.runtimes.iter().filter_map(|r| r.thread_by_lwp(lwp));
                    threads.any(|thread| thread.wait.value().is_some_and(Option::is_some))
                };
                let sleeps = |os: &OsThread| matches!(os.blocked, Blocked::Futex(_)) && !in_runtime(os.lwp);
                let posts = self.inspection.os.threads.iter().any(sleeps);
                let numbers = signals.numbers().chain(signals.asking().filter(|_| posts));
                let names: Vec<String> = numbers.map(words::signal_name).collect();
                let names = Some(names).filter(|names| !names.is_empty())?;
                Some(format!("a handler may let a thread continue, when a signal arrives: {}", names.join(", ")))
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
            self.who(lwp)
        )
    }

    /// One sentence on threads that wait for the same.
    fn waits(&self, lwps: &[i32], objects: &[Node]) -> String {
        let who = match lwps {
            [one] => self.who(*one),
            many => self.whos(many),
        };
        let mut text = match wait_of(self.inspection, lwps[0]) {
            Some(wait) if lwps.len() == 1 => format!("{who} {}", words::waiting(wait)),
            Some(wait) => {
                let kind = |wait: &Wait| wait.barrier.as_ref().and_then(Fact::get);
                let alike = lwps.iter().all(|lwp| wait_of(self.inspection, *lwp).map(kind) == Some(kind(wait)));
                let mut places: Vec<String> = Vec::new();
                for place in lwps.iter().filter_map(|lwp| place(self, *lwp, !alike)) {
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

    /// What it would take for `object` to happen.
    fn needs(&self, object: Node) -> Option<String> {
        let graph = &self.inspection.waits_for.graph;
        let named = |nodes: Vec<Node>| -> String {
            let threads: Vec<i32> =
                nodes.iter().filter_map(|n| if let Node::Thread(lwp) = n { Some(*lwp) } else { None }).collect();
            let mut parts: Vec<String> = match threads.as_slice() {
                [] => Vec::new(),
                [one] => vec![self.who(*one)],
                many => vec![self.whos(many)],
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
            Node::Barrier(runtime, _) | Node::RegionEnd(runtime, _) => {
                let absent = self.absent(object).into_iter().map(Node::Thread);
                let gone = next.into_iter().filter(|node| matches!(node, Node::Missing(..)));
                let missing = named(absent.chain(gone).collect());
                if missing.is_empty() { self.detached(runtime) } else { Some(format!("not reached by {missing}")) }
            }
            Node::RegionStart(..) => {
                Some(named(next)).filter(|missing| !missing.is_empty()).map(|m| format!("not there: {m}"))
            }
            Node::Lock(runtime, id) => {
                let lock = self.inspection.runtimes[runtime].lock(id)?;
                Some(match &lock.owner {
                    Fact::Known { value: Some(Owner::Thread(lwp)), .. } => {
                        format!("held by {}{}", self.who(*lwp), words::acquired(lock))
                    }
                    Fact::Known { value: Some(Owner::Task(task)), .. } => {
                        let thread = next.iter().flat_map(|n| graph.waits_for(*n)).find_map(|n| match n {
                            Node::Thread(lwp) => Some(lwp),
                            _ => None,
                        });
                        let on = thread.map_or_else(String::new, |lwp| format!(", which is on {}", self.who(lwp)));
                        format!("held by {}{on}{}", self.task(runtime, *task), words::acquired(lock))
                    }
                    Fact::Known { value: Some(Owner::Gone(_)), .. } => "held by a thread that has ended".to_owned(),
                    Fact::Known { value: None, .. } => return None,
                    Fact::Unknown { why } => unknown_owner(why).to_owned(),
                })
            }
            Node::Ordered(runtime, team) => {
                let snapshot = &self.inspection.runtimes[runtime];
                let number = snapshot.ordered_turn(team)?;
                Some(format!("it is the turn of thread {number} of {}", self.team(runtime, team)))
            }
            Node::Word(..) => Some("its owner is not recorded".to_owned()),
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
            TaskState::Running => format!("{name} is executed by {}", self.who(task.thread?)),
            TaskState::Suspended => format!("{name} is suspended on the stack of {}", self.who(task.stack?)),
            TaskState::Ready => format!("{name} is ready, and no thread is free to execute it"),
            TaskState::Blocked => {
                let before: Vec<String> = task.predecessors.iter().take(4).map(|p| self.task(runtime, *p)).collect();
                let on: Vec<String> = task.dependences.iter().take(4).map(words::dependence).collect();
                let on = if on.is_empty() { String::new() } else { format!(" ({})", on.join(", ")) };
                format!("{name} has not begun: it depends on {}{on}", before.join(", "))
            }
            TaskState::OnDevice => format!("{name} was handed to a device"),
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
                blocked if blocked.is_owned() && self.matters(os.lwp, verdict) => {}
                Blocked::Futex(_) if self.sleeps_in_team(os.lwp, verdict) => {}
                Blocked::Join(_) if self.joins(os.lwp).is_some() => {}
                Blocked::Futex(_) | Blocked::Mutex(..) | Blocked::Interpreter(_) | Blocked::Join(_) => asleep += 1,
                Blocked::Outside(_) if !self.matters(os.lwp, verdict) => outside += 1,
                _ => {}
            }
        }
        let mut parts: Vec<String> = Vec::new();
        if parked > 0 {
            parts.push(format!("{parked} idle in a pool"));
        }
        if asleep > 0 {
            parts.push(format!("{asleep} asleep until another thread of the process wakes them"));
        }
        if outside > 0 {
            parts.push(format!("{outside} in system calls without a time limit"));
        }
        (!parts.is_empty()).then(|| format!("the other threads of the process: {}", parts.join(", ")))
    }
}

/// Where a thread waits in the source, on request with the kind of the barrier.
fn place(teller: &Teller<'_>, lwp: i32, with_kind: bool) -> Option<String> {
    let wait = wait_of(teller.inspection, lwp)?;
    let line = escape(&wait.location.as_ref()?.to_string());
    match wait.barrier.as_ref().and_then(Fact::get).filter(|_| with_kind) {
        Some(kind) => Some(format!("{line}: {}", kind.word())),
        None => Some(line),
    }
}
