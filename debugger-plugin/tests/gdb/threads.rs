//! Threads by their place in OpenMP, against what the program says of each.

use debugger_plugin::Gdb;
use test_programs::{
    Env, Launch, Opt, Running, Runtime, Toolchain, build, built_by_cargo, combinations, native_combinations,
};

use crate::common::{has_gdb, library};

/// `$_omp_...()` of each thread of a nested program are what the API told it; `openmp thread` selects it, and gdb names it so.
#[test]
fn functions_selection_and_names() {
    if !has_gdb() {
        return;
    }
    for (toolchain, runtime) in combinations() {
        let program = build("nested", toolchain, Opt::O0, &[]).expect("the program builds");
        let running = Running::start(&program, runtime, Env::Settled).expect("the program starts");
        let what = format!("{toolchain:?} on {runtime:?}");
        let report = Gdb::attached(&library(), &running).json("openmp threads -json").expect("threads");
        // A runtime that nobody uses may be there as well.
        let runtimes = report["runtimes"].as_array().expect("runtimes");
        let threads: Vec<_> = runtimes.iter().filter_map(|runtime| runtime["threads"].as_array()).flatten().collect();
        let mut commands = vec!["set openmp thread-names on".to_owned(), "info threads".to_owned()];
        for truth in &running.truth.threads {
            let thread = threads.iter().find(|thread| thread["lwp"] == truth.lwp).expect("the thread is known");
            let place = format!("{}.{}", thread["team"]["value"], thread["thread_num"]["value"]);
            commands.push(format!("openmp thread {place}"));
            commands.push(
                "python print(gdb.selected_thread().ptid[1], *(int(gdb.parse_and_eval(f'$_omp_{name}()')) for name in ('thread_num', \
                 'num_threads', 'level')), gdb.selected_thread().name)"
                    .to_owned(),
            );
        }
        // Members of the inner teams are all there are, and each can be applied to.
        commands.push("openmp apply 1 print $_omp_level()".to_owned());
        commands.push("openmp apply 1.1 print $_omp_thread_num()".to_owned());
        commands.push("set $ids = $_omp_team(1)".to_owned());
        commands.push("eval \"thread apply %s print $_omp_num_threads()\", $ids".to_owned());
        commands.push("openmp taskframes -json".to_owned());
        let printed = Gdb::attached(&library(), &running).run(&commands).expect("gdb runs");
        for (n, truth) in running.truth.threads.iter().enumerate() {
            let thread = threads.iter().find(|thread| thread["lwp"] == truth.lwp).expect("the thread is known");
            let expected = format!(
                "{} {} {} {} omp {}.{} ({})",
                truth.lwp,
                api(truth).thread_num,
                api(truth).num_threads,
                api(truth).level,
                thread["team"]["value"],
                api(truth).thread_num,
                api(truth).num_threads
            );
            assert_eq!(printed[3 + 2 * n], expected, "{what}");
            assert!(
                printed[1].contains(&format!("\"omp {}.{}", thread["team"]["value"], api(truth).thread_num)),
                "{what}"
            );
        }
        let rest = &printed[2 + 2 * running.truth.threads.len()..];
        assert_eq!(rest[0].matches(" = 2").count(), 2, "{what}: {}", rest[0]);
        assert_eq!(rest[1].matches(" = 1").count(), 1, "{what}: {}", rest[1]);
        assert_eq!(rest[3].matches(" = 2").count(), 2, "{what}: {}", rest[3]);
        let frames: serde_json::Value = serde_json::from_str(&rest[4]).expect("JSON");
        assert!(frames.as_array().is_some_and(|all| !all.is_empty()), "{what}: {frames}");
    }
}

