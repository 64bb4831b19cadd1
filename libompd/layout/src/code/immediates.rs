//! Tables that code builds: long runs of constants stored to globals.

use std::ops::Range;

use super::expr::{Expr, Kind};
use super::image::CodeImage;
use super::machine;
use super::run::Store;
use super::state::mask;

/// A constant stored at a fixed address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ImmediateStore {
    /// Address of the instruction.
    pub at: u64,
    /// Address written, in the file.
    pub addr: u64,
    /// The constant.
    pub value: u64,
    /// Bytes written (at most 8; wider stores are listed as several).
    pub size: u8,
}

/// Stores of constants to globals in the function `range`, in the order of the instructions.
///
/// That is the order of execution as long as the code is straight. Compilers may store in another order than the source
/// does (for aarch64 clang does); they keep the order of the variables in memory. Registers are tracked between branch
/// targets only: what a register holds where two ways meet is not known, and such stores are left out. Where a computed
/// jump might go is not known either: then there are no stores at all. Decoding ends at the first byte that is no
/// instruction.
pub fn immediate_stores(image: &dyn CodeImage, range: Range<u64>) -> Vec<ImmediateStore> {
    /// Far larger than any function that fills a table.
    const MAX_BYTES: u64 = 256 << 10;
    let range = range.start..range.end.min(range.start.saturating_add(MAX_BYTES));
    let Some(decoding) = machine::of(image.machine()) else { return Vec::new() };
    let run = decoding.sweep(image, range);
    run.stores().flat_map(|store| constants(image, store)).flatten().collect()
}

/// True if [`immediate_stores`] may find `least` words of eight bytes or more in `range`. A glance that spares most functions a look.
pub fn may_store_words(image: &dyn CodeImage, range: Range<u64>, least: usize) -> bool {
    machine::of(image.machine()).is_some_and(|decoding| decoding.may_store_words(image, range, least))
}

/// What a store puts where, in words of at most eight bytes, if both are known.
fn constants(image: &dyn CodeImage, store: &Store) -> [Option<ImmediateStore>; 2] {
    let Some(addr) = store.addr.as_const() else { return [None, None] };
    let word = |skip: u8, size: u8| {
        let value = word(image, &store.value, skip)? & mask(size);
        Some(ImmediateStore { at: store.at, addr: addr.wrapping_add(skip.into()), value, size })
    };
    match store.size {
        size @ (1 | 2 | 4 | 8) => [word(0, size), None],
        16 => [word(0, 8), word(8, 8)],
        _ => [None, None],
    }
}

/// Eight bytes of a constant, `skip` bytes into it.
fn word(image: &dyn CodeImage, value: &Expr, skip: u8) -> Option<u64> {
    match value.kind() {
        Kind::Const(number) if skip == 0 || *number == 0 => Some(*number),
        // The constant pool: compilers pair neighbouring constants.
        Kind::Load { size: 16, addr } => {
            let bytes = image.data_at(addr.as_const()?.checked_add(skip.into())?, 8)?;
            Some(bytes.iter().rev().fold(0, |acc, b| (acc << 8) | u64::from(*b)))
        }
        _ => None,
    }
}
