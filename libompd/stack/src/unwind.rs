//! From the registers of a thread and a copy of its stack to its frames.
//!
//! A frame is believed only where call frame information proves it, or code that makes the frame and is decoded. Frame pointers are
//! not followed instead, and the stack is not searched for addresses that look like code. Where the proof ends, so does the stack, with
//! the reason.
//! All registers that calls preserve are recovered on the way, not just those that lead to the next frame. Arguments of
//! the runtime's functions and variables of the program live in them.

use gimli::{EndianSlice, Evaluation, EvaluationResult, Location, Value};
use ompd_layout::code::{self, CodeImage as _};
use ompd_process::machine::Facts;
use ompd_process::{Addr, Registers, Target, TargetExt};

use crate::calls;
use crate::cfi::{Cfa, NoRow, Row, Rule};
use crate::frame::{Backtrace, End, Frame, ROOTS, RegisterSet};
use crate::image::{Image, Images};

/// Frames of one thread that are looked at. The regions of a deep recursion are at its outermost end.
const MAX_FRAMES: usize = 256 << 10;
/// Frames of all threads together. Where they are used up, [`LEAST_FRAMES`] are still looked at of each thread.
const TOTAL_FRAMES: usize = 512 << 10;
/// See [`TOTAL_FRAMES`].
const LEAST_FRAMES: usize = 256;
/// Operations of one DWARF expression. Compilers need a dozen.
const MAX_OPERATIONS: u32 = 128;
/// Times an expression may ask for memory or a register.
const MAX_REQUESTS: usize = 32;

/// How many frames may still be looked at.
#[derive(Debug)]
pub(crate) struct FramesLeft(usize);

impl FramesLeft {
    /// Those left for other threads when so many have been looked at.
    pub(crate) fn less(frames: usize) -> FramesLeft {
        FramesLeft(TOTAL_FRAMES.saturating_sub(frames))
    }
}

/// Reads a word of a stack.
pub(crate) type ReadWord<'a> = &'a dyn Fn(Addr) -> Result<u64, End>;

/// Follows the stack of the thread `lwp` of `target`, which has these registers.
pub(crate) fn unwind(
    target: &dyn Target,
    images: &Images<'_>,
    lwp: i32,
    registers: &Registers,
    left: &mut FramesLeft,
    read: ReadWord<'_>,
) -> Backtrace {
    let Some(facts) = target.arch().machine.facts() else {
        return Backtrace { frames: Vec::new(), end: End::Machine };
    };
    let roles = &facts.registers;
    let most = left.0.clamp(LEAST_FRAMES, MAX_FRAMES);
    let mut current = RegisterSet::of(lwp, registers);
    let mut pc = registers.pc;
    let mut exact = true;
    let mut frames = Vec::new();
    // The stack pointer may go back once for each signal handler that has a stack of its own.
    let end = loop {
        if frames.len() == most {
            break End::TooMany(most);
        }
        let mut frame = Frame { pc, exact, cfa: None, registers: current };
        let stepped = match step(images, facts, &frame, read) {
            // Nothing can be executed there: the call that went there is all there is.
            Err(End::NoModule(at)) if exact => {
                astray(target, images, facts, &frame, read).map(Some).ok_or(End::NoModule(at))
            }
            Err(End::LeftAsleep(at)) if registers.known == Registers::ALL => {
                Err(End::Unusable { at, why: "its base register is not known".to_owned() })
            }
            other => other,
        };
        if let Ok(Some(caller)) = &stepped {
            frame.cfa = Some(caller.cfa);
        }
        frames.push(frame);
        let caller = match stepped {
            Ok(Some(caller)) => caller,
            Ok(None) => break End::Root,
            Err(end) => break end,
        };
        let own_sp = current.get(roles.stack_pointer).unwrap_or(0);
        let next_sp = caller.registers.get(roles.stack_pointer).unwrap_or(0);
        // Only a leaf function may have its caller's stack pointer. Either calls leave the return address in a
        // register, or the function took it from the stack. glibc's vfork takes it
        // (sysdeps/unix/sysv/linux/x86_64/vfork.S).
        // What a signal interrupts may be a leaf function as well.
        let leaf = exact && (roles.link.is_some() || caller.by_register);
        if !caller.interrupted && (next_sp < own_sp || next_sp == own_sp && !leaf) {
            break End::NoProgress(pc);
        }
        (current, pc, exact) = (caller.registers, caller.pc, caller.interrupted);
    };
    left.0 = left.0.saturating_sub(frames.len());
    Backtrace { frames, end }
}

