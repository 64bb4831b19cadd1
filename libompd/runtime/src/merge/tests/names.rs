//! Names of functions, locks and storage.

use super::*;

/// What files say: each address has one name of each kind, `f16` for code at 16.
#[derive(Clone, Default)]
struct Files {
    code: HashSet<u64>,
    objects: HashSet<u64>,
    expressions: HashSet<u64>,
    lines: HashMap<u64, SourceLine>,
    words: HashMap<u64, u32>,
    lock_with: HashMap<u32, &'static str>,
    criticals: HashMap<Addr, Critical>,
    naming: Naming,
}

impl Names for Files {
    fn code(&self, addr: Addr) -> Option<String> {
        self.code.contains(&addr.0).then(|| format!("f{}", addr.0))
    }

    fn object(&self, addr: Addr) -> Option<String> {
        self.objects.contains(&addr.0).then(|| format!("o{}", addr.0))
    }

    fn expression(&self, addr: Addr, waiter: Option<i32>) -> Option<String> {
        let waiter = waiter.map(|lwp| format!(" of {lwp}")).unwrap_or_default();
        let found = self.expressions.contains(&addr.0).then(|| format!("e{}{waiter}", addr.0));
        found.or_else(|| self.object(addr))
    }

    fn lock_with(&self, content: u32) -> Option<String> {
        self.lock_with.get(&content).map(|name| (*name).to_owned())
    }

    fn line(&self, returns_to: Addr) -> Option<SourceLine> {
        self.lines.get(&returns_to.0).cloned()
    }

    fn word(&self, addr: Addr) -> Option<u32> {
        self.words.get(&addr.0).copied()
    }

    fn criticals(&self, runtime: usize, wanted: &HashSet<Addr>) -> HashMap<Addr, Critical> {
        assert_eq!(runtime, 0);
        self.criticals.iter().filter(|(at, _)| wanted.contains(at)).map(|(at, of)| (*at, of.clone())).collect()
    }

    fn naming(&self, runtime: usize) -> Naming {
        assert_eq!(runtime, 0);
        self.naming
    }
}

fn named(files: Files) -> Seen {
    Seen { names: Some(Box::new(files)), ..Seen::default() }
}

/// A process with one lock at 0x900, for which thread 1 waits by this kind of wait.
fn waiting(kind: WaitKind, lock: LockKind) -> Process {
    let mut p = Process::new();
    let team = p.team();
    let id = p.lock(fact(None));
    (p.snapshot.locks[0].object, p.snapshot.locks[0].kind) = (Addr(0x900), fact(lock));
    p.member(team, FUTEX, locked(id).map(|wait| Wait { kind, object: Addr(0x900), ..wait }));
    p
}

/// Name of the lock, and kind and name of the wait.
fn names_of(p: &Process, seen: &Seen) -> (Option<String>, WaitKind, Option<String>) {
    let found = seen.merge(p);
    let wait = found.threads[0].wait.value().cloned().flatten().expect("a wait");
    (found.locks[0].name.clone(), wait.kind, wait.name)
}

fn text(text: &str) -> Option<String> {
    Some(text.to_owned())
}

#[test]
fn functions_and_storage_are_named_by_symbols() {
    let mut p = Process::new();
    let team = p.team();
    p.snapshot.teams[0].function = fact(Addr(16));
    let task = p.task(team, TaskKind::Explicit, TaskState::Ready);
    p.snapshot.tasks[task.0].function = fact(Addr(17));
    let depends = |addr| RawDependence { addr: Addr(addr), kind: fact(DependKind::In) };
    p.snapshot.tasks[task.0].dependences = [32, 33, 0].map(depends).to_vec();
    let of = |by_module| {
        let naming = Naming { dependences_by_module: by_module, ..Naming::default() };
        let seen = named(Files { code: [0, 16, 17, 33].into(), objects: [32].into(), naming, ..Files::default() });
        let found = seen.merge(&p);
        let name = |function: &Fact<CodeRef>| function.value().and_then(|code| code.name.clone());
        assert_eq!([name(&found.teams[0].function), name(&found.tasks[0].function)], [text("f16"), text("f17")]);
        found.tasks[0].dependences.iter().map(|of| of.name.clone()).collect::<Vec<_>>()
    };
    assert_eq!(of(false), [text("o32"), None, None]);
    assert_eq!(of(true), [text("o32"), text("f33"), None], "storage without a symbol is shown by its module");
}

