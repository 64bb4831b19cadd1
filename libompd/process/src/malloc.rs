//! Blocks of memory that the C library's `malloc` has returned.

use crate::machine::SMALLEST_PAGE;
use crate::{Addr, Module, Target, TargetExt};

/// Bits of a chunk's size that say something else (glibc's malloc/malloc.c: `PREV_INUSE`, `IS_MMAPPED`, `NON_MAIN_ARENA`).
const FLAGS: u64 = 7;
const PREVIOUS_IN_USE: u64 = 1;
const IS_MAPPED: u64 = 2;

/// Where the block ends that begins at `start`, as the header before it and the header behind it say (glibc's malloc/malloc.c:
/// `struct malloc_chunk`). `None` if no block in use begins there. Only for processes with [`has_malloc_of_glibc`].
pub fn malloc_block_end(target: &dyn Target, start: Addr) -> Option<Addr> {
    let word = u64::from(target.arch().pointer_bytes);
    let chunk = start.0.checked_sub(2 * word)?;
    let header = target.read_ptr(Addr(chunk.checked_add(word)?)).ok()?.0;
    let size = header & !FLAGS;
    if !start.0.is_multiple_of(2 * word) || size < 4 * word || !size.is_multiple_of(2 * word) {
        return None;
    }
    let next = chunk.checked_add(size)?;
    if header & IS_MAPPED != 0 {
        let before = target.read_ptr(Addr(chunk)).ok()?.0;
        let begins = chunk.checked_sub(before)?;
        // Mapped chunks are whole pages.
        return (begins.is_multiple_of(SMALLEST_PAGE) && next.is_multiple_of(SMALLEST_PAGE)).then_some(Addr(next));
    }
    // The block reaches into the first word of the next chunk.
    let header = target.read_ptr(Addr(next.checked_add(word)?)).ok()?.0;
    (header & PREVIOUS_IN_USE != 0 && header & !FLAGS != 0).then_some(Addr(next + word))
}

/// True if no file but the C library and its dynamic linker exports a `malloc`, and each file could be looked at.
pub fn has_malloc_of_glibc(target: &dyn Target) -> bool {
    let is_linker = |module: &Module| module.name().starts_with("ld-") || module.name().starts_with("ld.");
    let mut others = target.modules().iter().filter(|module| !module.is_glibc() && !is_linker(module));
    let may_have_one = |module: &Module| module.exports("malloc") || module.file.is_err() && !module.path.is_empty();
    target.modules().iter().any(Module::is_glibc) && !others.any(may_have_one)
}
