//! What threads and tasks wait for, by memory and by their calls.

use super::*;
use crate::entry::Role;
use crate::evidence::{RuntimeCall, TaskCall};
use crate::samples::spins;
use Construct::{EndOfFor, EndOfSections, EndOfWorksharing};

/// A call of the body of a region, on line 7.
fn call(construct: Construct, role: Role) -> RuntimeCall {
    RuntimeCall { entry: Some(Entry::new(construct, role)), ..no_call() }
}

/// Code of the runtime that no function of the program has called.
fn no_call() -> RuntimeCall {
    RuntimeCall { entry: None, base: false, vanished: false, line: Some(line(7)), ends_region: false, of_region: true }
}

/// The wait of the only member of a team, which memory shows and whose call is known.
fn with_call(wait: Wait, call: RuntimeCall) -> Fact<Option<Wait>> {
    let mut p = Process::new();
    let team = p.team();
    p.member(team, FUTEX, Some(wait));
    Seen::calls([(1, call)]).merge(&p).threads.remove(0).wait
}

fn kind_with_call(kind: WaitKind, call: RuntimeCall) -> Option<WaitKind> {
    with_call(of_kind(kind), call).value().and_then(|wait| Some(wait.as_ref()?.kind))
}

fn of_kind(kind: WaitKind) -> Wait {
    wait(kind, TeamId(0)).expect("a wait")
}

#[test]
fn the_call_says_what_kind_of_lock_a_thread_waits_for() {
    for (construct, kind) in [
        (Construct::SetLock, WaitKind::Lock),
        (Construct::SetNestLock, WaitKind::Lock),
        (Construct::Critical, WaitKind::Critical),
        (Construct::Atomic, WaitKind::Atomic),
        (Construct::Target, WaitKind::Device),
        (Construct::Barrier, WaitKind::Mutex),
    ] {
        assert_eq!(kind_with_call(WaitKind::Mutex, call(construct, Role::Other)), Some(kind), "{construct:?}");
    }
}

#[test]
fn the_call_tells_a_taskwait_from_the_end_of_a_task_group() {
    let group = Some(TaskgroupId(3));
    let either = Wait { taskgroup: group, ..of_kind(WaitKind::TaskwaitOrTaskgroup) };
    for (construct, kind, group) in [
        (Construct::Taskwait, WaitKind::Taskwait, None),
        (Construct::Taskgroup, WaitKind::Taskgroup, group),
        (Construct::Barrier, WaitKind::TaskwaitOrTaskgroup, group),
    ] {
        let found = with_call(either.clone(), call(construct, Role::RunsTasks));
        let found = found.value().and_then(Option::as_ref).expect("a wait");
        assert_eq!((found.kind, found.taskgroup), (kind, group), "{construct:?}");
    }
}

#[test]
fn a_barrier_that_no_body_called_is_the_end_of_the_region() {
    let opens = call(Construct::Parallel, Role::OpensRegion);
    for (call, kind) in [
        (RuntimeCall { base: true, ..no_call() }, WaitKind::RegionEnd),
        (RuntimeCall { base: true, vanished: true, ..no_call() }, WaitKind::Barrier),
        (no_call(), WaitKind::Barrier),
        (opens.clone(), WaitKind::RegionEnd),
        (RuntimeCall { vanished: true, ..opens }, WaitKind::Barrier),
        (call(Construct::Barrier, Role::RunsTasks), WaitKind::Barrier),
    ] {
        let found = with_call(of_kind(WaitKind::Barrier), call.clone());
        let found = found.value().and_then(Option::as_ref).expect("a wait");
        assert_eq!(found.kind, kind, "{call:?}");
        assert_eq!(found.barrier.is_some(), kind == WaitKind::Barrier, "the end of a region is of no other kind");
    }
}

