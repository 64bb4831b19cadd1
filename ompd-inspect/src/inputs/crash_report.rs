//! Crash reports of apport (`/var/crash/*.crash`): the core is the field `CoreDump`, compressed and in base64.
//!
//! A report is lines of `Key: value`. A binary value is `base64`, and below it lines that begin with a blank. Each of
//! them is base64 of its own; together they are a compressed file (problem_report.py of apport).

use std::io::{self, BufRead, Read};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// The line above the core.
const FIELD: &str = "CoreDump: base64";
/// The longest line that is read. Apport puts at most 1 MiB of the core on a line.
const LONGEST_LINE: u64 = 16 << 20;

/// True for the first bytes of a report: its first line says what kind of problem it is about.
pub fn begins(start: &[u8]) -> bool {
    start.starts_with(b"ProblemType: ")
}

/// A refusal of what is no core in a known form.
pub fn unknown() -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, "its core is compressed in an unknown way")
}

/// The compressed core in a report.
///
/// # Errors
/// There is none.
pub fn core<R: BufRead>(mut report: R) -> io::Result<impl Read> {
    let mut line = Vec::new();
    loop {
        if read_line(&mut report, &mut line)? == 0 {
            return Err(io::Error::new(io::ErrorKind::NotFound, "the report has no core (field CoreDump)"));
        }
        if line == FIELD.as_bytes() {
            return Ok(Lines { report, line, bytes: io::Cursor::default() });
        }
    }
}

/// Reads a line without its end, as bytes; gives its length with the end, which is 0 behind the last line.
fn read_line<R: BufRead>(report: &mut R, line: &mut Vec<u8>) -> io::Result<usize> {
    line.clear();
    let length = report.take(LONGEST_LINE).read_until(b'\n', line)?;
    if line.last() == Some(&b'\n') {
        line.pop();
    } else if length as u64 == LONGEST_LINE {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "a line is too long"));
    }
    Ok(length)
}

/// The bytes of the lines of a field.
struct Lines<R> {
    report: R,
    line: Vec<u8>,
    /// Of the current line.
    bytes: io::Cursor<Vec<u8>>,
}

impl<R: BufRead> Read for Lines<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let read = self.bytes.read(buffer)?;
            if read > 0 || buffer.is_empty() || self.report.fill_buf()?.first() != Some(&b' ') {
                return Ok(read);
            }
            read_line(&mut self.report, &mut self.line)?;
            let bytes = STANDARD.decode(self.line.trim_ascii());
            self.bytes = io::Cursor::new(bytes.map_err(|why| io::Error::new(io::ErrorKind::InvalidData, why))?);
        }
    }
}
