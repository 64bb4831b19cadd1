//! One consistent look at a libgomp instance while its process is stopped.
//!
//! Facts about the structures are in the GCC sources `libgomp/{libgomp.h,team.c,task.c,priority_queue.h}` and
//! `libgomp/config/linux/{bar.h,mutex.h,sem.h}`; where a comment names a function, it is found there.

use std::collections::{BTreeMap, HashMap, HashSet};

use ompd_layout::Origin;
use ompd_target::{Addr, Machine, Registers, Target, TargetExt};

use super::Gomp;
use crate::bind::{Slot, View, Why};
use crate::limits;
use crate::model::*;

/// Flags in the low bits of a team barrier's generation (`BAR_*` in `config/linux/bar.h`).
const BAR_WAITING_FOR_TASK: u64 = 2;

/// Value a thread expects in a contended `gomp_mutex_t` while it sleeps on it (`config/linux/mutex.c`).
const MUTEX_CONTENDED: u32 = u32::MAX;

/// `enum gomp_task_kind`.
mod kind {
    pub(super) const IMPLICIT: u64 = 0;
    pub(super) const UNDEFERRED: u64 = 1;
    pub(super) const WAITING: u64 = 2;
    pub(super) const TIED: u64 = 3;
    pub(super) const DETACHED: u64 = 5;
}

/// A `gomp_thread` that has been used.
struct RawThread {
    lwp: i32,
    addr: Addr,
    view: View,
    team: Addr,
    team_id: u32,
    level: u32,
    pool: Addr,
    idle: bool,
    registers: Registers,
}

/// A `gomp_team` reached from some thread.
struct RawTeam {
    view: View,
    level: u32,
    active_level: u32,
}

/// What a futex address stands for.
#[derive(Clone)]
struct Place {
    kind: WaitKind,
    team: Option<Addr>,
    name: Option<String>,
}

pub(super) struct Reader<'a> {
    gomp: &'a Gomp,
    target: &'a dyn Target,
    threads: Vec<RawThread>,
    teams: BTreeMap<Addr, RawTeam>,
    team_ids: HashMap<Addr, TeamId>,
    team_order: Vec<Addr>,
    pools: BTreeMap<Addr, View>,
    tasks: Vec<Task>,
    task_ids: HashMap<Addr, TaskId>,
    icv_addrs: HashMap<TaskId, Addr>,
    places: HashMap<Addr, Place>,
    issues: Vec<Issue>,
}

impl<'a> Reader<'a> {
    pub(super) fn snapshot(gomp: &'a Gomp, target: &'a dyn Target) -> RuntimeSnapshot {
        let mut reader = Reader {
            gomp,
            target,
            threads: Vec::new(),
            teams: BTreeMap::new(),
            team_ids: HashMap::new(),
            team_order: Vec::new(),
            pools: BTreeMap::new(),
            tasks: Vec::new(),
            task_ids: HashMap::new(),
            icv_addrs: HashMap::new(),
            places: HashMap::new(),
            issues: Vec::new(),
        };
        reader.read_threads();
        reader.read_pools();
        reader.read_teams();
        reader.drop_ended_teams();
        reader.number_teams();
        reader.read_tasks();
        reader.collect_places();
        let teams = reader.make_teams();
        let threads = reader.make_threads(&teams);
        RuntimeSnapshot { instance: gomp.info.clone(), threads, teams, tasks: reader.tasks, issues: reader.issues }
    }

    fn issue(&mut self, subject: impl Into<String>, text: impl std::fmt::Display) {
        self.issues.push(Issue::new(subject, text));
    }

    /// Every OS thread has a `gomp_thread` at a fixed offset from its thread pointer. It is all zero until the thread
    /// first does something with OpenMP.
    fn read_threads(&mut self) {
        let offset = match &self.gomp.tls_offset {
            Ok(offset) => *offset,
            Err(why) => return self.issue("threads", why),
        };
        let pointers = self.target.threads().iter().filter_map(|t| t.thread_pointer());
        View::prefetch(self.target, self.gomp.structs.thread.size, pointers.map(|tp| tp.offset(offset)));
        for thread in self.target.threads() {
            let registers = match &thread.registers {
                Ok(registers) => registers,
                Err(why) => {
                    self.issues.push(Issue::new(format!("thread {}", thread.lwp), why));
                    continue;
                }
            };
            let Some(tp) = registers.thread_pointer else {
                self.issues.push(Issue::new(
                    format!("thread {}", thread.lwp),
                    "its thread pointer is not known, so its OpenMP data cannot be found",
                ));
                continue;
            };
            match self.read_thread(thread.lwp, *registers, tp.offset(offset)) {
                Ok(Some(raw)) => self.threads.push(raw),
                Ok(None) => {}
                Err(why) => self.issues.push(Issue::new(format!("thread {}", thread.lwp), why)),
            }
        }
        self.threads.sort_by_key(|t| t.lwp);
    }

