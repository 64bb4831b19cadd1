//! What changes while gdb holds it: several processes, and programs that become others, fork, run anew, load runtimes or have
//! several. The process itself must not change.

use std::io::{BufRead as _, Read as _, Write as _};
use std::process::{Command, Stdio};

use debugger_plugin::dap::{Dap, FIRST_GDB, Target};
use debugger_plugin::{Gdb, newest, plugin};
use serde_json::Value;
use test_programs::{Env, Launch, Opt, Running, Runtime, Toolchain, build, compare, native_combinations};

use crate::common::{has_gdb, library};

/// The compilers with the runtimes that they are made for.
fn native() -> Vec<(Toolchain, Runtime)> {
    if has_gdb() { native_combinations() } else { Vec::new() }
}

/// gdb with a program that is to run on a runtime.
fn launching(launch: &Launch) -> Gdb {
    let mut gdb = Gdb::program(&library(), &launch.executable().path);
    for (name, value) in launch.environment().expect("the runtime is here") {
        gdb = gdb.variable(name, value);
    }
    gdb
}

fn json(text: &str) -> Value {
    let from = text.find(['{', '[']).unwrap_or_else(|| panic!("JSON is wanted: {text}"));
    serde_json::from_str(&text[from..]).unwrap_or_else(|why| panic!("{why}: {text}"))
}

/// Two processes with different runtimes in one gdb: each command is about the selected one.
#[test]
fn several_processes() {
    let all = native();
    let [first, .., last] = all.as_slice() else { return };
    let running = [first, last].map(|(toolchain, runtime)| {
        let program = build("nested", *toolchain, Opt::O0, &[]).expect("the program builds");
        Running::start(&program, *runtime, Env::Settled).expect("the program starts")
    });
    let commands = [
        "openmp status -json",
        "openmp threads",
        "openmp thread 1.1",
        "print $_omp_thread_num() + 10 * $_omp_level()",
        "print $_omp_team(\"1.0\")",
        "bt",
        "openmp why",
    ];
    let mut script = vec![format!("attach {}", running[0].pid), "add-inferior".to_owned(), "inferior 2".to_owned()];
    script.push(format!("attach {}", running[1].pid));
    let before = script.len() + 1;
    for inferior in [2, 1, 2] {
        script.push(format!("inferior {inferior}"));
        script.extend(commands.map(str::to_owned));
    }
    let printed = Gdb::new(&library()).run(&script).expect("gdb runs");
    for (n, at) in [1_usize, 0, 1].into_iter().enumerate() {
        let part = &printed[before + n * (commands.len() + 1)..][..commands.len()];
        let what = format!("inferior {}: {part:#?}", at + 1);
        let running = &running[at];
        let found = compare(&running.truth, &json(&part[0]), running.runtime, running.executable.toolchain);
        assert!(found.compared > 100, "{what}");
        assert_eq!((found.differences, found.unknown, found.lacking), Default::default(), "{what}");
        assert!(part[1].contains(&format!("*{}.", at + 1)), "{what}");
        assert!(
            part[2].contains(&format!("Thread {}.", at + 1)) && part[2].contains("thread 1 of 2 in team 1"),
            "{what}"
        );
        assert!(part[3].ends_with("= 21"), "{what}");
        assert!(part[4].contains(&format!("\"{}.", at + 1)), "{what}");
        assert!(part[5].contains("#pragma omp parallel in outer_body"), "{what}");
        assert!(part[6].contains("truth.h:"), "{what}");
    }
}

