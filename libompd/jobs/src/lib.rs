//! Reports of the ranks of a parallel job, put into one.
//!
//! [`read`] takes reports of `ompd-inspect --json`, lists of them, and merged reports. [`Merged::merge`] puts two together: in
//! whichever order and however often that is done, the result is the same. It grows with what is different, not with how many ranks do the
//! same. [`text::page`] shows it.

#![forbid(unsafe_code)]

mod hosts;
mod merged;
mod ranks;
mod read;
pub mod text;
mod together;
pub mod wire;

pub use hosts::{Hosts, NoHosts, expand, is_host};
pub use merged::{
    Answers, Counter, Extent, Failure, Frames, Members, Merged, Motion, MpiCall, Partner, Place, Process, Reached,
    SCHEMA,
};
pub use ranks::RankSet;
pub use read::{ReadError, read};