    fn read_thread(&self, lwp: i32, registers: Registers, addr: Addr) -> Result<Option<RawThread>, Why> {
        let s = &self.gomp.structs.thread;
        let view = View::read(self.target, addr, s.size)?;
        if view.all_zero() {
            return Ok(None);
        }
        Ok(Some(RawThread {
            lwp,
            addr,
            team: view.ptr(&s.team)?,
            team_id: view.u32(&s.team_id)?,
            level: view.u32(&s.level)?,
            pool: view.ptr(&s.thread_pool)?,
            view,
            idle: false,
            registers,
        }))
    }

    /// An idle pool worker keeps its last team: `gomp_team_end` moves that team to `pool->last_team`, and only the
    /// thread that ended it gets its own `ts` restored. So a thread whose team is its pool's last team is idle.
    fn read_pools(&mut self) {
        let s = &self.gomp.structs.pool;
        let addrs: HashSet<Addr> = self.threads.iter().map(|t| t.pool).filter(|p| !p.is_null()).collect();
        for addr in addrs {
            match View::read(self.target, addr, s.size) {
                Ok(view) => {
                    self.pools.insert(addr, view);
                }
                Err(why) => self.issue(format!("thread pool {addr}"), why),
            }
        }
        let mut workers: HashSet<Addr> = HashSet::new();
        let mut last_teams: HashMap<Addr, Addr> = HashMap::new();
        let mut issues = Vec::new();
        for (addr, view) in &self.pools {
            match self.pool_workers(view) {
                Ok(found) => workers.extend(found),
                Err(why) => issues.push(Issue::new(format!("thread pool {addr}"), why)),
            }
            match view.ptr(&s.last_team) {
                Ok(last) => {
                    last_teams.insert(*addr, last);
                }
                Err(why) => issues.push(Issue::new(format!("thread pool {addr}"), why)),
            }
        }
        self.issues.extend(issues);
        for thread in &mut self.threads {
            let last = last_teams.get(&thread.pool).copied().unwrap_or(Addr::NULL);
            let in_last_team = !thread.team.is_null() && thread.team == last;
            thread.idle = in_last_team || (thread.team.is_null() && workers.contains(&thread.addr));
        }
    }

    /// Pooled workers: entry 0 of `pool->threads` is the initial thread.
    fn pool_workers(&self, pool: &View) -> Result<Vec<Addr>, Why> {
        let s = &self.gomp.structs.pool;
        let (array, used) = (pool.ptr(&s.threads)?, pool.uint(&s.threads_used)?);
        if array.is_null() {
            return Ok(Vec::new());
        }
        let mut entries = self.pointers(array, used)?;
        if !entries.is_empty() {
            entries.remove(0);
        }
        Ok(entries)
    }

    /// An array of `count` pointers.
    fn pointers(&self, array: Addr, count: u64) -> Result<Vec<Addr>, Why> {
        if count > limits::TEAM_SIZE {
            return Err(Why::Inconsistent(format!("an array at {array} claims {count} entries")));
        }
        let arch = self.target.arch();
        let bytes = self.target.read_vec(array, count * u64::from(arch.pointer_bytes))?;
        Ok(bytes.chunks_exact(arch.pointer_bytes.into()).map(|c| Addr(arch.byte_order.uint(c))).collect())
    }

    /// Teams are in no list: they are reached from the threads inside them and from there outwards.
    fn read_teams(&mut self) {
        let s = &self.gomp.structs.team;
        let starts: Vec<(i32, Addr, u32, Result<u32, Why>)> = self
            .threads
            .iter()
            .filter(|t| !t.idle)
            .map(|t| (t.lwp, t.team, t.level, t.view.u32(&self.gomp.structs.thread.active_level)))
            .collect();
        for (lwp, team, level, active_level) in starts {
            let (mut addr, mut level) = (team, level);
            let mut active = match active_level {
                Ok(active) => active,
                Err(why) => {
                    self.issue(format!("thread {lwp}"), why);
                    continue;
                }
            };
            for depth in 0.. {
                if addr.is_null() || self.teams.contains_key(&addr) {
                    break;
                }
                if depth == limits::TEAM_DEPTH {
                    self.issue(format!("team {addr}"), "the chain of enclosing teams has no end; cut off here");
                    break;
                }
                let step = View::read(self.target, addr, s.size).and_then(|view| {
                    self.check_team(addr, &view)?;
                    let next = (view.ptr(&s.prev_team)?, view.u32(&s.prev_level)?, view.u32(&s.prev_active_level)?);
                    Ok((view, next))
                });
                match step {
                    Ok((view, next)) => {
                        self.prefetch_tasks(addr, &view);
                        self.teams.insert(addr, RawTeam { view, level, active_level: active });
                        (addr, level, active) = next;
                    }
                    Err(why) => {
                        self.issue(format!("team {addr}"), why);
                        break;
                    }
                }
            }
        }
    }

