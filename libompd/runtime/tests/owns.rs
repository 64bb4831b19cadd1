//! Who owns the instructions a thread executes: the runtime, or the program and the C library. Both libraries and
//! programs that have everything built in are tested.

use ompd_process::live::Live;
use ompd_process::{OpenOptions, Target};
use ompd_runtime::discover;
use test_programs::{Env, Opt, Running, Runtime, Skip, Toolchain, Wait, build};

#[test]
fn code_that_waits_is_the_runtimes_and_code_that_reads_is_not() {
    if let Err(skip) = Toolchain::Gcc.check() {
        return skip.show();
    }
    for flags in [&[][..], &["-static"], &["-static-pie"]] {
        let program = match build("barrier_missing", Toolchain::Gcc, Opt::O2, flags) {
            Ok(program) => program,
            Err(why) => {
                Skip::because(format!("{flags:?} does not link here: {why:#}")).show();
                continue;
            }
        };
        let running = Running::start(&program, Runtime::Libgomp, Env::Settled).expect("the program starts");
        let mut live = Live::open(running.pid, &OpenOptions::default()).expect("it can be looked at");
        let runtimes = discover(&live, &[]);
        let [runtime] = runtimes.as_slice() else { panic!("{flags:?}: one runtime: {runtimes:?}") };
        live.stop().expect("it stops");
        let (mut waiting, mut elsewhere) = (0, 0);
        for thread in &running.truth.threads {
            let stopped = live.threads().iter().find(|t| t.lwp == thread.lwp).expect("the thread lives");
            let pc = stopped.registers.as_ref().expect("it has registers").pc;
            let waits = thread.wait == Wait::Barrier;
            assert_eq!(runtime.owns_code(&live, pc), waits, "{flags:?}: {} at {pc}", thread.role);
            *(if waits { &mut waiting } else { &mut elsewhere }) += 1;
        }
        assert!(waiting > 0 && elsewhere > 0, "{:?}", running.truth.threads);
        assert!(!runtime.owns_code(&live, ompd_process::Addr(0)));
        live.resume();
        running.release().expect("it goes on to its end");
    }
}
