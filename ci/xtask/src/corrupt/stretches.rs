//! Where bytes are changed, by what they are.

use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use object::elf::{FileHeader64, PT_NOTE};
use object::read::elf::{FileHeader as _, ProgramHeader as _, SectionHeader as _};
use object::{Endianness, LittleEndian};
use ompd_inspection::grounds::{Kept, Memory};
use ompd_process::{Addr, Core, Target as _, TargetExt as _};
use test_programs::{Random, Segments};

use super::reading::{options, wanted};

/// What bytes are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Sort {
    CoreHeaders,
    Notes,
    Structs,
    ThreadLists,
    Stacks,
    LinkMaps,
    OtherMemory,
    Unread,
    Code,
    UnwindTables,
    Symbols,
    Dwarf,
    FileHeaders,
}

impl Sort {
    pub(super) fn words(self) -> &'static str {
        match self {
            Sort::CoreHeaders => "headers of the core",
            Sort::Notes => "notes",
            Sort::Structs => "structs and variables of the runtime",
            Sort::ThreadLists => "records of threads",
            Sort::Stacks => "stacks",
            Sort::LinkMaps => "link maps",
            Sort::OtherMemory => "other memory that is read",
            Sort::Unread => "memory that is not read",
            Sort::Code => "code of the runtime",
            Sort::UnwindTables => "unwind tables",
            Sort::Symbols => "symbols",
            Sort::Dwarf => "DWARF",
            Sort::FileHeaders => "headers of files",
        }
    }

    /// Memory that a look reads from a core that is open.
    pub(super) fn is_read(self) -> bool {
        matches!(self, Sort::Structs | Sort::ThreadLists | Sort::Stacks | Sort::OtherMemory)
    }

    /// Code of known builds is not looked at otherwise.
    pub(super) fn needs_decoding(self) -> bool {
        matches!(self, Sort::Code | Sort::Symbols | Sort::FileHeaders)
    }
}

/// A file: the core, or one that was mapped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum InFile {
    Core,
    /// By its path below the root.
    Mapped(PathBuf),
}

impl InFile {
    pub(super) fn below(&self, core: &Path, root: &Path) -> PathBuf {
        match self {
            InFile::Core => core.to_owned(),
            InFile::Mapped(path) => root.join(path),
        }
    }
}

impl fmt::Display for InFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            InFile::Core => write!(f, "the core"),
            InFile::Mapped(path) => write!(f, "{}", path.display()),
        }
    }
}

/// Bytes that lie together.
#[derive(Debug, Clone)]
pub(super) struct Stretch {
    pub(super) file: InFile,
    /// Where in the file.
    pub(super) at: u64,
    pub(super) length: u64,
    /// Where in the memory of the process, if it is memory.
    pub(super) address: Option<u64>,
}

/// Most bytes of a stretch: a long one is many, so that each is as likely.
const LENGTH: u64 = 64;

/// How many stretches of memory that is not read are looked for.
const UNREAD: usize = 5000;

/// All stretches in a core and its files, by sort.
pub(super) fn find(core: &Path, root: &Path) -> Result<Vec<(Sort, Vec<Stretch>)>> {
    let mut stretches: BTreeMap<Sort, Vec<Stretch>> = BTreeMap::new();
    of_core(core, &mut stretches)?;
    in_memory(core, root, &mut stretches)?;
    in_files(core, root, &mut stretches)?;
    Ok(stretches.into_iter().filter(|(_, stretches)| !stretches.is_empty()).collect())
}

fn add(to: &mut Vec<Stretch>, file: &InFile, at: u64, length: u64, address: Option<u64>) {
    let mut done = 0;
    while done < length {
        let piece = LENGTH.min(length - done);
        let address = address.map(|address| address + done);
        to.push(Stretch { file: file.clone(), at: at + done, length: piece, address });
        done += piece;
    }
}

fn of_core(core: &Path, stretches: &mut BTreeMap<Sort, Vec<Stretch>>) -> Result<()> {
    let data = fs::read(core)?;
    let header = FileHeader64::<Endianness>::parse(&data[..])?;
    let order = header.endian()?;
    let headers = stretches.entry(Sort::CoreHeaders).or_default();
    add(headers, &InFile::Core, 0, size_of::<FileHeader64<LittleEndian>>() as u64, None);
    let count = u64::from(header.e_phnum(order));
    add(headers, &InFile::Core, header.e_phoff(order), count * u64::from(header.e_phentsize(order)), None);
    for segment in header.program_headers(order, &data[..])?.iter().filter(|of| of.p_type(order) == PT_NOTE) {
        let (at, size) = (segment.p_offset(order), segment.p_filesz(order));
        add(stretches.entry(Sort::Notes).or_default(), &InFile::Core, at, size, None);
    }
    Ok(())
}

