//! The functions of the extension keep to the conventions, and agree with those of OMPD.

use std::ffi::{CStr, CString};
use std::path::Path;
use std::process::Command;
use std::ptr;

use ompd::api::*;
use ompd::extension::*;
use ompd::types::*;
use test_programs::{
    Env, Executable, HANGS, Launch, Opt, Runtime, Toolchain, build, built_by_cargo, combinations, native_combinations,
};

use crate::debugger::{Held, Session, give_back, out, take};

/// A member of an inner team, on each runtime.
fn each(version: Word, mut check: impl FnMut(&Session, *mut ThreadHandle, Runtime)) {
    for (toolchain, runtime) in native_combinations() {
        let program = build("nested", toolchain, Opt::O0, &[]).expect("it builds");
        let running = Launch::new(&program, runtime, Env::Settled).start().expect("it starts");
        let session = Session::new(version, Held::live(running.pid, false));
        let waiter = running.truth.with_role("inner waiter").next().expect("a waiter");
        let thread = session.thread(thread_id::LWP, waiter.lwp as u64).expect("the thread");
        check(&session, thread, runtime);
    }
}

fn region(thread: *mut ThreadHandle) -> *mut ParallelHandle {
    out(|region| unsafe { ompd_get_curr_parallel_handle(thread, region) }).expect("a region")
}

fn task(thread: *mut ThreadHandle) -> *mut TaskHandle {
    out(|task| unsafe { ompd_get_curr_task_handle(thread, task) }).expect("a task")
}

fn points(session: &Session) -> Vec<StopPoint> {
    let mut count = 0;
    let block = out(|points| unsafe { ompdx_stop_points(session.space, points, &raw mut count) }).expect("points");
    let all = (0..count as usize).map(|n| unsafe { block.add(n).read() }).collect();
    unsafe { give_back(block.cast()) };
    all
}

pub fn origin<T>(handle: *mut T, item: i32) -> Result<(Origin, String), Rc> {
    let mut origin = Origin::Os;
    let text = out(|text| unsafe { ompdx_get_origin(handle.cast(), item, &raw mut origin, text) })?;
    Ok((origin, take(text)))
}

#[test]
fn arguments_that_are_wrong_are_refused_and_nothing_is_written() {
    each(202_411, |session, thread, _| {
        let mut count = 77;
        let mut block: *mut StopPoint = ptr::null_mut();
        let (mut point, mut event, mut counts) = (77, Event::TaskEnd, 77);
        unsafe {
            assert_eq!(ompdx_stop_points(ptr::null_mut(), &raw mut block, &raw mut count), Rc::STALE_HANDLE);
            assert_eq!(ompdx_stop_points(thread.cast(), &raw mut block, &raw mut count), Rc::INCOMPATIBLE_HANDLE);
            assert_eq!(ompdx_stop_points(session.space, ptr::null_mut(), &raw mut count), Rc::BAD_INPUT);
            assert_eq!(ompdx_stop_points(session.space, &raw mut block, ptr::null_mut()), Rc::BAD_INPUT);
            assert!(block.is_null() && count == 77);
            // It is at no place, and there are no places before they are asked for.
            assert_eq!(ompdx_get_stop(thread, &raw mut point, &raw mut event, &raw mut counts), Rc::UNAVAILABLE);
            assert_eq!(ompdx_get_stop(thread, ptr::null_mut(), &raw mut event, &raw mut counts), Rc::BAD_INPUT);
            assert_eq!(ompdx_set_stop(thread, 1, ptr::null(), 0), Rc::BAD_INPUT);
            assert_eq!((point, event, counts), (77, Event::TaskEnd, 77));
        }
        let all = points(session);
        let values = [0u64; REGISTERS + 1];
        unsafe {
            assert_eq!(ompdx_set_stop(thread, all.len() as u64 + 1, ptr::null(), 0), Rc::BAD_INPUT);
            assert_eq!(ompdx_set_stop(thread, 1, ptr::null(), 1), Rc::BAD_INPUT);
            assert_eq!(ompdx_set_stop(thread, 1, values.as_ptr(), values.len() as Size), Rc::BAD_INPUT);
            assert_eq!(ompdx_set_stop(ptr::null_mut(), 1, ptr::null(), 0), Rc::STALE_HANDLE);
            let ends = all.iter().find(|p| p.point != 0 && p.event == Event::TaskEnd).expect("a place");
            let more = ends.register_count as Size + 1;
            assert_eq!(ompdx_set_stop(thread, ends.point, values.as_ptr(), more), Rc::BAD_INPUT);
            assert_eq!(ompdx_get_parallel_function(ptr::null_mut(), ptr::null_mut()), Rc::STALE_HANDLE);
            let region = region(thread);
            assert_eq!(ompdx_get_parallel_function(region, ptr::null_mut()), Rc::BAD_INPUT);
            assert_eq!(ompdx_drop_cache(ptr::null_mut()), Rc::STALE_HANDLE);
            assert_eq!(ompdx_drop_cache(thread.cast()), Rc::INCOMPATIBLE_HANDLE);
            assert_eq!(ompdx_report_json(session.space, ptr::null_mut()), Rc::BAD_INPUT);
            assert_eq!(ompdx_report_json(ptr::null_mut(), ptr::null_mut()), Rc::STALE_HANDLE);
            let mut known = Origin::Os;
            let item = Item::ThreadTask as i32;
            assert_eq!(ompdx_get_origin(thread.cast(), item, &raw mut known, ptr::null_mut()), Rc::BAD_INPUT);
        }
        for item in [0, Item::RegionSize as i32, Item::TaskKind as i32, 999] {
            assert_eq!(origin(thread, item), Err(Rc::BAD_INPUT));
        }
        assert_eq!(origin(session.space, 1), Err(Rc::INCOMPATIBLE));
    });
}

