//! Where the structs of CPython have their fields: shipped tables for 3.8 to 3.12, and the description that later versions
//! have in the process.
//!
//! The tables are facts of CPython's headers (Include/internal, Include/cpython) for 64-bit machines. A test compiles the headers
//! of each CPython at hand and compares.

use std::ops::Range;

use ompd_process::{Addr, Target, TargetExt};

use crate::Unknown;
use crate::lines::Table;
use crate::version::Version;

/// How a version keeps the frames of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Chain {
    /// Frame objects in a list, one for each call of the interpreter loop (3.8, 3.9).
    Objects,
    /// The same, and each call of the loop has a `CFrame` in its own stack frame (3.10).
    ObjectsInLoops,
    /// Each call of the loop has a `_PyCFrame` in its own stack frame, which has the call's innermost Python frame (3.11).
    Loops,
    /// A list of Python frames. An entry frame follows the frames of each call of the loop, and lies in the stack frame of that
    /// call (since 3.12). `loops`: the thread has the first one by a `_PyCFrame` (3.12).
    Entries {
        /// The thread points to a `_PyCFrame`, and not to the frame.
        loops: bool,
    },
}

/// Where a layout comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LayoutOrigin {
    /// This program's table for the version, made from its headers.
    Headers,
    /// `_Py_DebugOffsets`, in the process itself.
    Process,
}

/// Offsets in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "named after the fields of CPython's structs")]
pub struct Layout {
    pub origin: LayoutOrigin,
    pub chain: Chain,
    /// The build has no GIL, or one that it enables while it runs.
    pub free_threaded: bool,
    // _PyRuntimeState
    pub interpreters_head: u64,
    // PyInterpreterState
    pub interpreter_id: u64,
    pub interpreter_next: u64,
    pub threads_head: u64,
    // PyThreadState
    pub thread_next: u64,
    pub thread_interpreter: u64,
    pub thread_id: u64,
    pub native_thread_id: Option<u64>,
    /// `frame`, `cframe` or `current_frame`, as [`Layout::chain`] says.
    pub thread_frame: u64,
    /// `cframe`, for [`Chain::ObjectsInLoops`].
    pub thread_loop: u64,
    /// `root_cframe`, which ends the list of a thread's loops.
    pub thread_last_loop: u64,
    pub thread_size: u64,
    // _PyCFrame
    pub loop_frame: u64,
    pub loop_previous: u64,
    pub loop_size: u64,
    // _PyInterpreterFrame or PyFrameObject
    pub frame_size: u64,
    pub frame_previous: u64,
    pub frame_code: u64,
    /// `f_lasti`, `prev_instr` or `instr_ptr`.
    pub frame_instruction: u64,
    pub frame_owner: u64,
    pub frame_is_entry: u64,
    // PyCodeObject
    pub code_size: u64,
    pub code_file: u64,
    pub code_name: u64,
    pub code_qualname: Option<u64>,
    pub code_lines: u64,
    pub code_first_line: u64,
    /// Where its instructions begin; `None`: they are in an object of their own.
    pub code_instructions: Option<u64>,
    /// `_co_firsttraceable`: the instructions before prepare the frame.
    pub code_first_traceable: u64,
    pub lines: Table,
    // PyObject, PyVarObject, PyBytesObject
    pub object_type: u64,
    pub bytes_size: u64,
    pub bytes_data: u64,
    // PyASCIIObject, PyCompactUnicodeObject
    pub text_length: u64,
    pub text_state: u64,
    /// The lowest bit of `kind` in `state`.
    pub text_kind_bit: u32,
    pub text_ascii_data: u64,
    pub text_data: u64,
    /// The GIL.
    pub gil: GilPlace,
}

/// Where the GIL is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "named after the fields of CPython's structs")]
pub struct GilPlace {
    /// Offset in `_PyRuntimeState`; or of the pointer to it in `PyInterpreterState`.
    pub at: u64,
    /// It is in `_PyRuntimeState`, and one for all interpreters (until 3.11).
    pub in_runtime: bool,
    pub last_holder: u64,
    pub locked: u64,
}

impl GilPlace {
    /// Where a thread that waits for the GIL sleeps: `cond` and `mutex` of the GIL, from its start (Python/ceval_gil.h). They follow
    /// `locked` and a count of switches. A `pthread_mutex_t` has 48 bytes at most.
    pub fn sleeping(&self) -> Range<u64> {
        self.locked + 16..self.locked + 16 + 48 + 40
    }
}

