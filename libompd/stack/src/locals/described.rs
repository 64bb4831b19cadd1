//! The variables described in one file.

use std::sync::Arc;

use gimli::Dwarf;

use super::entries::Entries;
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
}
