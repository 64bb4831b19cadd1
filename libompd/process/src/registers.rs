//! Decoding the kernel's register sets into [`Registers`].

use crate::arch::{Arch, Machine};
use crate::memory::Addr;
use crate::thread::{GENERAL, Registers, Syscall};

/// Words of `struct user_regs_struct` on x86-64 (linux/arch/x86/include/asm/user_64.h).
pub(crate) const X86_64_WORDS: usize = 27;
/// Words of `struct user_pt_regs` on aarch64 (linux/arch/arm64/include/uapi/asm/ptrace.h).
pub(crate) const AARCH64_WORDS: usize = 34;

/// Values the kernel leaves in the return register of a call that a stop interrupted and that will be restarted
/// (linux/include/linux/errno.h: ERESTARTSYS, ERESTARTNOINTR, ERESTARTNOHAND, ERESTART_RESTARTBLOCK).
const RESTARTING: [i64; 4] = [-512, -513, -514, -516];

/// Decodes an x86-64 register set.
///
/// The thread is blocked in a call if `orig_rax` holds a number and `rax` says that the call was interrupted. A call
/// that has just returned has a number too, but its result in `rax`.
pub(crate) fn x86_64(words: &[u64; X86_64_WORDS]) -> Registers {
    // r15 r14 r13 r12 rbp rbx r11 r10 r9 r8 rax rcx rdx rsi rdi orig_rax rip cs eflags rsp ss fs_base ...
    let [r15, r14, r13, r12, rbp, rbx, r11, r10, r9, r8, rax, rcx, rdx, rsi, rdi, orig_rax, rip, ..] = *words;
    let (rsp, fs_base) = (words[19], words[21]);
    let mut general = [0; GENERAL];
    general[..17].copy_from_slice(&[rax, rdx, rcx, rbx, rsi, rdi, rbp, rsp, r8, r9, r10, r11, r12, r13, r14, r15, rip]);
    let blocked = orig_rax as i64 >= 0 && RESTARTING.contains(&(rax as i64));
    Registers {
        pc: Addr(rip),
        sp: Addr(rsp),
        fp: Addr(rbp),
        thread_pointer: Some(Addr(fs_base)),
        syscall: blocked.then_some(Syscall { number: orig_rax, args: [rdi, rsi, rdx, r10, r8, r9] }),
        general,
    }
}

/// Decodes an aarch64 register set; `tls` is `tpidr_el0`, from the note or register set NT_ARM_TLS.
///
/// `syscall` stays empty: before a stop becomes visible the kernel has already rewound `pc` to the `svc` instruction
/// and restored `x0` (linux/arch/arm64/kernel/signal.c, do_signal), so a thread blocked in a call looks exactly like
/// one that is about to make it.
pub(crate) fn aarch64(words: &[u64; AARCH64_WORDS], tls: Option<u64>) -> Registers {
    let mut general = [0; GENERAL];
    general.copy_from_slice(&words[..GENERAL]);
    Registers {
        pc: Addr(words[32]),
        sp: Addr(words[31]),
        fp: Addr(words[29]),
        thread_pointer: tls.map(Addr),
        syscall: None,
        general,
    }
}

impl Registers {
    /// How many bytes the kernel's register set of a machine has, with the thread pointer behind it where it is not part of it;
    /// `None` for machines whose registers are not decoded.
    pub fn kernel_bytes(arch: Arch) -> Option<usize> {
        match (arch.machine, arch.pointer_bytes) {
            (Machine::X86_64, 8) => Some(8 * X86_64_WORDS),
            (Machine::Aarch64, 8) => Some(8 * (AARCH64_WORDS + 1)),
            _ => None,
        }
    }

    /// Decodes so many bytes in the byte order of the machine.
    pub fn of_kernel(arch: Arch, bytes: &[u8]) -> Option<Registers> {
        let words: Vec<u64> = bytes.chunks_exact(8).map(|word| arch.byte_order.uint(word)).collect();
        match arch.machine {
            Machine::X86_64 => words.first_chunk().map(x86_64),
            Machine::Aarch64 => words.first_chunk().map(|set| aarch64(set, words.get(AARCH64_WORDS).copied())),
            Machine::Other(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(rax: i64, orig_rax: i64) -> Option<u64> {
        let mut words = [0; X86_64_WORDS];
        (words[10], words[15]) = (rax as u64, orig_rax as u64);
        x86_64(&words).syscall.map(|s| s.number)
    }

    #[test]
    fn only_an_interrupted_call_counts_as_blocked() {
        assert_eq!(with(-512, 202), Some(202));
        assert_eq!(with(-516, 219), Some(219));
        assert_eq!(with(0, 202), None); // Returned 0.
        assert_eq!(with(-4, 202), None); // Returned EINTR.
        assert_eq!(with(-512, -1), None); // Not in a call: rax is the program's.
    }

    #[test]
    fn words_go_where_the_kernel_headers_put_them() {
        let words: [u64; X86_64_WORDS] = std::array::from_fn(|i| i as u64);
        let r = x86_64(&words);
        assert_eq!((r.pc.0, r.sp.0, r.fp.0, r.thread_pointer), (16, 19, 4, Some(Addr(21))));
        // rax rdx rcx rbx rsi rdi rbp rsp r8 ... r15 rip
        assert_eq!(r.general[..17], [10, 12, 11, 5, 13, 14, 4, 19, 9, 8, 7, 6, 3, 2, 1, 0, 16]);
        let words: [u64; AARCH64_WORDS] = std::array::from_fn(|i| i as u64);
        let r = aarch64(&words, Some(7));
        assert_eq!((r.pc.0, r.sp.0, r.fp.0, r.thread_pointer), (32, 31, 29, Some(Addr(7))));
        assert_eq!(r.general, std::array::from_fn(|i| i as u64));
        assert_eq!(aarch64(&words, None).thread_pointer, None);
    }
}
