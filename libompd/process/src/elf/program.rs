//! What is particular to a program: the place of its thread-local variables, and the source files it was linked from.
//!
//! The program is the one image of a process that everything else is loaded for.

use object::Endianness;
use object::elf::{DF_1_PIE, DT_FLAGS_1, ET_EXEC, FileHeader32, FileHeader64, PT_TLS};
use object::read::elf::{Dyn, FileHeader, ProgramHeader};

use super::symbols::SymbolTable;
use super::{ElfFile, by_class};
use crate::machine::Machine;
use crate::source::Source;
use crate::symbol::Symbol;

/// `PT_TLS`.
#[derive(Debug, Clone, Copy)]
pub(super) struct TlsSegment {
    vaddr: u64,
    memsz: u64,
    align: u64,
}

impl TlsSegment {
    pub(super) fn find<P: ProgramHeader<Endian = Endianness>>(headers: &[P], endian: Endianness) -> Option<TlsSegment> {
        headers.iter().find(|p| p.p_type(endian) == PT_TLS).map(|p| TlsSegment {
            vaddr: p.p_vaddr(endian).into(),
            memsz: p.p_memsz(endian).into(),
            align: p.p_align(endian).into(),
        })
    }

    /// Where the block of a program begins, in bytes from the thread pointer. The linker knows it.
    fn distance(self, machine: Machine) -> Option<i64> {
        machine.facts()?.thread_local.block(self.vaddr, self.memsz, self.align)
    }
}

/// The source file of a local symbol, as far as the symbol table tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceFile<'f> {
    /// Its name, as the compiler or assembler left it, mostly without folders (raw text); `None` if none is recorded.
    pub name: Option<&'f str>,
    /// The names of all local symbols of that file, in the order of the table; empty if none is recorded.
    pub locals: Vec<&'f str>,
}

impl ElfFile {
    /// Size and alignment in bytes of the thread-local storage block (`PT_TLS`).
    pub fn tls_segment(&self) -> Option<(u64, u64)> {
        self.tls.map(|tls| (tls.memsz, tls.align))
    }

    /// True for a program, as opposed to a library. It is linked to a fixed address, or has the flag of a
    /// position-independent program (`DF_1_PIE`, which linkers set since 2016).
    pub fn is_program(&self) -> bool {
        by_class!(self, is_program, self.source()).unwrap_or(false)
    }

    /// True if some table, of the file or its debug file, names at least one thing that is defined here. A static
    /// program that is stripped has no name left.
    pub fn has_names(&self) -> bool {
        self.first_in_tables(true, |table| table.entries().first()).is_some()
    }

    /// Distance of a program's thread-local variable from the thread pointer, in bytes. It is the same in every thread
    /// and every process (the local-exec model). `None` for libraries: their place is found when they are loaded.
    pub fn thread_pointer_offset(&self, variable: &Symbol) -> Option<i64> {
        let tls = self.tls.filter(|_| variable.tls && self.is_program())?;
        let end = variable.addr.0.checked_add(variable.size)?;
        if end > tls.memsz {
            return None;
        }
        tls.distance(self.arch.machine)?.checked_add_unsigned(variable.addr.0)
    }

    /// Names defined for the whole program or library, exported or not: the global symbols of `.symtab`, or of the
    /// separate debug file's. May repeat.
    pub fn global_names(&self) -> impl Iterator<Item = &str> {
        let own = self.symtab();
        let table = match self.separate_debug_file() {
            Some(file) if own.entries().is_empty() => file.symtab(),
            _ => own,
        };
        table.global_names()
    }

    /// True if the name of a symbol begins with `prefix`, in one of the tables that [`ElfFile::symbol`] looks in.
    pub fn has_symbol_with(&self, prefix: &str) -> bool {
        let is_in = |table: &SymbolTable| table.entries().iter().any(|entry| table.has_prefix(entry, prefix));
        is_in(self.dynsym())
            || is_in(self.symtab())
            || is_in(self.mini())
            || self.separate_debug_file().is_some_and(|file| is_in(file.symtab()))
    }

    /// The source file of the local symbol that covers `svma`; `None` if the symbol is a global one, which no table
    /// puts down to a file, or there is none.
    pub fn source_of(&self, svma: u64) -> Option<SourceFile<'_>> {
        let tables = [self.symtab()].into_iter().chain(self.separate_debug_file().map(|file| file.symtab()));
        for table in tables {
            let Some(entry) = table.covering(svma, &|_, _| true) else { continue };
            let locals = table.of_same_file(entry).collect();
            return (!entry.global).then(|| SourceFile { name: table.file_name(entry), locals });
        }
        None
    }
}

fn is_program<E: FileHeader<Endian = Endianness>>(data: &Source) -> object::Result<bool> {
    let header = E::parse(data)?;
    let endian = header.endian()?;
    if header.e_type(endian) == ET_EXEC {
        return Ok(true);
    }
    let sections = header.sections(endian, data)?;
    let Some((entries, _)) = sections.dynamic(endian, data)? else { return Ok(false) };
    let flags = entries.iter().find(|d| d.tag(endian) == DT_FLAGS_1);
    Ok(flags.is_some_and(|d| Into::<u64>::into(d.d_val(endian)) & DF_1_PIE.0 != 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_lie_next_to_the_thread_pointer() {
        let at = |machine, vaddr, memsz, align| TlsSegment { vaddr, memsz, align }.distance(machine);
        let x86 = |vaddr, memsz, align| at(Machine::X86_64, vaddr, memsz, align);
        let arm = |vaddr, memsz, align| at(Machine::AARCH64, vaddr, memsz, align);
        // As linkers place them: the end of the block is aligned on x86-64, its beginning on aarch64.
        assert_eq!(x86(0x4e05e0, 0xf0, 0x10), Some(-0xf0));
        assert_eq!(x86(0x1000, 0xf1, 0x10), Some(-0x100));
        assert_eq!(x86(0x1000, 0x8, 0x40), Some(-0x40));
        assert_eq!(x86(0x1008, 0x8, 0x10), Some(-0x8));
        assert_eq!(arm(0x1000, 0x100, 0x8), Some(0x10));
        assert_eq!(arm(0x1000, 0x100, 0x40), Some(0x40));
        assert_eq!(arm(0x1008, 0x100, 0x40), Some(0x48));
        // Hostile ones.
        assert_eq!(x86(0, 8, 3), None);
        assert_eq!(x86(1, u64::MAX, 0), None);
        assert_eq!(x86(0, u64::MAX, 1), None);
        assert_eq!(arm(0, 8, 3), None);
        assert_eq!(at(Machine::of_elf(0), 0, 8, 8), None);
    }
}
