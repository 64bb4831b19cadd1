//! Where threads come to locks and constructs: the functions that programs call for these.

use std::collections::{BTreeMap, BTreeSet};

use ompd_layout::code::{Callee, CodeImage, Event, Limits};
use ompd_process::Symbol;
use ompd_process::elf::ElfFile;

use super::{Branches, Found, Kind, Site, StopEvent};

/// The functions of a family that programs call for locks and constructs.
pub(crate) struct Constructs {
    /// Functions by what they begin.
    pub functions: &'static [(StopEvent, &'static [&'static str])],
    /// How the names of functions that begin a loop in one thread begin and end: there is one for each schedule and type.
    pub loops: &'static [(&'static str, &'static str)],
    /// Where the runtime has this function, the event is not always met, and why.
    pub shared: Option<(&'static str, StopEvent, &'static str)>,
}

/// Events that no function shows in all programs, and why.
const NOT_MET: [&str; 2] = [
    "loops that the compiler divides itself are not met: GCC does so with schedule(static)",
    "loops and sections that GCC begins with their region (parallel for) are not met",
];

impl Constructs {
    fn event_of(&self, name: &str) -> Option<StopEvent> {
        let exact = self.functions.iter().find(|(_, names)| names.contains(&name)).map(|(event, _)| *event);
        let begins_loop = || self.loops.iter().any(|(begin, end)| name.starts_with(begin) && name.ends_with(end));
        exact.or_else(|| begins_loop().then_some(StopEvent::WorksharingBegin))
    }
}

/// Entries of these functions by event, each with its name. A name has several with several versions.
fn entries(constructs: &Constructs, image: &ElfFile) -> BTreeMap<StopEvent, BTreeMap<u64, String>> {
    let mut found: BTreeMap<StopEvent, BTreeMap<u64, String>> = BTreeMap::new();
    let mut add = |symbol: Symbol| {
        let event = constructs.event_of(&symbol.name);
        if let Some(event) = event {
            found.entry(event).or_default().entry(symbol.addr.0).or_insert(symbol.name);
        }
        event.is_some()
    };
    let exported = image.exported_symbols().map(&mut add).filter(|is_one| *is_one).count();
    if exported == 0 {
        // It is built into a program.
        for symbol in image.symbols_with_prefix("") {
            add(symbol);
        }
    }
    found
}

/// Finds the places. Of functions that call each other, the innermost one is a place: so a thread passes through one.
pub(crate) fn find(constructs: &Constructs, branches: &Branches<'_>, found: &mut Found) {
    let entries = entries(constructs, branches.image);
    for (event, _) in constructs.functions {
        let event = *event;
        let Some(of_event) = entries.get(&event) else {
            found.gap(event, "the runtime has no function for it");
            continue;
        };
        for (at, name) in of_event {
            let inner: BTreeSet<u64> =
                branches.reached(*at, 1).into_iter().filter(|to| to != at && of_event.contains_key(to)).collect();
            if inner.is_empty() {
                found.site(Site::new(event, *at, Kind::AsRead, format!("entry of {name}")));
            } else if !always_calls(branches, *at, &inner) {
                found.gap(event, format!("not all that {name} begins is met: it begins some without another function"));
            }
        }
    }
    for why in NOT_MET {
        found.gap(StopEvent::WorksharingBegin, why);
    }
    if let Some((function, event, why)) = constructs.shared
        && CodeImage::symbol(branches.image, function).is_some()
    {
        found.gap(event, why);
    }
}

/// True if all ways through a function call one of these.
fn always_calls(branches: &Branches<'_>, entry: u64, functions: &BTreeSet<u64>) -> bool {
    let Some(run) = branches.run(entry, &Limits::default()) else { return false };
    let calls = |event: &Event| {
        let Event::Call(call) = event else { return false };
        let callee = match &call.callee {
            Callee::Internal(at) => Some(*at),
            Callee::Named(name) => CodeImage::symbol(branches.image, name),
            Callee::Pointer(_) => None,
        };
        callee.is_some_and(|at| functions.contains(&at))
    };
    let mut paths = run.paths().peekable();
    paths.peek().is_some() && paths.all(|mut path| path.any(calls))
}
