//! `libgomp_ompt.so`: the tools interface OMPT for GCC's libgomp (OpenMP 5.2, chapter 19).
//!
//! libgomp calls no tool. This library defines the functions that compilers call (`GOMP_parallel`, `omp_set_lock` and others), reports
//! each call to a tool, and forwards it to the libgomp of the caller. It is preloaded, or linked in front of libgomp. Program, compiler and
//! runtime stay as they are.
//!
//! The call goes this way: `machine` (code of an entry point) → a function in `events` → `call` (where from, which runtime, is there
//! a tool) → `callbacks` and the runtime's own function. `threads` and `records` keep what a tool may ask for by `inquiry`.
//!
//! `docs/gomp-ompt.md` says what cannot be seen from in front of the runtime.

mod call;
mod callbacks;
mod ending;
mod entries;
mod events;
mod inquiry;
mod layout;
mod linked;
mod listening;
mod machine;
mod names;
mod old_locks;
mod ompt;
mod pool;
mod records;
mod runtimes;
mod say;
mod threads;
mod tool;

pub use layout::{Layout, libgomp_ompt_layout};
pub use names::{COUNT, NAMES};
