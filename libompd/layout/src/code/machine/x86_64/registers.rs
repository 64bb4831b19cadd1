//! Registers by their DWARF numbers.

use iced_x86::Register as R;

/// The number DWARF gives a 64-bit general register (psABI x86-64, figure 3.36); `None` for any other.
pub(super) fn dwarf_register(register: R) -> Option<u16> {
    const ORDER: [R; 16] = [
        R::RAX,
        R::RDX,
        R::RCX,
        R::RBX,
        R::RSI,
        R::RDI,
        R::RBP,
        R::RSP,
        R::R8,
        R::R9,
        R::R10,
        R::R11,
        R::R12,
        R::R13,
        R::R14,
        R::R15,
    ];
    ORDER.iter().position(|known| *known == register).and_then(|number| u16::try_from(number).ok())
}

/// The number DWARF gives the 64-bit general register that instructions have this number for; `None` for any other.
pub(super) fn by_encoding(number: u8) -> Option<u16> {
    const GENERAL: [R; 16] = [
        R::RAX,
        R::RCX,
        R::RDX,
        R::RBX,
        R::RSP,
        R::RBP,
        R::RSI,
        R::RDI,
        R::R8,
        R::R9,
        R::R10,
        R::R11,
        R::R12,
        R::R13,
        R::R14,
        R::R15,
    ];
    dwarf_register(*GENERAL.get(usize::from(number))?)
}
