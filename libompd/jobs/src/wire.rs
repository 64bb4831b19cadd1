//! Merged reports on the way from a host to the command that asked it, as lines among whatever else its launcher prints.
//!
//! Launchers cut long lines and mix those of several hosts, and some put the host in front of each. So a report is compressed and
//! written as short numbered lines. A line is `MARK NODE NUMBER COUNT CRC PAYLOAD`, in base64.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use flate2::{Compression, Crc};

use crate::merged::Merged;
use crate::read::{self, ReadError};

/// What a line begins with, after what a launcher may have put in front.
const MARK: &str = "@ompd-inspect/1";
/// Bytes in a line, before base64: `slurmstepd` passes on 1,024 bytes at once (Slurm, `src/common/io_hdr.h`).
const LINE_BYTES: usize = 600;
/// A longer line is no line of a report.
pub const MOST_LINE_BYTES: usize = 4096;
/// Lines of one report.
const MOST_LINES: usize = 1 << 16;
/// Letters of the name of a node.
const MOST_NAME: usize = 256;
/// Bytes of one report, decompressed.
const MOST_BYTES: u64 = 256 << 20;
/// Bytes of all reports that are not complete yet.
const MOST_PENDING: usize = 256 << 20;

/// Why the lines of a node are no report.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WireError {
    /// A line is damaged, or of another report than the lines before.
    #[error("its report is damaged on the way")]
    Damaged,
    /// It is larger than a report of one host is.
    #[error("its report is too large")]
    TooLarge,
    /// It is complete and no report.
    #[error(transparent)]
    Read(#[from] ReadError),
}

/// The lines of a report. `node`: the host that it is of.
///
/// # Errors
/// The report cannot be written as JSON.
pub fn lines(node: &str, report: &Merged) -> Result<Vec<String>, serde_json::Error> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    serde_json::to_writer(&mut encoder, report)?;
    let bytes = encoder.flush().and_then(|()| encoder.finish()).map_err(serde_json::Error::io)?;
    let crc = checksum(&bytes);
    let node = name(node);
    let count = bytes.len().div_ceil(LINE_BYTES);
    let parts = bytes.chunks(LINE_BYTES).enumerate();
    Ok(parts.map(|(at, part)| format!("{MARK} {node} {at} {count} {crc:08x} {}", BASE64.encode(part))).collect())
}

/// The name of a node without what separates the parts of a line.
fn name(node: &str) -> String {
    let plain = |letter: char| if letter.is_ascii_graphic() { letter } else { '_' };
    let name: String = node.chars().take(MOST_NAME).map(plain).collect();
    if name.is_empty() { "_".to_owned() } else { name }
}

fn checksum(bytes: &[u8]) -> u32 {
    let mut crc = Crc::new();
    crc.update(bytes);
    crc.sum()
}

/// Lines of several nodes, put together.
#[derive(Debug, Default)]
pub struct Lines {
    /// What has come of the reports that are not complete, by node and checksum.
    pending: BTreeMap<(String, u32), Pending>,
    bytes: usize,
}

#[derive(Debug)]
struct Pending {
    parts: BTreeMap<usize, Vec<u8>>,
    count: usize,
}

/// What a line has completed.
#[derive(Debug)]
pub enum Line {
    /// It is none of a report.
    Other,
    /// More lines follow.
    Part,
    /// The report of a node.
    Report(Box<Node>),
}

/// A node with its report.
#[derive(Debug)]
pub struct Node {
    /// Its name, as it calls itself.
    pub name: String,
    /// What a launcher has put in front of its line (`n1: `), which may be its name as well.
    pub label: Option<String>,
    /// Its report, or why there is none.
    pub report: Result<Merged, WireError>,
}

impl Lines {
    /// Takes a line.
    pub fn take(&mut self, line: &str) -> Line {
        let Some(at) = line.find(MARK) else { return Line::Other };
        let mut words = line[at + MARK.len()..].split_ascii_whitespace();
        let Some(name) = words.next().filter(|name| name.len() <= MOST_NAME).map(str::to_owned) else {
            return Line::Other;
        };
        let label = line[..at].trim().strip_suffix(':').filter(|label| !label.is_empty() && label.len() <= MOST_NAME);
        let label = label.map(str::to_owned);
        match self.part(&name, words) {
            Ok(None) => Line::Part,
            Ok(Some(bytes)) => Line::Report(Box::new(Node { name, label, report: decode(&bytes) })),
            Err(error) => Line::Report(Box::new(Node { name, label, report: Err(error) })),
        }
    }

