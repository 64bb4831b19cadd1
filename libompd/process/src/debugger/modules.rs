//! The modules of a process, by the dynamic linker's list of them in its memory (glibc's elf/link.h: `r_debug`, `link_map`).
//!
//! A statically linked program has no such list, or one that says nothing of the program itself (`_dl_main_map` in glibc's
//! elf/dl-support.c). Its headers are where the kernel, the C library or the linker says.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use goblin::elf::Elf;
use goblin::elf::program_header::PT_DYNAMIC;

use super::interface::Debugger;
use super::memory::Memory;
use super::rebuilt;
use super::start::{AT_ENTRY, AT_PHDR, AT_SYSINFO_EHDR, Start};
use crate::arch::Arch;
use crate::elf::ElfFile;
use crate::image::{self, Headers, Image};
use crate::machine::SMALLEST_PAGE as PAGE;
use crate::memory::Addr;
use crate::module::Module;
use crate::options::OpenOptions;

/// Modules beyond this many are not believed to be there.
const MAX_MODULES: usize = 8192;
/// Name spaces beyond this many are not believed to be there: glibc has 16 (`DL_NNS`).
const MAX_SPACES: usize = 64;
/// Longest path that is believed.
const MAX_PATH: u64 = 4096;
/// An ELF header is looked for so many pages below an address. A page that is not mapped counts as well.
const MAX_PAGES: u64 = 16 << 10;
/// Pages that are looked at so for all modules of a process together. Of nearly all it is known where they begin.
const MOST_PAGES: u64 = 16 * MAX_PAGES;
/// What the vdso is called in the list. No file has that name.
const VDSO: &str = "linux-vdso.so.1";
/// It is some pages long.
const MAX_VDSO: u64 = 64 << 10;
/// Names that linkers give the ELF header of what they link, in programs that ask for one.
const HEADER_NAMES: [&str; 2] = ["__ehdr_start", "__executable_start"];

/// One entry of the list.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Entry {
    /// `l_addr`: what is added to addresses of the file.
    bias: u64,
    /// `l_name`; empty for the program itself.
    name: String,
    /// `l_ld`: where its dynamic section lies.
    dynamic: u64,
}

/// The dynamic linker's list of modules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LinkMap {
    entries: Vec<Entry>,
    /// Where its lists begin and end, and what is there: a module that comes is put behind the last one.
    ends: Vec<(Addr, Vec<u64>)>,
    /// It was being changed (`r_state`), or broke off.
    torn: bool,
}

impl LinkMap {
    /// `None` where the debugger does not know of it.
    pub(super) fn read<D: Debugger>(memory: &Memory<D>, arch: Arch) -> Option<LinkMap> {
        let width = u64::from(arch.pointer_bytes);
        let mut space = memory.debugger().symbol("_r_debug")?;
        let mut map = LinkMap { entries: Vec::new(), ends: Vec::new(), torn: false };
        let mut seen = BTreeSet::new();
        for _ in 0..MAX_SPACES {
            // r_version (an int), r_map, r_brk, r_state (an int), r_ldbase; from version 2 on, r_next.
            // Behind what every version has, it is readable all the same, if not more than that.
            let words = memory.words(space, 6, arch).or_else(|| memory.words(space, 5, arch))?;
            let version = arch.byte_order.uint(&memory.bytes(space, 4)?);
            let state = arch.byte_order.uint(&memory.bytes(space.offset(3 * width), 4)?);
            map.torn |= state != 0;
            map.follow(memory, arch, Addr(words[1]), &mut seen);
            if version < 2 {
                break;
            }
            // What a name space of its own is added to.
            let next = words.get(5).copied().unwrap_or_default();
            map.ends.push((space.offset(5 * width), vec![next]));
            space = Addr(memory.word(space.offset(5 * width), arch)?);
            if space.is_null() {
                break;
            }
        }
        (!map.entries.is_empty()).then_some(map)
    }

    /// True if there is a place for the list and nothing in it: a static program that has loaded nothing.
    pub(super) fn is_unused<D: Debugger>(memory: &Memory<D>, arch: Arch) -> bool {
        let words = memory.debugger().symbol("_r_debug").and_then(|at| memory.words(at, 5, arch));
        words.is_some_and(|words| words.iter().all(|word| *word == 0))
    }

