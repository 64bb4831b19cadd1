//! The frames that are read of a running process, against what Python says of itself, and when reads fail or lie.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Instant;

use ompd_process::{Addr, Live, OpenOptions, Target};
use ompd_python::{Interpreter, PythonThread, Snapshot, Unknown};
use test_programs::python::{Script, interpreters};
use test_programs::{ChangedTarget, Random};

const MINORS: std::ops::RangeInclusive<u8> = 8..=14;

/// A function's name, file and line.
type Frame = (String, String, u32);

/// One interpreter of each version that is here.
fn one_of_each() -> Vec<PathBuf> {
    let first = |minor| match interpreters(minor) {
        Ok(found) => found.into_iter().next(),
        Err(skip) => {
            skip.show();
            None
        }
    };
    MINORS.filter_map(first).collect()
}

/// What Python says, by what `pthread_self` returns in a thread; the innermost first.
fn truth(script: &Script, live: &Live) -> BTreeMap<u64, Vec<Frame>> {
    let told = script.truth["threads"].as_object().expect("threads");
    let of = |(lwp, frames): (&String, &serde_json::Value)| {
        let thread = live.threads().iter().find(|thread| thread.lwp.to_string() == **lwp).expect("the thread");
        let pthread = thread.thread_pointer().expect("a pointer").back(live.pthread_distance().expect("a distance"));
        let frames = frames.as_array().expect("frames").iter().map(|frame| {
            let text = |index: usize| frame[index].as_str().expect("a text").to_owned();
            (text(0), text(1), frame[2].as_u64().and_then(|line| u32::try_from(line).ok()).expect("a line"))
        });
        (pthread.0, frames.collect())
    };
    told.iter().map(of).collect()
}

fn frames(thread: &PythonThread) -> Vec<Frame> {
    let all = thread.calls.iter().flat_map(|call| &call.frames);
    all.map(|frame| (frame.code.name.to_string(), frame.code.file.to_string(), frame.line.unwrap_or(0))).collect()
}

fn look(target: &dyn Target) -> Snapshot {
    Snapshot::read(target, &Interpreter::all(target))
}

/// A process that is stopped, and what is true of it.
fn stopped(interpreter: &Path) -> (Script, Live, BTreeMap<u64, Vec<Frame>>) {
    let script = Script::start(interpreter, "frames.py", Path::new("/"));
    let mut live = Live::open(script.pid, &OpenOptions::default()).expect("the process can be opened");
    live.stop().expect("it stops");
    let truth = truth(&script, &live);
    (script, live, truth)
}

#[test]
fn all_frames_of_all_threads_are_read() {
    for interpreter in one_of_each() {
        let (script, mut live, truth) = stopped(&interpreter);
        let interpreters = Interpreter::all(&live);
        let began = Instant::now();
        let snapshot = Snapshot::read(&live, &interpreters);
        let took = began.elapsed();
        live.resume();
        let [runtime] = snapshot.runtimes.as_slice() else { panic!("{snapshot:?}") };
        assert_eq!(runtime.problem, None);
        let version = runtime.version.expect("a version");
        assert_eq!(script.truth["version"][1], version.minor, "{}", interpreter.display());
        if let Some(micro) = version.micro {
            assert_eq!(script.truth["version"][2], micro, "{}", interpreter.display());
        }
        let read: BTreeMap<u64, Vec<Frame>> =
            runtime.threads.iter().map(|thread| (thread.pthread.0, frames(thread))).collect();
        assert_eq!(read, truth, "{}", interpreter.display());
        assert!(runtime.threads.iter().all(|thread| thread.problem.is_none()), "{snapshot:?}");
        let anchored = runtime.threads.iter().flat_map(|thread| &thread.calls).all(|call| call.anchor.is_some());
        assert_eq!(anchored, version.minor >= 10, "{}", interpreter.display());
        let count: usize = read.values().map(Vec::len).sum();
        let _ = writeln!(std::io::stderr(), "CPython {version}: {} threads, {count} frames in {took:?}", read.len());
        script.finish();
    }
}

