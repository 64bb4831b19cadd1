//! x86-64: the code of entry points, and the call of a body.

use std::ffi::c_void;

use crate::ompt::{Body, Data};

/// Defines an entry point: exported code that passes its arguments and its frame to a function of ours. Its own frame stays on the
/// stack, so that a reader of the stack sees the name that the program calls.
///
/// The code continues in the runtime if the call is not reported: at once if the caller is in the code that
/// [`direct`](crate::runtimes::direct) names, else as [`route`](crate::call::route) says. The runtime then sees the program as its
/// caller. Reported calls go to the function, with one more argument: the canonical frame address of the call. The return address lies
/// below it.
macro_rules! entry {
    // Six registers take arguments, so the frame is one of the first six.
    (0, $name:ident, $index:expr, $function:path) => { entry!(register "rdi", $name, $index, $function); };
    (1, $name:ident, $index:expr, $function:path) => { entry!(register "rsi", $name, $index, $function); };
    (2, $name:ident, $index:expr, $function:path) => { entry!(register "rdx", $name, $index, $function); };
    (3, $name:ident, $index:expr, $function:path) => { entry!(register "rcx", $name, $index, $function); };
    (4, $name:ident, $index:expr, $function:path) => { entry!(register "r8", $name, $index, $function); };
    (5, $name:ident, $index:expr, $function:path) => { entry!(register "r9", $name, $index, $function); };
    // The frame follows those arguments that are on the stack. The stack stays aligned to 16 bytes.
    (6, $name:ident, $index:expr, $function:path) => { entry!(stack 8, 0, [], $name, $index, $function); };
    (7, $name:ident, $index:expr, $function:path) => { entry!(stack 24, 8, [0], $name, $index, $function); };
    (8, $name:ident, $index:expr, $function:path) => { entry!(stack 24, 0, [8 0], $name, $index, $function); };
    (9, $name:ident, $index:expr, $function:path) => { entry!(stack 40, 8, [16 8 0], $name, $index, $function); };
    (10, $name:ident, $index:expr, $function:path) => { entry!(stack 40, 0, [24 16 8 0], $name, $index, $function); };
    (11, $name:ident, $index:expr, $function:path) => { entry!(stack 56, 8, [32 24 16 8 0], $name, $index, $function); };

    // Any number of words, as functions that call this kind take them from registers and the stack: the function gets the address of the
    // six that are in registers. The others begin at the frame.
    (variadic, $name:ident, $index:expr, $function:path) => {
        entry!(function $name, $index, $function,
            "lea r10, [rsp + 8]",
            "push r9", ".cfi_adjust_cfa_offset 8",
            "push r8", ".cfi_adjust_cfa_offset 8",
            "push rcx", ".cfi_adjust_cfa_offset 8",
            "push rdx", ".cfi_adjust_cfa_offset 8",
            "push rsi", ".cfi_adjust_cfa_offset 8",
            "push rdi", ".cfi_adjust_cfa_offset 8",
            "mov rdi, rsp",
            "mov rsi, r10",
            "sub rsp, 8", ".cfi_adjust_cfa_offset 8",
            "call {function}",
            "add rsp, 56", ".cfi_adjust_cfa_offset -56",
            "ret",
        );
    };

    (register $register:literal, $name:ident, $index:expr, $function:path) => {
        entry!(function $name, $index, $function,
            concat!("lea ", $register, ", [rsp + 8]"),
            "sub rsp, 8",
            ".cfi_adjust_cfa_offset 8",
            "call {function}",
            "add rsp, 8",
            ".cfi_adjust_cfa_offset -8",
            "ret",
        );
    };
    (stack $size:literal, $padding:literal, [$($argument:literal)*], $name:ident, $index:expr, $function:path) => {
        entry!(function $name, $index, $function,
            "lea r10, [rsp + 8]",
            concat!("sub rsp, ", $padding),
            concat!(".cfi_adjust_cfa_offset ", $padding),
            "push r10",
            ".cfi_adjust_cfa_offset 8",
            $(concat!("push qword ptr [r10 + ", $argument, "]"), ".cfi_adjust_cfa_offset 8",)*
            "call {function}",
            concat!("add rsp, ", $size),
            concat!(".cfi_adjust_cfa_offset -", $size),
            "ret",
        );
    };
    (function $name:ident, $index:expr, $function:path, $($code:expr,)*) => {
        #[doc = concat!("`", stringify!($name), "` of libgomp, reported to a tool.")]
        ///
        /// # Safety
        /// As the runtime's own.
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $name() {
            std::arch::naked_asm!(
                ".cfi_startproc",
                "endbr64",
                "mov r11, [rsp]",
                "sub r11, [rip + {direct}]",
                "cmp r11, [rip + {direct} + 8]",
                "jae 2f",
                "jmp [rip + {direct} + 16 + 8 * {index}]",
                "2:",
                "push rdi",
                ".cfi_adjust_cfa_offset 8",
                "push rsi",
                ".cfi_adjust_cfa_offset 8",
                "push rdx",
                ".cfi_adjust_cfa_offset 8",
                "push rcx",
                ".cfi_adjust_cfa_offset 8",
                "push r8",
                ".cfi_adjust_cfa_offset 8",
                "push r9",
                ".cfi_adjust_cfa_offset 8",
                "sub rsp, 8",
                ".cfi_adjust_cfa_offset 8",
                "mov rdi, [rsp + 56]",
                "mov esi, {index}",
                "call {route}",
                "add rsp, 8",
                ".cfi_adjust_cfa_offset -8",
                "pop r9",
                ".cfi_adjust_cfa_offset -8",
                "pop r8",
                ".cfi_adjust_cfa_offset -8",
                "pop rcx",
                ".cfi_adjust_cfa_offset -8",
                "pop rdx",
                ".cfi_adjust_cfa_offset -8",
                "pop rsi",
                ".cfi_adjust_cfa_offset -8",
                "pop rdi",
                ".cfi_adjust_cfa_offset -8",
                "test rax, rax",
                "jz 3f",
                "jmp rax",
                "3:",
                $($code,)*
                ".cfi_endproc",
                direct = sym $crate::runtimes::DIRECT,
                route = sym $crate::call::route,
                index = const $index,
                function = sym $function,
            )
        }
    };
}

