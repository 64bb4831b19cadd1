//! What has to be taken from a process while it is stopped: its threads' stacks, as they are.
//!
//! Everything else, following the stacks included, is done with the copy when the process runs again.

use std::ops::Range;

use ompd_process::{Addr, Registers, Target, TargetExt, TargetKind};
use ompd_python::{Interpreter, Snapshot};

use crate::frame::End;

/// Bytes below the stack pointer that belong to a leaf function (psABI x86-64, 3.2.2); more than other machines have.
const RED_ZONE: u64 = 128;
/// Of the stack of one thread so much is copied at least, if it is that deep.
const LEAST: u64 = 256 << 10;
/// Of the stack of one thread so much is copied at most.
const MOST: u64 = 8 << 20;
/// Of all stacks together so much is copied, if that leaves each its least. What shallow stacks need less is for the deep ones.
const TOTAL: u64 = 64 << 20;
/// So many copies below an address may hold it.
const NEAR: usize = 4;
/// Where the end of a stack is not known, this much is tried, then less and less.
const BLIND: u64 = 64 << 10;

/// The stacks of all threads at one moment.
#[derive(Debug, Default)]
pub struct Stacks {
    /// By address, the longer one of the same address last.
    copies: Vec<Copied>,
    /// Ranges with unused parts, and the others of each.
    in_use: Vec<(Range<u64>, Vec<Range<u64>>)>,
    /// What was copied, one behind the other.
    bytes: Vec<u8>,
    /// The process does not change, so nothing was copied.
    readable: bool,
    /// The frames of Python functions, which are not on these stacks.
    pub(crate) python: Snapshot,
}

/// A part of a stack.
#[derive(Debug)]
struct Copied {
    start: u64,
    /// Where in the copy it is.
    place: Range<usize>,
    /// From its end to here no page is in use.
    unused_to: u64,
    /// How many bytes of the stack were to be copied.
    of_stack: u64,
    /// Where the mapping ends, if it is known.
    end: Option<u64>,
}

impl Copied {
    /// Where it ends.
    fn behind(&self) -> u64 {
        self.start + self.place.len() as u64
    }
}

/// What is to be copied of a stack.
#[derive(Debug)]
struct Extent {
    start: u64,
    /// Its parts with pages that are in use, up to `known_to`.
    parts: Vec<Range<u64>>,
    known_to: u64,
    /// Where it ends, if that is known.
    end: Option<u64>,
}

impl Extent {
    fn of(target: &dyn Target, range: Range<u64>, end: Option<u64>) -> Extent {
        Extent { start: range.start, known_to: range.end, parts: target.in_use(range), end }
    }

    fn length(&self) -> u64 {
        self.parts.iter().map(length).sum()
    }

    /// Leaves out what is more than `limit` bytes.
    fn cut(&mut self, limit: u64) {
        let mut left = limit;
        for part in &mut self.parts {
            let fits = length(part).min(left);
            if fits < length(part) {
                part.end = part.start + fits;
                self.known_to = self.known_to.min(part.end);
            }
            left -= fits;
        }
        self.parts.retain(|part| part.end <= self.known_to && length(part) > 0);
    }
}

impl Stacks {
    /// Copies the stacks of all threads of a stopped process, from their stack pointers on to where they began. Of a core file no
    /// stack needs to be copied.
    pub fn capture(target: &dyn Target) -> Stacks {
        // What a debugger holds does not run while it asks.
        if target.kind() != TargetKind::Live {
            return Stacks { readable: true, ..Stacks::default() };
        }
        let threads: Vec<(i32, &Registers)> =
            target.threads().iter().filter_map(|t| Some((t.lwp, t.registers.as_ref().ok()?))).collect();
        let mut extents: Vec<Extent> = threads.iter().map(|(lwp, r)| extent(target, *lwp, r)).collect();
        let limit = fair_share(extents.iter().map(Extent::length).collect());
        let mut in_use = Vec::new();
        for extent in &mut extents {
            let whole = extent.start..extent.known_to;
            if extent.length() < length(&whole) {
                in_use.push((whole, extent.parts.clone()));
            }
            extent.cut(limit);
        }
        extents.extend(threads.iter().filter_map(|(lwp, r)| interrupted(target, *lwp, r)));
        let parts = extents.iter().flat_map(|extent| &extent.parts);
        let wanted: Vec<(Addr, u64)> = parts.map(|part| (Addr(part.start), length(part))).collect();
        let (bytes, read) = target.read_ranges(&wanted);
        let mut stacks = Stacks { copies: Vec::new(), in_use, bytes, readable: false, python: Snapshot::default() };
        let (mut place, mut read) = (0, read.into_iter());
        for extent in &extents {
            let (of_stack, end) = (extent.length(), extent.end);
            let first = extent.parts.first().map_or(extent.known_to, |part| part.start);
            if extent.start < first {
                let (start, place) = (extent.start, place..place);
                stacks.copies.push(Copied { start, place, unused_to: first, of_stack, end });
            }
            for (index, part) in extent.parts.iter().enumerate() {
                let begin = place;
                place += length(part) as usize;
                if read.next() == Some(true) {
                    let (start, place) = (part.start, begin..place);
                    let unused_to = extent.parts.get(index + 1).map_or(extent.known_to, |next| next.start);
                    stacks.copies.push(Copied { start, place, unused_to, of_stack, end });
                } else if target.mapping(Addr(part.start)).is_none() {
                    // It may have been the wrong guess that the stack has grown.
                    stacks.try_less(target, part);
                }
            }
        }
        stacks.copies.sort_by_key(|c| (c.start, c.place.len()));
        stacks
    }

