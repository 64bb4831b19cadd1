//! Reading the memory of a running process.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::File;
use std::io::IoSliceMut;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::time::Instant;

use nix::errno::Errno;
use nix::sys::uio::{RemoteIoVec, process_vm_readv};
use nix::unistd::Pid;

use super::pages::Pages;
use super::procdir::MapEntry;
use super::reads::Reads;
use crate::image::Mapping;
use crate::memory::{Addr, ReadError, ReadFault, read_each, total};

/// Unit of the cache. A multiple of it on machines with larger pages.
const PAGE: u64 = 4096;
/// Pages the cache holds at most (256 MiB); beyond that reads go to the target each time.
const MAX_PAGES: usize = 64 << 10;
/// Bytes asked for ahead that are kept at most.
const MAX_AHEAD: u64 = 64 << 20;
/// Bytes that are copied in a stop at most because the look before has read them.
const MAX_PLANNED: u64 = 32 << 20;
/// Of what is handed on without being kept, so many bytes are kept at most to be compared.
const MAX_COMPARED: u64 = 4 << 20;
/// Pages tried in a stop at most that the look before could not read.
const MAX_REFUSED: usize = 64;
/// Remote pieces of one `process_vm_readv` (IOV_MAX).
const MAX_PIECES: usize = 1024;

/// Memory of one process.
///
/// While the process is stopped, every page is fetched once. So the view is of one moment even where memory is shared
/// with other processes. It also keeps system calls few.
pub(super) struct Memory {
    /// Any living thread of the process.
    tid: Pid,
    file: Option<File>,
    use_file: Cell<bool>,
    maps: Vec<MapEntry>,
    pages: Option<Pages>,
    cache: RefCell<Option<Cache>>,
    phase: Cell<Phase>,
    /// What the last look has read.
    plan: RefCell<Plan>,
    /// Since [`Memory::run_on`], something was read that had not been copied.
    missed: Cell<bool>,
    /// While the process is held.
    times: Cell<Option<Times>>,
    /// Something was not read because the process had been held for too long.
    cut_short: Cell<bool>,
    reads: Reads,
}

/// Until when a process may be held.
#[derive(Clone, Copy)]
pub(super) struct Times {
    /// From then on long lists are not followed any further: see [`crate::Target::is_late`].
    pub late: Instant,
    /// From then on nothing is read of it.
    pub over: Instant,
}

/// How what is read is treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// The process runs: nothing is kept.
    Running,
    /// It runs or sleeps: what is read is kept, and is what the next stop has to copy.
    Kept,
    /// It runs: what is read is only what the next stop has to copy.
    Rehearsed,
    /// It is held.
    Held,
    /// It was held and runs again: what was copied in the stop is all that counts.
    Copied,
}

/// What a look has read: most of it will be read again in the next one.
#[derive(Default)]
struct Plan {
    /// By address; they do not touch.
    ranges: Vec<(u64, u64)>,
    /// Numbers of pages that could not be read.
    refused: Vec<u64>,
    /// See [`Cache::unready`].
    unready: BTreeSet<(u64, u64)>,
    /// Room for the bytes of `ranges`.
    room: Vec<u8>,
    /// The look has read too much for that, so there is nothing in `ranges`.
    is_too_large: bool,
}

impl Plan {
    /// Of what is in the cache; nothing if that is too much for a stop.
    fn of(cache: &mut Cache) -> Plan {
        let pages = cache.pages.keys().map(|number| (number * PAGE, PAGE));
        let ranges = cache.ranges.iter().map(|(start, (length, _))| (*start, *length));
        let mut all: Vec<(u64, u64)> = pages.chain(ranges).chain(std::mem::take(&mut cache.passed)).collect();
        all.sort_unstable();
        all.dedup_by(|(next, length), (start, so_far)| {
            let touches = *next <= start.saturating_add(*so_far);
            if touches {
                *so_far = (*so_far).max(next.saturating_add(*length) - *start);
            }
            touches
        });
        if cache.passed_bytes > MAX_PLANNED || sum(&all) > MAX_PLANNED || cache.refused.len() > MAX_REFUSED {
            return Plan { is_too_large: true, ..Plan::default() };
        }
        let refused = cache.refused.iter().copied().collect();
        let unready = std::mem::take(&mut cache.unready);
        Plan { ranges: all, refused, unready, room: Vec::new(), is_too_large: false }
    }
}

