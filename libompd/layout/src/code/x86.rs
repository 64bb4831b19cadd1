//! Symbolic execution of x86-64.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use iced_x86::{
    Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, Mnemonic as M, OpAccess, OpKind,
    Register as R,
};

use super::expr::{Callee, Expr, Kind, Op, TlsSlot};
use super::image::{CodeImage, Slot};
use super::run::{Call, Compare, Event, Limits, Load, Return, Run, Stop, StopReason, Store};
use super::state::{
    ARGUMENTS, Frame, Path, RAX, RBP, RSP, escape, mask, masked, realigned, register, stack_read, stack_slot,
    stack_write,
};

/// Longest x86 instruction.
const MAX_INSTRUCTION: usize = 15;
/// Registers a call may change: rax, rcx, rdx, rsi, rdi, r8 to r11.
const VOLATILE: [usize; 9] = [0, 1, 2, 6, 7, 8, 9, 10, 11];
/// Functions that do not return.
const NO_RETURN: [&str; 7] =
    ["abort", "exit", "_exit", "__stack_chk_fail", "__assert_fail", "__chk_fail", "_Unwind_Resume"];

/// Runs the function at `entry`.
pub(super) fn execute(image: &dyn CodeImage, entry: u64, limits: &Limits) -> Run {
    let mut engine = Engine {
        image,
        limits,
        run: Run::default(),
        decoded: HashMap::new(),
        reached: HashSet::new(),
        callees: HashMap::new(),
        info: InstructionInfoFactory::new(),
    };
    let mut waiting = vec![Path::new(entry, image.function(entry))];
    loop {
        // Unseen places first, else the youngest.
        let next = waiting.iter().rposition(|p| !engine.reached.contains(&p.pc)).or(waiting.len().checked_sub(1));
        let Some(next) = next else { break };
        let path = waiting.swap_remove(next);
        if engine.run.path_count() >= limits.paths || engine.run.instructions() >= limits.instructions {
            engine.give_up(path.pc, StopReason::Limit);
            break;
        }
        engine.follow(path, &mut waiting);
    }
    engine.run
}

/// Where a path goes after an instruction.
enum Flow {
    Next,
    To(u64),
    End,
}

struct Engine<'i> {
    image: &'i dyn CodeImage,
    limits: &'i Limits,
    run: Run,
    decoded: HashMap<u64, Instruction>,
    reached: HashSet<u64>,
    callees: HashMap<u64, Callee>,
    info: InstructionInfoFactory,
}

