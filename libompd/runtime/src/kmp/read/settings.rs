//! Variables of the runtime that are control variables of the process as a whole. None of them can
//! be set by a call of OpenMP's, but for the numbers of teams and the format of affinities.

use ompd_process::TargetExt;

use super::Context;
use crate::kmp::reason::Own;
use crate::limits;
use crate::model::*;

/// Values by the numbers the runtime has for them.
pub(super) const ENABLED: &[(i64, &str)] = &[(0, "disabled"), (1, "enabled")];
/// `enum library_type`.
pub(super) const LIBRARIES: &[(i64, &str)] = &[(1, "serial"), (2, "turnaround"), (3, "throughput")];
/// The same variable by the names of the specification (`__kmp_stg_print_wait_policy`), which has
/// none for `serial`.
pub(super) const POLICIES: &[(i64, &str)] = &[(2, "active"), (3, "passive")];
/// What both variables say of the policy.
pub(super) const SAID_OF_POLICY: &[(&str, &str)] =
    &[("turnaround", "active"), ("active", "active"), ("throughput", "passive"), ("passive", "passive")];
/// What `KMP_LIBRARY` and `OMP_WAIT_POLICY` say.
pub(super) const SAID_OF_LIBRARY: &[(&str, &str)] = &[
    ("serial", "serial"),
    ("turnaround", "turnaround"),
    ("active", "turnaround"),
    ("throughput", "throughput"),
    ("passive", "throughput"),
];
/// `enum kmp_target_offload_kind`.
pub(super) const OFFLOADS: &[(i64, &str)] = &[(0, "disabled"), (1, "default"), (2, "mandatory")];

impl Context<'_> {
    /// A variable of `size` bytes, signed.
    pub(super) fn number(&self, name: &'static str, size: u64) -> Fact<i64> {
        let Some((addr, origin)) = self.kmp.global(name) else {
            return Fact::unknown(Reason::NoLayout(name));
        };
        match self.target.read_uint(addr, size) {
            Ok(value) if size == 4 => Fact::known(i64::from(value as u32 as i32), origin),
            Ok(value) => Fact::known(value as i64, origin),
            Err(fault) => Fact::unknown(fault),
        }
    }

    /// A variable that is an `int`.
    pub(super) fn int(&self, name: &'static str) -> Fact<IcvValue> {
        self.number(name, 4).map(IcvValue::Number)
    }

    /// A variable that is a switch.
    pub(super) fn switch(&self, name: &'static str) -> Fact<IcvValue> {
        self.number(name, 4).map(|value| IcvValue::Flag(value != 0))
    }

    /// The text that a variable points to, or `null` where it points to none.
    pub(super) fn text(&self, name: &'static str, null: Option<&str>) -> Fact<IcvValue> {
        let Some((addr, origin)) = self.kmp.global(name) else {
            return Fact::unknown(Reason::NoLayout(name));
        };
        let read = self.target.read_ptr(addr).and_then(|text| match null.filter(|_| text.is_null()) {
            Some(null) => Ok(null.to_owned()),
            None => self.target.read_cstr(text, limits::STRING),
        });
        match read {
            Ok(text) => Fact::known(IcvValue::Text(text), origin),
            Err(fault) => Fact::unknown(fault),
        }
    }
}

/// One of several words, by its number.
pub(super) fn word(of: Fact<i64>, words: &'static [(i64, &'static str)]) -> Fact<IcvValue> {
    match of {
        Fact::Known { value, origin } => match words.iter().find(|(number, _)| *number == value) {
            Some((_, word)) => Fact::known(IcvValue::Word(word), origin),
            None => Fact::unknown(Own::NumberWithoutWord { number: value }),
        },
        Fact::Unknown { why } => Fact::Unknown { why },
    }
}
