//! The tool: searched and started (OpenMP 5.2, 19.2).

use std::ffi::{CStr, CString, OsStr, OsString, c_char, c_uint};
use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::sync::Mutex;

use crate::callbacks;
use crate::ending;
use crate::inquiry;
use crate::linked;
use crate::listening::{self, Tool};
use crate::ompt::StartToolResult;
use crate::runtimes;
use crate::say::say;
use crate::threads::Thread;

/// `_OPENMP` of the version whose OMPT this is, 5.2.
const OPENMP_5_2: c_uint = 202_111;

/// The name of the runtime that a tool gets.
const NAME: &CStr = match CStr::from_bytes_with_nul(
    concat!("libgomp with libgomp_ompt ", env!("CARGO_PKG_VERSION"), "\0").as_bytes(),
) {
    Ok(name) => name,
    Err(_) => panic!("a name with a zero"),
};

/// `ompt_start_tool`
type StartTool = unsafe extern "C" fn(c_uint, *const c_char) -> *mut StartToolResult;

/// Whether a tool listens. The first call searches one. `caller` is an address in the code that calls the runtime.
pub fn is_active(caller: usize) -> bool {
    match listening::tool() {
        Tool::Recording => true,
        Tool::Unknown => start(),
        Tool::None => {
            runtimes::direct(caller);
            false
        }
        Tool::Starting => false,
    }
}

/// Runs when the library is loaded, after the constructors of a libgomp that the program is linked with: a tool begins with the program.
/// Where libgomp comes later, the first call of it searches the tool.
extern "C" fn loaded() {
    if runtimes::first().is_some_and(|runtime| !runtime.has_ompt) && start() {
        Thread::current();
    }
}

#[used]
#[unsafe(link_section = ".init_array")]
static LOADED: extern "C" fn() = loaded;

/// Starts a tool if there is one. Calls that come meanwhile, as from the tool itself, are not reported.
#[cold]
fn start() -> bool {
    static ONE: Mutex<()> = Mutex::new(());
    let Ok(_one) = ONE.try_lock() else { return false };
    if !listening::begins_search() {
        return listening::is_recording();
    }
    let mut log = Log::new();
    let started = search(&mut log).is_some_and(initialize);
    log.line(if started { "tool started" } else { "no tool was started" });
    log.write();
    if !started {
        listening::becomes(Tool::None);
        return false;
    }
    // If the runtime is never called, the loader ends the tool.
    ending::register();
    listening::becomes(Tool::Recording);
    true
}

/// A variable of the environment. None counts in a program that runs with more rights than its user.
fn variable(name: &str) -> Option<OsString> {
    // SAFETY: it only reads a number.
    let secure = unsafe { libc::getauxval(libc::AT_SECURE) } != 0;
    if secure { None } else { std::env::var_os(name) }
}

fn is(value: &OsStr, word: &str) -> bool {
    value.to_string_lossy().trim().eq_ignore_ascii_case(word)
}

