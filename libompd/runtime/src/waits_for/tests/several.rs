//! Threads of two runtimes, members that the process does not have, and hangs behind hangs.

use super::*;
use crate::icvs::{ACTIVE_LEVELS, MAX_ACTIVE_LEVELS};
use crate::os::OsState;

/// Thread 1 waits for a lock of thread 2, which both runtimes know: what the second knows of it is `other`.
fn in_two_runtimes(
    blocked: Blocked,
    own: Fact<Option<Wait>>,
    other: Fact<Option<Wait>>,
) -> ([RuntimeSnapshot; 2], OsState) {
    let mut p = Process::new();
    let team = p.team();
    let lock = p.lock(fact(Some(Owner::Thread(2))));
    p.member(team, FUTEX, locked(lock));
    p.member(team, blocked, None);
    let mut second = p.snapshot.clone();
    second.threads.remove(0);
    p.snapshot.threads[1].wait = own;
    second.threads[0].wait = other;
    ([p.snapshot.into(), second.into()], p.os)
}

#[test]
fn doubt_of_one_runtime_about_a_thread_is_enough_for_another_look() {
    let (snapshots, os) = in_two_runtimes(Blocked::No, fact(None), Fact::unknown(WHY));
    assert!(judge(&snapshots, &os).verdicts.is_empty());
    assert!(may_be_stuck(&snapshots, &os));
    let (snapshots, os) = in_two_runtimes(Blocked::No, fact(None), fact(None));
    assert!(!may_be_stuck(&snapshots, &os), "it computes");
}

#[test]
fn thread_that_no_runtime_can_place_may_be_about_to_wait() {
    let mut p = Process::new();
    let team = p.team();
    p.member(team, Blocked::No, None);
    p.snapshot.threads[0].wait = Fact::unknown(WHY);
    assert!(may_be_stuck(&[p.snapshot.clone().into()], &p.os));
    p.snapshot.threads[0].wait = fact(None);
    assert!(!may_be_stuck(&[p.snapshot.into()], &p.os));
}

#[test]
fn thread_asleep_that_one_of_two_runtimes_cannot_place_may_be_at_a_lock_of_that_runtime() {
    let of = |other| {
        let (mut snapshots, mut os) = in_two_runtimes(FUTEX, fact(None), other);
        // Awake it may hold that lock.
        let mut spinning = snapshots[0].threads[0].clone();
        spinning.raw.lwp = Some(3);
        spinning.wait = fact(spins(wait(WaitKind::Barrier, TeamId(0))));
        snapshots[0].teams[0].raw.members.push(Some(3));
        snapshots[0].threads.push(spinning);
        os.threads.push(crate::os::OsThread::new(3, Blocked::No));
        judge(&snapshots, &os).verdicts.len()
    };
    assert_eq!(of(Fact::unknown(WHY)), 0);
    assert_eq!(of(fact(None)), 1);
}

#[test]
fn thread_alone_in_a_nested_region_of_one_of_two_runtimes_got_no_threads() {
    let (mut snapshots, os) = in_two_runtimes(Blocked::Yields, fact(None), fact(None));
    assert!(judge(&snapshots, &os).verdicts.is_empty());
    let snapshot = &mut snapshots[1];
    (snapshot.teams[0].raw.size, snapshot.teams[0].raw.level) = (fact(1), fact(2));
    for icv in [&MAX_ACTIVE_LEVELS, &ACTIVE_LEVELS] {
        snapshot.threads[0].raw.icvs.values.set(icv, fact(IcvValue::Count(1)));
    }
    let found = judge(&snapshots, &os).verdicts;
    let found: Vec<_> = found.iter().map(|verdict| (verdict.certainty, verdict.situation)).collect();
    assert_eq!(found, [(Certainty::Suspect, Situation::NestedExhausted)]);
}

#[test]
fn member_that_the_process_does_not_have_is_part_of_the_hang_by_its_number() {
    for kind in [WaitKind::Barrier, WaitKind::RegionEnd, WaitKind::RegionStart] {
        let mut p = Process::new();
        let team = p.team();
        p.member(team, FUTEX, wait(kind, team));
        p.snapshot.teams[0].members.push(None);
        let found = judge(&[p.snapshot.into()], &p.os);
        let missing: Vec<Node> = found.graph.nodes().filter(|node| matches!(node, Node::Missing(..))).collect();
        assert_eq!(missing, [Node::Missing(0, team, 1)], "{kind:?}");
        assert!(found.verdicts[0].core.contains(&missing[0]), "{kind:?}");
    }
}

/// Threads 1 and 2 wait for each other, and for thread 3, which waits for a lock whose owner is gone.
#[test]
fn hang_that_waits_for_another_hang_is_not_reported_by_itself() {
    let mut p = Process::new();
    let team = p.team();
    let (own, gone) = (p.lock(fact(Some(Owner::Thread(1)))), p.lock(fact(Some(Owner::Gone(7)))));
    p.member(team, FUTEX, wait(WaitKind::Barrier, team));
    p.member(team, FUTEX, locked(own));
    p.member(team, FUTEX, locked(gone));
    assert_eq!(p.judge(), [(Certainty::Deadlock, Situation::OwnerGone, vec![3])]);
    let found = judge(&[p.snapshot.into()], &p.os);
    assert_eq!(found.verdicts[0].held_up, [1, 2]);
}

