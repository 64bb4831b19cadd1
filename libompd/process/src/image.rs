//! ELF images as they lie in target memory, and the search for the file behind each.
//!
//! Both drivers know only "this range maps that path at that offset". This module reads the ELF headers that are
//! themselves mapped (gABI chapter 5, "Program Loading"). So load bias, extent and build-id of an image come from the
//! image. The file that has its name on disk today may be another.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use goblin::container::{Container, Ctx};
use goblin::elf::note::{NT_GNU_BUILD_ID, NoteDataIterator};
use goblin::elf::program_header::{PF_X, PT_LOAD, PT_NOTE};
use goblin::elf::{Elf, Header as ElfHeader, ProgramHeader};

use crate::arch::{Arch, ByteOrder};
use crate::elf::{DebugSearch, Debuginfod, ElfFile};
use crate::machine::{Machine, SMALLEST_PAGE as PAGE};
use crate::options::OpenOptions;
use crate::symbol::BuildId;

/// Bytes of the first page that are compared with a file when an image has no build-id.
const HEAD: u64 = 4096;
/// More images than any process has loaded.
const MAX_IMAGES: usize = 8192;
/// A note segment of an image that is larger than this is not read.
const MAX_NOTES: u64 = 64 << 10;
/// Note segments of an image beyond these are not read. Linkers write two.
const MAX_NOTE_SEGMENTS: usize = 8;

/// One mapping of a file, in the target's address space.
#[derive(Debug, Clone)]
pub(crate) struct Mapping {
    /// First address.
    pub start: u64,
    /// Address past the end.
    pub end: u64,
    /// Offset of `start` in the file, in bytes.
    pub offset: u64,
    /// Path as the target names it.
    pub path: String,
    /// Whether the mapping is executable; `None` where the source does not say.
    pub exec: Option<bool>,
}

/// An ELF image found among the mappings.
#[derive(Debug)]
pub(crate) struct Image {
    /// Path as the target names it, without the kernel's ` (deleted)`.
    pub path: String,
    /// True if the kernel says the file has been unlinked.
    pub deleted: bool,
    /// Target address minus file address.
    pub bias: u64,
    /// Mapped ranges.
    pub ranges: Vec<Range<u64>>,
    /// Build-id of the mapped image.
    pub build_id: Option<BuildId>,
    /// Machine of the image, if its header could be read.
    pub arch: Option<Arch>,
    /// The mapping that holds the ELF header.
    pub first: Range<u64>,
    /// Bytes of the file, from its beginning, as mapped. Empty if they could not be read.
    pub head: Vec<u8>,
}

impl Image {
    /// Those of `mappings` (sorted, none on another) by which this image is mapped.
    pub fn mappings<'a>(&'a self, mappings: &'a [Mapping]) -> impl Iterator<Item = &'a Mapping> {
        // Ranges may lie on each other, and two of them in one mapping.
        let mut next = 0;
        self.ranges.iter().flat_map(move |range| {
            let first = mappings.partition_point(|m| m.end <= range.start).max(next);
            let end = mappings.partition_point(|m| m.start < range.end).max(first);
            next = next.max(end);
            mappings.get(first..end).unwrap_or_default().iter().filter(|m| split_deleted(&m.path).0 == self.path)
        })
    }
}

/// The ELF header and program headers of an image or core.
#[derive(Debug)]
pub(crate) struct Headers {
    /// Machine, width, byte order.
    pub arch: Arch,
    /// `e_type`.
    pub kind: u16,
    /// How goblin wants to be told width and byte order.
    pub ctx: Ctx,
    /// Program headers.
    pub segments: Vec<ProgramHeader>,
}

impl Headers {
    /// Parses the headers at the start of `bytes`.
    pub fn parse(bytes: &[u8]) -> Result<Headers, String> {
        Headers::read(bytes, |offset, len| bytes.get(offset..)?.get(..len))
    }

