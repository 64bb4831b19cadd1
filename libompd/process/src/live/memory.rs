//! Reading the memory of a running process.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::IoSliceMut;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::time::Instant;

use nix::errno::Errno;
use nix::sys::uio::{RemoteIoVec, process_vm_readv};
use nix::unistd::Pid;

use super::procdir::MapEntry;
use crate::image::Mapping;
use crate::memory::{Addr, ReadError, ReadFault, read_each, total};

/// Unit of the cache. A multiple of it on machines with larger pages.
const PAGE: u64 = 4096;
/// Pages the cache holds at most (256 MiB); beyond that reads go to the target each time.
const MAX_PAGES: usize = 64 << 10;
/// Bytes asked for ahead that are kept at most.
const MAX_AHEAD: u64 = 64 << 20;
/// Remote pieces of one `process_vm_readv` (IOV_MAX).
const MAX_PIECES: usize = 1024;

/// Memory of one process.
///
/// While the process is stopped every page is fetched once: that makes the view one of a single moment even where
/// memory is shared with other processes, and system calls few.
pub(super) struct Memory {
    /// Any living thread of the process.
    tid: Pid,
    file: Option<File>,
    use_file: Cell<bool>,
    maps: Vec<MapEntry>,
    cache: RefCell<Option<Cache>>,
    /// While the process is held.
    times: Cell<Option<Times>>,
    /// Something was not read because the process had been held for too long.
    cut_short: Cell<bool>,
}

/// Until when a process may be held.
#[derive(Clone, Copy)]
pub(super) struct Times {
    /// From then on long lists are not followed any further: see [`crate::Target::is_late`].
    pub late: Instant,
    /// From then on nothing is read of it.
    pub over: Instant,
}

/// What has been read since the stop.
#[derive(Default)]
struct Cache {
    /// Whole pages, by number: fetched when something on them is first read.
    pages: HashMap<u64, Box<[u8]>>,
    /// Ranges asked for ahead, by address: length, and place in `blob`.
    ranges: BTreeMap<u64, (u64, usize)>,
    blob: Vec<u8>,
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
}

/// The mappings of files with code.
fn code(maps: &[MapEntry]) -> impl Iterator<Item = (u64, &str)> {
    let is_code = |mapping: &&Mapping| mapping.exec == Some(true) && mapping.path.starts_with('/');
    maps.iter().map(|entry| &entry.mapping).filter(is_code).map(|mapping| (mapping.start, mapping.path.as_str()))
}

