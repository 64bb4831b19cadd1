//! Where regions, tasks and threads begin and end, in the files of runtimes. Symbols show it where a file has some. In
//! a stripped file every event must have a place.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use ompd_process::{Addr, ElfFile};
use ompd_runtime::stops::{StopEvent, Stops};
use ompd_runtime::stops_of;
use test_programs::{Opt, Runtime, Toolchain, build};

fn skip(reason: &str) {
    let _ = writeln!(std::io::stderr(), "skipped: {reason}");
}

/// Functions that have places, by event: their names as far as their arguments.
fn functions(file: &ElfFile, stops: &Stops) -> BTreeMap<StopEvent, BTreeSet<String>> {
    let mut found: BTreeMap<StopEvent, BTreeSet<String>> = BTreeMap::new();
    for point in stops.points.iter().filter(|point| !point.own) {
        let (symbol, _) = file.symbol_at(point.addr).expect("a file with symbols");
        let name = symbol.name.split("__kmp").nth(1).map_or(symbol.name.clone(), |rest| format!("__kmp{rest}"));
        found.entry(point.event).or_default().insert(name);
    }
    found
}

/// Each event is in functions whose names begin with these, and in nothing else.
fn check(file: &ElfFile, stops: &Stops, expected: &[(StopEvent, &[&str])]) {
    let found = functions(file, stops);
    for (event, names) in expected {
        let functions = found.get(event).cloned().unwrap_or_default();
        for name in *names {
            assert!(functions.iter().any(|f| f.starts_with(name)), "{event:?}: {name} is not among {functions:?}");
        }
        for function in functions {
            assert!(names.iter().any(|name| function.starts_with(name)), "{event:?}: {function}");
        }
    }
}

#[test]
fn places_of_a_libiomp5_are_in_the_functions_that_its_symbols_name() {
    let path = match Runtime::Libiomp5.library() {
        Ok(path) => path,
        Err(reason) => return reason.show(),
    };
    let file = ElfFile::open(&path).expect("the library");
    let stops = stops_of(&file).expect("a runtime");
    let entry = |name| file.symbol(name).expect("a symbol").addr;
    let begins = |event| stops.points.iter().filter(move |p| p.event == event && !p.own).map(|p| p.addr);
    assert_eq!(begins(StopEvent::ThreadBegin).collect::<Vec<Addr>>(), [entry("__kmp_launch_thread")]);
    check(
        &file,
        &stops,
        &[
            (StopEvent::ParallelBegin, &["__kmp_internal_fork", "__kmp_serialized_parallel"]),
            (StopEvent::ParallelEnd, &["__kmp_internal_join", "__kmpc_end_serialized_parallel"]),
            (StopEvent::TaskBegin, &["__kmp_invoke_task", "__kmpc_omp_task_begin_if0"]),
            (StopEvent::TaskEnd, &["__kmp_invoke_task", "__kmpc_omp_task_complete_if0"]),
            (StopEvent::ThreadEnd, &["__kmp_launch_thread"]),
            (StopEvent::LockAcquire, &["__kmpc_set_lock", "__kmpc_set_nest_lock"]),
            (StopEvent::CriticalAcquire, &["__kmpc_critical_with_hint"]),
            (StopEvent::SingleBegin, &["__kmpc_single", "GOMP_single_start", "GOMP_single_copy_start"]),
        ],
    );
    let at: Vec<Addr> = begins(StopEvent::BarrierBegin).collect();
    assert!(at.contains(&entry("__kmpc_barrier")) && at.contains(&entry("GOMP_loop_end")), "{at:?}");
    assert!(at.contains(&entry("_Z18__kmp_join_barrieri")), "{at:?}");
    for event in StopEvent::ALL {
        let own = stops.points.iter().find(|point| point.own && point.event == event);
        assert_eq!(own.map(|own| own.addr), event.symbol().map(entry));
    }
}

/// A program has those functions of a runtime built in that it needs.
#[test]
fn constructs_of_a_built_in_libgomp_have_places() {
    if let Err(reason) = Toolchain::Gcc.check() {
        return reason.show();
    }
    let program = build("constructs", Toolchain::Gcc, Opt::O0, &["-static"]).expect("it builds");
    let file = ElfFile::open(&program.path).expect("the program");
    let stops = stops_of(&file).expect("a runtime");
    check(
        &file,
        &stops,
        &[
            (StopEvent::WorksharingBegin, &["GOMP_loop_", "GOMP_sections"]),
            (StopEvent::CriticalAcquire, &["GOMP_critical_start", "GOMP_critical_name_start"]),
            (StopEvent::TaskwaitBegin, &["GOMP_taskwait"]),
            (StopEvent::SingleBegin, &["GOMP_single_start", "GOMP_single_copy_start"]),
        ],
    );
}

#[test]
fn places_of_a_built_in_libgomp_are_in_the_functions_that_its_symbols_name() {
    if let Err(reason) = Toolchain::Gcc.check() {
        return reason.show();
    }
    let program = build("begin_end", Toolchain::Gcc, Opt::O0, &["-static"]).expect("it builds");
    let file = ElfFile::open(&program.path).expect("the program");
    let stops = stops_of(&file).expect("a runtime");
    check(
        &file,
        &stops,
        &[
            (StopEvent::ParallelBegin, &["gomp_team_start"]),
            (StopEvent::ParallelEnd, &["gomp_team_end"]),
            (
                StopEvent::TaskBegin,
                &[
                    "GOMP_task",
                    "GOMP_taskwait",
                    "GOMP_taskgroup_end",
                    "gomp_barrier_handle_tasks",
                    "gomp_task_maybe_wait_for_dependencies",
                ],
            ),
            (StopEvent::ThreadBegin, &["gomp_thread_start"]),
            (StopEvent::ThreadEnd, &["gomp_thread_start"]),
        ],
    );
}

/// Files called like runtimes.
fn files(directory: &Path, found: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(directory) else { return };
    for path in entries.flatten().map(|entry| entry.path()) {
        if path.is_dir() {
            files(&path, found);
        } else if path.to_str().is_some_and(ompd_runtime::family::is_named_like_a_runtime)
            && !path.ends_with("libiomp5.dbg")
        {
            found.push(path);
        }
    }
}

#[test]
fn every_event_has_a_place_in_every_runtime_that_was_fetched() {
    let runtimes = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../test-programs/runtimes");
    let mut all = Vec::new();
    for directory in ["debian-bullseye", "debian-bookworm", "debian-trixie", "debian-forky", "debian-sid"] {
        files(&runtimes.join(directory), &mut all);
    }
    all.sort();
    if all.is_empty() {
        return skip("no runtimes of distributions are here; \"ci/fetch debian\" gets them");
    }
    for path in &all {
        let Ok(file) = ElfFile::open(path) else { continue };
        let Some(stops) = stops_of(&file) else { continue };
        for event in StopEvent::ALL {
            let has = stops.points.iter().any(|point| point.event == event && !point.own);
            let why: Vec<_> = stops.gaps.iter().filter(|(of, own, _)| *of == event && !own).collect();
            assert!(has, "{}: {event:?}: {why:?}", path.display());
        }
    }
}
