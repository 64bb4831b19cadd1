//! Single answers and where they come from.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// The kind of evidence behind a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Origin {
    /// Debug information of the very image that is mapped.
    Dwarf,
    /// A table the runtime exports about itself.
    Table,
    /// A symbol table of the image.
    Symbol,
    /// Decoded from the runtime's own instructions.
    Code,
    /// A layout shipped with this program, matched by build-id or fingerprint.
    Profile,
    /// Registers of a thread.
    Registers,
    /// The frames on a thread's stack.
    Stack,
    /// The operating system (procfs, core notes).
    Os,
    /// What a tool inside the process has recorded.
    Companion,
}

impl Origin {
    /// The word used in reports and JSON.
    pub fn word(self) -> &'static str {
        match self {
            Origin::Dwarf => "dwarf",
            Origin::Table => "table",
            Origin::Symbol => "symbol",
            Origin::Code => "code",
            Origin::Profile => "profile",
            Origin::Registers => "registers",
            Origin::Stack => "stack",
            Origin::Os => "os",
            Origin::Companion => "companion",
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// An origin with the place it was found: a file, a profile, a function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FactSource {
    /// The kind of evidence.
    pub origin: Origin,
    /// File, profile name, or function decoded.
    pub detail: Arc<str>,
}

impl FactSource {
    /// A source of kind `origin` found in `detail`.
    pub fn new(origin: Origin, detail: impl Into<Arc<str>>) -> Self {
        FactSource { origin, detail: detail.into() }
    }
}

/// Bits within a field, counted from the least significant bit of the storage unit at `offset`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct BitRange {
    /// Bits to the right of the value.
    pub shift: u8,
    /// Bits of the value.
    pub width: u8,
}

/// Where a field lies in its struct.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Field {
    /// Bytes from the start of the struct.
    pub offset: u64,
    /// Bytes of the field (of the storage unit for a bit-field). 0 for a flexible array and where not known.
    pub size: u64,
    /// Set for bit-fields.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bits: Option<BitRange>,
}

/// What one origin knows.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Facts {
    /// Struct sizes in bytes.
    #[serde(default)]
    pub sizes: BTreeMap<String, u64>,
    /// Fields by struct, then by path.
    #[serde(default)]
    pub fields: BTreeMap<String, BTreeMap<String, Field>>,
    /// Addresses of global variables, relative to the image (SVMA).
    #[serde(default)]
    pub globals: BTreeMap<String, u64>,
}

impl Facts {
    /// Files a field.
    pub fn set_field(&mut self, of: &str, name: &str, field: Field) {
        self.fields.entry(of.to_owned()).or_default().insert(name.to_owned(), field);
    }

    /// The field `name` of struct `of`.
    pub fn field(&self, of: &str, name: &str) -> Option<Field> {
        self.fields.get(of)?.get(name).copied()
    }

    /// True if nothing at all is known.
    pub fn is_empty(&self) -> bool {
        self.sizes.is_empty() && self.fields.is_empty() && self.globals.is_empty()
    }
}
