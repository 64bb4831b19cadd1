//! What libgomp's queues, locks and loops say of programs that are in known states, on every libgomp at hand.

use std::collections::BTreeMap;

use ompd_process::elf::ElfFile;
use ompd_process::{Addr, Live, OpenOptions, Syscall, Target, TargetExt};
use ompd_runtime::discover;
use ompd_runtime::evidence::Evidence;
use ompd_runtime::merge::merge;
use ompd_runtime::model::{
    DependKind, Dependence, Event, Fact, LoopKind, LoopSchedule, Owner, RawSnapshot, RawTask, Reason, RuntimeSnapshot,
    Task, TaskId, TaskState, TaskgroupId, WaitKind,
};
use ompd_runtime::names::FileNames;
use test_programs::{ChangedTarget, Env, Launch, Opt, Running, Runtime, Skip, Toolchain, Wait, build};

#[path = "common/libgomp.rs"]
mod libgomp;

use libgomp::{Library, libraries};

/// Its tasks can have events.
fn has_events(library: &Library) -> bool {
    let elf = ElfFile::open(&library.folder.join("libgomp.so.1")).expect("the library");
    elf.exports("omp_fulfill_event")
}

/// Starts a program of this package on a libgomp.
fn start(library: &Library, program: &str, variables: &[(&str, &str)]) -> Running {
    let flags: &[&str] = if has_events(library) { &[] } else { &["-DWITHOUT_EVENTS"] };
    let executable = build(program, Toolchain::Gcc, Opt::O2, flags).expect("the program builds");
    let mut launch = Launch::new(&executable, Runtime::Libgomp, Env::Settled);
    for (name, value) in variables {
        launch = launch.variable(name, value);
    }
    launch = launch.variable("LD_LIBRARY_PATH", library.folder.to_str().expect("a plain path"));
    launch.start().unwrap_or_else(|error| panic!("{program} on {}: {error:?}", library.what))
}

/// The program's libgomp, looked at once while it stands still, and what `also` reads then.
fn look<T>(running: &Running, also: impl FnOnce(&Live) -> T) -> (RuntimeSnapshot, T) {
    let mut live = Live::open(running.pid, &OpenOptions::default()).expect("the process opens");
    let runtimes = discover(&live, &[]);
    let [runtime] = &runtimes[..] else { panic!("{} runtimes", runtimes.len()) };
    live.stop().expect("the process stops");
    let raw = runtime.snapshot(&live);
    let also = also(&live);
    live.resume();
    let names = FileNames::of(&live, &runtimes, &|_| None);
    (merge(vec![raw], &Evidence::of_names(&names)).remove(0), also)
}

/// The address of a variable of the program.
fn variable(live: &Live, name: &str) -> Addr {
    live.modules().iter().find_map(|module| module.symbol(name)).unwrap_or_else(|| panic!("no symbol {name}")).addr
}

fn written_in<'a>(snapshot: &'a RuntimeSnapshot, function: &str) -> Vec<(TaskId, &'a Task)> {
    let outlined = format!("{function}._omp_fn");
    let named = |task: &Task| {
        let name = task.function.value().and_then(|f| f.name.clone()).unwrap_or_default();
        name.starts_with(&outlined)
    };
    let all = snapshot.tasks.iter().enumerate().filter(|(_, task)| named(task));
    all.map(|(index, task)| (TaskId(index), task)).collect()
}

fn states(tasks: &[(TaskId, &Task)]) -> Vec<Option<TaskState>> {
    tasks.iter().map(|(_, task)| task.state.get()).collect()
}

fn dependences(task: &Task) -> Vec<(Option<String>, Option<DependKind>)> {
    let item = |d: &Dependence| (d.name.clone(), d.kind.get());
    task.dependences.iter().map(item).collect()
}

