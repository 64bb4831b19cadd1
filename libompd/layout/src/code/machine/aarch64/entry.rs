//! What the first instructions of a function do to the stack.

use crate::code::flow::MadeFrame;

const FRAME_POINTER: u16 = 29;
const LINK: u16 = 30;
const STACK_POINTER: u32 = 31;

/// The frame that these instructions, the first of a function, have made. `None` unless they have saved the link register and set
/// the frame pointer, and have left both what they are since ("Arm Architecture Reference Manual for A-profile", C6.2).
pub(super) fn made_frame(code: &[u8]) -> Option<MadeFrame> {
    let mut words =
        code.chunks_exact(4).map(|word| u32::from_le_bytes(word.try_into().expect("a chunk has four bytes")));
    // From the stack pointer at entry.
    let mut depth = 0i64;
    let mut saved = Vec::new();
    let pointer = loop {
        let word = words.next()?;
        let field = |low: u32, bits: u32| (word >> low) & ((1 << bits) - 1);
        let signed = |low: u32, bits: u32| i64::from((word << (32 - low - bits)).cast_signed() >> (32 - bits));
        let register = |low| field(low, 5) as u16;
        let on_stack = field(5, 5) == STACK_POINTER;
        match word {
            // nop, paciasp, bti and other hints.
            w if w & 0xffff_f01f == 0xd503_201f => {}
            // stp a, b, [sp, #n]! and stp a, b, [sp, #n]
            w if matches!(w & 0xffc0_0000, 0xa980_0000 | 0xa900_0000) && on_stack => {
                let distance = signed(15, 7) * 8;
                let at = depth + distance;
                if w & 0xffc0_0000 == 0xa980_0000 {
                    depth = at;
                }
                saved.extend([(register(0), at), (register(10), at + 8)]);
            }
            // str a, [sp, #n]!
            w if w & 0xffe0_0c00 == 0xf800_0c00 && on_stack => {
                depth += signed(12, 9);
                saved.push((register(0), depth));
            }
            // str a, [sp, #n]
            w if w & 0xffc0_0000 == 0xf900_0000 && on_stack => {
                saved.push((register(0), depth + i64::from(field(10, 12)) * 8));
            }
            // sub sp, sp, #n
            w if w & 0xffc0_03ff == 0xd100_03ff => depth -= i64::from(field(10, 12)),
            // add x29, sp, #n, which is mov x29, sp where n is 0
            w if w & 0xffc0_03ff == 0x9100_03fd => break depth + i64::from(field(10, 12)),
            _ => return None,
        }
    };
    if !saved.iter().any(|(register, _)| *register == LINK) {
        return None;
    }
    let left = words.all(|word| !writes(word, u32::from(FRAME_POINTER)));
    left.then_some(MadeFrame { base: FRAME_POINTER, above: -pointer, saved })
}

/// Whether an instruction may write a general register (C4.1).
fn writes(word: u32, register: u32) -> bool {
    let is = |bits: u32| word & bits != 0;
    let names = |low: u32| (word >> low) & 31 == register;
    match word {
        // Branches and hints write the link register at most; `mrs` reads a system register into one.
        w if w & 0x1c00_0000 == 0x1400_0000 => w & 0xfff0_0000 == 0xd530_0000 && names(0),
        // Pairs of registers: loads, and what changes the base register.
        w if w & 0x3a00_0000 == 0x2800_0000 => is(1 << 22) && (names(0) || names(10)) || is(1 << 23) && names(5),
        // One register: loads, atomic operations, and what changes the base register.
        w if w & 0x3a00_0000 == 0x3800_0000 => {
            let (unsigned, has_register) = (is(1 << 24), is(1 << 21));
            let is_load = is(0b11 << 22) || !unsigned && has_register && !is(0b11 << 10);
            is_load && names(0) || !unsigned && !has_register && is(1 << 10) && names(5)
        }
        // Exclusive stores say in a third one whether they stored.
        w if w & 0x3f00_0000 == 0x0800_0000 => names(0) || names(10) || names(16),
        _ => names(0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(words: &[u32]) -> Option<MadeFrame> {
        made_frame(&words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>())
    }

    #[test]
    fn two_pairs_are_saved_and_the_frame_pointer_set() {
        // stp x29, x30, [sp, #-16]!; stp x19, x20, [sp, #-16]!; mov x29, sp
        let entry = [0xa9bf_7bfd, 0xa9bf_53f3, 0x9100_03fd];
        let made = of(&entry).expect("a frame");
        assert_eq!((made.base, made.above), (29, 32));
        assert_eq!(made.saved, [(29, -16), (30, -8), (19, -32), (20, -24)]);
        // orr w9, wzr, #1; sub sp, sp, w9, uxtw #4; stur w1, [x29, #-4]; str x29, [x19]; sub x0, x29, #4; blr x8
        let more = [0x3200_03e9, 0xcb29_53ff, 0xb81f_c3a1, 0xf900_027d, 0xd100_13a0, 0xd63f_0100];
        assert_eq!(of(&[&entry[..], &more].concat()).expect("a frame"), made);
    }

    #[test]
    fn room_is_made_first() {
        // paciasp; sub sp, sp, #48; stp x29, x30, [sp, #32]; add x29, sp, #32
        let made = of(&[0xd503_233f, 0xd100_c3ff, 0xa902_7bfd, 0x9100_83fd]).expect("a frame");
        assert_eq!((made.base, made.above), (29, 16));
        assert_eq!(made.saved, [(29, -16), (30, -8)]);
    }

    #[test]
    fn what_is_not_seen_is_no_frame() {
        assert_eq!(of(&[0xa9bf_7bfd]), None); // the frame pointer is not set yet
        assert_eq!(of(&[0xd100_43ff, 0x9100_03fd]), None); // the link register is not saved
        assert_eq!(of(&[0xa9bf_7bfd, 0x9100_03fd, 0xa8c1_7bfd]), None); // ldp x29, x30, [sp], #16
        assert_eq!(of(&[0xa9bf_7bfd, 0x9100_03fd, 0xaa00_03fd]), None); // mov x29, x0
        assert_eq!(of(&[0xa9bf_7bfd, 0x9100_03fd, 0xf940_027d]), None); // ldr x29, [x19]
        assert_eq!(of(&[0xa9bf_7bfd, 0x9100_03fd, 0xf81f_0fa0]), None); // str x0, [x29, #-16]!
        assert_eq!(of(&[0xaa00_03e8, 0xa9bf_7bfd, 0x9100_03fd]), None); // something else first
    }
}
