//! What kind of hang it is, and which threads are part of it.

use super::*;
use crate::entry::Construct;
use crate::os::Outsider;

impl Process {
    /// The situations of all verdicts.
    fn situations(&self) -> Vec<Situation> {
        self.judge().into_iter().map(|(_, situation, _)| situation).collect()
    }
}

#[test]
fn members_at_different_barriers_of_one_team() {
    let of = |call| {
        let mut p = Process::new();
        let team = p.team();
        p.member(team, FUTEX, wait(WaitKind::Barrier, team).map(|wait| Wait { call, ..wait }));
        p.member(team, FUTEX, wait(WaitKind::RegionEnd, team));
        p.foreign(Blocked::No);
        p.judge()
    };
    for call in [None, Some(Construct::Barrier)] {
        assert_eq!(of(call), [(Certainty::Deadlock, Situation::BarrierMismatch, vec![1, 2])], "{call:?}");
    }
    for call in [Construct::EndOfFor, Construct::EndOfSections, Construct::Single] {
        let found = of(Some(call));
        assert_eq!(found, [(Certainty::Deadlock, Situation::OrphanedWorksharing, vec![1, 2])], "{call:?}");
    }
}

#[test]
fn a_member_that_waits_for_those_at_a_barrier_is_missing() {
    for kind in [WaitKind::Barrier, WaitKind::RegionEnd] {
        let mut p = Process::new();
        let team = p.team();
        let lock = p.lock(fact(Some(Owner::Thread(1))));
        p.member(team, FUTEX, wait(kind, team));
        p.member(team, FUTEX, locked(lock));
        assert_eq!(p.judge(), [(Certainty::Deadlock, Situation::MissingMember, vec![1, 2])], "{kind:?}");
    }
}

#[test]
fn threads_behind_a_lock_whose_owner_is_gone_are_not_part_of_the_cause() {
    let mut p = Process::new();
    let team = p.team();
    let gone = p.lock(fact(Some(Owner::Gone(7))));
    p.member(team, FUTEX, locked(gone));
    p.member(team, FUTEX, wait(WaitKind::Barrier, team));
    assert_eq!(p.judge(), [(Certainty::Deadlock, Situation::OwnerGone, vec![1])]);
    let found = judge(&[p.snapshot.clone().into()], &p.os);
    assert_eq!(found.verdicts[0].held_up, [2]);
}

#[test]
fn a_cycle_is_listed_in_order_whatever_way_it_runs() {
    for next in [[2, 3, 1], [3, 1, 2]] {
        let mut p = Process::new();
        let team = p.team();
        let locks = [1, 2, 3].map(|lwp| p.lock(fact(Some(Owner::Thread(lwp)))));
        for owner in next {
            p.member(team, FUTEX, locked(locks[owner - 1]));
        }
        let found = judge(&[p.snapshot.clone().into()], &p.os);
        let threads = [1, 2, 3].map(Node::Thread);
        let expected: Vec<Node> = threads.into_iter().chain(locks.map(|lock| Node::Lock(0, lock))).collect();
        assert_eq!(found.verdicts[0].core, expected, "{next:?}");
    }
}

#[test]
fn threads_that_sleep_outside_of_openmp_are_no_hang() {
    let mut p = Process::new();
    p.foreign(FUTEX);
    p.foreign(FUTEX);
    p.idle(FUTEX, fact(false));
    assert_eq!(p.judge(), []);
    let graph = judge(&[p.snapshot.clone().into()], &p.os).graph;
    assert_eq!([1, 2, 3].map(|lwp| graph.is_parked(lwp)), [false, false, true]);
}

#[test]
fn the_graph_is_the_one_that_gave_the_verdict() {
    let mut p = Process::new();
    let team = p.team();
    p.member(team, FUTEX, wait(WaitKind::Barrier, team));
    p.member(team, Blocked::Outside("read"), None);
    let waits_for = |p: &Process| {
        let found = judge(&[p.snapshot.clone().into()], &p.os);
        let next: Vec<Node> = found.graph.waits_for(Node::Thread(2)).collect();
        (found.verdicts.len(), next)
    };
    assert_eq!(waits_for(&p), (1, vec![Node::Anyone]));
    p.foreign(Blocked::No);
    assert_eq!(waits_for(&p), (0, vec![]), "what it waits for comes from outside");
}

#[test]
fn tasks_that_depend_on_each_other() {
    let mut p = Process::new();
    let team = p.team();
    p.member(team, FUTEX, wait(WaitKind::Taskwait, team));
    let [one, two] = [1, 2].map(|_| p.task(team, TaskKind::Explicit, TaskState::Blocked));
    for (task, before) in [(one, two), (two, one)] {
        p.snapshot.tasks[task.0].generating = fact(Some(TaskId(0)));
        p.snapshot.tasks[task.0].predecessors = vec![before];
    }
    p.foreign(Blocked::No);
    assert_eq!(p.judge(), [(Certainty::Deadlock, Situation::DependenceCycle, vec![1])]);
}

