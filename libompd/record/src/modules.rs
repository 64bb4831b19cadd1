//! The mapped files of a process, behind the block in a file: what names addresses when the process is gone.
//!
//! It is text, a line for each file, and ends with its length and [`MAGIC`]:
//!
//! ```text
//! KIND BIAS FIRST LAST BUILD-ID PATH
//! ```
//!
//! `KIND` is `program` or `library`; numbers are hexadecimal; `BUILD-ID` is `-` if there is none.

use std::fmt::Write as _;

/// The last bytes of a file that has this part.
pub const MAGIC: [u8; 8] = *b"OMPTmaps";

/// Bytes behind the text: its length, lowest byte first, and [`MAGIC`].
pub const FOOTER: usize = 16;

/// Bytes of text that are read at most.
pub const MOST: u64 = 4 << 20;

/// A mapped file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Mapped {
    /// It is the program, and no library.
    pub is_program: bool,
    /// Added to an address of the file to get one of the process.
    pub bias: u64,
    /// The first address.
    pub first: u64,
    /// The address behind the last.
    pub last: u64,
    /// The build-id of the mapped file; empty if it has none.
    pub build_id: Vec<u8>,
    /// How the process names it.
    pub path: String,
}

/// The part of a file for these.
pub fn write(mapped: &[Mapped]) -> Vec<u8> {
    let mut text = String::new();
    for Mapped { is_program, bias, first, last, build_id, path } in mapped {
        let kind = if *is_program { "program" } else { "library" };
        let id = build_id.iter().fold(String::new(), |id, byte| format!("{id}{byte:02x}"));
        let id = if id.is_empty() { "-" } else { &id };
        // A name may have any byte, and each file is a line. Writing to a string does not fail.
        let _ = writeln!(text, "{kind} {bias:x} {first:x} {last:x} {id} {}", path.replace('\n', "?"));
    }
    let mut bytes = text.into_bytes();
    let length = bytes.len() as u64;
    bytes.extend(length.to_le_bytes());
    bytes.extend(MAGIC);
    bytes
}

/// The length of the text, of the last bytes of a file; `None` if it has no such part.
pub fn length(footer: [u8; FOOTER]) -> Option<u64> {
    let (length, magic) = footer.split_first_chunk::<8>()?;
    let length = u64::from_le_bytes(*length);
    (magic == MAGIC && length <= MOST).then_some(length)
}

/// The mapped files of a text. Lines that are none are left out.
pub fn read(text: &[u8]) -> Vec<Mapped> {
    String::from_utf8_lossy(text).lines().filter_map(line).collect()
}

fn line(line: &str) -> Option<Mapped> {
    let mut words = line.splitn(6, ' ');
    let is_program = match words.next()? {
        "program" => true,
        "library" => false,
        _ => return None,
    };
    let mut number = || u64::from_str_radix(words.next()?, 16).ok();
    let (bias, first, last) = (number()?, number()?, number()?);
    let build_id = match words.next()? {
        "-" => Vec::new(),
        text => bytes(text)?,
    };
    (first < last).then_some(Mapped { is_program, bias, first, last, build_id, path: words.next()?.to_owned() })
}

fn bytes(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes().chunks(2);
    digits.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read() {
        let program = Mapped {
            is_program: true,
            bias: 0x5555_0000_0000,
            first: 0x5555_0000_0000,
            last: 0x5555_0000_4000,
            build_id: vec![0, 0xab, 0x10],
            path: "/a name/with blanks".to_owned(),
        };
        let library = Mapped { first: 1, last: 2, path: "/lib.so".to_owned(), ..Mapped::default() };
        let written = write(&[program.clone(), library.clone()]);
        let (text, footer) = written.split_last_chunk::<FOOTER>().expect("a footer");
        assert_eq!(length(*footer), Some(text.len() as u64));
        assert_eq!(read(text), [program, library]);
        let mut damaged = *footer;
        damaged[15] ^= 1;
        assert_eq!(length(damaged), None);
        let of_length = |bytes: u64| length([bytes.to_le_bytes(), MAGIC].concat().try_into().expect("sixteen"));
        assert_eq!([MOST, MOST + 1, u64::MAX].map(of_length), [Some(MOST), None, None], "longer than any");
    }

    #[test]
    fn lines_that_are_none_are_left_out() {
        for line in [
            "",
            "program",
            "program 1 3 2 - /a",
            "program 1 2 2 - /a",
            "thing 1 2 3 - /a",
            "library 1 2 3 xy /a",
            "library 1 2 3 -",
        ] {
            assert_eq!(read(line.as_bytes()), [], "{line}");
        }
    }
}
