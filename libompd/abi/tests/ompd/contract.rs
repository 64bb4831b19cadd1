//! What the interface promises whatever the process does: return codes, handles, enumerations.

use std::ffi::CStr;
use std::ptr;

use crate::debugger::{Held, Session, callbacks, out, take, turn};
use ompd::api::*;
use ompd::extension::*;
use ompd::types::*;
use test_programs::{Env, Launch, Opt, Running, Runtime, Toolchain, build};

fn nested() -> Running {
    let program = build("nested", Toolchain::Gcc, Opt::O0, &[]).expect("it builds");
    Launch::new(&program, Runtime::Libgomp, Env::Settled).start().expect("it starts")
}

#[test]
fn versions_and_the_life_of_the_library() {
    let _turn = turn();
    let table = callbacks();
    unsafe {
        assert_eq!(out(|v| ompd_get_api_version(v)), Ok(202_411));
        let text = out(|text| ompd_get_version_string(text)).expect("a text");
        assert!(CStr::from_ptr(text).to_str().is_ok_and(|text| text.starts_with("libompd ")));
        assert_eq!(ompd_get_api_version(ptr::null_mut()), Rc::BAD_INPUT);
        assert_eq!(ompd_get_version_string(ptr::null_mut()), Rc::BAD_INPUT);
        assert_eq!(ompd_finalize(), Rc::UNSUPPORTED);
        let mut space = ptr::null_mut();
        assert_eq!(ompd_process_initialize(ptr::dangling_mut(), &raw mut space), Rc::ERROR);
        assert_eq!(ompd_initialize(201_811, ptr::null()), Rc::BAD_INPUT);
        assert_eq!(ompd_initialize(201_512, &raw const table), Rc::UNSUPPORTED);
        let poor = Callbacks { read_memory: None, ..table };
        assert_eq!(ompd_initialize(201_811, &raw const poor), Rc::BAD_INPUT);
        for version in [201_811, 202_011, 202_111, 202_411] {
            assert_eq!(ompd_initialize(version, &raw const table), Rc::OK);
            // Again: for what is opened from now on.  A table that is refused changes nothing.
            assert_eq!(ompd_initialize(version, &raw const poor), Rc::BAD_INPUT);
            assert_eq!(ompd_initialize(version, &raw const table), Rc::OK);
            assert_eq!(ompd_process_initialize(ptr::null_mut(), &raw mut space), Rc::BAD_INPUT);
            assert_eq!(ompd_finalize(), Rc::OK);
        }
    }
}

#[test]
fn a_process_without_openmp_is_incompatible() {
    let program = build("not_openmp", Toolchain::Gcc, Opt::O0, &[]).expect("it builds");
    let running = Launch::new(&program, Runtime::Libgomp, Env::Settled).start().expect("it starts");
    let _turn = turn();
    let table = callbacks();
    let mut held = Held::live(running.pid, false);
    unsafe {
        assert_eq!(ompd_initialize(201_811, &raw const table), Rc::OK);
        let mut space = ptr::dangling_mut();
        assert_eq!(ompd_process_initialize((&raw mut held).cast(), &raw mut space), Rc::INCOMPATIBLE);
        assert_eq!(space, ptr::dangling_mut(), "results are written on success only");
        assert_eq!(ompd_finalize(), Rc::OK);
    }
}

