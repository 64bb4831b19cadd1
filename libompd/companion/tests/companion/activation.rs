//! How the companion gets into a program, and out of it.

use crate::common::{Held, companion, history, libraries, program};

#[test]
fn preloaded() {
    let Some(program) = program("recorded", &[]) else { return };
    let file = companion().display().to_string();
    for (library, what) in libraries() {
        let variables = [("LD_PRELOAD", &*file)];
        let Some(running) = Held::start(&program.path, library.path(), &what, &variables, &[]) else { continue };
        assert_eq!(history(running.pid()).threads.len(), 3, "{what}");
        running.end();
    }
}

/// `OMP_TOOL=disabled` leaves the program alone, whatever else is set.
#[test]
fn disabled() {
    use ompd_report::history::{NoHistory, of_target};
    use ompd_target::{Live, OpenOptions};
    let Some(program) = program("recorded", &[]) else { return };
    let file = companion().display().to_string();
    for (library, what) in libraries() {
        let variables = [("LD_PRELOAD", &*file), ("OMP_TOOL_LIBRARIES", &*file), ("OMP_TOOL", "disabled")];
        let Some(running) = Held::start(&program.path, library.path(), &what, &variables, &[]) else { continue };
        let live = Live::open(running.pid(), &OpenOptions::default()).expect("it can be opened");
        let refused = of_target(&live, 10).expect_err("nothing was recorded");
        assert!(matches!(refused, NoHistory::NoCompanion(_)), "{what}: {refused}");
        running.end();
    }
}
