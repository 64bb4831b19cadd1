//! ELF files made of sections.

use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;

/// A section: its name, where it lies, its bytes.
pub type Section<'d> = (&'static str, u64, &'d [u8]);

/// A little-endian 64-bit ELF file for x86-64 with these sections.
pub fn elf(sections: &[Section<'_>]) -> Vec<u8> {
    let mut names = vec![0];
    let mut headers = vec![0; 64];
    let mut content = Vec::new();
    let index = |name: &str| sections.iter().position(|s| s.0 == name).map_or(0, |at| at as u32 + 1);
    // The table of names comes last.
    let all = sections.iter().map(|(name, at, bytes)| (*name, *at, Some(*bytes))).chain([(".shstrtab", 0, None)]);
    for (name, at, bytes) in all {
        let own = names.len() as u32;
        names.extend(name.bytes().chain([0]));
        // SHT_SYMTAB, SHT_STRTAB, SHT_PROGBITS
        let (kind, link, entry) = match name {
            ".symtab" => (2, index(".strtab"), 24),
            ".strtab" | ".shstrtab" => (3, 0, 0),
            _ => (1, 0, 0u64),
        };
        let bytes = bytes.unwrap_or(&names);
        let offset = 64 + content.len() as u64;
        content.extend_from_slice(bytes);
        for value in [own, kind] {
            headers.extend(u32::to_le_bytes(value));
        }
        for value in [u64::from(at != 0) * 2, at, offset, bytes.len() as u64] {
            headers.extend(value.to_le_bytes());
        }
        for value in [link, 0] {
            headers.extend(u32::to_le_bytes(value));
        }
        for value in [1, entry] {
            headers.extend(value.to_le_bytes());
        }
    }
    let count = headers.len() as u16 / 64;
    let mut out = b"\x7fELF\x02\x01\x01".to_vec();
    out.resize(16, 0);
    for value in [3u16, 62] {
        out.extend(value.to_le_bytes());
    }
    out.extend(1u32.to_le_bytes());
    for value in [0, 0, 64 + content.len() as u64] {
        out.extend(value.to_le_bytes());
    }
    out.extend(0u32.to_le_bytes());
    for value in [64u16, 56, 0, 64, count, count - 1] {
        out.extend(value.to_le_bytes());
    }
    out.extend(content);
    out.extend(headers);
    out
}

/// Takes an input apart: for each section its length in two little-endian bytes and its address in four, then the sections;
/// the rest is given back. Sections are shorter where there is not enough.
pub fn split<'d, const N: usize>(data: &'d [u8], names: &[&'static str; N]) -> Option<([Section<'d>; N], &'d [u8])> {
    let (header, mut rest) = data.split_at_checked(6 * N)?;
    let mut sections = [("", 0, &[][..]); N];
    for ((section, name), header) in sections.iter_mut().zip(names).zip(header.chunks_exact(6)) {
        let length = usize::from(u16::from_le_bytes([header[0], header[1]]));
        let at = u32::from_le_bytes([header[2], header[3], header[4], header[5]]);
        let bytes;
        (bytes, rest) = rest.split_at(length.min(rest.len()));
        *section = (*name, u64::from(at), bytes);
    }
    Some((sections, rest))
}

/// An input made of sections, each with its address; `None` if one is too long for its length to be written down.
pub fn join(sections: &[(u64, Vec<u8>)]) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    for (at, bytes) in sections {
        out.extend(u16::try_from(bytes.len()).ok()?.to_le_bytes());
        out.extend(u32::try_from(*at).ok()?.to_le_bytes());
    }
    sections.iter().for_each(|(_, bytes)| out.extend(bytes));
    Some(out)
}

/// A small program built by gcc, with all that gcc says about it.
pub(crate) fn program() -> Vec<u8> {
    static BYTES: OnceLock<Vec<u8>> = OnceLock::new();
    let make = || {
        let scratch = tempfile::tempdir().expect("a directory");
        let out = scratch.path().join("program.so");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("programs/stacks.c");
        let flags = ["-O2", "-g", "-fopenmp", "-mavx2", "-shared", "-fPIC", "-Wl,--build-id", "-o"];
        let done = Command::new("gcc").args(flags).arg(&out).arg(source).output().expect("gcc");
        assert!(done.status.success(), "gcc: {}", String::from_utf8_lossy(&done.stderr));
        std::fs::read(&out).expect("what gcc made")
    };
    BYTES.get_or_init(make).clone()
}
