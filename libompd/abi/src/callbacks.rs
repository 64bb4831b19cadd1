//! The debugger, as its callbacks show it.

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::{HashMap, HashSet};
use std::ffi::{CString, c_void};
use std::ptr;

use ompd_process::{Addr, Arch, Debugger, NativeThread, ReadFault, Registers};

use crate::types::{Address, AddressSpaceContext, Callbacks, Rc, Size, ThreadContext, TypeSizes, thread_id};

/// What a debugger may offer beyond what OMPD asks of it: it knows [`KIND`](extra::KIND), and reads from these segments through
/// `read_memory`. `docs/libompd.md` describes it.
pub mod extra {
    /// A kind of native thread ids, out of the range that is free for such. A debugger that offers the segments answers
    /// `get_thread_context_for_thread_id` for the id 0 of this kind, eight bytes long, with `ompd_rc_ok`, whatever context it gives.
    /// Others refuse a kind they do not know without any harm.
    pub const KIND: u64 = 1_071_707;
    /// The registers of the thread given, as the kernel keeps them: `struct user_regs_struct` on x86-64, and on aarch64 `struct
    /// user_pt_regs` with `tpidr_el0` behind it.
    pub const REGISTERS: u64 = 0x6f6d_7064_0001;
    /// How often the process has been let run, in eight bytes; without a thread. As long as it is the same, nothing is read
    /// twice.
    pub const STOP: u64 = 0x6f6d_7064_0002;
    /// The address asked for in these segments.
    pub const ADDRESS: u64 = 1 << 63;
    /// A debugger that knows this kind as well, asked in the same way, serves the segments below. In all of them numbers have
    /// eight bytes in the debugger's byte order. The buffer holds the question before the call, and the answer after it.
    pub const BULK: u64 = 1_071_708;
    /// Several pieces of memory in one call. The address is `ADDRESS` and how many there are. The buffer has the address and the
    /// length of each. It gets for each a number that is 1 if it could be read, and its bytes.
    pub const PIECES: u64 = 0x6f6d_7064_0003;
    /// The kernel ids of all threads: how many there are, and then, as far as the buffer goes, the ids.
    pub const THREADS: u64 = 0x6f6d_7064_0004;
    /// The registers of several threads. The address is `ADDRESS` and how many they are. The buffer has their kernel ids. It gets
    /// for each a number that is 1 if its registers are known, and its registers.
    pub const ALL_REGISTERS: u64 = 0x6f6d_7064_0005;
    /// A debugger that knows this kind as well, asked in the same way, serves the segment below, by which it says that registers are
    /// absent. It is asked for registers there alone.
    pub const PARTIAL: u64 = 1_071_709;
    /// As [`ALL_REGISTERS`], but the number of each thread has bit N set if the debugger has word N of its registers. It is 0 for a
    /// thread without registers.
    pub const PARTIAL_REGISTERS: u64 = 0x6f6d_7064_0006;
}

/// The callbacks of a debugger together with one of its address spaces.
#[derive(Debug)]
pub(crate) struct Asked {
    table: Callbacks,
    context: *mut AddressSpaceContext,
    /// The context that was found last, by kernel thread id and `pthread_t`. To find one costs LLVM's plugin for gdb a list of all
    /// threads, and moves all that it has given before.
    thread: Cell<Option<((i32, u64), *mut ThreadContext)>>,
    /// Symbols that were found: they stay where they are as long as the modules do.
    symbols: RefCell<HashMap<String, Addr>>,
    /// Whether the debugger offers segments of its own; `None` before it was asked. One that does not may not survive being asked
    /// to read from there.
    offers: OnceCell<bool>,
    /// Whether it takes questions about many things at once.
    offers_bulk: OnceCell<bool>,
    /// Whether it says which registers are absent.
    offers_partial: OnceCell<bool>,
    /// Whether it takes names of symbols for expressions; `None` before it was asked.
    expressions: Cell<Option<bool>>,
    /// Threads that the debugger was asked about: see [`Asked::introduce`].
    introduced: RefCell<HashSet<i32>>,
}

/// Gives a debugger a line for its user, if it takes any.
pub(crate) fn say(table: &Callbacks, text: &str) {
    let Some(print) = table.print_string else { return };
    let Ok(text) = CString::new(format!("libompd: {}\n", text.replace('\0', ""))) else { return };
    // SAFETY: a C string that lives throughout. The category has no meaning yet. That it was not shown changes nothing.
    let _ = unsafe { print(text.as_ptr(), 0) };
}

