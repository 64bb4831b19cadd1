//! What the library says from outside is what the runtime says from inside, asked by a tool on the thread itself.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use ompd::api::*;
use ompd::extension::{Item, Origin};
use ompd::types::*;
use ompd_process::{Live, OpenOptions};
use ompd_runtime::companion::{Words, find, words};
use ompt_record::snapshot::{LevelValues, SnapshotValues};
use test_programs::{Env, Launch, Opt, Running, Runtime, Skip, Toolchain, build, built_by_cargo, can_build};

use crate::debugger::{Held, Session, out};
use crate::extension::origin;

/// The signal at which threads ask the runtime about themselves: one that nobody else uses.
const SIGNAL: i32 = 40;

/// The version of the interface whose names of control variables this file has.
const VERSION: Word = 201_811;

/// How long a thread may take to handle a signal.
const PATIENCE: Duration = Duration::from_secs(60);

/// What a thread got told: by kernel id.
type Inside = BTreeMap<i32, (SnapshotValues, Vec<LevelValues>)>;

/// A runtime to try: what it is called, which it is or stands in for, and the directory that it is found in then.
struct Tried {
    what: String,
    runtime: Runtime,
    directory: Option<tempfile::TempDir>,
}

/// Those of them that this machine has.
fn runtimes() -> Vec<Tried> {
    let mut all: Vec<_> = (Runtime::available().into_iter().filter(|runtime| runtime.is_kmp()))
        .map(|runtime| Tried { what: format!("{runtime:?}"), runtime, directory: None })
        .collect();
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../test-programs/runtimes/debian-bookworm/amd64");
    match root.join("libomp5-19/libomp.so.5").canonicalize() {
        Ok(file) => {
            let directory = tempfile::tempdir().expect("a directory");
            std::os::unix::fs::symlink(&file, directory.path().join("libomp.so.5")).expect("a link");
            all.push(Tried { what: "libomp 19".to_owned(), runtime: Runtime::Libomp14, directory: Some(directory) });
        }
        Err(why) => Skip::because(format!("libomp 19 is not here: {why}; \"ci/fetch debian\" gets it")).show(),
    }
    all
}

/// Has each thread ask the runtime about itself, and go back to what it waited for.
fn ask(running: &Running) -> Inside {
    let live = Live::open(running.pid, &OpenOptions::default()).expect("it can be opened");
    let block = find(&live, &words(&live)).expect("a companion").expect("a block");
    let rings: Vec<_> = block.rings(&Words::of(&live)).0.into_iter().filter(|ring| ring.values.ended == 0).collect();
    for ring in &rings {
        // SAFETY: a system call on plain numbers; the process is this test's.
        let sent = unsafe { nix::libc::syscall(nix::libc::SYS_tgkill, running.pid, ring.values.lwp as i32, SIGNAL) };
        assert_eq!(sent, 0, "{}", std::io::Error::last_os_error());
    }
    let give_up = Instant::now() + PATIENCE;
    let mut inside = Inside::new();
    for ring in rings {
        loop {
            // Opened anew: what was read is remembered.
            let live = Live::open(running.pid, &OpenOptions::default()).expect("it can be opened");
            if let Some(values) = block.snapshot(&Words::of(&live), ring).expect("it can be read") {
                inside.insert(ring.values.lwp as i32, values);
                break;
            }
            assert!(Instant::now() < give_up, "thread {} does not handle its signal", ring.values.lwp);
            std::thread::yield_now();
        }
    }
    test_programs::await_all_blocked(running.pid, running.truth.threads.len(), true).expect("it comes to rest again");
    inside
}

/// `ompt_state_undefined`
const UNDEFINED: u64 = 0x102;

/// A state seen from outside, and the less exact state that the runtime may give for the same thread. From outside one sees:
/// - that a barrier is an explicit one (libomp 14 notes only that it is a barrier);
/// - that a worker is idle (all runtimes leave it in the state of the barrier at the end of its last region);
/// - the construct at whose end a barrier is;
/// - that a lock is that of a critical construct (libomp 14 notes a lock);
/// - that a thread is in `taskwait` (no runtime changes the state there).
const CLOSER: [(u64, u64); 7] =
    [(0x14, 0x10), (0x12, 0x10), (0x100, 0x11), (0x100, 0x13), (0x11, 0x13), (0x42, 0x41), (0x20, 0x01)];

/// A number that no item has.
const NO_ITEM: i32 = 1000;

