//! What a debugger is asked, and what is made of its answers.

use std::collections::BTreeMap;
use std::ffi::{CStr, c_char};
use std::ptr::without_provenance_mut;

use super::*;

/// A debugger. Its context of a thread is the thread's number.
#[derive(Default)]
struct Played {
    /// Kinds of thread ids that it knows beside the two that are usual.
    kinds: Vec<u64>,
    /// Threads, by kernel id, with their `pthread_t` and the value of each register.
    threads: BTreeMap<i32, (u64, u64)>,
    /// Of these it has no registers.
    without_registers: Vec<u64>,
    /// It knows threads by their `pthread_t` only.
    no_lwps: bool,
    /// It says that all is well when it knows no thread, and gives none.
    polite: bool,
    symbols: BTreeMap<String, u64>,
    /// It answers with this for all other symbols.
    no_symbol: Option<u64>,
    memory: BTreeMap<u64, Vec<u8>>,
    stop: u64,
    /// So many threads more come with each question.
    growth: i32,
    asked: RefCell<Vec<String>>,
}

fn played<'d>(context: *mut AddressSpaceContext) -> &'d Played {
    // SAFETY: the context that a test made is its own debugger, which is there as long as the test.
    unsafe { &*context.cast::<Played>() }
}

impl Played {
    fn asked(&self, what: impl Into<String>) {
        self.asked.borrow_mut().push(what.into());
    }

    fn was_asked(&self) -> Vec<String> {
        self.asked.take()
    }

    fn table(&self) -> Asked {
        let table = Callbacks {
            alloc_memory: None,
            free_memory: None,
            print_string: None,
            sizeof_type: None,
            symbol_addr_lookup: Some(symbol),
            read_memory: Some(read),
            write_memory: None,
            read_string: None,
            device_to_host: None,
            host_to_device: None,
            get_thread_context_for_thread_id: Some(thread),
        };
        Asked::new(table, (&raw const *self).cast_mut().cast())
    }

    /// The registers of a thread: a number and 1 to 26 more, if it has any.
    fn set(&self, lwp: u64) -> Option<Vec<u8>> {
        let (_, first) = self.threads.get(&i32::try_from(lwp).ok()?)?;
        let has = !self.without_registers.contains(&lwp);
        has.then(|| (0..27).flat_map(|n| (first + n).to_ne_bytes()).collect())
    }
}

unsafe extern "C" fn thread(
    context: *mut AddressSpaceContext,
    kind: u64,
    size: Size,
    id: *const c_void,
    out: *mut *mut ThreadContext,
) -> Rc {
    let debugger = played(context);
    assert_eq!(size, 8);
    // SAFETY: an id of this size.
    let id = unsafe { id.cast::<u64>().read() };
    debugger.asked(format!("thread {kind} {id}"));
    let found = match kind {
        thread_id::LWP if debugger.no_lwps => None,
        thread_id::LWP => debugger.threads.keys().copied().find(|lwp| *lwp as u64 == id),
        thread_id::PTHREAD => debugger.threads.iter().find(|(_, (pthread, _))| *pthread == id).map(|(lwp, _)| *lwp),
        kind => return if debugger.kinds.contains(&kind) && id == 0 { Rc::OK } else { Rc::UNSUPPORTED },
    };
    let Some(found) = found else { return if debugger.polite { Rc::OK } else { Rc::BAD_INPUT } };
    // SAFETY: a place for the answer.
    unsafe { *out = without_provenance_mut(found as usize) };
    Rc::OK
}