/// What a look reads of memory.
fn in_memory(core: &Path, root: &Path, stretches: &mut BTreeMap<Sort, Vec<Stretch>>) -> Result<()> {
    let segments = Segments::of(core)?;
    let core = Core::open(core, &options(root))?;
    let kept = Kept::of(&core, wanted());
    let mut add_memory = |sort: Sort, range: Range<u64>| {
        if let Some((at, left)) = segments.find(range.start) {
            let length = left.min(range.end - range.start);
            add(stretches.entry(sort).or_default(), &InFile::Core, at, length, Some(range.start));
        }
    };
    for range in kept.moment().ranges() {
        let mut at = range.start;
        while at < range.end {
            let word = at..(at / 8 * 8 + 8).min(range.end);
            let sort = match (kept.field(&word), kept.memory(at)) {
                (Some(_), _) => Sort::Structs,
                (None, Memory::ThreadLocal(_)) => Sort::ThreadLists,
                (None, Memory::Stack(_)) => Sort::Stacks,
                (None, _) => Sort::OtherMemory,
            };
            at = word.end;
            add_memory(sort, word);
        }
    }
    let maps = link_maps(&core);
    maps.iter().for_each(|range| add_memory(Sort::LinkMaps, range.clone()));
    // All other memory is far more. Some of it is enough.
    let mut random = Random::new(0x9e37_79b9_7f4a_7c15);
    let loaded: Vec<Range<u64>> = segments.all().filter(|range| !range.is_empty()).collect();
    let read = [kept.moment().ranges(), maps].concat();
    for _ in 0..UNREAD {
        let segment = &loaded[random.below(loaded.len())];
        let start = segment.start + random.number() % (segment.end - segment.start);
        let piece = start / LENGTH * LENGTH..(start / LENGTH + 1) * LENGTH;
        let touches = |other: &Range<u64>| other.start < piece.end && piece.start < other.end;
        // When a core is opened, headers of mapped files are read, and the environment at the end of a stack.
        let is_opened = !matches!(kept.memory(piece.start), Memory::Other | Memory::ThreadLocal(_));
        if !is_opened && !read.iter().any(touches) {
            add_memory(Sort::Unread, piece);
        }
    }
    Ok(())
}

/// The list of loaded files that the dynamic linker keeps for debuggers (`struct r_debug` and `struct link_map`, link.h), with their
/// names.
fn link_maps(core: &Core) -> Vec<Range<u64>> {
    const STRUCT: u64 = 40;
    const NAME: u64 = 256;
    let debug = core.modules().iter().find_map(|module| module.symbol("_r_debug"));
    let Some(debug) = debug.map(|symbol| symbol.addr) else { return Vec::new() };
    let mut found: Vec<Range<u64>> = std::iter::once(debug.0..debug.0 + STRUCT).collect();
    let (mut seen, mut next) = (HashSet::new(), core.read_ptr(debug.offset(8)).unwrap_or(Addr::NULL));
    while !next.is_null() && seen.insert(next) {
        found.push(next.0..next.0 + STRUCT);
        if let Ok(name) = core.read_ptr(next.offset(8)) {
            let length = core.read_cstr(name, NAME).map_or(0, |name| name.len() as u64);
            found.push(name.0..name.0 + length + 1);
        }
        next = core.read_ptr(next.offset(24)).unwrap_or(Addr::NULL);
    }
    found
}

/// Parts of the program and of the runtime.
fn in_files(core: &Path, root: &Path, stretches: &mut BTreeMap<Sort, Vec<Stretch>>) -> Result<()> {
    let core = Core::open(core, &options(root))?;
    let runtimes = ompd_runtime::discover(&core, &[]);
    let paths: Vec<&str> = runtimes.iter().map(|runtime| &*runtime.info().path).collect();
    ensure!(!paths.is_empty(), "no runtime was found");
    let is_program = |path: &str| core.process().exe.as_deref() == Some(path);
    for path in core.modules().iter().map(|module| &*module.path) {
        let is_runtime = paths.contains(&path);
        if !is_runtime && !is_program(path) {
            continue;
        }
        let below = PathBuf::from(path.trim_start_matches('/'));
        let data = fs::read(root.join(&below)).with_context(|| path.to_owned())?;
        let header = FileHeader64::<Endianness>::parse(&data[..])?;
        let order = header.endian()?;
        let file = InFile::Mapped(below);
        let headers = stretches.entry(Sort::FileHeaders).or_default();
        add(headers, &file, 0, size_of::<FileHeader64<LittleEndian>>() as u64, None);
        let (count, size) = (u64::from(header.e_phnum(order)), u64::from(header.e_phentsize(order)));
        add(headers, &file, header.e_phoff(order), count * size, None);
        let (count, size) = (u64::from(header.e_shnum(order)), u64::from(header.e_shentsize(order)));
        add(headers, &file, header.e_shoff(order), count * size, None);
        let sections = header.sections(order, &data[..])?;
        for section in sections.iter() {
            let name = String::from_utf8_lossy(sections.section_name(order, section).unwrap_or_default()).into_owned();
            let sort = match &*name {
                ".text" if is_runtime => Sort::Code,
                ".eh_frame" | ".eh_frame_hdr" => Sort::UnwindTables,
                ".dynsym" | ".dynstr" | ".symtab" | ".strtab" | ".dynamic" | ".gnu.hash" => Sort::Symbols,
                name if name.starts_with(".debug_") => Sort::Dwarf,
                _ => continue,
            };
            let to = stretches.entry(sort).or_default();
            add(to, &file, section.sh_offset(order), section.sh_size(order), None);
        }
    }
    Ok(())
}
