//! What the environment asks for, and what the companion does when it is loaded and started.

use std::ffi::{CStr, c_int};
use std::os::unix::fs::symlink;
use std::sync::atomic::Ordering::Relaxed;

use ompt_record::block::RingState;

use crate::runtime::{Runtime, TODAY, alone, alone_as, block, make, registered, ring};
use crate::thread_begins;

/// Says to the process of a test what is expected of it.
const EXPECTED: &str = "COMPANION_TEST_EXPECTS";

fn expected() -> String {
    std::env::var(EXPECTED).expect("it is said")
}

#[test]
fn sizes_are_those_of_the_environment_or_their_defaults() {
    let by_default = "1024 threads, 4096 events, recording";
    let all = [
        (["", "1", ""], "1 threads, 4096 events, recording"),
        (["64", "2", ""], "2 threads, 64 events, recording"),
        ([" 65 ", "3", "Recording"], "3 threads, 128 events, recording"),
        (["1048576", "1", "paused"], "1 threads, 1048576 events, paused"),
        (["64", "65536", " PAUSED "], "65536 threads, 64 events, paused"),
        (["63", "0", "never"], by_default),
        (["1048577", "65537", ""], by_default),
        (["-1", "many", "pause"], by_default),
    ];
    for ([events, threads, start], expects) in all {
        let variables = [
            ("OMPT_COMPANION_EVENTS", events),
            ("OMPT_COMPANION_THREADS", threads),
            ("OMPT_COMPANION_START", start),
            (EXPECTED, expects),
        ];
        alone("started::sizes_are_those_of_the_environment_or_their_defaults", &variables, || {
            assert!(TODAY.start());
            let (_, block) = block();
            let state = if block.is_recording() { "recording" } else { "paused" };
            let found = format!("{} threads, {} events, {state}", block.shape.rings, block.shape.events);
            assert_eq!(found, expected());
        });
    }
}

/// Debuggers look for it there before any runtime begins.
#[test]
fn the_ompd_library_is_named_as_soon_as_the_companion_is_loaded() {
    let folder = tempfile::tempdir().expect("a folder");
    let own = std::env::current_exe().expect("this test");
    let inside = |name: &str| folder.path().join(name);
    let test = "started::the_ompd_library_is_named_as_soon_as_the_companion_is_loaded";
    symlink(own, inside("test")).expect("a link");
    let with = |expects: &str| {
        alone_as(&inside("test"), test, &[(EXPECTED, expects)], || {
            let names = || {
                let names = ompt_companion::ompd_dll_locations.load(Relaxed);
                // SAFETY: an array of strings that ends with a null pointer.
                let at = |n: usize| unsafe { names.add(n).read() };
                let names = (0..).map(at).take_while(|name| !name.is_null());
                // SAFETY: the same.
                let names = names.map(|name| unsafe { CStr::from_ptr(name) }.to_str().expect("a name"));
                names.collect::<Vec<_>>().join(":")
            };
            assert_eq!(names(), expected());
            let at = ompt_companion::ompd_dll_locations.load(Relaxed);
            assert!(TODAY.start());
            assert_eq!((ompt_companion::ompd_dll_locations.load(Relaxed), names()), (at, expected()));
        });
    };
    with("libompd.so");
    std::fs::write(inside("the library"), "").expect("written");
    symlink(inside("the library"), inside("libompd.so")).expect("a link");
    let file = inside("the library").canonicalize().expect("it is there");
    with(&format!("{}:libompd.so", file.display()));
    // A folder is no library.
    std::fs::remove_file(inside("libompd.so")).expect("removed");
    std::fs::create_dir(inside("libompd.so")).expect("a folder");
    with("libompd.so");
}

