//! The memory of a process, for who reads a block in it.

use std::fs::File;
use std::os::unix::fs::FileExt as _;

use ompt_record::read::Memory;

/// The words of a process.
pub struct Words(File);

impl Words {
    /// Those of this one.
    pub fn of(pid: i32) -> std::io::Result<Words> {
        Ok(Words(File::open(format!("/proc/{pid}/mem"))?))
    }

    /// The word at an address.
    pub fn word(&self, at: u64) -> std::io::Result<u64> {
        Ok(self.words(at, 1)?[0])
    }
}

impl Memory for Words {
    type Error = std::io::Error;

    fn words(&self, at: u64, count: usize) -> std::io::Result<Vec<u64>> {
        let mut bytes = vec![0; count * size_of::<u64>()];
        self.0.read_exact_at(&mut bytes, at)?;
        Ok(bytes.as_chunks().0.iter().map(|word| u64::from_ne_bytes(*word)).collect())
    }
}
