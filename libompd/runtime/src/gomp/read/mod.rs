//! One consistent look at a libgomp instance while its process is stopped.
//!
//! Facts about the structures are in the GCC sources `libgomp/{libgomp.h,team.c,task.c,priority_queue.h}` and
//! `libgomp/config/linux/{bar.h,mutex.h,sem.h}`; where a comment names a function, it is found there.

use std::cell::OnceCell;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use ompd_process::machine::ThreadLocal;
use ompd_process::{Addr, Environment, Registers, Target, TargetExt};

mod doacross;
mod focus;
mod icvs;
mod locks;
mod loops;
mod queues;
mod tasks;
mod waits;

use crate::gomp::reason::Own;
use super::{Distance, Gomp};
use crate::bind::{Slot, View};
use crate::excerpt::NOT_LOOKED_FOR;
use crate::instance::SelfCheck;
use crate::limits;
use crate::model::*;
use crate::family;

/// A `gomp_thread` that has been used.
struct GompThread {
    lwp: i32,
    addr: Addr,
    view: View,
    team: Addr,
    team_id: u32,
    level: u32,
    /// NULL before its first region; or why it is not known.
    pool: Result<Addr, Reason>,
    /// It is in no team: `team` is that of its last region.
    idle: bool,
    /// Why it cannot be said in which team it is, if any. Set, `idle` is set too: nothing of `team` may be used.
    unsettled: Option<Reason>,
    registers: Result<Registers, String>,
}

/// A `gomp_team` reached from some thread.
struct GompTeam {
    view: View,
    level: u32,
    active_level: u32,
}

/// Why nothing is known that tools would have filed.
const NO_OMPT: Own = Own::NoOmpt;
/// Why nothing is said of a thread whose team has no thread 0, or does not list it.
const UNSETTLED: Own = Own::Unsettled;

/// What a futex address stands for.
#[derive(Clone)]
struct Place {
    kind: WaitKind,
    team: Option<Addr>,
    name: Option<String>,
    /// The taskgroup at whose end threads sleep there.
    group: Option<TaskgroupId>,
    /// The task that sleeps there until others are over, and the record of its wait.
    waiter: Option<(Addr, Addr)>,
}

impl Place {
    fn of(kind: WaitKind) -> Place {
        Place { kind, team: None, name: None, group: None, waiter: None }
    }
}

/// A `gomp_taskgroup` reached from some task.
struct GompTaskgroup {
    addr: Addr,
    view: View,
    parent: Fact<Option<TaskgroupId>>,
    /// Team of the task it was reached from.
    team: Fact<Option<TeamId>>,
}

pub(super) struct Reader<'a> {
    gomp: &'a Gomp,
    target: &'a dyn Target,
    threads: Vec<GompThread>,
    teams: BTreeMap<Addr, GompTeam>,
    team_ids: HashMap<Addr, TeamId>,
    team_order: Vec<Addr>,
    pools: BTreeMap<Addr, View>,
    pool_threads: Vec<Pool>,
    tasks: Vec<RawTask>,
    task_ids: HashMap<Addr, TaskId>,
    icv_addrs: HashMap<TaskId, Addr>,
    more_tasks: Vec<MoreTasks>,
    groups: Vec<GompTaskgroup>,
    group_ids: HashMap<Addr, TaskgroupId>,
    places: HashMap<Addr, Place>,
    locks: Vec<RawLock>,
    lock_ids: HashMap<Addr, LockId>,
    /// Control variables as the runtime began with them, and its table of places: read once, when first asked for.
    initial: OnceCell<Option<Icvs>>,
    place_table: OnceCell<Result<Vec<Arc<[u32]>>, Reason>>,
    /// `nthreads-var` and `bind-var` by level of nesting, likewise.
    lists: OnceCell<DeeperItems>,
    /// Variables of the environment that concern it.
    environment: Environment,
    check: SelfCheck,
    /// A single thread is looked at.
    focused: Option<focus::Focused>,
    /// A team could not be read: what lies in it cannot be recognised.
    lost_team: bool,
    issues: Vec<Issue>,
}

