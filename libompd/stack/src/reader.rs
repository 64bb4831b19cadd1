//! Reading debug information with a limit to what it may cost.
//!
//! A file of a few kilobytes can refer to the same table, range list or name thousands of times. It can also nest
//! entries deeper than any stack. Libraries that read it follow every reference. So the reader counts. When a file has
//! cost many times its own size, or a library has recursed too deep, reading fails like that of a truncated section.

use std::borrow::Cow;
use std::cell::Cell;
use std::fmt;
use std::rc::Rc;

use gimli::{Error, Reader, ReaderOffsetId, Result, RunTimeEndian};

use crate::bytes::Bytes;

/// What reading a file may cost for each byte of its debug information.
///
/// Costs of opening a file and looking up every one of its functions at four addresses:
///
/// - 0.58 in a debug build of ompd-inspect (81 MB);
/// - 0.64 in Intel's libiomp5.dbg (6.7 MB);
/// - 0.76 in the debug file of Debian's C library (10 MB).
///
/// Opening alone costs 0.04 to 0.27.
const PER_BYTE: u64 = 4;
/// What reading any file may cost.
const LEAST: u64 = 1 << 20;
/// What each look-up may cost beyond that, so that a long life of many look-ups does not use up the allowance. One of
/// what has been read before costs 206 at most in the three files above: a sixteenth of its names.
const PER_LOOKUP: u64 = 1 << 10;
/// Stack a look-up may use, in bytes: a fraction of what threads have at least.
const MAX_STACK: usize = 1 << 20;

/// The cost of reading one file so far.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    left: Cell<u64>,
    /// About where the stack of this program was when the look-up began.
    base: Cell<usize>,
}

impl Meter {
    /// Allows for sections of so many bytes together.
    pub(crate) fn allow(&self, bytes: u64) {
        self.left.set(LEAST.saturating_add(bytes.saturating_mul(PER_BYTE)));
        self.begin();
    }

    /// Begins a look-up.
    pub(crate) fn begin(&self) {
        self.left.set(self.left.get().saturating_add(PER_LOOKUP));
        self.base.set(stack_place());
    }

    fn spend(&self, cost: usize) -> Result<()> {
        let deep = self.base.get().abs_diff(stack_place()) > MAX_STACK;
        match self.left.get().checked_sub(cost as u64 + 1) {
            Some(left) if !deep => {
                self.left.set(left);
                Ok(())
            }
            _ => {
                self.left.set(0);
                Err(Error::UnexpectedEof(ReaderOffsetId(0)))
            }
        }
    }
}

/// About where the stack of this program is now.
#[inline(never)]
fn stack_place() -> usize {
    let here = 0u8;
    (&raw const here).addr()
}

struct Section {
    bytes: Bytes,
    meter: Rc<Meter>,
}

/// A stretch of a section.
#[derive(Clone)]
pub(crate) struct Metered {
    section: Rc<Section>,
    start: usize,
    end: usize,
    endian: RunTimeEndian,
}

impl Metered {
    pub(crate) fn new(bytes: Bytes, meter: &Rc<Meter>, endian: RunTimeEndian) -> Metered {
        let end = bytes.len();
        Metered { section: Rc::new(Section { bytes, meter: Rc::clone(meter) }), start: 0, end, endian }
    }

    fn bytes(&self) -> &[u8] {
        self.section.bytes.get(self.start..self.end).unwrap_or_default()
    }

    fn spend(&self, cost: usize) -> Result<()> {
        self.section.meter.spend(cost)
    }

    fn eof(&self) -> Error {
        Error::UnexpectedEof(self.offset_id())
    }
}

impl fmt::Debug for Metered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}..{:#x}", self.start, self.end)
    }
}

/// A name of so many bytes costs as much as one byte that is decoded.
const BYTES_PER_COST: usize = 16;

impl Reader for Metered {
    type Endian = RunTimeEndian;
    type Offset = usize;

    fn endian(&self) -> RunTimeEndian {
        self.endian
    }

    fn len(&self) -> usize {
        self.end - self.start
    }

    fn empty(&mut self) {
        self.end = self.start;
    }

    fn truncate(&mut self, len: usize) -> Result<()> {
        if len > self.len() {
            return Err(self.eof());
        }
        self.end = self.start + len;
        Ok(())
    }

    fn offset_from(&self, base: &Metered) -> usize {
        self.start.saturating_sub(base.start)
    }

    fn offset_id(&self) -> ReaderOffsetId {
        ReaderOffsetId(self.start as u64)
    }

    fn lookup_offset_id(&self, id: ReaderOffsetId) -> Option<usize> {
        let place = usize::try_from(id.0).ok()?;
        (self.start..=self.end).contains(&place).then(|| place - self.start)
    }

    fn find(&self, byte: u8) -> Result<usize> {
        let found = self.bytes().iter().position(|b| *b == byte);
        self.spend(found.unwrap_or(self.len()) / BYTES_PER_COST)?;
        found.ok_or_else(|| self.eof())
    }

    fn skip(&mut self, len: usize) -> Result<()> {
        if len > self.len() {
            return Err(self.eof());
        }
        self.start += len;
        Ok(())
    }

    fn split(&mut self, len: usize) -> Result<Metered> {
        let mut first = self.clone();
        first.truncate(len)?;
        self.skip(len)?;
        self.spend(0)?;
        Ok(first)
    }

    fn to_slice(&self) -> Result<Cow<'_, [u8]>> {
        self.spend(self.len() / BYTES_PER_COST)?;
        Ok(Cow::Borrowed(self.bytes()))
    }

    fn to_string(&self) -> Result<Cow<'_, str>> {
        self.spend(self.len() / BYTES_PER_COST)?;
        std::str::from_utf8(self.bytes()).map(Cow::Borrowed).map_err(|_| Error::BadUtf8)
    }

    fn to_string_lossy(&self) -> Result<Cow<'_, str>> {
        self.spend(self.len() / BYTES_PER_COST)?;
        Ok(String::from_utf8_lossy(self.bytes()))
    }

    fn read_slice(&mut self, buf: &mut [u8]) -> Result<()> {
        self.spend(buf.len())?;
        let from = self.bytes().get(..buf.len()).ok_or_else(|| self.eof())?;
        buf.copy_from_slice(from);
        self.start += buf.len();
        Ok(())
    }
}
