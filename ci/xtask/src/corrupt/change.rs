//! One change of a few bytes.

use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use anyhow::Result;
use test_programs::Random;

use super::stretches::{InFile, Stretch};

/// Bytes that take the place of others.
pub(super) struct Change {
    pub(super) file: InFile,
    /// Where in the file.
    pub(super) at: u64,
    /// Where in the memory of the process, if it is memory.
    pub(super) address: Option<u64>,
    pub(super) before: Vec<u8>,
    pub(super) now: Vec<u8>,
}

/// The widest change, in bytes.
const WORD: usize = 8;

impl Change {
    /// What it changes in the memory of the process.
    pub(super) fn addresses(&self) -> Option<Range<u64>> {
        self.address.map(|address| address..address + self.now.len() as u64)
    }

    /// A change in one of the stretches; nothing if the bytes are the same by chance.
    pub(super) fn choose(
        random: &mut Random,
        stretches: &[Stretch],
        core: &Path,
        root: &Path,
    ) -> Result<Option<Change>> {
        let stretch = &stretches[random.below(stretches.len())];
        let file = File::open(stretch.file.below(core, root))?;
        // Half of the changes are of whole words, where pointers and counts lie.
        let is_whole = random.below(2) == 0;
        let length = usize::try_from(stretch.length)?;
        let (skip, size) = match random.below(length) {
            at if is_whole && length >= WORD => (at / WORD * WORD, WORD.min(length - at / WORD * WORD)),
            at => (at, 1),
        };
        let at = stretch.at + skip as u64;
        let mut before = vec![0; size];
        if file.read_exact_at(&mut before, at).is_err() {
            return Ok(None);
        }
        let now = other(random, &before, |random| {
            // Another word that lies somewhere in such a stretch.
            let stretch = &stretches[random.below(stretches.len())];
            let mut word = vec![0; size];
            let from = File::open(stretch.file.below(core, root)).ok()?;
            let within = (stretch.length as usize).saturating_sub(size) + 1;
            let skip = random.below(within) / size * size;
            from.read_exact_at(&mut word, stretch.at + skip as u64).ok()?;
            Some(word)
        });
        let address = stretch.address.map(|address| address + skip as u64);
        Ok((now != before).then(|| Change { file: stretch.file.clone(), at, address, before, now }))
    }
}

fn other(random: &mut Random, before: &[u8], foreign: impl Fn(&mut Random) -> Option<Vec<u8>>) -> Vec<u8> {
    let mut now = before.to_vec();
    match random.below(7) {
        0 | 1 => {
            let bit = random.below(8 * now.len());
            now[bit / 8] ^= 1 << (bit % 8);
        }
        2 => now.fill(0),
        3 => now.fill(0xff),
        4 => now.iter_mut().for_each(|byte| *byte = random.number() as u8),
        5 => now = foreign(random).unwrap_or(now),
        _ => {
            let by = [1, 2, 8, 64, 4096][random.below(5)];
            let mut word = [0; WORD];
            word[..now.len()].copy_from_slice(&now);
            let number = u64::from_le_bytes(word);
            let number = if random.below(2) == 0 { number.wrapping_add(by) } else { number.wrapping_sub(by) };
            let size = now.len();
            now.copy_from_slice(&number.to_le_bytes()[..size]);
        }
    }
    now
}

/// The changes in words: file, place, and the bytes before and after.
pub(super) fn words(changes: &[Change]) -> String {
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let one = |change: &Change| {
        let address = change.address.map(|address| format!(" (address {address:#x})")).unwrap_or_default();
        let (before, now) = (hex(&change.before), hex(&change.now));
        format!("{} at {:#x}{address} {before} → {now}", change.file, change.at)
    };
    changes.iter().map(one).collect::<Vec<_>>().join(", ")
}
