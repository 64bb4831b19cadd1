//! Loops that do nothing but look at one word again and again until it changes.

use ompd_process::Machine;

use super::flow::Poll;
use super::machine;

/// The loop that a thread is in, if it is one that waits for a word to change.
///
/// `code` holds bytes of the target from address `at` on. `pc` is the next instruction, and `general` holds the
/// registers by their DWARF numbers. The result is proven, or `None`. Some way leads from `pc` back to `pc`, through at
/// most a dozen instructions. None of them writes memory or calls. Exactly one reads memory: four bytes, through a
/// register that none changes. What it reads is compared with something that does not change either. The loop continues
/// if both are equal. On x86-64 one of the instructions is `pause`; elsewhere runtimes wait without such a hint.
pub fn poll(machine: Machine, code: &[u8], at: u64, pc: u64, general: &[u64]) -> Option<Poll> {
    machine::of(machine)?.poll(code, at, pc, general)
}