    /// Parses headers of which `start` is the begin, and `get` gives all bytes, by offset and number.
    pub fn read<'a>(start: &[u8], get: impl Fn(usize, usize) -> Option<&'a [u8]>) -> Result<Headers, String> {
        let header = Elf::parse_header(start).map_err(|e| e.to_string())?;
        let (arch, ctx) = arch_of(&header)?;
        let wanted = ProgramHeader::size(ctx);
        let mut count = usize::from(header.e_phnum);
        if header.e_phnum == u16::MAX {
            // PN_XNUM (gABI): more than 65534 segments; the number is in sh_info of section header 0.
            let at = usize::try_from(header.e_shoff).map_err(|_| "section header out of range")?;
            let info = if ctx.is_big() { 44 } else { 28 };
            let raw = at.checked_add(info).and_then(|at| get(at, 4));
            let raw = raw.ok_or("the number of segments lies outside the file")?;
            count = arch.byte_order.uint(raw) as usize;
        }
        if count > 0 && usize::from(header.e_phentsize) != wanted {
            return Err(format!("program headers of {} bytes instead of {wanted}", header.e_phentsize));
        }
        let offset = usize::try_from(header.e_phoff).map_err(|_| "program headers out of range")?;
        let table = if count == 0 { Some(&[][..]) } else { count.checked_mul(wanted).and_then(|len| get(offset, len)) };
        let table = table.ok_or("the program headers lie outside the file")?;
        let segments = ProgramHeader::parse(table, 0, count, ctx).map_err(|e| e.to_string())?;
        Ok(Headers { arch, kind: header.e_type, ctx, segments })
    }

    /// Splits the bytes of a note segment. Notes before the first malformed one are kept.
    pub fn notes<'a>(&self, data: &'a [u8], align: u64) -> impl Iterator<Item = goblin::elf::note::Note<'a>> {
        let align = if align == 8 { 8 } else { 4 };
        NoteDataIterator { data, size: data.len(), offset: 0, ctx: (align, self.ctx) }.map_while(Result::ok)
    }
}

fn arch_of(header: &ElfHeader) -> Result<(Arch, Ctx), String> {
    let container = header.container().map_err(|e| e.to_string())?;
    let endian = header.endianness().map_err(|e| e.to_string())?;
    let arch = Arch {
        machine: Machine::of_elf(header.e_machine),
        pointer_bytes: if container == Container::Big { 8 } else { 4 },
        byte_order: if endian.is_little() { ByteOrder::Little } else { ByteOrder::Big },
    };
    Ok((arch, Ctx::new(container, endian)))
}

/// Reads target memory, all or nothing.
pub(crate) type ReadMemory<'a> = &'a dyn Fn(u64, &mut [u8]) -> bool;

/// The one of `mappings` (sorted, none on another) that contains `addr`.
fn mapping_at(mappings: &[Mapping], addr: u64) -> Option<&Mapping> {
    let place = mappings.partition_point(|m| m.start <= addr).checked_sub(1)?;
    mappings.get(place).filter(|m| addr < m.end)
}

/// Finds the ELF images among `mappings` (sorted by address, none on another).
///
/// An image begins at a mapping whose bytes are an ELF header and whose executable segment is mapped executable. A
/// program that merely reads a library as data has not loaded it. Executable mappings of files whose header cannot be
/// read are kept as images without a header.
pub(crate) fn find_images(mappings: &[Mapping], read: ReadMemory<'_>) -> Vec<Image> {
    let mut images: Vec<Image> =
        mappings.iter().filter_map(|m| parse_image(m, mappings, read)).take(MAX_IMAGES).collect();
    let mut headless: BTreeMap<&str, Vec<&Mapping>> = BTreeMap::new();
    let known = Union::of(images.iter().flat_map(|i| i.ranges.iter().cloned()).collect());
    for m in mappings.iter().filter(|m| !known.overlaps(m.start..m.end)) {
        headless.entry(&m.path).or_default().push(m);
    }
    for (path, maps) in headless {
        let (path, deleted) = split_deleted(path);
        let Some(first) = maps.iter().find(|m| m.offset == 0).filter(|_| maps.iter().any(|m| m.exec == Some(true)))
        else {
            continue;
        };
        let mut head = [0u8; 4];
        if read(first.start, &mut head) {
            continue; // Readable, and not an image: found so above.
        }
        images.push(Image {
            path: path.to_owned(),
            deleted,
            bias: first.start,
            ranges: maps.iter().map(|m| m.start..m.end).collect(),
            build_id: None,
            arch: None,
            first: first.start..first.end,
            head: Vec::new(),
        });
    }
    images.sort_by_key(|i| i.first.start);
    images
}

/// Addresses, as ranges in order that do not touch.
#[derive(Debug)]
pub(crate) struct Union(Vec<Range<u64>>);