/// What the library tells of the locks of a process that it opens now, or has opened.
fn locks(space: *mut AddressSpaceHandle) -> String {
    take(out(|text| unsafe { ompdx_report_text(space, c"waits".as_ptr(), ptr::null(), text) }).expect("a text"))
}

/// The program is not where it was. A folder in which it is counts for what is initialised while it is set.
#[test]
fn files_of_another_machine_are_found_below_a_folder() {
    let built = build("hangs/lock_cycle", Toolchain::Gcc, Opt::O2, &[]).expect("the program builds");
    let directory = tempfile::tempdir().expect("a directory");
    let (there, folder) = (directory.path().join("prog"), directory.path().join("folder"));
    std::fs::create_dir(&folder).expect("a folder");
    std::fs::copy(&built.path, &there).expect("the program is copied");
    let moved = Executable { path: there.clone(), ..built };
    let running = Launch::new(&moved, Runtime::Libgomp, Env::Settled).start_hanging().expect("it hangs");
    let core = match running.gcore(directory.path()).expect("gcore runs") {
        Ok(core) => core,
        Err(skip) => return skip.show(),
    };
    drop(running);
    std::fs::rename(&there, folder.join("prog")).expect("the program moves away");
    let folder = CString::new(folder.into_os_string().into_encoded_bytes()).expect("a path");

    let session = Session::new(201_811, Held::core(&core, true));
    let context: *const Held = &raw const *session.held;
    let before = locks(session.space);
    assert!(before.contains("lock prog+0x") && !before.contains("lock a"), "{before}");
    for (set, found) in [(folder.as_ptr(), true), (ptr::null(), false), (folder.as_ptr(), true), (c"".as_ptr(), false)]
    {
        assert_eq!(unsafe { ompdx_set_lib_root(set) }, Rc::OK);
        let space = out(|space| unsafe { ompd_process_initialize(context.cast_mut().cast(), space) }).expect("a space");
        let told = locks(space);
        assert_eq!((told.contains("lock a"), told.contains("lock prog+0x")), (found, !found), "{told}");
        assert_eq!(locks(session.space), before, "it was initialised before");
        assert_eq!(unsafe { ompd_rel_address_space_handle(space) }, Rc::OK);
    }
}

