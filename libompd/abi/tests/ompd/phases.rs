//! A process that runs on between two calls, asked through one address space and, besides new handles, through those of before.

use crate::answers::check_all;
use crate::debugger::{Held, Session, out, refused};
use ompd::api::*;
use ompd::extension::ompdx_set_stop;
use ompd::types::*;
use ompd_process::TargetKind;
use test_programs::{Env, FakeTarget, Launch, Opt, Running, Runtime, Toolchain, Truth, build, combinations};

impl Held {
    /// Lets go of the process until it is in its next phase, and holds it again; false after the last phase.
    fn run_on(&mut self, running: &mut Running) -> bool {
        // A debugger has nothing of a process that runs.
        self.target = Box::new(FakeTarget::new(TargetKind::Live, self.target.arch()));
        let goes_on = running.next_phase().expect("the program goes on");
        if goes_on {
            self.target = Held::live(running.pid, self.generous).target;
            self.stops.set(self.stops.get() + 1);
        }
        goes_on
    }
}

/// Everything that was met at one stop.
#[derive(Default)]
struct Met {
    /// With their kernel thread ids.
    threads: Vec<(*mut ThreadHandle, u64)>,
    /// With their levels and sizes.
    regions: Vec<(*mut ParallelHandle, Word, Word)>,
    tasks: Vec<*mut TaskHandle>,
}

impl Met {
    fn at(session: &Session, truth: &Truth) -> Met {
        let members = truth.threads.iter().filter(|thread| thread.api.is_some());
        Met::of(session, members.map(|thread| thread.lwp))
    }

    /// What leads from these threads.
    fn of(session: &Session, lwps: impl Iterator<Item = i32>) -> Met {
        let mut met = Met::default();
        for lwp in lwps.map(|lwp| lwp as u64) {
            let handle = session.thread(thread_id::LWP, lwp).expect("a thread");
            met.threads.push((handle, lwp));
            let mut region = out(|region| unsafe { ompd_get_curr_parallel_handle(handle, region) });
            while let Ok(found) = region {
                let level = session.icv(found, "levels-var").expect("its level");
                let size = session.icv(found, "team-size-var").expect("its size");
                met.regions.push((found, level, size));
                // A member may execute something else at the moment.
                let implicit = |number| out(|task| unsafe { ompd_get_task_in_parallel(found, number, task) });
                met.tasks.extend((0..size as i32).filter_map(|number| implicit(number).ok()));
                region = out(|outer| unsafe { ompd_get_enclosing_parallel_handle(found, outer) });
            }
            let mut task = out(|task| unsafe { ompd_get_curr_task_handle(handle, task) });
            while let Ok(found) = task {
                met.tasks.push(found);
                task = out(|outer| unsafe { ompd_get_generating_task_handle(found, outer) });
            }
        }
        met
    }
}

/// Codes for what is no longer there.
const GONE: [Rc; 2] = [Rc::STALE_HANDLE, Rc::UNAVAILABLE];

/// Handles of before say what is so now, or that what they stood for is gone. Gives how many were gone, and how many not.
fn recheck(session: &Session, truth: &Truth, before: &Met, now: &Met) -> (usize, usize) {
    let (mut gone, mut there) = (0, 0);
    let mut count = |is_there: bool| if is_there { there += 1 } else { gone += 1 };
    for &(handle, lwp) in &before.threads {
        let id = |kind| out(|id: *mut u64| unsafe { ompd_get_thread_id(handle, kind, 8, id.cast()) });
        let number = session.icv(handle, "thread-num-var");
        let same = |other| out(|cmp| unsafe { ompd_thread_handle_compare(handle, other, cmp) }) == Ok(0);
        let noted = now.threads.iter().find(|(_, own)| *own == lwp);
        match id(thread_id::LWP) {
            Ok(told) => assert_eq!(told, lwp, "a handle stands for one thread"),
            Err(rc) => {
                assert!(GONE.contains(&rc) && noted.is_none(), "{rc:?}");
                assert!(number.is_err_and(|rc| GONE.contains(&rc)), "{number:?} of a thread that is gone");
                let state = out(|state| unsafe { ompd_get_state(handle, state, std::ptr::null_mut()) });
                assert!(state.is_err_and(|rc| GONE.contains(&rc)), "{state:?}");
                let device = out(|device| unsafe { ompd_get_device_from_thread(handle, device) });
                assert!(device.is_err_and(|rc| GONE.contains(&rc)), "{device:?}");
                let stop = unsafe { ompdx_set_stop(handle, 0, std::ptr::null(), 0) };
                assert!(GONE.contains(&stop), "{stop:?} at no stop");
            }
        }
        assert!(now.threads.iter().all(|(other, own)| same(*other) == (*own == lwp)));
        if let Some(thread) = truth.thread(lwp as i32).filter(|_| noted.is_some()) {
            let api = thread.api.as_ref().expect("what it said");
            assert_eq!(number, Ok(api.thread_num.into()));
            assert_eq!(session.icv(handle, "nthreads-var"), Ok(api.max_threads.into()));
            assert_eq!(id(thread_id::PTHREAD), Ok(thread.pthread.0));
        }
        count(id(thread_id::LWP).is_ok());
    }
    for &(handle, level, size) in &before.regions {
        let same = |other| out(|cmp| unsafe { ompd_parallel_handle_compare(handle, other, cmp) }) == Ok(0);
        let equal = now.regions.iter().find(|(other, ..)| same(*other));
        let told = session.icv(handle, "team-size-var");
        match equal {
            Some(&(_, own_level, own_size)) => {
                assert_eq!((own_level, own_size), (level, size), "a region never changes its size");
                assert_eq!((told, session.icv(handle, "levels-var")), (Ok(size), Ok(level)));
            }
            // Of a thread that was not asked about.
            None if level == 0 && told.is_ok() => assert_eq!(told, Ok(1)),
            None => {
                assert!(told.is_err_and(|rc| GONE.contains(&rc)), "{told:?} for a region that is gone");
                let member = out(|member| unsafe { ompd_get_thread_in_parallel(handle, 0, member) });
                assert!(member.is_err_and(|rc| GONE.contains(&rc)), "{member:?}");
            }
        }
        count(told.is_ok());
    }
    for &handle in &before.tasks {
        let same =
            |other: &&*mut TaskHandle| out(|cmp| unsafe { ompd_task_handle_compare(handle, **other, cmp) }) == Ok(0);
        let region = out(|region| unsafe { ompd_get_task_parallel_handle(handle, region) });
        if now.tasks.iter().find(same).is_none() {
            match region {
                Ok(region) => assert_eq!(session.icv(region, "levels-var"), Ok(0), "a task that is gone"),
                Err(rc) => assert!(GONE.contains(&rc), "{rc:?}"),
            }
        }
        count(region.is_ok());
    }
    (gone, there)
}

