//! Verdicts on snapshots made by hand.

use ompd_layout::Origin;
use ompd_process::Addr;

use super::*;
use crate::model::*;
use crate::os::{Blocked, Sharing, Signals};
use crate::samples::{FUTEX, Process, WHY, by_stack, fact, locked, spins, wait};

mod delays;
mod several;
mod situations;
mod tasks;

const SIGUSR1: Signals = Signals::Handled(1 << 9);
const SIGALRM: Signals = Signals::Handled(1 << 13);
const SIGTERM: Signals = Signals::Handled(1 << 14);

impl Process {
    fn judge(&self) -> Vec<(Certainty, Situation, Vec<i32>)> {
        let found = judge(&[self.snapshot.clone().into()], &self.os);
        let threads = |nodes: &[Node]| {
            let lwps = nodes.iter().filter_map(|node| match node {
                Node::Thread(lwp) => Some(*lwp),
                _ => None,
            });
            lwps.collect()
        };
        found.verdicts.iter().map(|v| (v.certainty, v.situation, threads(&v.core))).collect()
    }
}

#[test]
fn two_locks_and_who_only_waits_for_them() {
    let mut p = Process::new();
    let team = p.team();
    let (one, two) = (p.lock(fact(Some(Owner::Thread(2)))), p.lock(fact(Some(Owner::Thread(1)))));
    p.member(team, FUTEX, locked(one));
    p.member(team, FUTEX, locked(two));
    p.member(team, FUTEX, wait(WaitKind::Barrier, team));
    // Whoever else runs makes no difference.
    p.foreign(Blocked::No);
    assert_eq!(p.judge(), [(Certainty::Deadlock, Situation::LockCycle, vec![1, 2])]);
    let found = judge(&[p.snapshot.clone().into()], &p.os);
    assert_eq!(found.verdicts[0].held_up, [3]);
}

#[test]
fn a_lock_whose_owner_is_not_known_takes_everybody() {
    let mut p = Process::new();
    let team = p.team();
    let lock = p.lock(Fact::unknown(Common::NotRecorded));
    p.member(team, FUTEX, locked(lock));
    p.member(team, FUTEX, wait(WaitKind::Barrier, team));
    assert_eq!(p.judge(), [(Certainty::Deadlock, Situation::ClosedWaits, vec![1, 2])]);
    p.foreign(Blocked::No);
    assert_eq!(p.judge(), []);
}

#[test]
fn a_lock_of_a_thread_that_is_gone_and_one_of_oneself() {
    let mut p = Process::new();
    let team = p.team();
    let gone = p.lock(fact(Some(Owner::Gone(7))));
    p.member(team, FUTEX, locked(gone));
    p.member(team, Blocked::No, None);
    assert_eq!(p.judge(), [(Certainty::Deadlock, Situation::OwnerGone, vec![1])]);

    let mut p = Process::new();
    let team = p.team();
    let own = p.lock(fact(Some(Owner::Thread(1))));
    p.member(team, FUTEX, locked(own));
    p.member(team, Blocked::No, None);
    assert_eq!(p.judge(), [(Certainty::Deadlock, Situation::SelfDeadlock, vec![1])]);
}

#[test]
fn who_has_been_let_go_is_not_stuck() {
    for over in [fact(true), Fact::unknown(Common::NotRecorded)] {
        let mut p = Process::new();
        let team = p.team();
        let lock = p.lock(fact(Some(Owner::Thread(2))));
        p.member(team, FUTEX, locked(lock));
        let barrier = wait(WaitKind::Barrier, team).map(|wait| Wait { over: over.clone(), ..wait });
        // It holds the lock across a barrier that the first has left already.
        p.member(team, FUTEX, barrier);
        assert_eq!(p.judge(), [], "{over:?}");
    }
}

#[test]
fn a_barrier_that_all_have_reached() {
    let awake = |all: bool| {
        let mut p = Process::new();
        let team = p.team();
        p.member(team, FUTEX, wait(WaitKind::BarrierTasks, team));
        let last = wait(WaitKind::RegionEnd, team);
        p.member(team, if all { FUTEX } else { Blocked::No }, if all { last } else { spins(last) });
        p.judge()
    };
    assert_eq!(awake(false), [], "it may be about to say that it has no task left");
    assert_eq!(awake(true).len(), 1);
}