/// The length of all ranges together.
fn sum(ranges: &[(u64, u64)]) -> u64 {
    ranges.iter().fold(0, |sum, (_, length)| sum.saturating_add(*length))
}

/// Where the bytes of each range lie, if they lie one behind the other from `begin` on.
fn places(begin: usize, ranges: &[(u64, u64)]) -> Vec<usize> {
    let place = |end: &mut usize, (_, length): &(u64, u64)| {
        let begin = *end;
        *end += *length as usize;
        Some(begin)
    };
    ranges.iter().scan(begin, place).collect()
}

/// What has been read since the stop.
#[derive(Default)]
struct Cache {
    /// Whole pages, by number: fetched when something on them is first read.
    pages: HashMap<u64, Box<[u8]>>,
    /// Ranges asked for ahead, by address: length, and place in `blob`.
    ranges: BTreeMap<u64, (u64, usize)>,
    blob: Vec<u8>,
    /// The same of ranges that others have replaced.
    replaced: Vec<(u64, u64, usize)>,
    /// Something was read and handed on that is neither kept nor noted.
    is_partial: bool,
    /// Ranges that were read and handed on without being kept, while that is noted, and how long all of them are.
    passed: Vec<(u64, u64)>,
    passed_bytes: u64,
    /// Their bytes, as far as these are kept to be compared, and how many.
    compared: Vec<(u64, Vec<u8>)>,
    compared_bytes: u64,
    /// Numbers of pages that could not be read.
    refused: BTreeSet<u64>,
    /// Ranges asked for ahead that could not be read: they may never be needed.
    unready: BTreeSet<(u64, u64)>,
}

/// All that a look has read, to be compared with what is there later. `None` if something was read that is not kept.
#[derive(Default)]
pub(super) struct Kept(Option<Cache>);

impl std::fmt::Debug for Kept {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Kept").finish_non_exhaustive()
    }
}

impl Kept {
    /// Its pieces, in no order.
    pub fn pieces(&self) -> Option<impl Iterator<Item = (Addr, &[u8])>> {
        let cache = self.0.as_ref()?;
        let pages = cache.pages.iter().map(|(number, page)| (Addr(number * PAGE), &**page));
        let ranges = cache.ranges.iter().map(|(start, (length, place))| (*start, *length, *place));
        let ranges = ranges.chain(cache.replaced.iter().copied()).map(|(start, length, place)| {
            // All of them lie in it.
            (Addr(start), cache.blob.get(place..).and_then(|rest| rest.get(..length as usize)).unwrap_or_default())
        });
        Some(pages.chain(ranges).chain(cache.compared.iter().map(|(start, bytes)| (Addr(*start), &**bytes))))
    }
}

impl Cache {
    /// The bytes at `addr` if a range asked for ahead holds them all.
    fn in_range(&self, addr: u64, len: usize) -> Option<&[u8]> {
        let (start, (length, place)) = self.ranges.range(..=addr).next_back()?;
        let skip = addr - start;
        if skip >= *length || len as u64 > length - skip {
            return None;
        }
        let from = place + skip as usize;
        self.blob.get(from..from + len)
    }

    /// True if a stop cannot copy all of it. What was handed on twice counts twice.
    fn is_too_large(&self) -> bool {
        self.pages.len() as u64 * PAGE + self.blob.len() as u64 + self.passed_bytes > MAX_PLANNED
    }

    /// Notes ranges that are handed on.
    fn pass(&mut self, ranges: &[(Addr, u64)]) {
        let ranges = ranges.iter().map(|(addr, len)| (addr.0, *len)).filter(|(_, len)| *len > 0);
        for (addr, len) in ranges {
            self.passed_bytes = self.passed_bytes.saturating_add(len);
            if self.passed_bytes <= MAX_PLANNED {
                self.passed.push((addr, len));
            }
        }
    }

