//! What libomp and libiomp5 record beside teams and threads, compared with what a program knows of itself, on every build
//! of them that is at hand.

use std::collections::{BTreeMap, HashMap};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};

use ompd_runtime::discover;
use ompd_runtime::model::*;
use ompd_target::{Addr, Arch, Live, Module, OpenOptions, ProcessInfo, ReadError, Target, TargetKind};
use test_programs::{Opt, Skip, Toolchain, build};

/// Directories in which `libomp.so.5` is the runtime to try, and what it is.
fn libraries() -> Vec<(tempfile::TempDir, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../test-programs/runtimes");
    let mut files = vec![PathBuf::from("/usr/lib/llvm-14/lib/libomp.so.5"), root.join("libiomp5.so")];
    let below = |path: &Path| -> Vec<PathBuf> {
        let entries = std::fs::read_dir(path).into_iter().flatten().filter_map(Result::ok).map(|e| e.path());
        let mut entries: Vec<PathBuf> = entries.collect();
        entries.sort();
        entries
    };
    for folder in below(&root) {
        for name in ["libomp.so", "libiomp5.so"] {
            files.push(folder.join(name));
        }
        files.extend(below(&folder.join("amd64")).into_iter().map(|package| package.join("libomp.so.5")));
    }
    let found = files.iter().filter_map(|file| file.canonicalize().ok()).map(|file| {
        let directory = tempfile::tempdir().expect("a directory");
        std::os::unix::fs::symlink(&file, directory.path().join("libomp.so.5")).expect("a link");
        (directory, file.display().to_string())
    });
    found.collect()
}

/// A program that has said all it knows, and waits. It is killed when this is dropped.
struct Held {
    child: Child,
    stdin: Option<ChildStdin>,
    rest: BufReader<std::process::ChildStdout>,
    lines: Vec<String>,
}

