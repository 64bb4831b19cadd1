//! The block that an OMPT companion leaves in a process (`ompt-record`), found and read.

use ompd_target::{Addr, ByteOrder, ReadError, Target, TargetExt, memory};
use ompt_record::block::SYMBOL;
use ompt_record::read::{Block, Memory, NoBlock};

/// The memory of a target as a companion's words.
#[derive(Clone, Copy)]
pub struct Words<'t>(&'t dyn Target);

impl std::fmt::Debug for Words<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Words").finish_non_exhaustive()
    }
}

impl<'t> Words<'t> {
    /// Those of a target.
    pub fn of(target: &'t dyn Target) -> Words<'t> {
        Words(target)
    }
}

impl Memory for Words<'_> {
    type Error = ReadError;

    fn words(&self, at: u64, count: usize) -> Result<Vec<u64>, ReadError> {
        let order = self.0.arch().byte_order;
        let mut words = Vec::new();
        // Rings may be larger than what is read at once.
        let most = usize::try_from(memory::MAX_READ).unwrap_or(usize::MAX) / size_of::<u64>();
        let mut at = Addr(at);
        let mut left = count;
        while left > 0 {
            let now = left.min(most);
            let bytes = self.0.read_vec(at, (now * size_of::<u64>()) as u64)?;
            words.extend(bytes.as_chunks::<8>().0.iter().map(|word| number(order, word)));
            at = at.offset((now * size_of::<u64>()) as u64);
            left -= now;
        }
        Ok(words)
    }
}

fn number(order: ByteOrder, word: &[u8; 8]) -> u64 {
    order.uint(word)
}

/// Finds the block of a process: `None` if no companion is in it, or one that has not begun.
///
/// # Errors
/// If there is one, and its block cannot be read.
pub fn find(target: &dyn Target) -> Option<Result<Block, NoBlock<ReadError>>> {
    let words = Words::of(target);
    // Of a companion that is linked into the program and one that is preloaded only the first is asked by the runtime; the other one
    // stays without a block.
    target.modules().iter().filter_map(|module| module.symbol(SYMBOL)).filter(|symbol| !symbol.tls).find_map(|symbol| {
        match target.read_u64(symbol.addr) {
            Ok(0) => None,
            Ok(at) => Some(Block::open(&words, at)),
            Err(source) => Some(Err(NoBlock::Unreadable { at: symbol.addr.0, source })),
        }
    })
}
