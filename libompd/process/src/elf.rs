//! ELF files on disk: symbols, code bytes, relocations, DWARF sections, debug companions.
//!
//! What is needed of a file is read, and every table is parsed when first asked for. All addresses are the file's own (SVMA).
//! Files come from wherever the target points, so nothing in them is trusted: what is malformed is absent.

mod code;
mod debug;
mod debuginfod;
mod placed;
mod program;
mod symbols;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::io::Read;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use object::elf::{FileHeader32, FileHeader64, PF_W, PF_X, PT_LOAD, SHT_NOBITS};
use object::read::elf::{Dyn, FileHeader, ProgramHeader, SectionHeader};
use object::{Endianness, Object, ObjectSection};

use crate::arch::{Arch, ByteOrder};
use crate::error::ElfError;
use crate::machine::Machine;
use crate::memory::Addr;
use crate::source::{FilePart, Source};
use crate::symbol::{BuildId, Symbol, SymbolOrigin};

pub use code::Reloc;
pub(crate) use code::relative;
pub(crate) use debug::DebugSearch;
pub(crate) use debuginfod::Debuginfod;
pub(crate) use placed::code_ranges;
pub use program::SourceFile;
use program::TlsSegment;
use symbols::{Entry, Lazy, SymbolTable, Wanted};

/// Sections that would decompress to more than this are treated as absent.
const MAX_SECTION: u64 = 1 << 30;
/// What all compressed sections of a file may decompress to for each byte of the file. Debug information takes a third to a
/// tenth when it is compressed. So what is decompressed in all is in proportion to the files there are.
const MAX_EXPANSION: u64 = 16;
/// Files may have this much in any case.
const FREE_EXPANSION: u64 = 1 << 20;
/// The most `.gnu_debugdata` may decompress to.
const MAX_MINI_DEBUG: u64 = 64 << 20;
/// Section headers of a file that is used. Linkers write a few dozen, and every look-up goes through all of them.
const MAX_SECTIONS: usize = 16 << 10;
/// Segments of one file; more are not looked at. Linkers write a dozen.
const MAX_LOADS: usize = 1024;
/// Segments that together are so many times as long as the file show the same bytes over and over: the rest is left out.
const MAX_OVERLAP: u64 = 4;
/// Memory the xz decoder may use, in KiB (its dictionary size comes from the file).
const XZ_MEMORY_KIB: u32 = 128 << 10;

/// Calls `$f::<header type>` for the class of the file.
macro_rules! by_class {
    ($file:expr, $($f:ident)::+, $($arg:expr),*) => {
        if $file.arch.pointer_bytes == 8 {
            $($f)::+::<FileHeader64<Endianness>>($($arg),*)
        } else {
            $($f)::+::<FileHeader32<Endianness>>($($arg),*)
        }
    };
}
use by_class;

/// Addresses of sections and their places in the file, by name.
type PlainSections = BTreeMap<Vec<u8>, (u64, Range<usize>)>;

/// A loadable segment (`PT_LOAD`), as far as the file has its bytes.
#[derive(Debug, Clone, Copy)]
struct Load {
    vaddr: u64,
    offset: u64,
    filesz: u64,
    exec: bool,
    write: bool,
}

/// An ELF file, read and parsed on demand. Addresses are the file's own (SVMA).
pub struct ElfFile {
    path: PathBuf,
    source: Arc<Source>,
    arch: Arch,
    build_id: Option<BuildId>,
    loads: Vec<Load>,
    tls: Option<TlsSegment>,
    search: DebugSearch,
    dynsym: Lazy,
    symtab: Lazy,
    mini: OnceLock<SymbolTable>,
    frames: OnceLock<Vec<Range<u64>>>,
    relocations: OnceLock<BTreeMap<u64, Reloc>>,
    /// See [`plain_sections`].
    plain: OnceLock<PlainSections>,
    /// What its compressed sections would decompress to together.
    expanded: OnceLock<u64>,
    companion: OnceLock<(Option<Arc<ElfFile>>, Vec<String>)>,
    supplement: OnceLock<(Option<Arc<ElfFile>>, Vec<String>)>,
    /// See [`ElfFile::is_jit`].
    jit: bool,
}