#[test]
fn handles_are_known_by_kind_and_only_while_they_live() {
    let running = nested();
    for (version, other_kind) in [(201_811, Rc::STALE_HANDLE), (202_411, Rc::INCOMPATIBLE_HANDLE)] {
        let session = Session::new(version, Held::live(running.pid, false));
        let lwp = running.truth.coordinator as u64;
        let thread = session.thread(thread_id::LWP, lwp).expect("a thread");
        unsafe {
            let region = out(|region| ompd_get_curr_parallel_handle(thread, region)).expect("a region");
            let task = out(|task| ompd_get_curr_task_handle(thread, task)).expect("a task");
            assert_eq!(ompd_rel_task_handle(region.cast()), other_kind);
            assert_eq!(out(|task| ompd_get_curr_task_handle(task_as(task, region), task)), Err(other_kind));
            assert_eq!(out(|cmp| ompd_thread_handle_compare(thread, task.cast(), cmp)), Err(other_kind));
            for foreign in [ptr::null_mut(), ptr::dangling_mut(), ptr::without_provenance_mut(1 << 40)] {
                assert_eq!(out(|region| ompd_get_curr_parallel_handle(foreign, region)), Err(Rc::STALE_HANDLE));
                assert_eq!(ompd_rel_thread_handle(foreign), Rc::STALE_HANDLE);
            }
            assert_eq!(ompd_get_curr_parallel_handle(thread, ptr::null_mut()), Rc::BAD_INPUT);
            // A total order: the same thing is equal by any handle, others are one way round.
            let threads: Vec<*mut ThreadHandle> = (0..2)
                .map(|n| out(|thread| ompd_get_thread_in_parallel(region, n, thread)).expect("a member"))
                .collect();
            let order = |a: usize, b: usize| out(|cmp| ompd_thread_handle_compare(threads[a], threads[b], cmp));
            assert_eq!((order(0, 0), order(1, 1)), (Ok(0), Ok(0)));
            assert_eq!(order(0, 1).map(|o| -o), order(1, 0));
            assert!(matches!(order(0, 1), Ok(1 | -1)));
            assert_eq!(out(|thread| ompd_get_thread_in_parallel(region, -1, thread)), Err(Rc::BAD_INPUT));
            // With the address space goes what is in it.
            let mut again = ptr::null_mut();
            let context: *const Held = &raw const *session.held;
            assert_eq!(ompd_process_initialize(context.cast_mut().cast(), &raw mut again), Rc::OK);
            assert_ne!(again, session.space);
            assert_eq!(ompd_rel_address_space_handle(again), Rc::OK);
            assert_eq!(ompd_rel_address_space_handle(again), Rc::STALE_HANDLE);
            released(again);
            assert_eq!(out(|task| ompd_get_curr_task_handle(thread, task)).map(|_| ()), Ok(()));
        }
    }
}

/// Every function that takes an address space refuses one that was given back, and writes nothing.
fn released(space: *mut AddressSpaceHandle) {
    unsafe fn stale<T: Copy>(call: impl FnOnce(*mut T) -> Rc) {
        assert_eq!(out(call).err(), Some(Rc::STALE_HANDLE));
    }
    let (mut word, mut more, mut name, mut number, mut id, mut sizes) = (7, 7, ptr::null(), 7, 7, ptr::null_mut());
    let summary = c"summary".as_ptr();
    unsafe {
        let any = (&raw mut id).cast();
        stale(|device| ompd_device_initialize(space, ptr::dangling_mut(), 1, 8, any, device));
        stale(|kinds| ompd_get_device_thread_id_kinds(space, kinds, &raw mut sizes, &raw mut number));
        stale(|version| ompd_get_omp_version(space, version));
        stale(|text| ompd_get_omp_version_string(space, text));
        stale(|thread| ompd_get_thread_handle(space, thread_id::LWP, 8, any, thread));
        stale(|text| ompd_enumerate_states(space, 0x102, &raw mut word, text, &raw mut more));
        stale(|scope| ompd_enumerate_icvs(space, 0, &raw mut id, &raw mut name, scope, &raw mut number));
        stale(|list| ompd_get_display_control_vars(space, list));
        stale(|points| ompdx_stop_points(space, points, &raw mut id));
        stale(|json| ompdx_report_json(space, json));
        stale(|text| ompdx_report_text(space, summary, ptr::null(), text));
        assert_eq!(ompdx_drop_cache(space), Rc::STALE_HANDLE);
    }
    assert_eq!((word, more, name, number, id, sizes), (7, 7, ptr::null(), 7, 7, ptr::null_mut()));
}

/// A handle of another kind, as a thread's.
fn task_as<T>(_: *mut *mut TaskHandle, other: *mut T) -> *mut ThreadHandle {
    other.cast()
}

