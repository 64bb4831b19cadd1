//! The plugin for LLDB, on programs that know the truth about themselves.

mod common;
mod errors;
mod loading;
mod situations;
mod steps;
mod stops;
mod transcripts;
