//! Formats in which cores are packed, and the readers that unpack them.

use std::io::{self, BufRead, BufReader, Read};

use flate2::bufread::MultiGzDecoder;
use lz4_flex::frame::FrameDecoder as Lz4Frame;
use lzma_rust2::XzReader;
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

use super::crash_report;

/// Bytes at the start of a file that tell how it is packed.
pub const LOOKED_AT: usize = 64;

/// Memory that an xz file may ask for, in KiB. The largest that `xz` writes by itself asks for 65 MiB.
const XZ_MEMORY: u32 = 512 << 10;

/// How a core is packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Packing {
    /// zstd, as systemd-coredump writes.
    Zstd,
    /// lz4 frames, as systemd-coredump wrote.
    Lz4,
    /// gzip.
    Gzip,
    /// xz, as old systemd-coredump and abrt write.
    Xz,
    /// A crash report of apport, in which the core is a field.
    CrashReport,
}

impl Packing {
    /// The format that a file of these first bytes has.
    pub fn of(start: &[u8]) -> Option<Packing> {
        match start {
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Some(Packing::Zstd),
            [0x04, 0x22, 0x4d, 0x18, ..] | [0x02, 0x21, 0x4c, 0x18, ..] => Some(Packing::Lz4),
            [0x1f, 0x8b, ..] => Some(Packing::Gzip),
            [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Some(Packing::Xz),
            _ if crash_report::begins(start) => Some(Packing::CrashReport),
            _ => None,
        }
    }

    /// Its name in a sentence.
    pub fn name(self) -> &'static str {
        match self {
            Packing::Zstd => "compressed with zstd",
            Packing::Lz4 => "compressed with lz4",
            Packing::Gzip => "compressed with gzip",
            Packing::Xz => "compressed with xz",
            Packing::CrashReport => "a crash report of apport",
        }
    }

    /// How to check such a file for damage.
    pub fn check(self) -> &'static str {
        match self {
            Packing::Zstd => "zstd -t",
            Packing::Lz4 => "lz4 -t",
            Packing::Gzip => "gzip -t",
            Packing::Xz => "xz -t",
            Packing::CrashReport => "apport-unpack FILE DIR",
        }
    }

    /// How to unpack such a file by hand.
    pub fn by_hand(self) -> &'static str {
        match self {
            Packing::Zstd => "zstd -d --long=31",
            Packing::Lz4 => "lz4 -d",
            Packing::Gzip => "gunzip",
            Packing::Xz => "xz -d",
            Packing::CrashReport => "apport-unpack FILE DIR",
        }
    }

    /// A reader of the core in `from`.
    ///
    /// # Errors
    /// A crash report has no core, or one that is packed in an unknown way.
    pub fn reader<'a>(self, from: impl Read + 'a) -> io::Result<Box<dyn Read + 'a>> {
        let from = BufReader::with_capacity(128 << 10, from);
        Ok(match self {
            Packing::Zstd => Box::new(Zstd { from, decoder: FrameDecoder::new(), in_frame: false }),
            Packing::Lz4 => Box::new(Lz4 { decoder: Some(Lz4Frame::new(from)) }),
            Packing::Gzip => Box::new(MultiGzDecoder::new(from)),
            Packing::Xz => Box::new(XzReader::new_mem_limit(from, true, XZ_MEMORY)),
            Packing::CrashReport => {
                let mut core = crash_report::core(from)?;
                let mut start = vec![0; LOOKED_AT];
                let length = read_start(&mut core, &mut start)?;
                start.truncate(length);
                match Packing::of(&start) {
                    Some(Packing::CrashReport) | None => return Err(crash_report::unknown()),
                    // As one type: a report would otherwise be read by a reader of a reader, without end.
                    Some(packing) => {
                        packing.reader(Box::new(io::Cursor::new(start).chain(core)) as Box<dyn Read + 'a>)?
                    }
                }
            }
        })
    }
}

/// Fills the buffer as far as there are bytes.
fn read_start(from: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut length = 0;
    while length < buffer.len() {
        match from.read(&mut buffer[length..])? {
            0 => break,
            read => length += read,
        }
    }
    Ok(length)
}

/// The frames of a zstd file one after the other (RFC 8878, 3.1).
struct Zstd<R> {
    from: R,
    decoder: FrameDecoder,
    in_frame: bool,
}

impl<R: BufRead> Read for Zstd<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if self.in_frame {
                while self.decoder.can_collect() == 0 && !self.decoder.is_finished() {
                    let decoded = self.decoder.decode_blocks(&mut self.from, BlockDecodingStrategy::UptoBlocks(1));
                    decoded.map_err(io::Error::other)?;
                }
                let read = self.decoder.read(buffer)?;
                if read > 0 || buffer.is_empty() {
                    return Ok(read);
                }
                self.in_frame = false;
                let stated = self.decoder.get_checksum_from_data();
                if stated.is_some() && stated != self.decoder.get_calculated_checksum() {
                    return Err(io::Error::new(io::ErrorKind::InvalidData, "the checksum is wrong"));
                }
            }
            if self.from.fill_buf()?.is_empty() {
                return Ok(0);
            }
            match self.decoder.reset(&mut self.from) {
                Ok(()) => self.in_frame = true,
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame { length, .. })) => {
                    io::copy(&mut (&mut self.from).take(u64::from(length)), &mut io::sink())?;
                }
                Err(error) => return Err(io::Error::other(error)),
            }
        }
    }
}

/// The frames of an lz4 file one after the other. The decoder of one frame reads nothing behind it.
struct Lz4<R: Read> {
    /// `None` after the last frame.
    decoder: Option<Lz4Frame<R>>,
}

impl<R: BufRead> Read for Lz4<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while let Some(decoder) = &mut self.decoder {
            let read = decoder.read(buffer)?;
            if read > 0 || buffer.is_empty() {
                return Ok(read);
            }
            if decoder.get_mut().fill_buf()?.is_empty() {
                self.decoder = None;
            } else {
                self.decoder = self.decoder.take().map(|decoder| Lz4Frame::new(decoder.into_inner()));
            }
        }
        Ok(0)
    }
}
