//! What was read through a debugger: nothing is asked for twice between two stops.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;

use super::interface::Debugger;
use crate::arch::Arch;
use crate::glibc::Source;
use crate::machine::SMALLEST_PAGE;
use crate::memory::{Addr, ReadFault};

/// Bytes kept between two stops; what is read beyond is not kept.
const MOST_KEPT: usize = 64 << 20;

/// Bytes between two structures that are read along with them: a call costs more.
const GAP: u64 = 256;
/// Up to so many bytes structures are read at once that lie close to each other.
const PIECE: u64 = 64 << 10;
/// Bytes that are read in one call.
const BATCH: u64 = 1 << 20;

/// False for bytes that no process has: on the first page, or past the end of the address space.
fn may_be_mapped(addr: u64, len: u64) -> bool {
    // Linux maps nothing below, whatever `vm.mmap_min_addr` says.
    addr >= SMALLEST_PAGE && addr.checked_add(len).is_some()
}

pub(super) struct Memory<D> {
    debugger: D,
    kept: RefCell<Kept>,
}

#[derive(Default)]
struct Kept {
    pieces: BTreeMap<u64, Vec<u8>>,
    /// Bytes of all of them.
    total: usize,
}

impl<D> fmt::Debug for Memory<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Memory").field("kept", &self.kept.borrow().pieces.len()).finish_non_exhaustive()
    }
}

impl<D: Debugger> Source for Memory<D> {
    fn symbol(&self, name: &str) -> Option<Addr> {
        self.debugger.symbol(name)
    }

    fn bytes(&self, addr: Addr, len: usize) -> Option<Vec<u8>> {
        Memory::bytes(self, addr, len)
    }
}

impl<D: Debugger> Memory<D> {
    pub(super) fn new(debugger: D) -> Memory<D> {
        Memory { debugger, kept: RefCell::default() }
    }

    pub(super) fn debugger(&self) -> &D {
        &self.debugger
    }

    pub(super) fn forget(&self) {
        *self.kept.borrow_mut() = Kept::default();
    }

    pub(super) fn read(&self, addr: Addr, buf: &mut [u8]) -> Result<(), ReadFault> {
        if buf.is_empty() {
            return Ok(());
        }
        if self.known(addr, buf) {
            return Ok(());
        }
        self.ask(addr, buf)?;
        self.keep(addr, buf);
        Ok(())
    }

    /// Reads from the debugger, and keeps nothing. Nothing is asked of it that no process has: LLVM's plugin for gdb ends
    /// gdb when a read fails.
    pub(super) fn ask(&self, addr: Addr, buf: &mut [u8]) -> Result<(), ReadFault> {
        if !may_be_mapped(addr.0, buf.len() as u64) {
            return Err(ReadFault::Unmapped);
        }
        self.debugger.read(addr, buf)
    }

    /// Reads what lies close together in one piece.
    pub(super) fn prefetch(&self, ranges: &[(Addr, u64)]) {
        let mut ranges: Vec<(u64, u64)> =
            ranges.iter().filter_map(|(addr, len)| Some((addr.0, addr.0.checked_add(*len)?))).collect();
        ranges.sort_unstable();
        let mut pieces: Vec<(u64, u64)> = Vec::new();
        for (start, end) in ranges.into_iter().filter(|(start, end)| start < end) {
            match pieces.last_mut() {
                Some((first, last)) if start.saturating_sub(*last) <= GAP && end.saturating_sub(*first) <= PIECE => {
                    *last = end.max(*last);
                }
                _ => pieces.push((start, end)),
            }
        }
        pieces.retain(|(start, end)| {
            end - start <= BATCH && may_be_mapped(*start, end - start) && !self.covers(*start, *end)
        });
        let mut rest = &pieces[..];
        while !rest.is_empty() {
            // As many as go into one call.
            let mut total = 0;
            let fit = rest.iter().take_while(|(start, end)| {
                total += end - start;
                total <= BATCH
            });
            let (batch, behind) = rest.split_at(fit.count().max(1));
            rest = behind;
            if batch.len() < 2 || !self.read_batch(batch) {
                for (start, end) in batch {
                    // What is not all there is read one by one.
                    let _ = self.bytes(Addr(*start), (end - start) as usize);
                }
            }
        }
    }

