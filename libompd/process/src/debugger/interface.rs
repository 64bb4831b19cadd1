//! What a debugger is asked.

use std::collections::HashMap;

use crate::arch::Arch;
use crate::memory::{Addr, ReadFault};
use crate::thread::{NativeThread, Registers};

/// What a debugger answers about the process it holds.
pub trait Debugger {
    /// Fills `buf` from the process's memory, wholly or not at all.
    ///
    /// # Errors
    /// [`ReadFault`].
    fn read(&self, addr: Addr, buf: &mut [u8]) -> Result<(), ReadFault>;

    /// Where the variable or function called `name` lies, exported or not; `None` if the debugger knows none.
    fn symbol(&self, name: &str) -> Option<Addr>;

    /// Where a thread has its copy of the thread-local variable called `name`; `None` if the debugger knows none. A debugger may
    /// not survive being asked for one that there is not.
    fn thread_local(&self, _thread: NativeThread, _name: &str) -> Option<Addr> {
        None
    }

    /// True if registers cost no more than memory: then those of all threads are asked for.
    fn offers_registers(&self) -> bool;

    /// The registers of a thread, for debuggers that offer more than OMPD asks of them.
    ///
    /// # Errors
    /// Why they are not known.
    fn registers(&self, thread: NativeThread, arch: Arch) -> Result<Registers, String>;

    /// The address of a thread's next instruction, where a debugger tells that and offers no registers.
    fn program_counter(&self, _thread: NativeThread, _arch: Arch) -> Option<Addr> {
        None
    }

    /// Reads several pieces in one call, each wholly or not at all; `None` from debuggers that have to be asked for each.
    fn read_all(&self, _pieces: &[(Addr, usize)]) -> Option<Vec<Option<Vec<u8>>>> {
        None
    }

    /// The registers of all threads, by kernel thread id, as far as they are known; none from debuggers that have to be asked for each.
    fn all_registers(&self, _arch: Arch) -> HashMap<i32, Registers> {
        HashMap::new()
    }
}
