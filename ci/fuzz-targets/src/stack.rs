//! The stacks of a process: registers and memory that mean nothing over real images, and call frame information and debug
//! information that may say anything.

use std::path::Path;
use std::process::Command;
use std::rc::Rc;
use std::sync::Arc;

use ompd_process::{Addr, Arch, ElfFile, GENERAL, Machine, Module, Registers, Target, TargetKind, Thread};
use ompd_report::text::tree;
use ompd_runtime::{Runtime, discover};
use ompd_stack::{Cache, Interpreter, Report, Stacks, fold};

use test_programs::{FakeTarget, elf};

use crate::image;

/// Where the stack of all threads lies.
const STACK: u64 = 0x7fff_0000_0000;
/// Added to the addresses of a made-up image's file.
const BIAS: u64 = 0x4000_0000;
/// Extent of a made-up image.
const EXTENT: u64 = 0x10_0000;
/// Bytes of an input for one word of registers or memory.
const WORD: usize = 5;
/// Threads of a process over real images.
const THREADS: usize = 4;
/// Frames of all logical stacks together, and of all physical ones: what the crate says is its limit, for so few threads.
const MOST_FRAMES: usize = (1 << 20) + (32 << 10);

/// A process made of an input: the memory is the stack of all threads.
fn process(modules: Vec<Module>, threads: impl IntoIterator<Item = Thread>, memory: Vec<u8>) -> FakeTarget {
    let mut target = FakeTarget::new(TargetKind::Core, Arch::X86_64);
    target.memory.push((Addr(STACK), memory));
    target.modules = modules;
    target.threads.extend(threads);
    target
}

fn thread(lwp: i32, general: [u64; GENERAL]) -> Thread {
    let registers = Registers {
        pc: Addr(general[16]),
        sp: Addr(general[7]),
        fp: Addr(general[6]),
        thread_pointer: Some(Addr(STACK)),
        syscall: None,
        returned: None,
        unnumbered: false,
        general,
        known: Registers::ALL,
    };
    Thread { lwp, name: None, registers: Ok(registers), pointer: None, signal: 0, blocked_signals: None }
}

fn module(file: &Arc<ElfFile>, bias: u64, extent: u64) -> Module {
    Module {
        path: file.path().display().to_string(),
        bias,
        ranges: std::iter::once(bias..bias + extent).collect(),
        build_id: file.build_id().cloned(),
        file: Ok(Arc::clone(file)),
    }
}

/// Looks at all stacks of the target, and at them in every form they are shown in.
pub(crate) fn look_at(target: &dyn Target, runtimes: &[Box<dyn Runtime>], cache: &Cache) -> usize {
    let snapshots: Vec<_> = runtimes.iter().map(|runtime| runtime.snapshot(target)).collect();
    let stacks = Stacks::capture(target).with_python(target, &Interpreter::all(target));
    let report = Report::of(target, runtimes, &snapshots, &stacks, cache);
    assert_eq!(report.logical.len(), target.threads().len());
    for stack in &report.logical {
        if let Some(physical) = report.physical(stack.lwp) {
            let registers = target.threads().iter().find(|t| t.lwp == stack.lwp).map(|t| t.registers.is_ok());
            assert!(registers != Some(true) || !physical.frames.is_empty() || target.arch().machine != Machine::X86_64);
        }
    }
    let frames: usize = report.logical.iter().map(|stack| stack.frames.len()).sum();
    assert!(frames <= MOST_FRAMES, "{frames} frames");
    let threads: usize = fold::fold(&report.logical, |_| String::new()).iter().map(|row| row.threads.len()).sum();
    assert_eq!(threads, report.logical.len(), "each stack is in one row");
    let tree = tree::tree(&report.logical, |_| Some(String::new()));
    let _ = (tree::folded(&tree), tree::dot(&tree));
    for (index, snapshot) in snapshots.iter().enumerate() {
        for (id, task) in snapshot.tasks.iter().enumerate().take(64) {
            let _ = report.task_frames(index, ompd_runtime::model::TaskId(id), task);
        }
    }
    frames
}

/// The images that stacks are put over: the C library, GCC's runtime, and a small program.
struct Images {
    modules: Vec<Module>,
    /// Return addresses in them.
    returns: Vec<u64>,
    cache: Cache,
}

fn images() -> Images {
    let mut files = vec![ElfFile::from_bytes("/nowhere/program", image::program()).expect("a program")];
    for name in ["libgomp.so.1", "libc.so.6"] {
        let asked = Command::new("gcc").arg(format!("-print-file-name={name}")).output();
        let path = asked.map(|done| String::from_utf8_lossy(&done.stdout).trim().to_owned()).unwrap_or_default();
        files.extend(ElfFile::open(Path::new(&path)));
    }
    let mut returns = Vec::new();
    let mut modules = Vec::new();
    for (file, bias) in files.into_iter().map(Arc::new).zip((1..).map(|n| n * BIAS)) {
        let code = file.executable_ranges();
        let end = code.iter().map(|range| range.end).max().unwrap_or(0);
        // Code comes first: what lies behind is data.
        for range in &code {
            let bytes = file.bytes_at(range.start, range.end - range.start).unwrap_or_default();
            // `call rel32` is five bytes long; that some of these are none makes no difference here.
            let calls = bytes.windows(5).enumerate().filter(|(_, window)| window[0] == 0xe8);
            returns.extend(calls.map(|(at, _)| bias + range.start + at as u64 + 5));
        }
        modules.push(module(&file, bias, end));
    }
    Images { modules, returns, cache: Cache::default() }
}

