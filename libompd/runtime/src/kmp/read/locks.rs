//! Locks: who has them, and who is queued for them.

use std::collections::{HashMap, HashSet};

use ompd_layout::Origin;
use ompd_process::{Addr, Machine, Registers, TargetExt};

use super::super::schema;
use super::threads::Idle;
use super::threads::{KmpThread, Threads};
use super::{Context, Notes};
use crate::bind::{Part, Slot, StructData};
use crate::kmp::reason::Own;
use crate::limits;
use crate::model::*;
use crate::window::Structs;

/// Entries in one row of the lock table (`KMP_I_LOCK_CHUNK`).
const LOCKS_PER_ROW: u64 = 1024;
/// Low byte of the word of a futex lock, and that of a test-and-set lock (`kmp_direct_locktag_t`): they are locked when
/// there is anything above it.
const FUTEX_TAG: u64 = 5;
const TAS_TAG: u64 = 3;

/// How a lock of the table works.
#[derive(Clone, Copy, PartialEq, Eq)]
enum How {
    Ticket,
    Queuing,
    Drdpa,
    Tas,
    Futex,
}

/// `enum kmp_indirect_locktag_t`: how, and whether it is a nest lock. Adaptive locks and those with restricted transactions
/// begin with a queuing lock, and are kinds of x86 only (`KMP_USE_TSX`).
fn kinds(machine: Machine) -> &'static [(How, bool)] {
    match machine.facts().is_some_and(|facts| facts.has_transactions) {
        true => &[
            (How::Ticket, false),
            (How::Queuing, false),
            (How::Queuing, false),
            (How::Drdpa, false),
            (How::Queuing, false),
            (How::Tas, true),
            (How::Futex, true),
            (How::Ticket, true),
            (How::Queuing, true),
            (How::Drdpa, true),
        ],
        false => &[
            (How::Ticket, false),
            (How::Queuing, false),
            (How::Drdpa, false),
            (How::Tas, true),
            (How::Futex, true),
            (How::Ticket, true),
            (How::Queuing, true),
            (How::Drdpa, true),
        ],
    }
}

/// One entry of the table.
struct Entry {
    lock: Addr,
    index: u64,
    how: How,
    nest: bool,
}

/// Locks that are held or waited for, and who is queued for them.
#[derive(Default)]
pub(super) struct Locks {
    pub(super) list: Vec<RawLock>,
    /// By the number of the thread that waits.
    pub(super) waits: HashMap<u32, Wait>,
}

/// Reads the table of locks.
struct LockReader<'a> {
    context: &'a Context<'a>,
    threads: &'a Threads,
    notes: &'a mut Notes,
    /// Some thread is in the queue of a lock.
    awaited: bool,
    found: Locks,
}

/// Every lock and critical of an indirect kind is in a table.
pub(super) fn read(context: &Context<'_>, threads: &Threads, notes: &mut Notes) -> Locks {
    let awaited = threads.list.iter().any(|t| matches!(context.queued_for_lock(t), Ok(true)));
    if context.kmp.global(schema::LOCK_TABLE).is_none() && !awaited {
        return Locks::default();
    }
    let mut reader = LockReader { context, threads, notes, awaited, found: Locks::default() };
    let (entries, mut result) = reader.lock_entries();
    for batch in entries.chunks(limits::BATCH) {
        result = result.and(reader.read_batch(batch));
    }
    if let Err(why) = result
        && (awaited || !why.is_layout())
    {
        reader.notes.issue("locks", why);
    }
    reader.found
}

impl Context<'_> {
    /// Set from the moment a thread queues up for a queuing lock until it is handed over
    /// (`__kmp_acquire_queuing_lock_timed_template`).
    pub(super) fn queued_for_lock(&self, thread: &KmpThread) -> Result<bool, Reason> {
        Ok(matches!(thread.idle, Idle::No) && thread.view.flag(&self.kmp.structs.info.spin_here)?)
    }

    /// Number of the system call `futex`.
    pub(super) fn futex_call(&self) -> Option<u64> {
        self.target.arch().machine.call_number("futex")
    }
}

