//! What aarch64 instructions compute.

mod entry;
mod memory;
mod operands;
mod poll;
mod transfers;

use ompd_process::Machine;
use yaxpeax_arch::{Decoder, U8Reader};
use yaxpeax_arm::armv8::a64::{InstDecoder, Instruction, Opcode as O, Operand, SizeCode};

use crate::code::engine::{Engine, InstructionSet};
use crate::code::expr::{Callee, Expr, Kind, TlsSlot};
use crate::code::flow::{EachTransfer, Flow, Jumps, MadeFrame, Poll, Step, Stub};
use crate::code::image::CodeImage;
use crate::code::state::{Convention, Path, cut, escape, realigned, signed, stack_slot};
use operands::{
    bit_field, inverted, is_general, is_zero, lane, negative, number, page, product, read, shift_by_register, size,
    target, vector_immediate, write,
};

/// The stack pointer's place among the registers; the zero register has the same number and is told apart by operand.
const SP: usize = 31;
/// Register of the address at which a callee builds a result too large for x0 and x1.
const RESULT_ADDRESS: usize = 8;
/// Registers that linkers' stubs use.
const STUB_REGISTERS: [u16; 2] = [16, 17];
/// `tpidr_el0` as system registers are numbered in `mrs`: op0 3, op1 3, CRn 13, CRm 0, op2 2.
const THREAD_POINTER: u16 = 0x5e82;

/// aarch64 on Linux (AAPCS64).
pub(super) struct Arm64;

impl InstructionSet for Arm64 {
    const MACHINE: Machine = Machine::AARCH64;
    type Instruction = Instruction;
    const LONGEST: usize = 4;
    const CONVENTION: Convention = Convention {
        stack: SP,
        result: 0,
        arguments: &[0, 1, 2, 3, 4, 5, 6, 7],
        volatile: &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 30],
        pushed: 0,
    };

    fn dwarf_register(register: u8) -> Option<u16> {
        // x0 to x30; 31 is the stack pointer as well (aadwarf64, 4.1).
        (register <= 31).then_some(register.into())
    }

    fn new() -> Arm64 {
        Arm64
    }

    fn decode(bytes: &[u8], _: u64) -> Option<Instruction> {
        InstDecoder::default().decode(&mut U8Reader::new(bytes)).ok()
    }

    fn length(_: &Instruction) -> u64 {
        4
    }

    fn step(engine: &mut Engine<'_, Arm64>, p: &mut Path, i: &Instruction) -> Flow {
        let [first, second, ..] = &i.operands;
        match i.opcode {
            O::B => match target(p.pc, first) {
                Some(to) if engine.outlined_atomic(p, to, true) => engine.leave(p),
                Some(to) => engine.jump(p, to),
                None => Flow::End,
            },
            O::Bcc(_) | O::BCcc(_) => branch(engine, p, first),
            O::CBZ | O::CBNZ => {
                let value = read(p, first);
                engine.compare(p, size(first), value, Expr::constant(0), false);
                branch(engine, p, second)
            }
            O::TBZ | O::TBNZ => {
                let value = read(p, first);
                let bit = number(second).and_then(|n| 1u64.checked_shl(n as u32));
                let bit = bit.map_or_else(|| p.unknown(), Expr::constant);
                engine.compare(p, size(first), value, bit, true);
                branch(engine, p, &i.operands[2])
            }
            O::BL => match target(p.pc, first) {
                Some(to) if engine.outlined_atomic(p, to, false) => Flow::Next,
                Some(to) => {
                    let callee = engine.callee_at(to);
                    call(engine, p, callee)
                }
                None => Flow::End,
            },
            O::BLR | O::BLRAA | O::BLRAAZ | O::BLRAB | O::BLRABZ => {
                let to = read(p, first);
                if let Some(slot @ TlsSlot::Descriptor(_)) = to.as_load(8).and_then(|at| engine.tls_slot(at)) {
                    // The descriptor's function changes nothing but x0.
                    p.registers[0] = Expr::leaf(Kind::TlsOffset(slot));
                    return Flow::Next;
                }
                let callee = engine.pointer_callee(to);
                call(engine, p, callee)
            }
            O::BR | O::BRAA | O::BRAAZ | O::BRAB | O::BRABZ => {
                let to = read(p, first);
                let callee = engine.pointer_callee(to);
                engine.indirect_jump(p, callee)
            }
            O::RET | O::RETAA | O::RETAB | O::RETAASPPC | O::RETABSPPC | O::RETAASPPCR | O::RETABSPPCR => {
                engine.leave(p)
            }
            O::UDF | O::BRK | O::HLT | O::HVC | O::SMC | O::ERET | O::ERETAA | O::ERETAB | O::DRPS => Flow::End,
            O::SVC => {
                p.forget(0);
                Flow::Next
            }
            _ => {
                if !engine.access(p, i) {
                    engine.compute(p, i);
                }
                Flow::Next
            }
        }
    }

    fn jumps(i: &Instruction, at: u64) -> Jumps {
        let to = match i.opcode {
            O::B | O::Bcc(_) | O::BCcc(_) => &i.operands[0],
            O::CBZ | O::CBNZ => &i.operands[1],
            O::TBZ | O::TBNZ => &i.operands[2],
            O::BR | O::BRAA | O::BRAAZ | O::BRAB | O::BRABZ => return Jumps::Anywhere,
            _ => return Jumps::Never,
        };
        target(at, to).map_or(Jumps::Anywhere, Jumps::To)
    }

    /// A stub is `adrp x16, page; ldr x17, [x16, offset]; add x16, ...; br x17`, perhaps after `bti c`. To reach
    /// code far away it is `adrp x16, page; add x16, x16, offset; br x16`.
    fn stub(image: &dyn CodeImage, at: u64) -> Option<Stub> {
        #[derive(Clone, Copy)]
        enum Held {
            Number(u64),
            Word(u64),
        }
        const LONGEST_STUB: u64 = 6;
        let mut held: [Option<Held>; 2] = [None, None];
        let place = |register: u16| STUB_REGISTERS.iter().position(|r| *r == register);
        for n in 0..LONGEST_STUB {
            let pc = at.checked_add(4 * n)?;
            let i = Arm64::decode(image.code_at(pc, 4)?, pc)?;
            match (i.opcode, &i.operands) {
                (O::HINT, _) => {}
                (O::ADRP, [Operand::Register(_, to), Operand::PCOffset(offset), ..]) => {
                    held[place(*to)?] = Some(Held::Number(page(pc, *offset)));
                }
                (O::ADD, [Operand::RegisterOrSP(_, to), Operand::RegisterOrSP(_, from), Operand::Immediate(n), ..]) => {
                    let Some(Held::Number(base)) = held[place(*from)?] else { return None };
                    held[place(*to)?] = Some(Held::Number(base.wrapping_add(u64::from(*n))));
                }
                (O::LDR, [Operand::Register(SizeCode::X, to), Operand::RegPreIndex(base, offset, false), ..]) => {
                    let Some(Held::Number(base)) = held[place(*base)?] else { return None };
                    held[place(*to)?] = Some(Held::Word(base.wrapping_add_signed(i64::from(*offset))));
                }
                (O::BR, [Operand::Register(_, to), ..]) => {
                    return match held[place(*to)?]? {
                        Held::Number(code) => Some(Stub::Code(code)),
                        Held::Word(slot) => Some(Stub::Slot(slot)),
                    };
                }
                _ => return None,
            }
        }
        None
    }
    fn made_frame(code: &[u8]) -> Option<MadeFrame> {
        entry::made_frame(code)
    }

    fn transfers(bytes: &[u8], start: u64, each: EachTransfer<'_>) {
        transfers::transfers(bytes, start, each);
    }

    fn next_steps(i: &Instruction, at: u64) -> [Option<(u64, bool)>; 2] {
        poll::next_steps(i, at)
    }

    fn polled(way: &[Step<Instruction>], general: &[u64]) -> Option<Poll> {
        poll::polled(way, general)
    }
}