/// The caller of a frame at an address without code, with nothing executed since the call. The word the stack pointer
/// points to is the address behind a call instruction. With the current registers and memory, that instruction calls
/// this very address.
fn astray(
    target: &dyn Target,
    images: &Images<'_>,
    facts: &Facts,
    frame: &Frame,
    read: ReadWord<'_>,
) -> Option<Caller> {
    let roles = &facts.registers;
    // Where calls leave the return address in a register it is not looked for.
    if roles.link.is_some() {
        return None;
    }
    let sp = frame.registers.get(roles.stack_pointer)?;
    let pc = Addr(read(Addr(sp)).ok()?);
    let mut registers = frame.registers;
    let cfa = sp.wrapping_add(8);
    registers.set(roles.stack_pointer, Some(cfa));
    let word = |addr| read(addr).ok().or_else(|| target.read_u64(addr).ok());
    if calls::went_to(images, pc, &registers, &word)? != frame.pc {
        return None;
    }
    registers.set(roles.program_counter, Some(pc.0));
    Some(Caller { pc, cfa: Addr(cfa), registers, interrupted: false, by_register: false })
}

struct Caller {
    pc: Addr,
    cfa: Addr,
    registers: RegisterSet,
    interrupted: bool,
    /// Its callee had the return address in a register.
    by_register: bool,
}

/// The caller of a frame; `None` if it has none.
fn step(images: &Images<'_>, facts: &Facts, frame: &Frame, read: ReadWord<'_>) -> Result<Option<Caller>, End> {
    let roles = &facts.registers;
    let at = frame.lookup();
    let image = images.at(at).ok_or(End::NoModule(at))?;
    let info = image.info.as_ref().ok_or(End::NoFile(at))?;
    let row = match info.frames().row(at.back(image.bias).0) {
        Ok(row) => row,
        Err(NoRow::Uncovered) => return interrupted(image, facts, frame, read)?.map(Some).ok_or(End::Uncovered(at)),
        Err(NoRow::Malformed(error)) => return Err(End::Unusable { at, why: error.to_string() }),
        Err(NoRow::TooCostly) => {
            return Err(End::Unusable { at, why: "what it says is too long".to_owned() });
        }
    };
    if let Some(caller) = by_code(image, images, facts, frame, &row, read)? {
        return Ok(Some(caller));
    }
    let unusable = |why: &str| End::Unusable { at, why: why.to_owned() };
    let cfa = match &row.cfa {
        Cfa::Register(register, offset) => {
            let base = images.register(&frame.registers, *register).ok_or(End::LeftAsleep(at))?;
            base.wrapping_add_signed(*offset)
        }
        Cfa::Expression(place) => evaluate(images, &row, place.clone(), None, &frame.registers, read)?
            .ok_or_else(|| unusable("its expression does not give an address"))?,
    };
    let mut registers = frame.registers.kept(roles.kept());
    registers.set(roles.stack_pointer, Some(cfa));
    let mut returns = None;
    let mut root = false;
    let mut by_register = false;
    for (register, rule) in &row.rules {
        let value = match rule {
            Rule::Undefined => None,
            // As it was, also where only a stop would show it.
            Rule::Same if frame.registers.unseen(*register).is_some() && *register != row.return_register => continue,
            Rule::Same => images.register(&frame.registers, *register),
            Rule::SavedAt(offset) => Some(read(Addr(cfa.wrapping_add_signed(*offset)))?),
            Rule::CfaPlus(offset) => Some(cfa.wrapping_add_signed(*offset)),
            Rule::Register(other) => images.register(&frame.registers, *other),
            Rule::SavedAtExpression(place) => {
                match evaluate(images, &row, place.clone(), Some(cfa), &frame.registers, read)? {
                    Some(address) => Some(read(Addr(address))?),
                    None => None,
                }
            }
            Rule::Expression(place) => evaluate(images, &row, place.clone(), Some(cfa), &frame.registers, read)?,
        };
        if *register == row.return_register {
            (returns, root) = (value, *rule == Rule::Undefined);
            by_register = matches!(rule, Rule::Register(_));
        }
        registers.set(*register, value);
    }
    if root {
        return Ok(None);
    }
    let has_rule = row.rules.iter().any(|(register, _)| *register == row.return_register);
    if !has_rule {
        // Nothing said: the link register still holds it, as far as it is known.
        returns =
            if roles.keeps(row.return_register) { images.register(&registers, row.return_register) } else { None };
    }
    let pc = returns.ok_or_else(|| unusable("it does not tell the return address"))? & facts.address_bits;
    // Where a signal interrupted, zero is where the program went.
    if pc == 0 && !row.signal {
        // Anybody's stray store makes a return address zero. It ends a stack only where threads begin.
        let begins = image.module.symbol_at(at).is_some_and(|(symbol, _)| ROOTS.contains(&&*symbol.name));
        return if begins { Ok(None) } else { Err(End::ZeroReturn(at)) };
    }
    if !row.signal {
        // A call leaves nothing of the link register to its caller; after a signal all registers are as they were.
        if row.return_register != roles.program_counter {
            registers.set(row.return_register, None);
        }
    }
    registers.set(roles.program_counter, Some(pc));
    Ok(Some(Caller { pc: Addr(pc), cfa: Addr(cfa), registers, interrupted: row.signal, by_register }))
}