#[test]
fn what_a_runtime_offers_is_written_where_the_user_wants_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("told");
    let name = file.to_str().expect("a name");
    let variables = [("OMP_TOOL_VERBOSE_INIT", name)];
    let has_run = alone("started::what_a_runtime_offers_is_written_where_the_user_wants_it", &variables, || {
        assert!(Runtime { never: &[3, 33, 37], ..TODAY }.start());
    });
    if !has_run {
        return;
    }
    assert!(!file.exists(), "that file is the runtime's");
    let told = std::fs::read_to_string(folder.path().join("told.companion")).expect("it was written");
    let lines: Vec<&str> = told.lines().collect();
    let callbacks = lines.iter().position(|line| *line == "ompt_companion: callbacks:").expect("callbacks");
    assert_eq!(lines[0], "ompt_companion: entry points of the runtime:");
    let there: Vec<_> = lines[1..callbacks].iter().filter(|line| !line.ends_with(" (missing)")).collect();
    assert_eq!(there, [&"  ompt_set_callback", &"  ompt_finalize_tool"]);
    assert_eq!((callbacks, lines.len()), (20, 58));
    let of = |number: usize| lines[callbacks + number].split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(of(1), "1 thread_begin always");
    assert_eq!(of(3), "3 parallel_begin never (not permitted)");
    assert_eq!(of(8), "8 target always");
    assert_eq!(of(9), "9 target_data_op not asked for");
    assert_eq!(of(33), "33 target_emi never (not permitted)");
    assert_eq!(of(37), "37 error never");
}

#[test]
fn without_memory_or_entry_points_there_is_no_tool() {
    alone("started::without_memory_or_entry_points_there_is_no_tool", &[], || {
        assert!(!TODAY.start_without_entry_points());
        let limited = |most: u64| {
            let limit = libc::rlimit { rlim_cur: most, rlim_max: libc::RLIM_INFINITY };
            // SAFETY: it reads the limit.
            assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_AS, &raw const limit) }, 0);
        };
        let pages = std::fs::read_to_string("/proc/self/statm").expect("own size");
        let pages: u64 = pages.split(' ').next().and_then(|pages| pages.parse().ok()).expect("a number");
        limited(pages * 4096 + (64 << 20));
        let started = TODAY.start();
        limited(libc::RLIM_INFINITY);
        assert!(!started && registered().is_empty());
        assert!(TODAY.start());
    });
}

/// What the child of a fork finds in its copy of the block. It ends with the number of what is wrong.
fn child(before: u64, thread: u64) -> c_int {
    let header = block().1.header;
    let own = ring().values;
    let (memory, opened) = block();
    let others = opened.rings(&memory).0.into_iter().filter(|ring| ring.values.lwp != own.lwp);
    let pid = u64::from(std::process::id());
    let checks = [
        header.pid == pid && before != pid,
        header.forks == 1,
        (own.id, own.lwp, own.state) == (thread, pid, RingState::Used as u64),
        others.clone().count() == 1,
        others.clone().all(|ring| ring.values.state == RingState::Ended as u64 && ring.values.ended > 0),
    ];
    checks.iter().position(|holds| !holds).map_or(0, |n| n as c_int + 1)
}

fn fork(thread: u64, another_thread: fn()) {
    let before = block().1.header.pid;
    let (ready, go_on) = (std::sync::Barrier::new(2), std::sync::Barrier::new(2));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            another_thread();
            ready.wait();
            go_on.wait();
        });
        ready.wait();
        // SAFETY: the child only reads files and ends. The C library keeps memory allocation in order.
        let pid = unsafe { libc::fork() };
        if pid == 0 {
            // SAFETY: nothing of the test is to run in the child.
            unsafe { libc::_exit(child(before, thread)) };
        }
        let mut status = 0;
        // SAFETY: the child of this process, and a place for the answer.
        assert_eq!(unsafe { libc::waitpid(pid, &raw mut status, 0) }, pid);
        go_on.wait();
        assert!(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0, "{status:#x}");
    });
    // The parent's is as before.
    let header = block().1.header;
    assert_eq!((header.pid, header.forks), (before, 0));
}

#[test]
fn a_child_knows_that_its_block_is_a_copy_with_a_runtime_of_today() {
    alone("started::a_child_knows_that_its_block_is_a_copy_with_a_runtime_of_today", &[], || {
        assert!(TODAY.start());
        let thread = thread_begins(1).load(Relaxed);
        fork(thread, || {
            thread_begins(2);
        });
    });
}

#[test]
fn a_child_knows_that_its_block_is_a_copy_with_an_old_runtime() {
    alone("started::a_child_knows_that_its_block_is_a_copy_with_an_old_runtime", &[], || {
        assert!(TODAY.start_of_2014(1));
        make!(5, (c_int, u64), (1, 9));
        fork(ring().values.id, || make!(5, (c_int, u64), (2, 10)));
    });
}
