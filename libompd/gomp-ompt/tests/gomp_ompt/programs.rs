//! Programs behave as without the library.

use std::path::Path;
use std::process::Command;

use serde_json::Value;
use test_programs::{Opt, Skip};

use crate::common::{companion, preload, program};
use crate::hostile::the_same;

/// Exceptions, copy constructors of tasks, threads of the program, a child that exits, and the end of a thread in the middle of a task.
#[test]
fn exceptions_copies_threads_and_children_work_as_before() {
    let Some(companion) = companion() else { return };
    let preload = preload();
    for opt in [Opt::O0, Opt::O2] {
        let Some(program) = program("tool_cpp", opt, &[]) else { return };
        let run = |variables: &[(&str, &str)]| {
            let output = Command::new(&program.path).envs(variables.iter().copied()).output().expect("it starts");
            let (text, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
            assert!(output.status.success(), "{opt:?} {variables:?}: {:?} {text}{errors}", output.status);
            text.into_owned()
        };
        let alone = run(&[]);
        assert_eq!(run(&[("LD_PRELOAD", &preload)]), alone, "{opt:?}");
        let recorded = run(&[("LD_PRELOAD", &preload), ("OMP_TOOL_LIBRARIES", &companion)]);
        assert_eq!(recorded, alone, "{opt:?}, recorded");
    }
}

/// Kernels as in benchmarks of tasks: Fibonacci numbers, queens, sorting, blocks with dependences, products of matrices.
#[test]
fn kernels_of_tasks_and_loops_compute_the_same() {
    let computed = "fibonacci 6765\nqueens 92\nwavefront 50723\nproduct 2986944\nsorted 1, middle 8353484\nconstructs 177559\nvisited 600, 600\n";
    for opt in [Opt::O0, Opt::O2] {
        let Some(program) = program("task_kernels", opt, &[]) else { return };
        let Some(alone) = the_same(&program.path, &[]) else { return };
        assert_eq!(String::from_utf8_lossy(&alone.stdout), computed, "{opt:?}");
    }
}

/// Some regions of scikit-learn end in a jump to the runtime's barrier, which then returns to this library. The barrier is that of the
/// region's runtime all the same, and no other libgomp gets into the process.
#[test]
fn wheels_with_their_own_libgomps_compute_the_same() {
    let Some(companion) = companion() else { return };
    let home = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../test-programs");
    let interpreter = home.join("runtimes/venv/bin/python");
    if !interpreter.is_file() {
        let missing = interpreter.display();
        return Skip::because(format!("no Python with wheels ({missing}); \"ci/fetch python\" gets it")).show();
    }
    let run = |variables: &[(&str, &str)]| -> Value {
        let mut python = Command::new(&interpreter);
        python.arg(home.join("python/fit.py")).env("OMP_NUM_THREADS", "4").envs(variables.iter().copied());
        let output = python.output().expect("Python starts");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{variables:?}: {errors}");
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{variables:?}: {error}, {errors}"))
    };
    let alone = run(&[]);
    assert_eq!(alone["libgomps"].as_array().map(Vec::len), Some(2), "{alone}");
    let preload = preload();
    assert_eq!(run(&[("LD_PRELOAD", &preload)]), alone);
    assert_eq!(run(&[("LD_PRELOAD", &preload), ("OMP_TOOL_LIBRARIES", &companion)]), alone, "recorded");
}