    /// A team lives as long as its thread 0 is in it. A worker the pool no longer needs still points to the team of the
    /// last region on its way out: that is no team any more, and the worker is in none.
    fn drop_ended_teams(&mut self) {
        if !self.issues.is_empty() {
            // Something could not be read, and it may be what leads to a team's thread 0.
            return;
        }
        let mut led = HashSet::new();
        for thread in self.threads.iter().filter(|t| !t.idle) {
            let (mut team, mut number) = (thread.team, thread.team_id);
            while let Some(raw) = self.teams.get(&team).filter(|_| number == 0) {
                if !led.insert(team) {
                    break;
                }
                let s = &self.gomp.structs.team;
                let (Ok(outer), Ok(outer_number)) = (raw.view.ptr(&s.prev_team), raw.view.u32(&s.prev_team_id)) else {
                    break;
                };
                (team, number) = (outer, outer_number);
            }
        }
        for thread in &mut self.threads {
            thread.idle |= self.teams.contains_key(&thread.team) && !led.contains(&thread.team);
        }
        self.teams.retain(|addr, _| led.contains(addr));
    }

    /// The implicit tasks of a team lie side by side.
    fn prefetch_tasks(&self, addr: Addr, team: &View) {
        let s = &self.gomp.structs;
        if let (Ok(first), Ok(size), Ok(n)) =
            (s.team.implicit_task.offset(), s.task.size.get(), team.uint(&s.team.nthreads))
        {
            self.target.prefetch(&[(addr.offset(first), n.saturating_mul(size))]);
        }
    }

    /// Identities every team satisfies, whatever the program does. Should the layout be wrong, they fail, and no value
    /// of the team is shown. `gomp_new_team` puts the array of release pointers behind the implicit tasks and points
    /// its first entry at `master_release`; `gomp_barrier_init` sets the barrier's total to the team's size.
    fn check_team(&self, addr: Addr, view: &View) -> Result<(), Why> {
        let s = &self.gomp.structs.team;
        let broken = |what: &str| Err(Why::Inconsistent(format!("self-check failed: {what}; nothing of it is shown")));
        let nthreads = view.uint(&s.nthreads)?;
        if nthreads == 0 || nthreads > limits::TEAM_SIZE {
            return broken("its number of threads is implausible");
        }
        if view.uint(&s.barrier_total)? != nthreads {
            return broken("its barrier is not for as many threads as it has");
        }
        let ordered = view.ptr(&s.ordered_release)?;
        let tasks = nthreads.saturating_mul(self.gomp.structs.task.size.get()?);
        if ordered != addr.offset(s.implicit_task.offset()?).offset(tasks) {
            return broken("its release pointers do not follow its implicit tasks");
        }
        if self.target.read_ptr(ordered)? != view.addr_of(&s.master_release)? {
            return broken("its first release pointer does not lead to thread 0");
        }
        Ok(())
    }

    /// Parents before children, then by address: ids are stable between two looks at an unchanged process.
    fn number_teams(&mut self) {
        let mut order: Vec<(u32, Addr)> = self.teams.iter().map(|(addr, team)| (team.level, *addr)).collect();
        order.sort_unstable();
        self.team_order = order.into_iter().map(|(_, addr)| addr).collect();
        self.team_ids = self.team_order.iter().enumerate().map(|(i, addr)| (*addr, TeamId(i))).collect();
    }

    /// The team at `addr`, an address read through `slot`; NULL stands for none.
    fn team_at(&self, addr: Addr, slot: &Slot) -> Fact<Option<TeamId>> {
        match self.team_id(addr) {
            _ if addr.is_null() => slot.fact(Ok(None)),
            Some(id) => slot.fact(Ok(Some(id))),
            None => Fact::unknown(format!("the team at {addr} could not be read")),
        }
    }

    fn team_id(&self, addr: Addr) -> Option<TeamId> {
        self.team_ids.get(&addr).copied()
    }

