//! The debugger, as its callbacks show it.

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::HashMap;
use std::ffi::{CString, c_void};
use std::ptr;

use ompd_target::{Addr, Arch, Debugger, Machine, NativeThread, ReadFault, Registers};

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
}

/// The callbacks of a debugger together with one of its address spaces.
#[derive(Debug)]
pub(crate) struct Asked {
    table: Callbacks,
    context: *mut AddressSpaceContext,
    /// Symbols that were found: they stay where they are as long as the modules do.
    symbols: RefCell<HashMap<String, Addr>>,
    /// Whether the debugger offers segments of its own; `None` before it was asked. One that does not may not survive being asked
    /// to read from there.
    offers: OnceCell<bool>,
    /// It takes names of symbols for nothing else.
    no_expressions: Cell<bool>,
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
        Asked { table, context, symbols: RefCell::default(), offers: OnceCell::new(), no_expressions: Cell::new(false) }
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
            _ => Err(Rc::CALLBACK_ERROR),
        }
    }

    /// The debugger's context of a thread.
    pub(crate) fn thread(&self, native: NativeThread) -> Option<*mut ThreadContext> {
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
        *self.offers.get_or_init(|| {
            let Some(ask) = self.table.get_thread_context_for_thread_id else { return false };
            let (id, mut context) = (0u64, ptr::null_mut());
            // SAFETY: the id is a live value of the size given, and the debugger writes one pointer.
            unsafe { ask(self.context, extra::KIND, 8, (&raw const id).cast(), &raw mut context) == Rc::OK }
        })
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

impl Asked {
    /// The registers of a thread by a debugger that takes names of symbols for expressions and answers with their addresses, as plugins
    /// of gdb do: the address of what a register points to is the register. Others know no symbol of such a name.
    fn evaluated(&self, thread: *mut ThreadContext, arch: Arch) -> Option<Registers> {
        /// `struct user_regs_struct`, as far as it is needed.
        const X86_64: [&str; 20] = [
            "r15", "r14", "r13", "r12", "rbp", "rbx", "r11", "r10", "r9", "r8", "rax", "rcx", "rdx", "rsi", "rdi",
            "orig_rax", "rip", "", "", "rsp",
        ];
        if arch.machine != Machine::X86_64 || self.no_expressions.get() {
            return None;
        }
        let value = |name: &str| self.ask(&format!("*(char *)${name}"), thread).map(|address| address.address);
        // That it is one and not a symbol that was not found shows by the first.
        let Some(rip) = value("rip").filter(|rip| *rip != 0 && *rip != u64::MAX) else {
            self.no_expressions.set(true);
            return None;
        };
        let mut set = vec![0u8; Registers::kernel_bytes(arch)?];
        for (part, name) in set.chunks_exact_mut(8).zip(X86_64).filter(|(_, name)| !name.is_empty()) {
            let register = if name == "rip" { rip } else { value(name)? };
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
        let mut buf = vec![0; bytes];
        let read = self.read_at(extra::REGISTERS, extra::ADDRESS, thread, &mut buf);
        read.map_err(|_| format!("the debugger has no registers of thread {}", native.lwp))?;
        Registers::of_kernel(arch, &buf).ok_or_else(|| "registers of this machine are not decoded".to_owned())
    }
}
