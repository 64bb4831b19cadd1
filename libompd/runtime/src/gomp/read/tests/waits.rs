//! What threads wait for.

use super::*;

/// What thread 1 of a team of two waits for on the barrier of the team, which is in this state.
fn at_barrier(generation: u64, awaited: u64, awaited_final: u64) -> (Option<WaitKind>, Option<Barrier>) {
    let mut made = Made::new();
    let team = made.team(2);
    made.set(team, |s| s.team.barrier_generation, generation);
    made.set(team, |s| s.team.barrier_awaited, awaited);
    made.set(team, |s| s.team.barrier_awaited_final, awaited_final);
    let word = made.addr_of(team, |s| s.team.barrier_generation);
    made.sleeps(1, word, generation as u32);
    let found = made.snapshot();
    let wait = found.threads[0].wait.value().and_then(Option::as_ref);
    (wait.map(|wait| wait.kind), found.teams[0].barrier.get())
}

#[test]
fn state_of_the_barrier_says_which_barrier_it_is_and_who_has_arrived() {
    let barrier = |inside, at_end, passed| {
        Some(Barrier { inside: Some(inside), at_end: Some(at_end), passed: Some(passed), size: 2 })
    };
    let at = |kind, inside, at_end, passed| (Some(kind), barrier(inside, at_end, passed));
    use WaitKind::{Barrier as Inside, BarrierTasks, RegionEnd};
    assert_eq!(at_barrier(8, 1, 2), at(Inside, 1, 0, 1));
    assert_eq!(at_barrier(0, 2, 2), at(Inside, 0, 0, 0));
    assert_eq!(at_barrier(24, 2, 1), at(RegionEnd, 0, 1, 3));
    // Both have begun, so the counts do not show which one it is.
    assert_eq!(at_barrier(24, 1, 1), at(Inside, 1, 1, 3));
    // All are there, and tasks are left.
    assert_eq!(at_barrier(8 + 2, 2, 2), at(BarrierTasks, 2, 0, 1));
    // After a cancellation the count inside keeps what it was.
    assert_eq!(at_barrier(8 + 4, 1, 1), at(RegionEnd, 0, 1, 1));
    assert_eq!(at_barrier(8, 3, 2).1, None, "more are awaited than there are");
    assert_eq!(at_barrier(8, 2, 3).1, None);
}

/// The wait of thread 1 of two, asleep on a word that `word` gives.
fn wait_on(word: impl Fn(&mut Made, Addr) -> (Addr, u32)) -> Fact<Option<Wait>> {
    let mut made = Made::new();
    let team = made.team(2);
    let (at, value) = word(&mut made, team);
    made.sleeps(1, at, value);
    made.snapshot().threads.remove(0).wait
}

#[test]
fn barrier_is_over_once_its_generation_has_gone_on() {
    let over = |slept_at: u32, now: u64| {
        let wait = wait_on(|made, team| {
            made.set(team, |s| s.team.barrier_generation, now);
            (made.addr_of(team, |s| s.team.barrier_generation), slept_at)
        });
        wait.value().cloned().flatten().expect("a wait").over.get()
    };
    assert_eq!(over(8, 8), Some(false));
    assert_eq!(over(8, 16), Some(true));
    assert_eq!(over(8, 8 + 1), Some(false), "somebody has come to it");
    assert_eq!(over(8, 8 + 2), Some(false), "tasks are left");
    assert_eq!(over(8, 8 + 4), None, "it was cancelled since");
    assert_eq!(over(8 + 4, 8 + 4), Some(false));
}

#[test]
fn words_of_the_runtime_say_what_threads_sleep_on_them_for() {
    let kind = |word: fn(&mut Made, Addr) -> (Addr, u32)| {
        let found = wait_on(word);
        found.value().cloned().flatten().map(|wait| (wait.kind, wait.asleep, wait.name))
    };
    let asleep = |kind, name: Option<&str>| Some((kind, Some(true), name.map(str::to_owned)));
    assert_eq!(
        kind(|made, _| (made.variable(schema::DEFAULT_LOCK), u32::MAX)),
        asleep(WaitKind::Critical, Some("critical (unnamed)"))
    );
    assert_eq!(
        kind(|made, _| (made.variable(schema::ATOMIC_LOCK), u32::MAX)),
        asleep(WaitKind::Atomic, Some("atomic"))
    );
    let another = kind(|made, _| (made.variable(schema::CANCEL), u32::MAX));
    assert_eq!(another, asleep(WaitKind::RuntimeInternal, None), "another variable of the runtime");
    assert_eq!(kind(|made, _| (made.zeros(64), u32::MAX)), asleep(WaitKind::Mutex, None));
    // No lock has this value while a thread sleeps on it.
    assert_eq!(kind(|made, _| (made.zeros(64), 1)), None);
    let release = kind(|made, _| (made.addr_of(made.data(1), |s| s.thread.release), 0));
    assert_eq!(release, asleep(WaitKind::Ordered, None));
    assert_eq!(kind(|made, team| (made.addr_of(team, |s| s.team.master_release), 0)), asleep(WaitKind::Ordered, None));
    let lock = kind(|made, team| (made.addr_of(team, |s| s.team.task_lock), u32::MAX));
    assert_eq!(lock, asleep(WaitKind::RuntimeInternal, None));
    // Number 0 waits at the dock until the others are there.
    let dock = kind(|made, _| {
        let pool = made.target.read_ptr(made.addr_of(made.data(1), |s| s.thread.thread_pool)).expect("a pool");
        (made.addr_of(pool, |s| s.pool.dock), 0)
    });
    assert_eq!(dock, asleep(WaitKind::RegionStart, None));
}

