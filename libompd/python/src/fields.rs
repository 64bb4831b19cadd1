//! A struct of the target, read at once.

use ompd_process::{Addr, ByteOrder, Target, TargetExt};

use crate::Unknown;

/// A copy of a struct.
pub(crate) struct Fields {
    at: Addr,
    bytes: Vec<u8>,
    order: ByteOrder,
}

impl Fields {
    /// Reads `size` bytes at `at`.
    ///
    /// # Errors
    /// The process cannot be read there; `what` does not lie at such an address.
    pub(crate) fn read(target: &dyn Target, at: Addr, size: u64, what: &'static str) -> Result<Fields, Unknown> {
        if at.is_null() || !at.0.is_multiple_of(8) {
            return Err(Unknown::Not { what, at });
        }
        Ok(Fields { at, bytes: target.read_vec(at, size)?, order: target.arch().byte_order })
    }

    pub(crate) fn at(&self) -> Addr {
        self.at
    }

    /// The unsigned integer of `size` bytes at `offset`; 0 outside of what was read.
    fn uint(&self, offset: u64, size: usize) -> u64 {
        let bytes = usize::try_from(offset).ok().and_then(|from| self.bytes.get(from..from.checked_add(size)?));
        bytes.map_or(0, |bytes| self.order.uint(bytes))
    }

    pub(crate) fn u8(&self, offset: u64) -> u8 {
        self.uint(offset, 1) as u8
    }

    pub(crate) fn u32(&self, offset: u64) -> u32 {
        self.uint(offset, 4) as u32
    }

    pub(crate) fn i32(&self, offset: u64) -> i32 {
        self.u32(offset) as i32
    }

    pub(crate) fn u64(&self, offset: u64) -> u64 {
        self.uint(offset, 8)
    }

    pub(crate) fn ptr(&self, offset: u64) -> Addr {
        Addr(self.u64(offset))
    }
}
