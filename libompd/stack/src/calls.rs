//! What a call instruction called.
//!
//! A function that ends in a jump to another is not on the stack any more: `GOMP_parallel` waits for its team from
//! within `gomp_team_end`, and an internal function of a stripped library has no name. The instruction before the return
//! address still says which function was called.

use std::collections::{BTreeSet, HashMap};
use std::ops::{ControlFlow, Range};

use ompd_layout::code::{
    self, Beyond, CodeImage, Event, Expr, Kind, Limits, Load, Op, Operand, Slot, Store, Stub, Transfer, TransferKind,
    Whose,
};
use ompd_process::{Addr, ElfFile, Machine, Target, TargetExt};

use crate::call_sites::MAX_FUNCTION;
use crate::frame::{Frame, RegisterSet};
use crate::image::{FileInfo, Image, Images};

/// Begins with what it takes to find out what the first call called, in a thread of its own: others have files to read meanwhile.
pub fn prepare(machine: Machine) {
    // Where none can be started, it is made when it is needed.
    let _: std::io::Result<_> = std::thread::Builder::new().spawn(move || code::prepare(machine));
}

/// What the call before the return address `returns_to` (in `image`) called, as an address of the target. `registers` are
/// those of the calling frame: only registers that calls preserve still hold what they held.
pub(crate) fn callee(images: &Images<'_>, returns_to: Addr, registers: &RegisterSet) -> Option<Addr> {
    let image = images.at(returns_to.back(1))?;
    let info = image.info.as_ref()?;
    let call = info.calls().call(info.file(), returns_to.back(image.bias).0)?;
    match call {
        TransferKind::Call(to) => Some(through_stub(images, image, info.file(), to)),
        TransferKind::CallThrough(Some(Operand::Slot(slot))) => images.slot(Addr(slot).offset(image.bias)),
        // The others may hold something else by now (psABI x86-64, 3.2.1; AAPCS64, 6.1.1).
        TransferKind::CallThrough(Some(Operand::Register(register))) => {
            let roles = &info.file().arch().machine.facts()?.registers;
            roles.preserved.contains(&register).then(|| images.register(registers, register)).flatten().map(Addr)
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

/// The function that the call before the return address `returns_to` gives as argument number `index`. `None` unless
/// the code right before the call puts its address there, whichever way that code is reached.
pub(crate) fn function_argument(images: &Images<'_>, returns_to: Addr, index: u8) -> Option<Addr> {
    let found = constant_argument(images, returns_to, index)?;
    let image = images.at(returns_to.back(1))?;
    let start = found.back(image.bias).0;
    let begins = image.info.as_ref()?.file().function_range(start).is_some_and(|function| function.start == start);
    begins.then_some(found)
}

/// The address that the call before the return address `returns_to` gives as argument number `index`, under the same condition.
pub(crate) fn constant_argument(images: &Images<'_>, returns_to: Addr, index: u8) -> Option<Addr> {
    let argument = argument(images, returns_to, index)?;
    Some(Addr(argument.value.as_const()?).offset(images.at(returns_to.back(1))?.bias))
}

/// Argument number `index` of the call that frame `number` of `frames` (innermost first) is in. It is computed from the
/// current registers and memory: right if what the argument was computed from is unchanged.
pub(crate) fn argument_value(
    target: &dyn Target,
    images: &Images<'_>,
    frames: &[Frame],
    number: usize,
    index: u8,
) -> Option<Addr> {
    argument_within(target, images, frames, number, index, Is { number: false, depth: 0 }).map(Addr)
}

/// As [`argument_value`], of an argument that is a number and no address.
pub(crate) fn argument_number(
    target: &dyn Target,
    images: &Images<'_>,
    frames: &[Frame],
    number: usize,
    index: u8,
) -> Option<u64> {
    argument_within(target, images, frames, number, index, Is { number: true, depth: 0 })
}

/// What is asked for.
#[derive(Clone, Copy)]
struct Is {
    /// A number, and no address.
    number: bool,
    /// How many functions have passed it on.
    depth: usize,
}

fn argument_within(
    target: &dyn Target,
    images: &Images<'_>,
    frames: &[Frame],
    number: usize,
    index: u8,
    is: Is,
) -> Option<u64> {
    /// Functions that pass on what they were given.
    const MAX_DEPTH: usize = 8;
    let frame = frames.get(number).filter(|frame| !frame.exact && is.depth < MAX_DEPTH)?;
    let argument = argument(images, frame.pc, index)?;
    let image = images.at(frame.pc.back(1))?;
    let file = image.info.as_ref()?.file();
    let machine = file.arch().machine;
    let roles = &machine.facts()?.registers;
    // A constant outside the file's memory is a number.
    let address = |value| {
        let at = Addr(value).offset(image.bias);
        images.at(at).is_some_and(|other| other.bias == image.bias).then_some(at.0)
    };
    // What called another function, which has jumped here, gave its arguments to that one.
    let outer = frames.get(number + 1).filter(|outer| !outer.exact);
    let calls_this = || {
        let begins = Addr(argument.function).offset(image.bias);
        outer.and_then(|outer| callee(images, outer.pc, &outer.registers)) == Some(begins)
    };
    let from_start = argument.entry == argument.function && calls_this();
    let outside = Is { depth: is.depth + 1, ..is };
    let passed_on = |index| argument_within(target, images, frames, number + 1, index, outside);
    let given = code::Given {
        machine,
        address: &address,
        argument: &|index| if from_start { passed_on(index) } else { None },
        // The others may hold something else by now (psABI x86-64, 3.2.1; AAPCS64, 6.1.1).
        register: &|register, low| {
            let is_kept = roles.preserved.contains(&register) || roles.stack_pointer == register;
            let now = is_kept.then(|| images.register(&frame.registers, register)).flatten()?;
            match register == roles.stack_pointer {
                true => Some(now.wrapping_add_signed(argument.stack?.wrapping_neg())),
                // The code may have changed it before the call.
                false => code::held_at_entry(&argument.registers, machine, argument.entry, register, now, low),
            }
        },
        memory: &|at, size| {
            let at = Addr(at);
            match size {
                4 => target.read_u32(at).ok().map(u64::from),
                8 => target.read_u64(at).ok(),
                _ => None,
            }
        },
    };
    match is.number {
        true => code::number(&argument.value, argument.entry, &given),
        false => code::value(&argument.value, argument.entry, &given),
    }
}

/// An argument of a call.
struct Argument {
    /// Over what the registers held at `entry`, an address of the file; where the function begins there, also over its own arguments.
    value: Expr,
    entry: u64,
    /// Where the function begins.
    function: u64,
    /// What the code from `entry` on has added to the stack pointer, if that is known.
    stack: Option<i64>,
    /// What that code has made of the registers.
    registers: Vec<Expr>,
}

/// What the code right before a call gives it as argument number `index`, if it is the same on all ways through that code.
fn argument(images: &Images<'_>, returns_to: Addr, index: u8) -> Option<Argument> {
    let image = images.at(returns_to.back(1))?;
    let info = image.info.as_ref()?;
    let file = info.file();
    let returns_to = returns_to.back(image.bias).0;
    let function = file.function_range(returns_to.checked_sub(1)?)?;
    let transfers = transfers(image, function.clone())?;
    let call = transfers.iter().find(|transfer| transfer.next == returns_to)?.at;
    // The last place before the call that something may jump to, or go on from. Calls return, and keep the registers that
    // calls preserve.
    let returns = |transfer: &&Transfer| matches!(transfer.kind, TransferKind::Call(_) | TransferKind::CallThrough(_));
    let before =
        transfers.iter().filter(|transfer| transfer.at < call && !returns(transfer)).map(|transfer| transfer.next);
    let mut begin = before.max().unwrap_or(function.start);
    let mut elsewhere = BTreeSet::new();
    for transfer in &transfers {
        match transfer.kind {
            TransferKind::Jump(to) if function.contains(&to) => begin = if to <= call { begin.max(to) } else { begin },
            // A part of the function that lies elsewhere may jump back.
            TransferKind::Jump(to) => elsewhere.extend(file.function_range(to).map(|part| (part.start, part.end))),
            _ => {}
        }
    }
    if transfers.iter().any(leads_anywhere) {
        // Where tables of jumps lead, or the call may be reached in any way.
        for to in table_targets(info, &function, &elsewhere)? {
            match function.contains(&to) {
                true => begin = if to <= call { begin.max(to) } else { begin },
                false => elsewhere.extend(file.function_range(to).map(|part| (part.start, part.end))),
            }
        }
    }
    for (start, end) in elsewhere {
        let back = transfers_to(&self::transfers(image, start..end)?, begin + 1..call + 1);
        if back {
            return None;
        }
    }
    // Without jumps, only instructions that move a value by a condition make several paths of it.
    let limits = Limits { paths: 16, instructions: 1024, visits: 1, inline_depth: 0, inline_bytes: 0, beyond: true };
    let run = code::run(&Until { file, end: returns_to }, begin, &limits).ok()?;
    let paths: Vec<Option<(Expr, Option<Beyond>)>> = run
        .paths()
        .map(|events| {
            let events: Vec<&Event> = events.collect();
            let at = events.iter().position(|event| matches!(event, Event::Call(found) if found.at == call))?;
            let Event::Call(call) = events[at] else { return None };
            let value = call.argument(usize::from(index))?.clone();
            let is_current = !is_overwritten(&value, &events[..at]);
            is_current.then(|| (value, call.beyond.as_deref().cloned()))
        })
        .collect();
    let first = paths.first().cloned().flatten()?;
    if paths.len() >= limits.paths || paths.iter().any(|other| other.as_ref() != Some(&first)) {
        return None;
    }
    let (value, beyond) = first;
    // A jump to another function leaves nothing of this one on the stack.
    let added = |stack: &Expr| Some(stack.split()).filter(|(base, _)| matches!(base.kind(), Kind::Stack(0)));
    let stack = beyond.as_ref().and_then(|of| added(&of.stack)).map(|(_, added)| added);
    let registers = beyond.map(|of| of.registers).unwrap_or_default();
    Some(Argument { value, entry: begin, function: function.start, stack, registers })
}

/// Whether memory that a value was loaded from may have been written since, by what was done before the call: then it is not what it was.
/// Functions called in between may have written variables on the stack. What else they wrote is not known; so it is with all that runs
/// during the call.
fn is_overwritten(value: &Expr, before: &[&Event]) -> bool {
    let is_stack = |base: &Expr| matches!(base.kind(), Kind::Stack(_));
    let may_overlap = |store: &Store, addr: &Expr, size: u8| {
        let ((one, from), (other, at)) = (store.addr.split(), addr.split());
        let apart = |low: i64, bytes: u8, high: i64| bytes != 0 && low.saturating_add(bytes.into()) <= high;
        match one == other {
            true => !apart(from, store.size, at) && !apart(at, size, from),
            // Compilers reach one slot of the stack by the same register everywhere.
            false => !is_stack(&one),
        }
    };
    let is_stale = |(at, event): (usize, &Event), addr: &Expr, size: u8| {
        let may_write = match event {
            Event::Store(store) => may_overlap(store, addr, size),
            Event::Call(_) => is_stack(&addr.split().0),
            _ => false,
        };
        // The instruction that adds to memory reads it as well.
        let is_own = |load: &Load| matches!(event, Event::Store(store) if !store.locked && load.at == store.at);
        let reads = |event: &&Event| match event {
            Event::Load(load) => load.size == size && load.addr == *addr && !is_own(load),
            _ => false,
        };
        may_write && before[..at].iter().any(reads)
    };
    value.any(&|part| match part.kind() {
        Kind::Load { size, addr } => before.iter().enumerate().any(|(at, event)| is_stale((at, event), addr, *size)),
        _ => false,
    })
}

/// Where the function that begins at `function` stores its arguments number `indices` in one object, as offsets in that, ascending.
/// `None` unless it stores each of them there, and all its ways agree on the offsets.
pub(crate) fn stores_of_arguments(images: &Images<'_>, function: Addr, indices: &[u8]) -> Option<Vec<Vec<i64>>> {
    let image = images.at(function)?;
    let file = image.info.as_ref()?.file();
    let run = code::run(&**file, function.back(image.bias).0, &Limits { visits: 1, ..Limits::default() }).ok()?;
    let mut objects: HashMap<Expr, Vec<BTreeSet<i64>>> = HashMap::new();
    for event in run.events() {
        let Event::Store(store) = event else { continue };
        // Of a number the lower half is stored; anything less would not be the argument.
        let half = store.value.as_op(Op::And).filter(|(_, mask)| mask.as_const() == Some(u64::from(u32::MAX)));
        let whole = half.map_or(&store.value, |(left, _)| left);
        let Some(at) = whole.as_arg().and_then(|index| indices.iter().position(|wanted| *wanted == index)) else {
            continue;
        };
        let (object, offset) = store.addr.split();
        objects.entry(object).or_insert_with(|| vec![BTreeSet::new(); indices.len()])[at].insert(offset);
    }
    let mut whole = objects.into_values().filter(|offsets| offsets.iter().all(|of_one| !of_one.is_empty()));
    let first = whole.next()?;
    whole.all(|other| other == first).then(|| first.into_iter().map(|of_one| of_one.into_iter().collect()).collect())
}

/// A direct call.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CallTo {
    /// Where the instruction is.
    pub(crate) at: Addr,
    /// What it calls, linker's stubs passed through.
    pub(crate) callee: Addr,
    /// The address it returns to; of a jump the address behind it.
    pub(crate) returns_to: Addr,
}

/// The direct calls of the function that contains `place`, up to the instruction there, in the order of their
/// addresses. Empty if the function cannot be decoded.
pub(crate) fn calls_up_to(images: &Images<'_>, place: Addr) -> Vec<CallTo> {
    let find = || {
        let image = images.at(place)?;
        let file = image.info.as_ref()?.file();
        let at = place.back(image.bias).0;
        let function = file.function_range(at)?;
        let before = transfers(image, function.start..function.end)?.into_iter().filter(|transfer| transfer.at <= at);
        let calls = before.filter_map(|transfer| {
            let callee = match transfer.kind {
                TransferKind::Call(to) => through_stub(images, image, file, to),
                TransferKind::CallThrough(Some(Operand::Slot(slot))) => images.slot(Addr(slot).offset(image.bias))?,
                _ => return None,
            };
            let of_target = |addr| Addr(addr).offset(image.bias);
            Some(CallTo { at: of_target(transfer.at), callee, returns_to: of_target(transfer.next) })
        });
        Some(calls.collect())
    };
    find().unwrap_or_default()
}

/// True if the code behind one call of a function may continue to a later one. False if no way is found within bounds.
pub(crate) fn leads_to(images: &Images<'_>, from: &CallTo, to: &CallTo) -> bool {
    let find = || {
        let image = images.at(from.at)?;
        let file = image.info.as_ref()?.file();
        let [at, end] = [to.at, to.returns_to].map(|addr| addr.back(image.bias).0);
        let limits = Limits { visits: 1, ..Limits::default() };
        let run = code::run(&Until { file, end }, from.returns_to.back(image.bias).0, &limits).ok()?;
        let mut events = run.paths().flatten();
        Some(events.any(|event| matches!(event, Event::Call(call) if call.at == at)))
    };
    find().unwrap_or(false)
}

/// The jumps of the function that begins at `from` to other functions, as calls that would return behind the jump.
/// Empty if the function cannot be decoded.
pub(crate) fn jumps_out(images: &Images<'_>, from: Addr) -> Vec<CallTo> {
    let find = || {
        let image = images.at(from)?;
        let file = image.info.as_ref()?.file();
        let start = from.back(image.bias).0;
        let function = file.function_range(start).filter(|function| function.start == start)?;
        let jumps = transfers(image, function.start..function.end)?.into_iter().filter_map(|transfer| {
            let callee = match transfer.kind {
                TransferKind::Jump(to) if !function.contains(&to) => through_stub(images, image, file, to),
                TransferKind::JumpThrough(Some(Operand::Slot(slot))) => images.slot(Addr(slot).offset(image.bias))?,
                _ => return None,
            };
            let of_target = |addr| Addr(addr).offset(image.bias);
            Some(CallTo { at: of_target(transfer.at), callee, returns_to: of_target(transfer.next) })
        });
        Some(jumps.collect())
    };
    find().unwrap_or_default()
}

/// The direct calls of the function that begins at `from`, and its jumps to other functions, in the order of their addresses. Empty
/// if the function cannot be decoded, or has more than `most` bytes.
pub(crate) fn calls_of(images: &Images<'_>, from: Addr, most: u64) -> Vec<CallTo> {
    let last = || {
        let image = images.at(from)?;
        let start = from.back(image.bias).0;
        let function = image.info.as_ref()?.file().function_range(start).filter(|function| function.start == start)?;
        let last = function.end.checked_sub(1).filter(|last| last - start < most)?;
        Some(Addr(last).offset(image.bias))
    };
    let Some(last) = last() else { return Vec::new() };
    let mut all = calls_up_to(images, last);
    all.extend(jumps_out(images, from));
    all.sort_by_key(|call| call.at);
    all
}

/// True if the code of the function that begins there could be read, and it calls and jumps to nothing but known places. It has
/// fewer bytes than `most`.
pub(crate) fn are_all_known(images: &Images<'_>, from: Addr, most: u64) -> bool {
    let found = || {
        let image = images.at(from)?;
        let start = from.back(image.bias).0;
        let function = image.info.as_ref()?.file().function_range(start).filter(|function| function.start == start)?;
        transfers(image, Some(function).filter(|function| function.end - function.start < most)?)
    };
    let is_known = |transfer: &Transfer| match transfer.kind {
        TransferKind::CallThrough(to) | TransferKind::JumpThrough(to) => matches!(to, Some(Operand::Slot(_))),
        _ => true,
    };
    found().is_some_and(|transfers| transfers.iter().all(is_known))
}

/// A file whose code ends at an address.
struct Until<'f> {
    file: &'f ElfFile,
    end: u64,
}

impl CodeImage for Until<'_> {
    fn machine(&self) -> Machine {
        self.file.machine()
    }

    fn code_at(&self, addr: u64, len: usize) -> Option<&[u8]> {
        let left = usize::try_from(self.end.checked_sub(addr)?).unwrap_or(usize::MAX);
        self.file.code_at(addr, len.min(left)).filter(|code| !code.is_empty())
    }

    fn data_at(&self, addr: u64, len: usize) -> Option<&[u8]> {
        self.file.data_at(addr, len)
    }

    fn slot(&self, addr: u64) -> Option<Slot> {
        self.file.slot(addr)
    }

    fn function(&self, addr: u64) -> Option<Range<u64>> {
        self.file.function(addr)
    }

    fn symbol(&self, name: &str) -> Option<u64> {
        CodeImage::symbol(self.file, name)
    }

    fn executable(&self) -> Vec<Range<u64>> {
        self.file.executable()
    }
}