#[test]
fn every_event_has_a_place_or_a_reason_and_each_place_is_code_of_the_runtime() {
    each(201_811, |session, _, runtime| {
        let all = points(session);
        let target = &session.held.target;
        let library = runtime.library().expect("the library");
        for event in 1..=7 {
            // OMPD has no symbol for barriers.
            for own in [0, 1].into_iter().filter(|own| *own == 0 || event < 7) {
                let of: Vec<_> = all.iter().filter(|p| p.event as i32 == event && p.own == own).collect();
                assert!(!of.is_empty(), "event {event}");
                // All three runtimes show every event; only Intel's keeps the symbols.
                let expected = own == 0 || runtime == Runtime::Libiomp5;
                assert_eq!(of.iter().any(|p| p.point != 0), expected, "event {event} of {runtime:?}");
            }
        }
        for point in all.iter().filter(|p| p.point != 0) {
            use ompd_process::{Addr, TargetExt};
            let module = target.module_at(Addr(point.address.address)).expect("a module");
            assert_eq!(Path::new(&module.path).canonicalize().expect("a file"), library);
            assert_eq!(point.origin, if point.own == 1 { Origin::Symbol } else { Origin::Code });
        }
        // Asked again, they have the same numbers.
        let again = points(session);
        let numbers = |all: &[StopPoint]| all.iter().map(|p| (p.point, p.address.address)).collect::<Vec<_>>();
        assert_eq!(numbers(&all), numbers(&again));
    });
}

#[test]
fn places_are_told_in_words_that_do_not_run_into_one_another() {
    each(201_811, |session, _, runtime| {
        let mut count = 0;
        let block = out(|points| unsafe { ompdx_stop_points(session.space, points, &raw mut count) }).expect("points");
        let text = |at: *const std::ffi::c_char| {
            (!at.is_null()).then(|| unsafe { CStr::from_ptr(at) }.to_str().expect("UTF-8").to_owned())
        };
        let texts: Vec<_> = (0..count as usize)
            .map(|n| unsafe { block.add(n).read() })
            .map(|point| (point.point, text(point.runtime), text(point.place), text(point.condition)))
            .collect();
        unsafe { give_back(block.cast()) };
        let name = texts[0].1.clone();
        assert!(name.as_ref().is_some_and(|name| !name.is_empty()), "{runtime:?}: {texts:?}");
        for (point, of, place, condition) in &texts {
            assert_eq!(of, &name, "{runtime:?}: one runtime, one name");
            assert!(place.as_ref().is_some_and(|place| !place.is_empty()), "{runtime:?}: {texts:?}");
            assert!(*point != 0 || condition.is_none(), "{runtime:?}: {texts:?}");
        }
    });
}

#[test]
fn a_told_stop_holds_until_it_is_taken_back() {
    each(201_811, |session, thread, _| {
        let implicit = task(thread);
        let met = out(|met| unsafe { ompd_get_generating_task_handle(implicit, met) }).expect("what met the construct");
        let ends = points(session).into_iter().filter(|p| p.point != 0 && p.event == Event::ParallelEnd && p.own == 0);
        // In libomp the first one is that of regions of one thread.
        let end = ends.max_by_key(|p| p.address.address);
        let end = end.expect("a place").point;
        let current_is = |expected| {
            let current = task(thread);
            assert_eq!(out(|cmp| unsafe { ompd_task_handle_compare(current, expected, cmp) }), Ok(0));
            assert_eq!(unsafe { ompd_rel_task_handle(current) }, Rc::OK);
        };
        let at = || {
            let (mut event, mut counts) = (Event::TaskEnd, -1);
            let point = out(|point| unsafe { ompdx_get_stop(thread, point, &raw mut event, &raw mut counts) })?;
            Ok((point, event, counts))
        };
        for take_back in [true, false] {
            assert_eq!(unsafe { ompdx_set_stop(thread, end, ptr::null(), 0) }, Rc::OK);
            assert_eq!(at(), Ok((end, Event::ParallelEnd, 1)));
            current_is(met);
            let rc = unsafe {
                if take_back { ompdx_set_stop(thread, 0, ptr::null(), 0) } else { ompdx_drop_cache(session.space) }
            };
            assert_eq!(rc, Rc::OK);
            assert_eq!(at(), Err(Rc::UNAVAILABLE));
            current_is(implicit);
        }
    });
}

