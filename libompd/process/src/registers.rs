//! Decoding the kernel's register sets into [`Registers`].

use crate::arch::Arch;
use crate::memory::Addr;
use crate::thread::{GENERAL, Registers, Syscall};

impl Registers {
    /// How many bytes the kernel's register set of a machine has, with the thread pointer behind it where it is not part of it;
    /// `None` for machines whose registers are not decoded.
    pub fn kernel_bytes(arch: Arch) -> Option<usize> {
        let set = &arch.machine.facts().filter(|_| arch.pointer_bytes == 8)?.kernel_set;
        Some(8 * (set.words + usize::from(set.thread_pointer_note.is_some())))
    }

    /// Decodes so many bytes in the byte order of the machine.
    pub fn of_kernel(arch: Arch, bytes: &[u8]) -> Option<Registers> {
        let words: Vec<u64> = bytes.chunks_exact(8).map(|word| arch.byte_order.uint(word)).collect();
        let set = &arch.machine.facts()?.kernel_set;
        (set.decode)(&words, words.get(set.words).copied())
    }

    /// The system call that has just returned because a signal or stop has interrupted it (`EINTR`). The stop may be
    /// that of a debugger that makes a core. The thread has slept in the call until then.
    pub fn ended_call(&self, arch: Arch) -> Option<Syscall> {
        const EINTR: u64 = (-4_i64).cast_unsigned();
        let result = arch.machine.facts()?.calls.result;
        self.returned.filter(|_| self.get(result) == Some(EINTR))
    }

    /// What the kernel shows of a thread that sleeps in a system call and is not stopped: `/proc/PID/syscall`. The thread pointer is
    /// not known. `None` for machines whose registers are not decoded.
    pub(crate) fn of_sleeper(arch: Arch, call: Syscall, pc: Addr, sp: Addr) -> Option<Registers> {
        let facts = arch.machine.facts()?;
        let (mut general, mut known) = ([0; GENERAL], 0);
        let arguments = facts.calls.arguments.into_iter().zip(call.args);
        let roles = &facts.registers;
        for (number, value) in arguments.chain([(roles.stack_pointer, sp.0), (roles.program_counter, pc.0)]) {
            general[usize::from(number)] = value;
            known |= 1 << number;
        }
        let (fp, thread_pointer, syscall) = (Addr::NULL, None, Some(call));
        Some(Registers { pc, sp, fp, thread_pointer, syscall, returned: None, general, known })
    }

    /// Finds out whether the thread is in a system call, where the instruction it is at shows that. Also finds which
    /// call it is if a stop has interrupted it before. `read` fills a buffer from an address.
    pub fn find_call(&mut self, arch: Arch, read: &dyn Fn(Addr, &mut [u8]) -> bool) {
        let Some(facts) = arch.machine.facts() else { return };
        if let Some(rewound) = &facts.kernel_set.rewound {
            // A thread that was not stopped is in the call that the kernel shows.
            if self.known == Registers::ALL {
                self.syscall = rewound.at(self, read);
            }
        }
        let restarted = self.syscall.and_then(|call| facts.calls.restarted(call, self.pc, read));
        self.syscall = restarted.or(self.syscall);
    }
}
