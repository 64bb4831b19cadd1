//! What a thread waits for.

use std::collections::{HashMap, HashSet};

use ompd_layout::Origin;
use ompd_process::{Addr, Registers, TargetExt};

use super::Context;
use super::futex_meaning::FutexMeaning;
use super::futexes;
use super::pools::Pools;
use super::tasks::{SEM_COUNT, Tasks};
use super::teams::{GompTeam, Teams};
use super::threads::GompThread;
use crate::bind::StructData;
use crate::gomp::reason::Own;
use crate::model::*;
use crate::os;
use crate::owner::CodeOwner;

/// Flags in the low bits of a team barrier's generation, and what it goes up by (`BAR_*` in `config/linux/bar.h`).
const BAR_WAITING_FOR_TASK: u64 = 2;
const BAR_CANCELLED: u64 = 4;
const BAR_INCR: u32 = 8;
/// Value a thread expects in a contended `gomp_mutex_t` while it sleeps on it (`config/linux/mutex.c`).
const MUTEX_CONTENDED: u32 = u32::MAX;
/// Value it looks for the end of before: held, and nobody sleeps on it.
const MUTEX_HELD: u32 = 1;

/// A word a thread waits for to change, and how.
#[derive(Debug, Clone, Copy)]
struct Word {
    addr: Addr,
    /// It waits as long as the word has this value.
    expected: u32,
    asleep: bool,
}

impl Word {
    /// Of what threads wait for only mutexes have these values; threads never sleep on the second.
    fn is_mutex(self) -> bool {
        self.expected == MUTEX_CONTENDED || (!self.asleep && self.expected == MUTEX_HELD)
    }
}

/// Why it is not known which kind of barrier it is, unless the stack tells.
const SAME_CALL: Own = Own::SameCall;

/// What threads wait for, in their order, and the locks among it.
pub(super) struct Waits {
    pub(super) of_threads: Vec<Fact<Option<Wait>>>,
    /// Threads that execute libgomp's code, in no loop that waits for a word, and whose task waits for no other.
    pub(super) at_work: HashSet<i32>,
    pub(super) locks: Vec<RawLock>,
}

/// Reads what threads wait for.
pub(super) struct WaitReader<'a> {
    pub(super) context: &'a Context<'a>,
    pub(super) teams: &'a Teams,
    pub(super) tasks: &'a Tasks,
    pub(super) futexes: HashMap<Addr, FutexMeaning>,
    pub(super) locks: Vec<RawLock>,
    pub(super) lock_ids: HashMap<Addr, LockId>,
}

/// The register with the return address is not known.
pub(super) struct NoLink;

/// What threads wait for.
pub(super) fn read(
    context: &Context<'_>,
    threads: &[GompThread],
    pools: &Pools,
    teams: &Teams,
    tasks: &Tasks,
) -> Waits {
    let futexes = futexes::collect(context, threads, pools, teams, tasks);
    let (locks, lock_ids) = (Vec::new(), HashMap::new());
    let mut reader = WaitReader { context, teams, tasks, futexes, locks, lock_ids };
    let set_aside = Reason::from(Own::SetAside);
    let wait = |raw: &GompThread| match &raw.unsettled {
        // What it waits for in its target region is as for any other thread.
        Some(why) if *why == set_aside => reader.wait_of(&GompThread { idle: false, ..raw.clone() }),
        Some(why) => Fact::unknown(why),
        None => reader.wait_of(raw),
    };
    let mut of_threads: Vec<_> = threads.iter().map(wait).collect();
    reader.finish_locks(&mut of_threads);
    let at_work = threads.iter().zip(&of_threads).filter(|(thread, wait)| reader.is_at_work(thread, wait));
    let at_work = at_work.map(|(thread, _)| thread.lwp).collect();
    Waits { of_threads, at_work, locks: reader.locks }
}

