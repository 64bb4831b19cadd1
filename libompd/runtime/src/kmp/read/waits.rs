//! What a thread waits for, and whether it waits for its next region.

use ompd_layout::Origin;
use ompd_process::{Addr, Registers, TargetExt};

use super::locks::Locks;
use super::task_reader::Tasks;
use super::teams::Teams;
use super::threads::Idle;
use super::threads::{KmpThread, Threads};
use super::{BARRIERS, Barriers, Context, Notes};
use crate::bind::{Slot, StructData};
use crate::excerpt::NOT_LOOKED_FOR;
use crate::kmp::reason::Own;
use crate::limits;
use crate::model::*;
use crate::os::is_futex_wait;

/// The two low bits of a barrier word are flags (`KMP_BARRIER_SLEEP_STATE`, `KMP_BARRIER_UNUSED_STATE`).
const BARRIER_FLAGS: u64 = 3;
/// What is added to a thread's word to let it go (KMP_BARRIER_STATE_BUMP).
const BARRIER_BUMP: u64 = 4;
/// `flag_type` of a sleeper's flag object: a 32-bit word.
const FLAG32: u64 = 0;
/// `flag_type`: a 64-bit word, plain or atomic.
const FLAG64: [u64; 2] = [1, 2];

/// Where compilers put the flags into an `ident_t`, and its text. Its layout is part of the interface between compiled
/// programs and the runtime. So it is the same in all releases (kmp.h: four `kmp_int32`, then a pointer).
const IDENT_FLAGS: u64 = 4;
const IDENT_TEXT: u64 = 16;
/// `KMP_IDENT_BARRIER_EXPL`.
const EXPLICIT: u32 = 0x20;
/// `KMP_IDENT_BARRIER_IMPL_MASK`.
const IMPLICIT_MASK: u32 = 0x1c0;

/// What threads wait for, in their order, and all locks.
pub(super) struct Waits {
    pub(super) of_threads: Vec<Fact<Option<Wait>>>,
    pub(super) locks: Vec<RawLock>,
}

/// Reads what threads wait for.
pub(super) struct WaitReader<'a> {
    pub(super) context: &'a Context<'a>,
    pub(super) threads: &'a Threads,
    pub(super) teams: &'a Teams,
    pub(super) tasks: &'a Tasks,
    pub(super) locks: Locks,
    notes: &'a mut Notes,
}

/// What threads wait for. Locks are added that show in waits only.
pub(super) fn read(
    context: &Context<'_>,
    threads: &Threads,
    teams: &Teams,
    tasks: &Tasks,
    locks: Locks,
    notes: &mut Notes,
) -> Waits {
    let mut reader = WaitReader { context, threads, teams, tasks, locks, notes };
    let wait = |(index, thread): (usize, &KmpThread)| match (&thread.idle, context.reach.wants_waits()) {
        (Idle::No, false) => Fact::unknown(NOT_LOOKED_FOR),
        _ => reader.wait_of(index),
    };
    let of_threads = threads.list.iter().enumerate().map(wait).collect();
    Waits { of_threads, locks: reader.locks.list }
}

