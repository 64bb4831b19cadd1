//! ELF files made of sections.

use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;

/// A section: its name, where it lies, its bytes.
pub type Section<'d> = (&'static str, u64, &'d [u8]);

/// Splits an input into sections and returns the rest. First comes each section's length, in two little-endian bytes, and its
/// address, in four; then the sections. Sections are shorter if the input is too short.
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
