//! Where threads come to locks and constructs: the functions that programs call for these.

use std::collections::{BTreeMap, BTreeSet};

use ompd_layout::code::{Callee, CodeImage, Event, Limits};
use ompd_process::Symbol;
use ompd_process::elf::ElfFile;

use super::{Branches, Found, Kind, Site, StopEvent};

/// Functions by what they begin: libgomp's (lock.c, critical.c, task.c, single.c, sections.c) and libomp's (kmp_csupport.cpp,
/// kmp_gsupport.cpp, kmp_tasking.cpp).
const FUNCTIONS: [(StopEvent, &[&str]); 5] = [
    (
        StopEvent::LockAcquire,
        &[
            "omp_set_lock",
            "omp_set_lock_",
            "omp_set_nest_lock",
            "omp_set_nest_lock_",
            "__kmpc_set_lock",
            "__kmpc_set_nest_lock",
        ],
    ),
    (
        StopEvent::CriticalAcquire,
        &["GOMP_critical_start", "GOMP_critical_name_start", "__kmpc_critical", "__kmpc_critical_with_hint"],
    ),
    (
        StopEvent::TaskwaitBegin,
        &["GOMP_taskwait", "GOMP_taskwait_depend", "__kmpc_omp_taskwait", "__kmpc_omp_taskwait_deps_51"],
    ),
    (StopEvent::WorksharingBegin, &["GOMP_sections_start", "GOMP_sections2_start", "__kmpc_sections_init"]),
    (StopEvent::SingleBegin, &["GOMP_single_start", "GOMP_single_copy_start", "__kmpc_single"]),
];

/// True for a function that begins a loop in one thread. There is one for each schedule and type.
fn begins_loop(name: &str) -> bool {
    const KMP: [&str; 4] = [
        "__kmpc_for_static_init_",
        "__kmpc_dispatch_init_",
        "__kmpc_dist_for_static_init_",
        "__kmpc_dist_dispatch_init_",
    ];
    name.starts_with("GOMP_loop_") && name.ends_with("_start") || KMP.iter().any(|prefix| name.starts_with(prefix))
}

fn event_of(name: &str) -> Option<StopEvent> {
    let exact = FUNCTIONS.iter().find(|(_, names)| names.contains(&name)).map(|(event, _)| *event);
    exact.or_else(|| begins_loop(name).then_some(StopEvent::WorksharingBegin))
}

/// Entries of these functions by event, each with its name. A name has several with several versions.
fn entries(image: &ElfFile) -> BTreeMap<StopEvent, BTreeMap<u64, String>> {
    let mut found: BTreeMap<StopEvent, BTreeMap<u64, String>> = BTreeMap::new();
    let mut add = |symbol: Symbol| {
        let event = event_of(&symbol.name);
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
pub(crate) fn find(branches: &Branches<'_>, found: &mut Found) {
    let entries = entries(branches.image);
    for (event, _) in FUNCTIONS {
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
    found.gap(
        StopEvent::WorksharingBegin,
        "loops that the compiler divides itself are not met: GCC does so with schedule(static)",
    );
    found.gap(
        StopEvent::WorksharingBegin,
        "loops and sections that GCC begins with their region (parallel for) are not met",
    );
    if CodeImage::symbol(branches.image, "__kmpc_omp_wait_deps").is_some() {
        let why = "taskwait with dependences is not met in code that calls __kmpc_omp_wait_deps: undeferred tasks call it too";
        found.gap(StopEvent::TaskwaitBegin, why);
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
