//! What the library says of threads, regions, tasks and control variables is what the program says of itself.

use std::collections::BTreeMap;
use std::io::Write as _;

use crate::debugger::{Held, Session, out, take};
use ompd::api::*;
use ompd::types::*;
use ompd_process::Addr;
use test_programs::{
    Api, Env, Kind, Launch, Opt, Running, Runtime, Toolchain, Truth, Wait, build, combinations, native_combinations,
};

/// How a comparison went.
#[derive(Default)]
struct Count {
    equal: usize,
    /// What is not known, by name.
    unavailable: std::collections::BTreeMap<String, usize>,
}

impl Count {
    /// A value that may be unavailable, and must not be wrong.
    fn same<T: PartialEq + std::fmt::Debug>(&mut self, what: &str, ours: Result<T, Rc>, truth: &T) {
        match ours {
            Ok(ours) => {
                assert_eq!(&ours, truth, "{what}");
                self.equal += 1;
            }
            Err(Rc::UNAVAILABLE | Rc::NEEDS_STATE_TRACKING) => {
                *self.unavailable.entry(what.to_owned()).or_default() += 1;
            }
            Err(rc) => panic!("{what}: {rc:?}"),
        }
    }
}

fn number(value: i32) -> Word {
    value.into()
}

fn check(session: &Session, truth: &Truth, count: &mut Count) {
    for thread in &truth.threads {
        let by_lwp = session.thread(thread_id::LWP, thread.lwp as u64);
        let by_pthread = session.thread(thread_id::PTHREAD, thread.pthread.0);
        if thread.api.is_none() && thread.role.contains("pthread") {
            assert_eq!(by_lwp, Err(Rc::UNAVAILABLE), "{}", thread.role);
            continue;
        }
        let (handle, same) = (by_lwp.expect("a thread by LWP"), by_pthread.expect("a thread by pthread_t"));
        let order = out(|cmp| unsafe { ompd_thread_handle_compare(handle, same, cmp) });
        assert_eq!(order, Ok(0));
        let id = |kind| out(|id: *mut u64| unsafe { ompd_get_thread_id(handle, kind, 8, id.cast()) });
        assert_eq!(id(thread_id::LWP), Ok(thread.lwp as u64));
        assert_eq!(id(thread_id::PTHREAD), Ok(thread.pthread.0));
        let device = out(|device| unsafe { ompd_get_device_from_thread(handle, device) });
        assert_eq!(device, Ok(session.space));
        if let Some(api) = &thread.api {
            check_thread(session, handle, api, count);
            check_task(session, handle, thread.task.as_ref().map(|task| task.kind), api, count);
            if let Some(task) = &thread.task {
                check_function(session, handle, task.called_from.0, count);
            }
        }
        check_state(handle, thread, count);
        unsafe {
            assert_eq!(ompd_rel_thread_handle(handle), Rc::OK);
            assert_eq!(ompd_rel_thread_handle(handle), Rc::STALE_HANDLE);
            assert_eq!(ompd_rel_thread_handle(same), Rc::OK);
        }
    }
}

fn check_thread(session: &Session, handle: *mut ThreadHandle, api: &Api, count: &mut Count) {
    count.same("thread-num-var", session.icv(handle, "thread-num-var"), &number(api.thread_num));
    for (name, truth) in
        [("dyn-var", api.dynamic), ("nthreads-var", api.max_threads), ("default-device-var", api.default_device)]
    {
        count.same(name, session.icv(handle, name), &number(truth));
    }
    for (name, truth) in [
        ("cancel-var", api.cancellation),
        ("max-task-priority-var", api.max_task_priority),
        ("num-procs-var", api.num_procs),
    ] {
        count.same(name, session.icv(session.space, name), &number(truth));
    }
    let mut region = match out(|region| unsafe { ompd_get_curr_parallel_handle(handle, region) }) {
        Ok(region) => region,
        Err(Rc::UNAVAILABLE) => return count.same("region", Err::<(), _>(Rc::UNAVAILABLE), &()),
        Err(rc) => panic!("{rc:?}"),
    };
    let member = out(|member| unsafe { ompd_get_thread_in_parallel(region, api.thread_num, member) });
    let is_same = member.and_then(|member| out(|cmp| unsafe { ompd_thread_handle_compare(handle, member, cmp) }));
    count.same("member of its region", is_same, &0);
    count.same("active-levels-var", session.icv(region, "active-levels-var"), &number(api.active_level));
    for level in (0..=api.level).rev() {
        let size = api.levels[level as usize].team_size;
        count.same("levels-var", session.icv(region, "levels-var"), &number(level));
        count.same("team-size-var", session.icv(region, "team-size-var"), &number(size));
        let beyond = out(|member| unsafe { ompd_get_thread_in_parallel(region, size, member) });
        assert_eq!(beyond, Err(Rc::BAD_INPUT));
        let outer = out(|outer| unsafe { ompd_get_enclosing_parallel_handle(region, outer) });
        unsafe { assert_eq!(ompd_rel_parallel_handle(region), Rc::OK) };
        match outer {
            Ok(outer) => {
                assert!(level > 0, "there is nothing around the outermost region");
                region = outer;
            }
            Err(rc) => {
                assert_eq!(rc, Rc::UNAVAILABLE);
                if level > 0 {
                    count.same("enclosing region", Err::<(), _>(rc), &());
                }
                break;
            }
        }
    }
}

