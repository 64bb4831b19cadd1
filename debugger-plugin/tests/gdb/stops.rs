//! Stops at which regions, tasks and threads begin and end, in programs started by gdb: on runtimes as they are shipped, without
//! `OMP_DEBUG`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use debugger_plugin::Gdb;
use serde_json::Value;
use test_programs::{Env, Executable, Launch, Opt, Runtime, Toolchain, build, combinations, native_combinations};

use crate::common::{has_gdb, library};

/// gdb with a program that is to run on a runtime.
fn launching(program: &Executable, runtime: Runtime) -> Gdb {
    let launch = Launch::new(program, runtime, Env::Settled);
    let mut gdb = Gdb::program(&library(), &program.path);
    for (name, value) in launch.environment().expect("the runtime is here") {
        gdb = gdb.variable(name, value);
    }
    gdb
}

/// What the program says at its end: how many regions, serialized regions, deferred and undeferred tasks there were.
fn told(file: &Path) -> BTreeMap<String, usize> {
    let text = std::fs::read_to_string(file).expect("the program's output");
    let line = text.lines().find(|line| line.starts_with("regions=")).expect("the program's last line");
    let pairs = line.split_whitespace().filter_map(|word| word.split_once('='));
    pairs.map(|(name, value)| (name.to_owned(), value.parse().expect("a number"))).collect()
}

/// Runs `begin_end` with a stop, and gives what was so at each hit, and what the program says.
fn hits(toolchain: Toolchain, runtime: Runtime, stop: &str) -> (Vec<Value>, BTreeMap<String, usize>) {
    let program = build("begin_end", toolchain, Opt::O2, &[]).expect("the program builds");
    let directory = tempfile::tempdir().expect("a directory");
    let (input, output) = (directory.path().join("in"), directory.path().join("out"));
    std::fs::write(&input, "g").expect("a file");
    let driver = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/gdb/drive.py");
    let printed = launching(&program, runtime)
        .first("break main")
        .first(format!("openmp break {stop}"))
        .first(format!("run < {} > {}", input.display(), output.display()))
        .first("delete")
        .run(&[format!("source {}", driver.display())])
        .expect("gdb runs");
    let records = printed[0].lines().filter_map(|line| line.strip_prefix("stop "));
    let records = records.map(|line| serde_json::from_str(line).expect("JSON")).collect();
    (records, told(&output))
}

fn each(check: impl Fn(Toolchain, Runtime)) {
    if !has_gdb() {
        return;
    }
    for (toolchain, runtime) in combinations() {
        check(toolchain, runtime);
    }
}

