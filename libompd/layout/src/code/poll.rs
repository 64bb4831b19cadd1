//! Loops that do nothing but look at one word again and again until it changes.

use ompd_process::Machine;

use super::engine::InstructionSet;
use super::machine;

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

/// The loop that a thread is in, if it is one that waits for a word to change.
///
/// `code` are bytes of the target from address `at` on, `pc` the next instruction and `general` the registers by their
/// DWARF numbers. It is proven, or `None`: some way leads from `pc` back to `pc`, through at most a dozen instructions.
/// None of them writes memory or calls; exactly one reads memory, four bytes, through a register that none changes; what was
/// read is compared with something that does not change either, and the way goes on if both are equal. On x86-64 one of the
/// instructions is `pause`; elsewhere runtimes wait without such a hint.
pub fn poll(machine: Machine, code: &[u8], at: u64, pc: u64, general: &[u64]) -> Option<Poll> {
    machine::of(machine)?.poll(code, at, pc, general)
}

/// One instruction of a way through a loop.
pub(super) struct Step<I: InstructionSet> {
    pub(super) instruction: I::Instruction,
    /// The way takes its jump.
    pub(super) jumps: bool,
}

impl<I: InstructionSet> Clone for Step<I> {
    fn clone(&self) -> Self {
        Step { instruction: self.instruction, jumps: self.jumps }
    }
}

/// [`poll`] for one instruction set.
pub(super) fn find<I: InstructionSet>(code: &[u8], at: u64, pc: u64, general: &[u64]) -> Option<Poll> {
    let mut search = Search::<I> { code, at, pc, tries: 0, found: Vec::new() };
    search.follow(pc, &mut Vec::new());
    let mut polls: Vec<Poll> = search.found.iter().filter_map(|way| I::polled(way, general)).collect();
    polls.dedup();
    match polls[..] {
        [poll] => Some(poll),
        _ => None,
    }
}

struct Search<'a, I: InstructionSet> {
    code: &'a [u8],
    at: u64,
    pc: u64,
    tries: usize,
    /// Ways from `pc` back to it.
    found: Vec<Vec<Step<I>>>,
}

impl<I: InstructionSet> Search<'_, I> {
    fn decode(&self, pc: u64) -> Option<I::Instruction> {
        let skip = usize::try_from(pc.checked_sub(self.at)?).ok()?;
        I::decode(self.code.get(skip..)?, pc)
    }

    /// As deep as a way is long.
    fn follow(&mut self, pc: u64, way: &mut Vec<Step<I>>) {
        self.tries += 1;
        if !way.is_empty() && pc == self.pc {
            self.found.push(way.clone());
            return;
        }
        if way.len() == LONGEST || self.tries > TRIES {
            return;
        }
        let Some(instruction) = self.decode(pc) else { return };
        for (to, jumps) in I::next_steps(&instruction, pc).into_iter().flatten() {
            way.push(Step { instruction, jumps });
            self.follow(to, way);
            way.pop();
        }
    }
}