impl fmt::Debug for ElfFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ElfFile").field("path", &self.path).field("build_id", &self.build_id).finish_non_exhaustive()
    }
}

impl ElfFile {
    /// Opens the regular file at `path`.
    ///
    /// # Errors
    /// [`ElfError`] if it cannot be read, is no regular file, or its ELF headers are malformed.
    pub fn open(path: &Path) -> Result<ElfFile, ElfError> {
        ElfFile::parse(path.to_owned(), Source::open(path)?)
    }

    /// An ELF file whose bytes are already at hand, such as the vdso read from the target. `name` serves as its path.
    ///
    /// # Errors
    /// [`ElfError::Malformed`] if the bytes are not an ELF file.
    pub fn from_bytes(name: &str, bytes: Vec<u8>) -> Result<ElfFile, ElfError> {
        ElfFile::parse(PathBuf::from(name), Source::Bytes(bytes))
    }

    fn parse(path: PathBuf, source: Source) -> Result<ElfFile, ElfError> {
        let mut file = ElfFile {
            path,
            source: Arc::new(source),
            // Until its headers have been read.
            arch: Arch { machine: Machine::of_elf(0), pointer_bytes: 8, byte_order: ByteOrder::Little },
            build_id: None,
            loads: Vec::new(),
            tls: None,
            search: DebugSearch::default(),
            dynsym: Lazy::default(),
            symtab: Lazy::default(),
            mini: OnceLock::new(),
            frames: OnceLock::new(),
            relocations: OnceLock::new(),
            plain: OnceLock::new(),
            expanded: OnceLock::new(),
            companion: OnceLock::new(),
            supplement: OnceLock::new(),
            jit: false,
        };
        let ident = file.source().start(6);
        let parsed = match ident {
            [0x7f, b'E', b'L', b'F', 2, _] => file.headers::<FileHeader64<Endianness>>(),
            [0x7f, b'E', b'L', b'F', 1, _] => file.headers::<FileHeader32<Endianness>>(),
            [0x7f, b'E', b'L', b'F', ..] => Err("neither 32 nor 64 bit".to_owned()),
            _ => Err("it does not begin with the ELF magic number".to_owned()),
        };
        match parsed {
            Ok((arch, build_id, loads, tls)) => {
                (file.arch, file.build_id, file.loads, file.tls) = (arch, build_id, loads, tls);
                Ok(file)
            }
            Err(why) => Err(ElfError::Malformed { path: file.path, why }),
        }
    }

    #[allow(clippy::type_complexity, reason = "the four values are put into the struct by the only caller")]
    fn headers<E: FileHeader<Endian = Endianness>>(
        &self,
    ) -> Result<(Arch, Option<BuildId>, Vec<Load>, Option<TlsSegment>), String> {
        let elf = object::read::elf::ElfFile::<E, _>::parse(self.source()).map_err(|e| e.to_string())?;
        let endian = elf.endian();
        let arch = Arch {
            machine: Machine::of_elf(elf.elf_header().e_machine(endian).0),
            pointer_bytes: if elf.is_64() { 8 } else { 4 },
            byte_order: if elf.is_little_endian() { ByteOrder::Little } else { ByteOrder::Big },
        };
        let sections = elf.elf_section_table().len();
        if sections > MAX_SECTIONS {
            return Err(format!("{sections} section headers are more than any program has"));
        }
        let build_id = elf.build_id().ok().flatten().filter(|id| !id.is_empty()).map(|id| BuildId(id.to_vec()));
        let headers = elf.elf_program_headers();
        let size = self.source().len() as u64;
        let mut left = size.saturating_mul(MAX_OVERLAP);
        let loads = headers
            .iter()
            .filter(|p| p.p_type(endian) == PT_LOAD)
            .map(|p| {
                let (vaddr, offset): (u64, u64) = (p.p_vaddr(endian).into(), p.p_offset(endian).into());
                let filesz = Into::<u64>::into(p.p_filesz(endian)).min(size.saturating_sub(offset));
                let flags = p.p_flags(endian);
                Load { vaddr, offset, filesz, exec: flags.contains(PF_X), write: flags.contains(PF_W) }
            })
            .filter(|load| load.filesz > 0)
            .map_while(|load| {
                left = left.checked_sub(load.filesz)?;
                Some(load)
            })
            .take(MAX_LOADS)
            .collect();
        let tls = TlsSegment::find(headers, endian);
        Ok((arch, build_id, loads, tls))
    }

