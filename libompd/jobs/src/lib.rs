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

pub use hosts::Hosts;
pub use merged::{Answers, Failure, Frames, Members, Merged, Place, Process, SCHEMA};
pub use ranks::RankSet;
pub use read::{ReadError, read};
