//! A debugger that a failed read ends, on processes whose runtime has not begun and on such where it has.

use std::io::{BufRead as _, Write as _};

use ompd::api::*;
use ompd::types::*;
use test_programs::{Env, Launch, Opt, Process, Runtime, Toolchain, build};

use crate::debugger::{Held, Session, out};
use crate::traced::{Happened, Traced};

/// What is asked of a thread, by the codes of the answers.
fn codes(session: &Session, tid: i32) -> Vec<Rc> {
    fn code<T>(found: Result<T, Rc>) -> Rc {
        found.err().unwrap_or(Rc::OK)
    }
    let thread = match session.thread(thread_id::LWP, tid as u64) {
        Ok(thread) => thread,
        Err(rc) => return vec![rc],
    };
    let region = out(|region| unsafe { ompd_get_curr_parallel_handle(thread, region) });
    let task = out(|task| unsafe { ompd_get_curr_task_handle(thread, task) });
    let mut codes = vec![code(region), code(task)];
    codes.push(code(out(|state| unsafe { ompd_get_state(thread, state, std::ptr::null_mut()) })));
    if let Ok(task) = task {
        let (mut exit, mut enter) = (FrameInfo::default(), FrameInfo::default());
        codes.push(unsafe { ompd_get_task_frame(task, &raw mut exit, &raw mut enter) });
        codes.push(code(out(|generating| unsafe { ompd_get_generating_task_handle(task, generating) })));
        codes.push(code(session.icv(task, "run-sched-var")));
    }
    if let Ok(region) = region {
        codes.push(code(session.icv(region, "levels-var")));
    }
    codes
}

#[cfg(target_arch = "x86_64")]
#[test]
fn nothing_unmapped_is_read_before_the_runtime_begins_and_all_works_once_it_has() {
    for runtime in [Runtime::Libiomp5, Runtime::Libomp14] {
        if let Err(reason) = Toolchain::Clang.check().and_then(|()| runtime.library().map(drop)) {
            reason.show();
            continue;
        }
        let program = build("begins_late", Toolchain::Clang, Opt::O0, &[]).expect("it builds");
        let launch = Launch::new(&program, runtime, Env::Settled).variable("OMP_DEBUG", "enabled");
        let Process { child, mut stdin, mut stdout, .. } = launch.spawn().expect("it starts");
        let mut line = String::new();
        stdout.read_line(&mut line).expect("a line");
        assert_eq!(line, "ready\n");
        let pid = child.id() as i32;
        let mut traced = Traced::new(pid);
        let mut held = Held::of(Box::new(traced.look()), false);
        held.expressions = true;
        held.fragile = true;
        let mut session = Session::new(201_811, held);
        assert_eq!(codes(&session, pid), [Rc::UNAVAILABLE], "{runtime:?}: no thread is one of OpenMP's yet");
        // The program calls it in its first region.
        let here = session.held.target.modules().iter().find_map(|module| module.symbol("omp_get_thread_num"));
        let here = here.expect("a function of the runtime").addr.0;
        traced.set_breakpoint(here);
        stdin.write_all(b"x").expect("the program reads");
        let Happened::Hit(tid, _) = traced.run() else { panic!("{runtime:?}: the program ends") };
        session.held.target = Box::new(traced.look());
        session.held.stops.set(2);
        let found = codes(&session, tid);
        assert!(found.len() > 3 && found[..3] == [Rc::OK; 3], "{runtime:?}: {found:?}");
        drop(session);
        let mut at = (tid, here);
        loop {
            traced.step_over(at.0, at.1);
            at = match traced.run() {
                Happened::Hit(tid, addr) => (tid, addr),
                Happened::Exited(status) => break assert_eq!(status, 0, "{runtime:?}"),
            };
        }
        // Its end has been waited for.
        drop(child);
    }
}
