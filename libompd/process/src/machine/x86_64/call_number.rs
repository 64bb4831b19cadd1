//! The number of a system call, from the code in front of it, for registers without `orig_rax`.
//!
//! The kernel leaves all general registers as they are, but for `rax`, `rcx` and `r11`. So the number is a constant that the code
//! puts into `eax`, or is still in the register from which the code copies it to `eax`.

use std::ops::Range;

use iced_x86::{
    Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind,
    Register as R,
};

use crate::elf::ElfFile;
use crate::machine::facts::{CallSite, NumberIn, Shown};
use crate::thread::{Registers, Syscall};

/// DWARF numbers of `rax` and `rcx`.
const RAX: u16 = 0;
const RCX: u16 = 2;
/// DWARF numbers of `rdi`, `rsi`, `rdx`, `r10`, `r8` and `r9`.
const ARGUMENTS: [u16; 6] = super::FACTS.calls.arguments;
/// Bytes of the `syscall` instruction.
const SYSCALL: u64 = 2;
/// Larger functions are not decoded.
const LARGEST: u64 = 64 << 10;

/// The call that ends at an address of a file.
pub(super) fn site(file: &ElfFile, pc: u64) -> Option<CallSite> {
    let function = file.function_range(pc.checked_sub(SYSCALL)?).filter(|range| range.end - range.start <= LARGEST)?;
    let code = file.bytes_at(function.start, function.end - function.start)?;
    let (site, straight) = find(code, function.start, pc)?;
    (!is_entered(file, &function, &straight)).then_some(site)
}

/// The call of a thread whose program counter is behind such a call.
pub(super) fn call(site: CallSite, registers: &Registers) -> Option<Shown> {
    let value = |number| registers.get(number);
    if !is_behind_call(registers) {
        return None;
    }
    let number = match site.number {
        NumberIn::Code(number) => number,
        NumberIn::Register { number, mask } => value(number)? & mask,
    };
    let mut args = [0; 6];
    for (argument, number) in args.iter_mut().zip(ARGUMENTS) {
        *argument = value(number)?;
    }
    let call = Syscall { number, args, begun: true };
    match is_blocked(registers) {
        true => Some(Shown::Blocked(call)),
        // A jump may lead to the instruction behind the call long after it.
        false => site.returns_here.then_some(Shown::Returned(call)),
    }
}

/// The processor copies the address behind `syscall` to `rcx`, and the kernel gives it back so.
fn is_behind_call(registers: &Registers) -> bool {
    registers.get(RCX) == Some(registers.pc.0)
}

/// A stop has interrupted a call that goes on afterwards.
pub(super) fn is_blocked(registers: &Registers) -> bool {
    let result = registers.get(RAX).map(u64::cast_signed);
    is_behind_call(registers) && result.is_some_and(|result| super::RESTARTING.contains(&result))
}

/// The call that ends at `pc` in a function whose code begins at `start`, and the addresses that only the instructions before them
/// may lead to: from behind the one that sets `eax` up to `pc`.
fn find(code: &[u8], start: u64, pc: u64) -> Option<(CallSite, Range<u64>)> {
    let all: Vec<Instruction> = Decoder::with_ip(64, code, start, DecoderOptions::NONE).into_iter().collect();
    // Where an indirect jump leads is unknown, and behind bytes that are no code, instructions may begin anywhere.
    if all.iter().any(|i| i.is_invalid() || i.flow_control() == FlowControl::IndirectBranch) {
        return None;
    }
    let at = all.iter().position(|i| i.next_ip() == pc && i.mnemonic() == Mnemonic::Syscall)?;
    let targets: Vec<u64> = all.iter().filter_map(target).collect();
    let mut info = InstructionInfoFactory::new();
    let mut written: Vec<R> = Vec::new();
    for (index, i) in all[..at].iter().enumerate().rev() {
        // Other paths may lead to the instruction behind this one.
        if targets.contains(&all[index + 1].ip()) || i.flow_control() != FlowControl::Next {
            return None;
        }
        let uses = info.info(i).used_registers().iter().filter(|used| is_write(used.access()));
        let writes: Vec<R> = uses.map(|used| used.register().full_register()).collect();
        if writes.contains(&R::RAX) {
            let site = CallSite { number: number_in(i, &written)?, returns_here: !targets.contains(&pc) };
            return Some((site, i.next_ip()..pc));
        }
        written.extend(writes);
    }
    None
}

