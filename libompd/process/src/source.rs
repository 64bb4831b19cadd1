//! The bytes of a file, read as they are asked for.
//!
//! Files are not mapped. If a mapped file is truncated, SIGBUS ends the process that reads the lost part, and `libompd.so`
//! is part of a debugger. Memory is reserved for the whole file, and each stretch of the file is read into it once.
//!
//! A process may have thousands of libraries, and this one may have a thousand files open. So a file whose descriptor is beyond half of
//! what is allowed is closed again, and opened by its name for each read. That it is the same file is checked each time.

use std::fmt;
use std::fs::{File, Metadata};
use std::io;
use std::ops::{Deref, Range};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{FileExt, MetadataExt as _, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use memmap2::{MmapOptions, MmapRaw};
use nix::libc;
use nix::sys::resource::{Resource, getrlimit};
use object::read::ReadRef;

use crate::error::ElfError;

/// Files larger than this are refused, in bytes.
pub const MAX_FILE: u64 = 64 << 30;
/// Bytes read at once at least.
const STRETCH: usize = 16 << 10;

/// A file, or bytes that take the place of one.
pub(crate) enum Source {
    File(Stretches),
    Bytes(Vec<u8>),
}

/// A file of which the stretches that were asked for have been read.
pub(crate) struct Stretches {
    file: Handle,
    len: usize,
    /// Set aside and never moved; `None` for an empty file. A stretch is written once, before it counts as read.
    memory: Option<MmapRaw>,
    /// Of each stretch whether it has been read.
    read: Vec<AtomicBool>,
    reading: Mutex<()>,
    /// Why a stretch could not be read, the first time.
    failed: OnceLock<io::Error>,
}

/// How a file is read.
enum Handle {
    Open(File),
    /// Opened for each read.
    Named(PathBuf, Identity),
}

/// What tells a file from others, and from itself after a change.
#[derive(PartialEq, Eq)]
struct Identity {
    device: u64,
    inode: u64,
    length: u64,
    /// Of the last change of its bytes, in seconds and nanoseconds.
    changed: (i64, i64),
}

impl Identity {
    fn of(meta: &Metadata) -> Identity {
        let changed = (meta.mtime(), meta.mtime_nsec());
        Identity { device: meta.dev(), inode: meta.ino(), length: meta.len(), changed }
    }
}

impl Handle {
    fn read_exact_at(&self, into: &mut [u8], from: u64) -> io::Result<()> {
        match self {
            Handle::Open(file) => file.read_exact_at(into, from),
            Handle::Named(path, identity) => {
                let file = open_regular(path)?.ok_or(io::ErrorKind::NotFound)?;
                if Identity::of(&file.metadata()?) != *identity {
                    return Err(io::ErrorKind::NotFound.into());
                }
                file.read_exact_at(into, from)
            }
        }
    }
}

/// Opens a file, if it is a regular one. The kind is checked before opening (a device may act on being opened); who reads checks the
/// descriptor (the name may have been exchanged). `O_NONBLOCK` keeps a pipe put there in between from blocking.
fn open_regular(path: &Path) -> io::Result<Option<File>> {
    if !std::fs::metadata(path)?.is_file() {
        return Ok(None);
    }
    File::options().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(path).map(Some)
}

/// Whether so many descriptors are open that this one is better closed. The kernel gives the lowest number that is free.
fn is_among_many(file: &File) -> bool {
    let allowed = getrlimit(Resource::RLIMIT_NOFILE).map_or(u64::MAX, |(soft, _)| soft);
    u64::try_from(file.as_raw_fd()).is_ok_and(|number| number >= allowed / 2)
}

impl Source {
    /// Opens a regular file.
    pub fn open(path: &Path) -> Result<Source, ElfError> {
        let io = |source| ElfError::Io { path: path.to_owned(), source };
        let file = open_regular(path).map_err(io)?.ok_or_else(|| ElfError::NotRegular { path: path.to_owned() })?;
        let many = is_among_many(&file);
        let mut source = Source::of_file(file, path)?;
        if many {
            source.close(path).map_err(io)?;
        }
        Ok(source)
    }

    /// Closes the file, which has this name: from now on it is opened for each read.
    fn close(&mut self, path: &Path) -> io::Result<()> {
        if let Source::File(stretches) = self
            && let Handle::Open(file) = &stretches.file
        {
            let identity = Identity::of(&file.metadata()?);
            stretches.file = Handle::Named(path.to_owned(), identity);
        }
        Ok(())
    }

    /// The bytes of a regular file that is open; `path` names it in errors.
    pub fn of_file(file: File, path: &Path) -> Result<Source, ElfError> {
        let io = |source| ElfError::Io { path: path.to_owned(), source };
        let meta = file.metadata().map_err(io)?;
        if !meta.is_file() {
            return Err(ElfError::NotRegular { path: path.to_owned() });
        }
        if meta.len() > MAX_FILE {
            return Err(ElfError::TooLarge { path: path.to_owned(), size: meta.len() });
        }
        let len = usize::try_from(meta.len()).map_err(|_| io(io::ErrorKind::OutOfMemory.into()))?;
        // Pages that are not written take no memory, and need not be promised any.
        let set_aside = || MmapOptions::new().len(len).no_reserve_swap().map_anon().map(MmapRaw::from);
        let memory = if len > 0 { Some(set_aside().map_err(io)?) } else { None };
        let read = (0..len.div_ceil(STRETCH)).map(|_| AtomicBool::new(false)).collect();
        let file = Handle::Open(file);
        Ok(Source::File(Stretches { file, len, memory, read, reading: Mutex::new(()), failed: OnceLock::new() }))
    }

    /// Length in bytes, as of opening the file.
    pub fn len(&self) -> usize {
        match self {
            Source::File(file) => file.len,
            Source::Bytes(bytes) => bytes.len(),
        }
    }

    /// These bytes; `None` if the file has not all of them, or not any more.
    pub fn get(&self, range: Range<usize>) -> Option<&[u8]> {
        match self {
            Source::File(file) => file.get(range),
            Source::Bytes(bytes) => bytes.get(range),
        }
    }

    /// These bytes, of which it is known that they have been read.
    fn known(&self, range: Range<usize>) -> &[u8] {
        match self {
            Source::File(Stretches { memory: Some(memory), len, .. })
                if range.start < range.end && range.end <= *len =>
            {
                // SAFETY: as in `Stretches::get`.
                unsafe { std::slice::from_raw_parts(memory.as_ptr().add(range.start), range.len()) }
            }
            Source::File(_) => &[],
            Source::Bytes(bytes) => bytes.get(range).unwrap_or_default(),
        }
    }

    /// Why a part of the file could not be read, if that happened.
    pub fn failed(&self) -> Option<&io::Error> {
        match self {
            Source::File(file) => file.failed.get(),
            Source::Bytes(_) => None,
        }
    }

    /// `len` bytes from `offset` on.
    pub fn at(&self, offset: u64, len: usize) -> Option<&[u8]> {
        let start = usize::try_from(offset).ok()?;
        self.get(start..start.checked_add(len)?)
    }

    /// The first bytes, `most` of them if the file is so long.
    pub fn start(&self, most: usize) -> &[u8] {
        self.get(0..most.min(self.len())).unwrap_or_default()
    }
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.len())
    }
}

