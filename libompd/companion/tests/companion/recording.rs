//! What is recorded is what the program did, and what it adds to what is known from outside.

use std::collections::BTreeMap;

use ompd_inspection::history::{History, ThreadHistory};
use ompt_record::event::Event;
use test_programs::{
    Case, Env, HANGS, Launch, Opt, Runtime, Skip, Toolchain, build, can_build, combinations, compare_verdicts,
};

use crate::common::{Held, answers, by_libraries, companion, history, libraries, program, report, start};

/// What a program that counts has done, by its own account.
struct Printed {
    /// By kernel id: locks, nested locks, critical sections, barriers.
    threads: BTreeMap<u64, [u64; 4]>,
    tasks: u64,
    tasks_line: u32,
    queued_line: u32,
    /// Flushes, master regions, loops, single regions, waits for tasks and for groups, tasks with dependences, locks initialised and
    /// destroyed.
    did: [u64; 9],
    /// Reductions, sections constructs, ordered and atomic regions, chunks of loops with a dynamic schedule.
    more: [u64; 5],
    barrier_line: u32,
    regions: u64,
    /// Thread, lock and line.
    held: (u64, u64, u32),
    waits: (u64, u64, u32),
}

fn number(text: &str) -> u64 {
    text.parse().expect("a number")
}

fn told(running: &Held) -> Printed {
    let one = |word: &str| {
        running.told(word).first().expect("it says so").iter().map(|w| (*w).to_owned()).collect::<Vec<_>>()
    };
    let place = |word: &str| {
        let words = one(word);
        (number(&words[0]), u64::from_str_radix(&words[1], 16).expect("an address"), number(&words[2]) as u32)
    };
    let threads = running.told("thread");
    let threads = threads.iter().map(|words| (number(words[0]), [1, 2, 3, 4].map(|at| number(words[at]))));
    Printed {
        threads: threads.collect(),
        tasks: number(&one("tasks")[0]),
        tasks_line: number(&one("tasks")[1]) as u32,
        did: one("did").iter().map(|word| number(word)).collect::<Vec<_>>().try_into().expect("nine numbers"),
        more: one("more").iter().map(|word| number(word)).collect::<Vec<_>>().try_into().expect("five numbers"),
        barrier_line: number(&one("barrier")[0]) as u32,
        queued_line: number(&one("queued")[0]) as u32,
        regions: number(&one("regions")[0]),
        held: place("held"),
        waits: place("waits"),
    }
}

fn count(thread: &ThreadHistory, which: impl Fn(&Event) -> bool) -> u64 {
    thread.events.iter().filter(|event| which(event)).count() as u64
}

fn line(history: &History, event: &Event) -> Option<u32> {
    history.places.get(&event.codeptr_ra).and_then(|place| place.line)
}

/// Numbers of callbacks, and of kinds.
const PARALLEL_BEGIN: u8 = 3;
const PARALLEL_END: u8 = 4;
const DEPENDENCES: u8 = 18;
const WORK: u8 = 20;
const MASKED: u8 = 21;
const LOCK_INIT: u8 = 24;
const LOCK_DESTROY: u8 = 25;
const FLUSH: u8 = 29;
const CANCEL: u8 = 30;
const REDUCTION: u8 = 31;
const DISPATCH: u8 = 32;
const TASK_DEPENDENCE: u8 = 19;
const SECTIONS: u16 = 2;
const ATOMIC: u16 = 6;
const ORDERED: u16 = 7;
const CHUNK: u16 = 3;
/// A barrier of any kind, as older runtimes tell of it, and an explicit one.
const BARRIERS: [u16; 2] = [1, 3];
const TASKWAIT: u16 = 5;
const TASKGROUP: u16 = 6;
/// A worksharing loop, and since OpenMP 5.2 its schedule.
const LOOPS: &[u16] = &[1, 10, 11, 12, 13];
const SINGLE_EXECUTOR: u16 = 3;
const TASK_CREATE: u8 = 5;
/// A flag of tasks.
const EXPLICIT: u32 = 4;
const TASK_SCHEDULE: u8 = 6;
const IMPLICIT_TASK: u8 = 7;
const MUTEX_ACQUIRE: u8 = 26;
const MUTEX_ACQUIRED: u8 = 27;
const MUTEX_RELEASED: u8 = 17;
const NEST_LOCK: u8 = 28;
const SYNC_REGION: u8 = 23;
const SYNC_REGION_WAIT: u8 = 16;
const LOCK: u16 = 1;
const NEST: u16 = 3;
const CRITICAL: u16 = 5;
const COMPLETE: u16 = 1;