    /// Address and thread of every implicit task: they live in an array at the end of their team.
    fn implicit_task_of(&self, task: Addr) -> Option<(Addr, u32)> {
        let size = self.gomp.structs.task.size.get().ok()?;
        let first = self.gomp.structs.team.implicit_task.offset().ok()?;
        let (team, raw) = self.teams.range(..=task).next_back()?;
        let nthreads = raw.view.uint(&self.gomp.structs.team.nthreads).ok()?;
        let distance = task.0.checked_sub(team.offset(first).0)?;
        let index = distance / size;
        (distance % size == 0 && index < nthreads).then_some((*team, index as u32))
    }

    /// Current tasks with their ancestors, then what is queued in each team.
    fn read_tasks(&mut self) {
        let current: Vec<(i32, Addr, Addr)> = self
            .threads
            .iter()
            .filter(|t| !t.idle)
            .filter_map(|t| Some((t.lwp, t.team, t.view.ptr(&self.gomp.structs.thread.task).ok()?)))
            .filter(|(_, _, task)| !task.is_null())
            .collect();
        for (lwp, team, task) in current {
            let team = self.team_at(team, &self.gomp.structs.thread.team);
            let mut child: Option<TaskId> = None;
            let (mut at, mut in_team) = (task, team.clone());
            for depth in 0.. {
                let seen = self.task_ids.get(&at).copied();
                let id = match seen {
                    Some(id) => id,
                    None => match self.add_task(at, in_team.clone()) {
                        Ok(id) => id,
                        Err(why) => {
                            if let Some(child) = child {
                                self.tasks[child.0].generating = Fact::unknown(&why);
                            }
                            self.issue(format!("task {at}"), why);
                            break;
                        }
                    },
                };
                if let Some(child) = child {
                    let origin = self.gomp.structs.task.parent.origin().unwrap_or(Origin::Profile);
                    self.tasks[child.0].generating = Fact::known(Some(id), origin);
                } else {
                    self.tasks[id.0].thread = Some(lwp);
                    self.tasks[id.0].state = self.gomp.structs.thread.task.fact(Ok(TaskState::Running));
                    self.tasks[id.0].team = team.clone();
                }
                if seen.is_some() {
                    break;
                }
                let parent = self.parent_of(at);
                child = Some(id);
                match parent {
                    Ok(parent) if parent.is_null() => {
                        self.tasks[id.0].generating = self.gomp.structs.task.parent.fact(Ok(None));
                        break;
                    }
                    Ok(parent) => {
                        // The parent of an implicit task belongs to the enclosing team.
                        if let Some((own, _)) = self.implicit_task_of(at) {
                            let s = &self.gomp.structs.team;
                            in_team = match self.teams.get(&own).map(|t| t.view.ptr(&s.prev_team)) {
                                Some(Ok(outer)) => self.team_at(outer, &s.prev_team),
                                _ => Fact::unknown("its team could not be read"),
                            };
                        }
                        at = parent;
                    }
                    Err(why) => {
                        self.tasks[id.0].generating = why.into();
                        break;
                    }
                }
                if depth == limits::TASK_DEPTH {
                    self.tasks[id.0].generating = Fact::unknown("the chain of generating tasks has no end");
                    break;
                }
            }
        }
        for addr in self.team_order.clone() {
            if let Err(why) = self.read_queue(addr) {
                self.issue(format!("task queue of team {addr}"), why);
            }
        }
    }

    /// Outside all regions libgomp keeps no task for a thread that never changed a control variable: `thread.task` is
    /// NULL, and the thread executes its initial task all the same.
    fn add_initial_task(&mut self, lwp: i32) -> TaskId {
        let slot = self.gomp.structs.thread.task;
        let id = TaskId(self.tasks.len());
        self.tasks.push(Task {
            descriptor: Addr::NULL,
            kind: slot.fact(Ok(TaskKind::Initial)),
            state: slot.fact(Ok(TaskState::Running)),
            function: Fact::unknown("an initial task has no function of its own"),
            location: Fact::unknown("libgomp does not store source positions"),
            generating: slot.fact(Ok(None)),
            team: slot.fact(Ok(None)),
            thread: Some(lwp),
            is_final: slot.fact(Ok(false)),
        });
        id
    }

    fn parent_of(&self, task: Addr) -> Result<Addr, Why> {
        let field = self.gomp.structs.task.parent.field()?;
        Ok(self.target.read_ptr(task.offset(field.offset))?)
    }

