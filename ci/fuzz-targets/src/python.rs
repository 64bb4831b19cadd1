//! The interpreter of a process: memory that means what the structs of some version of CPython say.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use ompd_process::{Addr, Arch, ElfFile, Module, TargetKind};
use ompd_python::{GilState, Interpreter, Snapshot};
use ompd_stack::Cache;
use test_programs::FakeTarget;

use crate::stack::look_at;

/// Added to the addresses of the interpreter's file.
const BIAS: u64 = 0x4000_0000;
/// Extent of its image.
const EXTENT: u64 = 0x10_0000;
/// Where all that is not in `_PyRuntime` lies.
const HEAP: u64 = 0x7fff_0000_0000;
/// Bytes of an input for one word of memory.
const BYTES: usize = 5;
/// Words of `_PyRuntime`, which come first.
pub const RUNTIME_WORDS: usize = 160;
/// The types that objects name, in the order of [`Word::Type`].
const TYPES: [&str; 4] = ["PyCode_Type", "PyUnicode_Type", "PyBytes_Type", "PyFrame_Type"];
/// The first minor version of Python 3 that an input may be of, and how many there are.
pub const FIRST_MINOR: u8 = 8;
const MINORS: u8 = 7;
/// Frames of all Python threads together, but for so many that each may have: what the crate says is its limit.
const FRAMES: usize = 4096;
const LEAST_FRAMES: usize = 64;
/// Bytes that all names and paths may take together. A character takes three at most.
const NAMES: usize = 3 * (4 << 20) + (64 << 10);

/// A word of memory, as inputs write it: one byte for its kind, four for a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Word {
    /// The number itself, with its sign.
    Number(u32),
    /// An address so far behind the begin of the heap.
    Heap(u32),
    /// One so far behind that of `_PyRuntime`.
    Runtime(u32),
    /// The address of one of the types.
    Type(u32),
    /// The number in the upper half.
    High(u32),
    /// What the description of a version begins with.
    Cookie,
}

impl Word {
    /// As it stands in an input.
    pub fn bytes(self) -> [u8; BYTES] {
        let (kind, number) = match self {
            Word::Number(number) => (0, number),
            Word::Heap(offset) => (1, offset),
            Word::Runtime(offset) => (2, offset),
            Word::Type(number) => (3, number),
            Word::High(number) => (4, number),
            Word::Cookie => (5, 0),
        };
        let [a, b, c, d] = number.to_le_bytes();
        [kind, a, b, c, d]
    }

    fn of(bytes: [u8; BYTES]) -> Word {
        let [kind, number @ ..] = bytes;
        let number = u32::from_le_bytes(number);
        match kind % 6 {
            0 => Word::Number(number),
            1 => Word::Heap(number),
            2 => Word::Runtime(number),
            3 => Word::Type(number),
            4 => Word::High(number),
            _ => Word::Cookie,
        }
    }
}

/// The interpreter's file, and where in it the variables are.
struct File {
    module: Module,
    runtime: u64,
    version: u64,
    types: [u64; TYPES.len()],
}

fn file() -> File {
    let scratch = tempfile::tempdir().expect("a directory");
    let out = scratch.path().join("libpython3.so");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("programs/interpreter.c");
    let done = Command::new("gcc").args(["-shared", "-fPIC", "-nostdlib", "-o"]).arg(&out).arg(source).output();
    let done = done.expect("gcc");
    assert!(done.status.success(), "gcc: {}", String::from_utf8_lossy(&done.stderr));
    let file = ElfFile::open(&out).expect("what gcc made");
    let module = Module {
        path: "/nowhere/libpython3.so".to_owned(),
        bias: BIAS,
        ranges: std::iter::once(BIAS..BIAS + EXTENT).collect(),
        build_id: None,
        file: Ok(Arc::new(file)),
    };
    let address = |name| module.symbol(name).map(|symbol| symbol.addr.0).expect(name);
    let (runtime, version, types) = (address("_PyRuntime"), address("Py_Version"), TYPES.map(address));
    File { module, runtime, version, types }
}

/// The process that an input is, and its Python: a byte for the version, the words of `_PyRuntime`, and those of the heap.
pub fn read(data: &[u8]) -> Option<(FakeTarget, Snapshot)> {
    thread_local! {
        static FILE: File = file();
    }
    let (minor, words) = data.split_first()?;
    let words = words.as_chunks::<BYTES>().0;
    let (runtime, heap) = words.split_at_checked(RUNTIME_WORDS)?;
    let mut target = FakeTarget::new(TargetKind::Core, Arch::X86_64);
    FILE.with(|file| {
        let extent = heap.len() as u64 * 8;
        let value = |word: &[u8; BYTES]| match Word::of(*word) {
            Word::Number(number) => number as i32 as u64,
            Word::Heap(offset) => HEAP + ((u64::from(offset) % (extent + 1)) & !7),
            Word::Runtime(offset) => file.runtime + u64::from(offset),
            Word::Type(number) => file.types[number as usize % TYPES.len()],
            Word::High(number) => u64::from(number) << 32,
            Word::Cookie => u64::from_le_bytes(*b"xdebugpy"),
        };
        let memory = |words: &[[u8; BYTES]]| words.iter().flat_map(|word| value(word).to_le_bytes()).collect();
        let version = u32::from_be_bytes([3, FIRST_MINOR + minor % MINORS, 0, 0xf0]);
        target.memory.push((Addr(file.version), version.to_le_bytes().to_vec()));
        target.memory.push((Addr(file.runtime), memory(runtime)));
        target.memory.push((Addr(HEAP), memory(heap)));
        target.modules.push(file.module.clone());
    });
    let snapshot = Snapshot::read(&target, &Interpreter::all(&target));
    Some((target, snapshot))
}

/// Reads the interpreter of a process, and looks at its stacks.
pub fn check(data: &[u8]) {
    let Some((target, snapshot)) = read(data) else { return };
    let [runtime] = &snapshot.runtimes[..] else { panic!("one interpreter is loaded: {snapshot:?}") };
    let frames = || runtime.threads.iter().flat_map(|thread| &thread.calls).flat_map(|call| &call.frames);
    assert!(frames().count() <= FRAMES + LEAST_FRAMES * runtime.threads.len());
    assert!(frames().all(|frame| frame.line != Some(0)));
    let mut seen = std::collections::HashSet::new();
    let texts = frames().flat_map(|frame| [&frame.code.name, &frame.code.file]);
    let names: usize = texts.filter(|text| seen.insert(Arc::as_ptr(text))).map(|text| text.len()).sum();
    assert!(names <= NAMES, "{names} bytes of names");
    for gil in &runtime.gils {
        if let Ok(GilState::HeldBy(state)) = gil.state {
            assert!(runtime.threads.iter().any(|thread| thread.state == state), "{gil:?}");
        }
    }
    look_at(&target, &[], &Cache::default());
}