    /// Keeps the bytes of ranges that are handed on, one behind the other, to be compared. `done`: which of them were read.
    fn keep(&mut self, ranges: &[(Addr, u64)], done: &[bool], bytes: &[u8]) {
        let mut rest = bytes;
        for ((addr, len), done) in ranges.iter().zip(done) {
            let Some((own, behind)) = rest.split_at_checked(*len as usize) else { return };
            rest = behind;
            let with_it = self.compared_bytes.saturating_add(*len);
            if with_it <= MAX_COMPARED {
                self.compared_bytes = with_it;
                // What could not be read has no bytes.
                self.compared.extend(done.then(|| (addr.0, own.to_vec())));
            }
        }
    }
}

/// The mappings of files with code.
fn code(maps: &[MapEntry]) -> impl Iterator<Item = (u64, &str)> {
    let is_code = |mapping: &&Mapping| mapping.exec == Some(true) && mapping.path.starts_with('/');
    maps.iter().map(|entry| &entry.mapping).filter(is_code).map(|mapping| (mapping.start, mapping.path.as_str()))
}

impl Memory {
    pub fn new(tid: i32, file: Option<File>, use_file: bool, maps: Vec<MapEntry>, pages: Option<Pages>) -> Memory {
        Memory {
            tid: Pid::from_raw(tid),
            file,
            use_file: Cell::new(use_file),
            maps,
            pages,
            cache: RefCell::new(None),
            phase: Cell::new(Phase::Running),
            plan: RefCell::default(),
            missed: Cell::new(false),
            times: Cell::new(None),
            cut_short: Cell::new(false),
            reads: Reads::new(),
        }
    }

    /// The thread by which memory is read.
    pub fn tid(&self) -> i32 {
        self.tid.as_raw()
    }

    /// Takes a later memory map. False if other code is mapped from files than before.
    pub fn remap(&mut self, maps: Vec<MapEntry>) -> bool {
        let is_same = code(&self.maps).eq(code(&maps));
        self.maps = maps;
        is_same
    }

    /// From now on the process is held. Reads again, at once, what the look before has read. Keeps what is read, and
    /// ends within `times`.
    pub fn hold(&self, times: Times) {
        self.begin(Phase::Held);
        self.times.set(Some(times));
        self.cut_short.set(false);
        self.copy_planned();
    }

    /// From now on keep what is read, though the process is not held.
    pub fn keep(&self) {
        self.begin(Phase::Kept);
    }

    /// From now on what is read is noted for the next stop. It is late once that is too much.
    pub fn rehearse(&self) {
        self.begin(Phase::Rehearsed);
    }

    fn begin(&self, phase: Phase) {
        *self.cache.borrow_mut() = Some(Cache::default());
        self.phase.set(phase);
    }

    /// True if a stop copies what the look before has read.
    pub fn has_plan(&self) -> bool {
        !self.use_file.get() && !self.plan.borrow().ranges.is_empty()
    }

    /// True if nothing is known of what a stop has to copy.
    pub fn needs_rehearsal(&self) -> bool {
        !self.has_plan() && !self.plan.borrow().is_too_large
    }

    /// The process runs again, and what was copied is all that is read of it.
    pub fn run_on(&self) {
        self.times.set(None);
        self.phase.set(Phase::Copied);
        self.missed.set(false);
    }

    /// The process runs again. False if something was read since [`Memory::run_on`] that had not been copied.
    pub fn release(&self) -> bool {
        let phase = self.phase.get();
        if let Some(cache) = self.end() {
            self.plan.borrow_mut().room = cache.blob;
        }
        phase != Phase::Copied || !self.missed.get()
    }

    /// As [`Memory::release`]. What was read since [`Memory::keep`] can be compared, if all of it is kept.
    pub fn release_to_compare(&self) -> Kept {
        Kept(self.end().filter(|cache| !cache.is_partial && cache.compared_bytes == cache.passed_bytes))
    }

    fn end(&self) -> Option<Cache> {
        self.times.set(None);
        let phase = self.phase.replace(Phase::Running);
        let mut cache = self.cache.take()?;
        let mut plan = self.plan.borrow_mut();
        match phase {
            Phase::Kept | Phase::Rehearsed | Phase::Copied => *plan = Plan::of(&mut cache),
            // The next look may read less.
            Phase::Running | Phase::Held => plan.is_too_large = false,
        }
        Some(cache)
    }

