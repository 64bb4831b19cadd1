//! Memory and files made by hand, for the tests of what is read of them.

use std::ops::{Deref, DerefMut, Range};
use std::sync::Arc;

use ompd_layout::{FactSource, Facts, Layout, Origin};
use ompd_process::{Addr, Arch, ElfFile, Module, TargetKind};
use test_programs::{FakeTarget, elf};

use crate::model::InstanceInfo;

/// A process on x86-64 whose memory is made up.
pub(crate) struct Heap {
    pub(crate) target: FakeTarget,
    next: u64,
}

impl Heap {
    pub(crate) fn new() -> Heap {
        Heap { target: FakeTarget::new(TargetKind::Core, Arch::X86_64), next: 0x10_0000 }
    }

    /// Memory full of zeros.
    pub(crate) fn zeros(&mut self, bytes: u64) -> Addr {
        let at = self.next;
        self.next += bytes.next_multiple_of(64) + 64;
        self.target.memory.push((Addr(at), vec![0; bytes as usize]));
        Addr(at)
    }

    pub(crate) fn write(&mut self, at: Addr, value: u64, bytes: u64) {
        let skip = |start: &Addr| at.0.checked_sub(start.0);
        let mut memory = self.target.memory.iter_mut();
        let holds = |(start, of): &&mut (Addr, Vec<u8>)| skip(start).is_some_and(|skip| skip < of.len() as u64);
        let (start, of) = memory.find(holds).expect("memory");
        let from = (at.0 - start.0) as usize;
        of[from..from + bytes as usize].copy_from_slice(&value.to_le_bytes()[..bytes as usize]);
    }
}

/// Where a made library has its code and its variables, and the bytes that each variable has for itself.
pub(crate) const CODE: Addr = Addr(0x7_0010);
const VARIABLES: u64 = 0x8_0000;
const EACH: u64 = 256;

/// A process with a runtime, in the layout of a profile.
pub(crate) struct Made<R> {
    pub(crate) runtime: R,
    heap: Heap,
    variables: &'static [&'static str],
}

impl<R> Deref for Made<R> {
    type Target = Heap;

    fn deref(&self) -> &Heap {
        &self.heap
    }
}

impl<R> DerefMut for Made<R> {
    fn deref_mut(&mut self) -> &mut Heap {
        &mut self.heap
    }
}

impl<R> Made<R> {
    /// A runtime with these variables, which are zero, beside the global facts that `facts` has.
    pub(crate) fn of(
        name: &str,
        mut facts: Facts,
        variables: &'static [&'static str],
        bind: impl FnOnce(&FakeTarget, &Module, Layout, InstanceInfo) -> R,
    ) -> Made<R> {
        let places = variables.iter().zip((VARIABLES..).step_by(EACH as usize));
        facts.globals.extend(places.map(|(name, at)| ((*name).to_owned(), at)));
        let (layout, _) = Layout::resolve(&[(FactSource::new(Origin::Profile, "made"), facts)]);
        let module = Module {
            path: name.to_owned(),
            bias: 0,
            ranges: vec![Range { start: 0x7_0000, end: 0x9_0000 }],
            build_id: None,
            file: Err(Vec::new()),
        };
        let mut heap = Heap::new();
        let info = InstanceInfo { base: module.base(), ..crate::samples::Process::new().snapshot.instance };
        let runtime = bind(&heap.target, &module, layout, info);
        heap.target.modules.push(module);
        heap.target.memory.push((Addr(VARIABLES), vec![0; EACH as usize * variables.len()]));
        Made { runtime, heap, variables }
    }

    pub(crate) fn variable(&self, name: &str) -> Addr {
        let place = self.variables.iter().position(|known| *known == name).expect("a variable");
        Addr(VARIABLES + EACH * place as u64)
    }

    // With these an argument may itself ask the process.
    pub(crate) fn zeros(&mut self, bytes: u64) -> Addr {
        self.heap.zeros(bytes)
    }

    pub(crate) fn write(&mut self, at: Addr, value: u64, bytes: u64) {
        self.heap.write(at, value, bytes);
    }
}

/// A library with these symbols, each with its address and size: of functions where `functions` is set, otherwise of variables.
pub(crate) fn with_symbols(symbols: &[(&str, u64, u64)], functions: bool) -> Module {
    let mut strings = vec![0];
    let mut table = vec![0; 24];
    for (name, at, size) in symbols {
        table.extend((strings.len() as u32).to_le_bytes());
        // STT_FUNC or STT_OBJECT, STB_GLOBAL, of section 1
        table.extend([if functions { 0x12 } else { 0x11 }, 0, 1, 0]);
        table.extend([*at, *size].map(u64::to_le_bytes).concat());
        strings.extend(name.bytes().chain([0]));
    }
    let bytes = elf(&[(".text", 0x1000, &[0x90; 0x1000]), (".symtab", 0, &table), (".strtab", 0, &strings)]);
    let file = ElfFile::from_bytes("a file", bytes).expect("a file");
    let ranges = vec![Range { start: 0x1000, end: 0x2000 }];
    Module { path: "/lib/libmade.so".to_owned(), bias: 0, ranges, build_id: None, file: Ok(Arc::new(file)) }
}
