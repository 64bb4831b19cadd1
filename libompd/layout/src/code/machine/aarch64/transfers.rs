//! Calls, jumps and returns by their instructions.

use crate::code::flow::{EachTransfer, Operand, Transfer, TransferKind};

/// Branches by their encoding ("Arm Architecture Reference Manual for A-profile", C4.1).
pub(super) fn transfers(bytes: &[u8], start: u64, each: EachTransfer<'_>) {
    let words = bytes.chunks_exact(4).map(|word| word.iter().rev().fold(0u32, |acc, b| (acc << 8) | u32::from(*b)));
    for (n, word) in words.enumerate() {
        let at = start.wrapping_add(4 * n as u64);
        // `bits` of the word from bit `low` on are a distance in instructions.
        let target = |low: u32, bits: u32| {
            let distance = i64::from((word << (32 - low - bits)).cast_signed() >> (32 - bits));
            at.wrapping_add_signed(distance.wrapping_mul(4))
        };
        let through = || Some(Operand::Register(u16::try_from((word >> 5) & 31).unwrap_or_default()));
        let kind = match word {
            w if w >> 26 == 0b10_0101 => TransferKind::Call(target(0, 26)),
            w if w >> 26 == 0b00_0101 => TransferKind::Jump(target(0, 26)),
            // b.cond and bc.cond, cbz and cbnz, tbz and tbnz
            w if w >> 24 == 0b0101_0100 => TransferKind::Jump(target(5, 19)),
            w if w & 0x7e00_0000 == 0x3400_0000 => TransferKind::Jump(target(5, 19)),
            w if w & 0x7e00_0000 == 0x3600_0000 => TransferKind::Jump(target(5, 14)),
            // With and without pointer authentication.
            w if w & 0xfeff_f000 == 0xd63f_0000 => TransferKind::CallThrough(through()),
            w if w & 0xfeff_f000 == 0xd61f_0000 => TransferKind::JumpThrough(through()),
            w if w & 0xffff_f000 == 0xd65f_0000 => TransferKind::Return,
            _ => continue,
        };
        if each(Some(Transfer { at, next: at.wrapping_add(4), kind })).is_break() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::code::flow::collect;

    #[test]
    fn instructions_by_hand() {
        let words: [u32; 9] = [
            0x9400_0002, // bl .+8
            0x17ff_ffff, // b .-4
            0x5400_0040, // b.eq .+8
            0xb4ff_ffe1, // cbz x1, .-4
            0x3600_0041, // tbz w1, #0, .+8
            0xd63f_0260, // blr x19
            0xd61f_0200, // br x16
            0xd65f_03c0, // ret
            0xd503_201f, // nop
        ];
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let kinds: Vec<_> =
            collect(super::transfers, &bytes, 0x1000).expect("instructions").iter().map(|t| (t.at, t.kind)).collect();
        let expected = [
            (0x1000, TransferKind::Call(0x1008)),
            (0x1004, TransferKind::Jump(0x1000)),
            (0x1008, TransferKind::Jump(0x1010)),
            (0x100c, TransferKind::Jump(0x1008)),
            (0x1010, TransferKind::Jump(0x1018)),
            (0x1014, TransferKind::CallThrough(Some(Operand::Register(19)))),
            (0x1018, TransferKind::JumpThrough(Some(Operand::Register(16)))),
            (0x101c, TransferKind::Return),
        ];
        assert_eq!(kinds, expected);
    }
}
