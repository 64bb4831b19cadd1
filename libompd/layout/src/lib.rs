//! Struct layouts of a runtime as data: where each field lies, and who says so.
//!
//! A runtime family declares, in one [`Schema`], every struct, field and global it reads, under the runtime's own
//! names. Each *origin* ([`dwarf`], [`table`], [`profile`], [`code`]) answers as much of it as it can and yields
//! [`Facts`]. [`Layout::resolve`] merges the facts in order of trust, remembers the origin of every single value,
//! and reports where two origins disagree. What nobody answered is [`Missing`], by name.
//!
//! This crate knows nothing about OpenMP: it holds the mechanism, the families hold the names.

pub mod code;
pub mod decoded;
pub mod dwarf;
pub mod facts;
pub mod profile;
pub mod record;
pub mod resolve;
pub mod schema;
pub mod table;

pub use facts::{BitRange, FactSource, Facts, Field, Origin};
pub use record::{Record, RecordRef};
pub use resolve::{Layout, Mismatch, Missing};
pub use schema::{FieldSchema, GlobalSchema, Schema, StructSchema};
