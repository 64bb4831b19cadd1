//! A core file.
//!
//! Memory is an overlay. The core comes first. Below it lie the mapped files listed in NT_FILE, each only if it is
//! verified to be the mapped one. They hold the pages that the kernel left out because a file has them (coredump_filter
//! in core(5)). A byte that neither holds is an error, never zero.

mod notes;
mod space;

use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use goblin::elf::ProgramHeader;
use goblin::elf::header::{ET_CORE, ET_DYN, ET_EXEC, ET_REL};
use goblin::elf::program_header::{PF_X, PT_LOAD, PT_NOTE};

use crate::arch::Arch;
use crate::elf::ElfFile;
use crate::environment::{self, Environment};
use crate::error::{ElfError, OpenError};
use crate::image::{self, Headers, Image, Mapping, Union};
use crate::live::Surroundings;
use crate::memory::{Addr, ReadError};
use crate::module::Module;
use crate::options::OpenOptions;
use crate::source::Source;
use crate::thread::Thread;
use crate::{ProcessInfo, Target, TargetKind};
use notes::Notes;
use space::{Backing, Piece, Space};

const AT_PHDR: u64 = 3;
const AT_ENTRY: u64 = 9;
const AT_SYSINFO_EHDR: u64 = 33;
/// The vdso is a few pages; more is not read.
const MAX_VDSO: u64 = 256 << 10;
/// More segments than any process can have mappings (vm.max_map_count is 65530 by default and rarely above 2^18).
const MAX_SEGMENTS: usize = 1 << 20;
/// Bytes at the start of a file that tell what it is.
const LOOKED_AT: usize = 512;
/// More entries of NT_FILE are not looked at.
const MAX_MAPPINGS: usize = 1 << 17;

/// A core file, with the files it refers to.
#[derive(Debug)]
pub struct Core {
    source: Source,
    arch: Arch,
    space: Space,
    /// Files whose pages the space shows, by the index in [`Backing::File`].
    files: Vec<Arc<ElfFile>>,
    modules: Vec<Module>,
    /// Where files are mapped, images or not; `None` without a list.
    mapped: Option<Union>,
    /// Their paths.
    paths: HashSet<String>,
    threads: Vec<Thread>,
    process: ProcessInfo,
    auxv: BTreeMap<u64, u64>,
    issues: Vec<String>,
}

impl Core {
    /// Opens the core file at `path`.
    ///
    /// # Errors
    /// [`OpenError::NotCore`] says what the file is instead; [`OpenError::Truncated`] if not even the notes are left;
    /// [`OpenError::MalformedCore`]; [`OpenError::Io`].
    pub fn open(path: &Path, options: &OpenOptions) -> Result<Core, OpenError> {
        Core::of_source(Source::open(path), path, options)
    }

    /// Opens the core that an open file holds, such as one without a name; `path` names it in errors.
    ///
    /// # Errors
    /// As [`Core::open`].
    pub fn of_file(file: File, path: &Path, options: &OpenOptions) -> Result<Core, OpenError> {
        Core::of_source(Source::of_file(file, path), path, options)
    }

    /// Adds something that is wrong with the core as a whole.
    pub fn add_issue(&mut self, issue: String) {
        self.issues.push(issue);
    }

    fn of_source(source: Result<Source, ElfError>, path: &Path, options: &OpenOptions) -> Result<Core, OpenError> {
        let source = check_source(source, path)?;
        let data = source.start(LOOKED_AT);
        let not_core = |found: &str| OpenError::NotCore { path: path.to_owned(), found: found.to_owned() };
        if !data.starts_with(b"\x7fELF") {
            return Err(not_core(describe(data)));
        }
        let headers = Headers::read(data, |offset, len| source.at(offset as u64, len))
            .map_err(|why| malformed_or_truncated(path, data, source.len() as u64, why))?;
        match headers.kind {
            ET_CORE => {}
            ET_EXEC | ET_DYN => return Err(not_core("this is an executable or shared library, not a core file")),
            ET_REL => return Err(not_core("this is an object file, not a core file")),
            _ => return Err(not_core("this ELF file is not a core file")),
        }
        if headers.segments.len() > MAX_SEGMENTS {
            let why = format!("{} segments are more than a process can have", headers.segments.len());
            return Err(OpenError::MalformedCore { path: path.to_owned(), why });
        }
        let mut core = Core {
            source,
            arch: headers.arch,
            space: Space::default(),
            files: Vec::new(),
            modules: Vec::new(),
            mapped: None,
            paths: HashSet::new(),
            threads: Vec::new(),
            process: ProcessInfo::default(),
            auxv: BTreeMap::new(),
            issues: Vec::new(),
        };
        core.load(path, &headers, options)?;
        Ok(core)
    }

