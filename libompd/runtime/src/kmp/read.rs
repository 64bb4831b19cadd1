//! One consistent look at a libomp or libiomp5 instance while its process is stopped.
//!
//! Facts about the structures are in the LLVM sources `openmp/runtime/src/{kmp.h,kmp_runtime.cpp,kmp_tasking.cpp,
//! kmp_barrier.cpp,kmp_lock.h,kmp_lock.cpp,kmp_wait_release.h,kmp_gsupport.cpp}`; where a comment names a function, it
//! is found there.

use std::collections::{BTreeMap, HashMap, HashSet};

use ompd_layout::Origin;
use ompd_target::{Addr, Machine, Registers, Target, TargetExt};

use super::Kmp;
use crate::bind::{Slot, View, Why};
use crate::limits;
use crate::model::*;

/// Kinds of barriers, in the order of the arrays `th_bar` and `t_bar` (`enum barrier_type`).
const BARRIERS: [Barriers; 3] = [Barriers::Plain, Barriers::ForkJoin, Barriers::Reduction];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Barriers {
    Plain,
    ForkJoin,
    Reduction,
}

/// The two low bits of a barrier word are flags (`KMP_BARRIER_SLEEP_STATE`, `KMP_BARRIER_UNUSED_STATE`).
const BARRIER_FLAGS: u64 = 3;
/// `flag_type` of a sleeper's flag object: a 32-bit word.
const FLAG32: u64 = 0;
/// `flag_type`: a 64-bit word, plain or atomic.
const FLAG64: [u64; 2] = [1, 2];
/// Bits of a schedule that are modifiers (`kmp_sch_modifier_monotonic`, `_nonmonotonic`).
const SCHEDULE_MONOTONIC: u32 = 1 << 29;
const SCHEDULE_NONMONOTONIC: u32 = 1 << 30;
/// `KMP_MAX_NTH`-like values mean that no thread limit is set.
const NO_LIMIT: u64 = i32::MAX as u64;
/// Entries in one row of the lock table (`KMP_I_LOCK_CHUNK`).
const LOCKS_PER_ROW: u64 = 1024;
/// Lock kinds of the table that are queues (`enum kmp_indirect_locktag_t`): queuing and nested_queuing.
const QUEUING: [u64; 2] = [1, 8];

/// One entry of `__kmp_threads`.
struct RawThread {
    gtid: u32,
    view: View,
    lwp: Option<i32>,
    team: Addr,
    idle: Idle,
    /// It is the initial thread of its root.
    uber: Option<bool>,
    registers: Option<Result<Registers, String>>,
}

/// Whether a thread waits for its next region.
enum Idle {
    No,
    Yes(Wait),
    /// What would tell could not be read: nothing may be said about its team either.
    Unsure(String),
}

/// What is read of a `kmp_root`.
#[derive(Clone, Copy, Default)]
struct Root {
    /// It is in a parallel region of more than one thread.
    in_parallel: Option<bool>,
    /// Its initial thread.
    uber: Option<Addr>,
}

/// One level of nesting: several serialized regions may share one `kmp_team`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Region {
    level: u32,
    team: Addr,
}

pub(super) struct Reader<'a> {
    kmp: &'a Kmp,
    target: &'a dyn Target,
    threads: Vec<RawThread>,
    by_addr: BTreeMap<Addr, usize>,
    by_gtid: HashMap<u32, usize>,
    teams: BTreeMap<Addr, View>,
    regions: Vec<Region>,
    region_ids: HashMap<Region, TeamId>,
    tasks: Vec<Task>,
    task_ids: HashMap<Addr, TaskId>,
    task_views: Vec<View>,
    lines: HashMap<Addr, Fact<SourceLine>>,
    lock_waits: HashMap<u32, Wait>,
    issues: Vec<Issue>,
}

impl<'a> Reader<'a> {
    pub(super) fn snapshot(kmp: &'a Kmp, target: &'a dyn Target) -> RuntimeSnapshot {
        let mut reader = Reader {
            kmp,
            target,
            threads: Vec::new(),
            by_addr: BTreeMap::new(),
            by_gtid: HashMap::new(),
            teams: BTreeMap::new(),
            regions: Vec::new(),
            region_ids: HashMap::new(),
            tasks: Vec::new(),
            task_ids: HashMap::new(),
            task_views: Vec::new(),
            lines: HashMap::new(),
            lock_waits: HashMap::new(),
            issues: Vec::new(),
        };
        if let Err(why) = reader.read_threads() {
            reader.issue("threads", why);
        }
        reader.find_idle();
        reader.read_teams();
        reader.number_regions();
        reader.read_tasks();
        if reader.threads.iter().any(|t| reader.queued_for_lock(t)) {
            reader.read_locks();
        }
        let teams = reader.make_teams();
        let threads = reader.make_threads(&teams);
        RuntimeSnapshot { instance: kmp.info.clone(), threads, teams, tasks: reader.tasks, issues: reader.issues }
    }

    fn issue(&mut self, subject: impl Into<String>, text: impl std::fmt::Display) {
        self.issues.push(Issue::new(subject, text));
    }

    fn global(&self, name: &str) -> Result<Addr, Why> {
        self.kmp
            .global(name)
            .map(|(addr, _)| addr)
            .ok_or_else(|| Why::Inconsistent(format!("where this runtime keeps {name} is not known")))
    }

