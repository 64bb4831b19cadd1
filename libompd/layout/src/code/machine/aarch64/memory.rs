//! Loads, stores and atomic operations.

use yaxpeax_arm::armv8::a64::{Instruction, Opcode as O, Operand, SizeCode};

use super::operands::{general, inverted, read, shifted, size, vector_bytes, write};
use crate::code::engine::{Engine, InstructionSet};
use crate::code::expr::Expr;
use crate::code::state::{Path, cut, signed};

/// What an instruction does to memory. Sizes in bytes; `None` is the size of the register.
enum Access {
    Load(Option<u8>),
    LoadPair(Option<u8>),
    Store {
        size: Option<u8>,
        locked: bool,
    },
    StorePair,
    /// Stores of `count` registers that may fail: the first operand tells.
    Exclusive {
        size: Option<u8>,
        count: usize,
    },
    CompareAndSwap(Option<u8>),
    CompareAndSwapPair,
    Modify(Modify, Option<u8>),
    /// Structures and lanes of vectors, memory tags.
    OtherLoad,
    OtherStore,
}

/// What an atomic operation makes of the old value and its operand.
enum Modify {
    Swap,
    Add,
    Clear,
    Set,
    Flip,
    Other,
}

/// None if the instruction does not touch memory.
fn access(opcode: O) -> Option<Access> {
    let plain = |size| Access::Store { size, locked: false };
    let release = |size| Access::Store { size, locked: true };
    Some(match opcode {
        O::LDR | O::LDUR | O::LDTR | O::LDAR | O::LDLAR | O::LDAPR | O::LDAPUR | O::LDXR | O::LDAXR => {
            Access::Load(None)
        }
        O::LDRAA | O::LDRAB => Access::Load(None),
        O::LDRB | O::LDURB | O::LDTRB | O::LDARB | O::LDLARB | O::LDAPRB | O::LDAPURB => Access::Load(Some(1)),
        O::LDXRB | O::LDAXRB | O::LDRSB | O::LDURSB | O::LDTRSB | O::LDAPURSB => Access::Load(Some(1)),
        O::LDRH | O::LDURH | O::LDTRH | O::LDARH | O::LDLARH | O::LDAPRH | O::LDAPURH => Access::Load(Some(2)),
        O::LDXRH | O::LDAXRH | O::LDRSH | O::LDURSH | O::LDTRSH | O::LDAPURSH => Access::Load(Some(2)),
        O::LDRSW | O::LDURSW | O::LDTRSW | O::LDAPURSW => Access::Load(Some(4)),
        O::LDP | O::LDNP | O::LDXP | O::LDAXP => Access::LoadPair(None),
        O::LDPSW => Access::LoadPair(Some(4)),
        O::STR | O::STUR | O::STTR => plain(None),
        O::STRB | O::STURB | O::STTRB => plain(Some(1)),
        O::STRH | O::STURH | O::STTRH => plain(Some(2)),
        O::STLR | O::STLLR | O::STLUR => release(None),
        O::STLRB | O::STLLRB | O::STLURB => release(Some(1)),
        O::STLRH | O::STLLRH | O::STLURH => release(Some(2)),
        O::STP | O::STNP => Access::StorePair,
        O::STXR | O::STLXR => Access::Exclusive { size: None, count: 1 },
        O::STXRB | O::STLXRB => Access::Exclusive { size: Some(1), count: 1 },
        O::STXRH | O::STLXRH => Access::Exclusive { size: Some(2), count: 1 },
        O::STXP | O::STLXP => Access::Exclusive { size: None, count: 2 },
        O::CAS(_) => Access::CompareAndSwap(None),
        O::CASB(_) => Access::CompareAndSwap(Some(1)),
        O::CASH(_) => Access::CompareAndSwap(Some(2)),
        O::CASP(_) => Access::CompareAndSwapPair,
        O::SWP(_) => Access::Modify(Modify::Swap, None),
        O::SWPB(_) => Access::Modify(Modify::Swap, Some(1)),
        O::SWPH(_) => Access::Modify(Modify::Swap, Some(2)),
        O::LDADD(_) => Access::Modify(Modify::Add, None),
        O::LDADDB(_) => Access::Modify(Modify::Add, Some(1)),
        O::LDADDH(_) => Access::Modify(Modify::Add, Some(2)),
        O::LDCLR(_) => Access::Modify(Modify::Clear, None),
        O::LDCLRB(_) => Access::Modify(Modify::Clear, Some(1)),
        O::LDCLRH(_) => Access::Modify(Modify::Clear, Some(2)),
        O::LDSET(_) => Access::Modify(Modify::Set, None),
        O::LDSETB(_) => Access::Modify(Modify::Set, Some(1)),
        O::LDSETH(_) => Access::Modify(Modify::Set, Some(2)),
        O::LDEOR(_) => Access::Modify(Modify::Flip, None),
        O::LDEORB(_) => Access::Modify(Modify::Flip, Some(1)),
        O::LDEORH(_) => Access::Modify(Modify::Flip, Some(2)),
        O::LDSMAX(_) | O::LDSMIN(_) | O::LDUMAX(_) | O::LDUMIN(_) => Access::Modify(Modify::Other, None),
        O::LDSMAXB(_) | O::LDSMINB(_) | O::LDUMAXB(_) | O::LDUMINB(_) => Access::Modify(Modify::Other, Some(1)),
        O::LDSMAXH(_) | O::LDSMINH(_) | O::LDUMAXH(_) | O::LDUMINH(_) => Access::Modify(Modify::Other, Some(2)),
        O::LD1 | O::LD2 | O::LD3 | O::LD4 | O::LD1R | O::LD2R | O::LD3R | O::LD4R | O::LDG | O::LDGM => {
            Access::OtherLoad
        }
        O::ST1 | O::ST2 | O::ST3 | O::ST4 => Access::OtherStore,
        O::STG | O::STZG | O::ST2G | O::STZ2G | O::STGM | O::STZGM => Access::OtherStore,
        _ => return None,
    })
}

