//! The block that an OMPT companion leaves in a process (`ompt-record`): found, read, and what it adds to what the runtime tells.

use std::collections::HashMap;

use ompd_process::{Addr, ByteOrder, Module, ReadError, Target, TargetExt, Thread, memory};
use ompt_record::block::{CreationValues, RingState, RingValues, SYMBOL, Stop, in_ring};
use ompt_record::offload::{self, Unfinished};
use ompt_record::read::{Block, Memory, NoBlock, RingAt};

use crate::model::{RawSnapshot, Trouble};
use crate::stops::StopEvent;

#[cfg(test)]
mod tests;

/// The memory of a target as a companion's words.
#[derive(Clone, Copy)]
pub struct Words<'t> {
    target: &'t dyn Target,
    /// What was read before is read again.
    anew: bool,
}

impl std::fmt::Debug for Words<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Words").finish_non_exhaustive()
    }
}

impl<'t> Words<'t> {
    /// Those of a target that stands still.
    pub fn of(target: &'t dyn Target) -> Words<'t> {
        Words { target, anew: false }
    }

    /// Those of a process that runs: each time they are asked for they are what they are then.
    pub fn of_running(target: &'t dyn Target) -> Words<'t> {
        Words { target, anew: true }
    }

    fn bytes(&self, at: Addr, count: u64) -> Result<Vec<u8>, ReadError> {
        if self.anew {
            let (bytes, done) = self.target.read_ranges(&[(at, count)]);
            if done.first() == Some(&true) {
                return Ok(bytes);
            }
        }
        // Also to find out why it cannot be read.
        self.target.read_vec(at, count)
    }
}

impl Memory for Words<'_> {
    type Error = ReadError;

    fn words(&self, at: u64, count: usize) -> Result<Vec<u64>, ReadError> {
        let order = self.target.arch().byte_order;
        let mut words = Vec::new();
        // Rings may be larger than what is read at once.
        let most = usize::try_from(memory::MAX_READ).unwrap_or(usize::MAX) / size_of::<u64>();
        let mut at = Addr(at);
        let mut left = count;
        while left > 0 {
            let now = left.min(most);
            let bytes = self.bytes(at, (now * size_of::<u64>()) as u64)?;
            words.extend(bytes.as_chunks::<8>().0.iter().map(|word| number(order, word)));
            at = at.offset((now * size_of::<u64>()) as u64);
            left -= now;
        }
        Ok(words)
    }
}

fn number(order: ByteOrder, word: &[u8; 8]) -> u64 {
    order.uint(word)
}

/// A function that whatever starts a tool exports; the runtimes with OMPT have one as well.
const START: &str = "ompt_start_tool";

/// The words in which the companions of a process keep the addresses of their blocks. Call it before the process is
/// stopped, since it reads symbol tables. It reads those of files that export this word, or what starts a tool, as a
/// program with a companion built in does.
pub fn words(target: &dyn Target) -> Vec<Addr> {
    let starts_tools = |module: &&Module| module.exports(SYMBOL) || module.exports(START);
    let symbols = target.modules().iter().filter(starts_tools).filter_map(|module| module.symbol(SYMBOL));
    symbols.filter(|symbol| !symbol.tls).map(|symbol| symbol.addr).collect()
}

/// Files that can start an OMPT tool, in the order in which they are mapped. The runtimes have that function too and
/// are left out: `runtimes` is where they begin.
pub fn tools(target: &dyn Target, runtimes: &[Addr]) -> Vec<String> {
    let starts = |module: &&Module| module.exports(START) && !runtimes.contains(&module.base());
    target.modules().iter().filter(starts).map(|module| module.path.clone()).collect()
}

/// Finds the block of a process: `None` if no companion is in it, or one that has not begun. `words` is what [`words`] gave.
///
/// # Errors
/// If there is one, and its block cannot be read.
pub fn find(target: &dyn Target, words: &[Addr]) -> Option<Result<Block, NoBlock<ReadError>>> {
    // If one companion is linked into the program and another one is preloaded, the runtime asks only the first. The
    // other one stays without a block.
    words.iter().find_map(|word| match target.read_u64(*word) {
        Ok(0) => None,
        Ok(at) => Some(Block::open(&Words::of(target), at)),
        Err(why) => Some(Err(NoBlock::Unreadable { at: word.0, why })),
    })
}

/// A thread that the companion has led to a stop point of OMPD.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AtStopPoint {
    /// What begins or ends.
    pub event: StopEvent,
    /// The thread's number in the block, which it has as tool data.
    pub id: u64,
    /// What the companion takes for the kernel's id of it: in a PID namespace it is another one.
    pub lwp: Option<i32>,
}

/// The threads of one runtime that the companion has led to stop points.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AtStopPoints {
    /// Where the runtime begins.
    pub runtime: Option<Addr>,
    /// The threads.
    pub threads: Vec<AtStopPoint>,
}

/// Whether a library of the process has stop points for the companion to call.
pub fn has_stop_points(target: &dyn Target) -> bool {
    let name = Stop::ParallelBegin.symbol().to_string_lossy();
    target.modules().iter().any(|module| module.exports(&name))
}

