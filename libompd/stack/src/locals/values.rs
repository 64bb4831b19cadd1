//! Values as text.

use std::fmt::Write as _;

use ompd_process::{Addr, ByteOrder};

use super::location::{Content, ReadBytes};
use super::types::{Kind, SHOWN, Type};

/// Characters of a text that are shown.
const MAX_TEXT: u64 = 64;
/// Bytes that are read at once.
const MAX_BYTES: usize = 4096;

type Reason = String;

/// A value of a type, as text. What is too large or too involved is its address.
pub(crate) fn text(
    described: &Type,
    content: &Content,
    order: ByteOrder,
    read: ReadBytes<'_>,
) -> Result<String, Reason> {
    let source = ByteSource { content, order, read };
    match &described.kind {
        Kind::Reference(referred) => {
            let size = described.size.unwrap_or(8);
            let address = order.uint(&source.bytes(0, size)?);
            let content = Content::Memory(Addr(address));
            ByteSource { content: &content, order, read }.whole(referred)
        }
        _ => source.whole(described),
    }
}

struct ByteSource<'a> {
    content: &'a Content,
    order: ByteOrder,
    read: ReadBytes<'a>,
}

impl ByteSource<'_> {
    fn bytes(&self, offset: u64, length: u64) -> Result<Vec<u8>, Reason> {
        let length = usize::try_from(length).ok().filter(|length| *length <= MAX_BYTES).ok_or("too large")?;
        match self.content {
            Content::Memory(addr) => {
                let mut bytes = vec![0; length];
                (self.read)(addr.offset(offset), &mut bytes)?;
                Ok(bytes)
            }
            Content::Bytes(bytes) => {
                let end = usize::try_from(offset).ok().and_then(|from| Some((from, from.checked_add(length)?)));
                let part = end.and_then(|(from, to)| bytes.get(from..to));
                let part = part.ok_or("debug information gives fewer bytes than the type has")?;
                part.iter().copied().collect::<Option<Vec<u8>>>().ok_or_else(|| "optimized out here".to_owned())
            }
        }
    }

    fn whole(&self, described: &Type) -> Result<String, Reason> {
        match &described.kind {
            Kind::Array { element, count } => {
                let size = element.size.unwrap_or(0);
                let shown = (*count).min(SHOWN as u64);
                let mut parts = Vec::new();
                for index in 0..shown {
                    parts.push(self.part(index.saturating_mul(size), element)?);
                }
                if *count > shown {
                    parts.push("…".to_owned());
                }
                Ok(format!("{{{}}}", parts.join(", ")))
            }
            Kind::Structure { members, more } => self.structure(members, *more),
            Kind::Other | Kind::Reference(_) => match self.content {
                Content::Memory(addr) => Ok(format!("(at {addr})")),
                Content::Bytes(_) => Err("values of this type are not shown".to_owned()),
            },
            _ => self.part(0, described),
        }
    }

    fn structure(&self, members: &[(String, Option<u64>, std::rc::Rc<Type>)], more: bool) -> Result<String, Reason> {
        let mut parts = Vec::new();
        let mut failed = None;
        let mut read = 0;
        for (name, offset, described) in members {
            let value = match (offset, &described.kind) {
                (None, _) => "…".to_owned(),
                (_, Kind::Other | Kind::Structure { .. } | Kind::Array { .. } | Kind::Reference(_)) => "…".to_owned(),
                (Some(offset), _) => match self.part(*offset, described) {
                    Ok(value) => {
                        read += 1;
                        value
                    }
                    Err(why) => {
                        failed = Some(why);
                        "?".to_owned()
                    }
                },
            };
            parts.push(if name.is_empty() { value } else { format!("{name} = {value}") });
        }
        // If not one of them could be read, the reason says more than a row of question marks.
        if let (0, Some(why)) = (read, failed) {
            return Err(why);
        }
        if more {
            parts.push("…".to_owned());
        }
        Ok(format!("{{{}}}", parts.join(", ")))
    }

    /// One value, or text, at an offset.
    fn part(&self, offset: u64, described: &Type) -> Result<String, Reason> {
        if let Kind::Text(length) = described.kind {
            let shown = length.min(MAX_TEXT);
            return Ok(quote(&self.bytes(offset, shown)?, length > shown));
        }
        let size = described.size.ok_or("the size of its type is not known")?;
        if !matches!(size, 1 | 2 | 4 | 8 | 16) {
            return Err(format!("values of {size} bytes of this type are not shown"));
        }
        let bytes = self.bytes(offset, size)?;
        let unsigned = self.wide(&bytes);
        let shift = 128 - 8 * size as u32;
        let signed = (unsigned << shift).cast_signed() >> shift;
        Ok(match &described.kind {
            Kind::Signed => signed.to_string(),
            Kind::Unsigned => unsigned.to_string(),
            Kind::Char { signed: has_sign } => {
                let number = if *has_sign { signed.to_string() } else { unsigned.to_string() };
                match bytes[0] {
                    b'\'' => format!("{number} '\\''"),
                    b'\\' => format!("{number} '\\\\'"),
                    byte if byte == b' ' || byte.is_ascii_graphic() => format!("{number} '{}'", char::from(byte)),
                    _ => number,
                }
            }
            Kind::Float if size == 4 => format!("{}", f32::from_bits(unsigned as u32)),
            Kind::Float => format!("{}", f64::from_bits(unsigned as u64)),
            Kind::Boolean => match unsigned {
                0 => "false".to_owned(),
                1 => "true".to_owned(),
                other => other.to_string(),
            },
            Kind::Pointer => format!("{unsigned:#x}"),
            Kind::Enumeration { signed: has_sign, names } => {
                let mask = if size >= 8 { u64::MAX } else { (1 << (8 * size)) - 1 };
                let same = |value: &u64| value & mask == unsigned as u64 & mask;
                match names.iter().find(|(value, _)| same(value)) {
                    Some((_, name)) => name.clone(),
                    None if *has_sign => signed.to_string(),
                    None => unsigned.to_string(),
                }
            }
            _ => return Err("values of this type are not shown".to_owned()),
        })
    }

    fn wide(&self, bytes: &[u8]) -> u128 {
        let fold = |value: u128, byte: &u8| (value << 8) | u128::from(*byte);
        match self.order {
            ByteOrder::Little => bytes.iter().rev().fold(0, fold),
            ByteOrder::Big => bytes.iter().fold(0, fold),
        }
    }
}

