//! Decoding a runtime's own instructions.
//!
//! Exported accessor functions betray private layouts: `return thread->team->level` is two loads with two offsets.
//! [`run`] executes one function symbolically, on both sides of every branch. It lists what the function loads,
//! stores, compares, calls and returns. These are expressions ([`Expr`]) over its arguments, thread-local variables
//! and globals. Patterns of instructions never matter, only what they compute, so compilers may choose registers and
//! shapes freely.
//!
//! Values are 64 bits wide. Loads, stores and compares keep their width, because there it is a fact. Constants are
//! cut to the width of their operand. Arithmetic does not wrap at 32 bits, and sign extensions are looked through.
//! Writes to memory other than the stack are recorded and not forwarded: a load names the place, not what was last
//! put there.
//!
//! x86-64 and aarch64 are decoded. Nothing is executed for real, and every walk is bounded by [`Limits`].
//!
//! A recipe reads like the C it recognises:
//! ```no_run
//! # use ompd_layout::code::{self, CodeImage, Kind, Limits};
//! # fn recipe(image: &dyn CodeImage) -> Option<(u64, i64)> {
//! // int omp_get_thread_num (void) { return gomp_thread ()->ts.team_id; }
//! let run = code::run_symbol(image, "omp_get_thread_num", &Limits::default()).ok()?;
//! run.returned().find_map(|value| {
//!     let (object, offset) = value.as_load(4)?.split();
//!     match object.kind() {
//!         Kind::Tls(slot) => Some((slot.address(), offset)),
//!         _ => None,
//!     }
//! })
//! # }
//! ```
//! and for chains of pointers there is [`Expr::chain`].

mod engine;
mod expr;
mod flow;
mod image;
mod immediates;
mod loops;
mod machine;
mod poll;
mod run;
mod state;
mod transfers;
mod value;

use std::fmt::Write as _;

pub use expr::{Callee, Chain, Expr, Indexed, Kind, Op, Step, TlsSlot};
pub use flow::{EachTransfer, MadeFrame, Operand, Poll, Stub, Transfer, TransferKind, Whose};
pub use image::{CodeImage, Slot, functions};
pub use immediates::{ImmediateStore, immediate_stores, may_store_words};
pub use poll::poll;
pub use run::{Beyond, Call, Compare, Event, Limits, Load, Return, Run, Stop, StopReason, Store};
pub use transfers::{each_transfer, made_frame, prepare, stub, stub_of, table_targets, transfers};
pub use value::{Given, held_at_entry, number, value};

/// Why a function could not be looked at.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CodeError {
    /// The image does not define the symbol.
    #[error("the image has no symbol {0}")]
    NoSymbol(String),
    /// The address is outside the image's executable segments.
    #[error("there is no code at {0:#x}")]
    NoCode(u64),
    /// Decoding is not implemented for the image's instruction set.
    #[error("code of this machine is not decoded")]
    Machine,
}

/// Symbolically executes the function at `entry` (an address of the file).
///
/// # Errors
/// [`CodeError::NoCode`], [`CodeError::Machine`]. Paths that had to be given up are in [`Run::stops`].
pub fn run(image: &dyn CodeImage, entry: u64, limits: &Limits) -> Result<Run, CodeError> {
    if image.code_at(entry, 1).is_none() {
        return Err(CodeError::NoCode(entry));
    }
    Ok(machine::of(image.machine()).ok_or(CodeError::Machine)?.execute(image, entry, limits))
}

/// [`run`] for the function `name`.
///
/// # Errors
/// As [`run`], and [`CodeError::NoSymbol`].
pub fn run_symbol(image: &dyn CodeImage, name: &str, limits: &Limits) -> Result<Run, CodeError> {
    let entry = image.symbol(name).ok_or_else(|| CodeError::NoSymbol(name.to_owned()))?;
    run(image, entry, limits)
}

/// The bytes of the function at `entry`, for a report of what decoding did not understand. A line has sixteen bytes,
/// after the address of the first. There are at most `max_bytes`, never more than 256, and none beyond the function's
/// end where that is known. Empty if there is no code at `entry`.
pub fn dump(image: &dyn CodeImage, entry: u64, max_bytes: usize) -> String {
    const MOST: usize = 256;
    const PER_LINE: usize = 16;
    let mut length = max_bytes.min(MOST);
    if let Some(function) = image.function(entry).filter(|f| f.contains(&entry)) {
        length = length.min(usize::try_from(function.end - entry).unwrap_or(MOST));
    }
    let mut out = String::new();
    let bytes = image.code_at(entry, length).unwrap_or_default();
    for (n, line) in bytes.chunks(PER_LINE).enumerate() {
        let at = entry.saturating_add((n * PER_LINE) as u64);
        let bytes: Vec<String> = line.iter().map(|b| format!("{b:02x}")).collect();
        // Writing to a string cannot fail.
        let _ = writeln!(out, "{at:#x}: {}", bytes.join(" "));
    }
    out
}