    /// The value of entry `kind` of the auxiliary vector (`AT_*` in elf.h).
    pub fn auxv(&self, kind: u64) -> Option<u64> {
        self.auxv.get(&kind).copied()
    }

    fn load(&mut self, path: &Path, headers: &Headers, options: &OpenOptions) -> Result<(), OpenError> {
        let size = self.source.len() as u64;
        let stored = headers.segments.iter().filter(|p| p.p_filesz > 0);
        let missing = stored.map(|p| p.p_offset.saturating_add(p.p_filesz)).max().unwrap_or(0).saturating_sub(size);

        let mut notes = Notes::default();
        // Segments that lie on each other could make more threads of a file than it has bytes.
        let mut left = self.source.len();
        for p in headers.segments.iter().filter(|p| p.p_type == PT_NOTE) {
            let data = clip(&self.source, p.p_offset, p.p_filesz);
            let Some(rest) = left.checked_sub(data.len()) else {
                self.issues.push("the core has more notes than bytes: the rest of them is not read".into());
                break;
            };
            left = rest;
            notes.read(headers, data);
        }
        notes.finish();
        if notes.threads.is_empty() {
            let path = path.to_owned();
            return Err(match missing {
                0 => OpenError::MalformedCore { path, why: "it has no thread notes (NT_PRSTATUS)".into() },
                _ => OpenError::Truncated { path, missing },
            });
        }
        if missing > 0 {
            self.issues.push(format!("the core file is truncated: {missing} bytes are missing at its end"));
        }
        self.issues.append(&mut notes.issues);

        let loads: Vec<_> = headers.segments.iter().filter(|p| p.p_type == PT_LOAD).collect();
        self.space.add_below(
            loads
                .iter()
                .map(|p| {
                    let present = p.p_filesz.min(size.saturating_sub(p.p_offset));
                    Piece {
                        start: p.p_vaddr,
                        end: p.p_vaddr.saturating_add(present),
                        source: Backing::Core(p.p_offset),
                    }
                })
                .collect(),
        );
        if notes.files.as_ref().is_none_or(Vec::is_empty) {
            self.issues.push("the core has no list of mapped files (NT_FILE): its modules are not known".into());
        }
        self.mapped = notes.files.as_ref().map(|files| Union::of(files.iter().map(|f| f.start..f.end).collect()));
        self.paths = notes.files.iter().flatten().map(|file| file.path.clone()).collect();
        let mut mappings: Vec<Mapping> = (notes.files.take().unwrap_or_default().into_iter())
            .map(|f| Mapping { start: f.start, end: f.end, offset: f.offset, path: f.path, exec: None })
            .collect();
        mappings.sort_by_key(|m| m.start);
        let all = mappings.len();
        // What is looked up by address further on is one mapping.
        mappings.dedup_by(|next, previous| next.start < previous.end);
        if mappings.len() < all {
            self.issues.push(format!("{} mapped files lie on others: they are left out", all - mappings.len()));
        }
        if mappings.len() > MAX_MAPPINGS {
            self.issues.push(format!("of {} mapped files only {MAX_MAPPINGS} are considered", mappings.len()));
            mappings.truncate(MAX_MAPPINGS);
        }
        mark_executable(&mut mappings, &loads);

        let images = image::find_images(&mappings, &|addr, buf| self.read(Addr(addr), buf).is_ok());
        // gdb leaves out mappings of which it writes no byte, and files are known by their first page.
        if images.is_empty() && !mappings.is_empty() {
            self.issues
                .push(format!("none of {} mapped files is recognised: the core has nothing of them", mappings.len()));
        }
        let covers =
            |i: &Image, kind: u64| notes.auxv.get(&kind).is_some_and(|at| i.ranges.iter().any(|r| r.contains(at)));
        // AT_ENTRY and AT_PHDR both lie in the executable; only one of them may survive in a damaged core.
        let exe = images.iter().position(|i| covers(i, AT_ENTRY)).or(images.iter().position(|i| covers(i, AT_PHDR)));
        self.add_modules(&images, exe, &mappings, options);
        let absent = loads.iter().map(|p| (p.p_vaddr, p.p_vaddr.saturating_add(p.p_memsz)));
        let absent = absent.chain(mappings.iter().map(|m| (m.start, m.end)));
        self.space.add_below(absent.map(|(start, end)| Piece { start, end, source: Backing::Absent }).collect());
        self.add_vdso(notes.auxv.get(&AT_SYSINFO_EHDR).copied());

        let signal_sent = notes.is_sent();
        self.process = ProcessInfo {
            pid: notes.pid,
            exe: exe.map(|i| images[i].path.clone()),
            command: notes.command,
            signal: notes.signal,
            signal_sent,
            stopped: false,
            frozen: false,
            held_by: None,
            handled_signals: None,
            cpus: None,
            main_stack: None,
            inner_ids: None,
            environment: Environment::default(),
        };
        for registers in notes.threads.iter_mut().filter_map(|thread| thread.registers.as_mut().ok()) {
            registers.find_call(self.arch, &|addr, buf| self.read(addr, buf).is_ok());
        }
        self.threads = notes.threads;
        self.auxv = notes.auxv;
        self.process.environment = environment::from_stack(self, |kind| self.auxv(kind));
        Ok(())
    }