#[test]
fn a_lock_that_is_waited_for_is_called_as_in_the_source() {
    let p = waiting(WaitKind::Lock, LockKind::Lock);
    let of = |files| names_of(&p, &named(files));
    let objects = Files { objects: [0x900].into(), ..Files::default() };
    assert_eq!(of(objects.clone()), (text("o2304"), WaitKind::Lock, text("o2304")));
    let both = Files { expressions: [0x900].into(), ..objects };
    assert_eq!(of(both), (text("e2304"), WaitKind::Lock, text("e2304 of 1")));
    let code = Files { code: [0x900].into(), ..Files::default() };
    assert_eq!(of(code), (None, WaitKind::Lock, text("f2304")));
    // Only what is for a lock is a variable of the program.
    let p = waiting(WaitKind::Barrier, LockKind::Lock);
    let files = Files { code: [0x900].into(), expressions: [0x900].into(), ..Files::default() };
    assert_eq!(names_of(&p, &named(files)).2, text("f2304"));
}

#[test]
fn a_lock_that_nobody_waits_for_has_the_name_of_its_symbol() {
    let mut p = Process::new();
    let named_by_runtime = p.lock(fact(None));
    p.lock(fact(None));
    p.snapshot.locks[named_by_runtime.0].name = text("lock #5");
    let files = Files { objects: [0].into(), expressions: [0].into(), ..Files::default() };
    let names: Vec<_> = named(files).merge(&p).locks.into_iter().map(|lock| lock.name).collect();
    assert_eq!(names, [text("lock #5"), text("o0")]);
}

#[test]
fn a_critical_is_shown_by_its_name_in_the_source() {
    let critical = Critical { variable: Addr(0x40), name: "gate".to_owned() };
    let files = Files { criticals: [(Addr(0x900), critical)].into(), ..Files::default() };
    for kind in [WaitKind::Mutex, WaitKind::Critical] {
        let p = waiting(kind, LockKind::Critical);
        let name = || text("critical (gate)");
        assert_eq!(names_of(&p, &named(files.clone())), (name(), WaitKind::Critical, name()), "{kind:?}");
        let lock = named(files.clone()).merge(&p).locks.remove(0);
        assert_eq!((lock.object, lock.kind.get()), (Addr(0x40), Some(LockKind::Critical)));
    }
    // No critical is looked for where a lock is waited for.
    let p = waiting(WaitKind::Lock, LockKind::Lock);
    assert_eq!(names_of(&p, &named(files.clone())), (None, WaitKind::Lock, None));
    // Nobody waits, and which kind of lock it is, is unknown.
    let mut p = Process::new();
    p.lock(fact(None));
    (p.snapshot.locks[0].object, p.snapshot.locks[0].kind) = (Addr(0x900), Fact::unknown(WHY));
    assert_eq!(named(files).merge(&p).locks[0].kind.get(), Some(LockKind::Critical));
}

#[test]
fn a_variable_that_a_compiler_made_for_a_critical_tells_that_a_wait_is_for_one() {
    let naming = Naming { critical_of: |name| name.strip_prefix("e2304"), ..Naming::default() };
    let files = Files { expressions: [0x900].into(), naming, ..Files::default() };
    let p = waiting(WaitKind::Mutex, LockKind::Lock);
    let found = names_of(&p, &named(files));
    assert_eq!((found.1, found.2), (WaitKind::Critical, text("critical ( of 1)")));
}

