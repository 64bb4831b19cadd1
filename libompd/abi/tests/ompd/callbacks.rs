//! How often the library asks the debugger, beside Intel's library on the same process.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::Path;
use std::process::Command;

use crate::client::{client, header, library, skip, symbols, thread_local};
use test_programs::{Env, Launch, Opt, Running, Runtime, Toolchain, await_all_blocked, build};

/// What was asked of the debugger for one kind of question.
#[derive(Debug, Clone, Copy, Default)]
struct Row {
    reads: u64,
    symbols: u64,
    contexts: u64,
    conversions: u64,
    memory: u64,
    bytes: u64,
    calls: u64,
    microseconds: u64,
}

impl Row {
    /// All callbacks.
    fn total(&self) -> u64 {
        self.reads + self.symbols + self.contexts + self.conversions + self.memory
    }
}

fn count(client: &Path, library: &Path, running: &Running, list: &Path, mode: &str) -> BTreeMap<String, Row> {
    let mut command = Command::new(client);
    command.arg(mode).arg(library).arg(running.pid.to_string()).arg(list);
    command.args(running.truth.threads.iter().map(|thread| format!("{:x}", thread.pthread.0)));
    let done = command.output().expect("the client runs");
    let text = String::from_utf8_lossy(&done.stdout).into_owned();
    assert!(done.status.success(), "{command:?}: {text}{}", String::from_utf8_lossy(&done.stderr));
    let mut rows = BTreeMap::new();
    for line in text.lines() {
        let (name, numbers) = line.split_once(' ').expect("a row");
        let numbers: Vec<u64> = numbers.split(' ').map(|number| number.parse().expect("a number")).collect();
        let [reads, symbols, contexts, conversions, memory, bytes, calls, microseconds] = numbers[..] else {
            panic!("{line}");
        };
        rows.insert(name.to_owned(), Row { reads, symbols, contexts, conversions, memory, bytes, calls, microseconds });
    }
    rows
}

/// What the two libraries ask for: as a debugger that offers what OMPD asks for counts it, and one that says that nothing has run.
struct Counts {
    theirs: BTreeMap<String, Row>,
    ours: BTreeMap<String, Row>,
    told: BTreeMap<String, Row>,
}

/// Questions as a debugger asks them of a stopped process with so many threads.
const QUESTIONS: [&str; 4] = ["threads", "parallel", "tasks", "icvs"];

fn total(rows: &BTreeMap<String, Row>, names: &[&str]) -> u64 {
    names.iter().map(|name| rows[*name].total()).sum()
}

#[test]
fn fewer_callbacks_than_intels_library() {
    let Some(header) = header() else { return skip("no clang 14, and so no omp-tools.h") };
    let library_of_intel = match Toolchain::Clang.check().and_then(|()| Runtime::Libiomp5.library()) {
        Ok(runtime) => runtime.with_file_name("libiomp5_db.so"),
        Err(reason) => return reason.show(),
    };
    if !library_of_intel.is_file() {
        return skip("Intel's libiomp5_db.so is not here; \"ci/setup\" gets it");
    }
    let directory = tempfile::tempdir().expect("a directory");
    let Some(client) = client(directory.path(), "gcc", &header) else { return };
    let program = build("many", Toolchain::Clang, Opt::O2, &[]).expect("it builds");
    for threads in [4usize, 16, 64] {
        // Without this theirs does not tell of states.
        let launch = Launch::new(&program, Runtime::Libiomp5, Env::Settled).variable("OMP_DEBUG", "enabled");
        let running = launch.argument(&threads.to_string()).start().expect("it starts");
        await_all_blocked(running.pid, threads, false).expect("it settles");
        let list = directory.path().join("symbols");
        symbols(running.pid, &list);
        let Some(own) = thread_local(&running, "__kmp_gtid") else {
            return skip("gdb does not say where __kmp_gtid is");
        };
        let all = std::fs::read_to_string(&list).expect("the list");
        std::fs::write(&list, own + &all).expect("the list");
        await_all_blocked(running.pid, threads, false).expect("it settles");
        let count = |library: &Path, mode| count(&client, library, &running, &list, mode);
        let counts = Counts {
            theirs: count(&library_of_intel, "--count"),
            ours: count(&library(), "--count"),
            told: count(&library(), "--count-stops"),
        };
        report(threads, &counts);
        for name in QUESTIONS {
            let (ours, theirs) = (counts.ours[name].total(), counts.theirs[name].total());
            assert!(ours < theirs, "{threads} threads, {name}: {ours}, theirs {theirs}");
            // How many there are for each call does not depend on how many threads there are.
            let (ours, calls) = (counts.ours[name].reads, counts.ours[name].calls);
            assert!(ours <= 8 * calls, "{threads} threads, {name}: {ours} reads for {calls} calls");
            // One to ask whether the process has run.
            assert!(counts.told[name].reads <= calls, "{threads} threads, {name}");
        }
        if threads == 64 {
            let questions = &QUESTIONS[..3];
            let (told, theirs) = (total(&counts.told, questions), total(&counts.theirs, questions));
            assert!(told * 5 <= theirs, "{told}, theirs {theirs}");
        }
    }
}

fn report(threads: usize, counts: &Counts) {
    for name in ["init"].iter().chain(&QUESTIONS) {
        let (theirs, ours, told) = (&counts.theirs[*name], &counts.ours[*name], &counts.told[*name]);
        let _ = writeln!(
            std::io::stderr(),
            "{threads:3} {name:9} theirs {:5} ({:6} us), ours {:5} ({:6} us, {} bytes), ours told of stops {:5} ({:6} us)",
            theirs.total(),
            theirs.microseconds,
            ours.total(),
            ours.microseconds,
            ours.bytes,
            told.total(),
            told.microseconds,
        );
    }
}