#[test]
fn the_end_of_a_construct_says_what_kind_of_barrier_it_is() {
    for (construct, kind) in [
        (EndOfFor, Some(BarrierKind::Loop)),
        (EndOfSections, Some(BarrierKind::Sections)),
        (Construct::Single, Some(BarrierKind::Single)),
        (Construct::Copyprivate, Some(BarrierKind::Single)),
        (Construct::Reduction, Some(BarrierKind::Implicit)),
        (EndOfWorksharing, Some(BarrierKind::Implicit)),
        (Construct::Barrier, None),
    ] {
        let found = with_call(of_kind(WaitKind::Barrier), call(construct, Role::RunsTasks));
        let found = found.value().and_then(Option::as_ref).expect("a wait");
        assert_eq!(found.barrier.as_ref().and_then(Fact::get), kind, "{construct:?}");
        assert_eq!(found.call, Some(construct));
    }
}

#[test]
fn a_wait_for_tasks_within_taskyield_is_unknown() {
    let yields = || call(Construct::Taskyield, Role::RunsTasks);
    for kind in [WaitKind::Taskwait, WaitKind::Taskgroup, WaitKind::TaskwaitOrTaskgroup] {
        let found = with_call(of_kind(kind), yields());
        assert_eq!(found.why(), Some(&Common::InTaskyield.into()), "{kind:?}");
        assert_eq!(kind_with_call(kind, no_call()), Some(kind));
    }
    assert_eq!(kind_with_call(WaitKind::Barrier, yields()), Some(WaitKind::Barrier));
}

#[test]
fn a_wait_is_on_the_line_that_the_runtime_recorded_or_on_that_of_the_call() {
    let of = |kind, recorded: Option<SourceLine>, call: RuntimeCall| {
        let found = with_call(Wait { location: recorded, ..of_kind(kind) }, call);
        let found = found.value().cloned().flatten().expect("a wait");
        (found.location.map(|line| line.line), found.barrier.is_some_and(|kind| kind.why() == Some(&OTHER)))
    };
    const OTHER: Reason = Reason::Common(Common::OtherBarrier);
    let barrier = || call(Construct::Barrier, Role::RunsTasks);
    assert_eq!(of(WaitKind::Barrier, None, barrier()), (Some(7), false));
    assert_eq!(of(WaitKind::Pool, None, no_call()), (None, false), "no line of the program sent it there");
    // Since it arrived it has executed a task with another barrier.
    assert_eq!(of(WaitKind::Barrier, Some(line(3)), barrier()), (Some(7), true));
    let moved = SourceLine { file: "/build/a.c".to_owned(), ..line(7) };
    assert_eq!(of(WaitKind::Barrier, Some(moved), barrier()), (Some(7), false), "it is the same barrier");
    let elsewhere = SourceLine { file: "b.c".to_owned(), ..line(7) };
    assert_eq!(of(WaitKind::Barrier, Some(elsewhere), barrier()), (Some(7), true));
    // Only a barrier moves, and only a call for one tells so.
    assert_eq!(of(WaitKind::Barrier, Some(line(3)), call(EndOfFor, Role::RunsTasks)), (Some(3), false));
    assert_eq!(of(WaitKind::Taskwait, Some(line(3)), barrier()), (Some(3), false));
    let unplaced = RuntimeCall { line: None, ..barrier() };
    assert_eq!(of(WaitKind::Barrier, Some(line(3)), unplaced), (Some(3), false));
}

#[test]
fn the_call_that_opened_a_region_is_not_the_call_that_waits() {
    let of = |known, construct, role| {
        let found = with_call(Wait { call: known, ..of_kind(WaitKind::Barrier) }, call(construct, role));
        found.value().cloned().flatten().expect("a wait").call
    };
    assert_eq!(of(None, Construct::Parallel, Role::OpensRegion), None);
    assert_eq!(of(None, Construct::Teams, Role::OpensLeague), None);
    assert_eq!(of(None, Construct::Barrier, Role::RunsTasks), Some(Construct::Barrier));
    assert_eq!(of(Some(EndOfFor), Construct::Barrier, Role::RunsTasks), Some(EndOfFor), "memory said so");
}