    /// Adds directories in which separate debug files are looked for, before `/usr/lib/debug`. For files that are opened
    /// by themselves; those of a target know them from [`crate::OpenOptions`].
    pub fn with_debug_dirs(mut self, dirs: &[PathBuf]) -> ElfFile {
        self.search.debug_dirs.extend_from_slice(dirs);
        self
    }

    /// Sets where a separate debug file is looked for.
    pub(crate) fn with_debug_search(mut self, search: DebugSearch) -> ElfFile {
        self.search = search;
        self
    }

    /// The bytes of the file.
    pub(crate) fn source(&self) -> &Source {
        &self.source
    }

    /// The path the file was opened by (for a live process often one below `/proc`).
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Bytes of the file.
    pub fn size(&self) -> u64 {
        self.source().len() as u64
    }

    /// Why a part of the file, or of the one with its debug information, could not be read when it was wanted. What is in that part is
    /// taken for absent.
    pub fn unread(&self) -> Option<String> {
        if let Some(why) = self.source().failed() {
            return Some(format!("a part of the file cannot be read ({why})"));
        }
        let companion = self.companion.get()?.0.as_deref()?;
        let why = companion.source().failed()?;
        Some(format!("a part of its debug file {} cannot be read ({why})", companion.path.display()))
    }

    /// Machine, pointer width and byte order of the file.
    pub fn arch(&self) -> Arch {
        self.arch
    }

    /// Build-id note of the file.
    pub fn build_id(&self) -> Option<&BuildId> {
        self.build_id.as_ref()
    }

    /// True if it is no file, but what a JIT compiler has registered for code that it made.
    pub fn is_jit(&self) -> bool {
        self.jit
    }

    /// `DT_SONAME`.
    pub fn soname(&self) -> Option<String> {
        by_class!(self, dynamic_strings, self.source(), object::elf::DT_SONAME).into_iter().next()
    }

    /// `DT_NEEDED` entries, in order.
    pub fn needed(&self) -> Vec<String> {
        by_class!(self, dynamic_strings, self.source(), object::elf::DT_NEEDED)
    }

    /// Names of the versions the file defines (`.gnu.version_d` without the base entry), such as `OMP_5.1`.
    pub fn version_nodes(&self) -> Vec<String> {
        by_class!(self, version_nodes, self.source()).unwrap_or_default()
    }

    /// See [`crate::Module::symbol`]; addresses are the file's.
    pub fn symbol(&self, name: &str) -> Option<Symbol> {
        self.first_in_tables(self.exports_by_hash(name) != Some(false), |table| table.find(name))
    }

    /// The address of a variable in `.dynsym` or `.symtab`. For a name that is asked for once: no table of all symbols is made.
    pub fn variable(&self, name: &str) -> Option<Addr> {
        let find = |dynamic| by_class!(self, SymbolTable::value_of, self.source(), dynamic, name);
        find(true).or_else(|| find(false)).map(Addr)
    }

    /// True if `.dynsym` defines `name` for others.
    pub fn exports(&self, name: &str) -> bool {
        self.exports_by_hash(name).unwrap_or_else(|| self.dynsym().find(name).is_some_and(|e| e.global))
    }

    /// Whether `.dynsym` defines `name` for others, without a table of all symbols: most files are asked for few names. `None` if there
    /// is such a table, which answers faster, or if only one can tell.
    fn exports_by_hash(&self, name: &str) -> Option<bool> {
        match self.dynsym.table.get() {
            Some(_) => None,
            None => by_class!(self, SymbolTable::is_exported, self.source(), name),
        }
    }