/// How the comparison went.
#[derive(Default)]
struct Tally {
    equal: usize,
    closer: usize,
    unavailable: BTreeMap<String, usize>,
    different: Vec<String>,
}

impl Tally {
    fn same<T: PartialEq + std::fmt::Debug>(&mut self, on: &str, what: &str, outside: Result<T, Rc>, inside: T) {
        match outside {
            Ok(outside) if outside == inside => self.equal += 1,
            Ok(outside) => self.different.push(format!("{on}: {what}: outside {outside:?}, inside {inside:?}")),
            Err(Rc::UNAVAILABLE) => *self.unavailable.entry(what.to_owned()).or_default() += 1,
            Err(rc) => self.different.push(format!("{on}: {what}: outside {rc:?}, inside {inside:?}")),
        }
    }
}

fn filed<T>(handle: *mut T, scope: ScopeNumber) -> Result<u64, Rc> {
    let (mut value, mut ptr) = (0, Address::default());
    match unsafe { ompd_get_tool_data(handle.cast(), scope, &raw mut value, &raw mut ptr) } {
        Rc::OK => Ok(value as u64),
        rc => Err(rc),
    }
}

/// Address and flags of exit and enter frame.
fn frames(task: *mut TaskHandle) -> Result<[(u64, u64); 2], Rc> {
    let (mut exit, mut enter) = (FrameInfo::default(), FrameInfo::default());
    match unsafe { ompd_get_task_frame(task, &raw mut exit, &raw mut enter) } {
        Rc::OK => Ok([exit, enter].map(|frame| (frame.frame_address.address, frame.frame_flag as u64))),
        rc => Err(rc),
    }
}

/// The runtime's levels are ours, in their order. The levels between are of serialized regions inside each other, which share one
/// task and one team. From outside only the innermost of them can be seen.
fn tasks(on: &str, session: &Session, thread: *mut ThreadHandle, levels: &[LevelValues], tally: &mut Tally) {
    let mut task = out(|task| unsafe { ompd_get_curr_task_handle(thread, task) });
    for (n, level) in levels.iter().enumerate().filter(|(_, level)| level.task_result == 2) {
        let data = task.and_then(|task| filed(task, scope::TASK));
        if data != Ok(level.task_data) {
            *tally.unavailable.entry(format!("task, level {n}")).or_default() += 1;
            continue;
        }
        let Ok(handle) = task else { continue };
        tally.equal += 1;
        let exit = (level.exit_frame, level.frame_flags & 0xffff_ffff);
        let enter = (level.enter_frame, level.frame_flags >> 32);
        // Flags of no frame mean nothing.
        let told = [exit, enter].map(|frame| if frame.0 == 0 { (0, 0) } else { frame });
        tally.same(on, &format!("frames, level {n}"), frames(handle), told);
        let implicit = session.icv(handle, "implicit-task-var");
        tally.same(on, &format!("implicit, level {n}"), implicit, Word::from(level.task_flags & 3 != 0));
        let is_final = session.icv(handle, "final-task-var");
        tally.same(on, &format!("final, level {n}"), is_final, Word::from(level.task_flags >> 29 & 1 != 0));
        let region = out(|region| unsafe { ompd_get_task_parallel_handle(handle, region) });
        let data = region.and_then(|region| filed(region, scope::PARALLEL));
        tally.same(on, &format!("region of the task, level {n}"), data, level.task_region_data);
        // Below an explicit task is what its thread goes on with; below an implicit one what has opened its region.
        task = out(|outer| match level.task_flags & 3 {
            0 => unsafe { ompd_get_scheduling_task_handle(handle, outer) },
            _ => unsafe { ompd_get_generating_task_handle(handle, outer) },
        });
    }
    if let Ok(task) = task {
        let left = filed(task, scope::TASK);
        tally.different.push(format!("{on}: task {left:?} is none of the runtime's"));
    }
}

fn regions(on: &str, session: &Session, thread: *mut ThreadHandle, levels: &[LevelValues], tally: &mut Tally) {
    let mut region = out(|region| unsafe { ompd_get_curr_parallel_handle(thread, region) });
    for (n, level) in levels.iter().enumerate().filter(|(_, level)| level.region_result == 2) {
        let Ok(handle) = region else { break };
        let data = filed(handle, scope::PARALLEL);
        tally.same(on, &format!("region data, level {n}"), data, level.region_data);
        let size = session.icv(handle, "team-size-var");
        tally.same(on, &format!("team size, level {n}"), size, level.team_size as Word);
        region = out(|outer| unsafe { ompd_get_enclosing_parallel_handle(handle, outer) });
    }
}