/// Runtimes that say "always" to a callback, and never make it.
const SILENT: [(&str, u8); 3] =
    [("openmp-2020.0.133-", REDUCTION), ("openmp-2020.0.133-", DISPATCH), ("openmp-2021.4.0-", DISPATCH)];

fn compare(what: &str, told: &Printed, history: &History, answers: &[u8]) {
    // To pause, and to start again.
    assert_eq!(history.command, Some((1, 2)), "{what}");
    assert_eq!(history.threads.len(), 3, "{what}");
    for thread in &history.threads {
        let did = told.threads.get(&thread.lwp).unwrap_or_else(|| panic!("{what}: nobody is thread {}", thread.lwp));
        let what = format!("{what}, thread {}", thread.lwp);
        assert_eq!((thread.torn, thread.overwritten, thread.not_shown), (0, 0, 0), "{what}");
        assert_eq!(thread.total, thread.events.len() as u64, "{what}");
        assert!(thread.events.is_sorted_by_key(|event| event.time), "{what}");
        assert!(thread.events.iter().all(|event| event.time > 0), "{what}");
        let mutex = |kind, of| count(thread, |event| event.kind == kind && event.sub == of);
        let is_gate = |event: &Event| event.sub == LOCK && event.other == told.held.1;
        let of_gate = |kind| count(thread, |event| event.kind == kind && is_gate(event));
        let [locks, nested, criticals, barriers] = *did;
        for kind in [MUTEX_ACQUIRE, MUTEX_ACQUIRED, MUTEX_RELEASED] {
            assert_eq!(mutex(kind, LOCK) - of_gate(kind), locks, "{what}: locks, callback {kind}");
            assert_eq!(mutex(kind, CRITICAL), criticals, "{what}: critical sections, callback {kind}");
        }
        // The first time the lock is acquired, then it is held once more, and once less.
        assert_eq!(
            mutex(MUTEX_ACQUIRED, NEST) + count(thread, |e| e.kind == NEST_LOCK && e.endpoint == 1),
            nested,
            "{what}"
        );
        let at_barrier = |event: &Event| {
            BARRIERS.contains(&event.sub) && line(history, event) == Some(told.barrier_line) && event.endpoint == 1
        };
        let is_barrier = |event: &Event| event.kind == SYNC_REGION && at_barrier(event);
        assert_eq!(count(thread, is_barrier), barriers, "{what}: barriers");
        let is_wait = |event: &Event| event.kind == SYNC_REGION_WAIT && at_barrier(event);
        assert_eq!(count(thread, is_wait), barriers, "{what}: waits at barriers");
        // The region and the task of a barrier are those of the implicit task that meets it.
        let mut implicit = None;
        for event in &thread.events {
            if event.kind == IMPLICIT_TASK && event.endpoint == 1 {
                implicit = Some((event.region, event.task));
            } else if is_barrier(event) || is_wait(event) {
                assert_eq!(Some((event.region, event.task)), implicit, "{what}: {event:?}");
            }
        }
        let holds = u64::from(thread.lwp == told.held.0);
        let waits = u64::from(thread.lwp == told.waits.0);
        let gate = [MUTEX_ACQUIRE, MUTEX_ACQUIRED, MUTEX_RELEASED].map(of_gate);
        assert_eq!(gate, [holds + waits, holds, 0], "{what}: the last lock");
        if waits == 1 {
            let last = thread.events.last().expect("it has done something");
            assert_eq!(
                (last.kind, last.other),
                (MUTEX_ACQUIRE, told.waits.1),
                "{what}: the last thing it did is to wait"
            );
            assert_eq!(line(history, last), Some(told.waits.2), "{what}");
        }
    }
    let all = history.by_time();
    // In the draft of 2018 the initial task is created as well.
    let is_creation = |event: &&Event| event.kind == TASK_CREATE && event.flags & EXPLICIT != 0;
    let creations = || all.iter().map(|(_, event)| *event).filter(is_creation);
    let at = |wanted: u32| creations().filter(move |event| line(history, event) == Some(wanted));
    assert_eq!(at(told.queued_line).count(), 1, "{what}: the task that nobody has begun");
    let created: Vec<&Event> = creations().filter(|event| line(history, event) != Some(told.queued_line)).collect();
    assert_eq!(at(told.tasks_line).count() as u64, told.tasks, "{what}: tasks");
    let counted = |wanted: &dyn Fn(&Event) -> bool| all.iter().filter(|(_, event)| wanted(event)).count() as u64;
    let begun = |kind: u8, subs: &[u16]| {
        counted(&|event| event.kind == kind && event.endpoint == 1 && (subs.is_empty() || subs.contains(&event.sub)))
    };
    let dependent = created.iter().filter(|event| event.sub == 1).count() as u64;
    let did = [
        counted(&|event| event.kind == FLUSH),
        begun(MASKED, &[]),
        begun(WORK, LOOPS),
        begun(WORK, &[SINGLE_EXECUTOR]),
        begun(SYNC_REGION, &[TASKWAIT]),
        begun(SYNC_REGION, &[TASKGROUP]),
        dependent,
        counted(&|event| event.kind == LOCK_INIT),
        counted(&|event| event.kind == LOCK_DESTROY),
    ];
    assert_eq!(did, told.did, "{what}");
    let mutexes = |kind, of| counted(&|event| event.kind == kind && event.sub == of);
    let [reductions, sections, ordered, atomics, chunks] = told.more;
    // Some runtimes have no callback for these, and say so.
    let told_of = |kind: u8, times: u64| {
        let made = (3..=5).contains(&answers[usize::from(kind) - 1]);
        let silent = SILENT.iter().any(|(name, of)| what.contains(name) && *of == kind);
        if made && !silent { times } else { 0 }
    };
    assert_eq!(begun(REDUCTION, &[]), told_of(REDUCTION, reductions), "{what}: reductions");
    assert_eq!(begun(WORK, &[SECTIONS]), sections, "{what}: sections");
    for kind in [MUTEX_ACQUIRE, MUTEX_ACQUIRED, MUTEX_RELEASED] {
        assert_eq!(mutexes(kind, ORDERED), ordered, "{what}: ordered regions, callback {kind}");
        assert_eq!(mutexes(kind, ATOMIC), atomics, "{what}: atomic regions, callback {kind}");
    }
    let is_chunk = |event: &Event| event.kind == DISPATCH && event.sub == CHUNK;
    // Some runtimes also tell of the chunk of each thread in a loop with a static schedule.
    let with_static = [chunks, chunks + history.threads.len() as u64].map(|chunks| told_of(DISPATCH, chunks));
    assert!(with_static.contains(&counted(&is_chunk)), "{what}: {} chunks of {chunks}", counted(&is_chunk));
    let pairs: Vec<_> = all.iter().filter(|(_, e)| e.kind == TASK_DEPENDENCE).map(|(_, e)| (e.task, e.other)).collect();
    let of_pair: Vec<u64> = created.iter().filter(|event| event.sub == 1).map(|event| event.task).collect();
    assert_eq!(pairs, [(of_pair[0], of_pair[1])], "{what}: the second task waits for the first");
    assert_eq!(created.len() as u64, told.tasks + dependent, "{what}: all tasks that are over");
    // One dependence each, on the same variable, and the second task waits for the first.
    let dependences: Vec<&Event> =
        all.iter().map(|(_, event)| *event).filter(|event| event.kind == DEPENDENCES).collect();
    assert_eq!(dependences.len() as u64, dependent, "{what}: dependences");
    assert!(
        dependences.iter().all(|event| event.other == dependences[0].other && event.flags == 1),
        "{what}: {dependences:?}"
    );
    let complete = all.iter().filter(|(_, e)| e.kind == TASK_SCHEDULE && e.sub == COMPLETE).map(|(_, e)| e.task);
    let (mut complete, mut ids): (Vec<u64>, Vec<u64>) = (complete.collect(), created.iter().map(|e| e.task).collect());
    complete.sort_unstable();
    ids.sort_unstable();
    assert_eq!(complete, ids, "{what}: every task that was created was completed, by its number");
    ids.dedup();
    assert_eq!(ids.len(), created.len(), "{what}: no two tasks have the same number");
    let regions = all.iter().filter(|(_, e)| e.kind == PARALLEL_BEGIN).count() as u64;
    assert_eq!(regions, told.regions, "{what}: regions");
    // The last one is not over.
    assert_eq!(counted(&|event| event.kind == PARALLEL_END), told.regions - 1, "{what}: regions that are over");
}

