//! All that was read of a target, kept: it can be read once more, also as if other bytes had been there.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

use crate::Target;
use crate::memory::{Addr, ReadError, ReadFault};
use crate::thread::Thread;

/// A target of which each byte that is read is kept. Also pages that are not in use are read: what is read once more must not depend
/// on which are in use by then.
pub struct Keeping<'a> {
    target: &'a dyn Target,
    kept: RefCell<BTreeMap<u64, Vec<u8>>>,
    failed: RefCell<Failed>,
}

/// Reads that failed, by address and length, and why.
type Failed = BTreeMap<(u64, usize), ReadFault>;

impl<'a> Keeping<'a> {
    /// Keeps what is read of `target` from now on.
    pub fn new(target: &'a dyn Target) -> Keeping<'a> {
        Keeping { target, kept: RefCell::default(), failed: RefCell::default() }
    }

    /// What was read. All of it is of one moment if the target stood still.
    pub fn into_moment(self) -> Moment {
        let pieces = joined(self.kept.into_inner());
        let is_late = self.target.is_late();
        Moment { pieces, failed: self.failed.into_inner(), is_late, threads: self.target.threads().to_vec() }
    }
}

/// The same bytes, of which those that overlap or touch are one piece.
fn joined(kept: BTreeMap<u64, Vec<u8>>) -> Vec<(u64, Vec<u8>)> {
    let mut pieces: Vec<(u64, Vec<u8>)> = Vec::new();
    for (start, bytes) in kept {
        match pieces.last_mut() {
            Some((before, held)) if start - *before <= held.len() as u64 => {
                let known = (*before + held.len() as u64 - start) as usize;
                held.extend(bytes.get(known..).unwrap_or_default());
            }
            _ => pieces.push((start, bytes)),
        }
    }
    pieces
}

impl fmt::Debug for Keeping<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keeping").field("pieces", &self.kept.borrow().len()).finish_non_exhaustive()
    }
}

impl<'a> crate::Overlay for Keeping<'a> {
    type Below = dyn Target + 'a;

    fn below(&self) -> &(dyn Target + 'a) {
        self.target
    }

    fn read(&self, addr: Addr, buf: &mut [u8]) -> Result<(), ReadError> {
        self.target.read(addr, buf).inspect_err(|error| {
            self.failed.borrow_mut().insert((addr.0, buf.len()), error.why);
        })?;
        // What ends at the last address has no end to compare with.
        if addr.0.checked_add(buf.len() as u64).is_some() {
            let mut kept = self.kept.borrow_mut();
            let held = kept.entry(addr.0).or_default();
            if held.len() < buf.len() {
                *held = buf.to_vec();
            }
        }
        Ok(())
    }
}

/// What was read of a target in one moment.
#[derive(Debug, Clone)]
pub struct Moment {
    /// Where each piece begins, and its bytes: in order, and apart from each other.
    pieces: Vec<(u64, Vec<u8>)>,
    failed: Failed,
    /// The time for which the process may be held was over: more would have been read.
    is_late: bool,
    threads: Vec<Thread>,
}

impl Moment {
    /// With what was read later. What was read in both is as it was in this one.
    #[must_use]
    pub fn and(self, later: Moment) -> Moment {
        let mut kept: BTreeMap<u64, Vec<u8>> = later.pieces.into_iter().collect();
        for (start, bytes) in &self.pieces {
            let held = kept.entry(*start).or_default();
            if held.len() < bytes.len() {
                held.clone_from(bytes);
            }
        }
        let mut failed = later.failed;
        failed.extend(self.failed);
        let mut both = Moment { pieces: joined(kept), failed, is_late: self.is_late, threads: self.threads };
        for (start, bytes) in self.pieces {
            let at = both.pieces.partition_point(|(begins, _)| *begins <= start).saturating_sub(1);
            if let Some((begins, whole)) = both.pieces.get_mut(at)
                && let Some(part) =
                    whole.get_mut((start - *begins) as usize..).and_then(|part| part.get_mut(..bytes.len()))
            {
                part.copy_from_slice(&bytes);
            }
        }
        both
    }

