//! What the OMPT companion leaves in the memory of its process, for tools that look from outside.
//!
//! The companion writes one block of memory ([`block`]). It has a header, tables of regions and tasks that are not over, and for
//! each thread a ring of its last events ([`event`]). Both sides take the layout from here: the companion its structs of atomic
//! words, the reader the same words as numbers ([`read`]). Everything is an unsigned word of 64 bits in the byte order of the
//! process. A reference to something else in the block is a number, not an address: a reader never follows what a damaged block
//! says.
//!
//! [`ompt`] has the numbers of OMPT and what they are called.

pub mod block;
pub mod device;
pub mod event;
pub mod generation;
pub mod modules;
pub mod offload;
pub mod ompt;
pub mod read;
pub mod snapshot;
