//! Programs behave as without the library.

use std::process::Command;

use test_programs::Opt;

use crate::common::{companion, preload, program};

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
