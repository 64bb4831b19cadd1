//! Python: its versions, its global interpreter lock, and who waits for that.

use std::collections::HashMap;

use anstyle::Style;
use ompd_inspection::Inspection;
use ompd_stack::{Gil, GilHolder, LayoutOrigin};

use super::{FAINT, HEADING, Page};
use crate::escape::escape;
use crate::words;

/// What threads do that wait for the interpreter lock, by LWP.
pub fn waits(inspection: &Inspection) -> HashMap<i32, String> {
    let gils = inspection.stacks.python.iter().flat_map(|python| &python.gils);
    gils.flat_map(|gil| gil.waiting.iter().map(move |lwp| (*lwp, format!("waits for Python's GIL, {}", holder(gil)))))
        .collect()
}

/// Who holds a lock.
fn holder(gil: &Gil) -> String {
    match &gil.holder {
        Ok(GilHolder::Nobody) => "free at this moment".to_owned(),
        Ok(GilHolder::Thread(lwp)) => format!("held by LWP {lwp}"),
        Ok(GilHolder::Gone) => "held by a thread that fork left behind".to_owned(),
        Err(why) => format!("holder unknown: {}", escape(why)),
    }
}

/// Each Python, for `doctor`.
pub fn render(page: &mut Page, inspection: &Inspection) {
    for python in &inspection.stacks.python {
        page.blank();
        let version = python.version.as_deref().map_or_else(|| "of an unknown version".to_owned(), escape);
        page.styled(HEADING, format_args!("CPython {version}  {}", escape(&python.path)));
        let mut item = |name: &str, text: &str| page.wrapped(&format!("  {name:11}"), Style::new(), text, 13);
        match python.layout {
            Some(LayoutOrigin::Headers) => item("layout", "this program's table for the version, from its headers"),
            Some(LayoutOrigin::Process) => item("layout", "described in the process (_Py_DebugOffsets)"),
            None => {}
        }
        let gone = match python.gone {
            0 => String::new(),
            gone => format!("; {} left behind by fork", gone),
        };
        item("threads", &format!("{}{gone}", python.threads.len()));
        for gil in &python.gils {
            let waiting = match gil.waiting.len() {
                0 => String::new(),
                count => format!(
                    "; {} for it",
                    if count == 1 { "1 thread waits".to_owned() } else { format!("{count} threads wait") }
                ),
            };
            item("GIL", &format!("{}{waiting}", holder(gil)));
        }
        if let Some(why) = &python.problem {
            item("unknown", &escape(why));
        }
    }
}

/// Below stacks: what is not shown of Python, and who holds the lock.
pub fn below_stacks(page: &mut Page, inspection: &Inspection) {
    let unknown = inspection.stacks.python.iter().filter_map(|python| Some((&python.path, python.problem.as_ref()?)));
    for (path, why) in unknown {
        page.blank();
        page.wrapped(&format!("Python functions of {} are not shown: ", escape(path)), FAINT, &escape(why), 4);
    }
    let held = |gil: &&Gil| !gil.waiting.is_empty();
    for gil in inspection.stacks.python.iter().flat_map(|python| &python.gils).filter(held) {
        page.blank();
        let threads = words::count(gil.waiting.len(), "thread");
        let wait = if gil.waiting.len() == 1 { "waits" } else { "wait" };
        page.wrapped("", Style::new(), &format!("{threads} {wait} for Python's GIL, {}.", holder(gil)), 4);
    }
}