    fn follow<D: Debugger>(&mut self, memory: &Memory<D>, arch: Arch, first: Addr, seen: &mut BTreeSet<Addr>) {
        let mut at = first;
        while !at.is_null() {
            // l_addr, l_name, l_ld, l_next.
            let words = memory.words(at, 4, arch).filter(|_| seen.insert(at) && seen.len() <= MAX_MODULES);
            let Some([bias, name, dynamic, next]) = words.and_then(|words| <[u64; 4]>::try_from(words).ok()) else {
                self.torn = true;
                return;
            };
            let at_name = name;
            let name = memory.string(Addr(name), MAX_PATH).unwrap_or_default();
            self.entries.push(Entry { bias, name, dynamic });
            if next == 0 {
                self.ends.push((at, vec![bias, at_name, dynamic, next]));
            }
            at = Addr(next);
        }
    }

    /// True if no module has come since the list was read. That one has gone is not always seen.
    pub(super) fn has_not_grown<D: Debugger>(&self, memory: &Memory<D>, arch: Arch) -> bool {
        let same = |(at, words): &(Addr, Vec<u64>)| memory.words(*at, words.len(), arch).as_ref() == Some(words);
        !self.torn && self.ends.iter().all(same)
    }

    pub(super) fn modules<D: Debugger>(
        &self,
        memory: &Memory<D>,
        arch: Arch,
        start: Option<&Start>,
        names: &[String],
        options: &OpenOptions,
        issues: &mut Vec<String>,
    ) -> Vec<Module> {
        if self.torn {
            issues.push("the dynamic linker's list of modules was being changed, or breaks off".to_owned());
        }
        // A module may be in more than one name space.
        let mut modules = BTreeMap::new();
        let mut taken = Taken::default();
        let left = Cell::new(MOST_PAGES);
        for entry in self.entries.iter().filter(|entry| entry.name != VDSO || needs_vdso(memory)) {
            let is_program = entry.name.is_empty();
            // The program's headers are where the kernel says; of others they are where the module begins.
            let said = start.filter(|_| is_program).and_then(|start| start.auxv(AT_PHDR)).map(|at| at & !(PAGE - 1));
            let begins = |at: u64| image_at(memory, at).filter(|found| found.holds(entry.dynamic));
            let around = || image_around(memory, Addr(entry.dynamic), &left).filter(|found| found.holds(entry.dynamic));
            let found = if is_program && entry.dynamic == 0 {
                program(memory, arch, start)
            } else {
                said.and_then(begins).or_else(|| begins(entry.bias)).or_else(around)
            };
            let Some(Found { mut image, headers }) = found else {
                issues.push(format!("{}: its ELF header was not found in memory", entry.name));
                continue;
            };
            image.path.clone_from(&entry.name);
            let names = if is_program { names } else { &[] };
            let base = image.first.start;
            if modules.contains_key(&base) {
                continue;
            }
            // What all modules have loaded is read at most, and no memory for more of them than one.
            if !taken.take(&image.ranges) {
                issues.push(format!("{}: it lies where another module does", image.path));
                continue;
            }
            modules.insert(base, module(memory, image, &headers, names, options, issues));
        }
        modules.into_values().collect()
    }
}

/// Only stacks lead into the vdso, and without registers none is followed. All of it is read, and a debugger may pay for each byte.
fn needs_vdso<D: Debugger>(memory: &Memory<D>) -> bool {
    memory.debugger().offers_registers()
}

/// Addresses that modules have: beginnings with ends, none on another.
#[derive(Default)]
struct Taken(BTreeMap<u64, u64>);

impl Taken {
    /// Enters the ranges of a module; false, and nothing is entered, if one of them lies on what is taken.
    fn take(&mut self, ranges: &[Range<u64>]) -> bool {
        let free =
            |range: &Range<u64>| self.0.range(..range.end).next_back().is_none_or(|(_, end)| *end <= range.start);
        if !ranges.iter().all(free) {
            return false;
        }
        let mut own = ranges.to_vec();
        own.sort_by_key(|range| range.start);
        let mut reached = 0;
        for range in own.iter().filter(|range| !range.is_empty()) {
            // Segments of one module may lie on each other.
            let start = range.start.max(reached);
            if start < range.end {
                self.0.insert(start, range.end);
                reached = range.end;
            }
        }
        true
    }
}

