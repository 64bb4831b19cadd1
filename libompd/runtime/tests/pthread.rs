//! Threads are told apart by `pthread_t`, which is not the thread pointer on every machine.

use ompd_process::{Addr, Live, OpenOptions, Target};
use ompd_runtime::discover;
use ompd_runtime::excerpt::{About, Focus, Known, Tasks, Wanted};
use test_programs::{ChangedTarget, Env, Launch, Opt, Runtime, Toolchain, build};

/// The thread pointer lies so far above the C library's descriptor.
const DISTANCE: u64 = 1776;

/// A process as on a machine where thread pointers lie above the descriptors; by how much may be unknown.
fn above(live: &Live, known: bool) -> ChangedTarget<&Live> {
    let mut threads = live.threads().to_vec();
    for thread in &mut threads {
        let pointer = thread.thread_pointer().map(|pointer| pointer.offset(DISTANCE));
        (thread.registers, thread.pointer) = (Err("of another machine".to_owned()), pointer);
    }
    ChangedTarget::new(live).with_threads(threads).with_pthread_distance(known.then_some(DISTANCE))
}

#[test]
fn threads_of_libomp_are_found_where_the_thread_pointer_is_another() {
    for runtime in [Runtime::Libomp14, Runtime::Libiomp5] {
        if let Err(skip) = Toolchain::Clang.check().and_then(|()| runtime.library().map(drop)) {
            skip.show();
            continue;
        }
        let program = build("nested", Toolchain::Clang, Opt::O0, &[]).expect("it builds");
        let running = Launch::new(&program, runtime, Env::Settled).start().expect("it starts");
        let mut live = Live::open(running.pid, &OpenOptions::default()).expect("it can be opened");
        let runtimes = discover(&live, &[]);
        live.stop().expect("it can be stopped");
        let numbers = |target: &dyn Target| -> Vec<(Addr, Option<i32>, Option<u32>)> {
            let snapshot = runtimes[0].snapshot(target);
            snapshot.threads.iter().map(|t| (t.descriptor, t.lwp, t.thread_num.get())).collect()
        };
        let (here, moved) = (numbers(&live), above(&live, true));
        assert_eq!(numbers(&moved), here, "{runtime:?}");
        assert!(here.iter().filter(|(_, lwp, _)| lwp.is_some()).count() >= 6, "{here:?}");
        // A look at a single thread finds it by what the runtime has noted, too.
        for thread in live.threads() {
            let pthread = thread.thread_pointer().expect("its thread pointer");
            let found = here.iter().find(|(_, lwp, _)| *lwp == Some(thread.lwp)).expect("a thread of OpenMP");
            let known = Known { descriptor: found.0, lwp: thread.lwp, pthread, is_worker: false };
            let look = |known: Known| {
                let focus = Focus {
                    threads: vec![known],
                    lwp: true,
                    team: true,
                    tasks: Tasks::None,
                    enclosing: false,
                    beyond: false,
                    members: Wanted::None,
                    icvs: true,
                    tool: true,
                    function: true,
                    wait: false,
                    subject: About::Thread,
                    alive: &|_| true,
                    first: &|_| None,
                };
                let excerpt = runtimes[0].excerpt(&moved, &focus)?;
                let thread = excerpt.thread?;
                Some((thread.descriptor, thread.lwp, thread.thread_num.get()))
            };
            assert_eq!(look(known), Some(*found), "{runtime:?}");
            assert_eq!(look(Known { pthread: pthread.offset(DISTANCE), ..known }), None, "that is another's");
        }
        // What is not known is not taken for the same.
        let snapshot = runtimes[0].snapshot(&above(&live, false));
        assert!(snapshot.threads.iter().all(|thread| thread.lwp.is_none()));
        let issues: Vec<String> = snapshot.issues.iter().map(|issue| issue.what.to_string()).collect();
        assert!(issues.iter().any(|text| text.contains("descriptors of threads is not known")), "{issues:?}");
    }
}
