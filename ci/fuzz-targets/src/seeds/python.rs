//! Interpreters with one thread, in which one function has called another.

use ompd_python::{Chain, Layout, Version};

use crate::python::{FIRST_MINOR, RUNTIME_WORDS, Word};

/// Where the description of a version ends, and what it describes begins.
const DESCRIBED: u32 = 656;
/// The numbers of the types.
const CODE: u32 = 0;
const TEXT: u32 = 1;
const BYTES: u32 = 2;
const FRAME: u32 = 3;

/// One input for each version.
pub fn make() -> Vec<(String, Vec<u8>)> {
    (FIRST_MINOR..=14).map(|minor| (format!("3.{minor}"), of_version(minor, &["main", "work"], 4, |_| {}))).collect()
}

/// So many functions that have called each other, with names of so many characters, most of which are in all of them.
pub fn of_long_names(functions: usize, characters: u32) -> Vec<u8> {
    of_version(12, &vec!["name"; functions], characters, |_| {})
}

/// An interpreter that describes threads that are as large as this.
pub fn of_large_threads(bytes: u64) -> Vec<u8> {
    of_version(13, &["main"], 4, |layout| layout.thread_size = bytes)
}

/// Words of `_PyRuntime`, and of the heap behind it.
struct Memory {
    words: Vec<Word>,
}

impl Memory {
    /// Room in the heap; its offset there.
    fn room(&mut self, bytes: u64) -> u32 {
        let at = 8 * (self.words.len() - RUNTIME_WORDS);
        self.words.resize(self.words.len() + bytes.div_ceil(8) as usize, Word::Number(0));
        at as u32
    }

    fn set_runtime(&mut self, offset: u64, word: Word) {
        self.words[offset as usize / 8] = word;
    }

    /// Sets a field of what lies at `at` in the heap.
    fn set(&mut self, at: u32, field: u64, word: Word) {
        self.words[RUNTIME_WORDS + (u64::from(at) + field) as usize / 8] = word;
    }

    /// The same for a field of four bytes.
    fn set_u32(&mut self, at: u32, field: u64, number: u32) {
        self.set(at, field, if field.is_multiple_of(8) { Word::Number(number) } else { Word::High(number) });
    }

    /// A string of so many characters. The first four are these, the others lie behind it.
    fn text(&mut self, layout: &Layout, text: &str, length: u32) -> u32 {
        /// One byte for a character, all in one piece with the object, all ASCII.
        const STATE: u32 = 1 | 1 << 3 | 1 << 4;
        let characters = text.bytes().rev().take(4).fold(0, |word, byte| word << 8 | u32::from(byte));
        let at = self.room(layout.text_ascii_data + 8);
        self.set(at, layout.object_type, Word::Type(TEXT));
        self.set(at, layout.text_length, Word::Number(length));
        self.set_u32(at, layout.text_state, STATE << layout.text_kind_bit);
        self.set(at, layout.text_ascii_data, Word::Number(characters));
        at
    }

    /// A function with a name of so many characters.
    fn code(&mut self, layout: &Layout, name: &str, length: u32) -> u32 {
        let file = self.text(layout, "a.py", 4);
        let name = self.text(layout, name, length);
        let lines = self.room(layout.bytes_data + 8);
        self.set(lines, layout.object_type, Word::Type(BYTES));
        self.set(lines, layout.bytes_size, Word::Number(4));
        // Whatever the table's form: the first instructions belong to the line behind that of the function.
        let table = match layout.lines {
            ompd_python::Table::Lnotab => [0, 1, 100, 1],
            ompd_python::Table::Ranges => [100, 1, 100, 1],
            ompd_python::Table::Locations => [0xdf, 1, 2, 0xdf],
        };
        self.set(lines, layout.bytes_data, Word::Number(u32::from_le_bytes(table)));
        let at = self.room(layout.code_size + 16);
        self.set(at, layout.object_type, Word::Type(CODE));
        self.set(at, layout.bytes_size, Word::Number(8));
        self.set(at, layout.code_name, Word::Heap(name));
        self.set(at, layout.code_file, Word::Heap(file));
        layout.code_qualname.into_iter().for_each(|field| self.set(at, field, Word::Heap(name)));
        self.set(at, layout.code_lines, Word::Heap(lines));
        self.set_u32(at, layout.code_first_line, 10);
        at
    }

    /// A frame that executes the second instruction of `code`, or an entry frame.
    fn frame(&mut self, layout: &Layout, code: Option<u32>, previous: Option<u32>) -> u32 {
        let at = self.room(layout.frame_size.max(80));
        if let Some(code) = code {
            self.set(at, layout.frame_code, Word::Heap(code));
            let instruction = match layout.code_instructions {
                Some(field) => Word::Heap(code + field as u32 + 8),
                None => Word::Number(1),
            };
            self.set(at, layout.frame_instruction, instruction);
        }
        match layout.chain {
            Chain::Objects | Chain::ObjectsInLoops => self.set(at, layout.object_type, Word::Type(FRAME)),
            Chain::Loops => self.set_u32(at, layout.frame_is_entry, 1),
            Chain::Entries { .. } if code.is_none() => self.set(at, layout.frame_owner, Word::High(3 << 16)),
            Chain::Entries { .. } => {}
        }
        previous.into_iter().for_each(|previous| self.set(at, layout.frame_previous, Word::Heap(previous)));
        at
    }
}

