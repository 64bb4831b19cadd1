//! One symbol table, indexed by name and by address.

use std::borrow::Cow;
use std::ffi::CStr;
use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use object::elf as raw;
use object::read::elf::{FileHeader, SectionHeader, Sym};
use object::{Endian, Endianness, SymbolIndex};

use super::Allowance;
use crate::source::{FilePart, Source};

/// Symbols looked at for one that covers an address. Those that do are next to it, but for what they contain.
const MAX_CONTAINED: usize = 4096;

/// So many addresses are looked up by going through all symbols. Of most files a few are asked for, and a table or an order of them costs
/// more.
const UNSORTED: u32 = 16;

/// A defined symbol.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    /// Where in the string table its name without version suffix is.
    name: Range<u32>,
    /// Whether the name begins with `_`.
    underscored: bool,
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

/// Whether a symbol counts that covers an address, by itself and its name.
pub(super) type Wanted<'w> = &'w dyn Fn(&Entry, &[u8]) -> bool;

impl Entry {
    /// An entry of a symbol that is [defined](is_defined), under no source file; `None` for one that names nothing. `hidden`: it is not the
    /// default version of its name.
    fn of<E: FileHeader<Endian = Endianness>>(
        endian: Endianness,
        symbol: &E::Sym,
        full: &[u8],
        hidden: impl FnOnce() -> bool,
    ) -> Option<Entry> {
        let suffix = full.iter().position(|byte| *byte == b'@');
        let begin = symbol.st_name(endian);
        let end = begin.checked_add(u32::try_from(suffix.unwrap_or(full.len())).ok()?)?;
        let suffix_old = suffix.is_some_and(|at| full.get(at + 1) != Some(&b'@'));
        // `$x`, `$d.1`: AArch64 mapping symbols (AAELF64 5.5.4), not names of anything.
        if begin == end || full.starts_with(b"$") {
            return None;
        }
        let kind = symbol.st_type();
        Some(Entry {
            name: begin..end,
            underscored: full.starts_with(b"_"),
            addr: symbol.st_value(endian).into(),
            size: symbol.st_size(endian).into(),
            tls: kind == raw::STT_TLS,
            function: kind == raw::STT_FUNC || kind == raw::STT_GNU_IFUNC,
            global: !symbol.is_local(),
            old_version: hidden() || suffix_old,
            file: 0,
        })
    }

    /// Whether this entry is the better name for an address than `best`: it begins later, or at the same place and has the better rank.
    /// Both cover the address, and `best` comes first in the table.
    fn is_better(&self, best: &Entry) -> bool {
        (best.addr, self.rank()) < (self.addr, best.rank())
    }

    /// True for a name that linkers give to the begin or end of a section: no variable that lies there is called so.
    pub fn is_mark(&self, name: &[u8]) -> bool {
        const MARKS: [&str; 8] =
            ["__TMC_END__", "__bss_start", "_edata", "edata", "_end", "end", "__data_start", "data_start"];
        self.size == 0 && !self.function && MARKS.iter().any(|mark| name == mark.as_bytes())
    }

    /// Orders aliases: the name a reader would expect comes first. Symbols that linkers make for the ends of sections (`__TMC_END__`,
    /// `__bss_start`, `_edata`) have no size, and name no variable that begins there.
    fn rank(&self) -> (bool, bool, bool, bool, bool) {
        let is_mark = self.size == 0 && !self.function;
        (is_mark, self.old_version, !self.global, !self.function, self.underscored)
    }

    fn end(&self) -> u64 {
        self.addr.saturating_add(self.size)
    }
}

/// Whether the version of a symbol in `.gnu.version` is not the default one of its name (LSB 5.0, 10.7.2).
fn is_hidden(endian: Endianness, versions: &[raw::Versym<Endianness>], index: SymbolIndex) -> bool {
    versions.get(index.0).is_some_and(|version| version.0.get(endian).is_hidden())
}

/// False for what is only referred to, and for names of sections and source files. SHN_ABS covers the names of version nodes, which older
/// linkers put among the symbols.
fn is_defined<E: FileHeader<Endian = Endianness>>(endian: Endianness, symbol: &E::Sym) -> bool {
    !matches!(symbol.st_shndx(endian), raw::SHN_UNDEF | raw::SHN_ABS)
        && !matches!(symbol.st_type(), raw::STT_SECTION | raw::STT_FILE)
}

/// A symbol table of a file, read when more than a few addresses are looked up there, or a name.
#[derive(Debug, Default)]
pub(super) struct Lazy {
    pub table: OnceLock<SymbolTable>,
    /// How many addresses were looked up in the file, and what that has left of its allowance.
    in_file: Mutex<(u32, Option<Allowance>)>,
}