impl Memory {
    pub fn new(tid: i32, file: Option<File>, use_file: bool, maps: Vec<MapEntry>) -> Memory {
        Memory {
            tid: Pid::from_raw(tid),
            file,
            use_file: Cell::new(use_file),
            maps,
            cache: RefCell::new(None),
            times: Cell::new(None),
            cut_short: Cell::new(false),
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

    /// From now on the process is held: keep what is read, and end in time.
    pub fn hold(&self, times: Times) {
        self.keep();
        self.times.set(Some(times));
        self.cut_short.set(false);
    }

    /// From now on keep what is read, though the process is not held.
    pub fn keep(&self) {
        *self.cache.borrow_mut() = Some(Cache::default());
    }

    /// The process runs again.
    pub fn release(&self) {
        *self.cache.borrow_mut() = None;
        self.times.set(None);
    }

    /// See [`crate::Target::is_late`].
    pub fn is_late(&self) -> bool {
        self.is_past(|times| times.late)
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
        let pages = &mut cache.pages;
        let (first_page, last_page) = (addr.0 / PAGE, last / PAGE);
        if !self.fetch(pages, first_page, last_page) {
            return self.read_now(addr, buf);
        }
        let mut done = 0;
        for number in first_page..=last_page {
            let Some(page) = pages.get(&number) else { return self.read_now(addr, buf) };
            let from = addr.0.max(number * PAGE) - number * PAGE;
            let n = (PAGE - from).min(len - done);
            buf[done as usize..(done + n) as usize].copy_from_slice(&page[from as usize..(from + n) as usize]);
            done += n;
        }
        Ok(())
    }

    /// Brings pages `first..=last` into the cache. False if one cannot be read whole, or the cache is full.
    fn fetch(&self, pages: &mut HashMap<u64, Box<[u8]>>, first: u64, last: u64) -> bool {
        let mut at = first;
        while at <= last {
            let missing = (at..=last).take_while(|n| !pages.contains_key(n)).count() as u64;
            if missing == 0 {
                at += 1;
                continue;
            }
            if pages.len() as u64 + missing > MAX_PAGES as u64 {
                return false;
            }
            let mut run = vec![0; (missing * PAGE) as usize];
            if self.read_now(Addr(at * PAGE), &mut run).is_err() {
                return false;
            }
            pages.extend((at..).zip(run.chunks_exact(PAGE as usize).map(Box::from)));
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
            *len > 0 && addr.checked_add(*len).is_some() && cache.in_range(*addr, *len as usize).is_none()
        });
        wanted.sort_unstable();
        wanted.dedup_by_key(|(addr, _)| *addr);
        let mut rest = &wanted[..];
        while !rest.is_empty() {
            let batch = &rest[..rest.len().min(MAX_PIECES)];
            let total: u64 = batch.iter().map(|(_, len)| len).sum();
            if cache.blob.len() as u64 + total > MAX_AHEAD {
                return;
            }
            let remote: Vec<RemoteIoVec> =
                batch.iter().map(|(addr, len)| RemoteIoVec { base: *addr as usize, len: *len as usize }).collect();
            let begin = cache.blob.len();
            cache.blob.resize(begin + total as usize, 0);
            let got = match process_vm_readv(self.tid, &mut [IoSliceMut::new(&mut cache.blob[begin..])], &remote) {
                Ok(got) => got as u64,
                Err(Errno::EFAULT) => 0,
                Err(_) => {
                    cache.blob.truncate(begin);
                    return;
                }
            };
            // The call stops at the first byte that cannot be read: what lies before counts, and it goes on behind.
            let (mut place, mut read) = (0, 0);
            for (addr, len) in batch {
                if place + len > got {
                    break;
                }
                cache.ranges.insert(*addr, (*len, begin + place as usize));
                place += len;
                read += 1;
            }
            rest = &rest[(read + usize::from(read < batch.len()))..];
        }
    }

    /// See [`crate::Target::read_ranges_into`].
    pub fn read_ranges_into(&self, ranges: &[(Addr, u64)], bytes: &mut Vec<u8>) -> Vec<bool> {
        if self.use_file.get() || self.is_over() {
            return read_each(ranges, bytes, |addr, buf| self.read_now(addr, buf).is_ok());
        }
        bytes.resize(total(ranges), 0);
        let mut done = Vec::with_capacity(ranges.len());
        let mut rest = &mut bytes[..];
        while let Some(batch) = ranges.get(done.len()..).filter(|batch| !batch.is_empty() && !rest.is_empty()) {
            let batch = &batch[..batch.len().min(MAX_PIECES)];
            let remote: Vec<RemoteIoVec> =
                batch.iter().map(|(addr, len)| RemoteIoVec { base: addr.0 as usize, len: *len as usize }).collect();
            let size = batch.iter().map(|(_, len)| *len as usize).sum();
            let got = process_vm_readv(self.tid, &mut [IoSliceMut::new(&mut rest[..size])], &remote).unwrap_or(0);
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
                Err(Errno::EFAULT | Errno::EIO | Errno::EINVAL) => self.unreadable(at),
                Err(_) => ReadFault::Denied,
            };
            let why = if done > 0 && why != ReadFault::Gone { ReadFault::Short { got: done as u64 } } else { why };
            return Err(ReadError { addr, len, why });
        }
        Ok(())
    }

    fn read_some(&self, addr: Addr, buf: &mut [u8]) -> Result<usize, Errno> {
        if !self.use_file.get() {
            let remote = [RemoteIoVec { base: addr.0 as usize, len: buf.len() }];
            match process_vm_readv(self.tid, &mut [IoSliceMut::new(buf)], &remote) {
                // Missing from the kernel, or filtered out by a container: the file may still be allowed.
                Err(Errno::ENOSYS | Errno::EPERM) if self.file.is_some() => self.use_file.set(true),
                other => return other,
            }
        }
        let Some(file) = &self.file else { return Err(Errno::EPERM) };
        loop {
            match file.read_at(buf, addr.0) {
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
        let mut memory = Memory::new(1, None, false, vec![program()]);
        assert!(memory.remap(vec![program(), entry(0x9000, "", false), entry(0xa000, "/data", false)]));
        assert_eq!(memory.mapping(Addr(0x9008)), Some(0x9000..0xa000));
        assert!(!memory.remap(vec![program(), entry(0x5000, "/lib/b.so", true)]));
        assert!(memory.remap(vec![program(), entry(0x5000, "/lib/b.so", true)]));
        assert!(!memory.remap(vec![program()]));
    }
}
