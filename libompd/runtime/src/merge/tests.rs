//! What is put together of what was read and of all other evidence, by processes made by hand.

use ompt_record::block::CreationValues;
use ompt_record::event::Event;

use super::*;
use crate::evidence::{Fork, Naming, TaskOnStack};
use crate::os::Blocked;
use crate::samples::{FUTEX, Process, WHY, fact, locked, wait};

mod names;
mod waits;

/// What others than the runtime say of a stop.
#[derive(Default)]
struct Seen {
    stacks: StackEvidence,
    companion: Option<Remembered>,
    awaited: HashMap<i32, Addr>,
    outside: HashSet<i32>,
    in_program: HashSet<i32>,
    names: Option<Box<dyn Names>>,
}

impl Seen {
    fn calls(calls: impl IntoIterator<Item = (i32, crate::evidence::RuntimeCall)>) -> Seen {
        let stacks = StackEvidence { calls: calls.into_iter().collect(), ..StackEvidence::default() };
        Seen { stacks, ..Seen::default() }
    }

    fn merge(&self, p: &Process) -> RuntimeSnapshot {
        self.merge_all(vec![p.snapshot.clone()]).remove(0)
    }

    /// All runtimes of a process: what was seen are stacks of the first.
    fn merge_all(&self, raw: Vec<RawSnapshot>) -> Vec<RuntimeSnapshot> {
        let evidence = Evidence {
            stacks: std::slice::from_ref(&self.stacks),
            companion: self.companion.as_ref(),
            awaited: &self.awaited,
            outside: &self.outside,
            in_program: &self.in_program,
            names: self.names.as_deref(),
        };
        merge(raw, &evidence)
    }
}

/// A line of `a.c`.
fn line(line: u32) -> SourceLine {
    SourceLine { file: "a.c".to_owned(), function: "main".to_owned(), line }
}

/// The code of the only team of a process, by these functions of its members on stacks.
fn region_of(function: Fact<Addr>, bodies: &[u64]) -> RuntimeSnapshot {
    let mut p = Process::new();
    let team = p.team();
    p.snapshot.teams[0].function = function;
    let mut seen = Seen::default();
    seen.stacks.bodies.insert(team, bodies.iter().copied().map(Addr).collect());
    seen.merge(&p)
}

#[test]
fn the_function_of_a_region_is_the_one_that_all_its_members_execute() {
    let of = |function, bodies: &[u64]| {
        let found = region_of(function, bodies);
        (found.teams[0].function.clone().map(|code| code.addr), found.issues.len())
    };
    assert_eq!(of(Fact::unknown(WHY), &[0x10, 0x10]), (Fact::known(Addr(0x10), Origin::Stack), 0));
    assert_eq!(of(fact(Addr(0x20)), &[0x10, 0x10]), (fact(Addr(0x20)), 0), "the runtime recorded it");
    assert_eq!(of(Fact::unknown(WHY), &[]), (Fact::unknown(WHY), 0));
    for bodies in [&[0x10, 0x20][..], &[0x10, 0x10, 0x20]] {
        assert_eq!(of(Fact::unknown(WHY), bodies), (Fact::unknown(Common::StacksContradict), 1));
    }
    let issue = &region_of(Fact::unknown(WHY), &[0x10, 0x20]).issues[0];
    assert_eq!(issue.what, Reason::from(Trouble::BodiesDiffer));
}

#[test]
fn the_line_of_a_region_is_that_of_the_call_that_opened_it() {
    let of = |recorded: Option<u32>, entry: Entry| {
        let mut p = Process::new();
        let team = p.team();
        p.snapshot.teams[0].function = fact(Addr(0x10));
        if let Some(recorded) = recorded {
            p.snapshot.teams[0].location = fact(line(recorded));
        }
        let mut seen = Seen::default();
        seen.stacks.forks.insert(team, Fork { entry: Some(entry), line: Some(line(7)) });
        seen.stacks.begins.insert(Addr(0x10), line(9));
        let found = seen.merge(&p).teams.remove(0);
        (found.location.value().map(|line| line.line), found.construct.get())
    };
    let entry = Entry::new(Construct::ParallelFor, crate::entry::Role::OpensRegion);
    let construct = Some(Construct::ParallelFor);
    assert_eq!(of(None, entry), (Some(7), construct));
    assert_eq!(of(Some(3), entry), (Some(3), construct), "the runtime recorded it");
    // The call has the line of whatever comes before.
    assert_eq!(of(None, entry.unplaced()), (Some(9), construct));
    let mut p = Process::new();
    p.team();
    let alone = Seen::default().merge(&p).teams.remove(0);
    assert_eq!(alone.construct, Fact::unknown(Common::CallNotSeen));
    assert_eq!(alone.location, Fact::unknown(WHY));
}

