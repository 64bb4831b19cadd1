//! What `pthread_self` returns, told from the thread pointer.

use std::process::Command;
use std::sync::Arc;

use crate::support;
use ompd_process::elf::ElfFile;
use ompd_process::{
    Addr, Arch, ByteOrder, Machine, Module, ProcessInfo, ReadError, ReadFault, Target, TargetKind, Thread,
};

/// A process of some machine, in which a single file is loaded.
struct Loaded {
    machine: Machine,
    modules: Vec<Module>,
    process: ProcessInfo,
}

impl Target for Loaded {
    fn kind(&self) -> TargetKind {
        TargetKind::Live
    }

    fn arch(&self) -> Arch {
        Arch { machine: self.machine, pointer_bytes: 8, byte_order: ByteOrder::Little }
    }

    fn read(&self, addr: Addr, buf: &mut [u8]) -> Result<(), ReadError> {
        let found = self.modules.iter().find_map(|m| m.file.as_ref().ok()?.bytes_at(addr.0, buf.len() as u64));
        let why = ReadError { addr, len: buf.len() as u64, why: ReadFault::Unmapped };
        buf.copy_from_slice(found.ok_or(why)?);
        Ok(())
    }

    fn modules(&self) -> &[Module] {
        &self.modules
    }

    fn threads(&self) -> &[Thread] {
        &[]
    }

    fn process(&self) -> &ProcessInfo {
        &self.process
    }

    fn issues(&self) -> &[String] {
        &[]
    }
}

#[test]
fn the_distance_is_what_the_c_library_states_for_debuggers() {
    let directory = support::scratch();
    let library = |name: &str, text: &str| {
        let (source, file) = (directory.join(format!("{name}.c")), directory.join(format!("{name}.so")));
        std::fs::write(&source, text).expect("a source");
        support::run(Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&file).arg(&source));
        let file = ElfFile::open(&file).expect("a library");
        // All of it lies where it was linked to.
        let range = 0..1 << 20;
        Module { path: name.to_owned(), bias: 0, ranges: vec![range], build_id: None, file: Ok(Arc::new(file)) }
    };
    let distance = |machine, module: &Module| {
        Loaded { machine, modules: vec![module.clone()], process: ProcessInfo::default() }.pthread_distance()
    };
    let glibc = library("stating", "const unsigned _thread_db_sizeof_pthread = 1776;\n");
    let other = library("silent", "int nothing;\n");
    let absurd = library("absurd", "const unsigned _thread_db_sizeof_pthread = -1;\n");
    for (machine, module, expected) in [
        (Machine::X86_64, &glibc, Some(0)),
        (Machine::X86_64, &other, Some(0)),
        (Machine::AARCH64, &glibc, Some(1776)),
        (Machine::AARCH64, &other, None),
        (Machine::AARCH64, &absurd, None),
        (Machine::of_elf(8), &glibc, None),
    ] {
        assert_eq!(distance(machine, module), expected, "{machine:?} {}", module.path);
    }
}
