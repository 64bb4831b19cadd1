//! Reading a process while its threads sleep, without stopping them.
//!
//! A hung process does not change by itself. If all its threads sleep or are stopped from before the first read to
//! after the last, all reads are of one moment. The proof, and what it rests on in the kernel, is in
//! docs/internals/stops.md.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::time::Duration;

use super::memory::Kept;
use super::procdir::{ProcDir, Tasks};
use super::sleep::{Sleep, Sparing};
use super::tracer::Caught;
use super::{Live, gone_or};
use crate::error::OpenError;
use crate::options::Pause;
use crate::thread::{Registers, Thread};
use crate::{Holder, TargetExt as _};

/// How often the threads are listed at most. One listing is enough unless threads come and go.
const MAX_LISTINGS: usize = 16;

/// Why a thread has no registers that ran.
pub(super) const RAN: &str = "it ran, and nothing was stopped (--pause never)";

/// What was read of a process of which few threads or none were stopped.
#[derive(Debug)]
pub struct StillRead<T> {
    /// What was made of it.
    pub found: T,
    /// Threads that were not stopped and may have run during the read, in order. If there are none, all data is of one moment.
    pub moved: Vec<i32>,
    /// How many threads were stopped.
    pub stopped: usize,
    /// How often.
    pub stops: u32,
    /// How long they were.
    pub pause: Duration,
    kept: Kept,
}

/// The threads of a process, and what each sleeps in.
#[derive(Debug)]
pub(super) struct Stillness {
    /// When the process was started, in ticks since boot.
    started: u64,
    /// `None`: the thread did not sleep in a system call.
    threads: BTreeMap<i32, Option<Sleep>>,
    /// There were no others when all of these had been looked at.
    is_closed: bool,
}

impl Stillness {
    /// `are_held`: another process has stopped them.
    fn of(process: &ProcDir, are_held: bool) -> std::io::Result<Stillness> {
        let ask: fn(&mut Tasks, i32) -> Option<Sleep> = if are_held { Sleep::of_held } else { Sleep::of };
        let mut threads: BTreeMap<i32, Option<Sleep>> = BTreeMap::new();
        for _ in 0..MAX_LISTINGS {
            let listed = process.tasks()?;
            let new: Vec<i32> = listed.iter().copied().filter(|tid| !threads.contains_key(tid)).collect();
            // A listing may miss a thread while others end.
            if listed.len() != threads.len() + new.len() {
                let listed: HashSet<i32> = listed.into_iter().collect();
                threads.retain(|tid, _| listed.contains(tid));
            }
            let sleeps = Tasks::ask_all(process, &new, ask)?;
            threads.extend(new.into_iter().zip(sleeps));
            // The number shows whether the listing is complete. If one of these has ended by now, it is seen to have moved at the end.
            let stat = process.stat()?;
            if usize::try_from(stat.num_threads) == Ok(threads.len()) {
                return Ok(Stillness { started: stat.starttime, threads, is_closed: true });
            }
        }
        Ok(Stillness { started: process.stat()?.starttime, threads, is_closed: false })
    }

    /// Those of `threads` that may have executed something since, though others of the process were stopped.
    fn moved_of(&self, process: &ProcDir, threads: Vec<i32>) -> Vec<i32> {
        let has_moved = |tasks: &mut Tasks, tid| match self.threads.get(&tid) {
            Some(Some(before)) => !before.lasts(tasks, tid),
            _ => true,
        };
        let Ok(moved) = Tasks::ask_all(process, &threads, has_moved) else { return threads };
        threads.into_iter().zip(moved).filter(|(_, moved)| *moved).map(|(tid, _)| tid).collect()
    }

    /// Threads that may have executed something since.
    fn moved(&self, process: &ProcDir) -> Vec<i32> {
        let mut moved = self.moved_of(process, self.threads.keys().copied().collect());
        let now = process.stat().ok().filter(|stat| stat.starttime == self.started);
        let as_many = now.is_some_and(|stat| usize::try_from(stat.num_threads) == Ok(self.threads.len()));
        if moved.is_empty() && !(self.is_closed && as_many) {
            moved.push(process.pid);
        }
        moved
    }
}

impl Live {
    /// The process that traces this one, if there is one. This program is not counted.
    pub fn other_tracer(&self) -> Option<Holder> {
        match self.process.explain_denial(self.process.pid) {
            OpenError::OtherTracer { tracer, name, .. } => Some(Holder { pid: tracer, name }),
            _ => None,
        }
    }