impl Union {
    /// The addresses of all these ranges.
    pub fn of(mut ranges: Vec<Range<u64>>) -> Union {
        ranges.sort_by_key(|r| r.start);
        ranges.dedup_by(|next, previous| {
            let touch = next.start <= previous.end;
            if touch {
                previous.end = previous.end.max(next.end);
            }
            touch
        });
        Union(ranges)
    }

    fn overlaps(&self, range: Range<u64>) -> bool {
        let place = self.0.partition_point(|r| r.end <= range.start);
        self.0.get(place).is_some_and(|r| r.start < range.end)
    }

    /// Whether an address is one of them.
    pub fn contains(&self, addr: u64) -> bool {
        let place = self.0.partition_point(|r| r.end <= addr);
        self.0.get(place).is_some_and(|r| r.start <= addr)
    }
}

fn parse_image(first: &Mapping, mappings: &[Mapping], read: ReadMemory<'_>) -> Option<Image> {
    if first.offset != 0 {
        return None;
    }
    let (image, headers) = image_at(first.start..first.end, &first.path, read)?;
    let executable = headers.segments.iter().filter(|p| p.p_type == PT_LOAD && p.p_flags & PF_X != 0).all(|p| {
        let at = image.bias.wrapping_add(p.p_vaddr);
        mapping_at(mappings, at).is_some_and(|m| m.exec != Some(false) && m.path == first.path)
    });
    executable.then_some(image)
}

/// The headers at the start of a mapping. Most of them lie in its first bytes, and a debugger may pay for each that is read.
fn headers_at(first: &Range<u64>, read: ReadMemory<'_>) -> Option<(Vec<u8>, Headers)> {
    const MOSTLY: u64 = 1024;
    let length = first.end.checked_sub(first.start)?;
    let parse = |most: u64| {
        let mut head = vec![0u8; length.min(most) as usize];
        let is_read = read(first.start, &mut head) && head.starts_with(b"\x7fELF");
        let headers = if is_read { Headers::parse(&head).ok()? } else { return None };
        Some((head, headers))
    };
    parse(MOSTLY).or_else(|| parse(HEAD))
}

/// The image whose ELF header lies at the start of `first`, of which at least the header is mapped.
pub(crate) fn image_at(first: Range<u64>, path: &str, read: ReadMemory<'_>) -> Option<(Image, Headers)> {
    let (mut head, headers) = headers_at(&first, read)?;
    let loads: Vec<&ProgramHeader> = headers.segments.iter().filter(|p| p.p_type == PT_LOAD).collect();
    // The kernel maps whole pages: the segment that holds offset 0 may itself begin a little later.
    let holder = loads.iter().filter(|p| p.p_offset < 0x1_0000).min_by_key(|p| p.p_offset)?;
    let bias = first.start.wrapping_sub(holder.p_vaddr.wrapping_sub(holder.p_offset));
    let mut ranges: Vec<Range<u64>> = Vec::new();
    for p in &loads {
        let start = bias.wrapping_add(p.p_vaddr) & !(PAGE - 1);
        let end = bias.wrapping_add(p.p_vaddr).checked_add(p.p_memsz)?.checked_next_multiple_of(PAGE)?;
        if start >= end {
            continue;
        }
        match ranges.last_mut() {
            Some(last) if last.end >= start && last.start <= start => last.end = last.end.max(end),
            _ => ranges.push(start..end),
        }
    }
    if ranges.is_empty() {
        return None;
    }
    ranges.sort_by_key(|r| r.start);
    let mut notes =
        headers.segments.iter().filter(|p| p.p_type == PT_NOTE && p.p_memsz <= MAX_NOTES).take(MAX_NOTE_SEGMENTS);
    let build_id = notes.find_map(|p| {
        let mut data = vec![0u8; p.p_memsz as usize];
        if !read(bias.wrapping_add(p.p_vaddr), &mut data) {
            return None;
        }
        headers
            .notes(&data, p.p_align)
            .find(|n| n.n_type == NT_GNU_BUILD_ID && n.name == "GNU" && !n.desc.is_empty())
            .map(|n| BuildId(n.desc.to_vec()))
    });
    let (path, deleted) = split_deleted(path);
    let arch = Some(headers.arch);
    if build_id.is_none() {
        head.resize((first.end - first.start).min(HEAD) as usize, 0);
        if !read(first.start, &mut head) {
            return None;
        }
    }
    let image = Image { path: path.to_owned(), deleted, bias, ranges, build_id, arch, first, head };
    Some((image, headers))
}