#[test]
fn a_thread_that_executes_the_program_waits_for_nothing_where_memory_leaves_it_open() {
    let of = |wait: Fact<Option<Wait>>, in_program| {
        let mut p = Process::new();
        let team = p.team();
        p.member(team, Blocked::No, None);
        p.snapshot.threads[0].wait = wait;
        let mut seen = Seen::default();
        seen.in_program.extend(in_program);
        seen.merge(&p).threads.remove(0).wait
    };
    let nothing = Fact::known(None, Origin::Stack);
    assert_eq!(of(Fact::unknown(WHY), Some(1)), nothing);
    assert_eq!(of(Fact::unknown(WHY), Some(2)), Fact::unknown(WHY), "another thread does");
    assert_eq!(of(fact(None), Some(1)), fact(None), "memory said so already");
    // It may begin the region, or has begun it.
    let at = |kind, over| fact(Some(Wait { over: fact(over), ..of_kind(kind) }));
    assert_eq!(of(at(WaitKind::RegionStart, true), Some(1)), nothing);
    assert_eq!(of(at(WaitKind::RegionStart, false), Some(1)), at(WaitKind::RegionStart, false));
    assert_eq!(of(at(WaitKind::Barrier, true), Some(1)), at(WaitKind::Barrier, true));
}

/// A process whose two members leave no trace of their waits in memory: threads 1 and 2, number 0 and 1.
fn traceless() -> Process {
    let mut p = Process::new();
    let team = p.team();
    p.snapshot.teams[0].descriptor = Addr(0x70);
    for _ in 0..2 {
        p.member(team, Blocked::Yields, None);
    }
    for (thread, descriptor) in p.snapshot.threads.iter_mut().zip([0x80, 0x88]) {
        thread.wait = Fact::unknown(WHY);
        p.snapshot.tasks[thread.task.get().expect("its task").0].descriptor = Addr(descriptor);
    }
    p
}

/// What its first thread waits for by this call.
fn by_call(p: &Process, call: RuntimeCall) -> Option<Wait> {
    Seen::calls([(1, call)]).merge(p).threads[0].wait.value().cloned().flatten()
}

#[test]
fn a_wait_that_leaves_no_trace_is_known_by_the_call() {
    let (team, task) = ((Some(TeamId(0)), Addr(0x70)), (None, Addr(0x80)));
    for (construct, kind, (team, object)) in [
        (Construct::Taskwait, WaitKind::Taskwait, task),
        (Construct::TaskwaitDepend, WaitKind::Dependences, task),
        (Construct::Taskgroup, WaitKind::Taskgroup, task),
        (Construct::Ordered, WaitKind::Ordered, task),
        (Construct::OrderedSink, WaitKind::Sink, task),
        (Construct::Barrier, WaitKind::Barrier, team),
        (EndOfFor, WaitKind::Barrier, team),
        (EndOfSections, WaitKind::Barrier, team),
        (EndOfWorksharing, WaitKind::Barrier, team),
    ] {
        let found = by_call(&traceless(), call(construct, Role::RunsTasks)).expect("a wait");
        assert_eq!((found.kind, found.team, found.object), (kind, team, object), "{construct:?}");
        assert_eq!((found.origin, found.call), (Origin::Stack, Some(construct)));
        assert_eq!(found.location, Some(line(7)), "{construct:?}");
    }
    // The end of a loop that waits for nobody.
    assert_eq!(by_call(&traceless(), call(EndOfFor, Role::Other)), None);
    assert_eq!(by_call(&traceless(), call(Construct::For, Role::RunsTasks)), None);
    assert_eq!(by_call(&traceless(), no_call()), None);
    let opens = call(Construct::Parallel, Role::OpensRegion);
    assert_eq!(by_call(&traceless(), opens.clone()), None, "the region may be about to begin");
    let ends = by_call(&traceless(), RuntimeCall { ends_region: true, ..opens }).expect("a wait");
    assert_eq!((ends.kind, ends.team), (WaitKind::RegionEnd, Some(TeamId(0))));
    assert_eq!(by_call(&traceless(), RuntimeCall { ends_region: true, ..call(Construct::For, Role::Other) }), None);
}