impl Lazy {
    /// Looks an address up [in the file](SymbolTable::covering_in_file), if that is better than a table.
    pub fn in_file<T>(&self, data: &Source, look_up: impl FnOnce(&mut Allowance) -> T) -> Option<T> {
        if self.table.get().is_some() {
            return None;
        }
        let mut in_file = self.in_file.lock().unwrap_or_else(PoisonError::into_inner);
        let (looked_up, left) = &mut *in_file;
        *looked_up = looked_up.saturating_add(1);
        (*looked_up <= UNSORTED).then(|| look_up(left.get_or_insert_with(|| Allowance::of(data))))
    }
}

/// The defined symbols of one table.
#[derive(Debug, Default)]
pub(super) struct SymbolTable {
    entries: Vec<Entry>,
    /// The string table: names are looked up there and not copied, for most of them nobody asks.
    strings: Option<FilePart>,
    /// Names of the source files (`STT_FILE`), in the order of the table.
    files: Vec<Box<str>>,
    /// Hashes of names and indices, sorted. Of most files only names or only addresses are asked for, so each order is made when it is
    /// needed.
    by_name: OnceLock<Vec<(u32, u32)>>,
    by_addr: OnceLock<ByAddress>,
    /// How many addresses were looked up before that order was made.
    looked_up: AtomicU32,
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
    pub fn read<E: FileHeader<Endian = Endianness>>(
        source: &Arc<Source>,
        dynamic: bool,
    ) -> object::Result<SymbolTable> {
        let data: &Source = source;
        let header = E::parse(data)?;
        let endian = header.endian()?;
        let sections = header.sections(endian, data)?;
        let kind = if dynamic { raw::SHT_DYNSYM } else { raw::SHT_SYMTAB };
        let symbols = sections.symbols(endian, data, kind)?;
        if symbols.is_empty() {
            return Ok(SymbolTable::default());
        }
        let versions = if dynamic { sections.gnu_versym(endian, data)? } else { None };
        let place = sections.section(symbols.string_section())?.file_range(endian);
        let place = place.and_then(|(at, length)| Some(at.try_into().ok()?..at.checked_add(length)?.try_into().ok()?));
        let Some(strings) = place.and_then(|place| FilePart::new(source, place)) else {
            return Ok(SymbolTable::default());
        };
        let mut table = SymbolTable { entries: Vec::with_capacity(symbols.len()), ..SymbolTable::default() };
        let mut file = 0;
        let mut left = Allowance::of(data);
        // `None` at last when the names are too long together.
        let mut name_of = |symbol: &E::Sym| {
            let rest = strings.get(symbol.st_name(endian) as usize..).unwrap_or_default();
            left.name(CStr::from_bytes_until_nul(rest).map(CStr::to_bytes), data)
        };
        for (index, symbol) in symbols.enumerate() {
            // The local symbols of a source file come behind its name (gABI, "Symbol Table"). Linkers put an empty name
            // before those that belong to none.
            if symbol.st_type() == raw::STT_FILE {
                let Some(name) = name_of(symbol) else { return Ok(SymbolTable::default()) };
                let name = name.filter(|name| !name.is_empty());
                let is_named = name.is_some();
                table.files.extend(name.map(|name| String::from_utf8_lossy(name).into()));
                file = if is_named { u32::try_from(table.files.len()).unwrap_or(0) } else { 0 };
            }
            if !is_defined::<E>(endian, symbol) {
                continue;
            }
            let Some(name) = name_of(symbol) else { return Ok(SymbolTable::default()) };
            let hidden = || versions.is_some_and(|(of_all, _)| is_hidden(endian, of_all, index));
            let entry = name.and_then(|name| Entry::of::<E>(endian, symbol, name, hidden));
            table.entries.extend(entry.map(|entry| Entry { file: if entry.global { 0 } else { file }, ..entry }));
        }
        table.strings = Some(strings);
        Ok(table)
    }

