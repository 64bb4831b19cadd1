//! Operands: what registers hold, shifted, extended, in parts.

use yaxpeax_arm::armv8::a64::{Instruction, Opcode as O, Operand, SIMDSizeCode, ShiftStyle, SizeCode};

use crate::code::expr::{Expr, Kind, Op};
use crate::code::state::{Path, cut, mask, masked, sign_extend, signed};

/// Bytes of a register operand; 8 for anything else.
pub(super) fn size(o: &Operand) -> u8 {
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

pub(super) fn vector_bytes(width: SIMDSizeCode) -> u8 {
    match width {
        SIMDSizeCode::B => 1,
        SIMDSizeCode::H => 2,
        SIMDSizeCode::S => 4,
        SIMDSizeCode::D => 8,
        SIMDSizeCode::Q => 16,
    }
}

/// True for a general register or the stack pointer.
pub(super) fn is_general(o: &Operand) -> bool {
    matches!(o, Operand::Register(..) | Operand::RegisterOrSP(..))
}

/// True for `xzr` and `wzr`.
pub(super) fn is_zero(o: &Operand) -> bool {
    matches!(o, Operand::Register(_, 31))
}

/// An immediate.
pub(super) fn number(o: &Operand) -> Option<u64> {
    match *o {
        Operand::Immediate(n) => Some(n.into()),
        Operand::Imm16(n) => Some(n.into()),
        Operand::Imm64(n) => Some(n),
        Operand::ImmShift(n, shift) => u64::from(n).checked_shl(shift.into()),
        _ => None,
    }
}

/// Where a branch goes.
pub(super) fn target(at: u64, o: &Operand) -> Option<u64> {
    if let Operand::PCOffset(offset) = o { Some(at.wrapping_add_signed(*offset)) } else { None }
}

/// What `adrp` computes.
pub(super) fn page(pc: u64, offset: i64) -> u64 {
    (pc & !0xfff).wrapping_add_signed(offset)
}

/// A general register that is not 31.
pub(super) fn general(p: &Path, width: SizeCode, n: u16) -> Expr {
    let value = p.registers[usize::from(n & 31)].clone();
    if width == SizeCode::W { cut(value, 4) } else { value }
}

pub(super) fn read(p: &Path, o: &Operand) -> Expr {
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

pub(super) fn write(p: &mut Path, o: &Operand, value: Expr) {
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
pub(super) fn narrowed(value: &Expr, skip: u8, bytes: u8, p: &Path) -> Expr {
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
pub(super) fn lane(p: &Path, o: &Operand) -> Expr {
    let Operand::SIMDRegisterElementsLane(_, n, width, number) = *o else { return p.unknown() };
    let bytes = vector_bytes(width);
    match number.checked_mul(bytes) {
        Some(skip) if skip < 16 => narrowed(&p.vector(usize::from(n & 31)), skip, bytes, p),
        _ => p.unknown(),
    }
}

/// The number `movi` fills a register with: any in 64 bits, in 128 only zero.
pub(super) fn vector_immediate(to: &Operand, value: &Operand) -> Option<Expr> {
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
pub(super) fn shifted(value: &Expr, style: ShiftStyle, amount: u8, size: u8, p: &Path) -> Expr {
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

pub(super) fn shift_right(value: &Expr, count: u64, at: u64) -> Expr {
    match value.as_const() {
        _ if count == 0 => value.clone(),
        Some(n) if count < 64 => Expr::constant(n >> count),
        _ => Expr::op(Op::Shr, value, &Expr::constant(count), at),
    }
}

pub(super) fn arithmetic_shift_right(value: &Expr, count: u64, size: u8, at: u64) -> Expr {
    match value.as_const() {
        _ if count == 0 => value.clone(),
        Some(n) if count < 64 => Expr::constant((sign_extend(n, size) as i64 >> count) as u64),
        _ => Expr::op(Op::Sar, value, &Expr::constant(count), at),
    }
}

pub(super) fn shift_by_register(opcode: O, value: &Expr, by: &Expr, size: u8, at: u64) -> Expr {
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

pub(super) fn product(a: &Expr, b: &Expr, size: u8, at: u64) -> Expr {
    match (a.as_const(), b.as_const()) {
        (_, Some(factor)) => a.times(sign_extend(factor, size), at),
        (Some(factor), None) => b.times(sign_extend(factor, size), at),
        (None, None) => Expr::op(Op::Mul, a, b, at),
    }
}

pub(super) fn negative(value: &Expr, size: u8, at: u64) -> Expr {
    cut(Expr::constant(0).sub(&signed(value, size), at), size)
}

pub(super) fn inverted(value: &Expr, size: u8, at: u64) -> Expr {
    match value.as_const() {
        Some(n) => Expr::constant(!n & mask(size)),
        None => Expr::op(Op::Not, value, &Expr::constant(0), at),
    }
}

/// Shifts by a constant, extensions, bit-fields taken out and put in: all are forms of three instructions.
pub(super) fn bit_field(p: &Path, i: &Instruction) -> Option<Expr> {
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