/// Priorities 3, 7 and 0 where they count, 0 where they do not.
fn check_queued(library: &Library, priorities: bool) {
    use TaskState::*;
    let what = &library.what;
    let variables: &[(&str, &str)] = if priorities { &[("OMP_MAX_TASK_PRIORITY", "10")] } else { &[] };
    let running = start(library, "tasks_queued", variables);
    let (snapshot, events) = look(&running, |live| {
        let read = |name| live.read_ptr(variable(live, name)).expect("a variable of the program");
        has_events(library).then(|| (read("detached_event"), read("holder_event")))
    });
    assert!(snapshot.issues.is_empty(), "{what}: {:?}", snapshot.issues);

    let queued = written_in(&snapshot, "generate_priorities");
    assert_eq!(states(&queued), [Some(Ready); 3], "{what}");
    let mut found: Vec<Option<i64>> = queued.iter().map(|(_, task)| task.priority.get()).collect();
    found.sort();
    assert_eq!(found, if priorities { [Some(0), Some(3), Some(7)] } else { [Some(0); 3] }, "{what}");
    for (_, task) in &queued {
        assert_eq!((task.unmet.get(), task.taskgroup.flat(), task.event.flat()), (Some(0), None, None), "{what}");
        assert_eq!((task.unfinished_children.get(), task.dependences.len()), (Some(0), 0), "{what}");
        assert!(task.tied.value().is_none() && task.mergeable.value().is_none(), "{what}");
    }

    let [(writer, task)] = written_in(&snapshot, "generate_writer")[..] else { panic!("{what}: no writer") };
    let a = || Some("cell_a".to_owned());
    assert_eq!((task.state.get(), task.unmet.get()), (Some(Ready), Some(0)), "{what}");
    assert_eq!(dependences(task), [(a(), Some(DependKind::InOut))], "{what}");
    let readers = written_in(&snapshot, "generate_reader");
    assert_eq!(states(&readers), [Some(Blocked); 2], "{what}");
    for (_, task) in &readers {
        assert_eq!(dependences(task), [(a(), Some(DependKind::In))], "{what}");
        assert_eq!((task.unmet.get(), &task.predecessors[..]), (Some(1), &[writer][..]), "{what}");
        assert_eq!(task.generating.flat(), snapshot.tasks[writer.0].generating.flat(), "{what}");
        assert!(task.generating.flat().is_some() && task.team.flat().is_some(), "{what}");
    }
    let [(_, task)] = written_in(&snapshot, "generate_updater")[..] else { panic!("{what}: no updater") };
    let mut expected: Vec<TaskId> = readers.iter().map(|(id, _)| *id).chain([writer]).collect();
    expected.sort();
    let mut before = task.predecessors.clone();
    before.sort();
    assert_eq!((task.state.get(), task.unmet.get(), before), (Some(Blocked), Some(3), expected), "{what}");
    let b = Some("cell_b".to_owned());
    assert_eq!(dependences(task), [(a(), Some(DependKind::InOut)), (b, Some(DependKind::In))], "{what}");

    let coordinator = snapshot.threads.iter().find(|t| t.lwp == Some(running.truth.coordinator)).expect("its thread");
    let parent = coordinator.task.get().expect("its task");
    assert_eq!(snapshot.tasks[writer.0].generating.flat(), Some(parent), "{what}");

    let members = written_in(&snapshot, "generate_member");
    let mut sizes: BTreeMap<TaskgroupId, u64> = BTreeMap::new();
    for (_, task) in &members {
        *sizes.entry(task.taskgroup.flat().expect("a member is in a group")).or_default() += 1;
    }
    assert_eq!(sizes.len(), 2, "{what}");
    for (id, size) in &sizes {
        let group = snapshot.taskgroup(*id).expect("a group that exists");
        assert_eq!((group.unfinished.get(), group.cancelled.get()), (Some(*size), Some(false)), "{what}");
        let outer = sizes.iter().find(|(_, n)| **n == 1).map(|(id, _)| *id);
        assert_eq!(group.parent.flat(), if *size == 2 { outer } else { None }, "{what}");
        assert!(group.parent.value().is_some(), "{what}");
    }
    assert_eq!(
        snapshot.tasks[parent.0].taskgroup.flat(),
        sizes.iter().find(|(_, n)| **n == 2).map(|(id, _)| *id),
        "{what}"
    );

    let mut children = 1 + 3 + 1 + 2 + 1 + 3;
    if let Some((detached_event, holder_event)) = events {
        let exclusive = written_in(&snapshot, "generate_exclusive");
        let mut found = states(&exclusive);
        found.sort_by_key(|state| format!("{state:?}"));
        assert_eq!(found, [Some(Blocked), Some(Ready)], "{what}");
        let begun = written_in(&snapshot, "coordinator_body");
        let event = |handle| Some(Event { handle, fulfilled: false });
        let mut found: Vec<_> = begun.iter().map(|(_, task)| (task.state.get(), task.event.flat())).collect();
        found.sort_by_key(|(state, _)| format!("{state:?}"));
        assert_eq!(found, [(Some(Detached), event(detached_event)), (Some(Running), event(holder_event))], "{what}");
        children += 2 + 1;
    }
    assert_eq!(snapshot.tasks[parent.0].unfinished_children.get(), Some(children), "{what}");
    assert!(snapshot.more_tasks.is_empty(), "{what}");
    running.release().unwrap_or_else(|error| panic!("{what}: {error:?}"));
}

