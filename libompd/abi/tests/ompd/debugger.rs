//! A small debugger: it holds a process or a core, and answers callbacks.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use nix::libc;
use ompd::api::*;
use ompd::extra;
use ompd::types::*;
use ompd_process::{Addr, Core, Live, OpenOptions, Target};

/// What is held.
pub struct Held {
    pub target: Box<dyn Target>,
    /// Registers and stops are told of, as our plugin does.
    pub generous: bool,
    /// Only stops are told of, and registers of no thread.
    pub stops_alone: bool,
    /// It says which words of the registers it has: bit N for word N. The others are wrong.
    pub words: Option<u64>,
    /// Names of symbols are taken for expressions, as LLVM's plugin for gdb does.
    pub expressions: bool,
    /// It does not survive a read that fails, as LLVM's plugin for gdb does not: the test ends.
    pub fragile: bool,
    /// Symbols that it does not know, by how they begin.
    pub hidden: &'static [&'static str],
    /// Reads since the counter was last set to nothing, by address and length.
    pub reads: RefCell<BTreeMap<(u64, u64), u32>>,
    /// How often it was let run.
    pub stops: Cell<u64>,
    /// A word of memory, and what the library reads wherever that word is.
    pub swapped: Cell<Option<(u64, u64)>>,
    /// What is to happen at the next read.
    pub at_read: RefCell<Option<Box<dyn FnOnce()>>>,
}

impl Held {
    pub fn live(pid: i32, generous: bool) -> Held {
        // It may wait for its turn while it is held.
        let options = OpenOptions { max_pause: Duration::from_secs(3600), ..OpenOptions::default() };
        let mut live = Live::open(pid, &options).expect("open");
        live.stop().expect("stop");
        Held::of(Box::new(live), generous)
    }

    pub fn core(path: &std::path::Path, generous: bool) -> Held {
        Held::of(Box::new(Core::open(path, &OpenOptions::default()).expect("a core")), generous)
    }

    pub fn of(target: Box<dyn Target>, generous: bool) -> Held {
        let (reads, stops, at_read) = (RefCell::default(), Cell::new(1), RefCell::default());
        let [stops_alone, expressions, fragile] = [false; 3];
        let (words, swapped) = (None, Cell::default());
        Held { target, generous, stops_alone, words, expressions, fragile, hidden: &[], reads, stops, swapped, at_read }
    }
}

thread_local! {
    /// What `alloc_memory`, which is told of no address space, has given out.
    static ALLOCATED: Cell<i64> = const { Cell::new(0) };
    /// Whether the library wrote behind the end of any of it.
    static OVERRUN: Cell<bool> = const { Cell::new(false) };
    /// What the library had the debugger show since it was last asked for.
    static SHOWN: RefCell<String> = const { RefCell::new(String::new()) };
}

/// What lies behind each piece of memory. As many bytes before it begin with its length.
const BEHIND: [u8; 16] = [0x5a; 16];

unsafe extern "C" fn alloc_memory(nbytes: Size, out: *mut *mut c_void) -> Rc {
    ALLOCATED.set(ALLOCATED.get() + 1);
    let bytes = nbytes as usize;
    // Not zeroed: whoever relies on that is found out.
    unsafe {
        let memory = libc::malloc(bytes + 2 * BEHIND.len()).cast::<u8>();
        memory.cast::<usize>().write(bytes);
        let own = memory.add(BEHIND.len());
        own.write_bytes(0xa5, bytes);
        own.add(bytes).cast::<[u8; BEHIND.len()]>().write_unaligned(BEHIND);
        out.write(own.cast());
    }
    Rc::OK
}

unsafe extern "C" fn free_memory(memory: *mut c_void) -> Rc {
    ALLOCATED.set(ALLOCATED.get() - 1);
    unsafe {
        let own = memory.cast::<u8>();
        let begin = own.sub(BEHIND.len());
        let behind = own.add(begin.cast::<usize>().read()).cast::<[u8; BEHIND.len()]>();
        if behind.read_unaligned() != BEHIND {
            OVERRUN.set(true);
        }
        libc::free(begin.cast());
    }
    Rc::OK
}

unsafe extern "C" fn print_string(text: *const c_char, _: c_int) -> Rc {
    let text = unsafe { CStr::from_ptr(text) }.to_str().expect("UTF-8");
    SHOWN.with_borrow_mut(|shown| shown.push_str(text));
    Rc::OK
}