#[test]
fn a_thread_with_a_task_in_its_hands_does_not_wait_at_a_barrier_by_its_call() {
    let of = |construct, change: fn(&mut Process)| {
        let mut p = traceless();
        change(&mut p);
        by_call(&p, call(construct, Role::RunsTasks)).is_some()
    };
    assert!(of(Construct::Barrier, |_| ()));
    let explicit = |p: &mut Process| p.snapshot.tasks[0].kind = fact(TaskKind::Explicit);
    assert!(!of(Construct::Barrier, explicit));
    assert!(of(Construct::Taskwait, explicit), "there it may wait");
    assert!(!of(Construct::Barrier, |p| p.snapshot.tasks[0].kind = Fact::unknown(WHY)));
    assert!(!of(Construct::Barrier, |p| p.snapshot.threads[0].task = Fact::unknown(WHY)));
    assert!(!of(Construct::Taskwait, |p| p.snapshot.threads[0].team = fact(None)), "it is in no region");
}

/// Whether the wait of a thread of [`traceless`] is known not to be over, which no stack shows of a wait that is.
fn is_not_over(call: &RuntimeCall, lwp: i32, change: impl Fn(&mut Process)) -> bool {
    let mut p = traceless();
    change(&mut p);
    let found = Seen::calls([(lwp, call.clone())]).merge(&p);
    let wait = found.threads[lwp as usize - 1].wait.value().cloned().flatten().expect("a wait");
    assert_ne!(wait.over.get(), Some(true));
    wait.over.get() == Some(false)
}

#[test]
fn a_barrier_is_not_over_while_a_member_is_known_to_be_elsewhere() {
    let barrier = call(Construct::Barrier, Role::RunsTasks);
    let of = |lwp, wait: Fact<Option<Wait>>| {
        is_not_over(&barrier, lwp, |p| p.snapshot.threads[2 - lwp as usize].wait = wait.clone())
    };
    let at = |kind| fact(wait(kind, TeamId(0)));
    assert!(!of(1, Fact::unknown(WHY)), "the other one may have arrived");
    assert!(of(1, fact(None)), "the other one computes");
    assert!(!of(2, fact(None)), "thread 0 alone is the last to arrive and the first to leave");
    assert!(of(1, at(WaitKind::Lock)));
    assert!(of(1, at(WaitKind::RegionEnd)), "that is another barrier");
    assert!(!of(1, at(WaitKind::Barrier)));
    assert!(!of(1, at(WaitKind::BarrierTasks)));
    assert!(of(1, fact(wait(WaitKind::Barrier, TeamId(7)))), "that is the barrier of another team");
    for outside in [WaitKind::RegionStart, WaitKind::Pool] {
        assert!(!of(1, at(outside)), "it may have left: {outside:?}");
    }
    // What is not certain of the other one proves nothing.
    let lock = wait(WaitKind::Lock, TeamId(0)).expect("a wait");
    assert!(!of(1, fact(Some(Wait { over: Fact::unknown(WHY), ..lock.clone() }))));
    assert!(!of(1, fact(Some(Wait { over: fact(true), ..lock.clone() }))));
    assert!(!of(1, fact(crate::samples::by_stack(Some(lock)))));
    // A member that is no thread of the process, and one of which nothing was read.
    assert!(!is_not_over(&barrier, 1, |p| p.snapshot.teams[0].members[1] = None));
    assert!(!is_not_over(&barrier, 1, |p| p.snapshot.teams[0].members[1] = Some(9)));
}

#[test]
fn a_barrier_is_not_over_while_a_task_of_the_team_is_not() {
    let barrier = call(Construct::Barrier, Role::RunsTasks);
    let with_children = |task: usize, count| {
        is_not_over(&barrier, 1, move |p| p.snapshot.tasks[task].unfinished_children = fact(count))
    };
    assert!(with_children(1, 1));
    assert!(!with_children(1, 0));
    assert!(!is_not_over(&barrier, 1, |p| {
        let other = p.team();
        let task = p.task(other, TaskKind::Implicit, TaskState::Running);
        p.snapshot.tasks[task.0].unfinished_children = fact(1);
    }));
}

