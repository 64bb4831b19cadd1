//! Shows debuggers where the OMPD library for this process is. OMPD requires that of a runtime (OpenMP 5.2, 20.2.2), and runtimes
//! that distributions have stripped no longer do it.

use std::ffi::{CStr, CString, OsStr, c_char};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::Path;
use std::ptr::{null, null_mut};
use std::sync::atomic::AtomicPtr;
use std::sync::atomic::Ordering::{AcqRel, Acquire};

/// Names of files, up to a null pointer (`const char **`); null until they are there. A runtime that has this variable itself may fill
/// this one in its place, where the companion was loaded first.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals, reason = "the name of a symbol, in the manner of OMPD's")]
pub static ompd_dll_locations: AtomicPtr<*const c_char> = AtomicPtr::new(null_mut());

/// The process comes through here once the names are there: who has found none yet stops here.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn ompd_dll_locations_valid() {
    // Two functions of the same code may become one, which would be called for other reasons as well.
    std::hint::black_box(&ompd_dll_locations);
}

/// The library's name, for who looks for it where libraries are.
const LIBRARY: &CStr = c"libompd.so";

/// Says where the library is: beside the companion, if it is there, or wherever the debugger's system has it.
pub fn library() {
    if !ompd_dll_locations.load(Acquire).is_null() {
        return;
    }
    let mut names = vec![LIBRARY.as_ptr(), null()];
    let beside =
        own_file().and_then(|own| Some(Path::new(OsStr::from_bytes(own.to_bytes())).parent()?.join("libompd.so")));
    // The debugger may be in another directory.
    if let Some(beside) = beside.and_then(|file| file.canonicalize().ok()).filter(|file| file.is_file())
        && let Ok(beside) = CString::new(beside.into_os_string().into_vec())
    {
        names.insert(0, beside.into_raw());
    }
    let names = Vec::leak(names).as_mut_ptr();
    if ompd_dll_locations.compare_exchange(null_mut(), names, AcqRel, Acquire).is_ok() {
        ompd_dll_locations_valid();
    }
}

/// Says it when the companion is loaded. On libgomp nothing else begins the companion, and a runtime may have begun another tool;
/// LLVM's plugin for gdb waits for ever for names that stay null.
#[used]
#[unsafe(link_section = ".init_array")]
static AT_LOAD: extern "C" fn() = at_load;

extern "C" fn at_load() {
    library();
}

/// The file this code is in, by the name under which it was loaded.
pub fn own_file() -> Option<&'static CStr> {
    // SAFETY: all of it is plain numbers, of which zero is one.
    let mut own: libc::Dl_info = unsafe { std::mem::zeroed() };
    // SAFETY: an address of this file, and a place for the answer.
    let found = unsafe { libc::dladdr((&raw const ompd_dll_locations).cast(), &raw mut own) } != 0;
    // SAFETY: the loader's own string, which stays as long as the file is loaded.
    (found && !own.dli_fname.is_null()).then(|| unsafe { CStr::from_ptr(own.dli_fname) })
}