impl Context<'_> {
    /// The owner of the code that a thread executes. A system call that the C library makes for libgomp counts as
    /// libgomp's. Its return address is still in its register, since nothing has been called in between. The kernel does not show
    /// that register of a thread that is not stopped.
    pub(super) fn executes(&self, registers: &Registers) -> Result<CodeOwner, NoLink> {
        let owner = self.gomp.owner(self.target, registers.pc);
        let facts =
            self.target.arch().machine.facts().filter(|_| owner == CodeOwner::Other && registers.syscall.is_some());
        let Some((facts, link)) = facts.and_then(|facts| Some((facts, facts.registers.link?))) else {
            return Ok(owner);
        };
        let link = Addr(registers.get(link).ok_or(NoLink)? & facts.address_bits);
        Ok(self.gomp.owner(self.target, link.back(1)))
    }

    /// False if cancellation is known to be disabled (`cancel-var`), or the library is older than it (GCC 4.9).
    pub(super) fn may_be_cancelled(&self) -> bool {
        let is_disabled = self.gomp.cancel.is_some_and(|(at, _)| matches!(self.target.read_uint(at, 1), Ok(0)));
        let mut modules = self.target.modules().iter();
        let own = modules.find(|module| module.base() == self.gomp.info.base);
        let is_older = || own.is_some_and(|own| own.file.is_ok() && own.symbol("GOMP_cancel").is_none());
        !is_disabled && !is_older()
    }

    pub(super) fn barrier_of(&self, team: &GompTeam) -> Fact<Barrier> {
        let s = &self.gomp.structs.team;
        let read = || {
            let size = team.view.u32(&s.barrier_total)?;
            let awaited = team.view.u32(&s.barrier_awaited)?;
            let awaited_final = team.view.u32(&s.barrier_awaited_final)?;
            let generation = team.view.uint(&s.barrier_generation)?;
            if awaited > size || awaited_final > size {
                return Err(Reason::from(Own::AwaitsTooMany));
            }
            // The last thread to arrive resets the count before the remaining tasks have run.
            let inside = match generation {
                g if g & BAR_WAITING_FOR_TASK != 0 => size,
                // The count keeps what it was when the region was cancelled.
                g if g & BAR_CANCELLED != 0 => 0,
                _ => size - awaited,
            };
            // The low three bits are flags (`BAR_INCR`).
            let passed = Some(generation >> 3);
            Ok(Barrier { inside: Some(inside), passed, at_end: Some(size - awaited_final), size })
        };
        s.barrier_awaited.fact(read())
    }
}