    /// The process is held, and nothing of it is kept: until when it is read.
    pub fn limit(&self, times: Times) {
        self.times.set(Some(times));
        self.cut_short.set(false);
    }

    /// It is no longer held.
    pub fn unlimit(&self) {
        self.times.set(None);
    }

    /// Makes room for what the next stop copies: its memory is written here, so that none has to be found in the stop.
    pub fn prepare(&self) {
        let mut plan = self.plan.borrow_mut();
        let total = sum(&plan.ranges) as usize;
        plan.room.clear();
        plan.room.resize(total, 0);
    }

    /// Reads what the look before has read, with as few system calls as possible.
    fn copy_planned(&self) {
        let mut plan = self.plan.borrow_mut();
        let mut cache = self.cache.borrow_mut();
        let Some(cache) = cache.as_mut().filter(|_| !self.use_file.get()) else { return };
        cache.blob = std::mem::take(&mut plan.room);
        if cache.blob.len() as u64 != sum(&plan.ranges) {
            cache.blob.clear();
            return;
        }
        self.read_batches(&plan.ranges, &places(0, &plan.ranges), cache);
        let refused = plan.refused.iter().copied();
        cache.refused.extend(refused.filter(|number| self.read_now(Addr(number * PAGE), &mut [0]).is_err()));
        cache.unready.clone_from(&plan.unready);
    }

    /// While `read` reads, nothing is noted for the next stop.
    pub fn unplanned<T>(&self, read: impl FnOnce() -> T) -> T {
        let before = self.phase.replace(Phase::Held);
        let found = read();
        self.phase.set(before);
        found
    }

    /// Reads `ranges` to their `places` in the cache. What cannot be read is passed over.
    fn read_batches(&self, ranges: &[(u64, u64)], places: &[usize], cache: &mut Cache) {
        let mut done = 0;
        while let Some(batch) = ranges.get(done..).filter(|batch| !batch.is_empty() && !self.is_over()) {
            let batch = &batch[..batch.len().min(MAX_PIECES)];
            let remote: Vec<RemoteIoVec> =
                batch.iter().map(|(addr, len)| RemoteIoVec { base: *addr as usize, len: *len as usize }).collect();
            let begin = places[done];
            let got = match self.copy(&mut cache.blob[begin..], &remote) {
                Ok(got) => got,
                Err(Errno::EFAULT) => 0,
                Err(_) => return,
            };
            // The call stops at the first byte that cannot be read: what lies before counts, and it goes on behind.
            let mut read = 0;
            for ((addr, len), place) in batch.iter().zip(&places[done..]) {
                if place + *len as usize > begin + got {
                    break;
                }
                let replaced = cache.ranges.insert(*addr, (*len, *place));
                cache.replaced.extend(replaced.map(|(len, place)| (*addr, len, place)));
                read += 1;
            }
            done += read + usize::from(read < batch.len());
        }
    }

    /// Notes that something was read which a stop has not copied.
    fn note_missed(&self) {
        if self.phase.get() == Phase::Copied {
            self.missed.set(true);
        }
    }

    /// See [`crate::Target::is_late`].
    pub fn is_late(&self) -> bool {
        let is_rehearsed = self.phase.get() == Phase::Rehearsed;
        is_rehearsed && self.cache.borrow().as_ref().is_some_and(Cache::is_too_large)
            || self.is_past(|times| times.late)
    }

    /// True if something was not read because the process had been held for too long.
    pub fn was_cut_short(&self) -> bool {
        self.cut_short.get()
    }

    fn is_past(&self, limit: impl Fn(Times) -> Instant) -> bool {
        let past = self.times.get().is_some_and(|times| Instant::now() >= limit(times));
        if past {
            self.cut_short.set(true);
        }
        past
    }

    /// True if the process is held longer than it may be.
    fn is_over(&self) -> bool {
        self.is_past(|times| times.over)
    }

