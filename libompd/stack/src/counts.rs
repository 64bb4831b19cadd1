//! What is counted to prove that nothing is done twice, and what is noted because it could not be done.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;

use crate::frame::RegisterSet;

/// How often something was done that is to be done once.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) parsed: Cell<usize>,
    pub(crate) looked_up: Cell<usize>,
    /// Threads of which a register was asked for that only a stop shows.
    pub(crate) unseen: RefCell<BTreeSet<i32>>,
}

impl Counts {
    /// Counts one look-up.
    pub(crate) fn look_up(&self) {
        self.looked_up.set(self.looked_up.get().saturating_add(1));
    }

    /// The value of a register, if it is known. That only a stop would have shown it is noted.
    pub(crate) fn register(&self, registers: &RegisterSet, number: u16) -> Option<u64> {
        let value = registers.get(number);
        if value.is_none()
            && let Some(lwp) = registers.unseen(number)
        {
            self.unseen.borrow_mut().insert(lwp);
        }
        value
    }
}
