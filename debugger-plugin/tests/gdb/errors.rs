//! What cannot be done is said in a sentence, with what to do, and never as a traceback.

use debugger_plugin::{Gdb, parts};
use test_programs::{Env, Launch, Opt, Running, Runtime, Toolchain, build};

use crate::common::{has_gdb, library};

const COMMANDS: [&str; 17] = [
    "openmp status",
    "openmp threads",
    "openmp teams",
    "openmp tasks",
    "openmp waits",
    "openmp loops",
    "openmp icvs",
    "openmp stacks",
    "openmp doctor",
    "openmp why",
    "openmp thread",
    "openmp bt",
    "openmp taskframes",
    "openmp step",
    "openmp until barrier",
    "openmp print x",
    "openmp apply 0 bt",
];

fn check(printed: &[String], expected: &str) {
    for (command, text) in COMMANDS.iter().zip(printed) {
        assert!(text.contains(expected), "{command}: {text}");
        assert!(text.lines().count() <= 3, "{command}: {text}");
    }
}

#[test]
fn without_a_process() {
    if has_gdb() {
        let printed = Gdb::new(&library()).run(&COMMANDS).expect("gdb runs");
        check(&printed, "`run` the program, `attach` to one, or open a core file");
    }
}

#[test]
fn without_openmp() {
    if !has_gdb() {
        return;
    }
    let program = build("not_openmp", Toolchain::Gcc, Opt::O0, &[]).expect("the program builds");
    let running = Launch::new(&program, Runtime::Libgomp, Env::Stock).start().expect("the program starts");
    let printed = Gdb::attached(&library(), &running).run(&COMMANDS).expect("gdb runs");
    check(&printed, "No OpenMP runtime (libgomp, libomp, libiomp5) was found");
    // gdb's own commands work as ever.
    let printed = Gdb::attached(&library(), &running).run(&["bt", "print $_omp_thread_num()"]).expect("gdb runs");
    assert!(printed[0].contains("main"), "{}", printed[0]);
    assert_eq!(printed[1], "$1 = -1");
}

#[test]
fn a_library_that_is_not_there() {
    if !has_gdb() {
        return;
    }
    let empty = tempfile::tempdir().expect("a directory");
    let program = build("nested", Toolchain::Gcc, Opt::O0, &[]).expect("the program builds");
    let running = Running::start(&program, Runtime::Libgomp, Env::Stock).expect("the program starts");
    let printed = Gdb::attached(empty.path(), &running).run(&["openmp status", "bt"]).expect("gdb runs");
    assert!(printed[0].contains("libompd.so is not beside the plugin"), "{}", printed[0]);
    assert!(printed[0].contains("set openmp library PATH"), "{}", printed[0]);
    assert!(printed[1].contains("#0"), "{}", printed[1]);
}

fn script(name: &str) -> String {
    format!("source {}/tests/gdb/{name}", env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn errors_of_gdb_reach_the_core_as_its_own() {
    if has_gdb() {
        let printed = Gdb::new(&library()).run(&[script("refusals.py")]).expect("gdb runs");
        assert!(printed[0].contains("Debugger: ") && !printed[0].contains("leaked"), "{}", printed[0]);
    }
}

#[test]
fn where_gdb_refuses_to_list_threads_backtraces_stay_as_they_are() {
    if !has_gdb() {
        return;
    }
    let program = build("nested", Toolchain::Gcc, Opt::O0, &[]).expect("the program builds");
    let running = Running::start(&program, Runtime::Libgomp, Env::Stock).expect("the program starts");
    let commands = ["bt", "bt -no-filters", "openmp status", "complete openmp thread 0."];
    let gdb = Gdb::attached(&library(), &running).first(script("refused_threads.py"));
    let printed = gdb.run(&commands).expect("gdb runs");
    assert!(printed[0].contains("main._omp_fn.0 ()") && !printed[0].contains('['), "{}", printed[0]);
    assert_eq!(printed[0].lines().count(), printed[1].lines().count(), "{printed:#?}");
    assert_eq!(printed[2], "Remote connection closed");
    assert_eq!(printed[3], "");
}

/// A bug of the plugin is one line, the session goes on, and `openmp doctor` has the rest.
#[test]
fn a_failure_of_the_plugin_is_one_line() {
    if !has_gdb() {
        return;
    }
    let program = build("nested", Toolchain::Gcc, Opt::O0, &[]).expect("the program builds");
    let running = Running::start(&program, Runtime::Libgomp, Env::Stock).expect("the program starts");
    let break_it = "python import openmp_core.views as v; v.Threads.part = lambda *_: [][1]";
    let commands = [break_it, "openmp threads -json", "openmp doctor"];
    let started = Gdb::attached(&library(), &running).start(&commands).expect("gdb runs");
    let (_, text) = started.printed().expect("gdb ends");
    let printed = parts(&text);
    let line = "The plugin has failed: IndexError: list index out of range (`openmp doctor` has the rest)";
    assert_eq!(printed[1], line, "{text}");
    assert!(printed[2].contains("Traceback") && printed[2].contains("everything of it can be read"), "{text}");
}

#[test]
fn wrong_arguments() {
    if !has_gdb() {
        return;
    }
    let program = build("nested", Toolchain::Gcc, Opt::O0, &[]).expect("the program builds");
    let running = Running::start(&program, Runtime::Libgomp, Env::Stock).expect("the program starts");
    let cases = [
        ("openmp threads -x", "Unknown option -x. Usage: openmp threads"),
        ("openmp stacks -tree -all", "at a time"),
        ("openmp thread 0.99", "Team 0 has 3 threads"),
        ("openmp thread 99.0", "There is no team 99"),
        ("openmp thread nonsense", "is no thread"),
        ("openmp thread 1", "There is no thread with the kernel id 1"),
        ("openmp apply 0", "A team and a command are wanted"),
        ("openmp break nonsense", "nonsense is no event"),
        ("openmp break task-begin when", "Usage: openmp break"),
        ("openmp delete 7", "There is no stop 7"),
        ("openmp break parallel-begin", "Stop 1"),
        ("openmp delete 1 1", "Stop 1 is named more than once"),
        ("openmp until dawn", "dawn is no line"),
        ("openmp catch deadlock never", "Usage: openmp catch deadlock"),
        ("openmp print", "An expression is wanted"),
    ];
    let commands: Vec<&str> = cases.iter().map(|(command, _)| *command).collect();
    let printed = Gdb::attached(&library(), &running).run(&commands).expect("gdb runs");
    for ((command, expected), text) in cases.iter().zip(&printed) {
        assert!(text.contains(expected), "{command}: {text}");
    }
}
