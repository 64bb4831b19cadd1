//! Beginning and end: `ompt_start_tool`, the initialiser and the finaliser (OpenMP 5.2, 19.2).

use std::ffi::{CStr, OsString, c_char, c_int, c_uint};
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU32, AtomicU64};
use std::sync::{Mutex, Once, PoisonError};

use ompt_record::block::State;
use ompt_record::generation::{Enumeration, Generation};
use ompt_record::ompt::{self, ENTRY_POINTS};

use crate::block::{self, header, set_state};
use crate::callback::Numbered;
use crate::callbacks::Wanted;
use crate::control;
use crate::entries::Entries;
use crate::ompt::{Data, Lookup, StartToolResult};
use crate::settings::{Settings, say};
use crate::{advertise, callbacks, exports, output, parts, stop_points};

/// What the runtime said when it looked for tools.
static OMP_VERSION: AtomicU32 = AtomicU32::new(0);
static RUNTIME: Mutex<Vec<u8>> = Mutex::new(Vec::new());

/// In the place of an answer where nothing was asked.
pub const NOT_ASKED: u8 = 15;

static RESULT: StartToolResult = StartToolResult { initialize, finalize, tool_data: AtomicU64::new(0) };

/// What a runtime calls when it begins, to find out whether there is a tool, and what to call of it.
///
/// # Safety
/// `runtime_version` has to be null or a string that ends with a zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ompt_start_tool(
    omp_version: c_uint,
    runtime_version: *const c_char,
) -> *const StartToolResult {
    OMP_VERSION.store(omp_version, Relaxed);
    if !runtime_version.is_null() {
        // SAFETY: a string of the runtime's, as the caller says.
        let name = unsafe { CStr::from_ptr(runtime_version) };
        *RUNTIME.lock().unwrap_or_else(PoisonError::into_inner) = name.to_bytes().to_vec();
    }
    &raw const RESULT
}

extern "C" fn initialize(lookup: Option<Lookup>, _initial_device: c_int, _tool: *mut Data) -> c_int {
    let Some(lookup) = lookup else { return 0 };
    let entries = Entries::look_up(lookup);
    let (omp_version, runtime) = (OMP_VERSION.load(Relaxed), RUNTIME.lock().unwrap_or_else(PoisonError::into_inner));
    let Some(generation) = entries.generation(omp_version) else {
        let name = String::from_utf8_lossy(&runtime);
        say(&format!("{name} has the OMPT of a draft whose numbers are not known: nothing is recorded"));
        return 0;
    };
    let settings = Settings::read();
    if !block::begin(settings.shape, omp_version, &runtime) {
        // Without memory there is nothing to do here: the program goes on without a tool.
        say("there is no memory to record into (a limit of addresses, as by `ulimit -v`?): nothing is recorded");
        return 0;
    }
    if !block::belongs_to(lookup, omp_version, &runtime) {
        return 0;
    }
    stay();
    advertise::library();
    // The draft's runtimes are Intel's of 2018 and 2019: callbacks for it call no stop points.
    let stops = generation != Generation::Draft2018 && stop_points::prepare(lookup);
    let older = exports::makes_older_target_callbacks(lookup);
    let answers = register(&entries, &callbacks::wanted(generation, older, stops));
    if let Some(header) = header() {
        header.entry_points.store(entries.found, Relaxed);
        for (n, word) in [&header.results_first, &header.results_second, &header.results_third].into_iter().enumerate()
        {
            let nibbles =
                (0..16).map(|nibble| u64::from(*answers.get(n * 16 + nibble).unwrap_or(&NOT_ASKED)) << (4 * nibble));
            word.store(nibbles.sum(), Relaxed);
        }
    }
    if let Some(file) = settings.file {
        control::flush_to(file);
    }
    know_forks();
    set_state(if settings.records { State::Recording } else { State::Paused });
    tell(&entries, &answers, generation);
    1
}

/// Keeps the library in the process. A runtime that is unloaded takes its tool along (libiomp5 does); the block would stay, and nobody
/// would find it, nor use it again.
fn stay() {
    if let Some(own) = advertise::own_file() {
        // SAFETY: the name of a file that is loaded. It is only kept, not loaded.
        unsafe { libc::dlopen(own.as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD | libc::RTLD_NODELETE) };
    }
}

/// Has the block say in the child of a fork that it is a copy.
pub fn know_forks() {
    static FORKS: Once = Once::new();
    FORKS.call_once(|| {
        // SAFETY: the handler only stores numbers. If it cannot be registered, a child has its parent's process id in the block, by
        // which readers know a copy.
        unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
    });
}

unsafe extern "C" fn in_child() {
    block::forked();
    parts::ALL.iter().for_each(|part| (part.forked)());
}

