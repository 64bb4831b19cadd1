//! Functions of a few instructions each. `adrp` is given the distance of the page, branches that of their target.

pub const TLS_INITIAL_EXEC: &[u32] = &[
    0xd53bd041, // mrs x1, tpidr_el0
    0xf00000e0, // adrp x0, #126976
    0xf9400000, // ldr x0, [x0]
    0x8b000020, // add x0, x1, x0
    0xb9402800, // ldr w0, [x0, #40]
    0xd65f03c0, // ret
];

pub const TLS_BY_SUM: &[u32] = &[
    0xd53bd041, // mrs x1, tpidr_el0
    0xf00000e0, // adrp x0, #126976
    0xf9400002, // ldr x2, [x0]
    0xf8626820, // ldr x0, [x1, x2]
    0xd65f03c0, // ret
];

pub const TLS_DESCRIPTOR: &[u32] = &[
    0xa9bf7bfd, // stp x29, x30, [sp, #-16]!
    0xf00000e0, // adrp x0, #126976
    0xf9400802, // ldr x2, [x0, #16]
    0x91004000, // add x0, x0, #16
    0xd63f0040, // blr x2
    0xd53bd041, // mrs x1, tpidr_el0
    0x8b000020, // add x0, x1, x0
    0xb9400800, // ldr w0, [x0, #8]
    0xa8c17bfd, // ldp x29, x30, [sp], #16
    0xd65f03c0, // ret
];

pub const TLS_GENERAL_DYNAMIC: &[u32] = &[
    0xf00000e0, // adrp x0, #126976
    0x91002000, // add x0, x0, #8
    0x940001fe, // bl #2040
    0xb9401000, // ldr w0, [x0, #16]
    0xd65f03c0, // ret
];

pub const TLS_LOCAL_EXEC: &[u32] = &[
    0xd53bd040, // mrs x0, tpidr_el0
    0x91400400, // add x0, x0, #1, lsl #12
    0x91004000, // add x0, x0, #16
    0xb9400400, // ldr w0, [x0, #4]
    0xd65f03c0, // ret
];

pub const GLOBALS: &[u32] = &[
    0xf00000e0, // adrp x0, #126976
    0xf9401000, // ldr x0, [x0, #32]
    0xf0000161, // adrp x1, #192512
    0xb9400400, // ldr w0, [x0, #4]
    0xb9409821, // ldr w1, [x1, #152]
    0x0b010000, // add w0, w0, w1
    0xd65f03c0, // ret
];

pub const ADDRESSING: &[u32] = &[
    0xf8408c02, // ldr x2, [x0, #8]!
    0xb8410403, // ldr w3, [x0], #16
    0xb85fc004, // ldur w4, [x0, #-4]
    0xf8667825, // ldr x5, [x1, x6, lsl #3]
    0xf8665825, // ldr x5, [x1, w6, uxtw #3]
    0xf866d825, // ldr x5, [x1, w6, sxtw #3]
    0xb8a66825, // ldrsw x5, [x1, x6]
    0x38664825, // ldrb w5, [x1, w6, uxtw]
    0x79c00425, // ldrsh w5, [x1, #2]
    0xa9411427, // ldp x7, x5, [x1, #16]
    0x68c11427, // ldpsw x7, x5, [x1], #8
    0x58000205, // ldr x5, #64
    0xd65f03c0, // ret
];

pub const STORES: &[u32] = &[
    0xf9000401, // str x1, [x0, #8]
    0x39000c02, // strb w2, [x0, #3]
    0x781fe002, // sturh w2, [x0, #-2]
    0xa9817c01, // stp x1, xzr, [x0, #16]!
    0xb800841f, // str wzr, [x0], #8
    0xf9000003, // str x3, [x0]
    0xd65f03c0, // ret
];