    /// Reads the Python frames of `interpreters` too.
    #[must_use]
    pub fn with_python(self, target: &dyn Target, interpreters: &[Interpreter]) -> Stacks {
        Stacks { python: Snapshot::read(target, interpreters), ..self }
    }

    /// Reads `buf.len()` bytes at `addr`, of the copy or of a process that does not change.
    ///
    /// # Errors
    /// [`End::Unreadable`], [`End::NotCopied`], [`End::Unused`].
    pub fn read(&self, target: &dyn Target, addr: Addr, buf: &mut [u8]) -> Result<(), End> {
        if self.readable {
            return target.read(addr, buf).map_err(|fault| End::Unreadable(fault.addr));
        }
        let last = self.copies.partition_point(|c| c.start <= addr.0);
        // A stack may lie in what was copied of another.
        let near = &self.copies[last.saturating_sub(NEAR)..last];
        let bytes = near.iter().rev().find_map(|copied| {
            let from = usize::try_from(addr.0 - copied.start).ok()?;
            self.bytes.get(copied.place.clone())?.get(from..from.checked_add(buf.len())?)
        });
        match bytes {
            Some(bytes) => {
                buf.copy_from_slice(bytes);
                Ok(())
            }
            None => Err(match near.last() {
                Some(copied) if addr.0 < copied.unused_to && copied.behind() < copied.unused_to => End::Unused(addr),
                Some(copied) if copied.end.is_some_and(|end| addr.0 < end) => {
                    End::NotCopied { at: addr, copied: copied.of_stack }
                }
                _ => End::Unreadable(addr),
            }),
        }
    }

    /// Reads a word of eight bytes in the target's byte order.
    ///
    /// # Errors
    /// As [`Stacks::read`].
    pub fn read_u64(&self, target: &dyn Target, addr: Addr) -> Result<u64, End> {
        let mut word = [0; 8];
        self.read(target, addr, &mut word)?;
        Ok(target.arch().byte_order.uint(&word))
    }

    /// Whether the stacks of a live process still hold what was copied of them.
    pub fn are_unchanged(&self, target: &dyn Target) -> bool {
        let pieces = self.copies.iter().filter_map(|c| Some((Addr(c.start), self.bytes.get(c.place.clone())?)));
        target.holds(pieces) && self.in_use.iter().all(|(range, parts)| target.in_use(range.clone()) == *parts)
    }

    /// True if what was not copied may have changed since.
    pub(crate) fn are_copies(&self) -> bool {
        !self.readable
    }

    /// How many bytes were copied.
    pub fn copied_bytes(&self) -> u64 {
        self.copies.iter().map(|c| c.place.len() as u64).sum()
    }

    /// Copies the beginning of a range of which the end is not known.
    fn try_less(&mut self, target: &dyn Target, range: &Range<u64>) {
        let mut wanted = length(range) / 2;
        while wanted > 0 {
            if let Ok(bytes) = target.read_vec(Addr(range.start), wanted) {
                let of_stack = bytes.len() as u64;
                let place = self.bytes.len()..self.bytes.len() + bytes.len();
                self.bytes.extend(bytes);
                let (start, unused_to) = (range.start, range.start);
                self.copies.push(Copied { start, place, unused_to, of_stack, end: None });
                return;
            }
            wanted /= 2;
        }
    }
}

/// How much may be copied of each of the stacks of these sizes.
fn fair_share(mut sizes: Vec<u64>) -> u64 {
    sizes.sort_unstable();
    let mut left = TOTAL;
    for (index, size) in sizes.iter().enumerate() {
        let share = left / (sizes.len() - index) as u64;
        if *size > share {
            return share.clamp(LEAST, MOST);
        }
        left -= size;
    }
    MOST
}

