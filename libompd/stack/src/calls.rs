//! What a call instruction called.
//!
//! A function that ends in a jump to another is not on the stack any more: `GOMP_parallel` waits for its team from
//! within `gomp_team_end`, and an internal function of a stripped library has no name. The instruction before the return
//! address still says which function was called.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;

use iced_x86::{Code, Decoder, DecoderOptions, FlowControl, Instruction, MemorySize, OpKind, Register};
use ompd_layout::code::dwarf_register;
use ompd_process::{Addr, ElfFile, Machine, Target, TargetExt};

use crate::image::{Image, Images};
use crate::unwind::RegisterSet;

/// A function is decoded from its beginning, so that no byte is taken for the beginning of an instruction that is none.
/// Longer ones are not looked at.
const MAX_FUNCTION: u64 = 4 << 20;

/// Bytes of code decoded for one call, whatever was decoded before.
const PER_CALL: u64 = 4096;
/// Bytes of code that all calls of a file may cost beyond that: every call of a long function is looked for from its beginning.
const IN_ALL: u64 = 64 << 20;

/// The calls of one file that were asked for, by return address.
#[derive(Debug)]
pub(crate) struct CallSites {
    known: RefCell<HashMap<u64, Option<Instruction>>>,
    left: Cell<u64>,
}

impl Default for CallSites {
    fn default() -> Self {
        CallSites { known: RefCell::default(), left: Cell::new(IN_ALL) }
    }
}

impl CallSites {
    /// The call instruction before an address of the file.
    fn call(&self, file: &ElfFile, returns_to: u64) -> Option<Instruction> {
        if let Some(known) = self.known.borrow().get(&returns_to) {
            return *known;
        }
        let found = match file.arch().machine {
            Machine::X86_64 => self.x86_64(file, returns_to),
            _ => None,
        };
        self.known.borrow_mut().insert(returns_to, found);
        found
    }

    /// Counts the decoding of so many bytes; false if there is no more allowance.
    fn spend(&self, length: u64) -> bool {
        let left = self.left.get().checked_sub(length.saturating_sub(PER_CALL));
        self.left.set(left.unwrap_or(0));
        left.is_some()
    }

