//! aarch64 instruction by instruction: code assembled beforehand, and what is to be understood of it.

mod words;

use std::collections::HashMap;
use std::ops::Range;

use ompd_layout::code::{self, CodeImage, Event, ImmediateStore, Limits, Run, Slot, StopReason, immediate_stores};
use ompd_process::Machine;
use words::*;

/// Where the function under test lies; its neighbours are further on.
const ENTRY: u64 = 0x1000;
const GOT: u64 = 0x2_0000;

/// A file of a few functions.
struct Image {
    functions: Vec<(u64, Vec<u8>)>,
    data: Vec<u8>,
    slots: HashMap<u64, Slot>,
}

impl Image {
    fn new(function: &[u32]) -> Image {
        let parts = [
            (ENTRY, function),
            (0x1800, STUB_PLAIN),
            (0x1820, STUB_BTI),
            (0x2000, OUTLINE_HELPER),
            (0x2100, SWAP_HELPER),
            (0x4000, VENEER),
        ];
        let bytes = |words: &[u32]| words.iter().flat_map(|w| w.to_le_bytes()).collect();
        let symbol = |name: &str| Slot::Symbol { name: name.into(), address: None };
        let slots = [
            (GOT, Slot::TlsOffset),
            (GOT + 0x8, Slot::TlsModule),
            (GOT + 0x10, Slot::TlsDescriptor),
            (GOT + 0x18, symbol("malloc")),
            (GOT + 0x20, Slot::Address(0x3_0000)),
            (GOT + 0x28, symbol("__tls_get_addr")),
        ];
        Image {
            functions: parts.iter().map(|(at, words)| (*at, bytes(words))).collect(),
            data: (0..=255).collect(),
            slots: slots.into_iter().collect(),
        }
    }

    fn part(&self, addr: u64) -> Option<(u64, &[u8])> {
        let part = self.functions.iter().find(|(at, bytes)| (*at..*at + bytes.len() as u64).contains(&addr))?;
        Some((part.0, &part.1))
    }
}

impl CodeImage for Image {
    fn machine(&self) -> Machine {
        Machine::AARCH64
    }
    fn code_at(&self, addr: u64, len: usize) -> Option<&[u8]> {
        let (start, bytes) = self.part(addr)?;
        let rest = &bytes[(addr - start) as usize..];
        Some(&rest[..rest.len().min(len)])
    }
    fn data_at(&self, addr: u64, len: usize) -> Option<&[u8]> {
        let start = addr.checked_sub(0x3_0000)? as usize;
        self.data.get(start..start + len)
    }
    fn slot(&self, addr: u64) -> Option<Slot> {
        self.slots.get(&addr).cloned()
    }
    fn function(&self, addr: u64) -> Option<Range<u64>> {
        self.part(addr).map(|(start, bytes)| start..start + bytes.len() as u64)
    }
    fn symbol(&self, _: &str) -> Option<u64> {
        None
    }
    fn executable(&self) -> Vec<Range<u64>> {
        self.functions.iter().map(|(at, bytes)| *at..*at + bytes.len() as u64).collect()
    }
}

fn run(function: &[u32]) -> Run {
    code::run(&Image::new(function), ENTRY, &Limits::default()).expect("there is code")
}

/// An event in a line.
fn line(event: &Event) -> String {
    match event {
        Event::Load(l) => format!("load {} {}", l.size, l.addr),
        Event::Store(s) => {
            format!("{}{} {} = {}", if s.locked { "locked " } else { "store " }, s.size, s.addr, s.value)
        }
        Event::Compare(c) if c.mask => format!("test {} {} & {}", c.size, c.left, c.right),
        Event::Compare(c) => format!("cmp {} {}, {}", c.size, c.left, c.right),
        Event::Call(c) => {
            format!(
                "{} {}({}, {}, {})",
                if c.tail { "tail" } else { "call" },
                c.callee,
                c.args[0],
                c.args[1],
                c.args[2]
            )
        }
        Event::Return(r) => format!("return {}", r.value),
    }
}

fn lines(run: &Run) -> Vec<String> {
    run.events().iter().map(line).collect()
}

/// The values the function stores.
fn stored(function: &[u32]) -> Vec<String> {
    run(function).stores().map(|s| s.value.to_string()).collect()
}

fn returned(function: &[u32]) -> Vec<String> {
    run(function).returned().map(|v| v.to_string()).collect()
}