#[test]
fn an_implicit_task_has_the_function_and_the_line_of_its_region() {
    let of = |kind, change: fn(&mut RawTask)| {
        let mut p = Process::new();
        let (_, team) = (p.team(), p.team());
        p.snapshot.teams[1].function = fact(Addr(0x10));
        p.snapshot.teams[1].location = fact(line(7));
        let task = p.task(team, kind, TaskState::Running);
        change(&mut p.snapshot.tasks[task.0]);
        let found = Seen::default().merge(&p).tasks.remove(0);
        (found.function.value().map(|code| code.addr.0), found.location.value().map(|line| line.line))
    };
    assert_eq!(of(TaskKind::Implicit, |_| ()), (Some(0x10), Some(7)));
    assert_eq!(of(TaskKind::Implicit, |task| task.location = fact(line(3))), (Some(0x10), Some(3)));
    assert_eq!(of(TaskKind::Implicit, |task| task.function = fact(Addr(0x20))), (Some(0x20), None));
    assert_eq!(of(TaskKind::Implicit, |task| task.team = fact(None)), (None, None));
    assert_eq!(of(TaskKind::Implicit, |task| task.team = fact(Some(TeamId(0)))), (None, None));
    assert_eq!(of(TaskKind::Explicit, |_| ()), (None, None));
}

#[test]
fn an_explicit_task_is_on_the_line_on_which_its_function_begins() {
    let of = |kind, on_stack: Option<u64>, change: fn(&mut RawTask)| {
        let mut p = Process::new();
        let team = p.team();
        let task = p.task(team, kind, TaskState::Suspended);
        change(&mut p.snapshot.tasks[task.0]);
        let mut seen = Seen::default();
        seen.stacks.tasks.insert(task, TaskOnStack { lwp: 5, begins: on_stack.map(Addr) });
        seen.stacks.begins.insert(Addr(0x10), line(9));
        let found = seen.merge(&p).tasks.remove(0);
        assert_eq!(found.stack, Some(5));
        (found.function.map(|code| code.addr.0), found.location.value().map(|line| line.line))
    };
    assert_eq!(of(TaskKind::Explicit, None, |task| task.function = fact(Addr(0x10))), (fact(0x10), Some(9)));
    // Only its stack shows which function it is.
    let by_stack = Fact::known(0x10, Origin::Stack);
    assert_eq!(of(TaskKind::Undeferred, Some(0x10), |_| ()), (by_stack, Some(9)));
    assert_eq!(of(TaskKind::Explicit, Some(0x10), |task| task.function = fact(Addr(0x20))), (fact(0x20), None));
    let recorded = |task: &mut RawTask| task.location = fact(line(3));
    assert_eq!(of(TaskKind::Explicit, Some(0x10), recorded).1, Some(3));
    assert_eq!(of(TaskKind::Initial, Some(0x10), |_| ()).1, None, "no construct made it");
    assert_eq!(of(TaskKind::Explicit, None, |_| ()), (Fact::unknown(WHY), None));
}

#[test]
fn the_call_says_what_kind_of_lock_it_is_where_the_runtime_does_not() {
    let of = |known: Fact<LockKind>, construct| {
        let mut p = Process::new();
        let team = p.team();
        let (_, lock) = (p.lock(fact(None)), p.lock(fact(None)));
        p.snapshot.locks[1].kind = known;
        p.member(team, FUTEX, locked(lock));
        let entry = Some(Entry::new(construct, crate::entry::Role::Other));
        let (line, base, vanished, ends_region, of_region) = (None, false, false, false, true);
        let call = crate::evidence::RuntimeCall { entry, base, vanished, line, ends_region, of_region };
        Seen::calls([(1, call)]).merge(&p).locks.remove(1).kind.get()
    };
    for (construct, kind) in [
        (Construct::SetLock, Some(LockKind::Lock)),
        (Construct::SetNestLock, Some(LockKind::NestLock)),
        (Construct::Critical, Some(LockKind::Critical)),
        (Construct::Atomic, Some(LockKind::Atomic)),
        (Construct::Target, Some(LockKind::Device)),
        (Construct::Barrier, None),
    ] {
        assert_eq!(of(Fact::unknown(WHY), construct), kind, "{construct:?}");
    }
    assert_eq!(of(fact(LockKind::NestLock), Construct::SetLock), Some(LockKind::NestLock));
}

