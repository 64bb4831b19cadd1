//! What is said of each situation.

use ompd_inspection::outside::{Described, Ends, Outside, OutsideWait};
use ompd_process::Addr;
use ompd_process::live::Holder;
use ompd_runtime::entry::Construct;
use ompd_runtime::model::*;
use ompd_runtime::os::{Blocked, Outsider, Signals};
use ompd_runtime::samples::{FUTEX, Process, WHY, fact, spins, wait};

use ompd_stack::LockCall;

use super::*;
use crate::samples::{inspection, stack};

/// All verdicts as they are read: the cause behind `!`, evidence behind `-`, what is inferred behind `?`, the fix behind `>`.
fn told(inspection: &Inspection) -> String {
    let mut text = String::new();
    for verdict in inspection.waits_for.all() {
        let told = tell(inspection, verdict);
        text.push_str(&format!("{}: {}\n", verdict.certainty.word(), told.text));
        text.extend(told.cause.map(|cause| format!("! {cause}\n")));
        text.extend(told.evidence.iter().map(|line| format!("- {line}\n")));
        text.extend(told.inferred.iter().map(|line| format!("? {line}\n")));
        text.push_str(&format!("> {}\n", told.fix));
    }
    text
}

fn lock(p: &mut Process, name: &str, owner: Fact<Option<Owner>>) -> LockId {
    let lock = p.lock(owner);
    p.snapshot.locks[lock.0].name = Some(name.to_owned());
    lock
}

fn of(lwp: i32) -> Fact<Option<Owner>> {
    fact(Some(Owner::Thread(lwp)))
}

fn unrecorded() -> Fact<Option<Owner>> {
    Fact::unknown(Common::NotRecordedByRuntime)
}

/// The wait of a thread for this lock.
fn locked(p: &Process, lock: LockId) -> Option<Wait> {
    let wait = ompd_runtime::samples::locked(lock);
    wait.map(|wait| Wait { name: p.snapshot.locks[lock.0].name.clone(), ..wait })
}

fn at(wait: Option<Wait>, line: u32) -> Option<Wait> {
    let location = Some(SourceLine { file: "x.c".to_owned(), function: "main".to_owned(), line });
    wait.map(|wait| Wait { location, ..wait })
}

fn explicit(p: &mut Process, team: TeamId, state: TaskState, generating: TaskId) -> TaskId {
    let task = p.task(team, TaskKind::Explicit, state);
    p.snapshot.tasks[task.0].generating = fact(Some(generating));
    task
}

#[test]
fn two_threads_each_hold_the_lock_that_the_other_waits_for() {
    let mut p = Process::new();
    let team = p.team();
    let (a, b) = (lock(&mut p, "a", of(2)), lock(&mut p, "b", of(1)));
    p.member(team, FUTEX, at(locked(&p, a), 4));
    p.member(team, FUTEX, at(locked(&p, b), 5));
    p.member(team, FUTEX, wait(WaitKind::Barrier, team));
    let mut it = inspection(p);
    it.stacks.logical = vec![stack(1, "left", "x.c", 10), stack(2, "right", "x.c", 20)];
    assert_eq!(
        told(&it),
        "\
deadlock: thread 0 waits for lock a, and thread 1 waits for lock b; each holds the lock that the other waits for
! thread 0 (id 1): waits for lock a, held by thread 1, x.c:10, in left; thread 1 (id 2): waits for lock b, held by thread 0, x.c:20, in right
- thread 0 (id 1) waits for lock a (x.c:4); held by thread 1 (id 2)
- thread 1 (id 2) waits for lock b (x.c:5); held by thread 0 (id 1)
- 1 more thread waits for these: ids 3
> Set lock a and lock b in the same order in every thread, or use one lock for all.
"
    );
}

#[test]
fn three_threads_each_hold_a_lock_that_the_next_one_waits_for() {
    let mut p = Process::new();
    let team = p.team();
    let locks = [("a", 2), ("b", 3), ("c", 1)].map(|(name, owner)| lock(&mut p, name, of(owner)));
    for lock in locks {
        p.member(team, FUTEX, locked(&p, lock));
    }
    assert_eq!(
        told(&inspection(p)),
        "\
deadlock: 3 threads each hold a lock that the next one waits for
! thread 0 (id 1): waits for lock a, held by thread 1; thread 1 (id 2): waits for lock b, held by thread 2; thread 2 (id 3): waits for lock c, held by thread 0
- thread 0 (id 1) waits for lock a; held by thread 1 (id 2)
- thread 1 (id 2) waits for lock b; held by thread 2 (id 3)
- thread 2 (id 3) waits for lock c; held by thread 0 (id 1)
> Set lock a, lock b and lock c in the same order in every thread, or use one lock for all.
"
    );
}