#[test]
fn thread_local_variables_by_every_model() {
    assert_eq!(returned(TLS_INITIAL_EXEC), ["[4 tls(0x20000)+0x28]"]);
    assert_eq!(returned(TLS_BY_SUM), ["[8 tls(0x20000)]"]);
    assert_eq!(returned(TLS_DESCRIPTOR), ["[4 tls(0x20010)+0x8]"]);
    assert_eq!(run(TLS_DESCRIPTOR).calls().count(), 0);
    assert_eq!(returned(TLS_GENERAL_DYNAMIC), ["[4 tls(0x20008)+0x10]"]);
    assert_eq!(returned(TLS_LOCAL_EXEC), ["[4 tp+0x1014]"]);
}

#[test]
fn globals_through_the_got_and_by_page() {
    assert_eq!(returned(GLOBALS), ["([4 0x30004]+[4 0x30098]*0x1)"]);
}

#[test]
fn every_addressing_mode() {
    let expected = [
        "load 8 arg0+0x8",
        "load 4 arg0+0x8",
        "load 4 arg0+0x14",
        "load 8 (arg1+arg6*0x8)",
        "load 8 (arg1+arg6*0x8)",
        "load 8 (arg1+arg6*0x8)",
        "load 4 (arg1+arg6*0x1)",
        "load 1 (arg1+arg6*0x1)",
        "load 2 arg1+0x2",
        "load 8 arg1+0x10",
        "load 8 arg1+0x18",
        "load 4 arg1",
        "load 4 arg1+0x4",
        "load 8 0x106c",
    ];
    let seen = run(ADDRESSING);
    // The same place read twice by different instructions is two events.
    assert_eq!(lines(&seen)[..14], expected);
    assert_eq!(returned(ADDRESSING), ["arg0+0x18"], "the base was moved twice");
    let expected = [
        "store 8 arg0+0x8 = arg1",
        "store 1 arg0+0x3 = arg2",
        "store 2 arg0-0x2 = arg2",
        "store 8 arg0+0x10 = arg1",
        "store 8 arg0+0x18 = 0x0",
        "store 4 arg0+0x10 = 0x0",
        "store 8 arg0+0x18 = arg3",
        "return arg0+0x18",
    ];
    assert_eq!(lines(&run(STORES)), expected);
}

#[test]
fn the_stack_keeps_what_is_put_there() {
    // Nothing but the return: the frame is no memory of others.
    assert_eq!(lines(&run(FRAME)), ["return (arg0+arg1*0x1)+0x7"]);
    assert_eq!(lines(&run(REALIGNED)), ["return arg0"]);
}

#[test]
fn immediates() {
    let expected = ["0x340012", "0xfffffffffffffffb", "0xfffffffb", "0xf0f0f0f", "0x120000", "0xffffffff", "0x1054"];
    assert_eq!(stored(IMMEDIATES), expected);
}

#[test]
fn arithmetic() {
    let expected = [
        "arg0-0x1",
        "arg0+0x1000",
        "(arg2+arg0*0x8)",
        "(arg2+arg0*0x10)",
        "Sub(0x0, arg0)",
        "0x0",
        "(arg2+arg0*0x18)",
        "(arg2+arg0*0x18)",
        "Sub(arg2, Mul(arg0, 0x18))",
        "Mul(arg0, arg2)",
        "arg0-0x1",
    ];
    assert_eq!(stored(SUMS), expected);
    let expected = [
        "Mul([4 arg0], 0x8)",
        "Shr([4 arg0], 0x3)",
        "Sar([4 arg0], 0x3)",
        "And(Shr([4 arg0], 0x3), 0x1)",
        "Mul([4 arg0], 0x8)",
        "Mul(And([4 arg0], 0xf), 0x8)",
        "Sar(Mul([4 arg0], 0x8000000), 0x1e)",
        "[4 arg0]",
        "And([4 arg0], 0xff)",
        "[4 arg0]",
        "Shl([4 arg0], arg2)",
        "Shr([4 arg0], 0x5)",
        // A rotation has no form.
        "?1068.1",
    ];
    assert_eq!(stored(SHIFTS), expected);
    let expected = ["Or(And(arg1, 0xffffffcf), Mul(And([4 arg0], 0x3), 0x10))", "0xe3", "And(Shr([4 arg0], 0x8), 0xf)"];
    assert_eq!(stored(INSERTS), expected);
    let expected = [
        "And([4 arg0], 0xff)",
        "And([4 arg0], Not(arg2, 0x0))",
        "And([4 arg0], 0xfffffff0)",
        "Or([4 arg0], 0x1)",
        "Xor([4 arg0], arg2)",
        "0x0",
        "Not([4 arg0], 0x0)",
        "Xor([4 arg0], Not(arg2, 0x0))",
        // The subscript of an array of pointers, shift and scale in one.
        "Mul(Shr([4 arg0], 0xb), 0x8)",
    ];
    assert_eq!(stored(LOGIC), expected);
    // A division has no form either, and what is unknown does not turn into something known.
    assert_eq!(stored(UNKNOWN), ["?1000.0", "?100c.64"]);
    assert_eq!(returned(UNKNOWN), ["?1008.0"]);
}

