//! Reading long lists: a few large pieces of memory at a time, and none of them kept.

use std::cell::RefCell;
use std::ops::Range;

use ompd_target::{Addr, Arch, Module, ProcessInfo, ReadError, Target, TargetKind, Thread};

/// Pieces held at once: the tasks of a list and what hangs on them lie in different places.
const PIECES: usize = 4;
/// Bytes of a piece at least and at most. Tasks that were made one after the other lie side by side.
const SMALL: u64 = 1 << 10;
const LARGE: u64 = 256 << 10;

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
}

impl<'a> Window<'a> {
    pub(crate) fn new(inner: &'a dyn Target) -> Window<'a> {
        Window { inner, pieces: RefCell::new(Pieces { held: Vec::new(), reach: SMALL, last: 0 }) }
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

impl Target for Window<'_> {
    fn kind(&self) -> TargetKind {
        self.inner.kind()
    }
    fn arch(&self) -> Arch {
        self.inner.arch()
    }
    fn modules(&self) -> &[Module] {
        self.inner.modules()
    }
    fn threads(&self) -> &[Thread] {
        self.inner.threads()
    }
    fn process(&self) -> &ProcessInfo {
        self.inner.process()
    }
    fn issues(&self) -> &[String] {
        self.inner.issues()
    }
    fn mapping(&self, addr: Addr) -> Option<Range<u64>> {
        self.inner.mapping(addr)
    }

    fn read(&self, addr: Addr, buf: &mut [u8]) -> Result<(), ReadError> {
        let mut pieces = self.pieces.borrow_mut();
        if pieces.copy(addr.0, buf) {
            return Ok(());
        }
        let len = buf.len() as u64;
        let mut wanted = pieces.next(addr.0, len);
        if let Some(mapping) = self.inner.mapping(addr) {
            wanted = wanted.start.max(mapping.start)..wanted.end.min(mapping.end);
        }
        if wanted.end.saturating_sub(wanted.start) > len {
            let (bytes, done) = self.inner.read_ranges(&[(Addr(wanted.start), wanted.end - wanted.start)]);
            if done == [true] {
                if pieces.held.len() == PIECES {
                    pieces.held.remove(0);
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