/// The kernel appends ` (deleted)` to the path of an unlinked file (proc_pid_maps(5)).
fn split_deleted(path: &str) -> (&str, bool) {
    match path.strip_suffix(" (deleted)") {
        Some(stem) => (stem, true),
        None => (path, false),
    }
}

/// How much the way to a file says about its being the mapped one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Via {
    /// The kernel's own handle on the mapped file: it cannot be another one.
    Kernel,
    /// The user named it.
    User,
    /// The name the target used.
    Name,
}

/// `root` followed by the absolute path `path`, without letting `..` climb out of `root`.
pub(crate) fn below(root: &Path, path: &str) -> PathBuf {
    let mut out = root.to_path_buf();
    out.extend(Path::new(path).components().filter(|c| matches!(c, Component::Normal(_))));
    out
}

/// Paths below [`OpenOptions::lib_root`]: the target's own path, then the bare name, for a directory of loose copies.
pub(crate) fn below_lib_root(path: &str, options: &OpenOptions) -> Vec<(PathBuf, Via)> {
    let Some(root) = &options.lib_root else { return Vec::new() };
    let name = Path::new(path).file_name().map(|name| root.join(name));
    [Some(below(root, path)), name].into_iter().flatten().map(|p| (p, Via::User)).collect()
}

/// Opens the first candidate that is the file behind `image`; otherwise says of each why it is not.
pub(crate) fn open_file(
    image: &Image,
    candidates: &[(PathBuf, Via)],
    search: &DebugSearch,
) -> Result<Arc<ElfFile>, Vec<String>> {
    let mut refused: Vec<String> = Vec::new();
    for (path, via) in candidates {
        let verdict = match ElfFile::open(path) {
            Err(e) => Err(e.to_string()),
            Ok(file) => {
                same_file(image, &file, *via).map(|()| file).map_err(|why| format!("{}: {why}", path.display()))
            }
        };
        match verdict {
            Ok(file) => return Ok(Arc::new(file.with_debug_search(search.clone()))),
            Err(line) if refused.contains(&line) => {}
            Err(line) => refused.push(line),
        }
    }
    if refused.is_empty() {
        refused.push(format!("{}: no place to look for it", image.path));
    }
    Err(refused)
}

/// Opens the file behind `image` where only its name identifies it. Tries what the user named, then the name the target
/// used.
///
/// # Errors
/// For each candidate, why it is not the file.
pub(crate) fn open_by_name(image: &Image, is_exe: bool, options: &OpenOptions) -> Result<Arc<ElfFile>, Vec<String>> {
    open_file(image, &candidates(image, is_exe, options), &debug_search(image, options))
}

/// Where the file behind `image` may be, if only its name identifies it.
fn candidates(image: &Image, is_exe: bool, options: &OpenOptions) -> Vec<(PathBuf, Via)> {
    let mut paths = Vec::new();
    if let Some(exe) = options.exe.as_ref().filter(|_| is_exe) {
        paths.push((exe.clone(), Via::User));
    }
    paths.extend(below_lib_root(&image.path, options));
    paths.push((PathBuf::from(&image.path), Via::Name));
    paths
}

fn debug_search(image: &Image, options: &OpenOptions) -> DebugSearch {
    let target_dir = Path::new(&image.path).parent().map(Path::to_path_buf);
    let debuginfod = options.debuginfod.then(Debuginfod::default);
    let debug_dirs = options.debug_dirs.clone();
    let mut search = DebugSearch { debug_dirs, target_dir, debuginfod, ..DebugSearch::default() };
    search.roots.extend(options.lib_root.clone());
    if let (Some(root), Some(dir)) = (&options.lib_root, &search.target_dir) {
        search.file_dirs.push(below(root, &dir.to_string_lossy()));
        search.debug_dirs.push(root.join("usr/lib/debug"));
    }
    search.file_dirs.extend(search.target_dir.clone());
    search
}

/// What to say when the executable named by the user was not the one: the right file, found elsewhere, is used.
pub(crate) fn exe_not_used(options: &OpenOptions, file: &ElfFile) -> Option<String> {
    let named = options.exe.as_deref().filter(|named| *named != file.path())?;
    let why = match named.metadata() {
        Ok(_) => "is not the executable of this process".to_owned(),
        Err(error) => format!("cannot be opened: {error}"),
    };
    Some(format!("{} {why}; {} is used", named.display(), file.path().display()))
}