#[test]
fn a_wait_for_tasks_is_not_over_while_one_is_unfinished() {
    let taskwait = call(Construct::Taskwait, Role::RunsTasks);
    for (children, expected) in [(0, false), (1, true), (2, true)] {
        let found = is_not_over(&taskwait, 1, |p| p.snapshot.tasks[0].unfinished_children = fact(children));
        assert_eq!(found, expected, "{children} children");
    }
    assert!(!is_not_over(&taskwait, 1, |p| p.snapshot.tasks[0].unfinished_children = Fact::unknown(WHY)));
    let taskgroup = call(Construct::Taskgroup, Role::RunsTasks);
    for (unfinished, expected) in [(0, false), (1, true), (2, true)] {
        let found = is_not_over(&taskgroup, 1, |p| {
            let group = Taskgroup {
                descriptor: Addr::NULL,
                parent: fact(None),
                unfinished: fact(unfinished),
                cancelled: fact(false),
            };
            p.snapshot.recorded.taskgroups.push(group);
            p.snapshot.tasks[0].taskgroup = fact(Some(TaskgroupId(0)));
        });
        assert_eq!(found, expected, "{unfinished} tasks");
    }
    assert!(!is_not_over(&taskgroup, 1, |_| ()), "its group is unknown");
}

#[test]
fn a_thread_waits_for_its_turn_while_it_is_that_of_another() {
    let ordered = call(Construct::Ordered, Role::Other);
    let with_turn = |turn| is_not_over(&ordered, 1, move |p| p.turn(TeamId(0), turn));
    assert!(with_turn(1));
    assert!(!with_turn(0), "its turn has come");
    assert!(!is_not_over(&ordered, 1, |_| ()), "whose turn it is, is unknown");
    let of_another_team = |p: &mut Process| {
        let other = p.team();
        p.turn(other, 1);
    };
    assert!(!is_not_over(&ordered, 1, of_another_team));
    let without_number = |p: &mut Process| {
        p.turn(TeamId(0), 1);
        p.snapshot.threads[0].thread_num = Fact::unknown(WHY);
    };
    assert!(!is_not_over(&ordered, 1, without_number));
}

#[test]
fn a_thread_in_a_call_that_never_waits_executes_the_runtime() {
    let of = |call: RuntimeCall, change: fn(&mut Process)| {
        let mut p = traceless();
        p.snapshot.threads[0].at_work = true;
        change(&mut p);
        let thread = Seen::calls([(1, call)]).merge(&p).threads.remove(0);
        (thread.in_runtime, thread.wait == Fact::known(None, Origin::Stack))
    };
    let unsets = || call(Construct::UnsetLock, Role::Other);
    let explicit = |p: &mut Process| p.snapshot.tasks[0].kind = fact(TaskKind::Explicit);
    assert_eq!(of(unsets(), |_| ()), (Some(InRuntime::Call(Construct::UnsetLock)), true));
    assert_eq!(of(unsets(), |p| p.snapshot.threads[0].at_work = false), (None, false));
    assert_eq!(of(call(Construct::SetLock, Role::Other), |_| ()), (None, false), "there it may wait");
    assert_eq!(of(no_call(), explicit), (Some(InRuntime::Task), true));
    assert_eq!(of(no_call(), |_| ()), (None, false), "it has no task in its hands");
    assert_eq!(of(RuntimeCall { of_region: false, ..no_call() }, explicit), (None, false), "the task has called");
    // Memory shows a wait: then it is one.
    let waits = |p: &mut Process| p.snapshot.threads[0].wait = fact(spins(wait(WaitKind::Taskwait, TeamId(0))));
    assert_eq!(of(unsets(), waits), (None, false));
}

