//! An ELF object that lies in the memory of a process, with its sections where they were loaded.
//!
//! The object is a copy that its producer keeps for debuggers. Its sections have addresses, but references to other
//! places may still be as the compiler left them. So loaded sections are taken from where they run, symbols get
//! addresses, and debug information is relocated here. Sections that cannot be obtained that way are absent.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::OnceLock;

use object::elf::{
    ET_DYN, ET_EXEC, ET_REL, FileHeader64, SHF_ALLOC, SHF_COMPRESSED, SHF_EXECINSTR, SHN_LORESERVE, SHN_UNDEF,
    SHT_NOBITS, SHT_REL, SHT_RELA, SHT_SYMTAB, Sym64,
};
use object::read::elf::{FileHeader, SectionHeader, Sym};
use object::{Endianness, Object, ObjectSection, RelocationKind, RelocationTarget, SectionIndex};

use super::{ElfFile, Load, MAX_SECTIONS};
use crate::arch::{Arch, ByteOrder};

/// Places of fields in a section header of 64 bits (gABI, "Section Header").
mod header {
    pub(super) const TYPE: usize = 4;
    pub(super) const OFFSET: usize = 24;
    pub(super) const SIZE: usize = 32;
}
/// Places of fields in a symbol of 64 bits, and its length (gABI, "Symbol Table").
mod symbol {
    pub(super) const SECTION: usize = 6;
    pub(super) const VALUE: usize = 8;
    pub(super) const LENGTH: usize = 24;
}

type Elf<'d> = object::read::elf::ElfFile<'d, FileHeader64<Endianness>, &'d [u8]>;

/// Fills a buffer from the memory of the process; false if that cannot be read.
pub(crate) type ReadMemory<'a> = &'a dyn Fn(u64, &mut [u8]) -> bool;

/// A section that has been loaded: its addresses, and whether it is code.
struct Loaded {
    index: usize,
    range: Range<u64>,
    code: bool,
}

/// The addresses of the code in an object. `None` if it is not a 64-bit ELF object for the machine. Also `None` if its
/// loaded sections overlap or are too many.
pub(crate) fn code_ranges(bytes: &[u8], arch: Arch) -> Option<Vec<Range<u64>>> {
    let loaded = loaded(&parse(bytes, arch)?)?;
    Some(loaded.into_iter().filter(|section| section.code).map(|section| section.range).collect())
}

fn parse(bytes: &[u8], arch: Arch) -> Option<Elf<'_>> {
    let elf = Elf::parse(bytes).ok()?;
    let endian = elf.endian();
    let byte_order = if elf.is_little_endian() { ByteOrder::Little } else { ByteOrder::Big };
    let machine = crate::machine::Machine::of_elf(elf.elf_header().e_machine(endian).0);
    let kind = elf.elf_header().e_type(endian);
    let usable = machine == arch.machine
        && byte_order == arch.byte_order
        && arch.pointer_bytes == 8
        && [ET_REL, ET_EXEC, ET_DYN].contains(&kind)
        && elf.elf_section_table().len() <= MAX_SECTIONS;
    usable.then_some(elf)
}

/// The sections that have an address, in the order of their addresses.
fn loaded(elf: &Elf<'_>) -> Option<Vec<Loaded>> {
    let endian = elf.endian();
    let mut loaded = Vec::new();
    for (index, section) in elf.elf_section_table().enumerate() {
        let (flags, start, size) = (section.sh_flags(endian), section.sh_addr(endian), section.sh_size(endian));
        if flags.contains(SHF_ALLOC) && start != 0 && size != 0 {
            let range = start..start.checked_add(size)?;
            loaded.push(Loaded { index: index.0, range, code: flags.contains(SHF_EXECINSTR) });
        }
    }
    loaded.sort_by_key(|section| section.range.start);
    loaded.windows(2).all(|pair| pair[0].range.end <= pair[1].range.start).then_some(loaded)
}

