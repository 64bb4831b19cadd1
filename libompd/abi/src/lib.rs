//! `libompd.so`: OMPD, the interface by which debuggers understand OpenMP programs (OpenMP 5.2, chapter 20; OpenMP 6.0, chapters
//! 39 to 41), for runtimes as they are shipped: stripped, and without any support for it.
//!
//! # Conventions
//!
//! These hold for every function, and are not repeated.
//!
//! - **Ownership.** Strings and arrays that are handed out lie in memory got from `alloc_memory`; the debugger frees them. Handles are
//!   numbers that are never used twice, given back by the `ompd_rel_*` functions. The string of `ompd_get_version_string` is the library's.
//! - **Threads.** Any number. Calls about one address space wait for each other, calls about two do not. A callback that calls the
//!   library gets `ompd_rc_error`.
//! - **NULL.** A handle that is NULL, was given back, or was never given out, is `ompd_rc_stale_handle`. Any other NULL pointer
//!   where NULL is not allowed is `ompd_rc_bad_input`. Pointers that are not NULL must lead to what their type says. Only this
//!   duty of the caller makes these functions `unsafe`.
//! - **Results** are written on success only (and with `ompd_rc_incomplete`).
//! - **Panics** do not leave the library: they are `ompd_rc_error`.
//! - **The process** is only looked at through the callbacks, and never written to.

mod answer;
mod answers;
pub mod api;
mod at_stops;
mod callbacks;
mod environment;
pub mod extension;
mod icvs;
mod keys;
mod library;
mod question;
mod reading;
mod refusal;
mod space;
mod states;
mod stops;
pub mod types;

pub use callbacks::extra;
pub use library::VERSIONS;
