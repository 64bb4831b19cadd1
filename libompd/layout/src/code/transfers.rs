//! Where the instructions of a function may go on, one after the other: calls, jumps, returns.

use std::ops::Range;
use std::sync::Arc;

use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, OpKind, Register};
use ompd_process::Machine;

use super::arm64::Arm64;
use super::engine::{InstructionSet, Stub};
use super::image::{CodeImage, Slot};
use super::x86::{X86, dwarf_register};

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
    /// Jumps to where a register or memory says.
    JumpThrough,
    /// Returns.
    Return,
}

/// Where an instruction finds the address it calls.
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
}

/// All such instructions in `range`, in their order. `None` if something in it is no instruction, or it is too long: then there may
/// be others.
pub fn transfers(image: &dyn CodeImage, range: Range<u64>) -> Option<Vec<Transfer>> {
    let length = range.end.checked_sub(range.start).filter(|length| *length <= MAX_BYTES)?;
    let bytes = image.code_at(range.start, usize::try_from(length).ok()?)?;
    if bytes.len() as u64 != length {
        return None;
    }
    match image.machine() {
        Machine::X86_64 => x86_64(bytes, range.start),
        Machine::Aarch64 => Some(aarch64(bytes, range.start)),
        Machine::Other(_) => None,
    }
}

/// The function of another image that the code at an address leads to, if it is a linker's stub for one.
pub fn stub_of(image: &dyn CodeImage, at: u64) -> Option<Arc<str>> {
    let stub = match image.machine() {
        Machine::X86_64 => X86::stub(image, at)?,
        Machine::Aarch64 => Arm64::stub(image, at)?,
        Machine::Other(_) => return None,
    };
    match stub {
        Stub::Slot(slot) => match image.slot(slot)? {
            Slot::Symbol { name, .. } => Some(name),
            _ => None,
        },
        Stub::Code(_) => None,
    }
}

fn x86_64(bytes: &[u8], start: u64) -> Option<Vec<Transfer>> {
    let mut found = Vec::new();
    let mut decoder = Decoder::with_ip(64, bytes, start, DecoderOptions::NONE);
    let mut i = Instruction::default();
    while decoder.can_decode() {
        decoder.decode_out(&mut i);
        if i.is_invalid() {
            return None;
        }
        let kind = match i.flow_control() {
            FlowControl::Call if i.is_call_near() => TransferKind::Call(i.near_branch_target()),
            FlowControl::IndirectCall => TransferKind::CallThrough(operand(&i)),
            FlowControl::ConditionalBranch | FlowControl::UnconditionalBranch | FlowControl::XbeginXabortXend => {
                TransferKind::Jump(i.near_branch_target())
            }
            FlowControl::IndirectBranch => TransferKind::JumpThrough,
            FlowControl::Return => TransferKind::Return,
            // System calls come back.
            FlowControl::Next | FlowControl::Call | FlowControl::Interrupt | FlowControl::Exception => continue,
        };
        found.push(Transfer { at: i.ip(), next: i.next_ip(), kind });
    }
    Some(found)
}

fn operand(i: &Instruction) -> Option<Operand> {
    match i.op0_kind() {
        OpKind::Register => dwarf_register(i.op0_register()).map(Operand::Register),
        OpKind::Memory if i.memory_index() == Register::None && i.segment_prefix() == Register::None => {
            let base = dwarf_register(i.memory_base())?;
            Some(Operand::Memory { base, offset: i.memory_displacement64() })
        }
        _ => None,
    }
}