#[test]
fn queued_tasks_are_listed_with_all_that_is_known_of_them() {
    for library in libraries() {
        check_queued(&library, false);
        check_queued(&library, true);
    }
}

/// Tasks that are blocked keep the address of the task that generated them after that is over.
#[test]
fn blocked_tasks_of_a_finished_task_have_no_generating_task() {
    for library in libraries() {
        let what = &library.what;
        let running = start(&library, "tasks_queued", &[("QUEUED_ORPHANS", "1")]);
        let (snapshot, ()) = look(&running, |_| ());
        assert!(snapshot.issues.is_empty(), "{what}: {:?}", snapshot.issues);
        let orphans = written_in(&snapshot, "generate_orphan");
        assert_eq!(states(&orphans).iter().filter(|state| **state == Some(TaskState::Blocked)).count(), 2, "{what}");
        for (_, task) in &orphans {
            let Fact::Unknown { why } = &task.generating else { panic!("{what}: {:?}", task.generating) };
            assert!(why.to_string().contains("its generating task has finished"), "{what}: {why}");
        }
        // Not released: libgomp follows the stale address itself once these tasks can run, and may crash (seen with GCC 10.2).
        drop(running);
    }
}

/// Of many tasks that are alike the first in the chain are listed, and the others counted.
#[test]
fn a_long_chain_of_dependent_tasks_is_counted() {
    const LINKS: u64 = 20_000;
    for library in libraries() {
        let what = &library.what;
        let running = start(&library, "tasks_queued", &[("QUEUED_CHAIN", &LINKS.to_string())]);
        let (snapshot, ()) = look(&running, |_| ());
        assert!(snapshot.issues.is_empty(), "{what}: {:?}", snapshot.issues);
        let listed = written_in(&snapshot, "generate_link");
        let blocked = listed.iter().filter(|(_, task)| task.state.get() == Some(TaskState::Blocked)).count() as u64;
        assert_eq!((listed.len() as u64, blocked), (1001, 1000), "{what}");
        let [more] = &snapshot.more_tasks[..] else { panic!("{what}: {:?}", snapshot.more_tasks) };
        assert_eq!(more.count, LINKS - 1001, "{what}");
        assert!(listed.iter().any(|(id, _)| *id == more.like), "{what}");
        let first = listed.iter().find(|(_, task)| task.state.get() == Some(TaskState::Ready)).expect("the first link");
        let mut at = first.0;
        for _ in 0..1000 {
            at = listed.iter().find(|(_, task)| task.predecessors == [at]).expect("the next link").0;
        }
        running.release().unwrap_or_else(|error| panic!("{what}: {error:?}"));
    }
}

