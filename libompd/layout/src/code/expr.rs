//! Expressions over a function's inputs.

use std::cell::RefCell;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::rc::Rc;
use std::sync::Arc;

use rustc_hash::FxHasher;

/// The register number of unknown values that were not born in a register.
pub(super) const NO_REGISTER: u8 = 0xff;

/// Nodes of one expression, counted as a tree; what grows beyond is unknown. Layout expressions have a dozen.
const MAX_NODES: u32 = 160;

/// Nodes that are kept for the case that the same is made again: a power of two. All of them are a few hundred kilobytes.
const KEPT: usize = 4096;

thread_local! {
    /// What was made last, each in the place that its hash gives. The paths through a function compute the same again and again, and
    /// what is the same node needs no memory and no comparison.
    static MADE: RefCell<Vec<Option<Rc<Node>>>> = const { RefCell::new(Vec::new()) };
}

/// A value as the function computes it. Cheap to clone; compared by structure.
#[derive(Clone)]
pub struct Expr(Rc<Node>);

struct Node {
    kind: Kind,
    nodes: u32,
    /// Hash of `kind`, computed once: every event seen is looked up by its expressions.
    hash: u64,
}

impl PartialEq for Expr {
    fn eq(&self, other: &Expr) -> bool {
        Rc::ptr_eq(&self.0, &other.0) || (self.0.hash == other.0.hash && self.0.kind == other.0.kind)
    }
}

impl Eq for Expr {}

impl Hash for Expr {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.0.hash);
    }
}

/// What a value is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A number, or an address of the file: in position-independent code the two look the same.
    Const(u64),
    /// Integer or pointer argument, counted from 0.
    Arg(u8),
    /// The thread pointer (`%fs:0`, `tpidr_el0`).
    ThreadPointer,
    /// The stack pointer at entry (0), or after the n-th realignment.
    Stack(u8),
    /// `size` bytes of memory at `addr`, zero-extended.
    Load {
        /// Bytes read.
        size: u8,
        /// Where.
        addr: Expr,
    },
    /// `base + offset`. The base is never itself a sum or a constant.
    Sum {
        /// The variable part.
        base: Expr,
        /// The constant part, never 0.
        offset: i64,
    },
    /// `base + index * scale`, the scale from whatever shifts and multiplications computed it.
    Index {
        /// The array.
        base: Expr,
        /// The subscript.
        index: Expr,
        /// Bytes per element.
        scale: u64,
    },
    /// Any other operation.
    Op {
        /// Which.
        op: Op,
        /// First operand.
        left: Expr,
        /// Second operand; the constant 0 for operations of one.
        right: Expr,
    },
    /// What a call returned.
    CallResult {
        /// The function called.
        callee: Callee,
        /// Address of the call instruction: two calls are two values.
        at: u64,
    },
    /// Offset of a thread-local variable from the thread pointer, as the loader left it in the GOT.
    TlsOffset(TlsSlot),
    /// Address of a thread-local variable of the calling thread.
    Tls(TlsSlot),
    /// Address of a symbol of another image.
    Symbol(Arc<str>),
    /// A value the engine does not follow, born at instruction `at` in register `register`.
    Unknown {
        /// Address of the instruction.
        at: u64,
        /// Number of the register it was written to; vector registers count from 0x40, 0xff is none.
        register: u8,
    },
}

/// Operations that are kept but not computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Op {
    And,
    Or,
    Xor,
    Shl,
    Shr,
    Sar,
    Mul,
    Sub,
    Not,
    /// 1 or 0 by a comparison of the operands; which relation is not kept.
    Set,
}

/// The function called.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Callee {
    /// By name, through the PLT or the GOT.
    Named(Arc<str>),
    /// A function of this image, by its address in the file.
    Internal(u64),
    /// Through a pointer.
    Pointer(Expr),
}

impl Callee {
    /// True for the function `name`.
    pub fn is(&self, name: &str) -> bool {
        matches!(self, Callee::Named(n) if **n == *name)
    }
}