/// The offsets in the table of 3.8, which those of later versions change.
const V3_8: Layout = Layout {
    origin: LayoutOrigin::Headers,
    chain: Chain::Objects,
    free_threaded: false,
    interpreters_head: 32,
    interpreter_id: 16,
    interpreter_next: 0,
    threads_head: 8,
    thread_next: 8,
    thread_interpreter: 16,
    thread_id: 176,
    native_thread_id: None,
    thread_frame: 24,
    thread_loop: 0,
    thread_last_loop: 0,
    thread_size: 184,
    loop_frame: 0,
    loop_previous: 0,
    loop_size: 0,
    frame_size: 112,
    frame_previous: 24,
    frame_code: 32,
    frame_instruction: 104,
    frame_owner: 0,
    frame_is_entry: 0,
    code_size: 128,
    code_file: 104,
    code_name: 112,
    code_qualname: None,
    code_lines: 120,
    code_first_line: 40,
    code_instructions: None,
    code_first_traceable: 0,
    lines: Table::Lnotab,
    object_type: 8,
    bytes_size: 16,
    bytes_data: 32,
    text_length: 16,
    text_state: 32,
    text_kind_bit: 2,
    text_ascii_data: 48,
    text_data: 72,
    gil: GilPlace { at: 1152, in_runtime: true, last_holder: 8, locked: 16 },
};

const V3_9: Layout = Layout { interpreter_id: 24, gil: GilPlace { at: 352, ..V3_8.gil }, ..V3_8 };

const V3_10: Layout = Layout {
    chain: Chain::ObjectsInLoops,
    thread_loop: 48,
    thread_last_loop: 264,
    loop_previous: 8,
    loop_size: 16,
    frame_instruction: 96,
    frame_size: 104,
    lines: Table::Ranges,
    ..V3_9
};

const V3_11: Layout = Layout {
    chain: Chain::Loops,
    interpreters_head: 40,
    interpreter_id: 48,
    threads_head: 16,
    thread_id: 152,
    native_thread_id: Some(160),
    thread_frame: 56,
    thread_last_loop: 336,
    thread_size: 168,
    loop_frame: 8,
    loop_previous: 16,
    loop_size: 24,
    frame_size: 80,
    frame_previous: 48,
    frame_code: 32,
    frame_instruction: 56,
    frame_owner: 69,
    frame_is_entry: 68,
    code_size: 192,
    code_file: 112,
    code_name: 120,
    code_qualname: Some(128),
    code_lines: 136,
    code_first_line: 72,
    code_instructions: Some(184),
    code_first_traceable: 168,
    lines: Table::Locations,
    gil: GilPlace { at: 360, ..V3_8.gil },
    ..V3_8
};

const V3_12: Layout = Layout {
    chain: Chain::Entries { loops: true },
    interpreter_id: 8,
    threads_head: 72,
    thread_id: 136,
    native_thread_id: Some(144),
    thread_last_loop: 272,
    thread_size: 152,
    loop_frame: 0,
    loop_previous: 8,
    loop_size: 16,
    frame_previous: 8,
    frame_code: 0,
    frame_owner: 70,
    code_size: 200,
    code_first_line: 68,
    code_instructions: Some(192),
    code_first_traceable: 176,
    text_ascii_data: 40,
    text_data: 56,
    gil: GilPlace { at: 384, in_runtime: false, last_holder: 8, locked: 16 },
    ..V3_11
};

impl Layout {
    /// The layout of a version whose `_PyRuntime` is at `runtime`.
    ///
    /// # Errors
    /// [`Unknown::Layout`], [`Unknown::Width`], or the process does not describe it.
    pub fn of(target: &dyn Target, version: Version, runtime: Addr) -> Result<Layout, Unknown> {
        if target.arch().pointer_bytes != 8 {
            return Err(Unknown::Width);
        }
        match (version.major, version.minor) {
            (3, 13 | 14) => described(target, version, runtime),
            _ => Layout::shipped(version).ok_or(Unknown::Layout(version)),
        }
    }

    /// The shipped layout of a version, which does not describe itself.
    pub fn shipped(version: Version) -> Option<Layout> {
        match (version.major, version.minor) {
            (3, 8) => Some(V3_8),
            (3, 9) => Some(V3_9),
            (3, 10) => Some(V3_10),
            (3, 11) => Some(V3_11),
            (3, 12) => Some(V3_12),
            _ => None,
        }
    }

    /// The owner of a frame from which on it is an entry frame and no Python function's (`enum _frameowner`).
    pub(crate) const FIRST_ENTRY_OWNER: u8 = 3;
    /// The owner of a generator's frame.
    pub(crate) const GENERATOR: u8 = 1;
}

/// The first bytes of a process's own description.
const COOKIE: &[u8; 8] = b"xdebugpy";
/// Bytes of the description that are read: up to the last word used.
const DESCRIPTION: u64 = 648;
/// No field of the runtime or of an interpreter is as far from its start as this.
const MOST: u64 = 1 << 20;
/// No other struct is as large as this. Threads have the largest one, of less than 1 KiB.
const MOST_OF_SMALL: u64 = 4 << 10;