impl Asked {
    pub(crate) fn new(table: Callbacks, context: *mut AddressSpaceContext) -> Asked {
        Asked {
            table,
            context,
            thread: Cell::new(None),
            symbols: RefCell::default(),
            offers: OnceCell::new(),
            offers_bulk: OnceCell::new(),
            offers_partial: OnceCell::new(),
            expressions: Cell::new(None),
            introduced: RefCell::default(),
        }
    }

    /// Has the debugger meet all threads it has not met, the oldest first. The contexts of LLVM's plugin for gdb are wrong for a thread
    /// whose number is more than sixteen above the highest it was asked for.
    pub(crate) fn introduce(&self, natives: &[NativeThread]) {
        /// Their order here need not be the plugin's.
        const STEP: usize = 8;
        let mut introduced = self.introduced.borrow_mut();
        if natives.len() <= STEP || natives.iter().all(|native| introduced.contains(&native.lwp)) {
            return;
        }
        let mut by_age: Vec<NativeThread> = natives.to_vec();
        by_age.sort_unstable_by_key(|native| native.lwp);
        by_age.iter().skip(STEP - 1).step_by(STEP).for_each(|native| _ = self.thread(*native));
        introduced.extend(by_age.iter().map(|native| native.lwp));
    }

    /// What the debugger knows must be asked again: modules have come or gone.
    pub(crate) fn forget_symbols(&self) {
        self.symbols.borrow_mut().clear();
    }

    /// Sizes of types in the target.
    pub(crate) fn sizes(&self) -> Result<TypeSizes, Rc> {
        let ask = self.table.sizeof_type.ok_or(Rc::CALLBACK_ERROR)?;
        let mut sizes = TypeSizes::default();
        // SAFETY: the debugger gave the function for this context; `sizes` is a live value of the type it fills.
        match unsafe { ask(self.context, &raw mut sizes) } {
            Rc::OK => Ok(sizes),
            // The context is all that the callback was given.
            Rc::BAD_INPUT | Rc::STALE_HANDLE => Err(Rc::BAD_INPUT),
            _ => Err(Rc::CALLBACK_ERROR),
        }
    }

    /// The debugger's context of a thread.
    pub(crate) fn thread(&self, native: NativeThread) -> Option<*mut ThreadContext> {
        let key = (native.lwp, native.pthread.0);
        if let Some((_, known)) = self.thread.get().filter(|(of, _)| *of == key) {
            return Some(known);
        }
        let found = self.find_thread(native);
        self.thread.set(found.map(|found| (key, found)));
        found
    }

    /// A handle of a thread is asked for: ids may be those of another one by now.
    pub(crate) fn forget_thread(&self) {
        self.thread.set(None);
    }

    fn find_thread(&self, native: NativeThread) -> Option<*mut ThreadContext> {
        let ask = self.table.get_thread_context_for_thread_id?;
        let ids = [(thread_id::LWP, native.lwp as u64), (thread_id::PTHREAD, native.pthread.0)];
        ids.into_iter().find_map(|(kind, id)| {
            let mut found = ptr::null_mut();
            let size = size_of_val(&id) as Size;
            // SAFETY: the id is a live value of the size given, and the debugger writes one pointer.
            let rc = unsafe { ask(self.context, kind, size, (&raw const id).cast(), &raw mut found) };
            (rc == Rc::OK && !found.is_null()).then_some(found)
        })
    }

    /// Where a symbol lies; for thread-local ones, in the thread given.
    fn look_up(&self, name: &str, thread: *mut ThreadContext) -> Option<u64> {
        // Debuggers are known to say that all is well and give 0 or -1 for a symbol that there is not.
        self.ask(name, thread).map(|found| found.address).filter(|address| *address != 0 && *address != u64::MAX)
    }

    fn ask(&self, name: &str, thread: *mut ThreadContext) -> Option<Address> {
        let ask = self.table.symbol_addr_lookup?;
        let name = CString::new(name).ok()?;
        let mut found = Address::default();
        // SAFETY: the name is a C string that lives throughout, and the debugger writes one address.
        let rc = unsafe { ask(self.context, thread, name.as_ptr(), &raw mut found, ptr::null()) };
        (rc == Rc::OK).then_some(found)
    }

    fn offers(&self) -> bool {
        *self.offers.get_or_init(|| self.knows(extra::KIND))
    }

    /// It takes questions about many things in one call.
    fn offers_bulk(&self) -> bool {
        *self.offers_bulk.get_or_init(|| self.offers() && self.knows(extra::BULK))
    }

    /// It says which registers are absent.
    fn offers_partial(&self) -> bool {
        *self.offers_partial.get_or_init(|| self.offers() && self.knows(extra::PARTIAL))
    }