/// Where a direct jump leads. A call comes back.
fn target(i: &Instruction) -> Option<u64> {
    let jumps = matches!(
        i.flow_control(),
        FlowControl::ConditionalBranch | FlowControl::UnconditionalBranch | FlowControl::XbeginXabortXend
    );
    jumps.then(|| i.near_branch_target())
}

fn is_write(access: OpAccess) -> bool {
    !matches!(access, OpAccess::None | OpAccess::Read | OpAccess::CondRead | OpAccess::NoMemAccess)
}

/// What an instruction puts into `eax`. `written` has the registers that change before the call.
fn number_in(i: &Instruction, written: &[R]) -> Option<NumberIn> {
    if !matches!(i.op0_register(), R::EAX | R::RAX) || i.op_count() != 2 {
        return None;
    }
    let source = i.op1_register();
    match (i.mnemonic(), i.op1_kind()) {
        (Mnemonic::Mov, OpKind::Immediate32 | OpKind::Immediate64 | OpKind::Immediate32to64) => {
            Some(NumberIn::Code(i.immediate(1)))
        }
        (Mnemonic::Xor, OpKind::Register) if source == i.op0_register() => Some(NumberIn::Code(0)),
        (Mnemonic::Mov, OpKind::Register) if !written.contains(&source.full_register()) => {
            let mask = if source.is_gpr32() { u32::MAX.into() } else { u64::MAX };
            Some(NumberIn::Register { number: dwarf_number(source.full_register())?, mask })
        }
        _ => None,
    }
}

/// The DWARF number of a general register that a system call leaves as it is.
fn dwarf_number(register: R) -> Option<u16> {
    // psABI x86-64, figure 3.36.
    const KEPT: [(R, u16); 12] = [
        (R::RDX, 1),
        (R::RBX, 3),
        (R::RSI, 4),
        (R::RDI, 5),
        (R::RBP, 6),
        (R::R8, 8),
        (R::R9, 9),
        (R::R10, 10),
        (R::R12, 12),
        (R::R13, 13),
        (R::R14, 14),
        (R::R15, 15),
    ];
    KEPT.iter().find(|(kept, _)| *kept == register).map(|(_, number)| *number)
}

