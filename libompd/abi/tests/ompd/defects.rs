//! What is known to be wrong in other OMPD libraries, and is not in this one.

use crate::debugger::{Held, Session, out};
use ompd::api::*;
use ompd::types::*;
use ompd_process::Addr;
use test_programs::{Env, Launch, Opt, Running, Runtime, Toolchain, build};

/// Each defect, and the test that shows that it is not here.
const DEFECTS: [(&str, &str); 15] = [
    ("one version of the interface alone is accepted", "versions_and_the_life_of_the_library"),
    ("a process without OpenMP is accepted", "a_process_without_openmp_is_incompatible"),
    ("sizes and settings of one process are taken for those of another", "two_processes_at_once_do_not_mix"),
    (
        "a member of a region is asked for the thread context it was not given",
        "a_member_by_number_is_a_thread_like_any_other",
    ),
    ("without OMP_DEBUG there are no states, frames and functions", "nothing_depends_on_omp_debug"),
    ("flags of frames are not written", "flags_of_frames_are_written"),
    (
        "tasks of serialized regions have no function, initial ones have 0",
        "functions_of_serialized_regions_are_told_and_no_others",
    ),
    ("handles are compared by the lower half of their difference", "the_order_of_handles_is_that_of_whole_addresses"),
    (
        "scopes that do not fit are bad input, and numbers have no text",
        "a_control_variable_is_of_one_scope_and_any_has_a_text",
    ),
    ("threads are found by pthread_t alone", "native_ids_of_both_kinds_and_of_wrong_size"),
    ("states are not enumerated, or unknown ones are", "enumerations_come_to_an_end_and_refuse_what_they_do_not_know"),
    (
        "devices are unavailable, and what a thread runs on is not told",
        "a_device_is_unsupported_and_a_thread_is_the_hosts",
    ),
    (
        "memory is got from operators that the debugger may have replaced",
        "it_exports_the_interface_and_needs_no_openmp_itself",
    ),
    ("a stripped runtime is not read", "no_symbol_of_the_runtime_is_needed"),
    ("handles that were given back are used", "handles_are_known_by_kind_and_only_while_they_live"),
];

#[test]
fn each_defect_has_a_test() {
    let sources = [
        include_str!("defects.rs"),
        include_str!("contract.rs"),
        include_str!("client.rs"),
        include_str!("../../src/library.rs"),
    ];
    for (defect, test) in DEFECTS {
        let found = sources.iter().any(|source| {
            source.contains(&format!("#[test]\nfn {test}()")) || source.contains(&format!("#[test]\n    fn {test}()"))
        });
        assert!(found, "{test}: {defect}");
    }
}

/// The program on libomp or libiomp5, and on libgomp, as far as they are here.
fn on_both_families(program: &str) -> Vec<Running> {
    let mut started = Vec::new();
    for (toolchain, runtimes) in
        [(Toolchain::Gcc, [Runtime::Libgomp].as_slice()), (Toolchain::Clang, &[Runtime::Libomp14, Runtime::Libiomp5])]
    {
        for &runtime in runtimes {
            match toolchain.check().and_then(|()| runtime.library().map(drop)) {
                Ok(()) => {
                    let program = build(program, toolchain, Opt::O0, &[]).expect("it builds");
                    started.push(Launch::new(&program, runtime, Env::Settled).start().expect("it starts"));
                }
                Err(reason) => reason.show(),
            }
        }
    }
    started
}

/// Handles of all threads that the program says are OpenMP's.
fn threads(session: &Session, running: &Running) -> Vec<*mut ThreadHandle> {
    let lwps = running.truth.threads.iter().filter(|thread| thread.api.is_some()).map(|thread| thread.lwp as u64);
    lwps.map(|lwp| session.thread(thread_id::LWP, lwp).expect("a thread")).collect()
}

/// A task, and all that it was generated in.
fn generating(task: *mut TaskHandle) -> Vec<*mut TaskHandle> {
    let mut chain = vec![task];
    while let Ok(outer) = out(|outer| unsafe { ompd_get_generating_task_handle(chain[chain.len() - 1], outer) }) {
        chain.push(outer);
    }
    chain
}

fn function(task: *mut TaskHandle) -> Result<Address, Rc> {
    out(|at| unsafe { ompd_get_task_function(task, at) })
}

#[test]
fn nothing_depends_on_omp_debug() {
    for running in on_both_families("nested") {
        let session = Session::new(201_811, Held::live(running.pid, true));
        let (mut functions, mut frames) = (0, 0);
        for thread in threads(&session, &running) {
            assert!(out(|state| unsafe { ompd_get_state(thread, state, std::ptr::null_mut()) }).is_ok());
            let task = out(|task| unsafe { ompd_get_curr_task_handle(thread, task) }).expect("a task");
            let function = function(task).map(drop);
            let mut enter = FrameInfo::default();
            let frame = out(|exit| unsafe { ompd_get_task_frame(task, exit, &raw mut enter) }).map(drop);
            for rc in [function, frame] {
                assert!(matches!(rc, Ok(()) | Err(Rc::UNAVAILABLE)), "{rc:?}");
            }
            functions += usize::from(function.is_ok());
            frames += usize::from(frame.is_ok());
        }
        // Five threads are in regions.
        assert!(functions >= 5 && frames >= 5, "{functions} functions, {frames} frames");
    }
}