    pub fn read(&self, addr: Addr, buf: &mut [u8]) -> Result<(), ReadError> {
        let len = buf.len() as u64;
        if len == 0 {
            return Ok(());
        }
        let unmapped = ReadError { addr, len, why: ReadFault::Unmapped };
        let last = addr.0.checked_add(len - 1).ok_or(unmapped)?;
        let mut cache = self.cache.borrow_mut();
        let Some(cache) = cache.as_mut() else { return self.read_now(addr, buf) };
        if let Some(bytes) = cache.in_range(addr.0, buf.len()) {
            buf.copy_from_slice(bytes);
            return Ok(());
        }
        let (first_page, last_page) = (addr.0 / PAGE, last / PAGE);
        if !self.fetch(cache, first_page, last_page) {
            // In the stop it could not be read, whatever is there now.
            let was_refused = (first_page..=last_page).any(|number| cache.refused.contains(&number));
            if was_refused && self.phase.get() == Phase::Copied {
                return Err(ReadError { addr, len, why: self.unreadable(addr) });
            }
            return self.read_now(addr, buf).inspect(|()| cache.is_partial = true);
        }
        let mut done = 0;
        for number in first_page..=last_page {
            let Some(page) = cache.pages.get(&number) else {
                return self.read_now(addr, buf).inspect(|()| cache.is_partial = true);
            };
            let from = addr.0.max(number * PAGE) - number * PAGE;
            let n = (PAGE - from).min(len - done);
            buf[done as usize..(done + n) as usize].copy_from_slice(&page[from as usize..(from + n) as usize]);
            done += n;
        }
        Ok(())
    }

    /// Brings pages `first..=last` into the cache. False if one cannot be read whole, or the cache is full.
    fn fetch(&self, cache: &mut Cache, first: u64, last: u64) -> bool {
        let mut at = first;
        while at <= last {
            let missing = (at..=last).take_while(|n| !cache.pages.contains_key(n)).count() as u64;
            if missing == 0 {
                at += 1;
                continue;
            }
            if (at..at + missing).any(|number| cache.refused.contains(&number)) {
                return false;
            }
            self.note_missed();
            if cache.pages.len() as u64 + missing > MAX_PAGES as u64 {
                return false;
            }
            let mut run = vec![0; (missing * PAGE) as usize];
            if self.read_now(Addr(at * PAGE), &mut run).is_err() {
                // Each costs a system call, perhaps in a stop.
                let tried = (at..at + missing).take(MAX_REFUSED);
                cache.refused.extend(tried.filter(|n| self.read_now(Addr(n * PAGE), &mut [0]).is_err()));
                return false;
            }
            cache.pages.extend((at..).zip(run.chunks_exact(PAGE as usize).map(Box::from)));
            at += missing;
        }
        true
    }

    /// Reads all of `ranges` (address, length) with as few system calls as possible; later reads within one of them are
    /// answered from the copy. What cannot be read is passed over: a later read says why. Does nothing while the process
    /// runs.
    ///
    /// Exactly these bytes are read, not the pages around them: a thousand small structs lie on a thousand pages.
    pub fn prefetch(&self, ranges: &[(Addr, u64)]) {
        let mut cache = self.cache.borrow_mut();
        let Some(cache) = cache.as_mut() else { return };
        if self.use_file.get() || self.is_over() {
            return;
        }
        let mut wanted: Vec<(u64, u64)> = ranges.iter().map(|(addr, len)| (addr.0, *len)).collect();
        wanted.retain(|(addr, len)| {
            let is_new = !cache.unready.contains(&(*addr, *len)) && cache.in_range(*addr, *len as usize).is_none();
            *len > 0 && addr.checked_add(*len).is_some() && is_new
        });
        wanted.sort_unstable();
        wanted.dedup_by_key(|(addr, _)| *addr);
        let begin = cache.blob.len();
        let mut room = MAX_AHEAD.saturating_sub(begin as u64);
        let fit = wanted.iter().take_while(|(_, len)| room.checked_sub(*len).inspect(|left| room = *left).is_some());
        let fit = fit.count();
        wanted.truncate(fit);
        if wanted.is_empty() {
            return;
        }
        self.note_missed();
        cache.blob.resize(begin + sum(&wanted) as usize, 0);
        self.read_batches(&wanted, &places(begin, &wanted), cache);
        let unready = wanted.into_iter().filter(|(addr, len)| cache.in_range(*addr, *len as usize).is_none());
        let unready: Vec<(u64, u64)> = unready.collect();
        cache.unready.extend(unready);
    }

