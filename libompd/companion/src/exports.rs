//! What a runtime exports, where its look-up function does not tell enough.

use std::ffi::CStr;

use crate::ompt::Lookup;

/// Whether the library for devices makes the older callbacks of target constructs only, whatever `ompt_set_callback` answers.
///
/// Such a library asks the runtime for its callbacks by one function. A library that makes the newer ones connects by another.
pub fn makes_older_target_callbacks(lookup: Lookup) -> bool {
    let exports = |name| exports(lookup, name);
    exports(c"__kmpc_get_ompt_callbacks") && !exports(c"ompt_libomp_connect")
}

/// Whether the file with this function exports a name.
fn exports(lookup: Lookup, name: &CStr) -> bool {
    // SAFETY: all of it is plain numbers, of which zero is one.
    let mut info: libc::Dl_info = unsafe { std::mem::zeroed() };
    // SAFETY: an address of code, and a place for the answer.
    let found = unsafe { libc::dladdr(lookup as *const libc::c_void, &raw mut info) } != 0;
    if !found || info.dli_fname.is_null() {
        return false;
    }
    // SAFETY: the loader's own string. The file is only looked up, not loaded.
    let file = unsafe { libc::dlopen(info.dli_fname, libc::RTLD_LAZY | libc::RTLD_NOLOAD) };
    if file.is_null() {
        // The runtime is part of the program.
        return false;
    }
    // SAFETY: a handle of the loader, which is given back once.
    unsafe {
        let there = !libc::dlsym(file, name.as_ptr()).is_null();
        libc::dlclose(file);
        there
    }
}
