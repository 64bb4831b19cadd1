//! Why a process cannot be looked at, in words: OMPD has but a code for it, and a callback for texts.

use ompd_inspection::nameless;
use ompd_process::{DebuggedError, Target};

/// Where separate debug files are looked for, as far as a debugger's user can do something about it.
const REMEDY: &str = "its separate debug file would do, beside it or below /usr/lib/debug";

/// A process in which nothing was found.
pub(crate) fn unopened(why: &DebuggedError) -> String {
    match why {
        DebuggedError::NoImage => format!(
            "{why}. If it is a statically linked program, it was stripped of its symbols, or the debugger has not read them: \
             {REMEDY}"
        ),
        _ => why.to_string(),
    }
}

/// A process with modules, none of which is a runtime.
pub(crate) fn without_runtime(target: &dyn Target) -> String {
    let mut causes = target.issues().to_vec();
    // What is put together from memory is nameless as well, which has been said.
    let named =
        nameless(target).into_iter().filter(|path| !path.is_empty() && !causes.iter().any(|c| c.starts_with(path)));
    let named = named.map(|path| {
        format!(
            "{path} is statically linked and has no symbols, so that nobody can tell what is built into it: {REMEDY}"
        )
    });
    let named: Vec<String> = named.collect();
    causes.extend(named);
    match &causes[..] {
        [] => "no OpenMP runtime is loaded; one that comes later is found when the process is initialized again"
            .to_owned(),
        _ => format!("no OpenMP runtime was found: {}", causes.join("; ")),
    }
}