    fn part<'l>(&mut self, name: &str, mut words: impl Iterator<Item = &'l str>) -> Result<Option<Vec<u8>>, WireError> {
        let mut number = || words.next()?.parse::<usize>().ok();
        let (at, count) = number().zip(number()).filter(|(at, count)| at < count).ok_or(WireError::Damaged)?;
        let crc = words.next().and_then(|word| u32::from_str_radix(word, 16).ok()).ok_or(WireError::Damaged)?;
        let part = words.next().and_then(|word| BASE64.decode(word).ok()).ok_or(WireError::Damaged)?;
        if words.next().is_some() {
            return Err(WireError::Damaged);
        }
        if count > MOST_LINES || self.bytes.saturating_add(part.len()) > MOST_PENDING {
            return Err(WireError::TooLarge);
        }
        let key = (name.to_owned(), crc);
        let pending = self.pending.entry(key.clone()).or_insert_with(|| Pending { parts: BTreeMap::new(), count });
        if pending.count != count || pending.parts.contains_key(&at) {
            return Err(WireError::Damaged);
        }
        self.bytes += part.len();
        pending.parts.insert(at, part);
        if pending.parts.len() < count {
            return Ok(None);
        }
        let bytes: Vec<u8> = pending.parts.values().flatten().copied().collect();
        self.pending.remove(&key);
        self.bytes = self.bytes.saturating_sub(bytes.len());
        match checksum(&bytes) == crc {
            true => Ok(Some(bytes)),
            false => Err(WireError::Damaged),
        }
    }

    /// The nodes of whose reports a part has come and not all.
    pub fn incomplete(&self) -> impl Iterator<Item = &str> {
        self.pending.keys().map(|(name, _)| name.as_str())
    }
}

fn decode(bytes: &[u8]) -> Result<Merged, WireError> {
    let mut text = Vec::new();
    let read = GzDecoder::new(bytes).take(MOST_BYTES + 1).read_to_end(&mut text);
    read.map_err(|_| WireError::Damaged)?;
    match text.len() as u64 > MOST_BYTES {
        true => Err(WireError::TooLarge),
        false => Ok(read::read("", &text)?),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Line, Lines, MOST_LINE_BYTES, WireError, lines};
    use crate::merged::{Members, Merged, Place, Process};

    fn merged(rank: u64) -> Merged {
        let process = Process { job: "4711.0".to_owned(), rank: Some(rank), host: Some("n1".to_owned()), pid: Some(7) };
        let mut merged = Merged { inspected: Members::one(&process), ..Merged::default() };
        for place in 0..200 {
            // What hardly compresses, so that there are several lines.
            let text = format!("{:x}", (place + rank + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
            merged.places.insert(Place { text }, Members::one(&process));
        }
        merged
    }

    #[test]
    fn mixed_and_labelled_lines_of_nodes_are_their_reports() {
        let (one, two) = (lines("n1", &merged(1)).expect("lines"), lines("n 2", &merged(2)).expect("lines"));
        assert!(one.len() > 2 && one.iter().all(|line| line.len() < 1024 && line.len() < MOST_LINE_BYTES));
        let mut all = Lines::default();
        let mut reports = Vec::new();
        for (of_one, of_two) in one.iter().rev().zip(&two) {
            assert!(matches!(all.take("srun: a warning"), Line::Other));
            for line in [format!("n1: {of_one}"), of_two.clone()] {
                if let Line::Report(node) = all.take(&line) {
                    let name = node.label.unwrap_or(node.name);
                    reports.push((name, node.report.expect("a report")));
                }
            }
        }
        reports.sort_by(|one, two| one.0.cmp(&two.0));
        let names: Vec<&str> = reports.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["n1", "n_2"]);
        assert_eq!(reports.into_iter().map(|(_, report)| report).collect::<Vec<_>>(), [merged(1), merged(2)]);
        assert_eq!(all.incomplete().count(), 0);
    }

    #[test]
    fn a_damaged_report_is_an_error_of_its_node() {
        let whole = lines("n1", &merged(1)).expect("lines");
        let mut all = Lines::default();
        let mut last = Line::Other;
        for (at, line) in whole.iter().enumerate() {
            let (head, payload) = line.rsplit_once(' ').expect("a payload");
            let damaged = format!("{head} {}", payload.replace(['A', 'b'], "c"));
            last = all.take(if at == 1 { &damaged } else { line });
        }
        assert!(matches!(last, Line::Report(node) if matches!(node.report, Err(WireError::Damaged))));
        let mut all = Lines::default();
        whole.iter().skip(1).for_each(|line| drop(all.take(line)));
        assert_eq!(all.incomplete().collect::<Vec<_>>(), ["n1"]);
    }

    proptest! {
        #[test]
        fn no_line_can_harm(words in prop::collection::vec("[ -~]{0,40}", 0..6)) {
            let mut all = Lines::default();
            let _ = all.take(&words.join(" "));
            let _ = all.take(&format!("{} {}", super::MARK, words.join(" ")));
        }
    }
}