    /// From now on the process is read as it stands while `holder` traces it. It counts as still as long as `holder` has stopped all
    /// its threads.
    pub fn leave_to(&mut self, holder: Option<Holder>) {
        self.info.held_by = holder;
    }

    /// Whether the process is to be stopped.
    pub fn pause(&self) -> Pause {
        self.pause
    }

    /// False if [`Live::stop`] leaves the thread asleep, for it would end its system call early.
    pub fn may_be_stopped(&self, lwp: i32) -> bool {
        Sparing::of(self.arch.machine).sleep(&self.process, lwp).is_none()
    }

    /// Reads the process while its threads sleep, and stops those that do not. Also stops threads of `held`, unless
    /// that would end their system call early. The others have the registers that procfs shows. With [`Pause::Never`]
    /// none is stopped.
    ///
    /// `None`, without a read, where it is better to stop all threads. Either most would have to be stopped, or the
    /// thread pointer of another thread is unknown.
    ///
    /// # Errors
    /// As [`Live::stop`].
    pub fn read_still<T>(
        &mut self,
        held: &BTreeSet<i32>,
        read: impl FnOnce(&Live) -> T,
    ) -> Result<Option<StillRead<T>>, OpenError> {
        let pid = self.process.pid;
        self.still = None;
        if self.tracer.is_some() {
            return Ok(None);
        }
        if let Some(servers) = &self.debuginfod {
            servers.close();
        }
        let are_held = self.info.held_by.is_some();
        let before = Stillness::of(&self.process, are_held).map_err(|e| gone_or(e, pid, "threads"))?;
        let never = self.pause == Pause::Never || are_held;
        let sparing = Sparing::of(self.arch.machine);
        let may_be_left = |lwp: &i32, sleep: &Sleep| {
            !held.contains(lwp) || sleep.call.is_some_and(|call| sparing.ends(&self.process, call))
        };
        let is_left = |(lwp, sleep): (&i32, &Option<Sleep>)| {
            (never || sleep.as_ref().is_some_and(|sleep| may_be_left(lwp, sleep))).then_some(*lwp)
        };
        let left: HashSet<i32> = before.threads.iter().filter_map(is_left).collect();
        let others = before.threads.len() - left.len();
        if others > left.len() || !before.is_closed && !never {
            return Ok(None);
        }
        let mut names: HashMap<i32, String> =
            self.threads.iter_mut().filter_map(|t| Some((t.lwp, t.name.take()?))).collect();
        for (lwp, sleep) in &before.threads {
            let of_sleeper = || sleep.as_ref().and_then(|sleep| sleep.name.clone());
            if let Entry::Vacant(entry) = names.entry(*lwp)
                && let Some(name) = of_sleeper().or_else(|| self.process.task_name(*lwp))
            {
                entry.insert(name);
            }
        }
        let held = match others {
            0 => None,
            _ => Some(self.trace(&HashSet::new(), &sparing, &left)?),
        };
        let (begun, tracer, caught) = match held {
            Some((begun, tracer, caught)) => (Some(begun), Some(tracer), caught),
            None => (None, None, Vec::new()),
        };
        self.check_same()?;
        let asleep = before.threads.iter().filter(|(lwp, _)| left.contains(lwp)).map(|(lwp, sleep)| Caught {
            lwp: *lwp,
            registers: sleep.as_ref().and_then(|sleep| sleep.registers(self.arch)).ok_or_else(|| RAN.to_owned()),
            blocked_signals: sleep.as_ref().and_then(|sleep| sleep.blocked_signals),
        });
        let stopped = caught.len();
        let mut all: Vec<Caught> = caught.into_iter().chain(asleep).collect();
        all.sort_by_key(|caught| caught.lwp);
        let thread = |Caught { lwp, registers, blocked_signals }| {
            let name = names.remove(&lwp);
            Thread { lwp, name, registers, pointer: None, signal: 0, blocked_signals }
        };
        self.threads = all.into_iter().map(thread).collect();
        self.note_unread();
        self.info.handled_signals = self.process.status().ok().map(|status| status.sigcgt);
        match begun {
            Some(begun) => self.hold_memory(begun),
            None => self.memory.keep(),
        }
        self.find_calls();
        self.find_pointers();
        for thread in &mut self.threads {
            if let Ok(registers) = &mut thread.registers {
                registers.thread_pointer = registers.thread_pointer.or(thread.pointer);
            }
        }
        let knows_all = self.threads.iter().all(|thread| thread.thread_pointer().is_some());
        let found = (never || knows_all).then(|| read(self));
        let pause = tracer.map(|tracer| tracer.resume().pause).unwrap_or_default();
        let kept = match never || stopped > 0 {
            true => {
                self.memory.release();
                Kept::default()
            }
            false => self.memory.release_to_compare(),
        };
        let Some(found) = found else { return Ok(None) };
        let moved = match stopped {
            0 => before.moved(&self.process),
            // The stopped threads run again. A thread that still sleeps now also slept during the read.
            _ => {
                let mut left: Vec<i32> = left.into_iter().collect();
                left.sort_unstable();
                before.moved_of(&self.process, left)
            }
        };
        self.still = (stopped == 0 && moved.is_empty()).then_some(before);
        Ok(Some(StillRead { found, moved, stopped, stops: u32::from(stopped > 0), pause, kept }))
    }