/// The task that is executed waits for something else than the one that depends on it.
#[test]
fn a_task_that_depends_on_one_that_hangs_is_not_the_cause() {
    let of = |held_by_waiter| {
        let mut p = Process::new();
        let team = p.team();
        let waiter = p.member(team, FUTEX, wait(WaitKind::Taskwait, team));
        let owner = if held_by_waiter { fact(Some(Owner::Thread(waiter))) } else { Fact::unknown(WHY) };
        let lock = p.lock(owner);
        let executes = p.member(team, FUTEX, locked(lock));
        let [first, second] =
            [TaskState::Running, TaskState::Blocked].map(|state| p.task(team, TaskKind::Explicit, state));
        for task in [first, second] {
            p.snapshot.tasks[task.0].generating = fact(Some(TaskId(0)));
        }
        p.snapshot.tasks[first.0].thread = Some(executes);
        p.snapshot.tasks[second.0].predecessors = vec![first];
        p.situations()
    };
    assert_eq!(of(true), [Situation::LockCycle]);
    assert_eq!(of(false), [Situation::ClosedWaits]);
}

/// Threads that wait for different locks, or for a critical construct, are nearer than a task that might unset a lock.
#[test]
fn a_task_that_is_ready_and_has_nothing_to_do_with_the_locks() {
    let of = |locks: usize, kind| {
        let mut p = Process::new();
        let team = p.team();
        for _ in 0..locks {
            let lock = p.lock(Fact::unknown(Common::NotRecorded));
            p.snapshot.locks[lock.0].kind = fact(kind);
            p.member(team, FUTEX, locked(lock));
        }
        p.task(team, TaskKind::Explicit, TaskState::Ready);
        p.situations()
    };
    assert_eq!(of(1, LockKind::Lock), [Situation::TaskNeverRun]);
    assert_eq!(of(2, LockKind::Lock), [Situation::ClosedWaits]);
    assert_eq!(of(1, LockKind::Critical), [Situation::ClosedWaits]);
}

#[test]
fn a_task_that_is_ready_and_has_no_thread_left() {
    let of = |state| {
        let mut p = Process::new();
        let team = p.team();
        let lock = p.lock(Fact::unknown(Common::NotRecorded));
        p.member(team, FUTEX, locked(lock));
        let task = p.task(team, TaskKind::Explicit, state);
        p.snapshot.tasks[task.0].thread = (state == TaskState::Running).then_some(1);
        p.situations()
    };
    assert_eq!(of(TaskState::Ready), [Situation::TaskNeverRun]);
    // Its code shows that it does nothing about the lock.
    let of_code = |may_unset_locks| {
        let mut p = Process::new();
        let team = p.team();
        let lock = p.lock(Fact::unknown(Common::NotRecorded));
        p.member(team, FUTEX, locked(lock));
        p.task(team, TaskKind::Explicit, TaskState::Ready);
        let mut snapshot = RuntimeSnapshot::from(p.snapshot);
        snapshot.tasks.last_mut().expect("a task").may_unset_locks = may_unset_locks;
        judge(&[snapshot], &p.os).verdicts.iter().map(|verdict| verdict.situation).collect::<Vec<_>>()
    };
    assert_eq!(of_code(Some(true)), [Situation::TaskNeverRun]);
    assert_eq!(of_code(Some(false)), [Situation::ClosedWaits]);
    // It can do nothing about the lock before what it waits for has happened.
    for state in [TaskState::Blocked, TaskState::Detached, TaskState::Running] {
        assert_eq!(of(state), [Situation::ClosedWaits], "{state:?}");
    }
}

#[test]
fn an_event_that_nobody_fulfils() {
    let of = |event| {
        let mut p = Process::new();
        let team = p.team();
        p.member(team, FUTEX, wait(WaitKind::Taskwait, team));
        let task = p.task(team, TaskKind::Explicit, TaskState::Detached);
        p.snapshot.tasks[task.0].generating = fact(Some(TaskId(0)));
        p.snapshot.tasks[task.0].event = event;
        p.situations()
    };
    let event = |fulfilled| fact(Some(Event { handle: Addr(0x10), fulfilled }));
    assert_eq!(of(event(false)), [Situation::UnfulfilledEvent]);
    assert_eq!(of(event(true)), []);
    assert_eq!(of(Fact::unknown(WHY)), [], "it may have been fulfilled");
}