/// `functions`, the outermost first, have called each other; their names have so many characters.
fn of_version(minor: u8, functions: &[&str], characters: u32, change: impl FnOnce(&mut Layout)) -> Vec<u8> {
    let shipped = |minor| Layout::shipped(Version { major: 3, minor, micro: None }).expect("it is shipped");
    let mut memory = Memory { words: vec![Word::Number(0); RUNTIME_WORDS] };
    let layout = match minor {
        ..=12 => shipped(minor),
        _ => {
            let interpreters_head = u64::from(DESCRIBED);
            let chain = Chain::Entries { loops: false };
            let mut layout = Layout { chain, interpreters_head, ..shipped(12) };
            change(&mut layout);
            describe(&mut memory, &layout, minor);
            layout
        }
    };
    let layout = &layout;
    let interpreter = memory.room(layout.gil.at.max(layout.threads_head) + 8);
    let thread = memory.room(layout.thread_size.max(layout.thread_last_loop + layout.loop_size));
    memory.set_runtime(layout.interpreters_head, Word::Heap(interpreter));
    memory.set(interpreter, layout.threads_head, Word::Heap(thread));
    memory.set(thread, layout.thread_interpreter, Word::Heap(interpreter));
    memory.set(thread, layout.thread_id, Word::Heap(8));
    if layout.gil.in_runtime {
        memory.set_runtime(layout.gil.at + layout.gil.locked, Word::Number(1));
        memory.set_runtime(layout.gil.at + layout.gil.last_holder, Word::Heap(thread));
    } else {
        let gil = memory.room(layout.gil.sleeping().end);
        memory.set(interpreter, layout.gil.at, Word::Heap(gil));
        memory.set(gil, layout.gil.locked, Word::Number(1));
        memory.set(gil, layout.gil.last_holder, Word::Heap(thread));
    }

    let has_entries = matches!(layout.chain, Chain::Entries { .. });
    let mut frames = Vec::new();
    let mut previous = None;
    for name in functions {
        let code = memory.code(layout, name, characters);
        if has_entries {
            previous = Some(memory.frame(layout, None, previous));
        }
        previous = Some(memory.frame(layout, Some(code), previous));
        frames.extend(previous);
    }
    let innermost = previous.map_or(Word::Number(0), Word::Heap);
    // The outermost one is part of the thread.
    let mut in_loop = thread + layout.thread_last_loop as u32;
    if layout.loop_size > 0 {
        for frame in frames {
            let outer = std::mem::replace(&mut in_loop, memory.room(layout.loop_size));
            memory.set(in_loop, layout.loop_previous, Word::Heap(outer));
            if layout.chain != Chain::ObjectsInLoops {
                memory.set(in_loop, layout.loop_frame, Word::Heap(frame));
            }
        }
    }
    match layout.chain {
        Chain::ObjectsInLoops => {
            memory.set(thread, layout.thread_loop, Word::Heap(in_loop));
            memory.set(thread, layout.thread_frame, innermost);
        }
        Chain::Loops | Chain::Entries { loops: true } => memory.set(thread, layout.thread_frame, Word::Heap(in_loop)),
        Chain::Objects | Chain::Entries { loops: false } => memory.set(thread, layout.thread_frame, innermost),
    }
    // The last name ends in the heap too.
    memory.room(characters.into());
    let words = memory.words.into_iter().flat_map(Word::bytes);
    std::iter::once(minor - FIRST_MINOR).chain(words).collect()
}

/// Writes down a layout where a version has its description (`_Py_DebugOffsets`).
fn describe(memory: &mut Memory, layout: &Layout, minor: u8) {
    memory.set_runtime(0, Word::Cookie);
    memory.set_runtime(8, Word::Number(3 << 24 | u32::from(minor) << 16));
    let [gil, thread, code, object, text] = if minor >= 14 { [8, 24, 40, 48, 80] } else { [0; 5] };
    let words = [
        (40, layout.interpreters_head),
        (56, layout.interpreter_id),
        (64, layout.interpreter_next),
        (72, layout.threads_head),
        (112 + gil, layout.gil.at),
        (120 + gil, 0),
        (136 + gil, layout.gil.locked),
        (144 + gil, layout.gil.last_holder),
        (152 + thread, layout.thread_size),
        (168 + thread, layout.thread_next),
        (176 + thread, layout.thread_interpreter),
        (184 + thread, layout.thread_frame),
        (192 + thread, layout.thread_id),
        (224 + thread, layout.frame_size),
        (232 + thread, layout.frame_previous),
        (240 + thread, layout.frame_code),
        (248 + thread, layout.frame_instruction),
        (264 + thread, layout.frame_owner),
        (272 + code, layout.code_size),
        (280 + code, layout.code_file),
        (288 + code, layout.code_name),
        (296 + code, layout.code_qualname.expect("names are qualified")),
        (304 + code, layout.code_lines),
        (312 + code, layout.code_first_line),
        (344 + code, layout.code_instructions.expect("instructions are part of it")),
        (360 + object, layout.object_type),
        (520 + text, layout.bytes_size),
        (528 + text, layout.bytes_data),
        (544 + text, layout.text_state),
        (552 + text, layout.text_length),
        (560 + text, layout.text_ascii_data),
    ];
    for (at, value) in words {
        memory.set_runtime(at, Word::Number(value as u32));
    }
}