/// Characters up to the first that is zero, as C writes them.
fn quote(bytes: &[u8], cut: bool) -> String {
    let end = bytes.iter().position(|byte| *byte == 0);
    let mut out = String::from("\"");
    for byte in &bytes[..end.unwrap_or(bytes.len())] {
        match byte {
            b'"' => out.push_str("\\\""),
            b'\\' => out.push_str("\\\\"),
            b'\n' => out.push_str("\\n"),
            b'\t' => out.push_str("\\t"),
            b' '..=b'~' => out.push(char::from(*byte)),
            // Three octal digits end by themselves, whatever follows.
            other => {
                let _ = write!(out, "\\{other:03o}");
            }
        }
    }
    out.push('"');
    if cut && end.is_none() {
        out.push('…');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::rc::Rc;

    fn show(kind: Kind, bytes: &[u8]) -> Result<String, Reason> {
        let described = Type { name: String::new(), size: Some(bytes.len() as u64), kind };
        let content = Content::Bytes(bytes.iter().copied().map(Some).collect());
        text(&described, &content, ByteOrder::Little, &|_, _| Err("no memory".to_owned()))
    }

    #[test]
    fn scalars() {
        assert_eq!(show(Kind::Signed, &[0xfe, 0xff]).as_deref(), Ok("-2"));
        assert_eq!(show(Kind::Unsigned, &[0xfe, 0xff]).as_deref(), Ok("65534"));
        assert_eq!(show(Kind::Signed, &[0xff; 16]).as_deref(), Ok("-1"));
        assert_eq!(show(Kind::Float, &2.5_f32.to_le_bytes()).as_deref(), Ok("2.5"));
        assert_eq!(show(Kind::Float, &(-0.1_f64).to_le_bytes()).as_deref(), Ok("-0.1"));
        assert_eq!(show(Kind::Boolean, &[1, 0, 0, 0]).as_deref(), Ok("true"));
        assert_eq!(show(Kind::Boolean, &[7]).as_deref(), Ok("7"));
        assert_eq!(show(Kind::Char { signed: true }, b"a").as_deref(), Ok("97 'a'"));
        assert_eq!(show(Kind::Char { signed: true }, &[0x80]).as_deref(), Ok("-128"));
        assert_eq!(show(Kind::Pointer, &[0, 0x10, 0, 0, 0, 0, 0, 0]).as_deref(), Ok("0x1000"));
        assert!(show(Kind::Signed, &[0; 3]).is_err());
        let names = vec![(1, "ONE".to_owned()), (u64::MAX, "MINUS".to_owned())];
        let kind = Kind::Enumeration { signed: true, names };
        assert_eq!(show(kind.clone(), &[0xff; 4]).as_deref(), Ok("MINUS"));
        assert_eq!(show(kind, &[0xfe, 0xff, 0xff, 0xff]).as_deref(), Ok("-2"));
    }

    #[test]
    fn texts_are_quoted() {
        assert_eq!(show(Kind::Text(8), b"a\"\n\x1b2\0xy").as_deref(), Ok("\"a\\\"\\n\\0332\""));
        assert_eq!(show(Kind::Text(1000), &[b'x'; 1000]), Ok(format!("\"{}\"…", "x".repeat(64))));
    }

    #[test]
    fn what_is_not_there_has_no_value() {
        let int = Rc::new(Type { name: "int".to_owned(), size: Some(4), kind: Kind::Signed });
        let members = vec![("a".to_owned(), Some(0), Rc::clone(&int)), ("b".to_owned(), Some(4), Rc::clone(&int))];
        let described = Type { name: String::new(), size: Some(8), kind: Kind::Structure { members, more: false } };
        let half = Content::Bytes([[Some(1), Some(0), Some(0), Some(0)], [None; 4]].concat());
        let no_memory = |_: Addr, _: &mut [u8]| Err("no memory".to_owned());
        assert_eq!(text(&described, &half, ByteOrder::Little, &no_memory).as_deref(), Ok("{a = 1, b = ?}"));
        let nothing = Content::Bytes(vec![None; 8]);
        assert_eq!(text(&described, &nothing, ByteOrder::Little, &no_memory), Err("optimized out here".to_owned()));
        let memory = Content::Memory(Addr(u64::MAX));
        assert_eq!(text(&described, &memory, ByteOrder::Little, &no_memory), Err("no memory".to_owned()));
        let huge =
            Type { name: String::new(), size: Some(1 << 40), kind: Kind::Array { element: int, count: 1 << 38 } };
        assert_eq!(text(&huge, &memory, ByteOrder::Little, &no_memory), Err("no memory".to_owned()));
    }
}
