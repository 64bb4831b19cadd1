//! Places in which a process is hard to stop: the registers are made up, the stack is real.

use ompd_process::{Addr, ElfFile, Target as _, Thread};
use ompd_stack::{Backtrace, End};

use crate::support::{Built, Look, places};

/// The state of the thread at the moment in which frame `caller` called what frame `caller - 1` executes.
fn at_call(look: &Look, backtrace: &Backtrace, caller: usize) -> Thread {
    let frame = &backtrace.frames[caller];
    let mut thread = look.live.threads()[0].clone();
    let registers = thread.registers.as_mut().expect("registers");
    for number in 0..16 {
        // What is not known any more the callee overwrote.
        registers.general[usize::from(number)] = frame.registers.get(number).unwrap_or(0xdead);
    }
    push(&mut thread, 1);
    thread
}

/// As after a number of pushes.
fn push(thread: &mut Thread, words: u64) {
    let registers = thread.registers.as_mut().expect("registers");
    registers.sp = registers.sp.back(8 * words);
    registers.general[7] = registers.general[7].wrapping_sub(8 * words);
}

fn at(mut thread: Thread, pc: Addr) -> Thread {
    let registers = thread.registers.as_mut().expect("registers");
    (registers.pc, registers.general[16]) = (pc, pc.0);
    thread
}

fn is_called_by(look: &Look, thread: Thread, caller: &[(u64, u64)]) {
    let pc = thread.registers.as_ref().map(|r| r.pc).expect("registers");
    let found = look.with(thread);
    assert_eq!(&places(&found)[1..], caller, "{pc}, ends: {}", found.end);
    assert_eq!((found.end, found.frames[0].pc), (End::Root, pc));
}

fn waiting(flags: &[&str]) -> (Look, Backtrace, usize) {
    let look = Built::places(flags).start(&["realigned"], 1).look();
    let backtrace = look.backtrace();
    assert_eq!(backtrace.end, End::Root);
    // The frame that `hold` returns to.
    let module = look.live.modules().iter().find(|m| m.name() == "places").expect("the program");
    let hold = module.symbol("hold").expect("hold");
    let inside = |addr: Addr| (hold.addr.0..hold.addr.0 + hold.size).contains(&addr.0);
    let caller = backtrace.frames.iter().rposition(|f| inside(f.lookup())).expect("it is in hold") + 1;
    (look, backtrace, caller)
}

#[test]
fn stubs_of_the_linkage_table() {
    // With lazy binding a stub pushes a number before it jumps on: how much is on the stack depends on the address.
    let (look, backtrace, caller) = waiting(&["-O2", "-Wl,-z,lazy", "-fcf-protection=none"]);
    let thread = at_call(&look, &backtrace, caller);
    let module = look.live.modules().iter().find(|m| m.name() == "places").expect("the program");
    let file: &ElfFile = module.file.as_ref().expect("its file");
    let table = file.section_range(".plt").expect("a linkage table");
    let caller = &places(&backtrace)[caller..];
    let (start, stubs) = (table.start, (table.end - table.start) / 16);
    assert!(stubs > 2);
    for stub in 1..stubs {
        let first = Addr(start + 16 * stub).offset(module.bias);
        // jmp *slot; push number; jmp first entry
        is_called_by(&look, at(thread.clone(), first), caller);
        is_called_by(&look, at(thread.clone(), first.offset(6)), caller);
        let mut pushed = thread.clone();
        push(&mut pushed, 1);
        is_called_by(&look, at(pushed, first.offset(11)), caller);
    }
    // The first entry pushes another word.
    let first = Addr(start).offset(module.bias);
    let mut pushed = thread.clone();
    push(&mut pushed, 1);
    is_called_by(&look, at(pushed.clone(), first), caller);
    push(&mut pushed, 1);
    is_called_by(&look, at(pushed, first.offset(6)), caller);
}

#[test]
fn the_vdso() {
    let (look, backtrace, caller) = waiting(&["-O2"]);
    let thread = at_call(&look, &backtrace, caller);
    let vdso = look.live.modules().iter().find(|m| m.path.is_empty()).expect("the vdso");
    let mut looked_at = 0;
    for name in ["__vdso_clock_gettime", "__vdso_gettimeofday", "__vdso_getcpu", "__vdso_time"] {
        let Some(function) = vdso.symbol(name) else { continue };
        is_called_by(&look, at(thread.clone(), function.addr), &places(&backtrace)[caller..]);
        looked_at += 1;
    }
    assert!(looked_at > 0, "the vdso has none of the functions");
}

#[test]
fn addresses_without_code_prove_nothing() {
    let (look, backtrace, caller) = waiting(&["-O2"]);
    let thread = at_call(&look, &backtrace, caller);
    // The call was a direct one, so it is not what led here, though the word on top of the stack is its return address.
    for pc in [0, 8, 0x1234_5678, u64::MAX] {
        let found = look.with(at(thread.clone(), Addr(pc)));
        assert_eq!((found.frames.len(), &found.end), (1, &End::NoModule(Addr(pc))));
    }
}
