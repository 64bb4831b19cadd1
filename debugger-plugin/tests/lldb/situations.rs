//! The commands on runtimes as they are shipped, in a process that LLDB is attached to, on cores, and through `lldb-server`. The
//! output is compared with what the programs say of themselves.

use std::path::PathBuf;

use anyhow::{Context as _, Result};
use debugger_plugin::lldb::{FIRST_LLDB_WITH_PROVIDERS, Lldb, LldbRelease, Server, lldbs};
use debugger_plugin::{Release, releases, started};
use serde_json::Value;
use test_programs::{
    Env, Launch, Opt, Running, Skip, Truth, build, compare, compare_stacks, compare_verdicts, native_combinations,
};

use crate::common::{library, words};

/// How LLDB comes to a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Situation {
    Attach,
    Gcore,
    KernelCore,
    Remote,
}

use Situation::{Attach, Gcore, KernelCore, Remote};

impl Situation {
    fn is_live(self) -> bool {
        matches!(self, Attach | Remote)
    }

    /// What the program says of itself, and what each of the commands has printed.
    fn run(self, lldb: &LldbRelease, launch: &Launch, commands: &[&str]) -> Result<Result<(Truth, Vec<String>), Skip>> {
        let directory = tempfile::tempdir().context("a directory for a core")?;
        let library = library();
        let on_core = |truth: Truth, core: PathBuf| {
            let printed = Lldb::core(lldb, &library, &launch.executable().path, &core).run(commands)?;
            Ok(Ok((truth, printed)))
        };
        let mut running = match self {
            KernelCore => started(&launch.clone().leaving_core_in(directory.path()))?,
            _ => started(launch)?,
        };
        let truth = running.truth.clone();
        match self {
            Attach => Ok(Ok((truth, Lldb::attached(lldb, &library, &running).run(commands)?))),
            Remote => match Server::attached(lldb, running.pid)? {
                Ok(server) => Ok(Ok((truth, Lldb::remote(lldb, &library, &server).run(commands)?))),
                Err(skip) => Ok(Err(skip)),
            },
            Gcore => match running.gcore(directory.path())? {
                Ok(core) => on_core(truth, core),
                Err(skip) => Ok(Err(skip)),
            },
            KernelCore => match running.kernel_core(directory.path())? {
                Ok(core) => on_core(truth, core),
                Err(skip) => Ok(Err(skip)),
            },
        }
    }
}

/// After `openmp bt on continued`, LLDB 22 prints its threads when it handles an event, in the background. Events are handled one after the
/// other: when one of our own has been taken from the queue, the others are done. `lldb.debugger` is empty while another thread prints.
const HANDLED: &str = "script b = lldb.SBBroadcaster('test'); l = lldb.SBDebugger.FindDebuggerWithID(1).GetListener(); \
    l.StartListeningForEvents(b, 1); b.BroadcastEventByType(1); \
    [None for _ in iter(lambda: l.PeekAtNextEvent(lldb.SBEvent()), False)] and None";