fn start(program: &str, toolchain: Toolchain, runtime: Runtime) -> Option<Running> {
    if let Err(skip) = toolchain.check().and_then(|()| runtime.library().map(drop)) {
        skip.show();
        return None;
    }
    let program = build(program, toolchain, Opt::O0, &[]).expect("it builds");
    Some(Launch::new(&program, runtime, Env::Settled).start().expect("it starts"))
}

#[test]
fn every_answer_is_of_the_phase_the_process_is_in() {
    for (toolchain, runtime) in combinations() {
        // Without registers and stops, with stops alone, and with both.
        for (generous, stops_alone) in [(false, false), (true, true), (true, false)] {
            let Some(mut running) = start("phases", toolchain, runtime) else { continue };
            let pid = running.pid;
            let held = Held { stops_alone, ..Held::live(pid, generous) };
            let mut session = Session::new(201_811, held);
            let (mut all, mut phases, mut gone, mut there) = (Vec::new(), 0, 0, 0);
            loop {
                check_all(&session, &running.truth);
                let now = Met::at(&session, &running.truth);
                for before in &all {
                    let counts = recheck(&session, &running.truth, before, &now);
                    (gone, there) = (gone + counts.0, there + counts.1);
                }
                all.push(now);
                phases += 1;
                if !session.held.run_on(&mut running) {
                    break;
                }
            }
            let what = format!("{toolchain:?} on {runtime:?}, {generous} {stops_alone}");
            assert_eq!(phases, 12, "{what}");
            assert!(gone > 100 && there > 100, "{what}: {gone} gone, {there} there");
        }
    }
}

/// What a look at the thread says of itself: the number it has, and the size of its team.
fn member(session: &Session, lwp: i32) -> (Result<Word, Rc>, Result<Word, Rc>) {
    let thread = session.thread(thread_id::LWP, lwp as u64).expect("a thread of OpenMP");
    let size = out(|region| unsafe { ompd_get_curr_parallel_handle(thread, region) })
        .and_then(|region| session.icv(region, "team-size-var"));
    (session.icv(thread, "thread-num-var"), size)
}

/// A process gets its first runtime, and then another.
#[test]
fn runtimes_that_come_while_the_process_runs() {
    let runtimes = [Runtime::Libgomp, Runtime::Libomp14];
    let library = |runtime: Runtime| runtime.library().inspect_err(test_programs::Skip::show).ok();
    let [Some(first), Some(second)] = runtimes.map(library) else { return };
    let program = build("loads", Toolchain::Gcc, Opt::O0, &["-fno-openmp"]).expect("it builds");
    let launch = Launch::new(&program, Runtime::Libgomp, Env::Settled);
    let launch =
        launch.argument(first.to_str().expect("a plain path")).argument(second.to_str().expect("a plain path"));
    for generous in [false, true] {
        let mut running = launch.start().expect("it starts");
        let mut held = Held::live(running.pid, generous);
        let said = refused(&mut held);
        assert!(said.contains("no OpenMP runtime is loaded"), "{said}");
        assert!(held.run_on(&mut running));
        // The address space that was refused can be had now.
        let mut session = Session::new(201_811, held);
        let check = |session: &Session, truth: &Truth, size: usize| {
            assert_eq!(truth.threads.len(), size);
            for thread in &truth.threads {
                let number = thread.role.strip_prefix("member ").and_then(|n| n.parse().ok()).expect("a number");
                assert_eq!(member(session, thread.lwp), (Ok(number), Ok(size as Word)), "{thread:?}");
            }
        };
        check(&session, &running.truth, 3);
        let lwps: Vec<i32> = running.truth.threads.iter().map(|thread| thread.lwp).collect();
        let before = Met::of(&session, lwps.into_iter());
        assert!(session.held.run_on(&mut running));
        check(&session, &running.truth, 2);
        // The region of the first runtime is over, and its threads are there.
        for &(handle, lwp) in &before.threads {
            let id = out(|id: *mut u64| unsafe { ompd_get_thread_id(handle, thread_id::LWP, 8, id.cast()) });
            assert_eq!(id, Ok(lwp));
        }
        for &(region, level, _) in &before.regions {
            let size = session.icv(region, "team-size-var");
            assert!(if level == 0 { size == Ok(1) } else { size == Err(Rc::STALE_HANDLE) }, "{level}: {size:?}");
        }
    }
}