/// Waiting threads sleep, and each thread reduces on its own.
const VARIABLES: &[(&str, &str)] = &[("KMP_BLOCKTIME", "0"), ("KMP_FORCE_REDUCTION", "critical")];

#[test]
fn everything_is_recorded_once() {
    let Some(program) = program("recorded", &[]) else { return };
    let mut tried = 0;
    for (library, what) in libraries() {
        let Some(running) = start(&program, library.path(), &what, VARIABLES) else { continue };
        // The thread that waits for the lock is on its way there.
        test_programs::await_all_blocked(running.pid(), 3, true).expect("it comes to rest");
        compare(&what, &told(&running), &history(running.pid()), &answers(running.pid()));
        running.end();
        tried += 1;
    }
    assert!(tried > 0);
}

/// In a small ring there are the last events, and it is known how many are gone.
#[test]
fn a_small_ring_has_the_last_events() {
    let Some(program) = program("recorded", &[]) else { return };
    let (library, what) = libraries().into_iter().next().expect("a libomp");
    let whole = {
        let running = start(&program, library.path(), &what, &[]).expect("it runs");
        test_programs::await_all_blocked(running.pid(), 3, true).expect("it comes to rest");
        let whole = history(running.pid());
        running.end();
        whole
    };
    let small = [("OMPT_COMPANION_EVENTS", "64")];
    let running = start(&program, library.path(), &what, &small).expect("it runs");
    test_programs::await_all_blocked(running.pid(), 3, true).expect("it comes to rest");
    let history = history(running.pid());
    let busiest = history.threads.iter().max_by_key(|thread| thread.total).expect("threads");
    assert!(busiest.total > 64, "{} events are not enough for this test", busiest.total);
    for thread in &history.threads {
        assert_eq!(thread.events.len() as u64, thread.total.min(64));
        assert_eq!(thread.overwritten, thread.total.saturating_sub(64));
        let last = thread.events.last().expect("events");
        assert_eq!(last.position + 1, thread.total);
        assert!(thread.events.windows(2).all(|pair| pair[0].position + 1 == pair[1].position));
    }
    // Both did the same, in another order and by other threads at most.
    let most = |history: &History| history.threads.iter().map(|thread| thread.total).sum::<u64>();
    assert!(most(&whole).abs_diff(most(&history)) < 100, "{} and {}", most(&whole), most(&history));
    running.end();
}