/// A program that becomes another, with stops in the first: they are met in the second as well.
#[test]
fn exec() {
    for (toolchain, runtime) in native() {
        let program = build("following", toolchain, Opt::O0, &[]).expect("the program builds");
        let other = build("begin_end", toolchain, Opt::O0, &[]).expect("the program builds");
        let directory = tempfile::tempdir().expect("a directory");
        let (input, output) = (directory.path().join("in"), directory.path().join("out"));
        std::fs::write(&input, "g").expect("a file");
        let run = format!("run exec {} < {} > {}", other.path.display(), input.display(), output.display());
        let printed = launching(&Launch::new(&program, runtime, Env::Settled))
            .run(&[
                "openmp break parallel-begin",
                &run,
                "openmp threads",
                "continue",
                "openmp threads",
                "openmp break",
                "openmp bt",
                "openmp delete",
                "continue",
            ])
            .expect("gdb runs");
        let what = format!("{toolchain:?} on {runtime:?}: {printed:#?}");
        assert!(printed[1].contains("A parallel region begins") && printed[1].contains("at: before_exec"), "{what}");
        assert!(printed[3].contains("executing new program"), "{what}");
        assert!(printed[3].contains("A parallel region begins") && printed[3].contains("at: size2_level1"), "{what}");
        assert!(printed[5].contains("2 hits"), "{what}");
        assert!(printed[6].contains("size2_level1"), "{what}");
        assert!(printed[8].contains("exited normally"), "{what}");
        let told = std::fs::read_to_string(&output).expect("what the program wrote");
        assert!(told.contains("regions="), "{what}: {told}");
    }
}

/// A child that gdb follows: stops that were set in its parent are met in it.
#[test]
fn fork() {
    for (toolchain, runtime) in native() {
        let program = build("following", toolchain, Opt::O0, &[]).expect("the program builds");
        let directory = tempfile::tempdir().expect("a directory");
        let output = directory.path().join("out");
        let run = format!("run fork > {}", output.display());
        for (detach, end) in [("on", "exited with code 07"), ("off", "exited with code 07")] {
            let printed = launching(&Launch::new(&program, runtime, Env::Settled))
                .first("set follow-fork-mode child")
                .first(format!("set detach-on-fork {detach}"))
                .first("break main")
                .first(&run)
                .run(&[
                    "openmp break parallel-begin",
                    "continue",
                    "openmp threads",
                    "print $_omp_num_threads()",
                    "openmp delete",
                    "continue",
                ])
                .expect("gdb runs");
            let what = format!("detach-on-fork {detach}, {toolchain:?} on {runtime:?}: {printed:#?}");
            assert!(printed[1].contains("A parallel region begins") && printed[1].contains("at: in_child"), "{what}");
            assert!(printed[2].contains("team"), "{what}");
            assert!(printed[3].ends_with("= 3"), "{what}");
            assert!(printed[5].contains(end), "{what}");
        }
    }
}

/// The same program twice in one gdb: stops are there again, and nothing is left of the first run.
#[test]
fn run_twice() {
    for (toolchain, runtime) in native() {
        let program = build("begin_end", toolchain, Opt::O0, &[]).expect("the program builds");
        let directory = tempfile::tempdir().expect("a directory");
        let input = directory.path().join("in");
        std::fs::write(&input, "g").expect("a file");
        let run = format!("run < {} > /dev/null", input.display());
        let printed = launching(&Launch::new(&program, runtime, Env::Settled))
            .first("set disable-randomization off")
            .run(&[
                "openmp break parallel-begin if $_omp_level() == 0",
                &run,
                "openmp status",
                "kill",
                "openmp threads",
                "openmp break",
                &run,
                "openmp bt",
                "openmp break",
                "openmp delete",
                "continue",
                "openmp threads",
                &run,
            ])
            .expect("gdb runs");
        let what = format!("{toolchain:?} on {runtime:?}: {printed:#?}");
        for (n, hits) in [(1, "1 hit)"), (6, "2 hits)")] {
            assert!(
                printed[n].contains("A parallel region begins") && printed[n].contains("at: size2_level1"),
                "{what}"
            );
            assert!(n == 1 || printed[n + 2].contains(hits), "{what}");
        }
        assert!(printed[2].contains("1 OpenMP thread") || printed[2].contains("OpenMP threads"), "{what}");
        assert!(printed[4].contains("There is no process"), "{what}");
        assert!(printed[5].contains("waits for a runtime to be loaded"), "{what}");
        assert!(printed[7].contains("size2_level1"), "{what}");
        assert!(printed[10].contains("exited normally"), "{what}");
        assert!(printed[11].contains("There is no process"), "{what}");
        assert!(printed[12].contains("exited normally"), "{what}");
    }
}

