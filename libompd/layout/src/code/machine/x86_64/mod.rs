//! What x86-64 instructions compute.

mod poll;
mod registers;
mod tables;
mod transfers;

use std::collections::BTreeSet;

use iced_x86::{
    Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, Mnemonic as M, OpAccess, OpKind,
    Register as R,
};

use ompd_process::Machine;

use crate::code::engine::{Engine, InstructionSet};
use crate::code::expr::{Callee, Expr, Kind, Op, TlsSlot};
use crate::code::flow::{EachTransfer, Flow, Jumps, Poll, Step, Stub, Whose};
use crate::code::image::CodeImage;
use crate::code::state::{Convention, Path, cut, mask, masked, realigned, sign_extend, signed};

// General registers by their number in the encoding.
const RAX: usize = 0;
const RSP: usize = 4;
const RBP: usize = 5;

/// x86-64 on Linux (System V ABI).
pub(super) struct X86 {
    info: InstructionInfoFactory,
}

impl InstructionSet for X86 {
    const MACHINE: Machine = Machine::X86_64;
    type Instruction = Instruction;
    const LONGEST: usize = 15;
    const CONVENTION: Convention = Convention {
        stack: RSP,
        result: RAX,
        // rdi, rsi, rdx, rcx, r8, r9
        arguments: &[7, 6, 2, 1, 8, 9],
        // rax, rcx, rdx, rsi, rdi, r8 to r11
        volatile: &[0, 1, 2, 6, 7, 8, 9, 10, 11],
        pushed: 8,
    };

    fn dwarf_register(register: u8) -> Option<u16> {
        registers::by_encoding(register)
    }

    fn new() -> X86 {
        X86 { info: InstructionInfoFactory::new() }
    }

    fn decode(bytes: &[u8], at: u64) -> Option<Instruction> {
        let instruction = Decoder::with_ip(64, bytes, at, DecoderOptions::NONE).decode();
        (!instruction.is_invalid()).then_some(instruction)
    }

    fn length(instruction: &Instruction) -> u64 {
        instruction.len() as u64
    }

    fn step(engine: &mut Engine<'_, X86>, p: &mut Path, i: &Instruction) -> Flow {
        match i.flow_control() {
            FlowControl::Next | FlowControl::Interrupt => {}
            FlowControl::ConditionalBranch | FlowControl::XbeginXabortXend => {
                return engine.branch(p, i.near_branch_target());
            }
            FlowControl::UnconditionalBranch => return engine.jump(p, i.near_branch_target()),
            FlowControl::IndirectBranch => {
                let callee = engine.callee(p, i);
                return engine.indirect_jump(p, callee);
            }
            FlowControl::Return => return engine.leave(p),
            FlowControl::Call => {
                let callee = engine.callee_at(i.near_branch_target());
                return engine.call(p, callee, i.next_ip());
            }
            FlowControl::IndirectCall => {
                if let Some(slot @ TlsSlot::Descriptor(_)) = engine.tls_slot(&engine.address(p, i)) {
                    // The descriptor's function changes nothing but rax.
                    p.registers[RAX] = Expr::leaf(Kind::TlsOffset(slot));
                    return Flow::Next;
                }
                let callee = engine.callee(p, i);
                return engine.call(p, callee, i.next_ip());
            }
            FlowControl::Exception => return Flow::End,
        }
        engine.compute(p, i);
        Flow::Next
    }

    fn jumps(instruction: &Instruction, _: u64) -> Jumps {
        match instruction.flow_control() {
            FlowControl::ConditionalBranch | FlowControl::UnconditionalBranch | FlowControl::XbeginXabortXend => {
                Jumps::To(instruction.near_branch_target())
            }
            FlowControl::IndirectBranch => Jumps::Anywhere,
            _ => Jumps::Never,
        }
    }

    /// What is written is the first operand, and the stack is no fixed address.
    fn may_store_constants(instruction: &Instruction) -> bool {
        instruction.op0_kind() == OpKind::Memory && instruction.memory_base() != R::RSP
    }