#[test]
fn origins_are_told_and_so_is_why_something_is_not_known() {
    each(201_811, |session, thread, runtime| {
        let region = region(thread);
        let task = task(thread);
        let json = out(|json| unsafe { ompdx_report_json(session.space, json) }).expect("a report");
        let report: serde_json::Value = serde_json::from_str(&take(json)).expect("JSON");
        let sources = report["runtimes"][0]["origins"].as_array().expect("sources of layouts").clone();
        let details_of = |origin: &str| {
            let of = sources.iter().filter(|source| source["origin"] == origin && source["values"] != 0);
            of.map(|source| source["detail"].as_str().expect("a detail")).collect::<Vec<_>>().join(", ")
        };
        for (handle, items) in [
            (thread.cast::<u8>(), &[Item::ThreadRegion, Item::ThreadNumber, Item::ThreadTask][..]),
            (region.cast(), &[Item::RegionSize, Item::RegionLevel, Item::RegionActiveLevel, Item::RegionEnclosing]),
            (task.cast(), &[Item::TaskKind, Item::TaskGenerating, Item::TaskRegion]),
        ] {
            for item in items {
                let (origin, text) = origin(handle, *item as i32).expect("an origin");
                let layout = [Origin::Dwarf, Origin::Table, Origin::Symbol, Origin::Code, Origin::Profile];
                assert!(layout.contains(&origin), "{item:?}: {origin:?}");
                let (word, details) = text.split_once(": ").expect("an origin and its details");
                assert_eq!(details, details_of(word), "{item:?}: {text}");
            }
        }
        // Items of other kinds of handles, and numbers of no item.
        let not_of_tasks = [Item::ThreadRegion, Item::RegionFunction].map(|item| item as i32);
        let not_of_regions = [Item::ThreadState, Item::TaskKind].map(|item| item as i32);
        for item in not_of_tasks.into_iter().chain([0, 999]) {
            assert_eq!(origin(task, item), Err(Rc::BAD_INPUT), "{item}");
        }
        for item in not_of_regions.into_iter().chain([0, 999]) {
            assert_eq!(origin(region, item), Err(Rc::BAD_INPUT), "{item}");
        }
        /// `ompt_state_undefined`
        const UNDEFINED: Word = 0x102;
        // What OMPD's own function can answer has an origin. What it cannot has a reason.
        let mut wait = 0;
        let state = out(|state| unsafe { ompd_get_state(thread, state, &raw mut wait) });
        let function = out(|at: *mut Address| unsafe { ompd_get_task_function(task, at) });
        let told = origin(thread, Item::ThreadState as i32).expect("an origin");
        assert_eq!(told.0 != Origin::Unknown, state != Ok(UNDEFINED), "{runtime:?}: {told:?}, {state:?}");
        let told = origin(task, Item::TaskFunction as i32).expect("an origin");
        assert_eq!(told.0 != Origin::Unknown, function.is_ok(), "{runtime:?}: {told:?}, {function:?}");
        let told = origin(task, Item::TaskFinal as i32).expect("an origin");
        let is_final = session.icv(task, "final-task-var");
        assert_eq!(told.0 != Origin::Unknown, is_final.is_ok(), "{runtime:?}: {told:?}, {is_final:?}");
        // libgomp keeps no function of a region, and this debugger has no stacks to offer.
        let (origin, text) = origin(region, Item::RegionFunction as i32).expect("an origin");
        let function = out(|at: *mut Address| unsafe { ompdx_get_parallel_function(region, at) });
        match runtime {
            Runtime::Libgomp => {
                assert_eq!((origin, function), (Origin::Unknown, Err(Rc::UNAVAILABLE)));
                assert!(text.contains("libgomp"), "{text}");
            }
            _ => {
                assert_ne!(origin, Origin::Unknown);
                let same = out(|at: *mut Address| unsafe { ompd_get_task_function(task, at) });
                assert_eq!(function, same);
            }
        }
        // Of the region around the program there is nothing to read.
        let mut outer = region;
        while let Ok(next) = out(|next| unsafe { ompd_get_enclosing_parallel_handle(outer, next) }) {
            outer = next;
        }
        let told = self::origin(outer, Item::RegionSize as i32).expect("an origin");
        assert_eq!(told.0, Origin::Unknown);
        assert_eq!(session.icv(outer, "levels-var"), Ok(0));
    });
}

#[test]
fn origins_have_the_words_of_reports() {
    use ompd_runtime::Origin as Of;
    let all = [
        (Of::Dwarf, Origin::Dwarf),
        (Of::Table, Origin::Table),
        (Of::Symbol, Origin::Symbol),
        (Of::Code, Origin::Code),
        (Of::Profile, Origin::Profile),
        (Of::Registers, Origin::Registers),
        (Of::Stack, Origin::Stack),
        (Of::Os, Origin::Os),
    ];
    for (of, origin) in all {
        assert_eq!(Origin::from(of), origin);
        assert_eq!(format!("{origin:?}").to_lowercase(), of.word());
    }
}

