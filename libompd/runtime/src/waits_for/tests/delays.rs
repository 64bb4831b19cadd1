//! What threads wait for that may still happen, and who has reached a barrier.

use super::*;

#[test]
fn the_thread_whose_turn_it_is() {
    let mut p = Process::new();
    let (team, other) = (p.team(), p.team());
    p.member(team, FUTEX, wait(WaitKind::Ordered, team));
    p.member(team, Blocked::No, None);
    p.turn(other, 0);
    p.turn(team, 1);
    assert_eq!(p.waiting(), [(Situation::OrderedTurn, vec![2], vec![1])]);
}

#[test]
fn threads_that_execute_the_tasks_that_are_waited_for_and_no_others() {
    let kinds = [WaitKind::Taskwait, WaitKind::Taskgroup, WaitKind::BarrierTasks, WaitKind::Dependences];
    for kind in kinds {
        let mut p = Process::new();
        let (team, other) = (p.team(), p.team());
        let wait = wait(kind, team).map(|wait| Wait { taskgroup: Some(TaskgroupId(0)), ..wait });
        p.member(team, FUTEX, wait);
        for (team, group, generating) in [(team, 0, 0), (other, 1, 1)] {
            let lwp = p.member(team, Blocked::Outside("read"), None);
            let task = p.task(team, TaskKind::Explicit, TaskState::Running);
            p.snapshot.tasks[task.0].generating = fact(Some(TaskId(generating)));
            p.snapshot.tasks[task.0].taskgroup = fact(Some(TaskgroupId(group)));
            p.snapshot.tasks[task.0].thread = Some(lwp);
            if generating == 0 {
                p.snapshot.tasks[0].predecessors = vec![task];
            }
        }
        // Nothing hangs.
        p.foreign(Blocked::No);
        assert_eq!(p.waiting(), [(Situation::TasksUnfinished, vec![2], vec![1])], "{kind:?}");
    }
}

#[test]
fn a_lock_that_a_task_holds() {
    let mut p = Process::new();
    let team = p.team();
    let lock = p.lock(fact(Some(Owner::Task(TaskId(1)))));
    p.member(team, FUTEX, locked(lock));
    p.member(team, Blocked::No, None);
    assert_eq!(p.waiting(), [(Situation::LockHeld, vec![2], vec![1])]);
}

#[test]
fn a_thread_that_has_been_let_go_is_a_cause() {
    let mut p = Process::new();
    let team = p.team();
    let lock = p.lock(fact(Some(Owner::Thread(2))));
    p.member(team, FUTEX, locked(lock));
    p.member(team, FUTEX, wait(WaitKind::Barrier, team).map(|wait| Wait { over: fact(true), ..wait }));
    assert_eq!(p.waiting(), [(Situation::LockHeld, vec![2], vec![1])]);
}

#[test]
fn all_that_a_barrier_lacks_are_listed_and_most_held_up_threads_come_first() {
    let mut p = Process::new();
    let team = p.team();
    let lock = p.lock(fact(Some(Owner::Thread(2))));
    p.member(team, FUTEX, wait(WaitKind::Barrier, team));
    p.member(team, Blocked::No, None);
    p.member(team, FUTEX, locked(lock));
    p.arrived(team, Some(1));
    let lock = (Situation::LockHeld, vec![2], vec![1, 3]);
    assert_eq!(p.waiting(), [lock, (Situation::BarrierNotReached, vec![2, 3], vec![1])]);
}

#[test]
fn locks_that_hold_up_equally_many_are_listed_in_order() {
    let mut p = Process::new();
    let team = p.team();
    for waiter in (1..=8).step_by(2) {
        let lock = p.lock(fact(Some(Owner::Thread(waiter + 1))));
        p.member(team, FUTEX, locked(lock));
        p.foreign(Blocked::No);
    }
    let owners: Vec<Vec<i32>> = p.waiting().into_iter().map(|(_, owners, _)| owners).collect();
    assert_eq!(owners, [[2], [4], [6], [8]]);
}

