//! Where the instructions of a function may go on, one after the other: calls, jumps, returns.

use std::ops::{ControlFlow, Range};
use std::sync::Arc;

use ompd_process::Machine;

use super::engine::Stub;
use super::image::{CodeImage, Slot};
use super::machine;

/// Bytes of a function that are looked at, at most.
const MAX_BYTES: u64 = 256 << 10;

/// An instruction that may go on elsewhere than behind itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transfer {
    /// Address of the instruction.
    pub at: u64,
    /// Address behind it: where a call returns to.
    pub next: u64,
    /// What it does.
    pub kind: TransferKind,
}

/// What such an instruction does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TransferKind {
    /// Calls the code at an address.
    Call(u64),
    /// Calls what a register or a word in memory holds; `None` where that is given in another way than [`Operand`] can say.
    CallThrough(Option<Operand>),
    /// Jumps to an address, always or by a condition.
    Jump(u64),
    /// Jumps to what a register or a word in memory holds, as with calls.
    JumpThrough(Option<Operand>),
    /// Returns.
    Return,
}

/// Where an instruction finds the address it calls or jumps to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operand {
    /// In the register of this DWARF number.
    Register(u16),
    /// In memory, `offset` bytes (modulo 2^64) from what a register holds.
    Memory {
        /// DWARF number of the register.
        base: u16,
        /// What is added to it.
        offset: u64,
    },
    /// In memory, at an address of the file.
    Slot(u64),
    /// In memory, at the sum (modulo 2^64) of all of these.
    Indexed {
        /// DWARF number of a register, if there is one.
        base: Option<u16>,
        /// DWARF number of another, if there is one.
        index: Option<u16>,
        /// What the second is multiplied by.
        scale: u32,
        /// What is added.
        offset: u64,
    },
}

/// Receives each transfer. `None` stands for bytes that are no instruction.
pub type EachTransfer<'a> = &'a mut dyn FnMut(Option<Transfer>) -> ControlFlow<()>;

/// All such instructions in `range`, in their order. `None` if something in it is no instruction, or it is too long: then there may
/// be others.
pub fn transfers(image: &dyn CodeImage, range: Range<u64>) -> Option<Vec<Transfer>> {
    let length = range.end.checked_sub(range.start).filter(|length| *length <= MAX_BYTES)?;
    let bytes = image.code_at(range.start, usize::try_from(length).ok()?)?;
    if bytes.len() as u64 != length {
        return None;
    }
    let (mut found, mut instructions) = (Vec::new(), true);
    each_transfer(image.machine(), bytes, range.start, &mut |transfer| match transfer {
        Some(transfer) => {
            found.push(transfer);
            ControlFlow::Continue(())
        }
        None => {
            instructions = false;
            ControlFlow::Break(())
        }
    })?;
    instructions.then_some(found)
}

/// Tells of such instructions in `bytes`, which lie at `start`, in their order, and of bytes that are none (`None`), until it
/// is told to stop. `None` if the machine's code is not decoded.
pub fn each_transfer(machine: Machine, bytes: &[u8], start: u64, each: EachTransfer<'_>) -> Option<()> {
    machine::of(machine)?.transfers(bytes, start, each);
    Some(())
}

/// Where the code at an address jumps, if it is a linker's stub.
pub fn stub(image: &dyn CodeImage, at: u64) -> Option<Stub> {
    machine::of(image.machine())?.stub(image, at)
}

/// The function of another image that the code at an address leads to, if it is a linker's stub for one.
pub fn stub_of(image: &dyn CodeImage, at: u64) -> Option<Arc<str>> {
    match stub(image, at)? {
        Stub::Slot(slot) => match image.slot(slot)? {
            Slot::Symbol { name, .. } => Some(name),
            _ => None,
        },
        Stub::Code(_) => None,
    }
}

/// Everything a machine's decoder tells of the code at an address; `None` where a byte is no instruction.
#[cfg(test)]
pub(super) fn collect(decoder: fn(&[u8], u64, EachTransfer<'_>), code: &[u8], at: u64) -> Option<Vec<Transfer>> {
    let (mut found, mut instructions) = (Vec::new(), true);
    decoder(code, at, &mut |transfer| {
        instructions &= transfer.is_some();
        found.extend(transfer);
        ControlFlow::Continue(())
    });
    instructions.then_some(found)
}