/// Who has a lock, where it was acquired, and where tasks come from, as the block remembers it.
#[test]
fn what_is_held_is_remembered() {
    use ompd_runtime::companion::{Words, find, words};
    let Some(program) = program("recorded", &[]) else { return };
    let mut tried = 0;
    for (library, what) in libraries() {
        let Some(running) = start(&program, library.path(), &what, &[("KMP_BLOCKTIME", "0")]) else { continue };
        test_programs::await_all_blocked(running.pid(), 3, true).expect("it comes to rest");
        let told = told(&running);
        let history = history(running.pid());
        let live = ompd_process::Live::open(running.pid(), &ompd_process::OpenOptions::default()).expect("it is there");
        let block = find(&live, &words(&live)).expect("a companion").expect("a block");
        let words = Words::of(&live);
        let (rings, unreadable) = block.rings(&words);
        assert_eq!((rings.len(), unreadable), (3, 0), "{what}");
        for ring in rings {
            let held = block.held(&words, ring).expect("it can be read");
            let locks: Vec<u64> = held.iter().map(|held| held.wait_id).collect();
            let expected = if ring.values.lwp == told.held.0 { vec![told.held.1] } else { vec![] };
            assert_eq!(locks, expected, "{what}: thread {}", ring.values.lwp);
            for held in held {
                let place = history.places.get(&held.codeptr_ra).expect("it is an event's place as well");
                assert_eq!(place.line, Some(told.held.2), "{what}");
            }
        }
        assert_eq!(history.names.get(&told.held.1).map(String::as_str), Some("gate"), "{what}");
        // The region that is not over, and none that is.
        let region = history.by_time().iter().filter(|(_, e)| e.kind == PARALLEL_BEGIN).map(|(_, e)| e.region).max();
        let region = region.expect("a region");
        let creation = block.region(&words, region).expect("it can be read").expect("it is remembered");
        assert_eq!((creation.id, creation.detail), (region, 3), "{what}");
        assert_eq!(block.region(&words, region - 1), Ok(None), "{what}");
        running.end();
        tried += 1;
    }
    assert!(tried > 0);
}