/// A runtime that is loaded after the first command, and two at work.
#[test]
fn several_runtimes() {
    if !has_gdb() {
        return;
    }
    for second in [Runtime::Libomp14, Runtime::Libiomp5] {
        let library_of = match second.library() {
            Ok(library) => library,
            Err(skip) => {
                skip.show();
                continue;
            }
        };
        let program = build("two_runtimes", Toolchain::Gcc, Opt::O2, &[]).expect("the program builds");
        let launch =
            Launch::new(&program, Runtime::Libgomp, Env::Settled).argument(library_of.to_str().expect("a plain path"));
        // Before it is loaded, and right after.
        let run = format!("run {} > /dev/null < /dev/null", library_of.display());
        let printed = launching(&launch)
            .run(&[
                "break main",
                &run,
                "openmp init",
                "break dlsym",
                "continue",
                "openmp init",
                "openmp doctor -json",
                "kill",
            ])
            .expect("gdb runs");
        let name = if second == Runtime::Libomp14 { "LLVM libomp" } else { "Intel libiomp5" };
        assert!(printed[2].contains("GNU libgomp") && !printed[2].contains(name), "{printed:#?}");
        assert!(printed[5].contains("GNU libgomp") && printed[5].contains(name), "{printed:#?}");
        // Both at work.
        let running = launch.start().expect("it starts");
        let other =
            running.truth.threads.iter().find(|thread| thread.role == "other 1").expect("a thread of the second");
        let own = running.truth.threads.iter().find(|thread| thread.role == "coordinator").expect("one of the first");
        let printed = Gdb::attached(&library(), &running)
            .run(&[
                "openmp status -json",
                "openmp init",
                &format!("openmp thread {}", other.lwp),
                "print $_omp_thread_num() + 10 * $_omp_num_threads()",
                "openmp bt",
                &format!("openmp thread {}", own.lwp),
                "print $_omp_thread_num() + 10 * $_omp_num_threads()",
                "openmp thread 0.1",
                "openmp thread 0:0.1",
                "openmp thread 1:0.1",
            ])
            .expect("gdb runs");
        let report = json(&printed[0]);
        let runtimes = report["runtimes"].as_array().expect("runtimes");
        assert_eq!(runtimes.len(), 2, "{printed:#?}");
        assert!(printed[1].contains("GNU libgomp") && printed[1].contains(name), "{printed:#?}");
        assert!(printed[3].ends_with("= 31"), "{printed:#?}");
        assert!(printed[4].contains("other_body"), "{printed:#?}");
        assert!(printed[6].ends_with("= 21"), "{printed:#?}");
        assert!(printed[7].contains("Several runtimes have teams: 0:0 or 1:0 is wanted"), "{printed:#?}");
        for (index, runtime) in runtimes.iter().enumerate() {
            let lwp = runtime["teams"][0]["members"][1].to_string();
            assert!(printed[8 + index].contains(&format!("LWP {lwp}")), "{printed:#?}");
        }
        running.release().expect("it goes on to its end");
    }
}

/// What was set by stops is gone when gdb lets go of the process, which goes on to its end.
#[test]
fn detach_leaves_nothing_behind() {
    for (toolchain, runtime) in native() {
        let program = build("begin_end", toolchain, Opt::O0, &[]).expect("the program builds");
        let mut process = Launch::new(&program, runtime, Env::Settled).spawn().expect("the program starts");
        let mut line = String::new();
        process.stdout.read_line(&mut line).expect("the program speaks");
        let pid = process.child.id();
        let printed = Gdb::process(&library(), pid, false)
            .run(&["openmp break parallel-begin", "openmp break task-begin", "openmp break", "detach"])
            .expect("gdb runs");
        let what = format!("{toolchain:?} on {runtime:?}: {printed:#?}");
        assert!(printed[2].matches("place").count() == 2, "{what}");
        assert!(printed[3].contains("detached"), "{what}");
        process.stdin.write_all(b"g").expect("it reads");
        let mut rest = String::new();
        process.stdout.read_to_string(&mut rest).expect("it writes");
        let status = process.child.wait().expect("it ends");
        assert!(status.success() && rest.contains("regions="), "{what}: {status}: {rest}");
    }
}