    /// Names that `.dynsym` defines for others, as far as they are text, in the order of the table; a name with several versions repeats.
    pub fn exported_names(&self) -> impl Iterator<Item = &str> {
        self.dynsym().global_names()
    }

    /// Symbols that `.dynsym` defines for others, in the order of the table; addresses are the file's. A name has one for each version.
    pub fn exported_symbols(&self) -> impl Iterator<Item = Symbol> {
        let table = self.dynsym();
        table.entries().iter().filter(|entry| entry.global).map(|entry| named(table, entry, SymbolOrigin::Dynsym))
    }

    /// Symbols of `.symtab` whose names begin with `prefix`, in the order of the table; addresses are the file's.
    pub fn symbols_with_prefix(&self, prefix: &str) -> impl Iterator<Item = Symbol> {
        let table = self.symtab();
        let wanted = table.entries().iter().filter(move |e| table.has_prefix(e, prefix));
        wanted.map(|entry| named(table, entry, SymbolOrigin::Symtab))
    }

    /// See [`crate::Module::symbol_at`]; addresses are the file's.
    pub fn symbol_at(&self, addr: Addr) -> Option<(Symbol, u64)> {
        let wanted: Wanted = &|entry, name| !entry.is_mark(name);
        let own = self.covering(addr.0, wanted);
        let (entry, name, origin) = own.or_else(|| {
            let (entry, name) = self.separate_debug_file()?.covering_in(false, addr.0, wanted)?;
            Some((entry, name, SymbolOrigin::DebugFile))
        })?;
        let distance = addr.0.checked_sub(entry.addr)?;
        let Entry { addr, size, tls, .. } = entry;
        Some((Symbol { name: name.into_owned(), addr: Addr(addr), size, tls, origin }, distance))
    }

    /// The symbol of this very file that covers `addr`, with its name.
    fn covering(&self, addr: u64, wanted: Wanted) -> Option<(Entry, Cow<'_, str>, SymbolOrigin)> {
        let of = |(entry, name), origin| Some((entry, name, origin));
        let of_mini = || {
            let entry = self.mini().covering(addr, wanted)?;
            Some((entry.clone(), self.mini().name_of(entry)))
        };
        let dynsym = self.covering_in(true, addr, wanted).and_then(|found| of(found, SymbolOrigin::Dynsym));
        let symtab = || self.covering_in(false, addr, wanted).and_then(|found| of(found, SymbolOrigin::Symtab));
        dynsym.or_else(symtab).or_else(|| of(of_mini()?, SymbolOrigin::MiniDebugInfo))
    }

    /// The same in `.dynsym` or `.symtab`.
    fn covering_in(&self, dynamic: bool, addr: u64, wanted: Wanted) -> Option<(Entry, Cow<'_, str>)> {
        let lazy = if dynamic { &self.dynsym } else { &self.symtab };
        let data = self.source();
        let in_file = lazy
            .in_file(data, |left| by_class!(self, SymbolTable::covering_in_file, data, dynamic, left, addr, wanted));
        if let Some(found) = in_file {
            return found.unwrap_or_default().map(|(entry, name)| (entry, name.into()));
        }
        let table = if dynamic { self.dynsym() } else { self.symtab() };
        let entry = table.covering(addr, wanted)?;
        Some((entry.clone(), table.name_of(entry)))
    }

    /// Asks the tables in order of [`SymbolOrigin`], `.dynsym` only if it is `exported`; the debug file last, because finding it costs
    /// most.
    fn first_in_tables<'a>(
        &'a self,
        exported: bool,
        ask: impl Fn(&'a SymbolTable) -> Option<&'a Entry>,
    ) -> Option<Symbol> {
        let of = |table: &'a SymbolTable, origin| ask(table).map(|entry| (table, entry, origin));
        let dynsym = || if exported { of(self.dynsym(), SymbolOrigin::Dynsym) } else { None };
        let symtab = || of(self.symtab(), SymbolOrigin::Symtab);
        let own = dynsym().or_else(symtab).or_else(|| of(self.mini(), SymbolOrigin::MiniDebugInfo));
        own.or_else(|| {
            let file: &'a ElfFile = self.separate_debug_file()?.as_ref();
            of(file.symtab(), SymbolOrigin::DebugFile)
        })
        .map(|(table, entry, origin)| named(table, entry, origin))
    }