const VARIABLE: u64 = 0x40;
const ACQUIRED: u64 = 0x1234;

/// Thread 1 waits for the lock at [`VARIABLE`]. A companion says that thread 2 has it, which waits at a barrier.
fn remembered(owner: Fact<Option<Owner>>, change: impl FnOnce(&mut Process, &mut Holder)) -> RuntimeSnapshot {
    let mut p = Process::new();
    let team = p.team();
    let lock = p.lock(owner);
    p.snapshot.locks[0].object = Addr(VARIABLE);
    p.member(team, FUTEX, locked(lock));
    p.member(team, FUTEX, wait(WaitKind::Barrier, team));
    let mut holder = Holder { lwp: 2, codeptr_ra: ACQUIRED, disputed: false };
    change(&mut p, &mut holder);
    let companion = Remembered::made([(VARIABLE, holder)].into(), HashMap::new());
    Seen { companion: Some(companion), ..Seen::default() }.merge(&p)
}

#[test]
fn a_companion_says_who_has_a_lock_and_where_it_was_acquired() {
    let site = Some(Site { code: Addr(ACQUIRED), location: None });
    let of = |owner, change: fn(&mut Process, &mut Holder)| {
        let mut found = remembered(owner, change);
        let lock = found.locks.remove(0);
        (lock.owner, lock.acquired, found.issues.len())
    };
    let unknown = || Fact::unknown(WHY);
    let by_companion = Fact::known(Some(Owner::Thread(2)), Origin::Companion);
    assert_eq!(of(unknown(), |_, _| ()), (by_companion, site.clone(), 0));
    assert_eq!(of(unknown(), |_, holder| holder.codeptr_ra = 0).1, None, "no place");
    // The runtime names the same one, or the task.
    for owner in [Owner::Thread(2), Owner::Task(TaskId(1))] {
        assert_eq!(of(fact(Some(owner)), |_, _| ()), (fact(Some(owner)), site.clone(), 0));
    }
    // The two disagree: what was read counts.
    for owner in [Some(Owner::Thread(1)), Some(Owner::Gone(9)), None] {
        assert_eq!(of(fact(owner), |_, _| ()), (fact(owner), None, 1));
    }
    let issue = remembered(fact(None), |_, _| ()).issues.remove(0);
    assert_eq!(issue.what, Trouble::OwnersDiffer { lwp: 2, owner: None }.into());
}

#[test]
fn what_a_companion_says_of_a_lock_counts_only_while_the_owner_waits() {
    let counts = |change: fn(&mut Process, &mut Holder)| {
        remembered(Fact::unknown(WHY), change).locks.remove(0).owner.value().is_some()
    };
    assert!(counts(|_, _| ()));
    assert!(!counts(|_, holder| holder.disputed = true));
    // It may be about to let go of the lock.
    assert!(!counts(|p, _| p.snapshot.threads[1].wait = fact(None)));
    assert!(!counts(|p, _| p.snapshot.threads[1].wait = Fact::unknown(WHY)));
    assert!(!counts(|p, _| p.snapshot.locks[0].held = fact(false)));
    assert!(!counts(|p, _| p.snapshot.locks[0].object = Addr(0x80)), "it is another lock");
    assert!(!counts(|p, _| p.snapshot.instance.base = Addr(0x1000)), "another runtime reports it");
    assert!(counts(|p, _| {
        p.snapshot.instance.base = Addr(0x1000);
        p.snapshot.instance.reports_from = Some(Addr::NULL);
    }));
    // In no call of the runtime it cannot let go of the lock.
    let mut p = Process::new();
    p.lock(Fact::unknown(WHY));
    let holder = Holder { lwp: 2, codeptr_ra: 0, disputed: false };
    let companion = Some(Remembered::made([(0, holder)].into(), HashMap::new()));
    let seen = Seen { companion, outside: [2].into(), ..Seen::default() };
    assert_eq!(seen.merge(&p).locks[0].owner.get(), Some(Some(Owner::Thread(2))));
}

