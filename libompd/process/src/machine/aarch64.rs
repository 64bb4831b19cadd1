//! 64-bit Arm, on Linux.

use syscalls::aarch64::Sysno;

use super::facts::{Calls, Facts, KernelSet, Relocations, RewoundCall, Roles, SignalReturn, ThreadLocal};
use crate::arch::{Arch, ByteOrder, Machine};
use crate::memory::Addr;
use crate::thread::{GENERAL, Registers};

impl Machine {
    /// 64-bit Arm.
    pub const AARCH64: Machine = Machine::of_elf(183);
}

impl Arch {
    /// Linux on little-endian aarch64, LP64.
    pub const AARCH64: Arch = Arch { machine: Machine::AARCH64, pointer_bytes: 8, byte_order: ByteOrder::Little };
}

pub(super) static FACTS: Facts = Facts {
    machine: Machine::AARCH64,
    name: "aarch64",
    title: "aarch64",
    // AADWARF64, 4.1; AAPCS64, 6.1.1.
    registers: Roles {
        program_counter: 32,
        stack_pointer: 31,
        link: Some(30),
        arguments: &[0, 1, 2, 3, 4, 5, 6, 7],
        preserved: &[19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29],
    },
    // Linux reports the bits that signatures take as NT_ARM_PAC_MASK: 48 to 54, and with addresses of 52 bits only 52 to 54. The bits
    // between are zero as well: code lies below 2^48 unless a program asks for more (arch/arm64/memory.rst of the kernel).
    address_bits: (1 << 48) - 1,
    function_alignment: 4,
    has_transactions: false,
    vendor: gimli::Vendor::AArch64,
    // Two words.
    thread_local: ThreadLocal::Above { control_block: 16 },
    // "ELF for the Arm 64-bit Architecture", 5.7.12: RELATIVE; ABS64, GLOB_DAT, JUMP_SLOT; TLS_TPREL; TLS_DTPMOD; TLSDESC.
    relocations: Relocations {
        relative: 1027,
        symbol: &[257, 1025, 1026],
        tls_offset: 1030,
        tls_module: 1028,
        tls_descriptor: 1031,
    },
    kernel_set: KernelSet {
        words: WORDS,
        thread_pointer_note: Some(NT_ARM_TLS),
        decode: |words, tls| words.first_chunk().map(|words| decode(words, tls)),
        names: &[],
        program_counter: "pc",
        // x0 to x30, sp and pc; the number of a call is in x8.
        needed: (1 << 33) - 1,
        thread_pointer: WORDS,
        call_number: None,
        // Before a stop becomes visible the kernel has rewound `pc` to the `svc` and restored `x0`
        // (linux/arch/arm64/kernel/signal.c, do_signal).
        rewound: Some(RewoundCall {
            instruction: &[0x01, 0x00, 0x00, 0xd4], // svc #0
            number: 8,
            arguments: [0, 1, 2, 3, 4, 5],
        }),
    },
    // linux/arch/arm64/kernel/vdso/sigreturn.S, linux/arch/arm64/kernel/signal.c: `struct rt_sigframe` has 128 bytes of `siginfo`, 176
    // of `ucontext` before `uc_mcontext`, and there `fault_address` before the registers.
    signal_return: Some(SignalReturn {
        // mov x8, #139; svc #0
        code: &[0x68, 0x11, 0x80, 0xd2, 0x01, 0x00, 0x00, 0xd4],
        registers: 128 + 176 + 8,
        count: 33,
    }),
    calls: Calls {
        arguments: [0, 1, 2, 3, 4, 5],
        name: |number| Sysno::new(number).map(|call| call.name()),
        number: |name| name.parse().ok().map(|call: Sysno| call.id().unsigned_abs().into()),
        result: 0,
        code_before: 4,
        made_by,
        unnumbered: None,
    },
    is_host: cfg!(target_arch = "aarch64"),
};

/// Words of `struct user_pt_regs` (linux/arch/arm64/include/uapi/asm/ptrace.h).
const WORDS: usize = 34;
/// The note and register set with `tpidr_el0`.
const NT_ARM_TLS: u32 = 0x401;