#[test]
fn a_lock_across_a_taskwait_is_no_cycle_of_locks() {
    let mut p = Process::new();
    let team = p.team();
    let a = lock(&mut p, "a", of(1));
    p.member(team, FUTEX, wait(WaitKind::Taskwait, team));
    p.member(team, FUTEX, locked(&p, a));
    let task = explicit(&mut p, team, TaskState::Running, TaskId(0));
    p.snapshot.tasks[task.0].thread = Some(2);
    p.snapshot.threads[1].task = fact(task);
    assert_eq!(
        told(&inspection(p)),
        "\
deadlock: thread 0 waits in taskwait, and thread 1 waits for lock a: they wait for each other
! thread 0 (id 1): waits in taskwait; thread 1 (id 2): waits for lock a, held by thread 0
- thread 0 (id 1) waits in taskwait; not over: task 2
- thread 1 (id 2) waits for lock a; held by thread 0 (id 1)
- task 2 is executed by thread 1 (id 2)
> Release lock a before the wait for the thread that needs it, or acquire it after the wait.
"
    );
}

#[test]
fn a_lock_across_ordered_is_no_cycle_of_locks() {
    let mut p = Process::new();
    let team = p.team();
    let a = lock(&mut p, "a", of(1));
    p.member(team, FUTEX, wait(WaitKind::Ordered, team));
    p.member(team, FUTEX, locked(&p, a));
    p.turn(team, 1);
    assert_eq!(
        told(&inspection(p)),
        "\
deadlock: thread 0 waits for its turn in ordered, and thread 1 waits for lock a: they wait for each other
! thread 0 (id 1): waits for its turn in ordered; thread 1 (id 2): waits for lock a, held by thread 0
- thread 0 (id 1) waits for its turn in ordered; it is the turn of thread 1 of team 0
- thread 1 (id 2) waits for lock a; held by thread 0 (id 1)
> Release lock a before the wait for the thread that needs it, or acquire it after the wait.
"
    );
}

#[test]
fn a_lock_or_critical_that_its_own_thread_waits_for() {
    let mut p = Process::new();
    let team = p.team();
    let a = lock(&mut p, "a", of(1));
    p.member(team, FUTEX, locked(&p, a));
    p.member(team, FUTEX, locked(&p, a));
    assert_eq!(
        told(&inspection(p.clone())),
        "\
deadlock: thread 0 waits for lock a, which it holds itself
! thread 0 (id 1): waits for lock a, held by itself
- thread 0 (id 1) waits for lock a; held by thread 0 (id 1)
- 1 more thread waits for these: ids 2
> Unset lock a before it is set again, or make it a nestable lock (omp_nest_lock_t).
"
    );
    // Another task of the thread may have set it, which a nestable lock does not allow either.
    let mut in_task = p.clone();
    in_task.snapshot.tasks[0].kind = fact(TaskKind::Explicit);
    let mut nestable = p.clone();
    nestable.snapshot.locks[0].kind = fact(LockKind::NestLock);
    for other in [in_task, nestable] {
        let text = told(&inspection(other));
        let before = "before it is set again, and before a wait in which the thread may execute another task (taskwait, barrier).";
        assert!(text.contains(before), "{text}");
    }
    p.snapshot.locks[0].kind = fact(LockKind::Critical);
    p.snapshot.locks[0].name = Some("critical (sum)".to_owned());
    let critical = locked(&p, a).map(|wait| Wait { kind: WaitKind::Critical, ..wait });
    p.snapshot.threads.iter_mut().for_each(|thread| thread.wait = fact(critical.clone()));
    assert_eq!(
        told(&inspection(p)),
        "\
deadlock: thread 0 waits for critical (sum), which it holds itself
! thread 0 (id 1): waits for critical (sum), held by itself
- thread 0 (id 1) waits for critical (sum); held by thread 0 (id 1)
- 1 more thread waits for these: ids 2
> Critical constructs of one name do not nest: give the inner one another name, or move it out.
"
    );
}