fn check_task(session: &Session, handle: *mut ThreadHandle, kind: Option<Kind>, api: &Api, count: &mut Count) {
    let task = out(|task| unsafe { ompd_get_curr_task_handle(handle, task) });
    let Ok(task) = task else { return count.same("current task", task.map(drop), &()) };
    for (name, truth) in [
        ("max-active-levels-var", api.max_active_levels),
        ("thread-limit-var", api.thread_limit),
        ("bind-var", api.proc_bind),
        ("final-task-var", api.in_final),
        ("ompd-final-var", api.in_final),
    ] {
        count.same(name, session.icv(task, name), &number(truth));
    }
    if let Some(kind) = kind {
        let implicit = Word::from(kind != Kind::Explicit);
        count.same("implicit-task-var", session.icv(task, "implicit-task-var"), &implicit);
    }
    let word = ["", "static", "dynamic", "guided", "auto"].get(api.schedule_kind as usize);
    if let Some(word) = word {
        let monotonic = if api.schedule_monotonic != 0 { "monotonic:" } else { "" };
        let text = format!("{monotonic}{word},{}", api.schedule_chunk);
        count.same("run-sched-var", session.icv_text(task, "run-sched-var"), &text);
    }
    // The region of the task is the thread's.
    let regions = out(|region| unsafe { ompd_get_task_parallel_handle(task, region) })
        .and_then(|of_task| Ok((of_task, out(|region| unsafe { ompd_get_curr_parallel_handle(handle, region) })?)));
    let order = regions.and_then(|(a, b)| out(|cmp| unsafe { ompd_parallel_handle_compare(a, b, cmp) }));
    count.same("region of the task", order, &0);
    // Its implicit task is what it executes, or what that was generated in.
    if kind == Some(Kind::Implicit) {
        let own = regions
            .and_then(|(region, _)| out(|task| unsafe { ompd_get_task_in_parallel(region, api.thread_num, task) }));
        let order = own.and_then(|own| out(|cmp| unsafe { ompd_task_handle_compare(task, own, cmp) }));
        count.same("implicit task by number", order, &0);
    }
    let mut chain = vec![task];
    while let Ok(outer) = out(|outer| unsafe { ompd_get_generating_task_handle(chain[chain.len() - 1], outer) }) {
        chain.push(outer);
        assert!(chain.len() < 100, "tasks generate each other in a circle");
    }
    // An implicit task is generated by the one that met the construct: as many as there are levels, and the initial task.
    let least = api.level as usize + 1;
    let known = if chain.len() >= least { Ok(()) } else { Err(Rc::UNAVAILABLE) };
    count.same("generating tasks", known, &());
    let generous = session.held.generous;
    for (depth, task) in chain.into_iter().enumerate() {
        let frames = frames(task);
        if let Ok((exit, enter)) = frames {
            assert!(generous, "without registers there are no frames");
            // Of the initial task there is no frame that called it; of others it is the runtime's.
            let called = exit.frame_address.address != 0;
            assert_eq!(exit.frame_flag, if called { 0x10 } else { 0 });
            assert!(enter.frame_address.address == 0 || enter.frame_flag == 0x11);
            assert!(!called || enter.frame_address.address < exit.frame_address.address);

            let waits_inside = depth == 0 || kind != Some(Kind::Implicit) || enter.frame_address.address != 0;
            assert!(waits_inside, "what met a region has called the runtime");
        }
        if generous {
            count.same("frames", frames.map(drop), &());
        }
        unsafe { assert_eq!(ompd_rel_task_handle(task), Rc::OK) };
    }
}

