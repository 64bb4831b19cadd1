//! ELF images mapped into the target.

mod needed;

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use crate::elf::ElfFile;
use crate::memory::Addr;

pub use needed::{NeededBy, needed_by};

/// GNU build-id of an ELF image.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BuildId(pub Vec<u8>);

impl fmt::Display for BuildId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|b| write!(f, "{b:02x}"))
    }
}

impl fmt::Debug for BuildId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BuildId({self})")
    }
}

/// Which table a symbol was found in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SymbolOrigin {
    /// `.dynsym`: exported, survives `strip`.
    Dynsym,
    /// `.symtab` of the mapped file.
    Symtab,
    /// `.gnu_debugdata` (compressed function symbols of Red Hat style distributions).
    MiniDebugInfo,
    /// `.symtab` of a separate debug file.
    DebugFile,
}

/// A symbol, its address relocated into the target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Symbol {
    /// Name without a version suffix (raw text of the target's file: escape before printing).
    pub name: String,
    /// Address in the target. For thread-local symbols the offset within the module's TLS block instead.
    pub addr: Addr,
    /// Size in bytes as the table states it (0: not stated).
    pub size: u64,
    /// True for `STT_TLS`.
    pub tls: bool,
    /// The table it came from.
    pub origin: SymbolOrigin,
}

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

    /// The symbol that covers `addr` (a target address), with the distance into it.
    pub fn symbol_at(&self, addr: Addr) -> Option<(Symbol, u64)> {
        let (mut symbol, distance) = self.file.as_ref().ok()?.symbol_at(addr.back(self.bias))?;
        symbol.addr = symbol.addr.offset(self.bias);
        Some((symbol, distance))
    }
}
