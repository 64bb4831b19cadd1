//! Parts that the companion could do without.

use ompt_record::block::State;

use crate::device;
use crate::part::Part;

/// All of them.
pub static ALL: [Part; 1] = [device::PART];

/// Tells all parts which state the companion goes into.
pub fn follow(state: State) {
    ALL.iter().for_each(|part| (part.follow)(state));
}
