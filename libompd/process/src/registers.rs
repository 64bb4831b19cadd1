//! Decoding the kernel's register sets into [`Registers`].

use std::collections::HashMap;

use crate::arch::Arch;
use crate::machine::{CallSite, Shown};
use crate::memory::Addr;
use crate::module::Module;
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

    /// As [`of_kernel`](Registers::of_kernel), of a set in which words may be missing: bit N of `there` is set if word N was given. The
    /// thread pointer and the number of the system call may be missing. Without another word that is used, the result is `None`.
    pub fn of_partial(arch: Arch, bytes: &[u8], there: u64) -> Option<Registers> {
        let set = &arch.machine.facts()?.kernel_set;
        let has = |word: usize| there >> word & 1 == 1;
        if there & set.needed != set.needed {
            return None;
        }
        let mut registers = Registers::of_kernel(arch, bytes)?;
        registers.thread_pointer = registers.thread_pointer.filter(|_| has(set.thread_pointer));
        if set.call_number.is_some_and(|word| !has(word)) {
            (registers.syscall, registers.returned, registers.unnumbered) = (None, None, true);
        }
        Some(registers)
    }

    /// The system call that has just returned because a signal or stop has interrupted it (`EINTR`). The stop may be
    /// that of a debugger that makes a core. The thread has slept in the call until then.
    pub fn ended_call(&self, arch: Arch) -> Option<Syscall> {
        const EINTR: u64 = (-4_i64).cast_unsigned();
        let result = arch.machine.facts()?.calls.result;
        self.returned.filter(|_| self.get(result) == Some(EINTR))
    }

    /// What the kernel shows of a thread that sleeps in a system call, or is stopped by another tracer: `/proc/PID/syscall`. The thread pointer is
    /// not known. `None` for machines whose registers are not decoded.
    pub(crate) fn of_sleeper(arch: Arch, call: Option<Syscall>, pc: Addr, sp: Addr) -> Option<Registers> {
        let facts = arch.machine.facts()?;
        let (mut general, mut known) = ([0; GENERAL], 0);
        let arguments = facts.calls.arguments.into_iter().zip(call.into_iter().flat_map(|call| call.args));
        let roles = &facts.registers;
        for (number, value) in arguments.chain([(roles.stack_pointer, sp.0), (roles.program_counter, pc.0)]) {
            general[usize::from(number)] = value;
            known |= 1 << number;
        }
        let (fp, thread_pointer, syscall) = (Addr::NULL, None, call);
        Some(Registers { pc, sp, fp, thread_pointer, syscall, returned: None, unnumbered: false, general, known })
    }

    /// True if the thread is blocked in a system call, and which one is unknown: its number was not given, and the code does not show it.
    pub fn is_in_unknown_call(&self, arch: Arch) -> bool {
        let unnumbered = arch.machine.facts().and_then(|facts| facts.calls.unnumbered.as_ref());
        self.unnumbered && self.syscall.is_none() && unnumbered.is_some_and(|unnumbered| (unnumbered.is_blocked)(self))
    }

    /// Finds the system call whose number was not given, where the code at the program counter shows it. `sites` keeps what was found
    /// by program counter, as long as the modules stay.
    pub(crate) fn find_number(&mut self, arch: Arch, modules: &[Module], sites: &mut HashMap<Addr, Option<CallSite>>) {
        let facts = arch.machine.facts().filter(|_| self.unnumbered);
        let Some(unnumbered) = facts.and_then(|facts| facts.calls.unnumbered.as_ref()) else { return };
        let pc = self.pc;
        let find = || {
            let module = modules.iter().find(|module| module.contains(pc))?;
            (unnumbered.site)(module.file.as_ref().ok()?, pc.back(module.bias).0)
        };
        let site = *sites.entry(pc).or_insert_with(find);
        match site.and_then(|site| (unnumbered.call)(site, self)) {
            Some(Shown::Blocked(call)) => self.syscall = Some(call),
            Some(Shown::Returned(call)) => self.returned = Some(call),
            None => {}
        }
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
