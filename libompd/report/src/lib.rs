//! What an inspection found, for people and for programs: verdicts and remarks in words, tables, pictures, JSON.
//!
//! Nothing here reads a target or prints. [`json`] makes the document for programs, [`text`] and [`html`] the pages for people.
//! [`tell`], [`remarks`] and [`words`] say things in the same words wherever they are shown.

#![forbid(unsafe_code)]

pub mod answer;
pub mod crowding;
pub mod escape;
pub mod events;
pub mod fields;
pub mod html;
pub mod json;
pub mod outside;
pub mod remarks;
#[cfg(test)]
mod samples;
pub mod short;
pub mod tell;
pub mod text;
pub mod top;
pub mod whereabouts;
pub mod words;