    /// The registers of these threads, by kernel thread id, as far as they are known; `None` if the debugger refuses the question.
    fn registers_of(&self, lwps: &[u64], arch: Arch) -> Option<HashMap<i32, Registers>> {
        let partial = self.offers_partial();
        let set = Registers::kernel_bytes(arch)?;
        let mut buf = vec![0; (8 + set) * lwps.len()];
        for (lwp, question) in lwps.iter().zip(buf.as_chunks_mut::<8>().0) {
            *question = lwp.to_ne_bytes();
        }
        let segment = if partial { extra::PARTIAL_REGISTERS } else { extra::ALL_REGISTERS };
        self.read_at(segment, extra::ADDRESS | lwps.len() as u64, ptr::null_mut(), &mut buf).ok()?;
        let of_thread = |(lwp, answer): (&u64, &[u8])| {
            let (known, set) = answer.split_first_chunk()?;
            let (lwp, known) = (i32::try_from(*lwp).ok()?, u64::from_ne_bytes(*known));
            let registers = match (partial, known) {
                (true, there) => Registers::of_partial(arch, set, there)?,
                (false, 1) => Registers::of_kernel(arch, set)?,
                (false, _) => return None,
            };
            Some((lwp, registers))
        };
        Some(lwps.iter().zip(buf.chunks_exact(8 + set)).filter_map(of_thread).collect())
    }

    fn knows(&self, kind: u64) -> bool {
        let Some(ask) = self.table.get_thread_context_for_thread_id else { return false };
        let (id, mut context) = (0u64, ptr::null_mut());
        // SAFETY: the id is a live value of the size given, and the debugger writes one pointer.
        unsafe { ask(self.context, kind, 8, (&raw const id).cast(), &raw mut context) == Rc::OK }
    }

    /// The kernel ids of all threads the debugger has.
    fn lwps(&self) -> Option<Vec<u64>> {
        /// Of more, the registers are asked for one by one.
        const MOST: u64 = 1 << 16;
        let mut room = 64;
        // Another one may have come between two calls, but not for ever.
        for _ in 0..4 {
            let mut buf = vec![0; 8 * (room + 1)];
            self.read_at(extra::THREADS, extra::ADDRESS, ptr::null_mut(), &mut buf).ok()?;
            let (count, ids) = buf.split_first_chunk()?;
            let count = u64::from_ne_bytes(*count);
            if count > MOST {
                return None;
            }
            if count as usize <= room {
                return Some(numbers(ids).take(count as usize).collect());
            }
            room = count as usize;
        }
        None
    }

    /// How often the process was let run, for debuggers that tell.
    pub(crate) fn stop(&self) -> Option<u64> {
        let mut count = [0; 8];
        self.offers().then_some(())?;
        self.read_at(extra::STOP, extra::ADDRESS, ptr::null_mut(), &mut count).ok()?;
        Some(u64::from_ne_bytes(count))
    }

    fn read_at(&self, segment: u64, address: u64, thread: *mut ThreadContext, buf: &mut [u8]) -> Result<(), Rc> {
        let ask = self.table.read_memory.ok_or(Rc::CALLBACK_ERROR)?;
        let address = Address { segment, address };
        let buffer: *mut c_void = buf.as_mut_ptr().cast();
        // SAFETY: the buffer has as many bytes as are asked for and is not used otherwise meanwhile.
        match unsafe { ask(self.context, thread, &raw const address, buf.len() as Size, buffer) } {
            Rc::OK => Ok(()),
            rc => Err(rc),
        }
    }
}

/// Numbers of eight bytes in this machine's byte order.
fn numbers(bytes: &[u8]) -> impl Iterator<Item = u64> + '_ {
    let (words, _) = bytes.as_chunks();
    words.iter().map(|word| u64::from_ne_bytes(*word))
}

impl Asked {
    /// The value of a register from a debugger that takes expressions for names of symbols.
    fn value(&self, thread: *mut ThreadContext, register: &str) -> Option<u64> {
        self.ask(&format!("*(char *)${register}"), thread).map(|address| address.address)
    }

    /// The program counter, read the same way. An answer that is a program counter, and not a missing symbol, shows that the
    /// debugger takes expressions. A debugger that takes none is not asked again.
    fn expression(&self, thread: *mut ThreadContext, program_counter: &str) -> Option<Addr> {
        if self.expressions.get() == Some(false) || program_counter.is_empty() {
            return None;
        }
        let found = self.value(thread, program_counter).filter(|pc| *pc != 0 && *pc != u64::MAX);
        // One that takes them may know no registers of a thread.
        self.expressions.set(Some(found.is_some() || self.takes_expressions()));
        found.map(Addr)
    }

    /// True if it was found to take names of symbols for expressions.
    pub(crate) fn takes_expressions(&self) -> bool {
        self.expressions.get() == Some(true)
    }