#[test]
fn native_ids_of_both_kinds_and_of_wrong_size() {
    let running = nested();
    let session = Session::new(202_111, Held::live(running.pid, false));
    unsafe {
        let (mut kinds, mut sizes, mut count) = (ptr::null_mut(), ptr::null_mut(), 0);
        let rc = ompd_get_device_thread_id_kinds(session.space, &raw mut kinds, &raw mut sizes, &raw mut count);
        assert_eq!((rc, count), (Rc::OK, 2));
        let listed: Vec<(u64, u64)> = (0..2).map(|n| (*kinds.add(n), *sizes.add(n))).collect();
        assert_eq!(listed, [(thread_id::PTHREAD, 8), (thread_id::LWP, 8)]);
        let free = callbacks().free_memory.expect("a callback");
        free(kinds.cast());
        free(sizes.cast());
        let lwp = running.truth.coordinator;
        let ask = |kind, size, id: *const u64| out(|t| ompd_get_thread_handle(session.space, kind, size, id.cast(), t));
        let id = lwp as u64;
        assert!(ask(thread_id::LWP, 8, &raw const id).is_ok());
        assert!(ask(thread_id::LWP, 4, &raw const id).is_ok());
        assert_eq!(ask(thread_id::LWP, 2, &raw const id), Err(Rc::BAD_INPUT));
        assert_eq!(ask(thread_id::PTHREAD, 4, &raw const id), Err(Rc::BAD_INPUT));
        assert_eq!(ask(2, 8, &raw const id), Err(Rc::UNSUPPORTED));
        assert_eq!(ask(thread_id::LWP, 8, ptr::null()), Err(Rc::BAD_INPUT));
        let nobody = 0x7fff_fff0u64;
        assert_eq!(ask(thread_id::LWP, 8, &raw const nobody), Err(Rc::UNAVAILABLE));
    }
}

#[test]
fn enumerations_come_to_an_end_and_refuse_what_they_do_not_know() {
    let running = nested();
    for (version, states) in [(201_811, 17), (202_011, 19), (202_411, 18)] {
        let session = Session::new(version, Held::live(running.pid, false));
        let (mut at, mut more, mut seen) = (0x102, 1, Vec::new());
        while more == 1 {
            let (mut next, mut name) = (0, ptr::null());
            let rc = unsafe { ompd_enumerate_states(session.space, at, &raw mut next, &raw mut name, &raw mut more) };
            assert_eq!(rc, Rc::OK);
            seen.push((next, take(name)));
            at = next;
        }
        assert_eq!(seen.len(), states, "{seen:?}");
        let (mut next, mut name) = (7, ptr::null());
        for unknown in [0x999, -1] {
            let rc =
                unsafe { ompd_enumerate_states(session.space, unknown, &raw mut next, &raw mut name, &raw mut more) };
            assert_eq!((rc, next), (Rc::BAD_INPUT, 7));
        }
        let (mut id, mut scope, mut more) = (7, 0, 0);
        let rc = unsafe {
            ompd_enumerate_icvs(session.space, 9999, &raw mut id, &raw mut name, &raw mut scope, &raw mut more)
        };
        assert_eq!((rc, id), (Rc::BAD_INPUT, 7));
        places_that_are_missing(session.space);
        assert!(session.icvs.contains_key("nthreads-var") && session.icvs.contains_key("ompd-team-size-var"));
    }
}

/// A function needs all of its places for results, but for the wait id of a state.
#[test]
fn a_place_that_is_missing_is_bad_input() {
    fn unless<T>(missing: bool, place: &mut T) -> *mut T {
        if missing { ptr::null_mut() } else { place }
    }
    let running = nested();
    let session = Session::new(202_111, Held::live(running.pid, true));
    let space = session.space;
    let thread = session.thread(thread_id::LWP, running.truth.coordinator as u64).expect("a thread");
    let task = out(|task| unsafe { ompd_get_curr_task_handle(thread, task) }).expect("a task");
    unsafe {
        for missing in 0..2 {
            let (mut id, mut device) = (0u64, ptr::null_mut());
            let id = unless(missing == 0, &mut id).cast();
            let place = unless(missing == 1, &mut device);
            assert_eq!(ompd_device_initialize(space, ptr::dangling_mut(), 1, 8, id, place), Rc::BAD_INPUT);
            let (mut exit, mut enter) = (FrameInfo::default(), FrameInfo::default());
            let (exit, enter) = (unless(missing == 0, &mut exit), unless(missing == 1, &mut enter));
            assert_eq!(ompd_get_task_frame(task, exit, enter), Rc::BAD_INPUT);
            let (mut value, mut address) = (0, Address::default());
            let (value, address) = (unless(missing == 0, &mut value), unless(missing == 1, &mut address));
            assert_eq!(ompd_get_tool_data(thread.cast(), scope::THREAD, value, address), Rc::BAD_INPUT);
            let view = if missing == 0 { ptr::null() } else { c"threads".as_ptr() };
            let mut text = ptr::null();
            let text = unless(missing == 1, &mut text);
            assert_eq!(ompdx_report_text(space, view, ptr::null(), text), Rc::BAD_INPUT);
        }
        for missing in 0..3 {
            let (mut kinds, mut sizes, mut count) = (ptr::null_mut(), ptr::null_mut(), 7);
            let rc = ompd_get_device_thread_id_kinds(
                space,
                unless(missing == 0, &mut kinds),
                unless(missing == 1, &mut sizes),
                unless(missing == 2, &mut count),
            );
            assert_eq!((rc, kinds, sizes, count), (Rc::BAD_INPUT, ptr::null_mut(), ptr::null_mut(), 7));
        }
        let (mut state, mut wait) = (0, 7);
        assert_eq!(ompd_get_state(thread, &raw mut state, ptr::null_mut()), Rc::OK);
        assert_eq!(ompd_get_state(thread, &raw mut state, &raw mut wait), Rc::OK);
        assert_ne!(wait, 7);
    }
}