    fn x86_64(&self, file: &ElfFile, returns_to: u64) -> Option<Instruction> {
        let function = file.function_range(returns_to.checked_sub(1)?)?;
        let length = returns_to.checked_sub(function.start).filter(|length| *length <= MAX_FUNCTION)?;
        if !self.spend(length) {
            return None;
        }
        let code = file.bytes_at(function.start, length)?;
        let mut decoder = Decoder::with_ip(64, code, function.start, DecoderOptions::NONE);
        let mut instruction = Instruction::default();
        while decoder.can_decode() {
            decoder.decode_out(&mut instruction);
        }
        let calls = matches!(instruction.flow_control(), FlowControl::Call | FlowControl::IndirectCall);
        (calls && instruction.next_ip() == returns_to).then_some(instruction)
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
    let call = info.calls().call(info.file(), returns_to.back(image.bias).0)?;
    match call.op0_kind() {
        OpKind::NearBranch64 => Some(through_stub(target, image, info.file(), call.near_branch_target())),
        OpKind::Memory if call.is_ip_rel_memory_operand() => {
            target.read_ptr(Addr(call.ip_rel_memory_address()).offset(image.bias)).ok()
        }
        // The others may hold something else by now (psABI x86-64, 3.2.1).
        OpKind::Register if is_preserved(call.op0_register()) => {
            registers.get(dwarf_register(call.op0_register())?).map(Addr)
        }
        _ => None,
    }
    .filter(|addr| images.at(*addr).is_some())
}

/// Where the indirect call before the return address `returns_to` went, if nothing has been executed since: `registers` are
/// those at the call, `word` reads memory.
pub(crate) fn went_to(
    images: &Images<'_>,
    returns_to: Addr,
    registers: &RegisterSet,
    word: &dyn Fn(Addr) -> Option<u64>,
) -> Option<Addr> {
    let image = images.at(returns_to.back(1))?;
    let info = image.info.as_ref()?;
    let call = info.calls().call(info.file(), returns_to.back(image.bias).0)?;
    let value = |register: Register| registers.get(dwarf_register(register)?);
    match call.op0_kind() {
        OpKind::Register => value(call.op0_register()).map(Addr),
        OpKind::Memory if call.memory_segment() == Register::FS || call.memory_segment() == Register::GS => None,
        OpKind::Memory if call.memory_size() != MemorySize::QwordOffset => None,
        OpKind::Memory if call.is_ip_rel_memory_operand() => {
            word(Addr(call.ip_rel_memory_address()).offset(image.bias)).map(Addr)
        }
        OpKind::Memory => {
            let part = |register| if register == Register::None { Some(0) } else { value(register) };
            let index = part(call.memory_index())?.wrapping_mul(u64::from(call.memory_index_scale()));
            let at = part(call.memory_base())?.wrapping_add(index).wrapping_add(call.memory_displacement64());
            word(Addr(at)).map(Addr)
        }
        _ => None,
    }
}

/// True if the call before the return address `returns_to` called what a pointer said, as bodies of constructs are
/// called, and not a function known by its name.
pub(crate) fn by_pointer(images: &Images<'_>, returns_to: Addr) -> bool {
    let call = images.at(returns_to.back(1)).and_then(|image| {
        let info = image.info.as_ref()?;
        info.calls().call(info.file(), returns_to.back(image.bias).0)
    });
    call.is_some_and(|call| match call.op0_kind() {
        OpKind::Register => true,
        OpKind::Memory => !call.is_ip_rel_memory_operand(),
        _ => false,
    })
}

/// True if the function that begins at `from` jumps to where the one at `to` begins: a call that was its last act.
pub(crate) fn jumps(target: &dyn Target, images: &Images<'_>, from: Addr, to: Addr) -> bool {
    reaches(images, from, &|image, file, range, instruction| match instruction.flow_control() {
        FlowControl::UnconditionalBranch | FlowControl::ConditionalBranch => {
            let at = instruction.near_branch_target();
            !range.contains(&at) && through_stub(target, image, file, at) == to
        }
        FlowControl::IndirectBranch if instruction.is_ip_rel_memory_operand() => {
            let slot = Addr(instruction.ip_rel_memory_address()).offset(image.bias);
            target.read_ptr(slot).is_ok_and(|at| at == to)
        }
        _ => false,
    })
}

/// True if the function that begins at `from` calls, by its address, the one that begins at `to`.
pub(crate) fn calls(target: &dyn Target, images: &Images<'_>, from: Addr, to: Addr) -> bool {
    reaches(images, from, &|image, file, _, instruction| {
        instruction.flow_control() == FlowControl::Call
            && instruction.op0_kind() == OpKind::NearBranch64
            && through_stub(target, image, file, instruction.near_branch_target()) == to
    })
}

/// A test of an instruction: in which image and file it is, and the extent of its function.
type Test<'a> = dyn Fn(&Image<'_>, &ElfFile, &std::ops::Range<u64>, &Instruction) -> bool + 'a;

/// True if an instruction of the function that begins at `from` passes the test.
fn reaches(images: &Images<'_>, from: Addr, test: &Test<'_>) -> bool {
    let Some(image) = images.at(from) else { return false };
    let Some(info) = &image.info else { return false };
    let file = info.file();
    let start = from.back(image.bias).0;
    let Some(range) = file.function_range(start).filter(|range| range.start == start) else { return false };
    let length = range.end.saturating_sub(range.start);
    if file.arch().machine != Machine::X86_64 || length > MAX_FUNCTION || !info.calls().spend(length) {
        return false;
    }
    let Some(code) = file.bytes_at(range.start, length) else { return false };
    let mut decoder = Decoder::with_ip(64, code, range.start, DecoderOptions::NONE);
    let mut instruction = Instruction::default();
    while decoder.can_decode() {
        decoder.decode_out(&mut instruction);
        if test(image, file, &range, &instruction) {
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

/// A call leaves these as they are (psABI x86-64, 3.2.1).
fn is_preserved(register: Register) -> bool {
    use Register::{R12, R13, R14, R15, RBP, RBX};
    matches!(register, RBX | RBP | R12 | R13 | R14 | R15)
}