/// How code reaches a thread-local variable: the GOT entry at an address of the file, and the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TlsSlot {
    /// The entry holds the offset from the thread pointer (initial exec; `R_X86_64_TPOFF64`,
    /// `R_AARCH64_TLS_TPREL64`).
    Offset(u64),
    /// The entry holds the module number, the next one the offset in the module's block (`R_X86_64_DTPMOD64`,
    /// `R_AARCH64_TLS_DTPMOD64`).
    Module(u64),
    /// The entry is a TLS descriptor (`R_X86_64_TLSDESC`, `R_AARCH64_TLSDESC`).
    Descriptor(u64),
}

impl TlsSlot {
    /// Address of the GOT entry in the file.
    pub fn address(self) -> u64 {
        match self {
            TlsSlot::Offset(a) | TlsSlot::Module(a) | TlsSlot::Descriptor(a) => a,
        }
    }
}

/// An array access taken apart: `base + index * scale + offset`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Indexed {
    /// The array's address; the constant 0 if it is part of `offset`.
    pub base: Expr,
    /// The subscript.
    pub index: Expr,
    /// Bytes per element.
    pub scale: u64,
    /// Bytes into the element, plus the array's address where that is a constant.
    pub offset: i64,
}

/// One dereference: `offset` bytes on from the last pointer, `size` bytes are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// Bytes added before reading.
    pub offset: i64,
    /// Bytes read.
    pub size: u8,
}

/// A value reached by following pointers from `root`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chain {
    /// Where it starts: an argument, a thread-local variable, an array element ... For globals the constant 0, the
    /// first offset being the address.
    pub root: Expr,
    /// The dereferences, first to last; never empty.
    pub steps: Vec<Step>,
}

impl Chain {
    /// The offsets if the steps read exactly `sizes` bytes each.
    pub fn offsets<const N: usize>(&self, sizes: [u8; N]) -> Option<[i64; N]> {
        let read: Vec<u8> = self.steps.iter().map(|s| s.size).collect();
        if read != sizes {
            return None;
        }
        let mut offsets = [0; N];
        for (out, step) in offsets.iter_mut().zip(&self.steps) {
            *out = step.offset;
        }
        Some(offsets)
    }
}

impl Expr {
    /// What the value is, for `match`.
    pub fn kind(&self) -> &Kind {
        &self.0.kind
    }

    /// The number, if it is one.
    pub fn as_const(&self) -> Option<u64> {
        if let Kind::Const(value) = *self.kind() { Some(value) } else { None }
    }

    /// The argument's index, if it is one unchanged.
    pub fn as_arg(&self) -> Option<u8> {
        if let Kind::Arg(n) = *self.kind() { Some(n) } else { None }
    }

    /// The address, if this is a load of `size` bytes.
    pub fn as_load(&self, size: u8) -> Option<&Expr> {
        match self.kind() {
            Kind::Load { size: s, addr } if *s == size => Some(addr),
            _ => None,
        }
    }

    /// The address, if this is a load of any size.
    pub fn as_any_load(&self) -> Option<&Expr> {
        if let Kind::Load { addr, .. } = self.kind() { Some(addr) } else { None }
    }

    /// The thread-local variable, if this is the address of one.
    pub fn as_tls(&self) -> Option<TlsSlot> {
        if let Kind::Tls(slot) = *self.kind() { Some(slot) } else { None }
    }

    /// The function whose result this is.
    pub fn as_call(&self) -> Option<&Callee> {
        if let Kind::CallResult { callee, .. } = self.kind() { Some(callee) } else { None }
    }

    /// Operands, if this is the operation `wanted`.
    pub fn as_op(&self, wanted: Op) -> Option<(&Expr, &Expr)> {
        match self.kind() {
            Kind::Op { op, left, right } if *op == wanted => Some((left, right)),
            _ => None,
        }
    }

    /// Variable and constant part. A number is `(0, number)`; what is no sum has offset 0.
    pub fn split(&self) -> (Expr, i64) {
        match self.kind() {
            Kind::Const(value) => (Expr::constant(0), *value as i64),
            Kind::Sum { base, offset } => (base.clone(), *offset),
            _ => (self.clone(), 0),
        }
    }

    /// `self - other`, if the two differ by a constant only.
    pub fn offset_from(&self, other: &Expr) -> Option<i64> {
        let ((a, m), (b, n)) = (self.split(), other.split());
        if a == b { Some(m.wrapping_sub(n)) } else { None }
    }