impl WaitReader<'_> {
    /// A thread's state in one kind of barrier.
    pub(super) fn barrier_state(&self, thread: &StructData, which: Barriers) -> Result<StructData, Reason> {
        let s = &self.context.kmp.structs;
        thread.within(&s.info.bar, which as u64, s.bstate.size)
    }

    /// The word a sleeping thread waits for, out of the flag object on its stack (`__kmp_suspend_64` and its kin).
    pub(super) fn slept_on(&self, thread: &StructData) -> Result<Option<Addr>, Reason> {
        let s = &self.context.kmp.structs;
        let flag = thread.ptr(&s.info.sleep_loc)?;
        if flag.is_null() {
            return Ok(None);
        }
        let (size, slot) = match thread.uint(&s.info.sleep_loc_type) {
            Ok(FLAG32) => (s.flag32.size, &s.flag32.loc),
            Ok(kind) if FLAG64.contains(&kind) => (s.flag64.size, &s.flag64.loc),
            Ok(kind) => return Err(Reason::from(Own::UnknownFlagKind { kind })),
            // Before LLVM 14 the kind is not recorded, and does not matter: the word's address is the first member.
            Err(Reason::NoLayout(_)) if s.flag32.loc.offset().ok() == s.flag64.loc.offset().ok() => {
                (s.flag32.size, &s.flag32.loc)
            }
            Err(why) => return Err(why),
        };
        if self.context.reach.is_whole() {
            return Ok(Some(StructData::read(self.context.target, flag, size)?.ptr(slot)?));
        }
        Ok(Some(StructData::read_fields(self.context.target, flag, size, &[slot], &[])?.ptr(slot)?))
    }

    /// A worker that has arrived has counted up its own word, the team's word follows once all have
    /// (`__kmp_barrier_template`). The primary leaves no such mark: it counts as arrived when it sleeps in the barrier.
    pub(super) fn arrived_at(
        &self,
        thread: &StructData,
        team: &StructData,
    ) -> Result<Option<(Barriers, Addr)>, Reason> {
        let s = &self.context.kmp.structs;
        for which in BARRIERS {
            let own = self.barrier_state(thread, which)?;
            let shared = team.within(&s.team.bar, which as u64, s.balign.size)?;
            let own_value = self.context.field(&own, &s.bstate.arrived)?;
            let team_value = self.context.field(&shared, &s.balign.arrived)?;
            if (own_value & !BARRIER_FLAGS) > (team_value & !BARRIER_FLAGS) {
                return Ok(Some((which, own.addr_of(&s.bstate.arrived)?)));
            }
        }
        Ok(None)
    }

    /// If `word` is some thread's barrier word: which barrier.
    pub(super) fn barrier_word(&self, word: Addr) -> Option<Barriers> {
        let s = &self.context.kmp.structs;
        let at = word.0 - self.threads.around(self.context, word)?.0;
        BARRIERS.into_iter().find(|which| {
            let state = match which {
                Barriers::Plain => s.info.bar.offset(),
                _ => s.info.bar.offset().and_then(|bar| {
                    Ok(bar.saturating_add(s.bstate.size.get()?.saturating_mul(*which as u64)))
                }),
            };
            let is = |slot: &Slot| matches!((&state, slot.offset()), (Ok(state), Ok(slot)) if state.wrapping_add(slot) == at);
            [&s.bstate.arrived, &s.bstate.go].into_iter().any(is)
        })
    }

    /// Which kind of barrier it is that a thread has entered last, by what the compiler handed over with the call
    /// (`__kmpc_barrier` keeps it).
    fn barrier_kind(&self, thread: &StructData) -> Fact<BarrierKind> {
        let s = &self.context.kmp.structs;
        let read = || -> Result<Option<u32>, Reason> {
            let ident = thread.ptr(&s.info.ident)?;
            if ident.is_null() || s.ident.psource.offset()? != IDENT_TEXT {
                return Ok(None);
            }
            Ok(Some(self.context.target.read_u32(ident.offset(IDENT_FLAGS))?))
        };
        let (Some(origin), flags) = (s.info.ident.origin(), read()) else {
            return Fact::unknown(Common::NotKnownOfThisRuntime);
        };
        match flags {
            Ok(Some(flags)) => match (flags & EXPLICIT != 0, flags & IMPLICIT_MASK) {
                (true, 0) => Fact::known(BarrierKind::Explicit, origin),
                (false, 0x040) => Fact::known(BarrierKind::LoopOrUnspecified, origin),
                (false, 0x0c0) => Fact::known(BarrierKind::Sections, origin),
                (false, 0x140) => Fact::known(BarrierKind::Single, origin),
                (false, IMPLICIT_MASK) => Fact::known(BarrierKind::Workshare, origin),
                _ => Fact::unknown(Own::CallNotMarked),
            },
            Ok(None) => Fact::unknown(Own::NoCallRecorded),
            Err(why) => why.into(),
        }
    }

    /// True if the record of the barrier that a thread has entered last says where that stands.
    fn has_line(&self, thread: &StructData, wait: &Wait) -> bool {
        let ident = &self.context.kmp.structs.info.ident;
        match (self.context.reach.is_whole(), thread.ptr(ident), ident.origin()) {
            (false, Ok(at), Some(origin)) if !at.is_null() => self.context.line_at(at, origin).value().is_some(),
            _ => wait.location.is_some(),
        }
    }

    /// True if its team has never made explicit tasks: their queues come with the first of them.
    fn has_no_tasks(&self, thread: &StructData) -> bool {
        let s = &self.context.kmp.structs;
        let queues = || -> Result<Addr, Reason> {
            let team = thread.ptr(&s.info.task_team)?;
            if team.is_null() {
                return Ok(Addr::NULL);
            }
            let fields = [&s.task_team.threads_data];
            let read = StructData::read_fields(self.context.target, team, s.task_team.size, &fields, &[])?;
            read.ptr(&s.task_team.threads_data)
        };
        queues().is_ok_and(Addr::is_null)
    }

    /// What a thread waits for, and whether that has happened.
    pub(super) fn wait_of(&mut self, index: usize) -> Fact<Option<Wait>> {
        let mut found = self.find_wait(index);
        if matches!(found, Fact::Known { value: Some(_), .. }) && self.is_in_other_call(index) {
            found = Fact::unknown(Common::InOtherCall);
        }
        if let Fact::Known { value: Some(wait), .. } = &mut found {
            if wait.over.get().is_none() && self.context.reach.is_whole() {
                wait.over = self.is_over(index, wait);
            }
            if let Some(Ok(registers)) = &self.threads.list[index].registers {
                let futex = self.context.futex_call();
                let sleeps = |futex| registers.syscall.is_some_and(|c| c.number == futex && is_futex_wait(c.args[1]));
                wait.asleep = futex.map(sleeps);
            }
            if wait.barrier.is_some() {
                let kind = self.barrier_kind(&self.threads.list[index].view);
                // A task executed at the barrier may have come to another one, in a region of one thread. Where the record has
                // a line, that is compared with the stack.
                let view = self.threads.list[index].view.clone();
                let unsure = kind.value().is_some() && !self.has_no_tasks(&view) && !self.has_line(&view, wait);
                wait.barrier = Some(match unsure {
                    true => Fact::unknown(Own::RecordMayBeOther),
                    false => kind,
                });
            }
            if let (None, Some(group)) = (wait.taskgroup, self.group_of(index, wait)) {
                wait.taskgroup = Some(group);
            }
        }
        // Where the runtime queues no waiters, those that were recognised are told.
        let lwp = self.threads.list[index].lwp;
        if let Fact::Known { value: Some(Wait { lock: Some(id), .. }), .. } = &found
            && let Some(lock) = self.locks.list.get_mut(id.0).filter(|lock| !lock.queued)
            && !lwp.is_some_and(|lwp| lock.waiters.contains(&lwp))
        {
            lock.waiters.extend(lwp);
        }
        found
    }

    /// True if a thread is in a system call by which the runtime does not wait. It then executes something over the wait.
    fn is_in_other_call(&self, index: usize) -> bool {
        let machine = self.context.target.arch().machine;
        // The last one goes on with a call that a stop interrupted.
        let of_waits = ["futex", "sched_yield", "restart_syscall"];
        let call = match &self.threads.list[index].registers {
            Some(Ok(registers)) => registers.syscall,
            _ => None,
        };
        let is_of_waits = |number| of_waits.iter().any(|name| machine.call_number(name) == Some(number));
        self.context.futex_call().is_some() && call.is_some_and(|call| !is_of_waits(call.number))
    }

    /// The task group at whose end a thread waits: the innermost one of its task.
    fn group_of(&self, index: usize, wait: &Wait) -> Option<TaskgroupId> {
        if !matches!(wait.kind, WaitKind::Taskgroup | WaitKind::TaskwaitOrTaskgroup) {
            return None;
        }
        let s = &self.context.kmp.structs;
        let task = self.threads.list[index].view.ptr(&s.info.current_task).ok()?;
        let task = self.tasks.ids.get(&task)?;
        self.tasks.group_ids.get(&self.tasks.views[task.0].ptr(&s.taskdata.taskgroup).ok()?).copied()
    }

    /// Compares what a thread waits for with memory.
    fn is_over(&self, index: usize, wait: &Wait) -> Fact<bool> {
        let s = &self.context.kmp.structs;
        let raw = &self.threads.list[index];
        let task = raw.view.ptr(&s.info.current_task).ok().and_then(|task| self.tasks.ids.get(&task));
        let children = || match task {
            Some(task) => self.tasks.views[task.0].count(&s.taskdata.incomplete_children),
            None => Err(Reason::from(Common::TaskWasNotRead)),
        };
        let in_group = || -> Result<u32, Reason> {
            let Some(task) = task else { return Err(Reason::from(Common::TaskWasNotRead)) };
            let group = self.tasks.views[task.0].ptr(&s.taskdata.taskgroup)?;
            StructData::read(self.context.target, group, s.taskgroup.size)?.count(&s.taskgroup.count)
        };
        match wait.kind {
            WaitKind::Taskwait => s.taskdata.incomplete_children.fact(children().map(|left| left == 0)),
            WaitKind::Taskgroup => s.taskgroup.count.fact(in_group().map(|left| left == 0)),
            WaitKind::TaskwaitOrTaskgroup => match (children(), in_group()) {
                (Ok(0), Ok(0)) => s.taskdata.incomplete_children.fact(Ok(true)),
                (Ok(1..), Ok(1..)) => s.taskdata.incomplete_children.fact(Ok(false)),
                _ => Fact::unknown(Own::WhichOfTwo),
            },
            WaitKind::BarrierTasks => {
                let left = self.context.target.read_u32(wait.object);
                s.task_team.unfinished.fact(left.map(|left| left == 0).map_err(Reason::from))
            }
            WaitKind::Barrier | WaitKind::RegionEnd | WaitKind::RegionStart | WaitKind::Pool => {
                let over = self.barrier_over(raw, wait);
                s.bstate.go.fact(over)
            }
            WaitKind::Dependences => match task.and_then(|task| self.tasks.depend_waits.get(task)) {
                Some(wait) => s.depnode.npredecessors.fact(Ok(wait.before <= 0)),
                None => Fact::unknown(Own::MemoryDoesNotTell),
            },
            _ => Fact::unknown(Own::MemoryDoesNotTell),
        }
    }

    /// A thread that has arrived at a barrier leaves it once its own `b_go` is set. The primary gathers, and in a large
    /// team other members do as well. A thread that gathers continues once the word of the thread it waits for is ahead
    /// of the team's.
    fn barrier_over(&self, raw: &KmpThread, wait: &Wait) -> Result<bool, Reason> {
        let s = &self.context.kmp.structs;
        let primary = matches!(raw.idle, Idle::No) && raw.view.count(&s.info.ds_tid)? == 0;
        if primary || self.gathers(raw, wait)? {
            let team = self.teams.found.get(&raw.team).zip(self.barrier_word(wait.object));
            let Some((team, which)) = team else {
                return Err(Reason::from(Own::WaitsForUnknown));
            };
            let shared = team.within(&s.team.bar, which as u64, s.balign.size)?.uint(&s.balign.arrived)?;
            let word = self.context.target.read_u64(wait.object)?;
            return Ok((word & !BARRIER_FLAGS) > (shared & !BARRIER_FLAGS));
        }
        let which = match wait.kind {
            WaitKind::Barrier => {
                let team = self.teams.found.get(&raw.team);
                let arrived = team.map_or(Ok(None), |team| self.arrived_at(&raw.view, team))?;
                match arrived {
                    Some((Barriers::ForkJoin, _)) => {
                        return Err(Reason::from(Own::BarrierUnknown));
                    }
                    Some((which, _)) => which,
                    // The team's count has caught up: the primary lets them go as soon as all tasks are over.
                    None if self.primary_waits_for_tasks(raw)? || self.has_children(raw)? => return Ok(false),
                    None => return Err(Reason::from(Own::LetGoUnknown)),
                }
            }
            _ => Barriers::ForkJoin,
        };
        let state = self.barrier_state(&raw.view, which)?;
        // Who has arrived nowhere may be waiting on another word altogether (barriers of the kind `dist`), unless it sleeps on
        // this one. The word of such a barrier is never set.
        if matches!(wait.kind, WaitKind::Pool | WaitKind::RegionStart)
            && self.let_in_by(&raw.view).is_none()
            && self.slept_on(&raw.view)? != Some(state.addr_of(&s.bstate.go)?)
        {
            return Err(Reason::from(Own::SpinsOnUnknown));
        }
        if state.uint(&s.bstate.wait_flag)? != 0 {
            return Err(Reason::from(Own::OthersWord));
        }
        Ok(state.uint(&s.bstate.go)? & !BARRIER_FLAGS != 0)
    }

    /// True if the thread sleeps until another one has arrived: that one's word is what it waits for.
    fn gathers(&self, raw: &KmpThread, wait: &Wait) -> Result<bool, Reason> {
        let slept_on = self.slept_on(&raw.view)?;
        let own = |word: Addr| {
            let size = self.context.kmp.structs.info.size.get();
            size.is_ok_and(|size| word >= raw.view.addr() && word.0 - raw.view.addr().0 < size)
        };
        let barrier = matches!(wait.kind, WaitKind::Barrier | WaitKind::RegionEnd);
        Ok(barrier && slept_on.is_some_and(|word| word == wait.object && !own(word)))
    }

    /// True if a member of the thread's team has made tasks that are not over: until they are, nobody is let go
    /// (`__kmp_execute_tasks_template`).
    fn has_children(&self, raw: &KmpThread) -> Result<bool, Reason> {
        let s = &self.context.kmp.structs;
        for other in self.threads.list.iter().filter(|t| matches!(t.idle, Idle::No) && t.team == raw.team) {
            let task = self.tasks.ids.get(&other.view.ptr(&s.info.current_task)?);
            let Some(task) = task.filter(|id| self.tasks.list[id.0].kind.get() == Some(TaskKind::Implicit)) else {
                continue;
            };
            if self.tasks.views[task.0].count(&s.taskdata.incomplete_children)? > 0 {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// True if the primary of the thread's team, having gathered everyone, sleeps until all tasks are over.
    fn primary_waits_for_tasks(&self, raw: &KmpThread) -> Result<bool, Reason> {
        let s = &self.context.kmp.structs;
        for other in self.threads.list.iter().filter(|t| matches!(t.idle, Idle::No) && t.team == raw.team) {
            if other.view.count(&s.info.ds_tid)? != 0 {
                continue;
            }
            if let Some(word) = self.slept_on(&other.view)? {
                return Ok(self.is_unfinished_word(&other.view, word) && self.context.target.read_u32(word)? != 0);
            }
        }
        Ok(false)
    }

    /// Looks for one wait after the other: idle; in the queue of a lock; in a taskwait; waiting for dependences;
    /// arrived at a barrier. Then: asleep on a word whose meaning is known; asleep for a futex lock. Otherwise the
    /// thread runs, unless it is inside code of the runtime or the C library, where a wait may hide.
    fn find_wait(&mut self, index: usize) -> Fact<Option<Wait>> {
        let kmp = self.context.kmp;
        let s = &kmp.structs;
        let raw = &self.threads.list[index];
        match &raw.idle {
            Idle::No => {}
            Idle::Yes(wait) => return Fact::known(Some(wait.clone()), wait.origin),
            Idle::Unsure(why) => return Fact::unknown(why),
        }
        let queued = match self.context.queued_for_lock(raw) {
            Ok(queued) => queued,
            Err(why) => return why.into(),
        };
        if queued && !self.context.reach.is_whole() {
            self.notes.short = true;
            return Fact::unknown(NOT_LOOKED_FOR);
        }
        if queued {
            return match self.locks.waits.get(&raw.gtid) {
                Some(wait) => Fact::known(Some(wait.clone()), wait.origin),
                None => Fact::unknown(Own::NotListedAsWaiter),
            };
        }
        let (view, team, registers) = (raw.view.clone(), raw.team, raw.registers.clone());
        let region = self.teams.innermost(team);
        let task = match view.ptr(&s.info.current_task) {
            Ok(task) if task.is_null() => None,
            Ok(task) => match self.tasks.ids.get(&task) {
                Some(id) => Some(*id),
                None => return Fact::unknown(Own::WaitingTaskUnreadable { task }),
            },
            Err(why) => return why.into(),
        };
        if let Some(task) = task {
            let data = self.tasks.views[task.0].clone();
            match data.int(&s.taskdata.taskwait_thread) {
                Ok(1..) => {
                    let location = self.context.line_in(&data, &s.taskdata.taskwait_ident);
                    let kind = self.taskwait_kind(&data);
                    return waiting(kind, data.addr(), None, location, &s.taskdata.taskwait_thread);
                }
                Ok(_) => {}
                Err(why) => return why.into(),
            }
            if let Some(wait) = self.tasks.depend_waits.get(&task) {
                let nowhere = Fact::unknown(Common::NotRecorded);
                return waiting(WaitKind::Dependences, wait.node, None, nowhere, &s.depnode.npredecessors);
            }
        }
        let slept_on = match self.slept_on(&view) {
            Ok(word) => word,
            Err(why) => return why.into(),
        };
        // Set on entry to every explicit and worksharing barrier (`__kmpc_barrier`), not at the end of a region.
        let entered = self.context.line_in(&view, &s.info.ident);
        // Who has arrived may be executing an explicit task there: then it does not wait. The primary counts nothing up: its
        // words are those of the enclosing team.
        let in_explicit = task.is_some_and(|t| self.tasks.list[t.0].kind.get().is_some_and(TaskKind::is_explicit));
        let primary = view.int(&s.info.ds_tid).is_ok_and(|number| number == 0);
        let read_team = self.teams.found.get(&team);
        if read_team.is_none() && !team.is_null() {
            return Fact::unknown(Own::TeamOfArrivalUnreadable);
        }
        let in_team = read_team.filter(|_| !in_explicit && !primary);
        let arrived = match in_team.map_or(Ok(None), |team| self.arrived_at(&view, team)) {
            Ok(arrived) => arrived,
            Err(why) => return why.into(),
        };
        if let Some((which, word)) = arrived {
            return barrier(which, slept_on.unwrap_or(word), region, entered, &s.bstate.arrived);
        }
        if let Some(word) = slept_on {
            // It has not arrived anywhere, and sleeps until it is let into the region.
            let own_go = self.barrier_state(&view, Barriers::ForkJoin).and_then(|state| state.addr_of(&s.bstate.go));
            if own_go.is_ok_and(|go| go == word) && !primary {
                return waiting(
                    WaitKind::RegionStart,
                    word,
                    region,
                    Fact::unknown(Common::NotRecorded),
                    &s.info.sleep_loc,
                );
            }
            if let Some(which) = self.barrier_word(word) {
                return barrier(which, word, region, entered, &s.info.sleep_loc);
            }
            let nowhere = Fact::unknown(Common::NotRecorded);
            if self.is_taskgroup_word(task, word) {
                return waiting(WaitKind::Taskgroup, word, None, nowhere, &s.info.sleep_loc);
            }
            if self.is_unfinished_word(&view, word) {
                return waiting(WaitKind::BarrierTasks, word, region, nowhere, &s.info.sleep_loc);
            }
            self.notes.short = true;
            return Fact::unknown(Own::UnknownWord);
        }
        match registers {
            Some(Ok(registers)) => match self.locks.futex_wait(self.context, self.threads, &registers) {
                Some(wait) => Fact::known(Some(wait), Origin::Registers),
                None => match self.wait_by_registers(&registers) {
                    unknown @ Fact::Unknown { .. } if !primary && !in_explicit => match self.let_in_by(&view) {
                        Some(word) => let_in(word, region, &s.bstate.go),
                        None => unknown,
                    },
                    wait => wait,
                },
            },
            Some(Err(why)) => Fact::unknown(Reason::NoRegisters(why)),
            // One of those of which too little is known to say which of the runtime's they are.
            None if self.context.target.threads().iter().any(|thread| thread.thread_pointer().is_none()) => {
                Fact::unknown(Own::UnmatchedThread)
            }
            None => Fact::unknown(Own::GoneThread),
        }
    }

    /// The word by which a worker has been let into a region, if it has not noticed that yet. Who lets it in adds [`BARRIER_BUMP`], and
    /// it clears the word when it notices (`__kmp_hyper_barrier_release` and the like). In other bits the barrier `hier` counts leaves.
    /// `None` also if the word cannot be read.
    fn let_in_by(&self, thread: &StructData) -> Option<Addr> {
        let s = &self.context.kmp.structs;
        let state = self.barrier_state(thread, Barriers::ForkJoin).ok()?;
        let is_set = state.uint(&s.bstate.wait_flag).ok()? == 0 && state.uint(&s.bstate.go).ok()? & BARRIER_BUMP != 0;
        if is_set { state.addr_of(&s.bstate.go).ok() } else { None }
    }

    /// Memory shows no wait. The runtime spins in its own code or through `sched_yield`, and sleeps through futex
    /// calls of the C library. So a thread found there may be waiting; a thread anywhere else is not.
    pub(super) fn wait_by_registers(&self, registers: &Registers) -> Fact<Option<Wait>> {
        let Some(futex) = self.context.futex_call() else {
            return Fact::unknown(Own::SystemCallsUnknown);
        };
        let other_call = registers.syscall.is_some_and(|call| call.number != futex);
        if self.context.kmp.may_own(self.context.target, registers.pc) {
            Fact::unknown(Own::InRuntimeCode)
        } else if !other_call && self.context.kmp.in_libc(registers.pc) {
            Fact::unknown(Own::InLibraryCode)
        } else {
            Fact::known(None, Origin::Registers)
        }
    }

    /// `__kmpc_omp_taskwait` and `__kmpc_end_taskgroup` leave the same mark. The first waits for children, the second for
    /// the tasks of the group; while there are both, memory does not tell which it is.
    pub(super) fn taskwait_kind(&self, task: &StructData) -> WaitKind {
        let s = &self.context.kmp.structs;
        let group = match self.context.field(task, &s.taskdata.taskgroup).map(Addr) {
            Ok(group) if group.is_null() => return WaitKind::Taskwait,
            Ok(group) => group,
            Err(_) => return WaitKind::TaskwaitOrTaskgroup,
        };
        let in_group = StructData::read(self.context.target, group, s.taskgroup.size);
        let in_group = in_group.and_then(|group| group.uint(&s.taskgroup.count));
        // An `int` that counts: with the highest bit it is none.
        match (self.context.field(task, &s.taskdata.incomplete_children), in_group) {
            (Ok(1..0x8000_0000), Ok(0)) => WaitKind::Taskwait,
            (Ok(0), Ok(1..)) => WaitKind::Taskgroup,
            _ => WaitKind::TaskwaitOrTaskgroup,
        }
    }

    /// The end of a taskgroup waits for its count to become zero (`__kmpc_end_taskgroup`).
    pub(super) fn is_taskgroup_word(&self, task: Option<TaskId>, word: Addr) -> bool {
        let s = &self.context.kmp.structs;
        let Some(task) = task else { return false };
        let group = self.context.field(&self.tasks.views[task.0], &s.taskdata.taskgroup);
        let mut at = group.map_or(Addr::NULL, Addr);
        for _ in 0..limits::TASK_DEPTH {
            if at.is_null() {
                return false;
            }
            let Ok(group) = StructData::read(self.context.target, at, s.taskgroup.size) else { return false };
            if group.addr_of(&s.taskgroup.count).is_ok_and(|count| count == word) {
                return true;
            }
            at = group.ptr(&s.taskgroup.parent).unwrap_or(Addr::NULL);
        }
        false
    }

    /// The primary, having gathered everyone, waits until no member can make tasks any more (`__kmp_task_team_wait`).
    pub(super) fn is_unfinished_word(&self, thread: &StructData, word: Addr) -> bool {
        let s = &self.context.kmp.structs;
        let at = thread.ptr(&s.info.task_team).ok().filter(|t| !t.is_null());
        at.zip(s.task_team.unfinished.offset().ok()).is_some_and(|(t, offset)| t.offset(offset) == word)
    }
}

fn waiting(
    kind: WaitKind,
    object: Addr,
    team: Option<TeamId>,
    line: Fact<SourceLine>,
    by: &Slot,
) -> Fact<Option<Wait>> {
    let Some(origin) = by.origin() else { return Fact::unknown(Own::RecordUnknown) };
    Fact::known(Some(Wait { location: line.value().cloned(), team, ..Wait::new(kind, object, origin) }), origin)
}

/// The wait of a worker that may begin its region.
fn let_in(word: Addr, team: Option<TeamId>, by: &Slot) -> Fact<Option<Wait>> {
    let mut wait = waiting(WaitKind::RegionStart, word, team, Fact::unknown(Common::NotRecorded), by);
    if let Fact::Known { value: Some(wait), .. } = &mut wait {
        wait.over = by.fact(Ok(true));
    }
    wait
}

fn barrier(which: Barriers, word: Addr, team: Option<TeamId>, line: Fact<SourceLine>, by: &Slot) -> Fact<Option<Wait>> {
    match which {
        Barriers::Plain | Barriers::Reduction => waiting(WaitKind::Barrier, word, team, line, by),
        Barriers::ForkJoin => waiting(WaitKind::RegionEnd, word, team, Fact::unknown(Common::NotRecorded), by),
    }
}