#[test]
fn a_task_in_nobodys_list_is_in_the_hands_of_who_is_awake() {
    let (free, deadlock) = (vec![], vec![Certainty::Deadlock]);
    for (blocked, found) in [(Blocked::No, free), (Blocked::Yields, vec![Certainty::Suspect]), (FUTEX, deadlock)] {
        let mut p = Process::new();
        let team = p.team();
        p.member(team, FUTEX, wait(WaitKind::Taskwait, team));
        let barrier = wait(WaitKind::Barrier, team);
        p.member(team, blocked, if blocked == FUTEX { barrier } else { spins(barrier) });
        p.snapshot.tasks[0].unfinished_children = fact(1);
        let certainties: Vec<Certainty> = p.judge().into_iter().map(|(certainty, ..)| certainty).collect();
        assert_eq!(certainties, found, "{blocked:?}");
    }
}

#[test]
fn what_only_a_stack_tells() {
    let with = |blocked, kind, unlisted| {
        let mut p = Process::new();
        let team = p.team();
        let lock = p.lock(fact(Some(Owner::Thread(1))));
        p.member(team, blocked, by_stack(wait(kind, team)));
        p.member(team, FUTEX, locked(lock));
        p.snapshot.tasks[0].unfinished_children = fact(unlisted);
        p.judge()
    };
    let of = |blocked, kind| with(blocked, kind, 0).len();
    assert_eq!(of(Blocked::Yields, WaitKind::Barrier), 1);
    assert_eq!(with(Blocked::Yields, WaitKind::Barrier, 0)[0].0, Certainty::Deadlock);
    // It may have a task in its hands that is not listed.
    assert_eq!(with(Blocked::Yields, WaitKind::Barrier, 1)[0].0, Certainty::Suspect);
    // It may be letting the other one go: running, or at a lock of the C library.
    assert_eq!(of(Blocked::No, WaitKind::Barrier), 0);
    assert_eq!(of(FUTEX, WaitKind::Barrier), 0);
    assert_eq!(of(Blocked::Yields, WaitKind::Taskgroup), 0);
}

#[test]
fn a_ready_task_needs_a_thread_that_may_take_it() {
    let of = |kind| {
        let mut p = Process::new();
        let team = p.team();
        let lock = p.lock(fact(Some(Owner::Thread(2))));
        p.member(team, FUTEX, locked(lock));
        p.member(team, FUTEX, wait(kind, team));
        // Generated by the first: only at a barrier may the second take it.
        let task = p.task(team, TaskKind::Explicit, TaskState::Ready);
        p.snapshot.tasks[task.0].generating = fact(Some(TaskId(0)));
        p.snapshot.tasks[0].unfinished_children = fact(1);
        p.judge().len()
    };
    assert_eq!(of(WaitKind::Barrier), 0);
    assert_eq!(of(WaitKind::Taskwait), 1);
}

#[test]
fn idle_workers() {
    let of = |blocked, over| {
        let mut p = Process::new();
        let team = p.team();
        p.member(team, FUTEX, wait(WaitKind::RegionStart, team));
        p.idle(blocked, over);
        p.judge().len()
    };
    assert_eq!(of(FUTEX, fact(false)), 1);
    // In the pool, awake or not.
    assert_eq!(of(Blocked::No, fact(false)), 1);
    assert_eq!(of(FUTEX, Fact::unknown(Common::NotLookedAt)), 1);
    // On its way to the pool: others wait for it to get there.
    assert_eq!(of(Blocked::No, Fact::unknown(Common::NotLookedAt)), 0);
}

#[test]
fn nobody_in_a_region_keeps_another_out_of_it() {
    let mut p = Process::new();
    let team = p.team();
    // Number 1 is being let in, by a thread that runs; number 0 waits for what number 1 will do.
    let lock = p.lock(fact(Some(Owner::Thread(2))));
    p.member(team, FUTEX, locked(lock));
    p.member(team, FUTEX, wait(WaitKind::RegionStart, team));
    p.foreign(Blocked::No);
    assert_eq!(p.judge(), []);
}

#[test]
fn a_turn_that_has_come() {
    let of = |holder: fn(TeamId) -> Option<Wait>| {
        let mut p = Process::new();
        let team = p.team();
        p.member(team, FUTEX, wait(WaitKind::Ordered, team));
        p.member(team, FUTEX, holder(team));
        p.turn(team, 1);
        p.judge().len()
    };
    assert_eq!(of(|team| wait(WaitKind::Ordered, team)), 0);
    assert_eq!(of(|team| wait(WaitKind::Barrier, team)), 1);
}