/// Exit and enter frame of a task.
fn frames(task: *mut TaskHandle) -> Result<(FrameInfo, FrameInfo), Rc> {
    let mut enter = FrameInfo::default();
    let exit = out(|exit| unsafe { ompd_get_task_frame(task, exit, &raw mut enter) })?;
    Ok((exit, enter))
}

fn check_function(session: &Session, handle: *mut ThreadHandle, called_from: u64, count: &mut Count) {
    let Ok(task) = out(|task| unsafe { ompd_get_curr_task_handle(handle, task) }) else { return };
    let function = out(|at: *mut Address| unsafe { ompd_get_task_function(task, at) });
    let target = &session.held.target;
    let of = |addr: u64| target.modules().iter().find_map(|module| module.symbol_at(Addr(addr))).map(|(s, _)| s.name);
    if let (Ok(at), Some(truth)) = (function, of(called_from)) {
        // The body itself, or what clang puts in front of it.
        let ours = of(at.address).expect("a function of the program");
        let stem = |name: &str| name.replace("_debug__", "").replace(".omp_task_entry.", ".omp_outlined.");
        let stem = |name: &str| stem(name).split(".omp_outlined").next().unwrap_or_default().to_owned();
        assert!(ours == truth || stem(&ours) == stem(&truth), "{ours} is not {truth}");
        count.equal += 1;
    } else {
        count.same("task function", function.map(drop), &());
    }
}

fn check_state(handle: *mut ThreadHandle, thread: &test_programs::Thread, count: &mut Count) {
    let mut wait_id = 0xdead;
    let state = out(|state| unsafe { ompd_get_state(handle, state, &raw mut wait_id) });
    let expected: &[Word] = match thread.wait {
        Wait::Barrier => &[0x10, 0x11, 0x12, 0x13, 0x14],
        Wait::Lock | Wait::NestLock => &[0x41, 0x40],
        Wait::Critical => &[0x42, 0x40],
        Wait::Taskwait => &[0x20],
        Wait::Taskgroup => &[0x21],
        Wait::Ordered => &[0x44],
        Wait::Idle => &[0x100],
        _ => return,
    };
    match state {
        Ok(0x102) => count.same(&format!("state in {:?}", thread.wait), Err::<(), _>(Rc::UNAVAILABLE), &()),
        Ok(state) => {
            assert!(expected.contains(&state), "{state:#x} of a thread in {:?}", thread.wait);
            count.equal += 1;
        }
        Err(rc) => count.same(&format!("state in {:?}", thread.wait), Err::<(), _>(rc), &()),
    }
}

/// A program on every runtime, live and from a core, by a debugger that offers what OMPD asks for, and by one that offers more.
fn run(program: &str) {
    for (toolchain, runtime) in combinations() {
        if let Err(skip) = toolchain.check().and_then(|()| runtime.library().map(drop)) {
            skip.show();
            continue;
        }
        let executable = match test_programs::can_build(program, toolchain).expect("compilers answer") {
            Ok(()) => build(program, toolchain, Opt::O0, &[]).expect("it builds"),
            Err(skip) => {
                skip.show();
                continue;
            }
        };
        let running = Launch::new(&executable, runtime, Env::Settled).start().expect("it starts");
        everywhere(program, toolchain, &running);
    }
}

/// Compares all that is said of a process with the truth.
pub fn check_all(session: &Session, truth: &Truth) {
    let mut count = Count::default();
    check(session, truth, &mut count);
    assert!(count.equal > truth.threads.len() * 4, "{} values are equal", count.equal);
}

/// Checks the answers about a running program and its core, to a debugger that offers what OMPD asks for or more.
pub fn everywhere(program: &str, toolchain: Toolchain, running: &Running) {
    for generous in [false, true] {
        let mut count = Count::default();
        let session = Session::new(201_811, Held::live(running.pid, generous));
        check(&session, &running.truth, &mut count);
        report(program, toolchain, running.runtime, generous, &count);
        assert!(count.equal > running.truth.threads.len() * 4, "{}", count.equal);
    }
    let directory = tempfile::tempdir().expect("a directory");
    match running.gcore(directory.path()).expect("gcore runs") {
        Ok(core) => {
            check_all(&Session::new(201_811, Held::core(&core, false)), &running.truth);
        }
        Err(skip) => skip.show(),
    }
}

