//! The plugin for gdb, on programs that know the truth about themselves.

mod common;
mod errors;
mod following;
mod inferiors;
mod loading;
mod situations;
mod stops;
mod threads;
mod truth;