fn branch(engine: &mut Engine<'_, Arm64>, p: &mut Path, to: &Operand) -> Flow {
    match target(p.pc, to) {
        Some(to) => engine.branch(p, to),
        None => Flow::End,
    }
}

fn call(engine: &mut Engine<'_, Arm64>, p: &mut Path, callee: Callee) -> Flow {
    let result = p.registers[RESULT_ADDRESS].clone();
    escape(p, &result);
    engine.call(p, callee, p.pc.wrapping_add(4))
}

/// The one instruction that `__aarch64_cas4_acq` and its kin (libgcc's and compiler-rt's `lse.S`) come down to: `adrp
/// x16, page; ldrb w16, [x16, offset]; cbz w16, …; casa w0, w1, [x2]; ret`, perhaps after `bti c`. What they do on
/// processors that lack the instruction is the same.
fn outlined(image: &dyn CodeImage, entry: u64) -> Option<Instruction> {
    let instruction = |n: u64| {
        let at = entry.checked_add(4 * n)?;
        Arm64::decode(image.code_at(at, 4)?, at)
    };
    let start = u64::from(instruction(0)?.opcode == O::HINT);
    let scratch = Operand::Register(SizeCode::X, STUB_REGISTERS[0]);
    let flag = Operand::Register(SizeCode::W, STUB_REGISTERS[0]);
    let (page, load, test) = (instruction(start)?, instruction(start + 1)?, instruction(start + 2)?);
    let (atomic, end) = (instruction(start + 3)?, instruction(start + 4)?);
    let chooses = page.opcode == O::ADRP
        && page.operands[0] == scratch
        && load.opcode == O::LDRB
        && load.operands[0] == flag
        && matches!(load.operands[1], Operand::RegPreIndex(base, _, false) if base == STUB_REGISTERS[0])
        && test.opcode == O::CBZ
        && test.operands[0] == flag;
    (chooses && end.opcode == O::RET && memory::is_atomic(atomic.opcode)).then_some(atomic)
}