impl WaitReader<'_> {
    /// Which barrier a team's generation word stands for at this moment.
    pub(super) fn barrier_kind(&self, team: Addr) -> WaitKind {
        let s = &self.context.gomp.structs.team;
        let Some(raw) = self.teams.found.get(&team) else { return WaitKind::Barrier };
        // After a cancellation everyone goes to the end of the region, and the other count keeps what it was.
        if raw.view.uint(&s.barrier_generation).is_ok_and(|g| g & BAR_CANCELLED != 0) {
            return WaitKind::RegionEnd;
        }
        let waiting_for_task = raw.view.uint(&s.barrier_generation).is_ok_and(|g| g & BAR_WAITING_FOR_TASK != 0);
        let Ok(total) = raw.view.uint(&s.barrier_total) else { return WaitKind::Barrier };
        let begun = |slot| raw.view.uint(slot).map(|awaited| awaited < total);
        let (Ok(final_begun), Ok(plain_begun)) = (begun(&s.barrier_awaited_final), begun(&s.barrier_awaited)) else {
            return WaitKind::Barrier;
        };
        match (waiting_for_task, final_begun, plain_begun) {
            (true, _, _) => WaitKind::BarrierTasks,
            (false, true, false) => WaitKind::RegionEnd,
            _ => WaitKind::Barrier,
        }
    }

    /// libgomp's threads sleep in futex calls made by libgomp's own code, or by `syscall` of the C library, called from there.
    /// So the address they gave the kernel names what they wait for. Other futex calls are the program's own business.
    pub(super) fn wait_of(&mut self, raw: &GompThread) -> Fact<Option<Wait>> {
        let origin = Origin::Registers;
        let Some(futex) = self.context.target.arch().machine.call_number("futex") else {
            return Fact::unknown(Own::WaitsOnMachine);
        };
        let registers = match &raw.registers {
            Ok(registers) => *registers,
            // That a thread of no team waits for its next region need not be read off its registers.
            Err(why) => {
                let by = self.context.gomp.structs.pool.last_team.origin();
                return match by.filter(|_| raw.idle && raw.unsettled.is_none()) {
                    Some(by) => {
                        let wait = Wait::new(WaitKind::Pool, raw.pool.clone().unwrap_or(Addr::NULL), by);
                        Fact::known(Some(wait), by)
                    }
                    None => Fact::unknown(Reason::NoRegisters(why.clone())),
                };
            }
        };
        let other_call = registers.syscall.is_some_and(|call| call.number != futex);
        match self.context.executes(&registers) {
            Ok(CodeOwner::Runtime) => {}
            // Nobody but libgomp sleeps on a word of its own.
            Err(NoLink) if registers.syscall.is_some_and(|call| self.futexes.contains_key(&Addr(call.args[0]))) => {}
            Err(NoLink) if !other_call => return Fact::unknown(Own::CallOfEither),
            Ok(CodeOwner::Unclear) if !other_call => {
                return Fact::unknown(Own::CodeOfEither);
            }
            Ok(CodeOwner::Other | CodeOwner::Unclear) | Err(NoLink) => return Fact::known(None, origin),
        }
        let asleep = registers.syscall.filter(|c| c.number == futex && os::is_futex_wait(c.args[1])).map(|call| Word {
            addr: Addr(call.args[0]),
            expected: call.args[2] as u32,
            asleep: true,
        });
        // Woken, and not yet back at the word it slept on: the kernel keeps the arguments. An idle worker waits in any case.
        let woken = registers
            .returned
            .filter(|_| !raw.idle)
            .filter(|c| c.number == futex && os::is_futex_wait(c.args[1]))
            .map(|call| Word { addr: Addr(call.args[0]), expected: call.args[2] as u32, asleep: false });
        let word = match asleep.or(woken).or_else(|| self.spins_on(&registers)) {
            Some(word) => word,
            None if raw.idle => {
                let wait = Wait::new(WaitKind::Pool, raw.pool.clone().unwrap_or(Addr::NULL), origin);
                return Fact::known(Some(wait), origin);
            }
            None => {
                return Fact::unknown(Own::NotInWaitLoop);
            }
        };
        self.wait_for(raw, word, origin)
    }

    /// See [`Waits::at_work`]. A task that waits for others has a record of that before it blocks (`GOMP_taskwait` and
    /// `gomp_task_maybe_wait_for_dependencies` in `task.c`).
    fn is_at_work(&self, thread: &GompThread, wait: &Fact<Option<Wait>>) -> bool {
        let s = &self.context.gomp.structs;
        let task_waits = || {
            let task = thread.view.ptr(&s.thread.task)?;
            if task.is_null() {
                return Ok::<_, Reason>(false);
            }
            let view = StructData::read(self.context.target, task, s.task.size)?;
            Ok(!view.ptr(&s.task.taskwait)?.is_null())
        };
        wait.why().is_some_and(|why| why.code() == Own::NotInWaitLoop.code()) && task_waits().is_ok_and(|waits| !waits)
    }

    /// The word a thread looks at again and again before it goes to sleep on it (`do_spin` in `config/linux/wait.h`).
    fn spins_on(&self, registers: &Registers) -> Option<Word> {
        /// Bytes before and behind an instruction that a loop around it may take up.
        const AROUND: u64 = 96;
        let pc = registers.pc;
        let from = pc.back(AROUND);
        // Where the code begins within that distance, the loop may lie behind all the same.
        let code = self.context.target.read_vec(from, 2 * AROUND).map(|code| (from, code));
        let (at, code) = code.or_else(|_| self.context.target.read_vec(pc, AROUND).map(|code| (pc, code))).ok()?;
        let poll = ompd_layout::code::poll(self.context.target.arch().machine, &code, at.0, pc.0, &registers.general)?;
        Some(Word { addr: Addr(poll.addr), expected: poll.expected, asleep: false })
    }

    fn wait_for(&mut self, raw: &GompThread, word: Word, origin: Origin) -> Fact<Option<Wait>> {
        let object = word.addr;
        let gomp = self.context.gomp;
        let s = &gomp.structs;
        let futex = self.futexes.get(&object).cloned();
        let taskgroup = futex.as_ref().and_then(|futex| futex.group);
        let waiter = futex.as_ref().and_then(|futex| futex.waiter);
        let (kind, team, name) = match futex {
            // `gomp_team_end` waits once more for a nested team's threads after its thread 0 has left the team.
            Some(FutexMeaning { kind: WaitKind::Barrier, team: Some(team), name, .. }) if team != raw.team => {
                (WaitKind::RegionEnd, self.teams.team_id(team), name)
            }
            Some(FutexMeaning { kind: WaitKind::Barrier, team: Some(team), name, .. }) => {
                (self.barrier_kind(team), self.teams.team_id(team), name)
            }
            // Not only idle workers wait at the dock: so does thread 0 until all others are there to start.
            Some(FutexMeaning { kind: WaitKind::Pool, name, .. }) if !raw.idle => {
                (WaitKind::RegionStart, self.teams.team_id(raw.team), name)
            }
            Some(FutexMeaning { kind, team, name, .. }) => (kind, team.and_then(|t| self.teams.team_id(t)), name),
            // Only where the words of a team that stand for something are known, the others are known to stand for nothing.
            None if self.teams.contain(self.context, object) => match self.team_words() {
                Ok(()) => (WaitKind::RuntimeInternal, None, None),
                Err(why) => return why.into(),
            },
            None if gomp.owner(self.context.target, object) == CodeOwner::Unclear => {
                return Fact::unknown(Own::VariableOfEither);
            }
            None if gomp.owner(self.context.target, object) == CodeOwner::Runtime => {
                if gomp.default_lock.is_none() || gomp.atomic_lock.is_none() {
                    return Fact::unknown(Own::VariableOfRuntime);
                }
                (WaitKind::RuntimeInternal, None, None)
            }
            // libgomp's own objects apart, only locks and criticals are mutexes.
            None if word.is_mutex() && !self.teams.lost && s.team.size.get().is_ok() => (WaitKind::Mutex, None, None),
            None => return Fact::unknown(Own::UnknownWord),
        };
        let lock = match kind {
            WaitKind::Mutex | WaitKind::Critical | WaitKind::Atomic => {
                Some(self.lock_at(object, kind, raw.lwp, origin))
            }
            _ => None,
        };
        let over = match self.context.target.read_u32(object) {
            Ok(value) => self.over(kind, word, value, waiter, taskgroup, origin),
            Err(fault) => Fact::unknown(fault),
        };
        let asleep = Some(word.asleep);
        let mut wait = Wait { name, team, lock, taskgroup, over, asleep, ..Wait::new(kind, object, origin) };
        wait.barrier = wait.barrier.map(|_| Fact::unknown(SAME_CALL));
        Fact::known(Some(wait), origin)
    }

    /// Whether what a thread waits for has come. `value` is what its word holds now.
    fn over(
        &self,
        kind: WaitKind,
        word: Word,
        value: u32,
        waiter: Option<(Addr, Addr)>,
        group: Option<TaskgroupId>,
        origin: Origin,
    ) -> Fact<bool> {
        let s = &self.context.gomp.structs;
        let posted = value & SEM_COUNT != 0;
        // What the structures say of tasks goes before the semaphore: it is posted also when there is a task to be run.
        let tasks = |done: Result<bool, Reason>| match done {
            Ok(true) => Fact::known(true, origin),
            _ if !posted => Fact::known(false, origin),
            Ok(false) => Fact::unknown(Own::Woken),
            Err(why) => why.into(),
        };
        match kind {
            WaitKind::Barrier
            | WaitKind::BarrierTasks
            | WaitKind::RegionEnd
            | WaitKind::RegionStart
            | WaitKind::Pool => {
                if (value ^ word.expected) / BAR_INCR != 0 {
                    Fact::known(true, origin)
                } else if value & !word.expected & BAR_CANCELLED as u32 != 0 {
                    Fact::unknown(Own::Cancelled)
                } else {
                    Fact::known(false, origin)
                }
            }
            WaitKind::Ordered | WaitKind::Event => Fact::known(posted, origin),
            WaitKind::Taskwait => tasks(waiter.ok_or(Reason::NoLayout("gomp_task.taskwait")).and_then(|(task, _)| {
                let view = StructData::read(self.context.target, task, s.task.size)?;
                Ok(view.ptr(&s.task.children_root)?.is_null() && view.ptr(&s.task.children_tasks)?.is_null())
            })),
            WaitKind::Dependences => {
                tasks(waiter.ok_or(Reason::NoLayout("gomp_task.taskwait")).and_then(|(_, wait)| {
                    Ok(StructData::read(self.context.target, wait, s.taskwait.size)?.uint(&s.taskwait.n_depend)? == 0)
                }))
            }
            WaitKind::Taskgroup => {
                let group = group.and_then(|id| self.tasks.groups.get(id.0));
                let group = group.ok_or(Reason::NoLayout("gomp_task.taskgroup"));
                tasks(group.and_then(|group| Ok(group.view.uint(&s.taskgroup.num_children)? == 0)))
            }
            WaitKind::RuntimeInternal if word.is_mutex() && value != 0 => Fact::known(false, origin),
            WaitKind::RuntimeInternal => Fact::unknown(Own::EndsUnknown),
            // Of locks: known when all waiters are.
            _ => Fact::unknown(Common::NotLookedAt),
        }
    }

    /// Whether all words of a team are known that threads sleep on.
    fn team_words(&self) -> Result<(), Reason> {
        let s = &self.context.gomp.structs.team;
        [&s.barrier_generation, &s.master_release, &s.task_lock].iter().try_for_each(|slot| slot.offset().map(drop))
    }
}
