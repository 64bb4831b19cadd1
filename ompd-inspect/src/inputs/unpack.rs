//! Unpacking a core to a file without a name.
//!
//! Zeros take no room in that file. The size of the core is limited, and part of the disk is always left free: a malicious file
//! cannot fill it.

use std::ffi::OsString;
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use ompd_process::MAX_FILE;
use ompd_report::escape::escape;

use super::decoders::Packing;
use crate::output::Failure;

/// Bytes that are unpacked at once.
const STEP: usize = 256 << 10;
/// Bytes that are written or left out together: a page, the smallest hole of file systems.
const PAGE: usize = 4 << 10;
/// The share of the disk that is left free is one of so many, and at most so many bytes.
const FREE_SHARE: u64 = 20;
const MOST_FREE: u64 = 2 << 30;

/// A core that was unpacked.
#[derive(Debug)]
pub struct Unpacked {
    /// Its bytes.
    pub file: File,
    /// Why it may be cut off.
    pub damage: Option<Damage>,
}

/// What is wrong with a packed file of which a part could be unpacked.
#[derive(Debug)]
pub struct Damage {
    name: String,
    packing: Packing,
    /// Bytes of the core before it.
    after: u64,
    why: String,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Damage { name, packing, after, why } = self;
        let packing = packing.name();
        write!(f, "{name} is {packing} and cannot be unpacked after the first {after} bytes of the core: {why}")
    }
}

impl From<Damage> for Failure {
    fn from(damage: Damage) -> Failure {
        let remedy = match damage.packing {
            Packing::CrashReport => {
                "copy the report again, or take the core out of it (apport-unpack FILE DIR)".to_owned()
            }
            packing => format!("copy the file again, and check the copy ({})", packing.check()),
        };
        Failure::with_remedy(escape(&damage.to_string()), remedy)
    }
}

/// How a core is unpacked, and how much of it.
#[derive(Debug)]
pub struct Unpacking<'a> {
    /// `None`: it is copied as it is.
    packing: Option<Packing>,
    /// The file in messages.
    name: &'a str,
    /// Where the core is written to.
    directory: PathBuf,
    /// The largest core, in bytes.
    limit: u64,
}