    /// For the address of a member of a struct reached through a pointer in memory: where the pointer lies, and the
    /// member's offset (`*(at) + offset`).
    pub fn as_member(&self) -> Option<(Expr, i64)> {
        let (base, offset) = self.split();
        base.as_load(8).map(|at| (at.clone(), offset))
    }

    /// For the address of an array element.
    pub fn as_indexed(&self) -> Option<Indexed> {
        let (base, offset) = self.split();
        match base.kind() {
            Kind::Index { base, index, scale } => {
                Some(Indexed { base: base.clone(), index: index.clone(), scale: *scale, offset })
            }
            Kind::Op { op: Op::Mul, left, right } => {
                Some(Indexed { base: Expr::constant(0), index: left.clone(), scale: right.as_const()?, offset })
            }
            _ => None,
        }
    }

    /// For a value read from memory: the pointers followed to it, outermost last.
    pub fn chain(&self) -> Option<Chain> {
        let mut steps = Vec::new();
        let mut at = self.clone();
        while let Kind::Load { size, addr } = at.kind() {
            let (root, offset) = addr.split();
            steps.push(Step { offset, size: *size });
            at = root;
        }
        if steps.is_empty() {
            return None;
        }
        steps.reverse();
        Some(Chain { root: at, steps })
    }

    /// True if `part` occurs in the expression (or is it).
    pub fn contains(&self, part: &Expr) -> bool {
        self.any(&|other| other == part)
    }

    /// True if something holds of the expression or of a part of it.
    pub fn any(&self, holds: &dyn Fn(&Expr) -> bool) -> bool {
        holds(self)
            || match self.kind() {
                Kind::Load { addr, .. } => addr.any(holds),
                Kind::Sum { base, .. } => base.any(holds),
                Kind::Index { base, index, .. } => base.any(holds) || index.any(holds),
                Kind::Op { left, right, .. } => left.any(holds) || right.any(holds),
                Kind::CallResult { callee: Callee::Pointer(p), .. } => p.any(holds),
                _ => false,
            }
    }

    /// A number.
    pub fn constant(value: u64) -> Expr {
        Expr::leaf(Kind::Const(value))
    }

    fn new(kind: Kind, nodes: u32) -> Expr {
        let mut hasher = FxHasher::default();
        kind.hash(&mut hasher);
        let hash = hasher.finish();
        MADE.with_borrow_mut(|made| {
            if made.is_empty() {
                made.resize(KEPT, None);
            }
            let place = &mut made[hash as usize % KEPT];
            if let Some(node) = place.as_ref().filter(|node| node.hash == hash && node.kind == kind) {
                return Expr(Rc::clone(node));
            }
            let node = Rc::new(Node { kind, nodes, hash });
            *place = Some(Rc::clone(&node));
            Expr(node)
        })
    }

    pub(super) fn leaf(kind: Kind) -> Expr {
        Expr::new(kind, 1)
    }

    pub(super) fn unknown(at: u64, register: u8) -> Expr {
        Expr::leaf(Kind::Unknown { at, register })
    }

    /// A compound; `born` names the unknown it becomes if it grew too large.
    fn tree(kind: Kind, parts: &[&Expr], born: u64) -> Expr {
        let nodes = parts.iter().fold(1u32, |n, p| n.saturating_add(p.0.nodes));
        if nodes > MAX_NODES { Expr::unknown(born, NO_REGISTER) } else { Expr::new(kind, nodes) }
    }

    pub(super) fn load(size: u8, addr: &Expr, at: u64) -> Expr {
        Expr::tree(Kind::Load { size, addr: addr.clone() }, &[addr], at)
    }

    pub(super) fn call_result(callee: Callee, at: u64) -> Expr {
        match &callee {
            Callee::Pointer(p) => {
                let p = p.clone();
                Expr::tree(Kind::CallResult { callee, at }, &[&p], at)
            }
            _ => Expr::leaf(Kind::CallResult { callee, at }),
        }
    }