    /// Finds what [`SymbolTable::covering`] finds, with its name, in the file itself. No table is made, and only names of what covers
    /// `addr` are read. `left` is for all look-ups in the file together. When it is spent, nothing is found, as in the table of such a
    /// file. The source file is left out.
    ///
    /// # Errors
    /// As [`SymbolTable::read`].
    pub fn covering_in_file<E: FileHeader<Endian = Endianness>>(
        data: &Source,
        dynamic: bool,
        left: &mut Allowance,
        addr: u64,
        wanted: Wanted,
    ) -> object::Result<Option<(Entry, String)>> {
        let header = E::parse(data)?;
        let endian = header.endian()?;
        let sections = header.sections(endian, data)?;
        let kind = if dynamic { raw::SHT_DYNSYM } else { raw::SHT_SYMTAB };
        let symbols = sections.symbols(endian, data, kind)?;
        let versions = if dynamic { sections.gnu_versym(endian, data)? } else { None };
        let mut best: Option<(Entry, &[u8])> = None;
        for (index, symbol) in symbols.enumerate() {
            let begin: u64 = symbol.st_value(endian).into();
            if begin > addr {
                continue;
            }
            let size: u64 = symbol.st_size(endian).into();
            let is_covered = begin == addr || addr < begin.saturating_add(size);
            if !is_covered || symbol.st_type() == raw::STT_TLS || !is_defined::<E>(endian, symbol) {
                continue;
            }
            let Some(name) = left.name(symbols.symbol_name(endian, symbol), data) else { return Ok(None) };
            let hidden = || versions.is_some_and(|(of_all, _)| is_hidden(endian, of_all, index));
            let Some(name) = name else { continue };
            let Some(entry) = Entry::of::<E>(endian, symbol, name, hidden) else { continue };
            let name = name.get(..entry.name.len()).unwrap_or_default();
            if wanted(&entry, name) && best.as_ref().is_none_or(|(best, _)| entry.is_better(best)) {
                best = Some((entry, name));
            }
        }
        Ok(best.map(|(entry, name)| (entry, String::from_utf8_lossy(name).into_owned())))
    }

    /// Whether `.dynsym` defines `name` for others, by the hash table that the dynamic linker uses (`DT_GNU_HASH`). `None` if the file
    /// has no usable one, or the symbol is one that [`SymbolTable::read`] leaves out. Not the parser's look-up: it shifts by a number of
    /// the file, and compares any number of long names.
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
                    return (is_defined::<E>(endian, symbol) && !symbol.is_local()).then_some(true);
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

    fn bytes_of(&self, entry: &Entry) -> &[u8] {
        let place = entry.name.start as usize..entry.name.end as usize;
        self.strings.as_ref().and_then(|strings| strings.get(place)).unwrap_or_default()
    }

