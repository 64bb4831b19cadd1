//! State of one path of x86-64 execution: registers, stack, the way it came.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use iced_x86::Register as R;

use super::expr::{Expr, Kind, Op};

/// General registers by their number in the encoding.
pub(super) const RAX: usize = 0;
pub(super) const RSP: usize = 4;
pub(super) const RBP: usize = 5;
/// Integer argument registers of the System V ABI: rdi, rsi, rdx, rcx, r8, r9.
pub(super) const ARGUMENTS: [usize; 6] = [7, 6, 2, 1, 8, 9];

/// One caller waiting for an inlined function.
#[derive(Clone)]
pub(super) struct Frame {
    pub(super) return_to: u64,
    pub(super) depth: u8,
    pub(super) function: Option<Range<u64>>,
}

/// One way through the function.
#[derive(Clone)]
pub(super) struct Path {
    pub(super) pc: u64,
    pub(super) function: Option<Range<u64>>,
    pub(super) callers: Vec<Frame>,
    /// Functions followed by call or tail jump so far on the way down.
    pub(super) depth: u8,
    pub(super) registers: [Expr; 16],
    pub(super) vectors: [Expr; 16],
    pub(super) flags: Option<(Expr, Expr)>,
    /// Stack contents by realignment and offset.
    pub(super) stack: BTreeMap<(u8, i64), (u8, Expr)>,
    /// Lowest stack address whose value was handed out: callees may write from there on.
    pub(super) escaped: Option<(u8, i64)>,
    visits: HashMap<u64, u8>,
    pub(super) trace: Vec<u32>,
}

impl Path {
    pub(super) fn new(entry: u64, function: Option<Range<u64>>) -> Path {
        let mut registers = std::array::from_fn(|n| Expr::unknown(entry, n as u8));
        for (n, &register) in ARGUMENTS.iter().enumerate() {
            registers[register] = Expr::leaf(Kind::Arg(n as u8));
        }
        registers[RSP] = Expr::leaf(Kind::Stack(0));
        Path {
            pc: entry,
            function,
            callers: Vec::new(),
            depth: 0,
            registers,
            vectors: std::array::from_fn(|n| Expr::unknown(entry, 17 + n as u8)),
            flags: None,
            stack: BTreeMap::new(),
            escaped: None,
            visits: HashMap::new(),
            trace: Vec::new(),
        }
    }

    /// True once more if the branch at the current instruction may be taken again.
    pub(super) fn may_visit(&mut self, limit: u8) -> bool {
        let count = self.visits.entry(self.pc).or_insert(0);
        *count = count.saturating_add(1);
        *count <= limit
    }
}

pub(super) fn register(p: &Path, r: R) -> Expr {
    let full = r.full_register();
    if matches!(r, R::AH | R::BH | R::CH | R::DH) {
        return Expr::unknown(p.pc, full.number() as u8);
    }
    if full.is_gpr64() {
        p.registers[full.number()].clone()
    } else if full.is_vector_register() && full.number() < 16 {
        p.vectors[full.number()].clone()
    } else {
        Expr::unknown(p.pc, 16)
    }
}

pub(super) fn stack_slot(addr: &Expr) -> Option<(u8, i64)> {
    let (base, offset) = addr.split();
    if let Kind::Stack(n) = *base.kind() { Some((n, offset)) } else { None }
}

pub(super) fn stack_read(p: &Path, slot: (u8, i64), size: u8) -> Expr {
    let unknown = || Expr::unknown(p.pc, 16);
    // The youngest slot at or below the address.
    let Some((&(base, start), (stored, value))) = p.stack.range(..=slot).next_back() else { return unknown() };
    let Ok(skip) = u8::try_from(slot.1 - start) else { return unknown() };
    if base != slot.0 || skip.checked_add(size).is_none_or(|end| end > *stored) {
        return unknown();
    }
    match value.kind() {
        _ if skip == 0 && size == *stored => value.clone(),
        // Halves of what was copied 16 bytes at a time.
        Kind::Load { addr, .. } => Expr::load(size, &addr.plus(i64::from(skip), p.pc), p.pc),
        Kind::Const(0) => value.clone(),
        _ if skip == 0 && *stored <= 8 => masked(value, size, p.pc),
        _ => unknown(),
    }
}

pub(super) fn stack_write(p: &mut Path, slot: (u8, i64), size: u8, value: Expr) {
    // A size of 0 is a string instruction: anything above may be overwritten.
    let end = if size == 0 { i64::MAX } else { slot.1.saturating_add(i64::from(size)) };
    let (base, start) = slot;
    p.stack.retain(|&(b, s), (stored, _)| b != base || s >= end || s.saturating_add(i64::from(*stored)) <= start);
    if size != 0 {
        p.stack.insert(slot, (size, value));
    }
}

/// Notes that others may now write through a pointer into the stack.
pub(super) fn escape(p: &mut Path, value: &Expr) {
    if let Some(slot) = stack_slot(value) {
        p.escaped = Some(p.escaped.map_or(slot, |old| old.min(slot)));
    }
}

/// `and rsp, -64`: a new base below everything pushed so far.
pub(super) fn realigned(sp: &Expr) -> Expr {
    match stack_slot(sp) {
        Some((n, _)) => Expr::leaf(Kind::Stack(n.saturating_add(1))),
        None => sp.clone(),
    }
}

pub(super) fn mask(size: u8) -> u64 {
    if size >= 8 || size == 0 { u64::MAX } else { (1u64 << (u32::from(size) * 8)) - 1 }
}

pub(super) fn masked(value: &Expr, size: u8, at: u64) -> Expr {
    match value.as_const() {
        Some(number) => Expr::constant(number & mask(size)),
        None if size >= 8 || value.fits(size) => value.clone(),
        None => Expr::op(Op::And, value, &Expr::constant(mask(size)), at),
    }
}
