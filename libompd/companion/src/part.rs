//! What the companion tells each part that it could do without.

use ompt_record::block::State;

use crate::callback::Numbered;

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
