//! What the form of a location tells, whether or not it can be evaluated.

use gimli::{Encoding, Expression, Operation, Reader as _};

use crate::reader::Metered;

/// Operations of an expression that are looked at. Those that tell something are shorter.
const MAX_STEPS: usize = 8;

/// An operation, as far as forms are compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step {
    InRegister(u16),
    Register(u16, i64),
    Frame(i64),
    Entry(Vec<u8>),
    Plus(u64),
    Deref,
    IsValue,
}

/// The operations of an expression; `None` if there are many, or others.
pub(crate) fn steps(expression: &Expression<Metered>, encoding: Encoding) -> Option<Vec<Step>> {
    let mut steps = Vec::new();
    let mut operations = expression.clone().operations(encoding);
    while let Some(operation) = operations.next().ok()? {
        if steps.len() == MAX_STEPS {
            return None;
        }
        steps.push(match operation {
            Operation::Register { register } => Step::InRegister(register.0),
            Operation::RegisterOffset { register, offset, .. } => Step::Register(register.0, offset),
            Operation::FrameOffset { offset } => Step::Frame(offset),
            Operation::EntryValue { expression } => Step::Entry(expression.to_slice().ok()?.into_owned()),
            Operation::PlusConstant { value } => Step::Plus(value),
            Operation::Deref { space: false, size, .. } if size == encoding.address_size => Step::Deref,
            Operation::StackValue => Step::IsValue,
            _ => return None,
        });
    }
    Some(steps)
}

/// The steps that leave what is at a location on the stack.
pub(crate) fn value_at(mut location: Vec<Step>) -> Vec<Step> {
    match location.as_slice() {
        [Step::InRegister(register)] => vec![Step::Register(*register, 0)],
        [.., Step::IsValue] => {
            location.pop();
            location
        }
        _ => {
            location.push(Step::Deref);
            location
        }
    }
}

/// True if a location is where a pointer points that lies in the block whose address `block` computes.
pub(crate) fn is_through(location: &[Step], block: &[Step]) -> bool {
    let rest = location.strip_prefix(block).filter(|_| block.len() > 1 || !matches!(block, [Step::Deref] | []));
    matches!(rest, Some([Step::Deref] | [Step::Plus(_), Step::Deref]))
}

/// True if a location is in a register, or beside the frame's base or the stack pointer: nobody else's.
pub(crate) fn is_own(location: &[Step], stack_registers: &[u16]) -> bool {
    match location {
        [Step::InRegister(_) | Step::Frame(_)] => true,
        [Step::Register(register, _)] => stack_registers.contains(register),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pointers_in_the_block_of_an_outlined_function() {
        let in_register = value_at(vec![Step::InRegister(12)]);
        assert!(is_through(&[Step::Register(12, 0), Step::Plus(8), Step::Deref], &in_register));
        assert!(is_through(&[Step::Register(12, 0), Step::Deref], &in_register));
        // A value in the block itself may be a copy.
        assert!(!is_through(&[Step::Register(12, 0), Step::Plus(8)], &in_register));
        assert!(!is_through(&[Step::Register(3, 0), Step::Deref], &in_register));
        assert!(!is_through(&[Step::Register(12, 0), Step::Deref, Step::IsValue], &in_register));
        let on_stack = value_at(vec![Step::Frame(-248)]);
        assert!(is_through(&[Step::Frame(-248), Step::Deref, Step::Plus(8), Step::Deref], &on_stack));
        // An array whose address is in the frame.
        assert!(!is_through(&[Step::Frame(-248), Step::Deref], &on_stack));
        let lost = value_at(vec![Step::Entry(vec![0x55]), Step::IsValue]);
        assert!(is_through(&[Step::Entry(vec![0x55]), Step::Deref], &lost));
        assert!(!is_through(&[Step::Deref], &[]));
    }

    #[test]
    fn places_of_a_functions_own() {
        assert!(is_own(&[Step::Frame(8)], &[]));
        assert!(is_own(&[Step::Register(7, 16)], &[7]));
        assert!(!is_own(&[Step::Register(3, 16)], &[7]));
        assert!(!is_own(&[Step::Frame(8), Step::Deref], &[7]));
    }
}