    /// Opens the file behind each image and puts its pages below those of the core.
    fn add_modules(&mut self, images: &[Image], exe: Option<usize>, mappings: &[Mapping], options: &OpenOptions) {
        let mut pieces = Vec::new();
        let mut lost: Vec<&str> = Vec::new();
        for (number, image) in images.iter().enumerate() {
            let is_exe = exe == Some(number);
            let file = image::open_by_name(image, is_exe, options);
            let mut bias = image.bias;
            if let Some(text) = file.as_ref().ok().filter(|_| is_exe).and_then(|f| image::exe_not_used(options, f)) {
                self.issues.push(text);
            }
            self.issues.extend(file.as_ref().ok().and_then(|file| file.refused_sections()));
            match &file {
                Ok(file) => {
                    let (size, index) = (file.source().len() as u64, self.files.len());
                    self.files.push(Arc::clone(file));
                    if image.arch.is_none() {
                        bias = image.first.start.wrapping_sub(file.svma_of_offset(0).unwrap_or(0));
                    }
                    let is_written =
                        |m: &&Mapping| file.is_writable(&(m.start.wrapping_sub(bias)..m.end.wrapping_sub(bias)));
                    pieces.extend(image.mappings(mappings).filter(|m| !is_written(m)).map(|m| {
                        let present = (m.end - m.start).min(size.saturating_sub(m.offset));
                        Piece { start: m.start, end: m.start + present, source: Backing::File(index, m.offset) }
                    }));
                }
                Err(why) if is_exe => self.issues.push(format!(
                    "the executable {} is not at hand ({}): give it with --exe PATH",
                    image.path,
                    why.join("; ")
                )),
                Err(_) => lost.push(&image.path),
            }
            self.modules.push(Module {
                path: image.path.clone(),
                bias,
                ranges: image.ranges.clone(),
                build_id: image.build_id.clone().or_else(|| file.as_ref().ok().and_then(|f| f.build_id().cloned())),
                file,
            });
        }
        if exe.is_none() && !images.is_empty() {
            self.issues.push("which mapped file is the executable is not known (no usable auxiliary vector)".into());
        }
        if !lost.is_empty() {
            // Names help whoever has few of them missing; who looks at a core of another machine knows.
            const NAMED: usize = 8;
            let (count, more) = (lost.len(), lost.len().saturating_sub(NAMED));
            lost.truncate(NAMED);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            let files = if count == 1 { "1 mapped file is" } else { &format!("{count} mapped files are") };
            let names = lost.join(", ");
            let remedy = "give a copy of the target's file system with --lib-root DIR";
            self.issues.push(format!("{files} not at hand: {remedy} ({names}{more})"));
        }
        self.space.add_below(pieces);
    }

    /// The vdso has no file, but its whole image is in the core.
    fn add_vdso(&mut self, at: Option<u64>) {
        let Some(at) = at.filter(|at| !self.modules.iter().any(|m| m.contains(Addr(*at)))) else { return };
        let Some(piece) = self.space.find(at).filter(|p| p.start == at && matches!(p.source, Backing::Core(_))) else {
            return;
        };
        let mut bytes = vec![0; (piece.end - at).min(MAX_VDSO) as usize];
        if self.read(Addr(at), &mut bytes).is_ok()
            && let Some(module) = Module::vdso(at, bytes)
        {
            let place = self.modules.partition_point(|m| m.base().0 < at);
            self.modules.insert(place, module);
        }
    }
}

impl Target for Core {
    fn kind(&self) -> TargetKind {
        TargetKind::Core
    }

    fn arch(&self) -> Arch {
        self.arch
    }

    fn read(&self, addr: Addr, buf: &mut [u8]) -> Result<(), ReadError> {
        self.space.read(addr.0, buf, |source, len| match source {
            Backing::Core(offset) => self.source.at(offset, len),
            Backing::File(index, offset) => self.files.get(index)?.source().at(offset, len),
            Backing::Absent => None,
        })
    }

    fn mapping(&self, addr: Addr) -> Option<Range<u64>> {
        self.space.find(addr.0).map(|piece| piece.start..piece.end)
    }