/// What is known of the lock that `waiters` threads of a team of two sleep on.
fn lock_with(word: u32, waiters: i32, change: impl Fn(&mut Made, Addr, Addr)) -> (RawLock, Vec<Option<bool>>) {
    let mut made = Made::new();
    let team = made.team(2);
    let memory = made.zeros(64);
    let lock = made.addr_of(memory, |s| s.nest_lock.lock);
    made.write(lock, word.into(), 4);
    for lwp in 1..=waiters {
        made.sleeps(lwp, lock, u32::MAX);
    }
    change(&mut made, team, memory);
    let found = made.snapshot();
    let waits = found.threads.iter().take(waiters as usize).map(|thread| thread.wait.value()?.as_ref()?.over.get());
    let waits = waits.collect();
    (found.locks.into_iter().next().expect("a lock"), waits)
}

#[test]
fn lock_is_waited_for_while_it_is_held() {
    let of = |word, waiters| {
        let (lock, over) = lock_with(word, waiters, |_, _, _| ());
        (lock.held.get(), lock.owner.get(), lock.waiters, over)
    };
    assert_eq!(of(u32::MAX, 2), (Some(true), None, vec![1, 2], vec![Some(false), Some(false)]));
    assert_eq!(of(1, 1), (Some(true), None, vec![1], vec![Some(false)]));
    assert_eq!(of(0, 1), (Some(false), Some(None), vec![1], vec![Some(true)]), "it is about to get it");
    assert_eq!(of(0, 2), (Some(false), Some(None), vec![1, 2], vec![None, None]), "one of the two does");
}

#[test]
fn lock_with_the_control_variables_of_a_task_behind_it_is_a_nest_lock_of_that_task() {
    let of = |word, depth, owner: fn(&Made, Addr) -> Addr| {
        let (lock, _) = lock_with(word, 1, |made, team, memory| {
            made.set(memory, |s| s.nest_lock.count, depth);
            let owner = owner(made, team);
            made.set(memory, |s| s.nest_lock.owner, owner.0);
        });
        (lock.kind.get(), lock.owner.flat(), lock.depth)
    };
    let of_first = |made: &Made, team: Addr| {
        let task = made.addr_of(team, |s| s.team.implicit_task);
        made.addr_of(task, |s| s.task.icv)
    };
    let nest = (Some(LockKind::NestLock), Some(Owner::Task(TaskId(0))), Some(2));
    assert_eq!(of(u32::MAX, 2, of_first), nest);
    let unknown = (None, None, None);
    assert_eq!(of(u32::MAX, 0, of_first), unknown, "nobody has set it");
    assert_eq!(of(0, 2, of_first), unknown, "what is left of an owner");
    assert_eq!(of(u32::MAX, 2, |_, team| team), unknown);
    assert_eq!(of(u32::MAX, 2, |_, _| Addr::NULL), unknown);
}

#[test]
fn thread_that_is_not_in_a_call_of_the_runtime_waits_for_nothing_of_it() {
    let of = |change: fn(&mut ompd_process::Registers)| {
        let mut made = Made::new();
        let team = made.team(2);
        let word = made.addr_of(team, |s| s.team.barrier_generation);
        made.sleeps(1, word, 0);
        change(made.target.threads[0].registers.as_mut().expect("registers"));
        made.snapshot().threads.remove(0).wait
    };
    let kind = |wait: Fact<Option<Wait>>| wait.value().cloned().flatten().map(|wait| (wait.kind, wait.asleep));
    assert_eq!(kind(of(|_| ())), Some((WaitKind::Barrier, Some(true))));
    assert_eq!(of(|registers| registers.pc = Addr(0x1000)), Fact::known(None, Origin::Registers));
    // It was woken, and has not looked at the word yet.
    let woken = of(|registers| registers.returned = registers.syscall.take());
    assert_eq!(kind(woken), Some((WaitKind::Barrier, Some(false))));
    let wakes = |registers: &mut ompd_process::Registers| {
        if let Some(call) = &mut registers.syscall {
            call.args[1] = 129;
        }
    };
    assert_eq!(of(wakes).value(), None, "it wakes others");
    assert_eq!(of(|registers| registers.syscall = None).value(), None, "it computes in the runtime");
}