/// True for an instruction that reads and writes memory in one.
pub(super) fn is_atomic(opcode: O) -> bool {
    matches!(access(opcode), Some(Access::CompareAndSwap(_) | Access::CompareAndSwapPair | Access::Modify(..)))
}

impl<I: InstructionSet<Instruction = Instruction>> Engine<'_, I> {
    /// Does what the instruction does to memory and to the registers it loads; false if it does not touch memory.
    pub(super) fn access(&mut self, p: &mut Path, i: &Instruction) -> bool {
        let Some(access) = access(i.opcode) else { return false };
        let [first, second, third, _] = &i.operands;
        let Some(place) = i.operands.iter().find_map(|o| place(p, o)) else { return false };
        let at = p.pc;
        let addr = place.addr;
        // Before what is loaded is put in its place: base and destination may be one register.
        if let Some((base, after)) = place.base_after {
            p.registers[base] = after;
        }
        match access {
            Access::Load(bytes) => {
                let value = self.load(p, &addr, bytes.unwrap_or(size(first)));
                write(p, first, value);
            }
            Access::LoadPair(bytes) => {
                let bytes = bytes.unwrap_or(size(first));
                let (one, two) = (self.load(p, &addr, bytes), self.load(p, &addr.plus(bytes.into(), at), bytes));
                write(p, first, one);
                write(p, second, two);
            }
            Access::Store { size: bytes, locked } => {
                let value = read(p, first);
                self.store(p, &addr, bytes.unwrap_or(size(first)), value, locked);
            }
            Access::StorePair => {
                let (one, two, bytes) = (read(p, first), read(p, second), size(first));
                self.store(p, &addr, bytes, one, false);
                self.store(p, &addr.plus(bytes.into(), at), bytes, two, false);
            }
            Access::Exclusive { size: bytes, count } => {
                let mut addr = addr;
                for o in [second, third].into_iter().take(count) {
                    let (value, bytes) = (read(p, o), bytes.unwrap_or(size(o)));
                    self.store(p, &addr, bytes, value, true);
                    addr = addr.plus(bytes.into(), at);
                }
                let failed = p.unknown();
                write(p, first, failed);
            }
            Access::CompareAndSwap(bytes) => {
                let bytes = bytes.unwrap_or(size(first));
                let (expected, new) = (read(p, first), read(p, second));
                let old = self.load(p, &addr, bytes);
                self.compare_without_flags(p, bytes, &old, &expected);
                self.store(p, &addr, bytes, new, true);
                write(p, first, old);
            }
            Access::CompareAndSwapPair => {
                let bytes = size(first) * 2;
                self.load(p, &addr, bytes);
                let new = p.unknown();
                self.store(p, &addr, bytes, new, true);
                if let Operand::RegisterPair(_, n) = *first {
                    p.forget(usize::from(n & 31));
                    p.forget(usize::from((n + 1) & 31));
                }
            }
            Access::Modify(how, bytes) => {
                let bytes = bytes.unwrap_or(size(first));
                let operand = read(p, first);
                let old = self.load(p, &addr, bytes);
                let new = match how {
                    Modify::Swap => operand,
                    Modify::Add => cut(old.add(&signed(&operand, bytes), at), bytes),
                    Modify::Clear => old.and(&inverted(&operand, bytes, at), at),
                    Modify::Set => old.or(&operand, at),
                    Modify::Flip => old.xor(&operand, at),
                    Modify::Other => p.unknown(),
                };
                self.store(p, &addr, bytes, new, true);
                write(p, second, old);
            }
            Access::OtherLoad => {
                self.load(p, &addr, contiguous(i));
                forget(p, first);
            }
            Access::OtherStore => {
                let value = p.unknown();
                self.store(p, &addr, contiguous(i), value, false);
            }
        }
        true
    }

    /// The comparison inside an atomic instruction, which leaves the flags alone.
    fn compare_without_flags(&mut self, p: &mut Path, size: u8, left: &Expr, right: &Expr) {
        let flags = p.flags.take();
        self.compare(p, size, left.clone(), right.clone(), false);
        p.flags = flags;
    }
}

