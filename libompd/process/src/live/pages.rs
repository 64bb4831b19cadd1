//! Which pages of a process are in use (docs/internals/stops.md, "Stacks").

use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;

use nix::unistd::{SysconfVar, sysconf};

use super::procdir::ProcDir;

/// Bytes of an entry (Documentation/admin-guide/mm/pagemap.rst).
const ENTRY: u64 = 8;
/// Bits of an entry, of which one is set if the page is in use: it is present, swapped out, or a guard.
const IN_USE: u64 = 1 << 63 | 1 << 62 | 1 << 58;
/// A gap of fewer pages is not left out.
const MIN_GAP: usize = 4;
/// Pages whose entries are read at once, at most.
const MAX_PAGES: u64 = 64 << 10;

/// `/proc/PID/pagemap` of a process.
#[derive(Debug)]
pub(super) struct Pages {
    file: File,
    size: u64,
}

impl Pages {
    /// `None` if procfs has no such file, or does not let it be read.
    pub fn of(process: &ProcDir) -> Option<Pages> {
        let size = u64::try_from(sysconf(SysconfVar::PAGE_SIZE).ok()??).ok()?;
        Some(Pages { file: File::open(process.path("pagemap")).ok()?, size })
    }

    /// The parts of `range` with pages that are in use. All of it, if that is not known.
    pub fn in_use(&self, range: Range<u64>) -> Vec<Range<u64>> {
        match self.entries(&range) {
            Some((first, entries)) => parts(range, first, self.size, &entries),
            None => vec![range],
        }
    }

    /// The entries of the pages of a range, and where the first page begins; `None` if there are too few or too many.
    fn entries(&self, range: &Range<u64>) -> Option<(u64, Vec<u64>)> {
        let (first, behind) = (range.start / self.size, range.end.div_ceil(self.size));
        let pages = behind.checked_sub(first).filter(|pages| (MIN_GAP as u64..=MAX_PAGES).contains(pages))?;
        let mut bytes = vec![0; (pages * ENTRY) as usize];
        self.file.read_exact_at(&mut bytes, first.checked_mul(ENTRY)?).ok()?;
        let (entries, _) = bytes.as_chunks();
        Some((first * self.size, entries.iter().map(|entry| u64::from_ne_bytes(*entry)).collect()))
    }
}

/// The parts of `range` whose entries show that they are in use. The first of the entries is that of the page at `at`.
fn parts(range: Range<u64>, at: u64, size: u64, entries: &[u64]) -> Vec<Range<u64>> {
    let mut parts: Vec<Range<usize>> = Vec::new();
    for (index, _) in entries.iter().enumerate().filter(|(_, entry)| **entry & IN_USE != 0) {
        match parts.last_mut() {
            Some(part) if index - part.end < MIN_GAP => part.end = index + 1,
            _ => parts.push(index..index + 1),
        }
    }
    let place = |index: usize| at.saturating_add(index as u64 * size).clamp(range.start, range.end);
    parts.into_iter().map(|part| place(part.start)..place(part.end)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_that_are_not_in_use_are_left_out() {
        const SIZE: u64 = 0x1000;
        let (present, swapped, guard, never) = (1 << 63, 1 << 62, 1 << 58, 1 << 55);
        let of = |entries: &[u64], behind: u64| {
            let parts = parts(0x1_0080..behind, 0x1_0000, SIZE, entries);
            parts.into_iter().map(|part| (part.start, part.end)).collect::<Vec<_>>()
        };
        let entries = [present, never, never, never, never, swapped, guard, never];
        assert_eq!(of(&entries, 0x1_8000), [(0x1_0080, 0x1_1000), (0x1_5000, 0x1_7000)]);
        // A short gap is not worth two reads.
        let short = [present, never, never, never, present, never, never, never];
        assert_eq!(of(&short, 0x1_8000), [(0x1_0080, 0x1_5000)]);
        assert_eq!(of(&[never; 8], 0x1_8000), []);
        assert_eq!(of(&[present; 8], 0x1_7ff0), [(0x1_0080, 0x1_7ff0)]);
    }
}