unsafe extern "C" fn symbol(
    context: *mut AddressSpaceContext,
    thread: *mut ThreadContext,
    name: *const c_char,
    out: *mut Address,
    _file: *const c_char,
) -> Rc {
    let debugger = played(context);
    // SAFETY: a string of C's.
    let name = unsafe { CStr::from_ptr(name) }.to_str().expect("a name");
    debugger.asked(format!("{name} of {}", thread.addr()));
    let of_thread = debugger.symbols.get(&format!("{name} of {}", thread.addr()));
    let Some(address) = of_thread.or_else(|| debugger.symbols.get(name)).copied().or(debugger.no_symbol) else {
        return Rc::BAD_INPUT;
    };
    // SAFETY: a place for the answer.
    unsafe { *out = Address { segment: 0, address } };
    Rc::OK
}

unsafe extern "C" fn read(
    context: *mut AddressSpaceContext,
    thread: *mut ThreadContext,
    at: *const Address,
    bytes: Size,
    buffer: *mut c_void,
) -> Rc {
    let debugger = played(context);
    // SAFETY: an address, and a buffer of this size.
    let (Address { segment, address }, buffer) =
        unsafe { (*at, std::slice::from_raw_parts_mut(buffer.cast::<u8>(), bytes as usize)) };
    let count = address & !extra::ADDRESS;
    let words: Vec<u64> = numbers(buffer).collect();
    let memory = |at: u64, length: usize| debugger.memory.get(&at).filter(|there| there.len() >= length);
    let answer: Vec<u8> = match segment {
        0 => match memory(address, buffer.len()) {
            Some(there) => there[..buffer.len()].to_vec(),
            None => return Rc::ERROR,
        },
        _ if address & extra::ADDRESS == 0 => return Rc::BAD_INPUT,
        extra::STOP => debugger.stop.to_ne_bytes().to_vec(),
        extra::REGISTERS => {
            debugger.asked("registers");
            match debugger.set(thread.addr() as u64) {
                Some(set) => set,
                None => return Rc::UNAVAILABLE,
            }
        }
        extra::THREADS => {
            debugger.asked(format!("threads in {bytes} bytes"));
            let more = debugger.growth * i32::try_from(debugger.asked.borrow().len()).expect("few");
            let all: Vec<u64> =
                debugger.threads.keys().map(|lwp| *lwp as u64).chain((0..more).map(|n| n as u64)).collect();
            let told = [all.len() as u64].into_iter().chain(all).flat_map(u64::to_ne_bytes);
            told.chain(std::iter::repeat(0)).take(buffer.len()).collect()
        }
        extra::ALL_REGISTERS | extra::PARTIAL_REGISTERS => {
            let partial = segment == extra::PARTIAL_REGISTERS;
            debugger.asked(format!("registers of {count}{}", if partial { ", partial" } else { "" }));
            let answer = words[..count as usize].iter().flat_map(|lwp| {
                let known = debugger.set(*lwp).map(|set| (if partial { (1 << 27) - 1 } else { 1_u64 }, set));
                let (known, set) = known.unwrap_or((0, vec![0xee; 27 * 8]));
                [known.to_ne_bytes().to_vec(), set].concat()
            });
            answer.collect()
        }
        extra::PIECES => {
            let answer = words[..2 * count as usize].chunks(2).flat_map(|piece| {
                let length = piece[1] as usize;
                let there = memory(piece[0], length).map(|there| there[..length].to_vec());
                [u64::from(there.is_some()).to_ne_bytes().to_vec(), there.unwrap_or(vec![0xee; length])].concat()
            });
            answer.collect()
        }
        _ => return Rc::BAD_INPUT,
    };
    assert!(answer.len() <= buffer.len(), "segment {segment:#x}: {} bytes for {}", buffer.len(), answer.len());
    buffer[..answer.len()].copy_from_slice(&answer);
    Rc::OK
}

fn native(lwp: i32, pthread: u64) -> NativeThread {
    NativeThread { lwp, pthread: Addr(pthread), own_stack: false }
}

fn two_threads() -> Played {
    Played { threads: BTreeMap::from([(11, (0x1100, 1000)), (12, (0x1200, 2000))]), ..Played::default() }
}