    /// Reads pieces in one call, if the debugger takes such.
    fn read_batch(&self, batch: &[(u64, u64)]) -> bool {
        let pieces: Vec<(Addr, usize)> =
            batch.iter().map(|(start, end)| (Addr(*start), (end - start) as usize)).collect();
        let Some(read) = self.debugger.read_all(&pieces) else { return false };
        for ((addr, length), bytes) in pieces.into_iter().zip(read) {
            if let Some(bytes) = bytes.filter(|bytes| bytes.len() == length) {
                self.keep(addr, &bytes);
            }
        }
        true
    }

    /// All of it was read in one piece.
    fn covers(&self, start: u64, end: u64) -> bool {
        let kept = self.kept.borrow();
        let holds = |(first, bytes): (&u64, &Vec<u8>)| first.saturating_add(bytes.len() as u64) >= end;
        kept.pieces.range(..=start).rev().take(4).any(holds)
    }

    fn keep(&self, addr: Addr, bytes: &[u8]) {
        let mut kept = self.kept.borrow_mut();
        if kept.total.saturating_add(bytes.len()) <= MOST_KEPT {
            kept.total += bytes.len();
            // A shorter piece that began at the same place goes.
            if let Some(shorter) = kept.pieces.insert(addr.0, bytes.to_vec()) {
                kept.total -= shorter.len();
            }
        }
    }

    fn known(&self, addr: Addr, buf: &mut [u8]) -> bool {
        let kept = self.kept.borrow();
        // Structures lie in one another now and then, so the nearest piece need not be the one.
        kept.pieces.range(..=addr.0).rev().take(4).any(|(start, bytes)| {
            let Ok(from) = usize::try_from(addr.0 - start) else { return false };
            match from.checked_add(buf.len()).and_then(|to| bytes.get(from..to)) {
                Some(part) => {
                    buf.copy_from_slice(part);
                    true
                }
                None => false,
            }
        })
    }

    /// Reads `len` bytes.
    pub(super) fn bytes(&self, addr: Addr, len: usize) -> Option<Vec<u8>> {
        let mut bytes = vec![0; len];
        self.read(addr, &mut bytes).ok().map(|()| bytes)
    }

    /// Reads words of the target's width.
    pub(super) fn words(&self, addr: Addr, count: usize, arch: Arch) -> Option<Vec<u64>> {
        let width = usize::from(arch.pointer_bytes);
        let bytes = self.bytes(addr, count.checked_mul(width)?)?;
        Some(bytes.chunks_exact(width).map(|word| arch.byte_order.uint(word)).collect())
    }

    pub(super) fn word(&self, addr: Addr, arch: Arch) -> Option<u64> {
        self.words(addr, 1, arch)?.first().copied()
    }

    /// Reads a string, at most `most` bytes of it; `None` if it has no end by then.
    pub(super) fn string(&self, addr: Addr, most: u64) -> Option<String> {
        const STEP: u64 = 64;
        let mut text = Vec::new();
        let mut at = addr;
        while (text.len() as u64) < most {
            // Steps end where a piece of so many bytes ends, so that none leaves the page the string ends in.
            let step = STEP - at.0 % STEP;
            let bytes = self.bytes(at, step as usize)?;
            if let Some(end) = bytes.iter().position(|byte| *byte == 0) {
                text.extend_from_slice(&bytes[..end]);
                return Some(String::from_utf8_lossy(&text).into_owned());
            }
            text.extend_from_slice(&bytes);
            at = at.checked_add(step)?;
        }
        None
    }
}