/// The program and the modules that have these functions, where there is no list of modules. A program without a
/// dynamic linker has none, nor has a debugger that knows public functions alone.
pub(super) fn of_anchors<D: Debugger>(
    memory: &Memory<D>,
    arch: Arch,
    (start, names): (Option<&Start>, &[String]),
    anchors: &[String],
    options: &OpenOptions,
    issues: &mut Vec<String>,
) -> Vec<Module> {
    let mut modules: BTreeMap<u64, Module> = BTreeMap::new();
    if let Some(Found { image, headers }) = program(memory, arch, start) {
        // Without the kernel's word it may be any image that has such a name.
        let names = if start.is_some_and(|start| is_started(start, &image)) { names } else { &[] };
        modules.insert(image.first.start, named(memory, image, &headers, names, options, issues));
    }
    let vdso = start.filter(|_| needs_vdso(memory));
    let vdso = vdso.and_then(|start| image_at(memory, start.auxv(AT_SYSINFO_EHDR)?));
    if let Some(Found { mut image, headers }) = vdso.filter(|found| found.image.arch == Some(arch)) {
        VDSO.clone_into(&mut image.path);
        modules.insert(image.first.start, module(memory, image, &headers, &[], options, issues));
    }
    // The C library tells of threads.
    let wanted = anchors.iter().map(String::as_str).chain(["_thread_db_sizeof_pthread", "_rtld_global"]);
    let left = Cell::new(MOST_PAGES);
    for name in wanted {
        let Some(addr) = memory.debugger().symbol(name) else { continue };
        if modules.values().any(|module| module.contains(addr)) {
            continue;
        }
        let found = image_around(memory, addr, &left).filter(|found| found.image.arch == Some(arch));
        let Some(Found { image, headers }) = found else { continue };
        let names = if start.is_some_and(|start| is_started(start, &image)) { names } else { &[] };
        modules.insert(image.first.start, named(memory, image, &headers, names, options, issues));
    }
    modules.into_values().collect()
}

/// A module that nobody lists: it has the names of the program, or the one it gives itself.
fn named<D: Debugger>(
    memory: &Memory<D>,
    mut image: Image,
    headers: &Headers,
    names: &[String],
    options: &OpenOptions,
    issues: &mut Vec<String>,
) -> Module {
    if names.is_empty()
        && let Some(soname) = rebuilt::file(memory, &image, headers).ok().and_then(|file| file.soname())
    {
        image.path = soname;
    }
    module(memory, image, headers, names, options, issues)
}

/// The program, by what says where its headers are: the kernel, the C library of a static program (`_dl_phdr` in glibc's
/// elf/dl-support.c), or its linker.
fn program<D: Debugger>(memory: &Memory<D>, arch: Arch, start: Option<&Start>) -> Option<Found> {
    let symbol = |name: &str| memory.debugger().symbol(name);
    let page = |at: u64| at & !(PAGE - 1);
    let begins = |at: u64| image_at(memory, at).filter(|found| found.image.arch == Some(arch));
    let said = || start.and_then(|start| start.auxv(AT_PHDR)).map(page).and_then(begins);
    let kept = || symbol("_dl_phdr").and_then(|at| memory.word(at, arch)).map(page).and_then(begins);
    let linked = || HEADER_NAMES.iter().find_map(|name| begins(symbol(name)?.0));
    let started = |found: &Found| start.is_none_or(|start| is_started(start, &found.image));
    said().filter(started).or_else(|| kept().filter(started)).or_else(|| linked().filter(started))
}

/// True if the process began at the entry point of the image.
fn is_started(start: &Start, image: &Image) -> bool {
    let entry = Elf::parse_header(&image.head).ok().map(|header| header.e_entry.wrapping_add(image.bias));
    entry.is_some() && entry == start.auxv(AT_ENTRY)
}

/// The machine of the process, by an image that a well-known symbol lies in, or whose header it is. There are debuggers that
/// complain of each name that they do not know: those that every process has come first.
pub(super) fn machine<D: Debugger>(memory: &Memory<D>, anchors: &[&str]) -> Option<Arch> {
    let symbol = |name: &str| memory.debugger().symbol(name);
    let left = Cell::new(MOST_PAGES);
    let around = |name: &&str| image_around(memory, symbol(name)?, &left);
    let found = linker(memory).or_else(|| ["__libc_stack_end", "_r_debug"].iter().find_map(around));
    let found = found.or_else(|| HEADER_NAMES.iter().find_map(|name| image_at(memory, symbol(name)?.0)));
    found.or_else(|| anchors.iter().find_map(around))?.image.arch
}

/// The dynamic linker, where `_r_debug` says that it begins (`r_ldbase`). The bytes of `_r_debug` may be of any order
/// and width. So only an address closely below it is read, and only an image that contains `_r_debug` counts.
fn linker<D: Debugger>(memory: &Memory<D>) -> Option<Found> {
    let debug = memory.debugger().symbol("_r_debug")?;
    // Behind r_version (an int), r_map, r_brk and r_state (an int), each as wide as a pointer.
    let base = memory.bytes(debug.offset(4 * 8), 8)?;
    let base = u64::from_le_bytes(base.try_into().ok()?);
    debug.0.checked_sub(base).filter(|below| below / PAGE < MOST_PAGES)?;
    let found = image_at(memory, base)?;
    found.image.ranges.iter().any(|range| range.contains(&debug.0)).then_some(found)
}