pub const FRAME: &[u32] = &[
    0xa9bd7bfd, // stp x29, x30, [sp, #-48]!
    0x910003fd, // mov x29, sp
    0xa90153f3, // stp x19, x20, [sp, #16]
    0xaa0003f3, // mov x19, x0
    0xf90017a1, // str x1, [x29, #40]
    0x528000e1, // mov w1, #7
    0xb90027e1, // str w1, [sp, #36]
    0xf94017e2, // ldr x2, [sp, #40]
    0xb94027e3, // ldr w3, [sp, #36]
    0x8b020260, // add x0, x19, x2
    0x8b234000, // add x0, x0, w3, uxtw
    0xa94153f3, // ldp x19, x20, [sp, #16]
    0xa8c37bfd, // ldp x29, x30, [sp], #48
    0xd65f03c0, // ret
];

pub const REALIGNED: &[u32] = &[
    0x910003e9, // mov x9, sp
    0xd1010129, // sub x9, x9, #64
    0x927ae53f, // and sp, x9, #0xffffffffffffffc0
    0xf90007e0, // str x0, [sp, #8]
    0xf94007e0, // ldr x0, [sp, #8]
    0xd65f03c0, // ret
];

pub const IMMEDIATES: &[u32] = &[
    0xd2800241, // mov x1, #18
    0xf2a00681, // movk x1, #52, lsl #16
    0xf9000001, // str x1, [x0]
    0x92800081, // mov x1, #-5
    0xf9000001, // str x1, [x0]
    0x12800081, // mov w1, #-5
    0xb9000001, // str w1, [x0]
    0x3200cfe1, // mov w1, #252645135
    0xb9000001, // str w1, [x0]
    0x52a00241, // mov w1, #1179648
    0xb9000001, // str w1, [x0]
    0x2a3f03e1, // mvn w1, wzr
    0xb9000001, // str w1, [x0]
    0x10000101, // adr x1, #32
    0xf9000001, // str x1, [x0]
    0xd65f03c0, // ret
];

pub const SUMS: &[u32] = &[
    0x51000401, // sub w1, w0, #1
    0xb90000e1, // str w1, [x7]
    0x91400401, // add x1, x0, #1, lsl #12
    0xf90000e1, // str x1, [x7]
    0x8b000c41, // add x1, x2, x0, lsl #3
    0xf90000e1, // str x1, [x7]
    0x8b20d041, // add x1, x2, w0, sxtw #4
    0xf90000e1, // str x1, [x7]
    0xcb0003e1, // neg x1, x0
    0xf90000e1, // str x1, [x7]
    0xcb000001, // sub x1, x0, x0
    0xf90000e1, // str x1, [x7]
    0x52800303, // mov w3, #24
    0x9b030801, // madd x1, x0, x3, x2
    0xf90000e1, // str x1, [x7]
    0x9b230801, // smaddl x1, w0, w3, x2
    0xf90000e1, // str x1, [x7]
    0x9b038801, // msub x1, x0, x3, x2
    0xf90000e1, // str x1, [x7]
    0x9b027c01, // mul x1, x0, x2
    0xf90000e1, // str x1, [x7]
    0x12800004, // mov w4, #-1
    0x0b040001, // add w1, w0, w4
    0xb90000e1, // str w1, [x7]
    0xd65f03c0, // ret
];

pub const SHIFTS: &[u32] = &[
    0xb9400000, // ldr w0, [x0]
    0xd37df001, // lsl x1, x0, #3
    0xf90000e1, // str x1, [x7]
    0x53037c01, // lsr w1, w0, #3
    0xb90000e1, // str w1, [x7]
    0x13037c01, // asr w1, w0, #3
    0xb90000e1, // str w1, [x7]
    0x53030c01, // ubfx w1, w0, #3, #1
    0xb90000e1, // str w1, [x7]
    0xd37d7c01, // ubfiz x1, x0, #3, #32
    0xf90000e1, // str x1, [x7]
    0xd37d0c01, // ubfiz x1, x0, #3, #4
    0xf90000e1, // str x1, [x7]
    0x13031001, // sbfx w1, w0, #3, #2
    0xb90000e1, // str w1, [x7]
    0x93407c01, // sxtw x1, w0
    0xf90000e1, // str x1, [x7]
    0x53001c01, // uxtb w1, w0
    0xb90000e1, // str w1, [x7]
    0x13001c01, // sxtb w1, w0
    0xb90000e1, // str w1, [x7]
    0x9ac22001, // lsl x1, x0, x2
    0xf90000e1, // str x1, [x7]
    0x528000a3, // mov w3, #5
    0x9ac32401, // lsr x1, x0, x3
    0xf90000e1, // str x1, [x7]
    0x13800c01, // ror w1, w0, #3
    0xb90000e1, // str w1, [x7]
    0xd65f03c0, // ret
];