    /// See [`crate::Target::read_ranges_into`].
    pub fn read_ranges_into(&self, ranges: &[(Addr, u64)], bytes: &mut Vec<u8>) -> Vec<bool> {
        let done = self.hand_on(ranges, bytes);
        if let Some(cache) = self.cache.borrow_mut().as_mut().filter(|_| self.phase.get() == Phase::Kept) {
            cache.keep(ranges, &done, bytes);
        }
        done
    }

    fn hand_on(&self, ranges: &[(Addr, u64)], bytes: &mut Vec<u8>) -> Vec<bool> {
        if let Some(cache) = self.cache.borrow_mut().as_mut() {
            let phase = self.phase.get();
            if phase == Phase::Copied {
                let copy = |(addr, len): &(Addr, u64)| match len {
                    0 => Some(&[][..]),
                    _ => cache.in_range(addr.0, usize::try_from(*len).ok()?),
                };
                if let Some(copies) = ranges.iter().map(copy).collect::<Option<Vec<&[u8]>>>() {
                    *bytes = copies.concat();
                    cache.pass(ranges);
                    return vec![true; ranges.len()];
                }
                self.missed.set(true);
            }
            if matches!(phase, Phase::Kept | Phase::Rehearsed | Phase::Copied) {
                cache.pass(ranges);
            }
        }
        if self.use_file.get() || self.is_over() {
            return read_each(ranges, bytes, |addr, buf| self.read_now(addr, buf).is_ok());
        }
        // Zeros in new memory need not be written.
        match total(ranges) {
            total if total > bytes.capacity() => *bytes = vec![0; total],
            total => bytes.resize(total, 0),
        }
        let mut done = Vec::with_capacity(ranges.len());
        let mut rest = &mut bytes[..];
        while let Some(batch) = ranges.get(done.len()..).filter(|batch| !batch.is_empty() && !rest.is_empty()) {
            let batch = &batch[..batch.len().min(MAX_PIECES)];
            let remote: Vec<RemoteIoVec> =
                batch.iter().map(|(addr, len)| RemoteIoVec { base: addr.0 as usize, len: *len as usize }).collect();
            let size = batch.iter().map(|(_, len)| *len as usize).sum();
            let got = self.copy(&mut rest[..size], &remote).unwrap_or(0);
            // The call stops at the first byte that cannot be read: that range is asked for by itself, then it goes on behind.
            let mut place = 0;
            for (addr, len) in batch {
                let (own, behind) = std::mem::take(&mut rest).split_at_mut(*len as usize);
                rest = behind;
                place += own.len();
                let whole = place <= got;
                done.push(whole || self.read_now(*addr, own).is_ok());
                if !whole {
                    break;
                }
            }
        }
        done.resize(ranges.len(), false);
        done
    }

    /// Reads from the process itself.
    fn read_now(&self, addr: Addr, buf: &mut [u8]) -> Result<(), ReadError> {
        let len = buf.len() as u64;
        if self.is_over() {
            return Err(ReadError { addr, len, why: ReadFault::Late });
        }
        let mut done = 0;
        while done < buf.len() {
            let at = addr.offset(done as u64);
            let why = match self.read_some(at, &mut buf[done..]) {
                Ok(n) if n > 0 => {
                    done += n;
                    continue;
                }
                // End of file in `mem`: the address space is gone (proc_pid_mem(5)).
                Ok(_) | Err(Errno::ESRCH) => ReadFault::Gone,
                Err(Errno::ETIMEDOUT) => ReadFault::Late,
                Err(Errno::EFAULT | Errno::EIO | Errno::EINVAL) => self.unreadable(at),
                Err(_) => ReadFault::Denied,
            };
            let why = if done > 0 && why != ReadFault::Gone { ReadFault::Short { got: done as u64 } } else { why };
            return Err(ReadError { addr, len, why });
        }
        Ok(())
    }