/// What a signal interrupted, of a frame that is the code to which its handler returns. `None` if it is not.
fn interrupted(image: &Image<'_>, facts: &Facts, frame: &Frame, read: ReadWord<'_>) -> Result<Option<Caller>, End> {
    let Some(signal_return) = &facts.signal_return else { return Ok(None) };
    let Ok(file) = &image.module.file else { return Ok(None) };
    if file.code_at(frame.pc.back(image.bias).0, signal_return.code.len()) != Some(signal_return.code) {
        return Ok(None);
    }
    let roles = &facts.registers;
    let Some(sp) = frame.registers.get(roles.stack_pointer) else { return Ok(None) };
    let mut registers = frame.registers;
    for number in 0..signal_return.count {
        let at = sp.wrapping_add(signal_return.registers + 8 * u64::from(number));
        registers.set(number, Some(read(Addr(at))?));
    }
    let (Some(pc), Some(cfa)) = (registers.get(roles.program_counter), registers.get(roles.stack_pointer)) else {
        return Ok(None);
    };
    Ok(Some(Caller { pc: Addr(pc), cfa: Addr(cfa), registers, interrupted: true, by_register: false }))
}

/// The caller of a function whose call frame information says nothing at all, while its code has made a frame. So it is with
/// `__kmp_invoke_microtask` of libomp on aarch64 (`z_Linux_asm.S`).
fn by_code(
    image: &Image<'_>,
    images: &Images<'_>,
    facts: &Facts,
    frame: &Frame,
    row: &Row,
    read: ReadWord<'_>,
) -> Result<Option<Caller>, End> {
    let roles = &facts.registers;
    let says_nothing = matches!(row.cfa, Cfa::Register(register, 0) if register == roles.stack_pointer);
    if roles.link != Some(row.return_register) || row.signal || !says_nothing || !row.rules.is_empty() {
        return Ok(None);
    }
    let Ok(file) = &image.module.file else { return Ok(None) };
    let Some(made) = code::made_frame(&**file, frame.pc.back(image.bias).0) else { return Ok(None) };
    let Some(base) = images.register(&frame.registers, made.base) else { return Ok(None) };
    let cfa = base.wrapping_add_signed(made.above);
    let mut registers = frame.registers.kept(roles.kept());
    registers.set(roles.stack_pointer, Some(cfa));
    for (register, offset) in &made.saved {
        registers.set(*register, Some(read(Addr(cfa.wrapping_add_signed(*offset)))?));
    }
    let Some(pc) = registers.get(row.return_register).map(|link| link & facts.address_bits) else { return Ok(None) };
    registers.set(row.return_register, None);
    registers.set(roles.program_counter, Some(pc));
    Ok(Some(Caller { pc: Addr(pc), cfa: Addr(cfa), registers, interrupted: false, by_register: false }))
}

/// Runs an expression of call frame information; `None` where it asks for what an unwinder has not.
fn evaluate(
    images: &Images<'_>,
    row: &Row,
    place: std::ops::Range<usize>,
    initial: Option<u64>,
    registers: &RegisterSet,
    read: ReadWord<'_>,
) -> Result<Option<u64>, End> {
    let Some(code) = row.section.get(place) else { return Ok(None) };
    let mut evaluation = Evaluation::new(EndianSlice::new(code, row.endian), row.encoding);
    evaluation.set_max_iterations(MAX_OPERATIONS);
    if let Some(value) = initial {
        evaluation.set_initial_value(value);
    }
    let mut result = evaluation.evaluate();
    for _ in 0..MAX_REQUESTS {
        result = match result {
            Ok(EvaluationResult::Complete) => {
                let pieces = evaluation.as_result();
                return Ok(match pieces {
                    [only] => match only.location {
                        Location::Address { address } => Some(address),
                        _ => None,
                    },
                    _ => None,
                });
            }
            Ok(EvaluationResult::RequiresRegister { register, .. }) => match images.register(registers, register.0) {
                Some(value) => evaluation.resume_with_register(Value::Generic(value)),
                None => return Ok(None),
            },
            Ok(EvaluationResult::RequiresMemory { address, size: 8, space: None, .. }) => {
                evaluation.resume_with_memory(Value::Generic(read(Addr(address))?))
            }
            _ => return Ok(None),
        };
    }
    Ok(None)
}
