//! The runtime's entry points, by which the tool asks it.

use std::ffi::CString;

use ompt_record::ompt::ENTRY_POINTS;

use crate::ompt::{EntryPoint, Lookup, SetCallback};

/// Those that are used, and which there are.
#[derive(Debug, Default)]
pub struct Entries {
    /// Bit n is set if the n-th of [`ENTRY_POINTS`] was found.
    pub found: u64,
    pub set_callback: Option<SetCallback>,
}

impl Entries {
    /// Asks the runtime for all of them.
    pub fn look_up(lookup: Lookup) -> Entries {
        let ask = |name: &str| {
            let name = CString::new(name).ok()?;
            // SAFETY: the runtime's look-up, which takes a string of C's and may be called at any time (OpenMP 5.2, 19.6.3).
            unsafe { lookup(name.as_ptr()) }
        };
        let found = ENTRY_POINTS.iter().enumerate().filter(|(_, name)| ask(name).is_some());
        let found = found.fold(0, |bits, (n, _)| bits | 1 << n);
        let set_callback = ask("ompt_set_callback").map(|entry| {
            // SAFETY: the entry point of this name has this type (OpenMP 5.2, 19.6).
            unsafe { std::mem::transmute::<EntryPoint, SetCallback>(entry) }
        });
        Entries { found, set_callback }
    }
}
