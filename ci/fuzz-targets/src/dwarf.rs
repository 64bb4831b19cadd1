//! DWARF, as bare sections: damage goes to the debug information and not to the ELF file around it.

use std::borrow::Cow;

use ompd_layout::dwarf;
use ompd_process::ByteOrder;

/// The sections an input is made of, in its order.
pub const SECTIONS: [&str; 8] = [
    ".debug_info",
    ".debug_abbrev",
    ".debug_types",
    ".debug_line",
    ".debug_str",
    ".debug_line_str",
    ".debug_str_offsets",
    ".debug_addr",
];

/// Extracts what both runtimes' schemas ask for. The input is a byte that says the byte order, the lengths of the
/// [`SECTIONS`] in two little-endian bytes each, and the sections.
pub fn check(data: &[u8]) {
    let Some((order, sections)) = split(data) else { return };
    let section = |name: &str| {
        let at = SECTIONS.iter().position(|n| *n == name)?;
        Some(Cow::Borrowed(sections[at]))
    };
    for schema in ompd_runtime::family::families().map(|about| about.layouts.schema) {
        if let Ok(facts) = dwarf::extract(section, order, schema) {
            crate::check_extracted(&facts);
        }
    }
}

fn split(data: &[u8]) -> Option<(ByteOrder, [&[u8]; SECTIONS.len()])> {
    let (order, data) = data.split_first()?;
    let (lengths, mut rest) = data.split_at_checked(2 * SECTIONS.len())?;
    let mut sections = [&[][..]; SECTIONS.len()];
    for (section, length) in sections.iter_mut().zip(lengths.chunks_exact(2)) {
        let length = usize::from(u16::from_le_bytes([length[0], length[1]]));
        // The last ones are shorter when there is not enough.
        (*section, rest) = rest.split_at(length.min(rest.len()));
    }
    Some((if order & 1 == 0 { ByteOrder::Little } else { ByteOrder::Big }, sections))
}

/// An input made of sections; `None` if one is too long for its length to be written down.
pub fn join(order: ByteOrder, section: impl Fn(&str) -> Vec<u8>) -> Option<Vec<u8>> {
    let sections = SECTIONS.map(section);
    let mut out = vec![u8::from(order == ByteOrder::Big)];
    for section in &sections {
        out.extend(u16::try_from(section.len()).ok()?.to_le_bytes());
    }
    sections.iter().for_each(|section| out.extend(section));
    Some(out)
}