/// Variables in each member, and in the thread that opened the region.
#[test]
fn variables_of_members() {
    if !has_gdb() {
        return;
    }
    for (toolchain, runtime) in combinations() {
        let program = build("locals", toolchain, Opt::O0, &[]).expect("the program builds");
        let running = Running::start(&program, runtime, Env::Settled).expect("the program starts");
        let what = format!("{toolchain:?} on {runtime:?}");
        let printed = Gdb::attached(&library(), &running)
            .run(&[
                "openmp thread 0.1",
                "openmp print no_such_variable",
                "openmp print -all -json number",
                "openmp print first -all -json",
                "openmp print -team 0.1-2 -json shared_count",
                "openmp print number",
            ])
            .expect("gdb runs");
        assert!(printed[1].contains("No symbol \"no_such_variable\""), "{what}: {}", printed[1]);
        let rows = |text: &str| -> Vec<serde_json::Value> {
            serde_json::from_str(text).unwrap_or_else(|why| panic!("{what}: {why}: {text}"))
        };
        for (text, expected) in [(&printed[2], 0), (&printed[3], 70)] {
            let rows = rows(text);
            assert_eq!(rows.len(), 4, "{what}: {rows:?}");
            for row in rows {
                let truth =
                    running.truth.threads.iter().find(|thread| row["lwp"] == thread.lwp).expect("a thread of it");
                assert_eq!(row["value"], (api(truth).thread_num + expected).to_string(), "{what}: {row}");
            }
        }
        let shared = rows(&printed[4]);
        assert_eq!(shared.len(), 2, "{what}: {shared:?}");
        assert!(
            shared
                .iter()
                .all(|row| row["value"] == "1234" || row["value"].as_str().is_some_and(|v| v.ends_with(": 1234"))),
            "{what}: {shared:?}"
        );
        assert_eq!(printed[5], "1", "{what}");
    }
}

/// What the API told a thread.
fn api(thread: &test_programs::Thread) -> &test_programs::Api {
    thread.api.as_ref().expect("threads of these programs ask the API")
}

/// `$_omp_thread_num()` reads what it needs of the selected thread: its cost does not grow with the number of threads.
#[test]
fn functions_do_not_read_all_threads() {
    if !has_gdb() {
        return;
    }
    // With several runtimes in a process, a thread may be in each: then all are read.
    for (toolchain, runtime) in native_combinations() {
        let program = build("nested", toolchain, Opt::O0, &[]).expect("the program builds");
        let running = Running::start(&program, runtime, Env::Settled).expect("the program starts");
        let script = format!("source {}/tests/gdb/asked.py", env!("CARGO_MANIFEST_DIR"));
        let printed = Gdb::attached(&library(), &running)
            .run(&["openmp init", &script, "openmp break parallel-begin", &script])
            .expect("gdb runs");
        let what = format!("{toolchain:?} on {runtime:?}: {printed:#?}");
        for text in [&printed[1], &printed[3]] {
            let answers: Vec<&str> = text.lines().collect();
            assert_eq!(answers.len(), running.truth.threads.len(), "{what}");
            for truth in &running.truth.threads {
                let begin = format!("{} {} ", truth.lwp, api(truth).thread_num);
                let answer = answers.iter().find(|line| line.starts_with(&begin));
                let asked = answer.unwrap_or_else(|| panic!("{begin}: {what}"));
                assert!(!asked.contains("threads") && asked.contains("'read_memory'"), "{what}");
            }
        }
    }
}

/// What the companion recorded of a program that hangs.
#[test]
fn the_history_of_the_companion_is_shown() {
    if !has_gdb() {
        return;
    }
    if let Err(skip) = Runtime::Libomp14.library() {
        return skip.show();
    }
    let companion = built_by_cargo("libompt_companion.so");
    let program = build("hangs/lock_cycle", Toolchain::Clang, Opt::O0, &[]).expect("the program builds");
    let launch = Launch::new(&program, Runtime::Libomp14, Env::Settled);
    let running =
        launch.variable("OMP_TOOL_LIBRARIES", &companion.to_string_lossy()).start_hanging().expect("it hangs");
    let printed = Gdb::attached(&library(), &running)
        .run(&["openmp history", "openmp history -by-time -last 1", "openmp history -last x"])
        .expect("gdb runs");
    assert!(printed[0].contains("lock_cycle.c:"), "{printed:#?}");
    assert!(printed[1].contains("thread  event"), "{printed:#?}");
    assert!(printed[2].contains("Behind -last comes a number"), "{printed:#?}");
}
