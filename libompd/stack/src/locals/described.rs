//! The variables described in one file.

use std::sync::Arc;

use gimli::Dwarf;

use super::entries::Entries;
use super::globals;
use super::scope::Scopes;
use super::types::Types;
use crate::reader::Metered;

/// What was read of them.
pub(crate) struct Described {
    pub(super) entries: Entries,
    pub(super) scopes: Scopes,
    pub(super) types: Types,
}

impl Described {
    pub(crate) fn new(dwarf: Arc<Dwarf<Metered>>) -> Described {
        Described { entries: Entries::new(dwarf), scopes: Scopes::default(), types: Types::default() }
    }

    /// The part at `offset` of the variable of static storage that begins at this address of the file.
    pub(crate) fn part(&self, variable: u64, offset: u64) -> Option<String> {
        globals::part(&self.entries, variable, offset)
    }
}
