//! The walk through a function, the same for every instruction set: paths and forks, calls, stack, what is noted.

use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use ompd_process::Machine;

use super::expr::{Callee, Expr, Kind, Op, TlsSlot};
use super::flow::{EachTransfer, Flow, Jumps, MadeFrame, Poll, Step, Stub, Whose};
use super::image::{CodeImage, Slot};
use super::run::{Beyond, Call, Compare, Event, Limits, Load, Return, Run, Stop, StopReason, Store};
use super::state::{Convention, Frame, Path, escape, is_written, stack_read, stack_slot, stack_write};

/// Arguments of a call that are noted: as many as x86-64 passes in registers.
const ARGUMENTS: usize = 6;
/// Functions that do not return.
const NO_RETURN: [&str; 7] =
    ["abort", "exit", "_exit", "__stack_chk_fail", "__assert_fail", "__chk_fail", "_Unwind_Resume"];

/// What has to be told about the instructions of a machine.
pub(super) trait InstructionSet: Sized + 'static {
    /// The machine.
    const MACHINE: Machine;
    /// One decoded instruction.
    type Instruction: Copy;
    /// Bytes of the longest one.
    const LONGEST: usize;
    /// What calls do to registers.
    const CONVENTION: Convention;

    /// What is needed to execute them.
    fn new() -> Self;

    /// Decodes the first instruction of `bytes`, which lie at `at`.
    fn decode(bytes: &[u8], at: u64) -> Option<Self::Instruction>;

    /// Bytes of the instruction.
    fn length(instruction: &Self::Instruction) -> u64;

    /// Does to the path what the instruction does.
    fn step(engine: &mut Engine<'_, Self>, p: &mut Path, instruction: &Self::Instruction) -> Flow;

    /// Where the instruction, which lies at `at`, may go on other than behind itself.
    fn jumps(instruction: &Self::Instruction, at: u64) -> Jumps;

    /// False if the instruction does not put constants of at most 16 bytes at an address that may be one, too.
    fn may_store_constants(_instruction: &Self::Instruction) -> bool {
        true
    }

    /// Where the code at `at` jumps, if it is a linker's stub and nothing else.
    fn stub(image: &dyn CodeImage, at: u64) -> Option<Stub>;

    /// The frame that these first instructions of a function have made; `None` if that is not sure.
    fn made_frame(_code: &[u8]) -> Option<MadeFrame> {
        None
    }

    /// Passes to `each`, in order, every instruction in `bytes` that may continue elsewhere than at the next one. Bytes
    /// that are no instruction are passed as `None`. The first byte lies at `start`.
    fn transfers(bytes: &[u8], start: u64, each: EachTransfer<'_>);

    /// See [`super::table_targets`]; `code` is the whole of the function, and lies at `start`.
    fn table_targets(
        _image: &dyn CodeImage,
        _code: &[u8],
        _start: u64,
        _whose: &dyn Fn(u64) -> Whose,
    ) -> Option<BTreeSet<u64>> {
        None
    }

    /// Where a loop that does nothing but wait may go on behind the instruction, which lies at `at`, and whether by a jump.
    /// None where such a loop does not go on.
    fn next_steps(instruction: &Self::Instruction, at: u64) -> [Option<(u64, bool)>; 2];

    /// What a way once around a loop looks at; `general` are registers by their DWARF numbers. See `super::poll`.
    fn polled(way: &[Step<Self::Instruction>], general: &[u64]) -> Option<Poll>;

    /// The DWARF number of a general register by its number in a path.
    fn dwarf_register(register: u8) -> Option<u16>;
}

/// Runs the function at `entry`; `isa` is what the instruction set needs of its own.
pub(super) fn execute<I: InstructionSet>(isa: I, image: &dyn CodeImage, entry: u64, limits: &Limits) -> Run {
    let mut engine = Engine {
        isa,
        image,
        limits,
        run: Run::new(entry),
        waiting: vec![Path::new(entry, image.function(entry), &I::CONVENTION)],
        forks: true,
        decoded: FxHashMap::default(),
        callees: FxHashMap::default(),
        forgotten: FxHashMap::default(),
        no_return: no_return(image),
    };
    while let Some(path) = engine.next_path() {
        if engine.run.path_count() >= limits.paths || engine.run.instructions() >= limits.instructions {
            engine.give_up(path.pc, StopReason::Limit);
            break;
        }
        engine.follow(path);
    }
    engine.run
}

/// Runs the instructions of `range` once each, as they lie there. Only what holds whichever way the code was reached is
/// known: nothing at the targets of jumps and behind jumps. Empty if there is a jump whose targets are not known.
pub(super) fn sweep<I: InstructionSet>(isa: I, image: &dyn CodeImage, range: Range<u64>) -> Run {
    let mut code = Vec::new();
    let mut targets = FxHashSet::default();
    let length = usize::try_from(range.end.saturating_sub(range.start)).unwrap_or(0);
    let mut bytes = image.code_at(range.start, length).unwrap_or_default();
    let mut at = range.start;
    while let Some(instruction) = I::decode(bytes, at) {
        match I::jumps(&instruction, at) {
            Jumps::Never => {}
            Jumps::To(target) => {
                targets.insert(target);
            }
            Jumps::Anywhere => return Run::new(range.start),
        }
        code.push((at, instruction));
        let length = I::length(&instruction);
        bytes = bytes.get(length as usize..).unwrap_or_default();
        at = at.saturating_add(length);
    }

    let limits = Limits::default();
    let mut engine = Engine {
        isa,
        image,
        limits: &limits,
        run: Run::new(range.start),
        waiting: Vec::new(),
        // The other sides of branches come as instructions of their own.
        forks: false,
        decoded: FxHashMap::default(),
        callees: FxHashMap::default(),
        forgotten: FxHashMap::default(),
        no_return: no_return(image),
    };
    // All registers are forgotten at once, so what is unknown twice never meets itself.
    let nothing_known = Path::new(range.start, Some(range.clone()), &I::CONVENTION);
    let mut path = nothing_known.clone();
    for (at, instruction) in &code {
        if targets.contains(at) {
            path = nothing_known.clone();
        }
        path.pc = *at;
        if !matches!(I::step(&mut engine, &mut path, instruction), Flow::Next) {
            path = nothing_known.clone();
        }
        engine.waiting.clear();
        path.trace.clear();
    }
    engine.run
}

/// True unless so few instructions of `range` store anything that they do not store `least` constants of eight bytes, two at a time.
pub(super) fn may_store_words<I: InstructionSet>(image: &dyn CodeImage, range: Range<u64>, least: usize) -> bool {
    let length = usize::try_from(range.end.saturating_sub(range.start)).unwrap_or(0);
    let mut bytes = image.code_at(range.start, length).unwrap_or_default();
    let (mut at, mut words) = (range.start, 0);
    while let Some(instruction) = I::decode(bytes, at).filter(|_| words < least) {
        words += 2 * usize::from(I::may_store_constants(&instruction));
        let length = I::length(&instruction);
        bytes = bytes.get(length as usize..).unwrap_or_default();
        at = at.saturating_add(length);
    }
    words >= least
}

pub(super) struct Engine<'i, I: InstructionSet> {
    pub(super) isa: I,
    image: &'i dyn CodeImage,
    limits: &'i Limits,
    run: Run,
    waiting: Vec<Path>,
    /// False where only one path is of interest.
    forks: bool,
    /// Every instruction that a path has reached.
    decoded: FxHashMap<u64, I::Instruction>,
    callees: FxHashMap<u64, Callee>,
    /// What registers hold behind a call that may have changed them, by its address.
    forgotten: FxHashMap<u64, Vec<Expr>>,
    /// Functions of this very image that do not return: a static program has them built in.
    no_return: Vec<u64>,
}