pub(crate) use entry;

/// Calls the body of a region or task. Before, it stores at `frame` the canonical frame address that the body gets.
///
/// The name is for readers from outside: the function that it calls is the program's.
///
/// # Safety
/// `body` takes `argument`, and `frame` can be written.
#[unsafe(naked)]
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn libgomp_ompt_call(body: Body, argument: *mut c_void, frame: *const Data) {
    std::arch::naked_asm!(
        ".cfi_startproc",
        "endbr64",
        // The frame pointer is the canonical frame address of the body: tools compare it with either. The other register keeps the
        // function for readers of the stack, also when the function's last act is a jump.
        "sub rsp, 8",
        ".cfi_adjust_cfa_offset 8",
        "push rbx",
        ".cfi_adjust_cfa_offset 8",
        ".cfi_rel_offset rbx, 0",
        "push rbp",
        ".cfi_adjust_cfa_offset 8",
        ".cfi_rel_offset rbp, 0",
        "mov rbp, rsp",
        "mov [rdx], rsp",
        "mov rbx, rdi",
        "mov rdi, rsi",
        "call rbx",
        "pop rbp",
        ".cfi_adjust_cfa_offset -8",
        ".cfi_restore rbp",
        "pop rbx",
        ".cfi_adjust_cfa_offset -8",
        ".cfi_restore rbx",
        "add rsp, 8",
        ".cfi_adjust_cfa_offset -8",
        "ret",
        ".cfi_endproc",
    )
}

/// True if a return address is that of the call in [`libgomp_ompt_call`], the only one there.
pub fn is_body_call(returns_to: usize) -> bool {
    /// More than the bytes of the function.
    const LENGTH: usize = 64;
    returns_to.wrapping_sub(libgomp_ompt_call as *const () as usize) < LENGTH
}

/// How many arguments [`argument`] may be asked for.
pub const MOST_ARGUMENTS: usize = 16;

/// An argument of a call that has any number of words. `registers` are those that the code of an entry point has passed.
///
/// # Safety
/// `frame` and `registers` are of one call.
pub unsafe fn argument(registers: *const usize, frame: *const usize, number: usize) -> usize {
    const IN_REGISTERS: usize = 6;
    // SAFETY: as the caller says. What lies behind the arguments is the caller's stack.
    unsafe { if number < IN_REGISTERS { *registers.add(number) } else { *frame.add(number - IN_REGISTERS) } }
}

/// Where a call of an entry point comes from.
///
/// # Safety
/// `frame` is what the code of an entry point has passed.
pub unsafe fn return_address(frame: *const usize) -> usize {
    // SAFETY: the call has stored it there.
    unsafe { *frame.sub(1) }
}
