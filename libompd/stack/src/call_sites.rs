//! The call instructions of a file, by the addresses they return to.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::ops::ControlFlow;

use ompd_layout::code::{self, TransferKind};
use ompd_process::ElfFile;

/// A function is decoded from its beginning, so that no byte is taken for the beginning of an instruction that is none.
/// Longer ones are not looked at.
pub(crate) const MAX_FUNCTION: u64 = 4 << 20;

/// Bytes of code decoded for one call, whatever was decoded before.
const PER_CALL: u64 = 4096;
/// Bytes of code that all calls of a file may cost beyond that: every call of a long function is looked for from its beginning.
const IN_ALL: u64 = 64 << 20;

/// The calls of one file that were asked for, by return address.
#[derive(Debug)]
pub(crate) struct CallSites {
    known: RefCell<HashMap<u64, Option<TransferKind>>>,
    left: Cell<u64>,
}

impl Default for CallSites {
    fn default() -> Self {
        CallSites { known: RefCell::default(), left: Cell::new(IN_ALL) }
    }
}

impl CallSites {
    /// What the call instruction before an address of the file does.
    pub(crate) fn call(&self, file: &ElfFile, returns_to: u64) -> Option<TransferKind> {
        if let Some(known) = self.known.borrow().get(&returns_to) {
            return *known;
        }
        let found = self.find(file, returns_to);
        self.known.borrow_mut().insert(returns_to, found);
        found
    }

    /// Counts the decoding of so many bytes; false if there is no more allowance.
    pub(crate) fn spend(&self, length: u64) -> bool {
        let left = self.left.get().checked_sub(length.saturating_sub(PER_CALL));
        self.left.set(left.unwrap_or(0));
        left.is_some()
    }

    fn find(&self, file: &ElfFile, returns_to: u64) -> Option<TransferKind> {
        let machine = file.arch().machine;
        machine.facts()?;
        let function = file.function_range(returns_to.checked_sub(1)?)?;
        let length = returns_to.checked_sub(function.start).filter(|length| *length <= MAX_FUNCTION)?;
        if !self.spend(length) {
            return None;
        }
        let code = file.bytes_at(function.start, length)?;
        let mut last = None;
        code::each_transfer(machine, code, function.start, &mut |transfer| {
            last = transfer;
            ControlFlow::Continue(())
        })?;
        let calls = |kind| matches!(kind, TransferKind::Call(_) | TransferKind::CallThrough(_));
        last.filter(|last| last.next == returns_to).map(|last| last.kind).filter(|kind| calls(*kind))
    }
}