pub const INSERTS: &[u32] = &[
    0xb9400000, // ldr w0, [x0]
    0x331c0401, // bfi w1, w0, #4, #2
    0xb90000e1, // str w1, [x7]
    0x52801fe1, // mov w1, #255
    0x331e0be1, // bfc w1, #2, #3
    0xb90000e1, // str w1, [x7]
    0x52800001, // mov w1, #0
    0x33082c01, // bfxil w1, w0, #8, #4
    0xb90000e1, // str w1, [x7]
    0xd65f03c0, // ret
];

pub const LOGIC: &[u32] = &[
    0xb9400000, // ldr w0, [x0]
    0x12001c01, // and w1, w0, #0xff
    0xb90000e1, // str w1, [x7]
    0x0a220001, // bic w1, w0, w2
    0xb90000e1, // str w1, [x7]
    0x528001e3, // mov w3, #15
    0x0a230001, // bic w1, w0, w3
    0xb90000e1, // str w1, [x7]
    0x32000001, // orr w1, w0, #0x1
    0xb90000e1, // str w1, [x7]
    0x4a020001, // eor w1, w0, w2
    0xb90000e1, // str w1, [x7]
    0x4a000001, // eor w1, w0, w0
    0xb90000e1, // str w1, [x7]
    0x2a2003e1, // mvn w1, w0
    0xb90000e1, // str w1, [x7]
    0x4a220001, // eon w1, w0, w2
    0xb90000e1, // str w1, [x7]
    0xd348fc01, // lsr x1, x0, #8
    0x927d5021, // and x1, x1, #0xfffff8
    0xf90000e1, // str x1, [x7]
    0xd65f03c0, // ret
];

pub const SELECTS: &[u32] = &[
    0x71000c1f, // cmp w0, #3
    0x9a830041, // csel x1, x2, x3, eq
    0xf90000e1, // str x1, [x7]
    0xd65f03c0, // ret
];

pub const SELECTS_NEXT: &[u32] = &[
    0x71000c1f, // cmp w0, #3
    0x1a830441, // csinc w1, w2, w3, eq
    0x5a851424, // csneg w4, w1, w5, ne
    0x290010e1, // stp w1, w4, [x7]
    0xd65f03c0, // ret
];

pub const SETS: &[u32] = &[
    0x71000c1f, // cmp w0, #3
    0x1a9f17e1, // cset w1, eq
    0x5a9f03e2, // csetm w2, ne
    0x290008e1, // stp w1, w2, [x7]
    0xd65f03c0, // ret
];

pub const COMPARES: &[u32] = &[
    0x71000c1f, // cmp w0, #3
    0xeb01001f, // cmp x0, x1
    0x3100041f, // cmn w0, #1
    0x721d001f, // tst w0, #0x8
    0xea00001f, // tst x0, x0
    0x7a451820, // ccmp w1, #5, #0, ne
    0x3a420824, // ccmn w1, #2, #4, eq
    0xeb010002, // subs x2, x0, x1
    0x72000003, // ands w3, w0, #0x1
    0x31000404, // adds w4, w0, #1
    0xb4000020, // cbz x0, #4
    0x35000021, // cbnz w1, #4
    0x36180020, // tbz w0, #3, #4
    0xb7180020, // tbnz x0, #35, #4
    0xd65f03c0, // ret
];

pub const BRANCHES: &[u32] = &[
    0x71000c1f, // cmp w0, #3
    0x54000040, // b.eq #8
    0x14000003, // b #12
    0x52800020, // mov w0, #1
    0xd65f03c0, // ret
    0x52800040, // mov w0, #2
    0xd65f03c0, // ret
];