/// The transfers of a function of a file, if all of it is decoded.
fn transfers(image: &Image<'_>, function: Range<u64>) -> Option<Vec<Transfer>> {
    let info = image.info.as_ref()?;
    let length = function.end.checked_sub(function.start).filter(|length| *length <= MAX_FUNCTION)?;
    if !info.calls().spend(length) {
        return None;
    }
    code::transfers(&**info.file(), function)
}

fn transfers_to(transfers: &[Transfer], range: Range<u64>) -> bool {
    transfers.iter().any(|transfer| match transfer.kind {
        TransferKind::Jump(to) => range.contains(&to),
        _ => leads_anywhere(transfer),
    })
}

/// True for a jump to what is computed.
fn leads_anywhere(transfer: &Transfer) -> bool {
    matches!(transfer.kind, TransferKind::JumpThrough(operand) if !matches!(operand, Some(Operand::Slot(_))))
}

/// Where the tables of a function lead, if that is known. `jumped` are the places outside of it to which it jumps by other means: from
/// where they begin to where they end.
fn table_targets(info: &FileInfo, function: &Range<u64>, jumped: &BTreeSet<(u64, u64)>) -> Option<BTreeSet<u64>> {
    let file = info.file();
    if !info.calls().spend(function.end - function.start) {
        return None;
    }
    let whose = |addr: u64| {
        if function.contains(&addr) {
            return Whose::Function;
        }
        if jumped.iter().any(|(start, end)| (*start..*end).contains(&addr)) {
            return Whose::Part;
        }
        // Compilers put what is seldom executed elsewhere, with a name of its own. Of which function it is a part makes no difference:
        // what is none of this one jumps nowhere into it.
        match file.symbol_at(Addr(addr)) {
            Some((symbol, _)) if symbol.name.contains(".cold") => Whose::Part,
            Some(_) => Whose::Another,
            None => Whose::Unknown,
        }
    };
    code::table_targets(&**file, function.clone(), &whose)
}