/// True if code outside of the function may jump to one of these addresses: all bytes are looked at that may be such a jump, whether
/// an instruction begins there or not. Shorter jumps do not leave a function.
fn is_entered(file: &ElfFile, function: &Range<u64>, straight: &Range<u64>) -> bool {
    file.executable_ranges().into_iter().any(|range| {
        let code = file.bytes_at(range.start, range.end - range.start).unwrap_or_default();
        code.windows(6).zip(range.start..).any(|(bytes, at)| {
            // jmp, jcc and xbegin with a distance of four bytes.
            let is_jump = bytes[1] == 0xe9
                || (bytes[0] == 0x0f && bytes[1] & 0xf0 == 0x80)
                || (bytes[0] == 0xc7 && bytes[1] == 0xf8);
            let distance = i32::from_le_bytes([bytes[2], bytes[3], bytes[4], bytes[5]]);
            is_jump && straight.contains(&(at + 6).wrapping_add_signed(distance.into())) && !function.contains(&at)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `mov eax, r8d` behind which other registers change, as in `gomp_futex_wait` of GCC 12.
    const COPIED: &[u8] = &[
        0x41, 0xb8, 0xca, 0, 0, 0, // mov r8d, 202
        0x8b, 0x35, 0, 0, 0, 0, // mov esi, [rip]
        0x44, 0x89, 0xc0, // mov eax, r8d
        0x40, 0x80, 0xe6, 0x7f, // and sil, 127
        0x0f, 0x05, // syscall
        0xc3, // ret
    ];

    fn number(code: &[u8], pc: u64) -> Option<NumberIn> {
        find(code, 0x1000, pc).map(|(site, _)| site.number)
    }

    #[test]
    fn copied_number_is_still_in_its_register() {
        let in_r8 = |mask| Some(NumberIn::Register { number: 8, mask });
        assert_eq!(number(COPIED, 0x1015), in_r8(u32::MAX.into()), "the upper half is not copied");
        assert_eq!(find(COPIED, 0x1000, 0x1015).map(|(_, straight)| straight), Some(0x100f..0x1015));
        assert_eq!(number(&[0x4c, 0x89, 0xc0, 0x0f, 0x05], 0x1005), in_r8(u64::MAX)); // mov rax, r8; syscall
        assert_eq!(number(COPIED, 0x1016), None, "no call ends there");
        assert_eq!(number(&COPIED[..4], 0x1015), None);
    }

    #[test]
    fn registers_say_whether_the_call_is_over() {
        let with = |rax: i64, rcx: u64, returns_here| {
            let mut words = [0; super::super::WORDS];
            (words[9], words[10], words[11], words[14], words[16]) =
                (7 << 32 | 202, rax.cast_unsigned(), rcx, 5, 0x1015);
            let site = CallSite { number: NumberIn::Register { number: 8, mask: u32::MAX.into() }, returns_here };
            call(site, &super::super::decode(&words))
        };
        let futex = Syscall { number: 202, args: [5, 0, 0, 0, 7 << 32 | 202, 0], begun: true };
        assert_eq!(with(-512, 0x1015, true), Some(Shown::Blocked(futex)));
        assert_eq!(with(-512, 0x1015, false), Some(Shown::Blocked(futex)));
        assert_eq!(with(-11, 0x1015, true), Some(Shown::Returned(futex)));
        assert_eq!(with(-11, 0x1015, false), None, "a jump may have led here");
        assert_eq!(with(-512, 0x2000, true), None, "the last call was made elsewhere");
    }

    #[test]
    fn constant_is_the_number() {
        let far = [0xb8, 0xca, 0, 0, 0, 0x31, 0xd2, 0x0f, 0x05]; // mov eax, 202; xor edx, edx; syscall
        assert_eq!(number(&far, 0x1009), Some(NumberIn::Code(202)));
        let wide = [0x48, 0xc7, 0xc0, 0xe6, 0, 0, 0, 0x0f, 0x05]; // mov rax, 230; syscall
        assert_eq!(number(&wide, 0x1009), Some(NumberIn::Code(230)));
        let zero = [0x31, 0xc0, 0x0f, 0x05]; // xor eax, eax; syscall
        assert_eq!(number(&zero, 0x1004), Some(NumberIn::Code(0)));
    }

    #[test]
    fn number_that_is_not_proven_is_unknown() {
        // mov eax, edi; mov edi, esi; syscall: the register has another value by now.
        assert_eq!(number(&[0x89, 0xf8, 0x89, 0xf7, 0x0f, 0x05], 0x1006), None);
        // mov eax, ecx; syscall: the call changes it.
        assert_eq!(number(&[0x89, 0xc8, 0x0f, 0x05], 0x1004), None);
        // mov eax, [rdi]; syscall.
        assert_eq!(number(&[0x8b, 0x07, 0x0f, 0x05], 0x1004), None);
        // mov al, 7; syscall: the rest of the register is unknown.
        assert_eq!(number(&[0xb0, 0x07, 0x0f, 0x05], 0x1004), None);
        // mov eax, 202; call; syscall.
        assert_eq!(number(&[0xb8, 0xca, 0, 0, 0, 0xe8, 0, 0, 0, 0, 0x0f, 0x05], 0x100c), None);
        // je to the syscall; mov eax, 202; syscall.
        assert_eq!(number(&[0x74, 0x05, 0xb8, 0xca, 0, 0, 0, 0x0f, 0x05], 0x1009), None);
        // The same with jmp rdx behind: it may lead anywhere.
        assert_eq!(number(&[0xb8, 0xca, 0, 0, 0, 0x0f, 0x05, 0xff, 0xe2], 0x1007), None);
    }

    #[test]
    fn call_that_a_jump_leads_behind_may_be_over() {
        let code = [0xb8, 0xca, 0, 0, 0, 0x0f, 0x05, 0x90, 0xeb, 0xfd]; // ...; nop; jmp to the nop
        let returns_here = |pc, code: &[u8]| find(code, 0x1000, pc).map(|(site, _)| site.returns_here);
        assert_eq!(returns_here(0x1007, &code), Some(false));
        assert_eq!(returns_here(0x1007, &code[..8]), Some(true));
    }
}
