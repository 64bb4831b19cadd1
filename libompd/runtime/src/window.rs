//! Reading long lists: a few large pieces of memory at a time, and none of them kept.

use std::cell::RefCell;
use std::ops::Range;

use ompd_layout::RecordRef;
use ompd_process::{Addr, ByteOrder, ReadError, ReadFault, Target};

use crate::model::Common;
use crate::model::Reason;

#[cfg(test)]
mod tests;

/// Pieces held at once: the tasks of a list and what hangs on them lie in different places.
const PIECES: usize = 4;
/// Bytes of a piece at least and at most. Tasks that were made one after the other lie side by side.
const SMALL: u64 = 1 << 10;
const LARGE: u64 = 256 << 10;
/// Bytes between two structs that are read along with them rather than left out, and the most that is read in one piece.
const GAP: u64 = 512;
const SPAN: u64 = 1 << 20;
/// Bytes of all structs that are read at once.
pub(crate) const MOST: u64 = 16 << 20;

/// A target seen through a few windows that move with the reads. A live process is asked anew for each piece, so that
/// a million tasks leave nothing behind in the driver's cache.
pub(crate) struct Window<'a> {
    inner: &'a dyn Target,
    pieces: RefCell<Pieces>,
}

struct Pieces {
    /// Where each begins, the one made last at the end.
    held: Vec<(u64, Vec<u8>)>,
    /// Bytes of the next one.
    reach: u64,
    /// Address of the read that made the last one.
    last: u64,
    /// The buffer of a piece that was given up.
    spare: Vec<u8>,
}

impl<'a> Window<'a> {
    pub(crate) fn new(inner: &'a dyn Target) -> Window<'a> {
        Window { inner, pieces: RefCell::new(Pieces { held: Vec::new(), reach: SMALL, last: 0, spare: Vec::new() }) }
    }
}

impl Pieces {
    fn copy(&self, addr: u64, buf: &mut [u8]) -> bool {
        self.held.iter().rev().any(|(start, bytes)| {
            let Some(skip) = addr.checked_sub(*start).and_then(|skip| usize::try_from(skip).ok()) else { return false };
            let found = skip.checked_add(buf.len()).and_then(|end| bytes.get(skip..end));
            found.map(|bytes| buf.copy_from_slice(bytes)).is_some()
        })
    }

    /// What to fetch so that `len` bytes at `addr` and those to come are in it.
    fn next(&mut self, addr: u64, len: u64) -> Range<u64> {
        let near = addr.abs_diff(self.last) <= self.reach.saturating_mul(4);
        self.reach = if near { (self.reach * 2).min(LARGE) } else { (self.reach / 4).max(SMALL) };
        let size = self.reach.max(len);
        let start = if addr >= self.last { addr } else { addr.saturating_add(len).saturating_sub(size) };
        self.last = addr;
        start..start.saturating_add(size)
    }
}

impl<'a> ompd_process::Overlay for Window<'a> {
    type Below = dyn Target + 'a;

    fn below(&self) -> &(dyn Target + 'a) {
        self.inner
    }

    fn read(&self, addr: Addr, buf: &mut [u8]) -> Result<(), ReadError> {
        let mut pieces = self.pieces.borrow_mut();
        if pieces.copy(addr.0, buf) {
            return Ok(());
        }
        let len = buf.len() as u64;
        if self.inner.is_late() {
            return Err(ReadError { addr, len, why: ReadFault::Late });
        }
        let mut wanted = pieces.next(addr.0, len);
        if let Some(mapping) = self.inner.mapping(addr) {
            wanted = wanted.start.max(mapping.start)..wanted.end.min(mapping.end);
        }
        if wanted.end.saturating_sub(wanted.start) > len {
            let mut bytes = std::mem::take(&mut pieces.spare);
            let done = self.inner.read_ranges_into(&[(Addr(wanted.start), wanted.end - wanted.start)], &mut bytes);
            if done != [true] {
                pieces.spare = bytes;
            } else {
                if pieces.held.len() == PIECES {
                    pieces.spare = pieces.held.remove(0).1;
                }
                pieces.held.push((wanted.start, bytes));
                if pieces.copy(addr.0, buf) {
                    return Ok(());
                }
            }
        }
        // Not all of the piece is there: what was asked for may be.
        self.inner.read(addr, buf)
    }
}

/// Structs of one size at many addresses, read together: far cheaper than one by one. The buffers are used again.
pub(crate) struct Structs {
    addrs: Vec<Addr>,
    size: usize,
    order: ByteOrder,
    /// The structs, one behind the other, and of each what went wrong.
    bytes: Vec<u8>,
    failed: Vec<Option<ReadError>>,
    /// Those that no window holds, by place in `addrs`; stretches of memory that hold them; and what was read of these.
    missing: Vec<usize>,
    spans: Vec<(Addr, u64)>,
    read: Vec<u8>,
}

impl Structs {
    pub(crate) fn new() -> Structs {
        Structs {
            addrs: Vec::new(),
            size: 0,
            order: ByteOrder::Little,
            bytes: Vec::new(),
            failed: Vec::new(),
            missing: Vec::new(),
            spans: Vec::new(),
            read: Vec::new(),
        }
    }

