//! Tables that code builds: long runs of constants stored to globals.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic as M, OpAccess, OpKind, Register as R};

use ompd_target::Machine;

use super::image::{CodeImage, Slot};

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

/// What a register is known to hold.
#[derive(Clone, Copy)]
enum Known {
    Number(u64),
    Vector([u64; 2]),
}

/// Stores of constants to globals in the function `range`, in the order of the instructions.
///
/// The order is that of execution as long as the code is straight, and compilers keep it where they do not keep the
/// order of the variables. Registers are tracked between branch targets only: what a register holds where two ways
/// meet is not known, and such stores are left out. Decoding ends at the first byte that is no instruction.
pub fn immediate_stores(image: &dyn CodeImage, range: Range<u64>) -> Vec<ImmediateStore> {
    /// Far larger than any function that fills a table.
    const MAX_BYTES: u64 = 256 << 10;
    let length = range.end.saturating_sub(range.start).min(MAX_BYTES);
    if image.machine() != Machine::X86_64 {
        return Vec::new();
    }
    let Some(bytes) = image.code_at(range.start, length as usize) else { return Vec::new() };
    let decoder = Decoder::with_ip(64, bytes, range.start, DecoderOptions::NONE);
    let code: Vec<Instruction> = decoder.into_iter().take_while(|i| !i.is_invalid()).collect();
    let targets: HashSet<u64> = code.iter().map(Instruction::near_branch_target).collect();

    let mut info = iced_x86::InstructionInfoFactory::new();
    let mut known: HashMap<R, Known> = HashMap::new();
    let mut stores = Vec::new();
    for i in &code {
        if targets.contains(&i.ip()) {
            known.clear();
        }
        if i.mnemonic() == M::Mov || is_vector_move(i) {
            stores.extend(store(i, &known).into_iter().flatten());
        }
        let value = result(image, i, &known);
        for used in info.info(i).used_registers() {
            if !matches!(used.access(), OpAccess::Read | OpAccess::CondRead) {
                known.remove(&used.register().full_register());
            }
        }
        if let Some(value) = value {
            known.insert(i.op0_register().full_register(), value);
        }
        if i.flow_control() != FlowControl::Next && i.flow_control() != FlowControl::ConditionalBranch {
            known.clear();
        }
    }
    stores
}

/// The stores an instruction makes, if address and value are known.
fn store(i: &Instruction, known: &HashMap<R, Known>) -> [Option<ImmediateStore>; 2] {
    let size = i.memory_size().size();
    if i.op0_kind() != OpKind::Memory || i.memory_segment() == R::FS || i.memory_segment() == R::GS {
        return [None, None];
    }
    let Some(addr) = address(i, known) else { return [None, None] };
    let value = match i.op1_kind() {
        OpKind::Register => known.get(&i.op1_register().full_register()).copied(),
        _ => i.try_immediate(1).ok().map(Known::Number),
    };
    let one = |addr, value: u64, size: u8| {
        let value = if size < 8 { value & ((1 << (u32::from(size) * 8)) - 1) } else { value };
        Some(ImmediateStore { at: i.ip(), addr, value, size })
    };
    match (value, size) {
        (Some(Known::Number(value)), 1 | 2 | 4 | 8) => [one(addr, value, size as u8), None],
        (Some(Known::Vector([low, _])), 8) => [one(addr, low, 8), None],
        (Some(Known::Vector([low, high])), 16) => [one(addr, low, 8), one(addr.wrapping_add(8), high, 8)],
        _ => [None, None],
    }
}

/// What the instruction leaves in its first operand, if that is a register and the value known.
fn result(image: &dyn CodeImage, i: &Instruction, known: &HashMap<R, Known>) -> Option<Known> {
    if i.op0_kind() != OpKind::Register {
        return None;
    }
    let same = i.op_count() == 2 && i.op1_kind() == OpKind::Register && i.op0_register() == i.op1_register();
    match i.mnemonic() {
        M::Lea => address(i, known).map(Known::Number),
        M::Xor | M::Sub if same && i.op0_register().size() >= 4 => Some(Known::Number(0)),
        M::Pxor | M::Xorps | M::Xorpd if same => Some(Known::Vector([0, 0])),
        M::Mov if i.op0_register().size() >= 4 => match i.op1_kind() {
            OpKind::Register => known.get(&i.op1_register().full_register()).copied().map(|v| cut(v, i)),
            // Address of a global from the GOT.
            OpKind::Memory if i.is_ip_rel_memory_operand() && i.memory_size().size() == 8 => {
                match image.slot(i.ip_rel_memory_address())? {
                    Slot::Address(at) | Slot::Symbol { address: Some(at), .. } => Some(Known::Number(at)),
                    _ => None,
                }
            }
            OpKind::Memory => None,
            _ => i.try_immediate(1).ok().map(|v| cut(Known::Number(v), i)),
        },
        _ if is_vector_move(i) => match i.op1_kind() {
            OpKind::Register => known.get(&i.op1_register().full_register()).copied(),
            OpKind::Memory if i.is_ip_rel_memory_operand() && i.memory_size().size() == 16 => {
                // The constant pool: compilers pair neighbouring constants.
                let bytes = image.data_at(i.ip_rel_memory_address(), 16)?;
                let word = |half: &[u8]| half.iter().rev().fold(0, |acc, b| (acc << 8) | u64::from(*b));
                Some(Known::Vector([word(&bytes[..8]), word(&bytes[8..16])]))
            }
            _ => None,
        },
        _ => None,
    }
}

fn address(i: &Instruction, known: &HashMap<R, Known>) -> Option<u64> {
    if i.is_ip_rel_memory_operand() {
        return Some(i.ip_rel_memory_address());
    }
    let displacement = i.memory_displacement64();
    match (i.memory_base(), i.memory_index()) {
        (R::None, R::None) => Some(displacement),
        (base, R::None) => match known.get(&base.full_register()) {
            Some(Known::Number(at)) => Some(at.wrapping_add(displacement)),
            _ => None,
        },
        _ => None,
    }
}

/// 32-bit moves clear the upper half.
fn cut(value: Known, i: &Instruction) -> Known {
    match value {
        Known::Number(v) if i.op0_register().size() == 4 => Known::Number(v & 0xffff_ffff),
        other => other,
    }
}

fn is_vector_move(i: &Instruction) -> bool {
    matches!(
        i.mnemonic(),
        M::Movups
            | M::Movaps
            | M::Movupd
            | M::Movapd
            | M::Movdqu
            | M::Movdqa
            | M::Vmovups
            | M::Vmovaps
            | M::Vmovdqu
            | M::Vmovdqa
    )
}
