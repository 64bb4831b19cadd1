//! Loops that wait. libgomp's have no hint to the processor (`cpu_relax` is empty), so none is asked for.

use yaxpeax_arm::armv8::a64::{Instruction, Opcode as O, Operand, SizeCode};

use super::operands::{is_zero, number, target};
use crate::code::flow::{Poll, Step};

/// Conditions of branches ("Arm Architecture Reference Manual for A-profile", C1.2.4).
const EQ: u8 = 0;
const NE: u8 = 1;

pub(super) fn next_steps(i: &Instruction, at: u64) -> [Option<(u64, bool)>; 2] {
    let next = Some((at.wrapping_add(4), false));
    let jump = |o: &Operand| target(at, o).map(|to| (to, true));
    match i.opcode {
        O::B => [jump(&i.operands[0]), None],
        O::Bcc(_) | O::BCcc(_) => [next, jump(&i.operands[0])],
        O::CBZ | O::CBNZ => [next, jump(&i.operands[1])],
        O::TBZ | O::TBNZ => [next, jump(&i.operands[2])],
        _ => [next, None],
    }
}

/// What an instruction of such a loop does.
enum Act {
    /// Nothing that counts.
    Nothing,
    /// Loads the word at a register plus an offset.
    Load { to: u16, base: u16, offset: i32 },
    /// Changes a register.
    Write(u16),
    /// Compares two words.
    Compare(Side, Side),
    /// Goes on by the comparison before, if what was compared is equal.
    GoesOn { if_equal: bool },
    /// Goes on if a word is zero, or if it is not.
    Tests { register: u16, if_zero: bool },
}

/// Something an instruction compares.
#[derive(Clone, Copy)]
enum Side {
    Register(u16),
    Value(u32),
    Other,
}

/// `None` for all that a loop that only waits has no use for.
fn act(step: &Step<Instruction>) -> Option<Act> {
    let i = &step.instruction;
    let [first, second, third, _] = &i.operands;
    Some(match i.opcode {
        O::HINT | O::ISB | O::B => Act::Nothing,
        O::LDR | O::LDUR | O::LDAR | O::LDAPR => match (first, second) {
            (Operand::Register(SizeCode::W, to), Operand::RegPreIndex(base, offset, false)) => {
                Act::Load { to: *to, base: *base, offset: *offset }
            }
            _ => return None,
        },
        O::SUBS if is_zero(first) => Act::Compare(side(second), side(third)),
        O::ADD | O::ADDS | O::SUB | O::SUBS | O::ORR | O::MOVZ => match first {
            Operand::Register(_, to) | Operand::RegisterOrSP(_, to) => Act::Write(*to),
            _ => return None,
        },
        O::Bcc(EQ) | O::BCcc(EQ) => Act::GoesOn { if_equal: step.jumps },
        O::Bcc(NE) | O::BCcc(NE) => Act::GoesOn { if_equal: !step.jumps },
        O::CBZ | O::CBNZ => match first {
            Operand::Register(SizeCode::W, register) => {
                Act::Tests { register: *register, if_zero: (i.opcode == O::CBZ) == step.jumps }
            }
            _ => Act::Nothing,
        },
        O::Bcc(_) | O::BCcc(_) | O::TBZ | O::TBNZ => Act::Nothing,
        _ => return None,
    })
}

fn side(o: &Operand) -> Side {
    match *o {
        Operand::Register(SizeCode::W, 31) => Side::Value(0),
        Operand::Register(SizeCode::W, n) | Operand::RegisterOrSP(SizeCode::W, n) => Side::Register(n),
        Operand::RegShift(_, 0, SizeCode::W, n) if n != 31 => Side::Register(n),
        _ => number(o).and_then(|value| u32::try_from(value).ok()).map_or(Side::Other, Side::Value),
    }
}

