//! Names of what verdicts are about.

use std::cmp::Reverse;
use std::collections::HashSet;

use ompd_inspection::Inspection;
use ompd_inspection::outside::OutsideWait;
use ompd_process::Addr;
use ompd_runtime::model::*;
use ompd_runtime::os::Blocked;
use ompd_runtime::waits_for::{Node, Verdict, standing};
use ompd_stack::LockCall;

use crate::escape::escape;
use crate::{whereabouts, words};

/// Threads of which one probably holds a lock.
struct Probable {
    /// The threads (LWP).
    lwps: Vec<i32>,
    /// The line at which code on their stacks sets it, if that is known.
    line: Option<String>,
    /// No code on a stack shows it: the other members of the team wait for the lock.
    is_left_over: bool,
}

/// Puts names to what a verdict is about.
pub(super) struct Teller<'a> {
    pub(super) inspection: &'a Inspection,
    pub(super) core: HashSet<Node>,
}

impl Teller<'_> {
    /// A thread that is worth a name: it waits for OpenMP, or is what a suspicion rests on.
    pub(super) fn matters(&self, lwp: i32, verdict: &Verdict) -> bool {
        let graph = &self.inspection.waits_for.graph;
        graph.is_waiting(lwp)
            || self.blocked(lwp).is_owned()
            || self.joins(lwp).is_some()
            || verdict.rests_on_calls
                && matches!(self.blocked(lwp), Blocked::Outside(_) | Blocked::Yields)
                && self.in_some_team(lwp)
            || self.sleeps_in_team(lwp, verdict)
    }

    /// A member of a team that sleeps outside of OpenMP, where nobody waits for OpenMP.
    pub(super) fn sleeps_in_team(&self, lwp: i32, verdict: &Verdict) -> bool {
        let graph = &self.inspection.waits_for.graph;
        let waits = |node: &Node| matches!(node, Node::Thread(lwp) if graph.is_waiting(*lwp));
        matches!(self.blocked(lwp), Blocked::Futex(_)) && self.in_some_team(lwp) && !verdict.core.iter().any(waits)
    }

    pub(super) fn blocked(&self, lwp: i32) -> Blocked {
        let threads = &self.inspection.os.threads;
        let at = threads.binary_search_by_key(&lwp, |os| os.lwp).ok();
        at.and_then(|at| threads.get(at)).map_or(Blocked::No, |os| os.blocked)
    }

    /// The thread (LWP) whose end a thread waits for, if that waits for OpenMP or for an owner.
    pub(super) fn joins(&self, lwp: i32) -> Option<i32> {
        let Blocked::Join(joined) = self.blocked(lwp) else { return None };
        let waits = self.inspection.waits_for.graph.is_waiting(joined) || self.blocked(joined).is_owned();
        waits.then_some(joined)
    }

    pub(super) fn in_some_team(&self, lwp: i32) -> bool {
        self.inspection.runtimes.iter().any(|r| r.thread_by_lwp(lwp).is_some_and(|t| t.team.flat().is_some()))
    }

    /// Runtime, team and thread number of a thread that is in a team.
    pub(super) fn place(&self, lwp: i32) -> Option<(usize, TeamId, u32)> {
        self.inspection.runtimes.iter().enumerate().find_map(|(runtime, snapshot)| {
            let thread = snapshot.thread_by_lwp(lwp)?;
            Some((runtime, thread.team.flat()?, thread.thread_num.get()?))
        })
    }

    /// True if a thread number alone does not tell whose it is.
    fn has_teams(&self) -> bool {
        self.inspection.runtimes.iter().map(|runtime| runtime.teams.len()).sum::<usize>() > 1
    }

    /// `thread 3 of team 0 (id 4711)`; the team only where there are several.
    pub(super) fn who(&self, lwp: i32) -> String {
        match self.place(lwp) {
            Some(_) => format!("{} (id {lwp})", self.whos(&[lwp])),
            None if self.inspection.process.pid == Some(lwp) => format!("the main thread (id {lwp})"),
            None => format!("the thread with id {lwp}"),
        }
    }

    /// True for threads of one innermost team.
    pub(super) fn is_one_team(&self, lwps: &[i32]) -> bool {
        let teams: Option<HashSet<_>> =
            lwps.iter().map(|lwp| self.place(*lwp).map(|place| (place.0, place.1))).collect();
        teams.is_some_and(|teams| teams.len() == 1)
    }

    /// `threads 0-2 of team 0`; the team only where there are several.
    pub(super) fn whos(&self, lwps: &[i32]) -> String {
        let places: Option<Vec<_>> = lwps.iter().map(|lwp| self.place(*lwp)).collect();
        match (lwps, places) {
            (_, Some(places)) if self.is_one_team(lwps) => {
                let numbers = self.numbers(lwps);
                if self.has_teams() { format!("{numbers} of {}", self.team(places[0].0, places[0].1)) } else { numbers }
            }
            ([one], _) if self.inspection.process.pid == Some(*one) => "the main thread".to_owned(),
            ([one], _) => format!("the thread with id {one}"),
            _ => words::count(lwps.len(), "thread"),
        }
    }

    /// `threads 0-2`, of one team.
    pub(super) fn numbers(&self, lwps: &[i32]) -> String {
        let numbers: Option<Vec<u32>> = lwps.iter().map(|lwp| self.place(*lwp).map(|place| place.2)).collect();
        match (numbers, lwps) {
            (Some(mut numbers), _) if !numbers.is_empty() => {
                numbers.sort_unstable();
                numbers.dedup();
                format!("thread{} {}", if numbers.len() == 1 { "" } else { "s" }, words::ranges(&numbers))
            }
            _ => words::count(lwps.len(), "thread"),
        }
    }

    /// What a thread does, and where in the source.
    pub(super) fn stand(&self, lwp: i32) -> String {
        let Some(wait) = wait_of(self.inspection, lwp) else { return self.running(lwp) };
        let what = words::waiting(&Wait { location: None, ..wait.clone() });
        let place =
            whereabouts::innermost(self.inspection, lwp, wait.location.as_ref().or(self.region_line(lwp, wait)));
        let owner = wait.lock.and_then(|lock| self.owner(lwp, lock));
        let parts = [Some(what), owner.map(|owner| format!("held by {owner}")), place];
        parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
    }

    /// The line of the region at whose beginning or end a thread waits.
    fn region_line(&self, lwp: i32, wait: &Wait) -> Option<&SourceLine> {
        if !matches!(wait.kind, WaitKind::RegionStart | WaitKind::RegionEnd) {
            return None;
        }
        self.inspection.runtimes.iter().find_map(|snapshot| {
            let thread = snapshot.thread_by_lwp(lwp)?;
            snapshot.team(wait.team.or_else(|| thread.team.flat())?)?.location.value()
        })
    }

    /// The recorded owner of the lock that a thread waits for, and since where it has it.
    fn owner(&self, waiter: i32, lock: LockId) -> Option<String> {
        let mut runtimes = self.inspection.runtimes.iter().enumerate();
        let (runtime, snapshot) = runtimes.find(|(_, snapshot)| {
            let wait = snapshot.thread_by_lwp(waiter).and_then(|thread| thread.wait.value()?.as_ref());
            wait.is_some_and(|wait| wait.lock == Some(lock))
        })?;
        let lock = snapshot.lock(lock)?;
        let owner = match lock.owner.get()?? {
            Owner::Thread(lwp) if lwp == waiter => "itself".to_owned(),
            Owner::Thread(lwp) => self.whos(&[lwp]),
            Owner::Task(id) => {
                // An implicit or initial task is its thread's.
                let task = snapshot.task(id).filter(|task| task.kind.get().is_some_and(|kind| !kind.is_explicit()));
                task.and_then(|task| task.thread).map_or_else(|| self.task(runtime, id), |lwp| self.whos(&[lwp]))
            }
            Owner::Gone(_) => "a thread that has ended".to_owned(),
        };
        Some(format!("{owner}{}", words::acquired(lock)))
    }

    fn running(&self, lwp: i32) -> String {
        whereabouts::of(self.inspection, lwp)
    }

    /// `team 0`, with the runtime where several have teams.
    pub(super) fn team(&self, runtime: usize, team: TeamId) -> String {
        match self.inspection.runtimes.iter().filter(|r| !r.teams.is_empty()).count() {
            1 => format!("team {}", team.0),
            _ => {
                let path = &self.inspection.runtimes[runtime].instance.path;
                format!("team {} of {}", team.0, escape(path.rsplit('/').next().unwrap_or(path)))
            }
        }
    }

    pub(super) fn task(&self, runtime: usize, id: TaskId) -> String {
        let task = self.inspection.runtimes[runtime].task(id);
        match task.and_then(|t| words::code(&t.function, &t.location)) {
            Some(code) => format!("task {} ({code})", id.0),
            None => format!("task {}", id.0),
        }
    }

    /// `: 3 at a barrier, 1 for lock total_lock`.
    pub(super) fn for_what(&self, verdict: &Verdict) -> String {
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

    /// True if all locks of the verdict are a runtime's own on devices, and there are some.
    pub(super) fn waits_for_device_lock(&self, verdict: &Verdict) -> bool {
        let kind = |node: &Node| match *node {
            Node::Lock(runtime, id) => self.inspection.runtimes[runtime].lock(id).map(|lock| lock.kind.get()),
            _ => None,
        };
        let mut kinds = verdict.core.iter().filter_map(kind).peekable();
        kinds.peek().is_some() && kinds.all(|kind| kind == Some(LockKind::Device))
    }

    /// True if a thread of the verdict waits for the end of another.
    pub(super) fn has_join(&self, verdict: &Verdict) -> bool {
        verdict.core.iter().any(|node| matches!(node, Node::Thread(lwp) if self.joins(*lwp).is_some()))
    }

    /// True if a thread of the verdict waits for a mutex of the C library.
    pub(super) fn waits_for_mutex(&self, verdict: &Verdict) -> bool {
        let waits = |lwp: i32| matches!(self.blocked(lwp), Blocked::Mutex(..));
        verdict.core.iter().any(|node| matches!(node, Node::Thread(lwp) if waits(*lwp)))
    }

    /// True if a thread of the verdict waits for an interpreter's lock.
    pub(super) fn has_interpreter_lock(&self, verdict: &Verdict) -> bool {
        let waits = |lwp: i32| matches!(self.blocked(lwp), Blocked::Interpreter(_));
        verdict.core.iter().any(|node| matches!(node, Node::Thread(lwp) if waits(*lwp)))
    }

    /// A lock by name and kind.
    pub(super) fn lock(&self, node: Node) -> Option<String> {
        match node {
            Node::Lock(runtime, id) | Node::GoneOwner(runtime, id) => {
                let lock = self.inspection.runtimes[runtime].lock(id)?;
                let name = lock.name.as_deref().map_or_else(|| lock.object.to_string(), escape);
                // The name of a critical says that it is one.
                let is_named =
                    lock.name.is_some() && matches!(lock.kind.get(), Some(LockKind::Critical | LockKind::Atomic));
                Some(if is_named { name } else { format!("{} {name}", words::lock_kind(lock)) })
            }
            Node::Word(_, word) => Some(format!("the lock at {}", Addr(word))),
            _ => None,
        }
    }

    /// The mutex or read-write lock that a thread waits for, by its name in the source or its address.
    pub(super) fn mutex(&self, lwp: i32, mutex: Addr) -> String {
        let outside = self.inspection.outside(lwp);
        let kind = match outside.and_then(|outside| outside.wait.as_ref()) {
            Some(OutsideWait::RwLock { .. }) => "read-write lock",
            _ => "mutex",
        };
        match outside.and_then(|outside| outside.object.as_deref()) {
            Some(name) => format!("the pthread {kind} {}", escape(name)),
            None => format!("the pthread {kind} at {mutex}"),
        }
    }

    /// The locks of a verdict, each once.
    pub(super) fn locks(&self, verdict: &Verdict) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for name in verdict.core.iter().filter_map(|node| self.lock(*node)) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }

    /// The mutexes of the C library that threads of a verdict wait for.
    pub(super) fn mutexes(&self, verdict: &Verdict) -> Vec<String> {
        let of = |node: &Node| {
            let Node::Thread(lwp) = *node else { return None };
            let Blocked::Mutex(mutex, _) = self.blocked(lwp) else { return None };
            Some(self.mutex(lwp, mutex))
        };
        let mut names: Vec<String> = Vec::new();
        for name in verdict.core.iter().filter_map(of) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }

    /// The threads (LWP) of a verdict that wait for OpenMP.
    pub(super) fn waiting(&self, verdict: &Verdict) -> Vec<i32> {
        let graph = &self.inspection.waits_for.graph;
        let lwps = verdict.core.iter().filter_map(|node| match node {
            Node::Thread(lwp) if graph.is_waiting(*lwp) => Some(*lwp),
            _ => None,
        });
        lwps.collect()
    }

    /// True if a thread of a verdict waits for tasks that it has generated.
    pub(super) fn waits_for_tasks(&self, verdict: &Verdict) -> bool {
        let mut waits = self.waiting(verdict).into_iter().filter_map(|lwp| wait_of(self.inspection, lwp));
        waits.any(|wait| wait.kind.is_for_tasks())
    }

    /// Threads of a verdict that wait outside of OpenMP in a task, the tasks, and the threads that wait for these tasks.
    pub(super) fn outside_in_tasks(&self, verdict: &Verdict) -> Option<(Vec<i32>, Vec<String>, Vec<i32>)> {
        let graph = &self.inspection.waits_for.graph;
        let mut found = (Vec::new(), Vec::new(), Vec::new());
        for node in &verdict.core {
            let Node::Task(runtime, id) = *node else { continue };
            let task = self.inspection.runtimes[runtime].task(id);
            let running = task.filter(|task| task.state.get() == Some(TaskState::Running)).and_then(|task| task.thread);
            let outside = |lwp: &i32| {
                verdict.core.contains(&Node::Thread(*lwp)) && matches!(self.blocked(*lwp), Blocked::Outside(_))
            };
            let Some(lwp) = running.filter(outside) else { continue };
            let waits = |waiter: &i32| {
                let mut objects = graph.waits_for(Node::Thread(*waiter)).filter(|object| *object != Node::Anyone);
                objects.any(|object| graph.waits_for(object).any(|next| next == *node))
            };
            let waiters: Vec<i32> = self.waiting(verdict).into_iter().filter(waits).collect();
            if !waiters.is_empty() {
                found.0.push(lwp);
                found.1.push(self.task(runtime, id));
                found.2.extend(waiters);
            }
        }
        found.0.sort_unstable();
        found.0.dedup();
        found.2.sort_unstable();
        found.2.dedup();
        (!found.0.is_empty()).then_some(found)
    }

    /// The barrier of a verdict that some member of its team has not reached. The cause of the others is one whose member waits at
    /// none of them; where members of several levels are the same thread, the innermost.
    pub(super) fn barrier(&self, verdict: &Verdict) -> Option<Node> {
        let barriers: Vec<Node> = verdict
            .core
            .iter()
            .copied()
            .filter(|node| matches!(node, Node::Barrier(..) | Node::RegionEnd(..)))
            .collect();
        let at_others: HashSet<i32> = barriers.iter().flat_map(|node| self.arrived(*node)).collect();
        let lacking = || barriers.iter().copied().filter(|node| !self.arrived(*node).is_empty());
        let is_cause = |node: &Node| self.absent(*node).iter().any(|lwp| !at_others.contains(lwp));
        let level = |node: &Node| match *node {
            Node::Barrier(runtime, id) | Node::RegionEnd(runtime, id) => {
                self.inspection.runtimes[runtime].team(id).and_then(|team| team.level.get())
            }
            _ => None,
        };
        let causes = lacking().filter(is_cause);
        causes.min_by_key(|node| Reverse(level(node))).or_else(|| lacking().find(|node| !self.absent(*node).is_empty()))
    }

    fn members(&self, barrier: Node, arrived: bool) -> Vec<i32> {
        let (Node::Barrier(runtime, id) | Node::RegionEnd(runtime, id)) = barrier else { return Vec::new() };
        let snapshot = &self.inspection.runtimes[runtime];
        let Some(team) = snapshot.team(id) else { return Vec::new() };
        let at_end = matches!(barrier, Node::RegionEnd(..));
        let is_here = |lwp: i32| {
            let wait = snapshot.thread_by_lwp(lwp).and_then(|thread| thread.wait.value()).and_then(Option::as_ref);
            wait.is_some_and(|wait| {
                let kind = if at_end { WaitKind::RegionEnd } else { WaitKind::Barrier };
                wait.team == Some(id) && wait.kind == kind
            })
        };
        team.members.iter().flatten().copied().filter(|lwp| is_here(*lwp) == arrived).collect()
    }

    /// The members (LWP) of a team that wait at its barrier.
    pub(super) fn arrived(&self, barrier: Node) -> Vec<i32> {
        self.members(barrier, true)
    }

    /// The members (LWP) of a team that do not wait at its barrier, those apart whose wait is unknown.
    pub(super) fn absent(&self, barrier: Node) -> Vec<i32> {
        let (Node::Barrier(runtime, id) | Node::RegionEnd(runtime, id)) = barrier else { return Vec::new() };
        let snapshot = &self.inspection.runtimes[runtime];
        let unclear = standing(snapshot, id).map(|standing| standing.unclear).unwrap_or_default();
        let unclear: Vec<i32> = snapshot
            .team(id)
            .into_iter()
            .flat_map(|team| unclear.iter().filter_map(|number| *team.members.get(*number as usize)?))
            .collect();
        self.members(barrier, false).into_iter().filter(|lwp| !unclear.contains(lwp)).collect()
    }

    /// The threads (LWP) at the two barriers of one team that a verdict is about, the fewer first.
    pub(super) fn sides(&self, verdict: &Verdict) -> Option<(Vec<i32>, Vec<i32>)> {
        let barriers =
            verdict.core.iter().copied().filter(|node| matches!(node, Node::Barrier(..) | Node::RegionEnd(..)));
        let mut sides: Vec<Vec<i32>> =
            barriers.map(|node| self.arrived(node)).filter(|lwps| !lwps.is_empty()).collect();
        sides.sort_by_key(Vec::len);
        match sides.as_slice() {
            [few, many] => Some((few.clone(), many.clone())),
            _ => None,
        }
    }

    /// The team whose barrier a verdict is about.
    pub(super) fn team_of(&self, verdict: &Verdict) -> Option<String> {
        verdict.core.iter().find_map(|node| match node {
            Node::Barrier(runtime, team)
            | Node::RegionEnd(runtime, team)
            | Node::RegionStart(runtime, team)
            | Node::Missing(runtime, team, _) => Some(self.team(*runtime, *team)),
            _ => None,
        })
    }

    /// The threads (LWP) of a verdict that wait for members which are not among the threads of the process, and these members.
    pub(super) fn missing(&self, verdict: &Verdict) -> Option<(Vec<i32>, String)> {
        let mut missing = verdict.core.iter().filter_map(|node| match *node {
            Node::Missing(runtime, team, number) => Some(((runtime, team), number)),
            _ => None,
        });
        let (team, first) = missing.next()?;
        let mut numbers: Vec<u32> = missing.filter(|of| of.0 == team).map(|of| of.1).chain([first]).collect();
        numbers.sort_unstable();
        numbers.dedup();
        let waiting = self.waiting(verdict);
        let plural = if numbers.len() == 1 { "" } else { "s" };
        (!waiting.is_empty()).then(|| (waiting, format!("thread{plural} {} of the team", words::ranges(&numbers))))
    }

    /// Who holds the lock of a verdict, and since where, if that is recorded.
    pub(super) fn held_by(&self, verdict: &Verdict) -> Option<String> {
        verdict.core.iter().find_map(|node| {
            let Node::Lock(_, id) = *node else { return None };
            verdict.held_up.iter().find_map(|lwp| self.owner(*lwp, id))
        })
    }

    /// That the owner of the lock of a verdict is unknown.
    pub(super) fn unknown_owner(&self, verdict: &Verdict) -> &'static str {
        let why = verdict.core.iter().find_map(|node| match node {
            Node::Lock(runtime, id) => self.inspection.runtimes[*runtime].lock(*id)?.owner.why(),
            _ => None,
        });
        why.map_or("its owner is not recorded", unknown_owner)
    }

    /// Threads that probably hold a lock whose owner is not recorded, with the reason: an inference.
    fn probable(&self, node: Node) -> Option<Probable> {
        let Node::Lock(runtime, id) = node else { return None };
        let snapshot = &self.inspection.runtimes[runtime];
        let lock = snapshot.lock(id).filter(|lock| lock.owner.value().is_none() && lock.held.get() != Some(false))?;
        let mut set: Vec<&LockCall> = self.inspection.lock_calls.iter().collect();
        set.retain(|call| !call.waits && call.variable == Some(lock.variable.unwrap_or(lock.object)));
        // A thread in another branch of the same function can have set it only before.
        if set.iter().any(|call| call.leads) {
            set.retain(|call| call.leads);
        }
        let line = |call: &LockCall| call.line.as_ref().map(|line| escape(&line.to_string()));
        let mut by_code: Vec<(i32, Option<String>)> = set.into_iter().map(|call| (call.lwp, line(call))).collect();
        by_code.sort_unstable();
        by_code.dedup_by_key(|(lwp, _)| *lwp);
        if !by_code.is_empty() {
            let line = by_code[0].1.clone();
            let lwps = by_code.into_iter().map(|(lwp, _)| lwp).collect();
            return Some(Probable { lwps, line, is_left_over: false });
        }
        // None of the tasks that are known has set it.
        if lock.owner.why() == Some(&Common::OwnerNotFound.into()) {
            return None;
        }
        // One member is left that can have set it.
        let waits = |thread: &&Thread| {
            thread.wait.value().is_some_and(|wait| wait.as_ref().is_some_and(|w| w.lock == Some(id)))
        };
        let team = snapshot.threads.iter().find(waits).and_then(|thread| thread.team.flat())?;
        let members: Vec<i32> = snapshot.team(team)?.members.iter().copied().collect::<Option<_>>()?;
        let waiting: HashSet<i32> = snapshot.threads.iter().filter(waits).filter_map(|thread| thread.lwp).collect();
        let others: Vec<i32> = members.into_iter().filter(|lwp| !waiting.contains(lwp)).collect();
        let is_known = |lwp: &i32| snapshot.thread_by_lwp(*lwp).is_some_and(|thread| thread.wait.value().is_some());
        let [only] = others[..] else { return None };
        // Threads of other teams, and those outside OpenMP, can have set it as well, if code on their stacks sets any.
        let is_other = |lwp: i32| lwp != only && !waiting.contains(&lwp);
        let passed = || self.inspection.lock_calls.iter().filter(|call| !call.waits);
        if passed().any(|call| is_other(call.lwp)) {
            return None;
        }
        // Who waits for it may have set it before, and others that execute the program's source may have left the function in which
        // they did. That counts unless the one that is left has set some lock, or waits for one.
        let graph = &self.inspection.waits_for.graph;
        let sets_some = |lwp: i32| self.has_set_some_lock(lwp);
        let wants_one = |lwp: i32| {
            let wait = snapshot.thread_by_lwp(lwp).and_then(|thread| thread.wait.value()).and_then(Option::as_ref);
            wait.is_some_and(|wait| wait.kind.is_for_lock())
        };
        let in_source = |lwp: i32| {
            let stack = self.inspection.stacks.logical.iter().find(|stack| stack.lwp == lwp);
            stack.is_none_or(|stack| stack.frames.iter().any(|frame| frame.line.is_some()))
        };
        let is_there = |lwp: i32| is_other(lwp) && !graph.is_parked(lwp) && in_source(lwp);
        let is_doubtful = waiting.iter().any(|lwp| sets_some(*lwp))
            || self.inspection.threads.iter().any(|thread| is_there(thread.lwp));
        if is_doubtful && !sets_some(only) && !wants_one(only) {
            return None;
        }
        is_known(&only).then_some(Probable { lwps: others, line: None, is_left_over: true })
    }

    /// The threads (LWP) that probably hold a lock of a verdict.
    pub(super) fn probable_owners(&self, verdict: &Verdict) -> Vec<i32> {
        verdict.core.iter().find_map(|node| self.probable(*node)).map(|probable| probable.lwps).unwrap_or_default()
    }

    /// The threads (LWP) that are held up because they wait for a lock of the verdict themselves.
    pub(super) fn held_up_by_lock(&self, verdict: &Verdict) -> Vec<i32> {
        let graph = &self.inspection.waits_for.graph;
        let locks: Vec<Node> =
            verdict.core.iter().copied().filter(|node| matches!(node, Node::Lock(..) | Node::Word(..))).collect();
        let waits = |lwp: &&i32| graph.waits_for(Node::Thread(**lwp)).any(|node| locks.contains(&node));
        verdict.held_up.iter().filter(waits).copied().collect()
    }

    /// The threads (LWP) of a verdict that wait for a lock.
    pub(super) fn waiters(&self, verdict: &Verdict, lock: Node) -> Vec<i32> {
        let graph = &self.inspection.waits_for.graph;
        let waits = |lwp: &i32| graph.waits_for(Node::Thread(*lwp)).any(|node| node == lock);
        self.waiting(verdict).into_iter().filter(waits).collect()
    }

    /// A thread that waits for a lock which it probably holds itself, as an inference.
    pub(super) fn probably_holds_itself(&self, verdict: &Verdict) -> Option<(i32, String)> {
        self.probably_held_by_waiter(verdict).map(|(lwp, _, lock)| (lwp, lock))
    }

    /// The same, with the lock's node.
    pub(super) fn probably_held_by_waiter(&self, verdict: &Verdict) -> Option<(i32, Node, String)> {
        verdict.core.iter().find_map(|node| {
            let probable = self.probable(*node).filter(|probable| probable.lwps.len() == 1)?;
            let waits = |lwp: &i32| self.inspection.waits_for.graph.waits_for(Node::Thread(*lwp)).any(|of| of == *node);
            // A thread that may still continue is no part of the verdict, only held up.
            let lwp = probable.lwps[0];
            let is_there = self.waiting(verdict).contains(&lwp) || verdict.held_up.contains(&lwp);
            let lwp = Some(lwp).filter(|lwp| is_there && waits(lwp))?;
            Some((lwp, *node, self.lock(*node)?))
        })
    }

    /// The one lock of a verdict, the threads (LWP) that wait for it, and the one that probably holds it and waits for something else.
    pub(super) fn probable_owner(&self, verdict: &Verdict) -> Option<(Vec<i32>, String, i32)> {
        let mut locks = verdict.core.iter().filter(|node| matches!(node, Node::Lock(..)));
        let (Some(node), None) = (locks.next(), locks.next()) else { return None };
        let probable = self.probable(*node)?;
        let [owner] = probable.lwps[..] else { return None };
        let waiters = self.waiters(verdict, *node);
        (!waiters.is_empty() && !waiters.contains(&owner)).then_some((waiters, self.lock(*node)?, owner))
    }

    /// Two threads that each wait for a lock that the other holds, with what they wait for. Only if the owner of at least one
    /// lock is inferred.
    pub(super) fn probable_cycle(&self, verdict: &Verdict) -> Option<[(i32, String); 2]> {
        let mut held: Vec<(Vec<i32>, i32, String)> = Vec::new();
        for node in &verdict.core {
            let probable = self.probable(*node).filter(|probable| probable.lwps.len() == 1);
            if let Some((probable, lock)) = probable.zip(self.lock(*node)) {
                held.push((self.waiters(verdict, *node), probable.lwps[0], lock));
            }
            let Node::Thread(lwp) = *node else { continue };
            match self.blocked(lwp) {
                Blocked::Mutex(mutex, owner) => held.push((vec![lwp], owner, self.mutex(lwp, mutex))),
                Blocked::Interpreter(owner) => held.push((vec![lwp], owner, "Python's GIL".to_owned())),
                _ => {}
            }
        }
        held.iter().enumerate().find_map(|(at, (waiters, owner, lock))| {
            let mut others = held.iter().skip(at + 1);
            let other = others.find(|other| waiters.contains(&other.1) && other.0.contains(owner))?;
            Some([(other.1, lock.clone()), (*owner, other.2.clone())])
        })
    }

    /// A thread that waits at a barrier, and the lock it probably holds, for which others (LWP) wait before they reach the barrier.
    pub(super) fn probable_holder(&self, verdict: &Verdict) -> Option<(i32, String, Vec<i32>)> {
        let barrier = self.barrier(verdict)?;
        let (absent, arrived) = (self.absent(barrier), self.arrived(barrier));
        verdict.core.iter().find_map(|node| {
            let probable = self.probable(*node).filter(|probable| probable.lwps.len() == 1)?;
            let waiters: Vec<i32> =
                self.waiters(verdict, *node).into_iter().filter(|lwp| absent.contains(lwp)).collect();
            let holder = probable.lwps[0];
            (arrived.contains(&holder) && !waiters.is_empty()).then_some((holder, self.lock(*node)?, waiters))
        })
    }

    /// How many teams have members that have not reached a barrier of the verdict.
    pub(super) fn incomplete_teams(&self, verdict: &Verdict) -> usize {
        let barriers = verdict.core.iter().filter(|node| matches!(node, Node::Barrier(..) | Node::RegionEnd(..)));
        barriers.filter(|node| !self.arrived(**node).is_empty() && !self.absent(**node).is_empty()).count()
    }

    /// The thread (LWP) whose turn it is in an `ordered` region that a verdict is about.
    pub(super) fn turn(&self, verdict: &Verdict) -> Option<i32> {
        verdict.core.iter().find_map(|node| {
            let Node::Ordered(runtime, id) = *node else { return None };
            let snapshot = &self.inspection.runtimes[runtime];
            snapshot.team(id)?.members.get(snapshot.ordered_turn(id)? as usize).copied().flatten()
        })
    }

    /// The members of a team at a worksharing construct, and those that wait at the end of the region. The first have reached the
    /// construct, and the others have not.
    pub(super) fn shares(&self, verdict: &Verdict) -> Option<(Vec<i32>, Vec<i32>)> {
        let of = |inside: bool| {
            let mut barriers = verdict.core.iter().filter(|node| match node {
                Node::Barrier(..) => inside,
                Node::RegionEnd(..) => !inside,
                _ => false,
            });
            barriers.next().map(|node| self.arrived(*node)).filter(|lwps| !lwps.is_empty())
        };
        of(true).zip(of(false))
    }

    /// True if code on the stack of a thread (LWP) has set a lock that it does not name.
    pub(super) fn has_set_some_lock(&self, lwp: i32) -> bool {
        self.inspection.lock_calls.iter().any(|call| call.lwp == lwp && !call.waits && call.variable.is_none())
    }

    /// Who probably holds a lock, as a sentence that says from what.
    pub(super) fn inference(&self, node: Node) -> Option<String> {
        let probable = self.probable(node)?;
        let who = self.whos(&probable.lwps);
        let lock = self.lock(node)?;
        let at = probable.line.as_deref().map_or_else(String::new, |line| format!(" at {line}"));
        Some(match probable.lwps.as_slice() {
            [] => return None,
            [_] if probable.is_left_over => {
                format!("{who} probably holds {lock}; it is the only thread of the team that does not wait for it")
            }
            [_] => format!("{who} probably holds {lock}, which code on its stack sets{at}"),
            _ => format!("one of {who} probably holds {lock}, which code on their stacks sets{at}"),
        })
    }

    /// What is inferred of the owners of a verdict's locks, each once.
    pub(super) fn inferences(&self, verdict: &Verdict) -> Vec<String> {
        let mut lines: Vec<String> = Vec::new();
        for line in verdict.core.iter().filter_map(|node| self.inference(*node)) {
            if !lines.contains(&line) {
                lines.push(line);
            }
        }
        lines
    }

    /// Where the owner that has ended had set the lock of a verdict, and where threads wait for it.
    pub(super) fn gone(&self, verdict: &Verdict) -> Option<String> {
        let since = verdict.core.iter().find_map(|node| match node {
            Node::GoneOwner(runtime, id) => {
                let since = words::acquired(self.inspection.runtimes[*runtime].lock(*id)?);
                (!since.is_empty()).then_some(since)
            }
            _ => None,
        });
        since.map(|since| format!("the owner had it{}", since.trim_start_matches(',')))
    }
}

/// What a thread waits for, its next region apart.
pub(super) fn wait_of(inspection: &Inspection, lwp: i32) -> Option<&Wait> {
    let waits = inspection.runtimes.iter().filter_map(|r| r.thread_by_lwp(lwp)?.wait.value()?.as_ref());
    waits.into_iter().find(|w| w.kind != WaitKind::Pool)
}

/// That the owner of a lock is unknown. Some runtimes record who has set a lock, which may not say who has it.
pub(super) fn unknown_owner(why: &Reason) -> &'static str {
    match [Common::OwnerNotFound, Common::UntiedTaskMayHaveIt].iter().any(|of| *why == (*of).into()) {
        true => "its owner is unknown",
        false => "its owner is not recorded",
    }
}
