//! Bytes of a section that live as long as whoever parses them.

use std::fmt;
use std::ops::{Deref, Range};
use std::sync::Arc;

use ompd_process::ElfFile;

/// The contents of one section: where they lie in the mapped file, or a copy where they had to be decompressed.
#[derive(Clone)]
pub(crate) enum Bytes {
    File(Arc<ElfFile>, Range<usize>),
    Copy(Arc<Vec<u8>>),
}

impl Bytes {
    /// The section `name` of `file`, with its address; `None` if there is none or it is malformed.
    pub(crate) fn section(file: &Arc<ElfFile>, name: &str) -> Option<(u64, Bytes)> {
        match file.section_place(name) {
            Some((address, place)) => Some((address, Bytes::File(Arc::clone(file), place))),
            // Compressed sections are not loaded and have no address.
            None => Some((0, Bytes::Copy(Arc::new(file.section(name)?.into_owned())))),
        }
    }

    pub(crate) fn empty() -> Bytes {
        Bytes::Copy(Arc::new(Vec::new()))
    }
}

impl Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            // Checked when the place was looked up; the bytes of a file do not change.
            Bytes::File(file, place) => file.bytes().get(place.clone()).unwrap_or_default(),
            Bytes::Copy(bytes) => bytes,
        }
    }
}

impl fmt::Debug for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.len())
    }
}