impl Engine<'_> {
    fn follow(&mut self, mut path: Path, waiting: &mut Vec<Path>) {
        while let Some(instruction) = self.decode(path.pc) {
            self.reached.insert(path.pc);
            if self.run.count_instruction() > self.limits.instructions {
                self.give_up(path.pc, StopReason::Limit);
                break;
            }
            match self.step(&mut path, &instruction, waiting) {
                Flow::Next => {
                    let next = instruction.next_ip();
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

    fn decode(&mut self, pc: u64) -> Option<Instruction> {
        if let Some(instruction) = self.decoded.get(&pc) {
            return Some(*instruction);
        }
        let Some(bytes) = self.image.code_at(pc, MAX_INSTRUCTION) else {
            self.give_up(pc, StopReason::OutsideImage);
            return None;
        };
        let instruction = Decoder::with_ip(64, bytes, pc, DecoderOptions::NONE).decode();
        if instruction.is_invalid() {
            self.give_up(pc, StopReason::BadInstruction);
            return None;
        }
        self.decoded.insert(pc, instruction);
        Some(instruction)
    }

    fn give_up(&mut self, at: u64, why: StopReason) {
        if why == StopReason::Limit && self.run.stops().iter().any(|s| s.why == StopReason::Limit) {
            return; // the first one says it
        }
        let bytes = self.image.code_at(at, MAX_INSTRUCTION).unwrap_or_default().to_vec();
        self.run.stop(Stop { at, why, bytes });
    }

    fn step(&mut self, p: &mut Path, i: &Instruction, waiting: &mut Vec<Path>) -> Flow {
        match i.flow_control() {
            FlowControl::Next | FlowControl::Interrupt => {}
            FlowControl::ConditionalBranch | FlowControl::XbeginXabortXend => {
                if !p.may_visit(self.limits.visits) {
                    return Flow::End;
                }
                let mut other = p.clone();
                other.pc = i.near_branch_target();
                self.fork(other, waiting);
                return Flow::Next;
            }
            FlowControl::UnconditionalBranch => return self.jump(p, i.near_branch_target()),
            FlowControl::IndirectBranch => {
                let callee = self.pointer_callee(p, i);
                if let Callee::Pointer(to) = callee {
                    self.give_up(p.pc, StopReason::IndirectJump(to));
                    return Flow::End;
                }
                return self.tail_call(p, callee);
            }
            FlowControl::Return => return self.leave(p),
            FlowControl::Call => {
                let callee = self.callee_at(i.near_branch_target());
                return self.call(p, i, callee);
            }
            FlowControl::IndirectCall => {
                if let Some(slot @ TlsSlot::Descriptor(_)) = self.tls_slot(&self.address(p, i)) {
                    // The descriptor's function changes nothing but rax.
                    p.registers[RAX] = Expr::leaf(Kind::TlsOffset(slot));
                    return Flow::Next;
                }
                let callee = self.pointer_callee(p, i);
                return self.call(p, i, callee);
            }
            FlowControl::Exception => return Flow::End,
        }
        self.compute(p, i, waiting);
        Flow::Next
    }

    // ---- control flow ----

    /// Leaves the other side of a branch for later. Ways to places already reached are dropped once many wait.
    fn fork(&mut self, other: Path, waiting: &mut Vec<Path>) {
        if waiting.len() < self.limits.paths || !self.reached.contains(&other.pc) {
            waiting.push(other);
        } else {
            self.give_up(other.pc, StopReason::Limit);
        }
    }

    /// A jump: within the function, to a PLT stub, or to another function (a tail call, or a cold part split off).
    fn jump(&mut self, p: &mut Path, target: u64) -> Flow {
        let outside = p.function.as_ref().is_some_and(|f| !f.contains(&target));
        if outside {
            let callee = self.callee_at(target);
            return self.tail_call(p, callee);
        }
        if p.may_visit(self.limits.visits) { Flow::To(target) } else { Flow::End }
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
        p.registers[RAX] = self.result(p, callee);
        self.leave(p)
    }

    fn call(&mut self, p: &mut Path, i: &Instruction, callee: Callee) -> Flow {
        self.note_call(p, &callee, false);
        if let Some(body) = self.body(p, &callee) {
            p.callers.push(Frame { return_to: i.next_ip(), depth: p.depth, function: p.function.clone() });
            p.depth += 1;
            self.push(p, 8, Expr::constant(i.next_ip()));
            let target = body.start;
            p.function = Some(body);
            return Flow::To(target);
        }
        if self.never_returns(&callee) {
            return Flow::End;
        }
        let result = self.result(p, callee);
        for register in VOLATILE {
            p.registers[register] = Expr::unknown(p.pc, register as u8);
        }
        for (n, vector) in p.vectors.iter_mut().enumerate() {
            *vector = Expr::unknown(p.pc, 17 + n as u8);
        }
        p.registers[RAX] = result;
        p.flags = None;
        if let Some(from) = p.escaped {
            p.stack.retain(|slot, _| slot.0 != from.0 || *slot < from);
        }
        Flow::Next
    }

    /// A return: from the function, or from one that was followed into.
    fn leave(&mut self, p: &mut Path) -> Flow {
        match p.callers.pop() {
            Some(frame) => {
                p.depth = frame.depth;
                p.function = frame.function;
                // The callee's epilogue left the return address on top.
                p.registers[RSP] = p.registers[RSP].plus(8, p.pc);
                Flow::To(frame.return_to)
            }
            None => {
                let value = p.registers[RAX].clone();
                self.run.note(&mut p.trace, Event::Return(Return { at: p.pc, value }));
                Flow::End
            }
        }
    }

    fn note_call(&mut self, p: &mut Path, callee: &Callee, tail: bool) {
        let args = ARGUMENTS.map(|n| p.registers[n].clone());
        for argument in &args {
            escape(p, argument);
        }
        self.run.note(&mut p.trace, Event::Call(Call { at: p.pc, callee: callee.clone(), args, tail }));
    }

    /// Value of rax after a call that is not followed.
    fn result(&self, p: &Path, callee: Callee) -> Expr {
        if callee.is("__tls_get_addr")
            && let Some(slot @ TlsSlot::Module(_)) = self.tls_slot(&p.registers[ARGUMENTS[0]])
        {
            return Expr::leaf(Kind::Tls(slot));
        }
        Expr::call_result(callee, p.pc)
    }

    fn never_returns(&self, callee: &Callee) -> bool {
        NO_RETURN.iter().any(|name| callee.is(name))
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

    /// What a direct call reaches: a PLT stub is the function it jumps to.
    fn callee_at(&mut self, target: u64) -> Callee {
        if let Some(known) = self.callees.get(&target) {
            return known.clone();
        }
        let mut callee = Callee::Internal(target);
        let mut pc = target;
        // endbr64, then the jump; older stubs start with the jump.
        for _ in 0..2 {
            let Some(bytes) = self.image.code_at(pc, MAX_INSTRUCTION) else { break };
            let i = Decoder::with_ip(64, bytes, pc, DecoderOptions::NONE).decode();
            if i.mnemonic() == M::Jmp && i.op0_kind() == OpKind::Memory && i.is_ip_rel_memory_operand() {
                callee = self.slot_callee(i.ip_rel_memory_address()).unwrap_or(callee);
            }
            if i.mnemonic() != M::Endbr64 {
                break;
            }
            pc = i.next_ip();
        }
        self.callees.insert(target, callee.clone());
        callee
    }

    fn slot_callee(&self, slot: u64) -> Option<Callee> {
        match self.image.slot(slot)? {
            Slot::Symbol { name, .. } => Some(Callee::Named(name)),
            Slot::Address(target) => Some(Callee::Internal(target)),
            _ => None,
        }
    }

    /// What a call or jump through memory or a register reaches.
    fn pointer_callee(&mut self, p: &mut Path, i: &Instruction) -> Callee {
        if i.op0_kind() == OpKind::Memory
            && let Some(callee) = self.address(p, i).as_const().and_then(|slot| self.slot_callee(slot))
        {
            return callee;
        }
        let target = self.read(p, i, 0);
        match target.kind() {
            Kind::Const(target) => self.callee_at(*target),
            Kind::Symbol(name) => Callee::Named(Arc::clone(name)),
            _ => Callee::Pointer(target),
        }
    }

    fn tls_slot(&self, addr: &Expr) -> Option<TlsSlot> {
        let slot = addr.as_const()?;
        match self.image.slot(slot)? {
            Slot::TlsOffset => Some(TlsSlot::Offset(slot)),
            Slot::TlsModule => Some(TlsSlot::Module(slot)),
            Slot::TlsDescriptor => Some(TlsSlot::Descriptor(slot)),
            Slot::Address(_) | Slot::Symbol { .. } => None,
        }
    }

    // ---- data ----

    fn compute(&mut self, p: &mut Path, i: &Instruction, waiting: &mut Vec<Path>) {
        let at = p.pc;
        match i.mnemonic() {
            M::Nop | M::Endbr64 | M::Pause => {}
            M::Mov | M::Movsxd | M::Movsx | M::Cdqe | M::Cwde | M::Movd | M::Movq => {
                if i.op_count() == 2 {
                    let value = self.read(p, i, 1);
                    self.write(p, i, 0, value);
                }
            }
            M::Movzx => {
                let size = operand_size(i, 1);
                let value = self.read(p, i, 1);
                let value = if value.fits(size) { value } else { masked(&value, size, at) };
                self.write(p, i, 0, value);
            }
            M::Movups | M::Movaps | M::Movupd | M::Movapd | M::Movdqu | M::Movdqa => {
                let value = self.read(p, i, 1);
                self.write(p, i, 0, value);
            }
            M::Vmovups | M::Vmovaps | M::Vmovdqu | M::Vmovdqa if operand_size(i, 0) == 16 => {
                let value = self.read(p, i, 1);
                self.write(p, i, 0, value);
            }
            M::Lea => {
                let value = self.address(p, i);
                self.write(p, i, 0, value);
            }
            M::Push => {
                let value = self.read(p, i, 0);
                self.push(p, 8, value);
            }
            M::Pop => {
                let value = self.load(p, &p.registers[RSP].clone(), 8);
                p.registers[RSP] = p.registers[RSP].plus(8, at);
                self.write(p, i, 0, value);
            }
            M::Leave => {
                p.registers[RSP] = p.registers[RBP].clone();
                let value = self.load(p, &p.registers[RSP].clone(), 8);
                p.registers[RSP] = p.registers[RSP].plus(8, at);
                p.registers[RBP] = value;
            }
            M::Cmp | M::Test | M::Bt => self.compare(p, i),
            M::Add
            | M::Sub
            | M::And
            | M::Or
            | M::Xor
            | M::Shl
            | M::Shr
            | M::Sar
            | M::Inc
            | M::Dec
            | M::Neg
            | M::Not
            | M::Imul
                if i.mnemonic() != M::Imul || i.op_count() >= 2 =>
            {
                let value = self.arithmetic(p, i);
                p.flags = Some((value.clone(), Expr::constant(0)));
                self.write(p, i, 0, value);
            }
            M::Pxor | M::Xorps | M::Xorpd if same_registers(i) => self.write(p, i, 0, Expr::constant(0)),
            M::Vpxor | M::Vxorps if i.op1_register() == i.op2_register() => {
                self.write(p, i, 0, Expr::constant(0));
            }
            M::Xchg => {
                let (a, b) = (self.read(p, i, 0), self.read(p, i, 1));
                self.write(p, i, 0, b);
                self.write(p, i, 1, a);
            }
            M::Xadd => {
                let (a, b) = (self.read(p, i, 0), self.read(p, i, 1));
                self.write(p, i, 0, a.add(&b, at));
                self.write(p, i, 1, a);
                p.flags = None;
            }
            M::Cmpxchg => {
                let old = self.read(p, i, 0);
                let new = self.read(p, i, 1);
                let expected = p.registers[RAX].clone();
                let size = operand_size(i, 0);
                self.note_compare(p, size, old.clone(), expected, false);
                self.write(p, i, 0, new);
                p.registers[RAX] = old;
            }
            mnemonic if is_cmov(mnemonic) => {
                let value = self.read(p, i, 1);
                let mut other = p.clone();
                self.write(&mut other, i, 0, value);
                other.pc = i.next_ip();
                self.fork(other, waiting);
            }
            mnemonic if is_set(mnemonic) => {
                let value = match &p.flags {
                    Some((left, right)) => Expr::op(Op::Set, left, right, at),
                    None => Expr::op(Op::Set, &Expr::unknown(at, 16), &Expr::constant(0), at),
                };
                self.write(p, i, 0, value);
            }
            _ => self.anything_else(p, i),
        }
    }

    fn compare(&mut self, p: &mut Path, i: &Instruction) {
        let size = operand_size(i, 0);
        let left = self.read(p, i, 0);
        let right = self.read(p, i, 1);
        let (right, mask) = match i.mnemonic() {
            M::Test if left == right => (Expr::constant(0), false),
            M::Test | M::Bt => (right, true),
            _ => (right, false),
        };
        self.note_compare(p, size, left, right, mask);
    }

    fn note_compare(&mut self, p: &mut Path, size: u8, left: Expr, right: Expr, mask: bool) {
        p.flags = Some((left.clone(), right.clone()));
        self.run.note(&mut p.trace, Event::Compare(Compare { at: p.pc, size, left, right, mask }));
    }

    fn arithmetic(&mut self, p: &mut Path, i: &Instruction) -> Expr {
        let at = p.pc;
        let zero = Expr::constant(0);
        let size = operand_size(i, 0);
        if matches!(i.mnemonic(), M::Xor | M::Sub) && same_registers(i) {
            return zero;
        }
        let (a, b) = match i.op_count() {
            1 => (self.read(p, i, 0), zero.clone()),
            3 => (self.read(p, i, 1), self.read(p, i, 2)),
            _ => (self.read(p, i, 0), self.read(p, i, 1)),
        };
        let both = a.as_const().zip(b.as_const());
        // Immediates of 32-bit operations are signed numbers to the sums they end up in.
        let signed = |e: &Expr| e.as_const().map_or_else(|| e.clone(), |v| Expr::constant(sign_extend(v, size)));
        let value = match i.mnemonic() {
            M::Add => a.add(&signed(&b), at),
            M::Sub => a.sub(&signed(&b), at),
            M::Inc => a.plus(1, at),
            M::Dec => a.plus(-1, at),
            M::Neg => zero.sub(&a, at),
            M::Imul => match (a.as_const(), b.as_const()) {
                (_, Some(factor)) => a.times(sign_extend(factor, size), at),
                (Some(factor), None) => b.times(sign_extend(factor, size), at),
                (None, None) => Expr::op(Op::Mul, &a, &b, at),
            },
            M::Shl => match b.as_const() {
                Some(count) if count < 64 => a.times(1 << count, at),
                _ => Expr::op(Op::Shl, &a, &b, at),
            },
            M::And if p.registers[RSP] == a && i.op0_register() == R::RSP => realigned(&a),
            M::And => match both {
                Some((x, y)) => Expr::constant(x & y),
                None if b.as_const() == Some(0) => zero,
                None => Expr::op(Op::And, &a, &b, at),
            },
            M::Or => match both {
                Some((x, y)) => Expr::constant(x | y),
                // `or r, -1` is how compilers load -1.
                None if b.as_const().is_some_and(|v| sign_extend(v, size) == u64::MAX) => b,
                None => Expr::op(Op::Or, &a, &b, at),
            },
            M::Xor => both.map_or_else(|| Expr::op(Op::Xor, &a, &b, at), |(x, y)| Expr::constant(x ^ y)),
            M::Shr => match both {
                Some((x, y)) if y < 64 => Expr::constant(x >> y),
                _ => Expr::op(Op::Shr, &a, &b, at),
            },
            M::Sar => Expr::op(Op::Sar, &a, &b, at),
            _ => Expr::op(Op::Not, &a, &zero, at),
        };
        match value.as_const() {
            Some(number) => Expr::constant(number & mask(size)),
            None => value,
        }
    }

    /// Instructions without a rule: what they read is recorded, what they write becomes unknown.
    fn anything_else(&mut self, p: &mut Path, i: &Instruction) {
        let info = self.info.info(i).clone();
        for memory in info.used_memory() {
            let base = self.place(p, i, memory.base(), memory.index(), memory.scale(), memory.displacement());
            let addr = if memory.segment() == R::FS { base.add(&Expr::leaf(Kind::ThreadPointer), p.pc) } else { base };
            let size = u8::try_from(memory.memory_size().size()).unwrap_or(0);
            if matches!(memory.access(), OpAccess::Read | OpAccess::CondRead | OpAccess::ReadWrite) {
                self.load(p, &addr, size);
            }
            if matches!(memory.access(), OpAccess::Write | OpAccess::CondWrite | OpAccess::ReadWrite) {
                let value = Expr::unknown(p.pc, 16);
                self.store(p, &addr, size, value, i.has_lock_prefix());
            }
        }
        for used in info.used_registers() {
            let read_only = matches!(used.access(), OpAccess::Read | OpAccess::CondRead | OpAccess::NoMemAccess);
            let full = used.register().full_register();
            if !read_only && full.is_gpr64() {
                p.registers[full.number()] = Expr::unknown(p.pc, full.number() as u8);
            } else if !read_only && full.is_vector_register() && full.number() < 16 {
                p.vectors[full.number()] = Expr::unknown(p.pc, 17 + full.number() as u8);
            }
        }
        if i.mnemonic() == M::Syscall {
            p.registers[RAX] = Expr::unknown(p.pc, RAX as u8);
        }
        p.flags = None;
    }

    // ---- operands ----

    fn read(&mut self, p: &mut Path, i: &Instruction, n: u32) -> Expr {
        match i.op_kind(n) {
            OpKind::Register => register(p, i.op_register(n)),
            OpKind::Memory => {
                let addr = self.address(p, i);
                self.load(p, &addr, operand_size(i, n))
            }
            OpKind::NearBranch64 => Expr::constant(i.near_branch_target()),
            _ => match i.try_immediate(n) {
                Ok(value) => Expr::constant(value & mask(operand_size(i, 0))),
                Err(_) => Expr::unknown(p.pc, 16),
            },
        }
    }

    fn write(&mut self, p: &mut Path, i: &Instruction, n: u32, value: Expr) {
        match i.op_kind(n) {
            OpKind::Register => {
                let target = i.op_register(n);
                let full = target.full_register();
                if matches!(target, R::AH | R::BH | R::CH | R::DH) {
                    p.registers[full.number()] = Expr::unknown(p.pc, full.number() as u8);
                } else if full.is_gpr64() {
                    p.registers[full.number()] = value;
                } else if full.is_vector_register() && full.number() < 16 {
                    p.vectors[full.number()] = value;
                }
            }
            OpKind::Memory => {
                let addr = self.address(p, i);
                let locked = i.has_lock_prefix() || i.mnemonic() == M::Xchg;
                self.store(p, &addr, operand_size(i, n), value, locked);
            }
            _ => {}
        }
    }

    /// Address of the memory operand.
    fn address(&self, p: &Path, i: &Instruction) -> Expr {
        if i.is_ip_rel_memory_operand() {
            return Expr::constant(i.ip_rel_memory_address());
        }
        let scale = i.memory_index_scale();
        let addr = self.place(p, i, i.memory_base(), i.memory_index(), scale, i.memory_displacement64());
        if i.memory_segment() == R::FS && i.mnemonic() != M::Lea {
            return addr.add(&Expr::leaf(Kind::ThreadPointer), p.pc);
        }
        addr
    }

    fn place(&self, p: &Path, i: &Instruction, base: R, index: R, scale: u32, displacement: u64) -> Expr {
        if matches!(base, R::RIP | R::EIP) {
            return Expr::constant(i.ip_rel_memory_address());
        }
        let mut addr = Expr::constant(displacement);
        if base != R::None {
            addr = register(p, base).add(&addr, p.pc);
        }
        if index != R::None {
            addr = addr.add(&register(p, index).times(u64::from(scale), p.pc), p.pc);
        }
        addr
    }

    fn load(&mut self, p: &mut Path, addr: &Expr, size: u8) -> Expr {
        if let Some(slot) = stack_slot(addr) {
            return stack_read(p, slot, size);
        }
        // On x86-64 the thread control block starts with its own address.
        if matches!(addr.kind(), Kind::ThreadPointer) && size == 8 {
            return addr.clone();
        }
        if size == 8
            && let Some(place) = addr.as_const()
        {
            match self.image.slot(place) {
                Some(Slot::Address(target)) => return Expr::constant(target),
                Some(Slot::Symbol { address: Some(target), .. }) => return Expr::constant(target),
                Some(Slot::Symbol { name, address: None }) => return Expr::leaf(Kind::Symbol(name)),
                Some(Slot::TlsOffset) => return Expr::leaf(Kind::TlsOffset(TlsSlot::Offset(place))),
                Some(Slot::TlsModule | Slot::TlsDescriptor) | None => {}
            }
        }
        self.run.note(&mut p.trace, Event::Load(Load { at: p.pc, size, addr: addr.clone() }));
        Expr::load(size, addr, p.pc)
    }

    fn store(&mut self, p: &mut Path, addr: &Expr, size: u8, value: Expr, locked: bool) {
        if let Some(slot) = stack_slot(addr) {
            stack_write(p, slot, size, value);
            return;
        }
        escape(p, &value);
        let addr = addr.clone();
        self.run.note(&mut p.trace, Event::Store(Store { at: p.pc, size, addr, value, locked }));
    }

    fn push(&mut self, p: &mut Path, size: u8, value: Expr) {
        p.registers[RSP] = p.registers[RSP].plus(-i64::from(size), p.pc);
        let top = p.registers[RSP].clone();
        self.store(p, &top, size, value, false);
    }
}

// ---- instructions ----

fn same_registers(i: &Instruction) -> bool {
    i.op_count() == 2
        && i.op0_kind() == OpKind::Register
        && i.op1_kind() == OpKind::Register
        && i.op0_register() == i.op1_register()
}

fn operand_size(i: &Instruction, n: u32) -> u8 {
    let size = match i.op_kind(n) {
        OpKind::Register => i.op_register(n).size(),
        OpKind::Memory => i.memory_size().size(),
        _ => 8,
    };
    u8::try_from(size).unwrap_or(0)
}

fn sign_extend(value: u64, size: u8) -> u64 {
    let unused = 64 - u32::from(size.clamp(1, 8)) * 8;
    (((value << unused) as i64) >> unused) as u64
}

fn is_cmov(m: M) -> bool {
    matches!(
        m,
        M::Cmova
            | M::Cmovae
            | M::Cmovb
            | M::Cmovbe
            | M::Cmove
            | M::Cmovg
            | M::Cmovge
            | M::Cmovl
            | M::Cmovle
            | M::Cmovne
            | M::Cmovno
            | M::Cmovnp
            | M::Cmovns
            | M::Cmovo
            | M::Cmovp
            | M::Cmovs
    )
}

fn is_set(m: M) -> bool {
    matches!(
        m,
        M::Seta
            | M::Setae
            | M::Setb
            | M::Setbe
            | M::Sete
            | M::Setg
            | M::Setge
            | M::Setl
            | M::Setle
            | M::Setne
            | M::Setno
            | M::Setnp
            | M::Setns
            | M::Seto
            | M::Setp
            | M::Sets
    )
}