    /// Reads one task and files it. `team` is the team it is thought to belong to; implicit tasks know better.
    fn add_task(&mut self, addr: Addr, team: Fact<Option<TeamId>>) -> Result<TaskId, Why> {
        if self.tasks.len() >= limits::TASKS {
            return Err(Why::Inconsistent(format!("more than {} tasks; the rest is not shown", limits::TASKS)));
        }
        let s = &self.gomp.structs.task;
        let view = View::read(self.target, addr, s.size)?;
        let raw_kind = view.uint(&s.kind)?;
        let implicit = self.implicit_task_of(addr);
        let team = match implicit.and_then(|(own, _)| self.team_id(own)) {
            Some(own) => self.gomp.structs.team.implicit_task.fact(Ok(Some(own))),
            None => team,
        };
        let (kind, state) = match raw_kind {
            kind::IMPLICIT if matches!(team, Fact::Known { value: None, .. }) => {
                (TaskKind::Initial, TaskState::Suspended)
            }
            kind::IMPLICIT => (TaskKind::Implicit, TaskState::Suspended),
            kind::UNDEFERRED => (TaskKind::Undeferred, TaskState::Suspended),
            kind::WAITING => (TaskKind::Explicit, TaskState::Ready),
            kind::DETACHED => (TaskKind::Explicit, TaskState::Detached),
            // GOMP_TASK_TIED (3) and GOMP_TASK_ASYNC_RUNNING (4): started.
            kind::TIED | 4 => (TaskKind::Explicit, TaskState::Suspended),
            other => return Err(Why::Inconsistent(format!("it is of kind {other}, which no libgomp has"))),
        };
        let function = match kind {
            TaskKind::Explicit => match view.ptr(&s.fn_) {
                Ok(addr) if addr.is_null() => Fact::unknown("a target task: it has no host function"),
                Ok(addr) => s.fn_.fact(Ok(CodeRef::new(addr))),
                Err(why) => why.into(),
            },
            TaskKind::Undeferred => Fact::unknown("libgomp does not store the function of an undeferred task"),
            TaskKind::Implicit => Fact::unknown("libgomp does not store the function of a region"),
            TaskKind::Initial => Fact::unknown("an initial task has no function of its own"),
        };
        let id = TaskId(self.tasks.len());
        self.icv_addrs.insert(id, view.addr_of(&s.icv).unwrap_or(Addr::NULL));
        self.tasks.push(Task {
            descriptor: addr,
            kind: s.kind.fact(Ok(kind)),
            state: s.kind.fact(Ok(state)),
            function,
            location: Fact::unknown("libgomp does not store source positions"),
            generating: Fact::unknown("not read"),
            team,
            thread: None,
            is_final: s.final_task.fact(view.flag(&s.final_task)),
        });
        self.task_ids.insert(addr, id);
        if let (Ok(wait), Ok(sem)) = (view.ptr(&s.taskwait), self.gomp.structs.taskwait.sem.offset())
            && !wait.is_null()
        {
            self.place(wait.offset(sem), WaitKind::Taskwait, None);
        }
        if let Ok(group) = view.ptr(&s.taskgroup) {
            self.taskgroup_places(group);
        }
        Ok(id)
    }

    fn taskgroup_places(&mut self, innermost: Addr) {
        let s = &self.gomp.structs.taskgroup;
        let mut at = innermost;
        for _ in 0..limits::TASK_DEPTH {
            if at.is_null() {
                return;
            }
            let Ok(view) = View::read(self.target, at, s.size) else { return };
            if let Ok(sem) = view.addr_of(&s.sem)
                && self.place(sem, WaitKind::Taskgroup, None)
            {
                return;
            }
            at = view.ptr(&s.prev).unwrap_or(Addr::NULL);
        }
    }

    /// Ready tasks of a team (`priority_queue.h`): a circular list, or a splay tree of such lists once a task had a
    /// priority. List nodes are embedded in the tasks; the team's queue uses the first of the three.
    fn read_queue(&mut self, team: Addr) -> Result<(), Why> {
        let s = &self.gomp.structs;
        let view = self.teams[&team].view.clone();
        let (root, list) = (view.ptr(&s.team.queue_root)?, view.ptr(&s.team.queue_tasks)?);
        let mut lists = Vec::new();
        let mut open = vec![root];
        let mut seen = HashSet::new();
        while let Some(node) = open.pop() {
            if node.is_null() || !seen.insert(node) || seen.len() > limits::TASKS {
                continue;
            }
            let node = View::read(self.target, node, s.tree.size)?;
            lists.push(node.ptr(&s.tree.tasks)?);
            open.push(node.ptr(&s.tree.left)?);
            open.push(node.ptr(&s.tree.right)?);
        }
        if root.is_null() {
            lists.push(list);
        }
        let pnode = s.task.pnode.offset()?;
        let id = self.team_at(team, &s.thread.team);
        for first in lists {
            let mut at = first;
            let mut seen = HashSet::new();
            while !at.is_null() && seen.insert(at) {
                let task = at.back(pnode);
                if !self.task_ids.contains_key(&task) {
                    let added = self.add_task(task, id.clone())?;
                    let parent = self.parent_of(task)?;
                    self.tasks[added.0].generating = match self.task_ids.get(&parent) {
                        _ if parent.is_null() => s.task.parent.fact(Ok(None)),
                        Some(parent) => s.task.parent.fact(Ok(Some(*parent))),
                        None => match self.add_task(parent, id.clone()) {
                            Ok(parent) => s.task.parent.fact(Ok(Some(parent))),
                            Err(why) => why.into(),
                        },
                    };
                }
                at = View::read(self.target, at, s.node.size)?.ptr(&s.node.next)?;
            }
        }
        Ok(())
    }

