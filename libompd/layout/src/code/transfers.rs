//! Where the instructions of a function may go on, one after the other: calls, jumps, returns.

use std::collections::BTreeSet;
use std::ops::{ControlFlow, Range};
use std::sync::Arc;

use ompd_process::Machine;

use super::flow::{EachTransfer, MadeFrame, Stub, Transfer, Whose};
use super::image::{CodeImage, Slot};
use super::machine;

/// Bytes of a function that are looked at, at most.
const MAX_BYTES: u64 = 256 << 10;

/// All such instructions in `range`, in their order. `None` if something in it is no instruction, or it is too long: then there may
/// be others.
pub fn transfers(image: &dyn CodeImage, range: Range<u64>) -> Option<Vec<Transfer>> {
    let bytes = code_of(image, &range)?;
    let (mut found, mut instructions) = (Vec::new(), true);
    each_transfer(image.machine(), bytes, range.start, &mut |transfer| match transfer {
        Some(transfer) => {
            found.push(transfer);
            ControlFlow::Continue(())
        }
        None => {
            instructions = false;
            ControlFlow::Break(())
        }
    })?;
    instructions.then_some(found)
}

/// Where the jumps of the function in `range` go whose targets are in tables, as `switch` makes them. There may be more targets than
/// the function has. `whose` tells of an address whose code is there. `None` where a jump may go elsewhere, or the machine's tables are
/// not read.
pub fn table_targets(image: &dyn CodeImage, range: Range<u64>, whose: &dyn Fn(u64) -> Whose) -> Option<BTreeSet<u64>> {
    let code = code_of(image, &range)?;
    machine::of(image.machine())?.table_targets(image, code, range.start, whose)
}

/// All bytes of a function that is not too long.
fn code_of<'i>(image: &'i dyn CodeImage, range: &Range<u64>) -> Option<&'i [u8]> {
    let length = range.end.checked_sub(range.start).filter(|length| *length <= MAX_BYTES)?;
    image.code_at(range.start, usize::try_from(length).ok()?).filter(|code| code.len() as u64 == length)
}

/// Makes what the decoder needs before its first instruction. It is made by itself when that comes, and takes about as long as to
/// find a layout that is shipped: a thread that has nothing else to do can begin with it.
pub fn prepare(machine: Machine) {
    let nothing = each_transfer(machine, &[], 0, &mut |_| ControlFlow::Continue(()));
    debug_assert!(nothing.is_some() || machine::of(machine).is_none());
}

/// Passes each such instruction in `bytes` to `each`, in order, and `None` for bytes that are no instruction. It stops
/// when `each` returns `Break`. The first byte lies at `start`. Returns `None` if the machine's code is not decoded.
pub fn each_transfer(machine: Machine, bytes: &[u8], start: u64, each: EachTransfer<'_>) -> Option<()> {
    machine::of(machine)?.transfers(bytes, start, each);
    Some(())
}

/// The frame that a function has made when it is at `pc`, if its first instructions show it, and none after them up to `pc` takes that
/// back.
pub fn made_frame(image: &dyn CodeImage, pc: u64) -> Option<MadeFrame> {
    let begin = image.function(pc)?.start;
    let length = pc.checked_sub(begin).filter(|length| *length <= MAX_BYTES)?;
    let code = image.code_at(begin, usize::try_from(length).ok()?).filter(|code| code.len() as u64 == length)?;
    machine::of(image.machine())?.made_frame(code)
}

/// Where the code at an address jumps, if it is a linker's stub.
pub fn stub(image: &dyn CodeImage, at: u64) -> Option<Stub> {
    machine::of(image.machine())?.stub(image, at)
}

/// The function of another image that the code at an address leads to, if it is a linker's stub for one.
pub fn stub_of(image: &dyn CodeImage, at: u64) -> Option<Arc<str>> {
    match stub(image, at)? {
        Stub::Slot(slot) => match image.slot(slot)? {
            Slot::Symbol { name, .. } => Some(name),
            _ => None,
        },
        Stub::Code(_) => None,
    }
}