pub(super) fn polled(way: &[Step<Instruction>], general: &[u64]) -> Option<Poll> {
    let acts: Vec<Act> = way.iter().map(act).collect::<Option<_>>()?;
    let loads = acts.iter().enumerate().filter_map(|(place, act)| match act {
        Act::Load { to, base, offset } => Some((place, *to, *base, *offset)),
        _ => None,
    });
    let [(place, loaded, base, offset)] = loads.collect::<Vec<_>>()[..] else { return None };
    let writes = |act: &Act, register: u16| matches!(act, Act::Write(to) | Act::Load { to, .. } if *to == register);
    let value = |register: u16| {
        let kept = !acts.iter().any(|act| writes(act, register));
        kept.then(|| general.get(usize::from(register)).copied())?
    };
    let addr = value(base)?.wrapping_add_signed(offset.into());
    // Behind the load, perhaps around the loop, comes the comparison of what was loaded.
    for n in (1..acts.len()).map(|n| (place + n) % acts.len()) {
        let expected = match acts[n] {
            Act::Tests { register, if_zero } if register == loaded => {
                return if_zero.then_some(Poll { addr, expected: 0 });
            }
            Act::Compare(Side::Register(one), other) if one == loaded => other,
            Act::Compare(other, Side::Register(one)) if one == loaded => other,
            ref act if writes(act, loaded) => return None,
            _ => continue,
        };
        let expected = match expected {
            Side::Register(register) => value(register)? as u32,
            Side::Value(value) => value,
            Side::Other => return None,
        };
        // The next instruction is the branch that leaves, or does not, on equality.
        let equal = matches!(acts[(n + 1) % acts.len()], Act::GoesOn { if_equal: true });
        return equal.then_some(Poll { addr, expected });
    }
    None
}

#[cfg(test)]
mod tests {
    use ompd_process::Machine;

    use crate::code::Poll;

    fn poll(words: &[u32], pc: u64, general: &[u64]) -> Option<Poll> {
        let code: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        crate::code::poll(Machine::AARCH64, &code, 0x1000, pc, general)
    }

    /// As libgomp 12 of Debian spins for a nest lock.
    const SPIN: [u32; 6] = [
        0xb940_0262, // ldr w2, [x19]
        0x6b02_02df, // cmp w22, w2
        0x54ff_fbe1, // b.ne somewhere else
        0x9100_0400, // add x0, x0, #1
        0xeb01_001f, // cmp x0, x1
        0x54ff_ff61, // b.ne .-20
    ];

    fn registers() -> [u64; 33] {
        let mut general = [0; 33];
        (general[19], general[22]) = (0x7000, 0xffff_ffff_0000_0008);
        general
    }

    #[test]
    fn every_place_in_the_loop_tells_the_same() {
        let word = Some(Poll { addr: 0x7000, expected: 8 });
        for n in 0..6 {
            assert_eq!(poll(&SPIN, 0x1000 + 4 * n, &registers()), word, "{n}");
        }
        assert_eq!(poll(&SPIN, 0x1018, &registers()), None);
        assert_eq!(poll(&SPIN, 0x0ffc, &registers()), None);
    }

    #[test]
    fn a_word_that_is_compared_with_zero() {
        // ldr w1, [x19, #4]; yield; cbz w1, .-8
        let words = [0xb940_0661, 0xd503_203f, 0x34ff_ffc1];
        assert_eq!(poll(&words, 0x1004, &registers()), Some(Poll { addr: 0x7004, expected: 0 }));
        // cbnz: as long as it is anything else
        assert_eq!(poll(&[words[0], words[1], 0x35ff_ffc1], 0x1004, &registers()), None);
        // ldar w1, [x19]; cmp w1, #2; b.eq .-8
        let words = [0x88df_fe61, 0x7100_083f, 0x54ff_ffc0];
        assert_eq!(poll(&words, 0x1000, &registers()), Some(Poll { addr: 0x7000, expected: 2 }));
    }

    #[test]
    fn a_loop_that_may_do_something_else_is_not_judged() {
        let changed = |at: usize, word: u32| {
            let mut code = SPIN;
            code[at] = word;
            poll(&code, 0x1008, &registers())
        };
        assert!(changed(3, SPIN[3]).is_some());
        // str w2, [x19]; add x19, x19, #1; ldr w19, [x19]; b.eq; svc #0; bl; ldr x2, [x19]
        assert_eq!(changed(0, 0xb900_0262), None);
        assert_eq!(changed(3, 0x9100_0673), None);
        assert_eq!(changed(0, 0xb940_0273), None);
        assert_eq!(changed(2, 0x54ff_fbe0), None);
        assert_eq!(changed(3, 0xd400_0001), None);
        assert_eq!(changed(3, 0x9400_0002), None);
        assert_eq!(changed(0, 0xf940_0262), None);
    }
}
