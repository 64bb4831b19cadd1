//! The companion for runtimes with the OMPT of OpenMP Technical Report 2, which start a tool by calling `ompt_initialize`.
//!
//! It is a library of its own because of that name. Tools of today give it to the initialiser that `ompt_start_tool` returns, with other
//! parameters and mostly visible: in a process with such a tool, an `ompt_initialize` of somebody else's could be called in its place,
//! or keep the program from being linked. No runtime of today calls it. So it is only where somebody with a runtime of that time
//! preloads this library.
//!
//! There is no `ompt_tool`, by which version 2 of OMPT starts tools. The document of that version has no numbers for events, and
//! runtimes of the time numbered them in more than one way: what they told would have to be guessed.

use std::ffi::{c_char, c_int, c_uint};

use ompt_companion::{Lookup, tr2_initialize};

/// What the runtime calls once it has begun, with its look-up function, its name of itself and the version of its OMPT. 1 if the
/// companion takes events; 0 if there is no memory for them, or the version is another one than that of the report (1).
///
/// # Safety
/// `lookup` has to be null or a function that takes a string and returns an entry point of the runtime or null; `runtime_version` null
/// or a string that ends with a zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ompt_initialize(
    lookup: Option<Lookup>,
    runtime_version: *const c_char,
    version: c_uint,
) -> c_int {
    // SAFETY: as the caller says.
    unsafe { tr2_initialize(lookup, runtime_version, version) }
}