    /// Copies pieces of the process, one behind the other. A read may take so long that the process runs again
    /// ([`Tracer`](super::tracer::Tracer)): then what was read is of no use.
    fn copy(&self, to: &mut [u8], from: &[RemoteIoVec]) -> Result<usize, Errno> {
        let got = self.reads.count(|| process_vm_readv(self.tid, &mut [IoSliceMut::new(to)], from));
        if self.is_over() { Err(Errno::ETIMEDOUT) } else { got }
    }

    fn read_some(&self, addr: Addr, buf: &mut [u8]) -> Result<usize, Errno> {
        if !self.use_file.get() {
            let remote = [RemoteIoVec { base: addr.0 as usize, len: buf.len() }];
            match self.copy(buf, &remote) {
                // Missing from the kernel, or filtered out by a container: the file may still be allowed.
                Err(Errno::ENOSYS | Errno::EPERM) if self.file.is_some() => self.use_file.set(true),
                other => return other,
            }
        }
        let Some(file) = &self.file else { return Err(Errno::EPERM) };
        loop {
            match self.reads.count(|| file.read_at(buf, addr.0)) {
                Ok(_) if self.is_over() => return Err(Errno::ETIMEDOUT),
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                other => return other.map_err(|e| Errno::from_raw(e.raw_os_error().unwrap_or(0))),
            }
        }
    }

    /// Why an address cannot be read: nothing there, or something that may not be read (a guard page).
    fn unreadable(&self, addr: Addr) -> ReadFault {
        match self.mapping(addr) {
            Some(_) => ReadFault::Denied,
            None => ReadFault::Unmapped,
        }
    }

    /// The mapping that contains `addr`, as of opening the process or of the last [`Memory::remap`].
    pub fn mapping(&self, addr: Addr) -> Option<Range<u64>> {
        self.entry(addr).map(|m| m.mapping.start..m.mapping.end)
    }

    /// See [`Target::is_shared`](crate::Target::is_shared).
    pub fn is_shared(&self, addr: Addr) -> Option<bool> {
        self.entry(addr).map(|m| m.shared)
    }

    /// See [`Target::in_use`](crate::Target::in_use). Which memory is private is as of opening the process or of the last
    /// [`Memory::remap`].
    pub fn in_use(&self, range: Range<u64>) -> Vec<Range<u64>> {
        // A page of a file that is not in use holds what the file holds.
        let is_of_no_file = |entry: &&MapEntry| {
            let path = &entry.mapping.path;
            !entry.shared && range.end <= entry.mapping.end && (path.is_empty() || path.starts_with('['))
        };
        match self.pages.as_ref().filter(|_| self.entry(Addr(range.start)).filter(is_of_no_file).is_some()) {
            Some(pages) => pages.in_use(range),
            None => vec![range],
        }
    }

    /// See [`Target::maps`](crate::Target::maps).
    pub fn maps(&self, path: &str) -> bool {
        self.maps.iter().any(|entry| entry.mapping.path == path)
    }

    fn entry(&self, addr: Addr) -> Option<&MapEntry> {
        let at = self.maps.partition_point(|m| m.mapping.end <= addr.0);
        self.maps.get(at).filter(|m| m.mapping.start <= addr.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(start: u64, path: &str, exec: bool) -> MapEntry {
        let mapping = Mapping { start, end: start + PAGE, offset: 0, path: path.to_owned(), exec: Some(exec) };
        MapEntry { mapping, unreadable: false, shared: false }
    }

    #[test]
    fn a_new_stack_is_known_after_a_remap_and_new_code_is_told() {
        let program = || entry(0x1000, "/bin/a", true);
        let mut memory = Memory::new(1, None, false, vec![program()], None);
        assert!(memory.remap(vec![program(), entry(0x9000, "", false), entry(0xa000, "/data", false)]));
        assert_eq!(memory.mapping(Addr(0x9008)), Some(0x9000..0xa000));
        assert!(!memory.remap(vec![program(), entry(0x5000, "/lib/b.so", true)]));
        assert!(memory.remap(vec![program(), entry(0x5000, "/lib/b.so", true)]));
        assert!(!memory.remap(vec![program()]));
    }
}