    /// All symbol tables of this very file.
    fn own_tables(&self) -> [&SymbolTable; 3] {
        [self.dynsym(), self.symtab(), self.mini()]
    }

    fn dynsym(&self) -> &SymbolTable {
        self.dynsym.table.get_or_init(|| by_class!(self, SymbolTable::read, &self.source, true).unwrap_or_default())
    }

    fn symtab(&self) -> &SymbolTable {
        self.symtab.table.get_or_init(|| by_class!(self, SymbolTable::read, &self.source, false).unwrap_or_default())
    }

    /// `.gnu_debugdata`: an xz-compressed ELF file that holds just a `.symtab` (GDB manual, "MiniDebugInfo").
    fn mini(&self) -> &SymbolTable {
        self.mini.get_or_init(|| {
            let unpack = || -> Option<SymbolTable> {
                let packed = self.section(".gnu_debugdata")?;
                let mut plain = Vec::new();
                let xz = lzma_rust2::XzReader::new_mem_limit(&*packed, true, XZ_MEMORY_KIB);
                xz.take(MAX_MINI_DEBUG + 1).read_to_end(&mut plain).ok()?;
                if plain.len() as u64 > MAX_MINI_DEBUG {
                    return None;
                }
                let inner = ElfFile::from_bytes(".gnu_debugdata", plain).ok()?;
                by_class!(inner, SymbolTable::read, &inner.source, false).ok()
            };
            unpack().unwrap_or_default()
        })
    }

    /// The bytes of a section, decompressed. `None` if there is no such section or it has no bytes in the file. Also
    /// `None` if it is malformed, larger than 1 GiB, or [not to be decompressed](ElfFile::refused_sections).
    pub fn section(&self, name: &str) -> Option<Cow<'_, [u8]>> {
        by_class!(self, section, self.source(), name, || self.expands_too_far().is_none())
    }

    /// Why no compressed section of the file is used, if that is so: some bytes of a file can stand for gigabytes.
    pub fn refused_sections(&self) -> Option<String> {
        let expanded = self.expands_too_far()?;
        Some(format!(
            "{}: its compressed sections are not used: they would take {} MiB, and the file has {} bytes",
            self.path.display(),
            expanded >> 20,
            self.source().len()
        ))
    }

    fn expands_too_far(&self) -> Option<u64> {
        let expanded = *self.expanded.get_or_init(|| by_class!(self, expanded, self.source()));
        let most = (self.source().len() as u64).saturating_mul(MAX_EXPANSION).saturating_add(FREE_EXPANSION);
        (expanded > most).then_some(expanded)
    }

    /// The addresses of a section that is not compressed. `None` as for [`ElfFile::plain_section`].
    pub fn section_range(&self, name: &str) -> Option<Range<u64>> {
        let (address, place) = self.plain(name)?;
        Some(*address..address.checked_add(place.len() as u64)?)
    }

    /// The address and bytes of a section that is not compressed. `None` if there is no such section, it is compressed, or it
    /// has no bytes in the file.
    pub fn plain_section(&self, name: &str) -> Option<(u64, FilePart)> {
        let (address, place) = self.plain(name)?;
        Some((*address, FilePart::new(&self.source, place.clone())?))
    }

    fn plain(&self, name: &str) -> Option<&(u64, Range<usize>)> {
        self.plain.get_or_init(|| by_class!(self, plain_sections, self.source())).get(name.as_bytes())
    }

    /// True if the file itself holds DWARF.
    pub fn has_dwarf(&self) -> bool {
        by_class!(self, has_bytes, self.source(), ".debug_info")
    }

    /// The file with the DWARF and `.symtab` of this one, verified by build-id or CRC; `None` if this file has
    /// DWARF itself or no companion was found. [`ElfFile::debug_search`] says what was tried.
    pub fn debug_companion(&self) -> Option<Arc<ElfFile>> {
        self.separate_debug_file().cloned()
    }

    /// One line for each place where a debug file was looked for, with the outcome. Then the same for the supplementary
    /// file, if the debug information refers to one.
    pub fn debug_search(&self) -> Vec<String> {
        let mut lines = self.companion.get_or_init(|| debug::find(self, &self.search)).1.clone();
        lines.extend_from_slice(&self.dwarf_file().supplementary().1);
        lines
    }

    /// The supplementary file that the DWARF in this very file (not in its companion) refers to by `.gnu_debugaltlink`,
    /// verified by build-id.
    pub fn debug_supplement(&self) -> Option<Arc<ElfFile>> {
        self.supplementary().0.clone()
    }

    /// If the DWARF of this file or its companion refers to a supplementary file that was not found: a sentence that
    /// says so. What is described there is not known then.
    pub fn missing_supplement(&self) -> Option<String> {
        let (found, tried) = self.dwarf_file().supplementary();
        if found.is_some() || tried.is_empty() {
            return None;
        }
        let link = by_class!(self.dwarf_file(), debug::alt_link, self.dwarf_file().source());
        Some(match link {
            Ok(Some(link)) => format!(
                "part of the debug information is in the supplementary file {} (build-id {}), which is not at hand",
                link.path.display(),
                link.build_id
            ),
            _ => "part of the debug information is in a supplementary file, whose name cannot be read".to_owned(),
        })
    }

    /// The file with the DWARF: this one or its companion.
    fn dwarf_file(&self) -> &ElfFile {
        self.separate_debug_file().map_or(self, |companion| companion)
    }

    fn supplementary(&self) -> &(Option<Arc<ElfFile>>, Vec<String>) {
        self.supplement.get_or_init(|| debug::find_supplement(self, &self.search))
    }

    fn separate_debug_file(&self) -> Option<&Arc<ElfFile>> {
        self.companion.get_or_init(|| debug::find(self, &self.search)).0.as_ref()
    }
}

