//! The plugin for gdb, on programs that know the truth about themselves.

mod common;
mod errors;
mod loading;
mod stops;
mod threads;
mod truth;