fn report(program: &str, toolchain: Toolchain, runtime: Runtime, generous: bool, count: &Count) {
    let _ = writeln!(
        std::io::stderr(),
        "{program}, {toolchain:?} on {runtime:?}{}: {} equal, unavailable: {:?}",
        if generous { ", with registers" } else { "" },
        count.equal,
        count.unavailable
    );
}

programs!(barrier_missing, nested, serialized, tasks, lock, icvs, idle, user_pthread, stacks_cpp, stacks_fortran);

/// From OpenMP 5.1 on the allocator of allocations that name none is one of implicit tasks (OpenMP 5.2, table 2.4).
#[test]
fn a_variable_of_implicit_tasks_is_none_of_explicit_ones() {
    const NAME: &str = "def-allocator-var";
    let mut known = 0;
    for (toolchain, runtime) in native_combinations() {
        let program = build("tasks", toolchain, Opt::O0, &[]).expect("it builds");
        let running = Launch::new(&program, runtime, Env::Settled).start().expect("it starts");
        let session = Session::new(202_411, Held::live(running.pid, false));
        assert_eq!(session.icvs[NAME].1, scope::IMPLICIT_TASK);
        let mut seen = [0; 2];
        for thread in &running.truth.threads {
            let handle = session.thread(thread_id::LWP, thread.lwp as u64).expect("a thread");
            let task = out(|task| unsafe { ompd_get_curr_task_handle(handle, task) });
            let (Ok(task), Some(kind)) = (task, thread.task.as_ref().map(|task| task.kind)) else { continue };
            let allocator = session.icv(task, NAME);
            if kind == Kind::Explicit {
                assert_eq!(allocator, Err(Rc::INCOMPATIBLE), "{runtime:?}: {}", thread.role);
            } else {
                // `omp_default_mem_alloc`
                assert!(
                    matches!(allocator, Ok(1) | Err(Rc::UNAVAILABLE)),
                    "{runtime:?}: {}: {allocator:?}",
                    thread.role
                );
                known += usize::from(allocator.is_ok());
            }
            seen[usize::from(kind == Kind::Explicit)] += 1;
        }
        assert!(seen[0] > 0 && seen[1] > 0, "{runtime:?}: {seen:?}");
    }
    assert!(known > 0, "no runtime has told it");
}

#[test]
fn display_control_vars_are_what_the_environment_said() {
    let program = build("barrier_missing", Toolchain::Gcc, Opt::O0, &[]).expect("it builds");
    let launch = Launch::new(&program, Runtime::Libgomp, Env::Settled).variable("OMP_DISPLAY_AFFINITY", "false");
    let running = launch.start().expect("it starts");
    let session = Session::new(201_811, Held::live(running.pid, false));
    let mut vector = out(|vector| unsafe { ompd_get_display_control_vars(session.space, vector) }).expect("variables");
    let mut lines = Vec::new();
    for n in 0.. {
        let line = unsafe { *vector.add(n) };
        if line.is_null() {
            break;
        }
        lines.push(unsafe { std::ffi::CStr::from_ptr(line) }.to_str().expect("UTF-8").to_owned());
    }
    assert!(lines.iter().any(|line| line == "OMP_DISPLAY_AFFINITY=false"), "{lines:?}");
    assert!(lines.iter().all(|line| line.contains('=')));
    unsafe {
        assert_eq!(ompd_rel_display_control_vars(&raw mut vector), Rc::OK);
        assert!(vector.is_null());
        assert_eq!(ompd_rel_display_control_vars(&raw mut vector), Rc::BAD_INPUT);
    }
}

/// What the library lists, by name.
fn listed(session: &Session) -> BTreeMap<String, String> {
    let mut vector = out(|vector| unsafe { ompd_get_display_control_vars(session.space, vector) }).expect("variables");
    let texts = (0..).map(|n| unsafe { *vector.add(n) }).take_while(|text| !text.is_null());
    let texts = texts.map(|text| unsafe { std::ffi::CStr::from_ptr(text) }.to_str().expect("UTF-8").to_owned());
    let lines: Vec<String> = texts.collect();
    assert_eq!(unsafe { ompd_rel_display_control_vars(&raw mut vector) }, Rc::OK);
    let pairs = lines.iter().map(|line| line.split_once('=').expect("a name and a value"));
    let pairs: BTreeMap<String, String> = pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    assert_eq!(pairs.len(), lines.len(), "each name once: {lines:?}");
    pairs
}