/// Which threads are at stop points that the companion calls: `None` if it has not begun. `words` is what [`words`] gave.
///
/// # Errors
/// If what the companion says cannot be read.
pub fn at_stop_points(target: &dyn Target, words: &[Addr]) -> Option<Result<AtStopPoints, NoBlock<ReadError>>> {
    let block = match find(target, words)? {
        Ok(block) => block,
        Err(why) => return Some(Err(why)),
    };
    let words = Words::of(target);
    let runtime = target.module_at(Addr(block.header.lookup)).map(Module::base);
    let mut threads = Vec::new();
    for ring in block.rings(&words).0.into_iter().filter(|ring| ring.values.state == RingState::Used as u64) {
        match block.stop(&words, ring) {
            Ok(None) => {}
            Ok(Some(stop)) => threads.push(AtStopPoint {
                event: event(stop),
                id: ring.values.id,
                lwp: i32::try_from(ring.values.lwp).ok(),
            }),
            Err(why) => return Some(Err(NoBlock::Unreadable { at: block.at, why })),
        }
    }
    Some(Ok(AtStopPoints { runtime, threads }))
}

fn event(stop: Stop) -> StopEvent {
    match stop {
        Stop::ParallelBegin => StopEvent::ParallelBegin,
        Stop::ParallelEnd => StopEvent::ParallelEnd,
        Stop::TaskBegin => StopEvent::TaskBegin,
        Stop::TaskEnd => StopEvent::TaskEnd,
        Stop::ThreadBegin => StopEvent::ThreadBegin,
        Stop::ThreadEnd => StopEvent::ThreadEnd,
    }
}

/// Finds the thread of a target that a ring belongs to.
///
/// The companion knows its thread by the kernel's id and by `pthread_self()`. In a PID namespace (a container) the
/// kernel's id is another one than outside; `pthread_self()` is the same everywhere. In the child of a fork, the
/// threads that were left behind have rings as well. Such a ring matches no thread of the child.
struct Threads {
    /// The kernel's ids by `pthread_self()`; `None` if pointers of threads cannot be had.
    by_pthread: Option<HashMap<u64, i32>>,
    /// The companion's ids of threads are the same as the target's.
    same_ids: bool,
}

impl Threads {
    /// `None` if no ring can be said to be a thread's.
    fn of(target: &dyn Target, block: &Block) -> Option<Threads> {
        let own = |pid| u64::try_from(pid).is_ok_and(|pid| pid == block.header.pid);
        let same_ids = target.process().pid.is_none_or(own);
        let pthread = |thread: &Thread, distance| Some((thread.thread_pointer()?.back(distance).0, thread.lwp));
        let by_pthread: Option<HashMap<_, _>> = target.pthread_distance().map(|distance| {
            let threads = target.threads().iter();
            threads.filter_map(|thread| pthread(thread, distance)).collect()
        });
        let by_pthread = by_pthread.filter(|threads| !threads.is_empty());
        (same_ids || by_pthread.is_some()).then_some(Threads { by_pthread, same_ids })
    }

    /// The kernel's id of the thread that a ring is of, if it is one of the target's.
    fn that_has(&self, ring: &RingValues) -> Option<i32> {
        let said = i32::try_from(ring.lwp).ok()?;
        match &self.by_pthread {
            // Memory of a thread that went without a word may be another's by now.
            Some(threads) => threads.get(&ring.pthread).copied().filter(|lwp| !self.same_ids || *lwp == said),
            None => Some(said),
        }
    }
}

/// What a companion remembered at a stop and the runtime does not keep.
#[derive(Debug, Default)]
pub struct Remembered {
    /// Who has which lock: its wait id, and where it was acquired.
    held: HashMap<u64, Holder>,
    /// Where tasks come from, by what is filed with them.
    tasks: HashMap<u64, CreationValues>,
    /// The word at each address that a lock is known by.
    variables: HashMap<u32, u64>,
    /// What threads have begun on devices and not ended.
    unfinished: HashMap<i32, Unfinished>,
    /// Where the runtime begins that tells the companion.
    runtime: Option<Addr>,
    /// Why there is nothing, although there is a companion.
    trouble: Option<Trouble>,
}

/// A thread that is said to have a lock.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Holder {
    pub(crate) lwp: i32,
    /// Where it was acquired: the return address of the call; 0 if that is not known.
    pub(crate) codeptr_ra: u64,
    /// More than one thread is said to have it: one of them is just letting go of it.
    pub(crate) disputed: bool,
}