    pub(super) fn plus(&self, offset: i64, at: u64) -> Expr {
        if offset == 0 {
            return self.clone();
        }
        match self.kind() {
            Kind::Const(value) => Expr::constant(value.wrapping_add(offset as u64)),
            Kind::Sum { base, offset: first } => base.plus(first.wrapping_add(offset), at),
            _ => Expr::tree(Kind::Sum { base: self.clone(), offset }, &[self], at),
        }
    }

    pub(super) fn add(&self, other: &Expr, at: u64) -> Expr {
        // Most sums: a register and a displacement.
        if let Some(value) = other.as_const() {
            return self.plus(value as i64, at);
        }
        if let Some(value) = self.as_const() {
            return other.plus(value as i64, at);
        }
        let ((a, m), (b, n)) = (self.split(), other.split());
        let offset = m.wrapping_add(n);
        match (a.kind(), b.kind()) {
            (Kind::ThreadPointer, Kind::TlsOffset(slot)) | (Kind::TlsOffset(slot), Kind::ThreadPointer) => {
                return Expr::leaf(Kind::Tls(*slot)).plus(offset, at);
            }
            _ => {}
        }
        let sum = match (a.scaled(), b.scaled()) {
            ((x, j), (y, k)) if x == y => x.times(j.wrapping_add(k), at),
            (_, (y, k)) if k != 1 => Expr::index(&a, &y, k, at),
            ((x, j), _) if j != 1 => Expr::index(&b, &x, j, at),
            _ => Expr::index(&a, &b, 1, at),
        };
        sum.plus(offset, at)
    }

    pub(super) fn sub(&self, other: &Expr, at: u64) -> Expr {
        if let Some(value) = other.as_const() {
            return self.plus((value as i64).wrapping_neg(), at);
        }
        match self.offset_from(other) {
            Some(difference) => Expr::constant(difference as u64),
            None => Expr::op(Op::Sub, self, other, at),
        }
    }

    pub(super) fn times(&self, factor: u64, at: u64) -> Expr {
        let (base, offset) = self.split();
        let offset = offset.wrapping_mul(factor as i64);
        let (base, first) = base.scaled();
        let product = match first.wrapping_mul(factor) {
            0 => return Expr::constant(offset as u64),
            _ if base.as_const() == Some(0) => return Expr::constant(offset as u64),
            1 => base,
            product => Expr::op(Op::Mul, &base, &Expr::constant(product), at),
        };
        product.plus(offset, at)
    }

    pub(super) fn op(op: Op, left: &Expr, right: &Expr, at: u64) -> Expr {
        Expr::tree(Kind::Op { op, left: left.clone(), right: right.clone() }, &[left, right], at)
    }

    fn index(base: &Expr, index: &Expr, scale: u64, at: u64) -> Expr {
        Expr::tree(Kind::Index { base: base.clone(), index: index.clone(), scale }, &[base, index], at)
    }

    /// `(x, k)` for `x * k`.
    fn scaled(&self) -> (Expr, u64) {
        match self.as_op(Op::Mul) {
            Some((x, k)) if k.as_const().is_some() => (x.clone(), k.as_const().unwrap_or(1)),
            _ => (self.clone(), 1),
        }
    }

    /// `self & other`. The field that a shift and a mask take out is brought to one form, the shift first. So a
    /// subscript that is taken out together with its scale is still recognised as a subscript.
    pub(super) fn and(&self, other: &Expr, at: u64) -> Expr {
        let (a, b) = self.constant_last(other);
        let Some(mask) = b.as_const() else {
            return if a == b { a.clone() } else { Expr::op(Op::And, a, b, at) };
        };
        if let Some(value) = a.as_const() {
            return Expr::constant(value & mask);
        }
        if mask == 0 {
            return Expr::constant(0);
        }
        if mask.checked_add(1).is_none_or(u64::is_power_of_two) && a.bits() <= mask.trailing_ones() {
            return a.clone();
        }
        let low = u64::from(mask.trailing_zeros());
        if low > 0
            && let Some((value, count)) = a.as_op(Op::Shr)
            && let Some(count) = count.as_const().and_then(|n| n.checked_add(low)).filter(|n| *n < 64)
        {
            let field = Expr::op(Op::Shr, value, &Expr::constant(count), at).and(&Expr::constant(mask >> low), at);
            return field.times(1 << low, at);
        }
        Expr::op(Op::And, a, b, at)
    }