#[test]
fn a_lock_is_shown_at_the_variable_by_which_a_companion_knows_it() {
    let mut p = Process::new();
    let team = p.team();
    let (lock, other) = (p.lock(Fact::unknown(WHY)), p.lock(Fact::unknown(WHY)));
    for (id, word) in [(lock, Some(5)), (other, None)] {
        let lock = &mut p.snapshot.locks[id.0];
        (lock.variable_word, lock.object, lock.name) = (word, Addr(0x900), Some("lock #5".to_owned()));
    }
    p.member(team, FUTEX, locked(lock));
    p.member(team, FUTEX, locked(other));
    let holder = Holder { lwp: 2, codeptr_ra: 0, disputed: false };
    let companion = Some(Remembered::made([(VARIABLE, holder)].into(), [(5, VARIABLE)].into()));
    let found = Seen { companion, ..Seen::default() }.merge(&p);
    assert_eq!((found.locks[0].object, &found.locks[0].name), (Addr(VARIABLE), &None));
    assert_eq!(found.locks[0].owner.get(), Some(Some(Owner::Thread(2))));
    assert_eq!(found.locks[1].object, Addr(0x900), "of that one nothing is remembered");
    let objects: Vec<_> = found.threads.iter().map(|t| t.wait.value().and_then(|w| Some(w.as_ref()?.object))).collect();
    assert_eq!(objects, [Some(Addr(VARIABLE)), Some(Addr::NULL)]);
}

#[test]
fn a_companion_says_where_a_task_was_generated() {
    let mut p = Process::new();
    let team = p.team();
    for (id, data) in [(0, fact(8)), (1, fact(9)), (2, Fact::unknown(WHY))] {
        p.task(team, TaskKind::Explicit, TaskState::Ready);
        p.snapshot.tasks[id].tool_data = data;
    }
    let values = CreationValues { codeptr_ra: 0x1234, ..CreationValues::from_words(&[0; 16]).expect("zeros") };
    let companion = Remembered::made(HashMap::new(), HashMap::new()).with([(8, values)].into(), HashMap::new());
    let found = Seen { companion: Some(companion), ..Seen::default() }.merge(&p);
    let created: Vec<_> = found.tasks.iter().map(|task| task.created.as_ref().map(|site| site.code)).collect();
    assert_eq!(created, [Some(Addr(0x1234)), None, None]);
}

#[test]
fn what_a_thread_has_begun_on_a_device_is_shown_unless_it_executes_the_region_itself() {
    let event = |kind, sub, flags| Event { kind, sub, flags, codeptr_ra: 0x20, ..Event::default() };
    let of = |on_host: Option<i32>, operation| {
        let mut p = Process::new();
        let team = p.team();
        p.member(team, FUTEX, None);
        p.snapshot.recorded.on_host.extend(on_host);
        let begun = Unfinished { construct: Some(event(8, 1, u32::MAX)), operation };
        let companion = Remembered::made(HashMap::new(), HashMap::new()).with(HashMap::new(), [(1, begun)].into());
        Seen { companion: Some(companion), ..Seen::default() }.merge(&p).threads.remove(0).on_device
    };
    let called = Some(Site { code: Addr(0x20), location: None });
    let found = of(None, None).expect("a construct");
    assert_eq!(found.construct, Some(DeviceConstruct { kind: 1, device: -1, called: called.clone() }));
    assert_eq!(found.operation, None);
    assert_eq!(of(Some(1), None), None);
    assert!(of(Some(2), None).is_some());
    let operation = |event| of(None, Some(event)).and_then(|found| found.operation).map(|found| found.kind);
    assert_eq!(operation(event(10, 0, 64)), Some(DeviceOperationKind::Submit { teams: 64 }));
    assert_eq!(operation(event(9, 2, 64)), Some(DeviceOperationKind::Data { number: 2, bytes: Some(64) }));
    let unknown = DeviceOperationKind::Data { number: 2, bytes: None };
    assert_eq!(operation(event(9, 2, u32::MAX)), Some(unknown), "how many was not told");
}

#[test]
fn trouble_with_a_companion_is_an_issue_of_the_first_runtime() {
    let companion = Remembered::troubled(Trouble::CompanionNamespace { pid: 7 });
    let p = Process::new();
    let seen = Seen { companion: Some(companion), ..Seen::default() };
    let found = seen.merge_all(vec![p.snapshot.clone(), p.snapshot.clone()]);
    let issues: Vec<usize> = found.iter().map(|snapshot| snapshot.issues.len()).collect();
    assert_eq!(issues, [1, 0]);
    assert_eq!(found[0].issues[0].subject, "companion");
}