/// Memory of the debugger that it does not give.
unsafe extern "C" fn no_memory(_bytes: Size, _place: *mut *mut std::ffi::c_void) -> Rc {
    Rc::ERROR
}

/// OpenMP 5.0 has no code for a callback that fails.
#[test]
fn a_callback_that_fails_has_a_code_since_openmp_5_1() {
    let running = nested();
    for (version, failed) in [(201_811, Rc::ERROR), (202_011, Rc::CALLBACK_ERROR), (202_411, Rc::CALLBACK_ERROR)] {
        let session = Session::new(version, Held::live(running.pid, false));
        let (table, poor) = (callbacks(), Callbacks { alloc_memory: Some(no_memory), ..callbacks() });
        let ask = || {
            let (mut next, mut name, mut more) = (7, ptr::null(), 7);
            let rc =
                unsafe { ompd_enumerate_states(session.space, 0x102, &raw mut next, &raw mut name, &raw mut more) };
            (rc, (!name.is_null()).then(|| take(name)))
        };
        let initialize = |table: &Callbacks| unsafe { ompd_initialize(version, table) };
        assert_eq!(initialize(&poor), Rc::OK);
        assert_eq!(ask(), (failed, None), "{version}");
        assert_eq!(initialize(&table), Rc::OK);
        assert!(matches!(ask(), (Rc::OK, Some(_))));
    }
}

/// Where one of the places for results is missing, the others stay as they are, and no text is made.
fn places_that_are_missing(space: *mut AddressSpaceHandle) {
    fn unless<T>(missing: bool, place: &mut T) -> *mut T {
        if missing { ptr::null_mut() } else { place }
    }
    for missing in 0..3 {
        let (mut next, mut name, mut more) = (7, ptr::null(), 7);
        let rc = unsafe {
            let (next, name) = (unless(missing == 0, &mut next), unless(missing == 1, &mut name));
            ompd_enumerate_states(space, 0x102, next, name, unless(missing == 2, &mut more))
        };
        assert_eq!((rc, next, name, more), (Rc::BAD_INPUT, 7, ptr::null(), 7), "{missing}");
    }
    for missing in 0..4 {
        let (mut id, mut name, mut scope, mut more) = (7, ptr::null(), 7, 7);
        let rc = unsafe {
            let (id, name) = (unless(missing == 0, &mut id), unless(missing == 1, &mut name));
            let (scope, more) = (unless(missing == 2, &mut scope), unless(missing == 3, &mut more));
            ompd_enumerate_icvs(space, 0, id, name, scope, more)
        };
        assert_eq!((rc, id, name, scope, more), (Rc::BAD_INPUT, 7, ptr::null(), 7, 7), "{missing}");
    }
}

#[test]
fn a_control_variable_is_of_one_scope_and_any_has_a_text() {
    let running = nested();
    let session = Session::new(202_111, Held::live(running.pid, false));
    let thread = session.thread(thread_id::LWP, running.truth.coordinator as u64).expect("a thread");
    let task = out(|task| unsafe { ompd_get_curr_task_handle(thread, task) }).expect("a task");
    let region = out(|region| unsafe { ompd_get_curr_parallel_handle(thread, region) }).expect("a region");
    let (id, scope) = session.icvs["team-size-var"];
    assert_eq!(scope, scope::PARALLEL);
    let ask = |handle: *mut std::ffi::c_void, scope, id| {
        out(|value: *mut Word| unsafe { ompd_get_icv_from_scope(handle, scope, id, value) })
    };
    assert_eq!(ask(region.cast(), scope::PARALLEL, id), Ok(2));
    assert_eq!(ask(region.cast(), scope::TASK, id), Err(Rc::INCOMPATIBLE));
    assert_eq!(ask(task.cast(), scope::PARALLEL, id), Err(Rc::INCOMPATIBLE));
    assert_eq!(ask(region.cast(), scope::PARALLEL, 9999), Err(Rc::BAD_INPUT));
    assert_eq!(ask(ptr::null_mut(), scope::PARALLEL, id), Err(Rc::STALE_HANDLE));
    assert_eq!(session.icv_text(region, "team-size-var"), Ok("2".to_owned()));
    assert_eq!(session.icv(task, "run-sched-var"), Err(Rc::INCOMPATIBLE));
    assert!(session.icvs.contains_key("explicit-task-var"));
    assert_eq!(session.icv(task, "explicit-task-var"), Ok(0));
    let unknown = out(|text| unsafe { ompd_get_icv_string_from_scope(task.cast(), scope::TASK, 9999, text) });
    assert_eq!(unknown, Err(Rc::BAD_INPUT));
}