/// What the program `loops_state` is to be seen in.
#[derive(Debug, PartialEq)]
struct Standing {
    kind: Option<LoopKind>,
    schedule: Option<LoopSchedule>,
    chunk: Option<u64>,
    /// Where the next chunk begins, the end, the step.
    extent: [Option<i64>; 3],
    completed: Option<u32>,
    /// It is the turn of the coordinator, where it is known whose.
    turn: Option<bool>,
}

fn standing(library: &Library, which: &str) -> Vec<(Standing, Vec<u32>)> {
    let what = &library.what;
    let running = start(library, "loops_state", &[("LOOP", which)]);
    let speaker = running.truth.coordinator;
    let (snapshot, ()) = look(&running, |_| ());
    assert!(snapshot.issues.is_empty(), "{what}: {:?}", snapshot.issues);
    running.release().unwrap_or_else(|error| panic!("{what}: {which}: {error:?}"));
    let coordinator = snapshot.thread_by_lwp(speaker).and_then(|t| t.thread_num.get());
    let all = snapshot.loops.iter().map(|l| {
        assert!(l.iterations.value().is_none() && l.handed_out.value().is_none(), "{what}: {which}: {l:?}");
        let standing = Standing {
            kind: l.kind.get(),
            schedule: l.schedule.get(),
            chunk: l.chunk.get(),
            extent: [l.next.get(), l.end.get(), l.step.get()],
            completed: l.completed.get(),
            turn: l.ordered_turn.get().map(|turn| turn == coordinator),
        };
        (standing, l.members.clone())
    });
    all.collect()
}

#[test]
fn loops_are_as_far_as_their_threads_have_come() {
    use LoopSchedule::{Dynamic, Guided};
    let some = Some(LoopKind::LoopOrSections);
    for library in libraries() {
        let check = |which: &str, kind, schedule, chunk, extent: [Option<i64>; 3], completed, turn| {
            let found = standing(&library, which);
            let expected = Standing {
                kind,
                schedule: Some(schedule),
                chunk: Some(chunk),
                extent,
                completed: Some(completed),
                turn,
            };
            let inside = if which == "end" { vec![0] } else { vec![0, 1, 2] };
            assert_eq!(found, [(expected, inside)], "{which} on {}", library.what);
        };
        let at = |next, end, step| [Some(next), Some(end), Some(step)];
        check("dynamic", some, Dynamic, 7, at(142, 1100, 2), 0, None);
        check("combined", some, Dynamic, 7, at(142, 1100, 2), 0, None);
        check("around", some, Dynamic, 7, at(142, 1100, 2), 0, None);
        check("down", some, Dynamic, 5, at(955, 0, -3), 0, None);
        check("sections", None, Dynamic, 1, at(4, 4, 1), 0, None);
        check("ordered", None, Dynamic, 1, at(3, 3, 1), 0, Some(true));
        check("last", None, Dynamic, 2, at(6, 6, 1), 0, None);
        // Who finds nothing left has taken it all the same.
        check("end", None, Dynamic, 1, at(3, 1, 1), 2, None);
        // Signed or unsigned is not recorded.
        check("unsigned", some, Dynamic, 4, at(i64::MAX - 87, i64::MIN + 1000, 1), 0, None);
        // Of what is left each gets a third: 334, 222 and 148.
        check("guided", Some(LoopKind::Loop), Guided, 10, at(704, 1000, 1), 0, None);
    }
}