fn compare(on: &str, session: &Session, inside: &Inside, tally: &mut Tally) {
    for (lwp, (snapshot, levels)) in inside {
        let on = &format!("{on}, thread {lwp}");
        let thread = match session.thread(thread_id::LWP, *lwp as u64) {
            Ok(thread) => thread,
            Err(rc) => {
                tally.different.push(format!("{on}: no thread: {rc:?}"));
                continue;
            }
        };
        tally.same(on, "thread data", filed(thread, scope::THREAD), snapshot.thread_data);
        let (mut state, mut wait_id) = (0, 0);
        let rc = unsafe { ompd_get_state(thread, &raw mut state, &raw mut wait_id) };
        match (rc, state as u64) {
            // Without registers it is not known what a thread does that waits for nothing of the runtime's.
            (Rc::OK, UNDEFINED) => *tally.unavailable.entry("state".to_owned()).or_default() += 1,
            (Rc::OK, state) if CLOSER.contains(&(state, snapshot.state)) => tally.closer += 1,
            (Rc::OK, state) => tally.same(on, "state", Ok(state), snapshot.state),
            (rc, _) => tally.same(on, "state", Err(rc), snapshot.state),
        }
        // A state has an origin also where only the runtime's record for tools has it.
        let has_origin = origin(thread, Item::ThreadState as i32).map(|(origin, _)| origin != Origin::Unknown);
        tally.same(on, "origin of the state", has_origin, state as u64 != UNDEFINED);
        assert_eq!(origin(thread, NO_ITEM), Err(Rc::BAD_INPUT), "{on}");
        // A wait id has a meaning in states of waiting for a mutex only (OpenMP 5.2, 19.4.4.29).
        if (0x40..0x80).contains(&snapshot.state) && state as u64 != UNDEFINED {
            tally.same(on, "wait id", if rc == Rc::OK { Ok(wait_id) } else { Err(rc) }, snapshot.wait_id);
        }
        tasks(on, session, thread, levels, tally);
        regions(on, session, thread, levels, tally);
        if levels[0].task_result == 2 {
            let number = session.icv(thread, "thread-num-var");
            tally.same(on, "thread number", number, levels[0].thread_num as Word);
        }
    }
}

#[test]
fn inside_and_outside_agree() {
    let file = built_by_cargo("libompt_companion_snapshots.so").display().to_string();
    let mut tally = Tally::default();
    let mut tried = 0;
    for Tried { what, runtime, directory } in runtimes() {
        for name in ["nested", "tasks", "lock", "serialized", "region_end", "idle", "user_pthread", "barriers"] {
            if let Err(skip) = can_build(name, Toolchain::Clang).expect("the program is there") {
                skip.show();
                continue;
            }
            let program = build(name, Toolchain::Clang, Opt::O2, &[]).expect("it builds");
            let mut launch = Launch::new(&program, runtime, Env::Settled)
                .variable("OMP_TOOL_LIBRARIES", &file)
                .variable("OMPT_COMPANION_SNAPSHOT", &SIGNAL.to_string());
            if let Some(directory) = &directory {
                launch = launch.variable("LD_LIBRARY_PATH", &directory.path().to_string_lossy());
            }
            let running = launch.start().expect("it starts");
            let inside = ask(&running);
            let session = Session::new(VERSION, Held::live(running.pid, false));
            compare(&format!("{name} on {what}"), &session, &inside, &mut tally);
            drop(session);
            running.release().expect("it goes on");
            tried += inside.len();
        }
    }
    assert!(
        tally.different.is_empty(),
        "{} values are the same, {} are not, of {tried} threads; unavailable {:?}\n{}",
        tally.equal,
        tally.different.len(),
        tally.unavailable,
        tally.different.join("\n")
    );
    // What runtimes keep for tools fills what cannot be derived; the implicit region around all others has its word as well.
    for what in ["state", "region of the task, level 1"] {
        assert_eq!(tally.unavailable.get(what), None, "{:?}", tally.unavailable);
    }
    assert!(tally.equal > 0 || Runtime::available().iter().all(|runtime| !runtime.is_kmp()));
    use std::io::Write as _;
    let _ = writeln!(
        std::io::stderr(),
        "{} values of {tried} threads are the same; unavailable: {:?}",
        tally.equal,
        tally.unavailable
    );
}