#[test]
fn worker_that_keeps_the_team_of_the_last_region_waits_for_the_next() {
    let mut made = Made::new();
    let team = made.team(2);
    let pool = made.target.read_ptr(made.addr_of(made.data(1), |s| s.thread.thread_pool)).expect("a pool");
    made.set(pool, |s| s.pool.last_team, team.0);
    let initial = made.data(1);
    made.set(initial, |s| s.thread.team, 0);
    made.set(initial, |s| s.thread.level, 0);
    made.set(initial, |s| s.thread.active_level, 0);
    let dock = made.addr_of(pool, |s| s.pool.dock);
    made.sleeps(2, dock, 0);
    let kinds = |made: &Made| {
        let found = made.snapshot();
        assert_eq!(found.teams.len(), 0);
        let kind =
            |thread: &RawThread| (thread.role.get(), thread.wait.value().cloned().flatten().map(|wait| wait.kind));
        found.threads.iter().map(kind).collect::<Vec<_>>()
    };
    let expected = [(Some(Role::Initial), None), (Some(Role::IdleWorker), Some(WaitKind::Pool))];
    assert_eq!(kinds(&made), expected);
    // Its registers are not known, and need not be.
    made.target.threads[1].registers = Err("not stopped".to_owned());
    assert_eq!(kinds(&made), expected);
}

/// Thread 1 is number 0 of a team of two, and so is it of a team of one nested in that.
fn nested() -> (Made, Addr, Addr) {
    let mut made = Made::new();
    let outer = made.team(2);
    let inner = made.team(1);
    // The thread that was made with the inner team is none.
    let data = made.data(3);
    made.target.threads.pop();
    let initial = made.data(1);
    made.set(initial, |s| s.thread.team, inner.0);
    made.set(initial, |s| s.thread.level, 2);
    let task = made.target.read_ptr(made.addr_of(data, |s| s.thread.task)).expect("a task");
    made.set(initial, |s| s.thread.task, task.0);
    let parent = made.addr_of(outer, |s| s.team.implicit_task);
    made.set(task, |s| s.task.parent, parent.0);
    made.set(inner, |s| s.team.prev_team, outer.0);
    made.set(inner, |s| s.team.prev_level, 1);
    made.set(inner, |s| s.team.prev_active_level, 1);
    (made, outer, inner)
}

#[test]
fn thread_in_a_nested_team_is_a_member_of_the_team_around_it() {
    let (made, outer, inner) = nested();
    let found = made.snapshot();
    assert_eq!(found.issues, []);
    let teams: Vec<_> = found.teams.iter().map(|team| (team.descriptor, team.level.get(), team.parent.get())).collect();
    assert_eq!(teams, [(outer, Some(1), Some(None)), (inner, Some(2), Some(Some(TeamId(0))))]);
    assert_eq!(found.teams[0].members, [Some(1), Some(2)]);
    assert_eq!(found.teams[1].members, [Some(1)]);
    assert_eq!(found.teams[1].active_level.get(), Some(1));
    assert_eq!((found.threads[0].team.flat(), found.threads[0].role.get()), (Some(TeamId(1)), Some(Role::Initial)));
    // The task of the inner region was generated by that of the outer one.
    let own = found.threads[0].task.get().and_then(|id| found.task(id)).expect("its task");
    let generating = own.generating.flat().and_then(|id| found.task(id)).expect("a task");
    assert_eq!(generating.descriptor, made.addr_of(outer, |s| s.team.implicit_task));
}

#[test]
fn thread_that_has_left_a_nested_team_waits_for_its_end() {
    let (mut made, _, inner) = nested();
    // It is back in the outer team, and the others have still to leave.
    let word = made.addr_of(inner, |s| s.team.barrier_generation);
    made.sleeps(2, word, 0);
    let kind =
        |made: &Made| made.snapshot().threads[1].wait.value().cloned().flatten().map(|wait| (wait.kind, wait.team));
    assert_eq!(kind(&made), Some((WaitKind::RegionEnd, Some(TeamId(1)))));
}

#[test]
fn levels_of_nesting_that_contradict_each_other_are_unknown() {
    let (mut made, _, _) = nested();
    made.set(made.data(1), |s| s.thread.level, 3);
    let found = made.snapshot();
    let level = found.teams.iter().find(|team| team.members.len() == 1).expect("the inner team").level.value();
    assert_eq!(level, None);
}
