//! What is counted to prove that nothing is done twice.

use std::cell::Cell;

/// How often something was done that is to be done once.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) parsed: Cell<usize>,
    pub(crate) looked_up: Cell<usize>,
}

impl Counts {
    /// Counts one look-up.
    pub(crate) fn look_up(&self) {
        self.looked_up.set(self.looked_up.get().saturating_add(1));
    }
}
