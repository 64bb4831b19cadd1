//! What ELF files call themselves, and what they call their parts.

use std::fmt;

use crate::memory::Addr;

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