impl Locks {
    /// Files a lock that is held or waited for. `owner` is the number of the owner plus one where it is recorded.
    fn add(
        &mut self,
        threads: &Threads,
        entry: &Entry,
        critical: bool,
        by: &Slot,
        held: bool,
        owner: Option<u64>,
    ) -> LockId {
        let kind = match (critical, entry.nest) {
            (true, _) => LockKind::Critical,
            (false, true) => LockKind::NestLock,
            (false, false) => LockKind::Lock,
        };
        let name = (!critical).then(|| format!("#{} (its variable is unknown)", entry.index));
        let owner = match owner.filter(|owner| *owner != 0) {
            _ if !held => by.fact(Ok(None)),
            Some(owner) => by.fact(threads.owner(owner).map(Some)),
            None if entry.nest => Fact::unknown(Own::OwnerChanging),
            None => Fact::unknown(Own::NoOwner),
        };
        self.list.push(RawLock {
            object: entry.lock,
            kind: by.fact(Ok(kind)),
            name,
            location: None,
            owner,
            held: by.fact(Ok(held)),
            // `KMP_INIT_I_LOCK`: the index, above a bit that is clear; of a critical its variable holds a pointer.
            variable_word: u32::try_from(entry.index << 1).ok().filter(|_| !critical),
            wait_id: None,
            depth: None,
            waiters: Vec::new(),
            queued: false,
        });
        LockId(self.list.len() - 1)
    }

    /// The wait of a thread that sleeps for a futex lock, by the arguments of its system call. For such a lock the
    /// runtime makes the plain call; the C library, through which it sleeps otherwise, does not. The value that the
    /// call expects in the word names a thread of the runtime as owner.
    pub(super) fn futex_wait(
        &mut self,
        context: &Context<'_>,
        threads: &Threads,
        registers: &Registers,
    ) -> Option<Wait> {
        let kmp = context.kmp;
        let s = &kmp.structs.futex;
        let call = registers.syscall.filter(|call| Some(call.number) == context.futex_call())?;
        let [word, operation, expected, timeout, ..] = call.args;
        let (word, expected) = (Addr(word), expected & u64::from(u32::MAX));
        let by_gtid = &threads.by_gtid;
        let names = |value: u64| u32::try_from(value >> 9).ok().and_then(|n| by_gtid.get(&n.checked_sub(1)?));
        // FUTEX_WAIT without FUTEX_PRIVATE_FLAG, and the bit that says that somebody sleeps.
        if operation != 0 || timeout != 0 || expected & 0x1ff != 0x100 | FUTEX_TAG || names(expected).is_none() {
            return None;
        }
        let value = u64::from(context.target.read_u32(word).ok()?);
        let held = value >> 8 != 0;
        if value & 0xff != FUTEX_TAG {
            return None;
        }
        let known = self.list.iter().position(|lock| lock.object == word);
        let id = known.map_or_else(
            || {
                let entry = Entry { lock: word, index: 0, how: How::Futex, nest: false };
                let id = self.add(threads, &entry, false, &s.poll, held, Some(value >> 9));
                // Whether it is a critical its variable tells, whose name is looked up after the stop.
                self.list[id.0].kind = Fact::unknown(Own::LockOrCritical);
                self.list[id.0].name = None;
                id
            },
            LockId,
        );
        let nest = self.list[id.0].kind.get() == Some(LockKind::NestLock);
        Some(Wait {
            lock: Some(id),
            over: s.poll.fact(Ok(!held)),
            asleep: Some(true),
            name: self.list[id.0].name.clone(),
            ..Wait::new(if nest { WaitKind::Lock } else { WaitKind::Mutex }, word, Origin::Registers)
        })
    }
}