#[test]
fn threads_that_wait_for_a_hang_are_listed_in_the_order_of_their_ids() {
    let mut p = Process::new();
    let team = p.team();
    let gone = p.lock(fact(Some(Owner::Gone(7))));
    p.member(team, FUTEX, locked(gone));
    for _ in 2..=40 {
        p.member(team, FUTEX, wait(WaitKind::Barrier, team));
    }
    let found = judge(&[p.snapshot.into()], &p.os);
    assert_eq!(found.verdicts[0].held_up, (2..=40).collect::<Vec<_>>());
}

#[test]
fn no_two_nodes_have_the_same_place_in_a_report() {
    let mut nodes = vec![Node::Anyone];
    nodes.extend((0..8).map(Node::Thread));
    for runtime in 0..2 {
        for id in 0..8 {
            let (team, task, lock) = (TeamId(id), TaskId(id), LockId(id));
            nodes.extend([Node::Lock(runtime, lock), Node::GoneOwner(runtime, lock), Node::Word(runtime, id as u64)]);
            nodes.extend([Node::Barrier, Node::RegionEnd, Node::RegionStart].map(|of| of(runtime, team)));
            nodes.extend([Node::TeamTasks, Node::Ordered].map(|of| of(runtime, team)));
            nodes.extend([Node::Task, Node::Event, Node::Taskwait, Node::Dependences].map(|of| of(runtime, task)));
            nodes.push(Node::Taskgroup(runtime, TaskgroupId(id)));
            nodes.extend((0..8).map(|number| Node::Missing(runtime, team, number)));
        }
    }
    nodes.sort_by_key(order);
    assert!(nodes.iter().map(order).is_sorted_by(|one, next| one < next));
    assert_eq!(nodes[..8], [0, 1, 2, 3, 4, 5, 6, 7].map(Node::Thread), "threads come first");
    assert_eq!(nodes.last(), Some(&Node::Anyone));
}

#[test]
fn worker_on_its_way_to_or_from_the_pool_is_parked() {
    let mut p = Process::new();
    p.idle(Blocked::No, Fact::unknown(WHY));
    assert!(judge(&[p.snapshot.into()], &p.os).graph.is_parked(1));
}

#[test]
fn threads_that_yield_at_a_barrier_that_all_have_reached_prove_less_than_threads_asleep() {
    let of = |blocked| {
        let mut p = Process::new();
        let team = p.team();
        p.member(team, FUTEX, wait(WaitKind::RegionEnd, team));
        p.member(team, blocked, spins(wait(WaitKind::RegionEnd, team)));
        p.judge().into_iter().map(|(certainty, ..)| certainty).collect::<Vec<_>>()
    };
    assert_eq!(of(FUTEX), [Certainty::Deadlock]);
    assert_eq!(of(Blocked::Yields), [Certainty::Suspect]);
    assert_eq!(of(Blocked::No), []);
}

#[test]
fn member_whose_wait_is_unknown_may_be_about_to_end_a_barrier_that_all_have_reached() {
    let of = |other| {
        let mut p = Process::new();
        let team = p.team();
        p.member(team, FUTEX, wait(WaitKind::BarrierTasks, team));
        p.member(team, FUTEX, wait(WaitKind::BarrierTasks, team));
        p.snapshot.threads[1].wait = other;
        p.judge().len()
    };
    assert_eq!(of(fact(wait(WaitKind::BarrierTasks, TeamId(0)))), 1);
    assert_eq!(of(Fact::unknown(WHY)), 0);
}

/// Thread 2 waits for the end of thread 1, which waits for what thread 2 has to do. Thread 3 runs.
#[test]
fn thread_that_joins_the_one_that_waits_for_its_task_or_turn_is_part_of_a_hang() {
    let of = |kind, change: fn(&mut Process)| {
        let mut p = Process::new();
        let team = p.team();
        p.member(team, FUTEX, wait(kind, team).map(|wait| Wait { taskgroup: Some(TaskgroupId(0)), ..wait }));
        p.member(team, Blocked::Join(1), None);
        p.foreign(Blocked::No);
        change(&mut p);
        p.judge().into_iter().map(|(certainty, _, threads)| (certainty, threads)).collect::<Vec<_>>()
    };
    let found = [(Certainty::Deadlock, vec![1, 2])];
    let in_group = |p: &mut Process| {
        let task = p.task(TeamId(0), TaskKind::Explicit, TaskState::Running);
        p.snapshot.tasks[task.0].taskgroup = fact(Some(TaskgroupId(0)));
        p.snapshot.tasks[task.0].thread = Some(2);
        p.snapshot.threads[1].task = fact(task);
    };
    assert_eq!(of(WaitKind::Taskgroup, in_group), found);
    assert_eq!(of(WaitKind::Ordered, |p| p.turn(TeamId(0), 1)), found);
}
