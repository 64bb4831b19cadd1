//! AMD64 / Intel 64, on Linux.

mod call_number;

use syscalls::x86_64::Sysno;

use super::facts::{Calls, Facts, KernelSet, Relocations, Roles, ThreadLocal, Unnumbered};
use crate::arch::{Arch, ByteOrder, Machine};
use crate::memory::Addr;
use crate::thread::{GENERAL, Registers, Syscall};

impl Machine {
    /// AMD64 / Intel 64.
    pub const X86_64: Machine = Machine::of_elf(62);
}

impl Arch {
    /// Linux on x86-64, LP64.
    pub const X86_64: Arch = Arch { machine: Machine::X86_64, pointer_bytes: 8, byte_order: ByteOrder::Little };
}

pub(super) static FACTS: Facts = Facts {
    machine: Machine::X86_64,
    name: "x86_64",
    title: "x86-64",
    // psABI x86-64, figure 3.36 and 3.2.1: rdi, rsi, rdx, rcx, r8, r9; rbx, rbp, r12 to r15.
    registers: Roles {
        program_counter: 16,
        stack_pointer: 7,
        link: None,
        arguments: &[5, 4, 1, 2, 8, 9],
        preserved: &[3, 6, 12, 13, 14, 15],
    },
    address_bits: u64::MAX,
    function_alignment: 16,
    has_transactions: true,
    vendor: gimli::Vendor::Default,
    thread_local: ThreadLocal::Below,
    // psABI x86-64, table 4.9: RELATIVE; 64, GLOB_DAT, JUMP_SLOT; TPOFF64; DTPMOD64; TLSDESC.
    relocations: Relocations { relative: 8, symbol: &[1, 6, 7], tls_offset: 18, tls_module: 16, tls_descriptor: 36 },
    kernel_set: KernelSet {
        words: WORDS,
        thread_pointer_note: None,
        decode: |words, _| words.first_chunk().map(decode),
        names: &[
            "r15", "r14", "r13", "r12", "rbp", "rbx", "r11", "r10", "r9", "r8", "rax", "rcx", "rdx", "rsi", "rdi",
            "orig_rax", "rip", "", "", "rsp",
        ],
        program_counter: "rip",
        // r15 to rdi, rip and rsp.
        needed: 0x7fff | 1 << 16 | 1 << 19,
        thread_pointer: 21,
        call_number: Some(15),
        rewound: None,
    },
    signal_return: None,
    calls: Calls {
        // Linux, entry_64.S: rdi, rsi, rdx, r10, r8, r9.
        arguments: [5, 4, 1, 10, 8, 9],
        name: |number| Sysno::new(number).map(|call| call.name()),
        number: |name| name.parse().ok().map(|call: Sysno| call.id().unsigned_abs().into()),
        result: 0,
        code_before: 7,
        made_by,
        unnumbered: Some(Unnumbered {
            site: call_number::site,
            call: call_number::call,
            is_blocked: call_number::is_blocked,
        }),
    },
    is_host: cfg!(target_arch = "x86_64"),
};

/// Words of `struct user_regs_struct` (linux/arch/x86/include/asm/user_64.h).
const WORDS: usize = 27;

/// Values the kernel leaves in the return register of a call that a stop interrupted and that will be restarted
/// (linux/include/linux/errno.h: ERESTARTSYS, ERESTARTNOINTR, ERESTARTNOHAND, ERESTART_RESTARTBLOCK).
const RESTARTING: [i64; 4] = [-512, -513, -514, -516];

/// The thread is blocked in a call if `orig_rax` holds a number and `rax` says that the call was interrupted. A call
/// that has just returned has a number too, but its result in `rax`.
fn decode(words: &[u64; WORDS]) -> Registers {
    // r15 r14 r13 r12 rbp rbx r11 r10 r9 r8 rax rcx rdx rsi rdi orig_rax rip cs eflags rsp ss fs_base ...
    let [r15, r14, r13, r12, rbp, rbx, r11, r10, r9, r8, rax, rcx, rdx, rsi, rdi, orig_rax, rip, ..] = *words;
    let (rsp, fs_base) = (words[19], words[21]);
    let mut general = [0; GENERAL];
    general[..17].copy_from_slice(&[rax, rdx, rcx, rbx, rsi, rdi, rbp, rsp, r8, r9, r10, r11, r12, r13, r14, r15, rip]);
    // An interrupt leaves a negative number (linux/arch/x86/entry/entry_64.S).
    let call =
        (orig_rax as i64 >= 0).then_some(Syscall { number: orig_rax, args: [rdi, rsi, rdx, r10, r8, r9], begun: true });
    let blocked = RESTARTING.contains(&(rax as i64));
    Registers {
        pc: Addr(rip),
        sp: Addr(rsp),
        fp: Addr(rbp),
        thread_pointer: Some(Addr(fs_base)),
        syscall: call.filter(|_| blocked),
        returned: call.filter(|_| !blocked),
        unnumbered: false,
        general,
        known: Registers::ALL,
    }
}