#[test]
fn static_ordered_loop_says_whose_turn_it_is() {
    for library in libraries() {
        let running = start(&library, "loops_state", &[("LOOP", "static_ordered")]);
        let (snapshot, ()) = look(&running, |_| ());
        assert!(snapshot.issues.is_empty(), "{}: {:?}", library.what, snapshot.issues);
        let [found] = &snapshot.loops[..] else { panic!("{}: {:?}", library.what, snapshot.loops) };
        assert_eq!(found.ordered_turn.get(), Some(Some(1)), "{}: {found:?}", library.what);
        running.release().unwrap_or_else(|error| panic!("{}: {error:?}", library.what));
    }
}

/// Work shares of loops that were cancelled, with iterations left, are used again.
#[test]
fn single_after_cancelled_loops_is_no_loop() {
    for library in libraries() {
        let running = start(&library, "loops_state", &[("LOOP", "single"), ("OMP_CANCELLATION", "true")]);
        let (snapshot, ()) = look(&running, |_| ());
        assert!(snapshot.issues.is_empty(), "{}: {:?}", library.what, snapshot.issues);
        assert!(!snapshot.loops.is_empty(), "{}: no work share was used again", library.what);
        for found in &snapshot.loops {
            assert_eq!(found.kind.get(), None, "{}: {found:?}", library.what);
        }
        running.release().unwrap_or_else(|error| panic!("{}: {error:?}", library.what));
    }
}

/// A worker that has left its pool keeps the address of its last team, which is freed.
#[test]
fn worker_on_its_way_to_its_end_is_in_no_team() {
    for library in libraries() {
        let what = &library.what;
        let running = start(&library, "leaving", &[]);
        let (snapshot, ()) = look(&running, |_| ());
        assert!(snapshot.issues.is_empty(), "{what}: {:?}", snapshot.issues);
        assert_eq!(snapshot.teams.len(), 1, "{what}");
        let leaver = running.truth.threads.iter().find(|thread| thread.role == "leaver").expect("a thread that ends");
        let thread = snapshot.thread_by_lwp(leaver.lwp).expect("a thread of libgomp");
        assert!(thread.team.value().is_none() && thread.task.value().is_none(), "{what}: {thread:?}");
        running.release().unwrap_or_else(|error| panic!("{what}: {error:?}"));
    }
}

/// A thread that never sleeps waits for the same things as one that does.
#[test]
fn spinning_waits_are_recognised() {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    if processors < 2 {
        return Skip::because("one processor: libgomp lets no threads spin").show();
    }
    for library in libraries() {
        for (wanted, kind) in [
            ("barrier", WaitKind::Barrier),
            ("lock", WaitKind::Mutex),
            ("nest lock", WaitKind::Lock),
            ("critical", WaitKind::Critical),
        ] {
            let what = format!("{wanted} on {}", library.what);
            let spins = [("OMP_WAIT_POLICY", "active"), ("GOMP_SPINCOUNT", "infinity"), ("OMPD_TRUTH_SPINS", "1")];
            let running = start(&library, "spinning", &[&spins[..], &[("SPIN", wanted)]].concat());
            let waiter =
                running.truth.threads.iter().find(|t| t.lwp != running.truth.coordinator).expect("a waiter").lwp;
            // It may be stopped on its way round between two calls.
            let seen = (0..100).find_map(|_| {
                let (snapshot, ()) = look(&running, |_| ());
                let thread = snapshot.thread_by_lwp(waiter).expect("a thread of libgomp");
                let wait = thread.wait.value().cloned().flatten()?;
                let lock = wait.lock.and_then(|id| snapshot.lock(id).cloned());
                Some((wait, lock))
            });
            let (wait, lock) = seen.unwrap_or_else(|| panic!("{what}: never seen to wait"));
            assert_eq!((wait.kind, wait.asleep, wait.over.get()), (kind, Some(false), Some(false)), "{what}: {wait:?}");
            match lock {
                None => assert_eq!(kind, WaitKind::Barrier, "{what}: {wait:?}"),
                Some(lock) => {
                    assert_eq!((lock.held.get(), &lock.waiters[..]), (Some(true), &[waiter][..]), "{what}: {lock:?}");
                    let nest = kind == WaitKind::Lock;
                    assert_eq!(lock.depth, nest.then_some(2), "{what}: {lock:?}");
                    assert_eq!(matches!(lock.owner.flat(), Some(Owner::Task(_))), nest, "{what}: {lock:?}");
                }
            }
            running.release().unwrap_or_else(|error| panic!("{what}: {error:?}"));
        }
    }
}