    /// `self | other`.
    pub(super) fn or(&self, other: &Expr, at: u64) -> Expr {
        let (a, b) = self.constant_last(other);
        match (a.as_const(), b.as_const()) {
            (Some(x), Some(y)) => Expr::constant(x | y),
            (None, Some(0)) => a.clone(),
            _ if a == b => a.clone(),
            _ => Expr::op(Op::Or, a, b, at),
        }
    }

    /// `self ^ other`.
    pub(super) fn xor(&self, other: &Expr, at: u64) -> Expr {
        let (a, b) = self.constant_last(other);
        match (a.as_const(), b.as_const()) {
            (Some(x), Some(y)) => Expr::constant(x ^ y),
            (None, Some(0)) => a.clone(),
            _ if a == b => Expr::constant(0),
            _ => Expr::op(Op::Xor, a, b, at),
        }
    }

    fn constant_last<'e>(&'e self, other: &'e Expr) -> (&'e Expr, &'e Expr) {
        if self.as_const().is_some() { (other, self) } else { (self, other) }
    }

    /// Bits that may be set, counted up to the highest; all above are known to be zero.
    fn bits(&self) -> u32 {
        match self.kind() {
            Kind::Const(value) => u64::BITS - value.leading_zeros(),
            Kind::Load { size, .. } => u32::from(*size).saturating_mul(8).min(u64::BITS),
            Kind::Op { op: Op::Set, .. } => 1,
            Kind::Op { op: Op::And, left, right } => left.bits().min(right.bits()),
            Kind::Op { op: Op::Shr, left, right } => {
                let count = right.as_const().map_or(0, |n| u32::try_from(n).unwrap_or(0));
                left.bits().saturating_sub(count)
            }
            _ => u64::BITS,
        }
    }

    /// True if the upper bits beyond `bytes` bytes are known to be zero.
    pub(super) fn fits(&self, bytes: u8) -> bool {
        self.bits() <= u32::from(bytes).saturating_mul(8)
    }
}

impl fmt::Debug for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Callee {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Callee::Named(name) => f.write_str(&name.escape_debug().to_string()),
            Callee::Internal(at) => write!(f, "sub_{at:x}"),
            Callee::Pointer(at) => write!(f, "(*{at})"),
        }
    }
}

/// For reports and test failures: `[4 [8 tls(0x46f88)+0x10]]` is a 4-byte load through a pointer.
impl fmt::Display for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind() {
            Kind::Const(value) => write!(f, "{value:#x}"),
            Kind::Arg(n) => write!(f, "arg{n}"),
            Kind::ThreadPointer => f.write_str("tp"),
            Kind::Stack(n) => write!(f, "sp{n}"),
            Kind::Load { size, addr } => write!(f, "[{size} {addr}]"),
            Kind::Sum { base, offset } if *offset < 0 => write!(f, "{base}-{:#x}", offset.unsigned_abs()),
            Kind::Sum { base, offset } => write!(f, "{base}+{offset:#x}"),
            Kind::Index { base, index, scale } => write!(f, "({base}+{index}*{scale:#x})"),
            Kind::Op { op, left, right } => write!(f, "{op:?}({left}, {right})"),
            Kind::CallResult { callee, at } => write!(f, "{callee}@{at:x}"),
            Kind::TlsOffset(slot) => write!(f, "tpoff({:#x})", slot.address()),
            Kind::Tls(slot) => write!(f, "tls({:#x})", slot.address()),
            Kind::Symbol(name) => write!(f, "&{}", name.escape_debug()),
            Kind::Unknown { at, register } => write!(f, "?{at:x}.{register}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arg(n: u8) -> Expr {
        Expr::leaf(Kind::Arg(n))
    }

    #[test]
    fn sums_have_one_form() {
        let p = arg(0);
        assert_eq!(p.plus(8, 0).plus(-8, 0), p);
        assert_eq!(p.plus(8, 0).add(&Expr::constant(24), 0).split(), (p.clone(), 32));
        assert_eq!(p.plus(24, 0).offset_from(&p.plus(8, 0)), Some(16));
        assert_eq!(p.offset_from(&arg(1)), None);
        assert_eq!(p.plus(24, 0).sub(&p, 0).as_const(), Some(24));
        assert_eq!(Expr::constant(0x1000).plus(0x20, 0).split(), (Expr::constant(0), 0x1020));
        let tp = Expr::leaf(Kind::ThreadPointer);
        let slot = TlsSlot::Offset(0x4000);
        let variable = tp.plus(8, 0).add(&Expr::leaf(Kind::TlsOffset(slot)), 0);
        assert_eq!((variable.split().0.as_tls(), variable.split().1), (Some(slot), 8));
    }

