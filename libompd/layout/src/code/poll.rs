//! Loops that do nothing but look at one word again and again until it changes.

use iced_x86::{
    Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, Mnemonic as M, OpAccess, OpKind,
    Register,
};

use super::x86::dwarf_register;

/// Instructions of such a loop at most.
const LONGEST: usize = 12;
/// Ways through branches that are tried.
const TRIES: usize = 256;

/// A word that is looked at, as long as it has a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Poll {
    /// Its address in the target.
    pub addr: u64,
    /// The loop goes on as long as the word (32 bits) is this.
    pub expected: u32,
}

/// The loop of x86-64 instructions that a thread is in, if it is one that waits for a word to change.
///
/// `code` are bytes of the target from address `at` on, `pc` the next instruction and `general` the registers by their
/// DWARF numbers. It is proven, or `None`: some way leads from `pc` back to `pc`, through at most a dozen instructions. One
/// of them is `pause`; none writes memory or calls; exactly one reads memory, four bytes, through a register that none
/// changes; what was read is compared with something that does not change either, and the way goes on if both are equal.
pub fn poll(code: &[u8], at: u64, pc: u64, general: &[u64]) -> Option<Poll> {
    let mut search = Search { code, at, pc, tries: 0, found: Vec::new() };
    search.follow(pc, &mut Vec::new());
    let mut polls: Vec<Poll> = search.found.iter().filter_map(|way| judge(way, general)).collect();
    polls.dedup();
    match polls[..] {
        [poll] => Some(poll),
        _ => None,
    }
}

/// An instruction, and whether the way takes its jump.
type Way = Vec<(Instruction, bool)>;

struct Search<'a> {
    code: &'a [u8],
    at: u64,
    pc: u64,
    tries: usize,
    /// Ways from `pc` back to it.
    found: Vec<Way>,
}

impl Search<'_> {
    fn decode(&self, pc: u64) -> Option<Instruction> {
        let skip = usize::try_from(pc.checked_sub(self.at)?).ok()?;
        let i = Decoder::with_ip(64, self.code.get(skip..)?, pc, DecoderOptions::NONE).decode();
        (!i.is_invalid()).then_some(i)
    }

    /// As deep as a way is long.
    fn follow(&mut self, pc: u64, way: &mut Way) {
        self.tries += 1;
        if !way.is_empty() && pc == self.pc {
            self.found.push(way.clone());
            return;
        }
        if way.len() == LONGEST || self.tries > TRIES {
            return;
        }
        let Some(i) = self.decode(pc) else { return };
        let next: &[(u64, bool)] = match i.flow_control() {
            FlowControl::Next => &[(i.next_ip(), false)],
            FlowControl::UnconditionalBranch => &[(i.near_branch_target(), true)],
            FlowControl::ConditionalBranch => &[(i.next_ip(), false), (i.near_branch_target(), true)],
            _ => return,
        };
        for (to, jumps) in next {
            way.push((i, *jumps));
            self.follow(*to, way);
            way.pop();
        }
    }
}

/// Something an instruction compares.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Loaded,
    Register(Register),
    Value(u32),
}

fn judge(way: &Way, general: &[u64]) -> Option<Poll> {
    let mut info = InstructionInfoFactory::new();
    let mut written: Vec<Register> = Vec::new();
    let (mut load, mut pauses) = (None, false);
    for (place, (i, _)) in way.iter().enumerate() {
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
    let (i, _) = way[place];
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
                let (i, _) = way[*n];
                matches!(i.mnemonic(), M::Cmp | M::Test) && (0..i.op_count()).any(|o| i.op_register(o) == loaded)
            };
            let compare = later.clone().take_while(|n| !changes(&mut info, &way[*n].0, loaded)).find(touches)?;
            (Some(loaded), way[compare].0, compare)
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
    let (jump, jumps) = way[(compare + 1) % way.len()];
    let equal = matches!((jump.mnemonic(), jumps), (M::Je, true) | (M::Jne, false));
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
    use super::{Poll, poll};

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
        // No pause; mov [rbx],ecx for the load; the base changes (add rbx,1); what it is compared with is loaded too
        // (cmp [rbp],ecx would be longer: cmp edx,[rbx] reads twice); leaves on equality (je).
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
