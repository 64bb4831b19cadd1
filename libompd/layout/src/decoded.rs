//! What was decoded from the code of known builds, shipped: to decode it takes most of the time of a look at a process. What was
//! decoded of others is kept in a [`Cache`].
//!
//! A record is of one file: its build-id, and size and checksum of its code. So a file that somebody has changed, or that
//! pretends to be another one, has none, and is decoded. `cargo xtask matrix` makes the records and checks that decoding
//! says the same.

use std::fmt::Write as _;

use crc32fast::Hasher;
use ompd_process::elf::ElfFile;

use crate::facts::Facts;
use crate::profile::ExportView;

mod cache;

pub use cache::{Cache, NotCached};

/// Which file a record is of: build-id, bytes and CRC-32 of its executable segments. `None` for a file without code.
pub fn key(file: &ElfFile) -> Option<String> {
    let mut hasher = Hasher::new();
    let mut size = 0;
    for range in file.executable_ranges() {
        let bytes = file.bytes_at(range.start, range.end.saturating_sub(range.start))?;
        hasher.update(bytes);
        size += bytes.len();
    }
    let build_id = ExportView::build_id(file)?;
    // It may be the name of a file, and the key ends with a blank.
    let is_plain = build_id.bytes().all(|byte| byte.is_ascii_graphic());
    (size > 0 && is_plain).then(|| format!("{build_id}/{size:x}/{:08x}", hasher.finalize()))
}

/// What the records, one on a line, have for a file.
pub fn find(records: &str, file: &ElfFile) -> Option<Facts> {
    // Most files have no build-id that is among them: their code need not be read.
    let build_id = ExportView::build_id(file)?;
    let mut lines = records.lines().filter(|line| line.starts_with(&*build_id)).peekable();
    lines.peek()?;
    let key = key(file)?;
    let record = lines.find_map(|line| line.strip_prefix(&*key)?.strip_prefix(' '))?;
    // What is shipped can be read, as a test shows.
    serde_json::from_str(record).ok()
}

/// The record of a file. `None` if it can have none.
pub fn record(file: &ElfFile, facts: &Facts) -> Option<String> {
    let mut line = key(file)?;
    write!(line, " {}", serde_json::to_string(facts).ok()?).ok()?;
    Some(line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::Field;

    /// A file that has code and a build-id: this very program.
    fn own() -> ElfFile {
        ElfFile::open(&std::env::current_exe().expect("its path")).expect("it can be read")
    }

    #[test]
    fn a_file_has_its_own_record_and_no_other_one() {
        let file = own();
        let mut facts = Facts::default();
        facts.set_field("thread", "number", Field { offset: 8, size: 4, bits: None });
        facts.globals.insert("threads".to_owned(), 0x4000);
        let line = record(&file, &facts).expect("it has a build-id and code");
        let records = format!("00 {{}}\n{line}\n");
        assert_eq!(find(&records, &file), Some(facts));
        // The same build-id with other code.
        let key = key(&file).expect("it has one");
        let (front, crc) = key.rsplit_once('/').expect("three parts");
        let other = format!("{:08x}", !u32::from_str_radix(crc, 16).expect("a number"));
        assert_eq!(find(&records.replace(&key, &format!("{front}/{other}")), &file), None);
        assert_eq!(find("", &file), None);
        assert_eq!(find(&format!("{key} no facts"), &file), None);
    }
}