/// Address of a memory operand, and what becomes of its base register.
struct MemoryOperand {
    addr: Expr,
    base_after: Option<(usize, Expr)>,
}

fn place(p: &Path, o: &Operand) -> Option<MemoryOperand> {
    let at = p.pc;
    let register = |n: u16| (usize::from(n & 31), general(p, SizeCode::X, n));
    Some(match *o {
        Operand::RegPreIndex(base, offset, written) => {
            let (n, base) = register(base);
            let addr = base.plus(offset.into(), at);
            MemoryOperand { base_after: written.then(|| (n, addr.clone())), addr }
        }
        Operand::RegPostIndex(base, offset) => {
            let (n, addr) = register(base);
            MemoryOperand { base_after: Some((n, addr.plus(offset.into(), at))), addr }
        }
        Operand::RegPostIndexReg(base, by) => {
            let (n, addr) = register(base);
            let by = read(p, &Operand::Register(SizeCode::X, by));
            MemoryOperand { base_after: Some((n, addr.add(&by, at))), addr }
        }
        Operand::RegRegOffset(base, index, width, style, amount) => {
            let index = read(p, &Operand::Register(width, index));
            let index = shifted(&index, style, amount, 8, p);
            MemoryOperand { addr: register(base).1.add(&index, at), base_after: None }
        }
        Operand::PCOffset(offset) => {
            MemoryOperand { addr: Expr::constant(at.wrapping_add_signed(offset)), base_after: None }
        }
        _ => return None,
    })
}

/// Bytes of a load or store of whole vectors one after the other; 0 where they are taken apart.
fn contiguous(i: &Instruction) -> u8 {
    match (i.opcode, &i.operands[0]) {
        (O::LD1 | O::ST1, Operand::SIMDRegisterGroup(width, _, _, count)) => {
            vector_bytes(*width).checked_mul(*count).unwrap_or(0)
        }
        _ => 0,
    }
}

/// What `OtherLoad` instructions load is not followed.
fn forget(p: &mut Path, o: &Operand) {
    match *o {
        Operand::SIMDRegisterGroup(_, n, _, count) | Operand::SIMDRegisterGroupLane(n, _, count, _) => {
            for n in (n..).take(count.into()) {
                p.forget_vector(usize::from(n & 31));
            }
        }
        Operand::Register(_, n) | Operand::RegisterOrSP(_, n) if n != 31 => p.forget(usize::from(n & 31)),
        _ => {}
    }
}