#[test]
fn members_at_a_barrier_and_not_there() {
    /// Two members wait in these ways. What the third does is given.
    fn of(kinds: [WaitKind; 2], barrier: (Option<u32>, Option<u32>), change: fn(&mut Process)) -> Option<Standing> {
        let mut p = Process::new();
        let team = p.team();
        for kind in kinds {
            p.member(team, FUTEX, wait(kind, team));
        }
        p.member(team, Blocked::No, None);
        let (inside, at_end) = barrier;
        p.snapshot.teams[team.0].barrier = fact(Barrier { inside, passed: None, at_end, size: 3 });
        change(&mut p);
        standing(&p.snapshot.into(), team)
    }
    let standing = |arrived, at_end| Standing { arrived, at_end, absent: vec![2], unclear: vec![] };
    use WaitKind::{Barrier as Inside, RegionEnd};
    // Without a count, those count that are seen.
    let none = (None, None);
    assert_eq!(of([Inside; 2], none, |_| ()), Some(standing(2, false)));
    assert_eq!(of([RegionEnd; 2], none, |_| ()), Some(standing(2, true)));
    assert_eq!(of([Inside, RegionEnd], none, |_| ()), Some(standing(1, true)));
    // A member may be there if its wait is unknown, or if it executes a task.
    let unclear = Standing { absent: vec![], unclear: vec![2], ..standing(2, false) };
    assert_eq!(of([Inside; 2], none, |p| p.snapshot.threads[2].wait = Fact::unknown(WHY)), Some(unclear.clone()));
    assert_eq!(of([Inside; 2], none, |p| p.snapshot.tasks[2].kind = fact(TaskKind::Explicit)), Some(unclear));
    // Not if its implicit task waits for other tasks, whichever it executes meanwhile.
    let of_tasks = |kind| {
        let mut p = Process::new();
        let team = p.team();
        for wait in [wait(Inside, team), wait(Inside, team), None] {
            p.member(team, FUTEX, wait);
        }
        p.snapshot.tasks[2].kind = fact(TaskKind::Explicit);
        let implicit = p.task(team, TaskKind::Implicit, TaskState::Suspended);
        p.snapshot.tasks[implicit.0].team = fact(Some(team));
        p.snapshot.tasks[implicit.0].member = Some(2);
        let barrier = Barrier { inside: None, passed: None, at_end: None, size: 3 };
        p.snapshot.teams[team.0].barrier = fact(barrier);
        let mut snapshot = RuntimeSnapshot::from(p.snapshot);
        snapshot.tasks[implicit.0].wait = wait(kind, team);
        super::standing(&snapshot, team)
    };
    assert_eq!(of_tasks(WaitKind::Taskwait), Some(standing(2, false)));
    assert_eq!(of_tasks(Inside).map(|standing| standing.unclear), Some(vec![2]));
    // An undeferred task is executed where it was generated: by the implicit task, or by one that may be executed at the barrier.
    let undeferred = |of: TaskKind| {
        let mut p = Process::new();
        let team = p.team();
        for wait in [wait(Inside, team), wait(Inside, team), None] {
            p.member(team, FUTEX, wait);
        }
        let generating = p.task(team, of, TaskState::Suspended);
        p.snapshot.tasks[2].kind = fact(TaskKind::Undeferred);
        p.snapshot.tasks[2].generating = fact(Some(generating));
        let barrier = Barrier { inside: None, passed: None, at_end: None, size: 3 };
        p.snapshot.teams[team.0].barrier = fact(barrier);
        super::standing(&p.snapshot.into(), team).map(|standing| (standing.absent, standing.unclear))
    };
    assert_eq!(undeferred(TaskKind::Implicit), Some((vec![2], vec![])));
    assert_eq!(undeferred(TaskKind::Explicit), Some((vec![], vec![2])));
    // What is no thread of the process is not there.
    let gone = |p: &mut Process| p.snapshot.teams[0].members[2] = None;
    assert_eq!(of([Inside; 2], none, gone), Some(standing(2, false)));
    // Not if the runtime counts as many as are seen.
    let unknown = |p: &mut Process| p.snapshot.threads[2].wait = Fact::unknown(WHY);
    assert_eq!(of([Inside; 2], (Some(2), Some(0)), unknown), Some(standing(2, false)));
    assert_eq!(of([Inside, RegionEnd], (Some(1), Some(1)), unknown), Some(standing(1, true)));
}

