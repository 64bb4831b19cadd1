//! One consistent look at a libomp or libiomp5 instance while its process is stopped.
//!
//! Facts about the structures are in the LLVM sources `openmp/runtime/src/{kmp.h,kmp_runtime.cpp,kmp_tasking.cpp,
//! kmp_barrier.cpp,kmp_lock.h,kmp_lock.cpp,kmp_wait_release.h,kmp_gsupport.cpp}`; where a comment names a function, it
//! is found there.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap, HashSet};

use ompd_layout::Origin;
use ompd_process::{Addr, Environment, Registers, Target, TargetExt};

mod depends;
mod doacross;
mod focus;
mod groups;
mod icvs;
mod locks;
mod loops;
mod queues;
mod settings;
mod tasks;
mod waits;

use crate::kmp::reason::Own;
use super::schema::KmpInfo;
use super::{Kmp, schema};
use crate::bind::{Slot, View};
use crate::excerpt::NOT_LOOKED_FOR;
use crate::instance::SelfCheck;
use crate::limits::{self, Budget};
use crate::model::*;
use crate::family;

/// Kinds of barriers, numbered as in the arrays `th_bar` and `t_bar` (`enum barrier_type`).
#[derive(Clone, Copy, PartialEq, Eq)]
enum Barriers {
    Plain = 0,
    ForkJoin = 1,
    Reduction = 2,
}

/// One entry of `__kmp_threads`.
struct KmpThread {
    gtid: u32,
    view: View,
    lwp: Option<i32>,
    team: Addr,
    idle: Idle,
    /// It is the initial thread of its root.
    uber: Option<bool>,
    registers: Option<Result<Registers, String>>,
}

/// What was read of teams while looking for idle threads: most threads share them.
#[derive(Default)]
struct SeenTeams {
    views: HashMap<Addr, Result<View, Reason>>,
    /// The teams that a primary thread is in, by its address.
    chains: HashMap<Addr, Result<HashSet<Addr>, Reason>>,
}

/// Whether a thread waits for its next region.
enum Idle {
    No,
    Yes(Wait),
    /// What would tell could not be read: nothing may be said about its team either.
    Unsure(Reason),
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
    threads: Vec<KmpThread>,
    by_addr: BTreeMap<Addr, usize>,
    by_gtid: HashMap<u32, usize>,
    /// Every thread of the runtime, and of the process, was found.
    all_threads: bool,
    teams: BTreeMap<Addr, View>,
    regions: Vec<Region>,
    region_ids: HashMap<Region, TeamId>,
    /// The innermost region of each team that stands for any.
    innermost: HashMap<Addr, TeamId>,
    tasks: Vec<RawTask>,
    task_ids: HashMap<Addr, TaskId>,
    task_views: Vec<View>,
    lines: HashMap<Addr, Fact<SourceLine>>,
    lock_waits: HashMap<u32, Wait>,
    /// Waits for dependences, by the task that waits.
    depend_waits: HashMap<TaskId, depends::DependenceWait>,
    loops: Vec<Loop>,
    locks: Vec<RawLock>,
    /// Some thread is in the queue of a lock.
    lock_awaited: bool,
    queued: queues::Queued,
    more_tasks: Vec<MoreTasks>,
    groups: Vec<Taskgroup>,
    group_ids: HashMap<Addr, TaskgroupId>,
    /// Control variables that are lists, by the address of their struct, as far as they were asked for.
    lists: RefCell<HashMap<Addr, icvs::ItemList>>,
    budget: Budget,
    /// The same for what is read in bulk.
    bulk: Budget,
    /// Variables of the environment that concern it.
    environment: Environment,
    check: SelfCheck,
    /// A single thread is looked at.
    focused: Option<focus::Focused>,
    issues: Vec<Issue>,
}

