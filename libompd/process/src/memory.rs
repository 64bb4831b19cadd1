//! Target addresses and what can go wrong reading at them.

use std::fmt;

/// The most bytes one read may ask for: sizes come from the target and are checked before anything is allocated.
pub const MAX_READ: u64 = 16 << 20;

/// An address in the target's address space.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Addr(pub u64);

impl Addr {
    /// The null pointer.
    pub const NULL: Addr = Addr(0);

    /// True for the null pointer.
    pub fn is_null(self) -> bool {
        self.0 == 0
    }

    /// `self + bytes`, or `None` past the end of the address space.
    pub fn checked_add(self, bytes: u64) -> Option<Addr> {
        self.0.checked_add(bytes).map(Addr)
    }

    /// `self + bytes` modulo 2^64. Reading at a wrapped address fails, so hostile offsets stay harmless.
    #[must_use]
    pub fn offset(self, bytes: u64) -> Addr {
        Addr(self.0.wrapping_add(bytes))
    }

    /// `self - bytes` modulo 2^64.
    #[must_use]
    pub fn back(self, bytes: u64) -> Addr {
        Addr(self.0.wrapping_sub(bytes))
    }
}

impl fmt::Debug for Addr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

impl fmt::Display for Addr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

/// Why bytes could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReadFault {
    /// No mapping of the target covers the address.
    #[error("nothing is mapped there")]
    Unmapped,
    /// The address was mapped, but the core holds no bytes for it and the file behind it is not at hand.
    #[error("not in the core file, and the file mapped there is not at hand")]
    NotInCore,
    /// The kernel refused.
    #[error("the kernel denied access")]
    Denied,
    /// The process ended while it was read.
    #[error("the process is gone")]
    Gone,
    /// The process may be held no longer: see [`OpenOptions::max_pause`](crate::OpenOptions::max_pause).
    #[error("the time for which the process may be held (--max-pause) was over")]
    Late,
    /// Only `got` bytes could be read.
    #[error("only {got} bytes could be read")]
    Short {
        /// Bytes that could be read.
        got: u64,
    },
    /// A length that no sane object has (it came from the target).
    #[error("implausible length")]
    BadLength,
    /// A string without its terminating NUL within the limit.
    #[error("string without end")]
    Unterminated,
}

/// Reads ranges one by one into one buffer. Once the buffer is as large as memory may be, the rest counts as not read.
pub(crate) fn read_each(
    ranges: &[(Addr, u64)],
    bytes: &mut Vec<u8>,
    mut read: impl FnMut(Addr, &mut [u8]) -> bool,
) -> Vec<bool> {
    bytes.resize(total(ranges), 0);
    let mut rest = &mut bytes[..];
    let done = ranges.iter().map(|(addr, len)| match usize::try_from(*len).ok().filter(|len| *len <= rest.len()) {
        Some(len) => {
            let (own, behind) = std::mem::take(&mut rest).split_at_mut(len);
            rest = behind;
            read(*addr, own)
        }
        None => false,
    });
    done.collect()
}

/// Bytes of all ranges together; 0 if no memory is that large.
pub(crate) fn total(ranges: &[(Addr, u64)]) -> usize {
    let sum = ranges.iter().try_fold(0u64, |sum, (_, len)| sum.checked_add(*len));
    sum.and_then(|sum| usize::try_from(sum).ok()).filter(|sum| isize::try_from(*sum).is_ok()).unwrap_or(0)
}

/// A failed read: where, how much, why.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("cannot read {len} bytes at {addr}: {why}")]
pub struct ReadError {
    /// First address asked for.
    pub addr: Addr,
    /// Bytes asked for.
    pub len: u64,
    /// The cause.
    pub why: ReadFault,
}