impl Stretches {
    fn get(&self, range: Range<usize>) -> Option<&[u8]> {
        if range.start > range.end || range.end > self.len {
            return None;
        }
        let Some(memory) = self.memory.as_ref().filter(|_| !range.is_empty()) else { return Some(&[]) };
        if let Err(why) = self.fetch(memory, range.start / STRETCH..range.end.div_ceil(STRETCH)) {
            self.failed.get_or_init(|| why);
            return None;
        }
        // SAFETY: the range lies within the memory, which lives as long as `self`, and in stretches that have been read. These
        // are never written again.
        Some(unsafe { std::slice::from_raw_parts(memory.as_ptr().add(range.start), range.len()) })
    }

    /// Reads those of the stretches that have not been read.
    fn fetch(&self, memory: &MmapRaw, wanted: Range<usize>) -> io::Result<()> {
        let is_read = |stretch: usize| self.read[stretch].load(Ordering::Acquire);
        if wanted.clone().all(is_read) {
            return Ok(());
        }
        let _reading = self.reading.lock().unwrap_or_else(PoisonError::into_inner);
        let mut next = wanted.start;
        while next < wanted.end {
            if is_read(next) {
                next += 1;
                continue;
            }
            let end = (next..wanted.end).find(|stretch| is_read(*stretch)).unwrap_or(wanted.end);
            let (from, to) = (next * STRETCH, (end * STRETCH).min(self.len));
            // SAFETY: the range lies within the memory. No slice of these stretches exists yet, since they do not count
            // as read. No other thread writes them, since this one holds the lock.
            let into = unsafe { std::slice::from_raw_parts_mut(memory.as_mut_ptr().add(from), to - from) };
            self.file.read_exact_at(into, from as u64)?;
            self.read[next..end].iter().for_each(|read| read.store(true, Ordering::Release));
            next = end;
        }
        Ok(())
    }
}

/// What the parsers of ELF files ask for.
impl<'a> ReadRef<'a> for &'a Source {
    fn len(self) -> Result<u64, ()> {
        Ok(Source::len(self) as u64)
    }

    fn read_bytes_at(self, offset: u64, size: u64) -> Result<&'a [u8], ()> {
        if size == 0 {
            return Ok(&[]);
        }
        self.at(offset, usize::try_from(size).map_err(drop)?).ok_or(())
    }

    fn read_bytes_at_until(self, range: Range<u64>, delimiter: u8) -> Result<&'a [u8], ()> {
        let (start, end) = (usize::try_from(range.start).map_err(drop)?, usize::try_from(range.end).map_err(drop)?);
        if end > Source::len(self) {
            return Err(());
        }
        // Most names end in the stretch that they begin in.
        let mut seen = start;
        while seen < end {
            let next = ((seen / STRETCH + 1) * STRETCH).min(end);
            if let Some(length) = self.get(seen..next).ok_or(())?.iter().position(|byte| *byte == delimiter) {
                return self.get(start..seen + length).ok_or(());
            }
            seen = next;
        }
        Err(())
    }
}

