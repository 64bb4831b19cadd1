//! Frames as a stack holds them: registers, addresses, whose code they execute.

use ompd_process::{Addr, GENERAL, Registers};

/// Functions that come before everything the source says: they are left out at the end of a stack. In a static program they
/// lie among its own.
pub(crate) const ROOTS: &[&str] = &[
    "_start",
    "__libc_start_main",
    "__libc_start_main_impl",
    "__libc_start_call_main",
    "start_thread",
    "clone",
    "clone3",
    "__clone",
    "__clone3",
    "thread_start",
    // What sanitizers call a thread's function from (compiler-rt, libsanitizer).
    "_ZL17asan_thread_startPv",
    "__tsan_thread_start_func",
    "__lsan_thread_start_func",
];

/// Register values, as far as they are known, by DWARF number.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct RegisterSet {
    values: [u64; GENERAL],
    known: u64,
    /// Those that hold what they held when the thread was left asleep, which was not read.
    unseen: u64,
    lwp: i32,
}

impl RegisterSet {
    /// Those of the thread `lwp`.
    pub(crate) fn of(lwp: i32, registers: &Registers) -> Self {
        let known = registers.known & Registers::ALL;
        RegisterSet { values: registers.general, known, unseen: Registers::ALL & !known, lwp }
    }

    /// Those that calls preserve: bit N of `kept` for register N.
    pub(crate) fn kept(&self, kept: u64) -> Self {
        RegisterSet { known: self.known & kept, unseen: self.unseen & kept, ..*self }
    }

    /// Those that are known; of the others none can be asked for.
    pub(crate) fn seen(&self) -> Self {
        RegisterSet { unseen: 0, ..*self }
    }

    /// The thread that has the register, if only a stop would have shown its value.
    pub(crate) fn unseen(&self, register: u16) -> Option<i32> {
        let is_unseen = usize::from(register) < GENERAL && self.unseen & (1 << register) != 0;
        is_unseen.then_some(self.lwp)
    }

    /// The value of a register, if it is known.
    pub fn get(&self, register: u16) -> Option<u64> {
        let index = usize::from(register);
        (index < GENERAL && self.known & (1 << index) != 0).then(|| self.values[index])
    }

    pub(crate) fn set(&mut self, register: u16, value: Option<u64>) {
        let index = usize::from(register);
        if index >= GENERAL {
            return;
        }
        self.unseen &= !(1 << index);
        match value {
            Some(value) => {
                self.values[index] = value;
                self.known |= 1 << index;
            }
            None => self.known &= !(1 << index),
        }
    }
}

impl std::fmt::Debug for RegisterSet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let known = (0..GENERAL as u16).filter_map(|n| Some((n, self.get(n)?)));
        f.debug_map().entries(known).finish()
    }
}

/// One frame on a thread's stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame {
    /// Where it executes: the thread's program counter, or the address its callee will return to.
    pub pc: Addr,
    /// True if `pc` is the instruction being executed; false if it is the one after a call.
    pub exact: bool,
    /// Value of the stack pointer in the caller before it called (canonical frame address); `None` in the last frame of a
    /// stack that could not be followed further.
    pub cfa: Option<Addr>,
    /// Registers while this frame executes, as far as its callees preserved or saved them.
    pub registers: RegisterSet,
}

impl Frame {
    /// The address to look up: a call may be the last instruction of its function or line.
    pub fn lookup(&self) -> Addr {
        if self.exact { self.pc } else { self.pc.back(1) }
    }
}

/// Why a stack ends where it does.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum End {
    /// The outermost frame, where the thread began.
    #[error("the thread began here")]
    Root,
    /// No file is mapped at the address, and no object of a JIT compiler that can be used is there.
    #[error("no mapped file has code at {0}, and no usable object of a JIT compiler has")]
    NoModule(Addr),
    /// The file behind the address is not at hand.
    #[error("the file mapped at {0} is not at hand")]
    NoFile(Addr),
    /// No call frame information covers the address.
    #[error("no call frame information covers {0}")]
    Uncovered(Addr),
    /// The call frame information is malformed, or says what this program cannot follow.
    #[error("the call frame information for {at} cannot be used: {why}")]
    Unusable {
        /// The address it is for.
        at: Addr,
        /// What is wrong with it.
        why: String,
    },
    /// The stack could not be read at an address.
    #[error("the stack cannot be read at {0}")]
    Unreadable(Addr),
    /// The stack goes on beyond what was copied while the process was stopped.
    #[error("the stack continues at {at}, beyond the {copied} bytes that were copied of it")]
    NotCopied {
        /// Where it goes on.
        at: Addr,
        /// How much was copied, in bytes.
        copied: u64,
    },
    /// The stack would go on where the process has no page in use.
    #[error("the stack would continue at {0}, in a page that is not in use")]
    Unused(Addr),
    /// The return address of the frame at this address is zero, and no thread begins there.
    #[error(
        "the return address of the frame at {0} is zero: the stack is damaged, or begins in code that is not known to begin one"
    )]
    ZeroReturn(Addr),
    /// The frame at this address is found by a register that only a stop would have shown.
    #[error(
        "the frame at {0} needs a register that only a stop shows, and the thread was left asleep in its system call"
    )]
    LeftAsleep(Addr),
    /// A frame would lie below or at its callee.
    #[error("the frame at {0} leads back to itself or further in: the stack is damaged")]
    NoProgress(Addr),
    /// There are more frames than are looked at.
    #[error("it is deeper than {0} frames, and no more are followed")]
    TooMany(usize),
    /// The thread has no registers.
    #[error("{0}")]
    NoRegisters(String),
    /// Stacks of the machine are not followed.
    #[error("stacks of this machine are not followed")]
    Machine,
}

impl End {
    /// True if all frames are there.
    pub fn is_complete(&self) -> bool {
        matches!(self, End::Root)
    }
}

/// Frames of a thread, innermost first.
#[derive(Debug, Clone)]
pub struct Backtrace {
    /// The frames.
    pub frames: Vec<Frame>,
    /// Why there are no more.
    pub end: End,
}

/// Whose code a frame executes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CodeOwner {
    /// The program's, its libraries' included.
    Program,
    /// That of the runtime with this index.
    Runtime(usize),
    /// The C library's or the kernel's (vdso): it belongs to the code around it.
    System,
}