/// What a runtime prints under `OMP_DISPLAY_ENV=verbose`, by name.
fn displayed(said: &str) -> BTreeMap<String, String> {
    let lines = said.lines().map(|line| line.trim().trim_start_matches("[host]").trim());
    let pairs = lines.filter_map(|line| line.split_once('='));
    pairs.map(|(name, value)| (name.trim().to_owned(), value.trim().trim_matches('\'').to_owned())).collect()
}

/// A value in one form: runtimes write switches large, and bytes with a unit, or with none.
fn plain(value: &str) -> String {
    let value = value.to_ascii_lowercase();
    let size = |unit: char, by: u64| Some((value.strip_suffix(unit)?.parse::<u64>().ok()? * by).to_string());
    let bytes = [('b', 1), ('k', 1 << 10), ('m', 1 << 20), ('g', 1 << 30)];
    bytes.into_iter().find_map(|(unit, by)| size(unit, by)).unwrap_or(value)
}

/// Settings that the runtime prints itself, some of which the environment sets; beside those of OpenMP also its own.
#[test]
fn settings_are_those_that_the_runtime_prints() {
    for (toolchain, runtime) in combinations().into_iter().filter(|(toolchain, runtime)| match runtime {
        Runtime::Libgomp => *toolchain == Toolchain::Gcc,
        _ => *toolchain == Toolchain::Clang,
    }) {
        let least = match runtime {
            Runtime::Libiomp5 => 55,
            Runtime::Libomp14 => 45,
            Runtime::Libgomp => 8,
        };
        let program = build("barrier_missing", toolchain, Opt::O0, &[]).expect("it builds");
        // Written otherwise than a runtime prints it, so that what the environment says is no right answer.
        let set = [
            ("OMP_DISPLAY_ENV", "verbose"),
            ("OMP_STACKSIZE", "3000K"),
            ("OMP_CANCELLATION", "1"),
            ("OMP_MAX_TASK_PRIORITY", "7"),
            ("KMP_BLOCKTIME", "150"),
            ("KMP_PLAIN_BARRIER_PATTERN", "tree,hyper"),
            ("KMP_DISP_NUM_BUFFERS", "9"),
            ("KMP_USE_YIELD", "2"),
            ("KMP_STACKPAD", "70"),
            ("KMP_ABORT_DELAY", "3"),
            ("KMP_HOT_TEAMS_MODE", "1"),
            ("KMP_HOT_TEAMS_MAX_LEVEL", "4"),
            ("KMP_TASKLOOP_MIN_TASKS", "11"),
            ("KMP_NUM_LOCKS_IN_BLOCK", "5"),
            ("KMP_MALLOC_POOL_INCR", "2M"),
            ("KMP_STACKOFFSET", "128"),
            ("KMP_TASK_STEALING_CONSTRAINT", "0"),
            ("KMP_ENABLE_TASK_THROTTLING", "0"),
            ("KMP_FOREIGN_THREADS_THREADPRIVATE", "0"),
            ("KMP_DUPLICATE_LIB_OK", "1"),
            ("KMP_FORKJOIN_FRAMES", "0"),
            ("KMP_ATOMIC_MODE", "1"),
            ("KMP_ALL_THREADPRIVATE", "200"),
            ("KMP_ITT_PREPARE_DELAY", "13"),
            ("KMP_ALIGN_ALLOC", "256"),
            ("KMP_TEAMS_THREAD_LIMIT", "1"),
            ("KMP_DEVICE_THREAD_LIMIT", "50"),
            ("KMP_WARNINGS", "0"),
        ];
        let plain_launch = Launch::new(&program, runtime, Env::Settled);
        let launch = set.iter().fold(plain_launch, |launch, (name, value)| launch.variable(name, value));
        let running = launch.start().expect("it starts");
        let session = Session::new(201_811, Held::live(running.pid, false));
        let (ours, theirs) = (listed(&session), displayed(&running.said().expect("what it printed")));
        let both = ours.iter().filter_map(|(name, value)| Some((name, plain(value), plain(theirs.get(name)?))));
        let both: Vec<_> = both.collect();
        let wrong: Vec<_> = both.iter().filter(|(_, ours, theirs)| ours != theirs).collect();
        let lacking: Vec<&String> = theirs.keys().filter(|name| !ours.contains_key(*name)).collect();
        let counts = (ours.len(), both.len());
        let _ = writeln!(std::io::stderr(), "{runtime:?}: listed and compared: {counts:?}; not listed: {lacking:?}");
        assert!(wrong.is_empty(), "{runtime:?}: {wrong:?}");
        assert!(both.len() >= least, "{runtime:?}: {counts:?}");
    }
}