impl Engine<'_, Arm64> {
    /// If the function at `entry` is but an atomic instruction, does here what that does: a comparison and a store tell
    /// more than a call. False if it is not.
    fn outlined_atomic(&mut self, p: &mut Path, entry: u64, tail: bool) -> bool {
        let Some(atomic) = outlined(self.image(), entry) else { return false };
        self.note_call(p, &Callee::Internal(entry), tail);
        self.access(p, &atomic);
        for register in STUB_REGISTERS {
            p.forget(register.into());
        }
        true
    }

    fn compute(&mut self, p: &mut Path, i: &Instruction) {
        let at = p.pc;
        let [to, first, second, third] = &i.operands;
        match i.opcode {
            // Hints, barriers, prefetches; what signs, checks and strips pointers leaves them the addresses they are.
            O::HINT | O::DMB(_) | O::DSB(_) | O::ISB | O::SB | O::SSBB | O::PSSBB | O::CLREX | O::PRFM | O::PRFUM => {}
            O::PACIASP | O::PACIAZ | O::PACIA1716 | O::PACIBSP | O::PACIBZ | O::PACIB1716 => {}
            O::AUTIASP | O::AUTIAZ | O::AUTIA1716 | O::AUTIBSP | O::AUTIBZ | O::AUTIB1716 => {}
            O::XPACLRI | O::XPACI | O::XPACD | O::PACM => {}
            O::PACIA | O::PACIB | O::PACDA | O::PACDB | O::PACIZA | O::PACIZB | O::PACDZA | O::PACDZB => {}
            O::AUTIA | O::AUTIB | O::AUTDA | O::AUTDB | O::AUTIZA | O::AUTIZB | O::AUTDZA | O::AUTDZB => {}

            O::MRS if *first == Operand::SystemReg(THREAD_POINTER) => write(p, to, Expr::leaf(Kind::ThreadPointer)),
            O::ADR | O::ADRP => {
                let Operand::PCOffset(offset) = first else { return self.anything_else(p, i) };
                let base = if i.opcode == O::ADR { at.wrapping_add_signed(*offset) } else { page(at, *offset) };
                write(p, to, Expr::constant(base));
            }
            O::MOVZ | O::MOVN | O::MOVK => {
                let value = self.wide_immediate(p, i);
                write(p, to, value);
            }
            O::ADD | O::ADDS | O::SUB | O::SUBS => self.sum(p, i),
            O::AND | O::ANDS | O::BIC | O::BICS | O::ORR | O::ORN | O::EOR | O::EON if is_general(to) => {
                self.logical(p, i);
            }
            O::ORR | O::AND if first == second => {
                let value = read(p, first);
                write(p, to, value);
            }
            O::EOR if first == second => write(p, to, Expr::constant(0)),
            O::UBFM | O::SBFM | O::BFM => {
                let value = bit_field(p, i).unwrap_or_else(|| p.unknown());
                write(p, to, value);
            }
            O::LSLV | O::LSRV | O::ASRV => {
                let value = shift_by_register(i.opcode, &read(p, first), &read(p, second), size(to), at);
                write(p, to, value);
            }
            O::MADD | O::SMADDL | O::UMADDL => {
                let product = product(&read(p, first), &read(p, second), size(first), at);
                let value = signed(&read(p, third), size(to)).add(&product, at);
                write(p, to, value);
            }
            O::MSUB | O::SMSUBL | O::UMSUBL => {
                let product = product(&read(p, first), &read(p, second), size(first), at);
                let value = read(p, third).sub(&product, at);
                write(p, to, value);
            }
            O::CSEL | O::CSINC | O::CSINV | O::CSNEG => self.select(p, i),
            O::CCMP | O::CCMN => {
                // The operands: left, right, flags otherwise, condition.
                let (left, right) = (read(p, to), read(p, first));
                let right = if i.opcode == O::CCMN { negative(&right, size(to), at) } else { right };
                self.compare(p, size(to), left, right, false);
            }
            O::FMOV if !matches!(first, Operand::ImmediateDouble(_)) => {
                let value = read(p, first);
                write(p, to, value);
            }
            O::MOVI => {
                let value = vector_immediate(to, first).unwrap_or_else(|| p.unknown());
                write(p, to, value);
            }
            O::UMOV => {
                let value = lane(p, first);
                write(p, to, value);
            }
            _ => self.anything_else(p, i),
        }
    }

    fn wide_immediate(&mut self, p: &Path, i: &Instruction) -> Expr {
        let Operand::ImmShift(value, shift) = i.operands[1] else { return p.unknown() };
        let at = |n: u64| n.checked_shl(u32::from(shift)).unwrap_or(0);
        let bits = at(u64::from(value));
        match (i.opcode, read(p, &i.operands[0]).as_const()) {
            (O::MOVZ, _) => Expr::constant(bits),
            (O::MOVN, _) => Expr::constant(!bits),
            (_, Some(old)) => Expr::constant(old & !at(0xffff) | bits),
            (_, None) => p.unknown(),
        }
    }

    /// Additions and subtractions. Those that set the flags are comparisons, whatever becomes of the result.
    fn sum(&mut self, p: &mut Path, i: &Instruction) {
        let at = p.pc;
        let [to, first, second, _] = &i.operands;
        if !is_general(to) {
            return self.anything_else(p, i);
        }
        let size = size(to);
        let (left, right) = (read(p, first), cut(read(p, second), size));
        let (a, b) = (signed(&left, size), signed(&right, size));
        match i.opcode {
            O::SUBS => self.compare(p, size, left, right, false),
            O::ADDS if is_zero(to) => {
                let right = negative(&right, size, at);
                self.compare(p, size, left, right, false);
            }
            _ => {}
        }
        let value = if matches!(i.opcode, O::ADD | O::ADDS) { a.add(&b, at) } else { a.sub(&b, at) };
        let value = cut(value, size);
        if i.opcode == O::ADDS && !is_zero(to) {
            p.flags = Some((value.clone(), Expr::constant(0)));
        }
        write(p, to, value);
    }

    fn logical(&mut self, p: &mut Path, i: &Instruction) {
        let at = p.pc;
        let [to, first, second, _] = &i.operands;
        let size = size(to);
        let (a, b) = (read(p, first), cut(read(p, second), size));
        let b = if matches!(i.opcode, O::BIC | O::BICS | O::ORN | O::EON) { inverted(&b, size, at) } else { b };
        if matches!(i.opcode, O::ANDS | O::BICS) {
            let (right, mask) = if a == b { (Expr::constant(0), false) } else { (b.clone(), true) };
            self.compare(p, size, a.clone(), right, mask);
        }
        let value = match i.opcode {
            O::AND if matches!(to, Operand::RegisterOrSP(_, 31)) && stack_slot(&a).is_some() => realigned(&a),
            O::AND | O::ANDS | O::BIC | O::BICS => a.and(&b, at),
            O::ORR | O::ORN => a.or(&b, at),
            _ => a.xor(&b, at),
        };
        write(p, to, value);
    }

    /// `csel` and its kin: one path for each of the two values. What only tells how a comparison came out stays one.
    fn select(&mut self, p: &mut Path, i: &Instruction) {
        let at = p.pc;
        let [to, first, second, _] = &i.operands;
        if is_zero(first) && is_zero(second) && matches!(i.opcode, O::CSINC | O::CSINV) {
            let set = self.set(p);
            let value = if i.opcode == O::CSINV { Expr::constant(0).sub(&set, at) } else { set };
            return write(p, to, value);
        }
        let width = size(to);
        let other = read(p, second);
        let other = match i.opcode {
            O::CSINC => cut(signed(&other, width).plus(1, at), width),
            O::CSINV => inverted(&other, width, at),
            O::CSNEG => negative(&other, width, at),
            _ => other,
        };
        let value = read(p, first);
        if value != other {
            let mut second_path = p.clone();
            write(&mut second_path, to, other);
            second_path.pc = at.wrapping_add(4);
            self.fork(second_path);
        }
        write(p, to, value);
    }

    /// Instructions without a rule: what they write becomes unknown.
    fn anything_else(&mut self, p: &mut Path, i: &Instruction) {
        match i.operands[0] {
            Operand::Register(_, 31) => {}
            Operand::Register(_, n) | Operand::RegisterOrSP(_, n) => p.forget(usize::from(n & 31)),
            Operand::SIMDRegister(_, n)
            | Operand::SIMDRegisterElements(_, n, _)
            | Operand::SIMDRegisterElementsLane(_, n, _, _)
            | Operand::SIMDRegisterElementsMultipleLane(_, n, _, _, _) => p.forget_vector(usize::from(n & 31)),
            _ => {}
        }
        match i.opcode {
            O::ADCS | O::SBCS | O::FCMP | O::FCMPE | O::FCCMP | O::FCCMPE => p.flags = None,
            O::SETF8 | O::SETF16 | O::RMIF | O::SUBPS | O::MSR => p.flags = None,
            _ => {}
        }
    }
}
