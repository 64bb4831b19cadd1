//! ELF images mapped into the target.

mod needed;

use std::ops::Range;
use std::sync::Arc;

use crate::elf::ElfFile;
use crate::memory::Addr;
use crate::symbol::{BuildId, Symbol};

pub use needed::{NeededBy, needed_by};

/// One ELF image as mapped.
#[derive(Debug, Clone)]
pub struct Module {
    /// Path as the target names it (raw text: escape before printing). Empty for the vdso.
    pub path: String,
    /// Added to an address of the file (SVMA) to get the address in the target.
    pub bias: u64,
    /// Mapped address ranges, in order.
    pub ranges: Vec<Range<u64>>,
    /// Build-id read from the mapped image itself (memory or core), else from the file opened for it.
    pub build_id: Option<BuildId>,
    /// The file on disk, opened and matched by build-id; or why there is none, one line per path tried.
    pub file: Result<Arc<ElfFile>, Vec<String>>,
}

impl Module {
    /// The vdso, from its bytes in target memory at `base`; `None` if they are not an ELF image.
    pub(crate) fn vdso(base: u64, bytes: Vec<u8>) -> Option<Module> {
        let extent = base..base.checked_add(bytes.len() as u64)?;
        let file = ElfFile::from_bytes("[vdso]", bytes).ok()?;
        Some(Module {
            path: String::new(),
            bias: base.wrapping_sub(file.svma_of_offset(0)?),
            ranges: Vec::from([extent]),
            build_id: file.build_id().cloned(),
            file: Ok(Arc::new(file)),
        })
    }

    /// True if `addr` lies in one of the mapped ranges.
    pub fn contains(&self, addr: Addr) -> bool {
        self.ranges.iter().any(|r| r.contains(&addr.0))
    }

    /// Lowest mapped address.
    pub fn base(&self) -> Addr {
        Addr(self.ranges.iter().map(|r| r.start).min().unwrap_or(0))
    }

    /// Last path component.
    pub fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }

    /// Looks a symbol up by exact name (default version first where several exist): `.dynsym`, `.symtab`,
    /// `.gnu_debugdata`, then the separate debug file.
    pub fn symbol(&self, name: &str) -> Option<Symbol> {
        let mut symbol = self.file.as_ref().ok()?.symbol(name)?;
        if !symbol.tls {
            symbol.addr = symbol.addr.offset(self.bias);
        }
        Some(symbol)
    }

    /// True if `.dynsym` defines `name`.
    pub fn exports(&self, name: &str) -> bool {
        self.file.as_ref().is_ok_and(|f| f.exports(name))
    }

    /// True for glibc's C library.
    pub fn is_glibc(&self) -> bool {
        self.exports("gnu_get_libc_version")
    }

    /// The symbol that covers `addr` (a target address), with the distance into it.
    pub fn symbol_at(&self, addr: Addr) -> Option<(Symbol, u64)> {
        let (mut symbol, distance) = self.file.as_ref().ok()?.symbol_at(addr.back(self.bias))?;
        symbol.addr = symbol.addr.offset(self.bias);
        Some((symbol, distance))
    }
}
