//! What is particular to the instructions of a machine: a folder for each, and one line in `MACHINES`.
//!
//! What else there is to know of a machine is in `ompd_process::machine`, which has a table like this one.

mod aarch64;
mod x86_64;

use std::collections::BTreeSet;
use std::marker::PhantomData;
use std::ops::Range;

use ompd_process::Machine;

use super::engine::{self, InstructionSet};
use super::flow::{EachTransfer, MadeFrame, Poll, Stub, Whose};
use super::image::CodeImage;
use super::loops;
use super::run::{Limits, Run};

/// All machines whose instructions are decoded.
static MACHINES: [&dyn Decoding; 2] = [&Of::<x86_64::X86>(PhantomData), &Of::<aarch64::Arm64>(PhantomData)];

/// What is asked about the code of a machine.
pub(super) trait Decoding: Sync {
    /// The machine.
    fn machine(&self) -> Machine;
    /// See [`engine::execute`].
    fn execute(&self, image: &dyn CodeImage, entry: u64, limits: &Limits) -> Run;
    /// See [`engine::sweep`].
    fn sweep(&self, image: &dyn CodeImage, range: Range<u64>) -> Run;
    /// See [`engine::may_store_words`].
    fn may_store_words(&self, image: &dyn CodeImage, range: Range<u64>, least: usize) -> bool;
    /// See [`InstructionSet::stub`].
    fn stub(&self, image: &dyn CodeImage, at: u64) -> Option<Stub>;
    /// See [`InstructionSet::made_frame`].
    fn made_frame(&self, code: &[u8]) -> Option<MadeFrame>;
    /// See [`InstructionSet::transfers`].
    fn transfers(&self, bytes: &[u8], start: u64, each: EachTransfer<'_>);
    /// See [`InstructionSet::table_targets`].
    fn table_targets(
        &self,
        image: &dyn CodeImage,
        code: &[u8],
        start: u64,
        whose: &dyn Fn(u64) -> Whose,
    ) -> Option<BTreeSet<u64>>;
    /// See [`loops::find`].
    fn poll(&self, code: &[u8], at: u64, pc: u64, general: &[u64]) -> Option<Poll>;
    /// See [`InstructionSet::dwarf_register`].
    fn dwarf_register(&self, register: u8) -> Option<u16>;
}

/// The machine's decoding; `None` where there is none.
pub(super) fn of(machine: Machine) -> Option<&'static dyn Decoding> {
    MACHINES.iter().copied().find(|decoding| decoding.machine() == machine)
}

/// An instruction set as a [`Decoding`].
struct Of<I>(PhantomData<fn() -> I>);

impl<I: InstructionSet> Decoding for Of<I> {
    fn machine(&self) -> Machine {
        I::MACHINE
    }

    fn execute(&self, image: &dyn CodeImage, entry: u64, limits: &Limits) -> Run {
        engine::execute(I::new(), image, entry, limits)
    }

    fn sweep(&self, image: &dyn CodeImage, range: Range<u64>) -> Run {
        engine::sweep(I::new(), image, range)
    }

    fn may_store_words(&self, image: &dyn CodeImage, range: Range<u64>, least: usize) -> bool {
        engine::may_store_words::<I>(image, range, least)
    }

    fn stub(&self, image: &dyn CodeImage, at: u64) -> Option<Stub> {
        I::stub(image, at)
    }

    fn made_frame(&self, code: &[u8]) -> Option<MadeFrame> {
        I::made_frame(code)
    }

    fn transfers(&self, bytes: &[u8], start: u64, each: EachTransfer<'_>) {
        I::transfers(bytes, start, each);
    }

    fn table_targets(
        &self,
        image: &dyn CodeImage,
        code: &[u8],
        start: u64,
        whose: &dyn Fn(u64) -> Whose,
    ) -> Option<BTreeSet<u64>> {
        I::table_targets(image, code, start, whose)
    }

    fn poll(&self, code: &[u8], at: u64, pc: u64, general: &[u64]) -> Option<Poll> {
        loops::find::<I>(code, at, pc, general)
    }

    fn dwarf_register(&self, register: u8) -> Option<u16> {
        I::dwarf_register(register)
    }
}