    fn stub(image: &dyn CodeImage, at: u64) -> Option<Stub> {
        let mut pc = at;
        // endbr64, then the jump; older stubs start with the jump.
        for _ in 0..2 {
            let i = X86::decode(image.code_at(pc, X86::LONGEST)?, pc)?;
            if i.mnemonic() == M::Jmp && i.op0_kind() == OpKind::Memory && i.is_ip_rel_memory_operand() {
                return Some(Stub::Slot(i.ip_rel_memory_address()));
            }
            if i.mnemonic() != M::Endbr64 {
                return None;
            }
            pc = i.next_ip();
        }
        None
    }

    fn transfers(bytes: &[u8], start: u64, each: EachTransfer<'_>) {
        transfers::transfers(bytes, start, each);
    }

    fn table_targets(
        image: &dyn CodeImage,
        code: &[u8],
        start: u64,
        whose: &dyn Fn(u64) -> Whose,
    ) -> Option<BTreeSet<u64>> {
        tables::targets(image, code, start, whose)
    }

    fn next_steps(i: &Instruction, _: u64) -> [Option<(u64, bool)>; 2] {
        poll::next_steps(i)
    }

    fn polled(way: &[Step<Instruction>], general: &[u64]) -> Option<Poll> {
        poll::polled(way, general)
    }
}

