//! Bytes of a section that live as long as whoever parses them.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use ompd_process::{ElfFile, FilePart};

/// The contents of one section: part of the file, or a copy where they had to be decompressed.
#[derive(Clone)]
pub(crate) enum Bytes {
    File(FilePart),
    Copy(Arc<Vec<u8>>),
}

impl Bytes {
    /// The section `name` of `file`, with its address; `None` if there is none or it is malformed.
    pub(crate) fn section(file: &Arc<ElfFile>, name: &str) -> Option<(u64, Bytes)> {
        match file.plain_section(name) {
            Some((address, part)) => Some((address, Bytes::File(part))),
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
            Bytes::File(part) => part,
            Bytes::Copy(bytes) => bytes,
        }
    }
}

impl fmt::Debug for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.len())
    }
}