#[test]
fn a_lock_whose_owner_has_ended() {
    let mut p = Process::new();
    let team = p.team();
    let a = lock(&mut p, "a", fact(Some(Owner::Gone(77))));
    p.member(team, FUTEX, locked(&p, a));
    p.member(team, FUTEX, wait(WaitKind::Barrier, team));
    assert_eq!(
        told(&inspection(p)),
        "\
deadlock: lock a is held by a thread that has ended
! thread 0 (id 1): waits for lock a, held by a thread that has ended
- thread 0 (id 1) waits for lock a; held by a thread that has ended
- 1 more thread waits for these: ids 2
> Release lock a on every way out of the code that acquires it, exceptions and returns included.
"
    );
}

#[test]
fn members_at_different_barriers() {
    let mut p = Process::new();
    let team = p.team();
    p.member(team, FUTEX, at(wait(WaitKind::Barrier, team), 4));
    p.member(team, FUTEX, at(wait(WaitKind::RegionEnd, team), 9));
    p.member(team, FUTEX, at(wait(WaitKind::RegionEnd, team), 9));
    assert_eq!(
        told(&inspection(p)),
        "\
deadlock: thread 0 waits at another barrier than threads 1-2
! thread 0 (id 1): waits at a barrier, x.c:4
- thread 0 (id 1) waits at a barrier (x.c:4); not reached by threads 1-2
- threads 1-2 wait at the end of the region (x.c:9); not reached by thread 0 (id 1)
> Every thread of a team must reach the same barriers: move the barrier out of the branch.
"
    );
}

#[test]
fn a_worksharing_construct_that_some_members_skipped() {
    let mut p = Process::new();
    let team = p.team();
    let at_loop = wait(WaitKind::Barrier, team).map(|wait| Wait { call: Some(Construct::EndOfFor), ..wait });
    p.member(team, FUTEX, at(at_loop, 4));
    p.member(team, FUTEX, at(wait(WaitKind::RegionEnd, team), 9));
    p.member(team, FUTEX, at(wait(WaitKind::RegionEnd, team), 9));
    assert_eq!(
        told(&inspection(p)),
        "\
deadlock: threads 1-2 have skipped a worksharing construct that thread 0 has reached
! threads 1-2: wait at the end of the region, x.c:9; thread 0 (id 1): waits at a barrier, x.c:4
- thread 0 (id 1) waits at a barrier (x.c:4); not reached by threads 1-2
- threads 1-2 wait at the end of the region (x.c:9); not reached by thread 0 (id 1)
> All threads of a team must reach a worksharing construct or single, or none: move it out of the branch, or add nowait if no code needs its barrier.
"
    );
}

#[test]
fn a_member_that_waits_for_a_lock_of_one_at_the_barrier() {
    let mut p = Process::new();
    let team = p.team();
    let a = lock(&mut p, "a", of(1));
    p.member(team, FUTEX, at(wait(WaitKind::Barrier, team), 4));
    p.member(team, FUTEX, at(locked(&p, a), 9));
    assert_eq!(
        told(&inspection(p)),
        "\
deadlock: thread 1 has not reached the barrier that thread 0 waits at
! thread 1 (id 2): waits for lock a, held by thread 0, x.c:9
- thread 0 (id 1) waits at a barrier (x.c:4); not reached by thread 1 (id 2)
- thread 1 (id 2) waits for lock a (x.c:9); held by thread 0 (id 1)
> Release lock a before the barrier, or acquire it after the barrier.
"
    );
}

#[test]
fn a_member_that_is_not_among_the_threads_of_the_process() {
    let mut p = Process::new();
    let team = p.team();
    p.member(team, FUTEX, wait(WaitKind::Barrier, team));
    p.snapshot.teams[team.0].members.push(None);
    p.member(team, FUTEX, wait(WaitKind::Barrier, team));
    p.snapshot.recorded.pools.push(Pool { threads: vec![Some(1), None, Some(2)] });
    assert_eq!(
        told(&inspection(p)),
        "\
deadlock: threads 0,2 wait for thread 1 of the team, which the process does not have
! threads 0,2: wait at a barrier
- threads 0,2 wait at a barrier; not reached by thread 1, which the process does not have
> No thread may end in a parallel region (pthread_exit), and no child of fork may continue one.
"
    );
}