#[test]
fn nothing_is_read_twice_within_a_call_or_while_the_process_has_not_run() {
    let running = nested();
    for generous in [false, true] {
        let session = Session::new(202_111, Held::live(running.pid, generous));
        let thread = session.thread(thread_id::LWP, running.truth.coordinator as u64).expect("a thread");
        session.held.reads.borrow_mut().clear();
        let ask = || out(|task| unsafe { ompd_get_curr_task_handle(thread, task) }).map(drop);
        assert_eq!(ask(), Ok(()));
        let reads = session.held.reads.borrow().clone();
        if generous {
            assert!(reads.is_empty(), "the debugger said that nothing has run: {reads:x?}");
            session.held.stops.set(2);
            assert_eq!(ask(), Ok(()));
            assert!(!session.held.reads.borrow().is_empty(), "it has run");
        }
        let twice: Vec<_> = session.held.reads.borrow().iter().filter(|(_, n)| **n > 1).map(|(r, _)| *r).collect();
        assert!(twice.is_empty(), "{generous}: read more than once: {twice:x?} of {:x?}", session.held.reads.borrow());
    }
}

/// Sizes, layouts and states are those of each process, whatever else is looked at.
#[test]
fn two_processes_at_once_do_not_mix() {
    let one = nested();
    let (toolchain, runtime) = match Toolchain::Clang.check().and_then(|()| Runtime::Libomp14.library()) {
        Ok(_) => (Toolchain::Clang, Runtime::Libomp14),
        Err(reason) => {
            reason.show();
            (Toolchain::Gcc, Runtime::Libgomp)
        }
    };
    let program = build("barrier_missing", toolchain, Opt::O0, &[]).expect("it builds");
    let other = Launch::new(&program, runtime, Env::Settled).start().expect("it starts");
    let session = Session::new(201_811, Held::live(one.pid, false));
    let mut held = Box::new(Held::live(other.pid, false));
    let context: *mut Held = &raw mut *held;
    let second = out(|space| unsafe { ompd_process_initialize(context.cast(), space) }).expect("a second process");
    let ask = |space, running: &Running| {
        let lwp = running.truth.coordinator as u64;
        let size = |thread| {
            let region = out(|region| unsafe { ompd_get_curr_parallel_handle(thread, region) })?;
            session.icv(region, "team-size-var")
        };
        out(|thread| unsafe { ompd_get_thread_handle(space, thread_id::LWP, 8, (&raw const lwp).cast(), thread) })
            .and_then(size)
    };
    let truth = |running: &Running| {
        let thread = running.truth.thread(running.truth.coordinator).and_then(|thread| thread.api.as_ref());
        Word::from(thread.expect("the API's answers").num_threads)
    };
    assert_ne!(truth(&one), truth(&other), "the comparison needs teams of different sizes");
    for _ in 0..2 {
        assert_eq!(ask(session.space, &one), Ok(truth(&one)));
        assert_eq!(ask(second, &other), Ok(truth(&other)));
    }
    assert_eq!(ask(second, &one), Err(Rc::UNAVAILABLE), "a thread of the other process");
    unsafe { assert_eq!(ompd_rel_address_space_handle(second), Rc::OK) };
    assert_eq!(ask(session.space, &one), Ok(truth(&one)));
}

/// An address space as its number, which threads may pass to each other.
#[derive(Clone, Copy)]
struct Sent(*mut AddressSpaceHandle);

// SAFETY: the library takes its handles from any thread.
unsafe impl Send for Sent {}