/// Number 0 waits for its turn in the second of two loops, and number 2 at a barrier.
#[test]
fn a_turn_in_the_loop_in_which_it_is_waited_for() {
    let of = |in_first: &[u32], first: u32, second: u32| {
        let mut p = Process::new();
        let team = p.team();
        p.member(team, FUTEX, wait(WaitKind::Ordered, team));
        p.member(team, Blocked::No, None);
        p.member(team, FUTEX, wait(WaitKind::Barrier, team));
        p.turn(team, first);
        p.turn(team, second);
        p.snapshot.recorded.loops[0].members = in_first.to_vec();
        p.judge().len()
    };
    assert_eq!(of(&[2], 2, 1), 0, "number 1 can get on");
    assert_eq!(of(&[2], 1, 2), 1, "number 2 waits at a barrier");
    // In which of them it waits is not known, so any member may let it continue.
    assert_eq!(of(&[0], 2, 2), 0);
}

/// Threads of OpenMP that wait for mutexes of the C library, and for nothing of OpenMP.
#[test]
fn mutexes_alone() {
    let of = |blocked: &[Blocked]| {
        let mut p = Process::new();
        let team = p.team();
        for own in blocked {
            p.member(team, *own, None);
        }
        p.judge().into_iter().map(|(certainty, _, threads)| (certainty, threads)).collect::<Vec<_>>()
    };
    let of_mutex = |owner| Blocked::Mutex(Addr(0x100), owner);
    assert_eq!(of(&[of_mutex(2), of_mutex(1)]), [(Certainty::Deadlock, vec![1, 2])]);
    assert_eq!(of(&[of_mutex(1), Blocked::No]), [(Certainty::Deadlock, vec![1])]);
    assert_eq!(of(&[of_mutex(2), Blocked::No]), []);
    // Thread 2 may come back from its call: so wait threads that take turns at a socket.
    assert_eq!(of(&[of_mutex(2), Blocked::Outside("accept")]), []);
}

/// All members of a team sleep on semaphores, and nobody is left to post them.
#[test]
fn members_that_sleep_outside_of_openmp() {
    let of = |members: &[Blocked], foreign: &[Blocked], signals| {
        let mut p = Process::new();
        let team = p.team();
        for own in members {
            p.member(team, *own, None);
        }
        for own in foreign {
            p.foreign(*own);
        }
        p.handle(signals);
        p.judge().into_iter().map(|(certainty, _, threads)| (certainty, threads)).collect::<Vec<_>>()
    };
    let none = || Signals::Handled(0);
    assert_eq!(of(&[FUTEX, FUTEX], &[FUTEX], none()), [(Certainty::Deadlock, vec![1, 2, 3])]);
    assert_eq!(of(&[FUTEX, FUTEX], &[], SIGTERM), []);
    assert_eq!(of(&[FUTEX, FUTEX], &[], SIGUSR1), [(Certainty::Suspect, vec![1, 2])]);
    // Another thread may wake them, or a thread that comes back from a call.
    assert_eq!(of(&[FUTEX, Blocked::No], &[], none()), []);
    assert_eq!(of(&[FUTEX, FUTEX], &[Blocked::Outside("accept")], none()), []);
    // Outside of parallel regions a program may wait for whatever it likes.
    assert_eq!(of(&[], &[FUTEX, FUTEX], none()), []);
}

/// A thread of OpenMP joins another one, which wants the mutex that the first has.
#[test]
fn mutex_of_a_thread_that_joins() {
    let of = |joined| {
        let mut p = Process::new();
        let team = p.team();
        p.member(team, Blocked::Join(2), None);
        p.foreign(joined);
        p.judge().into_iter().map(|(certainty, _, threads)| (certainty, threads)).collect::<Vec<_>>()
    };
    assert_eq!(of(Blocked::Mutex(Addr(0x100), 1)), [(Certainty::Deadlock, vec![1, 2])]);
    assert_eq!(of(Blocked::No), []);
}

#[test]
fn thread_that_waits_for_a_mutex_of_a_hang_is_held_up() {
    let mut p = Process::new();
    let team = p.team();
    for owner in [2, 1, 1] {
        p.member(team, Blocked::Mutex(Addr(0x100), owner), None);
    }
    let found = judge(&[p.snapshot.into()], &p.os).verdicts;
    let [verdict] = &found[..] else { panic!("one verdict") };
    assert_eq!((verdict.situation, &verdict.held_up[..]), (Situation::LockCycle, &[3][..]));
}