    /// `__kmp_threads` is indexed by gtid and has holes. Its length is `__kmp_threads_capacity`; where that is not
    /// known, the walk ends once `__kmp_all_nth` threads have been met or an entry turns out not to be a thread.
    fn read_threads(&mut self) -> Result<(), Why> {
        let s = &self.kmp.structs.info;
        let table = self.target.read_ptr(self.global(super::schema::THREADS)?)?;
        if table.is_null() {
            // Loaded, but no OpenMP construct has been executed yet: __kmp_do_serial_initialize allocates the table.
            return Ok(());
        }
        let all = u64::from(self.target.read_u32(self.global(super::schema::ALL_NTH)?)?);
        let capacity = match self.global(super::schema::THREADS_CAPACITY) {
            Ok(addr) => u64::from(self.target.read_u32(addr)?),
            Err(_) => limits::THREADS,
        };
        // pthread_t is the thread pointer on every Linux C library this runs on.
        let by_pthread: HashMap<Addr, &ompd_target::Thread> =
            self.target.threads().iter().filter_map(|t| Some((t.thread_pointer()?, t))).collect();
        let entries = self.thread_entries(table, capacity.min(limits::THREADS), all);
        View::prefetch(self.target, s.size, entries.iter().map(|(_, addr)| *addr));
        let mut found = 0;
        for (gtid, addr) in entries {
            let view = View::read(self.target, addr, s.size);
            // An entry that does not name its own index is no thread: the table has ended.
            match view.as_ref().map(|v| v.uint(&s.ds_gtid)) {
                Ok(Ok(own)) if own == gtid => {}
                Ok(Err(why)) => return Err(why),
                Err(why) => {
                    self.issues.push(Issue::new(format!("thread with gtid {gtid}"), why));
                    continue;
                }
                Ok(Ok(_)) => break,
            }
            let view = view?;
            found += 1;
            let pthread = view.ptr(&s.ds_thread)?;
            let os = by_pthread.get(&pthread);
            self.by_addr.insert(addr, self.threads.len());
            self.by_gtid.insert(gtid as u32, self.threads.len());
            self.threads.push(RawThread {
                gtid: gtid as u32,
                lwp: os.map(|t| t.lwp),
                team: view.ptr(&s.team)?,
                idle: Idle::No,
                uber: None,
                registers: os.map(|t| t.registers.clone()),
                view,
            });
        }
        self.prefetch_waits();
        if found < all {
            self.issue("threads", format!("the runtime counts {all} threads, {found} were found"));
        }
        Ok(())
    }

    /// The first `all` entries of the table of threads that are in use.
    fn thread_entries(&mut self, table: Addr, capacity: u64, all: u64) -> Vec<(u64, Addr)> {
        let width = u64::from(self.target.arch().pointer_bytes);
        let mut entries = Vec::new();
        for gtid in 0..capacity {
            if entries.len() as u64 == all {
                break;
            }
            match self.target.read_ptr(table.offset(gtid * width)) {
                Ok(addr) if addr.is_null() => {}
                Ok(addr) => entries.push((gtid, addr)),
                Err(fault) => {
                    self.issue("threads", format!("the table of threads ends early: {fault}"));
                    break;
                }
            }
        }
        entries
    }

    /// What the threads sleep on and execute is in as many places as there are threads.
    fn prefetch_waits(&self) {
        let s = &self.kmp.structs;
        let pointers = |slot: Slot| self.threads.iter().filter_map(move |t| t.view.ptr(&slot).ok());
        View::prefetch(self.target, s.flag64.size, pointers(s.info.sleep_loc));
        View::prefetch(self.target, s.taskdata.size, pointers(s.info.current_task));
    }

    /// A worker keeps its team after the region has ended (hot team). It is idle if it is in the pool of unused
    /// threads, sleeps on its own fork barrier, or serves a root that is in no parallel region at all.
    fn find_idle(&mut self) {
        let s = &self.kmp.structs;
        let mut roots: HashMap<Addr, Root> = HashMap::new();
        for index in 0..self.threads.len() {
            let thread = &self.threads[index];
            let root = match thread.view.ptr(&s.info.root) {
                Ok(addr) => *roots.entry(addr).or_insert_with(|| self.read_root(addr)),
                Err(_) => Root::default(),
            };
            let is_uber = root.uber.map(|uber| uber == thread.view.addr());
            let own_go = self.barrier_field(&thread.view, Barriers::ForkJoin, &s.bstate.go);
            let idle = match (thread.view.flag(&s.info.in_pool), is_uber, self.slept_on(&thread.view), own_go) {
                (Ok(true), ..) => idle(s.info.in_pool, Addr::NULL),
                (_, Some(true), ..) => Idle::No,
                (_, _, Ok(Some(word)), Ok(go)) if word == go => idle(s.info.sleep_loc, word),
                _ if root.in_parallel == Some(false) && is_uber == Some(false) => idle(s.root.in_parallel, Addr::NULL),
                (Err(why), ..) | (_, _, Err(why), _) | (_, _, _, Err(why)) => Idle::Unsure(why.to_string()),
                (_, None, ..) => Idle::Unsure("its root could not be read".to_owned()),
                _ => Idle::No,
            };
            let thread = &mut self.threads[index];
            thread.uber = is_uber;
            thread.idle = idle;
        }
    }

    /// The root team's only member is the initial thread (`__kmp_initialize_root`).
    fn read_root(&self, addr: Addr) -> Root {
        let s = &self.kmp.structs;
        let Ok(view) = View::read(self.target, addr, s.root.size) else { return Root::default() };
        let uber = || -> Result<Addr, Why> {
            let threads = view.ptr(&s.root.root_team)?.offset(s.team.threads.offset()?);
            Ok(self.target.read_ptr(self.target.read_ptr(threads)?)?)
        };
        Root { in_parallel: view.flag(&s.root.in_parallel).ok(), uber: uber().ok() }
    }

    /// Address of a word of a thread's barrier state.
    fn barrier_field(&self, thread: &View, which: Barriers, slot: &Slot) -> Result<Addr, Why> {
        let s = &self.kmp.structs;
        let index = BARRIERS.iter().position(|b| *b == which).unwrap_or(0) as u64;
        Ok(thread.addr_of(&s.info.bar)?.offset(index * s.bstate.size.get()?).offset(slot.offset()?))
    }

