//! Loops that wait: one of the instructions is `pause`.

use iced_x86::{FlowControl, Instruction, InstructionInfoFactory, Mnemonic as M, OpAccess, OpKind, Register};

use super::registers::dwarf_register;
use crate::code::flow::{Poll, Step};

pub(super) fn next_steps(i: &Instruction) -> [Option<(u64, bool)>; 2] {
    match i.flow_control() {
        FlowControl::Next => [Some((i.next_ip(), false)), None],
        FlowControl::UnconditionalBranch => [Some((i.near_branch_target(), true)), None],
        FlowControl::ConditionalBranch => [Some((i.next_ip(), false)), Some((i.near_branch_target(), true))],
        _ => [None, None],
    }
}

/// Something an instruction compares.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Loaded,
    Register(Register),
    Value(u32),
}

pub(super) fn polled(way: &[Step<Instruction>], general: &[u64]) -> Option<Poll> {
    let mut info = InstructionInfoFactory::new();
    let mut written: Vec<Register> = Vec::new();
    let (mut load, mut pauses) = (None, false);
    for (place, Step { instruction: i, .. }) in way.iter().enumerate() {
        pauses |= i.mnemonic() == M::Pause;
        let effects = info.info(i);
        for register in effects.used_registers() {
            if !matches!(register.access(), OpAccess::Read | OpAccess::CondRead | OpAccess::None) {
                written.push(register.register().full_register());
            }
        }
        for memory in effects.used_memory().iter().filter(|m| !matches!(m.access(), OpAccess::NoMemAccess)) {
            if memory.access() != OpAccess::Read || memory.memory_size().size() != 4 || load.is_some() {
                return None;
            }
            load = Some(place);
        }
    }
    let place = load.filter(|_| pauses)?;
    let i = way[place].instruction;
    let value = |register: Register| {
        let number = usize::from(dwarf_register(register.full_register())?);
        (!written.contains(&register.full_register())).then(|| general.get(number).copied())?
    };
    let plain = i.memory_index() == Register::None && !matches!(i.memory_segment(), Register::FS | Register::GS);
    let addr = match i.memory_base() {
        _ if !plain => return None,
        Register::RIP => i.memory_displacement64(),
        base if base.is_gpr64() => value(base)?.wrapping_add(i.memory_displacement64()),
        _ => return None,
    };
    let (to, sides, compare) = match i.mnemonic() {
        M::Mov if i.op0_kind() == OpKind::Register => {
            // Behind the load, perhaps around the loop, comes the comparison of what was loaded.
            let loaded = i.op0_register();
            let later = (1..way.len()).map(|n| (place + n) % way.len());
            let touches = |n: &usize| {
                let i = way[*n].instruction;
                matches!(i.mnemonic(), M::Cmp | M::Test) && (0..i.op_count()).any(|o| i.op_register(o) == loaded)
            };
            let compare =
                later.clone().take_while(|n| !changes(&mut info, &way[*n].instruction, loaded)).find(touches)?;
            (Some(loaded), way[compare].instruction, compare)
        }
        M::Cmp => (None, i, place),
        _ => return None,
    };
    let side = |operand: u32| match sides.op_kind(operand) {
        OpKind::Register if Some(sides.op_register(operand)) == to => Some(Side::Loaded),
        OpKind::Register if sides.op_register(operand).is_gpr32() => Some(Side::Register(sides.op_register(operand))),
        OpKind::Memory => Some(Side::Loaded),
        OpKind::Immediate32 | OpKind::Immediate8to32 => Some(Side::Value(sides.immediate(operand) as u32)),
        _ => None,
    };
    let expected = match (sides.mnemonic(), side(0)?, side(1)?) {
        (M::Test, Side::Loaded, Side::Loaded) => 0,
        (M::Cmp, Side::Loaded, Side::Register(r)) | (M::Cmp, Side::Register(r), Side::Loaded) => value(r)? as u32,
        (M::Cmp, Side::Loaded, Side::Value(v)) => v,
        _ => return None,
    };
    // The next instruction is the jump that leaves, or does not, on equality.
    let next = &way[(compare + 1) % way.len()];
    let equal = matches!((next.instruction.mnemonic(), next.jumps), (M::Je, true) | (M::Jne, false));
    equal.then_some(Poll { addr, expected })
}