/// Branches by their encoding ("Arm Architecture Reference Manual for A-profile", C4.1).
fn aarch64(bytes: &[u8], start: u64) -> Vec<Transfer> {
    let mut found = Vec::new();
    let words = bytes.chunks_exact(4).map(|word| word.iter().rev().fold(0u32, |acc, b| (acc << 8) | u32::from(*b)));
    for (n, word) in words.enumerate() {
        let at = start.wrapping_add(4 * n as u64);
        // `bits` of the word from bit `low` on are a distance in instructions.
        let target = |low: u32, bits: u32| {
            let distance = i64::from((word << (32 - low - bits)).cast_signed() >> (32 - bits));
            at.wrapping_add_signed(distance.wrapping_mul(4))
        };
        let through = || Some(Operand::Register(u16::try_from((word >> 5) & 31).unwrap_or_default()));
        let kind = match word {
            w if w >> 26 == 0b10_0101 => TransferKind::Call(target(0, 26)),
            w if w >> 26 == 0b00_0101 => TransferKind::Jump(target(0, 26)),
            // b.cond and bc.cond, cbz and cbnz, tbz and tbnz
            w if w >> 24 == 0b0101_0100 => TransferKind::Jump(target(5, 19)),
            w if w & 0x7e00_0000 == 0x3400_0000 => TransferKind::Jump(target(5, 19)),
            w if w & 0x7e00_0000 == 0x3600_0000 => TransferKind::Jump(target(5, 14)),
            // With and without pointer authentication.
            w if w & 0xfeff_f000 == 0xd63f_0000 => TransferKind::CallThrough(through()),
            w if w & 0xfeff_f000 == 0xd61f_0000 => TransferKind::JumpThrough,
            w if w & 0xffff_f000 == 0xd65f_0000 => TransferKind::Return,
            _ => continue,
        };
        found.push(Transfer { at, next: at.wrapping_add(4), kind });
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn x86_64_by_hand() {
        let code = [
            0x41, 0xff, 0xd4, // call r12
            0xff, 0x53, 0x20, // call [rbx + 0x20]
            0xff, 0x15, 0, 0, 0, 0, // call [rip]
            0xe8, 0, 0, 0, 0, // call next
            0x74, 0xfe, // je self
            0x0f, 0x05, // syscall
            0xff, 0xe0, // jmp rax
            0xc3, // ret
        ];
        let kinds: Vec<_> = x86_64(&code, 0x1000).expect("instructions").iter().map(|t| (t.at, t.kind)).collect();
        let expected = [
            (0x1000, TransferKind::CallThrough(Some(Operand::Register(12)))),
            (0x1003, TransferKind::CallThrough(Some(Operand::Memory { base: 3, offset: 0x20 }))),
            (0x1006, TransferKind::CallThrough(None)),
            (0x100c, TransferKind::Call(0x1011)),
            (0x1011, TransferKind::Jump(0x1011)),
            (0x1015, TransferKind::JumpThrough),
            (0x1017, TransferKind::Return),
        ];
        assert_eq!(kinds, expected);
        assert_eq!(x86_64(&[0x90, 0x06], 0), None, "0x06 is no instruction");
    }

    #[test]
    fn aarch64_by_hand() {
        let words: [u32; 9] = [
            0x9400_0002, // bl .+8
            0x17ff_ffff, // b .-4
            0x5400_0040, // b.eq .+8
            0xb4ff_ffe1, // cbz x1, .-4
            0x3600_0041, // tbz w1, #0, .+8
            0xd63f_0260, // blr x19
            0xd61f_0200, // br x16
            0xd65f_03c0, // ret
            0xd503_201f, // nop
        ];
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let kinds: Vec<_> = aarch64(&bytes, 0x1000).iter().map(|t| (t.at, t.kind)).collect();
        let expected = [
            (0x1000, TransferKind::Call(0x1008)),
            (0x1004, TransferKind::Jump(0x1000)),
            (0x1008, TransferKind::Jump(0x1010)),
            (0x100c, TransferKind::Jump(0x1008)),
            (0x1010, TransferKind::Jump(0x1018)),
            (0x1014, TransferKind::CallThrough(Some(Operand::Register(19)))),
            (0x1018, TransferKind::JumpThrough),
            (0x101c, TransferKind::Return),
        ];
        assert_eq!(kinds, expected);
    }
}