/// A runtime that lists no detached tasks has only counts of them.
#[test]
fn a_counted_task_that_nobody_executes_is_a_detached_one() {
    for kind in [WaitKind::Taskwait, WaitKind::Taskgroup, WaitKind::Barrier, WaitKind::RegionEnd] {
        let with = |unlisted, change: fn(&mut Process, TeamId)| {
            let mut p = Process::new();
            let team = p.team();
            let wait = wait(kind, team).map(|wait| Wait { taskgroup: Some(TaskgroupId(0)), ..wait });
            p.member(team, FUTEX, wait);
            p.snapshot.tasks[0].unfinished_children = fact(unlisted);
            change(&mut p, team);
            p.situations()
        };
        assert_eq!(with(1, |_, _| ()), [Situation::UnfulfilledEvent], "{kind:?}");
        assert_eq!(with(0, |_, _| ()), [Situation::ClosedWaits], "{kind:?}: there is no task");
        // An idle worker executes none, whatever its record still says.
        let idle = |p: &mut Process, _| {
            let lwp = p.idle(FUTEX, fact(false));
            let before = p.team();
            let task = p.task(before, TaskKind::Explicit, TaskState::Running);
            p.snapshot.tasks[task.0].thread = Some(lwp);
            p.snapshot.threads[lwp as usize - 1].task = fact(task);
            p.snapshot.threads[lwp as usize - 1].role = fact(Role::IdleWorker);
        };
        assert_eq!(with(1, idle), [Situation::UnfulfilledEvent], "{kind:?}");
        // One that executes an explicit task may be executing that one.
        let busy = |p: &mut Process, _| {
            let inner = p.team();
            let lock = p.lock(Fact::unknown(WHY));
            let lwp = p.member(inner, FUTEX, locked(lock));
            let task = p.snapshot.threads[lwp as usize - 1].task.get().expect("its task");
            p.snapshot.tasks[task.0].kind = fact(TaskKind::Explicit);
        };
        assert_eq!(with(1, busy), [Situation::ClosedWaits], "{kind:?}");
    }
}

#[test]
fn threads_of_a_pool_that_a_fork_left_behind() {
    let of = |pools: &[&[Option<i32>]]| {
        let mut p = Process::new();
        let team = p.team();
        p.member(team, FUTEX, wait(WaitKind::RegionStart, team));
        p.foreign(FUTEX);
        p.snapshot.teams[team.0].members.push(None);
        p.snapshot.recorded.pools.extend(pools.iter().map(|threads| Pool { threads: threads.to_vec() }));
        p.situations()
    };
    assert_eq!(of(&[&[Some(1), None]]), [Situation::PoolLostInFork]);
    assert_eq!(of(&[&[Some(1), Some(99)]]), [Situation::PoolLostInFork], "no thread 99");
    assert_eq!(of(&[&[Some(1)], &[Some(99)]]), [Situation::PoolLostInFork], "one of two pools");
    assert_eq!(of(&[&[Some(1)], &[Some(2)]]), [Situation::ClosedWaits]);
}

/// A thread alone in a nested region yields, as it waits for a partner that the region did not get.
struct Nested {
    size: u32,
    level: u32,
    most: u64,
    active: u64,
}

impl Nested {
    fn process(&self, blocked: Blocked) -> Process {
        let mut p = Process::new();
        let (outer, inner) = (p.team(), p.team());
        p.member(outer, FUTEX, wait(WaitKind::RegionEnd, outer));
        let lwp = p.member(inner, blocked, None);
        p.snapshot.teams[outer.0].members.push(Some(lwp));
        p.snapshot.teams[inner.0].size = fact(self.size);
        p.snapshot.teams[inner.0].level = fact(self.level);
        p.allow(lwp, self.most, self.active);
        p
    }
}

#[test]
fn a_nested_region_that_got_no_threads() {
    let exhausted = Nested { size: 1, level: 2, most: 1, active: 1 };
    let found = [(Certainty::Suspect, Situation::NestedExhausted, vec![1, 2])];
    assert_eq!(exhausted.process(Blocked::Yields).judge(), found);
    assert_eq!(Nested { level: 3, active: 2, ..exhausted }.process(Blocked::Yields).judge(), found);
    for other in [Nested { size: 2, ..exhausted }, Nested { level: 1, ..exhausted }, Nested { most: 2, ..exhausted }] {
        let p = other.process(Blocked::Yields);
        assert_eq!(p.judge(), [], "it may find its partner");
        assert!(!may_be_stuck(&[other.process(Blocked::No).snapshot.into()], &p.os));
    }
    // Between two calls of `sched_yield` it proves nothing, and another look may.
    let p = exhausted.process(Blocked::No);
    assert_eq!(p.judge(), []);
    assert!(may_be_stuck(&[p.snapshot.into()], &p.os));
    // It waits for something else.
    let read = exhausted.process(Blocked::Outside("read"));
    assert_eq!(read.situations(), [Situation::MissingMember]);
}