/// Runtimes say it in a text that their users can ask for.
#[test]
fn the_version_is_what_the_runtime_prints() {
    for (toolchain, runtime) in combinations() {
        let program = build("barrier_missing", toolchain, Opt::O0, &[]).expect("it builds");
        let launch = Launch::new(&program, runtime, Env::Settled).variable("OMP_DISPLAY_ENV", "true");
        let running = launch.start().expect("it starts");
        let session = Session::new(201_811, Held::live(running.pid, false));
        let said = running.said().expect("what it printed");
        // libgomp, which a program of GCC's brings along, prints first.
        let line = said.lines().rfind(|line| line.contains("_OPENMP")).unwrap_or_else(|| panic!("{runtime:?}: {said}"));
        let digits = line.split('\'').nth(1).expect("in quotes");
        let version = out(|version| unsafe { ompd_get_omp_version(session.space, version) });
        assert_eq!(version, digits.parse().map_err(|_| Rc::ERROR), "{runtime:?}: {line}");
        let text = out(|text| unsafe { ompd_get_omp_version_string(session.space, text) }).map(take);
        assert!(text.as_ref().is_ok_and(|text| text.starts_with("OpenMP ")), "{runtime:?}: {text:?}");
    }
}

/// Of two runtimes the one that is loaded last has three threads in teams, and the other one two or four.
#[test]
fn the_process_has_the_version_of_the_runtime_with_most_threads_in_teams() {
    let text = |session: &Session| {
        out(|text| unsafe { ompd_get_omp_version_string(session.space, text) }).map(take).expect("a version")
    };
    let alone = |toolchain, runtime| {
        let program = build("nested", toolchain, Opt::O0, &[]).expect("it builds");
        let running = Launch::new(&program, runtime, Env::Settled).start().expect("it starts");
        text(&Session::new(202_411, Held::live(running.pid, false)))
    };
    let library = match Toolchain::Clang.check().and_then(|()| Runtime::Libomp14.library()) {
        Ok(library) => library,
        Err(skip) => return skip.show(),
    };
    let program = build("two_runtimes", Toolchain::Gcc, Opt::O2, &[]).expect("it builds");
    let with_threads = |count: &str| {
        let launch = Launch::new(&program, Runtime::Libgomp, Env::Settled);
        let launch = launch.argument(&library.to_string_lossy()).argument(count);
        let running = launch.start().expect("it starts");
        text(&Session::new(202_411, Held::live(running.pid, false)))
    };
    let [libgomp, libomp] = [alone(Toolchain::Gcc, Runtime::Libgomp), alone(Toolchain::Clang, Runtime::Libomp14)];
    assert_ne!(libgomp, libomp);
    assert_eq!([with_threads("2"), with_threads("4")], [libomp, libgomp]);
}

/// The task in which a nested region was opened executes nothing meanwhile, and has its control variables all the same.
#[test]
fn control_variables_of_a_task_that_waits_for_an_inner_region() {
    for (toolchain, runtime) in combinations() {
        let program = build("icvs", toolchain, Opt::O0, &[]).expect("it builds");
        let running = Launch::new(&program, runtime, Env::Settled).start().expect("it starts");
        let lwp = running.truth.with_role("nested holder").next().expect("the thread").lwp;
        for generous in [false, true] {
            let what = format!("{toolchain:?} on {runtime:?}, registers: {generous}");
            let session = Session::new(202_111, Held::live(running.pid, generous));
            let thread = session.thread(thread_id::LWP, lwp as u64).expect("the thread");
            let task = out(|task| unsafe { ompd_get_curr_task_handle(thread, task) }).expect("its task");
            let outer =
                out(|outer| unsafe { ompd_get_generating_task_handle(task, outer) }).expect("the one around it");
            // `icvs.c`: the inner task has a schedule of its own.
            assert_eq!(session.icv_text(task, "run-sched-var").as_deref(), Ok("static,3"), "{what}");
            assert_eq!(session.icv(outer, "nthreads-var"), Ok(13), "{what}");
            assert!(session.icv_text(outer, "run-sched-var").is_ok_and(|text| text.starts_with("auto")), "{what}");
        }
    }
}
