//! A debugger that holds the core of a process, counts what it is asked for, and fails or lies when it is told to.

use std::alloc::{Layout, alloc, dealloc};
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr;
use std::rc::Rc as Shared;

use ompd::api::ompd_get_api_version;
use ompd::extra;
use ompd::types::{
    Address, AddressSpaceContext, Callbacks, Rc, Size, ThreadContext, ThreadIdKind, TypeSizes, thread_id,
};
use ompd_process::{Addr, Core, Target as _};

/// Callbacks of one call of the library. An honest debugger is asked some thousand times when a process is opened.
const MOST_CALLBACKS: u64 = 2_000_000;
/// Bytes asked for at once.
const MOST_BYTES: Size = 64 << 20;
/// What the debugger calls its first process.
const CONTEXT: usize = 0x51;

/// What goes wrong with a callback.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// It says that it failed, and has done nothing.
    Fails,
    /// It returns what is no return code.
    Nonsense,
    /// It says that all is well, and has done nothing.
    Silent,
    /// It gives the first half, and says that all is well.
    Short,
    /// It gives nothing but zeros.
    Zero,
    /// Some bits are wrong.
    Flips,
    /// All is wrong.
    Random,
    /// It calls the library, and answers rightly then.
    CallsBack,
}

/// All of them.
pub const FAULTS: [Fault; 8] = [
    Fault::Fails,
    Fault::Nonsense,
    Fault::Silent,
    Fault::Short,
    Fault::Zero,
    Fault::Flips,
    Fault::Random,
    Fault::CallsBack,
];

/// Which callbacks go wrong, counted from when the plan was made.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// How.
    pub fault: Fault,
    /// The first; none if 0.
    pub first: u64,
    /// How many callbacks on the next ones; 0 if the first is the only one.
    pub every: u64,
}

impl Plan {
    /// Nothing goes wrong.
    pub const NONE: Plan = Plan { fault: Fault::Fails, first: 0, every: 0 };

    fn hits(self, number: u64) -> bool {
        self.first > 0
            && number >= self.first
            && match self.every {
                0 => number == self.first,
                every => (number - self.first).is_multiple_of(every),
            }
    }
}

/// A process to be asked about.
#[derive(Debug)]
pub struct Subject {
    core: Core,
    symbols: RefCell<HashMap<String, Option<u64>>>,
}

impl Subject {
    /// One that left this core.
    pub fn new(core: Core) -> Subject {
        Subject { core, symbols: RefCell::default() }
    }

    /// Kernel ids of its threads, and what their thread pointers are.
    pub fn threads(&self) -> Vec<(u64, u64)> {
        let pointer = |thread: &ompd_process::Thread| thread.thread_pointer().map_or(0, |at| at.0);
        self.core.threads().iter().map(|thread| (thread.lwp as u64, pointer(thread))).collect()
    }

    fn symbol(&self, name: &str) -> Option<u64> {
        *self.symbols.borrow_mut().entry(name.to_owned()).or_insert_with(|| {
            let symbol = self.core.modules().iter().find_map(|module| module.symbol(name))?;
            (!symbol.tls).then_some(symbol.addr.0)
        })
    }
}

#[derive(Default)]
struct State {
    subjects: Vec<Shared<Subject>>,
    /// Offers registers and says when the process has run.
    generous: bool,
    stop: u64,
    plan: Option<Plan>,
    /// Callbacks since the plan was made.
    since_plan: u64,
    /// Callbacks since the library was called.
    in_call: u64,
    /// Faults since the plan was made, and those among them of callbacks that tell of the process.
    faults: u64,
    lies: u64,
    /// Memory given out, by address.
    allocated: BTreeMap<usize, Layout>,
    /// What the library has done and must not.
    wrong: Vec<String>,
}

thread_local! {
    static STATE: RefCell<State> = RefCell::default();
}

fn with<T>(act: impl FnOnce(&mut State) -> T) -> T {
    STATE.with_borrow_mut(act)
}

/// Makes the debugger hold these processes, each under the context of its index.
pub fn hold(subjects: &[Shared<Subject>]) {
    with(|state| state.subjects = subjects.to_vec());
}

/// The context of a process by its index.
pub fn context(index: usize) -> *mut AddressSpaceContext {
    ptr::without_provenance_mut(CONTEXT + index)
}

/// Sets what goes wrong from now on, and whether more is offered than OMPD asks for.
pub fn plan(plan: Plan, generous: bool) {
    with(|state| {
        (state.plan, state.since_plan, state.generous) = (Some(plan), 0, generous);
        (state.faults, state.lies) = (0, 0);
        state.stop += 1;
    });
}

/// The library is about to be called.
pub fn begin() {
    with(|state| state.in_call = 0);
}