impl<'a> Unpacking<'a> {
    /// With the usual directory and limit.
    pub fn new(packing: Option<Packing>, name: &'a str) -> Unpacking<'a> {
        let directory = directory(std::env::var_os("TMPDIR"));
        Unpacking { packing, name, directory, limit: MAX_FILE }
    }

    /// Unpacks all of `from`, and says now and then how many bytes of the core there are.
    ///
    /// # Errors
    /// The core is too large, there is no room for it, or nothing could be read.
    pub fn run(&self, from: impl Read, progress: &mut dyn FnMut(u64)) -> Result<Unpacked, Failure> {
        let name = escape(self.name);
        let place = escape(&self.directory.display().to_string());
        let file = tempfile::tempfile_in(&self.directory).map_err(|error| {
            Failure::with_remedy(
                format_args!("{name} cannot be unpacked: no file can be made in {place}: {error}"),
                "set TMPDIR to a directory that may be written",
            )
        })?;
        let mut damage = None;
        let mut length = 0;
        let mut bytes = vec![0; STEP];
        let mut reader = match self.packing {
            Some(packing) => packing.reader(from),
            None => Ok(Box::new(from) as Box<dyn Read>),
        };
        loop {
            let (read, error) = match &mut reader {
                Ok(reader) => fill(reader, &mut bytes),
                Err(error) => (0, Some(io::Error::new(error.kind(), error.to_string()))),
            };
            if length + read as u64 > self.limit {
                return Err(self.too_large());
            }
            write_sparse(&file, &bytes[..read], length, &|| self.has_room(&file)).map_err(|error| {
                match error.kind() {
                    io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => self.no_room(length),
                    _ => Failure::new(format!("{name} cannot be unpacked to {place}: {error}")),
                }
            })?;
            length += read as u64;
            progress(length);
            match (error, self.packing) {
                (None, _) if read == bytes.len() => {}
                (None, _) => break,
                (Some(error), Some(packing)) => {
                    let why = match error.kind() {
                        io::ErrorKind::UnexpectedEof => "the file ends too early".to_owned(),
                        _ => error.to_string(),
                    };
                    damage = Some(Damage { name: self.name.to_owned(), packing, after: length, why });
                    break;
                }
                (Some(error), None) => return Err(Failure::new(format!("{name} cannot be read: {error}"))),
            }
        }
        if length == 0
            && let Some(damage) = damage
        {
            return Err(damage.into());
        }
        // What ends with zeros has to be as long as it was.
        file.set_len(length).map_err(|error| Failure::new(format!("{name} cannot be unpacked to {place}: {error}")))?;
        Ok(Unpacked { file, damage })
    }

    fn too_large(&self) -> Failure {
        let Unpacking { name, limit, .. } = self;
        Failure::with_remedy(
            format_args!(
                "{}: the core in it is larger than {} GiB, the largest that is read",
                escape(name),
                limit >> 30
            ),
            "inspect the process while it runs, or have it leave a smaller core (coredump_filter, core(5))",
        )
    }

    fn no_room(&self, length: u64) -> Failure {
        let by_hand = match self.packing {
            Some(packing) => format!(", or unpack it where there is room ({})", packing.by_hand()),
            None => String::new(),
        };
        Failure::with_remedy(
            format_args!(
                "{}: {} has no room for the core: {} MiB of it are unpacked, and {} % of the disk must stay free",
                escape(self.name),
                escape(&self.directory.display().to_string()),
                length >> 20,
                100 / FREE_SHARE,
            ),
            format_args!("set TMPDIR to a directory on a disk with more room{by_hand}"),
        )
    }

    /// Whether another step may be written to the disk of this file.
    fn has_room(&self, file: &File) -> bool {
        // Where the file system does not say, it refuses by itself.
        rustix::fs::fstatvfs(file).map_or(true, |disk| {
            let keep = (disk.f_blocks.saturating_mul(disk.f_frsize) / FREE_SHARE).min(MOST_FREE);
            disk.f_bavail.saturating_mul(disk.f_frsize) >= keep.saturating_add(STEP as u64)
        })
    }
}

/// Where large files go that last as long as a program: `TMPDIR`, else `/var/tmp`, which is a disk where `/tmp` is memory.
fn directory(named: Option<OsString>) -> PathBuf {
    let large = PathBuf::from("/var/tmp");
    match named.filter(|name| !name.is_empty()) {
        Some(name) => PathBuf::from(name),
        None if large.is_dir() => large,
        None => std::env::temp_dir(),
    }
}

/// Reads until the buffer is full or nothing is left; gives how much there was, and the error that ended it.
fn fill(from: &mut impl Read, buffer: &mut [u8]) -> (usize, Option<io::Error>) {
    let mut length = 0;
    while length < buffer.len() {
        match from.read(&mut buffer[length..]) {
            Ok(0) => break,
            Ok(read) => length += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return (length, Some(error)),
        }
    }
    (length, None)
}

/// Writes the pages that are not all zeros.
fn write_sparse(file: &File, bytes: &[u8], at: u64, has_room: &dyn Fn() -> bool) -> io::Result<()> {
    let is_zero = |page: &[u8]| page.iter().all(|byte| *byte == 0);
    let mut done = 0;
    while done < bytes.len() {
        let zeros = bytes[done..].chunks(PAGE).take_while(|page| is_zero(page)).map(<[u8]>::len).sum::<usize>();
        done += zeros;
        let data = bytes[done..].chunks(PAGE).take_while(|page| !is_zero(page)).map(<[u8]>::len).sum::<usize>();
        if data > 0 {
            if !has_room() {
                return Err(io::ErrorKind::StorageFull.into());
            }
            file.write_all_at(&bytes[done..done + data], at + done as u64)?;
        }
        done += data;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::fs::MetadataExt;
    use std::path::Path;

    use flate2::Compression;
    use flate2::write::GzEncoder;
    use lzma_rust2::{XzOptions, XzWriter};
    use ruzstd::encoding::{CompressionLevel, compress_to_vec};

    use super::*;

    /// As a core is: zeros, bytes that repeat, and noise.
    fn core() -> Vec<u8> {
        let mut state = 0x6f6d_7064_u64;
        let mut noise = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state as u8
        };
        let mut bytes = vec![0; 100_000];
        bytes[40_000..50_000].fill_with(&mut noise);
        bytes[60_000..70_000].fill(7);
        bytes
    }

    fn packed(bytes: &[u8]) -> Vec<(Packing, Vec<u8>)> {
        let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
        gzip.write_all(bytes).expect("it is packed");
        let mut lz4 = lz4_flex::frame::FrameEncoder::new(Vec::new());
        lz4.write_all(bytes).expect("it is packed");
        let mut xz = XzWriter::new(Vec::new(), XzOptions::with_preset(1)).expect("a writer");
        xz.write_all(bytes).expect("it is packed");
        vec![
            (Packing::Zstd, compress_to_vec(bytes, CompressionLevel::Fastest)),
            (Packing::Lz4, lz4.finish().expect("it is packed")),
            (Packing::Gzip, gzip.finish().expect("it is packed")),
            (Packing::Xz, xz.finish().expect("it is packed")),
        ]
    }

    fn unpack(packing: Packing, bytes: &[u8], limit: u64) -> Result<(Unpacked, Vec<u8>), Failure> {
        let unpacking = Unpacking { limit, ..Unpacking::new(Some(packing), "a file") };
        let unpacked = unpacking.run(bytes, &mut |_| {})?;
        let mut read = vec![0; usize::try_from(unpacked.file.metadata().expect("a file").len()).expect("a length")];
        unpacked.file.read_exact_at(&mut read, 0).expect("its bytes");
        Ok((unpacked, read))
    }

    #[test]
    fn each_format_gives_the_bytes_and_zeros_take_no_room() {
        let core = core();
        for (packing, bytes) in packed(&core) {
            assert_eq!(Packing::of(&bytes), Some(packing));
            // Two parts behind each other are one file.
            let twice = [&bytes[..], &bytes].concat();
            for (bytes, expected) in [(bytes, core.clone()), (twice, [&core[..], &core].concat())] {
                let (unpacked, read) = unpack(packing, &bytes, MAX_FILE).expect("it is unpacked");
                assert!(read == expected && unpacked.damage.is_none(), "{packing:?}: {:?}", unpacked.damage);
                let room = unpacked.file.metadata().expect("a file").blocks() * 512;
                assert!(room < expected.len() as u64 / 2, "{packing:?}: {room} bytes on the disk");
            }
        }
        let (unpacked, read) = (Unpacking::new(None, "a pipe").run(&core[..], &mut |_| {}).expect("a copy"), core);
        assert_eq!(unpacked.file.metadata().expect("a file").len(), read.len() as u64);
    }

    #[test]
    fn what_grows_beyond_the_limit_is_refused() {
        let zeros = vec![0; 8 << 20];
        for (packing, bytes) in packed(&zeros) {
            assert!(unpack(packing, &bytes, 8 << 20).is_ok(), "{packing:?}");
            let failure = unpack(packing, &bytes, 4 << 20).expect_err("it is too large").to_string();
            assert!(failure.contains("is larger than") && failure.contains("remedy: "), "{packing:?}: {failure}");
        }
    }

    /// Whatever the bytes are, there is a result, and never more than the limit.
    #[test]
    fn changed_and_cut_files_end_well() {
        let core = core();
        let mut damaged = 0;
        for (packing, bytes) in packed(&core) {
            let mut tried = 0;
            for at in (0..64).chain((64..bytes.len()).step_by(bytes.len() / 40)).chain(bytes.len() - 16..bytes.len()) {
                for change in [0x01, 0x80, 0xff] {
                    let mut changed = bytes.clone();
                    changed[at] ^= change;
                    let found = unpack(packing, &changed, 1 << 20);
                    damaged += usize::from(found.is_ok_and(|(unpacked, _)| unpacked.damage.is_some()));
                    tried += 1;
                }
                let found = unpack(packing, &bytes[..at], 1 << 20);
                // A cut of lz4 between two blocks is not seen there. The core that is too short shows it.
                let fits = |(unpacked, read): (Unpacked, Vec<u8>)| unpacked.damage.is_some() || core.starts_with(&read);
                assert!(found.map_or(true, fits), "{packing:?}: cut at {at}");
                tried += 1;
            }
            assert!(tried > 400, "{packing:?}: {tried}");
        }
        assert!(damaged > 100, "{damaged}");
    }

    #[test]
    fn large_files_go_where_there_is_room_for_them() {
        assert_eq!(directory(Some("/a/b".into())), PathBuf::from("/a/b"));
        let usual = directory(None);
        assert!(usual == Path::new("/var/tmp") || usual == std::env::temp_dir(), "{usual:?}");
        assert_eq!(directory(Some("".into())), usual);
    }
}