#[test]
fn a_suspended_task_waits_for_what_it_has_called() {
    let of = |construct, role, state| {
        let mut p = Process::new();
        let team = p.team();
        let task = p.task(team, TaskKind::Explicit, state);
        p.snapshot.tasks[task.0].descriptor = Addr(0x90);
        let mut seen = Seen::default();
        let called = TaskCall { entry: Entry::new(construct, role), line: Some(line(5)) };
        seen.stacks.task_calls.insert(task, called);
        seen.merge(&p).tasks.remove(0).wait
    };
    for (construct, kind) in [
        (Construct::Taskwait, WaitKind::Taskwait),
        (Construct::TaskwaitDepend, WaitKind::Dependences),
        (Construct::Taskgroup, WaitKind::Taskgroup),
        (Construct::Barrier, WaitKind::Barrier),
        (EndOfFor, WaitKind::Barrier),
    ] {
        let found = of(construct, Role::RunsTasks, TaskState::Suspended).expect("a wait");
        assert_eq!((found.kind, found.object, found.call), (kind, Addr(0x90), Some(construct)));
        assert_eq!((found.origin, found.location), (Origin::Stack, Some(line(5))));
    }
    assert_eq!(of(Construct::Taskwait, Role::RunsTasks, TaskState::Running), None);
    assert_eq!(of(EndOfFor, Role::Other, TaskState::Suspended), None, "that waits for nobody");
    assert_eq!(of(Construct::Taskyield, Role::RunsTasks, TaskState::Suspended), None);
}

#[test]
fn a_task_that_a_thread_executes_waits_for_the_tasks_that_the_thread_waits_for() {
    let of = |kind| {
        let mut p = Process::new();
        let team = p.team();
        p.member(team, FUTEX, wait(kind, team));
        Seen::default().merge(&p).tasks.remove(0).wait.map(|wait| wait.kind)
    };
    let kinds = [WaitKind::Taskwait, WaitKind::Taskgroup, WaitKind::TaskwaitOrTaskgroup, WaitKind::Dependences];
    assert_eq!(kinds.map(of), kinds.map(Some));
    assert_eq!([WaitKind::Barrier, WaitKind::Lock].map(of), [None; 2], "that is a wait of the thread");
}

/// The wait of a thread whose call of the runtime a signal has interrupted. The handler may be in a call itself.
fn in_handler(wait: Wait, of_handler: Option<RuntimeCall>) -> Fact<Option<Wait>> {
    let mut p = Process::new();
    let team = p.team();
    p.member(team, FUTEX, Some(wait));
    let mut seen = Seen::calls(of_handler.map(|call| (1, call)));
    seen.stacks.interrupted.insert(1);
    seen.merge(&p).threads.remove(0).wait
}

#[test]
fn a_thread_that_executes_a_signal_handler_does_not_wait_where_the_signal_came() {
    for kind in [WaitKind::Barrier, WaitKind::Taskwait, WaitKind::Pool, WaitKind::Lock] {
        assert_eq!(in_handler(of_kind(kind), None), Fact::known(None, Origin::Stack), "{kind:?}");
    }
    // What its registers show, it does now.
    let now = Wait { origin: Origin::Registers, ..of_kind(WaitKind::Mutex) };
    assert_eq!(in_handler(now, None).value().and_then(|wait| Some(wait.as_ref()?.kind)), Some(WaitKind::Mutex));
}

#[test]
fn a_signal_handler_in_a_call_of_the_runtime_waits_for_what_that_tells() {
    let kind = |wait, construct| {
        let found = in_handler(wait, Some(call(construct, Role::RunsTasks)));
        found.value().cloned().flatten().map(|wait| wait.kind)
    };
    // A thread queues up for one lock at a time.
    assert_eq!(kind(of_kind(WaitKind::Lock), Construct::SetLock), Some(WaitKind::Lock));
    assert_eq!(kind(of_kind(WaitKind::Barrier), Construct::SetLock), None);
    assert_eq!(kind(of_kind(WaitKind::Barrier), Construct::Taskgroup), Some(WaitKind::Taskgroup));
}