    fn is_shared(&self, addr: Addr) -> Option<bool> {
        let mapped = self.mapped.as_ref()?;
        // The kernel lists what is mapped shared without a file as one, too: `/dev/zero`, `/memfd:…`, `/SYSV…`.
        let listed = mapped.contains(addr.0);
        let of_module = || self.modules.iter().any(|module| module.contains(addr));
        (!listed || of_module()).then_some(false)
    }

    fn maps(&self, path: &str) -> bool {
        self.paths.contains(path)
    }

    fn surroundings(&self) -> Option<Surroundings> {
        None
    }

    fn modules(&self) -> &[Module] {
        &self.modules
    }

    fn threads(&self) -> &[Thread] {
        &self.threads
    }

    fn process(&self) -> &ProcessInfo {
        &self.process
    }

    fn issues(&self) -> &[String] {
        &self.issues
    }

    fn unread(&self) -> Option<String> {
        Some(format!("a part of the core file cannot be read ({})", self.source.failed()?))
    }
}

/// The part of `offset..offset + len` that the file has.
fn clip(source: &Source, offset: u64, len: u64) -> &[u8] {
    let left = (source.len() as u64).saturating_sub(offset);
    source.at(offset, len.min(left) as usize).unwrap_or_default()
}

fn check_source(source: Result<Source, ElfError>, path: &Path) -> Result<Source, OpenError> {
    let not_core = |found: &str| OpenError::NotCore { path: path.to_owned(), found: found.to_owned() };
    match source {
        Ok(source) if source.len() == 0 => Err(not_core("the file is empty")),
        Ok(source) => Ok(source),
        Err(ElfError::NotRegular { .. }) => Err(not_core("not a regular file")),
        Err(ElfError::Io { source, .. }) => Err(OpenError::Io { what: path.display().to_string(), source }),
        Err(e) => Err(not_core(&e.to_string())),
    }
}

/// Says what a file that is not ELF is, as far as its first bytes tell.
fn describe(data: &[u8]) -> &'static str {
    match data {
        [0x28, 0xb5, 0x2f, 0xfd, ..] => "this file is compressed with zstd: decompress it first (zstd -d)",
        [0x1f, 0x8b, ..] => "this file is compressed with gzip: decompress it first (gunzip)",
        [0xfd, b'7', b'z', b'X', b'Z', ..] => "this file is compressed with xz: decompress it first (unxz)",
        [0x04, 0x22, 0x4d, 0x18, ..] => "this file is compressed with lz4: decompress it first (lz4 -d)",
        [b'B', b'Z', b'h', b'1'..=b'9', ..] => "this file is compressed with bzip2: decompress it first (bunzip2)",
        [b'P', b'K', 3, 4, ..] => "this is a zip archive: take the core file out of it first (unzip)",
        _ if data.get(257..262) == Some(b"ustar") => {
            "this is a tar archive: take the core file out of it first (tar -xf)"
        }
        _ if data[..data.len().min(512)].iter().all(|b| matches!(b, b'\t' | b'\n' | b'\r' | 0x20..=0x7e | 0x80..)) => {
            "this is a text file, not a core file"
        }
        _ => "this file is neither a core file nor any other ELF file",
    }
}

/// Headers that cannot be parsed because the file ends within them are a truncation, not a contradiction.
fn malformed_or_truncated(path: &Path, data: &[u8], size: u64, why: String) -> OpenError {
    let end = match goblin::elf::Elf::parse_header(data) {
        // A table that begins beyond the end is as likely damaged as cut off.
        Ok(header) if header.e_phoff <= size => {
            header.e_phoff.saturating_add(u64::from(header.e_phnum) * u64::from(header.e_phentsize))
        }
        Ok(_) => 0,
        Err(_) => 64,
    };
    match end.saturating_sub(size) {
        0 => OpenError::MalformedCore { path: path.to_owned(), why },
        missing => OpenError::Truncated { path: path.to_owned(), missing },
    }
}

/// Takes permissions from the segments: the list of mapped files has none. gdb leaves out the segments of mappings it
/// does not dump. Their permissions stay unknown.
fn mark_executable(mappings: &mut [Mapping], loads: &[&ProgramHeader]) {
    let mut segments: Vec<_> =
        loads.iter().map(|p| (p.p_vaddr, p.p_vaddr.saturating_add(p.p_memsz), p.p_flags & PF_X != 0)).collect();
    segments.sort_unstable();
    for m in mappings {
        let below = segments.partition_point(|(start, _, _)| *start < m.end);
        let last = below.checked_sub(1).map(|i| segments[i]);
        m.exec = last.filter(|(_, end, _)| *end > m.start).map(|(_, _, exec)| exec);
    }
}