/// The debugger says that a thread is at a place, and not what its registers hold there.
#[test]
fn what_is_unknown_at_a_place_has_a_reason_and_nothing_else_has() {
    let (mut unknown, mut registers) = (0, 0);
    each(201_811, |session, thread, runtime| {
        for point in points(session).into_iter().filter(|p| p.point != 0) {
            assert_eq!(unsafe { ompdx_set_stop(thread, point.point, ptr::null(), 0) }, Rc::OK);
            let region = out(|region| unsafe { ompd_get_curr_parallel_handle(thread, region) });
            let task = out(|task| unsafe { ompd_get_curr_task_handle(thread, task) });
            let answers = [region.is_ok(), task.is_ok()];
            let origins =
                [Item::ThreadRegion, Item::ThreadTask].map(|item| origin(thread, item as i32).expect("an origin"));
            let known = origins.each_ref().map(|(origin, _)| *origin != Origin::Unknown);
            assert_eq!(known, answers, "{runtime:?}: {point:?}: {origins:?}");
            assert!(origins.iter().all(|(_, text)| !text.is_empty()), "{runtime:?}: {origins:?}");
            // The thread stays who it is.
            let (number, _) = origin(thread, Item::ThreadNumber as i32).expect("an origin");
            assert_ne!(number, Origin::Unknown, "{runtime:?}");
            registers += point.register_count;
            unknown += known.iter().filter(|known| !**known).count();
            assert_eq!(unsafe { ompdx_drop_cache(session.space) }, Rc::OK);
        }
    });
    assert!(unknown > 0 && registers > 0, "no place needs registers");
}

/// libgomp keeps no function of a region. Its members' stacks have it, although a look at one task reads none.
#[test]
fn the_function_of_a_task_is_known_at_the_first_question_of_a_stop() {
    for (toolchain, runtime) in native_combinations() {
        let program = build("nested", toolchain, Opt::O0, &[]).expect("it builds");
        let running = Launch::new(&program, runtime, Env::Settled).start().expect("it starts");
        let session = Session::new(202_411, Held::live(running.pid, true));
        let waiter = running.truth.with_role("inner waiter").next().expect("a waiter");
        let thread = session.thread(thread_id::LWP, waiter.lwp as u64).expect("the thread");
        let of_region = out(|at: *mut Address| unsafe { ompdx_get_parallel_function(region(thread), at) });
        assert!(of_region.is_ok(), "{runtime:?}");
        session.held.stops.set(session.held.stops.get() + 1);
        let of_task = out(|at: *mut Address| unsafe { ompd_get_task_function(task(thread), at) });
        assert_eq!(of_task, of_region, "{runtime:?}");
    }
}

#[test]
fn handles_survive_that_everything_is_read_anew() {
    each(201_811, |session, thread, _| {
        let region = region(thread);
        let size = session.icv(region, "team-size-var");
        assert_eq!(unsafe { ompdx_drop_cache(session.space) }, Rc::OK);
        assert_eq!((size, session.icv(region, "team-size-var")), (Ok(2), Ok(2)));
    });
}

#[test]
fn compilers_take_the_header_and_lay_out_the_same() {
    let directory = tempfile::tempdir().expect("a directory");
    let source = directory.path().join("layout.c");
    let text = "#define OMPD_EXT_NO_OMP_TOOLS_H\n#include <stdint.h>\n#include <stddef.h>\n#include <stdio.h>\n\
        typedef int ompd_rc_t; typedef uint64_t ompd_size_t;\n\
        typedef struct { uint64_t segment, address; } ompd_address_t;\n\
        typedef struct a ompd_address_space_handle_t; typedef struct t ompd_thread_handle_t;\n\
        typedef struct p ompd_parallel_handle_t;\n#include \"ompd-ext.h\"\n\
        int main(void) {\n#define AT(m) printf(\"%zu \", offsetof(ompdx_stop_point_t, m));\n\
        AT(point) AT(event) AT(own) AT(address) AT(origin) AT(register_count) AT(registers) AT(runtime) AT(place)\n\
        AT(condition)\nprintf(\"%zu %d %d\", sizeof(ompdx_stop_point_t), ompdx_event_thread_end, ompdx_item_task_final);\n\
        return 0; }\n";
    std::fs::write(&source, text).expect("a file");
    macro_rules! offsets {
        ($($field:ident),*) => { [$(std::mem::offset_of!(StopPoint, $field)),*] };
    }
    let offsets = offsets!(point, event, own, address, origin, register_count, registers, runtime, place, condition)
        .map(|at| at.to_string());
    let ours = format!("{} {} 6 25", offsets.join(" "), size_of::<StopPoint>());
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("include");
    for compiler in ["gcc", "g++", "clang-14"] {
        let out = directory.path().join(compiler);
        let mut command = Command::new(compiler);
        command.args(["-Wall", "-Wextra", "-Werror", "-I"]).arg(&include).arg(&source).arg("-o").arg(&out);
        match command.output() {
            Ok(done) => assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr)),
            Err(why) => {
                use std::io::Write as _;
                let _ = writeln!(std::io::stderr(), "skipped: {compiler}: {why}");
                continue;
            }
        }
        let done = Command::new(&out).output().expect("it runs");
        assert_eq!(String::from_utf8_lossy(&done.stdout), ours, "{compiler}");
    }
}

