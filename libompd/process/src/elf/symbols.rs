//! One symbol table, indexed by name and by address.

use std::sync::OnceLock;

use object::elf as raw;
use object::read::elf::{FileHeader, SectionHeader, Sym};
use object::{Endian, Endianness, SymbolIndex};

use super::Allowance;
use crate::source::Source;

/// Symbols looked at for one that covers an address. Those that do are next to it, but for what they contain.
const MAX_CONTAINED: usize = 4096;

/// A defined symbol.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    /// Name without version suffix.
    pub name: Box<str>,
    /// `st_value`: address in the file, or offset in the TLS block.
    pub addr: u64,
    /// `st_size`.
    pub size: u64,
    /// `STT_TLS`.
    pub tls: bool,
    /// `STT_FUNC` or `STT_GNU_IFUNC`.
    pub function: bool,
    /// Global, weak or unique.
    pub global: bool,
    /// Not the default version of its name (`@` instead of `@@`).
    pub old_version: bool,
    /// For a local symbol the source file it is filed under, counted from 1; 0 if none is named.
    pub file: u32,
}

impl Entry {
    /// Orders aliases: the name a reader would expect comes first.
    fn rank(&self) -> (bool, bool, bool, bool) {
        (self.old_version, !self.global, !self.function, self.name.starts_with('_'))
    }

    fn end(&self) -> u64 {
        self.addr.saturating_add(self.size)
    }
}

/// The defined symbols of one table.
#[derive(Debug, Default)]
pub(super) struct SymbolTable {
    entries: Vec<Entry>,
    /// Names of the source files (`STT_FILE`), in the order of the table.
    files: Vec<Box<str>>,
    /// Indices sorted by name, best first. Of most files only names or only addresses are asked for, so each order is made
    /// when it is needed.
    by_name: OnceLock<Vec<u32>>,
    by_addr: OnceLock<ByAddress>,
}

#[derive(Debug)]
struct ByAddress {
    /// Indices of everything that has an address, sorted by it, best last.
    order: Vec<u32>,
    /// For each place in `order`, the highest end of it and all before: says when a search backwards may stop.
    reach: Vec<u64>,
}

impl SymbolTable {
    /// Reads `.symtab` (`dynamic == false`) or `.dynsym` of the ELF file in `data`. A missing table is an empty one, and
    /// so is one whose names are longer than the file can have them.
    ///
    /// # Errors
    /// The parser's message if the table is malformed.
    pub fn read<E: FileHeader<Endian = Endianness>>(data: &Source, dynamic: bool) -> object::Result<SymbolTable> {
        let header = E::parse(data)?;
        let endian = header.endian()?;
        let sections = header.sections(endian, data)?;
        let kind = if dynamic { raw::SHT_DYNSYM } else { raw::SHT_SYMTAB };
        let symbols = sections.symbols(endian, data, kind)?;
        let versions = if dynamic { sections.versions(endian, data)? } else { None };
        let mut entries = Vec::new();
        let mut files: Vec<Box<str>> = Vec::new();
        let mut file = 0;
        let mut left = Allowance::of(data);
        for (index, symbol) in symbols.enumerate() {
            let kind = symbol.st_type();
            let place = symbol.st_shndx(endian);
            // The local symbols of a source file come behind its name (gABI, "Symbol Table"). Linkers put an empty name
            // before those that belong to none.
            if kind == raw::STT_FILE {
                let Some(name) = left.name(symbols.symbol_name(endian, symbol), data) else {
                    return Ok(SymbolTable::default());
                };
                let name = name.filter(|name| !name.is_empty());
                files.extend(name.map(|name| String::from_utf8_lossy(name).into()));
                file = name.map_or(0, |_| u32::try_from(files.len()).unwrap_or(0));
            }
            // SHN_ABS covers the names of version nodes, which older linkers put among the symbols.
            if place == raw::SHN_UNDEF || place == raw::SHN_ABS || kind == raw::STT_SECTION || kind == raw::STT_FILE {
                continue;
            }
            let Some(name) = left.name(symbols.symbol_name(endian, symbol), data) else {
                return Ok(SymbolTable::default());
            };
            let Some(name) = name else { continue };
            let full = String::from_utf8_lossy(name);
            let (name, suffix_old) = match full.split_once('@') {
                Some((name, version)) => (name, !version.starts_with('@')),
                None => (&*full, false),
            };
            // `$x`, `$d.1`: AArch64 mapping symbols (AAELF64 5.5.4), not names of anything.
            if name.is_empty() || name.starts_with('$') {
                continue;
            }
            let hidden = versions.as_ref().is_some_and(|v| v.version_index(endian, SymbolIndex(index.0)).is_hidden());
            entries.push(Entry {
                name: name.into(),
                addr: symbol.st_value(endian).into(),
                size: symbol.st_size(endian).into(),
                tls: kind == raw::STT_TLS,
                function: kind == raw::STT_FUNC || kind == raw::STT_GNU_IFUNC,
                global: !symbol.is_local(),
                old_version: hidden || suffix_old,
                file: if symbol.is_local() { file } else { 0 },
            });
        }
        Ok(SymbolTable { entries, files, ..SymbolTable::default() })
    }