impl LockReader<'_> {
    /// What the table has, as far as it can be read.
    fn lock_entries(&mut self) -> (Vec<Entry>, Result<(), Reason>) {
        let kmp = self.context.kmp;
        let s = &kmp.structs;
        let kinds = kinds(self.context.target.arch().machine);
        let mut entries = Vec::new();
        let mut structs = Structs::new();
        let mut read = || -> Result<(), Reason> {
            let mut table = self.context.global(schema::LOCK_TABLE)?;
            let mut seen = HashSet::new();
            let mut first = 0u64;
            while !table.is_null() && seen.insert(table) {
                let view = StructData::read(self.context.target, table, s.lock_table.size)?;
                let (rows, used) = (view.ptr(&s.lock_table.table)?, u64::from(view.u32(&s.lock_table.next)?));
                if view.u32(&s.lock_table.nrow_ptrs).is_ok_and(|rows| used > u64::from(rows) * LOCKS_PER_ROW) {
                    return Err(Reason::from(Own::LockTableContradicts { table }));
                }
                let size = s.indirect_lock.size.get()?;
                let mut index = 0;
                while index < used {
                    if first.saturating_add(index) >= limits::LOCKS {
                        return Err(Reason::from(Own::TooManyLocks { most: limits::LOCKS }));
                    }
                    let row = self.context.read_pointers(rows, index / LOCKS_PER_ROW, 1)?[0];
                    let here = (used - index).min(LOCKS_PER_ROW);
                    let addrs: Vec<Addr> = (0..here).map(|n| row.offset(n.wrapping_mul(size))).collect();
                    structs.read(self.context.target, &addrs, size);
                    for (place, index) in (0..addrs.len()).zip(first + index..) {
                        let entry = Part::new(structs.get(place)?);
                        let lock = entry.ptr(&s.indirect_lock.lock)?;
                        let kind = usize::try_from(entry.uint(&s.indirect_lock.kind)?).ok();
                        if let (Some((how, nest)), false) = (kind.and_then(|k| kinds.get(k)), lock.is_null()) {
                            entries.push(Entry { lock, index, how: *how, nest: *nest });
                        }
                    }
                    index += here;
                }
                first = first.saturating_add(used);
                table = match view.ptr(&s.lock_table.next_table) {
                    Ok(next) => next,
                    // Up to LLVM 13 the table does not continue.
                    Err(why) if why.is_layout() => Addr::NULL,
                    Err(why) => return Err(why),
                };
            }
            Ok(())
        };
        let result = read();
        (entries, result)
    }

    fn read_batch(&mut self, batch: &[Entry]) -> Result<(), Reason> {
        let kmp = self.context.kmp;
        let s = &kmp.structs;
        let mut result = Ok(());
        let mut structs = Structs::new();
        let mut by_how: HashMap<u8, Vec<&Entry>> = HashMap::new();
        for entry in batch {
            by_how.entry(entry.how as u8).or_default().push(entry);
        }
        for how in [How::Ticket, How::Queuing, How::Drdpa, How::Tas, How::Futex] {
            let Some(entries) = by_how.get(&(how as u8)) else { continue };
            let size = match how {
                How::Ticket => s.ticket.size,
                How::Queuing => s.queuing.size,
                How::Drdpa => s.drdpa.size,
                How::Tas => s.tas.size,
                How::Futex => s.futex.size,
            };
            let size = match size.bytes_to_read() {
                Ok(size) => size,
                Err(why) => {
                    result = result.and(Err(why));
                    continue;
                }
            };
            let addrs: Vec<Addr> = entries.iter().map(|e| e.lock).collect();
            structs.read(self.context.target, &addrs, size);
            for (place, entry) in entries.iter().enumerate() {
                let read = structs.get(place).map(Part::new).and_then(|lock| match how {
                    How::Ticket => self.read_ticket(entry, lock),
                    How::Queuing => self.read_queuing(entry, lock),
                    How::Drdpa => self.read_drdpa(entry, lock),
                    How::Tas => self.read_word(entry, lock, [&s.tas.poll, &s.tas.depth_locked], TAS_TAG, 0),
                    How::Futex => self.read_word(entry, lock, [&s.futex.poll, &s.futex.depth_locked], FUTEX_TAG, 1),
                });
                result = result.and(read);
            }
        }
        result
    }

    /// A queuing lock knows its first and last waiter; the threads in between are chained.
    fn read_queuing(&mut self, entry: &Entry, lock: Part<'_>) -> Result<(), Reason> {
        let kmp = self.context.kmp;
        let s = &kmp.structs;
        let addr = entry.lock;
        // A live lock points to itself; entries of destroyed locks are reused or stale.
        let alive = lock.ptr(&s.queuing.initialized)? == addr;
        // That all were destroyed proves nothing, unless somebody waits for one.
        if alive || self.awaited {
            self.notes.check.note("no lock points to itself", alive);
        }
        let head = lock.int(&s.queuing.head_id)?;
        if !alive || head == 0 {
            return Ok(());
        }
        let lock = &lock.to_view();
        let critical = lock.uint(&s.queuing.flags)? & 1 != 0;
        let location = self.context.line_in(lock, &s.queuing.location).value().cloned();
        let owner = lock.uint(&s.queuing.owner_id).ok();
        let id = self.found.add(self.threads, entry, critical, &s.queuing.head_id, true, owner);
        self.found.list[id.0].location = location.clone();
        self.found.list[id.0].depth = lock.count(&s.queuing.depth_locked).ok().filter(|depth| entry.nest && *depth > 0);
        self.found.list[id.0].queued = true;
        let name = self.found.list[id.0].name.clone();
        let kind = if critical { WaitKind::Critical } else { WaitKind::Lock };
        let (mut next, last) = (head, lock.int(&s.queuing.tail_id)?);
        for _ in 0..limits::TEAM_SIZE {
            if next <= 0 {
                break;
            }
            self.notes.budget.spend(1)?;
            let gtid = (next - 1) as u32;
            let Some(waiter) = self.threads.by_gtid.get(&gtid).map(|i| &self.threads.list[*i]) else {
                self.found.list[id.0].queued = false;
                return Err(Reason::from(Own::NoSuchWaiter { lock: addr, gtid }));
            };
            let origin = s.queuing.head_id.origin().unwrap_or(Origin::Profile);
            let wait = Wait {
                name: name.clone(),
                lock: waiter.lwp.map(|_| id),
                over: s.info.spin_here.fact(Ok(false)),
                ..Wait::new(kind, addr, origin)
            };
            self.found.list[id.0].waiters.extend(waiter.lwp);
            self.found.waits.insert(gtid, wait);
            if next == last {
                break;
            }
            next = waiter.view.int(&s.info.next_waiting)?;
        }
        Ok(())
    }

    fn read_ticket(&mut self, entry: &Entry, lock: Part<'_>) -> Result<(), Reason> {
        let kmp = self.context.kmp;
        let t = &kmp.structs.ticket;
        // Intel's lock has the pointer in place of the flag.
        let own = lock.ptr(&t.self_).or_else(|_| lock.ptr(&t.initialized))?;
        let held = lock.uint(&t.next_ticket)? != lock.uint(&t.now_serving)?;
        if own != entry.lock || !held {
            return Ok(());
        }
        let lock = &lock.to_view();
        let critical = lock.uint(&t.flags)? & 1 != 0;
        let id = self.found.add(self.threads, entry, critical, &t.now_serving, true, lock.uint(&t.owner_id).ok());
        self.found.list[id.0].depth = lock.count(&t.depth_locked).ok().filter(|depth| entry.nest && *depth > 0);
        self.found.list[id.0].location = self.context.line_in(lock, &t.location).value().cloned();
        Ok(())
    }

    /// The next thread to come gets the ticket `next_ticket`, and may go on at once if the word of that ticket holds it.
    fn read_drdpa(&mut self, entry: &Entry, lock: Part<'_>) -> Result<(), Reason> {
        let kmp = self.context.kmp;
        let d = &kmp.structs.drdpa;
        if lock.ptr(&d.initialized)? != entry.lock {
            return Ok(());
        }
        let (ticket, mask) = (lock.uint(&d.next_ticket)?, lock.uint(&d.mask)?);
        let word = lock.ptr(&d.polls)?.offset((ticket & mask).wrapping_mul(8));
        if self.context.target.read_u64(word)? >= ticket {
            return Ok(());
        }
        let lock = &lock.to_view();
        let critical = lock.uint(&d.flags)? & 1 != 0;
        let id = self.found.add(self.threads, entry, critical, &d.polls, true, lock.uint(&d.owner_id).ok());
        self.found.list[id.0].depth = lock.count(&d.depth_locked).ok().filter(|depth| entry.nest && *depth > 0);
        self.found.list[id.0].location = self.context.line_in(lock, &d.location).value().cloned();
        Ok(())
    }

    /// A nest lock whose word names its owner, `low` bits further up than the low byte. A destroyed lock has a pointer there.
    fn read_word(
        &mut self,
        entry: &Entry,
        lock: Part<'_>,
        [word, depth]: [&Slot; 2],
        tag: u64,
        low: u32,
    ) -> Result<(), Reason> {
        let value = lock.uint(word)?;
        if value & 0xff == tag && value >> 8 != 0 {
            let id = self.found.add(self.threads, entry, false, word, true, Some(value >> 8 >> low));
            self.found.list[id.0].depth = lock.to_view().count(depth).ok().filter(|depth| *depth > 0);
        }
        Ok(())
    }
}
