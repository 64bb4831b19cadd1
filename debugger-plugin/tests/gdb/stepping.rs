//! Commands that let the process run: where they end, and what they print when something else stops the process.

use debugger_plugin::{Gdb, gdbs, has_server};
use test_programs::{Env, Executable, Launch, Opt, Running, Runtime, Toolchain, build, native_combinations};

use crate::common::{has_gdb, library};

/// gdb with a program that is to run on a runtime, and how it is started: with a byte to read, and without its output.
fn launching(program: &Executable, runtime: Runtime, input: &tempfile::TempDir) -> (Gdb, String) {
    let file = input.path().join("in");
    std::fs::write(&file, "g").expect("a file");
    let mut gdb = Gdb::program(&library(), &program.path);
    for (name, value) in Launch::new(program, runtime, Env::Settled).environment().expect("the runtime is here") {
        gdb = gdb.variable(name, value);
    }
    (gdb, format!("run < {} > /dev/null", file.display()))
}

/// `openmp step` and `openmp until` that a breakpoint, a signal or the end of the process stops say so, as gdb does.
#[test]
fn what_else_stops_a_step_is_printed() {
    if !has_gdb() {
        return;
    }
    let program = build("begin_end", Toolchain::Gcc, Opt::O0, &[]).expect("the program builds");
    let directory = tempfile::tempdir().expect("a directory");
    for release in gdbs() {
        let (gdb, run) = launching(&program, Runtime::Libgomp, &directory);
        let signal = "python import os; os.kill(gdb.selected_inferior().pid, 10)";
        let printed = gdb
            .by(&release)
            .first("tbreak main")
            .first(run)
            .first("handle SIGUSR1 stop print nopass")
            .first("break size2_level1")
            .run(&[
                "openmp step",
                "openmp until barrier",
                signal,
                "openmp step",
                // Any thread may receive it.
                "thread 1",
                "openmp step",
                "tbreak _exit",
                "delete 2",
                "continue",
                "openmp step",
            ])
            .expect("gdb runs");
        let what = format!("gdb {}: {printed:#?}", release.version);
        assert!(printed[0].contains("Breakpoint 2, size2_level1"), "{what}");
        // At a place of their own, they print the program's frame alone.
        assert!(printed[1].contains("size3_level2 ()") && !printed[1].contains("Breakpoint"), "{what}");
        assert!(printed[3].contains("received signal SIGUSR1"), "{what}");
        assert!(printed[5].contains("_omp_fn") && !printed[5].contains("Breakpoint"), "{what}");
        assert!(printed[8].contains("_exit"), "{what}");
        assert!(printed[9].contains("exited normally"), "{what}");
    }
}

/// At a stop where a region begins, that region is stepped into: one inside it comes next.
#[test]
fn step_at_a_begin_goes_into_that_region() {
    if !has_gdb() {
        return;
    }
    for (toolchain, runtime) in native_combinations() {
        let program = build("begin_end", toolchain, Opt::O0, &[]).expect("the program builds");
        let directory = tempfile::tempdir().expect("a directory");
        let (gdb, run) = launching(&program, runtime, &directory);
        let place = "python print(gdb.selected_thread().num, gdb.selected_frame().find_sal().line)";
        let printed = gdb
            .first("break main")
            .first(run)
            .run(&[
                "openmp break parallel-begin",
                "continue",
                "info frame",
                "openmp delete",
                "openmp step",
                place,
                "kill",
            ])
            .expect("gdb runs");
        let what = format!("{toolchain:?} on {runtime:?}: {printed:#?}");
        assert!(printed[1].contains("A parallel region begins") && printed[1].contains("size2_level1 ()"), "{what}");
        // The program's frame is selected at the stop, and not the innermost one of a stripped runtime.
        assert!(printed[2].contains("in size2_level1"), "{what}");
        let source = include_str!("../../../test-programs/programs/begin_end.c");
        let line_of = |text: &str| source.lines().position(|line| line.contains(text)).expect("the line") + 1;
        let (thread, line) = printed[5].split_once(' ').expect("a thread and a line");
        let body = line_of("static void size2_level1") + 2..line_of("static void size1_level2");
        assert!(thread == "1" && body.contains(&line.parse().expect("a line")), "{what}");
    }
}