/// `mov eax, NUMBER; syscall`, behind which a thread in a call is.
fn made_by(code: &[u8]) -> Option<u64> {
    match *code {
        [0xb8, a, b, c, d, 0x0f, 0x05] => Some(u32::from_le_bytes([a, b, c, d]).into()),
        _ => None,
    }
}

#[cfg(target_arch = "x86_64")]
pub(crate) fn of_thread(tid: i32) -> Result<Registers, String> {
    let pid = nix::unistd::Pid::from_raw(tid);
    let r = nix::sys::ptrace::getregs(pid).map_err(|e| format!("registers of thread {tid}: {e}"))?;
    // Selector of 32-bit code (linux/arch/x86/include/asm/segment.h, __USER32_CS).
    if r.cs == 0x23 {
        return Err("registers of 32-bit programs are not decoded".into());
    }
    Ok(decode(&[
        r.r15, r.r14, r.r13, r.r12, r.rbp, r.rbx, r.r11, r.r10, r.r9, r.r8, r.rax, r.rcx, r.rdx, r.rsi, r.rdi,
        r.orig_rax, r.rip, r.cs, r.eflags, r.rsp, r.ss, r.fs_base, r.gs_base, r.ds, r.es, r.fs, r.gs,
    ]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(rax: i64, orig_rax: i64) -> Option<u64> {
        let mut words = [0; WORDS];
        (words[10], words[15]) = (rax as u64, orig_rax as u64);
        decode(&words).syscall.map(|s| s.number)
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
    fn call_that_has_returned_is_told_apart_from_one_that_goes_on() {
        let returned = |rax: i64, orig_rax: i64| {
            let mut words = [0; WORDS];
            (words[10], words[15]) = (rax as u64, orig_rax as u64);
            decode(&words).returned.map(|call| call.number)
        };
        assert_eq!(returned(0, 202), Some(202));
        assert_eq!(returned(-11, 202), Some(202)); // EAGAIN: the word had changed.
        assert_eq!(returned(-512, 202), None); // It goes on.
        assert_eq!(returned(0, -1), None); // An interrupt.
        let ended = |rax: i64| {
            let mut words = [0; WORDS];
            (words[10], words[15]) = (rax as u64, 232);
            decode(&words).ended_call(Arch::X86_64).map(|call| call.number)
        };
        assert_eq!((ended(-4), ended(-11), ended(-512)), (Some(232), None, None));
    }

    #[test]
    fn call_that_goes_on_after_a_stop_is_the_one_its_code_makes() {
        let call = |number| Syscall { number, args: [3; 6], begun: true };
        let restarted = |number, code: [u8; 7]| {
            FACTS.calls.restarted(call(number), Addr(0x1007), &|addr, buf| {
                buf.copy_from_slice(&code);
                addr == Addr(0x1000)
            })
        };
        let makes = |number: u8| [0xb8, number, 0, 0, 0, 0x0f, 0x05];
        assert_eq!(restarted(219, makes(230)), Some(call(230))); // clock_nanosleep
        assert_eq!(restarted(219, makes(7)), Some(call(7))); // poll
        assert_eq!(restarted(219, makes(0)), None); // read never goes on like this.
        assert_eq!(restarted(219, [0x90; 7]), None);
        assert_eq!(restarted(0, makes(7)), None);
        assert_eq!(FACTS.calls.restarted(call(219), Addr(3), &|_, _| true), None);
    }

    #[test]
    fn words_go_where_the_kernel_headers_put_them() {
        let words: [u64; WORDS] = std::array::from_fn(|i| i as u64);
        let r = decode(&words);
        assert_eq!((r.pc.0, r.sp.0, r.fp.0, r.thread_pointer), (16, 19, 4, Some(Addr(21))));
        // rax rdx rcx rbx rsi rdi rbp rsp r8 ... r15 rip
        assert_eq!(r.general[..17], [10, 12, 11, 5, 13, 14, 4, 19, 9, 8, 7, 6, 3, 2, 1, 0, 16]);
    }
}