fn named(table: &SymbolTable, entry: &Entry, origin: SymbolOrigin) -> Symbol {
    Symbol { name: table.name_of(entry).into_owned(), addr: Addr(entry.addr), size: entry.size, tls: entry.tls, origin }
}

/// How much may be made of a file's tables. Each entry refers to a name anywhere in the file: without a bound they could
/// all be one that is as long as the file.
#[derive(Debug)]
struct Allowance(u64);

impl Allowance {
    /// In bytes for each byte of the file: real names are seldom longer than a few times the entry that refers to them.
    const PER_BYTE: u64 = 8;
    /// What a failed search for a name's end counts, as part of the file.
    const FAILURE: u64 = 16;

    fn of(data: &Source) -> Allowance {
        Allowance(Allowance::PER_BYTE * data.len() as u64)
    }

    /// `None` when there is nothing left.
    fn take(&mut self, bytes: usize) -> Option<()> {
        self.0 = self.0.checked_sub(bytes as u64)?;
        Some(())
    }

    /// Counts a name.
    fn name<'a, E>(&mut self, name: Result<&'a [u8], E>, data: &Source) -> Option<Option<&'a [u8]>> {
        self.take(name.as_ref().map_or(data.len() / Allowance::FAILURE as usize, |name| name.len()))?;
        Some(name.ok())
    }
}

fn dynamic_strings<E: FileHeader<Endian = Endianness>>(data: &Source, tag: object::elf::DynamicTag) -> Vec<String> {
    let read = || -> object::Result<Vec<String>> {
        let header = E::parse(data)?;
        let endian = header.endian()?;
        let sections = header.sections(endian, data)?;
        let Some((entries, link)) = sections.dynamic(endian, data)? else { return Ok(Vec::new()) };
        let strings = sections.strings(endian, data, link)?;
        let ends = entries.iter().take_while(|d| d.tag(endian) != object::elf::DT_NULL);
        let wanted = ends.filter(|d| d.tag(endian) == tag);
        let mut left = Allowance::of(data);
        Ok(wanted
            .map_while(|d| left.name(d.string(endian, strings), data))
            .flatten()
            .map(|s| String::from_utf8_lossy(s).into_owned())
            .collect())
    };
    read().unwrap_or_default()
}