fn same_file(image: &Image, file: &ElfFile, via: Via) -> Result<(), String> {
    match (&image.build_id, file.build_id()) {
        (Some(mapped), Some(disk)) if mapped == disk => return Ok(()),
        (Some(mapped), Some(disk)) => {
            return Err(format!("build-id {disk} is not that of the mapped image, {mapped}"));
        }
        (Some(mapped), None) => return Err(format!("no build-id, the mapped image has {mapped}")),
        (None, _) if via == Via::Kernel => return Ok(()),
        (None, _) => {}
    }
    if image.head.is_empty() {
        return match via {
            Via::User => Ok(()),
            _ => Err("cannot be compared with the mapped image, whose headers are not at hand".into()),
        };
    }
    if image.deleted && via == Via::Name {
        // Headers alone do not tell a rebuilt program from the one that was started.
        return Err("the mapped file was deleted and has no build-id: this is another file of that name".into());
    }
    let disk = file.source().start(image.head.len());
    if !disk.is_empty() && image.head.starts_with(disk) {
        Ok(())
    } else {
        Err("its first page differs from the mapped image".into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_cannot_climb_out_of_its_root() {
        assert_eq!(below(Path::new("/r"), "/usr/../../etc/x"), Path::new("/r/usr/etc/x"));
        assert_eq!(below(Path::new("/r"), "lib.so"), Path::new("/r/lib.so"));
    }

    #[test]
    fn the_deleted_mark_is_split_off() {
        assert_eq!(split_deleted("/a b (deleted)"), ("/a b", true));
        assert_eq!(split_deleted("/a (deleted) b"), ("/a (deleted) b", false));
    }

    #[test]
    fn an_image_has_the_mappings_that_its_ranges_touch() {
        let mapping =
            |start: u64, path: &str| Mapping { start, end: start + 0x1000, offset: 0, path: path.into(), exec: None };
        let mappings = [
            mapping(0x1000, "/a"),
            mapping(0x2000, "/a (deleted)"),
            mapping(0x3000, "/b"),
            mapping(0x4000, "/a"),
            mapping(0x6000, "/a"),
        ];
        let with = |ranges: &[Range<u64>]| {
            let image = Image {
                path: "/a".into(),
                deleted: false,
                bias: 0,
                ranges: ranges.to_vec(),
                build_id: None,
                arch: None,
                first: 0x1000..0x2000,
                head: Vec::new(),
            };
            image.mappings(&mappings).map(|m| m.start).collect::<Vec<_>>()
        };
        assert_eq!(with(std::slice::from_ref(&(0x1000..0x5000))), [0x1000, 0x2000, 0x4000]);
        // Each once, although ranges lie on each other or share a mapping.
        assert_eq!(with(&[0x1000..0x1800, 0x1800..0x2800, 0x2000..0x3000]), [0x1000, 0x2000]);
        assert_eq!(with(&[0x5000..0x6000, 0x8000..0x9000]), [] as [u64; 0]);
        assert_eq!(with(&[0x4800..0x4900, 0x6fff..0x7000]), [0x4000, 0x6000]);
    }

    #[test]
    fn a_union_contains_what_its_ranges_do() {
        let union = Union::of(vec![0x30..0x40, 0x10..0x20, 0x18..0x28]);
        let inside: Vec<u64> = (0..0x50).filter(|addr| union.contains(*addr)).collect();
        assert_eq!(inside, (0x10..0x28).chain(0x30..0x40).collect::<Vec<_>>());
        assert!(!Union::of(Vec::new()).contains(0));
    }

    #[test]
    fn a_file_that_is_not_elf_is_no_image() {
        let map = Mapping { start: 0x1000, end: 0x2000, offset: 0, path: "/data".into(), exec: Some(true) };
        assert!(
            find_images(std::slice::from_ref(&map), &|_, buf| {
                buf.fill(7);
                true
            })
            .is_empty()
        );
        // Unreadable and executable: kept, but without anything that would have to be guessed.
        let found = find_images(&[map], &|_, _| false);
        assert_eq!(found.len(), 1);
        assert!(found[0].build_id.is_none() && found[0].head.is_empty() && found[0].arch.is_none());
    }
}
