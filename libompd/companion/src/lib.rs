//! The first-party half: an OMPT tool that a program takes along, and that remembers what its threads did last.
//!
//! An OpenMP runtime with OMPT (libomp, libiomp5) calls `ompt_start_tool` when it begins. The companion then registers every
//! callback and writes what they are told into one block of memory, whose layout is that of [`ompt_record`]. It never reads it
//! again: a tool that looks at the process, or at its core, does.
//!
//! What a callback does is bounded: it allocates nothing, takes no lock, and calls only the clock. A signal handler may call it
//! while another callback is interrupted. Memory comes from the kernel when the tool is initialised and when a thread begins, and
//! for the buffers of devices that are traced.

mod advertise;
mod block;
mod callback;
mod callbacks;
mod control;
mod device;
mod entries;
mod exports;
mod modules;
mod ompt;
mod output;
mod part;
mod parts;
mod settings;
mod shared;
mod start;
mod stop_points;
mod tr2;

pub use advertise::{ompd_dll_locations, ompd_dll_locations_valid};
pub use block::ompt_companion_block;
pub use ompt::Lookup;
pub use start::ompt_start_tool;
pub use tr2::tr2_initialize;
