//! Versions of CPython.

use std::fmt;

/// A version of CPython.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Version {
    /// 3.
    pub major: u8,
    /// 11 of 3.11.7.
    pub minor: u8,
    /// 7 of 3.11.7, where the process says so.
    pub micro: Option<u8>,
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)?;
        self.micro.map_or(Ok(()), |micro| write!(f, ".{micro}"))
    }
}
