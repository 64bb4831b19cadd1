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
    /// A general register by its DWARF number.
    pub register: &'g dyn Fn(u16) -> Option<u64>,
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
    of(expr, entry, given, Is::Address, 0)
}

/// As [`value`], of an expression that is a number: constants are no addresses of the file, but where memory is read at them. What
/// [`Given::argument`] gives has to be a number too.
pub fn number(expr: &Expr, entry: u64, given: &Given<'_>) -> Option<u64> {
    of(expr, entry, given, Is::Number, 0)
}

/// What an expression is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Is {
    Address,
    Number,
}

fn of(expr: &Expr, entry: u64, given: &Given<'_>, is: Is, depth: usize) -> Option<u64> {
    if depth == MAX_DEPTH {
        return None;
    }
    let inner = |expr: &Expr| of(expr, entry, given, is, depth + 1);
    match expr.kind() {
        Kind::Const(value) if is == Is::Number => Some(*value),
        Kind::Const(value) => Some((given.address)(*value).unwrap_or(*value)),
        // An argument is a number here, and no address.
        Kind::Load { size, addr } if is == Is::Number => {
            (given.memory)(of(addr, entry, &Given { argument: &|_| None, ..*given }, Is::Address, depth + 1)?, *size)
        }
        Kind::Arg(number) => (given.argument)(*number),
        Kind::Stack(0) => (given.register)(given.machine.facts()?.registers.stack_pointer),
        Kind::Unknown { at, register } if *at == entry => {
            (given.register)(machine::of(given.machine)?.dwarf_register(*register)?)
        }
        Kind::Load { size, addr } => (given.memory)(inner(addr)?, *size),
        Kind::Sum { base, offset } => Some(inner(base)?.wrapping_add_signed(*offset)),
        Kind::Index { base, index, scale } => Some(inner(base)?.wrapping_add(inner(index)?.wrapping_mul(*scale))),
        Kind::Op { op, left, right } => {
            let (left, right) = (inner(left)?, inner(right)?);
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
