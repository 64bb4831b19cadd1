//! What an expression comes to with the registers and the memory of a stopped thread.

use ompd_process::Machine;

use super::expr::{Expr, Kind, Op};
use super::machine;

/// Expressions within each other that are followed.
const MAX_DEPTH: usize = 32;

/// What is known where an expression is to be evaluated. Whoever asks has to know that what it is made of is still the same.
pub struct Given<'g> {
    /// The machine of the code.
    pub machine: Machine,
    /// What of the file is an address: what it is in the target. `None` for a plain number.
    pub address: &'g dyn Fn(u64) -> Option<u64>,
    /// An argument of the function, counted from 0.
    pub argument: &'g dyn Fn(u8) -> Option<u64>,
    /// What a general register held at the entry, by its DWARF number. With `true` only the lower 32 bits count.
    pub register: &'g dyn Fn(u16, bool) -> Option<u64>,
    /// So many bytes of memory at an address of the target, as an unsigned number.
    pub memory: &'g dyn Fn(u64, u8) -> Option<u64>,
}

impl std::fmt::Debug for Given<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Given").field("machine", &self.machine).finish_non_exhaustive()
    }
}

/// The value of an expression over what the registers held at `entry`, where the code that it is from was entered. Widths are those of the
/// expression: nothing wraps at 32 bits.
pub fn value(expr: &Expr, entry: u64, given: &Given<'_>) -> Option<u64> {
    of(expr, entry, given, Is::Address, 0, false)
}

/// As [`value`], of an expression that is a number: constants are no addresses of the file, but where memory is read at them. What
/// [`Given::argument`] gives has to be a number too.
pub fn number(expr: &Expr, entry: u64, given: &Given<'_>) -> Option<u64> {
    of(expr, entry, given, Is::Number, 0, false)
}

/// The lower half of a register.
const HALF: u64 = u32::MAX as u64;

/// What a register, by its DWARF number, held at `entry`, if it holds `now` after code that has left `registers` (by their number in the
/// encoding). `low`: only the lower 32 bits count. `None` if the code has made something of it that does not tell.
pub fn held_at_entry(
    registers: &[Expr],
    machine: Machine,
    entry: u64,
    register: u16,
    now: u64,
    low: bool,
) -> Option<u64> {
    let decoding = machine::of(machine)?;
    let is_asked = |number: &u8| decoding.dwarf_register(*number) == Some(register);
    let number = (0..u8::try_from(registers.len()).ok()?).find(is_asked)?;
    let (mut left, mut added) = (registers[usize::from(number)].clone(), 0_i64);
    loop {
        let (base, more) = left.split();
        added = added.wrapping_add(more);
        match base.kind() {
            Kind::Unknown { at, register } if *at == entry && *register == number => {
                return Some(now.wrapping_sub(added as u64));
            }
            // Instructions on 32 bits.
            Kind::Op { op: Op::And, left: inner, right } if low && right.as_const() == Some(HALF) => {
                left = inner.clone()
            }
            _ => return None,
        }
    }
}

/// What an expression is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Is {
    Address,
    Number,
}

/// `low`: only the lower 32 bits count.
fn of(expr: &Expr, entry: u64, given: &Given<'_>, is: Is, depth: usize, low: bool) -> Option<u64> {
    if depth == MAX_DEPTH {
        return None;
    }
    let inner = |expr: &Expr| of(expr, entry, given, is, depth + 1, low);
    let whole = |expr: &Expr| of(expr, entry, given, is, depth + 1, false);
    match expr.kind() {
        Kind::Const(value) if is == Is::Number => Some(*value),
        Kind::Const(value) => Some((given.address)(*value).unwrap_or(*value)),
        // An argument is a number here, and no address.
        Kind::Load { size, addr } if is == Is::Number => {
            let given = &Given { argument: &|_| None, ..*given };
            (given.memory)(of(addr, entry, given, Is::Address, depth + 1, false)?, *size)
        }
        Kind::Arg(number) => (given.argument)(*number),
        Kind::Stack(0) => (given.register)(given.machine.facts()?.registers.stack_pointer, low),
        Kind::Unknown { at, register } if *at == entry => {
            (given.register)(machine::of(given.machine)?.dwarf_register(*register)?, low)
        }
        Kind::Load { size, addr } => (given.memory)(whole(addr)?, *size),
        Kind::Sum { base, offset } => Some(inner(base)?.wrapping_add_signed(*offset)),
        Kind::Index { base, index, scale } => Some(inner(base)?.wrapping_add(inner(index)?.wrapping_mul(*scale))),
        Kind::Op { op: Op::And, left, right } if right.as_const() == Some(HALF) => {
            Some(of(left, entry, given, is, depth + 1, true)? & HALF)
        }
        Kind::Op { op, left, right } => {
            // What is shifted right comes from the upper bits.
            let (left, right) =
                if *op == Op::Shr { (whole(left)?, whole(right)?) } else { (inner(left)?, inner(right)?) };
            Some(match op {
                Op::And => left & right,
                Op::Or => left | right,
                Op::Xor => left ^ right,
                Op::Shl => left.wrapping_shl(u32::try_from(right).ok()?),
                Op::Shr => left.wrapping_shr(u32::try_from(right).ok()?),
                Op::Mul => left.wrapping_mul(right),
                Op::Sub => left.wrapping_sub(right),
                Op::Sar | Op::Not | Op::Set => return None,
            })
        }
        _ => None,
    }
}
