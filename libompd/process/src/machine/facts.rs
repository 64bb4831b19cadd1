//! What has to be known of each machine.

use std::ops::Range;

use crate::arch::Machine;
use crate::elf::ElfFile;
use crate::memory::Addr;
use crate::thread::{Registers, Syscall};

/// What is known of a machine that its instructions do not tell.
#[derive(Debug)]
pub struct Facts {
    /// Which machine it is.
    pub machine: Machine,
    /// The word for it in data of this project.
    pub name: &'static str,
    /// The name people read.
    pub title: &'static str,
    /// What its registers are for.
    pub registers: Roles,
    /// Bits of a return address that are one: pointer authentication puts a signature in the others.
    pub address_bits: u64,
    /// Compilers align functions to so many bytes.
    pub function_alignment: u64,
    /// It has restricted memory transactions, and runtimes have locks that use them.
    pub has_transactions: bool,
    /// Whose own instructions its call frame information may have.
    pub vendor: gimli::Vendor,
    /// Where thread-local storage lies.
    pub thread_local: ThreadLocal,
    /// Types of dynamic relocations.
    pub relocations: Relocations,
    /// The registers of a thread as the kernel gives them.
    pub kernel_set: KernelSet,
    /// Where signal handlers return to; `None` where call frame information covers that.
    pub signal_return: Option<SignalReturn>,
    /// Its system calls.
    pub calls: Calls,
    /// This program runs on it.
    pub(crate) is_host: bool,
}

/// What registers are for, by their DWARF numbers.
#[derive(Debug)]
pub struct Roles {
    /// The program counter, or the column of the return address that stands for it.
    pub program_counter: u16,
    /// The stack pointer.
    pub stack_pointer: u16,
    /// Where a call leaves the return address; `None` where that is pushed on the stack.
    pub link: Option<u16>,
    /// Integer arguments of a function, first to last.
    pub arguments: &'static [u16],
    /// What calls leave as it is.
    pub preserved: &'static [u16],
}

impl Roles {
    /// What leads to the return address at the first instruction of a function: it is in this register, or where that points.
    pub fn return_address(&self) -> u16 {
        self.link.unwrap_or(self.stack_pointer)
    }

    /// Registers that the caller of a function finds as they were, as long as nothing says otherwise: bit N for register N.
    pub fn kept(&self) -> u64 {
        self.preserved.iter().chain(&self.link).fold(0, |all, register| all | 1 << register)
    }

    /// True if the register is one of [`Roles::kept`].
    pub fn keeps(&self, register: u16) -> bool {
        self.preserved.contains(&register) || self.link == Some(register)
    }
}

/// Where thread-local storage lies ("ELF Handling For Thread-Local Storage", section 3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ThreadLocal {
    /// Variant II: below the thread pointer, which points to the descriptor of the thread.
    Below,
    /// Variant I: above the thread pointer; the descriptor of the thread ends there.
    Above {
        /// Bytes at the thread pointer that are the C library's.
        control_block: u64,
    },
}

impl ThreadLocal {
    /// Where the block of a program begins, in bytes from the thread pointer: next to it, with the alignment of its segment.
    pub(crate) fn block(self, vaddr: u64, memsz: u64, align: u64) -> Option<i64> {
        let align = align.max(1);
        if !align.is_power_of_two() {
            return None;
        }
        let up_to = |n: u64| n & (align - 1);
        match self {
            ThreadLocal::Below => {
                let end = vaddr.checked_add(memsz)?;
                let below = memsz.checked_add(up_to(end.wrapping_neg()))?;
                i64::try_from(below).ok()?.checked_neg()
            }
            ThreadLocal::Above { control_block } => {
                i64::try_from(control_block.checked_add(up_to(vaddr.wrapping_sub(control_block)))?).ok()
            }
        }
    }

    /// Distances from the thread pointer that variables may have, if all of them take up fewer than `most` bytes.
    pub fn distances(self, most: i64) -> Range<i64> {
        match self {
            ThreadLocal::Below => -most..0,
            ThreadLocal::Above { .. } => 1..most,
        }
    }

    /// Offsets into glibc's descriptor of a thread at which it holds its own address, in order: `tcb` and `self` of `tcbhead_t`, in
    /// glibc's sysdeps/x86_64/nptl/tls.h. `None` where it does not.
    pub(crate) fn own_addresses(self) -> Option<&'static [u64]> {
        match self {
            ThreadLocal::Below => Some(&[0, 16]),
            ThreadLocal::Above { .. } => None,
        }
    }

    /// How many bytes the thread pointer lies above the descriptor; `size` is that of glibc's.
    pub(crate) fn above_descriptor(self, size: impl FnOnce() -> Option<u64>) -> Option<u64> {
        match self {
            ThreadLocal::Below => Some(0),
            ThreadLocal::Above { .. } => size(),
        }
    }
}

/// Types of dynamic relocations.
#[derive(Debug)]
pub struct Relocations {
    /// Adds the load bias to a word.
    pub relative: u32,
    /// Put the address of a symbol into a word.
    pub symbol: &'static [u32],
    /// Puts the distance of a thread-local variable from the thread pointer into a word.
    pub tls_offset: u32,
    /// Puts the number of a module into a word, for `__tls_get_addr`.
    pub tls_module: u32,
    /// Makes a TLS descriptor.
    pub tls_descriptor: u32,
}

