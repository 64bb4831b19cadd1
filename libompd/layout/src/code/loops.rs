//! The ways once around a loop that may do nothing but wait.

use super::engine::InstructionSet;
use super::flow::{Poll, Step};

/// Instructions of such a loop at most.
const LONGEST: usize = 12;
/// Ways through branches that are tried.
const TRIES: usize = 256;

/// The loop around `pc`, as `super::poll` has it, for one instruction set.
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
    found: Vec<Vec<Step<I::Instruction>>>,
}

impl<I: InstructionSet> Search<'_, I> {
    fn decode(&self, pc: u64) -> Option<I::Instruction> {
        let skip = usize::try_from(pc.checked_sub(self.at)?).ok()?;
        I::decode(self.code.get(skip..)?, pc)
    }

    /// As deep as a way is long.
    fn follow(&mut self, pc: u64, way: &mut Vec<Step<I::Instruction>>) {
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