    /// Files what a futex address stands for; true if it was known already.
    fn place(&mut self, addr: Addr, kind: WaitKind, team: Option<Addr>) -> bool {
        self.places.insert(addr, Place { kind, team, name: None }).is_some()
    }

    /// Every word of the runtime a thread may sleep on.
    fn collect_places(&mut self) {
        let s = &self.gomp.structs;
        let mut places: Vec<(Result<Addr, Why>, WaitKind, Option<Addr>)> = Vec::new();
        for (addr, team) in &self.teams {
            places.push((team.view.addr_of(&s.team.barrier_generation), WaitKind::Barrier, Some(*addr)));
            places.push((team.view.addr_of(&s.team.master_release), WaitKind::Ordered, Some(*addr)));
            places.push((team.view.addr_of(&s.team.task_lock), WaitKind::RuntimeInternal, Some(*addr)));
        }
        for pool in self.pools.values() {
            places.push((pool.addr_of(&s.pool.dock), WaitKind::Pool, None));
        }
        for thread in &self.threads {
            places.push((thread.view.addr_of(&s.thread.release), WaitKind::Ordered, Some(thread.team)));
        }
        for (addr, kind, team) in places {
            if let Ok(addr) = addr {
                self.place(addr, kind, team);
            }
        }
        let fixed = [
            (&self.gomp.default_lock, WaitKind::Critical, "critical (unnamed)"),
            (&self.gomp.atomic_lock, WaitKind::Atomic, "atomic"),
        ];
        for (addr, kind, name) in fixed {
            if let Some((addr, _)) = addr {
                self.places.insert(*addr, Place { kind, team: None, name: Some(name.to_owned()) });
            }
        }
    }

    fn barrier_of(&self, team: &RawTeam) -> Fact<Barrier> {
        let s = &self.gomp.structs.team;
        let read = || {
            let size = team.view.u32(&s.barrier_total)?;
            let awaited = team.view.u32(&s.barrier_awaited)?;
            let awaited_final = team.view.u32(&s.barrier_awaited_final)?;
            let generation = team.view.uint(&s.barrier_generation)?;
            if awaited > size || awaited_final > size {
                return Err(Why::Inconsistent("the team barrier awaits more threads than the team has".to_owned()));
            }
            // The last thread to arrive resets the count before the remaining tasks have run.
            let arrived =
                if generation & BAR_WAITING_FOR_TASK != 0 { size } else { (size - awaited).max(size - awaited_final) };
            Ok(Barrier { arrived: Some(arrived), size })
        };
        s.barrier_awaited.fact(read())
    }

    /// Which barrier a team's generation word stands for at this moment.
    fn barrier_kind(&self, team: Addr) -> WaitKind {
        let s = &self.gomp.structs.team;
        let Some(raw) = self.teams.get(&team) else { return WaitKind::Barrier };
        let waiting_for_task = raw.view.uint(&s.barrier_generation).is_ok_and(|g| g & BAR_WAITING_FOR_TASK != 0);
        let total = raw.view.uint(&s.barrier_total).ok();
        let final_begun = raw.view.uint(&s.barrier_awaited_final).ok() < total;
        let plain_begun = raw.view.uint(&s.barrier_awaited).ok() < total;
        match (waiting_for_task, final_begun, plain_begun) {
            (true, _, _) => WaitKind::BarrierTasks,
            (false, true, false) => WaitKind::RegionEnd,
            _ => WaitKind::Barrier,
        }
    }