/// What each command must print for the program `nested`: a team of three, and in each member a team of two. Thread 0 of each
/// inner team waits at a barrier. The order matters: a selected thread stays selected.
const ON_NESTED: &[(&str, &[&str])] = &[
    ("openmp thread select 1.0", &["frame #0: 0x", "thread 0 of 2 in team 1", "waits at a"]),
    ("openmp status", &["SUSPECT", "level 1, 3 threads", "level 2, 2 threads", "in outer_body", "main"]),
    ("openmp threads -v", &["number 0", "number 1", "barrier", "implicit", "descriptor 0x"]),
    ("openmp thread list", &["0/2", "1/2", "barrier", "implicit"]),
    ("openmp teams", &["level 1, 3 threads", "level 2, 2 threads", "barrier"]),
    ("openmp team list", &["level 1, 3 threads", "level 2, 2 threads", "barrier"]),
    ("openmp task list", &["implicit", "initial", "running", "suspended"]),
    ("openmp tasks -tree", &["initial, suspended", "task", "implicit, running"]),
    ("openmp wait list", &["SUSPECT", "not reached by thread 1 of team 1", "barrier"]),
    ("openmp waits -dot", &["digraph waits", "barrier of team 1"]),
    ("openmp loop list", &["no team is in a worksharing region"]),
    ("openmp icv list", &["nthreads-var", "OMP_NUM_THREADS=4", "levels-var"]),
    ("openmp stack list", &["inner_body", "#pragma omp parallel in outer_body", "main"]),
    ("openmp stacks -tree", &["6 main", "inner_body"]),
    ("openmp bt", &["waits at a", "inner_body", "#pragma omp parallel in main", "main"]),
    ("openmp thread backtrace 1.1", &["read of ", "truth_", "#pragma omp parallel in outer_body"]),
    ("openmp why", &["waits at a", "SUSPECT", "not reached by thread 1 of team 1"]),
    ("openmp thread info 1.1", &["thread 1 of 2 in team 1", "truth.h:", "SUSPECT"]),
    ("ompd thread", &["thread 0 of 2 in team 1"]),
    ("openmp apply 1 openmp print $_omp_level()", &["thread 0 of team 1", "thread 1 of team 1", "2"]),
    ("openmp apply 0.1-2 bt 1", &["thread 0 of team", "frame #0: 0x"]),
    ("openmp taskframes", &["enter", "0x", "function not known"]),
    ("openmp print $_omp_num_threads() == 2 && $_omp_level() > 1", &["1"]),
    ("openmp print -all $_omp_thread_num()", &["1.0", "1.1"]),
    ("openmp print -all $_omp_level()", &["1.0-1 2"]),
    ("openmp print -each $_omp_level()", &["1.0 Thread", "1.1 Thread"]),
    ("openmp print -team 0.1 nowhere", &["unknown: No variable \"nowhere\""]),
    ("openmp doctor", &["everything of it can be read", "build-id", "libompd.so", "read_memory", "lldb"]),
    ("openmp init", &["lib", "omp"]),
    ("bt", &["inner_body", "[#pragma omp parallel in outer_body]", "waits: barrier"]),
    ("openmp bt on continued", &[]),
    (HANDLED, &[]),
    ("openmp thread 1.1", &["thread 1 of 2 in team 1"]),
    ("bt", &["[#pragma omp parallel in outer_body]", "[continues in Thread", "main"]),
    ("openmp bt off", &[]),
    ("bt", &["inner_body"]),
    ("openmp break", &["There are no stops"]),
    ("openmp delete", &[]),
];

/// What takes a process that can run.
const NEEDS_PROCESS: [&str; 5] = [
    "openmp break parallel-begin",
    "openmp breakpoint set task-begin",
    "openmp step",
    "openmp until barrier",
    "openmp catch deadlock 0.05",
];

fn json(text: &str) -> Result<Value, String> {
    // LLDB 14 complains of code in assembler before.
    let from = text.find('{').ok_or_else(|| format!("JSON is wanted: {text}"))?;
    serde_json::from_str(&text[from..]).map_err(|why| format!("{why}: {text}"))
}