pub const LOOP: &[u32] = &[
    0xb4000080, // cbz x0, #16
    0xf9400400, // ldr x0, [x0, #8]
    0x51000421, // sub w1, w1, #1
    0x35ffffc1, // cbnz w1, #-8
    0xd65f03c0, // ret
];

pub const ACQUIRE_RELEASE: &[u32] = &[
    0x88dffc01, // ldar w1, [x0]
    0x08dffc02, // ldarb w2, [x0]
    0x889ffce1, // stlr w1, [x7]
    0x089ffce2, // stlrb w2, [x7]
    0xf8bfc003, // ldapr x3, [x0]
    0xd65f03c0, // ret
];

pub const EXCLUSIVE: &[u32] = &[
    0x885ffc01, // ldaxr w1, [x0]
    0x11000421, // add w1, w1, #1
    0x8802fc01, // stlxr w2, w1, [x0]
    0x35ffffa2, // cbnz w2, #-12
    0x2a0103e0, // mov w0, w1
    0xd65f03c0, // ret
];

pub const ATOMICS: &[u32] = &[
    0x88a17c02, // cas w1, w2, [x0]
    0x08e3fc04, // casalb w3, w4, [x0]
    0xb8e50006, // ldaddal w5, w6, [x0]
    0xd65f03c0, // ret
];

pub const ATOMICS_NEXT: &[u32] = &[
    0xf8211002, // ldclr x1, x2, [x0]
    0xb8233004, // ldset w3, w4, [x0]
    0xb8232005, // ldeor w3, w5, [x0]
    0xf8e68007, // swpal x6, x7, [x0]
    0xb8234004, // ldsmax w3, w4, [x0]
    0xb863001f, // staddl w3, [x0]
    0x48227c04, // casp x2, x3, x4, x5, [x0]
    0xd65f03c0, // ret
];

pub const OUTLINED: &[u32] = &[
    0x52800000, // mov w0, #0
    0x52800021, // mov w1, #1
    0xf0000162, // adrp x2, #192512
    0x940003fd, // bl #4084
    0x2a0003f3, // mov w19, w0
    0x35000040, // cbnz w0, #8
    0xd65f03c0, // ret
    0x14000439, // b #4324
];

pub const OUTLINE_HELPER: &[u32] = &[
    0xd503245f, // bti c
    0xd0000170, // adrp x16, #188416
    0x39402210, // ldrb w16, [x16, #8]
    0x34000070, // cbz w16, #12
    0x88e07c41, // casa w0, w1, [x2]
    0xd65f03c0, // ret
    0x2a0003f0, // mov w16, w0
    0x885ffc40, // ldaxr w0, [x2]
    0x6b10001f, // cmp w0, w16
    0x54000061, // b.ne #12
    0x88117c41, // stxr w17, w1, [x2]
    0x35ffff91, // cbnz w17, #-16
    0xd65f03c0, // ret
];

pub const SWAP_HELPER: &[u32] = &[
    0xb0000170, // adrp x16, #184320
    0x39402210, // ldrb w16, [x16, #8]
    0x34000070, // cbz w16, #12
    0xb8608020, // swpl w0, w0, [x1]
    0xd65f03c0, // ret
];

pub const CALLS: &[u32] = &[
    0xa9be7bfd, // stp x29, x30, [sp, #-32]!
    0x910043e1, // add x1, sp, #16
    0xf9000be0, // str x0, [sp, #16]
    0xf90007e0, // str x0, [sp, #8]
    0x528000a0, // mov w0, #5
    0x94000203, // bl #2060
    0xf9400be1, // ldr x1, [sp, #16]
    0xf94007e2, // ldr x2, [sp, #8]
    0xa9000801, // stp x1, x2, [x0]
    0x94000bf7, // bl #12252
    0xf00000e8, // adrp x8, #126976
    0xf9400d08, // ldr x8, [x8, #24]
    0xd63f0100, // blr x8
    0xa8c27bfd, // ldp x29, x30, [sp], #32
    0xd61f0260, // br x19
];