#[test]
fn threads_of_a_pool_that_a_fork_left_behind() {
    let mut p = Process::new();
    let team = p.team();
    p.member(team, FUTEX, wait(WaitKind::RegionStart, team));
    p.snapshot.teams[team.0].members.extend([None, None]);
    p.snapshot.recorded.pools.push(Pool { threads: vec![Some(1), None, None] });
    assert_eq!(
        told(&inspection(p.clone())),
        "\
deadlock: team 0 waits for threads that fork left behind in the parent process
! thread 0 (id 1): waits for the other threads of its team to start a region
- thread 0 (id 1) waits for the other threads of its team to start a region; not there: threads 1-2, which the process does not have
> Do not use OpenMP in the child of a fork if the parent did: start processes with spawn or forkserver, exec after fork, or set OMP_NUM_THREADS=1 in the child.
"
    );
    p.snapshot.teams[team.0].members.pop();
    p.snapshot.recorded.pools[0].threads.pop();
    assert_eq!(
        told(&inspection(p)),
        "\
deadlock: team 0 waits for a thread that has ended, or that fork left behind in the parent process
! thread 0 (id 1): waits for the other threads of its team to start a region
- thread 0 (id 1) waits for the other threads of its team to start a region; not there: thread 1, which the process does not have
> Do not use OpenMP in the child of a fork if the parent did: start processes with spawn or forkserver, exec after fork, or set OMP_NUM_THREADS=1 in the child.
"
    );
}

/// No thread sleeps, so whether they are about to get on is not seen.
#[test]
fn an_event_that_somebody_may_fulfil() {
    let mut p = Process::new();
    let team = p.team();
    let at_barrier = wait(WaitKind::Barrier, team).map(|wait| Wait { over: Fact::unknown(WHY), ..wait });
    p.member(team, Blocked::No, spins(at_barrier));
    let task = explicit(&mut p, team, TaskState::Detached, TaskId(0));
    let answer = |p: &Process| crate::answer::answer(&inspection(p.clone())).expect("an answer");
    p.snapshot.tasks[task.0].event = fact(Some(Event { handle: Addr(0x10), fulfilled: true }));
    assert_eq!((answer(&p).word, answer(&p).cause), ("WAITING", None));
    p.snapshot.tasks[task.0].event = fact(Some(Event { handle: Addr(0x10), fulfilled: false }));
    let found = answer(&p);
    assert_eq!(found.text, "no OpenMP thread is seen to execute the program: 1 waits at a barrier");
    assert_eq!(found.cause.as_deref(), Some("the event of task 1 has not been fulfilled"));
    assert!(found.fix.is_some_and(|fix| fix.contains("omp_fulfill_event")));
}

#[test]
fn an_event_that_nobody_fulfils() {
    let mut p = Process::new();
    let team = p.team();
    p.member(team, FUTEX, at(wait(WaitKind::Taskwait, team), 4));
    let task = explicit(&mut p, team, TaskState::Detached, TaskId(0));
    p.snapshot.tasks[task.0].event = fact(Some(Event { handle: Addr(0x10), fulfilled: false }));
    assert_eq!(
        told(&inspection(p)),
        "\
deadlock: no thread is left to fulfil the event of task 1
! thread 0 (id 1): waits in taskwait, x.c:4
- thread 0 (id 1) waits in taskwait (x.c:4); not over: task 1
- the body of task 1 is over; its event 0x10 has not been fulfilled
> Call omp_fulfill_event on every path, errors included, from a thread that does not wait for the task.
"
    );
}

#[test]
fn tasks_that_depend_on_each_other() {
    let mut p = Process::new();
    let team = p.team();
    p.member(team, FUTEX, wait(WaitKind::Taskwait, team));
    let [one, two] = [1, 2].map(|_| explicit(&mut p, team, TaskState::Blocked, TaskId(0)));
    for (task, before) in [(one, two), (two, one)] {
        p.snapshot.tasks[task.0].predecessors = vec![before];
    }
    assert_eq!(
        told(&inspection(p)),
        "\
deadlock: task 1 cannot begin: the task that it depends on waits for it
! thread 0 (id 1): waits in taskwait
- thread 0 (id 1) waits in taskwait; not over: task 2, task 1
- task 1 has not begun: it depends on task 2
- task 2 has not begun: it depends on task 1
> A task must not wait for a task that depends on it: release what it holds first, or drop the dependence.
"
    );
}

#[test]
fn a_task_that_no_thread_is_free_to_execute() {
    let mut p = Process::new();
    let team = p.team();
    let a = lock(&mut p, "a", unrecorded());
    p.member(team, FUTEX, locked(&p, a));
    explicit(&mut p, team, TaskState::Ready, TaskId(0));
    assert_eq!(
        told(&inspection(p)),
        "\
deadlock: task 1 is ready, and all threads that could execute it wait
! thread 0 (id 1): waits for lock a
- thread 0 (id 1) waits for lock a; its owner is not recorded
- task 1 is ready, and no thread is free to execute it
- the runtime does not record it
> Do not hold a lock or wait for a flag that only a queued task can release: use taskwait or dependences, or more threads.
"
    );
}