/// Runs commands on a program on each runtime in each LLDB, and has what they print looked at: what is wrong, one line each.
fn each(
    situation: Situation,
    program: &str,
    opt: Opt,
    commands: &[&str],
    check: impl Fn(&Release, &Truth, &[String]) -> Vec<String>,
) {
    let mut wrong = Vec::new();
    for release in releases().expect("directories for runtimes") {
        let executable = match release.build(program, opt, &[]).expect("the program builds") {
            Ok(executable) => executable,
            Err(skip) => {
                skip.show();
                continue;
            }
        };
        for lldb in lldbs() {
            let what = format!("{program}, {situation:?}, {}, LLDB {}", release.name, lldb.version);
            // The kernel wakes threads to end them, so the core may catch a waiting thread at a moment that does not show its wait.
            let mut tries = if situation == KernelCore { 3 } else { 1 };
            loop {
                let found = match situation.run(&lldb, &release.launch(&executable), commands) {
                    Ok(Ok((truth, printed))) => check(&release, &truth, &printed),
                    Ok(Err(skip)) => {
                        skip.show();
                        break;
                    }
                    Err(why) => vec![format!("{why:#}")],
                };
                tries -= 1;
                if found.is_empty() || tries == 0 {
                    wrong.extend(found.into_iter().map(|line| format!("{what}: {line}")));
                    break;
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} differences:\n{}", wrong.len(), wrong.join("\n"));
}

fn every_command(situation: Situation) {
    let mut commands = vec!["openmp status -json"];
    commands.extend(ON_NESTED.iter().map(|(command, _)| *command));
    commands.extend(NEEDS_PROCESS.iter().filter(|_| !situation.is_live()));
    if situation.is_live() {
        commands.extend([
            NEEDS_PROCESS[4],
            "openmp breakpoint set parallel-begin",
            "openmp breakpoint list",
            "openmp delete",
        ]);
        commands.push("detach");
    }
    each(situation, "nested", Opt::O0, &commands, |release, truth, printed| {
        let mut wrong = Vec::new();
        match json(&printed[0]) {
            Ok(report) => {
                let found = compare(truth, &report, release.runtime, release.toolchain("nested"));
                wrong.extend([found.differences, found.unknown, found.lacking].concat());
                if found.compared < 100 {
                    wrong.push(format!("only {} values were compared", found.compared));
                }
            }
            Err(why) => wrong.push(why),
        }
        for ((command, wanted), text) in ON_NESTED.iter().zip(&printed[1..]) {
            let missing = wanted.iter().filter(|part| !words(text).contains(&words(part)));
            wrong.extend(missing.map(|part| format!("{command}: {part} is wanted: {text}")));
            if wanted.is_empty() && !text.is_empty() && !["openmp bt on continued", HANDLED].contains(command) {
                wrong.push(format!("{command}: {text}"));
            }
        }
        let at = ON_NESTED.iter().position(|(command, _)| *command == "openmp taskframes").expect("the command");
        let innermost = printed[1 + at].lines().nth(1).unwrap_or_default();
        if innermost.is_empty() || innermost.starts_with("function not known") {
            wrong.push(format!("the function of the innermost task is wanted: {}", printed[1 + at]));
        }
        let rest = &printed[1 + ON_NESTED.len()..];
        if situation.is_live() {
            for (text, part) in rest.iter().zip(["SUSPECT", "Stop 1  parallel-begin", "0 hits", "", "detached"]) {
                if !words(text).contains(&words(part)) {
                    wrong.push(format!("{part} is wanted: {text}"));
                }
            }
        } else {
            for (command, text) in NEEDS_PROCESS.iter().zip(rest) {
                if text != "error: This is a core file, in which nothing runs: that takes a process." {
                    wrong.push(format!("{command}: {text}"));
                }
            }
        }
        // The last backtrace is LLDB's own, with the runtime's frames.
        let backtraces: Vec<&String> =
            ON_NESTED.iter().zip(&printed[1..]).filter(|((c, _), _)| *c == "bt").map(|(_, text)| text).collect();
        let frames =
            |text: &str| text.lines().filter(|line| line.contains("frame #") && !line.contains("[synthetic]")).count();
        if backtraces[2].contains("#pragma omp") || frames(backtraces[1]) >= frames(backtraces[2]) {
            wrong.push(format!("backtraces: {backtraces:#?}"));
        }
        wrong
    });
}

/// Frames in which a stack continues are frames of LLDB: it has their lines, and selects them.
fn frames_of_another_thread(situation: Situation) {
    const FRAMES: &str =
        "[f for f in lldb.debugger.GetSelectedTarget().process.GetSelectedThread() if f.IsSynthetic()]";
    let last = format!("script f = {FRAMES}[-1]; f.thread.SetSelectedFrame(f.idx)");
    let commands = [
        "openmp bt on continued",
        HANDLED,
        "openmp thread 1.1",
        "bt",
        &last,
        "frame info",
        "openmp bt",
        "frame select 0",
        "openmp bt off",
        "bt",
    ];
    let lldbs: Vec<LldbRelease> =
        lldbs().into_iter().filter(|lldb| lldb.version >= FIRST_LLDB_WITH_PROVIDERS).collect();
    if lldbs.is_empty() {
        Skip::because(format!("frames of another thread: no LLDB {FIRST_LLDB_WITH_PROVIDERS} is here")).show();
    }
    for release in releases().expect("directories for runtimes") {
        let executable = match release.build("nested", Opt::O0, &[]).expect("the program builds") {
            Ok(executable) => executable,
            Err(skip) => {
                skip.show();
                continue;
            }
        };
        for lldb in &lldbs {
            let printed = match situation.run(lldb, &release.launch(&executable), &commands).expect("LLDB runs") {
                Ok((_, printed)) => printed,
                Err(skip) => {
                    skip.show();
                    continue;
                }
            };
            let what = format!("{situation:?}, {}, LLDB {}: {printed:#?}", release.name, lldb.version);
            let of_others: Vec<&str> = printed[3].lines().filter(|line| line.contains("[synthetic]")).collect();
            assert!(of_others.iter().all(|line| line.contains("[continues in Thread ")), "{what}");
            assert!(of_others.last().is_some_and(|line| line.contains("`main at nested.c:")), "{what}");
            assert!(printed[3].contains("[#pragma omp parallel in outer_body]"), "{what}");
            assert!(printed[5].contains("main at nested.c:"), "{what}");
            assert!(printed[6].contains("#pragma omp parallel in main"), "{what}");
            assert!(printed[9].contains("inner_body") && !printed[9].contains("[synthetic]"), "{what}");
        }
    }
}

/// Programs that hang: the verdict, in words too, and what a thread waits for.
fn verdicts(situation: Situation) {
    for program in ["hangs/lock_cycle", "hangs/lock_cycle_cpp"] {
        let mut commands = vec!["openmp status -json", "openmp waits", "openmp why 0.0", "openmp why -json 0.1"];
        if situation.is_live() {
            commands.push("openmp catch deadlock 0.05");
        }
        each(situation, program, Opt::O2, &commands, |release, truth, printed| {
            let recorded = truth.owners_recorded(release.runtime);
            let mut wrong = Vec::new();
            match json(&printed[0]) {
                Ok(report) => {
                    let found = compare_verdicts(truth, &report, recorded);
                    wrong.extend([found.differences, found.unknown, found.lacking].concat());
                }
                Err(why) => wrong.push(why),
            }
            let mut texts = vec![(&printed[1], "DEADLOCK"), (&printed[2], "DEADLOCK"), (&printed[2], "waits for")];
            texts.extend(printed.get(4).map(|text| (text, "DEADLOCK")));
            wrong.extend(
                texts.iter().filter(|(text, part)| !text.contains(part)).map(|(text, part)| format!("{part}: {text}")),
            );
            if let Err(why) = json(&printed[3]) {
                wrong.push(why);
            }
            wrong
        });
    }
}

fn stacks(situation: Situation) {
    let commands = ["openmp stacks -json", "openmp thread 0.1", "bt", "openmp bt"];
    each(situation, "stacks_cpp", Opt::O2, &commands, |release, truth, printed| {
        let mut wrong = Vec::new();
        match json(&printed[0]) {
            Ok(report) => {
                let found = compare_stacks(truth, &report, release.runtime, Opt::O2);
                wrong.extend([found.differences, found.unknown, found.lacking].concat());
                if found.compared == 0 {
                    wrong.push("nothing was compared".to_owned());
                }
            }
            Err(why) => wrong.push(why),
        }
        let backtraces = printed[2..].iter().filter(|text| !text.contains("#pragma omp"));
        wrong.extend(backtraces.map(|text| format!("a backtrace: {text}")));
        wrong
    });
}

/// One test for each situation, so that they can run beside each other.
macro_rules! situations {
    ($($name:ident: $situation:expr,)*) => {
        $(mod $name {
            use super::*;

            #[test]
            fn every_command() {
                super::every_command($situation);
            }

            #[test]
            fn verdicts() {
                super::verdicts($situation);
            }

            #[test]
            fn stacks() {
                super::stacks($situation);
            }

            #[test]
            fn frames_of_another_thread() {
                super::frames_of_another_thread($situation);
            }
        })*
    };
}

situations! {
    attach: Attach,
    gcore: Gcore,
    kernel_core: KernelCore,
    remote: Remote,
}

/// Commands write no memory and no register, and run no code: LLDB's own expressions allocate memory in the process.
#[test]
fn nothing_is_written_to_the_process() {
    for release in releases().expect("directories for runtimes") {
        let executable = match release.build("nested", Opt::O0, &[]).expect("the program builds") {
            Ok(executable) => executable,
            Err(skip) => {
                skip.show();
                continue;
            }
        };
        let running = started(&release.launch(&executable)).expect("the program starts");
        for lldb in lldbs() {
            let directory = tempfile::tempdir().expect("a directory");
            let log = directory.path().join("packets");
            let mut commands = vec![format!("log enable -f {} gdb-remote packets", log.display())];
            commands.extend(ON_NESTED.iter().map(|(command, _)| (*command).to_owned()));
            Lldb::attached(&lldb, &library(), &running).run(&commands).expect("LLDB runs");
            let packets = std::fs::read(&log).expect("packets");
            let packets = String::from_utf8_lossy(&packets);
            let sent: Vec<&str> =
                packets.lines().filter_map(|line| Some(line.split_once("send packet: $")?.1)).collect();
            assert!(sent.iter().any(|packet| packet.starts_with(['m', 'x'])), "memory is read: {packets}");
            let writes = ["M", "X", "P", "G", "_M", "_m", "c", "s", "vCont;", "C", "S", "QSaveRegister"];
            let written: Vec<_> = sent.iter().filter(|p| writes.iter().any(|begin| p.starts_with(begin))).collect();
            assert!(written.is_empty(), "{}, LLDB {}: {written:?}", release.name, lldb.version);
        }
    }
}

/// Two processes with different runtimes in one LLDB: each command is about the selected target.
#[test]
fn several_targets() {
    let all = native_combinations();
    let [first, .., last] = all.as_slice() else { return };
    let running = [first, last].map(|(toolchain, runtime)| {
        let program = build("nested", *toolchain, Opt::O0, &[]).expect("the program builds");
        Running::start(&program, *runtime, Env::Settled).expect("the program starts")
    });
    let commands = ["openmp status -json", "openmp threads", "openmp thread 1.1", "openmp print $_omp_level()", "bt"];
    let mut script = Vec::new();
    for running in &running {
        script.push("target create".to_owned() + " \"" + &running.executable.path.display().to_string() + "\"");
        script.push(format!("process attach --pid {}", running.pid));
    }
    let before = script.len() + 1;
    for target in [1, 0, 1] {
        script.push(format!("target select {target}"));
        script.extend(commands.map(str::to_owned));
    }
    script.push("target delete 1".to_owned());
    script.push("openmp threads".to_owned());
    for lldb in lldbs() {
        let printed = Lldb::new(&lldb, &library()).run(&script).expect("LLDB runs");
        for (n, at) in [1_usize, 0, 1].into_iter().enumerate() {
            let part = &printed[before + n * (commands.len() + 1)..][..commands.len()];
            let what = format!("LLDB {}, target {at}: {part:#?}", lldb.version);
            let running = &running[at];
            let report = json(&part[0]).expect("JSON");
            let found = compare(&running.truth, &report, running.runtime, running.executable.toolchain);
            assert!(found.compared > 100, "{what}");
            assert_eq!((found.differences, found.unknown, found.lacking), Default::default(), "{what}");
            assert!(part[1].contains(&format!("*{}.", at + 1)), "{what}");
            assert!(part[2].contains(&format!("Thread {}.", at + 1)), "{what}");
            assert!(part[2].contains("thread 1 of 2 in team 1") && part[3] == "2", "{what}");
            assert!(part[4].contains("[#pragma omp parallel in outer_body]"), "{what}");
        }
        let rest = printed.last().expect("the last command");
        assert!(rest.contains("0/2") && !rest.contains(" 1.1 "), "LLDB {}: {rest}", lldb.version);
    }
}
