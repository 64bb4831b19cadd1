//! Reports of the ranks of a parallel job, put into one.
//!
//! [`Documents`] takes documents from a stream as they come. [`read`] takes reports of `ompd-inspect --json`, lists of them, and merged reports. [`Merged::merge`] puts two together: in
//! whichever order and however often that is done, the result is the same. It grows with what is different, not with how many ranks do the
//! same. [`text::page`], [`tree`] and [`html::page`] show it.

#![forbid(unsafe_code)]

pub mod html;
mod merged;
mod names;
mod plain;
mod ranks;
mod read;
mod stream;
pub mod text;
pub mod tree;
mod words;

pub use merged::{Answers, Failure, Frames, Members, Merged, Place, Process, SCHEMA, Targets};
pub use names::Names;
pub use ranks::RankSet;
pub use read::{ReadError, read};
pub use stream::Documents;