    /// Whether `.dynsym` defines `name` for others, by the hash table that the dynamic linker uses (`DT_GNU_HASH`). `None` if the file
    /// has no usable one. Not the parser's look-up: it shifts by a number of the file, and compares any number of long names.
    pub fn is_exported<E: FileHeader<Endian = Endianness>>(data: &Source, name: &str) -> Option<bool> {
        /// No more symbols of a sound file have the same hash.
        const MOST: usize = 8;
        let header = E::parse(data).ok()?;
        let endian = header.endian().ok()?;
        let sections = header.sections(endian, data).ok()?;
        let section = sections.iter().find(|section| section.sh_type(endian) == raw::SHT_GNU_HASH)?;
        let bytes = section.data(endian, data).ok()?;
        let word = |at: usize| Some(endian.read_u32(*bytes.get(at..)?.first_chunk()?));
        let size = |at: usize| usize::try_from(word(at)?).ok();
        // Buckets, the first symbol in the table, words of the filter, and a shift for that.
        let (buckets, first, filter) = (size(0)?, size(4)?, size(8)?);
        let of_buckets = filter.checked_mul(size_of::<E::Word>())?.checked_add(16)?;
        let of_symbols = buckets.checked_mul(4)?.checked_add(of_buckets)?;
        let hash = raw::gnu_hash(name.as_bytes());
        let bucket = usize::try_from(hash).ok()?.checked_rem(buckets)?;
        let begin = size(bucket.checked_mul(4)?.checked_add(of_buckets)?)?;
        if begin == 0 {
            return Some(false);
        }
        let symbols = sections.symbols(endian, data, raw::SHT_DYNSYM).ok()?;
        let mut compared = 0;
        for index in begin.. {
            let value = word(index.checked_sub(first)?.checked_mul(4)?.checked_add(of_symbols)?)?;
            if value | 1 == hash | 1 {
                compared += 1;
                let symbol = symbols.symbol(SymbolIndex(index)).ok().filter(|_| compared <= MOST)?;
                if symbols.symbol_name(endian, symbol).ok()? == name.as_bytes() {
                    return Some(true);
                }
            }
            if value & 1 == 1 {
                return Some(false);
            }
        }
        None
    }

    /// The `st_value` of the symbol called `name`, which is no TLS symbol, without reading the others into a table.
    pub fn value_of<E: FileHeader<Endian = Endianness>>(data: &Source, dynamic: bool, name: &str) -> Option<u64> {
        let header = E::parse(data).ok()?;
        let endian = header.endian().ok()?;
        let sections = header.sections(endian, data).ok()?;
        let kind = if dynamic { raw::SHT_DYNSYM } else { raw::SHT_SYMTAB };
        let symbols = sections.symbols(endian, data, kind).ok()?;
        let mut left = Allowance::of(data);
        for symbol in symbols.iter() {
            let place = symbol.st_shndx(endian);
            if place == raw::SHN_UNDEF || place == raw::SHN_ABS || symbol.st_type() != raw::STT_OBJECT {
                continue;
            }
            if left.name(symbols.symbol_name(endian, symbol), data)? == Some(name.as_bytes()) {
                return Some(symbol.st_value(endian).into());
            }
        }
        None
    }

    fn count(&self) -> u32 {
        u32::try_from(self.entries.len()).unwrap_or(u32::MAX)
    }

    fn by_name(&self) -> &[u32] {
        self.by_name.get_or_init(|| {
            let entry = |i: &u32| &self.entries[*i as usize];
            let mut order: Vec<u32> = (0..self.count()).collect();
            // Ranks count among few, and take longer to find than the rest.
            order.sort_by(|a, b| {
                let (a, b) = (entry(a), entry(b));
                a.name.cmp(&b.name).then_with(|| a.rank().cmp(&b.rank()))
            });
            order
        })
    }