unsafe extern "C" fn sizeof_type(context: *mut AddressSpaceContext, sizes: *mut TypeSizes) -> Rc {
    let held = unsafe { &*context.cast::<Held>() };
    let pointer = held.target.arch().pointer_bytes;
    unsafe { sizes.write(TypeSizes { char_: 1, short: 2, int: 4, long: pointer, long_long: 8, pointer }) };
    Rc::OK
}

unsafe extern "C" fn symbol_addr_lookup(
    context: *mut AddressSpaceContext,
    thread: *mut ThreadContext,
    name: *const c_char,
    address: *mut Address,
    _: *const c_char,
) -> Rc {
    let held = unsafe { &*context.cast::<Held>() };
    let name = unsafe { CStr::from_ptr(name) }.to_str().expect("a name");
    if let (true, Some(register)) = (held.expressions, name.strip_prefix("*(char *)$")) {
        let Some(value) = registers(held, thread.addr() as i32).and_then(|set| named(&set, register)) else {
            return Rc::ERROR;
        };
        unsafe { address.write(Address { segment: 0, address: value }) };
        return Rc::OK;
    }
    if held.hidden.iter().any(|hidden| name.starts_with(hidden)) {
        return Rc::ERROR;
    }
    // As debuggers do, in the program first.
    let is_program = |path: &String| held.target.process().exe.as_ref() == Some(path);
    let (program, others): (Vec<_>, Vec<_>) = held.target.modules().iter().partition(|module| is_program(&module.path));
    match program.into_iter().chain(others).find_map(|module| module.symbol(name)) {
        Some(symbol) if !symbol.tls => {
            unsafe { address.write(Address { segment: 0, address: symbol.addr.0 }) };
            Rc::OK
        }
        _ => Rc::ERROR,
    }
}

unsafe extern "C" fn read_memory(
    context: *mut AddressSpaceContext,
    thread: *mut ThreadContext,
    address: *const Address,
    nbytes: Size,
    buffer: *mut c_void,
) -> Rc {
    let held = unsafe { &*context.cast::<Held>() };
    let address = unsafe { address.read() };
    if let Some(happens) = held.at_read.take() {
        happens();
    }
    let buffer = unsafe { std::slice::from_raw_parts_mut(buffer.cast::<u8>(), nbytes as usize) };
    match (address.segment, held.generous) {
        (0, _) => {
            // A panic in a callback ends the test at once.
            assert!(address.address >= 4096, "{:#x} is on the first page", address.address);
            *held.reads.borrow_mut().entry((address.address, nbytes)).or_default() += 1;
            let read = held.target.read(Addr(address.address), buffer);
            assert!(read.is_ok() || !held.fragile, "{read:?}");
            if let Some((from, to)) = held.swapped.get() {
                let words = buffer.as_chunks_mut::<8>().0.iter_mut();
                words.filter(|word| **word == from.to_ne_bytes()).for_each(|word| *word = to.to_ne_bytes());
            }
            if read.is_ok() { Rc::OK } else { Rc::ERROR }
        }
        (extra::REGISTERS, true) if held.stops_alone => Rc::ERROR,
        (extra::STOP, true) => {
            buffer.copy_from_slice(&held.stops.get().to_ne_bytes());
            Rc::OK
        }
        (extra::REGISTERS, true) => {
            let Some(set) = registers(held, thread.addr() as i32) else { return Rc::ERROR };
            buffer.copy_from_slice(&set);
            Rc::OK
        }
        (extra::PIECES, true) => {
            let count = (address.address & !extra::ADDRESS) as usize;
            let question: Vec<u64> = numbers(&buffer[..16 * count]);
            let mut from = 0;
            for piece in question.chunks_exact(2) {
                assert!(piece[0] >= 4096, "{:#x} is on the first page", piece[0]);
                *held.reads.borrow_mut().entry((piece[0], piece[1])).or_default() += 1;
                let (known, bytes) = buffer[from..][..8 + piece[1] as usize].split_at_mut(8);
                let read = held.target.read(Addr(piece[0]), bytes).is_ok();
                known.copy_from_slice(&u64::from(read).to_ne_bytes());
                from += 8 + piece[1] as usize;
            }
            Rc::OK
        }
        (extra::THREADS, true) => {
            let all = held.target.threads().iter().map(|thread| thread.lwp as u64);
            let count = all.len() as u64;
            for (part, number) in buffer.as_chunks_mut().0.iter_mut().zip(std::iter::once(count).chain(all)) {
                *part = number.to_ne_bytes();
            }
            Rc::OK
        }
        (extra::ALL_REGISTERS, true) => {
            let count = (address.address & !extra::ADDRESS) as usize;
            let lwps = numbers(&buffer[..8 * count]);
            let each = buffer.len() / count;
            for (lwp, answer) in lwps.into_iter().zip(buffer.chunks_exact_mut(each)) {
                let known = registers(held, lwp as i32).filter(|_| !held.stops_alone);
                answer[..8].copy_from_slice(&u64::from(known.is_some()).to_ne_bytes());
                answer[8..].copy_from_slice(&known.unwrap_or_else(|| vec![0xaa; each - 8]));
            }
            Rc::OK
        }
        (extra::PARTIAL_REGISTERS, true) => {
            let Some(words) = held.words else { return Rc::ERROR };
            let count = (address.address & !extra::ADDRESS) as usize;
            let lwps = numbers(&buffer[..8 * count]);
            let each = buffer.len() / count;
            for (lwp, answer) in lwps.into_iter().zip(buffer.chunks_exact_mut(each)) {
                let known = registers(held, lwp as i32);
                answer[..8].copy_from_slice(&known.as_ref().map_or(0, |_| words).to_ne_bytes());
                answer[8..].copy_from_slice(&known.unwrap_or_else(|| vec![0xaa; each - 8]));
                let absent = answer[8..].as_chunks_mut::<8>().0.iter_mut().enumerate();
                absent.filter(|(word, _)| words >> word & 1 == 0).for_each(|(_, word)| *word = [0; 8]);
            }
            Rc::OK
        }
        _ => Rc::ERROR,
    }
}