    #[test]
    fn subscripts_are_recognised_however_they_are_computed() {
        let (array, i) = (arg(0), arg(1));
        // lea [i+i*2]; shl 3; add array+16
        let three = i.add(&i.times(2, 0), 0);
        let element = array.plus(16, 0).add(&three.times(8, 0), 0);
        let found = element.as_indexed().expect("an array element");
        assert_eq!(found, Indexed { base: array.clone(), index: i.clone(), scale: 24, offset: 16 });
        // array[i + 2] with 8-byte elements
        let found = array.add(&i.plus(2, 0).times(8, 0), 0).as_indexed().expect("an array element");
        assert_eq!(found, Indexed { base: array, index: i.clone(), scale: 8, offset: 16 });
        // A global array: its address is a number.
        let found = Expr::constant(0x4000).add(&i.times(4, 0), 0).as_indexed().expect("an array element");
        assert_eq!((found.base.as_const(), found.scale, found.offset), (Some(0), 4, 0x4000));
        assert_eq!(i.times(0, 0).as_const(), Some(0));
    }

    #[test]
    fn fields_of_words_have_one_form() {
        let word = Expr::load(4, &arg(0), 0);
        let shifted = |by: u64| Expr::op(Op::Shr, &word, &Expr::constant(by), 0);
        // (word >> 8) & 0xfffff8 is (word >> 11) * 8: the subscript of an array of pointers.
        let scaled = shifted(8).and(&Expr::constant(0xff_fff8), 0);
        assert_eq!(scaled, shifted(11).times(8, 0));
        assert_eq!(shifted(3).and(&Expr::constant(1), 0).to_string(), "And(Shr([4 arg0], 0x3), 0x1)");
        // Masks that take nothing away.
        assert_eq!(word.and(&Expr::constant(0xffff_ffff), 0), word);
        assert_eq!(Expr::constant(0xff).and(&word, 0).to_string(), "And([4 arg0], 0xff)");
        assert_eq!(word.and(&Expr::constant(u64::MAX), 0), word);
        assert_eq!(word.and(&Expr::constant(0), 0).as_const(), Some(0));
        assert_eq!((word.or(&Expr::constant(0), 0), word.xor(&word, 0).as_const()), (word, Some(0)));
    }

    #[test]
    fn chains_list_the_pointers_followed() {
        let team = Expr::load(8, &arg(0).plus(0x10, 0), 0);
        let level = Expr::load(4, &team.plus(0x20, 0), 0);
        let chain = level.chain().expect("comes from memory");
        assert_eq!((chain.root.as_arg(), chain.offsets([8, 4])), (Some(0), Some([0x10, 0x20])));
        assert_eq!(chain.offsets([8, 8]), None);
        assert_eq!(chain.offsets([4]), None);
        assert_eq!(arg(0).chain(), None);
        assert!(level.contains(&team) && !team.contains(&level));
        assert_eq!(level.to_string(), "[4 [8 arg0+0x10]+0x20]");
    }

    #[test]
    fn what_is_made_again_is_the_same_node() {
        let made = || Expr::load(8, &arg(0).plus(16, 1), 2);
        let (one, other) = (made(), made());
        assert!(Rc::ptr_eq(&one.0, &other.0));
        // Also if others have taken its place in between, it is equal.
        for n in 0..100_000 {
            arg(0).plus(n, 0);
        }
        let later = made();
        assert!(later == one && !Rc::ptr_eq(&later.0, &one.0));
    }

    #[test]
    fn expressions_stay_small() {
        let mut e = arg(0);
        for n in 0..10_000 {
            e = Expr::op(Op::Xor, &e, &e, n);
        }
        assert!(e.0.nodes <= MAX_NODES);
    }
}