    /// The word a sleeping thread waits for, out of the flag object on its stack (`__kmp_suspend_64` and its kin).
    fn slept_on(&self, thread: &View) -> Result<Option<Addr>, Why> {
        let s = &self.kmp.structs;
        let flag = thread.ptr(&s.info.sleep_loc)?;
        if flag.is_null() {
            return Ok(None);
        }
        let slot = match thread.uint(&s.info.sleep_loc_type) {
            Ok(FLAG32) => &s.flag32.loc,
            Ok(kind) if FLAG64.contains(&kind) => &s.flag64.loc,
            Ok(kind) => return Err(Why::Inconsistent(format!("it sleeps on a flag of kind {kind}"))),
            // Before LLVM 14 the kind is not recorded, and does not matter: the word's address is the first member.
            Err(Why::Missing(_)) if s.flag32.loc.offset().ok() == s.flag64.loc.offset().ok() => &s.flag64.loc,
            Err(why) => return Err(why),
        };
        Ok(Some(self.target.read_ptr(flag.offset(slot.offset()?))?))
    }

    /// Teams are reached from the threads inside them, and from there outwards.
    fn read_teams(&mut self) {
        let starts: Vec<Addr> = self.threads.iter().filter(|t| matches!(t.idle, Idle::No)).map(|t| t.team).collect();
        for start in starts {
            let mut at = start;
            for depth in 0.. {
                if at.is_null() || self.teams.contains_key(&at) {
                    break;
                }
                if depth == limits::TEAM_DEPTH {
                    self.issue(format!("team {at}"), "the chain of enclosing teams has no end; cut off here");
                    break;
                }
                let s = &self.kmp.structs.team;
                let read = View::read(self.target, at, s.size).and_then(|view| {
                    self.check_team(&view)?;
                    let parent = view.ptr(&s.parent)?;
                    Ok((view, parent))
                });
                match read {
                    Ok((view, parent)) => {
                        self.teams.insert(at, view);
                        at = parent;
                    }
                    Err(why) => {
                        self.issue(format!("team {at}"), why);
                        break;
                    }
                }
            }
        }
    }

    /// Identities every team satisfies. Should the layout be wrong they fail, and nothing of the team is shown.
    fn check_team(&self, view: &View) -> Result<(), Why> {
        let s = &self.kmp.structs.team;
        let broken = |what: &str| Err(Why::Inconsistent(format!("self-check failed: {what}; nothing of it is shown")));
        let (nproc, level, active) = (view.int(&s.nproc)?, view.int(&s.level)?, view.int(&s.active_level)?);
        if nproc < 1 || nproc as u64 > limits::TEAM_SIZE {
            return broken("its number of threads is implausible");
        }
        if level < 0 || active < 0 || active > level {
            return broken("its nesting levels contradict each other");
        }
        let threads = view.ptr(&s.threads)?;
        let first = self.target.read_ptr(threads)?;
        if nproc > 1 && !self.by_addr.contains_key(&first) {
            return broken("its thread 0 is no thread of the runtime");
        }
        Ok(())
    }

    /// Regions a team stands for, outermost first. `t_serialized` counts serialized regions nested directly in each
    /// other; they share one team whose level is that of the innermost. Level 0 is no region.
    fn regions_of(&self, team: Addr) -> Vec<Region> {
        let s = &self.kmp.structs.team;
        let Some(view) = self.teams.get(&team) else { return Vec::new() };
        let level = view.count(&s.level).unwrap_or(0);
        let nested = view.count(&s.serialized).unwrap_or(0).clamp(1, level.max(1));
        (0..nested.min(limits::TEAM_DEPTH as u32))
            .rev()
            .map(|inner| Region { level: level.saturating_sub(inner), team })
            .filter(|r| r.level > 0)
            .collect()
    }

    /// Parents before children, then by address: ids are stable between two looks at an unchanged process.
    fn number_regions(&mut self) {
        let mut regions: Vec<Region> = self.teams.keys().flat_map(|team| self.regions_of(*team)).collect();
        regions.sort_unstable();
        self.region_ids = regions.iter().enumerate().map(|(i, r)| (*r, TeamId(i))).collect();
        self.regions = regions;
    }

    /// The innermost region of the team at `addr`, an address read through `slot`; NULL and level 0 stand for none.
    fn team_at(&self, addr: Addr, slot: &Slot) -> Fact<Option<TeamId>> {
        if addr.is_null() || self.teams.contains_key(&addr) {
            slot.fact(Ok(self.innermost(addr)))
        } else {
            Fact::unknown(format!("the team at {addr} could not be read"))
        }
    }

    /// The innermost region of a team.
    fn innermost(&self, team: Addr) -> Option<TeamId> {
        self.region_ids.get(self.regions_of(team).last()?).copied()
    }

    /// Source position out of an `ident_t`; the text is `;file;function;line;end line;;`.
    fn line(&mut self, ident: Addr, origin: Origin) -> Fact<SourceLine> {
        if ident.is_null() {
            return Fact::unknown("the runtime recorded no source position");
        }
        if let Some(known) = self.lines.get(&ident) {
            return known.clone();
        }
        let read = self.kmp.structs.ident.psource.offset().and_then(|at| {
            let text = self.target.read_ptr(ident.offset(at))?;
            Ok(self.target.read_cstr(text, limits::STRING)?)
        });
        let fact = match read {
            Ok(text) => match parse_psource(&text) {
                Some(line) => Fact::known(line, origin),
                None => Fact::unknown("the compiler recorded no source position (build with -g)"),
            },
            Err(why) => why.into(),
        };
        self.lines.insert(ident, fact.clone());
        fact
    }

    fn line_in(&mut self, view: &View, slot: &Slot) -> Fact<SourceLine> {
        match (view.ptr(slot), slot.origin()) {
            (Ok(ident), Some(origin)) => self.line(ident, origin),
            (Ok(_), None) => Fact::unknown("not known for this runtime"),
            (Err(why), _) => why.into(),
        }
    }