#[test]
fn a_task_on_a_device() {
    let mut p = Process::new();
    let team = p.team();
    p.member(team, FUTEX, wait(WaitKind::Taskwait, team));
    explicit(&mut p, team, TaskState::OnDevice, TaskId(0));
    p.foreign(Blocked::No);
    assert_eq!(
        told(&inspection(p)),
        "\
waiting: task 1, handed to a device, is not over
! thread 0 (id 1): waits in taskwait
- thread 0 (id 1) waits in taskwait; not over: task 1
- task 1 was handed to a device
> Use a monitor of the device to see whether it computes, and a debugger for the device to see what.
"
    );
}

#[test]
fn a_nested_region_that_got_no_threads() {
    let mut p = Process::new();
    let (outer, inner) = (p.team(), p.team());
    p.member(outer, FUTEX, wait(WaitKind::RegionEnd, outer));
    let lwp = p.member(inner, Blocked::Yields, None);
    p.snapshot.teams[outer.0].members.push(Some(lwp));
    p.snapshot.teams[inner.0].size = fact(1);
    p.snapshot.teams[inner.0].level = fact(2);
    p.allow(lwp, 1, 1);
    assert_eq!(
        told(&inspection(p)),
        "\
suspect: a thread waits in a loop for another thread, and its nested region has none
! thread 0 of team 1 (id 2): running
- thread 0 of team 0 (id 1) waits at the end of the region; not reached by thread 0 of team 1 (id 2)
- thread 0 of team 1 (id 2) is in sched_yield, the only thread of its region: max-active-levels is 1, active levels are 1
> Allow more nested levels (OMP_MAX_ACTIVE_LEVELS), or use omp_get_num_threads() in the region.
"
    );
}

#[test]
fn a_lock_that_the_only_other_member_probably_holds() {
    let of_other = |wait: fn(TeamId) -> Option<Wait>| {
        let mut p = Process::new();
        let team = p.team();
        let a = lock(&mut p, "a", unrecorded());
        p.member(team, FUTEX, locked(&p, a));
        p.member(team, FUTEX, wait(team));
        p
    };
    let at_barrier = of_other(|team| wait(WaitKind::Barrier, team));
    assert_eq!(
        told(&inspection(at_barrier.clone())),
        "\
deadlock: thread 1 waits at a barrier and probably holds lock a, which thread 0 waits for; no thread can release it
! thread 1 (id 2): waits at a barrier; thread 0 (id 1): waits for lock a
- thread 0 (id 1) waits for lock a; its owner is not recorded
- thread 1 (id 2) waits at a barrier; not reached by thread 0 (id 1)
- the runtime does not record it
? thread 1 probably holds lock a; it is the only thread of the team that does not wait for it
> Release lock a before the barrier, or acquire it after the barrier.
"
    );
    let in_taskwait = of_other(|team| wait(WaitKind::Taskwait, team));
    assert_eq!(
        told(&inspection(in_taskwait)),
        "\
deadlock: thread 0 waits for lock a, probably held by thread 1; no thread can release it
! thread 1 (id 2): waits in taskwait
- thread 0 (id 1) waits for lock a; its owner is not recorded
- thread 1 (id 2) waits in taskwait
- the runtime does not record it
? thread 1 probably holds lock a; it is the only thread of the team that does not wait for it
> If thread 1 holds lock a: release it before the wait, and on every path.
"
    );
    // Another thread can have it as well, and the task that has set it was none of those.
    let mut with_another = at_barrier.clone();
    let lwp = with_another.foreign(FUTEX);
    let mut with_another = inspection(with_another);
    with_another.lock_calls.push(LockCall { lwp, variable: None, line: None, waits: false, leads: true });
    assert!(!told(&with_another).contains("probably"));
    // It may have left the function in which it did.
    with_another.lock_calls.clear();
    assert!(!told(&with_another).contains("probably"));
    // The one that waits may have set it itself, unless the other has set some lock as well.
    let call = |lwp| LockCall { lwp, variable: None, line: None, waits: false, leads: true };
    let mut by_itself = inspection(at_barrier.clone());
    by_itself.lock_calls.push(call(1));
    let text = told(&by_itself);
    assert!(!text.contains("probably"), "{text}");
    assert!(text.contains("If thread 0 holds it: release it before it is acquired again."), "{text}");
    by_itself.lock_calls.push(call(2));
    assert!(told(&by_itself).contains("thread 1 probably holds lock a"));
    // Its code shows that it sets this lock, in a program without lines.
    let mut by_code = inspection(at_barrier.clone());
    let variable = by_code.runtimes[0].locks[0].object;
    by_code.lock_calls.push(LockCall { variable: Some(variable), ..call(2) });
    let text = told(&by_code);
    assert!(text.contains("? thread 1 probably holds lock a, which code on its stack sets\n"), "{text}");
    let mut of_no_task = at_barrier;
    of_no_task.snapshot.locks[0].owner = Fact::unknown(Common::OwnerNotFound);
    let text = told(&inspection(of_no_task));
    assert!(!text.contains("probably") && text.contains("its owner is unknown"), "{text}");
}