impl<'a> Reader<'a> {
    /// What was read, and how it agrees with what has to be so.
    pub(super) fn snapshot(gomp: &'a Gomp, target: &'a dyn Target) -> (RawSnapshot, SelfCheck) {
        let mut reader = Reader::new(gomp, target);
        reader.read_threads();
        reader.read_pools();
        reader.read_teams();
        reader.drop_ended_teams();
        reader.number_teams();
        reader.read_tasks();
        reader.collect_places();
        let teams = reader.make_teams();
        let mut threads = reader.make_threads();
        reader.finish_locks(&mut threads);
        let taskgroups = reader.make_taskgroups();
        let loops = reader.loops(&teams, &threads);
        let settings = reader.settings();
        let Reader { tasks, more_tasks, locks, pool_threads: pools, issues, check, .. } = reader;
        // GOMP_taskwait looks at the queue of children, and at that of the team for what has a higher priority.
        let recorded = Recorded { more_tasks, taskwait_runs_children_only: true, taskgroups, loops, pools, settings };
        (RawSnapshot { instance: gomp.info.clone(), threads, teams, tasks, locks, recorded, issues }, check)
    }

    fn new(gomp: &'a Gomp, target: &'a dyn Target) -> Reader<'a> {
        Reader {
            gomp,
            target,
            threads: Vec::new(),
            teams: BTreeMap::new(),
            team_ids: HashMap::new(),
            team_order: Vec::new(),
            pools: BTreeMap::new(),
            pool_threads: Vec::new(),
            tasks: Vec::new(),
            task_ids: HashMap::new(),
            icv_addrs: HashMap::new(),
            more_tasks: Vec::new(),
            groups: Vec::new(),
            group_ids: HashMap::new(),
            places: HashMap::new(),
            locks: Vec::new(),
            lock_ids: HashMap::new(),
            initial: OnceCell::new(),
            place_table: OnceCell::new(),
            lists: OnceCell::new(),
            environment: target.process().environment.only(&family::variable_prefixes()),
            check: SelfCheck::default(),
            focused: None,
            lost_team: false,
            issues: Vec::new(),
        }
    }

    fn issue(&mut self, subject: impl Into<String>, what: impl Into<Reason>) {
        self.issues.push(Issue::new(subject, what));
    }

    /// Distance from the thread pointer to `gomp_thread`, modulo 2^64: known of a program; for a library the dynamic
    /// linker leaves it in a slot before any code of the library runs. Seen earlier, the slot holds something else.
    fn tls_offset(&self) -> Result<u64, Reason> {
        /// Far more than all thread-local variables of a process together.
        const MAX: i64 = 64 << 20;
        let offset = match self.gomp.distance.clone().map_err(Reason::Inconsistent)? {
            Distance::Of(offset) => offset,
            Distance::At(slot) => self.target.read_u64(slot)?,
        };
        let thread_local = self.target.arch().machine.facts().map(|facts| facts.thread_local);
        // Most machines have variant I.
        let sane = thread_local.unwrap_or(ThreadLocal::Above { control_block: 0 }).distances(MAX);
        if sane.contains(&(offset as i64)) {
            Ok(offset)
        } else {
            Err(Reason::from(Own::NotReady))
        }
    }

    /// Every OS thread has a `gomp_thread` at a fixed offset from its thread pointer. It is all zero until the thread
    /// first does something with OpenMP.
    fn read_threads(&mut self) {
        let offset = match self.tls_offset() {
            Ok(offset) => offset,
            Err(why) => return self.issue("threads", why),
        };
        let pointers = self.target.threads().iter().filter_map(|t| t.thread_pointer());
        View::prefetch(self.target, self.gomp.structs.thread.size, pointers.map(|tp| tp.offset(offset)));
        for thread in self.target.threads() {
            let Some(tp) = thread.thread_pointer() else {
                let unknown = "its thread pointer is not known, so its OpenMP data cannot be found";
                let why = thread.registers.as_ref().err().map_or(unknown, String::as_str);
                self.issues.push(Issue::new(format!("thread {}", thread.lwp), why));
                continue;
            };
            match self.read_thread(thread.lwp, thread.registers.clone(), tp.offset(offset)) {
                Ok(Some(raw)) => self.threads.push(raw),
                Ok(None) => {}
                Err(why) => self.issues.push(Issue::new(format!("thread {}", thread.lwp), why)),
            }
        }
        self.threads.sort_by_key(|t| t.lwp);
    }

    fn read_thread(
        &self,
        lwp: i32,
        registers: Result<Registers, String>,
        addr: Addr,
    ) -> Result<Option<GompThread>, Reason> {
        let s = &self.gomp.structs.thread;
        let view = View::read(self.target, addr, s.size)?;
        // Setting a lock leaves nothing in it.
        let in_runtime =
            |registers: &Registers| self.gomp.owner(self.target, registers.pc) == crate::owner::CodeOwner::Runtime;
        if view.all_zero() && !registers.as_ref().is_ok_and(in_runtime) {
            return Ok(None);
        }
        Ok(Some(GompThread {
            lwp,
            addr,
            team: view.ptr(&s.team)?,
            team_id: view.u32(&s.team_id)?,
            level: view.u32(&s.level)?,
            pool: view.ptr(&s.thread_pool),
            view,
            idle: false,
            unsettled: None,
            registers,
        }))
    }

    /// An idle pool worker keeps its last team: `gomp_team_end` moves that team to `pool->last_team`, and only the
    /// thread that ended it gets its own `ts` restored. So a thread whose team is its pool's last team is idle.
    fn read_pools(&mut self) {
        let s = &self.gomp.structs.pool;
        let addrs: HashSet<Addr> =
            self.threads.iter().filter_map(|t| t.pool.clone().ok()).filter(|p| !p.is_null()).collect();
        for addr in addrs {
            match View::read(self.target, addr, s.size) {
                Ok(view) => {
                    self.pools.insert(addr, view);
                }
                Err(why) => self.issue(format!("thread pool {addr}"), why),
            }
        }
        let by_addr: HashMap<Addr, i32> = self.threads.iter().map(|t| (t.addr, t.lwp)).collect();
        let mut workers: HashSet<Addr> = HashSet::new();
        let mut last_teams: HashMap<Addr, Addr> = HashMap::new();
        let mut issues = Vec::new();
        // Who is in a team is no worker that has lost its last one.
        let teamless = self.focused.is_none() || self.threads.iter().any(|t| t.team.is_null());
        for (addr, view) in &self.pools {
            match if teamless { self.pool_threads(view) } else { Ok(Vec::new()) } {
                Ok(entries) if self.focused.is_some() => workers.extend(entries.into_iter().skip(1)),
                Ok(entries) => {
                    let lwps = self.pool_members(*addr, &entries, &by_addr);
                    if !entries.is_empty() {
                        // In the child of a fork they may all be gone: threads of nested teams are in no pool's array.
                        let known = !lwps.is_empty() || !self.knows_all_threads();
                        self.check.note("no thread of a pool knows the pool", known);
                        self.pool_threads.push(Pool { threads: lwps });
                    }
                    // Entry 0 is the initial thread.
                    workers.extend(entries.into_iter().skip(1));
                }
                Err(why) if why.is_layout() => {}
                Err(why) => issues.push(Issue::new(format!("thread pool {addr}"), why)),
            }
            match view.ptr(&s.last_team) {
                Ok(last) => {
                    last_teams.insert(*addr, last);
                }
                Err(why) if why.is_layout() => {}
                Err(why) => issues.push(Issue::new(format!("thread pool {addr}"), why)),
            }
        }
        self.issues.extend(issues);
        for thread in &mut self.threads {
            let pool = thread.pool.clone().unwrap_or(Addr::NULL);
            let last = last_teams.get(&pool).copied().unwrap_or(Addr::NULL);
            let in_last_team = !thread.team.is_null() && thread.team == last;
            thread.idle = in_last_team || (thread.team.is_null() && workers.contains(&thread.addr));
            if thread.pool.is_err() || !pool.is_null() && !last_teams.contains_key(&pool) {
                thread.unsettled = Some(Own::PoolUnreadable.into());
                thread.idle = true;
            }
        }
    }

    /// The threads of a pool, its initial thread first.
    fn pool_threads(&self, pool: &View) -> Result<Vec<Addr>, Reason> {
        let s = &self.gomp.structs.pool;
        let (array, used) = (pool.ptr(&s.threads)?, pool.uint(&s.threads_used)?);
        if array.is_null() { Ok(Vec::new()) } else { self.pointers(array, used) }
    }

    /// LWPs of a pool's threads. `gomp_team_start` counts new threads before they have entered themselves
    /// (`gomp_thread_start`): until then their entries are what the array held before, at worst the address of a thread
    /// that has ended. A thread that a fork left behind still names the pool as its own, one that ended does not.
    fn pool_members(&self, pool: Addr, entries: &[Addr], living: &HashMap<Addr, i32>) -> Vec<Option<i32>> {
        let left_behind = |thread: Addr| {
            let own = self.gomp.structs.thread.thread_pool.offset().map(|at| self.target.read_ptr(thread.offset(at)));
            self.knows_all_threads() && matches!(own, Ok(Ok(own)) if own == pool)
        };
        let mut seen = HashSet::new();
        let member = |thread: &Addr| match living.get(thread) {
            Some(lwp) => Some(Some(*lwp)),
            None => left_behind(*thread).then_some(None),
        };
        entries.iter().filter(|thread| seen.insert(**thread)).filter_map(member).collect()
    }

    /// False if there is a thread whose OpenMP data cannot be found: it may be any that is not met otherwise.
    pub(super) fn knows_all_threads(&self) -> bool {
        self.target.threads().iter().all(|t| t.thread_pointer().is_some())
    }

    /// An array of `count` pointers.
    fn pointers(&self, array: Addr, count: u64) -> Result<Vec<Addr>, Reason> {
        if count > limits::TEAM_SIZE {
            return Err(Reason::from(Own::ArrayTooLong { array, count }));
        }
        let arch = self.target.arch();
        let bytes = self.target.read_vec(array, count * u64::from(arch.pointer_bytes))?;
        Ok(bytes.chunks_exact(arch.pointer_bytes.into()).map(|c| Addr(arch.byte_order.uint(c))).collect())
    }

    /// Teams are in no list: they are reached from the threads inside them and from there outwards.
    fn read_teams(&mut self) {
        let s = &self.gomp.structs.team;
        let starts: Vec<(i32, Addr, u32, Result<u32, Reason>)> = self
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
                    self.issue(format!("team {addr}"), Trouble::EndlessTeamsCut);
                    break;
                }
                let step = View::read(self.target, addr, s.size).and_then(|view| {
                    let identities = self.identities(addr, &view)?;
                    self.check.judge(&identities)?;
                    view.u32(&s.prev_team_id)?;
                    let next = (view.ptr(&s.prev_team)?, view.u32(&s.prev_level)?, view.u32(&s.prev_active_level)?);
                    Ok((view, next))
                });
                match step {
                    Ok((view, next)) => {
                        if self.focused.is_none() {
                            self.prefetch_tasks(addr, &view);
                        }
                        self.teams.insert(addr, GompTeam { view, level, active_level: active });
                        if self.stays_inside() {
                            break;
                        }
                        (addr, level, active) = next;
                    }
                    Err(why) => {
                        self.lost_team = true;
                        self.issue(format!("team {addr}"), why);
                        break;
                    }
                }
            }
        }
    }

    /// A team lives as long as its thread 0 is in it. A worker the pool no longer needs still points to the team of the
    /// last region on its way out: that is no team any more, or another one by now, and the worker is in none.
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
        for index in 0..self.threads.len() {
            let thread = &self.threads[index];
            let unsettled = match self.teams.get(&thread.team).filter(|_| !thread.idle) {
                None => false,
                Some(_) if !led.contains(&thread.team) => true,
                Some(team) => match self.lists(team, thread) {
                    Ok(listed) => !listed,
                    Err(why) if why.is_layout() => false,
                    Err(why) => {
                        self.issue(format!("thread {}", self.threads[index].lwp), why);
                        true
                    }
                },
            };
            if unsettled {
                let thread = &mut self.threads[index];
                thread.unsettled = Some(UNSETTLED.into());
                thread.idle = true;
            }
        }
        self.teams.retain(|addr, _| led.contains(addr));
    }

    /// True if the team knows the thread as its member of that number: by the address of its `ordered` semaphore
    /// (`gomp_team_start`, `gomp_thread_start`). Memory of an ended team may hold a new one, to which a thread that is
    /// still leaving does not belong.
    fn lists(&self, team: &GompTeam, thread: &GompThread) -> Result<bool, Reason> {
        let s = &self.gomp.structs;
        if thread.team_id == 0 {
            return Ok(true);
        }
        if u64::from(thread.team_id) >= team.view.uint(&s.team.nthreads)? {
            return Ok(false);
        }
        let width = u64::from(self.target.arch().pointer_bytes);
        let slot = team.view.ptr(&s.team.ordered_release)?.offset(u64::from(thread.team_id) * width);
        Ok(self.target.read_ptr(slot)? == thread.view.addr_of(&s.thread.release)?)
    }

    /// The implicit tasks of a team lie side by side, and behind them pointers to its members' semaphores.
    fn prefetch_tasks(&self, addr: Addr, team: &View) {
        let s = &self.gomp.structs;
        if let (Ok(first), Ok(size), Ok(n)) =
            (s.team.implicit_task.offset(), s.task.size.get(), team.uint(&s.team.nthreads))
        {
            let each = size.saturating_add(self.target.arch().pointer_bytes.into());
            self.target.prefetch(&[(addr.offset(first), n.saturating_mul(each))]);
        }
    }

    /// Identities every team satisfies, whatever the program does, in words for the case that they fail, and whether they
    /// hold. What the layout lacks cannot be checked. `gomp_new_team` puts the array of release pointers behind the
    /// implicit tasks and points its first entry at `master_release`; `gomp_barrier_init` sets the barrier's total to the
    /// team's size.
    fn identities(&self, addr: Addr, view: &View) -> Result<Vec<(&'static str, bool)>, Reason> {
        let s = &self.gomp.structs.team;
        let mut found = Vec::new();
        let nthreads = view.uint(&s.nthreads)?;
        found.push(("the number of threads of a team is implausible", (1..=limits::TEAM_SIZE).contains(&nthreads)));
        if let Some(total) = known(view.uint(&s.barrier_total))? {
            found.push(("the barrier of a team is not for as many threads as the team has", total == nthreads));
        }
        let Some(ordered) = known(view.ptr(&s.ordered_release))? else { return Ok(found) };
        if let (Ok(size), Ok(first)) = (self.gomp.structs.task.size.get(), s.implicit_task.offset()) {
            let end = addr.offset(first).offset(nthreads.saturating_mul(size));
            found.push(("the release pointers of a team do not follow its implicit tasks", ordered == end));
        }
        if let Ok(master) = view.addr_of(&s.master_release) {
            let first = self.target.read_ptr(ordered)?;
            found.push(("the first release pointer of a team does not lead to its thread 0", first == master));
        }
        Ok(found)
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
            None => Fact::unknown(Common::TeamAtUnreadable { addr }),
        }
    }

    fn team_id(&self, addr: Addr) -> Option<TeamId> {
        self.team_ids.get(&addr).copied()
    }

    fn make_teams(&mut self) -> Vec<RawTeam> {
        let s = &self.gomp.structs;
        let mut teams: Vec<RawTeam> = Vec::with_capacity(self.team_order.len());
        for addr in &self.team_order {
            let raw = &self.teams[addr];
            let parent = match raw.view.ptr(&s.team.prev_team) {
                Ok(parent) if self.stays_inside() && !parent.is_null() && self.team_id(parent).is_none() => {
                    Fact::unknown(NOT_LOOKED_FOR)
                }
                Ok(parent) => self.team_at(parent, &s.team.prev_team),
                Err(why) => why.into(),
            };
            let size = raw.view.u32(&s.team.nthreads);
            teams.push(RawTeam {
                tool_data: Fact::unknown(NO_OMPT),
                descriptor: *addr,
                members: vec![None; size.as_ref().copied().unwrap_or(0) as usize],
                serialized: s.team.nthreads.fact(size.clone().map(|n| n == 1)),
                size: s.team.nthreads.fact(size),
                level: s.thread.level.fact(Ok(raw.level)),
                active_level: s.thread.active_level.fact(Ok(raw.active_level)),
                parent,
                primary_num: s.team.prev_team_id.fact(raw.view.u32(&s.team.prev_team_id)),
                function: Fact::unknown(Own::NoRegionFunction),
                location: Fact::unknown(Own::NoPositions),
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
                        Trouble::NumberOutsideTeam { number },
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

    fn make_threads(&mut self) -> Vec<RawThread> {
        let raws = std::mem::take(&mut self.threads);
        let threads = raws.iter().map(|raw| self.make_thread(raw)).collect();
        self.threads = raws;
        threads
    }

    fn make_thread(&mut self, raw: &GompThread) -> RawThread {
        let gomp = self.gomp;
        let s = &gomp.structs;
        if let Some(why) = raw.unsettled.as_ref() {
            return RawThread {
                tool_data: Fact::unknown(NO_OMPT),
                outermost_tool_data: Fact::unknown(NO_OMPT),
                ompt_state: Fact::unknown(NO_OMPT),
                lwp: Some(raw.lwp),
                descriptor: raw.addr,
                gtid: None,
                role: Fact::unknown(why),
                thread_num: Fact::unknown(why),
                team: Fact::unknown(why),
                task: Fact::unknown(why),
                wait: Fact::unknown(why),
                icvs: Icvs::unknown(why),
                placement: Placement::unknown(why),
            };
        }
        let role_slot = if raw.idle { &s.pool.last_team } else { &s.thread.team };
        let role = match self.role(raw) {
            Err(_) if self.stays_inside() => Fact::unknown(NOT_LOOKED_FOR),
            role => role_slot.fact(role),
        };
        let team = if raw.idle { role_slot.fact(Ok(None)) } else { self.team_at(raw.team, &s.thread.team) };
        let task = match raw.view.ptr(&s.thread.task) {
            _ if raw.idle => Fact::unknown(Common::IdleWithoutTask),
            Ok(task) if task.is_null() && raw.team.is_null() => s.thread.task.fact(Ok(self.add_initial_task(raw.lwp))),
            Ok(task) if task.is_null() => Fact::unknown(Common::OnItsWayWithoutTask),
            Ok(task) => match self.task_ids.get(&task) {
                Some(id) => s.thread.task.fact(Ok(*id)),
                None if self.focused.is_some() => Fact::unknown(NOT_LOOKED_FOR),
                None => Fact::unknown(Common::TaskAtUnreadable { task }),
            },
            Err(why) => why.into(),
        };
        let wait = self.wait_of(raw);
        // An idle worker's level and number are those of its last region.
        let number = if raw.idle {
            Fact::unknown(Common::IdleWithoutTeam)
        } else {
            s.thread.team_id.fact(Ok(raw.team_id))
        };
        RawThread {
            tool_data: Fact::unknown(NO_OMPT),
            outermost_tool_data: Fact::unknown(NO_OMPT),
            ompt_state: Fact::unknown(NO_OMPT),
            lwp: Some(raw.lwp),
            descriptor: raw.addr,
            gtid: None,
            role,
            thread_num: number,
            team,
            icvs: self.icvs_of(raw, &task),
            placement: match self.focused {
                Some(_) => Placement::unknown(NOT_LOOKED_FOR),
                None => self.placement_of(raw),
            },
            task,
            wait,
        }
    }

    /// Followed outwards, a thread the program made is thread 0 of every team up to the outermost. Where a team on the way
    /// is not known, neither is this.
    fn role(&self, raw: &GompThread) -> Result<Role, Reason> {
        if raw.idle {
            return Ok(Role::IdleWorker);
        }
        let s = &self.gomp.structs.team;
        let (mut team, mut number) = (raw.team, raw.team_id);
        for _ in 0..limits::TEAM_DEPTH {
            if team.is_null() {
                return Ok(Role::Initial);
            }
            if number != 0 {
                return Ok(Role::Worker);
            }
            let Some(outer) = self.teams.get(&team) else {
                return Err(Reason::Inconsistent(format!("the team at {team} could not be read")));
            };
            (number, team) = (outer.view.u32(&s.prev_team_id)?, outer.view.ptr(&s.prev_team)?);
        }
        Err(Reason::from(Common::EndlessTeams))
    }
}

/// Nothing where the layout lacks the value.
fn known<T>(value: Result<T, Reason>) -> Result<Option<T>, Reason> {
    match value {
        Ok(value) => Ok(Some(value)),
        Err(why) if why.is_layout() => Ok(None),
        Err(why) => Err(why),
    }
}
