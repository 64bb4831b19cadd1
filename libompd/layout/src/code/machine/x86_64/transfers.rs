//! Calls, jumps and returns by their instructions.

use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, MemorySize, OpKind, Register};

use super::registers::dwarf_register;
use crate::code::flow::{EachTransfer, Operand, Transfer, TransferKind};

pub(super) fn transfers(bytes: &[u8], start: u64, each: EachTransfer<'_>) {
    let mut decoder = Decoder::with_ip(64, bytes, start, DecoderOptions::NONE);
    let mut i = Instruction::default();
    while decoder.can_decode() {
        decoder.decode_out(&mut i);
        if i.is_invalid() {
            if each(None).is_break() {
                return;
            }
            continue;
        }
        let kind = match i.flow_control() {
            FlowControl::Call if i.is_call_near() => TransferKind::Call(i.near_branch_target()),
            FlowControl::IndirectCall => TransferKind::CallThrough(operand(&i)),
            FlowControl::ConditionalBranch | FlowControl::UnconditionalBranch | FlowControl::XbeginXabortXend => {
                TransferKind::Jump(i.near_branch_target())
            }
            FlowControl::IndirectBranch => TransferKind::JumpThrough(operand(&i)),
            FlowControl::Return => TransferKind::Return,
            // System calls come back.
            FlowControl::Next | FlowControl::Call | FlowControl::Interrupt | FlowControl::Exception => continue,
        };
        if each(Some(Transfer { at: i.ip(), next: i.next_ip(), kind })).is_break() {
            return;
        }
    }
}

fn operand(i: &Instruction) -> Option<Operand> {
    match i.op0_kind() {
        OpKind::Register => dwarf_register(i.op0_register()).map(Operand::Register),
        // In thread-local storage, or not an address.
        OpKind::Memory if matches!(i.memory_segment(), Register::FS | Register::GS) => None,
        OpKind::Memory if i.memory_size() != MemorySize::QwordOffset => None,
        OpKind::Memory if i.is_ip_rel_memory_operand() => Some(Operand::Slot(i.ip_rel_memory_address())),
        OpKind::Memory => {
            let (base, index) = (i.memory_base(), i.memory_index());
            let known = |register| match register {
                Register::None => Some(None),
                register => dwarf_register(register).map(Some),
            };
            let (base, index) = (known(base)?, known(index)?);
            let offset = i.memory_displacement64();
            Some(match (base, index) {
                (Some(base), None) => Operand::Memory { base, offset },
                (base, index) => Operand::Indexed { base, index, scale: i.memory_index_scale(), offset },
            })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::code::flow::collect;

    #[test]
    fn instructions_by_hand() {
        let code = [
            0x41, 0xff, 0xd4, // call r12
            0xff, 0x53, 0x20, // call [rbx + 0x20]
            0xff, 0x15, 0, 0, 0, 0, // call [rip]
            0xff, 0x54, 0xc8, 0x08, // call [rax + 8 * rcx + 8]
            0x64, 0xff, 0x13, // call fs:[rbx]
            0xe8, 0, 0, 0, 0, // call next
            0x74, 0xfe, // je self
            0x0f, 0x05, // syscall
            0xff, 0xe0, // jmp rax
            0xc3, // ret
        ];
        let kinds: Vec<_> =
            collect(super::transfers, &code, 0x1000).expect("instructions").iter().map(|t| (t.at, t.kind)).collect();
        let indexed = Operand::Indexed { base: Some(0), index: Some(2), scale: 8, offset: 8 };
        let expected = [
            (0x1000, TransferKind::CallThrough(Some(Operand::Register(12)))),
            (0x1003, TransferKind::CallThrough(Some(Operand::Memory { base: 3, offset: 0x20 }))),
            (0x1006, TransferKind::CallThrough(Some(Operand::Slot(0x100c)))),
            (0x100c, TransferKind::CallThrough(Some(indexed))),
            (0x1010, TransferKind::CallThrough(None)),
            (0x1013, TransferKind::Call(0x1018)),
            (0x1018, TransferKind::Jump(0x1018)),
            (0x101c, TransferKind::JumpThrough(Some(Operand::Register(0)))),
            (0x101e, TransferKind::Return),
        ];
        assert_eq!(kinds, expected);
        assert_eq!(collect(super::transfers, &[0x90, 0x06], 0), None, "0x06 is no instruction");
    }
}