#[test]
fn a_lock_that_only_waits_show_is_named_by_them() {
    let of = |kind, own: Option<&str>, by_waits| {
        let mut p = waiting(kind, LockKind::Lock);
        p.snapshot.locks[0].name = own.map(str::to_owned);
        if let Some(wait) = p.snapshot.threads[0].wait.value_mut().and_then(Option::as_mut) {
            wait.name = text("from the wait");
        }
        let naming = Naming { locks_by_waits: by_waits, ..Naming::default() };
        let lock = named(Files { naming, ..Files::default() }).merge(&p).locks.remove(0);
        (lock.name, lock.kind.get())
    };
    assert_eq!(of(WaitKind::Lock, None, true), (text("from the wait"), Some(LockKind::Lock)));
    assert_eq!(of(WaitKind::Lock, None, false), (None, Some(LockKind::Lock)));
    assert_eq!(of(WaitKind::Lock, Some("own"), true), (text("own"), Some(LockKind::Lock)));
    let critical = Some(LockKind::Critical);
    assert_eq!(of(WaitKind::Critical, Some("made by a compiler"), true), (text("from the wait"), critical));
}

/// A process whose lock lies elsewhere: its variable has the word 5. Threads 1 and 2 wait for it.
fn lock_elsewhere() -> Process {
    let mut p = waiting(WaitKind::Lock, LockKind::Lock);
    p.snapshot.locks[0].variable_word = Some(5);
    p.snapshot.locks[0].name = text("#5 of the table");
    let wait = p.snapshot.threads[0].wait.value().cloned().flatten();
    p.member(TeamId(0), FUTEX, wait);
    p
}

#[test]
fn the_variable_of_a_lock_is_what_the_calls_that_wait_for_it_were_given() {
    let of = |awaited: &[(i32, u64)], words: &[(u64, u32)], change: fn(&mut Process)| {
        let mut p = lock_elsewhere();
        change(&mut p);
        let files = Files { expressions: [0x40].into(), words: words.iter().copied().collect(), ..Files::default() };
        let awaited = awaited.iter().map(|(lwp, addr)| (*lwp, Addr(*addr))).collect();
        let found = Seen { awaited, ..named(files) }.merge(&p);
        let waits = found.threads.iter().map(|thread| thread.wait.value()?.as_ref()?.name.clone());
        (found.locks[0].variable, found.locks[0].name.clone(), waits.collect::<Vec<_>>())
    };
    let found = (Some(Addr(0x40)), text("e64"), vec![text("e64"), text("e64")]);
    assert_eq!(of(&[(1, 0x40)], &[(0x40, 5)], |_| ()), found);
    assert_eq!(of(&[(1, 0x40), (2, 0x40)], &[(0x40, 5)], |_| ()), found);
    // A variable without a name is shown by its address.
    let (variable, name, _) = of(&[(1, 0x48)], &[(0x48, 5)], |_| ());
    assert_eq!((variable, name), (Some(Addr(0x48)), text(&Addr(0x48).to_string())));
    let unknown = (None, text("#5 of the table"), vec![None, None]);
    assert_eq!(of(&[], &[(0x40, 5)], |_| ()), unknown);
    assert_eq!(of(&[(1, 0x40)], &[(0x40, 6)], |_| ()), unknown, "it holds another lock by now");
    assert_eq!(of(&[(1, 0x40)], &[], |_| ()), unknown, "it cannot be read");
    assert_eq!(of(&[(1, 0x40), (2, 0x48)], &[(0x40, 5), (0x48, 5)], |_| ()), unknown, "two calls, two variables");
    assert_eq!(of(&[(1, 0x40)], &[(0x40, 5)], |p| p.snapshot.locks[0].variable_word = None), unknown);
    assert_eq!(of(&[(1, 0x900)], &[(0x900, 5)], |_| ()), unknown, "that is where the runtime has it");
}

