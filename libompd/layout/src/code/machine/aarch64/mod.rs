//! What aarch64 instructions compute.

mod memory;
mod poll;
mod transfers;

use ompd_process::Machine;
use yaxpeax_arch::{Decoder, U8Reader};
use yaxpeax_arm::armv8::a64::{InstDecoder, Instruction, Opcode as O, Operand, SIMDSizeCode, ShiftStyle, SizeCode};

use crate::code::engine::{Engine, Flow, InstructionSet, Jumps, Stub};
use crate::code::expr::{Callee, Expr, Kind, Op, TlsSlot};
use crate::code::image::CodeImage;
use crate::code::poll::{Poll, Step};
use crate::code::state::{Convention, Path, cut, escape, mask, masked, realigned, sign_extend, signed, stack_slot};
use crate::code::transfers::EachTransfer;

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

    /// `adrp x16, page; ldr x17, [x16, offset]; add x16, ...; br x17`, perhaps after `bti c`; or, to reach code far
    /// away, `adrp x16, page; add x16, x16, offset; br x16`.
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
    fn transfers(bytes: &[u8], start: u64, each: EachTransfer<'_>) {
        transfers::transfers(bytes, start, each);
    }

    fn next_steps(i: &Instruction, at: u64) -> [Option<(u64, bool)>; 2] {
        poll::next_steps(i, at)
    }

    fn polled(way: &[Step<Arm64>], general: &[u64]) -> Option<Poll> {
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

// ---- operands ----

/// Bytes of a register operand; 8 for anything else.
fn size(o: &Operand) -> u8 {
    match o {
        Operand::Register(SizeCode::W, _)
        | Operand::RegisterOrSP(SizeCode::W, _)
        | Operand::RegisterPair(SizeCode::W, _) => 4,
        Operand::SIMDRegister(width, _)
        | Operand::SIMDRegisterElements(width, _, _)
        | Operand::SIMDRegisterGroup(width, _, _, _) => vector_bytes(*width),
        _ => 8,
    }
}

fn vector_bytes(width: SIMDSizeCode) -> u8 {
    match width {
        SIMDSizeCode::B => 1,
        SIMDSizeCode::H => 2,
        SIMDSizeCode::S => 4,
        SIMDSizeCode::D => 8,
        SIMDSizeCode::Q => 16,
    }
}

/// True for a general register or the stack pointer.
fn is_general(o: &Operand) -> bool {
    matches!(o, Operand::Register(..) | Operand::RegisterOrSP(..))
}

/// True for `xzr` and `wzr`.
fn is_zero(o: &Operand) -> bool {
    matches!(o, Operand::Register(_, 31))
}

/// An immediate.
fn number(o: &Operand) -> Option<u64> {
    match *o {
        Operand::Immediate(n) => Some(n.into()),
        Operand::Imm16(n) => Some(n.into()),
        Operand::Imm64(n) => Some(n),
        Operand::ImmShift(n, shift) => u64::from(n).checked_shl(shift.into()),
        _ => None,
    }
}

/// Where a branch goes.
fn target(at: u64, o: &Operand) -> Option<u64> {
    if let Operand::PCOffset(offset) = o { Some(at.wrapping_add_signed(*offset)) } else { None }
}

/// What `adrp` computes.
fn page(pc: u64, offset: i64) -> u64 {
    (pc & !0xfff).wrapping_add_signed(offset)
}

/// A general register that is not 31.
fn general(p: &Path, width: SizeCode, n: u16) -> Expr {
    let value = p.registers[usize::from(n & 31)].clone();
    if width == SizeCode::W { cut(value, 4) } else { value }
}

fn read(p: &Path, o: &Operand) -> Expr {
    match *o {
        Operand::Register(_, 31) => Expr::constant(0),
        Operand::Register(width, n) | Operand::RegisterOrSP(width, n) => general(p, width, n),
        Operand::RegShift(style, amount, width, n) => {
            let value = read(p, &Operand::Register(width, n));
            shifted(&value, style, amount, if width == SizeCode::W { 4 } else { 8 }, p)
        }
        Operand::SIMDRegister(width, n) | Operand::SIMDRegisterElements(width, n, _) => {
            narrowed(&p.vector(usize::from(n & 31)), 0, vector_bytes(width), p)
        }
        _ => number(o).map_or_else(|| p.unknown(), Expr::constant),
    }
}

fn write(p: &mut Path, o: &Operand, value: Expr) {
    let value = cut(value, size(o));
    match *o {
        Operand::Register(_, 31) => {}
        Operand::Register(_, n) | Operand::RegisterOrSP(_, n) => p.registers[usize::from(n & 31)] = value,
        Operand::SIMDRegister(_, n) | Operand::SIMDRegisterElements(_, n, _) => {
            p.set_vector(usize::from(n & 31), value)
        }
        _ => {}
    }
}

/// `bytes` bytes, `skip` bytes into a vector register.
fn narrowed(value: &Expr, skip: u8, bytes: u8, p: &Path) -> Expr {
    match value.kind() {
        Kind::Load { size, addr } if bytes < *size && skip.checked_add(bytes).is_some_and(|end| end <= *size) => {
            Expr::load(bytes, &addr.plus(skip.into(), p.pc), p.pc)
        }
        Kind::Const(0) => value.clone(),
        _ if skip == 0 => value.clone(),
        _ => p.unknown(),
    }
}

/// An element of a vector register.
fn lane(p: &Path, o: &Operand) -> Expr {
    let Operand::SIMDRegisterElementsLane(_, n, width, number) = *o else { return p.unknown() };
    let bytes = vector_bytes(width);
    match number.checked_mul(bytes) {
        Some(skip) if skip < 16 => narrowed(&p.vector(usize::from(n & 31)), skip, bytes, p),
        _ => p.unknown(),
    }
}

/// The number `movi` fills a register with: any in 64 bits, in 128 only zero.
fn vector_immediate(to: &Operand, value: &Operand) -> Option<Expr> {
    let element = number(value)?;
    let bytes = match to {
        Operand::SIMDRegisterElements(_, _, width) => vector_bytes(*width),
        _ => 8,
    };
    if element != 0 && size(to) > 8 {
        return None;
    }
    let filled = (0..8 / bytes.clamp(1, 8)).fold(0, |acc, n| acc | (element & mask(bytes)) << (n * bytes * 8));
    Some(Expr::constant(filled))
}

// ---- arithmetic ----

/// A register operand as an instruction shifts or extends it first; `size` is that of the register.
fn shifted(value: &Expr, style: ShiftStyle, amount: u8, size: u8, p: &Path) -> Expr {
    let at = p.pc;
    let number = value.as_const();
    let by = |value: &Expr| value.times(1u64.checked_shl(amount.into()).unwrap_or(0), at);
    let sign = |bytes| number.map_or_else(|| value.clone(), |n| Expr::constant(sign_extend(n, bytes)));
    match style {
        // A word that is extended first is decoded as one that is shifted: the result may be wider than the register.
        ShiftStyle::LSL | ShiftStyle::UXTX | ShiftStyle::SXTX => by(value),
        ShiftStyle::UXTB => by(&masked(value, 1, at)),
        ShiftStyle::UXTH => by(&masked(value, 2, at)),
        ShiftStyle::UXTW => by(&number.map_or_else(|| value.clone(), |n| Expr::constant(n & mask(4)))),
        ShiftStyle::SXTB => by(&sign(1)),
        ShiftStyle::SXTH => by(&sign(2)),
        ShiftStyle::SXTW => by(&sign(4)),
        _ if amount == 0 => value.clone(),
        ShiftStyle::LSR => shift_right(value, amount.into(), at),
        ShiftStyle::ASR => arithmetic_shift_right(value, amount.into(), size, at),
        ShiftStyle::ROR => p.unknown(),
    }
}

fn shift_right(value: &Expr, count: u64, at: u64) -> Expr {
    match value.as_const() {
        _ if count == 0 => value.clone(),
        Some(n) if count < 64 => Expr::constant(n >> count),
        _ => Expr::op(Op::Shr, value, &Expr::constant(count), at),
    }
}

fn arithmetic_shift_right(value: &Expr, count: u64, size: u8, at: u64) -> Expr {
    match value.as_const() {
        _ if count == 0 => value.clone(),
        Some(n) if count < 64 => Expr::constant((sign_extend(n, size) as i64 >> count) as u64),
        _ => Expr::op(Op::Sar, value, &Expr::constant(count), at),
    }
}

fn shift_by_register(opcode: O, value: &Expr, by: &Expr, size: u8, at: u64) -> Expr {
    // The count is taken modulo the width.
    let count = by.as_const().map(|n| n & (u64::from(size) * 8 - 1));
    match (opcode, count) {
        (O::LSLV, Some(count)) => value.times(1 << count, at),
        (O::LSLV, None) => Expr::op(Op::Shl, value, by, at),
        (O::LSRV, Some(count)) => shift_right(value, count, at),
        (O::LSRV, None) => Expr::op(Op::Shr, value, by, at),
        (_, Some(count)) => arithmetic_shift_right(value, count, size, at),
        (_, None) => Expr::op(Op::Sar, value, by, at),
    }
}

fn product(a: &Expr, b: &Expr, size: u8, at: u64) -> Expr {
    match (a.as_const(), b.as_const()) {
        (_, Some(factor)) => a.times(sign_extend(factor, size), at),
        (Some(factor), None) => b.times(sign_extend(factor, size), at),
        (None, None) => Expr::op(Op::Mul, a, b, at),
    }
}

fn negative(value: &Expr, size: u8, at: u64) -> Expr {
    cut(Expr::constant(0).sub(&signed(value, size), at), size)
}

fn inverted(value: &Expr, size: u8, at: u64) -> Expr {
    match value.as_const() {
        Some(n) => Expr::constant(!n & mask(size)),
        None => Expr::op(Op::Not, value, &Expr::constant(0), at),
    }
}

/// Shifts by a constant, extensions, bit-fields taken out and put in: all are forms of three instructions.
fn bit_field(p: &Path, i: &Instruction) -> Option<Expr> {
    let at = p.pc;
    let [to, from, rotate, last] = &i.operands;
    let bytes = size(to);
    let bits = u64::from(bytes) * 8;
    let (rotate, last) = (number(rotate)?, number(last)?);
    if rotate >= bits || last >= bits {
        return None;
    }
    let value = read(p, from);
    // The field's lowest bit and width in the source, and where it goes.
    let (low, width, shift) =
        if last >= rotate { (rotate, last - rotate + 1, 0) } else { (0, last + 1, bits - rotate) };
    let ones = Expr::constant(u64::MAX >> (64 - width));
    let times = |value: &Expr, shift: u64| cut(value.times(1 << shift, at), bytes);
    if i.opcode == O::SBFM {
        return Some(match value.as_const() {
            // What of a sign-extended byte, half word or word is left is looked through.
            None if low == 0 && matches!(width, 8 | 16 | 32) => times(&value, shift),
            _ => {
                let top = times(&value, bits - low - width);
                times(&arithmetic_shift_right(&top, bits - width, bytes, at), shift)
            }
        });
    }
    let field = shift_right(&value, low, at);
    // Nothing but the shift cuts the field out; or it is a whole word, and the upper half is looked through.
    let whole = low + width == bits || shift + width == bits || (low == 0 && width == 32);
    if i.opcode == O::UBFM {
        let field = if whole && field.as_const().is_none() { field } else { field.and(&ones, at) };
        return Some(times(&field, shift));
    }
    let place = ones.as_const().unwrap_or(0) << shift;
    let rest = read(p, to).and(&Expr::constant(!place & mask(bytes)), at);
    Some(rest.or(&times(&field.and(&ones, at), shift), at))
}