/// A step ends behind the code that loads the variables of the region.
#[test]
fn variables_of_the_region_are_there_after_a_step() {
    if !has_gdb() {
        return;
    }
    for (toolchain, runtime) in native_combinations() {
        let program = build("locals", toolchain, Opt::O0, &[]).expect("the program builds");
        let directory = tempfile::tempdir().expect("a directory");
        let (gdb, run) = launching(&program, runtime, &directory);
        let printed = gdb
            .first("break main")
            .first(run)
            .run(&["openmp step", "print first", "print shared_count", "kill"])
            .expect("gdb runs");
        let what = format!("{toolchain:?} on {runtime:?}: {printed:#?}");
        assert!(printed[1].ends_with("= 70"), "{what}");
        assert!(printed[2].ends_with(" 1234"), "{what}");
    }
}

/// In non-stop mode all threads continue: the region begins only with them.
#[test]
fn steps_in_non_stop_mode() {
    if !has_gdb() {
        return;
    }
    for (toolchain, runtime) in native_combinations() {
        let program = build("begin_end", toolchain, Opt::O0, &[]).expect("the program builds");
        let directory = tempfile::tempdir().expect("a directory");
        let (gdb, run) = launching(&program, runtime, &directory);
        let printed = gdb
            .first("set non-stop on")
            .first("break main")
            .first(run)
            .first("delete")
            .run(&[
                "openmp step",
                "openmp step",
                "openmp until barrier",
                "info threads",
                "openmp catch deadlock",
                "kill",
            ])
            .expect("gdb runs");
        let what = format!("{toolchain:?} on {runtime:?}: {printed:#?}");
        assert!(printed[0].contains("#0"), "{what}");
        // Inside the region of two, the same thread begins one of three.
        assert!(printed[1].contains("#0") && !printed[1].contains("running"), "{what}");
        assert!(printed[2].contains("size3_level2"), "{what}");
        assert!(printed[3].contains("* 1 ") && printed[3].contains("(running)"), "{what}");
        assert!(printed[4].contains("threads are running"), "{what}");
    }
}

/// In non-stop mode, a thread that stands is shown by what it has itself, while others run.
#[test]
fn a_thread_that_stands_is_shown_while_others_run() {
    if !has_gdb() {
        return;
    }
    for (toolchain, runtime) in native_combinations() {
        let program = build("laps", toolchain, Opt::O0, &[]).expect("the program builds");
        let directory = tempfile::tempdir().expect("a directory");
        let (gdb, _) = launching(&program, runtime, &directory);
        let printed = gdb
            .first("set non-stop on")
            .first("break all_arrived")
            .first("run")
            .first("break lap thread 1")
            .first("continue")
            .run(&["openmp thread", "openmp taskframes", "openmp threads", "thread 2", "openmp thread", "kill"])
            .expect("gdb runs");
        let what = format!("{toolchain:?} on {runtime:?}: {printed:#?}");
        for part in ["Thread 1 (LWP ", "thread 0 of 4, level 1", "laps.c:", "what it waits for: unknown"] {
            assert!(printed[0].contains(part), "{part}: {what}");
        }
        assert!(printed[1].contains("0x"), "{what}");
        assert!(printed[2].contains(" threads are running"), "{what}");
        assert!(printed[4].contains("Thread 2 is running: stop it first"), "{what}");
    }
}

/// A task that was generated elsewhere, and below it the body of the thread's own region.
#[test]
fn below_a_task_the_body_of_the_threads_own_region_is_shown() {
    if !has_gdb() {
        return;
    }
    for (toolchain, runtime) in native_combinations() {
        let program = build("tasks", toolchain, Opt::O0, &[]).expect("the program builds");
        let running = Running::start(&program, runtime, Env::Settled).expect("the program starts");
        let member = running.truth.with_role("taskgroup member").next().expect("a member").lwp;
        let printed =
            Gdb::attached(&library(), &running).run(&[&format!("openmp thread {member}"), "bt"]).expect("gdb runs");
        let what = format!("{toolchain:?} on {runtime:?}: {}", printed[1]);
        let line = |text: &str| printed[1].lines().position(|line| line.starts_with('#') && line.contains(text));
        let (task, region) = (line("#pragma omp task in group_body"), line("#pragma omp parallel in main"));
        assert!(task.is_some() && region > task, "{what}");
        running.release().expect("it goes on to its end");
    }
}