impl Held {
    /// Starts the program; `None`, with the reason told, if it cannot run on this library.
    fn start(
        program: &Path,
        library: &Path,
        what: &str,
        variables: &[(&str, &str)],
        arguments: &[&str],
    ) -> Option<Held> {
        let mut command = Command::new(program);
        for (name, _) in std::env::vars_os() {
            if ["OMP_", "KMP_", "LD_"].iter().any(|prefix| name.to_string_lossy().starts_with(prefix)) {
                command.env_remove(&name);
            }
        }
        command.env("LD_LIBRARY_PATH", library).envs(variables.iter().copied()).args(arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut held = Held::of(command.spawn().expect("the program starts"));
        loop {
            let mut line = String::new();
            if held.rest.read_line(&mut line).expect("its output can be read") == 0 {
                let mut text = String::new();
                let _ = held.child.stderr.take().expect("its errors").read_to_string(&mut text);
                assert!(text.contains("GLIBC_") || text.contains("cannot open shared object"), "{what}: {text}");
                Skip::because(format!("{what}: {}", text.trim_end())).show();
                return None;
            }
            if line.trim_end() == "ready" {
                return Some(held);
            }
            held.lines.push(line.trim_end().to_owned());
        }
    }

    fn of(mut child: Child) -> Held {
        let stdin = child.stdin.take();
        let rest = BufReader::new(child.stdout.take().expect("its output"));
        Held { child, stdin, rest, lines: Vec::new() }
    }

    /// What is behind the first word of the lines that begin with it.
    fn told(&self, word: &str) -> Vec<Vec<&str>> {
        let words = self.lines.iter().map(|line| line.split(' ').collect::<Vec<_>>());
        words.filter(|words| words[0] == word).map(|words| words[1..].to_vec()).collect()
    }

    fn snapshot(&self, what: &str) -> RuntimeSnapshot {
        let mut live = Live::open(self.child.id() as i32, &OpenOptions::default()).expect("it can be opened");
        let runtimes = discover(&live, &[]);
        assert_eq!(runtimes.len(), 1, "{what}: {runtimes:?}");
        live.stop().expect("it can be stopped");
        let mut snapshot = runtimes[0].snapshot(&live);
        live.resume();
        runtimes[0].name(&live, &mut snapshot);
        snapshot
    }

    fn end(mut self) {
        self.stdin.take().expect("its input").write_all(b"\n").expect("it reads");
        let mut text = String::new();
        self.rest.read_to_string(&mut text).expect("it writes");
        assert!(self.child.wait().expect("it ends").success() && text.contains("done"), "{text}");
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn address(text: &str) -> Addr {
    Addr(u64::from_str_radix(text, 16).expect("an address"))
}

/// True if the layout of the build is known as a whole.
fn whole(snapshot: &RuntimeSnapshot) -> bool {
    snapshot.instance.missing.is_empty()
}

fn each_library(mut each: impl FnMut(&Path, &str)) {
    let libraries = libraries();
    for (directory, what) in &libraries {
        each(directory.path(), what);
    }
    if libraries.is_empty() {
        Skip::because("no libomp is here").show();
    }
}

#[test]
fn tasks_nobody_executes() {
    if let Err(skip) = test_programs::can_build("kmp_tasks", Toolchain::Clang).expect("the program is there") {
        return skip.show();
    }
    let program = build("kmp_tasks", Toolchain::Clang, Opt::O2, &["-g"]).expect("it builds");
    let mut tried = 0;
    each_library(|library, what| {
        let priorities = [("OMP_MAX_TASK_PRIORITY", "10")];
        let Some(held) = Held::start(&program.path, library, what, &priorities, &[]) else { return };
        let snapshot = held.snapshot(what);
        if whole(&snapshot) {
            check_tasks(&held, &snapshot, what);
            tried += 1;
        } else {
            Skip::because(format!("{what}: its layout is not known as a whole")).show();
        }
        held.end();
    });
    assert!(tried > 0, "no libomp was tried");
}

fn check_tasks(held: &Held, s: &RuntimeSnapshot, what: &str) {
    assert!(s.issues.is_empty(), "{what}: {:?}", s.issues);
    let mut by_name: BTreeMap<String, Vec<TaskId>> = BTreeMap::new();
    let lines: HashMap<u32, String> = held
        .told("task")
        .into_iter()
        .map(|words| (words[words.len() - 1].parse().expect("a line"), words[..words.len() - 1].join(" ")))
        .collect();
    for (index, task) in s.tasks.iter().enumerate().filter(|(_, t)| t.kind.get().is_some_and(TaskKind::is_explicit)) {
        let line = task.location.value().map(|l| l.line).unwrap_or_else(|| panic!("{what}: {task:?}"));
        by_name.entry(lines[&line].clone()).or_default().push(TaskId(index));
    }
    let names: Vec<&str> = by_name.keys().map(String::as_str).collect();
    let mut expected: Vec<&str> = lines.values().map(String::as_str).collect();
    expected.sort_unstable();
    assert_eq!(names, expected, "{what}");
    let ids = |name: &str| by_name[name].clone();
    let task = |name: &str| &s.tasks[by_name[name][0].0];
    assert!(s.more_tasks.is_empty());

    for (name, state) in [
        ("plain", TaskState::Ready),
        ("child", TaskState::Ready),
        ("high", TaskState::Ready),
        ("low", TaskState::Ready),
        ("a writer", TaskState::Ready),
        ("a reader 1", TaskState::Blocked),
        ("a last", TaskState::Blocked),
        ("b exclusive 1", TaskState::Blocked),
        ("c first", TaskState::Ready),
        ("c second", TaskState::Blocked),
        ("c third", TaskState::Blocked),
        ("after detached", TaskState::Blocked),
        ("detached", TaskState::Detached),
        ("running", TaskState::Running),
    ] {
        assert_eq!(task(name).state.get(), Some(state), "{what}: {name}: {:?}", task(name));
    }
    assert_eq!(task("parent").state.get(), None, "{what}: it is over");
    assert_eq!(ids("high").len(), 2, "{what}");
    let priorities = ["plain", "low", "high"].map(|name| task(name).priority.get());
    // LLVM 11 does not keep them.
    let known = if what.contains("libomp5-11") { [None; 3] } else { [Some(0), Some(2), Some(7)] };
    assert_eq!(priorities, known, "{what}");
    let tied = ["plain", "untied", "running"].map(|name| task(name).tied.get());
    assert_eq!(tied, [Some(true), Some(false), Some(true)], "{what}");
    assert_eq!(task("child").generating.get(), Some(Some(ids("parent")[0])), "{what}");
    assert_eq!(task("parent").unfinished_children.get(), Some(2), "{what}");
    let initial_of_0 = task("plain").generating.flat().expect("the implicit task of thread 0");
    // The detached task and the parent are among those generated by thread 0; the latter is over.
    assert_eq!(s.tasks[initial_of_0.0].unfinished_children.get(), Some(lines.len() as u32 + 2 - 3), "{what}");

    // What waits for what. Of a set of readers none waits for another.
    for (name, before) in [
        ("a writer", vec![]),
        ("a reader 1", vec!["a writer"]),
        ("a reader 2", vec!["a writer"]),
        ("a last", vec!["a reader 1", "a reader 2"]),
        ("b exclusive 1", vec!["b writer"]),
        ("b exclusive 2", vec!["b writer"]),
        ("b reader", vec!["b exclusive 1", "b exclusive 2"]),
        ("c second", vec!["c first"]),
        ("c third", vec!["c second"]),
        ("after detached", vec!["detached"]),
        ("after both", vec!["e and f"]),
    ] {
        let mut expected: Vec<TaskId> = before.iter().map(|name| ids(name)[0]).collect();
        expected.sort_unstable();
        assert_eq!(task(name).predecessors, expected, "{what}: {name}");
        assert_eq!(task(name).unmet.get(), Some(expected.len() as u32), "{what}: {name}");
    }
    let cells: HashMap<&str, Addr> = held.told("cell").into_iter().map(|w| (w[0], address(w[1]))).collect();
    for (name, cell, kind) in [
        ("a last", "a", DependKind::InOut),
        ("b reader", "b", DependKind::In),
        ("b exclusive 1", "b", DependKind::MutexInOutSet),
        ("c third", "c", DependKind::InOut),
        ("after detached", "d", DependKind::In),
        ("detached", "d", DependKind::InOut),
    ] {
        let found: Vec<_> = task(name).dependences.iter().map(|d| (d.addr, d.kind.get(), d.name.as_deref())).collect();
        assert_eq!(found, [(cells[cell], Some(kind), Some(cell))], "{what}: {name}");
    }
    let mut both = [cells["e"], cells["f"]];
    both.sort_unstable();
    let found: Vec<Addr> = task("after both").dependences.iter().map(|d| d.addr).collect();
    assert_eq!(found, both, "{what}");

    let event = task("detached").event.flat().expect("its event");
    assert_eq!((event.handle, event.fulfilled), (address(held.told("event")[0][0]), false), "{what}");
    assert_eq!(task("plain").event.get(), Some(None), "{what}");

    let group = |name: &str| task(name).taskgroup.get().unwrap_or_else(|| panic!("{what}: {name}"));
    let (outer, inner) = (group("outer group").expect("one"), group("inner group").expect("one"));
    assert_eq!((group("plain"), group("running")), (None, None), "{what}");
    let (outer_group, inner_group) = (s.taskgroup(outer).expect("it"), s.taskgroup(inner).expect("it"));
    assert_eq!((inner_group.parent.get(), outer_group.parent.get()), (Some(Some(outer)), Some(None)), "{what}");
    assert_eq!((outer_group.unfinished.get(), inner_group.unfinished.get()), (Some(1), Some(2)), "{what}");
    assert_eq!(inner_group.cancelled.get(), Some(false), "{what}");
}

/// A queue of half a million tasks is counted, not listed.
#[test]
fn many_tasks_are_counted() {
    const MORE: u64 = 500_000;
    if let Err(skip) = test_programs::can_build("kmp_tasks", Toolchain::Clang).expect("the program is there") {
        return skip.show();
    }
    let program = build("kmp_tasks", Toolchain::Clang, Opt::O2, &["-g"]).expect("it builds");
    let Some((directory, what)) = libraries().into_iter().next() else { return };
    let variables = [("OMP_MAX_TASK_PRIORITY", "10"), ("KMP_ENABLE_TASK_THROTTLING", "0")];
    let count = MORE.to_string();
    let Some(held) = Held::start(&program.path, directory.path(), &what, &variables, &[&count]) else { return };
    let s = held.snapshot(&what);
    assert!(s.issues.is_empty(), "{:?}", s.issues);
    let [more] = s.more_tasks.as_slice() else { panic!("{:?}", s.more_tasks) };
    let like = &s.tasks[more.like.0];
    let key = |t: &Task| (t.function.value().map(|f| f.addr), t.generating.get(), t.state.get(), t.priority.get());
    let listed = s.tasks.iter().filter(|t| key(t) == key(like)).count() as u64;
    assert_eq!((listed, listed + more.count), (1000, MORE));
    // The others are all there.
    assert_eq!(s.tasks.iter().filter(|t| t.state.get() == Some(TaskState::Blocked)).count(), 10);
    held.end();
}

/// What is known of the owners and waiters of each kind of lock.
#[test]
fn locks_of_each_kind() {
    use test_programs::{Env, Launch, Runtime};
    let runtimes = Runtime::available().into_iter().filter(|runtime| runtime.is_kmp());
    let can = test_programs::can_build("lock", Toolchain::Clang).expect("the program is there");
    if let Err(skip) = can {
        return skip.show();
    }
    let program = build("lock", Toolchain::Clang, Opt::O2, &["-g"]).expect("it builds");
    for runtime in runtimes {
        for (kind, checks) in [
            ("queuing", false),
            ("queuing", true),
            ("ticket", false),
            ("drdpa", false),
            ("tas", false),
            ("futex", false),
        ] {
            let what = format!("{runtime:?} {kind} {checks}");
            let mut launch = Launch::new(&program, runtime, Env::Settled).variable("KMP_LOCK_KIND", kind);
            if checks {
                launch = launch.variable("KMP_CONSISTENCY_CHECK", "all");
            }
            if kind == "futex" {
                // These waiters sleep in the kernel.
                launch = launch.variable("OMPD_TRUTH_SPINS", "0");
            }
            let running = launch.start().expect("it starts");
            let mut live = Live::open(running.pid, &OpenOptions::default()).expect("it can be opened");
            let runtimes = discover(&live, &[]);
            live.stop().expect("it can be stopped");
            let mut s = runtimes[0].snapshot(&live);
            live.resume();
            runtimes[0].name(&live, &mut s);
            check_locks(&running.truth, &s, (kind, checks), &what);
            running.release().expect("it goes on");
        }
    }
}

fn check_locks(truth: &test_programs::Truth, s: &RuntimeSnapshot, (kind, checks): (&str, bool), what: &str) {
    assert!(s.issues.is_empty(), "{what}: {:?}", s.issues);
    let lwp = |role: &str| truth.threads.iter().find(|t| t.role == role).map(|t| t.lwp).expect("the role");
    let of = |kind: LockKind| s.locks.iter().find(|lock| lock.kind.get() == Some(kind));
    let owner = |role: &str| Some(Some(Owner::Thread(lwp(role))));
    let nest = of(LockKind::NestLock).unwrap_or_else(|| panic!("{what}: {:?}", s.locks));
    assert_eq!((nest.owner.get(), nest.depth), (owner("nest lock holder"), Some(2)), "{what}");
    let waits: HashMap<i32, &Wait> =
        s.threads.iter().filter_map(|t| Some((t.lwp?, t.wait.value()?.as_ref()?))).collect();
    let waiters = [lwp("lock waiter"), lwp("critical waiter"), lwp("nest lock waiter")];
    match kind {
        "queuing" => {
            let (gate, ledger) = (of(LockKind::Lock).expect("one"), of(LockKind::Critical).expect("one"));
            for (lock, holder, waiter) in [
                (gate, "coordinator", waiters[0]),
                (ledger, "critical holder", waiters[1]),
                (nest, "nest lock holder", waiters[2]),
            ] {
                assert_eq!((lock.held.get(), lock.queued), (Some(true), true), "{what}: {lock:?}");
                assert_eq!(lock.waiters, [waiter], "{what}: {lock:?}");
                let known = checks || lock.kind.get() == Some(LockKind::NestLock);
                assert_eq!(lock.owner.get(), if known { owner(holder) } else { None }, "{what}: {lock:?}");
                let wait = waits[&waiter];
                let id = wait.lock.expect("its lock");
                assert_eq!(s.lock(id).map(|l| l.waiters.as_slice()), Some([waiter].as_slice()), "{what}");
                assert_eq!((wait.over.get(), wait.asleep), (Some(false), Some(false)), "{what}: {wait:?}");
            }
            assert_eq!(ledger.name.as_deref(), Some("critical (ledger)"), "{what}");
            let word = truth.locks.iter().find(|l| l.name == "ledger").expect("it").address.0;
            assert_eq!(ledger.object, Addr(word), "{what}");
        }
        "futex" => {
            for (name, holder, waiter) in
                [("gate", "coordinator", waiters[0]), ("ledger", "critical holder", waiters[1])]
            {
                let wait = waits.get(&waiter).unwrap_or_else(|| panic!("{what}: {:?}", s.threads));
                let lock = wait.lock.and_then(|id| s.lock(id)).expect("its lock");
                assert_eq!(lock.owner.get(), owner(holder), "{what}");
                assert_eq!((lock.waiters.as_slice(), lock.held.get()), ([waiter].as_slice(), Some(true)), "{what}");
                assert_eq!((wait.over.get(), wait.asleep), (Some(false), Some(true)), "{what}");
                let named = if name == "ledger" { "critical (ledger)" } else { name };
                assert_eq!(lock.name.as_deref(), Some(named), "{what}");
                let word = truth.locks.iter().find(|l| l.name == name).expect("it").address.0;
                assert_eq!(lock.object, Addr(word), "{what}");
            }
            assert_eq!(nest.waiters, [waiters[2]], "{what}");
        }
        "ticket" | "drdpa" => {
            for lock in [of(LockKind::Lock).expect("one"), of(LockKind::Critical).expect("one")] {
                assert_eq!((lock.held.get(), lock.owner.get()), (Some(true), None), "{what}: {lock:?}");
            }
        }
        // The program's own words are the locks, and nothing says where they are.
        _ => assert_eq!(s.locks.len(), 1, "{what}: {:?}", s.locks),
    }
}

#[test]
fn loops_stopped_half_way() {
    if let Err(skip) = test_programs::can_build("kmp_loops", Toolchain::Clang).expect("the program is there") {
        return skip.show();
    }
    let program = build("kmp_loops", Toolchain::Clang, Opt::O2, &["-g"]).expect("it builds");
    let mut tried = 0;
    each_library(|library, what| {
        for (schedule, which) in [
            ("monotonic:dynamic,4", "narrow"),
            ("monotonic:dynamic,4", "wide"),
            ("guided,5", "narrow"),
            ("nonmonotonic:dynamic,2", "narrow"),
            ("nonmonotonic:dynamic,2", "wide"),
            ("monotonic:dynamic,1", "ordered"),
            ("static,7", "narrow"),
        ] {
            let what = format!("{what}, {which} {schedule}");
            let held = Held::start(&program.path, library, &what, &[("OMP_SCHEDULE", schedule)], &[which]);
            let Some(held) = held else { return };
            let snapshot = held.snapshot(&what);
            if !whole(&snapshot) {
                Skip::because(format!("{what}: its layout is not known as a whole")).show();
                return held.end();
            }
            check_loop(&held, &snapshot, schedule, which, &what);
            held.end();
            tried += 1;
        }
    });
    assert!(tried > 0, "no libomp was tried");
}

fn check_loop(held: &Held, s: &RuntimeSnapshot, schedule: &str, which: &str, what: &str) {
    assert!(s.issues.is_empty(), "{what}: {:?}", s.issues);
    let [found] = s.loops.as_slice() else { panic!("{what}: {:?}", s.loops) };
    let begun: BTreeMap<u32, u64> = held
        .told("member")
        .into_iter()
        .map(|words| (words[0].parse().expect("a number"), words[1].parse().expect("an iteration")))
        .collect();
    assert_eq!(found.members, [0, 1, 2], "{what}");
    assert_eq!(
        (found.iterations.get(), found.completed.get(), found.step.get()),
        (Some(100), Some(0), Some(1)),
        "{what}"
    );
    assert_eq!(found.kind.get(), Some(LoopKind::Loop), "{what}");
    // clang's loops begin with 0.
    assert_eq!(found.end.get(), Some(100), "{what}");
    let turn = begun.iter().find(|(_, iteration)| **iteration == 0).map(|(member, _)| *member);
    assert_eq!(found.ordered_turn.get(), Some(turn.filter(|_| which == "ordered")), "{what}");
    let (how, chunk) = match schedule.rsplit_once(',').expect("a chunk") {
        ("monotonic:dynamic", chunk) => (LoopSchedule::Dynamic, chunk),
        ("guided", chunk) => (LoopSchedule::Guided, chunk),
        ("static", chunk) => (LoopSchedule::Static, chunk),
        (_, chunk) => (LoopSchedule::StaticSteal, chunk),
    };
    let chunk: u64 = chunk.parse().expect("a number");
    assert_eq!((found.schedule.get(), found.chunk.get()), (Some(how), Some(chunk)), "{what}");
    match how {
        LoopSchedule::Dynamic => {
            assert_eq!(found.handed_out.get(), Some(3 * chunk), "{what}");
            assert_eq!(found.next.get(), Some(3 * chunk as i64), "{what}");
        }
        LoopSchedule::Guided => {
            // Chunks of at least the size asked for, of which the last begun has its end where the next begins.
            let given = found.handed_out.get().expect("it is counted");
            let last = begun.values().max().copied().expect("three");
            assert!((last + chunk..100).contains(&given), "{what}: {given} after {begun:?}");
            assert_eq!(found.next.get(), Some(given as i64), "{what}");
        }
        LoopSchedule::Static => assert_eq!(found.handed_out.get(), None, "{what}"),
        LoopSchedule::StaticSteal => {
            assert_eq!(found.handed_out.get(), Some(3 * chunk), "{what}");
            // 50 chunks are 17, 17 and 16.
            for (share, (from, to)) in found.shares.iter().zip([(0, 34), (34, 68), (68, 100)]) {
                assert_eq!(begun[&share.member], from, "{what}");
                assert_eq!(share.left, Some((from + chunk, to)), "{what}: {share:?}");
            }
            assert_eq!(found.shares.len(), 3, "{what}");
        }
    }
}

/// A process whose memory lies, in a way that depends on the address.
struct Lying<'a> {
    inner: &'a Live,
    seed: u64,
}

impl Target for Lying<'_> {
    fn kind(&self) -> TargetKind {
        self.inner.kind()
    }
    fn arch(&self) -> Arch {
        self.inner.arch()
    }
    fn modules(&self) -> &[Module] {
        self.inner.modules()
    }
    fn threads(&self) -> &[ompd_target::Thread] {
        self.inner.threads()
    }
    fn process(&self) -> &ProcessInfo {
        self.inner.process()
    }
    fn issues(&self) -> &[String] {
        self.inner.issues()
    }

    /// One aligned word in 24 is another: its neighbour, so that lists run in circles, or none, or a number far too large.
    fn read(&self, addr: Addr, buf: &mut [u8]) -> Result<(), ReadError> {
        self.inner.read(addr, buf)?;
        let mut at = (8 - addr.0 % 8) % 8;
        while at + 16 <= buf.len() as u64 {
            let mixed = (addr.0.wrapping_add(at) ^ self.seed).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
            let place = at as usize;
            match mixed % 72 {
                0 => buf.copy_within(place + 8..place + 16, place),
                1 => buf[place..place + 8].fill(0),
                2 => buf[place..place + 8].copy_from_slice(&[0xff, 0xff, 0xff, 0x7f, 0, 0, 0, 0]),
                _ => {}
            }
            at += 8;
        }
        Ok(())
    }
}

/// Queues, lists and tables that lie: every walk ends, nothing panics, and what refers to something refers to what is there.
#[test]
fn walks_end_whatever_memory_holds() {
    for (name, arguments) in [("kmp_tasks", ["3000"]), ("kmp_loops", ["narrow"])] {
        if let Err(skip) = test_programs::can_build(name, Toolchain::Clang).expect("the program is there") {
            return skip.show();
        }
        let program = build(name, Toolchain::Clang, Opt::O2, &["-g"]).expect("it builds");
        for (directory, what) in libraries().into_iter().take(2) {
            let variables = [
                ("OMP_MAX_TASK_PRIORITY", "10"),
                ("KMP_ENABLE_TASK_THROTTLING", "0"),
                ("OMP_SCHEDULE", "nonmonotonic:dynamic,2"),
            ];
            let Some(held) = Held::start(&program.path, directory.path(), &what, &variables, &arguments) else {
                continue;
            };
            let mut live = Live::open(held.child.id() as i32, &OpenOptions::default()).expect("it can be opened");
            let runtimes = discover(&live, &[]);
            live.stop().expect("it can be stopped");
            let mut told = 0;
            for seed in 0..60 {
                let s = runtimes[0].snapshot(&Lying { inner: &live, seed });
                told += usize::from(!s.issues.is_empty());
                assert!(s.tasks.iter().all(|t| t.predecessors.iter().all(|before| before.0 < s.tasks.len())));
                assert!(s.tasks.iter().all(|t| t.taskgroup.flat().is_none_or(|g| g.0 < s.taskgroups.len())));
                assert!(s.more_tasks.iter().all(|more| more.like.0 < s.tasks.len()));
                assert!(s.loops.iter().all(|found| found.team.0 < s.teams.len()));
                let waits = s.threads.iter().filter_map(|t| t.wait.value()?.as_ref());
                assert!(waits.filter_map(|w| w.lock).all(|lock| lock.0 < s.locks.len()));
            }
            assert!(told > 0, "{what}: no lie was noticed");
            live.resume();
            held.end();
        }
    }
}
