//! Internal control variables: which there are, what is known of each, and where their values come from.
//!
//! The [`REGISTRY`] has one entry for each control variable of the specification; what is asked for or shown of all of them goes by
//! it. How a runtime keeps one is a line in its family's table (`FAMILY/read/icvs.rs`). To add one is an entry, and a line for each
//! family that has it.

mod line;
mod registry;
mod said;
mod sources;

pub(crate) use line::{Line, line};
pub use registry::*;
pub(crate) use said::{Began, texts};
pub(crate) use sources::{of_task, setting};