    /// The name of an entry, without version suffix.
    pub fn name_of(&self, entry: &Entry) -> Cow<'_, str> {
        String::from_utf8_lossy(self.bytes_of(entry))
    }

    /// Whether the name of an entry begins with `prefix`.
    pub fn has_prefix(&self, entry: &Entry, prefix: &str) -> bool {
        self.bytes_of(entry).starts_with(prefix.as_bytes())
    }

    /// Names of global symbols, in the order of the table, as far as they are text.
    pub fn global_names(&self) -> impl Iterator<Item = &str> {
        self.texts(|entry| entry.global)
    }

    fn texts<'t>(&'t self, wanted: impl Fn(&Entry) -> bool + 't) -> impl Iterator<Item = &'t str> {
        let entries = self.entries.iter().filter(move |entry| wanted(entry));
        entries.filter_map(|entry| str::from_utf8(self.bytes_of(entry)).ok())
    }

    fn count(&self) -> u32 {
        u32::try_from(self.entries.len()).unwrap_or(u32::MAX)
    }

    fn by_name(&self) -> &[(u32, u32)] {
        self.by_name.get_or_init(|| {
            let hashed = |index| raw::gnu_hash(self.bytes_of(&self.entries[index as usize]));
            let mut order: Vec<(u32, u32)> = (0..self.count()).map(|index| (hashed(index), index)).collect();
            order.sort_unstable();
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
        let hash = raw::gnu_hash(name.as_bytes());
        let same = order.get(order.partition_point(|(other, _)| *other < hash)..)?.iter();
        let same = same.take_while(|(other, _)| *other == hash).map(|(_, index)| &self.entries[*index as usize]);
        same.filter(|entry| self.bytes_of(entry) == name.as_bytes()).min_by_key(|entry| entry.rank())
    }

    /// The innermost symbol that covers `addr`. A symbol without a size covers only its own address.
    pub fn covering(&self, addr: u64, wanted: Wanted) -> Option<&Entry> {
        let is_sorted = self.by_addr.get().is_some();
        if is_sorted || self.looked_up.fetch_add(1, Ordering::Relaxed) >= UNSORTED {
            return self.covering_by_order(addr, wanted);
        }
        self.covering_by_search(addr, wanted)
    }

    /// The same from all symbols, as they are in the file. In no sound file do so many lie in one that the other way ends before.
    fn covering_by_search(&self, addr: u64, wanted: Wanted) -> Option<&Entry> {
        let mut best: Option<&Entry> = None;
        // A loop without closures: most symbols only have their addresses compared.
        for entry in &self.entries {
            if entry.addr > addr || entry.tls || entry.addr != addr && addr >= entry.end() {
                continue;
            }
            if wanted(entry, self.bytes_of(entry)) && best.is_none_or(|best| entry.is_better(best)) {
                best = Some(entry);
            }
        }
        best
    }

    fn covering_by_order(&self, addr: u64, wanted: Wanted) -> Option<&Entry> {
        let ByAddress { order, reach } = self.by_addr();
        let mut at = order.partition_point(|i| self.entries[*i as usize].addr <= addr);
        let last = at.saturating_sub(MAX_CONTAINED);
        while at > last {
            at -= 1;
            let entry = &self.entries[order[at] as usize];
            if (entry.addr == addr || addr < entry.end()) && wanted(entry, self.bytes_of(entry)) {
                return Some(entry);
            }
            if reach[at] <= addr && entry.addr < addr {
                return None;
            }
        }
        None
    }

    /// Where the first function above `addr` begins that has a size.
    pub fn next_function(&self, addr: u64) -> Option<u64> {
        let order = &self.by_addr().order;
        let at = order.partition_point(|i| self.entries[*i as usize].addr <= addr);
        let later = order[at..].iter().map(|i| &self.entries[*i as usize]);
        later.into_iter().find(|entry| entry.function && entry.size > 0).map(|entry| entry.addr)
    }

    /// The name of the source file that an entry is filed under.
    pub fn file_name(&self, entry: &Entry) -> Option<&str> {
        let at = usize::try_from(entry.file.checked_sub(1)?).ok()?;
        self.files.get(at).map(|name| &**name)
    }

    /// The names of local symbols filed under the same source file as `entry`, which is one of them; none if it is under none.
    pub fn of_same_file(&self, entry: &Entry) -> impl Iterator<Item = &str> {
        let file = entry.file;
        self.texts(move |other| file != 0 && other.file == file)
    }

    /// All symbols, in the order of the table.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names of all tables here.
    const NAMES: &str = "outer inner label far f g all huge";

    fn table(entries: Vec<Entry>) -> SymbolTable {
        let source = Arc::new(Source::Bytes(NAMES.into()));
        SymbolTable { entries, strings: FilePart::new(&source, 0..NAMES.len()), ..SymbolTable::default() }
    }

    fn entry(name: &str, addr: u64, size: u64) -> Entry {
        let at = NAMES.find(name).expect("one of the names") as u32;
        let name = at..at + name.len() as u32;
        let underscored = false;
        Entry { name, underscored, addr, size, tls: false, function: true, global: true, old_version: false, file: 0 }
    }

    #[test]
    fn the_innermost_symbol_wins_and_gaps_stay_gaps() {
        let table = table(vec![
            entry("outer", 0x100, 0x100),
            entry("inner", 0x140, 0x10),
            entry("label", 0x180, 0),
            entry("far", 0x400, 0x10),
        ]);
        let name = |a| {
            let found = [table.covering_by_search(a, &|_, _| true), table.covering_by_order(a, &|_, _| true)];
            let [by_search, by_order] = found.map(|found| found.map(|entry| table.name_of(entry)));
            assert_eq!(by_search, by_order, "{a:#x}");
            by_search
        };
        assert_eq!(name(0x148).as_deref(), Some("inner"));
        assert_eq!(name(0x160).as_deref(), Some("outer"));
        assert_eq!(name(0x180).as_deref(), Some("label"));
        assert_eq!(name(0x181).as_deref(), Some("outer"));
        assert_eq!(name(0x200), None);
        assert_eq!(name(0x40f).as_deref(), Some("far"));
        assert_eq!(name(0x410), None);
        assert_eq!(name(u64::MAX), None);
    }

    proptest::proptest! {
        /// Few addresses, so that symbols lie in one another and have the same address.
        #[test]
        fn the_first_looks_find_what_the_later_ones_find(
            symbols in proptest::collection::vec((0..24u64, 0..12u64, proptest::bits::u8::masked(0b1111)), 0..24)
        ) {
            let table = table(symbols.iter().map(|&(addr, size, flags)| Entry {
                tls: flags == 1,
                global: flags & 2 != 0,
                function: flags & 4 != 0,
                old_version: flags & 8 != 0,
                ..entry("all", addr, size)
            }).collect());
            for addr in 0..40 {
                let wanted = |entry: &Entry, _: &[u8]| addr % 2 == 0 || entry.function;
                let [first, later] = [table.covering_by_search(addr, &wanted), table.covering_by_order(addr, &wanted)];
                proptest::prop_assert!(first.map(std::ptr::from_ref) == later.map(std::ptr::from_ref), "{addr}");
            }
        }
    }

    /// Of this very test program, and of the C library it runs with: one has local symbols, the other versions of names.
    #[test]
    fn what_is_found_in_the_file_is_what_its_table_has() {
        type Header = raw::FileHeader64<Endianness>;
        let maps = std::fs::read_to_string("/proc/self/maps").expect("own mappings");
        let paths = maps.lines().filter_map(|line| line.find('/').and_then(|at| line.get(at..)));
        let files: std::collections::BTreeSet<&str> = paths.filter(|path| !path.starts_with("/dev/")).collect();
        let mut compared = [0; 2];
        for path in files {
            let source = Arc::new(Source::open(path.as_ref()).expect("a file that is mapped here"));
            for dynamic in [false, true] {
                let table = SymbolTable::read::<Header>(&source, dynamic).unwrap_or_default();
                let step = (table.entries.len() / 100).max(1);
                for entry in table.entries.iter().step_by(step) {
                    for addr in [entry.addr.wrapping_sub(1), entry.addr, entry.addr + entry.size / 2, entry.end()] {
                        let wanted: Wanted = &|entry, name| entry.function || !entry.is_mark(name);
                        let left = &mut Allowance::of(&source);
                        let found = SymbolTable::covering_in_file::<Header>(&source, dynamic, left, addr, wanted);
                        let found = found.expect("a sound table").map(|(entry, name)| (name, entry.addr, entry.size));
                        let of_table = table.covering_by_order(addr, wanted);
                        let of_table =
                            of_table.map(|entry| (table.name_of(entry).into_owned(), entry.addr, entry.size));
                        assert_eq!(found, of_table, "{path} {addr:#x}");
                        compared[usize::from(dynamic)] += usize::from(found.is_some());
                    }
                }
            }
        }
        assert!(compared.iter().all(|compared| *compared > 100), "{compared:?}");
    }

    #[test]
    fn all_look_ups_in_a_file_have_one_allowance() {
        let (lazy, source) = (Lazy::default(), Source::Bytes(vec![0; 10]));
        let take = |bytes| lazy.in_file(&source, |left| left.take(bytes));
        assert_eq!([take(50), take(30), take(1)], [Some(Some(())), Some(Some(())), Some(None)]);
        let others = (3..2 * UNSORTED).filter(|_| take(0).is_some()).count();
        assert_eq!(others, UNSORTED as usize - 3);
    }

    #[test]
    fn addresses_beyond_the_first_few_are_looked_up_in_order() {
        let table = table(vec![entry("f", 0x10, 4)]);
        for looked_up in 0..2 * UNSORTED {
            assert_eq!(table.by_addr.get().is_some(), looked_up > UNSORTED, "after {looked_up}");
            assert!(table.covering(0x12, &|_, _| true).is_some(), "after {looked_up}");
        }
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

    /// As `__TMC_END__` at the first variable of `.bss`.
    #[test]
    fn a_variable_comes_before_a_global_symbol_without_a_size() {
        let mark = Entry { function: false, ..entry("f", 0x10, 0) };
        let variable = Entry { function: false, global: false, ..entry("g", 0x10, 4) };
        let table = table(vec![mark, variable]);
        for found in [table.covering_by_search(0x10, &|_, _| true), table.covering_by_order(0x10, &|_, _| true)] {
            assert_eq!(found.map(|entry| entry.size), Some(4));
        }
    }

    #[test]
    fn the_search_for_what_covers_an_address_ends() {
        let table = table((0..3 * MAX_CONTAINED as u64).map(|n| entry("all", n, u64::MAX)).collect());
        let seen = std::cell::Cell::new(0);
        let found = table.covering_by_order(4 * MAX_CONTAINED as u64, &|_, _| {
            seen.set(seen.get() + 1);
            false
        });
        assert!(found.is_none());
        assert_eq!(seen.get(), MAX_CONTAINED);
    }

    #[test]
    fn sizes_that_overflow_do_no_harm() {
        let table = table(vec![entry("huge", u64::MAX - 4, u64::MAX)]);
        assert!(table.covering(u64::MAX - 1, &|_, _| true).is_some());
        assert!(table.covering(3, &|_, _| true).is_none());
    }
}