#[test]
fn locks_whose_owners_are_not_recorded() {
    let mut p = Process::new();
    let team = p.team();
    let [a, b] = ["a", "b"].map(|name| lock(&mut p, name, unrecorded()));
    p.member(team, FUTEX, locked(&p, a));
    p.member(team, FUTEX, locked(&p, b));
    assert_eq!(
        told(&inspection(p.clone())),
        "\
deadlock: thread 0 waits for lock a, and thread 1 waits for lock b; each probably holds the lock that the other waits for; no thread can release them
! thread 0 (id 1): waits for lock a; thread 1 (id 2): waits for lock b
- thread 0 (id 1) waits for lock a; its owner is not recorded
- thread 1 (id 2) waits for lock b; its owner is not recorded
- the runtime does not record it
? thread 1 probably holds lock a; it is the only thread of the team that does not wait for it
? thread 0 probably holds lock b; it is the only thread of the team that does not wait for it
> If so: set the locks in the same order in every thread, or use one lock for both.
"
    );
    p.member(team, FUTEX, wait(WaitKind::Barrier, team));
    assert_eq!(
        told(&inspection(p)),
        "\
deadlock: threads 0-1 have not reached the barrier that thread 2 waits at
! thread 0 (id 1): waits for lock a; thread 1 (id 2): waits for lock b
- thread 0 (id 1) waits for lock a; its owner is not recorded
- thread 1 (id 2) waits for lock b; its owner is not recorded
- thread 2 (id 3) waits at a barrier; not reached by threads 0-1
- the runtime does not record it
> Set lock a and lock b in the same order in every thread, and release them on every path: see `stacks`.
"
    );
    let mut p = Process::new();
    let team = p.team();
    let a = lock(&mut p, "a", unrecorded());
    p.member(team, FUTEX, locked(&p, a));
    p.member(team, FUTEX, locked(&p, a));
    assert_eq!(
        told(&inspection(p)),
        "\
deadlock: all threads wait (2 for lock a), and no thread is left to let another continue
! threads 0-1: wait for lock a
- threads 0-1 wait for lock a; its owner is not recorded
- the runtime does not record it
> Release lock a on every path. A waiting thread holds it, or one that has ended: see `stacks`.
"
    );
}

#[test]
fn the_thread_whose_turn_it_is_in_ordered_is_the_cause() {
    let mut p = Process::new();
    let team = p.team();
    p.member(team, FUTEX, wait(WaitKind::Ordered, team));
    p.member(team, FUTEX, wait(WaitKind::Barrier, team));
    p.turn(team, 1);
    assert_eq!(
        told(&inspection(p)),
        "\
deadlock: thread 0 waits for its turn in ordered, which thread 1 has
! thread 1 (id 2): waits at a barrier
- thread 0 (id 1) waits for its turn in ordered; it is the turn of thread 1 of team 0
- thread 1 (id 2) waits at a barrier; not reached by thread 0 (id 1)
> A thread must finish its ordered region before it waits: move the wait out of the loop.
"
    );
}

/// The answer has told of the thread already.
#[test]
fn nobody_is_told_to_wait_for_a_thread_that_has_crashed() {
    let mut p = Process::new();
    let team = p.team();
    p.member(team, FUTEX, wait(WaitKind::Barrier, team));
    p.member(team, Blocked::No, None);
    p.snapshot.teams[0].barrier = fact(Barrier { inside: Some(1), passed: None, at_end: Some(0), size: 2 });
    let mut of_crash = inspection(p);
    let told = |inspection: &Inspection| crate::answer::verdicts(inspection).count();
    assert_eq!(told(&of_crash), 1);
    of_crash.threads.iter_mut().find(|thread| thread.lwp == 2).expect("the member").signal = Some(11);
    assert_eq!(told(&of_crash), 0);
    // Somebody wanted a core of a hang.
    of_crash.process.signal_sent = true;
    assert_eq!(told(&of_crash), 1);
}

