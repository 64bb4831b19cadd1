//! What a decoder of instructions needs of a file: code bytes, extents of functions, relocations.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use gimli::{BaseAddresses, CieOrFde, EhFrame, EhFrameOffset, RunTimeEndian, UnwindSection};
use object::elf::{FileHeader32, FileHeader64, PT_LOAD, SHF_ALLOC, SHT_RELA};
use object::read::elf::{FileHeader, ProgramHeader, Rela, SectionHeader, Sym};
use object::{Endianness, Object, ObjectSection};

use super::{Allowance, ElfFile, Load, MAX_LOADS, by_class};
use crate::arch::ByteOrder;
use crate::machine::Machine;
use crate::source::Source;

/// A dynamic relocation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reloc {
    /// Relocation type of the machine (`R_X86_64_TPOFF64` is 18).
    pub kind: u32,
    /// Name of the symbol it refers to, if it refers to a named one.
    pub symbol: Option<String>,
    /// `st_value` of that symbol: 0 if it is defined elsewhere.
    pub symbol_value: u64,
    /// Addend.
    pub addend: i64,
}

fn read_loaded<E: FileHeader<Endian = Endianness>>(data: &Source) -> object::Result<Vec<Range<u64>>> {
    let header = E::parse(data)?;
    let endian = header.endian()?;
    let loads = header.program_headers(endian, data)?.iter().filter(|p| p.p_type(endian) == PT_LOAD);
    let ranges = loads.map(|p| {
        let (start, size): (u64, u64) = (p.p_vaddr(endian).into(), p.p_memsz(endian).into());
        start..start.saturating_add(size)
    });
    Ok(ranges.take(MAX_LOADS).collect())
}

impl ElfFile {
    /// The file's bytes for `len` bytes of loaded image at `svma`; `None` unless one segment holds them all.
    pub fn bytes_at(&self, svma: u64, len: u64) -> Option<&[u8]> {
        let load = self.loads.iter().find(|l| svma >= l.vaddr && svma - l.vaddr < l.filesz)?;
        let within = svma - load.vaddr;
        if len > load.filesz - within {
            return None;
        }
        let start = usize::try_from(load.offset.checked_add(within)?).ok()?;
        self.source().get(start..start.checked_add(usize::try_from(len).ok()?)?)
    }

    /// The address at which the byte at `offset` of the file is loaded.
    pub(crate) fn svma_of_offset(&self, offset: u64) -> Option<u64> {
        let load = self.loads.iter().find(|l| offset >= l.offset && offset - l.offset < l.filesz)?;
        load.vaddr.checked_add(offset - load.offset)
    }

    /// Address ranges of the executable segments, as far as they have bytes in the file.
    pub fn executable_ranges(&self) -> Vec<Range<u64>> {
        let exec = self.loads.iter().filter(|l| l.exec);
        exec.map(|l| l.vaddr..l.vaddr.saturating_add(l.filesz)).collect()
    }

    /// True if some of these addresses are those of a writable segment. What a process has there is not what the file has: the
    /// dynamic linker writes there, also to what is read-only from then on (`PT_GNU_RELRO`).
    pub(crate) fn is_writable(&self, range: &Range<u64>) -> bool {
        let overlaps = |load: &Load| load.vaddr < range.end && range.start < load.vaddr.saturating_add(load.filesz);
        self.loads.iter().any(|load| load.write && overlaps(load))
    }

    /// Address ranges of the loadable segments, with what has no bytes in the file. At most as many as a program can have.
    pub fn loaded_ranges(&self) -> Vec<Range<u64>> {
        by_class!(self, read_loaded, self.source()).unwrap_or_default()
    }

    /// Extent of the function that contains `svma`: by symbol size, else by the frame description in `.eh_frame`
    /// (which survives `strip`).
    pub fn function_range(&self, svma: u64) -> Option<Range<u64>> {
        let by_symbol = self.covering(svma, &|entry, _| entry.function && entry.size > 0);
        if let Some((entry, ..)) = by_symbol {
            return Some(entry.addr..entry.addr.checked_add(entry.size)?);
        }
        let frames = self.frames();
        let at = frames.partition_point(|r| r.start <= svma).checked_sub(1)?;
        Some(frames[at].clone()).filter(|r| r.contains(&svma))
    }

    /// The first address above `svma` at which [`ElfFile::function_range`] knows a function to begin; `u64::MAX` if there is none.
    pub fn next_function_start(&self, svma: u64) -> u64 {
        let frames = self.frames();
        let by_frame = frames.get(frames.partition_point(|r| r.start <= svma)).map(|r| r.start);
        let by_symbol = self.own_tables().into_iter().filter_map(|table| table.next_function(svma));
        by_symbol.chain(by_frame).min().unwrap_or(u64::MAX)
    }

    /// Extents of functions by `.eh_frame`, in address order.
    fn frames(&self) -> &[Range<u64>] {
        self.frames.get_or_init(|| by_class!(self, read_frames, self).unwrap_or_default())
    }

