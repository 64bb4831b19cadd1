//! Threads are told apart by `pthread_t`, which is not the thread pointer on every machine.

use ompd_process::{Addr, Arch, Live, Module, OpenOptions, ProcessInfo, ReadError, Target, TargetKind, Thread};
use ompd_runtime::discover;
use ompd_runtime::excerpt::{Focus, Known, Tasks};
use test_programs::{Env, Launch, Opt, Runtime, Toolchain, build};

/// A process as on a machine where thread pointers lie above the C library's descriptors.
struct Above<'a> {
    inner: &'a Live,
    threads: Vec<Thread>,
    /// By so many bytes; `None` where that is not known.
    distance: Option<u64>,
}

const DISTANCE: u64 = 1776;

impl<'a> Above<'a> {
    fn of(inner: &'a Live, known: bool) -> Above<'a> {
        let mut threads = inner.threads().to_vec();
        for thread in &mut threads {
            let pointer = thread.thread_pointer().map(|pointer| pointer.offset(DISTANCE));
            (thread.registers, thread.pointer) = (Err("of another machine".to_owned()), pointer);
        }
        Above { inner, threads, distance: known.then_some(DISTANCE) }
    }
}

impl Target for Above<'_> {
    fn kind(&self) -> TargetKind {
        self.inner.kind()
    }
    fn arch(&self) -> Arch {
        self.inner.arch()
    }
    fn modules(&self) -> &[Module] {
        self.inner.modules()
    }
    fn threads(&self) -> &[Thread] {
        &self.threads
    }
    fn pthread_distance(&self) -> Option<u64> {
        self.distance
    }
    fn process(&self) -> &ProcessInfo {
        self.inner.process()
    }
    fn issues(&self) -> &[String] {
        self.inner.issues()
    }
    fn read(&self, addr: Addr, buf: &mut [u8]) -> Result<(), ReadError> {
        self.inner.read(addr, buf)
    }
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
        let (here, above) = (numbers(&live), Above::of(&live, true));
        assert_eq!(numbers(&above), here, "{runtime:?}");
        assert!(here.iter().filter(|(_, lwp, _)| lwp.is_some()).count() >= 6, "{here:?}");
        // A look at a single thread finds it by what the runtime has noted, too.
        for thread in live.threads() {
            let pthread = thread.thread_pointer().expect("its thread pointer");
            let found = here.iter().find(|(_, lwp, _)| *lwp == Some(thread.lwp)).expect("a thread of OpenMP");
            let known = Known { descriptor: found.0, lwp: thread.lwp, pthread };
            let look = |known: Known| {
                let focus = Focus {
                    threads: vec![known],
                    lwp: true,
                    team: true,
                    tasks: Tasks::None,
                    enclosing: false,
                    wait: false,
                    alive: &|_| true,
                };
                let excerpt = runtimes[0].excerpt(&above, &focus)?;
                Some((excerpt.thread.descriptor, excerpt.thread.lwp, excerpt.thread.thread_num.get()))
            };
            assert_eq!(look(known), Some(*found), "{runtime:?}");
            assert_eq!(look(Known { pthread: pthread.offset(DISTANCE), ..known }), None, "that is another's");
        }
        // What is not known is not taken for the same.
        let snapshot = runtimes[0].snapshot(&Above::of(&live, false));
        assert!(snapshot.threads.iter().all(|thread| thread.lwp.is_none()));
        let issues: Vec<String> = snapshot.issues.iter().map(|issue| issue.what.to_string()).collect();
        assert!(issues.iter().any(|text| text.contains("descriptors of threads is not known")), "{issues:?}");
    }
}