/// Counts the callbacks that went wrong since [`plan`], and those among them that report on the process. The library
/// may believe what the latter said for as long as the process is open.
pub fn faults() -> (u64, u64) {
    with(|state| (state.faults, state.lies))
}

/// How many callbacks there were since [`plan`].
pub fn since_plan() -> u64 {
    with(|state| state.since_plan)
}

/// Pieces of memory that have not been given back.
pub fn allocated() -> usize {
    with(|state| state.allocated.len())
}

/// What was done wrong.
pub fn wrong() -> Vec<String> {
    with(|state| std::mem::take(&mut state.wrong))
}

/// The table.
pub static CALLBACKS: Callbacks = Callbacks {
    alloc_memory: Some(alloc_memory),
    free_memory: Some(free_memory),
    print_string: Some(print_string),
    sizeof_type: Some(sizeof_type),
    symbol_addr_lookup: Some(symbol_addr_lookup),
    read_memory: Some(read_memory),
    write_memory: Some(write_memory),
    read_string: Some(read_memory),
    device_to_host: None,
    host_to_device: None,
    get_thread_context_for_thread_id: Some(thread_context),
};

/// Counts a callback, and says what goes wrong with it, with a number that is another each time.
fn next(tells: bool) -> (Option<Fault>, u64) {
    let (fault, number) = with(|state| {
        state.in_call += 1;
        state.since_plan += 1;
        if state.in_call == MOST_CALLBACKS {
            state.wrong.push(format!("{MOST_CALLBACKS} callbacks in one call"));
        }
        let fault = state.plan.filter(|plan| plan.hits(state.since_plan)).map(|plan| plan.fault);
        let lies = fault.is_some_and(|fault| fault != Fault::CallsBack);
        state.faults += u64::from(lies);
        state.lies += u64::from(lies && tells);
        // Somewhere such a call has to end, to be told of.
        let fault = if state.in_call >= MOST_CALLBACKS { Some(Fault::Fails) } else { fault };
        (fault, state.since_plan)
    });
    if fault == Some(Fault::CallsBack) {
        let mut version = 7;
        // SAFETY: there is a place for the version.
        let rc = unsafe { ompd_get_api_version(&raw mut version) };
        if (rc, version) != (Rc::ERROR, 7) {
            with(|state| state.wrong.push(format!("a callback that called the library got {rc:?}, {version}")));
        }
        return (None, number);
    }
    (fault, number)
}

/// What a callback returns that has not done what it was asked to.
fn refusal(fault: Fault, number: u64) -> Option<Rc> {
    const CODES: [Rc; 6] =
        [Rc::ERROR, Rc::UNAVAILABLE, Rc::BAD_INPUT, Rc::INCOMPLETE, Rc::NOMEM, Rc::INCOMPATIBLE_HANDLE];
    match fault {
        Fault::Fails => Some(CODES[number as usize % CODES.len()]),
        Fault::Nonsense => Some(Rc([99, -1, i32::MAX, i32::MIN][number as usize % 4])),
        Fault::Silent => Some(Rc::OK),
        _ => None,
    }
}

