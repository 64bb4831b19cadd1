//! ELF files: tables, sections, debug information, and what is read out of a runtime's file.

use ompd_layout::code::{CodeImage, functions};
use ompd_layout::dwarf;
use ompd_process::{Addr, ElfFile};

/// More than a file of the sizes tried here can tell apart.
const MAX_FUNCTIONS: usize = 1 << 20;

/// Lists made of one file.
const MAX_LISTS: usize = 16;

/// Opens the input as an ELF file and asks it everything.
pub fn check(data: &[u8]) {
    // The name has no directory that a debug link could be looked for in.
    let Ok(file) = ElfFile::from_bytes("/nowhere/input", data.to_vec()) else { return };
    let _ = (file.build_id(), file.tls_segment(), file.soname(), file.needed());
    for node in file.version_nodes() {
        file.exports(&node);
    }
    for name in file.exported_names() {
        assert!(file.exports(name), "{name} is exported, but not found");
        assert!(file.symbol(name).is_some(), "{name} has no address");
    }
    for symbol in file.symbols_with_prefix("") {
        let _ = file.symbol_at(symbol.addr);
        let _ = file.function_range(symbol.addr.0);
        let _ = file.thread_pointer_offset(&symbol);
    }
    // Each lists all symbols of a source file.
    for symbol in file.symbols_with_prefix("").take(MAX_LISTS) {
        let _ = file.source_of(symbol.addr.0);
    }
    let _ = (file.is_program(), file.has_names(), file.global_names().count());
    for at in file.relocations().keys() {
        let _ = (CodeImage::slot(&file, *at), file.symbol_at(Addr(*at)));
    }
    for range in file.executable_ranges() {
        assert!(range.start <= range.end);
        let _ = file.code_at(range.start, 16);
    }
    let count = functions(&file).inspect(|range| assert!(range.start < range.end)).count();
    assert!(count < MAX_FUNCTIONS, "{count} functions in {} bytes", data.len());
    for name in [".gnu_debuglink", ".gnu_debugaltlink", ".text"] {
        let _ = file.section(name);
    }
    for schema in ompd_runtime::family::families().map(|about| about.layouts.schema) {
        if let Ok(facts) = dwarf::extract_elf(&file, schema) {
            crate::check_extracted(&facts);
        }
    }
    let _ = file.debug_search();
    let _ = ompd_runtime::analyse(&file);
}