/// A command that lets the process run to its end leaves no thread for which to apply it again.
#[test]
fn applied_to_threads_that_end() {
    if !has_gdb() {
        return;
    }
    let program = build("begin_end", Toolchain::Gcc, Opt::O0, &[]).expect("the program builds");
    let directory = tempfile::tempdir().expect("a directory");
    let (gdb, run) = launching(&program, Runtime::Libgomp, &directory);
    let printed = gdb
        .first("break size1_level2")
        .first(run)
        .first("delete")
        .run(&["openmp apply 0 continue", "openmp apply 0 finish"])
        .expect("gdb runs");
    assert!(printed[0].contains("exited normally") && printed[0].contains("has ended"), "{printed:#?}");
    assert!(!printed[0].contains("no longer exists"), "{printed:#?}");
    assert!(printed[1].contains("There is no process"), "{printed:#?}");
}

/// A thread that waits in a stripped runtime. In any gdb each frame's name is `??` or that of the program's call, and `set width
/// 0` means no limit.
#[test]
fn names_of_frames_and_width_of_lines() {
    if !has_gdb() {
        return;
    }
    let program = build("hangs/lock_cycle", Toolchain::Gcc, Opt::O0, &[]).expect("the program builds");
    let running = Launch::new(&program, Runtime::Libgomp, Env::Settled).start_hanging().expect("the program hangs");
    for release in gdbs() {
        let commands = [
            "openmp thread 0.0",
            "bt",
            "set width 40",
            "openmp status",
            "set width 0",
            "openmp status",
            "openmp threads",
        ];
        let printed = Gdb::attached(&library(), &running).by(&release).run(&commands).expect("gdb runs");
        let what = format!("gdb {}: {printed:#?}", release.version);
        let first = printed[1].lines().next().unwrap_or_default();
        assert!(first.starts_with("#0") && first.contains(" in omp_set_lock [waits: lock"), "{what}");
        assert!(!printed[1].contains("???") && !printed[1].contains("in  ()"), "{what}");
        let longest = |text: &str| text.lines().map(str::len).max().unwrap_or_default();
        assert!(longest(&printed[3]) <= 60, "{what}");
        assert!(longest(&printed[5]) > 100 && printed[5].lines().count() < printed[3].lines().count(), "{what}");
        assert!(printed[6].lines().all(|line| !line.ends_with(' ')), "{what}");
    }
}

/// Looks at a process print nothing, and end at the limit.
#[test]
fn catch_deadlock_is_quiet_and_ends_at_its_limit() {
    if !has_gdb() {
        return;
    }
    let program = build("not_openmp", Toolchain::Gcc, Opt::O0, &[]).expect("the program builds");
    let running = Launch::new(&program, Runtime::Libgomp, Env::Stock).start().expect("the program starts");
    for release in gdbs() {
        let printed = Gdb::attached(&library(), &running)
            .by(&release)
            .run(&["openmp catch deadlock -limit 0.2 0.05", "openmp catch deadlock -limit never"])
            .expect("gdb runs");
        let what = format!("gdb {}: {printed:#?}", release.version);
        assert_eq!(printed[0], "No deadlock was found in 0.2 seconds. The process is stopped.", "{what}");
        assert!(printed[1].contains("Usage: openmp catch deadlock [-limit LIMIT] [SECONDS]"), "{what}");
    }
    running.release().expect("it goes on to its end");
}

/// gdbserver interrupts process groups: a process that leads none is stopped by a signal, or the command is refused.
#[test]
fn catch_deadlock_of_a_process_that_leads_no_group() {
    if !has_gdb() {
        return;
    }
    if let Err(skip) = has_server() {
        return skip.show();
    }
    let program = build("hangs/lock_cycle", Toolchain::Gcc, Opt::O0, &[]).expect("the program builds");
    let running = Launch::new(&program, Runtime::Libgomp, Env::Settled).start_hanging().expect("the program hangs");
    let elsewhere = "python import openmp_gdb.running as r; r.tasks_here = lambda pid: set()";
    let printed = Gdb::remote(&library(), &running)
        .run(&["openmp catch deadlock 0.05", elsewhere, "openmp catch deadlock 0.05"])
        .expect("gdb runs");
    assert!(printed[0].contains("DEADLOCK") && !printed[0].contains("SIGINT"), "{printed:#?}");
    assert!(printed[2].contains("the process leads none") && printed[2].contains("setsid"), "{printed:#?}");
}