/// The report names the lock by its variable, knows who has it and since where, and where the task was created that waits.
#[test]
fn the_report_knows_more() {
    let Some(program) = program("recorded", &[]) else { return };
    let (mut tried, mut by_companion) = (0, 0);
    for (library, what) in libraries() {
        let Some(running) = start(&program, library.path(), &what, &[("KMP_BLOCKTIME", "0")]) else { continue };
        test_programs::await_all_blocked(running.pid(), 3, true).expect("it comes to rest");
        let told = told(&running);
        let report = report(&running.pid().to_string());
        let runtimes = report["runtimes"].as_array().expect("runtimes");
        assert_eq!(runtimes.len(), 1, "{what}");
        // Where little is known of the runtime's locks and tasks, there is nothing to add to.
        if !runtimes[0]["missing"].as_array().is_none_or(Vec::is_empty) {
            running.end();
            continue;
        }
        let locks: Vec<_> = runtimes[0]["locks"].as_array().expect("locks").iter().collect();
        assert_eq!(locks.len(), 1, "{what}: {locks:?}");
        let lock = locks[0];
        assert_eq!(lock["name"], "gate", "{what}: {lock}");
        assert_eq!(lock["object"], format!("{:#018x}", told.held.1), "{what}: {lock}");
        assert_eq!(lock["owner"]["value"]["lwp"], told.held.0, "{what}: {lock}");
        assert_eq!(lock["acquired"]["location"]["line"], told.held.2, "{what}: {lock}");
        assert_eq!(lock["waiters"], serde_json::json!([told.waits.0]), "{what}: {lock}");
        by_companion += u32::from(lock["owner"]["origin"] == "companion");
        let tasks = runtimes[0]["tasks"].as_array().expect("tasks").iter();
        let queued: Vec<_> = tasks.filter(|task| task["state"]["value"] == "ready").collect();
        assert_eq!(queued.len(), 1, "{what}: {queued:?}");
        assert_eq!(queued[0]["created"]["location"]["line"], told.queued_line, "{what}: {}", queued[0]);
        running.end();
        tried += 1;
    }
    assert!(tried > 0 && by_companion > 0, "{tried} runtimes, {by_companion} owners from the companion");
}