/// The words of `_Py_DebugOffsets` (Include/internal/pycore_runtime.h, pycore_debug_offsets.h): what is inserted in 3.14 moves
/// those behind.
fn described(target: &dyn Target, version: Version, runtime: Addr) -> Result<Layout, Unknown> {
    let not = Unknown::Not { what: "description of the layout of CPython (_Py_DebugOffsets)", at: runtime };
    let bytes = target.read_vec(runtime, DESCRIPTION)?;
    if !bytes.starts_with(COOKIE) {
        return Err(not);
    }
    let order = target.arch().byte_order;
    let word = |at: usize| bytes.get(at..at + 8).map_or(u64::MAX, |bytes| order.uint(bytes));
    let stated = word(8);
    if (stated >> 24 & 0xff, stated >> 16 & 0xff) != (u64::from(version.major), u64::from(version.minor)) {
        return Err(not);
    }
    // Bytes inserted before the threads', the frames', the code's and the objects' parts.
    let later = version.minor >= 14;
    let [gil, thread, code, object, text] = if later { [8, 24, 40, 48, 80] } else { [0; 5] };
    let free_threaded = word(16) != 0;
    let instructions = word(344 + code);
    let layout = Layout {
        origin: LayoutOrigin::Process,
        chain: Chain::Entries { loops: false },
        free_threaded,
        interpreters_head: word(40),
        interpreter_id: word(56),
        interpreter_next: word(64),
        threads_head: word(72),
        thread_next: word(168 + thread),
        thread_interpreter: word(176 + thread),
        thread_frame: word(184 + thread),
        thread_id: word(192 + thread),
        native_thread_id: Some(word(200 + thread)),
        thread_loop: 0,
        thread_last_loop: 0,
        thread_size: word(152 + thread),
        loop_frame: 0,
        loop_previous: 0,
        loop_size: 0,
        frame_size: word(224 + thread),
        frame_previous: word(232 + thread),
        frame_code: word(240 + thread),
        frame_instruction: word(248 + thread),
        frame_owner: word(264 + thread),
        frame_is_entry: 0,
        code_size: word(272 + code),
        code_file: word(280 + code),
        code_name: word(288 + code),
        code_qualname: Some(word(296 + code)),
        code_lines: word(304 + code),
        code_first_line: word(312 + code),
        code_instructions: Some(instructions),
        // Not described; it has this distance in all versions that have it.
        code_first_traceable: instructions.saturating_sub(16),
        lines: Table::Locations,
        object_type: word(360 + object),
        bytes_size: word(520 + text),
        bytes_data: word(528 + text),
        text_length: word(552 + text),
        text_state: word(544 + text),
        text_kind_bit: if free_threaded { 8 } else { 2 },
        text_ascii_data: word(560 + text),
        // Two words more than those of ASCII characters.
        text_data: word(560 + text).saturating_add(16),
        gil: GilPlace {
            at: word(112 + gil),
            in_runtime: false,
            // Described as they lie in the interpreter's own GIL.
            last_holder: word(144 + gil).wrapping_sub(word(120 + gil)),
            locked: word(136 + gil).wrapping_sub(word(120 + gil)),
        },
    };
    let large = [
        layout.interpreters_head,
        layout.interpreter_id,
        layout.interpreter_next,
        layout.threads_head,
        layout.gil.at,
        layout.gil.last_holder,
        layout.gil.locked,
    ];
    let thread = [layout.thread_next, layout.thread_interpreter, layout.thread_frame, layout.thread_id];
    let frame = [layout.frame_previous, layout.frame_code, layout.frame_instruction];
    let code = [layout.code_file, layout.code_name, word(296 + code), layout.code_lines, layout.object_type];
    // What is of less than eight bytes, by its last one.
    let fits = is_small(layout.thread_size, &thread, 0)
        && is_small(layout.frame_size, &frame, layout.frame_owner)
        && is_small(layout.code_size, &code, layout.code_first_line.saturating_add(3))
        && is_small(layout.bytes_data, &[layout.object_type, layout.bytes_size], 0)
        && is_small(
            layout.text_ascii_data,
            &[layout.object_type, layout.text_length],
            layout.text_state.saturating_add(3),
        );
    if fits && large.iter().all(|offset| *offset < MOST) { Ok(layout) } else { Err(not) }
}

/// True if a struct of `size` bytes has these words, and the byte at `last`.
fn is_small(size: u64, words: &[u64], last: u64) -> bool {
    size < MOST_OF_SMALL && last < size && words.iter().all(|word| word.saturating_add(8) <= size)
}