impl Remembered {
    /// Reads it of a process that stands still. `words` is what [`words`] gave.
    pub fn read(target: &dyn Target, words: &[Addr], snapshots: &[RawSnapshot]) -> Remembered {
        let mut all = Remembered::default();
        let block = match find(target, words) {
            None => return all,
            Some(Ok(block)) => block,
            Some(Err(why)) => {
                all.trouble = Some(Trouble::CompanionUnreadable { why });
                return all;
            }
        };
        all.runtime = target.module_at(Addr(block.header.lookup)).map(Module::base);
        let words = Words::of(target);
        let filed = snapshots.iter().flat_map(|s| &s.tasks).filter_map(|task| task.tool_data.get());
        for id in filed.filter(|id| *id != 0) {
            // What cannot be read is not remembered.
            if let Ok(Some(creation)) = block.task(&words, id) {
                all.tasks.insert(id, creation);
            }
        }
        let has_locks = snapshots.iter().any(|snapshot| !snapshot.locks.is_empty());
        // What ended while the companion paused would seem to go on. It counts how often it has begun to record.
        let saw_all = block.is_recording() && block.header.epoch <= 1;
        let has_devices = saw_all && (unintroduced(&block) || block.devices(&words).is_ok_and(|of| !of.is_empty()));
        if !has_locks && !has_devices {
            return all;
        }
        let Some(threads) = Threads::of(target, &block) else {
            all.trouble = Some(Trouble::CompanionNamespace { pid: block.header.pid });
            return all;
        };
        let first_pages = (0..block.header.rings_used).map(|ring| block.at + block.shape.ring_at(ring));
        target.prefetch(&first_pages.map(|at| (Addr(at), in_ring::SNAPSHOT_AT)).collect::<Vec<_>>());
        for ring in block.rings(&words).0 {
            let Some(lwp) = threads.that_has(&ring.values) else { continue };
            if has_devices && let Some(unfinished) = unfinished(&block, &words, ring) {
                all.unfinished.insert(lwp, unfinished);
            }
            if !has_locks {
                continue;
            }
            for held in block.held(&words, ring).unwrap_or_default() {
                let holder = Holder { lwp, codeptr_ra: held.codeptr_ra, disputed: false };
                all.held.entry(held.wait_id).and_modify(|other| other.disputed = true).or_insert(holder);
                // `ompt_mutex_t`: of locks and nest locks, also such that were tested, the program has a variable.
                if matches!(held.kind as u32, 1..=4)
                    && let Ok(word) = target.read_u32(Addr(held.wait_id))
                {
                    all.variables.insert(word, held.wait_id);
                }
            }
        }
        all
    }

    /// Why there is nothing, although there is a companion.
    pub(crate) fn trouble(&self) -> Option<&Trouble> {
        self.trouble.as_ref()
    }

    /// Where the runtime begins that tells the companion.
    pub(crate) fn runtime(&self) -> Option<Addr> {
        self.runtime
    }

    /// Where a task comes from, by what is filed with it.
    pub(crate) fn creation(&self, id: u64) -> Option<CreationValues> {
        self.tasks.get(&id).copied()
    }

    /// What a thread has begun on a device and not ended.
    pub(crate) fn unfinished(&self, lwp: i32) -> Option<Unfinished> {
        self.unfinished.get(&lwp).copied()
    }

    /// The variable that names a lock, and the thread that has it. `word` is what the variable holds, where the runtime
    /// keeps the lock elsewhere.
    pub(crate) fn holder(&self, object: Addr, word: Option<u32>) -> Option<(Addr, Holder)> {
        let named = word.and_then(|word| self.variables.get(&word));
        let (wait_id, holder) = self.held.get_key_value(named.unwrap_or(&object.0))?;
        Some((Addr(*wait_id), *holder))
    }
}

/// True if the runtime may use devices that it has not introduced: one that reports some of the target constructs alone. Those that
/// report each introduce their devices.
fn unintroduced(block: &Block) -> bool {
    const SOMETIMES: [u8; 2] = [3, 4];
    offload::TARGETS.iter().any(|callback| block.header.result(*callback).is_some_and(|of| SOMETIMES.contains(&of)))
}

/// What a ring's thread has begun on a device and not ended. Mostly its last few events tell.
fn unfinished(block: &Block, words: &Words<'_>, ring: RingAt) -> Option<Unfinished> {
    const FEW: u64 = 64;
    if ring.values.state != RingState::Used as u64 {
        return None;
    }
    for most in [FEW, u64::MAX] {
        let read = block.events(words, ring, most).ok()?;
        let found = offload::unfinished(&read.events, ring.values.head);
        if found.construct.is_some() || most == u64::MAX {
            return Some(found).filter(|found| *found != Unfinished::default());
        }
    }
    None
}

#[cfg(test)]
impl Remembered {
    /// What a companion of the runtime that begins at 0 remembers in a test.
    pub(crate) fn made(held: HashMap<u64, Holder>, variables: HashMap<u32, u64>) -> Remembered {
        Remembered { held, variables, runtime: Some(Addr::NULL), ..Remembered::default() }
    }

    /// The same with where tasks come from, and what threads have begun on devices.
    pub(crate) fn with(self, tasks: HashMap<u64, CreationValues>, unfinished: HashMap<i32, Unfinished>) -> Remembered {
        Remembered { tasks, unfinished, ..self }
    }

    /// What is there of a companion that cannot be used.
    pub(crate) fn troubled(trouble: Trouble) -> Remembered {
        Remembered { trouble: Some(trouble), ..Remembered::default() }
    }
}
