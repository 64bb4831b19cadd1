//! What a thread does outside of OpenMP, in words.

use ompd_inspection::outside::{CallSite, Outside, OutsideWait};

use crate::escape::escape;

/// In a few words, as `usleep, app.c:10, in solve`; `running` of a thread that is in no call and waits for nothing.
pub fn words(outside: &Outside) -> String {
    let site = outside.call.as_ref().and_then(|call| call.site.as_ref());
    let parts: Vec<String> = what(outside).into_iter().chain(site.and_then(place)).collect();
    if parts.is_empty() { "running".to_owned() } else { parts.join(", ") }
}

/// The same without the place in the program, as `usleep`; `None` of a thread that is in no call and waits for nothing.
pub fn what(outside: &Outside) -> Option<String> {
    let call = outside.call.as_ref().map(|call| escape(&call.function));
    let wait = outside.wait.as_ref().map(wait);
    match (call, wait) {
        // The function that the program calls says more than the system call it ends in.
        (Some(call), Some(_)) => Some(call),
        (Some(call), None) => Some(format!("running in {call}")),
        (None, wait) => wait,
    }
}

/// `app.c:10, in solve`.
fn place(site: &CallSite) -> Option<String> {
    let file = site.file.as_deref().map(|file| file.rsplit('/').next().unwrap_or(file));
    let line = file.zip(site.line).map(|(file, line)| format!("{}:{line}", escape(file)));
    let function = site.function.as_deref().map(|function| format!("in {}", escape(function)));
    let parts: Vec<String> = line.into_iter().chain(function).collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

fn wait(wait: &OutsideWait) -> String {
    match wait {
        OutsideWait::SystemCall { name } => format!("in system call {}", escape(name)),
        _ => "waits".to_owned(),
    }
}
