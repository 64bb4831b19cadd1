//! OpenMP runtimes read into one neutral model.
//!
//! [`discover`] finds the runtimes of a target and how each lays out its data; [`Runtime::snapshot`] reads one of them
//! into a [`model::RuntimeSnapshot`]. What is known about an implementation is in its own folder: [`gomp`] for GCC's
//! libgomp, [`kmp`] for LLVM's libomp and Intel's libiomp5. Nothing outside those folders knows their names.

mod bind;
pub mod gomp;
mod instance;
pub mod kmp;
mod limits;
pub mod model;
mod names;

pub use instance::{Runtime, discover};
pub use ompd_layout::Origin;
