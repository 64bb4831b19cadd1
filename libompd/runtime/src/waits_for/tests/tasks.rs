//! Tasks that a waiting thread may execute, or waits for.

use super::*;

impl Process {
    fn explicit(&mut self, team: TeamId, state: TaskState, generating: TaskId) -> TaskId {
        let task = self.task(team, TaskKind::Explicit, state);
        self.snapshot.tasks[task.0].generating = fact(Some(generating));
        task
    }
}

/// Thread 2 is awake at a barrier, and owns the lock that thread 1 waits for. It hangs unless it may execute a task that
/// no list has.
#[test]
fn tasks_that_no_list_has() {
    let with = |change: fn(&mut Process, TeamId), merge: fn(&mut RuntimeSnapshot)| {
        let mut p = Process::new();
        let team = p.team();
        let lock = p.lock(fact(Some(Owner::Thread(2))));
        p.member(team, FUTEX, locked(lock));
        p.member(team, Blocked::No, spins(wait(WaitKind::Barrier, team)));
        change(&mut p, team);
        let mut snapshot = p.snapshot.into();
        merge(&mut snapshot);
        judge(&[snapshot], &p.os).verdicts.is_empty()
    };
    let may_execute_one = |change: fn(&mut Process, TeamId)| with(change, |_| ());
    fn detached(p: &mut Process, team: TeamId) -> TaskId {
        let task = p.explicit(team, TaskState::Detached, TaskId(0));
        p.snapshot.tasks[task.0].event = fact(Some(Event { handle: Addr(0x10), fulfilled: false }));
        task
    }
    assert!(!may_execute_one(|_, _| ()));
    assert!(may_execute_one(|p, _| p.snapshot.tasks[0].unfinished_children = fact(1)));
    assert!(!may_execute_one(|p, team| {
        detached(p, team);
        p.snapshot.tasks[0].unfinished_children = fact(1);
    }));
    // Three children: one is listed, and others are counted with it.
    assert!(may_execute_one(|p, team| {
        let like = detached(p, team);
        p.snapshot.tasks[0].unfinished_children = fact(3);
        p.snapshot.recorded.more_tasks.push(MoreTasks { like, count: 1 });
    }));
    assert!(!may_execute_one(|p, team| {
        let like = detached(p, team);
        p.snapshot.tasks[0].unfinished_children = fact(3);
        p.snapshot.recorded.more_tasks.push(MoreTasks { like, count: 2 });
    }));
    // One that has begun is on a thread's stack.
    assert!(may_execute_one(|p, team| _ = p.explicit(team, TaskState::Running, TaskId(0))));
    assert!(!may_execute_one(|p, team| {
        let task = p.explicit(team, TaskState::Running, TaskId(0));
        p.snapshot.tasks[task.0].thread = Some(1);
    }));
    let suspended = |p: &mut Process, team| _ = p.explicit(team, TaskState::Suspended, TaskId(0));
    assert!(with(suspended, |_| ()));
    assert!(!with(suspended, |snapshot| snapshot.tasks[2].stack = Some(1)));
    assert!(!may_execute_one(|p, team| _ = p.task(team, TaskKind::Implicit, TaskState::Running)));
}

#[test]
fn a_thread_that_sleeps_or_waits_for_a_lock_executes_no_task() {
    let of = |blocked, wait| {
        let mut p = Process::new();
        let team = p.team();
        let lock = p.lock(fact(Some(Owner::Thread(2))));
        let other = p.lock(fact(Some(Owner::Thread(1))));
        p.member(team, FUTEX, locked(lock));
        p.member(team, blocked, wait);
        p.snapshot.locks[other.0].object = Addr(0x20);
        p.snapshot.tasks[0].unfinished_children = fact(1);
        p.judge().len()
    };
    let barrier = wait(WaitKind::Barrier, TeamId(0));
    let unsure = barrier.clone().map(|wait| Wait { asleep: None, ..wait });
    assert_eq!(of(Blocked::No, spins(barrier)), 0);
    assert_eq!(of(FUTEX, unsure.clone()), 1, "the kernel says that it sleeps");
    assert_eq!(of(Blocked::No, unsure), 0);
    assert_eq!(of(Blocked::No, spins(locked(LockId(1)))), 1);
}

