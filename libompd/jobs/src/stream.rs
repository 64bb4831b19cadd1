//! Documents of JSON, one after the other, as they come.

use std::io::{self, BufRead};

use memchr::memchr3;

/// Bytes of one document that are read.
const MOST_BYTES: usize = 1 << 30;
/// Bytes that are kept of what is no document.
const KEPT: usize = 1 << 10;

/// The documents of a stream. One may follow another on the same line or on the next ones.
///
/// A line that begins with `{` begins a document, also where the one before lacks its end. No document of `ompd-inspect` has such a
/// line within.
#[derive(Debug)]
pub struct Documents<R> {
    input: R,
    document: Vec<u8>,
    place: Place,
}

/// Where in a document the reader is.
#[derive(Debug, Default, Clone, Copy)]
struct Place {
    /// Brackets that are open.
    depth: usize,
    in_string: bool,
    /// Behind a backslash.
    escaped: bool,
    begins_line: bool,
}

/// What a byte is to the document.
enum Byte {
    Part,
    Last,
    /// The first of the next one.
    Next,
}

impl<R: BufRead> Documents<R> {
    /// Those of this stream.
    pub fn new(input: R) -> Documents<R> {
        Documents { input, document: Vec::new(), place: Place::default() }
    }

    /// The next one, or what stands in its place, to the end of the line; `None` at the end.
    ///
    /// # Errors
    /// When reading fails, or the document is larger than 1 GiB. What follows is not to be read then.
    pub fn read_next(&mut self) -> io::Result<Option<&[u8]>> {
        self.document.clear();
        self.place = Place { begins_line: true, ..Place::default() };
        let mut left_out = 0;
        loop {
            let bytes = match self.input.fill_buf() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                other => other?,
            };
            if bytes.is_empty() {
                return Ok(Some(&*self.document).filter(|document| !document.is_empty()));
            }
            let (used, ended) = self.place.take(bytes, &mut self.document);
            self.input.consume(used);
            if ended {
                return Ok(Some(&self.document));
            }
            if self.document.first().is_some_and(|first| *first != b'{') && self.document.len() > KEPT {
                left_out += self.document.len() - KEPT;
                self.document.truncate(KEPT);
            }
            if self.document.len() + left_out > MOST_BYTES {
                return Err(io::Error::other("a document is larger than 1 GiB"));
            }
        }
    }
}

impl Place {
    /// Adds bytes to the document; how many of them were used, and whether the document is at its end.
    fn take(&mut self, bytes: &[u8], document: &mut Vec<u8>) -> (usize, bool) {
        let blank = bytes.iter().take_while(|byte| document.is_empty() && byte.is_ascii_whitespace()).count();
        if blank > 0 {
            return (blank, false);
        }
        let mut at = 0;
        while at < bytes.len() {
            if self.in_string && !self.escaped && !self.begins_line {
                at += memchr3(b'"', b'\\', b'\n', &bytes[at..]).unwrap_or(bytes.len() - at);
            }
            let Some(byte) = bytes.get(at) else { break };
            match self.step(*byte, at == 0 && document.is_empty()) {
                Byte::Part => at += 1,
                Byte::Last => {
                    document.extend_from_slice(&bytes[..=at]);
                    return (at + 1, true);
                }
                Byte::Next => {
                    document.extend_from_slice(&bytes[..at]);
                    return (at, true);
                }
            }
        }
        document.extend_from_slice(bytes);
        (bytes.len(), false)
    }

    fn step(&mut self, byte: u8, is_first: bool) -> Byte {
        let begins_line = std::mem::replace(&mut self.begins_line, byte == b'\n');
        if begins_line && byte == b'{' && !is_first {
            return Byte::Next;
        }
        if std::mem::take(&mut self.escaped) {
            return Byte::Part;
        }
        match byte {
            b'\\' => self.escaped = self.in_string,
            b'"' => self.in_string = !self.in_string,
            b'{' | b'[' if !self.in_string => self.depth += 1,
            b'}' | b']' if !self.in_string => {
                self.depth = self.depth.saturating_sub(1);
                if self.depth == 0 {
                    return Byte::Last;
                }
            }
            // What began with no bracket is no document, and ends with its line.
            b'\n' if self.depth == 0 => return Byte::Last,
            _ => {}
        }
        Byte::Part
    }
}

#[cfg(test)]
mod tests {
    use std::io::BufReader;

    use super::Documents;

    fn all(text: &str, buffer: usize) -> Vec<String> {
        let mut documents = Documents::new(BufReader::with_capacity(buffer, text.as_bytes()));
        let mut all = Vec::new();
        while let Some(document) = documents.read_next().expect("it can be read") {
            all.push(String::from_utf8_lossy(document).trim_end().to_owned());
        }
        all
    }

    #[test]
    fn documents_end_where_their_brackets_close() {
        let text = " {\"a\": \"}\\\"{\"}\n\n[1, {}] {\n  \"b\": [\n    {}\n  ]\n}{}\n";
        for buffer in [1, 2, 3, 7, 4096] {
            let expected = ["{\"a\": \"}\\\"{\"}", "[1, {}]", "{\n  \"b\": [\n    {}\n  ]\n}", "{}"];
            assert_eq!(all(text, buffer), expected, "{buffer}");
        }
        assert_eq!(all(" \n ", 4), [] as [&str; 0]);
    }

    #[test]
    fn of_what_is_no_document_the_first_bytes_are_kept() {
        let text = [&[0; 1 << 20][..], b"\n{\"a\": 1}[{\"b\": ", &[b' '; 1 << 20], b"2}]{}"].concat();
        let mut documents = Documents::new(BufReader::with_capacity(4096, &text[..]));
        let mut all = Vec::new();
        while let Some(document) = documents.read_next().expect("it can be read") {
            all.push((document.first().copied(), document.len() < 8192));
            assert!(documents.document.capacity() < 1 << 15, "{}", documents.document.capacity());
        }
        assert_eq!(all, [0, b'{', b'[', b'{'].map(|first| (Some(first), true)));
    }

    #[test]
    fn a_document_without_its_end_does_not_take_the_next_one() {
        let text = "{\"a\": \"tex\n{\"b\": [1\n{}\nsrun: error\n{\"c\": 1}\n{\"d\": \"\\";
        for buffer in [1, 2, 3, 7, 4096] {
            let expected = ["{\"a\": \"tex", "{\"b\": [1", "{}", "srun: error", "{\"c\": 1}", "{\"d\": \"\\"];
            assert_eq!(all(text, buffer), expected, "{buffer}");
        }
    }
}
