//! The plugin for gdb, on programs that know the truth about themselves.

mod another_machine;
mod common;
mod errors;
mod following;
mod front_ends;
mod inferiors;
mod loading;
mod situations;
mod stepping;
mod stops;
mod threads;
mod transcripts;
mod truth;
