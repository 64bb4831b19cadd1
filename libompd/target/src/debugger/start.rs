//! How the process began: the stack the kernel gave it, with the auxiliary vector.

use super::Debugger;
use super::memory::Memory;
use crate::arch::Arch;
use crate::memory::Addr;

/// Arguments and variables beyond this many are not believed to be there.
const MAX_STRINGS: u64 = 1 << 17;
/// Entries of the auxiliary vector beyond this many are not believed to be there. The kernel writes about twenty.
const MAX_ENTRIES: usize = 64;
/// Kinds of entries in the auxiliary vector (getauxval(3)).
pub(super) const AT_PHDR: u64 = 3;
pub(super) const AT_EXECFN: u64 = 31;

#[derive(Debug)]
pub(super) struct Start {
    /// Where the number of arguments lies: the first stack as the program got it (psABI, "Initial Stack").
    pub(super) stack: Addr,
    vector: Vec<(u64, u64)>,
}

impl Start {
    /// The dynamic linker keeps the place (`__libc_stack_end`, glibc's elf/dl-support.c and elf/rtld.c).
    pub(super) fn find<D: Debugger>(memory: &Memory<D>, arch: Arch) -> Option<Start> {
        let width = u64::from(arch.pointer_bytes);
        let stack = Addr(memory.word(memory.debugger().symbol("__libc_stack_end")?, arch)?);
        let arguments = memory.word(stack, arch).filter(|count| *count < MAX_STRINGS)?;
        // Behind the count: the arguments, NULL, the variables, NULL, the vector.
        let mut at = stack.checked_add((arguments + 2).checked_mul(width)?)?;
        let mut left = MAX_STRINGS;
        loop {
            // A few at a time: the vector behind them is longer than that.
            let words = memory.words(at, 8, arch)?;
            left = left.checked_sub(8)?;
            let end = words.iter().position(|word| *word == 0);
            at = at.checked_add(width * end.map_or(8, |end| end as u64 + 1))?;
            if end.is_some() {
                break;
            }
        }
        let mut vector = Vec::new();
        for _ in 0..MAX_ENTRIES {
            let pair = memory.words(at, 2, arch)?;
            if pair[0] == 0 {
                return Some(Start { stack, vector });
            }
            vector.push((pair[0], pair[1]));
            at = at.checked_add(2 * width)?;
        }
        None
    }

    /// The value of an entry of the auxiliary vector.
    pub(super) fn auxv(&self, kind: u64) -> Option<u64> {
        self.vector.iter().find(|(own, _)| *own == kind).map(|(_, value)| *value)
    }
}