fn length(range: &Range<u64>) -> u64 {
    range.end - range.start
}

/// The part of a thread's stack that is in use, as far as one may be copied.
///
/// The stack ends where its mapping ends, or before. Since glibc 2.42 the stacks of many threads lie in one mapping.
/// Between them lie guard pages that cannot be read (madvise(2), MADV_GUARD_INSTALL). The thread pointer points to the
/// end of a thread's stack, see [`interrupted`].
fn extent(target: &dyn Target, lwp: i32, registers: &Registers) -> Extent {
    let sp = registers.sp.0;
    let (range, end) = match target.mapping(Addr(sp)) {
        Some(mapping) => {
            let start = sp.saturating_sub(RED_ZONE).max(mapping.start);
            let own = registers.thread_pointer.map(|pointer| pointer.0).filter(|end| (sp..mapping.end).contains(end));
            let end = own.unwrap_or(mapping.end);
            (start..end.min(start.saturating_add(MOST)), Some(end))
        }
        None => match grown(target, lwp, sp) {
            Some(end) => (sp..end.min(sp.saturating_add(MOST)), Some(end)),
            None => (sp..sp.saturating_add(BLIND), None),
        },
    };
    Extent::of(target, range, end)
}

/// Where the stack of the first thread ends, if it executes below what was mapped when the process was opened. The
/// kernel has enlarged the mapping since (mmap(2), MAP_GROWSDOWN).
fn grown(target: &dyn Target, lwp: i32, sp: u64) -> Option<u64> {
    let process = target.process();
    let stack = target.mapping(process.main_stack.filter(|_| process.pid == Some(lwp))?)?;
    (sp < stack.start && stack.start - sp <= MOST).then_some(stack.end)
}

/// The end of the thread's first stack, where it executes on another. A signal handler may have a stack of its own. The
/// thread pointer points to the end of a stack that glibc made for a thread (nptl/allocatestack.c). The kernel made the
/// first thread's stack. Only the frames on the interrupted stack show how much of it is in use.
fn interrupted(target: &dyn Target, lwp: i32, registers: &Registers) -> Option<Extent> {
    let process = target.process();
    let pointer = if process.pid == Some(lwp) { process.main_stack } else { registers.thread_pointer }?;
    let mapping = target.mapping(pointer).filter(|m| !m.contains(&registers.sp.0))?;
    let start = pointer.0.saturating_sub(BLIND).max(mapping.start);
    Some(Extent::of(target, start..pointer.0, Some(pointer.0)))
}

#[cfg(test)]
mod tests {
    use ompd_process::{Arch, ReadError};
    use test_programs::{FakeTarget, thread_at};

    use super::*;

    const LWP: i32 = 7;
    /// Where the stack ends, and where its mapping began when the process was opened.
    const END: u64 = 0x7fff_0000_0000;
    const MAPPED: u64 = END - 0x2_0000;

    /// A live process whose stack has grown, and a part of the stack without pages.
    struct Grown(FakeTarget, Range<u64>);

    impl ompd_process::Overlay for Grown {
        type Below = FakeTarget;

        fn below(&self) -> &FakeTarget {
            &self.0
        }

        fn read(&self, addr: Addr, buf: &mut [u8]) -> Result<(), ReadError> {
            self.0.read(addr, buf)
        }

        fn mapping(&self, addr: Addr) -> Option<Range<u64>> {
            (MAPPED..END).contains(&addr.0).then_some(MAPPED..END)
        }

        fn in_use(&self, range: Range<u64>) -> Vec<Range<u64>> {
            let parts = [range.start..self.1.start.min(range.end), self.1.end.max(range.start)..range.end];
            parts.into_iter().filter(|part| !part.is_empty()).collect()
        }
    }

    /// The process with a stack from `sp` on, of which bytes from `readable` on can be read.
    fn grown(sp: u64, readable: u64) -> Grown {
        let mut target = FakeTarget::new(TargetKind::Live, Arch::X86_64);
        (target.process.pid, target.process.main_stack) = (Some(LWP), Some(Addr(END - 8)));
        target.memory.push((Addr(readable), vec![0xab; usize::try_from(END - readable).expect("a small stack")]));
        target.threads.push(thread_at(LWP, Addr(0x1000), Addr(sp)));
        Grown(target, END..END)
    }

    #[test]
    fn first_stack_that_has_grown_is_copied_to_its_end() {
        let sp = MAPPED - 0x8_0000;
        let target = grown(sp, sp);
        let stacks = Stacks::capture(&target);
        for at in [sp, MAPPED, END - 8] {
            assert_eq!(stacks.read_u64(&target, Addr(at)), Ok(0xabab_abab_abab_abab), "{at:#x}");
        }
    }

