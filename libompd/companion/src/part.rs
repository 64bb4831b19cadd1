//! Parts that the companion could do without: what it tells each of them.

use ompt_record::block::State;

use crate::callbacks::Numbered;

/// A part.
pub struct Part {
    /// The callbacks that it registers.
    pub callbacks: fn() -> Vec<Numbered>,
    /// The companion goes into another state, or is in it already.
    pub follow: fn(State),
    /// The block is about to be written to its file.
    pub flush: fn(),
    /// The process is the child of a fork.
    pub forked: fn(),
}

/// All of them.
pub static ALL: [Part; 1] = [crate::device::PART];

/// Tells all parts which state the companion goes into.
pub fn follow(state: State) {
    ALL.iter().for_each(|part| (part.follow)(state));
}
