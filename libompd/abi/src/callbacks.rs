//! The debugger, as its callbacks show it.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::ffi::{CString, c_void};
use std::ptr;

use ompd_target::{Addr, Arch, Debugger, NativeThread, ReadFault, Registers};

use crate::types::{Address, AddressSpaceContext, Callbacks, Rc, Size, ThreadContext, TypeSizes, thread_id};

/// Segments by which a debugger that offers more than OMPD asks of it is asked for that, through `read_memory`. One that does not
/// know of them fails to read there: as addresses of memory they mean nothing. `docs/libompd.md` describes them.
pub mod extra {
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
    /// The debugger was asked for registers and offers none.
    no_registers: Cell<bool>,
}

impl Asked {
    pub(crate) fn new(table: Callbacks, context: *mut AddressSpaceContext) -> Asked {
        Asked { table, context, symbols: RefCell::default(), no_registers: Cell::new(false) }
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
    pub(crate) fn look_up(&self, name: &str, thread: *mut ThreadContext) -> Option<u64> {
        let ask = self.table.symbol_addr_lookup?;
        let name = CString::new(name).ok()?;
        let mut found = Address::default();
        // SAFETY: the name is a C string that lives throughout, and the debugger writes one address.
        let rc = unsafe { ask(self.context, thread, name.as_ptr(), &raw mut found, ptr::null()) };
        // Debuggers are known to say that all is well and give 0 or -1 for a symbol that there is not.
        (rc == Rc::OK && found.address != 0 && found.address != u64::MAX).then_some(found.address)
    }

    /// How often the process was let run, for debuggers that tell.
    pub(crate) fn stop(&self) -> Option<u64> {
        let mut count = [0; 8];
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

    fn registers(&self, native: NativeThread, arch: Arch) -> Result<Registers, String> {
        const NO: &str = "OMPD has no way to ask a debugger for registers, and this one offers none of its own";
        if self.no_registers.get() {
            return Err(NO.to_owned());
        }
        let bytes = Registers::kernel_bytes(arch).ok_or("registers of this machine are not decoded")?;
        let thread = self.thread(native).ok_or_else(|| format!("the debugger has no thread {}", native.lwp))?;
        let mut buf = vec![0; bytes];
        if self.read_at(extra::REGISTERS, extra::ADDRESS, thread, &mut buf).is_err() {
            self.no_registers.set(true);
            return Err(NO.to_owned());
        }
        Registers::of_kernel(arch, &buf).ok_or_else(|| "registers of this machine are not decoded".to_owned())
    }
}