impl<'a> Reader<'a> {
    /// What was read, and how it agrees with what has to be so.
    pub(super) fn snapshot(kmp: &'a Kmp, target: &'a dyn Target) -> (RawSnapshot, SelfCheck) {
        let mut reader = Reader::new(kmp, target);
        if let Err(why) = reader.read_threads() {
            reader.issue("threads", why);
        }
        // Whatever goes wrong with a thread leaves an issue.
        reader.all_threads = reader.issues.is_empty() && target.threads().iter().all(|t| t.thread_pointer().is_some());
        reader.find_idle();
        reader.read_teams();
        reader.number_regions();
        reader.read_tasks();
        reader.read_locks();
        reader.read_loops();
        let teams = reader.make_teams();
        let threads = reader.make_threads();
        // Free threads serve whichever contention group asks first, so all are one pool.
        let settings = reader.settings();
        let pool = Pool { threads: reader.threads.iter().map(|t| t.lwp).collect() };
        let pools = if pool.threads.is_empty() { Vec::new() } else { vec![pool] };
        let Reader { tasks, more_tasks, groups: taskgroups, locks, loops, issues, check, .. } = reader;
        let recorded = Recorded { more_tasks, taskwait_runs_children_only: false, taskgroups, loops, pools, settings };
        let snapshot = RawSnapshot { instance: kmp.info.clone(), threads, teams, tasks, locks, recorded, issues };
        (snapshot, check)
    }