/// In a PID namespace, as containers have, the companion knows its threads by other ids than who looks from outside.
#[test]
fn owners_in_a_pid_namespace() {
    let Some(program) = program("recorded", &[]) else { return };
    // A runtime in it looks itself up in the /proc of the namespace, as in a container.
    let enter = ["--pid", "--fork", "--kill-child", "--mount-proc"];
    let permitted = std::process::Command::new("unshare").args(enter).arg("true").output();
    if !permitted.as_ref().is_ok_and(|output| output.status.success()) {
        Skip::because(format!("no PID namespace can be made: {permitted:?}")).show();
        return;
    }
    let program = program.path.to_str().expect("a path of text");
    let [pid, fork, kill, mount] = enter;
    let tool = by_libraries();
    let mut tried = 0;
    for (library, what) in libraries() {
        let variables = [(tool.0, &*tool.1), ("KMP_BLOCKTIME", "0")];
        let arguments = [pid, fork, kill, mount, program];
        let unshare = std::path::Path::new("unshare");
        let Some(running) = Held::start(unshare, library.path(), &what, &variables, &arguments) else { continue };
        let children = format!("/proc/{0}/task/{0}/children", running.pid());
        let children = std::fs::read_to_string(children).expect("its children can be read");
        let inside: i32 = children.trim().parse().expect("it has one child");
        test_programs::await_all_blocked(inside, 3, true).expect("it comes to rest");
        let told = told(&running);
        let report = report(&inside.to_string());
        let runtime = &report["runtimes"][0];
        if !runtime["missing"].as_array().is_none_or(Vec::is_empty) {
            running.end();
            continue;
        }
        let lock = &runtime["locks"][0];
        assert_eq!(lock["acquired"]["location"]["line"], told.held.2, "{what}: {lock}");
        let owner = lock["owner"]["value"]["lwp"].as_i64().expect("its owner is known");
        let ids = std::fs::read_to_string(format!("/proc/{inside}/task/{owner}/status")).expect("it is a thread of it");
        let ids = ids.lines().find_map(|line| line.strip_prefix("NSpid:")).expect("its ids");
        assert_eq!(ids.split_whitespace().last(), Some(&*told.held.0.to_string()), "{what}: {lock}, {ids}");
        running.end();
        tried += 1;
    }
    assert!(tried > 0, "no runtime was tried");
}

/// Programs that hang get the verdict they expect, with the owners of all locks.
#[test]
fn verdicts_know_the_owners() {
    let file = companion().display().to_string();
    let (mut tried, mut differences) = (0, Vec::new());
    for (toolchain, runtime) in combinations().into_iter().filter(|(t, r)| *t == Toolchain::Clang && r.is_kmp()) {
        let about_locks = |case: &&Case| case.program.contains("lock");
        let here = HANGS.iter().filter(|case| case.works(toolchain, runtime));
        for case in here.filter(|case| runtime == Runtime::Libomp14 || about_locks(case)) {
            // That a thread waits for a lock of its own is nearer than that nobody runs the task which would unset it.
            if case.program == "hangs/task_never_run" && case.flags.is_empty() {
                continue;
            }
            if can_build(case.program, toolchain).expect("the sources are there").is_err() {
                continue;
            }
            let executable = build(case.program, toolchain, Opt::O2, case.flags).expect("it builds");
            let launch = Launch::new(&executable, runtime, Env::Settled).variable("OMP_TOOL_LIBRARIES", &file);
            let running = launch.start_hanging().expect("it hangs");
            let owners = case.program.starts_with("hangs/lock_cycle") || case.program.starts_with("hangs/self_lock");
            let owners = owners || running.truth.owners_recorded(runtime);
            let what = format!("{} {:?} {toolchain:?} on {runtime:?}", case.program, case.flags);
            differences.extend(case.look(|| {
                let comparison = compare_verdicts(&running.truth, &report(&running.pid.to_string()), owners);
                comparison.all().map(|line| format!("{what}: {line}")).collect()
            }));
            tried += 1;
        }
    }
    assert!(tried > 0 || combinations().is_empty());
    assert!(
        differences.is_empty(),
        "{tried} processes, {} differences:\n{}",
        differences.len(),
        differences.join("\n")
    );
}

/// With cancellation on, each thread says that it cancels, or finds that it was cancelled.
#[test]
fn cancellation_is_recorded() {
    let Some(program) = program("recorded", &[]) else { return };
    let mut tried = 0;
    for (library, what) in libraries() {
        let variables = [("OMP_CANCELLATION", "true")];
        let Some(running) = start(&program, library.path(), &what, &variables) else { continue };
        let history = history(running.pid());
        let all = history.by_time();
        let cancels: Vec<_> = all.iter().filter(|(_, event)| event.kind == CANCEL).collect();
        let flags: Vec<_> = cancels.iter().map(|(_, event)| ompt_record::ompt::cancel_flags(event.flags)).collect();
        assert!(!flags.is_empty() && flags.iter().all(|flags| flags.contains(&"loop")), "{what}: {flags:?}");
        assert!(flags.iter().any(|flags| flags.contains(&"activated")), "{what}: {flags:?}");
        running.end();
        tried += 1;
    }
    assert!(tried > 0);
}