/// Links that lead astray end the walk they are on, with a word about it; what was read before stays, and all the rest.
#[test]
fn corrupted_queues_are_told_and_do_no_harm() {
    let Some(library) = libraries().into_iter().next() else { return };
    let running = start(&library, "tasks_queued", &[("QUEUED_CHAIN", "100")]);
    let mut live = Live::open(running.pid, &OpenOptions::default()).expect("the process opens");
    let runtimes = discover(&live, &[]);
    let [runtime] = &runtimes[..] else { panic!("{} runtimes", runtimes.len()) };
    let offset = |name: &str| {
        let entry =
            runtime.info().layout.iter().find(|entry| entry.name == name).unwrap_or_else(|| panic!("no {name}"));
        u64::from_str_radix(entry.value.trim_start_matches("0x"), 16).expect("a number")
    };
    let (link, list) = (offset("gomp_task.pnode"), offset("gomp_task.dependers"));
    live.stop().expect("the process stops");
    let good = runtime.snapshot(&live);
    assert!(good.issues.is_empty(), "{:?}", good.issues);
    let in_state = |s: &RawSnapshot, state| s.tasks.iter().filter(|t| t.state.get() == Some(state)).count();
    let ready: Vec<Addr> =
        good.tasks.iter().filter(|t| t.state.get() == Some(TaskState::Ready)).map(|t| t.descriptor).collect();
    assert!(ready.len() > 5, "{ready:?}");
    // The list goes by the order in which the tasks were generated; where they lie does not matter.
    let next = ready[2].offset(link);
    let data = variable(&live, "truth_progress");
    for astray in [next.0, ready[0].offset(link).0, 0, 0x10, u64::MAX - 7, data.0, 0x5a5a_5a5a_5a5a_5a5a] {
        let patched = ChangedTarget::new(&live).with_bytes(next, &astray.to_le_bytes());
        let bad = runtime.snapshot(&patched);
        let told = bad.issues.iter().any(|i| i.subject.starts_with("task queue of team"));
        assert!(told, "{astray:#x}: {:?}", bad.issues);
        assert!(
            bad.issues.iter().any(|i| i.what.to_string().contains("unfinished tasks were not found")),
            "{:?}",
            bad.issues
        );
        assert!((2..=3).contains(&in_state(&bad, TaskState::Ready)), "{astray:#x}");
        for state in [TaskState::Running, TaskState::Suspended, TaskState::Detached] {
            assert_eq!(in_state(&bad, state), in_state(&good, state), "{astray:#x}: {state:?}");
        }
        assert_eq!(format!("{:?}", bad.threads), format!("{:?}", good.threads), "{astray:#x}");
        let counted = |task: &&RawTask| task.unfinished_children.get().is_some_and(|n| n > 5);
        assert!(!bad.tasks.iter().any(|task| counted(&task)), "{astray:#x}: children of half a list");
    }
    // A list of dependent tasks without end: no more is believed than tasks there are.
    let writer = good.tasks.iter().find(|t| !t.predecessors.is_empty()).expect("a blocked task").predecessors[0];
    let dependers = live.read_ptr(good.tasks[writer.0].descriptor.offset(list)).expect("its list");
    for (at, word) in [(dependers, u64::MAX), (dependers.offset(16), 0x10), (dependers.offset(16), ready[0].0)] {
        let bad = runtime.snapshot(&ChangedTarget::new(&live).with_bytes(at, &word.to_le_bytes()));
        assert!(bad.issues.iter().any(|i| i.subject == "dependences of tasks"), "{word:#x}: {:?}", bad.issues);
        assert_eq!(in_state(&bad, TaskState::Ready), ready.len(), "{word:#x}");
        assert!(in_state(&bad, TaskState::Blocked) < in_state(&good, TaskState::Blocked) + 5, "{word:#x}");
    }
    live.resume();
    running.release().expect("the program goes on");
}