    fn new(kmp: &'a Kmp, target: &'a dyn Target) -> Reader<'a> {
        Reader {
            kmp,
            target,
            threads: Vec::new(),
            by_addr: BTreeMap::new(),
            by_gtid: HashMap::new(),
            all_threads: false,
            teams: BTreeMap::new(),
            regions: Vec::new(),
            region_ids: HashMap::new(),
            innermost: HashMap::new(),
            tasks: Vec::new(),
            task_ids: HashMap::new(),
            task_views: Vec::new(),
            lines: HashMap::new(),
            lock_waits: HashMap::new(),
            depend_waits: HashMap::new(),
            loops: Vec::new(),
            locks: Vec::new(),
            lock_awaited: false,
            queued: queues::Queued::default(),
            more_tasks: Vec::new(),
            groups: Vec::new(),
            group_ids: HashMap::new(),
            lists: RefCell::default(),
            budget: Budget::default(),
            bulk: Budget::of(limits::BULK_STEPS),
            environment: target.process().environment.only(&family::variable_prefixes()),
            check: SelfCheck::default(),
            focused: None,
            issues: Vec::new(),
        }
    }

    fn issue(&mut self, subject: impl Into<String>, what: impl Into<Reason>) {
        self.issues.push(Issue::new(subject, what));
    }

    fn global(&self, name: &str) -> Result<Addr, Reason> {
        self.kmp
            .global(name)
            .map(|(addr, _)| addr)
            .ok_or_else(|| Reason::Inconsistent(format!("where this runtime keeps {name} is not known")))
    }

    /// `__kmp_threads` is indexed by gtid and has holes. Its length is `__kmp_threads_capacity`; where that is not
    /// known, the walk ends once `__kmp_all_nth` threads have been met or an entry turns out not to be a thread.
    fn read_threads(&mut self) -> Result<(), Reason> {
        let s = &self.kmp.structs.info;
        let table = self.target.read_ptr(self.global(schema::THREADS)?)?;
        if table.is_null() {
            // Loaded, but no OpenMP construct has been executed yet: __kmp_do_serial_initialize allocates the table.
            return Ok(());
        }
        let all = u64::from(self.target.read_u32(self.global(schema::ALL_NTH)?)?);
        let capacity = match self.global(schema::THREADS_CAPACITY) {
            Ok(addr) => u64::from(self.target.read_u32(addr)?),
            Err(_) => limits::THREADS,
        };
        let distance = self.target.pthread_distance();
        if distance.is_none() {
            self.issue("threads", Trouble::DescriptorsUnknown);
        }
        let of = |t: &ompd_process::Thread| Some(t.thread_pointer()?.back(distance?));
        let by_pthread: HashMap<Addr, &ompd_process::Thread> =
            self.target.threads().iter().filter_map(|t| Some((of(t)?, t))).collect();
        let entries = self.thread_entries(table, capacity.min(limits::THREADS), all);
        View::prefetch(self.target, s.size, entries.iter().map(|(_, addr)| *addr));
        let mut found = 0;
        for (gtid, addr) in entries {
            let view = View::read(self.target, addr, s.size);
            // An entry that does not name its own index is no thread: the table has ended.
            if let Ok(own) = view.as_ref().map_err(Clone::clone).and_then(|v| v.uint(&s.ds_gtid))
                // That index 0 is zero would prove nothing.
                && gtid > 0
            {
                self.check.note("the table of threads has entries that do not name their own index", own == gtid);
            }
            match view.as_ref().map(|v| v.uint(&s.ds_gtid)) {
                Ok(Ok(own)) if own == gtid => {}
                // Then the count alone says where the table ends.
                Ok(Err(why)) if why.is_layout() => {}
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
            self.threads.push(KmpThread {
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
            self.issue("threads", Trouble::ThreadsMissing { all, found });
        }
        Ok(())
    }

    /// The first `all` entries of the table of threads that are in use.
    fn thread_entries(&mut self, table: Addr, capacity: u64, all: u64) -> Vec<(u64, Addr)> {
        let width = u64::from(self.target.arch().pointer_bytes);
        // There may be holes between them.
        self.target.prefetch(&[(table, all.min(capacity) * width)]);
        let mut entries = Vec::new();
        for gtid in 0..capacity {
            if entries.len() as u64 == all {
                break;
            }
            match self.target.read_ptr(table.offset(gtid * width)) {
                Ok(addr) if addr.is_null() => {}
                Ok(addr) => entries.push((gtid, addr)),
                Err(fault) => {
                    self.issue("threads", Trouble::ThreadTableEnds { fault });
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
    /// threads, or if it is no member of a team that lives.
    fn find_idle(&mut self) {
        let s = &self.kmp.structs;
        let mut ubers: HashMap<Addr, Option<Addr>> = HashMap::new();
        let mut seen = SeenTeams::default();
        for index in 0..self.threads.len() {
            let thread = &self.threads[index];
            let uber = match thread.view.ptr(&s.info.root) {
                Ok(root) => *ubers.entry(root).or_insert_with(|| self.uber_of(root).ok()),
                Err(_) => None,
            };
            let is_uber = uber.map(|uber| uber == thread.view.addr());
            let idle = match (thread.view.flag(&s.info.in_pool), is_uber) {
                (Ok(true), _) => idle(s.info.in_pool, &thread.view),
                (_, Some(true)) => Idle::No,
                _ => match self.is_member(thread, &mut seen) {
                    Ok(true) => Idle::No,
                    Ok(false) => idle(s.team.threads, &thread.view),
                    Err(why) => Idle::Unsure(why),
                },
            };
            let thread = &mut self.threads[index];
            thread.uber = is_uber;
            thread.idle = idle;
        }
    }

    /// True if the thread is in the team it points to, and that team lives: its thread 0 is in it, directly or through
    /// regions nested in it. When a region ends, thread 0 goes back to the enclosing team (`__kmp_join_call`); the others
    /// keep pointing to the team they may be needed for again.
    fn is_member(&self, thread: &KmpThread, seen: &mut SeenTeams) -> Result<bool, Reason> {
        let s = &self.kmp.structs;
        let (team, number) = (thread.team, thread.view.count(&s.info.ds_tid)?);
        if team.is_null() {
            return Ok(false);
        }
        let read = |addr| {
            let view = View::read(self.target, addr, s.team.size)?;
            self.prefetch_members(&view);
            Ok(view)
        };
        let view = seen.views.entry(team).or_insert_with(|| read(team)).clone()?;
        if !self.lists(&view, number, thread)? {
            // Ending a region, thread 0 takes back its number in the enclosing team before it takes back that team.
            let outer = view.ptr(&s.team.parent)?;
            if !outer.is_null() && self.lists(&read(outer)?, number, thread)? {
                return Err(Reason::from(Common::OnItsWay));
            }
            return Ok(false);
        }
        let primary = self.target.read_ptr(view.ptr(&s.team.threads)?)?;
        let chain = seen.chains.entry(primary).or_insert_with(|| self.teams_of(primary));
        match chain {
            Ok(teams) => Ok(teams.contains(&team)),
            Err(why) => Err(why.clone()),
        }
    }

    /// Members are looked up one by one.
    fn prefetch_members(&self, team: &View) {
        let s = &self.kmp.structs.team;
        if let (Ok(size), Ok(array)) = (team.count(&s.nproc), team.ptr(&s.threads)) {
            let width = u64::from(self.target.arch().pointer_bytes);
            self.target.prefetch(&[(array, u64::from(size).min(limits::TEAM_SIZE) * width)]);
        }
    }

    /// True if the team has the thread as its member of this number.
    fn lists(&self, team: &View, number: u32, thread: &KmpThread) -> Result<bool, Reason> {
        let s = &self.kmp.structs.team;
        if number >= team.count(&s.nproc)? {
            return Ok(false);
        }
        let width = u64::from(self.target.arch().pointer_bytes);
        let member = self.target.read_ptr(team.ptr(&s.threads)?.offset(u64::from(number) * width))?;
        Ok(member == thread.view.addr())
    }

    /// The team a thread is in, and those around it.
    fn teams_of(&self, thread: Addr) -> Result<HashSet<Addr>, Reason> {
        let s = &self.kmp.structs;
        let mut teams = HashSet::new();
        let mut at = self.target.read_ptr(thread.offset(s.info.team.offset()?))?;
        while !at.is_null() && teams.insert(at) && teams.len() <= limits::TEAM_DEPTH {
            at = self.target.read_ptr(at.offset(s.team.parent.offset()?))?;
        }
        Ok(teams)
    }

    /// What a tool has filed with the root team of an initial thread.
    fn outermost_tool_data(&self, raw: &KmpThread) -> Fact<u64> {
        let s = &self.kmp.structs;
        if raw.uber != Some(true) {
            return Fact::unknown(Own::NotInitial);
        }
        let read = || {
            let root = raw.view.ptr(&s.info.root)?;
            let team = View::read(self.target, root, s.root.size)?.ptr(&s.root.root_team)?;
            Ok(self.target.read_u64(team.offset(s.team.parallel_tool_data.offset()?))?)
        };
        s.team.parallel_tool_data.fact(read())
    }

    /// The initial thread of a root: the only member of its root team (`__kmp_initialize_root`).
    fn uber_of(&self, root: Addr) -> Result<Addr, Reason> {
        let s = &self.kmp.structs;
        let team = View::read(self.target, root, s.root.size)?.ptr(&s.root.root_team)?;
        let threads = self.target.read_ptr(team.offset(s.team.threads.offset()?))?;
        Ok(self.target.read_ptr(threads)?)
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
                    self.issue(format!("team {at}"), Trouble::EndlessTeamsCut);
                    break;
                }
                let s = &self.kmp.structs.team;
                let read = self.team(at).and_then(|view| {
                    let identities = self.identities(&view)?;
                    self.check.judge(&identities)?;
                    // Needed to tell how many regions the team stands for.
                    view.count(&s.serialized)?;
                    let parent = view.ptr(&s.parent)?;
                    Ok((view, parent))
                });
                match read {
                    Ok((view, parent)) => {
                        self.teams.insert(at, view);
                        if self.stays_inside() {
                            break;
                        }
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

    /// Identities every team satisfies, in words for the case that they fail, and whether they hold.
    fn identities(&self, view: &View) -> Result<Vec<(&'static str, bool)>, Reason> {
        let s = &self.kmp.structs.team;
        let (nproc, level, active) = (view.int(&s.nproc)?, view.int(&s.level)?, view.int(&s.active_level)?);
        let sized = (1..=limits::TEAM_SIZE as i64).contains(&nproc);
        let mut found = vec![
            ("the number of threads of a team is implausible", sized),
            ("the nesting levels of a team contradict each other", level >= 0 && (0..=level).contains(&active)),
        ];
        if sized {
            let first = self.target.read_ptr(view.ptr(&s.threads)?)?;
            // Of a single thread's team that one was followed, and is thread 0 of it.
            let ours = nproc == 1 || self.by_addr.contains_key(&first) || self.focused.is_some();
            found.push(("thread 0 of a team is no thread of the runtime", ours));
        }
        Ok(found)
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
        let innermost = |team: &Addr| Some((*team, *self.region_ids.get(self.regions_of(*team).last()?)?));
        self.innermost = self.teams.keys().filter_map(innermost).collect();
    }

    /// The innermost region of the team at `addr`, an address read through `slot`; NULL and level 0 stand for none.
    fn team_at(&self, addr: Addr, slot: &Slot) -> Fact<Option<TeamId>> {
        if addr.is_null() || self.teams.contains_key(&addr) {
            slot.fact(Ok(self.innermost(addr)))
        } else {
            Fact::unknown(Common::TeamAtUnreadable { addr })
        }
    }

    /// The innermost region of a team.
    fn innermost(&self, team: Addr) -> Option<TeamId> {
        self.innermost.get(&team).copied()
    }

    /// Source position out of an `ident_t`; the text is `;file;function;line;end line;;`.
    fn line(&mut self, ident: Addr, origin: Origin) -> Fact<SourceLine> {
        if ident.is_null() {
            return Fact::unknown(Common::NoPosition);
        }
        if self.focused.is_some() {
            return Fact::unknown(NOT_LOOKED_FOR);
        }
        self.line_at(ident, origin)
    }

    /// The same whatever is looked at.
    fn line_at(&mut self, ident: Addr, origin: Origin) -> Fact<SourceLine> {
        if let Some(known) = self.lines.get(&ident) {
            return known.clone();
        }
        let place = &self.kmp.structs.ident;
        let read = View::read(self.target, ident, place.size).and_then(|view| {
            let text = view.ptr(&place.psource)?;
            Ok(self.target.read_cstr(text, limits::STRING)?)
        });
        let fact = match read {
            Ok(text) => match parse_psource(&text) {
                Some(line) => Fact::known(line, origin),
                None => Fact::unknown(Common::NoPositionCompiled),
            },
            Err(why) => why.into(),
        };
        self.lines.insert(ident, fact.clone());
        fact
    }

    fn line_in(&mut self, view: &View, slot: &Slot) -> Fact<SourceLine> {
        match (view.ptr(slot), slot.origin()) {
            (Ok(ident), Some(origin)) => self.line(ident, origin),
            (Ok(_), None) => Fact::unknown(Common::NotKnownOfThisRuntime),
            (Err(why), _) => why.into(),
        }
    }

    fn make_teams(&mut self) -> Vec<RawTeam> {
        let kmp = self.kmp;
        let s = &kmp.structs.team;
        let mut teams = Vec::with_capacity(self.regions.len());
        for region in self.regions.clone() {
            let view = self.teams[&region.team].clone();
            let siblings = self.regions_of(region.team);
            let outermost = siblings.first() == Some(&region);
            let size = view.count(&s.nproc);
            let parent = if outermost {
                match view.ptr(&s.parent) {
                    Ok(parent) if self.stays_inside() && !self.teams.contains_key(&parent) => {
                        Fact::unknown(NOT_LOOKED_FOR)
                    }
                    Ok(parent) => self.team_at(parent, &s.parent),
                    Err(why) => why.into(),
                }
            } else {
                let outer = Region { level: region.level - 1, team: region.team };
                s.serialized.fact(Ok(self.region_ids.get(&outer).copied()))
            };
            let serialized = view.count(&s.serialized).map(|n| n > 0);
            let location = if outermost {
                self.line_in(&view, &s.ident)
            } else {
                Fact::unknown(Own::OnePosition)
            };
            teams.push(RawTeam {
                // Of regions inside it that it stands for as well the runtime keeps it elsewhere.
                tool_data: match view.count(&s.serialized) {
                    Ok(..=1) => s.parallel_tool_data.fact(view.uint(&s.parallel_tool_data)),
                    Ok(_) => {
                        Fact::unknown(Own::ToolDataElsewhere)
                    }
                    Err(why) => why.into(),
                },
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
        if self.focused.is_some() {
            return Vec::new();
        }
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

    fn barrier_of(&self, team: &View) -> Fact<Barrier> {
        let s = &self.kmp.structs.team;
        if team.count(&s.serialized).is_ok_and(|n| n > 0) {
            return Fact::unknown(Common::LoneTeam);
        }
        let passed = || {
            // Each kind of barrier counts for itself, by 4.
            [Barriers::Plain, Barriers::ForkJoin, Barriers::Reduction].into_iter().try_fold(0u64, |sum, which| {
                let shared = team.within(&s.bar, which as u64, self.kmp.structs.balign.size)?;
                Ok::<u64, Reason>(sum.wrapping_add(shared.uint(&self.kmp.structs.balign.arrived)? >> 2))
            })
        };
        let passed = passed().ok();
        s.nproc.fact(team.count(&s.nproc).map(|size| Barrier { inside: None, passed, at_end: None, size }))
    }

    fn make_threads(&mut self) -> Vec<RawThread> {
        let mut threads: Vec<RawThread> = (0..self.threads.len()).map(|i| self.make_thread(i)).collect();
        threads.sort_by_key(|t| (t.lwp.is_none(), t.lwp, t.gtid));
        threads
    }

    fn make_thread(&mut self, index: usize) -> RawThread {
        let kmp = self.kmp;
        let s = &kmp.structs;
        let wait = match &self.focused {
            Some(focused) if !focused.wait && matches!(self.threads[index].idle, Idle::No) => {
                Fact::unknown(NOT_LOOKED_FOR)
            }
            _ => self.wait_of(index),
        };
        let raw = &self.threads[index];
        let why_none = match &raw.idle {
            Idle::No => None,
            Idle::Yes(_) => Some(Common::IdleWithoutEither.into()),
            Idle::Unsure(why) => Some(why.clone()),
        };
        let role = match (&raw.idle, raw.uber) {
            (_, Some(true)) => s.root.root_team.fact(Ok(Role::Initial)),
            (Idle::Yes(wait), _) => Fact::known(Role::IdleWorker, wait.origin),
            (Idle::No, Some(false)) => s.root.root_team.fact(Ok(Role::Worker)),
            (Idle::No, None) if self.focused.is_some() => Fact::unknown(NOT_LOOKED_FOR),
            (Idle::No, None) => Fact::unknown(Own::ContentionGroup),
            (Idle::Unsure(why), _) => Fact::unknown(why),
        };
        let team = match &raw.idle {
            Idle::Yes(wait) => Fact::known(None, wait.origin),
            Idle::No => self.team_at(raw.team, &s.info.team),
            Idle::Unsure(why) => Fact::unknown(why),
        };
        let task = match (raw.view.ptr(&s.info.current_task), &why_none) {
            (_, Some(why)) => Fact::unknown(why),
            (Ok(task), None) if task.is_null() => Fact::unknown(Own::NoTaskYet),
            (Ok(task), None) => match self.task_ids.get(&task) {
                Some(id) => s.info.current_task.fact(Ok(*id)),
                None if self.focused.is_some() => Fact::unknown(NOT_LOOKED_FOR),
                None => Fact::unknown(Common::TaskAtUnreadable { task }),
            },
            (Err(why), None) => why.into(),
        };
        let thread_num = match (&why_none, &team) {
            (Some(why), _) => Fact::unknown(why),
            // In the root team an initial thread is alone.
            (None, Fact::Known { value: None, .. }) => s.info.team.fact(Ok(0)),
            (None, _) => s.info.ds_tid.fact(raw.view.count(&s.info.ds_tid)),
        };
        let icvs = match &why_none {
            Some(why) => Icvs::unknown(why),
            None => self.icvs_of(&raw.view, &task, raw.team),
        };
        let placement = match &why_none {
            Some(why) => Placement::unknown(why),
            None => self.placement_of(&raw.view),
        };
        RawThread {
            tool_data: s.info.thread_tool_data.fact(raw.view.uint(&s.info.thread_tool_data)),
            outermost_tool_data: self.outermost_tool_data(raw),
            ompt_state: ompt_state(&s.info, &raw.view),
            placement,
            lwp: raw.lwp,
            descriptor: raw.view.addr(),
            gtid: Some(raw.gtid),
            role,
            thread_num,
            team,
            task,
            wait,
            icvs,
        }
    }
}

/// What the runtime keeps of the thread's state. Without a tool it keeps none, although there is one: zero, which is the number of a state
/// as well, or, for an initial thread of libomp 14, that it works in parallel. So it counts only where a tool has filed something.
fn ompt_state(s: &KmpInfo, thread: &View) -> Fact<OmptState> {
    let read = || {
        if thread.uint(&s.thread_tool_data)? == 0 {
            return Ok(None);
        }
        let (number, wait_id) = (thread.count(&s.ompt_state)?, thread.uint(&s.ompt_wait_id)?);
        Ok::<_, Reason>(Some(OmptState { number, wait_id }))
    };
    match read() {
        Ok(Some(state)) => s.ompt_state.fact(Ok(state)),
        Ok(None) => Fact::unknown(
            Own::NoState,
        ),
        Err(why) => why.into(),
    }
}

fn idle(by: Slot, thread: &View) -> Idle {
    match by.origin() {
        Some(origin) => {
            let object = thread.addr();
            Idle::Yes(Wait::new(WaitKind::Pool, object, origin))
        }
        None => Idle::Unsure(Own::TeamsUnknown.into()),
    }
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
}