pub const TAIL: &[u32] = &[
    0x52800081, // mov w1, #4
    0x14000207, // b #2076
];

pub const STUB_PLAIN: &[u32] = &[
    0xf00000f0, // adrp x16, #126976
    0xf9401611, // ldr x17, [x16, #40]
    0x9100a210, // add x16, x16, #40
    0xd61f0220, // br x17
];

pub const STUB_BTI: &[u32] = &[
    0xd503245f, // bti c
    0xf00000f0, // adrp x16, #126976
    0xf9400e11, // ldr x17, [x16, #24]
    0x91006210, // add x16, x16, #24
    0xd61f0220, // br x17
    0xd503201f, // nop
];

pub const VENEER: &[u32] = &[
    0x90000030, // adrp x16, #16384
    0x91004210, // add x16, x16, #16
    0xd61f0200, // br x16
];

pub const VECTORS: &[u32] = &[
    0x3dc00400, // ldr q0, [x0, #16]
    0x3d800020, // str q0, [x1]
    0xad400801, // ldp q1, q2, [x0]
    0xad008821, // stp q1, q2, [x1, #16]
    0xfd000021, // str d1, [x1]
    0x6f00e403, // movi v3.2d, #0000000000000000
    0x3d800023, // str q3, [x1]
    0x0f000424, // movi v4.2s, #1
    0xfd000024, // str d4, [x1]
    0x4ea01c05, // mov v5.16b, v0.16b
    0x3d800025, // str q5, [x1]
    0x4e183c02, // mov x2, v0.d[1]
    0xf9000022, // str x2, [x1]
    0x9e670066, // fmov d6, x3
    0xfd000026, // str d6, [x1]
    0x4c40a007, // ld1 { v7.16b, v8.16b }, [x0]
    0x4c007020, // st1 { v0.16b }, [x1]
    0x4e080c69, // dup v9.2d, x3
    0x3d800029, // str q9, [x1]
    0xd65f03c0, // ret
];

pub const HINTS: &[u32] = &[
    0xd503245f, // bti c
    0xd503233f, // paciasp
    0xa9bf7bfd, // stp x29, x30, [sp, #-16]!
    0xd50320ff, // xpaclri
    0xd5033bbf, // dmb ish
    0xf9800000, // prfm pldl1keep, [x0]
    0xd503203f, // yield
    0xb9400000, // ldr w0, [x0]
    0xa8c17bfd, // ldp x29, x30, [sp], #16
    0xd50323bf, // autiasp
    0xd65f0bff, // retaa
];

pub const UNKNOWN: &[u32] = &[
    0x1ac10800, // udiv w0, w0, w1
    0xb90000e0, // str w0, [x7]
    0xdac01020, // clz x0, x1
    0x1e620000, // scvtf d0, w0
    0xfd0000e0, // str d0, [x7]
    0xd65f03c0, // ret
];

pub const SWITCH: &[u32] = &[
    0xf0000161, // adrp x1, #192512
    0x38604821, // ldrb w1, [x1, w0, uxtw]
    0x10000042, // adr x2, #8
    0x8b218841, // add x1, x2, w1, sxtb #2
    0xd61f0020, // br x1
];

pub const TRAP: &[u32] = &[
    0xb4000040, // cbz x0, #8
    0xd65f03c0, // ret
    0xd4207d00, // brk #0x3e8
];

pub const TABLE: &[u32] = &[
    0xf00000e8, // adrp x8, #126976
    0xf9401108, // ldr x8, [x8, #32]
    0x52803709, // mov w9, #440
    0xf9000109, // str x9, [x8]
    0xf000016a, // adrp x10, #192512
    0xa9017d49, // stp x9, xzr, [x10, #16]
    0x3dc01140, // ldr q0, [x10, #64]
    0x3d800940, // str q0, [x10, #32]
    0xb4000080, // cbz x0, #16
    0x528000e9, // mov w9, #7
    0xf9000509, // str x9, [x8, #8]
    0xd503201f, // nop
    0xf9000909, // str x9, [x8, #16]
    0xd65f03c0, // ret
];
