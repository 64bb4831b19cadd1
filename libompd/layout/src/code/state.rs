//! State of one path of execution: registers, stack, the way it came.

use std::ops::Range;

use super::expr::{Expr, Kind, NO_REGISTER, Op};

/// General and vector registers of a path; no instruction set has more of either.
pub(super) const REGISTERS: usize = 32;
/// Numbers of vector registers in unknown values start here, above those of the general ones.
const VECTORS: u8 = 0x40;

/// What calls do to registers, as the platform's ABI has it. Registers go by their number in the encoding.
pub(super) struct Convention {
    /// The stack pointer.
    pub(super) stack: usize,
    /// Where an integer result is returned.
    pub(super) result: usize,
    /// Integer arguments, first to last.
    pub(super) arguments: &'static [usize],
    /// What a callee may change. It may change all vector registers.
    pub(super) volatile: &'static [usize],
    /// Bytes of return address that a call leaves on the stack.
    pub(super) pushed: u8,
}

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
    pub(super) registers: [Expr; REGISTERS],
    vectors: Vectors,
    pub(super) flags: Option<(Expr, Expr)>,
    /// Stack contents by realignment and offset.
    pub(super) stack: Sorted<(u8, i64), (u8, Expr)>,
    /// Lowest stack address whose value was handed out: callees may write from there on.
    pub(super) escaped: Option<(u8, i64)>,
    visits: Sorted<u64, u8>,
    pub(super) trace: Vec<u32>,
}

/// A map of few entries, in the order of their keys. Paths are copied at every branch: that is one allocation at most.
#[derive(Clone)]
pub(super) struct Sorted<K, V>(Vec<(K, V)>);

impl<K: Ord + Copy, V> Sorted<K, V> {
    const fn new() -> Self {
        Sorted(Vec::new())
    }

    fn place(&self, key: K) -> Result<usize, usize> {
        self.0.binary_search_by(|(known, _)| known.cmp(&key))
    }

    fn get(&self, key: K) -> Option<&V> {
        self.place(key).ok().and_then(|at| self.0.get(at)).map(|(_, value)| value)
    }

    /// The last entry whose key is not above this one.
    fn last_up_to(&self, key: K) -> Option<&(K, V)> {
        let end = self.place(key).map_or_else(|end| end, |at| at + 1);
        self.0[..end].last()
    }

    fn insert(&mut self, key: K, value: V) {
        match self.place(key) {
            Ok(at) => self.0[at].1 = value,
            Err(at) => self.0.insert(at, (key, value)),
        }
    }

    /// Removes those for which this is false.
    pub(super) fn retain(&mut self, mut keep: impl FnMut(K, &V) -> bool) {
        self.0.retain(|(key, value)| keep(*key, value));
    }
}

/// Vector registers. Code that is looked at uses one or two, and paths are copied at every branch.
#[derive(Clone)]
struct Vectors {
    known: Sorted<u8, Expr>,
    /// Where the others became unknown.
    unknown_since: u64,
}

impl Path {
    pub(super) fn new(entry: u64, function: Option<Range<u64>>, convention: &Convention) -> Path {
        let mut registers = std::array::from_fn(|n| Expr::unknown(entry, n as u8));
        for (n, &register) in convention.arguments.iter().enumerate() {
            registers[register] = Expr::leaf(Kind::Arg(n as u8));
        }
        registers[convention.stack] = Expr::leaf(Kind::Stack(0));
        Path {
            pc: entry,
            function,
            callers: Vec::new(),
            depth: 0,
            registers,
            vectors: Vectors { known: Sorted::new(), unknown_since: entry },
            flags: None,
            stack: Sorted::new(),
            escaped: None,
            visits: Sorted::new(),
            trace: Vec::new(),
        }
    }

    /// True once more if the branch at the current instruction may be taken again.
    pub(super) fn may_visit(&mut self, limit: u8) -> bool {
        let count = self.visits.get(self.pc).map_or(1, |count| count.saturating_add(1));
        self.visits.insert(self.pc, count);
        count <= limit
    }

    /// A value born here of which nothing is known.
    pub(super) fn unknown(&self) -> Expr {
        Expr::unknown(self.pc, NO_REGISTER)
    }

