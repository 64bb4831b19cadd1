//! OS threads of the target and their registers.

use crate::memory::Addr;

/// The general registers this project needs, decoded for the target's machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Registers {
    /// Program counter.
    pub pc: Addr,
    /// Stack pointer.
    pub sp: Addr,
    /// Frame pointer register (`rbp`, `x29`); it holds a frame address only in code built with frame pointers.
    pub fp: Addr,
    /// Thread pointer: `fs_base` on x86-64, `tpidr_el0` on aarch64. Base of thread-local storage.
    pub thread_pointer: Option<Addr>,
    /// Set when the thread is blocked inside a system call. On aarch64 also when it is about to make one: a stop that
    /// interrupts a call leaves the thread at the instruction that makes it.
    pub syscall: Option<Syscall>,
    /// A system call that has just returned: the thread has executed no instruction since. Never set on aarch64.
    pub returned: Option<Syscall>,
    /// The debugger lacks the register with the number of the system call. `syscall` and `returned` are known only
    /// if the code shows the number.
    pub unnumbered: bool,
    /// All general registers by their DWARF number. On x86-64: `rax` to `r15` and the return address column, which
    /// holds the program counter (psABI, figure 3.36). On aarch64: `x0` to `x30`, `sp` and the program counter
    /// (AADWARF64, 4.1). Zero where the machine has no register of that number.
    pub general: [u64; GENERAL],
    /// Which of them were read: bit N for register N. Of a thread that was not stopped only a few can be.
    pub known: u64,
}

impl Registers {
    /// All of [`Registers::general`] were read.
    pub const ALL: u64 = (1 << GENERAL) - 1;

    /// The value of a general register by its DWARF number, if it was read.
    pub fn get(&self, number: u16) -> Option<u64> {
        let value = *self.general.get(usize::from(number))?;
        (self.known >> number & 1 == 1).then_some(value)
    }
}

/// Room for the general registers of any machine that is decoded.
pub const GENERAL: usize = 33;

/// A system call the thread was blocked in when it was stopped, or had just returned from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Syscall {
    /// Number in the target's own table (202 is `futex` on x86-64, 98 on aarch64).
    pub number: u64,
    /// Arguments as the kernel saved them.
    pub args: [u64; 6],
    /// False on machines where a thread that is about to make the call looks the same.
    pub begun: bool,
}

/// One OS thread.
#[derive(Debug, Clone)]
pub struct Thread {
    /// Kernel thread id (LWP).
    pub lwp: i32,
    /// `comm` of the thread, where recorded (raw text of the target: escape before printing).
    pub name: Option<String>,
    /// Registers, or why there are none.
    pub registers: Result<Registers, String>,
    /// The thread pointer, where it is known without registers.
    pub pointer: Option<Addr>,
    /// Signal this thread received (cores only; 0 for none).
    pub signal: i32,
    /// Signals it blocks: bit N-1 for signal N (sigprocmask(2)). Live processes only, and only with registers.
    pub blocked_signals: Option<u64>,
}

impl Thread {
    /// The thread pointer, of whatever source.
    pub fn thread_pointer(&self) -> Option<Addr> {
        self.registers.as_ref().ok().and_then(|r| r.thread_pointer).or(self.pointer)
    }
}

/// A thread as the C library knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NativeThread {
    /// Kernel thread id.
    pub lwp: i32,
    /// `pthread_t`: with glibc the address of the thread's descriptor.
    pub pthread: Addr,
    /// True if the C library is known to have made the thread's stack. The descriptor lies at its end (nptl/allocatestack.c).
    pub own_stack: bool,
}