impl Engine<'_, X86> {
    /// What a call or jump through memory or a register reaches.
    fn callee(&mut self, p: &mut Path, i: &Instruction) -> Callee {
        if i.op0_kind() == OpKind::Memory
            && let Some(callee) = self.address(p, i).as_const().and_then(|slot| self.slot_callee(slot))
        {
            return callee;
        }
        let target = self.read(p, i, 0);
        self.pointer_callee(target)
    }

    fn compute(&mut self, p: &mut Path, i: &Instruction) {
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
            M::Cmp | M::Test | M::Bt => self.comparison(p, i),
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
                self.write(p, i, 0, a.add(&signed(&b, operand_size(i, 0)), at));
                self.write(p, i, 1, a);
                p.flags = None;
            }
            M::Cmpxchg => {
                let old = self.read(p, i, 0);
                let new = self.read(p, i, 1);
                let expected = p.registers[RAX].clone();
                let size = operand_size(i, 0);
                self.compare(p, size, old.clone(), expected, false);
                self.write(p, i, 0, new);
                p.registers[RAX] = old;
            }
            mnemonic if is_cmov(mnemonic) => {
                let value = self.read(p, i, 1);
                let mut other = p.clone();
                self.write(&mut other, i, 0, value);
                other.pc = i.next_ip();
                self.fork(other);
            }
            mnemonic if is_set(mnemonic) => {
                let value = self.set(p);
                self.write(p, i, 0, value);
            }
            _ => self.anything_else(p, i),
        }
    }

    fn comparison(&mut self, p: &mut Path, i: &Instruction) {
        let size = operand_size(i, 0);
        let left = self.read(p, i, 0);
        let right = self.read(p, i, 1);
        let (right, mask) = match i.mnemonic() {
            M::Test if left == right => (Expr::constant(0), false),
            M::Test => (right, true),
            // The bit's number; where it is computed, which bit it is stays unknown.
            M::Bt => (right.as_const().map_or_else(|| p.unknown(), |n| Expr::constant(1 << (n & 63))), true),
            _ => (right, false),
        };
        self.compare(p, size, left, right, mask);
    }

    fn arithmetic(&mut self, p: &mut Path, i: &Instruction) -> Expr {
        let at = p.pc;
        let size = operand_size(i, 0);
        if matches!(i.mnemonic(), M::Xor | M::Sub) && same_registers(i) {
            return Expr::constant(0);
        }
        let (a, b) = match i.op_count() {
            1 => (self.read(p, i, 0), Expr::constant(0)),
            3 => (self.read(p, i, 1), self.read(p, i, 2)),
            _ => (self.read(p, i, 0), self.read(p, i, 1)),
        };
        let both = a.as_const().zip(b.as_const());
        // Immediates of 32-bit operations are signed numbers to the sums they end up in.
        let value = match i.mnemonic() {
            M::Add => a.add(&signed(&b, size), at),
            M::Sub => a.sub(&signed(&b, size), at),
            M::Inc => a.plus(1, at),
            M::Dec => a.plus(-1, at),
            M::Neg => Expr::constant(0).sub(&a, at),
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
            M::And => a.and(&b, at),
            // `or r, -1` is how compilers load -1.
            M::Or if b.as_const().is_some_and(|v| sign_extend(v, size) == u64::MAX) => b,
            M::Or => a.or(&b, at),
            M::Xor => a.xor(&b, at),
            M::Shr => match both {
                Some((x, y)) if y < 64 => Expr::constant(x >> y),
                _ => Expr::op(Op::Shr, &a, &b, at),
            },
            M::Sar => Expr::op(Op::Sar, &a, &b, at),
            _ => Expr::op(Op::Not, &a, &Expr::constant(0), at),
        };
        cut(value, size)
    }

    /// Instructions without a rule: what they read is recorded, what they write becomes unknown.
    fn anything_else(&mut self, p: &mut Path, i: &Instruction) {
        let info = self.isa.info.info(i).clone();
        for memory in info.used_memory() {
            let base = self.place(p, i, memory.base(), memory.index(), memory.scale(), memory.displacement());
            let addr = if memory.segment() == R::FS { base.add(&Expr::leaf(Kind::ThreadPointer), p.pc) } else { base };
            let size = u8::try_from(memory.memory_size().size()).unwrap_or(0);
            if matches!(memory.access(), OpAccess::Read | OpAccess::CondRead | OpAccess::ReadWrite) {
                self.load(p, &addr, size);
            }
            if matches!(memory.access(), OpAccess::Write | OpAccess::CondWrite | OpAccess::ReadWrite) {
                let value = p.unknown();
                self.store(p, &addr, size, value, i.has_lock_prefix());
            }
        }
        for used in info.used_registers() {
            let read_only = matches!(used.access(), OpAccess::Read | OpAccess::CondRead | OpAccess::NoMemAccess);
            let full = used.register().full_register();
            if !read_only && full.is_gpr64() {
                p.forget(full.number());
            } else if !read_only && full.is_vector_register() && full.number() < 16 {
                p.forget_vector(full.number());
            }
        }
        if i.mnemonic() == M::Syscall {
            p.forget(RAX);
        }
        p.flags = None;
    }

    // ---- operands ----

    fn read(&mut self, p: &mut Path, i: &Instruction, n: u32) -> Expr {
        match i.op_kind(n) {
            OpKind::Register => register(p, i.op_register(n)),
            OpKind::Memory => {
                let addr = self.address(p, i);
                let size = operand_size(i, n);
                // The thread control block starts with its own address.
                if matches!(addr.kind(), Kind::ThreadPointer) && size == 8 {
                    return addr;
                }
                self.load(p, &addr, size)
            }
            OpKind::NearBranch64 => Expr::constant(i.near_branch_target()),
            _ => match i.try_immediate(n) {
                Ok(value) => Expr::constant(value & mask(operand_size(i, 0))),
                Err(_) => p.unknown(),
            },
        }
    }

    fn write(&mut self, p: &mut Path, i: &Instruction, n: u32, value: Expr) {
        match i.op_kind(n) {
            OpKind::Register => {
                let target = i.op_register(n);
                let full = target.full_register();
                if matches!(target, R::AH | R::BH | R::CH | R::DH) {
                    p.forget(full.number());
                } else if full.is_gpr64() {
                    p.registers[full.number()] = value;
                } else if full.is_vector_register() && full.number() < 16 {
                    p.set_vector(full.number(), value);
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
        let mut addr = match base {
            R::None => Expr::constant(displacement),
            base => register(p, base).plus(displacement as i64, p.pc),
        };
        if index != R::None {
            addr = addr.add(&register(p, index).times(u64::from(scale), p.pc), p.pc);
        }
        addr
    }
}

fn register(p: &Path, r: R) -> Expr {
    let full = r.full_register();
    if matches!(r, R::AH | R::BH | R::CH | R::DH) {
        return p.unknown();
    }
    if full.is_gpr64() {
        p.registers[full.number()].clone()
    } else if full.is_vector_register() && full.number() < 16 {
        p.vector(full.number())
    } else {
        p.unknown()
    }
}

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
