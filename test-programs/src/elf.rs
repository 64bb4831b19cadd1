//! ELF files made of sections.

/// A little-endian 64-bit ELF file for x86-64 with these sections: name, address, bytes.
pub fn elf(sections: &[(&str, u64, &[u8])]) -> Vec<u8> {
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
