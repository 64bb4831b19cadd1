//! The runtime's entry points, by which the tool asks it.

use std::ffi::CString;

use ompt_record::generation::Generation;
use ompt_record::ompt::ENTRY_POINTS;

use crate::ompt::{EntryPoint, Lookup, SetCallback};

/// `_OPENMP` of the first version with the numbers of today.
const OPENMP_5_0: u32 = 201_811;

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

    /// Which numbers the OMPT of this runtime has. `None` for a draft whose numbers are not known.
    ///
    /// A runtime does not say which. One for OpenMP 5.0 or later has its numbers. `ompt_finalize_tool` came with 5.0 as well, and
    /// questions about devices came with the draft of 2018. Since 5.0 numbers were only added.
    pub fn generation(&self, omp_version: u32) -> Option<Generation> {
        let has =
            |name: &str| ENTRY_POINTS.iter().position(|known| *known == name).is_some_and(|n| self.found >> n & 1 == 1);
        if omp_version >= OPENMP_5_0 || has("ompt_finalize_tool") {
            return Some(Generation::OpenMp60);
        }
        (has("ompt_get_num_devices") && has("ompt_get_target_info")).then_some(Generation::Draft2018)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(names: &[&str]) -> Entries {
        let found = ENTRY_POINTS.iter().enumerate().filter(|(_, known)| names.contains(*known));
        Entries { found: found.fold(0, |bits, (n, _)| bits | 1 << n), set_callback: None }
    }

    #[test]
    fn entry_points_tell_the_generation() {
        let generation = |names: &[&str]| with(names).generation(201_611);
        let of_2018 = ["ompt_set_callback", "ompt_get_num_devices", "ompt_get_target_info"];
        assert_eq!(generation(&of_2018), Some(Generation::Draft2018));
        assert_eq!(generation(&[&of_2018[..], &["ompt_finalize_tool"]].concat()), Some(Generation::OpenMp60));
        for there in &of_2018[1..] {
            assert_eq!(generation(&[of_2018[0], there]), None);
        }
        assert_eq!(with(&of_2018[..1]).generation(201_811), Some(Generation::OpenMp60));
    }
}