#[test]
fn task_on_the_stack_of_a_blocked_thread_is_waited_for_and_reported_once() {
    let mut p = Process::new();
    let team = p.team();
    p.member(team, FUTEX, wait(WaitKind::Taskwait, team));
    p.member(team, Blocked::Outside("read"), None);
    p.foreign(Blocked::No);
    let tasks = [TaskState::Suspended, TaskState::Running].map(|state| p.task(team, TaskKind::Explicit, state));
    let mut snapshot: RuntimeSnapshot = p.snapshot.into();
    for task in tasks {
        snapshot.tasks[task.0].raw.generating = fact(Some(TaskId(0)));
    }
    snapshot.tasks[tasks[0].0].stack = Some(2);
    let core = |snapshot: &RuntimeSnapshot| {
        let snapshots = [snapshot.clone()];
        let mut found = judge(&snapshots, &p.os);
        found.find_waiting(&snapshots, &p.os);
        found.waiting.into_iter().map(|verdict| (verdict.core, verdict.rests_on_calls)).collect::<Vec<_>>()
    };
    let expected = [(vec![Node::Thread(2), Node::Taskwait(0, TaskId(0))], false)];
    assert_eq!(core(&snapshot), expected);
    snapshot.tasks[tasks[1].0].raw.thread = Some(2);
    assert_eq!(core(&snapshot), expected, "both lie on one stack");
    snapshot.tasks[tasks[1].0].raw.kind = fact(TaskKind::Implicit);
    snapshot.tasks[tasks[0].0].stack = None;
    assert_eq!(core(&snapshot), [], "none of them has begun");
}

#[test]
fn tasks_are_waited_for_if_one_of_their_threads_is_blocked() {
    let mut p = Process::new();
    let team = p.team();
    p.member(team, FUTEX, wait(WaitKind::Taskwait, team));
    for blocked in [Blocked::Outside("read"), Blocked::No] {
        let lwp = p.member(team, blocked, None);
        let task = p.task(team, TaskKind::Explicit, TaskState::Running);
        p.snapshot.tasks[task.0].generating = fact(Some(TaskId(0)));
        p.snapshot.tasks[task.0].thread = Some(lwp);
    }
    assert_eq!(p.waiting(), [(Situation::TasksUnfinished, vec![2, 3], vec![1])]);
}

#[test]
fn threads_behind_threads_behind_a_lock_wait_for_its_owner() {
    let mut p = Process::new();
    let team = p.team();
    let locks = [2, 3, 4].map(|owner| p.lock(fact(Some(Owner::Thread(owner)))));
    for lock in locks {
        p.member(team, FUTEX, locked(lock));
    }
    p.foreign(Blocked::No);
    assert_eq!(p.waiting(), [(Situation::LockHeld, vec![4], vec![1, 2, 3])]);
}

#[test]
fn task_that_a_device_executes_is_named() {
    let mut p = Process::new();
    let team = p.team();
    p.member(team, FUTEX, wait(WaitKind::Taskwait, team));
    p.foreign(Blocked::No);
    let task = p.task(team, TaskKind::Explicit, TaskState::OnDevice);
    p.snapshot.tasks[task.0].generating = fact(Some(TaskId(0)));
    let snapshots = [p.snapshot.into()];
    let mut found = judge(&snapshots, &p.os);
    found.find_waiting(&snapshots, &p.os);
    let core = [Node::Thread(1), Node::Task(0, task), Node::Taskwait(0, TaskId(0))];
    assert_eq!(found.waiting[0].core, core);
}