/// All commands that show something, on a process that is held: not a byte of it is another afterwards, in any page, code included.
#[test]
fn nothing_of_the_process_is_written() {
    for (toolchain, runtime) in native() {
        let program = build("nested", toolchain, Opt::O0, &[]).expect("the program builds");
        let running = Running::start(&program, runtime, Env::Settled).expect("the program starts");
        let sums = format!("source {}/tests/gdb/sums.py", env!("CARGO_MANIFEST_DIR"));
        let shown = [
            "status",
            "threads",
            "teams",
            "parallel",
            "tasks",
            "waits",
            "loops",
            "icvs",
            "stacks",
            "bt",
            "why",
            "thread 1.1",
            "taskframes",
            "print -all 1",
            "doctor",
            "init",
            "apply 1 bt",
            "break",
            "status -json",
        ];
        let mut commands: Vec<String> = shown.iter().map(|name| format!("openmp {name}")).collect();
        commands.extend(
            ["bt", "print $_omp_team()", "print $_omp_thread_num()", "set openmp thread-names on", "info threads"]
                .map(str::to_owned),
        );
        commands.insert(0, sums.clone());
        commands.push(sums);
        let printed = Gdb::attached(&library(), &running).run(&commands).expect("gdb runs");
        let what = format!("{toolchain:?} on {runtime:?}");
        let shown = &printed[1..=shown.len()];
        assert!(shown.iter().all(|text| !text.is_empty()), "{what}: {shown:#?}");
        let [before, after] = [printed.first(), printed.last()].map(|text| {
            let text =
                text.and_then(|text| text.strip_prefix("sums ")).unwrap_or_else(|| panic!("{what}: {printed:#?}"));
            serde_json::from_str::<Vec<(String, u64)>>(text).expect("sums")
        });
        assert!(before.iter().filter(|(line, _)| line.contains(" rw-p ")).count() > 10, "{what}: {before:#?}");
        assert_eq!(before, after, "{what}");
        running.release().expect("it goes on to its end");
    }
}

/// Functions in the condition of a breakpoint, hit many times without a stop between: each hit is about the moment itself.
#[test]
fn values_are_of_the_moment() {
    for (toolchain, runtime) in native() {
        let program = build("begin_end", toolchain, Opt::O0, &[]).expect("the program builds");
        let directory = tempfile::tempdir().expect("a directory");
        let input = directory.path().join("in");
        std::fs::write(&input, "g").expect("a file");
        let run = format!("run < {} > /dev/null", input.display());
        // Each place writes down what is so, and none stops.
        let note =
            "python print('hit', *(int(gdb.parse_and_eval(f'$_omp_{name}()')) for name in ('level', 'num_threads')))";
        let printed = launching(&Launch::new(&program, runtime, Env::Settled))
            .run(&[
                "python hits = []",
                "python num = lambda name: int(gdb.parse_and_eval(f'$_omp_{name}()'))",
                "python B = type('B', (gdb.Breakpoint,), {'stop': lambda self: hits.append((self.location, num('level'), \
                 num('num_threads'), num('thread_num'))) and False})",
                "python B('size2_level1'), B('size3_level2'), B('size1_level2')",
                "break size3_level2 if $_omp_level() != 1 || $_omp_num_threads() != 2",
                "break size1_level2 if $_omp_level() != 1 || $_omp_num_threads() != 4",
                &run,
                note,
                "python print(sorted(set(hits)), len(hits))",
            ])
            .expect("gdb runs");
        let what = format!("{toolchain:?} on {runtime:?}: {printed:#?}");
        assert!(printed[6].contains("exited normally"), "{what}");
        let mut expected: Vec<String> = (0..4).map(|number| format!("('size1_level2', 1, 4, {number})")).collect();
        expected.push("('size2_level1', 0, 1, 0)".to_owned());
        expected.extend((0..2).map(|number| format!("('size3_level2', 1, 2, {number})")));
        // Three rounds of one call, of two, and of four.
        assert_eq!(printed[8], format!("[{}] 21", expected.join(", ")), "{what}");
    }
}