fn numbers(bytes: &[u8]) -> Vec<u64> {
    bytes.as_chunks().0.iter().map(|word| u64::from_ne_bytes(*word)).collect()
}

/// A register of `struct user_regs_struct` by its name (sys/user.h).
fn named(set: &[u8], register: &str) -> Option<u64> {
    const NAMES: [&str; 20] = [
        "r15", "r14", "r13", "r12", "rbp", "rbx", "r11", "r10", "r9", "r8", "rax", "rcx", "rdx", "rsi", "rdi",
        "orig_rax", "rip", "cs", "eflags", "rsp",
    ];
    let at = NAMES.iter().position(|name| *name == register)?;
    numbers(set).get(at).copied()
}

/// `struct user_regs_struct` of a thread.
fn registers(held: &Held, lwp: i32) -> Option<Vec<u8>> {
    let registers = held.target.threads().iter().find(|t| t.lwp == lwp)?.registers.as_ref().ok()?;
    Some(test_programs::user_regs(registers))
}

unsafe extern "C" fn read_string(
    context: *mut AddressSpaceContext,
    thread: *mut ThreadContext,
    address: *const Address,
    nbytes: Size,
    buffer: *mut c_void,
) -> Rc {
    unsafe { read_memory(context, thread, address, nbytes, buffer) }
}

unsafe extern "C" fn same_order(
    _: *mut AddressSpaceContext,
    input: *const c_void,
    unit: Size,
    count: Size,
    output: *mut c_void,
) -> Rc {
    unsafe { ptr::copy(input.cast::<u8>(), output.cast::<u8>(), (unit * count) as usize) };
    Rc::OK
}

unsafe extern "C" fn thread_context(
    context: *mut AddressSpaceContext,
    kind: ThreadIdKind,
    size: Size,
    id: *const c_void,
    out: *mut *mut ThreadContext,
) -> Rc {
    let held = unsafe { &*context.cast::<Held>() };
    if held.generous && ([extra::KIND, extra::BULK].contains(&kind) || kind == extra::PARTIAL && held.words.is_some()) {
        return Rc::OK;
    }
    if kind != thread_id::LWP || size != 8 {
        return Rc::UNSUPPORTED;
    }
    let lwp = unsafe { id.cast::<u64>().read_unaligned() } as i32;
    if !held.target.threads().iter().any(|thread| thread.lwp == lwp) {
        return Rc::BAD_INPUT;
    }
    unsafe { out.write(ptr::without_provenance_mut(lwp as usize)) };
    Rc::OK
}

/// All callbacks but the one for writing, which nobody may call.
pub fn callbacks() -> Callbacks {
    CALLBACKS
}

/// One debugger at a time has the library.
static TURN: Mutex<()> = Mutex::new(());

/// The library, initialised; finalised at the end, when all memory must have been given back.
pub struct Session {
    pub space: *mut AddressSpaceHandle,
    pub held: Box<Held>,
    /// By name: id and scope.
    pub icvs: BTreeMap<String, (IcvId, ScopeNumber)>,
    _turn: MutexGuard<'static, ()>,
}

/// What the library had this thread's debugger show.
fn shown() -> String {
    SHOWN.take()
}