#[test]
fn a_hang_that_another_look_may_find() {
    let of = |blocked, wait: Fact<Option<Wait>>, in_runtime| {
        let mut p = Process::new();
        let team = p.team();
        let lock = p.lock(fact(Some(Owner::Thread(2))));
        p.member(team, FUTEX, locked(lock));
        p.member(team, blocked, None);
        p.snapshot.threads[1].wait = wait;
        let mut snapshot: RuntimeSnapshot = p.snapshot.into();
        snapshot.threads[1].in_runtime = in_runtime;
        let snapshots = [snapshot];
        assert!(judge(&snapshots, &p.os).verdicts.is_empty());
        may_be_stuck(&snapshots, &p.os)
    };
    let at_barrier = |over| fact(wait(WaitKind::Barrier, TeamId(0)).map(|wait| Wait { over, ..wait }));
    assert!(of(FUTEX, at_barrier(Fact::unknown(WHY)), None), "whether it has been let go is unknown");
    assert!(!of(FUTEX, at_barrier(fact(true)), None), "it has been let go");
    assert!(of(Blocked::No, Fact::unknown(WHY), None), "it may be about to wait");
    assert!(of(Blocked::No, fact(None), Some(InRuntime::Task)), "it may be about to wait");
    assert!(!of(Blocked::No, fact(None), None), "it computes");
}

#[test]
fn a_lock_known_by_its_address_that_another_process_may_set_free() {
    let of = |sharing| {
        let mut p = Process::new();
        let team = p.team();
        let wait = Wait::new(WaitKind::Lock, Addr(0x40), Origin::Dwarf);
        p.member(team, FUTEX, Some(Wait { over: fact(false), asleep: Some(true), ..wait }));
        p.os.shared.extend(sharing);
        p.judge()
    };
    assert_eq!(of(None), [(Certainty::Deadlock, Situation::ClosedWaits, vec![1])]);
    let shared = of(Some((Addr(0x40), Sharing::Shared)));
    assert_eq!(shared, [(Certainty::Suspect, Situation::ClosedWaits, vec![1])]);
}

/// Two hangs, of which a thread of the first waits in `pthread_join`.
#[test]
fn a_hang_that_cancelling_may_end_comes_after_a_proven_one() {
    let of = |outsiders: &[Outsider]| {
        let mut p = Process::new();
        let (one, other) = (p.team(), p.team());
        let own = p.lock(fact(Some(Owner::Thread(2))));
        p.member(one, FUTEX, locked(own));
        p.foreign(Blocked::Join(1));
        let twice = p.lock(fact(Some(Owner::Thread(3))));
        p.member(other, FUTEX, locked(twice));
        p.foreign(Blocked::No);
        p.os.outsiders = outsiders.to_vec();
        p.judge().into_iter().map(|(certainty, _, threads)| (certainty, threads)).collect::<Vec<_>>()
    };
    let canceller = [Outsider::Canceller("a.so".to_owned())];
    let proven = |threads: &[i32]| (Certainty::Deadlock, threads.to_vec());
    let mut none = of(&[]);
    none.sort_by_key(|(_, threads)| threads.clone());
    assert_eq!(none, [proven(&[1, 2]), proven(&[3])]);
    assert_eq!(of(&canceller), [proven(&[3]), (Certainty::Suspect, vec![1, 2])]);
    assert!(of(&[Outsider::Ring]).iter().all(|(certainty, _)| *certainty == Certainty::Suspect));
}

#[test]
fn where_all_threads_hang_none_is_left_to_cancel_another() {
    let of = |moves: bool| {
        let mut p = Process::new();
        let team = p.team();
        let lock = p.lock(fact(Some(Owner::Thread(2))));
        p.member(team, FUTEX, locked(lock));
        p.foreign(Blocked::Join(1));
        // This one is held up, and no part of the hang.
        p.member(team, FUTEX, locked(lock));
        if moves {
            p.foreign(Blocked::No);
        }
        p.os.outsiders = vec![Outsider::Canceller("a.so".to_owned())];
        p.judge().into_iter().map(|(certainty, _, threads)| (certainty, threads)).collect::<Vec<_>>()
    };
    assert_eq!(of(false), [(Certainty::Deadlock, vec![1, 2])]);
    assert_eq!(of(true), [(Certainty::Suspect, vec![1, 2])]);
}