/// OpenMP 5.2, 12.9: task scheduling constraints.
#[test]
fn which_ready_task_a_waiting_thread_takes() {
    /// Thread 2 executes task 1, and may let thread 1 continue if it takes the ready task.
    fn takes(kind: WaitKind, children_only: bool, change: impl Fn(&mut Process, &mut RawTask)) -> bool {
        let mut p = Process::new();
        let team = p.team();
        let lock = p.lock(fact(Some(Owner::Thread(2))));
        p.member(team, FUTEX, locked(lock));
        p.member(team, FUTEX, wait(kind, team));
        p.snapshot.recorded.taskwait_runs_children_only = children_only;
        let ready = p.explicit(team, TaskState::Ready, TaskId(0));
        let mut task = p.snapshot.tasks[ready.0].clone();
        change(&mut p, &mut task);
        p.snapshot.tasks[ready.0] = task;
        p.judge().is_empty()
    }
    const CHILD: Fact<Option<TaskId>> = Fact::Known { value: Some(TaskId(1)), origin: Origin::Dwarf };
    use WaitKind::{Barrier, Taskgroup, Taskwait};
    for children_only in [true, false] {
        for kind in [Taskwait, Taskgroup] {
            assert!(takes(kind, children_only, |_, task| task.generating = CHILD), "{kind:?}");
            assert!(!takes(kind, children_only, |_, _| ()), "{kind:?}: it is another task's child");
        }
        assert!(takes(Barrier, children_only, |_, _| ()));
        // An untied task may go anywhere, but for a runtime that keeps to children.
        assert!(takes(Taskgroup, children_only, |_, task| task.tied = fact(false)));
        assert_eq!(takes(Taskwait, children_only, |_, task| task.tied = fact(false)), !children_only);
        assert_eq!(takes(Taskwait, children_only, |_, task| task.priority = fact(5)), children_only);
        assert_eq!(takes(Taskwait, children_only, |_, task| task.priority = Fact::unknown(WHY)), children_only);
    }
    // Tasks of another team are not taken. Where a team is unknown, it may be the same.
    let elsewhere = |p: &mut Process, task: &mut RawTask| task.team = fact(Some(p.team()));
    assert!(!takes(Barrier, false, elsewhere));
    assert!(takes(Barrier, false, |_, task| task.team = Fact::unknown(WHY)));
    let no_team = |p: &mut Process, task: &mut RawTask| {
        elsewhere(p, task);
        p.snapshot.threads[1].team = Fact::unknown(WHY);
    };
    assert!(takes(Barrier, false, no_team));
    // Tied tasks that descend from the thread's are taken, in whatever generation.
    let descendant_of = |p: &mut Process, task: &mut RawTask, ancestor| {
        task.generating = fact(Some(p.explicit(TeamId(0), TaskState::Suspended, ancestor)));
    };
    assert!(takes(Taskgroup, false, |p, task| descendant_of(p, task, TaskId(1))));
    assert!(!takes(Taskgroup, false, |p, task| descendant_of(p, task, TaskId(0))));
    // Of what kind the task in between is, need not be known.
    assert!(takes(Taskgroup, false, |p, task| {
        descendant_of(p, task, TaskId(1));
        let between = task.generating.flat().expect("a task");
        p.snapshot.tasks[between.0].kind = Fact::unknown(WHY);
    }));
    // The same where its task is an explicit one.
    let in_explicit = |p: &mut Process| {
        let own = p.explicit(TeamId(0), TaskState::Running, TaskId(1));
        p.snapshot.tasks[own.0].thread = Some(2);
        p.snapshot.threads[1].task = fact(own);
        own
    };
    assert!(takes(Taskgroup, false, |p, task| task.generating = fact(Some(in_explicit(p)))));
    assert!(takes(Taskgroup, false, |p, task| {
        let own = in_explicit(p);
        descendant_of(p, task, own);
    }));
    // A region's own task descends from no task of this region, even if its generating task is unknown.
    assert!(!takes(Taskgroup, false, |p, _| p.snapshot.tasks[0].generating = Fact::unknown(WHY)));
    assert!(takes(Taskgroup, false, |_, task| task.generating = Fact::unknown(WHY)));
}