    fn make_teams(&mut self) -> Vec<Team> {
        let s = &self.gomp.structs;
        let mut teams: Vec<Team> = Vec::with_capacity(self.team_order.len());
        for addr in &self.team_order {
            let raw = &self.teams[addr];
            let parent = match raw.view.ptr(&s.team.prev_team) {
                Ok(parent) => self.team_at(parent, &s.team.prev_team),
                Err(why) => why.into(),
            };
            let size = raw.view.u32(&s.team.nthreads);
            teams.push(Team {
                descriptor: *addr,
                members: vec![None; size.as_ref().copied().unwrap_or(0) as usize],
                serialized: s.team.nthreads.fact(size.clone().map(|n| n == 1)),
                size: s.team.nthreads.fact(size),
                level: s.thread.level.fact(Ok(raw.level)),
                active_level: s.thread.active_level.fact(Ok(raw.active_level)),
                parent,
                primary_num: s.team.prev_team_id.fact(raw.view.u32(&s.team.prev_team_id)),
                function: Fact::unknown("libgomp does not store the function of a region"),
                location: Fact::unknown("libgomp does not store source positions"),
                barrier: self.barrier_of(raw),
            });
        }
        // A thread belongs to its innermost team, and, as long as it is thread 0 there, to the enclosing one as well.
        for thread in self.threads.iter().filter(|t| !t.idle) {
            let (mut team, mut number) = (thread.team, thread.team_id);
            for _ in 0..limits::TEAM_DEPTH {
                let (Some(id), Some(raw)) = (self.team_id(team), self.teams.get(&team)) else { break };
                match teams[id.0].members.get_mut(number as usize) {
                    Some(member) => *member = Some(thread.lwp),
                    None => self.issues.push(Issue::new(
                        format!("thread {}", thread.lwp),
                        format!("it is number {number} of a team of fewer threads"),
                    )),
                }
                if number != 0 {
                    break;
                }
                match (raw.view.ptr(&s.team.prev_team), raw.view.u32(&s.team.prev_team_id)) {
                    (Ok(outer), Ok(outer_number)) => (team, number) = (outer, outer_number),
                    _ => break,
                }
            }
        }
        teams
    }

    fn make_threads(&mut self, teams: &[Team]) -> Vec<Thread> {
        let raws = std::mem::take(&mut self.threads);
        let threads = raws.iter().map(|raw| self.make_thread(raw, teams)).collect();
        self.threads = raws;
        threads
    }

    fn make_thread(&mut self, raw: &RawThread, teams: &[Team]) -> Thread {
        let gomp = self.gomp;
        let s = &gomp.structs;
        let role_slot = if raw.idle { &s.pool.last_team } else { &s.thread.team };
        let role = role_slot.fact(Ok(self.role(raw)));
        let team = if raw.idle { role_slot.fact(Ok(None)) } else { self.team_at(raw.team, &s.thread.team) };
        let task = match raw.view.ptr(&s.thread.task) {
            _ if raw.idle => Fact::unknown("an idle worker executes no task"),
            Ok(task) if task.is_null() => s.thread.task.fact(Ok(self.add_initial_task(raw.lwp))),
            Ok(task) => match self.task_ids.get(&task) {
                Some(id) => s.thread.task.fact(Ok(*id)),
                None => Fact::unknown(format!("the task at {task} could not be read")),
            },
            Err(why) => why.into(),
        };
        let wait = self.wait_of(raw);
        let state = self.state_of(raw, &team, teams, &wait);
        // An idle worker's level and number are those of its last region.
        let number = if raw.idle {
            Fact::unknown("an idle worker is in no team")
        } else {
            s.thread.team_id.fact(Ok(raw.team_id))
        };
        Thread {
            lwp: Some(raw.lwp),
            descriptor: raw.addr,
            gtid: None,
            role,
            thread_num: number,
            team,
            icvs: self.icvs_of(raw, &task),
            task,
            state,
            wait,
        }
    }

    /// Followed outwards, a thread the program made is thread 0 of every team up to the outermost.
    fn role(&self, raw: &RawThread) -> Role {
        if raw.idle {
            return Role::IdleWorker;
        }
        let s = &self.gomp.structs.team;
        let (mut team, mut number) = (raw.team, raw.team_id);
        for _ in 0..limits::TEAM_DEPTH {
            let Some(outer) = self.teams.get(&team) else { break };
            if number != 0 {
                return Role::Worker;
            }
            number = outer.view.u32(&s.prev_team_id).unwrap_or(0);
            team = outer.view.ptr(&s.prev_team).unwrap_or(Addr::NULL);
        }
        Role::Initial
    }