extern "C" fn finalize(_tool: *mut Data) {
    // What devices have not delivered yet would be lost.
    parts::follow(State::Ended);
    set_state(State::Ended);
    control::flush_at_end();
    block::runtime_ends();
}

/// Registers callbacks. Returns today's number of what the runtime answered for each, by number.
fn register(entries: &Entries, wanted: &Wanted) -> [u8; 48] {
    let mut answers = [NOT_ASKED; 48];
    let Some(set_callback) = entries.set_callback else { return answers };
    let mut ask = |(number, callback): Numbered| {
        // SAFETY: the callback has the type that its number asks for.
        let answer = unsafe { set_callback(number.into(), Some(callback)) };
        let answer = u64::try_from(answer).ok().and_then(|n| wanted.generation.decode(Enumeration::SetResult, n));
        let answer = answer.and_then(|answer| answer.today.number()).and_then(|n| u8::try_from(n).ok()).unwrap_or(0);
        if let Some(place) = answers.get_mut(usize::from(number) - 1) {
            *place = answer;
        }
        // 3 and above: at least some of the events are told (OpenMP 5.2, 19.4.4.2).
        answer >= 3
    };
    for (callback, older) in &wanted.callbacks {
        if !ask(*callback)
            && let Some(older) = *older
        {
            ask(older);
        }
    }
    answers
}

/// Says what the runtime offers, where the user wants to know how tools are started (`OMP_TOOL_VERBOSE_INIT`; OpenMP 5.2, 21.3.3).
fn tell(entries: &Entries, answers: &[u8], generation: Generation) {
    let Some(to) = output::variable("OMP_TOOL_VERBOSE_INIT") else { return };
    let mut text = String::from("ompt_companion: entry points of the runtime:");
    for (n, name) in ENTRY_POINTS.iter().enumerate() {
        let found = if entries.found >> n & 1 == 1 { "" } else { " (missing)" };
        // Writing to a string does not fail.
        let _ = write!(text, "\n  {name}{found}");
    }
    text.push_str("\nompt_companion: callbacks:");
    for (callback, answer) in ompt::CALLBACKS.iter().zip(answers) {
        let told = if *answer == NOT_ASKED { "not asked for" } else { ompt::set_result(*answer).unwrap_or("?") };
        // An error is none of the answers: a runtime of an older version does not know the callback.
        let permitted = [NOT_ASKED, 0].contains(answer) || generation.permits(callback.number, *answer);
        let but = if permitted { "" } else { " (not permitted)" };
        let _ = write!(text, "\n  {:2} {:20} {told}{but}", callback.number, callback.name);
    }
    text.push('\n');
    // Nobody to tell is no reason not to go on.
    let _ = write_to(&to, &text);
}

fn write_to(to: &OsString, text: &str) -> std::io::Result<()> {
    match to.to_string_lossy().trim().to_ascii_lowercase().as_str() {
        "" | "disabled" => Ok(()),
        "stdout" => std::io::stdout().write_all(text.as_bytes()),
        "stderr" => std::io::stderr().write_all(text.as_bytes()),
        _ => {
            // The runtime has its own file open, and does not append to it: what others write there it writes over.
            let mut own = to.clone();
            own.push(".companion");
            output::create(Path::new(&own))?.write_all(text.as_bytes())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ompt::Callback;

    static ASKED: Mutex<Vec<c_int>> = Mutex::new(Vec::new());

    /// That of a runtime that never makes callback 33, and cannot make 34. It makes 35 sometimes. Callback 3 is an error.
    extern "C" fn set_callback(number: c_int, _: Option<Callback>) -> c_int {
        ASKED.lock().expect("one test").push(number);
        match number {
            3 => -1,
            33 => 1,
            34 => 2,
            35 => 3,
            _ => 5,
        }
    }

    /// A runtime that has both may report a construct twice.
    #[test]
    fn an_older_callback_is_asked_for_only_if_the_newer_one_is_refused() {
        extern "C" fn nothing() {}
        let callback: Callback = nothing;
        let pair = |number, older: Option<u8>| ((number, callback), older.map(|older| (older, callback)));
        let callbacks =
            vec![pair(3, None), pair(33, Some(8)), pair(34, Some(9)), pair(35, Some(10)), pair(36, Some(22))];
        let entries = Entries { found: 0, set_callback: Some(set_callback) };
        let answers = register(&entries, &Wanted { callbacks, generation: Generation::OpenMp60 });
        assert_eq!(*ASKED.lock().expect("one test"), [3, 33, 8, 34, 9, 35, 36]);
        let answered = [3, 33, 8, 34, 9, 35, 36].map(|number| answers[number - 1]);
        assert_eq!(answered, [0, 1, 5, 2, 5, 3, 5]);
        assert_eq!([10, 22, 37].map(|number| answers[number - 1]), [NOT_ASKED; 3]);
    }
}