#[test]
fn calls_are_found_in_code_of_both_machines() {
    if !has_gdb() {
        return;
    }
    let cases = [
        (
            r#"["push   %rbp", "call   0x2000 <body>", "callq  *%rax", "call   *0x3000(%rip)", "ret"]"#,
            "[8192, None, None]",
        ),
        (r#"["stp\tx29, x30, [sp, #-16]!", "bl\t0x2000 <body>", "blr\tx1", "b\t0x3000", "ret"]"#, "[8192, None]"),
    ];
    let commands =
        cases.map(|(code, _)| format!("python import openmp_gdb.debugger as d; print(d.targets_of({code}))"));
    let printed = Gdb::new(&library()).run(&commands).expect("gdb runs");
    for ((code, expected), text) in cases.iter().zip(&printed) {
        assert_eq!(text, expected, "{code}");
    }
}

#[test]
fn each_region_begins_once_with_its_size_and_its_function() {
    each(|toolchain, runtime| {
        let (hits, told) = hits(toolchain, runtime, "parallel-begin");
        let what = format!("{toolchain:?} on {runtime:?}");
        assert_eq!(hits.len(), told["regions"] + told["serialized"], "{what}");
        let mut functions: BTreeMap<i64, BTreeSet<String>> = BTreeMap::new();
        for hit in &hits {
            let meeting: Vec<i64> = (0..3).filter_map(|n| hit["meeting"][n].as_i64()).collect();
            assert_eq!(hit["num_threads"].as_i64(), Some(meeting[0]), "{what}: {hit}");
            // The current task is the one that met the construct. In libomp serialized regions that are nested in each other share one.
            if !(runtime.is_kmp() && [5, 6].contains(&meeting[2])) {
                assert_eq!(hit["level"].as_i64(), Some(meeting[1] - 1), "{what}: {hit}");
            }
            let text = hit["described"].as_str().expect("text");
            assert!(text.contains("A parallel region begins"), "{what}: {text}");
            assert!(text.contains(&format!("threads: {}", meeting[0])), "{what}: {text}");
            let line = |word: &str| text.lines().find_map(|line| line.trim().strip_prefix(word)).map(str::to_owned);
            if let Some(function) = line("function: ").filter(|function| function != "not known") {
                functions.entry(meeting[2]).or_default().insert(function);
            }
            if meeting[1] == 1 {
                assert_eq!(line("met by: ").as_deref(), Some("the initial task"), "{what}: {text}");
            }
        }
        // The function of a serialized region is not known to libomp when it begins.
        for construct in (1..=8).filter(|construct| !runtime.is_kmp() || [1, 2, 4, 8].contains(construct)) {
            assert_eq!(functions.get(&construct).map(BTreeSet::len), Some(1), "{what}: {functions:?}");
        }
        // Of a region that does nothing but call a function, gcc gives the runtime that function.
        let all: BTreeSet<&String> =
            [1, 2, 4, 8].iter().filter_map(|construct| functions.get(construct)).flatten().collect();
        assert_eq!(all.len(), 4, "{what}: {functions:?}");
    });
}

#[test]
fn each_region_ends_once() {
    each(|toolchain, runtime| {
        let (hits, told) = hits(toolchain, runtime, "parallel-end");
        assert_eq!(hits.len(), told["regions"] + told["serialized"], "{toolchain:?} on {runtime:?}");
    });
}

#[test]
fn each_task_begins_and_ends_once() {
    each(|toolchain, runtime| {
        for event in ["task-begin", "task-end"] {
            let (hits, told) = hits(toolchain, runtime, event);
            let what = format!("{event}, {toolchain:?} on {runtime:?}");
            assert_eq!(hits.len(), told["deferred"] + told["undeferred"], "{what}");
            assert!(hits.iter().all(|hit| hit["task"].as_i64().is_some_and(|task| task > 0)), "{what}: {hits:?}");
        }
    });
}

#[test]
fn threads_of_the_runtime_begin() {
    each(|toolchain, runtime| {
        let (hits, _) = hits(toolchain, runtime, "thread-begin");
        let threads: BTreeSet<i64> = hits.iter().filter_map(|hit| hit["lwp"].as_i64()).collect();
        assert_eq!(threads.len(), hits.len(), "{toolchain:?} on {runtime:?}: each begins once");
        assert!(!hits.is_empty(), "{toolchain:?} on {runtime:?}");
    });
}

/// There are no barriers in the program but the ends of its regions, to which all their threads come. In libgomp regions of one thread
/// have one as well.
#[test]
fn all_members_come_to_the_end_of_a_region() {
    each(|toolchain, runtime| {
        let (regions, told) = hits(toolchain, runtime, "parallel-begin");
        let members: i64 = regions.iter().filter_map(|hit| hit["meeting"][0].as_i64()).sum();
        let alone = i64::try_from(told["serialized"]).expect("a number");
        let expected = if runtime.is_kmp() { members - alone } else { members };
        let (hits, _) = hits(toolchain, runtime, "barrier-begin");
        assert_eq!(i64::try_from(hits.len()), Ok(expected), "{toolchain:?} on {runtime:?}");
    });
}

#[test]
fn conditions_are_of_the_thread_that_gets_there() {
    each(|toolchain, runtime| {
        let what = format!("{toolchain:?} on {runtime:?}");
        let (all, _) = hits(toolchain, runtime, "parallel-begin");
        let wanted = all.iter().filter(|hit| hit["meeting"][1] == 2 && hit["meeting"][0] == 3).count();
        let (some, _) = hits(toolchain, runtime, "parallel-begin if $_omp_level() == 1 && $_omp_num_threads() == 3");
        assert!(wanted > 0, "{what}");
        assert_eq!(some.len(), wanted, "{what}");
    });
}

#[test]
fn step_goes_into_the_next_region_and_into_tasks() {
    each(|toolchain, runtime| {
        let program = build("begin_end", toolchain, Opt::O0, &[]).expect("the program builds");
        let directory = tempfile::tempdir().expect("a directory");
        let input = directory.path().join("in");
        std::fs::write(&input, "g").expect("a file");
        let run = format!("run < {} > /dev/null", input.display());
        let where_am_i = "python print(gdb.selected_frame().find_sal().line, gdb.selected_thread().num)";
        let printed = launching(&program, runtime)
            .first("break size2_level1")
            .first("break size2_tasks_level1")
            .run(&[
                &run,
                "openmp step",
                where_am_i,
                "openmp bt",
                "continue",
                "delete",
                "openmp step",
                "openmp step",
                where_am_i,
                "openmp bt",
                "kill",
            ])
            .expect("gdb runs");
        let what = format!("{toolchain:?} on {runtime:?}: {printed:#?}");
        let line_of = |text: &str| program.line_of(text).expect("the line");
        // In the body, in the thread that met the construct.
        let body = line_of("static void size2_level1") + 2..line_of("static void size1_level2");
        let (line, thread) = printed[2].split_once(' ').expect("a line and a thread");
        assert!(body.contains(&line.parse().expect("a line")), "{what}");
        assert_eq!(thread, "1", "{what}");
        assert!(printed[3].contains("#pragma omp parallel in size2_level1"), "{what}");
        assert!(printed[9].contains("#pragma omp task in task_"), "{what}");
        assert!(printed[8].ends_with(" 1"), "{what}");
    });
}

/// Stops are temporary, disabled, enabled and given another condition, and a file keeps them.
#[test]
fn stops_change_and_are_saved_and_loaded() {
    if !has_gdb() {
        return;
    }
    for (toolchain, runtime) in native_combinations() {
        let program = build("begin_end", toolchain, Opt::O0, &[]).expect("the program builds");
        let directory = tempfile::tempdir().expect("a directory");
        let (input, file) = (directory.path().join("in"), directory.path().join("stops"));
        std::fs::write(&input, "g").expect("a file");
        let printed = launching(&program, runtime)
            .run(&[
                "openmp break -temporary parallel-begin if $_omp_level() == 1",
                "openmp break -disabled task-begin",
                "openmp break parallel-end if $_omp_team() == $team",
                &format!("openmp save {}", file.display()),
                &format!("run < {} > /dev/null", input.display()),
                "openmp break",
                "set $team = $_omp_team()",
                "continue",
                "openmp disable 3",
                "openmp enable 2",
                "continue",
                "openmp break",
                "openmp condition 2 $_omp_level() == 99",
                "continue",
                "openmp delete",
                &format!("openmp load {}", file.display()),
                &format!("source {}", file.display()),
                "openmp save /nowhere/at/all",
            ])
            .expect("gdb runs");
        let what = format!("{toolchain:?} on {runtime:?}: {printed:#?}");
        assert!(printed[0].contains("1  parallel-begin if $_omp_level() == 1  (temporary; "), "{what}");
        assert!(printed[1].contains("2  task-begin  (disabled; "), "{what}");
        assert!(printed[3].contains("3 stops saved in "), "{what}");
        assert!(printed[4].contains("A parallel region begins"), "{what}");
        assert!(!printed[5].contains("parallel-begin") && printed[5].lines().count() == 2, "{what}");
        assert!(printed[7].contains("A parallel region ends"), "{what}");
        assert!(printed[10].contains("A task begins"), "{what}");
        assert!(printed[11].contains("1 hit)") && printed[11].contains("3  parallel-end"), "{what}");
        assert!(printed[12].starts_with("Stop 2  task-begin if $_omp_level() == 99"), "{what}");
        assert!(printed[13].contains("exited normally"), "{what}");
        for (text, first) in [(&printed[15], 4), (&printed[16], 7)] {
            let expected =
                ["parallel-begin if $_omp_level() == 1", "task-begin", "parallel-end if $_omp_team() == $team"];
            let lines: Vec<&str> = text.lines().filter(|line| line.starts_with("Stop ")).collect();
            assert_eq!(lines.len(), 3, "{what}");
            for (line, (number, stop)) in lines.iter().zip((first..).zip(expected)) {
                assert!(line.starts_with(&format!("Stop {number}  {stop}  (")), "{what}");
            }
            assert!(lines[0].contains("(temporary; ") && lines[1].contains("(disabled; "), "{what}");
        }
        assert!(printed[17].contains("were not saved in /nowhere/at/all: No such file"), "{what}");
    }
}

/// Stops at locks and constructs have as many hits as the program counts.
#[test]
fn threads_come_to_locks_and_constructs() {
    each(|toolchain, runtime| {
        let program = build("constructs", toolchain, Opt::O0, &[]).expect("the program builds");
        let directory = tempfile::tempdir().expect("a directory");
        let output = directory.path().join("out");
        let events = ["lock-acquire", "critical-acquire", "taskwait-begin", "worksharing-begin", "single-begin"];
        let breaks = events.map(|event| format!("openmp break {event}"));
        let run = format!("run > {}", output.display());
        let to_its_end = "python while gdb.selected_inferior().pid: gdb.execute('continue')";
        let mut commands: Vec<&str> = breaks.iter().map(String::as_str).collect();
        commands.extend([&run, to_its_end, "openmp break"]);
        let printed = launching(&program, runtime).run(&commands).expect("gdb runs");
        let what = format!("{toolchain:?} on {runtime:?}: {printed:#?}");
        let told = std::fs::read_to_string(&output).expect("the program's output");
        let hits: Vec<&str> = printed[7].lines().collect();
        assert_eq!(hits.len(), events.len(), "{what}");
        for (event, line) in events.iter().zip(hits) {
            let pair = told.split_whitespace().find_map(|word| word.strip_prefix(event)?.strip_prefix('='));
            assert!(
                line.contains(event) && line.contains(&format!(" {} hits)", pair.expect("a count"))),
                "{told}, {what}"
            );
        }
        assert!(printed[6].contains("The thread comes to a lock (Thread "), "{what}");
    });
}

/// `openmp finish` ends where the thread's region ends, and not where another one does.
#[test]
fn finish_ends_at_the_end_of_the_region() {
    if !has_gdb() {
        return;
    }
    for (toolchain, runtime) in native_combinations() {
        let program = build("begin_end", toolchain, Opt::O0, &[]).expect("the program builds");
        let directory = tempfile::tempdir().expect("a directory");
        let input = directory.path().join("in");
        std::fs::write(&input, "g").expect("a file");
        let printed = launching(&program, runtime)
            .first("openmp break -temporary parallel-begin if $_omp_level() == 0")
            .first(format!("run < {} > /dev/null", input.display()))
            .run(&[
                "set $outer = $_omp_team()",
                "openmp step",
                "openmp finish",
                "print $_omp_team() == $outer",
                "print $_omp_level()",
                "openmp finish",
                "kill",
            ])
            .expect("gdb runs");
        let what = format!("{toolchain:?} on {runtime:?}: {printed:#?}");
        // Inner regions end before.
        assert!(printed[2].contains("size2_level1 ()"), "{what}");
        assert!(printed[3].ends_with("= 1") && printed[4].ends_with("= 0"), "{what}");
        assert!(printed[5].contains("The region of this thread ends here."), "{what}");
    }
}

/// gdb cannot hold the threads of another team, says so, and stays where it is.
#[test]
fn finish_that_would_hold_other_teams_is_refused() {
    if !has_gdb() {
        return;
    }
    let program = build("two_teams", Toolchain::Gcc, Opt::O0, &[]).expect("the program builds");
    let printed = launching(&program, Runtime::Libgomp)
        .first("break all_arrived")
        .first("run")
        .run(&["openmp finish -hold", "openmp break", "frame", "openmp finish", "delete", "continue"])
        .expect("gdb runs");
    assert!(printed[0].contains("gdb cannot hold these threads"), "{printed:#?}");
    assert!(printed[1].contains("There are no stops") && printed[2].contains("all_arrived"), "{printed:#?}");
    assert!(printed[3].contains("two_teams.c:") && printed[5].contains("exited normally"), "{printed:#?}");
}

/// The last thread of a team comes to a line. A step in one thread alone leaves the others where they are.
#[test]
fn a_team_comes_to_a_line_and_one_thread_steps_alone() {
    if !has_gdb() {
        return;
    }
    for (toolchain, runtime) in native_combinations() {
        let program = build("laps", toolchain, Opt::O0, &[]).expect("the program builds");
        let line = program.line_of("each lap comes here").expect("the line");
        let printed = launching(&program, runtime)
            .first("break all_arrived")
            .first("run")
            .run(&[
                &format!("openmp until -hold laps.c:{line}"),
                "print laps",
                "tbreak lap if me == 1",
                &format!("openmp until laps.c:{line}"),
                "set scheduler-locking on",
                &format!("openmp until laps.c:{line}"),
                "set scheduler-locking replay",
                &format!("openmp until laps.c:{line}"),
                "print laps",
                r#"eval "openmp apply -hold 0.%d next", $_omp_thread_num()"#,
                "print laps",
                "show scheduler-locking",
                "openmp until laps.c:999999",
                "openmp apply -hold 0 kill",
                "run",
                "show scheduler-locking",
                "kill",
            ])
            .expect("gdb runs");
        let what = format!("{toolchain:?} on {runtime:?}: {printed:#?}");
        assert!(printed[0].contains("gdb cannot hold these threads") && printed[1].ends_with("{0, 0, 0, 0}"), "{what}");
        // A breakpoint on the way ends it.
        assert!(printed[3].contains("lap (me=1)") && !printed[3].contains("All 4 threads"), "{what}");
        assert!(printed[5].contains("Only the selected thread would continue"), "{what}");
        let printed = &printed[5..];
        assert!(printed[2].contains("All 4 threads of team 0 have come to laps.c:"), "{what}");
        assert!(printed[2].contains(&format!("laps.c:{line}\n{line}\t")), "{what}");
        let laps = |text: &str| {
            let numbers = text.split_once('{').expect("an array").1.trim_end_matches('}').split(", ");
            numbers.map(|number| number.parse().expect("a number")).collect::<Vec<u64>>()
        };
        // The last one has come for the first time, or for the second if it had before.
        assert!(laps(&printed[3]).into_iter().all(|laps| laps > 0), "{what}");
        assert_eq!(laps(&printed[5]), laps(&printed[3]), "{what}");
        assert!(printed[4].contains(&format!("\n{}\t", line + 1)), "{what}");
        // gdb forgets that with the process.
        assert!(printed[6].contains("\"replay\"") && printed[10].contains("\"replay\""), "{what}");
        assert!(printed[7].contains("There is no code of line 999999 of laps.c"), "{what}");
    }
}

/// Commands of a stop are executed at each hit, and a process continues where they say so.
#[test]
fn commands_are_executed_where_a_stop_is_met() {
    if !has_gdb() {
        return;
    }
    for (toolchain, runtime) in native_combinations() {
        let (all, _) = hits(toolchain, runtime, "parallel-begin");
        let program = build("begin_end", toolchain, Opt::O0, &[]).expect("the program builds");
        let directory = tempfile::tempdir().expect("a directory");
        let input = directory.path().join("in");
        std::fs::write(&input, "g").expect("a file");
        let printed = launching(&program, runtime)
            .run(&[
                "openmp break parallel-begin",
                "openmp commands 1 printf \"<%d>\\n\", $_omp_level()",
                "openmp commands 1 openmp print 40 + 3",
                "openmp commands 1 continue",
                "openmp break -temporary parallel-end",
                "openmp commands last frame",
                "openmp commands last print 40 + 2",
                &format!("run < {} > /dev/null", input.display()),
                "openmp break",
                "continue",
                "openmp break",
                "openmp delete",
                "openmp break parallel-begin",
                "openmp commands last openmp delete",
                "openmp commands last continue",
                &format!("run < {} > /dev/null", input.display()),
                "openmp break",
            ])
            .expect("gdb runs");
        let what = format!("{toolchain:?} on {runtime:?}: {printed:#?}");
        // A stop may delete itself.
        assert!(printed[15].contains("exited normally") && printed[16].contains("There are no stops"), "{what}");
        let values = printed.iter().map(|text| text.lines().filter(|line| *line == "43").count());
        assert_eq!(values.sum::<usize>(), all.len(), "{what}");
        let printed = &printed[1..];
        assert!(printed[6].contains("A parallel region ends") && printed[6].contains("= 42"), "{what}");
        assert!(printed[7].contains("     printf ") && printed[7].contains("     continue"), "{what}");
        assert!(printed[8].contains("exited normally"), "{what}");
        let levels = printed.iter().map(|text| text.lines().filter(|line| line.starts_with('<')).count());
        assert_eq!(levels.sum::<usize>(), all.len(), "{what}");
        assert!(printed[9].contains(&format!("{} hits)", all.len())), "{what}");
    }
}

/// The end of the region ends a command that waits for threads which do not come.
#[test]
fn until_a_line_ends_with_the_region() {
    if !has_gdb() {
        return;
    }
    for (toolchain, runtime) in native_combinations() {
        let program = build("begin_end", toolchain, Opt::O0, &[]).expect("the program builds");
        let directory = tempfile::tempdir().expect("a directory");
        let input = directory.path().join("in");
        std::fs::write(&input, "g").expect("a file");
        // Only thread 0 executes it.
        let line = program.line_of("static void size2_level1").expect("the line") + 5;
        let printed = launching(&program, runtime)
            .first("openmp break -temporary parallel-begin")
            .first(format!("run < {} > /dev/null", input.display()))
            .run(&["openmp step", &format!("openmp until {line}"), "openmp break", "kill"])
            .expect("gdb runs");
        let what = format!("{toolchain:?} on {runtime:?}: {printed:#?}");
        assert!(
            printed[1].contains("The region ends.")
                && printed[1].contains("thread 0 has come to ")
                && printed[1].contains("Missing: thread 1."),
            "{what}"
        );
        assert!(printed[2].contains("There are no stops"), "{what}");
    }
}

/// Another inferior has the same line, at addresses of its own.
#[test]
fn until_a_line_leaves_other_inferiors_alone() {
    if !has_gdb() {
        return;
    }
    let program = build("laps", Toolchain::Gcc, Opt::O0, &[]).expect("the program builds");
    let line = program.line_of("each lap comes here").expect("the line");
    let printed = launching(&program, Runtime::Libgomp)
        .first("break all_arrived")
        .first("run")
        .first(format!("add-inferior -exec {}", program.path.display()))
        .run(&[&format!("openmp until laps.c:{line}"), "openmp until laps.c:7", "kill"])
        .expect("gdb runs");
    assert!(printed[0].contains("All 4 threads of team 0 have come to laps.c:"), "{printed:#?}");
    assert!(printed[1].contains("There is no code of line 7 of laps.c"), "{printed:#?}");
}