/// The words do not tell whether the thread is in a system call: see [`RewoundCall`].
fn decode(words: &[u64; WORDS], tls: Option<u64>) -> Registers {
    let mut general = [0; GENERAL];
    general.copy_from_slice(&words[..GENERAL]);
    Registers {
        pc: Addr(words[32]),
        sp: Addr(words[31]),
        fp: Addr(words[29]),
        thread_pointer: tls.map(Addr),
        syscall: None,
        returned: None,
        unnumbered: false,
        general,
        known: Registers::ALL,
    }
}

/// `mov x8, NUMBER` before the instruction that makes the call, at which a thread in a call is.
fn made_by(code: &[u8]) -> Option<u64> {
    const MOVZ_X8: u32 = 0xd280_0008;
    let instruction = u32::from_le_bytes(code.try_into().ok()?);
    (instruction & !(0xffff << 5) == MOVZ_X8).then_some((instruction >> 5 & 0xffff).into())
}

#[cfg(target_arch = "aarch64")]
pub(crate) fn of_thread(tid: i32) -> Result<Registers, String> {
    use nix::libc;
    use nix::sys::ptrace;
    let pid = nix::unistd::Pid::from_raw(tid);
    let r =
        ptrace::getregset::<ptrace::regset::NT_PRSTATUS>(pid).map_err(|e| format!("registers of thread {tid}: {e}"))?;
    let mut words = [0; WORDS];
    words[..31].copy_from_slice(&r.regs);
    words[31..].copy_from_slice(&[r.sp, r.pc, r.pstate]);
    let mut tls = 0u64;
    let mut place = libc::iovec { iov_base: (&raw mut tls).cast(), iov_len: size_of::<u64>() };
    // SAFETY: `place` describes the eight bytes of `tls`, and the kernel writes at most that many.
    let got = unsafe { libc::ptrace(libc::PTRACE_GETREGSET, tid, NT_ARM_TLS as usize, &raw mut place) };
    Ok(decode(&words, (got == 0).then_some(tls)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::thread::Syscall;

    #[test]
    fn words_go_where_the_kernel_headers_put_them() {
        let words: [u64; WORDS] = std::array::from_fn(|i| i as u64);
        let r = decode(&words, Some(7));
        assert_eq!((r.pc.0, r.sp.0, r.fp.0, r.thread_pointer), (32, 31, 29, Some(Addr(7))));
        assert_eq!(r.general, std::array::from_fn(|i| i as u64));
        assert_eq!(decode(&words, None).thread_pointer, None);
    }

    #[test]
    fn call_that_goes_on_after_a_stop_is_the_one_its_code_makes() {
        let call = |number| Syscall { number, args: [3; 6], begun: false };
        let restarted = |code: [u8; 4]| {
            FACTS.calls.restarted(call(128), Addr(0x1004), &|addr, buf| {
                buf.copy_from_slice(&code);
                addr == Addr(0x1000)
            })
        };
        assert_eq!(restarted([0xa8, 0x0c, 0x80, 0xd2]), Some(call(101))); // mov x8, #101: nanosleep
        assert_eq!(restarted([0xe8, 0x07, 0x80, 0xd2]), None); // mov x8, #63: read
        assert_eq!(restarted([0x1f, 0x20, 0x03, 0xd5]), None); // nop
    }

    #[test]
    fn a_call_that_is_next_may_have_been_interrupted() {
        let words: [u64; WORDS] = std::array::from_fn(|i| i as u64);
        let registers = decode(&words, None);
        let rewound = FACTS.kernel_set.rewound.as_ref().expect("it has");
        let at = |code: [u8; 4]| {
            rewound.at(&registers, &|addr, buf| {
                buf.copy_from_slice(&code);
                addr == Addr(32)
            })
        };
        let call = at([0x01, 0x00, 0x00, 0xd4]).expect("svc");
        assert_eq!((call.number, call.args), (8, [0, 1, 2, 3, 4, 5]));
        assert_eq!(at([0x1f, 0x20, 0x03, 0xd5]), None); // nop
        assert_eq!(rewound.at(&registers, &|_, _| false), None);
    }
}