/// Finds a tool: linked into the program or loaded, then those that `OMP_TOOL_LIBRARIES` names (OpenMP 5.2, 19.2.2).
fn search(log: &mut Log) -> Option<*mut StartToolResult> {
    match variable("OMP_TOOL") {
        Some(value) if is(&value, "disabled") => {
            log.line("OMP_TOOL is disabled");
            return None;
        }
        Some(value) if !value.is_empty() && !is(&value, "enabled") => {
            say(&format!("OMP_TOOL is {value:?}, and has to be enabled or disabled: taken for enabled"));
        }
        _ => {}
    }
    // SAFETY: a string.
    let own = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"ompt_start_tool".as_ptr()) };
    let own = if own.is_null() { linked::start_tool() as *mut libc::c_void } else { own };
    log.line(&format!("ompt_start_tool in the address space: {}", if own.is_null() { "none" } else { "found" }));
    // SAFETY: a function of this name has this type.
    if let Some(result) = unsafe { ask(own, log) } {
        return Some(result);
    }
    let libraries = variable("OMP_TOOL_LIBRARIES")?;
    for library in libraries.as_bytes().split(|byte| *byte == b':').filter(|name| !name.is_empty()) {
        let Ok(name) = CString::new(library) else { continue };
        log.line(&format!("OMP_TOOL_LIBRARIES: {}", name.to_string_lossy()));
        // SAFETY: the library that the user names.
        let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_LAZY) };
        if handle.is_null() {
            log.line(&format!("  cannot be loaded: {}", last_error()));
            continue;
        }
        // SAFETY: a handle of the loader and a string.
        let function = unsafe { libc::dlsym(handle, c"ompt_start_tool".as_ptr()) };
        if function.is_null() {
            log.line("  has no ompt_start_tool");
        }
        // SAFETY: a function of this name has this type.
        if let Some(result) = unsafe { ask(function, log) } {
            return Some(result);
        }
        // SAFETY: given back once.
        unsafe { libc::dlclose(handle) };
    }
    None
}

fn last_error() -> String {
    // SAFETY: the loader's own string, which is valid until its next call.
    let text = unsafe {
        let text = libc::dlerror();
        if text.is_null() { c"unknown" } else { CStr::from_ptr(text) }
    };
    text.to_string_lossy().into_owned()
}

/// Asks a library whether it has a tool for this process.
///
/// # Safety
/// `function` is null or an `ompt_start_tool`.
unsafe fn ask(function: *mut libc::c_void, log: &mut Log) -> Option<*mut StartToolResult> {
    if function.is_null() {
        return None;
    }
    // SAFETY: as the caller says.
    let result = unsafe { std::mem::transmute::<*mut libc::c_void, StartTool>(function)(OPENMP_5_2, NAME.as_ptr()) };
    log.line(if result.is_null() { "  returned NULL: it has no tool for this process" } else { "  has a tool" });
    (!result.is_null()).then_some(result)
}

/// Initialises a tool. Whether it stays.
fn initialize(result: *mut StartToolResult) -> bool {
    // SAFETY: the tool's own, which stays.
    let tool = unsafe { &*result };
    let Some(initialize) = tool.initialize else { return false };
    let device = runtimes::first().and_then(|runtime| runtime.ask(runtimes::Query::InitialDevice)).unwrap_or(0);
    ending::of(result);
    // SAFETY: the tool's function of this type.
    let stays = unsafe { initialize(inquiry::lookup, device, &raw const tool.tool_data) } != 0;
    if !stays {
        callbacks::forget();
    }
    stays
}

/// What `OMP_TOOL_VERBOSE_INIT` asks for (OpenMP 5.2, 21.3.3).
struct Log {
    to: Option<OsString>,
    text: String,
}

impl Log {
    fn new() -> Log {
        let to = variable("OMP_TOOL_VERBOSE_INIT").filter(|to| !to.is_empty() && !is(to, "disabled"));
        Log { to, text: String::new() }
    }

    fn line(&mut self, line: &str) {
        if self.to.is_some() {
            // Writing to a string does not fail.
            let _ = writeln!(self.text, "libgomp_ompt: {line}");
        }
    }

    fn write(self) {
        let Some(to) = self.to else { return };
        // Nobody to tell is no reason not to continue.
        let _ = if is(&to, "stdout") {
            std::io::stdout().write_all(self.text.as_bytes())
        } else if is(&to, "stderr") {
            std::io::stderr().write_all(self.text.as_bytes())
        } else {
            // A link of somebody else's is not followed, and a pipe does not block.
            use std::os::unix::fs::OpenOptionsExt as _;
            let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
            let path = OsString::from_vec(to.into_vec());
            let file = OpenOptions::new().write(true).create(true).truncate(true).custom_flags(flags).open(path);
            file.and_then(|mut file| file.write_all(self.text.as_bytes()))
        };
    }
}