    /// libgomp's threads sleep in futex calls made by libgomp's own code, so the address they gave the kernel names
    /// what they wait for. A futex call from elsewhere (libc) is the program's own business.
    fn wait_of(&self, raw: &RawThread) -> Fact<Option<Wait>> {
        let origin = Origin::Registers;
        if !self.gomp.owns(self.target, raw.registers.pc) {
            return Fact::known(None, origin);
        }
        let futex = match self.target.arch().machine {
            Machine::X86_64 => 202,
            Machine::Aarch64 => 98,
            Machine::Other(_) => return Fact::unknown("system calls of this machine are not known"),
        };
        let Some(call) = raw.registers.syscall.filter(|c| c.number == futex) else {
            return if raw.idle {
                Fact::known(
                    Some(Wait {
                        kind: WaitKind::Pool,
                        object: raw.pool,
                        name: None,
                        location: None,
                        team: None,
                        origin,
                    }),
                    origin,
                )
            } else {
                Fact::unknown("it is executing libgomp code (a spinning wait leaves no trace in memory)")
            };
        };
        let object = Addr(call.args[0]);
        let place = self.places.get(&object).cloned();
        let (kind, team, name) = match place {
            Some(Place { kind: WaitKind::Barrier, team: Some(team), name }) => {
                (self.barrier_kind(team), self.team_id(team), name)
            }
            Some(Place { kind, team, name }) => (kind, team.and_then(|t| self.team_id(t)), name),
            // libgomp's own objects apart, only locks and criticals are mutexes; anything else is internal.
            None if call.args[2] as u32 == MUTEX_CONTENDED
                && !self.gomp.owns(self.target, object)
                && !self.in_team(object) =>
            {
                (WaitKind::Mutex, None, None)
            }
            None => (WaitKind::RuntimeInternal, None, None),
        };
        Fact::known(Some(Wait { kind, object, name, location: None, team, origin }), origin)
    }

    fn in_team(&self, addr: Addr) -> bool {
        let Ok(size) = self.gomp.structs.team.size.get() else { return false };
        self.teams.range(..=addr).next_back().is_some_and(|(team, _)| addr.0 - team.0 < size)
    }

    fn state_of(
        &self,
        raw: &RawThread,
        team: &Fact<Option<TeamId>>,
        teams: &[Team],
        wait: &Fact<Option<Wait>>,
    ) -> Fact<State> {
        match wait {
            Fact::Known { value: Some(wait), origin } => wait.kind.state_fact(*origin),
            _ if raw.idle => self.gomp.structs.pool.last_team.fact(Ok(State::Idle)),
            Fact::Known { value: None, origin } => working(team, teams, *origin),
            Fact::Unknown { why } => Fact::unknown(why),
        }
    }

    fn icvs_of(&self, raw: &RawThread, task: &Fact<TaskId>) -> Icvs {
        let s = &self.gomp.structs;
        if raw.idle {
            return Icvs::unknown("an idle worker executes no task");
        }
        let own = task.get().and_then(|id| self.icv_addrs.get(&id)).copied().filter(|a| !a.is_null());
        let no_task = raw.view.ptr(&s.thread.task).is_ok_and(Addr::is_null);
        // A thread without a task is governed by the global copy (`gomp_icv`).
        let addr = match (own, &self.gomp.global_icv) {
            (Some(addr), _) => addr,
            (None, Some((addr, _))) if no_task => *addr,
            _ => return Icvs::unknown("the control variables of its task could not be found"),
        };
        let view = match View::read(self.target, addr, s.icv.size) {
            Ok(view) => view,
            Err(why) => return Icvs::unknown(&why.to_string()),
        };
        let i = &s.icv;
        let schedule = || {
            let (raw, chunk) = (view.u32(&i.schedule)?, view.int(&i.chunk)?);
            Ok(Schedule { kind: raw & 0x7fff_ffff, monotonic: raw & 0x8000_0000 != 0, chunk })
        };
        let max_active_levels = match (view.uint(&i.max_active_levels), &self.gomp.max_active_levels) {
            (Ok(own), _) => i.max_active_levels.fact(Ok(own)),
            (Err(_), Some((addr, origin))) => match self.target.read_u64(*addr) {
                Ok(value) => Fact::known(value, *origin),
                Err(fault) => Fact::unknown(fault),
            },
            (Err(why), None) => why.into(),
        };
        Icvs {
            nthreads: i.nthreads.fact(view.uint(&i.nthreads)),
            dynamic: i.dynamic.fact(view.flag(&i.dynamic)),
            schedule: i.schedule.fact(schedule()),
            max_active_levels,
            thread_limit: i.thread_limit.fact(view.u32(&i.thread_limit).map(|l| (l != u32::MAX).then_some(l.into()))),
            bind: i.bind.fact(view.u32(&i.bind).map(ProcBind)),
            levels: s.thread.level.fact(Ok(raw.level)),
            active_levels: s.thread.active_level.fact(raw.view.u32(&s.thread.active_level)),
        }
    }
}