    #[test]
    fn stack_is_copied_up_to_the_thread_pointer_where_a_guard_page_follows() {
        // What lies behind in the same mapping cannot be read.
        let (sp, pointer) = (MAPPED + 0x1000, MAPPED + 0x8000);
        let mut target = grown(sp, sp);
        target.0.memory = vec![(Addr(MAPPED), vec![0xab; 0x8000])];
        if let Some(Ok(registers)) = target.0.threads.first_mut().map(|thread| &mut thread.registers) {
            registers.thread_pointer = Some(Addr(pointer));
        }
        target.0.process.pid = None;
        let stacks = Stacks::capture(&target);
        assert_eq!(stacks.read_u64(&target, Addr(pointer - 8)), Ok(0xabab_abab_abab_abab));
        assert_eq!(stacks.read_u64(&target, Addr(pointer)), Err(End::Unreadable(Addr(pointer))));
    }

    #[test]
    fn part_of_a_stack_without_pages_is_not_copied() {
        let (sp, unused) = (MAPPED + 0x1000, MAPPED + 0x4000..MAPPED + 0x1_0000);
        let mut target = grown(sp, MAPPED);
        target.1 = unused.clone();
        let stacks = Stacks::capture(&target);
        for at in [sp, unused.start - 8, unused.end, END - 8] {
            assert_eq!(stacks.read_u64(&target, Addr(at)), Ok(0xabab_abab_abab_abab), "{at:#x}");
        }
        for at in [unused.start, unused.end - 8] {
            assert_eq!(stacks.read_u64(&target, Addr(at)), Err(End::Unused(Addr(at))));
        }
        let across = Addr(unused.start - 8);
        assert_eq!(stacks.read(&target, across, &mut [0; 16]), Err(End::Unused(across)));
        assert!(stacks.copied_bytes() < END - sp - (unused.end - unused.start) + 2 * RED_ZONE);
        assert!(stacks.are_unchanged(&target));
        target.0.memory[0].1[0x8] = 0;
        assert!(stacks.are_unchanged(&target), "that is below the stack pointer");
        target.1 = unused.start..unused.end - 0x1000;
        assert!(!stacks.are_unchanged(&target), "a page more is in use");
        target.1 = unused;
        target.0.memory[0].1[0x1_0008] = 0;
        assert!(!stacks.are_unchanged(&target));
        // Nothing of it is copied where it begins.
        target.1 = sp - RED_ZONE..END - 0x1000;
        let stacks = Stacks::capture(&target);
        assert_eq!(stacks.read_u64(&target, Addr(sp)), Err(End::Unused(Addr(sp))));
        assert_eq!(stacks.read_u64(&target, Addr(END - 8)), Ok(0xabab_abab_abab_abab));
    }

    #[test]
    fn what_is_more_than_may_be_copied_is_cut_off_at_the_end() {
        let range = |start, end| Range { start, end };
        let extent = || Extent { start: 0, parts: vec![range(0, 100), range(500, 600)], known_to: 700, end: Some(700) };
        for (limit, parts, known_to) in [
            (200, vec![range(0, 100), range(500, 600)], 700),
            (150, vec![range(0, 100), range(500, 550)], 550),
            (100, vec![range(0, 100)], 500),
            (60, vec![range(0, 60)], 60),
        ] {
            let mut cut = extent();
            cut.cut(limit);
            assert_eq!((cut.parts, cut.known_to), (parts, known_to), "{limit}");
        }
    }

    #[test]
    fn stack_below_a_gap_is_copied_as_far_as_it_can_be_read() {
        let sp = MAPPED - 0x8_0000;
        let mut target = grown(sp, MAPPED);
        target.0.memory.push((Addr(sp), vec![0xcd; 0x4_0000]));
        let stacks = Stacks::capture(&target);
        assert_eq!(stacks.read_u64(&target, Addr(sp)), Ok(0xcdcd_cdcd_cdcd_cdcd));
        assert!(stacks.read_u64(&target, Addr(MAPPED)).is_err());
    }

    #[test]
    fn one_deep_stack_among_many_shallow_ones_is_copied_whole() {
        let mut sizes = vec![8 << 10; 1000];
        sizes.push(MOST);
        assert_eq!(fair_share(sizes), MOST);
    }

    #[test]
    fn many_deep_stacks_share_what_there_is() {
        assert_eq!(fair_share(vec![MOST; 64]), TOTAL / 64);
        assert_eq!(fair_share(vec![MOST; 100_000]), LEAST);
        assert_eq!(fair_share(Vec::new()), MOST);
    }
}