#[test]
fn handlers_of_signals() {
    let of = |signals| {
        let mut p = Process::new();
        let team = p.team();
        p.member(team, FUTEX, wait(WaitKind::Barrier, team));
        // It sleeps in the program's own code, on a semaphore perhaps.
        p.member(team, FUTEX, None);
        p.handle(signals);
        p.judge().into_iter().map(|(certainty, ..)| certainty).collect::<Vec<_>>()
    };
    assert_eq!(of(Signals::Handled(0)), [Certainty::Deadlock]);
    assert_eq!(of(Signals::NotRecorded), [Certainty::Suspect]);
    assert_eq!(of(SIGUSR1), [Certainty::Suspect]);
    assert_eq!(of(SIGALRM), []);
    // Its handler may post the semaphore: nothing moves until somebody sends it.
    assert_eq!(of(SIGTERM), [Certainty::Suspect]);
}

/// A handler may unset a lock or fulfil an event as well. What kind of hang it is otherwise stays.
#[test]
fn handlers_of_signals_and_a_closed_cycle() {
    let of = |signals| {
        let mut p = Process::new();
        let team = p.team();
        let (one, two) = (p.lock(fact(Some(Owner::Thread(2)))), p.lock(fact(Some(Owner::Thread(1)))));
        p.member(team, FUTEX, locked(one));
        p.member(team, FUTEX, locked(two));
        p.handle(signals);
        p.judge()
    };
    for signals in [Signals::Handled(0), SIGTERM] {
        assert_eq!(of(signals), [(Certainty::Deadlock, Situation::LockCycle, vec![1, 2])]);
    }
    for signals in [SIGUSR1, SIGALRM, Signals::NotRecorded, Signals::Possible(String::new())] {
        assert_eq!(of(signals), [(Certainty::Suspect, Situation::LockCycle, vec![1, 2])]);
    }
}

#[test]
fn a_handler_changes_the_certainty_and_nothing_else() {
    let of = |signals| {
        let mut p = Process::new();
        let (team, other) = (p.team(), p.team());
        let lock = p.lock(fact(Some(Owner::Thread(2))));
        p.member(team, FUTEX, locked(lock));
        p.member(team, Blocked::Interpreter(1), None);
        // They have to do with the cycle in no way.
        p.member(other, FUTEX, wait(WaitKind::Barrier, other));
        p.member(other, Blocked::Outside("read"), None);
        p.handle(signals);
        let [found] = &judge(&[p.snapshot.into()], &p.os).verdicts[..] else { panic!("one verdict") };
        assert_eq!((found.situation, found.held_up.len()), (Situation::LockCycle, 0));
        found.certainty
    };
    assert_eq!(of(Signals::Handled(0)), Certainty::Deadlock);
    assert_eq!(of(SIGUSR1), Certainty::Suspect);
    assert_eq!(of(Signals::NotRecorded), Certainty::Suspect);
}

#[test]
fn a_lock_that_another_process_may_set_free() {
    let of = |sharing| {
        let mut p = Process::new();
        let team = p.team();
        let lock = p.lock(fact(Some(Owner::Thread(1))));
        p.member(team, FUTEX, locked(lock));
        p.os.shared.extend([(p.snapshot.locks[lock.0].object, sharing)]);
        p.judge()
    };
    for sharing in [Sharing::Shared, Sharing::Unknown] {
        assert_eq!(of(sharing), [(Certainty::Suspect, Situation::SelfDeadlock, vec![1])]);
    }
}

#[test]
fn calls_that_wait_for_something_from_outside() {
    let mut p = Process::new();
    let team = p.team();
    p.member(team, FUTEX, wait(WaitKind::Barrier, team));
    p.member(team, Blocked::Outside("read"), None);
    assert_eq!(p.judge(), [(Certainty::Suspect, Situation::MissingMember, vec![1, 2])]);
    p.foreign(Blocked::No);
    assert_eq!(p.judge(), []);
}

#[test]
fn who_waits_at_the_end_of_its_task_group_does_not_wait_for_itself() {
    let mut p = Process::new();
    let team = p.team();
    let end = wait(WaitKind::Taskgroup, team).map(|wait| Wait { taskgroup: Some(TaskgroupId(0)), ..wait });
    p.member(team, FUTEX, end);
    p.member(team, Blocked::No, None);
    let of_group = |p: &mut Process, lwp| {
        let task = p.task(team, TaskKind::Explicit, TaskState::Running);
        p.snapshot.tasks[task.0].taskgroup = fact(Some(TaskgroupId(0)));
        p.snapshot.tasks[task.0].thread = Some(lwp);
        p.snapshot.threads[lwp as usize - 1].task = fact(task);
    };
    of_group(&mut p, 1);
    of_group(&mut p, 2);
    assert_eq!(p.judge(), []);
}