/// The program counter that [`Played::set`] gives: word 16.
fn pcs(found: HashMap<i32, Registers>) -> BTreeMap<i32, u64> {
    found.into_iter().map(|(lwp, registers)| (lwp, registers.pc.0)).collect()
}

#[test]
fn a_thread_is_asked_for_by_both_ids_and_then_remembered() {
    let debugger = two_threads();
    let asked = debugger.table();
    let context = |native| asked.thread(native).map(|context| context.addr());
    assert_eq!(context(native(11, 0x1100)), Some(11));
    assert_eq!(debugger.was_asked(), ["thread 1 11"]);
    assert_eq!((context(native(11, 0x1100)), debugger.was_asked()), (Some(11), vec![]));
    assert_eq!(context(native(12, 0x1200)), Some(12));
    // Only the last one is remembered, until ids may be those of another.
    assert_eq!(context(native(11, 0x1100)), Some(11));
    assert_eq!(debugger.was_asked(), ["thread 1 12", "thread 1 11"]);
    asked.forget_thread();
    assert_eq!((context(native(11, 0x1100)), debugger.was_asked()), (Some(11), vec!["thread 1 11".to_owned()]));
    assert_eq!(context(native(13, 0x1300)), None);

    for polite in [false, true] {
        let debugger = Played { no_lwps: true, polite, ..two_threads() };
        let asked = debugger.table();
        assert_eq!(asked.thread(native(12, 0x1200)).map(|context| context.addr()), Some(12));
        assert_eq!(debugger.was_asked(), ["thread 1 12", "thread 0 4608"]);
        assert_eq!(asked.thread(native(12, 0x1300)), None, "it gave none");
    }
}

#[test]
fn each_segment_is_read_only_from_debuggers_that_know_its_kind() {
    let kinds = [extra::KIND, extra::BULK, extra::PARTIAL];
    for known in 0..8 {
        let kinds: Vec<u64> = (0..3).filter(|n| known >> n & 1 == 1).map(|n: usize| kinds[n]).collect();
        let offers = |kind| kinds.contains(&extra::KIND) && kinds.contains(&kind);
        let memory = BTreeMap::from([(0x500, vec![1, 2, 3, 4])]);
        let debugger = Played { kinds: kinds.clone(), memory, stop: 7, ..two_threads() };
        let asked = debugger.table();
        assert_eq!(asked.offers_registers(), offers(extra::KIND), "{kinds:?}");
        assert_eq!(asked.stop(), offers(extra::KIND).then_some(7), "{kinds:?}");
        let pieces = [(Addr(0x500), 3), (Addr(0x600), 20), (Addr(0x500), 0), (Addr(0x500), 4)];
        let read = asked.read_all(&pieces);
        let expected = vec![Some(vec![1, 2, 3]), None, Some(Vec::new()), Some(vec![1, 2, 3, 4])];
        assert_eq!(read, offers(extra::BULK).then_some(expected), "{kinds:?}");
        debugger.was_asked();
        let all = if offers(extra::BULK) { BTreeMap::from([(11, 1016), (12, 2016)]) } else { BTreeMap::new() };
        assert_eq!(pcs(asked.all_registers(Arch::X86_64)), all, "{kinds:?}");
        let of_all = if offers(extra::PARTIAL) { "registers of 2, partial" } else { "registers of 2" };
        let was_asked = debugger.was_asked();
        let last = was_asked.iter().find(|asked| asked.starts_with("registers"));
        assert_eq!(last.map(|asked| &**asked), offers(extra::BULK).then_some(of_all), "{kinds:?}");

        let one = asked.registers(native(12, 0x1200), Arch::X86_64);
        assert_eq!(one.ok().map(|registers| registers.pc.0), offers(extra::KIND).then_some(2016), "{kinds:?}");
        let way = offers(extra::PARTIAL).then_some("registers of 1, partial");
        let way = way.or(offers(extra::KIND).then_some("registers"));
        let was_asked = debugger.was_asked();
        let last = was_asked.iter().find(|asked| asked.starts_with("registers"));
        assert_eq!(last.map(|asked| &**asked), way, "{kinds:?}");
    }
}