#[test]
fn conditions() {
    assert_eq!(stored(SELECTS), ["arg2", "arg3"]);
    let mut both = stored(SELECTS_NEXT);
    both.sort();
    assert_eq!(both, ["Sub(0x0, arg5)", "arg2", "arg2", "arg3+0x1", "arg3+0x1"]);
    assert_eq!(stored(SETS), ["Set(arg0, 0x3)", "Sub(0x0, Set(arg0, 0x3))"]);
    let expected = [
        "cmp 4 arg0, 0x3",
        "cmp 8 arg0, arg1",
        "cmp 4 arg0, 0xffffffff",
        "test 4 arg0 & 0x8",
        "cmp 8 arg0, 0x0",
        "cmp 4 arg1, 0x5",
        "cmp 4 arg1, 0xfffffffe",
        "cmp 8 arg0, arg1",
        "test 4 arg0 & 0x1",
        "cmp 8 arg0, 0x0",
        "cmp 4 arg1, 0x0",
        "test 4 arg0 & 0x8",
        "test 8 arg0 & 0x800000000",
        "return arg0",
    ];
    assert_eq!(lines(&run(COMPARES)), expected);
    let mut ways = returned(BRANCHES);
    ways.sort();
    assert_eq!(ways, ["0x1", "0x2"]);
    let looped = returned(LOOP);
    for value in ["arg0", "[8 arg0+0x8]", "[8 [8 arg0+0x8]+0x8]"] {
        assert!(looped.iter().any(|v| v == value), "{looped:?}");
    }
    // What traps does not return.
    assert_eq!(returned(TRAP), ["arg0"]);
}

#[test]
fn atomic_operations_are_locked_stores() {
    let expected = [
        "load 4 arg0",
        "load 1 arg0",
        "locked 4 arg7 = [4 arg0]",
        "locked 1 arg7 = [1 arg0]",
        "load 8 arg0",
        "return arg0",
    ];
    assert_eq!(lines(&run(ACQUIRE_RELEASE)), expected);
    let exclusive = run(EXCLUSIVE);
    let store = exclusive.stores().next().expect("stlxr");
    assert_eq!((store.locked, store.size, store.increment()), (true, 4, Some(1)));
    let expected = [
        "load 4 arg0",
        "cmp 4 [4 arg0], arg1",
        "locked 4 arg0 = arg2",
        "load 1 arg0",
        "cmp 1 [1 arg0], arg3",
        "locked 1 arg0 = arg4",
        "load 4 arg0",
        "locked 4 arg0 = ([4 arg0]+arg5*0x1)",
        "return arg0",
    ];
    assert_eq!(lines(&run(ATOMICS)), expected);
    let expected = [
        "And([8 arg0], Not(arg1, 0x0))",
        "Or([4 arg0], arg3)",
        "Xor([4 arg0], arg3)",
        "arg6",
        "?1010.255",
        "([4 arg0]+arg3*0x1)",
        "?1018.255",
    ];
    assert_eq!(stored(ATOMICS_NEXT), expected);
    // A call of the helper that libgcc and compiler-rt have for each atomic operation shows both.
    let expected = [
        "call sub_2000(0x0, 0x1, 0x30000)",
        "load 4 0x30000",
        "cmp 4 [4 0x30000], 0x0",
        "locked 4 0x30000 = 0x1",
        "cmp 4 [4 0x30000], 0x0",
        "return [4 0x30000]",
        "tail sub_2100([4 0x30000], 0x1, 0x30000)",
        "load 4 0x1",
        "locked 4 0x1 = [4 0x30000]",
        "return [4 0x1]",
    ];
    assert_eq!(lines(&run(OUTLINED)), expected);
}