fn no_return(image: &dyn CodeImage) -> Vec<u64> {
    NO_RETURN.iter().filter_map(|name| image.symbol(name)).collect()
}

impl<I: InstructionSet> Engine<'_, I> {
    /// Unseen places first, else the youngest.
    fn next_path(&mut self) -> Option<Path> {
        let unseen = self.waiting.iter().rposition(|p| !self.decoded.contains_key(&p.pc));
        let next = unseen.or(self.waiting.len().checked_sub(1))?;
        Some(self.waiting.swap_remove(next))
    }

    fn follow(&mut self, mut path: Path) {
        while let Some(instruction) = self.decode(path.pc) {
            if self.run.count_instruction() > self.limits.instructions {
                self.give_up(path.pc, StopReason::Limit);
                break;
            }
            match I::step(self, &mut path, &instruction) {
                Flow::Next => {
                    let next = path.pc.wrapping_add(I::length(&instruction));
                    // Nothing falls off the end of a function: the call just made does not return.
                    if path.function.as_ref().is_some_and(|f| f.contains(&path.pc) && !f.contains(&next)) {
                        break;
                    }
                    path.pc = next;
                }
                Flow::To(pc) => path.pc = pc,
                Flow::End => break,
            }
        }
        self.run.end_path(path.trace);
    }

    fn decode(&mut self, pc: u64) -> Option<I::Instruction> {
        if let Some(instruction) = self.decoded.get(&pc) {
            return Some(*instruction);
        }
        let Some(bytes) = self.image.code_at(pc, I::LONGEST) else {
            self.give_up(pc, StopReason::OutsideImage);
            return None;
        };
        let Some(instruction) = I::decode(bytes, pc) else {
            self.give_up(pc, StopReason::BadInstruction);
            return None;
        };
        self.decoded.insert(pc, instruction);
        Some(instruction)
    }

    fn give_up(&mut self, at: u64, why: StopReason) {
        if why == StopReason::Limit && self.run.stops().iter().any(|s| s.why == StopReason::Limit) {
            return; // the first one says it
        }
        let bytes = self.image.code_at(at, I::LONGEST).unwrap_or_default().to_vec();
        self.run.stop(Stop { at, why, bytes });
    }

    // ---- control flow ----

    /// A conditional branch: this path goes on, another one is taken at `target`.
    pub(super) fn branch(&mut self, p: &mut Path, target: u64) -> Flow {
        if !self.forks {
            return Flow::Next;
        }
        if !p.may_visit(self.limits.visits) {
            return Flow::End;
        }
        // Copying a path costs more than a few of its steps: not one that would be dropped.
        if self.has_room(target) {
            let mut other = p.clone();
            other.pc = target;
            self.waiting.push(other);
        } else {
            self.give_up(target, StopReason::Limit);
        }
        Flow::Next
    }

    /// True if a path to this place may wait for its turn. Once as many paths wait as will be followed, paths to places
    /// already reached are dropped.
    fn has_room(&self, pc: u64) -> bool {
        self.waiting.len() + self.run.path_count() < self.limits.paths || !self.decoded.contains_key(&pc)
    }

    /// Leaves the other side of a branch for later. Ways to places already reached are dropped once many wait.
    pub(super) fn fork(&mut self, other: Path) {
        if self.has_room(other.pc) {
            self.waiting.push(other);
        } else {
            self.give_up(other.pc, StopReason::Limit);
        }
    }

    /// A jump: within the function, to a PLT stub, or to another function (a tail call, or a cold part split off).
    pub(super) fn jump(&mut self, p: &mut Path, target: u64) -> Flow {
        let outside = p.function.as_ref().is_some_and(|f| !f.contains(&target));
        if outside {
            let callee = self.callee_at(target);
            return self.tail_call(p, callee);
        }
        if p.may_visit(self.limits.visits) { Flow::To(target) } else { Flow::End }
    }

    /// A jump to a computed address: another function's, or one of a table, which is not followed.
    pub(super) fn indirect_jump(&mut self, p: &mut Path, callee: Callee) -> Flow {
        if let Callee::Pointer(to) = callee {
            self.give_up(p.pc, StopReason::IndirectJump(to));
            return Flow::End;
        }
        self.tail_call(p, callee)
    }

    fn tail_call(&mut self, p: &mut Path, callee: Callee) -> Flow {
        self.note_call(p, &callee, true);
        if let Some(body) = self.body(p, &callee) {
            p.depth += 1;
            let target = body.start;
            p.function = Some(body);
            return Flow::To(target);
        }
        if self.never_returns(&callee) {
            return Flow::End;
        }
        p.registers[I::CONVENTION.result] = self.result(p, callee);
        self.leave(p)
    }

    /// A call that comes back to `next`.
    pub(super) fn call(&mut self, p: &mut Path, callee: Callee, next: u64) -> Flow {
        self.note_call(p, &callee, false);
        let convention = I::CONVENTION;
        if let Some(body) = self.body(p, &callee) {
            p.callers.push(Frame { return_to: next, depth: p.depth, function: p.function.clone() });
            p.depth += 1;
            if convention.pushed > 0 {
                self.push(p, convention.pushed, Expr::constant(next));
            }
            let target = body.start;
            p.function = Some(body);
            return Flow::To(target);
        }
        if self.never_returns(&callee) {
            return Flow::End;
        }
        let result = self.result(p, callee);
        let unknown = |&register: &usize| Expr::unknown(p.pc, register as u8);
        let forgotten = self.forgotten.entry(p.pc).or_insert_with(|| convention.volatile.iter().map(unknown).collect());
        for (&register, value) in convention.volatile.iter().zip(forgotten) {
            p.registers[register] = value.clone();
        }
        p.forget_vectors();
        p.registers[convention.result] = result;
        p.flags = None;
        if let Some(from) = p.escaped {
            p.stack.retain(|slot, _| slot.0 != from.0 || slot < from);
        }
        Flow::Next
    }

    /// A return: from the function, or from one that was followed into.
    pub(super) fn leave(&mut self, p: &mut Path) -> Flow {
        let convention = I::CONVENTION;
        match p.callers.pop() {
            Some(frame) => {
                p.depth = frame.depth;
                p.function = frame.function;
                // The callee's epilogue left the return address on top, if it lies on the stack at all.
                p.registers[convention.stack] = p.registers[convention.stack].plus(convention.pushed.into(), p.pc);
                Flow::To(frame.return_to)
            }
            None => {
                let value = p.registers[convention.result].clone();
                self.run.note(&mut p.trace, Event::Return(Return { at: p.pc, value }));
                Flow::End
            }
        }
    }

    pub(super) fn image(&self) -> &dyn CodeImage {
        self.image
    }

    pub(super) fn note_call(&mut self, p: &mut Path, callee: &Callee, tail: bool) {
        for &register in I::CONVENTION.arguments {
            let argument = p.registers[register].clone();
            escape(p, &argument);
        }
        let args: [Expr; ARGUMENTS] = std::array::from_fn(|n| p.registers[I::CONVENTION.arguments[n]].clone());
        let beyond = (self.limits.beyond && !tail).then(|| Box::new(Self::beyond(p)));
        self.run.note(&mut p.trace, Event::Call(Call { at: p.pc, callee: callee.clone(), args, tail, beyond }));
    }

    /// What lies on the stack has eight bytes each, of which a number may fill the first four (psABI x86-64, 3.2.3; AAPCS64, 6.8.2).
    fn beyond(p: &Path) -> Beyond {
        const SLOT: i64 = 8;
        let stack = p.registers[I::CONVENTION.stack].clone();
        let args = std::array::from_fn(|n| {
            let n = n + ARGUMENTS;
            let Some(on_stack) = n.checked_sub(I::CONVENTION.arguments.len()) else {
                return p.registers[I::CONVENTION.arguments[n]].clone();
            };
            let Some((base, top)) = stack_slot(&stack) else { return p.unknown() };
            let read = |size| stack_read(p, (base, top.saturating_add(SLOT * on_stack as i64)), size);
            Some(read(8)).filter(|value| *value != p.unknown()).unwrap_or_else(|| read(4))
        });
        Beyond { stack, args, registers: p.registers.to_vec() }
    }

    /// The result of a call that is not followed.
    fn result(&self, p: &Path, callee: Callee) -> Expr {
        if callee.is("__tls_get_addr")
            && let Some(slot @ TlsSlot::Module(_)) = self.tls_slot(&p.registers[I::CONVENTION.arguments[0]])
        {
            return Expr::leaf(Kind::Tls(slot));
        }
        Expr::call_result(callee, p.pc)
    }

    fn never_returns(&self, callee: &Callee) -> bool {
        match callee {
            Callee::Internal(entry) => self.no_return.contains(entry),
            _ => NO_RETURN.iter().any(|name| callee.is(name)),
        }
    }

    /// Extent of the callee, if it is to be followed.
    fn body(&self, p: &Path, callee: &Callee) -> Option<Range<u64>> {
        if p.depth >= self.limits.inline_depth {
            return None;
        }
        let entry = match callee {
            Callee::Internal(entry) => *entry,
            Callee::Named(name) => self.image.symbol(name)?,
            Callee::Pointer(_) => return None,
        };
        let range = self.image.function(entry)?;
        (range.contains(&entry) && range.end - range.start <= self.limits.inline_bytes).then_some(entry..range.end)
    }

    /// What a direct call reaches: a stub is the function it jumps to.
    pub(super) fn callee_at(&mut self, target: u64) -> Callee {
        if let Some(known) = self.callees.get(&target) {
            return known.clone();
        }
        let callee = match I::stub(self.image, target) {
            Some(Stub::Slot(slot)) => self.slot_callee(slot),
            Some(Stub::Code(code)) => Some(Callee::Internal(code)),
            None => None,
        };
        let callee = callee.unwrap_or(Callee::Internal(target));
        self.callees.insert(target, callee.clone());
        callee
    }

    /// The function whose address the loader puts at `slot`.
    pub(super) fn slot_callee(&self, slot: u64) -> Option<Callee> {
        match self.image.slot(slot)? {
            Slot::Symbol { name, .. } => Some(Callee::Named(name)),
            Slot::Address(target) => Some(Callee::Internal(target)),
            _ => None,
        }
    }

    /// What a call or jump to a computed address reaches.
    pub(super) fn pointer_callee(&mut self, target: Expr) -> Callee {
        match target.kind() {
            Kind::Const(target) => self.callee_at(*target),
            Kind::Symbol(name) => Callee::Named(Arc::clone(name)),
            _ => Callee::Pointer(target),
        }
    }

    /// The GOT entry of a thread-local variable at the address `addr`.
    pub(super) fn tls_slot(&self, addr: &Expr) -> Option<TlsSlot> {
        let slot = addr.as_const()?;
        match self.image.slot(slot)? {
            Slot::TlsOffset => Some(TlsSlot::Offset(slot)),
            Slot::TlsModule => Some(TlsSlot::Module(slot)),
            Slot::TlsDescriptor => Some(TlsSlot::Descriptor(slot)),
            Slot::Address(_) | Slot::Symbol { .. } => None,
        }
    }

    // ---- memory and comparisons ----

    pub(super) fn load(&mut self, p: &mut Path, addr: &Expr, size: u8) -> Expr {
        if let Some(slot) = stack_slot(addr) {
            // What this code has not written lies there since before.
            if self.limits.beyond && !is_written(p, slot, size) {
                self.run.note(&mut p.trace, Event::Load(Load { at: p.pc, size, addr: addr.clone() }));
                return Expr::load(size, addr, p.pc);
            }
            return stack_read(p, slot, size);
        }
        if size == 8
            && let Some(place) = addr.as_const()
        {
            match self.image.slot(place) {
                Some(Slot::Address(target)) => return Expr::constant(target),
                Some(Slot::Symbol { address: Some(target), .. }) => return Expr::constant(target),
                Some(Slot::Symbol { name, address: None }) => return Expr::leaf(Kind::Symbol(name)),
                Some(Slot::TlsOffset) => return Expr::leaf(Kind::TlsOffset(TlsSlot::Offset(place))),
                // The descriptor's function, about to be called.
                Some(Slot::TlsDescriptor) => return Expr::load(size, addr, p.pc),
                Some(Slot::TlsModule) | None => {}
            }
        }
        self.run.note(&mut p.trace, Event::Load(Load { at: p.pc, size, addr: addr.clone() }));
        Expr::load(size, addr, p.pc)
    }

    pub(super) fn store(&mut self, p: &mut Path, addr: &Expr, size: u8, value: Expr, locked: bool) {
        if let Some(slot) = stack_slot(addr) {
            if self.limits.beyond {
                let (addr, value) = (addr.clone(), value.clone());
                self.run.note(&mut p.trace, Event::Store(Store { at: p.pc, size, addr, value, locked }));
            }
            stack_write(p, slot, size, value);
            return;
        }
        escape(p, &value);
        let addr = addr.clone();
        self.run.note(&mut p.trace, Event::Store(Store { at: p.pc, size, addr, value, locked }));
    }

    pub(super) fn push(&mut self, p: &mut Path, size: u8, value: Expr) {
        let stack = I::CONVENTION.stack;
        p.registers[stack] = p.registers[stack].plus(-i64::from(size), p.pc);
        let top = p.registers[stack].clone();
        self.store(p, &top, size, value, false);
    }

    pub(super) fn compare(&mut self, p: &mut Path, size: u8, left: Expr, right: Expr, mask: bool) {
        p.flags = Some((left.clone(), right.clone()));
        self.run.note(&mut p.trace, Event::Compare(Compare { at: p.pc, size, left, right, mask }));
    }

    /// 1 or 0 by the last comparison.
    pub(super) fn set(&self, p: &Path) -> Expr {
        match &p.flags {
            Some((left, right)) => Expr::op(Op::Set, left, right, p.pc),
            None => Expr::op(Op::Set, &p.unknown(), &Expr::constant(0), p.pc),
        }
    }
}
