//! Where the value of a variable is.

use gimli::{AttributeValue, EvaluationResult, Expression, Location, Piece, RunTimeEndian, UnitOffset, ValueType};
use ompd_process::{Addr, ByteOrder};

use super::entries::{DieRef, Entries, Unit};
use super::scope::Where;
use crate::frame::RegisterSet;
use crate::reader::Metered;

/// Operations of one expression. Compilers need a dozen.
const MAX_OPERATIONS: u32 = 1000;
/// Times an expression may ask for something.
const MAX_REQUESTS: usize = 64;
/// Bytes of a value put together from pieces.
const MAX_PIECES: u64 = 4096;

/// Reads memory as it was while the process was stopped; the error says why that cannot be.
pub(crate) type ReadBytes<'a> = &'a dyn Fn(Addr, &mut [u8]) -> Result<(), String>;

/// What expressions are evaluated with: one frame of one thread.
pub(crate) struct Surroundings<'a> {
    pub(crate) entries: &'a Entries,
    pub(crate) unit: &'a std::rc::Rc<Unit>,
    /// Target address minus file address.
    pub(crate) bias: u64,
    pub(crate) byte_order: ByteOrder,
    pub(crate) registers: &'a RegisterSet,
    pub(crate) cfa: Option<Addr>,
    pub(crate) frame_base: &'a Where,
    /// Where the stack pointer is while no arguments are pushed, where the frame's base is the stack pointer: LLVM counts
    /// offsets of the frame from there, and does not say so where it has moved (seen with clang 14 at calls of
    /// `__kmpc_fork_call`). For other frames `None`.
    pub(crate) settled: Option<Result<u64, &'static str>>,
    pub(crate) read: ReadBytes<'a>,
}

/// Where the bytes of a value are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Content {
    Memory(Addr),
    /// The bytes themselves, `None` for those that are nowhere.
    Bytes(Vec<Option<u8>>),
}

type Reason = String;