struct Found {
    image: Image,
    headers: Headers,
}

impl Found {
    /// True if the dynamic section of the image lies at `dynamic`.
    fn holds(&self, dynamic: u64) -> bool {
        let mut own = self.headers.segments.iter().filter(|segment| segment.p_type == PT_DYNAMIC);
        own.any(|segment| segment.p_vaddr.wrapping_add(self.image.bias) == dynamic)
    }
}

/// The image whose header lies at `at`, without a path.
fn image_at<D: Debugger>(memory: &Memory<D>, at: u64) -> Option<Found> {
    let read = |addr: u64, buf: &mut [u8]| memory.read(Addr(addr), buf).is_ok();
    let (image, headers) = image::image_at(at..at.checked_add(PAGE)?, "", &read)?;
    Some(Found { image, headers })
}

/// The image that `addr` lies in, by the nearest true header below it. The magic number alone proves nothing: the
/// dynamic linker has it among its constants, too. Counts down how many pages may be looked at.
fn image_around<D: Debugger>(memory: &Memory<D>, addr: Addr, left: &Cell<u64>) -> Option<Found> {
    let first = addr.0 & !(PAGE - 1);
    let pages = (0..MAX_PAGES).map_while(|page| {
        left.set(left.get().checked_sub(1)?);
        first.checked_sub(page * PAGE)
    });
    let begins = |at: u64| {
        let mut magic = [0; 4];
        (memory.read(Addr(at), &mut magic).is_ok() && magic == *b"\x7fELF").then(|| image_at(memory, at))?
    };
    pages.filter_map(begins).find(|found| found.image.ranges.iter().any(|range| range.contains(&addr.0)))
}

/// What is lost where a static program had to be put together: of its symbols nothing is loaded.
fn nameless(path: &str, file: &ElfFile, refused: &[String]) -> Option<String> {
    let lost = file.is_program() && file.needed().is_empty() && !file.has_names();
    let path = if path.is_empty() { "the program" } else { path };
    lost.then(|| format!("{path}: its file, which has its symbols, is not at hand ({})", refused.join("; ")))
}

/// A module with its file: by the path it has, or by these names of the program.
fn module<D: Debugger>(
    memory: &Memory<D>,
    mut image: Image,
    headers: &Headers,
    names: &[String],
    options: &OpenOptions,
    issues: &mut Vec<String>,
) -> Module {
    if image.path == VDSO {
        let length = image.ranges.first().map_or(0, |range| range.end - range.start).min(MAX_VDSO);
        let bytes = memory.bytes(Addr(image.first.start), length as usize);
        if let Some(module) = bytes.and_then(|bytes| Module::vdso(image.first.start, bytes)) {
            return module;
        }
    }
    let own = [image.path.clone()];
    let mut refused = Vec::new();
    let mut file = None;
    for name in if names.is_empty() { &own } else { names } {
        image.path.clone_from(name);
        // What is called by a name without a path may lie anywhere: only its build-id tells that a file is the one.
        let opened = match name.as_str() {
            "" => Err(vec!["its path is not known".to_owned()]),
            path if path.starts_with('/') || image.build_id.is_some() => {
                image::open_by_name(&image, !names.is_empty(), options)
            }
            _ => Err(vec![format!("{name}: its path is not known")]),
        };
        match opened {
            Ok(opened) => {
                file = Some(opened);
                break;
            }
            Err(why) => refused.extend(why),
        }
    }
    let file = file.map_or_else(
        || {
            image.path.clone_from(names.first().unwrap_or(&own[0]));
            rebuilt::file(memory, &image, headers)
                .inspect(|file| issues.extend(nameless(&image.path, file, &refused)))
                .map_err(|why| [refused.as_slice(), &[format!("memory: {why}")]].concat())
        },
        Ok,
    );
    if let Err(why) = &file {
        issues.push(format!("{}: the mapped file is not at hand ({})", image.path, why.join("; ")));
    }
    Module { path: image.path, bias: image.bias, ranges: image.ranges, build_id: image.build_id, file }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_share_no_addresses() {
        let mut taken = Taken::default();
        assert!(taken.take(&[0x5000..0x6000, 0x1000..0x3000, 0x2000..0x4000]));
        for (from, to, free) in [
            (0x0, 0x1000, true),
            (0x0, 0x1001, false),
            (0x3fff, 0x4000, false),
            (0x4000, 0x5000, true),
            (0x5fff, 0x7000, false),
            (0x0, u64::MAX, false),
            (0x6000, u64::MAX, true),
        ] {
            let mut taken = Taken(taken.0.clone());
            assert_eq!(taken.take(std::slice::from_ref(&(from..to))), free, "{from:x} {to:x}");
        }
    }
}