/// Waits until no other test uses the library.
pub fn turn() -> MutexGuard<'static, ()> {
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What the library says of a process that it refuses.
pub fn refused(held: &mut Held) -> String {
    let _turn = turn();
    let mut space = ptr::null_mut();
    unsafe {
        assert_eq!(ompd_initialize(201_811, &raw const CALLBACKS), Rc::OK);
        assert_eq!(ompd_process_initialize(ptr::from_mut(held).cast(), &raw mut space), Rc::INCOMPATIBLE);
        assert_eq!(ompd_finalize(), Rc::OK);
    }
    assert!(space.is_null(), "results are written on success only");
    shown()
}

impl Session {
    pub fn new(version: Word, held: Held) -> Session {
        let turn = turn();
        let mut held = Box::new(held);
        ALLOCATED.set(0);
        let mut space = ptr::null_mut();
        unsafe {
            assert_eq!(ompd_initialize(version, &raw const CALLBACKS), Rc::OK);
            let opened = ompd_process_initialize((&raw mut *held).cast(), &raw mut space);
            if opened != Rc::OK {
                // Else all other tests of this process fail too.
                ompd_finalize();
            }
            assert_eq!((opened, shown()), (Rc::OK, String::new()));
        }
        let mut session = Session { space, held, icvs: BTreeMap::new(), _turn: turn };
        session.icvs = session.enumerate();
        session
    }

    fn enumerate(&self) -> BTreeMap<String, (IcvId, ScopeNumber)> {
        let (mut id, mut more, mut found) = (0, 1, BTreeMap::new());
        while more == 1 {
            let (mut next, mut name, mut scope) = (0, ptr::null(), 0);
            let rc = unsafe {
                ompd_enumerate_icvs(self.space, id, &raw mut next, &raw mut name, &raw mut scope, &raw mut more)
            };
            assert_eq!(rc, Rc::OK);
            found.insert(take(name), (next, scope));
            id = next;
        }
        found
    }

    /// The thread with this native id.
    pub fn thread(&self, kind: ThreadIdKind, id: u64) -> Result<*mut ThreadHandle, Rc> {
        out(|handle| unsafe { ompd_get_thread_handle(self.space, kind, 8, (&raw const id).cast(), handle) })
    }

    /// A control variable as a number.
    pub fn icv<T>(&self, handle: *mut T, name: &str) -> Result<Word, Rc> {
        let (id, scope) = self.icvs[name];
        out(|value| unsafe { ompd_get_icv_from_scope(handle.cast(), scope, id, value) })
    }

    /// A control variable as text.
    pub fn icv_text<T>(&self, handle: *mut T, name: &str) -> Result<String, Rc> {
        let (id, scope) = self.icvs[name];
        out(|text| unsafe { ompd_get_icv_string_from_scope(handle.cast(), scope, id, text) }).map(take)
    }
}

static CALLBACKS: Callbacks = Callbacks {
    alloc_memory: Some(alloc_memory),
    free_memory: Some(free_memory),
    print_string: Some(print_string),
    sizeof_type: Some(sizeof_type),
    symbol_addr_lookup: Some(symbol_addr_lookup),
    read_memory: Some(read_memory),
    write_memory: None,
    read_string: Some(read_string),
    device_to_host: Some(same_order),
    host_to_device: Some(same_order),
    get_thread_context_for_thread_id: Some(thread_context),
};

impl Drop for Session {
    fn drop(&mut self) {
        unsafe {
            let released = ompd_rel_address_space_handle(self.space);
            let done = ompd_finalize();
            if !std::thread::panicking() {
                assert_eq!((released, done), (Rc::OK, Rc::OK));
                assert_eq!(ALLOCATED.get(), 0, "memory of the debugger that was not given back");
                assert!(!OVERRUN.get(), "the library wrote behind the end of the debugger's memory");
            }
        }
    }
}

/// A call that writes one value.
pub fn out<T: Copy>(call: impl FnOnce(*mut T) -> Rc) -> Result<T, Rc> {
    let mut value = std::mem::MaybeUninit::<T>::uninit();
    match call(value.as_mut_ptr()) {
        Rc::OK => Ok(unsafe { value.assume_init() }),
        rc => Err(rc),
    }
}

/// Memory of the library's results, which is given back.
///
/// # Safety
/// As `free_memory`.
pub unsafe fn give_back(memory: *mut c_void) {
    unsafe { free_memory(memory) };
}

/// A string of the library, which is given back.
pub fn take(text: *const c_char) -> String {
    let owned: CString = unsafe { CStr::from_ptr(text) }.to_owned();
    unsafe { free_memory(text.cast_mut().cast()) };
    owned.into_string().expect("UTF-8")
}
