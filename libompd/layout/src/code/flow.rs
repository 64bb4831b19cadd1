//! Where instructions lead: jumps, calls, stubs of linkers, loops that wait.

use std::ops::ControlFlow;

/// What a function has put on the stack for its caller, by its code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MadeFrame {
    /// DWARF number of the register that the frame is found by.
    pub base: u16,
    /// Bytes from what it holds to the canonical frame address: the stack pointer at the call.
    pub above: i64,
    /// DWARF numbers of registers that were saved, and where, from the canonical frame address.
    pub saved: Vec<(u16, i64)>,
}

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

/// Whose code an address is in, that a table of jumps may name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whose {
    /// That of the function that jumps.
    Function,
    /// A part of that function which lies elsewhere.
    Part,
    /// Another function's.
    Another,
    /// It is not known.
    Unknown,
}

/// Receives each transfer. `None` stands for bytes that are no instruction.
pub type EachTransfer<'a> = &'a mut dyn FnMut(Option<Transfer>) -> ControlFlow<()>;

/// Where an instruction may jump.
#[derive(PartialEq, Eq)]
pub(super) enum Jumps {
    Never,
    To(u64),
    Anywhere,
}

/// Where a linker's stub jumps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stub {
    /// What the GOT entry at this address holds.
    Slot(u64),
    /// This address.
    Code(u64),
}

/// Where a path goes after an instruction.
pub(super) enum Flow {
    Next,
    To(u64),
    End,
}

/// One instruction of a way through a loop.
#[derive(Clone, Copy)]
pub(super) struct Step<T> {
    pub(super) instruction: T,
    /// The way takes its jump.
    pub(super) jumps: bool,
}

/// A word that is looked at, as long as it has a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Poll {
    /// Its address in the target.
    pub addr: u64,
    /// The loop continues while the word (32 bits) is this.
    pub expected: u32,
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