/// Two threads that wait for each other's lock, to a debugger that has registers: the report has them, and the verdict.
#[test]
fn the_whole_report() {
    let case = HANGS.iter().find(|case| case.program == "hangs/lock_cycle").expect("the program");
    let directory = tempfile::tempdir().expect("a directory");
    for (toolchain, runtime) in combinations().into_iter().filter(|(t, r)| case.works(*t, *r)) {
        let what = format!("{toolchain:?} on {runtime:?}");
        let program = build(case.program, toolchain, Opt::O2, case.flags).expect("it builds");
        let running = Launch::new(&program, runtime, Env::Settled).start_hanging().expect("it hangs");
        let core = match running.gcore(directory.path()).expect("gcore runs") {
            Ok(core) => core,
            Err(reason) => return reason.show(),
        };
        for held in [Held::live(running.pid, true), Held::core(&core, true)] {
            let session = Session::new(202_411, held);
            let text = take(out(|json| unsafe { ompdx_report_json(session.space, json) }).expect("a report"));
            let report: serde_json::Value = serde_json::from_str(&text).expect("JSON");
            assert_eq!(report["schema"], "ompd-inspect/1", "{what}");
            assert_eq!(report["source"], "debugger", "{what}");
            let threads = report["runtimes"].as_array().expect("runtimes").iter();
            let mut seen: Vec<i64> = threads
                .flat_map(|runtime| runtime["threads"].as_array().into_iter().flatten())
                .filter_map(|thread| thread["lwp"].as_i64())
                .collect();
            seen.sort_unstable();
            seen.dedup();
            let mut told: Vec<i64> = running.truth.threads.iter().map(|thread| thread.lwp.into()).collect();
            told.sort_unstable();
            assert_eq!(seen, told, "{what}");
            let stacks = report["stacks"].as_array().expect("stacks");
            assert!(!stacks.is_empty(), "{what}");
            let verdicts = report["verdicts"].as_array().expect("verdicts");
            assert_eq!(verdicts.len(), 1, "{what}: {}", report["verdicts"]);
            the_tables(&session, &told, &what);
        }
    }
}

