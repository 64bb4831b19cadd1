//! What a call instruction called.
//!
//! A function that ends in a jump to another is not on the stack any more: `GOMP_parallel` waits for its team from
//! within `gomp_team_end`, and an internal function of a stripped library has no name. The instruction before the return
//! address still says which function was called.

use std::cell::RefCell;

use iced_x86::{Code, Decoder, DecoderOptions, FlowControl, Instruction, OpKind, Register};
use ompd_target::{Addr, ElfFile, Machine, Target, TargetExt};
use rustc_hash::FxHashMap;

use crate::image::{Image, Images};
use crate::unwind::RegisterSet;

/// A function is decoded from its beginning, so that no byte is taken for the beginning of an instruction that is none.
/// Longer ones are not looked at.
const MAX_FUNCTION: u64 = 4 << 20;

/// The operand of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operand {
    /// An address of the file.
    Direct(u64),
    /// What lies at an address of the file.
    Slot(u64),
    /// What a register held, by DWARF number.
    Register(u16),
    /// A pointer that is not there any more: in memory, or in a register that calls do not preserve.
    Pointer,
}

/// Operands of the calls of one file, by return address.
#[derive(Debug, Default)]
pub(crate) struct CallSites {
    known: RefCell<FxHashMap<u64, Option<Operand>>>,
}

impl CallSites {
    fn operand(&self, file: &ElfFile, returns_to: u64) -> Option<Operand> {
        if let Some(known) = self.known.borrow().get(&returns_to) {
            return *known;
        }
        let found = match file.arch().machine {
            Machine::X86_64 => x86_64(file, returns_to),
            _ => None,
        };
        self.known.borrow_mut().insert(returns_to, found);
        found
    }
}

/// What the call before the return address `returns_to` (in `image`) called, as an address of the target. `registers` are
/// those of the calling frame: only registers that calls preserve still hold what they held.
pub(crate) fn callee(
    target: &dyn Target,
    images: &Images<'_>,
    returns_to: Addr,
    registers: &RegisterSet,
) -> Option<Addr> {
    let image = images.at(returns_to.back(1))?;
    let info = image.info.as_ref()?;
    match info.calls().operand(info.file(), returns_to.back(image.bias).0)? {
        Operand::Direct(at) => Some(through_stub(target, image, info.file(), at)),
        Operand::Slot(at) => target.read_ptr(Addr(at).offset(image.bias)).ok(),
        Operand::Register(register) => registers.get(register).map(Addr),
        Operand::Pointer => None,
    }
    .filter(|addr| images.at(*addr).is_some())
}

/// True if the call before the return address `returns_to` called what a pointer said, as bodies of constructs are
/// called, and not a function known by its name.
pub(crate) fn by_pointer(images: &Images<'_>, returns_to: Addr) -> bool {
    let operand = images.at(returns_to.back(1)).and_then(|image| {
        let info = image.info.as_ref()?;
        info.calls().operand(info.file(), returns_to.back(image.bias).0)
    });
    matches!(operand, Some(Operand::Register(_) | Operand::Pointer))
}

/// True if the function that begins at `from` jumps to where the one at `to` begins: a call that was its last act.
pub(crate) fn jumps(target: &dyn Target, images: &Images<'_>, from: Addr, to: Addr) -> bool {
    let Some(image) = images.at(from) else { return false };
    let Some(file) = image.info.as_ref().map(|info| info.file()) else { return false };
    let start = from.back(image.bias).0;
    let Some(range) = file.function_range(start).filter(|range| range.start == start) else { return false };
    let length = range.end.saturating_sub(range.start);
    if file.arch().machine != Machine::X86_64 || length > MAX_FUNCTION {
        return false;
    }
    let Some(code) = file.bytes_at(range.start, length) else { return false };
    let mut decoder = Decoder::with_ip(64, code, range.start, DecoderOptions::NONE);
    let mut instruction = Instruction::default();
    while decoder.can_decode() {
        decoder.decode_out(&mut instruction);
        let reaches = match instruction.flow_control() {
            FlowControl::UnconditionalBranch | FlowControl::ConditionalBranch => {
                let at = instruction.near_branch_target();
                !range.contains(&at) && through_stub(target, image, file, at) == to
            }
            FlowControl::IndirectBranch if instruction.is_ip_rel_memory_operand() => {
                let slot = Addr(instruction.ip_rel_memory_address()).offset(image.bias);
                target.read_ptr(slot).is_ok_and(|at| at == to)
            }
            _ => false,
        };
        if reaches {
            return true;
        }
    }
    false
}

/// If there is a stub at `at` that jumps to what a slot holds (psABI x86-64, 5.2), that; otherwise `at` itself.
fn through_stub(target: &dyn Target, image: &Image<'_>, file: &ElfFile, at: u64) -> Addr {
    const LONGEST: u64 = 16;
    let own = Addr(at).offset(image.bias);
    let Some(code) = (1..=LONGEST).rev().find_map(|len| file.bytes_at(at, len)) else { return own };
    let mut decoder = Decoder::with_ip(64, code, at, DecoderOptions::NONE);
    let mut instruction = Instruction::default();
    while decoder.can_decode() {
        decoder.decode_out(&mut instruction);
        match instruction.code() {
            Code::Endbr64 => {}
            Code::Jmp_rm64 if instruction.is_ip_rel_memory_operand() => {
                let slot = Addr(instruction.ip_rel_memory_address()).offset(image.bias);
                return target.read_ptr(slot).unwrap_or(own);
            }
            _ => return own,
        }
    }
    own
}

fn x86_64(file: &ElfFile, returns_to: u64) -> Option<Operand> {
    let function = file.function_range(returns_to.checked_sub(1)?)?;
    let length = returns_to.checked_sub(function.start).filter(|length| *length <= MAX_FUNCTION)?;
    let code = file.bytes_at(function.start, length)?;
    let mut decoder = Decoder::with_ip(64, code, function.start, DecoderOptions::NONE);
    let mut instruction = Instruction::default();
    while decoder.can_decode() {
        decoder.decode_out(&mut instruction);
        if instruction.next_ip() == returns_to {
            break;
        }
    }
    if instruction.next_ip() != returns_to {
        return None;
    }
    match instruction.flow_control() {
        FlowControl::Call => Some(Operand::Direct(instruction.near_branch_target())),
        FlowControl::IndirectCall => match instruction.op0_kind() {
            OpKind::Memory if instruction.is_ip_rel_memory_operand() => {
                Some(Operand::Slot(instruction.ip_rel_memory_address()))
            }
            OpKind::Register => {
                Some(dwarf_number(instruction.op0_register()).map_or(Operand::Pointer, Operand::Register))
            }
            _ => Some(Operand::Pointer),
        },
        _ => None,
    }
}

/// DWARF numbers of the registers that calls preserve (psABI x86-64, 3.2.1 and 3.36). The others may hold something else
/// by now.
fn dwarf_number(register: Register) -> Option<u16> {
    match register {
        Register::RBX => Some(3),
        Register::RBP => Some(6),
        Register::R12 => Some(12),
        Register::R13 => Some(13),
        Register::R14 => Some(14),
        Register::R15 => Some(15),
        _ => None,
    }
}