impl Surroundings<'_> {
    /// Where a value of `size` bytes is.
    pub(crate) fn locate(&self, place: &Where, size: Option<u64>) -> Result<Content, Reason> {
        match place {
            Where::At(expression) => {
                let pieces = self.evaluate(expression, true)?;
                self.content(&pieces, size)
            }
            Where::Constant(value) => self.constant(value, size),
            Where::Nowhere(why) => Err((*why).to_owned()),
        }
    }

    fn constant(&self, value: &AttributeValue<Metered>, size: Option<u64>) -> Result<Content, Reason> {
        let odd = || "debug information gives a constant of an unknown form".to_owned();
        if let AttributeValue::Block(bytes) | AttributeValue::String(bytes) = value {
            let bytes = gimli::Reader::to_slice(bytes).map_err(|_| odd())?;
            let length = bytes.len().min(MAX_PIECES as usize);
            return Ok(Content::Bytes(bytes[..length].iter().copied().map(Some).collect()));
        }
        let number = match value {
            AttributeValue::Sdata(value) => value.cast_unsigned(),
            other => other.udata_value().ok_or_else(odd)?,
        };
        Ok(Content::Bytes(self.low_bytes(number, size)))
    }

    /// The low bytes of a register or number, as they would lie in memory.
    fn low_bytes(&self, value: u64, size: Option<u64>) -> Vec<Option<u8>> {
        let size = size.unwrap_or(8).min(8) as usize;
        let bytes = match self.byte_order {
            ByteOrder::Little => value.to_le_bytes()[..size].to_vec(),
            ByteOrder::Big => value.to_be_bytes()[8 - size..].to_vec(),
        };
        bytes.into_iter().map(Some).collect()
    }

    fn content(&self, pieces: &[Piece<Metered>], size: Option<u64>) -> Result<Content, Reason> {
        match pieces {
            [] => Err("optimized out here".to_owned()),
            [Piece { size_in_bits: None, location, .. }] => match location {
                Location::Address { address } => Ok(Content::Memory(Addr(*address))),
                location => self.bytes_of(location, size).map(Content::Bytes),
            },
            pieces => {
                let mut all = Vec::new();
                for piece in pieces {
                    let bits = piece.size_in_bits.unwrap_or(0);
                    let whole = bits % 8 == 0 && piece.bit_offset.is_none_or(|offset| offset == 0);
                    let length = bits / 8;
                    if !whole || length == 0 || all.len() as u64 + length > MAX_PIECES {
                        return Err("its bits are in places that are not put together".to_owned());
                    }
                    let bytes = match piece.location {
                        Location::Address { address } => {
                            let mut bytes = vec![0; length as usize];
                            let read = (self.read)(Addr(address), &mut bytes);
                            read.ok().map(|()| bytes.into_iter().map(Some).collect::<Vec<_>>())
                        }
                        ref location => {
                            self.bytes_of(location, Some(length)).ok().filter(|bytes| bytes.len() as u64 == length)
                        }
                    };
                    all.extend(bytes.unwrap_or_else(|| vec![None; length as usize]));
                }
                Ok(Content::Bytes(all))
            }
        }
    }

    fn bytes_of(&self, location: &Location<Metered>, size: Option<u64>) -> Result<Vec<Option<u8>>, Reason> {
        match location {
            Location::Register { register } => {
                if size.is_some_and(|size| size > 8) {
                    return Err("in a register wider than those that are known".to_owned());
                }
                let value = self.registers.get(register.0).ok_or_else(|| lost_register(register.0))?;
                Ok(self.low_bytes(value, size))
            }
            Location::Value { value } => {
                let bits = match value {
                    gimli::Value::F32(value) => Ok(u64::from(value.to_bits())),
                    gimli::Value::F64(value) => Ok(value.to_bits()),
                    other => other.to_u64(u64::MAX),
                };
                let bits = bits.map_err(|error| unusable(&error))?;
                if size.is_some_and(|size| size > 8) {
                    return Err("debug information gives fewer bytes than the type has".to_owned());
                }
                Ok(self.low_bytes(bits, size))
            }
            Location::Bytes { value } => {
                let bytes = gimli::Reader::to_slice(value).map_err(|error| unusable(&error))?;
                let length = bytes.len().min(MAX_PIECES as usize);
                Ok(bytes[..length].iter().copied().map(Some).collect())
            }
            Location::ImplicitPointer { .. } => Err("a pointer to what was optimized out".to_owned()),
            Location::Empty | Location::Address { .. } => Err("optimized out here".to_owned()),
        }
    }

    /// Runs an expression. That of the frame's base cannot ask for it.
    fn evaluate(&self, expression: &Expression<Metered>, with_base: bool) -> Result<Vec<Piece<Metered>>, Reason> {
        let mut evaluation = expression.clone().evaluation(self.unit.encoding());
        evaluation.set_max_iterations(MAX_OPERATIONS);
        let mut result = evaluation.evaluate();
        for _ in 0..MAX_REQUESTS {
            result = match result.map_err(|error| unusable(&error))? {
                EvaluationResult::Complete => return Ok(evaluation.result()),
                EvaluationResult::RequiresRegister { register, base_type } => {
                    let value = self.registers.get(register.0).ok_or_else(|| lost_register(register.0))?;
                    evaluation.resume_with_register(self.typed(value, base_type)?)
                }
                EvaluationResult::RequiresMemory { address, size, space: None, base_type } if size <= 8 => {
                    let mut bytes = [0; 8];
                    let bytes = &mut bytes[..usize::from(size)];
                    (self.read)(Addr(address), bytes)?;
                    let value = self.typed(self.byte_order.uint(bytes), base_type)?;
                    evaluation.resume_with_memory(value)
                }
                EvaluationResult::RequiresFrameBase if with_base => evaluation.resume_with_frame_base(self.base()?),
                EvaluationResult::RequiresCallFrameCfa => {
                    let cfa = self.cfa.ok_or("where the frame begins is not known")?;
                    evaluation.resume_with_call_frame_cfa(cfa.0)
                }
                EvaluationResult::RequiresRelocatedAddress(address) => {
                    evaluation.resume_with_relocated_address(address.wrapping_add(self.bias))
                }
                EvaluationResult::RequiresIndexedAddress { index, relocate } => {
                    let address = self.entries.dwarf.address(self.unit, index).map_err(|error| unusable(&error))?;
                    let bias = if relocate { self.bias } else { 0 };
                    evaluation.resume_with_indexed_address(address.wrapping_add(bias))
                }
                EvaluationResult::RequiresBaseType(offset) => {
                    let value_type = self.value_type(offset).ok_or("debug information names an unknown type")?;
                    evaluation.resume_with_base_type(value_type)
                }
                EvaluationResult::RequiresEntryValue(_) | EvaluationResult::RequiresParameterRef(_) => {
                    return Err("only known from what its function was called with, and that is gone".to_owned());
                }
                EvaluationResult::RequiresTls(_) => return Err("a thread's own variable: not looked for".to_owned()),
                _ => return Err("described in a way that is not followed".to_owned()),
            };
        }
        Err("described in more steps than are followed".to_owned())
    }

    /// What offsets of the frame count from.
    fn base(&self) -> Result<u64, Reason> {
        let unknown = || "where the frame begins is not known".to_owned();
        let Where::At(expression) = self.frame_base else { return Err(unknown()) };
        if let Some(settled) = self.settled {
            return settled.map_err(str::to_owned);
        }
        match self.evaluate(expression, false)?.as_slice() {
            [Piece { location: Location::Address { address }, .. }] => Ok(*address),
            [Piece { location: Location::Register { register }, .. }] => {
                self.registers.get(register.0).ok_or_else(unknown)
            }
            _ => Err(unknown()),
        }
    }

    fn typed(&self, value: u64, base_type: UnitOffset) -> Result<gimli::Value, Reason> {
        if base_type == UnitOffset(0) {
            return Ok(gimli::Value::Generic(value));
        }
        let unknown = "debug information names an unknown type";
        let value_type = self.value_type(base_type).ok_or(unknown)?;
        let bytes = value.to_le_bytes();
        let bytes = gimli::EndianSlice::new(&bytes, RunTimeEndian::Little);
        gimli::Value::parse(value_type, bytes).map_err(|_| unknown.to_owned())
    }

    fn value_type(&self, offset: UnitOffset) -> Option<ValueType> {
        if offset == UnitOffset(0) {
            return Some(ValueType::Generic);
        }
        let in_unit = offset.is_in_bounds(&self.unit.header);
        let place = in_unit.then(|| DieRef { unit: std::rc::Rc::clone(self.unit), offset })?;
        let entry = self.entries.read(&place)?;
        ValueType::from_entry(&entry).ok().flatten()
    }
}

fn unusable(error: &gimli::Error) -> Reason {
    format!("debug information cannot be used here: {error}")
}

/// On both machines the general registers come first.
fn lost_register(register: u16) -> Reason {
    match usize::from(register) < ompd_process::GENERAL {
        true => "in a register that a called function may have changed".to_owned(),
        false => "in a register that is not read".to_owned(),
    }
}
