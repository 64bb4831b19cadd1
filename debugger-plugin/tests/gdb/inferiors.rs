//! Several inferiors while stops are armed: each has the stops of its own process, and no other.

use debugger_plugin::{Gdb, gdbs};
use test_programs::{Env, Launch, Opt, Runtime, Toolchain, build, native_combinations};

use crate::common::{has_gdb, library};

/// gdb with a program that is to run on a runtime.
fn launching(launch: &Launch) -> Gdb {
    let mut gdb = Gdb::program(&library(), &launch.executable().path);
    for (name, value) in launch.environment().expect("the runtime is here") {
        gdb = gdb.variable(name, value);
    }
    gdb
}

/// A program without OpenMP runs to its end, and the same program a second time to its own stop.
#[test]
fn an_armed_stop_leaves_other_inferiors_alone() {
    if !has_gdb() {
        return;
    }
    let program = build("begin_end", Toolchain::Gcc, Opt::O0, &[]).expect("the program builds");
    let other = build("following", Toolchain::Gcc, Opt::O0, &[]).expect("the program builds");
    let directory = tempfile::tempdir().expect("a directory");
    let input = directory.path().join("in");
    std::fs::write(&input, "g").expect("a file");
    let run = format!("run < {} > /dev/null", input.display());
    let launch = Launch::new(&program, Runtime::Libgomp, Env::Settled);
    for release in gdbs() {
        let printed = launching(&launch)
            .by(&release)
            .first("break main")
            .first(&run)
            .first("delete")
            .run(&[
                "openmp break parallel-begin if $_omp_level() == 0",
                &format!("add-inferior -exec {}", other.path.display()),
                "inferior 2",
                "run exec > /dev/null",
                &format!("add-inferior -exec {}", program.path.display()),
                "inferior 3",
                &run,
                "inferior 1",
                "continue",
                "openmp break",
                "kill inferiors 1 3",
            ])
            .expect("gdb runs");
        let what = format!("gdb {}: {printed:#?}", release.version);
        assert!(printed[3].contains("exited normally") && !printed[3].contains("Cannot insert"), "{what}");
        assert!(printed[6].contains("A parallel region begins (Thread 3.1"), "{what}");
        assert!(printed[8].contains("A parallel region begins (Thread 1.1"), "{what}");
        assert!(printed[8].contains("at: size2_level1"), "{what}");
        assert!(printed[9].contains("(2 places; 2 hits)"), "{what}");
    }
}

/// A fork of which gdb keeps both processes: the region of the child is one hit, told of the child.
#[test]
fn a_region_of_a_child_is_one_hit_in_the_child() {
    if !has_gdb() {
        return;
    }
    for (toolchain, runtime) in native_combinations() {
        let program = build("following", toolchain, Opt::O0, &[]).expect("the program builds");
        let printed = launching(&Launch::new(&program, runtime, Env::Settled))
            .first("set detach-on-fork off")
            .first("set schedule-multiple on")
            .first("break main")
            .first("run fork > /dev/null")
            .first("delete")
            .run(&["openmp break parallel-begin", "continue", "openmp break", "kill inferiors 1 2"])
            .expect("gdb runs");
        let what = format!("{toolchain:?} on {runtime:?}: {printed:#?}");
        assert!(printed[1].contains("A parallel region begins (Thread 2.1"), "{what}");
        assert!(printed[1].contains("threads: 3") && printed[1].contains("function: "), "{what}");
        assert!(!printed[1].contains("not known"), "{what}");
        assert!(printed[2].contains("places; 1 hit)"), "{what}");
    }
}