/// Thread 2 executes a task, and waits for a lock of thread 1. That waits for the task.
#[test]
fn the_tasks_that_a_thread_waits_for_are_part_of_the_hang() {
    let of = |kind, change: fn(&mut Process, TaskId)| {
        let mut p = Process::new();
        let team = p.team();
        let lock = p.lock(fact(Some(Owner::Thread(1))));
        let wait = wait(kind, team).map(|wait| Wait { taskgroup: Some(TaskgroupId(0)), ..wait });
        p.member(team, FUTEX, wait);
        p.member(team, FUTEX, locked(lock));
        let task = p.task(team, TaskKind::Explicit, TaskState::Running);
        p.snapshot.tasks[task.0].thread = Some(2);
        p.snapshot.threads[1].task = fact(task);
        change(&mut p, task);
        p.judge()
    };
    let child = |p: &mut Process, task: TaskId| p.snapshot.tasks[task.0].generating = fact(Some(TaskId(0)));
    let found = [(Certainty::Deadlock, Situation::LockCycle, vec![1, 2])];
    assert_eq!(of(WaitKind::Taskwait, child), found);
    assert_eq!(of(WaitKind::Dependences, child), found);
    assert_eq!(of(WaitKind::Dependences, |p, task| p.snapshot.tasks[0].predecessors = vec![task]), found);
    let in_group = |p: &mut Process, task: TaskId| p.snapshot.tasks[task.0].taskgroup = fact(Some(TaskgroupId(0)));
    assert_eq!(of(WaitKind::Taskgroup, in_group), found);
    // Which of the two it waits for is unknown. Neither can happen.
    let found = [(Certainty::Deadlock, Situation::ClosedWaits, vec![1, 2])];
    assert_eq!(of(WaitKind::TaskwaitOrTaskgroup, in_group), found);
}

/// Each of two threads executes a task of the group for which the other one waits.
#[test]
fn a_task_of_a_group_that_waits_at_the_end_of_another_group_is_waited_for() {
    let mut p = Process::new();
    let team = p.team();
    for (own, other) in [(0, 1), (1, 0)] {
        let end = wait(WaitKind::Taskgroup, team).map(|wait| Wait { taskgroup: Some(TaskgroupId(other)), ..wait });
        let lwp = p.member(team, FUTEX, end);
        let task = p.task(team, TaskKind::Explicit, TaskState::Running);
        p.snapshot.tasks[task.0].taskgroup = fact(Some(TaskgroupId(own)));
        p.snapshot.tasks[task.0].thread = Some(lwp);
        p.snapshot.threads[lwp as usize - 1].task = fact(task);
    }
    p.foreign(Blocked::No);
    assert_eq!(p.judge(), [(Certainty::Deadlock, Situation::ClosedWaits, vec![1, 2])]);
}

#[test]
fn any_member_may_have_the_turn_if_the_turn_is_unknown() {
    let of = |blocked, wait| {
        let mut p = Process::new();
        let team = p.team();
        p.member(team, FUTEX, self::wait(WaitKind::Ordered, team));
        p.member(team, blocked, wait);
        p.judge().len()
    };
    assert_eq!(of(Blocked::No, None), 0);
    assert_eq!(of(FUTEX, wait(WaitKind::Barrier, TeamId(0))), 1);
}