#[test]
fn calls_jumps_and_stubs() {
    let expected = [
        "call malloc(0x5, sp0-0x10, arg2)",
        // The callee was given the address of the one word on the stack, and not that of the other.
        "store 8 malloc@1014 = ?1018.255",
        "store 8 malloc@1014+0x8 = arg0",
        "call sub_8010(malloc@1014, ?1018.255, arg0)",
        "call malloc(sub_8010@1024, ?1024.1, ?1024.2)",
    ];
    let calls = run(CALLS);
    assert_eq!(lines(&calls), expected);
    assert!(matches!(calls.stops(), [stop] if matches!(stop.why, StopReason::IndirectJump(_))));
    assert_eq!(lines(&run(TAIL)), ["tail malloc(arg0, 0x4, arg2)", "return malloc@1004"]);
    let switch = run(SWITCH);
    let stop = switch.stops().first().expect("a jump through a table").to_string();
    assert_eq!(stop, "jump through Mul([1 arg0+0x30000], 0x4)+0x1010 at 0x1010, bytes: 20 00 1f d6");
    assert_eq!(returned(HINTS), ["[4 arg0]"]);
}

#[test]
fn vectors_carry_what_they_copy() {
    let expected = [
        "store 16 arg1 = [16 arg0+0x10]",
        "store 16 arg1+0x10 = [16 arg0]",
        "store 16 arg1+0x20 = [16 arg0+0x10]",
        "store 8 arg1 = [8 arg0]",
        "store 16 arg1 = 0x0",
        "store 8 arg1 = 0x100000001",
        "store 16 arg1 = [16 arg0+0x10]",
        "store 8 arg1 = [8 arg0+0x18]",
        "store 8 arg1 = arg3",
        "store 16 arg1 = ?1040.255",
        "store 16 arg1 = ?1044.73",
    ];
    let seen: Vec<String> = lines(&run(VECTORS)).into_iter().filter(|l| l.starts_with("store")).collect();
    assert_eq!(seen, expected);
}

#[test]
fn constants_stored_to_globals() {
    let end = ENTRY + 4 * TABLE.len() as u64;
    let seen = immediate_stores(&Image::new(TABLE), ENTRY..end);
    let expected = [
        (0x3_0000, 0x1b8),
        (0x3_0010, 0x1b8),
        (0x3_0018, 0),
        // From the constant pool, whose bytes count up from its start.
        (0x3_0020, 0x4746_4544_4342_4140),
        (0x3_0028, 0x4f4e_4d4c_4b4a_4948),
        (0x3_0008, 7),
        // Not the one behind it: two ways lead there with different values.
    ];
    assert!(seen.iter().all(|s| s.size == 8));
    assert_eq!(seen.iter().map(|s: &ImmediateStore| (s.addr, s.value)).collect::<Vec<_>>(), expected);
    // Where a switch may jump to is not known, so nothing is.
    let end = ENTRY + 4 * SWITCH.len() as u64;
    assert_eq!(immediate_stores(&Image::new(SWITCH), ENTRY..end), []);
}

#[test]
fn dumps_are_for_people() {
    let image = Image::new(SWITCH);
    let lines = "0x1000: 61 01 00 f0 21 48 60 38 42 00 00 10 41 88 21 8b\n0x1010: 20 00 1f d6\n";
    assert_eq!(code::dump(&image, ENTRY, 1000), lines);
    assert_eq!(code::dump(&image, ENTRY, 2), "0x1000: 61 01\n");
    assert_eq!(code::dump(&image, 0, 1000), "");
    let long = vec![0xd503_201f; 100];
    assert_eq!(code::dump(&Image::new(&long), ENTRY, usize::MAX).lines().count(), 16);
}

/// Whatever the words, there is an end, and no panic.
#[test]
fn words_of_any_kind_do_no_harm() {
    let mut random = 1u64;
    let mut next = || {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 32) as u32
    };
    let all =
        [ADDRESSING, STORES, SUMS, SHIFTS, INSERTS, LOGIC, COMPARES, ATOMICS, ATOMICS_NEXT, VECTORS, CALLS, TABLE];
    let (mut stopped, mut ended) = (0, 0);
    for round in 0..3000 {
        // Real instructions with a few bits changed, every third time any words at all.
        let mut words: Vec<u32> = all[round % all.len()].to_vec();
        for word in &mut words {
            *word = if round % 3 == 0 { next() } else { *word ^ (1 << (next() % 32)) };
        }
        let seen = run(&words);
        stopped += usize::from(!seen.stops().is_empty());
        ended += usize::from(seen.stops().is_empty());
        immediate_stores(&Image::new(&words), ENTRY..ENTRY + 4 * words.len() as u64);
    }
    assert!(stopped > 100 && ended > 100, "{stopped} stopped, {ended} ended");
}
