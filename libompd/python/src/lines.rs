//! From a place in the code of a function to the line of its source.

/// How a version writes the table of lines of a code object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Table {
    /// `co_lnotab` of CPython 3.8 and 3.9 (Objects/lnotab_notes.txt).
    Lnotab,
    /// `co_linetable` of CPython 3.10 (PEP 626).
    Ranges,
    /// `co_linetable` since CPython 3.11 (Objects/locations.md).
    Locations,
}

/// Bytes of one instruction (Include/cpython/code.h, `_Py_CODEUNIT`).
pub(crate) const UNIT: i64 = 2;

/// The line of the instruction at `offset`, in bytes from the start of the code; `first` is the line of the function. `None`: the
/// instruction belongs to no line.
pub(crate) fn line(table: Table, bytes: &[u8], first: i64, offset: i64) -> Option<u32> {
    // Nothing was executed yet.
    let line = if offset < 0 {
        Some(first)
    } else {
        match table {
            Table::Lnotab => Some(lnotab(bytes, first, offset)),
            Table::Ranges => ranges(bytes, first, offset),
            Table::Locations => locations(bytes, first, offset),
        }
    };
    line.and_then(|line| u32::try_from(line).ok()).filter(|line| *line > 0)
}

/// Pairs of bytes: how far the code goes on, and by how many lines the source does.
fn lnotab(bytes: &[u8], first: i64, offset: i64) -> i64 {
    let mut at = 0;
    let mut line = first;
    for pair in bytes.chunks_exact(2) {
        at += i64::from(pair[0]);
        if at > offset {
            break;
        }
        line += i64::from(pair[1] as i8);
    }
    line
}

/// Pairs of bytes: the length of a range of code, and the difference of its line to that of the range before.
fn ranges(bytes: &[u8], first: i64, offset: i64) -> Option<i64> {
    /// The range has no line.
    const NONE: i8 = -128;
    let mut end = 0;
    let mut line = first;
    for pair in bytes.chunks_exact(2) {
        let difference = pair[1] as i8;
        end += i64::from(pair[0]);
        if difference != NONE {
            line += i64::from(difference);
        }
        if offset < end {
            return (difference != NONE).then_some(line);
        }
    }
    None
}

/// Entries that begin with a byte whose highest bit is set: the form of the entry, and how many instructions it is about.
fn locations(bytes: &[u8], first: i64, offset: i64) -> Option<i64> {
    let wanted = offset / UNIT;
    let mut end = 0;
    let mut line = first;
    let mut rest = bytes;
    while let Some((head, behind)) = rest.split_first() {
        let own = behind.iter().position(|byte| byte & 0x80 != 0).unwrap_or(behind.len());
        let (entry, next) = behind.split_at(own);
        rest = next;
        if head & 0x80 == 0 {
            return None;
        }
        let form = head >> 3 & 15;
        end += i64::from(head & 7) + 1;
        line = line.checked_add(match form {
            // Lines and columns in full, or without columns.
            13 | 14 => difference(entry)?,
            10..=12 => i64::from(form) - 10,
            _ => 0,
        })?;
        if wanted < end {
            return (form != 15).then_some(line);
        }
    }
    None
}

/// A signed number of six bits a byte, of which the lowest is the sign.
fn difference(bytes: &[u8]) -> Option<i64> {
    let mut value = 0u64;
    for (place, byte) in bytes.iter().enumerate().take(8) {
        value |= u64::from(byte & 63) << (6 * place);
        if byte & 64 == 0 {
            let size = (value >> 1) as i64;
            return Some(if value & 1 == 1 { -size } else { size });
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn lnotab_of_a_function_with_a_backward_step() {
        // Made by hand after lnotab_notes.txt: lines 10, 11 from byte 6, 9 from byte 8, 309 from byte 264.
        let table = [6, 1, 2, 0xfe, 255, 0, 1, 127, 0, 127, 0, 46];
        let line = |offset| line(Table::Lnotab, &table, 10, offset);
        assert_eq!([-1, 0, 5, 6, 8, 263, 264].map(line), [10, 10, 10, 11, 9, 9, 309].map(Some));
    }

    #[test]
    fn ranges_without_a_line_have_none() {
        // Bytes 0-3 line 10, 4-5 none, 6-9 line 12, nothing behind.
        let table = [4, 0, 2, 0x80, 0, 1, 4, 1];
        let line = |offset| line(Table::Ranges, &table, 10, offset);
        assert_eq!([-1, 0, 3, 4, 6, 9, 10].map(line), [Some(10), Some(10), Some(10), None, Some(12), Some(12), None]);
    }

    #[test]
    fn locations_of_every_form() {
        let entry = |form: u8, units: u8| 0x80 | form << 3 | (units - 1);
        let table = [
            &[entry(0, 1), 0x11][..],
            // One line on, with columns.
            &[entry(11, 2), 1, 2],
            // No columns, three lines back.
            &[entry(13, 1), 7],
            // In full: 100 lines on.
            &[entry(14, 1), 0x40 | 8, 3, 0, 1, 1],
            &[entry(15, 8)],
        ]
        .concat();
        let line = |unit: i64| line(Table::Locations, &table, 50, unit * UNIT);
        assert_eq!([0, 1, 2, 3, 4].map(line), [50, 51, 51, 48, 148].map(Some));
        assert_eq!([5, 12, 13].map(line), [None; 3]);
    }

    proptest! {
        #[test]
        fn any_table_gives_a_line_or_none(bytes in proptest::collection::vec(any::<u8>(), 0..200), first: i32, offset in -1i64..2000) {
            for table in [Table::Lnotab, Table::Ranges, Table::Locations] {
                prop_assert_ne!(line(table, &bytes, first.into(), offset), Some(0));
            }
        }
    }
}