/// A read of a pipe that only the process itself writes to.
fn reads_own_pipe(lwp: i32) -> Outside {
    let writer = Holder { pid: 1, own: true, name: None, descriptor: 4, reads: false, writes: true };
    let ends = Some(Ends { holders: vec![writer], complete: true });
    let on = Described { number: 3, descriptor: None, socket: None, ends };
    Outside { lwp, call: None, wait: Some(OutsideWait::Descriptor { call: "read".into(), on }), object: None }
}

#[test]
fn a_member_that_sleeps_outside_openmp() {
    let mut p = Process::new();
    let team = p.team();
    p.member(team, FUTEX, wait(WaitKind::Barrier, team));
    p.member(team, FUTEX, wait(WaitKind::Barrier, team));
    p.member(team, FUTEX, None);
    assert_eq!(
        told(&inspection(p.clone())),
        "\
deadlock: thread 2 has not reached the barrier that threads 0-1 wait at
! thread 2 (id 3): running
- threads 0-1 wait at a barrier; not reached by thread 2 (id 3)
- the other threads of the process: 1 asleep until another thread of the process wakes them
> One of these threads must continue by itself: see what each was to do next with `stacks`.
"
    );
    // The cause goes on to what the thread does that it waits for.
    let mut joins = p.clone();
    let joined = joins.foreign(FUTEX);
    joins.os.threads[2].blocked = Blocked::Join(joined);
    let text = told(&inspection(joins));
    assert!(text.contains("! 2 threads: running\n"), "{text}");
    p.os.threads[2].blocked = Blocked::Outside("read");
    let mut own_pipe = inspection(p.clone());
    own_pipe.outside = vec![reads_own_pipe(3)];
    let text = told(&own_pipe);
    assert!(text.starts_with("suspect") && text.contains("> Let another thread write to descriptor 4,"), "{text}");
    assert_eq!(
        told(&inspection(p)),
        "\
suspect: thread 2 has not reached the barrier that threads 0-1 wait at
! thread 2 (id 3): running
- threads 0-1 wait at a barrier; not reached by thread 2 (id 3)
- thread 2 (id 3) is in system call read, without a time limit
> Let the absent threads reach the barrier first, or do without the barrier.
"
    );
}

#[test]
fn threads_that_wait_for_one_that_may_continue() {
    let mut p = Process::new();
    let team = p.team();
    p.member(team, FUTEX, wait(WaitKind::Barrier, team));
    p.member(team, FUTEX, wait(WaitKind::Barrier, team));
    p.member(team, Blocked::No, None);
    p.snapshot.teams[0].barrier = fact(Barrier { inside: Some(2), passed: None, at_end: Some(0), size: 3 });
    let mut it = inspection(p);
    it.stacks.logical = vec![stack(3, "sweep", "x.c", 10)];
    assert_eq!(
        told(&it),
        "\
waiting: thread 2 has not reached the barrier that threads 0-1 wait at
! thread 2 (id 3): running, x.c:10, in sweep
- threads 0-1 wait at a barrier; not reached by thread 2 (id 3)
> This may be normal. `--samples 2` shows whether it moves.
"
    );
    it.outside = vec![reads_own_pipe(3)];
    let text = told(&it);
    assert!(text.ends_with("> This may be normal. `--samples 2` shows whether it moves.\n"), "{text}");
    let mut p = Process::new();
    let team = p.team();
    let a = lock(&mut p, "a", of(2));
    p.member(team, FUTEX, locked(&p, a));
    p.member(team, Blocked::No, None);
    assert_eq!(
        told(&inspection(p.clone())),
        "\
waiting: thread 0 waits for lock a, held by thread 1
! thread 1 (id 2): running
- thread 0 (id 1) waits for lock a; held by thread 1 (id 2)
> This may be normal. `--samples 2` shows whether it moves.
"
    );
    p.snapshot.locks[0].owner = unrecorded();
    assert_eq!(
        told(&inspection(p.clone())),
        "\
waiting: thread 0 waits for lock a, probably held by thread 1
! thread 1 (id 2): running
- thread 0 (id 1) waits for lock a; its owner is not recorded
- the runtime does not record it
? thread 1 probably holds lock a; it is the only thread of the team that does not wait for it
> This may be normal. `--samples 2` shows which threads move; `stacks` shows who can hold the lock.
"
    );
    p.member(team, Blocked::No, None);
    assert_eq!(
        told(&inspection(p)),
        "\
waiting: thread 0 waits for lock a; its owner is not recorded
- thread 0 (id 1) waits for lock a; its owner is not recorded
- the runtime does not record it
> This may be normal. `--samples 2` shows which threads move; `stacks` shows who can hold the lock.
"
    );
}