/// The system call that a thread sleeps in.
fn call_of(live: &Live, lwp: i32) -> Option<Syscall> {
    live.threads().iter().find(|thread| thread.lwp == lwp)?.registers.as_ref().ok()?.syscall
}

/// A thread that has been woken and has not yet looked at its word again, because it has no processor, waits as before.
#[test]
fn woken_thread_still_waits_for_its_word() {
    for library in libraries() {
        let what = &library.what;
        let running = start(&library, "barrier_missing", &[]);
        let waiter = running.truth.threads.iter().find(|thread| thread.lwp != running.truth.coordinator);
        let waiter = waiter.expect("a waiter").lwp;
        let mut live = Live::open(running.pid, &OpenOptions::default()).expect("the process opens");
        let runtimes = discover(&live, &[]);
        live.stop().expect("the process stops");
        let mut threads = live.threads().to_vec();
        for thread in threads.iter_mut().filter(|thread| thread.lwp == waiter) {
            let registers = thread.registers.as_mut().expect("registers");
            // The one system call of a thread that sleeps at a barrier is the futex.
            registers.returned = registers.syscall.take();
        }
        assert!(call_of(&live, waiter).is_some(), "{what}: it sleeps");
        let woken = ChangedTarget::new(&live).with_threads(threads);
        let raw = runtimes[0].snapshot(&woken);
        let thread = raw.threads.iter().find(|thread| thread.lwp == Some(waiter)).expect("a thread of libgomp");
        let wait = thread.wait.value().cloned().flatten().unwrap_or_else(|| panic!("{what}: {:?}", thread.wait));
        assert_eq!((wait.kind, wait.asleep, wait.over.get()), (WaitKind::Barrier, Some(false), Some(false)), "{what}");
        assert!(!thread.at_work, "{what}");
        live.resume();
        running.release().unwrap_or_else(|error| panic!("{what}: {error:?}"));
    }
}

/// A thread in the middle of libgomp's code is at work there, unless its task has a record of a wait for others.
#[test]
fn thread_in_the_code_of_libgomp_is_at_work_unless_its_task_waits() {
    for library in libraries() {
        let what = &library.what;
        let running = start(&library, "tasks", &[]);
        let mut live = Live::open(running.pid, &OpenOptions::default()).expect("the process opens");
        let runtimes = discover(&live, &[]);
        live.stop().expect("the process stops");
        let begin = live.modules().iter().filter(|module| module.base() == runtimes[0].info().base);
        let begin = begin.filter_map(|module| module.symbol("GOMP_task")).next().expect("GOMP_task").addr;
        for truth in &running.truth.threads {
            let mut threads = live.threads().to_vec();
            for thread in threads.iter_mut().filter(|thread| thread.lwp == truth.lwp) {
                let registers = thread.registers.as_mut().expect("registers");
                (registers.pc, registers.syscall, registers.returned) = (begin, None, None);
            }
            let raw = runtimes[0].snapshot(&ChangedTarget::new(&live).with_threads(threads));
            let thread = raw.threads.iter().find(|thread| thread.lwp == Some(truth.lwp)).expect("a thread of libgomp");
            assert_eq!(thread.wait.why().map(Reason::code), Some("gomp-not-in-wait-loop"), "{what}: {truth:?}");
            assert_eq!(thread.at_work, truth.wait != Wait::Taskwait, "{what}: {truth:?}");
        }
        live.resume();
        running.release().unwrap_or_else(|error| panic!("{what}: {error:?}"));
    }
}
