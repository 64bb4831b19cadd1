//! What the engine needs of an ELF image.

use std::ops::Range;
use std::sync::Arc;

use ompd_process::Machine;
use ompd_process::elf::ElfFile;

/// A pointer-sized word that the loader fills in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Slot {
    /// An address of this image (relative relocations).
    Address(u64),
    /// The address of a symbol.
    Symbol {
        /// Its name.
        name: Arc<str>,
        /// Where this image defines it itself, addend included.
        address: Option<u64>,
    },
    /// A thread-local variable's offset from the thread pointer.
    TlsOffset,
    /// A module number for `__tls_get_addr`.
    TlsModule,
    /// A TLS descriptor.
    TlsDescriptor,
}

/// An image whose instructions can be looked at. All addresses are the file's own (SVMA).
pub trait CodeImage {
    /// The instruction set.
    fn machine(&self) -> Machine;
    /// Up to `len` bytes of an executable segment from `addr` on, fewer at its end; `None` outside.
    fn code_at(&self, addr: u64, len: usize) -> Option<&[u8]>;
    /// `len` bytes of the file's image at `addr`, of any segment: constants.
    fn data_at(&self, addr: u64, len: usize) -> Option<&[u8]>;
    /// What the loader puts at `addr`, if that stays there.
    fn slot(&self, addr: u64) -> Option<Slot>;
    /// Extent of the function at `addr`, as far as symbols or unwind information tell.
    fn function(&self, addr: u64) -> Option<Range<u64>>;
    /// An address up to which no function lies behind `addr`: where the next one begins. `None` where that is not known.
    fn next_function(&self, _addr: u64) -> Option<u64> {
        None
    }
    /// Address of a symbol that is defined here and not thread-local.
    fn symbol(&self, name: &str) -> Option<u64>;
    /// Address ranges that are mapped executable.
    fn executable(&self) -> Vec<Range<u64>>;
}

impl CodeImage for ElfFile {
    fn machine(&self) -> Machine {
        self.arch().machine
    }

    fn code_at(&self, addr: u64, len: usize) -> Option<&[u8]> {
        let segment = self.executable_ranges().into_iter().find(|r| r.contains(&addr))?;
        self.bytes_at(addr, (segment.end - addr).min(len as u64))
    }

    fn data_at(&self, addr: u64, len: usize) -> Option<&[u8]> {
        self.bytes_at(addr, len as u64)
    }

    fn slot(&self, addr: u64) -> Option<Slot> {
        // There it is what a variable of the program begins with, and not what it holds.
        if self.section_range(".data").is_some_and(|variables| variables.contains(&addr)) {
            return None;
        }
        let reloc = self.relocations().get(&addr)?;
        let kinds = &self.arch().machine.facts()?.relocations;
        Some(match reloc.kind {
            kind if kind == kinds.relative => Slot::Address(reloc.addend as u64),
            kind if kinds.symbol.contains(&kind) => {
                let here = reloc.symbol_value != 0;
                let address = here.then(|| reloc.symbol_value.wrapping_add(reloc.addend as u64));
                match reloc.symbol.as_deref() {
                    Some(name) => Slot::Symbol { name: name.into(), address },
                    None => Slot::Address(address?),
                }
            }
            kind if kind == kinds.tls_offset => Slot::TlsOffset,
            kind if kind == kinds.tls_module => Slot::TlsModule,
            kind if kind == kinds.tls_descriptor => Slot::TlsDescriptor,
            _ => return None,
        })
    }

    fn function(&self, addr: u64) -> Option<Range<u64>> {
        self.function_range(addr)
    }

    fn next_function(&self, addr: u64) -> Option<u64> {
        Some(self.next_function_start(addr))
    }

    fn symbol(&self, name: &str) -> Option<u64> {
        ElfFile::symbol(self, name).filter(|s| !s.tls).map(|s| s.addr.0)
    }

    fn executable(&self) -> Vec<Range<u64>> {
        self.executable_ranges()
    }
}

/// All functions whose extent is known, in address order. Of functions that lie within each other the walk is given up
/// where they add up to several times the code.
pub fn functions(image: &dyn CodeImage) -> impl Iterator<Item = Range<u64>> + '_ {
    // Gaps without a function are stepped through.
    let align = image.machine().facts().map_or(4, |facts| facts.function_alignment);
    // Only aliases and parts with symbols of their own are seen twice.
    const OVERLAP: u64 = 4;
    image.executable().into_iter().flat_map(move |segment| {
        let mut at = segment.start;
        let mut left = (segment.end - segment.start).saturating_mul(OVERLAP);
        std::iter::from_fn(move || {
            while at < segment.end {
                match image.function(at) {
                    Some(range) if range.end > at => {
                        at = range.end;
                        left = left.checked_sub(range.end - range.start)?;
                        return Some(range);
                    }
                    _ => {
                        let next = image.next_function(at).map_or(at, |next| next.saturating_sub(1).max(at));
                        at = (next | (align - 1)).checked_add(1)?;
                    }
                }
            }
            None
        })
    })
}
