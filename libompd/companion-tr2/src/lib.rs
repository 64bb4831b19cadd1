//! The companion for runtimes with the OMPT of OpenMP Technical Report 2, which start a tool by calling `ompt_initialize`.
//!
//! It is a library of its own because of that name. Tools of today give it to the initialiser that `ompt_start_tool` returns,
//! with other parameters and mostly visible. In a process with such a tool, an `ompt_initialize` from elsewhere could be called
//! in its place, or could break the linking of the program. No runtime of today calls it. So it exists only where a user with a
//! runtime of that time preloads this library.
//!
//! A later runtime of that time, as LLVM 4.0's, calls `ompt_tool` instead, and gives the same version of OMPT to the function
//! that it gets. The document of version 2 has that hook as well, but no numbers for events. So a runtime that says that it has
//! version 2 is declined.

use std::ffi::{c_char, c_int, c_uint};

use ompt_companion::{Lookup, tr2_initialize};

/// The runtime calls this once it has begun, with its look-up function, its name of itself and its OMPT version. Returns 1 if the
/// companion takes events. Returns 0 if there is no memory for them, or if the version is not that of the report (1).
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

/// The type of what `ompt_tool` returns.
pub type Initialize = unsafe extern "C" fn(Option<Lookup>, *const c_char, c_uint);

/// What the runtime calls before it begins, to get the function that it calls with what [`ompt_initialize`] gets.
#[unsafe(no_mangle)]
pub extern "C" fn ompt_tool() -> Initialize {
    initialize
}

/// Such a runtime takes no answer. A companion that declines registers nothing.
unsafe extern "C" fn initialize(lookup: Option<Lookup>, runtime_version: *const c_char, version: c_uint) {
    // SAFETY: what the runtime gives is what it would give `ompt_initialize`.
    unsafe { ompt_initialize(lookup, runtime_version, version) };
}