#[test]
fn flags_of_frames_are_written() {
    let nobody = FrameInfo { frame_address: Address { segment: 0xdead, address: 0xdead }, frame_flag: 0xdead };
    for running in on_both_families("nested") {
        for generous in [false, true] {
            let session = Session::new(202_111, Held::live(running.pid, generous));
            let thread = session.thread(thread_id::LWP, running.truth.coordinator as u64).expect("a thread");
            let task = out(|task| unsafe { ompd_get_curr_task_handle(thread, task) }).expect("a task");
            let (mut exit, mut enter) = (nobody, nobody);
            let rc = unsafe { ompd_get_task_frame(task, &raw mut exit, &raw mut enter) };
            if generous {
                // The runtime's frame that called the task, by its canonical frame address; the task has called nobody,
                // or by its own.
                assert_eq!((rc, exit.frame_flag, exit.frame_address.segment), (Rc::OK, 0x10, 0));
                assert!(matches!((enter.frame_flag, enter.frame_address.address), (0, 0) | (0x11, 1..)), "{enter:x?}");
            } else {
                assert_eq!((rc, exit, enter), (Rc::UNAVAILABLE, nobody, nobody));
            }
        }
    }
}

#[test]
fn functions_of_serialized_regions_are_told_and_no_others() {
    // Before its first region libgomp has no task for a thread; the other runtimes have.
    let (started, mut initial) = (on_both_families("serialized"), 0);
    for running in &started {
        let session = Session::new(201_811, Held::live(running.pid, true));
        let mut told = 0;
        for thread in threads(&session, running) {
            let task = out(|task| unsafe { ompd_get_curr_task_handle(thread, task) }).expect("a task");
            let chain = generating(task);
            for task in &chain {
                let region = out(|region| unsafe { ompd_get_task_parallel_handle(*task, region) });
                let level = region.and_then(|region| session.icv(region, "levels-var"));
                match (level, function(*task)) {
                    (Ok(0), function) => {
                        assert_eq!(function, Err(Rc::UNAVAILABLE), "an initial task has none");
                        initial += 1;
                    }
                    (_, Ok(at)) => {
                        let modules = session.held.target.modules();
                        let symbol = modules.iter().find_map(|module| module.symbol_at(Addr(at.address)));
                        assert!(
                            symbol.is_some_and(|(symbol, _)| symbol.addr.0 == at.address),
                            "{at:x?} begins no function"
                        );
                        told += 1;
                    }
                    (_, rc) => assert_eq!(rc, Err(Rc::UNAVAILABLE)),
                }
            }
        }
        // Three regions around one thread, four around the other. GCC's code calls the runtime for all of them. Code of
        // clang calls it for those of several threads, and calls the bodies of the others itself. Their functions are
        // not found yet.
        let least =
            if session.held.target.modules().iter().any(|module| module.name().starts_with("libgomp")) { 7 } else { 2 };
        assert!(told >= least, "{told} of {least}");
    }
    assert!(initial >= started.len() - 1, "{initial}");
}

#[test]
fn a_device_is_unsupported_and_a_thread_is_the_hosts() {
    for running in on_both_families("nested") {
        let session = Session::new(202_411, Held::live(running.pid, false));
        let mut id = 0u64;
        // The host's own kind, CUDA's, and one of the range that is free.
        for kind in [1, 2, 1_000_000] {
            let context = (&raw const *session.held).cast_mut().cast();
            let id = (&raw mut id).cast();
            let device = out(|device| unsafe { ompd_device_initialize(session.space, context, kind, 8, id, device) });
            assert_eq!(device, Err(Rc::UNSUPPORTED));
        }
        for thread in threads(&session, &running) {
            assert_eq!(out(|device| unsafe { ompd_get_device_from_thread(thread, device) }), Ok(session.space));
        }
    }
}

#[test]
fn no_symbol_of_the_runtime_is_needed() {
    for running in on_both_families("nested") {
        let sizes = |hidden: &'static [&'static str]| -> Vec<Result<Word, Rc>> {
            let session = Session::new(201_811, Held { hidden, ..Held::live(running.pid, false) });
            let size = |thread| {
                let region = out(|region| unsafe { ompd_get_curr_parallel_handle(thread, region) })?;
                session.icv(region, "team-size-var")
            };
            threads(&session, &running).into_iter().map(size).collect()
        };
        let truth: Vec<Result<Word, Rc>> = running
            .truth
            .threads
            .iter()
            .filter_map(|thread| Some(Ok(Word::from(thread.api.as_ref()?.num_threads))))
            .collect();
        assert_eq!(sizes(&[]), truth);
        assert_eq!(sizes(&["ompd_", "__kmp", "kmp_", "gomp_", "GOMP_", "omp_", "__kmpc"]), truth);
    }
}
