//! What cannot be done is said in a sentence, with what to do, and never as a traceback.

use debugger_plugin::lldb::{Lldb, lldbs};
use test_programs::{Env, Launch, Opt, Running, Runtime, Toolchain, build};

use crate::common::library;

const COMMANDS: [&str; 20] = [
    "openmp status",
    "openmp threads",
    "openmp thread list",
    "openmp teams",
    "openmp team list",
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
    "ompd status",
];

fn check(printed: &[String], expected: &str) {
    for (command, text) in COMMANDS.iter().zip(printed) {
        assert!(text.contains(expected), "{command}: {text}");
        assert!(text.lines().count() <= 3, "{command}: {text}");
    }
}

#[test]
fn without_a_process() {
    for release in lldbs() {
        let printed = Lldb::new(&release, &library()).run(&COMMANDS).expect("LLDB runs");
        check(&printed, "`run` the program, `process attach` to one, or open a core file");
        let printed =
            Lldb::new(&release, &library()).run(&["openmp break parallel-begin", "openmp break"]).expect("LLDB runs");
        assert!(printed[0].contains("There is no target") && printed[1].contains("There are no stops"), "{printed:#?}");
    }
}

#[test]
fn without_openmp() {
    let program = build("not_openmp", Toolchain::Gcc, Opt::O0, &[]).expect("the program builds");
    let running = Launch::new(&program, Runtime::Libgomp, Env::Stock).start().expect("the program starts");
    for release in lldbs() {
        let printed = Lldb::attached(&release, &library(), &running).run(&COMMANDS).expect("LLDB runs");
        check(&printed, "No OpenMP runtime (libgomp, libomp, libiomp5) was found");
        // LLDB's own commands work as ever.
        let printed =
            Lldb::attached(&release, &library(), &running).run(&["thread select 1", "bt"]).expect("LLDB runs");
        assert!(
            printed[1].contains("main") && !printed[1].contains("#pragma"),
            "LLDB {}: {printed:#?}",
            release.version
        );
    }
}

#[test]
fn a_library_that_is_not_there() {
    let empty = tempfile::tempdir().expect("a directory");
    let program = build("nested", Toolchain::Gcc, Opt::O0, &[]).expect("the program builds");
    let running = Running::start(&program, Runtime::Libgomp, Env::Stock).expect("the program starts");
    for release in lldbs() {
        let printed = Lldb::attached(&release, empty.path(), &running)
            .run(&["openmp status", "bt", "openmp settings show"])
            .expect("LLDB runs");
        let what = format!("LLDB {}: {printed:#?}", release.version);
        assert!(printed[0].contains("libompd.so is not beside the plugin"), "{what}");
        assert!(printed[0].contains("openmp settings set library PATH"), "{what}");
        assert!(printed[1].contains("frame #0: 0x"), "{what}");
        assert!(printed[2].contains("libompd.so is taken from"), "{what}");
    }
}

#[test]
fn wrong_arguments() {
    let program = build("nested", Toolchain::Gcc, Opt::O0, &[]).expect("the program builds");
    let running = Running::start(&program, Runtime::Libgomp, Env::Stock).expect("the program starts");
    let cases = [
        ("openmp threads -x", "Unknown option -x. Usage: openmp threads"),
        ("openmp stacks -tree -all", "at a time"),
        ("openmp thread 0.99", "Team 0 has 3 threads"),
        ("openmp thread select 99.0", "There is no team 99"),
        ("openmp thread nonsense", "is no thread"),
        ("openmp thread 'open", "No closing quotation"),
        ("openmp thread 1", "There is no thread with the kernel id 1"),
        ("openmp apply 0", "A team and a command are wanted"),
        ("openmp apply 0.0 no_such_command", "no_such_command"),
        ("openmp break nonsense", "nonsense is no event"),
        ("openmp breakpoint set task-begin when", "Usage: openmp break"),
        ("openmp delete 7", "There is no stop 7"),
        ("openmp break parallel-begin", "Stop 1"),
        ("openmp breakpoint delete 1 1", "Stop 1 is named more than once"),
        ("openmp until dawn", "dawn is no line"),
        ("openmp catch deadlock never", "Usage: openmp catch deadlock"),
        ("openmp print", "An expression is wanted"),
        ("openmp print (int)truth", "not casts"),
        ("openmp print getpid()", "not casts"),
        ("openmp print 1 / 0", "zero"),
        ("openmp print 1 << 80", "a shift by 80"),
        ("openmp print $_omp_nothing()", "No function"),
        ("openmp print no_such_variable", "No variable \"no_such_variable\""),
        ("openmp settings set nothing", "Usage: openmp settings"),
    ];
    let commands: Vec<&str> = cases.iter().map(|(command, _)| *command).collect();
    for release in lldbs() {
        let printed = Lldb::attached(&release, &library(), &running).run(&commands).expect("LLDB runs");
        for ((command, expected), text) in cases.iter().zip(&printed) {
            assert!(text.contains(expected), "LLDB {}, {command}: {text}", release.version);
        }
    }
}

/// A bug of the plugin is one line, the session goes on, and `openmp doctor` has the rest.
#[test]
fn a_failure_of_the_plugin_is_one_line() {
    let program = build("nested", Toolchain::Gcc, Opt::O0, &[]).expect("the program builds");
    let running = Running::start(&program, Runtime::Libgomp, Env::Stock).expect("the program starts");
    let break_it = "script import openmp_core.views as v; v.Threads.part = lambda *_: [][1]";
    let in_frames = "script import openmp_lldb.frames as f; f.Backtraces.shown = lambda *_: {}[2]";
    let commands = [break_it, "openmp threads -json", "openmp threads", in_frames, "bt"];
    for release in lldbs() {
        let library = library();
        let attached = || Lldb::attached(&release, &library, &running);
        let printed = attached().failing().run(&commands).expect("LLDB runs");
        let what = format!("LLDB {}: {printed:#?}", release.version);
        assert_eq!(
            printed[1],
            "error: The plugin has failed: IndexError: list index out of range (`openmp doctor` has the rest)",
            "{what}"
        );
        assert!(printed[2].contains("0/2") && printed[4].contains("frame #0: 0x"), "{what}");
        let all = [&commands[..], &["openmp doctor"]].concat();
        let printed = attached().failing().run(&all).expect("LLDB runs");
        let doctor = &printed[5];
        assert!(
            doctor.contains("Traceback") && doctor.contains("IndexError") && doctor.contains("KeyError"),
            "{doctor}"
        );
        assert!(doctor.contains("everything of it can be read"), "{doctor}");
    }
}