fn changes(info: &mut InstructionInfoFactory, i: &Instruction, register: Register) -> bool {
    info.info(i).used_registers().iter().any(|used| {
        used.register().full_register() == register.full_register()
            && !matches!(used.access(), OpAccess::Read | OpAccess::CondRead | OpAccess::None)
    })
}

#[cfg(test)]
mod tests {
    use ompd_process::Machine;

    use crate::code::Poll;

    fn poll(code: &[u8], at: u64, pc: u64, general: &[u64]) -> Option<Poll> {
        crate::code::poll(Machine::X86_64, code, at, pc, general)
    }

    /// `mov ecx,[rbx]; cmp ebp,ecx; jne +9; pause; add rax,1; cmp rax,rdx; jne -17`, as libgomp's barrier spins.
    const SPIN: [u8; 17] =
        [0x8b, 0x0b, 0x39, 0xcd, 0x75, 0x0b, 0xf3, 0x90, 0x48, 0x83, 0xc0, 0x01, 0x48, 0x39, 0xd0, 0x75, 0xef];

    fn registers() -> [u64; 17] {
        let mut general = [0; 17];
        (general[3], general[6]) = (0x7000, 0xffff_ffff_0000_0008);
        general
    }

    #[test]
    fn every_place_in_the_loop_tells_the_same() {
        let word = Some(Poll { addr: 0x7000, expected: 8 });
        for pc in [0, 2, 4, 6, 8, 12, 15] {
            assert_eq!(poll(&SPIN, 0x1000, 0x1000 + pc, &registers()), word, "{pc}");
        }
        assert_eq!(poll(&SPIN, 0x1000, 0x1011, &registers()), None);
        assert_eq!(poll(&SPIN, 0x1000, 0x0fff, &registers()), None);
    }

    #[test]
    fn a_loop_that_may_do_something_else_is_not_judged() {
        let changed = |at: usize, bytes: &[u8]| {
            let mut code = SPIN;
            code[at..at + bytes.len()].copy_from_slice(bytes);
            poll(&code, 0x1000, 0x1006, &registers())
        };
        // Each case changes one thing. There is no pause. The load is a store (mov [rbx],ecx). The base changes (add
        // rbx,1). The comparison reads memory as well (cmp ecx,[rbx], since cmp [rbp],ecx would be longer). The loop
        // leaves on equality (je).
        assert_eq!(changed(6, &[0x66, 0x90]), None);
        assert_eq!(changed(0, &[0x89, 0x0b]), None);
        assert_eq!(changed(8, &[0x48, 0x83, 0xc3, 0x01]), None);
        assert_eq!(changed(2, &[0x3b, 0x0b]), None);
        assert_eq!(changed(4, &[0x74]), None);
        assert!(changed(0, &SPIN[..1]).is_some());
    }

    /// `cmp [rip+8],0x2` with a jump back over a pause, and garbage.
    #[test]
    fn words_of_the_image_are_found_and_garbage_is_nothing() {
        let code = [0xf3, 0x90, 0x83, 0x3d, 0x08, 0x00, 0x00, 0x00, 0x02, 0x74, 0xf5];
        assert_eq!(poll(&code, 0x1000, 0x1000, &[0; 17]), Some(Poll { addr: 0x1011, expected: 2 }));
        for seed in 0..200u8 {
            let code: Vec<u8> = (0..64u8).map(|n| n.wrapping_mul(seed).rotate_left(3) ^ seed).collect();
            assert_eq!(poll(&code, 0, 0, &[]), None);
        }
    }
}
