//! Nothing a target does may break the reader: every single read made to fail in turn, and memory full of lies.

use ompd_process::core::Core;
use ompd_process::{OpenOptions, Target};
use ompd_runtime::evidence::Evidence;
use ompd_runtime::merge::merge;
use ompd_runtime::model::{Fact, Owner, RuntimeSnapshot, TeamId, WaitKind};
use ompd_runtime::names::FileNames;
use ompd_runtime::{Runtime, discover};
use test_programs::{ChangedTarget, Env, Opt, Running, build, combinations};

/// A small mixing function: the same lies at every run.
fn mix(seed: u64, x: u64) -> u64 {
    let mut z = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ x;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A core in which bytes are replaced, at places and by values that depend on the address and this seed.
fn lying(core: &Core, seed: u64) -> ChangedTarget<&Core> {
    ChangedTarget::new(core).with_change(move |addr, buf| {
        for (byte, at) in buf.iter_mut().zip(addr.0..) {
            match mix(seed, at) % 48 {
                0 => *byte ^= 1 << (mix(seed, !at) % 8),
                1 => *byte = 0xff,
                2 => *byte = 0,
                _ => {}
            }
        }
    })
}

fn snapshots(runtimes: &[Box<dyn Runtime>], target: &dyn Target) -> Vec<RuntimeSnapshot> {
    let raw = runtimes.iter().map(|runtime| runtime.snapshot(target)).collect();
    merge(raw, &Evidence::of_names(&FileNames::of(target, runtimes, &|_| None)))
}

/// Everything said, without addresses of reads: two equal looks give equal text.
fn text(snapshots: &[RuntimeSnapshot]) -> String {
    let all = |s: &RuntimeSnapshot| {
        let queues = format!("{:?}{:?}{:?}", s.more_tasks, s.taskgroups, s.loops);
        format!("{:?}{:?}{:?}{:?}{queues}", s.threads, s.teams, s.tasks, s.locks)
    };
    snapshots.iter().map(all).collect()
}

/// References between the parts stay inside, whatever was read.
fn check_references(snapshot: &RuntimeSnapshot) {
    let teams = snapshot.teams.len();
    let tasks = snapshot.tasks.len();
    for (index, team) in snapshot.teams.iter().enumerate() {
        assert!(team.parent.flat().is_none_or(|p| p.0 < teams), "a parent team that does not exist");
        assert!(snapshot.at_barrier(TeamId(index)).iter().all(|n| (*n as usize) < team.members.len()));
    }
    for thread in &snapshot.threads {
        assert!(thread.team.flat().is_none_or(|t| t.0 < teams));
        assert!(thread.task.get().is_none_or(|t| t.0 < tasks));
    }
    for thread in &snapshot.threads {
        let Some(wait) = thread.wait.value().and_then(Option::as_ref) else { continue };
        assert!(wait.lock.is_none_or(|lock| {
            snapshot.lock(lock).is_some_and(|l| thread.lwp.is_some_and(|t| l.waiters.contains(&t)))
        }));
        assert!(wait.taskgroup.is_none_or(|group| snapshot.taskgroup(group).is_some()));
    }
    for lock in &snapshot.locks {
        assert!(!matches!(lock.owner.flat(), Some(Owner::Task(task)) if task.0 >= tasks));
    }
    for group in &snapshot.taskgroups {
        assert!(group.parent.flat().is_none_or(|parent| snapshot.taskgroup(parent).is_some()));
    }
    for place in &snapshot.loops {
        assert!(place.team.0 < teams);
    }
    assert!(snapshot.more_tasks.iter().all(|more| more.like.0 < tasks));
    for task in &snapshot.tasks {
        assert!(task.team.flat().is_none_or(|t| t.0 < teams));
        assert!(task.predecessors.iter().all(|before| before.0 < tasks));
        assert!(task.taskgroup.flat().is_none_or(|group| snapshot.taskgroup(group).is_some()));
        if let Fact::Known { value: Some(generating), .. } = task.generating {
            assert!(generating.0 < tasks);
        }
    }
}

/// A core of each test program on each runtime at hand.
fn cores(programs: &[&str], mut each: impl FnMut(&str, &Core)) {
    let mut seen = 0;
    for (toolchain, runtime) in combinations() {
        for program in programs {
            // Made for libgomp: built by GCC it crashes at its end on libomp, and clang finds fault with it.
            if *program == "tasks_queued" && runtime.is_kmp() {
                continue;
            }
            let executable = build(program, toolchain, Opt::O2, &[]).expect("the program builds");
            let running = Running::start(&executable, runtime, Env::Settled).expect("the program starts");
            let directory = tempfile::tempdir().expect("a directory for the core");
            match running.gcore(directory.path()).expect("gcore runs") {
                Ok(path) => {
                    let core = Core::open(&path, &OpenOptions::default()).expect("the core opens");
                    each(&format!("{program} {toolchain:?} on {runtime:?}"), &core);
                    seen += 1;
                }
                Err(skip) => skip.show(),
            }
            running.release().expect("the program goes on");
        }
    }
    assert!(seen > 0 || combinations().is_empty(), "no core could be made");
}

/// Long lists are left where they are at any moment: the rest is reported, what is missing is told, and nothing known becomes
/// wrong.
#[test]
fn time_may_be_over_at_any_moment() {
    let mut asked = 0;
    cores(&["tasks", "lock", "region_end", "tasks_queued"], |what, core| {
        let runtimes = discover(core, &[]);
        let whole = ChangedTarget::new(core);
        let good = snapshots(&runtimes, &whole);
        let complete = text(&good);
        asked += whole.asked();
        for n in 0..whole.asked() {
            let short = snapshots(&runtimes, &ChangedTarget::new(core).with_limit(n));
            short.iter().for_each(check_references);
            let told =
                short.iter().any(|s| s.issues.iter().any(|issue| issue.what.to_string().contains("--max-pause")));
            assert!(told || text(&short) == complete, "{what}: nothing is told, limit {n}");
            known_values_are_true(&good, &short, what, n);
            let threads = |all: &[RuntimeSnapshot]| all.iter().map(|s| s.threads.len()).sum::<usize>();
            assert_eq!(threads(&short), threads(&good), "{what}: limit {n}");
        }
    });
    assert!(asked > 0 || combinations().is_empty(), "no list was long");
}

/// The n-th read fails, for every n: the rest is reported, the failure is told, and nothing known becomes wrong.
#[test]
fn every_read_may_fail() {
    cores(&["nested", "tasks", "lock", "idle", "region_end", "tasks_queued"], |what, core| {
        let runtimes = discover(core, &[]);
        let whole = ChangedTarget::new(core);
        let good = snapshots(&runtimes, &whole);
        let total = whole.reads();
        let complete = text(&good);
        assert!(
            good.iter().all(|s| s.issues.is_empty()),
            "{what}: {:?}",
            good.iter().map(|s| &s.issues).collect::<Vec<_>>()
        );
        let mut silent = Vec::new();
        for n in 0..total {
            let broken = snapshots(&runtimes, &ChangedTarget::new(core).with_failing_read(n));
            broken.iter().for_each(check_references);
            let told = broken.iter().any(|s| !s.issues.is_empty()) || text(&broken).contains("Unknown");
            let same = text(&broken) == complete;
            if !told && !same {
                silent.push(n);
            }
            known_values_are_true(&good, &broken, what, n);
        }
        assert!(total > 5, "{what}: {total} reads can hardly be all");
        assert!(silent.is_empty(), "{what}: failed reads {silent:?} of {total} changed the report without a word");
    });
}

/// A thread known in both looks is described by the same values, or by fewer.
fn known_values_are_true(good: &[RuntimeSnapshot], broken: &[RuntimeSnapshot], what: &str, n: u64) {
    for (good, broken) in good.iter().zip(broken) {
        for thread in &broken.threads {
            let Some(truth) = good.threads.iter().find(|t| t.descriptor == thread.descriptor) else {
                panic!("{what}: read {n} failed, and thread {:?} appeared out of nothing", thread.lwp);
            };
            assert_eq!(thread.lwp, truth.lwp, "{what}: read {n}");
            if let Some(number) = thread.thread_num.get() {
                assert_eq!(Some(number), truth.thread_num.get(), "{what}: read {n}, LWP {:?}", thread.lwp);
            }
            if let Some(role) = thread.role.get() {
                assert_eq!(Some(role), truth.role.get(), "{what}: read {n}, LWP {:?}", thread.lwp);
            }
            if let Some(wait) = thread.wait.value() {
                let kinds = |w: &Option<ompd_runtime::model::Wait>| w.as_ref().map(|w| w.kind);
                let truth = truth.wait.value().and_then(kinds);
                // Of what may be one of several kinds of locks less is known than of a nest lock.
                let less = kinds(wait) == Some(WaitKind::Mutex) && truth == Some(WaitKind::Lock);
                assert!(kinds(wait) == truth || less, "{what}: read {n}, LWP {:?}: {wait:?}", thread.lwp);
            }
        }
    }
}

/// Lengths, pointers and counts that lie: the walk ends, nothing panics.
#[test]
fn memory_may_lie() {
    cores(&["nested", "tasks", "lock", "serialized", "tasks_queued"], |_, core| {
        let runtimes = discover(core, &[]);
        for seed in 0..100 {
            let harmed = lying(core, seed);
            snapshots(&runtimes, &harmed).iter().for_each(check_references);
            // A lie in a slot read at discovery is as possible.
            if seed % 20 == 0 {
                let runtimes = discover(&harmed, &[]);
                snapshots(&runtimes, &harmed).iter().for_each(check_references);
            }
        }
    });
}

/// A level of nesting that does not fit the one around it is not shown.
#[test]
fn levels_that_contradict_each_other_are_unknown() {
    let mut seen = 0;
    cores(&["nested"], |what, core| {
        let runtimes = discover(core, &[]);
        let good = snapshots(&runtimes, core);
        for (runtime, snapshot) in runtimes.iter().zip(&good) {
            let field = match runtime.info().family {
                "gomp" => "gomp_team.prev_ts.level",
                _ => "kmp_base_team.t_level",
            };
            let entry = runtime.info().layout.iter().find(|entry| entry.name == field).expect("the field");
            let offset = u64::from_str_radix(entry.value.trim_start_matches("0x"), 16).expect("an offset");
            let deep = snapshot.teams.iter().filter(|team| team.level.get().is_some_and(|level| level > 1));
            for team in deep {
                let wrong = 1000u32.to_le_bytes();
                let target = ChangedTarget::new(core).with_bytes(team.descriptor.offset(offset), &wrong);
                let forged = runtime.snapshot(&target);
                let own = forged.teams.iter().filter(|other| other.descriptor == team.descriptor);
                let levels: Vec<_> = own.map(|team| team.level.clone()).collect();
                assert!(levels.iter().all(|level| level.get().is_none()), "{what}: {levels:?}");
                seen += 1;
            }
        }
    });
    assert!(seen > 0 || combinations().is_empty(), "no region inside another");
}