#[test]
fn a_lock_of_the_runtimes_own() {
    for (blocked, found) in [(FUTEX, 1), (Blocked::No, 0)] {
        let mut p = Process::new();
        let team = p.team();
        p.member(team, FUTEX, None);
        p.snapshot.threads[0].wait = Fact::unknown(Common::NotRecorded);
        let barrier = wait(WaitKind::Barrier, team);
        // Awake it may hold what the first sleeps for.
        p.member(team, blocked, if blocked == FUTEX { barrier } else { spins(barrier) });
        assert_eq!(p.judge().len(), found, "{blocked:?}");
    }
}

impl Process {
    /// Situation, causes (LWP) and threads that wait for them, of each `waiting` verdict.
    fn waiting(&self) -> Vec<(Situation, Vec<i32>, Vec<i32>)> {
        let snapshots = [self.snapshot.clone().into()];
        let mut found = judge(&snapshots, &self.os);
        found.find_waiting(&snapshots, &self.os);
        let causes = |core: &[Node]| {
            let lwps = core.iter().filter_map(|node| if let Node::Thread(lwp) = node { Some(*lwp) } else { None });
            lwps.collect()
        };
        assert!(found.waiting.iter().all(|verdict| verdict.certainty == Certainty::Waiting));
        found.waiting.iter().map(|v| (v.situation, causes(&v.core), v.held_up.clone())).collect()
    }

    /// So many members have arrived at the barrier of a team, by the runtime's count.
    fn arrived(&mut self, team: TeamId, inside: Option<u32>) {
        let size = u32::try_from(self.snapshot.teams[team.0].members.len()).expect("a few members");
        self.snapshot.teams[team.0].barrier = fact(Barrier { inside, passed: None, at_end: Some(0), size });
    }
}

#[test]
fn a_member_that_runs_is_what_those_at_the_barrier_wait_for() {
    let mut p = Process::new();
    let team = p.team();
    p.member(team, FUTEX, wait(WaitKind::Barrier, team));
    p.member(team, FUTEX, wait(WaitKind::Barrier, team));
    p.member(team, Blocked::No, None);
    p.arrived(team, Some(2));
    assert_eq!(p.judge(), []);
    assert_eq!(p.waiting(), [(Situation::BarrierNotReached, vec![3], vec![1, 2])]);
    // Those that the runtime does not count are about to leave.
    p.arrived(team, Some(0));
    assert_eq!(p.waiting(), []);
}

#[test]
fn a_member_whose_wait_is_unknown_is_not_said_to_be_absent() {
    let mut p = Process::new();
    let team = p.team();
    p.member(team, FUTEX, wait(WaitKind::Barrier, team));
    p.member(team, Blocked::No, None);
    p.snapshot.threads[1].wait = Fact::unknown(WHY);
    p.arrived(team, None);
    assert_eq!(p.waiting(), []);
    // The runtime's count says that it has not arrived.
    p.arrived(team, Some(1));
    assert_eq!(p.waiting(), [(Situation::BarrierNotReached, vec![2], vec![1])]);
}

#[test]
fn the_owner_of_a_lock_is_what_those_behind_its_waiters_wait_for() {
    let mut p = Process::new();
    let team = p.team();
    let lock = p.lock(fact(Some(Owner::Thread(3))));
    p.member(team, FUTEX, wait(WaitKind::Barrier, team));
    p.member(team, FUTEX, locked(lock));
    p.foreign(Blocked::No);
    p.arrived(team, Some(1));
    assert_eq!(p.waiting(), [(Situation::LockHeld, vec![3], vec![1, 2])]);
    // Without an owner there is no cause, and the lock is waited for all the same.
    p.snapshot.locks[0].owner = Fact::unknown(WHY);
    assert_eq!(p.waiting(), [(Situation::LockHeld, vec![], vec![1, 2])]);
}