/// What a front end gets by GDB/MI: frames as the filter makes them.
#[test]
fn machine_interface() {
    for (toolchain, runtime) in native() {
        let program = build("nested", toolchain, Opt::O0, &[]).expect("the program builds");
        let running = Running::start(&program, runtime, Env::Settled).expect("the program starts");
        let waiter = running.truth.with_role("inner waiter").next().expect("a waiter").lwp;
        let mut gdb = Command::new("gdb")
            .args(["-nx", "-q", "-interpreter=mi3", "-p", &running.pid.to_string()])
            .args(["-ex", &format!("source {}", plugin().display())])
            .args(["-ex", &format!("set openmp library {}", library().join("libompd.so").display())])
            .args(["-ex", &format!("openmp thread {waiter}")])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("gdb starts");
        let input = gdb.stdin.as_mut().expect("its input");
        input
            .write_all(
                b"1-enable-frame-filters\n2-stack-list-frames\n3-stack-list-frames --no-frame-filters\n\
                4-interpreter-exec console \"openmp why\"\n5-gdb-exit\n",
            )
            .expect("it reads");
        let done = gdb.wait_with_output().expect("it ends");
        let text = String::from_utf8_lossy(&done.stdout).into_owned();
        let what = format!("{toolchain:?} on {runtime:?}: {text}");
        let answer = |number: u32| {
            let begin = format!("{number}^done");
            text.lines()
                .find_map(|line| line.strip_prefix(&begin))
                .unwrap_or_else(|| panic!("{number}: {what}"))
                .to_owned()
        };
        answer(1);
        let (filtered, plain) = (answer(2), answer(3));
        assert!(filtered.contains("#pragma omp parallel in outer_body"), "{what}");
        assert!(filtered.contains("waits: barrier") && filtered.contains("inner_body"), "{what}");
        assert!(plain.contains("inner_body") && !plain.contains("#pragma"), "{what}");
        assert!(text.contains("waits at a"), "{what}");
        assert!(!text.contains("Traceback") && !text.contains("Python Exception"), "{what}");
    }
}

/// The same by DAP, which gdb speaks since its version 14.
#[test]
fn debug_adapter() {
    if !has_gdb() {
        return;
    }
    let release = match newest(FIRST_GDB) {
        Ok(release) => release,
        Err(skip) => return skip.show(),
    };
    for (toolchain, runtime) in native() {
        let program = build("nested", toolchain, Opt::O0, &[]).expect("the program builds");
        let running = Running::start(&program, runtime, Env::Settled).expect("the program starts");
        let mut dap = match Dap::gdb(&release, &library()).expect("gdb starts") {
            Ok(dap) => dap,
            Err(skip) => return skip.show(),
        };
        dap.attach(&program.path, Target::Pid(running.pid)).expect("it attaches");
        let mut seen = String::new();
        for (thread, _) in dap.threads().expect("threads") {
            seen += &serde_json::Value::from(dap.stack(thread).expect("frames")).to_string();
        }
        let status = dap.console("openmp status", None).expect("an answer");
        dap.detach().expect("it detaches");
        assert!(seen.contains("#pragma omp parallel in outer_body") && seen.contains("waits: barrier"), "{seen}");
        assert!(status.contains("level 2, 2 threads") && !status.contains('\u{1b}'), "{status}");
    }
}