fn version_nodes<E: FileHeader<Endian = Endianness>>(data: &Source) -> object::Result<Vec<String>> {
    let header = E::parse(data)?;
    let endian = header.endian()?;
    let sections = header.sections(endian, data)?;
    let mut names = Vec::new();
    let Some((mut definitions, link)) = sections.gnu_verdef(endian, data)? else { return Ok(names) };
    let strings = sections.strings(endian, data, link)?;
    let mut left = Allowance::of(data);
    while let Some((definition, mut auxiliaries)) = definitions.next()? {
        if definition.vd_flags.get(endian).contains(object::elf::VER_FLG_BASE) {
            continue;
        }
        // The first auxiliary entry is the name itself, the others are the versions it inherits from.
        if let Some(name) = auxiliaries.next()? {
            let Some(name) = left.name(Ok::<_, ()>(name.name(endian, strings)?), data).flatten() else { break };
            names.push(String::from_utf8_lossy(name).into_owned());
        }
    }
    Ok(names)
}

/// What the compressed sections of a file say they decompress to.
fn expanded<E: FileHeader<Endian = Endianness>>(data: &Source) -> u64 {
    let Ok(elf) = object::read::elf::ElfFile::<E, _>::parse(data) else { return 0 };
    let packed = elf.sections().filter_map(|section| section.compressed_file_range().ok());
    let packed = packed.filter(|range| range.format != object::CompressionFormat::None);
    packed.fold(0, |all, range| all.saturating_add(range.uncompressed_size))
}

fn section<'a, E: FileHeader<Endian = Endianness>>(
    data: &'a Source,
    name: &str,
    may_expand: impl FnOnce() -> bool,
) -> Option<Cow<'a, [u8]>> {
    let elf = object::read::elf::ElfFile::<E, _>::parse(data).ok()?;
    let section = elf.section_by_name(name)?;
    let packed = section.compressed_data().ok()?;
    if packed.data.is_empty() || packed.uncompressed_size > MAX_SECTION {
        return None;
    }
    if packed.format != object::CompressionFormat::None && !may_expand() {
        return None;
    }
    packed.decompress().ok()
}

/// Sections that are not compressed and have bytes in the file, the first of each name: their addresses and their places in
/// the file. Made once, since a decoder of instructions asks for each value that it follows.
fn plain_sections<E: FileHeader<Endian = Endianness>>(data: &Source) -> PlainSections {
    let mut sections = PlainSections::new();
    let Ok(elf) = object::read::elf::ElfFile::<E, _>::parse(data) else { return sections };
    let mut left = Allowance::of(data);
    for section in elf.sections() {
        let Some(name) = left.name(section.name_bytes(), data) else { break };
        let place = section.compressed_file_range().ok().filter(|r| r.format == object::CompressionFormat::None);
        let place = place.and_then(|range| {
            let start = usize::try_from(range.offset).ok()?;
            let end = start.checked_add(usize::try_from(range.compressed_size).ok()?)?;
            (start < end && end <= data.len()).then_some(start..end)
        });
        // The first of a name counts, with or without bytes.
        if let (Some(name), Some(place)) = (name, place) {
            sections.entry(name.to_vec()).or_insert((section.address(), place));
        }
    }
    sections
}

fn has_bytes<E: FileHeader<Endian = Endianness>>(data: &Source, name: &str) -> bool {
    let has = || -> Option<bool> {
        let elf = object::read::elf::ElfFile::<E, _>::parse(data).ok()?;
        let section = elf.section_by_name(name)?;
        let header = section.elf_section_header();
        Some(header.sh_type(elf.endian()) != SHT_NOBITS && section.size() > 0)
    };
    has().unwrap_or(false)
}