    /// Dynamic relocations by the address they patch: those with addend (`.rela.dyn`, `.rela.plt`) and the packed ones
    /// (`.relr.dyn`). Packed ones are relative relocations; their addend is read from the place they patch.
    pub fn relocations(&self) -> &BTreeMap<u64, Reloc> {
        self.relocations.get_or_init(|| {
            let mut all = by_class!(self, read_relocations, self.source()).unwrap_or_default();
            // A malformed section gives none; nothing else depends on it.
            let packed = by_class!(self, read_packed_relocations, self).unwrap_or_default();
            for (place, reloc) in packed {
                all.entry(place).or_insert(reloc);
            }
            all
        })
    }
}

fn read_frames<E: FileHeader<Endian = Endianness>>(file: &ElfFile) -> Option<Vec<Range<u64>>> {
    let elf = object::read::elf::ElfFile::<E, _>::parse(file.source()).ok()?;
    let section = elf.section_by_name(".eh_frame")?;
    let address = |name| elf.section_by_name(name).map_or(0, |s| s.address());
    let bases =
        BaseAddresses::default().set_eh_frame(section.address()).set_text(address(".text")).set_got(address(".got"));
    let endian = match file.arch.byte_order {
        ByteOrder::Little => RunTimeEndian::Little,
        ByteOrder::Big => RunTimeEndian::Big,
    };
    let mut eh_frame = EhFrame::new(section.data().ok()?, endian);
    eh_frame.set_address_size(file.arch.pointer_bytes);
    let mut entries = eh_frame.entries(&bases);
    let mut ranges = Vec::new();
    // Thousands of entries may share one of which the augmentation is as long as the section.
    let mut shared = HashMap::new();
    // The first malformed entry ends the walk: what follows cannot be found without it.
    while let Ok(Some(entry)) = entries.next() {
        let CieOrFde::Fde(partial) = entry else { continue };
        let common = |section: &EhFrame<_>, bases: &BaseAddresses, offset: EhFrameOffset| {
            let known = shared.entry(offset.0).or_insert_with(|| section.cie_from_offset(bases, offset));
            known.clone()
        };
        let Ok(fde) = partial.parse(common) else { continue };
        if let Some(end) = fde.initial_address().checked_add(fde.len())
            && fde.len() > 0
        {
            ranges.push(fde.initial_address()..end);
        }
    }
    ranges.sort_by_key(|r| r.start);
    Some(ranges)
}

/// Type of the machine's relocation that adds the load bias to a word.
pub(crate) fn relative(machine: Machine) -> Option<u32> {
    machine.facts().map(|facts| facts.relocations.relative)
}

/// `SHT_RELR` sections: addresses, and bit maps of the words behind the last address. Each entry patches a word of the
/// file, so there are no more of them than the file has words.
fn read_packed_relocations<E: FileHeader<Endian = Endianness>>(file: &ElfFile) -> object::Result<BTreeMap<u64, Reloc>> {
    let mut out = BTreeMap::new();
    let Some(kind) = relative(file.arch.machine) else { return Ok(out) };
    let data = file.source();
    let header = E::parse(data)?;
    let endian = header.endian()?;
    let mut left = Allowance::of(data);
    for section in header.sections(endian, data)?.iter().filter(|s| s.sh_flags(endian).contains(SHF_ALLOC)) {
        let Some(places) = section.relr(endian, data)? else { continue };
        for place in places.map(Into::<u64>::into) {
            // A section of a few bits for each place, and more than one may name the same places.
            if left.take(2 * usize::from(file.arch.pointer_bytes)).is_none() {
                return Ok(BTreeMap::new());
            }
            let Some(word) = file.bytes_at(place, file.arch.pointer_bytes.into()) else { continue };
            let addend = file.arch.byte_order.uint(word) as i64;
            out.insert(place, Reloc { kind, symbol: None, symbol_value: 0, addend });
        }
    }
    Ok(out)
}

fn read_relocations<E: FileHeader<Endian = Endianness>>(data: &Source) -> object::Result<BTreeMap<u64, Reloc>> {
    let header = E::parse(data)?;
    let endian = header.endian()?;
    let mips = header.is_mips64el(endian);
    let sections = header.sections(endian, data)?;
    let mut out = BTreeMap::new();
    let mut left = Allowance::of(data);
    for section in sections.iter().filter(|s| s.sh_type(endian) == SHT_RELA && s.sh_flags(endian).contains(SHF_ALLOC)) {
        let Some((entries, link)) = section.rela(endian, data)? else { continue };
        // A statically linked program has relocations (IRELATIVE) without a symbol table.
        let symbols = sections.symbol_table_by_index(endian, data, link).ok();
        for entry in entries {
            let named = entry.symbol(endian, mips).zip(symbols.as_ref());
            let symbol = named.and_then(|(index, table)| Some((table.symbol(index).ok()?, table)));
            let name = symbol.map_or(Ok(&[][..]), |(s, table)| table.symbol_name(endian, s));
            // Sections may lie on each other.
            let allowed = left.take(size_of::<E::Rela>()).and_then(|()| left.name(name, data));
            let Some(name) = allowed else { return Ok(BTreeMap::new()) };
            let name = name.filter(|n| !n.is_empty());
            out.insert(
                entry.r_offset(endian).into(),
                Reloc {
                    kind: entry.r_type(endian, mips).0,
                    symbol: name.map(|n| String::from_utf8_lossy(n).into_owned()),
                    symbol_value: symbol.map_or(0, |(s, _)| s.st_value(endian).into()),
                    addend: entry.r_addend(endian).into(),
                },
            );
        }
    }
    Ok(out)
}