    /// The registers of a thread from a debugger that takes names of symbols for expressions and answers with their addresses, as
    /// plugins of gdb do. The address of what a register points to is the register. Other debuggers know no symbol of such a
    /// name.
    fn evaluated(&self, thread: *mut ThreadContext, arch: Arch) -> Option<Registers> {
        let facts = arch.machine.facts()?;
        let names = facts.kernel_set.names;
        if names.is_empty() {
            return None;
        }
        let value = |name: &str| self.value(thread, name);
        let pc = self.expression(thread, facts.kernel_set.program_counter)?.0;
        let mut set = vec![0u8; Registers::kernel_bytes(arch)?];
        for (part, name) in set.chunks_exact_mut(8).zip(names).filter(|(_, name)| !name.is_empty()) {
            let register = if *name == facts.kernel_set.program_counter { pc } else { value(name)? };
            part.copy_from_slice(&register.to_le_bytes());
        }
        let registers = Registers::of_kernel(arch, &set)?;
        // The base of the segment register is not asked for: the thread pointer is known otherwise.
        Some(Registers { thread_pointer: None, ..registers })
    }
}

impl Debugger for Asked {
    fn read(&self, addr: Addr, buf: &mut [u8]) -> Result<(), ReadFault> {
        self.read_at(0, addr.0, ptr::null_mut(), buf).map_err(|_| ReadFault::Unmapped)
    }

    fn symbol(&self, name: &str) -> Option<Addr> {
        if let Some(known) = self.symbols.borrow().get(name) {
            return Some(*known);
        }
        let found = Addr(self.look_up(name, ptr::null_mut())?);
        self.symbols.borrow_mut().insert(name.to_owned(), found);
        Some(found)
    }

    fn thread_local(&self, native: NativeThread, name: &str) -> Option<Addr> {
        self.look_up(name, self.thread(native)?).map(Addr)
    }

    fn offers_registers(&self) -> bool {
        self.offers()
    }

    fn registers(&self, native: NativeThread, arch: Arch) -> Result<Registers, String> {
        const NO: &str = "OMPD has no way to ask a debugger for registers, and this one offers none of its own";
        let bytes = Registers::kernel_bytes(arch).ok_or("registers of this machine are not decoded")?;
        let thread = self.thread(native).ok_or_else(|| format!("the debugger has no thread {}", native.lwp))?;
        if !self.offers() {
            return self.evaluated(thread, arch).ok_or_else(|| NO.to_owned());
        }
        if self.offers_partial() {
            let found = self.registers_of(&[native.lwp as u64], arch).and_then(|mut found| found.remove(&native.lwp));
            return found.ok_or_else(|| format!("the debugger has no registers of thread {}", native.lwp));
        }
        let mut buf = vec![0; bytes];
        let read = self.read_at(extra::REGISTERS, extra::ADDRESS, thread, &mut buf);
        read.map_err(|_| format!("the debugger has no registers of thread {}", native.lwp))?;
        Registers::of_kernel(arch, &buf).ok_or_else(|| "registers of this machine are not decoded".to_owned())
    }

    fn program_counter(&self, native: NativeThread, arch: Arch) -> Option<Addr> {
        let name = arch.machine.facts()?.kernel_set.program_counter;
        self.expression(self.thread(native)?, name)
    }

    fn read_all(&self, pieces: &[(Addr, usize)]) -> Option<Vec<Option<Vec<u8>>>> {
        self.offers_bulk().then_some(())?;
        let total: usize = pieces.iter().map(|(_, length)| 8 + length).sum();
        let mut buf = vec![0; total.max(16 * pieces.len())];
        for ((addr, length), question) in pieces.iter().zip(buf.as_chunks_mut::<16>().0) {
            question[..8].copy_from_slice(&addr.0.to_ne_bytes());
            question[8..].copy_from_slice(&(*length as u64).to_ne_bytes());
        }
        let address = extra::ADDRESS | pieces.len() as u64;
        self.read_at(extra::PIECES, address, ptr::null_mut(), &mut buf).ok()?;
        let mut rest = &buf[..];
        let answer = |(_, length): &(Addr, usize)| {
            let (known, behind) = rest.split_first_chunk()?;
            let (bytes, behind) = behind.split_at_checked(*length)?;
            rest = behind;
            (u64::from_ne_bytes(*known) == 1).then(|| bytes.to_vec())
        };
        Some(pieces.iter().map(answer).collect())
    }

    fn all_registers(&self, arch: Arch) -> HashMap<i32, Registers> {
        let known = || {
            self.offers_bulk().then_some(())?;
            let lwps = self.lwps().filter(|lwps| !lwps.is_empty())?;
            self.registers_of(&lwps, arch)
        };
        known().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests;