    /// Stops threads that a look has left asleep, only for their registers, unless that would end their system call early.
    /// If all is as it was, the look is of the moment of this stop: see docs/internals/stops.md. `is_same` compares what the look
    /// has copied itself. False if the look does not count.
    ///
    /// # Errors
    /// As [`Live::stop`].
    pub fn add_registers<T>(
        &mut self,
        look: &mut StillRead<T>,
        wanted: &BTreeSet<i32>,
        is_same: impl FnOnce(&Live, &T) -> bool,
    ) -> Result<bool, OpenError> {
        let sparing = Sparing::of(self.arch.machine);
        let Some(before) = self.still.take() else { return Ok(false) };
        let may_be_stopped = |lwp: &i32| {
            let sleep = before.threads.get(lwp).and_then(Option::as_ref);
            sleep.is_some_and(|sleep| !sleep.call.is_some_and(|call| sparing.ends(&self.process, call)))
        };
        let wanted: BTreeSet<i32> = wanted.iter().copied().filter(may_be_stopped).collect();
        if wanted.is_empty() {
            self.still = Some(before);
            return Ok(true);
        }
        // Where a stop puts threads back to another instruction, they are never where they slept.
        let is_rewound = self.arch.machine.facts().is_some_and(|facts| facts.kernel_set.rewound.is_some());
        if is_rewound || 2 * wanted.len() > before.threads.len() || look.kept.pieces().is_none() {
            return Ok(false);
        }
        let left: HashSet<i32> = before.threads.keys().copied().filter(|lwp| !wanted.contains(lwp)).collect();
        let (begun, tracer, caught) = self.trace(&HashSet::new(), &sparing, &left)?;
        self.check_same()?;
        self.memory.limit(self.times(begun));
        let is_same = caught.iter().map(|caught| caught.lwp).collect::<BTreeSet<i32>>() == wanted
            && caught.iter().all(|caught| self.is_where_it_slept(caught))
            && look.kept.pieces().is_some_and(|pieces| self.holds(pieces))
            && is_same(self, &look.found);
        look.pause += tracer.resume().pause;
        self.memory.unlimit();
        look.stops += u32::from(!caught.is_empty());
        look.stopped = caught.len();
        if !is_same || !before.moved_of(&self.process, left.into_iter().collect()).is_empty() {
            return Ok(false);
        }
        for Caught { lwp, registers, .. } in caught {
            let Ok(at) = self.threads.binary_search_by_key(&lwp, |thread| thread.lwp) else { continue };
            if let (Some(Ok(own)), Ok(all)) = (self.threads.get_mut(at).map(|t| &mut t.registers), registers) {
                let Registers { fp, general, known, .. } = all;
                let thread_pointer = all.thread_pointer.or(own.thread_pointer);
                *own = Registers { fp, general, known, thread_pointer, ..*own };
            }
        }
        Ok(true)
    }

    /// True if a thread is stopped in the call that it slept in.
    fn is_where_it_slept(&self, caught: &Caught) -> bool {
        let at = self.threads.binary_search_by_key(&caught.lwp, |thread| thread.lwp);
        let Some(asleep) = at.ok().and_then(|at| self.threads.get(at)) else { return false };
        let (Ok(before), Ok(now)) = (&asleep.registers, &caught.registers) else { return false };
        let call = |registers: &Registers| registers.syscall.map(|call| (call.number, call.args));
        (before.pc, before.sp, call(before)) == (now.pc, now.sp, call(now))
            && asleep.blocked_signals == caught.blocked_signals
    }

    /// True if the last look was [`Live::read_still`] and stopped nothing, and no thread has executed anything since.
    pub fn is_still(&self) -> bool {
        self.still.as_ref().is_some_and(|still| still.moved(&self.process).is_empty())
    }
}
