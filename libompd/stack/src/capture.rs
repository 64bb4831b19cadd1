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
/// Where the end of a stack is not known, this much is tried, then less and less.
const BLIND: u64 = 64 << 10;

/// The stacks of all threads at one moment.
#[derive(Debug, Default)]
pub struct Stacks {
    /// By address; a thread's stack once, whatever else lies in the same mapping.
    copies: Vec<Copied>,
    /// What was copied, one behind the other.
    bytes: Vec<u8>,
    /// The process does not change, so nothing was copied.
    readable: bool,
    /// The frames of Python functions, which are not on these stacks.
    pub(crate) python: Snapshot,
}

#[derive(Debug)]
struct Copied {
    start: u64,
    /// Where in the copy it is.
    place: Range<usize>,
    /// Where the mapping ends, if it is known.
    end: Option<u64>,
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
        let sizes = threads.iter().map(|(lwp, r)| length(&extent(target, *lwp, r, MOST).0)).collect();
        let limit = fair_share(sizes);
        let own = threads.iter().map(|(lwp, r)| extent(target, *lwp, r, limit));
        let ranges: Vec<(Range<u64>, Option<u64>)> =
            own.chain(threads.iter().filter_map(|(lwp, r)| interrupted(target, *lwp, r))).collect();
        let wanted: Vec<(Addr, u64)> = ranges.iter().map(|(range, _)| (Addr(range.start), length(range))).collect();
        let (bytes, read) = target.read_ranges(&wanted);
        let mut stacks = Stacks { copies: Vec::new(), bytes, readable: false, python: Snapshot::default() };
        let mut place = 0;
        for ((range, end), read) in ranges.into_iter().zip(read) {
            let next = place + length(&range) as usize;
            match end {
                _ if read => stacks.copies.push(Copied { start: range.start, place: place..next, end }),
                // It may have been the wrong guess that the stack has grown.
                _ if target.mapping(Addr(range.start)).is_none() => stacks.try_less(target, &range),
                _ => {}
            }
            place = next;
        }
        stacks.copies.sort_by_key(|c| c.start);
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
    /// [`End::Unreadable`], [`End::NotCopied`].
    pub fn read(&self, target: &dyn Target, addr: Addr, buf: &mut [u8]) -> Result<(), End> {
        if self.readable {
            return target.read(addr, buf).map_err(|fault| End::Unreadable(fault.addr));
        }
        let last = self.copies.partition_point(|c| c.start <= addr.0);
        // A stack may lie in what was copied of another.
        let near = &self.copies[last.saturating_sub(2)..last];
        let bytes = near.iter().rev().find_map(|copied| {
            let from = usize::try_from(addr.0 - copied.start).ok()?;
            self.bytes.get(copied.place.clone())?.get(from..from.checked_add(buf.len())?)
        });
        match bytes {
            Some(bytes) => {
                buf.copy_from_slice(bytes);
                Ok(())
            }
            None => Err(match near.last().filter(|c| c.end.is_some_and(|end| addr.0 < end)) {
                Some(copied) => End::NotCopied { at: addr, copied: copied.place.len() as u64 },
                None => End::Unreadable(addr),
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
                let place = self.bytes.len()..self.bytes.len() + bytes.len();
                self.bytes.extend(bytes);
                self.copies.push(Copied { start: range.start, place, end: None });
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

/// The used part of a thread's stack, as much of it as may be copied, and where the stack ends.
///
/// The stack ends where its mapping ends, or before. Since glibc 2.42 the stacks of many threads lie in one mapping.
/// Between them lie guard pages that cannot be read (madvise(2), MADV_GUARD_INSTALL). The thread pointer points to the
/// end of a thread's stack, see [`interrupted`].
fn extent(target: &dyn Target, lwp: i32, registers: &Registers, limit: u64) -> (Range<u64>, Option<u64>) {
    let sp = registers.sp.0;
    match target.mapping(Addr(sp)) {
        Some(mapping) => {
            let start = sp.saturating_sub(RED_ZONE).max(mapping.start);
            let own = registers.thread_pointer.map(|pointer| pointer.0).filter(|end| (sp..mapping.end).contains(end));
            let end = own.unwrap_or(mapping.end);
            (start..end.min(start.saturating_add(limit)), Some(end))
        }
        None => match grown(target, lwp, sp) {
            Some(end) => (sp..end.min(sp.saturating_add(limit)), Some(end)),
            None => (sp..sp.saturating_add(BLIND), None),
        },
    }
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
fn interrupted(target: &dyn Target, lwp: i32, registers: &Registers) -> Option<(Range<u64>, Option<u64>)> {
    let process = target.process();
    let pointer = if process.pid == Some(lwp) { process.main_stack } else { registers.thread_pointer }?;
    let mapping = target.mapping(pointer).filter(|m| !m.contains(&registers.sp.0))?;
    let start = pointer.0.saturating_sub(BLIND).max(mapping.start);
    Some((start..pointer.0, Some(pointer.0)))
}

#[cfg(test)]
mod tests {
    use ompd_process::{Arch, GENERAL, Module, ProcessInfo, ReadError, Thread};
    use test_programs::FakeTarget;

    use super::*;

    const LWP: i32 = 7;
    /// Where the stack ends, and where its mapping began when the process was opened.
    const END: u64 = 0x7fff_0000_0000;
    const MAPPED: u64 = END - 0x2_0000;

    /// A live process whose stack has grown.
    struct Grown(FakeTarget);

    impl Target for Grown {
        fn kind(&self) -> TargetKind {
            self.0.kind()
        }
        fn arch(&self) -> Arch {
            self.0.arch()
        }
        fn read(&self, addr: Addr, buf: &mut [u8]) -> Result<(), ReadError> {
            self.0.read(addr, buf)
        }
        fn mapping(&self, addr: Addr) -> Option<Range<u64>> {
            (MAPPED..END).contains(&addr.0).then_some(MAPPED..END)
        }
        fn is_shared(&self, addr: Addr) -> Option<bool> {
            self.0.is_shared(addr)
        }
        fn modules(&self) -> &[Module] {
            self.0.modules()
        }
        fn threads(&self) -> &[Thread] {
            self.0.threads()
        }
        fn process(&self) -> &ProcessInfo {
            self.0.process()
        }
        fn issues(&self) -> &[String] {
            self.0.issues()
        }
    }

    /// The process with a stack from `sp` on, of which bytes from `readable` on can be read.
    fn grown(sp: u64, readable: u64) -> Grown {
        let mut target = FakeTarget::new(TargetKind::Live, Arch::X86_64);
        (target.process.pid, target.process.main_stack) = (Some(LWP), Some(Addr(END - 8)));
        target.memory.push((Addr(readable), vec![0xab; usize::try_from(END - readable).expect("a small stack")]));
        let registers = Registers {
            pc: Addr(0x1000),
            sp: Addr(sp),
            fp: Addr::NULL,
            thread_pointer: None,
            syscall: None,
            returned: None,
            unnumbered: false,
            general: [0; GENERAL],
            known: Registers::ALL,
        };
        let registers = Ok(registers);
        target.threads.push(Thread {
            lwp: LWP,
            name: None,
            registers,
            pointer: None,
            signal: 0,
            blocked_signals: None,
        });
        Grown(target)
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