/// True if the call before the return address `returns_to` went through a pointer and not to a function known by its
/// name. Bodies of constructs are called through pointers.
pub(crate) fn by_pointer(images: &Images<'_>, returns_to: Addr) -> bool {
    let call = images.at(returns_to.back(1)).and_then(|image| {
        let info = image.info.as_ref()?;
        info.calls().call(info.file(), returns_to.back(image.bias).0)
    });
    matches!(call, Some(TransferKind::CallThrough(operand)) if !matches!(operand, Some(Operand::Slot(_))))
}

/// True if the function that begins at `from` jumps to where the one at `to` begins: a call that was its last act.
pub(crate) fn jumps(images: &Images<'_>, from: Addr, to: Addr) -> bool {
    reaches(images, from, &|image, file, range, transfer| match transfer.kind {
        TransferKind::Jump(at) => !range.contains(&at) && through_stub(images, image, file, at) == to,
        TransferKind::JumpThrough(Some(Operand::Slot(slot))) => images.slot(Addr(slot).offset(image.bias)) == Some(to),
        _ => false,
    })
}

/// True if the function that begins at `from` calls, by its address, the one that begins at `to`.
pub(crate) fn calls(images: &Images<'_>, from: Addr, to: Addr) -> bool {
    reaches(
        images,
        from,
        &|image, file, _, transfer| matches!(transfer.kind, TransferKind::Call(at) if through_stub(images, image, file, at) == to),
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
fn through_stub(images: &Images<'_>, image: &Image<'_>, file: &ElfFile, at: u64) -> Addr {
    let own = Addr(at).offset(image.bias);
    match code::stub(file, at) {
        Some(Stub::Slot(slot)) => images.slot(Addr(slot).offset(image.bias)).unwrap_or(own),
        Some(Stub::Code(code)) => Addr(code).offset(image.bias),
        None => own,
    }
}
