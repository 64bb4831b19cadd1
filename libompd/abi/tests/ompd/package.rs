//! The shared library as a file: its name, what it needs, and what it leaves alone.

use object::Object as _;
use object::read::NameOrOrdinal;
use ompd_process::ElfFile;

use crate::client::library;

#[test]
fn the_file_has_the_name_that_debuggers_load_it_by() {
    let file = ElfFile::open(&library()).expect("the library");
    assert_eq!(file.soname().as_deref(), Some("libompd.so"));
}

#[test]
fn it_takes_nothing_from_other_runtimes_and_languages() {
    let bytes = std::fs::read(library()).expect("the library");
    let file = object::File::parse(&*bytes).expect("an ELF file");
    let imports = file.imports().expect("imports").map(|import| import.expect("an import"));
    let name = |import: object::Import<'_>| match import.name() {
        NameOrOrdinal::Name(name) => String::from_utf8(name.to_vec()).expect("a name"),
        NameOrOrdinal::Ordinal(number) => panic!("ELF has no numbers instead of names: {number}"),
    };
    let names: Vec<String> = imports.map(name).collect();
    assert!(names.iter().any(|name| name == "malloc"), "{names:?}");
    // The operators new and delete of C++, which a debugger may have replaced; OpenMP runtimes; Python.
    for foreign in ["_Zn", "_Zd", "_Z", "__cxa_throw", "omp_", "ompt_", "ompd_", "GOMP_", "__kmp", "Py", "_Py"] {
        assert!(!names.iter().any(|name| name.starts_with(foreign)), "{foreign}: {names:?}");
    }
    // It neither stops processes nor writes to them, and sets no signal handlers. The standard library calls `signal`
    // in a child that is to run a program.
    for name in ["ptrace", "process_vm_writev", "system", "execl", "sigaction", "sigprocmask", "dlopen"] {
        assert!(names.iter().all(|own| own != name), "{name}");
    }
}