#[test]
fn tasks_count_only_if_their_threads_are_blocked() {
    for (blocked, expected) in
        [(Blocked::No, vec![]), (Blocked::Outside("read"), vec![(Situation::TasksUnfinished, vec![2], vec![1])])]
    {
        let mut p = Process::new();
        let team = p.team();
        p.member(team, FUTEX, wait(WaitKind::Taskwait, team));
        p.member(team, blocked, None);
        let parent = p.snapshot.threads[0].task.get().expect("its task");
        let task = p.task(team, TaskKind::Explicit, TaskState::Running);
        p.snapshot.tasks[task.0].generating = fact(Some(parent));
        p.snapshot.tasks[task.0].thread = Some(2);
        // Another thread runs, so that nothing hangs.
        p.foreign(Blocked::No);
        assert_eq!(p.waiting(), expected, "{blocked:?}");
    }
}

/// The first task and the first task group, each waited for by one thread.
#[test]
fn what_is_waited_for_is_always_reported_in_the_same_order() {
    let reported = || {
        let mut p = Process::new();
        let team = p.team();
        p.member(team, FUTEX, wait(WaitKind::Taskwait, team));
        let end = wait(WaitKind::Taskgroup, team).map(|wait| Wait { taskgroup: Some(TaskgroupId(0)), ..wait });
        p.member(team, FUTEX, end);
        p.member(team, Blocked::Outside("read"), None);
        p.member(team, Blocked::Outside("read"), None);
        let parent = p.snapshot.threads[0].task.get().expect("its task");
        for lwp in [3, 4] {
            let task = p.task(team, TaskKind::Explicit, TaskState::Running);
            p.snapshot.tasks[task.0].thread = Some(lwp);
            match lwp {
                3 => p.snapshot.tasks[task.0].generating = fact(Some(parent)),
                _ => p.snapshot.tasks[task.0].taskgroup = fact(Some(TaskgroupId(0))),
            }
        }
        p.foreign(Blocked::No);
        p.waiting()
    };
    let expected = [(Situation::TasksUnfinished, vec![3], vec![1]), (Situation::TasksUnfinished, vec![4], vec![2])];
    for _ in 0..32 {
        assert_eq!(reported(), expected);
    }
}

/// All threads sleep, and yet the device may finish the task.
#[test]
fn a_task_that_was_handed_to_a_device_is_waited_for() {
    let mut p = Process::new();
    let team = p.team();
    p.member(team, FUTEX, wait(WaitKind::Taskwait, team));
    p.foreign(FUTEX);
    let parent = p.snapshot.threads[0].task.get().expect("its task");
    let task = p.task(team, TaskKind::Explicit, TaskState::OnDevice);
    p.snapshot.tasks[task.0].generating = fact(Some(parent));
    p.snapshot.tasks[parent.0].unfinished_children = fact(1);
    assert_eq!(p.judge().len(), 0);
    assert_eq!(p.waiting(), [(Situation::DeviceNotDone, vec![1], vec![1])]);
    p.snapshot.tasks[task.0].state = fact(TaskState::Detached);
    assert_eq!(p.waiting(), []);
}

#[test]
fn what_a_hang_explains_is_not_said_to_wait() {
    let mut p = Process::new();
    let team = p.team();
    let (one, two) = (p.lock(fact(Some(Owner::Thread(2)))), p.lock(fact(Some(Owner::Thread(1)))));
    p.member(team, FUTEX, locked(one));
    p.member(team, FUTEX, locked(two));
    p.member(team, FUTEX, wait(WaitKind::Barrier, team));
    p.member(team, Blocked::No, None);
    p.arrived(team, Some(1));
    assert_eq!(p.judge().len(), 1);
    assert_eq!(p.waiting(), []);
}

#[test]
fn a_lock_and_an_interpreters_lock_in_a_circle() {
    let circle = |blocked| {
        let mut p = Process::new();
        let team = p.team();
        let lock = p.lock(fact(Some(Owner::Thread(2))));
        p.member(team, FUTEX, locked(lock));
        p.member(team, blocked, None);
        p.judge()
    };
    assert_eq!(circle(Blocked::Interpreter(1)), [(Certainty::Deadlock, Situation::LockCycle, vec![1, 2])]);
    assert_eq!(circle(Blocked::No), []);
}

#[test]
fn the_owner_of_a_lock_that_joins_the_thread_that_waits_for_it() {
    let mut p = Process::new();
    let team = p.team();
    let lock = p.lock(fact(Some(Owner::Thread(2))));
    p.member(team, FUTEX, locked(lock));
    p.foreign(Blocked::Join(1));
    assert_eq!(p.judge(), [(Certainty::Deadlock, Situation::LockCycle, vec![1, 2])]);
}