    fn by_addr(&self) -> &ByAddress {
        self.by_addr.get_or_init(|| {
            let entry = |i: &u32| &self.entries[*i as usize];
            let mut order: Vec<u32> = (0..self.count()).filter(|i| !entry(i).tls).collect();
            order.sort_unstable_by(|a, b| {
                let by_rank = || (entry(b).rank(), b).cmp(&(entry(a).rank(), a));
                entry(a).addr.cmp(&entry(b).addr).then_with(by_rank)
            });
            let mut highest = 0;
            let reach = order
                .iter()
                .map(|i| {
                    highest = highest.max(entry(i).end());
                    highest
                })
                .collect();
            ByAddress { order, reach }
        })
    }

    /// The symbol called `name`: default version first, then global ones.
    pub fn find(&self, name: &str) -> Option<&Entry> {
        let order = self.by_name();
        let at = order.partition_point(|i| &*self.entries[*i as usize].name < name);
        let entry = &self.entries[*order.get(at)? as usize];
        (&*entry.name == name).then_some(entry)
    }

    /// The innermost symbol that covers `addr`. A symbol without a size covers only its own address.
    pub fn covering(&self, addr: u64, mut wanted: impl FnMut(&Entry) -> bool) -> Option<&Entry> {
        let ByAddress { order, reach } = self.by_addr();
        let mut at = order.partition_point(|i| self.entries[*i as usize].addr <= addr);
        let last = at.saturating_sub(MAX_CONTAINED);
        while at > last {
            at -= 1;
            let entry = &self.entries[order[at] as usize];
            if (entry.addr == addr || addr < entry.end()) && wanted(entry) {
                return Some(entry);
            }
            if reach[at] <= addr && entry.addr < addr {
                return None;
            }
        }
        None
    }

    /// The name of the source file that an entry is filed under.
    pub fn file_name(&self, entry: &Entry) -> Option<&str> {
        let at = usize::try_from(entry.file.checked_sub(1)?).ok()?;
        self.files.get(at).map(|name| &**name)
    }

    /// The local symbols filed under the same source file as `entry`, which is one of them; none if it is under none.
    pub fn of_same_file<'t>(&'t self, entry: &'t Entry) -> impl Iterator<Item = &'t Entry> {
        self.entries.iter().filter(move |e| e.file != 0 && e.file == entry.file)
    }

    /// All symbols, in the order of the table.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(entries: Vec<Entry>) -> SymbolTable {
        SymbolTable { entries, ..SymbolTable::default() }
    }

    fn entry(name: &str, addr: u64, size: u64) -> Entry {
        let name = name.into();
        Entry { name, addr, size, tls: false, function: true, global: true, old_version: false, file: 0 }
    }

    #[test]
    fn the_innermost_symbol_wins_and_gaps_stay_gaps() {
        let table = table(vec![
            entry("outer", 0x100, 0x100),
            entry("inner", 0x140, 0x10),
            entry("label", 0x180, 0),
            entry("far", 0x400, 0x10),
        ]);
        let name = |a| table.covering(a, |_| true).map(|e| e.name.to_string());
        assert_eq!(name(0x148).as_deref(), Some("inner"));
        assert_eq!(name(0x160).as_deref(), Some("outer"));
        assert_eq!(name(0x180).as_deref(), Some("label"));
        assert_eq!(name(0x181).as_deref(), Some("outer"));
        assert_eq!(name(0x200), None);
        assert_eq!(name(0x40f).as_deref(), Some("far"));
        assert_eq!(name(0x410), None);
        assert_eq!(name(u64::MAX), None);
    }

    #[test]
    fn the_default_version_and_the_global_alias_win() {
        let mut old = entry("f", 0x10, 4);
        old.old_version = true;
        let mut local = entry("f", 0x20, 4);
        local.global = false;
        let table = table(vec![old, local, entry("f", 0x30, 4), entry("g", 0x30, 4)]);
        assert_eq!(table.find("f").map(|e| e.addr), Some(0x30));
        assert!(table.find("e").is_none() && table.find("h").is_none());
    }

    #[test]
    fn the_search_for_what_covers_an_address_ends() {
        let table = table((0..3 * MAX_CONTAINED as u64).map(|n| entry("all", n, u64::MAX)).collect());
        let mut seen = 0;
        let found = table.covering(4 * MAX_CONTAINED as u64, |_| {
            seen += 1;
            false
        });
        assert!(found.is_none());
        assert_eq!(seen, MAX_CONTAINED);
    }

    #[test]
    fn sizes_that_overflow_do_no_harm() {
        let table = table(vec![entry("huge", u64::MAX - 4, u64::MAX)]);
        assert!(table.covering(u64::MAX - 1, |_| true).is_some());
        assert!(table.covering(3, |_| true).is_none());
    }
}