    /// The value of a register becomes unknown.
    pub(super) fn forget(&mut self, register: usize) {
        self.registers[register] = Expr::unknown(self.pc, register as u8);
    }

    /// The value of a vector register.
    pub(super) fn vector(&self, register: usize) -> Expr {
        let unknown = || Expr::unknown(self.vectors.unknown_since, VECTORS + register as u8);
        self.vectors.known.get(register as u8).cloned().unwrap_or_else(unknown)
    }

    /// Sets a vector register.
    pub(super) fn set_vector(&mut self, register: usize, value: Expr) {
        self.vectors.known.insert(register as u8, value);
    }

    /// The value of a vector register becomes unknown.
    pub(super) fn forget_vector(&mut self, register: usize) {
        self.set_vector(register, Expr::unknown(self.pc, VECTORS + register as u8));
    }

    /// The values of all vector registers become unknown.
    pub(super) fn forget_vectors(&mut self) {
        self.vectors = Vectors { known: Sorted::new(), unknown_since: self.pc };
    }
}

pub(super) fn stack_slot(addr: &Expr) -> Option<(u8, i64)> {
    let (base, offset) = match addr.kind() {
        Kind::Sum { base, offset } => (base, *offset),
        _ => (addr, 0),
    };
    if let Kind::Stack(n) = *base.kind() { Some((n, offset)) } else { None }
}

pub(super) fn stack_read(p: &Path, slot: (u8, i64), size: u8) -> Expr {
    let unknown = || p.unknown();
    // The youngest slot at or below the address.
    let Some(((base, start), (stored, value))) = p.stack.last_up_to(slot) else { return unknown() };
    let Ok(skip) = u8::try_from(slot.1 - start) else { return unknown() };
    if *base != slot.0 || skip.checked_add(size).is_none_or(|end| end > *stored) {
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

/// True if the code has written some of these bytes of the stack, and what it wrote is remembered.
pub(super) fn is_written(p: &Path, (base, start): (u8, i64), size: u8) -> bool {
    let last = start.saturating_add(i64::from(size.max(1)) - 1);
    let below = p.stack.last_up_to((base, last));
    below.is_some_and(|((of, at), (stored, _))| *of == base && at.saturating_add(i64::from(*stored)) > start)
}

pub(super) fn stack_write(p: &mut Path, slot: (u8, i64), size: u8, value: Expr) {
    // A size of 0 is a string instruction: anything above may be overwritten.
    let end = if size == 0 { i64::MAX } else { slot.1.saturating_add(i64::from(size)) };
    let (base, start) = slot;
    p.stack.retain(|(b, s), (stored, _)| b != base || s >= end || s.saturating_add(i64::from(*stored)) <= start);
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

/// The stack pointer after `and sp, sp, -64`: a new base below everything pushed so far.
pub(super) fn realigned(sp: &Expr) -> Expr {
    match stack_slot(sp) {
        Some((n, _)) => Expr::leaf(Kind::Stack(n.saturating_add(1))),
        None => sp.clone(),
    }
}

/// The low `size` bytes.
pub(super) fn mask(size: u8) -> u64 {
    if size >= 8 || size == 0 { u64::MAX } else { (1u64 << (u32::from(size) * 8)) - 1 }
}

/// The number in the low `size` bytes as a signed one.
pub(super) fn sign_extend(value: u64, size: u8) -> u64 {
    let unused = 64 - u32::from(size.clamp(1, 8)) * 8;
    (((value << unused) as i64) >> unused) as u64
}

/// A number as the signed immediate it is to sums; anything else unchanged.
pub(super) fn signed(value: &Expr, size: u8) -> Expr {
    value.as_const().map_or_else(|| value.clone(), |v| Expr::constant(sign_extend(v, size)))
}

/// Numbers cut to the width of the operation that computed them; anything else unchanged.
pub(super) fn cut(value: Expr, size: u8) -> Expr {
    value.as_const().map_or(value, |number| Expr::constant(number & mask(size)))
}

pub(super) fn masked(value: &Expr, size: u8, at: u64) -> Expr {
    match value.as_const() {
        Some(number) => Expr::constant(number & mask(size)),
        None if size >= 8 || value.fits(size) => value.clone(),
        None => Expr::op(Op::And, value, &Expr::constant(mask(size)), at),
    }
}