#[test]
fn a_lock_whose_variable_no_call_shows_is_looked_for_by_its_content() {
    let of = |awaited: &[(i32, u64)], change: fn(&mut Process)| {
        let mut p = lock_elsewhere();
        change(&mut p);
        let files = Files { lock_with: [(5, "grid")].into(), words: [(0x40, 5)].into(), ..Files::default() };
        let awaited = awaited.iter().map(|(lwp, addr)| (*lwp, Addr(*addr))).collect();
        let found = Seen { awaited, ..named(files) }.merge(&p);
        let wait = found.threads[1].wait.value().cloned().flatten().and_then(|wait| wait.name);
        (found.locks[0].name.clone(), wait)
    };
    let probably = (text("#5 (probably grid)"), text("#5 (probably grid)"));
    assert_eq!(of(&[], |_| ()), probably);
    let unnumbered = text("0x5 (probably grid)");
    assert_eq!(of(&[], |p| p.snapshot.locks[0].name = None), (unnumbered.clone(), unnumbered));
    let unknown = (text("#5 of the table"), None);
    assert_eq!(of(&[], |p| p.snapshot.locks[0].variable_word = Some(6)), unknown);
    assert_eq!(of(&[], |p| p.snapshot.locks[0].variable_word = None), unknown);
    let variable = text(&Addr(0x40).to_string());
    assert_eq!(of(&[(1, 0x40)], |_| ()), (variable.clone(), variable), "a call has shown it");
    // Nobody waits for it.
    let nobody = |p: &mut Process| p.snapshot.threads.iter_mut().for_each(|thread| thread.wait = fact(None));
    assert_eq!(of(&[], nobody), unknown);
}

#[test]
fn places_that_a_companion_recorded_have_lines() {
    let mut p = Process::new();
    let team = p.team();
    p.lock(Fact::unknown(WHY));
    for data in [8, 9] {
        let task = p.task(team, TaskKind::Explicit, TaskState::Ready);
        p.snapshot.tasks[task.0].tool_data = fact(data);
    }
    p.snapshot.tasks[1].location = fact(line(3));
    p.member(team, FUTEX, None);
    p.member(team, FUTEX, wait(WaitKind::Barrier, team));
    let begun = |codeptr_ra| Some(Event { kind: 8, codeptr_ra, ..Event::default() });
    let unfinished = Unfinished { construct: begun(0x30), operation: begun(0x40) };
    let holder = Holder { lwp: 2, codeptr_ra: 0x10, disputed: false };
    let values = CreationValues { codeptr_ra: 0x20, ..CreationValues::from_words(&[0; 16]).expect("zeros") };
    let companion = Remembered::made([(0, holder)].into(), HashMap::new())
        .with([(8, values), (9, values)].into(), [(1, unfinished)].into());
    let lines = [0x10, 0x20, 0x30, 0x40].map(|at| (at, line(at as u32))).into();
    let found = Seen { companion: Some(companion), ..named(Files { lines, ..Files::default() }) }.merge(&p);
    let of = |site: Option<&Site>| site.and_then(|site| site.location.as_ref()).map(|line| line.line);
    assert_eq!(of(found.locks[0].acquired.as_ref()), Some(0x10));
    assert_eq!(of(found.tasks[0].created.as_ref()), Some(0x20));
    let device = found.threads[0].on_device.as_ref().expect("a device");
    assert_eq!(of(device.construct.as_ref().and_then(|of| of.called.as_ref())), Some(0x30));
    assert_eq!(of(device.operation.as_ref().and_then(|of| of.called.as_ref())), Some(0x40));
    // The call that generates a task stands where its construct does.
    assert_eq!(found.tasks[0].location, Fact::known(line(0x20), Origin::Companion));
    assert_eq!(found.tasks[1].location, fact(line(3)), "the runtime recorded it");
}
