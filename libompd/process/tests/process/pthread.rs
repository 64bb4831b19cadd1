//! What `pthread_self` returns, told from the thread pointer.

use std::process::Command;
use std::sync::Arc;

use crate::support;
use ompd_process::elf::ElfFile;
use ompd_process::{Arch, Machine, Module, Target, TargetKind};
use test_programs::FakeTarget;

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
        let mut target = FakeTarget::new(TargetKind::Live, Arch { machine, ..Arch::X86_64 });
        if let Some(stated) = module.symbol("_thread_db_sizeof_pthread") {
            let file = module.file.as_ref().expect("the file");
            target.memory.push((stated.addr, file.bytes_at(stated.addr.0, 4).expect("its bytes").to_vec()));
        }
        target.modules.push(module.clone());
        target.pthread_distance()
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