/// The registers of a thread as the kernel gives them (`NT_PRSTATUS`).
#[derive(Debug)]
pub struct KernelSet {
    /// How many words of eight bytes it has.
    pub words: usize,
    /// Type of the note and register set with the thread pointer, where that is not in the words.
    pub(crate) thread_pointer_note: Option<u32>,
    /// Decodes so many words. The thread pointer comes by itself where the words do not have it.
    pub(crate) decode: fn(&[u64], Option<u64>) -> Option<Registers>,
    /// What gdb calls the words that are needed, in their order, the others being empty. Empty if gdb is not asked by names.
    pub names: &'static [&'static str],
    /// Which of them is the program counter.
    pub program_counter: &'static str,
    /// The words that are used and may not be missing: bit N for word N.
    pub(crate) needed: u64,
    /// The word with the thread pointer, which may be missing.
    pub(crate) thread_pointer: usize,
    /// The word with the number of the system call, if it has one of its own. It may be missing.
    pub(crate) call_number: Option<usize>,
    /// How a call that a stop has interrupted looks, where the words do not tell.
    pub(crate) rewound: Option<RewoundCall>,
}

/// A machine whose kernel, before a stop can be seen, puts a thread back to the call that the stop has interrupted.
#[derive(Debug)]
pub(crate) struct RewoundCall {
    /// The bytes of the instruction that makes a system call.
    pub(crate) instruction: &'static [u8],
    /// DWARF number of the register with the number of the call.
    pub(crate) number: u16,
    /// DWARF numbers of the registers with its arguments.
    pub(crate) arguments: [u16; 6],
}

impl RewoundCall {
    /// The system call that is the next instruction of a thread, if one is; `read` fills a buffer from an address.
    pub(crate) fn at(&self, registers: &Registers, read: &dyn Fn(Addr, &mut [u8]) -> bool) -> Option<Syscall> {
        let mut bytes = [0; 16];
        let bytes = bytes.get_mut(..self.instruction.len())?;
        if !read(registers.pc, bytes) || bytes != self.instruction {
            return None;
        }
        let value = |number: u16| registers.general[usize::from(number)];
        Some(Syscall { number: value(self.number), args: self.arguments.map(value), begun: false })
    }
}

/// The code to which a signal handler returns, where it has no call frame information.
#[derive(Debug)]
pub struct SignalReturn {
    /// Its instructions.
    pub code: &'static [u8],
    /// Bytes from the stack pointer there to the saved registers: words in the order of their DWARF numbers.
    pub registers: u64,
    /// How many those are.
    pub count: u16,
}

/// The system calls of a machine.
#[derive(Debug)]
pub struct Calls {
    /// DWARF numbers of the registers with the arguments.
    pub(crate) arguments: [u16; 6],
    pub(crate) name: fn(usize) -> Option<&'static str>,
    pub(crate) number: fn(&str) -> Option<u64>,
    /// DWARF number of the register with the result, which is negative for an error.
    pub(crate) result: u16,
    /// Bytes of code before the program counter of a thread in a system call that say which call it made.
    pub(crate) code_before: usize,
    /// The number of the call, by these bytes.
    pub(crate) made_by: fn(&[u8]) -> Option<u64>,
    /// How to find the number where registers lack it; `None` where it is in a general register.
    pub(crate) unnumbered: Option<Unnumbered>,
}

/// How to find the number of a system call in code.
#[derive(Debug)]
pub(crate) struct Unnumbered {
    /// The call that ends at an address of a file, if its number is proven.
    pub(crate) site: fn(&ElfFile, u64) -> Option<CallSite>,
    /// The call of a thread at that address, by its registers.
    pub(crate) call: fn(CallSite, &Registers) -> Option<Shown>,
    /// True if a thread is blocked in a call, whatever its number is.
    pub(crate) is_blocked: fn(&Registers) -> bool,
}

/// The code of a system call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CallSite {
    pub(crate) number: NumberIn,
    /// Only the call leads to the instruction behind it.
    pub(crate) returns_here: bool,
}

/// Where the number of a system call is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NumberIn {
    /// The code says it.
    Code(u64),
    /// It is still in these bits of a register, which has a DWARF number.
    Register { number: u16, mask: u64 },
}

/// A system call that code shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shown {
    /// The thread is blocked in it.
    Blocked(Syscall),
    /// It has just returned.
    Returned(Syscall),
}

/// By which the kernel goes on with a call that a stop has interrupted (restart_syscall(2)). The arguments are still those of that call.
const RESTART: &str = "restart_syscall";
/// The calls that are continued so (linux/kernel/time, linux/kernel/futex, linux/fs/select.c).
const RESTARTED: [&str; 4] = ["clock_nanosleep", "nanosleep", "poll", "futex"];

impl Calls {
    /// What a call was before a stop interrupted it, if it is one that goes on and the code before `pc` says so; `read` fills a buffer
    /// from an address.
    pub(crate) fn restarted(&self, call: Syscall, pc: Addr, read: &dyn Fn(Addr, &mut [u8]) -> bool) -> Option<Syscall> {
        if Some(call.number) != (self.number)(RESTART) {
            return None;
        }
        let mut code = [0; 16];
        let code = code.get_mut(..self.code_before)?;
        let from = pc.0.checked_sub(self.code_before as u64)?;
        let number = (self.made_by)(read(Addr(from), code).then_some(code)?)?;
        let is_one = RESTARTED.iter().any(|name| (self.number)(name) == Some(number));
        is_one.then_some(Syscall { number, ..call })
    }
}