    fn read_tasks(&mut self) {
        let current: Vec<(Option<i32>, Addr)> = self
            .threads
            .iter()
            .filter(|t| matches!(t.idle, Idle::No))
            .filter_map(|t| Some((t.lwp, t.view.ptr(&self.kmp.structs.info.current_task).ok()?)))
            .filter(|(_, task)| !task.is_null())
            .collect();
        for (lwp, task) in current {
            let mut child: Option<TaskId> = None;
            let mut at = task;
            for depth in 0.. {
                let seen = self.task_ids.get(&at).copied();
                let id = match seen.map_or_else(|| self.add_task(at), Ok) {
                    Ok(id) => id,
                    Err(why) => {
                        if let Some(child) = child {
                            self.tasks[child.0].generating = Fact::unknown(&why);
                        }
                        self.issue(format!("task {at}"), why);
                        break;
                    }
                };
                let parent_slot = self.kmp.structs.taskdata.parent;
                if let Some(child) = child {
                    self.tasks[child.0].generating = parent_slot.fact(Ok(Some(id)));
                } else {
                    self.tasks[id.0].thread = lwp;
                    self.tasks[id.0].state = self.kmp.structs.info.current_task.fact(Ok(TaskState::Running));
                }
                if seen.is_some() {
                    break;
                }
                child = Some(id);
                match self.task_views[id.0].ptr(&parent_slot) {
                    Ok(parent) if parent.is_null() => {
                        self.tasks[id.0].generating = parent_slot.fact(Ok(None));
                        break;
                    }
                    Ok(parent) => at = parent,
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
        let mut queues: Vec<Addr> = Vec::new();
        for team in self.teams.values() {
            if let Ok(pair) = team.addr_of(&self.kmp.structs.team.task_team) {
                let width = u64::from(self.target.arch().pointer_bytes);
                queues.extend((0..2).filter_map(|i| self.target.read_ptr(pair.offset(i * width)).ok()));
            }
        }
        let mut seen = HashSet::new();
        for queue in queues {
            if !queue.is_null()
                && seen.insert(queue)
                && let Err(why) = self.read_queues(queue)
            {
                self.issue(format!("task queues {queue}"), why);
            }
        }
    }

    /// Reads one task and files it.
    fn add_task(&mut self, addr: Addr) -> Result<TaskId, Why> {
        if self.tasks.len() >= limits::TASKS {
            return Err(Why::Inconsistent(format!("more than {} tasks; the rest is not shown", limits::TASKS)));
        }
        let s = &self.kmp.structs;
        let view = View::read(self.target, addr, s.taskdata.size)?;
        let bit = |slot: &Slot| -> Result<bool, Why> { Ok(view.bits(&s.taskdata.flags, slot)? != 0) };
        let explicit = bit(&s.flags.tasktype)?;
        let started = bit(&s.flags.started)?;
        let team = view.ptr(&s.taskdata.team)?;
        let parent = view.ptr(&s.taskdata.parent)?;
        let kind = match (explicit, parent.is_null()) {
            (true, _) if bit(&s.flags.task_serial)? => TaskKind::Undeferred,
            (true, _) => TaskKind::Explicit,
            (false, true) => TaskKind::Initial,
            (false, false) => TaskKind::Implicit,
        };
        let function = if explicit {
            let at = addr.offset(s.taskdata.size.get()?).offset(s.task.routine.offset()?);
            s.task.routine.fact(self.target.read_ptr(at).map(CodeRef::new).map_err(Why::from))
        } else if kind == TaskKind::Initial {
            Fact::unknown("an initial task has no function of its own")
        } else {
            self.region_function(team)
        };
        let id = TaskId(self.tasks.len());
        let task = Task {
            descriptor: addr,
            kind: s.flags.tasktype.fact(Ok(kind)),
            state: s.flags.started.fact(Ok(if explicit && !started { TaskState::Ready } else { TaskState::Suspended })),
            function,
            location: Fact::unknown("not read"),
            generating: Fact::unknown("not read"),
            team: self.team_at(team, &s.taskdata.team),
            thread: None,
            is_final: s.flags.final_.fact(bit(&s.flags.final_)),
        };
        let ident_slot = s.taskdata.ident;
        self.tasks.push(task);
        self.task_ids.insert(addr, id);
        self.tasks[id.0].location = self.line_in(&view, &ident_slot);
        self.task_views.push(view);
        Ok(id)
    }

    /// Ready tasks of a team: each member has a ring of pointers to tasks.
    fn read_queues(&mut self, task_team: Addr) -> Result<(), Why> {
        let kmp = self.kmp;
        let s = &kmp.structs;
        let view = View::read(self.target, task_team, s.task_team.size)?;
        let (array, members) = (view.ptr(&s.task_team.threads_data)?, view.count(&s.task_team.nproc)?);
        if array.is_null() {
            return Ok(());
        }
        if u64::from(members) > limits::TEAM_SIZE {
            return Err(Why::Inconsistent(format!("it claims {members} members")));
        }
        let (stride, width) = (s.thread_data_stride.size.get()?, u64::from(self.target.arch().pointer_bytes));
        for member in 0..u64::from(members) {
            let data = View::read(self.target, array.offset(member * stride), s.thread_data.size)?;
            let d = &s.thread_data;
            let (ring, waiting) = (data.ptr(&d.deque)?, u64::from(data.count(&d.deque_ntasks)?));
            if ring.is_null() || waiting == 0 {
                continue;
            }
            let (slots, head) = (u64::from(data.count(&d.deque_size)?), data.uint(&d.deque_head)?);
            if waiting > slots || head >= slots || slots > limits::TASKS as u64 {
                return Err(Why::Inconsistent(format!("the queue of member {member} contradicts itself")));
            }
            for i in 0..waiting {
                let addr = self.target.read_ptr(ring.offset((head + i) % slots * width))?;
                if addr.is_null() || self.task_ids.contains_key(&addr) {
                    continue;
                }
                let id = self.add_task(addr)?;
                let parent = self.task_views[id.0].ptr(&s.taskdata.parent)?;
                let parent = match self.task_ids.get(&parent) {
                    Some(parent) => Ok(Some(*parent)),
                    None if parent.is_null() => Ok(None),
                    None => self.add_task(parent).map(Some),
                };
                self.tasks[id.0].generating = s.taskdata.parent.fact(parent);
            }
        }
        Ok(())
    }

    /// The function a region's body was outlined into. For code made by GCC the microtask is a wrapper inside the
    /// runtime, and its first argument is the function (`__kmp_GOMP_microtask_wrapper`). Serialized regions entered
    /// without `__kmpc_fork_call` leave the field as it was, so for them it says nothing.
    fn region_function(&self, team: Addr) -> Fact<CodeRef> {
        let s = &self.kmp.structs.team;
        let Some(view) = self.teams.get(&team) else { return Fact::unknown("the team could not be read") };
        let read = || -> Result<Fact<CodeRef>, Why> {
            if view.count(&s.serialized)? > 0 {
                return Ok(Fact::unknown("the runtime does not maintain the function of a serialized region"));
            }
            let pkfn = view.ptr(&s.pkfn)?;
            if !self.kmp.owns(self.target, pkfn) {
                return Ok(s.pkfn.fact(Ok(CodeRef::new(pkfn))));
            }
            if view.count(&s.argc)? == 0 {
                return Ok(Fact::unknown("the region's microtask is the runtime's own"));
            }
            let argv = view.ptr(&s.argv)?;
            Ok(s.argv.fact(Ok(CodeRef::new(self.target.read_ptr(argv)?))))
        };
        read().unwrap_or_else(Fact::from)
    }

    /// Set from the moment a thread queues up for a queuing lock until it is handed over
    /// (`__kmp_acquire_queuing_lock_timed_template`).
    fn queued_for_lock(&self, thread: &RawThread) -> bool {
        matches!(thread.idle, Idle::No) && thread.view.flag(&self.kmp.structs.info.spin_here).unwrap_or(false)
    }

    /// Every lock and critical of an indirect kind is in a table. A queuing lock knows its first and last waiter; the
    /// threads in between are chained. Who holds it is not recorded.
    fn read_locks(&mut self) {
        let kmp = self.kmp;
        let s = &kmp.structs;
        let mut read = || -> Result<(), Why> {
            let mut table = self.global(super::schema::LOCK_TABLE)?;
            let mut seen = HashSet::new();
            let mut visited = 0;
            while !table.is_null() && seen.insert(table) {
                let view = View::read(self.target, table, s.lock_table.size)?;
                let (rows, used) = (view.ptr(&s.lock_table.table)?, u64::from(view.u32(&s.lock_table.next)?));
                let width = u64::from(self.target.arch().pointer_bytes);
                let entry_size = s.indirect_lock.size.get()?;
                for index in 0..used {
                    visited += 1;
                    if visited > limits::LOCKS {
                        return Err(Why::Inconsistent(format!(
                            "more than {} locks; the rest is not looked at",
                            limits::LOCKS
                        )));
                    }
                    let row = self.target.read_ptr(rows.offset(index / LOCKS_PER_ROW * width))?;
                    let entry =
                        View::read(self.target, row.offset(index % LOCKS_PER_ROW * entry_size), s.indirect_lock.size)?;
                    if QUEUING.contains(&entry.uint(&s.indirect_lock.kind)?) {
                        let (lock, is_last) = (entry.ptr(&s.indirect_lock.lock)?, index);
                        if !lock.is_null() {
                            self.read_lock(lock, is_last)?;
                        }
                    }
                }
                table = view.ptr(&s.lock_table.next_table).unwrap_or(Addr::NULL);
            }
            Ok(())
        };
        if let Err(why) = read() {
            self.issue("locks", why);
        }
    }

    fn read_lock(&mut self, addr: Addr, index: u64) -> Result<(), Why> {
        let kmp = self.kmp;
        let s = &kmp.structs;
        let lock = View::read(self.target, addr, s.queuing.size)?;
        // A live lock points to itself; entries of destroyed locks are reused or stale.
        if lock.ptr(&s.queuing.initialized)? != addr {
            return Ok(());
        }
        let critical = lock.uint(&s.queuing.flags)? & 1 != 0;
        let location = self.line_in(&lock, &s.queuing.location).value().cloned();
        let (mut next, last) = (lock.int(&s.queuing.head_id)?, lock.int(&s.queuing.tail_id)?);
        let name = if critical { None } else { Some(format!("lock #{index} of the runtime's table")) };
        let kind = if critical { WaitKind::Critical } else { WaitKind::Lock };
        for _ in 0..limits::TEAM_SIZE {
            if next <= 0 {
                break;
            }
            let gtid = (next - 1) as u32;
            let Some(waiter) = self.by_gtid.get(&gtid).map(|i| &self.threads[*i]) else {
                return Err(Why::Inconsistent(format!(
                    "the lock at {addr} names gtid {gtid} as a waiter, which does not exist"
                )));
            };
            let origin = s.queuing.head_id.origin().unwrap_or(Origin::Profile);
            let wait = Wait { kind, object: addr, name: name.clone(), location: location.clone(), team: None, origin };
            self.lock_waits.insert(gtid, wait);
            if next == last {
                break;
            }
            next = waiter.view.int(&s.info.next_waiting)?;
        }
        Ok(())
    }

    fn make_teams(&mut self) -> Vec<Team> {
        let kmp = self.kmp;
        let s = &kmp.structs.team;
        let mut teams = Vec::with_capacity(self.regions.len());
        for region in self.regions.clone() {
            let view = self.teams[&region.team].clone();
            let siblings = self.regions_of(region.team);
            let outermost = siblings.first() == Some(&region);
            let size = view.count(&s.nproc);
            let parent = if outermost {
                view.ptr(&s.parent).map_or_else(Fact::from, |parent| self.team_at(parent, &s.parent))
            } else {
                let outer = Region { level: region.level - 1, team: region.team };
                s.serialized.fact(Ok(self.region_ids.get(&outer).copied()))
            };
            let serialized = view.count(&s.serialized).map(|n| n > 0);
            let location = if outermost {
                self.line_in(&view, &s.ident)
            } else {
                Fact::unknown("the runtime keeps one source position for serialized regions nested in each other")
            };
            teams.push(Team {
                descriptor: region.team,
                members: self.members_of(&view, size.as_ref().copied().unwrap_or(0)),
                serialized: s.serialized.fact(serialized),
                size: s.nproc.fact(size),
                level: s.level.fact(Ok(region.level)),
                active_level: s.active_level.fact(view.count(&s.active_level)),
                parent,
                // Serialized regions nested directly in each other are entered by thread 0 of a team of one.
                primary_num: s.master_tid.fact(if outermost { view.count(&s.master_tid) } else { Ok(0) }),
                function: self.region_function(region.team),
                location,
                barrier: self.barrier_of(&view),
            });
        }
        teams
    }

    fn members_of(&self, team: &View, size: u32) -> Vec<Option<i32>> {
        let s = &self.kmp.structs.team;
        let width = u64::from(self.target.arch().pointer_bytes);
        let array = team.ptr(&s.threads).unwrap_or(Addr::NULL);
        (0..u64::from(size).min(limits::TEAM_SIZE))
            .map(|i| {
                let member = self.target.read_ptr(array.offset(i * width)).ok()?;
                self.by_addr.get(&member).and_then(|index| self.threads[*index].lwp)
            })
            .collect()
    }

    /// A worker that has arrived has counted up its own word, the team's word follows once all have
    /// (`__kmp_barrier_template`). The primary leaves no such mark: it counts as arrived when it sleeps in the barrier.
    fn arrived_at(&self, thread: &View, team: &View) -> Option<(Barriers, Addr)> {
        let s = &self.kmp.structs;
        for which in BARRIERS {
            let index = BARRIERS.iter().position(|b| *b == which)? as u64;
            let own = self.barrier_field(thread, which, &s.bstate.arrived).ok()?;
            let stride = s.balign.size.get().ok()?;
            let shared = team.addr_of(&s.team.bar).ok()?.offset(index * stride).offset(s.balign.arrived.offset().ok()?);
            let (own_value, team_value) = (self.target.read_u64(own).ok()?, self.target.read_u64(shared).ok()?);
            if (own_value & !BARRIER_FLAGS) > (team_value & !BARRIER_FLAGS) {
                return Some((which, own));
            }
        }
        None
    }

    /// If `word` is some thread's barrier word: which barrier.
    fn barrier_word(&self, word: Addr) -> Option<Barriers> {
        let s = &self.kmp.structs;
        let (addr, index) = self.by_addr.range(..=word).next_back()?;
        if word.0 - addr.0 >= s.info.size.get().ok()? {
            return None;
        }
        let view = &self.threads[*index].view;
        BARRIERS.into_iter().find(|which| {
            [&s.bstate.arrived, &s.bstate.go]
                .iter()
                .any(|slot| self.barrier_field(view, *which, slot).ok() == Some(word))
        })
    }

    fn barrier_of(&self, team: &View) -> Fact<Barrier> {
        let s = &self.kmp.structs.team;
        if team.count(&s.serialized).is_ok_and(|n| n > 0) {
            return Fact::unknown("a team of one thread does not wait");
        }
        s.nproc.fact(team.count(&s.nproc).map(|size| Barrier { arrived: None, size }))
    }

    fn make_threads(&mut self, teams: &[Team]) -> Vec<Thread> {
        let mut threads: Vec<Thread> = (0..self.threads.len()).map(|i| self.make_thread(i, teams)).collect();
        threads.sort_by_key(|t| (t.lwp.is_none(), t.lwp, t.gtid));
        threads
    }

    fn make_thread(&mut self, index: usize, teams: &[Team]) -> Thread {
        let kmp = self.kmp;
        let s = &kmp.structs;
        let wait = self.wait_of(index);
        let raw = &self.threads[index];
        let why_none = match &raw.idle {
            Idle::No => None,
            Idle::Yes(_) => Some("an idle worker is in no team and executes no task"),
            Idle::Unsure(why) => Some(why.as_str()),
        };
        let role = match (&raw.idle, raw.uber) {
            (_, Some(true)) => s.root.root_team.fact(Ok(Role::Initial)),
            (Idle::Yes(wait), _) => Fact::known(Role::IdleWorker, wait.origin),
            (Idle::No, Some(false)) => s.root.root_team.fact(Ok(Role::Worker)),
            (Idle::No, None) => Fact::unknown("its root could not be read"),
            (Idle::Unsure(why), _) => Fact::unknown(why),
        };
        let team = match &raw.idle {
            Idle::Yes(wait) => Fact::known(None, wait.origin),
            Idle::No => self.team_at(raw.team, &s.info.team),
            Idle::Unsure(why) => Fact::unknown(why),
        };
        let task = match (raw.view.ptr(&s.info.current_task), why_none) {
            (_, Some(why)) => Fact::unknown(why),
            (Ok(task), None) if task.is_null() => Fact::unknown("the thread has no task yet"),
            (Ok(task), None) => match self.task_ids.get(&task) {
                Some(id) => s.info.current_task.fact(Ok(*id)),
                None => Fact::unknown(format!("the task at {task} could not be read")),
            },
            (Err(why), None) => why.into(),
        };
        let thread_num = match (why_none, &team) {
            (Some(why), _) => Fact::unknown(why),
            // In the root team an initial thread is alone.
            (None, Fact::Known { value: None, .. }) => s.info.team.fact(Ok(0)),
            (None, _) => s.info.ds_tid.fact(raw.view.count(&s.info.ds_tid)),
        };
        let state = match &wait {
            Fact::Known { value: Some(wait), origin } => wait.kind.state_fact(*origin),
            Fact::Known { value: None, origin } => working(&team, teams, *origin),
            Fact::Unknown { why } => Fact::unknown(why),
        };
        let icvs = match why_none {
            Some(why) => Icvs::unknown(why),
            None => self.icvs_of(&task, raw.team),
        };
        Thread {
            lwp: raw.lwp,
            descriptor: raw.view.addr(),
            gtid: Some(raw.gtid),
            role,
            thread_num,
            team,
            task,
            state,
            wait,
            icvs,
        }
    }

    /// In order of certainty: idle; in the queue of a lock; in a taskwait; asleep on a word whose meaning is known;
    /// arrived at a barrier; else it runs, unless it is inside the runtime's code, where a spinning wait may hide.
    fn wait_of(&mut self, index: usize) -> Fact<Option<Wait>> {
        let kmp = self.kmp;
        let s = &kmp.structs;
        let raw = &self.threads[index];
        match &raw.idle {
            Idle::No => {}
            Idle::Yes(wait) => return Fact::known(Some(wait.clone()), wait.origin),
            Idle::Unsure(why) => return Fact::unknown(why),
        }
        if self.queued_for_lock(raw) {
            return match self.lock_waits.get(&raw.gtid) {
                Some(wait) => Fact::known(Some(wait.clone()), wait.origin),
                None => {
                    Fact::unknown("it is queued for a lock, but no lock of the runtime's table lists it as a waiter")
                }
            };
        }
        let (view, team, registers) = (raw.view.clone(), raw.team, raw.registers.clone());
        let region = self.innermost(team);
        let task = match view.ptr(&s.info.current_task) {
            Ok(task) if task.is_null() => None,
            Ok(task) => match self.task_ids.get(&task) {
                Some(id) => Some(*id),
                None => return Fact::unknown(format!("the task at {task}, which may be waiting, could not be read")),
            },
            Err(why) => return why.into(),
        };
        if let Some(task) = task {
            let data = self.task_views[task.0].clone();
            if data.int(&s.taskdata.taskwait_thread).is_ok_and(|inside| inside > 0) {
                let location = self.line_in(&data, &s.taskdata.taskwait_ident);
                let kind = self.taskwait_kind(&data);
                return waiting(kind, data.addr(), None, location, &s.taskdata.taskwait_thread);
            }
        }
        let slept_on = match self.slept_on(&view) {
            Ok(word) => word,
            Err(why) => return why.into(),
        };
        // Set on entry to every explicit and worksharing barrier (`__kmpc_barrier`), not at the end of a region.
        let entered = self.line_in(&view, &s.info.ident);
        // Who has arrived may be executing an explicit task there: then it does not wait.
        let in_explicit = task.is_some_and(|t| self.tasks[t.0].kind.get().is_some_and(TaskKind::is_explicit));
        let arrived = self.teams.get(&team).filter(|_| !in_explicit).and_then(|team| self.arrived_at(&view, team));
        if let Some((which, word)) = arrived {
            return barrier(which, slept_on.unwrap_or(word), region, entered, &s.bstate.arrived);
        }
        if let Some(word) = slept_on {
            if let Some(which) = self.barrier_word(word) {
                return barrier(which, word, region, entered, &s.info.sleep_loc);
            }
            let nowhere = Fact::unknown("not recorded");
            if self.is_taskgroup_word(task, word) {
                return waiting(WaitKind::Taskgroup, word, None, nowhere, &s.info.sleep_loc);
            }
            if self.is_unfinished_word(&view, word) {
                return waiting(WaitKind::BarrierTasks, word, region, nowhere, &s.info.sleep_loc);
            }
            return Fact::unknown(format!("it sleeps on the runtime's word at {word}, whose meaning is not known"));
        }
        match registers {
            Some(Ok(registers)) => self.wait_by_registers(&registers),
            Some(Err(why)) => Fact::unknown(why),
            None => Fact::unknown("the process has no such thread (after fork only the forking thread lives on)"),
        }
    }

    /// Memory tells of no wait. The runtime spins in its own code or through `sched_yield` and sleeps through futex
    /// calls of the C library, so a thread found there may be waiting; a thread anywhere else is not.
    fn wait_by_registers(&self, registers: &Registers) -> Fact<Option<Wait>> {
        let futex = match self.target.arch().machine {
            Machine::X86_64 => 202,
            Machine::Aarch64 => 98,
            Machine::Other(_) => return Fact::unknown("system calls of this machine are not known"),
        };
        let other_call = registers.syscall.is_some_and(|call| call.number != futex);
        if self.kmp.owns(self.target, registers.pc) {
            Fact::unknown("it is executing the runtime's code (a spinning wait leaves no trace in memory)")
        } else if !other_call && self.kmp.in_libc(registers.pc) {
            Fact::unknown("it is in the C library, where the runtime also waits, and memory does not tell")
        } else {
            Fact::known(None, Origin::Registers)
        }
    }

    /// `__kmpc_omp_taskwait` and `__kmpc_end_taskgroup` leave the same mark. The first waits for children, the second for
    /// the tasks of the group; while there are both, memory does not tell which it is.
    fn taskwait_kind(&self, task: &View) -> WaitKind {
        let s = &self.kmp.structs;
        let group = task.ptr(&s.taskdata.taskgroup).ok().filter(|group| !group.is_null());
        let Some(group) = group else { return WaitKind::Taskwait };
        let in_group = View::read(self.target, group, s.taskgroup.size).and_then(|g| g.uint(&s.taskgroup.count));
        match (task.int(&s.taskdata.incomplete_children), in_group) {
            (Ok(1..), Ok(0)) => WaitKind::Taskwait,
            (Ok(0), Ok(1..)) => WaitKind::Taskgroup,
            _ => WaitKind::TaskwaitOrTaskgroup,
        }
    }

    /// The end of a taskgroup waits for its count to become zero (`__kmpc_end_taskgroup`).
    fn is_taskgroup_word(&self, task: Option<TaskId>, word: Addr) -> bool {
        let s = &self.kmp.structs;
        let Some(task) = task else { return false };
        let mut at = self.task_views[task.0].ptr(&s.taskdata.taskgroup).unwrap_or(Addr::NULL);
        for _ in 0..limits::TASK_DEPTH {
            if at.is_null() {
                return false;
            }
            let Ok(group) = View::read(self.target, at, s.taskgroup.size) else { return false };
            if group.addr_of(&s.taskgroup.count).is_ok_and(|count| count == word) {
                return true;
            }
            at = group.ptr(&s.taskgroup.parent).unwrap_or(Addr::NULL);
        }
        false
    }

    /// The primary, having gathered everyone, waits until no member can make tasks any more (`__kmp_task_team_wait`).
    fn is_unfinished_word(&self, thread: &View, word: Addr) -> bool {
        let s = &self.kmp.structs;
        let at = thread.ptr(&s.info.task_team).ok().filter(|t| !t.is_null());
        at.zip(s.task_team.unfinished.offset().ok()).is_some_and(|(t, offset)| t.offset(offset) == word)
    }

    fn icvs_of(&self, task: &Fact<TaskId>, team: Addr) -> Icvs {
        let s = &self.kmp.structs;
        let Some(task) = task.get() else { return Icvs::unknown("its task could not be read") };
        let view = match self.task_views[task.0]
            .addr_of(&s.taskdata.icvs)
            .and_then(|a| View::read(self.target, a, s.icvs.size))
        {
            Ok(view) => view,
            Err(why) => return Icvs::unknown(&why.to_string()),
        };
        let i = &s.icvs;
        let schedule = || Ok(schedule(view.u32(&i.sched_kind)?, view.int(&i.sched_chunk)?));
        let limit = |raw: u32| (u64::from(raw) < NO_LIMIT).then_some(u64::from(raw));
        let t = &s.team;
        let of_team = |slot: &Slot| match self.teams.get(&team) {
            Some(team) => slot.fact(team.count(slot)),
            None => Fact::unknown("its team could not be read"),
        };
        Icvs {
            nthreads: i.nproc.fact(view.count(&i.nproc).map(u64::from)),
            dynamic: i.dynamic.fact(view.flag(&i.dynamic)),
            schedule: i.sched_kind.fact(schedule()),
            max_active_levels: i.max_active_levels.fact(view.count(&i.max_active_levels).map(u64::from)),
            thread_limit: i.thread_limit.fact(view.count(&i.thread_limit).map(limit)),
            bind: i.proc_bind.fact(view.u32(&i.proc_bind).map(ProcBind)),
            levels: of_team(&t.level),
            active_levels: of_team(&t.active_level),
        }
    }
}

fn idle(by: Slot, object: Addr) -> Idle {
    match by.origin() {
        Some(origin) => {
            Idle::Yes(Wait { kind: WaitKind::Pool, object, name: None, location: None, team: None, origin })
        }
        None => Idle::No,
    }
}

fn waiting(
    kind: WaitKind,
    object: Addr,
    team: Option<TeamId>,
    line: Fact<SourceLine>,
    by: &Slot,
) -> Fact<Option<Wait>> {
    let Some(origin) = by.origin() else { return Fact::unknown("where this runtime records the wait is not known") };
    Fact::known(Some(Wait { kind, object, name: None, location: line.value().cloned(), team, origin }), origin)
}

fn barrier(which: Barriers, word: Addr, team: Option<TeamId>, line: Fact<SourceLine>, by: &Slot) -> Fact<Option<Wait>> {
    match which {
        Barriers::Plain | Barriers::Reduction => waiting(WaitKind::Barrier, word, team, line, by),
        Barriers::ForkJoin => waiting(WaitKind::RegionEnd, word, team, Fact::unknown("not recorded"), by),
    }
}

/// The runtime's schedule numbers (`enum sched_type`) as `omp_get_schedule` reports them (`__kmp_get_schedule`).
fn schedule(raw: u32, chunk: i64) -> Schedule {
    let monotonic = raw & SCHEDULE_MONOTONIC != 0;
    let (kind, chunk) = match raw & !(SCHEDULE_MONOTONIC | SCHEDULE_NONMONOTONIC) {
        // kmp_sch_static, _static_greedy, _static_balanced: no chunk was asked for.
        34 | 40 | 41 => (1, 0),
        // kmp_sch_static_chunked.
        33 => (1, chunk),
        // kmp_sch_dynamic_chunked.
        35 => (2, chunk),
        // kmp_sch_guided_chunked, _guided_iterative_chunked, _guided_analytical_chunked.
        36 | 42 | 43 => (3, chunk),
        // kmp_sch_auto.
        38 => (4, chunk),
        // The runtime's own (`kmp_sched_trapezoidal`, `kmp_sched_static_steal`).
        39 => (101, chunk),
        44 => (102, chunk),
        other => (other, chunk),
    };
    Schedule { kind, monotonic, chunk }
}

/// `;file;function;line;end line;;`. Without -g, and from GCC, file and function are `unknown` and the line is 0.
fn parse_psource(text: &str) -> Option<SourceLine> {
    let mut parts = text.split(';');
    parts.next()?;
    let (file, function, line) = (parts.next()?, parts.next()?, parts.next()?);
    let line = line.parse().ok().filter(|line| *line > 0)?;
    Some(SourceLine { file: file.to_owned(), function: function.to_owned(), line })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn psource_with_and_without_debug_info() {
        let line = parse_psource(";solve.c;main;17;17;;").expect("a position");
        assert_eq!((line.file.as_str(), line.function.as_str(), line.line), ("solve.c", "main", 17));
        assert_eq!(parse_psource(";unknown;unknown;0;0;;"), None);
        assert_eq!(parse_psource("garbage"), None);
        assert_eq!(parse_psource(""), None);
    }

    #[test]
    fn schedules_as_the_api_reports_them() {
        assert_eq!(schedule(36, 7), Schedule { kind: 3, monotonic: false, chunk: 7 });
        assert_eq!(schedule(42, 7), Schedule { kind: 3, monotonic: false, chunk: 7 });
        assert_eq!(schedule(34, 1), Schedule { kind: 1, monotonic: false, chunk: 0 });
        assert_eq!(schedule(35 | SCHEDULE_MONOTONIC, 2), Schedule { kind: 2, monotonic: true, chunk: 2 });
    }
}
