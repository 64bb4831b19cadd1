//! What a call instruction called.
//!
//! A function that ends in a jump to another is not on the stack any more: `GOMP_parallel` waits for its team from
//! within `gomp_team_end`, and an internal function of a stripped library has no name. The instruction before the return
//! address still says which function was called.

use std::ops::{ControlFlow, Range};

use ompd_layout::code::{self, Operand, Stub, Transfer, TransferKind};
use ompd_process::{Addr, ElfFile, Target, TargetExt};

use crate::call_sites::MAX_FUNCTION;
use crate::frame::RegisterSet;
use crate::image::{Image, Images};

/// What the call before the return address `returns_to` (in `image`) called, as an address of the target. `registers` are
/// those of the calling frame: only registers that calls preserve still hold what they held.
pub(crate) fn callee(
    target: &dyn Target,
    images: &Images<'_>,
    returns_to: Addr,
    registers: &RegisterSet,
) -> Option<Addr> {
    let image = images.at(returns_to.back(1))?;
    let info = image.info.as_ref()?;
    let call = info.calls().call(info.file(), returns_to.back(image.bias).0)?;
    match call {
        TransferKind::Call(to) => Some(through_stub(target, image, info.file(), to)),
        TransferKind::CallThrough(Some(Operand::Slot(slot))) => target.read_ptr(Addr(slot).offset(image.bias)).ok(),
        // The others may hold something else by now (psABI x86-64, 3.2.1; AAPCS64, 6.1.1).
        TransferKind::CallThrough(Some(Operand::Register(register))) => {
            let roles = &info.file().arch().machine.facts()?.registers;
            registers.get(register).filter(|_| roles.preserved.contains(&register)).map(Addr)
        }
        _ => None,
    }
    .filter(|addr| images.at(*addr).is_some())
}

/// Where the indirect call before the return address `returns_to` went, if nothing has been executed since: `registers` are
/// those at the call, `word` reads memory.
pub(crate) fn went_to(
    images: &Images<'_>,
    returns_to: Addr,
    registers: &RegisterSet,
    word: &dyn Fn(Addr) -> Option<u64>,
) -> Option<Addr> {
    let image = images.at(returns_to.back(1))?;
    let info = image.info.as_ref()?;
    let call = info.calls().call(info.file(), returns_to.back(image.bias).0)?;
    let TransferKind::CallThrough(Some(operand)) = call else { return None };
    match operand {
        Operand::Register(register) => registers.get(register).map(Addr),
        Operand::Slot(slot) => word(Addr(slot).offset(image.bias)).map(Addr),
        Operand::Memory { base, offset } => word(Addr(registers.get(base)?.wrapping_add(offset))).map(Addr),
        Operand::Indexed { base, index, scale, offset } => {
            let part = |register: Option<u16>| register.map_or(Some(0), |register| registers.get(register));
            let index = part(index)?.wrapping_mul(u64::from(scale));
            word(Addr(part(base)?.wrapping_add(index).wrapping_add(offset))).map(Addr)
        }
    }
}

/// True if the call before the return address `returns_to` called what a pointer said, as bodies of constructs are
/// called, and not a function known by its name.
pub(crate) fn by_pointer(images: &Images<'_>, returns_to: Addr) -> bool {
    let call = images.at(returns_to.back(1)).and_then(|image| {
        let info = image.info.as_ref()?;
        info.calls().call(info.file(), returns_to.back(image.bias).0)
    });
    matches!(call, Some(TransferKind::CallThrough(operand)) if !matches!(operand, Some(Operand::Slot(_))))
}

/// True if the function that begins at `from` jumps to where the one at `to` begins: a call that was its last act.
pub(crate) fn jumps(target: &dyn Target, images: &Images<'_>, from: Addr, to: Addr) -> bool {
    reaches(images, from, &|image, file, range, transfer| match transfer.kind {
        TransferKind::Jump(at) => !range.contains(&at) && through_stub(target, image, file, at) == to,
        TransferKind::JumpThrough(Some(Operand::Slot(slot))) => {
            target.read_ptr(Addr(slot).offset(image.bias)).is_ok_and(|at| at == to)
        }
        _ => false,
    })
}

/// True if the function that begins at `from` calls, by its address, the one that begins at `to`.
pub(crate) fn calls(target: &dyn Target, images: &Images<'_>, from: Addr, to: Addr) -> bool {
    reaches(
        images,
        from,
        &|image, file, _, transfer| matches!(transfer.kind, TransferKind::Call(at) if through_stub(target, image, file, at) == to),
    )
}

/// A test of an instruction: in which image and file it is, and the extent of its function.
type Test<'a> = dyn Fn(&Image<'_>, &ElfFile, &Range<u64>, &Transfer) -> bool + 'a;

/// True if a call or jump of the function that begins at `from` passes the test.
fn reaches(images: &Images<'_>, from: Addr, test: &Test<'_>) -> bool {
    let Some(image) = images.at(from) else { return false };
    let Some(info) = &image.info else { return false };
    let file = info.file();
    let start = from.back(image.bias).0;
    let Some(range) = file.function_range(start).filter(|range| range.start == start) else { return false };
    let length = range.end.saturating_sub(range.start);
    let machine = file.arch().machine;
    if machine.facts().is_none() || length > MAX_FUNCTION || !info.calls().spend(length) {
        return false;
    }
    let Some(code) = file.bytes_at(range.start, length) else { return false };
    let mut passed = false;
    let decoded = code::each_transfer(machine, code, range.start, &mut |transfer| {
        passed = transfer.is_some_and(|transfer| test(image, file, &range, &transfer));
        if passed { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    decoded.is_some() && passed
}

/// If there is a linker's stub at `at`, where it jumps; otherwise `at` itself.
fn through_stub(target: &dyn Target, image: &Image<'_>, file: &ElfFile, at: u64) -> Addr {
    let own = Addr(at).offset(image.bias);
    match code::stub(file, at) {
        Some(Stub::Slot(slot)) => target.read_ptr(Addr(slot).offset(image.bias)).unwrap_or(own),
        Some(Stub::Code(code)) => Addr(code).offset(image.bias),
        None => own,
    }
}