impl ElfFile {
    /// The object in `bytes` as if it were the file behind the code in memory. Of memory, and for tables that are made anew, at most
    /// `budget` bytes are taken; `None` if that is not enough or the object is not usable.
    pub(crate) fn placed(
        name: &str,
        bytes: Vec<u8>,
        arch: Arch,
        memory: ReadMemory<'_>,
        budget: &mut u64,
    ) -> Option<ElfFile> {
        let (added, patches, mut loads) = {
            let elf = parse(&bytes, arch)?;
            let mut new = Placing { elf: &elf, bytes: &bytes, added: Vec::new(), patches: BTreeMap::new(), budget };
            let loaded = loaded(&elf)?;
            let loads = new.load(&loaded, memory)?;
            new.relocate(&loaded)?;
            new.place_symbols(&loaded)?;
            (new.added, new.patches, loads)
        };
        let start = bytes.len();
        let mut bytes = bytes;
        bytes.extend(added);
        for (at, value) in patches {
            bytes.get_mut(at..at.checked_add(value.len())?)?.copy_from_slice(&value);
        }
        for load in &mut loads {
            load.offset = load.offset.checked_add(start as u64)?;
        }
        let mut file = ElfFile::from_bytes(name, bytes).ok()?;
        file.loads = loads;
        // It belongs to no file: none is looked for, and none is mistaken for it.
        file.build_id = None;
        file.companion = OnceLock::from((None, Vec::new()));
        file.supplement = OnceLock::from((None, Vec::new()));
        file.jit = true;
        Some(file)
    }
}

/// Changes to an object, while it is still parsed.
struct Placing<'a, 'd> {
    elf: &'a Elf<'d>,
    bytes: &'d [u8],
    /// Bytes that come behind the object.
    added: Vec<u8>,
    /// What to overwrite, by offset: nothing but section headers.
    patches: BTreeMap<usize, Vec<u8>>,
    budget: &'a mut u64,
}

impl Placing<'_, '_> {
    fn spend(&mut self, bytes: u64) -> Option<()> {
        *self.budget = self.budget.checked_sub(bytes)?;
        Some(())
    }

    fn word(&self, value: u64, length: usize) -> Vec<u8> {
        if self.elf.is_little_endian() {
            value.to_le_bytes()[..length].to_vec()
        } else {
            value.to_be_bytes()[8 - length..].to_vec()
        }
    }

    /// Overwrites a field of a section header.
    fn patch(&mut self, section: usize, field: usize, value: u64, length: usize) -> Option<()> {
        let header = self.elf.elf_header();
        let endian = self.elf.endian();
        let table = usize::try_from(header.e_shoff.get(endian)).ok()?;
        let entry = usize::from(header.e_shentsize.get(endian)).checked_mul(section)?;
        let value = self.word(value, length);
        self.patches.insert(table.checked_add(entry)?.checked_add(field)?, value);
        Some(())
    }

    /// Takes the bytes of a section away.
    fn remove(&mut self, section: usize) -> Option<()> {
        self.patch(section, header::TYPE, u64::from(SHT_NOBITS.0), 4)
    }

    /// Gives a section other bytes, which it has in the file. Returns their offset in what is added.
    fn replace(&mut self, section: usize, bytes: &[u8]) -> Option<u64> {
        let at = self.added.len();
        self.added.extend_from_slice(bytes);
        self.patch(section, header::OFFSET, self.bytes.len().checked_add(at)? as u64, 8)?;
        self.patch(section, header::SIZE, bytes.len() as u64, 8)?;
        Some(at as u64)
    }

    /// Gives loaded sections the bytes that are in memory.
    fn load(&mut self, loaded: &[Loaded], memory: ReadMemory<'_>) -> Option<Vec<Load>> {
        let mut loads = Vec::new();
        for Loaded { index, range, code } in loaded {
            let size = range.end - range.start;
            self.spend(size)?;
            let mut bytes = vec![0; usize::try_from(size).ok()?];
            if !memory(range.start, &mut bytes) {
                self.remove(*index)?;
                continue;
            }
            let offset = self.replace(*index, &bytes)?;
            let header = self.elf.elf_section_table().section(SectionIndex(*index)).ok()?;
            if header.sh_type(self.elf.endian()) == SHT_NOBITS {
                self.patch(*index, header::TYPE, u64::from(object::elf::SHT_PROGBITS.0), 4)?;
            }
            loads.push(Load { vaddr: range.start, offset, filesz: size, exec: *code, write: false });
        }
        Some(loads)
    }

