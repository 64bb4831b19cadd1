//! What a family says of its layouts: the origins that know them, and what each value is for.

use ompd_layout::profile::ShippedProfiles;
use ompd_layout::{Facts, Schema};
use ompd_process::ByteOrder;
use ompd_process::elf::ElfFile;

use crate::owner::OwnNames;
use crate::recover::Recovered;

/// How a family tells what it is made of.
pub(crate) struct FamilyOrigins {
    pub(crate) family: &'static str,
    pub(crate) schema: &'static Schema,
    pub(crate) profiles: &'static ShippedProfiles,
    /// What each missing value costs.
    pub(crate) costs: &'static [Cost],
    pub(crate) recover: fn(&ElfFile) -> Recovered,
    /// What that gives of builds that are known (`ompd_layout::decoded`).
    pub(crate) decoded: &'static str,
    /// A table of the family's own, if its builds may have one.
    pub(crate) described: Option<Described>,
    /// Pairs of which one is enough.
    pub(crate) alternatives: &'static [[&'static str; 2]],
    /// What tells the runtime from the rest of a program that has it built in.
    pub(crate) names: &'static OwnNames,
    /// Values that only matter together with a function of the runtime, by name, or that only a variable's name tells. Not all
    /// releases have all functions, and a program that has the runtime built in may have been linked without.
    pub(crate) only_with: &'static [(&'static str, &'static str)],
    /// Structs that only releases have in which a certain member leads to them: the struct, and struct and name of the
    /// member.
    pub(crate) led_to: &'static [(&'static str, (&'static str, &'static str))],
}

/// What is lost with a value that is not known.
#[derive(Debug)]
pub(crate) struct Cost {
    /// How the value's name begins: `struct.field`, `sizeof(struct)` or a global.
    pub(crate) of: &'static str,
    /// What is lost, as a clause.
    pub(crate) text: &'static str,
}

/// An exported variable in which a runtime describes itself.
pub(crate) struct Described {
    /// Its name.
    pub(crate) symbol: &'static str,
    /// A smaller variable of that name, in bytes, is something else.
    pub(crate) min_size: u64,
    /// Reads it: its bytes, their order, and what turns the word at an offset into an address of the file.
    pub(crate) read: ReadDescribed,
}

type ReadDescribed = fn(&[u8], ByteOrder, &dyn Fn(u64, u64) -> Option<u64>) -> Result<Facts, String>;