/// Reads words off an input.
struct Words<'d, 'i> {
    data: &'d [u8],
    images: &'i [Module],
    returns: &'i [u64],
    memory: u64,
}

impl Words<'_, '_> {
    /// One word: a number, or an address in an image, on the stack, or behind a call.
    fn next(&mut self) -> Option<u64> {
        let (word, rest) = self.data.split_at_checked(WORD)?;
        self.data = rest;
        let number = u32::from_le_bytes([word[1], word[2], word[3], word[4]]);
        Some(match word[0] % 5 {
            0 => number as i32 as u64,
            1 => {
                let module = &self.images[usize::from(word[0] / 5) % self.images.len()];
                let range = &module.ranges[0];
                range.start + u64::from(number) % (range.end - range.start)
            }
            2 => STACK + u64::from(number) % (self.memory + 1),
            3 => STACK + ((u64::from(number) % (self.memory + 1)) & !7),
            _ if self.returns.is_empty() => 0,
            _ => self.returns[number as usize % self.returns.len()],
        })
    }
}

/// Puts the input, as registers and memory, over real images: five bytes for each word.
pub fn check(data: &[u8]) {
    thread_local! {
        static IMAGES: Rc<Images> = Rc::new(images());
    }
    let images = IMAGES.with(Rc::clone);
    let memory = (data.len() / WORD * 8) as u64;
    let mut words = Words { data, images: &images.modules, returns: &images.returns, memory };
    let mut threads = Vec::new();
    for lwp in 0..THREADS {
        let mut general = [0; GENERAL];
        for register in general.iter_mut().take(17) {
            *register = words.next().unwrap_or(STACK);
        }
        threads.push(thread(lwp as i32, general));
    }
    let memory = std::iter::from_fn(|| words.next()).flat_map(u64::to_le_bytes).collect();
    let process = process(images.modules.clone(), threads, memory);
    thread_local! {
        // Finding the layout of a runtime takes far longer than all the rest, and is the same each time.
        static RUNTIMES: std::cell::OnceCell<Vec<Box<dyn Runtime>>> = const { std::cell::OnceCell::new() };
    }
    RUNTIMES.with(|runtimes| {
        look_at(&process, runtimes.get_or_init(|| discover(&process, &[])), &images.cache);
    });
}

/// Sections of an input for [`check_frames`], each with where it lies.
pub const FRAME_SECTIONS: [&str; 3] = [".eh_frame", ".eh_frame_hdr", ".debug_frame"];

/// Follows a stack by call frame information that is the input: [`image::join`] of the [`FRAME_SECTIONS`], and words as in
/// [`check`] behind them.
pub fn check_frames(data: &[u8]) {
    let Some((sections, rest)) = image::split(data, &FRAME_SECTIONS) else { return };
    let Ok(file) = ElfFile::from_bytes("/nowhere/frames", elf(&sections)) else { return };
    let modules = vec![module(&Arc::new(file), BIAS, EXTENT)];
    let memory = (rest.len() / WORD * 8) as u64;
    let mut words = Words { data: rest, images: &modules, returns: &[], memory };
    let memory: Vec<u8> = std::iter::from_fn(|| words.next()).flat_map(u64::to_le_bytes).collect();
    // Wherever it begins, there is an entry for some of the addresses.
    let threads = (0..64).map(|lwp| {
        let mut general = [STACK; GENERAL];
        general[16] = BIAS + 0x300 + 0x1d * lwp as u64;
        thread(lwp, general)
    });
    let process = process(modules, threads, memory);
    look_at(&process, &[], &Cache::default());
}

/// Sections of an input for [`check_lines`].
pub const LINE_SECTIONS: [&str; 13] = [
    ".debug_info",
    ".debug_abbrev",
    ".debug_line",
    ".debug_str",
    ".debug_line_str",
    ".debug_str_offsets",
    ".debug_addr",
    ".debug_aranges",
    ".debug_ranges",
    ".debug_rnglists",
    ".debug_types",
    ".symtab",
    ".strtab",
];

/// Finds functions and lines by debug information that is the input: [`image::join`] of the [`LINE_SECTIONS`].
pub fn check_lines(data: &[u8]) {
    let Some((sections, _)) = image::split(data, &LINE_SECTIONS) else { return };
    let Ok(file) = ElfFile::from_bytes("/nowhere/lines", elf(&sections)) else { return };
    let modules = vec![module(&Arc::new(file), BIAS, EXTENT)];
    let threads = (0..256).map(|lwp| {
        let mut general = [STACK; GENERAL];
        general[16] = BIAS + 0x300 + 0x7 * lwp as u64;
        thread(lwp, general)
    });
    let process = process(modules, threads, Vec::new());
    look_at(&process, &[], &Cache::default());
}