    /// Relocates sections that are not loaded: debug information, and call frame information of some makers.
    fn relocate(&mut self, loaded: &[Loaded]) -> Option<()> {
        let endian = self.elf.endian();
        let table = self.elf.elf_section_table();
        for section in table.iter() {
            if [SHT_REL, SHT_RELA].contains(&section.sh_type(endian)) {
                self.spend(section.sh_size(endian))?;
            }
        }
        let loaded: BTreeSet<usize> = loaded.iter().map(|section| section.index).collect();
        for section in self.elf.sections() {
            let index = section.index().0;
            if loaded.contains(&index) || section.relocations().next().is_none() {
                continue;
            }
            let compressed = section.elf_section_header().sh_flags(endian).contains(SHF_COMPRESSED);
            match section.data().ok().filter(|_| !compressed) {
                Some(data) => {
                    self.spend(data.len() as u64)?;
                    match self.relocated(&section, data) {
                        Some(data) => drop(self.replace(index, &data)?),
                        None => self.remove(index)?,
                    }
                }
                None => self.remove(index)?,
            }
        }
        Some(())
    }

    /// The bytes of a section with its relocations applied; `None` if one of them is not understood.
    fn relocated<'d>(
        &self,
        section: &object::read::elf::ElfSection<'d, '_, FileHeader64<Endianness>, &'d [u8]>,
        data: &[u8],
    ) -> Option<Vec<u8>> {
        let mut data = data.to_vec();
        for (offset, relocation) in section.relocations() {
            let length = match relocation.size() {
                64 => 8,
                32 => 4,
                _ => return None,
            };
            let at = usize::try_from(offset).ok()?;
            let place = data.get_mut(at..at.checked_add(length)?)?;
            let target = match relocation.target() {
                RelocationTarget::Symbol(symbol) => self.address(symbol)?,
                RelocationTarget::Absolute => 0,
                _ => return None,
            };
            let mut value = target.wrapping_add_signed(relocation.addend());
            if relocation.has_implicit_addend() {
                let order = if self.elf.is_little_endian() { ByteOrder::Little } else { ByteOrder::Big };
                value = value.wrapping_add(order.uint(place));
            }
            let value = match relocation.kind() {
                RelocationKind::Absolute => value,
                RelocationKind::Relative => value.wrapping_sub(section.address().wrapping_add(offset)),
                _ => return None,
            };
            place.copy_from_slice(&self.word(value, length));
        }
        Some(data)
    }

    /// The address of a symbol that the object defines.
    fn address(&self, index: object::SymbolIndex) -> Option<u64> {
        let endian = self.elf.endian();
        let symbol = self.elf.elf_symbol_table().symbol(index).ok()?;
        let section = symbol.st_shndx(endian);
        if section == SHN_UNDEF || section.0 >= SHN_LORESERVE {
            return None;
        }
        let value = symbol.st_value(endian);
        if self.elf.elf_header().e_type(endian) != ET_REL {
            return Some(value);
        }
        let section = self.elf.elf_section_table().section(SectionIndex(usize::from(section.0))).ok()?;
        Some(value.wrapping_add(section.sh_addr(endian)))
    }

    /// Gives symbols their addresses: in a relocatable object they are counted from their sections. What has not been loaded
    /// has no address, and what is defined elsewhere is not the object's.
    fn place_symbols(&mut self, loaded: &[Loaded]) -> Option<()> {
        let endian = self.elf.endian();
        if self.elf.elf_header().e_type(endian) != ET_REL {
            return Some(());
        }
        let sections = self.elf.elf_section_table();
        let found = sections.enumerate().find(|(_, section)| section.sh_type(endian) == SHT_SYMTAB);
        let Some((index, section)) = found else { return Some(()) };
        let data = section.data(endian, self.bytes).ok()?;
        self.spend(data.len() as u64)?;
        let mut data = data.to_vec();
        let starts: BTreeMap<usize, u64> = loaded.iter().map(|section| (section.index, section.range.start)).collect();
        let symbols = self.elf.elf_symbol_table();
        for (at, own) in data.chunks_exact_mut(symbol::LENGTH).enumerate() {
            let Ok(old) = symbols.symbol(object::SymbolIndex(at)) else { continue };
            let place: &Sym64<Endianness> = old;
            let section = place.st_shndx(endian);
            // Names of source files stay what they are.
            if section == SHN_UNDEF || place.st_type() == object::elf::STT_FILE {
                continue;
            }
            match starts.get(&usize::from(section.0)).filter(|_| section.0 < SHN_LORESERVE) {
                Some(start) => {
                    let value = self.word(start.wrapping_add(place.st_value(endian)), 8);
                    own[symbol::VALUE..][..8].copy_from_slice(&value);
                }
                None => own[symbol::SECTION..][..2].copy_from_slice(&[0, 0]),
            }
        }
        self.replace(index.0, &data)?;
        Some(())
    }
}
