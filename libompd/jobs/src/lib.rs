//! Reports of the ranks of a parallel job, put into one.
//!
//! [`Documents`] takes documents from a stream as they come. [`read`] takes reports of `ompd-inspect --json`, lists of them, and merged reports. [`Merged::merge`] puts two together: in
//! whichever order and however often that is done, the result is the same. It grows with what is different, not with how many ranks do the
//! same. [`text::page`], [`tree`] and [`html::page`] show it.

#![forbid(unsafe_code)]

mod hosts;
pub mod html;
mod merged;
mod names;
mod plain;
mod ranks;
mod read;
mod stream;
pub mod text;
mod together;
pub mod tree;
pub mod wire;
mod words;

pub use hosts::{NoHosts, expand, is_host};
pub use merged::{
    Answers, Counted, Counter, Extent, Failure, Frames, Members, Merged, Motion, MpiCall, Partner, Place, Process,
    Reached, SCHEMA, Targets,
};
pub use names::Names;
pub use ranks::RankSet;
pub use read::{ReadError, read};
pub use stream::Documents;
pub use words::{is_hang, name};