#[test]
fn threads_without_registers_are_told_apart() {
    for partial in [false, true] {
        let mut kinds = vec![extra::KIND, extra::BULK];
        kinds.extend(partial.then_some(extra::PARTIAL));
        let debugger = Played { kinds, without_registers: vec![11], ..two_threads() };
        let asked = debugger.table();
        assert_eq!(pcs(asked.all_registers(Arch::X86_64)), BTreeMap::from([(12, 2016)]));
        let why = asked.registers(native(11, 0x1100), Arch::X86_64).map(|_| ()).expect_err("there are none");
        assert_eq!(why, "the debugger has no registers of thread 11");
        let why = asked.registers(native(13, 0x1300), Arch::X86_64).map(|_| ()).expect_err("there is none");
        assert_eq!(why, "the debugger has no thread 13");
    }
}

#[test]
fn all_threads_are_listed_however_many_there_are() {
    let with = |threads: i32, growth: i32| {
        let threads = (0..threads).map(|n| (1000 + n, (0x1_0000 + n as u64, 0))).collect();
        let debugger = Played { kinds: vec![extra::KIND, extra::BULK], threads, growth, ..Played::default() };
        let found = debugger.table().all_registers(Arch::X86_64).len();
        let asked = debugger.was_asked();
        (found, asked.into_iter().filter(|asked| asked.starts_with("threads")).collect::<Vec<_>>())
    };
    assert_eq!(with(0, 0), (0, vec!["threads in 520 bytes".to_owned()]));
    assert_eq!(with(64, 0), (64, vec!["threads in 520 bytes".to_owned()]));
    assert_eq!(with(65, 0), (65, vec!["threads in 520 bytes".to_owned(), "threads in 528 bytes".to_owned()]));
    // More come all the time, or there are too many.
    let (found, asked) = with(64, 1);
    assert_eq!((found, asked.len()), (0, 4));
    assert_eq!(with((1 << 16) + 1, 0).0, 0);
    assert_eq!(with(1 << 16, 0).0, 1 << 16);
}

/// Names of registers, as an expression.
fn register(name: &str) -> String {
    format!("*(char *)${name}")
}

/// A plugin of gdb takes names of symbols for expressions.
#[test]
fn registers_are_read_by_expressions_where_a_debugger_takes_them() {
    let names = Arch::X86_64.machine.facts().expect("its registers").kernel_set.names;
    let mut debugger = two_threads();
    for (name, value) in names.iter().zip(3000..).filter(|(name, _)| !name.is_empty()) {
        debugger.symbols.insert(format!("{} of 12", register(name)), value);
    }
    let asked = debugger.table();
    assert!(!asked.takes_expressions());
    let registers = asked.registers(native(12, 0x1200), Arch::X86_64).expect("registers");
    assert_eq!((registers.pc.0, registers.sp.0, registers.thread_pointer), (3016, 3019, None));
    assert!(asked.takes_expressions());
    // It may not know those of another thread.
    assert_eq!(asked.program_counter(native(11, 0x1100), Arch::X86_64), None);
    assert!(asked.takes_expressions());
    assert_eq!(asked.program_counter(native(12, 0x1200), Arch::X86_64), Some(Addr(3016)));

    // One that says of all symbols that they are nowhere is not asked again.
    for nowhere in [None, Some(0), Some(u64::MAX)] {
        let debugger = Played { no_symbol: nowhere, ..two_threads() };
        let asked = debugger.table();
        for times in [1, 0] {
            debugger.was_asked();
            let why = asked.registers(native(12, 0x1200), Arch::X86_64).map(|_| ()).expect_err("it has none");
            assert!(why.starts_with("OMPD has no way"), "{why}");
            let questions = debugger.was_asked().iter().filter(|asked| asked.starts_with("*(char")).count();
            assert_eq!((questions, asked.takes_expressions()), (times, false), "{nowhere:?}");
        }
    }
}