#[test]
fn threads_that_wait_for_a_turn_or_a_task() {
    let mut p = Process::new();
    let team = p.team();
    p.member(team, FUTEX, wait(WaitKind::Ordered, team));
    p.member(team, Blocked::No, None);
    p.turn(team, 1);
    assert_eq!(
        told(&inspection(p)),
        "\
waiting: 1 thread waits until thread 1 has finished its ordered region
! thread 1 (id 2): running
- thread 0 (id 1) waits for its turn in ordered; it is the turn of thread 1 of team 0
> This may be normal. `--samples 2` shows whether it moves.
"
    );
    let mut p = Process::new();
    let team = p.team();
    p.member(team, FUTEX, wait(WaitKind::Taskwait, team));
    p.member(team, Blocked::Outside("read"), None);
    let task = explicit(&mut p, team, TaskState::Running, TaskId(0));
    p.snapshot.tasks[task.0].thread = Some(2);
    p.snapshot.threads[1].task = fact(task);
    p.foreign(Blocked::No);
    assert_eq!(
        told(&inspection(p)),
        "\
waiting: 1 thread waits for a task that thread 1 executes
! thread 1 (id 2): running
- thread 0 (id 1) waits in taskwait
> This may be normal. `--samples 2` shows whether it moves.
"
    );
}

#[test]
fn what_may_end_a_hang_is_said_and_makes_it_a_suspicion() {
    let mut p = Process::new();
    let team = p.team();
    let (a, b) = (lock(&mut p, "a", of(2)), lock(&mut p, "b", of(1)));
    p.member(team, FUTEX, locked(&p, a));
    p.member(team, FUTEX, locked(&p, b));
    let of = |signals, outsiders: &[Outsider]| {
        let mut p = p.clone();
        (p.os.signals, p.os.outsiders) = (signals, outsiders.to_vec());
        told(&inspection(p))
    };
    let none = Signals::Handled(0);
    assert!(of(none.clone(), &[]).starts_with("deadlock: "));
    let canceller = Outsider::Canceller("/usr/lib/libx.so".to_owned());
    assert!(of(none.clone(), &[canceller]).starts_with("deadlock: "), "no thread of it waits in pthread_join");
    // The handler of SIGTERM may post a semaphore.
    let asked = |blocked| {
        let mut p = p.clone();
        p.foreign(blocked);
        (p.os.signals, p.os.outsiders) = (Signals::Handled(1 << 14), vec![Outsider::Ring]);
        told(&inspection(p)).contains("a handler may let a thread continue, when a signal arrives: SIGTERM")
    };
    assert_eq!([FUTEX, Blocked::No].map(asked), [true, false]);
    let all = [Outsider::Process(7), Outsider::Ring];
    for (text, said) in [
        (of(none, &all), "- process 7 may have the same memory (CLONE_VM), and may let a thread continue"),
        (of(Signals::Handled(0), &all), "- the process uses io_uring: a request may let a thread continue"),
        (of(Signals::Handled(1 << 9), &[]), "- a handler may let a thread continue, when a signal arrives: SIGUSR1"),
        (of(Signals::NotRecorded, &[]), "- the kernel did not tell handlers of signals: one may let a thread continue"),
    ] {
        assert!(text.starts_with("suspect: ") && text.lines().any(|line| line == said), "{text}");
    }
}

#[test]
fn a_thread_that_yields_in_its_wait_may_have_a_task() {
    let mut p = Process::new();
    let team = p.team();
    let a = lock(&mut p, "a", of(2));
    p.member(team, FUTEX, locked(&p, a));
    p.member(team, Blocked::Yields, spins(wait(WaitKind::Barrier, team)));
    p.snapshot.tasks[0].unfinished_children = fact(1);
    assert_eq!(
        told(&inspection(p)),
        "\
suspect: thread 0 has not reached the barrier that thread 1 waits at
! thread 0 (id 1): waits for lock a, held by thread 1
- thread 0 (id 1) waits for lock a; held by thread 1 (id 2)
- thread 1 (id 2) waits at a barrier; not reached by thread 0 (id 1)
- thread 1 (id 2) is awake in its wait: it may have a task that no record shows
> Release lock a before the barrier, or acquire it after the barrier.
"
    );
}