    /// Where what was read lies, in order.
    pub fn ranges(&self) -> Vec<Range<u64>> {
        self.pieces.iter().map(|(start, bytes)| *start..*start + bytes.len() as u64).collect()
    }

    /// Its threads, with their registers.
    pub fn threads(&self) -> &[Thread] {
        &self.threads
    }

    /// These bytes, if all of them were read.
    pub fn bytes(&self, range: Range<u64>) -> Option<&[u8]> {
        let at = self.pieces.partition_point(|(start, _)| *start <= range.start).checked_sub(1)?;
        let (start, bytes) = self.pieces.get(at)?;
        let from = usize::try_from(range.start - start).ok()?;
        let to = usize::try_from(range.end.checked_sub(*start)?).ok()?;
        bytes.get(from..to)
    }
}

/// What stands in memory instead of what was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Instead {
    /// Zero.
    Zero,
    /// Each bit is the other one.
    Flipped,
    /// Bytes that differ from those that were read, and from place to place: what was equal is not equal then.
    Noise,
}

impl Instead {
    fn byte(self, at: u64, byte: u8) -> u8 {
        match self {
            Instead::Zero => 0,
            Instead::Flipped => !byte,
            // The upper byte of a product with an odd number whose bits are mixed. The lowest bit is always the other one.
            Instead::Noise => byte ^ ((at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8 | 1),
        }
    }
}

/// A target as it was in a moment, but for some bytes and registers. What was not read then cannot be read.
pub struct Otherwise<'a> {
    target: &'a dyn Target,
    moment: &'a Moment,
    changed: &'a [Range<u64>],
    instead: Instead,
    threads: Vec<Thread>,
}

impl<'a> Otherwise<'a> {
    /// `target` as in `moment`, but with other bytes in `changed`, which are in order. The registers of `without` (LWP) are not known.
    pub fn new(
        target: &'a dyn Target,
        moment: &'a Moment,
        changed: &'a [Range<u64>],
        instead: Instead,
        without: &[i32],
    ) -> Otherwise<'a> {
        let mut threads = moment.threads.clone();
        for thread in threads.iter_mut().filter(|thread| without.contains(&thread.lwp)) {
            thread.registers = Err("left out".to_owned());
            thread.pointer = None;
        }
        Otherwise { target, moment, changed, instead, threads }
    }
}

impl fmt::Debug for Otherwise<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Otherwise")
            .field("changed", &self.changed)
            .field("instead", &self.instead)
            .finish_non_exhaustive()
    }
}

impl<'a> crate::Overlay for Otherwise<'a> {
    type Below = dyn Target + 'a;

    fn below(&self) -> &(dyn Target + 'a) {
        self.target
    }

    fn read(&self, addr: Addr, buf: &mut [u8]) -> Result<(), ReadError> {
        // What failed fails as it did.
        let otherwise = if self.moment.is_late { ReadFault::Late } else { ReadFault::Unmapped };
        let why = self.moment.failed.get(&(addr.0, buf.len())).copied().unwrap_or(otherwise);
        let fault = ReadError { addr, len: buf.len() as u64, why };
        if buf.is_empty() {
            return Ok(());
        }
        let end = addr.0.checked_add(buf.len() as u64).ok_or(fault)?;
        buf.copy_from_slice(self.moment.bytes(addr.0..end).ok_or(fault)?);
        let first = self.changed.partition_point(|range| range.end <= addr.0);
        for range in self.changed[first..].iter().take_while(|range| range.start < end) {
            for at in range.start.max(addr.0)..range.end.min(end) {
                let byte = &mut buf[(at - addr.0) as usize];
                *byte = self.instead.byte(at, *byte);
            }
        }
        Ok(())
    }

    // Whether it was late then is part of the moment.
    fn is_late(&self) -> bool {
        false
    }

    fn threads(&self) -> &[Thread] {
        &self.threads
    }
}