/// A part of a file, kept with the whole.
#[derive(Debug, Clone)]
pub struct FilePart {
    source: Arc<Source>,
    range: Range<usize>,
}

impl FilePart {
    pub(crate) fn new(source: &Arc<Source>, range: Range<usize>) -> Option<FilePart> {
        source.get(range.clone())?;
        Some(FilePart { source: Arc::clone(source), range })
    }

    /// Where it lies, in bytes from the start of the file.
    pub fn place(&self) -> Range<usize> {
        self.range.clone()
    }
}

impl Deref for FilePart {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.source.known(self.range.clone())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    /// A file of these bytes, and the source that it is.
    fn file(bytes: &[u8]) -> (tempfile::NamedTempFile, Source) {
        let mut file = tempfile::NamedTempFile::new().expect("a file");
        file.write_all(bytes).expect("its bytes");
        let source = Source::open(file.path()).expect("the file opens");
        (file, source)
    }

    #[test]
    fn every_part_is_what_the_file_has_there() {
        let bytes: Vec<u8> = (0..5 * STRETCH + 77).map(|n| (n / 7 % 251) as u8 + 1).collect();
        let (_file, source) = file(&bytes);
        let ends = [0, 1, 77, STRETCH - 1, STRETCH, STRETCH + 1, 3 * STRETCH, 5 * STRETCH, 5 * STRETCH + 77];
        for start in ends.iter().rev() {
            for end in ends.iter().filter(|end| *end >= start) {
                assert_eq!(source.get(*start..*end), bytes.get(*start..*end));
            }
        }
        assert_eq!((source.len(), source.start(9), source.at(3, 4)), (bytes.len(), &bytes[..9], Some(&bytes[3..7])));
        assert_eq!(source.get(1..bytes.len() + 1), None);
        assert_eq!(source.at(u64::MAX, 1), None);
        assert_eq!(source.at(1, usize::MAX), None);
        assert_eq!(file(&[]).1.get(0..0), Some(&[][..]));
        assert_eq!(file(&[]).1.get(0..1), None);
    }

    #[test]
    fn a_file_that_was_closed_is_read_by_its_name_as_long_as_it_is_the_same() {
        let bytes: Vec<u8> = (0..3 * STRETCH).map(|n| (n % 249) as u8).collect();
        let (file, mut source) = file(&bytes);
        source.close(file.path()).expect("it is closed");
        assert_eq!(source.get(5..9), Some(&bytes[5..9]));
        assert_eq!(source.get(2 * STRETCH..3 * STRETCH), Some(&bytes[2 * STRETCH..]));
        // Another file takes the name.
        let other = tempfile::NamedTempFile::new_in(file.path().parent().expect("a folder")).expect("a file");
        std::fs::write(other.path(), &bytes).expect("its bytes");
        std::fs::rename(other.path(), file.path()).expect("it takes the name");
        assert_eq!(source.get(STRETCH..STRETCH + 1), None);
        assert_eq!(source.get(0..9), Some(&bytes[..9]));
    }

    #[test]
    fn names_end_where_the_parser_of_the_crate_finds_their_end() {
        let mut bytes = vec![b'a'; 2 * STRETCH + 9];
        for at in [0, 5, STRETCH - 1, STRETCH + 3, 2 * STRETCH] {
            bytes[at] = 0;
        }
        let (_file, source) = file(&bytes);
        let places = [0, 1, 5, 6, STRETCH - 1, STRETCH, STRETCH + 3, STRETCH + 4, 2 * STRETCH + 1, bytes.len()];
        for start in places {
            for end in places.into_iter().chain([bytes.len() + 1]) {
                let range = start as u64..end as u64;
                // Backwards, the crate's own cuts a slice and ours sees no bytes: none has a name.
                let expected = if start > end { Err(()) } else { (&bytes[..]).read_bytes_at_until(range.clone(), 0) };
                assert_eq!((&source).read_bytes_at_until(range, 0), expected, "{start}..{end}");
            }
        }
    }

    #[test]
    fn what_a_file_loses_cannot_be_read_and_what_was_read_stays() {
        let bytes = vec![7; 4 * STRETCH];
        let (file, source) = file(&bytes);
        let read = source.get(0..10).expect("the first bytes");
        file.as_file().set_len(0).expect("the file is cut off");
        assert!(source.failed().is_none());
        assert_eq!(source.get(3 * STRETCH..3 * STRETCH + 1), None);
        assert_eq!(source.failed().map(io::Error::kind), Some(io::ErrorKind::UnexpectedEof));
        assert_eq!((read, source.get(2..STRETCH)), (&bytes[..10], Some(&bytes[2..STRETCH])));
        // Of another length now: what comes behind the old end is not the file that was opened.
        file.as_file().set_len(8 * STRETCH as u64).expect("the file grows");
        assert_eq!(source.get(4 * STRETCH..4 * STRETCH + 1), None);
        assert_eq!(source.get(3 * STRETCH..3 * STRETCH + 1), Some(&[0][..]));
    }
}