impl Sent {
    /// The state of a thread, and whether it has a region, as often as it is asked.
    fn ask(self, lwp: i32) -> (Result<Word, Rc>, bool) {
        let (id, mut wait) = (lwp as u64, 0);
        unsafe {
            let thread =
                out(|thread| ompd_get_thread_handle(self.0, thread_id::LWP, 8, (&raw const id).cast(), thread));
            let Ok(thread) = thread else { return (Err(Rc::ERROR), false) };
            let state = out(|state| ompd_get_state(thread, state, &raw mut wait));
            let region = out(|region| ompd_get_curr_parallel_handle(thread, region));
            if let Ok(region) = region {
                assert_eq!(ompd_rel_parallel_handle(region), Rc::OK);
            }
            assert_eq!(ompd_rel_thread_handle(thread), Rc::OK);
            (state, region.is_ok())
        }
    }
}

#[test]
fn threads_of_a_debugger_ask_at_once() {
    const ROUNDS: usize = 20;
    let (one, other) = (nested(), nested());
    let session = Session::new(201_811, Held::live(one.pid, false));
    let mut held = Box::new(Held::live(other.pid, false));
    let context: *mut Held = &raw mut *held;
    let second = out(|space| unsafe { ompd_process_initialize(context.cast(), space) }).expect("a second process");
    let spaces = [(Sent(session.space), &one.truth), (Sent(second), &other.truth)];
    let alone = spaces.map(|(space, truth)| truth.threads.iter().map(|t| space.ask(t.lwp)).collect::<Vec<_>>());
    // Each is in a callback when the other is.
    let (here, there) = (std::sync::mpsc::channel(), std::sync::mpsc::channel());
    let meet = |say: std::sync::mpsc::Sender<()>, hear: std::sync::mpsc::Receiver<()>| {
        Box::new(move || {
            say.send(()).expect("the other thread");
            hear.recv_timeout(std::time::Duration::from_secs(60)).expect("the other thread is in a callback too");
        })
    };
    session.held.at_read.replace(Some(meet(here.0, there.1)));
    held.at_read.replace(Some(meet(there.0, here.1)));
    std::thread::scope(|scope| {
        // Two threads for each process: these take turns.
        for ((space, truth), alone) in spaces.iter().zip(&alone).flat_map(|of| [of, of]) {
            let (space, lwps) = (*space, truth.threads.iter().map(|t| t.lwp).collect::<Vec<_>>());
            scope.spawn(move || {
                for _ in 0..ROUNDS {
                    assert_eq!(lwps.iter().map(|lwp| space.ask(*lwp)).collect::<Vec<_>>(), *alone);
                }
            });
        }
    });
    unsafe { assert_eq!(ompd_rel_address_space_handle(second), Rc::OK) };
}

/// What a callback asks for would have to wait for the callback.
#[test]
fn a_callback_that_calls_the_library_gets_an_error() {
    let running = nested();
    let session = Session::new(201_811, Held::live(running.pid, false));
    let space = session.space;
    let answer = std::rc::Rc::new(std::cell::Cell::new(Rc::OK));
    let told = std::rc::Rc::clone(&answer);
    session.held.at_read.replace(Some(Box::new(move || {
        told.set(out(|version| unsafe { ompd_get_omp_version(space, version) }).expect_err("no answer"));
    })));
    assert!(session.thread(thread_id::LWP, running.pid as u64).is_ok());
    assert_eq!(answer.get(), Rc::ERROR);
}

#[test]
fn a_member_by_number_is_a_thread_like_any_other() {
    let running = nested();
    let session = Session::new(202_111, Held::live(running.pid, false));
    let thread = session.thread(thread_id::LWP, running.truth.coordinator as u64).expect("a thread");
    let region = out(|region| unsafe { ompd_get_curr_parallel_handle(thread, region) }).expect("a region");
    for number in 0..2 {
        let member = out(|member| unsafe { ompd_get_thread_in_parallel(region, number, member) }).expect("a member");
        let own = out(|region| unsafe { ompd_get_curr_parallel_handle(member, region) }).expect("its region");
        assert_eq!(out(|cmp| unsafe { ompd_parallel_handle_compare(region, own, cmp) }), Ok(0));
        let task = out(|task| unsafe { ompd_get_curr_task_handle(member, task) });
        assert!(task.is_ok());
        let id =
            out(|id: *mut u64| unsafe { ompd_get_thread_id(member, thread_id::LWP, 8, id.cast()) }).expect("its id");
        assert!(running.truth.thread(id as i32).is_some());
    }
}