#[test]
fn symbols_are_asked_for_once_and_thread_locals_each_time() {
    let mut debugger = two_threads();
    debugger.symbols.extend([("there".to_owned(), 0x700), ("local of 12".to_owned(), 0x800)]);
    debugger.symbols.extend([("zero".to_owned(), 0), ("minus one".to_owned(), u64::MAX)]);
    let asked = debugger.table();
    assert_eq!(
        ["there", "there", "zero", "minus one", "absent"].map(|name| asked.symbol(name)),
        [Some(Addr(0x700)), Some(Addr(0x700)), None, None, None]
    );
    assert_eq!(debugger.was_asked(), ["there of 0", "zero of 0", "minus one of 0", "absent of 0"]);
    asked.forget_symbols();
    assert_eq!((asked.symbol("there"), debugger.was_asked()), (Some(Addr(0x700)), vec!["there of 0".to_owned()]));
    let local = |native| asked.thread_local(native, "local");
    assert_eq!([native(11, 0x1100), native(12, 0x1200), native(13, 0)].map(local), [None, Some(Addr(0x800)), None]);
}

#[test]
fn a_debugger_meets_every_eighth_thread_by_age() {
    let natives = |count: i32| (0..count).rev().map(|n| native(100 + n, 0)).collect::<Vec<_>>();
    let debugger = Played { threads: (100..140).map(|lwp| (lwp, (0, 0))).collect(), ..Played::default() };
    let asked = debugger.table();
    asked.introduce(&natives(8));
    assert!(debugger.was_asked().is_empty());
    asked.introduce(&natives(24));
    assert_eq!(debugger.was_asked(), ["thread 1 107", "thread 1 115", "thread 1 123"]);
    asked.introduce(&natives(24));
    assert!(debugger.was_asked().is_empty(), "it has met them");
    asked.introduce(&natives(25));
    assert_eq!(debugger.was_asked(), ["thread 1 107", "thread 1 115", "thread 1 123"]);
}

#[test]
fn what_goes_wrong_with_sizes_is_the_callbacks_fault_or_the_contexts() {
    thread_local!(static ANSWER: Cell<Rc> = const { Cell::new(Rc::OK) });
    unsafe extern "C" fn sizes(_: *mut AddressSpaceContext, out: *mut TypeSizes) -> Rc {
        // SAFETY: a place for the answer.
        unsafe { (*out).pointer = 8 };
        ANSWER.get()
    }
    let debugger = Played::default();
    let mut asked = debugger.table();
    assert_eq!(asked.sizes().map(|sizes| sizes.pointer), Err(Rc::CALLBACK_ERROR), "it has no such callback");
    asked.table.sizeof_type = Some(sizes);
    for (answer, expected) in [
        (Rc::OK, Ok(8)),
        (Rc::BAD_INPUT, Err(Rc::BAD_INPUT)),
        (Rc::STALE_HANDLE, Err(Rc::BAD_INPUT)),
        (Rc::ERROR, Err(Rc::CALLBACK_ERROR)),
        (Rc::UNSUPPORTED, Err(Rc::CALLBACK_ERROR)),
    ] {
        ANSWER.set(answer);
        assert_eq!(asked.sizes().map(|sizes| sizes.pointer), expected, "{answer:?}");
    }
}

#[test]
fn memory_that_the_debugger_cannot_read_is_unmapped() {
    let debugger = Played { memory: BTreeMap::from([(0x500, vec![1, 2, 3, 4])]), ..Played::default() };
    let asked = debugger.table();
    let mut bytes = [0; 4];
    assert!(asked.read(Addr(0x500), &mut bytes).is_ok());
    assert_eq!(bytes, [1, 2, 3, 4]);
    assert!(matches!(asked.read(Addr(0x501), &mut bytes), Err(ReadFault::Unmapped)));
}
