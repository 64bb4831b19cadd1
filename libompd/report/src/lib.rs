//! One inspection of a process or core file: what its OpenMP threads, teams and tasks do, what waits for what, the verdicts and
//! remarks on it in words, all of it as JSON, and the tables for people.
//!
//! Nothing here prints: [`inspection`] reads ([`history`] what a companion has recorded), [`json`] makes the report for programs, and [`tell`], [`remarks`] and [`words`] say
//! things to people in the same words wherever they are shown.

#![forbid(unsafe_code)]

pub mod crowding;
pub mod escape;
pub mod history;
pub mod inspection;
pub mod json;
pub mod progress;
pub mod remarks;
pub mod tell;
pub mod text;
pub mod words;
