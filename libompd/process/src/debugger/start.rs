//! How the process began: the stack the kernel gave it, with the auxiliary vector.

use super::interface::Debugger;
use super::memory::Memory;
use crate::arch::Arch;
use crate::environment::Environment;
use crate::memory::Addr;

/// Arguments and variables beyond this many are not believed to be there.
const MAX_STRINGS: u64 = 1 << 17;
/// Entries of the auxiliary vector beyond this many are not believed to be there. The kernel writes about twenty.
const MAX_ENTRIES: usize = 64;
/// Kinds of entries beyond this are not believed in: Linux has no more than some fifty, and pointers are larger.
const MAX_KIND: u64 = 4095;
/// Words that a program pushes at most before it hands its stack over.
const MAX_PUSHED: u64 = 3;
/// Kinds of entries in the auxiliary vector (getauxval(3)).
pub(super) const AT_PHDR: u64 = 3;
pub(super) const AT_ENTRY: u64 = 9;
const AT_EXECFN: u64 = 31;
pub(super) const AT_SYSINFO_EHDR: u64 = 33;
/// Bytes that are read at once, from a multiple of so many: a page has several such blocks, and is mapped whole.
const BLOCK: u64 = 512;
/// Longest path that is believed.
const MAX_PATH: u64 = 4096;

#[derive(Debug)]
pub(super) struct Start {
    /// Where the number of arguments lies: the first stack as the program got it (psABI, "Initial Stack").
    pub(super) stack: Addr,
    vector: Vec<(u64, u64)>,
}

/// Has the blocks read that so many bytes lie in.
fn announce<D: Debugger>(memory: &Memory<D>, at: Addr, bytes: u64) {
    let first = at.0 / BLOCK * BLOCK;
    let end = at.0.saturating_add(bytes).div_ceil(BLOCK).saturating_mul(BLOCK);
    memory.prefetch(&[(Addr(first), end.saturating_sub(first))]);
}

impl Start {
    /// The dynamic linker keeps the place (`__libc_stack_end`, glibc's elf/rtld.c). In a static program it is what `_start` hands over
    /// (csu/libc-start.c), which has pushed something before, depending on the machine (sysdeps/x86_64/start.S).
    pub(super) fn find<D: Debugger>(memory: &Memory<D>, arch: Arch) -> Option<Start> {
        let width = u64::from(arch.pointer_bytes);
        let kept = memory.word(memory.debugger().symbol("__libc_stack_end")?, arch)?;
        (0..=MAX_PUSHED).find_map(|pushed| Start::at(memory, arch, Addr(kept.checked_add(pushed * width)?)))
    }

    /// The stack that begins there; `None` if what lies behind it is no auxiliary vector.
    fn at<D: Debugger>(memory: &Memory<D>, arch: Arch, stack: Addr) -> Option<Start> {
        let width = u64::from(arch.pointer_bytes);
        let arguments = memory.word(stack, arch).filter(|count| *count < MAX_STRINGS)?;
        // Behind the count: the arguments, NULL, the variables, NULL, the vector.
        let mut at = stack.checked_add((arguments + 2).checked_mul(width)?)?;
        if memory.word(at.back(width), arch)? != 0 {
            return None;
        }
        let mut left = MAX_STRINGS;
        loop {
            // A few at a time: the vector behind them is longer than that.
            announce(memory, at, 8 * width);
            let words = memory.words(at, 8, arch)?;
            left = left.checked_sub(8)?;
            let end = words.iter().position(|word| *word == 0);
            at = at.checked_add(width * end.map_or(8, |end| end as u64 + 1))?;
            if end.is_some() {
                break;
            }
        }
        // For each variable that the program has removed there is one NULL more.
        while memory.word(at, arch)? == 0 {
            left = left.checked_sub(1)?;
            at = at.checked_add(width)?;
        }
        let mut vector = Vec::new();
        for _ in 0..MAX_ENTRIES {
            announce(memory, at, 2 * width);
            let pair = memory.words(at, 2, arch)?;
            if pair[0] == 0 {
                let is_vector = vector.iter().any(|(kind, _)| *kind == AT_ENTRY);
                return is_vector.then_some(Start { stack, vector });
            }
            if pair[0] > MAX_KIND {
                return None;
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

    /// Names under which the program's file may be found. The kernel keeps the name that was given to execve(2). It may
    /// be relative to the directory the process was in then. Shells put that directory in `PWD`.
    pub(super) fn names<D: Debugger>(&self, memory: &Memory<D>, environment: &Environment) -> Vec<String> {
        let given = self.auxv(AT_EXECFN).and_then(|at| memory.string(Addr(at), MAX_PATH));
        let Some(given) = given.filter(|name| !name.is_empty()) else { return Vec::new() };
        if given.starts_with('/') {
            return vec![given];
        }
        let directory = environment.get("PWD").ok().flatten().filter(|directory| directory.starts_with('/'));
        let absolute = directory.map(|directory| {
            let own = given.strip_prefix("./").unwrap_or(&given);
            format!("{}/{own}", directory.trim_end_matches('/'))
        });
        absolute.into_iter().chain([given]).collect()
    }
}