/// Numbers that look random and are the same each time (splitmix64, as Steele, Lea and Flood describe it).
pub fn scatter(number: u64) -> u64 {
    let mut at = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    at = (at ^ (at >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    at = (at ^ (at >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    at ^ (at >> 31)
}

fn subject(context: *mut AddressSpaceContext) -> Option<Shared<Subject>> {
    with(|state| {
        let found = context.addr().checked_sub(CONTEXT).and_then(|index| state.subjects.get(index)).cloned();
        if found.is_none() {
            state.wrong.push(format!("there is no process {context:?}"));
        }
        found
    })
}

unsafe extern "C" fn alloc_memory(nbytes: Size, out: *mut *mut c_void) -> Rc {
    let (fault, number) = next(false);
    if let Some(rc) = fault.and_then(|fault| refusal(fault, number)) {
        return rc;
    }
    let layout =
        Layout::from_size_align(nbytes as usize, 16).ok().filter(|layout| (1..=1 << 20).contains(&layout.size()));
    let Some(layout) = layout.filter(|_| fault != Some(Fault::Zero)) else {
        if fault.is_none() {
            with(|state| state.wrong.push(format!("{nbytes} bytes of memory")));
        }
        // SAFETY: the library gives a place for the pointer.
        unsafe { out.write(ptr::null_mut()) };
        return Rc::OK;
    };
    // SAFETY: the size is not 0, the memory as large as said, and `out` a place for a pointer.
    unsafe {
        let memory = alloc(layout);
        memory.write_bytes(0xa5, layout.size());
        out.write(memory.cast());
        with(|state| state.allocated.insert(memory.addr(), layout));
    }
    Rc::OK
}

unsafe extern "C" fn free_memory(memory: *mut c_void) -> Rc {
    let (fault, number) = next(false);
    take_back(memory);
    fault.and_then(|fault| refusal(fault, number)).unwrap_or(Rc::OK)
}

/// Takes memory back, whoever gives it.
pub fn take_back(memory: *mut c_void) {
    match with(|state| state.allocated.remove(&memory.addr())) {
        // SAFETY: it was got with this layout, and is not in the list any more.
        Some(layout) => unsafe { dealloc(memory.cast(), layout) },
        None => with(|state| state.wrong.push(format!("{memory:?} is given back, and was not given"))),
    }
}

/// Why a process was refused, which is text of one line.
unsafe extern "C" fn print_string(text: *const c_char, _: c_int) -> Rc {
    // SAFETY: the library gives a C string, or NULL if something is wrong.
    let line = (!text.is_null()).then(|| unsafe { std::ffi::CStr::from_ptr(text) }.to_string_lossy().into_owned());
    let sound = line.as_ref().and_then(|line| line.strip_suffix('\n')).is_some_and(|line| {
        !line.is_empty() && !line.contains(char::is_control) && !line.contains(char::REPLACEMENT_CHARACTER)
    });
    if !sound {
        with(|state| state.wrong.push(format!("a message is {line:?}")));
    }
    Rc::OK
}

unsafe extern "C" fn sizeof_type(context: *mut AddressSpaceContext, out: *mut TypeSizes) -> Rc {
    let (fault, number) = next(true);
    if let Some(rc) = fault.and_then(|fault| refusal(fault, number)) {
        return rc;
    }
    let Some(subject) = subject(context) else { return Rc::BAD_INPUT };
    let pointer = subject.core.arch().pointer_bytes;
    let sizes = TypeSizes { char_: 1, short: 2, int: 4, long: pointer, long_long: 8, pointer };
    let sizes = match fault {
        None => sizes,
        Some(Fault::Zero) => TypeSizes::default(),
        Some(_) => TypeSizes { pointer: scatter(number) as u8, ..sizes },
    };
    // SAFETY: the library gives a place for the sizes.
    unsafe { out.write(sizes) };
    Rc::OK
}

unsafe extern "C" fn symbol_addr_lookup(
    context: *mut AddressSpaceContext,
    _: *mut ThreadContext,
    name: *const c_char,
    out: *mut Address,
    _: *const c_char,
) -> Rc {
    let (fault, number) = next(true);
    if let Some(rc) = fault.and_then(|fault| refusal(fault, number)) {
        return rc;
    }
    let Some(subject) = subject(context) else { return Rc::BAD_INPUT };
    // SAFETY: the library gives a string.
    let name = unsafe { CStr::from_ptr(name) };
    let found = name.to_str().ok().and_then(|name| subject.symbol(name));
    let random = scatter(number);
    let address = match fault {
        None => match found {
            Some(address) => address,
            None => return Rc::ERROR,
        },
        Some(Fault::Zero) => 0,
        Some(Fault::Short) => found.unwrap_or(0) & 0xffff_ffff,
        Some(Fault::Flips) => found.unwrap_or(0) ^ 1 << (random % 64),
        // At the ends of the address space, in a module, or anywhere.
        Some(_) => match random % 4 {
            0 => u64::MAX - random / 4 % 64,
            1 => random / 4 % 64,
            2 => {
                let modules = subject.core.modules();
                let range = modules[random as usize / 4 % modules.len()].ranges[0].clone();
                range.start + random / 64 % (range.end - range.start)
            }
            _ => random,
        },
    };
    // SAFETY: the library gives a place for the address.
    unsafe { out.write(Address { segment: 0, address }) };
    Rc::OK
}

unsafe extern "C" fn read_memory(
    context: *mut AddressSpaceContext,
    thread: *mut ThreadContext,
    address: *const Address,
    nbytes: Size,
    buffer: *mut c_void,
) -> Rc {
    let (fault, number) = next(true);
    if nbytes == 0 || nbytes > MOST_BYTES {
        with(|state| state.wrong.push(format!("{nbytes} bytes are read")));
    }
    if let Some(rc) = fault.and_then(|fault| refusal(fault, number)) {
        return rc;
    }
    let Some(subject) = subject(context) else { return Rc::BAD_INPUT };
    // SAFETY: the library gives an address.
    let address = unsafe { address.read() };
    // SAFETY: the library gives a buffer of so many bytes.
    let buffer = unsafe { std::slice::from_raw_parts_mut(buffer.cast::<u8>(), nbytes as usize) };
    if fault == Some(Fault::Random) {
        for (at, byte) in buffer.iter_mut().enumerate() {
            *byte = scatter(number ^ (at as u64) << 32) as u8;
        }
        return Rc::OK;
    }
    // Some segments have a question in the buffer.
    let mut own = buffer.to_vec();
    let read = match address.segment {
        0 => subject.core.read(Addr(address.address), &mut own).is_ok(),
        segment => beyond(&subject, (segment, address.address), thread, &mut own),
    };
    if !read && !matches!(fault, Some(Fault::Zero | Fault::Flips)) {
        return Rc::ERROR;
    }
    let random = scatter(number);
    match fault {
        Some(Fault::Short) => own.truncate(own.len() / 2),
        Some(Fault::Zero) => own.fill(0),
        Some(Fault::Flips) => {
            let at = random as usize % own.len();
            own[at] ^= 1 << (random >> 32 & 7);
        }
        _ => {}
    }
    buffer[..own.len()].copy_from_slice(&own);
    Rc::OK
}

fn numbers(bytes: &[u8]) -> Vec<u64> {
    bytes.as_chunks().0.iter().map(|word| u64::from_ne_bytes(*word)).collect()
}

/// `struct user_regs_struct` of a thread.
fn registers(subject: &Subject, lwp: i32) -> Option<Vec<u8>> {
    let registers = subject.core.threads().iter().find(|t| t.lwp == lwp)?.registers.as_ref().ok()?;
    Some(test_programs::user_regs(registers))
}

/// What is offered beyond OMPD.
fn beyond(subject: &Subject, (segment, address): (u64, u64), thread: *mut ThreadContext, buffer: &mut [u8]) -> bool {
    let (generous, stop) = with(|state| (state.generous, state.stop));
    if !generous {
        with(|state| state.wrong.push(format!("a read from the segment {segment:#x}, which is not offered")));
    }
    match segment {
        extra::STOP => buffer.copy_from_slice(&stop.to_ne_bytes()),
        extra::REGISTERS => {
            let Some(set) = registers(subject, thread.addr() as i32) else { return false };
            buffer[..set.len()].copy_from_slice(&set);
        }
        extra::PIECES => {
            let count = (address & !extra::ADDRESS) as usize;
            let pieces = numbers(&buffer[..16 * count]);
            let mut from = 0;
            for piece in pieces.chunks_exact(2) {
                let (known, bytes) = buffer[from..][..8 + piece[1] as usize].split_at_mut(8);
                let read = subject.core.read(Addr(piece[0]), bytes).is_ok();
                known.copy_from_slice(&u64::from(read).to_ne_bytes());
                from += 8 + piece[1] as usize;
            }
        }
        extra::THREADS => {
            let all = subject.core.threads().iter().map(|thread| thread.lwp as u64);
            let numbers = std::iter::once(all.len() as u64).chain(all);
            buffer.as_chunks_mut().0.iter_mut().zip(numbers).for_each(|(part, number)| *part = number.to_ne_bytes());
        }
        extra::ALL_REGISTERS => {
            let count = (address & !extra::ADDRESS) as usize;
            let lwps = numbers(&buffer[..8 * count]);
            let each = buffer.len() / count;
            for (lwp, answer) in lwps.into_iter().zip(buffer.chunks_exact_mut(each)) {
                let known = registers(subject, lwp as i32);
                answer[..8].copy_from_slice(&u64::from(known.is_some()).to_ne_bytes());
                if let Some(set) = known {
                    answer[8..].copy_from_slice(&set);
                }
            }
        }
        _ => return false,
    }
    true
}

unsafe extern "C" fn write_memory(
    _: *mut AddressSpaceContext,
    _: *mut ThreadContext,
    _: *const Address,
    _: Size,
    _: *const c_void,
) -> Rc {
    with(|state| state.wrong.push("memory is written".to_owned()));
    Rc::ERROR
}

unsafe extern "C" fn thread_context(
    context: *mut AddressSpaceContext,
    kind: ThreadIdKind,
    size: Size,
    id: *const c_void,
    out: *mut *mut ThreadContext,
) -> Rc {
    let (fault, number) = next(true);
    if let Some(rc) = fault.and_then(|fault| refusal(fault, number)) {
        return rc;
    }
    let Some(subject) = subject(context) else { return Rc::BAD_INPUT };
    if (kind == extra::KIND || kind == extra::BULK) && with(|state| state.generous) {
        return Rc::OK;
    }
    if kind != thread_id::LWP || size != 8 {
        return Rc::UNSUPPORTED;
    }
    // SAFETY: the library gives an id of eight bytes.
    let lwp = unsafe { id.cast::<u64>().read_unaligned() };
    let lwp = match fault {
        None if subject.core.threads().iter().any(|thread| thread.lwp as u64 == lwp) => lwp,
        None => return Rc::BAD_INPUT,
        Some(Fault::Zero) => 0,
        Some(_) => scatter(number),
    };
    // SAFETY: the library gives a place for the context.
    unsafe { out.write(ptr::without_provenance_mut(lwp as usize)) };
    Rc::OK
}
