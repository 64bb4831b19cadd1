//! Code objects: what a function is called, and in which file it is.

use std::collections::HashMap;
use std::sync::Arc;

use ompd_process::{Addr, Target, TargetExt};

use crate::Unknown;
use crate::fields::Fields;
use crate::interpreter::Types;
use crate::layout::Layout;
use crate::lines::{self, UNIT};

/// Characters of a name, or of a path, that are read.
const TEXT: u64 = 4096;
/// Bytes of the table of lines of one function.
const LINES: u64 = 1 << 20;
/// Bytes of all tables of lines together.
const ALL_LINES: u64 = 8 << 20;
/// Characters of all names and paths together.
const ALL_TEXT: usize = 4 << 20;

/// The code of a Python function. Its texts are the target's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Code {
    /// Its name, with the class or function it is defined in where the version records that (since 3.11).
    pub name: Arc<str>,
    /// Its file, as the interpreter was given it; `<string>` and the like where there is none.
    pub file: Arc<str>,
    /// Line where it begins.
    pub first_line: u32,
}

/// A code object as it was read.
#[derive(Debug)]
pub(crate) struct Read {
    pub(crate) code: Arc<Code>,
    /// The table of lines, if it could be read.
    table: Option<Vec<u8>>,
    /// Where its instructions begin, and how many bytes there are, if they are part of it.
    instructions: Option<(u64, i64)>,
    first_traceable: i64,
}

impl Read {
    /// The place in the code, in bytes from its first instruction, that a frame's word says; `None` if that is outside.
    pub(crate) fn offset(&self, layout: &Layout, word: u64) -> Option<i64> {
        let Some((start, length)) = self.instructions else {
            // The field has 32 bits. Since 3.10 it counts instructions.
            let index = i64::from(word as u32 as i32);
            return Some(if layout.lines == lines::Table::Lnotab { index } else { index * UNIT });
        };
        let offset = word.wrapping_sub(start) as i64;
        (-UNIT..length).contains(&offset).then_some(offset)
    }

    pub(crate) fn line(&self, layout: &Layout, offset: i64) -> Option<u32> {
        lines::line(layout.lines, self.table.as_ref()?, self.code.first_line.into(), offset)
    }

    /// True if a frame that is there has not yet begun to execute the function.
    pub(crate) fn is_before_start(&self, offset: i64) -> bool {
        self.instructions.is_some() && offset < self.first_traceable * UNIT
    }
}

/// Code objects by address, each read once.
#[derive(Debug, Default)]
pub(crate) struct Codes {
    known: HashMap<Addr, Arc<Read>>,
    texts: HashMap<Addr, Arc<str>>,
    characters: usize,
    lines: u64,
}

impl Codes {
    /// The code object at `at`.
    pub(crate) fn read(
        &mut self,
        target: &dyn Target,
        layout: &Layout,
        types: &Types,
        at: Addr,
    ) -> Result<Arc<Read>, Unknown> {
        if let Some(known) = self.known.get(&at) {
            return Ok(Arc::clone(known));
        }
        let object = Fields::read(target, at, layout.code_size, "code object")?;
        if object.ptr(layout.object_type) != types.code {
            return Err(Unknown::Not { what: "code object", at });
        }
        let name = layout.code_qualname.map(|field| self.text(target, layout, types, object.ptr(field)));
        let name = match name {
            Some(Ok(name)) => name,
            _ => self.text(target, layout, types, object.ptr(layout.code_name))?,
        };
        let file = self.text(target, layout, types, object.ptr(layout.code_file))?;
        let left = ALL_LINES - self.lines;
        let table = bytes(target, layout, types, object.ptr(layout.code_lines), LINES.min(left)).ok();
        self.lines += table.as_ref().map_or(0, |table| table.len() as u64);
        let instructions = layout.code_instructions.map(|field| {
            // Its size, as that of any object of a variable size, is in instructions.
            (at.offset(field).0, (object.u64(layout.bytes_size) as i64).clamp(0, i64::MAX / UNIT) * UNIT)
        });
        let read = Arc::new(Read {
            code: Arc::new(Code { name, file, first_line: object.u32(layout.code_first_line) }),
            table,
            instructions,
            first_traceable: i64::from(object.i32(layout.code_first_traceable)),
        });
        self.known.insert(at, Arc::clone(&read));
        Ok(read)
    }

    /// The text of the string at `at` (Include/cpython/unicodeobject.h); the beginning of a long one.
    fn text(&mut self, target: &dyn Target, layout: &Layout, types: &Types, at: Addr) -> Result<Arc<str>, Unknown> {
        if let Some(known) = self.texts.get(&at) {
            return Ok(Arc::clone(known));
        }
        if self.characters >= ALL_TEXT {
            return Err(Unknown::TooMany { what: "characters of names", limit: ALL_TEXT });
        }
        let not = Unknown::Not { what: "string", at };
        let object = Fields::read(target, at, layout.text_ascii_data, "string")?;
        let state = object.u32(layout.text_state) >> layout.text_kind_bit;
        let (width, compact, ascii) = (u64::from(state & 7), state >> 3 & 1 == 1, state >> 4 & 1 == 1);
        if object.ptr(layout.object_type) != types.text || !compact || !matches!(width, 1 | 2 | 4) {
            return Err(not);
        }
        let data = if ascii { layout.text_ascii_data } else { layout.text_data };
        let length = object.u64(layout.text_length).min(TEXT);
        let bytes = target.read_vec(at.offset(data), length * width)?;
        let order = target.arch().byte_order;
        let characters = bytes.chunks_exact(width as usize).map(|bytes| order.uint(bytes) as u32);
        let text: String =
            characters.map(|character| char::from_u32(character).unwrap_or(char::REPLACEMENT_CHARACTER)).collect();
        self.characters += length as usize;
        let text: Arc<str> = text.into();
        self.texts.insert(at, Arc::clone(&text));
        Ok(text)
    }
}

/// The bytes of the `bytes` object at `at`, if they are not more than `most`.
fn bytes(target: &dyn Target, layout: &Layout, types: &Types, at: Addr, most: u64) -> Result<Vec<u8>, Unknown> {
    let object = Fields::read(target, at, layout.bytes_data, "bytes object")?;
    let length = object.u64(layout.bytes_size);
    if object.ptr(layout.object_type) != types.bytes || length > most {
        return Err(Unknown::Not { what: "bytes object", at });
    }
    Ok(target.read_vec(at.offset(layout.bytes_data), length)?)
}