    /// Reads `size` bytes at each address. What lies close together is read in one piece. Each may fail by itself.
    pub(crate) fn read(&mut self, target: &dyn Target, addrs: &[Addr], size: u64) {
        if self.start(target, addrs, size) {
            self.missing.extend(0..addrs.len());
            self.read_missing(target);
        }
    }

    /// The same, of which is taken from the window what it holds. It does not move.
    pub(crate) fn read_through(&mut self, window: &Window<'_>, addrs: &[Addr], size: u64) {
        if self.start(window, addrs, size) {
            let pieces = window.pieces.borrow();
            for (place, (addr, into)) in addrs.iter().zip(self.bytes.chunks_exact_mut(self.size)).enumerate() {
                if !pieces.copy(addr.0, into) {
                    self.missing.push(place);
                }
            }
            drop(pieces);
            self.read_missing(window.inner);
        }
    }

    /// The same, one by one through the window, which moves along.
    pub(crate) fn read_moving(&mut self, window: &Window<'_>, addrs: &[Addr], size: u64) {
        if self.start(window, addrs, size) {
            let places = addrs.iter().zip(self.bytes.chunks_exact_mut(self.size)).zip(&mut self.failed);
            places.for_each(|((addr, into), failed)| *failed = window.read(*addr, into).err());
        }
    }

    /// The struct at the address with this index.
    pub(crate) fn get(&self, index: usize) -> Result<RecordRef<'_>, Reason> {
        let (Some(addr), Some(failed)) = (self.addrs.get(index), self.failed.get(index)) else {
            return Err(Reason::from(Common::MoreThanRead));
        };
        let from = index.saturating_mul(self.size);
        match (failed, self.bytes.get(from..from.saturating_add(self.size))) {
            (None, Some(bytes)) => Ok(RecordRef::new(*addr, bytes, self.order)),
            (failed, _) => Err(failed.unwrap_or(Self::too_long(*addr, self.size as u64)).into()),
        }
    }

    fn too_long(addr: Addr, len: u64) -> ReadError {
        ReadError { addr, len, why: ReadFault::BadLength }
    }

    /// Makes room; false if there is nothing to read, or more at once than can be right.
    fn start(&mut self, target: &dyn Target, addrs: &[Addr], size: u64) -> bool {
        self.addrs.clear();
        self.addrs.extend_from_slice(addrs);
        self.order = target.arch().byte_order;
        self.failed.clear();
        self.missing.clear();
        self.size = usize::try_from(size).unwrap_or(usize::MAX);
        if target.is_late() {
            let late = |addr: &Addr| Some(ReadError { addr: *addr, len: size, why: ReadFault::Late });
            self.failed.extend(addrs.iter().map(late));
            return false;
        }
        let total = size.checked_mul(addrs.len() as u64).filter(|total| *total <= MOST);
        let total = total.and_then(|total| usize::try_from(total).ok());
        match total {
            Some(total) => {
                self.failed.resize(addrs.len(), None);
                self.bytes.resize(total, 0);
            }
            None => self.failed.extend(addrs.iter().map(|addr| Some(Self::too_long(*addr, size)))),
        }
        total.is_some_and(|total| total > 0)
    }

    fn read_missing(&mut self, target: &dyn Target) {
        let size = self.size as u64;
        self.missing.sort_unstable_by_key(|place| self.addrs[*place]);
        self.spans.clear();
        for place in &self.missing {
            let addr = self.addrs[*place];
            let end = addr.0.saturating_add(size);
            match self.spans.last_mut() {
                Some((start, len))
                    if addr.0.saturating_sub(start.0.saturating_add(*len)) <= GAP && end - start.0 <= SPAN =>
                {
                    *len = (*len).max(end - start.0);
                }
                _ => self.spans.push((addr, end - addr.0)),
            }
        }
        let done = target.read_ranges_into(&self.spans, &mut self.read);
        let (mut span, mut before) = (0, 0usize);
        for place in &self.missing {
            let addr = self.addrs[*place];
            let from = loop {
                let Some((start, len)) = self.spans.get(span) else { break None };
                match addr.0.checked_sub(start.0).filter(|skip| *skip < *len) {
                    Some(skip) if *len - skip >= size => break Some(before.saturating_add(skip as usize)),
                    Some(_) => break None,
                    None => (span, before) = (span + 1, before.saturating_add(*len as usize)),
                }
            };
            let into = &mut self.bytes[place * self.size..(place + 1) * self.size];
            let whole = from.filter(|_| done.get(span) == Some(&true));
            match whole.and_then(|from| self.read.get(from..from.checked_add(self.size)?)) {
                Some(bytes) => into.copy_from_slice(bytes),
                // By itself: what is beside it may not be readable.
                None => self.failed[*place] = target.read(addr, into).err(),
            }
        }
    }
}