#[test]
fn stacks_are_those_of_their_runtime() {
    let mut p = Process::new();
    let team = p.team();
    let mut seen = Seen::default();
    seen.stacks.bodies.insert(team, vec![Addr(0x10)]);
    let found = seen.merge_all(vec![p.snapshot.clone(), p.snapshot.clone()]);
    let known: Vec<bool> = found.iter().map(|snapshot| snapshot.teams[0].function.value().is_some()).collect();
    assert_eq!(known, [true, false]);
}

/// Two threads of one team, of which the first is new: the runtime has not noted its id.
fn at_a_stop() -> Process {
    let mut p = Process::new();
    let team = p.team();
    p.snapshot.teams[0].descriptor = Addr(0x70);
    p.member(team, FUTEX, None);
    p.member(team, FUTEX, None);
    let new = &mut p.snapshot.threads[1];
    (new.lwp, new.descriptor) = (None, Addr(0x30));
    p
}

#[test]
fn a_new_thread_has_the_id_of_the_thread_that_stopped() {
    let lwps = |descriptor| {
        let lack = Lacking::Lwp { descriptor: Addr(descriptor), lwp: 0 };
        let found = with_stop(at_a_stop().snapshot, vec![lack]);
        found.threads.iter().map(|thread| (thread.lwp, thread.descriptor.0)).collect::<Vec<_>>()
    };
    assert_eq!(lwps(0x30), [(Some(0), 0x30), (Some(1), 0)], "in the order of their ids");
    assert_eq!(lwps(0x31), [(Some(1), 0), (None, 0x30)]);
    assert_eq!(lwps(0), [(Some(1), 0), (None, 0x30)], "that one has an id");
}

#[test]
fn a_task_that_begins_has_the_function_that_is_about_to_be_called() {
    let of = |task| {
        let lack = Lacking::Function { task: TaskId(task), begins: Addr(0x10) };
        let found = with_stop(at_a_stop().snapshot, vec![lack]);
        found.tasks.iter().map(|task| task.function.clone()).collect::<Vec<_>>()
    };
    assert_eq!(of(1), [Fact::unknown(WHY), Fact::known(Addr(0x10), Origin::Registers)]);
    assert_eq!(of(7), [Fact::unknown(WHY), Fact::unknown(WHY)]);
}

#[test]
fn a_new_team_takes_the_place_of_the_one_whose_memory_it_has() {
    let of = |descriptor| {
        let mut p = at_a_stop();
        let other = p.team();
        p.snapshot.teams[1].descriptor = Addr(0x78);
        p.member(other, FUTEX, None);
        let new = RawTeam { descriptor: Addr(descriptor), ..p.snapshot.teams[0].clone() };
        with_stop(p.snapshot, vec![Lacking::Team(Box::new(new))])
    };
    let found = of(0x70);
    let teams: Vec<_> = found.teams.iter().map(|team| (team.descriptor.0, team.members.len())).collect();
    assert_eq!(teams, [(0, 0), (0x78, 1), (0x70, 2)]);
    assert_eq!(found.teams[0].level, Fact::unknown(Common::MemoryReused));
    // Threads that leave the ended team are in none, as far as is known.
    let places: Vec<_> = found.threads.iter().map(|t| (t.team.flat(), t.thread_num.get(), t.task.get())).collect();
    let nowhere = (None, None, None);
    assert_eq!(places, [nowhere, nowhere, (Some(TeamId(1)), Some(0), Some(TaskId(2)))]);
    let tasks: Vec<_> = found.tasks.iter().map(|task| task.team.flat()).collect();
    assert_eq!(tasks, [None, None, Some(TeamId(1))]);
    let beside = of(0x79);
    assert_eq!(beside.teams.len(), 3);
    assert_eq!(beside.threads[0].team.flat(), Some(TeamId(0)), "no memory was used again");
}

#[test]
fn line_of_a_serialized_region_that_the_stack_contradicts_is_that_of_the_call() {
    let at = |line| SourceLine { file: "a.c".to_owned(), function: String::new(), line };
    let of = |serialized, called: Option<u32>| {
        let mut p = Process::new();
        let team = p.team();
        p.snapshot.teams[team.0].serialized = fact(serialized);
        p.snapshot.teams[team.0].location = fact(at(5));
        let mut stacks = StackEvidence::default();
        stacks.forks.insert(team, Fork { entry: None, line: called.map(at) });
        code(&p.snapshot, &stacks).teams[team.0].location.value().map(|line| line.line)
    };
    assert_eq!(of(true, Some(9)), Some(9), "the runtime has that of a region that has ended");
    assert_eq!((of(true, Some(5)), of(true, None), of(false, Some(9))), (Some(5), Some(5), Some(5)));
}