/// The report for people has the verdict, and calls threads what the debugger calls them.
fn the_tables(session: &Session, threads: &[i64], what: &str) {
    let names: Vec<CString> = (1..=threads.len()).map(|n| CString::new(format!("gdb-{n}")).expect("a name")).collect();
    let labels: Vec<ThreadLabel> =
        threads.iter().zip(&names).map(|(lwp, name)| ThreadLabel { lwp: *lwp, label: name.as_ptr() }).collect();
    let plain =
        TextOptions { width: 100, verbose: 0, colour: 0, labels: labels.as_ptr(), label_count: labels.len() as u64 };
    let show = |view: &CStr, options: *const TextOptions| {
        out(|text| unsafe { ompdx_report_text(session.space, view.as_ptr(), options, text) }).map(take)
    };
    let waits = show(c"waits", &raw const plain).expect("waits");
    assert!(waits.contains("DEADLOCK"), "{what}: {waits}");
    assert!(!waits.contains('\u{1b}') && waits.lines().all(|line| line.chars().count() <= 100), "{what}: {waits}");
    let all = show(c"threads", &raw const plain).expect("threads");
    for (name, lwp) in names.iter().zip(threads) {
        let row = all.lines().find(|line| line.contains(&lwp.to_string())).expect("a row for each thread");
        assert!(row.trim_start().starts_with(name.to_str().expect("text")), "{what}: {row}");
    }
    let coloured = TextOptions { colour: 1, labels: ptr::null(), label_count: 0, ..plain };
    assert!(show(c"waits", &raw const coloured).expect("waits").contains('\u{1b}'), "{what}");
    let first = |text: &str| text.lines().next().map_or(0, |line| line.chars().count());
    let by_default = show(c"waits", ptr::null()).expect("waits");
    assert!(!by_default.contains('\u{1b}'), "{what}: {by_default}");
    let none = TextOptions { width: 0, labels: ptr::null(), label_count: 0, ..plain };
    assert_eq!(show(c"waits", &raw const none).expect("waits"), by_default, "{what}");
    let sixty = TextOptions { width: 60, ..none };
    let narrow = show(c"waits", &raw const sixty).expect("waits");
    assert!(first(&narrow) <= 60 && first(&by_default) > 60, "{what}: {narrow}");
    let nobody = narrow.lines().find(|line| line.contains("no thread is known to wait"));
    assert!(nobody.is_none_or(|line| line.chars().count() <= 60), "{what}: {narrow}");
    let nothing = unsafe { ompdx_report_text(session.space, c"waits".as_ptr(), ptr::null(), ptr::null_mut()) };
    let no_view = out(|text| unsafe { ompdx_report_text(session.space, ptr::null(), ptr::null(), text) });
    assert_eq!((nothing, no_view), (Rc::BAD_INPUT, Err(Rc::BAD_INPUT)), "{what}");
    let no_space = out(|text| unsafe { ompdx_report_text(ptr::null_mut(), c"wait".as_ptr(), ptr::null(), text) });
    assert_eq!(no_space, Err(Rc::STALE_HANDLE), "{what}");
    assert!(show(c"stacks --folded", ptr::null()).expect("stacks").contains("main"), "{what}");
    for wrong in [c"", c"wait", c"threads --tree", c"tasks --svg", c"waits --dot --dot"] {
        assert_eq!(show(wrong, ptr::null()), Err(Rc::BAD_INPUT), "{what}: {wrong:?}");
    }
    let unnamed = [ThreadLabel { lwp: 1, label: ptr::null() }];
    let unnamed = TextOptions { labels: unnamed.as_ptr(), label_count: 1, ..plain };
    assert_eq!(show(c"threads", &raw const unnamed), Err(Rc::BAD_INPUT), "{what}");
    let missing = TextOptions { labels: ptr::null(), label_count: 1, ..plain };
    assert_eq!(show(c"threads", &raw const missing), Err(Rc::BAD_INPUT), "{what}");
}

/// What the companion recorded is there as text, and so is the reason where nothing was recorded.
#[test]
fn the_history_of_the_companion_is_a_view() {
    if let Err(skip) = Runtime::Libomp14.library() {
        return skip.show();
    }
    let companion = built_by_cargo("libompt_companion.so");
    let program = build("hangs/lock_cycle", Toolchain::Clang, Opt::O0, &[]).expect("it builds");
    let launch = || Launch::new(&program, Runtime::Libomp14, Env::Settled);
    let recorded = launch().variable("OMP_TOOL_LIBRARIES", &companion.to_string_lossy());
    for (launch, is_recorded) in [(launch(), false), (recorded, true)] {
        let running = launch.start_hanging().expect("it hangs");
        let session = Session::new(202_411, Held::live(running.pid, true));
        let show = |view: &CStr| {
            out(|text| unsafe { ompdx_report_text(session.space, view.as_ptr(), ptr::null(), text) }).map(take)
        };
        let by_thread = show(c"history").expect("a text");
        let by_time = show(c"history --by-time --last 2").expect("a text");
        if is_recorded {
            assert!(by_thread.contains("lock_cycle.c:") && by_thread.contains("wants lock"), "{by_thread}");
            assert!(by_time.contains("thread  event"), "{by_time}");
            assert!(by_time.lines().count() < by_thread.lines().count(), "{by_time}");
        } else {
            assert!(by_thread.starts_with("There is no history: no companion has recorded in "), "{by_thread}");
            assert!(by_thread.contains("\nFix: start the program by \"ompd-inspect run --record -- "), "{by_thread}");
        }
        for wrong in [c"history --last", c"history --last 0", c"history --last x", c"history 3"] {
            assert_eq!(show(wrong), Err(Rc::BAD_INPUT), "{wrong:?}");
        }
    }
}