#[test]
fn a_read_that_fails_costs_frames_further_out_and_no_others() {
    for interpreter in one_of_each() {
        let (script, live, truth) = stopped(&interpreter);
        let counting = ChangedTarget::new(&live as &dyn Target);
        look(&counting);
        let reads = counting.reads();
        assert!(reads > 100, "{reads} reads");
        // Each of the first, which find the threads, then some of the many alike.
        for n in (0..60).chain((60..reads).step_by(17)) {
            let snapshot = look(&ChangedTarget::new(&live as &dyn Target).with_failing_read(n));
            for thread in snapshot.runtimes.iter().flat_map(|runtime| &runtime.threads) {
                let known = truth.get(&thread.pthread.0).expect("a thread that there is");
                let read = frames(thread);
                assert!(read.len() == known.len() || thread.problem.is_some(), "read {n}: {thread:?}");
                for (read, known) in read.iter().zip(known) {
                    // A table of lines that cannot be read costs the line, and a qualified name is not the only one.
                    let name = known.0.rsplit('.').next();
                    assert_eq!((read.0.rsplit('.').next(), &read.1), (name, &known.1), "read {n}");
                    assert!(read.2 == known.2 || read.2 == 0, "read {n}: {read:?}, {known:?}");
                }
            }
        }
        drop(live);
        script.finish();
    }
}

#[test]
fn memory_that_changes_between_reads_ends_the_walk() {
    for interpreter in one_of_each() {
        let (script, live, _) = stopped(&interpreter);
        for seed in 0..40 {
            let changed = ChangedTarget::new(&live as &dyn Target).with_change(move |addr, buf| {
                let mut random = Random::new(seed ^ addr.0);
                if random.below(8) == 0 && !buf.is_empty() {
                    let place = random.below(buf.len());
                    buf[place] = random.below(256) as u8;
                }
            });
            let snapshot = look(&changed);
            let calls = snapshot.runtimes.iter().flat_map(|runtime| &runtime.threads).flat_map(|thread| &thread.calls);
            assert!(calls.map(|call| call.frames.len()).sum::<usize>() < 8192);
        }
        drop(live);
        script.finish();
    }
}

#[test]
fn a_list_that_leads_in_a_circle_is_left() {
    for interpreter in one_of_each() {
        let (script, live, _) = stopped(&interpreter);
        let snapshot = look(&live);
        // The thread with the deepest recursion: its frames are the first that are in the way.
        let threads = snapshot.runtimes.iter().flat_map(|runtime| &runtime.threads);
        let deepest = threads.max_by_key(|thread| frames(thread).len()).expect("a thread");
        let innermost = deepest.calls.iter().find_map(|call| call.frames.first()).expect("a frame").at;
        let further = |count| deepest.calls.iter().flat_map(|call| &call.frames).nth(count).expect("a frame").at;
        let (outer, next) = (further(5), further(6));
        // What points from the one to the next points to the first.
        let circle = ChangedTarget::new(&live as &dyn Target).with_change(move |addr, buf| {
            if addr == outer {
                for word in buf.chunks_exact_mut(8).filter(|word| **word == next.0.to_ne_bytes()) {
                    word.copy_from_slice(&innermost.0.to_ne_bytes());
                }
            }
        });
        let snapshot = look(&circle);
        let thread = snapshot.runtimes.iter().flat_map(|runtime| &runtime.threads);
        let thread = thread.into_iter().find(|thread| thread.pthread == deepest.pthread).expect("the thread");
        assert!(matches!(thread.problem, Some(Unknown::Not { .. })), "{}: {thread:?}", interpreter.display());
        assert!(frames(thread).len() <= 7, "{thread:?}");
        drop(live);
        script.finish();
    }
}

#[test]
fn a_process_that_may_be_held_no_longer_gives_what_was_read() {
    let Some(interpreter) = one_of_each().into_iter().next() else { return };
    let (script, live, truth) = stopped(&interpreter);
    let snapshot = look(&ChangedTarget::new(&live as &dyn Target).with_limit(15));
    let threads: Vec<&PythonThread> = snapshot.runtimes.iter().flat_map(|runtime| &runtime.threads).collect();
    assert!(threads.iter().any(|thread| thread.problem == Some(Unknown::Late)), "{snapshot:?}");
    for thread in threads {
        let read = frames(thread);
        assert_eq!(read[..], truth[&thread.pthread.0][..read.len()]);
    }
    drop(live);
    script.finish();
}

#[test]
fn a_process_without_python_has_none() {
    let live = Live::open(std::process::id() as i32, &OpenOptions::default());
    let Ok(live) = live else { panic!("{live:?}") };
    assert_eq!(look(&live), Snapshot::default());
    assert_eq!(live.mapping(Addr::NULL), None);
}
